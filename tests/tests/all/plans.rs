//! Plans, imported again and again: what keeps its number, what is refused, and what an import never does.

use chrono::TimeDelta;
use fullhouse::catalog::import::{ImportError, Refusal};
use fullhouse_tests::{database::Database, fan::Fan, hall::Hall, hub::Hub, stage::Stage};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::catalog::{HALL, everything, fullhouse, import};

fn seats(plan: &mut Value, row: usize) -> &mut Vec<Value> {
    plan["zones"][0]["rows"][row]["seats"].as_array_mut().unwrap()
}

async fn status(pool: &PgPool, seat_no: i32) -> i16 {
    sqlx::query_scalar("select status from event_seat where seat_no = $1").bind(seat_no).fetch_one(pool).await.unwrap()
}

fn asset(name: &str) -> String {
    format!("{}/../assets/plans/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn real_plans_are_imported_by_the_command_line() {
    let database = Database::new().await;
    for (file, venue, seats) in
        [("race-track", "track", 8_897i64), ("airliner", "hangar", 178), ("two-seats", "attic", 2)]
    {
        let plan = asset(&format!("{file}.json"));
        let arguments = ["import", &plan, "--venue", venue, "--time-zone", "Asia/Tokyo"];
        let (code, text) = fullhouse(&database, &[&arguments[..], &["--dry-run"]].concat()).await;
        assert_eq!(code, 0, "{text}");
        let (code, text) = fullhouse(&database, &arguments).await;
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("is revision 1"), "the dry run has left nothing: {text}");
        let (code, text) = fullhouse(&database, &arguments).await;
        assert_eq!((code, text.contains("nothing was changed")), (0, true), "{text}");
        let counted: i64 = sqlx::query_scalar(
            "select count(*) from plan_seat s join plan_revision r on r.id = s.plan_revision_id
               join plan p on p.id = r.plan_id join venue v on v.id = p.venue_id where v.slug = $1",
        )
        .bind(venue)
        .fetch_one(database.pool())
        .await
        .unwrap();
        assert_eq!(counted, seats);
    }
    database.finish().await;
}

#[tokio::test]
async fn a_faulty_plan_is_refused_with_every_fault_and_exit_code_1() {
    let database = Database::new().await;
    let before = everything(database.pool()).await;
    let mut plan = HALL.plan("Hall");
    seats(&mut plan, 0)[1]["seat_guid"] = "r0s0".into();
    seats(&mut plan, 1)[2]["category"] = "Nowhere".into();
    seats(&mut plan, 1)[0].as_object_mut().unwrap().remove("position");
    let file = std::env::temp_dir().join(format!("faulty-plan-{}.json", std::process::id()));
    std::fs::write(&file, serde_json::to_string_pretty(&plan).unwrap()).unwrap();
    let (code, text) =
        fullhouse(&database, &["import", &file.to_string_lossy(), "--venue", "hall", "--time-zone", "UTC"]).await;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(code, 1, "{text}");
    for fault in [
        "zones[0].rows[0].seats[1].seat_guid: the guid \"r0s0\" is taken by zones[0].rows[0].seats[0]",
        "zones[0].rows[1].seats[0].position: this field is needed",
        "zones[0].rows[1].seats[2].category: the plan has no category \"Nowhere\"",
    ] {
        assert!(text.contains(fault), "{fault} in {text}");
    }
    assert!(text.contains("3 faults; nothing was changed"), "{text}");
    assert_eq!(everything(database.pool()).await, before);
    database.finish().await;
}

#[tokio::test]
async fn a_seat_keeps_its_number_and_a_missing_one_is_retired() {
    let database = Database::new().await;
    let stage = Stage { hall: HALL, ..Stage::default() };
    let event = stage.open(&database).await;
    let pool = database.pool();
    let original = HALL.plan(stage.slug);

    // Row 1 loses its middle seat, row 2 is turned round and gains a seat at its end.
    let mut changed = original.clone();
    seats(&mut changed, 0).remove(1);
    seats(&mut changed, 1).reverse();
    seats(&mut changed, 1).push(json!({
        "seat_guid": "new", "seat_number": "4", "position": {"x": 30.0, "y": 0.0}, "category": "Back",
    }));
    let imported = import(pool, stage.slug, &changed).await.unwrap();
    assert_eq!((imported.revision, imported.seats, imported.added, imported.retired), (2, 6, 1, 1));
    assert_eq!(imported.events, [(stage.slug.to_owned(), 0)]);
    let numbers: Vec<(i32, String, bool)> = sqlx::query_as(
        "select s.seat_no, s.guid, s.retired from event e join plan_seat s using (plan_revision_id)
          where e.id = $1 order by s.seat_no",
    )
    .bind(event)
    .fetch_all(pool)
    .await
    .unwrap();
    let told: Vec<_> = numbers.iter().map(|(no, guid, retired)| (*no, guid.as_str(), *retired)).collect();
    assert_eq!(
        told,
        [
            (0, "r0s0", false),
            (1, "r0s1", true),
            (2, "r0s2", false),
            (3, "r1s0", false),
            (4, "r1s1", false),
            (5, "r1s2", false),
            (6, "new", false),
        ]
    );
    assert_eq!((status(pool, 1).await, status(pool, 6).await), (3, 0));
    let changes: Vec<(Vec<i32>, Vec<i16>)> =
        sqlx::query_as("select seat_nos, statuses from outbox order by id").fetch_all(pool).await.unwrap();
    assert_eq!(changes, [(vec![6, 1], vec![0, 3])]);

    // It comes back with its number; what staff blocked meanwhile stays blocked.
    sqlx::query("update event_seat set status = 3, version = version + 1 where seat_no = 0")
        .execute(pool)
        .await
        .unwrap();
    sqlx::query(
        "insert into seat_note (event_id, seat_no, verb, reason, actor, created_at)
         values ($1, 0, 'block', 'a pillar', 'terminal', now())",
    )
    .bind(event)
    .execute(pool)
    .await
    .unwrap();
    let mut without_it = original.clone();
    seats(&mut without_it, 0).remove(0);
    import(pool, stage.slug, &without_it).await.unwrap();
    assert_eq!((status(pool, 0).await, status(pool, 1).await, status(pool, 6).await), (3, 0, 3));
    let imported = import(pool, stage.slug, &original).await.unwrap();
    assert_eq!((imported.revision, imported.returned, imported.retired), (4, 1, 0));
    assert_eq!((status(pool, 0).await, status(pool, 1).await), (3, 0), "the pillar is still there");
    assert!(import(pool, stage.slug, &original).await.unwrap().unchanged);
    database.finish().await;
}

#[tokio::test]
async fn no_import_takes_a_seat_from_its_owner() {
    let (database, clock) = Database::with_clock().await;
    let stage = Stage { hall: HALL, ..Stage::default() };
    let event = stage.open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let fan = Fan::sign_up(&hub.url()).await;
    fan.hold(event, &[1, 5]).await.ok();
    hub.stop().await; // and its sweeper: expiry is by the clock
    let pool = database.pool();
    let mut without = HALL.plan(stage.slug);
    seats(&mut without, 0).remove(1);
    seats(&mut without, 1).pop();
    let before = everything(pool).await;
    let Err(ImportError::Refused(refused)) = import(pool, stage.slug, &without).await else {
        panic!("two held seats would vanish");
    };
    let [Refusal::WouldLose(lost)] = &refused[..] else { panic!("{refused:?}") };
    let told: Vec<String> = lost.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            r#"an-evening: "Stalls", row "1", seat "2" (guid "r0s1") is held"#,
            r#"an-evening: "Stalls", row "2", seat "3" (guid "r1s2") is held"#,
        ]
    );
    assert_eq!(everything(pool).await, before, "an import that fails changes nothing");

    // Moving and renaming a held seat is allowed.
    let mut moved = HALL.plan(stage.slug);
    seats(&mut moved, 0)[1]["position"]["x"] = 500.0.into();
    seats(&mut moved, 0)[1]["seat_number"] = "2a".into();
    let imported = import(pool, stage.slug, &moved).await.unwrap();
    assert_eq!((imported.altered, status(pool, 1).await), (1, 1));

    // By the clock the hold is over, though nobody has tidied it.
    clock.advance(TimeDelta::seconds(481)).await;
    import(pool, stage.slug, &without).await.unwrap();
    assert_eq!((status(pool, 1).await, status(pool, 5).await, status(pool, 0).await), (3, 3, 0));
    // And the sweeper, and the former holder, find nothing of theirs.
    let hub = Hub::start(database.config().await).await;
    let fan = fan.at(&hub.url());
    assert_eq!(fan.my_hold(event).await.ok()["hold"], Value::Null);
    assert_eq!(fan.hold(event, &[1]).await.code(), "seats_unavailable");
    hub.stop().await;
    database.finish().await;
}

/// Whichever comes first wins: either the import is refused and names what is held, or the seats are
/// gone and nobody holds one.
#[tokio::test]
async fn an_import_that_meets_buyers_takes_nothing_from_them() {
    let database = Database::new().await;
    let stage = Stage { hall: Hall { rows: 2, seats_a_row: 8 }, ..Stage::default() };
    let event = stage.open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let pool = database.pool();
    let whole = stage.hall.plan(stage.slug);
    let mut half = whole.clone();
    seats(&mut half, 0).clear();
    let (mut refused, mut moved) = (0, 0);
    for round in 0..12 {
        let fans = fullhouse_tests::fan::many(&database, &hub.url(), 8).await;
        let buying = fans.iter().enumerate().map(|(seat, fan)| async move { fan.hold(event, &[seat as i32]).await });
        // The import comes a little later each round, in the middle of some of them.
        let importing = async {
            for _ in 0..round * 3 {
                tokio::task::yield_now().await;
            }
            import(pool, stage.slug, &half).await
        };
        let (answers, imported) = tokio::join!(futures_util::future::join_all(buying), importing);
        let held: Vec<String> =
            (0..8).filter(|seat| answers[*seat].status.is_success()).map(|seat| format!("r0s{seat}")).collect();
        match imported {
            Ok(_) => {
                moved += 1;
                assert_eq!(held, [""; 0], "round {round}");
                import(pool, stage.slug, &whole).await.unwrap();
            }
            Err(ImportError::Refused(reasons)) => {
                let [Refusal::WouldLose(lost)] = &reasons[..] else { panic!("round {round}: {reasons:?}") };
                refused += 1;
                assert!(!lost.is_empty() && lost.iter().all(|seat| held.contains(&seat.guid)), "{lost:?} of {held:?}");
            }
            Err(e) => panic!("round {round}: {e}"),
        }
        for (fan, answer) in fans.iter().zip(answers) {
            if answer.status.is_success() {
                fan.release(answer.ok()["hold"]["id"].as_str().unwrap()).await.ok();
            }
        }
    }
    println!("refused {refused}, moved {moved}");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_seat_of_another_category_has_another_price_and_every_category_has_one() {
    let database = Database::new().await;
    let stage = Stage { hall: HALL, ..Stage::default() };
    stage.open(&database).await;
    let pool = database.pool();
    let mut plan = HALL.plan(stage.slug);
    seats(&mut plan, 0)[0]["category"] = "Back".into();
    let imported = import(pool, stage.slug, &plan).await.unwrap();
    assert_eq!(imported.events, [(stage.slug.to_owned(), 1)]);
    let levels: Vec<i16> =
        sqlx::query_scalar("select level from event_seat order by seat_no").fetch_all(pool).await.unwrap();
    assert_eq!(levels, [1, 0, 0, 1, 1, 1]);

    plan["categories"].as_array_mut().unwrap().extend([json!({"name": "Box"}), json!({"name": "Unused"})]);
    seats(&mut plan, 1)[0]["category"] = "Box".into();
    let before = everything(pool).await;
    let Err(ImportError::Refused(refused)) = import(pool, stage.slug, &plan).await else {
        panic!("the box has no price");
    };
    let [Refusal::Unpriced(missing)] = &refused[..] else { panic!("{refused:?}") };
    let missing: Vec<_> = missing.iter().map(|m| (m.event.as_str(), m.category.as_str())).collect();
    assert_eq!(missing, [(stage.slug, "Box")]);
    assert_eq!(everything(pool).await, before);
    database.finish().await;
}

#[tokio::test]
async fn two_imports_of_one_plan_follow_one_another() {
    let database = Database::new().await;
    let plan = HALL.plan("Hall");
    let imports = (0..6).map(|_| import(database.pool(), "Hall", &plan));
    let done = futures_util::future::join_all(imports).await;
    let fresh = done.into_iter().map(Result::unwrap).filter(|i| !i.unchanged).count();
    assert_eq!(fresh, 1);
    database.finish().await;
}
