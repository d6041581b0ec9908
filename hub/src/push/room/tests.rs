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
    Room::new(track(10, 0, &[Available; 4]), Source::Feed, &config(ring_frames_max))
}

fn publish(room: &Room, epoch: u64, frame: u64, seat_no: u32, status: Status) -> Step {
    let head = Head { at: Position { epoch, frame }, ..room.track().head };
    let changes = [Change { seat_no, status }];
    room.take_frame(&head, &changes, encode_delta(&head, &changes))
}

fn at(epoch: u64, frame: u64) -> Option<Position> {
    Some(Position { epoch, frame })
}

/// The numbers of the frames that a viewer is given, and whether the first of them is a resync.
fn given(room: &Room, cursor: &mut Option<Position>) -> (bool, Vec<u64>) {
    let Next::Frames(frames) = room.next(cursor) else { return (false, Vec::new()) };
    let frames: Vec<Frame> = frames.iter().map(|bytes| Frame::decode(bytes).unwrap()).collect();
    let resync = matches!(frames[0], Frame::Resync { .. });
    (resync, frames.iter().map(|frame| frame.head().at.frame).collect())
}

#[test]
fn a_viewer_resumes_where_it_left_off() {
    let room = room(10);
    for frame in 1..=3 {
        assert_eq!(publish(&room, 10, frame, 0, Held), Step::Applied);
    }
    let mut cursor = at(10, 1);
    assert_eq!(given(&room, &mut cursor), (false, vec![2, 3]));
    assert_eq!(cursor, at(10, 3));
    assert_eq!(room.next(&mut cursor), Next::Nothing);
    assert_eq!(given(&room, &mut at(10, 0)), (false, vec![1, 2, 3]));
    assert_eq!(given(&room, &mut None), (true, vec![3]), "whoever names nothing is told the head");
}

#[test]
fn a_viewer_that_falls_off_the_ring_is_told_to_resync() {
    let room = room(2);
    for frame in 1..=5 {
        publish(&room, 10, frame, 0, Held);
    }
    let mut cursor = at(10, 2);
    assert_eq!(given(&room, &mut cursor), (true, vec![5]));
    assert_eq!((cursor, room.next(&mut cursor)), (at(10, 5), Next::Nothing));
    assert_eq!(given(&room, &mut at(10, 3)), (false, vec![4, 5]));
    assert_eq!(given(&room, &mut at(8, 5)), (true, vec![5]), "another epoch");
    assert_eq!(given(&room, &mut at(11, 5)), (true, vec![5]), "of a room that had no feed");
}

#[test]
fn a_viewer_from_a_node_that_is_ahead_is_not_taken_back() {
    let room = room(10);
    for mut cursor in [at(10, 1), at(12, 0)] {
        assert_eq!((room.next(&mut cursor), cursor.is_some()), (Next::Ahead, true));
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
    assert_eq!(given(&room, &mut at(10, 0)), (false, vec![1, 2]), "and the ring is as it was");

    assert!(room.take_keyframe(track(10, 3, &[Sold; 4])), "too large for frames: in their row, as a resync");
    let Next::Frames(frames) = room.next(&mut at(10, 1)) else { panic!() };
    assert!(matches!(Frame::decode(&frames[0]), Ok(Frame::Delta { .. })));
    assert!(matches!(Frame::decode(&frames[1]), Ok(Frame::Resync { head }) if head.at.frame == 3));

    assert!(room.take_keyframe(track(10, 7, &[Held; 4])), "what was missed is made up for");
    assert_eq!(given(&room, &mut at(10, 3)), (true, vec![7]));
    assert!(room.take_keyframe(track(10, 7, &[Sold; 4])), "the same number and another map: the keyframe is right");
    assert!(room.take_keyframe(track(12, 0, &[Available; 5])), "a new epoch, and the plan has grown");
    assert_eq!((given(&room, &mut at(10, 7)), room.track().head.seat_count), ((true, vec![0]), 5));
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
    let room = Room::new(track(11, 0, &[Available; 4]), Source::Database, &config(10));
    assert_eq!(room.take_rows(track(0, 0, &[Available; 4]).statuses, 5), None);
    assert!(room.take_rows(track(0, 0, &[Held, Sold, Available, Available]).statuses, 6).is_some());
    assert_eq!(publish(&room, 10, 1, 0, Sold), Step::Known, "a frame without its keyframe");
    assert_eq!(given(&room, &mut at(11, 0)), (false, vec![1]));
    room.take_rows(track(0, 0, &[Available; 6]).statuses, 7);
    assert_eq!((room.at(), given(&room, &mut at(11, 1))), (Position { epoch: 13, frame: 0 }, (true, vec![0])));
    assert!(room.take_keyframe(track(10, 4, &[Sold; 6])), "the feed's epoch, though its number is lower");
    assert_eq!(room.take_rows(track(0, 0, &[Held; 6]).statuses, 8), None);
    assert_eq!(given(&room, &mut at(13, 0)), (true, vec![4]));
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
