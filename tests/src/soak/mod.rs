//! The soak: a seeded evening on which everything goes wrong at once, and then the books are checked.
//!
//! Several real hubs are killed and started again, buyers, tills with card readers and staff come to whichever
//! lives, and the provider loses, delays, repeats and refuses, and is started anew once; so is NATS. Then the faults
//! stop, time is moved on, and when nothing is left to be done [`books`] must find nothing. The seed decides what
//! everybody wants and what goes wrong; not how threads take turns, so that a seed that failed fails often, not always.

pub mod books; // what must be true of the money and the seats at the end
mod faults; // what the provider does wrong
mod people; // buyers, tills, and staff who give back
mod story; // what the attempts went through that something is said of

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::TimeDelta;
use rand::{
    Rng, SeedableRng,
    rngs::SmallRng,
    seq::{IndexedRandom, SliceRandom},
};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{books::Books, people::Place};
use crate::{
    binary::Binary, clock::Clock, database::Database, fan, nats::Nats, provider::Provider, rows::Rows, till::Till,
};

const HUBS: usize = 3;
const TILLS: usize = 10;
/// Who give back and exchange.
const STAFF: usize = 3;
/// Nothing may take longer than this to come to rest, with time moved on.
const REST: Duration = Duration::from_secs(90);
/// Short, so that holds run out all the time.
const HOLD_TTL_S: i32 = 30;
const PAY_MARGIN_S: &str = "3";

#[derive(Debug, Clone, Copy)]
pub struct Soak {
    pub seed: u64,
    /// How long things go wrong.
    pub faults_for: Duration,
    pub buyers: usize,
}

/// What is away for a while.
#[derive(Debug, Clone, Copy)]
enum Outage {
    Nats,
    Provider,
}

/// What happened, for whoever reads the log: a soak in which nothing happens proves nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Figures {
    pub kills: u32,
    pub attempts: i64,
    pub captured: i64,
    pub declined: i64,
    pub voided: i64,
    pub refunded: i64,
    pub capture_failed: i64,
    /// At readers: captured, declined, stopped before a card was taken, and those of which an answer was in doubt.
    pub at_reader: AtReaders,
    pub exchanges: i64,
    /// For another evening.
    pub swaps: i64,
    pub given_back: i64,
    pub refunds_failed: i64,
    pub by_hand: i64,
    pub webhooks: i64,
    pub unknown_calls: i64,
    pub rested_ms: u128,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct AtReaders {
    pub begun: i64,
    pub captured: i64,
    pub declined: i64,
    pub stopped: i64,
    pub in_doubt: i64,
}

impl std::ops::AddAssign for AtReaders {
    fn add_assign(&mut self, other: Self) {
        self.begun += other.begun;
        self.captured += other.captured;
        self.declined += other.declined;
        self.stopped += other.stopped;
        self.in_doubt += other.in_doubt;
    }
}

/// A soak that came to rest, with everything still running.
pub struct Rested {
    pub database: Database,
    pub provider: Provider,
    pub figures: Figures,
    pub broken: Vec<String>,
    hubs: Vec<Binary>,
    _nats: Nats,
}

impl Rested {
    /// Ends it, and with it what must be true at the end of every test.
    pub async fn finish(self) {
        for hub in self.hubs {
            hub.stop().await;
        }
        self.database.finish().await;
    }
}

/// Where the living hubs are.
pub(crate) type Doors = Arc<Mutex<Vec<String>>>;

pub(crate) fn a_door(doors: &Doors, rng: &mut SmallRng) -> Option<String> {
    doors.lock().expect("nobody panics with it").choose(rng).cloned()
}

impl Soak {
    pub async fn run(self) -> Rested {
        let database = Database::new().await;
        let event = Rows { hold_ttl_s: HOLD_TTL_S, seat_limit: 50, ..Rows::new(20, 40) }.open(database.pool()).await;
        let other = Rows { price_minor: 6_000, ..Rows::new(20, 40) }.open(database.pool()).await;
        let mut provider = Provider::kept(self.seed).await;
        let mut nats = Nats::start().await;
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let mut hubs = Vec::new();
        for _ in 0..HUBS {
            hubs.push(self.hub(&database, &provider, &nats).await);
        }
        let doors: Doors = Arc::new(Mutex::new(hubs.iter().map(|h| h.url().to_owned()).collect()));
        let stop = CancellationToken::new();
        let mut people = JoinSet::new();
        let place = Place {
            doors: doors.clone(),
            provider: provider.url().to_owned(),
            event,
            other,
            paid: Arc::default(),
            stop: stop.clone(),
        };
        for (n, fan) in fan::many(&database, hubs[0].url(), self.buyers).await.into_iter().enumerate() {
            let rng = SmallRng::seed_from_u64(self.seed ^ ((n as u64 + 1) << 20));
            people.spawn(people::buy(fan, place.clone(), rng));
        }
        for n in 0..TILLS + STAFF {
            let name = format!("Counter {n}");
            let till = Till::enrol(&database, hubs[0].url(), &name).await;
            let rng = SmallRng::seed_from_u64(self.seed ^ ((n as u64 + 1) << 40));
            if n < TILLS {
                let reader = format!("tmr_counter_{n}");
                Till::place_reader(&database, &name, &reader).await;
                people.spawn(people::sell(till, reader, place.clone(), rng));
            } else {
                people.spawn(people::give_back(till, place.clone(), rng));
            }
        }
        provider.webhooks_to(hubs[0].url()).await;
        provider.rules(faults::rules(&mut rng, chrono::Utc::now().timestamp_millis(), self.faults_for)).await;

        let mut figures = Figures::default();
        let until = Instant::now() + self.faults_for;
        let mut outages = vec![Outage::Nats, Outage::Provider];
        outages.shuffle(&mut rng);
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(rng.random_range(800..3_000))).await;
            let n = rng.random_range(0..hubs.len());
            doors.lock().expect("nobody panics with it").retain(|url| url != hubs[n].url());
            hubs.swap_remove(n).kill().await;
            figures.kills += 1;
            let hub = self.hub(&database, &provider, &nats).await;
            doors.lock().expect("nobody panics with it").push(hub.url().to_owned());
            hubs.push(hub);
            let away = Duration::from_millis(rng.random_range(200..2_000));
            match outages.pop() {
                Some(Outage::Nats) => {
                    nats.kill().await;
                    tokio::time::sleep(away).await;
                    nats.restart().await;
                }
                Some(Outage::Provider) => provider.restart(away).await,
                None => {}
            }
            provider.webhooks_to(hubs.choose(&mut rng).expect("a hub").url()).await;
            reopen_the_gate(&database).await; // as a person would who has looked
        }
        stop.cancel();
        while let Some(ended) = people.join_next().await {
            ended.expect("an actor came to grief");
        }
        provider.rules(serde_json::json!([])).await;
        // From here on time is moved. Only a hub that has started already stands that.
        let clock = Clock::install(database.pool()).await;
        let began = Instant::now();
        provider.advance(TimeDelta::seconds(10)).await; // what it had on its way arrives, or fails
        provider.until_delivered().await;
        let mut broken = rest(&database, &clock).await;
        provider.until_delivered().await;
        broken.extend(rest(&database, &clock).await);
        // A refund that failed after it had arrived, and whose webhook was lost: only the books tell.
        broken.extend(compare_the_books(&database, &clock).await);
        broken.extend(rest(&database, &clock).await);
        figures.rested_ms = began.elapsed().as_millis();
        let before = Books::read(&database, &provider).await;
        broken.extend(before.broken(&database).await);
        // The whole log of webhooks once more.
        provider.replay().await;
        provider.until_delivered().await;
        broken.extend(rest(&database, &clock).await);
        let after = Books::read(&database, &provider).await;
        broken.extend(before.differences(&after));
        broken.extend(story::stories(&database, &broken).await);
        figures.read(&database).await;
        Rested { database, provider, figures, broken, hubs, _nats: nats }
    }

    async fn hub(&self, database: &Database, provider: &Provider, nats: &Nats) -> Binary {
        let mut config = database.config().await;
        config.nats.url = nats.url();
        provider.configure(&mut config);
        let publishable = config.payment.publishable_key.clone();
        let secrets: Vec<&str> = config.payment.webhook_secrets.iter().map(|s| s.reveal()).collect();
        let secrets = secrets.join(",");
        let more = [
            ("FULLHOUSE__PAYMENT__PUBLISHABLE_KEY", publishable.as_str()),
            ("FULLHOUSE__PAYMENT__WEBHOOK_SECRETS", secrets.as_str()),
            ("FULLHOUSE__PAYMENT__LEASE_S", "2"),
            ("FULLHOUSE__PAYMENT__PAY_MARGIN_S", PAY_MARGIN_S),
            ("FULLHOUSE__PAYMENT__TIMEOUT_MS", "700"),
            ("FULLHOUSE__PAYMENT__WORKER_TICK_MS", "50"),
            // A third of all calls fail here by design; a gate that is closed for that all evening lets nothing happen.
            // When nothing is answered at all, it closes still.
            ("FULLHOUSE__GATE__PROVIDER_ERRORS_PERCENT_MAX", "85"),
            ("FULLHOUSE__GATE__UNKNOWN_MAX", "500"),
            ("FULLHOUSE__GATE__UNKNOWN_PERCENT_MAX", "100"),
        ];
        Binary::serve(&config, &more).await
    }
}

async fn reopen_the_gate(database: &Database) {
    sqlx::query("update checkout_gate set reopened_at = db_clock(), reopened_by = 'soak' where reopened_at is null")
        .execute(database.pool())
        .await
        .expect("the test's database answers");
}

/// What is still to be done, by kind.
async fn open_work(database: &Database) -> Vec<String> {
    sqlx::query_scalar(
        "select 'attempt ' || id || ' is ' || state || ', next at ' || coalesce(next_run_at::text, 'never') from attempt
         where state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded', 'refund_failed')
            or next_run_at is not null
         union all
         select 'refund ' || id || ' is ' || state from refund where state in ('pending', 'accepted')
         union all
         select 'webhook ' || event_id || ' is not done with' from webhook_event where done_at is null
         union all
         select 'order ' || id || ' is due' from \"order\" where state = 'payment_due'
         union all
         select 'hold ' || id || ' has not ended' from hold where state = 'live'",
    )
    .fetch_all(database.pool())
    .await
    .expect("the test's database answers")
}

/// Moves time on until nothing is left to be done. What is left after [`REST`] is stuck.
async fn rest(database: &Database, clock: &Clock) -> Vec<String> {
    let until = Instant::now() + REST;
    let mut quiet = 0;
    loop {
        let open = open_work(database).await;
        quiet = if open.is_empty() { quiet + 1 } else { 0 };
        if quiet > 3 {
            return Vec::new();
        }
        if Instant::now() > until {
            return open.into_iter().take(10).map(|what| format!("stuck after {REST:?}: {what}")).collect();
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
        // A lease that a dead hub left behind runs out by this too.
        clock.advance(TimeDelta::seconds(60)).await;
    }
}

/// The hour passes after which the hubs compare the books. Nothing of it may be left for a person.
async fn compare_the_books(database: &Database, clock: &Clock) -> Vec<String> {
    clock.advance(TimeDelta::minutes(61)).await;
    let since = clock.now().await;
    let until = Instant::now() + REST;
    loop {
        let done: Option<bool> = sqlx::query_scalar(
            "select ok from reconciliation_run where started_at >= $1 and finished_at is not null order by id limit 1",
        )
        .bind(since)
        .fetch_optional(database.pool())
        .await
        .expect("the test's database answers");
        match done {
            Some(true) => return Vec::new(),
            Some(false) => return vec!["the books could not be compared".to_owned()],
            None if Instant::now() > until => return vec![format!("nobody compared the books within {REST:?}")],
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

impl Figures {
    async fn read(&mut self, database: &Database) {
        let count = async |sql: &str| -> i64 {
            sqlx::query_scalar(sql).fetch_one(database.pool()).await.expect("the test's database answers")
        };
        let state = async |state: &str| count(&format!("select count(*) from attempt where state = '{state}'")).await;
        self.attempts = count("select count(*) from attempt").await;
        self.captured = state("captured").await;
        self.declined = state("declined").await;
        self.voided = state("voided").await;
        self.refunded = state("refunded").await;
        self.capture_failed = state("capture_failed").await;
        let at_reader = async |what: &str| {
            count(&format!("select count(*) from attempt a where reader_id is not null and {what}")).await
        };
        self.at_reader = AtReaders {
            begun: at_reader("true").await,
            captured: at_reader("state = 'captured'").await,
            declined: at_reader("state = 'declined'").await,
            stopped: at_reader("state = 'voided' and outcome = 'cancelled'").await,
            in_doubt: at_reader(
                "exists (select from provider_call c where c.attempt_id = a.id and c.op in ('confirm', 'stop_reader')
                    and (c.state in ('sent', 'unknown') or c.sends > 1))",
            )
            .await,
        };
        self.exchanges = count("select count(*) from order_exchange").await;
        self.swaps = count("select count(*) from order_swap where done_at is not null").await;
        self.given_back = count("select count(*) from refund_request").await;
        self.refunds_failed = count("select count(*) from refund where state = 'failed'").await;
        self.by_hand = count("select count(*) from refund r join tender t on t.id = r.tender_id where t.kind = 'card' and r.kind = 'cash'").await;
        self.webhooks = count("select count(*) from webhook_event").await;
        self.unknown_calls = count("select count(*) from provider_call where state in ('sent', 'unknown')").await;
    }
}
