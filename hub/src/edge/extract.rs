//! What a handler asks for in its arguments. Who may call an address is in the types that it takes.

mod terminal; // who acts at a till, and by which role

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use axum::{
    body::Body as HttpBody,
    extract::{
        ConnectInfo, FromRef, FromRequest, FromRequestParts, MatchedPath, OptionalFromRequestParts, Path, Request,
        rejection::QueryRejection,
    },
    http::{HeaderMap, header, request::Parts},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::problem::{Code, Problem};
use crate::{
    auth::{self, Auth, Role},
    catalog::cache::EventCache,
    serve::Hub,
};

pub use self::terminal::{
    Acting, Clerk, Manager, STAFF_HEADER, SignedInHere, Supervisor, Terminal, bearer, staff_token,
};
pub use crate::auth::{SignedIn, Till};

/// Somebody who has signed in, as the one who holds and buys.
pub type Buyer = SignedIn;

/// The cookie that carries a session's token.
pub const SESSION_COOKIE: &str = "fh_session";

/// What is read and thrown away of a body that is too large, so that the client gets to read the
/// refusal instead of a reset connection.
const DRAIN_BYTES_MAX: usize = 4 << 20;

impl FromRequestParts<Hub> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        signed_in(parts, hub).await?.ok_or_else(|| Code::NotSignedIn.into())
    }
}

/// Nobody has to be signed in: `Option<SignedIn>`.
impl OptionalFromRequestParts<Hub> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Option<Self>, Problem> {
        signed_in(parts, hub).await
    }
}

async fn signed_in(parts: &Parts, hub: &Hub) -> Result<Option<SignedIn>, Problem> {
    let Some(token) = session_token(&parts.headers) else { return Ok(None) };
    Ok(Auth::from_ref(hub).signed_in(token).await?)
}

impl From<auth::SessionError> for Problem {
    fn from(error: auth::SessionError) -> Self {
        error.0.into()
    }
}

/// The session's token as the browser sent it.
pub fn session_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == SESSION_COOKIE && !value.is_empty())
        .map(|(_, value)| value)
}

/// Whether `Accept-Encoding` names gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    let mut takes = false;
    for coding in values.flat_map(|v| v.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = parts.any(|p| p.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)));
        match (name.eq_ignore_ascii_case("gzip"), name == "*") {
            (true, _) => return !refused,
            (_, true) => takes = !refused,
            _ => {}
        }
    }
    takes
}

/// Somebody who has signed in and runs the house.
#[derive(Debug, Clone)]
pub struct Operator(pub SignedIn);

impl FromRequestParts<Hub> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let somebody = <SignedIn as FromRequestParts<Hub>>::from_request_parts(parts, hub).await?;
        match somebody.role {
            Role::Operator => Ok(Self(somebody)),
            Role::Fan => Err(Code::Forbidden.into()),
        }
    }
}

/// The client's own key for a request: the same key finds the same answer. 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(pub String);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut keys = parts.headers.get_all("idempotency-key").iter();
        match (keys.next(), keys.next()) {
            (Some(key), None)
                if (1..=255).contains(&key.len()) && key.as_bytes().iter().all(|b| (0x21..=0x7e).contains(b)) =>
            {
                Ok(Self(key.to_str().map_err(|_| Code::IdempotencyKeyMissing)?.to_owned()))
            }
            _ => Err(Code::IdempotencyKeyMissing.into()),
        }
    }
}

/// What stands in the path. Text that can't be such an id names nothing, as an id nobody has does.
#[derive(Debug, Clone, Copy)]
pub struct PathId<T>(pub T);

impl<T: FromStr, S: Send + Sync> FromRequestParts<S> for PathId<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let unknown = unknown_at(parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str));
        let Path(text) =
            <Path<String> as FromRequestParts<S>>::from_request_parts(parts, state).await.map_err(|_| unknown)?;
        if text.contains('\0') {
            return Err(unknown.into()); // no text of ours has one, and the database refuses to compare it
        }
        text.parse().map(Self).map_err(|_| unknown.into())
    }
}

/// The event that stands in the path, by its number or its slug. By its number it is not looked up.
#[derive(Debug, Clone, Copy)]
pub struct PathEvent(pub i64);

impl FromRequestParts<Hub> for PathEvent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let PathId(name) = PathId::<String>::from_request_parts(parts, hub).await?;
        find_event(hub, &name).await.map(Self)
    }
}

/// The seat of an event that stands in the path. Whether the event has it is not looked up.
#[derive(Debug, Clone, Copy)]
pub struct PathSeat {
    pub event_id: i64,
    pub no: i32,
}

impl FromRequestParts<Hub> for PathSeat {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let path = <Path<(String, String)> as FromRequestParts<Hub>>::from_request_parts(parts, hub).await;
        let Path((event, no)) = path.map_err(|_| Code::SeatUnknown)?;
        let event_id = find_event(hub, &event).await?;
        Ok(Self { event_id, no: no.parse().map_err(|_| Code::SeatUnknown)? })
    }
}

async fn find_event(hub: &Hub, name: &str) -> Result<i64, Problem> {
    if name.contains('\0') {
        return Err(Code::EventUnknown.into()); // no text of ours has one, and the database refuses to compare it
    }
    let found = EventCache::from_ref(hub).find(&hub.pool, name).await?;
    found.ok_or_else(|| Code::EventUnknown.into())
}

/// What is wrong with the fields behind `?`, without the reader's own preface.
pub fn query_invalid(rejection: &QueryRejection) -> Problem {
    let text = rejection.body_text();
    let what = text.split_once("query string: ").map_or(text.as_str(), |(_, what)| what);
    Problem::new(Code::BadRequest).detail(format!("{}.", what.trim_end_matches('.')))
}

/// What is unknown when the id in this address is not one.
pub(super) fn unknown_at(route: &str) -> Code {
    let route =
        route.strip_prefix("/api").unwrap_or(route).trim_start_matches("/box-office").trim_start_matches("/staff");
    match route.split('/').nth(1) {
        Some("events") => Code::EventUnknown,
        Some("holds" | "customer-holds") => Code::HoldUnknown,
        Some("orders") => Code::OrderUnknown,
        Some("tickets") => Code::TicketUnknown,
        Some("leases") => Code::LeaseUnknown,
        Some("consignments") => Code::ConsignmentUnknown,
        Some("partners") => Code::PartnerUnknown,
        Some("terminals") => Code::TerminalUnknown,
        Some("members") => Code::StaffUnknown,
        Some("shifts") => Code::ShiftUnknown,
        _ => Code::NotFound,
    }
}

/// A body of JSON: bounded, of the right content type, and read strictly. The refusal names the place.
#[derive(Debug, Clone)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Hub> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, hub: &Hub) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(Code::JsonInvalid).detail("The content type has to be application/json."));
        }
        let bytes = read_bounded(request, hub.config.http.body_max_bytes).await?;
        // serde reads a list as an object's fields in order; a client that sends one is mistaken.
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[') {
            return Err(Problem::new(Code::JsonInvalid).detail("An object is expected, not a list."));
        }
        if names_nul(&bytes) {
            return Err(Problem::new(Code::JsonInvalid).detail("No text may contain the character U+0000."));
        }
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut json).map_err(|e| {
            let at = e.path().to_string();
            let problem = json_invalid(e.inner());
            // A body that is no JSON has no places, and one that lacks a field lacks it as a whole.
            if e.inner().is_data() && at != "." { problem.with("at", at) } else { problem }
        })?;
        json.end().map_err(|_| Problem::new(Code::JsonInvalid).detail("Something follows the object."))?;
        Ok(Self(value))
    }
}

/// What is wrong, as a sentence: what the reader says of types and fields is one, of syntax it is not.
fn json_invalid(error: &serde_json::Error) -> Problem {
    let detail = match error.classify() {
        Category::Data => format!("{}.", in_words(&error.to_string())),
        Category::Eof => "The body ends before its JSON does.".to_owned(),
        Category::Syntax | Category::Io => {
            format!("The body is not JSON, from line {}, column {} on.", error.line(), error.column())
        }
    };
    Problem::new(Code::JsonInvalid).detail(detail)
}

/// What the reader says, with what is on the wire in place of our own types' names.
fn in_words(said: &str) -> String {
    let Some((before, after)) = said.rsplit_once(", expected ") else { return said.to_owned() };
    let (expected, place) = match after.find(" at line ") {
        Some(at) => after.split_at(at),
        None => (after, ""),
    };
    let number =
        |name: &str| name.len() > 1 && matches!(name.as_bytes()[0], b'i' | b'u') && name[1..].parse::<u8>().is_ok();
    let expected = if ["struct ", "internally tagged enum ", "a map"].iter().any(|kind| expected.starts_with(kind)) {
        "an object"
    } else if expected.starts_with("enum ") || expected == "variant identifier" {
        "one of its words"
    } else if expected == "a sequence" {
        "a list"
    } else if expected.starts_with("a tuple ") || expected.starts_with("tuple ") {
        "a list of so many"
    } else if number(expected) {
        "a whole number that is not too large"
    } else {
        expected
    };
    format!("{before}, expected {expected}{place}")
}

/// Whether a text of this JSON contains U+0000, which PostgreSQL can't store. (A raw one is no JSON.)
fn names_nul(json: &[u8]) -> bool {
    const NUL: &[u8] = br"\u0000";
    json.windows(NUL.len())
        .enumerate()
        .any(|(at, six)| six == NUL && json[..at].iter().rev().take_while(|b| **b == b'\\').count() % 2 == 0)
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()) else { return false };
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The body's bytes, if there are no more than `bytes_max`.
pub async fn read_bounded(request: Request, bytes_max: usize) -> Result<Bytes, Problem> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    let asks_first = request.headers().contains_key(header::EXPECT);
    let too_large = || Problem::new(Code::BodyTooLarge).with("limit_bytes", bytes_max);
    if announced.is_some_and(|length| length > bytes_max && (asks_first || length > DRAIN_BYTES_MAX)) {
        return Err(too_large());
    }
    let mut body: HttpBody = request.into_body();
    let mut kept = BytesMut::new();
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::new(Code::BadRequest).detail("The body broke off."))?;
        let Some(data) = frame.data_ref() else { continue };
        read += data.len();
        if read > DRAIN_BYTES_MAX.max(bytes_max) {
            break;
        }
        if read <= bytes_max {
            kept.extend_from_slice(data);
        }
    }
    if read > bytes_max { Err(too_large()) } else { Ok(kept.freeze()) }
}

/// Where a request came from, coarse enough to count by: IPv4 whole, IPv6 by its /64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(pub String);

/// The peer of the connection, as the server notes it.
pub type Peer = ConnectInfo<SocketAddr>;

impl FromRequestParts<Hub> for Address {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
        Ok(Self(peer.map_or_else(
            || "unknown".to_owned(),
            |peer| coarse(client_behind(peer, &parts.headers, &hub.config.http.trusted_proxies)),
        )))
    }
}

/// The last address in `X-Forwarded-For` that no proxy of ours has; only a named proxy is believed.
fn client_behind(peer: IpAddr, headers: &HeaderMap, trusted: &[String]) -> IpAddr {
    // A socket that listens on both families names IPv4 peers by their IPv6 form.
    let is_ours = |address: IpAddr| {
        trusted.iter().any(|t| t.parse().is_ok_and(|t: IpAddr| t.to_canonical() == address.to_canonical()))
    };
    let mut client = peer;
    let forwarded: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).collect();
    for hop in forwarded.iter().rev() {
        if !is_ours(client) {
            break;
        }
        let Some(address) = address_of(hop.trim()) else { break };
        client = address;
    }
    client
}

/// Some proxies add the port, or write IPv6 in brackets.
fn address_of(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| hop.parse().ok().map(|with_port: SocketAddr| with_port.ip()))
}

fn coarse(address: IpAddr) -> String {
    match net(address) {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// What is counted as one address: IPv4 whole, of IPv6 the /64, of which anybody has 2^64.
pub(super) fn net(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let found = |value| session_token(&headers(&[("cookie", value)])).map(str::to_owned);
        assert_eq!(found("a=b; fh_session=abc; c=d").as_deref(), Some("abc"));
        assert_eq!(found("fh_session=abc").as_deref(), Some("abc"));
        assert_eq!(found("xfh_session=abc"), None);
        assert_eq!(found("fh_session="), None);
    }

    #[test]
    fn no_name_of_our_own_types_is_in_what_the_reader_says() {
        use fullhouse_protocol::{
            box_office::TillTender,
            money::RefundWhat,
            orders::{Pay, TicketChoice},
        };
        fn said<T: DeserializeOwned>(json: &str) -> String {
            in_words(&serde_json::from_str::<T>(json).err().expect("a mistake").to_string())
        }
        let told = [
            said::<TillTender>("5"),
            said::<TillTender>(r#"{"kind":5}"#),
            said::<TillTender>(r#"{"kind":"card"}"#),
            said::<TillTender>(r#"{"kind":"cash","received_minor":"x"}"#),
            said::<RefundWhat>(r#"{"kind":"all","x":1}"#),
            said::<RefundWhat>(r#"{"kind":"seats","seats":5}"#),
            said::<RefundWhat>(r#"{"kind":"seats","seats":[5000000000]}"#),
            said::<Pay>("7"),
            said::<TicketChoice>(r#"{"seat_no":-1.5,"ticket_type":{}}"#),
        ];
        for text in &told {
            for ours in ["Till", "Refund", "Pay", "TicketChoice", "struct", "enum", "i64", "i32", "variant identifier"]
            {
                assert!(!text.contains(ours), "{text}");
            }
        }
        assert!(told[0].contains("expected an object"), "{told:?}");
        assert!(told[2].contains("`cash`") && told[2].contains("`comp`"), "the wire's words stay: {told:?}");
        assert!(told[3].contains("expected a whole number"), "{told:?}");
    }

    #[test]
    fn gzip_is_sent_to_whoever_takes_it() {
        let takes = |value| takes_gzip(&headers(&[("accept-encoding", value)]));
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("*"));
        assert!(!takes("") && !takes("br") && !takes("gzip;q=0, *") && !takes("gzip; q=0.0") && !takes("identity"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn only_a_bearer_token_is_one() {
        assert_eq!(bearer(&headers(&[("authorization", "Bearer abc")])), Some("abc"));
        assert_eq!(bearer(&headers(&[("authorization", "bearer abc")])), Some("abc"));
        assert_eq!(bearer(&headers(&[("authorization", "Basic abc")])), None);
        assert_eq!(bearer(&headers(&[("authorization", "Bearer ")])), None);
    }

    #[tokio::test]
    async fn a_key_is_visible_ascii_and_stands_alone() {
        for (value, ok) in
            [("k", true), ("", false), ("a b", false), (&"k".repeat(255), true), (&"k".repeat(256), false)]
        {
            let (mut parts, ()) = Request::builder().header("idempotency-key", value).body(()).unwrap().into_parts();
            assert_eq!(IdempotencyKey::from_request_parts(&mut parts, &()).await.is_ok(), ok, "{value:?}");
        }
        let twice = Request::builder().header("idempotency-key", "a").header("idempotency-key", "b").body(()).unwrap();
        let (mut parts, ()) = twice.into_parts();
        assert!(IdempotencyKey::from_request_parts(&mut parts, &()).await.is_err());
    }

    #[test]
    fn nul_is_found_where_it_is_one() {
        assert!(names_nul(br#"{"a":"x\u0000"}"#));
        assert!(names_nul(br#"{"a":"\\\u0000"}"#));
        assert!(!names_nul(br#"{"a":"\\u0000"}"#), "a backslash, and the letters u0000");
        assert!(!names_nul(br#"{"a":"\u00001"}"#.split_at(3).0));
    }

    #[test]
    fn only_named_proxies_are_believed() {
        let peer: IpAddr = "10.0.0.1".parse().unwrap();
        let forwarded =
            headers(&[("x-forwarded-for", "6.6.6.6, 2001:db8:1:2:3:4:5:6"), ("x-forwarded-for", "10.0.0.2")]);
        let client = |trusted: &[&str]| {
            let trusted: Vec<String> = trusted.iter().map(|t| (*t).to_owned()).collect();
            coarse(client_behind(peer, &forwarded, &trusted))
        };
        assert_eq!(client(&[]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.1"]), "10.0.0.2");
        assert_eq!(client(&["10.0.0.1", "10.0.0.2"]), "2001:db8:1:2::/64");
        assert_eq!(client(&["10.0.0.1", "10.0.0.2", "2001:db8:1:2:3:4:5:6"]), "6.6.6.6");
        let nonsense = headers(&[("x-forwarded-for", "6.6.6.6, unknown")]);
        assert_eq!(client_behind(peer, &nonsense, &["10.0.0.1".to_owned()]), peer, "nothing is guessed");
    }

    #[test]
    fn a_named_proxy_is_known_in_each_of_its_forms() {
        let trusted = ["10.0.0.1".to_owned(), "::ffff:10.0.0.2".to_owned()];
        for (peer, hops, expected) in [
            ("::ffff:10.0.0.1", "6.6.6.6", "6.6.6.6"),
            ("::ffff:10.0.0.1", "6.6.6.6, 10.0.0.2", "6.6.6.6"),
            ("10.0.0.1", "6.6.6.6:4711", "6.6.6.6"),
            ("10.0.0.1", "[2001:db8:1:2::6]:4711", "2001:db8:1:2::/64"),
            ("::ffff:10.0.0.3", "6.6.6.6", "10.0.0.3"),
        ] {
            let client = client_behind(peer.parse().unwrap(), &headers(&[("x-forwarded-for", hops)]), &trusted);
            assert_eq!(coarse(client), expected, "{peer} for {hops}");
        }
    }

    #[test]
    fn an_unreadable_id_is_unknown_by_what_it_names() {
        assert_eq!(unknown_at("/api/events/{id}/hold"), Code::EventUnknown);
        assert_eq!(unknown_at("/api/box-office/events/{id}/block"), Code::EventUnknown);
        assert_eq!(unknown_at("/api/holds/{id}"), Code::HoldUnknown);
        assert_eq!(unknown_at("/api/orders/{id}/pay"), Code::OrderUnknown);
        assert_eq!(unknown_at("/api/plans/{hash}/geometry"), Code::NotFound);
    }
}
