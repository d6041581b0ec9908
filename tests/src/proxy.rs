//! A wire to PostgreSQL that can be cut, stalled and slowed.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UnixStream},
    sync::watch,
    task::JoinHandle,
};

use crate::run::run;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wire {
    Whole,
    /// Every piece in either direction takes so much longer.
    Slow(Duration),
    /// Connections stay open and carry nothing.
    Stalled,
    /// Connections are reset, new ones too.
    Cut,
}

pub struct Proxy {
    address: SocketAddr,
    wire: watch::Sender<Wire>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Stands before the run's PostgreSQL.
    pub async fn start() -> Self {
        let upstream = run().await.socket();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the proxy");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (wire, state) = watch::channel(Wire::Whole);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, upstream.clone(), state.clone()));
            }
        });
        Self { address, wire, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every connection, and new ones at once, until [`Proxy::mend`].
    pub fn cut(&self) {
        self.wire.send_replace(Wire::Cut);
    }

    /// Connections stay, and nothing passes: what a lost network looks like.
    pub fn stall(&self) {
        self.wire.send_replace(Wire::Stalled);
    }

    pub fn slow(&self, by: Duration) {
        self.wire.send_replace(Wire::Slow(by));
    }

    pub fn mend(&self) {
        self.wire.send_replace(Wire::Whole);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.wire.send_replace(Wire::Cut);
    }
}

async fn carry(client: tokio::net::TcpStream, upstream: PathBuf, mut wire: watch::Receiver<Wire>) {
    if *wire.borrow() == Wire::Cut {
        return;
    }
    let Ok(server) = UnixStream::connect(upstream).await else { return };
    let _ = client.set_nodelay(true);
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let cut = wire.clone();
    tokio::select! {
        () = pass(client_read, server_write, cut.clone()) => {}
        () = pass(server_read, client_write, cut) => {}
        _ = wire.wait_for(|w| *w == Wire::Cut) => {}
    }
}

async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut wire: watch::Receiver<Wire>) {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut piece).await else { return };
        let Ok(state) = wire.wait_for(|w| *w != Wire::Stalled).await.map(|w| *w) else { return };
        if let Wire::Slow(by) = state {
            tokio::time::sleep(by).await;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
