//! What the house signs with, and the short tokens that it signs: place-tickets, passes, checked addresses.
//!
//! Invariants
//! - A token of one kind is never taken for another: its kind is part of what is signed.
//! - New tokens use the newest key; every public half stays good, so that a rotation ends nothing.
//! - A signature says only that a token is ours. Whether it is still good, its row says.

use std::{
    sync::{Arc, RwLock},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature, Signer, SigningKey, VerifyingKey};
use rand::RngCore;
use sqlx::{PgConnection, PgPool};

use crate::clock;

/// The key that is signed with; made at first use.
pub async fn signing_key(db: &mut PgConnection, now: DateTime<Utc>) -> sqlx::Result<(i16, SigningKey)> {
    loop {
        let found = sqlx::query!("select id, secret from ticket_key where retired_at is null order by id desc limit 1")
            .fetch_optional(&mut *db)
            .await?;
        if let Some(row) = found {
            let secret: [u8; 32] =
                row.secret.try_into().map_err(|_| sqlx::Error::Protocol("a ticket key is not 32 bytes".into()))?;
            return Ok((row.id, SigningKey::from_bytes(&secret)));
        }
        let mut secret = [0; 32];
        rand::rng().fill_bytes(&mut secret);
        let key = SigningKey::from_bytes(&secret);
        // Two transactions may come here at once; the second waits for the first, and then reads its key.
        sqlx::query!(
            "insert into ticket_key (id, secret, public, created_at)
             select coalesce(max(id), 0) + 1, $1, $2, $3 from ticket_key
             on conflict do nothing",
            &secret[..],
            &key.verifying_key().to_bytes()[..],
            now,
        )
        .execute(&mut *db)
        .await?;
    }
}

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 1 + 2;
/// A rotation is noticed after this; until then the former key signs on.
const SIGNING_AGE_MAX: Duration = Duration::from_secs(60);
/// Keys that nobody has are looked up no more often than this.
const LOOKED_UP_MIN: Duration = Duration::from_secs(1);

/// A kind of token.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Stands before what is signed.
    pub domain: &'static str,
    pub body_bytes: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("this is no token of this kind")]
    NotOne,
    #[error("the signature does not match")]
    Forged,
    #[error("the keys could not be read")]
    Database(#[source] sqlx::Error),
}

/// Signs. Layout before base64url: version 1, key id u16, body, Ed25519 over domain and all of that.
pub fn seal(kind: Kind, key_id: u16, key: &SigningKey, body: &[u8]) -> String {
    debug_assert_eq!(body.len(), kind.body_bytes);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len() + SIGNATURE_LENGTH);
    bytes.push(VERSION);
    bytes.extend_from_slice(&key_id.to_be_bytes());
    bytes.extend_from_slice(body);
    let signature = key.sign(&signed(kind, &bytes));
    bytes.extend_from_slice(&signature.to_bytes());
    BASE64URL_NOPAD.encode(&bytes)
}

fn signed(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    [kind.domain.as_bytes(), b"\n", bytes].concat()
}

/// A token's parts, before anything is believed of them.
struct Parts {
    key_id: u16,
    claimed: Vec<u8>,
    signature: Signature,
}

fn parts(kind: Kind, text: &str) -> Option<Parts> {
    let length = HEAD_BYTES + kind.body_bytes + SIGNATURE_LENGTH;
    if text.len() != BASE64URL_NOPAD.encode_len(length) {
        return None;
    }
    let mut bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    let signature = Signature::from_slice(&bytes[length - SIGNATURE_LENGTH..]).ok()?;
    bytes.truncate(length - SIGNATURE_LENGTH);
    if bytes[0] != VERSION {
        return None;
    }
    Some(Parts { key_id: u16::from_be_bytes([bytes[1], bytes[2]]), claimed: bytes, signature })
}

/// What a token says, whoever has signed it: for whoever checks that in another way.
pub fn claimed(kind: Kind, text: &str) -> Option<Vec<u8>> {
    Some(parts(kind, text)?.claimed[HEAD_BYTES..].to_vec())
}

impl Parts {
    fn body(self, kind: Kind, key: &VerifyingKey) -> Result<Vec<u8>, OpenError> {
        key.verify_strict(&signed(kind, &self.claimed), &self.signature).map_err(|_| OpenError::Forged)?;
        Ok(self.claimed[HEAD_BYTES..].to_vec())
    }
}

/// The keys as this process remembers them. Cheap to clone.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    pool: PgPool,
    signing: RwLock<Option<(Instant, u16, SigningKey)>>,
    public: DashMap<u16, VerifyingKey>,
    looked_up: RwLock<Option<Instant>>,
}

impl Keys {
    pub fn new(pool: PgPool) -> Self {
        Self(Arc::new(Inner { pool, signing: RwLock::new(None), public: DashMap::new(), looked_up: RwLock::new(None) }))
    }

    pub async fn seal(&self, kind: Kind, body: &[u8]) -> sqlx::Result<String> {
        let (key_id, key) = self.signing().await?;
        Ok(seal(kind, key_id, &key, body))
    }

    async fn signing(&self) -> sqlx::Result<(u16, SigningKey)> {
        let known = self.0.signing.read().expect("nobody panics while holding it").clone();
        if let Some((read, id, key)) = known
            && read.elapsed() < SIGNING_AGE_MAX
        {
            return Ok((id, key));
        }
        let mut db = self.0.pool.acquire().await?;
        let now = clock::now(&mut db).await?;
        let (id, key) = signing_key(&mut db, now).await?;
        self.0.public.insert(id as u16, key.verifying_key());
        *self.0.signing.write().expect("nobody panics while holding it") =
            Some((Instant::now(), id as u16, key.clone()));
        Ok((id as u16, key))
    }

    /// The body of a token, if we have signed it.
    pub async fn open(&self, kind: Kind, text: &str) -> Result<Vec<u8>, OpenError> {
        let parts = parts(kind, text).ok_or(OpenError::NotOne)?;
        let key = self.public(parts.key_id).await.map_err(OpenError::Database)?.ok_or(OpenError::Forged)?;
        parts.body(kind, &key)
    }

    async fn public(&self, id: u16) -> sqlx::Result<Option<VerifyingKey>> {
        if let Some(key) = self.0.public.get(&id) {
            return Ok(Some(*key));
        }
        {
            let mut looked_up = self.0.looked_up.write().expect("nobody panics while holding it");
            if looked_up.is_some_and(|at| at.elapsed() < LOOKED_UP_MIN) {
                return Ok(None);
            }
            *looked_up = Some(Instant::now());
        }
        for row in sqlx::query!("select id, public from ticket_key").fetch_all(&self.0.pool).await? {
            if let Ok(bytes) = <[u8; 32]>::try_from(row.public)
                && let Ok(key) = VerifyingKey::from_bytes(&bytes)
            {
                self.0.public.insert(row.id as u16, key);
            }
        }
        Ok(self.0.public.get(&id).map(|key| *key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Kind = Kind { domain: "one", body_bytes: 5 };
    const OTHER: Kind = Kind { domain: "other", body_bytes: 5 };

    fn open(kind: Kind, text: &str, key: &SigningKey) -> Result<Vec<u8>, OpenError> {
        parts(kind, text).ok_or(OpenError::NotOne)?.body(kind, &key.verifying_key())
    }

    #[test]
    fn what_was_signed_is_read_back_and_nothing_else() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let token = seal(ONE, 3, &key, b"hello");
        assert_eq!(open(ONE, &token, &key).unwrap(), b"hello");
        assert!(matches!(open(OTHER, &token, &key), Err(OpenError::Forged)), "a token of another kind");
        assert!(matches!(open(ONE, &token, &SigningKey::from_bytes(&[8; 32])), Err(OpenError::Forged)));
        for no in ["", "x", &token[1..], &format!("{token}A"), &token.replace(&token[..1], "!")] {
            assert!(matches!(open(ONE, no, &key), Err(OpenError::NotOne)), "{no}");
        }
    }

    #[test]
    fn a_changed_letter_is_noticed() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let token = seal(ONE, 3, &key, b"hello");
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(open(ONE, std::str::from_utf8(&changed).unwrap(), &key).is_err(), "letter {at}");
        }
    }
}
