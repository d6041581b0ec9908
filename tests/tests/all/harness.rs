//! The harness itself: a tool that lies would make every other test worthless.

use std::time::Duration;

use chrono::TimeDelta;
use fullhouse::{
    child::Spec,
    embedded_postgres::{EmbeddedPostgres, Options},
};
use fullhouse_tests::{
    HUNG,
    binary::{self, Binary},
    database::Database,
    fan::{self, Fan, PASSWORD},
    hub::Hub,
    nats::Nats,
    proxy::{Proxy, Side},
    run::run,
};
use futures_util::StreamExt;
use sqlx::{Connection, PgConnection, PgPool};

#[tokio::test]
async fn a_test_has_a_migrated_database_of_its_own() {
    let (first, second) = (Database::new().await, Database::new().await);
    fullhouse::db::check_schema(first.pool()).await.unwrap();
    sqlx::query("insert into venue (slug, name, time_zone) values ('hall', 'Hall', 'UTC')")
        .execute(first.pool())
        .await
        .unwrap();
    let venues: i64 = sqlx::query_scalar("select count(*) from venue").fetch_one(second.pool()).await.unwrap();
    assert_eq!(venues, 0);
    first.finish().await;
    second.finish().await;
}

#[tokio::test]
async fn the_clock_is_set_by_hand_and_the_hub_can_tell() {
    let real = Database::new().await;
    assert!(fullhouse::clock::is_real(&mut real.pool().acquire().await.unwrap()).await.unwrap());
    real.finish().await;

    let (database, clock) = Database::with_clock().await;
    assert!(!fullhouse::clock::is_real(&mut database.pool().acquire().await.unwrap()).await.unwrap());
    let before = clock.now().await;
    clock.advance(TimeDelta::minutes(8)).await;
    let after = clock.now().await;
    assert!(after - before >= TimeDelta::minutes(8) && after - before < TimeDelta::minutes(9));
    clock.freeze_at(before).await;
    assert_eq!(clock.now().await, before);
    clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(clock.now().await, before + TimeDelta::seconds(1));
    clock.run().await;
    let running = clock.now().await;
    assert!(running > before + TimeDelta::seconds(1) && running < before + TimeDelta::minutes(1));
    database.finish().await;
}

#[tokio::test]
async fn the_wire_can_be_cut_stalled_and_mended() {
    let database = Database::new().await;
    let proxy = Proxy::start().await;
    let url = database.config_through(&proxy).database.url;
    let mut db = PgConnection::connect(url.reveal()).await.unwrap();
    sqlx::query("select 1").execute(&mut db).await.unwrap();

    proxy.stall();
    let stalled = tokio::time::timeout(Duration::from_millis(100), sqlx::query("select 2").execute(&mut db)).await;
    assert!(stalled.is_err(), "nothing passes");
    proxy.cut();
    assert!(PgConnection::connect(url.reveal()).await.is_err());
    proxy.mend();
    let mut db = PgConnection::connect(url.reveal()).await.unwrap();
    sqlx::query("select 3").execute(&mut db).await.unwrap();
    database.finish().await;
}

#[tokio::test]
async fn the_wire_holds_one_statement_back_by_name() {
    let database = Database::new().await;
    sqlx::query("create table said (word text)").execute(database.pool()).await.unwrap();
    let said = || async {
        sqlx::query_scalar::<_, i64>("select count(*) from said").fetch_one(database.pool()).await.unwrap()
    };
    let proxy = Proxy::start().await;
    let mut db = PgConnection::connect(database.config_through(&proxy).database.url.reveal()).await.unwrap();
    // With and without a Parse of its own: the second time it is prepared already.
    for (before, side) in [(0, Side::Request), (1, Side::Answer)] {
        let mut held = proxy.hold_next("INSERT", side);
        sqlx::raw_sql("select 'insert'").execute(&mut db).await.unwrap();
        let insert = tokio::spawn(async move {
            sqlx::query("insert into said values ($1)").bind("word").execute(&mut db).await.unwrap();
            db
        });
        held.caught().await;
        assert!(!insert.is_finished());
        assert_eq!(said().await, before + i64::from(side == Side::Answer), "{side:?}");
        held.let_go();
        db = insert.await.unwrap();
        assert_eq!(said().await, before + 1);
    }
    db.close().await.unwrap();
    database.finish().await;
}

#[tokio::test]
async fn a_hub_here_and_the_real_binary_answer_the_same_fan() {
    let database = Database::new().await;
    let hub = Hub::start(database.config().await).await;
    let fan = Fan::sign_up(&hub.url()).await;
    assert_eq!(fan.get("/api/session").await.ok()["account"]["email"], fan.email.as_str());
    let prepared = fan::many(&database, &hub.url(), 2).await;
    assert_eq!(prepared[1].get("/api/session").await.ok()["account"]["email"], prepared[1].email.as_str());
    hub.stop().await;

    let binary = Binary::serve(&database.config().await, &[]).await;
    assert_eq!(fan.at(binary.url()).get("/api/session").await.ok()["account"]["email"], fan.email.as_str());
    binary.kill().await;
    let again = Binary::serve(&database.config().await, &[]).await;
    assert_eq!(Fan::sign_in(again.url(), &fan.email, PASSWORD).await.get("/api/session").await.status, 200);
    again.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn the_real_binary_refuses_a_clock_that_was_replaced() {
    let (database, _clock) = Database::with_clock().await;
    let refused = Spec::new(binary::path())
        .arg("serve")
        .env("FULLHOUSE__DATABASE__URL", database.url().await)
        .env("FULLHOUSE__HTTP__LISTEN", "127.0.0.1:0")
        .spawn()
        .unwrap();
    let status = tokio::task::spawn_blocking(move || refused.wait(HUNG)).await.unwrap();
    assert_eq!(status.expect("it ends").code(), Some(1));
    database.finish().await;
}

#[tokio::test]
async fn nats_keeps_its_port_and_its_stream_over_a_restart() {
    let mut nats = Nats::start().await;
    let url = nats.url();
    let stream = async_nats::jetstream::stream::Config { name: "S".into(), ..Default::default() };
    let jetstream = async_nats::jetstream::new(async_nats::connect(&url).await.unwrap());
    jetstream.create_stream(stream.clone()).await.unwrap();
    jetstream.publish("S", "before".into()).await.unwrap().await.unwrap();
    nats.stop().await;
    assert!(async_nats::connect(&url).await.is_err());
    nats.restart().await;
    assert_eq!(nats.url(), url);
    let jetstream = async_nats::jetstream::new(async_nats::connect(&url).await.unwrap());
    let mut kept = jetstream.get_stream("S").await.unwrap();
    assert_eq!(kept.info().await.unwrap().state.messages, 1);
    assert_eq!(jetstream.streams().count().await, 1);
}

#[tokio::test]
async fn the_embedded_postgres_starts_again_in_moments_and_loses_nothing_when_killed() {
    let data = run().await.directory("embedded");
    std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let options = Options { data: data.clone(), durable: true, connections_max: 20 };
    let first = EmbeddedPostgres::start(options.clone()).await.unwrap();
    first.ensure_database("hall").await.unwrap();
    first.ensure_database("hall").await.unwrap();
    let second = EmbeddedPostgres::start(options.clone()).await;
    assert!(second.err().unwrap().to_string().contains("another Fullhouse"));
    let pool = PgPool::connect(&first.url("hall")).await.unwrap();
    sqlx::query("create table kept (n integer)").execute(&pool).await.unwrap();
    sqlx::query("insert into kept values (1)").execute(&pool).await.unwrap();

    // The server dies without a word, and its pid file stays.
    let pid: i32 =
        std::fs::read_to_string(data.join("postgres/postmaster.pid")).unwrap().lines().next().unwrap().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    drop(first);
    drop(pool);
    let before = std::time::Instant::now();
    let again = EmbeddedPostgres::start(options).await.unwrap();
    assert!(before.elapsed() < HUNG);
    let mut db = PgConnection::connect(&again.url("hall")).await.unwrap();
    let kept: Vec<i32> = sqlx::query_scalar("select n from kept").fetch_all(&mut db).await.unwrap();
    assert_eq!(kept, [1]);
    again.stop().await;
    assert!(db.ping().await.is_err(), "it ended, and cut its clients");
}
