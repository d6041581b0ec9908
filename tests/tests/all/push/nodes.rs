//! Several nodes on NATS: any of them carries a viewer on, and NATS itself may go, die and forget.

use fullhouse_tests::{
    provider::{CARD, Provider, key, order, until},
    till::Till,
};
use futures_util::future::join_all;

use fullhouse_protocol::seat::Status::Sold;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_viewer_resumes_on_any_node() {
    let nats = Nats::start().await;
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let first = Hub::start(config(&database, Some(&nats)).await).await;
    let mut map = Map::open(&first.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    set_now(database.pool(), event, 0, Blocked).await;
    map.until_seat(0, Blocked).await;
    let second = Hub::start(config(&database, Some(&nats)).await).await;
    let mut other = Map::open(&second.url(), event).await;
    other.until("the second node reads the stream", |map| map.track.at() == map_at(&first, event)).await;

    let snapshots = map.snapshots;
    map.drop_socket();
    for seat in 1..10 {
        set_now(database.pool(), event, seat, Blocked).await;
        other.until_seat(seat, Blocked).await;
    }
    map.move_to(&second.url());
    map.until_seat(9, Blocked).await;
    // The node that led goes; the other goes on with its numbers.
    first.stop().await;
    set_now(database.pool(), event, 10, Blocked).await;
    map.until_seat(10, Blocked).await;
    assert_eq!(map.snapshots, snapshots);
    equals_the_database(&mut map, database.pool(), event).await;
    second.stop().await;
    database.finish().await;
}

fn map_at(hub: &Hub, event: i64) -> fullhouse_protocol::frames::Position {
    futures_util::FutureExt::now_or_never(hub.parts().rooms.map(event)).unwrap().unwrap().unwrap().at()
}

#[tokio::test]
async fn a_sale_goes_on_without_nats_and_every_map_catches_up() {
    let mut nats = Nats::start().await;
    let database = Database::new().await;
    let event = Stage { hall: Hall { rows: 20, seats_a_row: 20 }, ..Stage::default() }.open(&database).await;
    // How often they take seats in ten seconds is the machine's affair.
    let no_budget = "update event set churn_seats_max = 1000000 where id = $1";
    sqlx::query(no_budget).bind(event).execute(database.pool()).await.unwrap();
    let provider = Provider::start().await;
    let mut settings = config(&database, Some(&nats)).await;
    provider.configure(&mut settings);
    let hubs = [Hub::start(settings.clone()).await, Hub::start(settings).await];
    provider.webhooks_to(&hubs[0].url()).await;
    let mut maps = Vec::new();
    for hub in hubs.iter().chain(&hubs) {
        let mut map = Map::open(&hub.url(), event).await;
        map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
        maps.push(map);
    }
    let mut fans = many(&database, &hubs[0].url(), 29).await;
    let buyers = fans.split_off(19);
    let till = Till::enrol(&database, &hubs[0].url(), "Counter 1").await;
    nats.stop().await;
    // Purchases go through as holds do: a row of the last seats, at both hubs.
    for seat in 380..390 {
        let till = till.at(&hubs[seat as usize % 2].url());
        let held = till.hold(event, &[seat]).await.ok();
        assert_eq!(till.sell_for_cash(&held, 5_000).await.ok()["order"]["state"], "confirmed");
    }
    let stopped = Instant::now();
    // By card too: the rest of that row, each at the other hub than the one before.
    let by_card = join_all(buyers.iter().enumerate().map(|(n, fan)| {
        let fan = fan.at(&hubs[n % 2].url());
        async move {
            let open = order(&fan, event, &[390 + n as i32]).await;
            fan.pay(&open, &key(), CARD).await.ok();
            let paid = until(&fan, &open, &["captured"]).await;
            assert_eq!((&paid["state"], &paid["tickets"][0]["state"]), (&json!("confirmed"), &json!("valid")));
        }
    }));
    by_card.await;
    let mut holds = 0;
    while stopped.elapsed() < Duration::from_secs(10) {
        for (number, fan) in fans.iter().enumerate() {
            let fan = fan.at(&hubs[holds % 2].url());
            let answer = fan.hold(event, &[(number * 20 + holds / 20 % 20) as i32]).await;
            if !answer.status.is_success() && answer.code() == "limit_reached" {
                let hold = fan.my_hold(event).await.ok()["hold"]["id"].as_str().unwrap().to_owned();
                fan.release(&hold).await.ok();
            } else {
                answer.ok();
            }
            holds += 1;
        }
    }
    nats.restart().await;
    database.outbox_is_drained().await;
    for map in &mut maps {
        equals_the_database(map, database.pool(), event).await;
        assert!(map.closed_with.is_empty());
        assert!((380..400).all(|seat| map.status(seat) == Sold), "cash and cards");
    }
    let ledger = provider.ledger().await;
    assert_eq!(ledger.captured(), 10 * 3_000);
    ledger.agrees_with(&database).await;
    for hub in hubs {
        hub.stop().await;
    }
    database.finish().await;
}

#[tokio::test]
async fn nats_that_dies_or_loses_its_stream_is_made_up_for() {
    let mut nats = Nats::start().await;
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hub = Hub::start(config(&database, Some(&nats)).await).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    nats.kill().await;
    set_now(database.pool(), event, 1, Blocked).await;
    nats.restart().await;
    map.until_seat(1, Blocked).await;

    let before = map.track.at();
    let client = async_nats::connect(nats.url()).await.unwrap();
    let stream = hub.parts().config.nats.stream.clone();
    async_nats::jetstream::new(client).delete_stream(stream).await.unwrap();
    for seat in 2..6 {
        set_now(database.pool(), event, seat, Blocked).await;
        map.until_seat(seat, Blocked).await;
    }
    assert!(map.track.at().epoch > before.epoch, "what was in the stream is gone, so a new epoch has begun");
    equals_the_database(&mut map, database.pool(), event).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_hub_that_starts_without_nats_shows_what_the_database_says() {
    let mut nats = Nats::start().await;
    let config = |database: Config| Config {
        nats: fullhouse::config::Nats { url: nats.url(), ..database.nats.clone() },
        ..database
    };
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let config = config(database.config().await);
    nats.stop().await;
    let hub = Hub::start(config).await;
    let mut map = Map::open(&hub.url(), event).await;
    assert!(!map.track.at().is_of_relay());
    let epoch = map.track.at().epoch;
    for seat in 0..2 {
        set_now(database.pool(), event, seat, Blocked).await;
        map.until_seat(seat, Blocked).await;
    }
    assert_eq!((map.track.at().epoch, map.snapshots), (epoch, 1), "its frames follow one another too");
    nats.restart().await;
    map.until("the feed has come", |map| map.track.at().is_of_relay()).await;
    set_now(database.pool(), event, 2, Blocked).await;
    map.until_seat(2, Blocked).await;
    equals_the_database(&mut map, database.pool(), event).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_stale_leader_is_refused() {
    let nats = Nats::start().await;
    let mut config = Config::defaults();
    config.nats.url = nats.url();
    let message =
        |text: &'static str| Message { event_id: 1, kind: Kind::Frame, bytes: Bytes::from_static(text.as_bytes()) };
    let (one, two) = (Feed::open(&config).await.unwrap(), Feed::open(&config).await.unwrap());
    let (mut stale, mut leader) = (one.publisher(), two.publisher());
    assert!(stale.published().await.unwrap().is_empty());
    stale.publish(&[message("a"), message("b")]).await.unwrap();
    leader.published().await.unwrap();
    // Until the new one has said something the old one may go on; then it is the new one that has to look again.
    stale.publish(&[message("c")]).await.unwrap();
    assert!(matches!(leader.publish(&[message("d")]).await, Err(Lost::Refused)));
    let mut leader = two.publisher();
    leader.published().await.unwrap();
    leader.publish(&[message("d"), message("e")]).await.unwrap();
    // Twins that say the same are told apart, too.
    assert!(matches!(stale.publish(&[message("d")]).await, Err(Lost::Refused)));
    leader.publish(&[message("f")]).await.unwrap();

    let client = async_nats::connect(nats.url()).await.unwrap();
    let stored = async_nats::jetstream::new(client).get_stream(&config.nats.stream).await.unwrap();
    assert_eq!(stored.cached_info().state.messages, 6);
    stored.purge().await.unwrap();
    leader.publish(&[message("g")]).await.unwrap();
    async_nats::jetstream::new(async_nats::connect(nats.url()).await.unwrap())
        .delete_stream(&config.nats.stream)
        .await
        .unwrap();
    assert!(matches!(leader.publish(&[message("h")]).await, Err(Lost::Discontinued)));
}
