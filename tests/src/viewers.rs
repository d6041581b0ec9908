//! A crowd of viewers, for load: one thread, one epoll set, tens of bytes a connection.
//!
//! Each viewer comes from one of many loopback addresses, takes whatever is sent and keeps only what a bench or a
//! test asks for: how many frames came, how late, and whether one was missing or out of order. One that is sent
//! away, or whose node dies, returns as a browser would: with full jitter, naming its position.
//!
//! Every server is measured by the same crowd. What is sent begins with the 40 bytes of a frame's header
//! (`protocol/PROTOCOL.md`): its number, and when it was made. The clock of a bench may count in microseconds.

mod reading; // a connection's bytes, without keeping them
mod tally; // what a crowd has seen

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use nix::{
    errno::Errno,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        socket::{
            AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, getsockopt, setsockopt, socket, sockopt,
        },
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};

use self::reading::{Reading, Said};
pub use self::tally::{Histogram, Tally};

/// Viewers of one address.
const VIEWERS_AN_ADDRESS: usize = 1_000;
const EVENTS: usize = 1_024;
const READ_BYTES: usize = 64 * 1024;
/// A browser's first bound of its jitter, and the last (`assets/hub-client/backoff.ts`).
const JITTER: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// What is not a viewer in the epoll set.
const OTHER: u64 = u64::MAX;

/// Whose viewers they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Speech {
    /// A message is a frame.
    WebSocket,
    /// NATS over a WebSocket: subscribes to `f`, and finds the frame behind a line.
    Nats,
}

/// Where a crowd goes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Of this machine; a viewer takes any.
    pub ports: Vec<u16>,
    /// The address to open, without the position.
    pub path: String,
    /// Names where it stands, as our hub wants it; others know no such thing.
    pub position: Option<(u64, u64)>,
    pub speech: Speech,
    /// `127.<net>.0.1` and on.
    pub net: u8,
    /// Handshakes under way at once.
    pub at_once: usize,
    /// Handshakes a second; `None` for as many as can be.
    pub rate: Option<f64>,
    /// Where it goes when it is sent away or its node dies: where a balancer leads that has noticed. Nowhere if empty.
    pub return_to: Vec<u16>,
    /// Receive buffer in bytes, for a reader that is to be slow; else the kernel's.
    pub receive_buffer: Option<usize>,
}

/// What each connection is just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    /// The request is sent.
    Asked,
    /// The answer has come; a NATS client waits for its `PONG`.
    Greeting,
    Open,
}

/// A viewer with a socket.
struct Viewer {
    stream: TcpStream,
    state: State,
    failures: u8,
    reading: Reading,
}

/// One that has none, and when it will try again.
type Absent = Reverse<(Instant, u32)>;

pub struct Crowd {
    plan: Plan,
    epoll: Epoll,
    viewers: Vec<Option<Viewer>>,
    /// Positions of those that are away, and how often they have failed.
    away: HashMap<u32, ((u64, u64), u8)>,
    returning: BinaryHeap<Absent>,
    /// Beginnings: of answers to handshakes, and of headers that came in two parts.
    partly: HashMap<u32, Vec<u8>>,
    wanted: usize,
    under_way: usize,
    open: usize,
    begun_at: Instant,
    random: StdRng,
    buffer: Vec<u8>,
    expected: u64,
    /// Viewers that have not reached `expected`.
    lacking: usize,
    is_paused: bool,
    /// How many units of the frames' clock a second has.
    clock: u64,
    pub tally: Tally,
}

impl Crowd {
    /// `clock` is how many units a second has in the frames' time: 1,000 for a hub's.
    pub fn new(plan: Plan, clock: u64, seed: u64) -> nix::Result<Self> {
        Ok(Self {
            plan,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            viewers: Vec::new(),
            away: HashMap::new(),
            returning: BinaryHeap::new(),
            partly: HashMap::new(),
            wanted: 0,
            under_way: 0,
            open: 0,
            begun_at: Instant::now(),
            random: StdRng::seed_from_u64(seed),
            buffer: vec![0; READ_BYTES],
            expected: 0,
            lacking: 0,
            is_paused: false,
            clock,
            tally: Tally::default(),
        })
    }

    /// Something else that ends a turn when it can be read.
    pub fn watch(&self, other: impl AsFd) -> nix::Result<()> {
        self.epoll.add(other, EpollEvent::new(EpollFlags::EPOLLIN, OTHER))
    }

    /// So many viewers in all, from now on.
    pub fn grow(&mut self, wanted: usize) {
        (self.wanted, self.begun_at) = (wanted, Instant::now());
        self.viewers.reserve_exact(wanted.saturating_sub(self.viewers.len()));
    }

    /// As many as there are to be.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Viewers with an open socket.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Begins to wait for a frame; [`Crowd::lacking`] says who does not have it.
    pub fn expect(&mut self, frame: u64) {
        self.expected = frame;
        let behind = self.viewers.iter().flatten().filter(|viewer| viewer.reading.at.1 < frame).count();
        self.lacking = behind + self.away.values().filter(|((_, has), _)| *has < frame).count();
    }

    pub fn lacking(&self) -> usize {
        self.lacking
    }

    /// Stops reading, or goes on.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Leaves at once, without a word, and without what a closed connection leaves in the kernel for a minute.
    pub fn leave(&mut self) {
        for viewer in self.viewers.drain(..).flatten() {
            let _ = setsockopt(&viewer.stream, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 });
        }
        (self.wanted, self.under_way, self.open, self.lacking) = (0, 0, 0, 0);
        self.away.clear();
        self.returning.clear();
        self.partly.clear();
    }

    /// Turns until `done`, or for so long. Returns whether it was done.
    pub fn run(&mut self, time: Duration, done: impl Fn(&Self) -> bool) -> anyhow::Result<bool> {
        let until = Instant::now() + time;
        while !done(self) {
            if Instant::now() >= until {
                return Ok(false);
            }
            self.turn(Duration::from_millis(20))?;
        }
        Ok(true)
    }

    /// Does what there is to do, after waiting for it for so long at most. Returns whether the other can be read.
    pub fn turn(&mut self, patience: Duration) -> anyhow::Result<bool> {
        self.arrive()?;
        let patience = if self.is_coming() { patience.min(Duration::from_millis(2)) } else { patience };
        if self.is_paused {
            std::thread::sleep(patience.min(Duration::from_millis(10)));
            return Ok(false);
        }
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.epoll.wait(&mut events, EpollTimeout::try_from(patience)?) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let mut other = false;
        let now = self.now();
        for event in &events[..count] {
            match event.data() {
                OTHER => other = true,
                index => self.attend(index as u32, now),
            }
        }
        Ok(other)
    }

    fn is_coming(&self) -> bool {
        self.viewers.len() < self.wanted || !self.returning.is_empty()
    }

    /// The frames' clock.
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since.as_nanos() * u128::from(self.clock) / 1_000_000_000) as u64
    }

    /// Begins as many handshakes as may be under way now.
    fn arrive(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        while self.under_way < self.plan.at_once {
            let index = match self.returning.peek() {
                Some(Reverse((when, index))) if *when <= now => *index,
                _ if self.viewers.len() < self.wanted => {
                    let allowed = self.plan.rate.map_or(usize::MAX, |rate| {
                        (now.duration_since(self.begun_at).as_secs_f64() * rate) as usize + 1
                    });
                    if self.viewers.len() >= allowed {
                        return Ok(());
                    }
                    self.viewers.push(None);
                    let position = self.plan.position.unwrap_or_default();
                    let index = self.viewers.len() as u32 - 1;
                    self.lacking += usize::from(position.1 < self.expected);
                    self.begin(index, position, 0)?;
                    continue;
                }
                _ => return Ok(()),
            };
            self.returning.pop();
            if let Some((at, failures)) = self.away.remove(&index) {
                self.begin(index, at, failures)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, index: u32, at: (u64, u64), failures: u8) -> anyhow::Result<()> {
        let stream = self.reach(index, failures > 0)?;
        self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLOUT, index.into()))?;
        self.viewers[index as usize] =
            Some(Viewer { stream, state: State::Connecting, failures, reading: Reading::new(at) });
        self.under_way += 1;
        Ok(())
    }

    /// A connection that is under way, from the viewer's own address.
    fn reach(&mut self, index: u32, again: bool) -> anyhow::Result<TcpStream> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket: OwnedFd = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        if let Some(bytes) = self.plan.receive_buffer {
            setsockopt(&socket, sockopt::RcvBuf, &bytes)?;
        }
        let house = index as usize / VIEWERS_AN_ADDRESS;
        let from = Ipv4Addr::new(127, self.plan.net, (house / 250) as u8, (1 + house % 250) as u8);
        use std::os::fd::AsRawFd;
        bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0)))?;
        let ports = if again { &self.plan.return_to } else { &self.plan.ports };
        let port = ports[self.random.random_range(0..ports.len())];
        match connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))) {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(socket)),
            Err(error) => Err(error.into()),
        }
    }

    fn attend(&mut self, index: u32, now: u64) {
        let Some(viewer) = self.viewers.get_mut(index as usize).and_then(Option::as_mut) else { return };
        if viewer.state == State::Connecting {
            let failed = getsockopt(&viewer.stream, sockopt::SocketError) != Ok(0);
            if failed || !self.ask(index) {
                self.lose(index, None);
            }
            return;
        }
        let count = match viewer.stream.read(&mut self.buffer) {
            Ok(0) => return self.lose(index, None),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(_) => return self.lose(index, None),
        };
        let buffer = std::mem::take(&mut self.buffer);
        if self.partly.is_empty() {
            self.take(index, &buffer[..count], now);
        } else {
            match self.partly.remove(&index) {
                None => self.take(index, &buffer[..count], now),
                Some(mut before) => {
                    before.extend_from_slice(&buffer[..count]);
                    self.take(index, &before, now);
                }
            }
        }
        self.buffer = buffer;
    }

    /// Sends the handshake. Returns whether it could be sent.
    fn ask(&mut self, index: u32) -> bool {
        let Some(viewer) = self.viewers[index as usize].as_mut() else { return false };
        let (epoch, frame) = viewer.reading.at;
        let position = match self.plan.position {
            Some(_) => format!("?epoch={epoch}&frame={frame}"),
            None => String::new(),
        };
        let request = format!(
            "GET {}{position} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.plan.path
        );
        viewer.state = State::Asked;
        let sent = viewer.stream.write(request.as_bytes()).is_ok_and(|count| count == request.len());
        sent && self
            .epoll
            .modify(&viewer.stream, &mut EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP, index.into()))
            .is_ok()
    }

    /// What has come, from where its beginning was understood.
    fn take(&mut self, index: u32, mut bytes: &[u8], now: u64) {
        loop {
            let Some(viewer) = self.viewers[index as usize].as_mut() else { return };
            match viewer.state {
                State::Connecting => return,
                State::Asked => {
                    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { break };
                    if !bytes.starts_with(b"HTTP/1.1 101") {
                        self.tally.refused += 1;
                        return self.lose(index, None);
                    }
                    bytes = &bytes[end + 4..];
                    match self.plan.speech {
                        Speech::WebSocket => self.opened(index),
                        Speech::Nats => {
                            let hello = b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB f 1\r\nPING\r\n";
                            let _ = viewer.stream.write(&reading::masked(2, hello));
                            viewer.state = State::Greeting;
                        }
                    }
                }
                State::Greeting => {
                    let pong = b"PONG\r\n";
                    let Some(at) = bytes.windows(pong.len()).position(|some| some == pong) else { break };
                    bytes = &bytes[at + pong.len()..];
                    // The server's first ping may come with it.
                    if let Some(rest) = bytes.strip_prefix(b"PING\r\n") {
                        bytes = rest;
                        let _ = viewer.stream.write(&reading::masked(2, pong));
                    }
                    self.opened(index);
                }
                State::Open => {
                    let was = viewer.reading.at.1;
                    let (used, said) = viewer.reading.take(bytes, self.plan.speech, now, &mut self.tally);
                    bytes = &bytes[used..];
                    let is = viewer.reading.at.1;
                    self.lacking -= usize::from(was < self.expected && is >= self.expected);
                    match said {
                        Some(Said::Ping) => _ = viewer.stream.write(&reading::masked(10, b"")),
                        Some(Said::NatsPing) => _ = viewer.stream.write(&reading::masked(2, b"PONG\r\n")),
                        Some(Said::Close { code, within_ms }) => {
                            self.tally.close(code);
                            return self.lose(index, within_ms);
                        }
                        None => break,
                    }
                }
            }
            if bytes.is_empty() {
                return;
            }
        }
        if !bytes.is_empty() {
            self.partly.insert(index, bytes.to_vec());
        }
    }

    fn opened(&mut self, index: u32) {
        let Some(viewer) = self.viewers[index as usize].as_mut() else { return };
        (viewer.state, viewer.failures) = (State::Open, 0);
        self.under_way -= 1;
        self.open += 1;
    }

    /// The socket is no more; the viewer returns if it is one that does.
    fn lose(&mut self, index: u32, within_ms: Option<u64>) {
        let Some(viewer) = self.viewers[index as usize].take() else { return };
        match viewer.state {
            State::Open => self.open -= 1,
            _ => self.under_way -= 1,
        }
        self.partly.remove(&index);
        self.tally.lost += 1;
        let bound = match within_ms {
            Some(ms) => Duration::from_millis(ms),
            None => JITTER.1.min(JITTER.0 * 2_u32.pow(u32::from(viewer.failures.min(10)))),
        };
        if !self.plan.return_to.is_empty() {
            let when = Instant::now() + bound.mul_f64(self.random.random());
            self.away.insert(index, (viewer.reading.at, viewer.failures.saturating_add(1)));
            self.returning.push(Reverse((when, index)));
        } else {
            self.lacking -= usize::from(viewer.reading.at.1 < self.expected);
        }
    }
}
