//! The states of an attempt to pay, and what leads from one to another: a table, and pure functions over it.
//!
//! Invariants
//! - Forward only: an observation that the table does not name in a state changes nothing.
//! - Whatever is not certain goes to a state that asks; nothing is called failed because nobody answered.
//! - A capture is asked for in one state only, which only the confirmed sale leads to.

use chrono::{DateTime, TimeDelta, Utc};

use super::provider::{IntentStatus, Op};

macro_rules! states {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum State { $($(#[$doc])* $variant),* }

        impl State {
            pub const ALL: &[State] = &[$(State::$variant),*];

            /// As it is stored and shown.
            pub fn name(self) -> &'static str {
                match self { $(State::$variant => $name),* }
            }
        }
    };
}

states! {
    /// Written down; the provider knows nothing of it, as far as we know.
    New "new";
    /// The intent exists, unconfirmed: no money can move.
    Ready "ready";
    /// A confirmation is written down, and perhaps on its way.
    Confirming "confirming";
    /// The buyer has to meet their bank's challenge.
    ActionRequired "action_required";
    /// A confirmation may have worked. No new one begins before that is known.
    AuthUnknown "auth_unknown";
    Declined "declined";
    /// The money is reserved; the seats are not sold yet.
    Authorised "authorised";
    /// Sold: the money is to be taken.
    CapturePending "capture_pending";
    CaptureUnknown "capture_unknown";
    Captured "captured";
    /// The seats were sold and the money can't be had: the order is due, people are alerted.
    CaptureFailed "capture_failed";
    /// What is reserved, or could still be, is to be let go.
    VoidPending "void_pending";
    VoidUnknown "void_unknown";
    Voided "voided";
    /// Money was taken for an order that was not sold.
    RefundPending "refund_pending";
    RefundAccepted "refund_accepted";
    Refunded "refunded";
    RefundFailed "refund_failed";
}

impl State {
    pub fn from_name(name: &str) -> Option<State> {
        State::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// Nothing follows any more.
    pub fn is_final(self) -> bool {
        matches!(self, State::Declined | State::Voided | State::Captured | State::Refunded)
    }

    /// Another attempt for the order may begin: what `attempt_one_live` says.
    pub fn is_decided(self) -> bool {
        self.is_final() || self == State::CaptureFailed
    }

    /// Which kind of call belongs to the state, and to its doubts.
    pub fn op(self) -> Op {
        match self {
            State::New => Op::Create,
            State::Ready | State::Confirming | State::ActionRequired | State::AuthUnknown | State::Authorised => {
                Op::Confirm
            }
            State::CapturePending | State::CaptureUnknown | State::Captured => Op::Capture,
            State::Declined | State::CaptureFailed | State::VoidPending | State::VoidUnknown | State::Voided => {
                Op::Cancel
            }
            State::RefundPending | State::RefundAccepted | State::Refunded | State::RefundFailed => Op::Refund,
        }
    }
}

/// What was learnt, or decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    Created,
    /// A confirmation was written down: a new one, or the same once more.
    Confirming,
    NeedsAction,
    Declined,
    Authorised,
    /// Authorised, but not for the order's amount or currency.
    WrongAmount,
    Captured,
    Cancelled,
    /// It may have happened or not.
    Doubt,
    /// Asked, and it had not happened: once more.
    Again,
    /// The provider will not do it, and has not.
    Refused,
    /// Too little of the hold is left.
    OutOfTime,
    /// The buyer wants no more.
    Abandoned,
    /// The one transaction: the seats are this order's now.
    Sold,
    NotSold,
    RefundAccepted,
    RefundDone,
    RefundFailed,
}

impl Seen {
    pub const ALL: &[Seen] = &[
        Seen::Created,
        Seen::Confirming,
        Seen::NeedsAction,
        Seen::Declined,
        Seen::Authorised,
        Seen::WrongAmount,
        Seen::Captured,
        Seen::Cancelled,
        Seen::Doubt,
        Seen::Again,
        Seen::Refused,
        Seen::OutOfTime,
        Seen::Abandoned,
        Seen::Sold,
        Seen::NotSold,
        Seen::RefundAccepted,
        Seen::RefundDone,
        Seen::RefundFailed,
    ];
}

/// The whole machine.
#[rustfmt::skip]
pub const TRANSITIONS: &[(State, Seen, State)] = &[
    (State::New, Seen::Created, State::Ready),
    (State::New, Seen::Refused, State::Declined),
    // No confirmation was ever written: an intent that may exist moves no money.
    (State::New, Seen::OutOfTime, State::Voided),
    (State::New, Seen::Abandoned, State::Voided),

    (State::Ready, Seen::Confirming, State::Confirming),
    (State::Ready, Seen::OutOfTime, State::VoidPending),
    (State::Ready, Seen::Abandoned, State::VoidPending),

    (State::Confirming, Seen::Authorised, State::Authorised),
    (State::Confirming, Seen::NeedsAction, State::ActionRequired),
    (State::Confirming, Seen::Declined, State::Declined),
    (State::Confirming, Seen::Doubt, State::AuthUnknown),
    (State::Confirming, Seen::WrongAmount, State::VoidPending),
    (State::Confirming, Seen::Cancelled, State::Voided),
    (State::Confirming, Seen::Captured, State::RefundPending),
    (State::Confirming, Seen::OutOfTime, State::VoidPending), // written, never sent
    (State::Confirming, Seen::Abandoned, State::VoidPending),

    (State::ActionRequired, Seen::Confirming, State::Confirming),
    (State::ActionRequired, Seen::Authorised, State::Authorised),
    (State::ActionRequired, Seen::Declined, State::Declined),
    (State::ActionRequired, Seen::WrongAmount, State::VoidPending),
    (State::ActionRequired, Seen::Cancelled, State::Voided),
    (State::ActionRequired, Seen::Captured, State::RefundPending),
    (State::ActionRequired, Seen::OutOfTime, State::VoidPending),
    (State::ActionRequired, Seen::Abandoned, State::VoidPending),

    (State::AuthUnknown, Seen::Confirming, State::Confirming),
    (State::AuthUnknown, Seen::Authorised, State::Authorised),
    (State::AuthUnknown, Seen::NeedsAction, State::ActionRequired),
    (State::AuthUnknown, Seen::Declined, State::Declined),
    (State::AuthUnknown, Seen::WrongAmount, State::VoidPending),
    (State::AuthUnknown, Seen::Cancelled, State::Voided),
    (State::AuthUnknown, Seen::Captured, State::RefundPending),
    (State::AuthUnknown, Seen::OutOfTime, State::VoidPending),
    (State::AuthUnknown, Seen::Abandoned, State::VoidPending),
    (State::AuthUnknown, Seen::Refused, State::VoidPending),

    (State::Authorised, Seen::Sold, State::CapturePending),
    (State::Authorised, Seen::NotSold, State::VoidPending),
    (State::Authorised, Seen::WrongAmount, State::VoidPending),
    (State::Authorised, Seen::Abandoned, State::VoidPending),

    (State::CapturePending, Seen::Captured, State::Captured),
    (State::CapturePending, Seen::Doubt, State::CaptureUnknown),
    (State::CapturePending, Seen::Cancelled, State::CaptureFailed),
    (State::CaptureUnknown, Seen::Captured, State::Captured),
    (State::CaptureUnknown, Seen::Again, State::CapturePending),
    (State::CaptureUnknown, Seen::Cancelled, State::CaptureFailed),
    (State::CaptureUnknown, Seen::Refused, State::CaptureFailed),
    // A late notice still heals.
    (State::CaptureFailed, Seen::Captured, State::Captured),

    (State::VoidPending, Seen::Cancelled, State::Voided),
    (State::VoidPending, Seen::Captured, State::RefundPending),
    (State::VoidPending, Seen::Doubt, State::VoidUnknown),
    (State::VoidUnknown, Seen::Cancelled, State::Voided),
    (State::VoidUnknown, Seen::Captured, State::RefundPending),
    (State::VoidUnknown, Seen::Again, State::VoidPending),

    (State::RefundPending, Seen::RefundAccepted, State::RefundAccepted),
    (State::RefundPending, Seen::RefundDone, State::Refunded),
    (State::RefundPending, Seen::RefundFailed, State::RefundFailed),
    (State::RefundAccepted, Seen::RefundDone, State::Refunded),
    (State::RefundAccepted, Seen::RefundFailed, State::RefundFailed),
    // A person saw to it.
    (State::RefundFailed, Seen::RefundAccepted, State::RefundAccepted),
    (State::RefundFailed, Seen::RefundDone, State::Refunded),
];

/// Where an observation leads; None: it changes nothing.
pub fn next(state: State, seen: Seen) -> Option<State> {
    TRANSITIONS.iter().find(|(from, on, _)| *from == state && *on == seen).map(|(_, _, to)| *to)
}

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
    /// How often it was sent.
    pub sends: i32,
    pub created_at: DateTime<Utc>,
    pub sent_at: Option<DateTime<Utc>>,
}

impl CallFacts {
    /// A failure is kept under the key, and will be all that it ever answers. The provider says so, or says the same twice.
    fn is_spent(&self) -> bool {
        self.http.is_some_and(|s| s >= 500 && s != 503) && (self.replayed || self.sends >= 2)
    }

    fn was_refused(&self) -> bool {
        self.http.is_some_and(|s| (400..500).contains(&s) && s != 409 && s != 429)
    }

    fn is_quiet(&self, now: DateTime<Utc>) -> bool {
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
    fn stopped(&self) -> Option<Seen> {
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
        State::RefundPending => refund(facts),
        State::RefundAccepted => Step::LookForRefunds,
        _ if facts.stray_refund => refund(facts),
        // Decided. What the provider still has of it is tidied up; late news make it look once more.
        State::Declined | State::CaptureFailed if facts.has_intent => match facts.call {
            None => Step::Write(Op::Cancel),
            Some(c) if c.state == Prepared => Step::Send,
            // Asked under a key that will never say anything else: what it has is looked at, then another key is used.
            Some(c) if c.state == Answered || c.is_spent() => Step::Look,
            Some(_) => Step::Send,
        },
        State::Voided if facts.has_intent => Step::Look,
        State::Declined | State::Voided | State::CaptureFailed => Step::Rest,
        State::Captured | State::Refunded | State::RefundFailed => Step::Rest,
    }
}

fn refund(facts: &Facts) -> Step {
    match facts.call {
        _ if facts.refund_asked_for => Step::LookForRefunds,
        None => Step::Write(Op::Refund),
        // Also one that is prepared once more may have lain there for a day, and what was sent before have arrived.
        Some(c) if c.sends > 0 && facts.now - c.created_at >= KEY_LIFE => Step::LookForRefunds,
        Some(c) if c.state == CallState::Prepared => Step::Send,
        Some(c) if c.state == CallState::Answered || c.is_spent() => Step::LookForRefunds,
        Some(_) => Step::Send,
    }
}

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
        match facts.call {
            Some(c) if c.is_spent() && !c.is_quiet(facts.now) => (Seen::Doubt, Key::Same),
            Some(c) if c.is_spent() => (seen, Key::Next),
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

        (Op::Capture, S::RequiresCapture) if asked && refused => Seen::Refused,
        (Op::Capture, S::RequiresCapture) if asked => return again(Seen::Again),
        (Op::Capture, _) if asked => Seen::Refused,

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

#[cfg(test)]
mod tests;
