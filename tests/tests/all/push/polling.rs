//! Those who can't hold a socket, behind an nginx with a cache, set up as `deploy/nginx` has it (B24): however many
//! poll, a hub is asked about once a second.

use std::time::Instant as Began;

use fullhouse_protocol::track::Follower;
use fullhouse_tests::nginx::Nginx;

use super::*;

const POLLING: usize = 300;
const TIME: Duration = Duration::from_secs(3);

/// Requests to an address that the hub has answered.
async fn answered(http: &reqwest::Client, hub: &Hub, route: &str) -> u64 {
    let text = http.get(format!("{}/metrics", hub.url())).send().await.unwrap().text().await.unwrap();
    let of_route = text.lines().filter(|line| line.contains("requests_total{") && line.contains(route));
    of_route.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn a_cache_answers_those_who_poll() {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hub = Hub::start(config(&database, None).await).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let nginx = Nginx::start(&hub.url()).await;
    let http = reqwest::Client::new();
    let before = answered(&http, &hub, "/frames").await;

    let began = Began::now();
    let mut polling = Vec::new();
    for number in 0..POLLING {
        let url = format!("{}/api/events/{event}", nginx.url());
        let client = http.clone();
        polling.push(tokio::spawn(async move {
            let mut follower = Follower::default();
            let snapshot = client.get(format!("{url}/snapshot")).send().await.unwrap().bytes().await.unwrap();
            follower.take(Frame::decode(&snapshot).unwrap());
            let (mut polls, mut tag) = (0_u64, None::<reqwest::header::HeaderValue>);
            while began.elapsed() < TIME {
                let mut request = client.get(format!("{url}/frames"));
                // Half of them name what they have.
                if let Some(tag) = tag.take().filter(|_| number % 2 == 0) {
                    request = request.header("if-none-match", tag);
                }
                let answer = request.send().await.unwrap();
                polls += 1;
                tag = answer.headers().get("etag").cloned();
                if answer.status() == 200 {
                    let body = answer.bytes().await.unwrap();
                    for frame in decode_body(&body).expect("unpacked, and whole").1 {
                        follower.take(frame);
                    }
                } else {
                    assert_eq!(answer.status(), 304);
                }
                tokio::time::sleep(Duration::from_millis(200 + number as u64)).await;
            }
            (follower, polls)
        }));
    }
    let mut seat = 0;
    while began.elapsed() < TIME {
        set_now(database.pool(), event, seat % 40, if seat % 80 < 40 { Blocked } else { Available }).await;
        seat += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    database.outbox_is_drained().await;
    let mut polls = 0;
    let mut followers = Vec::new();
    for task in polling {
        let (follower, its_polls) = task.await.unwrap();
        polls += its_polls;
        followers.push(follower);
    }
    let (spent, asked) = (began.elapsed().as_secs_f64(), answered(&http, &hub, "/frames").await - before);
    eprintln!("{polls} polls of {POLLING} clients in {spent:.1} s: {asked} requests reached the hub");
    assert!(polls > 4 * POLLING as u64, "too few to prove anything: {polls}");
    assert!(asked as f64 <= 2.0 * spent + 3.0, "{asked} requests reached the hub in {spent:.1} s");

    // One more look, when the last change is more than a second old, and everybody is right.
    equals_the_database(&mut map, database.pool(), event).await;
    let truth = truth(database.pool(), event).await;
    let url = format!("{}/api/events/{event}/frames", nginx.url());
    let at = map.track.at();
    let body = eventually("the cache has the present", || async {
        let body = http.get(&url).send().await.ok()?.bytes().await.ok()?;
        (decode_body(&body).ok()?.0.at == at).then_some(body)
    })
    .await;
    for follower in &mut followers {
        decode_body(&body).unwrap().1.into_iter().for_each(|frame| _ = follower.take(frame));
        assert_eq!(follower.track().map(|track| &track.statuses), Some(&truth));
    }
    nginx.stop().await;
    hub.stop().await;
    database.finish().await;
}
