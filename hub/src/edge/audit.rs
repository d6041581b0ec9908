//! What people did, for whoever answers for it: `/api/staff/audit`.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use chrono::{DateTime, Datelike, Utc};
use fullhouse_protocol::{clerk::StaffRole, staff::AuditLog};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::query_invalid,
    problem::{Code, Problem},
    staff::Staff,
};
use crate::auth::log::{self, Wanted};

const ENTRIES_MAX: i64 = 100;
const WORDS_MAX: usize = 200;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Only of this event, by number
    event_id: Option<i64>,
    /// Only at this terminal, or done to it
    terminal_id: Option<Uuid>,
    /// A part of the name of whoever did it
    person: Option<String>,
    /// Only of this kind, such as `order_refund`
    verb: Option<String>,
    /// From this time on
    since: Option<DateTime<Utc>>,
    /// Before this time
    until: Option<DateTime<Utc>>,
    /// Only those before this one, to read on
    before: Option<i64>,
}

/// What people did, where and why: sales, prices, refunds, seats, shifts, terminals, members. The latest first. A
/// manager's at a counter, or an operator's.
#[utoipa::path(get, path = "/api/staff/audit", tag = "staff", params(AuditQuery),
    responses((status = 200, body = AuditLog), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`")))]
pub async fn audit(
    State(pool): State<PgPool>,
    staff: Staff,
    query: Result<Query<AuditQuery>, QueryRejection>,
) -> Result<Json<AuditLog>, Problem> {
    staff.needs(StaffRole::Manager)?;
    let Query(query) = query.map_err(|e| query_invalid(&e))?;
    let words = [&query.person, &query.verb];
    if words.into_iter().flatten().any(|text| text.len() > WORDS_MAX || text.contains('\0')) {
        return Err(Problem::new(Code::BadRequest).detail("Nothing that long can be looked for."));
    }
    // The database's calendar ends before the language's.
    if [query.since, query.until].into_iter().flatten().any(|at| !(0..10_000).contains(&at.year())) {
        return Err(Problem::new(Code::BadRequest).detail("A time is of the years 0 to 9999."));
    }
    let AuditQuery { event_id, terminal_id, person, verb, since, until, before } = query;
    let mut wanted = Wanted { event_id, terminal_id, person, verb, since, until, before, limit: ENTRIES_MAX + 1 };
    wanted.person = wanted.person.filter(|name| !name.trim().is_empty());
    let mut entries = log::read(&pool, &wanted).await?;
    let more = entries.len() > ENTRIES_MAX as usize;
    entries.truncate(ENTRIES_MAX as usize);
    let before = entries.last().filter(|_| more).map(|entry| entry.id);
    Ok(Json(AuditLog { entries, before }))
}
