//! The ledger of prints: what was meant to be printed, what was sent, what is certainly on paper, what nobody knows.
//!
//! Invariants
//! - What is sent was written down as sent, and synced, before its first byte left; so after a crash every job that may
//!   be on paper is here, and doubtful.
//! - An end is written once. Only a doubt is decided afterwards, by a person, once.
//! - A doubtful ticket is printed again only as another ticket: the hub reissues it, and its old code is dead.
//! - The bytes are the journal's: a torn tail is cut, damage is refused.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    path::Path,
};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use super::status::Trouble;
use crate::journal::{
    self, Medium, OpenError,
    frame::{self, BODY_BYTES_MAX, Found, Frame, HEAD_BYTES},
};

/// Not among the journal's kinds: neither file can be taken for the other.
const INTENDED: u8 = 32;
const SENT: u8 = 33;
const ENDED: u8 = 34;
const DECIDED: u8 = 35;
const REPORTED: u8 = 36;
/// With nothing open, a longer file is begun anew.
const BYTES_KEPT: usize = 4 << 20;

/// What is to be printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The hub's id of the job, where there is one: what its end is reported under.
    pub id: Uuid,
    /// The hub knows this job, and is told its end.
    pub of_hub: bool,
    /// `None`: a receipt, a report, a test page. Nothing of these is ever doubtful to anybody.
    pub ticket_id: Option<Uuid>,
    /// For whoever decides: `K7Q2M · Main, row 6, seat 6`.
    pub what: String,
}

/// How a print ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", content = "why", rename_all = "snake_case")]
pub enum End {
    /// The printer said that all of it is on paper.
    Printed,
    /// Certainly nothing of it: it was not sent.
    NotPrinted(Trouble),
    /// A part, all or nothing of it.
    Doubtful(Trouble),
}

/// What a person found of a doubtful print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// It lies there, whole, and its code can be scanned.
    CameOut,
    /// The hub reissued the ticket: the old code is dead, whatever still comes out.
    Replaced { by: Uuid },
    /// It is not needed on paper any more: refunded, or sent by mail.
    NotNeeded,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Intended,
    Sent,
    Ended(End),
    Decided(End, Decision),
}

/// A job as it stands here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub job: Job,
    pub state: State,
    /// The hub was told.
    pub reported: bool,
}

impl Entry {
    /// What the hub has to be told: whether it was printed. `None`: nothing, or not yet.
    pub fn report(&self) -> Option<bool> {
        match self.state {
            _ if self.reported || !self.job.of_hub => None,
            State::Ended(End::Printed) | State::Decided(_, Decision::CameOut) => Some(true),
            State::Ended(End::NotPrinted(_)) => Some(false),
            // Whatever may lie in a buffer counts as printed there until it is reissued.
            State::Intended | State::Sent | State::Ended(End::Doubtful(_)) | State::Decided(..) => None,
        }
    }

    fn is_open(&self) -> bool {
        self.report().is_some()
            || !matches!(self.state, State::Ended(End::Printed | End::NotPrinted(_)) | State::Decided(..))
    }
}

/// Why nothing was written.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// It may be on the disk or not: nothing is printed until the ledger is opened anew.
    #[error("the ledger of prints could not be written")]
    Disk(#[source] std::io::Error),
    #[error("an earlier write failed; the ledger has to be opened anew")]
    Broken,
    #[error("{0} bytes are more than an entry may have")]
    TooLong(usize),
    /// A job goes from intended over sent to its end, and a doubt to its decision; nothing goes back or twice.
    #[error("job {0} is not where this could follow")]
    OutOfTurn(Uuid),
}

/// Ends with the ledger, also where a program that was started meanwhile has the file too, for a moment.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// An open ledger.
#[derive(Debug)]
pub struct Ledger<M: Medium = File> {
    medium: M,
    seal: u32,
    broken: bool,
    _lock: Option<Lock>,
    entries: BTreeMap<Uuid, Entry>,
    /// As they were intended.
    order: Vec<Uuid>,
}

impl Ledger<File> {
    /// Opens a terminal's ledger. What was sent and never ended is doubtful from now on; what was only intended was
    /// certainly not printed.
    ///
    /// # Errors
    /// As a journal's.
    pub fn open(path: &Path, terminal: Uuid) -> Result<Self, OpenError> {
        let lock = Lock(journal::lock(path)?);
        if !path.try_exists().map_err(OpenError::Disk)? {
            journal::begin(path, terminal, 1).map_err(OpenError::Disk)?;
        }
        let bytes = fs::read(path).map_err(OpenError::Disk)?;
        let (mut entries, mut order, mut seal, whole) = replay(&bytes, terminal)?;
        let anew = whole > BYTES_KEPT && entries.values().all(|entry| !entry.is_open());
        if anew {
            journal::begin(path, terminal, 1).map_err(OpenError::Disk)?;
            (entries, order, seal) = (BTreeMap::new(), Vec::new(), frame::head(terminal, 1).1);
        }
        let file = OpenOptions::new().append(true).open(path).map_err(OpenError::Disk)?;
        if !anew && whole < bytes.len() {
            file.set_len(whole as u64).map_err(OpenError::Disk)?;
        }
        file.sync_all().map_err(OpenError::Disk)?;
        let mut ledger = Self { medium: file, seal, broken: false, _lock: Some(lock), entries, order };
        ledger.end_what_a_stop_left().map_err(|error| match error {
            LedgerError::Disk(error) => OpenError::Disk(error),
            _ => OpenError::Damaged { at: whole as u64, bytes: bytes.len() as u64 },
        })?;
        Ok(ledger)
    }
}

#[cfg(test)]
impl Ledger<File> {
    pub(crate) fn through<M: Medium>(self, medium: impl FnOnce(File) -> M) -> Ledger<M> {
        let Self { medium: file, seal, broken, _lock, entries, order } = self;
        Ledger { medium: medium(file), seal, broken, _lock, entries, order }
    }
}

impl<M: Medium> Ledger<M> {
    /// In the order in which they were intended.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.order.iter().filter_map(|id| self.entries.get(id))
    }

    /// Tickets that a person has to decide about, before anything else is printed for their order.
    pub fn doubtful(&self) -> impl Iterator<Item = &Entry> {
        self.entries().filter(|entry| matches!(entry.state, State::Ended(End::Doubtful(_))))
    }

    /// Ends that the hub was not told of: job, and whether it was printed. Tell it, then say [`Ledger::reported`].
    pub fn unreported(&self) -> impl Iterator<Item = (Uuid, bool)> {
        self.entries().filter_map(|entry| entry.report().map(|printed| (entry.job.id, printed)))
    }

    /// Notes what is to be printed. The same job again changes nothing while it is only intended.
    ///
    /// # Errors
    /// [`LedgerError`]
    pub fn intend(&mut self, job: &Job) -> Result<(), LedgerError> {
        match self.entries.get(&job.id) {
            Some(Entry { job: known, state: State::Intended, .. }) if known == job => Ok(()),
            Some(_) => Err(LedgerError::OutOfTurn(job.id)),
            None => self.add(INTENDED, job.id, job),
        }
    }

    /// Notes that bytes of it may be on their way from now on.
    ///
    /// # Errors
    /// [`LedgerError`]: then nothing may be sent.
    pub fn send(&mut self, id: Uuid) -> Result<(), LedgerError> {
        self.add(SENT, id, &())
    }

    /// Notes how it ended.
    ///
    /// # Errors
    /// [`LedgerError`]: opened anew, the ledger calls it doubtful.
    pub fn end(&mut self, id: Uuid, end: End) -> Result<(), LedgerError> {
        self.add(ENDED, id, &end)
    }

    /// Notes what a person found, and their name.
    ///
    /// # Errors
    /// [`LedgerError`]
    pub fn decide(&mut self, id: Uuid, decision: Decision, by: &str) -> Result<(), LedgerError> {
        self.add(DECIDED, id, &Decided { decision, by: by.to_owned() })
    }

    /// Notes that the hub knows.
    ///
    /// # Errors
    /// [`LedgerError`]
    pub fn reported(&mut self, id: Uuid) -> Result<(), LedgerError> {
        self.add(REPORTED, id, &())
    }

    fn end_what_a_stop_left(&mut self) -> Result<(), LedgerError> {
        for id in self.order.clone() {
            let end = match self.entries[&id].state {
                State::Intended => End::NotPrinted(Trouble::TillStopped),
                State::Sent => End::Doubtful(Trouble::TillStopped),
                State::Ended(_) | State::Decided(..) => continue,
            };
            self.end(id, end)?;
        }
        Ok(())
    }

    fn add(&mut self, kind: u8, id: Uuid, what: &impl Serialize) -> Result<(), LedgerError> {
        if self.broken {
            return Err(LedgerError::Broken);
        }
        let mut body = id.as_bytes().to_vec();
        body.extend(serde_json::to_vec(what).expect("a record of ours is JSON"));
        if body.len() > BODY_BYTES_MAX {
            return Err(LedgerError::TooLong(body.len()));
        }
        let new = Frame { kind, number: self.order.len() as u64, body };
        let (mut entries, mut order) = (self.entries.get(&id).cloned(), Vec::new());
        if !apply(&mut entries, &mut order, &new) {
            return Err(LedgerError::OutOfTurn(id));
        }
        let (bytes, seal) = frame::write(self.seal, &new);
        self.broken = true;
        self.medium.append(&bytes).and_then(|()| self.medium.sync()).map_err(LedgerError::Disk)?;
        self.broken = false;
        self.seal = seal;
        self.order.extend(order);
        self.entries.extend(entries.map(|entry| (id, entry)));
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Decided {
    decision: Decision,
    by: String,
}

/// What a record makes of its job's entry; `false`: it can't follow on it.
fn apply(entry: &mut Option<Entry>, order: &mut Vec<Uuid>, record: &Frame) -> bool {
    let Some((id, body)) = record.body.split_at_checked(16) else { return false };
    let (Ok(id), body) = (Uuid::from_slice(id), body) else { return false };
    if record.kind == INTENDED {
        let job = serde_json::from_slice::<Job>(body).ok().filter(|job| job.id == id);
        let (Some(job), None) = (job, entry.as_ref()) else { return false };
        *entry = Some(Entry { job, state: State::Intended, reported: false });
        order.push(id);
        return true;
    }
    let Some(entry) = entry else { return false };
    match (record.kind, entry.state) {
        (SENT, State::Intended) => entry.state = State::Sent,
        (ENDED, before) => {
            let Ok(end) = serde_json::from_slice::<End>(body) else { return false };
            let follows = match before {
                State::Intended => matches!(end, End::NotPrinted(_)),
                State::Sent => true,
                State::Ended(_) | State::Decided(..) => false,
            };
            if !follows {
                return false;
            }
            entry.state = State::Ended(end);
        }
        (DECIDED, State::Ended(end @ End::Doubtful(_))) => {
            let Ok(decided) = serde_json::from_slice::<Decided>(body) else { return false };
            entry.state = State::Decided(end, decided.decision);
        }
        (REPORTED, _) if entry.report().is_some() => entry.reported = true,
        _ => return false,
    }
    true
}

type Replayed = (BTreeMap<Uuid, Entry>, Vec<Uuid>, u32, usize);

fn replay(bytes: &[u8], terminal: Uuid) -> Result<Replayed, OpenError> {
    let damaged = |at: usize| OpenError::Damaged { at: at as u64, bytes: bytes.len() as u64 };
    let (owner, _, mut seal) = frame::read_head(bytes).ok_or_else(|| damaged(0))?;
    if owner != terminal {
        return Err(OpenError::OfAnother(owner));
    }
    let (mut entries, mut order, mut at) = (BTreeMap::<Uuid, Entry>::new(), Vec::new(), HEAD_BYTES);
    loop {
        match frame::read(seal, &bytes[at..]) {
            Found::End | Found::Torn => return Ok((entries, order, seal, at)),
            Found::Damaged => return Err(damaged(at)),
            Found::Whole { frame, seal: next, bytes: length } => {
                let id = frame.body.get(..16).and_then(|id| Uuid::from_slice(id).ok()).ok_or_else(|| damaged(at))?;
                let mut entry = entries.remove(&id);
                if !apply(&mut entry, &mut order, &frame) {
                    return Err(damaged(at));
                }
                entries.extend(entry.map(|entry| (id, entry)));
                (seal, at) = (next, at + length);
            }
        }
    }
}
