//! Holding seats: `/api/events/{id}/hold`, `/api/holds/{id}`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRef, State},
};
use chrono::SecondsFormat;
use fullhouse_protocol::holds::{BestRequest, HoldAnswer, HoldRequest, MyHold, ReleaseRequest};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    extract::{Body, Buyer, IdempotencyKey, PathEvent, PathId},
    problem::{Code, Problem},
    queue::ShownPass,
};
use crate::{
    config::Config,
    hold::{self, Granted, Key, Refusal, Release, Request, Rules, Take, Way, Wish, best, desk::Desks},
    seat_map::{SeatNo, SeatSet, SeatSetError},
    serve::Hub,
};

/// Offers for seats that were lost are asked for from this hub's board: nearby, equal, and not held.
async fn offers(desks: &Desks, pool: &PgPool, event_id: i64, lost: &[SeatNo], count: usize) -> Vec<Vec<SeatNo>> {
    match desks.boards().get(pool, event_id, None).await {
        Ok(Some(board)) => best::nearby(&board, lost, count),
        _ => Vec::new(),
    }
}

/// Takes seats: all of them or none, unless fewer will do.
#[utoipa::path(post, path = "/api/events/{id}/hold", tag = "holds", request_body = HoldRequest,
    params(("id" = String, Path, description = "Number or slug"), ("Idempotency-Key" = String, Header),
        ("Fullhouse-Pass" = Option<String>, Header, description = "Of an event with a waiting room")),
    responses((status = 200, body = HoldAnswer), (status = "4XX", description = "`seat_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `seats_unavailable`, `section_unknown`, `none_together`, `limit_reached`, `seats_apart`, `seats_too_few`, `leaves_single_seat`, `companion_needs_accessible`, `churn_spent`, `hold_frozen`, `sale_not_open`, `sale_closed`, `sale_paused`, `event_cancelled`, `idempotency_mismatch`, `pass_missing`, `pass_invalid`, `pass_expired`, `pass_over`, `pass_moved`, `pass_foreign`, `event_full_of_holds`")))]
pub async fn place(
    State(hub): State<Hub>,
    buyer: Buyer,
    PathEvent(event_id): PathEvent,
    IdempotencyKey(key): IdempotencyKey,
    ShownPass(claim): ShownPass,
    Body(body): Body<HoldRequest>,
) -> Result<Json<HoldAnswer>, Problem> {
    let way = Way::WithPass { claim, account_id: buyer.account_id, session: buyer.session };
    let (desks, config) = (Desks::from_ref(&hub), Arc::<Config>::from_ref(&hub));
    let take = take(&config, event_id, buyer.buyer_id, key, body, Rules::Fan, way)?;
    ask(&desks, &hub.pool, event_id, Request::Take(take)).await.map(Json)
}

/// What I hold of this event, and how much more I may take: any tab, any device.
#[utoipa::path(get, path = "/api/events/{id}/hold", tag = "holds", params(("id" = String, Path, description = "Number or slug")),
    responses((status = 200, body = MyHold), (status = "4XX", description = "Refused")))]
pub async fn mine(
    State(pool): State<PgPool>,
    State(config): State<Arc<Config>>,
    buyer: Buyer,
    PathEvent(event_id): PathEvent,
) -> Result<Json<MyHold>, Problem> {
    let mine = hold::mine(&pool, &config.payment, event_id, buyer.buyer_id).await?.ok_or(Code::EventUnknown)?;
    Ok(Json(mine))
}

/// Gives all seats of a hold back.
#[utoipa::path(delete, path = "/api/holds/{id}", tag = "holds", params(("id" = Uuid, Path)),
    responses((status = 200, body = HoldAnswer), (status = "4XX", description = "`hold_frozen`")))]
pub async fn release_all(
    State(pool): State<PgPool>,
    State(desks): State<Desks>,
    buyer: Buyer,
    PathId(hold_id): PathId<Uuid>,
) -> Result<Json<HoldAnswer>, Problem> {
    release_as(&pool, &desks, buyer.buyer_id, hold_id, None).await
}

/// Gives some seats back; the rest is held until the same time.
#[utoipa::path(post, path = "/api/holds/{id}/release", tag = "holds", request_body = ReleaseRequest, params(("id" = Uuid, Path)),
    responses((status = 200, body = HoldAnswer), (status = "4XX", description = "`seat_unknown`, `seats_empty`, `seats_too_many`, `seats_repeated`, `hold_frozen`")))]
pub async fn release_some(
    State(pool): State<PgPool>,
    State(desks): State<Desks>,
    State(config): State<Arc<Config>>,
    buyer: Buyer,
    PathId(hold_id): PathId<Uuid>,
    Body(body): Body<ReleaseRequest>,
) -> Result<Json<HoldAnswer>, Problem> {
    let seats = SeatSet::new(body.seats, config.desk.seats_a_request_max)?;
    release_as(&pool, &desks, buyer.buyer_id, hold_id, Some(seats)).await
}

/// Somebody else's hold is as unknown as one that never was.
pub(super) async fn release_as(
    pool: &PgPool,
    desks: &Desks,
    buyer_id: Uuid,
    hold_id: Uuid,
    seats: Option<SeatSet>,
) -> Result<Json<HoldAnswer>, Problem> {
    let event_id = hold::event_of(pool, hold_id, buyer_id).await?.ok_or(Code::HoldUnknown)?;
    if let Some(seats) = &seats
        && let Some(board) = desks.boards().get(pool, event_id, None).await?
    {
        let unknown: Vec<SeatNo> = seats.as_slice().iter().copied().filter(|s| board.hall.seat(*s).is_none()).collect();
        if !unknown.is_empty() {
            return Err(Refusal::SeatUnknown(unknown).into());
        }
    }
    let request = Request::Release(Release { buyer_id, hold_id, seats });
    ask(desks, pool, event_id, request).await.map(Json)
}

/// Asks the desk; a refusal for seats that are gone comes with others like them.
pub(super) async fn ask(desks: &Desks, pool: &PgPool, event_id: i64, request: Request) -> Result<HoldAnswer, Problem> {
    let (wanted, section) = match &request {
        Request::Take(Take { wish: Wish::Seats(set), .. }) => (set.as_slice().len(), None),
        Request::Take(Take { wish: Wish::Best(best), .. }) => (0, best.section.clone()),
        _ => (0, None),
    };
    match desks.ask(event_id, request).await {
        Ok(Granted { hold, not_held, now }) => Ok(HoldAnswer { hold, not_held, now }),
        Err(Refusal::SeatsUnavailable { lost }) => {
            let offers = offers(desks, pool, event_id, &lost, wanted).await;
            Err(Problem::new(Code::SeatsUnavailable)
                .detail(format!("{} of the seats you asked for: nothing was taken.", lost.len()))
                .with("lost", lost)
                .with("offers", serde_json::json!(offers)))
        }
        Err(Refusal::NoneTogether) => {
            // Nothing is found in a section that is not there; that is another fault than a full one.
            let board = desks.boards().get(pool, event_id, None).await?;
            match section.filter(|name| board.is_some_and(|board| board.hall.section(name).is_none())) {
                Some(name) => Err(Problem::new(Code::SectionUnknown).with("section", name)),
                None => Err(Code::NoneTogether.into()),
            }
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// A request for seats as its body says it.
pub(super) fn take(
    config: &Config,
    event_id: i64,
    buyer_id: Uuid,
    key: String,
    body: HoldRequest,
    rules: Rules,
    way: Way,
) -> Result<Take, Problem> {
    let mut hash = Sha256::new();
    hash.update(event_id.to_le_bytes());
    hash.update(serde_json::to_vec(&body).map_err(Problem::internal)?);
    let body_hash = hash.finalize().into();
    let limit = config.desk.seats_a_request_max;
    let wish = match (body.seats, body.best) {
        (Some(seats), None) => Wish::Seats(SeatSet::new(seats, limit)?),
        (None, Some(best)) => Wish::Best(checked(best, limit)?),
        _ => return Err(Problem::new(Code::JsonInvalid).detail("Give either `seats` or `best`.")),
    };
    let (fewer_ok, replace) = (body.fewer_ok, body.replace);
    Ok(Take { buyer_id, wish, fewer_ok, replace, rules, way, key: Key { name: key, body_hash } })
}

fn checked(best: BestRequest, limit: usize) -> Result<BestRequest, Problem> {
    let count = best.count as usize;
    if count == 0 {
        return Err(SeatSetError::Empty.into());
    }
    if count > limit {
        return Err(SeatSetError::TooMany { named: count, limit }.into());
    }
    if best.accessible > best.count {
        return Err(Problem::new(Code::JsonInvalid).detail("`accessible` is part of `count` and can't exceed it."));
    }
    Ok(best)
}

impl From<SeatSetError> for Problem {
    fn from(error: SeatSetError) -> Self {
        match error {
            SeatSetError::Empty => Code::SeatsEmpty.into(),
            SeatSetError::TooMany { limit, .. } => Problem::new(Code::SeatsTooMany).with("limit", limit),
            SeatSetError::Repeated(seats) => Problem::new(Code::SeatsRepeated).with("seats", seats),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::EventUnknown => Code::EventUnknown.into(),
            Refusal::SeatUnknown(seats) => Problem::new(Code::SeatUnknown).with("seats", seats),
            Refusal::SeatsUnavailable { lost } => Problem::new(Code::SeatsUnavailable).with("lost", lost),
            Refusal::NoneTogether => Code::NoneTogether.into(),
            Refusal::LimitReached { limit, held, bought } => Problem::new(Code::LimitReached)
                .with("limit", limit)
                .with("held", held)
                .with("bought", bought)
                .with("left", (limit - held - bought).max(0)),
            Refusal::SeatsApart => Code::SeatsApart.into(),
            Refusal::SeatsTooFew(minimum) => Problem::new(Code::SeatsTooFew).with("minimum", minimum),
            Refusal::LeavesSingleSeat(singles) => Problem::new(Code::LeavesSingleSeat).with("singles", singles),
            Refusal::CompanionNeedsAccessible(seats) => {
                Problem::new(Code::CompanionNeedsAccessible).with("seats", seats)
            }
            Refusal::ChurnSpent => Code::ChurnSpent.into(),
            Refusal::HoldFrozen => Code::HoldFrozen.into(),
            Refusal::HoldUnknown => Code::HoldUnknown.into(),
            Refusal::IdempotencyMismatch => Code::IdempotencyMismatch.into(),
            Refusal::SaleNotOpen(at) => {
                Problem::new(Code::SaleNotOpen).with("opens_at", at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
            }
            Refusal::SaleClosed => Code::SaleClosed.into(),
            Refusal::SalePaused => Code::SalePaused.into(),
            Refusal::EventCancelled => Code::EventCancelled.into(),
            Refusal::Pass(refusal) => refusal.into(),
            Refusal::EventFullOfHolds => Problem::new(Code::EventFullOfHolds).retry_after_s(5),
            Refusal::Busy => Code::Busy.into(),
            Refusal::Failed => Code::Internal.into(),
        }
    }
}
