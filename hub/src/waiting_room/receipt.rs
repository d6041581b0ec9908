//! The place-ticket: a signed receipt of an entry, which its owner can show to anybody.
//!
//! It is no authority: places belong to accounts. It proves that this house took this entry, at this number and time,
//! with the key that the tree's leaf is made of, and which commitment was public by then: whoever puts another one in
//! its place later has signed both.

use chrono::{DateTime, Utc};

use super::draw::Hash;
use crate::keys::{self, Keys, Kind, OpenError};

pub const PLACE: Kind = Kind { domain: "fullhouse place v2", body_bytes: 8 + 8 + 16 + 8 + 4 + 32 };
/// Without the commitment. No more are made; those that there are stay readable.
const PLACE_V1: Kind = Kind { domain: "fullhouse place v1", body_bytes: 8 + 8 + 16 + 8 };

/// What a draw had committed to when somebody joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    pub draw_no: i32,
    pub commitment: Hash,
}

/// What a place-ticket says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub event_id: i64,
    pub number: i64,
    pub entry_key: [u8; 16],
    pub joined_at_ms: i64,
    /// `None`: a ticket of the first version.
    pub committed: Option<Committed>,
}

impl Receipt {
    pub fn new(
        event_id: i64,
        number: i64,
        entry_key: [u8; 16],
        joined_at: DateTime<Utc>,
        committed: Committed,
    ) -> Self {
        Self { event_id, number, entry_key, joined_at_ms: joined_at.timestamp_millis(), committed: Some(committed) }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PLACE.body_bytes);
        bytes.extend_from_slice(&self.event_id.to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.entry_key);
        bytes.extend_from_slice(&self.joined_at_ms.to_be_bytes());
        if let Some(Committed { draw_no, commitment }) = &self.committed {
            bytes.extend_from_slice(&draw_no.to_be_bytes());
            bytes.extend_from_slice(commitment);
        }
        bytes
    }

    fn of(body: &[u8]) -> Self {
        let number = |at: usize| body[at..at + 8].iter().fold(0u64, |n, b| n << 8 | u64::from(*b)) as i64;
        let mut entry_key = [0; 16];
        entry_key.copy_from_slice(&body[16..32]);
        let committed = body.get(40..).and_then(|rest| rest.split_first_chunk()).and_then(|(no, commitment)| {
            Some(Committed { draw_no: i32::from_be_bytes(*no), commitment: commitment.try_into().ok()? })
        });
        Self { event_id: number(0), number: number(8), entry_key, joined_at_ms: number(32), committed }
    }

    /// The same entry and key give the same ticket, so it need not be stored.
    pub async fn ticket(&self, keys: &Keys) -> sqlx::Result<String> {
        keys.seal(PLACE, &self.bytes()).await
    }

    pub async fn read(keys: &Keys, ticket: &str) -> Result<Self, OpenError> {
        let body = match keys.open(PLACE, ticket).await {
            Err(OpenError::NotOne) => keys.open(PLACE_V1, ticket).await,
            other => other,
        };
        Ok(Self::of(&body?))
    }

    /// What a ticket says, whoever has signed it. Its number and key are proved by the leaf that they make.
    pub fn claimed(ticket: &str) -> Option<Self> {
        let body = keys::claimed(PLACE, ticket).or_else(|| keys::claimed(PLACE_V1, ticket))?;
        Some(Self::of(&body))
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    #[test]
    fn a_ticket_of_either_version_says_what_it_was_made_from() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let committed = Committed { draw_no: 3, commitment: [9; 32] };
        let new = Receipt::new(5, 8, [1; 16], DateTime::UNIX_EPOCH, committed);
        assert_eq!(Receipt::claimed(&keys::seal(PLACE, 1, &key, &new.bytes())), Some(new.clone()));
        let old = Receipt { committed: None, ..new };
        assert_eq!(Receipt::claimed(&keys::seal(PLACE_V1, 1, &key, &old.bytes())), Some(old));
        assert_eq!(Receipt::claimed("AQAB"), None);
    }
}
