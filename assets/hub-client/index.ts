// The browser's side of the wire: requests with their keys, and the live feed of an event.
// Framework-free; knows the protocol and nothing else.

export { Backoff } from './backoff.ts';
export { ProblemError, Requests, UnknownOutcome } from './requests.ts';
export { Hub } from './http.ts';
export { TillHub, type SeatVerb } from './till.ts';
export { KeyRing, type KeyStore } from './keys.ts';
export { ServerClock } from './clock.ts';
export { Feed } from './feed.ts';
export { LineFeed, type LineListener } from './line-feed.ts';
export { type FeedPorts, type FeedState, type SocketHandlers } from './follow.ts';
export { browserPorts } from './browser.ts';
export { Room } from './room.ts';
