//! One attempt, driven as far as it goes now: plan, write down, ask, write down, and again.
//!
//! Invariants
//! - A call is written down and committed before it is made, and is repeated byte for byte.
//! - No database lock is held across a call.
//! - What is written after a call names the version that it was made for.
//! - A call that is written down is a new version: whoever has read the attempt before, and lost its lease since, writes
//!   down no other.

mod refunds; // money that goes back

use chrono::TimeDelta;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    Payments, gate,
    machine::{self, CallState, Key, Seen, Step},
    provider::{
        Answer, Back, Call, Client, IntentStatus, NewIntent, Op, Outcome, PaymentIntent, Reader, Refusal, money,
    },
    record::{self, Row, Written},
    transition::{self, Details, Flow, Foreign},
};
use crate::{
    checkout::{self, ConfirmError, Tendered},
    clock, db,
};

/// An attempt that needs more steps than this at once is taken up again later.
const STEPS_MAX: u32 = 24;

/// Drives an attempt that this worker has leased.
pub async fn drive(payments: &Payments, client: &Client, pool: &PgPool, id: Uuid) -> anyhow::Result<()> {
    for _ in 0..STEPS_MAX {
        let row = record::load(pool, id, payments.margin()).await?;
        let one = One { payments, client, pool, row: &row };
        let flow = match machine::plan(&row.facts()) {
            Step::Write(op) => one.write(op).await?,
            Step::Send => one.send().await?,
            Step::Look => one.look().await?,
            Step::StopReader => one.stop_reader().await?,
            Step::LookForRefunds => one.look_for_refunds().await?,
            Step::Conclude(Seen::RefundFailed) => one.give_up(None).await?,
            Step::Conclude(seen) => transition::settle(pool, &row, seen, Details::default(), None).await?,
            Step::Decide => one.decide().await?,
            Step::Rest => one.rest().await?,
        };
        if flow == Flow::Stop {
            return Ok(());
        }
    }
    anyhow::bail!("an attempt does not come to rest")
}

/// Money in another currency is believed when so many looks in a row have said so.
const FOREIGN_LOOKS: i32 = 3;

struct One<'a> {
    payments: &'a Payments,
    client: &'a Client,
    pool: &'a PgPool,
    row: &'a Row,
}

impl One<'_> {
    /// Writes a call down under a key that was never used.
    async fn write(&self, op: Op) -> anyhow::Result<Flow> {
        let row = self.row;
        let call = self.compose(op).await?;
        if op == Op::Confirm {
            let details = Details { call: Some(call), ..Details::default() };
            return Ok(transition::settle(self.pool, row, Seen::Confirming, details, None).await?);
        }
        let mut tx = self.pool.begin().await?;
        let fresh = transition::lock(&mut tx, row).await?;
        if fresh {
            let now = clock::now(&mut tx).await?;
            let refund_id = row.refund.as_ref().map(|r| r.id).filter(|_| op == Op::Refund);
            record::write_call(&mut tx, row.id, refund_id, &call, now).await?;
            transition::supersede(&mut tx, row).await?;
        }
        tx.commit().await?;
        Ok(if fresh { Flow::On } else { Flow::Stop })
    }

    async fn compose(&self, op: Op) -> anyhow::Result<Call> {
        let row = self.row;
        let n = record::calls(self.pool, row.id, op, row.refund.as_ref().map(|r| r.id)).await?;
        let pi_id = || row.pi_id.as_deref().ok_or_else(|| anyhow::anyhow!("{} without an intent", op.name()));
        let reader_id = || row.reader_id.as_deref().ok_or_else(|| anyhow::anyhow!("{} without a reader", op.name()));
        Ok(match op {
            Op::Create => Call::create(
                NewIntent {
                    installation: row.installation,
                    attempt_id: row.id,
                    order_id: row.order_id,
                    amount_minor: row.amount_minor,
                    currency: &row.currency,
                    payment_method: &row.payment_method,
                },
                n,
            )?,
            Op::Confirm if row.reader_id.is_some() => Call::process(row.id, reader_id()?, pi_id()?, n + 1),
            Op::StopReader => Call::stop_reader(row.id, reader_id()?, n),
            Op::Confirm => Call::confirm(row.id, pi_id()?, n + 1, &self.payments.return_url(row.order_id)),
            Op::Capture => Call::capture(row.id, pi_id()?, n),
            Op::Cancel => Call::cancel(row.id, pi_id()?, n),
            Op::Refund => {
                let refund = row.refund.as_ref().ok_or_else(|| anyhow::anyhow!("no refund is under way"))?;
                let amount = (!refund.whole).then_some((row.currency.as_str(), refund.amount_minor));
                let (installation, attempt_id, refund_id) = (row.installation, row.id, refund.id);
                Call::refund(Back { installation, attempt_id, refund_id, pi_id: pi_id()?, amount }, n)?
            }
            Op::Get | Op::ListRefunds | Op::Books | Op::Reader => anyhow::bail!("reads have no key"),
        })
    }

    /// Sends the call that is written down, and writes down what came of it.
    async fn send(&self) -> anyhow::Result<Flow> {
        let row = self.row;
        let Some(call) = &row.call else { anyhow::bail!("nothing is written down to be sent") };
        if !record::note_sent(self.pool, row, call.id, self.payments.lease()).await? {
            return Ok(Flow::On); // read anew: it is another one by now, or too late
        }
        let answer = self.client.send(&call.call).await;
        let (seen, mut details, state) = match call.call.op {
            Op::Refund => self.judge_refund(&answer),
            op => self.judge(op, &answer),
        };
        details.wait = retry_after(&answer);
        let written = written(call.id, call.call.op, state, &answer);
        Ok(transition::settle(self.pool, row, seen, details, Some(written)).await?)
    }

    fn judge(&self, op: Op, answer: &Answer) -> (Seen, Details, CallState) {
        match &answer.outcome {
            // The reader collects: somebody has to hold a card to it.
            Outcome::Done(_) if op == Op::Confirm && self.row.reader_id.is_some() => {
                match answer.object::<Reader>().and_then(|reader| reader.action) {
                    Some(_) => (Seen::NeedsAction, Details::default(), CallState::Answered),
                    None => (Seen::Doubt, Details::default(), CallState::Unknown),
                }
            }
            Outcome::Done(_) => match answer.object::<PaymentIntent>() {
                Some(intent) if op == Op::Create => (Seen::Created, self.details(&intent), CallState::Answered),
                // An echo that does not fit is not believed: the intent is asked for, and says what there is.
                Some(intent) if self.is_odd(op, &intent) => (Seen::Doubt, Details::default(), CallState::Unknown),
                Some(intent) => (self.judge_intent(&intent).0, self.details(&intent), CallState::Answered),
                None => (Seen::Doubt, Details::default(), CallState::Unknown),
            },
            // Nothing was done, and nobody's card was looked at. A cancellation or a capture is made again.
            Outcome::NotServed(refusal) => {
                self.note_not_served(op, refusal);
                let seen = if matches!(op, Op::Create | Op::Confirm) { Seen::NotServed } else { Seen::Doubt };
                (seen, Details::default(), CallState::Unknown)
            }
            Outcome::Declined(refusal) if op == Op::Confirm => {
                let decline_code = Some(refusal.reason().to_owned());
                (Seen::Declined, Details { decline_code, ..Details::default() }, CallState::Answered)
            }
            Outcome::Declined(refusal) | Outcome::Rejected(refusal) => {
                tracing::warn!(attempt.id = %self.row.id, call.op = op.name(), call.request_id = answer.request_id,
                    call.code = refusal.code, call.kind = refusal.kind, "the provider refused a call");
                let seen = if op == Op::Create { Seen::Refused } else { Seen::Doubt };
                // At a reader the clerk is told why: it is offline, or busy with another customer.
                let told = op == Op::Create || (op == Op::Confirm && self.row.reader_id.is_some());
                let decline_code = told.then(|| refusal.reason().to_owned());
                (seen, Details { decline_code, ..Details::default() }, CallState::Answered)
            }
            // Certainly not sent: it stays as it was written, and nothing is in doubt. (An earlier sending may be.)
            Outcome::NotSent if self.was_never_sent() => (Seen::Again, Details::default(), CallState::Prepared),
            Outcome::NotSent | Outcome::Unknown => (Seen::Doubt, Details::default(), CallState::Unknown),
        }
    }

    fn note_not_served(&self, op: Op, refusal: &Refusal) {
        tracing::error!(attempt.id = %self.row.id, call.op = op.name(), call.code = refusal.code, call.kind = refusal.kind,
            "the provider does not accept our key");
    }

    fn was_never_sent(&self) -> bool {
        self.row.call.as_ref().is_some_and(|c| c.facts.sends == 0)
    }

    fn judge_intent(&self, intent: &PaymentIntent) -> (Seen, Key) {
        let facts = self.row.facts();
        let right = self.minor(intent, self.held(intent)) == Some(self.row.amount_minor);
        machine::judge(&facts, &intent.status, intent.last_payment_error.is_some(), right)
    }

    /// What the answer to a call says is not what it should come to. (A look is believed, see [`Self::is_unreadable`].)
    fn is_odd(&self, op: Op, intent: &PaymentIntent) -> bool {
        match intent.status {
            IntentStatus::Succeeded => self.minor(intent, intent.amount_received) != Some(self.row.amount_minor),
            // Only a look says that nothing is reserved: the money of one who is told "not charged" must not be held.
            IntentStatus::Canceled => matches!(op, Op::Confirm | Op::Capture),
            _ => false,
        }
    }

    /// Taken, and nobody can tell how much: that stays a doubt. In another currency than was asked for: the gate closes,
    /// and it is a doubt until several looks have said the same.
    async fn is_unreadable(&self, intent: &PaymentIntent) -> sqlx::Result<bool> {
        let received = self.minor(intent, intent.amount_received);
        if intent.status != IntentStatus::Succeeded || received.is_some_and(|amount| amount > 0) {
            return Ok(false);
        }
        tracing::error!(attempt.id = %self.row.id, intent.received = intent.amount_received,
            intent.currency = intent.currency, "money was taken, and how much of ours can't be told");
        let Some(Foreign { amount, currency }) = self.foreign(intent) else { return Ok(true) };
        let mut tx = self.pool.begin().await?;
        let now = clock::now(&mut tx).await?;
        gate::close(
            &mut tx,
            "amount_differs",
            &format!("attempt {}: {amount} {currency} were taken", self.row.id),
            now,
        )
        .await?;
        tx.commit().await?;
        Ok(self.row.tries < FOREIGN_LOOKS)
    }

    /// What was taken, if it was in another currency than was asked for.
    fn foreign(&self, intent: &PaymentIntent) -> Option<Foreign> {
        let ours = intent.currency.eq_ignore_ascii_case(&self.row.currency);
        let taken = intent.status == IntentStatus::Succeeded && intent.amount_received > 0;
        (taken && !ours)
            .then(|| Foreign { amount: intent.amount_received, currency: intent.currency.to_ascii_lowercase() })
    }

    /// What it holds for us; of a card that the reader captured at once, what it took.
    fn held(&self, intent: &PaymentIntent) -> i64 {
        let at_once = self.row.reader_id.is_some() && intent.status == IntentStatus::Succeeded;
        if at_once { intent.amount_received } else { intent.amount_capturable }
    }

    /// The intent's amount in our units; none if it is in another currency.
    fn minor(&self, intent: &PaymentIntent, amount: i64) -> Option<i64> {
        if !intent.currency.eq_ignore_ascii_case(&self.row.currency) {
            return None;
        }
        money::from_provider(&self.row.currency, amount).ok()
    }

    fn details(&self, intent: &PaymentIntent) -> Details {
        let received = self.minor(intent, intent.amount_received);
        Details {
            pi_id: Some(intent.id.clone()),
            action_url: intent.action_url().map(str::to_owned),
            decline_code: intent.last_payment_error.as_ref().map(|e| e.reason().to_owned()),
            authorised_minor: self.minor(intent, self.held(intent)).filter(|amount| *amount > 0),
            captured_minor: received.filter(|amount| *amount > 0),
            foreign: self.foreign(intent),
            card: intent.latest_charge.as_ref().and_then(|charge| charge.card.clone()),
            ..Details::default()
        }
    }

    /// Tells the reader to collect no more. Whatever it answers, the intent is asked next: the card may
    /// have been faster.
    async fn stop_reader(&self) -> anyhow::Result<Flow> {
        let row = self.row;
        let Some(stop) = &row.stop else { return self.write(Op::StopReader).await };
        if !record::note_sent(self.pool, row, stop.id, self.payments.lease()).await? {
            return Ok(Flow::On);
        }
        let answer = self.client.send(&stop.call).await;
        let known = matches!(answer.outcome, Outcome::Done(_) | Outcome::Declined(_) | Outcome::Rejected(_));
        let state = if known { CallState::Answered } else { CallState::Unknown };
        let mut tx = self.pool.begin().await?;
        let fresh = transition::lock(&mut tx, row).await?;
        record::write_answer(&mut tx, &written(stop.id, Op::StopReader, state, &answer)).await?;
        if fresh && !known {
            let wait = retry_after(&answer).unwrap_or_default().max(row.patience());
            transition::pause(&mut tx, row, Some(wait), true).await?;
        }
        tx.commit().await?;
        Ok(if fresh && known { Flow::On } else { Flow::Stop })
    }

    /// Asks for the intent, and follows what it says.
    async fn look(&self) -> anyhow::Result<Flow> {
        let row = self.row;
        let Some(pi_id) = &row.pi_id else { anyhow::bail!("nothing to look at") };
        let call = Call::get(pi_id);
        let call_id = record::note_read(self.pool, row.id, &call, self.payments.lease()).await?;
        let answer = self.client.send(&call).await;
        let intent: Option<PaymentIntent> = answer.object();
        let state = if intent.is_some() { CallState::Answered } else { CallState::Unknown };
        let written = written(call_id, call.op, state, &answer);
        let Some(intent) = intent else {
            let details = Details { wait: retry_after(&answer), ..Details::default() };
            return Ok(transition::settle(self.pool, row, Seen::Doubt, details, Some(written)).await?);
        };
        if self.is_unreadable(&intent).await? {
            return Ok(transition::settle(self.pool, row, Seen::Doubt, Details::default(), Some(written)).await?);
        }
        if row.state.is_decided() {
            return self.tidy(&intent, written).await;
        }
        let (seen, key) = self.judge_intent(&intent);
        let mut details = self.details(&intent);
        if key == Key::Next {
            details.call = Some(self.compose(row.state.op()).await?);
        }
        Ok(transition::settle(self.pool, row, seen, details, Some(written)).await?)
    }

    /// The one transaction: the seats become this order's, or the money is let go.
    async fn decide(&self) -> anyhow::Result<Flow> {
        let row = self.row;
        let mut tx = db::event_tx(self.pool, row.event_id).await?;
        let order = sqlx::query!(
            r#"select state, cancel_requested from "order" where id = $1 for no key update"#,
            row.order_id
        )
        .fetch_one(&mut *tx)
        .await?;
        if !transition::lock(&mut tx, row).await? {
            return Ok(Flow::Stop);
        }
        let seen = if order.cancel_requested {
            Seen::Abandoned
        } else if order.state == "payment_due" {
            self.settle_due(&mut tx).await?
        } else {
            let tendered = Tendered::Card {
                attempt_id: row.id,
                amount_minor: row.authorised_minor.unwrap_or_default(),
                currency: row.currency.clone(),
            };
            match checkout::confirm(&mut tx, row.order_id, tendered, "payment").await {
                Ok(_) => Seen::Sold,
                Err(ConfirmError::AmountMismatch) => Seen::WrongAmount,
                Err(ConfirmError::Database(error)) => return Err(error.into()),
                Err(refused) => {
                    tracing::info!(attempt.id = %row.id, reason = %refused, "authorised, but not sold: the money is let go");
                    Seen::NotSold
                }
            }
        };
        let to = machine::next(row.state, seen).ok_or_else(|| anyhow::anyhow!("{seen:?} has no place"))?;
        let flow = transition::apply(&mut tx, row, seen, to, Details::default()).await?;
        tx.commit().await?;
        Ok(flow)
    }

    /// An order whose seats were sold before its money failed: no seat changes hands.
    async fn settle_due(&self, tx: &mut db::Tx) -> sqlx::Result<Seen> {
        let now = clock::now(tx).await?;
        let settled = sqlx::query!(
            r#"update "order" o set state = 'confirmed', payment_due_until = null from attempt a
               where o.id = $1 and o.state = 'payment_due' and o.payment_due_until > $2
                 and a.id = $4 and order_due_minor(o) = $3 + a.cash_minor"#,
            self.row.order_id,
            now,
            self.row.authorised_minor.unwrap_or_default(),
            self.row.id
        )
        .execute(&mut **tx)
        .await?;
        if settled.rows_affected() != 1 {
            return Ok(Seen::NotSold);
        }
        checkout::take_cash_beside(tx, self.row.id, now).await?;
        Ok(Seen::Sold)
    }

    async fn rest(&self) -> anyhow::Result<Flow> {
        let mut tx = self.pool.begin().await?;
        if transition::lock(&mut tx, self.row).await? {
            transition::pause(&mut tx, self.row, None, false).await?;
        }
        tx.commit().await?;
        Ok(Flow::Stop)
    }
}

/// What the provider asks for, within reason.
fn retry_after(answer: &Answer) -> Option<TimeDelta> {
    answer.retry_after.and_then(|wait| TimeDelta::from_std(wait).ok()).map(|wait| wait.min(TimeDelta::seconds(60)))
}

fn written(call_id: i64, op: Op, state: CallState, answer: &Answer) -> Written {
    Written {
        call_id,
        how: record::How::of(op, answer),
        state,
        http: answer.http.map(|s| s.as_u16()),
        body: answer.body.clone(),
        request_id: answer.request_id.clone(),
        replayed: answer.replayed,
    }
}
