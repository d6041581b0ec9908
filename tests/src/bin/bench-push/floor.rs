//! The floor: a bare epoll loop that answers handshakes, and a loop of `send`. No less can be done with TCP.
//!
//! It drops whoever does not take a message whole, and knows nothing else that a server has to know.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsFd,
};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const LISTENER: u64 = u64::MAX;
const STDIN: u64 = u64::MAX - 1;

/// Until its input ends. The first line that it prints is its port.
pub fn run() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(4096)?)?; // again, with a longer queue
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    let stdin = std::io::stdin();
    epoll.add(stdin.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, STDIN))?;
    println!("{}", listener.local_addr()?.port());

    let mut sockets: Vec<Option<TcpStream>> = Vec::new();
    let mut vacant: Vec<u32> = Vec::new();
    let mut asking: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut events = [EpollEvent::empty(); 1024];
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = epoll.wait(&mut events, EpollTimeout::NONE)?;
        for event in &events[..count] {
            match event.data() {
                STDIN => return Ok(()),
                LISTENER => {
                    while let Ok((stream, _)) = listener.accept() {
                        stream.set_nonblocking(true)?;
                        stream.set_nodelay(true)?;
                        let slot = vacant.pop().unwrap_or_else(|| {
                            sockets.push(None);
                            sockets.len() as u32 - 1
                        });
                        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, slot.into()))?;
                        sockets[slot as usize] = Some(stream);
                        asking.insert(slot, Vec::new());
                    }
                }
                slot => {
                    let slot = slot as u32;
                    let Some(stream) = sockets[slot as usize].as_mut() else { continue };
                    let count = stream.read(&mut buffer).unwrap_or(0);
                    if count == 0 {
                        sockets[slot as usize] = None;
                        asking.remove(&slot);
                        vacant.push(slot);
                        continue;
                    }
                    let Some(request) = asking.get_mut(&slot) else { continue }; // it has nothing to say
                    request.extend_from_slice(&buffer[..count]);
                    let Some((body, length)) = read(request) else { continue };
                    let body = request[body..][..length].to_vec();
                    if request.starts_with(b"POST") {
                        request.clear();
                        let _ = stream.write(b"HTTP/1.1 204 No Content\r\n\r\n");
                        send(&mut sockets, &asking, &mut vacant, &body);
                    } else {
                        let key = header(request, "sec-websocket-key").unwrap_or_default();
                        let answer = format!(
                            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                             Sec-WebSocket-Accept: {}\r\n\r\n",
                            derive_accept_key(key.as_bytes())
                        );
                        let _ = stream.write(answer.as_bytes());
                        asking.remove(&slot);
                    }
                }
            }
        }
    }
}

/// The loop that all of this is for.
fn send(sockets: &mut [Option<TcpStream>], asking: &HashMap<u32, Vec<u8>>, vacant: &mut Vec<u32>, body: &[u8]) {
    let message = [&[0x82, 126, (body.len() >> 8) as u8, body.len() as u8], body].concat();
    for (slot, socket) in sockets.iter_mut().enumerate() {
        let Some(stream) = socket else { continue };
        if asking.len() < 64 && asking.contains_key(&(slot as u32)) {
            continue;
        }
        if !stream.write(&message).is_ok_and(|count| count == message.len()) {
            *socket = None;
            vacant.push(slot as u32);
        }
    }
}

/// Where a request's body is, if all of it is there.
fn read(request: &[u8]) -> Option<(usize, usize)> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let length = header(request, "content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    (request.len() >= end + length).then_some((end, length))
}

fn header(request: &[u8], name: &str) -> Option<String> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&request[..end]).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(is, _)| is.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}
