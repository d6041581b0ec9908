//! Seats that wait until the others are sold, and go on sale by themselves then.

use chrono::TimeDelta;
use fullhouse::{box_office::until_sold::look, config::Config};
use fullhouse_tests::{
    desk::Desk,
    eventually,
    hub::Hub,
    nats::Nats,
    rows::Rows,
    scene::{Scene, seats},
    till::Till,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::task::JoinHandle;

use super::lease_races::look_then_write;

const STANDING: [i32; 6] = [6, 7, 8, 9, 10, 11];

/// Six seats, of which one is a wheelchair's place, and behind them six places to stand.
struct House {
    scene: Scene,
    clerk: Till,
    boss: Till,
}

impl House {
    async fn open() -> Self {
        // Nobody looks but the test.
        Self::with(|config| config.box_office.until_sold_look_s = 3600).await
    }

    async fn with(more: impl FnOnce(&mut Config)) -> Self {
        let mut flags: Vec<(i32, i16)> = STANDING.iter().map(|place| (*place, 8)).collect();
        flags.push((5, 1));
        let scene = Scene::without_webhooks(Rows { flags, ..Rows::new(2, 6) }, more).await;
        scene.run("update plan_seat set section = 'Standing' where seat_no > 5").await;
        let desk = Desk::open(&scene, "Window 2").await;
        let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
        let boss = desk.sign_in(&scene, "Bob", "supervisor").await;
        boss.post("/api/box-office/shifts", json!({ "float_minor": 100, "currency": "EUR" })).await.ok();
        Self { scene, clerk, boss }
    }

    fn path(&self, verb: &str) -> String {
        format!("/api/box-office/events/{}/{verb}", self.scene.event)
    }

    /// All places to stand wait.
    async fn wait(&self) -> Value {
        let body = json!({ "section": "Standing", "reason": "seats first" });
        self.boss.post(&self.path("until-sold"), body).await.ok()
    }

    async fn set(&self, verb: &str, seats: &[i32]) {
        let done = self.boss.post(&self.path(verb), json!({ "seats": seats, "reason": "a camera" })).await;
        assert!(done.status.is_success(), "{done:?}");
    }

    async fn sold(&self, seats: &[i32]) -> Value {
        let held = self.boss.hold(self.scene.event, seats).await.ok();
        self.boss.sell_for_cash(&held, 99_999).await.ok()["order"].clone()
    }

    async fn look(&self) -> usize {
        look(self.scene.database.pool()).await.expect("the database answers")
    }

    async fn standing(&self) -> Value {
        self.clerk.get(&self.path("until-sold")).await.ok()
    }

    async fn statuses(&self, seats: &[i32]) -> Vec<i16> {
        let mut found = Vec::new();
        for seat in seats {
            found.push(self.scene.status(*seat).await);
        }
        found
    }

    async fn close(self) {
        self.scene.database.no_invariant_is_broken().await;
        self.scene.close().await;
    }
}

fn of(rule: &Value, verb: &str) -> String {
    format!("/api/box-office/until-sold/{}/{verb}", rule["until_sold_id"].as_str().expect("an id"))
}

#[tokio::test]
async fn places_to_stand_go_on_sale_by_themselves_once_the_seats_are_sold() {
    let house = House::open().await;
    let House { scene, clerk, boss } = &house;
    let body = json!({ "section": "Standing", "reason": "seats first" });
    assert_eq!(clerk.post(&house.path("until-sold"), body.clone()).await.code(), "role_too_low");
    let made = boss.post_once(&house.path("until-sold"), "one", body.clone()).await.ok();
    assert_eq!((&made["seats"], &made["made_by"]), (&json!(STANDING), &json!("Bob at Window 2")));
    assert_eq!(boss.post_once(&house.path("until-sold"), "one", body).await.ok(), made);
    let other = json!({ "section": "Standing", "reason": "another" });
    assert_eq!(boss.post_once(&house.path("until-sold"), "one", other).await.code(), "idempotency_mismatch");
    assert_eq!(house.statuses(&STANDING).await, [3; 6]);
    assert_eq!(scene.fan().await.hold(scene.event, &[6]).await.code(), "seats_unavailable");
    assert_eq!(
        house.standing().await["left"],
        json!({ "free": 5, "held": 0 }),
        "the wheelchair's place is nobody's wait"
    );

    // A seat in somebody's basket may come back: it is waited for.
    house.sold(&[0, 1, 2]).await;
    let fan = scene.fan().await;
    fan.hold(scene.event, &[3]).await.ok();
    // One that waits for a customer under their name is spoken for.
    let until = scene.clock.now().await + TimeDelta::days(9);
    let aside = json!({ "event_id": scene.event, "seats": [4], "name": "Mr Babbage", "until": until });
    boss.post("/api/box-office/customer-holds", aside).await.ok();
    assert_eq!(house.standing().await["left"], json!({ "free": 0, "held": 1 }));
    assert_eq!(house.look().await, 0);
    scene.clock.advance(TimeDelta::hours(1)).await;
    assert_eq!(house.standing().await["left"], json!({ "free": 1, "held": 0 }), "its time is over");
    assert_eq!(house.look().await, 0);

    let last = house.sold(&[3]).await;
    assert_eq!(house.look().await, 1);
    assert_eq!(house.statuses(&STANDING).await, [0; 6]);
    let rule = house.standing().await["rules"][0].clone();
    assert_eq!((&rule["outcome"], &rule["opened"], &rule["seats"]), (&json!("sold_out"), &json!(6), &json!([])));
    let log = logged(scene).await;
    assert!(
        log.starts_with("All others are sold: 6 seats on sale that Bob at Window 2 had wait since")
            && log.ends_with("): Standing 2 1, Standing 2 2, Standing 2 3, Standing 2 4, Standing 2 5, Standing 2 6"),
        "{log}"
    );
    scene.fan().await.hold(scene.event, &[6]).await.ok();

    // A seat that comes back later takes nothing back.
    boss.refund(&last, "ill", seats(&[3], "on_sale")).await.ok();
    assert_eq!((house.look().await, scene.status(7).await), (0, 0));
    let story = clerk.get(&house.path("seats/7")).await.ok();
    let told: Vec<&Value> = story["notes"].as_array().expect("notes").iter().map(|note| &note["verb"]).collect();
    assert_eq!(told, ["unblock", "wait"]);
    assert_eq!(boss.post(&of(&made, "open"), json!({ "reason": "now" })).await.code(), "until_sold_over");
    house.close().await;
}

async fn logged(scene: &Scene) -> String {
    let found =
        "select detail from audit where verb = 'until_sold' and actor = 'until sold' and reason = 'seats first'";
    sqlx::query_scalar(found).fetch_one(scene.database.pool()).await.expect("one entry")
}

#[tokio::test]
async fn what_was_put_to_another_use_or_given_up_since_is_not_opened() {
    let house = House::open().await;
    let House { boss, .. } = &house;
    house.wait().await;
    house.set("kill", &[6]).await;
    house.set("block", &[7]).await;
    house.set("unblock", &[8]).await; // and another use of it
    house.set("block", &[8]).await;
    house.set("unblock", &[9]).await;
    let section = json!({ "section": "Standing", "reason": "all that is free" });
    let blocked = boss.post(&house.path("block"), section.clone()).await.ok();
    assert_eq!(blocked["changed"], json!([9]), "what waits is blocked, and goes on waiting");
    assert_eq!(house.standing().await["rules"][0]["seats"], json!([10, 11]));
    // A seat waits once, and not if it is given up.
    let again =
        async |seats: Value| boss.post(&house.path("until-sold"), json!({ "seats": seats, "reason": "more" })).await;
    assert_eq!(again(json!([10])).await.code(), "seats_in_use");
    assert_eq!(again(json!([6])).await.code(), "seats_dead");
    let second = again(json!([7])).await.ok();
    assert_eq!(second["seats"], json!([7]), "what is blocked may wait from now on");

    house.sold(&[0, 1, 2, 3]).await;
    house.sold(&[4]).await;
    assert_eq!(house.look().await, 2);
    assert_eq!(house.statuses(&STANDING).await, [3, 0, 3, 3, 0, 0]);
    house.close().await;
}

#[tokio::test]
async fn a_supervisor_puts_them_on_sale_before_or_leaves_them_blocked() {
    let house = House::open().await;
    let House { scene, clerk, boss } = &house;
    let why = json!({ "reason": "a long queue" });
    let rule = house.wait().await;
    assert_eq!(clerk.post(&of(&rule, "open"), why.clone()).await.code(), "role_too_low");
    assert_eq!(boss.post(&of(&rule, "open"), json!({ "reason": " " })).await.code(), "bad_request");
    let opened = boss.post(&of(&rule, "open"), why.clone()).await.ok();
    assert_eq!((&opened["outcome"], &opened["opened"]), (&json!("on_sale"), &json!(6)));
    assert_eq!(boss.post(&of(&rule, "open"), why.clone()).await.ok(), opened, "again: they are");
    let over = boss.post(&of(&rule, "drop"), why.clone()).await;
    assert_eq!((over.code(), &over.body["outcome"]), ("until_sold_over", &json!("on_sale")));
    assert_eq!(house.statuses(&STANDING).await, [0; 6]);

    let rule = house.wait().await;
    let dropped = boss.post(&of(&rule, "drop"), why.clone()).await.ok();
    assert_eq!(
        (&dropped["outcome"], &dropped["opened"], &dropped["ended_by"]),
        (&json!("dropped"), &json!(0), &json!("Bob at Window 2"))
    );
    house.sold(&[0, 1, 2, 3, 4]).await;
    assert_eq!(house.look().await, 0);
    assert_eq!(house.statuses(&STANDING).await, [3; 6]);
    let logged = "select count(*) from audit where staff_id is not null and reason = 'a long queue' \
                  and verb in ('seat_unblock', 'seat_block')";
    assert_eq!(scene.count(logged).await, 2);

    // There is nothing to wait for any more, and that is said; so is what can't be.
    let section = json!({ "section": "Standing", "reason": "late" });
    assert_eq!(boss.post(&house.path("until-sold"), section).await.code(), "nothing_left");
    for (body, code) in [
        (json!({ "seats": [], "reason": "r" }), "seats_empty"),
        (json!({ "seats": [6, 6], "reason": "r" }), "seats_repeated"),
        (json!({ "seats": [99], "reason": "r" }), "seat_unknown"),
        (json!({ "seats": [0], "reason": "r" }), "seats_in_use"),
        (json!({ "seats": [6], "section": "Standing", "reason": "r" }), "bad_request"),
        (json!({ "section": "Nowhere", "reason": "r" }), "section_unknown"),
        (json!({ "section": "Standing", "reason": "" }), "bad_request"),
    ] {
        assert_eq!(boss.post(&house.path("until-sold"), body.clone()).await.code(), code, "{body}");
    }
    let nobodys = json!({ "until_sold_id": uuid::Uuid::nil() });
    assert_eq!(boss.post(&of(&nobodys, "open"), why.clone()).await.code(), "until_sold_unknown");
    let kiosk = Till::enrol_as("kiosk", &scene.database, &scene.hub.url(), "Foyer").await;
    assert_eq!(kiosk.get(&house.path("until-sold")).await.code(), "forbidden");
    house.close().await;
}

#[tokio::test]
async fn nothing_opens_while_a_sale_stands_still_or_is_over() {
    let house = House::open().await;
    let House { scene, boss, .. } = &house;
    house.wait().await;
    house.sold(&[0, 1, 2, 3, 4]).await;
    scene.run("update event set sale_state = 'paused'").await;
    assert_eq!(house.look().await, 0);
    scene.run("update event set sale_state = 'open', on_sale_at = on_sale_at + interval '1 day'").await;
    assert_eq!(house.look().await, 0);
    scene.run("update event set on_sale_at = on_sale_at - interval '1 day'").await;
    let off = json!({ "reason": "rain" });
    scene.operator().await.post(&format!("/api/staff/events/{}/call-off", scene.event), off).await.ok();
    assert_eq!(house.look().await, 0);
    assert_eq!(house.statuses(&STANDING).await, [3; 6]);
    let more = json!({ "seats": [5], "reason": "r" });
    assert_eq!(boss.post(&house.path("until-sold"), more).await.code(), "event_cancelled");

    let event = Rows::new(1, 3).open(scene.database.pool()).await;
    let path = format!("/api/box-office/events/{event}/until-sold");
    boss.post(&path, json!({ "seats": [1, 2], "reason": "r" })).await.ok();
    let held = boss.hold(event, &[0]).await.ok();
    boss.sell_for_cash(&held, 99_999).await.ok();
    scene.clock.advance(TimeDelta::days(30)).await;
    assert_eq!(house.look().await, 0, "the sale is over");
    house.close().await;
}

#[tokio::test]
async fn the_schema_lets_no_seat_wait_in_vain() {
    let house = House::open().await;
    let rule = house.wait().await;
    let pool = house.scene.database.pool();
    let id = rule["until_sold_id"].as_str().expect("an id");
    let end = format!(
        "update until_sold set ended_at = now(), ended_by = 'x', outcome = 'dropped', seats_opened = 0 where id = '{id}'"
    );
    for (sql, constraint) in [
        ("update event_seat set status = 0 where seat_no = 6".to_owned(), "seat_waiting_is_blocked"),
        (
            format!("update event_seat set status = 3, until_sold_id = '{}' where seat_no = 0", uuid::Uuid::nil()),
            "seat_waits_for_a_rule",
        ),
        (end.clone(), "until_sold_ends_once"),
    ] {
        let refused = sqlx::query(&sql).execute(pool).await.expect_err("not so");
        assert_eq!(fullhouse::db::constraint(&refused), Some(constraint), "{sql}");
    }
    house.boss.post(&of(&rule, "drop"), json!({ "reason": "r" })).await.ok();
    let refused = sqlx::query(&end).execute(pool).await.expect_err("not so");
    assert_eq!(fullhouse::db::constraint(&refused), Some("until_sold_ends_once"));
    house.close().await;
}

/// An event whose one seat on sale is sold, and whose others wait for that.
async fn all_but_those(house: &House) -> (i64, Value) {
    let event = Rows::new(1, 3).open(house.scene.database.pool()).await;
    let path = format!("/api/box-office/events/{event}/until-sold");
    house.boss.post(&path, json!({ "seats": [1, 2], "reason": "seats first" })).await.ok();
    let held = house.boss.hold(event, &[0]).await.ok();
    (event, house.boss.sell_for_cash(&held, 99_999).await.ok()["order"].clone())
}

#[tokio::test]
async fn an_event_that_fails_keeps_no_other_one_waiting() {
    let house = House::open().await;
    let (first, _) = all_but_those(&house).await;
    let (second, _) = all_but_those(&house).await;
    assert!(first < second, "looked at in this order");
    let scene = &house.scene;
    scene.run("create function broken() returns trigger language plpgsql as $$ begin raise 'broken'; end $$").await;
    scene
        .run(&format!(
            "create trigger broken before update on until_sold for each row when (new.event_id = {first})
             execute function broken()"
        ))
        .await;
    assert_eq!(house.look().await, 1);
    let pool = scene.database.pool();
    assert_eq!((version(pool, first, 1).await.0, version(pool, second, 1).await.0), (3, 0));
    scene.run("drop trigger broken on until_sold").await;
    assert_eq!(house.look().await, 1, "the next round opens it");
    house.close().await;
}

#[tokio::test]
async fn all_rules_of_an_event_end_at_once_however_many_there_are() {
    let house = House::open().await;
    let scene = &house.scene;
    let event = Rows::new(1, 105).open(scene.database.pool()).await;
    let path = format!("/api/box-office/events/{event}/until-sold");
    for seat in 2..105 {
        house.boss.post(&path, json!({ "seats": [seat], "reason": "one at a time" })).await.ok();
    }
    let held = house.boss.hold(event, &[0, 1]).await.ok();
    house.boss.sell_for_cash(&held, 99_999).await.ok();
    assert_eq!(house.look().await, 103);
    house.close().await;
}

/// Until so many wait for this event's lock.
async fn in_line(pool: &PgPool, event: i64, count: i64) {
    eventually("they wait for the event", || async {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted and objid = $1::bigint::oid
               and database = (select oid from pg_database where datname = current_database())",
        )
        .bind(event)
        .fetch_one(pool)
        .await
        .expect("the database answers");
        (waiting == count).then_some(())
    })
    .await;
}

async fn version(pool: &PgPool, event: i64, seat: i32) -> (i16, i32) {
    sqlx::query_as("select status, version from event_seat where event_id = $1 and seat_no = $2")
        .bind(event)
        .bind(seat)
        .fetch_one(pool)
        .await
        .expect("a seat")
}

/// The control: what was seen without the lock is believed.
fn look_and_believe(pool: PgPool, event: i64) -> JoinHandle<()> {
    tokio::spawn(async move {
        let left = "select count(*) from event_seat where event_id = $1 and status in (0, 1)";
        let left: i64 = sqlx::query_scalar(left).bind(event).fetch_one(&pool).await.unwrap();
        let mut tx = fullhouse::db::event_tx(&pool, event).await.unwrap();
        let open = "update event_seat set status = 0, until_sold_id = null, version = version + 1
                    where event_id = $1 and status = 3 and $2::bigint = 0";
        sqlx::query(open).bind(event).bind(left).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    })
}

/// A seat is given back in the moment in which nothing seemed left: whoever comes first at the event has it, and what was
/// seen before that does not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_that_comes_back_in_that_moment_keeps_the_others_waiting() {
    let house = House::open().await;
    let House { scene, boss, .. } = &house;
    let pool = scene.database.pool();
    for (first, believes) in [("refund", true), ("refund", false), ("look", false)] {
        let (event, order) = all_but_those(&house).await;
        let gate = fullhouse::db::event_tx(pool, event).await.expect("the event's lock");
        let (boss, sold) = (boss.clone(), order.clone());
        let refund = async move { boss.refund(&sold, "ill", seats(&[0], "on_sale")).await.ok() };
        let looking = |pool: PgPool| match believes {
            true => look_and_believe(pool, event),
            false => tokio::spawn(async move {
                look(&pool).await.expect("the database answers");
            }),
        };
        let (refund, looking) = if first == "refund" {
            let refund = tokio::spawn(refund);
            in_line(pool, event, 1).await;
            (refund, looking(pool.clone()))
        } else {
            let looking = looking(pool.clone());
            in_line(pool, event, 1).await;
            (tokio::spawn(refund), looking)
        };
        in_line(pool, event, 2).await;
        gate.rollback().await.expect("it is let go");
        refund.await.expect("it is given back");
        looking.await.expect("it looked");
        let opened = version(pool, event, 1).await.0 == 0;
        assert_eq!(version(pool, event, 0).await.0, 0, "the seat came back");
        assert_eq!(opened, believes || first == "look", "{first} first, believed {believes}");
        if believes {
            // The race exists: they are on sale, and a seat is left. (The control wrote no end of the rule.)
            sqlx::query("update event set sale_state = 'paused' where id = $1")
                .bind(event)
                .execute(pool)
                .await
                .unwrap();
        } else if first == "refund" {
            let held = house.boss.hold(event, &[0]).await.ok();
            house.boss.sell_for_cash(&held, 99_999).await.ok();
            assert_eq!(house.look().await, 1, "sold again");
        }
    }
    house.close().await;
}

/// Two hubs notice at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_hub_notices_first_opens_them_once_and_every_map_hears_of_it() {
    let nats = Nats::start().await;
    let house = House::with(|config| {
        config.nats.url = nats.url();
        config.box_office.until_sold_look_s = 3600;
    })
    .await;
    let scene = &house.scene;
    let pool = scene.database.pool();
    let mut config = scene.database.config().await;
    config.nats.url = nats.url();
    config.box_office.until_sold_look_s = 3600;
    let other_hub = Hub::start(config.clone()).await;

    let both = look_then_write(
        pool,
        &["create table naive_rule (ended text)", "insert into naive_rule values (null)"],
        [
            ("select ended is null from naive_rule", "update naive_rule set ended = 'by one hub'"),
            ("select ended is null from naive_rule", "update naive_rule set ended = 'by the other'"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists");

    let (event, _) = all_but_those(&house).await;
    let gate = fullhouse::db::event_tx(pool, event).await.expect("the event's lock");
    let looking = [&scene.hub, &other_hub].map(|hub| {
        let pool = hub.parts().pool.clone();
        tokio::spawn(async move { look(&pool).await.expect("the database answers") })
    });
    in_line(pool, event, 2).await; // both have seen that nothing is left
    gate.rollback().await.expect("it is let go");
    let mut ended = 0;
    for looked in looking {
        ended += looked.await.expect("it looked");
    }
    assert_eq!(ended, 1);
    assert_eq!(version(pool, event, 1).await, (0, 3), "blocked, and on sale: changed twice");
    assert_eq!(scene.count("select count(*) from audit where verb = 'until_sold'").await, 1);
    scene.fan().await.at(&other_hub.url()).hold(event, &[2]).await.ok();
    other_hub.stop().await;

    // And with nobody's help: a hub looks by itself.
    config.box_office.until_sold_look_s = 1;
    let third = Hub::start(config).await;
    let (event, _) = all_but_those(&house).await;
    let fan = scene.fan().await.at(&third.url());
    eventually("it is open on maps", || async {
        let page = fan.get(&format!("/api/events/{event}?seats=none")).await.ok();
        (page["event"]["seats_available"] == 2).then_some(())
    })
    .await;
    third.stop().await;
    house.close().await;
}
