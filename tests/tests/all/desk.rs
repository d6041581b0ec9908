//! What a clerk does for a customer besides selling: seats put aside, other prices, seats out of the sale, a seat's
//! story, tickets that wait to be printed.

use chrono::TimeDelta;
use fullhouse_tests::{desk::Desk, rows::Rows, scene::Scene, till::Till};
use reqwest::StatusCode;
use serde_json::{Value, json};

const HOLDS: &str = "/api/box-office/customer-holds";

struct Window {
    scene: Scene,
    desk: Desk,
    clerk: Till,
    boss: Till,
    manager: Till,
}

async fn window() -> Window {
    let scene = Scene::without_webhooks(Rows::new(2, 20), |_| {}).await;
    let desk = Desk::open(&scene, "Window 2").await;
    let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
    let boss = desk.sign_in(&scene, "Bob", "supervisor").await;
    let manager = desk.sign_in(&scene, "Cleo", "manager").await;
    clerk.post("/api/box-office/shifts", json!({ "float_minor": 0, "currency": "EUR" })).await.ok();
    Window { scene, desk, clerk, boss, manager }
}

fn for_sale(held: &Value, tender: Value) -> Value {
    json!({ "hold_id": held["hold_id"], "buyer_id": held["buyer_id"], "tender": tender })
}

async fn story(till: &Till, event: i64, seat: i32) -> Value {
    till.get(&format!("/api/box-office/events/{event}/seats/{seat}")).await.ok()
}

#[tokio::test]
async fn seats_are_put_aside_under_a_name_listed_sold_anywhere_and_let_go() {
    let Window { scene, clerk, boss, .. } = window().await;
    let event = scene.event;
    let until = scene.clock.now().await + TimeDelta::hours(3);
    let ask = |seats: &[i32], until: chrono::DateTime<chrono::Utc>| json!({ "event_id": event, "seats": seats, "name": "Mrs Lovelace", "until": until, "note": "comes at six" });
    let held = clerk.post_once(HOLDS, "one", ask(&[0, 1], until)).await.ok();
    assert_eq!(clerk.post_once(HOLDS, "one", ask(&[0, 1], until)).await.ok(), held, "the same key is the same hold");
    assert_eq!(clerk.post_once(HOLDS, "one", ask(&[0, 2], until)).await.code(), "idempotency_mismatch");
    let mut noted = ask(&[0, 1], until);
    noted["note"] = json!("comes at seven");
    assert_eq!(clerk.post_once(HOLDS, "one", noted).await.code(), "idempotency_mismatch", "it would not be written");
    assert_eq!((&held["seats"], &held["made_by"]), (&json!([0, 1]), &json!("Ada at Window 2")));
    assert_eq!(scene.fan().await.hold(event, &[0]).await.code(), "seats_unavailable");
    let told = story(&clerk, event, 0).await;
    assert_eq!((&told["status"], &told["customer"]["name"]), (&json!("held"), &json!("Mrs Lovelace")));

    let mut nobodys = ask(&[3], until);
    nobodys["name"] = json!("\u{200b}\u{200b}");
    assert_eq!(clerk.post(HOLDS, nobodys).await.code(), "bad_request", "a name that nobody sees");
    for (seats, until, code) in [
        (vec![1, 2], until, "seats_unavailable"),
        (vec![999], until, "seat_unknown"),
        (vec![], until, "seats_empty"),
        (vec![3, 3], until, "seats_repeated"),
        (vec![3], scene.clock.now().await, "until_invalid"),
        (vec![3], until + TimeDelta::days(4_000), "until_invalid"),
        ((3..10).collect(), until, "limit_reached"),
    ] {
        assert_eq!(clerk.post(HOLDS, ask(&seats, until)).await.code(), code, "{seats:?}");
    }
    let group = boss.post(HOLDS, ask(&(3..10).collect::<Vec<i32>>(), until)).await.ok();
    scene.database.no_invariant_is_broken().await; // a group is more than one buyer
    let listed = clerk.get(&format!("{HOLDS}?event_id={event}")).await.ok();
    assert_eq!(listed["holds"].as_array().unwrap().len(), 2);

    // Any counter sells it; a kiosk does not.
    let kiosk = Till::enrol_as("kiosk", &scene.database, &scene.hub.url(), "Foyer").await;
    let quote = format!("/api/box-office/holds/{}/quote", held["hold_id"].as_str().unwrap());
    assert_eq!(kiosk.post(&quote, json!({ "buyer_id": held["buyer_id"] })).await.code(), "hold_unknown");
    let cash = json!({ "kind": "cash", "received_minor": 20_000 });
    let sold = scene.till.post("/api/box-office/sales", for_sale(&held, cash.clone())).await.ok();
    assert_eq!(sold["order"]["state"], "confirmed");
    scene.till.post("/api/box-office/sales", for_sale(&held, cash.clone())).await.ok();
    // Two of a family pay for the same seats at two counters: the second one's money is not taken.
    assert_eq!(clerk.post("/api/box-office/sales", for_sale(&held, cash)).await.code(), "idempotency_mismatch");

    let release = format!("{HOLDS}/{}/release", group["hold_id"].as_str().unwrap());
    let reason = json!({ "reason": "they called" });
    assert_eq!(clerk.post(&release, reason.clone()).await.code(), "role_too_low", "Bob made it");
    for _ in 0..2 {
        assert_eq!(boss.post(&release, reason.clone()).await.status, StatusCode::NO_CONTENT);
    }
    scene.fan().await.hold(event, &[3]).await.ok();
    let nobodys = format!("{HOLDS}/{}/release", uuid::Uuid::new_v4());
    assert_eq!(boss.post(&nobodys, reason).await.code(), "hold_unknown");

    clerk.post(HOLDS, ask(&[12], scene.clock.now().await + TimeDelta::minutes(30))).await.ok();
    scene.clock.advance(TimeDelta::minutes(30)).await;
    scene.fan().await.hold(event, &[12]).await.ok();
    assert_eq!(clerk.get(HOLDS).await.ok()["holds"], json!([]), "it ran out by itself");
    assert_eq!(
        scene.count("select count(*) from audit where verb in ('customer_hold', 'customer_release') and staff_id is not null").await,
        4
    );
    let said: Vec<String> =
        sqlx::query_scalar("select detail from audit where verb in ('customer_hold', 'customer_release') order by id")
            .fetch_all(scene.database.pool())
            .await
            .unwrap();
    let names = "Stalls 1 4, Stalls 1 5, Stalls 1 6, Stalls 1 7, Stalls 1 8, Stalls 1 9, Stalls 1 10";
    assert!(said[1].starts_with("7 seats until ") && said[1].ends_with(names), "{}", said[1]);
    assert_eq!(said[2], format!("7 seats: {names}"));
    scene.close().await;
}

#[tokio::test]
async fn a_price_is_changed_by_a_supervisor_with_a_reason_and_the_list_price_is_kept() {
    let Window { scene, clerk, boss, .. } = window().await;
    let event = scene.event;
    let held = clerk.hold(event, &[0, 1]).await.ok();
    let quote = format!("/api/box-office/holds/{}/quote", held["hold"]["id"].as_str().unwrap());
    let list = clerk.post(&quote, json!({ "buyer_id": held["buyer_id"] })).await.ok()["order"]["total_minor"]
        .as_i64()
        .unwrap();
    let price =
        |seat: i32, amount: i64, reason: &str| json!({ "seat_no": seat, "amount_minor": amount, "reason": reason });
    let with = |prices: Value| json!({ "buyer_id": held["buyer_id"], "prices": prices });
    let restricted = json!([price(1, 700, "a pillar in front of it")]);
    assert_eq!(clerk.post(&quote, with(restricted.clone())).await.code(), "role_too_low");
    for (prices, code) in [
        (json!([price(1, -1, "x")]), "bad_request"),
        (json!([price(1, 100_000_000, "x")]), "bad_request"),
        (json!([price(1, 700, " ")]), "bad_request"),
        (json!([price(1, 700, "x"), price(1, 800, "x")]), "seats_repeated"),
        (json!([price(5, 700, "x")]), "seat_unknown"),
    ] {
        assert_eq!(boss.post(&quote, with(prices.clone())).await.code(), code, "{prices}");
    }
    let quoted = boss.post(&quote, with(restricted.clone())).await.ok()["order"].clone();
    assert_eq!(quoted["total_minor"], list / 2 + 700);
    let repeated = clerk.post(&quote, with(restricted.clone())).await.ok()["order"].clone();
    assert_eq!(repeated["id"], quoted["id"], "what a supervisor has said, a clerk repeats");
    let mut sale = with(restricted);
    sale["hold_id"] = held["hold"]["id"].clone();
    sale["tender"] = json!({ "kind": "cash", "received_minor": 20_000 });
    for (prices, what) in [
        (json!([price(1, 600, "a pillar in front of it")]), "another amount"),
        (json!([price(1, 700, "a friend of mine")]), "another reason"),
        (json!([price(0, 700, "a pillar in front of it")]), "another seat"),
    ] {
        let mut other = sale.clone();
        other["prices"] = prices;
        assert_eq!(clerk.post("/api/box-office/sales", other).await.code(), "role_too_low", "{what}");
    }
    let sold = clerk.post("/api/box-office/sales", sale).await.ok();
    assert_eq!((&sold["order"]["id"], &sold["order"]["total_minor"]), (&quoted["id"], &quoted["total_minor"]));
    let told = story(&clerk, event, 1).await;
    assert_eq!((&told["status"], &told["order"]["order_id"]), (&json!("sold"), &quoted["id"]));
    assert_eq!(
        (&told["sales"][0]["amount_minor"], &told["sales"][0]["list_minor"], &told["sales"][0]["price_reason"]),
        (&json!(700), &json!(list / 2), &json!("a pillar in front of it"))
    );
    let logged = "select count(*) from audit a join staff s on s.id = a.staff_id
                  where a.verb = 'price_override' and s.name = 'Bob' and a.reason = 'a pillar in front of it'";
    assert_eq!(scene.count(logged).await, 1);
    scene.close().await;
}

#[tokio::test]
async fn seats_are_killed_and_sections_blocked_and_each_seat_tells_its_story() {
    let Window { scene, clerk, boss, manager, .. } = window().await;
    let event = scene.event;
    let at = |verb: &str| format!("/api/box-office/events/{event}/{verb}");
    let section = story(&clerk, event, 0).await["section"].clone();
    clerk.sell_for_cash(&clerk.hold(event, &[0]).await.ok(), 10_000).await.ok();
    let floor = json!({ "seats": [1, 2], "reason": "the floor gave way" });
    assert_eq!(clerk.post(&at("kill"), floor.clone()).await.code(), "role_too_low");
    assert_eq!(boss.post(&at("kill"), json!({ "seats": [0, 3], "reason": "x" })).await.code(), "seats_in_use");
    assert_eq!(boss.post(&at("kill"), floor.clone()).await.status, StatusCode::NO_CONTENT);
    assert_eq!(boss.post(&at("unblock"), floor.clone()).await.code(), "seats_dead");
    let whole = |reason: &str| json!({ "section": section, "reason": reason });
    let blocked = boss.post(&at("block"), whole("rain")).await.ok();
    assert_eq!((&blocked["left"], blocked["changed"].as_array().unwrap().len() > 2), (&json!([0]), true));
    let changed = blocked["changed"].as_array().unwrap();
    assert!(!changed.contains(&json!(0)) && !changed.contains(&json!(1)), "{changed:?}");
    assert_eq!(boss.post(&at("block"), whole("rain")).await.ok()["changed"], json!([]), "again: they are blocked");
    let open = boss.post(&at("unblock"), whole("sun")).await.ok();
    assert_eq!((&open["changed"], &open["left"]), (&blocked["changed"], &json!([0, 1, 2])));
    assert_eq!(boss.post(&at("revive"), floor.clone()).await.code(), "role_too_low");
    let revived = manager.post(&at("revive"), whole("a new floor")).await.ok();
    assert_eq!(revived["changed"], json!([1, 2]));
    for (body, code) in [
        (json!({ "section": "Nowhere", "reason": "x" }), "section_unknown"),
        (json!({ "section": section, "seats": [1], "reason": "x" }), "bad_request"),
        (json!({ "reason": "x" }), "seats_empty"),
        (json!({ "seats": [1], "reason": "" }), "bad_request"),
        (json!({ "seats": [1], "reason": "\u{200b}" }), "bad_request"),
    ] {
        assert_eq!(boss.post(&at("block"), body.clone()).await.code(), code, "{body}");
    }
    let told = story(&clerk, event, 1).await;
    let verbs: Vec<&Value> = told["notes"].as_array().unwrap().iter().map(|note| &note["verb"]).collect();
    assert_eq!((verbs, &told["status"]), (vec![&json!("revive"), &json!("kill")], &json!("free")));
    assert_eq!(told["notes"][1]["reason"], "the floor gave way");
    let sold = story(&clerk, event, 0).await;
    assert_eq!((&sold["tickets"][0]["state"], &sold["tickets"][0]["printed"]), (&json!("valid"), &json!(false)));
    assert_eq!(clerk.get(&at("seats/999")).await.code(), "seat_unknown");
    assert_eq!(clerk.get("/api/box-office/events/999999/seats/1").await.code(), "seat_unknown");
    // No name of an event has it, and the database compares no such text.
    assert_eq!(clerk.get("/api/box-office/events/%00/seats/1").await.code(), "event_unknown");
    let places = "select count(*) from audit where verb = 'seat_block' and reason = 'rain'";
    assert_eq!(scene.count(places).await, 1, "a section is one line of the log");
    scene.close().await;
}

#[tokio::test]
async fn tickets_that_wait_are_listed_by_name_and_printed_many_at_once() {
    let Window { scene, desk, clerk, .. } = window().await;
    let event = scene.event;
    let first = clerk.sell_for_cash(&clerk.hold(event, &[0, 1]).await.ok(), 20_000).await.ok()["order"].clone();
    let second = clerk.sell_for_cash(&clerk.hold(event, &[2]).await.ok(), 20_000).await.ok()["order"].clone();
    let list = format!("/api/box-office/events/{event}/will-call");
    let waiting = clerk.get(&list).await.ok();
    assert_eq!(waiting["orders"].as_array().unwrap().len(), 2);
    let prints = format!("{list}/prints");
    let nobody = uuid::Uuid::new_v4();
    let printed = clerk.post(&prints, json!({ "order_ids": [first["id"], nobody, second["id"]] })).await.ok();
    let orders = printed["orders"].as_array().unwrap();
    assert_eq!((orders[0]["jobs"].as_array().unwrap().len(), &orders[0]["refused"]), (2, &Value::Null));
    assert_eq!(orders[1]["refused"], "ticket_not_valid");
    assert_eq!(orders[2]["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(clerk.get(&list).await.ok()["orders"], json!([]), "they lie in the printer");
    let jam = orders[2]["jobs"][0]["id"].as_str().unwrap();
    let report = format!("/api/box-office/prints/{jam}");
    assert_eq!(clerk.post(&report, json!({ "state": "failed" })).await.status, StatusCode::NO_CONTENT);
    assert_eq!(clerk.get(&list).await.ok()["orders"][0]["order_id"], second["id"], "it never came out");
    for wrong in [json!([]), json!([nobody, nobody])] {
        assert_eq!(clerk.post(&prints, json!({ "order_ids": wrong })).await.code(), "bad_request");
    }
    assert_eq!(desk.without_staff().get(&list).await.code(), "staff_required");
    let named = "select count(*) from audit a join staff s on s.id = a.staff_id where a.verb = 'ticket_print' and s.name = 'Ada'";
    assert_eq!(scene.count(named).await, 2);
    // What is mailed lets in like paper: it is in the log as well, without the address, and once a key.
    let mail_to = format!("/api/box-office/orders/{}/mail-to", first["id"].as_str().unwrap());
    for _ in 0..2 {
        let asked = json!({ "address": "somebody@example.org", "language": "en" });
        assert_eq!(clerk.post_once(&mail_to, "mailed", asked).await.status, StatusCode::ACCEPTED);
    }
    let mailed = "select count(*) from audit a join staff s on s.id = a.staff_id where a.verb = 'ticket_mail'
                  and s.name = 'Ada' and a.reason = 'to an address that was given' and a.detail like 'order ________'";
    assert_eq!(scene.count(mailed).await, 1);
    scene.close().await;
}
