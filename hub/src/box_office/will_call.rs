//! Will-call: orders whose tickets wait to be printed, and printing many of them before the doors open.

use fullhouse_protocol::{
    box_office::{WillCallOrder, WillCallPrints},
    tickets::PrintJob,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::begin_prints;
use crate::{auth::Actor, ticket::print::PrintError};

const ORDERS_MAX: i64 = 2_000;

/// Orders of an event with valid tickets that were never printed, by name and code.
pub async fn list(pool: &PgPool, event_id: i64) -> sqlx::Result<Vec<WillCallOrder>> {
    sqlx::query_as!(
        WillCallOrder,
        r#"select o.id as order_id, o.code, coalesce(a.name, c.name, r.name) as "buyer_name?", a.email as "buyer_email?", o.channel,
                  o.created_at, w.seats as "seats!"
           from "order" o join buyer b on b.id = o.buyer_id left join account a on a.id = b.account_id
           left join customer_hold c on c.hold_id = o.hold_id left join partner r on r.id = b.partner_id
           join lateral (
               select array_agg(t.seat_no order by t.seat_no) as seats from ticket t
               where t.order_id = o.id and t.state = 'valid'
                 and not exists(select from ticket_print p where p.ticket_id = t.id and p.state <> 'failed')) w on w.seats is not null
           where o.event_id = $1 and o.state = 'confirmed'
           order by lower(coalesce(a.name, c.name, r.name, '')), o.code limit $2"#,
        event_id,
        ORDERS_MAX
    )
    .fetch_all(pool)
    .await
}

/// Opens print jobs for the tickets of these orders that were never printed. One order's refusal stops no other's.
pub async fn print(
    pool: &PgPool,
    event_id: i64,
    orders: Vec<Uuid>,
    actor: &Actor,
) -> sqlx::Result<Vec<WillCallPrints>> {
    let mut done = Vec::with_capacity(orders.len());
    for order_id in orders {
        let waiting: Vec<Uuid> = sqlx::query_scalar!(
            r#"select t.id from ticket t join "order" o on o.id = t.order_id
               where t.order_id = $1 and o.event_id = $2 and t.state = 'valid'
                 and not exists(select from ticket_print p where p.ticket_id = t.id and p.state <> 'failed')"#,
            order_id,
            event_id
        )
        .fetch_all(pool)
        .await?;
        let answer = if waiting.is_empty() {
            Err(PrintError::NotValid) // nothing of it waits here
        } else {
            begin_prints(pool.clone(), order_id, waiting, actor.clone()).await
        };
        let (jobs, refused): (Vec<PrintJob>, Option<&str>) = match answer {
            Ok(jobs) => (jobs, None),
            Err(PrintError::OrderUnknown) => (Vec::new(), Some("order_unknown")),
            Err(PrintError::NotValid) => (Vec::new(), Some("ticket_not_valid")),
            Err(PrintError::Printed(_)) => (Vec::new(), Some("ticket_printed")),
            Err(PrintError::Database(error)) => return Err(error),
        };
        done.push(WillCallPrints { order_id, jobs, refused: refused.map(str::to_owned) });
    }
    Ok(done)
}
