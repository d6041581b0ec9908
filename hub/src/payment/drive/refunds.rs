//! Money that goes back: asked for, looked for, and what a decided attempt still has.
//!
//! Invariants
//! - A refund is asked for under another key, or called failed, only after it was looked for, and only while nobody
//!   has sent anything since.
//! - A decided attempt comes to rest only once the provider has said that nothing of it can be confirmed or captured.

use super::{Flow, One, written};
use crate::{
    clock,
    db::Tx,
    payment::{
        machine::{self, AfterDecision, CallState, Key, Missing, Said, Seen, State},
        provider::{Answer, Call, IntentStatus, Op, Outcome, Page, PaymentIntent, Refund, RefundStatus},
        record::{self, Written},
        transition::{self, Details},
    },
};

impl One<'_> {
    /// The attempt is decided. Whatever the provider still has of it is let go, however often that takes: later and
    /// later, and from the first refusal on it is on people's list. Money that came late goes back.
    pub(super) async fn tidy(&self, intent: &PaymentIntent, written: Written) -> anyhow::Result<Flow> {
        let row = self.row;
        let details = self.details(intent);
        let order_is_due = row.state == State::CaptureFailed;
        if intent.status == IntentStatus::Succeeded && order_is_due && self.may_heal().await? {
            return Ok(transition::settle(self.pool, row, Seen::Captured, details, Some(written)).await?);
        }
        let cancel = self.compose(Op::Cancel).await?;
        let mut tx = self.pool.begin().await?;
        let fresh = transition::lock(&mut tx, row).await?;
        record::write_answer(&mut tx, &written).await?;
        let flow = match intent.status {
            _ if !fresh => Flow::Stop,
            IntentStatus::Canceled => transition::pause(&mut tx, row, None, false).await?,
            IntentStatus::Succeeded => self.give_late_money_back(&mut tx, &details).await?,
            IntentStatus::Processing | IntentStatus::Other(_) => {
                transition::pause(&mut tx, row, Some(row.patience()), true).await?
            }
            _ => {
                let now = clock::now(&mut tx).await?;
                record::write_call(&mut tx, row.id, None, &cancel, now).await?;
                // Whoever has looked before this would use up another key, or put to rest what is about to be sent.
                transition::supersede(&mut tx, row).await?;
                Flow::On
            }
        };
        tx.commit().await?;
        Ok(flow)
    }

    /// Money that was taken by an attempt that is decided.
    async fn give_late_money_back(&self, tx: &mut Tx, details: &Details) -> sqlx::Result<Flow> {
        let row = self.row;
        let now = clock::now(tx).await?;
        match machine::after_decision(&record::strays(tx, row.id, now).await?) {
            AfterDecision::GiveBack => {
                tracing::error!(attempt.id = %row.id, "money was taken by an attempt that was decided; it goes back");
                let amount = details.captured_minor.unwrap_or(row.amount_minor);
                let reason =
                    details.foreign.as_ref().map_or("captured_after_decision", |_| record::IN_ANOTHER_CURRENCY);
                let refund_id = record::new_refund(tx, row, amount, reason, now).await?;
                record::replace_failed(tx, row.id, refund_id).await?;
                transition::supersede(tx, row).await?;
                Ok(Flow::On)
            }
            AfterDecision::Wait(wait) => transition::pause(tx, row, Some(wait), false).await,
            // One that failed too often is on people's list.
            AfterDecision::Leave => transition::pause(tx, row, None, false).await,
        }
    }

    /// The order is still due, nothing else pays for it, and the money is not on its way back.
    async fn may_heal(&self) -> sqlx::Result<bool> {
        sqlx::query_scalar!(
            r#"select (o.state = 'payment_due' and not exists (
                   select from attempt a where a.order_id = o.id and a.id <> $2
                     and a.state not in ('declined', 'voided', 'refunded', 'capture_failed'))
               and not exists (select from refund r where r.attempt_id = $2 and r.state <> 'failed')) as "may!"
               from "order" o where o.id = $1"#,
            self.row.order_id,
            self.row.id
        )
        .fetch_one(self.pool)
        .await
    }

    pub(super) fn judge_refund(&self, answer: &Answer) -> (Seen, Details, CallState) {
        match &answer.outcome {
            Outcome::Done(_) => match answer.object::<Refund>() {
                Some(refund) => (refund_seen(&refund.status), refund_details(&refund), CallState::Answered),
                None => (Seen::Doubt, Details::default(), CallState::Unknown),
            },
            // It is asked for again.
            Outcome::NotServed(refusal) => {
                self.note_not_served(Op::Refund, refusal);
                (Seen::Doubt, Details::default(), CallState::Unknown)
            }
            Outcome::Declined(refusal) | Outcome::Rejected(refusal) => {
                tracing::error!(attempt.id = %self.row.id, call.code = refusal.code, "the provider refused a refund");
                (Seen::Refused, Details::default(), CallState::Answered) // an earlier request may have arrived
            }
            Outcome::NotSent if self.was_never_sent() => (Seen::Again, Details::default(), CallState::Prepared),
            Outcome::NotSent | Outcome::Unknown => (Seen::Doubt, Details::default(), CallState::Unknown),
        }
    }

    /// Finds our refund among the intent's: a key that was forgotten would refund twice.
    pub(super) async fn look_for_refunds(&self) -> anyhow::Result<Flow> {
        let row = self.row;
        let (Some(pi_id), Some(refund)) = (&row.pi_id, &row.refund) else { anyhow::bail!("no refund to look for") };
        let call = Call::list_refunds(pi_id);
        let call_id = record::note_read(self.pool, row.id, &call, self.payments.lease()).await?;
        let answer = self.client.send(&call).await;
        let page: Option<Page> = answer.object();
        let state = if page.is_some() { CallState::Answered } else { CallState::Unknown };
        let written = written(call_id, call.op, state, &answer);
        let ours = page.as_ref().and_then(|page| {
            let mut refunds = page.data.iter().filter_map(|r| serde_json::from_value::<Refund>(r.clone()).ok());
            refunds.find(|r| {
                r.metadata.get("refund").is_some_and(|id| *id == refund.id.to_string())
                    || refund.provider_id.as_ref() == Some(&r.id)
            })
        });
        if let Some(ours) = ours {
            let details = Details { said: Some(Said::Look), ..refund_details(&ours) };
            return Ok(transition::settle(self.pool, row, refund_seen(&ours.status), details, Some(written)).await?);
        }
        // Only a list that was read to its end says that it is not there.
        let read_whole = page.is_some_and(|page| !page.has_more);
        match machine::missing(&row.facts()) {
            Missing::GiveUp if read_whole => self.give_up(Some(written)).await,
            Missing::AskAgain(key) if read_whole => self.ask_again(key, written).await,
            _ => Ok(transition::settle(self.pool, row, Seen::Doubt, Details::default(), Some(written)).await?),
        }
    }

    /// The provider refuses it, and nothing that was sent has arrived: people see to it.
    pub(super) async fn give_up(&self, written: Option<Written>) -> anyhow::Result<Flow> {
        let failure = self.row.call.as_ref().and_then(|call| call.refusal.clone());
        let failure = failure.or_else(|| Some("refused".to_owned()));
        let details = Details { failure, said: Some(Said::Refusal), ..Details::default() };
        Ok(transition::settle(self.pool, self.row, Seen::RefundFailed, details, written).await?)
    }

    /// The provider does not have it: it is asked for once more, when it was waited for a little.
    async fn ask_again(&self, key: Key, written: Written) -> anyhow::Result<Flow> {
        let row = self.row;
        let next = match key {
            Key::Next => Some(self.compose(Op::Refund).await?),
            Key::Same => None,
        };
        let mut tx = self.pool.begin().await?;
        let fresh = transition::lock(&mut tx, row).await?;
        record::write_answer(&mut tx, &written).await?;
        if let (true, Some(read)) = (fresh, &row.call)
            && record::is_as_read(&mut tx, read).await?
        {
            match &next {
                Some(next) => {
                    let now = clock::now(&mut tx).await?;
                    record::write_call(&mut tx, row.id, row.refund.as_ref().map(|r| r.id), next, now).await?;
                    transition::supersede(&mut tx, row).await?; // nobody sends under the old key any more
                }
                None => record::renew_call(&mut tx, read).await?,
            }
            transition::pause(&mut tx, row, Some(row.patience()), true).await?;
        }
        tx.commit().await?;
        Ok(Flow::Stop)
    }
}

fn refund_seen(status: &RefundStatus) -> Seen {
    match status {
        RefundStatus::Succeeded => Seen::RefundDone,
        RefundStatus::Failed | RefundStatus::Canceled => Seen::RefundFailed,
        RefundStatus::Pending | RefundStatus::RequiresAction | RefundStatus::Other(_) => Seen::RefundAccepted,
    }
}

fn refund_details(refund: &Refund) -> Details {
    let failure = (refund_seen(&refund.status) == Seen::RefundFailed)
        .then(|| refund.failure_reason.clone().unwrap_or_else(|| "failed".to_owned()));
    Details { refund_id: Some(refund.id.clone()), failure, ..Details::default() }
}
