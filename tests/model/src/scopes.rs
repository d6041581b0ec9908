//! How far it is searched.

use std::time::Instant;

use super::{
    rules::{Begin, Rules, Scope},
    search::{Searched, search},
    steps::Payments,
};

const STATES_MAX: usize = 80_000_000;

/// One attempt, one hub that dies as often as it likes, and everything that can go wrong.
pub const FAULTS: Scope = Scope {
    begins: Begin::Held,
    attempts: 1,
    workers: 1,
    failures: 1,
    foreign_captures: 1,
    lapses: true,
    refunds_fail: true,
    days: true,
};
/// One attempt, two hubs that are in each other's way.
pub const HUBS: Scope = Scope {
    begins: Begin::Held,
    attempts: 1,
    workers: 2,
    failures: 0,
    foreign_captures: 0,
    lapses: false,
    refunds_fail: true,
    days: false,
};
/// Two hubs that give money back, and what may go wrong with that.
pub const REFUNDS: Scope = Scope { begins: Begin::ToGiveBack, failures: 1, days: true, ..HUBS };
/// The same of money that was taken after the decision.
const LATE: Scope = Scope { begins: Begin::TakenLate, ..REFUNDS };
/// A buyer who pays again.
pub const AGAIN: Scope = Scope {
    begins: Begin::Held,
    attempts: 2,
    workers: 1,
    failures: 0,
    foreign_captures: 0,
    lapses: true,
    refunds_fail: true,
    days: false,
};

/// The same, and an answer that may cost a key. Neither lapses a reservation here nor does a refund fail, which one attempt
/// is searched for: with them it is more than forty million states.
const AGAIN_AND_A_FAILURE: Scope = Scope { failures: 1, lapses: false, refunds_fail: false, ..AGAIN };

/// A quarter of an hour the longest, and some gigabytes.
pub const WIDE: &[(&str, Scope)] = &[
    ("two failures", Scope { failures: 2, ..FAULTS }),
    ("two hubs, and a day", Scope { foreign_captures: 1, lapses: true, days: true, ..HUBS }),
    ("two hubs, and a failure", Scope { failures: 1, ..HUBS }),
    ("two hubs that give back", REFUNDS),
    ("paying again, and a failure", AGAIN_AND_A_FAILURE),
];

/// Rules that are broken, and what has to be found: where that takes a wide search, or a beginning that is searched only for it.
pub const BROKEN: &[(&str, Rules, Scope, &str)] = &[
    // Two hubs: one begins a refund, the other finds none begun and puts the attempt to rest.
    (
        "a refund that nobody sees to",
        Rules { refunds_supersede: false, ..Rules::OURS },
        LATE,
        "money was taken for no order, and does not go back",
    ),
    // The money of an order that is due was taken after all, by a person, and was given back.
    (
        "healed by what went back",
        Rules { heals_what_is_kept: false, ..Rules::OURS },
        Scope { foreign_captures: 1, ..AGAIN_AND_A_FAILURE },
        "a sold seat has no money",
    ),
    // What the first payment has left is not let go, and the second pays: in the scope of paying again itself.
    (
        "paid again, and the first left open",
        Rules { tidies_at_most: 1, ..Rules::OURS },
        AGAIN_AND_A_FAILURE,
        super::wrong::CONFIRMABLE,
    ),
];

pub fn look(name: &str, rules: Rules, scope: Scope) -> Searched {
    let began = Instant::now();
    let searched = search(&Payments { rules, scope }, STATES_MAX);
    eprintln!(
        "{name}: {} states, {} steps, depth {}, {:.1} s: {scope:?}",
        searched.states,
        searched.steps,
        searched.depth,
        began.elapsed().as_secs_f64(),
    );
    searched
}
