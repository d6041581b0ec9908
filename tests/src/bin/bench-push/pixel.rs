//! From a hold's commit to its frame at a viewer and to a browser's canvas, and what viewers cost the holds.
//!
//! 128 buyers hold four seats each, one hold after the other, so that each gives the last ones back: through the desk,
//! in this process, with as many holds a second as are asked for. One process relays, three carry sockets, a fourth serves
//! the page to a browser, whose canvas marks what it has drawn. First without viewers, then with them, then without again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::ensure;
use fullhouse::{
    hold::{ByRole, Key, Refusal, Request, Rules, Take, Way, Wish, desk::Desks},
    seat_map::{Boards, SeatSet},
};
use fullhouse_tests::{
    binary::Binary,
    hall::Hall,
    rows::buyers,
    stage::Stage,
    viewers::{Plan, Speech, Tally},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Scale,
    canvas::{self, Canvas, Drawn},
    crowds::Crowds,
    kernel::load,
    median,
    nodes::spread,
    rounded,
    servers::{Ground, position, push_hub},
};

const BUYERS: usize = 128;
const SLUG: &str = "pixels";
const SEATS: i32 = 62_000;
const PER_ROW: i32 = 310;
/// A hub's frames count milliseconds.
const CLOCK: u64 = 1_000;

/// With viewers or without: holds at a rate, as many as there can be, what viewers saw, what a browser drew.
type Figures = (bool, Held, Held, Tally, Drawn);

/// What the holds of a while were like.
#[derive(Debug, Clone, Copy)]
struct Held {
    a_second: f64,
    p50_ms: f64,
    p99_ms: f64,
}

pub async fn run(scale: &Scale, ground: &mut Ground) -> anyhow::Result<Map<String, Value>> {
    let (viewers, time) = scale.pixel;
    let hall = Hall { rows: (SEATS / PER_ROW) as u32, seats_a_row: PER_ROW as u32 };
    let event = Stage { slug: SLUG, hall, ..Stage::default() }.open(&ground.database).await;
    let no_budget = "update event set churn_seats_max = 2147483647 where id = $1";
    sqlx::query(no_budget).bind(event).execute(ground.database.pool()).await?;
    let mut config = ground.config().await;
    let relay = Binary::serve_as(&config, &["relay"], &[]).await;
    let mut hubs = Vec::new();
    for _ in 0..3 {
        hubs.push(push_hub(&config, &[]).await);
    }
    let mut canvas = match canvas::page() {
        Some(folder) => {
            let settings = [("FULLHOUSE__HTTP__ASSETS_DIR", folder.as_str())];
            let hub = Binary::serve_as(&config, &["api", "push"], &settings).await;
            Some((Canvas::open(hub.url(), SLUG).await?, hub))
        }
        None => {
            println!("there is no built page or no browser, so no canvas is measured");
            None
        }
    };
    config.database.connections_max = 16;
    let pool = fullhouse::db::connect(&config.database).await?;
    let desks = Desks::new(&config, pool.clone(), Boards::default());
    let buyers = buyers(&pool, BUYERS as i32).await;
    let hold = async |time, rate| hold(&desks, event, &buyers, time, rate).await;
    hold(time / 4, None).await?; // plans and caches
    let mut figures = Vec::new();
    for (name, with) in [("without", false), ("with", true), ("without", false)] {
        let mut crowds = Crowds::default();
        if with {
            let mut at = (0, 0);
            for hub in &hubs {
                at = position(hub.url(), event).await?;
            }
            let plan = |hub: &Binary| Plan {
                ports: vec![hub.port()],
                path: format!("/api/events/{event}/live"),
                position: Some(at),
                speech: Speech::WebSocket,
                net: 1,
                at_once: 64,
                rate: None,
                return_to: Vec::new(),
                receive_buffer: None,
            };
            let plans: Vec<Plan> = hubs.iter().map(plan).collect();
            crowds.come(&spread(&plans, viewers), CLOCK, Duration::from_secs(180)).await?;
            crowds.report().await?;
        }
        if let Some((canvas, _)) = &mut canvas {
            canvas.report().await?;
        }
        let paced = hold(time, Some(scale.holds_a_second)).await?;
        let drawn = match &mut canvas {
            Some((canvas, _)) => canvas.report().await?,
            None => Drawn::default(),
        };
        let seen = crowds.report().await?;
        let most = hold(time, None).await?;
        crowds.leave().await?;
        ensure!(seen.wrong == 0 && seen.lost == 0, "{seen:?}");
        print!(
            "{name} {viewers} viewers: {:.0} holds a second take p50 {:.1} p99 {:.1} ms; at most {:.0} a second",
            paced.a_second, paced.p50_ms, paced.p99_ms, most.a_second
        );
        if with {
            print!(
                "; commit to receipt p50 {} p99 {} ms, {} messages, {} of them spans ({} packed), {} resyncs",
                seen.late.quantile(0.5),
                seen.late.quantile(0.99),
                seen.messages,
                seen.spans,
                seen.ranges,
                seen.resyncs
            );
        }
        if let (Some(p50), Some(p99)) = (drawn.p50_ms, drawn.p99_ms) {
            print!("; commit to canvas p50 {p50:.0} p99 {p99:.0} ms ({} drawings)", drawn.drawings);
        }
        println!("; load {:.1}", load());
        figures.push((with, paced, most, seen, drawn));
    }
    for hub in hubs {
        hub.kill().await;
    }
    relay.stop().await;
    if let Some((canvas, hub)) = canvas {
        drop(canvas);
        hub.kill().await;
    }
    let middle = |with: bool, of: fn(&Figures) -> f64| {
        rounded(median(figures.iter().filter(|one| one.0 == with).map(of).collect()), 1)
    };
    let held = |with| {
        json!({ "a_second": middle(with, |f| f.1.a_second), "p50_ms": middle(with, |f| f.1.p50_ms),
                "p99_ms": middle(with, |f| f.1.p99_ms), "most_a_second": middle(with, |f| f.2.a_second) })
    };
    let drawn = |with| figures.iter().find(|f| f.0 == with).map(|f| f.4).unwrap_or_default();
    let late = |part: fn(&Tally) -> u64| figures.iter().find(|f| f.0).map_or(0, |f| part(&f.3));
    Ok(Map::from_iter([(
        "commit_to_viewer".to_owned(),
        json!({ "viewers": viewers, "p50_ms": late(|seen| seen.late.quantile(0.5)), "p99_ms": late(|seen| seen.late.quantile(0.99)),
                "holds_without_viewers": held(false), "holds_with_viewers": held(true),
                "canvas_without_viewers": drawn(false), "canvas_with_viewers": drawn(true) }),
    )]))
}

/// Buyers hold for so long; `rate` holds a second together, or as many as there can be.
async fn hold(desks: &Desks, event: i64, buyers: &[Uuid], time: Duration, rate: Option<f64>) -> anyhow::Result<Held> {
    let (begun, began) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut tasks = Vec::new();
    for (number, buyer_id) in buyers.iter().copied().enumerate() {
        let (desks, begun) = (desks.clone(), begun.clone());
        tasks.push(tokio::spawn(async move {
            let mut random = StdRng::seed_from_u64(number as u64);
            let mut took = Vec::new();
            while began.elapsed() < time {
                if let Some(rate) = rate {
                    let turn = begun.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep_until((began + Duration::from_secs_f64(turn as f64 / rate)).into()).await;
                }
                let first = random.random_range(0..SEATS / PER_ROW) * PER_ROW + random.random_range(0..PER_ROW - 4);
                let take = Take {
                    buyer_id,
                    wish: Wish::Seats(SeatSet::new((first..first + 4).collect(), 6)?),
                    fewer_ok: false,
                    replace: true,
                    rules: Rules::Fan,
                    way: Way::ByRole(ByRole::default()),
                    key: Key { name: Uuid::new_v4().to_string(), body_hash: [0; 32] },
                };
                let asked = Instant::now();
                match desks.ask(event, Request::Take(take)).await {
                    Ok(_) => took.push(asked.elapsed().as_secs_f64() * 1000.0),
                    Err(Refusal::SeatsUnavailable { .. }) => {}
                    Err(other) => anyhow::bail!("the desk refused: {other}"),
                }
            }
            Ok(took)
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.append(&mut task.await??);
    }
    let spent = began.elapsed().as_secs_f64();
    all.sort_by(f64::total_cmp);
    let part = |part: f64| all.get((all.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    Ok(Held { a_second: all.len() as f64 / spent, p50_ms: part(0.5), p99_ms: part(0.99) })
}
