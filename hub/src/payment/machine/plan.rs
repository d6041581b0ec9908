//! What is done next, from everything that decides about it.
//!
//! Invariants
//! - What may have been done is asked about before it is asked for again, and before it is called failed.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Seen, State};
use crate::payment::provider::Op;

/// How long nobody may have spoken under a key whose stored answer is a failure, before another key is used.
pub const QUIET: TimeDelta = TimeDelta::seconds(60);
/// Keys may be forgotten after a day: near that, a refund is looked for before it is asked for again.
pub const KEY_LIFE: TimeDelta = TimeDelta::hours(23);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// Written down, and certainly not sent.
    Prepared,
    /// Sent, and no answer was written down: it is as unknown as one that was lost.
    Sent,
    Answered,
    Unknown,
}

/// The latest call of the state's kind.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts {
    pub state: CallState,
    /// Of the last answer, if there was one.
    pub http: Option<u16>,
    /// That answer was one the provider had stored under the key.
    pub replayed: bool,
    /// That answer said that what was reserved is gone for good.
    pub gone: bool,
    /// How often it was sent.
    pub sends: i32,
    pub created_at: DateTime<Utc>,
    pub sent_at: Option<DateTime<Utc>>,
}

impl CallFacts {
    /// A failure is kept under the key, and will be all that it ever answers. The provider says so, or says the same twice.
    pub(super) fn is_spent(&self) -> bool {
        self.http.is_some_and(|s| s >= 500 && s != 503) && (self.replayed || self.sends >= 2)
    }

    /// A wrong key of ours (401, 403) is no refusal of what was asked for.
    pub(super) fn was_refused(&self) -> bool {
        self.http.is_some_and(|s| (400..500).contains(&s) && !matches!(s, 401 | 403 | 409 | 429))
    }

    /// A refusal that was given twice may be kept under the key, like a failure.
    pub(super) fn is_refused_for_good(&self) -> bool {
        self.was_refused() && (self.replayed || self.sends >= 2)
    }

    pub(super) fn is_quiet(&self, now: DateTime<Utc>) -> bool {
        self.sent_at.is_none_or(|at| now - at >= QUIET)
    }
}

/// Everything that decides what is done next.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub state: State,
    pub now: DateTime<Utc>,
    pub hold_expires_at: DateTime<Utc>,
    /// No confirmation starts with less than this of the hold left.
    pub margin: TimeDelta,
    pub abandoned: bool,
    pub has_intent: bool,
    pub call: Option<CallFacts>,
    /// A refund with a life of its own is to be seen to: staff give captured money back, or money came
    /// after the decision.
    pub stray_refund: bool,
    /// The card is held to a reader.
    pub reader: Option<ReaderFacts>,
    /// The provider has that refund: it is asked about, and never asked for again.
    pub refund_asked_for: bool,
}

/// What else decides where a reader collects.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReaderFacts {
    /// The call that tells it to stop.
    pub stop: Option<CallFacts>,
}

/// A reader that can't be told to stop is told so often; then the intent is cancelled all the same.
const STOPS_MAX: i32 = 3;

impl Facts {
    pub fn is_late(&self) -> bool {
        self.hold_expires_at - self.now < self.margin
    }

    /// The reader may still take a card that is not wanted any more. It is told to stop before the intent
    /// is looked at: the card may have been faster, and only a look after the stop says so for good.
    fn reader_has_to_stop(&self) -> bool {
        self.stopped().is_some()
            && self.reader.is_some_and(|reader| {
                reader.stop.is_none_or(|stop| stop.state != CallState::Answered && stop.sends < STOPS_MAX)
            })
    }

    /// What stops a confirmation that was not sent yet.
    pub(super) fn stopped(&self) -> Option<Seen> {
        if self.abandoned {
            Some(Seen::Abandoned)
        } else if self.is_late() {
            Some(Seen::OutOfTime)
        } else {
            None
        }
    }
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Write a call down, under a key that was never used.
    Write(Op),
    /// Send the call that is written down; the same bytes if it was sent before.
    Send,
    /// Ask for the intent.
    Look,
    /// Tell the reader to collect no more.
    StopReader,
    /// Ask for the intent's refunds.
    LookForRefunds,
    /// Nothing has to be asked.
    Conclude(Seen),
    /// The one transaction.
    Decide,
    Rest,
}

pub fn plan(facts: &Facts) -> Step {
    use CallState::{Answered, Prepared, Sent, Unknown};
    let call = facts.call.map(|c| c.state);
    match facts.state {
        State::New => match (facts.stopped(), facts.call) {
            (Some(seen), _) => Step::Conclude(seen),
            (None, None) => Step::Write(Op::Create),
            // No money moved: another key may be used at once.
            (None, Some(c)) if c.is_spent() => Step::Write(Op::Create),
            (None, Some(_)) => Step::Send,
        },
        State::Ready => facts.stopped().map_or(Step::Write(Op::Confirm), Step::Conclude),
        State::Confirming => match call {
            // Told once already, perhaps: about to be told again.
            Some(Prepared) if facts.reader_has_to_stop() && facts.call.is_some_and(|c| c.sends > 0) => Step::StopReader,
            Some(Prepared) => facts.stopped().map_or(Step::Send, Step::Conclude),
            _ => Step::Conclude(Seen::Doubt),
        },
        State::ActionRequired | State::AuthUnknown if facts.reader_has_to_stop() => Step::StopReader,
        State::ActionRequired if facts.reader.is_some() => Step::Look,
        State::ActionRequired => facts.stopped().map_or(Step::Look, Step::Conclude),
        State::AuthUnknown | State::CaptureUnknown | State::VoidUnknown => Step::Look,
        State::Authorised => Step::Decide,
        State::CapturePending | State::VoidPending => match call {
            None => Step::Write(facts.state.op()),
            Some(Prepared) => Step::Send,
            Some(Sent | Unknown | Answered) => Step::Conclude(Seen::Doubt),
        },
        State::RefundPending => super::refund::plan(facts),
        State::RefundAccepted => Step::LookForRefunds,
        _ if facts.stray_refund => super::refund::plan(facts),
        // Decided. What the provider still has of it is tidied up; late news make it look once more.
        State::Declined | State::CaptureFailed if facts.has_intent => match facts.call {
            None => Step::Write(Op::Cancel),
            Some(c) if c.state == Prepared => Step::Send,
            // Asked under a key that will never say anything else: what it has is looked at, then another key is used.
            Some(c) if c.state == Answered || c.is_spent() => Step::Look,
            Some(_) => Step::Send,
        },
        // Nothing is there any more, as far as we know. If there is, the look has written a cancellation down.
        State::Voided if facts.has_intent && call == Some(Prepared) => Step::Send,
        State::Voided if facts.has_intent => Step::Look,
        State::Declined | State::Voided | State::CaptureFailed => Step::Rest,
        State::Captured | State::Refunded | State::RefundFailed => Step::Rest,
    }
}
