//! What staff turn about a waiting room: `/api/staff/events/{id}/queue`.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use fullhouse_protocol::line::{InsideList, LineChanges, LineOpening, LinePatch, StaffLine};
use serde::Deserialize;

use super::{
    extract::{Body, Operator, PathEvent, query_invalid},
    problem::{Code, Problem},
};
use crate::{
    admission::staff::{self, ChangeError},
    db,
    serve::Hub,
    waiting_room::{
        bounds::{DRAWS_MAX, Faults},
        open::{self, NewLine, OpenError},
    },
};

/// Nobody types more than this.
const FIND_MAX: usize = 200;

/// The line, and what can be turned about it.
#[utoipa::path(get, path = "/api/staff/events/{id}/queue", tag = "staff", params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = StaffLine), (status = "4XX", description = "`forbidden`, `line_unknown`")))]
pub async fn look(
    State(hub): State<Hub>,
    _: Operator,
    PathEvent(event_id): PathEvent,
) -> Result<Json<StaffLine>, Problem> {
    let seen = staff::look(&mut *hub.pool.acquire().await?, event_id).await?;
    seen.map(Json).ok_or_else(|| Code::LineUnknown.into())
}

/// Gives an event a waiting room. The commitment of its draw is published with it.
#[utoipa::path(post, path = "/api/staff/events/{id}/queue", tag = "staff", request_body = LineOpening,
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 201, body = StaffLine), (status = "4XX", description = "`forbidden`, `line_exists`, `line_invalid`")))]
pub async fn open(
    State(hub): State<Hub>,
    Operator(somebody): Operator,
    PathEvent(event_id): PathEvent,
    Body(body): Body<LineOpening>,
) -> Result<Response, Problem> {
    let public = body
        .public()
        .map_err(|_| Problem::new(Code::LineInvalid).detail("A public value has a source, a round and a time."))?;
    let new = NewLine {
        joins_at: body.joins_at,
        closes_at: body.closes_at,
        public,
        rate_minute_min: body.rate_minute_min,
        rate_minute_max: body.rate_minute_max,
        inside_max: body.inside_max,
    };
    let (pool, actor) = (hub.pool.clone(), format!("operator {}", somebody.email));
    let seen = db::write(async move {
        let mut tx = pool.begin().await?;
        open::open(&mut tx, event_id, &new, &actor).await?;
        let seen = staff::look(&mut tx, event_id).await?;
        tx.commit().await?;
        Ok::<_, OpenError>(seen)
    })
    .await?;
    // An event's page says whether there is a line before its hall.
    hub.events.forget(event_id).await;
    Ok((StatusCode::CREATED, Json(seen.ok_or(Code::LineUnknown)?)).into_response())
}

/// Changes what is named: bounds, an override, a pause with a message, the draw's value, its reveal, a redraw.
#[utoipa::path(patch, path = "/api/staff/events/{id}/queue", tag = "staff", request_body = LinePatch,
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = StaffLine), (status = "4XX", description = "`forbidden`, `line_unknown`, `line_invalid`, `draws_too_many`, `bad_request`, `pass_over`")))]
pub async fn change(
    State(hub): State<Hub>,
    Operator(somebody): Operator,
    PathEvent(event_id): PathEvent,
    Body(patch): Body<LinePatch>,
) -> Result<Json<StaffLine>, Problem> {
    if !(1..=500).contains(&patch.reason.trim().chars().count()) {
        return Err(Problem::new(Code::BadRequest).detail("A reason has 1 to 500 characters."));
    }
    let actor = format!("operator {}", somebody.email);
    Ok(Json(staff::change(&hub.pool, event_id, patch, actor).await?))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangesQuery {
    /// Only those before this one, to read on
    before: Option<i64>,
}

/// Who changed what, and why: people and the controller. The newest first.
#[utoipa::path(get, path = "/api/staff/events/{id}/queue/changes", tag = "staff",
    params(("id" = String, Path, description = "Number or slug"), ChangesQuery),
    responses((status = 200, body = LineChanges), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn changes(
    State(hub): State<Hub>,
    _: Operator,
    PathEvent(event_id): PathEvent,
    query: Result<Query<ChangesQuery>, QueryRejection>,
) -> Result<Json<LineChanges>, Problem> {
    let Query(query) = query.map_err(|e| query_invalid(&e))?;
    Ok(Json(LineChanges { changes: staff::changes(&hub.pool, event_id, query.before).await? }))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InsideQuery {
    /// A part of a name or an e-mail address
    #[serde(default)]
    find: String,
}

/// Who is inside, by name: for whoever has to end somebody's turn.
#[utoipa::path(get, path = "/api/staff/events/{id}/queue/inside", tag = "staff",
    params(("id" = String, Path, description = "Number or slug"), InsideQuery),
    responses((status = 200, body = InsideList), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn inside(
    State(hub): State<Hub>,
    _: Operator,
    PathEvent(event_id): PathEvent,
    query: Result<Query<InsideQuery>, QueryRejection>,
) -> Result<Json<InsideList>, Problem> {
    let Query(InsideQuery { find }) = query.map_err(|e| query_invalid(&e))?;
    if find.chars().count() > FIND_MAX || find.contains('\0') {
        return Err(Problem::new(Code::BadRequest).detail("A name or address is looked for by 200 characters at most."));
    }
    Ok(Json(staff::inside(&hub.pool, event_id, &find).await?))
}

impl From<Faults> for Problem {
    fn from(faults: Faults) -> Self {
        let fields: Vec<&str> = faults.0.iter().map(|fault| fault.field).filter(|field| !field.is_empty()).collect();
        Problem::new(Code::LineInvalid).detail(faults.to_string()).with("fields", fields)
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::EventUnknown => Code::EventUnknown.into(),
            OpenError::Exists => Code::LineExists.into(),
            OpenError::Invalid(faults) => faults.into(),
            OpenError::Database(e) => e.into(),
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::LineUnknown => Code::LineUnknown.into(),
            ChangeError::Invalid(faults) => faults.into(),
            ChangeError::DrawsTooMany => Problem::new(Code::DrawsTooMany).with("limit", DRAWS_MAX),
            ChangeError::PassNone => Code::PassOver.into(),
            ChangeError::Database(e) => e.into(),
        }
    }
}
