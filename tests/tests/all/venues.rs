//! What an import does to its venue: it says so, and a slip of the pen does not move an event in time. What is wrong
//! with the venue, the plan and the file beside it is told at once.

use std::process::Stdio;

use fullhouse_tests::{HUNG, binary::path, database::Database, fan::Fan, hall::Hall, hub::Hub, run::run, stage::Stage};
use serde_json::{Value, json};
use tokio::process::Command;

/// The venue that tests stage their events at, and its plan.
const STAGE: Stage = Stage {
    slug: "an-evening",
    hall: Hall { rows: 2, seats_a_row: 3 },
    beside: None,
    seat_limit: 6,
    hold_ttl_s: 480,
    single_seat_rule: false,
};

/// `fullhouse import` of the stage's own plan for its venue, with more arguments. Exit code and all it said.
async fn import(database: &Database, more: &[&str]) -> (i32, String) {
    import_files(database, &STAGE.hall.plan(STAGE.slug), None, &[&["--venue", "the-hall"], more].concat()).await
}

async fn import_files(database: &Database, plan: &Value, beside: Option<&Value>, arguments: &[&str]) -> (i32, String) {
    let file = run().await.directory("plan").join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    if let Some(beside) = beside {
        std::fs::write(file.with_extension("seats.json"), beside.to_string()).unwrap();
    }
    let mut command = Command::new(path());
    command.arg("import").arg(&file).args(arguments);
    command.env("FULLHOUSE__DATABASE__URL", database.url().await).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(HUNG, command.output()).await.expect("it ends").expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

async fn venue(database: &Database) -> (String, String, String) {
    sqlx::query_as("select city, country, time_zone from venue").fetch_one(database.pool()).await.unwrap()
}

#[tokio::test]
async fn a_change_of_the_venue_is_told_and_one_of_its_zone_is_asked_for() {
    let database = Database::new().await;
    STAGE.open(&database).await;
    let was = ("Berlin".to_owned(), "DE".to_owned(), "Europe/Berlin".to_owned());
    let (code, text) = import(&database, &[]).await;
    assert!(code == 0 && text.contains("nothing was changed"), "{text}");

    let (code, text) = import(&database, &["--city", "Potsdam", "--dry-run"]).await;
    assert_eq!((code, venue(&database).await), (0, was.clone()));
    assert!(text.contains(r#"venue the-hall: city "Berlin" becomes "Potsdam""#), "{text}");
    for (arguments, reason) in [
        (["--country", "Germany"], "two capital letters"),
        (["--country", "de"], "two capital letters"),
        (["--country", "ZZ"], "two capital letters of ISO 3166, such as DE; \"ZZ\" is none"),
        (["--city", ""], "the city is blank"),
        (["--venue-name", " "], "the name is blank"),
        (["--time-zone", "Asia/Tokyo"], "has events (1) and is in Europe/Berlin"),
        (["--time-zone", "Mars/Olympus"], "no time zone called"),
    ] {
        let (code, text) = import(&database, &arguments).await;
        assert!(code == 1 && text.contains(reason) && text.contains("nothing was changed"), "{text}");
        assert_eq!(text.matches(reason).count(), 1, "told once: {text}");
        assert_eq!(venue(&database).await, was);
    }
    let (code, text) = import(&database, &["--city", "Potsdam"]).await;
    assert!(code == 0 && text.contains("becomes") && !text.contains("nothing was changed"), "{text}");
    let (code, text) = import(&database, &["--time-zone", "Asia/Tokyo", "--change-time-zone"]).await;
    assert!(code == 0 && text.contains(r#"time zone "Europe/Berlin" becomes "Asia/Tokyo""#), "{text}");
    assert_eq!(venue(&database).await, ("Potsdam".into(), "DE".into(), "Asia/Tokyo".into()));
    let zone: String = sqlx::query_scalar("select time_zone from event").fetch_one(database.pool()).await.unwrap();
    assert_eq!(zone, "Europe/Berlin", "an event keeps the zone that it was made in");
    database.finish().await;
}

/// A line for each of these, and no other line of faults.
fn tells(text: &str, faults: &[&str]) {
    for fault in faults {
        assert_eq!(
            text.lines().filter(|line| line.starts_with("  ") && line.contains(fault)).count(),
            1,
            "{fault}: {text}"
        );
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("  ")).count(), faults.len(), "{text}");
    assert!(text.contains("nothing was changed"), "{text}");
}

#[tokio::test]
async fn the_plan_the_file_beside_it_and_the_venue_do_not_hide_each_others_faults() {
    let database = Database::new().await;
    let mut plan = STAGE.hall.plan(STAGE.slug);
    plan["zones"][0]["rows"][0]["seats"][0]["position"]["x"] = "left".into();
    let beside = json!({"acessible": [], "house": ["r0s0", "r9s9"]});
    let wrong = ["--venue", "The Hall", "--country", "Germany", "--time-zone", "Mars/Olympus"];
    let (code, text) = import_files(&database, &plan, Some(&beside), &wrong).await;
    assert_eq!(code, 1);
    let of_venue = ["the slug \"The Hall\"", "two capital letters", "no time zone called Mars/Olympus"];
    let of_files = ["zones[0].rows[0].seats[0].position.x", "acessible", "beside, line 1, house[1]"];
    tells(&text, &[&of_files[..], &of_venue].concat());
    // A file that is not there is one of them.
    let missing = [&wrong[..], &["--beside", "/nowhere/beside.json"]].concat();
    let (_, text) = import_files(&database, &plan, None, &missing).await;
    tells(&text, &[&["/nowhere/beside.json: "][..], &of_venue].concat());
    let venues: i64 = sqlx::query_scalar("select count(*) from venue").fetch_one(database.pool()).await.unwrap();
    assert_eq!(venues, 0);
    database.finish().await;
}

#[tokio::test]
async fn what_the_database_knows_against_an_import_is_told_beside_the_venues_faults() {
    let database = Database::new().await;
    let event = STAGE.open(&database).await;
    let hub = Hub::start(database.config().await).await;
    Fan::sign_up(&hub.url()).await.hold(event, &[1]).await.ok();
    let mut plan = STAGE.hall.plan(STAGE.slug);
    plan["zones"][0]["rows"][0]["seats"].as_array_mut().unwrap().remove(1);
    plan["categories"].as_array_mut().unwrap().push(json!({"name": "Box"}));
    plan["zones"][0]["rows"][1]["seats"][0]["category"] = "Box".into();
    let wrong = ["--venue", "the-hall", "--country", "Germany", "--time-zone", "Asia/Tokyo", "--city", "Potsdam"];
    let (code, text) = import_files(&database, &plan, None, &wrong).await;
    assert_eq!(code, 1);
    tells(&text, &["two capital letters", "is in Europe/Berlin", "(guid \"r0s1\") is held", "no price for \"Box\""]);
    assert_eq!(venue(&database).await, ("Berlin".into(), "DE".into(), "Europe/Berlin".into()));
    hub.stop().await;
    database.finish().await;
}
