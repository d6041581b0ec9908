//! One test run: its directory, its one PostgreSQL, and who cleans up when it ends.
//!
//! The server is a static, which Rust never drops. So a janitor process waits for our end, however
//! it comes: its standard input is a pipe that closes with us. The servers themselves end by the
//! kernel's signal (see `fullhouse::child`); the janitor waits for that and removes the directory.

use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use fullhouse::embedded_postgres::{EmbeddedPostgres, Options};
use sqlx::{Connection, PgConnection};
use tokio::sync::{OnceCell, Semaphore};

/// The database that every test's own is copied from.
pub const TEMPLATE: &str = "template_fullhouse";

/// Everything that tests share. A static, because libtest has no other place for it.
pub struct Run {
    directory: PathBuf,
    postgres: EmbeddedPostgres,
    /// Databases are copied one at a time: two copies of one template would refuse each other.
    copying: Semaphore,
    numbers: AtomicU64,
    _janitor: Child,
}

static RUN: OnceCell<Run> = OnceCell::const_new();

/// The run, started by whoever asks first.
pub async fn run() -> &'static Run {
    RUN.get_or_init(|| async { Run::start().await.expect("the test run's PostgreSQL starts") }).await
}

const JANITOR: &str = r#"trap '' INT TERM HUP
while read -r _; do :; done
tries=0
while [ -e "$1/cluster/postgres/postmaster.pid" ] && [ "$tries" -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
rm -rf "$1""#;

impl Run {
    async fn start() -> anyhow::Result<Self> {
        fullhouse::files::raise_limit()?;
        let directory = std::env::temp_dir().join(format!("fullhouse-tests-{}", std::process::id()));
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?; // a run of the same number that was cut off with its janitor
        }
        std::fs::create_dir_all(&directory)?;
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755))?;
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let postgres = EmbeddedPostgres::start(Options {
            data: directory.join("cluster"),
            durable: false, // no test pulls the plug of the machine; killed processes lose nothing by it
            connections_max: 400,
        })
        .await?;
        postgres.ensure_database(TEMPLATE).await?;
        let pool = sqlx::PgPool::connect(&postgres.url(TEMPLATE)).await?;
        fullhouse::db::migrate(&pool).await?;
        pool.close().await;
        Ok(Self { directory, postgres, copying: Semaphore::new(1), numbers: AtomicU64::new(1), _janitor: janitor })
    }

    /// A new directory of the run, removed with it.
    pub fn directory(&self, what: &str) -> PathBuf {
        let path = self.directory.join(format!("{what}-{}", self.numbers.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir_all(&path).expect("the run's directory is writable");
        path
    }

    /// The socket of the PostgreSQL.
    pub fn socket(&self) -> PathBuf {
        self.postgres.socket()
    }

    pub fn url(&self, database: &str) -> String {
        self.postgres.url(database)
    }

    /// Copies the template; returns the new database's name.
    pub(crate) async fn copy_template(&self) -> anyhow::Result<String> {
        let name = format!("test_{}", self.numbers.fetch_add(1, Ordering::Relaxed));
        let _one = self.copying.acquire().await?;
        let mut db = PgConnection::connect(&self.url("postgres")).await?;
        sqlx::query(&format!("create database {name} template {TEMPLATE}")).execute(&mut db).await?;
        db.close().await?;
        Ok(name)
    }

    pub(crate) async fn drop_database(&self, name: &str) -> anyhow::Result<()> {
        let mut db = PgConnection::connect(&self.url("postgres")).await?;
        sqlx::query(&format!("drop database if exists {name} with (force)")).execute(&mut db).await?;
        Ok(db.close().await?)
    }
}

/// The workspace, where `assets/` and `target/` are.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ stands in the workspace")
}

/// Where a server of another project is: on the path, or where Debian puts servers, which is off a user's path.
pub fn server_program(name: &str) -> PathBuf {
    let there = Path::new("/usr/sbin").join(name);
    if there.exists() { there } else { name.into() }
}
