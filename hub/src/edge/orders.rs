//! Orders: a hold becomes a priced order at `/api/holds/{id}/checkout`, and is followed at `/api/orders`.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use chrono::{DateTime, Utc};
use fullhouse_protocol::orders::{
    CancellationOffer, CancellationRequest, CheckoutRequest, Order, OrderAnswer, OrderState, OrdersAnswer, TicketChoice,
};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Body, Buyer, IdempotencyKey, PathId},
    payments,
    problem::{Code, Problem},
};
use crate::{
    checkout::{
        self, Basket, Channel, CheckoutError,
        view::{Whose, orders},
    },
    config::Config,
    payment::{
        Payments,
        give_up::{self, GiveUpError},
    },
    seat_map::{SeatNo, SeatSet},
    ticket::{press::Press, sheet},
};

/// Seats of one order.
const SEATS_MAX: usize = 50;

/// Prices a hold. Repeated with other ticket types, it prices it again.
#[utoipa::path(post, path = "/api/holds/{id}/checkout", tag = "orders", request_body = CheckoutRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OrderAnswer), (status = "4XX", description = "`hold_ended`, `hold_frozen`, `event_cancelled`, `seat_unknown`, `seats_repeated`, `ticket_type_unknown`, `event_full_of_checkouts`")))]
pub async fn check_out(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(press): State<Press>,
    buyer: Buyer,
    PathId(hold_id): PathId<Uuid>,
    Body(body): Body<CheckoutRequest>,
) -> Result<Json<OrderAnswer>, Problem> {
    let basket = Basket {
        hold_id,
        buyer_id: buyer.buyer_id,
        ticket_types: choices(body.tickets)?,
        prices: HashMap::new(),
        says_prices: false,
        channel: Channel::Web,
        actor: "buyer".into(),
    };
    let order_id = checkout::price(pool.clone(), basket).await?;
    before_paying(&pool, &config, &press, buyer.buyer_id, order_id).await.map(Json)
}

/// My orders, the latest first.
#[utoipa::path(get, path = "/api/orders", tag = "orders", responses((status = 200, body = OrdersAnswer)))]
pub async fn list(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    buyer: Buyer,
) -> Result<Json<OrdersAnswer>, Problem> {
    let (orders, now) = with_attempts(&pool, &config, Whose::Buyers(buyer.buyer_id)).await?;
    Ok(Json(OrdersAnswer { orders, now }))
}

/// One of my orders. Somebody else's is as unknown as one that never was.
#[utoipa::path(get, path = "/api/orders/{id}", tag = "orders", params(("id" = Uuid, Path)),
    responses((status = 200, body = OrderAnswer), (status = "4XX", description = "Refused")))]
pub async fn one(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(press): State<Press>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
) -> Result<Json<OrderAnswer>, Problem> {
    before_paying(&pool, &config, &press, buyer.buyer_id, order_id).await.map(Json)
}

/// Takes an order that costs nothing. No card is asked for; asked again, it answers the same.
#[utoipa::path(post, path = "/api/orders/{id}/claim", tag = "orders", params(("id" = Uuid, Path)),
    responses((status = 200, body = OrderAnswer), (status = "4XX", description = "`order_not_open`, `hold_ended`, `tender_invalid`, `attempt_live`")))]
pub async fn claim(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
) -> Result<Json<OrderAnswer>, Problem> {
    checkout::claim(pool.clone(), order_id, buyer.buyer_id).await?;
    answer(&pool, &config, Whose::BuyersOne { buyer_id: buyer.buyer_id, order_id }).await.map(Json)
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SeatsQuery {
    /// Numbers of seats, with commas between them.
    seats: String,
}

/// What comes back of seats of mine, if I give them back now. Nothing is changed.
#[utoipa::path(get, path = "/api/orders/{id}/cancellation", tag = "orders", params(("id" = Uuid, Path), SeatsQuery),
    responses((status = 200, body = CancellationOffer), (status = "4XX", description = "`bad_request`, `order_not_paid`, `attempt_live`, `refund_not_allowed`, `refund_too_late`, `seat_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_too_few`, `companion_needs_accessible`")))]
pub async fn cancellation(
    State(pool): State<PgPool>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
    query: Result<Query<SeatsQuery>, QueryRejection>,
) -> Result<Json<CancellationOffer>, Problem> {
    let unreadable = || Problem::new(Code::BadRequest).detail("seats is a list of numbers, such as 4,5.");
    let Query(query) = query.map_err(|_| unreadable())?;
    let seats: Result<Vec<SeatNo>, _> = query.seats.split(',').map(str::parse).collect();
    let seats = SeatSet::new(seats.map_err(|_| unreadable())?, SEATS_MAX)?;
    Ok(Json(give_up::offer(&pool, order_id, buyer.buyer_id, seats.as_slice()).await?))
}

/// Gives seats of mine back, for what I was told comes back. The same key again finds what it gave back.
#[utoipa::path(post, path = "/api/orders/{id}/cancellation", tag = "orders", request_body = CancellationRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = OrderAnswer), (status = "4XX", description = "`order_not_paid`, `attempt_live`, `refund_not_allowed`, `refund_too_late`, `amount_mismatch`, `seat_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_too_few`, `companion_needs_accessible`, `idempotency_mismatch`")))]
pub async fn cancel_seats(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<CancellationRequest>,
) -> Result<Json<OrderAnswer>, Problem> {
    let seats = SeatSet::new(body.seats, SEATS_MAX)?.as_slice().to_vec();
    let agreed = give_up::Agreed { order_id, buyer_id: buyer.buyer_id, key, seats, back_minor: body.back_minor };
    give_up::give_up(&pool, agreed).await?;
    payments.wake();
    answer(&pool, &config, Whose::BuyersOne { buyer_id: buyer.buyer_id, order_id }).await.map(Json)
}

impl From<GiveUpError> for Problem {
    fn from(error: GiveUpError) -> Self {
        match error {
            GiveUpError::OrderUnknown => Code::OrderUnknown.into(),
            GiveUpError::NotAllowed => Code::RefundNotAllowed.into(),
            GiveUpError::TooLate(until) => Problem::new(Code::RefundTooLate).with("until", until.to_rfc3339()),
            GiveUpError::PartyTooSmall { minimum } => Problem::new(Code::SeatsTooFew).with("minimum", minimum),
            GiveUpError::CompanionAlone(seats) => Problem::new(Code::CompanionNeedsAccessible).with("seats", seats),
            GiveUpError::OtherAmount { back_minor } => {
                Problem::new(Code::AmountMismatch).detail("Another amount comes back.").with("back_minor", back_minor)
            }
            GiveUpError::Refund(error) => error.into(),
            GiveUpError::Database(error) => error.into(),
        }
    }
}

pub(super) async fn answer(pool: &PgPool, config: &Config, whose: Whose) -> Result<OrderAnswer, Problem> {
    let (orders, now) = with_attempts(pool, config, whose).await?;
    let order = orders.into_iter().next().ok_or(Code::OrderUnknown)?;
    Ok(OrderAnswer { order, now })
}

/// One of a buyer's own; while it is open they are told what their tickets will say, too.
async fn before_paying(
    pool: &PgPool,
    config: &Config,
    press: &Press,
    buyer_id: Uuid,
    order_id: Uuid,
) -> Result<OrderAnswer, Problem> {
    let mut answer = answer(pool, config, Whose::BuyersOne { buyer_id, order_id }).await?;
    if answer.order.state == OrderState::Open
        && let Some((name, language)) = sheet::holder(&mut *pool.acquire().await?, order_id).await?
    {
        answer.order.name_on_tickets = press.instead_of(name, language).await;
    }
    Ok(answer)
}

/// The attempts are read first: an order is never behind what its attempt says.
async fn with_attempts(pool: &PgPool, config: &Config, whose: Whose) -> sqlx::Result<(Vec<Order>, DateTime<Utc>)> {
    let mut attempts = payments::attempts(pool, whose).await?;
    let (mut orders, now) = orders(pool, whose, config.payment.pay_margin_s).await?;
    for order in &mut orders {
        order.attempt = attempts.remove(&order.id);
    }
    Ok((orders, now))
}

pub(super) fn choices(tickets: Vec<TicketChoice>) -> Result<HashMap<SeatNo, String>, Problem> {
    let named = tickets.len();
    let mut seats: Vec<SeatNo> = tickets.iter().map(|t| t.seat_no).collect();
    let choices: HashMap<SeatNo, String> = tickets.into_iter().map(|t| (t.seat_no, t.ticket_type)).collect();
    if choices.len() != named {
        seats.sort_unstable();
        let repeated: Vec<SeatNo> = seats.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
        return Err(Problem::new(Code::SeatsRepeated).with("seats", repeated));
    }
    Ok(choices)
}

impl From<CheckoutError> for Problem {
    fn from(error: CheckoutError) -> Self {
        match error {
            CheckoutError::HoldUnknown => Code::HoldUnknown.into(),
            CheckoutError::HoldEnded => Code::HoldEnded.into(),
            CheckoutError::HoldFrozen => Code::HoldFrozen.into(),
            CheckoutError::EventCancelled => Code::EventCancelled.into(),
            CheckoutError::EventFull => Problem::new(Code::EventFullOfCheckouts).retry_after_s(5),
            CheckoutError::SeatNotHeld { seat_no } => {
                Problem::new(Code::SeatUnknown).detail("The seat is not part of the hold.").with("seats", vec![seat_no])
            }
            CheckoutError::TicketTypeUnknown { seat_no, ticket_type } => {
                Problem::new(Code::TicketTypeUnknown).with("seat_no", seat_no).with("ticket_type", ticket_type)
            }
            CheckoutError::PriceNotSaid { seat_no } => Problem::new(Code::RoleTooLow)
                .detail("Another price is a supervisor's to say.")
                .with("seats", vec![seat_no]),
            CheckoutError::TotalTooLarge { total_minor } => Problem::new(Code::TenderInvalid)
                .detail("So much can't be paid at once: hold fewer seats.")
                .with("total_minor", total_minor),
            CheckoutError::Database(error) => error.into(),
        }
    }
}
