//! An evening of tills without a network: real tills in processes that are killed, on networks that are cut, beside a crowd
//! that buys with a network, while leases are written off. Afterwards the books are read: by the journals on the tills'
//! disks, by what a door would let in, and by the hub.

mod books; // what must be true afterwards

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fullhouse::{
    auth,
    child::{Kept, Spec},
};
use nix::sys::signal::Signal;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    database::Database,
    fan,
    hub::Hub,
    network::{Network, Weather},
    rows::Rows,
    run::run,
    till::Till,
};

/// A mistake that is made on purpose: the books must find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Seats of a lease go back on sale when its time is over, as a sweeper would give them back.
    GivenBackByTime,
}

pub struct Cutting {
    pub seed: u64,
    /// How long everything goes wrong.
    pub lasts: Duration,
    pub tills: usize,
    /// The program of a till (`tests/src/bin/till.rs`).
    pub program: PathBuf,
    pub fault: Option<Fault>,
}

/// What happened, and what is wrong about it.
pub struct Cut {
    pub figures: BTreeMap<&'static str, u64>,
    pub broken: Vec<String>,
    pub database: Database,
}

/// Where a till stands: its journal and its network outlive its process.
struct Place {
    terminal_id: Uuid,
    token: String,
    folder: PathBuf,
    network: Network,
}

struct Window {
    at: Place,
    process: Kept,
}

struct Evening {
    database: Database,
    hub: Hub,
    event: i64,
    windows: Vec<Window>,
    office: Till,
    dice: SmallRng,
    figures: BTreeMap<&'static str, u64>,
}

impl Cutting {
    pub async fn run(&self) -> Cut {
        let database = Database::new().await;
        let event = Rows { seat_limit: 4, ..Rows::new(40, 25) }.open(database.pool()).await;
        let hub = Hub::start(database.config().await).await;
        let office = Till::enrol(&database, &hub.url(), "Office").await;
        let mut dice = SmallRng::seed_from_u64(self.seed);
        let mut windows = Vec::new();
        for number in 0..self.tills {
            windows.push(self.open(&database, &hub, event, number, &mut dice).await);
        }
        let stop = CancellationToken::new();
        let bought = Arc::new(AtomicU64::new(0));
        let mut crowd = JoinSet::new();
        for number in 0..3 {
            let seed = dice.random();
            crowd.spawn(buy(
                Till::enrol(&database, &hub.url(), &format!("Online {number}")).await,
                event,
                SmallRng::seed_from_u64(seed),
                bought.clone(),
                stop.clone(),
            ));
        }
        let fans = fan::many(&database, &hub.url(), 4).await;
        for fan in fans {
            crowd.spawn(hold(fan, event, SmallRng::seed_from_u64(dice.random()), stop.clone()));
        }
        if self.fault == Some(Fault::GivenBackByTime) {
            crowd.spawn(give_back_by_time(database.pool().clone(), stop.clone()));
        }
        let mut evening = Evening { database, hub, event, windows, office, dice, figures: BTreeMap::new() };
        evening.goes_wrong(self).await;
        for window in &evening.windows {
            window.at.network.turns(Weather::Calm);
        }
        evening.come_to_rest(self).await;
        stop.cancel();
        while let Some(ended) = crowd.join_next().await {
            ended.expect("the crowd does not fail");
        }
        evening.figures.insert("bought with a network", bought.load(Ordering::Relaxed));
        let broken = evening.books().await;
        let Evening { database, hub, figures, .. } = evening;
        hub.stop().await;
        Cut { figures, broken, database }
    }

    async fn open(&self, database: &Database, hub: &Hub, event: i64, number: usize, dice: &mut SmallRng) -> Window {
        let (terminal_id, token) =
            auth::enrol(database.pool(), &format!("Window {number}"), "counter").await.expect("a terminal");
        let network = Network::before(&hub.url(), dice.random()).await;
        let folder = run().await.directory("till");
        let at = Place { terminal_id, token: token.reveal().to_owned(), folder, network };
        let process = self.spawn(&at, event, &[], dice.random());
        Window { at, process }
    }

    fn spawn(&self, at: &Place, event: i64, more: &[&str], seed: u64) -> Kept {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(at.folder.join("log")).expect("a log");
        Spec::new(&self.program)
            .args(["--hub", &at.network.url(), "--token", &at.token, "--terminal", &at.terminal_id.to_string()])
            .args(["--event", &event.to_string(), "--seed", &seed.to_string()])
            .arg("--folder")
            .arg(&at.folder)
            .args(more)
            .output(log)
            .spawn()
            .expect("a till starts")
    }
}

impl Evening {
    async fn goes_wrong(&mut self, cutting: &Cutting) {
        let until = Instant::now() + cutting.lasts;
        while Instant::now() < until {
            sleep(Duration::from_millis(self.dice.random_range(50..400))).await;
            let at = self.dice.random_range(0..self.windows.len());
            match self.dice.random_range(0..10) {
                0..2 => self.kill(cutting, at).await,
                2..4 => self.write_off().await,
                dice => {
                    let weather = match dice {
                        4 | 5 => Weather::Silent,
                        6 => Weather::Cut,
                        7 => Weather::Calm,
                        _ => Weather::Stormy,
                    };
                    self.windows[at].at.network.turns(weather);
                    self.count("changes of weather");
                }
            }
        }
    }

    /// `kill -9`, and on it goes from the journal.
    async fn kill(&mut self, cutting: &Cutting, at: usize) {
        let seed = self.dice.random();
        let window = &mut self.windows[at];
        window.process.signal(Signal::SIGKILL);
        let killed = &window.process;
        crate::eventually("the till is dead", || async { killed.ended() }).await;
        let started = cutting.spawn(&window.at, self.event, &[], seed);
        std::mem::replace(&mut window.process, started).stop().await;
        self.count("kills");
    }

    /// Somebody takes the risk; sometimes the seats are sold to others at once.
    async fn write_off(&mut self) {
        let listed = self.office.get("/api/staff/leases").await;
        if !listed.status.is_success() {
            return; // too busy
        }
        let listed = listed.body;
        let open: Vec<&Value> =
            listed["leases"].as_array().expect("a list").iter().filter(|l| l["state"] == "open").collect();
        let Some(lease) = open.choose(&mut self.dice) else { return };
        let path = format!("/api/staff/leases/{}/write-off", lease["id"].as_str().expect("an id"));
        let ended = self.office.post(&path, json!({ "reason": "not heard of" })).await;
        if !ended.status.is_success() {
            assert!(["lease_closed", "busy"].contains(&ended.code()), "{:?}", ended.body);
            return; // its terminal was faster, or nobody knows: then it is one more that is written off
        }
        let ended = ended.body;
        self.count("write-offs");
        if self.dice.random_bool(0.5) && ended["returned"].as_array().is_some_and(|seats| !seats.is_empty()) {
            let body = json!({ "seats": ended["returned"], "reason": "nobody came" });
            // A sale may have come late and taken one: then nothing is unblocked.
            self.office.post(&format!("/api/box-office/events/{}/unblock", self.event), body).await;
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.figures.entry(what).or_default() += 1;
    }

    /// Each till ends its evening; then each starts once more to see whether something is owed: one may have been killed
    /// a moment ago, and a grant may have arrived long after its till gave it up.
    async fn come_to_rest(&mut self, cutting: &Cutting) {
        for window in &self.windows {
            window.process.signal(Signal::SIGTERM);
        }
        for at in 0..self.windows.len() {
            self.windows[at].has_ended().await;
            let window = &mut self.windows[at];
            let resting = cutting.spawn(&window.at, self.event, &["--resting"], 0);
            std::mem::replace(&mut window.process, resting).stop().await;
        }
        for window in &self.windows {
            let ended = window.has_ended().await;
            assert!(ended.success(), "a till did not come to rest: {}", window.log());
        }
    }
}

impl Window {
    async fn has_ended(&self) -> std::process::ExitStatus {
        let what = format!("a till settles all that it sold, see {}", self.at.folder.display());
        crate::eventually_within(Duration::from_secs(60), &what, || async { self.process.ended() }).await
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.at.folder.join("log")).unwrap_or_default()
    }
}

/// Buys at a counter that has its network all the time.
async fn buy(till: Till, event: i64, mut dice: SmallRng, bought: Arc<AtomicU64>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        sleep(Duration::from_millis(dice.random_range(30..150))).await;
        let first = dice.random_range(0..999);
        let held = till.hold(event, &[first, first + 1]).await;
        if held.status.is_success() && till.sell_for_cash(&held.body, 9_000).await.status.is_success() {
            bought.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Takes seats, thinks, and gives them back.
async fn hold(fan: fan::Fan, event: i64, mut dice: SmallRng, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let held = fan.hold(event, &[dice.random_range(0..1_000)]).await;
        sleep(Duration::from_millis(dice.random_range(10..120))).await;
        if let Some(id) = held.body["hold"]["id"].as_str() {
            fan.release(id).await;
        }
    }
}

/// The planted fault: what a sweeper of leases would do, if there were one.
async fn give_back_by_time(pool: sqlx::PgPool, stop: CancellationToken) {
    while !stop.is_cancelled() {
        sleep(Duration::from_millis(100)).await;
        let mut tx = pool.begin().await.expect("a transaction");
        for statement in [
            "select pg_advisory_xact_lock(id) from event",
            "create temporary table time_over on commit drop as
             select id from lease where state = 'open' and granted_at + sells_for_s * interval '1 second' < clock_timestamp()",
            "update lease set state = 'closed', ended_by = 'time', ended_at = clock_timestamp() where id in (select id from time_over)",
            "update lease_seat set state = 'returned', dead_at = clock_timestamp()
             where state = 'leased' and lease_id in (select id from time_over)",
            "update event_seat set status = 0, lease_id = null, version = version + 1 where lease_id in (select id from time_over)",
        ] {
            sqlx::query(statement).execute(&mut *tx).await.expect("the fault works");
        }
        tx.commit().await.expect("the fault works");
    }
}
