//! The listener and its connections: bounded in number, patient with requests under way, cut off when they dawdle.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{Router, body::Body, extract::ConnectInfo};
use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use nix::sys::socket::{setsockopt, sockopt::TcpUserTimeout};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream, lookup_host},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use crate::config::Config;

/// Half a million fans arrive at once; the kernel caps this at its own `somaxconn`.
const BACKLOG: u32 = 65_535;
/// hyper's buffer of a connection starts small and ends here; our bodies are small.
const READ_BUFFER_BYTES_MAX: usize = 64 * 1024;

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
    let idle_timeout = Duration::from_secs(config.http.idle_timeout_s);
    let unread_max_ms = u32::try_from(idle_timeout.as_millis()).unwrap_or(u32::MAX);
    let cut_off = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places, unread_max_ms) => accepted,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let connection = carry(stream, peer, router.clone(), idle_timeout, stop.clone());
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

async fn carry(stream: TcpStream, peer: SocketAddr, router: Router, idle_timeout: Duration, stop: CancellationToken) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {})) }
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
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection broke off");
    }
}
