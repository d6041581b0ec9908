//! The database's clock, set by hand. It replaces `db_clock()` in one test's database.
//!
//! The time of the actors and of the operating system goes on: only what asks the database sees it.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

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
