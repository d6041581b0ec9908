//! The provider's books, copied page by page: intents, refunds, transactions.
//!
//! Invariants
//! - A row is known by the provider's id; reading it again changes nothing but what it says now.
//! - A page that can't be had fails the run: half of the books prove nothing.

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::StatusCode;
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use crate::payment::{
    provider::{
        BalanceTransaction, Book, Call, Client, IntentStatus, Outcome, Page, PaymentIntent, Refund, RefundStatus,
    },
    record,
};

/// A page is asked for so often before the run fails.
const TRIES: u32 = 3;
/// A payment is captured some time after its intent was made: intents are read from so much earlier.
const INTENTS_EARLIER: TimeDelta = TimeDelta::hours(24);

/// How much was read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub intents: i32,
    pub refunds: i32,
    pub transactions: i32,
}

/// Reads all three books since then.
pub async fn read(
    pool: &PgPool,
    client: &Client,
    since: DateTime<Utc>,
    page_rows: i64,
    pages_max: u32,
) -> anyhow::Result<Read> {
    let mut read = Read::default();
    for (book, since) in [(Book::Intents, since - INTENTS_EARLIER), (Book::Refunds, since), (Book::Transactions, since)]
    {
        let mut after: Option<String> = None;
        for n in 0.. {
            if n == pages_max {
                bail!("{book:?} has more than {pages_max} pages");
            }
            let page = page(pool, client, &Call::books(book, since, after.as_deref(), page_rows)).await?;
            let count = i32::try_from(page.data.len()).unwrap_or(i32::MAX);
            match book {
                Book::Intents => read.intents += count,
                Book::Refunds => read.refunds += count,
                Book::Transactions => read.transactions += count,
            }
            for row in &page.data {
                write(pool, book, row).await?;
            }
            if !page.has_more {
                break;
            }
            // A book that was not read to its end proves nothing about what is not in it.
            let last = page.data.last().and_then(|row| row["id"].as_str()).map(str::to_owned);
            ensure!(last.is_some() && last != after, "{book:?} has more, and no row to go on from");
            after = last;
        }
    }
    Ok(read)
}

async fn page(pool: &PgPool, client: &Client, call: &Call) -> anyhow::Result<Page> {
    for _ in 0..TRIES {
        let answer = client.send(call).await;
        let mut db = pool.acquire().await?;
        record::note_how(&mut db, record::How::of(call.op, &answer)).await?;
        if let Some(page) = answer.object() {
            return Ok(page);
        }
    }
    bail!("the provider did not show {}", call.path)
}

/// A row that can't be read is not passed over: it might be the one that matters.
async fn write(pool: &PgPool, book: Book, row: &Value) -> anyhow::Result<()> {
    let read = || format!("a row of {book:?}: {}", row["id"]);
    match book {
        Book::Intents => write_intent(pool, &serde_json::from_value(row.clone()).with_context(read)?).await?,
        Book::Refunds => write_refund(pool, &serde_json::from_value(row.clone()).with_context(read)?).await?,
        Book::Transactions => write_transaction(pool, &serde_json::from_value(row.clone()).with_context(read)?).await?,
    }
    Ok(())
}

pub async fn write_intent(pool: &PgPool, intent: &PaymentIntent) -> sqlx::Result<()> {
    let named = |name: &str| intent.metadata.get(name).and_then(|id| id.parse::<Uuid>().ok());
    sqlx::query!(
        "insert into provider_intent (pi_id, status, amount, amount_received, currency, charge_id, attempt_id, order_id, created_at, seen_at, installation)
         values ($1, $2, $3, $4, $5, $6, $7, $8, to_timestamp($9::bigint), db_clock(), $10)
         on conflict (pi_id) do update set status = excluded.status, amount = excluded.amount,
             amount_received = excluded.amount_received, currency = excluded.currency, charge_id = excluded.charge_id,
             seen_at = excluded.seen_at, installation = excluded.installation",
        intent.id,
        status(&intent.status),
        intent.amount,
        intent.amount_received,
        intent.currency.to_ascii_lowercase(),
        intent.latest_charge.as_ref().map(|charge| &charge.id),
        named("attempt"),
        named("order"),
        intent.created,
        named("installation")
    )
    .execute(pool)
    .await?;
    Ok(())
}

async fn write_refund(pool: &PgPool, refund: &Refund) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into provider_refund (re_id, pi_id, status, amount, currency, refund_id, created_at, seen_at)
         values ($1, $2, $3, $4, $5, $6, to_timestamp($7::bigint), db_clock())
         on conflict (re_id) do update set status = excluded.status, amount = excluded.amount, seen_at = excluded.seen_at",
        refund.id,
        refund.payment_intent,
        refund_status(&refund.status),
        refund.amount,
        refund.currency.to_ascii_lowercase(),
        refund.metadata.get("refund").and_then(|id| id.parse::<Uuid>().ok()),
        refund.created
    )
    .execute(pool)
    .await?;
    Ok(())
}

async fn write_transaction(pool: &PgPool, txn: &BalanceTransaction) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into provider_transaction (txn_id, type, amount, fee, net, currency, source, created_at, seen_at)
         values ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8::bigint), db_clock())
         on conflict (txn_id) do update set type = excluded.type, amount = excluded.amount, fee = excluded.fee,
             net = excluded.net, currency = excluded.currency, source = excluded.source, seen_at = excluded.seen_at",
        txn.id,
        txn.kind,
        txn.amount,
        txn.fee,
        txn.net,
        txn.currency.to_ascii_lowercase(),
        txn.source,
        txn.created
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// The provider's own word.
fn status(status: &IntentStatus) -> &str {
    match status {
        IntentStatus::RequiresPaymentMethod => "requires_payment_method",
        IntentStatus::RequiresConfirmation => "requires_confirmation",
        IntentStatus::RequiresAction => "requires_action",
        IntentStatus::Processing => "processing",
        IntentStatus::RequiresCapture => "requires_capture",
        IntentStatus::Succeeded => "succeeded",
        IntentStatus::Canceled => "canceled",
        IntentStatus::Other(word) => word,
    }
}

fn refund_status(status: &RefundStatus) -> &str {
    match status {
        RefundStatus::Pending => "pending",
        RefundStatus::RequiresAction => "requires_action",
        RefundStatus::Succeeded => "succeeded",
        RefundStatus::Failed => "failed",
        RefundStatus::Canceled => "canceled",
        RefundStatus::Other(word) => word,
    }
}

/// What the provider says of one intent.
#[derive(Debug)]
pub enum Shown {
    Intent(Box<PaymentIntent>),
    /// It has none of this id (any more). That is an answer like any other.
    Gone,
    /// It did not answer.
    Nothing,
}

/// One intent, asked for by its id.
pub async fn look(pool: &PgPool, client: &Client, pi_id: &str) -> anyhow::Result<Shown> {
    let call = Call::get(pi_id);
    let answer = client.send(&call).await;
    let mut db = pool.acquire().await?;
    record::note_how(&mut db, record::How::of(call.op, &answer)).await?;
    if let Some(intent) = answer.object::<PaymentIntent>() {
        write_intent(pool, &intent).await?;
        return Ok(Shown::Intent(Box::new(intent)));
    }
    let refused = matches!(&answer.outcome, Outcome::Rejected(refusal) if refusal.code == "resource_missing");
    if !(refused && answer.http == Some(StatusCode::NOT_FOUND)) {
        return Ok(Shown::Nothing);
    }
    sqlx::query!("update provider_intent set status = 'gone', seen_at = db_clock() where pi_id = $1", pi_id)
        .execute(&mut *db)
        .await?;
    tracing::warn!(intent.id = pi_id, "the provider has no such payment any more");
    Ok(Shown::Gone)
}

/// The same, for whoever needs the intent. None: the provider has none, or did not answer.
pub async fn one(pool: &PgPool, client: &Client, pi_id: &str) -> anyhow::Result<Option<PaymentIntent>> {
    Ok(match look(pool, client, pi_id).await? {
        Shown::Intent(intent) => Some(*intent),
        Shown::Gone | Shown::Nothing => None,
    })
}
