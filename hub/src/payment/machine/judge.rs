//! What the provider's word means, once it was asked.

use chrono::TimeDelta;

use super::{CallFacts, Facts, Seen, State};
use crate::payment::provider::{IntentStatus, Op};

/// Which key an operation that is asked for again goes under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Same,
    Next,
}

/// What the intent, as the provider shows it, says in a state. `right_amount`: it is for the order's money.
pub fn judge(facts: &Facts, status: &IntentStatus, has_error: bool, right_amount: bool) -> (Seen, Key) {
    use IntentStatus as S;
    let state = facts.state;
    let asked = !matches!(state, State::Confirming | State::CapturePending | State::VoidPending);
    let again = |seen: Seen| -> (Seen, Key) {
        let spent = |c: &CallFacts| c.is_spent() || (state.op() == Op::Capture && c.is_refused_for_good());
        match facts.call {
            Some(c) if spent(&c) && !c.is_quiet(facts.now) => (Seen::Doubt, Key::Same),
            Some(c) if spent(&c) => (seen, Key::Next),
            _ => (seen, Key::Same),
        }
    };
    let refused = facts.call.is_some_and(|c| c.was_refused());
    let seen = match (state.op(), status) {
        // Some cards are captured by the reader itself: as good as authorised. What is not sold goes back.
        (Op::Confirm, S::Succeeded) if facts.reader.is_some() && right_amount => Seen::Authorised,
        (_, S::Canceled) => Seen::Cancelled,
        (_, S::Succeeded) => Seen::Captured,
        (_, S::Processing | S::Other(_)) => Seen::Doubt,

        (Op::Confirm, S::RequiresCapture) if right_amount => Seen::Authorised,
        (Op::Confirm, S::RequiresCapture) => Seen::WrongAmount,
        (Op::Confirm, S::RequiresAction) => Seen::NeedsAction,
        (Op::Confirm, S::RequiresPaymentMethod) if has_error => Seen::Declined,
        (Op::Confirm, _) if !asked => Seen::Doubt,
        // No card was presented: what the reader was told is told again, or it was told to stop.
        (Op::Confirm, _) if facts.reader.is_some() => match facts.stopped() {
            Some(seen) => seen,
            None if state == State::ActionRequired => Seen::NeedsAction,
            None if refused => Seen::Refused,
            None => return again(Seen::Confirming),
        },
        (Op::Confirm, S::RequiresConfirmation) if facts.stopped().is_some() => {
            return (facts.stopped().unwrap_or(Seen::OutOfTime), Key::Same);
        }
        // The challenge was met: a confirmation of its own.
        (Op::Confirm, S::RequiresConfirmation) if state == State::ActionRequired => {
            return (Seen::Confirming, Key::Next);
        }
        (Op::Confirm, S::RequiresConfirmation) if refused => Seen::Refused,
        (Op::Confirm, S::RequiresConfirmation) => return again(Seen::Confirming),
        // It has lost its card, without a word why.
        (Op::Confirm, _) => Seen::Refused,

        // It is reserved still: a refusal alone throws no sale away. Each look asks once more, at its pace,
        // until the provider's own object or a word that leaves no hope says that it is over.
        (Op::Capture, S::RequiresCapture) if asked && facts.call.is_some_and(|c| c.gone) => Seen::Refused,
        (Op::Capture, S::RequiresCapture) if asked => return again(Seen::Again),
        (Op::Capture, _) if asked && refused => Seen::Refused,
        (Op::Capture, _) if asked => return again(Seen::Again),

        // It refused to let go, and still has it: once more, after a while, under another key.
        (Op::Cancel, _) if asked && refused => {
            let quiet = facts.call.is_some_and(|c| c.is_quiet(facts.now));
            return if quiet { (Seen::Again, Key::Next) } else { (Seen::Doubt, Key::Same) };
        }
        (Op::Cancel, _) if asked => return again(Seen::Again),
        _ => Seen::Doubt,
    };
    (seen, Key::Same)
}

/// When to look again after so many looks in vain, of a doubt that is so old.
pub fn patience(tries: i32, doubt_for: TimeDelta) -> TimeDelta {
    match tries {
        ..=0 => TimeDelta::seconds(2),
        1 => TimeDelta::seconds(5),
        2 => TimeDelta::seconds(10),
        _ if doubt_for < TimeDelta::minutes(15) => TimeDelta::seconds(30),
        _ if doubt_for < TimeDelta::hours(24) => TimeDelta::minutes(5),
        _ => TimeDelta::hours(1), // a person has it on their list by now
    }
}
