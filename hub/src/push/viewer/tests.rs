use fullhouse_protocol::{
    frames::{Change, Frame, Head, encode_delta},
    seat::Status::{self, Available, Held},
    track::Step,
};
use sqlx::PgPool;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinHandle,
};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::push::room::{
    Source,
    tests::{config, track},
};

/// A node with one room, whose clock is tokio's and stands still.
struct Node {
    rooms: Rooms,
    room: Arc<Room>,
    stop: CancellationToken,
}

type Client = WebSocketStream<DuplexStream>;

impl Node {
    fn new(ring_frames_max: usize) -> Self {
        let stop = CancellationToken::new();
        let pool = PgPool::connect_lazy("postgres://nowhere").unwrap();
        let rooms = Rooms::new(config(ring_frames_max), pool, stop.clone());
        let room = Arc::new(Room::new(track(10, 0, &[Available; 800]), Source::Feed, rooms.config()));
        Self { rooms, room, stop }
    }

    fn publish(&self, status: Status) {
        let head = self.room.track().head;
        let head = Head { at: Position { frame: head.at.frame + 1, ..head.at }, ..head };
        let changes: Vec<Change> = (0..head.seat_count).map(|seat_no| Change { seat_no, status }).collect();
        assert_eq!(self.room.take_frame(&head, &changes, encode_delta(&head, &changes)), Step::Applied);
    }

    /// A viewer, and the other end of its wire, which takes `wire_bytes` before it is full.
    fn wire(&self, cursor: Option<Position>, wire_bytes: usize) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = duplex(wire_bytes);
        (theirs, tokio::spawn(carry(self.rooms.clone(), self.room.clone(), cursor, ours, Bytes::new())))
    }

    async fn open(&self, cursor: Option<Position>) -> Client {
        let (theirs, _) = self.wire(cursor, 64 * 1024);
        WebSocketStream::from_raw_socket(theirs, Role::Client, None).await
    }
}

async fn frame(client: &mut Client) -> Frame {
    match client.next().await {
        Some(Ok(Message::Binary(bytes))) => Frame::decode(&bytes).unwrap(),
        other => panic!("not a frame: {other:?}"),
    }
}

/// Reads on until it is closed: the code and the reason.
async fn closed(client: &mut Client) -> (u16, Utf8Bytes) {
    loop {
        match client.next().await {
            Some(Ok(Message::Close(Some(close)))) => return (close.code.into(), close.reason),
            Some(Ok(_)) => {}
            other => panic!("not closed with a code: {other:?}"),
        }
    }
}

fn at(frame: u64) -> Option<Position> {
    Some(Position { epoch: 10, frame })
}

#[tokio::test(start_paused = true)]
async fn a_viewer_gets_what_follows_on_its_cursor() {
    let node = Node::new(10);
    node.publish(Held);
    node.publish(Available);
    let mut resumed = node.open(at(1)).await;
    assert_eq!(frame(&mut resumed).await.head().at.frame, 2);
    let mut fresh = node.open(None).await;
    assert!(matches!(frame(&mut fresh).await, Frame::Resync { head } if head.at.frame == 2));
    node.publish(Held);
    for client in [&mut resumed, &mut fresh] {
        assert_eq!(frame(client).await.head().at.frame, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_viewer_is_told_to_resync_and_a_dead_one_is_closed() {
    let node = Node::new(4);
    let (mut wire, viewer) = node.wire(at(0), 8 * 1024);
    for _ in 0..50 {
        node.publish(Held);
        tokio::task::yield_now().await;
    }
    // The wire was full after two frames. It begins to read: what it was given, then a resync, then the present.
    let mut slow = WebSocketStream::from_raw_socket(&mut wire, Role::Client, None).await;
    let mut frames = Vec::new();
    loop {
        match slow.next().await {
            Some(Ok(Message::Binary(bytes))) => frames.push(Frame::decode(&bytes).unwrap()),
            other => panic!("{other:?}"),
        }
        if frames.last().unwrap().head().at.frame == 50 {
            break;
        }
    }
    assert!(frames.len() < 25 && frames.iter().any(|frame| matches!(frame, Frame::Resync { .. })), "{}", frames.len());
    drop(slow);

    // It stops again, for good: the sockets of the others are none of its business.
    let began = Instant::now();
    for _ in 0..10 {
        node.publish(Available);
        tokio::task::yield_now().await;
    }
    viewer.await.unwrap();
    let patience = Duration::from_secs(node.rooms.config().send_timeout_s);
    assert!(began.elapsed() >= patience && began.elapsed() < patience + 2 * CLOSE_TIMEOUT);
    assert_eq!(node.room.watch().borrow().frame, 60);
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_answer_pings_is_closed() {
    let node = Node::new(10);
    let (mut wire, viewer) = node.wire(at(0), 1024);
    let began = Instant::now();
    viewer.await.unwrap();
    let interval = Duration::from_secs(node.rooms.config().ping_interval_s);
    assert!(began.elapsed() >= 3 * interval && began.elapsed() < 4 * interval);
    let mut all = Vec::new();
    wire.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, [0x89, 0, 0x89, 0, 0x88, 2, 0x0f, 0xa0], "two pings, and 4000");
}

#[tokio::test(start_paused = true)]
async fn whoever_answers_pings_may_stay() {
    let node = Node::new(10);
    let mut client = node.open(at(0)).await;
    for _ in 0..20 {
        assert!(matches!(client.next().await, Some(Ok(Message::Ping(_)))));
    }
    client.send(Message::text("a word of a later version")).await.unwrap();
    node.publish(Held);
    assert_eq!(frame(&mut client).await.head().at.frame, 1);
}

#[tokio::test(start_paused = true)]
async fn a_viewer_ahead_of_the_node_waits_for_it_a_moment() {
    let node = Node::new(10);
    let mut client = node.open(at(2)).await;
    for _ in 0..3 {
        node.publish(Held);
    }
    assert_eq!(frame(&mut client).await.head().at.frame, 3);
    let mut client = node.open(at(9)).await;
    let began = Instant::now();
    assert_eq!(closed(&mut client).await.0, close::TOO_SLOW);
    assert!(began.elapsed() >= AHEAD_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_drains_says_when_to_return() {
    let node = Node::new(10);
    let mut client = node.open(at(0)).await;
    node.stop.cancel();
    assert_eq!(closed(&mut client).await, (close::DRAINING, RETURN_WITHIN_MS.to_string().into()));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_should_not_send_closes_it() {
    let node = Node::new(10);
    let mut bystander = node.open(at(0)).await;
    let large = Message::text("x".repeat(INPUT_BYTES_MAX + 1));
    for message in [Message::binary(vec![1]), large, Message::binary(vec![0; 1 << 20])] {
        let mut client = node.open(at(0)).await;
        // The hub may close while a large message is still on its way.
        let _ = timeout(Duration::from_secs(30), client.feed(message)).await;
        let _ = timeout(Duration::from_secs(30), client.flush()).await;
        assert_eq!(closed(&mut client).await.0, close::BAD_REQUEST);
    }
    let mut client = node.open(at(0)).await;
    for _ in 0..=INPUT_MESSAGES_MAX {
        let _ = client.send(Message::Ping(Bytes::new())).await;
    }
    assert_eq!(closed(&mut client).await.0, close::BAD_REQUEST, "pings without end");

    let mut large_ping = vec![0x89, 0xfe, 0x01, 0x00];
    large_ping.resize(4 + 4 + 256, 0);
    let garbage: [&[u8]; 4] = [
        &[0x82, 0x01, 0x00],             // not masked
        &[0xf2, 0x80, 0, 0, 0, 0],       // reserved bits
        &[0x81, 0x81, 0, 0, 0, 0, 0xff], // text that is none
        &large_ping,                     // larger than pings may be
    ];
    for bytes in garbage {
        let (mut wire, viewer) = node.wire(at(0), 64 * 1024);
        wire.write_all(bytes).await.unwrap();
        viewer.await.unwrap();
        let mut answer = Vec::new();
        wire.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer[..4], [0x88, 2, 0x0f, 0xa1], "closed with 4001: {bytes:x?}");
    }
    node.publish(Held);
    assert_eq!(frame(&mut bystander).await.head().at.frame, 1, "the others are unharmed");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_turned_away_is_told_why() {
    let (ours, theirs) = duplex(1024);
    tokio::spawn(turn_away(close::TOO_MANY_SOCKETS, ours, Bytes::new()));
    let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
    assert_eq!(closed(&mut client).await.0, close::TOO_MANY_SOCKETS);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_is_answered_in_kind() {
    let node = Node::new(4);
    let mut client = node.open(at(0)).await;
    let goodbye = CloseFrame { code: 1000.into(), reason: "".into() };
    client.close(Some(goodbye)).await.unwrap();
    assert_eq!(closed(&mut client).await.0, 1000, "a close frame, not merely the end of the wire");
}
