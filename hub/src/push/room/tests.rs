use fullhouse_protocol::{
    frames::{Frame, decode_body},
    seat::Status::{self, Available, Held, Sold},
};

use super::*;
use crate::config::Config;

pub(in crate::push) fn config(ring_frames_max: usize) -> config::Push {
    config::Push { ring_frames_max, ..Config::defaults().push }
}

pub(in crate::push) fn track(epoch: u64, frame: u64, statuses: &[Status]) -> Track {
    let seat_count = statuses.len() as u32;
    let head = Head { event_id: 1, at: Position { epoch, frame }, seat_count, committed_at_ms: 0 };
    Track::new(head, statuses.iter().copied().collect())
}

fn room(ring_frames_max: usize) -> Room {
    Room::new(track(10, 0, &[Available; 4]), Source::Feed, &config(ring_frames_max), Doors::default())
}

fn publish(room: &Room, epoch: u64, frame: u64, seat_no: u32, status: Status) -> Step {
    let head = Head { at: Position { epoch, frame }, ..room.track().head };
    let changes = [Change { seat_no, status }];
    room.take_frame(&head, &changes, &encode_delta(&head, &changes))
}

fn at(epoch: u64, frame: u64) -> Option<Position> {
    Some(Position { epoch, frame })
}

/// The messages that a viewer is given until there is no more.
fn given(room: &Room, mut cursor: Option<Position>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Next::Message { bytes, at } = room.next(cursor) {
        frames.push(Frame::decode(wire::content(&bytes)).unwrap());
        assert_eq!(frames.last().unwrap().head().at, at);
        cursor = Some(at);
    }
    frames
}

/// As letters and numbers: a delta, a span and what it follows on, a resync.
fn told(room: &Room, cursor: Option<Position>) -> Vec<String> {
    let short = |frame: &Frame| match frame {
        Frame::Delta { head, .. } => format!("d{}", head.at.frame),
        Frame::Span { head, since, .. } => format!("s{since}-{}", head.at.frame),
        Frame::Resync { head } => format!("r{}", head.at.frame),
        Frame::Snapshot { .. } => panic!("never over a socket"),
    };
    given(room, cursor).iter().map(short).collect()
}

#[test]
fn a_viewer_resumes_where_it_left_off() {
    let room = room(10);
    for (frame, status) in [(1, Held), (2, Sold), (3, Available)] {
        assert_eq!(publish(&room, 10, frame, 0, status), Step::Applied);
    }
    assert_eq!(told(&room, at(10, 3)), [""; 0]);
    assert_eq!(told(&room, at(10, 2)), ["d3"]);
    assert_eq!(told(&room, at(10, 0)), ["s0-3"], "everything since in one");
    let Frame::Span { changes, .. } = &given(&room, at(10, 0))[0] else { panic!() };
    assert_eq!(changes[..], [Change { seat_no: 0, status: Available }], "the latest state of each seat");
    assert_eq!(told(&room, None), ["r3"], "whoever names nothing is told the head");
}

#[test]
fn what_is_put_together_is_no_larger_than_a_frame_may_be() {
    let room = Room::new(
        track(10, 0, &[Available; 900]),
        Source::Feed,
        &config::Push { frame_changes_max: 500, ..config(100) },
        Doors::default(),
    );
    for frame in 1..=5 {
        let head = Head { at: Position { epoch: 10, frame }, committed_at_ms: 100 - frame, ..room.track().head };
        let changes: Vec<Change> = (0..200).map(|n| Change { seat_no: n + 100 * frame as u32, status: Held }).collect();
        room.take_frame(&head, &changes, &encode_delta(&head, &changes));
    }
    assert_eq!(told(&room, at(10, 0)), ["s0-4", "d5"]);
    assert_eq!(told(&room, at(10, 0)), ["s0-4", "d5"], "and from memory");
    assert_eq!(given(&room, at(10, 0))[0].head().committed_at_ms, 96, "of its oldest change");
}

#[test]
fn a_viewer_that_falls_off_the_ring_is_told_to_resync() {
    let room = room(2);
    for frame in 1..=5 {
        publish(&room, 10, frame, 0, Held);
    }
    assert_eq!(told(&room, at(10, 2)), ["r5"]);
    assert_eq!(told(&room, at(10, 3)), ["s3-5"]);
    assert_eq!(told(&room, at(8, 5)), ["r5"], "another epoch");
    assert_eq!(told(&room, at(11, 5)), ["r5"], "of a room that had no feed");
}

#[test]
fn a_viewer_from_a_node_that_is_ahead_is_not_taken_back() {
    let room = room(10);
    for cursor in [at(10, 1), at(12, 0)] {
        assert_eq!(room.next(cursor), Next::Ahead);
    }
}

#[test]
fn frames_that_are_known_or_do_not_follow_change_nothing() {
    let room = room(10);
    publish(&room, 10, 1, 0, Held);
    for (epoch, frame, expected) in [(10, 1, Step::Known), (10, 3, Step::Gap), (8, 2, Step::Known), (12, 2, Step::Gap)]
    {
        assert_eq!(publish(&room, epoch, frame, 0, Sold), expected);
    }
    assert_eq!((room.at(), room.track().statuses.get(0)), (Position { epoch: 10, frame: 1 }, Held));
}

#[test]
fn a_keyframe_moves_a_room_only_forward() {
    let room = room(10);
    publish(&room, 10, 1, 0, Held);
    publish(&room, 10, 2, 0, Sold);
    assert!(!room.take_keyframe(track(10, 1, &[Held, Available, Available, Available])), "read again from the stream");
    assert!(!room.take_keyframe(track(10, 2, &[Sold, Available, Available, Available])));
    assert!(!room.take_keyframe(track(8, 9, &[Held; 4])));
    assert_eq!(told(&room, at(10, 0)), ["s0-2"], "and the ring is as it was");

    assert!(room.take_keyframe(track(10, 3, &[Sold; 4])), "too large for frames: in their row, as a resync");
    assert_eq!(told(&room, at(10, 0)), ["s0-2", "r3"]);
    assert_eq!(told(&room, at(10, 1)), ["d2", "r3"]);

    assert!(room.take_keyframe(track(10, 7, &[Held; 4])), "what was missed is made up for");
    assert_eq!(told(&room, at(10, 3)), ["r7"]);
    assert!(room.take_keyframe(track(10, 7, &[Sold; 4])), "the same number and another map: the keyframe is right");
    assert!(room.take_keyframe(track(12, 0, &[Available; 5])), "a new epoch, and the plan has grown");
    assert_eq!((told(&room, at(10, 7)), room.track().head.seat_count), (vec!["r0".to_owned()], 5));
}

#[test]
fn a_stream_that_started_anew_is_believed() {
    let room = room(10);
    publish(&room, 10, 1, 0, Held);
    room.doubt();
    assert_eq!(publish(&room, 10, 2, 0, Sold), Step::Known, "not before its keyframe");
    assert!(room.take_keyframe(track(10, 0, &[Available; 4])));
    assert_eq!((publish(&room, 10, 1, 1, Sold), room.source()), (Step::Applied, Source::Feed));
}

#[test]
fn a_room_without_a_feed_numbers_its_own_frames_until_it_has_one() {
    let room = Room::new(track(11, 0, &[Available; 4]), Source::Database, &config(10), Doors::default());
    assert_eq!(room.take_rows(track(0, 0, &[Available; 4]).statuses, 5), None);
    assert!(room.take_rows(track(0, 0, &[Held, Sold, Available, Available]).statuses, 6).is_some());
    assert_eq!(publish(&room, 10, 1, 0, Sold), Step::Known, "a frame without its keyframe");
    assert_eq!(told(&room, at(11, 0)), ["d1"]);
    room.take_rows(track(0, 0, &[Available; 6]).statuses, 7);
    assert_eq!((room.at(), told(&room, at(11, 1))), (Position { epoch: 13, frame: 0 }, vec!["r0".to_owned()]));
    assert!(room.take_keyframe(track(10, 4, &[Sold; 6])), "the feed's epoch, though its number is lower");
    assert_eq!(room.take_rows(track(0, 0, &[Held; 6]).statuses, 8), None);
    assert_eq!(told(&room, at(13, 0)), ["r4"]);
}

#[test]
fn what_is_fetched_is_built_once_for_a_position() {
    let room = room(10);
    let (first, again) = (room.snapshot(), room.snapshot());
    assert!(Arc::ptr_eq(&first, &again) && first.gzip().as_ptr() == again.gzip().as_ptr());
    publish(&room, 10, 1, 2, Sold);
    publish(&room, 10, 2, 1, Held);
    let snapshot = room.snapshot();
    assert_eq!(snapshot.at, Position { epoch: 10, frame: 2 });
    let Ok(Frame::Snapshot { head, statuses }) = Frame::decode(&snapshot.bytes) else { panic!() };
    assert_eq!(Track::new(head, statuses), room.track());
    let (head, frames) = decode_body(&room.recent().bytes).unwrap();
    assert_eq!((head, frames.len()), (room.track().head, 2));
}
