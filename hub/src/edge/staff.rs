//! What staff do about money: `/api/staff/…`. An operator's session, or the token of a counter's terminal.

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
};
use fullhouse_protocol::{
    clerk::StaffRole,
    money::{
        CallOffRequest, CalledOff, GateRequest, GivenBack, MoneyList, Refund, RefundRequest, RefundWhat, RetryRequest,
        SeatsBecome,
    },
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Acting, Body, Clerk, IdempotencyKey, Operator, PathId, SignedIn, bearer},
    problem::{Code, Problem},
};
use crate::{
    auth::{Actor, Role, is_readable},
    box_office,
    payment::{
        Payments,
        apportion::{ApportionError, What},
        call_off::{self, CallOffError, Why},
        gate, list,
        owed::{self, Instead, RetryError},
        reconcile::finding,
        refund::{self, Ask, RefundError},
    },
    seat_map::SeatSet,
    serve::Hub,
};

/// Seats of one order.
const SEATS_MAX: usize = 50;

/// Somebody of the house: an operator, or whoever sits at a counter. A kiosk is nobody.
#[derive(Debug, Clone)]
pub struct Staff {
    /// For the logs.
    pub actor: Actor,
    /// The counter that they sit at; an operator may be anywhere.
    pub acting: Option<Acting>,
}

impl FromRequestParts<Hub> for Staff {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        if bearer(&parts.headers).is_some() {
            let Clerk(acting) = Clerk::from_request_parts(parts, hub).await?;
            return Ok(Self { actor: acting.actor(), acting: Some(acting) });
        }
        let somebody = <SignedIn as FromRequestParts<Hub>>::from_request_parts(parts, hub).await?;
        match somebody.role {
            Role::Operator => Ok(Self { actor: Actor::person(operator_name(&somebody)), acting: None }),
            Role::Fan => Err(Code::Forbidden.into()),
        }
    }
}

impl Staff {
    /// The reader belongs to the counter that they sit at.
    pub async fn own_reader(&self, pool: &PgPool, reader: &str) -> Result<(), Problem> {
        let acting = self.acting.as_ref().ok_or(Code::ReaderNotYours)?;
        box_office::own_reader(pool, acting.till.terminal_id, reader).await?;
        Ok(())
    }

    /// Refuses whoever of the staff has a lesser role. An operator may do what any of them may.
    pub fn needs(&self, role: StaffRole) -> Result<(), Problem> {
        self.acting.as_ref().map_or(Ok(()), |acting| acting.needs(role))
    }
}

pub(super) fn operator_name(somebody: &SignedIn) -> String {
    format!("operator {}", somebody.email)
}

/// Gives back all of an order, some of its seats, or an amount. The same key again finds what it gave back.
#[utoipa::path(post, path = "/api/staff/orders/{id}/refunds", tag = "staff", request_body = RefundRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = GivenBack), (status = "4XX", description = "`forbidden`, `shift_required`, `shift_currency`, `role_too_low`, `bad_request`, `order_not_paid`, `attempt_live`, `seat_unknown`, `refund_too_much`, `tender_invalid`, `idempotency_mismatch`")))]
pub async fn refund(
    State(pool): State<PgPool>,
    State(payments): State<Payments>,
    staff: Staff,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<RefundRequest>,
) -> Result<Json<GivenBack>, Problem> {
    staff.needs(StaffRole::Supervisor)?;
    let what = match body.what {
        RefundWhat::All {} => What::All,
        RefundWhat::Seats { seats } => What::Seats(SeatSet::new(seats, SEATS_MAX)?.as_slice().to_vec()),
        RefundWhat::Amount { amount_minor } if amount_minor < 1 => {
            return Err(Problem::new(Code::BadRequest).detail("amount_minor is 1 at least."));
        }
        RefundWhat::Amount { amount_minor } => What::Amount(amount_minor),
    };
    let ask = Ask {
        order_id,
        key,
        what,
        seats_become: body.seats_become.map(become_of),
        reason: said(&body.reason)?,
        actor: staff.actor,
        called_off: false,
    };
    let request_id = refund::give_back(&pool, ask).await?;
    payments.wake();
    refund::given_back(&pool, request_id).await?.map(Json).ok_or_else(|| Code::Internal.into())
}

pub(super) fn become_of(wire: SeatsBecome) -> refund::SeatsBecome {
    match wire {
        SeatsBecome::OnSale => refund::SeatsBecome::OnSale,
        SeatsBecome::House => refund::SeatsBecome::House,
        SeatsBecome::Dead => refund::SeatsBecome::Dead,
    }
}

/// Sees to a refund that the provider refused: the card once more, or by hand.
#[utoipa::path(post, path = "/api/staff/refunds/{id}/retry", tag = "staff", request_body = RetryRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Refund, description = "What has taken its place"),
        (status = "4XX", description = "`forbidden`, `shift_required`, `shift_currency`, `role_too_low`, `bad_request`, `not_found`, `refund_not_failed`, `refund_too_much`, `books_not_compared`")))]
pub async fn retry(
    State(pool): State<PgPool>,
    State(payments): State<Payments>,
    staff: Staff,
    PathId(refund_id): PathId<Uuid>,
    Body(body): Body<RetryRequest>,
) -> Result<Json<Refund>, Problem> {
    staff.needs(StaffRole::Supervisor)?;
    let instead = if body.by_hand { Instead::ByHand } else { Instead::Card };
    let instead = owed::retry(&pool, refund_id, instead, said(&body.reason)?, staff.actor).await?;
    payments.wake();
    Ok(Json(owed::one(&pool, instead).await?))
}

/// Whatever about money is not settled.
#[utoipa::path(get, path = "/api/staff/money", tag = "staff", responses((status = 200, body = MoneyList)))]
pub async fn money(State(pool): State<PgPool>, _: Staff) -> Result<Json<MoneyList>, Problem> {
    Ok(Json(list::read(&pool).await?))
}

/// Takes back a reason that the gate is closed for. Only what does not open by itself.
#[utoipa::path(post, path = "/api/staff/gate/{reason}/open", tag = "staff", request_body = GateRequest,
    params(("reason" = String, Path)), responses((status = 204), (status = "4XX", description = "`forbidden`, `bad_request`, `gate_opens_by_itself`")))]
pub async fn open_gate(
    State(pool): State<PgPool>,
    Operator(operator): Operator,
    PathId(reason): PathId<String>,
    Body(body): Body<GateRequest>,
) -> Result<StatusCode, Problem> {
    gate::open(&pool, &reason, &operator_name(&operator), &said(&body.note)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A difference between the books is seen to: it needs nobody any more. It stays on the list while it is there. Other
/// differences do not hide behind it, and a gate that it closed stays so until somebody opens it.
#[utoipa::path(post, path = "/api/staff/findings/{id}/acknowledge", tag = "staff", request_body = GateRequest,
    params(("id" = i64, Path)),
    responses((status = 204), (status = "4XX", description = "`forbidden`, `bad_request`, `not_found`")))]
pub async fn acknowledge(
    State(pool): State<PgPool>,
    Operator(operator): Operator,
    PathId(id): PathId<i64>,
    Body(body): Body<GateRequest>,
) -> Result<StatusCode, Problem> {
    match finding::acknowledge(&pool, id, &operator_name(&operator), &said(&body.note)?).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Code::NotFound.into()),
    }
}

/// No new payments begin until a person opens the gate again.
#[utoipa::path(post, path = "/api/staff/gate/pause", tag = "staff", request_body = GateRequest,
    responses((status = 204), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn pause_gate(
    State(pool): State<PgPool>,
    Operator(operator): Operator,
    Body(body): Body<GateRequest>,
) -> Result<StatusCode, Problem> {
    gate::pause(&pool, &said(&body.note)?, &operator_name(&operator)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Calls an event off: the sale stops, holds end, every order is given back. Again: what was refused is tried once more.
#[utoipa::path(post, path = "/api/staff/events/{id}/call-off", tag = "staff", request_body = CallOffRequest,
    params(("id" = i64, Path)),
    responses((status = 202, body = CalledOff), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn call_off(
    State(pool): State<PgPool>,
    State(payments): State<Payments>,
    Operator(operator): Operator,
    PathId(event_id): PathId<i64>,
    Body(body): Body<CallOffRequest>,
) -> Result<(StatusCode, Json<CalledOff>), Problem> {
    let why = Why {
        reason: said(&body.reason)?,
        public_reason: body.public_reason.as_deref().map(said).transpose()?,
        actor: operator_name(&operator),
    };
    call_off::begin(&pool, event_id, why).await?;
    payments.wake();
    Ok((StatusCode::ACCEPTED, Json(called_off_report(&pool, event_id).await?)))
}

/// How far it is: a result an order, the refused ones first.
#[utoipa::path(get, path = "/api/staff/events/{id}/call-off", tag = "staff", params(("id" = i64, Path)),
    responses((status = 200, body = CalledOff), (status = "4XX", description = "`forbidden`")))]
pub async fn called_off(
    State(pool): State<PgPool>,
    _: Staff,
    PathId(event_id): PathId<i64>,
) -> Result<Json<CalledOff>, Problem> {
    called_off_report(&pool, event_id).await.map(Json)
}

async fn called_off_report(pool: &PgPool, event_id: i64) -> Result<CalledOff, Problem> {
    let missing = || Problem::new(Code::EventUnknown).detail("This event is not called off.");
    call_off::report(pool, event_id).await?.ok_or_else(missing)
}

/// A sentence for the log.
pub(super) fn said(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    if !is_readable(text) || text.chars().count() > 500 {
        return Err(Problem::new(Code::BadRequest).detail("A reason of 1 to 500 characters is needed."));
    }
    Ok(text.to_owned())
}

impl From<RefundError> for Problem {
    fn from(error: RefundError) -> Self {
        match error {
            RefundError::OrderUnknown => Code::OrderUnknown.into(),
            RefundError::KeyReused => Code::IdempotencyMismatch.into(),
            RefundError::OrderNotPaid(state) => Problem::new(Code::OrderNotPaid).with("state", state),
            RefundError::AttemptLive(id) => Problem::new(Code::AttemptLive).with("attempt_id", id.to_string()),
            RefundError::SeatsNeedFate => {
                Problem::new(Code::BadRequest).detail("seats_become says what becomes of the seats.")
            }
            RefundError::Apportion(ApportionError::SeatsNotSold(seats)) => {
                Problem::new(Code::SeatUnknown).detail("The order does not have these seats.").with("seats", seats)
            }
            RefundError::Apportion(ApportionError::MoreThanIsLeft { left_minor }) => {
                Problem::new(Code::RefundTooMuch).with("left_minor", left_minor)
            }
            RefundError::Apportion(ApportionError::NotInSteps { .. }) | RefundError::Money(_) => {
                Problem::new(Code::TenderInvalid).detail("This amount can't be given back in this currency.")
            }
            // Two clicks at once, past the check: the database counts.
            RefundError::Database(error)
                if matches!(
                    crate::db::constraint(&error),
                    Some(
                        "attempt_refund_within_capture"
                            | "tender_refund_within_amount"
                            | "order_line_refund_within_amount"
                    )
                ) =>
            {
                Code::RefundTooMuch.into()
            }
            RefundError::Database(error) => error.into(),
        }
    }
}

impl From<RetryError> for Problem {
    fn from(error: RetryError) -> Self {
        match error {
            RetryError::RefundUnknown => Code::NotFound.into(),
            RetryError::NotFailed(state) => Problem::new(Code::RefundNotFailed).with("state", state),
            RetryError::SeenToOtherwise { replaced_by, kind } => Problem::new(Code::RefundNotFailed)
                .detail("Somebody has seen to it otherwise.")
                .with("state", "failed")
                .with("replaced_by", replaced_by.to_string())
                .with("kind", kind),
            RetryError::MoreThanIsLeft { left_minor } => {
                Problem::new(Code::RefundTooMuch).with("left_minor", left_minor)
            }
            RetryError::BooksNotCompared => Code::BooksNotCompared.into(),
            RetryError::ByHandAlone => Problem::new(Code::BadRequest).detail("It was cash: it goes back by hand."),
            RetryError::Database(error)
                if matches!(
                    crate::db::constraint(&error),
                    Some("attempt_refund_within_capture" | "tender_refund_within_amount")
                ) =>
            {
                Code::RefundTooMuch.into()
            }
            RetryError::Database(error) => error.into(),
        }
    }
}

impl From<gate::OpenError> for Problem {
    fn from(error: gate::OpenError) -> Self {
        match error {
            gate::OpenError::NotClosed(_) => Code::NotFound.into(),
            gate::OpenError::OpensByItself(reason) => Problem::new(Code::GateOpensByItself).with("reason", reason),
            gate::OpenError::Database(error) => error.into(),
        }
    }
}

impl From<CallOffError> for Problem {
    fn from(error: CallOffError) -> Self {
        match error {
            CallOffError::EventUnknown => Code::EventUnknown.into(),
            CallOffError::Database(error) => error.into(),
        }
    }
}
