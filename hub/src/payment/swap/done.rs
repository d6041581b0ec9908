//! What is paid is done: the old seats of a swap are given up, and what they cost belongs to the new order.

use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    checkout::log,
    clock,
    db::{self, Tx},
    payment::{order, pairs::ExchangeError, refund, seats_back},
};

/// Swaps that one round gives the old seats up of.
const ROUND: i64 = 100;

/// Gives up the old seats of what is paid by now: no money of it is under way, whether a card paid in the end or, after
/// it had failed, cash. Returns how many swaps are done.
pub async fn complete(pool: &PgPool) -> sqlx::Result<usize> {
    sqlx::query!(
        r#"update order_swap set dropped_at = db_clock() where done_at is null and dropped_at is null
             and to_order in (select n.id from "order" n where n.id = to_order and n.state = 'cancelled')"#
    )
    .execute(pool)
    .await?;
    let paid = sqlx::query!(
        r#"select w.id, o.event_id from order_swap w join "order" n on n.id = w.to_order join "order" o on o.id = w.from_order
           where w.done_at is null and w.dropped_at is null and n.state = 'confirmed'
             and not exists (select from attempt a where a.order_id = n.id
                 and a.state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded'))
           order by w.created_at limit $1"#,
        ROUND
    )
    .fetch_all(pool)
    .await?;
    let mut done = 0;
    for swap in paid {
        let mut tx = db::event_tx(pool, swap.event_id).await?;
        match give_up(&mut tx, swap.id).await {
            Ok(gave_up) => {
                tx.commit().await?;
                done += usize::from(gave_up);
            }
            // One that can't be done (a person has to look) holds no other up.
            Err(error) => {
                tracing::error!(swap.id = %swap.id, %error, "the old seats of an exchange could not be given up")
            }
        }
    }
    Ok(done)
}

/// The old seats are free, their tickets dead, and what they cost belongs to the new order. False: it was done before.
pub(super) async fn give_up(tx: &mut Tx, swap_id: Uuid) -> Result<bool, ExchangeError> {
    let swap = sqlx::query!(
        r#"select w.from_order, w.to_order, w.from_seats, w.value_minor, w.surplus_minor, w.reason, w.actor,
                  o.event_id, o.currency, o.code as from_code, n.code as to_code
           from order_swap w join "order" o on o.id = w.from_order join "order" n on n.id = w.to_order where w.id = $1"#,
        swap_id
    )
    .fetch_one(&mut **tx)
    .await?;
    for order_id in [swap.to_order, swap.from_order] {
        order::lock(tx, order_id).await?;
    }
    let now = clock::now(tx).await?;
    let ours = sqlx::query!("update order_swap set done_at = $2 where id = $1 and done_at is null", swap_id, now)
        .execute(&mut **tx)
        .await?;
    if ours.rows_affected() == 0 {
        return Ok(false);
    }
    seats_back::exchange_away(tx, swap.event_id, swap.from_order, &swap.from_seats, now).await?;
    let credit = swap.value_minor - swap.surplus_minor;
    order::cost_more(tx, swap.from_order, -swap.value_minor).await?;
    if credit > 0 {
        sqlx::query!(
            "insert into tender (id, order_id, kind, amount_minor, created_at) values ($1, $2, 'exchange', $3, $4)",
            Uuid::now_v7(),
            swap.from_order,
            -credit,
            now
        )
        .execute(&mut **tx)
        .await?;
    }
    if swap.surplus_minor > 0 {
        let (order, surplus) = (swap.from_order, swap.surplus_minor);
        refund::give_back_difference(tx, order, &swap.currency, surplus, "exchange", now).await?;
    }
    let seats = log::named(tx, swap.event_id, &swap.from_seats).await?;
    for (order_id, other) in [(swap.from_order, &swap.to_code), (swap.to_order, &swap.from_code)] {
        let said = format!("{seats} exchanged with order {other}: {}", swap.reason);
        log::note(tx, order_id, "exchange", &said, &swap.actor, now).await?;
    }
    Ok(true)
}
