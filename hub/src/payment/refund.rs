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

use chrono::{DateTime, Utc};
use fullhouse_protocol::money::GivenBack;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    apportion::{ApportionError, Line, Parts, What, apportion},
    provider::money::{self, MoneyError},
    seats_back,
};
use crate::{
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
    pub actor: String,
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

/// Gives back, or finds what the same key gave back. Returns the request's id. Workers are to be woken after it.
pub async fn give_back(pool: &PgPool, ask: Ask) -> Result<Uuid, RefundError> {
    let pool = pool.clone();
    db::write(async move {
        let event_id = sqlx::query_scalar!(r#"select event_id from "order" where id = $1"#, ask.order_id)
            .fetch_optional(&pool)
            .await?
            .ok_or(RefundError::OrderUnknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        let request_id = give_back_in(&mut tx, event_id, &ask).await?;
        tx.commit().await?;
        Ok(request_id)
    })
    .await
}

/// [`give_back`] in the caller's transaction, which [`db::event_tx`] opened. A refusal writes nothing.
pub async fn give_back_in(tx: &mut Tx, event_id: i64, ask: &Ask) -> Result<Uuid, RefundError> {
    let order = sqlx::query!(r#"select state, currency from "order" where id = $1 for no key update"#, ask.order_id)
        .fetch_one(&mut **tx)
        .await?;
    let body_hash = body_hash(ask);
    let before = sqlx::query!(
        "select id, body_hash from refund_request where order_id = $1 and key = $2",
        ask.order_id,
        ask.key
    )
    .fetch_optional(&mut **tx)
    .await?;
    match before {
        Some(before) if before.body_hash == body_hash => return Ok(before.id),
        Some(_) => return Err(RefundError::KeyReused),
        None => {}
    }
    if let Some(id) = super::attempt::live(tx, ask.order_id).await? {
        return Err(RefundError::AttemptLive(id));
    }
    if order.state != "confirmed" {
        return Err(RefundError::OrderNotPaid(order.state));
    }
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
    let now = clock::now(tx).await?;
    let request_id = record(tx, event_id, ask, &body_hash, &parts, now).await?;
    for flow in &flows {
        let refund_id = move_money(tx, Some(request_id), &ask.reason, flow, now).await?;
        if !ask.called_off {
            tell(tx, ask.order_id, refund_id).await?; // or the event's own mail says it
        }
    }
    if let Some(become_) = ask.seats_become.filter(|_| !parts.seats.is_empty()) {
        let why = if ask.called_off { "called_off" } else { "refunded" };
        let taken = seats_back::Taken { event_id, order_id: ask.order_id, seats: &parts.seats, why };
        seats_back::take_back(tx, taken, become_, &ask.reason, &ask.actor, now).await?;
        seats_back::close_if_empty(tx, ask.order_id, why).await?;
    }
    let said = format!("{} {} given back: {}", parts.total(), order.currency, ask.reason);
    log::note(tx, ask.order_id, "refund", &said, &ask.actor, now).await?;
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

/// Where money of the order is: a card's captured attempt, or a tender in the drawer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    tender_id: Uuid,
    kind: String,
    attempt_id: Option<Uuid>,
    left_minor: i64,
}

/// Where the money of an order is: its own, then what came with an exchange, the way it came to the order before
/// (which may have been an exchange's as well).
async fn sources(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Vec<Source>> {
    let mut sources = own_sources(tx, order_id).await?;
    let (mut order, mut left, mut credited_to) = (order_id, i64::MAX, None);
    while let Some(credit) = credit_of(tx, order).await? {
        left = left.min(credit.left_minor);
        let tender_id = *credited_to.get_or_insert(credit.tender_id);
        // Before its attempts, as everywhere.
        sqlx::query!(r#"select id from "order" where id = $1 for no key update"#, credit.from_order)
            .fetch_one(&mut **tx)
            .await?;
        for source in own_sources(tx, credit.from_order).await? {
            let part = source.left_minor.min(left);
            left -= part;
            sources.push(Source { tender_id, left_minor: part, ..source });
        }
        order = credit.from_order;
    }
    Ok(sources)
}

/// What an order was paid with by exchange, as far as it did not go back.
struct Credit {
    tender_id: Uuid,
    from_order: Uuid,
    left_minor: i64,
}

async fn credit_of(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Option<Credit>> {
    sqlx::query_as!(
        Credit,
        r#"select t.id as tender_id, w.from_order,
                  t.amount_minor - coalesce((select sum(r.amount_minor) from refund r
                      where r.tender_id = t.id and r.state <> 'failed'), 0)::bigint as "left_minor!"
           from tender t join order_swap w on w.to_order = t.order_id
           where t.order_id = $1 and t.kind = 'exchange' and t.amount_minor > 0"#,
        order_id
    )
    .fetch_optional(&mut **tx)
    .await
}

/// Cards first, then cash, then what was given away. Their rows are locked: two clicks follow one another.
async fn own_sources(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Vec<Source>> {
    let mut sources = sqlx::query_as!(
        Source,
        r#"select tender_id, 'card' as "kind!", id as "attempt_id?", captured_minor - refunded_minor as "left_minor!"
           from attempt where order_id = $1 and state = 'captured' and installation = installation_id()
           order by created_at, id for no key update"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let others = sqlx::query_as!(
        Source,
        r#"select id as tender_id, kind as "kind!", null::uuid as "attempt_id?", amount_minor - refunded_minor as "left_minor!"
           from tender where order_id = $1 and kind not in ('card', 'exchange') order by kind, created_at, id for no key update"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    // Sold for more than the card was made to give: of the rest there is nothing to hand over but the record.
    let never_taken = sqlx::query_as!(
        Source,
        r#"select a.tender_id, 'comp' as "kind!", null::uuid as "attempt_id?",
                  a.amount_minor - a.captured_minor - coalesce((select sum(r.amount_minor) from refund r
                      where r.tender_id = a.tender_id and r.kind = 'comp' and r.state <> 'failed'), 0)::bigint as "left_minor!"
           from attempt a where a.order_id = $1 and a.state = 'captured' and a.captured_minor < a.amount_minor
             and a.installation = installation_id()"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    sources.extend(["cash", "voucher", "comp"].iter().flat_map(|k| others.iter().filter(|s| s.kind == *k).cloned()));
    sources.extend(never_taken);
    Ok(sources)
}

#[derive(Debug, PartialEq, Eq)]
struct Flow<'a> {
    source: &'a Source,
    amount_minor: i64,
}

/// Takes an amount from the sources in turn. The error is what there is.
fn divide(sources: &[Source], amount_minor: i64) -> Result<Vec<Flow<'_>>, i64> {
    let mut missing = amount_minor;
    let mut flows = Vec::new();
    for source in sources {
        let part = source.left_minor.min(missing);
        if part > 0 {
            flows.push(Flow { source, amount_minor: part });
            missing -= part;
        }
    }
    if missing > 0 { Err(amount_minor - missing) } else { Ok(flows) }
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
        ask.actor,
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

/// A worker looks at the attempt at once; one that is at it looks once more.
pub(super) async fn poke(tx: &mut Tx, attempt_id: Uuid, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!("update attempt set pokes = pokes + 1, next_run_at = $2 where id = $1", attempt_id, now)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// What a request gave back, and how far its money is.
pub async fn given_back(pool: &PgPool, request_id: Uuid) -> sqlx::Result<Option<GivenBack>> {
    let Some(q) = sqlx::query!(
        r#"select q.amount_minor, o.currency, q.seat_nos, q.seats_become, q.reason, q.actor, q.created_at
           from refund_request q join "order" o on o.id = q.order_id where q.id = $1"#,
        request_id
    )
    .fetch_optional(pool)
    .await?
    else {
        return Ok(None);
    };
    let refunds = sqlx::query_as!(
        fullhouse_protocol::money::Refund,
        "select id, kind, amount_minor, state, failure, replaced_by from refund where request_id = $1 order by created_at, id",
        request_id
    )
    .fetch_all(pool)
    .await?;
    Ok(Some(GivenBack {
        request_id,
        amount_minor: q.amount_minor,
        currency: q.currency,
        seats: q.seat_nos,
        seats_become: q.seats_become.as_deref().and_then(seats_become),
        reason: q.reason,
        actor: q.actor,
        created_at: q.created_at,
        refunds,
    }))
}

/// Everything that was given back of an order, the oldest first.
pub async fn given_back_of(pool: &PgPool, order_id: Uuid) -> sqlx::Result<Vec<GivenBack>> {
    let ids = sqlx::query_scalar!(
        "select id from refund_request where order_id = $1 order by created_at, id limit 200",
        order_id
    )
    .fetch_all(pool)
    .await?;
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        all.extend(given_back(pool, id).await?);
    }
    Ok(all)
}

fn seats_become(name: &str) -> Option<fullhouse_protocol::money::SeatsBecome> {
    use fullhouse_protocol::money::SeatsBecome as Wire;
    match name {
        "on_sale" => Some(Wire::OnSale),
        "house" => Some(Wire::House),
        "dead" => Some(Wire::Dead),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: &str, left_minor: i64) -> Source {
        let attempt_id = (kind == "card").then(Uuid::nil);
        Source { tender_id: Uuid::nil(), kind: kind.into(), attempt_id, left_minor }
    }

    #[test]
    fn money_goes_back_the_way_it_came_and_no_further() {
        let sources = [source("card", 5_000), source("card", 0), source("cash", 2_000)];
        let amounts = |asked| divide(&sources, asked).map(|f| f.iter().map(|f| f.amount_minor).collect::<Vec<_>>());
        assert_eq!(amounts(0), Ok(vec![]));
        assert_eq!(amounts(4_999), Ok(vec![4_999]));
        assert_eq!(amounts(6_000), Ok(vec![5_000, 1_000]));
        assert_eq!(amounts(7_001), Err(7_000));
    }

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
