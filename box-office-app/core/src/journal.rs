//! What was sold without a network: on disk, and synced, before a ticket is printed.
//!
//! Invariants:
//! - An append that answered `Ok` is found again after any crash. One that answered an error may be found or not; the
//!   journal takes no more until it is opened anew, because nobody knows what stands on the disk.
//! - Sales are numbered 1, 2, 3… for a terminal, for ever. A number is given once, with one body, whose bytes travel
//!   unchanged each time it is sent: the hub's exactly-once compares them.
//! - Nothing is dropped in silence: a torn tail is cut (nobody was told that it was kept), and the cut is reported;
//!   a damaged middle, or a file of another terminal, is refused and left as it is.
//! - One process has a journal at a time (a lock beside the file, which the system frees when the process ends).
//! - A journal says where it was begun. A copy of it, on another machine or put back from a backup, is told from it: what
//!   the other one sold since is not in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use thiserror::Error;
use uuid::Uuid;

pub(crate) mod frame; // the bytes, which the ledger of prints has too
mod place; // where a file lies, which no copy has
#[cfg(test)]
mod tests;

use frame::{BODY_BYTES_MAX, Found, Frame, HEAD_BYTES};
use place::Place;

const SALE: u8 = 1;
const SETTLED: u8 = 2;
const LEASE_TAKEN: u8 = 3;
const LEASE_CLOSED: u8 = 4;
const LEASE_REPORTED: u8 = 5;
const LEASE_ASKED: u8 = 6;
const PLACE: u8 = 7;

/// Why a journal could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("the journal could not be read or written")]
    Disk(#[source] io::Error),
    /// Another process sells from it.
    #[error("another process has the journal open")]
    InUse,
    /// Written by a terminal that was enrolled here before. Its sales have to be settled by its own token.
    #[error("the journal is terminal {0}'s")]
    OfAnother(Uuid),
    /// Somebody has to look at it: sales behind this place may not have been settled.
    #[error("the journal is damaged at byte {at} of {bytes}")]
    Damaged { at: u64, bytes: u64 },
}

/// Why nothing was added.
#[derive(Debug, Error)]
pub enum AppendError {
    /// It may be on the disk, or not: what was to be sold is sold by nobody until the journal is opened anew.
    #[error("the journal could not be written")]
    Disk(#[source] io::Error),
    #[error("an earlier write of the journal failed; it has to be opened anew")]
    Broken,
    #[error("{0} bytes are more than an entry may have")]
    TooLong(usize),
    /// No sale has this number.
    #[error("the journal has no sale {0}")]
    NoSale(u64),
    #[error("sale {0} was settled with another outcome")]
    SettledOtherwise(u64),
    /// A lease sells only in the process that got it.
    #[error("lease {0} was taken or closed before")]
    LeaseKnown(Uuid),
    /// Only what is closed was reported so.
    #[error("lease {0} is not closed")]
    LeaseOpen(Uuid),
}

/// A lease as the journal knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseMark {
    Taken,
    /// Nothing is sold from it again.
    Closed,
    /// The hub knows that it is closed.
    Reported,
}

/// Where the frames go. A write is kept once `sync` has answered.
pub trait Medium: Send {
    /// # Errors
    /// Part of it may be written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// # Errors
    /// What was appended may be kept or not; asking again proves nothing.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// An open journal.
#[derive(Debug)]
pub struct Journal<M: Medium = File> {
    medium: M,
    broken: bool,
    /// Held as long as the journal is open.
    _lock: Option<File>,
    state: State,
    /// Bytes of a torn tail that were cut when it was opened.
    cut: u64,
    copied: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    seal: u32,
    next: u64,
    sales: BTreeMap<u64, Vec<u8>>,
    outcomes: BTreeMap<u64, Vec<u8>>,
    leases: BTreeMap<Uuid, LeaseMark>,
    /// Keys that leases were asked for with.
    asked: BTreeSet<Uuid>,
    /// Where it was begun; none: by a version of this app that did not note it.
    place: Option<Place>,
}

impl Journal<File> {
    /// Opens the journal of `terminal`, or begins one whose first sale will have the number `first`: the hub's
    /// `next_seq`, never a guess, for a file that was lost had numbers of its own.
    ///
    /// # Errors
    /// [`OpenError`]; the file stays as it is, except that a torn tail is cut.
    pub fn open(path: &Path, terminal: Uuid, first: u64) -> Result<Self, OpenError> {
        let lock = lock(path)?;
        if !path.try_exists().map_err(OpenError::Disk)? {
            begin(path, terminal, first).map_err(OpenError::Disk)?;
        }
        let bytes = fs::read(path).map_err(OpenError::Disk)?;
        let (state, whole) = replay(&bytes, terminal)?;
        let file = OpenOptions::new().append(true).open(path).map_err(OpenError::Disk)?;
        let cut = bytes.len() - whole;
        if cut > 0 {
            file.set_len(whole as u64).map_err(OpenError::Disk)?;
        }
        // Also of what was written before: a frame that was read from the cache may not be on the disk yet.
        file.sync_all().map_err(OpenError::Disk)?;
        let here = Place::of(&file).map_err(OpenError::Disk)?;
        let copied = state.place.as_ref().is_some_and(|place| place.differs(&here));
        let noted = state.place.is_some();
        let mut journal = Self { medium: file, broken: false, _lock: Some(lock), state, cut: cut as u64, copied };
        if !noted {
            journal.note(&here).map_err(OpenError::Disk)?;
        }
        Ok(journal)
    }
}

#[cfg(test)]
impl Journal<File> {
    /// The same, its writes going through another medium.
    pub(crate) fn through<M: Medium>(self, medium: impl FnOnce(File) -> M) -> Journal<M> {
        let Self { medium: file, broken, _lock, state, cut, copied } = self;
        Journal { medium: medium(file), broken, _lock, state, cut, copied }
    }
}

impl<M: Medium> Journal<M> {
    /// Number of the next sale.
    pub fn next_number(&self) -> u64 {
        self.state.next
    }

    /// Bytes of a torn tail that were cut when it was opened: worth a line in the log.
    pub fn cut_bytes(&self) -> u64 {
        self.cut
    }

    /// It was begun elsewhere: whoever has the other one may have sold from its leases since.
    pub fn is_copied(&self) -> bool {
        self.copied
    }

    /// A write failed: it takes no more.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// All sales in order of their numbers, with their bodies.
    pub fn sales(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.state.sales.iter().map(|(n, body)| (*n, body.as_slice()))
    }

    /// Those that the hub has not answered yet, in order.
    pub fn unsettled(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.sales().filter(|(n, _)| !self.state.outcomes.contains_key(n))
    }

    /// How many those are.
    pub fn unsettled_count(&self) -> usize {
        self.state.sales.len() - self.state.outcomes.len()
    }

    /// What the hub made of a sale, in its words.
    pub fn outcome(&self, number: u64) -> Option<&[u8]> {
        self.state.outcomes.get(&number).map(Vec::as_slice)
    }

    /// What is known of a lease; `None` of one that was never taken here.
    pub fn lease(&self, id: Uuid) -> Option<LeaseMark> {
        self.state.leases.get(&id).copied()
    }

    /// Leases whose closing report has not been made.
    pub fn leases_open(&self) -> BTreeSet<Uuid> {
        self.leases_marked(LeaseMark::Taken)
    }

    /// Leases that are closed here, and not known to be so at the hub.
    pub fn leases_unreported(&self) -> BTreeSet<Uuid> {
        self.leases_marked(LeaseMark::Closed)
    }

    fn leases_marked(&self, mark: LeaseMark) -> BTreeSet<Uuid> {
        self.state.leases.iter().filter(|(_, m)| **m == mark).map(|(id, _)| *id).collect()
    }

    /// Whether a lease was asked for with this key, by this process or an earlier one that had this journal.
    pub fn has_asked(&self, key: Uuid) -> bool {
        self.state.asked.contains(&key)
    }

    /// Keeps a sale, and answers its number once it is on the disk. The number is also what `body` is asked with.
    ///
    /// # Errors
    /// [`AppendError::Disk`], `Broken`, `TooLong`: nothing may be printed.
    pub fn sell(&mut self, body: impl FnOnce(u64) -> Vec<u8>) -> Result<u64, AppendError> {
        let number = self.state.next;
        self.add(Frame { kind: SALE, number, body: body(number) })?;
        Ok(number)
    }

    /// Keeps what the hub made of a sale. The same outcome again changes nothing.
    ///
    /// # Errors
    /// [`AppendError::NoSale`], `SettledOtherwise`, or what [`Journal::sell`] answers.
    pub fn settle(&mut self, number: u64, outcome: &[u8]) -> Result<(), AppendError> {
        if !self.state.sales.contains_key(&number) {
            return Err(AppendError::NoSale(number));
        }
        match self.state.outcomes.get(&number) {
            Some(known) if known == outcome => Ok(()),
            Some(_) => Err(AppendError::SettledOtherwise(number)),
            None => self.add(Frame { kind: SETTLED, number, body: outcome.to_vec() }),
        }
    }

    /// Notes that a lease was taken, before anything is sold from it.
    ///
    /// # Errors
    /// [`AppendError::LeaseKnown`], or what [`Journal::sell`] answers.
    pub fn take_lease(&mut self, id: Uuid) -> Result<(), AppendError> {
        if self.lease(id).is_some() {
            return Err(AppendError::LeaseKnown(id));
        }
        self.add(Frame { kind: LEASE_TAKEN, number: 0, body: id.as_bytes().to_vec() })
    }

    /// Notes that nothing is sold from a lease again, before the hub is told so. Again changes nothing.
    ///
    /// # Errors
    /// What [`Journal::sell`] answers.
    pub fn close_lease(&mut self, id: Uuid) -> Result<(), AppendError> {
        match self.lease(id) {
            Some(LeaseMark::Closed | LeaseMark::Reported) => Ok(()),
            _ => self.add(Frame { kind: LEASE_CLOSED, number: 0, body: id.as_bytes().to_vec() }),
        }
    }

    /// Notes that the hub has a closed lease's report. Again changes nothing.
    ///
    /// # Errors
    /// [`AppendError::LeaseOpen`], or what [`Journal::sell`] answers.
    pub fn report_lease(&mut self, id: Uuid) -> Result<(), AppendError> {
        match self.lease(id) {
            Some(LeaseMark::Reported) => Ok(()),
            Some(LeaseMark::Closed) => {
                self.add(Frame { kind: LEASE_REPORTED, number: 0, body: id.as_bytes().to_vec() })
            }
            Some(LeaseMark::Taken) | None => Err(AppendError::LeaseOpen(id)),
        }
    }

    /// Notes the key that a lease is about to be asked for with: if the answer is lost, the lease is known to be one that
    /// never sold. One that an earlier journal of this terminal sold from, before it was lost, has no key here.
    ///
    /// # Errors
    /// What [`Journal::sell`] answers.
    pub fn ask_lease(&mut self, key: Uuid) -> Result<(), AppendError> {
        if self.has_asked(key) {
            return Ok(());
        }
        self.add(Frame { kind: LEASE_ASKED, number: 0, body: key.as_bytes().to_vec() })
    }

    fn note(&mut self, place: &Place) -> io::Result<()> {
        match self.add(Frame { kind: PLACE, number: 0, body: place.to_bytes() }) {
            Ok(()) => Ok(()),
            Err(AppendError::Disk(error)) => Err(error),
            Err(other) => Err(io::Error::other(other)),
        }
    }

    fn add(&mut self, frame: Frame) -> Result<(), AppendError> {
        if self.broken {
            return Err(AppendError::Broken);
        }
        if frame.body.len() > BODY_BYTES_MAX {
            return Err(AppendError::TooLong(frame.body.len()));
        }
        let (bytes, seal) = frame::write(self.state.seal, &frame);
        // A sync that failed once may answer well the next time with the pages thrown away.
        self.broken = true;
        self.medium.append(&bytes).and_then(|()| self.medium.sync()).map_err(AppendError::Disk)?;
        self.broken = false;
        let known = self.state.apply(frame, seal);
        debug_assert!(known, "what is written is what is read");
        Ok(())
    }
}

impl State {
    /// `false` if the frame can't follow on what stands before it.
    fn apply(&mut self, frame: Frame, seal: u32) -> bool {
        self.seal = seal;
        let id = Uuid::from_slice(&frame.body).ok();
        match frame.kind {
            SALE if frame.number == self.next => {
                self.next += 1;
                self.sales.insert(frame.number, frame.body).is_none()
            }
            SETTLED if self.sales.contains_key(&frame.number) => {
                self.outcomes.insert(frame.number, frame.body).is_none()
            }
            LEASE_TAKEN => id.is_some_and(|id| self.leases.insert(id, LeaseMark::Taken).is_none()),
            LEASE_CLOSED => {
                id.is_some_and(|id| matches!(self.leases.insert(id, LeaseMark::Closed), None | Some(LeaseMark::Taken)))
            }
            LEASE_REPORTED => {
                id.is_some_and(|id| self.leases.insert(id, LeaseMark::Reported) == Some(LeaseMark::Closed))
            }
            LEASE_ASKED => id.is_some_and(|id| self.asked.insert(id)),
            PLACE => Place::read(&frame.body).is_some_and(|place| self.place.replace(place).is_none()),
            _ => false,
        }
    }
}

/// What the bytes say, and how many of them do.
fn replay(bytes: &[u8], terminal: Uuid) -> Result<(State, usize), OpenError> {
    let damaged = |at: usize| OpenError::Damaged { at: at as u64, bytes: bytes.len() as u64 };
    let (owner, next, seal) = frame::read_head(bytes).ok_or_else(|| damaged(0))?;
    if owner != terminal {
        return Err(OpenError::OfAnother(owner));
    }
    let mut state = State {
        seal,
        next,
        sales: BTreeMap::new(),
        outcomes: BTreeMap::new(),
        leases: BTreeMap::new(),
        asked: BTreeSet::new(),
        place: None,
    };
    let mut at = HEAD_BYTES;
    loop {
        match frame::read(state.seal, &bytes[at..]) {
            Found::End | Found::Torn => return Ok((state, at)),
            Found::Whole { frame, seal, bytes } => {
                if !state.apply(frame, seal) {
                    return Err(damaged(at));
                }
                at += bytes;
            }
            Found::Damaged => return Err(damaged(at)),
        }
    }
}

/// Puts an empty journal in place: whole or not at all.
pub(crate) fn begin(path: &Path, terminal: Uuid, first: u64) -> io::Result<()> {
    let new = beside(path, "new");
    let mut file = File::create(&new)?;
    file.write_all(&frame::head(terminal, first).0)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

pub(crate) fn lock(path: &Path) -> Result<File, OpenError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(beside(path, "lock"))
        .map_err(OpenError::Disk)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse),
        Err(TryLockError::Error(error)) => Err(OpenError::Disk(error)),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}
