//! Orders in the hands of staff: looked up, noted, exchanged. `/api/staff/…`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::TimeDelta;
use fullhouse_protocol::{
    clerk::StaffRole,
    orders::{Order, OrderAnswer, OrderState},
    staff::{
        BackPart, DuePaymentAnswer, DuePaymentRequest, ExchangeAnswer, ExchangeOffer, ExchangeOfferRequest,
        ExchangeRequest, GiveUpRequest, GivenUp, NoteRequest, OrdersFound, SeatPair, StaffOrder,
    },
};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    box_office::cash,
    extract::{Body, IdempotencyKey, PathId},
    holds, orders,
    payments::needs_provider,
    problem::{Code, Problem},
    staff::{Staff, become_of, said},
};
use crate::{
    box_office,
    checkout::{find, log, view::Whose},
    config::Config,
    hold::desk::Desks,
    payment::{
        Payments, attempt, due,
        exchange::{self, ExchangeError},
        refund, swap,
    },
    seat_map::SeatSet,
    ticket::{press::Press, sheet},
    words::Language,
};

/// Nobody types more than this.
const QUERY_MAX: usize = 300;
/// Seats of one order.
const SEATS_MAX: usize = 50;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Search {
    /// An order's code, a ticket's code, a name, an address, a seat ("Stalls 3 12"), a card's last four digits,
    /// or an id of the payment provider's (`pi_…`, `ch_…`, `re_…`).
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

/// An order as it is now, whoever's.
async fn shown(pool: &PgPool, config: &Config, order_id: Uuid) -> Result<Order, Problem> {
    Ok(orders::answer(pool, config, Whose::One(order_id)).await?.order)
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
    let order = shown(&pool, &config, order_id).await?;
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
    match log::write(pool, order_id, said(&body.text)?, staff.actor).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Code::OrderUnknown.into()),
    }
}

/// Exchanges seats for free ones, in one step: nobody can take either in between. Of the same event, paid in cash or
/// not at all, the order stays the same. Of another event, or paid up by card, the new seats are another order: the old
/// ones are the buyer's until that is paid.
#[utoipa::path(post, path = "/api/staff/orders/{id}/exchange", tag = "staff", request_body = ExchangeRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ExchangeAnswer), (status = "4XX", description = "`forbidden`, `shift_required`, `shift_currency`, `role_too_low`, `bad_request`, `order_not_paid`, `attempt_live`, `seat_unknown`, `seat_partly_refunded`, `seats_unavailable`, `seats_in_use`: the buyer holds others of that event, `limit_reached`, `ticket_type_unknown`, `tender_invalid`, `event_unknown`, `event_cancelled`, `order_on_account`, `reader_not_yours`, `payment_gate_closed`, `too_late_to_pay`, `idempotency_mismatch`")))]
pub async fn exchange(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    staff: Staff,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<ExchangeRequest>,
) -> Result<Json<ExchangeAnswer>, Problem> {
    staff.needs(StaffRole::Supervisor)?;
    let pairs = pairs(&body.seats)?;
    body.received_minor.map(cash).transpose()?;
    let (reason, actor) = (said(&body.reason)?, staff.actor.clone());
    if body.event_id.is_none() && !body.by_card && body.reader.is_none() {
        let ask = exchange::Ask { order_id, key, pairs, received_minor: body.received_minor, reason, actor };
        let done = exchange::exchange(&pool, ask).await?;
        payments.wake();
        return exchanged(&pool, &config, order_id, done.difference_minor, body.received_minor).await;
    }
    let pays = pays(&payments, &body)?;
    if let Some(reader) = &body.reader {
        staff.own_reader(&pool, reader).await?;
    }
    let reader_key = key.clone();
    let ask = swap::Ask { order_id, key, event_id: body.event_id, pairs, pays, reason, actor };
    let done = swap::swap(&pool, ask).await?;
    if let Some(reader) = body.reader.filter(|_| done.difference_minor > 0) {
        let reading = box_office::Reading { reader_id: reader, cash_minor: 0, key: reader_key };
        box_office::collect_at(&pool, &payments, done.order_id, reading, staff.actor.clone()).await?;
    }
    payments.wake();
    exchanged(&pool, &config, done.order_id, done.difference_minor, body.received_minor).await
}

/// What an exchange would come to, and how what goes back would go. Nothing is changed.
#[utoipa::path(post, path = "/api/staff/orders/{id}/exchange-offer", tag = "staff", request_body = ExchangeOfferRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = ExchangeOffer), (status = "4XX", description = "`forbidden`, `bad_request`, `order_unknown`, `order_not_paid`, `attempt_live`, `seat_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seat_partly_refunded`, `seats_unavailable`, `ticket_type_unknown`, `refund_too_much`, `order_on_account`")))]
pub async fn exchange_offer(
    State(pool): State<PgPool>,
    _: Staff,
    PathId(order_id): PathId<Uuid>,
    Body(body): Body<ExchangeOfferRequest>,
) -> Result<Json<ExchangeOffer>, Problem> {
    let pairs = pairs(&body.seats)?;
    let offer = exchange::offer(&pool, order_id, body.event_id, &pairs).await?;
    let back = offer.back.into_iter().map(|(kind, amount_minor)| BackPart { kind, amount_minor }).collect();
    Ok(Json(ExchangeOffer { difference_minor: offer.difference_minor, currency: offer.currency, back }))
}

/// Leaves an exchange that waits to be paid: the new seats go back on sale, the old ones stay. Again: nothing happens.
#[utoipa::path(post, path = "/api/staff/orders/{id}/leave-exchange", tag = "staff", params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", description = "`forbidden`, `order_unknown`, `order_not_open`: it is paid, or of no exchange, `hold_frozen`: a card is at it")))]
pub async fn leave_exchange(
    State(pool): State<PgPool>,
    State(desks): State<Desks>,
    State(config): State<Arc<Config>>,
    _: Staff,
    PathId(order_id): PathId<Uuid>,
) -> Result<StatusCode, Problem> {
    let Some(waiting) = swap::waiting(&pool, order_id).await? else {
        return match shown(&pool, &config, order_id).await?.state {
            OrderState::Cancelled => Ok(StatusCode::NO_CONTENT),
            _ => Err(Code::OrderNotOpen.into()),
        };
    };
    let Json(_) = holds::release_as(&pool, &desks, waiting.buyer_id, waiting.hold_id, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which seat for which: each of them once.
fn pairs(seats: &[SeatPair]) -> Result<Vec<(i32, i32)>, Problem> {
    SeatSet::new(seats.iter().map(|p| p.from).collect(), SEATS_MAX)?;
    SeatSet::new(seats.iter().map(|p| p.to).collect(), SEATS_MAX)?;
    Ok(seats.iter().map(|p| (p.from, p.to)).collect())
}

/// How long new seats may wait to be paid: a link in a mail is answered within a day, or not at all.
const PAY_WITHIN_S: std::ops::RangeInclusive<u32> = 120..=86_400;

fn pays(payments: &Payments, body: &ExchangeRequest) -> Result<swap::Pays, Problem> {
    let by_card = body.by_card || body.reader.is_some();
    if by_card && body.received_minor.is_some() {
        return Err(Problem::new(Code::BadRequest).detail("It is paid in cash or by card, not both."));
    }
    if body.pay_within_s.is_some_and(|s| !by_card || !PAY_WITHIN_S.contains(&s)) {
        return Err(Problem::new(Code::BadRequest).detail("pay_within_s is of a card: from 120 to 86400 seconds."));
    }
    if !by_card {
        return Ok(swap::Pays::Cash { received_minor: body.received_minor.unwrap_or(0) });
    }
    needs_provider(payments)?;
    Ok(swap::Pays::Card { within: body.pay_within_s.map(|s| TimeDelta::seconds(i64::from(s))) })
}

async fn exchanged(
    pool: &PgPool,
    config: &Config,
    order_id: Uuid,
    difference_minor: i64,
    received_minor: Option<i64>,
) -> Result<Json<ExchangeAnswer>, Problem> {
    let order = shown(pool, config, order_id).await?;
    let change_minor = received_minor.unwrap_or(0) - difference_minor.max(0);
    Ok(Json(ExchangeAnswer { order, difference_minor, change_minor: change_minor.max(0) }))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PreviewQuery {
    /// `en` (if left out), `ja` or `ko`.
    language: Option<String>,
}

/// A ticket of an event that nobody has bought: what its tickets look like. Its code opens no door.
#[utoipa::path(get, path = "/api/staff/events/{id}/ticket-preview.pdf", tag = "staff", params(("id" = i64, Path), PreviewQuery),
    responses((status = 200, description = "One page", content_type = "application/pdf"), (status = "4XX", description = "`forbidden`, `bad_request`, `event_unknown`")))]
pub async fn ticket_preview(
    State(pool): State<PgPool>,
    State(press): State<Press>,
    _: Staff,
    PathId(event_id): PathId<i64>,
    query: Result<Query<PreviewQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let unreadable = || Problem::new(Code::BadRequest).detail("language is en, ja or ko.");
    let Query(query) = query.map_err(|_| unreadable())?;
    let language = match query.language {
        None => Language::default(),
        Some(code) => Language::read(&code).ok_or_else(unreadable)?,
    };
    let sheet = sheet::sample(&mut *pool.acquire().await?, event_id, language).await?.ok_or(Code::EventUnknown)?;
    let printed = press.print(sheet).await?;
    Ok(([(header::CONTENT_TYPE, "application/pdf"), (header::CACHE_CONTROL, "no-store")], printed.pdf).into_response())
}

/// The clerk stops the reader at which an exchange is paid up. If the card was faster, it is paid.
#[utoipa::path(post, path = "/api/staff/orders/{id}/stop-reader", tag = "staff", params(("id" = Uuid, Path)),
    responses((status = 202, body = OrderAnswer), (status = "4XX", description = "`forbidden`, `order_unknown`")))]
pub async fn stop_reader(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    _: Staff,
    PathId(order_id): PathId<Uuid>,
) -> Result<(StatusCode, Json<OrderAnswer>), Problem> {
    attempt::stop_reader(&pool, order_id).await?;
    payments.wake();
    Ok((StatusCode::ACCEPTED, Json(orders::answer(&pool, &config, Whose::One(order_id)).await?)))
}

/// Takes the money for an order that is due (its card could not be charged after its seats were sold), or for the new
/// seats of an exchange that wait to be paid: cash, or another card at a reader of this counter. Whoever sold it. Asked
/// again, it answers with the same.
#[utoipa::path(post, path = "/api/staff/orders/{id}/pay", tag = "staff", request_body = DuePaymentRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = DuePaymentAnswer), (status = "4XX", description = "`forbidden`, `shift_required`, `shift_currency`, `bad_request`, `order_unknown`, `order_not_open`, `attempt_live`, `tender_invalid`, `reader_not_yours`, `payment_gate_closed`, `too_late_to_pay`, `idempotency_mismatch`")))]
pub async fn pay_due(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    staff: Staff,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<DuePaymentRequest>,
) -> Result<Json<DuePaymentAnswer>, Problem> {
    let change_minor = match (body.received_minor, body.reader) {
        (Some(received), None) => {
            let received = cash(received)?;
            match swap::pay_in_cash(&pool, order_id, received, &staff.actor).await? {
                Some(change_minor) => change_minor,
                None => due::pay_in_cash(&pool, order_id, received, &staff.actor).await?,
            }
        }
        (None, Some(reader)) => {
            needs_provider(&payments)?;
            staff.own_reader(&pool, &reader).await?;
            let reading = box_office::Reading { reader_id: reader, cash_minor: 0, key };
            box_office::collect_due(&pool, &payments, order_id, reading, staff.actor.clone()).await?;
            0
        }
        _ => return Err(Problem::new(Code::BadRequest).detail("It is paid in cash or at a reader: one of them.")),
    };
    let order = shown(&pool, &config, order_id).await?;
    Ok(Json(DuePaymentAnswer { order, change_minor }))
}

/// Gives up an order that is due, before its time is over: nobody will pay. Answers with the cash that goes back over
/// the counter. Again: the same.
#[utoipa::path(post, path = "/api/staff/orders/{id}/give-up", tag = "staff", request_body = GiveUpRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = GivenUp), (status = "4XX", description = "`forbidden`, `shift_required`, `role_too_low`, `bad_request`, `order_unknown`, `order_not_open`: nothing is due of it, `attempt_live`")))]
pub async fn give_up_due(
    State(pool): State<PgPool>,
    staff: Staff,
    PathId(order_id): PathId<Uuid>,
    Body(body): Body<GiveUpRequest>,
) -> Result<Json<GivenUp>, Problem> {
    staff.needs(StaffRole::Supervisor)?;
    let cash_back_minor =
        due::give_up(&pool, order_id, become_of(body.seats_become), &said(&body.reason)?, &staff.actor).await?;
    Ok(Json(GivenUp { cash_back_minor }))
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
            ExchangeError::SeatsPartlyRefunded(seats) => Problem::new(Code::SeatPartlyRefunded)
                .detail("They can be given back whole, and others be sold.")
                .with("seats", seats),
            ExchangeError::SeatsUnavailable(seats) => Problem::new(Code::SeatsUnavailable).with("lost", seats),
            ExchangeError::TicketTypeUnknown { seat_no, ticket_type } => {
                Problem::new(Code::TicketTypeUnknown).with("seat_no", seat_no).with("ticket_type", ticket_type)
            }
            ExchangeError::EventUnknown => Code::EventUnknown.into(),
            ExchangeError::EventCancelled => Code::EventCancelled.into(),
            ExchangeError::OtherCurrency(currency) => Problem::new(Code::TenderInvalid)
                .detail("The other event sells in another currency.")
                .with("currency", currency),
            ExchangeError::OnAccount => Code::OrderOnAccount.into(),
            ExchangeError::BuyerHolds => Problem::new(Code::SeatsInUse)
                .detail("The buyer holds seats of that event: they are paid or given back first."),
            ExchangeError::LimitReached { limit } => Problem::new(Code::LimitReached).with("limit", limit),
            ExchangeError::MoreToPay { difference_minor } => {
                Problem::new(Code::TenderInvalid).with("difference_minor", difference_minor)
            }
            ExchangeError::Refund(error) => error.into(),
            ExchangeError::Database(error) => error.into(),
        }
    }
}
