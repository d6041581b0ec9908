//! A transition, and everything that changes with it.
//!
//! Invariants
//! - A transition names the version that it believes in; a stale one changes nothing.
//! - What ends an attempt gives its hold back in the same transaction; what captures it makes the tickets valid in it.
//! - Locks in order: the event, the order, the attempt, the hold.

mod consequences; // what changes with it
mod stray; // refunds of what is decided

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

use self::{consequences::consequences, stray::stray_refund};
use super::{
    machine::{self, RefundState, Said, Seen, State},
    order,
    provider::{Call, Card, Op},
    record::{News, Row, Written, is_as_read, write_answer, write_call},
};
use crate::{
    clock,
    db::{self, Tx},
};

/// How often a challenge is asked about if nobody tells.
const CHALLENGE_LOOK: TimeDelta = TimeDelta::seconds(15);
/// A reservation is said to be gone that nobody of ours has let go: the provider may have spoken too soon.
const GONE_LOOK: TimeDelta = TimeDelta::seconds(10);
/// How often a reader is, with a clerk and a customer standing beside it.
const READER_LOOK: TimeDelta = TimeDelta::seconds(2);

/// Whether the worker goes on with this attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    On,
    /// Later, at the time that was written down, or not at all.
    Stop,
}

/// Money in another currency than was asked for, as the provider says it.
#[derive(Debug, Clone)]
pub struct Foreign {
    pub amount: i64,
    /// Lower case.
    pub currency: String,
}

/// What an observation brings along.
#[derive(Debug, Default)]
pub struct Details {
    pub pi_id: Option<String>,
    pub action_url: Option<String>,
    pub decline_code: Option<String>,
    pub authorised_minor: Option<i64>,
    pub captured_minor: Option<i64>,
    /// What was captured, if it was in another currency.
    pub foreign: Option<Foreign>,
    /// The card that paid.
    pub card: Option<Card>,
    /// The provider's id of a refund.
    pub refund_id: Option<String>,
    /// Its word for why a refund is not done.
    pub failure: Option<String>,
    /// Who says what became of a refund.
    pub said: Option<Said>,
    /// A call that goes with the transition: a new one, or (none given) the same once more.
    pub call: Option<Call>,
    /// Not before then, whatever the schedule of looks says.
    pub wait: Option<TimeDelta>,
}

impl Details {
    /// What this says of the refund that is under way.
    fn news(&self, seen: Seen) -> Option<News<'_>> {
        Some(News {
            state: RefundState::of(seen)?,
            said: self.said.unwrap_or(Said::Answer),
            provider_id: self.refund_id.as_deref(),
            failure: self.failure.as_deref(),
        })
    }
}

/// Writes down what was learnt: the call's answer, and the transition that follows, if one does.
pub async fn settle(
    pool: &PgPool,
    row: &Row,
    seen: Seen,
    details: Details,
    written: Option<Written>,
) -> sqlx::Result<Flow> {
    let to = machine::next(row.state, seen);
    let mut tx = match to {
        Some(to) if touches_hold(to) => db::event_tx(pool, row.event_id).await?,
        _ => pool.begin().await?,
    };
    if to.is_some_and(touches_order) {
        order::lock(&mut tx, row.order_id).await?; // before the attempt, wherever the order changes with it
    }
    let mut fresh = lock(&mut tx, row).await?;
    if details.said == Some(Said::Refusal)
        && let Some(call) = &row.call
    {
        fresh &= is_as_read(&mut tx, call).await?; // what was sent meanwhile may arrive
    }
    if let Some(written) = &written {
        write_answer(&mut tx, written).await?;
    }
    let flow = match to {
        _ if !fresh => Flow::Stop, // somebody else was faster; the answer is kept all the same
        Some(to) => apply(&mut tx, row, seen, to, details).await?,
        // What a refusal means depends on what was sent before: that is planned.
        None if seen == Seen::Refused && row.refund_op() => Flow::On,
        None => match row.refund.as_ref().filter(|_| row.has_stray_refund()) {
            Some(refund) => stray_refund(&mut tx, row, refund, seen, &details).await?,
            None => {
                let wait = match row.state {
                    _ if row.state.is_decided() && seen == Seen::Cancelled => None, // tidied up
                    State::ActionRequired => Some(challenge_wait(row, row.now)),
                    _ => Some(details.wait.unwrap_or_default().max(row.patience())),
                };
                let doubt = wait.is_some() && row.state != State::ActionRequired;
                pause(&mut tx, row, wait, doubt).await?
            }
        },
    };
    tx.commit().await?;
    Ok(flow)
}

/// Locks the attempt. False: it is no longer the one that was read.
pub async fn lock(tx: &mut Tx, row: &Row) -> sqlx::Result<bool> {
    let version = sqlx::query_scalar!("select version from attempt where id = $1 for no key update", row.id)
        .fetch_one(&mut **tx)
        .await?;
    Ok(version == row.version)
}

/// There is something new to do although the state is the same: whoever read the attempt before writes nothing,
/// and does not put it to rest.
pub async fn supersede(tx: &mut Tx, row: &Row) -> sqlx::Result<()> {
    sqlx::query!("update attempt set version = version + 1 where id = $1", row.id).execute(&mut **tx).await?;
    Ok(())
}

fn touches_hold(to: State) -> bool {
    matches!(to, State::Declined | State::Voided | State::RefundPending | State::Refunded)
}

fn touches_order(to: State) -> bool {
    touches_hold(to) || matches!(to, State::CaptureFailed | State::Captured)
}

/// The attempt moves on, and all that hangs on it. Its row is locked, and is the one that was read.
pub async fn apply(tx: &mut Tx, row: &Row, seen: Seen, to: State, details: Details) -> sqlx::Result<Flow> {
    let now = clock::now(tx).await?;
    let doubt = matches!(to, State::AuthUnknown | State::CaptureUnknown | State::VoidUnknown | State::RefundAccepted);
    // One doubt goes on while an operation is asked for again.
    let same_doubt = to.op() == row.state.op() && !matches!(to, State::ActionRequired | State::Authorised);
    let (tries, unknown_since) = match (doubt, same_doubt) {
        (true, true) => (row.tries + 1, Some(row.unknown_since.unwrap_or(now))),
        (true, false) => (1, Some(now)),
        (false, true) => (row.tries, row.unknown_since),
        (false, false) => (0, None),
    };
    // An answer is older than news that came before it was written down.
    let news = details.said.is_none() && row.refund.as_ref().is_some_and(|r| r.look_at.is_some());
    let pace = match to {
        State::Refunded | State::RefundFailed if news => Pace::On,
        State::Captured | State::Refunded | State::RefundFailed => Pace::Rest,
        State::Voided if row.pi_id.is_none() => Pace::Rest,
        // What we did not ask for is looked at once more before it is left alone.
        State::Voided if seen == Seen::Cancelled && row.state.op() != Op::Cancel => Pace::Wait(GONE_LOOK),
        State::Voided if seen == Seen::Cancelled => Pace::Rest,
        State::ActionRequired => Pace::Wait(challenge_wait(row, now)),
        _ if doubt => {
            let patience = machine::patience(tries - 1, unknown_since.map_or(TimeDelta::zero(), |s| now - s));
            Pace::Wait(patience.max(details.wait.unwrap_or_default()))
        }
        _ => Pace::On,
    };
    let next_run_at = match pace {
        Pace::On => Some(now),
        Pace::Wait(wait) => Some(now + jitter(wait)),
        Pace::Rest => None,
    };
    sqlx::query!(
        "update attempt set state = $2, version = version + 1, updated_at = $3::timestamptz, tries = $4, unknown_since = $5,
                pi_id = coalesce($6, pi_id), action_url = $7, decline_code = coalesce($8, decline_code),
                outcome = coalesce($9, outcome), authorised_minor = coalesce($10, authorised_minor),
                captured_minor = greatest(captured_minor, coalesce($11::bigint, 0)),
                next_run_at = case when pokes = $12 then $13::timestamptz else $3 end, leased_until = case when $14 then leased_until end,
                card_brand = coalesce($15, card_brand), card_last4 = coalesce($16, card_last4)
         where id = $1",
        row.id,
        to.name(),
        now,
        tries,
        unknown_since,
        details.pi_id,
        details.action_url,
        details.decline_code,
        outcome(seen, to),
        details.authorised_minor,
        details.captured_minor,
        row.pokes,
        next_run_at,
        pace == Pace::On,
        details.card.as_ref().map(|card| &card.brand),
        details.card.as_ref().map(|card| &card.last4),
    )
    .execute(&mut **tx)
    .await?;
    match &details.call {
        Some(call) => write_call(tx, row.id, None, call, now).await?,
        None if matches!(to, State::Confirming | State::CapturePending | State::VoidPending) => {
            // The same bytes once more. (After the sale, or a decision to void, there is none yet.)
            if let Some(call) = row.call.as_ref().filter(|_| to.op() == row.state.op()) {
                sqlx::query!("update provider_call set state = 'prepared' where id = $1", call.id)
                    .execute(&mut **tx)
                    .await?;
            }
        }
        None => {}
    }
    consequences(tx, row, seen, to, &details, now).await?;
    tracing::debug!(attempt.id = %row.id, from = row.state.name(), to = to.name(), "an attempt moved on");
    Ok(if pace == Pace::On { Flow::On } else { Flow::Stop })
}

#[derive(Debug, PartialEq, Eq)]
enum Pace {
    On,
    Wait(TimeDelta),
    /// Until there is news.
    Rest,
}

/// Until the challenge is asked about again; not beyond the time at which it is too late.
fn challenge_wait(row: &Row, now: DateTime<Utc>) -> TimeDelta {
    if row.reader_id.is_some() {
        return READER_LOOK; // it has to be told to stop, which may take more than one try
    }
    (row.late_at - now).clamp(TimeDelta::zero(), CHALLENGE_LOOK)
}

/// A fifth more or less, so that what failed together does not come back together.
fn jitter(wait: TimeDelta) -> TimeDelta {
    let factor = rand::random_range(0.8..1.2);
    TimeDelta::milliseconds((wait.num_milliseconds() as f64 * factor) as i64)
}

/// The stable code that tells the buyer why.
fn outcome(seen: Seen, to: State) -> Option<&'static str> {
    match (seen, to) {
        (Seen::Declined, _) => Some("declined"),
        (Seen::OutOfTime | Seen::NotSold, _) => Some("hold_ended"),
        (Seen::Abandoned, _) => Some("cancelled"),
        (Seen::WrongAmount, _) => Some("wrong_amount"),
        (Seen::NotServed, _) => Some("not_served"),
        (_, State::CaptureFailed) => Some("capture_failed"),
        (Seen::Refused, _) => Some("refused"),
        (_, State::RefundPending) => Some("refunding"),
        (_, State::Refunded) => Some("refunded"),
        _ => None,
    }
}

/// Nothing changes but when it is looked at again; None: not before there is news, and nothing is in doubt. The lease
/// ends with it.
pub async fn pause(tx: &mut Tx, row: &Row, wait: Option<TimeDelta>, doubt: bool) -> sqlx::Result<Flow> {
    let now = clock::now(tx).await?;
    sqlx::query!(
        "update attempt set leased_until = null, updated_at = $2::timestamptz,
                next_run_at = case when pokes = $3 then $4::timestamptz else $2 end,
                tries = case when $5 then tries + 1 when $4 is null then 0 else tries end,
                unknown_since = case when $5 then coalesce(unknown_since, $2) when $4 is not null then unknown_since end
         where id = $1",
        row.id,
        now,
        row.pokes,
        wait.map(|wait| now + jitter(wait)),
        doubt,
    )
    .execute(&mut **tx)
    .await?;
    Ok(Flow::Stop)
}
