//! How viewers come into a shard, and what wakes it: arrivals, new heads of rooms, the end.
//!
//! Invariant: whoever rings after a shard has begun to answer is answered by the next round at the door;
//! any number of rings before that are one.

use std::{
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::Context;
use bytes::Bytes;
use dashmap::DashMap;
use fullhouse_protocol::frames::Position;
use nix::sys::eventfd::{EfdFlags, EventFd};
use tokio_util::task::TaskTracker;

use super::{Numbers, Patience, Shard};
use crate::push::room::Room;

/// A socket whose handshake is done.
pub struct Arrival {
    /// Not blocking.
    pub stream: TcpStream,
    /// The room that it wants to follow, or the code with which it is turned away.
    pub entry: Result<Arc<Room>, u16>,
    /// What it has already.
    pub cursor: Option<Position>,
    /// What the client had sent with its handshake.
    pub read_ahead: Bytes,
    pub place: Place,
}

/// So many at once, of one address or of all.
#[derive(Debug)]
pub struct Places {
    taken: AtomicUsize,
    max: usize,
    /// Those of all, of which an address has its own.
    of: Option<Arc<Places>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Place(Arc<Places>);

impl Places {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), max, of: None })
    }

    /// Some of these: no more than `max` of them.
    pub fn some(self: &Arc<Self>, max: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), max, of: Some(self.clone()) })
    }

    pub fn take(self: &Arc<Self>) -> Option<Place> {
        let one_more = |places: &Self| {
            let more = |taken| (taken < places.max).then_some(taken + 1);
            places.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
        };
        if !one_more(self) {
            return None;
        }
        if self.of.as_ref().is_some_and(|all| !one_more(all)) {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Place(self.clone()))
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
        if let Some(all) = &self.0.of {
            all.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The places of a node, shared out by address: a venue has many viewers behind one, but not all.
pub struct Shares {
    all: Arc<Places>,
    an_address_max: usize,
    addresses: DashMap<String, Arc<Places>>,
    /// Addresses without viewers are forgotten when there are so many.
    forget_at: AtomicUsize,
}

const FORGET_AT: usize = 1_024;

impl Shares {
    pub fn new(max: usize, an_address_max: usize) -> Self {
        let forget_at = AtomicUsize::new(FORGET_AT);
        Self { all: Places::new(max), an_address_max, addresses: DashMap::new(), forget_at }
    }

    pub fn take(&self, address: &str) -> Option<Place> {
        if let Some(places) = self.addresses.get(address) {
            return places.take();
        }
        if self.addresses.len() >= self.forget_at.load(Ordering::Relaxed) {
            self.addresses.retain(|_, places| places.taken() > 0);
            self.forget_at.store(FORGET_AT.max(2 * self.addresses.len()), Ordering::Relaxed);
        }
        let new = || self.all.some(self.an_address_max);
        self.addresses.entry(address.to_owned()).or_insert_with(new).take() // before it could be forgotten
    }

    pub fn taken(&self) -> usize {
        self.all.taken()
    }
}

/// One shard's.
pub(super) struct Door {
    /// `None`: nobody answers any more.
    arrivals: Mutex<Option<Vec<Arrival>>>,
    bell: EventFd,
    rung: AtomicBool,
    draining: AtomicBool,
}

impl Door {
    pub(super) fn new() -> nix::Result<Self> {
        Ok(Self {
            arrivals: Mutex::new(Some(Vec::new())),
            bell: EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?,
            rung: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        })
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub(super) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            let _ = self.bell.write(1); // it can't be full: it is emptied before it may be rung again
        }
    }

    pub(super) fn enter(&self, arrival: Arrival) {
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(arrivals) = arrivals.as_mut() else { return }; // and the socket is closed
        arrivals.push(arrival);
        self.ring();
    }

    pub(super) fn close(&self) {
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.ring();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Who has come since.
    pub(super) fn answer(&self) -> Vec<Arrival> {
        let _ = self.bell.read();
        self.rung.store(false, Ordering::SeqCst);
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// All shards of a process. Cheap to clone; the default has none, for rooms that nobody watches.
#[derive(Clone, Default)]
pub struct Doors(pub(super) Arc<[Arc<Door>]>);

impl Doors {
    /// Starts `count` shards, each a thread of its own that `tasks` waits for.
    pub fn open(count: usize, patience: Patience, numbers: &Arc<Numbers>, tasks: &TaskTracker) -> anyhow::Result<Self> {
        let mut doors = Vec::with_capacity(count);
        for index in 0..count {
            let door = Arc::new(Door::new().context("a shard's bell")?);
            let shard = Shard::new(door.clone(), patience, numbers.clone(), Instant::now()).context("a shard")?;
            let until_then = tasks.token();
            thread::Builder::new()
                .name(format!("push-{index}"))
                .spawn(move || {
                    shard.run();
                    drop(until_then);
                })
                .context("a shard's thread")?;
            doors.push(door);
        }
        Ok(Self(doors.into()))
    }

    /// Lets a viewer in, by the door that its socket's number says: they fill evenly.
    pub fn enter(&self, arrival: Arrival) {
        use std::os::fd::AsRawFd;
        let index = arrival.stream.as_raw_fd() as usize % self.0.len().max(1);
        if let Some(door) = self.0.get(index) {
            door.enter(arrival);
        }
    }

    /// There is something new in a room.
    pub fn ring(&self) {
        self.0.iter().for_each(|door| door.ring());
    }

    /// Tells every viewer to go elsewhere; the shards end when they have.
    pub fn drain(&self) {
        self.0.iter().for_each(|door| door.drain());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shared_out_and_come_back() {
        let shares = Shares::new(3, 2);
        let (a, b) = (shares.take("a"), shares.take("a"));
        assert!(a.is_some() && b.is_some() && shares.take("a").is_none(), "two an address");
        let c = shares.take("c");
        assert!(c.is_some() && shares.take("d").is_none(), "three in all");
        assert_eq!(shares.taken(), 3);
        drop((a, b, c));
        assert_eq!(shares.taken(), 0);
        let all: Vec<_> = (0..3).map(|number| shares.take(&format!("e{number}"))).collect();
        assert!(all.iter().all(Option::is_some));
    }

    #[test]
    fn addresses_without_viewers_are_forgotten() {
        let shares = Shares::new(1_000_000, 1);
        let stays = shares.take("stays");
        for number in 0..10 * FORGET_AT {
            drop(shares.take(&format!("{number}")));
        }
        assert!(shares.addresses.len() <= FORGET_AT);
        assert!(shares.take("stays").is_none(), "whoever has viewers is remembered");
        drop(stays);
        assert!(shares.take("stays").is_some());
    }
}
