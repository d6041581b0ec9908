//! Which seat is exchanged for which: whether the old ones are the order's and the new ones free, and what both cost.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    order::{KeyReused, Unpaid},
    refund::RefundError,
};
use crate::db::Tx;

#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error("there is no such order")]
    OrderUnknown,
    #[error("the key was used for another request")]
    KeyReused,
    #[error("the order is {0}")]
    OrderNotPaid(String),
    #[error("attempt {0} is under way")]
    AttemptLive(Uuid),
    /// Not this order's, or not any more.
    #[error("seats {0:?} are not this order's")]
    SeatsNotSold(Vec<i32>),
    /// What such a seat is worth to its buyer is no longer what it was sold for.
    #[error("part of the price of seats {0:?} was given back already")]
    SeatsPartlyRefunded(Vec<i32>),
    #[error("seats {0:?} are not free")]
    SeatsUnavailable(Vec<i32>),
    #[error("seat {seat_no} is not sold as {ticket_type}")]
    TicketTypeUnknown { seat_no: i32, ticket_type: String },
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event is cancelled")]
    EventCancelled,
    /// What an order is worth to whoever bears its tickets is the partner's to settle.
    #[error("a partner owes for the order")]
    OnAccount,
    #[error("the event sells in {0}")]
    OtherCurrency(String),
    /// Seats of that event that are theirs to pay for: they have to be paid or given back first.
    #[error("the buyer holds seats of that event")]
    BuyerHolds,
    #[error("that is more than {limit} seats for one buyer")]
    LimitReached { limit: i32 },
    #[error("{difference_minor} more is to be paid")]
    MoreToPay { difference_minor: i64 },
    #[error(transparent)]
    Refund(#[from] RefundError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl From<Unpaid> for ExchangeError {
    fn from(unpaid: Unpaid) -> Self {
        match unpaid {
            Unpaid::AttemptLive(id) => Self::AttemptLive(id),
            Unpaid::State(state) => Self::OrderNotPaid(state),
            Unpaid::Database(error) => Self::Database(error),
        }
    }
}

impl From<KeyReused> for ExchangeError {
    fn from(_: KeyReused) -> Self {
        Self::KeyReused
    }
}

/// A seat that can be given up: sold, and nothing of its price went back.
#[derive(Debug, Clone)]
pub struct OldSeat {
    pub line_id: i64,
    pub seat_no: i32,
    pub ticket_type: String,
    pub amount_minor: i64,
}

/// A free seat, as it will be sold.
#[derive(Debug, Clone)]
pub struct NewSeat {
    pub seat_no: i32,
    pub ticket_type: String,
    pub amount_minor: i64,
}

/// The seats of an order that are to go, in the order in which they are named.
pub async fn old_seats(tx: &mut Tx, order_id: Uuid, from: &[i32]) -> Result<Vec<OldSeat>, ExchangeError> {
    let sold = sqlx::query!(
        r#"select l.id as line_id, l.seat_no as "seat_no!", l.ticket_type as "ticket_type!", l.amount_minor, l.refunded_minor
           from order_line l join unnest($2::int[]) with ordinality as f(seat_no, place) on f.seat_no = l.seat_no
           where l.order_id = $1 and l.state = 'sold' order by f.place"#,
        order_id,
        from
    )
    .fetch_all(&mut **tx)
    .await?;
    let missing: Vec<i32> = from.iter().copied().filter(|f| !sold.iter().any(|s| s.seat_no == *f)).collect();
    if !missing.is_empty() {
        return Err(ExchangeError::SeatsNotSold(missing));
    }
    let partly: Vec<i32> = sold.iter().filter(|s| s.refunded_minor > 0).map(|s| s.seat_no).collect();
    if !partly.is_empty() {
        return Err(ExchangeError::SeatsPartlyRefunded(partly));
    }
    Ok(sold
        .into_iter()
        .map(|s| OldSeat {
            line_id: s.line_id,
            seat_no: s.seat_no,
            ticket_type: s.ticket_type,
            amount_minor: s.amount_minor,
        })
        .collect())
}

/// The seats of `to` with their prices, each sold as the old seat in its place is.
pub async fn new_seats(
    tx: &mut Tx,
    event_id: i64,
    to: &[i32],
    old: &[OldSeat],
    now: DateTime<Utc>,
) -> Result<Vec<NewSeat>, ExchangeError> {
    let free = sqlx::query!(
        "select s.seat_no, s.level from event_seat s join event e on e.id = s.event_id
         join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
         where s.event_id = $1 and s.seat_no = any($2) and not p.retired
           and (s.status = 0 or (s.status = 1 and s.held_until <= $3))",
        event_id,
        to,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    let level_of = |seat_no: i32| free.iter().find(|f| f.seat_no == seat_no).map(|f| f.level);
    let taken: Vec<i32> = to.iter().copied().filter(|t| level_of(*t).is_none()).collect();
    if !taken.is_empty() {
        return Err(ExchangeError::SeatsUnavailable(taken));
    }
    let prices = sqlx::query!("select level, ticket_type, amount_minor from price where event_id = $1", event_id)
        .fetch_all(&mut **tx)
        .await?;
    to.iter()
        .zip(old)
        .map(|(&seat_no, old)| {
            let ticket_type = old.ticket_type.clone();
            let price = prices.iter().find(|p| Some(p.level) == level_of(seat_no) && p.ticket_type == ticket_type);
            match price {
                Some(price) => Ok(NewSeat { seat_no, ticket_type, amount_minor: price.amount_minor }),
                None => Err(ExchangeError::TicketTypeUnknown { seat_no, ticket_type }),
            }
        })
        .collect()
}
