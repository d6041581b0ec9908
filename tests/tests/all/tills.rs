//! The core of a till at a real hub: with a network, without one, and with one on which everything goes wrong.

use std::{path::PathBuf, time::Duration};

use fullhouse::auth;
use fullhouse_box_office::{
    lease::{CloseError, SellError, TakeError, Wanted},
    till::{BeginError, LeaseError, Settings, Standing, Till},
};
use fullhouse_protocol::lease::LeaseRequest;
use fullhouse_tests::{
    HUNG,
    cutting::{Cutting, Fault},
    database::Database,
    eventually,
    hub::Hub,
    network::{Network, Weather},
    rows::Rows,
    run::run,
    till,
};
use uuid::Uuid;

struct House {
    database: Database,
    event: i64,
    hub: Hub,
    network: Network,
    settings: Settings,
    /// Another terminal, with a network of its own.
    office: till::Till,
}

impl House {
    async fn open() -> Self {
        let database = Database::new().await;
        let event = Rows::new(2, 10).open(database.pool()).await;
        let hub = Hub::start(database.config().await).await;
        let network = Network::before(&hub.url(), 1).await;
        let (terminal_id, token) = auth::enrol(database.pool(), "Window 1", "counter").await.expect("a terminal");
        let settings = Settings {
            hub: network.url(),
            token: token.reveal().to_owned(),
            terminal_id,
            folder: run().await.directory("till"),
        };
        let office = till::Till::enrol(&database, &hub.url(), "Office").await;
        Self { database, event, hub, network, settings, office }
    }

    fn ask(&self, seats: &[i32]) -> LeaseRequest {
        LeaseRequest { event_id: self.event, seats: Some(seats.to_vec()), sells_for_s: 3600, ..LeaseRequest::default() }
    }

    async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.database.pool()).await.expect("the test's database answers")
    }

    async fn close(self) {
        self.hub.stop().await;
        self.database.finish().await;
    }
}

async fn until(till: &Till, what: &str, so: impl FnMut(&Standing) -> bool) {
    let mut standing = till.standing();
    let seen = tokio::time::timeout(HUNG, standing.wait_for(so)).await;
    assert!(seen.is_ok(), "never: {what}");
}

fn sell(till: &Till, lease_id: Uuid, seats: &[i32]) -> Result<Vec<String>, SellError> {
    let seats: Vec<(i32, &str)> = seats.iter().map(|no| (*no, "adult")).collect();
    let wanted = Wanted { lease_id, seats: &seats, staff_id: Uuid::nil(), sold_at: "2026-11-30T19:00:00Z" };
    till.sell(&wanted).map(|sold| sold.tickets().map(|(_, ticket)| ticket.code.clone()).collect())
}

#[tokio::test]
async fn a_till_says_that_the_network_is_gone_sells_on_and_settles_when_it_is_back() {
    let house = House::open().await;
    let till = Till::begin(house.settings.clone()).await.unwrap();
    until(&till, "the hub is heard", |s| s.online).await;
    let lease = till.lease(&house.ask(&[0, 1, 2, 3]), None).await.unwrap();
    for weather in [Weather::Silent, Weather::Cut] {
        house.network.turns(weather);
        until(&till, "silence is told", |s| !s.online).await;
        house.network.turns(Weather::Calm);
        until(&till, "the hub is heard again", |s| s.online).await;
    }
    house.network.turns(Weather::Silent);
    until(&till, "silence is told", |s| !s.online).await;
    let codes = sell(&till, lease, &[1, 2]).unwrap();
    assert!(matches!(sell(&till, lease, &[2]), Err(SellError::SeatSold(2))));
    till.close(lease).unwrap();
    assert!(matches!(sell(&till, lease, &[3]), Err(SellError::NoLease)));
    let stands = till.standing().borrow().clone();
    assert_eq!((stands.unsettled, stands.to_report), (1, 1), "it is owed, and nothing is lost");
    assert_eq!(house.count("select count(*) from \"order\"").await, 0);
    house.network.turns(Weather::Calm);
    tokio::time::timeout(HUNG * 3, till.settled()).await.expect("all is told");
    let printed: i64 = sqlx::query_scalar("select count(*) from ticket where code = any($1) and state = 'valid'")
        .bind(&codes)
        .fetch_one(house.database.pool())
        .await
        .unwrap();
    assert_eq!(printed, 2, "what was printed is what lets in");
    assert_eq!(house.count("select count(*) from event_seat where status = 0").await, 18);
    till.end().await;
    house.close().await;
}

#[tokio::test]
async fn a_till_that_starts_again_sells_nothing_of_what_it_had_and_gives_it_back() {
    let house = House::open().await;
    let till = Till::begin(house.settings.clone()).await.unwrap();
    let lease = till.lease(&house.ask(&[0, 1, 2]), None).await.unwrap();
    house.network.turns(Weather::Cut);
    sell(&till, lease, &[0]).unwrap();
    till.end().await;
    // Without a network it begins from its journal, and knows what it owes.
    let again = Till::begin(house.settings.clone()).await.unwrap();
    assert!(again.leases().is_empty());
    assert!(matches!(sell(&again, lease, &[1]), Err(SellError::NoLease)));
    assert_eq!((again.standing().borrow().unsettled, again.standing().borrow().to_report), (1, 1));
    house.network.turns(Weather::Calm);
    tokio::time::timeout(HUNG * 3, again.settled()).await.expect("all is told");
    assert_eq!(house.count("select count(*) from event_seat where status = 2").await, 1);
    assert_eq!(house.count("select count(*) from event_seat where status = 0").await, 19);
    again.end().await;
    house.close().await;
}

#[tokio::test]
async fn a_lease_ends_selling_by_itself_when_its_time_is_over() {
    let house = House::open().await;
    let till = Till::begin(house.settings.clone()).await.unwrap();
    let lease = till.lease(&LeaseRequest { sells_for_s: 1, ..house.ask(&[0, 1]) }, None).await.unwrap();
    eventually("it sells no more", || async {
        sell(&till, lease, &[0, 0]).is_err_and(|e| !matches!(e, SellError::NotLeased(_))).then_some(())
    })
    .await;
    eventually("its seats are back", || async {
        (house.count("select count(*) from event_seat where status = 0").await == 20).then_some(())
    })
    .await;
    till.end().await;
    house.close().await;
}

#[tokio::test]
async fn a_copied_folder_tells_what_was_sold_and_gives_back_nothing_that_the_other_machine_sells() {
    let house = House::open().await;
    let till = Till::begin(house.settings.clone()).await.unwrap();
    let lease = till.lease(&house.ask(&[0, 1, 2]), None).await.unwrap();
    house.network.turns(Weather::Cut);
    sell(&till, lease, &[0]).unwrap();
    let mut copy = Settings { hub: house.hub.url(), ..house.settings.clone() };
    copy.folder = run().await.directory("till-copied");
    std::fs::copy(house.settings.folder.join("journal"), copy.folder.join("journal")).unwrap();

    // The copy hears the hub; the machine that it was made of does not, and goes on selling.
    let other = Till::begin(copy).await.unwrap();
    until(&other, "the lease is shown as strange", |s| s.copied && s.strange == [lease]).await;
    other.settled().await;
    assert_eq!(house.count("select count(*) from \"order\"").await, 1, "what was sold is told, by whoever can");
    assert_eq!(house.count("select count(*) from lease where ended_at is null").await, 1);
    let refused = other.lease(&house.ask(&[5]), None).await.unwrap_err();
    assert!(matches!(refused, LeaseError::NotTaken(TakeError::Copied)), "{refused:?}");
    assert!(matches!(other.close(lease), Err(CloseError::Copied)));
    other.end().await;

    let codes = sell(&till, lease, &[1]).unwrap();
    till.close(lease).unwrap();
    house.network.turns(Weather::Calm);
    tokio::time::timeout(HUNG * 3, till.settled()).await.expect("all is told");
    assert_eq!(till.standing().borrow().not_sold, [], "nobody took its seats away");
    assert_eq!(house.count("select count(*) from \"order\"").await, 2);
    let printed = sqlx::query_scalar("select count(*) from ticket where code = any($1) and state = 'valid'")
        .bind(&codes)
        .fetch_one(house.database.pool());
    assert_eq!(printed.await.ok(), Some(1_i64));
    till.end().await;
    house.close().await;
}

#[tokio::test]
async fn the_first_journal_needs_the_hub_and_a_lost_one_leaves_its_leases_to_people() {
    let mut house = House::open().await;
    house.network.turns(Weather::Cut);
    assert!(matches!(Till::begin(house.settings.clone()).await, Err(BeginError::FirstNeedsHub(_))));
    house.network.turns(Weather::Calm);
    let till = Till::begin(house.settings.clone()).await.unwrap();
    let lease = till.lease(&house.ask(&[0, 1]), None).await.unwrap();
    sell(&till, lease, &[0]).unwrap();
    eventually("it is settled", || async { (till.standing().borrow().unsettled == 0).then_some(()) }).await;
    house.network.turns(Weather::Cut);
    sell(&till, lease, &[1]).unwrap();
    till.end().await;

    // The disk is another one: what the first one sold last is known to nobody.
    house.settings.folder = run().await.directory("another-disk");
    house.network.turns(Weather::Calm);
    let other = Till::begin(house.settings.clone()).await.unwrap();
    until(&other, "the lease is shown as strange", |s| s.strange == [lease]).await;
    let own = other.lease(&house.ask(&[5, 6]), None).await.unwrap();
    sell(&other, own, &[5]).unwrap();
    other.close(own).unwrap();
    other.settled().await;
    assert_eq!(house.count("select count(*) from journal_entry where seq = 2").await, 1, "numbers go on");
    assert_eq!(house.count("select count(*) from event_seat where seat_no = 1 and lease_id is not null").await, 1);
    let path = format!("/api/staff/leases/{lease}/write-off");
    house.office.post(&path, serde_json::json!({ "reason": "its disk is lost" })).await.ok();
    other.end().await;
    house.close().await;
}

#[tokio::test]
async fn a_grant_whose_answer_got_lost_is_found_or_given_back() {
    let house = House::open().await;
    let till = Till::begin(house.settings.clone()).await.unwrap();
    assert!(matches!(till.lease(&house.ask(&[99]), None).await, Err(LeaseError::Refused(_))));
    // Each request arrives, and nobody hears of it: the wire falls silent as soon as the lease is there.
    let asking = tokio::spawn({
        let (till, ask) = (till.clone(), house.ask(&[0, 1]));
        async move { till.lease(&ask, None).await }
    });
    eventually("the hub has granted it", || async {
        let granted = house.count("select count(*) from lease").await == 1;
        if granted {
            house.network.turns(Weather::Cut);
        }
        granted.then_some(())
    })
    .await;
    let found = asking.await.unwrap();
    house.network.turns(Weather::Calm);
    if let Ok(lease) = &found {
        till.close(*lease).unwrap(); // the answer was faster
    }
    tokio::time::timeout(HUNG * 3, till.settled()).await.expect("it is given back");
    assert_eq!(house.count("select count(*) from lease where state = 'closed'").await, 1, "{found:?}");
    assert_eq!(house.count("select count(*) from event_seat where status = 0").await, 20);
    till.end().await;
    house.close().await;
}

fn cutting(seed: u64, fault: Option<Fault>) -> Cutting {
    let lasts = std::env::var("FULLHOUSE_CUTTING_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(8);
    let program = PathBuf::from(env!("CARGO_BIN_EXE_till"));
    Cutting { seed, lasts: Duration::from_secs(lasts), tills: 3, program, fault }
}

/// `FULLHOUSE_CUTTING_SECONDS`, `FULLHOUSE_CUTTING_SEED`: for longer, and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tills_never_sell_one_seat_whatever_is_cut() {
    let seed = std::env::var("FULLHOUSE_CUTTING_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    eprintln!("seed {seed}");
    let cut = cutting(seed, None).run().await;
    eprintln!("seed {seed}: {:?}", cut.figures);
    assert!(cut.broken.is_empty(), "seed {seed}: {:#?}", cut.broken);
    for what in ["sold without a network", "bought with a network", "kills", "changes of weather"] {
        assert!(cut.figures.get(what).is_some_and(|n| *n > 0), "seed {seed}: too little happened: {what}");
    }
    cut.database.finish().await;
}

/// The control: one evening may pass without harm, some in a row don't.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_that_go_back_by_time_are_found_by_the_same_books() {
    for seed in 7..12 {
        let cut = cutting(seed, Some(Fault::GivenBackByTime)).run().await;
        eprintln!("seed {seed}: {:?}, {} broken", cut.figures, cut.broken.len());
        cut.database.finish().await;
        if cut.broken.iter().any(|b| b.contains("LeaseClosed")) {
            return;
        }
    }
    panic!("nobody noticed");
}
