//! An open map: a socket, and a cursor into its room's ring.
//!
//! Invariants
//! - There is no queue. What a viewer has not taken yet is in the ring, shared with everybody; one that
//!   falls off the ring is told to resync.
//! - The server speaks first and only; what a client sends is bounded, and hardly looked at.
//! - A viewer that takes nothing, or gives no sign of life, is closed within a stated time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use fullhouse_protocol::{
    close,
    frames::{HEADER_BYTES, Position},
};
use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, interval_at, sleep_until, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        error::CapacityError,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};

use super::{
    Rooms,
    room::{Next, Room},
};

/// The largest message that a client may send, though there is nothing to say.
const INPUT_BYTES_MAX: usize = 1024;
/// Messages that a client may send between two of our pings; a browser answers each with one pong.
const INPUT_MESSAGES_MAX: u32 = 30;
/// tungstenite fills this with zeros each time it looks whether there is something to read.
const READ_BUFFER_BYTES: usize = 256;
/// How long a viewer that is ahead of this node waits for it, before it has to look for another.
const AHEAD_MAX: Duration = Duration::from_secs(5);
/// How long a client may take to answer our close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Viewers of a node that drains return within this, each after a random part of it.
const RETURN_WITHIN_MS: u32 = 5_000;

/// Why it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With a close code.
    Close(u16),
    /// The client closes: its close is answered in kind.
    Answer,
    /// There is nobody to tell.
    Gone,
}

/// Carries an open map to its end. `read_ahead` is what the client had sent with its handshake.
pub async fn carry<S>(rooms: Rooms, room: Arc<Room>, cursor: Option<Position>, stream: S, read_ahead: Bytes)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut socket = open(stream, read_ahead, rooms.config().frame_changes_max).await;
    let end = follow(&rooms, &room, cursor, &mut socket).await;
    drop(room);
    match end {
        End::Close(code) => {
            let reason = if code == close::DRAINING { RETURN_WITHIN_MS.to_string() } else { String::new() };
            say_goodbye(socket, code, reason).await;
        }
        End::Answer => drop(timeout(CLOSE_TIMEOUT, socket.flush()).await), // tungstenite has made the answer ready
        End::Gone => {}
    }
}

/// Tells a client why it is not let in.
pub async fn turn_away<S>(code: u16, stream: S, read_ahead: Bytes)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    say_goodbye(open(stream, read_ahead, 0).await, code, String::new()).await;
}

async fn open<S>(stream: S, read_ahead: Bytes, frame_changes_max: usize) -> WebSocketStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * (HEADER_BYTES + 4 * frame_changes_max) + 4 * INPUT_BYTES_MAX)
        .max_message_size(Some(INPUT_BYTES_MAX))
        .max_frame_size(Some(INPUT_BYTES_MAX));
    WebSocketStream::from_partially_read(stream, read_ahead.into(), Role::Server, Some(config)).await
}

async fn follow<S>(rooms: &Rooms, room: &Room, mut cursor: Option<Position>, socket: &mut WebSocketStream<S>) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stop = &rooms.0.stop;
    let patience = Duration::from_secs(rooms.config().send_timeout_s);
    let ping_interval = Duration::from_secs(rooms.config().ping_interval_s);
    let mut head = room.watch();
    let mut ping = interval_at(Instant::now() + ping_interval, ping_interval);
    let (mut heard, mut unanswered) = (0, 0);
    let mut ahead_until = None;
    loop {
        head.borrow_and_update();
        match room.next(&mut cursor) {
            Next::Frames(frames) => {
                ahead_until = None;
                for frame in frames {
                    tokio::select! {
                        sent = timeout(patience, socket.send(Message::Binary(frame))) => match sent {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) => return End::Gone,
                            Err(_) => return End::Close(close::TOO_SLOW),
                        },
                        () = stop.cancelled() => return End::Close(close::DRAINING),
                    }
                }
                continue;
            }
            Next::Ahead => _ = ahead_until.get_or_insert_with(|| Instant::now() + AHEAD_MAX),
            Next::Nothing => ahead_until = None,
        }
        tokio::select! {
            () = stop.cancelled() => return End::Close(close::DRAINING),
            changed = head.changed() => if changed.is_err() {
                return End::Close(close::DRAINING); // the room is gone; another node, or this one, opens it anew
            },
            input = socket.next() => {
                (heard, unanswered) = (heard + 1, 0);
                match judge(input) {
                    None if heard <= INPUT_MESSAGES_MAX => {}
                    None => return End::Close(close::BAD_REQUEST),
                    Some(end) => return end,
                }
            }
            _ = ping.tick() => {
                if unanswered == 2 {
                    return End::Close(close::TOO_SLOW);
                }
                (heard, unanswered) = (0, unanswered + 1);
                if !matches!(timeout(patience, socket.send(Message::Ping(Bytes::new()))).await, Ok(Ok(()))) {
                    return End::Gone;
                }
            }
            () = sleep_until(ahead_until.unwrap_or_else(Instant::now)), if ahead_until.is_some() => {
                return End::Close(close::TOO_SLOW);
            }
        }
    }
}

/// Whether what a client sent ends it. It has nothing to say; small texts are put up with, so that a
/// later version of the protocol may say something.
fn judge(input: Option<Result<Message, Error>>) -> Option<End> {
    match input {
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_))) => None,
        Some(Ok(Message::Binary(_) | Message::Frame(_))) => Some(End::Close(close::BAD_REQUEST)),
        Some(Ok(Message::Close(_))) => Some(End::Answer),
        None => Some(End::Gone),
        Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }) | Error::Protocol(_) | Error::Utf8(_))) => {
            Some(End::Close(close::BAD_REQUEST))
        }
        Some(Err(_)) => Some(End::Gone),
    }
}

/// Sends the close and waits a moment for the client's, so that ours is not lost in a reset connection.
async fn say_goodbye<S>(mut socket: WebSocketStream<S>, code: u16, reason: String)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let goodbye = async {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        if socket.close(Some(frame)).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    };
    let _ = timeout(CLOSE_TIMEOUT, goodbye).await; // whoever does not answer is cut off
}

#[cfg(test)]
mod tests;
