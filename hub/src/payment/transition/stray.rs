//! A refund of an attempt that is decided: the attempt's state stays as it is.

use chrono::TimeDelta;

use super::{Details, Flow, pause, supersede};
use crate::{
    clock,
    db::Tx,
    payment::{
        machine::{self, AfterDecision, RefundState, Seen},
        record::{RefundRow, Row, has_refund_to_ask_for, has_refund_under_way, strays, update_refund},
    },
};

/// When it has arrived or failed, the next one is seen to at once; one on its way is asked about from time to time.
pub async fn stray_refund(
    tx: &mut Tx,
    row: &Row,
    refund: &RefundRow,
    seen: Seen,
    details: &Details,
) -> sqlx::Result<Flow> {
    let Some(news) = details.news(seen) else {
        return pause(tx, row, Some(details.wait.unwrap_or_default().max(row.patience())), true).await;
    };
    let state = update_refund(tx, refund, &news).await?;
    supersede(tx, row).await?; // whoever has asked before this says nothing new
    if state == RefundState::Failed {
        tracing::error!(attempt.id = %row.id, refund.id = %refund.id, "money that belongs to a buyer could not be given back");
    }
    if has_refund_to_ask_for(tx, row.id).await? {
        settle_doubt(tx, row, true).await?;
        return Ok(Flow::On);
    }
    if has_refund_under_way(tx, row.id).await? {
        return pause(tx, row, Some(details.wait.unwrap_or_default().max(row.patience())), true).await;
    }
    settle_doubt(tx, row, false).await?;
    if state == RefundState::Failed && row.state.is_to_be_tidied() {
        let now = clock::now(tx).await?;
        // It is tried again by itself, now or later.
        match machine::after_decision(&strays(tx, row.id, now).await?) {
            AfterDecision::GiveBack => return pause(tx, row, Some(TimeDelta::zero()), false).await,
            AfterDecision::Wait(wait) => return pause(tx, row, Some(wait), false).await,
            AfterDecision::Leave => {}
        }
    }
    Ok(Flow::Stop)
}

/// What was in doubt of a decided attempt is known. `more`: and there is another thing to see to.
async fn settle_doubt(tx: &mut Tx, row: &Row, more: bool) -> sqlx::Result<()> {
    let now = clock::now(tx).await?;
    sqlx::query!(
        "update attempt set tries = 0, unknown_since = null, updated_at = $2::timestamptz,
                leased_until = case when $3 then leased_until end,
                next_run_at = case when $3 or pokes <> $4 then $2 end
         where id = $1",
        row.id,
        now,
        more,
        row.pokes
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
