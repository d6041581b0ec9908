//! Clients that go away at a named moment: inside `BEGIN`, inside `COMMIT`; and at moments in between.
//!
//! The wire to the database holds the statement or its answer back; meanwhile the client hangs up, and the
//! hub has noticed before the wire lets go. Only the moments in between are guessed.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fullhouse::serve::Roles;
use fullhouse_tests::{
    caller::Caller,
    database::Database,
    eventually,
    fan::{self, Fan},
    hub::Hub,
    proxy::{Proxy, Side},
    rows::Rows,
};
use serde_json::json;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

/// Two fans want each seat; both of them hang up.
struct Scene {
    database: Database,
    proxy: Proxy,
    hub: Hub,
    event: i64,
    fans: Vec<Fan>,
}

/// Of the database's sessions with this name, how many are inside a transaction.
async fn inside_a_transaction(pool: &PgPool, name: &str) -> i64 {
    sqlx::query_scalar(
        "select count(*) from pg_stat_activity
         where datname = current_database() and application_name = $1 and (xact_start is not null or backend_xid is not null)",
    )
    .bind(name)
    .fetch_one(pool)
    .await
    .unwrap()
}

impl Scene {
    async fn open(aborts: usize) -> Self {
        let database = Database::new().await;
        let event = Rows::new(1, aborts as i32 / 2).open(database.pool()).await;
        let proxy = Proxy::start().await;
        let mut config = database.config_through(&proxy);
        config.database.connections_max = 4; // what was poisoned is soon used again
        let hub = Hub::start_as(config, Roles { workers: false, ..Roles::ALL }).await;
        let fans = fan::many(&database, &hub.url(), aborts).await;
        for fan in &fans {
            fan.my_hold(event).await.ok(); // the session is known, so what follows is the hold's
        }
        Self { database, proxy, hub, event, fans }
    }

    /// The fans of `range` hang up, each while `side` of `word` is held back.
    async fn abort(&self, range: std::ops::Range<usize>, word: &'static str, side: Side) {
        let path = format!("/api/events/{}/hold", self.event);
        for n in range {
            let mut held = self.proxy.hold_next(word, side);
            let call = Caller::post_once(&self.fans[n], &path, "once", &json!({ "seats": [n / 2] })).await;
            held.caught().await;
            call.hang_up().await;
            held.let_go();
        }
    }

    /// Of the two that wanted a seat the first was granted it, though nobody was there to hear it.
    async fn the_first_of_each_two_were_granted(&self) {
        eventually("every request was decided", || async {
            let answers: i64 =
                sqlx::query_scalar("select count(*) from hold_request").fetch_one(self.database.pool()).await.unwrap();
            (answers == self.fans.len() as i64 / 2).then_some(())
        })
        .await;
        let path = format!("/api/events/{}/hold", self.event);
        for (n, fan) in self.fans.iter().enumerate() {
            let again = fan.post_once(&path, "once", json!({ "seats": [n / 2] })).await;
            if n % 2 == 0 {
                assert_eq!(again.ok()["hold"]["seats"], json!([n / 2]), "the key finds the answer");
            } else {
                assert_eq!(again.code(), "seats_unavailable", "a refusal is decided anew");
            }
        }
    }

    /// No transaction is left, in whichever connection, and every seat that two wanted has one owner.
    async fn close(self) {
        let pool = self.database.pool();
        eventually("no transaction is open", || async {
            (inside_a_transaction(pool, "fullhouse").await == 0).then_some(())
        })
        .await;
        // Every connection of the hub, taken out of its pool: none of them remembers a transaction.
        let hubs = &self.hub.parts().pool;
        let mut connections = Vec::new();
        for _ in 0..hubs.options().get_max_connections() {
            connections.push(hubs.acquire().await.expect("the desk gives its own back when it has no work"));
        }
        for connection in &mut connections {
            let look = "select txid_current_if_assigned(), now()";
            let first: (Option<i64>, DateTime<Utc>) = sqlx::query_as(look).fetch_one(&mut **connection).await.unwrap();
            let second: (Option<i64>, DateTime<Utc>) = sqlx::query_as(look).fetch_one(&mut **connection).await.unwrap();
            assert_eq!((first.0, second.0), (None, None));
            assert!(second.1 > first.1, "each statement is a transaction of its own");
        }
        drop(connections);

        let path = format!("/api/events/{}/hold", self.event);
        for (n, fan) in self.fans.iter().enumerate() {
            let again = fan.post_once(&path, "once", json!({ "seats": [n / 2] })).await;
            assert!(again.status.is_success() || again.code() == "seats_unavailable", "{n}: {again:?}");
        }
        let seats = self.fans.len() as i64 / 2;
        let owners: (i64, i64) = sqlx::query_as(
            "select count(*), count(distinct hold_id) from event_seat where event_id = $1 and status = 1",
        )
        .bind(self.event)
        .fetch_one(pool)
        .await
        .unwrap();
        assert_eq!(owners, (seats, seats));
        self.hub.stop().await;
        self.database.finish().await;
    }
}

#[tokio::test]
async fn a_hundred_clients_hang_up_inside_begin() {
    let scene = Scene::open(100).await;
    scene.abort(0..100, "BEGIN", Side::Answer).await;
    scene.the_first_of_each_two_were_granted().await;
    scene.close().await;
}

#[tokio::test]
async fn a_hundred_clients_hang_up_inside_commit() {
    let scene = Scene::open(100).await;
    scene.abort(0..50, "COMMIT", Side::Answer).await;
    scene.abort(50..100, "COMMIT", Side::Request).await;
    scene.the_first_of_each_two_were_granted().await;
    scene.close().await;
}

/// Anywhere else in a batch: each statement takes 20 ms there and back, and clients hang up at moments that are
/// spread over all of them.
#[tokio::test]
async fn a_client_that_hangs_up_anywhere_leaves_no_transaction_behind() {
    const ABORTS: u64 = 24;
    let scene = Scene::open(ABORTS as usize).await;
    let path = format!("/api/events/{}/hold", scene.event);
    scene.proxy.slow(Duration::from_millis(10));
    for (n, fan) in scene.fans.iter().enumerate() {
        let request = fan.request(reqwest::Method::POST, &path).header("idempotency-key", "once");
        let request = request.json(&json!({ "seats": [n / 2] })).send();
        let _ = tokio::time::timeout(Duration::from_millis(5 + 12 * n as u64), request).await;
    }
    scene.proxy.mend();
    scene.close().await;
}

/// A handler that owns its transaction, as many are written. It goes when its client goes.
async fn naive_handler(pool: PgPool) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    sqlx::query("insert into naive_hold default values").execute(&mut *tx).await?;
    tx.commit().await
}

/// The same with a BEGIN that the pool does not know of: what sqlx's own comes to from 0.8.4 to 0.9.0.
async fn naive_handler_that_begins_by_itself(pool: PgPool) -> sqlx::Result<()> {
    let mut db = pool.acquire().await?;
    for statement in ["BEGIN", "insert into naive_hold default values", "COMMIT"] {
        sqlx::query(statement).execute(&mut *db).await?;
    }
    Ok(())
}

/// Runs a handler until it is caught, lets its client go, and then the wire.
async fn drop_inside(
    proxy: &Proxy,
    word: &'static str,
    side: Side,
    handler: impl Future<Output = sqlx::Result<()>> + Send + 'static,
) {
    let mut held = proxy.hold_next(word, side);
    let handler = tokio::spawn(handler);
    held.caught().await;
    handler.abort();
    assert!(handler.await.is_err_and(|e| e.is_cancelled()));
    held.let_go();
}

/// The controls: what handlers that own their transactions leave behind at the same moments.
#[tokio::test]
async fn what_a_handler_that_owns_its_transaction_leaves_behind() {
    let database = Database::new().await;
    sqlx::query("create table naive_hold (id bigint generated always as identity)")
        .execute(database.pool())
        .await
        .unwrap();
    let proxy = Proxy::start().await;
    let url = database.config_through(&proxy).database.url;
    let options: PgConnectOptions = url.reveal().parse().unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(10))
        .test_before_acquire(false)
        .connect_with(options.application_name("naive"))
        .await
        .unwrap();
    let rows = || async {
        sqlx::query_scalar::<_, i64>("select count(*) from naive_hold").fetch_one(database.pool()).await.unwrap()
    };

    // Inside a BEGIN of its own: the next request gets the connection with the transaction still open. What it
    // writes is answered with a success, and nobody ever sees it.
    drop_inside(&proxy, "BEGIN", Side::Answer, naive_handler_that_begins_by_itself(pool.clone())).await;
    sqlx::query("insert into naive_hold default values").execute(&pool).await.unwrap();
    assert_eq!((rows().await, inside_a_transaction(database.pool(), "naive").await), (0, 1), "the fault exists");
    sqlx::raw_sql("ROLLBACK").execute(&pool).await.unwrap();

    // Inside sqlx 0.8.3's begin(): the connection comes back clean, and the request has come to nothing.
    drop_inside(&proxy, "BEGIN", Side::Answer, naive_handler(pool.clone())).await;
    sqlx::query("select").execute(&pool).await.unwrap();
    assert_eq!(
        (rows().await, inside_a_transaction(database.pool(), "naive").await),
        (0, 0),
        "0.8.3 does not leave it open"
    );

    // Inside COMMIT, whether the server has seen it or not: it is carried out, nobody knows, and whoever tries
    // again holds twice.
    for (before, side) in [(0, Side::Answer), (2, Side::Request)] {
        drop_inside(&proxy, "COMMIT", side, naive_handler(pool.clone())).await;
        naive_handler(pool.clone()).await.unwrap();
        assert_eq!(rows().await, before + 2, "the fault exists: two for one wish, {side:?}");
    }
    pool.close().await;
    database.finish().await;
}
