//! The database's clock, set by hand. It replaces `db_clock()` in one test's database.
//!
//! The time of the actors and of the operating system goes on: only what asks the database sees it.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use uuid::Uuid;

#[derive(Clone)]
pub struct Clock {
    pool: PgPool,
}

impl Clock {
    pub(crate) async fn install(pool: &PgPool) -> Self {
        for statement in [
            "create table test_clock (ahead interval not null default '0', frozen timestamptz)",
            "insert into test_clock default values",
            "create or replace function db_clock() returns timestamptz language sql volatile as \
             'select coalesce(frozen, clock_timestamp() + ahead) from test_clock'",
        ] {
            sqlx::query(statement).execute(pool).await.expect("the clock can be replaced");
        }
        Self { pool: pool.clone() }
    }

    pub async fn now(&self) -> DateTime<Utc> {
        sqlx::query_scalar("select db_clock()").fetch_one(&self.pool).await.expect("the clock answers")
    }

    /// Moves the clock, running or stopped.
    pub async fn advance(&self, by: TimeDelta) {
        sqlx::query("update test_clock set ahead = ahead + $1, frozen = frozen + $1")
            .bind(by)
            .execute(&self.pool)
            .await
            .expect("the clock can be set");
    }

    /// Where nothing but time is waited for until a worker looks at an order's payment, that time has come.
    pub async fn advance_to_next_look(&self, order_id: Uuid) {
        let next: Option<DateTime<Utc>> = sqlx::query_scalar(
            "select min(next_run_at) from attempt where order_id = $1 and leased_until is null
             having bool_and(next_run_at > db_clock())",
        )
        .bind(order_id)
        .fetch_optional(&self.pool)
        .await
        .expect("the test's database answers")
        .flatten();
        if let Some(next) = next {
            self.advance(next - self.now().await + TimeDelta::milliseconds(1)).await;
        }
    }

    /// Stops the clock at an instant.
    pub async fn freeze_at(&self, at: DateTime<Utc>) {
        sqlx::query("update test_clock set frozen = $1").bind(at).execute(&self.pool).await.expect("the clock stops");
    }

    /// Lets it run on from where it stands.
    pub async fn run(&self) {
        sqlx::query("update test_clock set ahead = coalesce(frozen - clock_timestamp(), ahead), frozen = null")
            .execute(&self.pool)
            .await
            .expect("the clock runs");
    }
}
