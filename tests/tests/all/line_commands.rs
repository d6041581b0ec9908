//! `fullhouse queue …` and `fullhouse verify-draw`, typed as an operator and a doubter type them.

use std::process::Output;

use chrono::TimeDelta;
use fullhouse::waiting_room::draw::Terms;
use fullhouse_tests::{
    HUNG,
    binary::path,
    line::{Line, enter, inside, join, mine},
    rows::Rows,
    run::run,
};
use serde_json::{Value, json};
use tokio::process::Command;

/// What is typed at a line's database, and what comes of it.
struct Shell {
    database_url: String,
}

const WHY: &str = "--reason 'a test' --by 'a tester'";

impl Shell {
    async fn at(line: &Line) -> Self {
        Self { database_url: line.database.url().await }
    }

    /// `fullhouse` with these words: its exit code, and what it said on either stream.
    async fn types(&self, words: &str) -> (i32, String) {
        let mut command = Command::new(path());
        command.args(split(words)).env("FULLHOUSE__DATABASE__URL", &self.database_url);
        command.stdin(std::process::Stdio::null()).kill_on_drop(true);
        let Output { status, stdout, stderr } =
            tokio::time::timeout(HUNG, command.output()).await.expect("it ends").expect("it starts");
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    /// It ends with this code, saying this; all that it says.
    #[track_caller]
    fn ends(&self, words: &str, code: i32, part: &str) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        async move {
            let (ended, said) = self.types(words).await;
            assert!(ended == code && said.contains(part), "{caller}: {words} ended with {ended}: {said}");
            said
        }
    }
}

/// Words as a shell sees them, as far as single quotes go.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in line.split('\'').enumerate() {
        if n % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

async fn minutes_from_now(line: &Line, minutes: i64) -> String {
    (line.clock.now().await + TimeDelta::minutes(minutes)).to_rfc3339()
}

#[tokio::test]
async fn an_operator_sees_to_a_line_by_commands() {
    let line = Line::open().await;
    let event = Rows { on_sale_in: TimeDelta::hours(1), ..Rows::new(1, 5) }.open(line.database.pool()).await;
    let shell = Shell::at(&line).await;
    let now = minutes_from_now(&line, 0).await;
    let (soon, late) = (minutes_from_now(&line, 30).await, minutes_from_now(&line, 600).await);

    // Opened, and every way that it is not.
    let open = format!("queue open {event} --joins-at {now}");
    shell.ends(&format!("{open} --closes-at {late}"), 1, "before the sale opens").await;
    shell.ends(&format!("{open} --closes-at {now}"), 1, "joining has to begin before it ends").await;
    let said = shell
        .ends(
            "queue open nowhere --joins-at soon --closes-at 2027-03-01 --rate-min -1 --rate-max many --inside-max 0",
            1,
            "6 things are wrong, and nothing was changed",
        )
        .await;
    for part in [
        "there is no event nowhere",
        "--joins-at \"soon\": a time with its zone is expected, such as 2027-03-01T08:00:00Z",
        "--closes-at \"2027-03-01\": a time",
        "--rate-min: -1 is not within its bounds, 0 to 1000000",
        "--rate-max \"many\": a whole number is expected",
        "--inside-max: 0 is not within its bounds, 1 to 1000000 (to let nobody in, pause the line)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("invalid digit") && !said.contains("premature end"), "{said}");
    shell
        .ends(&format!("queue open nowhere --joins-at {now} --closes-at {soon}"), 1, "there is no event nowhere")
        .await;
    shell.ends(&format!("queue show {event}"), 1, "has no waiting room").await;
    let open = format!("{open} --closes-at {soon}");
    shell.ends(&format!("{open} --source 'a beacon'"), 2, "--round").await;
    let said = shell.ends(&open, 0, "draw 1 (committed), commitment ").await;
    assert!(said.starts_with("joining: 0 joined"), "{said}");
    assert!(!said.contains("seats left"), "they are not counted yet: {said}");
    shell.ends(&open, 1, "has a waiting room already").await;

    // Its pace.
    for (change, code, part) in [
        ("--rate 600 --rate-min 30 --rate-max 900", 0, "600 a minute (by hand; 30 to 900)"),
        ("--rate auto --inside-max 40", 0, "(by the controller; 30 to 900)"),
        ("--holds-max 20 --checkouts-max none --next-batch-at 2099-01-01T10:00:00Z", 0, "0 inside of 40"),
        ("--rate fast", 1, "--rate \"fast\": a whole number is expected, or `auto`"),
        ("--next-batch-at tomorrow", 1, "--next-batch-at \"tomorrow\": a time with its zone"),
        ("--rate-min 1000", 1, "--rate-min: 1000 is not within its bounds: the most is 900 a minute"),
        ("--rate 901", 1, "--rate: 901 is not within its bounds, 30 to 900 a minute"),
        ("--rate -1 --inside-max 0 --holds-max 0", 1, "3 things are wrong"),
        ("--inside-max many", 1, "--inside-max \"many\": a whole number"),
        ("", 1, "nothing is to be changed"),
    ] {
        shell.ends(&format!("queue set {event} {change} {WHY}"), code, part).await;
    }
    shell.ends(&format!("queue set {event} --rate 60 --by me"), 2, "--reason").await;
    shell.ends(&format!("queue set {event} --rate 60 --reason ' ' --by me"), 2, "1 to 500 characters").await;

    // Paused with a word in three languages, and gone on.
    let pause = format!("queue pause {event} --message 'A break' --message 'ja=休憩中' --message 'ko=쉬는 중' {WHY}");
    shell.ends(&pause, 0, "joining:").await;
    let shown = shell.ends(&format!("queue show {event} --json"), 0, "").await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["paused_at"].is_string(), "{shown}");
    assert_eq!(shown["line"]["message"], json!({ "default": "A break", "ja": "休憩中", "ko": "쉬는 중" }));
    assert_eq!((&shown["holds_live_max"], &shown["line"]["inside_max"]), (&json!(20), &json!(40)));
    shell.ends(&format!("queue pause {event} --message ja=a --message ja=b {WHY}"), 1, "two messages for ja").await;
    shell.ends(&format!("queue resume {event} {WHY}"), 0, "joining:").await;

    // What is too early, or of nobody.
    shell.ends(&format!("queue value {event} 00ff {WHY}"), 1, "has announced no public value").await;
    shell.ends(&format!("queue value {event} xyz {WHY}"), 1, "hexadecimal").await;
    shell.ends(&format!("queue reveal {event} {WHY}"), 1, "not drawn yet").await;
    shell.ends(&format!("queue revoke {event} nobody {WHY}"), 1, "its e-mail address is expected, or its id").await;
    let nobody = uuid::Uuid::new_v4();
    shell.ends(&format!("queue revoke {event} {nobody} {WHY}"), 1, "no pass there").await;

    let log = shell.ends(&format!("queue log {event}"), 0, "a tester, by command").await;
    let whats: Vec<&str> = log.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    let of_pace = ["next_batch_at", "holds_live_max", "inside_max", "rate_fixed", "rate_fixed", "rate_minute_max"];
    let expected = [&["message", "paused", "message", "paused"][..], &of_pace, &["rate_minute_min", "opened"]].concat();
    assert_eq!(whats, expected, "{log}");
    assert!(log.lines().next().unwrap().ends_with("a test"), "{log}");
    line.close().await;
}

#[tokio::test]
async fn somebodys_time_inside_ends_by_command_and_they_are_behind_everybody_then() {
    let line = Line::open().await;
    let people = line.joined(2).await;
    line.opens().await;
    let pass = inside(&people[0], line.event).await;
    let event = line.event;
    let shell = Shell::at(&line).await;
    shell.ends(&format!("queue revoke {event} {} {WHY}", people[0].email), 0, "the pass has ended").await;
    assert_eq!(fullhouse_tests::line::hold(&people[0], event, &[1], Some(&pass)).await.code(), "pass_over");
    assert_eq!(fullhouse_tests::line::renew(&people[0], event, &pass).await.code(), "pass_over");
    assert_eq!(enter(&people[0], event).await.code(), "entry_none", "the former turn is no way back in");
    assert_eq!(join(&people[0], event).await.ok()["number"], 2, "at the end");
    line.clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(line.look().await, 1);
    assert_ne!(inside(&people[0], event).await, pass);
    line.close().await;
}

/// Somebody who does not believe: without a database, of a hub, or of what they have kept.
struct Doubter {
    shell: Shell,
    event: i64,
    hub: String,
}

impl Doubter {
    fn of(line: &Line) -> Self {
        let shell = Shell { database_url: "postgres://nobody@127.0.0.1:1/none".to_owned() };
        Self { shell, event: line.event, hub: line.hub.url() }
    }

    #[track_caller]
    fn hears(&self, words: &str, code: i32, part: &str) -> impl Future<Output = String> {
        let hub = if words.contains("--file") { String::new() } else { format!("--hub {}", self.hub) };
        let (typed, part) = (format!("verify-draw {} {hub} {words}", self.event), part.to_owned());
        let caller = std::panic::Location::caller();
        async move {
            let (ended, said) = self.shell.types(&typed).await;
            assert!(ended == code && said.contains(&part), "{caller}: {typed} ended with {ended}: {said}");
            said
        }
    }
}

/// Before the draw, after it, from a file, and with a byte altered: each is told from the others.
#[tokio::test]
async fn a_committed_draw_is_verified_and_what_was_altered_is_named() {
    let line = Line::open().await;
    let people = line.joined(20).await;
    let doubter = Doubter::of(&line);
    doubter.hears("", 3, "NOT DECIDED: nothing is drawn yet: the entries of draw 1 are not fixed").await;
    line.clock.advance(TimeDelta::minutes(51)).await;
    line.look().await;
    doubter.hears("", 3, "its secret is not out yet").await;
    line.clock.advance(TimeDelta::minutes(9)).await;
    line.look().await;
    let folder = run().await.directory("verify");
    let file = folder.join("draw.json");
    let name = file.display();
    doubter.hears(&format!("--save {name}"), 0, "places of 20 entries are as published (committed").await;
    let own = mine(&people[7], line.event).await.ok();
    let (key, place) = (own["entry_key"].as_str().unwrap(), own["place"].as_i64().unwrap());
    doubter.hears(&format!("--number 7 --key {key}"), 0, &format!("number 7 has place {place}:")).await;
    let pages_say = format!("(pages say: number 8, place {})", place + 1);
    doubter.hears(&format!("--file {name} --number 7"), 0, &pages_say).await;
    // One string is all that somebody has to keep: number, key, and the commitment that was public when they joined.
    let ticket = own["ticket"].as_str().unwrap();
    let said = doubter.hears(&format!("--ticket {ticket}"), 0, &pages_say).await;
    assert!(said.contains("is the one that was signed when this place-ticket was given"), "{said}");
    let others = mine(&people[8], line.event).await.ok()["ticket"].clone();
    doubter.hears(&format!("--ticket {}", others.as_str().unwrap()), 0, "number 8 has place").await;
    doubter.hears("--ticket AQAB", 3, "this is no place-ticket").await;
    doubter.hears(&format!("--number 6 --key {key}"), 1, "FALSE: number 6 is not the entry with this key").await;
    doubter.hears("--number 20", 0, "was not drawn").await;
    doubter.hears(&format!("--number 20 --key {key}"), 3, "was not drawn").await;
    doubter.hears("--number 7 --key 00ff", 3, "32 hexadecimal digits").await;

    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let published = |what: &str| kept["draw"][what].as_str().unwrap().to_owned();
    let (commitment, root) = (published("commitment"), published("root"));
    doubter.hears(&format!("--commitment {commitment} --root {root}"), 0, "are as published").await;
    doubter
        .hears(&format!("--commitment {root}"), 1, "FALSE: the commitment of draw 1 is not the one that you kept")
        .await;
    doubter.hears(&format!("--root {commitment}"), 1, "FALSE: the root of draw 1 is not the one that you kept").await;
    doubter.hears("--root 00", 3, "is no hash").await;
    let altered = folder.join("altered.json");
    let save = |change: &dyn Fn(&mut Value)| {
        let mut kept = kept.clone();
        change(&mut kept);
        std::fs::write(&altered, kept.to_string()).unwrap();
    };
    let flip = |text: &Value| {
        let text = text.as_str().unwrap();
        json!(format!("{}{}", if text.starts_with('0') { "1" } else { "0" }, &text[1..]))
    };
    let from_altered = format!("--file {}", altered.display());
    save(&|kept| kept["leaves"] = flip(&kept["leaves"]));
    doubter.hears(&from_altered, 1, &format!("do not have this root\npublished: {root}\ncomputed:  ")).await;
    save(&|kept| kept["draw"]["root"] = flip(&kept["draw"]["root"]));
    doubter.hears(&from_altered, 1, &format!("\ncomputed:  {root}")).await;
    save(&|kept| kept["draw"]["secret"] = flip(&kept["draw"]["secret"]));
    doubter.hears(&from_altered, 1, "FALSE: the commitment is not that of this secret").await;
    // Another secret with a commitment that suits it: all that is published fits, and the ticket does not.
    let secret = [7; 32];
    let terms = Terms { event_id: line.event, draw_no: 1, public: None };
    save(&|kept| {
        kept["draw"]["secret"] = json!(data_encoding::HEXLOWER.encode(&secret));
        kept["draw"]["commitment"] = json!(data_encoding::HEXLOWER.encode(&terms.commitment(&secret)));
    });
    doubter.hears(&from_altered, 0, "are as published").await;
    let signed = "FALSE: the commitment of draw 1 is not the one that was signed";
    doubter.hears(&format!("{from_altered} --ticket {ticket}"), 1, signed).await;
    save(&|kept| kept["draw"]["entry_count"] = json!(19));
    doubter.hears(&from_altered, 1, "published: 19\ncomputed:  20").await;
    save(&|kept| kept["draw"]["public_value"] = json!("00"));
    doubter.hears(&from_altered, 1, "a public value that was not announced").await;
    // Called verifiable, with nothing that could be compared; and with a value that was out before the entries were fixed.
    save(&|kept| kept["draw"]["kind"] = json!("verifiable"));
    doubter.hears(&from_altered, 0, "as published (committed").await;
    save(&|kept| kept["draw"]["value_due_at"] = kept["draw"]["rooted_at"].clone());
    doubter.hears(&from_altered, 1, "FALSE: the entries were fixed at").await;
    // What can't be read says nothing about a draw.
    save(&|kept| kept["draw"]["secret"] = json!("0g"));
    doubter.hears(&from_altered, 3, "is no hash").await;
    std::fs::write(&altered, "{}").unwrap();
    doubter.hears(&from_altered, 3, "is not what `verify-draw --save` writes").await;
    doubter.hears("--file /no/such/file", 3, "NOT DECIDED: /no/such/file").await;
    doubter.hears("--draw 2", 3, "has no such draw; it has 1").await;
    let plain = Rows::new(1, 2).open(line.database.pool()).await;
    for (event, hub, part) in [
        ("nowhere".to_owned(), line.hub.url(), "there is no such event"),
        (plain.to_string(), line.hub.url(), "the event has no waiting room"),
        (plain.to_string(), "http://127.0.0.1:1".to_owned(), "does not answer"),
    ] {
        doubter.shell.ends(&format!("verify-draw {event} --hub {hub}"), 3, part).await;
    }
    line.close().await;
}

/// By commands alone: announced, given up and begun anew, its value taken when it is due, told, and recomputed by anybody.
#[tokio::test]
async fn a_verifiable_draw_from_its_announcement_to_its_check() {
    let line = Line::open().await;
    let event = Rows { on_sale_in: TimeDelta::hours(1), ..Rows::new(1, 10) }.open(line.database.pool()).await;
    let line = Line { event, ..line };
    let (shell, doubter) = (Shell::at(&line).await, Doubter::of(&line));
    let (now, closes, due) =
        (minutes_from_now(&line, -1).await, minutes_from_now(&line, 30).await, minutes_from_now(&line, 40).await);
    let open = format!("queue open {event} --joins-at {now} --closes-at {closes} --source 'a beacon' --round 7");
    shell.ends(&format!("{open} --value-due-at {closes}"), 1, "a minute after the entries are fixed").await;
    shell.ends(&format!("{open} --value-due-at {due}"), 0, "draw 1 (verifiable)").await;
    let people = line.joined(12).await;
    let value = format!("queue value {event} 00ff {WHY}");
    shell.ends(&value, 1, "the entries are not fixed yet").await;
    line.clock.advance(TimeDelta::minutes(31)).await;
    line.look().await;
    shell.ends(&value, 1, "not due yet").await;
    doubter.hears("", 3, "nothing is drawn yet: draw 1 waits for its public value (a beacon, 7)").await;

    // Given up: both stay public, and the new one has a value of its own to wait for.
    let redraw = format!("queue redraw {event}");
    let due = minutes_from_now(&line, 20).await;
    let beacon = format!("--source 'a beacon' --round 8 --value-due-at {due}");
    shell.ends(&format!("{redraw} {beacon} {WHY}"), 0, "draw 2 (verifiable)").await;
    line.look().await;
    line.clock.advance(TimeDelta::minutes(21)).await;
    shell.ends(&format!("queue value {event} c0ffee {WHY}"), 0, "closed:").await;
    shell.ends(&value, 1, "another public value already").await;
    line.look().await;
    shell.ends(&format!("queue reveal {event} {WHY}"), 0, "root ").await;
    shell.ends(&format!("queue reveal {event} {WHY}"), 1, "out already").await;
    let said = doubter.hears("", 0, "places of 12 entries are as published (verifiable: compare the public").await;
    assert!(said.contains("draw 2 of event") && said.contains("a beacon, 8: c0ffee"), "{said}");
    let place = mine(&people[3], event).await.ok()["place"].as_i64().unwrap();
    doubter.hears("--number 3", 0, &format!("number 3 has place {place}:")).await;
    // The one that was given up had announced a value that it never got: nothing follows from it, as anybody can see.
    doubter.hears("--draw 1", 1, "a public value was announced, and the draw has none").await;

    shell.ends(&format!("{redraw} {WHY}"), 0, "draw 3 (committed)").await;
    line.clock.advance(TimeDelta::minutes(30)).await;
    line.look().await;
    assert!(line.count("select called_through from line order by called_through desc limit 1").await > 0);
    shell.ends(&format!("{redraw} {WHY}"), 1, "people were called already").await;
    doubter.hears("", 0, "draw 3 of event").await;
    line.close().await;
}
