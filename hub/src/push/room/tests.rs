use fullhouse_protocol::{
    frames::{Change, Frame, Head, LINE_EPOCH, decode_body, encode_delta, encode_line},
    seat::Status::{self, Available, Held, Sold},
    track::{Follower, Step, Track},
};

use super::*;
use crate::{
    config::{self, Config},
    push::wire,
};

pub(in crate::push) fn config(ring_frames_max: usize) -> config::Push {
    config::Push { ring_frames_max, ..Config::defaults().push }
}

pub(in crate::push) fn track(epoch: u64, frame: u64, statuses: &[Status]) -> Track {
    let seat_count = statuses.len() as u32;
    let head = Head { event_id: 1, at: Position { epoch, frame }, seat_count, committed_at_ms: 0 };
    Track::new(head, statuses.iter().copied().collect())
}

fn room_of(track: Track, source: Source, ring_frames_max: usize) -> Room<Map> {
    Room::new(Map::new(track, source, &config(ring_frames_max)), Doors::default())
}

fn room(ring_frames_max: usize) -> Room<Map> {
    room_of(track(10, 0, &[Available; 4]), Source::Feed, ring_frames_max)
}

fn publish(room: &Room<Map>, epoch: u64, frame: u64, seat_no: u32, status: Status) -> Step {
    let head = Head { at: Position { epoch, frame }, ..room.track().head };
    let changes = [Change { seat_no, status }];
    room.take_frame(&head, &changes, &encode_delta(&head, &changes))
}

fn at(epoch: u64, frame: u64) -> Option<Position> {
    Some(Position { epoch, frame })
}

/// The messages that a viewer is given until there is no more.
fn given(room: &Room<Map>, mut cursor: Option<Position>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Next::Message { bytes, at } = room.next(cursor) {
        frames.push(Frame::decode(wire::content(&bytes)).unwrap());
        assert_eq!(frames.last().unwrap().head().at, at);
        cursor = Some(at);
    }
    frames
}

/// As letters and numbers: a delta, a span and what it follows on, a resync.
fn told(room: &Room<Map>, cursor: Option<Position>) -> Vec<String> {
    let short = |frame: &Frame| match frame {
        Frame::Delta { head, .. } => format!("d{}", head.at.frame),
        Frame::Span { head, since, .. } => format!("s{since}-{}", head.at.frame),
        Frame::Range { head, since, .. } => format!("p{since}-{}", head.at.frame),
        Frame::Line { .. } => panic!("of another room"),
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

/// Changes of `count` seats in each of five frames, a step apart, and each made before the one before.
fn churned(seat_count: usize, count: u32, step: u32) -> Room<Map> {
    let room = room_of(track(10, 0, &vec![Available; seat_count]), Source::Feed, 100);
    for frame in 1..=5 {
        let head = Head { at: Position { epoch: 10, frame }, committed_at_ms: 100 - frame, ..room.track().head };
        let first = 1 + frame as u32;
        let status = if frame == 5 { Sold } else { Held };
        let changes: Vec<Change> = (0..count).map(|n| Change { seat_no: first + n * step, status }).collect();
        assert_eq!(room.take_frame(&head, &changes, &encode_delta(&head, &changes)), Step::Applied);
    }
    room
}

#[test]
fn whoever_is_behind_gets_one_message_in_the_smaller_form() {
    for (count, step, told_is, bytes_max) in
        [(2, 400, "s0-5", 200), (200, 1, "s0-5", 900), (300, 1, "p0-5", 140), (300, 3, "p0-5", 300)]
    {
        let room = churned(1_000, count, step);
        assert_eq!(told(&room, at(10, 0)), [told_is], "{count} changes, each {step}");
        assert_eq!(told(&room, at(10, 4)), ["d5"], "the next frame alone is the one that came");
        let Next::Message { bytes, .. } = room.next(at(10, 0)) else { panic!() };
        assert!(bytes.len() <= bytes_max, "{count} changes, each {step}: {} bytes", bytes.len());
        assert_eq!(given(&room, at(10, 0))[0].head().committed_at_ms, 95, "of its oldest change");
        // From wherever it stands, a viewer ends at the room's map.
        for since in 0..5 {
            let mut stands = room_of(track(10, 0, &[Available; 1_000]), Source::Feed, 100).track();
            for frame in &decode_body(&room.recent().bytes).unwrap().1[..since as usize] {
                let Frame::Delta { head, changes } = frame else { panic!() };
                assert_eq!(stands.apply(head, changes), Step::Applied);
            }
            let mut client = Follower::default();
            client.take(Frame::Snapshot { head: stands.head, statuses: stands.statuses });
            for frame in given(&room, at(10, since)) {
                client.take(frame);
            }
            assert_eq!(client.track(), Some(&room.track()), "from {since}");
        }
    }
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

    assert!(room.take_keyframe(track(10, 3, &[Sold; 4])), "too large for the bus's frames: in their row");
    assert_eq!(told(&room, at(10, 0)), ["s0-3"]);
    assert_eq!(told(&room, at(10, 2)), ["d3"]);

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
    let room = room_of(track(11, 0, &[Available; 4]), Source::Database, 10);
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

fn line(revision: u64) -> (Head, Bytes) {
    let at = Position { epoch: LINE_EPOCH, frame: revision };
    let head = Head { event_id: 1, at, seat_count: 0, committed_at_ms: 1_000 + revision };
    (head, encode_line(&head, &format!("{{\"revision\":{revision}}}")))
}

/// What a viewer of a line is told: revisions.
fn told_of_line(room: &Room<Line>, cursor: Option<Position>) -> Vec<u64> {
    let Next::Message { bytes, at } = room.next(cursor) else { return Vec::new() };
    let Frame::Line { head, json } = Frame::decode(wire::content(&bytes)).unwrap() else { panic!() };
    assert_eq!((head.at, json), (at, format!("{{\"revision\":{}}}", at.frame)));
    assert_eq!(room.next(Some(at)), Next::Nothing);
    vec![at.frame]
}

#[test]
fn a_line_is_its_newest_revision_and_never_goes_back() {
    let (head, bytes) = line(7);
    let room = Room::new(Line::new(head, &bytes, Source::Database), Doors::default());
    let of = |frame| Some(Position { epoch: LINE_EPOCH, frame });
    assert_eq!(
        (told_of_line(&room, None), told_of_line(&room, of(3)), told_of_line(&room, of(7))),
        (vec![7], vec![7], vec![])
    );
    assert_eq!(told_of_line(&room, at(10, 99)), [7], "whatever another epoch may be");
    for (revision, source, is_taken, newest) in [
        (9, Source::Feed, true, 9),
        (8, Source::Feed, false, 9), // late, or of a leader that is stale
        (9, Source::Feed, false, 9), // again
        (8, Source::Database, false, 9),
        (40, Source::Database, true, 40),
    ] {
        let (head, bytes) = line(revision);
        assert_eq!(room.take(&head, &bytes, source), is_taken);
        assert_eq!((told_of_line(&room, None), room.at()), (vec![newest], of(newest).unwrap()));
        assert_eq!(room.source(), Source::Feed, "once it has one it is not read any more");
    }
    assert_eq!(told_of_line(&room, of(7)), [40], "whoever is behind gets the newest, and no resync");
    assert_eq!(room.next(of(41)), Next::Ahead, "from a node that knows more");
    let (head, frames) = decode_body(&room.recent().bytes).unwrap();
    assert_eq!((head.at.frame, frames.len(), frames[0].head().at.frame), (40, 1, 40));
}
