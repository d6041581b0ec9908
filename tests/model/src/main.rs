//! A model of paying, searched exhaustively: a seat, its hold and order, attempts, the provider, a wire that
//! loses and delays, workers of two hubs that die at any step, a buyer who pays, pays again and gives up,
//! somebody else who wants the seat, webhooks at any time, and the clock.
//!
//! What is decided in it is decided by the product: `machine::plan`, `machine::judge` and
//! `machine::next` are called, not copied. [`wrong`] says what must never be so; and from every state
//! that can be reached, workers and time alone must lead to one in which nothing is left to do.
//!
//! A package of its own, so that it is optimised also where nothing else is: it goes through millions of states.
//! The search is our own. `stateright` (0.31) was looked at: its `eventually` does not see cycles, of which
//! asking again is made, and it keeps no graph that could be searched backwards for what never ends.
//!
//! A worker reads the attempt, and what follows is a step of its own: in between it may lose its lease, another may read and
//! write, and then the first writes, under the product's own condition. (A worker that is alone can only die there, which is
//! as if it had not read; so one hub has no such step.)
//!
//! What the tests search, each to its end (two cores that others used as well, so that times say little):
//!
//! | scope | states | longest shortest path | s |
//! | --- | --- | --- | --- |
//! | one attempt, one hub that dies at will, every fault, a day that passes | 1.70 million | 69 | 18 |
//! | one attempt, two hubs | 1.53 million | 58 | 21 |
//! | two hubs that give money back, an answer that may cost a key, a day | 1.32 million | 36 | 19 |
//! | a buyer who pays again, reservations that lapse, refunds that fail | 1.95 million | 78 | 33 |
//!
//! `make model` searches further, each to its end as well; nothing was found:
//!
//! | scope | states | longest shortest path | s of a processor | memory |
//! | --- | --- | --- | --- | --- |
//! | two failures | 5.45 million | 80 | 25 | 0.4 GB |
//! | two hubs, and a failure | 10.06 million | 68 | 75 | 0.9 GB |
//! | two hubs, and a day: money taken by others, reservations that lapse | 19.86 million | 68 | 169 | 1.5 GB |
//! | a buyer who pays again, and an answer that may cost a key | 13.89 million | 86 | 414 by the clock | 1.3 GB |
//!
//! With words after it, the program searches only what bears them in its name: `cargo run -p fullhouse-model -- paying again`.

mod search; // every state, and the way home from each
mod provider; // the provider: intents, and answers kept under keys
mod world; // what there is
mod rules; // what the world obeys
mod steps; // what may happen next
mod people; // the buyer, the house, time
mod wire; // the provider, and what reaches it
mod hubs; // workers
mod effects; // what a worker writes down
mod wrong; // what must never be so
mod scopes; // how far it is searched
#[cfg(test)]
mod tests; // the product holds; each rule broken is found

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut failed = false;
    let only = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    for (name, scope) in scopes::WIDE.iter().filter(|(name, _)| name.contains(&only)) {
        if let Some(fault) = scopes::look(name, rules::Rules::OURS, *scope).fault {
            eprintln!("{name}: {}\n{}", fault.what, fault.path.join("\n"));
            failed = true;
        }
    }
    // The controls that take as long.
    for (name, rules, scope, expected) in scopes::BROKEN.iter().filter(|(name, ..)| name.contains(&only)) {
        let fault = scopes::look(name, *rules, *scope).fault.map(|fault| fault.what);
        eprintln!("{name}: {fault:?}");
        failed |= fault.as_deref() != Some(expected);
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
