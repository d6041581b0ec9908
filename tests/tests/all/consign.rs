//! Consignment: seats that a partner sells elsewhere until a cut-off, what it reports, and what it owes.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_tests::{
    desk::Desk,
    fan::Answer,
    rows::Rows,
    scene::{Scene, seats},
    till::Till,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::lease_races::look_then_write;

const PARTNERS: &str = "/api/box-office/partners";
const CONSIGN: &str = "/api/box-office/consignments";

struct House {
    scene: Scene,
    clerk: Till,
    boss: Till,
    partner: Value,
    /// Three hours from the start.
    cut_off: DateTime<Utc>,
}

impl House {
    async fn open() -> Self {
        // Seat 21 is a wheelchair place.
        let scene = Scene::without_webhooks(Rows { flags: vec![(21, 1)], ..Rows::new(3, 20) }, |_| {}).await;
        let desk = Desk::open(&scene, "Window 2").await;
        let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
        let boss = desk.sign_in(&scene, "Bob", "supervisor").await;
        let partner =
            boss.post(PARTNERS, json!({ "code": "atlas", "name": "Atlas Travel", "contact": "020 7946" })).await;
        let cut_off = scene.clock.now().await + TimeDelta::hours(3);
        Self { scene, clerk, boss, partner: partner.ok(), cut_off }
    }

    fn asked(&self, seats: &[i32]) -> Value {
        json!({
            "event_id": self.scene.event, "partner_id": self.partner["partner_id"], "seats": seats, "until": self.cut_off,
            "note": "their spring tour",
        })
    }

    async fn consigned(&self, seats: &[i32]) -> Value {
        self.boss.post(CONSIGN, self.asked(seats)).await.ok()
    }

    async fn consigned_until(&self, seats: &[i32], until: DateTime<Utc>) -> Value {
        let mut asked = self.asked(seats);
        asked["until"] = json!(until);
        self.boss.post(CONSIGN, asked).await.ok()
    }

    async fn sell(&self, consignment: &Value, key: &str, seats: &[i32]) -> Answer {
        self.clerk.post_once(&of(consignment, "sales"), key, json!({ "seats": seats })).await
    }

    async fn statement(&self) -> Value {
        let id = self.partner["partner_id"].as_str().expect("an id");
        self.clerk.get(&format!("{PARTNERS}/{id}/statement?event_id={}", self.scene.event)).await.ok()
    }

    async fn pay(&self, key: &str, amount: i64, way: &str) -> Answer {
        self.account(&self.clerk, "payments", key, amount, way).await
    }

    /// The house does.
    async fn pay_back(&self, key: &str, amount: i64, way: &str) -> Answer {
        self.account(&self.boss, "repayments", key, amount, way).await
    }

    async fn account(&self, till: &Till, what: &str, key: &str, amount: i64, way: &str) -> Answer {
        let path = format!("{PARTNERS}/{}/{what}", self.partner["partner_id"].as_str().expect("an id"));
        let body =
            json!({ "event_id": self.scene.event, "amount_minor": amount, "way": way, "reference": "invoice 7" });
        till.post_once(&path, key, body).await
    }

    async fn close(self) {
        self.scene.database.no_invariant_is_broken().await;
        self.scene.close().await;
    }
}

fn of(consignment: &Value, verb: &str) -> String {
    format!("{CONSIGN}/{}/{verb}", consignment["consignment_id"].as_str().expect("an id"))
}

#[tokio::test]
async fn seats_become_a_partners_and_nobody_elses_until_the_cut_off() {
    let house = House::open().await;
    let House { scene, clerk, boss, .. } = &house;
    assert_eq!(house.partner["code"], "ATLAS");
    assert_eq!(clerk.post(CONSIGN, house.asked(&[0])).await.code(), "role_too_low");
    let made = boss.post_once(CONSIGN, "one", house.asked(&[0, 1, 2, 3, 4, 5, 6, 7])).await.ok();
    assert_eq!(
        (&made["open"], &made["partner_name"], &made["made_by"]),
        (&json!([0, 1, 2, 3, 4, 5, 6, 7]), &json!("Atlas Travel"), &json!("Bob at Window 2"))
    );
    assert_eq!(boss.post_once(CONSIGN, "one", house.asked(&[0, 1, 2, 3, 4, 5, 6, 7])).await.ok(), made);
    assert_eq!(boss.post_once(CONSIGN, "one", house.asked(&[0, 1])).await.code(), "idempotency_mismatch");

    // Nobody has them: not a fan, not a counter, not another partner, not the house.
    assert_eq!(scene.fan().await.hold(scene.event, &[0]).await.code(), "seats_unavailable");
    assert_eq!(clerk.hold(scene.event, &[1]).await.code(), "seats_unavailable");
    let twice = boss.post(CONSIGN, house.asked(&[7, 8])).await;
    assert_eq!((twice.code(), &twice.body["lost"]), ("seats_unavailable", &json!([7])));
    let block = json!({ "seats": [2], "reason": "a camera" });
    assert_eq!(boss.post(&format!("/api/box-office/events/{}/block", scene.event), block).await.code(), "seats_in_use");
    let lease = json!({ "event_id": scene.event, "seats": [3], "sells_for_s": 60 });
    assert_eq!(clerk.post("/api/box-office/leases", lease).await.code(), "seats_unavailable");
    // Nor whoever knows the ids of its hold.
    let (hold, buyer): (Uuid, Uuid) = sqlx::query_as("select id, buyer_id from hold where state = 'live'")
        .fetch_one(scene.database.pool())
        .await
        .expect("one hold");
    let sale = json!({ "hold_id": hold, "buyer_id": buyer, "tender": { "kind": "cash", "received_minor": 99_999 } });
    assert_eq!(clerk.post("/api/box-office/sales", sale).await.code(), "hold_unknown");
    let ordered = sqlx::query(
        r#"insert into "order" (id, code, event_id, buyer_id, hold_id, currency, total_minor, channel, actor, created_at)
           values (gen_random_uuid(), 'X', $1, $2, $3, 'EUR', 0, 'counter', 'a', now())"#,
    );
    let refused =
        ordered.bind(scene.event).bind(buyer).bind(hold).execute(scene.database.pool()).await.expect_err("not so");
    assert_eq!(fullhouse::db::constraint(&refused), Some("consignment_is_not_ordered"));

    let told = clerk.get(&format!("/api/box-office/events/{}/seats/0", scene.event)).await.ok();
    assert_eq!((&told["status"], &told["held_by"]), (&json!("held"), &json!("Atlas Travel")));
    assert_eq!(told["consigned"]["note"], "their spring tour");

    // What the partner gives back is on sale at once, and the rest at the cut-off, with nobody's help.
    let returns = of(&made, "returns");
    let some = json!({ "seats": [6, 7], "reason": "a smaller group" });
    let back = clerk.post(&returns, some.clone()).await.ok();
    assert_eq!((&back["open"], &back["returned"]), (&json!([0, 1, 2, 3, 4, 5]), &json!([6, 7])));
    assert_eq!(clerk.post(&returns, some).await.ok(), back, "they are back already");
    scene.fan().await.hold(scene.event, &[6, 7]).await.ok();
    let gone = clerk.post(&returns, json!({ "seats": [5, 6], "reason": "more" })).await;
    assert_eq!((gone.code(), &gone.body["seats"]), ("seats_not_consigned", &json!([6])));
    assert_eq!(house.sell(&made, "late", &[6]).await.code(), "seats_not_consigned");
    scene.clock.advance(TimeDelta::hours(3)).await;
    let over = house.sell(&made, "later", &[0]).await;
    assert_eq!(over.code(), "consignment_over");
    assert_eq!(clerk.post(&returns, json!({ "reason": "all" })).await.code(), "consignment_over");
    scene.fan().await.hold(scene.event, &[0, 1]).await.ok();
    let listed = clerk.get(&format!("/api/box-office/events/{}/consignments", scene.event)).await.ok();
    let stands = &listed["consignments"][0];
    assert_eq!((&stands["open"], &stands["returned"]), (&json!([]), &json!([0, 1, 2, 3, 4, 5, 6, 7])));
    house.close().await;
}

#[tokio::test]
async fn a_section_is_consigned_without_the_places_that_others_need() {
    let house = House::open().await;
    let House { scene, boss, clerk, .. } = &house;
    clerk.hold(scene.event, &[0]).await.ok();
    let mut asked = house.asked(&[]);
    asked["section"] = json!("Stalls");
    asked["count"] = json!(3);
    assert_eq!(boss.post(CONSIGN, asked.clone()).await.ok()["open"], json!([1, 2, 3]));
    asked["count"] = json!(57);
    let few = boss.post(CONSIGN, asked.clone()).await;
    assert_eq!((few.code(), &few.body["free"]), ("seats_unavailable", &json!(55)));
    asked.as_object_mut().expect("an object").remove("count");
    let all = boss.post(CONSIGN, asked.clone()).await.ok();
    assert_eq!(all["open"].as_array().map(Vec::len), Some(55));
    assert!(!all["open"].as_array().expect("seats").contains(&json!(21)), "the wheelchair place stays");
    assert_eq!(boss.post(CONSIGN, asked).await.code(), "seats_unavailable", "none is free");
    house.close().await;
}

#[tokio::test]
async fn what_a_partner_sold_is_an_order_that_it_owes_for_and_pays() {
    let house = House::open().await;
    let House { scene, clerk, boss, .. } = &house;
    let made = house.consigned(&(0..10).collect::<Vec<i32>>()).await;
    let sold = house.sell(&made, "report", &[0, 1, 2, 3, 4, 5, 6]).await.ok(); // more than one buyer may have
    let order = &sold["order"];
    assert_eq!((&order["state"], &order["total_minor"]), (&json!("confirmed"), &json!(7 * 4500)));
    assert_eq!(order["tickets"].as_array().map(Vec::len), Some(7));
    assert_eq!(
        (&sold["consignment"]["open"], &sold["consignment"]["sold"]),
        (&json!([7, 8, 9]), &json!([0, 1, 2, 3, 4, 5, 6]))
    );
    assert_eq!(house.sell(&made, "report", &[0, 1, 2, 3, 4, 5, 6]).await.ok()["order"]["id"], order["id"]);
    assert_eq!(house.sell(&made, "report", &[7]).await.code(), "idempotency_mismatch");
    let again = house.sell(&made, "another", &[6, 7]).await;
    assert_eq!((again.code(), &again.body["seats"]), ("seats_not_consigned", &json!([6])));
    assert_eq!(scene.status(6).await, 2);

    // It is found by the partner's name, waits to be printed under it, and its tickets are on paper as any.
    let found = clerk.get("/api/staff/orders?q=atlas").await.ok();
    assert_eq!(
        (&found["orders"][0]["code"], &found["orders"][0]["buyer_name"]),
        (&order["code"], &json!("Atlas Travel"))
    );
    let waiting = clerk.get(&format!("/api/box-office/events/{}/will-call", scene.event)).await.ok();
    assert_eq!(waiting["orders"][0]["buyer_name"], "Atlas Travel");
    let prints = format!("/api/box-office/events/{}/will-call/prints", scene.event);
    let printed = clerk.post(&prints, json!({ "order_ids": [order["id"]] })).await.ok();
    assert_eq!(printed["orders"][0]["jobs"].as_array().map(Vec::len), Some(7));

    // What goes back goes to the account, and its seat on sale; the partner's own is not the drawer's.
    boss.post("/api/box-office/shifts", json!({ "float_minor": 100, "currency": "EUR" })).await.ok();
    boss.refund(order, "ill", seats(&[0], "on_sale")).await.ok();
    let x = clerk.get("/api/box-office/shifts/current").await.ok();
    assert_eq!(x["expected_minor"], 100, "nothing was handed over");
    let stands = house.statement().await;
    let minor = |name: &str| stands[name].as_i64().expect("an amount");
    assert_eq!(
        [minor("consigned_seats"), minor("open_seats"), minor("sold_seats"), minor("returned_seats")],
        [10, 3, 7, 0]
    );
    assert_eq!(
        [minor("sold_minor"), minor("back_minor"), minor("paid_minor"), minor("owed_minor")],
        [31_500, 4_500, 0, 27_000]
    );
    assert_eq!(stands["orders"][0]["seats"], json!([0, 1, 2, 3, 4, 5, 6]));

    let more = house.pay("more", 27_001, "transfer").await;
    assert_eq!((more.code(), &more.body["owed_minor"]), ("owes_less", &json!(27_000)));
    for _ in 0..2 {
        assert_eq!(house.pay("first", 20_000, "transfer").await.ok()["owed_minor"], 7_000);
    }
    assert_eq!(house.pay("first", 20_001, "transfer").await.code(), "idempotency_mismatch");
    let settled = house.pay("second", 7_000, "cash").await.ok();
    assert_eq!((&settled["owed_minor"], settled["payments"].as_array().map(Vec::len)), (&json!(0), Some(2)));
    let x = clerk.get("/api/box-office/shifts/current").await.ok();
    assert_eq!(
        (&x["expected_minor"], &x["moves"][0]["reason"]),
        (&json!(7_100), &json!("ATLAS Atlas Travel: invoice 7"))
    );
    let verbs = "select count(*) from audit where staff_id is not null
                 and verb in ('partner_add', 'consign', 'sale_account', 'partner_pay')";
    assert_eq!(scene.count(verbs).await, 5);
    house.close().await;
}

#[tokio::test]
async fn what_was_paid_too_much_is_paid_back_once_and_not_more() {
    let house = House::open().await;
    let House { scene, clerk, boss, .. } = &house;
    boss.post("/api/box-office/shifts", json!({ "float_minor": 2_000, "currency": "EUR" })).await.ok();
    let made = house.consigned(&[0, 1, 2]).await;
    let order = house.sell(&made, "report", &[0, 1, 2]).await.ok()["order"].clone();
    house.pay("all", 13_500, "transfer").await.ok();
    let early = house.pay_back("early", 1, "transfer").await;
    assert_eq!((early.code(), &early.body["owed_minor"]), ("owes_less", &json!(0)));
    boss.refund(&order, "ill", seats(&[0, 1], "on_sale")).await.ok();
    assert_eq!(house.statement().await["owed_minor"], -9_000);
    assert_eq!(house.pay("more", 1, "transfer").await.code(), "owes_less");

    assert_eq!(house.account(clerk, "repayments", "no", 1, "transfer").await.code(), "role_too_low");
    assert_eq!(house.pay_back("none", 0, "transfer").await.code(), "bad_request");
    assert_eq!(house.pay_back("more", 9_001, "transfer").await.code(), "owes_less");
    let short = house.pay_back("short", 2_001, "cash").await;
    assert_eq!((short.code(), &short.body["expected_minor"]), ("drawer_short", &json!(2_000)));
    for _ in 0..2 {
        assert_eq!(house.pay_back("first", 8_000, "transfer").await.ok()["owed_minor"], -1_000);
    }
    assert_eq!(house.account(boss, "payments", "first", 8_000, "transfer").await.code(), "idempotency_mismatch");
    let settled = house.pay_back("second", 1_000, "cash").await.ok();
    assert_eq!((&settled["owed_minor"], &settled["paid_minor"]), (&json!(0), &json!(4_500)));
    assert_eq!(settled["payments"][0]["amount_minor"], -1_000);
    let x = clerk.get("/api/box-office/shifts/current").await.ok();
    assert_eq!((&x["expected_minor"], &x["moves"][0]["kind"]), (&json!(1_000), &json!("pay_out")));
    let logged = "select count(*) from audit where verb = 'partner_repay' and staff_id is not null";
    assert_eq!(scene.count(logged).await, 2);

    // Two at once pay it back once.
    boss.refund(&order, "ill-too", seats(&[2], "on_sale")).await.ok();
    let (a, b) = tokio::join!(house.pay_back("a", 4_500, "transfer"), house.pay_back("b", 4_500, "transfer"));
    let done = [&a, &b].iter().filter(|answer| answer.status == StatusCode::OK).count();
    assert_eq!(done, 1, "{a:?} {b:?}");
    assert_eq!(house.statement().await["owed_minor"], 0);
    house.close().await;
}

#[tokio::test]
async fn an_order_on_account_is_exchanged_at_home_and_given_back_when_the_evening_is_called_off() {
    let house = House::open().await;
    let House { scene, boss, .. } = &house;
    let made = house.consigned(&[0, 1, 2]).await;
    let order = house.sell(&made, "report", &[0, 1]).await.ok()["order"].clone();
    let exchange = format!("/api/staff/orders/{}/exchange", order["id"].as_str().expect("an id"));
    let pairs = json!([{ "from": 0, "to": 10 }]);
    boss.post(&exchange, json!({ "seats": pairs, "reason": "beside a friend" })).await.ok();
    assert_eq!(house.statement().await["owed_minor"], 9_000);
    let other = Rows::new(1, 4).open(scene.database.pool()).await;
    let pairs = json!([{ "from": 1, "to": 0 }]);
    let away = json!({ "event_id": other, "seats": pairs, "reason": "another evening" });
    assert_eq!(boss.post(&exchange, away).await.code(), "order_on_account");
    let offer = json!({ "event_id": other, "seats": pairs });
    assert_eq!(boss.post(&format!("{exchange}-offer"), offer).await.code(), "order_on_account");

    let off = json!({ "reason": "rain" });
    let path = format!("/api/staff/events/{}/call-off", scene.event);
    scene.operator().await.post(&path, off).await.ok();
    fullhouse_tests::eventually("it is given back", || async {
        (house.statement().await["owed_minor"] == 0).then_some(())
    })
    .await;
    assert_eq!(house.sell(&made, "too-late", &[2]).await.code(), "seats_not_consigned", "nobody sells any more");
    assert_eq!(boss.post(CONSIGN, house.asked(&[15])).await.code(), "event_cancelled");
    house.close().await;
}

#[tokio::test]
async fn what_is_no_consignment_is_refused_and_changes_nothing() {
    let house = House::open().await;
    let House { scene, clerk, boss, cut_off, .. } = &house;
    for (change, code) in [
        (json!({ "seats": [] }), "seats_empty"),
        (json!({ "seats": [1, 1] }), "seats_repeated"),
        (json!({ "seats": [1, 99] }), "seat_unknown"),
        (json!({ "seats": (0..2_001).collect::<Vec<i32>>() }), "seats_too_many"),
        (json!({ "section": "Stalls" }), "bad_request"),
        (json!({ "seats": [], "section": "Nowhere" }), "section_unknown"),
        (json!({ "seats": [], "section": "Stalls", "count": 0 }), "seats_empty"),
        (json!({ "seats": [], "section": "Stalls", "count": 2_001 }), "seats_too_many"),
        (json!({ "count": 1 }), "bad_request"),
        (json!({ "note": " " }), "bad_request"),
        (json!({ "note": "\u{200b}" }), "bad_request"),
        (json!({ "note": "x".repeat(501) }), "bad_request"),
        (json!({ "event_id": 999 }), "event_unknown"),
        (json!({ "partner_id": Uuid::nil() }), "partner_unknown"),
        (json!({ "until": *cut_off - TimeDelta::hours(3) }), "until_invalid"),
        (json!({ "until": *cut_off + TimeDelta::days(31) }), "until_invalid"), // the sale ends in 30 days
        (json!({ "more": 1 }), "json_invalid"),
    ] {
        let mut asked = house.asked(&[1]);
        asked.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        assert_eq!(boss.post(CONSIGN, asked).await.code(), code, "{change}");
    }
    for (partner, code) in [
        (json!({ "code": "", "name": "B" }), "bad_request"),
        (json!({ "code": "a b", "name": "B" }), "bad_request"),
        (json!({ "code": "X".repeat(21), "name": "B" }), "bad_request"),
        (json!({ "code": "B", "name": " " }), "bad_request"),
        (json!({ "code": "B", "name": "a\u{7}" }), "bad_request"),
        (json!({ "code": "B", "name": "\u{200b}\u{2060}" }), "bad_request"), // nobody would see whom they pay
        (json!({ "code": "B", "name": "B", "contact": "x".repeat(201) }), "bad_request"),
        (json!({ "code": "Atlas", "name": "Another" }), "name_taken"),
    ] {
        assert_eq!(boss.post(PARTNERS, partner.clone()).await.code(), code, "{partner}");
    }
    assert_eq!(clerk.post(PARTNERS, json!({ "code": "B", "name": "B" })).await.code(), "role_too_low");
    assert_eq!(scene.count("select count(*) from hold").await + scene.count("select count(*) from partner").await, 1);

    let made = house.consigned(&[0, 1]).await;
    let nobodys = json!({ "consignment_id": Uuid::nil() });
    assert_eq!(house.sell(&nobodys, "k", &[0]).await.code(), "consignment_unknown");
    assert_eq!(clerk.get(&format!("{PARTNERS}/{}/statement?event_id=1", Uuid::nil())).await.code(), "partner_unknown");
    assert_eq!(house.sell(&made, "k", &[]).await.code(), "seats_empty");
    let student = json!({ "seats": [0], "tickets": [{ "seat_no": 0, "ticket_type": "student" }] });
    assert_eq!(clerk.post(&of(&made, "sales"), student).await.code(), "ticket_type_unknown");
    assert_eq!(house.pay("k", 0, "transfer").await.code(), "bad_request");
    assert_eq!(house.pay("k", 1, "transfer").await.code(), "owes_less");
    house.sell(&made, "sold", &[0]).await.ok();
    let unseen = json!({ "event_id": scene.event, "amount_minor": 1, "way": "transfer", "reference": "\u{200b}" });
    let path = format!("{PARTNERS}/{}/payments", house.partner["partner_id"].as_str().expect("an id"));
    assert_eq!(clerk.post(&path, unseen).await.code(), "bad_request");
    assert_eq!(house.pay("k", 4_500, "cash").await.code(), "shift_required");
    assert_eq!(house.statement().await["owed_minor"], 4_500);
    // Nobody else's order is on an account, and a seat leaves its consignment once, whatever wrote it.
    let order =
        scene.till.sell_for_cash(&scene.till.hold(scene.event, &[9]).await.ok(), 9_000).await.ok()["order"].clone();
    let owed = "insert into tender (id, order_id, kind, amount_minor, created_at) values (gen_random_uuid(), $1, 'account', 0, now())";
    let id: Uuid = order["id"].as_str().expect("an id").parse().expect("an id");
    let refused = sqlx::query(owed).bind(id).execute(scene.database.pool()).await.expect_err("not so");
    assert_eq!(fullhouse::db::constraint(&refused), Some("account_is_a_partners"));
    let twice = "update consignment_seat set state = 'returned', order_id = null where state = 'sold'";
    let refused = sqlx::query(twice).execute(scene.database.pool()).await.expect_err("not so");
    assert_eq!(fullhouse::db::constraint(&refused), Some("consignment_seat_ends_once"));
    let kiosk = Till::enrol_as("kiosk", &scene.database, &scene.hub.url(), "Foyer").await;
    assert_eq!(kiosk.get(PARTNERS).await.code(), "forbidden");
    house.close().await;
}

#[tokio::test]
async fn the_cut_off_moves_while_it_has_not_come() {
    let house = House::open().await;
    let House { scene, clerk, boss, cut_off, .. } = &house;
    let made = house.consigned(&[0, 1, 2]).await;
    let path = of(&made, "cut-off");
    let asked = |until: DateTime<Utc>| json!({ "until": until, "reason": "their coach is late" });
    let later = *cut_off + TimeDelta::hours(3);
    assert_eq!(clerk.post(&path, asked(later)).await.code(), "role_too_low");
    assert_eq!(boss.post(&path, json!({ "until": later, "reason": " " })).await.code(), "bad_request");
    let begins: DateTime<Utc> =
        sqlx::query_scalar("select starts_at from event").fetch_one(scene.database.pool()).await.expect("an event");
    scene.run("update event set off_sale_at = starts_at + interval '1 hour'").await;
    for (until, code) in [
        (begins + TimeDelta::seconds(1), "until_invalid"),
        (scene.clock.now().await + TimeDelta::seconds(59), "until_invalid"),
    ] {
        assert_eq!(boss.post(&path, asked(until)).await.code(), code, "{until}");
    }
    house.sell(&made, "one", &[2]).await.ok();
    let moved = boss.post(&path, asked(later)).await.ok();
    assert_eq!(boss.post(&path, asked(later)).await.ok(), moved, "again: it is so");
    scene.clock.advance(TimeDelta::hours(4)).await;
    assert_eq!(scene.fan().await.hold(scene.event, &[0]).await.code(), "seats_unavailable", "theirs still");
    house.sell(&made, "two", &[0]).await.ok();
    scene.database.no_invariant_is_broken().await;

    // Earlier as well, and maps know when; what has come does not move.
    let soon = scene.clock.now().await + TimeDelta::minutes(2);
    boss.post(&path, asked(soon)).await.ok();
    scene.clock.advance(TimeDelta::minutes(2)).await;
    let late = boss.post(&path, asked(later)).await;
    assert_eq!(late.code(), "consignment_over");
    scene.fan().await.hold(scene.event, &[1]).await.ok();
    let log = "select count(*) from audit where verb = 'consign_cut_off' and reason = 'their coach is late'
               and staff_id is not null and detail like 'of Atlas Travel: %, not %, % seats: %'";
    assert_eq!(scene.count(log).await, 2);

    let nobodys = json!({ "consignment_id": Uuid::nil() });
    assert_eq!(boss.post(&of(&nobodys, "cut-off"), asked(begins)).await.code(), "consignment_unknown");
    let all = house.consigned_until(&[10], begins).await;
    house.sell(&all, "all", &[10]).await.ok();
    let none = boss.post(&of(&all, "cut-off"), asked(begins - TimeDelta::hours(1))).await;
    assert_eq!((none.code(), &none.body["seats"]), ("seats_not_consigned", &json!([])), "none is open");
    house.close().await;
}

/// The cut-off comes as it is moved, and a fan waits for its seat: the partner's still, or the fan's, and nobody's twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_off_that_comes_as_it_is_moved_has_one_winner() {
    let house = House::open().await;
    let House { scene, boss, .. } = &house;
    let both = look_then_write(
        scene.database.pool(),
        &["create table naive_time (until text, held text)", "insert into naive_time values ('now', null)"],
        [
            ("select held is null from naive_time", "update naive_time set until = 'tomorrow'"),
            ("select until = 'now' from naive_time", "update naive_time set held = 'a fan'"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists");

    let (mut moved, mut over) = (0, 0);
    for round in 0..20 {
        let now = scene.clock.now().await;
        let made = house.consigned_until(&[round], now + TimeDelta::minutes(2)).await;
        let fan = scene.fan().await;
        let later = json!({ "until": now + TimeDelta::hours(1), "reason": "more time" });
        let path = of(&made, "cut-off");
        let (moving, next) = tokio::join!(boss.post(&path, later), async {
            scene.clock.advance(TimeDelta::minutes(2)).await;
            fan.hold(scene.event, &[round]).await
        });
        match (moving.status, next.status) {
            (StatusCode::OK, _) => {
                assert_eq!(next.code(), "seats_unavailable");
                moved += 1;
            }
            (_, StatusCode::OK) => {
                assert_eq!(moving.code(), "consignment_over");
                over += 1;
            }
            _ => panic!("nobody got it: {moving:?}, {next:?}"),
        }
        scene.database.no_invariant_is_broken().await;
    }
    eprintln!("{moved} moved, {over} after the cut-off");
    house.close().await;
}

/// A partner's report and the cut-off come at once: sold, or somebody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_that_is_reported_sold_as_the_cut_off_comes_is_the_partners_or_the_next_fans() {
    let house = House::open().await;
    let House { scene, boss, .. } = &house;
    // The control: both look, and then both write.
    let both = look_then_write(
        scene.database.pool(),
        &["create table naive_seat (sold text, held text)", "insert into naive_seat values (null, null)"],
        [
            ("select held is null from naive_seat", "update naive_seat set sold = 'the partner'"),
            ("select sold is null from naive_seat", "update naive_seat set held = 'a fan'"),
        ],
    )
    .await;
    assert_eq!(both, 2, "the race exists");

    let (mut sold, mut over) = (0, 0);
    for round in 0..20 {
        let mut asked = house.asked(&[round]);
        asked["until"] = json!(scene.clock.now().await + TimeDelta::minutes(2));
        let made = boss.post(CONSIGN, asked).await.ok();
        let fan = scene.fan().await;
        let key = round.to_string();
        let seats = [round];
        let (report, next) = tokio::join!(house.sell(&made, &key, &seats), async {
            scene.clock.advance(TimeDelta::minutes(2)).await;
            fan.hold(scene.event, &[round]).await
        });
        match (report.status, next.status) {
            (StatusCode::OK, _) => {
                assert_eq!(next.code(), "seats_unavailable");
                sold += 1;
            }
            (_, StatusCode::OK) => {
                assert_eq!(report.code(), "consignment_over");
                over += 1;
            }
            _ => panic!("nobody got it: {report:?}, {next:?}"),
        }
    }
    eprintln!("{sold} sold, {over} after the cut-off");

    // Two counters with one report: one order.
    let there = Desk::open(scene, "Window 3").await.sign_in_as("Ada").await;
    for round in 0..10 {
        let seat = 22 + round * 2;
        let mut asked = house.asked(&[seat, seat + 1]);
        asked["until"] = json!(scene.clock.now().await + TimeDelta::hours(1));
        let made = boss.post(CONSIGN, asked).await.ok();
        let (path, returns) = (of(&made, "sales"), of(&made, "returns"));
        let (a, b, c) = tokio::join!(
            house.clerk.post(&path, json!({ "seats": [seat] })),
            there.post(&path, json!({ "seats": [seat] })),
            there.post(&returns, json!({ "seats": [seat], "reason": "not sold" })),
        );
        let won = [&a, &b, &c].iter().filter(|answer| answer.status == StatusCode::OK).count();
        assert_eq!(won, 1, "{a:?} {b:?} {c:?}");
        assert!([&a, &b, &c].iter().all(|x| x.status == StatusCode::OK || x.code() == "seats_not_consigned"));
    }
    house.close().await;
}

/// Each event has a lock of its own, and a key is the terminal's: what one event's request did is not seen by another's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_at_two_events_at_once_is_one_request_and_a_mistake() {
    let house = House::open().await;
    let House { scene, clerk, boss, cut_off, .. } = &house;
    let events = [scene.event, Rows::new(3, 20).open(scene.database.pool()).await];
    let at = |event: i64, body: Value| {
        let mut body = body;
        body["event_id"] = json!(event);
        body
    };
    let payments = format!("{PARTNERS}/{}/payments", house.partner["partner_id"].as_str().expect("an id"));
    let mut sold = 0;
    for round in 0..10 {
        let key = format!("key-{round}");
        let both = async |till: &Till, paths: [&str; 2], bodies: [Value; 2]| {
            let [here, there] = bodies;
            let (a, b) = tokio::join!(till.post_once(paths[0], &key, here), till.post_once(paths[1], &key, there));
            let refused: Vec<&str> =
                [&a, &b].into_iter().filter(|x| x.status != StatusCode::OK).map(Answer::code).collect();
            assert_eq!(refused, ["idempotency_mismatch"], "{paths:?}: {a:?} {b:?}");
        };
        both(boss, [CONSIGN; 2], events.map(|event| at(event, house.asked(&[round])))).await;
        let aside = |event| json!({ "event_id": event, "seats": [20 + round * 2], "name": "Ada", "until": cut_off });
        both(clerk, ["/api/box-office/customer-holds"; 2], events.map(aside)).await;
        let made = [
            boss.post(CONSIGN, at(events[0], house.asked(&[40 + round]))).await.ok(),
            boss.post(CONSIGN, at(events[1], house.asked(&[40 + round]))).await.ok(),
        ];
        let paths = made.each_ref().map(|made| of(made, "sales"));
        both(clerk, [&paths[0], &paths[1]], [(); 2].map(|()| json!({ "seats": [40 + round] }))).await;
        for path in &paths {
            clerk.post(path, json!({ "seats": [40 + round] })).await; // so that it owes at both
        }
        sold += 2;
        let paid =
            |event| json!({ "event_id": event, "amount_minor": 100, "way": "transfer", "reference": "invoice 7" });
        both(clerk, [&payments; 2].map(String::as_str), events.map(paid)).await;
    }
    assert_eq!(scene.count("select count(*) from consignment_sale").await, sold);
    assert_eq!(scene.count("select count(*) from partner_payment").await, 10);
    house.close().await;
}
