//! Side by side: the same crowd at each server, one after the other, and again.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use super::{
    Scale,
    cost::{Cost, TICK_US, memory_bytes},
    crowds::Crowds,
    kernel::load,
    median, rounded,
    servers::{CLOCK, Ground, Kind, Server},
};

/// 400 bytes are 90 seats, 4 KiB are 1,014.
const SIZES: [usize; 2] = [400, 4096];
/// Who come and go before anything is measured, and how often: what a server makes once is made then, and what it
/// needs for handshakes under way.
const WARM: usize = 1_000;
const WARM_TIMES: usize = 4;
/// A frame that nobody is without takes no longer.
const FRAME_MAX: Duration = Duration::from_secs(20);

/// A server is at rest when it has used next to no time in so many looks, one after the other.
const QUIET_LOOKS: usize = 3;
const LOOK: Duration = Duration::from_millis(200);
const SETTLED_MAX: Duration = Duration::from_secs(10);

/// One run of one server.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    /// User space, a viewer that has had a frame and waits.
    bytes: f64,
    handshakes_per_cpu_s: f64,
    sizes: [Delivery; 2],
    /// Frames out of order, or missing.
    wrong: u64,
}

/// Microseconds a delivered frame; milliseconds from publish to receipt.
#[derive(Debug, Clone, Copy, Default)]
struct Delivery {
    user_us: f64,
    all_us: f64,
    p50_ms: f64,
    p99_ms: f64,
}

pub async fn run(kinds: &[Kind], scale: &Scale, ground: &mut Ground) -> anyhow::Result<Map<String, Value>> {
    let mut results: Vec<(Kind, Figures)> = Vec::new();
    println!("{} viewers, {} runs each; load {:.1}", scale.side, scale.rounds, load());
    for round in 0..scale.rounds {
        for kind in kinds {
            let figures = match measure(*kind, scale, ground).await.with_context(|| kind.name()) {
                Ok(figures) => figures,
                Err(error) if *kind == Kind::Ours || scale.smoke => return Err(error),
                Err(error) => {
                    println!("  {} {error:#}; this run does not count", round + 1); // theirs to explain
                    continue;
                }
            };
            println!("  {} {:<6}{} load {:.1}", round + 1, kind.name(), line(&figures), load());
            results.push((*kind, figures));
        }
    }
    println!("medians:");
    let mut all = Map::new();
    let middle = |kind: Kind, of: &dyn Fn(&Figures) -> f64| {
        median(results.iter().filter(|(is, _)| *is == kind).map(|(_, figures)| of(figures)).collect())
    };
    for kind in kinds {
        let size = |index: usize| Delivery {
            user_us: middle(*kind, &|f| f.sizes[index].user_us),
            all_us: middle(*kind, &|f| f.sizes[index].all_us),
            p50_ms: middle(*kind, &|f| f.sizes[index].p50_ms),
            p99_ms: middle(*kind, &|f| f.sizes[index].p99_ms),
        };
        let figures = Figures {
            bytes: middle(*kind, &|f| f.bytes),
            handshakes_per_cpu_s: middle(*kind, &|f| f.handshakes_per_cpu_s),
            sizes: [size(0), size(1)],
            wrong: results.iter().filter(|(is, _)| is == kind).map(|(_, f)| f.wrong).sum(),
        };
        println!("    {:<6}{}", kind.name(), line(&figures));
        let delivery = |d: &Delivery| json!({ "user_us": rounded(d.user_us, 2), "cpu_us": rounded(d.all_us, 2), "p50_ms": rounded(d.p50_ms, 1), "p99_ms": rounded(d.p99_ms, 1) });
        all.insert(
            kind.name().to_owned(),
            json!({
                "bytes_per_viewer": rounded(figures.bytes, 0),
                "handshakes_per_cpu_s": rounded(figures.handshakes_per_cpu_s, 0),
                "of_400_bytes": delivery(&figures.sizes[0]),
                "of_4_kib": delivery(&figures.sizes[1]),
                "out_of_order": figures.wrong,
            }),
        );
        match kind {
            Kind::Ours => {
                all.insert("bytes_per_viewer".to_owned(), rounded(figures.bytes, 0));
                all.insert("user_us_per_frame".to_owned(), rounded(figures.sizes[0].user_us, 2));
                all.insert("cpu_us_per_frame".to_owned(), rounded(figures.sizes[0].all_us, 2));
                all.insert("handshakes_per_cpu_s".to_owned(), rounded(figures.handshakes_per_cpu_s, 0));
            }
            Kind::Floor => _ = all.insert("floor_us_per_frame".to_owned(), rounded(figures.sizes[0].all_us, 2)),
            _ => {}
        }
    }
    if kinds.contains(&Kind::Ours) {
        let cost = |kind| middle(kind, &|f: &Figures| f.sizes[0].all_us);
        for kind in kinds.iter().filter(|kind| !matches!(kind, Kind::Ours | Kind::Floor)) {
            let bytes = middle(*kind, &|f| f.bytes) / middle(Kind::Ours, &|f| f.bytes);
            all.insert(format!("vs_{}_bytes", kind.name()), rounded(bytes, 1));
            all.insert(format!("vs_{}_cpu", kind.name()), rounded(cost(*kind) / cost(Kind::Ours), 2));
        }
        all.insert("vs_floor_cpu".to_owned(), rounded(cost(Kind::Ours) / cost(Kind::Floor), 2));
    }
    Ok(all)
}

fn line(figures: &Figures) -> String {
    let delivery =
        |d: &Delivery| format!("{:6.2} {:6.2} µs, p50 {:6.1} p99 {:6.1} ms", d.user_us, d.all_us, d.p50_ms, d.p99_ms);
    format!(
        "{:8.0} B, {:7.0} handshakes/CPU s; 400 B: {}; 4 KiB: {}{}",
        figures.bytes,
        figures.handshakes_per_cpu_s,
        delivery(&figures.sizes[0]),
        delivery(&figures.sizes[1]),
        if figures.wrong > 0 { format!("; {} OUT OF ORDER", figures.wrong) } else { String::new() }
    )
}

/// Until the server has nothing to do, for a while: it has noticed who left, and given back what it gives back.
async fn settled(pids: &[u32]) {
    let (until, mut quiet, mut before) = (Instant::now() + SETTLED_MAX, 0, Cost::now(pids).all_us);
    while quiet < QUIET_LOOKS && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
        let now = Cost::now(pids).all_us;
        quiet = if now - before < 2.0 * TICK_US { quiet + 1 } else { 0 };
        before = now;
    }
}

async fn measure(kind: Kind, scale: &Scale, ground: &mut Ground) -> anyhow::Result<Figures> {
    let mut server = Server::start(kind, ground).await?;
    let mut crowds = Crowds::default();
    let within = Duration::from_secs(60);
    for _ in 0..WARM_TIMES {
        crowds.come(&[(server.plan(), WARM.min(scale.side))], CLOCK, within).await?;
        for size in SIZES {
            let frame = server.publish(size).await?;
            crowds.expect(frame, FRAME_MAX).await?;
        }
        crowds.leave().await?;
    }
    settled(&server.pids).await;

    let mut figures = Figures::default();
    let (memory, before) = (memory_bytes(&server.pids), Cost::now(&server.pids));
    crowds.come(&[(server.plan(), scale.side)], CLOCK, within).await?;
    let handshakes = Cost::now(&server.pids) - before;
    figures.handshakes_per_cpu_s = scale.side as f64 / handshakes.all_us * 1e6;
    let frame = server.publish(SIZES[0]).await?;
    ensure!(crowds.expect(frame, FRAME_MAX).await? == 0, "a frame has not reached everybody");
    settled(&server.pids).await;
    figures.bytes = memory_bytes(&server.pids).saturating_sub(memory) as f64 / scale.side as f64;

    for ((size, frames), delivery) in SIZES.into_iter().zip(scale.frames).zip(&mut figures.sizes) {
        crowds.report().await?;
        let before = Cost::now(&server.pids);
        for _ in 0..frames {
            let frame = server.publish(size).await?;
            let lacking = crowds.expect(frame, FRAME_MAX).await?;
            ensure!(lacking == 0, "{lacking} viewers have not had a frame of {size} bytes");
        }
        let cost = Cost::now(&server.pids) - before;
        let seen = crowds.report().await?;
        let delivered = seen.frames as f64;
        *delivery = Delivery {
            user_us: cost.user_us / delivered,
            all_us: cost.all_us / delivered,
            p50_ms: seen.late.quantile(0.5) as f64 / 1000.0,
            p99_ms: seen.late.quantile(0.99) as f64 / 1000.0,
        };
        ensure!(seen.frames == (frames * scale.side) as u64, "{} frames came of {}", seen.frames, frames * scale.side);
        figures.wrong += seen.wrong;
        ensure!(seen.lost == 0, "{} viewers were lost", seen.lost);
    }
    crowds.leave().await?;
    server.stop().await;
    Ok(figures)
}
