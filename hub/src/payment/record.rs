//! An attempt's rows: itself, its calls, its refunds, as they are read and written down.
//!
//! Invariants
//! - A call is written down before it is made; a crash after it was noted as sent is a doubt.
//! - What goes back can't be more than came (`attempt_refund_within_capture`).

mod call; // its calls
mod refund; // its refunds

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use uuid::Uuid;

pub use self::{call::*, refund::*};
use super::{
    machine::{self, Facts, ReaderFacts, State},
    provider::Op,
};

/// An attempt with what decides about it.
#[derive(Debug, Clone)]
pub struct Row {
    pub id: Uuid,
    /// The house that it belongs to.
    pub installation: Uuid,
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

    /// The call in question is one for a refund.
    pub fn refund_op(&self) -> bool {
        self.has_stray_refund() || self.state.op() == Op::Refund
    }

    pub fn patience(&self) -> TimeDelta {
        machine::patience(self.tries, self.unknown_since.map_or(TimeDelta::zero(), |since| self.now - since))
    }
}

pub async fn load(pool: &PgPool, id: Uuid, margin: TimeDelta) -> anyhow::Result<Row> {
    let row = sqlx::query!(
        r#"select a.installation, a.order_id, o.event_id, o.hold_id, a.amount_minor, a.currency, a.payment_method, a.pi_id, a.state,
                  a.version, a.pokes, a.tries, a.unknown_since, a.hold_expires_at, a.authorised_minor,
                  o.cancel_requested, a.reader_id, a.stop_requested, db_clock() as "now!"
           from attempt a join "order" o on o.id = a.order_id where a.id = $1"#,
        id
    )
    .fetch_one(pool)
    .await?;
    let refund = to_see_to(pool, id).await?;
    let mut loaded = Row {
        id,
        installation: row.installation,
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
        refund,
    };
    let op = if loaded.refund_op() { Op::Refund } else { loaded.state.op() };
    loaded.call = latest_call(pool, id, op, loaded.refund.as_ref().map(|r| r.id)).await?;
    if loaded.reader_id.is_some() {
        loaded.stop = latest_call(pool, id, Op::StopReader, None).await?;
    }
    Ok(loaded)
}
