//! As many viewers as the machine holds, the generator included: the real thing, on one machine.
//!
//! One process answers requests, relays and works; the others carry sockets. A frame is ninety seats changed in one
//! commit. While viewers arrive a seat changes now and then; after that the next commit comes when everybody has the
//! last one.

use std::time::{Duration, Instant};

use anyhow::ensure;
use fullhouse::outbox::{self, SeatChange};
use fullhouse_protocol::seat::Status;
use fullhouse_tests::{
    binary::Binary,
    rows::Rows,
    viewers::{Plan, Speech},
};
use serde_json::{Map, Value, json};
use sqlx::PgPool;

use super::{
    Scale,
    cost::{Cost, available_bytes, memory_bytes},
    crowds::Crowds,
    kernel::{files_max, load},
    nodes::spread,
    rounded,
    servers::{Ground, position, push_hub},
};

/// Files that a push process needs besides its viewers'.
const OTHER_FILES: usize = 700;
/// 500,000 in two minutes.
const ARRIVALS_A_SECOND: f64 = 4_200.0;
const SEATS_A_FRAME: i32 = 90;
/// A hub's frames count milliseconds.
const CLOCK: u64 = 1_000;
const ROUND_MAX: Duration = Duration::from_secs(60);

pub async fn run(scale: &Scale, ground: &mut Ground) -> anyhow::Result<Map<String, Value>> {
    let (viewers, time) = scale.large;
    let hall = Rows::new(2_000, 31);
    let event = hall.open(ground.database.pool()).await;
    let config = ground.config().await;
    let most = files_max().saturating_sub(OTHER_FILES).max(100);
    let count = viewers.div_ceil(most).max(2);
    let others = Binary::serve_as(&config, &["api", "relay", "workers"], &[]).await;
    let mut hubs = Vec::new();
    for _ in 0..count {
        hubs.push(push_hub(&config, &[("FULLHOUSE__PUSH__SHARDS", "1")]).await);
    }
    let mut at = (0, 0);
    for hub in &hubs {
        at = position(hub.url(), event).await?;
    }
    let pids: Vec<u32> = hubs.iter().map(Binary::pid).collect();
    let (base, available) = (memory_bytes(&pids), available_bytes());
    println!("{count} push processes, {} MiB before anybody comes", base >> 20);

    let plans: Vec<Plan> = hubs
        .iter()
        .map(|hub| Plan {
            ports: vec![hub.port()],
            path: format!("/api/events/{event}/live"),
            position: Some(at),
            speech: Speech::WebSocket,
            net: 1,
            at_once: 64,
            rate: Some(ARRIVALS_A_SECOND / count as f64),
            return_to: Vec::new(),
            receive_buffer: None,
        })
        .collect();
    let (before, began) = (Cost::now(&pids), Instant::now());
    let mut crowds = Crowds::default();
    let mut frames = 0;
    {
        let plans = spread(&plans, viewers);
        let coming = crowds.come(&plans, CLOCK, Duration::from_secs(900));
        tokio::pin!(coming);
        let mut tick = tokio::time::interval(Duration::from_secs(10));
        tick.tick().await;
        loop {
            tokio::select! {
                come = &mut coming => break come?,
                _ = tick.tick() => {
                    commit(ground.database.pool(), event, frames).await?;
                    frames += 1;
                }
            }
        }
    }
    let (arrived, cost) = (began.elapsed().as_secs_f64(), Cost::now(&pids) - before);
    println!(
        "{viewers} viewers came in {arrived:.0} s beside {frames} frames: {:.0} a second, {:.2} cores; load {:.1}",
        viewers as f64 / arrived,
        cost.all_us / 1e6 / arrived,
        load()
    );
    ensure!(crowds.expect(at.1 + frames, ROUND_MAX).await? == 0, "not everybody has what changed meanwhile");
    crowds.report().await?;

    let (before, began) = (Cost::now(&pids), Instant::now());
    let first = frames;
    while began.elapsed() < time {
        commit(ground.database.pool(), event, frames).await?;
        frames += 1;
        let lacking = crowds.expect(at.1 + frames, ROUND_MAX).await?;
        ensure!(lacking == 0, "{lacking} viewers have not had a frame within {ROUND_MAX:?}");
    }
    let (spent, cost, seen) = (began.elapsed().as_secs_f64(), Cost::now(&pids) - before, crowds.report().await?);
    ensure!(seen.wrong == 0 && seen.lost == 0, "{seen:?}");
    let rounds = frames - first;
    let per_min = rounds as f64 / spent * 60.0;
    let (p50, p99) = (seen.late.quantile(0.5), seen.late.quantile(0.99));
    let (with, kernel) = (memory_bytes(&pids), available.saturating_sub(available_bytes()));
    let bytes = with.saturating_sub(base) as f64 / viewers as f64;
    println!(
        "{viewers} viewers, {rounds} rounds: {per_min:.1} a minute, commit to receipt p50 {p50} ms, p99 {p99} ms; \
         {:.2} µs user and {:.2} µs in all a frame; {bytes:.0} bytes a viewer ({} MiB in {count} push processes), \
         {} MiB in the crowd, {} MiB of the machine in all; load {:.1}",
        cost.user_us / seen.messages as f64,
        cost.all_us / seen.messages as f64,
        with >> 20,
        memory_bytes(&crowds.pids()) >> 20,
        kernel >> 20,
        load()
    );
    crowds.leave().await?;
    drop(crowds);
    for hub in hubs {
        hub.kill().await;
    }
    others.stop().await;
    Ok(Map::from_iter([
        ("viewers_max".to_owned(), json!(viewers)),
        ("rounds_per_min_at_max".to_owned(), rounded(per_min, 1)),
        (
            "at_max".to_owned(),
            json!({
                "push_processes": count,
                "bytes_per_viewer": rounded(bytes, 0),
                "push_mib": with >> 20,
                "machine_mib": kernel >> 20,
                "arrivals_per_s": rounded(viewers as f64 / arrived, 0),
                "p50_ms": p50,
                "p99_ms": p99,
                "user_us_per_frame": rounded(cost.user_us / seen.messages as f64, 2),
                "cpu_us_per_frame": rounded(cost.all_us / seen.messages as f64, 2),
                "out_of_order": seen.wrong,
            }),
        ),
    ]))
}

/// Blocks ninety seats, or frees them again, as a verb would: rows, versions and the outbox in one transaction.
async fn commit(pool: &PgPool, event: i64, number: u64) -> anyhow::Result<()> {
    let (status, before) = match number % 2 {
        0 => (Status::Blocked, Status::Available),
        _ => (Status::Available, Status::Blocked),
    };
    let mut tx = pool.begin().await?;
    let now = sqlx::query_scalar("select db_clock()").fetch_one(&mut *tx).await?;
    let rows: Vec<(i32, i32)> = sqlx::query_as(
        "update event_seat set status = $2, version = version + 1
         where event_id = $1 and seat_no < $3 and status = $4 returning seat_no, version",
    )
    .bind(event)
    .bind(i16::from(status))
    .bind(SEATS_A_FRAME)
    .bind(i16::from(before))
    .fetch_all(&mut *tx)
    .await?;
    let change = |&(seat_no, version)| SeatChange { seat_no, status, version, held_until: None };
    outbox::append(&mut tx, event, now, &rows.iter().map(change).collect::<Vec<_>>()).await?;
    tx.commit().await?;
    Ok(())
}
