//! The log of what people did: written in the transaction of what was done, and never changed.

use chrono::{DateTime, Utc};
use fullhouse_protocol::staff::Logged;
use sqlx::PgPool;
use uuid::Uuid;

use crate::db::Tx;

/// What somebody did.
#[derive(Debug, Clone, Copy)]
pub struct Deed<'a> {
    /// One of the table `audit_verb`.
    pub verb: &'a str,
    /// Of one event; none: it is of no event, or of all.
    pub event_id: Option<i64>,
    pub detail: &'a str,
    pub reason: &'a str,
}

/// Writes what `actor` did.
pub async fn write(
    tx: &mut Tx,
    actor: &str,
    terminal_id: Option<Uuid>,
    deed: Deed<'_>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into audit (at, verb, actor, terminal_id, event_id, detail, reason) values ($1, $2, $3, $4, $5, $6, $7)",
        now,
        deed.verb,
        actor,
        terminal_id,
        deed.event_id,
        deed.detail,
        deed.reason
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// What of the log is looked for; what is none does not matter.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub event_id: Option<i64>,
    pub terminal_id: Option<Uuid>,
    /// A part of who did it, upper or lower case.
    pub person: Option<String>,
    pub verb: Option<String>,
    pub since: Option<DateTime<Utc>>,
    /// Not any more.
    pub until: Option<DateTime<Utc>>,
    /// Older than this entry.
    pub before: Option<i64>,
    pub limit: i64,
}

/// Entries of the log, the latest first, `limit` at most.
pub async fn read(pool: &PgPool, wanted: &Wanted) -> sqlx::Result<Vec<Logged>> {
    let person = wanted.person.as_ref().map(|name| name.to_lowercase());
    sqlx::query_as!(
        Logged,
        r#"select a.id, a.at, a.verb, a.actor, s.name as "staff_name?", a.terminal_id, t.name as "terminal_name?",
                  a.event_id, e.name as "event_name?", a.detail, a.reason
           from audit a
           left join staff s on s.id = a.staff_id
           left join terminal t on t.id = a.terminal_id
           left join event e on e.id = a.event_id
           where ($1::bigint is null or a.event_id = $1) and ($2::uuid is null or a.terminal_id = $2)
             and ($3::text is null or strpos(lower(a.actor), $3) > 0)
             and ($4::text is null or a.verb = $4)
             and ($5::timestamptz is null or a.at >= $5) and ($6::timestamptz is null or a.at < $6)
             and ($7::bigint is null or a.id < $7)
           order by a.id desc limit $8"#,
        wanted.event_id,
        wanted.terminal_id,
        person,
        wanted.verb,
        wanted.since,
        wanted.until,
        wanted.before,
        wanted.limit
    )
    .fetch_all(pool)
    .await
}
