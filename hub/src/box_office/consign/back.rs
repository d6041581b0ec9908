//! What a partner reports: seats that it sold, and seats that it gives back.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use fullhouse_protocol::consign::Consignment;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use super::{By, ConsignError, TicketTypes, expect_rows, give, line, list, named};
use crate::{
    auth::Deed,
    box_office::id_of,
    checkout::{self, CheckoutError, ConfirmError, ConsignedSale},
    clock,
    db::{self, Tx},
    hold::aside,
    seat_map::{SeatNo, SeatSet},
};

/// What was sold of a consignment.
#[derive(Debug, Clone)]
pub struct Sale {
    pub consignment_id: Uuid,
    pub seats: SeatSet,
    pub ticket_types: TicketTypes,
}

/// Sells seats on the partner's account; all of them, or none. The same key again finds the same order.
pub async fn sell(pool: PgPool, by: By, sale: Sale) -> Result<(Uuid, Consignment), ConsignError> {
    let id = id_of("consigned sale", by.terminal_id, &by.key);
    let types: BTreeMap<_, _> = sale.ticket_types.iter().collect();
    let body_hash = Sha256::digest(format!("{} {:?} {types:?}", sale.consignment_id, sale.seats.as_slice())).to_vec();
    db::write(async move {
        let (mut tx, found) = open(&pool, &by, sale.consignment_id).await?;
        let before = sqlx::query!("select order_id, body_hash from consignment_sale where id = $1", id)
            .fetch_optional(&mut *tx)
            .await?;
        let order_id = match before {
            Some(before) if before.body_hash == body_hash => before.order_id,
            Some(_) => return Err(ConsignError::KeyReused),
            None => {
                let now = clock::now(&mut tx).await?;
                let seats = found.out(&mut tx, Some(&sale.seats), now).await?;
                let order_id = sell_in(&mut tx, &by, &found, &seats, sale.ticket_types, now).await?;
                sqlx::query!(
                    "insert into consignment_sale (id, consignment_id, order_id, body_hash, sold_at) values ($1, $2, $3, $4, $5)",
                    id,
                    found.id,
                    order_id,
                    body_hash,
                    now
                )
                .execute(&mut *tx)
                .await?;
                order_id
            }
        };
        let stands = list::one(&mut tx, sale.consignment_id).await?.ok_or(ConsignError::Unknown)?;
        tx.commit().await?;
        Ok((order_id, stands))
    })
    .await
}

async fn sell_in(
    tx: &mut Tx,
    by: &By,
    found: &Found,
    seats: &[SeatNo],
    ticket_types: TicketTypes,
    now: DateTime<Utc>,
) -> Result<Uuid, ConsignError> {
    let sold = ConsignedSale {
        event_id: found.event_id,
        partner_id: found.partner_id,
        partner: &found.partner,
        hold_id: found.hold_id,
        seats,
        ticket_types,
        actor: by.actor.clone(),
    };
    let order_id = checkout::sell_consigned(tx, sold, now).await.map_err(|error| match ConsignError::from(error) {
        // The cut-off came while it was sold: the hold has the last word.
        ConsignError::Checkout(CheckoutError::HoldEnded) | ConsignError::Confirm(ConfirmError::HoldEnded) => {
            ConsignError::Over { until: found.until }
        }
        other => other,
    })?;
    found.end(tx, seats, "sold", Some(order_id), now).await?;
    Ok(order_id)
}

/// Puts seats back on sale before the cut-off: those that are named, or all that are out. Seats that went back already
/// are no error.
pub async fn give_back(
    pool: PgPool,
    by: By,
    consignment_id: Uuid,
    seats: Option<SeatSet>,
    reason: String,
) -> Result<Consignment, ConsignError> {
    db::write(async move {
        let (mut tx, found) = open(&pool, &by, consignment_id).await?;
        let now = clock::now(&mut tx).await?;
        if !found.are_back(&mut tx, seats.as_ref()).await? {
            let back = found.out(&mut tx, seats.as_ref(), now).await?;
            aside::give_back(&mut tx, found.event_id, found.hold_id, &back, now).await?;
            found.end(&mut tx, &back, "returned", None, now).await?;
            let named = named(&mut tx, found.event_id, &back).await?;
            let detail = line(format!("by {}, {named}", found.partner));
            let deed =
                Deed { verb: "consign_return", event_id: Some(found.event_id), detail: &detail, reason: &reason };
            by.actor.writes(&mut tx, deed, now).await?;
        }
        let stands = list::one(&mut tx, consignment_id).await?.ok_or(ConsignError::Unknown)?;
        tx.commit().await?;
        Ok(stands)
    })
    .await
}

/// Moves the cut-off while it has not come. It is so already: no error.
pub async fn cut_off(
    pool: PgPool,
    by: By,
    consignment_id: Uuid,
    until: DateTime<Utc>,
    reason: String,
) -> Result<Consignment, ConsignError> {
    db::write(async move {
        let (mut tx, found) = open(&pool, &by, consignment_id).await?;
        if found.until != until {
            cut_off_in(&mut tx, &by, &found, until, &reason).await?;
        }
        let stands = list::one(&mut tx, consignment_id).await?.ok_or(ConsignError::Unknown)?;
        tx.commit().await?;
        Ok(stands)
    })
    .await
}

async fn cut_off_in(
    tx: &mut Tx,
    by: &By,
    found: &Found,
    until: DateTime<Utc>,
    reason: &str,
) -> Result<(), ConsignError> {
    let now = give::check(tx, found.event_id, until).await?;
    let out = found.out(tx, None, now).await?;
    if out.is_empty() {
        return Err(ConsignError::NotOut(out)); // all of it is sold or back
    }
    aside::end_at(tx, found.event_id, found.hold_id, until, now).await?;
    let moved =
        sqlx::query!("update consignment set until = $2 where id = $1 and until = $3", found.id, until, found.until)
            .execute(&mut **tx)
            .await?;
    expect_rows(moved.rows_affected(), 1)?;
    let named = named(tx, found.event_id, &out).await?;
    let detail = line(format!("of {}: {}, not {}, {named}", found.partner, until, found.until));
    let deed = Deed { verb: "consign_cut_off", event_id: Some(found.event_id), detail: &detail, reason };
    Ok(by.actor.writes(tx, deed, now).await?)
}

/// A consignment whose event is locked.
struct Found {
    id: Uuid,
    hold_id: Uuid,
    partner_id: Uuid,
    partner: String,
    event_id: i64,
    until: DateTime<Utc>,
}

async fn open(pool: &PgPool, by: &By, consignment_id: Uuid) -> Result<(Tx, Found), ConsignError> {
    let event_id = sqlx::query_scalar!("select event_id from consignment where id = $1", consignment_id)
        .fetch_optional(pool)
        .await?
        .ok_or(ConsignError::Unknown)?;
    let mut tx = db::event_tx(pool, event_id).await?;
    by.actor.acts(&mut tx).await?;
    // With the lock: the cut-off moves.
    let found = sqlx::query_as!(
        Found,
        "select c.id, c.hold_id, c.partner_id, p.name as partner, c.event_id, c.until
         from consignment c join partner p on p.id = c.partner_id where c.id = $1",
        consignment_id
    )
    .fetch_one(&mut *tx)
    .await?;
    Ok((tx, found))
}

impl Found {
    /// The seats that are asked for (all, if none are named), each of them out still, ascending.
    async fn out(&self, tx: &mut Tx, asked: Option<&SeatSet>, now: DateTime<Utc>) -> Result<Vec<SeatNo>, ConsignError> {
        if self.until <= now {
            return Err(ConsignError::Over { until: self.until });
        }
        let out = sqlx::query_scalar!(
            "select seat_no from consignment_seat where consignment_id = $1 and state = 'out' order by seat_no",
            self.id
        )
        .fetch_all(&mut **tx)
        .await?;
        let Some(asked) = asked else { return Ok(out) };
        let gone: Vec<SeatNo> = asked.as_slice().iter().copied().filter(|s| out.binary_search(s).is_err()).collect();
        if gone.is_empty() { Ok(asked.as_slice().to_vec()) } else { Err(ConsignError::NotOut(gone)) }
    }

    /// Whether somebody gave all of them back before; of all, that none is out.
    async fn are_back(&self, tx: &mut Tx, asked: Option<&SeatSet>) -> sqlx::Result<bool> {
        let asked = asked.map(|seats| seats.as_slice().to_vec());
        sqlx::query_scalar!(
            r#"select case when $2::int[] is null then not exists (
                          select from consignment_seat where consignment_id = $1 and state = 'out')
                      else cardinality($2) = (select count(*) from consignment_seat
                          where consignment_id = $1 and seat_no = any($2) and state = 'returned') end as "back!""#,
            self.id,
            asked as Option<Vec<SeatNo>>
        )
        .fetch_one(&mut **tx)
        .await
    }

    async fn end(
        &self,
        tx: &mut Tx,
        seats: &[SeatNo],
        state: &str,
        order_id: Option<Uuid>,
        now: DateTime<Utc>,
    ) -> sqlx::Result<()> {
        let ended = sqlx::query!(
            "update consignment_seat set state = $3, order_id = $4, changed_at = $5
             where consignment_id = $1 and seat_no = any($2) and state = 'out'",
            self.id,
            seats,
            state,
            order_id,
            now
        )
        .execute(&mut **tx)
        .await?;
        expect_rows(ended.rows_affected(), seats.len())
    }
}
