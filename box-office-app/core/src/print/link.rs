//! The wire to a printer: a socket, or a device's file. Every wait is bounded.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::Path,
    time::{Duration, Instant},
};

use nix::{
    libc::O_NONBLOCK,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

/// Sending came to an end before everything was taken.
#[derive(Debug)]
pub struct Cut {
    /// Bytes that were taken; what became of them nobody knows.
    pub taken: usize,
    /// It took nothing for too long; otherwise the wire broke.
    pub stalled: bool,
}

/// Bytes there and back.
pub trait Link: Send {
    /// Hands all bytes over. `within`: how long it may take none.
    ///
    /// # Errors
    /// [`Cut`].
    fn send(&mut self, bytes: &[u8], within: Duration) -> Result<(), Cut>;

    /// What came, as soon as something did; nothing if nothing came.
    ///
    /// # Errors
    /// The wire is broken.
    fn receive(&mut self, within: Duration) -> io::Result<Vec<u8>>;
}

/// Connects to `host:port`.
///
/// # Errors
/// Nobody answers in time.
pub fn network(address: &str, within: Duration) -> io::Result<Box<dyn Link>> {
    let mut last = io::Error::new(ErrorKind::NotFound, "no such address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                return Ok(Box::new(Polled(stream)));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Opens a device.
///
/// # Errors
/// It is not there, or somebody else has it.
pub fn device(path: &Path) -> io::Result<Box<dyn Link>> {
    let file: File = OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(path)?;
    Ok(Box::new(Polled(file)))
}

/// Something that never blocks, and is waited for.
struct Polled<T>(T);

impl<T: AsFd> Polled<T> {
    /// `false`: nothing happened in time.
    fn wait(&self, what: PollFlags, within: Duration) -> io::Result<bool> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.0.as_fd(), what)], left) {
                Ok(found) => return Ok(found > 0),
                Err(nix::Error::EINTR) if Instant::now() < until => {}
                Err(nix::Error::EINTR) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<T: AsFd + Read + Write + Send> Link for Polled<T> {
    fn send(&mut self, bytes: &[u8], within: Duration) -> Result<(), Cut> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.0.write(&bytes[taken..]) {
                Ok(0) => return Err(Cut { taken, stalled: false }),
                Ok(more) => taken += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => match self.wait(PollFlags::POLLOUT, within) {
                    Ok(true) => {}
                    Ok(false) => return Err(Cut { taken, stalled: true }),
                    Err(_) => return Err(Cut { taken, stalled: false }),
                },
                Err(_) => return Err(Cut { taken, stalled: false }),
            }
        }
        Ok(())
    }

    fn receive(&mut self, within: Duration) -> io::Result<Vec<u8>> {
        if !self.wait(PollFlags::POLLIN, within)? {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; 256];
        match self.0.read(&mut bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes.truncate(read);
                Ok(bytes)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
