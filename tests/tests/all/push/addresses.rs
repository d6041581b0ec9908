//! The addresses of the live map, and sockets that do not behave.

use super::*;

#[tokio::test]
async fn a_snapshot_is_fetched_once_and_kept() {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hub = Hub::start(config(&database, None).await).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    set_now(database.pool(), event, 1, Blocked).await;
    map.until_seat(1, Blocked).await;
    let slug: String = sqlx::query_scalar("select slug from event where id = $1")
        .bind(event)
        .fetch_one(database.pool())
        .await
        .unwrap();
    let http = reqwest::Client::new();
    for (address, is_snapshot) in [("snapshot", true), ("frames", false)] {
        let url = format!("{}/api/events/{event}/{address}", hub.url());
        let answer = http.get(&url).send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "public, max-age=1");
        let tag = answer.headers()["etag"].clone();
        assert_eq!(tag, format!("\"{}\"", map.track.at()));
        let bytes = answer.bytes().await.unwrap();
        if is_snapshot {
            let Frame::Snapshot { head, statuses } = Frame::decode(&bytes).unwrap() else { panic!() };
            assert_eq!((head, statuses), (map.track.head, map.track.statuses.clone()));
        } else {
            let (head, frames) = decode_body(&bytes).unwrap();
            assert_eq!((head, frames.last().unwrap().head().at), (map.track.head, map.track.at()));
        }
        let by_slug = http.get(format!("{}/api/events/{slug}/{address}", hub.url())).send().await.unwrap();
        assert_eq!((by_slug.status().as_u16(), &by_slug.headers()["etag"]), (200, &tag));
        let again = http.get(&url).header("if-none-match", tag).send().await.unwrap();
        assert_eq!(again.status(), 304);
        let packed = http.get(&url).header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!(
            (&packed.headers()["content-encoding"], &packed.headers()["vary"]),
            (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
        );
        assert_eq!(packed.bytes().await.unwrap()[..2], [0x1f, 0x8b]);
        for event in ["999999", "no-number"] {
            let answer = http.get(format!("{}/api/events/{event}/{address}", hub.url())).send().await.unwrap();
            assert_eq!(answer.status(), 404);
            let problem: serde_json::Value = answer.json().await.unwrap();
            assert_eq!(problem["code"], "event_unknown");
        }
    }
    let plain = http.get(format!("{}/api/events/{event}/live", hub.url())).send().await.unwrap();
    assert_eq!(plain.status(), 400);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_socket_that_is_not_let_in_learns_why() {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let mut config = config(&database, None).await;
    config.push.sockets_max = 1;
    let hub = Hub::start(config).await;
    let host = hub.url().replacen("http", "ws", 1);
    let closed = |path: String| {
        let url = format!("{host}/api/events/{path}");
        async move {
            let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
            loop {
                match socket.next().await {
                    Some(Ok(tokio_tungstenite::tungstenite::Message::Close(Some(close)))) => {
                        return u16::from(close.code);
                    }
                    Some(Ok(_)) => {}
                    other => panic!("not closed with a code: {other:?}"),
                }
            }
        }
    };
    assert_eq!(closed("999999/live".to_owned()).await, close::EVENT_UNKNOWN);
    let too_large = ["epoch=9007199254740992&frame=1", "epoch=1&frame=9007199254740992"]; // 2^53
    for query in ["epoch=1", "epoch=x&frame=1", "frame=-1&epoch=1", "epok=1"].into_iter().chain(too_large) {
        assert_eq!(closed(format!("{event}/live?{query}")).await, close::BAD_REQUEST, "{query}");
    }
    let one = Map::open(&hub.url(), event).await;
    eventually("the one place is taken", || async { (hub.parts().rooms.sockets() == 1).then_some(()) }).await;
    assert_eq!(closed(format!("{event}/live")).await, close::TOO_MANY_SOCKETS);
    drop(one);
    eventually("the place is free again", || async { (hub.parts().rooms.sockets() == 0).then_some(()) }).await;
    let mut next = Map::open(&hub.url(), event).await;
    set_now(database.pool(), event, 1, Blocked).await;
    next.until_seat(1, Blocked).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn the_wire_is_described_as_it_is() {
    let text = std::fs::read_to_string(fullhouse_tests::run::workspace().join("protocol/PROTOCOL.md")).unwrap();
    for code in fullhouse::edge::problem::Code::ALL {
        let row = format!("| `{}` | {} |", code.name(), code.status().as_u16());
        assert!(text.contains(&row), "PROTOCOL.md does not say: {row}");
    }
}
