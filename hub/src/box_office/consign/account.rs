//! What a partner owes for an event, what it pays of that, and what the house pays back.
//!
//! Invariants
//! - What is owed is summed from orders, what went back of them, and payments: there is no balance to fall out of step.
//! - Nobody pays more than is owed, in either direction; cash lies in a drawer or came out of it, as a move of its shift.

use fullhouse_protocol::consign::{PartnerPayment, PartnerPaymentRequest, PartnerPays, Statement, StatementOrder};
use sqlx::PgPool;
use uuid::Uuid;

use super::{By, ConsignError, partners};
use crate::{
    auth::Deed,
    box_office::{id_of, shift},
    clock,
    db::{self, Tx},
};

/// Who pays whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payer {
    Partner,
    /// Back, of what the partner paid too much.
    House,
}

impl Payer {
    /// As a partner's account has it: positive is from the partner to the house.
    fn signed(self, amount_minor: i64) -> i64 {
        match self {
            Self::Partner => amount_minor,
            Self::House => -amount_minor,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Partner => "partner_pay",
            Self::House => "partner_repay",
        }
    }
}

/// A payment on a partner's account.
#[derive(Debug, Clone)]
pub struct Pay {
    pub event_id: i64,
    pub partner_id: Uuid,
    pub payer: Payer,
    pub asked: PartnerPaymentRequest,
}

/// Writes a payment down. The same key again finds the same one. Answers with the statement after it.
pub async fn pay(pool: PgPool, by: By, pay: Pay) -> Result<Statement, ConsignError> {
    let id = id_of("partner payment", by.terminal_id, &by.key);
    db::write(async move {
        let mut tx = db::event_tx(&pool, pay.event_id).await?;
        by.actor.acts(&mut tx).await?;
        let asked = &pay.asked;
        let before = sqlx::query!(
            "select event_id, partner_id, amount_minor, way, reference from partner_payment where id = $1",
            id
        )
        .fetch_optional(&mut *tx)
        .await?;
        let stands = statement_in(&mut tx, pay.event_id, pay.partner_id).await?;
        if let Some(before) = before {
            let same = (before.event_id, before.partner_id, before.amount_minor)
                == (pay.event_id, pay.partner_id, pay.payer.signed(asked.amount_minor))
                && (before.way.as_str(), &before.reference) == (asked.way.name(), &asked.reference);
            return if same { Ok(stands) } else { Err(ConsignError::KeyReused) };
        }
        if asked.amount_minor > pay.payer.signed(stands.owed_minor) {
            return Err(ConsignError::OwesLess { owed_minor: stands.owed_minor });
        }
        record(&mut tx, id, &by, &pay, &stands).await?;
        let stands = statement_in(&mut tx, pay.event_id, pay.partner_id).await?;
        tx.commit().await?;
        Ok(stands)
    })
    .await
}

async fn record(tx: &mut Tx, id: Uuid, by: &By, pay: &Pay, stands: &Statement) -> Result<(), ConsignError> {
    let (asked, partner) = (&pay.asked, &stands.partner);
    let now = clock::now(tx).await?;
    let move_id = match asked.way {
        PartnerPays::Transfer => None,
        PartnerPays::Cash => Some(move_cash(tx, id, by, pay, stands).await?),
    };
    sqlx::query!(
        "insert into partner_payment (id, partner_id, event_id, amount_minor, currency, way, reference, shift_move_id, made_by,
                                      terminal_id, made_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        id,
        pay.partner_id,
        pay.event_id,
        pay.payer.signed(asked.amount_minor),
        stands.currency,
        asked.way.name(),
        asked.reference,
        move_id,
        by.actor.name(),
        by.terminal_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    let detail = format!(
        "{} {}: {} {} by {}",
        partner.code,
        partner.name,
        asked.amount_minor,
        stands.currency,
        asked.way.name()
    );
    let deed = Deed { verb: pay.payer.verb(), event_id: Some(pay.event_id), detail: &detail, reason: &asked.reference };
    Ok(by.actor.writes(tx, deed, now).await?)
}

/// The open shift's row is held until the payment is written: the shift closes with it, or before it.
async fn move_cash(tx: &mut Tx, id: Uuid, by: &By, pay: &Pay, stands: &Statement) -> Result<i64, ConsignError> {
    let amount = pay.asked.amount_minor;
    let kind = match pay.payer {
        Payer::Partner => "pay_in",
        Payer::House => {
            shift::take_out(tx, by.terminal_id, amount).await?;
            "pay_out"
        }
    };
    let shift_id = sqlx::query_scalar!("select drawer_of($1, true, $2)", by.terminal_id, stands.currency)
        .fetch_one(&mut **tx)
        .await?
        .ok_or(ConsignError::ShiftRequired)?; // where nobody signs in there is no drawer
    let why = format!("{} {}: {}", stands.partner.code, stands.partner.name, pay.asked.reference);
    let move_id = sqlx::query_scalar!(
        "insert into shift_move (shift_id, key, kind, amount_minor, reason, staff_id, made_at)
         values ($1, $2, $3, $4, left($5, 500), acting_staff(), db_clock()) returning id",
        shift_id,
        id.to_string(),
        kind,
        amount,
        why
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(move_id)
}

/// How a partner and an event stand.
pub async fn statement(pool: &PgPool, event_id: i64, partner_id: Uuid) -> Result<Statement, ConsignError> {
    let mut tx = pool.begin().await?;
    // One snapshot: its sums are compared with one another.
    sqlx::query!("set transaction isolation level repeatable read, read only").execute(&mut *tx).await?;
    let stands = statement_in(&mut tx, event_id, partner_id).await?;
    tx.rollback().await?;
    Ok(stands)
}

async fn statement_in(tx: &mut Tx, event_id: i64, partner_id: Uuid) -> Result<Statement, ConsignError> {
    let event = sqlx::query!("select name, currency from event where id = $1", event_id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(ConsignError::EventUnknown)?;
    let partner = partners::one(tx, partner_id).await?.ok_or(ConsignError::PartnerUnknown)?;
    let seats = sqlx::query!(
        r#"select count(*) as "consigned!", count(*) filter (where s.state = 'sold') as "sold!",
                  count(*) filter (where s.state = 'out' and c.until > k.now) as "open!"
           from consignment c join consignment_seat s on s.consignment_id = c.id cross join (select db_clock() as now) k
           where c.event_id = $1 and c.partner_id = $2"#,
        event_id,
        partner_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let orders = orders(tx, event_id, partner_id).await?;
    let payments = payments(tx, event_id, partner_id).await?;
    let sold_minor: i64 = orders.iter().map(|o| o.amount_minor).sum();
    let back_minor: i64 = orders.iter().map(|o| o.back_minor).sum();
    let paid_minor: i64 = payments.iter().map(|p| p.amount_minor).sum();
    Ok(Statement {
        event_id,
        event_name: event.name,
        partner,
        currency: event.currency,
        consigned_seats: seats.consigned,
        open_seats: seats.open,
        sold_seats: seats.sold,
        returned_seats: seats.consigned - seats.open - seats.sold,
        sold_minor,
        back_minor,
        paid_minor,
        owed_minor: sold_minor - back_minor - paid_minor,
        orders,
        payments,
    })
}

async fn orders(tx: &mut Tx, event_id: i64, partner_id: Uuid) -> sqlx::Result<Vec<StatementOrder>> {
    sqlx::query_as!(
        StatementOrder,
        r#"select o.id as order_id, o.code, s.sold_at, t.amount_minor,
                  array(select seat_no from consignment_seat x where x.consignment_id = c.id and x.order_id = o.id order by 1) as "seats!",
                  coalesce((select sum(r.amount_minor) from refund r where r.kind = 'account' and r.state <> 'failed'
                      and r.tender_id = t.id), 0)::bigint as "back_minor!"
           from consignment c join consignment_sale s on s.consignment_id = c.id join "order" o on o.id = s.order_id
           join tender t on t.order_id = o.id and t.kind = 'account'
           where c.event_id = $1 and c.partner_id = $2 order by s.sold_at desc, o.id"#,
        event_id,
        partner_id
    )
    .fetch_all(&mut **tx)
    .await
}

async fn payments(tx: &mut Tx, event_id: i64, partner_id: Uuid) -> sqlx::Result<Vec<PartnerPayment>> {
    sqlx::query_as!(
        PartnerPayment,
        "select id as payment_id, amount_minor, way, reference, made_by, made_at from partner_payment
         where event_id = $1 and partner_id = $2 order by made_at desc, id",
        event_id,
        partner_id
    )
    .fetch_all(&mut **tx)
    .await
}
