//! A printer on the network, one connection at a time, as those with a socket of their own are.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::engine::{Drawer, Engine, Sheet};

/// What its buffer takes before the sender has to wait.
const BUFFER_BYTES: usize = 8192;

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    pub cover_open: bool,
    /// The roll ends when so many bytes of this connection have been worked through.
    pub paper_out_at: Option<usize>,
    /// The wire breaks when so many bytes of this connection have come in.
    pub cut_at: Option<usize>,
    /// Bytes a second that it works through; none: as fast as it can.
    pub bytes_a_second: Option<usize>,
    /// It answers nothing.
    pub mute: bool,
    /// It knows nothing of `GS ( H` and of clearing its buffer.
    pub old: bool,
    /// It takes bytes and prints nothing of them.
    pub stuck: bool,
}

impl Behaviour {
    pub const GOOD: Behaviour = Behaviour {
        cover_open: false,
        paper_out_at: None,
        cut_at: None,
        bytes_a_second: None,
        mute: false,
        old: false,
        stuck: false,
    };
}

struct Inner {
    engine: Engine,
    behaviour: Behaviour,
    /// Not worked through yet.
    buffer: VecDeque<u8>,
    /// Of this connection.
    came: usize,
    worked: usize,
    received: Vec<u8>,
}

/// A running printer. Dropped, it is gone.
pub struct TestPrinter {
    address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestPrinter {
    /// On this machine, at a port of its own.
    ///
    /// # Panics
    /// No port is free.
    pub fn start(dots: usize) -> Self {
        Self::listen("127.0.0.1:0", dots).expect("a port is free")
    }

    /// # Errors
    /// The address is taken.
    pub fn listen(address: &str, dots: usize) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let inner = Inner {
            engine: Engine::new(dots),
            behaviour: Behaviour::GOOD,
            buffer: VecDeque::new(),
            came: 0,
            worked: 0,
            received: Vec::new(),
        };
        let (inner, over) = (Arc::new(Mutex::new(inner)), Arc::new(AtomicBool::new(false)));
        let thread = thread::spawn({
            let (inner, over) = (inner.clone(), over.clone());
            move || serve(&listener, &inner, &over)
        });
        Ok(Self { address, inner, over, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.inner().behaviour = behaviour;
    }

    /// A new roll is put in: it goes on with whatever its buffer still has.
    pub fn load_paper(&self) {
        let mut inner = self.inner();
        inner.behaviour.paper_out_at = None;
        inner.engine.new_roll();
    }

    /// Pieces of paper so far.
    pub fn sheets(&self) -> Vec<Sheet> {
        self.inner().engine.sheets()
    }

    pub fn drawer(&self) -> Vec<Drawer> {
        self.inner().engine.drawer().to_vec()
    }

    /// All bytes that ever came.
    pub fn received(&self) -> Vec<u8> {
        self.inner().received.clone()
    }

    /// Waits until everything that came is worked through, or nothing moves any more.
    pub fn settle(&self) {
        let mut last = (usize::MAX, usize::MAX);
        loop {
            let now = {
                let inner = self.inner();
                (inner.received.len(), inner.buffer.len())
            };
            if now == last {
                return;
            }
            last = now;
            thread::sleep(Duration::from_millis(60));
        }
    }
}

impl Drop for TestPrinter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, inner: &Mutex<Inner>, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((stream, _)) => {
                let mut state = inner.lock().unwrap_or_else(PoisonError::into_inner);
                (state.came, state.worked) = (0, 0);
                drop(state);
                let _ = speak(stream, inner, over);
            }
            Err(_) => {
                work(inner, usize::MAX);
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// One connection, until it ends.
fn speak(mut stream: TcpStream, inner: &Mutex<Inner>, over: &AtomicBool) -> std::io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut last = Instant::now();
    while !over.load(Ordering::SeqCst) {
        let mut moved = false;
        let room = {
            let state = inner.lock().unwrap_or_else(PoisonError::into_inner);
            let to_cut = state.behaviour.cut_at.map_or(usize::MAX, |at| at.saturating_sub(state.came));
            if to_cut == 0 {
                return Ok(());
            }
            BUFFER_BYTES.saturating_sub(state.buffer.len()).min(to_cut)
        };
        let mut bytes = vec![0; room];
        match if room == 0 { Err(ErrorKind::WouldBlock.into()) } else { stream.read(&mut bytes) } {
            Ok(0) => return Ok(()),
            Ok(read) => {
                moved = true;
                let answers = take(inner, &bytes[..read]);
                write_all(&mut stream, &answers)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let elapsed = last.elapsed();
        let speed = inner.lock().unwrap_or_else(PoisonError::into_inner).behaviour.bytes_a_second;
        let may = speed.map_or(usize::MAX, |speed| (speed as f64 * elapsed.as_secs_f64()) as usize);
        if may > 0 {
            last = Instant::now();
            let answers = work(inner, may);
            moved |= !answers.is_empty();
            write_all(&mut stream, &answers)?;
        }
        if !moved {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Bytes come in. What is asked in real time is answered now, wherever it stands.
fn take(inner: &Mutex<Inner>, bytes: &[u8]) -> Vec<u8> {
    let mut state = inner.lock().unwrap_or_else(PoisonError::into_inner);
    let mut answers = Vec::new();
    for byte in bytes {
        state.came += 1;
        state.received.push(*byte);
        state.buffer.push_back(*byte);
        let end = state.received.len();
        let last: Vec<u8> = state.received[end.saturating_sub(3)..].to_vec();
        match last[..] {
            [0x10, 0x04, n @ 1..=4] => answers.extend(state.status(n)),
            // Also within a picture, if its dots are not made harmless.
            [0x10, 0x14, 1] => state.engine.pulse(),
            _ => {}
        }
        let clear = [0x10, 0x14, 0x08, 0x01, 0x03, 0x14, 0x01, 0x06, 0x02, 0x08];
        if state.received.ends_with(&clear) && !state.behaviour.old {
            state.buffer.clear();
            state.engine.reset();
        }
    }
    answers
}

/// Works through the buffer, `most` bytes at most, as long as it can print.
fn work(inner: &Mutex<Inner>, most: usize) -> Vec<u8> {
    let mut state = inner.lock().unwrap_or_else(PoisonError::into_inner);
    let mut answers = Vec::new();
    let mut left = most;
    while left > 0 && !state.behaviour.cover_open && !state.behaviour.stuck && !state.engine.is_out() {
        let bytes: Vec<u8> = state.buffer.iter().copied().collect();
        let Some((length, answer)) = state.engine.step(&bytes) else { break };
        state.buffer.drain(..length);
        state.worked += length;
        left = left.saturating_sub(length);
        if state.behaviour.paper_out_at.is_some_and(|at| state.worked >= at) {
            state.behaviour.paper_out_at = None;
            state.engine.ends_after(0);
        }
        let old = state.behaviour.old && answer.first() == Some(&0x37);
        if !state.behaviour.mute && !old {
            answers.extend(answer);
        }
    }
    answers
}

impl Inner {
    fn status(&self, n: u8) -> Option<u8> {
        if self.behaviour.mute {
            return None;
        }
        let (out, open) = (self.engine.is_out(), self.behaviour.cover_open);
        let bits = match n {
            1 => u8::from(out || open) << 3,
            2 => u8::from(open) << 2 | u8::from(out) << 5,
            4 if out => 0x6c,
            _ => 0,
        };
        Some(0x12 | bits)
    }
}
