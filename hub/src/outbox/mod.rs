//! What the bus carries: appended in the transaction of a change, relayed in frames.
