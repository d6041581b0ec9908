//! What an import does to its venue: it says so, and a slip of the pen does not move an event in time.

use std::process::Stdio;

use fullhouse_tests::{HUNG, binary::path, database::Database, hall::Hall, run::run, stage::Stage};
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
    let file = run().await.directory("plan").join("plan.json");
    std::fs::write(&file, STAGE.hall.plan(STAGE.slug).to_string()).unwrap();
    let mut command = Command::new(path());
    command.arg("import").arg(&file).args(["--venue", "the-hall"]).args(more);
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
