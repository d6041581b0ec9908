//! Seats become a partner's, until the cut-off.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::consign::Consignment;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use super::{By, ConsignError, expect_rows, line, list, named, partners};
use crate::{
    auth::Deed,
    box_office::{
        free::{self, NotFree},
        id_of,
    },
    clock,
    db::{self, Tx},
    hold::aside,
    seat_map::{SeatNo, SeatSet},
};

/// Seats that one consignment may have.
pub const SEATS_MAX: usize = 2_000;
/// Shorter is of no use to anybody.
const SHORTEST: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Seats(SeatSet),
    /// What is free of it: so many, or all.
    Section(String, Option<usize>),
}

#[derive(Debug, Clone)]
pub struct Ask {
    pub event_id: i64,
    pub partner_id: Uuid,
    pub wanted: Wanted,
    /// To the microsecond, as the database keeps it.
    pub until: DateTime<Utc>,
    pub note: String,
}

/// Gives seats to a partner to sell; all of them, or none. The same key again finds the same consignment.
pub async fn consign(pool: PgPool, by: By, ask: Ask) -> Result<Consignment, ConsignError> {
    db::write(async move {
        let mut tx = db::event_tx(&pool, ask.event_id).await?;
        by.actor.acts(&mut tx).await?;
        let made = consign_in(&mut tx, &by, &ask).await?;
        tx.commit().await?;
        Ok(made)
    })
    .await
}

async fn consign_in(tx: &mut Tx, by: &By, ask: &Ask) -> Result<Consignment, ConsignError> {
    let id = id_of("consignment", by.terminal_id, &by.key);
    let body_hash = Sha256::digest(format!("{ask:?}")).to_vec();
    let before =
        sqlx::query_scalar!("select body_hash from consignment where id = $1", id).fetch_optional(&mut **tx).await?;
    if let Some(before) = before {
        let same = before == body_hash;
        return if same { list::one(tx, id).await?.ok_or(ConsignError::Unknown) } else { Err(ConsignError::KeyReused) };
    }
    let partner = partners::one(tx, ask.partner_id).await?.ok_or(ConsignError::PartnerUnknown)?;
    let now = check(tx, ask.event_id, ask.until).await?;
    let seat_nos = wanted(tx, ask, now).await?;

    // From here on everything must succeed, or the transaction fails as a whole.
    let buyer_id = Uuid::now_v7();
    sqlx::query!("insert into buyer (id, partner_id) values ($1, $2)", buyer_id, ask.partner_id)
        .execute(&mut **tx)
        .await?;
    let hold_id = aside::set_aside(tx, ask.event_id, buyer_id, &seat_nos, now, ask.until).await?;
    sqlx::query!(
        "insert into consignment (id, hold_id, partner_id, event_id, until, note, body_hash, made_by, terminal_id, made_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        id,
        hold_id,
        ask.partner_id,
        ask.event_id,
        ask.until,
        ask.note,
        body_hash,
        by.actor.name(),
        by.terminal_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    let out = sqlx::query!(
        "insert into consignment_seat (consignment_id, seat_no) select $1, s from unnest($2::int[]) as s",
        id,
        &seat_nos
    )
    .execute(&mut **tx)
    .await?;
    expect_rows(out.rows_affected(), seat_nos.len())?;
    let named = named(tx, ask.event_id, &seat_nos).await?;
    let detail = line(format!("to {} {}, until {}, {named}", partner.code, partner.name, ask.until));
    let deed = Deed { verb: "consign", event_id: Some(ask.event_id), detail: &detail, reason: &ask.note };
    by.actor.writes(tx, deed, now).await?;
    list::one(tx, id).await?.ok_or(ConsignError::Unknown)
}

/// That it may be, by the time that it returns.
pub(super) async fn check(tx: &mut Tx, event_id: i64, until: DateTime<Utc>) -> Result<DateTime<Utc>, ConsignError> {
    let event = sqlx::query!(
        r#"select sale_state, least(off_sale_at, starts_at) as "latest!" from event where id = $1 for share"#,
        event_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ConsignError::EventUnknown)?;
    let now = clock::now(tx).await?;
    if event.sale_state == "cancelled" {
        return Err(ConsignError::EventCancelled);
    }
    if until < now + SHORTEST || until > event.latest {
        return Err(ConsignError::UntilInvalid { latest: event.latest });
    }
    Ok(now)
}

async fn wanted(tx: &mut Tx, ask: &Ask, now: DateTime<Utc>) -> Result<Vec<SeatNo>, ConsignError> {
    let (section, count) = match &ask.wanted {
        Wanted::Seats(seats) => return Ok(free::named(tx, ask.event_id, seats, now).await?),
        Wanted::Section(section, count) => (section.as_str(), *count),
    };
    if let Some(count) = count {
        return Ok(free::so_many(tx, ask.event_id, count, Some(section), now).await?);
    }
    let all = free::up_to(tx, ask.event_id, SEATS_MAX + 1, Some(section), now).await?;
    match all.len() {
        0 => Err(NotFree::TooFew { free: 0 }.into()),
        found if found > SEATS_MAX => Err(ConsignError::TooMany),
        _ => Ok(all),
    }
}
