//! `make bench-queue`: half a million people join a line over HTTP, are drawn, and are called to the last of them.
//!
//! The hub is the real binary and its PostgreSQL commits durably; accounts and sessions are written by SQL. Each join is
//! what a browser does: it asks for a challenge, solves it, and sends it, on a connection that is kept. The challenge
//! costs one round of hashing, so that it is the line that is measured. At the end the draw is checked from what is
//! published alone, and some of the people ask for their stand and for their proof.
//!
//! The last line is JSON. Arguments: `--people N` (500,000), `--clients N` (256), `--smoke` (figures mean nothing).

mod client; // people who join
mod ground; // a database, a hub, an event with a line
mod published; // what anybody can check

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fullhouse_protocol::line::{Entry, Line};
use serde_json::json;

use self::ground::Ground;

/// The whole bench ends by then, whatever happens.
const BOUND: Duration = Duration::from_secs(15 * 60);
/// People who look at their stand at the end.
const LOOKS: usize = 500;

fn main() -> anyhow::Result<()> {
    let (mut smoke, mut people, mut clients) = (false, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|v| v.parse::<usize>().ok()).filter(|n| *n > 0);
            value.with_context(|| format!("{argument} wants a number above 0"))
        };
        match argument.as_str() {
            "--smoke" => smoke = true,
            "--people" => people = Some(number()?),
            "--clients" => clients = Some(number()?),
            _ => bail!("there is no argument {argument}: --people N, --clients N, --smoke"),
        }
    }
    let people = people.unwrap_or(if smoke { 400 } else { 500_000 });
    let clients = clients.unwrap_or(if smoke { 16 } else { 256 }).min(people);
    tokio::runtime::Runtime::new()?.block_on(async {
        tokio::select! {
            done = bench(people, clients) => done,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
            () = tokio::time::sleep(BOUND) => bail!("not done within {BOUND:?}"),
        }
    })
}

async fn bench(people: usize, clients: usize) -> anyhow::Result<()> {
    let ground = Ground::lay(people).await?;
    let (hub, event) = (&ground.hub, ground.event);
    let (before, memory) = (ground.hub_cpu_s(), hub.resident_bytes());

    let began = Instant::now();
    let joins = client::join_all(hub.port(), event, people, clients).await?;
    let joined_s = began.elapsed().as_secs_f64();
    let cpu_s = ground.hub_cpu_s() - before;
    let waiting = hub.resident_bytes();
    ensure!(ground.entries().await? == people as i64, "not everybody is in the line");
    println!(
        "{people} joined in {joined_s:.1} s: {:.0} a second; p50 {} ms, p99 {} ms with challenge; hub {cpu_s:.1} s of processor, {} MiB more",
        people as f64 / joined_s,
        joins.p50_ms,
        joins.p99_ms,
        waiting.saturating_sub(memory) >> 20
    );

    let began = Instant::now();
    ground.close().await?;
    ground.drawn(Duration::from_secs(60)).await?;
    // The places are computed when the first person asks.
    let first: Entry = client::get(hub.port(), &format!("/api/events/{event}/queue/entry"), Some(0)).await?;
    ensure!(first.place.is_some(), "drawn, and without a place: {first:?}");
    let draw_s = began.elapsed().as_secs_f64();
    println!("everybody has a place {draw_s:.2} s after the closing, of which the hub's tick is up to one");

    let began = Instant::now();
    let line = called_to_its_end(&ground, people as i64).await?;
    let called_s = began.elapsed().as_secs_f64();
    println!("called through {} in {called_s:.1} s", line.called_through);

    let places = published::check(hub.port(), event).await?;
    let looked = published::look(hub.port(), event, &places, &joins.entries, LOOKS).await?;
    println!("the draw holds; {looked} people have the place that it says, with their proof");
    let per_waiting = waiting.saturating_sub(memory) as f64 / people as f64;
    println!(
        "{}",
        json!({
            "bench": "queue", "people": people, "clients": clients,
            "joins_per_s": (people as f64 / joined_s).round(),
            "join_p99_ms": joins.p99_ms,
            "draw_s": (draw_s * 100.0).round() / 100.0,
            "called_s": (called_s * 10.0).round() / 10.0,
            "hub_cpu_s_per_1000_joins": (cpu_s * 1e6 / people as f64).round() / 1e3,
            "rss_bytes_per_waiting": per_waiting.round(),
            "rss_mib_at_end": hub.resident_bytes() >> 20,
        })
    );
    ground.clear().await;
    Ok(())
}

/// Until everybody may come in. Nobody comes: those who were called give way to the next.
async fn called_to_its_end(ground: &Ground, people: i64) -> anyhow::Result<Line> {
    let until = Instant::now() + Duration::from_secs(300);
    let mut through = 0;
    loop {
        let line: Line = client::get(ground.hub.port(), &format!("/api/events/{}/queue", ground.event), None).await?;
        ensure!(line.called_through >= through, "the line went back from {through} to {}", line.called_through);
        through = line.called_through;
        if through == people {
            return Ok(line);
        }
        ensure!(Instant::now() < until, "called through {through} of {people} only");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The bytes of a text in lower hex.
fn bytes<const N: usize>(hex: &str) -> anyhow::Result<[u8; N]> {
    let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes())?;
    bytes.try_into().ok().context("of another length")
}
