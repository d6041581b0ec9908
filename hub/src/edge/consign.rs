//! Consignment at a counter: partners and what they are given by a supervisor; what they report, and pay, by any clerk.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use chrono::{SecondsFormat, SubsecRound};
use fullhouse_protocol::consign::{
    ConsignRequest, ConsignedReturnRequest, ConsignedSale, ConsignedSaleRequest, Consignment, Consignments,
    CutOffRequest, Partner, PartnerPaymentRequest, PartnerRequest, Partners, Statement,
};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    box_office::checked_reason,
    extract::{Acting, Body, Clerk, IdempotencyKey, PathEvent, PathId, Supervisor, query_invalid},
    orders,
    problem::{Code, Problem},
};
use crate::{
    auth::is_readable,
    box_office::consign::{self, Ask, By, ConsignError, Pay, Payer, SEATS_MAX, Sale, Wanted},
    checkout::view::Whose,
    config::Config,
    seat_map::SeatSet,
};

const CODE_MAX: usize = 20;
const TEXT_MAX: usize = 200;
const AMOUNT_MINOR_MAX: i64 = 999_999_999;

/// Adds a partner who may be given seats to sell.
#[utoipa::path(post, path = "/api/box-office/partners", tag = "box office", request_body = PartnerRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = Partner), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `name_taken`, `idempotency_mismatch`")))]
pub async fn add_partner(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<PartnerRequest>,
) -> Result<Json<Partner>, Problem> {
    let code = body.code.trim().to_uppercase();
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    if !(1..=CODE_MAX).contains(&code.len()) || !code.chars().all(plain) {
        return Err(
            Problem::new(Code::BadRequest).detail(format!("A code is 1 to {CODE_MAX} letters, digits and hyphens."))
        );
    }
    let (name, contact) = (text("A name", &body.name, 1)?, text("A contact", &body.contact, 0)?);
    Ok(Json(consign::add_partner(pool, by(&acting, key), PartnerRequest { code, name, contact }).await?))
}

/// Who may be given seats to sell.
#[utoipa::path(get, path = "/api/box-office/partners", tag = "box office",
    responses((status = 200, body = Partners), (status = "4XX", description = "`forbidden`")))]
pub async fn partners(State(pool): State<PgPool>, _: Clerk) -> Result<Json<Partners>, Problem> {
    Ok(Json(Partners { partners: consign::partners(&pool).await? }))
}

/// Gives seats to a partner to sell until the cut-off: nobody else sells them, and fans see them taken at once.
#[utoipa::path(post, path = "/api/box-office/consignments", tag = "box office", request_body = ConsignRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = Consignment), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `event_unknown`, `event_cancelled`, `partner_unknown`, `until_invalid`, `seat_unknown`, `section_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_unavailable`, `idempotency_mismatch`")))]
pub async fn consign(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<ConsignRequest>,
) -> Result<Json<Consignment>, Problem> {
    let wanted = match (body.section, body.count) {
        (None, None) => Wanted::Seats(SeatSet::new(body.seats, SEATS_MAX)?),
        (Some(section), count) if body.seats.is_empty() && !section.contains('\0') => {
            Wanted::Section(section, count.map(so_many).transpose()?)
        }
        _ => return Err(Problem::new(Code::BadRequest).detail("Either seats or a section, and a count with it.")),
    };
    let note = checked_reason(&body.note)?;
    let until = body.until.trunc_subsecs(6);
    let ask = Ask { event_id: body.event_id, partner_id: body.partner_id, wanted, until, note };
    Ok(Json(consign::consign(pool, by(&acting, key), ask).await?))
}

fn so_many(count: u32) -> Result<usize, Problem> {
    match count as usize {
        0 => Err(Code::SeatsEmpty.into()),
        count if count > SEATS_MAX => Err(Problem::new(Code::SeatsTooMany).with("limit", SEATS_MAX)),
        count => Ok(count),
    }
}

/// The consignments of an event, and what became of each seat.
#[utoipa::path(get, path = "/api/box-office/events/{id}/consignments", tag = "box office",
    params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = Consignments), (status = "4XX", description = "`forbidden`, `event_unknown`")))]
pub async fn consignments(
    State(pool): State<PgPool>,
    _: Clerk,
    PathEvent(event_id): PathEvent,
) -> Result<Json<Consignments>, Problem> {
    Ok(Json(Consignments { consignments: consign::list(&pool, event_id).await? }))
}

/// What a partner reports sold: an order on its account, with tickets that are good at the door. All of the seats, or none.
#[utoipa::path(post, path = "/api/box-office/consignments/{id}/sales", tag = "box office", request_body = ConsignedSaleRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = ConsignedSale), (status = "4XX", description = "`forbidden`, `consignment_over`, `seats_not_consigned`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seat_unknown`, `ticket_type_unknown`, `tender_invalid`, `event_cancelled`, `idempotency_mismatch`")))]
pub async fn sell_consigned(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    Clerk(acting): Clerk,
    PathId(consignment_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<ConsignedSaleRequest>,
) -> Result<Json<ConsignedSale>, Problem> {
    let seats = SeatSet::new(body.seats, SEATS_MAX)?;
    let sale = Sale { consignment_id, seats, ticket_types: orders::choices(body.tickets)? };
    let (order_id, consignment) = consign::sell(pool.clone(), by(&acting, key), sale).await?;
    let answer = orders::answer(&pool, &config, Whose::One(order_id)).await?;
    Ok(Json(ConsignedSale { order: answer.order, consignment }))
}

/// What a partner gives back before the cut-off: on sale again at once. Again: it is.
#[utoipa::path(post, path = "/api/box-office/consignments/{id}/returns", tag = "box office", request_body = ConsignedReturnRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Consignment), (status = "4XX", description = "`forbidden`, `bad_request`, `consignment_over`, `seats_not_consigned`, `seats_empty`, `seats_too_many`, `seats_repeated`")))]
pub async fn return_consigned(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    PathId(consignment_id): PathId<Uuid>,
    Body(body): Body<ConsignedReturnRequest>,
) -> Result<Json<Consignment>, Problem> {
    let seats = body.seats.map(|seats| SeatSet::new(seats, SEATS_MAX)).transpose()?;
    let reason = checked_reason(&body.reason)?;
    Ok(Json(consign::give_back(pool, by(&acting, String::new()), consignment_id, seats, reason).await?))
}

/// Moves the cut-off of a consignment that runs, to an earlier time or a later one. Again: it is so.
#[utoipa::path(post, path = "/api/box-office/consignments/{id}/cut-off", tag = "box office", request_body = CutOffRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Consignment), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `consignment_unknown`, `consignment_over`, `seats_not_consigned`: none is open, `until_invalid`, `event_cancelled`")))]
pub async fn move_cut_off(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathId(consignment_id): PathId<Uuid>,
    Body(body): Body<CutOffRequest>,
) -> Result<Json<Consignment>, Problem> {
    let reason = checked_reason(&body.reason)?;
    let until = body.until.trunc_subsecs(6);
    Ok(Json(consign::cut_off(pool, by(&acting, String::new()), consignment_id, until, reason).await?))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatementQuery {
    /// The event's number
    event_id: i64,
}

/// What a partner was given of an event, sold and returned; what it owes, and has paid.
#[utoipa::path(get, path = "/api/box-office/partners/{id}/statement", tag = "box office",
    params(("id" = Uuid, Path), StatementQuery),
    responses((status = 200, body = Statement), (status = "4XX", description = "`forbidden`, `bad_request`, `event_unknown`")))]
pub async fn statement(
    State(pool): State<PgPool>,
    _: Clerk,
    PathId(partner_id): PathId<Uuid>,
    query: Result<Query<StatementQuery>, QueryRejection>,
) -> Result<Json<Statement>, Problem> {
    let Query(StatementQuery { event_id }) = query.map_err(|e| query_invalid(&e))?;
    Ok(Json(consign::statement(&pool, event_id, partner_id).await?))
}

/// A partner pays of what it owes for an event: by a transfer that has arrived, or in cash.
#[utoipa::path(post, path = "/api/box-office/partners/{id}/payments", tag = "box office", request_body = PartnerPaymentRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = Statement), (status = "4XX", description = "`forbidden`, `bad_request`, `event_unknown`, `owes_less`, `shift_required`, `shift_currency`, `idempotency_mismatch`")))]
pub async fn pay_account(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    PathId(partner_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<PartnerPaymentRequest>,
) -> Result<Json<Statement>, Problem> {
    pay(pool, by(&acting, key), partner_id, Payer::Partner, body).await
}

/// The house pays back what a partner paid and owes no more: by a transfer that was sent, or in cash.
#[utoipa::path(post, path = "/api/box-office/partners/{id}/repayments", tag = "box office", request_body = PartnerPaymentRequest,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 200, body = Statement), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `event_unknown`, `owes_less`, `shift_required`, `shift_currency`, `drawer_short`, `idempotency_mismatch`")))]
pub async fn pay_back(
    State(pool): State<PgPool>,
    Supervisor(acting): Supervisor,
    PathId(partner_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<PartnerPaymentRequest>,
) -> Result<Json<Statement>, Problem> {
    pay(pool, by(&acting, key), partner_id, Payer::House, body).await
}

async fn pay(
    pool: PgPool,
    by: By,
    partner_id: Uuid,
    payer: Payer,
    body: PartnerPaymentRequest,
) -> Result<Json<Statement>, Problem> {
    if !(1..=AMOUNT_MINOR_MAX).contains(&body.amount_minor) {
        return Err(Problem::new(Code::BadRequest).detail(format!("An amount is from 1 to {AMOUNT_MINOR_MAX}.")));
    }
    let asked = PartnerPaymentRequest { reference: text("A reference", &body.reference, 1)?, ..body };
    let pay = Pay { event_id: asked.event_id, partner_id, payer, asked };
    Ok(Json(consign::pay(pool, by, pay).await?))
}

fn by(acting: &Acting, key: String) -> By {
    By { terminal_id: acting.till.terminal_id, actor: acting.actor(), key }
}

/// A line of text, trimmed; one that has to be there can be seen.
fn text(what: &str, given: &str, min: usize) -> Result<String, Problem> {
    let text = given.trim();
    if !(min..=TEXT_MAX).contains(&text.chars().count())
        || text.chars().any(char::is_control)
        || (min > 0 && !is_readable(text))
    {
        return Err(Problem::new(Code::BadRequest).detail(format!("{what} has {min} to {TEXT_MAX} characters.")));
    }
    Ok(text.to_owned())
}

impl From<ConsignError> for Problem {
    fn from(error: ConsignError) -> Self {
        match error {
            ConsignError::EventUnknown => Code::EventUnknown.into(),
            ConsignError::EventCancelled => Code::EventCancelled.into(),
            ConsignError::PartnerUnknown => Code::PartnerUnknown.into(),
            ConsignError::CodeTaken => Problem::new(Code::NameTaken).detail("Another partner has this code."),
            ConsignError::UntilInvalid { latest } => Problem::new(Code::UntilInvalid)
                .detail("A cut-off is a minute from now at least, and the end of the event's sale, or its beginning, at most.")
                .with("latest", latest.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            ConsignError::NotFree(error) => error.into(),
            ConsignError::TooMany => Problem::new(Code::SeatsTooMany).with("limit", SEATS_MAX),
            ConsignError::Unknown => Code::ConsignmentUnknown.into(),
            ConsignError::Over { until } => {
                Problem::new(Code::ConsignmentOver).with("until", until.to_rfc3339_opts(SecondsFormat::AutoSi, true))
            }
            ConsignError::NotOut(seats) => Problem::new(Code::SeatsNotConsigned).with("seats", seats),
            ConsignError::OwesLess { owed_minor } => Problem::new(Code::OwesLess).with("owed_minor", owed_minor),
            ConsignError::ShiftRequired => Code::ShiftRequired.into(),
            ConsignError::Shift(error) => error.into(),
            ConsignError::KeyReused => Code::IdempotencyMismatch.into(),
            ConsignError::Checkout(error) => error.into(),
            ConsignError::Confirm(error) => error.into(),
            ConsignError::Database(error) => error.into(),
        }
    }
}
