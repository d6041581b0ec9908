//! What is on: `/api/events`, `/api/events/{id}`, `/api/plans/{hash}/geometry`.
//!
//! All of it is anybody's and may be kept by caches: lists and pages for a second, drawings for ever.

use std::io::Read;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use chrono::{NaiveDate, SubsecRound};
use flate2::read::GzDecoder;
use fullhouse_protocol::events::{EventList, EventPage};
use serde::Deserialize;
use sqlx::PgPool;

use super::{
    extract::{PathId, query_invalid, takes_gzip},
    problem::{Code, Problem},
};
use crate::catalog::{
    cache::{EventCache, Seats},
    search::Filter,
};

const A_SECOND: HeaderValue = HeaderValue::from_static("public, max-age=1");
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// What a list is narrowed by.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Words of the name, venue, city, performers or tags; accents and case do not matter
    q: Option<String>,
    /// Slug of the venue
    venue: Option<String>,
    tag: Option<String>,
    /// First day at the venue (2027-03-01); without it, events that are over are left out
    from: Option<String>,
    /// Last day at the venue
    to: Option<String>,
}

/// What is on, the next event first.
#[utoipa::path(get, path = "/api/events", tag = "events", params(ListQuery),
    responses((status = 200, body = EventList), (status = "4XX", description = "`bad_request`")))]
pub async fn list(
    State(pool): State<PgPool>,
    State(cache): State<EventCache>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|e| query_invalid(&e))?;
    let filter = Filter {
        q: query.q,
        venue: given(query.venue),
        tag: given(query.tag),
        from: day("from", query.from)?,
        to: day("to", query.to)?,
    };
    let (events, now) = cache.list(&pool).await?;
    let events = filter.apply(&events, now).into_iter().cloned().map(|mut event| {
        event.now = now.trunc_subsecs(3);
        event
    });
    Ok(([(header::CACHE_CONTROL, A_SECOND)], Json(EventList { events: events.collect() })).into_response())
}

/// An empty field of a form is none.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|t| !t.is_empty())
}

fn day(name: &str, text: Option<String>) -> Result<Option<NaiveDate>, Problem> {
    let Some(text) = given(text) else { return Ok(None) };
    let day = NaiveDate::parse_from_str(&text, "%Y-%m-%d");
    day.map(Some).map_err(|_| Problem::new(Code::BadRequest).detail(format!("{name} is a day such as 2027-03-01.")))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// `none`: without the seats, for who draws the map from the geometry and the snapshot
    seats: Option<String>,
}

/// An event with its prices and all of its seats.
#[utoipa::path(get, path = "/api/events/{id}", tag = "events",
    params(("id" = String, Path, description = "Number or slug"), PageQuery),
    responses((status = 200, body = EventPage), (status = "4XX", description = "`bad_request`")))]
pub async fn one(
    State(pool): State<PgPool>,
    State(cache): State<EventCache>,
    PathId(id): PathId<String>,
    query: Result<Query<PageQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|e| query_invalid(&e))?;
    let seats = match query.seats.as_deref() {
        None | Some("" | "all") => Seats::All,
        Some("none") => Seats::None,
        Some(_) => return Err(Problem::new(Code::BadRequest).detail("seats is all or none.")),
    };
    let id = cache.find(&pool, &id).await?.ok_or(Code::EventUnknown)?;
    let body = cache.page(&pool, id, seats).await?.ok_or(Code::EventUnknown)?;
    gzipped_json(body, A_SECOND, &headers).await
}

/// The drawing of a plan's revision: immutable, so whoever has it never asks again.
#[utoipa::path(get, path = "/api/plans/{hash}/geometry", tag = "events",
    params(("hash" = String, Path, description = "The plan's hash, from an event")),
    responses((status = 200, description = "The geometry as JSON; see PROTOCOL.md", content_type = "application/json"),
        (status = 304, description = "You have it"), (status = "4XX", description = "`not_found`")))]
pub async fn geometry(
    State(pool): State<PgPool>,
    State(cache): State<EventCache>,
    PathId(hash): PathId<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if hash.len() != 64 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Code::NotFound.into());
    }
    let body = cache.geometry(&pool, &hash).await?.ok_or(Code::NotFound)?;
    let tag = HeaderValue::from_str(&format!("\"{hash}\"")).map_err(Problem::internal)?;
    let known =
        headers.get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok()).is_some_and(|v| v == "*" || v.contains(&hash));
    let mut response = if known {
        let vary = HeaderValue::from_static("accept-encoding");
        (StatusCode::NOT_MODIFIED, [(header::CACHE_CONTROL, FOR_EVER), (header::VARY, vary)]).into_response()
    } else {
        gzipped_json(body, FOR_EVER, &headers).await?
    };
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// As it is for whoever takes gzip, unpacked for whoever does not.
async fn gzipped_json(body: Bytes, cache: HeaderValue, asked: &HeaderMap) -> Result<Response, Problem> {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, cache),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    if takes_gzip(asked) {
        return Ok((headers, [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))], body).into_response());
    }
    let unpack = move || {
        let mut plain = Vec::with_capacity(body.len() * 8);
        GzDecoder::new(&body[..]).read_to_end(&mut plain).map(|_| plain)
    };
    let plain = tokio::task::spawn_blocking(unpack).await.map_err(Problem::internal)?.map_err(Problem::internal)?;
    Ok((headers, plain).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_day() {
        assert_eq!(day("from", None).unwrap(), None);
        assert_eq!(day("from", Some(String::new())).unwrap(), None);
        assert!(day("from", Some("2027-02-29".into())).is_err());
        assert!(day("from", Some("2027-03-01".into())).unwrap().is_some());
    }
}
