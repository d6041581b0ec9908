//! Terminals: a token is printed once when a till is enrolled, and looked up by its hash.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Auth, Token};
use crate::db;

/// A till or kiosk that has shown its token.
#[derive(Debug, Clone)]
pub struct Till {
    pub terminal_id: Uuid,
    pub name: String,
    /// `counter` or `kiosk`.
    pub role: String,
    /// Somebody has to sign in before it sells.
    pub attended: bool,
    /// Why it may do nothing but report.
    pub locked_reason: Option<String>,
}

impl Till {
    /// Somebody of the house stands behind it; a kiosk stands among the public.
    pub fn is_counter(&self) -> bool {
        self.role == "counter"
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    #[error("there is a terminal called {0}")]
    NameTaken(String),
    #[error("a terminal is a counter or a kiosk, not {0}")]
    RoleUnknown(String),
    #[error("nobody stands behind a {0}: it can't be attended")]
    NobodyBehind(String),
    #[error("writing the terminal")]
    Database(#[source] sqlx::Error),
}

/// Makes a terminal and its token. By the command line, which has no names.
pub async fn enrol(pool: &PgPool, name: &str, role: &str) -> Result<(Uuid, Token), EnrolError> {
    insert(pool, name, role, false).await
}

/// Makes a terminal at which somebody has to sign in before it sells.
pub async fn enrol_attended(pool: &PgPool, name: &str, role: &str) -> Result<(Uuid, Token), EnrolError> {
    insert(pool, name, role, true).await
}

async fn insert(pool: &PgPool, name: &str, role: &str, attended: bool) -> Result<(Uuid, Token), EnrolError> {
    let id = Uuid::now_v7();
    let token = Token::random();
    let written = sqlx::query!(
        "with made as (
             insert into terminal (id, name, role, attended, token_hash) values ($1, $2, $3, $4, $5) returning id, name, role)
         insert into audit (at, verb, actor, terminal_id, detail, reason)
         select db_clock(), 'terminal_enrol', 'command line', id, name || ', a ' || role, 'made by command' from made",
        id,
        name,
        role,
        attended,
        &Token::hash(token.reveal())[..]
    )
    .execute(pool)
    .await;
    match written {
        Ok(_) => Ok((id, token)),
        Err(e) => Err(match db::constraint(&e) {
            Some("terminal_name_once") => EnrolError::NameTaken(name.to_owned()),
            Some("terminal_role_known") => EnrolError::RoleUnknown(role.to_owned()),
            Some("terminal_attended_is_counter") => EnrolError::NobodyBehind(role.to_owned()),
            _ => EnrolError::Database(e),
        }),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    #[error("there is no terminal called {0}")]
    TerminalUnknown(String),
    #[error("{0:?} is no reader's id: letters, digits and underscores, 64 at most")]
    NotAnId(String),
    #[error("writing the reader")]
    Database(#[source] sqlx::Error),
}

/// The reader stands at this terminal from now on, wherever it stood before: cards are held to it there. By the command
/// line, which has no names.
pub async fn place_reader(pool: &PgPool, terminal: &str, reader: &str) -> Result<(), ReaderError> {
    let written = sqlx::query!(
        "with placed as (
             insert into reader (id, terminal_id) select $2, id from terminal where name = $1
             on conflict (id) do update set terminal_id = excluded.terminal_id, enrolled_at = clock_timestamp()
             returning id, terminal_id)
         insert into audit (at, verb, actor, terminal_id, detail, reason)
         select db_clock(), 'terminal_reader', 'command line', terminal_id, id || ' stands at ' || $1, 'placed by command'
         from placed",
        terminal,
        reader
    )
    .execute(pool)
    .await;
    match written {
        Ok(done) if done.rows_affected() == 1 => Ok(()),
        Ok(_) => Err(ReaderError::TerminalUnknown(terminal.to_owned())),
        Err(e) if db::constraint(&e) == Some("reader_id_shape") => Err(ReaderError::NotAnId(reader.to_owned())),
        Err(e) => Err(ReaderError::Database(e)),
    }
}

impl Auth {
    /// The terminal of a token, unless it is unknown or revoked. Not remembered: revoking works at once.
    pub async fn till(&self, token: &str) -> sqlx::Result<Option<Till>> {
        sqlx::query_as!(
            Till,
            "select id as terminal_id, name, role, attended, locked_reason from terminal where token_hash = $1 and revoked_at is null",
            &Token::hash(token)[..]
        )
        .fetch_optional(&self.pool)
        .await
    }
}
