//! A provider of our own for tests and the demo: it speaks the real one's wire over a real socket,
//! faults included, so that the client that runs everywhere is the real one.
//!
//! Invariants
//! - The same seed and the same requests in the same order have the same outcome.
//! - Idempotency is the provider's: the first answer is kept once work has begun, a 500 too; another
//!   request under the same key is an error; one under way is 409.
//! - `GET /_sim/ledger` is the truth about money; nothing that a fault hides from a client is missing in it.

pub mod cards; // the test cards
mod params; // form-encoded parameters
pub mod rules; // what goes wrong, and when
mod world; // the truth
mod ledger; // the truth, for tests to read
mod api; // the provider's operations
mod reader; // and those of card readers
mod settlement; // what is told of the money
mod door; // who is let in
mod http; // the provider's addresses
mod hooks; // webhooks
mod control; // /_sim
mod state; // the truth, kept in a file
mod pages; // the card form, the challenge
#[cfg(test)]
mod contract; // our client against it, over a socket

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use anyhow::Context;
use axum::{
    Router,
    body::Body,
    routing::{any, get},
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use self::{door::Door, rules::Latency, state::StateFile, world::World};
use crate::config::Secret;

/// The version whose shapes are spoken.
pub const API_VERSION: &str = "2024-06-20";

#[derive(Debug, Clone)]
pub struct SimulatorConfig {
    pub seed: u64,
    pub secret_key: Secret,
    pub publishable_key: String,
    /// Where webhooks go; `/_sim/webhook` sets it later.
    pub webhook_url: Option<String>,
    pub webhook_secrets: Vec<Secret>,
    pub webhook_delay_ms: u64,
    /// How long after each failed delivery the next one follows.
    pub webhook_retry_ms: Vec<u64>,
    /// How browsers reach the card form and the challenge; empty: the listening address.
    pub public_url: String,
    /// Of every request that no rule says anything about.
    pub latency: Latency,
    /// Where the truth outlives the process; none: it begins anew.
    pub state_file: Option<PathBuf>,
}

impl Default for SimulatorConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            secret_key: Secret::new("sk_test_simulator"),
            publishable_key: "pk_test_simulator".into(),
            webhook_url: None,
            webhook_secrets: vec![Secret::new("whsec_simulator")],
            webhook_delay_ms: 20,
            webhook_retry_ms: vec![500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000],
            public_url: String::new(),
            latency: Latency::NONE,
            state_file: None,
        }
    }
}

/// A running simulator, shared by its connections.
#[derive(Clone)]
struct Simulator(Arc<Inner>);

struct Inner {
    config: SimulatorConfig,
    world: Mutex<World>,
    webhook_url: Mutex<Option<String>>,
    /// Whoever has it writes the truth down.
    writing: tokio::sync::Mutex<()>,
    http: reqwest::Client,
    stop: CancellationToken,
}

impl Simulator {
    fn config(&self) -> &SimulatorConfig {
        &self.0.config
    }

    /// The truth, to itself. A thread that panicked with it left it whole: every step is done or not begun.
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn webhook_url(&self) -> Option<String> {
        self.0.webhook_url.lock().unwrap_or_else(|p| p.into_inner()).clone()
    }

    fn set_webhook_url(&self, url: Option<String>) {
        *self.0.webhook_url.lock().unwrap_or_else(|p| p.into_inner()) = url;
    }

    fn http(&self) -> &reqwest::Client {
        &self.0.http
    }

    fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }
}

/// How soon a rule that nobody is to be let in takes effect, and how soon its end.
const DOOR_TICK: Duration = Duration::from_millis(10);

/// Serves until `stop` is cancelled; open connections break then.
pub async fn serve(listener: TcpListener, config: SimulatorConfig, stop: CancellationToken) -> anyhow::Result<()> {
    serve_with_control(listener, None, config, stop).await
}

/// The same, with `/_sim` at an address of its own as well: it answers while the provider refuses connections.
pub async fn serve_with_control(
    listener: TcpListener,
    control: Option<TcpListener>,
    mut config: SimulatorConfig,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if config.public_url.is_empty() {
        config.public_url = format!("http://{}", listener.local_addr().context("the simulator's address")?);
    }
    let state = config.state_file.clone().map(StateFile::new);
    let read = state.as_ref().map(|file| file.read(&config.public_url)).transpose()?.flatten();
    let sim = Simulator(Arc::new(Inner {
        world: Mutex::new(read.unwrap_or_else(|| World::new(config.seed))),
        webhook_url: Mutex::new(config.webhook_url.clone()),
        writing: tokio::sync::Mutex::new(()),
        http: reqwest::Client::builder().no_proxy().build().context("the HTTP client of webhooks")?,
        stop: stop.clone(),
        config,
    }));
    let router = Router::new()
        .route("/v1/{*rest}", any(http::v1))
        .route("/form", get(pages::form))
        .route("/challenge/{id}", get(pages::challenge).post(pages::answer))
        .merge(control::routes())
        .with_state(sim.clone());

    let still = CancellationToken::new();
    let kept = state.map(|file| tokio::spawn(file.keep(sim.clone(), still.clone())));
    let (mut tasks, mut lines) = (JoinSet::new(), JoinSet::new());
    tasks.spawn(pass_time(sim.clone()));
    if let Some(control) = control {
        tasks.spawn(answer_control(control, control::routes().with_state(sim.clone())));
    }
    let mut door = Door::Open(listener);
    let mut look = tokio::time::interval(DOOR_TICK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            socket = door.accept() => {
                lines.spawn(connection(socket, router.clone()));
            }
            _ = look.tick() => {
                let refuses = sim.world().refuses();
                if refuses && !door.is_shut() {
                    lines.shutdown().await;
                }
                door = door.turn(refuses).context("the simulator's address")?;
            }
            Some(_) = lines.join_next() => {}
        }
    }
    lines.shutdown().await; // first, so that nobody is told anything that the last writing misses
    tasks.shutdown().await;
    still.cancel();
    if let Some(kept) = kept {
        kept.await.context("keeping the simulator's state")?;
    }
    Ok(())
}

async fn answer_control(listener: TcpListener, router: Router) {
    let (mut door, mut lines) = (Door::Open(listener), JoinSet::new());
    loop {
        tokio::select! {
            socket = door.accept() => {
                lines.spawn(connection(socket, router.clone()));
            }
            Some(_) = lines.join_next() => {}
        }
    }
}

async fn connection(socket: TcpStream, router: Router) {
    let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let router = router.clone();
        async move {
            let response = router.oneshot(request.map(Body::new)).await.unwrap_or_else(|e: Infallible| match e {});
            match response.extensions().get::<http::Break>() {
                // An error of the service closes the connection without a word.
                Some(_) => Err(std::io::Error::other("a rule breaks the connection")),
                None => Ok(response),
            }
        }
    });
    // A client that hangs up is none of our business.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

/// Authorisations lapse and refunds arrive without anybody asking.
async fn pass_time(sim: Simulator) {
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    loop {
        tick.tick().await;
        sim.world().settle();
        sim.deliver_outgoing().await;
    }
}

/// `fullhouse simulate-payments`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8090")]
    pub listen: String,
    /// Everything random follows from it
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Where browsers reach this address, if not under the one it listens on
    #[arg(long, default_value = "")]
    pub public_url: String,
    /// Where webhooks are delivered, e.g. http://127.0.0.1:8080/api/webhooks/payments
    #[arg(long)]
    pub webhook_url: Option<String>,
    /// What webhooks are signed with; given twice while one is rotated
    #[arg(long, default_value = "whsec_simulator")]
    pub webhook_secret: Vec<String>,
    /// Keeps all that was promised in this file, and goes on from it: intents, refunds, keys, money.
    /// Without it each start begins anew. Rules and the log of requests are not kept
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Where `/_sim` answers as well, even while a rule lets nobody in, e.g. 127.0.0.1:8091
    #[arg(long, value_name = "ADDRESS")]
    pub control: Option<String>,
    /// Half of the answers take no longer
    #[arg(long, default_value_t = 300)]
    pub latency_p50_ms: u64,
    /// One in a hundred takes longer
    #[arg(long, default_value_t = 3000)]
    pub latency_p99_ms: u64,
}

/// Runs until interrupted.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let bind =
        async |address: &str| TcpListener::bind(address).await.with_context(|| format!("listening on {address}"));
    let listener = bind(&args.listen).await?;
    let control = match &args.control {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let config = SimulatorConfig {
        seed: args.seed,
        public_url: args.public_url,
        webhook_url: args.webhook_url,
        webhook_secrets: args.webhook_secret.into_iter().map(Secret::new).collect(),
        latency: Latency::Lognormal { p50_ms: args.latency_p50_ms, p99_ms: args.latency_p99_ms },
        state_file: args.state,
        ..SimulatorConfig::default()
    };
    tracing::info!(addr = %listener.local_addr()?, seed = config.seed, "the payment simulator listens");
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        on_signal.cancel();
    });
    serve_with_control(listener, control, config, stop).await
}
