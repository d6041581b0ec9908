//! A refund that somebody made elsewhere (the provider's own pages): written down as what it is.
//!
//! It takes the place of a refund of ours that failed, if there is one of so much. If not, it takes from what is left
//! of the order's lines, like a refund of an amount: the seats stay sold until a person says what becomes of them, and
//! what is given back later adds up with it.

use anyhow::Context;
use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    checkout::log,
    clock,
    db::{self, Tx},
    payment::{
        apportion::{What, apportion},
        order, owed,
        provider::money,
        refund,
    },
};

struct Theirs {
    status: String,
    attempt_id: Uuid,
    tender_id: Uuid,
    order_id: Uuid,
    event_id: i64,
    amount_minor: i64,
}

/// Writes down the refund of this id, as the books show it. What can't be explained by what was
/// captured is left to a person.
pub async fn record(pool: &PgPool, re_id: &str) -> anyhow::Result<()> {
    let found = sqlx::query!(
        r#"select p.status, p.amount, p.currency, a.id, a.tender_id, a.order_id, a.currency as ours, o.event_id
           from provider_refund p join attempt a on a.pi_id = p.pi_id join "order" o on o.id = a.order_id
           where p.re_id = $1"#,
        re_id
    )
    .fetch_one(pool)
    .await?;
    if !found.ours.eq_ignore_ascii_case(&found.currency) {
        return Ok(()); // another currency: nothing of ours can be compared with it
    }
    let Ok(amount_minor) = money::from_provider(&found.ours, found.amount) else { return Ok(()) };
    let theirs = Theirs {
        status: found.status,
        attempt_id: found.id,
        tender_id: found.tender_id,
        order_id: found.order_id,
        event_id: found.event_id,
        amount_minor,
    };
    let (pool, re_id) = (pool.clone(), re_id.to_owned());
    db::write(async move {
        let mut tx = pool.begin().await?;
        match write(&mut tx, &re_id, &theirs).await {
            Ok(()) => tx.commit().await.context("writing down a refund"),
            Err(error) if db::constraint(&error) == Some("attempt_refund_within_capture") => {
                tracing::error!(refund.id = re_id, "more was given back elsewhere than was captured");
                Ok(())
            }
            Err(error) if db::constraint(&error) == Some("refund_provider_once") => Ok(()),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

async fn write(tx: &mut Tx, re_id: &str, theirs: &Theirs) -> sqlx::Result<()> {
    order::lock(tx, theirs.order_id).await?;
    let now = clock::now(tx).await?;
    let failed = owed::to_cover(tx, theirs.attempt_id, theirs.amount_minor).await?;
    let request_id = match failed {
        Some(_) => None,
        None => take_from_lines(tx, re_id, theirs, now).await?,
    };
    let refund_id = Uuid::now_v7();
    let state = if theirs.status == "succeeded" { "succeeded" } else { "accepted" };
    sqlx::query!(
        "insert into refund (id, attempt_id, tender_id, request_id, kind, amount_minor, state, provider_id, reason, created_at, settled_at)
         values ($1, $2, $3, $4, 'card', $5, $6, $7, 'outside', $8::timestamptz, case when $6 = 'succeeded' then $8 end)",
        refund_id,
        theirs.attempt_id,
        theirs.tender_id,
        request_id,
        theirs.amount_minor,
        state,
        re_id,
        now
    )
    .execute(&mut **tx)
    .await?;
    if let Some(failed) = failed {
        owed::cover(tx, failed, refund_id, theirs.amount_minor).await?;
        let said =
            format!("{} given back outside of Fullhouse ({re_id}) instead of what had failed", theirs.amount_minor);
        log::note(tx, theirs.order_id, "refund", &said, "reconciliation", now).await?;
    }
    Ok(())
}

/// None: the order has not so much left (it was not sold, or is given back already).
async fn take_from_lines(tx: &mut Tx, re_id: &str, theirs: &Theirs, now: DateTime<Utc>) -> sqlx::Result<Option<Uuid>> {
    let lines = refund::lines(tx, theirs.order_id).await?;
    let Ok(parts) = apportion(&lines, &What::Amount(theirs.amount_minor), 1) else { return Ok(None) };
    let ask = refund::Ask {
        order_id: theirs.order_id,
        key: format!("outside:{re_id}"),
        what: What::Amount(theirs.amount_minor),
        seats_become: None,
        reason: "given back outside of Fullhouse".to_owned(),
        actor: "reconciliation".into(),
        called_off: false,
    };
    let said = format!("{} given back outside of Fullhouse ({re_id}); the seats are still sold", theirs.amount_minor);
    log::note(tx, theirs.order_id, "refund", &said, ask.actor.name(), now).await?;
    refund::record(tx, theirs.event_id, &ask, &[], &parts, now).await.map(Some)
}
