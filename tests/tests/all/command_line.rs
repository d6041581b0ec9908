//! The command line as an operator meets it: exit codes, reasons on standard error, secrets shown once.

use std::process::{Output, Stdio};

use fullhouse_tests::{
    HUNG,
    binary::{Binary, path},
    database::Database,
    fan::Fan,
    hub::Hub,
    paper::Paper,
    rows::Rows,
    run::run,
    scene::{Scene, seats},
    stage::Stage,
};
use tokio::process::Command;

async fn fullhouse(database: &Database, arguments: &[&str], more: &[(&str, &str)]) -> Output {
    let mut command = Command::new(path());
    command.args(arguments).env("FULLHOUSE__DATABASE__URL", database.url().await).envs(more.iter().copied());
    command.stdin(Stdio::null()).kill_on_drop(true);
    tokio::time::timeout(HUNG, command.output()).await.expect("it ends").expect("it starts")
}

fn told(output: &Output) -> (i32, String) {
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn done_is_0_refused_is_1_and_wrong_usage_is_2() {
    let database = Database::new().await;
    assert_eq!(fullhouse(&database, &["check"], &[]).await.status.code(), Some(0));
    assert_eq!(fullhouse(&database, &["migrate"], &[]).await.status.code(), Some(0));
    assert_eq!(fullhouse(&database, &["no-such-thing"], &[]).await.status.code(), Some(2));
    assert_eq!(fullhouse(&database, &["terminal", "add", "Till"], &[]).await.status.code(), Some(2), "without a role");
    let (code, reason) = told(&fullhouse(&database, &["serve", "--config", "/no/such/file"], &[]).await);
    assert_eq!(code, 1);
    assert!(reason.contains("/no/such/file"), "{reason}");
    let (code, reason) = told(&fullhouse(&database, &["check"], &[("FULLHOUSE__HTTP__NO_SUCH", "1")]).await);
    assert_eq!(code, 1);
    assert!(reason.contains("http.no_such"), "{reason}");
    let (code, reason) = told(&fullhouse(&database, &["serve"], &[("FULLHOUSE__SWEEPER__TICK_MS", "0")]).await);
    assert_eq!(code, 1);
    assert!(reason.contains("sweeper.tick_ms is 0: from 10 to 3600000"), "{reason}");
    let (code, reason) = told(&fullhouse(&database, &["serve"], &[("FULLHOUSE_HTTP_LISTEN", "x")]).await);
    assert_eq!(code, 1);
    assert!(reason.contains("it is called FULLHOUSE__HTTP__LISTEN"), "{reason}");
    database.finish().await;
}

#[tokio::test]
async fn whoever_has_read_enough_is_told_nothing_more() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(path());
    let child =
        command.arg("settings").stdout(writer).stderr(Stdio::piped()).kill_on_drop(true).spawn().expect("it starts");
    let output = tokio::time::timeout(HUNG, child.wait_with_output()).await.expect("it ends").expect("its output");
    assert_eq!(told(&output), (141, String::new()));
}

#[tokio::test]
async fn check_names_what_is_broken() {
    let database = Database::new().await;
    sqlx::query(
        "insert into event_seat (event_id, seat_no, status, level, hold_id, held_until)
         values (7, 3, 1, 0, gen_random_uuid(), now())",
    )
    .execute(database.pool())
    .await
    .unwrap();
    let (code, reason) = told(&fullhouse(&database, &["check"], &[]).await);
    assert_eq!(code, 1);
    assert!(reason.contains("seat_without_hold: seat 3 is held by"), "{reason}");
    sqlx::query("delete from event_seat").execute(database.pool()).await.unwrap();
    database.finish().await;
}

#[tokio::test]
async fn the_log_has_what_was_given_back_by_a_command_and_by_an_operator() {
    let scene = Scene::without_webhooks(Rows::new(1, 6), |_| {}).await;
    let held = scene.till.hold(scene.event, &[0, 1, 2]).await.ok();
    let order = scene.till.sell_for_cash(&held, 99_999).await.ok()["order"].clone();
    let code = order["code"].as_str().unwrap();
    let back = ["refund", code, "--seats", "0", "--seats-become", "on-sale", "--reason", "ill", "--by", "Ada"];
    assert_eq!(told(&fullhouse(&scene.database, &back, &[]).await).0, 0);
    let operator = scene.operator().await;
    let refunds = format!("/api/staff/orders/{}/refunds", order["id"].as_str().unwrap());
    operator.post_once(&refunds, "theirs", seats(&[1], "house")).await.ok();
    scene.till.refund(&order, "nobody's", seats(&[2], "on_sale")).await.ok();
    let log: Vec<(String, String)> =
        sqlx::query_as("select actor, detail from audit where verb = 'order_refund' order by id")
            .fetch_all(scene.database.pool())
            .await
            .unwrap();
    let [(ada, what), (operator, _)] = &log[..] else { panic!("{log:?}") };
    let kept =
        "select count(*) from audit where verb = 'seat_block' and actor like '%@%' and detail = '1 seats: Stalls 1 2'";
    assert_eq!(scene.count(kept).await, 1, "and what became of the seat");
    assert_eq!((ada.as_str(), what), ("Ada, by command", &format!("order {code}")));
    assert!(operator.contains('@'), "{operator}");
    scene.close().await;
}

#[tokio::test]
async fn terminals_and_operators_are_made_here() {
    let database = Database::new().await;
    let enrolled = fullhouse(&database, &["terminal", "add", "Till 1", "--role", "counter"], &[]).await;
    assert_eq!(told(&enrolled).0, 0);
    let token = String::from_utf8(enrolled.stdout).unwrap();
    assert_eq!(token.trim_end().len(), 43, "only the token, for a script to keep");
    let (code, reason) = told(&fullhouse(&database, &["terminal", "add", "Till 1", "--role", "kiosk"], &[]).await);
    assert!(code == 1 && reason.contains("there is a terminal called Till 1"), "{reason}");
    assert_eq!(told(&fullhouse(&database, &["terminal", "revoke", "Till 1"], &[]).await).0, 2, "by whom, and why?");
    let revoke = ["terminal", "revoke", "Till 1", "--reason", "it was stolen", "--by", "Ada"];
    assert_eq!(told(&fullhouse(&database, &revoke, &[]).await).0, 0);
    assert_eq!(told(&fullhouse(&database, &revoke, &[]).await).0, 1, "once");
    let log = "select actor || ': ' || reason from audit where verb = 'terminal_revoke'";
    let logged: Vec<String> = sqlx::query_scalar(log).fetch_all(database.pool()).await.unwrap();
    assert_eq!(logged, ["Ada, by command: it was stolen"]);

    let password = [("FULLHOUSE_PASSWORD", "a long password")];
    assert_eq!(told(&fullhouse(&database, &["operator", "add", "boss@example.org"], &password).await).0, 0);
    let (code, reason) = told(&fullhouse(&database, &["operator", "add", "other@example.org"], &[]).await);
    assert!(code == 1 && reason.contains("password"), "an empty one: {reason}");
    let hub = Hub::start(database.config().await).await;
    Fan::sign_in(&hub.url(), "boss@example.org", "a long password").await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn readers_are_placed_at_a_terminal_and_listed() {
    let database = Database::new().await;
    let add = ["terminal", "add", "Till 1", "--role", "counter", "--reader", "tmr_1"];
    assert_eq!(told(&fullhouse(&database, &add, &[]).await).0, 0);
    fullhouse(&database, &["terminal", "add", "Kiosk", "--role", "kiosk"], &[]).await;
    assert_eq!(told(&fullhouse(&database, &["terminal", "reader", "Kiosk", "tmr_2"], &[]).await).0, 0);
    assert_eq!(told(&fullhouse(&database, &["terminal", "reader", "Till 1", "tmr_2"], &[]).await).0, 0, "it moved");
    let log = "select detail from audit where verb = 'terminal_reader' order by id desc limit 1";
    let logged: String = sqlx::query_scalar(log).fetch_one(database.pool()).await.unwrap();
    assert_eq!(logged, "tmr_2 stands at Till 1");
    for (name, reader) in [("Nowhere", "tmr_3"), ("Kiosk", "tmr/3")] {
        assert_eq!(
            told(&fullhouse(&database, &["terminal", "reader", name, reader], &[]).await).0,
            1,
            "{name} {reader}"
        );
    }
    let list = async || String::from_utf8(fullhouse(&database, &["terminal", "list"], &[]).await.stdout).unwrap();
    assert_eq!(list().await.trim_end(), "Kiosk\tkiosk\tvalid\t\nTill 1\tcounter\tvalid\ttmr_1 tmr_2");
    let lock = async |verb, name| {
        told(&fullhouse(&database, &["terminal", verb, name, "--reason", "stolen", "--by", "Ana"], &[]).await).0
    };
    assert_eq!((lock("lock", "Nowhere").await, lock("lock", "Kiosk").await), (1, 0));
    assert!(list().await.contains("Kiosk\tkiosk\tlocked (stolen)"));
    assert_eq!(lock("unlock", "Kiosk").await, 0);
    assert!(list().await.contains("Kiosk\tkiosk\tvalid"));
    let audit: Vec<(String, String)> =
        sqlx::query_as("select verb, actor from audit order by id").fetch_all(database.pool()).await.unwrap();
    let by = |verb: &str| (verb.to_owned(), "Ana, by command".to_owned());
    let done = |verb: &str| (verb.to_owned(), "command line".to_owned());
    let (made, placed) = (|| done("terminal_enrol"), || done("terminal_reader"));
    let lock = [by("terminal_lock"), by("terminal_unlock")];
    assert_eq!(audit[..5], [made(), placed(), made(), placed(), placed()]);
    assert_eq!(audit[5..], lock);
    let enrolled = "select t.name || ': ' || a.detail from audit a join terminal t on t.id = a.terminal_id
                    where a.verb = 'terminal_enrol' order by a.id";
    let enrolled: Vec<String> = sqlx::query_scalar(enrolled).fetch_all(database.pool()).await.unwrap();
    assert_eq!(enrolled, ["Till 1: Till 1, a counter", "Kiosk: Kiosk, a kiosk"]);
    let (code, reason) =
        told(&fullhouse(&database, &["terminal", "add", "\u{200b}\u{feff}", "--role", "kiosk"], &[]).await);
    assert!(code == 1 && reason.contains("can be seen"), "{reason}");
    database.finish().await;
}

#[tokio::test]
async fn vouchers_are_listed_without_their_codes() {
    let database = Database::new().await;
    Stage::default().open(&database).await;
    fullhouse(&database, &["terminal", "add", "Window 2", "--role", "counter"], &[]).await;
    sqlx::query(
        r"insert into voucher (id, event_id, code_hash, seats_max, recipient, reason, valid_until, made_by, terminal_id, made_at)
          select gen_random_uuid(), e.id, sha256('x'::bytea), 2, 'The Gazette', E'press\nrow', e.starts_at, 'Bob at Window 2',
                 t.id, now() from event e, terminal t",
    )
    .execute(database.pool())
    .await
    .unwrap();
    let list = fullhouse(&database, &["voucher", "list", "an-evening"], &[]).await;
    let text = String::from_utf8(list.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text} {:?}", told(&list));
    assert!(text.contains("\topen\t2 seats\tuntil 2"), "{text}");
    assert!(text.trim_end().ends_with("Z\tThe Gazette\tby Bob at Window 2: press row"), "{text}");
    assert_eq!(told(&fullhouse(&database, &["voucher", "list", "no-such-event"], &[]).await).0, 1);
    database.finish().await;
}

#[tokio::test]
async fn how_tickets_look_is_checked_whole_and_can_be_seen_before_one_is_sold() {
    let database = Database::new().await;
    Stage::default().open(&database).await;
    let listed = String::from_utf8(fullhouse(&database, &["event", "list"], &[]).await.stdout).unwrap();
    let line = listed.lines().find(|line| line.starts_with("an-evening\t")).expect("an event stands under its slug");
    assert!(line.contains("\ton sale\t"), "{line}");
    let shown = fullhouse(&database, &["event", "show", "an-evening"], &[]).await;
    let mut spec: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let folder = run().await.directory("look");
    let save = async |spec: &serde_json::Value| {
        let file = folder.join("event.json");
        std::fs::write(&file, spec.to_string()).unwrap();
        let done = fullhouse(&database, &["event", "edit", file.to_str().unwrap()], &[]).await;
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    spec["ticket"] = serde_json::json!({ "accent": "red", "hide": ["code"], "note": { "de": "Hallo" } });
    let (code, said) = save(&spec).await;
    assert_eq!(code, Some(1));
    for place in ["ticket.accent:", "ticket.hide[0]:", "ticket.note.de:", "ticket.note.en:"] {
        assert!(said.contains(place), "{place} is not in {said}");
    }
    spec["ticket"] = serde_json::json!({ "accent": "#5b2a86", "note": { "en": "Come by tram" } });
    spec["ticket_logo"] = "logo.png".into();
    std::fs::write(folder.join("logo.png"), b"<svg xmlns='http://www.w3.org/2000/svg'/>").unwrap();
    let (code, said) = save(&spec).await;
    assert!(code == Some(1) && said.contains("ticket_logo: it is not a whole PNG"), "{said}");
    // What no font has is said when it is written down, and what will stand there.
    spec.as_object_mut().unwrap().remove("ticket_logo");
    spec["name"] = "A \u{f0000} night".into();
    let (code, said) = save(&spec).await;
    assert!(code == Some(0) && said.contains("tickets will read A [U+F0000] night"), "{said}");
    let preview = fullhouse(&database, &["ticket", "preview", "an-evening", "--language", "ja"], &[]).await;
    assert!(preview.stdout.starts_with(b"%PDF-"), "{:?}", told(&preview));
    let text = Paper::new(&preview.stdout).await.text().await;
    assert!(text.contains("Come by tram") && text.contains("[U+F0000]"), "{text}");
    assert_eq!(told(&fullhouse(&database, &["ticket", "preview", "no-such-event"], &[]).await).0, 1);
    database.finish().await;
}

#[tokio::test]
async fn a_hub_ends_when_it_is_told_to() {
    let database = Database::new().await;
    let binary = Binary::serve(&database.config().await, &[]).await;
    Fan::stranger(binary.url()).get("/api/session").await.ok();
    tokio::time::timeout(HUNG, binary.stop()).await.expect("it ends");
    // Whoever starts next finds the database free.
    let next = Hub::start(database.config().await).await;
    next.stop().await;
    database.finish().await;
}
