//! A private PostgreSQL of our own: for the demo, and for tests.
//!
//! Invariants
//! - It listens on a socket in a directory that only its user can enter, never on a port.
//! - Run as root, its processes have an unprivileged user's rights.
//! - It ends with us, also when we are killed; what it had committed is there at the next start.
//! - One Fullhouse a data directory: a lock says so, and a server that a dead one left is ended first.

use std::{
    cmp::Reverse,
    fs::{self, File, OpenOptions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User, geteuid},
};
use sqlx::{Connection, PgConnection};
use tokio::time::Instant;

use crate::child::{Kept, Spec};

const PORT: u16 = 5432; // only names the socket
const ROLE: &str = "fullhouse";
const SOCKET_PATH_MAX: usize = 107; // sockaddr_un
const START_AT_MOST: Duration = Duration::from_secs(60); // recovery after a crash included

const LOOK_EVERY: Duration = Duration::from_millis(200); // a child's end wakes a thread, not a task

/// How to run it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Holds the cluster, its log and the lock; made when missing.
    pub data: PathBuf,
    /// Whether a commit waits for the disk. Only tests of other things do without.
    pub durable: bool,
    pub connections_max: u32,
}

/// A running server.
pub struct EmbeddedPostgres {
    sockets: PathBuf,
    child: Kept,
    _lock: File, // held as long as the server runs
}

impl EmbeddedPostgres {
    /// Starts the server of a data directory; the first time it makes the cluster (some seconds).
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let data = std::path::absolute(&options.data)?;
        fs::create_dir_all(&data).with_context(|| format!("making {}", data.display()))?;
        let lock = lock(&data)?;
        let user = unprivileged()?;
        reachable(&data, user.as_ref())?;
        let cluster = data.join("postgres");
        let bin = binaries(&cluster)?;
        if !cluster.join("PG_VERSION").exists() {
            initdb(&bin, &cluster, user.as_ref()).await?;
        }
        end_orphan(&cluster).await?;
        let sockets = socket_directory(&data, &cluster, user.as_ref())?;
        let log = cluster.join("server.log");
        let child = server(&bin, &cluster, &sockets, &log, user, &options)?;
        let server = Self { sockets, child, _lock: lock };
        server.ready(&log).await?;
        Ok(server)
    }

    /// How to reach a database of it.
    pub fn url(&self, database: &str) -> String {
        // A directory as the host means the socket in it.
        let host = self.sockets.to_string_lossy().replace('%', "%25").replace('/', "%2F").replace(' ', "%20");
        format!("postgres://{ROLE}@localhost:{PORT}/{database}?host={host}")
    }

    /// The socket itself, for a proxy that stands before it.
    pub fn socket(&self) -> PathBuf {
        self.sockets.join(format!(".s.PGSQL.{PORT}"))
    }

    /// Makes a database unless it exists.
    pub async fn ensure_database(&self, name: &str) -> anyhow::Result<()> {
        ensure!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit()), "an odd name: {name}");
        let mut db = PgConnection::connect(&self.url("postgres")).await?;
        let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(name)
            .fetch_one(&mut db)
            .await?;
        if !exists {
            sqlx::query(&format!("create database {name}")).execute(&mut db).await?;
        }
        Ok(db.close().await?)
    }

    /// Returns when it has ended without being asked to.
    pub async fn ended(&self) -> ExitStatus {
        loop {
            if let Some(status) = self.child.ended() {
                return status;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Ends it: connections are cut, what was committed is on disk.
    pub async fn stop(self) {
        self.child.stop().await;
    }

    async fn ready(&self, log: &Path) -> anyhow::Result<()> {
        let until = Instant::now() + START_AT_MOST;
        let url = self.url("postgres");
        loop {
            let failed = match PgConnection::connect(&url).await {
                Ok(db) => return Ok(db.close().await?),
                Err(error) => error,
            };
            if self.child.ended().is_some() || Instant::now() > until {
                bail!("PostgreSQL does not start ({failed}); its log, {}, ends: {}", log.display(), tail(log));
            }
            tokio::time::sleep(Duration::from_millis(20)).await; // it tells nobody when it is ready
        }
    }
}

fn lock(data: &Path) -> anyhow::Result<File> {
    let path = data.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            bail!("another Fullhouse runs on {}: end it first, or choose another directory", data.display())
        }
        Err(fs::TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", path.display())),
    }
}

/// Whose rights the server gets when we are root, whom it refuses to run as.
fn unprivileged() -> anyhow::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(user) = User::from_name(name)? {
            return Ok(Some(user));
        }
    }
    bail!("PostgreSQL does not run as root, and there is neither a user postgres nor nobody: run this as another user")
}

/// Whether that user can enter the directory; root's home is closed to it.
pub fn enterable_by_server(directory: &Path) -> bool {
    let Ok(user) = unprivileged() else { return false };
    std::path::absolute(directory).is_ok_and(|d| reachable(&d, user.as_ref()).is_ok())
}

fn reachable(directory: &Path, user: Option<&User>) -> anyhow::Result<()> {
    let Some(user) = user else { return Ok(()) };
    for ancestor in directory.ancestors().filter(|a| a.exists()) {
        let meta = fs::metadata(ancestor)?;
        let bit = match (meta.uid() == user.uid.as_raw(), meta.gid() == user.gid.as_raw()) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        ensure!(
            meta.mode() & bit != 0,
            "the user {} can't enter {}: choose a data directory elsewhere",
            user.name,
            ancestor.display()
        );
    }
    Ok(())
}

/// The directory of `postgres` and `initdb`: of the cluster's version if there is a cluster, else the newest.
fn binaries(cluster: &Path) -> anyhow::Result<PathBuf> {
    let wanted: Option<u32> =
        fs::read_to_string(cluster.join("PG_VERSION")).ok().and_then(|text| text.trim().parse().ok());
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| complete(bin))
        .collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found
        .extend(std::env::split_paths(&path).filter(|bin| complete(bin)).filter_map(|bin| Some((version(&bin)?, bin))));
    found.sort_by_key(|(version, _)| Reverse(*version));
    match wanted {
        Some(major) => found
            .into_iter()
            .find(|(version, _)| *version == major)
            .map(|(_, bin)| bin)
            .with_context(|| format!("{} needs PostgreSQL {major}, which is not installed", cluster.display())),
        None => found
            .into_iter()
            .next()
            .map(|(_, bin)| bin)
            .context("PostgreSQL's server programs are not installed (Debian package: postgresql)"),
    }
}

fn complete(bin: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|program| bin.join(program).is_file())
}

/// The major version, from `postgres (PostgreSQL) 15.18 (Debian …)`.
fn version(bin: &Path) -> Option<u32> {
    let answer = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    text.split_whitespace().nth(2)?.split(['.', 'd', 'b', 'r']).next()?.parse().ok()
}

/// Makes the cluster beside its place, then moves it there: a start that was broken off leaves no half of one.
async fn initdb(bin: &Path, cluster: &Path, user: Option<&User>) -> anyhow::Result<()> {
    let partial = cluster.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    private_directory(&partial, user)?;
    let log = cluster.with_extension("initdb.log");
    let mut spec = Spec::new(bin.join("initdb"))
        .args(["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"])
        .arg(format!("--username={ROLE}"))
        .arg("-D")
        .arg(&partial)
        .directory(Path::new("/"))
        .output(File::create(&log)?)
        .run_as(user.cloned());
    if let Some(user) = user {
        spec = spec.env("HOME", &user.dir);
    }
    let child = spec.spawn()?;
    let status = tokio::task::spawn_blocking(move || child.wait(START_AT_MOST)).await?;
    ensure!(status.is_some_and(|s| s.success()), "initdb failed; {} ends: {}", log.display(), tail(&log));
    fs::remove_file(&log)?;
    // The server syncs what it writes; what initdb wrote is synced here, before the name exists.
    nix::unistd::sync();
    fs::rename(&partial, cluster)?;
    Ok(())
}

fn private_directory(path: &Path, user: Option<&User>) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    if let Some(user) = user {
        chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    }
    Ok(())
}

/// Ends a server that outlived its Fullhouse. We hold the lock, so whoever runs there is an orphan.
async fn end_orphan(cluster: &Path) -> anyhow::Result<()> {
    let pid_file = cluster.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&pid_file) else { return Ok(()) };
    let Some(pid) = text.lines().next().and_then(|line| line.trim().parse::<i32>().ok()) else { return Ok(()) };
    let serves_it = || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == cluster);
    if !serves_it() {
        // Whoever has that number now is a stranger, and PostgreSQL would refuse to start beside one
        // that runs as its own user. Its shared memory went with the process.
        if kill(Pid::from_raw(pid), None).is_ok() {
            fs::remove_file(&pid_file)?;
        }
        return Ok(());
    }
    tracing::warn!(postgres.pid = pid, "ending a PostgreSQL that an earlier run left behind");
    for signal in [Signal::SIGINT, Signal::SIGQUIT] {
        let _ = kill(Pid::from_raw(pid), signal);
        let until = Instant::now() + Duration::from_secs(10);
        while serves_it() {
            if Instant::now() > until {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if !serves_it() {
            return Ok(());
        }
    }
    bail!("a PostgreSQL (process {pid}) that an earlier run left behind does not end")
}

/// Beside the data if its path is short enough for a socket, else in a private directory with a short name.
fn socket_directory(data: &Path, cluster: &Path, user: Option<&User>) -> anyhow::Result<PathBuf> {
    let beside = data.join("socket");
    let longest = format!("/.s.PGSQL.{PORT}.lock").len();
    let sockets = if beside.as_os_str().len() + longest <= SOCKET_PATH_MAX {
        beside
    } else {
        let meta = fs::metadata(cluster)?;
        std::env::temp_dir().join(format!("fullhouse-{:x}-{:x}", meta.dev(), meta.ino()))
    };
    private_directory(&sockets, user)?;
    Ok(sockets)
}

fn server(
    bin: &Path,
    cluster: &Path,
    sockets: &Path,
    log: &Path,
    user: Option<User>,
    options: &Options,
) -> anyhow::Result<Kept> {
    let on = if options.durable { "on" } else { "off" };
    let settings = [
        "listen_addresses=".to_owned(),
        format!("port={PORT}"),
        format!("unix_socket_directories={}", sockets.display()),
        "unix_socket_permissions=0700".to_owned(),
        format!("max_connections={}", options.connections_max),
        "shared_buffers=256MB".to_owned(), // a stadium's rows are some 15 MB
        "max_wal_size=1GB".to_owned(),     // fewer checkpoints in a busy sale
        format!("fsync={on}"),
        format!("full_page_writes={on}"),
        "jit=off".to_owned(), // our statements are short
        "timezone=UTC".to_owned(),
        "log_timezone=UTC".to_owned(),
    ];
    let mut spec = Spec::new(bin.join("postgres"))
        .arg("-D")
        .arg(cluster)
        .directory(Path::new("/"))
        .output(File::create(log)?)
        .end_signal(Signal::SIGINT) // fast shutdown: cut the clients, write everything down
        .run_as(user);
    for setting in settings {
        spec = spec.arg("-c").arg(setting);
    }
    spec.spawn()
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" / ")
}
