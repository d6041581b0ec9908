//! The claim on a database: a hub without NATS has it for itself alone, hubs with NATS share it.
//!
//! Without NATS the frames stay in their process. A second hub would take changes off the outbox that
//! the first one's maps then never show.
//!
//! The claim is an advisory lock, so it lasts as long as its connection. When that breaks (a failover,
//! a restart of the database), the hub claims anew; until it has, it says that it is not ready.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use sqlx::{Connection, PgConnection, PgPool, postgres::PgConnectOptions};
use tokio_util::sync::CancellationToken;

/// "fullhous", as a number.
const KEY: i64 = 0x6675_6c6c_686f_7573;
const PING_INTERVAL: Duration = Duration::from_secs(2);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A hub that was killed lets go as soon as the server notices; who starts in its place waits so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the claim is ours at the moment. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Claimed(Arc<AtomicBool>);

impl Claimed {
    pub fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub struct Claim {
    options: Arc<PgConnectOptions>,
    alone: bool,
    connection: PgConnection,
    claimed: Claimed,
}

impl Claim {
    /// Claims the database of `pool`, or says who is in the way.
    pub async fn stake(pool: &PgPool, alone: bool) -> anyhow::Result<Self> {
        let options = pool.connect_options();
        let connection = lock(&options, alone).await?;
        Ok(Self { options, alone, connection, claimed: Claimed(Arc::new(AtomicBool::new(true))) })
    }

    pub fn claimed(&self) -> Claimed {
        self.claimed.clone()
    }

    /// Keeps the claim, and claims anew when the connection breaks, until it is let go.
    pub async fn keep(mut self, let_go: CancellationToken) {
        while let_go.run_until_cancelled(tokio::time::sleep(PING_INTERVAL)).await.is_some() {
            if matches!(tokio::time::timeout(PING_TIMEOUT, self.connection.ping()).await, Ok(Ok(()))) {
                continue;
            }
            self.claimed.0.store(false, Ordering::Relaxed);
            tracing::warn!("the claim on the database was lost with its connection");
            match tokio::time::timeout(PING_TIMEOUT, lock(&self.options, self.alone)).await {
                Ok(Ok(connection)) => {
                    self.connection = connection;
                    self.claimed.0.store(true, Ordering::Relaxed);
                    tracing::info!("the database is claimed again");
                }
                Ok(Err(error)) => tracing::error!(error = format!("{error:#}"), "the database can't be claimed again"),
                Err(_) => tracing::error!("the database does not answer"),
            }
        }
        // Closing the connection would do, but a little later than whoever starts next asks.
        let unlock = sqlx::query!("select pg_advisory_unlock_all()").execute(&mut self.connection);
        let _ = tokio::time::timeout(PING_TIMEOUT, unlock).await;
    }
}

async fn lock(options: &PgConnectOptions, alone: bool) -> anyhow::Result<PgConnection> {
    let mut connection = PgConnection::connect_with(options).await.context("connecting to PostgreSQL")?;
    let until = Instant::now() + PATIENCE;
    while !try_lock(&mut connection, alone).await.context("claiming the database")? {
        ensure!(
            Instant::now() < until,
            "another hub runs on this database, and one of the two has no NATS (nats.url): their maps would differ"
        );
        tokio::time::sleep(PATIENCE / 20).await;
    }
    Ok(connection)
}

async fn try_lock(db: &mut PgConnection, alone: bool) -> sqlx::Result<bool> {
    if alone {
        sqlx::query_scalar!(r#"select pg_try_advisory_lock($1) as "claimed!""#, KEY).fetch_one(db).await
    } else {
        sqlx::query_scalar!(r#"select pg_try_advisory_lock_shared($1) as "claimed!""#, KEY).fetch_one(db).await
    }
}
