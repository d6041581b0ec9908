//! The provider as the model has it: an intent an attempt, and what is stored under its keys.

use fullhouse::payment::provider::{IntentStatus, Op};

/// Of an intent; `None`: it was never created, or nobody of ours knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    None,
    NoCard,
    Unconfirmed,
    Challenge,
    Processing,
    Reserved,
    Taken,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Intent {
    pub status: Status,
    pub wrong_amount: bool,
    pub error: bool,
    /// The buyer met the challenge.
    pub authenticated: bool,
    pub refund: Option<Refund>,
    /// The number of the key that made it.
    pub refund_n: u8,
    /// How many refunds were made.
    pub refunds: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refund {
    Pending,
    Done,
    Failed,
}

/// What the wire shows of an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shown {
    pub status: Status,
    pub wrong_amount: bool,
    pub error: bool,
}

impl Shown {
    pub fn wire(self) -> IntentStatus {
        match self.status {
            Status::None => IntentStatus::Other(String::new()),
            Status::NoCard => IntentStatus::RequiresPaymentMethod,
            Status::Unconfirmed => IntentStatus::RequiresConfirmation,
            Status::Challenge => IntentStatus::RequiresAction,
            Status::Processing => IntentStatus::Processing,
            Status::Reserved => IntentStatus::RequiresCapture,
            Status::Taken => IntentStatus::Succeeded,
            Status::Cancelled => IntentStatus::Canceled,
        }
    }
}

/// A first answer, kept under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    Intent(Shown),
    Refund(Refund),
    Declined,
    /// 400
    Refused,
    /// 400, and it says that what was reserved is gone for good.
    Gone,
    /// 500
    Broken,
}

const STATUSES: [Status; 8] = [
    Status::None,
    Status::NoCard,
    Status::Unconfirmed,
    Status::Challenge,
    Status::Processing,
    Status::Reserved,
    Status::Taken,
    Status::Cancelled,
];
const REFUNDS: [Refund; 3] = [Refund::Pending, Refund::Done, Refund::Failed];

impl Answer {
    /// Never 0.
    pub fn to_byte(self) -> u8 {
        match self {
            Answer::Declined => 1,
            Answer::Refused => 2,
            Answer::Broken => 3,
            Answer::Gone => 15,
            Answer::Refund(refund) => 4 + refund as u8,
            Answer::Intent(i) => 16 + (i.status as u8) * 4 + u8::from(i.wrong_amount) * 2 + u8::from(i.error),
        }
    }

    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => return None,
            1 => Answer::Declined,
            2 => Answer::Refused,
            3 => Answer::Broken,
            15 => Answer::Gone,
            4..16 => Answer::Refund(REFUNDS[usize::from(byte - 4)]),
            _ => {
                let (status, rest) = (STATUSES[usize::from((byte - 16) / 4)], (byte - 16) % 4);
                Answer::Intent(Shown { status, wrong_amount: rest & 2 != 0, error: rest & 1 != 0 })
            }
        })
    }
}

/// How a request fares that is executed for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// As it should; a confirmation authorises, a refund succeeds.
    Well,
    Decline,
    Challenge,
    Processing,
    WrongAmount,
    RefundPending,
    RefundFails,
    /// 409, 429, 503: nothing is done or kept.
    Busy,
    /// 500, nothing done or kept.
    BrokenBefore,
    /// 500, nothing done, and kept.
    BrokenStored,
    /// 500, done, and kept.
    BrokenAfter,
    /// 400, nothing done or kept.
    RefusedBefore,
    /// 400, nothing done, and kept.
    RefusedStored,
    /// The same, and it says that there is nothing to be taken any more, which is not true.
    SaidGone,
    /// 401, nothing done or kept.
    NotServed,
}

impl Fate {
    /// It may happen for ever, or spends what the scope allows of failures.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Fate::BrokenBefore
                | Fate::BrokenStored
                | Fate::BrokenAfter
                | Fate::RefusedBefore
                | Fate::RefusedStored
                | Fate::SaidGone
        )
    }

    pub fn is_fair(self) -> bool {
        !self.is_failure() && !matches!(self, Fate::Busy | Fate::NotServed | Fate::WrongAmount | Fate::RefundFails)
    }
}

impl Intent {
    pub const NONE: Intent = Intent {
        status: Status::None,
        wrong_amount: false,
        error: false,
        authenticated: false,
        refund: None,
        refund_n: 0,
        refunds: 0,
    };

    pub fn show(&self) -> Shown {
        Shown { status: self.status, wrong_amount: self.wrong_amount, error: self.error }
    }

    /// Money of the buyer's that is with us and not on its way back.
    pub fn keeps_money(&self) -> bool {
        self.status == Status::Taken && !matches!(self.refund, Some(Refund::Pending | Refund::Done))
    }

    pub fn fates(&self, op: Op) -> &'static [Fate] {
        match op {
            Op::Confirm if matches!(self.status, Status::Unconfirmed | Status::NoCard) => {
                if self.authenticated {
                    &[Fate::Well, Fate::Decline, Fate::Processing, Fate::WrongAmount]
                } else {
                    &[Fate::Well, Fate::Decline, Fate::Challenge, Fate::Processing, Fate::WrongAmount]
                }
            }
            Op::Refund => &[Fate::Well, Fate::RefundPending, Fate::RefundFails],
            _ => &[Fate::Well],
        }
    }

    /// Does what is asked, for the first time under its key. None: nothing is kept under it.
    pub fn execute(&mut self, op: Op, fate: Fate) -> Option<Answer> {
        match fate {
            Fate::BrokenStored => return Some(Answer::Broken),
            Fate::RefusedStored => return Some(Answer::Refused),
            Fate::SaidGone => return Some(Answer::Gone),
            Fate::NotServed | Fate::Busy | Fate::BrokenBefore | Fate::RefusedBefore => return None,
            _ => {}
        }
        let answer = match op {
            Op::Create => {
                // Under another key it is another intent, as unconfirmed as the first: no need to tell them apart.
                if self.status == Status::None {
                    self.status = Status::Unconfirmed;
                }
                Answer::Intent(Shown { status: Status::Unconfirmed, wrong_amount: false, error: false })
            }
            Op::Confirm if matches!(self.status, Status::Unconfirmed | Status::NoCard) => {
                self.error = false;
                match fate {
                    Fate::Decline => (self.status, self.error) = (Status::NoCard, true),
                    Fate::Challenge => self.status = Status::Challenge,
                    Fate::Processing => self.status = Status::Processing,
                    Fate::WrongAmount => (self.status, self.wrong_amount) = (Status::Reserved, true),
                    _ => self.status = Status::Reserved,
                }
                if fate == Fate::Decline { Answer::Declined } else { Answer::Intent(self.show()) }
            }
            Op::Capture if self.status == Status::Reserved => {
                self.status = Status::Taken;
                Answer::Intent(self.show())
            }
            Op::Cancel if !matches!(self.status, Status::Taken | Status::Cancelled | Status::Processing) => {
                self.status = Status::Cancelled;
                Answer::Intent(self.show())
            }
            Op::Refund if self.status == Status::Taken => {
                let refund = match fate {
                    Fate::RefundPending => Refund::Pending,
                    Fate::RefundFails => Refund::Failed,
                    _ => Refund::Done,
                };
                // One that failed has left the money where it was. (Ours is one of several that together could be less.)
                self.refunds = if self.refund.is_some_and(|r| r != Refund::Failed) { 2 } else { 1 };
                self.refund = Some(refund);
                Answer::Refund(refund)
            }
            _ => Answer::Refused,
        };
        Some(if fate == Fate::BrokenAfter { Answer::Broken } else { answer })
    }
}
