//! Tidies holds whose time has passed. Nothing depends on it: a seat whose hold ran out is sold to
//! the next buyer, and shown free, whether or not anybody swept.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{Request, desk::Desks};
use crate::config;

pub async fn run(config: config::Sweeper, pool: PgPool, desks: Desks, keep_requests_h: i32, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_millis(config.tick_ms));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        if let Err(error) = sweep(&pool, &desks, config.batch_holds_max).await {
            tracing::warn!(%error, "holds that ran out could not be tidied; the next round will");
        }
        if let Err(error) = forget_requests(&pool, keep_requests_h).await {
            tracing::warn!(%error, "old idempotency keys could not be removed; the next round will");
        }
    }
}

/// Ends the holds whose time has passed, at their desks. Returns how many it asked for.
pub async fn sweep(pool: &PgPool, desks: &Desks, holds_max: i64) -> sqlx::Result<usize> {
    let due = sqlx::query!(
        r#"select event_id, array_agg(id) as "ids!" from
             (select event_id, id from hold where state = 'live' and held_until <= db_clock() order by held_until limit $1) as due
           group by event_id"#,
        holds_max
    )
    .fetch_all(pool)
    .await?;
    let mut asked = 0;
    for event in due {
        asked += event.ids.len();
        if let Err(refusal) = desks.ask(event.event_id, Request::Expire(event.ids)).await {
            tracing::warn!(event.id = event.event_id, %refusal, "the desk could not end holds; the next round will");
        }
    }
    Ok(asked)
}

async fn forget_requests(pool: &PgPool, keep_h: i32) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from hold_request where (buyer_id, key) in
           (select buyer_id, key from hold_request where created_at < db_clock() - make_interval(hours => $1) limit 1000)",
        keep_h
    )
    .execute(pool)
    .await?;
    Ok(())
}
