//! An evening's sale as its actors see it: the harness's own walk through the wire.

use chrono::TimeDelta;
use fullhouse_protocol::seat::Status;
use fullhouse_tests::{
    database::Database,
    fan::{Fan, many},
    hub::Hub,
    map::Map,
    stage::Stage,
    till::Till,
};
use serde_json::json;

#[tokio::test]
async fn what_one_holds_the_others_see_and_what_ends_comes_back() {
    let (database, clock) = Database::with_clock().await;
    let event = Stage::default().open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let fans = many(&database, &hub.url(), 2).await;
    let mut map = Map::open(&hub.url(), event).await;
    assert_eq!(map.track.statuses.iter().filter(|s| *s == Status::Available).count(), 200);

    let hold = fans[0].hold(event, &[0, 1]).await.ok()["hold"].clone();
    map.until_seat(0, Status::Held).await;
    map.until_seat(1, Status::Held).await;
    let lost = fans[1].hold(event, &[1, 2]).await;
    assert_eq!((lost.code(), &lost.body["lost"]), ("seats_unavailable", &json!([1])));

    fans[0].release_seats(hold["id"].as_str().unwrap(), &[0]).await.ok();
    map.until_seat(0, Status::Available).await;
    clock.advance(TimeDelta::seconds(481)).await;
    map.until_seat(1, Status::Available).await;
    assert!(fans[0].my_hold(event).await.ok()["hold"].is_null());
    fans[1].hold(event, &[1, 2]).await.ok();
    map.until_seat(2, Status::Held).await;

    // The first snapshot may have come from a room whose relay had not begun yet; from here on there is one.
    let snapshots = map.snapshots;
    map.drop_socket();
    fans[1].best(event, 3).await.ok();
    map.until("five seats are held", |map| map.track.statuses.iter().filter(|s| *s == Status::Held).count() == 5).await;
    assert_eq!(map.snapshots, snapshots, "frames were enough");

    let till = Till::enrol(&database, &hub.url(), "Counter 1").await;
    let held = till.hold(event, &[100, 101]).await.ok();
    let sale = till.sell_for_cash(&held, 10_000).await.ok();
    assert_eq!((&sale["order"]["state"], &sale["change_minor"]), (&json!("confirmed"), &json!(4_000)));
    map.until_seat(100, Status::Sold).await;
    let stranger = Fan::stranger(&hub.url());
    assert_eq!(stranger.hold(event, &[5]).await.code(), "not_signed_in");

    database.outbox_is_drained().await;
    hub.stop().await;
    database.finish().await;
}
