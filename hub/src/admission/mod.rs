//! Who comes in, and how fast.

pub mod controller; // the pace, from what was measured
