//! The states of an attempt to pay, and what leads from one to another: a table, and pure functions over it.
//!
//! Invariants
//! - Forward only: an observation that the table does not name in a state changes nothing.
//! - Whatever is not certain goes to a state that asks; nothing is called failed because nobody answered.
//! - A capture is asked for in one state only, which only the confirmed sale leads to.

mod plan; // what is done next
mod judge; // what the provider's word means
mod refund; // money that goes back

pub use self::{
    judge::{Key, judge, patience},
    plan::{CallFacts, CallState, Facts, KEY_LIFE, QUIET, ReaderFacts, Step, plan},
    refund::{AfterDecision, Missing, RefundState, STRAY_TRIES_MAX, Said, Strays, after_decision, counts, missing},
};
use super::provider::Op;

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

    /// Decided, and whatever the provider still has of it is let go, or given back.
    pub fn is_to_be_tidied(self) -> bool {
        matches!(self, State::Declined | State::Voided | State::CaptureFailed)
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
    /// The provider would not hear us at all (our key is wrong): nothing was done, and it says nothing of the card.
    NotServed,
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
        Seen::NotServed,
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
    (State::New, Seen::NotServed, State::Voided),

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
    (State::Confirming, Seen::NotServed, State::VoidPending), // an earlier sending of it may have been heard

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

#[cfg(test)]
mod tests;
