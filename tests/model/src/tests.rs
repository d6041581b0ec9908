//! The product holds in every state; and each of its rules, broken, is found to be. Otherwise the search proves nothing.

use fullhouse::payment::{
    machine::{self, CallFacts, CallState, Facts, Key, Missing, QUIET, Seen, State, Step},
    provider::{IntentStatus, Op},
};

use super::{
    rules::{Rules, Scope},
    scopes::{AGAIN, FAULTS, HUBS, REFUNDS, look},
    wrong::CONFIRMABLE,
};

fn holds(name: &str, scope: Scope) {
    let searched = look(name, Rules::OURS, scope);
    if let Some(fault) = searched.fault {
        panic!("{name}: {}\n{}", fault.what, fault.path.join("\n"));
    }
    assert!(searched.states > 100_000, "{name}: the world has become too small to prove anything");
}

#[test]
fn whatever_goes_wrong_the_money_is_right() {
    holds("whatever goes wrong", FAULTS);
}

#[test]
fn two_hubs_at_one_attempt_do_no_more_than_one() {
    holds("two hubs", HUBS);
}

#[test]
fn two_hubs_give_money_back_once() {
    holds("two hubs that give back", REFUNDS);
}

#[test]
fn a_buyer_who_pays_again_pays_once() {
    holds("paying again", AGAIN);
}

/// The model finds one of these faults where a rule is broken.
#[track_caller]
fn finds(name: &str, rules: Rules, scope: Scope, faults: &[&str]) {
    let fault = look(name, rules, scope).fault.unwrap_or_else(|| panic!("{name}: nothing was found"));
    eprintln!("{name}: {} after {} steps", fault.what, fault.path.len() - 1);
    assert!(faults.contains(&fault.what.as_str()), "{name}: {}\n{}", fault.what, fault.path.join("\n"));
}

const TOLD_WRONG: &str = "the buyer was told that nothing was charged, and money is reserved";

#[test]
fn the_model_finds_that_a_timeout_is_not_a_decline() {
    fn next(state: State, seen: Seen) -> Option<State> {
        match (state, seen) {
            (State::Confirming, Seen::Doubt) => Some(State::Declined),
            _ => machine::next(state, seen),
        }
    }
    finds("a timeout is a decline", Rules { next, ..Rules::OURS }, HUBS, &[TOLD_WRONG]);
}

#[test]
fn the_model_finds_a_capture_before_the_sale() {
    fn next(state: State, seen: Seen) -> Option<State> {
        match (state, seen) {
            (State::Confirming | State::AuthUnknown | State::ActionRequired, Seen::Authorised) => {
                Some(State::CapturePending)
            }
            _ => machine::next(state, seen),
        }
    }
    finds("captured first", Rules { next, ..Rules::OURS }, HUBS, &["money was taken before the sale"]);
}

#[test]
fn the_model_finds_that_the_margin_is_needed() {
    let late = "a confirmation started with too little of the hold left";
    finds("no margin", Rules { margin_ticks: 0, ..Rules::OURS }, HUBS, &[late]);
    // Asked about only when the row is read, a worker may be late by the time it sends.
    finds("asked too early", Rules { check_at_sending: false, ..Rules::OURS }, HUBS, &[late]);
}

#[test]
fn the_model_finds_a_new_key_after_a_doubt() {
    fn judge(facts: &Facts, status: &IntentStatus, error: bool, right: bool) -> (Seen, Key) {
        match machine::judge(facts, status, error, right) {
            (Seen::Confirming, _) => (Seen::Confirming, Key::Next),
            other => other,
        }
    }
    let rules = Rules { judge, ..Rules::OURS };
    let scope = Scope { workers: 1, ..HUBS };
    finds("a new key after a doubt", rules, scope, &[TOLD_WRONG, "money is reserved for no live attempt"]);
}

#[test]
fn the_model_finds_a_new_key_without_a_quiet() {
    fn judge(facts: &Facts, status: &IntentStatus, error: bool, right: bool) -> (Seen, Key) {
        let call = facts.call.map(|mut call| {
            call.sent_at = call.sent_at.map(|at| at - QUIET);
            call
        });
        machine::judge(&Facts { call, ..*facts }, status, error, right)
    }
    let scope = Scope { workers: 1, failures: 2, ..HUBS };
    finds("no quiet", Rules { judge, ..Rules::OURS }, scope, &[TOLD_WRONG]);
}

#[test]
fn the_model_finds_a_write_without_its_version() {
    let rules = Rules { version_compare: false, ..Rules::OURS };
    let faults = [
        TOLD_WRONG,
        "an attempt lives, and nobody will look at it again",
        "a seat without its sale, or a sale without its seat",
        "money is reserved for no live attempt",
        "money was taken for no order, and does not go back",
        "a ticket is valid without money, or without an order",
        "a sold seat has no money",
        "it never ends",
    ];
    finds("no version", rules, HUBS, &faults);
}

#[test]
fn the_model_finds_two_attempts_at_once() {
    let rules = Rules { one_live_attempt: false, ..Rules::OURS };
    finds("two live attempts", rules, AGAIN, &["two attempts live at once"]);
}

#[test]
fn the_model_finds_a_sale_that_looks_before_it_locks() {
    let rules = Rules { sells_in_one: false, ..Rules::OURS };
    finds("race 2: looked first, sold later", rules, HUBS, &["a seat was sold twice"]);
    let rules = Rules { sale_reads_the_clock: false, ..Rules::OURS };
    finds("race 1: sold after the hold's end", rules, HUBS, &["a seat was sold twice"]);
}

#[test]
fn the_model_finds_a_refund_that_is_asked_for_again_under_a_forgotten_key() {
    fn plan(facts: &Facts) -> Step {
        let young = facts.call.map(|mut call| {
            call.created_at = facts.now;
            call
        });
        machine::plan(&Facts { call: young, ..*facts })
    }
    finds("an old key", Rules { plan, ..Rules::OURS }, FAULTS, &[TWICE]);
    // The same of a call that is written down to be sent once more, and lay there for a day.
    fn at_once(facts: &Facts) -> Step {
        let waits = facts.call.is_some_and(|call| call.state == CallState::Prepared);
        let refund = facts.state == State::RefundPending && !facts.refund_asked_for;
        if waits && refund { Step::Send } else { machine::plan(facts) }
    }
    finds("sent after a day", Rules { plan: at_once, ..Rules::OURS }, FAULTS, &[TWICE]);
}

#[test]
fn the_model_finds_a_decided_payment_that_is_not_let_go() {
    // The provider has refused once, and that was that.
    let rules = Rules { tidies_at_most: 1, ..Rules::OURS };
    finds("let go of once", rules, Scope { workers: 1, failures: 1, ..HUBS }, &[CONFIRMABLE]);
    // One more try is enough; but two hubs use it up together, and the slower one puts to rest what was to be sent.
    let rules = Rules { tidies_at_most: 2, ..Rules::OURS };
    let scope = Scope { failures: 1, refunds_fail: false, ..HUBS };
    finds("put to rest by a slower hub", Rules { tidying_supersedes: false, ..rules }, scope, &[CONFIRMABLE]);
}

const TWICE: &str = "money went back twice";

/// Two workers read the attempt before either has written the refund's call down, and each asks for it under a key of
/// its own.
#[test]
fn the_model_finds_the_second_refund_of_a_worker_that_has_lost_its_lease() {
    let rules = Rules { calls_supersede: false, ..Rules::OURS };
    finds("a call that is no version", rules, REFUNDS, &[TWICE]);
    let rules = Rules { calls_name_their_version: false, ..Rules::OURS };
    finds("a call that names no version", rules, REFUNDS, &[TWICE]);
}

const NOT_BACK: &str = "money was taken for no order, and does not go back";

#[test]
fn the_model_finds_that_what_is_said_late_of_a_refund_counts_for_nothing() {
    // Two hubs ask what became of it; the slower one was told that it had arrived, and says so after the other has written
    // down that it came back.
    let rules = Rules { refund_news_supersede: false, ..Rules::OURS };
    finds("what is said late counts", rules, REFUNDS, &[NOT_BACK]);
}

#[test]
fn the_model_finds_news_of_a_refund_that_an_older_answer_takes_away() {
    finds("news are lost", Rules { news_stay: false, ..Rules::OURS }, FAULTS, &[NOT_BACK]);
}

#[test]
fn the_model_finds_a_refund_that_is_called_failed_before_it_was_looked_for() {
    // What is refused counts, as if nothing had been sent before.
    fn plan(facts: &Facts) -> Step {
        let refused = |call: &CallFacts| call.http == Some(400);
        let call = facts.call.map(|call| CallFacts { sends: if refused(&call) { 1 } else { call.sends }, ..call });
        machine::plan(&Facts { call, ..*facts })
    }
    finds("refused is failed", Rules { plan, ..Rules::OURS }, FAULTS, &[TWICE]);
}

/// As the product has it, and nothing that was sent may still arrive.
fn missing_without_quiet(facts: &Facts) -> Missing {
    let call = facts.call.map(|call| CallFacts { sent_at: None, ..call });
    machine::missing(&Facts { call, ..*facts })
}

#[test]
fn the_model_finds_a_refund_under_another_key_that_begins_too_early_or_never() {
    let rules = Rules { missing: missing_without_quiet, ..Rules::OURS };
    finds("another refund without a quiet", rules, Scope { failures: 2, ..FAULTS }, &[TWICE]);
    fn the_same(facts: &Facts) -> Missing {
        match machine::missing(facts) {
            Missing::AskAgain(_) => Missing::AskAgain(Key::Same),
            other => other,
        }
    }
    let scope = Scope { days: false, ..FAULTS };
    finds("the dead key of a refund", Rules { missing: the_same, ..Rules::OURS }, scope, &["it never ends"]);
}

#[test]
fn the_model_finds_a_refund_that_begins_after_somebody_paid_by_hand() {
    let rules = Rules { by_hand_is_seen: false, ..Rules::OURS };
    finds("by hand, and by card", rules, FAULTS, &[TWICE]);
}

#[test]
fn the_model_finds_a_capture_whose_key_will_say_nothing_but_no() {
    // A refusal that is kept under the key of the capture is asked for again under it, for ever.
    fn judge(facts: &Facts, status: &IntentStatus, error: bool, right: bool) -> (Seen, Key) {
        match machine::judge(facts, status, error, right) {
            (Seen::Again, Key::Next) if facts.state == State::CaptureUnknown => (Seen::Again, Key::Same),
            other => other,
        }
    }
    let scope = Scope { workers: 1, failures: 1, ..HUBS };
    finds("a refused capture's key for ever", Rules { judge, ..Rules::OURS }, scope, &["it never ends"]);
}

#[test]
fn the_model_finds_what_never_ends() {
    // Nobody looks again at what is in doubt.
    fn resting(facts: &Facts) -> Step {
        if facts.state == State::AuthUnknown { Step::Rest } else { machine::plan(facts) }
    }
    let stuck = ["an attempt lives, and nobody will look at it again", "it never ends"];
    finds("a doubt is left alone", Rules { plan: resting, ..Rules::OURS }, HUBS, &stuck);
    // A cancellation whose key will say nothing but 500 is sent for ever.
    fn stubborn(facts: &Facts) -> Step {
        match machine::plan(facts) {
            Step::Look if facts.state == State::Declined && facts.call.is_some_and(|c| c.http == Some(500)) => {
                Step::Send
            }
            step => step,
        }
    }
    let scope = Scope { workers: 1, failures: 1, ..HUBS };
    finds("the same dead key for ever", Rules { plan: stubborn, ..Rules::OURS }, scope, &["it never ends"]);
    // A reservation is let go by nobody.
    fn careless(facts: &Facts) -> Step {
        match machine::plan(facts) {
            Step::Write(Op::Cancel) => Step::Rest,
            step => step,
        }
    }
    finds("nobody cancels", Rules { plan: careless, ..Rules::OURS }, HUBS, &stuck);
}
