//! Orders as their buyers see them. The attempt to pay is filled in by `payment`, which stands below, and what is
//! printed for a name that no font has by whoever has the press.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::orders::{
    AttemptRefund, AttemptRefundState, CancelReason, Order, OrderLine, OrderState, OrderTax, Ticket, TicketState,
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::catalog::{
    event::{RefundPolicy, tax},
    layout::flag,
};

/// Most orders that a list shows, the latest first.
const ORDERS_MAX: i64 = 100;

/// Whose orders are looked at.
#[derive(Debug, Clone, Copy)]
pub enum Whose {
    /// One order of this buyer.
    BuyersOne { buyer_id: Uuid, order_id: Uuid },
    /// All of this buyer's, the cancelled ones too: an order that vanished would leave its buyer asking
    /// whether it was charged. Not those that another took the place of, which is the one that counts.
    Buyers(Uuid),
    /// One order, whoever's: for staff.
    One(Uuid),
}

/// The orders, the latest first, and the database's clock.
pub async fn orders(pool: &PgPool, whose: Whose, pay_margin_s: i64) -> sqlx::Result<(Vec<Order>, DateTime<Utc>)> {
    let (buyer_id, order_id) = match whose {
        Whose::BuyersOne { buyer_id, order_id } => (Some(buyer_id), Some(order_id)),
        Whose::Buyers(buyer_id) => (Some(buyer_id), None),
        Whose::One(order_id) => (None, Some(order_id)),
    };
    let now = sqlx::query_scalar!(r#"select db_clock() as "now!""#).fetch_one(pool).await?;
    let rows = sqlx::query!(
        r#"select o.id, o.code, o.event_id, e.slug as event_slug, e.name as event_name, v.name as venue, v.city,
                  e.starts_local, e.starts_at, e.time_zone, o.state, o.currency, o.total_minor, o.credit_minor, order_due_minor(o) as "due_minor!", o.refund_policy, o.created_at, o.confirmed_at,
                  (select w.to_order from order_swap w where w.from_order = o.id and w.done_at is not null
                     and not exists (select from order_line l where l.order_id = o.id and l.state = 'sold' and l.seat_no is not null)
                   order by w.done_at desc limit 1) as exchanged_for,
                  o.cancel_reason, o.payment_due_until, o.tax_name,
                  (select case when bool_or(f.state = 'failed' and f.replaced_by is null) then 'failed'
                               when bool_or(f.state in ('pending', 'accepted')) then 'on_its_way' end
                   from refund f join tender t on t.id = f.tender_id where t.order_id = o.id) as refund_state,
                  h.held_until, h.state as hold_state
           from "order" o join event e on e.id = o.event_id
           join plan_revision r on r.id = e.plan_revision_id join plan p on p.id = r.plan_id join venue v on v.id = p.venue_id
           join hold h on h.id = o.hold_id
           where ($1::uuid is null or o.buyer_id = $1) and ($2::uuid is null or o.id = $2)
             and ($2 is not null or o.state <> 'cancelled' or o.cancel_reason <> 'replaced')
           order by o.created_at desc limit $3"#,
        buyer_id,
        order_id,
        ORDERS_MAX
    )
    .fetch_all(pool)
    .await?;
    let ids: Vec<Uuid> = rows.iter().map(|r| r.id).collect();
    let lines = sqlx::query!(
        r#"select l.order_id, l.seat_no, l.ticket_type, l.fee_code, l.amount_minor,
                  l.tax_milli_percent, l.tax_minor, l.tax_refunded_minor, l.refunded_minor,
                  p.section as "section?", p.row_label as "row?", p.seat_label as "number?",
                  (p.flags & $2) <> 0 as "standing?"
           from order_line l join event e on e.id = l.event_id
           left join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = l.seat_no
           where l.order_id = any($1) and l.state <> 'exchanged' order by l.seat_no nulls last, l.fee_code"#,
        &ids,
        flag::STANDING
    )
    .fetch_all(pool)
    .await?;
    let tickets = sqlx::query!(
        r#"select t.id, t.order_id, t.seat_no, case when t.state = 'valid' then t.code end as code, t.state,
                  p.section, p.row_label, p.seat_label, seat_flags(p.flags, s.flags) as "flags!", s.note as "note?"
         from ticket t join event e on e.id = t.event_id
         join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = t.seat_no
         left join seat_trait s on s.event_id = t.event_id and s.seat_no = t.seat_no
         where t.order_id = any($1) order by t.seat_no, t.created_at"#,
        &ids
    )
    .fetch_all(pool)
    .await?;
    let orders = rows
        .into_iter()
        .map(|o| {
            let until = match o.state.as_str() {
                "open" if o.hold_state == "live" => Some(o.held_until),
                "payment_due" => o.payment_due_until,
                _ => None,
            };
            Order {
                id: o.id,
                code: o.code,
                event_id: o.event_id,
                event_slug: o.event_slug,
                event_name: o.event_name,
                venue: o.venue,
                city: o.city,
                starts_local: o.starts_local,
                starts_at: o.starts_at,
                time_zone: o.time_zone,
                state: state(&o.state),
                currency: o.currency,
                total_minor: o.total_minor,
                credit_minor: o.credit_minor,
                due_minor: if matches!(o.state.as_str(), "open" | "payment_due") { o.due_minor } else { 0 },
                exchanged_for: o.exchanged_for,
                name_on_tickets: None,
                refund_terms: RefundPolicy::read(o.refund_policy).map(|policy| policy.terms(o.starts_at)),
                refunded: Some(lines.iter().filter(|l| l.order_id == o.id).map(|l| l.refunded_minor).sum())
                    .filter(|sum| *sum > 0)
                    .map(|amount_minor| AttemptRefund {
                        amount_minor,
                        state: match o.refund_state.as_deref() {
                            Some("failed") => AttemptRefundState::Failed,
                            Some(_) => AttemptRefundState::OnItsWay,
                            None => AttemptRefundState::Arrived,
                        },
                    }),
                lines: lines
                    .iter()
                    .filter(|l| l.order_id == o.id)
                    .map(|l| OrderLine {
                        seat_no: l.seat_no,
                        section: l.section.clone(),
                        row: l.row.clone(),
                        number: l.number.clone(),
                        standing: l.standing.unwrap_or_default(),
                        ticket_type: l.ticket_type.clone(),
                        fee_code: l.fee_code.clone(),
                        amount_minor: l.amount_minor,
                        tax_minor: l.tax_minor,
                    })
                    .collect(),
                tax: lines.iter().find(|l| l.order_id == o.id).and_then(|l| {
                    let tax = tax::shown(o.tax_name, l.tax_milli_percent)?;
                    let own = || lines.iter().filter(|l| l.order_id == o.id);
                    Some(OrderTax {
                        name: tax.name,
                        percent: tax.percent,
                        amount_minor: own().filter_map(|l| l.tax_minor).sum(),
                        refunded_minor: own().filter_map(|l| l.tax_refunded_minor).sum(),
                    })
                }),
                held_until: until,
                pay_until: until.map(|u| u - TimeDelta::seconds(pay_margin_s)),
                attempt: None,
                tickets: tickets
                    .iter()
                    .filter(|t| t.order_id == o.id)
                    .map(|t| Ticket {
                        id: t.id,
                        seat_no: t.seat_no,
                        section: t.section.clone(),
                        row: t.row_label.clone(),
                        number: t.seat_label.clone(),
                        standing: t.flags & flag::STANDING != 0,
                        traits: flag::traits(t.flags),
                        note: t.note.clone(),
                        code: t.code.clone(),
                        state: match t.state.as_str() {
                            "valid" => TicketState::Valid,
                            "pending" => TicketState::Pending,
                            _ => TicketState::Void,
                        },
                    })
                    .collect(),
                created_at: o.created_at,
                confirmed_at: o.confirmed_at,
                cancel_reason: o.cancel_reason.as_deref().and_then(cancel_reason),
            }
        })
        .collect();
    Ok((orders, now))
}

fn cancel_reason(name: &str) -> Option<CancelReason> {
    match name {
        "time_over" => Some(CancelReason::TimeOver),
        "buyer" => Some(CancelReason::Buyer),
        "replaced" => Some(CancelReason::Replaced),
        "not_paid" => Some(CancelReason::NotPaid),
        "refunded" => Some(CancelReason::Refunded),
        "called_off" => Some(CancelReason::CalledOff),
        _ => None, // a later version's
    }
}

fn state(name: &str) -> OrderState {
    match name {
        "open" => OrderState::Open,
        "confirmed" => OrderState::Confirmed,
        "payment_due" => OrderState::PaymentDue,
        _ => OrderState::Cancelled,
    }
}
