use fullhouse_protocol::{
    frames::Frame,
    keyframe::Assembly,
    seat::Status::{Available, Blocked, Held, Sold},
    track::Step,
};
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { frame_changes_max: 4, frames_max: 2, message_bytes_max: 120 };
const EVENT: i64 = 7;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn seat(seat_no: i32, status: Status, version: i32) -> SeatChange {
    SeatChange { seat_no, status, version, held_until: (status == Held).then(|| at(480)) }
}

fn free(seat_count: i32) -> Rows {
    Rows((0..seat_count).map(|n| seat(n, Available, 1)).collect())
}

/// A room that is fed: panics over a gap.
#[derive(Default)]
struct Room {
    assembly: Assembly,
    track: Option<Track>,
}

impl Room {
    fn take(&mut self, messages: &[Message]) {
        for message in messages {
            match message.kind {
                Kind::Keyframe => {
                    assert!(message.bytes.len() <= LIMITS.message_bytes_max);
                    let part = KeyframePart::decode(&message.bytes).unwrap();
                    self.track = self.assembly.add(&part).or(self.track.take());
                }
                Kind::Frame => {
                    let Frame::Delta { head, changes } = Frame::decode(&message.bytes).unwrap() else { panic!() };
                    assert!((1..=LIMITS.frame_changes_max).contains(&changes.len()));
                    assert_eq!(self.track.as_mut().unwrap().apply(&head, &changes), Step::Applied);
                }
                Kind::Line => panic!("not of a map"),
            }
        }
    }

    fn status(&self, seat_no: u32) -> Status {
        self.track.as_ref().unwrap().statuses.get(seat_no)
    }

    fn frame(&self) -> u64 {
        self.track.as_ref().unwrap().at().frame
    }
}

fn begun(seat_count: i32) -> (Published, Room) {
    let mut published = Published::new(LIMITS);
    published.begin(EVENT, 1, seat_count as u32, &free(seat_count), at(0));
    let mut room = Room::default();
    room.take(&published.frames());
    assert!(published.frames().is_empty());
    (published, room)
}

#[test]
fn a_hold_that_runs_out_is_shown_free_without_anybody() {
    let (mut published, mut room) = begun(20);
    published.change(EVENT, &seat(3, Held, 2), at(1), at(1)).unwrap();
    room.take(&published.frames());
    assert_eq!(room.status(3), Held);
    published.expire(at(479));
    assert!(published.frames().is_empty());
    published.expire(at(480));
    room.take(&published.frames());
    assert_eq!(room.status(3), Available);
    // The sweeper's row says the same and makes no frame; the next buyer's does.
    published.change(EVENT, &seat(3, Available, 3), at(481), at(481)).unwrap();
    assert!(published.frames().is_empty());
    let next = SeatChange { held_until: Some(at(999)), ..seat(3, Held, 4) };
    published.change(EVENT, &next, at(482), at(482)).unwrap();
    published.expire(at(483));
    room.take(&published.frames());
    assert_eq!(room.status(3), Held);
}

#[test]
fn a_hold_that_arrives_after_its_time_is_not_shown() {
    let (mut published, _) = begun(20);
    published.change(EVENT, &seat(3, Held, 2), at(1), at(500)).unwrap();
    assert!(published.frames().is_empty());
}

#[test]
fn a_stale_row_changes_nothing_and_a_comparison_decides() {
    let (mut published, mut room) = begun(20);
    published.change(EVENT, &seat(3, Sold, 5), at(1), at(1)).unwrap();
    published.change(EVENT, &seat(3, Held, 4), at(1), at(1)).unwrap();
    published.change(EVENT, &seat(3, Held, 5), at(1), at(1)).unwrap();
    room.take(&published.frames());
    assert_eq!((room.status(3), room.frame()), (Sold, 1));
    assert_eq!(published.compare(EVENT, &free(19), at(2)), 2, "seat 3 is free, seat 19 has lost its row");
    room.take(&published.frames());
    assert_eq!((room.status(3), room.status(19)), (Available, Blocked));
}

#[test]
fn what_is_too_large_for_frames_is_a_keyframe_of_the_next_number() {
    let (mut published, mut room) = begun(20);
    let mut sell = |first: i32, count: i32| {
        for seat_no in first..first + count {
            published.change(EVENT, &seat(seat_no, Sold, 2), at(1), at(1)).unwrap();
        }
        let messages = published.frames();
        room.take(&messages);
        assert!((first..first + count).all(|seat_no| room.status(seat_no as u32) == Sold));
        (messages.iter().filter(|m| m.kind == Kind::Frame).count(), room.frame())
    };
    assert_eq!(sell(0, 4), (1, 1));
    assert_eq!(sell(4, 5), (2, 3));
    assert_eq!(sell(9, 9), (0, 4), "more than two frames of four");
    assert_eq!(sell(18, 2), (1, 5));
}

#[test]
fn a_plan_that_grows_begins_a_new_epoch() {
    let (mut published, mut room) = begun(20);
    let before = room.track.as_ref().unwrap().at();
    assert_eq!(published.change(EVENT, &seat(20, Held, 1), at(1), at(1)), Err(Unknown::Seat));
    assert_eq!(published.change(8, &seat(0, Held, 1), at(1), at(1)), Err(Unknown::Event));
    published.change(EVENT, &seat(1, Held, 2), at(1), at(1)).unwrap();
    published.begin(EVENT, 2, 30, &free(21), at(0)); // the clock need not have moved
    room.take(&published.frames());
    let track = room.track.as_ref().unwrap();
    assert!(track.at().epoch > before.epoch && track.at().epoch % 2 == 0);
    assert_eq!(
        (track.statuses.get(1), track.statuses.get(20), track.statuses.get(21)),
        (Available, Available, Blocked)
    );
    published.expire(at(480));
    assert!(published.frames().is_empty(), "the deadlines of the old epoch are gone");
}

#[test]
fn a_new_leader_goes_on_where_the_old_one_stopped() {
    let (mut published, mut room) = begun(20);
    published.change(EVENT, &seat(1, Held, 2), at(1), at(1)).unwrap();
    room.take(&published.frames());
    let mut next = Published::new(LIMITS);
    let mut rows = free(20);
    rows.0[1] = seat(1, Sold, 3);
    rows.0[2] = seat(2, Held, 2);
    next.resume(1, room.track.as_ref().unwrap(), &rows, at(2));
    // The rows that the old leader had published, but not deleted, come again.
    next.change(EVENT, &seat(1, Held, 2), at(1), at(2)).unwrap();
    next.change(EVENT, &seat(2, Held, 2), at(2), at(2)).unwrap();
    room.take(&next.frames());
    assert_eq!((room.status(1), room.status(2), room.frame()), (Sold, Held, 2));
    next.expire(at(480));
    room.take(&next.frames());
    assert_eq!(room.status(2), Available);
    let mut late = Room::default();
    late.take(&next.keyframes());
    assert_eq!(late.track, room.track);
}

proptest! {
    /// Rows in any order, several times, with ticks and expiries between: the map is that of the highest versions.
    #[test]
    fn the_order_of_rows_is_harmless(
        history in prop::collection::vec((0..12_i32, 0..4_u8, 1..600_i64), 1..60),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..120),
    ) {
        let (mut published, mut room) = begun(12);
        let mut versions = [1; 12];
        let rows: Vec<SeatChange> = history
            .iter()
            .map(|&(seat_no, bits, until)| {
                versions[seat_no as usize] += 1;
                let status = Status::from_bits(bits);
                let held_until = (status == Held).then(|| at(until));
                SeatChange { seat_no, status, version: versions[seat_no as usize], held_until }
            })
            .collect();
        let mut now = 0;
        for index in order {
            now += 1;
            published.change(EVENT, index.get(&rows), at(now), at(now)).unwrap();
            published.expire(at(now));
            if now % 3 == 0 {
                room.take(&published.frames());
            }
        }
        for row in rows.iter().rev() {
            published.change(EVENT, row, at(now), at(now)).unwrap();
        }
        now = 300;
        published.expire(at(now));
        room.take(&published.frames());
        for seat_no in 0..12 {
            let last = rows.iter().rfind(|row| row.seat_no == seat_no);
            let expected = match last {
                Some(row) if row.held_until.is_some_and(|until| until <= at(now)) => Available,
                Some(row) => row.status,
                None => Available,
            };
            prop_assert_eq!(room.status(seat_no as u32), expected);
        }
        prop_assert!(published.deadlines.len() <= 12);
    }
}

#[test]
fn an_event_that_is_over_is_let_go_once_nothing_of_it_is_held() {
    let (mut published, mut room) = begun(4);
    published.change(EVENT, &seat(3, Held, 2), at(1), at(1)).unwrap();
    published.keep(&HashSet::new());
    room.take(&published.frames());
    published.keep(&HashSet::new());
    assert!(published.event_ids().any(|id| id == EVENT), "a held seat has to be shown free in time");
    published.expire(at(480));
    published.keep(&HashSet::new());
    room.take(&published.frames());
    assert_eq!(room.status(3), Available, "what was still to be said was said");
    published.keep(&HashSet::from([EVENT]));
    assert_eq!(published.event_ids().count(), 1);
    published.keep(&HashSet::new());
    assert_eq!(published.event_ids().count(), 0);
    assert_eq!(published.change(EVENT, &seat(3, Sold, 3), at(500), at(500)), Err(Unknown::Event), "and begins anew");
}
