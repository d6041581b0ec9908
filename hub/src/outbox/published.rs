//! What the relay has published of every event, and the frames that follow from what it learns.
//!
//! Pure: no clock, no database, no feed.
//!
//! Invariants
//! - A change is dropped unless its version is above the one known. A row that comes twice, late or
//!   out of order is harmless; only a comparison with the database itself may say otherwise.
//! - A hold that has run out is shown free from its `held_until` on, whoever tidies it up, and when.
//! - Frames of an event are numbered without a gap, and one after the other they lead from what was
//!   published to what is shown.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use fullhouse_protocol::{
    frames::{Change, Head, Position, encode_delta},
    keyframe::{KeyframePart, SeatState},
    seat::Status,
    track::Track,
};

use super::SeatChange;
use crate::feed::{Kind, Message};

/// Bounds on what one tick publishes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Changes a frame.
    pub frame_changes_max: usize,
    /// Frames an event and tick; what would need more is a keyframe, and viewers are told to resync.
    pub frames_max: usize,
    /// Bytes a message of the feed.
    pub message_bytes_max: usize,
}

/// All seats of an event as the database has them, at one instant. Numbers without a row are not named.
#[derive(Debug, Default)]
pub struct Rows(pub Vec<SeatChange>);

#[derive(Debug, Clone, Copy)]
struct Seat {
    /// On the map: a hold that has run out is available.
    shown: Status,
    /// Of its row.
    version: i32,
    /// 0 for a seat that is not held.
    held_until_us: u64,
}

/// A number that the plan has retired, or whose row is still to come.
const NO_ROW: Seat = Seat { shown: Status::Blocked, version: 0, held_until_us: 0 };

struct Event {
    plan_revision_id: i64,
    head: Head,
    seats: Vec<Seat>,
    /// Seats whose `shown` has changed since the last frame, with what was published of them.
    before: BTreeMap<u32, Status>,
    /// When the oldest of those changes was made, in ms.
    oldest_ms: u64,
    /// A new epoch begins with a keyframe.
    begins: bool,
}

pub struct Published {
    limits: Limits,
    events: HashMap<i64, Event>,
    /// Seats that are shown as held, by (held_until in µs, event, seat).
    deadlines: BTreeSet<(u64, i64, u32)>,
    /// Events for which a frame is due.
    due: HashSet<i64>,
}

/// Why a change was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Unknown {
    Event,
    /// The plan has grown since the event was read.
    Seat,
}

impl Published {
    pub fn new(limits: Limits) -> Self {
        Self { limits, events: HashMap::new(), deadlines: BTreeSet::new(), due: HashSet::new() }
    }

    pub fn plan_revision_id(&self, event_id: i64) -> Option<i64> {
        self.events.get(&event_id).map(|event| event.plan_revision_id)
    }

    pub fn event_ids(&self) -> impl Iterator<Item = i64> {
        self.events.keys().copied()
    }

    /// Lets go of the events that are not among `wanted`, unless one of their seats is shown as held:
    /// that has to be shown free in time. A later change of them begins a new epoch.
    pub fn keep(&mut self, wanted: &HashSet<i64>) {
        let held: HashSet<i64> = self.deadlines.iter().map(|&(_, event_id, _)| event_id).collect();
        self.events.retain(|event_id, event| {
            wanted.contains(event_id) || held.contains(event_id) || event.begins || !event.before.is_empty()
        });
    }

    /// An event that was not known, or whose plan has changed: a new epoch, from `rows` on.
    pub fn begin(&mut self, event_id: i64, plan_revision_id: i64, seat_count: u32, rows: &Rows, now: DateTime<Utc>) {
        let after = self.forget(event_id).map_or(0, |event| event.head.at.epoch);
        let at = Position { epoch: new_epoch(now, after), frame: 0 };
        let head = Head { event_id, at, seat_count, committed_at_ms: ms(now) };
        let mut event = Event::new(plan_revision_id, head, vec![NO_ROW; seat_count as usize]);
        event.begins = true;
        self.events.insert(event_id, event);
        self.compare(event_id, rows, now);
        if let Some(event) = self.events.get_mut(&event_id) {
            event.before.clear(); // all of it is in the keyframe
        }
        self.due.insert(event_id);
    }

    /// An event that a former leader has published: its epoch goes on, and `rows` are compared with it.
    pub fn resume(&mut self, plan_revision_id: i64, track: &Track, rows: &Rows, now: DateTime<Utc>) {
        let event_id = track.head.event_id;
        self.forget(event_id);
        let seats = track.statuses.iter().map(|shown| Seat { shown, ..NO_ROW }).collect();
        self.events.insert(event_id, Event::new(plan_revision_id, track.head, seats));
        self.compare(event_id, rows, now);
    }

    /// Takes a change from the outbox.
    pub fn change(
        &mut self,
        event_id: i64,
        change: &SeatChange,
        made_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<(), Unknown> {
        let event = self.events.get(&event_id).ok_or(Unknown::Event)?;
        let seat = usize::try_from(change.seat_no).ok().and_then(|n| event.seats.get(n)).ok_or(Unknown::Seat)?;
        if change.version > seat.version {
            self.set(event_id, change, ms(made_at), now);
        }
        Ok(())
    }

    /// Takes what the database says, whatever was known. Returns how many seats were shown wrongly.
    pub fn compare(&mut self, event_id: i64, rows: &Rows, now: DateTime<Utc>) -> usize {
        let Some(event) = self.events.get(&event_id) else { return 0 };
        let mut missing: Vec<bool> = vec![true; event.seats.len()];
        let before = event.before.len();
        for row in &rows.0 {
            let Some(slot) = usize::try_from(row.seat_no).ok().and_then(|n| missing.get_mut(n)) else { continue };
            *slot = false;
            self.set(event_id, row, ms(now), now);
        }
        for (seat_no, _) in missing.iter().enumerate().filter(|(_, missing)| **missing) {
            let none = SeatChange { seat_no: seat_no as i32, status: Status::Blocked, version: 0, held_until: None };
            self.set(event_id, &none, ms(now), now);
        }
        self.events.get(&event_id).map_or(0, |event| event.before.len() - before)
    }

    /// Shows every held seat free whose time has come.
    pub fn expire(&mut self, now: DateTime<Utc>) {
        let now_us = us(now);
        while let Some(&(held_until_us, event_id, seat_no)) = self.deadlines.first()
            && held_until_us <= now_us
        {
            self.deadlines.pop_first();
            self.show(event_id, seat_no, Status::Available, held_until_us / 1000);
        }
    }

    /// What this tick publishes: a frame an event that has changed, several if it is too large for
    /// one, and a keyframe if it is too large for those.
    pub fn frames(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut due: Vec<i64> = self.due.drain().collect();
        due.sort_unstable();
        for event_id in due {
            if let Some(event) = self.events.get_mut(&event_id) {
                event.frames(&self.limits, &mut messages);
            }
        }
        messages
    }

    /// A keyframe of every event, as of the last frame. There must be no frame due.
    pub fn keyframes(&self) -> Vec<Message> {
        debug_assert!(self.due.is_empty());
        self.events.values().flat_map(|event| event.keyframe(self.limits.message_bytes_max)).collect()
    }

    fn forget(&mut self, event_id: i64) -> Option<Event> {
        let event = self.events.remove(&event_id)?;
        self.deadlines.retain(|&(_, of, _)| of != event_id);
        Some(event)
    }

    fn set(&mut self, event_id: i64, change: &SeatChange, made_at_ms: u64, now: DateTime<Utc>) {
        let Some(event) = self.events.get_mut(&event_id) else { return };
        let (seat_no, seat) = (change.seat_no as u32, &mut event.seats[change.seat_no as usize]);
        let held_until_us = change.held_until.filter(|_| change.status == Status::Held).map_or(0, us);
        if seat.held_until_us != held_until_us {
            self.deadlines.remove(&(seat.held_until_us, event_id, seat_no));
        }
        *seat = Seat { version: change.version, held_until_us, shown: seat.shown };
        let runs_out = held_until_us != 0;
        let shown = if runs_out && held_until_us <= us(now) { Status::Available } else { change.status };
        if runs_out && shown == Status::Held {
            self.deadlines.insert((held_until_us, event_id, seat_no));
        }
        self.show(event_id, seat_no, shown, made_at_ms);
    }

    fn show(&mut self, event_id: i64, seat_no: u32, shown: Status, made_at_ms: u64) {
        let Some(event) = self.events.get_mut(&event_id) else { return };
        let seat = &mut event.seats[seat_no as usize];
        if seat.shown == shown {
            return;
        }
        event.oldest_ms = if event.before.is_empty() { made_at_ms } else { event.oldest_ms.min(made_at_ms) };
        event.before.entry(seat_no).or_insert(seat.shown);
        seat.shown = shown;
        self.due.insert(event_id);
    }
}

impl Event {
    fn new(plan_revision_id: i64, head: Head, seats: Vec<Seat>) -> Self {
        Self { plan_revision_id, head, seats, before: BTreeMap::new(), oldest_ms: 0, begins: false }
    }

    fn frames(&mut self, limits: &Limits, messages: &mut Vec<Message>) {
        let event_id = self.head.event_id;
        let changes: Vec<Change> = std::mem::take(&mut self.before)
            .into_iter()
            .map(|(seat_no, before)| (Change { seat_no, status: self.seats[seat_no as usize].shown }, before))
            .filter(|(change, before)| change.status != *before) // there and back within a tick
            .map(|(change, _)| change)
            .collect();
        if std::mem::take(&mut self.begins) {
            debug_assert_eq!(self.head.at.frame, 0);
            messages.extend(self.keyframe(limits.message_bytes_max));
            return;
        }
        if changes.is_empty() {
            return;
        }
        self.head.committed_at_ms = self.oldest_ms;
        if changes.len() > limits.frame_changes_max * limits.frames_max {
            self.head.at.frame += 1;
            messages.extend(self.keyframe(limits.message_bytes_max));
            return;
        }
        for changes in changes.chunks(limits.frame_changes_max) {
            self.head.at.frame += 1;
            messages.push(Message { event_id, kind: Kind::Frame, bytes: encode_delta(&self.head, changes) });
        }
    }

    fn keyframe(&self, message_bytes_max: usize) -> impl Iterator<Item = Message> + use<> {
        let seats: Vec<SeatState> = self
            .seats
            .iter()
            .map(|seat| SeatState {
                status: seat.shown,
                version: seat.version,
                held_until_us: Some(seat.held_until_us).filter(|at| *at != 0),
            })
            .collect();
        let event_id = self.head.event_id;
        KeyframePart::split(self.head, &seats, message_bytes_max).into_iter().map(move |part| Message {
            event_id,
            kind: Kind::Keyframe,
            bytes: part.encode(),
        })
    }
}

/// The number of an epoch that begins now: later epochs have higher numbers, and two that begin in
/// the same millisecond hardly ever the same. Even numbers are the relay's, odd ones those of rooms
/// that read the database by themselves.
pub fn new_epoch(now: DateTime<Utc>, after: u64) -> u64 {
    ((ms(now) << 11) | u64::from(rand::random::<u16>() & 0x7fe)).max((after & !1) + 2)
}

fn us(at: DateTime<Utc>) -> u64 {
    at.timestamp_micros().max(0) as u64
}

fn ms(at: DateTime<Utc>) -> u64 {
    at.timestamp_millis().max(0) as u64
}

#[cfg(test)]
mod tests;
