//! How card readers are: their provider is asked for it at our own pace, and what it said is kept for whoever looks.
//!
//! Invariants
//! - Nobody who looks makes a call to the provider: hubs ask for a reader once in a while between them, whoever looks how
//!   often, and only while its terminal is heard of.
//! - It is a hint for people. No payment is decided by it.

use std::time::Duration;

use fullhouse_protocol::terminal::{ReaderIs, ReaderSeen};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::payment::{
    Payments,
    provider::{Call, Client, Outcome, Reader},
};

/// How often readers are looked for whose time has come.
const TICK: Duration = Duration::from_secs(2);
/// Of one look.
const ROUND_MAX: i64 = 10;
/// A terminal speaks once a minute: of one that was silent for so long nobody wants to know.
const SILENT_S: f64 = 180.0;
/// What the provider said is believed for so long; `box_office.reader_ask_s` is well below it.
const BELIEVED_S: f64 = 300.0;

/// Asks for each reader every `every_s`, until `stop`.
pub async fn run(payments: Payments, pool: PgPool, every_s: u32, stop: CancellationToken) {
    let Some(client) = payments.client() else { return stop.cancelled().await }; // a task that ends takes the hub with it
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        if let Err(error) = round(client, &pool, every_s, &stop).await {
            tracing::warn!(%error, "how the card readers are could not be kept");
        }
    }
}

async fn round(client: &Client, pool: &PgPool, every_s: u32, stop: &CancellationToken) -> sqlx::Result<()> {
    // Written down before it is asked: another hub does not ask as well.
    let due = sqlx::query_scalar!(
        "update reader set asked_at = db_clock() where id in (
             select r.id from reader r join terminal t on t.id = r.terminal_id
             where t.revoked_at is null and t.health_at > db_clock() - make_interval(secs => $1)
               and (r.asked_at is null or r.asked_at <= db_clock() - make_interval(secs => $2))
             order by r.asked_at nulls first limit $3 for no key update of r skip locked)
         returning id",
        SILENT_S,
        f64::from(every_s),
        ROUND_MAX
    )
    .fetch_all(pool)
    .await?;
    for id in due {
        if stop.is_cancelled() {
            break;
        }
        let answer = client.send(&Call::reader(&id)).await;
        let is = match &answer.outcome {
            Outcome::Done(_) => answer.object::<Reader>().map_or(ReaderIs::Unknown, |reader| reader.state()),
            Outcome::Rejected(_) | Outcome::Declined(_) => ReaderIs::Unknown, // the provider knows no such reader
            Outcome::NotServed(_) | Outcome::NotSent | Outcome::Unknown => break, // nobody answers: a later round's
        };
        keep(pool, &id, is).await?;
    }
    Ok(())
}

async fn keep(pool: &PgPool, id: &str, is: ReaderIs) -> sqlx::Result<()> {
    sqlx::query!("update reader set state = $2, state_at = db_clock() where id = $1", id, is.name())
        .execute(pool)
        .await?;
    Ok(())
}

/// The readers of a terminal, or all of them, each with its terminal, and how it was said to be. What was said long ago is
/// not known.
pub(super) async fn seen(pool: &PgPool, terminal_id: Option<Uuid>) -> sqlx::Result<Vec<(Uuid, ReaderSeen)>> {
    let rows = sqlx::query!(
        r#"select id, terminal_id, state_at,
                  case when state_at > db_clock() - make_interval(secs => $2) then state end as state
           from reader where $1::uuid is null or terminal_id = $1 order by id"#,
        terminal_id,
        BELIEVED_S
    )
    .fetch_all(pool)
    .await?;
    let seen = rows.into_iter().map(|r| {
        let state = r.state.as_deref().map_or(ReaderIs::Unknown, ReaderIs::read);
        (r.terminal_id, ReaderSeen { id: r.id, state, at: r.state_at })
    });
    Ok(seen.collect())
}
