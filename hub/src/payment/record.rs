//! An attempt's rows: itself, its calls, its refunds, as they are read and written down.
//!
//! Invariants
//! - A call is written down before it is made; a crash after it was noted as sent is a doubt.
//! - What goes back can't be more than came (`attempt_refund_within_capture`).

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{
    machine::{self, CallFacts, CallState, Facts, ReaderFacts, State},
    provider::{Answer, Call, Op},
};
use crate::db::Tx;

/// An attempt with what decides about it.
#[derive(Debug, Clone)]
pub struct Row {
    pub id: Uuid,
    pub order_id: Uuid,
    pub event_id: i64,
    pub hold_id: Uuid,
    pub amount_minor: i64,
    pub currency: String,
    pub payment_method: String,
    pub pi_id: Option<String>,
    pub state: State,
    pub version: i32,
    pub pokes: i32,
    pub tries: i32,
    pub unknown_since: Option<DateTime<Utc>>,
    pub hold_expires_at: DateTime<Utc>,
    /// From then on no confirmation starts.
    pub late_at: DateTime<Utc>,
    pub authorised_minor: Option<i64>,
    pub abandoned: bool,
    /// The reader that the card is held to.
    pub reader_id: Option<String>,
    pub now: DateTime<Utc>,
    pub call: Option<CallRow>,
    /// The call that tells the reader to stop.
    pub stop: Option<CallRow>,
    /// The refund that is under way.
    pub refund: Option<RefundRow>,
}

#[derive(Debug, Clone)]
pub struct CallRow {
    pub id: i64,
    pub call: Call,
    pub facts: CallFacts,
}

#[derive(Debug, Clone)]
pub struct RefundRow {
    pub id: Uuid,
    pub amount_minor: i64,
    pub provider_id: Option<String>,
    /// The provider has it: it is only asked about.
    pub asked_for: bool,
}

impl Row {
    pub fn facts(&self) -> Facts {
        Facts {
            state: self.state,
            now: self.now,
            hold_expires_at: self.hold_expires_at,
            margin: self.hold_expires_at - self.late_at,
            abandoned: self.abandoned,
            has_intent: self.pi_id.is_some(),
            call: self.call.as_ref().map(|c| c.facts),
            stray_refund: self.has_stray_refund(),
            reader: self.reader_id.is_some().then(|| ReaderFacts { stop: self.stop.as_ref().map(|c| c.facts) }),
            refund_asked_for: self.refund.as_ref().is_some_and(|r| r.asked_for),
        }
    }

    /// A refund whose life is not the attempt's: the attempt is decided, or waits for a person who has acted.
    pub fn has_stray_refund(&self) -> bool {
        self.refund.is_some() && (self.state.is_decided() || self.state == State::RefundFailed)
    }

    pub fn patience(&self) -> TimeDelta {
        machine::patience(self.tries, self.unknown_since.map_or(TimeDelta::zero(), |since| self.now - since))
    }
}

pub async fn load(pool: &PgPool, id: Uuid, margin: TimeDelta) -> anyhow::Result<Row> {
    let row = sqlx::query!(
        r#"select a.order_id, o.event_id, o.hold_id, a.amount_minor, a.currency, a.payment_method, a.pi_id, a.state,
                  a.version, a.pokes, a.tries, a.unknown_since, a.hold_expires_at, a.authorised_minor,
                  o.cancel_requested, a.reader_id, a.stop_requested, db_clock() as "now!"
           from attempt a join "order" o on o.id = a.order_id where a.id = $1"#,
        id
    )
    .fetch_one(pool)
    .await?;
    let refund = sqlx::query!(
        // What was not asked for yet comes first, then news, then those that are on their way, in turn.
        "select id, amount_minor, provider_id, state from refund
         where attempt_id = $1 and (state in ('pending', 'accepted') or look_at is not null)
         order by state <> 'pending', look_at nulls last, asked_at nulls first, created_at limit 1",
        id
    )
    .fetch_optional(pool)
    .await?;
    let mut loaded = Row {
        id,
        order_id: row.order_id,
        event_id: row.event_id,
        hold_id: row.hold_id,
        amount_minor: row.amount_minor,
        currency: row.currency,
        payment_method: row.payment_method,
        pi_id: row.pi_id,
        state: State::from_name(&row.state).ok_or_else(|| anyhow::anyhow!("no such state: {}", row.state))?,
        version: row.version,
        pokes: row.pokes,
        tries: row.tries,
        unknown_since: row.unknown_since,
        hold_expires_at: row.hold_expires_at,
        late_at: row.hold_expires_at - margin,
        authorised_minor: row.authorised_minor,
        abandoned: row.cancel_requested || row.stop_requested,
        reader_id: row.reader_id,
        now: row.now,
        call: None,
        stop: None,
        refund: refund.map(|r| RefundRow {
            id: r.id,
            amount_minor: r.amount_minor,
            provider_id: r.provider_id,
            asked_for: r.state != "pending",
        }),
    };
    let op = if loaded.has_stray_refund() { Op::Refund } else { loaded.state.op() };
    loaded.call = latest_call(pool, id, op, loaded.refund.as_ref().map(|r| r.id)).await?;
    if loaded.reader_id.is_some() {
        loaded.stop = latest_call(pool, id, Op::StopReader, None).await?;
    }
    Ok(loaded)
}

async fn latest_call(pool: &PgPool, id: Uuid, op: Op, refund: Option<Uuid>) -> sqlx::Result<Option<CallRow>> {
    let refund = refund.filter(|_| op == Op::Refund);
    let found = sqlx::query!(
        "select id, path, idem_key, body, state, http, replayed, sends, created_at, sent_at from provider_call
         where attempt_id = $1 and op = $2 and ($3::uuid is null or refund_id = $3) order by id desc limit 1",
        id,
        op.name(),
        refund
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
            sends: c.sends,
            created_at: c.created_at,
            sent_at: c.sent_at,
        },
    }))
}

/// How many calls of a kind an attempt has had.
pub async fn calls(pool: &PgPool, id: Uuid, op: Op) -> sqlx::Result<i32> {
    sqlx::query_scalar!(
        r#"select count(*)::int as "count!" from provider_call where attempt_id = $1 and op = $2"#,
        id,
        op.name()
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

/// Writes down that `amount_minor` is to go back. `attempt_refund_within_capture` says that it can't be more than came.
pub async fn new_refund(
    tx: &mut Tx,
    row: &Row,
    amount_minor: i64,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update attempt set captured_minor = greatest(captured_minor, $2) where id = $1",
        row.id,
        amount_minor
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        "insert into refund (id, attempt_id, tender_id, amount_minor, state, reason, created_at)
         select $1, id, tender_id, $3, 'pending', $4, $5 from attempt where id = $2",
        Uuid::now_v7(),
        row.id,
        amount_minor,
        reason,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// What became of a refund, as far as is known. `failure` is the provider's word for why not.
pub async fn update_refund(
    tx: &mut Tx,
    id: Uuid,
    state: &str,
    provider_id: Option<&str>,
    failure: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update refund set state = $2, provider_id = coalesce($3, provider_id), failure = coalesce($4, failure),
                look_at = null, asked_at = db_clock(),
                settled_at = case when $2 in ('succeeded', 'failed') then coalesce(settled_at, db_clock()) end
         where id = $1",
        id,
        state,
        provider_id,
        failure
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
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
        "with renewed as (
             update attempt set leased_until = db_clock() + make_interval(secs => $3)
             where id = $2 and leased_until is not null
         )
         update provider_call set state = $4, sends = sends + 1, sent_at = db_clock()
         where id = $1 and exists (select from attempt where id = $2 and version = $5)
           and ($6::timestamptz is null or db_clock() <= $6)",
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

/// The provider does not know the refund that the call asked for: it may be asked for again. Not if
/// somebody has sent it since it was read.
pub async fn renew_call(pool: &PgPool, call: &CallRow) -> sqlx::Result<()> {
    sqlx::query!(
        "update provider_call set state = 'prepared', created_at = db_clock() where id = $1 and sends = $2",
        call.id,
        call.facts.sends
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Whether more is to be seen to of the attempt's refunds, without waiting.
pub async fn has_refund_to_ask_for(tx: &mut Tx, attempt_id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists(select from refund where attempt_id = $1 and (state = 'pending' or look_at is not null)) as "has!""#,
        attempt_id
    )
    .fetch_one(&mut **tx)
    .await
}

/// Whether a refund of the attempt is on its way.
pub async fn has_refund_under_way(tx: &mut Tx, attempt_id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists(select from refund where attempt_id = $1 and state in ('pending', 'accepted')) as "has!""#,
        attempt_id
    )
    .fetch_one(&mut **tx)
    .await
}

/// Whether money of the attempt goes back, or went.
pub async fn has_refund(tx: &mut Tx, attempt_id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists(select from refund where attempt_id = $1 and state <> 'failed') as "has!""#,
        attempt_id
    )
    .fetch_one(&mut **tx)
    .await
}
