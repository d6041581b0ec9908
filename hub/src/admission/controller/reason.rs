//! Why the pace is what it is: a closed list with figures, and the words in which an operator reads it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Signal, Strain};

/// As it is written into the log (`code` and the figures), and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// It fell.
    TooMuch(Strain),
    /// It is still too much, and the last fall has not had its effect, or it has just begun.
    Settling(Strain),
    /// It is too much, and the operator allows no less.
    AtLeast(Strain),
    /// Near to too much: nothing moves.
    Near(Strain),
    /// It rose.
    Calm {
        for_s: u32,
    },
    /// All is well, and not for long enough.
    Waiting {
        calm_s: u32,
    },
    /// All is well, and the rate stays below one that was too much.
    BelowKnee {
        rate: u32,
        again_in_s: u32,
    },
    Unused {
        rate: u32,
        let_in: u32,
    },
    /// All is well, and the operator allows no more.
    AtMost {
        rate: u32,
    },
    /// No hub has measured anything of late: it stays as it is.
    NothingMeasured,
    GateClosed,
    GateOpened {
        rate: u32,
    },
    Paused,
    Resumed {
        rate: u32,
    },
    Fixed {
        rate: u32,
    },
    /// The operator changed what is allowed.
    Bounds {
        rate_min: u32,
        rate_max: u32,
    },
}

impl Reason {
    /// As it is written into the log; the figures are in the JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::TooMuch(_) => "too_much",
            Reason::Settling(_) => "settling",
            Reason::AtLeast(_) => "at_least",
            Reason::Near(_) => "near",
            Reason::Calm { .. } => "calm",
            Reason::Waiting { .. } => "waiting",
            Reason::BelowKnee { .. } => "below_knee",
            Reason::Unused { .. } => "unused",
            Reason::AtMost { .. } => "at_most",
            Reason::NothingMeasured => "nothing_measured",
            Reason::GateClosed => "gate_closed",
            Reason::GateOpened { .. } => "gate_opened",
            Reason::Paused => "paused",
            Reason::Resumed { .. } => "resumed",
            Reason::Fixed { .. } => "fixed",
            Reason::Bounds { .. } => "bounds",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TooMuch(strain) => write!(f, "lowered: {strain}"),
            Reason::Settling(strain) => write!(f, "waiting for the last change to show: {strain}"),
            Reason::AtLeast(strain) => write!(f, "as low as you allow: {strain}"),
            Reason::Near(strain) => write!(f, "kept: {strain}"),
            Reason::Calm { for_s } => write!(f, "raised: all has been well for {for_s} s"),
            Reason::Waiting { calm_s } => write!(f, "kept: all has been well for {calm_s} s only"),
            Reason::BelowKnee { rate, again_in_s } => {
                write!(f, "kept below {rate} a minute, which was too much; more is tried in {again_in_s} s")
            }
            Reason::Unused { rate, let_in } => {
                write!(f, "kept: {let_in} were called during the last minute, of {rate} who could")
            }
            Reason::AtMost { rate } => write!(f, "all is well, and {rate} a minute is as much as you allow"),
            Reason::NothingMeasured => f.write_str("kept: no hub has said for ten seconds how it is doing"),
            Reason::GateClosed => f.write_str("stopped: no payments can be taken now"),
            Reason::GateOpened { rate } => {
                write!(f, "payments can be taken again: from {rate} a minute, and up slowly")
            }
            Reason::Paused => f.write_str("stopped: paused by an operator"),
            Reason::Resumed { rate } => write!(f, "no longer paused: from {rate} a minute, and up slowly"),
            Reason::Fixed { rate } => write!(f, "{rate} a minute, as an operator said"),
            Reason::Bounds { rate_min, rate_max } => {
                write!(f, "an operator allows {rate_min} to {rate_max} a minute")
            }
        }
    }
}

impl fmt::Display for Strain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Strain { signal, value, ceiling } = self;
        match signal {
            Signal::Hold => write!(f, "holding takes {value} ms (at most {ceiling})"),
            Signal::LockWait => write!(f, "holds wait {value} ms for their turn (at most {ceiling})"),
            Signal::Write => write!(f, "a small write takes {value} ms (at most {ceiling})"),
            Signal::Pool => write!(f, "{value} % of the connections are in use (at most {ceiling} %)"),
            Signal::Errors => write!(f, "{value} % of all answers are faults (at most {ceiling} %)"),
            Signal::PaymentsLate => write!(f, "payments are late by {value} s (at most {ceiling})"),
            Signal::PaymentsInDoubt => write!(f, "{value} payments are in doubt (at most {ceiling})"),
        }
    }
}
