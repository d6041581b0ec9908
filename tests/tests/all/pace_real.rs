//! The pace of a line in front of a real hub that is really too slow: real holds, a database behind a wire that takes
//! longer, and payments that are stopped. (`pace.rs` and the plots simulate hours; this is one of the real thing.)

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_tests::{
    HUNG,
    fan::Fan,
    hub::Hub,
    line::{BY_HAND, Line, hold, inside, quick},
    proxy::Proxy,
    rows::Rows,
};
use serde_json::Value;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

const BUYERS: usize = 12;
const RATE_MIN: i64 = 60;
const RATE_MAX: i64 = 6_000;

/// As it stands now.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    /// By the line's clock.
    at: DateTime<Utc>,
    rate: i64,
    reason: String,
}

struct Sale {
    line: Line,
    proxy: Arc<Proxy>,
    buying: Vec<JoinHandle<()>>,
    stop: CancellationToken,
}

impl Sale {
    /// A line that is open, with buyers inside who hold and give back all the time, and far more people than that who wait.
    async fn begin() -> Self {
        let line = Line::open_with(Rows::new(4, 25), None, |_| {}).await;
        let people = line.joined(BUYERS).await;
        line.run(&format!(
            "update line set rate_minute_min = {RATE_MIN}, rate_minute_max = {RATE_MAX}, rate_minute = {RATE_MIN}, inside_max = 100000"
        ))
        .await;
        line.opens().await;
        while line.count("select called_through from line").await < BUYERS as i64 {
            line.clock.advance(TimeDelta::seconds(1)).await;
            line.look().await;
        }
        line.run(
            "with place as (update line set next_number = next_number + 50000, rate_fixed = null, controller = null
                            returning event_id, next_number as number)
             insert into line_entry (event_id, number, account_id, entry_key, joined_at)
             select event_id, number - 1 - n, gen_random_uuid(), uuid_send(gen_random_uuid()), db_clock()
             from place, generate_series(0, 49999) as n",
        )
        .await;
        // The same line, by a hub whose database is behind a wire. Its own looks come by the hand of the test.
        let proxy = Proxy::start().await;
        let Line { database, clock, hub, event } = line;
        hub.stop().await;
        let mut config = database.config_through(&proxy);
        quick(&mut config);
        let hub = Hub::start_as(config, BY_HAND).await;
        let stop = CancellationToken::new();
        let mut buying = Vec::new();
        for (n, fan) in people.iter().enumerate() {
            let fan = fan.at(&hub.url());
            let pass = inside(&fan, event).await;
            buying.push(tokio::spawn(buys(fan, event, n as i32, pass, stop.clone())));
        }
        Self { line: Line { database, clock, hub, event }, proxy: Arc::new(proxy), buying, stop }
    }

    /// One look at the line, so many seconds of its own time after the last.
    async fn look(&self, seconds: i64) -> Shown {
        self.line.clock.advance(TimeDelta::seconds(seconds)).await;
        self.line.look().await;
        let (at, rate, reason): (_, i32, String) =
            sqlx::query_as("select budget_at, rate_minute, rate_reason from line")
                .fetch_one(self.line.database.pool())
                .await
                .unwrap();
        Shown { at, rate: rate.into(), reason }
    }

    /// Looks every second of both times until it is so; what was seen on the way.
    async fn until(&self, what: &str, so: impl Fn(&Shown) -> bool) -> Vec<Shown> {
        let until = Instant::now() + 3 * HUNG;
        let mut seen = Vec::new();
        loop {
            let shown = self.look(1).await;
            if seen.last().is_none_or(|last: &Shown| last.rate != shown.rate) {
                // `--nocapture` shows the run as a table.
                println!("| {} | {} | {} |", shown.at.format("%H:%M:%S"), shown.rate, shown.reason);
            }
            seen.push(shown);
            if so(seen.last().expect("one was pushed")) {
                return seen;
            }
            assert!(Instant::now() < until, "not so: {what}: {seen:?}");
            tokio::time::sleep(Duration::from_millis(250)).await; // what hubs measure, they measure in real time
        }
    }

    async fn logged(&self, what: &str) -> Vec<Value> {
        sqlx::query_scalar("select is_now from line_change where actor = 'controller' and what = $1 order by id")
            .bind(what)
            .fetch_all(self.line.database.pool())
            .await
            .unwrap()
    }

    async fn end(self) {
        self.stop.cancel();
        for buyer in self.buying {
            buyer.await.unwrap();
        }
        self.line.close().await;
    }
}

/// Holds a seat and gives it back, until it is told to end.
async fn buys(fan: Fan, event: i64, seat: i32, pass: String, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let held = hold(&fan, event, &[seat], Some(&pass)).await;
        if let Some(id) = held.body["hold"]["id"].as_str() {
            fan.release(id).await;
        } else {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_sale_that_is_too_slow_is_relieved_fast_and_filled_again_slowly() {
    let sale = Sale::begin().await;
    // All is well: it rises from the least, one step in ten seconds.
    let rising = sale.until("the rate is at ten times the least", |shown| shown.rate >= 10 * RATE_MIN);
    let rising = rising.await;
    let step = (RATE_MAX - RATE_MIN) / 40;
    for pair in rising.windows(2) {
        let by = pair[1].rate - pair[0].rate;
        assert!((0..=step).contains(&by), "{pair:?}");
    }
    let before = rising.last().unwrap().rate;
    let rises: Vec<_> = rising.windows(2).filter(|pair| pair[1].rate > pair[0].rate).map(|pair| pair[1].at).collect();
    assert!(rises.windows(2).all(|pair| pair[1] - pair[0] >= TimeDelta::seconds(10)), "{rises:?}");
    assert!(sale.logged("calm").await.len() >= rises.len(), "each rise is in the log");

    // Every piece on the wire to the database takes longer: holds do, and the hub says so of itself.
    sale.proxy.slow(Duration::from_millis(60));
    let falling = sale.until("the rate has fallen", |shown| shown.rate < before).await;
    let fell = falling.last().unwrap();
    let after = fell.at - rising.last().unwrap().at;
    println!("{before} a minute; {} s later {} a minute: {}", after.num_seconds(), fell.rate, fell.reason);
    assert!(after < TimeDelta::seconds(30), "within moments: {falling:?}");
    assert!(fell.rate <= before * 3 / 4, "by a quarter at least: {fell:?}");
    assert!(fell.reason.starts_with("lowered: "), "{fell:?}");
    let log = sale.logged("too_much").await;
    let figures = &log.last().expect("the fall is in the log");
    let strain = figures.to_string();
    assert!(strain.contains("value") && strain.contains("ceiling"), "with what was measured: {strain}");
    let further = sale.until("and falls again while it stays too much", |shown| shown.rate <= fell.rate * 3 / 4).await;
    let (low, low_at) = (further.last().unwrap().rate, further.last().unwrap().at);
    assert!(low_at - fell.at >= TimeDelta::seconds(10), "each fall is given time to show: {further:?}");

    // The wire is as before. It does not rise at once, and then by steps.
    sale.proxy.mend();
    let back = sale.until("the rate rises again", |shown| shown.rate > low).await;
    let after = back.last().unwrap().at - low_at;
    println!("{} s after the last fall it rises from {low}", after.num_seconds());
    assert!(after >= TimeDelta::seconds(30), "not before it has been well for a while: {back:?}");
    let (rose, was) = (back.last().unwrap().rate, back[back.len() - 2].rate);
    assert!(rose - was <= step, "{was} to {rose}");

    // Payments are stopped: nobody is called at the very next look, and it begins at a quarter when they go on.
    sale.line
        .run("insert into checkout_gate (reason, by_person, closed_at, closed_by) values ('paused', true, db_clock(), 'a test')")
        .await;
    let through = sale.line.count("select called_through from line").await;
    let stopped = sale.look(1).await;
    assert_eq!((stopped.rate, stopped.reason.as_str()), (0, "stopped: no payments can be taken now"));
    sale.look(10).await;
    assert_eq!(sale.line.count("select called_through from line").await, through);
    sale.line.run("update checkout_gate set reopened_at = db_clock(), reopened_by = 'a test'").await;
    let opened = sale.look(1).await;
    assert_eq!(opened.rate, (rose / 4).max(RATE_MIN), "{opened:?}");
    assert_eq!((sale.logged("gate_closed").await.len(), sale.logged("gate_opened").await.len()), (1, 1));
    sale.end().await;
}
