//! Passwords: argon2id, off the runtime, a bounded number at a time behind a bounded queue.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use argon2::{
    Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version, password_hash::phc::PasswordHash as Phc,
};
use tokio::sync::Semaphore;

/// 19 MiB, two passes, one lane: what OWASP recommends for argon2id.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("too many passwords are waiting to be hashed")]
    Busy,
    #[error("hashing a password")]
    Hash(#[source] argon2::password_hash::Error),
}

#[derive(Clone)]
pub struct Passwords(Arc<Inner>);

struct Inner {
    at_once: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    /// The hash of a password that nobody has: what an unknown address is verified against.
    nobody: String,
}

impl Passwords {
    pub fn new(at_once: usize, waiting_max: usize) -> Self {
        let nobody =
            hash(&hex(&rand::random::<[u8; 16]>())).expect("argon2 takes these constants and a short password");
        Self(Arc::new(Inner {
            at_once: Arc::new(Semaphore::new(at_once.max(1))),
            waiting: AtomicUsize::new(0),
            waiting_max,
            nobody,
        }))
    }

    /// The PHC string to store.
    pub async fn hash(&self, password: String) -> Result<String, PasswordError> {
        self.in_turn(move || hash(&password)).await?.map_err(PasswordError::Hash)
    }

    /// Whether the password matches. `None` (no such account) costs the same and is always false.
    pub async fn verify(&self, password: String, stored: Option<String>) -> Result<bool, PasswordError> {
        let known = stored.is_some();
        let stored = stored.unwrap_or_else(|| self.0.nobody.clone());
        let matches =
            self.in_turn(move || argon2().verify_password(password.as_bytes(), stored.as_str()).is_ok()).await?;
        Ok(matches && known)
    }

    async fn in_turn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, PasswordError> {
        let turn = match Arc::clone(&self.0.at_once).try_acquire_owned() {
            Ok(turn) => turn,
            Err(_) => {
                let _waiting = Waiting::join(&self.0).ok_or(PasswordError::Busy)?;
                Arc::clone(&self.0.at_once).acquire_owned().await.map_err(|_| PasswordError::Busy)?
            }
        };
        // The turn moves into the thread: a caller that hangs up does not let a further one start.
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        match done.await {
            Ok(answer) => Ok(answer),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

/// A place in the queue, given back when the waiting ends, also by a caller that hangs up.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(inner: &'a Inner) -> Option<Self> {
        inner
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < inner.waiting_max).then_some(n + 1))
            .ok()
            .map(|_| Self(&inner.waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the constants above are within argon2's bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash(password: &str) -> Result<String, argon2::password_hash::Error> {
    let phc: Phc = argon2().hash_password(password.as_bytes())?;
    Ok(phc.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_matches_itself_and_nobody_matches_nothing() {
        let passwords = Passwords::new(1, 4);
        let stored = passwords.hash("correct horse".into()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(passwords.verify("correct horse".into(), Some(stored.clone())).await.unwrap());
        assert!(!passwords.verify("wrong horse".into(), Some(stored)).await.unwrap());
        assert!(!passwords.verify("correct horse".into(), None).await.unwrap());
        assert!(!passwords.verify("x".into(), Some("not a hash".into())).await.unwrap());
    }

    #[tokio::test]
    async fn beyond_the_queue_is_busy_and_who_leaves_makes_room() {
        let passwords = Passwords::new(1, 1);
        let turn = Arc::clone(&passwords.0.at_once).acquire_owned().await.unwrap();
        let mut first = Box::pin(passwords.hash("first".into()));
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(matches!(passwords.hash("second".into()).await, Err(PasswordError::Busy)));
        drop(first);
        let mut third = Box::pin(passwords.hash("third".into()));
        assert!(futures_util::poll!(&mut third).is_pending());
        drop(turn);
        assert!(third.await.is_ok());
    }
}
