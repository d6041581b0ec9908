//! The bytes of rooms: a map's deltas, spans, ranges, resyncs and snapshots, a line, and the body that pollers get.
//!
//! Everything is little endian and begins with the same header of 40 bytes; `PROTOCOL.md` draws it.
//!
//! Invariants
//! - What is decoded was encoded by the same rules: one value has one encoding, and anything else
//!   is refused. A reader never trusts a count or a length before it has compared it with the bytes.
//! - Numbers that a browser must hold exactly stay below 2^53.

use std::{fmt, str::FromStr};

use bytes::{BufMut, Bytes, BytesMut};

use crate::seat::Status;

/// The first byte of everything. Another layout is another version.
pub const VERSION: u8 = 1;
/// Bytes before a frame's own part.
pub const HEADER_BYTES: usize = 40;
/// Event, epoch and frame numbers stay below this, so that a browser's numbers hold them exactly.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;
/// The seat numbers of a plan stay below this.
pub const SEATS_MAX: u32 = 200_000;

const DELTA: u8 = 1;
const RESYNC: u8 = 2;
const SNAPSHOT: u8 = 3;
/// What the hub's own bus carries, see [`crate::keyframe`]: for everybody else it is an unknown kind.
pub(crate) const KEYFRAME: u8 = 4;
const SPAN: u8 = 5;
const LINE: u8 = 6;
const RANGE: u8 = 7;

/// The epoch of every line: the database numbers its revisions itself, and they only rise.
pub const LINE_EPOCH: u64 = 2;
/// A line's JSON, at most.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// A place in an event's frames. Frames of different epochs have nothing to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Position {
    pub epoch: u64,
    pub frame: u64,
}

impl Position {
    /// Whether the relay numbers these frames. A node that has no feed numbers its own, in odd epochs:
    /// those of two nodes have nothing to do with each other, whichever is higher.
    pub fn is_of_relay(self) -> bool {
        self.epoch.is_multiple_of(2)
    }
}

/// As an `ETag` has it, without the quotes: `epoch-frame`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.frame)
    }
}

impl FromStr for Position {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (epoch, frame) = text.split_once('-').unwrap_or((text, ""));
        Ok(Self { epoch: epoch.parse()?, frame: frame.parse()? })
    }
}

/// What every frame says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub event_id: i64,
    pub at: Position,
    pub seat_count: u32,
    /// When the oldest change of the frame was made, by the database's clock, in ms since 1970.
    pub committed_at_ms: u64,
}

/// What a seat has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub seat_no: u32,
    pub status: Status,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Follows frame `at.frame - 1` of the same epoch. Seat numbers ascend.
    Delta { head: Head, changes: Vec<Change> },
    /// Everything between frame `since` of the same epoch and `at`, for whoever stands at `since` or after it
    /// and before `at`: the latest state of each seat that changed. Seat numbers ascend; `since < at.frame`.
    Span { head: Head, since: u64, changes: Vec<Change> },
    /// The same for whoever is far behind, where it takes fewer bytes: the state of as many seats as `statuses` has,
    /// from `first` on, two bits each.
    Range { head: Head, since: u64, first: u32, statuses: Statuses },
    /// A line of people, whole, in JSON ([`crate::line`]). Its head has no seats, and its number is the line's revision.
    Line { head: Head, json: String },
    /// "Fetch a snapshot": it names the head, and what comes next follows on that.
    Resync { head: Head },
    /// Every seat, as of `at`. An HTTP resource; it never travels over a socket.
    Snapshot { head: Head, statuses: Statuses },
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum FrameError {
    #[error("there are fewer bytes than the header needs, or than it promises")]
    Short,
    #[error("there are more bytes than the header promises")]
    Long,
    #[error("version {0} of the frames is not known here")]
    UnknownVersion(u8),
    #[error("frames of kind {0} are not known here")]
    UnknownKind(u8),
    #[error("a number is larger than it may be")]
    TooLarge,
    #[error("a seat stands twice, out of order, or beyond the last")]
    SeatOrder,
    #[error("bits that mean nothing are set")]
    StrayBits,
    #[error("a line's JSON is not UTF-8")]
    NotText,
    #[error("a body for pollers begins with a resync that names the head")]
    NoHead,
}

impl Frame {
    pub fn head(&self) -> &Head {
        match self {
            Self::Delta { head, .. }
            | Self::Span { head, .. }
            | Self::Range { head, .. }
            | Self::Line { head, .. }
            | Self::Resync { head }
            | Self::Snapshot { head, .. } => head,
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let (kind, count, head, rest) = decode_header(bytes)?;
        match kind {
            DELTA => Ok(Self::Delta { head, changes: decode_changes(count, &head, rest)? }),
            SPAN => {
                let (since, rest) = decode_since(&head, rest)?;
                Ok(Self::Span { head, since, changes: decode_changes(count, &head, rest)? })
            }
            RESYNC | SNAPSHOT | RANGE if count != 0 => Err(FrameError::StrayBits),
            RANGE => {
                let (since, rest) = decode_since(&head, rest)?;
                let (numbers, packed) = rest.split_at_checked(8).ok_or(FrameError::Short)?;
                let (first, count) = (u32_at(numbers, 0), u32_at(numbers, 4));
                if u64::from(first) + u64::from(count) > head.seat_count.into() {
                    return Err(FrameError::SeatOrder);
                }
                let statuses = Statuses::from_packed(count, packed)?;
                Ok(Self::Range { head, since, first, statuses })
            }
            LINE if head.seat_count != 0 => Err(FrameError::StrayBits),
            LINE if count > LINE_BYTES_MAX => Err(FrameError::TooLarge),
            LINE => {
                exactly(rest, count)?;
                let json = std::str::from_utf8(rest).map_err(|_| FrameError::NotText)?;
                Ok(Self::Line { head, json: json.to_owned() })
            }
            RESYNC => exactly(rest, 0).map(|()| Self::Resync { head }),
            SNAPSHOT => Ok(Self::Snapshot { head, statuses: Statuses::from_packed(head.seat_count, rest)? }),
            other => Err(FrameError::UnknownKind(other)),
        }
    }
}

fn decode_since<'a>(head: &Head, bytes: &'a [u8]) -> Result<(u64, &'a [u8]), FrameError> {
    let (since, rest) = bytes.split_at_checked(8).ok_or(FrameError::Short)?;
    let since = u64_at(since, 0);
    if since >= head.at.frame { Err(FrameError::TooLarge) } else { Ok((since, rest)) }
}

fn decode_changes(count: usize, head: &Head, bytes: &[u8]) -> Result<Vec<Change>, FrameError> {
    exactly(bytes, count * 4)?;
    let mut changes = Vec::with_capacity(count);
    let mut next = 0;
    for word in bytes.chunks_exact(4) {
        let word = u32_at(word, 0);
        let change = Change { seat_no: word >> 2, status: Status::from_bits(word as u8) };
        if change.seat_no < next || change.seat_no >= head.seat_count {
            return Err(FrameError::SeatOrder);
        }
        next = change.seat_no + 1;
        changes.push(change);
    }
    Ok(changes)
}

/// `changes` ascend by seat number, and there are at most 65,535.
pub fn encode_delta(head: &Head, changes: &[Change]) -> Bytes {
    let mut out = header(DELTA, changes.len(), head, changes.len() * 4);
    put_changes(&mut out, changes);
    out.freeze()
}

/// `since` is below the head's frame; `changes` are as in a delta.
pub fn encode_span(head: &Head, since: u64, changes: &[Change]) -> Bytes {
    debug_assert!(since < head.at.frame);
    let mut out = header(SPAN, changes.len(), head, 8 + changes.len() * 4);
    out.put_u64_le(since);
    put_changes(&mut out, changes);
    out.freeze()
}

/// `since` is below the head's frame; `statuses` are of the seats from `first` on.
pub fn encode_range(head: &Head, since: u64, first: u32, statuses: &Statuses) -> Bytes {
    debug_assert!(since < head.at.frame && first + statuses.seat_count() <= head.seat_count);
    let mut out = header(RANGE, 0, head, 16 + statuses.packed().len());
    out.put_u64_le(since);
    out.put_u32_le(first);
    out.put_u32_le(statuses.seat_count());
    out.put_slice(statuses.packed());
    out.freeze()
}

/// `head` is of [`LINE_EPOCH`], and has no seats; `json` has at most [`LINE_BYTES_MAX`] bytes.
pub fn encode_line(head: &Head, json: &str) -> Bytes {
    debug_assert!(head.seat_count == 0 && json.len() <= LINE_BYTES_MAX);
    let mut out = header(LINE, json.len(), head, json.len());
    out.put_slice(json.as_bytes());
    out.freeze()
}

fn put_changes(out: &mut BytesMut, changes: &[Change]) {
    for change in changes {
        out.put_u32_le(change.seat_no << 2 | u32::from(change.status.bits()));
    }
}

pub fn encode_resync(head: &Head) -> Bytes {
    header(RESYNC, 0, head, 0).freeze()
}

pub fn encode_snapshot(head: &Head, statuses: &Statuses) -> Bytes {
    debug_assert_eq!(head.seat_count, statuses.seat_count());
    let mut out = header(SNAPSHOT, 0, head, statuses.packed().len());
    out.put_slice(statuses.packed());
    out.freeze()
}

/// What a poller gets: a resync that names the head, then the frames that are still there, oldest first.
pub fn encode_body<'a>(head: &Head, frames: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
    let mut out = BytesMut::new();
    let mut put = |entry: &[u8]| {
        out.put_u32_le(entry.len() as u32);
        out.put_slice(entry);
    };
    put(&encode_resync(head));
    frames.into_iter().for_each(put);
    out.freeze()
}

/// The head, and the frames of a poller's body. A frame of a kind that is not known here is an error:
/// whoever needs to be more tolerant splits the body with [`split_body`].
pub fn decode_body(bytes: &[u8]) -> Result<(Head, Vec<Frame>), FrameError> {
    let mut entries = split_body(bytes)?.into_iter();
    let Some(Frame::Resync { head }) = entries.next().map(Frame::decode).transpose()? else {
        return Err(FrameError::NoHead);
    };
    Ok((head, entries.map(Frame::decode).collect::<Result<_, _>>()?))
}

/// The entries of a poller's body, not decoded.
pub fn split_body(mut bytes: &[u8]) -> Result<Vec<&[u8]>, FrameError> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_at_checked(4).ok_or(FrameError::Short)?;
        let (entry, rest) = rest.split_at_checked(u32_at(length, 0) as usize).ok_or(FrameError::Short)?;
        entries.push(entry);
        bytes = rest;
    }
    Ok(entries)
}

pub(crate) fn header(kind: u8, count: usize, head: &Head, body_bytes: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + body_bytes);
    out.put_u8(VERSION);
    out.put_u8(kind);
    out.put_u16_le(u16::try_from(count).expect("callers bound it"));
    out.put_u32_le(head.seat_count);
    out.put_i64_le(head.event_id);
    out.put_u64_le(head.at.epoch);
    out.put_u64_le(head.at.frame);
    out.put_u64_le(head.committed_at_ms);
    out
}

pub(crate) fn decode_header(bytes: &[u8]) -> Result<(u8, usize, Head, &[u8]), FrameError> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(FrameError::Short)?;
    if header[0] != VERSION {
        return Err(FrameError::UnknownVersion(header[0]));
    }
    let number = |offset: usize| {
        let number = u64_at(header, offset);
        if number > NUMBER_MAX { Err(FrameError::TooLarge) } else { Ok(number) }
    };
    let head = Head {
        event_id: number(8)? as i64, // below 2^53
        at: Position { epoch: number(16)?, frame: number(24)? },
        seat_count: u32_at(header, 4),
        committed_at_ms: number(32)?,
    };
    if head.seat_count > SEATS_MAX {
        return Err(FrameError::TooLarge);
    }
    Ok((header[1], u16::from_le_bytes([header[2], header[3]]).into(), head, rest))
}

pub(crate) fn exactly(bytes: &[u8], expected: usize) -> Result<(), FrameError> {
    match bytes.len() {
        n if n < expected => Err(FrameError::Short),
        n if n > expected => Err(FrameError::Long),
        _ => Ok(()),
    }
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

/// The status of every seat, two bits each: seat `i` in bits `i % 4 * 2` of byte `i / 4`.
#[derive(Clone, PartialEq, Eq)]
pub struct Statuses {
    seat_count: u32,
    packed: Vec<u8>,
}

impl Statuses {
    /// All available.
    pub fn new(seat_count: u32) -> Self {
        Self { seat_count, packed: vec![0; seat_count.div_ceil(4) as usize] }
    }

    /// Refuses another number of bytes than `seat_count` needs, and bits beyond the last seat.
    pub fn from_packed(seat_count: u32, packed: &[u8]) -> Result<Self, FrameError> {
        exactly(packed, seat_count.div_ceil(4) as usize)?;
        let used = seat_count % 4 * 2;
        if used != 0 && packed[packed.len() - 1] >> used != 0 {
            return Err(FrameError::StrayBits);
        }
        Ok(Self { seat_count, packed: packed.to_vec() })
    }

    pub fn seat_count(&self) -> u32 {
        self.seat_count
    }

    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Panics beyond the last seat.
    pub fn get(&self, seat_no: u32) -> Status {
        assert!(seat_no < self.seat_count);
        Status::from_bits(self.packed[seat_no as usize / 4] >> (seat_no % 4 * 2))
    }

    /// Panics beyond the last seat.
    pub fn set(&mut self, seat_no: u32, status: Status) {
        assert!(seat_no < self.seat_count);
        let (byte, shift) = (&mut self.packed[seat_no as usize / 4], seat_no % 4 * 2);
        *byte = *byte & !(0b11 << shift) | status.bits() << shift;
    }

    /// `count` seats from `first` on. Panics beyond the last seat.
    pub fn range(&self, first: u32, count: u32) -> Self {
        if !first.is_multiple_of(4) || count == 0 {
            return (first..first + count).map(|seat_no| self.get(seat_no)).collect();
        }
        assert!(first + count <= self.seat_count);
        let mut packed = self.packed[first as usize / 4..(first + count).div_ceil(4) as usize].to_vec();
        let used = count % 4 * 2;
        if used != 0 {
            *packed.last_mut().expect("there is a seat") &= (1 << used) - 1;
        }
        Self { seat_count: count, packed }
    }

    /// All seats in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Status> {
        (0..self.seat_count).map(|seat_no| self.get(seat_no))
    }
}

impl FromIterator<Status> for Statuses {
    fn from_iter<I: IntoIterator<Item = Status>>(statuses: I) -> Self {
        let mut all = Self::new(0);
        for status in statuses {
            if all.seat_count.is_multiple_of(4) {
                all.packed.push(0);
            }
            all.seat_count += 1;
            all.set(all.seat_count - 1, status);
        }
        all
    }
}

/// A digit a seat: readable in a failed test.
impl fmt::Debug for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|status| write!(f, "{}", status.bits()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heads() -> impl Strategy<Value = Head> {
        (0..=NUMBER_MAX, 0..=NUMBER_MAX, 0..=NUMBER_MAX, 0..=NUMBER_MAX, 0..2_000_u32).prop_map(
            |(event_id, epoch, frame, committed_at_ms, seat_count)| Head {
                event_id: event_id as i64,
                at: Position { epoch, frame },
                seat_count,
                committed_at_ms,
            },
        )
    }

    fn statuses(seat_count: u32) -> impl Strategy<Value = Statuses> {
        prop::collection::vec(0..4_u8, seat_count as usize)
            .prop_map(|bits| bits.into_iter().map(Status::from_bits).collect())
    }

    fn changes(seat_count: u32) -> impl Strategy<Value = Vec<Change>> {
        prop::collection::btree_map(0..seat_count.max(1), 0..4_u8, 0..=seat_count.min(300) as usize).prop_map(|map| {
            map.into_iter().map(|(seat_no, bits)| Change { seat_no, status: Status::from_bits(bits) }).collect()
        })
    }

    fn frames() -> impl Strategy<Value = (Frame, Bytes)> {
        heads().prop_flat_map(|head| {
            prop_oneof![
                Just((Frame::Resync { head }, encode_resync(&head))),
                changes(head.seat_count).prop_map(move |changes| {
                    let bytes = encode_delta(&head, &changes);
                    (Frame::Delta { head, changes }, bytes)
                }),
                (changes(head.seat_count), any::<prop::sample::Index>()).prop_map(move |(changes, since)| {
                    let head = Head { at: Position { frame: head.at.frame.max(1), ..head.at }, ..head };
                    let since = since.index(head.at.frame as usize) as u64;
                    let bytes = encode_span(&head, since, &changes);
                    (Frame::Span { head, since, changes }, bytes)
                }),
                (statuses(head.seat_count), any::<(prop::sample::Index, prop::sample::Index)>()).prop_map(
                    move |(all, (first, count))| {
                        let head = Head { at: Position { frame: head.at.frame.max(1), ..head.at }, ..head };
                        let first = first.index(all.seat_count() as usize + 1) as u32;
                        let statuses = all.range(first, count.index((all.seat_count() - first) as usize + 1) as u32);
                        let bytes = encode_range(&head, head.at.frame - 1, first, &statuses);
                        (Frame::Range { head, since: head.at.frame - 1, first, statuses }, bytes)
                    }
                ),
                ".*".prop_map(move |json| {
                    let head = Head { seat_count: 0, ..head };
                    let bytes = encode_line(&head, &json);
                    (Frame::Line { head, json }, bytes)
                }),
                statuses(head.seat_count).prop_map(move |statuses| {
                    let bytes = encode_snapshot(&head, &statuses);
                    (Frame::Snapshot { head, statuses }, bytes)
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_frame_comes_back_as_it_was((frame, bytes) in frames()) {
            prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
        }

        #[test]
        fn a_frame_cut_short_or_grown_is_refused((_, bytes) in frames(), cut in any::<prop::sample::Index>()) {
            prop_assert!(Frame::decode(&bytes[..cut.index(bytes.len())]).is_err());
            let mut longer = bytes.to_vec();
            longer.push(0);
            prop_assert!(Frame::decode(&longer).is_err());
        }

        #[test]
        fn what_is_decoded_has_one_encoding(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0..8_u8) {
            let mut bytes = bytes;
            for (at, byte) in [(0, VERSION), (1, kind), (3, 0), (6, 0), (7, 0), (15, 0), (14, 0), (23, 0), (22, 0), (31, 0), (30, 0), (39, 0), (38, 0)] {
                if let Some(slot) = bytes.get_mut(at) {
                    *slot = byte; // so that some of them get past the header
                }
            }
            match Frame::decode(&bytes) {
                Ok(Frame::Delta { head, changes }) => prop_assert_eq!(&encode_delta(&head, &changes)[..], &bytes),
                Ok(Frame::Span { head, since, changes }) => prop_assert_eq!(&encode_span(&head, since, &changes)[..], &bytes),
                Ok(Frame::Range { head, since, first, statuses }) => prop_assert_eq!(&encode_range(&head, since, first, &statuses)[..], &bytes),
                Ok(Frame::Line { head, json }) => prop_assert_eq!(&encode_line(&head, &json)[..], &bytes),
                Ok(Frame::Resync { head }) => prop_assert_eq!(&encode_resync(&head)[..], &bytes),
                Ok(Frame::Snapshot { head, statuses }) => prop_assert_eq!(&encode_snapshot(&head, &statuses)[..], &bytes),
                Err(_) => {}
            }
        }

        #[test]
        fn a_body_comes_back_as_it_was(head in heads(), frames in prop::collection::vec(frames(), 0..5)) {
            let body = encode_body(&head, frames.iter().map(|(_, bytes)| &bytes[..]));
            let expected: Vec<Frame> = frames.into_iter().map(|(frame, _)| frame).collect();
            prop_assert_eq!(decode_body(&body), Ok((head, expected)));
        }
    }

    #[test]
    fn a_range_of_statuses_is_those_seats() {
        let all: Statuses = (0..14_u8).map(Status::from_bits).collect();
        for first in 0..=14 {
            for count in 0..=14 - first {
                let one_by_one: Statuses = (first..first + count).map(|seat_no| all.get(seat_no)).collect();
                assert_eq!(all.range(first, count), one_by_one, "{count} from {first}");
            }
        }
    }

    #[test]
    fn a_body_needs_its_head() {
        assert_eq!(decode_body(&[]), Err(FrameError::NoHead));
        assert_eq!(decode_body(&[1, 0, 0, 0]), Err(FrameError::Short));
        assert_eq!(split_body(&[0xff, 0xff, 0xff, 0xff, 1]), Err(FrameError::Short));
    }

    #[test]
    fn a_position_reads_as_it_is_written() {
        let at = Position { epoch: NUMBER_MAX, frame: 7 };
        assert_eq!(at.to_string().parse(), Ok(at));
        assert!(
            "7".parse::<Position>().is_err() && "".parse::<Position>().is_err() && "1--1".parse::<Position>().is_err()
        );
    }
}
