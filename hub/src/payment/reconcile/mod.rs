//! Reconciliation: the provider's books are read and laid beside ours, hourly and on demand.
//!
//! Invariants
//! - One hub at a time (a lease), and reading twice changes nothing.
//! - A run is good only if all of the books could be read. What it finds stays on the list until it is found no more.
//! - Repairs never move money that is not explained: a capture is asked for again by its own key, a
//!   reservation that nobody waits for is let go, a refund made elsewhere is written down.
//! - A payment that was only begun, and that no attempt knows of, is let go before the books are compared.
//! - Captured money without an order, another amount and two captures close the gate at once; the rest
//!   after a repair has failed. Only a person opens it again.

mod books; // the provider's books, copied
mod classify; // laid beside ours
pub mod finding; // where they differ
mod outside; // a refund that somebody made elsewhere
pub mod orphan; // payments that no attempt of ours explains

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use self::{
    books::Read,
    classify::Scope,
    finding::{Class, Found, Kept},
};
use super::{Payments, gate, provider::Client};

const LEASE: &str = "reconcile";
/// So often within its time a lease is renewed: one failure, or a slow answer, costs nothing.
const RENEWALS: u32 = 3;

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Report {
    pub run_id: i64,
    pub from: DateTime<Utc>,
    pub intents: i32,
    pub refunds: i32,
    pub transactions: i32,
    pub found: Vec<(Found, Outcome)>,
}

/// What became of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// For people to see.
    Listed,
    /// What can be done was done.
    Repaired,
    /// It was tried, and did not help.
    RepairFailed,
    /// A person has seen to it before.
    Acknowledged,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Listed => "listed",
            Outcome::Repaired => "repaired",
            Outcome::RepairFailed => "repair failed",
            Outcome::Acknowledged => "acknowledged",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error("no payment provider is set up here")]
    NoProvider,
    #[error("another run is under way")]
    Busy,
    #[error("the books could not be read")]
    Books(#[source] anyhow::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Runs if the last run began an interval ago; before the first attempt there is nothing to do.
pub async fn if_due(payments: &Payments, pool: &PgPool) -> Result<Option<Report>, ReconcileError> {
    let interval_s = payments.reconcile_settings().interval_s as f64;
    let due = sqlx::query_scalar!(
        r#"select coalesce(coalesce((select max(started_at) from reconciliation_run), (select min(created_at) from attempt))
                           + make_interval(secs => $1) <= db_clock(), false) as "due!""#,
        interval_s
    )
    .fetch_one(pool)
    .await?;
    if !due {
        return Ok(None);
    }
    match run(payments, pool, payments.reconcile_settings().window_h).await {
        Err(ReconcileError::Busy) => Ok(None), // another hub is at it
        other => other.map(Some),
    }
}

/// Reads the books of the last hours, and acts on what differs.
pub async fn run(payments: &Payments, pool: &PgPool, hours: i64) -> Result<Report, ReconcileError> {
    let client = payments.client().ok_or(ReconcileError::NoProvider)?;
    let (holder, lease_s) = (Uuid::new_v4(), payments.reconcile_settings().lease_s);
    if !take_lease(pool, holder, lease_s).await? {
        return Err(ReconcileError::Busy);
    }
    let run = sqlx::query!(
        "insert into reconciliation_run (started_at, window_from) select now, now - make_interval(hours => $1) from db_clock() as now
         returning id, started_at, window_from",
        i32::try_from(hours).unwrap_or(i32::MAX)
    )
    .fetch_one(pool)
    .await?;
    let done = tokio::select! {
        done = compare(payments, client, pool, run.window_from, run.started_at) => done,
        lost = keep_lease(pool, holder, lease_s) => Err(lost),
    };
    let error = done.as_ref().err().map(|error| format!("{error:#}"));
    let (read, found) = done.as_ref().map_or((Read::default(), 0), |(read, found)| (*read, found.len()));
    sqlx::query!(
        "update reconciliation_run set finished_at = db_clock(), ok = $2, error = $3, intents = $4, refunds = $5,
                transactions = $6, findings = $7 where id = $1",
        run.id,
        error.is_none(),
        error,
        read.intents,
        read.refunds,
        read.transactions,
        i32::try_from(found).unwrap_or(i32::MAX)
    )
    .execute(pool)
    .await?;
    sqlx::query!("delete from money_lease where name = $1 and holder = $2", LEASE, holder).execute(pool).await?;
    let (read, found) = done.map_err(ReconcileError::Books)?;
    Ok(Report {
        run_id: run.id,
        from: run.window_from,
        intents: read.intents,
        refunds: read.refunds,
        transactions: read.transactions,
        found,
    })
}

async fn take_lease(pool: &PgPool, holder: Uuid, lease_s: u64) -> sqlx::Result<bool> {
    let taken = sqlx::query!(
        "insert into money_lease (name, holder, until) values ($1, $2, db_clock() + make_interval(secs => $3))
         on conflict (name) do update set holder = excluded.holder, until = excluded.until
         where money_lease.until <= db_clock()",
        LEASE,
        holder,
        lease_s as f64
    )
    .execute(pool)
    .await?;
    Ok(taken.rows_affected() == 1)
}

/// Renews the lease for as long as the run takes. Ends, and the run with it, when somebody else has it: the database was
/// away for so long. What the run did until then stands; the other one finds it.
async fn keep_lease(pool: &PgPool, holder: Uuid, lease_s: u64) -> anyhow::Error {
    loop {
        tokio::time::sleep(Duration::from_secs(lease_s) / RENEWALS).await;
        let renewed = sqlx::query!(
            "update money_lease set until = db_clock() + make_interval(secs => $3) where name = $1 and holder = $2",
            LEASE,
            holder,
            lease_s as f64
        )
        .execute(pool)
        .await;
        match renewed {
            Ok(rows) if rows.rows_affected() == 0 => return anyhow::anyhow!("another run has taken over"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the lease of a reconciliation could not be renewed"),
        }
    }
}

async fn compare(
    payments: &Payments,
    client: &Client,
    pool: &PgPool,
    from: DateTime<Utc>,
    started_at: DateTime<Utc>,
) -> anyhow::Result<(Read, Vec<(Found, Outcome)>)> {
    let settings = payments.reconcile_settings();
    let read = books::read(pool, client, from, settings.page_rows, settings.pages_max).await?;
    look_again(pool, client, started_at).await?;
    let mut db = pool.acquire().await?;
    let now = crate::clock::now(&mut db).await?;
    let grace = TimeDelta::seconds(settings.grace_s);
    // What is on the list is looked at for as long as it is there, however old.
    let oldest = sqlx::query_scalar!(
        "select min(p.created_at) from money_finding f join provider_intent p on p.pi_id = f.pi_id where f.cleared_at is null"
    )
    .fetch_one(&mut *db)
    .await?;
    let scope =
        Scope { from: oldest.map_or(from, |at| at.min(from)), now, grace, account_shared: settings.account_shared };
    drop(db);
    orphan::sweep(pool, client, scope).await?;
    let mut db = pool.acquire().await?;
    let found = classify::classify(&mut db, scope).await?;
    let mut kept = Vec::with_capacity(found.len());
    for found in found {
        let row = finding::keep(&mut db, &found, now).await.context("keeping a finding")?;
        kept.push((found, row));
    }
    finding::clear_unseen(&mut db, started_at, now).await?;
    drop(db);
    let outcomes = act(payments, client, pool, kept).await?;
    Ok((read, outcomes))
}

/// Intents of open findings that this run's pages did not show.
async fn look_again(pool: &PgPool, client: &Client, started_at: DateTime<Utc>) -> anyhow::Result<()> {
    let unseen = sqlx::query_scalar!(
        r#"select distinct p.pi_id from money_finding f join provider_intent p on p.pi_id = f.pi_id
           where f.cleared_at is null and p.seen_at < $1 limit 500"#,
        started_at
    )
    .fetch_all(pool)
    .await?;
    for pi_id in unseen {
        let shown = books::look(pool, client, &pi_id).await?;
        anyhow::ensure!(!matches!(shown, books::Shown::Nothing), "the provider did not show {pi_id}");
    }
    Ok(())
}

/// Repairs what may be repaired, and closes the gate for the rest.
async fn act(
    payments: &Payments,
    client: &Client,
    pool: &PgPool,
    kept: Vec<(Found, Kept)>,
) -> anyhow::Result<Vec<(Found, Outcome)>> {
    let mut outcomes = Vec::with_capacity(kept.len());
    let mut begun = Vec::new();
    for (found, row) in kept {
        if row.acknowledged {
            outcomes.push((found, Outcome::Acknowledged));
            continue;
        }
        match found.class {
            class if class.closes_after_repair() && found.is_of_a_list() => {
                let mut db = pool.acquire().await?;
                let now = crate::clock::now(&mut db).await?;
                finding::repaired(&mut db, row.id, false, now).await?;
                if row.repair_tries > 0 {
                    close(pool, &found).await?; // read once more, an interval later, and still so
                }
                outcomes.push((found, Outcome::RepairFailed));
            }
            Class::M2 | Class::M5 | Class::M6 => {
                begin_repair(pool, client, &found, row).await?;
                begun.push((found, row));
            }
            Class::M1 => {
                close(pool, &found).await?;
                poke(pool, found.attempt_id).await?; // a decided attempt gives back what came late
                outcomes.push((found, Outcome::Listed));
            }
            class => {
                if class.closes_at_once() {
                    close(pool, &found).await?;
                }
                outcomes.push((found, Outcome::Listed));
            }
        }
    }
    if !begun.is_empty() {
        payments.wake();
    }
    let patience = Duration::from_secs(payments.reconcile_settings().settle_s);
    let until = tokio::time::Instant::now() + patience;
    for (found, row) in begun {
        let mut done = is_repaired(pool, client, &found).await?;
        while !done && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(200)).await;
            done = is_repaired(pool, client, &found).await?;
        }
        let mut db = pool.acquire().await?;
        let now = crate::clock::now(&mut db).await?;
        finding::repaired(&mut db, row.id, done, now).await?;
        if !done && found.class.closes_after_repair() {
            close(pool, &found).await?;
        }
        outcomes.push((found, if done { Outcome::Repaired } else { Outcome::RepairFailed }));
    }
    Ok(outcomes)
}

async fn close(pool: &PgPool, found: &Found) -> sqlx::Result<()> {
    let Some(reason) = gate::reason_of_class(found.class.name()) else { return Ok(()) };
    let mut db = pool.acquire().await?;
    let now = crate::clock::now(&mut db).await?;
    gate::close(&mut db, reason, &format!("{}: {}", found.subject, found.detail), now).await
}

async fn poke(pool: &PgPool, attempt_id: Option<Uuid>) -> sqlx::Result<()> {
    sqlx::query!("update attempt set pokes = pokes + 1, next_run_at = db_clock() where id = $1", attempt_id)
        .execute(pool)
        .await?;
    Ok(())
}

/// Begins what can be done. The attempt's own worker captures, by the attempt's own key.
async fn begin_repair(pool: &PgPool, client: &Client, found: &Found, row: Kept) -> anyhow::Result<()> {
    match (found.class, found.subject.split_once(':')) {
        (Class::M5, Some(("intent", pi_id))) => {
            orphan::cancel(pool, client, pi_id, row.repair_tries).await?;
        }
        (Class::M2, _) => {
            poke(pool, found.attempt_id).await?;
            // Its worker has nothing to do any more, since we believe that it is done.
            if let (Some(attempt_id), Some(pi_id)) = (found.attempt_id, &found.pi_id) {
                orphan::capture(pool, client, attempt_id, pi_id, row.repair_tries).await?;
            }
        }
        (Class::M6, Some(("refund", id))) => match id.parse::<Uuid>() {
            // One of ours: ask what became of it.
            Ok(refund_id) => {
                sqlx::query!("update refund set look_at = db_clock() where id = $1 and replaced_by is null", refund_id)
                    .execute(pool)
                    .await?;
                poke(pool, found.attempt_id).await?;
            }
            Err(_) => outside::record(pool, id).await?,
        },
        _ => poke(pool, found.attempt_id).await?,
    }
    Ok(())
}

async fn is_repaired(pool: &PgPool, client: &Client, found: &Found) -> anyhow::Result<bool> {
    Ok(match (found.class, found.subject.split_once(':')) {
        (Class::M2, _) => sqlx::query_scalar!(
            r#"select (state = 'captured' and not exists (
                   select from provider_intent p where p.pi_id = attempt.pi_id and p.status <> 'succeeded' and p.status <> 'requires_capture')) as "done!"
               from attempt where id = $1"#,
            found.attempt_id
        )
        .fetch_one(pool)
        .await?
            && captured_there(pool, client, found).await?,
        (Class::M5, Some((_, pi_id))) => {
            sqlx::query_scalar!(
                r#"select exists(select from provider_intent where pi_id = $1 and status = 'canceled') as "done!""#,
                pi_id
            )
            .fetch_one(pool)
            .await?
        }
        (Class::M6, Some((_, id))) => match id.parse::<Uuid>() {
            Ok(refund_id) => sqlx::query_scalar!(
                r#"select (r.look_at is null and exists (
                       select from provider_refund p where (p.re_id = r.provider_id or p.refund_id = r.id)
                         and (p.status in ('failed', 'canceled')) = (r.state = 'failed'))) as "done!"
                   from refund r where r.id = $1"#,
                refund_id
            )
            .fetch_one(pool)
            .await?,
            Err(_) => sqlx::query_scalar!(r#"select exists(select from refund where provider_id = $1) as "done!""#, id)
                .fetch_one(pool)
                .await?,
        },
        _ => true,
    })
}

/// We believe that it is captured; the provider says so too.
async fn captured_there(pool: &PgPool, client: &Client, found: &Found) -> anyhow::Result<bool> {
    let Some(pi_id) = &found.pi_id else { return Ok(false) };
    let intent = books::one(pool, client, pi_id).await?;
    Ok(intent.is_some_and(|i| i.status == super::provider::IntentStatus::Succeeded))
}
