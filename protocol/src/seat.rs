//! A seat's status: the same two bits in the database, in a frame and in a snapshot.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a seat of an event is at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Status {
    /// Anybody who may buy can take it.
    #[default]
    Available = 0,
    /// Somebody's, until `held_until` by the database's clock.
    Held = 1,
    /// An order's.
    Sold = 2,
    /// Not for sale: a house seat, or retired from the plan.
    Blocked = 3,
}

impl Status {
    /// The status that the two lowest bits of `bits` say.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0 => Self::Available,
            1 => Self::Held,
            2 => Self::Sold,
            _ => Self::Blocked,
        }
    }

    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// There is no status of this number.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0} is not the number of a seat's status")]
pub struct UnknownStatus(pub i16);

impl TryFrom<i16> for Status {
    type Error = UnknownStatus;

    fn try_from(number: i16) -> Result<Self, UnknownStatus> {
        match number {
            0..=3 => Ok(Self::from_bits(number as u8)),
            _ => Err(UnknownStatus(number)),
        }
    }
}

impl From<Status> for i16 {
    fn from(status: Status) -> i16 {
        status.bits().into()
    }
}

/// What a seat is besides a seat, for the performance that its ticket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeatTrait {
    /// A place for a wheelchair.
    Accessible,
    /// Of whoever comes with it.
    Companion,
    RestrictedView,
}

impl SeatTrait {
    /// As it is written in JSON, and in catalogues of texts.
    pub fn code(self) -> &'static str {
        match self {
            Self::Accessible => "accessible",
            Self::Companion => "companion",
            Self::RestrictedView => "restricted_view",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_its_number() {
        for number in 0..4 {
            let status = Status::try_from(number).unwrap();
            assert_eq!((i16::from(status), Status::from_bits(number as u8)), (number, status));
        }
        assert_eq!(Status::try_from(4), Err(UnknownStatus(4)));
        assert_eq!(Status::try_from(-1), Err(UnknownStatus(-1)));
    }
}
