//! What is kept an eye on: the clocks, the gate's measures, the circuit, the hourly comparison of the
//! books, and the figures that people read.
//!
//! Invariants
//! - Nothing here decides about a payment; it only closes the gate, and opens it for what it measured itself.
//! - Any number of hubs may do this at once: measures are read from the database, and the books are compared by lease.

use std::time::Duration;

use chrono::Utc;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Payments, call_off, gate, list,
    provider::{Book, Call, Client},
    reconcile,
    record::{self, How},
};

/// Runs until `stop`.
pub async fn run(payments: Payments, pool: PgPool, stop: CancellationToken) {
    let hub = Uuid::new_v4();
    let books = tokio::spawn(compare_books(payments.clone(), pool.clone(), stop.clone()));
    let mut tick = tokio::time::interval(Duration::from_millis(payments.gate_settings().tick_ms.max(10)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        if let Err(error) = look(&payments, &pool, hub).await {
            tracing::warn!(%error, "the gate could not be measured; the next round will");
        }
    }
    let _ = books.await; // it has nothing to say
}

async fn look(payments: &Payments, pool: &PgPool, hub: Uuid) -> sqlx::Result<()> {
    read_clocks(payments, pool, hub).await?;
    let measured = gate::measure(pool, payments.gate_settings()).await?;
    let asks = |reason| measured.iter().any(|m| m.reason == reason && m.wrong.is_some());
    if let Some(client) = payments.client().filter(|_| asks(gate::PROVIDER) || asks(gate::SKEW)) {
        probe(client, pool).await?;
    }
    forget(pool).await?;
    payments.figures().set(list::figures(pool).await?);
    Ok(())
}

/// The host's clock and the provider's, against the database's.
async fn read_clocks(payments: &Payments, pool: &PgPool, hub: Uuid) -> sqlx::Result<()> {
    let asked = Utc::now();
    let database = sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(pool).await?; // not the one that tests set
    let answered = Utc::now();
    let host_ms = (asked + (answered - asked) / 2 - database).num_milliseconds();
    let provider_ms = payments.client().and_then(|c| c.figures().clock_ahead_ms()).map(|ahead| ahead + host_ms);
    sqlx::query!(
        "insert into clock_reading (hub, at, host_ms, provider_ms) values ($1, clock_timestamp(), $2, $3)
         on conflict (hub) do update set at = excluded.at, host_ms = excluded.host_ms, provider_ms = excluded.provider_ms",
        hub,
        host_ms,
        provider_ms
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// While the gate is closed for the provider's sake nobody else asks it: one read a tick says when it is back.
async fn probe(client: &Client, pool: &PgPool) -> sqlx::Result<()> {
    let call = Call::books(Book::Transactions, Utc::now(), None, 1);
    let answer = client.send(&call).await;
    let mut db = pool.acquire().await?;
    record::note_how(&mut db, How::of(call.op, &answer)).await
}

async fn forget(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from provider_answer where id in
             (select id from provider_answer where at < db_clock() - interval '1 day' order by at limit 1000)"
    )
    .execute(pool)
    .await?;
    sqlx::query!("delete from clock_reading where at < clock_timestamp() - interval '1 hour'").execute(pool).await?;
    Ok(())
}

/// Orders of events that are called off, a round after the other; what is given back wakes the workers by its row. After
/// any round another hub, or this one when it is back, can go on.
async fn go_through_called_off(pool: &PgPool, stop: &CancellationToken) -> sqlx::Result<()> {
    for event_id in call_off::unfinished(pool).await? {
        while !stop.is_cancelled() && call_off::go_on(pool, event_id).await? {}
    }
    Ok(())
}

async fn compare_books(payments: Payments, pool: PgPool, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_millis(payments.gate_settings().tick_ms.max(10)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        if let Err(error) = go_through_called_off(&pool, &stop).await {
            tracing::warn!(%error, "a called off event could not be gone through; the next round goes on");
        }
        // A run that is cut off is no good one, and the next hub's is due when its lease has run out.
        match stop.run_until_cancelled(reconcile::if_due(&payments, &pool)).await {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(report))) => tracing::info!(
                run.id = report.run_id,
                intents = report.intents,
                refunds = report.refunds,
                transactions = report.transactions,
                findings = report.found.len(),
                "the books were compared"
            ),
            Some(Err(error)) => {
                tracing::error!(error = format!("{:#}", anyhow::Error::from(error)), "the books could not be compared")
            }
        }
    }
}
