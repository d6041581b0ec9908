//! A voucher: seats for nothing, promised beforehand by a supervisor, taken by any clerk, once.

use chrono::TimeDelta;
use fullhouse_tests::{
    desk::Desk,
    fan::Answer,
    rows::Rows,
    scene::{Scene, seats},
    till::Till,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

const VOUCHERS: &str = "/api/box-office/vouchers";
const LOOK: &str = "/api/box-office/vouchers/look";

struct Window {
    scene: Scene,
    clerk: Till,
    boss: Till,
}

impl Window {
    async fn open() -> Self {
        let scene = Scene::without_webhooks(Rows::new(3, 20), |_| {}).await;
        let desk = Desk::open(&scene, "Window 2").await;
        let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
        let boss = desk.sign_in(&scene, "Bob", "supervisor").await;
        Self { scene, clerk, boss }
    }

    fn asked(&self, seats_max: i32) -> Value {
        json!({ "event_id": self.scene.event, "seats_max": seats_max, "recipient": "The Gazette", "reason": "press" })
    }

    async fn made(&self, seats_max: i32) -> Value {
        self.boss.post_once(VOUCHERS, &uuid::Uuid::new_v4().to_string(), self.asked(seats_max)).await.ok()
    }

    async fn listed(&self) -> Vec<Value> {
        let listed = self.clerk.get(&format!("/api/box-office/events/{}/vouchers", self.scene.event)).await.ok();
        listed["vouchers"].as_array().expect("a list").clone()
    }

    async fn held(&self, seats: &[i32]) -> Value {
        self.clerk.hold(self.scene.event, seats).await.ok()
    }

    async fn close(self) {
        self.scene.close().await;
    }
}

async fn pay(till: &Till, held: &Value, code: &Value) -> Answer {
    let body = json!({
        "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tender": { "kind": "voucher", "code": code },
    });
    till.post("/api/box-office/sales", body).await
}

#[tokio::test]
async fn a_voucher_gives_its_seats_to_whoever_brings_it_and_needs_no_supervisor_then() {
    let window = Window::open().await;
    let Window { scene, clerk, boss } = &window;
    assert_eq!(clerk.post(VOUCHERS, window.asked(2)).await.code(), "role_too_low");
    let made = boss.post_once(VOUCHERS, "one", window.asked(2)).await.ok();
    let voucher = &made["voucher"];
    assert_eq!((&voucher["state"], &voucher["made_by"]), (&json!("open"), &json!("Bob at Window 2")));
    assert_eq!(boss.post_once(VOUCHERS, "one", window.asked(3)).await.code(), "idempotency_mismatch");
    let again = boss.post_once(VOUCHERS, "one", window.asked(2)).await.ok();
    assert_eq!(again["voucher"]["voucher_id"], voucher["voucher_id"], "the answer got lost: it is the same one");
    assert_eq!(
        clerk.post(LOOK, json!({ "code": made["code"] })).await.code(),
        "voucher_unknown",
        "the lost code is dead"
    );
    let code = again["code"].as_str().expect("a code");
    let typed = code.to_lowercase().replace('-', " ");
    let looked = clerk.post(LOOK, json!({ "code": typed })).await.ok();
    assert_eq!((&looked["seats_max"], &looked["recipient"]), (&json!(2), &json!("The Gazette")));

    let held = window.held(&[0, 1]).await;
    let sold = pay(clerk, &held, &json!(typed)).await.ok();
    assert_eq!((&sold["order"]["state"], &sold["change_minor"]), (&json!("confirmed"), &json!(0)));
    assert_eq!(sold["order"]["tickets"].as_array().map(Vec::len), Some(2));
    assert_eq!(pay(clerk, &held, &json!(code)).await.ok()["order"]["id"], sold["order"]["id"], "asked for again");
    let other = window.held(&[4]).await;
    assert_eq!(pay(clerk, &other, &json!(code)).await.code(), "voucher_used");
    let listed = window.listed().await;
    assert_eq!((&listed[0]["state"], &listed[0]["order_code"]), (&json!("used"), &sold["order"]["code"]));
    assert!(!listed[0].to_string().contains(code), "its code is nobody's to read again");
    assert_eq!(
        scene
            .count("select count(*) from audit where verb in ('voucher_make', 'sale_voucher') and staff_id is not null")
            .await,
        2
    );
    window.close().await;
}

#[tokio::test]
async fn what_it_gave_comes_back_as_nothing_and_is_no_money_in_the_drawer() {
    let window = Window::open().await;
    let Window { scene, clerk, boss } = &window;
    clerk.post("/api/box-office/shifts", json!({ "float_minor": 100, "currency": "EUR" })).await.ok();
    let code = window.made(2).await["code"].clone();
    let sold = pay(clerk, &window.held(&[0, 1]).await, &code).await.ok()["order"].clone();
    let x = clerk.get("/api/box-office/shifts/current").await.ok();
    assert_eq!(x["expected_minor"], json!(100));
    assert_eq!(x["tenders"], json!([{ "kind": "voucher", "count": 1, "amount_minor": 0 }]));
    boss.refund(&sold, "back", seats(&[0, 1], "on_sale")).await.ok();
    assert_eq!(scene.status(0).await, 0);
    assert_eq!(
        clerk.get("/api/box-office/shifts/current").await.ok()["expected_minor"],
        json!(100),
        "nothing to hand over"
    );
    let held = window.held(&[0]).await;
    assert_eq!(pay(clerk, &held, &code).await.code(), "voucher_used", "whoever is to come again gets another one");
    window.close().await;
}

#[tokio::test]
async fn a_voucher_pays_for_nothing_but_what_it_is_for() {
    let window = Window::open().await;
    let Window { scene, clerk, boss } = &window;
    let now = scene.clock.now().await;
    for (change, code) in [
        (json!({ "seats_max": 0 }), "bad_request"),
        (json!({ "seats_max": 51 }), "bad_request"),
        (json!({ "recipient": " " }), "bad_request"),
        (json!({ "recipient": "\u{200b}\u{2060}" }), "bad_request"),
        (json!({ "recipient": "a\u{7}b" }), "bad_request"),
        (json!({ "recipient": "x".repeat(201) }), "bad_request"),
        (json!({ "reason": "" }), "bad_request"),
        (json!({ "event_id": 999 }), "event_unknown"),
        (json!({ "valid_until": now }), "until_invalid"),
        (json!({ "valid_until": now + TimeDelta::days(4_000) }), "until_invalid"),
        (json!({ "more": 1 }), "json_invalid"),
    ] {
        let mut asked = window.asked(2);
        asked.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        assert_eq!(boss.post(VOUCHERS, asked).await.code(), code, "{change}");
    }
    assert_eq!(window.listed().await, Vec::<Value>::new(), "nothing was made");

    let held = window.held(&[0, 1, 2]).await;
    let small = window.made(2).await;
    assert_eq!(pay(clerk, &held, &small["code"]).await.code(), "voucher_mismatch");
    for nobodys in ["", "AAAAA-AAAAA", "U", "x".repeat(5_000).as_str()] {
        assert_eq!(pay(clerk, &held, &json!(nobodys)).await.code(), "voucher_unknown", "{nobodys}");
    }
    let withdraw = format!("{VOUCHERS}/{}/withdraw", small["voucher"]["voucher_id"].as_str().unwrap());
    let reason = json!({ "reason": "they can't come" });
    assert_eq!(clerk.post(&withdraw, reason.clone()).await.code(), "role_too_low");
    for _ in 0..2 {
        assert_eq!(boss.post(&withdraw, reason.clone()).await.status, StatusCode::NO_CONTENT);
    }
    let one = window.held(&[5]).await;
    assert_eq!(pay(clerk, &one, &small["code"]).await.code(), "voucher_over");

    let mut asked = window.asked(3);
    asked["valid_until"] = json!(now + TimeDelta::minutes(2));
    let short = boss.post(VOUCHERS, asked).await.ok();
    scene.clock.advance(TimeDelta::minutes(2)).await;
    assert_eq!(pay(clerk, &held, &short["code"]).await.code(), "voucher_over");
    let states: Vec<_> = window.listed().await.iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, [json!("over"), json!("withdrawn")]);
    assert_eq!(scene.count("select count(*) from tender").await, 0);
    assert_eq!(scene.status(0).await, 1, "the seats are held as they were");
    // A kiosk has nothing to do with them.
    let kiosk = Till::enrol_as("kiosk", &scene.database, &scene.hub.url(), "Foyer").await;
    assert_eq!(kiosk.post(LOOK, json!({ "code": short["code"] })).await.code(), "forbidden");
    window.close().await;
}

#[tokio::test]
async fn a_voucher_that_two_counters_take_at_once_pays_at_one_of_them() {
    let window = Window::open().await;
    let there = Desk::open(&window.scene, "Window 3").await.sign_in_as("Ada").await;
    let mut both = 0;
    for round in 0..8 {
        let here_held = window.held(&[round * 2]).await;
        let there_held = there.hold(window.scene.event, &[round * 2 + 1]).await.ok();
        let (one, other) = (window.made(1).await["code"].clone(), window.made(1).await["code"].clone());
        let (a, b) = tokio::join!(pay(&window.clerk, &here_held, &one), pay(&there, &there_held, &one));
        let refused = match (a.status, b.status) {
            (StatusCode::OK, _) => b,
            (_, StatusCode::OK) => a,
            _ => panic!("nobody got it: {a:?}, {b:?}"),
        };
        assert_eq!(refused.code(), "voucher_used");
        // The control: with a voucher each, both are sold.
        let held = [window.held(&[20 + round * 2]).await, there.hold(window.scene.event, &[21 + round * 2]).await.ok()];
        let third = window.made(1).await["code"].clone();
        let (a, b) = tokio::join!(pay(&window.clerk, &held[0], &other), pay(&there, &held[1], &third));
        both += i32::from(a.status == StatusCode::OK && b.status == StatusCode::OK);
    }
    assert_eq!(both, 8);
    window.close().await;
}
