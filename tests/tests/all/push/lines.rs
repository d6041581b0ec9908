//! Lines of people travel as maps do: the same rooms, rings and shards, on both feeds, and behind a cache.

use fullhouse::{push::room::Source, serve::Roles};
use fullhouse_protocol::{
    frames::{Head, LINE_EPOCH, Position, encode_line},
    line::Line,
};
use fullhouse_tests::nginx::Nginx;
use tokio_tungstenite::{connect_async, tungstenite::Message as Wire};

use super::*;

/// Gives an event a line, at its first revision.
async fn with_line(database: &Database) -> i64 {
    let event = small_hall(database).await;
    for statement in [
        "insert into draw (event_id, draw_no, commitment, secret, created_at)
         values ($1, 1, sha256('a'), sha256('b'), db_clock())",
        "insert into line (event_id, changed_at, joins_at, closes_at, draw_no, challenge_key, rate_minute, rate_minute_min,
                           rate_minute_max, inside_max)
         values ($1, db_clock(), db_clock(), db_clock() + interval '1 hour', 1, sha256('c'), 60, 0, 600, 100)",
    ] {
        sqlx::query(statement).bind(event).execute(database.pool()).await.unwrap();
    }
    event
}

/// A hub whose workers leave lines alone: only the test changes them.
async fn start(config: Config) -> Hub {
    Hub::start_as(config, Roles { workers: false, ..Roles::ALL }).await
}

/// Somebody joins: something changes, and the revision says so.
async fn join(pool: &PgPool, event: i64) -> u64 {
    let statement = "with joined as (
                       update line set next_number = next_number + 1, revision = revision + 1, changed_at = db_clock()
                       where event_id = $1 returning event_id, next_number - 1 as number, revision),
                     entry as (
                       insert into line_entry (event_id, number, account_id, entry_key, joined_at)
                       select event_id, number, gen_random_uuid(), uuid_send(gen_random_uuid()), db_clock() from joined)
                     select revision from joined";
    let revision: i64 = sqlx::query_scalar(statement).bind(event).fetch_one(pool).await.unwrap();
    revision as u64
}

/// A page that shows the line.
struct Waiting {
    socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
    at: u64,
    joined: i64,
}

impl Waiting {
    async fn open(hub_url: &str, event: i64, from: Option<u64>) -> Self {
        let host = hub_url.replacen("http", "ws", 1);
        let from = from.map(|revision| format!("?epoch={LINE_EPOCH}&frame={revision}")).unwrap_or_default();
        let (socket, _) = connect_async(format!("{host}/api/events/{event}/queue/live{from}")).await.unwrap();
        Self { socket, at: 0, joined: -1 }
    }

    /// Reads until it shows a revision. Each that comes is whole, of this event, and later than the one before.
    async fn until(&mut self, revision: u64) {
        let reading = async {
            while self.at < revision {
                let Some(Ok(message)) = self.socket.next().await else { panic!("the socket was closed") };
                let Wire::Binary(bytes) = message else { continue };
                let Frame::Line { head, json } = Frame::decode(&bytes).unwrap() else { panic!("not a line") };
                let line: Line = serde_json::from_str(&json).unwrap();
                assert!(head.at.frame > self.at, "from {} to {}", self.at, head.at.frame);
                assert_eq!(head.at.epoch, LINE_EPOCH);
                (self.at, self.joined) = (head.at.frame, line.joined);
            }
        };
        tokio::time::timeout(HUNG, reading).await.expect("the line is shown");
    }
}

fn shown(hub: &Hub, event: i64) -> Option<(u64, Source)> {
    let room = futures_util::FutureExt::now_or_never(hub.parts().rooms.line(event))?.ok()??;
    Some((room.at().frame, room.source()))
}

async fn a_line_is_followed(nats: Option<&Nats>) {
    let database = Database::new().await;
    let event = with_line(&database).await;
    let hub = start(config(&database, nats).await).await;
    let mut waiting = Waiting::open(&hub.url(), event, None).await;
    waiting.until(1).await;
    assert_eq!(waiting.joined, 0);
    eventually("its room has a feed", || async { (shown(&hub, event)?.1 == Source::Feed).then_some(()) }).await;
    for expected in 1..=3 {
        let revision = join(database.pool(), event).await;
        waiting.until(revision).await;
        assert_eq!(waiting.joined, expected);
    }

    // Whoever comes back gets the newest, once; whoever polls has it at one address.
    let newest = waiting.at;
    let mut back = Waiting::open(&hub.url(), event, Some(newest - 2)).await;
    back.until(newest).await;
    let mut there = Waiting::open(&hub.url(), event, Some(newest)).await;
    let http = reqwest::Client::new();
    let url = format!("{}/api/events/{event}/queue/frames", hub.url());
    let answer = http.get(&url).send().await.unwrap();
    assert_eq!(answer.headers()["cache-control"], "public, max-age=1");
    let tag = answer.headers()["etag"].clone();
    assert_eq!(tag, format!("\"{LINE_EPOCH}-{newest}\""));
    let (head, frames) = decode_body(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!((head.at.frame, frames.len()), (newest, 1));
    assert!(matches!(&frames[0], Frame::Line { head, .. } if head.at.frame == newest));
    assert_eq!(http.get(&url).header("if-none-match", tag).send().await.unwrap().status(), 304);

    let revision = join(database.pool(), event).await;
    for page in [&mut waiting, &mut back, &mut there] {
        page.until(revision).await;
        assert_eq!(page.at, revision);
    }

    // An event without a line has no such room.
    let plain = Stage { slug: "without-a-line", ..Stage::default() }.open(&database).await;
    let answer = http.get(format!("{}/api/events/{plain}/queue/frames", hub.url())).send().await.unwrap();
    assert_eq!(answer.status(), 404);
    let mut refused = Waiting::open(&hub.url(), plain, None).await;
    let Some(Ok(Wire::Close(Some(closed)))) = refused.socket.next().await else { panic!("not closed with a code") };
    assert_eq!(u16::from(closed.code), close::EVENT_UNKNOWN);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_line_is_followed_in_process() {
    a_line_is_followed(None).await;
}

#[tokio::test]
async fn a_line_is_followed_over_nats() {
    a_line_is_followed(Some(&Nats::start().await)).await;
}

#[tokio::test]
async fn a_line_goes_on_at_another_node_and_never_goes_back() {
    let nats = Nats::start().await;
    let database = Database::new().await;
    let event = with_line(&database).await;
    let settings = config(&database, Some(&nats)).await;
    let first = start(settings.clone()).await;
    for _ in 0..3 {
        join(database.pool(), event).await;
    }
    let mut waiting = Waiting::open(&first.url(), event, None).await;
    waiting.until(4).await;

    // A node that comes later has it from the stream at once, without a look into the database.
    let second = start(settings.clone()).await;
    eventually("the second node has the line", || async {
        (shown(&second, event)? == (4, Source::Feed)).then_some(())
    })
    .await;
    let mut moved = Waiting::open(&second.url(), event, Some(3)).await;
    moved.until(4).await;

    // Somebody who led long ago, and whom the stream believes once more, says what was true then.
    let stale = Feed::open(&settings).await.unwrap();
    let of = |frame| {
        let at = Position { epoch: LINE_EPOCH, frame };
        encode_line(&Head { event_id: event, at, seat_count: 0, committed_at_ms: 0 }, "{}")
    };
    let old = Message { event_id: event, kind: Kind::Line, bytes: of(2) };
    eventually("the stale one is believed", || async {
        let mut publisher = stale.publisher();
        publisher.published().await.ok()?;
        publisher.publish(std::slice::from_ref(&old)).await.ok()
    })
    .await;
    // The leader finds out, and leads again; everybody goes forward only (`until` sees to that).
    for _ in 0..3 {
        let revision = join(database.pool(), event).await;
        waiting.until(revision).await;
        moved.until(revision).await;
    }
    first.stop().await;
    let revision = join(database.pool(), event).await;
    moved.until(revision).await;
    assert_eq!(moved.joined, 7);
    second.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_line_without_a_feed_is_what_the_database_says() {
    let mut nats = Nats::start().await;
    let database = Database::new().await;
    let event = with_line(&database).await;
    let config = config(&database, Some(&nats)).await;
    nats.stop().await;
    let hub = start(config).await;
    let mut waiting = Waiting::open(&hub.url(), event, None).await;
    waiting.until(1).await;
    let revision = join(database.pool(), event).await;
    waiting.until(revision).await;
    assert_eq!(shown(&hub, event).unwrap().1, Source::Database);
    nats.restart().await;
    eventually("the feed has come", || async { (shown(&hub, event)?.1 == Source::Feed).then_some(()) }).await;
    let revision = join(database.pool(), event).await;
    waiting.until(revision).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_line_behind_a_cache_asks_the_hub_once_a_second() {
    let database = Database::new().await;
    let event = with_line(&database).await;
    let hub = start(config(&database, None).await).await;
    let nginx = Nginx::start(&hub.url()).await;
    let url = format!("{}/api/events/{event}/queue/frames", nginx.url());
    let http = reqwest::Client::new();
    let mut hits = 0;
    for _ in 0..50 {
        let answer = http.get(&url).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        hits += usize::from(answer.headers()["x-cache"] == "HIT");
    }
    assert!(hits > 25, "{hits} of 50 came out of the cache");
    let revision = join(database.pool(), event).await;
    eventually("the cache has the present", || async {
        let body = http.get(&url).send().await.ok()?.bytes().await.ok()?;
        (decode_body(&body).ok()?.0.at.frame == revision).then_some(())
    })
    .await;
    let mut through = Waiting::open(&nginx.url(), event, None).await;
    through.until(revision).await;
    nginx.stop().await;
    hub.stop().await;
    database.finish().await;
}
