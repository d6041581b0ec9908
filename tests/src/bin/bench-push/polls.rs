//! Those who can't hold a socket: 10,000 of them poll through an nginx that is set up as `deploy/nginx` has it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use fullhouse_tests::nginx::Nginx;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use super::{
    Scale,
    cost::{Cost, family},
    kernel::load,
    rounded,
    servers::{Ground, Server},
};

/// As the page does it (`assets/hub-client/feed.ts`).
const INTERVAL: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(100);
const BYTES: usize = 400;
const CLIENTS_AN_ADDRESS: usize = 1_000;

#[derive(Default)]
struct Counts {
    polls: AtomicU64,
    unchanged: AtomicU64,
}

pub async fn run(scale: &Scale, ground: &mut Ground) -> anyhow::Result<Map<String, Value>> {
    let (clients, time) = scale.polls;
    let mut server = Server::start_ours(ground, 1, &[]).await?;
    let hub = format!("http://127.0.0.1:{}", server.ports[0]);
    let nginx = Nginx::start(&hub).await;
    let (counts, began) = (Arc::new(Counts::default()), Instant::now());
    let (at_hub, before, before_nginx) =
        (answered(&hub).await?, Cost::now(&server.pids), Cost::now(&family(nginx.pid())));
    let mut tasks = Vec::new();
    for number in 0..clients {
        tasks.push(tokio::spawn(poll(nginx.port(), number, began + time, counts.clone())));
    }
    let mut tick = tokio::time::interval(TICK);
    while began.elapsed() < time {
        tick.tick().await;
        server.publish(BYTES).await?;
    }
    let mut failed = 0;
    for task in tasks {
        failed += usize::from(task.await?.inspect_err(|error| tracing::debug!("{error:#}")).is_err());
    }
    let spent = began.elapsed().as_secs_f64();
    let asked = answered(&hub).await? - at_hub;
    let (cost, nginx_cost) = (Cost::now(&server.pids) - before, Cost::now(&family(nginx.pid())) - before_nginx);
    let (polls, unchanged) = (counts.polls.load(Ordering::Relaxed), counts.unchanged.load(Ordering::Relaxed));
    ensure!(failed == 0, "{failed} of {clients} clients came to grief");
    println!(
        "{clients} clients poll through nginx: {polls} polls in {spent:.0} s ({unchanged} unchanged), {asked} requests reached \
         the hub, which took {:.0} ms of CPU; nginx {:.1} s; load {:.1}",
        cost.all_us / 1e3,
        nginx_cost.all_us / 1e6,
        load()
    );
    nginx.stop().await;
    server.stop().await;
    Ok(Map::from_iter([(
        "polling".to_owned(),
        json!({ "clients": clients, "polls": polls, "requests_at_hub": asked, "seconds": rounded(spent, 1) }),
    )]))
}

/// One client: connects, and asks every two seconds with what it has.
async fn poll(port: u16, number: usize, until: Instant, counts: Arc<Counts>) -> anyhow::Result<()> {
    let mut random = StdRng::seed_from_u64(number as u64);
    tokio::time::sleep(INTERVAL.mul_f64(random.random())).await;
    let socket = TcpSocket::new_v4()?;
    let from = Ipv4Addr::new(127, 2, 0, (1 + number / CLIENTS_AN_ADDRESS) as u8);
    socket.bind(SocketAddr::from((from, 0)))?;
    let mut stream = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let (mut tag, mut buffer) = (String::new(), Vec::new());
    while Instant::now() < until {
        let asked = Instant::now();
        let known = if tag.is_empty() { String::new() } else { format!("If-None-Match: {tag}\r\n") };
        let request =
            format!("GET /api/events/1/frames HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n{known}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let (status, new_tag) = answer(&mut stream, &mut buffer).await?;
        ensure!(matches!(status, 200 | 304), "status {status}");
        counts.polls.fetch_add(1, Ordering::Relaxed);
        counts.unchanged.fetch_add(u64::from(status == 304), Ordering::Relaxed);
        tag = new_tag;
        tokio::time::sleep(INTERVAL.saturating_sub(asked.elapsed())).await;
    }
    Ok(())
}

/// Reads an answer to its end: its status and its tag.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<(u16, String)> {
    buffer.clear();
    let end = loop {
        ensure!(stream.read_buf(buffer).await? > 0, "the connection has ended");
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = std::str::from_utf8(&buffer[..end])?;
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(is, _)| is.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    ensure!(status != 200 || length > 0, "an answer without a length");
    let tag = header("etag").unwrap_or_default();
    while buffer.len() < end + length {
        ensure!(stream.read_buf(buffer).await? > 0, "the connection has ended");
    }
    Ok((status, tag))
}

/// Polls that the hub itself has answered.
async fn answered(hub: &str) -> anyhow::Result<u64> {
    let text = reqwest::get(format!("{hub}/metrics")).await?.text().await?;
    let of_route = text.lines().filter(|line| line.contains("requests_total{") && line.contains("/frames"));
    Ok(of_route.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}
