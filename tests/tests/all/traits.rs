//! What a seat is for one performance, where that is not what the plan says.

use fullhouse::config::Config;
use fullhouse_tests::{desk::Desk, fan::Fan, hub::Hub, nats::Nats, paper::Paper, rows::Rows, scene::Scene, till::Till};
use reqwest::Method;
use serde_json::{Value, json};

struct Window {
    scene: Scene,
    clerk: Till,
    boss: Till,
}

impl Window {
    /// Place 0 is for a wheelchair, 1 for whoever comes with it, and 19 has a pillar in front of it.
    async fn open() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(more: impl FnOnce(&mut Config)) -> Self {
        let rows = Rows { flags: vec![(0, 1), (1, 2), (19, 4)], companions: vec![(1, 0)], ..Rows::new(3, 20) };
        let scene = Scene::without_webhooks(rows, more).await;
        let desk = Desk::open(&scene, "Window 2").await;
        let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
        let boss = desk.sign_in(&scene, "Bob", "supervisor").await;
        Self { scene, clerk, boss }
    }

    fn path(&self) -> String {
        format!("/api/box-office/events/{}/traits", self.scene.event)
    }

    async fn set(&self, body: Value) -> Value {
        self.boss.post(&self.path(), body).await.ok()
    }

    async fn page(&self, query: &str) -> Value {
        self.scene.fan().await.get(&format!("/api/events/{}{query}", self.scene.event)).await.ok()
    }

    async fn said(&self) -> Value {
        self.page("?seats=none").await["seat_traits"].clone()
    }
}

fn said(seat: i32, accessible: bool, companion: bool, restricted_view: bool, note: Option<&str>) -> Value {
    json!({ "seat_no": seat, "accessible": accessible, "companion": companion, "restricted_view": restricted_view,
        "note": note })
}

#[tokio::test]
async fn a_supervisor_says_what_a_seat_is_for_one_performance_and_everybody_sees_it() {
    let window = Window::open().await;
    let Window { scene, clerk, .. } = &window;
    let other = Rows::new(1, 5).open(scene.database.pool()).await;
    let pillar = json!({ "seats": [4, 5], "restricted_view": true, "note": " A loudspeaker hangs in the way ", "reason": "the rig" });
    assert_eq!(clerk.post(&window.path(), pillar.clone()).await.code(), "role_too_low");
    scene.bought(&scene.fan().await, &[5]).await;
    assert_eq!(window.said().await, json!([]), "it is kept for a second by caches, and forgotten by a change");
    assert_eq!(window.set(pillar.clone()).await, json!({ "changed": [4, 5], "sold": [5] }));
    assert_eq!(window.set(pillar).await, json!({ "changed": [], "sold": [] }), "again: they are so");
    let note = Some("A loudspeaker hangs in the way");
    assert_eq!(window.said().await, json!([said(4, false, false, true, note), said(5, false, false, true, note)]));
    let page = window.page("").await;
    let views: Vec<&Value> = page["seats"].as_array().unwrap().iter().map(|seat| &seat["restricted_view"]).collect();
    assert_eq!((views[3], views[4], views[5], views[19]), (&json!(false), &json!(true), &json!(true), &json!(true)));

    // The plan's own can be taken back, and what is as the plan has it is not said.
    assert_eq!(
        window.set(json!({ "seats": [19], "restricted_view": false, "reason": "the stage is elsewhere" })).await["changed"],
        json!([19])
    );
    window.set(json!({ "seats": [4, 5], "restricted_view": false, "note": "", "reason": "the rig was moved" })).await;
    assert_eq!(window.said().await, json!([said(19, false, false, false, None)]));
    let story = clerk.get(&format!("/api/box-office/events/{}/seats/19", scene.event)).await.ok();
    assert_eq!((&story["traits"]["restricted_view"], &story["notes"][0]["verb"]), (&json!(false), &json!("traits")));
    assert_eq!(story["notes"][0]["actor"], "Bob at Window 2");
    assert_eq!(scene.fan().await.get(&format!("/api/events/{other}?seats=none")).await.ok()["seat_traits"], json!([]));

    let log = "select count(*) from audit where verb = 'seat_trait' and actor = 'Bob at Window 2' and reason = 'the rig' \
               and detail like '2 seats (%): restricted view, \"A loudspeaker hangs in the way\"'";
    assert_eq!(scene.count(log).await, 1, "said twice, changed once");
    window.scene.close().await;
}

#[tokio::test]
async fn a_chair_that_makes_room_for_a_wheelchair_is_offered_as_such_at_once_and_by_every_hub() {
    let nats = Nats::start().await;
    let window = Window::with(|config| config.nats.url = nats.url()).await;
    let Window { scene, .. } = &window;
    let mut config = scene.database.config().await;
    config.nats.url = nats.url();
    let other_hub = Hub::start(config).await;
    let there = |fan: Fan| fan.at(&other_hub.url());
    let wheelchair = json!({ "best": { "count": 1, "accessible": 1 } });
    let first = there(scene.fan().await).hold_with(scene.event, wheelchair.clone()).await.ok();
    assert_eq!(first["hold"]["seats"], json!([0]), "the only place there is");
    assert_eq!(there(scene.fan().await).hold_with(scene.event, wheelchair.clone()).await.code(), "none_together");
    window.set(json!({ "seats": [40], "accessible": true, "reason": "a chair is taken out" })).await;
    let second = there(scene.fan().await).hold_with(scene.event, wheelchair).await.ok();
    assert_eq!(second["hold"]["seats"], json!([40]), "the other hub has it in mind too");
    // And nobody is given it who asks for the best seats.
    window.set(json!({ "seats": (20..40).collect::<Vec<_>>(), "accessible": true, "reason": "a row of them" })).await;
    let best = there(scene.fan().await).best(scene.event, 2).await.ok();
    let seats: Vec<i64> = best["hold"]["seats"].as_array().unwrap().iter().filter_map(Value::as_i64).collect();
    assert!(seats.iter().all(|seat| !(20..=40).contains(seat)), "{seats:?}");
    // Nor a lease, which takes what is free.
    let lease = scene
        .till
        .post("/api/box-office/leases", json!({ "event_id": scene.event, "count": 30, "sells_for_s": 60 }))
        .await
        .ok();
    let leased: Vec<i64> = lease["seats"].as_array().unwrap().iter().filter_map(|s| s["seat_no"].as_i64()).collect();
    assert!(leased.len() == 30 && leased.iter().all(|seat| !(20..=40).contains(seat)), "{leased:?}");
    window.scene.close().await;
}

#[tokio::test]
async fn a_ticket_says_what_its_seat_is_now_on_the_page_on_paper_and_of_a_lease() {
    let window = Window::open().await;
    let Window { scene, .. } = &window;
    let (told, note) = ("restricted view · A loudspeaker hangs in the way", "A loudspeaker hangs in the way");
    let fan = scene.fan().await;
    let order = scene.bought(&fan, &[4, 19]).await;
    let path = format!("/api/orders/{}", order["id"].as_str().unwrap());
    let tickets = async || fan.get(&path).await.ok()["order"]["tickets"].clone();
    let paper = async || {
        let pdf = fan.request(Method::GET, &format!("{path}/tickets.pdf")).send().await.expect("the hub answers");
        Paper::new(&pdf.bytes().await.expect("a document")).await
    };
    let before = tickets().await;
    assert_eq!((&before[0]["traits"], &before[0]["note"]), (&json!([]), &Value::Null));
    assert_eq!(before[1]["traits"], json!(["restricted_view"]), "as the plan has it");
    let text = paper().await.text().await;
    assert!(text.contains("restricted view") && !text.contains(note), "{text}");

    window.set(json!({ "seats": [4, 5], "restricted_view": true, "note": note, "reason": "the rig" })).await;
    let now = tickets().await;
    assert_eq!((&now[0]["traits"], &now[0]["note"]), (&json!(["restricted_view"]), &json!(note)));
    let paper = paper().await;
    let text = paper.text().await;
    assert!(text.contains(told), "{text}");
    let codes: Vec<&str> = now.as_array().unwrap().iter().filter_map(|ticket| ticket["code"].as_str()).collect();
    assert_eq!(paper.codes().await, codes, "and a door reads it as before");

    let lease = json!({ "event_id": scene.event, "seats": [5], "sells_for_s": 60 });
    let place = scene.till.post("/api/box-office/leases", lease).await.ok()["seats"][0]["place"].clone();
    assert_eq!((&place["traits"], &place["note"]), (&json!(["restricted_view"]), &json!(note)));
    window.scene.close().await;
}

#[tokio::test]
async fn a_companions_seat_goes_with_its_place() {
    let window = Window::open().await;
    let Window { scene, .. } = &window;
    let fan = scene.fan().await;
    assert_eq!(fan.hold(scene.event, &[1]).await.code(), "companion_needs_accessible");
    let gone = window.set(json!({ "seats": [0], "accessible": false, "reason": "a chair is put there" })).await;
    assert_eq!(gone["changed"], json!([0, 1]));
    assert_eq!(window.said().await, json!([said(0, false, false, false, None), said(1, false, false, false, None)]));
    fan.hold(scene.event, &[1]).await.ok();
    assert_eq!(
        window.set(json!({ "seats": [0], "accessible": true, "reason": "as it was" })).await["changed"],
        json!([0, 1])
    );
    assert_eq!(window.said().await, json!([]));
    assert_eq!(scene.fan().await.hold(scene.event, &[1]).await.code(), "seats_unavailable", "it stayed the fan's");
    window.scene.close().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let window = Window::open().await;
    let Window { boss, .. } = &window;
    for (body, code) in [
        (json!({ "seats": [1], "reason": "x" }), "bad_request"),
        (json!({ "seats": [1], "restricted_view": true, "reason": " " }), "bad_request"),
        (json!({ "seats": [1], "note": "x".repeat(121), "reason": "x" }), "bad_request"),
        (json!({ "seats": [1], "note": "a\nb", "reason": "x" }), "bad_request"),
        (json!({ "seats": [1], "note": "\u{200b}", "reason": "x" }), "bad_request"),
        (json!({ "seats": [], "restricted_view": true, "reason": "x" }), "seats_empty"),
        (json!({ "seats": [1, 1], "restricted_view": true, "reason": "x" }), "seats_repeated"),
        (json!({ "seats": [1, 60], "restricted_view": true, "reason": "x" }), "seat_unknown"),
        (json!({ "seats": (0..1_001).collect::<Vec<_>>(), "restricted_view": true, "reason": "x" }), "seats_too_many"),
        (json!({ "seats": [1], "restricted_view": "yes", "reason": "x" }), "json_invalid"),
        (json!({ "seats": [1], "price": 1, "reason": "x" }), "json_invalid"),
    ] {
        assert_eq!(boss.post(&window.path(), body.clone()).await.code(), code, "{body}");
    }
    let nowhere = json!({ "seats": [1], "restricted_view": true, "reason": "x" });
    assert_eq!(boss.post("/api/box-office/events/999999/traits", nowhere).await.code(), "event_unknown");
    assert_eq!(window.said().await, json!([]));
    window.scene.close().await;
}
