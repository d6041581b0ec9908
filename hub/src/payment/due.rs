//! Orders whose seats were sold and whose money could not be had: after their time to pay again, the seats go back.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::seats_back::{self, SeatsBecome};
use crate::{
    clock,
    db::{self, Tx},
};

const ORDERS_MAX: i64 = 100;

/// Releases what was not paid again in time. Returns how many orders.
pub async fn release(pool: &PgPool) -> sqlx::Result<usize> {
    let due = sqlx::query!(
        r#"select id, event_id from "order" where state = 'payment_due' and payment_due_until <= (select db_clock())
           order by payment_due_until limit $1"#,
        ORDERS_MAX
    )
    .fetch_all(pool)
    .await?;
    let mut released = 0;
    for order in due {
        let mut tx = db::event_tx(pool, order.event_id).await?;
        released += usize::from(release_one(&mut tx, order.event_id, order.id).await?);
        tx.commit().await?;
    }
    Ok(released)
}

async fn release_one(tx: &mut Tx, event_id: i64, order_id: Uuid) -> sqlx::Result<bool> {
    let order =
        sqlx::query!(r#"select state, payment_due_until from "order" where id = $1 for no key update"#, order_id)
            .fetch_one(&mut **tx)
            .await?;
    // An attempt that lives decides first: it is looked at again when it has.
    let live = sqlx::query_scalar!(
        r#"select exists(select from attempt where order_id = $1
           and state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')) as "live!""#,
        order_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let now = clock::now(tx).await?;
    if live || order.state != "payment_due" || order.payment_due_until.is_none_or(|until| until > now) {
        return Ok(false);
    }
    give_back(tx, event_id, order_id, SeatsBecome::OnSale, "not_paid", now).await?;
    tracing::info!(order.id = %order_id, "an order was not paid again in time; its seats went back");
    Ok(true)
}

/// All seats go back, and the order is over. The order is locked, and no attempt of it lives.
pub(super) async fn give_back(
    tx: &mut Tx,
    event_id: i64,
    order_id: Uuid,
    become_: SeatsBecome,
    why: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let seats = sqlx::query_scalar!(
        r#"select seat_no as "seat_no!" from order_line where order_id = $1 and state = 'sold' and seat_no is not null"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let taken = seats_back::Taken { event_id, order_id, seats: &seats, why };
    seats_back::take_back(tx, taken, become_, "not paid", "fullhouse", now).await?;
    sqlx::query!("update order_line set state = 'void' where order_id = $1 and state = 'sold'", order_id)
        .execute(&mut **tx)
        .await?;
    seats_back::close_if_empty(tx, order_id, why).await?;
    Ok(())
}
