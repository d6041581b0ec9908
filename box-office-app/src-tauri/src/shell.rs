//! What the commands share: who this machine is, its way to the hub, the sockets that are open.

use std::{
    collections::HashMap,
    fs::File,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fullhouse_box_office::terminal::{
    Home, Record, Relay, Role, Token, TokenStore, exit::Exit, health, offline::Offline, papers::Papers, visits::Visits,
};
use serde_json::Value;
use tauri::{async_runtime::JoinHandle, ipc::Channel};
use tokio::sync::watch;
use uuid::Uuid;

use crate::{commands::Proposed, tokens::Tokens};

const SECOND: Duration = Duration::from_secs(1);

pub struct Shell {
    pub home: Home,
    pub proposed: Proposed,
    terminal: RwLock<Option<Terminal>>,
    pub exit: Mutex<Exit>,
    /// The last code that was sent, and its key: sent again, it makes no second terminal.
    pub sent: Mutex<Option<(String, Uuid)>>,
    feeds: Mutex<HashMap<u32, JoinHandle<()>>>,
    /// What a counter's customer sees.
    pub customer: watch::Sender<Value>,
    /// Who hears what the scanner reads.
    scans: Mutex<Option<Channel<Option<String>>>>,
    /// Tells the hub how this terminal is.
    health: Mutex<Option<JoinHandle<()>>>,
    /// Somebody who knows a kiosk's PIN ends the program.
    leaving: AtomicBool,
    /// Held while the program runs: two of them would write one journal.
    _alone: File,
}

#[derive(Clone)]
pub struct Terminal {
    pub record: Record,
    pub relay: Relay,
    pub papers: Papers,
    pub work: Work,
}

/// What runs beside the screens.
#[derive(Clone)]
pub enum Work {
    Counter(Offline),
    Kiosk(Visits),
}

impl Terminal {
    pub fn begin(home: &Home, record: Record, token: Token) -> io::Result<Self> {
        let relay = Relay::of_terminal(record.hub.clone(), record.role, token.clone()).map_err(io::Error::other)?;
        let papers = Papers::open(home, record.terminal_id)?;
        let work = match record.role {
            Role::Counter => Work::Counter(Offline::begin(record.clone(), relay.clone(), papers.clone(), home, &token)),
            Role::Kiosk => {
                let version = env!("CARGO_PKG_VERSION");
                Work::Kiosk(Visits::begin(relay.clone(), papers.clone(), home.clone(), version, SECOND)?)
            }
        };
        Ok(Self { record, relay, papers, work })
    }
}

impl Shell {
    pub async fn open(home: Home, proposed: Proposed) -> io::Result<Self> {
        let alone = File::create(home.folder().join("running"))?;
        alone.try_lock().map_err(|_| io::Error::other("this terminal is open already, in another window"))?;
        let shell = Self {
            proposed,
            terminal: RwLock::new(None),
            exit: Mutex::default(),
            sent: Mutex::default(),
            feeds: Mutex::default(),
            scans: Mutex::default(),
            customer: watch::Sender::default(),
            health: Mutex::default(),
            leaving: AtomicBool::new(false),
            _alone: alone,
            home,
        };
        if let Some(record) = shell.home.record()?
            && let Some(token) = shell.tokens().read()?
        {
            shell.set(Some(Terminal::begin(&shell.home, record, token)?));
        }
        Ok(shell)
    }

    pub fn tokens(&self) -> Tokens {
        Tokens::of(&self.home)
    }

    pub fn terminal(&self) -> Option<Terminal> {
        self.terminal.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, terminal: Option<Terminal>) {
        // A kiosk tells it with what it calls staff for.
        let counter = terminal.clone().filter(|terminal| matches!(terminal.work, Work::Counter(_)));
        let told = counter.map(|Terminal { relay, papers, .. }| {
            tauri::async_runtime::spawn(health::tell(relay, papers, env!("CARGO_PKG_VERSION")))
        });
        let before = std::mem::replace(&mut *self.health.lock().unwrap_or_else(PoisonError::into_inner), told);
        if let Some(before) = before {
            before.abort();
        }
        *self.terminal.write().unwrap_or_else(PoisonError::into_inner) = terminal;
    }

    /// Keeps a socket's task until it ends or is closed.
    pub fn keep_feed(&self, id: u32, task: JoinHandle<()>) {
        let mut feeds = self.feeds();
        feeds.retain(|_, task| !task.inner().is_finished());
        if let Some(old) = feeds.insert(id, task) {
            old.abort();
        }
    }

    pub fn close_feed(&self, id: u32) {
        if let Some(task) = self.feeds().remove(&id) {
            task.abort();
        }
    }

    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    pub fn follow_scanner(&self, scans: Channel<Option<String>>) {
        *self.scans.lock().unwrap_or_else(PoisonError::into_inner) = Some(scans);
    }

    /// `None`: something was scanned that can't be read.
    pub fn tell_scan(&self, text: Option<String>) {
        if let Some(scans) = &*self.scans.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = scans.send(text); // a page that is gone hears nothing
        }
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<u32, JoinHandle<()>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
