//! Processes that end with us: the embedded PostgreSQL, and what tests start.
//!
//! Invariants
//! - However this process ends, `kill -9` included, the kernel signals the child
//!   (`PR_SET_PDEATHSIG`, set by util-linux's `setpriv`, so that no unsafe code is needed here).
//! - The kernel means the *thread* that spawned the child: so a thread of its own spawns it and
//!   stays until it has ended.
//! - A process id is signalled only while its process has not been reaped, never a stranger's.
//! - A child has its own process group: Ctrl-C in a terminal reaches us, and we decide the order.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, mpsc},
    time::{Duration, Instant},
};

use anyhow::Context;
use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::{Pid, User},
};

/// What to run.
pub struct Spec {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    run_as: Option<User>,
    directory: Option<PathBuf>,
    output: Option<std::fs::File>,
    end_signal: Signal,
}

impl Spec {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            run_as: None,
            directory: None,
            output: None,
            end_signal: Signal::SIGTERM,
        }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Another user's rights: only root can ask for it.
    pub fn run_as(mut self, user: Option<User>) -> Self {
        self.run_as = user;
        self
    }

    /// Where standard output and error go; nowhere unless said.
    pub fn output(mut self, file: std::fs::File) -> Self {
        self.output = Some(file);
        self
    }

    /// What asks it to end: sent by [`Kept::stop`], and by the kernel when we die.
    pub fn end_signal(mut self, signal: Signal) -> Self {
        self.end_signal = signal;
        self
    }

    /// The command as it is run, through `setpriv`.
    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", self.end_signal.as_str().trim_start_matches("SIG")]);
        if let Some(user) = &self.run_as {
            command.args([format!("--reuid={}", user.uid), format!("--regid={}", user.gid), "--clear-groups".into()]);
        }
        command.arg("--").arg(&self.program).args(&self.args).envs(self.env.iter().map(|(k, v)| (k, v)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::null()).process_group(0);
        match &self.output {
            Some(file) => command.stdout(file.try_clone()?).stderr(file.try_clone()?),
            None => command.stdout(Stdio::null()).stderr(Stdio::null()),
        };
        Ok(command)
    }

    /// Starts it.
    pub fn spawn(self) -> anyhow::Result<Kept> {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = self.command()?;
        let ending = Arc::new(Ending::default());
        let (started, start) = mpsc::channel();
        let shared = ending.clone();
        std::thread::Builder::new()
            .name(format!("keeps {name}"))
            .spawn(move || match command.spawn() {
                Ok(child) => {
                    let _ = started.send(Ok(child.id()));
                    shared.keep(child);
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            })
            .context("starting a thread")?;
        let id = start
            .recv()
            .expect("the thread sends once")
            .context("starting `setpriv` (Debian package util-linux)")
            .with_context(|| format!("starting {name}"))?;
        Ok(Kept { name, pid: Pid::from_raw(id.cast_signed()), ending, end_signal: self.end_signal })
    }
}

/// How a child ended, once it has.
#[derive(Default)]
struct Ending {
    status: Mutex<Option<ExitStatus>>,
    told: Condvar,
}

impl Ending {
    fn keep(&self, mut child: Child) {
        let pid = Pid::from_raw(child.id().cast_signed());
        // Waits without reaping: until the status is written down under the lock, the id stays the child's.
        while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(nix::errno::Errno::EINTR) {}
        let mut status = self.status.lock().expect("nobody panics with this lock");
        *status = Some(child.wait().unwrap_or_default());
        self.told.notify_all();
    }
}

/// A running child. Dropping it stops it: politely for ten seconds, then not.
pub struct Kept {
    name: String,
    pid: Pid,
    ending: Arc<Ending>,
    end_signal: Signal,
}

const POLITE: Duration = Duration::from_secs(10);

impl Kept {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Signals it, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        let status = self.ending.status.lock().expect("nobody panics with this lock");
        if status.is_none() {
            let _ = kill(self.pid, signal);
        }
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        *self.ending.status.lock().expect("nobody panics with this lock")
    }

    /// Waits for the end at most so long.
    pub fn wait(&self, at_most: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + at_most;
        let mut status = self.ending.status.lock().expect("nobody panics with this lock");
        while status.is_none() {
            let left = until.checked_duration_since(Instant::now())?;
            status = self.ending.told.wait_timeout(status, left).expect("nobody panics with this lock").0;
        }
        *status
    }

    /// Ends it and waits until it has. Blocks: see [`Kept::stop`] for tasks.
    fn end(&self) {
        if self.ended().is_some() {
            return;
        }
        self.signal(self.end_signal);
        if self.wait(POLITE).is_none() {
            tracing::warn!(child.name = self.name, "a child does not end when asked: it is killed");
            self.signal(Signal::SIGKILL);
            self.wait(POLITE);
        }
    }

    /// Ends it, and returns when it has ended.
    pub async fn stop(self) {
        // A stop that can't be spawned any more (the runtime ends) is done by the drop.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_stopped_by_drop_and_never_signalled_after_its_end() {
        let child = Spec::new("sleep").arg("60").spawn().unwrap();
        let pid = child.pid();
        assert!(child.ended().is_none());
        drop(child);
        assert!(kill(pid, None).is_err(), "it is gone");

        let short = Spec::new("true").spawn().unwrap();
        assert!(short.wait(Duration::from_secs(5)).unwrap().success());
        short.signal(Signal::SIGKILL); // no process: nothing is signalled
    }

    #[test]
    fn a_program_that_is_missing_is_told() {
        let child = Spec::new("/nonexistent/program").spawn().unwrap();
        assert_eq!(child.wait(Duration::from_secs(5)).unwrap().code(), Some(127));
    }
}
