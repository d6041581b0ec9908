//! A wire to PostgreSQL that can be cut, stalled and slowed, and that can hold back one statement by name.

mod frontend; // what a client says, message by message

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UnixStream},
    sync::watch,
    task::JoinHandle,
};

use self::frontend::Frontend;
use crate::{HUNG, run::run};

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

/// What of a statement is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The statement itself: the server has not seen it.
    Request,
    /// Its answer: the server has carried it out, and the client does not know.
    Answer,
}

pub struct Proxy {
    address: SocketAddr,
    wire: watch::Sender<Wire>,
    trap: Arc<Mutex<Option<Trap>>>,
    accepting: JoinHandle<()>,
}

/// Set for the next statement that begins with `word`, on whichever connection.
struct Trap {
    word: &'static str,
    side: Side,
    line: Line,
}

/// The two ends of one holding back.
#[derive(Clone)]
struct Line {
    caught: watch::Sender<bool>,
    let_go: watch::Receiver<bool>,
}

impl Line {
    /// Says that it has come, and waits until it may pass.
    async fn hold(&mut self) {
        self.caught.send_replace(true);
        let _ = self.let_go.wait_for(|go| *go).await; // dropped: whoever set it has gone, and it may pass
    }
}

/// A statement that is held back, or will be. Dropping it lets it go.
pub struct Held {
    what: String,
    caught: watch::Receiver<bool>,
    let_go: watch::Sender<bool>,
}

impl Held {
    /// Waits until it has come.
    pub async fn caught(&mut self) {
        let caught = tokio::time::timeout(HUNG, self.caught.wait_for(|caught| *caught)).await;
        assert!(matches!(caught, Ok(Ok(_))), "never came: {}", self.what);
    }

    /// Lets it pass, and everything after it.
    pub fn let_go(self) {
        self.let_go.send_replace(true);
    }
}

impl Proxy {
    /// Stands before the run's PostgreSQL.
    pub async fn start() -> Self {
        let upstream = run().await.socket();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the proxy");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (wire, state) = watch::channel(Wire::Whole);
        let trap = Arc::new(Mutex::new(None));
        let traps = trap.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, upstream.clone(), state.clone(), traps.clone()));
            }
        });
        Self { address, wire, trap, accepting }
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

    /// Holds back the next statement that begins with `word` (in upper case), or its answer.
    pub fn hold_next(&self, word: &'static str, side: Side) -> Held {
        let (caught, is_caught) = watch::channel(false);
        let (go, let_go) = watch::channel(false);
        let trap = Trap { word, side, line: Line { caught, let_go } };
        let before = self.trap.lock().unwrap_or_else(PoisonError::into_inner).replace(trap);
        assert!(before.is_none(), "one at a time");
        Held { what: format!("{side:?} of {word}"), caught: is_caught, let_go: go }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.wire.send_replace(Wire::Cut);
    }
}

type Traps = Arc<Mutex<Option<Trap>>>;

fn spring(traps: &Traps, statement: &str) -> Option<Trap> {
    let mut trap = traps.lock().unwrap_or_else(PoisonError::into_inner);
    trap.take_if(|trap| statement.trim_start().to_ascii_uppercase().starts_with(trap.word))
}

async fn carry(client: tokio::net::TcpStream, upstream: PathBuf, mut wire: watch::Receiver<Wire>, traps: Traps) {
    if *wire.borrow() == Wire::Cut {
        return;
    }
    let Ok(server) = UnixStream::connect(upstream).await else { return };
    let _ = client.set_nodelay(true);
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let cut = wire.clone();
    let (gate, gated) = watch::channel(None);
    tokio::select! {
        biased; // what was held back by whoever cuts the wire never passes
        _ = wire.wait_for(|w| *w == Wire::Cut) => {}
        () = ask(client_read, server_write, cut.clone(), traps, gate) => {}
        () = answer(server_read, client_write, cut, gated) => {}
    }
}

/// Waits as the wire does; `None` once there is no wire.
async fn pass(wire: &mut watch::Receiver<Wire>) -> Option<()> {
    let state = wire.wait_for(|w| *w != Wire::Stalled).await.map(|w| *w).ok()?;
    if let Wire::Slow(by) = state {
        tokio::time::sleep(by).await;
    }
    Some(())
}

/// From client to server, whole messages. `gate` closes the other direction.
async fn ask(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut wire: watch::Receiver<Wire>,
    traps: Traps,
    gate: watch::Sender<Option<Line>>,
) {
    let mut piece = vec![0; 64 * 1024];
    let mut frontend = Frontend::default();
    loop {
        let Ok(length @ 1..) = from.read(&mut piece).await else { return };
        if pass(&mut wire).await.is_none() {
            return;
        }
        frontend.read(&piece[..length]);
        while let Some(message) = frontend.next_message() {
            match message.runs.and_then(|statement| spring(&traps, &statement)) {
                Some(Trap { side: Side::Request, mut line, .. }) => line.hold().await,
                Some(Trap { side: Side::Answer, line, .. }) => _ = gate.send_replace(Some(line)),
                None => {}
            }
            if to.write_all(&message.bytes).await.is_err() {
                return;
            }
        }
    }
}

/// From server to client, as it comes; what comes while the gate is closed is held back there.
async fn answer(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut wire: watch::Receiver<Wire>,
    gated: watch::Receiver<Option<Line>>,
) {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut piece).await else { return };
        if pass(&mut wire).await.is_none() {
            return;
        }
        // One that was let go lets everything after it pass at once.
        let line = gated.borrow().clone();
        if let Some(mut line) = line {
            line.hold().await;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
