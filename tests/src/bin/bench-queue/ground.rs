//! What the bench stands on: a durable PostgreSQL of its own, half a million accounts that are signed in, an event whose
//! line may be joined, and the hub.

use std::{os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use chrono::{TimeDelta, Utc};
use fullhouse::{
    config::{Config, Secret},
    db,
    embedded_postgres::{EmbeddedPostgres, Options},
    waiting_room::open::{self, NewLine},
};
use fullhouse_tests::{binary::Binary, rows::Rows};
use sqlx::PgPool;

pub struct Ground {
    pub hub: Binary,
    pub event: i64,
    pool: PgPool,
    postgres: EmbeddedPostgres,
    /// Removed at the end, however it comes.
    _directory: Directory,
}

/// What a person's browser has: the same for the database and for the client.
pub fn token(person: usize) -> String {
    format!("bench-{person:07}-00000000000000000000000000000")
}

impl Ground {
    pub async fn lay(people: usize) -> anyhow::Result<Self> {
        let directory = Directory::make()?;
        let options = Options { data: directory.0.join("cluster"), durable: true, connections_max: 100 };
        let postgres = EmbeddedPostgres::start(options).await?;
        postgres.ensure_database("bench").await?;
        let mut config = Config::defaults();
        config.database.url = Secret::new(postgres.url("bench"));
        let pool = db::connect(&config.database).await?;
        db::migrate(&pool).await?;
        sign_in(&pool, people).await?;
        let hall = Rows { on_sale_in: TimeDelta::hours(2), ..Rows::new(100, 31) };
        let event = hall.open(&pool).await;
        let mut tx = pool.begin().await?;
        let now = Utc::now();
        let line = NewLine {
            joins_at: now - TimeDelta::seconds(1),
            closes_at: now + TimeDelta::hours(1),
            public: None,
            rate_minute_min: 60,
            rate_minute_max: 1_000_000,
            inside_max: 1_000_000,
        };
        open::open(&mut tx, event, &line, "bench").await?;
        // How fast it is called is not what is asked here: as fast as a line ever is.
        sqlx::query("update line set rate_fixed = 1000000, show_s = 1 where event_id = $1")
            .bind(event)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        let more = [
            ("FULLHOUSE__WAITING_ROOM__CHALLENGE_COST", "1"),
            ("FULLHOUSE__WAITING_ROOM__CHALLENGE_TRIES", "1"),
            ("FULLHOUSE__WAITING_ROOM__JOINS_SECOND_CALM", "1000000"),
            ("FULLHOUSE__WAITING_ROOM__ADDRESS_CHALLENGES_MAX", "10000000"), // all come from this machine
        ];
        let hub = Binary::serve(&config, &more).await;
        Ok(Self { hub, event, pool, postgres, _directory: directory })
    }

    /// Processor time of the hub until now, seconds.
    pub fn hub_cpu_s(&self) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.hub.pid())).unwrap_or_default();
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
        ticks / 100.0
    }

    pub async fn entries(&self) -> anyhow::Result<i64> {
        let entries = "select count(*) from line_entry where event_id = $1";
        Ok(sqlx::query_scalar(entries).bind(self.event).fetch_one(&self.pool).await?)
    }

    /// Nobody else is drawn, and the sale opens: what time would do in an hour.
    pub async fn close(&self) -> anyhow::Result<()> {
        let mut tx = self.pool.begin().await?;
        sqlx::query("update event set on_sale_at = clock_timestamp() where id = $1")
            .bind(self.event)
            .execute(&mut *tx)
            .await?;
        sqlx::query("update line set closes_at = clock_timestamp() where event_id = $1")
            .bind(self.event)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Waits until the places are drawn.
    pub async fn drawn(&self, bound: Duration) -> anyhow::Result<()> {
        let until = tokio::time::Instant::now() + bound;
        loop {
            let drawn = "select drawn_at is not null from draw where event_id = $1 and abandoned_at is null";
            if sqlx::query_scalar(drawn).bind(self.event).fetch_one(&self.pool).await? {
                return Ok(());
            }
            if tokio::time::Instant::now() > until {
                bail!("not drawn within {bound:?}: {}", self.hub.log());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn clear(self) {
        self.hub.stop().await;
        self.pool.close().await;
        self.postgres.stop().await;
    }
}

/// People with a checked address who are signed in.
async fn sign_in(pool: &PgPool, people: usize) -> anyhow::Result<()> {
    let last = i64::try_from(people).context("fewer people")? - 1;
    let accounts = "insert into account (id, email, name, password_hash, email_checked_at)
        select gen_random_uuid(), format('p%s@example.org', n), 'Somebody', '', clock_timestamp() from generate_series(0, $1) n";
    sqlx::query(accounts).bind(last).execute(pool).await?;
    let sessions = "insert into session (token_hash, account_id, expires_at)
        select sha256(convert_to('bench-' || lpad(split_part(substr(email, 2), '@', 1), 7, '0') || '-' || repeat('0', 29), 'UTF8')),
               id, clock_timestamp() + interval '1 day'
        from account where email like 'p%@example.org'";
    sqlx::query(sessions).execute(pool).await?;
    for table in ["account", "session"] {
        sqlx::raw_sql(&format!("vacuum analyze {table}")).execute(pool).await?;
    }
    Ok(())
}

struct Directory(PathBuf);

impl Directory {
    fn make() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("fullhouse-bench-queue-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?; // PostgreSQL has a user of its own
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // at the end of the process nobody is left to tell
    }
}
