//! Holding seats: the desk decides, in batches, over the rows that own the seats.
//!
//! Read [`desk`] for how requests gather and one transaction decides them, [`decide`] for the
//! rules, [`ledger`] for what is read and written, [`best`] for "best n together".

pub mod aside; // put aside until a time of their own, without the rules for fans
pub mod best; // the best n together, and what lies near
mod decide; // the rules, without a database
pub mod desk; // requests gather; one transaction decides them
mod ledger; // what a batch reads and writes
pub mod sweeper; // tidies what ran out

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::holds::{BestRequest, EndedHold, Hold, MyHold, SeatLimit};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    admission::pass::{Claim, PassRefusal},
    auth::TokenHash,
    config,
    seat_map::{SeatNo, SeatSet},
};

/// What is asked of a desk.
#[derive(Debug, Clone)]
pub enum Request {
    Take(Take),
    Release(Release),
    /// From the sweeper: holds whose time has passed.
    Expire(Vec<Uuid>),
}

#[derive(Debug, Clone)]
pub struct Take {
    pub buyer_id: Uuid,
    pub wish: Wish,
    /// Fewer seats will do.
    pub fewer_ok: bool,
    /// The hold becomes exactly this; otherwise the seats are added to it.
    pub replace: bool,
    pub rules: Rules,
    pub way: Way,
    pub key: Key,
}

#[derive(Debug, Clone)]
pub enum Wish {
    Seats(SeatSet),
    Best(BestRequest),
}

/// Which rules of good order apply. The limit of seats is the buyer's and applies always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Sale window, single seats, companions, churn.
    Fan,
    /// Staff know what they do; only a cancelled event stops them.
    Staff,
}

/// How somebody comes to an event that has a waiting room. Where there is none, every way is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// A till or kiosk: the house's own. That it passed the line is logged with the hold.
    ByRole(ByRole),
    /// With the pass that was shown, if any, by this account in this session.
    WithPass { claim: Option<Claim>, account_id: Uuid, session: TokenHash },
}

/// Which terminal, and what it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByRole {
    pub terminal: String,
    pub role: String,
}

/// The client's name for this request: sent again, it finds the first answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    /// Of the request's body: the same name for another request is refused.
    pub body_hash: [u8; 32],
}

#[derive(Debug, Clone)]
pub struct Release {
    pub buyer_id: Uuid,
    pub hold_id: Uuid,
    /// `None`: all of them.
    pub seats: Option<SeatSet>,
}

/// What the buyer has after a request that was granted.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    pub hold: Option<Hold>,
    pub not_held: Vec<SeatNo>,
    pub now: DateTime<Utc>,
}

/// Why a request was not granted. Nothing was changed.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
pub enum Refusal {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event has no seats {0:?}")]
    SeatUnknown(Vec<SeatNo>),
    #[error("seats {lost:?} are taken")]
    SeatsUnavailable { lost: Vec<SeatNo> },
    #[error("there are not that many seats together")]
    NoneTogether,
    #[error("{held} held and {bought} bought of {limit}")]
    LimitReached { limit: i32, held: i32, bought: i32 },
    #[error("seats {0:?} would be left single")]
    LeavesSingleSeat(Vec<SeatNo>),
    #[error("seats that are not side by side")]
    SeatsApart,
    #[error("fewer than {0} seats")]
    SeatsTooFew(i32),
    #[error("companion seats {0:?} without their accessible places")]
    CompanionNeedsAccessible(Vec<SeatNo>),
    #[error("too many seats taken and returned")]
    ChurnSpent,
    #[error("a payment is under way")]
    HoldFrozen,
    #[error("the buyer has no such hold")]
    HoldUnknown,
    #[error("the key was used for another request")]
    IdempotencyMismatch,
    #[error("the sale opens at {0}")]
    SaleNotOpen(DateTime<Utc>),
    #[error("the sale has closed")]
    SaleClosed,
    #[error("the sale is paused")]
    SalePaused,
    #[error("the event is cancelled")]
    EventCancelled,
    #[error(transparent)]
    Pass(PassRefusal),
    #[error("as many hold seats as may at once")]
    EventFullOfHolds,
    #[error("too busy")]
    Busy,
    #[error("the database failed")]
    Failed,
}

/// What a buyer holds of an event, by the database's clock; `None` where there is no such event.
pub async fn mine(
    pool: &PgPool,
    payment: &config::Payment,
    event_id: i64,
    buyer_id: Uuid,
) -> sqlx::Result<Option<MyHold>> {
    let Some(row) = sqlx::query!(
        r#"select c.now as "now!", e.seat_limit,
                  (select count(*) from "order" o join order_line l on l.order_id = o.id
                   where o.event_id = e.id and o.buyer_id = $2 and l.state = 'sold' and l.seat_no is not null)::int as "bought!",
                  h.id as "hold_id?", h.seat_nos as "seat_nos?", h.held_until as "held_until?", h.attempt_id as "attempt_id?",
                  h.version as "version?", ended.id as "ended_id?", ended.why as "ended_why?", ended.order_id as "ended_order?"
           from event e cross join (select db_clock() as now) c
           left join hold h on h.event_id = e.id and h.buyer_id = $2 and h.state = 'live' and h.held_until > c.now
           left join lateral (
               select l.id, case when l.state = 'bought' then 'bought' when e.sale_state = 'cancelled' then 'called_off'
                                 when l.state = 'released' then 'released' else 'expired' end as why,
                      (select o.id from "order" o where o.hold_id = l.id and o.state in ('confirmed', 'payment_due') limit 1) as order_id
               from hold l where l.event_id = e.id and l.buyer_id = $2 order by l.created_at desc limit 1) ended on h.id is null
           where e.id = $1"#,
        event_id,
        buyer_id
    )
    .fetch_optional(pool)
    .await?
    else {
        return Ok(None);
    };
    let hold = match (row.hold_id, row.seat_nos, row.held_until, row.version) {
        (Some(id), Some(seats), Some(held_until), Some(version)) => Some(Hold {
            id,
            event_id,
            seats,
            held_until,
            pay_until: held_until - TimeDelta::seconds(payment.pay_margin_s),
            frozen: row.attempt_id.is_some(),
            version,
        }),
        _ => None,
    };
    let held = hold.as_ref().map_or(0, |h| h.seats.len() as i32);
    let left = (row.seat_limit - held - row.bought).max(0);
    let limit = SeatLimit { seat_limit: row.seat_limit, held, bought: row.bought, left };
    let ended = row.ended_id.zip(row.ended_why);
    let ended = ended.map(|(hold_id, why)| EndedHold { hold_id, why, order_id: row.ended_order });
    Ok(Some(MyHold { hold, ended, limit, now: row.now }))
}

/// The event of a buyer's hold, whatever became of it; `None` for somebody else's.
pub async fn event_of(pool: &PgPool, hold_id: Uuid, buyer_id: Uuid) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!("select event_id from hold where id = $1 and buyer_id = $2", hold_id, buyer_id)
        .fetch_optional(pool)
        .await
}
