//! The place-ticket: a signed receipt of an entry, which its owner can show to anybody.
//!
//! It is no authority: places belong to accounts. It proves that this house took this entry, at this
//! number and time, with the key that the tree's leaf is made of.

use chrono::{DateTime, Utc};

use crate::keys::{Keys, Kind, OpenError};

pub const PLACE: Kind = Kind { domain: "fullhouse place v1", body_bytes: 8 + 8 + 16 + 8 };

/// What a place-ticket says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub event_id: i64,
    pub number: i64,
    pub entry_key: [u8; 16],
    pub joined_at_ms: i64,
}

impl Receipt {
    pub fn new(event_id: i64, number: i64, entry_key: [u8; 16], joined_at: DateTime<Utc>) -> Self {
        Self { event_id, number, entry_key, joined_at_ms: joined_at.timestamp_millis() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PLACE.body_bytes);
        bytes.extend_from_slice(&self.event_id.to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.entry_key);
        bytes.extend_from_slice(&self.joined_at_ms.to_be_bytes());
        bytes
    }

    /// The same entry and key give the same ticket, so it need not be stored.
    pub async fn ticket(&self, keys: &Keys) -> sqlx::Result<String> {
        keys.seal(PLACE, &self.bytes()).await
    }

    pub async fn read(keys: &Keys, ticket: &str) -> Result<Self, OpenError> {
        let body = keys.open(PLACE, ticket).await?;
        let number = |at: usize| body[at..at + 8].iter().fold(0u64, |n, b| n << 8 | u64::from(*b)) as i64;
        let mut entry_key = [0; 16];
        entry_key.copy_from_slice(&body[16..32]);
        Ok(Self { event_id: number(0), number: number(8), entry_key, joined_at_ms: number(32) })
    }
}
