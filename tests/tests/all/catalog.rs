//! Events and lists, as an operator writes them and as a fan reads them.

use chrono::{Days, TimeDelta, Utc};
use fullhouse::{
    catalog::{
        commands::{Report, create_event_from, edit_event_from, read_plan},
        import::{self, ImportError, Imported, VenueSpec},
    },
    clock,
};
use fullhouse_tests::{HUNG, binary::path, database::Database, fan::Fan, hall::Hall, hub::Hub, stage::Stage};
use serde_json::{Value, json};
use sqlx::PgPool;

pub const HALL: Hall = Hall { rows: 2, seats_a_row: 3 };

fn venue() -> VenueSpec {
    VenueSpec { slug: "the-hall".into(), time_zone: Some("Europe/Berlin".into()), ..VenueSpec::default() }
}

/// Imports a plan, and commits if that went well.
pub async fn import(pool: &PgPool, name: &str, plan: &Value) -> Result<Imported, ImportError> {
    let (layout, _) = read_plan(plan.to_string().as_bytes(), None).expect("a sound plan");
    let mut tx = pool.begin().await.unwrap();
    let imported = import::import(&mut tx, &venue(), name, &layout).await?;
    tx.commit().await.unwrap();
    Ok(imported)
}

/// All that an import writes, to see that a refused one wrote nothing.
pub async fn everything(pool: &PgPool) -> String {
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

pub async fn fullhouse(database: &Database, arguments: &[&str]) -> (i32, String) {
    let mut command = tokio::process::Command::new(path());
    command.args(arguments).env("FULLHOUSE__DATABASE__URL", database.url().await).kill_on_drop(true);
    let output = tokio::time::timeout(HUNG, command.output()).await.expect("it ends").expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
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
