//! What was given back of an order, as staff see it.

use fullhouse_protocol::money::{GivenBack, Refund, SeatsBecome};
use sqlx::PgPool;
use uuid::Uuid;

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
        Refund,
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

fn seats_become(name: &str) -> Option<SeatsBecome> {
    match name {
        "on_sale" => Some(SeatsBecome::OnSale),
        "house" => Some(SeatsBecome::House),
        "dead" => Some(SeatsBecome::Dead),
        _ => None,
    }
}
