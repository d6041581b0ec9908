//! Golden frames: bytes in `golden/`, each with a JSON file that says what they mean.
//!
//! TypeScript reads the same files. `UPDATE_GOLDEN=1 cargo test -p fullhouse-protocol --test golden`
//! writes them anew; a change of a file that is already there is a change of the wire.

use std::path::PathBuf;

use fullhouse_protocol::{
    frames::{
        Change, Frame, FrameError, HEADER_BYTES, Head, LINE_EPOCH, NUMBER_MAX, Position, Statuses, decode_body,
        encode_body, encode_delta, encode_line, encode_range, encode_resync, encode_snapshot, encode_span,
    },
    keyframe::{KeyframePart, SeatState},
    seat::Status::{self, Available, Blocked, Held, Sold},
};
use serde_json::{Value, json};

/// One pair of files. `meaning` is what a reader must get; for bytes that it must refuse, the kind of the error.
struct Golden {
    name: &'static str,
    description: &'static str,
    bytes: Vec<u8>,
    meaning: Value,
}

fn head(seat_count: u32, frame: u64) -> Head {
    let at = Position { epoch: 3_698_106_322_944_337, frame };
    Head { event_id: 42, at, seat_count, committed_at_ms: 1_804_525_200_123 }
}

fn changes(list: &[(u32, Status)]) -> Vec<Change> {
    list.iter().map(|&(seat_no, status)| Change { seat_no, status }).collect()
}

fn goldens() -> Vec<Golden> {
    let four = head(4, 1);
    let delta = encode_delta(&head(62_000, 17), &changes(&[(0, Held), (1, Sold), (2, Blocked), (61_999, Available)]));
    let next = encode_delta(&head(62_000, 18), &changes(&[(0, Available)]));
    let resync = encode_resync(&head(62_000, 19));
    let span = encode_span(&head(62_000, 18), 12, &changes(&[(1, Sold), (61_999, Available)]));
    let all: Statuses =
        [Available, Held, Sold, Blocked, Available, Available, Held, Held, Sold, Blocked].into_iter().collect();
    let range = encode_range(&head(10, 90), 17, 4, &all.range(4, 6));
    let of_line = Head { at: Position { epoch: LINE_EPOCH, frame: 312 }, ..head(0, 0) };
    let line = encode_line(&of_line, r#"{"state":"open","joined":4211,"message":{"ja":"まもなく"}}"#);
    let snapshot = encode_snapshot(&head(10, 17), &all);
    let largest = Head {
        event_id: NUMBER_MAX as i64,
        at: Position { epoch: NUMBER_MAX, frame: NUMBER_MAX },
        seat_count: 200_000,
        committed_at_ms: NUMBER_MAX,
    };
    let full: Vec<Change> = (0..800).map(|i| Change { seat_no: i * 77, status: Status::from_bits(i as u8) }).collect();
    let part = KeyframePart {
        head: head(5, 17),
        first: 2,
        seats: vec![
            SeatState { status: Available, version: 1, held_until_us: None },
            SeatState { status: Held, version: 70_000, held_until_us: Some(1_804_525_680_123_456) },
            SeatState { status: Blocked, version: 0, held_until_us: None },
        ],
    };
    let decoded = |name, description, bytes: &[u8]| Golden {
        name,
        description,
        meaning: json!({ "decoded": frame(&Frame::decode(bytes).unwrap()) }),
        bytes: bytes.to_vec(),
    };
    let body = |name, description, bytes: &[u8]| {
        let (head, frames) = decode_body(bytes).unwrap();
        let frames: Vec<Value> = frames.iter().map(frame).collect();
        let mut meaning = json!({ "decoded": { "kind": "body", "head": fields("resync", &head), "frames": [] } });
        meaning["decoded"]["frames"] = frames.into();
        Golden { name, description, bytes: bytes.to_vec(), meaning }
    };
    let refused = |name, description, bytes: Vec<u8>, error: FrameError| {
        assert_eq!(Frame::decode(&bytes), Err(error), "{name}");
        let error = format!("{error:?}");
        Golden { name, description, bytes, meaning: json!({ "error": error.split('(').next() }) }
    };
    let keyframe = |name, description, part: &KeyframePart| {
        assert_eq!(KeyframePart::decode(&part.encode()).as_ref(), Ok(part));
        let mut meaning = json!({ "decoded": fields("keyframe", &part.head) });
        meaning["decoded"]["first"] = part.first.into();
        meaning["decoded"]["seats"] =
            part.seats.iter().map(|s| json!([s.status.bits(), s.version, s.held_until_us])).collect();
        Golden { name, description, bytes: part.encode().to_vec(), meaning }
    };
    vec![
        decoded("delta", "four seats change: the first three and the last of 62,000", &delta),
        decoded("delta-empty", "a delta of no seat: the number moves on", &encode_delta(&four, &[])),
        decoded(
            "delta-largest-numbers",
            "every number as large as it gets",
            &encode_delta(&largest, &changes(&[(199_999, Blocked)])),
        ),
        decoded(
            "delta-full",
            "800 changes, the most that a frame carries by default",
            &encode_delta(&head(62_000, 20), &full),
        ),
        decoded("span", "what frames 13 to 18 led to, for whoever stands at 12 to 17", &span),
        decoded("range", "the last six of ten seats, as frames 18 to 90 left them", &range),
        decoded(
            "range-of-none",
            "nothing has changed on the whole",
            &encode_range(&head(10, 90), 0, 0, &all.range(0, 0)),
        ),
        decoded("line", "a line of people at its 312th revision", &line),
        decoded("resync", "fetch a snapshot; what comes next follows on this head", &resync),
        decoded("snapshot", "ten seats: the last byte is half used", &snapshot),
        decoded(
            "snapshot-of-four",
            "four seats: the last byte is full",
            &encode_snapshot(&four, &[Sold, Held, Blocked, Sold].into_iter().collect()),
        ),
        decoded("snapshot-of-none", "no seat at all", &encode_snapshot(&head(0, 1), &Statuses::new(0))),
        body(
            "body",
            "what a poller gets: the head, then two frames",
            &encode_body(&head(62_000, 18), [&delta[..], &next[..]]),
        ),
        body("body-empty", "nothing has changed of late: the head alone", &encode_body(&head(62_000, 18), [])),
        body(
            "body-with-resync",
            "a change too large for frames stands in their row as a resync",
            &encode_body(&head(62_000, 19), [&next[..], &resync[..]]),
        ),
        keyframe("bus/keyframe", "seats 2 to 4 of a keyframe; only the hub's own bus carries these", &part),
        refused("malformed/empty", "no byte at all", cut(&delta, 0), FrameError::Short),
        refused(
            "malformed/short-header",
            "a byte less than a header",
            cut(&resync, HEADER_BYTES - 1),
            FrameError::Short,
        ),
        refused(
            "malformed/short-delta",
            "fewer changes than the count says",
            cut(&delta, delta.len() - 1),
            FrameError::Short,
        ),
        refused(
            "malformed/long-delta",
            "more changes than the count says",
            patched(&delta, 2, &[3, 0]),
            FrameError::Long,
        ),
        refused(
            "malformed/version",
            "a version that nobody knows",
            patched(&delta, 0, &[2]),
            FrameError::UnknownVersion(2),
        ),
        refused(
            "malformed/kind",
            "a kind that nobody knows: a reader skips it",
            patched(&delta, 1, &[9]),
            FrameError::UnknownKind(9),
        ),
        refused(
            "malformed/seat-twice",
            "the first seat named twice",
            patched(&delta, HEADER_BYTES + 4, &[0, 0, 0, 0]),
            FrameError::SeatOrder,
        ),
        refused(
            "malformed/seat-beyond",
            "a seat that the plan does not have",
            patched(&delta, 4, &[10, 0, 0, 0]),
            FrameError::SeatOrder,
        ),
        refused(
            "malformed/short-span",
            "a span without what it follows on",
            cut(&span, HEADER_BYTES + 7),
            FrameError::Short,
        ),
        refused(
            "malformed/span-of-nothing",
            "a span that follows on itself",
            patched(&span, HEADER_BYTES, &[18]),
            FrameError::TooLarge,
        ),
        refused(
            "malformed/short-range",
            "fewer seats than the count says",
            cut(&range, range.len() - 1),
            FrameError::Short,
        ),
        refused(
            "malformed/range-beyond",
            "a range that goes on beyond the last seat",
            patched(&range, HEADER_BYTES + 8, &[5]),
            FrameError::SeatOrder,
        ),
        refused("malformed/short-line", "half of a line", cut(&line, line.len() - 5), FrameError::Short),
        refused("malformed/line-with-seats", "a line that has seats", patched(&line, 4, &[1]), FrameError::StrayBits),
        refused(
            "malformed/line-not-text",
            "a line that is not UTF-8",
            patched(&line, HEADER_BYTES, &[0xff]),
            FrameError::NotText,
        ),
        refused("malformed/epoch-too-large", "an epoch of 2^53", patched(&delta, 22, &[0x20, 0]), FrameError::TooLarge),
        refused(
            "malformed/stray-bits",
            "bits beyond the last seat",
            patched(&snapshot, snapshot.len() - 1, &[0xff]),
            FrameError::StrayBits,
        ),
        refused(
            "malformed/snapshot-short",
            "fewer bytes than seats need",
            cut(&snapshot, snapshot.len() - 1),
            FrameError::Short,
        ),
    ]
}

fn cut(bytes: &[u8], length: usize) -> Vec<u8> {
    bytes[..length].to_vec()
}

fn patched(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

fn fields(kind: &str, head: &Head) -> Value {
    json!({
        "kind": kind,
        "event_id": head.event_id,
        "epoch": head.at.epoch,
        "frame": head.at.frame,
        "seat_count": head.seat_count,
        "committed_at": head.committed_at_ms,
    })
}

fn frame(frame: &Frame) -> Value {
    match frame {
        Frame::Resync { head } => fields("resync", head),
        Frame::Delta { head, changes } => {
            let mut value = fields("delta", head);
            value["changes"] = changes.iter().map(|c| json!([c.seat_no, c.status.bits()])).collect();
            value
        }
        Frame::Span { head, since, changes } => {
            let mut value = fields("span", head);
            value["since"] = (*since).into();
            value["changes"] = changes.iter().map(|c| json!([c.seat_no, c.status.bits()])).collect();
            value
        }
        Frame::Range { head, since, first, statuses } => {
            let mut value = fields("range", head);
            value["since"] = (*since).into();
            value["first"] = (*first).into();
            value["statuses"] = statuses.iter().map(|s| s.bits()).collect();
            value
        }
        Frame::Line { head, json } => {
            let mut value = fields("line", head);
            value["json"] = json.as_str().into();
            value
        }
        Frame::Snapshot { head, statuses } => {
            let mut value = fields("snapshot", head);
            value["statuses"] = statuses.iter().map(|s| s.bits()).collect();
            value
        }
    }
}

#[test]
fn the_golden_files_say_what_the_code_says() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut expected = Vec::new();
    for golden in goldens() {
        let (bin, json) = (folder.join(format!("{}.bin", golden.name)), folder.join(format!("{}.json", golden.name)));
        let file = bin.file_name().and_then(|name| name.to_str()).unwrap();
        let mut meaning = json!({ "description": golden.description, "file": file });
        meaning.as_object_mut().unwrap().extend(golden.meaning.as_object().unwrap().clone());
        let text = format!("{meaning}\n");
        if update {
            std::fs::create_dir_all(bin.parent().unwrap()).unwrap();
            std::fs::write(&bin, &golden.bytes).unwrap();
            std::fs::write(&json, &text).unwrap();
        }
        assert!(std::fs::read(&bin).unwrap() == golden.bytes, "{} is not what the code writes", bin.display());
        assert_eq!(std::fs::read_to_string(&json).unwrap(), text, "{}", json.display());
        expected.extend([bin, json]);
    }
    for folder in [folder.clone(), folder.join("bus"), folder.join("malformed")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(
                path.is_dir() || path.ends_with(".gitattributes") || expected.contains(&path),
                "{} is no longer made",
                path.display()
            );
        }
    }
}
