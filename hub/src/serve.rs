//! A hub: the parts that are wired together, the roles that it plays, its start and its end.
//!
//! Invariants
//! - A hub does not start on a clock that was replaced, nor on a schema that is not its own.
//! - Without NATS the frames stay in this process, so only one hub may run on a database; with it, any number.

mod claim; // one hub a database, unless NATS joins them
mod core; // tasks that it can't be without
mod load; // what it measures of itself
mod numbers; // what the parts say of themselves

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use axum::{extract::FromRef, http::HeaderMap};
use fullhouse_protocol::frames::Frame;
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::{
    claim::{Claim, Claimed},
    core::Core,
    numbers::Numbers,
};
use crate::{
    admission,
    auth::Auth,
    box_office::{readers, until_sold},
    catalog::cache::EventCache,
    clock,
    config::Config,
    db,
    edge::{self, assets::Assets, envelope::careful_headers},
    feed::Feed,
    hold::{self, desk::Desks},
    keys::Keys,
    mail::{self, Post},
    metrics::Metrics,
    outbox,
    payment::Payments,
    push::{OnFrame, Rooms},
    retention,
    seat_map::Boards,
    ticket::press::Press,
    waiting_room::WaitingRoom,
    watch,
};

/// How often what is over is forgotten and deleted.
const TIDY_INTERVAL: Duration = Duration::from_secs(5);

/// What a hub consists of. Handlers take just the parts that they use.
#[derive(Clone, FromRef)]
pub struct Hub {
    pub config: Arc<Config>,
    pub pool: PgPool,
    pub metrics: Metrics,
    pub auth: Auth,
    pub events: EventCache,
    pub boards: Boards,
    pub desks: Desks,
    pub rooms: Rooms,
    pub payments: Payments,
    pub press: Press,
    pub keys: Keys,
    pub room: WaitingRoom,
    /// What every answer tells a browser to be careful about.
    pub careful_headers: Arc<HeaderMap>,
    /// Whether the claim on the database is still ours.
    pub claimed: Claimed,
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
    /// Where the numbers are, if that is another address (`http.metrics_listen`).
    pub metrics_addr: Option<SocketAddr>,
    pub hub: Hub,
    tasks: Core,
    let_go: CancellationToken,
    claim: JoinHandle<()>,
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
    let claim = Claim::stake(&pool, embedded).await?;

    let config = Arc::new(config);
    let assets = Assets::load(&config.http.assets_dir)?;
    let post = Post::open(&config.mail)?;
    let boards = Boards::default();
    let desks = Desks::new(&config, pool.clone(), boards.clone());
    let stop = CancellationToken::new();
    let feed = Feed::open(&config).await?;
    let rooms = Rooms::new(config.push.clone(), pool.clone(), stop.clone())?;
    let payments = Payments::new(&config)?;
    let keys = Keys::new(pool.clone());
    let metrics = Metrics::new(Numbers {
        pool: pool.clone(),
        desks: desks.clone(),
        rooms: rooms.clone(),
        payments: payments.clone(),
    });
    rooms.follow(&feed, on_frame(boards.clone(), metrics.clone()));
    let hub = Hub {
        metrics,
        auth: Auth::new(pool.clone(), &config.auth),
        payments,
        press: Press::new(&config.ticket),
        room: WaitingRoom::new(&config, pool.clone(), keys.clone()),
        keys,
        careful_headers: Arc::new(careful_headers(&config)?),
        claimed: claim.claimed(),
        stop,
        events: EventCache::default(),
        boards,
        desks,
        rooms,
        pool,
        config,
    };
    let (stop, tasks) = (&hub.stop, Core::new(hub.stop.clone()));
    let let_go = CancellationToken::new();
    let claim = tokio::spawn(claim.keep(let_go.clone()));

    let listener = edge::server::listen(&hub.config.http.listen).await?;
    let addr = listener.local_addr().context("the listening address")?;
    let router = edge::router(&hub, roles, assets);
    tasks.spawn("server", edge::server::serve(listener, router, hub.config.clone(), stop.clone()));
    let mut metrics_addr = None;
    if !hub.config.http.metrics_listen.is_empty() {
        let listener = edge::server::listen(&hub.config.http.metrics_listen).await.context("http.metrics_listen")?;
        metrics_addr = Some(listener.local_addr().context("the listening address")?);
        let router = edge::metrics_router(&hub);
        tasks.spawn("metrics", edge::server::serve(listener, router, hub.config.clone(), stop.clone()));
    }
    tasks.spawn("rooms", hub.rooms.clone().closed());
    if roles.api {
        tasks.spawn("memory of sessions", forget(hub.auth.clone(), stop.clone()));
        tasks.spawn("load", load::report(hub.clone(), stop.clone()));
    }
    if roles.relay {
        tasks.spawn("relay", outbox::relay::run(hub.config.clone(), hub.pool.clone(), feed, stop.clone()));
    }
    if roles.workers {
        tasks.spawn(
            "lines",
            admission::calling::run(hub.config.admission.clone(), hub.pool.clone(), hub.room.clone(), stop.clone()),
        );
        tasks.spawn("sessions", delete_ended_sessions(hub.auth.clone(), stop.clone()));
        let (sweeper, keep_h) = (hub.config.sweeper.clone(), hub.config.desk.request_age_max_h);
        tasks.spawn("sweeper", hold::sweeper::run(sweeper, hub.pool.clone(), hub.desks.clone(), keep_h, stop.clone()));
        let ask_s = hub.config.box_office.reader_ask_s;
        tasks.spawn("readers", readers::run(hub.payments.clone(), hub.pool.clone(), ask_s, stop.clone()));
        let look_s = hub.config.box_office.until_sold_look_s;
        tasks.spawn("until sold", until_sold::run(hub.pool.clone(), look_s, stop.clone()));
        tasks.spawn("payments", hub.payments.clone().run(hub.pool.clone(), stop.clone()));
        tasks.spawn("watch", watch::run(hub.pool.clone(), hub.metrics.clone(), stop.clone()));
        tasks.spawn("mail", send_mail(hub.clone(), post));
        tasks.spawn(
            "retention",
            retention::run(hub.config.retention.clone(), hub.pool.clone(), hub.metrics.clone(), stop.clone()),
        );
    }
    tasks.close();
    if roles.api && hub.config.http.assets_dir.is_empty() {
        tracing::info!("no http.assets_dir: only the API is served, and / answers 404");
    }
    tracing::info!(%addr, ?roles, "the hub has started");
    Ok(Running { addr, metrics_addr, hub, tasks, let_go, claim })
}

impl Running {
    /// Waits for a task that the hub can't be without and that ends all the same; names it. Then the
    /// hub has to be stopped.
    pub async fn failed(&self) -> &'static str {
        self.tasks.failed().await
    }

    /// Stops taking requests, lets those under way and their writes end, then stops the workers.
    /// Takes `http.stop_timeout_s` twice at most.
    pub async fn stop(self) {
        let patience = Duration::from_secs(self.hub.config.http.stop_timeout_s);
        self.hub.stop.cancel();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!("some work did not end in time and is left behind");
        }
        // Writes run in tasks of their own; the pool closes when the last connection has come back.
        if tokio::time::timeout(patience, self.hub.pool.close()).await.is_err() {
            tracing::warn!("a write did not end in time; the database ends its transaction");
        }
        // Last: whoever claims the database next finds nothing of ours under way.
        self.let_go.cancel();
        let _ = self.claim.await; // it has nothing to say
        tracing::info!("the hub has stopped");
    }
}

async fn send_mail(hub: Hub, post: Option<Post>) {
    mail::run(
        &hub.config,
        hub.pool.clone(),
        post,
        hub.press.clone(),
        hub.keys.clone(),
        hub.metrics.clone(),
        hub.stop.clone(),
    )
    .await;
}

/// What each frame means to this hub: a hint for proposing seats, and how late the map is.
fn on_frame(boards: Boards, metrics: Metrics) -> OnFrame {
    Arc::new(move |frame| {
        let event_id = frame.head().event_id;
        match frame {
            Frame::Delta { head, changes } | Frame::Span { head, changes, .. } => {
                boards.apply(event_id, changes.iter().map(|change| (change.seat_no as i32, change.status)));
                let lag_ms = chrono::Utc::now().timestamp_millis() - head.committed_at_ms as i64;
                metrics.frame_lag_seconds.observe(lag_ms.max(0) as f64 / 1000.0); // two machines' clocks differ a little
            }
            Frame::Snapshot { statuses, .. } => {
                boards.apply(event_id, statuses.iter().enumerate().map(|(seat_no, status)| (seat_no as i32, status)));
            }
            Frame::Range { .. } | Frame::Line { .. } | Frame::Resync { .. } => {}
        }
    })
}

async fn check_clock(pool: &PgPool, allow_test_clock: bool) -> anyhow::Result<()> {
    let mut db = pool.acquire().await.context("asking for the clock")?;
    let real = clock::is_real(&mut db).await.context("asking for the clock")?;
    if !real && !allow_test_clock {
        bail!("db_clock() of this database was replaced (a test harness does that): seats would end at the wrong time");
    }
    Ok(())
}

/// Every node that answers requests remembers sessions and tries of its own.
async fn forget(auth: Auth, stop: CancellationToken) {
    let mut tick = tokio::time::interval(TIDY_INTERVAL);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        auth.forget();
    }
}

/// Nothing depends on this: a session that has ended is refused by the clock.
async fn delete_ended_sessions(auth: Auth, stop: CancellationToken) {
    let mut tick = tokio::time::interval(TIDY_INTERVAL);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        match auth.delete_ended().await {
            Ok(0) => {}
            Ok(sessions) => tracing::debug!(sessions, "ended sessions were deleted"),
            Err(error) => tracing::warn!(%error, "ended sessions could not be deleted"),
        }
    }
}
