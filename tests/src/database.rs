//! A database a test, copied from a migrated template, and what must be true when the test ends.

use fullhouse::{config::Secret, watch};
use sqlx::PgPool;

use crate::{clock::Clock, eventually, proxy::Proxy, run::run};

pub struct Database {
    name: String,
    pool: PgPool,
}

impl Database {
    /// With the real clock: what the real binary insists on.
    pub async fn new() -> Self {
        let name = run().await.copy_template().await.expect("a database for the test");
        let pool = PgPool::connect(&run().await.url(&name)).await.expect("a way to the test's database");
        Self { name, pool }
    }

    /// With a clock that the test sets. A hub must be started with `allow_test_clock`.
    pub async fn with_clock() -> (Self, Clock) {
        let database = Self::new().await;
        let clock = Clock::install(&database.pool).await;
        (database, clock)
    }

    /// The clock is the test's from now on: the real binary has run on this database, and will not start on it again.
    pub async fn take_clock(&self) -> Clock {
        Clock::install(&self.pool).await
    }

    /// For looking behind the wire: to prepare and to assert, never in an actor's place.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub async fn url(&self) -> String {
        run().await.url(&self.name)
    }

    /// The settings that lead a hub here, by the socket.
    pub async fn config(&self) -> fullhouse::config::Config {
        self.config_for(&self.url().await)
    }

    /// The settings that lead a hub here through a wire that can be cut.
    pub fn config_through(&self, proxy: &Proxy) -> fullhouse::config::Config {
        self.config_for(&format!("postgres://fullhouse@{}/{}", proxy.address(), self.name))
    }

    fn config_for(&self, url: &str) -> fullhouse::config::Config {
        let mut config = fullhouse::config::Config::defaults();
        config.database.url = Secret::new(url);
        config.database.connections_max = 12; // many hubs share the run's one server
        config.database.acquire_timeout_ms = 10_000; // and two cores
        config.http.listen = "127.0.0.1:0".to_owned();
        config
    }

    /// Nothing may be left over; then the database goes. Called last by every test.
    pub async fn finish(self) {
        self.no_transaction_is_left_open().await;
        self.no_invariant_is_broken().await;
        self.pool.close().await;
        run().await.drop_database(&self.name).await.expect("the test's database goes");
    }

    /// What the watch looks for is not there.
    #[track_caller]
    pub fn no_invariant_is_broken(&self) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let violations = watch::check(&self.pool).await.expect("the test's database answers");
            assert!(violations.is_empty(), "{caller}: {violations:#?}");
        }
    }

    /// Every change has reached the bus. Only where a relay runs.
    pub async fn outbox_is_drained(&self) {
        eventually("the outbox is empty", || async {
            let rows: i64 = sqlx::query_scalar("select count(*) from outbox")
                .fetch_one(&self.pool)
                .await
                .expect("the test's database answers");
            (rows == 0).then_some(())
        })
        .await;
    }

    /// No session of this database sits in a transaction that nobody drives.
    pub async fn no_transaction_is_left_open(&self) {
        eventually("no session is idle in a transaction", || async {
            let open: i64 = sqlx::query_scalar(
                "select count(*) from pg_stat_activity \
                 where datname = current_database() and state like 'idle in transaction%'",
            )
            .fetch_one(&self.pool)
            .await
            .expect("the test's database answers");
            (open == 0).then_some(())
        })
        .await;
    }
}
