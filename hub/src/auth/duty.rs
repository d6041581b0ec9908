//! Staff sign in at a terminal.
//!
//! Invariants
//! - A session is of one terminal, and ends with its lock, with the member's change, or after twelve hours.
//! - Five wrong tries in a row lock a name for a quarter of an hour, whether anybody has it or not; the same answer
//!   after the same work. Tries are counted before they are made, so that those side by side are counted too.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::clerk::{StaffRole, StaffSignIn, StaffSignedIn};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Auth, Deed, Till, Token, log, password::PasswordError, staff::role};
use crate::{
    clock,
    db::{self, Tx},
};

const FAILURES_MAX: i32 = 5;
const LOCKED_FOR: TimeDelta = TimeDelta::minutes(15);
const SESSION_FOR: TimeDelta = TimeDelta::hours(12);
/// Clerk, relief and a supervisor who came to help; who signs in beyond that ends the oldest.
const SESSIONS_A_TERMINAL_MAX: i64 = 10;
const SECRET_BYTES_MAX: usize = 512;

/// Somebody of the staff who has signed in at this terminal.
#[derive(Debug, Clone)]
pub struct OnDuty {
    pub staff_id: Uuid,
    pub name: String,
    pub role: StaffRole,
    pub expires_at: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Not exactly one secret, or a PIN where nobody stands.
    #[error("{0}")]
    Invalid(&'static str),
    #[error("name and secret do not match")]
    CredentialsWrong,
    #[error("too many wrong tries; again in {retry_after_s} s")]
    Locked { retry_after_s: u32 },
    #[error("too many passwords are waiting to be hashed")]
    Busy,
    #[error("hashing a password")]
    Hash(#[source] argon2::password_hash::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Auth {
    /// Signs somebody in at a terminal, which is not locked.
    pub async fn sign_in_at(&self, till: &Till, given: StaffSignIn) -> Result<StaffSignedIn, SignInError> {
        let by_pin = given.pin.is_some();
        let secret = match (given.password, given.pin) {
            (Some(secret), None) | (None, Some(secret)) => secret,
            _ => return Err(SignInError::Invalid("Either a password or a PIN, one of them.")),
        };
        if by_pin && !till.attended {
            return Err(SignInError::Invalid("A PIN is good at an attended terminal only."));
        }
        let name = given.name.trim().to_lowercase();
        if name.is_empty() || name.chars().count() > 60 || secret.len() > SECRET_BYTES_MAX {
            return Err(SignInError::CredentialsWrong); // the limits are public: it tells nothing, and costs no hash
        }
        count_try(&self.pool, &name).await?;
        let found = sqlx::query!(
            "select id, name, role, password_hash, pin_hash from staff where lower(name) = $1 and disabled_at is null",
            name
        )
        .fetch_optional(&self.pool)
        .await?;
        let stored =
            found.as_ref().and_then(|s| if by_pin { s.pin_hash.clone() } else { Some(s.password_hash.clone()) });
        let matches = match self.passwords.verify(secret, stored.clone()).await {
            Ok(matches) => matches,
            Err(error) => {
                uncount_try(&self.pool, &name).await?; // being busy must lock nobody out
                return Err(match error {
                    PasswordError::Busy => SignInError::Busy,
                    PasswordError::Hash(error) => SignInError::Hash(error),
                });
            }
        };
        let Some(somebody) = found.filter(|_| matches) else { return Err(SignInError::CredentialsWrong) };
        let opening = Opening {
            staff_id: somebody.id,
            terminal_id: till.terminal_id,
            verified: stored.unwrap_or_default(),
            said: format!("{} at {}", somebody.name, till.name),
            name,
        };
        let opened = open_session(&self.pool, opening).await?.ok_or(SignInError::CredentialsWrong)?;
        Ok(StaffSignedIn {
            staff_id: somebody.id,
            name: somebody.name,
            role: role(&somebody.role),
            token: opened.0.reveal().to_owned(),
            expires_at: opened.1,
        })
    }

    /// Who signed in at this terminal with this token. Read in each request: what ends a session works at once.
    pub async fn on_duty(&self, terminal_id: Uuid, token: &str) -> sqlx::Result<Option<OnDuty>> {
        let found = sqlx::query!(
            "select s.id, s.name, s.role, n.expires_at from staff_session n join staff s on s.id = n.staff_id
             where n.token_hash = $1 and n.terminal_id = $2 and n.expires_at > db_clock() and s.disabled_at is null",
            &Token::hash(token)[..],
            terminal_id
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(found.map(|s| OnDuty { staff_id: s.id, name: s.name, role: role(&s.role), expires_at: s.expires_at }))
    }

    /// Ends a session. One that has ended is no error.
    pub async fn sign_out_at(&self, till: &Till, token: &str) -> sqlx::Result<()> {
        let (pool, terminal_id, hash, place) =
            (self.pool.clone(), till.terminal_id, Token::hash(token), till.name.clone());
        db::write(async move {
            let mut tx = pool.begin().await?;
            let gone = sqlx::query!(
                "delete from staff_session n using staff s
                 where s.id = n.staff_id and n.token_hash = $1 and n.terminal_id = $2 returning s.id, s.name",
                &hash[..],
                terminal_id
            )
            .fetch_optional(&mut *tx)
            .await?;
            if let Some(gone) = gone {
                let said = format!("{} at {place}", gone.name);
                write_down(&mut tx, "staff_sign_out", gone.id, terminal_id, &said).await?;
            }
            tx.commit().await
        })
        .await
    }
}

/// Counts a try before it is made; the fifth in a row locks the name, unless it turns out to be right.
async fn count_try(pool: &PgPool, name: &str) -> Result<(), SignInError> {
    let (pool, name) = (pool.clone(), name.to_owned());
    db::write(async move {
        let mut tx = pool.begin().await?;
        sqlx::query!(
            "insert into staff_try (name, failures, last_at) values ($1, 0, db_clock()) on conflict do nothing",
            name
        )
        .execute(&mut *tx)
        .await?;
        let before = sqlx::query!("select failures, locked_until from staff_try where name = $1 for update", name)
            .fetch_one(&mut *tx)
            .await?;
        let now = clock::now(&mut tx).await?;
        let was_locked = before.locked_until.is_some();
        if let Some(left) = before.locked_until.map(|until| until - now).filter(|left| *left > TimeDelta::zero()) {
            return Err(SignInError::Locked { retry_after_s: left.num_seconds() as u32 + 1 });
        }
        let failures = if was_locked { 1 } else { before.failures + 1 };
        let locked_until = (failures >= FAILURES_MAX).then(|| now + LOCKED_FOR);
        sqlx::query!(
            "update staff_try set failures = $2, locked_until = $3, last_at = $4 where name = $1",
            name,
            failures,
            locked_until,
            now
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    })
    .await
}

async fn uncount_try(pool: &PgPool, name: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update staff_try set failures = greatest(failures - 1, 0), locked_until = null where name = $1",
        name
    )
    .execute(pool)
    .await?;
    Ok(())
}

struct Opening {
    staff_id: Uuid,
    terminal_id: Uuid,
    /// The hash that matched: it has to be theirs still.
    verified: String,
    said: String,
    name: String,
}

/// `None`: the member or the terminal was changed while the password was hashed.
async fn open_session(pool: &PgPool, opening: Opening) -> sqlx::Result<Option<(Token, DateTime<Utc>)>> {
    let pool = pool.clone();
    db::write(async move {
        let mut tx = pool.begin().await?;
        // Shared locks: who disables the member or locks the terminal comes before, and is seen, or after, and ends this.
        let still = sqlx::query_scalar!(
            "select s.id from staff s, terminal t
             where s.id = $1 and s.disabled_at is null and (s.password_hash = $3 or s.pin_hash = $3)
               and t.id = $2 and t.locked_at is null and t.revoked_at is null for share",
            opening.staff_id,
            opening.terminal_id,
            opening.verified
        )
        .fetch_optional(&mut *tx)
        .await?;
        if still.is_none() {
            return Ok(None);
        }
        let now = clock::now(&mut tx).await?;
        let (token, expires_at) = (Token::random(), now + SESSION_FOR);
        sqlx::query!(
            "delete from staff_session where expires_at <= $2 or token_hash in
                 (select token_hash from staff_session where terminal_id = $1 order by created_at desc offset $3)",
            opening.terminal_id,
            now,
            SESSIONS_A_TERMINAL_MAX - 1
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "insert into staff_session (token_hash, staff_id, terminal_id, created_at, expires_at)
             values ($1, $2, $3, $4, $5)",
            &Token::hash(token.reveal())[..],
            opening.staff_id,
            opening.terminal_id,
            now,
            expires_at
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!("delete from staff_try where name = $1", opening.name).execute(&mut *tx).await?;
        write_down(&mut tx, "staff_sign_in", opening.staff_id, opening.terminal_id, &opening.said).await?;
        tx.commit().await?;
        Ok(Some((token, expires_at)))
    })
    .await
}

async fn write_down(tx: &mut Tx, verb: &str, staff_id: Uuid, terminal_id: Uuid, said: &str) -> sqlx::Result<()> {
    super::Actor::at_terminal(said.to_owned(), terminal_id, Some(staff_id)).acts(tx).await?;
    let now = clock::now(tx).await?;
    let deed = Deed { verb, event_id: None, detail: "", reason: "a person's own wish" };
    log::write(tx, said, Some(terminal_id), deed, now).await
}

/// Deletes sessions that have ended and tries that nobody makes any more, and says how many. Nothing depends on it.
pub async fn delete_ended(pool: &PgPool) -> sqlx::Result<u64> {
    let sessions =
        sqlx::query!("delete from staff_session where expires_at <= db_clock()").execute(pool).await?.rows_affected();
    let tries = sqlx::query!("delete from staff_try where last_at < db_clock() - interval '1 day'")
        .execute(pool)
        .await?
        .rows_affected();
    Ok(sessions + tries)
}
