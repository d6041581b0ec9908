//! The pace of a line in front of a real hub that is really too slow: real holds, a database behind a wire that takes
//! longer, and payments that are stopped. (`pace.rs` and the plots simulate hours; this is one of the real thing.)

use std::{cell::RefCell, sync::Arc, time::Duration};

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
    /// As the hub measured it last, milliseconds: holding (p99), and a small write.
    hold_ms: Option<i32>,
    write_ms: Option<i32>,
}

struct Sale {
    line: Line,
    proxy: Arc<Proxy>,
    buying: Vec<JoinHandle<()>>,
    stop: CancellationToken,
    /// The run as a table: what was done, and each time that the rate changed.
    told: RefCell<Vec<String>>,
    began: DateTime<Utc>,
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
        let began = clock.now().await;
        let line = Line { database, clock, hub, event };
        Self { line, proxy: Arc::new(proxy), buying, stop, told: RefCell::default(), began }
    }

    /// One look at the line, so many seconds of its own time after the last.
    async fn look(&self, seconds: i64) -> Shown {
        self.line.clock.advance(TimeDelta::seconds(seconds)).await;
        self.line.look().await;
        let (at, rate, reason, hold_ms, write_ms): (_, i32, String, _, _) = sqlx::query_as(
            "select budget_at, rate_minute, rate_reason, h.hold_p99_ms, h.write_ms
             from line left join lateral (select * from hub_load order by at desc limit 1) h on true",
        )
        .fetch_one(self.line.database.pool())
        .await
        .unwrap();
        Shown { at, rate: rate.into(), reason, hold_ms, write_ms }
    }

    /// `--nocapture` shows the run as a table.
    fn tell(&self, done: &str, shown: &Shown) {
        let ms = |ms: Option<i32>| ms.map_or("–".to_owned(), |ms| format!("{ms} ms"));
        let second = (shown.at - self.began).num_seconds();
        let Shown { rate, reason, hold_ms, write_ms, .. } = shown;
        let row = format!("| {second} | {done} | {rate} | {} | {} | {reason} |", ms(*hold_ms), ms(*write_ms));
        println!("{row}");
        self.told.borrow_mut().push(row);
    }

    /// Kept as a file, if one is named (`make pace-real`).
    fn keep(&self) {
        let Some(path) = std::env::var_os("FULLHOUSE_PACE_REAL") else { return };
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu =
            cpus.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ")).map_or("", |(_, name)| name);
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let text = format!(
            "# One real run\n\n\
             Made by `make pace-real`: the controller of a real hub (a debug build), with {BUYERS} buyers who hold and give back all\n\
             the time, 50,000 people who wait, and a PostgreSQL behind a wire that is slowed by 60 ms a piece and mended again. The\n\
             line may be called at {RATE_MIN} to {RATE_MAX} a minute. What is measured is real; the line is looked at four times as\n\
             often as usual, a second of its own time each. On {cores} cores ({cpu}), client, hub and database together.\n\n\
             | second | what was done | people a minute | holding, p99 | a small write | why |\n\
             | ---: | --- | ---: | ---: | ---: | --- |\n{}\n",
            self.told.borrow().join("\n")
        );
        std::fs::write(path, text).expect("the named file can be written");
    }

    /// Something was done. Looks every second of both times until `what` is so; what was seen on the way.
    async fn until(&self, done: &str, what: &str, so: impl Fn(&Shown) -> bool) -> Vec<Shown> {
        let until = Instant::now() + 3 * HUNG;
        let mut seen = Vec::new();
        loop {
            let shown = self.look(1).await;
            if seen.last().is_none_or(|last: &Shown| last.rate != shown.rate) {
                self.tell(if seen.is_empty() { done } else { "" }, &shown);
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
        self.keep();
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
    let rising =
        sale.until("the sale is open", "the rate is at ten times the least", |shown| shown.rate >= 10 * RATE_MIN);
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
    let falling = sale.until("the database is slow", "the rate has fallen", |shown| shown.rate < before).await;
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
    let further = sale
        .until("it stays slow", "and falls again while it stays too much", |shown| shown.rate <= fell.rate * 3 / 4)
        .await;
    let (low, low_at) = (further.last().unwrap().rate, further.last().unwrap().at);
    assert!(low_at - fell.at >= TimeDelta::seconds(10), "each fall is given time to show: {further:?}");

    // The wire is as before. It does not rise at once, and then by steps.
    sale.proxy.mend();
    let back = sale.until("the database is as before", "the rate rises again", |shown| shown.rate > low).await;
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
    sale.tell("payments are stopped", &stopped);
    assert_eq!((stopped.rate, stopped.reason.as_str()), (0, "stopped: no payments can be taken now"));
    sale.look(10).await;
    assert_eq!(sale.line.count("select called_through from line").await, through);
    sale.line.run("update checkout_gate set reopened_at = db_clock(), reopened_by = 'a test'").await;
    let opened = sale.look(1).await;
    sale.tell("payments go on", &opened);
    assert_eq!(opened.rate, (rose / 4).max(RATE_MIN), "{opened:?}");
    assert_eq!((sale.logged("gate_closed").await.len(), sale.logged("gate_opened").await.len()), (1, 1));
    sale.end().await;
}
