//! Who else is at a leased seat, or at its journal, in the same moment. Each race first happens to those who look and then
//! write, which is what lives here as the control; then it does not happen to us.

use std::sync::Arc;

use fullhouse::serve::Roles;
use fullhouse_tests::{database::Database, fan, hub::Hub, nats::Nats, rows::Rows, till::Till};
use futures_util::future::join_all;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::sync::Barrier;

use super::leases::{close, is_dead, lease, printed, sale, settle, write_off};

const ROUNDS: i32 = 20;

/// The control: both look, and then both write. Answers how many wrote.
pub async fn look_then_write(pool: &PgPool, prepare: &[&str], actors: [(&'static str, &'static str); 2]) -> usize {
    for statement in prepare {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
    let looked = Arc::new(Barrier::new(2));
    let acts = actors.map(|(look, write)| {
        let looked = looked.clone();
        async move {
            let may: bool = sqlx::query_scalar(look).fetch_one(pool).await.unwrap();
            looked.wait().await;
            if may {
                sqlx::query(write).execute(pool).await.unwrap();
            }
            may
        }
    });
    join_all(acts).await.into_iter().filter(|wrote| *wrote).count()
}

struct House {
    database: Database,
    event: i64,
    _nats: Nats,
    hub: Hub,
    /// Two hubs, one database: no lock of a process helps.
    other_hub: Hub,
    till: Till,
}

impl House {
    async fn open() -> Self {
        let database = Database::new().await;
        let event = Rows::new(ROUNDS, 4).open(database.pool()).await;
        let nats = Nats::start().await;
        let mut config = database.config().await;
        config.nats.url = nats.url();
        let hub = Hub::start(config.clone()).await;
        let roles = Roles { relay: false, workers: false, ..Roles::ALL };
        let other_hub = Hub::start_as(config, roles).await;
        let till = Till::enrol(&database, &hub.url(), "Window 1").await;
        Self { database, event, _nats: nats, hub, other_hub, till }
    }

    async fn close(self) {
        self.hub.stop().await;
        self.other_hub.stop().await;
        self.database.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_is_leased_or_held_by_somebody_else_never_both() {
    let house = House::open().await;
    let both = look_then_write(
        house.database.pool(),
        &["create table naive_seat (hold text, lease text)", "insert into naive_seat values (null, null)"],
        [
            ("select hold is null from naive_seat", "update naive_seat set lease = 'a till'"),
            ("select lease is null from naive_seat", "update naive_seat set hold = 'a fan'"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists");

    let fan = fan::many(&house.database, &house.other_hub.url(), 1).await.remove(0);
    let second = Till::enrol(&house.database, &house.other_hub.url(), "Window 2").await;
    let (mut leased, mut held) = (0, 0);
    for round in 0..ROUNDS {
        let seats: Vec<i32> = (round * 4..round * 4 + 2).collect();
        let ask = json!({ "event_id": house.event, "seats": seats, "sells_for_s": 60 });
        let (one, two, three) = tokio::join!(
            house.till.post("/api/box-office/leases", ask.clone()),
            second.post("/api/box-office/leases", ask),
            fan.hold_with(house.event, json!({ "seats": [seats[1]], "replace": true })),
        );
        let won = [&one, &two, &three].map(|answer| answer.status.is_success());
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{one:?} {two:?} {three:?}");
        leased += i32::from(!won[2]);
        held += i32::from(won[2]);
        for (till, answer) in [(&house.till, &one), (&second, &two)] {
            if answer.status.is_success() {
                close(till, &answer.body, 0, &[]).await.ok(); // a terminal may not have many
            }
        }
    }
    eprintln!("{leased} leased, {held} held");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_journal_and_the_closing_report_never_both_have_the_seat() {
    let house = House::open().await;
    let both = look_then_write(
        house.database.pool(),
        &["create table naive_lease (state text, sold bool)", "insert into naive_lease values ('open', false)"],
        [
            ("select not sold from naive_lease", "update naive_lease set state = 'closed'"),
            ("select state = 'open' from naive_lease", "update naive_lease set sold = true"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists");

    let journal = house.till.at(&house.other_hub.url());
    let (mut seq, mut late) = (1, 0);
    for round in 0..ROUNDS {
        let seats: Vec<i32> = (round * 4..round * 4 + 2).collect();
        let lease = lease(&house.till, house.event, &seats).await;
        let body = sale(&lease, seq, &seats[..1]);
        // A report that says nothing of the sale: what a till must not do, and what gives the hub the choice.
        let entries = [(seq, body.as_str())];
        let (settled, closed) = tokio::join!(settle(&journal, &entries), close(&house.till, &lease, seq - 1, &[]));
        let settled = settled.ok();
        let sold = settled["settled"][0]["outcome"]["sold"].is_object();
        if sold {
            assert_eq!(closed.code(), "journal_gap", "it knew of no sale {seq}");
            close(&house.till, &lease, seq, &seats[..1]).await.ok();
        }
        let returned = !sold && closed.ok()["returned"].as_array().unwrap().contains(&json!(seats[0]));
        assert_ne!(sold, returned, "{settled}");
        assert_eq!(is_dead(&house.till, house.event, printed(&lease, seats[0]).0).await, returned);
        late += i32::from(returned);
        seq += 1;
    }
    eprintln!("{late} of {ROUNDS} came late");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_off_and_a_journal_leave_one_code_that_lets_in() {
    let house = House::open().await;
    let both = look_then_write(
        house.database.pool(),
        &["create table naive_code (dead bool, sold bool)", "insert into naive_code values (false, false)"],
        [
            ("select not sold from naive_code", "update naive_code set dead = true"),
            ("select not dead from naive_code", "update naive_code set sold = true"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists: sold, with a code that lets nobody in");

    let office = Till::enrol(&house.database, &house.other_hub.url(), "Office").await;
    let mut after = 0;
    for round in 0..ROUNDS {
        let seats: Vec<i32> = (round * 4..round * 4 + 2).collect();
        let lease = lease(&house.till, house.event, &seats).await;
        let seq = u64::try_from(round).unwrap() + 1;
        let body = sale(&lease, seq, &seats[..1]);
        let entries = [(seq, body.as_str())];
        let (settled, ended) = tokio::join!(settle(&house.till, &entries), write_off(&office, &lease));
        let (settled, ended) = (settled.ok(), ended.ok());
        let sold: &Value = &settled["settled"][0]["outcome"]["sold"];
        let new_codes = sold["new_codes"] == true;
        assert!(sold.is_object(), "nobody has touched the seat since: {settled}");
        assert_eq!(new_codes, ended["returned"].as_array().unwrap().contains(&json!(seats[0])), "{settled} {ended}");
        let (ticket, code) = printed(&lease, seats[0]);
        assert_eq!(is_dead(&house.till, house.event, ticket).await, new_codes);
        let order = house.till.get(&format!("/api/staff/orders/{}", sold["order_id"].as_str().unwrap())).await.ok();
        let tickets = order["order"]["tickets"].as_array().unwrap().clone();
        assert_eq!((tickets.len(), tickets[0]["code"] == json!(code)), (1, !new_codes), "{order}");
        after += i32::from(new_codes);
    }
    eprintln!("{after} of {ROUNDS} came after the write-off");
    house.close().await;
}

/// The terminal comes back at the very moment at which a manager has given it up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_off_and_the_closing_report_have_one_winner_and_both_are_told_which() {
    let house = House::open().await;
    let both = look_then_write(
        house.database.pool(),
        &["create table naive_end (free bool, blocked bool)", "insert into naive_end values (false, false)"],
        [
            ("select not blocked from naive_end", "update naive_end set free = true"),
            ("select not free from naive_end", "update naive_end set blocked = true"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists: on sale again, and said to be a block");

    let office = Till::enrol(&house.database, &house.other_hub.url(), "Office").await;
    let (mut seq, mut written_off) = (0, 0);
    for round in 0..ROUNDS {
        let seats: Vec<i32> = (round * 4..round * 4 + 2).collect();
        let lease = lease(&house.till, house.event, &seats).await;
        seq += 1;
        let body = sale(&lease, seq, &seats[..1]);
        settle(&house.till, &[(seq, body.as_str())]).await.ok();
        let report = || close(&house.till, &lease, seq, &seats[..1]);
        // The first rounds are each order for itself, the others whichever comes first.
        let (closed, ended) = match round {
            0 => (report().await, write_off(&office, &lease).await),
            1 => {
                let ended = write_off(&office, &lease).await;
                (report().await, ended)
            }
            _ => tokio::join!(report(), write_off(&office, &lease)),
        };
        let closed = closed.ok();
        let given_up = closed["state"] == "written_off";
        assert_eq!(ended.status.is_success(), given_up, "{closed} {ended:?}");
        if given_up {
            assert_eq!(ended.ok(), closed, "both are told the same");
        } else {
            assert_eq!((ended.code(), &closed["state"]), ("lease_closed", &json!("closed")));
        }
        assert_eq!((&closed["sold"], &closed["returned"]), (&json!([seats[0]]), &json!([seats[1]])));
        let status = "select status from event_seat where seat_no = $1";
        let status: i16 = sqlx::query_scalar(status).bind(seats[1]).fetch_one(house.database.pool()).await.unwrap();
        assert_eq!(status, if given_up { 3 } else { 0 }, "{closed}");
        assert!(is_dead(&house.till, house.event, printed(&lease, seats[1]).0).await, "either way its code is dead");
        assert!(!is_dead(&house.till, house.event, printed(&lease, seats[0]).0).await, "and the sold one lives");
        assert!(round > 1 || given_up == (round == 1));
        written_off += i32::from(given_up);
    }
    eprintln!("{written_off} of {ROUNDS} were written off first");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_journals_with_one_number_one_is_settled_and_of_one_sent_twice_one_too() {
    let house = House::open().await;
    let both = look_then_write(
        house.database.pool(),
        &["create table naive_journal (seq int, seat int)"],
        [
            ("select not exists(select from naive_journal where seq = 1)", "insert into naive_journal values (1, 7)"),
            ("select not exists(select from naive_journal where seq = 1)", "insert into naive_journal values (1, 8)"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists: two sales with one number");

    // A journal that was put back from a copy sells under numbers that it has used; and a request that was given up on
    // arrives beside its own repetition.
    let copy = house.till.at(&house.other_hub.url());
    let lease = lease(&house.till, house.event, &(0..ROUNDS * 4).collect::<Vec<i32>>()).await;
    for round in 0..ROUNDS {
        let seq = u64::try_from(round).unwrap() * 2 + 1;
        let (one, two) = (sale(&lease, seq, &[round * 4]), sale(&lease, seq, &[round * 4 + 1]));
        let (one, two) = ([(seq, one.as_str())], [(seq, two.as_str())]);
        let (first, second) = tokio::join!(settle(&house.till, &one), settle(&copy, &two));
        let refused = [&first, &second].into_iter().find(|answer| !answer.status.is_success()).expect("one of them");
        assert_eq!(refused.code(), "journal_conflict");
        assert!(first.status.is_success() || second.status.is_success(), "{first:?} {second:?}");

        let again = sale(&lease, seq + 1, &[round * 4 + 2]);
        let again = [(seq + 1, again.as_str())];
        let (first, second) = tokio::join!(settle(&house.till, &again), settle(&copy, &again));
        let (first, second) = (first.ok(), second.ok());
        assert!(first["settled"][0]["outcome"]["sold"].is_object());
        assert_eq!(first["settled"], second["settled"]);
    }
    let orders: i64 =
        sqlx::query_scalar("select count(*) from \"order\"").fetch_one(house.database.pool()).await.unwrap();
    assert_eq!(orders, i64::from(ROUNDS) * 2);
    close(&house.till, &lease, u64::try_from(ROUNDS).unwrap() * 2, &[]).await.ok();
    house.close().await;
}
