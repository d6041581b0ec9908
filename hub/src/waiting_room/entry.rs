//! One's own stand in a line: where it is, what it may do now, and what its owner would like.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::line::{EntryState, Preferences};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{
    places::{Places, place},
    receipt::Committed,
};
use crate::auth::TokenHash;

/// An entry as it stands at a moment.
#[derive(Debug, Clone)]
pub struct Standing {
    pub event_id: i64,
    pub account_id: Uuid,
    pub number: i64,
    pub entry_key: [u8; 16],
    pub joined_at: DateTime<Utc>,
    /// What the draw of that time had committed to.
    pub committed: Committed,
    /// `None` before the draw.
    pub place: Option<i64>,
    pub called_through: i64,
    pub called_at: Option<DateTime<Utc>>,
    pub grace_until: Option<DateTime<Utc>>,
    /// Since when nobody is let in.
    pub paused_at: Option<DateTime<Utc>>,
    pub pass: Option<LivePass>,
    pub preferences: Preferences,
    pub pass_s: i32,
    pub pass_max_s: i32,
    pub now: DateTime<Utc>,
}

/// The pass that an account has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePass {
    pub id: Uuid,
    pub session: TokenHash,
    pub expires_at: DateTime<Utc>,
    pub renewable_until: DateTime<Utc>,
}

impl Standing {
    pub fn state(&self) -> EntryState {
        state(self.pass.is_some(), self.grace_until, self.paused_at, self.now)
    }
}

/// A pass decides; without one, the call and its grace, which does not run while the line is paused.
fn state(
    has_pass: bool,
    grace_until: Option<DateTime<Utc>>,
    paused_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> EntryState {
    match grace_until {
        _ if has_pass => EntryState::Inside,
        None => EntryState::Waiting,
        Some(until) if paused_at.unwrap_or(now) <= until => EntryState::Called,
        Some(_) => EntryState::Lapsed,
    }
}

/// The standing entry of an account; the last one that ended is none.
pub async fn mine(
    db: &mut PgConnection,
    places: &Places,
    event_id: i64,
    account_id: Uuid,
) -> sqlx::Result<Option<Standing>> {
    let Some(row) = sqlx::query!(
        r#"select n.number, n.entry_key, n.joined_at, n.party_size, n.price_level, n.accessible, n.companions,
                  l.draw_no, l.called_through, l.grace_s, l.pass_s, l.pass_max_s, l.paused_at,
                  p.id as "pass_id?", p.session_hash as "session_hash?", p.expires_at as "expires_at?",
                  p.renewable_until as "renewable_until?", c.now as "now!", d.draw_no as committed_no, d.commitment
           from line_entry n join line l on l.event_id = n.event_id cross join (select db_clock() as now) c
           cross join lateral (select draw_no, commitment from draw where event_id = n.event_id
                               order by created_at <= n.joined_at desc, -- the last one by then; the first, if a clock was set back
                                        case when created_at <= n.joined_at then -draw_no else draw_no end limit 1) d
           left join pass p on p.event_id = n.event_id and p.account_id = n.account_id and p.ended_at is null and p.expires_at > c.now
           where n.event_id = $1 and n.account_id = $2 and n.lapsed_at is null and n.left_at is null"#,
        event_id,
        account_id
    )
    .fetch_optional(&mut *db)
    .await?
    else {
        return Ok(None);
    };
    let drawn = places.of(&mut *db, event_id, row.draw_no).await?;
    let at = place(drawn.as_ref().map(|d| d.as_slice()), row.number);
    let call = match at.filter(|at| *at < row.called_through) {
        Some(at) => call(db, event_id, at).await?,
        None => None,
    };
    let bytes = || sqlx::Error::Protocol("a hash or key of another length".into());
    let pass = match (row.pass_id, row.session_hash, row.expires_at, row.renewable_until) {
        (Some(id), Some(session), Some(expires_at), Some(renewable_until)) => {
            Some(LivePass { id, session: session.try_into().map_err(|_| bytes())?, expires_at, renewable_until })
        }
        _ => None,
    };
    Ok(Some(Standing {
        event_id,
        account_id,
        number: row.number,
        entry_key: row.entry_key.try_into().map_err(|_| bytes())?,
        joined_at: row.joined_at,
        committed: Committed { draw_no: row.committed_no, commitment: row.commitment.try_into().map_err(|_| bytes())? },
        place: at,
        called_through: row.called_through,
        called_at: call.as_ref().map(|call| call.at),
        grace_until: call.map(|call| call.grace_from + TimeDelta::seconds(row.grace_s.into())),
        paused_at: row.paused_at,
        pass,
        preferences: Preferences {
            party_size: row.party_size,
            price_level: row.price_level,
            accessible: row.accessible,
            companions: row.companions,
        },
        pass_s: row.pass_s,
        pass_max_s: row.pass_max_s,
        now: row.now,
    }))
}

/// When a place was called, and from when its grace runs.
struct Call {
    at: DateTime<Utc>,
    grace_from: DateTime<Utc>,
}

async fn call(db: &mut PgConnection, event_id: i64, place: i64) -> sqlx::Result<Option<Call>> {
    sqlx::query_as!(
        Call,
        r#"select at, coalesce(grace_from, at) as "grace_from!" from line_call
           where event_id = $1 and from_place <= $2 and through_place > $2
           order by from_place desc limit 1"#,
        event_id,
        place
    )
    .fetch_optional(db)
    .await
}

/// Whoever comes in, goes, or is sent out does so one after the other: a pass that is given while another request ends
/// the account's pass would outlive it. Held until the transaction ends, and taken after every other lock but rows'.
pub async fn lock(db: &mut PgConnection, event_id: i64, account_id: Uuid) -> sqlx::Result<()> {
    let name = format!("pass {event_id} {account_id}");
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", name).execute(db).await?;
    Ok(())
}

/// [`lock`] of each of these whose lock is free, without waiting. Returns them.
pub async fn lock_free(db: &mut PgConnection, event_id: i64, accounts: &[Uuid]) -> sqlx::Result<HashSet<Uuid>> {
    let locked = sqlx::query_scalar!(
        r#"select a.account_id as "account_id!" from unnest($2::uuid[]) as a(account_id)
           where pg_try_advisory_xact_lock(hashtextextended('pass ' || $1::bigint || ' ' || a.account_id, 0))"#,
        event_id,
        accounts
    )
    .fetch_all(db)
    .await?;
    Ok(locked.into_iter().collect())
}

/// What is wrong with wishes that do not fit together.
pub fn check(preferences: &Preferences) -> Result<(), &'static str> {
    let Preferences { party_size, price_level, accessible, companions } = preferences;
    if party_size.is_some_and(|size| !(1..=50).contains(&size)) {
        return Err("a party has 1 to 50 people");
    }
    if price_level.is_some_and(|level| !(0..64).contains(&level)) {
        return Err("there is no such price level");
    }
    if !(0..=50).contains(accessible) || !(0..=50).contains(companions) {
        return Err("accessible places and companions are 0 to 50");
    }
    if party_size.is_some_and(|size| accessible + companions > size) {
        return Err("accessible places and companions are part of the party");
    }
    if *companions > 0 && *accessible == 0 {
        return Err("a companion goes with an accessible place");
    }
    Ok(())
}

/// Writes what the buyer would like now. `false`: they have no entry.
pub async fn prefer(pool: &PgPool, event_id: i64, account_id: Uuid, wish: &Preferences) -> sqlx::Result<bool> {
    let written = sqlx::query!(
        "update line_entry set party_size = $3, price_level = $4, accessible = $5, companions = $6
         where event_id = $1 and account_id = $2 and lapsed_at is null and left_at is null",
        event_id,
        account_id,
        wish.party_size,
        wish.price_level,
        wish.accessible,
        wish.companions
    )
    .execute(pool)
    .await?;
    Ok(written.rows_affected() == 1)
}

/// Ends an entry by its owner's wish, and the pass with it.
pub async fn leave(pool: &PgPool, event_id: i64, account_id: Uuid) -> sqlx::Result<bool> {
    let mut tx = pool.begin().await?;
    lock(&mut tx, event_id, account_id).await?;
    sqlx::query!(
        "update pass set ended_at = db_clock(), ended_why = 'left' where event_id = $1 and account_id = $2 and ended_at is null",
        event_id,
        account_id
    )
    .execute(&mut *tx)
    .await?;
    let left = sqlx::query!(
        "update line_entry set left_at = db_clock()
         where event_id = $1 and account_id = $2 and lapsed_at is null and left_at is null",
        event_id,
        account_id
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(left.rows_affected() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_costs_nobody_their_grace_and_gives_nobody_one_back() {
        let at = |s| DateTime::UNIX_EPOCH + TimeDelta::seconds(s);
        let until = Some(at(700));
        assert_eq!(state(false, None, None, at(0)), EntryState::Waiting);
        assert_eq!(state(false, until, None, at(700)), EntryState::Called);
        assert_eq!(state(false, until, None, at(701)), EntryState::Lapsed);
        assert_eq!(state(false, until, Some(at(650)), at(9_000)), EntryState::Called);
        assert_eq!(state(false, until, Some(at(750)), at(9_000)), EntryState::Lapsed);
        assert_eq!(state(true, until, None, at(9_000)), EntryState::Inside);
    }

    #[test]
    fn wishes_fit_together() {
        let wish = |party_size, accessible, companions| {
            check(&Preferences { party_size, price_level: None, accessible, companions }).is_ok()
        };
        assert!(wish(None, 0, 0) && wish(Some(3), 1, 2) && wish(None, 2, 2));
        assert!(!wish(Some(0), 0, 0) && !wish(Some(51), 0, 0) && !wish(Some(2), 1, 2) && !wish(Some(2), 0, 1));
        assert!(!wish(None, -1, 0));
    }
}
