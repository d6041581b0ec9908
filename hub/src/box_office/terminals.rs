//! Terminals in the hands of operators: how they are, renamed, locked, revoked.
//!
//! Invariants
//! - What is done to a terminal is in the audit log, in the same transaction; what changes nothing is not.
//! - A lock works at once: whether a terminal is locked is read with its token, in each request.

use fullhouse_protocol::terminal::{
    ReaderSeen, TerminalChange, TerminalHealth, TerminalListed, TerminalProfile, TerminalSelf,
};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

use super::{leases, readers};

use crate::{
    auth::{Deed, log},
    clock,
    db::{self, Tx},
};

/// All terminals by name, and how they said that they are.
pub async fn list(pool: &PgPool) -> sqlx::Result<Vec<TerminalListed>> {
    let mut seen = readers::seen(pool, None).await?;
    let rows = sqlx::query!(
        r#"select t.id, t.name, t.role, t.attended, t.profile as "profile: Json<TerminalProfile>",
                  t.revoked_at is not null as "revoked!", t.locked_reason,
                  t.health as "health: Json<TerminalHealth>", t.health_at
           from terminal t order by t.name"#
    )
    .fetch_all(pool)
    .await?;
    let listed = rows.into_iter().map(|t| {
        let own: Vec<ReaderSeen> = seen.extract_if(.., |(at, _)| *at == t.id).map(|(_, reader)| reader).collect();
        TerminalListed {
            id: t.id,
            name: t.name,
            role: t.role,
            attended: t.attended,
            profile: t.profile.0,
            revoked: t.revoked,
            locked_reason: t.locked_reason,
            readers: own.iter().map(|reader| reader.id.clone()).collect(),
            reader_states: own,
            health: t.health.map(|Json(health)| health),
            health_at: t.health_at,
        }
    });
    Ok(listed.collect())
}

/// Who a terminal is, what it is for, and where its journal goes on.
pub async fn who_am_i(pool: &PgPool, terminal_id: Uuid) -> sqlx::Result<TerminalSelf> {
    let t = sqlx::query!(
        r#"select t.name, t.role, t.attended, t.locked_reason, t.profile as "profile: Json<TerminalProfile>",
                  db_clock() as "now!"
           from terminal t where t.id = $1"#,
        terminal_id
    )
    .fetch_one(pool)
    .await?;
    let seen = readers::seen(pool, Some(terminal_id)).await?;
    let reader_states: Vec<ReaderSeen> = seen.into_iter().map(|(_, reader)| reader).collect();
    let next_seq = leases::next_seq(&mut *pool.acquire().await?, terminal_id).await?.cast_signed();
    Ok(TerminalSelf {
        terminal_id,
        name: t.name,
        role: t.role,
        attended: t.attended,
        locked_reason: t.locked_reason,
        profile: t.profile.0,
        readers: reader_states.iter().map(|reader| reader.id.clone()).collect(),
        reader_states,
        next_seq,
        now: t.now,
    })
}

/// Keeps what a terminal says of itself; the last word counts.
pub async fn report(pool: PgPool, terminal_id: Uuid, health: TerminalHealth) -> sqlx::Result<()> {
    db::write(async move {
        sqlx::query!(
            "update terminal set health = $2, health_at = db_clock() where id = $1",
            terminal_id,
            Json(health) as _
        )
        .execute(&pool)
        .await?;
        Ok(())
    })
    .await
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no such terminal")]
    Unknown,
    #[error("another terminal has this name")]
    NameTaken,
    #[error("there is no event {0}")]
    EventUnknown(i64),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Renames, locks, unlocks or revokes; all that is asked for, or nothing.
pub async fn change(pool: PgPool, terminal_id: Uuid, change: TerminalChange, actor: String) -> Result<(), ChangeError> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        let done = change_in(&mut tx, terminal_id, &change, &actor).await;
        match done {
            Err(ChangeError::Database(error)) if db::constraint(&error) == Some("terminal_name_once") => {
                return Err(ChangeError::NameTaken);
            }
            done => done?,
        }
        tx.commit().await?;
        Ok(())
    })
    .await
}

async fn change_in(tx: &mut Tx, terminal_id: Uuid, change: &TerminalChange, actor: &str) -> Result<(), ChangeError> {
    let old = sqlx::query!(
        r#"select name, locked_at is not null as "locked!", revoked_at is not null as "revoked!",
                  profile as "profile: Json<TerminalProfile>"
           from terminal where id = $1 for no key update"#,
        terminal_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ChangeError::Unknown)?;
    let now = clock::now(tx).await?;
    let name = change.name.as_deref().filter(|name| *name != old.name);
    let locked = change.locked.filter(|locked| *locked != old.locked);
    let revoke = change.revoke && !old.revoked;
    let profile = change.profile.as_ref().filter(|profile| **profile != old.profile.0);
    if let Some(profile) = profile {
        events_exist(tx, &profile.events).await?;
    }
    sqlx::query!(
        "update terminal set name = coalesce($2, name),
             locked_at = case when $3::boolean is null then locked_at when $3 then $5::timestamptz end,
             locked_reason = case when $3::boolean is null then locked_reason when $3 then $6 end,
             revoked_at = case when $4 then $5 else revoked_at end,
             profile = coalesce($7, profile)
         where id = $1",
        terminal_id,
        name,
        locked,
        revoke,
        now,
        change.reason,
        profile.map(Json) as _
    )
    .execute(&mut **tx)
    .await?;
    let renamed = name.map(|name| ("terminal_rename", format!("{} is called {name}", old.name)));
    let locking = locked.map(|l| (if l { "terminal_lock" } else { "terminal_unlock" }, old.name.clone()));
    let revoking = revoke.then(|| ("terminal_revoke", old.name.clone()));
    let profiled = profile.map(|_| ("terminal_profile", old.name.clone()));
    for (verb, detail) in [renamed, locking, revoking, profiled].into_iter().flatten() {
        let deed = Deed { verb, event_id: None, detail: &detail, reason: &change.reason };
        log::write(tx, actor, Some(terminal_id), deed, now).await?;
    }
    Ok(())
}

/// A terminal for an event that there is not would show nothing.
async fn events_exist(tx: &mut Tx, events: &[i64]) -> Result<(), ChangeError> {
    let unknown = sqlx::query_scalar!(
        r#"select u.id as "id!" from unnest($1::bigint[]) as u(id) where not exists (select from event e where e.id = u.id) limit 1"#,
        events
    )
    .fetch_optional(&mut **tx)
    .await?;
    unknown.map_or(Ok(()), |id| Err(ChangeError::EventUnknown(id)))
}
