//! Plans, events and lists, as an operator writes them and as a fan reads them.

use chrono::{Days, TimeDelta, Utc};
use fullhouse::{
    catalog::{
        commands::{Report, create_event_from, edit_event_from, read_plan},
        import::{self, ImportError, Imported, Refusal, VenueSpec},
    },
    clock,
};
use fullhouse_tests::{HUNG, binary::path, database::Database, fan::Fan, hall::Hall, hub::Hub, stage::Stage};
use serde_json::{Value, json};
use sqlx::PgPool;

const HALL: Hall = Hall { rows: 2, seats_a_row: 3 };

fn venue() -> VenueSpec {
    VenueSpec { slug: "the-hall".into(), time_zone: Some("Europe/Berlin".into()), ..VenueSpec::default() }
}

/// Imports a plan, and commits if that went well.
async fn import(pool: &PgPool, name: &str, plan: &Value) -> Result<Imported, ImportError> {
    let (layout, _) = read_plan(plan.to_string().as_bytes(), None).expect("a sound plan");
    let mut tx = pool.begin().await.unwrap();
    let imported = import::import(&mut tx, &venue(), name, &layout).await?;
    tx.commit().await.unwrap();
    Ok(imported)
}

fn seats(plan: &mut Value, row: usize) -> &mut Vec<Value> {
    plan["zones"][0]["rows"][row]["seats"].as_array_mut().unwrap()
}

async fn status(pool: &PgPool, seat_no: i32) -> i16 {
    sqlx::query_scalar("select status from event_seat where seat_no = $1").bind(seat_no).fetch_one(pool).await.unwrap()
}

/// All that an import writes, to see that a refused one wrote nothing.
async fn everything(pool: &PgPool) -> String {
    let mut all = String::new();
    for table in [
        "venue",
        "plan",
        "plan_revision",
        "plan_seat",
        "event",
        "event_seat",
        "price_level",
        "price",
        "fee",
        "seat_note",
        "outbox",
    ] {
        let hash: Option<String> =
            sqlx::query_scalar(&format!("select md5(string_agg(t::text, '|' order by t::text)) from {table} t"))
                .fetch_one(pool)
                .await
                .unwrap();
        all += &format!("{table} {hash:?}\n");
    }
    all
}

async fn fullhouse(database: &Database, arguments: &[&str]) -> (i32, String) {
    let mut command = tokio::process::Command::new(path());
    command.args(arguments).env("FULLHOUSE__DATABASE__URL", database.url().await).kill_on_drop(true);
    let output = tokio::time::timeout(HUNG, command.output()).await.expect("it ends").expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
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

fn spec(overrides: Value) -> String {
    let mut spec = json!({
        "slug": "a-night", "name": "A Night", "venue": "the-hall", "plan": "Hall",
        "starts": "2027-06-01T20:00", "on_sale": "2027-01-01T10:00", "currency": "JPY",
        "levels": [
            {"category": "Front", "prices": [{"ticket_type": "adult", "amount_minor": 9000}]},
            {"category": "Back", "prices": [{"ticket_type": "adult", "amount_minor": 5000}]},
        ],
    });
    spec.as_object_mut().unwrap().extend(overrides.as_object().unwrap().clone());
    spec.to_string()
}

#[tokio::test]
async fn an_event_with_a_fault_is_not_made() {
    let database = Database::new().await;
    let pool = database.pool();
    import(pool, "Hall", &HALL.plan("Hall")).await.unwrap();
    let before = everything(pool).await;
    let refused = |overrides: Value| async move {
        let Report { text, failed } = create_event_from(pool, &spec(overrides)).await.unwrap();
        assert!(failed, "{text}");
        text
    };
    let text = refused(json!({"on_sale": "2027-03-28T02:30"})).await;
    assert!(text.contains("on_sale: 2027-03-28 02:30:00 does not exist in Europe/Berlin"), "{text}");
    let text = refused(json!({"starts": "2027-10-31T02:30"})).await;
    assert!(text.contains("starts: 2027-10-31 02:30:00 happens twice in Europe/Berlin"), "{text}");
    let text = refused(json!({"levels": [], "venue": "the-hall", "currency": "yen"})).await;
    for fault in ["\"Back\" has 3 seats and no price", "\"Front\" has 3 seats and no price", "currency"] {
        assert!(text.contains(fault), "{fault} in {text}");
    }
    assert!(refused(json!({"plan": "Another"})).await.contains("the venue has no plan \"Another\""));
    assert!(refused(json!({"venue": "nowhere"})).await.contains("there is no venue \"nowhere\""));
    assert!(refused(json!({"time_zone": "Mars/Olympus"})).await.contains("there is no time zone called Mars/Olympus"));
    // Whatever kind of fault it is, it hides no other.
    let text = refused(json!({
        "sluggish": 1, "name": null, "seat_limit": "six", "time_zone": "Mars/Olympus", "starts": "tonight",
        "levels": [{"category": "Front", "prices": [{"ticket_type": "adult", "amount_minor": -1}]}],
    }))
    .await;
    let faults = [
        "sluggish: ",
        "name: ",
        "seat_limit: ",
        "time_zone: ",
        "starts: ",
        "levels[0].prices[0].amount_minor: ",
        "levels: ",
    ];
    // The specification is one line of JSON, and each fault of a field that stands in it says so.
    for fault in faults {
        let told = text.lines().filter(|line| line.trim().trim_start_matches("line 1: ").starts_with(fault));
        assert_eq!(told.count(), 1, "{fault} in {text}");
    }
    assert!(text.contains("  line 1: seat_limit: "), "{text}");
    assert_eq!(text.lines().count(), 1 + faults.len(), "{text}");
    assert_eq!(everything(pool).await, before);

    let made = create_event_from(pool, &spec(json!({"time_zone": "Asia/Tokyo"}))).await.unwrap();
    assert!(!made.failed, "{}", made.text);
    let text = refused(json!({"sluggish": 1, "currency": "yen"})).await;
    assert!(text.contains("there is an event \"a-night\" already") && text.contains("currency: "), "{text}");
    let at: chrono::DateTime<Utc> = sqlx::query_scalar("select on_sale_at from event").fetch_one(pool).await.unwrap();
    assert_eq!(at.to_rfc3339(), "2027-01-01T01:00:00+00:00");
    assert!(refused(json!({})).await.contains("there is an event \"a-night\" already"));
    database.finish().await;
}

#[tokio::test]
async fn the_list_tells_the_truth_and_is_narrowed() {
    let (database, clock) = Database::with_clock().await;
    let stage = Stage {
        hall: HALL,
        beside: Some(json!({"house": ["r1s2"], "accessible": ["r0s0"], "companion": {"r0s1": "r0s0"}})),
        ..Stage::default()
    };
    let event = stage.open(&database).await;
    let day = |days: u64| (Utc::now().date_naive() + Days::new(days)).to_string();
    let later = spec(json!({
        "slug": "later", "plan": stage.slug, "name": "Ōkami: Nuit d'été", "tags": ["Open Air"],
        "starts": format!("{}T20:00", day(60)), "on_sale": format!("{}T10:00", day(10)),
        "off_sale": format!("{}T10:00", day(20)),
        "performers": [{"slug": "bts", "name": "밤의 노래"}],
        "fees": [
            {"code": "service", "basis": "seat", "amount_minor": 220},
            {"code": "dispatch", "basis": "order", "amount_minor": 110},
        ],
    }));
    assert!(!create_event_from(database.pool(), &later).await.unwrap().failed);
    let hub = Hub::start(database.config().await).await;
    let fan = Fan::sign_up(&hub.url()).await;
    let slugs = |path: String| {
        let fan = fan.clone();
        async move {
            let events = fan.get(&path).await.ok()["events"].clone();
            events.as_array().unwrap().iter().map(|e| e["slug"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(slugs("/api/events".into()).await, ["an-evening", "later"]);
    assert_eq!(slugs("/api/events?q=OKAMI%20ete".into()).await, ["later"]);
    assert_eq!(slugs("/api/events?q=%EB%85%B8%EB%9E%98".into()).await, ["later"]);
    assert_eq!(slugs("/api/events?tag=open%20air&venue=the-hall".into()).await, ["later"]);
    assert_eq!(slugs("/api/events?venue=elsewhere".into()).await, [""; 0]);
    assert_eq!(slugs(format!("/api/events?from={}&to={}", day(0), day(40))).await, ["an-evening"]);
    assert_eq!(fan.get("/api/events?from=tomorrow").await.code(), "bad_request");
    assert_eq!(fan.get("/api/events?form=2027-03-01").await.code(), "bad_request", "a misspelt field is not ignored");

    let one = fan.get("/api/events/an-evening").await.ok();
    let state = |of: &str| one["event"][of].clone();
    assert_eq!((state("sale"), state("seats_total"), state("seats_available")), (json!("on_sale"), json!(6), json!(5)));
    assert_eq!((state("from_minor"), state("currency")), (json!(3000), json!("EUR")));
    assert_eq!(
        one["seats"][0],
        json!({
            "seat_no": 0, "guid": "r0s0", "section": "Stalls", "row": "1", "number": "1", "level": 0, "accessible": true,
            "companion": false, "restricted_view": false, "standing": false, "status": "available",
        })
    );
    assert_eq!(one["seats"][5]["status"], "blocked");
    let later = fan.get("/api/events/later?seats=none").await.ok();
    assert_eq!((later["event"]["sale"].clone(), later.get("seats")), (json!("upcoming"), None));
    assert_eq!(later["performers"][0]["name"], "밤의 노래");
    let from = |page: &Value| (page["event"]["from_minor"].clone(), page["event"]["from_fees_minor"].clone());
    assert_eq!((from(&one), from(&later)), ((json!(3000), json!(0)), (json!(5000), json!(330))));

    fan.hold(event, &[0, 1, 2]).await.ok();
    let held = fullhouse_tests::eventually("the page shows the held seats", || async {
        let page = fan.get(&format!("/api/events/{event}")).await.ok();
        (page["seats"][0]["status"] == "held").then_some(page)
    })
    .await;
    assert_eq!(held["event"]["seats_available"], 2);
    clock.advance(TimeDelta::seconds(481)).await;
    fullhouse_tests::eventually("by the clock they are free", || async {
        let page = fan.get(&format!("/api/events/{event}")).await.ok();
        (page["seats"][0]["status"] == "available" && page["event"]["seats_available"] == 5).then_some(())
    })
    .await;
    clock.advance(TimeDelta::days(25)).await;
    fullhouse_tests::eventually("the later sale has closed", || async {
        let events = fan.get("/api/events").await.ok();
        (events["events"][1]["sale"] == "closed").then_some(())
    })
    .await;
    for unknown in ["no-such", "999999", "0", "-1"] {
        assert_eq!(fan.get(&format!("/api/events/{unknown}")).await.code(), "event_unknown");
    }
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_drawing_is_kept_for_ever() {
    let database = Database::new().await;
    Stage { hall: HALL, ..Stage::default() }.open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let fan = Fan::stranger(&hub.url());
    let page = fan.get("/api/events/an-evening?seats=none").await.ok();
    let address = page["plan"]["geometry"].as_str().unwrap();
    let answer = fan.get(address).await;
    let header = |name: &str| answer.headers.get(name).map(|v| v.to_str().unwrap().to_owned());
    assert_eq!(header("cache-control").as_deref(), Some("public, max-age=31536000, immutable"));
    let tag = header("etag").unwrap();
    assert_eq!(tag, format!("\"{}\"", page["plan"]["hash"].as_str().unwrap()));
    let drawing = answer.ok();
    assert_eq!(drawing["seats"]["x"].as_array().unwrap().len(), 6);
    assert_eq!(drawing["sections"][0]["count"], 6);
    assert_eq!(drawing["seats"]["run"], json!([0, 0, 0, 1, 1, 1]));

    let packed = fan.send(fan.request(reqwest::Method::GET, address).header("accept-encoding", "gzip")).await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let known = fan.send(fan.request(reqwest::Method::GET, address).header("if-none-match", &tag)).await;
    assert_eq!(known.status, reqwest::StatusCode::NOT_MODIFIED);
    for unknown in ["/api/plans/x/geometry".to_owned(), format!("/api/plans/{}/geometry", "0".repeat(64))] {
        assert_eq!(fan.get(&unknown).await.code(), "not_found");
    }
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn the_clock_of_a_page_is_the_databases() {
    let (database, clock) = Database::with_clock().await;
    Stage { hall: HALL, ..Stage::default() }.open(&database).await;
    clock.freeze_at("2027-01-01T00:00:00Z".parse().unwrap()).await;
    let hub = Hub::start(database.config().await).await;
    let page = Fan::stranger(&hub.url()).get("/api/events/an-evening").await.ok();
    assert_eq!(page["event"]["now"], "2027-01-01T00:00:00Z");
    assert!(!clock::is_real(&mut database.pool().acquire().await.unwrap()).await.unwrap());
    hub.stop().await;
    database.finish().await;
}

/// The zone of whoever edits, and how often they save, move nothing (B51).
#[tokio::test]
async fn saving_an_event_again_moves_nothing() {
    let database = Database::new().await;
    let pool = database.pool();
    import(pool, "Hall", &HALL.plan("Hall")).await.unwrap();
    // An hour after the gap and an hour after the overlap; one in winter, one in summer.
    let times = json!({
        "doors": "2027-10-31T03:30", "starts": "2027-10-31T04:30:15",
        "on_sale": "2027-03-28T03:30", "off_sale": "2027-07-01T12:00",
        "performers": [{"slug": "a-band", "name": "A Band"}, {"slug": "guests", "name": "Guests"}],
        "fees": [{"code": "service", "basis": "seat", "amount_minor": 100}],
        "seats_min": 2, "seat_limit": 4, "tags": ["loud"], "description": "\"Quoted\",\nand two lines",
    });
    let made = create_event_from(pool, &spec(times)).await.unwrap();
    assert!(!made.failed, "{}", made.text);
    let instants = || async {
        sqlx::query_as::<_, (String, String, String, String)>(
            "select (doors_at at time zone 'UTC')::text, (starts_at at time zone 'UTC')::text,
                    (on_sale_at at time zone 'UTC')::text, (off_sale_at at time zone 'UTC')::text from event",
        )
        .fetch_one(pool)
        .await
        .unwrap()
    };
    let (instants_before, shown) = (instants().await, fullhouse(&database, &["event", "show", "a-night"]).await.1);
    assert_eq!(instants_before.2, "2027-03-28 01:30:00");
    let mut saved = shown.clone();
    for zone in ["Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin"] {
        let file = std::env::temp_dir().join(format!("fullhouse-{}.json", uuid::Uuid::new_v4()));
        std::fs::write(&file, &saved).unwrap();
        let mut command = tokio::process::Command::new(path());
        command
            .args(["event", "edit"])
            .arg(&file)
            .env("FULLHOUSE__DATABASE__URL", database.url().await)
            .env("TZ", zone);
        let output = tokio::time::timeout(HUNG, command.kill_on_drop(true).output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::remove_file(&file).unwrap();
        saved = fullhouse(&database, &["event", "show", "a-night"]).await.1;
        assert_eq!(saved, shown, "saved from {zone}");
    }
    assert_eq!(instants().await, instants_before);

    // Rules of a zone that changed since: the local time stands, and saving puts the instant right.
    sqlx::query("update event set starts_at = starts_at + interval '1 hour'").execute(pool).await.unwrap();
    assert!(!edit_event_from(pool, &shown).await.unwrap().failed);
    assert_eq!(instants().await, instants_before);
    database.finish().await;
}

#[tokio::test]
async fn an_edit_with_a_fault_changes_nothing() {
    let database = Database::new().await;
    let pool = database.pool();
    import(pool, "Hall", &HALL.plan("Hall")).await.unwrap();
    import(pool, "Another", &HALL.plan("Another")).await.unwrap();
    assert!(!create_event_from(pool, &spec(json!({}))).await.unwrap().failed);
    let refused = |overrides: Value, fault: &'static str| async move {
        let before = everything(pool).await;
        let Report { text, failed } = edit_event_from(pool, &spec(overrides)).await.unwrap();
        assert!(failed && text.contains(fault), "{fault} in {text}");
        assert_eq!(everything(pool).await, before);
    };
    refused(json!({"slug": "unheard-of"}), "there is no event \"unheard-of\"").await;
    refused(json!({"on_sale": "2027-03-28T02:30"}), "on_sale: 2027-03-28 02:30:00 does not exist").await;
    refused(json!({"off_sale": "2027-10-31T02:30"}), "off_sale: 2027-10-31 02:30:00 happens twice").await;
    refused(json!({"plan": "Another"}), "plan: the event is on the plan \"Hall\"").await;
    refused(json!({"levels": []}), "\"Back\" has 3 seats and no price").await;
    refused(json!({"seats_min": 7, "seat_limit": 9}), "seats_min: the plan has 6 seats at most").await;
    refused(json!({"seats_min": 4, "consecutive_rule": true}), "seats_min: the plan has 3 seats side by side").await;
    refused(json!({"seats_min": 7}), "seats_min: from 1 to seat_limit").await;
    refused(json!({"currency": "XXX"}), "currency: three capital letters of one").await;
    refused(json!({"currency": "UGX"}), "currency: no card could pay in it").await;
    let buyer = fullhouse_tests::rows::buyers(pool, 1).await[0];
    sqlx::query(
        "insert into hold (id, event_id, buyer_id, seat_nos, held_until, seats_taken, created_at)
         select $1, id, $1, '{0, 1, 2}', now() + interval '1 hour', 3, now() from event",
    )
    .bind(buyer)
    .execute(pool)
    .await
    .unwrap();
    refused(json!({"seat_limit": 2}), "seat_limit: a buyer has 3 seats already").await;
    sqlx::query("delete from hold").execute(pool).await.unwrap();

    // What may change: prices, in an order of their own; seats keep the number of their level.
    let levels = json!([
        {"category": "Back", "name": "Rear", "prices": [{"ticket_type": "child", "amount_minor": 1000}, {"ticket_type": "adult", "amount_minor": 4000}]},
        {"category": "Front", "prices": [{"ticket_type": "adult", "amount_minor": 8000}]},
    ]);
    assert!(!edit_event_from(pool, &spec(json!({"levels": levels, "seat_limit": 2}))).await.unwrap().failed);
    let priced: Vec<(i32, String, i64)> = sqlx::query_as(
        "select s.seat_no, p.ticket_type, p.amount_minor from event_seat s
         join price p on p.event_id = s.event_id and p.level = s.level where s.seat_no in (0, 3) order by 1, p.position",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let priced: Vec<_> = priced.iter().map(|(seat, kind, price)| (*seat, kind.as_str(), *price)).collect();
    assert_eq!(priced, [(0, "adult", 8000), (3, "child", 1000), (3, "adult", 4000)]);
    database.finish().await;
}
