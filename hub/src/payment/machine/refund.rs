//! A refund of ours: its states, what is asked next, and what follows where the provider does not have it.
//!
//! Invariants
//! - The provider moves a refund forward only: on its way, arrived, failed after all. What is said late says less than
//!   what is known, and changes nothing; only a look that was begun after everything we know may take something back.
//! - None is called failed while a request that asked for it may still arrive.

use chrono::TimeDelta;

use super::{CallState, Facts, KEY_LIFE, Key, Seen, Step};
use crate::payment::provider::Op;

/// In the provider's order. `refund_never_goes_back` holds the rows to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefundState {
    /// Written down; the provider may have it or not.
    Pending,
    /// It has it; the money is on its way.
    Accepted,
    Succeeded,
    /// Refused, or come back: also after it had arrived.
    Failed,
}

impl RefundState {
    pub const ALL: &[RefundState] =
        &[RefundState::Pending, RefundState::Accepted, RefundState::Succeeded, RefundState::Failed];

    /// As it is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            RefundState::Pending => "pending",
            RefundState::Accepted => "accepted",
            RefundState::Succeeded => "succeeded",
            RefundState::Failed => "failed",
        }
    }

    pub fn from_name(name: &str) -> Option<RefundState> {
        RefundState::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// What was learnt of a refund, if that is what was learnt.
    pub fn of(seen: Seen) -> Option<RefundState> {
        match seen {
            Seen::RefundAccepted => Some(RefundState::Accepted),
            Seen::RefundDone => Some(RefundState::Succeeded),
            Seen::RefundFailed => Some(RefundState::Failed),
            _ => None,
        }
    }
}

/// Who says what became of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Said {
    /// The answer to what asked for it; under a key that was used before, the first answer once more, however old.
    Answer,
    /// The provider's list, asked for after everything that we know.
    Look,
    /// Nobody has it: it was refused, and looked for in vain.
    Refusal,
}

/// Whether what is said counts.
pub fn counts(is: RefundState, becomes: RefundState, said: Said) -> bool {
    match said {
        _ if becomes == RefundState::Pending => false,
        Said::Answer => becomes > is,
        Said::Look => true,
        Said::Refusal => is == RefundState::Pending,
    }
}

/// What is done next about the refund that is under way.
pub(super) fn plan(facts: &Facts) -> Step {
    match facts.call {
        _ if facts.refund_asked_for => Step::LookForRefunds,
        None => Step::Write(Op::Refund),
        // Refused, and no other request was ever sent that could have arrived.
        Some(c) if c.state == CallState::Answered && c.was_refused() && c.sends <= 1 => {
            Step::Conclude(Seen::RefundFailed)
        }
        // Also one that is prepared once more may have lain there for a day, and what was sent before have arrived.
        Some(c) if c.sends > 0 && facts.now - c.created_at >= KEY_LIFE => Step::LookForRefunds,
        Some(c) if c.state == CallState::Prepared => Step::Send,
        Some(c) if c.state == CallState::Answered || c.is_spent() => Step::LookForRefunds,
        Some(_) => Step::Send,
    }
}

/// What follows where the provider's list, read to its end, does not have a refund of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It may be on its way still.
    Wait,
    AskAgain(Key),
    /// It was refused, and nothing that was sent before has arrived.
    GiveUp,
}

pub fn missing(facts: &Facts) -> Missing {
    let Some(call) = facts.call.filter(|_| !facts.refund_asked_for) else { return Missing::Wait };
    let refused = call.state == CallState::Answered && call.was_refused();
    match () {
        // Another key, or none at all: not while an earlier request may still arrive.
        () if (refused || call.is_spent()) && !call.is_quiet(facts.now) => Missing::Wait,
        () if refused => Missing::GiveUp,
        () if call.is_spent() => Missing::AskAgain(Key::Next),
        () => Missing::AskAgain(Key::Same),
    }
}

/// Money that came after the decision is sent back by itself so often; then people see to it.
pub const STRAY_TRIES_MAX: i64 = 3;
/// After a try that failed: after the first, after any later one.
const STRAY_WAITS: [TimeDelta; 2] = [TimeDelta::minutes(5), TimeDelta::hours(1)];

/// The refunds of an attempt that was decided, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strays {
    /// Those that failed.
    pub failed: i64,
    /// Another is on its way, or has arrived, or somebody gave the money back by hand.
    pub seen_to: bool,
    /// Since the last one failed.
    pub failed_for: TimeDelta,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterDecision {
    GiveBack,
    Wait(TimeDelta),
    /// It goes back already, or is on people's list.
    Leave,
}

/// The attempt is decided, and its money was taken all the same.
pub fn after_decision(strays: &Strays) -> AfterDecision {
    if strays.seen_to || strays.failed >= STRAY_TRIES_MAX {
        return AfterDecision::Leave;
    }
    let wait = match strays.failed {
        0 => TimeDelta::zero(),
        1 => STRAY_WAITS[0],
        _ => STRAY_WAITS[1],
    };
    if strays.failed_for >= wait { AfterDecision::GiveBack } else { AfterDecision::Wait(wait - strays.failed_for) }
}
