//! Many viewers on two real nodes, of which one dies or drains: all of them end with the last frame, and with nothing
//! out of order. The crowd is the bench's (`make bench-push` has 18,000 of them).

use fullhouse_tests::{
    binary::Binary,
    viewers::{Crowd, Plan, Speech},
};

use super::*;

const VIEWERS: usize = 2_000;
const ALL_BACK: Duration = Duration::from_secs(20);

/// A crowd does not wait for anything but its sockets, so it has a thread of its own.
async fn with<T: Send + 'static>(crowd: &mut Option<Crowd>, work: impl FnOnce(&mut Crowd) -> T + Send + 'static) -> T {
    let mut its = crowd.take().expect("it comes back");
    let (its, result) = tokio::task::spawn_blocking(move || {
        let result = work(&mut its);
        (its, result)
    })
    .await
    .unwrap();
    *crowd = Some(its);
    result
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_viewers_survive_the_death_of_a_node() {
    let nats = Nats::start().await;
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let config = config(&database, Some(&nats)).await;
    let others = Binary::serve_as(&config, &["api", "relay", "workers"], &[]).await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(Binary::serve_as(&config, &["push"], &[]).await);
    }
    let mut map = Map::open(nodes[0].url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let at = map.track.at();
    let ports: Vec<u16> = nodes.iter().map(Binary::port).collect();
    let plan = Plan {
        ports: ports[1..].to_vec(),
        path: format!("/api/events/{event}/live"),
        position: Some((at.epoch, at.frame)),
        speech: Speech::WebSocket,
        net: 9,
        at_once: 64,
        rate: None,
        return_to: vec![ports[0]],
        receive_buffer: None,
    };
    let mut crowd = Some(Crowd::new(plan, 1_000, 1).unwrap());
    let all_have = |frame: u64| {
        move |crowd: &mut Crowd| {
            crowd.expect(frame);
            crowd.run(ALL_BACK, |crowd| crowd.lacking() == 0 && crowd.open() == VIEWERS).unwrap()
        }
    };
    let came = move |crowd: &mut Crowd| {
        crowd.grow(VIEWERS);
        crowd.run(ALL_BACK, |crowd| crowd.open() == VIEWERS).unwrap()
    };
    assert!(with(&mut crowd, came).await);
    set_now(database.pool(), event, 0, Blocked).await;
    map.until_seat(0, Blocked).await;
    assert!(with(&mut crowd, all_have(map.track.at().frame)).await, "everybody has a frame");

    // One node dies in the middle of changes; then the other one is told to stop, in the middle of others.
    for (first, is_killed) in [(1, true), (11, false)] {
        set_now(database.pool(), event, first, Blocked).await;
        let node = nodes.pop().expect("three of them");
        let began = Instant::now();
        let going = tokio::spawn(async move { if is_killed { node.kill().await } else { node.stop().await } });
        for seat in first + 1..first + 10 {
            set_now(database.pool(), event, seat, Blocked).await;
        }
        map.until_seat(first + 9, Blocked).await;
        let is_there = with(&mut crowd, all_have(map.track.at().frame)).await;
        let crowd = crowd.as_ref().expect("it is back");
        eprintln!("{VIEWERS} viewers are up to date {:.1} s after a node went", began.elapsed().as_secs_f64());
        assert!(is_there, "{} have not had the last frame, {} are open", crowd.lacking(), crowd.open());
        assert_eq!((crowd.tally.wrong, crowd.tally.resyncs), (0, 0), "nothing out of order, nobody had to begin again");
        assert_eq!(
            crowd.tally.closed.keys().collect::<Vec<_>>(),
            if is_killed { vec![] } else { vec![&close::DRAINING] }
        );
        going.await.unwrap();
    }
    drop(crowd);
    equals_the_database(&mut map, database.pool(), event).await;
    for node in nodes {
        node.stop().await;
    }
    others.stop().await;
    database.finish().await;
}

/// What a node carries of one address is bounded, and whoever is turned away hears why.
#[tokio::test]
async fn an_address_has_so_many_viewers_and_no_more() {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let mut config = config(&database, None).await;
    config.push.sockets_an_address_max = 30;
    let hub = Hub::start(config).await;
    let plan = Plan {
        ports: vec![hub.url().rsplit(':').next().unwrap().parse().unwrap()],
        path: format!("/api/events/{event}/live"),
        position: None,
        speech: Speech::WebSocket,
        net: 10,
        at_once: 8,
        rate: None,
        return_to: Vec::new(),
        receive_buffer: None,
    };
    let [mut venue, mut home] =
        [plan.clone(), Plan { net: 11, ..plan }].map(|plan| Some(Crowd::new(plan, 1_000, 2).unwrap()));
    let fill = move |crowd: &mut Crowd| {
        crowd.grow(40);
        crowd.run(HUNG, |crowd| crowd.tally.closed.get(&close::TOO_MANY_SOCKETS) == Some(&10)).unwrap()
    };
    assert!(with(&mut venue, fill).await, "ten of forty are told that there are too many");
    assert_eq!(venue.as_ref().map(Crowd::open), Some(30));
    let come = move |crowd: &mut Crowd| {
        crowd.grow(20);
        crowd.run(HUNG, |crowd| crowd.open() == 20).unwrap()
    };
    assert!(with(&mut home, come).await, "another address has places of its own");
    drop((venue, home));
    hub.stop().await;
    database.finish().await;
}
