//! Orders whose seats were sold and whose money could not be had: after their time to pay again, the seats go back.

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    clock,
    db::{self, Tx},
    outbox::{self, SeatChange},
    ticket,
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
    let order = sqlx::query!(r#"select state, payment_due_until from "order" where id = $1 for update"#, order_id)
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
    give_back(tx, event_id, order_id, now).await?;
    tracing::info!(order.id = %order_id, "an order was not paid again in time; its seats went back");
    Ok(true)
}

async fn give_back(tx: &mut Tx, event_id: i64, order_id: Uuid, now: DateTime<Utc>) -> sqlx::Result<()> {
    let lines = sqlx::query_scalar!(
        r#"update order_line set state = 'void' where order_id = $1 and state = 'sold' returning seat_no"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let seats: Vec<i32> = lines.into_iter().flatten().collect();
    let freed = sqlx::query!(
        "update event_seat set status = 0, order_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and status = 2 and order_id = $3 returning seat_no, version",
        event_id,
        &seats,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    if freed.len() != seats.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats went back", freed.len(), seats.len())));
    }
    ticket::void(tx, order_id, None, "not_paid", now).await?;
    sqlx::query!(
        r#"update "order" set state = 'cancelled', cancel_reason = 'not_paid', payment_due_until = null where id = $1"#,
        order_id
    )
    .execute(&mut **tx)
    .await?;
    let changes: Vec<SeatChange> = freed
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Available, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}
