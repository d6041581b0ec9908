//! A sale to play with: everything that a house needs, started by one command and gone with it.
//!
//! Invariants
//! - Whatever it starts ends with it, also when it is killed; only its data directory stays.
//! - The next start takes seconds and goes on where this one ended.
//! - It talks to nobody but this machine.

mod house; // what is in it: events, accounts, a till

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::ExitStatus,
};

use anyhow::Context;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, Secret},
    crowd, db,
    embedded_postgres::{self, EmbeddedPostgres, enterable_by_server},
    payment::simulator::{self, SimulatorConfig, rules::Latency},
    serve::{self, StartOptions},
};

/// What can be asked of a demo.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Where it listens. If the port is taken, it takes the next one that is free, and says so.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "HOST:PORT")]
    pub listen: SocketAddr,
    /// Where its data stays between starts [default: .fullhouse/demo here, or a place that root's server can enter].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Synthetic fans who use the public API like anybody else.
    #[arg(long, default_value_t = 0, value_name = "FANS", value_parser = clap::value_parser!(u32).range(0..=5000))]
    pub crowd: u32,
    /// How long a hold lasts, in seconds: short, to see one run out.
    #[arg(long, default_value_t = 480, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(10..=3600))]
    pub hold_ttl_s: i32,
}

const DATABASE: &str = "fullhouse";
/// Ports tried after the one that was asked for.
const PORTS_TRIED_MAX: u16 = 100;
const CROWD_SEED: u64 = 7;

/// Opens the house, and keeps it open until `asked` to close; asked again, it does not wait.
pub async fn run(config: Config, options: Options, mut asked: impl AsyncFnMut()) -> anyhow::Result<()> {
    let opened = tokio::select! {
        opened = open(config, &options) => opened?,
        () = asked() => return Ok(()), // what had started ends as it is dropped
    };
    let why = tokio::select! {
        () = asked() => Ok(()),
        status = opened.postgres.ended() => without_postgres(status),
        task = opened.hub.failed() => Err(anyhow::anyhow!("the demo's hub lost its {task}, so the demo closed")),
    };
    println!("Closing.");
    tokio::select! {
        () = opened.close() => why,
        () = asked() => anyhow::bail!("closed at once; PostgreSQL still writes down what was committed"),
    }
}

/// Without its PostgreSQL a demo could only refuse. Starting it again is left to whoever sees why it ended.
fn without_postgres(status: ExitStatus) -> anyhow::Result<()> {
    anyhow::bail!(
        "the demo's PostgreSQL ended by itself ({status}), so the demo closed; started again, it goes on where it was"
    )
}

/// Everything that runs.
struct Opened {
    postgres: EmbeddedPostgres,
    provider: Provider,
    hub: serve::Running,
    crowd: JoinHandle<()>,
    closing: CancellationToken,
}

/// Starts everything, and says where it is.
async fn open(mut config: Config, options: &Options) -> anyhow::Result<Opened> {
    let data = data_directory(options.data.as_deref())?;
    let listen = free_port(options.listen)?;
    let settings = embedded_postgres::Options { data: data.clone(), durable: true, connections_max: 100 };
    let postgres = EmbeddedPostgres::start(settings).await?;
    postgres.ensure_database(DATABASE).await?;

    let provider = Provider::open(&listen, &data, &mut config).await?;
    config.database.url = Secret::new(postgres.url(DATABASE));
    config.http.listen = listen.to_string();
    config.http.public_url = format!("http://{listen}");
    if config.http.assets_dir.is_empty() {
        config.http.assets_dir = page_directory();
    }
    if config.mail.smtp_url.is_empty() && config.mail.folder.is_empty() {
        config.mail.folder = mail_folder(&data)?;
    }
    config.auth.address_tries_max = u32::MAX; // the whole crowd has one address
    config.waiting_room.address_challenges_max = u32::MAX;
    config.waiting_room.challenge_tries /= 10; // and one machine solves for all of it
    config.waiting_room.address_link_shown = true; // nobody here gets mail
    config.payment.pay_margin_s = config.payment.pay_margin_s.min(i64::from(options.hold_ttl_s) / 4);

    let pool = db::connect(&config.database).await?;
    db::migrate(&pool).await?;
    let house = house::open(&pool, &config, &data, options.hold_ttl_s).await?;
    pool.close().await;

    let mail_folder = config.mail.folder.clone();
    let provider_url = config.payment.provider_url.clone();
    let publishable_key = config.payment.publishable_key.clone();
    let hub = serve::start(config, StartOptions::default()).await?;
    let url = format!("http://{}", hub.addr);
    if options.listen.port() != 0 && hub.addr.port() != options.listen.port() {
        println!("Port {} is taken: this demo listens on {}.", options.listen.port(), hub.addr.port());
    }
    house.print(&url, &data, &postgres.url(DATABASE), &mail_folder, options.crowd);

    let closing = CancellationToken::new();
    let company = crowd::Options { hub_url: url, provider_url, publishable_key, fans: options.crowd, seed: CROWD_SEED };
    let crowd = tokio::spawn(crowd::run(company, closing.clone()));
    Ok(Opened { postgres, provider, hub, crowd, closing })
}

impl Opened {
    async fn close(self) {
        self.closing.cancel();
        let _ = self.crowd.await; // a fan that panicked is no reason to stay open
        self.hub.stop().await;
        self.provider.close().await;
        self.postgres.stop().await;
    }
}

/// Here, unless PostgreSQL's unprivileged user can't get here: root's home is closed to it.
fn data_directory(asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(asked) = asked {
        return Ok(std::path::absolute(asked)?);
    }
    let here = std::path::absolute(".fullhouse/demo")?;
    if enterable_by_server(&here) { Ok(here) } else { Ok(PathBuf::from("/var/lib/fullhouse/demo")) }
}

/// Where the demo's mail goes, for everybody to read: emptied at each start, since a crowd buys a lot.
fn mail_folder(data: &Path) -> anyhow::Result<String> {
    let folder = data.join("mail");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("emptying {}", folder.display()))
        }
        _ => Ok(folder.to_string_lossy().into_owned()),
    }
}

/// The built page of the checkout that the demo is run in; nothing if it has not been built.
fn page_directory() -> String {
    let built = Path::new("assets/fan/dist");
    if built.join("index.html").exists() {
        return built.to_string_lossy().into_owned();
    }
    println!("The page is not built here (`make demo` does that): only the API is served.");
    String::new()
}

/// The simulated payment provider, on a port of its own: the same at every start, with what it knew,
/// so that a payment under way goes on.
struct Provider {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Provider {
    /// Starts it, and points the hub's settings at it.
    async fn open(hub: &SocketAddr, data: &Path, config: &mut Config) -> anyhow::Result<Self> {
        let listener = remembered_port(&data.join("provider-port")).await.context("the provider's port")?;
        let url = format!("http://{}", listener.local_addr()?);
        let settings = SimulatorConfig {
            webhook_url: Some(format!("http://{hub}/api/webhooks/payments")),
            webhook_secrets: vec![Secret::new(random_secret("whsec_"))],
            secret_key: given_or_random(&config.payment.secret_key),
            latency: Latency::Lognormal { p50_ms: 200, p99_ms: 1_500 },
            seed: rand::random(), // the numbers of its objects must not come again at the next start
            state_file: Some(data.join("provider.json")),
            ..SimulatorConfig::default()
        };
        config.payment.provider_url.clone_from(&url);
        config.payment.form_url = format!("{url}/form");
        config.payment.secret_key = settings.secret_key.clone();
        config.payment.publishable_key.clone_from(&settings.publishable_key);
        config.payment.webhook_secrets.clone_from(&settings.webhook_secrets);
        let stop = CancellationToken::new();
        let task = tokio::spawn(simulator::serve(listener, settings, stop.clone()));
        Ok(Self { stop, task })
    }

    async fn close(self) {
        self.stop.cancel();
        let _ = self.task.await; // it ends; how, is of no interest any more
    }
}

/// The port of the last start, or another if there was none or it is taken.
async fn remembered_port(file: &Path) -> anyhow::Result<tokio::net::TcpListener> {
    let before: u16 = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let listener = match tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, before)).await {
        Ok(listener) => listener,
        Err(_) => tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
    };
    fs::write(file, listener.local_addr()?.port().to_string())?;
    Ok(listener)
}

/// A key that was set is whoever's who set it: they want to speak to the provider themselves.
fn given_or_random(key: &Secret) -> Secret {
    if key.reveal().is_empty() { Secret::new(random_secret("sk_test_")) } else { key.clone() }
}

/// Whoever else is on this machine can reach the ports, so the keys are nobody's to guess.
fn random_secret(prefix: &str) -> String {
    format!("{prefix}{:032x}", rand::random::<u128>())
}

/// The address, or the next port of it that nobody listens on.
fn free_port(asked: SocketAddr) -> anyhow::Result<SocketAddr> {
    let mut address = asked;
    for _ in 0..=PORTS_TRIED_MAX {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener.local_addr()?),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && address.port() < u16::MAX => {
                address.set_port(address.port() + 1);
            }
            Err(error) => return Err(error).with_context(|| format!("listening on {address}")),
        }
    }
    anyhow::bail!("no port from {} to {} is free", asked.port(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_passed_over() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let asked = taken.local_addr().unwrap();
        let found = free_port(asked).unwrap();
        assert!(found.port() > asked.port() && found.ip() == asked.ip());
    }
}
