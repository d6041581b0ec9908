//! A try to pay, as its buyer begins it, follows it and gives it up.
//!
//! Invariants
//! - One live attempt an order (`attempt_one_live`); the same key and body find the same attempt.
//! - An attempt freezes its hold in the transaction that writes it down, and never extends it.
//! - Nothing is sent from here: a worker finds what is to be done in the attempt's own row.

mod shown; // as its buyer sees it

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

pub use self::shown::{latest, latest_of, phase};
use super::{gate, provider::money, swap};
use crate::{
    auth::Actor,
    clock,
    db::{self, Tx},
};

/// What a buyer asks for.
#[derive(Debug, Clone)]
pub struct Pay {
    pub order_id: Uuid,
    pub buyer_id: Uuid,
    /// The client's own key.
    pub key: String,
    /// The provider's token; never card data.
    pub payment_method: String,
    /// The reader that the card is held to; then there is no token.
    pub reader_id: Option<String>,
    /// What the card pays: what the buyer was shown, less the cash.
    pub amount_minor: i64,
    /// What the customer has laid on the counter beside the card; 0 or more.
    pub cash_minor: i64,
    pub currency: String,
    /// Who has it paid.
    pub actor: Actor,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the buyer has no such order")]
    OrderUnknown,
    #[error("the key was used for another request")]
    KeyReused,
    #[error("the order is {0}")]
    OrderNotOpen(String),
    #[error("attempt {0} is under way")]
    AttemptLive(Uuid),
    #[error("the order's total is {total_minor} {currency}")]
    AmountMismatch { total_minor: i64, currency: String },
    #[error("an order of nothing is not paid by card")]
    NothingToPay,
    #[error("the cash leaves nothing of {due_minor} {currency} for the card")]
    CashPaysAll { due_minor: i64, currency: String },
    #[error("the provider can't be asked for this amount")]
    Money(#[source] money::MoneyError),
    #[error("the hold has ended")]
    HoldEnded,
    #[error("less than the margin of the hold is left")]
    TooLate,
    #[error("payments are paused: {0}")]
    GateClosed(String),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Opens an attempt, or finds the one that the same key opened. The worker is to be woken after it.
pub async fn open(pool: &PgPool, pay: Pay, margin: TimeDelta) -> Result<Uuid, OpenError> {
    let pool = pool.clone();
    db::write(async move {
        let event_id = sqlx::query_scalar!(
            r#"select event_id from "order" where id = $1 and buyer_id = $2"#,
            pay.order_id,
            pay.buyer_id
        )
        .fetch_optional(&pool)
        .await?
        .ok_or(OpenError::OrderUnknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        pay.actor.acts(&mut tx).await?;
        let attempt_id = open_in(&mut tx, &pay, margin).await?;
        tx.commit().await?;
        Ok(attempt_id)
    })
    .await
}

async fn open_in(tx: &mut Tx, pay: &Pay, margin: TimeDelta) -> Result<Uuid, OpenError> {
    let order = sqlx::query!(
        r#"select hold_id, state, currency, order_due_minor(o) as "due_minor!", cancel_requested, payment_due_until
           from "order" o where id = $1 for no key update"#,
        pay.order_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let body_hash = body_hash(pay);
    let before = sqlx::query!(
        "select body_hash, attempt_id from client_request where order_id = $1 and key = $2",
        pay.order_id,
        pay.key
    )
    .fetch_optional(&mut **tx)
    .await?;
    match before {
        Some(before) if before.body_hash == body_hash => return Ok(before.attempt_id),
        Some(_) => return Err(OpenError::KeyReused),
        None => {}
    }
    if let Some(live) = live(tx, pay.order_id).await? {
        return Err(OpenError::AttemptLive(live));
    }
    if !matches!(order.state.as_str(), "open" | "payment_due") || order.cancel_requested {
        return Err(OpenError::OrderNotOpen(order.state));
    }
    if order.due_minor != pay.amount_minor + pay.cash_minor || order.currency != pay.currency {
        return Err(OpenError::AmountMismatch { total_minor: order.due_minor, currency: order.currency });
    }
    if !swap::credit_is_good(tx, pay.order_id).await? {
        return Err(OpenError::OrderNotOpen("of an exchange that is over".to_owned()));
    }
    if pay.amount_minor == 0 {
        return Err(OpenError::NothingToPay);
    }
    money::to_provider(&order.currency, pay.amount_minor).map_err(OpenError::Money)?;
    if let Some(reason) = gate::closed(tx).await? {
        return Err(OpenError::GateClosed(reason));
    }
    let attempt_id = Uuid::now_v7();
    let (until, now) = match order.payment_due_until {
        // The seats are sold to this order already: there is no hold to freeze.
        Some(until) => (until, clock::now(tx).await?),
        None => freeze(tx, order.hold_id, attempt_id).await?,
    };
    if until - now < margin {
        return Err(OpenError::TooLate);
    }
    insert(tx, pay, attempt_id, &body_hash, until, now).await?;
    Ok(attempt_id)
}

/// Freezes the hold for the attempt. Returns when it ends, which this does not change, and the time.
async fn freeze(tx: &mut Tx, hold_id: Uuid, attempt_id: Uuid) -> Result<(DateTime<Utc>, DateTime<Utc>), OpenError> {
    let hold = sqlx::query!("select state, held_until from hold where id = $1 for no key update", hold_id)
        .fetch_one(&mut **tx)
        .await?;
    let now = clock::now(tx).await?;
    if hold.state != "live" || hold.held_until <= now {
        return Err(OpenError::HoldEnded);
    }
    let frozen = sqlx::query!(
        "update hold set attempt_id = $2, version = version + 1 where id = $1 and attempt_id is null",
        hold_id,
        attempt_id
    )
    .execute(&mut **tx)
    .await?;
    if frozen.rows_affected() != 1 {
        return Err(sqlx::Error::Protocol("a hold is frozen by an attempt of another order".into()).into());
    }
    Ok((hold.held_until, now))
}

async fn insert(
    tx: &mut Tx,
    pay: &Pay,
    attempt_id: Uuid,
    body_hash: &[u8],
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    // One card tender an order; its attempts follow one another, and it is where and what the latest is.
    let found = sqlx::query_scalar!(
        "update tender set amount_minor = $2, terminal_id = acting_terminal(), staff_id = acting_staff(),
                           shift_id = drawer_of(acting_terminal(), false, $3)
         where order_id = $1 and kind = 'card' returning id",
        pay.order_id,
        pay.amount_minor,
        pay.currency
    )
    .fetch_optional(&mut **tx)
    .await?;
    let tender_id = match found {
        Some(id) => id,
        None => {
            sqlx::query_scalar!(
                "insert into tender (id, order_id, kind, amount_minor, created_at)
                 values ($1, $2, 'card', $3, $4) returning id",
                Uuid::now_v7(),
                pay.order_id,
                pay.amount_minor,
                now
            )
            .fetch_one(&mut **tx)
            .await?
        }
    };
    sqlx::query!(
        "insert into attempt (id, order_id, tender_id, amount_minor, currency, payment_method, state, hold_expires_at,
                              next_run_at, created_at, updated_at, reader_id, cash_minor)
         values ($1, $2, $3, $4, $5, $6, 'new', $7, $8, $8, $8, $9, $10)",
        attempt_id,
        pay.order_id,
        tender_id,
        pay.amount_minor,
        pay.currency,
        pay.payment_method,
        until,
        now,
        pay.reader_id,
        pay.cash_minor
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        "insert into client_request (order_id, key, body_hash, attempt_id, created_at) values ($1, $2, $3, $4, $5)",
        pay.order_id,
        pay.key,
        body_hash,
        attempt_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Over what the request means, not over how it was written.
fn body_hash(pay: &Pay) -> Vec<u8> {
    let mut hash = Sha256::new();
    for part in [pay.payment_method.as_str(), &pay.amount_minor.to_string(), &pay.currency] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(pay.reader_id.as_deref().unwrap_or_default());
    if pay.cash_minor > 0 {
        hash.update([0]);
        hash.update(pay.cash_minor.to_string());
    }
    hash.finalize().to_vec()
}

/// The order's attempt that is not decided.
pub(super) async fn own_live(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select id from attempt
         where order_id = $1 and state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')",
        order_id
    )
    .fetch_optional(&mut **tx)
    .await
}

/// The order's attempt that is not decided, or that of an exchange of it.
pub(super) async fn live(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Option<Uuid>> {
    match own_live(tx, order_id).await? {
        Some(id) => Ok(Some(id)),
        None => swap::under_way(tx, order_id).await,
    }
}

/// There is news: a worker looks at the order's attempts, at once. Says whether there was one to look at.
pub async fn poke(pool: &PgPool, order_id: Uuid) -> sqlx::Result<bool> {
    let pool = pool.clone();
    db::write(async move {
        let poked = sqlx::query!(
            "update attempt set pokes = pokes + 1, next_run_at = db_clock()
             where order_id = $1 and state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')",
            order_id
        )
        .execute(&pool)
        .await?;
        Ok(poked.rows_affected() > 0)
    })
    .await
}

#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    #[error("the buyer has no such order")]
    OrderUnknown,
    /// Sold already: that is a refund's business.
    #[error("the order is {0}")]
    OrderNotOpen(String),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Gives an order up. If a payment is under way, it is resolved first and then let go; the seats
/// stay held until the hold is released or ends.
pub async fn cancel(pool: &PgPool, order_id: Uuid, buyer_id: Uuid) -> Result<(), CancelError> {
    let pool = pool.clone();
    db::write(async move {
        let mut tx = pool.begin().await?;
        let order = sqlx::query!(
            r#"select state from "order" where id = $1 and buyer_id = $2 for no key update"#,
            order_id,
            buyer_id
        )
        .fetch_optional(&mut *tx)
        .await?
        .ok_or(CancelError::OrderUnknown)?;
        match order.state.as_str() {
            "cancelled" => return Ok(()),
            "open" => {}
            _ => return Err(CancelError::OrderNotOpen(order.state)),
        }
        let (state, reason) =
            if live(&mut tx, order_id).await?.is_some() { ("open", None) } else { ("cancelled", Some("buyer")) };
        sqlx::query!(
            r#"update "order" set cancel_requested = true, state = $2, cancel_reason = $3 where id = $1"#,
            order_id,
            state,
            reason
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "update attempt set pokes = pokes + 1, next_run_at = db_clock()
             where order_id = $1 and state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')",
            order_id
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    })
    .await
}

/// The clerk wants the reader to stop. If the card was faster, the order is paid: what the card has
/// decided is kept. (Giving it back as well is [`cancel`].)
pub async fn stop_reader(pool: &PgPool, order_id: Uuid) -> sqlx::Result<bool> {
    let pool = pool.clone();
    db::write(async move {
        let stopped = sqlx::query!(
            "update attempt set stop_requested = true, pokes = pokes + 1, next_run_at = db_clock()
             where order_id = $1 and reader_id is not null
               and state in ('new', 'ready', 'confirming', 'action_required', 'auth_unknown')",
            order_id
        )
        .execute(&pool)
        .await?;
        Ok(stopped.rows_affected() > 0)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_has_the_same_hash_and_another_has_another() {
        let pay = Pay {
            order_id: Uuid::nil(),
            buyer_id: Uuid::nil(),
            key: "k".into(),
            payment_method: "pm_1".into(),
            reader_id: None,
            amount_minor: 5,
            cash_minor: 0,
            currency: "EUR".into(),
            actor: "buyer".into(),
        };
        assert_eq!(body_hash(&pay), body_hash(&Pay { key: "other".into(), ..pay.clone() }));
        assert_ne!(body_hash(&pay), body_hash(&Pay { payment_method: "pm_2".into(), ..pay.clone() }));
        assert_ne!(body_hash(&pay), body_hash(&Pay { amount_minor: 6, ..pay.clone() }));
        assert_ne!(body_hash(&pay), body_hash(&Pay { cash_minor: 1, ..pay.clone() }));
    }
}
