//! Workers: they lease attempts that have something to do, a bounded number at a time, and drive them.
//!
//! Invariants
//! - An attempt is leased by one worker; a worker that dies loses it when the lease runs out.
//! - News wake a worker at once, but nothing depends on being woken: it looks anyway, at each tick.

use std::time::Duration;

use chrono::TimeDelta;
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Payments, drive, due, provider::Client, swap, webhook};

/// After something failed inside, an attempt rests for so long.
const AFTER_FAILURE_S: f64 = 2.0;
/// Orphans that are seen to in one round.
const ORPHANS_MAX: usize = 4;
/// How often orders whose time to pay again has passed are looked for.
const DUE_TICK: Duration = Duration::from_secs(5);

/// Drives attempts and applies webhooks until `stop`; then waits for those under way.
pub async fn run(payments: Payments, pool: PgPool, stop: CancellationToken) {
    let Some(client) = payments.client().cloned() else { return };
    let slots = payments.settings().workers.max(1);
    let mut driving = JoinSet::new();
    let mut seeing = JoinSet::new();
    let mut tick = tokio::time::interval(Duration::from_millis(payments.settings().worker_tick_ms.max(1)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut due = tokio::time::interval(DUE_TICK);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        // Registered before the look: news that come in between are not missed.
        let news = payments.news();
        tokio::pin!(news);
        news.as_mut().enable();
        match webhook::apply(&pool).await {
            // Beside the attempts, which must not wait for a provider that is slow about others.
            Ok(orphans) if seeing.is_empty() && !orphans.is_empty() => {
                seeing.spawn(see_to(payments.clone(), client.clone(), pool.clone(), orphans));
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "webhooks could not be applied"),
        }
        if let Err(error) = swap::complete(&pool).await {
            tracing::warn!(%error, "exchanges that are paid could not be completed");
        }
        if stop.is_cancelled() {
            break; // what is leased now would only be waited for
        }
        match lease(&pool, slots - driving.len(), payments.lease()).await {
            Ok(leased) => {
                for id in leased {
                    driving.spawn(one(payments.clone(), client.clone(), pool.clone(), id));
                }
            }
            Err(error) => tracing::warn!(%error, "no attempts could be leased"),
        }
        tokio::select! {
            biased; // a round that took longer than a tick must not outvote the end, nor what comes seldom
            () = stop.cancelled() => break,
            _ = due.tick() => {
                if let Err(error) = due::release(&pool).await {
                    tracing::warn!(%error, "orders that were not paid could not be released");
                }
            }
            Some(_) = seeing.join_next() => {}
            Some(_) = driving.join_next() => {} // a slot is free, and its attempt may have left work
            () = &mut news => {}
            _ = tick.tick() => {}
        }
    }
    while driving.join_next().await.is_some() || seeing.join_next().await.is_some() {}
}

/// Takes attempts whose time has come, the longest waiting first. In a copy of another house's database those that
/// came with it are that house's to drive.
async fn lease(pool: &PgPool, free: usize, lease: TimeDelta) -> sqlx::Result<Vec<Uuid>> {
    if free == 0 {
        return Ok(Vec::new());
    }
    let lease_s = lease.num_milliseconds() as f64 / 1000.0;
    // The clock is a value of its own in this statement, so that the index of what is due serves.
    sqlx::query_scalar!(
        "update attempt set leased_until = (select db_clock()) + make_interval(secs => $1) where id in (
             select id from attempt where next_run_at <= (select db_clock())
                and (leased_until is null or leased_until <= (select db_clock()))
                and installation = (select installation_id())
             order by next_run_at limit $2 for no key update skip locked)
         returning id",
        lease_s,
        free as i64
    )
    .fetch_all(pool)
    .await
}

async fn see_to(payments: Payments, client: Client, pool: PgPool, orphans: Vec<webhook::Orphan>) {
    let shared = payments.reconcile_settings().account_shared;
    for orphan in orphans.iter().take(ORPHANS_MAX) {
        if let Err(error) = webhook::see_to(&pool, &client, orphan, shared).await {
            tracing::warn!(error = format!("{error:#}"), ?orphan, "an orphan could not be seen to");
        }
    }
}

async fn one(payments: Payments, client: Client, pool: PgPool, id: Uuid) {
    if let Err(error) = drive::drive(&payments, &client, &pool, id).await {
        tracing::warn!(attempt.id = %id, error = format!("{error:#}"), "an attempt could not be driven");
        let rest = sqlx::query!(
            "update attempt set leased_until = null, next_run_at = db_clock() + make_interval(secs => $2) where id = $1",
            id,
            AFTER_FAILURE_S
        );
        if let Err(error) = rest.execute(&pool).await {
            tracing::warn!(attempt.id = %id, %error, "its lease has to run out");
        }
    }
}
