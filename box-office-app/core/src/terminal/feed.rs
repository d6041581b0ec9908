//! The socket of a map. It lives here, since a web view's timers freeze when its window is hidden.

use std::{sync::atomic::Ordering, time::Duration};

use futures_util::StreamExt;
use reqwest::{
    Method, StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE},
};
use tokio::time;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::{client::generate_key, derive_accept_key},
        protocol::{Role as Side, WebSocketConfig},
    },
};

use super::{AskError, Relay, may::may_follow};

/// The largest frame that a hub makes is far smaller; a whole map of 62,000 seats comes by snapshot.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// One map is open at a time; a moment of overlap while a screen changes.
const SOCKETS_MAX: u32 = 4;
/// The hub pings every 30 s or sooner: without a word for longer, the connection is dead.
const SILENCE_MAX: Duration = Duration::from_secs(90);
const OPEN_WITHIN: Duration = Duration::from_secs(8);

/// What comes over a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedEvent {
    Open,
    Frame(Vec<u8>),
    /// The last: its code is the hub's, or 1006 if the connection broke.
    Closed {
        code: u16,
        reason: String,
    },
}

/// Follows a socket until it ends or `tell` says that nobody listens any more.
pub async fn follow(relay: Relay, target: String, mut tell: impl FnMut(FeedEvent) -> bool) -> Result<(), AskError> {
    if !may_follow(&target) {
        return Err(AskError::NotAllowed);
    }
    let _place = Place::take(&relay)?;
    let (code, reason) = match time::timeout(OPEN_WITHIN, open(&relay, &target)).await {
        Ok(Ok(socket)) if tell(FeedEvent::Open) => read(socket, &mut tell).await,
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(_)) | Err(_) => (1006, String::new()),
    };
    tell(FeedEvent::Closed { code, reason });
    Ok(())
}

async fn open(relay: &Relay, target: &str) -> Result<WebSocketStream<reqwest::Upgraded>, AskError> {
    let key = generate_key();
    let response = relay
        .authorized(Method::GET, target)?
        .timeout(Duration::from_secs(30 * 24 * 3600)) // the request's own would end the socket with it
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key)
        .send()
        .await
        .map_err(|_| AskError::NoAnswer)?;
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).and_then(|value| value.to_str().ok());
    if response.status() != StatusCode::SWITCHING_PROTOCOLS || accepted != Some(&*derive_accept_key(key.as_bytes())) {
        return Err(AskError::NoAnswer);
    }
    let upgraded = response.upgrade().await.map_err(|_| AskError::NoAnswer)?;
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX));
    Ok(WebSocketStream::from_raw_socket(upgraded, Side::Client, Some(config)).await)
}

async fn read(
    mut socket: WebSocketStream<reqwest::Upgraded>,
    tell: &mut impl FnMut(FeedEvent) -> bool,
) -> (u16, String) {
    loop {
        // Reading answers the hub's pings.
        match time::timeout(SILENCE_MAX, socket.next()).await {
            Ok(Some(Ok(Message::Binary(frame)))) => {
                if !tell(FeedEvent::Frame(frame.to_vec())) {
                    return (1000, String::new());
                }
            }
            Ok(Some(Ok(Message::Close(said)))) => {
                return said.map_or((1005, String::new()), |said| (said.code.into(), said.reason.to_string()));
            }
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(_)) | None) | Err(_) => return (1006, String::new()),
        }
    }
}

/// One of the few places for sockets, given back at its end.
struct Place(Relay);

impl Place {
    fn take(relay: &Relay) -> Result<Self, AskError> {
        relay
            .sockets()
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < SOCKETS_MAX).then_some(open + 1))
            .map_err(|_| AskError::NotAllowed)?;
        Ok(Self(relay.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.sockets().fetch_sub(1, Ordering::Relaxed);
    }
}
