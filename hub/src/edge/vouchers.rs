//! Vouchers at a counter: made by a supervisor, taken by any clerk (as the tender of a sale).

use axum::{Json, extract::State, http::StatusCode};
use chrono::{SecondsFormat, SubsecRound};
use fullhouse_protocol::{
    tickets::Reason,
    voucher::{Voucher, VoucherLook, VoucherMade, VoucherRequest, Vouchers},
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    box_office::checked_reason,
    extract::{Body, Clerk, IdempotencyKey, PathEvent, PathId, Supervisor},
    problem::{Code, Problem},
};
use crate::{
    auth::is_readable,
    box_office::voucher::{self, VoucherError},
    checkout::{VoucherRefusal, voucher_of_code},
};

const SEATS_MAX: i32 = 50;
const RECIPIENT_MAX: usize = 200;

/// Promises seats of an event to whoever brings the code, for nothing. The code is shown this once.
#[utoipa::path(post, path = "/api/box-office/vouchers", tag = "box office", request_body = VoucherRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = VoucherMade), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `event_unknown`, `event_cancelled`, `until_invalid`, `idempotency_mismatch`")))]
pub async fn make_voucher(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<VoucherRequest>,
) -> Result<Json<VoucherMade>, Problem> {
    let recipient = body.recipient.trim().to_owned();
    let plain = |text: &str| !text.chars().any(char::is_control);
    if !(1..=SEATS_MAX).contains(&body.seats_max)
        || !(1..=RECIPIENT_MAX).contains(&recipient.chars().count())
        || !is_readable(&recipient)
        || !plain(&recipient)
    {
        return Err(Problem::new(Code::BadRequest).detail(format!(
            "A voucher is for 1 to {SEATS_MAX} seats, and for somebody: 1 to {RECIPIENT_MAX} characters."
        )));
    }
    let reason = checked_reason(&body.reason)?;
    // As the database keeps it: the same request again is the same voucher.
    let valid_until = body.valid_until.map(|until| until.trunc_subsecs(6));
    let asked = VoucherRequest { recipient, reason, valid_until, ..body };
    Ok(Json(voucher::make(pool, acting.till.terminal_id, acting.actor(), key, asked).await?))
}

/// The vouchers of an event, and what became of each.
#[utoipa::path(get, path = "/api/box-office/events/{id}/vouchers", tag = "box office",
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = Vouchers), (status = "4XX", description = "`forbidden`, `event_unknown`")))]
pub async fn vouchers(
    State(pool): State<PgPool>,
    _: Clerk,
    PathEvent(event_id): PathEvent,
) -> Result<Json<Vouchers>, Problem> {
    Ok(Json(Vouchers { vouchers: voucher::list(&pool, event_id).await? }))
}

/// What a voucher's code is good for, before anything is sold. (The code is a secret: it stands in no address.)
#[utoipa::path(post, path = "/api/box-office/vouchers/look", tag = "box office", request_body = VoucherLook,
    responses((status = 200, body = Voucher), (status = "4XX", description = "`forbidden`, `voucher_unknown`")))]
pub async fn look_at_voucher(
    State(pool): State<PgPool>,
    _: Clerk,
    Body(body): Body<VoucherLook>,
) -> Result<Json<Voucher>, Problem> {
    let id = voucher_of_code(&pool, &body.code).await?.ok_or(Code::VoucherUnknown)?;
    voucher::one(&pool, id).await?.map(Json).ok_or_else(|| Code::VoucherUnknown.into())
}

/// Withdraws a voucher that nobody has used. Again: it is withdrawn.
#[utoipa::path(post, path = "/api/box-office/vouchers/{id}/withdraw", tag = "box office", request_body = Reason,
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `voucher_unknown`, `voucher_used`")))]
pub async fn withdraw_voucher(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathId(id): PathId<Uuid>,
    Body(body): Body<Reason>,
) -> Result<StatusCode, Problem> {
    voucher::withdraw(pool, acting.actor(), id, checked_reason(&body.reason)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<VoucherError> for Problem {
    fn from(error: VoucherError) -> Self {
        match error {
            VoucherError::EventUnknown => Code::EventUnknown.into(),
            VoucherError::EventCancelled => Code::EventCancelled.into(),
            VoucherError::UntilInvalid { latest } => Problem::new(Code::UntilInvalid)
                .detail("A voucher is valid until its event begins, at most.")
                .with("latest", latest.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            VoucherError::KeyReused => Code::IdempotencyMismatch.into(),
            VoucherError::Unknown => Code::VoucherUnknown.into(),
            VoucherError::Used => Code::VoucherUsed.into(),
            VoucherError::Database(error) => error.into(),
        }
    }
}

impl From<VoucherRefusal> for Problem {
    fn from(refusal: VoucherRefusal) -> Self {
        match refusal {
            VoucherRefusal::Unknown => Code::VoucherUnknown.into(),
            VoucherRefusal::Used => Code::VoucherUsed.into(),
            VoucherRefusal::Over => Code::VoucherOver.into(),
            VoucherRefusal::Mismatch { event_id, seats_max } => {
                Problem::new(Code::VoucherMismatch).with("event_id", event_id).with("seats_max", seats_max)
            }
        }
    }
}
