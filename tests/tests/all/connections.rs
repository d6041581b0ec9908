//! Connections of one address do not shut the door for others, nor for whoever shares the address.

use std::net::IpAddr;

use fullhouse_tests::{
    HUNG,
    database::Database,
    eventually,
    fan::{Answer, Fan},
    hub::Hub,
    proxy::Proxy,
};
use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use tokio::{io::AsyncReadExt, net::TcpStream};

const ALL: usize = 40;

/// Connections that are opened and never say anything.
async fn idle(hub: &Hub, count: usize) -> Vec<TcpStream> {
    let address = hub.url().trim_start_matches("http://").to_owned();
    join_all((0..count).map(|_| TcpStream::connect(address.clone()))).await.into_iter().map(Result::unwrap).collect()
}

/// Asks once, from an address of its own.
async fn asks_from(hub: &Hub, address: &str) -> Option<StatusCode> {
    let address: IpAddr = address.parse().unwrap();
    let client = reqwest::Client::builder().local_address(address).timeout(HUNG / 10).build().unwrap();
    client.get(format!("{}/api/events", hub.url())).send().await.ok().map(|answer| answer.status())
}

#[tokio::test]
async fn who_opens_connections_and_says_nothing_shuts_nobody_out() {
    for (an_address, from_elsewhere) in [(ALL, None), (ALL / 4, Some(StatusCode::OK))] {
        let database = Database::new().await;
        let mut config = database.config().await;
        (config.http.connections_max, config.http.connections_an_address_max) = (ALL, an_address);
        let hub = Hub::start(config).await;
        let silent = idle(&hub, ALL).await;
        // The control: as many as there are for one address, and nobody else is answered.
        assert_eq!(asks_from(&hub, "127.0.0.2").await, from_elsewhere, "{an_address} an address");
        if an_address < ALL {
            // Whoever shares it is refused at most as long as all of them may have a request on its way.
            eventually("the longest idle makes room", || async {
                (asks_from(&hub, "127.0.0.1").await == from_elsewhere).then_some(())
            })
            .await;
            let read = silent.into_iter().map(|mut stream| async move {
                tokio::time::timeout(HUNG / 5, stream.read(&mut [0; 1]))
                    .await
                    .is_ok_and(|read| read.is_ok_and(|n| n == 0))
            });
            let closed = join_all(read).await.into_iter().filter(|closed| *closed).count();
            assert!(closed > ALL - an_address, "{closed} were closed, or made room");
        } else {
            assert_eq!(asks_from(&hub, "127.0.0.1").await, None);
        }
        hub.stop().await;
        database.finish().await;
    }
}

async fn asks_once(fan: &Fan) -> Option<Answer> {
    Answer::read(fan.request(Method::GET, "/api/session").send().await.ok()?).await.ok()
}

/// Six connections each, as browsers have them: more than one address may have.
#[tokio::test]
async fn buyers_behind_one_address_are_all_answered_though_they_have_more_connections_than_it_may() {
    let database = Database::new().await;
    let mut config = database.config().await;
    config.http.connections_an_address_max = 60;
    let hub = Hub::start(config).await;
    let buyers: Vec<Fan> = (0..20).map(|_| Fan::stranger(&hub.url())).collect();
    for round in 0..3 {
        for buyer in &buyers {
            let answers = join_all((0..6).map(|_| buyer.get("/api/events"))).await;
            assert!(answers.iter().all(|answer| answer.status == StatusCode::OK), "round {round}");
        }
    }
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_address_that_is_busy_on_all_of_its_connections_is_told_and_a_named_proxy_is_not() {
    let database = Database::new().await;
    let proxy = Proxy::start().await;
    let mut config = database.config_through(&proxy);
    config.http.request_timeout_s = 2;
    config.http.connections_an_address_max = 4;
    config.http.trusted_proxies = vec!["127.0.0.3".to_owned()];
    config.auth.session_cache_s = 0;
    let hub = Hub::start(config).await;
    let fan = Fan::sign_up(&hub.url()).await;
    proxy.stall();
    let asks = join_all((0..7).map(|_| asks_once(&fan)));
    let behind_proxy = join_all((0..6).map(|_| asks_from(&hub, "127.0.0.3")));
    let (answers, behind_proxy) = tokio::join!(asks, behind_proxy);
    // The connection that makes room may have a request on its way by then, which is lost: browsers ask again.
    let answers: Vec<Answer> = answers.into_iter().flatten().collect();
    assert!(answers.len() >= 6, "{} of 7", answers.len());
    let (refused, waited): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == StatusCode::TOO_MANY_REQUESTS);
    // One of them may have been asked to end just before its request came, and is served all the same.
    assert!((4..=5).contains(&waited.len()), "{} of {} waited", waited.len(), answers.len());
    assert_eq!(refused[0].code(), "too_many_requests");
    assert_eq!(refused[0].headers["retry-after"], "1");
    assert!(refused[0].body["detail"].as_str().unwrap().contains("connections"));
    assert!(waited.iter().all(|answer| answer.code() == "busy"));
    assert!(!behind_proxy.contains(&Some(StatusCode::TOO_MANY_REQUESTS)), "{behind_proxy:?}");
    proxy.mend();
    eventually("it is answered again", || async { fan.get("/api/session").await.status.is_success().then_some(()) })
        .await;
    hub.stop().await;
    database.finish().await;
}
