//! An attempt as its buyer sees it.
//!
//! Invariants
//! - Nobody is told more than is certain: "not charged" and "declined" are said of final states only.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use fullhouse_protocol::orders::{Attempt, AttemptPhase, AttemptRefund, AttemptRefundState, CardShown};
use sqlx::PgPool;
use uuid::Uuid;

use crate::payment::machine::State;

/// As many of a buyer's attempts as a list of their orders may need.
const ATTEMPTS_MAX: i64 = 300;

/// An attempt as it is stored, for its buyer to see.
struct Shown {
    order_id: Uuid,
    id: Uuid,
    state: String,
    action_url: Option<String>,
    decline_code: Option<String>,
    outcome: Option<String>,
    hold_expires_at: DateTime<Utc>,
    /// Of the latest refund of money that nothing was sold for.
    back_minor: Option<i64>,
    back_state: Option<String>,
    card_brand: Option<String>,
    card_last4: Option<String>,
}

/// An order's latest attempt, as its buyer sees it. Read it before the order itself: an attempt only
/// moves forward, so the order is then never behind what its attempt says.
pub async fn latest(pool: &PgPool, order_id: Uuid) -> sqlx::Result<Option<Attempt>> {
    let found = sqlx::query_as!(
        Shown,
        r#"select a.order_id, a.id, a.state, a.action_url, a.decline_code, a.outcome, a.hold_expires_at, a.card_brand, a.card_last4,
                  r.amount_minor as "back_minor?", r.state as "back_state?"
           from attempt a left join lateral (
               select r.amount_minor, coalesce(instead.state, r.state) as state
               from refund r left join refund instead on instead.id = r.replaced_by
               where r.attempt_id = a.id and r.request_id is null and r.reason like 'captured\_%'
               order by r.created_at desc, r.id desc limit 1) r on true
           where a.order_id = $1 order by a.created_at desc, a.id desc limit 1"#,
        order_id
    )
    .fetch_optional(pool)
    .await?;
    Ok(found.map(Shown::show))
}

/// The latest attempts of a buyer, one an order.
pub async fn latest_of(pool: &PgPool, buyer_id: Uuid) -> sqlx::Result<HashMap<Uuid, Attempt>> {
    let rows = sqlx::query_as!(
        Shown,
        r#"select a.order_id, a.id, a.state, a.action_url, a.decline_code, a.outcome, a.hold_expires_at, a.card_brand, a.card_last4,
                  r.amount_minor as "back_minor?", r.state as "back_state?"
           from "order" o join attempt a on a.order_id = o.id left join lateral (
               select r.amount_minor, coalesce(instead.state, r.state) as state
               from refund r left join refund instead on instead.id = r.replaced_by
               where r.attempt_id = a.id and r.request_id is null and r.reason like 'captured\_%'
               order by r.created_at desc, r.id desc limit 1) r on true
           where o.buyer_id = $1 order by a.created_at desc, a.id desc limit $2"#,
        buyer_id,
        ATTEMPTS_MAX
    )
    .fetch_all(pool)
    .await?;
    // The latest comes last, and stays.
    Ok(rows.into_iter().rev().map(|row| (row.order_id, row.show())).collect())
}

impl Shown {
    fn show(self) -> Attempt {
        let phase = State::from_name(&self.state).map_or(AttemptPhase::AskingBank, phase);
        Attempt {
            id: self.id,
            phase,
            action_url: self.action_url.filter(|_| phase == AttemptPhase::ActionRequired),
            decline_code: self.decline_code,
            outcome: self.outcome,
            seats_until: self.hold_expires_at,
            refund: self.back_minor.map(|amount_minor| AttemptRefund {
                amount_minor,
                state: match self.back_state.as_deref() {
                    Some("succeeded") => AttemptRefundState::Arrived,
                    Some("failed") => AttemptRefundState::Failed,
                    _ => AttemptRefundState::OnItsWay,
                },
            }),
            card: self.card_brand.zip(self.card_last4).map(|(brand, last4)| CardShown { brand, last4 }),
            state: self.state,
        }
    }
}

/// What a state means to the buyer. Never more certain than the state is.
pub fn phase(state: State) -> AttemptPhase {
    match state {
        State::New
        | State::Ready
        | State::Confirming
        | State::Authorised
        | State::CapturePending
        | State::CaptureUnknown
        | State::VoidPending => AttemptPhase::Working,
        State::ActionRequired => AttemptPhase::ActionRequired,
        State::AuthUnknown | State::VoidUnknown => AttemptPhase::AskingBank,
        State::Declined => AttemptPhase::Declined,
        State::Voided => AttemptPhase::NotCharged,
        State::Captured => AttemptPhase::Paid,
        State::CaptureFailed | State::RefundPending | State::RefundAccepted | State::Refunded | State::RefundFailed => {
            AttemptPhase::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_that_nothing_was_charged_before_that_is_certain() {
        for state in State::ALL {
            let certain = matches!(phase(*state), AttemptPhase::NotCharged | AttemptPhase::Declined);
            assert!(!certain || state.is_final(), "{state:?}");
        }
    }
}
