//! What the commands share: who this machine is, its way to the hub, the sockets that are open.

use std::{
    collections::HashMap,
    fs::File,
    io,
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
};

use fullhouse_box_office::terminal::{Home, Record, Relay, TokenStore, exit::Exit, health, papers::Papers};
use tauri::{async_runtime::JoinHandle, ipc::Channel};
use uuid::Uuid;

use crate::{commands::Proposed, tokens::Tokens};

pub struct Shell {
    pub home: Home,
    pub proposed: Proposed,
    terminal: RwLock<Option<Terminal>>,
    pub exit: Mutex<Exit>,
    /// The last code that was sent, and its key: sent again, it makes no second terminal.
    pub sent: Mutex<Option<(String, Uuid)>>,
    feeds: Mutex<HashMap<u32, JoinHandle<()>>>,
    /// Who hears what the scanner reads.
    scans: Mutex<Option<Channel<Option<String>>>>,
    /// Tells the hub how this terminal is.
    health: Mutex<Option<JoinHandle<()>>>,
    /// Held while the program runs: two of them would write one journal.
    _alone: File,
}

#[derive(Clone)]
pub struct Terminal {
    pub record: Record,
    pub relay: Relay,
    pub papers: Papers,
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
            health: Mutex::default(),
            _alone: alone,
            home,
        };
        if let Some(record) = shell.home.record()?
            && let Some(token) = shell.tokens().read()?
        {
            let relay = Relay::of_terminal(record.hub.clone(), record.role, token).map_err(io::Error::other)?;
            let papers = Papers::open(&shell.home, record.terminal_id)?;
            shell.set(Some(Terminal { record, relay, papers }));
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
        let told = terminal.clone().map(|Terminal { relay, papers, .. }| {
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
