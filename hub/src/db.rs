//! The way to PostgreSQL.
//!
//! Invariants
//! - A transaction that writes seats is opened by [`event_tx`] or [`KeptConnection::begin`], which
//!   take its event's lock first.
//! - Writes run inside [`write`]: no request's future owns a transaction, so a client that hangs up
//!   can neither leave one open nor abort one half-way.

use std::{future::Future, time::Duration};

use anyhow::Context;
use sqlx::{
    Connection, Executor, PgConnection, Postgres,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPool, PgPoolOptions},
};

use crate::config;

pub type Tx = sqlx::Transaction<'static, Postgres>;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// Connects with the bounds of `[database]` on every wait.
pub async fn connect(config: &config::Database) -> anyhow::Result<PgPool> {
    anyhow::ensure!(!config.url.is_empty(), "database.url is not set");
    let options: PgConnectOptions = config.url.reveal().parse().context("database.url")?;
    let options = options.application_name("fullhouse").options([
        ("lock_timeout", format!("{}ms", config.lock_timeout_ms)),
        ("idle_in_transaction_session_timeout", format!("{}ms", config.idle_in_transaction_timeout_ms)),
        ("statement_timeout", format!("{}ms", config.statement_timeout_ms)),
        ("tcp_keepalives_idle", "10".to_owned()),
        ("tcp_keepalives_interval", "5".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
    ]);
    // The pool would try until its time is over, and then not say why.
    PgConnection::connect_with(&options).await.context("connecting to PostgreSQL")?.close().await.ok();
    let pool = PgPoolOptions::new()
        .max_connections(config.connections_max)
        .acquire_timeout(Duration::from_millis(config.acquire_timeout_ms))
        .test_before_acquire(false) // costs a round trip each time; a dead connection fails its statement, which is handled
        .connect_with(options)
        .await
        .context("connecting to PostgreSQL")?;
    Ok(pool)
}

/// Brings the schema up to this binary's.
pub async fn migrate(pool: &PgPool) -> anyhow::Result<()> {
    MIGRATIONS.run(pool).await.context("migrating the database")
}

/// Refuses a database whose schema is not the one that this binary was built for.
pub async fn check_schema(pool: &PgPool) -> anyhow::Result<()> {
    let applied: Vec<i64> = sqlx::query_scalar("select version from _sqlx_migrations where success order by version")
        .fetch_all(pool)
        .await
        .context("no schema in this database: run `fullhouse migrate`")?;
    let known: Vec<i64> = MIGRATIONS.iter().map(|m| m.version).collect();
    anyhow::ensure!(
        applied == known,
        "the schema is at {applied:?}, this binary needs {known:?}: run `fullhouse migrate`"
    );
    Ok(())
}

/// Opens a transaction that may write seats of `event_id`.
///
/// The lock is an advisory one and not a row's, because taking a row lock writes the row; it is a
/// statement of its own, because a statement that waited would go on with its old snapshot.
pub async fn event_tx(pool: &PgPool, event_id: i64) -> sqlx::Result<Tx> {
    let mut tx = pool.begin().await?;
    lock_event(&mut tx, event_id).await?;
    Ok(tx)
}

/// A connection that serves transaction after transaction: its statements are planned once, and
/// beginning and locking are one trip.
///
/// What does not come to its commit (an error, a panic) closes the connection, and its transaction
/// ends with it; the pool opens another.
pub struct KeptConnection {
    connection: PoolConnection<Postgres>,
    open: bool,
}

impl KeptConnection {
    pub async fn acquire(pool: &PgPool) -> sqlx::Result<Self> {
        Ok(Self { connection: pool.acquire().await?, open: false })
    }

    /// [`event_tx`], to be ended by [`Self::commit`] or [`Self::roll_back`].
    pub async fn begin(&mut self, event_id: i64) -> sqlx::Result<&mut PgConnection> {
        self.open = true;
        // Several statements take no parameters. A plan for just these thousand seats would take longer
        // to make than to carry out.
        let statements =
            format!("begin; set local plan_cache_mode = force_generic_plan; select pg_advisory_xact_lock({event_id})");
        self.connection.execute(statements.as_str()).await?;
        Ok(&mut self.connection)
    }

    pub async fn commit(&mut self) -> sqlx::Result<()> {
        self.end("commit").await
    }

    pub async fn roll_back(&mut self) -> sqlx::Result<()> {
        self.end("rollback").await
    }

    async fn end(&mut self, statement: &str) -> sqlx::Result<()> {
        self.connection.execute(statement).await?;
        self.open = false;
        Ok(())
    }
}

impl Drop for KeptConnection {
    fn drop(&mut self) {
        if self.open {
            self.connection.close_on_drop();
        }
    }
}

/// Takes the lock of an event for the rest of the transaction. Several events: in ascending order.
pub async fn lock_event(tx: &mut PgConnection, event_id: i64) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock($1)", event_id).execute(tx).await?;
    Ok(())
}

/// Runs a write to its end, whatever becomes of the caller. Returns what it answered.
pub async fn write<T, E>(work: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    match tokio::spawn(work).await {
        Ok(answer) => answer,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// The name of the constraint that a statement ran into.
pub fn constraint(error: &sqlx::Error) -> Option<&str> {
    error.as_database_error().and_then(|e| e.constraint())
}

/// Whether the same transaction may succeed when it is run again: a wait that ran out, a lost
/// connection, a deadlock (which our order of locks rules out, but a hand-written query may not).
pub fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(e) => e.code().is_some_and(|c| {
            c.starts_with("08")
                || c.starts_with("57P")
                || matches!(&*c, "40001" | "40P01" | "55P03" | "57014" | "25P03")
        }),
        _ => false,
    }
}
