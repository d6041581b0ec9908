//! Readers that stop, under full churn (B22): the hub's memory stays flat, nobody else notices, and they are closed.
//!
//! The hub is the real binary, so its memory is its own. How much passes is counted, and what a queue a viewer
//! would hold of it is computed, and shown.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fullhouse_tests::binary::{Binary, resident_bytes};
use tokio::{
    io::AsyncReadExt,
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message as Wire};

use super::*;

/// As many seats as one frame may change: 3,240 bytes.
const SEATS: u32 = 800;
const STOPPED: usize = 200;
const READING: usize = 50;
/// These stop as well, and look again around the moment at which they are closed.
const LATE: u64 = 16;
/// `push.send_timeout_s`: for so long the stopped are carried, and the churn goes on. The relay ticks ten times as
/// often as it usually does, so about as much passes as in a minute.
const PATIENCE_S: u64 = 10;
/// What a viewer is allowed to cost while it does not read, in bytes.
const A_VIEWER_MAX: u64 = 40 * 1024;

type Socket = WebSocketStream<TcpStream>;

/// A viewer with a small receive buffer, so that what it does not read stays at the hub.
async fn open(hub: &str, event: i64) -> Socket {
    let host = hub.strip_prefix("http://").expect("a test's hub speaks http");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(host.parse().unwrap()).await.unwrap();
    let (mut socket, _) = client_async(format!("ws://{host}/api/events/{event}/live"), stream).await.unwrap();
    let first = socket.next().await.expect("the hub speaks first").unwrap();
    assert!(matches!(Frame::decode(&first.into_data()), Ok(Frame::Resync { .. })));
    socket
}

/// Reads every frame; they follow one another without a gap. `read` is the number of the last.
fn read_on(mut socket: Socket, read: Arc<AtomicU64>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut last = None;
        while let Some(Ok(message)) = socket.next().await {
            let Wire::Binary(bytes) = message else { continue };
            let (head, since) = match Frame::decode(&bytes).expect("a frame") {
                Frame::Delta { head, .. } => (head, head.at.frame - 1),
                Frame::Span { head, since, .. } | Frame::Range { head, since, .. } => (head, since),
                other => panic!("no gap, and no resync: {other:?}"),
            };
            assert!(last.is_none_or(|last| last == since), "what follows on {since} after {last:?}");
            last = Some(head.at.frame);
            read.store(head.at.frame, Ordering::Relaxed);
        }
    })
}

/// Does not read for so long, then to the end, or for two seconds. Returns the code that it was closed with, if any.
async fn stop_for(mut socket: Socket, pause: Duration) -> Option<u16> {
    tokio::time::sleep(pause).await;
    let reading = async {
        loop {
            match socket.next().await {
                Some(Ok(Wire::Close(close))) => return close.map(|c| u16::from(c.code)),
                Some(Ok(_)) => {}
                _ => return None,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(2), reading).await.ok().flatten()
}

/// Flips every seat, in one commit.
async fn flip(pool: &PgPool, event: i64, status: Status) {
    let mut tx = pool.begin().await.unwrap();
    let now = sqlx::query_scalar("select db_clock()").fetch_one(&mut *tx).await.unwrap();
    let rows: Vec<(i32, i32)> = sqlx::query_as(
        "update event_seat set status = $2, version = version + 1 where event_id = $1 returning seat_no, version",
    )
    .bind(event)
    .bind(i16::from(status))
    .fetch_all(&mut *tx)
    .await
    .unwrap();
    let change = |&(seat_no, version)| SeatChange { seat_no, status, version, held_until: None };
    outbox::append(&mut tx, event, now, &rows.iter().map(change).collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
}

/// Open maps, as the hub says.
async fn sockets(http: &reqwest::Client, hub: &Binary) -> usize {
    let text = http.get(format!("{}/metrics", hub.url())).send().await.unwrap().text().await.unwrap();
    let line = text.lines().find(|line| !line.starts_with('#') && line.contains("sockets ")).expect("a gauge");
    line.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stop_cost_nothing_but_their_buffers() {
    let database = Database::new().await;
    let event = Stage { hall: Hall { rows: 20, seats_a_row: SEATS / 20 }, ..Stage::default() }.open(&database).await;
    let patience = PATIENCE_S.to_string();
    let more = [("FULLHOUSE__PUSH__SEND_TIMEOUT_S", patience.as_str()), ("FULLHOUSE__RELAY__TICK_MS", "10")];
    let hub = Binary::serve(&database.config().await, &more).await;
    let http = reqwest::Client::new();
    let mut map = Map::open(hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let snapshots = map.snapshots;
    let mut statuses = [Blocked, Available].into_iter().cycle();
    let mut churn = async |map: &mut Map| {
        let status = statuses.next().expect("it goes round");
        flip(database.pool(), event, status).await;
        map.until_seat(SEATS as i32 - 1, status).await;
    };
    // What is made once is made before anything is measured. The ring goes on growing to its own 2 MB, once for all.
    for _ in 0..20 {
        churn(&mut map).await;
    }
    let mut readers = Vec::new();
    for _ in 0..READING {
        let read = Arc::new(AtomicU64::new(0));
        readers.push((read.clone(), read_on(open(hub.url(), event).await, read)));
    }
    let mut stopped = Vec::new();
    for _ in 0..STOPPED {
        stopped.push(open(hub.url(), event).await);
    }
    let mut late = VecDeque::new();
    for _ in 0..LATE {
        late.push_back(open(hub.url(), event).await);
    }
    let all = 1 + READING + STOPPED + LATE as usize;
    assert_eq!(sockets(&http, &hub).await, all);
    // They look again from a second before they are closed until two after.
    let looks: Vec<_> = (0..LATE)
        .map(|n| Duration::from_millis((PATIENCE_S - 1) * 1000 + n * 200))
        .map(|pause| tokio::spawn(stop_for(late.pop_front().expect("as many"), pause)))
        .collect();

    let (before, first) = (hub.resident_bytes(), map.track.at().frame);
    let (mut most, mut frames) = (before, 0);
    let until = Instant::now() + Duration::from_secs(PATIENCE_S) + HUNG;
    loop {
        churn(&mut map).await;
        most = most.max(hub.resident_bytes());
        let carried = sockets(&http, &hub).await;
        if carried >= 1 + READING + STOPPED {
            frames = map.track.at().frame - first; // while every one of them was carried
        }
        if carried == 1 + READING {
            break;
        }
        assert!(Instant::now() < until, "{carried} sockets are carried still");
    }
    let size = (fullhouse_protocol::frames::HEADER_BYTES as u64) + 4 * u64::from(SEATS);
    let (queued, grown) = (frames * size * STOPPED as u64, most - before);
    eprintln!(
        "{frames} frames of {size} bytes while {STOPPED} did not read: queues would hold {} MiB, the hub grew by {} KiB to {} MiB",
        queued >> 20,
        grown >> 10,
        most >> 20
    );
    let allowed = A_VIEWER_MAX * (STOPPED as u64 + LATE);
    assert!(queued > 8 * allowed, "too little passed to prove anything: {queued} bytes");
    assert!(grown < allowed, "the hub grew by {grown} bytes, {allowed} are allowed");

    // The others have had every frame, and so has the map, which never had to begin again.
    let at = map.track.at().frame;
    for (read, reader) in &readers {
        eventually("a reader has the last frame", || async { (read.load(Ordering::Relaxed) == at).then_some(()) })
            .await;
        assert!(!reader.is_finished());
    }
    assert_eq!((map.snapshots, map.closed_with.len()), (snapshots, 0));
    equals_the_database(&mut map, database.pool(), event).await;
    // Who looks again in time is told; who does not, finds the line dead behind what its own buffers held.
    let mut codes = Vec::new();
    for look in looks {
        codes.extend(look.await.expect("a late reader came to grief"));
    }
    assert!(!codes.is_empty() && codes.iter().all(|code| *code == close::TOO_SLOW), "{codes:?}");
    for socket in stopped {
        let (mut stream, mut rest) = (socket.into_inner(), Vec::new());
        let _ = stream.read_to_end(&mut rest).await; // reset or closed
        assert!(rest.len() as u64 <= A_VIEWER_MAX, "{} bytes were kept for one that did not read", rest.len());
    }
    hub.stop().await;
    for (_, reader) in readers {
        reader.await.expect("a reader came to grief");
    }
    naive_queues_grow(frames, size, STOPPED as u64);
    database.finish().await;
}

/// The control: a queue a viewer, without a bound, as long as nobody reads.
fn naive_queues_grow(frames: u64, size: u64, viewers: u64) {
    let before = resident_bytes("self");
    let mut queues: Vec<VecDeque<Vec<u8>>> = (0..viewers).map(|_| VecDeque::new()).collect();
    for frame in 0..frames {
        for queue in &mut queues {
            queue.push_back(vec![frame as u8 | 1; size as usize]);
        }
    }
    let grown = resident_bytes("self").saturating_sub(before);
    let held: u64 = queues.iter().flatten().map(|frame| frame.len() as u64).sum();
    assert_eq!(held, frames * size * viewers);
    // Other tests share this process, and may give something back meanwhile.
    assert!(grown > held / 2, "the fault exists: {held} bytes are queued, the process grew by {grown}");
}
