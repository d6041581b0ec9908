//! People: connections that are kept, each one person after the other, two requests each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use altcha::{Challenge, Payload, SolveChallengeOptions};
use anyhow::{Context, bail, ensure};
use base64::Engine;
use fullhouse_protocol::line::Entry;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::ground::token;

pub struct Joins {
    pub p50_ms: u32,
    pub p99_ms: u32,
    /// Each person's entry: number and key.
    pub entries: Vec<(usize, i64, String)>,
}

/// Everybody joins, each once.
pub async fn join_all(port: u16, event: i64, people: usize, clients: usize) -> anyhow::Result<Joins> {
    let next = Arc::new(AtomicUsize::new(0));
    let crowd: Vec<_> = (0..clients).map(|_| tokio::spawn(drive(port, event, people, next.clone()))).collect();
    let (mut entries, mut times) = (Vec::with_capacity(people), Vec::with_capacity(people));
    for client in crowd {
        for (entry, ms) in client.await?? {
            entries.push(entry);
            times.push(ms);
        }
    }
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    Ok(Joins { p50_ms: at(50), p99_ms: at(99), entries })
}

type Entered = ((usize, i64, String), u32);

async fn drive(port: u16, event: i64, people: usize, next: Arc<AtomicUsize>) -> anyhow::Result<Vec<Entered>> {
    let mut line = Line::open(port).await?;
    let mut entered = Vec::new();
    loop {
        let person = next.fetch_add(1, Ordering::Relaxed);
        if person >= people {
            return Ok(entered);
        }
        let began = Instant::now();
        let entry = line.join(event, person).await.with_context(|| format!("person {person}"))?;
        entered.push(((person, entry.number, entry.entry_key), began.elapsed().as_millis() as u32));
    }
}

/// One connection.
struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Line {
    async fn open(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 16 * 1024] })
    }

    async fn join(&mut self, event: i64, person: usize) -> anyhow::Result<Entry> {
        let token = token(person);
        let path = format!("/api/events/{event}/queue/challenge");
        let (status, body) = self.ask("GET", &path, Some(&token), b"").await?;
        ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(body));
        let challenge: Challenge = serde_json::from_slice(body)?;
        let solution = altcha::solve_challenge(SolveChallengeOptions::new(&challenge))?.context("no solution")?;
        let solved =
            base64::engine::general_purpose::STANDARD.encode(serde_json::to_vec(&Payload { challenge, solution })?);
        let wish = serde_json::to_vec(&json!({ "challenge": solved, "party_size": person % 4 + 1 }))?;
        let path = format!("/api/events/{event}/queue/entry");
        let (status, body) = self.ask("POST", &path, Some(&token), &wish).await?;
        ensure!(status == 201, "{status}: {}", String::from_utf8_lossy(body));
        Ok(serde_json::from_slice(body)?)
    }

    /// One request and its whole answer.
    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &[u8],
    ) -> anyhow::Result<(u16, &[u8])> {
        let cookie = token.map(|token| format!("cookie: fh_session={token}\r\n")).unwrap_or_default();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\nsec-fetch-site: same-origin\r\ncontent-type: application/json\r\n\
             {cookie}content-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await?;
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(2 * filled, 0);
            }
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            if read == 0 {
                bail!("the hub hung up");
            }
            filled += read;
            let Some(head) = self.buffer[..filled].windows(4).position(|w| w == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(&self.buffer[..head])?;
            let length = text.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.context("an answer without a length")?.parse()?;
            if filled >= head + 4 + length {
                let status = text.split(' ').nth(1).context("an answer without a status")?.parse()?;
                return Ok((status, &self.buffer[head + 4..head + 4 + length]));
            }
        }
    }
}

/// One answer, as JSON.
pub async fn get<T: DeserializeOwned>(port: u16, path: &str, person: Option<usize>) -> anyhow::Result<T> {
    Ok(serde_json::from_slice(&get_bytes(port, path, person).await?)?)
}

pub async fn get_bytes(port: u16, path: &str, person: Option<usize>) -> anyhow::Result<Vec<u8>> {
    let mut line = Line::open(port).await?;
    let token = person.map(token);
    let (status, body) = line.ask("GET", path, token.as_deref(), b"").await?;
    ensure!(status == 200, "{path}: {status}: {}", String::from_utf8_lossy(body));
    Ok(body.to_vec())
}
