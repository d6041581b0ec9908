//! Rooms: an event's map at `/api/events/{id}/snapshot`, `/frames` and `/live`, its line of people at `/queue/frames` and
//! `/queue/live`. The bytes are in `protocol/PROTOCOL.md`.
//!
//! All are the same for everybody, so anybody may ask, from anywhere, and any cache may keep what is no socket.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{FromRef, Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use fullhouse_protocol::{
    close,
    frames::{NUMBER_MAX, Position},
};
use hyper::upgrade::OnUpgrade;
use hyper_util::{rt::TokioIo, server::conn::auto::upgrade};
use nix::sys::socket::{setsockopt, sockopt::SndBuf};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{
    extract::{Address, PathId, takes_gzip},
    problem::{Code, Problem},
};
use crate::{
    catalog::cache::EventCache,
    push::{
        Rooms,
        resource::Resource,
        room::{Line, Map, Room},
        shard::Arrival,
    },
    serve::Hub,
};

/// A cache may answer with it for so long; frames make up for what is missing.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=1");
/// The answer that switches to the socket has to be out by then.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(10);

/// Every seat's status as of an epoch and frame, which the `ETag` names.
#[utoipa::path(
    get,
    path = "/api/events/{id}/snapshot",
    tag = "events",
    params(("id" = String, Path, description = "Number or slug")),
    responses(
        (status = 200, content_type = "application/octet-stream", description = "A snapshot frame, 2 bits a seat"),
        (status = 304, description = "It is what `If-None-Match` names"),
    )
)]
pub async fn snapshot(
    State(hub): State<Hub>,
    PathId(event): PathId<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Ok(answer(&map(&hub, &event).await?.ok_or(Code::EventUnknown)?.snapshot(), &headers))
}

/// The frames of the last half minute: one address for everybody who polls.
#[utoipa::path(
    get,
    path = "/api/events/{id}/frames",
    tag = "events",
    params(("id" = String, Path, description = "Number or slug")),
    responses(
        (status = 200, content_type = "application/octet-stream", description = "A resync that names the head, then frames, oldest first; each after its length"),
        (status = 304, description = "There is nothing after what `If-None-Match` names"),
    )
)]
pub async fn frames(
    State(hub): State<Hub>,
    PathId(event): PathId<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Ok(answer(&map(&hub, &event).await?.ok_or(Code::EventUnknown)?.recent(), &headers))
}

/// The line of people as it is: one address for everybody who polls.
#[utoipa::path(
    get,
    path = "/api/events/{id}/queue/frames",
    tag = "queue",
    params(("id" = String, Path, description = "Number or slug")),
    responses(
        (status = 200, content_type = "application/octet-stream", description = "A resync that names the head, then the line; each after its length"),
        (status = 304, description = "There is nothing after what `If-None-Match` names"),
        (status = "4XX", description = "`event_unknown`: also where people do not wait in a line"),
    )
)]
pub async fn queue_frames(
    State(hub): State<Hub>,
    PathId(event): PathId<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Ok(answer(&line(&hub, &event).await?.ok_or(Code::EventUnknown)?.recent(), &headers))
}

/// The room of an event's map, by the event's number or slug.
async fn map(hub: &Hub, event: &str) -> Result<Option<Arc<Room<Map>>>, Problem> {
    let Some(event_id) = EventCache::from_ref(hub).find(&hub.pool, event).await? else { return Ok(None) };
    Ok(Rooms::from_ref(hub).map(event_id).await?)
}

/// The room of its line.
async fn line(hub: &Hub, event: &str) -> Result<Option<Arc<Room<Line>>>, Problem> {
    let Some(event_id) = EventCache::from_ref(hub).find(&hub.pool, event).await? else { return Ok(None) };
    Ok(Rooms::from_ref(hub).line(event_id).await?)
}

fn answer(resource: &Resource, asked: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", resource.at);
    let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok()).any(|v| v.contains(&tag));
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else if takes_gzip(asked) {
        let mut response = resource.gzip().into_response();
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        resource.bytes.clone().into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, FRESH);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Where a client left off. Both or neither.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    epoch: Option<u64>,
    frame: Option<u64>,
}

/// A WebSocket of frames, from where the client left off. The client sends nothing.
#[utoipa::path(
    get,
    path = "/api/events/{id}/live",
    tag = "events",
    params(
        ("id" = String, Path, description = "Number or slug"),
        ("epoch" = Option<u64>, Query, description = "Of the last frame that the client has"),
        ("frame" = Option<u64>, Query, description = "Its number"),
    ),
    responses(
        (status = 101, description = "Binary messages, each a frame"),
        (status = "4XX", description = "`bad_request`, `too_many_sockets`"),
    ),
)]
pub async fn live(
    State(hub): State<Hub>,
    State(rooms): State<Rooms>,
    PathId(event): PathId<String>,
    Address(address): Address,
    request: Request,
) -> Result<Response, Problem> {
    let accept = accept(request.headers())?;
    let room = map(&hub, &event).await?.map(|room| room as Arc<Room>);
    open(&rooms, room, &address, accept, request)
}

/// A WebSocket of the line's frames, from where the client left off: whoever is behind is given the newest. The client
/// sends nothing.
#[utoipa::path(
    get,
    path = "/api/events/{id}/queue/live",
    tag = "queue",
    params(
        ("id" = String, Path, description = "Number or slug"),
        ("epoch" = Option<u64>, Query, description = "Of the last frame that the client has"),
        ("frame" = Option<u64>, Query, description = "Its number"),
    ),
    responses(
        (status = 101, description = "Binary messages, each a frame"),
        (status = "4XX", description = "`bad_request`, `too_many_sockets`"),
    ),
)]
pub async fn queue_live(
    State(hub): State<Hub>,
    State(rooms): State<Rooms>,
    PathId(event): PathId<String>,
    Address(address): Address,
    request: Request,
) -> Result<Response, Problem> {
    let accept = accept(request.headers())?;
    let room = line(&hub, &event).await?.map(|room| room as Arc<Room>);
    open(&rooms, room, &address, accept, request)
}

fn not_a_socket() -> Problem {
    Problem::new(Code::BadRequest).detail("This address takes a WebSocket, version 13.")
}

/// Lets a viewer into a room, or tells it why not.
fn open(
    rooms: &Rooms,
    room: Option<Arc<Room>>,
    address: &str,
    accept: HeaderValue,
    mut request: Request,
) -> Result<Response, Problem> {
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().ok_or_else(not_a_socket)?;
    let cursor = match Query::try_from_uri(request.uri()) {
        Ok(Query(Cursor { epoch: Some(epoch), frame: Some(frame) })) if epoch.max(frame) <= NUMBER_MAX => {
            Ok(Some(Position { epoch, frame }))
        }
        Ok(Query(Cursor { epoch: None, frame: None })) => Ok(None),
        _ => Err((close::BAD_REQUEST, Code::BadRequest)),
    };
    let outcome = match (cursor, room) {
        (Err(refused), _) => Err(refused),
        (_, None) => Err((close::EVENT_UNKNOWN, Code::EventUnknown)),
        (Ok(cursor), Some(room)) => match rooms.place(address) {
            Some(place) => Ok((cursor, room, place)),
            None => Err((close::TOO_MANY_SOCKETS, Code::TooManySockets)),
        },
    };
    // A browser does not show its page the status of a refused handshake, but it does show a close code.
    let (entry, cursor, place) = match outcome {
        Ok((cursor, room, place)) => (Ok(room), cursor, place),
        Err((close, code)) => (Err(close), None, rooms.place_to_turn_away().ok_or(code)?),
    };
    let send_buffer_bytes = rooms.config().send_buffer_bytes;
    rooms.admit(async move {
        let (stream, read_ahead) = upgraded(upgrade, send_buffer_bytes).await?;
        Some(Arrival { stream, entry, cursor, read_ahead, place })
    });
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

fn accept(headers: &HeaderMap) -> Result<HeaderValue, Problem> {
    accept_key(headers).ok_or_else(not_a_socket)
}

/// What the answer to a handshake proves; `None` if it is not one.
fn accept_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let has = |name: header::HeaderName, token: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|v| v.to_str().ok());
        values.flat_map(|v| v.split(',')).any(|v| v.trim().eq_ignore_ascii_case(token))
    };
    let is_handshake = has(header::CONNECTION, "upgrade")
        && has(header::UPGRADE, "websocket")
        && has(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| is_handshake)?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()
}

/// Takes the connection itself out of hyper's hands once the answer is out, with what hyper had read
/// ahead. A viewer that stops reading costs the kernel `send_buffer_bytes` (which it doubles), and no more.
async fn upgraded(upgrade: OnUpgrade, send_buffer_bytes: usize) -> Option<(std::net::TcpStream, Bytes)> {
    let upgraded = tokio::time::timeout(UPGRADE_TIMEOUT, upgrade).await.ok()?.ok()?;
    let parts = upgrade::downcast::<TokioIo<TcpStream>>(upgraded).ok()?; // the server carries nothing else
    let stream = parts.io.into_inner().into_std().ok()?;
    setsockopt(&stream, SndBuf, &send_buffer_bytes).ok()?;
    Some((stream, parts.read_buf))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_handshake_is_recognised() {
        let handshake = [
            (header::CONNECTION, "keep-alive, Upgrade"),
            (header::UPGRADE, "WebSocket"),
            (header::SEC_WEBSOCKET_VERSION, "13"),
            (header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        assert_eq!(accept_key(&headers(&handshake)).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for missing in 0..handshake.len() {
            let mut some = handshake.to_vec();
            some.remove(missing);
            assert_eq!(accept_key(&headers(&some)), None);
        }
    }

    #[test]
    fn a_connection_that_is_refused_a_socket_is_not_kept_for_requests() {
        let refused = Problem::new(Code::TooManySockets).into_response();
        assert_eq!(refused.headers()[header::CONNECTION], "close");
        assert!(!Problem::new(Code::Busy).into_response().headers().contains_key(header::CONNECTION));
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        let resource =
            Resource::new(Position { epoch: 4, frame: 2 }, Bytes::from_static(b"seats"), flate2::Compression::fast());
        let plain = answer(&resource, &HeaderMap::new());
        assert_eq!(
            (plain.status(), &plain.headers()[header::ETAG]),
            (StatusCode::OK, &HeaderValue::from_static("\"4-2\""))
        );
        assert_eq!(plain.headers()[header::CACHE_CONTROL], "public, max-age=1");
        let known = answer(&resource, &headers(&[(header::IF_NONE_MATCH, "W/\"4-1\", \"4-2\"")]));
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        let other =
            answer(&resource, &headers(&[(header::IF_NONE_MATCH, "\"4-22\""), (header::ACCEPT_ENCODING, "gzip")]));
        assert_eq!(
            (other.status(), &other.headers()[header::CONTENT_ENCODING]),
            (StatusCode::OK, &HeaderValue::from_static("gzip"))
        );
    }
}
