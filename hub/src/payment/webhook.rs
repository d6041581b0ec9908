//! Webhooks are hints: verified, stored, answered, and then the provider is asked.
//!
//! Invariants
//! - What is answered with 200 is stored; what can't be stored is not answered with 200, so that it comes again.
//! - The same event twice is stored once. What an event says is never believed: it only makes a worker look.
//! - An event about something we do not know is kept and tried again for a while: it may be faster than our own row.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    provider::Client,
    reconcile::orphan::{self, Fate},
    signature::{self, SignatureError},
};
use crate::{config::Secret, db};

/// For so long an unknown object may still turn out to be ours.
const ORPHAN_AFTER: TimeDelta = TimeDelta::minutes(10);
const TRY_AGAIN: TimeDelta = TimeDelta::seconds(5);
/// What became of an orphan is not known yet.
const ORPHAN_AGAIN: TimeDelta = TimeDelta::seconds(30);
const EVENTS_MAX: i64 = 200;
/// Ids of events and objects are short; anything longer is not the provider's.
const ID_MAX: usize = 255;

#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Signature(#[from] SignatureError),
    #[error("the body is not an event")]
    NotAnEvent,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Takes a delivery: `header` is `Stripe-Signature`, `body` the bytes that arrived.
pub async fn accept(
    pool: &PgPool,
    secrets: &[Secret],
    livemode: bool,
    header: &str,
    body: Vec<u8>,
) -> Result<(), WebhookError> {
    // The provider's clock against ours, not the database's: a test that sets the time signs with the real one.
    signature::verify(header, &body, secrets, Utc::now().timestamp())?;
    let event: Value = serde_json::from_slice(&body).map_err(|_| WebhookError::NotAnEvent)?;
    let text = |at: &str| event.pointer(at).and_then(Value::as_str).filter(|t| is_id(t)).map(str::to_owned);
    let (Some(event_id), Some(kind)) = (text("/id"), text("/type")) else { return Err(WebhookError::NotAnEvent) };
    let object_id = intent_of(&event).map(str::to_owned);
    let mode = event.get("livemode").and_then(Value::as_bool).unwrap_or(false);
    let outcome = (mode != livemode).then_some("wrong_mode");
    if outcome.is_some() {
        tracing::error!(event.id = event_id, "a webhook of the other mode was stored and ignored");
    }
    let (pool, header) = (pool.clone(), header.to_owned());
    db::write(async move {
        sqlx::query!(
            "insert into webhook_event (event_id, type, object_id, livemode, raw, header, received_at, next_try_at, done_at, outcome)
             select $1, $2, $3, $4, $5, $6, now, now, case when $7::text is not null then now end, $7 from db_clock() as now
             on conflict (event_id) do nothing",
            event_id,
            kind,
            object_id,
            mode,
            body,
            header,
            outcome
        )
        .execute(&pool)
        .await?;
        Ok(())
    })
    .await
}

/// U+0000 can't be stored as text: an event of such an id or type is none, and such an object is not one of ours.
fn is_id(text: &str) -> bool {
    text.len() <= ID_MAX && !text.contains('\0')
}

/// The intent that an event is about, itself or as what was refunded or charged.
fn intent_of(event: &Value) -> Option<&str> {
    let object = event.pointer("/data/object")?;
    let field = if object["object"] == "payment_intent" { "id" } else { "payment_intent" };
    let collected = "/action/process_payment_intent/payment_intent"; // by a reader
    object.get(field).or_else(|| object.pointer(collected))?.as_str().filter(|id| is_id(id))
}

/// Our attempt, as it was written into the object's metadata.
fn attempt_of(raw: &[u8]) -> Option<Uuid> {
    let event: Value = serde_json::from_slice(raw).ok()?;
    event.pointer("/data/object/metadata/attempt")?.as_str()?.parse().ok()
}

/// The house that the object is of, as its metadata says.
fn installation_of(raw: &[u8]) -> Option<Uuid> {
    let event: Value = serde_json::from_slice(raw).ok()?;
    event.pointer("/data/object/metadata/installation")?.as_str()?.parse().ok()
}

/// The refund that an event is about: the provider's id, and ours as it was written into its metadata.
fn refund_of(raw: &[u8]) -> Option<(String, Option<Uuid>)> {
    let event: Value = serde_json::from_slice(raw).ok()?;
    let object = event.pointer("/data/object").filter(|o| o["object"] == "refund")?;
    let id = object["id"].as_str().filter(|id| is_id(id))?;
    Some((id.to_owned(), object.pointer("/metadata/refund").and_then(Value::as_str).and_then(|r| r.parse().ok())))
}

/// An event about a payment that no attempt of ours explains, after all patience.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    event_id: String,
    pi_id: String,
}

/// Makes workers look at what the stored events are about. Returns those about nothing of ours, which
/// [`see_to`] is for.
pub async fn apply(pool: &PgPool) -> sqlx::Result<Vec<Orphan>> {
    let open = sqlx::query!(
        r#"select event_id, object_id, raw, received_at, db_clock() as "now!" from webhook_event
           where done_at is null and next_try_at <= (select db_clock()) order by next_try_at limit $1"#,
        EVENTS_MAX
    )
    .fetch_all(pool)
    .await?;
    let mut orphans = Vec::new();
    if open.is_empty() {
        return Ok(orphans);
    }
    let us = sqlx::query_scalar!("select id from installation").fetch_one(pool).await?;
    for event in open {
        let mut poked = poke(pool, event.object_id.as_deref(), attempt_of(&event.raw)).await?;
        if let Some((provider_id, refund_id)) = refund_of(&event.raw)
            && poke_refund(pool, &provider_id, refund_id).await?
        {
            poked = Poked::Known;
        }
        let young = event.now - event.received_at < ORPHAN_AFTER;
        let outcome = match poked {
            Poked::Known => "applied",
            // Another house sells through the same account.
            Poked::Nobody if installation_of(&event.raw).is_some_and(|house| house != us) => "foreign",
            Poked::Nobody if event.object_id.is_none() => "not_about_a_payment",
            Poked::Nobody if !young => {
                orphans.extend(event.object_id.map(|pi_id| Orphan { event_id: event.event_id, pi_id }));
                continue;
            }
            Poked::Nobody | Poked::Unlearnt => {
                try_again(pool, &event.event_id, event.now + TRY_AGAIN).await?;
                continue;
            }
        };
        finish(pool, &event.event_id, outcome, event.now).await?;
    }
    Ok(orphans)
}

/// Lets an orphan go, or gives it back; the event is done with when the provider has said so.
pub async fn see_to(pool: &PgPool, client: &Client, orphan: &Orphan, account_shared: bool) -> anyhow::Result<()> {
    let fate = orphan::resolve(pool, client, &orphan.pi_id, account_shared).await?;
    let now = sqlx::query_scalar!(r#"select db_clock() as "now!""#).fetch_one(pool).await?;
    let (event_id, pi_id) = (&orphan.event_id, &orphan.pi_id);
    match fate {
        Fate::WasBegun => {
            tracing::info!(event.id = event_id, intent.id = pi_id, "begun, and no attempt of ours knows of it: let go");
        }
        _ => {
            tracing::error!(event.id = event_id, intent.id = pi_id, ?fate, "money that no attempt of ours explains");
        }
    }
    match fate {
        Fate::Later => try_again(pool, &orphan.event_id, now + ORPHAN_AGAIN).await?,
        Fate::Foreign => finish(pool, &orphan.event_id, "foreign", now).await?,
        Fate::Nothing | Fate::WasBegun | Fate::LetGo | Fate::GivenBack => {
            finish(pool, &orphan.event_id, "orphan", now).await?
        }
    }
    Ok(())
}

/// Whom an event has made look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Poked {
    /// No attempt of ours knows what it is about.
    Nobody,
    /// One has still to learn of its intent, and may be decided without that: the intent is an orphan then.
    Unlearnt,
    Known,
}

/// Brings the attempt's next look forward. A worker that is at it looks once more.
async fn poke(pool: &PgPool, pi_id: Option<&str>, attempt_id: Option<Uuid>) -> sqlx::Result<Poked> {
    let poked = sqlx::query_scalar!(
        r#"update attempt set pokes = pokes + 1,
                  next_run_at = case when state in ('captured', 'refunded') then next_run_at else db_clock() end
           where installation = installation_id() and (pi_id = $1 or (id = $2 and pi_id is null and state = 'new'))
           returning pi_id is not null as "known!""#,
        pi_id,
        attempt_id
    )
    .fetch_all(pool)
    .await?;
    Ok(match &poked[..] {
        [] => Poked::Nobody,
        known if known.contains(&true) => Poked::Known,
        _ => Poked::Unlearnt,
    })
}

/// A refund of ours is asked about, even if it had arrived: it may fail later. So is one whose first answer is still
/// on its way to us: it may be old by then.
async fn poke_refund(pool: &PgPool, provider_id: &str, refund_id: Option<Uuid>) -> sqlx::Result<bool> {
    let poked = sqlx::query!(
        "with news as (
             update refund set look_at = db_clock()
             where kind = 'card' and replaced_by is null and (provider_id = $1 or id = $2)
             returning attempt_id)
         update attempt set pokes = pokes + 1, next_run_at = db_clock() where id in (select attempt_id from news)",
        provider_id,
        refund_id
    )
    .execute(pool)
    .await?;
    Ok(poked.rows_affected() > 0)
}

async fn try_again(pool: &PgPool, event_id: &str, at: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!("update webhook_event set next_try_at = $2 where event_id = $1", event_id, at).execute(pool).await?;
    Ok(())
}

async fn finish(pool: &PgPool, event_id: &str, outcome: &str, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_event set done_at = $2, outcome = $3 where event_id = $1 and done_at is null",
        event_id,
        now,
        outcome
    )
    .execute(pool)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_says_what_it_is_about_and_nothing_more() {
        let intent = json!({"data": {"object": {"object": "payment_intent", "id": "pi_1", "metadata": {"attempt": Uuid::nil()}}}});
        assert_eq!(intent_of(&intent), Some("pi_1"));
        assert_eq!(attempt_of(intent.to_string().as_bytes()), Some(Uuid::nil()));
        let refund = json!({"data": {"object": {"object": "refund", "id": "re_1", "payment_intent": "pi_2"}}});
        assert_eq!(intent_of(&refund), Some("pi_2"));
        for other in [json!({}), json!({"data": {"object": {"object": "moon"}}}), json!([1]), json!("x")] {
            assert_eq!(intent_of(&other), None);
        }
    }
}
