//! Staff give money back: all of an order, some of its seats, or an amount; and say what becomes of the seats.
//!
//! Invariants
//! - A refund belongs to the order and its lines, never to the seat: a seat may be sold and given back again and again.
//! - A second click finds the first (`refund_request_key_once`); no line gives back more than it was
//!   (`order_line_refund_within_amount`), and nothing more than was captured (`attempt_refund_within_capture`,
//!   `tender_refund_within_amount`), counted by the database where the rows are written.
//! - Money goes back the way it came: to the card by a worker, out of the drawer at once, and of what was
//!   given away nothing but the record. What the provider refuses stays on the list until somebody has seen to it.
//! - Seats, tickets, money and outbox row are one transaction under the event's lock.
//!
//! Locks in order: the event, the order, its attempts and tenders, the seats.

mod sources; // where the money is
mod view; // what was given back

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use self::sources::{Flow, divide, sources};
pub use self::view::{given_back, given_back_of};
use super::{
    apportion::{ApportionError, Line, Parts, What, apportion},
    order::{self, KeyReused, Unpaid},
    provider::money::{self, MoneyError},
    seats_back,
};
use crate::{
    auth::Actor,
    checkout::log,
    clock,
    db::{self, Tx},
    mail,
};

pub use super::seats_back::SeatsBecome;

/// What somebody asks for.
#[derive(Debug, Clone)]
pub struct Ask {
    pub order_id: Uuid,
    /// The client's own key: the same click twice is one refund.
    pub key: String,
    pub what: What,
    /// Needed if seats go back.
    pub seats_become: Option<SeatsBecome>,
    pub reason: String,
    pub actor: Actor,
    /// The event does not take place: the order is cancelled for that.
    pub called_off: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RefundError {
    #[error("there is no such order")]
    OrderUnknown,
    #[error("the key was used for another request")]
    KeyReused,
    /// Not sold, or given back already.
    #[error("the order is {0}")]
    OrderNotPaid(String),
    /// Its money is on its way to us still: in a moment it can be given back.
    #[error("attempt {0} is under way")]
    AttemptLive(Uuid),
    #[error("say what becomes of the seats")]
    SeatsNeedFate,
    #[error(transparent)]
    Apportion(#[from] ApportionError),
    #[error("the provider can't be asked for this amount")]
    Money(#[from] MoneyError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl From<Unpaid> for RefundError {
    fn from(unpaid: Unpaid) -> Self {
        match unpaid {
            Unpaid::AttemptLive(id) => Self::AttemptLive(id),
            Unpaid::State(state) => Self::OrderNotPaid(state),
            Unpaid::Database(error) => Self::Database(error),
        }
    }
}

impl From<KeyReused> for RefundError {
    fn from(_: KeyReused) -> Self {
        Self::KeyReused
    }
}

/// Gives back, or finds what the same key gave back. Returns the request's id. Workers are to be woken after it.
pub async fn give_back(pool: &PgPool, ask: Ask) -> Result<Uuid, RefundError> {
    let pool = pool.clone();
    db::write(async move {
        let (mut tx, event_id) = order::open(&pool, ask.order_id).await?.ok_or(RefundError::OrderUnknown)?;
        let request_id = give_back_in(&mut tx, event_id, &ask).await?;
        tx.commit().await?;
        Ok(request_id)
    })
    .await
}

/// [`give_back`] in the caller's transaction, which [`db::event_tx`] opened. A refusal writes nothing.
pub async fn give_back_in(tx: &mut Tx, event_id: i64, ask: &Ask) -> Result<Uuid, RefundError> {
    let order = order::lock(tx, ask.order_id).await?;
    let body_hash = body_hash(ask);
    let before = sqlx::query!(
        "select id, body_hash from refund_request where order_id = $1 and key = $2",
        ask.order_id,
        ask.key
    )
    .fetch_optional(&mut **tx)
    .await?
    .map(|before| (before.body_hash, before.id));
    if let Some(request_id) = order::same(before, &body_hash)? {
        return Ok(request_id);
    }
    order.is_paid(tx).await?;
    let sources = sources(tx, ask.order_id).await?;
    let step = if sources.iter().any(|s| s.attempt_id.is_some()) { money::step(&order.currency)? } else { 1 };
    let parts = apportion(&lines(tx, ask.order_id).await?, &ask.what, step)?;
    if !parts.seats.is_empty() && ask.seats_become.is_none() {
        return Err(RefundError::SeatsNeedFate);
    }
    let flows = divide(&sources, parts.total()).map_err(|left_minor| ApportionError::MoreThanIsLeft { left_minor })?;
    for flow in flows.iter().filter(|f| f.source.attempt_id.is_some()) {
        money::to_provider(&order.currency, flow.amount_minor)?;
    }

    // From here on everything must succeed, or the transaction fails as a whole.
    ask.actor.acts(tx).await?;
    let now = clock::now(tx).await?;
    let request_id = record(tx, event_id, ask, &body_hash, &parts, now).await?;
    for flow in &flows {
        let refund_id = move_money(tx, Some(request_id), &ask.reason, flow, now).await?;
        if !ask.called_off {
            tell(tx, ask.order_id, refund_id).await?; // or the event's own mail says it
        }
    }
    let why = if ask.called_off { "called_off" } else { "refunded" };
    if let Some(become_) = ask.seats_become.filter(|_| !parts.seats.is_empty()) {
        let taken = seats_back::Taken { event_id, order_id: ask.order_id, seats: &parts.seats, why };
        seats_back::take_back(tx, taken, become_, &ask.reason, ask.actor.name(), now).await?;
    }
    // Also one whose seats were exchanged away before, and that kept its fees.
    if !parts.seats.is_empty() || ask.what == What::All {
        seats_back::close_if_empty(tx, ask.order_id, why).await?;
    }
    let said = format!("{} {} given back: {}", parts.total(), order.currency, ask.reason);
    log::note(tx, ask.order_id, "refund", &said, ask.actor.name(), now).await?;
    Ok(request_id)
}

/// The same, asked for less than a minute ago under another key: then somebody may have typed it twice. That key.
pub async fn just_given_back(pool: &PgPool, ask: &Ask) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "select key from refund_request
         where order_id = $1 and body_hash = $2 and created_at > db_clock() - interval '1 minute' and key <> $3
         order by created_at desc limit 1",
        ask.order_id,
        body_hash(ask),
        ask.key
    )
    .fetch_optional(pool)
    .await
}

/// Over what the request means, not over who sent it or how it was written.
fn body_hash(ask: &Ask) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(format!("{:?} {:?}", ask.what, ask.seats_become));
    hash.finalize().to_vec()
}

/// The order's lines as they stand, in the order in which they were written; not those of seats that were exchanged.
pub(super) async fn lines(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Vec<Line>> {
    sqlx::query_as!(
        Line,
        r#"select id, seat_no, amount_minor, refunded_minor, (state <> 'sold') as "gone!" from order_line
           where order_id = $1 and state in ('sold', 'void') order by id"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await
}

pub(super) async fn record(
    tx: &mut Tx,
    event_id: i64,
    ask: &Ask,
    body_hash: &[u8],
    parts: &Parts,
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let request_id = sqlx::query_scalar!(
        "insert into refund_request (id, order_id, event_id, key, body_hash, amount_minor, seat_nos, seats_become, reason, actor, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning id",
        Uuid::now_v7(),
        ask.order_id,
        event_id,
        ask.key,
        body_hash,
        parts.total(),
        &parts.seats,
        ask.seats_become.filter(|_| !parts.seats.is_empty()).map(SeatsBecome::name),
        ask.reason,
        ask.actor.name(),
        now
    )
    .fetch_one(&mut **tx)
    .await?;
    let (ids, amounts): (Vec<i64>, Vec<i64>) = parts.lines.iter().copied().unzip();
    let written = sqlx::query!(
        "insert into refund_line (request_id, order_line_id, amount_minor)
         select $1, u.line, u.amount from unnest($2::bigint[], $3::bigint[]) as u(line, amount)",
        request_id,
        &ids,
        &amounts
    )
    .execute(&mut **tx)
    .await?;
    if written.rows_affected() != ids.len() as u64 {
        return Err(sqlx::Error::Protocol(format!("{} of {} lines written", written.rows_affected(), ids.len())));
    }
    Ok(request_id)
}

/// A card's money is asked for by a worker; the drawer's is handed over as this is written.
async fn move_money(
    tx: &mut Tx,
    request_id: Option<Uuid>,
    reason: &str,
    flow: &Flow<'_>,
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let card = flow.source.attempt_id.is_some();
    let refund_id = Uuid::now_v7();
    sqlx::query!(
        "insert into refund (id, attempt_id, tender_id, request_id, kind, amount_minor, state, reason, created_at, settled_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        refund_id,
        flow.source.attempt_id,
        flow.source.tender_id,
        request_id,
        flow.source.kind,
        flow.amount_minor,
        if card { "pending" } else { "succeeded" },
        reason,
        now,
        (!card).then_some(now)
    )
    .execute(&mut **tx)
    .await?;
    if let Some(attempt_id) = flow.source.attempt_id {
        poke(tx, attempt_id, now).await?;
    }
    Ok(refund_id)
}

/// The buyer hears of it by mail, unless it has failed by then.
async fn tell(tx: &mut Tx, order_id: Uuid, refund_id: Uuid) -> sqlx::Result<()> {
    mail::enqueue(tx, mail::Kind::Refunded, order_id, &refund_id.to_string()).await
}

/// An order has become cheaper: the difference goes back, the way the money came. No line gives it; the
/// order's total has changed.
pub(super) async fn give_back_difference(
    tx: &mut Tx,
    order_id: Uuid,
    currency: &str,
    amount_minor: i64,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<(), RefundError> {
    let sources = sources(tx, order_id).await?;
    let flows = divide(&sources, amount_minor).map_err(|left_minor| ApportionError::MoreThanIsLeft { left_minor })?;
    for flow in &flows {
        if flow.source.attempt_id.is_some() {
            money::to_provider(currency, flow.amount_minor)?;
        }
        let refund_id = move_money(tx, None, reason, flow, now).await?;
        tell(tx, order_id, refund_id).await?;
    }
    Ok(())
}

/// How so much of an order would go back now: kinds of money, with how much of each.
pub(super) async fn ways_back(
    tx: &mut Tx,
    order_id: Uuid,
    amount_minor: i64,
) -> Result<Vec<(String, i64)>, RefundError> {
    let sources = sources(tx, order_id).await?;
    let flows = divide(&sources, amount_minor).map_err(|left_minor| ApportionError::MoreThanIsLeft { left_minor })?;
    let mut ways: Vec<(String, i64)> = Vec::new();
    for flow in flows {
        match ways.iter_mut().find(|(kind, _)| *kind == flow.source.kind) {
            Some((_, amount)) => *amount += flow.amount_minor,
            None => ways.push((flow.source.kind.clone(), flow.amount_minor)),
        }
    }
    Ok(ways)
}

/// A worker looks at the attempt at once; one that is at it looks once more.
pub(super) async fn poke(tx: &mut Tx, attempt_id: Uuid, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!("update attempt set pokes = pokes + 1, next_run_at = $2 where id = $1", attempt_id, now)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_wish_has_the_same_hash_whoever_says_it() {
        let ask = |what, become_| Ask {
            order_id: Uuid::nil(),
            key: "k".into(),
            what,
            seats_become: become_,
            reason: "r".into(),
            actor: "a".into(),
            called_off: false,
        };
        let all = ask(What::All, Some(SeatsBecome::OnSale));
        assert_eq!(body_hash(&all), body_hash(&Ask { actor: "b".into(), ..all.clone() }));
        assert_ne!(body_hash(&all), body_hash(&ask(What::All, Some(SeatsBecome::Dead))));
        assert_ne!(body_hash(&ask(What::Amount(1), None)), body_hash(&ask(What::Amount(2), None)));
    }
}
