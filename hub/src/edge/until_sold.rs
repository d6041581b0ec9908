//! Seats that wait until the others are sold: a supervisor's to keep back, to put on sale before, or to leave blocked.

use axum::{Json, extract::State};
use fullhouse_protocol::until_sold::{UntilSold, UntilSoldEndRequest, UntilSoldList, UntilSoldRequest};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    box_office::{BLOCK_SEATS_MAX, checked_reason},
    extract::{Acting, Body, Clerk, IdempotencyKey, PathEvent, PathId, Supervisor},
    problem::{Code, Problem},
};
use crate::{
    box_office::until_sold::{self, By, End, UntilSoldError, Wanted},
    seat_map::SeatSet,
};

/// Keeps seats off sale until the others of the event are sold; then they go on sale by themselves.
#[utoipa::path(post, path = "/api/box-office/events/{id}/until-sold", tag = "box office", request_body = UntilSoldRequest,
    params(("id" = String, Path, description = "Number or slug"), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = UntilSold), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `event_unknown`, `event_cancelled`, `seat_unknown`, `section_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_in_use`, `seats_dead`, `nothing_left`, `idempotency_mismatch`")))]
pub async fn wait_until_sold(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathEvent(event_id): PathEvent,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<UntilSoldRequest>,
) -> Result<Json<UntilSold>, Problem> {
    let wanted = match body.section {
        None => Wanted::Seats(SeatSet::new(body.seats, BLOCK_SEATS_MAX)?),
        Some(section) if body.seats.is_empty() && !section.contains('\0') => Wanted::Section(section),
        Some(_) => return Err(Problem::new(Code::BadRequest).detail("Either seats or a section, one of them.")),
    };
    Ok(Json(until_sold::wait(pool, event_id, by(&acting, &body.reason)?, key, wanted).await?))
}

/// What waits at an event, and how much is left before it goes on sale.
#[utoipa::path(get, path = "/api/box-office/events/{id}/until-sold", tag = "box office",
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = UntilSoldList), (status = "4XX", description = "`forbidden`, `event_unknown`")))]
pub async fn until_sold(
    State(pool): State<PgPool>,
    _: Clerk,
    PathEvent(event_id): PathEvent,
) -> Result<Json<UntilSoldList>, Problem> {
    Ok(Json(until_sold::list(&pool, event_id).await?))
}

/// Puts on sale at once what waits by this rule. Again: it is.
#[utoipa::path(post, path = "/api/box-office/until-sold/{id}/open", tag = "box office", request_body = UntilSoldEndRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = UntilSold), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `until_sold_unknown`, `until_sold_over`")))]
pub async fn open_until_sold(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathId(id): PathId<Uuid>,
    Body(body): Body<UntilSoldEndRequest>,
) -> Result<Json<UntilSold>, Problem> {
    Ok(Json(until_sold::end(pool, id, by(&acting, &body.reason)?, End::Open).await?))
}

/// Drops a rule: its seats stay blocked, whatever becomes of the others. Again: it is dropped.
#[utoipa::path(post, path = "/api/box-office/until-sold/{id}/drop", tag = "box office", request_body = UntilSoldEndRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = UntilSold), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `until_sold_unknown`, `until_sold_over`")))]
pub async fn drop_until_sold(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathId(id): PathId<Uuid>,
    Body(body): Body<UntilSoldEndRequest>,
) -> Result<Json<UntilSold>, Problem> {
    Ok(Json(until_sold::end(pool, id, by(&acting, &body.reason)?, End::Drop).await?))
}

fn by(acting: &Acting, reason: &str) -> Result<By, Problem> {
    Ok(By { terminal_id: acting.till.terminal_id, actor: acting.actor(), reason: checked_reason(reason)? })
}

impl From<UntilSoldError> for Problem {
    fn from(error: UntilSoldError) -> Self {
        match error {
            UntilSoldError::EventUnknown => Code::EventUnknown.into(),
            UntilSoldError::EventCancelled => Code::EventCancelled.into(),
            UntilSoldError::NothingLeft => Code::NothingLeft.into(),
            UntilSoldError::Unknown => Code::UntilSoldUnknown.into(),
            UntilSoldError::Over { outcome } => Problem::new(Code::UntilSoldOver).with("outcome", outcome),
            UntilSoldError::KeyReused => Code::IdempotencyMismatch.into(),
            UntilSoldError::Block(error) => error.into(),
            UntilSoldError::Database(error) => error.into(),
        }
    }
}
