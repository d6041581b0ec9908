//! Payments that no attempt of ours explains: a reservation is let go, captured money goes back, and people are told.
//!
//! Only what bears our installation's id is touched while others use the account too: what a venue sells elsewhere,
//! and what another house sells, is not ours to give back. (The other house's never is, whatever is set.)

use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use super::{
    books,
    classify::{self, Scope},
    finding::{self, Class, Found},
};
use crate::payment::{
    provider::{Call, Client, IntentStatus, Outcome, PaymentIntent},
    record::{self, How},
};

/// In one run.
const SWEEP_MAX: i64 = 200;
/// A part of what a run's lease allows.
const SWEEP: Duration = Duration::from_secs(120);

/// What became of an intent that nobody explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The provider has no such intent, or nothing of it is left.
    Nothing,
    /// Somebody else's.
    Foreign,
    /// It was only begun: nothing was reserved, and now nothing can be.
    WasBegun,
    LetGo,
    GivenBack,
    /// Not yet: it is asked about again.
    Later,
}

/// Sees to an intent that a webhook told of and that no attempt of ours explains after the grace time.
pub async fn resolve(pool: &PgPool, client: &Client, pi_id: &str, account_shared: bool) -> anyhow::Result<Fate> {
    let call = Call::get(pi_id);
    let answer = client.send(&call).await;
    note(pool, &call, &answer).await?;
    let intent: PaymentIntent = match (&answer.outcome, answer.object()) {
        (_, Some(intent)) => intent,
        (Outcome::Rejected(refusal), _) if refusal.code == "resource_missing" => return Ok(Fate::Nothing),
        _ => return Ok(Fate::Later),
    };
    books::write_intent(pool, &intent).await?;
    let ours = sqlx::query_scalar!(
        r#"select intent_is_ours($1, installation, $2) as "ours!" from provider_intent where pi_id = $1"#,
        intent.id,
        account_shared
    )
    .fetch_one(pool)
    .await?;
    if !ours {
        return Ok(Fate::Foreign);
    }
    match intent.status {
        IntentStatus::Canceled => Ok(Fate::Nothing),
        IntentStatus::Processing | IntentStatus::Other(_) => Ok(Fate::Later),
        IntentStatus::Succeeded => {
            let row = keep(pool, Class::M1, &intent, "captured, and no attempt of ours explains it").await?;
            let call = Call::refund_orphan(pi_id, row.repair_tries);
            let answer = client.send(&call).await;
            note(pool, &call, &answer).await?;
            let done = match &answer.outcome {
                Outcome::Done(_) => true,
                Outcome::Rejected(refusal) => refusal.code == "charge_already_refunded",
                _ => false,
            };
            tried(pool, row.id, done).await?;
            Ok(if done { Fate::GivenBack } else { Fate::Later })
        }
        _ => {
            let reserved = intent.status == IntentStatus::RequiresCapture;
            // What holds nothing is on the list only if it can't be let go.
            if !reserved && cancel(pool, client, pi_id, 0).await? {
                return Ok(Fate::WasBegun);
            }
            let detail = if reserved { "reserved, and nobody waits for it" } else { "begun, and nobody waits for it" };
            let row = keep(pool, Class::M5, &intent, detail).await?;
            let done = cancel(pool, client, pi_id, row.repair_tries).await?;
            tried(pool, row.id, done).await?;
            Ok(if done { Fate::LetGo } else { Fate::Later })
        }
    }
}

/// Lets go what was begun and that no attempt knows of any more (the answer that would have told us of it was lost),
/// as far as there is time. What can't be let go now is seen by the next run.
pub async fn sweep(pool: &PgPool, client: &Client, scope: Scope) -> anyhow::Result<()> {
    let until = tokio::time::Instant::now() + SWEEP;
    for pi_id in classify::begun(pool, scope, SWEEP_MAX).await? {
        if tokio::time::Instant::now() > until {
            break;
        }
        let fate = resolve(pool, client, &pi_id, true).await?;
        tracing::info!(intent.id = pi_id, ?fate, "a payment that was begun, and that no attempt knows of");
    }
    Ok(())
}

/// Takes the money of an attempt that we believe captured, where the provider has it reserved still.
pub async fn capture(pool: &PgPool, client: &Client, attempt_id: Uuid, pi_id: &str, n: i32) -> anyhow::Result<()> {
    let believed = sqlx::query_scalar!(
        r#"select (state = 'captured' and installation = installation_id()) as "believed!" from attempt where id = $1"#,
        attempt_id
    )
    .fetch_one(pool)
    .await?;
    let reserved = |intent: &PaymentIntent| intent.status == IntentStatus::RequiresCapture;
    if !believed || !books::one(pool, client, pi_id).await?.as_ref().is_some_and(reserved) {
        return Ok(());
    }
    let call = Call::capture_again(attempt_id, pi_id, n);
    let answer = client.send(&call).await;
    note(pool, &call, &answer).await?;
    tracing::error!(attempt.id = %attempt_id, call.http = answer.http.map(|s| s.as_u16()),
        "a sale's money was reserved still, and was asked for again");
    Ok(())
}

/// Lets an intent go, and says whether it is gone.
pub async fn cancel(pool: &PgPool, client: &Client, pi_id: &str, n: i32) -> anyhow::Result<bool> {
    let call = Call::cancel_orphan(pi_id, n);
    let answer = client.send(&call).await;
    note(pool, &call, &answer).await?;
    let gone = |intent: &PaymentIntent| intent.status == IntentStatus::Canceled;
    if let Some(intent) = answer.object::<PaymentIntent>() {
        books::write_intent(pool, &intent).await?;
        return Ok(gone(&intent));
    }
    Ok(books::one(pool, client, pi_id).await?.as_ref().is_some_and(gone))
}

async fn note(pool: &PgPool, call: &Call, answer: &crate::payment::provider::Answer) -> sqlx::Result<()> {
    let mut db = pool.acquire().await?;
    record::note_how(&mut db, How::of(call.op, answer)).await
}

async fn keep(pool: &PgPool, class: Class, intent: &PaymentIntent, detail: &str) -> sqlx::Result<finding::Kept> {
    let mut db = pool.acquire().await?;
    let now = crate::clock::now(&mut db).await?;
    let found = Found {
        class,
        subject: format!("intent:{}", intent.id),
        order_id: None,
        attempt_id: None,
        pi_id: Some(intent.id.clone()),
        amount: Some(intent.amount_received.max(intent.amount_capturable)),
        currency: Some(intent.currency.to_ascii_lowercase()),
        detail: detail.to_owned(),
    };
    finding::keep(&mut db, &found, now).await
}

async fn tried(pool: &PgPool, id: i64, done: bool) -> sqlx::Result<()> {
    let mut db = pool.acquire().await?;
    let now = crate::clock::now(&mut db).await?;
    finding::repaired(&mut db, id, done, now).await
}
