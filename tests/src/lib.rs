//! What the tests stand on. Everything here is real: PostgreSQL, nats-server, the hub and its wire.
//!
//! - Time is set ([`clock`]), not slept; a state is waited for with a bound ([`eventually`]).
//! - Actors ([`Fan`](fan::Fan), [`Till`](till::Till)) speak only the wire, as anybody's client would.
//! - The payment provider is the simulator of this project, which programs that others wrote check in turn
//!   (`tests/peers`): `make test-peers` runs them alone.
//! - `make soak` runs a seed after the other of an evening on which everything goes wrong ([`soak`]); `tests/soak.rs`
//!   runs two. `tests/model` searches paying exhaustively.
//! - `make cut` does the same to tills without a network ([`cutting`]).
//! - A test ends with [`Database::finish`](database::Database::finish): nothing may be left over.

pub mod seeds; // which of them a command names
pub mod run; // the run: its directory, its one PostgreSQL, and who cleans up
pub mod database; // a database a test, and what must be true at its end
pub mod clock; // the database's clock, set by hand
pub mod proxy; // a wire that can be cut, and that holds back one statement by name
pub mod nats; // a nats-server that can be stopped
pub mod nginx; // a cache in front of a hub
pub mod hall; // plans to sell
pub mod stage; // an event on sale
pub mod rows; // halls written straight into the database
pub mod hub; // a hub in this process
pub mod binary; // the real binary, to be killed
pub mod fan; // a browser's requests
pub mod caller; // a request whose client hangs up
pub mod till; // a terminal's requests
pub mod network; // the wire between tills and a hub, on which everything goes wrong
pub mod cutting; // an evening of tills without a network, and its books
pub mod desk; // an attended counter, and who stands behind it
pub mod map; // an open map, following its frames
pub mod viewers; // many of them, for load
pub mod smtp; // a mail server that keeps what it gets
pub mod paper; // a document, as other programs see it
pub mod scene; // where a test about money begins
pub mod provider; // the payment provider, simulated, and a fan who pays
pub mod race; // where a race of paying begins
pub mod line; // a line in front of a sale
pub mod fairness; // who gets in, under each rule of the door
pub mod plant; // a sale to steer, second by second
pub mod soak; // an evening on which everything goes wrong

use std::{future::Future, time::Duration};

/// "Within a second" in a test means this before it counts as hung.
pub const HUNG: Duration = Duration::from_secs(10);

/// Waits until `probe` gives a value, or fails the test after [`HUNG`].
#[track_caller]
pub fn eventually<T, F: Future<Output = Option<T>>>(what: &str, probe: impl FnMut() -> F) -> impl Future<Output = T> {
    eventually_within(HUNG, what, probe)
}

/// Waits for what takes long by its nature: whole programs that start and end beside others.
#[track_caller]
pub fn eventually_within<T, F: Future<Output = Option<T>>>(
    bound: Duration,
    what: &str,
    mut probe: impl FnMut() -> F,
) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let until = tokio::time::Instant::now() + bound;
        loop {
            if let Some(value) = probe().await {
                return value;
            }
            assert!(tokio::time::Instant::now() < until, "{caller}: still not so after {bound:?}: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
