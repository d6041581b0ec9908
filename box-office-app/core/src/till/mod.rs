//! A till: what the shell holds one of. It leases, sells with a network or without, settles what it sold once the hub is
//! heard again, and gives back what it did not sell.
//!
//! Invariants:
//! - Selling asks nobody: a lease of this process and its journal decide (see [`crate::lease`]).
//! - What was sold is sent in order, as it was journalled, until the hub has answered it; an answer that got lost is asked
//!   for again. Nothing is dropped, whatever the hub says.
//! - A lease's seats go back by one report, after all that was sold is settled. A lease of an earlier process is closed as
//!   soon as the journal is open; one whose grant got lost on the way is closed when the hub lists it.
//! - A lease that the hub lists, and that this journal has never asked for, is left alone: an earlier journal may have sold
//!   from it. Only a person may write it off.
//! - A terminal's folder that was copied to another machine, or put back from a backup, tells what stands in its journal,
//!   and touches no lease: the machine that it was copied from may be selling from it at this moment.

mod settle; // what is owed to the hub, until nothing is

use std::{
    fs::File,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use fullhouse_protocol::lease::{LeaseRequest, NotSold, Outcome};
use serde::Serialize;
use thiserror::Error;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::{
    clock::Boottime,
    hub::{AskError, Hub},
    journal::{AppendError, Journal, OpenError},
    lease::{self, CloseError, Granted, Leases, SellError, Sold, TakeError, Wanted},
    pulse::{self, Heart, LOOK, Reach},
};

/// How often a grant whose answer got lost is asked for before the till gives up on it.
const GRANT_TRIES: u32 = 4;

/// What a till needs to know to begin.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Scheme, host and port of the hub.
    pub hub: String,
    /// The terminal's, as it was enrolled.
    pub token: String,
    pub terminal_id: Uuid,
    /// Where the journal lies; made if it isn't there.
    pub folder: PathBuf,
}

/// Why a till can't begin.
#[derive(Debug, Error)]
pub enum BeginError {
    /// There is no journal here yet: its first number is the hub's to say.
    #[error("the hub has to be asked before the first journal begins")]
    FirstNeedsHub(#[source] AskError),
    #[error("no client could be made")]
    Client(#[source] AskError),
    #[error(transparent)]
    Journal(OpenError),
    #[error("the journal's folder could not be made")]
    Folder(#[source] io::Error),
}

/// Why there is no lease.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// The answer never came. If the hub granted it, it is given back by itself.
    #[error("the hub could not be asked")]
    Lost(#[source] AskError),
    #[error("the hub refused")]
    Refused(#[source] AskError),
    /// It is given back.
    #[error("the lease can't be sold from")]
    NotTaken(#[source] TakeError),
    #[error("the journal could not be written")]
    Journal(#[source] AppendError),
}

/// How a till stands; what its screen says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// The hub is heard. If not: sell from leases, or not at all.
    pub online: bool,
    /// Sales that the hub has not answered.
    pub unsettled: usize,
    /// Leases that are closed here, and not at the hub.
    pub to_report: usize,
    /// Sales that became none, by number: money in the drawer without a seat. Staff's list at the hub has them too.
    pub not_sold: Vec<(u64, NotSold)>,
    /// Sales whose printed codes are dead: their customers need other tickets.
    pub new_codes: Vec<u64>,
    /// Leases that an earlier journal of this terminal may have sold from; a person has to write them off.
    pub strange: Vec<Uuid>,
    /// The terminal's folder is a copy of another machine's, or of an older state: nothing is leased here.
    pub copied: bool,
    /// What stands in the way of settling until somebody does something: the hub's code, or what failed here.
    pub stuck: Option<String>,
}

/// One till, with its tasks, which end when it is dropped. Cloning gives another handle of the same.
#[derive(Clone)]
pub struct Till {
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
}

struct Tasks {
    running: Mutex<Vec<JoinHandle<()>>>,
    stop: CancellationToken,
    _ends_with_the_last_handle: DropGuard,
}

struct Shared {
    hub: Hub,
    leases: Leases<Boottime, File>,
    heart: Heart,
    standing: watch::Sender<Standing>,
    /// Something has to be told to the hub.
    wake: Notify,
    /// Held while a lease is asked for, so that its grant is not taken for one that got lost. When the hub's list of leases
    /// was gone through; none: it has to be.
    looked: tokio::sync::Mutex<Option<Instant>>,
}

impl Till {
    /// Opens the journal, ends the leases of an earlier process, and begins to listen for the hub. Needs the hub only the
    /// first time.
    ///
    /// # Errors
    /// [`BeginError`].
    pub async fn begin(settings: Settings) -> Result<Self, BeginError> {
        let asks = Hub::new(&settings.hub, &settings.token).map_err(BeginError::Client)?;
        let heart = Heart::of(move || {
            let hub = asks.clone();
            async move { hub.is_there().await }
        });
        Self::beside(settings, heart).await
    }

    /// The same, where the terminal listens for the hub already.
    ///
    /// # Errors
    /// [`BeginError`].
    pub async fn beside(settings: Settings, heart: Heart) -> Result<Self, BeginError> {
        let hub = Hub::new(&settings.hub, &settings.token).map_err(BeginError::Client)?;
        std::fs::create_dir_all(&settings.folder).map_err(BeginError::Folder)?;
        let path = settings.folder.join("journal");
        let first = match path.try_exists().map_err(BeginError::Folder)? {
            true => 1, // it says itself
            false => hub.own_leases().await.map_err(BeginError::FirstNeedsHub)?.next_seq,
        };
        let journal = Journal::open(&path, settings.terminal_id, first).map_err(BeginError::Journal)?;
        if journal.cut_bytes() > 0 {
            tracing::warn!(bytes = journal.cut_bytes(), "an unfinished entry was cut off the journal");
        }
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            hub,
            leases: Leases::new(Boottime, journal),
            heart,
            standing: watch::Sender::default(),
            wake: Notify::new(),
            looked: tokio::sync::Mutex::default(),
        });
        if shared.leases.is_copied() {
            tracing::warn!("the journal is a copy: it leases nothing and gives nothing back");
            shared.standing.send_modify(|s| s.copied = true);
        } else {
            for lease_id in shared.leases.to_close() {
                shared.end(lease_id);
            }
        }
        let told = shared.leases.outcomes();
        shared.came(told.iter().filter_map(|(seq, o)| Some((*seq, serde_json::from_slice(o).ok()?))));
        shared.show(None);
        let running = vec![
            tokio::spawn(until(stop.clone(), listen(shared.clone()))),
            tokio::spawn(until(stop.clone(), settle::run(shared.clone()))),
        ];
        let tasks =
            Tasks { running: Mutex::new(running), stop: stop.clone(), _ends_with_the_last_handle: stop.drop_guard() };
        Ok(Self { shared, tasks: Arc::new(tasks) })
    }

    /// Ends its tasks, and waits for them: the journal may be opened anew once all handles are gone.
    pub async fn end(self) {
        self.tasks.stop.cancel();
        let running = std::mem::take(&mut *self.tasks.running.lock().unwrap_or_else(PoisonError::into_inner));
        for task in running {
            let _ = task.await; // it ends or has panicked, which was told
        }
    }

    /// How it stands, and whenever that changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.shared.standing.subscribe()
    }

    /// Leases seats, and sells from them from now on. `staff`: the token of whoever is signed in.
    ///
    /// # Errors
    /// [`LeaseError`]; nothing is leased, or it is given back.
    pub async fn lease(&self, ask: &LeaseRequest, staff: Option<&str>) -> Result<Uuid, LeaseError> {
        let mut looked = self.shared.looked.lock().await;
        let shared = &self.shared;
        let asked_at = shared.leases.asking().map_err(LeaseError::NotTaken)?;
        let key = Uuid::new_v4();
        shared.leases.ask(key).map_err(LeaseError::Journal)?;
        *looked = None; // until it is in our hands, the hub may list one that we don't have
        let granted = self.grant(key, ask, staff).await.inspect_err(|_| shared.wake.notify_one())?;
        let lease_id = granted.lease_id;
        match shared.leases.take(granted.into(), asked_at) {
            Ok(()) => Ok(lease_id),
            Err(error) => {
                shared.end(lease_id);
                Err(LeaseError::NotTaken(error))
            }
        }
    }

    async fn grant(
        &self,
        key: Uuid,
        ask: &LeaseRequest,
        staff: Option<&str>,
    ) -> Result<fullhouse_protocol::lease::Lease, LeaseError> {
        let mut tries = 0;
        loop {
            match self.shared.hub.lease(key, ask, staff).await {
                Ok(granted) => return Ok(granted),
                Err(lost) if lost.passes() => {
                    tries += 1;
                    if tries >= GRANT_TRIES {
                        return Err(LeaseError::Lost(lost));
                    }
                    sleep(pulse::wait(tries)).await;
                }
                Err(refused) => return Err(LeaseError::Refused(refused)),
            }
        }
    }

    /// Sells from a lease, for cash, with a network or without. It waits for the disk: not for a thread that draws. Money
    /// may be taken and tickets printed once it has answered.
    ///
    /// # Errors
    /// [`SellError`].
    pub fn sell(&self, wanted: &Wanted<'_>) -> Result<Sold, SellError> {
        let sold = self.shared.leases.sell(wanted);
        self.shared.show(None);
        self.shared.wake.notify_one();
        sold
    }

    /// Leases that this process has and has not closed.
    pub fn leases(&self) -> Vec<(Uuid, lease::Standing)> {
        let leases = &self.shared.leases;
        leases.running().into_iter().filter_map(|id| Some((id, leases.standing(id)?))).collect()
    }

    /// What was leased; `None` of one that is closed, or an earlier process's.
    pub fn granted(&self, lease_id: Uuid) -> Option<Granted> {
        self.shared.leases.granted(lease_id)
    }

    /// Ends selling from a lease; what is left goes back as soon as the hub is heard.
    ///
    /// # Errors
    /// [`CloseError`]; the lease sells nothing all the same.
    pub fn close(&self, lease_id: Uuid) -> Result<(), CloseError> {
        let closed = self.shared.leases.close(lease_id);
        self.shared.show(None);
        self.shared.wake.notify_one();
        closed.map(|_| ())
    }

    /// Waits until nothing is owed to the hub: every sale is answered, every closed lease reported.
    pub async fn settled(&self) {
        let leases = &self.shared.leases;
        loop {
            let looked = self.shared.looked.lock().await.is_some(); // before that, the hub may list what we don't know of
            if looked && leases.unsettled() == 0 && leases.to_report().is_empty() {
                return;
            }
            self.shared.wake.notify_one();
            sleep(LOOK).await;
        }
    }
}

impl Shared {
    /// Ends selling from a lease. What can't be journalled is tried again by the next process.
    fn end(&self, lease_id: Uuid) {
        if let Err(error) = self.leases.close(lease_id) {
            tracing::error!(lease.id = %lease_id, %error, "a lease could not be closed");
            self.show(Some(error.to_string()));
        }
        self.wake.notify_one();
    }

    fn is_online(&self) -> bool {
        self.heart.is_up()
    }

    /// Brings what is shown up to date. `stuck`: what stands in the way now; none: as it was.
    fn show(&self, stuck: Option<String>) {
        let (unsettled, to_report) = (self.leases.unsettled(), self.leases.to_report().len());
        let online = self.is_online();
        self.standing.send_if_modified(|s| {
            let stuck = stuck.or_else(|| s.stuck.clone().filter(|_| unsettled + to_report > 0));
            let now = Standing { online, unsettled, to_report, stuck, ..s.clone() };
            let changed = *s != now;
            *s = now;
            changed
        });
    }

    /// Shows what of these outcomes needs a person.
    fn came(&self, outcomes: impl Iterator<Item = (u64, Outcome)>) {
        for (seq, outcome) in outcomes {
            match outcome {
                Outcome::NotSold { reason } => self.standing.send_modify(|s| s.not_sold.push((seq, reason))),
                Outcome::Sold { new_codes: true, .. } => self.standing.send_modify(|s| s.new_codes.push(seq)),
                Outcome::Sold { .. } => {}
            }
        }
    }

    /// Something went on.
    fn unstuck(&self) {
        self.standing.send_if_modified(|s| s.stuck.take().is_some());
    }
}

async fn until(stop: CancellationToken, work: impl Future<Output = ()>) {
    stop.run_until_cancelled(work).await;
}

/// Says so when the hub is heard, and when it is not; heard again, it is told what is owed.
async fn listen(shared: Arc<Shared>) {
    let mut reach = shared.heart.reach();
    loop {
        let online = *reach.borrow_and_update() == Reach::Up;
        let changed = shared.standing.send_if_modified(|s| std::mem::replace(&mut s.online, online) != online);
        if changed && online {
            shared.wake.notify_one();
        }
        if reach.changed().await.is_err() {
            return;
        }
    }
}
