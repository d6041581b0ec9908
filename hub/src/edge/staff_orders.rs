//! Orders in the hands of staff: looked up, noted, exchanged. `/api/staff/…`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State},
    http::StatusCode,
};
use fullhouse_protocol::staff::{ExchangeAnswer, ExchangeRequest, NoteRequest, OrdersFound, StaffOrder};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Body, IdempotencyKey, PathId},
    orders,
    problem::{Code, Problem},
    staff::{Staff, said},
};
use crate::{
    checkout::{find, log, view::Whose},
    config::Config,
    payment::{
        Payments,
        exchange::{self, ExchangeError},
        refund,
    },
    seat_map::SeatSet,
};

/// Nobody types more than this.
const QUERY_MAX: usize = 300;
/// Seats of one order.
const SEATS_MAX: usize = 50;
/// Nobody hands over more than ten times the largest order.
const CASH_MINOR_MAX: i64 = 999_999_999;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Search {
    /// An order's code, a ticket's code, a name, an address, or a seat ("Stalls 3 12").
    q: String,
    event_id: Option<i64>,
}

/// Orders by whatever somebody has, the latest first.
#[utoipa::path(get, path = "/api/staff/orders", tag = "staff", params(Search),
    responses((status = 200, body = OrdersFound), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn search(
    State(pool): State<PgPool>,
    _: Staff,
    query: Result<Query<Search>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<OrdersFound>, Problem> {
    let Query(search) = query.map_err(|_| Problem::new(Code::BadRequest).detail("q is what to look for."))?;
    if search.q.len() > QUERY_MAX || search.q.contains('\0') {
        return Err(Problem::new(Code::BadRequest).detail("Nothing that long can be looked for."));
    }
    Ok(Json(OrdersFound { orders: find::orders(&pool, &search.q, search.event_id).await? }))
}

/// An order, whoever's, with its log and what was given back of it.
#[utoipa::path(get, path = "/api/staff/orders/{id}", tag = "staff", params(("id" = Uuid, Path)),
    responses((status = 200, body = StaffOrder), (status = "4XX", description = "`forbidden`")))]
pub async fn one(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    _: Staff,
    PathId(order_id): PathId<Uuid>,
) -> Result<Json<StaffOrder>, Problem> {
    let order = orders::answer(&pool, &config, Whose::One(order_id)).await?.order;
    Ok(Json(StaffOrder {
        order,
        log: log::read(&pool, order_id).await?,
        given_back: refund::given_back_of(&pool, order_id).await?,
    }))
}

/// Writes beside an order.
#[utoipa::path(post, path = "/api/staff/orders/{id}/notes", tag = "staff", request_body = NoteRequest,
    params(("id" = Uuid, Path)), responses((status = 204), (status = "4XX", description = "`forbidden`, `bad_request`")))]
pub async fn note(
    State(pool): State<PgPool>,
    staff: Staff,
    PathId(order_id): PathId<Uuid>,
    Body(body): Body<NoteRequest>,
) -> Result<StatusCode, Problem> {
    match log::write(&pool, order_id, &said(&body.text)?, &staff.actor).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Code::OrderUnknown.into()),
    }
}

/// Exchanges seats for free ones of the same event, in one step: nobody can take either in between.
#[utoipa::path(post, path = "/api/staff/orders/{id}/exchange", tag = "staff", request_body = ExchangeRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ExchangeAnswer), (status = "4XX", description = "`forbidden`, `order_not_paid`, `attempt_live`, `seat_unknown`, `seats_unavailable`, `ticket_type_unknown`, `tender_invalid`, `idempotency_mismatch`")))]
pub async fn exchange(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    staff: Staff,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<ExchangeRequest>,
) -> Result<Json<ExchangeAnswer>, Problem> {
    SeatSet::new(body.seats.iter().map(|p| p.from).collect(), SEATS_MAX)?;
    SeatSet::new(body.seats.iter().map(|p| p.to).collect(), SEATS_MAX)?;
    if body.received_minor.is_some_and(|received| !(0..=CASH_MINOR_MAX).contains(&received)) {
        return Err(Problem::new(Code::TenderInvalid).detail("So much cash was not handed over."));
    }
    let ask = exchange::Ask {
        order_id,
        key,
        pairs: body.seats.iter().map(|p| (p.from, p.to)).collect(),
        received_minor: body.received_minor,
        reason: said(&body.reason)?,
        actor: staff.actor,
    };
    let done = exchange::exchange(&pool, ask).await?;
    payments.wake();
    let order = orders::answer(&pool, &config, Whose::One(order_id)).await?.order;
    let change_minor = body.received_minor.unwrap_or(0) - done.difference_minor.max(0);
    Ok(Json(ExchangeAnswer { order, difference_minor: done.difference_minor, change_minor: change_minor.max(0) }))
}

impl From<ExchangeError> for Problem {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::OrderUnknown => Code::OrderUnknown.into(),
            ExchangeError::KeyReused => Code::IdempotencyMismatch.into(),
            ExchangeError::OrderNotPaid(state) => Problem::new(Code::OrderNotPaid).with("state", state),
            ExchangeError::AttemptLive(id) => Problem::new(Code::AttemptLive).with("attempt_id", id.to_string()),
            ExchangeError::SeatsNotSold(seats) => {
                Problem::new(Code::SeatUnknown).detail("The order does not have these seats.").with("seats", seats)
            }
            ExchangeError::SeatsUnavailable(seats) => Problem::new(Code::SeatsUnavailable).with("lost", seats),
            ExchangeError::TicketTypeUnknown { seat_no, ticket_type } => {
                Problem::new(Code::TicketTypeUnknown).with("seat_no", seat_no).with("ticket_type", ticket_type)
            }
            ExchangeError::MoreToPay { difference_minor } => {
                Problem::new(Code::TenderInvalid).with("difference_minor", difference_minor)
            }
            ExchangeError::Refund(error) => error.into(),
            ExchangeError::Database(error) => error.into(),
        }
    }
}
