//! Giving viewers what follows: a step of a round, and what happens when a socket takes only a part.
//!
//! Invariants
//! - A message that has begun is finished before anything else is said.
//! - What is kept of it is a slice of the shared bytes, and only until it is out.

use std::{
    io::{ErrorKind, Write},
    net::TcpStream,
    time::Instant,
};

use bytes::Bytes;

use super::{AHEAD_MAX, Memo, READABLE, STEP_VIEWERS, Shard, WRITABLE, Waiting, hall::Hall};
use crate::push::room::Next;

/// What became of a write.
pub(super) enum Sent {
    Whole,
    /// So many bytes.
    Part(usize),
    Gone,
}

impl Shard {
    /// The next step of the round. Returns since when there was something to say, if a round is done.
    pub(super) fn step(&mut self, now: Instant) -> Option<Instant> {
        let mut budget = STEP_VIEWERS;
        let mut memo = Memo::default();
        self.in_round = false;
        let mut done: Option<Instant> = None;
        for index in 0..self.halls.len() {
            loop {
                if budget == 0 {
                    self.in_round = true;
                    return done;
                }
                let Some(slot) = self.halls[index].as_mut().and_then(Hall::next_in_round) else { break };
                budget -= 1;
                let since = self.halls[index].as_ref().and_then(Hall::ends_round);
                done = [done, since].into_iter().flatten().min();
                self.serve(slot, &mut memo, now);
            }
            // It may have moved on meanwhile.
            if self.halls[index].as_mut().is_some_and(Hall::begins_round) {
                self.in_round = true;
            }
        }
        done
    }

    /// Gives a viewer what follows on its cursor, until there is no more or its socket is full.
    pub(super) fn serve(&mut self, slot: u32, memo: &mut Memo, now: Instant) {
        loop {
            let Some(viewer) = self.viewers[slot as usize].as_mut() else { return };
            let was_ahead = viewer.waits && matches!(self.waiting.get(&slot), Some(Waiting::Ahead { .. }));
            if viewer.waits && !was_ahead {
                return;
            }
            let Some(hall) = self.halls.get(viewer.room as usize).and_then(Option::as_ref) else { return };
            let next = memo.next(viewer.room, &hall.room, viewer.cursor());
            if was_ahead && *next != Next::Ahead {
                viewer.waits = false;
                self.waiting.remove(&slot);
            }
            let (bytes, at) = match next {
                Next::Nothing => return,
                Next::Ahead => {
                    if !was_ahead {
                        self.wait(slot, Waiting::Ahead { until: now + AHEAD_MAX });
                    }
                    return;
                }
                Next::Message { bytes, at } => (bytes, *at),
            };
            match send(&viewer.stream, bytes) {
                Sent::Whole => {
                    (viewer.at, viewer.is_fresh) = (at, false);
                    self.tally.sent(bytes.len());
                }
                Sent::Part(0) => return self.lag(slot, Bytes::new(), now),
                Sent::Part(sent) => {
                    (viewer.at, viewer.is_fresh) = (at, false);
                    self.tally.sent(bytes.len());
                    let rest = bytes.slice(sent..);
                    return self.lag(slot, rest, now);
                }
                Sent::Gone => return self.remove(slot),
            }
        }
    }

    /// Its socket is full: it is given more when there is room.
    pub(super) fn lag(&mut self, slot: u32, rest: Bytes, now: Instant) {
        self.wait(slot, Waiting::Lags { rest, since: now });
        self.watch(slot, WRITABLE);
        self.tally.lags += 1;
    }

    /// There is room in its socket again.
    pub(super) fn send_rest(&mut self, slot: u32, now: Instant) {
        let Some(viewer) = self.viewers[slot as usize].as_mut() else { return };
        let (rest, lags) = match self.waiting.get_mut(&slot) {
            Some(Waiting::Lags { rest, since }) => {
                *since = now;
                (rest, true)
            }
            Some(Waiting::Parts { rest, .. }) => (rest, false),
            Some(Waiting::Ahead { .. }) | None => return self.watch(slot, READABLE),
        };
        match send(&viewer.stream, rest) {
            Sent::Part(sent) => _ = rest.split_to(sent),
            Sent::Gone => self.remove(slot),
            Sent::Whole => {
                rest.clear();
                if lags {
                    viewer.waits = false;
                    self.waiting.remove(&slot);
                }
                self.watch(slot, READABLE);
                if lags {
                    self.serve(slot, &mut Memo::default(), now);
                }
            }
        }
    }

    /// A few bytes of ours between the frames; not while a frame is half out or the socket is full.
    pub(super) fn send_aside(&mut self, slot: u32, bytes: Bytes, now: Instant) {
        let Some(viewer) = self.viewers[slot as usize].as_ref() else { return };
        if viewer.waits && !matches!(self.waiting.get(&slot), Some(Waiting::Ahead { .. })) {
            return;
        }
        match send(&viewer.stream, &bytes) {
            Sent::Whole => {}
            Sent::Part(sent) => self.lag(slot, if sent == 0 { Bytes::new() } else { bytes.slice(sent..) }, now),
            Sent::Gone => self.remove(slot),
        }
    }
}

/// As much as the kernel takes at once.
pub(super) fn send(mut stream: &TcpStream, bytes: &[u8]) -> Sent {
    match stream.write(bytes) {
        Ok(sent) if sent == bytes.len() => Sent::Whole,
        Ok(sent) => Sent::Part(sent),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Sent::Part(0),
        Err(_) => Sent::Gone,
    }
}
