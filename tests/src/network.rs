//! The network between tills and a hub, on which everything goes wrong: it cuts connections before a request has arrived
//! and after it was carried out, delays, swallows everything for a while, and lets what it held back arrive late.

use std::{net::SocketAddr, time::Duration};

use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    Calm,
    /// Any piece may be late, or the last of its connection, in either direction.
    Stormy,
    /// Connections stay open and carry nothing; what was sent meanwhile arrives afterwards.
    Silent,
    /// Connections are reset, new ones too.
    Cut,
}

pub struct Network {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    accepting: JoinHandle<()>,
}

impl Network {
    /// Stands before a hub (`http://…`). The same seed has the same dice, though not the same order of connections.
    pub async fn before(hub_url: &str, seed: u64) -> Self {
        let hub = hub_url.strip_prefix("http://").expect("a test's hub speaks http").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the network");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (weather, seen) = watch::channel(Weather::Calm);
        let accepting = tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((client, _)) = listener.accept().await {
                connection += 1;
                tokio::spawn(carry(client, hub.clone(), seen.clone(), seed ^ (connection << 20)));
            }
        });
        Self { address, weather, accepting }
    }

    /// Where clients find the hub.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn turns(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.accepting.abort();
        self.weather.send_replace(Weather::Cut);
    }
}

async fn carry(client: TcpStream, hub: String, mut weather: watch::Receiver<Weather>, seed: u64) {
    if *weather.borrow() == Weather::Cut {
        return;
    }
    let Ok(hub) = TcpStream::connect(hub).await else { return };
    let _ = (client.set_nodelay(true), hub.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_hub, to_hub) = hub.into_split();
    let cut = weather.clone();
    tokio::select! {
        () = pass(from_client, to_hub, cut.clone(), SmallRng::seed_from_u64(seed)) => {}
        () = pass(from_hub, to_client, cut, SmallRng::seed_from_u64(seed + 1)) => {}
        _ = weather.wait_for(|w| *w == Weather::Cut) => {}
    }
}

/// One direction, piece by piece. A connection that ends here ends for both, and takes what was under way with it.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut weather: watch::Receiver<Weather>,
    mut dice: SmallRng,
) {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut piece).await else { return };
        let Ok(now) = weather.wait_for(|w| *w != Weather::Silent).await.map(|w| *w) else { return };
        if now == Weather::Stormy {
            match dice.random_range(0..100) {
                0..6 => return,
                6..18 => sleep(Duration::from_millis(dice.random_range(5..300))).await,
                _ => {}
            }
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
