//! A voucher pays for an order.
//!
//! Invariants
//! - It pays once (`tender_voucher_once`), for seats of its event, for no more than it promises, and in its time
//!   (`voucher_pays`).

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    auth::{Token, short_code},
    db::Tx,
};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoucherRefusal {
    #[error("no voucher has this code")]
    Unknown,
    #[error("the voucher has paid for an order")]
    Used,
    #[error("the voucher was withdrawn, or its time is over")]
    Over,
    #[error("the voucher is for {seats_max} seats of event {event_id}")]
    Mismatch { event_id: i64, seats_max: i32 },
}

/// The voucher of a code as somebody types it.
pub async fn of_code(pool: &PgPool, typed: &str) -> sqlx::Result<Option<Uuid>> {
    let Some(code) = short_code::read(typed) else { return Ok(None) };
    sqlx::query_scalar!("select id from voucher where code_hash = $1", &Token::hash(&code)[..])
        .fetch_optional(pool)
        .await
}

/// Holds a voucher that pays for so many seats of an event, until the transaction ends; or says why it does not.
pub(super) async fn lock(
    tx: &mut Tx,
    voucher_id: Uuid,
    event_id: i64,
    seats: usize,
    now: DateTime<Utc>,
) -> Result<(), super::ConfirmError> {
    let voucher = sqlx::query!(
        "select event_id, seats_max, valid_until, withdrawn_at from voucher where id = $1 for update",
        voucher_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(VoucherRefusal::Unknown)?;
    if is_used(tx, voucher_id).await? {
        return Err(VoucherRefusal::Used.into());
    }
    if voucher.withdrawn_at.is_some() || voucher.valid_until <= now {
        return Err(VoucherRefusal::Over.into());
    }
    let (event, seats_max) = (voucher.event_id, voucher.seats_max);
    if event != event_id || seats > seats_max as usize {
        return Err(VoucherRefusal::Mismatch { event_id: event, seats_max }.into());
    }
    Ok(())
}

/// Whether it has paid. Asked after its row was locked: whoever used it meanwhile has done so by now.
pub async fn is_used(tx: &mut Tx, voucher_id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(r#"select exists(select from tender where voucher_id = $1) as "used!""#, voucher_id)
        .fetch_one(&mut **tx)
        .await
}

/// Writes down that it paid.
pub(super) async fn record(
    tx: &mut Tx,
    voucher_id: Uuid,
    order_id: Uuid,
    amount_minor: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into tender (id, order_id, kind, amount_minor, voucher_id, reason, created_at)
         select $1, $2, 'voucher', $3, id, left(format('%s: %s', recipient, reason), 500), $5 from voucher where id = $4",
        Uuid::now_v7(),
        order_id,
        amount_minor,
        voucher_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
