//! Seats that a terminal sells without a network: who else is refused, what becomes of the sales, how a lease ends.

use fullhouse::ticket::code;
use fullhouse_protocol::lease::{OfflineSale, SoldSeat};
use fullhouse_tests::{
    HUNG, database::Database, eventually_within, fan::Answer, hub::Hub, rows::Rows, scene::Scene, till::Till,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

pub const PRICE: i64 = 4500;

/// As a till asks: what a hub was too busy for is asked again, under the same key, until it is answered.
async fn patiently(till: &Till, path: &str, body: Value) -> Answer {
    let key = Uuid::new_v4().to_string();
    let asked = || async {
        let answer = till.post_once(path, &key, body.clone()).await;
        (answer.status != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
    };
    eventually_within(HUNG * 6, "the hub is not too busy", asked).await
}

/// Leases seats to a till.
pub async fn lease(till: &Till, event: i64, seats: &[i32]) -> Value {
    let body = json!({ "event_id": event, "seats": seats, "sells_for_s": 3600 });
    patiently(till, "/api/box-office/leases", body).await.ok()
}

/// The text of a journalled sale, as a till writes it.
pub fn sale(lease: &Value, seq: u64, seats: &[i32]) -> String {
    let seat = |no: &i32| SoldSeat { seat_no: *no, ticket_type: "adult".to_owned(), amount_minor: PRICE };
    let sale = OfflineSale {
        seq,
        lease_id: lease["lease_id"].as_str().and_then(|id| id.parse().ok()).expect("a lease"),
        event_id: lease["event_id"].as_i64().expect("an event"),
        currency: "EUR".to_owned(),
        seats: seats.iter().map(seat).collect(),
        total_minor: PRICE * seats.len() as i64,
        staff_id: Uuid::nil(),
        sold_at: "2026-11-30T19:00:00Z".to_owned(),
    };
    serde_json::to_string(&sale).expect("a sale has a JSON form")
}

/// Sends entries of a journal.
pub async fn settle(till: &Till, entries: &[(u64, &str)]) -> Answer {
    let entries: Vec<Value> = entries.iter().map(|(seq, body)| json!({ "seq": seq, "body": body })).collect();
    patiently(till, "/api/box-office/journal", json!({ "entries": entries })).await
}

/// The closing report: these seats are sold, by sales up to a number.
pub async fn close(till: &Till, lease: &Value, sold_seqs_to: u64, sold: &[i32]) -> Answer {
    let path = format!("/api/box-office/leases/{}/close", lease["lease_id"].as_str().expect("a lease"));
    patiently(till, &path, json!({ "sold_seqs_to": sold_seqs_to, "sold": sold })).await
}

pub async fn write_off(till: &Till, lease: &Value) -> Answer {
    let path = format!("/api/staff/leases/{}/write-off", lease["lease_id"].as_str().expect("a lease"));
    patiently(till, &path, json!({ "reason": "not heard of since Tuesday" })).await
}

/// The ticket that a lease has for a seat.
pub fn printed(lease: &Value, seat: i32) -> (Uuid, String) {
    let seats = lease["seats"].as_array().expect("seats");
    let seat = seats.iter().find(|s| s["seat_no"] == seat).expect("a seat of the lease");
    (seat["ticket_id"].as_str().unwrap().parse().unwrap(), seat["code"].as_str().unwrap().to_owned())
}

/// Whether a door lets a ticket in that it can read.
pub async fn is_dead(till: &Till, event: i64, ticket: Uuid) -> bool {
    let dead = till.get(&format!("/api/box-office/events/{event}/dead-tickets")).await.ok();
    dead["dead"].as_array().expect("a list").contains(&json!(ticket))
}

struct House {
    database: Database,
    event: i64,
    hub: Hub,
    till: Till,
}

impl House {
    async fn open() -> Self {
        let database = Database::new().await;
        let event = Rows::new(4, 10).open(database.pool()).await;
        let hub = Hub::start(database.config().await).await;
        let till = Till::enrol(&database, &hub.url(), "Window 1").await;
        Self { database, event, hub, till }
    }

    async fn close(self) {
        self.hub.stop().await;
        self.database.finish().await;
    }

    async fn status(&self, seat: i32) -> i16 {
        sqlx::query_scalar("select status from event_seat where event_id = $1 and seat_no = $2")
            .bind(self.event)
            .bind(seat)
            .fetch_one(self.database.pool())
            .await
            .expect("a seat")
    }
}

#[tokio::test]
async fn a_leased_seat_is_sold_without_a_network_once_and_the_rest_goes_back() {
    let house = House::open().await;
    let (till, event) = (&house.till, house.event);
    let asked = json!({ "event_id": event, "seats": [3, 4, 5, 6], "sells_for_s": 3600 });
    let lease = till.post_once("/api/box-office/leases", "one", asked.clone()).await.ok();
    assert_eq!((&lease["next_seq"], &lease["currency"], &lease["seats_max"]), (&json!(1), &json!("EUR"), &json!(6)));
    assert_eq!(lease["seats"][0]["prices"], json!({ "adult": PRICE }));
    // What stands on its ticket comes with it: nobody reads the whole hall for that.
    let page = till.get(&format!("/api/events/{event}")).await.ok();
    let seat = page["seats"].as_array().unwrap().iter().find(|seat| seat["seat_no"] == 3).unwrap();
    let place = json!({ "section": seat["section"], "row": seat["row"], "number": seat["number"], "standing": seat["standing"],
        "traits": [], "note": null });
    assert_eq!(lease["seats"][0]["place"], place);
    assert_eq!(till.post_once("/api/box-office/leases", "one", asked).await.ok(), lease, "an answer that was lost");
    let other = json!({ "event_id": event, "seats": [3], "sells_for_s": 3600 });
    assert_eq!(till.post_once("/api/box-office/leases", "one", other).await.code(), "idempotency_mismatch");
    for seat in 3..7 {
        assert!(!is_dead(till, event, printed(&lease, seat).0).await, "it may be printed at any moment");
    }

    let (first, second) = (sale(&lease, 1, &[4, 3]), sale(&lease, 2, &[5]));
    assert_eq!(close(till, &lease, 2, &[3, 4, 5]).await.code(), "journal_open", "what was sold is told first");
    let settled = settle(till, &[(1, &first), (2, &second)]).await.ok();
    let orders: Vec<&Value> = (0..2).map(|n| &settled["settled"][n]["outcome"]["sold"]["order_id"]).collect();
    assert!(orders.iter().all(|o| o.is_string()) && settled["next_seq"] == 3, "{settled}");
    assert_eq!(settle(till, &[(1, &first), (2, &second)]).await.ok(), settled, "told again, the same");

    // They are on paper: what is printed again is another ticket.
    let prints = format!("/api/box-office/orders/{}/prints", orders[0].as_str().unwrap());
    assert_eq!(till.post(&prints, json!({ "ticket_ids": [] })).await.code(), "ticket_printed");

    // A door reads the printed codes, and the order's tickets are those.
    let order = till.get(&format!("/api/staff/orders/{}", orders[0].as_str().unwrap())).await.ok()["order"].clone();
    assert_eq!((&order["state"], &order["total_minor"]), (&json!("confirmed"), &json!(2 * PRICE)));
    let codes: Vec<&str> = order["tickets"].as_array().unwrap().iter().filter_map(|t| t["code"].as_str()).collect();
    for seat in [3, 4] {
        let (ticket, code) = printed(&lease, seat);
        assert!(codes.contains(&code.as_str()), "{order}");
        let key: Vec<u8> =
            sqlx::query_scalar("select public from ticket_key").fetch_one(house.database.pool()).await.unwrap();
        let key = ed25519_dalek::VerifyingKey::from_bytes(&key.try_into().unwrap()).unwrap();
        let claim = code::verify(&code, |_| Some(&key)).expect("genuine");
        assert_eq!((claim.ticket_id, claim.seat_no), (ticket, seat));
    }

    assert_eq!(close(till, &lease, 2, &[3, 4, 5, 6]).await.body["seats"], json!([6]), "sold by nobody here");
    let older = close(till, &lease, 1, &[3, 4]).await;
    assert_eq!((older.code(), &older.body["next_seq"]), ("journal_gap", &json!(3)), "a journal put back from a copy");
    let closed = close(till, &lease, 2, &[3, 4, 5]).await.ok();
    assert_eq!(
        (&closed["sold"], &closed["returned"], &closed["state"]),
        (&json!([3, 4, 5]), &json!([6]), &json!("closed"))
    );
    assert_eq!(close(till, &lease, 2, &[3, 4, 5]).await.ok(), closed);
    assert_eq!(house.status(6).await, 0);
    assert!(is_dead(till, event, printed(&lease, 6).0).await, "nobody comes in with it");
    assert!(!is_dead(till, event, printed(&lease, 3).0).await);
    till.hold(event, &[6]).await.ok();
    let late = settle(till, &[(3, &sale(&lease, 3, &[6]))]).await.ok();
    assert_eq!(late["settled"][0]["outcome"]["not_sold"]["reason"], "lease_closed");
    assert_eq!(write_off(till, &lease).await.code(), "lease_closed");
    house.close().await;
}

#[tokio::test]
async fn a_journal_is_taken_in_order_and_each_number_is_one_sale() {
    let house = House::open().await;
    let till = &house.till;
    let lease = lease(till, house.event, &[0, 1, 2, 3]).await;
    let gap = settle(till, &[(2, &sale(&lease, 2, &[1]))]).await;
    assert_eq!((gap.code(), &gap.body["next_seq"], gap.status), ("journal_gap", &json!(1), StatusCode::CONFLICT));
    settle(till, &[(1, &sale(&lease, 1, &[0]))]).await.ok();
    let other = settle(till, &[(1, &sale(&lease, 1, &[1]))]).await;
    assert_eq!((other.code(), &other.body["seq"]), ("journal_conflict", &json!(1)));
    for unreadable in [
        "no sale".to_owned(),
        sale(&lease, 7, &[1]),
        sale(&lease, 2, &[1]).replace("EUR\"", "EUR\",\"x\":1"),
        sale(&lease, 2, &[1]).replace("EUR\"", "EUR\\u0000\""),
    ] {
        let refused = settle(till, &[(2, &unreadable)]).await;
        assert_eq!((refused.code(), refused.status), ("journal_unreadable", StatusCode::UNPROCESSABLE_ENTITY));
    }
    // What stands before a refusal is settled and answered.
    let in_part = settle(till, &[(2, &sale(&lease, 2, &[1])), (3, "no sale"), (4, &sale(&lease, 4, &[2]))]).await.ok();
    assert_eq!((in_part["settled"].as_array().unwrap().len(), &in_part["next_seq"]), (1, &json!(3)));

    let mut dear = sale(&lease, 3, &[2]);
    dear = dear.replace("4500", "1");
    let foreign = sale(&json!({ "lease_id": Uuid::new_v4(), "event_id": house.event }), 6, &[2]);
    for (seq, body, reason) in [
        (3, dear, "price_mismatch"),
        (4, sale(&lease, 4, &[9]), "seat_unknown"),
        (5, sale(&lease, 5, &[0, 2]), "seat_sold"),
        (6, foreign, "lease_unknown"),
        (7, sale(&lease, 7, &[2, 2]), "seat_unknown"),
    ] {
        let came = settle(till, &[(seq, &body)]).await.ok();
        assert_eq!(came["settled"][0]["outcome"]["not_sold"]["reason"], reason, "{body}");
    }
    let listed = till.get("/api/staff/leases").await.ok();
    let numbers: Vec<&Value> = listed["to_see_to"].as_array().unwrap().iter().map(|j| &j["seq"]).collect();
    assert_eq!(numbers, [3, 4, 5, 6, 7], "money without a seat is on staff's list");
    let terminal = &listed["to_see_to"][0]["terminal_id"];
    let seen = |seq: u64| json!({ "terminal_id": terminal, "seq": seq, "note": "the money went back" });
    assert_eq!(till.post("/api/staff/journal/see-to", seen(3)).await.status, StatusCode::NO_CONTENT);
    assert_eq!(till.post("/api/staff/journal/see-to", seen(1)).await.code(), "not_found", "that one is a sale");
    assert_eq!(till.get("/api/staff/leases").await.ok()["to_see_to"].as_array().unwrap().len(), 4);
    let log = "select detail || ': ' || reason from audit where verb = 'journal_seen'";
    let logged: Vec<String> = sqlx::query_scalar(log).fetch_all(house.database.pool()).await.unwrap();
    assert_eq!(logged, ["sale 3 of Window 1: the money went back"]);

    // Another terminal has a journal of its own, and nothing of this lease.
    let second = Till::enrol(&house.database, &house.hub.url(), "Window 2").await;
    let came = settle(&second, &[(1, &sale(&lease, 1, &[2]))]).await.ok();
    assert_eq!(came["settled"][0]["outcome"]["not_sold"]["reason"], "lease_unknown");
    assert_eq!(close(&second, &lease, 0, &[]).await.code(), "lease_unknown");
    assert_eq!(house.status(2).await, 3, "it is the first one's still");
    house.close().await;
}

#[tokio::test]
async fn nobody_else_gets_at_a_leased_seat_by_the_hub_or_past_it() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let (till, event) = (&scene.till, scene.event);
    let order = {
        let held = till.hold(event, &[10]).await.ok();
        till.sell_for_cash(&held, PRICE).await.ok()["order"].clone()
    };
    let fan = scene.fan().await;
    let lease = lease(till, event, &[0, 1]).await;
    let other = Till::enrol(&scene.database, &scene.hub.url(), "Window 2").await;
    let own = json!({ "event_id": event, "seats": [1, 2], "sells_for_s": 60 });
    let refused = other.post("/api/box-office/leases", own).await;
    assert_eq!((refused.code(), &refused.body["lost"]), ("seats_unavailable", &json!([1])));
    assert_eq!(fan.hold(event, &[1]).await.code(), "seats_unavailable");
    assert_eq!(
        till.hold(event, &[1]).await.code(),
        "seats_unavailable",
        "not even by its own terminal, with a network"
    );
    for verb in ["block", "unblock", "revive"] {
        let body = json!({ "seats": [1], "reason": "a camera" });
        let refused = till.post(&format!("/api/box-office/events/{event}/{verb}"), body).await;
        assert!(["seats_in_use", "seats_dead"].contains(&refused.code()), "{verb}: {:?}", refused.body);
    }
    let pairs = json!({ "seats": [{ "from": 10, "to": 1 }], "reason": "a better view" });
    assert_eq!(scene.staff(&order, "exchange", pairs).await.code(), "seats_unavailable");
    for statement in [
        "update event_seat set status = 0, lease_id = null where seat_no = 1",
        "update event_seat set status = 0 where seat_no = 1",
        "update event_seat set lease_id = gen_random_uuid() where seat_no = 1",
        "update event_seat set status = 2, order_id = gen_random_uuid(), lease_id = null where seat_no = 1",
        "update event_seat set status = 1, hold_id = gen_random_uuid(), held_until = now() where seat_no = 1",
        "update event_seat set lease_id = gen_random_uuid() where seat_no = 5",
        "insert into lease_seat (lease_id, event_id, seat_no, ticket_id, code, prices)
         select lease_id, event_id, 19, gen_random_uuid(), 'x', prices from lease_seat where seat_no = 1
         union all select lease_id, event_id, 19, gen_random_uuid(), 'y', prices from lease_seat where seat_no = 0",
    ] {
        let error = sqlx::query(statement).execute(scene.database.pool()).await.expect_err(statement);
        let name = error.as_database_error().and_then(|e| e.constraint()).unwrap_or_default().to_owned();
        let ours = ["seat_is_leased", "seat_leased_is_blocked", "lease_seat_pkey", "lease_seat_one_owner"];
        assert!(ours.contains(&name.as_str()), "{statement}: {error}");
    }
    close(till, &lease, 0, &[]).await.ok();
    for statement in
        ["update lease_seat set state = 'leased', dead_at = null where seat_no = 1", "delete from journal_entry"]
    {
        sqlx::query(statement).execute(scene.database.pool()).await.expect_err(statement);
    }
    fan.hold(event, &[1]).await.ok();
    let kiosk = Till::enrol_as("kiosk", &scene.database, &scene.hub.url(), "Kiosk").await;
    let asked = json!({ "event_id": event, "count": 2, "sells_for_s": 60 });
    assert_eq!(kiosk.post("/api/box-office/leases", asked).await.code(), "forbidden", "it takes no cash");
    scene.close().await;
}

#[tokio::test]
async fn seats_are_leased_by_number_of_them_and_within_bounds() {
    let house = House::open().await;
    let (till, event) = (&house.till, house.event);
    let ask = |more: Value| {
        let mut body = json!({ "event_id": event, "sells_for_s": 60 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (more, code) in [
        (json!({}), "bad_request"),
        (json!({ "seats": [1], "count": 1 }), "bad_request"),
        (json!({ "count": 1, "sells_for_s": 43_201 }), "bad_request"),
        (json!({ "count": 0 }), "seats_empty"),
        (json!({ "seats": [] }), "seats_empty"),
        (json!({ "count": 1_001 }), "seats_too_many"),
        (json!({ "seats": [2, 2] }), "seats_repeated"),
        (json!({ "seats": [40] }), "seat_unknown"),
        (json!({ "count": 2, "section": "Balcony" }), "section_unknown"),
        (json!({ "count": 41 }), "seats_unavailable"),
        (json!({ "count": 2, "event_id": 999 }), "event_unknown"),
    ] {
        assert_eq!(till.post("/api/box-office/leases", ask(more.clone())).await.code(), code, "{more}");
    }
    till.hold(event, &[0]).await.ok();
    let granted = till.post("/api/box-office/leases", ask(json!({ "count": 3, "section": "Stalls" }))).await.ok();
    let seats: Vec<&Value> = granted["seats"].as_array().unwrap().iter().map(|s| &s["seat_no"]).collect();
    assert_eq!(seats, [1, 2, 3]);
    let own = till.get("/api/box-office/leases").await.ok();
    assert_eq!((own["leases"].as_array().unwrap().len(), &own["next_seq"]), (1, &json!(1)));
    sqlx::query("update event set sale_state = 'cancelled'").execute(house.database.pool()).await.unwrap();
    assert_eq!(till.post("/api/box-office/leases", ask(json!({ "count": 1 }))).await.code(), "event_cancelled");
    house.close().await;
}

#[tokio::test]
async fn after_a_write_off_a_late_sale_gets_its_seat_if_it_is_still_there_and_is_told_to_people() {
    let house = House::open().await;
    let (till, event) = (&house.till, house.event);
    let lease = lease(till, event, &[0, 1, 2, 3]).await;
    settle(till, &[(1, &sale(&lease, 1, &[0]))]).await.ok();
    let written_off = write_off(till, &lease).await.ok();
    assert_eq!((&written_off["state"], &written_off["returned"]), (&json!("written_off"), &json!([1, 2, 3])));
    assert_eq!(write_off(till, &lease).await.ok(), written_off);
    assert!(!is_dead(till, event, printed(&lease, 0).0).await, "that one had been told");
    for seat in 1..4 {
        assert!(is_dead(till, event, printed(&lease, seat).0).await);
        assert_eq!(house.status(seat).await, 3, "never straight on sale");
    }
    // Somebody sells one of them to others; another is blocked, freed and blocked again.
    let path = |verb: &str| format!("/api/box-office/events/{event}/{verb}");
    let body = json!({ "seats": [2, 3], "reason": "nobody came" });
    till.post(&path("unblock"), body).await;
    till.post(&path("block"), json!({ "seats": [3], "reason": "a camera" })).await;
    let held = till.hold(event, &[2]).await.ok();
    till.sell_for_cash(&held, PRICE).await.ok();

    let came = settle(till, &[(2, &sale(&lease, 2, &[1])), (3, &sale(&lease, 3, &[2])), (4, &sale(&lease, 4, &[3]))])
        .await
        .ok();
    let outcome = |n: usize| came["settled"][n]["outcome"].clone();
    assert_eq!(outcome(0)["sold"]["new_codes"], true);
    for n in [1, 2] {
        assert_eq!(outcome(n)["not_sold"]["reason"], "seat_gone");
    }
    let order = outcome(0)["sold"]["order_id"].as_str().unwrap().to_owned();
    let order = till.get(&format!("/api/staff/orders/{order}")).await.ok()["order"].clone();
    assert_ne!(order["tickets"][0]["code"], json!(printed(&lease, 1).1));
    assert!(is_dead(till, event, printed(&lease, 1).0).await, "what was printed stays dead");
    let listed = till.get("/api/staff/leases").await.ok();
    let numbers: Vec<&Value> = listed["to_see_to"].as_array().unwrap().iter().map(|j| &j["seq"]).collect();
    assert_eq!(numbers, [2, 3, 4]);
    assert_eq!((&listed["leases"][0]["state"], &listed["leases"][0]["sold"]), (&json!("written_off"), &json!(2)));
    assert_eq!(close(till, &lease, 4, &[0, 1, 2, 3]).await.ok()["state"], "written_off", "the terminal learns of it");
    house.close().await;
}

#[tokio::test]
async fn a_sale_that_comes_after_the_event_was_called_off_is_given_back_like_every_other() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let lease = lease(&scene.till, scene.event, &[0, 1]).await;
    let operator = scene.operator().await;
    let path = format!("/api/staff/events/{}/call-off", scene.event);
    operator.post(&path, json!({ "reason": "the singer is ill" })).await.ok();
    fullhouse_tests::eventually("it is gone through", || async {
        operator.get(&path).await.ok()["gone_through_at"].is_string().then_some(())
    })
    .await;
    let came = settle(&scene.till, &[(1, &sale(&lease, 1, &[0]))]).await.ok();
    let order = came["settled"][0]["outcome"]["sold"]["order_id"].as_str().unwrap().to_owned();
    fullhouse_tests::eventually("it is given back", || async {
        let listed = operator.get(&path).await.ok();
        let orders = listed["orders"].as_array().unwrap().clone();
        orders.iter().any(|o| o["order_id"] == json!(order) && o["result"] == "refunded").then_some(())
    })
    .await;
    close(&scene.till, &lease, 1, &[0]).await.ok();
    scene.close().await;
}
