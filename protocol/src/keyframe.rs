//! A keyframe: all that the relay has published of an event, for the hub's own bus.
//!
//! A room is a keyframe and the frames after it. A large hall's keyframe is more than a message of
//! the bus may carry, so it travels in parts. A part has the header of a frame, of kind 4.

use bytes::{BufMut, Bytes};

use crate::{
    frames::{FrameError, HEADER_BYTES, Head, KEYFRAME, decode_header, exactly, header, u32_at, u64_at},
    seat::Status,
    track::Track,
};

const SEAT_BYTES: usize = 13;
const FIRST_BYTES: usize = 4;

/// A seat as it was published last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeatState {
    /// As the map shows it: a hold that has run out is available.
    pub status: Status,
    /// Of the row that was published; 0 for a number that has no row.
    pub version: i32,
    /// In µs since 1970; `None` for a seat that is not held.
    pub held_until_us: Option<u64>,
}

/// Consecutive seats of a keyframe, from `first` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyframePart {
    pub head: Head,
    pub first: u32,
    pub seats: Vec<SeatState>,
}

impl KeyframePart {
    /// All of a keyframe in parts of at most `bytes_max` each; one part, if there is no seat.
    pub fn split(head: Head, seats: &[SeatState], bytes_max: usize) -> Vec<Self> {
        let seats_max = (bytes_max.saturating_sub(HEADER_BYTES + FIRST_BYTES) / SEAT_BYTES).clamp(1, u16::MAX.into());
        if seats.is_empty() {
            return vec![Self { head, first: 0, seats: Vec::new() }];
        }
        let part =
            |(i, seats): (usize, &[SeatState])| Self { head, first: (i * seats_max) as u32, seats: seats.to_vec() };
        seats.chunks(seats_max).enumerate().map(part).collect()
    }

    /// Whether the event's last seat is in this part.
    pub fn is_last(&self) -> bool {
        self.first as usize + self.seats.len() >= self.head.seat_count as usize
    }

    pub fn encode(&self) -> Bytes {
        let mut out = header(KEYFRAME, self.seats.len(), &self.head, FIRST_BYTES + self.seats.len() * SEAT_BYTES);
        out.put_u32_le(self.first);
        for seat in &self.seats {
            out.put_u8(seat.status.bits());
            out.put_u32_le(seat.version as u32);
            out.put_u64_le(seat.held_until_us.unwrap_or(0));
        }
        out.freeze()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let (kind, count, head, rest) = decode_header(bytes)?;
        if kind != KEYFRAME {
            return Err(FrameError::UnknownKind(kind));
        }
        exactly(rest, FIRST_BYTES + count * SEAT_BYTES)?;
        let first = u32_at(rest, 0);
        if u64::from(first) + count as u64 > head.seat_count.into() {
            return Err(FrameError::SeatOrder);
        }
        let seat = |bytes: &[u8]| {
            let version = i32::try_from(u32_at(bytes, 1)).map_err(|_| FrameError::TooLarge)?;
            if bytes[0] > 3 {
                return Err(FrameError::StrayBits);
            }
            let held_until_us = Some(u64_at(bytes, 5)).filter(|at| *at != 0);
            Ok(SeatState { status: Status::from_bits(bytes[0]), version, held_until_us })
        };
        let seats = rest[FIRST_BYTES..].chunks_exact(SEAT_BYTES).map(seat).collect::<Result<_, _>>()?;
        Ok(Self { head, first, seats })
    }
}

/// Puts the parts of a keyframe together. Parts of one keyframe follow one another.
#[derive(Debug, Default)]
pub struct Assembly {
    head: Option<Head>,
    statuses: Vec<Status>,
}

impl Assembly {
    /// The whole map, once the last part is in. A part that does not follow on the one before
    /// throws away what was there; what begins in the middle is never whole.
    pub fn add(&mut self, part: &KeyframePart) -> Option<Track> {
        if part.first == 0 {
            self.head = Some(part.head);
            self.statuses.clear();
        } else if self.head != Some(part.head) || self.statuses.len() != part.first as usize {
            self.head = None;
            self.statuses.clear();
            return None;
        }
        self.statuses.extend(part.seats.iter().map(|seat| seat.status));
        if !part.is_last() {
            return None;
        }
        self.head = None;
        Some(Track::new(part.head, self.statuses.drain(..).collect()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frames::Position;

    proptest! {
        #[test]
        fn a_keyframe_comes_back_from_its_parts(
            seats in prop::collection::vec((0..4_u8, 0..i32::MAX, prop::option::of(1..u64::MAX)), 0..300),
            bytes_max in 0..2_000_usize,
        ) {
            let seats: Vec<SeatState> = seats
                .into_iter()
                .map(|(bits, version, held_until_us)| SeatState { status: Status::from_bits(bits), version, held_until_us })
                .collect();
            let head = Head {
                event_id: 1,
                at: Position { epoch: 2, frame: 3 },
                seat_count: seats.len() as u32,
                committed_at_ms: 4,
            };
            let parts = KeyframePart::split(head, &seats, bytes_max);
            let mut back = Vec::new();
            let mut assembly = Assembly::default();
            for part in parts.iter().chain(&parts) {
                let whole = assembly.add(part);
                prop_assert_eq!(whole.is_some(), part.is_last());
                if let Some(track) = whole {
                    prop_assert!(track.statuses.iter().eq(seats.iter().map(|seat| seat.status)));
                }
            }
            for part in parts.iter().skip(1) {
                prop_assert_eq!(assembly.add(part), None, "without its first part it is never whole");
            }
            for (i, part) in parts.iter().enumerate() {
                let bytes = part.encode();
                prop_assert!(bytes.len() <= bytes_max.max(HEADER_BYTES + FIRST_BYTES + SEAT_BYTES));
                prop_assert_eq!(part.is_last(), i + 1 == parts.len());
                prop_assert_eq!(KeyframePart::decode(&bytes), Ok(part.clone()));
                prop_assert!(KeyframePart::decode(&bytes[..bytes.len() - 1]).is_err());
                back.extend_from_slice(&part.seats);
            }
            prop_assert_eq!(back, seats);
        }
    }
}
