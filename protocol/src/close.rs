//! Why a hub closes a live map's socket. What a client does about each stands in `PROTOCOL.md`.

/// The node drains. The reason is a number of milliseconds: return after a random part of it.
pub const DRAINING: u16 = 1012;
/// The client took nothing for too long or gave no sign of life, or the node is behind the client.
/// Return, and resume.
pub const TOO_SLOW: u16 = 4000;
/// The address or what the client sent is not as described. Returning does not help.
pub const BAD_REQUEST: u16 = 4001;
/// There is no such event. Returning does not help.
pub const EVENT_UNKNOWN: u16 = 4004;
/// The node carries as many maps as it may. Return later, or poll.
pub const TOO_MANY_SOCKETS: u16 = 4008;
