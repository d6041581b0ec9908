//! Vouchers are made, listed and withdrawn. What one pays for is `checkout::voucher`'s.
//!
//! Invariants
//! - Its code is shown once, to whoever made it; only the hash is kept.
//! - What has paid for an order is withdrawn no more, and what was withdrawn pays for none: both lock its row.

use chrono::{DateTime, Utc};
use fullhouse_protocol::voucher::{Voucher, VoucherMade, VoucherRequest};
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use super::id_of;
use crate::{
    auth::{Actor, Deed, Token, short_code},
    checkout::voucher_is_used,
    clock,
    db::{self, Tx},
};

#[derive(Debug, thiserror::Error)]
pub enum VoucherError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event is cancelled")]
    EventCancelled,
    /// Over already, or after the event has begun.
    #[error("it may be valid until {latest}")]
    UntilInvalid { latest: DateTime<Utc> },
    #[error("the key was used for another request")]
    KeyReused,
    #[error("there is no such voucher")]
    Unknown,
    #[error("it has paid for an order")]
    Used,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Makes a voucher. The same key again makes no second one: it gives it another code, unless it was used.
pub async fn make(
    pool: PgPool,
    terminal_id: Uuid,
    actor: Actor,
    key: String,
    asked: VoucherRequest,
) -> Result<VoucherMade, VoucherError> {
    let id = id_of("voucher", terminal_id, &key);
    db::write(async move {
        let mut tx = pool.begin().await?;
        actor.acts(&mut tx).await?;
        let (now, valid_until) = check(&mut tx, &asked).await?;
        let code = short_code::random();
        let made = sqlx::query!(
            "insert into voucher (id, event_id, code_hash, seats_max, recipient, reason, valid_until, made_by, terminal_id, made_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (id) do nothing",
            id,
            asked.event_id,
            &Token::hash(&code)[..],
            asked.seats_max,
            asked.recipient,
            asked.reason,
            valid_until,
            actor.name(),
            terminal_id,
            now
        )
        .execute(&mut *tx)
        .await?
        .rows_affected();
        if made == 0 {
            another_code(&mut tx, id, &asked, valid_until, &code).await?;
        } else {
            let detail = format!("{} seats for {}, until {valid_until}", asked.seats_max, asked.recipient);
            let deed = Deed { verb: "voucher_make", event_id: Some(asked.event_id), detail: &detail, reason: &asked.reason };
            actor.writes(&mut tx, deed, now).await?;
        }
        let voucher = read(&mut *tx, Some(id), None).await?.pop().ok_or(VoucherError::Unknown)?;
        tx.commit().await?;
        Ok(VoucherMade { code: short_code::written(&code), voucher })
    })
    .await
}

/// The time, and until when it is valid.
async fn check(tx: &mut Tx, asked: &VoucherRequest) -> Result<(DateTime<Utc>, DateTime<Utc>), VoucherError> {
    let event = sqlx::query!("select sale_state, starts_at from event where id = $1 for share", asked.event_id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(VoucherError::EventUnknown)?;
    let now = clock::now(tx).await?;
    if event.sale_state == "cancelled" {
        return Err(VoucherError::EventCancelled);
    }
    let latest = event.starts_at;
    let until = asked.valid_until.unwrap_or(latest);
    if until <= now || until > latest {
        return Err(VoucherError::UntilInvalid { latest });
    }
    Ok((now, until))
}

/// The first answer got lost, and its code with it.
async fn another_code(
    tx: &mut Tx,
    id: Uuid,
    asked: &VoucherRequest,
    valid_until: DateTime<Utc>,
    code: &str,
) -> Result<(), VoucherError> {
    let changed = sqlx::query!(
        "update voucher set code_hash = $2
         where id = $1 and event_id = $3 and seats_max = $4 and recipient = $5 and reason = $6 and valid_until = $7
           and withdrawn_at is null and not exists (select from tender where voucher_id = $1)",
        id,
        &Token::hash(code)[..],
        asked.event_id,
        asked.seats_max,
        asked.recipient,
        asked.reason,
        valid_until
    )
    .execute(&mut **tx)
    .await?
    .rows_affected();
    if changed == 1 { Ok(()) } else { Err(VoucherError::KeyReused) }
}

/// Those of an event, the latest first.
pub async fn list(pool: &PgPool, event_id: i64) -> sqlx::Result<Vec<Voucher>> {
    read(pool, None, Some(event_id)).await
}

/// One of them.
pub async fn one(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<Voucher>> {
    Ok(read(pool, Some(id), None).await?.pop())
}

async fn read(db: impl PgExecutor<'_>, id: Option<Uuid>, event_id: Option<i64>) -> sqlx::Result<Vec<Voucher>> {
    sqlx::query_as!(
        Voucher,
        r#"select v.id as voucher_id, v.event_id, e.name as event_name, v.seats_max, v.recipient, v.reason, v.valid_until,
                  v.made_by, v.made_at, o.id as "order_id?", o.code as "order_code?",
                  case when o.id is not null then 'used' when v.withdrawn_at is not null then 'withdrawn'
                       when v.valid_until <= db_clock() then 'over' else 'open' end as "state!"
           from voucher v join event e on e.id = v.event_id
           left join tender t on t.voucher_id = v.id left join "order" o on o.id = t.order_id
           where ($1::uuid is null or v.id = $1) and ($2::bigint is null or v.event_id = $2)
           order by v.made_at desc, v.id"#,
        id,
        event_id
    )
    .fetch_all(db)
    .await
}

/// Withdraws a voucher. Again: it is withdrawn.
pub async fn withdraw(pool: PgPool, actor: Actor, id: Uuid, reason: String) -> Result<(), VoucherError> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        actor.acts(&mut tx).await?;
        let voucher = sqlx::query!(
            r#"select event_id, recipient, withdrawn_at is not null as "withdrawn!" from voucher where id = $1 for update"#,
            id
        )
        .fetch_optional(&mut *tx)
        .await?
        .ok_or(VoucherError::Unknown)?;
        if voucher_is_used(&mut tx, id).await? {
            return Err(VoucherError::Used);
        }
        if voucher.withdrawn {
            return Ok(());
        }
        let now = clock::now(&mut tx).await?;
        sqlx::query!("update voucher set withdrawn_at = $2, withdrawn_by = $3 where id = $1", id, now, actor.name())
            .execute(&mut *tx)
            .await?;
        let event_id = Some(voucher.event_id);
        let deed = Deed { verb: "voucher_withdraw", event_id, detail: &voucher.recipient, reason: &reason };
        actor.writes(&mut tx, deed, now).await?;
        Ok(tx.commit().await?)
    })
    .await
}
