//! Tickets: on paper for their owner and for staff, their keys and their dead for doors, reprints for tills.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use fullhouse_protocol::tickets::{
    DeadTickets, MailTo, PrintJobs, PrintReport, PrintRequest, PrintState, Reason, Reissued, TicketKeys,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    box_office::checked_reason,
    extract::{Acting, Body, Buyer, Clerk, IdempotencyKey, PathEvent, PathId, Till, query_invalid},
    problem::{Code, Problem},
};
use crate::{
    box_office::{self, MailToError, TicketError},
    mail,
    ticket::{
        door, key,
        pdf::PdfError,
        press::{self, Press, PressError},
        print::{self, PrintError},
        sheet,
    },
    words::Language,
};

/// Characters of a ticket that no font of the hub has, by number; they stand by their numbers on the page.
const MISSING: &str = "fullhouse-missing-glyphs";
/// Tickets that one call may name.
const TICKETS_MAX: usize = 100;

/// My tickets as a PDF: a page each.
#[utoipa::path(get, path = "/api/orders/{id}/tickets.pdf", tag = "tickets", params(("id" = Uuid, Path)),
    responses((status = 200, description = "All valid tickets of the order", content_type = "application/pdf"),
        (status = "4XX", description = "problem+json; `order_unknown`, `tickets_not_ready`")))]
pub async fn mine(
    State(pool): State<PgPool>,
    State(press): State<Press>,
    buyer: Buyer,
    PathId(order_id): PathId<Uuid>,
) -> Result<Response, Problem> {
    let owner =
        sqlx::query_scalar!(r#"select buyer_id from "order" where id = $1"#, order_id).fetch_optional(&pool).await?;
    if owner != Some(buyer.buyer_id) {
        return Err(Code::OrderUnknown.into());
    }
    document(&pool, &press, order_id).await
}

/// The tickets of an order as a PDF, for the printer: of any order at a counter, of its own at a kiosk. What is printed
/// of them goes into the ledger of prints.
#[utoipa::path(get, path = "/api/box-office/orders/{id}/tickets.pdf", tag = "box office", params(("id" = Uuid, Path)),
    responses((status = 200, description = "All valid tickets of the order", content_type = "application/pdf"),
        (status = "4XX", description = "problem+json; `forbidden`, `order_unknown`, `tickets_not_ready`")))]
pub async fn for_staff(
    State(pool): State<PgPool>,
    State(press): State<Press>,
    acting: Acting,
    PathId(order_id): PathId<Uuid>,
) -> Result<Response, Problem> {
    may_print(&pool, &acting.till, order_id).await?;
    document(&pool, &press, order_id).await
}

async fn document(pool: &PgPool, press: &Press, order_id: Uuid) -> Result<Response, Problem> {
    let mut db = pool.acquire().await?;
    let sheet = sheet::sheet(&mut db, order_id).await?.ok_or(Code::OrderUnknown)?;
    drop(db); // drawing takes a while
    let name = format!("inline; filename=\"tickets-{}.pdf\"", sheet.order_code);
    let printed = press.print(sheet).await?;
    let mut response = (
        [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/pdf")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).map_err(Problem::internal)?),
        ],
        printed.pdf,
    )
        .into_response();
    if !printed.missing.is_empty() {
        let missing = HeaderValue::from_str(&press::named(&printed.missing)).map_err(Problem::internal)?;
        response.headers_mut().insert(MISSING, missing);
    }
    Ok(response)
}

/// The public halves of every key that ever signed a ticket: what a door needs, once, to check codes without us.
#[utoipa::path(get, path = "/api/ticket-keys", tag = "tickets", responses((status = 200, body = TicketKeys)))]
pub async fn keys(State(pool): State<PgPool>) -> Result<Response, Problem> {
    let keys = key::public_keys(&mut *pool.acquire().await?).await?;
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static("max-age=60"))], Json(keys)).into_response())
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeadQuery {
    /// What the last answer said; all of them without it
    since: Option<DateTime<Utc>>,
}

/// Codes of an event that are genuine and must not be let in. With an ETag: nothing new costs nothing.
#[utoipa::path(get, path = "/api/box-office/events/{id}/dead-tickets", tag = "box office",
    params(("id" = String, Path, description = "Number or slug"), DeadQuery),
    responses((status = 200, body = DeadTickets), (status = 304, description = "Nothing new"),
        (status = "4XX", description = "problem+json; `event_unknown`")))]
pub async fn dead(
    State(pool): State<PgPool>,
    _till: Till,
    PathEvent(event_id): PathEvent,
    query: Result<Query<DeadQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|e| query_invalid(&e))?;
    let list = door::dead(&mut *pool.acquire().await?, event_id, query.since).await?.ok_or(Code::EventUnknown)?;
    let mut hash = Sha256::new();
    for id in list.dead.iter().chain([&Uuid::nil()]).chain(&list.pending) {
        hash.update(id);
    }
    let tag = format!("\"{}\"", data_encoding::HEXLOWER.encode(&hash.finalize()[..16]));
    let cache = [
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=5")),
        (header::ETAG, HeaderValue::from_str(&tag).map_err(Problem::internal)?),
    ];
    let known = headers.get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains(&tag));
    Ok(if known { (StatusCode::NOT_MODIFIED, cache).into_response() } else { (cache, Json(list)).into_response() })
}

/// Kills a ticket's code and puts another ticket in its place. Asked again, it answers the same.
#[utoipa::path(post, path = "/api/box-office/tickets/{id}/reissue", tag = "box office", request_body = Reason,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Reissued), (status = "4XX", description = "problem+json; `forbidden`, `ticket_unknown`, `ticket_not_valid`")))]
pub async fn reissue(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    PathId(ticket_id): PathId<Uuid>,
    Body(body): Body<Reason>,
) -> Result<Json<Reissued>, Problem> {
    let reason = checked_reason(&body.reason)?;
    Ok(Json(box_office::reissue(pool, ticket_id, reason, acting.actor()).await?))
}

/// Opens print jobs: one a ticket. A ticket that is on paper, or may be, has to be reissued first.
#[utoipa::path(post, path = "/api/box-office/orders/{id}/prints", tag = "box office", request_body = PrintRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = PrintJobs), (status = "4XX", description = "problem+json; `order_unknown`, `ticket_not_valid`, `ticket_printed`")))]
pub async fn begin_prints(
    State(pool): State<PgPool>,
    acting: Acting,
    PathId(order_id): PathId<Uuid>,
    Body(body): Body<PrintRequest>,
) -> Result<Json<PrintJobs>, Problem> {
    if body.ticket_ids.len() > TICKETS_MAX {
        return Err(Problem::new(Code::BadRequest).detail(format!("At most {TICKETS_MAX} tickets a call.")));
    }
    may_print(&pool, &acting.till, order_id).await?;
    let jobs = box_office::begin_prints(pool, order_id, body.ticket_ids, acting.actor()).await?;
    Ok(Json(PrintJobs { jobs }))
}

/// What was printed of an order, by whom and why.
#[utoipa::path(get, path = "/api/box-office/orders/{id}/prints", tag = "box office", params(("id" = Uuid, Path)),
    responses((status = 200, body = PrintJobs), (status = "4XX", description = "problem+json; `order_unknown`")))]
pub async fn prints(
    State(pool): State<PgPool>,
    acting: Acting,
    PathId(order_id): PathId<Uuid>,
) -> Result<Json<PrintJobs>, Problem> {
    may_print(&pool, &acting.till, order_id).await?;
    Ok(Json(PrintJobs { jobs: print::ledger(&mut *pool.acquire().await?, order_id).await? }))
}

/// Reports what became of a print job.
#[utoipa::path(post, path = "/api/box-office/prints/{id}", tag = "box office", request_body = PrintReport,
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", description = "problem+json; `ticket_printed`: it ended otherwise, or there is no such job")))]
pub async fn report_print(
    State(pool): State<PgPool>,
    till: Till,
    PathId(job_id): PathId<Uuid>,
    Body(body): Body<PrintReport>,
) -> Result<StatusCode, Problem> {
    let no_job =
        || Problem::new(Code::TicketPrinted).detail("There is no such job, or its end was reported otherwise.");
    let order_id = print::order_of(&mut *pool.acquire().await?, job_id).await?.ok_or_else(no_job)?;
    may_print(&pool, &till, order_id).await.map_err(|refused| match refused.code() {
        Code::OrderUnknown => no_job(), // somebody else's is as unknown as one that never was
        _ => refused,
    })?;
    let printed = match body.state {
        PrintState::Printed => true,
        PrintState::Failed => false,
        _ => return Err(Problem::new(Code::BadRequest).detail("A job is reported as printed or failed.")),
    };
    match box_office::report_print(pool, job_id, printed).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_job()),
    }
}

/// Sends the tickets of an order once more, to its owner. The same key sends one mail.
#[utoipa::path(post, path = "/api/box-office/orders/{id}/mail", tag = "box office",
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202), (status = "4XX", description = "problem+json; `forbidden`, `order_unknown`")))]
pub async fn mail_again(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
) -> Result<StatusCode, Problem> {
    if box_office::mail_again(pool, order_id, key, acting.actor()).await? {
        return Ok(StatusCode::ACCEPTED);
    }
    Err(Problem::new(Code::OrderUnknown).detail("There is no such order of somebody with an account."))
}

/// Sends the tickets of an order to an address that its customer gives: those of a kiosk whose printer failed. The same
/// key sends one mail; three addresses an order, at most.
#[utoipa::path(post, path = "/api/box-office/orders/{id}/mail-to", tag = "box office", request_body = MailTo,
    params(("id" = Uuid, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202), (status = "4XX", description = "`bad_request`: this is no address; `order_unknown`, `tickets_not_ready`, `too_many_requests`")))]
pub async fn mail_to(
    State(pool): State<PgPool>,
    acting: Acting,
    PathId(order_id): PathId<Uuid>,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<MailTo>,
) -> Result<StatusCode, Problem> {
    may_print(&pool, &acting.till, order_id).await?;
    let address = body.address.trim();
    if !mail::is_address(address) {
        return Err(Problem::new(Code::BadRequest).detail("This is no address that mail goes to."));
    }
    let language = Language::read(&body.language)
        .ok_or_else(|| Problem::new(Code::BadRequest).detail("language is en, ja or ko."))?;
    match box_office::mail_to(pool, order_id, key, address.to_owned(), language, acting.actor()).await {
        Ok(()) => Ok(StatusCode::ACCEPTED),
        Err(MailToError::NotReady) => Err(Code::TicketsNotReady.into()),
        Err(MailToError::TooMany) => {
            Err(Problem::new(Code::TooManyRequests).detail("The tickets of this order went to enough addresses."))
        }
        Err(MailToError::Database(error)) => Err(error.into()),
    }
}

/// A counter prints for everybody. A kiosk prints what it has sold, and nothing else: its token stands in a public
/// place, and the codes of strangers' tickets must not come out of it.
async fn may_print(pool: &PgPool, till: &Till, order_id: Uuid) -> Result<(), Problem> {
    if till.is_counter() || box_office::buyer_of(pool, order_id, till.terminal_id).await?.is_some() {
        return Ok(());
    }
    Err(Code::OrderUnknown.into())
}

impl From<PressError> for Problem {
    fn from(error: PressError) -> Self {
        match error {
            PressError::Busy => Code::Busy.into(),
            PressError::Pdf(PdfError::Nothing) => Code::TicketsNotReady.into(),
            PressError::Pdf(error) => Problem::internal(error),
        }
    }
}

impl From<TicketError> for Problem {
    fn from(error: TicketError) -> Self {
        match error {
            TicketError::Unknown => Code::TicketUnknown.into(),
            TicketError::NotValid => Code::TicketNotValid.into(),
            TicketError::Database(error) => error.into(),
        }
    }
}

impl From<PrintError> for Problem {
    fn from(error: PrintError) -> Self {
        match error {
            PrintError::OrderUnknown => Code::OrderUnknown.into(),
            PrintError::NotValid => Code::TicketNotValid.into(),
            PrintError::Printed(tickets) => {
                let tickets: Vec<String> = tickets.iter().map(Uuid::to_string).collect();
                Problem::new(Code::TicketPrinted).with("tickets", tickets)
            }
            PrintError::Database(error) => error.into(),
        }
    }
}
