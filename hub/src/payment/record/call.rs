//! Calls, as they are written down: before they are made, as they leave, and what came back.
//!
//! Invariants
//! - A call leaves only for the attempt as it was read: its version is asked for by the statement that notes it as sent.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Row;
use crate::{
    db::Tx,
    payment::{
        machine::{CallFacts, CallState},
        provider::{Answer, Call, Op},
    },
};

#[derive(Debug, Clone)]
pub struct CallRow {
    pub id: i64,
    pub call: Call,
    pub facts: CallFacts,
    /// The provider's word for why not, if its last answer was no.
    pub refusal: Option<String>,
}

/// The latest of a kind; of refunds, the latest of this one.
pub async fn latest_call(pool: &PgPool, id: Uuid, op: Op, refund: Option<Uuid>) -> sqlx::Result<Option<CallRow>> {
    let refund = refund.filter(|_| op == Op::Refund);
    let gone = GONE.map(str::to_owned);
    let found = sqlx::query!(
        r#"select id, path, idem_key, body, state, http, replayed, sends, created_at, sent_at,
                  coalesce(nullif(answer #>> '{error,decline_code}', ''), nullif(answer #>> '{error,code}', ''),
                           answer #>> '{error,type}') as refusal,
                  coalesce(http between 400 and 499 and answer #>> '{error,code}' = any($4), false) as "gone!"
           from provider_call
           where attempt_id = $1 and op = $2 and ($3::uuid is null or refund_id = $3) order by id desc limit 1"#,
        id,
        op.name(),
        refund,
        &gone[..]
    )
    .fetch_optional(pool)
    .await?;
    Ok(found.map(|c| CallRow {
        id: c.id,
        call: Call { op, path: c.path, idem_key: c.idem_key, body: c.body },
        facts: CallFacts {
            state: match c.state.as_str() {
                "prepared" => CallState::Prepared,
                "sent" => CallState::Sent,
                "answered" => CallState::Answered,
                _ => CallState::Unknown,
            },
            http: c.http.and_then(|s| u16::try_from(s).ok()),
            replayed: c.replayed,
            gone: c.gone,
            sends: c.sends,
            created_at: c.created_at,
            sent_at: c.sent_at,
        },
        refusal: c.refusal,
    }))
}

/// The provider's words for a reservation that is gone for good.
const GONE: [&str; 1] = ["charge_expired_for_capture"];

/// How many calls of a kind an attempt has had; of refunds, how many this one.
pub async fn calls(pool: &PgPool, id: Uuid, op: Op, refund: Option<Uuid>) -> sqlx::Result<i32> {
    let refund = refund.filter(|_| op == Op::Refund);
    sqlx::query_scalar!(
        r#"select count(*)::int as "count!" from provider_call
           where attempt_id = $1 and op = $2 and ($3::uuid is null or refund_id = $3)"#,
        id,
        op.name(),
        refund
    )
    .fetch_one(pool)
    .await
}

/// How the provider did: what the circuit breaker reads.
#[derive(Debug, Clone, Copy)]
pub struct How {
    op: Op,
    ok: bool,
    took_ms: i32,
}

impl How {
    pub fn of(op: Op, answer: &Answer) -> Self {
        Self { op, ok: answer.was_served(), took_ms: i32::try_from(answer.took.as_millis()).unwrap_or(i32::MAX) }
    }
}

pub async fn note_how(db: &mut PgConnection, how: How) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into provider_answer (at, op, ok, took_ms) values (db_clock(), $1, $2, $3)",
        how.op.name(),
        how.ok,
        how.took_ms
    )
    .execute(db)
    .await?;
    Ok(())
}

/// How a call went, as it is written down.
#[derive(Debug)]
pub struct Written {
    pub call_id: i64,
    pub how: How,
    pub state: CallState,
    pub http: Option<u16>,
    pub body: Option<Value>,
    pub request_id: Option<String>,
    pub replayed: bool,
}

/// Writes a call down before it is made. A key that was used fails on `provider_call_key_once`.
pub async fn write_call(
    tx: &mut Tx,
    attempt_id: Uuid,
    refund_id: Option<Uuid>,
    call: &Call,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into provider_call (attempt_id, refund_id, op, path, idem_key, body, state, created_at)
         values ($1, $2, $3, $4, $5, $6, 'prepared', $7)",
        attempt_id,
        refund_id,
        call.op.name(),
        call.path,
        call.idem_key,
        call.body,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Notes that a call is about to leave, in a commit of its own, and renews the worker's lease.
/// A crash after this is a doubt. False: it may not leave, since the attempt has moved on, or too little
/// of the hold is left by now for a confirmation to start; nothing was noted.
pub async fn note_sent(pool: &PgPool, row: &Row, call_id: i64, lease: TimeDelta) -> sqlx::Result<bool> {
    let (lease, sent) = (lease.num_milliseconds() as f64 / 1000.0, "sent");
    let confirms = row.call.as_ref().is_some_and(|c| c.id == call_id && c.call.op == Op::Confirm);
    let noted = sqlx::query!(
        // The attempt's row is locked, so that its version is the one of now, and not of this statement's beginning.
        "with same as (
             select id from attempt where id = $2 and version = $5 for no key update
         ), renewed as (
             update attempt set leased_until = db_clock() + make_interval(secs => $3)
             where id in (select id from same) and leased_until is not null
         )
         update provider_call set state = $4, sends = sends + 1, sent_at = db_clock()
         where id = $1 and exists (select from same) and ($6::timestamptz is null or db_clock() <= $6)",
        call_id,
        row.id,
        lease,
        sent,
        row.version,
        confirms.then_some(row.late_at),
    )
    .execute(pool)
    .await?;
    Ok(noted.rows_affected() == 1)
}

/// A read is written down as it leaves: asking twice harms nobody.
pub async fn note_read(pool: &PgPool, attempt_id: Uuid, call: &Call, lease: TimeDelta) -> sqlx::Result<i64> {
    let lease = lease.num_milliseconds() as f64 / 1000.0;
    sqlx::query_scalar!(
        "with renewed as (
             update attempt set leased_until = db_clock() + make_interval(secs => $5)
             where id = $1 and leased_until is not null
         )
         insert into provider_call (attempt_id, op, path, body, state, sends, sent_at, created_at)
         values ($1, $2, $3, $4, 'sent', 1, db_clock(), db_clock()) returning id",
        attempt_id,
        call.op.name(),
        call.path,
        call.body,
        lease,
    )
    .fetch_one(pool)
    .await
}

pub async fn write_answer(tx: &mut Tx, written: &Written) -> sqlx::Result<()> {
    let state = match written.state {
        CallState::Prepared => "prepared",
        CallState::Sent => "sent",
        CallState::Answered => "answered",
        CallState::Unknown => "unknown",
    };
    sqlx::query!(
        // Not sent by us is not the same as never sent: another worker may have been at it meanwhile.
        "update provider_call set state = case when $2 = 'prepared' and sends > 1 then 'unknown' else $2 end,
                http = coalesce($3, http), answer = coalesce($4, answer),
                request_id = coalesce($5, request_id), replayed = $6,
                sends = case when $2 = 'prepared' then greatest(sends - 1, 0) else sends end
         where id = $1",
        written.call_id,
        state,
        written.http.map(i32::from),
        written.body,
        written.request_id,
        written.replayed,
    )
    .execute(&mut **tx)
    .await?;
    note_how(tx, written.how).await
}

/// Whether nobody has sent the call since it was read. The attempt is locked: nobody will meanwhile.
pub async fn is_as_read(tx: &mut Tx, call: &CallRow) -> sqlx::Result<bool> {
    let sends =
        sqlx::query_scalar!("select sends from provider_call where id = $1", call.id).fetch_one(&mut **tx).await?;
    Ok(sends == call.facts.sends)
}

/// The provider does not have what the call asked for: it may be asked for again, under the same key.
pub async fn renew_call(tx: &mut Tx, call: &CallRow) -> sqlx::Result<()> {
    sqlx::query!("update provider_call set state = 'prepared', created_at = db_clock() where id = $1", call.id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
