//! A hub: the parts that are wired together, the roles that it plays, its start and its end.
//!
//! Invariants
//! - A hub does not start on a clock that was replaced, nor on a schema that is not its own.
//! - Without NATS the frames stay in this process, so only one hub may run on a database; with it, any number.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, bail};
use axum::{extract::FromRef, http::HeaderMap};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use sqlx::{Connection, PgConnection, PgPool};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::Auth,
    clock,
    config::Config,
    db,
    edge::{self, assets::Assets, envelope::careful_headers},
    hold::{self, desk::Desks},
    metrics::Metrics,
    seat_map::Boards,
    watch,
};

/// What a hub consists of. Handlers take just the parts that they use.
#[derive(Clone, FromRef)]
pub struct Hub {
    pub config: Arc<Config>,
    pub pool: PgPool,
    pub metrics: Metrics,
    pub auth: Auth,
    pub boards: Boards,
    pub desks: Desks,
    /// What every answer tells a browser to be careful about.
    pub careful_headers: Arc<HeaderMap>,
    /// Cancelled when the hub is told to stop.
    pub stop: CancellationToken,
}

impl Hub {
    /// How long a request may take.
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.config.http.request_timeout_s)
    }
}

/// What this process does. All of it, unless roles are named one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// Answers requests and takes holds.
    pub api: bool,
    /// Carries the sockets of open maps.
    pub push: bool,
    /// Turns committed changes into frames (one leads, others wait).
    pub relay: bool,
    /// Sweeps, drives payments, watches the invariants.
    pub workers: bool,
}

impl Roles {
    pub const ALL: Roles = Roles { api: true, push: true, relay: true, workers: true };
    pub const NONE: Roles = Roles { api: false, push: false, relay: false, workers: false };
}

#[derive(Debug, Clone, Copy)]
pub struct StartOptions {
    /// Tests set the time by replacing `db_clock()`; nobody else may.
    pub allow_test_clock: bool,
    pub roles: Roles,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self { allow_test_clock: false, roles: Roles::ALL }
    }
}

/// A hub that has started. Dropping it leaves it running until the process ends; [`Running::stop`] ends it.
pub struct Running {
    /// Where it listens: the port that was free, if port 0 was asked for.
    pub addr: SocketAddr,
    pub hub: Hub,
    tasks: TaskTracker,
    alone: Option<PgConnection>,
}

/// Starts a hub: checks what it stands on, then listens.
pub async fn start(config: Config, options: StartOptions) -> anyhow::Result<Running> {
    let roles = options.roles;
    let embedded = config.nats.url.is_empty();
    if embedded && roles.push != roles.relay {
        bail!("without NATS (nats.url) the roles push and relay have to run in one process");
    }
    let pool = db::connect(&config.database).await?;
    db::check_schema(&pool).await?;
    check_clock(&pool, options.allow_test_clock).await?;
    let alone = claim_database(&pool, embedded).await?;

    let config = Arc::new(config);
    let assets = Assets::load(&config.http.assets_dir)?;
    let boards = Boards::default();
    let desks = Desks::new(&config, pool.clone(), boards.clone());
    let hub = Hub {
        metrics: Metrics::new(Numbers { pool: pool.clone(), desks: desks.clone() }),
        auth: Auth::new(pool.clone(), &config.auth),
        careful_headers: Arc::new(careful_headers(&config)?),
        stop: CancellationToken::new(),
        boards,
        desks,
        pool,
        config,
    };
    let (stop, tasks) = (&hub.stop, TaskTracker::new());

    let listener = edge::server::listen(&hub.config.http.listen).await?;
    let addr = listener.local_addr().context("the listening address")?;
    tasks.spawn(edge::server::serve(listener, edge::router(&hub, roles, assets), hub.config.clone(), stop.clone()));
    if roles.workers {
        tasks.spawn(tidy_sessions(hub.auth.clone(), stop.clone()));
        let (sweeper, keep_h) = (hub.config.sweeper.clone(), hub.config.desk.request_age_max_h);
        tasks.spawn(hold::sweeper::run(sweeper, hub.pool.clone(), hub.desks.clone(), keep_h, stop.clone()));
        tasks.spawn(watch::run(hub.pool.clone(), hub.metrics.clone(), stop.clone()));
    }
    tasks.close();
    tracing::info!(%addr, ?roles, "the hub has started");
    Ok(Running { addr, hub, tasks, alone: Some(alone) })
}

impl Running {
    /// Stops taking requests, lets those under way and their writes end, then stops the workers.
    /// Takes `http.stop_timeout_s` twice at most.
    pub async fn stop(mut self) {
        let patience = Duration::from_secs(self.hub.config.http.stop_timeout_s);
        self.hub.stop.cancel();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!("some work did not end in time and is left behind");
        }
        // Writes run in tasks of their own; the pool closes when the last connection has come back.
        if tokio::time::timeout(patience, self.hub.pool.close()).await.is_err() {
            tracing::warn!("a write did not end in time; the database ends its transaction");
        }
        if let Some(alone) = self.alone.take() {
            let _ = alone.close().await; // the server lets go of the claim either way
        }
        tracing::info!("the hub has stopped");
    }
}

/// What the parts of a hub say of themselves when somebody reads the metrics.
struct Numbers {
    pool: PgPool,
    desks: Desks,
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Numbers")
    }
}

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder) -> std::fmt::Result {
        let mut gauge = |name, help, value: i64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge("database_connections", "Connections open to PostgreSQL", self.pool.size().into())?;
        gauge("database_connections_idle", "Connections that wait for work", self.pool.num_idle() as i64)?;
        gauge("desk_waiting", "Requests that wait at all desks", self.desks.waiting() as i64)?;
        let counts = self.desks.counts();
        let mut counter = |name, help, value: &AtomicU64| {
            let counter = ConstCounter::new(value.load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
        };
        counter("desk_requests", "Requests that desks have decided", &counts.requests)?;
        counter("desk_batches", "Transactions that decided them", &counts.batches)?;
        counter("desk_batches_failed", "Batches that had to run singly", &counts.failed_batches)?;
        counter("desk_busy_microseconds", "Time in those transactions", &counts.busy_us)
    }
}

async fn check_clock(pool: &PgPool, allow_test_clock: bool) -> anyhow::Result<()> {
    let mut db = pool.acquire().await.context("asking for the clock")?;
    let real = clock::is_real(&mut db).await.context("asking for the clock")?;
    if !real && !allow_test_clock {
        bail!("db_clock() of this database was replaced (a test harness does that): seats would end at the wrong time");
    }
    Ok(())
}

/// "fullhous", as a number: the key of the claim on a database.
const CLAIM: i64 = 0x6675_6c6c_686f_7573;

/// Claims the database: a hub without NATS for itself alone, hubs with NATS together.
/// The claim lasts as long as the connection that is returned.
async fn claim_database(pool: &PgPool, alone: bool) -> anyhow::Result<PgConnection> {
    let mut connection =
        PgConnection::connect_with(&pool.connect_options()).await.context("connecting to PostgreSQL")?;
    let claimed = if alone {
        sqlx::query_scalar!(r#"select pg_try_advisory_lock($1) as "claimed!""#, CLAIM).fetch_one(&mut connection).await
    } else {
        sqlx::query_scalar!(r#"select pg_try_advisory_lock_shared($1) as "claimed!""#, CLAIM)
            .fetch_one(&mut connection)
            .await
    };
    if !claimed.context("claiming the database")? {
        bail!("another hub runs on this database, and one of the two has no NATS (nats.url): their maps would differ");
    }
    Ok(connection)
}

/// Nothing depends on this: a session that has ended is refused by the clock.
async fn tidy_sessions(auth: Auth, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_secs(5));
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        match auth.tidy().await {
            Ok(0) => {}
            Ok(sessions) => tracing::debug!(sessions, "ended sessions were deleted"),
            Err(error) => tracing::warn!(%error, "ended sessions could not be deleted"),
        }
    }
}
