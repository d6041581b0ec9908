//! What a kiosk is told, and what it wants done.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Which question of which visit an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ref {
    pub visit: u64,
    pub turn: u32,
}

/// A customer's address: it is in no log.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Mail(pub String);

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mail(…)")
    }
}

/// Why nothing was charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unpaid {
    Declined,
    /// The customer, the clock or the hub's last minute.
    Stopped,
    /// The reader or the provider could not be reached, and never will have charged it.
    Reader,
}

/// What staff are called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// Nobody knows whether it was paid. Look at the order before anything is given or taken.
    PaymentInDoubt,
    /// Paid, and not all tickets came out. Look at the ledger of prints.
    Unprinted,
    /// An answer said "paid" after its visit was over.
    PaidUnattended,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The glass was touched, anywhere.
    Touch,
    /// "Touch to begin."
    Begin,
    /// A language, by its place in the profile's list; on every screen.
    Speak(u8),
    Choose(super::Way),
    /// They want the seats that they chose; the shell knows which.
    Take,
    MailGiven(Mail),
    Pay,
    Cancel,
    Held {
        at: Ref,
        hold: Uuid,
    },
    NotHeld {
        at: Ref,
    },
    /// The hub's time for the seats is over.
    HoldOver {
        at: Ref,
    },
    /// The reader waits for a card, for this order.
    ReaderReady {
        at: Ref,
        order: Uuid,
    },
    /// The reader has read a card.
    CardSeen {
        at: Ref,
    },
    /// The order is sold, its tickets are valid.
    Paid {
        at: Ref,
        order: Uuid,
    },
    /// For certain, and for good.
    NotPaid {
        at: Ref,
        why: Unpaid,
    },
    PrintBegan {
        at: Ref,
    },
    /// Every ticket of the order, confirmed by the printer.
    Printed {
        at: Ref,
    },
    /// One at least did not come out, or may not have.
    NotPrinted {
        at: Ref,
    },
    Mailed {
        at: Ref,
    },
    /// The wait with this number is over.
    TimeUp {
        timer: u64,
    },
    /// Whether the hub answers.
    Hub(bool),
    /// Whether the printer would print: asked before each visit, and told when it changes.
    Printer(bool),
    /// A member of staff gave their PIN.
    StaffPin,
}

impl Event {
    /// What it answers to.
    pub(crate) fn at(&self) -> Option<Ref> {
        match self {
            Event::Held { at, .. } | Event::NotHeld { at } | Event::HoldOver { at } => Some(*at),
            Event::ReaderReady { at, .. } | Event::CardSeen { at } | Event::Paid { at, .. } => Some(*at),
            Event::NotPaid { at, .. } | Event::PrintBegan { at } | Event::Printed { at } => Some(*at),
            Event::NotPrinted { at } | Event::Mailed { at } => Some(*at),
            _ => None,
        }
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Answers [`Event::Held`] or [`Event::NotHeld`].
    AskHold(Ref),
    /// Until the hub has it; a refusal means that it is over.
    ReleaseHold(Uuid),
    /// A card sale of this hold. Answers [`Event::ReaderReady`], then what becomes of it.
    StartReader { at: Ref, hold: Uuid },
    /// Answers [`Event::NotPaid`], or [`Event::Paid`] if the card was faster and is kept.
    StopReader { at: Ref, keep_if_paid: bool },
    /// Answers [`Event::Paid`] or [`Event::NotPaid`], if the hub knows.
    AskPayment(Ref),
    /// One job a ticket. Answers [`Event::PrintBegan`], then [`Event::Printed`] or [`Event::NotPrinted`].
    Print { at: Ref, order: Uuid },
    /// Answers [`Event::Mailed`].
    Mail { at: Ref, order: Uuid, to: Mail },
    /// Until the hub has it: it is what stands between money and nobody.
    CallStaff { case: Case, order: Option<Uuid>, hold: Option<Uuid> },
    /// Nothing of the customer stays on the glass or in the page.
    Wipe,
}
