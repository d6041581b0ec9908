//! A shard whose turns are taken one by one, on a clock that is set; the sockets are real.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpListener,
};

use fullhouse_protocol::{
    frames::{Change, Frame, Head, encode_delta},
    seat::Status::{self, Available, Held, Sold},
    track::{Need, Step},
};
use nix::sys::socket::{setsockopt, sockopt};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tokio_tungstenite::tungstenite::{
    Error, Message, Utf8Bytes, WebSocket,
    protocol::{CloseFrame, Role, frame::coding::CloseCode},
};

use super::*;
use crate::push::room::{
    Map, Source,
    tests::{config, track},
};

const PATIENCE: Patience = Patience { send: Duration::from_secs(20), ping_interval: Duration::from_secs(25) };

struct Node {
    shard: Shard,
    room: Arc<Room<Map>>,
    places: Arc<Places>,
    now: Instant,
    listener: TcpListener,
}

type Client = WebSocket<TcpStream>;

impl Node {
    fn new(ring_frames_max: usize) -> Self {
        Self::of(ring_frames_max, 800)
    }

    fn of(ring_frames_max: usize, seats: usize) -> Self {
        crate::files::raise_limit().unwrap();
        let door = Arc::new(Door::new().unwrap());
        let now = Instant::now();
        let shard = Shard::new(door.clone(), PATIENCE, Arc::default(), now).unwrap();
        let doors = Doors([door].into());
        let map = Map::new(track(10, 0, &vec![Available; seats]), Source::Feed, &config(ring_frames_max));
        let room = Room::new(map, doors);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { shard, room: Arc::new(room), places: Places::new(100_000), now, listener }
    }

    /// The ends of a connection; ours buffers as little as the kernel lets it.
    fn wire(&self) -> (TcpStream, TcpStream) {
        let theirs = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let ours = self.listener.accept().unwrap().0;
        setsockopt(&ours, sockopt::SndBuf, &4096).unwrap();
        setsockopt(&theirs, sockopt::RcvBuf, &4096).unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        (ours, theirs)
    }

    fn enter(&mut self, entry: Result<Arc<Room>, u16>, cursor: Option<Position>) -> TcpStream {
        let (stream, theirs) = self.wire();
        let place = self.places.take().unwrap();
        self.shard.door.enter(Arrival { stream, entry, cursor, read_ahead: Bytes::new(), place });
        self.turn();
        theirs
    }

    fn open(&mut self, cursor: Option<Position>) -> Client {
        let theirs = self.enter(Ok(self.room.clone()), cursor);
        WebSocket::from_raw_socket(theirs, Role::Client, None)
    }

    fn publish(&self, status: Status) {
        let all = self.room.track().head.seat_count;
        self.publish_changes((0..all).map(|seat_no| Change { seat_no, status }).collect());
    }

    fn publish_changes(&self, changes: Vec<Change>) {
        let head = self.room.track().head;
        let head = Head { at: Position { frame: head.at.frame + 1, ..head.at }, ..head };
        assert_eq!(self.room.take_frame(&head, &changes, &encode_delta(&head, &changes)), Step::Applied);
    }

    fn turn(&mut self) {
        let now = self.now;
        self.shard.turn(|| now, Duration::ZERO);
    }

    /// Turns until nothing is left to do at this moment.
    fn settle(&mut self) {
        for _ in 0..4 {
            self.turn();
        }
        while self.shard.in_round {
            self.turn();
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = (self.now + TICK).min(end);
            self.turn();
        }
    }

    /// The next message, whose time has come.
    fn next(&mut self, client: &mut Client) -> Result<Message, Error> {
        let hung = Instant::now() + Duration::from_secs(10);
        while Instant::now() < hung {
            match client.read() {
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    let now = self.now; // the kernel's windows open in real time
                    self.shard.turn(|| now, Duration::from_millis(1));
                }
                other => return other,
            }
        }
        panic!("nothing came");
    }

    fn frame(&mut self, client: &mut Client) -> Frame {
        loop {
            match self.next(client) {
                Ok(Message::Binary(bytes)) => return Frame::decode(&bytes).unwrap(),
                Ok(Message::Ping(_)) => {}
                other => panic!("not a frame: {other:?}"),
            }
        }
    }

    fn is_quiet(&mut self, client: &mut Client) -> bool {
        self.settle();
        matches!(client.read(), Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Reads on until it is closed: the code and the reason.
    fn closed(&mut self, client: &mut Client) -> (u16, Utf8Bytes) {
        loop {
            match self.next(client) {
                Ok(Message::Close(Some(close))) => return (close.code.into(), close.reason),
                Ok(_) => {}
                other => panic!("not closed with a code: {other:?}"),
            }
        }
    }
}

fn at(frame: u64) -> Option<Position> {
    Some(Position { epoch: 10, frame })
}

#[test]
fn a_viewer_gets_what_follows_on_its_cursor() {
    let mut node = Node::new(10);
    node.publish(Held);
    node.publish(Available);
    let mut resumed = node.open(at(1));
    assert!(matches!(node.frame(&mut resumed), Frame::Delta { head, .. } if head.at.frame == 2));
    let mut further_back = node.open(at(0));
    assert!(matches!(node.frame(&mut further_back), Frame::Range { head, since: 0, .. } if head.at.frame == 2));
    let mut fresh = node.open(None);
    assert!(matches!(node.frame(&mut fresh), Frame::Resync { head } if head.at.frame == 2));
    node.publish(Held);
    for client in [&mut resumed, &mut further_back, &mut fresh] {
        assert!(matches!(node.frame(client), Frame::Delta { head, .. } if head.at.frame == 3));
        assert!(node.is_quiet(client));
    }
    assert!(node.shard.waiting.is_empty());
}

#[test]
fn whoever_stops_reading_keeps_nothing_but_the_rest_of_a_frame() {
    let mut node = Node::new(4);
    let mut slow = node.open(at(0));
    let mut quick = node.open(at(0));
    for round in 0..50 {
        node.publish(if round % 2 == 0 { Held } else { Sold });
        node.turn();
        assert_eq!(node.frame(&mut quick).head().at.frame, round + 1);
    }
    let kept = node.shard.waiting.values().map(|state| match state {
        Waiting::Lags { rest, .. } => rest.len(),
        _ => panic!("it lags, and nobody else waits"),
    });
    let kept: Vec<usize> = kept.collect();
    assert!(kept.len() == 1 && kept[0] < 4096, "{kept:?}");

    // It begins to read: what the kernel had, then a resync, since the ring has moved on, and then the present.
    let mut frames = Vec::new();
    while frames.last().is_none_or(|frame: &Frame| frame.head().at.frame < 50) {
        frames.push(node.frame(&mut slow));
    }
    assert!(matches!(frames.last(), Some(Frame::Resync { .. })) && frames.len() < 20, "{}", frames.len());
    assert!(node.shard.waiting.is_empty(), "and what it had cost is given back");
    node.publish(Available);
    assert_eq!(node.frame(&mut slow).head().at.frame, 51);

    // It stops again, for good. The others are none of its business.
    let mut newest = 50;
    for frame in 52..72 {
        node.publish(Held);
        while newest < frame {
            newest = node.frame(&mut quick).head().at.frame;
        }
    }
    node.pass(PATIENCE.send - TICK);
    assert_eq!(node.places.taken(), 2);
    node.pass(2 * TICK + CLOSE_TIMEOUT);
    assert_eq!(node.places.taken(), 1, "it took nothing for too long");
    node.publish(Sold);
    assert_eq!(node.frame(&mut quick).head().at.frame, 72);
}

#[test]
fn a_viewer_that_a_slow_round_reaches_late_gets_everything_in_one_frame() {
    let mut node = Node::new(100);
    let mut client = node.open(at(0));
    for seat_no in 0..5 {
        node.publish_changes(vec![Change { seat_no, status: Held }, Change { seat_no: 9, status: Sold }]);
    }
    let Frame::Span { head, since, changes } = node.frame(&mut client) else { panic!() };
    assert_eq!((head.at.frame, since, changes.len()), (5, 0, 6));
    assert!(node.is_quiet(&mut client));
}

#[test]
fn nobody_is_missed_when_others_leave_in_the_middle_of_a_round() {
    let mut node = Node::new(10);
    let mut clients: Vec<Client> = (0..STEP_VIEWERS + 500).map(|_| node.open(at(0))).collect();
    node.publish(Held);
    node.turn();
    assert!(node.shard.in_round, "one step is not enough");
    for index in [0, 3, 400, STEP_VIEWERS, 5] {
        clients.swap_remove(index);
    }
    node.settle();
    for client in &mut clients {
        assert!(matches!(client.read(), Ok(Message::Binary(_))));
        assert!(
            matches!(client.read(), Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock),
            "and only once"
        );
    }
    assert_eq!(node.places.taken(), clients.len());
    drop(clients);
    node.settle();
    node.settle();
    assert_eq!((node.places.taken(), node.shard.is_empty(), node.shard.hall_of.len()), (0, true, 0));
    assert!(!node.room.is_wanted() || !node.room.is_wanted(), "nobody watches the room any more");
}

#[test]
fn whoever_does_not_answer_pings_is_closed_and_whoever_does_may_stay() {
    let mut node = Node::new(10);
    let mut silent = node.enter(Ok(node.room.clone()), at(0));
    let mut alive = node.open(at(0));
    let end = node.now + 4 * PATIENCE.ping_interval;
    let mut pings = 0;
    while node.now < end {
        node.pass(TICK);
        match alive.read() {
            Ok(Message::Ping(_)) => pings += 1, // it is answered when the next message is read or written
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            other => panic!("{other:?}"),
        }
        let _ = alive.flush();
    }
    assert!((3..=5).contains(&pings), "{pings}");
    let mut all = Vec::new();
    silent.set_nonblocking(false).unwrap();
    silent.read_to_end(&mut all).unwrap();
    assert_eq!(all, [0x89, 0, 0x89, 0, 0x88, 2, 0x0f, 0xa0], "two pings, and 4000");
    alive.send(Message::text("a word of a later version")).unwrap();
    node.publish(Held);
    assert_eq!(node.frame(&mut alive).head().at.frame, 1);
}

#[test]
fn a_viewer_ahead_of_the_node_waits_for_it_a_moment() {
    let mut node = Node::new(10);
    let mut client = node.open(at(2));
    for _ in 0..3 {
        node.publish(Held);
        node.settle();
    }
    assert_eq!(node.frame(&mut client).head().at.frame, 3);
    let mut client = node.open(at(9));
    node.pass(AHEAD_MAX - TICK);
    assert!(node.is_quiet(&mut client));
    node.pass(2 * TICK);
    assert_eq!(node.closed(&mut client).0, close::TOO_SLOW);
}

#[test]
fn a_node_that_drains_says_when_to_return_and_ends() {
    let mut node = Node::new(10);
    let mut client = node.open(at(0));
    let mut silent = node.enter(Ok(node.room.clone()), at(0));
    node.shard.door.drain();
    assert_eq!(node.closed(&mut client), (close::DRAINING, RETURN_WITHIN_MS.to_string().into()));
    let mut late = node.open(at(0));
    assert_eq!(node.closed(&mut late).0, close::DRAINING);
    for client in [&mut client, &mut late] {
        let _ = client.flush(); // the answer to the close
    }
    node.settle();
    assert_eq!(node.places.taken(), 1, "whoever has answered is gone");
    node.pass(CLOSE_TIMEOUT + TICK);
    assert!(node.shard.is_empty(), "and nobody is waited for any longer");
    silent.set_nonblocking(false).unwrap();
    let mut all = Vec::new();
    silent.read_to_end(&mut all).unwrap();
    assert_eq!(all[..4], [0x88, 6, 0x03, 0xf4]);
}

#[test]
fn a_client_that_closes_is_answered() {
    let mut node = Node::new(10);
    let mut client = node.open(at(0));
    client.close(Some(CloseFrame { code: CloseCode::Away, reason: "home".into() })).unwrap();
    assert_eq!(node.closed(&mut client).0, 1001);
    assert!(matches!(node.next(&mut client), Err(Error::ConnectionClosed)));
    assert_eq!(node.places.taken(), 0);
}

#[test]
fn what_a_client_should_not_send_closes_it() {
    let mut node = Node::new(10);
    let mut bystander = node.open(at(0));
    let large = Message::text("x".repeat(wire::TEXT_BYTES_MAX + 1));
    for message in [Message::binary(vec![1]), large, Message::binary(vec![0; 1 << 20])] {
        let mut client = node.open(at(0));
        let _ = client.send(message); // the hub may close while a large one is still on its way
        assert_eq!(node.closed(&mut client).0, close::BAD_REQUEST);
    }
    let mut client = node.open(at(0));
    for _ in 0..=INPUT_MESSAGES_MAX {
        client.send(Message::Ping(Bytes::from_static(b"?"))).unwrap();
    }
    assert_eq!(node.closed(&mut client).0, close::BAD_REQUEST, "pings without end");

    // A message that comes byte by byte, and several at once.
    let mut client = node.enter(Ok(node.room.clone()), at(0));
    for byte in [0x89, 0x83, 0, 0, 0, 0, b'y', b'e', b's'] {
        client.write_all(&[byte]).unwrap();
        node.turn();
    }
    client.write_all(&[[0x8a, 0x80, 1, 2, 3, 4], [0x89, 0x80, 9, 9, 9, 9]].concat()).unwrap();
    node.settle();
    let mut answer = [0; 20];
    assert_eq!((client.read(&mut answer).unwrap(), &answer[..7]), (7, &[0x8a, 3, b'y', b'e', b's', 0x8a, 0][..]));
    assert!(node.shard.heard_partly.is_empty());

    node.publish(Held);
    assert_eq!(node.frame(&mut bystander).head().at.frame, 1, "the others are unharmed");
}

#[test]
fn whoever_is_turned_away_is_told_why() {
    let mut node = Node::new(10);
    let theirs = node.enter(Err(close::TOO_MANY_SOCKETS), None);
    let mut client = WebSocket::from_raw_socket(theirs, Role::Client, None);
    assert_eq!(node.closed(&mut client).0, close::TOO_MANY_SOCKETS);
}

#[test]
fn what_came_with_the_handshake_is_heard() {
    let mut node = Node::new(10);
    let (stream, mut theirs) = node.wire();
    let (entry, place) = (Ok(node.room.clone() as Arc<Room>), node.places.take().unwrap());
    let read_ahead = Bytes::from_static(&[0x89, 0x80, 1, 2, 3, 4]);
    node.shard.door.enter(Arrival { stream, entry, cursor: at(0), read_ahead, place });
    node.turn();
    let mut answer = [0; 20];
    assert_eq!((theirs.read(&mut answer).unwrap(), &answer[..2]), (2, &[0x8a, 0][..]));
}

/// Viewers come, lag, read, leave and return at random; whoever has read everything has the room's map.
#[test]
fn whatever_the_order_every_client_ends_equal_to_the_room() {
    let seeds = std::env::var("SEEDS").map_or(0..1_000, |text| {
        let (first, last) = text.split_once("..").expect("SEEDS=first..last");
        first.parse().unwrap()..last.parse().unwrap()
    });
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| random_schedule(seed));
        if let Err(panic) = outcome {
            eprintln!("SEEDS={seed}..{} fails", seed + 1);
            std::panic::resume_unwind(panic);
        }
    }
}

struct Fan {
    client: Option<Client>,
    map: fullhouse_protocol::track::Follower,
}

fn random_schedule(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut node = Node::of(random.random_range(2..12), 2_000);
    let mut fans: Vec<Fan> =
        (0..random.random_range(1..6)).map(|_| Fan { client: None, map: Default::default() }).collect();
    for _ in 0..random.random_range(10..80) {
        match random.random_range(0..10) {
            0..4 => {
                let seats = random.random_range(1..800);
                let first = random.random_range(0..2_000 - seats);
                let status = *[Available, Held, Sold].choose(&mut random).unwrap();
                node.publish_changes((first..first + seats).map(|seat_no| Change { seat_no, status }).collect());
            }
            4 => drop(node.room.take_keyframe(track_of(&node.room, random.random_range(0..3)))),
            5 | 6 => node.turn(),
            7 => {
                let fan = random.random_range(0..fans.len());
                fans[fan].client = None;
            }
            _ => {
                let fan = random.random_range(0..fans.len());
                read(&mut node, &mut fans[fan], random.random_range(1..8));
            }
        }
    }
    for fan in &mut fans {
        let hung = Instant::now() + Duration::from_secs(10);
        while Instant::now() < hung {
            read(&mut node, fan, 50);
            if fan.map.track().is_some_and(|track| track.at() == node.room.at()) && !fan.map.needs_snapshot() {
                break;
            }
        }
        assert!(fan.map.track() == Some(&node.room.track()), "at {:?}", fan.map.track().map(|track| track.at()));
    }
}

/// A later keyframe of the relay: a change too large for frames, or a map that skips some.
fn track_of(room: &Room<Map>, skip: u64) -> fullhouse_protocol::track::Track {
    let mut track = room.track();
    track.head.at.frame += 1 + skip;
    for seat_no in 0..1_500 {
        track.statuses.set(seat_no, if skip == 0 { Sold } else { Held });
    }
    track
}

fn read(node: &mut Node, fan: &mut Fan, messages_max: usize) {
    if fan.client.is_none() {
        fan.client = Some(node.open(fan.map.connect()));
    }
    for _ in 0..messages_max {
        node.turn();
        let need = match fan.client.as_mut().expect("just opened").read() {
            Ok(Message::Binary(bytes)) => fan.map.take(Frame::decode(&bytes).unwrap()),
            Ok(_) => continue,
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return,
            Err(other) => panic!("{other:?}"),
        };
        if need == Need::Snapshot {
            fan.map.take(Frame::decode(&node.room.snapshot().bytes).unwrap());
        }
    }
}

/// Clients that send what nobody meant, for a stated time (`FUZZ_SECONDS`, 1 by default; `FUZZ_SEED` repeats a run): each
/// is heard, ignored or closed with a code, nothing is kept of it, and the others are unharmed.
#[test]
fn whatever_clients_send_the_others_are_unharmed() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let time = Duration::from_secs(variable("FUZZ_SECONDS").unwrap_or(1));
    let seed = variable("FUZZ_SEED").unwrap_or_else(rand::random);
    eprintln!("FUZZ_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut node = Node::new(10);
    let mut bystander = node.open(at(0));
    let (began, mut tried, mut closed) = (Instant::now(), 0_u64, 0_u64);
    while began.elapsed() < time {
        tried += 1;
        let mut client = node.enter(Ok(node.room.clone()), at(node.room.at().frame));
        let mut bytes = Vec::new();
        for _ in 0..random.random_range(1..6) {
            let kind = *[1_u8, 1, 8, 9, 9, 10, 10, 0, 2, 15].choose(&mut random).unwrap();
            let length = *[0_usize, 1, 2, 20, 125, 126, 1024, 1025, 70_000].choose(&mut random).unwrap();
            bytes.push(kind | if random.random_bool(0.95) { 0x80 } else { random.random() });
            let masked = if random.random_bool(0.95) { 0x80 } else { 0 };
            match length {
                ..126 => bytes.push(masked | length as u8),
                126..=0xffff => bytes.extend([&[masked | 126][..], &(length as u16).to_be_bytes()].concat()),
                _ => bytes.extend([&[masked | 127][..], &(length as u64).to_be_bytes()].concat()),
            }
            bytes.extend([0; 4]);
            bytes.extend((0..length.min(2_000)).map(|_| if random.random_bool(0.99) { b'x' } else { random.random() }));
            if random.random_bool(0.1) {
                let place = random.random_range(0..bytes.len());
                bytes[place] = random.random();
            }
        }
        for chunk in bytes.chunks(random.random_range(1..3_000)) {
            if client.write_all(chunk).is_err() {
                break; // closed, or as much under way as the kernel takes
            }
            node.turn();
        }
        node.settle();
        assert!(node.shard.heard_partly.values().all(|kept| kept.len() <= wire::INPUT_BYTES_MAX), "FUZZ_SEED={seed}");
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer); // it does not wait
        let last_close = answer.windows(4).find(|four| four[..2] == [0x88, 2] && four[2..] == [0x0f, 0xa1]);
        closed += u64::from(last_close.is_some());
        drop(client);
        if tried % 64 == 0 {
            node.publish(if tried % 128 == 0 { Held } else { Sold });
            assert_eq!(node.frame(&mut bystander).head().at, node.room.at(), "FUZZ_SEED={seed}");
            node.pass(CLOSE_TIMEOUT + TICK);
            assert!(node.places.taken() == 1, "FUZZ_SEED={seed}: {} are carried still", node.places.taken());
            assert!(node.shard.waiting.is_empty() && node.shard.heard_partly.is_empty(), "FUZZ_SEED={seed}");
        }
    }
    eprintln!("{tried} clients, {closed} of them closed with 4001");
    assert!(closed > tried / 10, "some of it was not allowed");
}
