//! What else is true once an attempt is where it went: its hold, its order, its tickets, its refund, the gate.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Details, Foreign};
use crate::{
    db::Tx,
    mail,
    payment::{
        gate,
        machine::{Seen, State},
        provider::money,
        reconcile::finding::{self, Class, Found},
        record::{IN_ANOTHER_CURRENCY, Row, new_refund, update_refund},
    },
    ticket,
};

/// How long a buyer may pay again after a capture failed.
const PAYMENT_DUE: TimeDelta = TimeDelta::minutes(30);
/// What else is true once the attempt is there.
pub async fn consequences(
    tx: &mut Tx,
    row: &Row,
    seen: Seen,
    to: State,
    details: &Details,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    if seen == Seen::WrongAmount {
        gate::close(tx, "wrong_amount", &format!("attempt {}", row.id), now).await?;
    }
    match to {
        State::Declined | State::Voided => give_back(tx, row, now).await?,
        State::RefundPending => {
            give_back(tx, row, now).await?;
            let amount = details.captured_minor.unwrap_or(row.amount_minor);
            let reason = if details.foreign.is_some() {
                note_difference(tx, row, details, now).await?;
                IN_ANOTHER_CURRENCY
            } else {
                "captured_without_order"
            };
            new_refund(tx, row, amount, reason, now).await?;
        }
        State::RefundAccepted | State::Refunded | State::RefundFailed => {
            if let (Some(refund), Some(news)) = (&row.refund, details.news(seen)) {
                update_refund(tx, refund, &news).await?;
            }
            if to == State::RefundFailed {
                tracing::error!(attempt.id = %row.id, "money that belongs to a buyer could not be given back");
            }
        }
        State::Captured => {
            note_difference(tx, row, details, now).await?;
            ticket::make_valid(tx, row.order_id).await?;
            mail::enqueue(tx, mail::Kind::Tickets, row.order_id, "").await?;
            if row.state == State::CaptureFailed {
                sqlx::query!(
                    r#"update "order" set state = 'confirmed', payment_due_until = null
                       where id = $1 and state = 'payment_due'"#,
                    row.order_id
                )
                .execute(&mut **tx)
                .await?;
            }
        }
        State::CaptureFailed => {
            tracing::error!(attempt.id = %row.id, order.id = %row.order_id, "seats were sold and the money can't be had");
            sqlx::query!(
                r#"update "order" set state = 'payment_due', payment_due_until = $2 where id = $1 and state = 'confirmed'"#,
                row.order_id,
                now + PAYMENT_DUE
            )
            .execute(&mut **tx)
            .await?;
            mail::enqueue(tx, mail::Kind::PaymentDue, row.order_id, &row.id.to_string()).await?;
        }
        _ => {}
    }
    Ok(())
}

/// Another amount, or in another currency, was taken than was asked for (somebody took it on the provider's pages). It is written as what it
/// is; no new payments begin, and it is on the list, until a person has looked. The buyer keeps what they bought.
async fn note_difference(tx: &mut Tx, row: &Row, details: &Details, now: DateTime<Utc>) -> sqlx::Result<()> {
    let taken = details.captured_minor.unwrap_or_default();
    if taken == row.amount_minor {
        return Ok(());
    }
    let (amount, currency, said) = match &details.foreign {
        Some(Foreign { amount, currency }) => (Some(*amount), currency.clone(), format!("{amount} {currency}")),
        None => (money::to_provider(&row.currency, taken).ok(), row.currency.to_ascii_lowercase(), taken.to_string()),
    };
    tracing::error!(attempt.id = %row.id, taken = said, asked_minor = row.amount_minor, "another amount was taken");
    let pi_id = details.pi_id.as_ref().or(row.pi_id.as_ref());
    let found = Found {
        class: Class::M3,
        subject: format!("intent:{}", pi_id.map_or("unknown", |id| id)),
        order_id: Some(row.order_id),
        attempt_id: Some(row.id),
        pi_id: pi_id.cloned(),
        amount,
        currency: Some(currency),
        detail: format!("captured {said}; asked for {} {}", row.amount_minor, row.currency),
    };
    finding::keep(tx, &found, now).await?;
    gate::close(tx, "amount_differs", &format!("{}: {}", found.subject, found.detail), now).await
}

/// The hold is its buyer's again, for as long as it lasts; an order that nothing can come of is closed.
async fn give_back(tx: &mut Tx, row: &Row, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update hold set attempt_id = null, version = version + 1 where id = $1 and attempt_id = $2",
        row.hold_id,
        row.id
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        r#"update "order" o set state = 'cancelled',
                  cancel_reason = case
                      when exists (select from event e where e.id = o.event_id and e.sale_state = 'cancelled') then 'called_off'
                      when o.cancel_requested then 'buyer' else 'time_over' end
           where o.id = $1 and o.state = 'open'
           and (o.cancel_requested
                or exists (select from hold h where h.id = o.hold_id and (h.state <> 'live' or h.held_until <= $2)))"#,
        row.order_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
