//! One account on two devices: one entry, one pass, and each device hears of the other, whatever comes in between.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
};

use chrono::TimeDelta;
use fullhouse::{
    admission::pass::{self, Bearer, Claim},
    auth::TokenHash,
    waiting_room::places::Places,
};
use fullhouse_tests::{
    fan::Fan,
    line::{Line, enter, hold, join, leave, mine, renew, second_device},
    proxy::{Proxy, Side},
    rows::Rows,
};
use futures_util::{StreamExt, future::join_all, stream};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use sqlx::PgPool;
use uuid::Uuid;

const ACCOUNTS: usize = 20;
const CROWD: usize = 2_000;

/// Accounts that stand twice or are inside twice, and passes whose entry does not stand, in these two tables.
async fn faults(line: &Line, entries: &str, passes: &str) -> i64 {
    line.count(&format!(
        "select (select count(*) from (select from {entries} where lapsed_at is null and left_at is null
                                       group by account_id having count(*) > 1) as twice)
              + (select count(*) from (select from {passes} where ended_at is null
                                       group by account_id having count(*) > 1) as twice)
              + (select count(*) from {passes} p where ended_at is null and not exists
                   (select from {entries} e where e.account_id = p.account_id and e.number = p.number
                    and e.lapsed_at is null and e.left_at is null))"
    ))
    .await
}

/// The control: verbs that look before they leap, of each account twice at the same moment.
async fn naive_verbs_go_wrong(line: &Line) {
    line.run(
        "create table naive_entry (number bigserial, account_id uuid, lapsed_at timestamptz, left_at timestamptz)",
    )
    .await;
    line.run("create table naive_pass (account_id uuid, number bigint, ended_at timestamptz)").await;
    for (table, make) in [
        ("naive_entry", "insert into naive_entry (account_id) values ($1)"),
        (
            "naive_pass",
            "insert into naive_pass select account_id, min(number) from naive_entry where account_id = $1 group by 1",
        ),
    ] {
        let before = faults(line, "naive_entry", "naive_pass").await;
        let accounts: Vec<Uuid> = (0..ACCOUNTS as u128).map(Uuid::from_u128).collect();
        join_all(accounts.iter().map(|account| async move {
            let both_have_looked = tokio::sync::Barrier::new(2);
            let verb = || async {
                let looks = format!("select count(*) from {table} where account_id = $1");
                let found: i64 =
                    sqlx::query_scalar(&looks).bind(account).fetch_one(line.database.pool()).await.unwrap();
                both_have_looked.wait().await;
                if found == 0 {
                    sqlx::query(make).bind(account).execute(line.database.pool()).await.unwrap();
                }
            };
            tokio::join!(verb(), verb());
        }))
        .await;
        assert_eq!(faults(line, "naive_entry", "naive_pass").await - before, ACCOUNTS as i64, "the control: {table}");
    }
}

/// As many at a time as a hub has in the first seconds of a rush.
async fn crowd_joins(people: &[Fan], event: i64, done: &AtomicBool) {
    let joined = stream::iter(people).map(|fan| join(fan, event)).buffer_unordered(64);
    joined.for_each(|answer| async { drop(answer.ok()) }).await;
    done.store(true, Ordering::Relaxed);
}

/// Both devices come, go and look as they like, until the crowd is through. Then both join. Who joins as the other one
/// leaves may have no entry any more when it is to be told.
async fn come_and_go(pair: &[Fan; 2], event: i64, seed: u64, done: &AtomicBool) {
    join_all(pair.iter().zip([seed, !seed]).map(|(device, seed)| async move {
        let mut rng = SmallRng::seed_from_u64(seed);
        while !done.load(Ordering::Relaxed) {
            match rng.random_range(0..4) {
                0 => drop(leave(device, event).await),
                1 => drop(mine(device, event).await),
                _ => {
                    let joined = join(device, event).await;
                    assert!(joined.status.is_success() || joined.code() == "entry_none");
                }
            }
        }
    }))
    .await;
    for joined in join_all(pair.iter().map(|device| join(device, event))).await {
        joined.ok();
    }
}

/// Both devices come in, stay and look. What they were refused, if anything.
async fn come_in_and_stay(pair: &[Fan; 2], event: i64, seed: u64, done: &AtomicBool) -> BTreeSet<String> {
    let refused = join_all(pair.iter().zip([seed, !seed]).map(|(device, seed)| async move {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (mut refused, mut pass) = (BTreeSet::new(), None::<String>);
        while !done.load(Ordering::Relaxed) || pass.is_none() {
            let answer = match (rng.random_range(0..3), &pass) {
                (0, Some(pass)) => renew(device, event, pass).await,
                (1, _) => mine(device, event).await,
                _ => enter(device, event).await,
            };
            match answer.status.is_success() {
                true => pass = answer.body["pass"].as_str().map(str::to_owned).or(pass),
                false => drop(refused.insert(answer.code().to_owned())),
            }
        }
        refused
    }))
    .await;
    refused.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_devices_of_one_account_are_one_in_the_line_while_two_thousand_join() {
    let seed: u64 = rand::random();
    eprintln!("two devices each: seed {seed}");
    let line = Line::open_with(Rows::new(4, 25), None, |config| {
        config.waiting_room.joins_account_max = 100_000;
        config.waiting_room.challenges_free = 1_000;
    })
    .await;
    naive_verbs_go_wrong(&line).await;
    line.run("update line set inside_max = 5000").await;
    let event = line.event;
    let crowd = line.people(CROWD).await;
    let (early, late) = crowd.split_at(CROWD / 2);
    let mut pairs = Vec::new();
    for fan in line.people(ACCOUNTS).await {
        let phone = second_device(&line, &fan).await;
        pairs.push([fan, phone]);
    }
    let seeds = (0..).map(|n: u64| seed.wrapping_add(n));
    let watched = async |done: &AtomicBool| {
        while !done.load(Ordering::Relaxed) {
            assert_eq!(faults(&line, "line_entry", "pass").await, 0, "seed {seed}");
        }
    };

    let done = AtomicBool::new(false);
    let devices = pairs.iter().zip(seeds.clone()).map(|(pair, seed)| come_and_go(pair, event, seed, &done));
    tokio::join!(crowd_joins(early, event, &done), join_all(devices), watched(&done));
    for [laptop, phone] in &pairs {
        let (laptop, phone) = (mine(laptop, event).await.ok(), mine(phone, event).await.ok());
        for same in ["number", "ticket", "entry_key", "joined_at"] {
            assert_eq!(laptop[same], phone[same], "seed {seed}: {same}");
        }
    }
    let entries = (CROWD / 2 + ACCOUNTS) as i64;
    assert_eq!(line.count("select count(*) from line_entry").await, entries, "one each, whoever came and went");
    line.opens().await;
    while line.count("select called_through from line").await < entries {
        line.clock.advance(TimeDelta::seconds(1)).await;
        line.look().await;
    }

    let done = AtomicBool::new(false);
    let devices = pairs.iter().zip(seeds).map(|(pair, seed)| come_in_and_stay(pair, event, seed, &done));
    let ((), refused, ()) = tokio::join!(crowd_joins(late, event, &done), join_all(devices), watched(&done));
    let refused: BTreeSet<String> = refused.into_iter().flatten().collect();
    assert_eq!(refused, BTreeSet::from(["pass_moved".to_owned()]), "seed {seed}: who lost the turn is told so");
    let moved = line.count("select count(*) from pass where ended_why = 'moved'").await;
    assert!(moved >= ACCOUNTS as i64, "seed {seed}: the turn went to and fro {moved} times");
    for (seat, [laptop, phone]) in pairs.iter().enumerate() {
        let mut here = None;
        for (device, other) in [(laptop, phone), (phone, laptop)] {
            let entry = mine(device, event).await.ok();
            if let Some(pass) = entry["pass"]["pass"].as_str() {
                assert!(here.replace((device, other, pass.to_owned())).is_none(), "seed {seed}: two have the turn");
            } else {
                assert_eq!(entry["inside_elsewhere"], true, "seed {seed}: the other device hears of it");
            }
        }
        let (device, other, pass) = here.expect("one of them has the turn");
        assert_eq!(hold(other, event, &[seat as i32], Some(&pass)).await.code(), "pass_foreign");
        hold(device, event, &[seat as i32], Some(&pass)).await.ok();
        // It goes to the other one, and the first is told; then one leaves while the other comes in.
        enter(other, event).await.ok();
        assert_eq!(hold(device, event, &[seat as i32 + 50], Some(&pass)).await.code(), "pass_moved");
        assert_eq!(mine(device, event).await.ok()["inside_elsewhere"], true);
        tokio::join!(leave(device, event), enter(other, event));
        for device in [device, other] {
            assert_eq!(mine(device, event).await.code(), "entry_none", "seed {seed}");
        }
    }
    assert_eq!(line.count("select count(*) from pass where ended_at is null").await, 0, "seed {seed}");
    assert_eq!(faults(&line, "line_entry", "pass").await, 0);
    line.close().await;
}

/// Somebody whose grace ends while their own request is under way at one hub, and whose other device joins at another.
struct Late {
    line: Line,
    proxy: Proxy,
    /// To the database over a wire that holds a statement back.
    pool: PgPool,
    fan: Fan,
    account: Uuid,
    session: TokenHash,
}

impl Late {
    /// A second of the grace is left.
    async fn come() -> Self {
        let line = Line::open().await;
        let fan = line.joined(1).await.remove(0);
        line.clock.freeze_at(line.clock.now().await).await;
        line.opens().await;
        let proxy = Proxy::start().await;
        let url = line.database.config_through(&proxy).database.url;
        let pool = PgPool::connect(url.reveal()).await.unwrap();
        let (account, session): (Uuid, Vec<u8>) =
            sqlx::query_as("select account_id, token_hash from session join line_entry using (account_id)")
                .fetch_one(line.database.pool())
                .await
                .unwrap();
        Self { line, proxy, pool, fan, account, session: session.try_into().unwrap() }
    }

    async fn enters(&self) {
        let places = Places::new(self.pool.clone());
        pass::enter(&self.pool, &places, self.line.event, self.account, self.session).await.unwrap();
    }

    async fn renews(&self) {
        let id = sqlx::query_scalar("select id from pass where ended_at is null").fetch_one(&self.pool).await.unwrap();
        let claim = Claim { id, event_id: self.line.event, account_id: self.account };
        let bearer = Bearer { account_id: self.account, session: &self.session };
        pass::renew(&self.pool, claim, self.line.event, bearer).await.unwrap().unwrap();
    }

    /// What a desk of joins must not do: it looks for a pass, and asks nobody whether one is being given.
    async fn lapses_naively(&self) {
        self.line
            .run(
                "update line_entry n set lapsed_at = db_clock() where lapsed_at is null and not exists
                 (select from pass p where p.account_id = n.account_id and p.ended_at is null and p.expires_at > db_clock())",
            )
            .await;
    }

    async fn joins(&self) {
        join(&self.fan, self.line.event).await.ok();
    }

    async fn faults(&self) -> i64 {
        faults(&self.line, "line_entry", "pass").await
    }

    /// `verb` is caught at `word`; the grace ends and `other` happens; then it goes on.
    async fn crossed(&self, word: &'static str, verb: impl Future<Output = ()>, other: impl Future<Output = ()>) {
        let mut held = self.proxy.hold_next(word, Side::Request);
        tokio::join!(verb, async {
            held.caught().await;
            self.line.clock.advance(TimeDelta::seconds(2)).await;
            other.await;
            held.let_go();
        });
    }
}

#[tokio::test]
async fn whose_grace_ends_while_they_come_in_or_stay_is_inside_and_stands_in_the_line() {
    for naive in [true, false] {
        let late = Late::come().await;
        late.line.clock.advance(TimeDelta::seconds(599)).await;
        let joins = async { if naive { late.lapses_naively().await } else { late.joins().await } };
        late.crossed("INSERT INTO PASS", late.enters(), joins).await;
        assert_eq!(late.faults().await, i64::from(naive), "coming in; the control: {naive}");
        late.line.close().await;

        let late = Late::come().await;
        late.enters().await;
        late.line.clock.advance(TimeDelta::seconds(599)).await;
        let joins = async { if naive { late.lapses_naively().await } else { late.joins().await } };
        late.crossed("UPDATE PASS SET EXPIRES_AT", late.renews(), joins).await;
        assert_eq!(late.faults().await, i64::from(naive), "staying; the control: {naive}");
        late.line.close().await;
    }
}
