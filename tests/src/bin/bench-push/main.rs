//! `make bench-push`: what an open map costs, beside what it costs others.
//!
//! 1. Side by side, interleaved, as many viewers as a process may have files (15,000): a bare loop of `send` (the
//!    floor), our hub, a naive axum server, nchan, nats-server's own WebSocket, `ws` on Node. A frame is published
//!    when everybody has the last one; of 400 bytes, then of 4 KiB.
//! 2. Ours at 50,000 viewers on three push processes, a frame each 100 ms, whether the last is done or not.
//! 3. Ours, two nodes with 18,000 viewers, of which one is killed, and then the other told to stop.
//! 4. Holds, and their way to 50,000 viewers and to a browser's canvas: how long that takes, and what viewers cost the
//!    holds.
//! 5. 10,000 clients that poll through an nginx with a cache.
//! 7. Viewers that arrive, 4,200 a second, beside a steady fan-out to others.
//! 6. Ours at as many viewers as are asked for (500,000), on as many push processes as that takes, beside one
//!    process with every other role: every frame is a commit, and comes over the relay and NATS.
//!
//! The last line is JSON. Arguments: `--smoke` (seconds; figures mean nothing), `--rounds N` (runs of each server),
//! `--viewers N` (of part 6; 0 leaves it out), `--only NAME,…` (servers of part 1), `--parts 1,2,3,4,5,7,6`, and the numbers of
//! viewers of the others: `--side`, `--paced`, `--storm`, `--pixel`, `--arrivals`.

mod canvas; // a browser's
mod cost; // time and memory of a server
mod crowds; // viewers, in processes of their own
mod floor; // the bare loop
mod kernel; // what the kernel has to allow for
mod large; // as many viewers as there can be
mod naive; // as anybody would write it
mod nodes; // several push processes
mod pixel; // beside holds
mod polls; // behind a cache
mod servers; // who is measured
mod side; // side by side

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::{Map, Value, json};

use self::{
    kernel::Kernel,
    servers::{Ground, Kind},
};

/// How much of everything.
pub struct Scale {
    pub smoke: bool,
    /// Viewers of part 1.
    pub side: usize,
    /// Runs of each server, interleaved.
    pub rounds: usize,
    /// Frames of 400 bytes, and of 4 KiB, in a run.
    pub frames: [usize; 2],
    /// Viewers and time of part 2.
    pub paced: (usize, Duration),
    pub storm: usize,
    /// Viewers and time of part 4.
    pub pixel: (usize, Duration),
    pub holds_a_second: f64,
    /// Clients and time of part 5.
    pub polls: (usize, Duration),
    /// Viewers of part 7 that are there, and those that come.
    pub arrivals: (usize, usize),
    /// Viewers and time of part 6.
    pub large: (usize, Duration),
}

/// The whole bench ends by then, whatever happens.
const BOUND: Duration = Duration::from_secs(40 * 60);

fn main() -> anyhow::Result<()> {
    fullhouse::files::raise_limit()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("crowd") => crowds::run(),
        Some("floor") => floor::run(),
        // What `#[tokio::main]` makes, as anybody would.
        Some("naive") => tokio::runtime::Runtime::new()?.block_on(naive::run()),
        _ => tokio::runtime::Runtime::new()?.block_on(async {
            let mut told_to_end = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
            tokio::select! {
                done = bench(&arguments) => done,
                _ = tokio::signal::ctrl_c() => bail!("interrupted"),
                _ = told_to_end.recv() => bail!("told to end"),
                () = tokio::time::sleep(BOUND) => bail!("not done within {BOUND:?}"),
            }
        }),
    }
}

async fn bench(arguments: &[String]) -> anyhow::Result<()> {
    let smoke = arguments.iter().any(|argument| argument == "--smoke");
    let value = |name: &str| arguments.iter().skip_while(|a| *a != name).nth(1);
    let number = |name: &str, default: usize| value(name).and_then(|v| v.parse().ok()).unwrap_or(default);
    let scale = if smoke {
        Scale {
            smoke,
            side: 200,
            rounds: 1,
            frames: [4, 2],
            paced: (300, Duration::from_secs(1)),
            storm: 200,
            pixel: (300, Duration::from_secs(1)),
            holds_a_second: 100.0,
            polls: (100, Duration::from_secs(3)),
            arrivals: (200, 200),
            large: (300, Duration::from_secs(1)),
        }
    } else {
        Scale {
            smoke,
            side: number("--side", 15_000),
            rounds: number("--rounds", 5),
            frames: [60, 15],
            paced: (number("--paced", 50_000), Duration::from_secs(30)),
            storm: number("--storm", 18_000),
            pixel: (number("--pixel", 50_000), Duration::from_secs(15)),
            holds_a_second: 2_000.0,
            polls: (number("--polls", 10_000), Duration::from_secs(20)),
            arrivals: (15_000, number("--arrivals", 38_000)),
            large: (number("--viewers", 500_000), Duration::from_secs(90)),
        }
    };
    let parts = value("--parts").map_or("1,2,3,4,5,7,6", String::as_str);
    let part = |number: &str| parts.split(',').any(|part| part == number);
    let only = value("--only");
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| only.is_none_or(|only| only.split(',').any(|n| n == kind.name()))) {
        match kind.missing() {
            Some(why) => bail!(why),
            None => kinds.push(kind),
        }
    }

    let began = Instant::now();
    let kernel = if smoke { None } else { Some(Kernel::prepare()?) };
    let mut ground = Ground::lay().await;
    let mut all = Map::new();
    if part("1") {
        all.append(&mut side::run(&kinds, &scale, &mut ground).await?);
    }
    if part("2") {
        all.append(&mut nodes::paced(&scale, &mut ground).await?);
    }
    if part("3") {
        all.append(&mut nodes::storm(&scale, &mut ground).await?);
    }
    if part("4") {
        all.append(&mut pixel::run(&scale, &mut ground).await?);
    }
    if part("5") {
        all.append(&mut polls::run(&scale, &mut ground).await?);
    }
    if part("7") {
        all.append(&mut nodes::arrivals(&scale, &mut ground).await?);
    }
    if part("6") && scale.large.0 > 0 {
        all.append(&mut large::run(&scale, &mut ground).await?);
    }
    drop(kernel);
    all.insert("seconds".to_owned(), json!(began.elapsed().as_secs()));
    println!("{}", Value::Object(all));
    Ok(())
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => (values[even / 2 - 1] + values[even / 2]) / 2.0,
    }
}

/// As JSON has it: so many digits behind the point.
pub fn rounded(value: f64, digits: i32) -> Value {
    let unit = 10_f64.powi(digits);
    json!((value * unit).round() / unit)
}
