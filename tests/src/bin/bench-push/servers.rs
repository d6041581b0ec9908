//! The servers that are measured: how each is started, where its viewers go, and how a frame is published.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail};
use fullhouse::{
    child::{Kept, Spec},
    config::Config,
    feed::{self, Feed, Kind as MessageKind},
};
use fullhouse_protocol::{
    frames::{Change, Head, Position, encode_delta},
    keyframe::{KeyframePart, SeatState},
    seat::Status,
};
use fullhouse_tests::{
    binary::Binary,
    database::Database,
    nats::Nats,
    nginx,
    run::{run, server_program},
    viewers::{Plan, Speech},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::cost::family;

/// Seats of the bench's hall.
const SEATS: u32 = 4_000;
/// The relay's epochs are even.
const EPOCH: u64 = 2_000;
/// The largest part of a keyframe: NATS takes a megabyte.
const PART_BYTES_MAX: usize = 512 * 1024;
/// Of the frames' time: microseconds here, so that a tenth of a millisecond can be told.
pub const CLOCK: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Floor,
    Ours,
    Naive,
    Nchan,
    Nats,
    Ws,
}

impl Kind {
    pub const ALL: [Self; 6] = [Self::Floor, Self::Ours, Self::Naive, Self::Nchan, Self::Nats, Self::Ws];

    pub fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Ours => "ours",
            Self::Naive => "naive",
            Self::Nchan => "nchan",
            Self::Nats => "nats",
            Self::Ws => "ws",
        }
    }

    /// Why it can't be measured here, if it can't.
    pub fn missing(self) -> Option<String> {
        let there = match self {
            Self::Floor | Self::Naive => true,
            Self::Ours | Self::Nats => has("nats-server"),
            Self::Nchan => nchan_module().is_some() && has("nginx"),
            Self::Ws => ws_folder().is_some() && has("node"),
        };
        (!there).then(|| format!("{} is not installed: `.ci/setup bench` does that", self.name()))
    }
}

/// What keeps it running.
enum Keep {
    Hubs(Vec<Binary>),
    Child(Box<Child>),
    Process(Kept),
}

/// How a frame gets in.
enum Way {
    Post(reqwest::Client, String),
    Bus(Box<feed::Publisher>),
    Nats(async_nats::Client),
}

pub struct Server {
    pub ports: Vec<u16>,
    pub pids: Vec<u32>,
    path: String,
    position: Option<(u64, u64)>,
    speech: Speech,
    way: Way,
    head: Head,
    keep: Keep,
}

/// What our hubs stand on.
pub struct Ground {
    pub database: Database,
    pub nats: Nats,
    streams: u32,
}

impl Ground {
    pub async fn lay() -> Self {
        Self { database: Database::new().await, nats: Nats::start().await, streams: 0 }
    }

    /// Settings of hubs that know nothing of those before.
    pub async fn config(&mut self) -> Config {
        self.streams += 1;
        let mut config = self.database.config().await;
        config.nats.url = self.nats.url();
        config.nats.stream = format!("BENCH{}", self.streams);
        config.database.connections_max = 4;
        config
    }
}

/// A hub that carries sockets, with as many shards as it likes.
pub async fn push_hub(config: &Config, more: &[(&str, &str)]) -> Binary {
    let settings = [("FULLHOUSE__PUSH__SOCKETS_MAX", "1000000"), ("FULLHOUSE__HTTP__CONNECTIONS_MAX", "19000")];
    Binary::serve_as(config, &["push"], &[&settings, more].concat()).await
}

impl Server {
    pub async fn start(kind: Kind, ground: &mut Ground) -> anyhow::Result<Self> {
        match kind {
            Kind::Floor | Kind::Naive => Self::start_own(kind.name()).await,
            Kind::Ours => Self::start_ours(ground, 1, &[]).await,
            Kind::Nchan => Self::start_nchan().await,
            Kind::Nats => Self::start_nats().await,
            Kind::Ws => Self::start_ws().await,
        }
    }

    /// Push processes of ours, on a feed into which the bench publishes as the relay would.
    pub async fn start_ours(ground: &mut Ground, count: usize, more: &[(&str, &str)]) -> anyhow::Result<Self> {
        let config = ground.config().await;
        let mut publisher = Feed::open(&config).await?.publisher();
        publisher.published().await?;
        let head = head();
        let seats = vec![SeatState::default(); SEATS as usize];
        let keyframe: Vec<feed::Message> = KeyframePart::split(head, &seats, PART_BYTES_MAX)
            .iter()
            .map(|part| feed::Message { event_id: head.event_id, kind: MessageKind::Keyframe, bytes: part.encode() })
            .collect();
        publisher.publish_keyframes(&keyframe).await?;
        let mut hubs = Vec::new();
        for _ in 0..count {
            hubs.push(push_hub(&config, more).await);
        }
        wait_for_feed(&hubs, head.event_id).await?;
        Ok(Self {
            ports: hubs.iter().map(Binary::port).collect(),
            pids: hubs.iter().map(Binary::pid).collect(),
            path: format!("/api/events/{}/live", head.event_id),
            position: Some((head.at.epoch, head.at.frame)),
            speech: Speech::WebSocket,
            way: Way::Bus(Box::new(publisher)),
            head,
            keep: Keep::Hubs(hubs),
        })
    }

    async fn start_own(name: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(name);
        let (child, port) = started(command).await?;
        Ok(Self::posting(port, "/live", "/publish", Keep::Child(Box::new(child)), Vec::new()))
    }

    async fn start_ws() -> anyhow::Result<Self> {
        let mut command = Command::new("node");
        command.arg(fullhouse_tests::run::workspace().join("tests/peers/ws_server.mjs"));
        command.arg(ws_folder().context("ws is not installed")?);
        let (child, port) = started(command).await?;
        Ok(Self::posting(port, "/live", "/publish", Keep::Child(Box::new(child)), Vec::new()))
    }

    fn posting(port: u16, path: &str, publish: &str, keep: Keep, more: Vec<u32>) -> Self {
        let mut pids = match &keep {
            Keep::Child(child) => child.id().into_iter().collect(),
            _ => Vec::new(),
        };
        pids.extend(more);
        Self {
            ports: vec![port],
            pids,
            path: path.to_owned(),
            position: None,
            speech: Speech::WebSocket,
            way: Way::Post(reqwest::Client::new(), format!("http://127.0.0.1:{port}{publish}")),
            head: head(),
            keep,
        }
    }

    async fn start_nchan() -> anyhow::Result<Self> {
        let directory = run().await.directory("nginx");
        let port = free_port()?;
        let module = nchan_module().context("nchan is not installed")?;
        let settings = format!(
            "{}nchan_shared_memory_size 256M;\n\
             server {{ listen 127.0.0.1:{port} backlog=65535; tcp_nodelay on;\n\
             location = /live {{ nchan_subscriber websocket; nchan_channel_id f;\n\
             nchan_subscriber_first_message newest; nchan_websocket_ping_interval 0; }}\n\
             location = /publish {{ nchan_publisher; nchan_channel_id f; nchan_message_buffer_length 4; }}\n}} }}\n",
            nginx::head(&directory, &format!("load_module {};", module.display()), super::kernel::files_max()),
        );
        let path = directory.join("nginx.conf");
        std::fs::write(&path, settings)?;
        let log = std::fs::File::create(directory.join("output"))?;
        let child = Spec::new(server_program("nginx"))
            .args(["-g", "daemon off;", "-p"])
            .arg(&directory)
            .arg("-c")
            .arg(&path)
            .output(log)
            .spawn()?;
        listens(port).await.with_context(|| std::fs::read_to_string(directory.join("output")).unwrap_or_default())?;
        serves(port, "/live").await?; // its workers begin after it listens
        let pids = family(child.pid().as_raw().cast_unsigned());
        Ok(Self::posting(port, "/live", "/publish", Keep::Process(child), pids))
    }

    async fn start_nats() -> anyhow::Result<Self> {
        let directory = run().await.directory("nats-websocket");
        let (port, sockets) = (free_port()?, free_port()?);
        let path = directory.join("nats.conf");
        let settings = format!(
            "host: \"127.0.0.1\"\nport: {port}\nmax_connections: 100000\nping_interval: \"1h\"\n\
             websocket {{ host: \"127.0.0.1\", port: {sockets}, no_tls: true, compression: false }}\n"
        );
        std::fs::write(&path, settings)?;
        let log = std::fs::File::create(directory.join("log"))?;
        let child = Spec::new(server_program("nats-server")).arg("-c").arg(&path).output(log).spawn()?;
        serves(sockets, "/").await?;
        let client = async_nats::connect(format!("nats://127.0.0.1:{port}")).await?;
        Ok(Self {
            ports: vec![sockets],
            pids: vec![child.pid().as_raw().cast_unsigned()],
            path: "/".to_owned(),
            position: None,
            speech: Speech::Nats,
            way: Way::Nats(client),
            head: head(),
            keep: Keep::Process(child),
        })
    }

    /// Where viewers go, as fast as they can.
    pub fn plan(&self) -> Plan {
        Plan {
            ports: self.ports.clone(),
            path: self.path.clone(),
            position: self.position.map(|_| (self.head.at.epoch, self.head.at.frame)),
            speech: self.speech,
            net: 1,
            at_once: 256,
            rate: None,
            return_to: Vec::new(),
            receive_buffer: None,
        }
    }

    /// Publishes the next frame, which is of so many bytes, and returns its number.
    pub async fn publish(&mut self, bytes: usize) -> anyhow::Result<u64> {
        self.head.at.frame += 1;
        self.head.committed_at_ms = now();
        let changes = (bytes - fullhouse_protocol::frames::HEADER_BYTES) / 4;
        let status = if self.head.at.frame.is_multiple_of(2) { Status::Available } else { Status::Held };
        let changes: Vec<Change> = (0..changes as u32).map(|seat_no| Change { seat_no, status }).collect();
        let frame = encode_delta(&self.head, &changes);
        match &mut self.way {
            Way::Post(client, url) => {
                let request = client.post(&*url).header("content-type", "application/octet-stream").body(frame);
                request.send().await?.error_for_status()?;
            }
            Way::Bus(publisher) => {
                let message = feed::Message { event_id: self.head.event_id, kind: MessageKind::Frame, bytes: frame };
                publisher.publish(&[message]).await?;
            }
            Way::Nats(client) => {
                client.publish("f", frame).await?;
                client.flush().await?;
            }
        }
        Ok(self.head.at.frame)
    }

    /// One of our hubs, to be stopped or killed.
    pub fn take_hub(&mut self) -> Option<Binary> {
        let Keep::Hubs(hubs) = &mut self.keep else { return None };
        hubs.pop()
    }

    pub async fn stop(self) {
        match self.keep {
            Keep::Hubs(hubs) => {
                for hub in hubs {
                    hub.kill().await;
                }
            }
            Keep::Child(mut child) => _ = child.kill().await,
            Keep::Process(process) => process.stop().await,
        }
    }
}

fn head() -> Head {
    Head { event_id: 1, at: Position { epoch: EPOCH, frame: 0 }, seat_count: SEATS, committed_at_ms: now() }
}

/// In the clock of the bench's frames.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

/// Until each hub has the room from the feed.
async fn wait_for_feed(hubs: &[Binary], event: i64) -> anyhow::Result<()> {
    for hub in hubs {
        position(hub.url(), event).await.context("a hub has no feed")?;
    }
    Ok(())
}

/// Where an event's room stands at a hub, once the feed has reached it.
pub async fn position(hub: &str, event: i64) -> anyhow::Result<(u64, u64)> {
    let client = reqwest::Client::new();
    for _ in 0..200 {
        let answer = client.get(format!("{hub}/api/events/{event}/snapshot")).send().await?;
        let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).unwrap_or_default().trim_matches('"');
        if let Some((epoch, frame)) = tag.split_once('-')
            && let (Ok(epoch), Ok(frame)) = (epoch.parse::<u64>(), frame.parse())
            && epoch % 2 == 0
        {
            return Ok((epoch, frame));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("the feed has not come")
}

/// A program of ours that prints its port and ends with its input.
async fn started(mut command: Command) -> anyhow::Result<(Child, u16)> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
    let port = lines.next_line().await?.context("it printed no port")?;
    Ok((child, port.trim().parse()?))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

async fn listens(port: u16) -> anyhow::Result<()> {
    for _ in 0..200 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("nobody listens at {port}")
}

/// Until a handshake is answered, and so whoever answers them has begun.
async fn serves(port: u16, path: &str) -> anyhow::Result<()> {
    for _ in 0..200 {
        let handshake = tokio_tungstenite::connect_async(format!("ws://127.0.0.1:{port}{path}"));
        if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(1), handshake).await {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("nobody answers at {port}{path}")
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into()]).any(|folder| folder.join(program).exists())
}

fn nchan_module() -> Option<std::path::PathBuf> {
    let path = Path::new("/usr/lib/nginx/modules/ngx_nchan_module.so");
    path.exists().then(|| path.to_owned())
}

/// Where npm has put the peers, beside what is built.
fn ws_folder() -> Option<std::path::PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let folder = exe.ancestors().nth(2)?.join("peers/node");
    folder.join("node_modules/ws").exists().then_some(folder)
}
