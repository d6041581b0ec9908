//! Sessions of browsers: a random token in a cookie, its hash in the database, and a short memory
//! of the hash here, so that taking a seat does not cost a query more.
//!
//! Invariants
//! - Signing out is noticed at once by this process, and within `auth.session_cache_s` by others:
//!   a look-up that was under way when the session ended can't bring it back (it finds the tombstone).

use std::time::{Duration, Instant};

use dashmap::{DashMap, Entry};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Account, Auth, Role, Token, TokenHash};
use crate::db;

/// How long an end is remembered: longer than any look-up of it can be under way.
const TOMBSTONE_S: u64 = 60;

/// Somebody who has signed in, and the buyer that they are.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub account_id: Uuid,
    pub buyer_id: Uuid,
    pub email: String,
    pub name: String,
    pub role: Role,
    pub email_checked: bool,
    /// Of this session: what a pass is bound to.
    pub session: TokenHash,
}

#[derive(Debug, thiserror::Error)]
#[error("the session could not be read or written")]
pub struct SessionError(#[source] pub sqlx::Error);

pub struct Sessions {
    remembered: DashMap<TokenHash, Remembered>,
    age_max: Duration,
    remembered_max: usize,
}

struct Remembered {
    at: Instant,
    /// `None`: it has ended.
    session: Option<SignedIn>,
}

impl Sessions {
    pub fn new(age_max: Duration, remembered_max: usize) -> Self {
        Self { remembered: DashMap::new(), age_max, remembered_max }
    }

    /// `Some(None)`: known to have ended.
    fn get(&self, hash: &TokenHash) -> Option<Option<SignedIn>> {
        let entry = self.remembered.get(hash)?;
        match &entry.session {
            Some(_) if entry.at.elapsed() >= self.age_max => None,
            session => Some(session.clone()),
        }
    }

    fn remember(&self, hash: TokenHash, session: &SignedIn) {
        let full = self.remembered.len() >= self.remembered_max;
        match self.remembered.entry(hash) {
            Entry::Occupied(mut held) if held.get().session.is_some() => {
                held.insert(Remembered { at: Instant::now(), session: Some(session.clone()) });
            }
            Entry::Vacant(free) if !full => {
                free.insert(Remembered { at: Instant::now(), session: Some(session.clone()) });
            }
            _ => {}
        }
    }

    /// A token that was nobody's is not remembered: anybody can make up any number of them.
    fn end(&self, hash: TokenHash, existed: bool) {
        let ended = Remembered { at: Instant::now(), session: None };
        match self.remembered.entry(hash) {
            Entry::Occupied(mut held) => drop(held.insert(ended)), // another node may have ended it first
            Entry::Vacant(free) if existed => drop(free.insert(ended)),
            Entry::Vacant(_) => {}
        }
    }

    /// Something about the account has changed: its sessions are looked up anew.
    pub(super) fn forget_account(&self, account_id: Uuid) {
        self.remembered.retain(|_, r| r.session.as_ref().is_none_or(|s| s.account_id != account_id));
    }

    pub fn tidy(&self) {
        let tombstone = Duration::from_secs(TOMBSTONE_S);
        self.remembered.retain(|_, r| r.at.elapsed() < if r.session.is_some() { self.age_max } else { tombstone });
    }
}

impl Auth {
    /// Opens a session of an account. The token goes into the browser's cookie.
    pub async fn open_session(&self, account: &Account) -> Result<Token, SessionError> {
        let token = Token::random();
        let hash = Token::hash(token.reveal());
        let (pool, account_id, ttl_s) = (self.pool.clone(), account.id, self.settings.session_ttl_s);
        db::write(async move {
            sqlx::query!(
                "insert into session (token_hash, account_id, expires_at)
                 values ($1, $2, db_clock() + make_interval(secs => $3))",
                &hash[..],
                account_id,
                ttl_s as f64
            )
            .execute(&pool)
            .await
        })
        .await
        .map_err(SessionError)?;
        Ok(token)
    }

    /// Who holds this token, if its session is alive. Makes the account's buyer when it is first asked for.
    pub async fn signed_in(&self, token: &str) -> Result<Option<SignedIn>, SessionError> {
        let hash = Token::hash(token);
        if let Some(session) = self.sessions.get(&hash) {
            return Ok(session);
        }
        let found = sqlx::query!(
            r#"select a.id, a.email, a.name, a.role, b.id as "buyer_id?",
                      a.email_checked_at is not null as "email_checked!"
               from session s join account a on a.id = s.account_id left join buyer b on b.account_id = a.id
               where s.token_hash = $1 and s.expires_at > db_clock()"#,
            &hash[..]
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(SessionError)?;
        let Some(found) = found else { return Ok(None) };
        let buyer_id = match found.buyer_id {
            Some(id) => id,
            None => {
                let pool = self.pool.clone();
                db::write(async move { buyer_of(&pool, found.id).await }).await.map_err(SessionError)?
            }
        };
        let session = SignedIn {
            account_id: found.id,
            buyer_id,
            email: found.email,
            name: found.name,
            role: Role::read(&found.role),
            email_checked: found.email_checked,
            session: hash,
        };
        self.sessions.remember(hash, &session);
        Ok(Some(session))
    }

    /// Ends a session. Ending one that does not exist is no error, and leaves nothing behind.
    pub async fn end_session(&self, token: &str) -> Result<(), SessionError> {
        let hash = Token::hash(token);
        let (pool, sessions) = (self.pool.clone(), self.sessions.clone());
        // The end is remembered in the same task: a caller that hangs up does not keep the session alive here.
        db::write(async move {
            let deleted = sqlx::query!("delete from session where token_hash = $1", &hash[..]).execute(&pool).await?;
            sessions.end(hash, deleted.rows_affected() > 0);
            Ok(())
        })
        .await
        .map_err(SessionError)
    }
}

/// The buyer that an account is for ever, made if it is not there yet.
async fn buyer_of(pool: &PgPool, account_id: Uuid) -> sqlx::Result<Uuid> {
    sqlx::query!(
        "insert into buyer (id, account_id) values ($1, $2) on conflict on constraint buyer_account_once do nothing",
        Uuid::now_v7(),
        account_id
    )
    .execute(pool)
    .await?;
    sqlx::query_scalar!("select id from buyer where account_id = $1", account_id).fetch_one(pool).await
}

/// Sessions that have ended by the database's clock; at most so many a call that nobody waits for it.
pub async fn delete_ended(pool: &PgPool) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from session where token_hash in
             (select token_hash from session where expires_at <= db_clock() limit 1000)"
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn somebody() -> SignedIn {
        SignedIn {
            account_id: Uuid::nil(),
            buyer_id: Uuid::nil(),
            email: String::new(),
            name: String::new(),
            role: Role::Fan,
            email_checked: false,
            session: [0; 32],
        }
    }

    #[test]
    fn a_look_up_that_was_under_way_does_not_bring_an_ended_session_back() {
        let sessions = Sessions::new(Duration::from_secs(5), 10);
        sessions.remember([1; 32], &somebody());
        assert!(matches!(sessions.get(&[1; 32]), Some(Some(_))));
        sessions.end([1; 32], true);
        sessions.remember([1; 32], &somebody());
        sessions.tidy();
        assert!(matches!(sessions.get(&[1; 32]), Some(None)));
    }

    #[test]
    fn an_end_of_nothing_is_not_remembered() {
        let sessions = Sessions::new(Duration::from_secs(5), 10);
        sessions.end([1; 32], false);
        assert!(sessions.remembered.is_empty());
        sessions.remember([2; 32], &somebody());
        sessions.end([2; 32], false);
        assert!(matches!(sessions.get(&[2; 32]), Some(None)), "ended by another node, still remembered here");
    }

    #[test]
    fn memory_is_short_and_bounded() {
        let sessions = Sessions::new(Duration::ZERO, 1);
        sessions.remember([1; 32], &somebody());
        sessions.remember([2; 32], &somebody());
        assert_eq!(sessions.remembered.len(), 1);
        assert!(sessions.get(&[1; 32]).is_none());
        sessions.tidy();
        assert!(sessions.remembered.is_empty());
    }
}
