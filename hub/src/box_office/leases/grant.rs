//! Seats become a terminal's, each with a ticket that it may print.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use fullhouse_protocol::{
    lease::{Lease, LeasedPlace, LeasedSeat},
    seat::Status,
};
use sha2::{Digest, Sha256};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

use super::{expect_rows, lock_journal};
use crate::{
    auth::Actor,
    box_office::free::{self, NotFree},
    catalog::layout::flag,
    clock,
    db::{self, Tx},
    outbox::{self, SeatChange},
    seat_map::{SeatNo, SeatSet},
    ticket,
};

/// Seats that one lease may have.
pub const SEATS_MAX: usize = 1_000;
/// Leases that a terminal may have open: it closes what it does not sell from.
const OPEN_MAX: i64 = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Seats(SeatSet),
    /// So many, of a section if one is named.
    Count(usize, Option<String>),
}

#[derive(Debug, Clone)]
pub struct Ask {
    pub terminal_id: Uuid,
    pub key: String,
    pub event_id: i64,
    pub wanted: Wanted,
    pub sells_for_s: u32,
    pub actor: Actor,
}

#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event is cancelled")]
    EventCancelled,
    #[error(transparent)]
    NotFree(#[from] NotFree),
    #[error("seat {0} has no price")]
    Unpriced(SeatNo),
    /// The terminal has to close some first.
    #[error("the terminal has {OPEN_MAX} leases open")]
    TooManyOpen,
    #[error("the key was used for another request")]
    KeyReused,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Leases seats to a terminal; all of them, or none. The same key finds the same lease.
pub async fn grant(pool: PgPool, ask: Ask) -> Result<Lease, GrantError> {
    db::write(async move {
        let mut tx = db::event_tx(&pool, ask.event_id).await?;
        ask.actor.acts(&mut tx).await?;
        let lease = grant_in(&mut tx, &ask).await?;
        tx.commit().await?;
        Ok(lease)
    })
    .await
}

async fn grant_in(tx: &mut Tx, ask: &Ask) -> Result<Lease, GrantError> {
    let next_seq = lock_journal(tx, ask.terminal_id).await?;
    let body_hash = Sha256::digest(format!("{} {:?} {}", ask.event_id, ask.wanted, ask.sells_for_s)).to_vec();
    let before =
        sqlx::query!("select id, body_hash from lease where terminal_id = $1 and key = $2", ask.terminal_id, ask.key)
            .fetch_optional(&mut **tx)
            .await?;
    if let Some(before) = before {
        return if before.body_hash == body_hash { granted(tx, before.id).await } else { Err(GrantError::KeyReused) };
    }
    let event = sqlx::query!("select currency, seat_limit, sale_state from event where id = $1", ask.event_id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(GrantError::EventUnknown)?;
    if event.sale_state == "cancelled" {
        return Err(GrantError::EventCancelled);
    }
    let open = sqlx::query_scalar!(
        r#"select count(*) as "open!" from lease where terminal_id = $1 and state = 'open'"#,
        ask.terminal_id
    )
    .fetch_one(&mut **tx)
    .await?;
    if open >= OPEN_MAX {
        return Err(GrantError::TooManyOpen);
    }
    let now = clock::now(tx).await?;
    let seat_nos = match &ask.wanted {
        Wanted::Seats(seats) => free::named(tx, ask.event_id, seats, now).await?,
        Wanted::Count(count, section) => free::so_many(tx, ask.event_id, *count, section.as_deref(), now).await?,
    };
    let prices = prices(tx, ask.event_id, &seat_nos).await?;

    // From here on everything must succeed, or the transaction fails as a whole.
    let lease_id = Uuid::now_v7();
    sqlx::query!(
        "insert into lease (id, terminal_id, event_id, key, body_hash, currency, seats_max, sells_for_s, next_seq, granted_by, granted_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        lease_id,
        ask.terminal_id,
        ask.event_id,
        ask.key,
        body_hash,
        event.currency,
        event.seat_limit,
        ask.sells_for_s.cast_signed(),
        next_seq.cast_signed(),
        ask.actor.name(),
        now
    )
    .execute(&mut **tx)
    .await?;
    let made = ticket::make(tx, ask.event_id, &seat_nos, now).await?;
    write_seats(tx, lease_id, ask.event_id, &made, prices).await?;
    take(tx, lease_id, ask.event_id, &seat_nos, now).await?;
    // What it will sell belongs to this shift, of an attended terminal: it can't close before the lease has.
    sqlx::query!("select drawer_of($1, true, $2)", ask.terminal_id, event.currency).fetch_one(&mut **tx).await?;
    granted(tx, lease_id).await
}

/// By ticket type, in the order of the seats. At a counter the price is the price: there are no fees to include.
async fn prices(
    tx: &mut Tx,
    event_id: i64,
    seat_nos: &[SeatNo],
) -> Result<Vec<Json<BTreeMap<String, i64>>>, GrantError> {
    let rows = sqlx::query!(
        "select s.seat_no, p.ticket_type, p.amount_minor
         from event_seat s join price p on p.event_id = s.event_id and p.level = s.level
         where s.event_id = $1 and s.seat_no = any($2)",
        event_id,
        seat_nos
    )
    .fetch_all(&mut **tx)
    .await?;
    let mut of_seat: BTreeMap<SeatNo, BTreeMap<String, i64>> = BTreeMap::new();
    for row in rows {
        of_seat.entry(row.seat_no).or_default().insert(row.ticket_type, row.amount_minor);
    }
    seat_nos.iter().map(|no| of_seat.remove(no).map(Json).ok_or(GrantError::Unpriced(*no))).collect()
}

async fn write_seats(
    tx: &mut Tx,
    lease_id: Uuid,
    event_id: i64,
    made: &[ticket::Made],
    prices: Vec<Json<BTreeMap<String, i64>>>,
) -> sqlx::Result<()> {
    let seat_nos: Vec<SeatNo> = made.iter().map(|m| m.seat_no).collect();
    let ids: Vec<Uuid> = made.iter().map(|m| m.ticket_id).collect();
    let codes: Vec<String> = made.iter().map(|m| m.code.clone()).collect();
    let written = sqlx::query!(
        "insert into lease_seat (lease_id, event_id, seat_no, ticket_id, code, prices)
         select $1, $2, u.* from unnest($3::int[], $4::uuid[], $5::text[], $6::jsonb[]) as u",
        lease_id,
        event_id,
        &seat_nos,
        &ids,
        &codes,
        &prices as _
    )
    .execute(&mut **tx)
    .await?;
    expect_rows(written.rows_affected(), made.len())
}

async fn take(tx: &mut Tx, lease_id: Uuid, event_id: i64, seat_nos: &[SeatNo], now: DateTime<Utc>) -> sqlx::Result<()> {
    let taken = sqlx::query!(
        "update event_seat set status = 3, lease_id = $3, hold_id = null, held_until = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and (status = 0 or (status = 1 and held_until <= $4))
         returning seat_no, version",
        event_id,
        seat_nos,
        lease_id,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    expect_rows(taken.len() as u64, seat_nos.len())?;
    let blocked = |seat_no, version| SeatChange { seat_no, status: Status::Blocked, version, held_until: None };
    let changes: Vec<SeatChange> = taken.into_iter().map(|s| blocked(s.seat_no, s.version)).collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// What was granted, as it was told the first time.
async fn granted(tx: &mut Tx, lease_id: Uuid) -> Result<Lease, GrantError> {
    let lease =
        sqlx::query!("select event_id, currency, seats_max, sells_for_s, next_seq from lease where id = $1", lease_id)
            .fetch_one(&mut **tx)
            .await?;
    let seats = sqlx::query!(
        r#"select s.seat_no, s.ticket_id, s.code, s.prices as "prices: Json<BTreeMap<String, i64>>",
                  p.section, p.row_label as row, p.seat_label as number,
                  seat_flags(p.flags, t.flags) as "flags!", t.note as "note?"
           from lease_seat s join event e on e.id = s.event_id
           join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
           left join seat_trait t on t.event_id = s.event_id and t.seat_no = s.seat_no
           where s.lease_id = $1 order by s.seat_no"#,
        lease_id
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(Lease {
        lease_id,
        event_id: lease.event_id,
        currency: lease.currency,
        sells_for_s: lease.sells_for_s.cast_unsigned(),
        next_seq: lease.next_seq.cast_unsigned(),
        seats_max: usize::try_from(lease.seats_max).unwrap_or_default(),
        seats: seats
            .into_iter()
            .map(|s| LeasedSeat {
                seat_no: s.seat_no,
                ticket_id: s.ticket_id,
                code: s.code,
                prices: s.prices.0,
                place: Some(LeasedPlace {
                    section: s.section,
                    row: s.row,
                    number: s.number,
                    standing: s.flags & flag::STANDING != 0,
                    traits: flag::traits(s.flags),
                    note: s.note,
                }),
            })
            .collect(),
    })
}
