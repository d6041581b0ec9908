//! What terminals do: `/api/box-office/…`, by `Authorization: Bearer` of a terminal.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use fullhouse_protocol::{
    box_office::{
        BlockRequest, PriceOverride, SectionBlocked, TillCardRequest, TillCardStopRequest, TillHoldAnswer,
        TillHoldRequest, TillQuoteRequest, TillReleaseRequest, TillSaleAnswer, TillSaleRequest, TillTender,
        TraitsRequest, TraitsSet,
    },
    clerk::StaffRole,
    holds::{HoldAnswer, HoldRequest},
    orders::{OrderAnswer, TicketChoice},
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Acting, Body, Clerk, IdempotencyKey, Manager, PathEvent, PathId, Supervisor, Till},
    holds, orders,
    payments::needs_provider,
    problem::{Code, Problem},
};
use crate::{
    auth::is_readable,
    box_office::{
        self, Block, BlockError, CardSaleError, NotFree, ReaderError, Reading, SaleError, traits::TraitsError,
    },
    catalog::cache::EventCache,
    checkout::{self, Basket, Channel, ConfirmError, OtherPrice, Tendered, view::Whose},
    config::Config,
    hold::{ByRole, Request, Rules, Way, desk::Desks},
    payment::{Payments, due::DueError},
    seat_map::{SeatNo, SeatSet},
};

/// Nobody hands over more than ten times the largest order.
const CASH_MINOR_MAX: i64 = 999_999_999;
/// No order may cost more.
const PRICE_MINOR_MAX: i64 = 99_999_999;
/// Seats that one call may block or unblock.
pub(super) const BLOCK_SEATS_MAX: usize = 10_000;
/// Seats of which one call may say what they are.
const TRAIT_SEATS_MAX: usize = 1_000;
/// A word to whoever buys a seat is read on a phone.
const TRAIT_NOTE_MAX: usize = 120;

/// Takes seats for the customer at the counter: a buyer of their own, with a limit of their own.
#[utoipa::path(post, path = "/api/box-office/holds", tag = "box office", request_body = TillHoldRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = TillHoldAnswer), (status = "4XX", description = "`seat_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_unavailable`, `section_unknown`, `none_together`, `limit_reached`, `seats_apart`, `seats_too_few`, `leaves_single_seat`, `companion_needs_accessible`, `churn_spent`, `hold_frozen`, `sale_not_open`, `sale_closed`, `sale_paused`, `event_cancelled`, `idempotency_mismatch`, `forbidden`, `event_unknown`")))]
pub async fn place(
    State(pool): State<PgPool>,
    State(desks): State<Desks>,
    State(config): State<Arc<Config>>,
    acting: Acting,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<TillHoldRequest>,
) -> Result<Json<TillHoldAnswer>, Problem> {
    let buyer_id = match body.buyer_id {
        Some(buyer_id) if box_office::is_its_walk_in(&pool, buyer_id, acting.till.terminal_id).await? => buyer_id,
        Some(_) => return Err(Problem::new(Code::Forbidden).detail("This customer was not opened at this terminal.")),
        None => box_office::walk_in(pool.clone(), acting.till.terminal_id, &key).await?,
    };
    let event_id = body.event_id;
    let wish = HoldRequest { seats: body.seats, best: body.best, fewer_ok: body.fewer_ok, replace: body.replace };
    // A kiosk's customer buys alone, so a fan's rules hold for them.
    let till = &acting.till;
    let rules = if till.is_counter() { Rules::Staff } else { Rules::Fan };
    let way = Way::ByRole(ByRole { terminal: till.name.clone(), role: till.role.clone() });
    let take = holds::take(&config, event_id, buyer_id, key, wish, rules, way)?;
    let answer = holds::ask(&desks, &pool, event_id, Request::Take(take)).await?;
    Ok(Json(TillHoldAnswer { buyer_id, answer }))
}

/// Gives all seats of a customer back.
#[utoipa::path(post, path = "/api/box-office/holds/{id}/release", tag = "box office", request_body = TillReleaseRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = HoldAnswer), (status = "4XX", description = "`hold_frozen`")))]
pub async fn release(
    State(pool): State<PgPool>,
    State(desks): State<Desks>,
    acting: Acting,
    PathId(hold_id): PathId<Uuid>,
    Body(body): Body<TillReleaseRequest>,
) -> Result<Json<HoldAnswer>, Problem> {
    if !box_office::is_its_walk_in(&pool, body.buyer_id, acting.till.terminal_id).await? {
        return Err(Code::HoldUnknown.into());
    }
    holds::release_as(&pool, &desks, body.buyer_id, hold_id, None).await
}

/// Prices a hold before it is sold: what to ask the customer for. Nothing is sold; selling with the same
/// ticket types takes the same order.
#[utoipa::path(post, path = "/api/box-office/holds/{id}/quote", tag = "box office", request_body = TillQuoteRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OrderAnswer), (status = "4XX", description = "`role_too_low`, `hold_ended`, `hold_frozen`, `event_cancelled`, `seat_unknown`, `seats_repeated`, `ticket_type_unknown`")))]
pub async fn quote(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    acting: Acting,
    PathId(hold_id): PathId<Uuid>,
    Body(body): Body<TillQuoteRequest>,
) -> Result<Json<OrderAnswer>, Problem> {
    if !box_office::is_its_walk_in(&pool, body.buyer_id, acting.till.terminal_id).await? {
        return Err(Code::HoldUnknown.into());
    }
    let basket = basket(&acting, hold_id, body.buyer_id, body.tickets, body.prices)?;
    let order_id = checkout::price(pool.clone(), basket).await?;
    orders::answer(&pool, &config, Whose::One(order_id)).await.map(Json)
}

/// Cash that may have been handed over.
pub(super) fn cash(received_minor: i64) -> Result<i64, Problem> {
    if (0..=CASH_MINOR_MAX).contains(&received_minor) {
        return Ok(received_minor);
    }
    Err(Problem::new(Code::TenderInvalid).detail("So much cash was not handed over."))
}

/// Sells a hold for cash, as a comp, or for a voucher. Asked again with the same tender, it answers with the same order. A sale by a
/// card that could not be charged (`payment_due`) is paid with the cash.
#[utoipa::path(post, path = "/api/box-office/sales", tag = "box office", request_body = TillSaleRequest,
    responses((status = 200, body = TillSaleAnswer), (status = "4XX", description = "`forbidden`, `shift_required`, `shift_currency`, `role_too_low`, `bad_request`, `hold_unknown`, `hold_ended`, `hold_frozen`, `order_not_open`, `attempt_live`, `event_cancelled`, `seat_unknown`, `seats_repeated`, `ticket_type_unknown`, `tender_invalid`, `voucher_unknown`, `voucher_used`, `voucher_over`, `voucher_mismatch`, `idempotency_mismatch`")))]
pub async fn sell(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    Clerk(acting): Clerk,
    Body(body): Body<TillSaleRequest>,
) -> Result<Json<TillSaleAnswer>, Problem> {
    if !box_office::is_its_walk_in(&pool, body.buyer_id, acting.till.terminal_id).await? {
        return Err(Code::HoldUnknown.into());
    }
    let tendered = match body.tender {
        TillTender::Cash { received_minor } => Tendered::Cash { received_minor: cash(received_minor)? },
        TillTender::Comp { reason } => {
            acting.needs(StaffRole::Supervisor)?;
            Tendered::Comp { reason: checked_reason(&reason)? }
        }
        TillTender::Voucher { code } => {
            let voucher_id = checkout::voucher_of_code(&pool, &code).await?.ok_or(Code::VoucherUnknown)?;
            Tendered::Voucher { voucher_id }
        }
    };
    let basket = basket(&acting, body.hold_id, body.buyer_id, body.tickets, body.prices)?;
    let sold = box_office::sell(pool.clone(), basket, tendered).await?;
    let answer = orders::answer(&pool, &config, Whose::One(sold.order_id)).await?;
    Ok(Json(TillSaleAnswer { order: answer.order, change_minor: sold.change_minor }))
}

/// The provider's ids of readers are short.
const READER_MAX: usize = 64;

/// Has a hold paid by a card at a reader, or by one and cash. Answered at once: follow the order. Asked again under the same
/// key, it answers with the same order. After a card that could not be charged (`payment_due`) another one pays.
#[utoipa::path(post, path = "/api/box-office/card-sales", tag = "box office", request_body = TillCardRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 202, body = OrderAnswer), (status = "4XX", description = "`forbidden`, `shift_required`, `shift_currency`, `role_too_low`, `bad_request`, `reader_not_yours`, `hold_unknown`, `hold_ended`, `hold_frozen`, `order_not_open`, `attempt_live`, `event_cancelled`, `seat_unknown`, `seats_repeated`, `ticket_type_unknown`, `tender_invalid`, `too_late_to_pay`, `payment_gate_closed`, `idempotency_mismatch`")))]
pub async fn sell_by_card(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    acting: Acting,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<TillCardRequest>,
) -> Result<(StatusCode, Json<OrderAnswer>), Problem> {
    if !box_office::is_its_walk_in(&pool, body.buyer_id, acting.till.terminal_id).await? {
        return Err(Code::HoldUnknown.into());
    }
    needs_provider(&payments)?;
    let of_ids = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !(1..=READER_MAX).contains(&body.reader.len()) || !body.reader.chars().all(of_ids) {
        return Err(Problem::new(Code::BadRequest).detail("reader is the provider's id of a card reader."));
    }
    box_office::own_reader(&pool, acting.till.terminal_id, &body.reader).await?;
    if body.cash_minor != 0 && !acting.till.is_counter() {
        return Err(Problem::new(Code::Forbidden).detail("A kiosk takes no cash."));
    }
    let reading = Reading { reader_id: body.reader, cash_minor: cash(body.cash_minor)?, key };
    let basket = basket(&acting, body.hold_id, body.buyer_id, body.tickets, body.prices)?;
    let order_id = box_office::sell_by_card(&pool, &payments, basket, reading).await?;
    Ok((StatusCode::ACCEPTED, Json(orders::answer(&pool, &config, Whose::One(order_id)).await?)))
}

/// An order of this terminal's, and how its payment goes.
#[utoipa::path(get, path = "/api/box-office/card-sales/{id}", tag = "box office", params(("id" = Uuid, Path)),
    responses((status = 200, body = OrderAnswer), (status = "4XX", description = "`order_unknown`")))]
pub async fn card_sale(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    till: Till,
    PathId(order_id): PathId<Uuid>,
) -> Result<Json<OrderAnswer>, Problem> {
    if box_office::buyer_of(&pool, order_id, till.terminal_id).await?.is_none() {
        return Err(Code::OrderUnknown.into());
    }
    orders::answer(&pool, &config, Whose::One(order_id)).await.map(Json)
}

/// Stops the reader. The card may have been faster: the provider is asked, and then the sale is kept or
/// the money let go, as was asked for. Follow the order.
#[utoipa::path(post, path = "/api/box-office/card-sales/{id}/stop", tag = "box office", request_body = TillCardStopRequest,
    params(("id" = Uuid, Path)),
    responses((status = 202, body = OrderAnswer), (status = "4XX", description = "`order_unknown`, `order_not_open`")))]
pub async fn stop_card(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    State(payments): State<Payments>,
    acting: Acting,
    PathId(order_id): PathId<Uuid>,
    Body(body): Body<TillCardStopRequest>,
) -> Result<(StatusCode, Json<OrderAnswer>), Problem> {
    let found = box_office::buyer_of(&pool, order_id, acting.till.terminal_id).await?;
    let buyer_id = found.ok_or(Code::OrderUnknown)?;
    box_office::stop_card(&pool, &payments, order_id, buyer_id, body.keep_if_paid).await?;
    Ok((StatusCode::ACCEPTED, Json(orders::answer(&pool, &config, Whose::One(order_id)).await?)))
}

/// Takes seats out of the sale, with a reason. All of them, or none if one is held or sold.
#[utoipa::path(post, path = "/api/box-office/events/{id}/block", tag = "box office", request_body = BlockRequest,
    params(("id" = String, Path, description = "Number or slug")), responses((status = 204), (status = 200, body = SectionBlocked, description = "Of a section"), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `seat_unknown`, `section_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_in_use`")))]
pub async fn block(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathEvent(event_id): PathEvent,
    Body(body): Body<BlockRequest>,
) -> Result<Response, Problem> {
    set_block(pool, acting, event_id, body, Block::Block).await
}

/// Puts blocked seats back on sale, with a reason. Seats that were given up for good are revived instead.
#[utoipa::path(post, path = "/api/box-office/events/{id}/unblock", tag = "box office", request_body = BlockRequest,
    params(("id" = String, Path, description = "Number or slug")), responses((status = 204), (status = 200, body = SectionBlocked, description = "Of a section"), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `seat_unknown`, `section_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_in_use`, `seats_dead`")))]
pub async fn unblock(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathEvent(event_id): PathEvent,
    Body(body): Body<BlockRequest>,
) -> Result<Response, Problem> {
    set_block(pool, acting, event_id, body, Block::Unblock).await
}

/// Puts seats on sale that were given up for good (a refund said that they are dead), with a reason.
#[utoipa::path(post, path = "/api/box-office/events/{id}/revive", tag = "box office", request_body = BlockRequest,
    params(("id" = String, Path, description = "Number or slug")), responses((status = 204), (status = 200, body = SectionBlocked, description = "Of a section"), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `seat_unknown`, `section_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_in_use`: one of them is not dead")))]
pub async fn revive(
    State(pool): State<PgPool>,
    Manager(acting): Manager,
    PathEvent(event_id): PathEvent,
    Body(body): Body<BlockRequest>,
) -> Result<Response, Problem> {
    set_block(pool, acting, event_id, body, Block::Revive).await
}

/// Gives seats up for good, with a reason: only a manager revives them.
#[utoipa::path(post, path = "/api/box-office/events/{id}/kill", tag = "box office", request_body = BlockRequest,
    params(("id" = String, Path, description = "Number or slug")), responses((status = 204), (status = 200, body = SectionBlocked, description = "Of a section"), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `seat_unknown`, `section_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_in_use`")))]
pub async fn kill(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathEvent(event_id): PathEvent,
    Body(body): Body<BlockRequest>,
) -> Result<Response, Problem> {
    set_block(pool, acting, event_id, body, Block::Kill).await
}

/// Says of seats what they are for this performance, where that is not what the plan says: a restricted view, a place
/// for a wheelchair, a word to whoever buys them. Whoever has bought one of them keeps it; they are named.
#[utoipa::path(post, path = "/api/box-office/events/{id}/traits", tag = "box office", request_body = TraitsRequest,
    params(("id" = String, Path, description = "Number or slug")), responses((status = 200, body = TraitsSet), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `seat_unknown`, `seats_empty`, `seats_too_many`: 1,000 at once and 2,000 of an event at most, `seats_repeated`")))]
pub async fn set_traits(
    State(pool): State<PgPool>,
    State(cache): State<EventCache>,
    Supervisor(acting): Supervisor,
    PathEvent(event_id): PathEvent,
    Body(mut body): Body<TraitsRequest>,
) -> Result<Json<TraitsSet>, Problem> {
    body.reason = checked_reason(&body.reason)?;
    if let Some(note) = &mut body.note {
        *note = note.trim().to_owned();
        if note.chars().count() > TRAIT_NOTE_MAX
            || note.chars().any(char::is_control)
            || !(note.is_empty() || is_readable(note))
        {
            return Err(Problem::new(Code::BadRequest).detail("note is one line of 120 characters at most."));
        }
    }
    if (body.accessible, body.companion, body.restricted_view, &body.note) == (None, None, None, &None) {
        return Err(Problem::new(Code::BadRequest).detail("Nothing is said of the seats."));
    }
    let seats = SeatSet::new(std::mem::take(&mut body.seats), TRAIT_SEATS_MAX)?;
    let set = box_office::traits::set(pool, event_id, seats, body, acting.actor()).await?;
    cache.forget(event_id).await;
    Ok(Json(set))
}

/// What a customer at this terminal buys.
fn basket(
    acting: &Acting,
    hold_id: Uuid,
    buyer_id: Uuid,
    tickets: Vec<TicketChoice>,
    prices: Vec<PriceOverride>,
) -> Result<Basket, Problem> {
    let channel = if acting.till.is_counter() { Channel::Counter } else { Channel::Kiosk };
    let (ticket_types, prices) = (orders::choices(tickets)?, other_prices(acting, prices)?);
    let says_prices = acting.needs(StaffRole::Supervisor).is_ok();
    Ok(Basket { hold_id, buyer_id, ticket_types, prices, says_prices, channel, actor: acting.actor() })
}

/// Prices of seats that are not the list's: at a counter, and a supervisor says them ([`Basket::says_prices`]).
fn other_prices(acting: &Acting, prices: Vec<PriceOverride>) -> Result<HashMap<SeatNo, OtherPrice>, Problem> {
    if prices.is_empty() {
        return Ok(HashMap::new());
    }
    if !acting.till.is_counter() {
        return Err(Problem::new(Code::Forbidden).detail("A kiosk sells at list prices."));
    }
    let mut others = HashMap::new();
    for price in prices {
        if !(0..=PRICE_MINOR_MAX).contains(&price.amount_minor) {
            return Err(Problem::new(Code::BadRequest).detail("A price is from 0 to 99999999."));
        }
        let other = OtherPrice { amount_minor: price.amount_minor, reason: checked_reason(&price.reason)? };
        if others.insert(price.seat_no, other).is_some() {
            return Err(Problem::new(Code::SeatsRepeated).with("seats", vec![price.seat_no]));
        }
    }
    Ok(others)
}

pub(super) fn checked_reason(reason: &str) -> Result<String, Problem> {
    let reason = reason.trim();
    if !is_readable(reason) || reason.chars().count() > 500 {
        return Err(Problem::new(Code::BadRequest).detail("A reason of 1 to 500 characters is needed."));
    }
    Ok(reason.to_owned())
}

async fn set_block(
    pool: PgPool,
    acting: Acting,
    event_id: i64,
    body: BlockRequest,
    verb: Block,
) -> Result<Response, Problem> {
    let reason = checked_reason(&body.reason)?;
    let Some(section) = body.section else {
        let seats = SeatSet::new(body.seats, BLOCK_SEATS_MAX)?;
        box_office::block(pool, event_id, seats, verb, reason, acting.actor()).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    if !body.seats.is_empty() {
        return Err(Problem::new(Code::BadRequest).detail("Either seats or a section, one of them."));
    }
    let done = box_office::block_section(pool, event_id, section, verb, reason, acting.actor()).await?;
    Ok(Json(done).into_response())
}

impl From<BlockError> for Problem {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::EventUnknown => Code::EventUnknown.into(),
            BlockError::SectionUnknown(section) => Problem::new(Code::SectionUnknown).with("section", section),
            BlockError::SeatUnknown(seats) => Problem::new(Code::SeatUnknown).with("seats", seats),
            BlockError::SeatsInUse(seats) => Problem::new(Code::SeatsInUse).with("seats", seats),
            BlockError::SeatsDead(seats) => Problem::new(Code::SeatsDead).with("seats", seats),
            BlockError::SeatsNotDead(seats) => {
                Problem::new(Code::SeatsInUse).detail("Only dead seats are revived.").with("seats", seats)
            }
            BlockError::Database(error) => error.into(),
        }
    }
}

impl From<TraitsError> for Problem {
    fn from(error: TraitsError) -> Self {
        match error {
            TraitsError::EventUnknown => Code::EventUnknown.into(),
            TraitsError::SeatUnknown(seats) => Problem::new(Code::SeatUnknown).with("seats", seats),
            TraitsError::TooMany { limit } => Problem::new(Code::SeatsTooMany)
                .detail("So many seats are no exception: the plan is another one.")
                .with("limit", limit),
            TraitsError::Database(error) => error.into(),
        }
    }
}

impl From<NotFree> for Problem {
    fn from(error: NotFree) -> Self {
        match error {
            NotFree::SeatUnknown(seats) => Problem::new(Code::SeatUnknown).with("seats", seats),
            NotFree::SectionUnknown(section) => Problem::new(Code::SectionUnknown).with("section", section),
            NotFree::Taken(lost) => Problem::new(Code::SeatsUnavailable).with("lost", lost),
            NotFree::TooFew { free } => Problem::new(Code::SeatsUnavailable).with("free", free),
            NotFree::Database(error) => error.into(),
        }
    }
}

impl From<CardSaleError> for Problem {
    fn from(error: CardSaleError) -> Self {
        match error {
            CardSaleError::Checkout(error) => error.into(),
            CardSaleError::Open(error) => error.into(),
            CardSaleError::Database(error) => error.into(),
        }
    }
}

impl From<ReaderError> for Problem {
    fn from(error: ReaderError) -> Self {
        match error {
            ReaderError::NotYours => Code::ReaderNotYours.into(),
            ReaderError::Database(error) => error.into(),
        }
    }
}

impl From<SaleError> for Problem {
    fn from(error: SaleError) -> Self {
        match error {
            SaleError::Checkout(error) => error.into(),
            SaleError::Confirm(error) => error.into(),
            SaleError::Due(error) => error.into(),
            SaleError::TooLittleCash { total_minor, currency } => too_little_cash(total_minor, currency),
            SaleError::SoldOtherwise => Problem::new(Code::IdempotencyMismatch)
                .detail("This hold was sold for another tender, or at another counter."),
            SaleError::Database(error) => error.into(),
        }
    }
}

fn too_little_cash(total_minor: i64, currency: String) -> Problem {
    Problem::new(Code::TenderInvalid)
        .detail("The cash is less than the total.")
        .with("total_minor", total_minor)
        .with("currency", currency)
}

impl From<DueError> for Problem {
    fn from(error: DueError) -> Self {
        match error {
            DueError::OrderUnknown => Code::OrderUnknown.into(),
            DueError::NotDue(state) => Problem::new(Code::OrderNotOpen).with("state", state),
            DueError::AttemptLive(id) => Problem::new(Code::AttemptLive).with("attempt_id", id.to_string()),
            DueError::TooLittleCash { due_minor, currency } => too_little_cash(due_minor, currency),
            DueError::Database(error) => error.into(),
        }
    }
}

impl From<ConfirmError> for Problem {
    fn from(error: ConfirmError) -> Self {
        match error {
            ConfirmError::OrderUnknown => Code::OrderUnknown.into(),
            ConfirmError::OrderNotOpen(_) => Code::OrderNotOpen.into(),
            ConfirmError::HoldEnded => Code::HoldEnded.into(),
            ConfirmError::AmountMismatch => Code::TenderInvalid.into(),
            ConfirmError::AttemptNotAuthorised(_) => Code::AttemptLive.into(),
            ConfirmError::AttemptLive(id) => Problem::new(Code::AttemptLive).with("attempt_id", id.to_string()),
            ConfirmError::HoldFrozen => Code::HoldFrozen.into(),
            ConfirmError::Voucher(refusal) => refusal.into(),
            ConfirmError::Database(error) => error.into(),
        }
    }
}
