//! `make bench-holds`: holds granted a second, behind one HTTP handler and one client, three ways.
//!
//! - ours: the desk, requests of an event decided in batches;
//! - naive: one transaction a request against the same schema, in one round trip (a function);
//! - redis: a Lua script over five keys, `appendfsync always`.
//!
//! Everything is durable. 128 clients, four seats a hold; a client's next request gives its last
//! hold back, so that the hall never sells out. Runs are interleaved; the last line is JSON with
//! medians. A second pass is hot: 95 % of the requests want the same 600 seats.
//!
//! Arguments: `--seconds N` (a run), `--rounds N`, `--smoke` (short, figures mean nothing).

mod backend;
mod client;
mod cpu;

use std::{sync::Arc, time::Duration};

use axum::{Json, Router, extract::State, http::StatusCode, response::IntoResponse, routing::post};
use backend::{Backend, Outcome};
use client::{Load, Run};
use cpu::Cpu;
use fullhouse_tests::rows::Rows;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub const CLIENTS: usize = 128;
pub const SEATS: i32 = 62_000;
const PER_ROW: i32 = 31;

/// What a client sends. `key` is new for each request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ask {
    pub client: usize,
    pub key: String,
    pub seats: Vec<i32>,
}

/// The one handler of all three.
async fn hold(State(backend): State<Arc<Backend>>, Json(ask): Json<Ask>) -> impl IntoResponse {
    match backend.hold(&ask).await {
        Outcome::Granted { held_until_ms } => {
            (StatusCode::OK, Json(json!({ "seats": ask.seats, "held_until": held_until_ms }))).into_response()
        }
        Outcome::Refused => (StatusCode::CONFLICT, Json(json!({ "code": "seats_unavailable" }))).into_response(),
    }
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bench())
}

/// The client has threads of its own, so that its time can be told from the hub's.
fn client_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().thread_name(cpu::CLIENT_THREADS).build()?)
}

async fn bench() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let smoke = std::env::args().any(|a| a == "--smoke");
    let argument = |name: &str, default: u64| {
        let mut args = std::env::args().skip_while(|a| a != name).skip(1);
        args.next().and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let seconds = Duration::from_secs(argument("--seconds", if smoke { 1 } else { 5 }));
    let rounds = argument("--rounds", if smoke { 1 } else { 5 });

    let directory = Directory::make()?;
    let postgres = backend::postgres(&directory.0).await?;
    let pool = backend::pool(&postgres).await?;
    let hall = Rows { churn_seats_max: i32::MAX, ..Rows::new(SEATS / PER_ROW, PER_ROW) };
    let event = hall.open(&pool).await;
    let redis = backend::Redis::start(&directory.0).await?;
    let backends = [
        ("ours", Arc::new(Backend::ours(&pool, event).await?)),
        ("naive", Arc::new(Backend::naive(&pool, event).await?)),
        ("redis", Arc::new(Backend::redis(&redis).await?)),
    ];
    let mut servers = Vec::new();
    for (name, backend) in &backends {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/hold", post(hold)).with_state(backend.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        servers.push((*name, address, backend.clone()));
    }

    let clients = client_runtime()?;
    let mut results: Vec<Measured> = Vec::new();
    for load in [Load::Wide, Load::Hot] {
        for round in 0..rounds {
            for (name, address, backend) in &servers {
                backend.clear(&pool, event).await?;
                let drive = |time, seed| clients.spawn(client::run(*address, load, time, seed));
                drive(seconds / 4, round).await??; // warm-up: connections, plans, caches
                let server = if *name == "redis" { "redis" } else { "postgres" };
                let before = Cpu::now(server);
                let run = drive(seconds, round + 100).await??;
                let cpu_us = Cpu::now(server).per_request_us(&before, run.requests as f64);
                eprintln!(
                    "{load:?} {name:>5}: {:>6.0} granted/s {:>6.0} refused/s p50 {:>5.1} ms p99 {:>5.1} ms; µs of processor a request: hub {:.0}, client {:.0}, server {:.0}",
                    run.granted_per_s, run.refused_per_s, run.p50_ms, run.p99_ms, cpu_us[0], cpu_us[1], cpu_us[2]
                );
                results.push(Measured { name, load, run, cpu_us });
            }
        }
    }
    println!("{}", summary(&results, &backends[0].1));
    clients.shutdown_background(); // a runtime can't be dropped from within another
    postgres.stop().await;
    Ok(())
}

struct Measured {
    name: &'static str,
    load: Load,
    run: Run,
    /// Processor time a request: hub, client, server.
    cpu_us: [f64; 3],
}

fn summary(results: &[Measured], ours: &Backend) -> serde_json::Value {
    let median = |name: &str, load: Load, of: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = results.iter().filter(|r| r.name == name && r.load == load).map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let round = |v: f64| (v * 100.0).round() / 100.0;
    let granted = |name, load| median(name, load, |r| r.run.granted_per_s);
    let p99 = |name, load| round(median(name, load, |r| r.run.p99_ms));
    let refused = |name, load| median(name, load, |r| r.run.refused_per_s).round();
    let (wide, hot) = (Load::Wide, Load::Hot);
    let cpu_us = |name| {
        json!({
            "hub": median(name, wide, |r| r.cpu_us[0]).round(),
            "client": median(name, wide, |r| r.cpu_us[1]).round(),
            "server": median(name, wide, |r| r.cpu_us[2]).round(),
        })
    };
    json!({
        "bench": "holds", "clients": CLIENTS, "seats_a_hold": 4, "hall_seats": SEATS,
        "holds_per_s": granted("ours", wide).round(),
        "naive_per_s": granted("naive", wide).round(),
        "redis_per_s": granted("redis", wide).round(),
        "vs_naive": round(granted("ours", wide) / granted("naive", wide)),
        "vs_redis": round(granted("ours", wide) / granted("redis", wide)),
        "p99_ms": p99("ours", wide), "naive_p99_ms": p99("naive", wide), "redis_p99_ms": p99("redis", wide),
        "cpu_us_a_request": { "ours": cpu_us("ours"), "naive": cpu_us("naive"), "redis": cpu_us("redis") },
        "requests_a_batch": round(ours.requests_a_batch()),
        "hot": {
            "granted_per_s": granted("ours", hot).round(), "refused_per_s": refused("ours", hot), "p99_ms": p99("ours", hot),
            "naive_granted_per_s": granted("naive", hot).round(), "naive_refused_per_s": refused("naive", hot), "naive_p99_ms": p99("naive", hot),
            "redis_granted_per_s": granted("redis", hot).round(), "redis_refused_per_s": refused("redis", hot), "redis_p99_ms": p99("redis", hot),
        },
    })
}

/// Removed at the end, however it comes.
struct Directory(std::path::PathBuf);

impl Directory {
    fn make() -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("fullhouse-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
