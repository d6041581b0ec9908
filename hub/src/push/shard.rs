//! A shard: a thread, and the open maps that it carries.
//!
//! A viewer is a cursor into its room's ring: a record of some forty bytes. A round goes through the
//! viewers of a room whose head has moved, and writes the room's shared bytes to each; it goes in
//! steps, so that arrivals and answers are served in between, and the next begins when it is done: a
//! viewer that a slow round reaches late gets everything since in one frame.
//!
//! Invariants
//! - There is no queue. Only what the kernel took a part of is kept, a slice of shared bytes, until it
//!   is out; what a viewer has not taken yet is in the ring, and one that falls off it is told to resync.
//! - The server speaks first and only; what a client sends is bounded, and hardly looked at.
//! - A viewer that takes nothing, or gives no sign of life, is closed within a stated time.

mod door; // how viewers come in, and what wakes a shard
mod hall; // a room's viewers, and how far a round has come
mod sending; // what follows, and the rest of what a socket did not take
mod hearing; // what clients say
mod memo; // what follows on a cursor, looked up once a step
mod numbers; // counted as it goes
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use fullhouse_protocol::{close, frames::Position};
use nix::{
    errno::Errno,
    sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
};

use self::{door::Door, hall::Hall, memo::Memo, numbers::Tally};
pub use self::{
    door::{Arrival, Doors, Place, Places, Shares},
    numbers::Numbers,
};
use super::{
    room::{Room, Watch},
    wire,
};

/// Viewers that are written to before arrivals and answers get their turn.
const STEP_VIEWERS: usize = 1_000;
/// Sockets that are reported at once.
const EVENTS: usize = 1_024;
/// What is not done by an event is looked at so often: pings, patience, partings.
const TICK: Duration = Duration::from_millis(100);
/// After viewers have come in a shard waits so long before it looks at the door again: in a storm of arrivals it is
/// woken for some of them at once, not for each.
const BREATH: Duration = Duration::from_millis(1);
/// A shard without viewers looks about itself so often.
const IDLE: Duration = Duration::from_secs(10);
/// Messages that a client may send between two of our pings; a browser answers each with one pong.
const INPUT_MESSAGES_MAX: u8 = 30;
/// How long a viewer that is ahead of this node waits for it, before it has to look for another.
const AHEAD_MAX: Duration = Duration::from_secs(5);
/// How long a client may take to answer our close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Viewers of a node that drains return within this, each after a random part of it.
const RETURN_WITHIN_MS: u32 = 5_000;
/// Pings that may go unanswered.
const UNANSWERED_MAX: u8 = 2;

const READABLE: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP);
const WRITABLE: EpollFlags = READABLE.union(EpollFlags::EPOLLOUT);
/// The door among the sockets.
const DOOR: u64 = u64::MAX;
/// A viewer that is only told why it is closed follows no room.
const NO_ROOM: u32 = u32::MAX;

/// How patient a shard is.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A viewer that takes nothing for so long is closed.
    pub send: Duration,
    pub ping_interval: Duration,
}

/// An open map. There may be hundreds of thousands: this is all that an idle one costs, besides its
/// place in its room's list.
struct Viewer {
    stream: TcpStream,
    /// Which of the shard's rooms, and where in its list.
    room: u32,
    listed: u32,
    /// What it has, or is about to have been sent.
    at: Position,
    /// It has nothing: `at` means nothing yet.
    is_fresh: bool,
    /// It has an entry in `waiting`.
    waits: bool,
    /// Messages since our last ping.
    heard: u8,
    unanswered: u8,
    _place: Place,
}

impl Viewer {
    fn cursor(&self) -> Option<Position> {
        (!self.is_fresh).then_some(self.at)
    }
}

/// Why a viewer is not simply given what comes next. Few are in such a state at any time.
enum Waiting {
    /// For room in its socket. `rest` is what is still missing of a message.
    Lags { rest: Bytes, since: Instant },
    /// For this node to reach it.
    Ahead { until: Instant },
    /// For its answer to our close, of which `rest` is not out yet.
    Parts { rest: Bytes, until: Instant },
}

struct Shard {
    door: Arc<Door>,
    patience: Patience,
    numbers: Arc<Numbers>,
    tally: Tally,
    epoll: Epoll,
    viewers: Vec<Option<Viewer>>,
    vacant: Vec<u32>,
    halls: Vec<Option<Hall>>,
    /// By the room's address.
    hall_of: HashMap<usize, u32>,
    waiting: HashMap<u32, Waiting>,
    /// Beginnings of messages.
    heard_partly: HashMap<u32, Vec<u8>>,
    /// A round is under way in some hall.
    in_round: bool,
    ticked: Instant,
    /// The viewer that is pinged next, and the fraction of a viewer that was not pinged at the last tick.
    ping_next: usize,
    ping_share: f64,
    is_draining: bool,
    /// Somebody has come in the last turn.
    has_admitted: bool,
}

impl Shard {
    fn new(door: Arc<Door>, patience: Patience, numbers: Arc<Numbers>, now: Instant) -> nix::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(door.bell(), EpollEvent::new(EpollFlags::EPOLLIN, DOOR))?;
        Ok(Self {
            door,
            patience,
            numbers,
            tally: Tally::default(),
            epoll,
            viewers: Vec::new(),
            vacant: Vec::new(),
            halls: Vec::new(),
            hall_of: HashMap::new(),
            waiting: HashMap::new(),
            heard_partly: HashMap::new(),
            in_round: false,
            ticked: now,
            ping_next: 0,
            ping_share: 0.0,
            is_draining: false,
            has_admitted: false,
        })
    }

    /// Until it has drained.
    fn run(mut self) {
        while !(self.is_draining && self.is_empty()) {
            let patience = match (self.in_round, self.is_empty()) {
                (true, _) => Duration::ZERO,
                (false, false) => TICK,
                (false, true) => IDLE, // until the bell rings
            };
            self.turn(Instant::now, patience);
            if std::mem::take(&mut self.has_admitted) && !self.in_round {
                std::thread::sleep(BREATH);
            }
        }
        self.door.close();
    }

    fn is_empty(&self) -> bool {
        self.viewers.len() == self.vacant.len()
    }

    /// Waits for something to do, `patience` at most, and does what there is.
    fn turn(&mut self, clock: impl Fn() -> Instant, patience: Duration) {
        let mut events = [EpollEvent::empty(); EVENTS];
        let timeout = EpollTimeout::try_from(patience).unwrap_or(EpollTimeout::ZERO);
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => {
                // Only a bug brings us here; let it not become a busy loop.
                tracing::error!(%error, "a shard can't wait for its sockets");
                std::thread::sleep(TICK);
                0
            }
        };
        let now = clock();
        let mut rings = false;
        for event in &events[..count] {
            match event.data() {
                DOOR => rings = true, // after the others: whoever comes in may get the place of one that is reported here
                slot => self.attend(slot as u32, event.events(), now),
            }
        }
        if rings {
            self.answer_door(now);
        }
        if let Some(since) = self.step(now) {
            self.tally.round(clock().saturating_duration_since(since));
        }
        if now.duration_since(self.ticked) >= TICK {
            self.tick(now);
        }
        self.numbers.add(&mut self.tally);
    }

    fn answer_door(&mut self, now: Instant) {
        let arrivals = self.door.answer();
        if self.door.is_draining() && !self.is_draining {
            self.is_draining = true;
            for slot in 0..self.viewers.len() as u32 {
                self.part(slot, close::DRAINING, now);
            }
        }
        self.has_admitted = !arrivals.is_empty();
        for arrival in arrivals {
            self.admit(arrival, now);
        }
        // The bell rings for new heads too.
        self.in_round = self.halls.iter_mut().flatten().fold(self.in_round, |any, hall| hall.begins_round() || any);
    }

    fn admit(&mut self, arrival: Arrival, now: Instant) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.viewers.push(None);
            self.viewers.len() as u32 - 1
        });
        if self.epoll.add(&arrival.stream, EpollEvent::new(READABLE, slot.into())).is_err() {
            self.vacant.push(slot);
            return; // it is gone already
        }
        let (room, listed, refused) = match arrival.entry {
            Ok(room) => {
                let room = self.hall(room);
                let hall = self.halls[room as usize].as_mut().expect("just looked up");
                (room, hall.enter(slot), None)
            }
            Err(code) => (NO_ROOM, 0, Some(code)),
        };
        let cursor = arrival.cursor;
        self.viewers[slot as usize] = Some(Viewer {
            stream: arrival.stream,
            room,
            listed,
            at: cursor.unwrap_or_default(),
            is_fresh: cursor.is_none(),
            waits: false,
            heard: 0,
            unanswered: 0,
            _place: arrival.place,
        });
        match refused.or(self.is_draining.then_some(close::DRAINING)) {
            Some(code) => self.part(slot, code, now),
            None => {
                if !arrival.read_ahead.is_empty() {
                    self.hear_bytes(slot, &arrival.read_ahead, now);
                }
                self.serve(slot, &mut Memo::default(), now);
            }
        }
    }

    fn hall(&mut self, room: Arc<Room>) -> u32 {
        let room = Watch::new(room);
        *self.hall_of.entry(room.address()).or_insert_with(|| {
            let hall = Some(Hall::new(room));
            match self.halls.iter().position(Option::is_none) {
                Some(vacant) => {
                    self.halls[vacant] = hall;
                    vacant as u32
                }
                None => {
                    self.halls.push(hall);
                    self.halls.len() as u32 - 1
                }
            }
        })
    }

    /// Something has happened at a socket.
    fn attend(&mut self, slot: u32, events: EpollFlags, now: Instant) {
        if events.contains(EpollFlags::EPOLLERR) {
            return self.remove(slot);
        }
        if events.contains(EpollFlags::EPOLLOUT) {
            self.send_rest(slot, now);
        }
        if events.intersects(READABLE | EpollFlags::EPOLLHUP) {
            self.hear(slot, now);
        }
    }

    fn wait(&mut self, slot: u32, state: Waiting) {
        if let Some(viewer) = self.viewers[slot as usize].as_mut() {
            viewer.waits = true;
            self.waiting.insert(slot, state);
        }
    }

    fn watch(&mut self, slot: u32, flags: EpollFlags) {
        let Some(viewer) = self.viewers[slot as usize].as_ref() else { return };
        if self.epoll.modify(&viewer.stream, &mut EpollEvent::new(flags, slot.into())).is_err() {
            self.remove(slot);
        }
    }

    /// Closes with a code, after what is half out, and waits a moment for the client's answer, so that
    /// ours is not lost in a connection that is reset.
    fn part(&mut self, slot: u32, code: u16, now: Instant) {
        let before = match self.waiting.remove(&slot) {
            Some(Waiting::Parts { rest, until }) => {
                self.waiting.insert(slot, Waiting::Parts { rest, until });
                return;
            }
            Some(Waiting::Lags { rest, .. }) => rest,
            Some(Waiting::Ahead { .. }) | None => Bytes::new(),
        };
        if self.viewers[slot as usize].is_none() {
            return;
        }
        self.leave_hall(slot);
        self.tally.closed(code);
        let reason = if code == close::DRAINING { RETURN_WITHIN_MS.to_string() } else { String::new() };
        let rest = Bytes::from([before, wire::close(Some(code), &reason)].concat());
        self.wait(slot, Waiting::Parts { rest, until: now + CLOSE_TIMEOUT });
        self.watch(slot, WRITABLE);
        self.send_rest(slot, now);
    }

    fn leave_hall(&mut self, slot: u32) {
        let Some(viewer) = self.viewers[slot as usize].as_mut() else { return };
        let (room, listed) = (std::mem::replace(&mut viewer.room, NO_ROOM) as usize, viewer.listed);
        let Some(hall) = self.halls.get_mut(room).and_then(Option::as_mut) else { return };
        if let Some(moved) = hall.leave(listed) {
            self.viewers[moved as usize].as_mut().expect("whoever is listed is there").listed = listed;
        }
        if hall.is_empty() {
            self.hall_of.remove(&hall.room.address());
            self.halls[room] = None;
        }
    }

    fn remove(&mut self, slot: u32) {
        if self.viewers[slot as usize].is_none() {
            return;
        }
        self.leave_hall(slot);
        self.waiting.remove(&slot);
        self.heard_partly.remove(&slot);
        self.viewers[slot as usize] = None; // closing a socket takes it out of the epoll set
        self.vacant.push(slot);
    }

    /// What only time brings about.
    fn tick(&mut self, now: Instant) {
        let since_last = now.duration_since(self.ticked);
        self.ticked = now;
        let over: Vec<(u32, bool)> = self
            .waiting
            .iter()
            .filter_map(|(slot, state)| match state {
                Waiting::Lags { since, .. } => {
                    (now.duration_since(*since) >= self.patience.send).then_some((*slot, true))
                }
                Waiting::Ahead { until } => (now >= *until).then_some((*slot, true)),
                Waiting::Parts { until, .. } => (now >= *until).then_some((*slot, false)),
            })
            .collect();
        for (slot, is_told) in over {
            if is_told { self.part(slot, close::TOO_SLOW, now) } else { self.remove(slot) }
        }
        self.ping_share +=
            self.viewers.len() as f64 * since_last.as_secs_f64() / self.patience.ping_interval.as_secs_f64();
        while self.ping_share >= 1.0 {
            self.ping_share -= 1.0;
            self.ping_next = if self.ping_next + 1 < self.viewers.len() { self.ping_next + 1 } else { 0 };
            self.ping(self.ping_next as u32, now);
        }
        self.give_back();
    }

    fn ping(&mut self, slot: u32, now: Instant) {
        let Some(viewer) = self.viewers[slot as usize].as_mut() else { return };
        if viewer.waits && !matches!(self.waiting.get(&slot), Some(Waiting::Ahead { .. })) {
            return; // its patience is measured otherwise
        }
        if viewer.unanswered == UNANSWERED_MAX {
            return self.part(slot, close::TOO_SLOW, now);
        }
        (viewer.heard, viewer.unanswered) = (0, viewer.unanswered + 1);
        self.send_aside(slot, wire::PING_MESSAGE, now);
    }

    /// What a storm made large becomes small again.
    fn give_back(&mut self) {
        if self.waiting.capacity() > 64 + 8 * self.waiting.len() {
            self.waiting.shrink_to(2 * self.waiting.len());
        }
        if self.heard_partly.capacity() > 64 + 8 * self.heard_partly.len() {
            self.heard_partly.shrink_to(2 * self.heard_partly.len());
        }
    }
}
