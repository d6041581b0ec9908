//! Bytes that nobody meant, for a stated time (`FUZZ_SECONDS`, 2 by default; `FUZZ_SEED` repeats a run).
//!
//! They begin as sound ones and are cut, spliced, flipped and stretched. Whatever is read is what was written: encoded
//! again it is the same bytes. Whatever a follower is given, it neither panics nor goes back in time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use fullhouse_protocol::{
    frames::{
        Change, Frame, Head, Position, Statuses, decode_body, encode_body, encode_delta, encode_line, encode_range,
        encode_resync, encode_snapshot, encode_span, split_body,
    },
    keyframe::{Assembly, KeyframePart, SeatState},
    seat::Status,
    track::{Follower, Track},
};

/// xorshift: as random as this needs.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn encode(frame: &Frame) -> Bytes {
    match frame {
        Frame::Delta { head, changes } => encode_delta(head, changes),
        Frame::Span { head, since, changes } => encode_span(head, *since, changes),
        Frame::Range { head, since, first, statuses } => encode_range(head, *since, *first, statuses),
        Frame::Line { head, json } => encode_line(head, json),
        Frame::Resync { head } => encode_resync(head),
        Frame::Snapshot { head, statuses } => encode_snapshot(head, statuses),
    }
}

/// Sound bytes of every kind, from a small world, so that some of them follow on one another.
fn sound(random: &mut Random) -> Vec<u8> {
    let seat_count = random.below(40) as u32;
    let at = Position { epoch: 2 + random.below(4) as u64, frame: 1 + random.below(9) as u64 };
    let head = Head { event_id: 1, at, seat_count, committed_at_ms: random.next() >> 20 };
    let status = |random: &mut Random| Status::from_bits(random.below(4) as u8);
    let mut changes = Vec::new();
    for seat_no in 0..seat_count {
        if random.below(3) == 0 {
            changes.push(Change { seat_no, status: status(random) });
        }
    }
    let statuses: Statuses = (0..seat_count).map(|_| status(random)).collect();
    match random.below(8) {
        0 => encode_delta(&head, &changes).into(),
        1 => encode_span(&head, random.below(at.frame as usize) as u64, &changes).into(),
        6 => {
            let first = random.below(seat_count as usize + 1) as u32;
            let count = random.below((seat_count - first) as usize + 1) as u32;
            encode_range(&head, random.below(at.frame as usize) as u64, first, &statuses.range(first, count)).into()
        }
        7 => encode_line(&Head { seat_count: 0, ..head }, "{\"state\":\"räumt\"}").into(),
        2 => encode_resync(&head).into(),
        3 => encode_snapshot(&head, &statuses).into(),
        4 => {
            let frames = [encode_delta(&head, &changes), encode_resync(&head)];
            encode_body(&head, frames.iter().map(|bytes| &bytes[..])).into()
        }
        _ => {
            let seats: Vec<SeatState> =
                statuses.iter().map(|status| SeatState { status, ..SeatState::default() }).collect();
            let parts = KeyframePart::split(head, &seats, 100);
            parts.get(random.below(parts.len())).map_or_else(Vec::new, |part| part.encode().into())
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const EDGES: [u64; 9] = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0xffff_ffff, 1 << 53, u64::MAX];
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => (0..random.below(20)).for_each(|_| bytes.push(random.next() as u8)),
            4 => {
                let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
                bytes.iter_mut().skip(at / 4 * 4).zip(edge).for_each(|(byte, edge)| *byte = edge);
            }
            5 => {
                let other = sound(random);
                bytes
                    .splice(at.min(bytes.len()).., other[random.below(other.len()).min(other.len())..].iter().copied());
            }
            _ => {
                let end = at + random.below(bytes.len() - at);
                bytes.drain(at..end);
            }
        }
    }
}

#[test]
fn whatever_comes_is_refused_or_is_what_was_written() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let time = Duration::from_secs(variable("FUZZ_SECONDS").unwrap_or(2));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = variable("FUZZ_SEED").unwrap_or(now.as_nanos() as u64 | 1);
    println!("FUZZ_SEED={seed}");
    let mut random = Random(seed);
    let (mut follower, mut assembly) = (Follower::default(), Assembly::default());
    let (mut tried, mut read) = (0_u64, 0_u64);
    let began = Instant::now();
    while tried % 1024 != 0 || began.elapsed() < time {
        tried += 1;
        if random.below(1000) == 0 {
            follower = Follower::default();
        }
        let mut bytes = sound(&mut random);
        mutate(&mut bytes, &mut random);
        if let Ok(frame) = Frame::decode(&bytes) {
            read += 1;
            assert_eq!(encode(&frame)[..], bytes[..], "FUZZ_SEED={seed}");
            let (before, head) = (follower.track().map(Track::at), *frame.head());
            follower.take(frame);
            let after = follower.track().map(Track::at);
            if let (Some(before), Some(after)) = (before, after)
                && before.epoch == after.epoch
            {
                assert!(after.frame >= before.frame || after == head.at, "FUZZ_SEED={seed}: {before} to {after}");
            }
        }
        if let Ok(parts) = split_body(&bytes)
            && let Ok((head, frames)) = decode_body(&bytes)
        {
            assert_eq!(encode_body(&head, parts[1..].iter().copied())[..], bytes[..], "FUZZ_SEED={seed}");
            assert_eq!(frames.len() + 1, parts.len());
        }
        if let Ok(part) = KeyframePart::decode(&bytes) {
            assert_eq!(part.encode()[..], bytes[..], "FUZZ_SEED={seed}");
            assembly.add(&part);
        }
    }
    println!("{tried} tried, {read} of them were frames");
    assert!(read > tried / 20, "nothing but rubbish proves nothing");
}
