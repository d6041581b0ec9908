//! The client of all three: 128 connections that are kept, one request at a time on each.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Ask, CLIENTS, SEATS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Any seats of the hall.
    Wide,
    /// 95 % want the same 600 seats.
    Hot,
}

#[derive(Debug)]
pub struct Run {
    pub requests: usize,
    pub granted_per_s: f64,
    pub refused_per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

pub async fn run(address: SocketAddr, load: Load, time: Duration, seed: u64) -> anyhow::Result<Run> {
    let started = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(drive(address, load, client, started + time, seed * 1000 + client as u64)))
        .collect();
    let (mut granted, mut refused, mut latencies) = (0u64, 0u64, Vec::new());
    for client in clients {
        let (g, r, l) = client.await??;
        granted += g;
        refused += r;
        latencies.extend(l);
    }
    let elapsed = started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |share: f64| {
        latencies.get((latencies.len() as f64 * share) as usize).map_or(0.0, |us: &u32| f64::from(*us) / 1000.0)
    };
    Ok(Run {
        requests: latencies.len(),
        granted_per_s: granted as f64 / elapsed,
        refused_per_s: refused as f64 / elapsed,
        p50_ms: at(0.50),
        p99_ms: at(0.99),
    })
}

/// Granted, refused, and the microseconds of each request.
async fn drive(
    address: SocketAddr,
    load: Load,
    client: usize,
    until: Instant,
    seed: u64,
) -> anyhow::Result<(u64, u64, Vec<u32>)> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut granted, mut refused, mut latencies) = (0, 0, Vec::new());
    let mut answer = vec![0u8; 4096];
    let mut number = 0u64;
    while Instant::now() < until {
        number += 1;
        let ask =
            Ask { client, key: format!("{seed}-{number}-{:016x}", rng.random::<u64>()), seats: seats(&mut rng, load) };
        let body = serde_json::to_vec(&ask)?;
        let mut request = format!(
            "POST /hold HTTP/1.1\r\nhost: b\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(&body);
        let sent = Instant::now();
        stream.write_all(&request).await?;
        match read_status(&mut stream, &mut answer).await? {
            200 => granted += 1,
            409 => refused += 1,
            other => bail!("the server answered {other}"),
        }
        latencies.push(sent.elapsed().as_micros() as u32);
    }
    Ok((granted, refused, latencies))
}

fn seats(rng: &mut SmallRng, load: Load) -> Vec<i32> {
    let among = if load == Load::Hot && rng.random_bool(0.95) { 600 } else { SEATS };
    let mut seats = Vec::with_capacity(4);
    while seats.len() < 4 {
        let seat = rng.random_range(0..among);
        if !seats.contains(&seat) {
            seats.push(seat);
        }
    }
    seats
}

/// Reads one whole answer; its head always says how long it is.
async fn read_status(stream: &mut TcpStream, buffer: &mut [u8]) -> anyhow::Result<u16> {
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            bail!("the server hung up");
        }
        filled += read;
        let Some(head) = buffer[..filled].windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&buffer[..head])?;
        let length: usize = text
            .split("\r\n")
            .find_map(|line| line.strip_prefix("content-length: "))
            .context("an answer without a length")?
            .parse()?;
        if filled >= head + 4 + length {
            return Ok(text.split(' ').nth(1).context("an answer without a status")?.parse()?);
        }
    }
}
