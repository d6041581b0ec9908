//! A whole event is called off: the sale stops at once, holds are released, every order is given back.
//!
//! Invariants
//! - After [`begin`] nobody holds or buys: the sale's state changes in the transaction that lets holds go.
//! - Each order is its own transaction under one fixed key, and has one result: going on after a crash,
//!   or being told twice, gives nothing back twice.
//! - What the provider refuses is listed, and does not stop the others. Told once more, it is tried once more.

use chrono::{DateTime, Utc};
use fullhouse_protocol::{
    money::{CalledOff, CalledOffOrder},
    seat::Status,
};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{
    apportion::What,
    attempt, due,
    owed::{self, Instead, RetryError},
    refund::{self, Ask, RefundError, SeatsBecome},
};
use crate::{
    clock,
    db::{self, Tx},
    mail,
    outbox::{self, SeatChange},
};

/// The key of the refund that an order gets for it: there is one.
const KEY: &str = "event-called-off";
/// Orders that one round goes through.
const ROUND: i64 = 200;

#[derive(Debug, thiserror::Error)]
pub enum CallOffError {
    #[error("there is no such event")]
    EventUnknown,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Why an event is called off.
#[derive(Debug, Clone)]
pub struct Why {
    /// For staff.
    pub reason: String,
    /// For everybody.
    pub public_reason: Option<String>,
    pub actor: String,
}

/// Stops the sale and lets holds go. Told again, what was refused is tried once more.
pub async fn begin(pool: &PgPool, event_id: i64, why: Why) -> Result<(), CallOffError> {
    let pool = pool.clone();
    db::write(async move {
        let mut tx = db::event_tx(&pool, event_id).await?;
        let stopped =
            sqlx::query!("update event set sale_state = 'cancelled' where id = $1", event_id).execute(&mut *tx).await?;
        if stopped.rows_affected() == 0 {
            return Err(CallOffError::EventUnknown);
        }
        let now = clock::now(&mut tx).await?;
        sqlx::query!(
            "insert into event_cancellation as c (event_id, reason, public_reason, actor, started_at) values ($1, $2, $3, $4, $5)
             on conflict (event_id) do update
             set finished_at = null, public_reason = coalesce(excluded.public_reason, c.public_reason)",
            event_id,
            why.reason,
            why.public_reason,
            why.actor,
            now
        )
        .execute(&mut *tx)
        .await?;
        list_orders(&mut tx, event_id, now).await?;
        stop_payments(&mut tx, event_id, now).await?;
        let_holds_go(&mut tx, event_id, now).await?;
        tx.commit().await?;
        retry_failed(&pool, event_id, &why.actor).await?;
        Ok(())
    })
    .await
}

/// Whatever is open now has a row, and so a result, however soon it ends by itself.
async fn list_orders(tx: &mut Tx, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        r#"insert into event_cancellation_order (event_id, order_id, result, detail, updated_at)
           select event_id, id, 'waiting', 'not gone through yet', $2 from "order"
           where event_id = $1 and state in ('open', 'confirmed', 'payment_due')
           on conflict (event_id, order_id) do nothing"#,
        event_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Payments that are under way are resolved and let go; orders without one are over.
async fn stop_payments(tx: &mut Tx, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update "order" set cancel_requested = true where event_id = $1 and state in ('open', 'payment_due')"#,
        event_id
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        r#"update "order" o set state = 'cancelled', cancel_reason = 'called_off' where event_id = $1 and state = 'open' and not exists (
               select from attempt a where a.order_id = o.id
                 and a.state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded'))"#,
        event_id
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        r#"update attempt set pokes = pokes + 1, next_run_at = $2 where state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')
             and order_id in (select id from "order" where event_id = $1 and state in ('open', 'payment_due'))"#,
        event_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// All holds but those that a payment still freezes; those end when it is resolved.
async fn let_holds_go(tx: &mut Tx, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<()> {
    let ended = sqlx::query_scalar!(
        "update hold set state = 'released', ended_at = $2, version = version + 1
         where event_id = $1 and state = 'live' and attempt_id is null returning id",
        event_id,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    // What a partner had to sell, it has no more.
    sqlx::query!(
        "update consignment_seat s set state = 'returned', changed_at = $2
         from consignment c where c.id = s.consignment_id and c.hold_id = any($1) and s.state = 'out'",
        &ended,
        now
    )
    .execute(&mut **tx)
    .await?;
    let freed = sqlx::query!(
        "update event_seat set status = 0, hold_id = null, held_until = null, version = version + 1
         where event_id = $1 and status = 1 and hold_id = any($2) returning seat_no, version",
        event_id,
        &ended
    )
    .fetch_all(&mut **tx)
    .await?;
    let changes: Vec<SeatChange> = freed
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Available, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// Each in a transaction of its own: what can't be tried again stays refused, and stops no other.
async fn retry_failed(pool: &PgPool, event_id: i64, actor: &str) -> sqlx::Result<()> {
    let failed = sqlx::query_scalar!(
        "select r.id from refund r join refund_request q on q.id = r.request_id
         where q.event_id = $1 and q.key = $2 and r.state = 'failed' and r.replaced_by is null order by r.id",
        event_id,
        KEY
    )
    .fetch_all(pool)
    .await?;
    for refund_id in failed {
        let reason = "the event is called off".to_owned();
        match owed::retry(pool, refund_id, Instead::Card, reason, actor.into()).await {
            Err(RetryError::Database(error)) if db::constraint(&error).is_none() => return Err(error),
            Err(refused) => tracing::warn!(refund.id = %refund_id, reason = %refused, "a refund is not tried again"),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Events that are not gone through yet.
pub async fn unfinished(pool: &PgPool) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar!("select event_id from event_cancellation where finished_at is null order by started_at")
        .fetch_all(pool)
        .await
}

/// One round: orders that have no final result yet, each in a transaction of its own. Returns whether
/// something was given back, so that another round may find more.
pub async fn go_on(pool: &PgPool, event_id: i64) -> sqlx::Result<bool> {
    let told = sqlx::query!("select reason, actor from event_cancellation where event_id = $1", event_id)
        .fetch_one(pool)
        .await?;
    let open = sqlx::query_scalar!(
        r#"select o.id from "order" o left join event_cancellation_order c on c.event_id = o.event_id and c.order_id = o.id
           where o.event_id = $1 and (o.state in ('open', 'confirmed', 'payment_due') or c.result = 'waiting')
             and c.result is distinct from 'given_back'
           order by c.updated_at nulls first, o.id limit $2"#,
        event_id,
        ROUND
    )
    .fetch_all(pool)
    .await?;
    let mut progress = false;
    let mut left = false;
    for order_id in open {
        let (own, reason, actor) = (pool.clone(), told.reason.clone(), told.actor.clone());
        let result = match db::write(async move { one(&own, event_id, order_id, reason, actor).await }).await {
            // What the database itself refuses of one order stops no other.
            Err(error) if db::constraint(&error).is_some() => {
                write_down(&mut *pool.acquire().await?, event_id, order_id, Came::of("refused", &error.to_string()))
                    .await?
            }
            other => other?,
        };
        progress |= result == "given_back";
        left |= result == "waiting";
    }
    let left = left || sqlx::query_scalar!(
        r#"select exists(select from event_cancellation_order where event_id = $1 and result = 'waiting') as "left!""#,
        event_id
    )
    .fetch_one(pool)
    .await?;
    if !progress && !left {
        sqlx::query!(
            "update event_cancellation set finished_at = db_clock() where event_id = $1 and finished_at is null",
            event_id
        )
        .execute(pool)
        .await?;
    }
    Ok(progress)
}

/// What becomes of an order, and why.
struct Came {
    result: &'static str,
    detail: String,
    request_id: Option<Uuid>,
}

impl Came {
    fn of(result: &'static str, detail: &str) -> Self {
        Self { result, detail: detail.to_owned(), request_id: None }
    }
}

async fn one(
    pool: &PgPool,
    event_id: i64,
    order_id: Uuid,
    reason: String,
    actor: String,
) -> sqlx::Result<&'static str> {
    let mut tx = db::event_tx(pool, event_id).await?;
    let order = sqlx::query!(
        r#"select state, (confirmed_at is not null) as "sold!" from "order" where id = $1 for no key update"#,
        order_id
    )
    .fetch_one(&mut *tx)
    .await?;
    let before = sqlx::query!(
        "select result from event_cancellation_order where event_id = $1 and order_id = $2",
        event_id,
        order_id
    )
    .fetch_optional(&mut *tx)
    .await?;
    if before.as_ref().is_some_and(|b| b.result == "given_back") {
        return Ok("given_back"); // another hub was faster
    }
    let now = clock::now(&mut tx).await?;
    let live = attempt::live(&mut tx, order_id).await?;
    let came = match (order.state.as_str(), live) {
        (_, Some(_)) => Came::of("waiting", "a payment is under way"),
        ("confirmed", None) => {
            let ask = Ask {
                order_id,
                key: KEY.to_owned(),
                what: What::All,
                seats_become: Some(SeatsBecome::Dead),
                reason,
                actor: actor.into(),
                called_off: true,
            };
            match refund::give_back_in(&mut tx, event_id, &ask).await {
                Ok(request_id) => {
                    mail::enqueue(&mut tx, mail::Kind::EventCancelled, order_id, "").await?;
                    Came { request_id: Some(request_id), ..Came::of("given_back", "") }
                }
                Err(RefundError::Database(error)) => return Err(error),
                Err(refused) => Came::of("refused", &refused.to_string()),
            }
        }
        ("payment_due", None) => {
            let owed =
                due::give_back(&mut tx, event_id, order_id, SeatsBecome::Dead, "called_off", due::Cash::Owed, now)
                    .await?;
            mail::enqueue(&mut tx, mail::Kind::EventCancelled, order_id, "").await?;
            let said = if owed > 0 { "the cash beside its card is owed" } else { "nothing was paid" };
            Came::of("given_back", said)
        }
        ("open", None) => {
            sqlx::query!(
                r#"update "order" set state = 'cancelled', cancel_reason = 'called_off' where id = $1"#,
                order_id
            )
            .execute(&mut *tx)
            .await?;
            let_holds_go(&mut tx, event_id, now).await?;
            tell_if_paying(&mut tx, order_id).await?;
            Came::of("given_back", "nothing was charged")
        }
        _ => {
            let_holds_go(&mut tx, event_id, now).await?; // the payment that froze it is resolved
            if order.sold {
                Came::of("given_back", "given back already")
            } else {
                tell_if_paying(&mut tx, order_id).await?;
                Came::of("given_back", what_was_charged(&mut tx, order_id).await?)
            }
        }
    };
    let result = write_down(&mut tx, event_id, order_id, came).await?;
    tx.commit().await?;
    Ok(result)
}

/// Of an order that was never sold. A reader may have taken the money at once, and then it goes back.
async fn what_was_charged(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<&'static str> {
    let back = sqlx::query_scalar!(
        r#"select exists(select from attempt where order_id = $1 and state like 'refund%') as "back!""#,
        order_id
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(if back { "what was charged goes back by itself" } else { "nothing was charged" })
}

async fn write_down(db: &mut PgConnection, event_id: i64, order_id: Uuid, came: Came) -> sqlx::Result<&'static str> {
    sqlx::query!(
        "insert into event_cancellation_order (event_id, order_id, result, detail, request_id, updated_at)
         values ($1, $2, $3, $4, $5, db_clock())
         on conflict (event_id, order_id) do update set result = excluded.result, detail = excluded.detail,
             request_id = excluded.request_id, updated_at = excluded.updated_at",
        event_id,
        order_id,
        came.result,
        came.detail,
        came.request_id
    )
    .execute(db)
    .await?;
    Ok(came.result)
}

/// Whoever was paying hears why nothing came of it; whoever had only chosen seats sees it on the page.
async fn tell_if_paying(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<()> {
    let paying =
        sqlx::query_scalar!(r#"select exists(select from attempt where order_id = $1) as "paying!""#, order_id)
            .fetch_one(&mut **tx)
            .await?;
    if paying {
        mail::enqueue(tx, mail::Kind::EventCancelled, order_id, "").await?;
    }
    Ok(())
}

/// How far it is: a result an order, the refused ones first.
pub async fn report(pool: &PgPool, event_id: i64) -> sqlx::Result<Option<CalledOff>> {
    let Some(head) = sqlx::query!(
        "select reason, actor, started_at, finished_at from event_cancellation where event_id = $1",
        event_id
    )
    .fetch_optional(pool)
    .await?
    else {
        return Ok(None);
    };
    let orders = sqlx::query_as!(
        CalledOffOrder,
        r#"select o.id as order_id, o.code, o.currency, coalesce(q.amount_minor - (select coalesce(sum(r.amount_minor), 0) from refund r
                    where r.request_id = q.id and r.kind in ('comp', 'voucher'))::bigint, 0) as "amount_minor!",
                  case when c.result <> 'given_back' then c.result
                       when exists (select from refund r where r.request_id = q.id and r.state = 'failed' and r.replaced_by is null) then 'refused'
                       when exists (select from refund r where r.request_id = q.id and r.state in ('pending', 'accepted')) then 'on_its_way'
                       when coalesce(q.amount_minor - (select coalesce(sum(r.amount_minor), 0) from refund r
                    where r.request_id = q.id and r.kind in ('comp', 'voucher'))::bigint, 0) = 0 then 'nothing_paid' else 'refunded' end as "result!",
                  coalesce((select string_agg(r.failure, ', ') from refund r
                            where r.request_id = q.id and r.state = 'failed' and r.replaced_by is null), c.detail) as "detail!"
           from event_cancellation_order c join "order" o on o.id = c.order_id left join refund_request q on q.id = c.request_id
           where c.event_id = $1 order by o.code"#,
        event_id
    )
    .fetch_all(pool)
    .await?;
    let (refused, others): (Vec<_>, Vec<_>) = orders.into_iter().partition(|o| o.result == "refused");
    Ok(Some(CalledOff {
        event_id,
        reason: head.reason,
        actor: head.actor,
        started_at: head.started_at,
        gone_through_at: head.finished_at,
        refused_count: refused.len() as i64,
        orders: refused.into_iter().chain(others).collect(),
    }))
}
