//! The shift of a terminal, `/api/box-office/shifts…`, and the lock of the day.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use fullhouse_protocol::{
    clerk::StaffRole,
    shift::{
        DayLockRequest, DayLocked, ShiftCheckRequest, ShiftCloseRequest, ShiftListed, ShiftMoveKind, ShiftMoveRequest,
        ShiftOpenRequest, ShiftReport, Shifts,
    },
};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Acting, Body, Clerk, IdempotencyKey, Manager, PathId},
    problem::{Code, Problem},
    staff::said,
};
use crate::{
    box_office::shift::{self, At, DayError, ShiftError},
    config::Config,
};

/// Opens this terminal's shift, with a float in the drawer.
#[utoipa::path(post, path = "/api/box-office/shifts", tag = "box office", request_body = ShiftOpenRequest,
    responses((status = 201, body = ShiftReport), (status = "4XX", description = "`forbidden`, `bad_request`, `shift_open`, `day_locked`")))]
pub async fn open_shift(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    Clerk(acting): Clerk,
    Body(body): Body<ShiftOpenRequest>,
) -> Result<(StatusCode, Json<ShiftReport>), Problem> {
    let opened = shift::open(pool, &config.box_office, at(&acting)?, body).await?;
    Ok((StatusCode::CREATED, Json(opened)))
}

/// This terminal's shifts, the latest first.
#[utoipa::path(get, path = "/api/box-office/shifts", tag = "box office",
    responses((status = 200, body = Shifts), (status = "4XX", description = "`forbidden`")))]
pub async fn shifts(State(pool): State<PgPool>, Clerk(acting): Clerk) -> Result<Json<Shifts>, Problem> {
    Ok(Json(Shifts { shifts: shift::list(&pool, acting.till.terminal_id).await? }))
}

/// The shifts of terminals that are revoked or locked, the open ones first: a manager counts those drawers at another
/// counter.
#[utoipa::path(get, path = "/api/box-office/shifts/stopped", tag = "box office",
    responses((status = 200, body = Shifts), (status = "4XX", description = "`forbidden`, `role_too_low`")))]
pub async fn shifts_of_stopped(State(pool): State<PgPool>, _: Manager) -> Result<Json<Shifts>, Problem> {
    Ok(Json(Shifts { shifts: shift::list_of_stopped(&pool).await? }))
}

/// The X report: what the open shift has come to. It changes nothing.
#[utoipa::path(get, path = "/api/box-office/shifts/current", tag = "box office",
    responses((status = 200, body = ShiftReport), (status = "4XX", description = "`forbidden`, `shift_unknown`: none is open")))]
pub async fn current_shift(State(pool): State<PgPool>, Clerk(acting): Clerk) -> Result<Json<ShiftReport>, Problem> {
    Ok(Json(shift::x_report(&pool, acting.till.terminal_id).await?))
}

/// Moves cash in or out of the drawer: into the safe, change from it, or (a supervisor) paid out for something.
#[utoipa::path(post, path = "/api/box-office/shifts/current/moves", tag = "box office", request_body = ShiftMoveRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ShiftReport), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `shift_required`, `drawer_short`, `idempotency_mismatch`")))]
pub async fn move_cash(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<ShiftMoveRequest>,
) -> Result<Json<ShiftReport>, Problem> {
    if body.kind == ShiftMoveKind::PayOut {
        acting.needs(StaffRole::Supervisor)?;
    }
    let asked = ShiftMoveRequest { reason: said(&body.reason)?, ..body };
    Ok(Json(shift::move_cash(pool, at(&acting)?, key, asked).await?))
}

/// Writes down whether the printer printed a test page and the scanner read it, or why that was skipped. The same again
/// changes nothing.
#[utoipa::path(post, path = "/api/box-office/shifts/current/checks", tag = "box office", request_body = ShiftCheckRequest,
    responses((status = 200, body = ShiftReport), (status = "4XX", description = "`forbidden`, `bad_request`, `shift_required`")))]
pub async fn check_shift(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    Body(body): Body<ShiftCheckRequest>,
) -> Result<Json<ShiftReport>, Problem> {
    let skipped = body.skipped.as_deref().map(said).transpose()?;
    Ok(Json(shift::check(pool, at(&acting)?, ShiftCheckRequest { skipped, ..body }).await?))
}

/// Closes the open shift with what was counted: the Z report. A variance is kept, with its explanation. Somebody else's
/// shift is closed by a manager, who also closes the one of a terminal that is revoked or locked (`shift_id` names it).
/// Asked again for the shift (`shift_id`), it answers the same.
#[utoipa::path(post, path = "/api/box-office/shifts/current/close", tag = "box office", request_body = ShiftCloseRequest,
    responses((status = 200, body = ShiftReport), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `shift_required`, `shift_unknown`, `leases_open`, `cash_beside_card`, `variance_unexplained`")))]
pub async fn close_shift(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    Body(body): Body<ShiftCloseRequest>,
) -> Result<Json<ShiftReport>, Problem> {
    let explanation = body.explanation.as_deref().map(said).transpose()?;
    let asked = ShiftCloseRequest { explanation, ..body };
    Ok(Json(shift::close(pool, at(&acting)?, manages(&acting), asked).await?))
}

/// A shift of this terminal's, or to a manager of any: its Z report as it was printed, or X if it is open.
#[utoipa::path(get, path = "/api/box-office/shifts/{id}", tag = "box office", params(("id" = Uuid, Path)),
    responses((status = 200, body = ShiftReport), (status = "4XX", description = "`forbidden`, `shift_unknown`")))]
pub async fn one_shift(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    PathId(shift_id): PathId<Uuid>,
) -> Result<Json<ShiftReport>, Problem> {
    let own = (!manages(&acting)).then_some(acting.till.terminal_id);
    Ok(Json(shift::one(&pool, shift_id, own).await?))
}

/// Closes the books of a day: every terminal's shifts of it are closed, and none opens any more.
#[utoipa::path(post, path = "/api/box-office/day-lock", tag = "box office", request_body = DayLockRequest,
    responses((status = 200, body = DayLocked), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `shifts_open`")))]
pub async fn lock_day(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    Manager(acting): Manager,
    Body(body): Body<DayLockRequest>,
) -> Result<Json<DayLocked>, Problem> {
    Ok(Json(shift::lock_day(pool, &config.box_office, at(&acting)?, body.date).await?))
}

fn manages(acting: &Acting) -> bool {
    acting.staff.as_ref().is_some_and(|staff| staff.role == StaffRole::Manager)
}

/// A shift is somebody's: where nobody signs in there is none.
fn at(acting: &Acting) -> Result<At, Problem> {
    let nobody = || Problem::new(Code::Forbidden).detail("This terminal is not attended: it has no shifts.");
    let staff = acting.staff.as_ref().ok_or_else(nobody)?;
    Ok(At { terminal_id: acting.till.terminal_id, staff_id: staff.staff_id, actor: acting.actor() })
}

impl From<ShiftError> for Problem {
    fn from(error: ShiftError) -> Self {
        match error {
            ShiftError::Invalid(what) => Problem::new(Code::BadRequest).detail(what),
            ShiftError::Open(id) => Problem::new(Code::ShiftOpen).with("shift_id", id.to_string()),
            ShiftError::Required => Code::ShiftRequired.into(),
            ShiftError::Unknown => Code::ShiftUnknown.into(),
            ShiftError::DayLocked(day) => Problem::new(Code::DayLocked).with("date", day.to_string()),
            ShiftError::DrawerShort { expected_minor } => {
                Problem::new(Code::DrawerShort).with("expected_minor", expected_minor)
            }
            ShiftError::KeyReused => Code::IdempotencyMismatch.into(),
            ShiftError::LeasesOpen(leases) => Problem::new(Code::LeasesOpen).with("leases", leases),
            ShiftError::VarianceUnexplained { expected_minor, counted_minor, variance_minor } => {
                Problem::new(Code::VarianceUnexplained)
                    .with("expected_minor", expected_minor)
                    .with("counted_minor", counted_minor)
                    .with("variance_minor", variance_minor)
            }
            ShiftError::SomebodyElses { opened_by } => Problem::new(Code::RoleTooLow)
                .detail(format!("This shift is {opened_by}'s: they close it, or a manager.")),
            ShiftError::Database(error) => error.into(),
        }
    }
}

impl From<DayError> for Problem {
    fn from(error: DayError) -> Self {
        match error {
            DayError::Future => Problem::new(Code::BadRequest).detail("This day has not come yet."),
            DayError::ShiftsOpen(open) => Problem::new(Code::ShiftsOpen).with("shifts", listed(&open)),
            DayError::Database(error) => error.into(),
        }
    }
}

fn listed(open: &[ShiftListed]) -> serde_json::Value {
    let one = |shift: &ShiftListed| json!({ "shift_id": shift.shift_id, "terminal_name": shift.terminal_name, "opened_by": shift.opened_by });
    open.iter().map(one).collect()
}
