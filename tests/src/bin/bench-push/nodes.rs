//! Several push processes of ours: 50,000 viewers at the relay's pace, a node that goes, and arrivals beside a fan-out.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fullhouse_tests::viewers::Plan;
use serde_json::{Map, Value, json};

use super::{
    Scale,
    cost::{Cost, memory_bytes},
    crowds::Crowds,
    kernel::{files_max, load},
    rounded,
    servers::{CLOCK, Ground, Server},
};

/// The relay's tick.
const TICK: Duration = Duration::from_millis(100);
const BYTES: usize = 400;
/// 500,000 in two minutes.
const ARRIVALS_A_SECOND: f64 = 4_200.0;
const COMING_MAX: Duration = Duration::from_secs(180);
/// Files that a crowd needs besides its viewers'.
const OTHER_FILES: usize = 500;

/// As many plans as it takes for crowds whose processes may have only so many files.
pub fn spread(plans: &[Plan], viewers: usize) -> Vec<(Plan, usize)> {
    let most = files_max().saturating_sub(OTHER_FILES).max(100);
    let crowds = viewers.div_ceil(most).max(plans.len());
    let of = |number: usize| viewers * (number + 1) / crowds - viewers * number / crowds;
    (0..crowds).map(|number| (plans[number % plans.len()].clone(), of(number))).collect()
}

/// A plan for each port of a server's.
fn plans(server: &Server) -> Vec<Plan> {
    server.ports.iter().map(|port| Plan { ports: vec![*port], ..server.plan() }).collect()
}

pub async fn paced(scale: &Scale, ground: &mut Ground) -> anyhow::Result<Map<String, Value>> {
    let (viewers, time) = scale.paced;
    let mut server = Server::start_ours(ground, 3, &[]).await?;
    let mut crowds = Crowds::default();
    crowds.come(&spread(&plans(&server), viewers), CLOCK, COMING_MAX).await?;
    crowds.report().await?;
    let (before, began) = (Cost::now(&server.pids), Instant::now());
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (mut frame, mut published) = (0, 0);
    while began.elapsed() < time {
        tick.tick().await;
        frame = server.publish(BYTES).await?;
        published += 1;
    }
    let lacking = crowds.expect(frame, Duration::from_secs(20)).await?;
    ensure!(lacking == 0, "{lacking} of {viewers} viewers have not had the last frame");
    let (cost, spent) = (Cost::now(&server.pids) - before, began.elapsed().as_secs_f64());
    let seen = crowds.report().await?;
    ensure!(seen.wrong == 0 && seen.lost == 0, "{seen:?}");
    let (p50, p99) = (seen.late.quantile(0.5) as f64 / 1000.0, seen.late.quantile(0.99) as f64 / 1000.0);
    let rounds = seen.messages as f64 / viewers as f64;
    println!(
        "{viewers} viewers on three push processes, a frame each {TICK:?}: {rounds:.0} rounds for {published} frames in {spent:.0} s, \
         p50 {p50:.0} ms, p99 {p99:.0} ms, {:.2} µs of CPU a message; load {:.1}",
        cost.all_us / seen.messages as f64,
        load()
    );
    crowds.leave().await?;
    server.stop().await;
    Ok(Map::from_iter([
        ("p50_ms_at_50k".to_owned(), rounded(p50, 0)),
        ("p99_ms_at_50k".to_owned(), rounded(p99, 0)),
        (
            "paced".to_owned(),
            json!({ "viewers": viewers, "frames": published, "rounds": rounded(rounds, 1), "spans": seen.spans }),
        ),
    ]))
}

/// Viewers arrive while others are served: a frame each second to those who are there.
pub async fn arrivals(scale: &Scale, ground: &mut Ground) -> anyhow::Result<Map<String, Value>> {
    let (there, coming) = scale.arrivals;
    let mut server = Server::start_ours(ground, 3, &[]).await?;
    let (mut crowds, mut more) = (Crowds::default(), Crowds::default());
    crowds.come(&spread(&plans(&server), there), CLOCK, COMING_MAX).await?;
    let beat = async |server: &mut Server, frame: &mut u64| -> anyhow::Result<()> {
        *frame = server.publish(BYTES).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    };
    let mut frame = 0;
    let (before, began) = (Cost::now(&server.pids), Instant::now());
    for _ in 0..if scale.smoke { 1 } else { 8 } {
        beat(&mut server, &mut frame).await?;
    }
    let quiet = (Cost::now(&server.pids) - before).all_us / began.elapsed().as_micros() as f64;
    crowds.report().await?;

    let rated: Vec<Plan> = plans(&server);
    let rated = spread(&rated, coming);
    let count = rated.len() as f64;
    let rated: Vec<(Plan, usize)> = rated
        .into_iter()
        .map(|(plan, viewers)| {
            let position = Some((server.plan().position.unwrap_or_default().0, frame));
            (Plan { rate: Some(ARRIVALS_A_SECOND / count), at_once: 64, position, ..plan }, viewers)
        })
        .collect();
    let (before, began) = (Cost::now(&server.pids), Instant::now());
    let busy = {
        let arriving = more.come_from(&rated, CLOCK, COMING_MAX, 100);
        tokio::pin!(arriving);
        loop {
            tokio::select! {
                come = &mut arriving => break come?,
                beaten = beat(&mut server, &mut frame) => beaten?,
            }
        }
        (Cost::now(&server.pids) - before).all_us / began.elapsed().as_micros() as f64
    };
    let a_second = coming as f64 / began.elapsed().as_secs_f64();
    for crowd in [&mut crowds, &mut more] {
        ensure!(crowd.expect(frame, Duration::from_secs(20)).await? == 0, "not everybody has the last frame");
    }
    let seen = crowds.report().await?;
    ensure!(seen.wrong == 0 && seen.lost == 0, "{seen:?}");
    let p99 = seen.late.quantile(0.99) as f64 / 1000.0;
    println!(
        "{coming} viewers arrive, {a_second:.0} a second, beside a frame a second to {there}: {busy:.2} cores for all push \
         processes ({quiet:.2} without arrivals), frames p99 {p99:.0} ms; load {:.1}",
        load()
    );
    crowds.leave().await?;
    more.leave().await?;
    server.stop().await;
    Ok(Map::from_iter([(
        "arrivals".to_owned(),
        json!({ "viewers": coming, "beside": there, "a_second": rounded(a_second, 0), "cores": rounded(busy, 2),
                "cores_without": rounded(quiet, 2), "p99_ms": rounded(p99, 0) }),
    )]))
}

/// Two nodes; one is killed, and comes again; then it is told to stop.
pub async fn storm(scale: &Scale, ground: &mut Ground) -> anyhow::Result<Map<String, Value>> {
    let mut all = Map::new();
    for (name, is_killed) in [("killed", true), ("drained", false)] {
        let mut server = Server::start_ours(ground, 2, &[]).await?;
        let mut crowds = Crowds::default();
        let plan = Plan { return_to: vec![server.ports[0]], ..server.plan() };
        crowds.come(&[(plan, scale.storm)], CLOCK, COMING_MAX).await?;
        let frame = server.publish(BYTES).await?;
        ensure!(crowds.expect(frame, Duration::from_secs(20)).await? == 0, "a frame has not reached everybody");
        crowds.report().await?;
        let going = server.take_hub().context("a hub")?;
        let left = server.pids[0];
        let (began, base) = (Instant::now(), memory_bytes(&[left]));
        let going = tokio::spawn(async move { if is_killed { going.kill().await } else { going.stop().await } });
        // Meanwhile seats change, and the node that is left has a peak.
        let mut peak: f64 = 0.0;
        let (mut last, mut frame) = (Cost::now(&[left]), frame);
        let mut lacking = 1;
        while (lacking > 0 || !going.is_finished()) && began.elapsed() < Duration::from_secs(60) {
            let turn = Instant::now();
            frame = server.publish(BYTES).await?;
            lacking = crowds.gather(Duration::from_millis(500)).await?;
            tokio::time::sleep(Duration::from_millis(500).saturating_sub(turn.elapsed())).await;
            let now = Cost::now(&[left]);
            peak = peak.max((now - last).all_us / turn.elapsed().as_micros() as f64);
            last = now;
        }
        let without = crowds.expect(frame, Duration::from_secs(20)).await?;
        let converged = began.elapsed().as_secs_f64();
        ensure!(lacking == 0 && without == 0, "{lacking} viewers are away, {without} have not had the last frame");
        let seen = crowds.report().await?;
        ensure!(seen.wrong == 0, "{seen:?}");
        println!(
            "{} viewers, one of two nodes {name}: all back and up to date after {converged:.1} s, peak {:.0} % of a core, \
             {} resyncs, {} handshakes refused, memory {:+} KiB; load {:.1}",
            scale.storm,
            peak * 100.0,
            seen.resyncs,
            seen.refused,
            (memory_bytes(&[left]) as i64 - base as i64) >> 10,
            load()
        );
        all.insert(
            format!("node_{name}"),
            json!({ "viewers": scale.storm, "converged_s": rounded(converged, 1), "peak_core": rounded(peak, 2), "lost": seen.lost, "resyncs": seen.resyncs }),
        );
        crowds.leave().await?;
        let _ = going.await;
        server.stop().await;
    }
    Ok(all)
}
