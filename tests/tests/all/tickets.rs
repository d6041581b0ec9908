//! Tickets: on paper in any script, checked by a door alone, reissued, printed once, forgotten in the end.

use fullhouse::retention::{self, Round, ShredError};
use fullhouse_tests::{
    binary::path,
    clock::Clock,
    database::Database,
    fan::{self, Fan},
    hub::Hub,
    paper::Paper,
    provider::order,
    rows::Rows,
    run::run,
    till::Till,
};
use reqwest::{Method, header};
use serde_json::{Value, json};
use tokio::process::Command;

struct Scene {
    database: Database,
    clock: Clock,
    hub: Hub,
    event: i64,
}

impl Scene {
    /// An event that costs nothing, so that an order is one request.
    async fn open() -> Self {
        let (database, clock) = Database::with_clock().await;
        let event = Rows { price_minor: 0, ..Rows::new(4, 10) }.open(database.pool()).await;
        let hub = Hub::start(database.config().await).await;
        Self { database, clock, hub, event }
    }

    async fn fan(&self) -> Fan {
        fan::many(&self.database, &self.hub.url(), 1).await.remove(0)
    }

    async fn till(&self) -> Till {
        Till::enrol(&self.database, &self.hub.url(), "Till").await
    }

    async fn take(&self, fan: &Fan, seats: &[i32]) -> Value {
        let open = order(fan, self.event, seats).await;
        let id = open["id"].as_str().expect("an id").to_owned();
        fan.post(&format!("/api/orders/{id}/claim"), Value::Null).await.ok()["order"].clone()
    }

    async fn rename(&self, fan: &Fan, name: &str) {
        let done = sqlx::query("update account set name = $2 where email = $1").bind(&fan.email).bind(name);
        done.execute(self.database.pool()).await.expect("an account");
    }

    async fn close(self) {
        self.hub.stop().await;
        self.database.finish().await;
    }
}

async fn pdf(fan: &Fan, order: &Value) -> reqwest::Response {
    let id = order["id"].as_str().expect("an id");
    fan.request(Method::GET, &format!("/api/orders/{id}/tickets.pdf")).send().await.expect("the hub answers")
}

fn codes(order: &Value) -> Vec<&str> {
    order["tickets"].as_array().expect("tickets").iter().map(|t| t["code"].as_str().expect("a code")).collect()
}

/// B69: names of every script are on the paper, and the square says what it should.
#[tokio::test]
async fn a_page_a_ticket_with_names_of_any_script_and_a_square_that_scans() {
    let scene = Scene::open().await;
    let names = ["Łukasz Žižek", "東京 太郎", "홍길동", "محمد", "Zoë 🎟"];
    for (seat, name) in names.iter().enumerate() {
        let fan = scene.fan().await;
        scene.rename(&fan, name).await;
        let event = format!("{name} live");
        sqlx::query("update event set name = $1").bind(&event).execute(scene.database.pool()).await.unwrap();
        let order = scene.take(&fan, &[seat as i32 * 2, seat as i32 * 2 + 1]).await;
        let answer = pdf(&fan, &order).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/pdf");
        assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store");
        assert!(answer.headers().get("fullhouse-missing-glyphs").is_none(), "{name}: {:?}", answer.headers());
        let paper = Paper::new(&answer.bytes().await.unwrap()).await;
        assert_eq!(paper.pages().await, 2);
        let text = paper.text().await;
        // Word by word: a picture is higher than letters, so Poppler gives it a line of its own.
        for word in name.split(' ') {
            assert!(text.matches(word).count() >= 4, "{word} is not in title and name of both pages: {text}");
        }
        for words in ["Test Hall, Berlin", "Stalls", "EUR 0.00", "Europe/Berlin", order["code"].as_str().unwrap()] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        assert_eq!(paper.codes().await, codes(&order), "{name}");
    }
    scene.close().await;
}

#[tokio::test]
async fn a_letter_that_nobody_has_is_named_and_is_told() {
    let scene = Scene::open().await;
    let fan = scene.fan().await;
    scene.rename(&fan, "A\u{f0000}B").await;
    let order = scene.take(&fan, &[1]).await;
    let answer = pdf(&fan, &order).await;
    assert_eq!(answer.headers()["fullhouse-missing-glyphs"], "U+F0000");
    let paper = Paper::new(&answer.bytes().await.unwrap()).await;
    assert!(paper.text().await.contains("A[U+F0000]B"), "its number stands in its place");
    assert_eq!(paper.codes().await, codes(&order));
    scene.close().await;
}

/// Whoever pays knows before what will stand on their tickets.
#[tokio::test]
async fn a_name_that_no_font_has_is_told_before_it_is_paid_for() {
    let scene = Scene::open().await;
    let (fan, other) = (scene.fan().await, scene.fan().await);
    scene.rename(&fan, "A\u{f0000}B").await;
    scene.rename(&other, "Łukasz Žižek").await;
    let open = order(&fan, scene.event, &[1]).await;
    assert_eq!(open["name_on_tickets"], "A[U+F0000]B", "at once, with the price");
    let address = format!("/api/orders/{}", open["id"].as_str().unwrap());
    assert_eq!(fan.get(&address).await.ok()["order"]["name_on_tickets"], "A[U+F0000]B", "and whenever it is looked at");
    assert_eq!(order(&other, scene.event, &[2]).await["name_on_tickets"], Value::Null);
    // What was told is what is printed; and it is no news then.
    let taken = fan.post(&format!("{address}/claim"), Value::Null).await.ok()["order"].clone();
    assert_eq!(taken["name_on_tickets"], Value::Null);
    let paper = Paper::new(&pdf(&fan, &taken).await.bytes().await.unwrap()).await;
    assert!(paper.text().await.contains("A[U+F0000]B"));
    // A house that prints no names says nothing of them.
    sqlx::query("update event set ticket_template = '{\"hide\": [\"holder\"]}'")
        .execute(scene.database.pool())
        .await
        .unwrap();
    assert_eq!(order(&fan, scene.event, &[3]).await["name_on_tickets"], Value::Null);
    scene.close().await;
}

#[tokio::test]
async fn tickets_are_printed_for_their_owner_and_at_the_counter_only() {
    let scene = Scene::open().await;
    let (fan, other) = (scene.fan().await, scene.fan().await);
    let order = scene.take(&fan, &[1]).await;
    assert_eq!(pdf(&other, &order).await.status(), 404);
    assert_eq!(pdf(&Fan::stranger(&scene.hub.url()), &order).await.status(), 401);
    let address = format!("/api/box-office/orders/{}/tickets.pdf", order["id"].as_str().unwrap());
    assert_eq!(fan.get(&address).await.code(), "not_signed_in");
    let till = scene.till().await;
    assert_eq!(till.get(&address).await.status, 200);
    let open = fullhouse_tests::provider::order(&fan, scene.event, &[2]).await;
    assert_eq!(
        fan.get(&format!("/api/orders/{}/tickets.pdf", open["id"].as_str().unwrap())).await.code(),
        "tickets_not_ready"
    );
    scene.close().await;
}

/// A door with files alone: `fullhouse ticket verify`.
async fn door(code: &str, keys: &Value, dead: &Value) -> (bool, String) {
    let (exit, text) = door_of(code, keys, dead, None).await;
    (exit == 0, text)
}

/// The same at the door of one event. Exit code, and what was said.
async fn door_of(code: &str, keys: &Value, dead: &Value, event: Option<&Value>) -> (i32, String) {
    let folder = run().await.directory("door");
    std::fs::write(folder.join("keys.json"), keys.to_string()).unwrap();
    std::fs::write(folder.join("dead.json"), dead.to_string()).unwrap();
    let mut args = vec!["ticket", "verify", code, "--keys", "keys.json", "--dead", "dead.json"];
    if let Some(event) = event {
        std::fs::write(folder.join("event.json"), event.to_string()).unwrap();
        args.extend(["--event", "event.json"]);
    }
    let done = Command::new(path()).args(args).current_dir(&folder).output().await.expect("the binary runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code().expect("it ended by itself"), text)
}

#[tokio::test]
async fn a_door_without_a_network_knows_the_genuine_the_dead_and_the_unpaid() {
    let scene = Scene::open().await;
    let (fan, till) = (scene.fan().await, scene.till().await);
    let first = scene.take(&fan, &[1]).await;
    // Another key: new tickets have it, the old ones stay good.
    let mut tx = scene.database.pool().begin().await.unwrap();
    let now = scene.clock.now().await;
    fullhouse::ticket::key::rotate(&mut tx, now).await.unwrap();
    tx.commit().await.unwrap();
    let second = scene.take(&fan, &[2, 3]).await;
    let keys = fan.get("/api/ticket-keys").await.ok();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    assert!(keys["keys"][0]["retired_at"].is_null() && !keys["keys"][1]["retired_at"].is_null());
    assert!(!keys.to_string().contains("secret"));

    let list = format!("/api/box-office/events/{}/dead-tickets", scene.event);
    assert_eq!(fan.get(&list).await.code(), "not_signed_in");
    let none = till.get(&list).await.ok();
    let (old, new) = (codes(&first)[0], codes(&second));
    for (code, key) in [(old, "key 1"), (new[0], "key 2")] {
        let (good, said) = door(code, &keys, &none).await;
        assert!(good && said.contains("GENUINE") && said.contains(key), "{said}");
    }
    // A list of keys from before: not a forgery, and not good either.
    let (exit, said) = door_of(new[0], &json!({ "keys": [keys["keys"][1]] }), &none, None).await;
    assert!(exit == 3 && said.contains("NOT DECIDED") && said.contains("fetch the list"), "{exit} {said}");
    // Files that are none, or another event's: nobody is turned away for that.
    let (exit, said) = door_of(new[0], &json!({}), &none, None).await;
    assert!(exit == 3 && said.contains("keys.json"), "{exit} {said}");
    let mut others = none.clone();
    others["event_id"] = json!(scene.event + 1);
    let (exit, said) = door_of(new[0], &keys, &others, None).await;
    assert!(exit == 3 && said.contains("the dead of event"), "{exit} {said}");
    // The door of an event names the seat, and turns other events' tickets away.
    let mut page = fan.get(&format!("/api/events/{}", scene.event)).await.ok();
    let (exit, said) = door_of(new[0], &keys, &none, Some(&page)).await;
    let seat = &page["seats"][2];
    let named = format!("row {}, seat {}", seat["row"].as_str().unwrap(), seat["number"].as_str().unwrap());
    assert!(exit == 0 && said.contains(&named), "{exit} {said}");
    page["event"]["id"] = json!(scene.event + 1);
    let (exit, said) = door_of(new[0], &keys, &none, Some(&page)).await;
    assert!(exit == 1 && said.contains("OTHER EVENT"), "{exit} {said}");
    let mut forged = old.to_owned();
    forged.replace_range(50..51, if &old[50..51] == "A" { "B" } else { "A" });
    assert!(!door(&forged, &keys, &none).await.0);

    // Dead: reissued. Not paid yet: its money is on its way.
    let dead_id = second["tickets"][0]["id"].as_str().unwrap();
    let reissued =
        till.post(&format!("/api/box-office/tickets/{dead_id}/reissue"), json!({ "reason": "lost" })).await.ok();
    let pending_id = second["tickets"][1]["id"].as_str().unwrap();
    sqlx::query("update ticket set state = 'pending' where id = $1::uuid")
        .bind(pending_id)
        .execute(scene.database.pool())
        .await
        .unwrap();
    let since = none["since"].as_str().unwrap();
    let answer = till.get(&format!("{list}?since={since}")).await;
    let etag = answer.headers[header::ETAG].to_str().unwrap().to_owned();
    let dead = answer.ok();
    assert_eq!((&dead["dead"], &dead["pending"]), (&json!([dead_id]), &json!([pending_id])));
    let (good, said) = door(new[0], &keys, &dead).await;
    assert!(!good && said.contains("DEAD"), "{said}");
    let (good, said) = door(new[1], &keys, &dead).await;
    assert!(!good && said.contains("NOT PAID"), "{said}");
    assert!(door(reissued["code"].as_str().unwrap(), &keys, &dead).await.0);
    assert_eq!(till.get_unless(&format!("{list}?since={since}"), &etag).await.status, 304);
    // Later, only what died since; asked anew, all of them.
    scene.clock.advance(chrono::TimeDelta::minutes(10)).await;
    let later = till.get(&list).await.ok();
    assert_eq!(later["dead"], json!([dead_id]));
    assert_eq!(till.get(&format!("{list}?since={}", later["since"].as_str().unwrap())).await.ok()["dead"], json!([]));
    assert_eq!(till.get("/api/box-office/events/999999/dead-tickets").await.code(), "event_unknown");
    sqlx::query("update ticket set state = 'valid' where id = $1::uuid")
        .bind(pending_id)
        .execute(scene.database.pool())
        .await
        .unwrap();
    scene.close().await;
}

/// O9: the old code dies, one new one takes its place, whoever asks how often.
#[tokio::test]
async fn a_reissued_ticket_has_one_successor() {
    let scene = Scene::open().await;
    let (fan, till) = (scene.fan().await, scene.till().await);
    let order = scene.take(&fan, &[1, 2]).await;
    let id = order["tickets"][0]["id"].as_str().unwrap();
    let address = format!("/api/box-office/tickets/{id}/reissue");
    assert_eq!(till.post(&address, json!({ "reason": "  " })).await.code(), "bad_request");
    let ten = (0..10).map(|_| till.post(&address, json!({ "reason": "left on the train" })));
    let answers = futures_util::future::join_all(ten).await;
    let answers: Vec<Value> = answers.into_iter().map(fan::Answer::ok).collect();
    assert!(answers.iter().all(|a| *a == answers[0]), "{answers:?}");
    assert_eq!(answers[0]["replaces"], id);
    let now = fan.order(order["id"].as_str().unwrap()).await.ok()["order"].clone();
    let states: Vec<(&Value, &Value)> =
        now["tickets"].as_array().unwrap().iter().map(|t| (&t["code"], &t["state"])).collect();
    assert_eq!(states.len(), 3);
    assert!(states.contains(&(&Value::Null, &json!("void"))), "a dead code is shown to nobody");
    assert!(states.contains(&(&answers[0]["code"], &json!("valid"))));
    let paper = Paper::new(&pdf(&fan, &order).await.bytes().await.unwrap()).await;
    assert_eq!(paper.codes().await, [answers[0]["code"].as_str().unwrap(), codes(&order)[1]]);
    let ledger = till.get(&format!("/api/box-office/orders/{}/prints", order["id"].as_str().unwrap())).await.ok();
    assert_eq!(ledger["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&ledger["jobs"][0]["state"], &ledger["jobs"][0]["reason"]),
        (&json!("reissued"), &json!("left on the train"))
    );
    let mails: i64 = sqlx::query_scalar("select count(*) from mail where kind = 'reissued'")
        .fetch_one(scene.database.pool())
        .await
        .unwrap();
    assert_eq!(mails, 1);
    assert_eq!(
        till.post(&format!("/api/box-office/tickets/{}/reissue", uuid::Uuid::new_v4()), json!({ "reason": "x" }))
            .await
            .code(),
        "ticket_unknown"
    );
    sqlx::query("update ticket set state = 'void', voided_at = db_clock() where id = $1::uuid")
        .bind(answers[0]["ticket_id"].as_str().unwrap())
        .execute(scene.database.pool())
        .await
        .unwrap();
    assert_eq!(till.post(&address, json!({ "reason": "x" })).await.code(), "ticket_not_valid");
    sqlx::query("update ticket set state = 'valid', voided_at = null where id = $1::uuid")
        .bind(answers[0]["ticket_id"].as_str().unwrap())
        .execute(scene.database.pool())
        .await
        .unwrap();
    scene.close().await;
}

/// B67: five tickets, the paper runs out at the third, somebody clicks again.
#[tokio::test]
async fn after_paper_out_it_is_known_what_came_out() {
    let scene = Scene::open().await;
    let (fan, till) = (scene.fan().await, scene.till().await);
    let order = scene.take(&fan, &[0, 1, 2, 3, 4]).await;
    let prints = format!("/api/box-office/orders/{}/prints", order["id"].as_str().unwrap());
    let clicks = futures_util::future::join_all((0..2).map(|_| till.post(&prints, json!({})))).await;
    let (done, refused): (Vec<_>, Vec<_>) = clicks.into_iter().partition(|a| a.status.is_success());
    assert_eq!((done.len(), refused.len()), (1, 1), "two clicks print once");
    assert_eq!(refused[0].code(), "ticket_printed");
    let jobs = done.into_iter().next().unwrap().ok()["jobs"].as_array().unwrap().clone();
    assert_eq!(jobs.len(), 5);
    let report = async |job: &Value, state: &str| {
        till.post(&format!("/api/box-office/prints/{}", job["id"].as_str().unwrap()), json!({ "state": state })).await
    };
    for (job, state) in [(&jobs[0], "printed"), (&jobs[1], "printed"), (&jobs[2], "failed"), (&jobs[3], "failed")] {
        assert_eq!(report(job, state).await.status, 204);
        assert_eq!(report(job, state).await.status, 204, "said twice is said once");
    }
    assert_eq!(report(&jobs[0], "failed").await.code(), "ticket_printed");
    assert_eq!(report(&jobs[4], "sent").await.code(), "bad_request");
    // The third and fourth certainly did not come out; the fifth may lie in the printer's buffer.
    let ticket = |job: &Value| job["ticket_id"].clone();
    let rest = till.post(&prints, json!({})).await.ok()["jobs"].clone();
    let rest: Vec<Value> = rest.as_array().unwrap().iter().map(ticket).collect();
    assert_eq!(rest, [ticket(&jobs[2]), ticket(&jobs[3])], "what is not on paper, and no more");
    let fifth = till.post(&prints, json!({ "ticket_ids": [ticket(&jobs[4])] })).await;
    assert_eq!(fifth.body["tickets"], json!([ticket(&jobs[4])]));
    let id = jobs[4]["ticket_id"].as_str().unwrap();
    let new = till.post(&format!("/api/box-office/tickets/{id}/reissue"), json!({ "reason": "paper out" })).await.ok();
    till.post(&prints, json!({ "ticket_ids": [new["ticket_id"]] })).await.ok();
    assert_eq!(till.post(&prints, json!({ "ticket_ids": [id] })).await.code(), "ticket_not_valid");
    let ledger = till.get(&prints).await.ok();
    assert_eq!(ledger["jobs"].as_array().unwrap().len(), 5 + 2 + 1 + 1);
    scene.close().await;
}

/// Nobody looks for a chair where there is none.
#[tokio::test]
async fn a_place_to_stand_is_called_so_on_orders_tickets_and_paper() {
    let scene = Scene::open().await;
    let stands = "update plan_seat set flags = 8, row_label = '' where seat_no = 3";
    sqlx::query(stands).execute(scene.database.pool()).await.unwrap();
    let fan = scene.fan().await;
    let order = scene.take(&fan, &[3, 4]).await;
    for of in ["lines", "tickets"] {
        let standing: Vec<&Value> = order[of].as_array().unwrap().iter().map(|one| &one["standing"]).collect();
        assert_eq!(standing, [&json!(true), &json!(false)], "{of}");
    }
    let text = Paper::new(&pdf(&fan, &order).await.bytes().await.unwrap()).await.text().await;
    assert_eq!((text.matches("Standing place").count(), text.matches("Seat").count()), (1, 1), "{text}");
    scene.close().await;
}

#[tokio::test]
async fn tickets_speak_the_language_that_their_owner_chose() {
    let scene = Scene::open().await;
    let stranger = Fan::stranger(&scene.hub.url());
    let account = json!({ "email": stranger.email, "name": "A", "password": fan::PASSWORD });
    let answer = stranger
        .request(Method::POST, "/api/accounts")
        .header(header::ACCEPT_LANGUAGE, "fr, ko-KR;q=0.8, en;q=0.5")
        .json(&account);
    stranger.send(answer).await.ok();
    let fan = Fan::sign_in(&scene.hub.url(), &stranger.email, fan::PASSWORD).await;
    let order = scene.take(&fan, &[1]).await;
    let text = async || Paper::new(&pdf(&fan, &order).await.bytes().await.unwrap()).await.text().await;
    assert!(text().await.contains("주문 번호"));
    let put = |code: &str| fan.request(Method::PUT, "/api/account/language").json(&json!({ "language": code }));
    assert_eq!(fan.send(put("ja")).await.status, 204);
    assert!(text().await.contains("注文番号"));
    assert_eq!(fan.send(put("tlh")).await.code(), "account_invalid");
    scene.close().await;
}

/// X6: the books stay, the person does not.
#[tokio::test]
async fn tickets_look_as_their_event_says_and_can_be_seen_before() {
    let scene = Scene::open().await;
    let (fan, till, pool) = (scene.fan().await, scene.till().await, scene.database.pool());
    let order = scene.take(&fan, &[1]).await;
    let plain = Paper::new(&pdf(&fan, &order).await.bytes().await.unwrap()).await.text().await;
    assert!(plain.contains("Holder") && plain.contains("One entry"), "{plain}");
    let look = serde_json::json!({ "accent": "#5b2a86", "hide": ["holder"],
        "note": { "en": "Come by tram" }, "terms": { "en": "House rules hold" } });
    let mut logo = Vec::new();
    let mut encoder = png::Encoder::new(&mut logo, 64, 32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&[90; 64 * 32]).unwrap();
    sqlx::query("update event set ticket_template = $1, ticket_logo = $2")
        .bind(look)
        .bind(logo)
        .execute(pool)
        .await
        .unwrap();
    let paper = Paper::new(&pdf(&fan, &order).await.bytes().await.unwrap()).await;
    let text = paper.text().await;
    assert!(text.contains("Come by tram") && text.contains("House rules hold"), "{text}");
    assert!(!text.contains("Holder") && !text.contains("One entry"), "{text}");
    assert_eq!(paper.codes().await, codes(&order), "it scans all the same");

    // Before anything is sold: by staff, as a ticket that is none.
    let path = format!("/api/staff/events/{}/ticket-preview.pdf", scene.event);
    assert_eq!(fan.get(&path).await.code(), "forbidden");
    assert_eq!(till.get(&format!("{path}?language=fr")).await.code(), "bad_request");
    assert_eq!(till.get("/api/staff/events/99999/ticket-preview.pdf").await.code(), "event_unknown");
    let mut db = pool.acquire().await.unwrap();
    let sample =
        fullhouse::ticket::sheet::sample(&mut db, scene.event, fullhouse::words::Language::Ja).await.unwrap().unwrap();
    drop(db);
    let fonts = fullhouse_paper::fonts::Fonts::new(&["/usr/share/fonts".to_owned()]);
    let shown = fullhouse::ticket::pdf::print(&fonts, &sample).unwrap();
    let shown = Paper::new(&shown.pdf).await;
    assert_eq!(shown.codes().await, ["PREVIEW: THIS IS NO TICKET"]);
    assert!(
        shown.text().await.contains("Come by tram"),
        "who reads Japanese gets the English note, where there is no other"
    );
    scene.close().await;
}

#[tokio::test]
async fn people_are_forgotten_some_time_after_their_last_event_and_only_once() {
    let scene = Scene::open().await;
    let pool = scene.database.pool();
    let (fan, regular, owed) = (scene.fan().await, scene.fan().await, scene.fan().await);
    let order = scene.take(&fan, &[1]).await;
    scene.take(&regular, &[2]).await;
    let unpaid = scene.take(&owed, &[3]).await;
    sqlx::query("insert into order_note (order_id, verb, text, actor, created_at) values ($1::uuid, 'note', 'Ana called', 'Window 1', db_clock())")
        .bind(order["id"].as_str())
        .execute(pool)
        .await
        .unwrap();
    let nothing = Round::default();
    assert_eq!(retention::forget_old(pool, 365).await.unwrap(), nothing, "the event is yet to come");
    scene.clock.advance(chrono::TimeDelta::days(404)).await;
    assert_eq!(retention::forget_old(pool, 365).await.unwrap(), nothing, "a year after its end, not before");
    scene.clock.advance(chrono::TimeDelta::days(3)).await;
    // One was here the other day, and money of another is in doubt.
    sqlx::query(
        "insert into session (token_hash, account_id, created_at, expires_at)
                 select sha256('x'), id, db_clock(), db_clock() + interval '1 day' from account where email = $1",
    )
    .bind(&regular.email)
    .execute(pool)
    .await
    .unwrap();
    sqlx::query("with t as (insert into tender (id, order_id, kind, amount_minor, created_at) values (gen_random_uuid(), $1::uuid, 'card', 5, db_clock()) returning id)
                 insert into attempt (id, order_id, tender_id, amount_minor, currency, payment_method, state, hold_expires_at, created_at, updated_at)
                 select gen_random_uuid(), $1::uuid, id, 5, 'EUR', 'x', 'auth_unknown', db_clock(), db_clock(), db_clock() from t")
        .bind(unpaid["id"].as_str())
        .execute(pool)
        .await
        .unwrap();
    let before: (i64, i64) =
        sqlx::query_as("select count(*), sum(total_minor)::bigint from \"order\"").fetch_one(pool).await.unwrap();
    assert_eq!(retention::forget_old(pool, 365).await.unwrap(), Round { forgotten: 1, kept: 1 });
    assert_eq!(retention::forget_old(pool, 365).await.unwrap(), Round { forgotten: 0, kept: 1 }, "only once");
    let known: Vec<String> =
        sqlx::query_scalar("select email from account where email like '%@example.com' order by email")
            .fetch_all(pool)
            .await
            .unwrap();
    let mut expected = vec![regular.email.clone(), owed.email.clone()];
    expected.sort();
    assert_eq!(known, expected);
    let after: (i64, i64) =
        sqlx::query_as("select count(*), sum(total_minor)::bigint from \"order\"").fetch_one(pool).await.unwrap();
    assert_eq!(after, before, "the books stay");
    let note: String = sqlx::query_scalar("select text from order_note").fetch_one(pool).await.unwrap();
    assert_eq!(note, "—");
    sqlx::query("delete from attempt").execute(pool).await.unwrap();
    sqlx::query("delete from tender where kind = 'card'").execute(pool).await.unwrap();
    scene.close().await;
}

#[tokio::test]
async fn a_person_is_forgotten_when_nothing_is_open_any_more() {
    let scene = Scene::open().await;
    let (fan, pool) = (scene.fan().await, scene.database.pool());
    let order = scene.take(&fan, &[1]).await;
    assert!(matches!(retention::shred(pool.clone(), &fan.email).await, Err(ShredError::Expected)));
    scene.clock.advance(chrono::TimeDelta::days(41)).await;
    retention::shred(pool.clone(), &fan.email.to_uppercase()).await.unwrap();
    assert!(matches!(retention::shred(pool.clone(), &fan.email).await, Err(ShredError::Unknown)));
    let left: i64 = sqlx::query_scalar("select count(*) from account where email = $1 or name = 'A Fan'")
        .bind(&fan.email)
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!(left, 0);
    let sessions: i64 = sqlx::query_scalar("select count(*) from session").fetch_one(pool).await.unwrap();
    assert_eq!(sessions, 0);
    let kept: String = sqlx::query_scalar("select code from \"order\" where id = $1::uuid")
        .bind(order["id"].as_str())
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!(kept, order["code"].as_str().unwrap());
    scene.close().await;
}
