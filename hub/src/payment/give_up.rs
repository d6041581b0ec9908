//! A buyer gives a part of an order back by themselves, within the policy that they bought under.
//!
//! Invariants
//! - What comes back is said before it is asked for, and asked for as it was said.
//! - The policy is the order's, frozen when it was bought; what the event says by now plays no part.
//! - The rest of a party obeys the rules that the whole did: the smallest party, companions with their places.
//! - Money and seats go the way of every refund ([`super::refund`]). Staff are bound by none of this.

use chrono::{DateTime, Utc};
use fullhouse_protocol::orders::{CancellationOffer, CancelledSeat};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    apportion::{self, What},
    attempt,
    provider::money,
    refund::{self, Ask, RefundError, SeatsBecome},
};
use crate::{
    catalog::event::RefundPolicy,
    clock,
    db::{self, Tx},
};

#[derive(Debug, thiserror::Error)]
pub enum GiveUpError {
    #[error("the buyer has no such order")]
    OrderUnknown,
    /// It was bought without a policy, or nothing would come back.
    #[error("nothing goes back of this order by itself")]
    NotAllowed,
    #[error("it could be given back until {0}")]
    TooLate(DateTime<Utc>),
    #[error("a party has {minimum} seats at least, or none")]
    PartyTooSmall { minimum: i32 },
    #[error("companion seats {0:?} would be left without their place")]
    CompanionAlone(Vec<i32>),
    #[error("{back_minor} comes back, not what was expected")]
    OtherAmount { back_minor: i64 },
    #[error(transparent)]
    Refund(#[from] RefundError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// What would come back of these seats, now. Nothing is changed.
pub async fn offer(
    pool: &PgPool,
    order_id: Uuid,
    buyer_id: Uuid,
    seats: &[i32],
) -> Result<CancellationOffer, GiveUpError> {
    let mut tx = pool.begin().await?;
    let offer = offer_in(&mut tx, order_id, buyer_id, seats).await?;
    tx.rollback().await?;
    Ok(offer)
}

/// What a buyer has agreed to.
#[derive(Debug, Clone)]
pub struct Agreed {
    pub order_id: Uuid,
    pub buyer_id: Uuid,
    pub key: String,
    pub seats: Vec<i32>,
    /// What they were told comes back.
    pub back_minor: i64,
}

/// Gives the seats back, or finds what the same key gave back. Workers are to be woken after it.
pub async fn give_up(pool: &PgPool, agreed: Agreed) -> Result<(), GiveUpError> {
    let pool = pool.clone();
    db::write(async move {
        let event_id = sqlx::query_scalar!(
            r#"select event_id from "order" where id = $1 and buyer_id = $2"#,
            agreed.order_id,
            agreed.buyer_id
        )
        .fetch_optional(&pool)
        .await?
        .ok_or(GiveUpError::OrderUnknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        let policy = policy_of(&mut tx, agreed.order_id).await?.ok_or(GiveUpError::NotAllowed)?;
        let ask = Ask {
            order_id: agreed.order_id,
            key: format!("buyer:{}", agreed.key),
            what: What::Within(agreed.seats.clone(), policy),
            seats_become: Some(SeatsBecome::OnSale),
            reason: "given back by the buyer".to_owned(),
            actor: "buyer".into(),
            called_off: false,
        };
        let done = sqlx::query_scalar!(
            r#"select exists(select from refund_request where order_id = $1 and key = $2) as "done!""#,
            ask.order_id,
            ask.key
        )
        .fetch_one(&mut *tx)
        .await?;
        if !done {
            let offer = offer_in(&mut tx, agreed.order_id, agreed.buyer_id, &agreed.seats).await?;
            if offer.back_minor != agreed.back_minor {
                return Err(GiveUpError::OtherAmount { back_minor: offer.back_minor });
            }
        }
        refund::give_back_in(&mut tx, event_id, &ask).await?;
        tx.commit().await?;
        Ok(())
    })
    .await
}

async fn policy_of(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Option<RefundPolicy>> {
    let stored = sqlx::query_scalar!(r#"select refund_policy from "order" where id = $1"#, order_id)
        .fetch_one(&mut **tx)
        .await?;
    Ok(RefundPolicy::read(stored))
}

async fn offer_in(
    tx: &mut Tx,
    order_id: Uuid,
    buyer_id: Uuid,
    seats: &[i32],
) -> Result<CancellationOffer, GiveUpError> {
    let order = sqlx::query!(
        r#"select o.event_id, o.state, o.currency, o.refund_policy, e.starts_at, e.seats_min, e.plan_revision_id
           from "order" o join event e on e.id = o.event_id where o.id = $1 and o.buyer_id = $2"#,
        order_id,
        buyer_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(GiveUpError::OrderUnknown)?;
    if order.state != "confirmed" {
        return Err(RefundError::OrderNotPaid(order.state).into());
    }
    if let Some(id) = attempt::live(tx, order_id).await? {
        return Err(RefundError::AttemptLive(id).into());
    }
    let policy = RefundPolicy::read(order.refund_policy).ok_or(GiveUpError::NotAllowed)?;
    let until = policy.until(order.starts_at);
    if clock::now(tx).await? >= until {
        return Err(GiveUpError::TooLate(until));
    }
    let lines = refund::lines(tx, order_id).await?;
    let step = money::step(&order.currency).map_err(RefundError::from)?;
    let parts = apportion::apportion(&lines, &What::Within(seats.to_vec(), policy), step).map_err(RefundError::from)?;
    let back_of = |id: i64| parts.lines.iter().find(|(line, _)| *line == id).map_or(0, |(_, amount)| *amount);
    let going: Vec<CancelledSeat> = lines
        .iter()
        .filter(|l| !l.gone && l.seat_no.is_some_and(|s| seats.contains(&s)))
        .map(|l| CancelledSeat {
            seat_no: l.seat_no.unwrap_or_default(),
            amount_minor: l.amount_minor,
            back_minor: back_of(l.id),
        })
        .collect();
    if going.iter().any(|seat| seat.amount_minor > 0 && seat.back_minor == 0) {
        return Err(GiveUpError::NotAllowed);
    }
    let left: Vec<i32> =
        lines.iter().filter(|l| !l.gone).filter_map(|l| l.seat_no).filter(|s| !seats.contains(s)).collect();
    if !left.is_empty() && (left.len() as i64) < i64::from(order.seats_min) {
        return Err(GiveUpError::PartyTooSmall { minimum: order.seats_min });
    }
    let alone = sqlx::query_scalar!(
        "select p.seat_no from plan_seat p left join seat_trait t on t.event_id = $3 and t.seat_no = p.seat_no
         where p.plan_revision_id = $1 and p.seat_no = any($2) and p.companion_of is not null
           and (t.flags is null or t.flags & 2 <> 0) and not p.companion_of = any($2)
         order by p.seat_no",
        order.plan_revision_id,
        &left,
        order.event_id
    )
    .fetch_all(&mut **tx)
    .await?;
    if !alone.is_empty() {
        return Err(GiveUpError::CompanionAlone(alone));
    }
    let back_minor = parts.total();
    let seats_back: i64 = going.iter().map(|s| s.back_minor).sum();
    let seats_paid: i64 = going.iter().map(|s| s.amount_minor).sum();
    Ok(CancellationOffer {
        seats: going,
        fees_back_minor: back_minor - seats_back,
        back_minor,
        kept_minor: seats_paid - seats_back,
        currency: order.currency,
        until,
    })
}
