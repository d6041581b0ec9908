//! A machine becomes a terminal with a code that somebody types at it.
//!
//! Invariants
//! - A code makes one terminal, within minutes. Only its hash is kept.
//! - The machine that used it may ask again with its own key, in case the answer got lost: it is the same terminal, and
//!   the token that may have got lost is refused from then on.
//! - A code that is wrong, too old or used is refused in the same words.

use chrono::TimeDelta;
use fullhouse_protocol::terminal::{EnrolRequest, Enrolled, EnrolmentAnswer, EnrolmentRequest};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Auth, Deed, Token, log, short_code};
use crate::{
    clock,
    db::{self, Tx},
};

/// A code is good for so long.
const CODE_AGE: TimeDelta = TimeDelta::minutes(15);
/// The machine that used a code may ask again for so long.
const AGAIN_FOR: TimeDelta = TimeDelta::hours(1);

#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    #[error("there is a terminal called {0}")]
    NameTaken(String),
    #[error("writing the code")]
    Database(#[from] sqlx::Error),
}

/// Makes a code for a terminal of this name. One that was made for it before and not used is good no more.
pub async fn make_code(pool: PgPool, new: EnrolmentRequest, by: String) -> Result<EnrolmentAnswer, CodeError> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        let taken = sqlx::query_scalar!(r#"select exists(select from terminal where name = $1) as "taken!""#, new.name)
            .fetch_one(&mut *tx)
            .await?;
        if taken {
            return Err(CodeError::NameTaken(new.name));
        }
        let now = clock::now(&mut tx).await?;
        let code = short_code::random();
        let expires_at = now + CODE_AGE;
        sqlx::query!(
            "insert into terminal_enrolment as e (id, name, role, code_hash, reason, made_by, made_at, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8)
             on conflict (name) where used_at is null do update set
                 role = excluded.role, code_hash = excluded.code_hash, reason = excluded.reason,
                 made_by = excluded.made_by, made_at = excluded.made_at, expires_at = excluded.expires_at",
            Uuid::now_v7(),
            new.name,
            new.role.name(),
            &Token::hash(&code)[..],
            new.reason,
            by,
            now,
            expires_at
        )
        .execute(&mut *tx)
        .await?;
        let detail = format!("a code for {}, a {}", new.name, new.role.name());
        let deed = Deed { verb: "terminal_code", event_id: None, detail: &detail, reason: &new.reason };
        log::write(&mut tx, &by, None, deed, now).await?;
        tx.commit().await?;
        Ok(EnrolmentAnswer { code: short_code::written(&code), expires_at })
    })
    .await
}

#[derive(Debug, thiserror::Error)]
pub enum EnrolRefusal {
    /// Wrong, too old, or used.
    #[error("this code enrols nothing")]
    Refused,
    #[error("too many tries")]
    TooManyTries,
    /// Somebody has enrolled another terminal under this name meanwhile.
    #[error("there is a terminal called {0}")]
    NameTaken(String),
    #[error("writing the terminal")]
    Database(#[from] sqlx::Error),
}

impl Auth {
    /// Makes the code's terminal, or gives the machine that made it another token. `address` is where the request came
    /// from: wrong codes are counted by it.
    pub async fn enrol(&self, asked: EnrolRequest, address: &str) -> Result<Enrolled, EnrolRefusal> {
        let tries = format!("enrol {address}");
        if !self.attempts.take(&tries, self.settings.enrol_failures_max) {
            return Err(EnrolRefusal::TooManyTries);
        }
        let code = short_code::read(&asked.code).ok_or(EnrolRefusal::Refused)?;
        let pool = self.pool.clone();
        let done = db::write(async move {
            let mut tx = pool.begin().await?;
            let enrolled = enrol_in(&mut tx, &code, asked.key.as_deref()).await?;
            tx.commit().await?;
            Ok(enrolled)
        })
        .await;
        if !matches!(done, Err(EnrolRefusal::Refused)) {
            self.attempts.give_back(&tries);
        }
        done
    }
}

async fn enrol_in(tx: &mut Tx, code: &str, key: Option<&str>) -> Result<Enrolled, EnrolRefusal> {
    let found = sqlx::query!(
        "select id, name, role, reason, made_by, expires_at, used_at, key_hash, terminal_id
         from terminal_enrolment where code_hash = $1 for update",
        &Token::hash(code)[..]
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(EnrolRefusal::Refused)?;
    let now = clock::now(tx).await?;
    let key_hash = key.map(|key| Token::hash(key).to_vec());
    let token = Token::random();
    if let (Some(used_at), Some(terminal_id)) = (found.used_at, found.terminal_id) {
        if key_hash.is_none() || key_hash != found.key_hash || used_at + AGAIN_FOR <= now {
            return Err(EnrolRefusal::Refused);
        }
        return again(tx, terminal_id, token).await?.ok_or(EnrolRefusal::Refused);
    }
    if found.expires_at <= now {
        return Err(EnrolRefusal::Refused);
    }
    let terminal_id = Uuid::now_v7();
    let attended = found.role == "counter"; // a kiosk's customer is nobody's staff
    let written = sqlx::query!(
        "insert into terminal (id, name, role, attended, token_hash) values ($1, $2, $3, $4, $5)",
        terminal_id,
        found.name,
        found.role,
        attended,
        &Token::hash(token.reveal())[..]
    )
    .execute(&mut **tx)
    .await;
    match written {
        Err(error) if db::constraint(&error) == Some("terminal_name_once") => {
            return Err(EnrolRefusal::NameTaken(found.name));
        }
        written => written?,
    };
    sqlx::query!(
        "update terminal_enrolment set used_at = $2, key_hash = $3, terminal_id = $4 where id = $1",
        found.id,
        now,
        key_hash,
        terminal_id
    )
    .execute(&mut **tx)
    .await?;
    let deed = Deed { verb: "terminal_enrol", event_id: None, detail: &found.name, reason: &found.reason };
    log::write(tx, &found.made_by, Some(terminal_id), deed, now).await?;
    let token = token.reveal().to_owned();
    Ok(Enrolled { terminal_id, name: found.name, role: found.role, attended, token })
}

/// Another token for a terminal whose first one got lost on its way.
async fn again(tx: &mut Tx, terminal_id: Uuid, token: Token) -> sqlx::Result<Option<Enrolled>> {
    let terminal = sqlx::query!(
        "update terminal set token_hash = $2 where id = $1 and revoked_at is null returning name, role, attended",
        terminal_id,
        &Token::hash(token.reveal())[..]
    )
    .fetch_optional(&mut **tx)
    .await?;
    let token = token.reveal().to_owned();
    Ok(terminal.map(|t| Enrolled { terminal_id, name: t.name, role: t.role, attended: t.attended, token }))
}

/// Deletes codes that nobody used in time, and says how many. Nothing depends on it.
pub async fn delete_unused(pool: &PgPool) -> sqlx::Result<u64> {
    let deleted = sqlx::query!("delete from terminal_enrolment where used_at is null and expires_at <= db_clock()")
        .execute(pool)
        .await?;
    Ok(deleted.rows_affected())
}
