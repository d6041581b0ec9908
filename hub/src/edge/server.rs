//! The listener and its connections: bounded in number, patient with requests under way, cut off when they dawdle.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{Router, body::Body, extract::ConnectInfo};
use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use nix::sys::socket::{setsockopt, sockopt::TcpUserTimeout};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream, lookup_host},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use super::{
    connections::{Connections, Counted},
    problem::Code,
};
use crate::config::Config;

/// Half a million fans arrive at once; the kernel caps this at its own `somaxconn`.
const BACKLOG: u32 = 65_535;
/// hyper's buffer of a connection starts small and ends here; our bodies are small.
const READ_BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Connections beyond those of their address that are told so at the same time; others are closed without a word.
const REFUSALS_MAX: usize = 64;
const REFUSAL_MAX: Duration = Duration::from_secs(1);

/// Listens on `address` (host and port; port 0 takes a free one).
pub async fn listen(address: &str) -> anyhow::Result<TcpListener> {
    let address: SocketAddr =
        lookup_host(address).await.with_context(|| format!("http.listen {address}"))?.next().context("http.listen")?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.context("a socket")?;
    socket.set_reuseaddr(true).context("a socket")?;
    socket.bind(address).with_context(|| format!("listening on {address}"))?;
    socket.listen(BACKLOG).with_context(|| format!("listening on {address}"))
}

/// Accepts until `stop`, then lets the requests under way end, for `http.stop_timeout_s` at most.
pub async fn serve(listener: TcpListener, router: Router, config: Arc<Config>, stop: CancellationToken) {
    let connections = TaskTracker::new();
    let places = Arc::new(Semaphore::new(config.http.connections_max));
    let of_addresses = Connections::new(config.http.connections_an_address_max, &config.http.trusted_proxies);
    let (too_many, refusals) = (Bytes::from(too_many()), Arc::new(Semaphore::new(REFUSALS_MAX)));
    let idle_timeout = Duration::from_secs(config.http.idle_timeout_s);
    let unread_max_ms = u32::try_from(idle_timeout.as_millis()).unwrap_or(u32::MAX);
    let cut_off = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places, unread_max_ms) => accepted,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let Some(counted) = of_addresses.admit(peer.ip()) else {
            if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
                connections.spawn(refuse(stream, too_many.clone(), place));
            }
            continue;
        };
        let connection = carry(stream, peer, counted, router.clone(), idle_timeout, stop.clone());
        let cut_off = cut_off.clone();
        connections.spawn(async move {
            let _place = place;
            cut_off.run_until_cancelled(connection).await;
        });
    }
    drop(listener);
    connections.close();
    let patience = Duration::from_secs(config.http.stop_timeout_s).mul_f32(0.8); // the caller's own patience is longer
    if tokio::time::timeout(patience, connections.wait()).await.is_err() {
        cut_off.cancel();
        connections.wait().await;
    }
}

/// Clients read no answer to what they have not asked yet.
async fn refuse(mut stream: TcpStream, answer: Bytes, _place: Place) {
    let answered = async {
        let _ = stream.read(&mut [0; 8192]).await?;
        stream.write_all(&answer).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(REFUSAL_MAX, answered).await;
}

/// What an address is told that has as many connections as it may, all of them busy.
fn too_many() -> Vec<u8> {
    let (code, title) = (Code::TooManyRequests.name(), Code::TooManyRequests.title());
    let body = json!({
        "type": format!("urn:fullhouse:problem:{code}"), "code": code, "title": title, "status": 429,
        "detail": "This address has as many connections as it may.",
    })
    .to_string();
    let head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\nretry-after: 1";
    format!("{head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

type Place = tokio::sync::OwnedSemaphorePermit;

/// `unread_max_ms`: whoever takes nothing of an answer for so long is cut off by the kernel, or a few
/// thousand of them would hold all connections, and a hall's seats in memory each.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    unread_max_ms: u32,
) -> Option<(TcpStream, SocketAddr, Place)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // A connection that is gone already says so soon enough.
            let _ = stream.set_nodelay(true);
            let _ = setsockopt(&stream, TcpUserTimeout, &unread_max_ms);
            Some((stream, peer, place))
        }
        Err(error) => {
            // A client that left is nothing; too many open files must not become a busy loop.
            tracing::debug!(%error, "a connection was not accepted");
            tokio::time::sleep(Duration::from_millis(20)).await;
            None
        }
    }
}

async fn carry(
    stream: TcpStream,
    peer: SocketAddr,
    counted: Counted,
    router: Router,
    idle_timeout: Duration,
    stop: CancellationToken,
) {
    let service = hyper::service::service_fn(|request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let (router, connection) = (router.clone(), counted.connection.clone());
        connection.busy();
        async move {
            let answer = router.oneshot(request).await.unwrap_or_else(|never| match never {});
            connection.idle();
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle_timeout).max_buf_size(READ_BUFFER_BYTES_MAX);
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = counted.connection.leave.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection broke off");
    }
}
