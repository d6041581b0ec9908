//! The worker: leases mails whose time has come, within the rate, and writes down what became of them.
//!
//! Invariants
//! - No more tries a minute than `mail.rate_per_minute`, over all hubs: a provider that caps what we send
//!   must not drop what is above. Tries are counted in the database, one hub after the other.
//! - A server that is away or refuses for now costs time, never a mail; what is refused for good, or older
//!   than `mail.give_up_h`, is dead, which is counted and shown.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    letter::{self, Decision, Errand},
    post::{Post, PostError},
};
use crate::{
    clock,
    config::{self, Config},
    keys::Keys,
    metrics::Metrics,
    ticket::press::Press,
};

/// The advisory lock under which hubs lease, one after the other. (Two numbers: never an event's.)
const LEASE_LOCK: (i32, i32) = (0x6d61_696c, 1);
/// How often the state of the queue is counted.
const COUNT_EVERY: Duration = Duration::from_secs(15);

/// What sending needs.
#[derive(Clone)]
struct Office {
    pool: PgPool,
    post: Post,
    press: Press,
    keys: Keys,
    public_url: String,
    settings: config::Mail,
    metrics: Metrics,
}

/// Sends until `stop`; then waits for those under way.
pub async fn run(
    config: &Config,
    pool: PgPool,
    post: Option<Post>,
    press: Press,
    keys: Keys,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let Some(post) = post else {
        tracing::warn!("neither mail.smtp_url nor mail.folder is set: mail waits in the queue");
        return stop.cancelled().await; // a task that ends takes the hub with it
    };
    let public_url = config.http.public_url.trim_end_matches('/').to_owned();
    let office = Office { pool, post, press, keys, public_url, settings: config.mail.clone(), metrics };
    let slots = office.settings.workers.max(1);
    let mut sending = JoinSet::new();
    let mut tick = tokio::time::interval(Duration::from_millis(office.settings.tick_ms.max(1)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut count = tokio::time::interval(COUNT_EVERY);
    count.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        match lease(&office, slots - sending.len()).await {
            Ok(errands) => {
                for errand in errands {
                    sending.spawn(one(office.clone(), errand));
                }
            }
            Err(error) => tracing::warn!(%error, "no mail could be leased"),
        }
        tokio::select! {
            biased; // a round that took longer than a tick must not outvote the end, nor what comes seldom
            () = stop.cancelled() => break,
            _ = count.tick() => {
                if let Err(error) = measure(&office).await {
                    tracing::warn!(%error, "the mail queue could not be counted");
                }
            }
            Some(_) = sending.join_next() => {} // a slot is free
            _ = tick.tick() => {}
        }
    }
    while sending.join_next().await.is_some() {}
}

/// Takes mails whose time has come, the longest waiting first, as many as slots and the rate allow.
async fn lease(office: &Office, free: usize) -> sqlx::Result<Vec<Errand>> {
    if free == 0 {
        return Ok(Vec::new());
    }
    let mut tx = office.pool.begin().await?;
    sqlx::query!("select pg_advisory_xact_lock($1, $2)", LEASE_LOCK.0, LEASE_LOCK.1).execute(&mut *tx).await?;
    let now = clock::now(&mut tx).await?;
    let tried = sqlx::query_scalar!(
        r#"select count(*) as "tried!" from mail where tried_at > $1"#,
        now - TimeDelta::minutes(1)
    )
    .fetch_one(&mut *tx)
    .await?;
    let free = (office.settings.rate_per_minute - tried).clamp(0, free as i64);
    let errands = if free == 0 {
        Vec::new()
    } else {
        sqlx::query_as!(
            Errand,
            "update mail set leased_until = $2, tried_at = $1, tries = tries + 1
             where id in (
                 select id from mail
                 where state = 'queued' and next_try_at <= $1 and (leased_until is null or leased_until <= $1)
                 order by next_try_at, id limit $3 for update skip locked)
             returning id, order_id, account_id, kind, occasion, address, language, tries, created_at",
            now,
            now + TimeDelta::seconds(office.settings.lease_s),
            free
        )
        .fetch_all(&mut *tx)
        .await?
    };
    tx.commit().await?;
    Ok(errands)
}

/// What became of a mail.
enum Outcome {
    Sent,
    Dropped(&'static str),
    Later(String),
    Dead(String),
}

/// Decides and sends one mail, and writes down what became of it.
async fn one(office: Office, errand: Errand) {
    // Beyond half of its lease somebody else might begin: better to let go and try again.
    let patience = Duration::from_secs(office.settings.lease_s.max(2) as u64 / 2);
    let outcome = match tokio::time::timeout(patience, attempt(&office, &errand)).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::Later("it took too long".to_owned()),
    };
    if let Err(error) = settle(&office, &errand, outcome).await {
        tracing::warn!(%error, mail.id = errand.id, "what became of a mail could not be written down; its lease ends by itself");
    }
}

async fn attempt(office: &Office, errand: &Errand) -> Outcome {
    match letter::decide(&office.pool, &office.press, &office.keys, &office.public_url, errand).await {
        Ok(Decision::Drop(why)) => Outcome::Dropped(why),
        Ok(Decision::Send(letter)) => match office.post.send(&letter).await {
            Ok(()) => Outcome::Sent,
            Err(PostError::Later(why)) => Outcome::Later(why),
            Err(PostError::Never(why)) => Outcome::Dead(why),
        },
        Err(error) => Outcome::Later(format!("{error}: {}", source(&error))),
    }
}

fn source(error: &dyn std::error::Error) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}

async fn settle(office: &Office, errand: &Errand, outcome: Outcome) -> sqlx::Result<()> {
    let mut db = office.pool.acquire().await?;
    let now = clock::now(&mut db).await?;
    let settings = &office.settings;
    let outcome = match outcome {
        Outcome::Later(why) if now - errand.created_at >= TimeDelta::hours(settings.give_up_h) => Outcome::Dead(why),
        other => other,
    };
    let (state, next, why) = match outcome {
        Outcome::Sent => ("sent", None, None),
        Outcome::Dropped(why) => ("dropped", None, Some(why.to_owned())),
        Outcome::Later(why) => ("queued", Some(now + backoff(settings, errand.tries)), Some(why)),
        Outcome::Dead(why) => ("dead", None, Some(why)),
    };
    sqlx::query!(
        "update mail set state = $2, next_try_at = $3::timestamptz, last_error = $4, leased_until = null,
                decided_at = case when $3 is null then $5::timestamptz end,
                address = case when $3 is null then null else address end
         where id = $1 and state = 'queued'",
        errand.id,
        state,
        next,
        why,
        now
    )
    .execute(&mut *db)
    .await?;
    office.metrics.mailed(if state == "queued" { "later" } else { state });
    match state {
        "dead" => tracing::error!(
            mail.id = errand.id,
            mail.kind = errand.kind,
            "a mail could not be delivered: see `fullhouse mail list`"
        ),
        "queued" => tracing::warn!(mail.id = errand.id, mail.tries = errand.tries, "a mail is tried again later"),
        _ => tracing::debug!(mail.id = errand.id, state, "a mail is done"),
    }
    Ok(())
}

/// Twice as long each time, a fifth more or less, so that what failed together does not come back together.
fn backoff(settings: &config::Mail, tries: i32) -> TimeDelta {
    let doubled = settings.retry_first_s.saturating_mul(1 << (tries - 1).clamp(0, 20));
    let seconds = doubled.min(settings.retry_max_s) as f64 * rand::random_range(0.8..1.2);
    TimeDelta::milliseconds((seconds * 1000.0) as i64)
}

async fn measure(office: &Office) -> sqlx::Result<()> {
    let row = sqlx::query!(
        r#"select count(*) filter (where state = 'queued') as "queued!", count(*) filter (where state = 'dead') as "dead!",
                  min(created_at) filter (where state = 'queued') as oldest, db_clock() as "now!"
           from mail where state in ('queued', 'dead')"#
    )
    .fetch_one(&office.pool)
    .await?;
    let age = |oldest: DateTime<Utc>| (row.now - oldest).num_seconds().max(0);
    office.metrics.mail_queue(row.queued, row.dead, row.oldest.map_or(0, age));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_bounded() {
        let settings = config::Mail { retry_first_s: 30, retry_max_s: 3_600, ..Config::defaults().mail };
        for (tries, seconds) in [(1, 30), (2, 60), (5, 480), (8, 3_600), (500, 3_600)] {
            let wait = backoff(&settings, tries).num_milliseconds() as f64 / 1000.0;
            assert!((0.8..1.2).contains(&(wait / f64::from(seconds))), "{tries}: {wait}");
        }
    }
}
