//! Selling without a network, on the wire: leases, the journal, the closing report, and what staff see of them.

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
};
use fullhouse_protocol::{
    clerk::StaffRole,
    lease::{
        CloseRequest, EndedLease, JournalAnswer, JournalRequest, Lease, LeaseReason, LeaseRequest, Leases, OwnLeases,
        SeenRequest,
    },
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Body, Clerk, IdempotencyKey, PathId, Till},
    problem::{Code, Problem},
    staff::{Staff, said},
};
use crate::{
    auth::Actor,
    box_office::leases::{self, Ask, EndError, GrantError, JournalError, SEATS_MAX, SeenError, Seller, Wanted},
    seat_map::SeatSet,
    serve::Hub,
};

/// The longest that anything is sold without a network, in seconds: an evening and its morning after.
const SELLS_FOR_S_MAX: u32 = 43_200;
/// Entries of one request. A body is bounded as well, so that a terminal sends fewer of long ones.
const ENTRIES_MAX: usize = 100;

/// The terminal itself, whoever sits at it: what was sold is told also after everybody has signed out.
#[derive(Debug, Clone)]
pub struct Journalist(Seller);

impl FromRequestParts<Hub> for Journalist {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hub: &Hub) -> Result<Self, Problem> {
        let till = <Till as FromRequestParts<Hub>>::from_request_parts(parts, hub).await?;
        if !till.is_counter() {
            return Err(Problem::new(Code::Forbidden).detail("This is for the counter's tills."));
        }
        let actor = Actor::at_terminal(format!("terminal {}", till.name), till.terminal_id, None);
        Ok(Self(Seller { terminal_id: till.terminal_id, actor }))
    }
}

/// Leases seats to this terminal, which alone may sell them from then on, also without a network. All of them, or none.
#[utoipa::path(post, path = "/api/box-office/leases", tag = "box office", request_body = LeaseRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = Lease), (status = "4XX", description = "`forbidden`, `bad_request`, `event_unknown`, `event_cancelled`, `seat_unknown`, `section_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_unavailable`, `ticket_type_unknown`, `leases_too_many`, `shift_required`, `shift_currency`, `idempotency_mismatch`")))]
pub async fn grant_lease(
    State(pool): State<PgPool>,
    Clerk(acting): Clerk,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<LeaseRequest>,
) -> Result<Json<Lease>, Problem> {
    if !(1..=SELLS_FOR_S_MAX).contains(&body.sells_for_s) {
        return Err(Problem::new(Code::BadRequest).detail(format!("sells_for_s is 1 to {SELLS_FOR_S_MAX}.")));
    }
    let wanted = match (body.seats, body.count, body.section) {
        (Some(seats), None, None) => Wanted::Seats(SeatSet::new(seats, SEATS_MAX)?),
        (None, Some(0), _) => return Err(Code::SeatsEmpty.into()),
        (None, Some(count), _) if count > SEATS_MAX => {
            return Err(Problem::new(Code::SeatsTooMany).with("limit", SEATS_MAX));
        }
        (None, Some(count), section) => Wanted::Count(count, section),
        _ => return Err(Problem::new(Code::BadRequest).detail("Either seats, or count, and a section with it.")),
    };
    let ask = Ask {
        terminal_id: acting.till.terminal_id,
        key,
        event_id: body.event_id,
        wanted,
        sells_for_s: body.sells_for_s,
        actor: acting.actor(),
    };
    Ok(Json(leases::grant(pool, ask).await?))
}

/// The leases of this terminal that are open, and the number of its next sale: what a terminal that starts again asks for.
#[utoipa::path(get, path = "/api/box-office/leases", tag = "box office",
    responses((status = 200, body = OwnLeases), (status = "4XX", description = "`forbidden`")))]
pub async fn own_leases(
    State(pool): State<PgPool>,
    Journalist(seller): Journalist,
) -> Result<Json<OwnLeases>, Problem> {
    Ok(Json(leases::own(&pool, seller.terminal_id).await?))
}

/// Settles what this terminal sold without a network, each sale once. Sent again, each has the same outcome. If one is
/// refused, those before it are settled and answered; the refusal comes when it is the first.
#[utoipa::path(post, path = "/api/box-office/journal", tag = "box office", request_body = JournalRequest,
    responses((status = 200, body = JournalAnswer), (status = "4XX", description = "`forbidden`, `bad_request`, `journal_gap`, `journal_conflict`, `journal_unreadable`")))]
pub async fn settle_journal(
    State(pool): State<PgPool>,
    Journalist(seller): Journalist,
    Body(body): Body<JournalRequest>,
) -> Result<Json<JournalAnswer>, Problem> {
    if body.entries.len() > ENTRIES_MAX {
        return Err(Problem::new(Code::BadRequest).detail(format!("At most {ENTRIES_MAX} entries.")));
    }
    Ok(Json(leases::settle(&pool, seller, body.entries).await?))
}

/// The terminal sells nothing else of a lease: what is left is on sale again, and its codes are dead. Told again, the
/// answer is the same.
#[utoipa::path(post, path = "/api/box-office/leases/{id}/close", tag = "box office", request_body = CloseRequest,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = EndedLease), (status = "4XX", description = "`forbidden`, `journal_open`, `journal_gap`")))]
pub async fn close_lease(
    State(pool): State<PgPool>,
    Journalist(seller): Journalist,
    PathId(lease_id): PathId<Uuid>,
    Body(body): Body<CloseRequest>,
) -> Result<Json<EndedLease>, Problem> {
    Ok(Json(leases::close(pool, seller.terminal_id, lease_id, body, seller.actor).await?))
}

/// All open leases, the latest that ended, and the journalled sales that need a person.
#[utoipa::path(get, path = "/api/staff/leases", tag = "staff",
    responses((status = 200, body = Leases), (status = "4XX", description = "`forbidden`")))]
pub async fn list_leases(State(pool): State<PgPool>, _: Staff) -> Result<Json<Leases>, Problem> {
    Ok(Json(leases::listed(&pool).await?))
}

/// Ends a lease without its terminal. **It may have sold seats that nobody here knows of**: they become a block, and the
/// codes that it printed are dead. Told again, the answer is the same.
#[utoipa::path(post, path = "/api/staff/leases/{id}/write-off", tag = "staff", request_body = LeaseReason,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = EndedLease), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `lease_closed`")))]
pub async fn write_off_lease(
    State(pool): State<PgPool>,
    staff: Staff,
    PathId(lease_id): PathId<Uuid>,
    Body(body): Body<LeaseReason>,
) -> Result<Json<EndedLease>, Problem> {
    staff.needs(StaffRole::Manager)?;
    Ok(Json(leases::write_off(pool, lease_id, said(&body.reason)?, staff.actor).await?))
}

/// Somebody has seen to a journalled sale that became none, or that got other codes.
#[utoipa::path(post, path = "/api/staff/journal/see-to", tag = "staff", request_body = SeenRequest,
    responses((status = 204), (status = "4XX", description = "`forbidden`, `role_too_low`, `bad_request`, `not_found`")))]
pub async fn see_to_journal(
    State(pool): State<PgPool>,
    staff: Staff,
    Body(body): Body<SeenRequest>,
) -> Result<StatusCode, Problem> {
    staff.needs(StaffRole::Supervisor)?;
    leases::see_to(pool, body.terminal_id, body.seq, said(&body.note)?, staff.actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<GrantError> for Problem {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::EventUnknown => Code::EventUnknown.into(),
            GrantError::EventCancelled => Code::EventCancelled.into(),
            GrantError::NotFree(error) => error.into(),
            GrantError::Unpriced(seat_no) => Problem::new(Code::TicketTypeUnknown).with("seat_no", seat_no),
            GrantError::TooManyOpen => Code::LeasesTooMany.into(),
            GrantError::KeyReused => Code::IdempotencyMismatch.into(),
            GrantError::Database(error) => error.into(),
        }
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Unreadable { seq, why } => {
                Problem::new(Code::JournalUnreadable).detail(format!("{why}.")).with("seq", seq)
            }
            JournalError::Conflict { seq } => Problem::new(Code::JournalConflict).with("seq", seq),
            JournalError::Gap { next_seq } => Problem::new(Code::JournalGap).with("next_seq", next_seq),
            JournalError::Confirm(error) => error.into(),
            JournalError::Database(error) => error.into(),
        }
    }
}

impl From<EndError> for Problem {
    fn from(error: EndError) -> Self {
        match error {
            EndError::Unknown => Code::LeaseUnknown.into(),
            EndError::JournalOpen { next_seq, missing } => {
                Problem::new(Code::JournalOpen).with("next_seq", next_seq).with("seats", missing)
            }
            EndError::JournalBehind { next_seq } => Problem::new(Code::JournalGap).with("next_seq", next_seq),
            EndError::Closed => Code::LeaseClosed.into(),
            EndError::Database(error) => error.into(),
        }
    }
}

impl From<SeenError> for Problem {
    fn from(error: SeenError) -> Self {
        match error {
            SeenError::Unknown => Code::NotFound.into(),
            SeenError::Database(error) => error.into(),
        }
    }
}
