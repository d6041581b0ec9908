//! What a clerk does for a customer besides selling: seats put aside, a seat's story, tickets that wait to be printed.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use chrono::{SecondsFormat, SubsecRound};
use fullhouse_protocol::{
    box_office::{
        CustomerHold, CustomerHoldRequest, CustomerHolds, SeatStory, WillCall, WillCallPrintRequest, WillCallPrinted,
    },
    clerk::StaffRole,
    tickets::Reason,
};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    box_office::checked_reason,
    extract::{Acting, Body, Clerk, IdempotencyKey, PathEvent, PathId, PathSeat, query_invalid},
    problem::{Code, Problem},
};
use crate::{
    auth::is_readable,
    box_office::{
        customer::{self, By, CustomerHoldError},
        seat, will_call,
    },
    config::Config,
    hold::aside::LetGoError,
    seat_map::SeatSet,
};

const NAME_MAX: usize = 200;
const NOTE_MAX: usize = 500;
/// A printer works on so many for some minutes.
const PRINT_ORDERS_MAX: usize = 50;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CustomerHoldsQuery {
    /// Only of this event, by number
    event_id: Option<i64>,
}

/// Puts seats aside under a name, until a time of their own. More than one buyer may have: a supervisor's to do.
#[utoipa::path(post, path = "/api/box-office/customer-holds", tag = "box office", request_body = CustomerHoldRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = CustomerHold), (status = "4XX", description = "`forbidden`, `bad_request`, `event_unknown`, `event_cancelled`, `until_invalid`, `seat_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_unavailable`, `limit_reached`, `idempotency_mismatch`")))]
pub async fn put_aside(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    Clerk(acting): Clerk,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<CustomerHoldRequest>,
) -> Result<Json<CustomerHold>, Problem> {
    let (name, note) = (body.name.trim().to_owned(), body.note.trim().to_owned());
    if !is_readable(&name) || name.chars().count() > NAME_MAX || note.chars().count() > NOTE_MAX {
        return Err(Problem::new(Code::BadRequest).detail(format!(
            "A name has 1 to {NAME_MAX} characters, and one of them can be seen; a note {NOTE_MAX} at most."
        )));
    }
    let seats = SeatSet::new(body.seats.clone(), config.desk.seats_a_request_max)?;
    // As the database keeps it: the same request again is the same hold.
    let asked = CustomerHoldRequest { name, note, until: body.until.trunc_subsecs(6), ..body };
    Ok(Json(customer::put_aside(pool, by(&acting), key, seats, asked).await?))
}

/// What waits for somebody, by name. Any counter sells it: `hold_id` and `buyer_id` are those of any hold.
#[utoipa::path(get, path = "/api/box-office/customer-holds", tag = "box office", params(CustomerHoldsQuery),
    responses((status = 200, body = CustomerHolds), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn customer_holds(
    State(pool): State<PgPool>,
    _: Clerk,
    query: Result<Query<CustomerHoldsQuery>, QueryRejection>,
) -> Result<Json<CustomerHolds>, Problem> {
    let Query(query) = query.map_err(|e| query_invalid(&e))?;
    Ok(Json(CustomerHolds { holds: customer::list(&pool, query.event_id).await? }))
}

/// Lets seats go before their time: whoever put them aside, or a supervisor. Again: they are gone.
#[utoipa::path(post, path = "/api/box-office/customer-holds/{id}/release", tag = "box office", request_body = Reason,
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `hold_frozen`")))]
pub async fn release_customer_hold(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    PathId(hold_id): PathId<Uuid>,
    Body(body): Body<Reason>,
) -> Result<StatusCode, Problem> {
    customer::release(pool, by(&acting), hold_id, checked_reason(&body.reason)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whose a seat is, and whatever happened to it: its sales, its tickets, what staff did to it and why.
#[utoipa::path(get, path = "/api/box-office/events/{id}/seats/{no}", tag = "box office",
    params(("id" = String, Path, description = "Number or slug"), ("no" = i32, Path)),
    responses((status = 200, body = SeatStory), (status = "4XX", description = "`forbidden`, `event_unknown`, `seat_unknown`")))]
pub async fn seat_story(
    State(pool): State<PgPool>,
    _: Clerk,
    PathSeat { event_id, no }: PathSeat,
) -> Result<Json<SeatStory>, Problem> {
    seat::story(&pool, event_id, no)
        .await?
        .map(Json)
        .ok_or_else(|| Problem::new(Code::SeatUnknown).with("seats", vec![no]))
}

/// Orders whose tickets were never printed, by name: what is laid out before the doors open.
#[utoipa::path(get, path = "/api/box-office/events/{id}/will-call", tag = "box office",
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = WillCall), (status = "4XX", description = "`forbidden`")))]
pub async fn will_call(
    State(pool): State<PgPool>,
    _: Clerk,
    PathEvent(event_id): PathEvent,
) -> Result<Json<WillCall>, Problem> {
    Ok(Json(WillCall { orders: will_call::list(&pool, event_id).await? }))
}

/// Opens print jobs for many orders: their tickets that were never printed. One order's refusal stops no other's.
#[utoipa::path(post, path = "/api/box-office/events/{id}/will-call/prints", tag = "box office",
    request_body = WillCallPrintRequest, params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = WillCallPrinted), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn print_will_call(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    PathEvent(event_id): PathEvent,
    Body(body): Body<WillCallPrintRequest>,
) -> Result<Json<WillCallPrinted>, Problem> {
    let named: BTreeSet<&Uuid> = body.order_ids.iter().collect();
    if body.order_ids.is_empty() || named.len() != body.order_ids.len() || named.len() > PRINT_ORDERS_MAX {
        return Err(Problem::new(Code::BadRequest).detail(format!("1 to {PRINT_ORDERS_MAX} orders, each once.")));
    }
    Ok(Json(WillCallPrinted { orders: will_call::print(&pool, event_id, body.order_ids, &acting.actor()).await? }))
}

/// Where nobody signs in, whoever has the terminal's token may do what a supervisor may.
fn by(acting: &Acting) -> By {
    let staff = acting.staff.as_ref();
    By {
        terminal_id: acting.till.terminal_id,
        actor: acting.actor(),
        staff_id: staff.map(|staff| staff.staff_id),
        supervises: staff.is_none_or(|staff| staff.role >= StaffRole::Supervisor),
    }
}

impl From<CustomerHoldError> for Problem {
    fn from(error: CustomerHoldError) -> Self {
        match error {
            CustomerHoldError::EventUnknown => Code::EventUnknown.into(),
            CustomerHoldError::EventCancelled => Code::EventCancelled.into(),
            CustomerHoldError::UntilInvalid { latest } => {
                Problem::new(Code::UntilInvalid).with("latest", latest.to_rfc3339_opts(SecondsFormat::AutoSi, true))
            }
            CustomerHoldError::NotFree(error) => error.into(),
            CustomerHoldError::LimitReached { limit } => {
                Problem::new(Code::LimitReached).detail("A supervisor may put more aside.").with("limit", limit)
            }
            CustomerHoldError::KeyReused => Code::IdempotencyMismatch.into(),
            CustomerHoldError::Unknown => Code::HoldUnknown.into(),
            CustomerHoldError::SomebodyElses { made_by } => Problem::new(Code::RoleTooLow)
                .detail(format!("{made_by} put these seats aside: they let them go, or a supervisor.")),
            CustomerHoldError::LetGo(LetGoError::Ended) => Code::HoldEnded.into(),
            CustomerHoldError::LetGo(LetGoError::Frozen) => Code::HoldFrozen.into(),
            CustomerHoldError::LetGo(LetGoError::Database(error)) | CustomerHoldError::Database(error) => error.into(),
        }
    }
}
