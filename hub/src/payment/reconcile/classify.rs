//! The provider's books beside ours: what each class is, as one question to the database.
//!
//! An intent is joined to the attempt that its metadata names, then to the one that names it. Of another installation's
//! (`intent_is_ours`) nothing is said but that it is there.
//! Amounts of transactions are in the currency of settlement: they are compared only where that is the payment's.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::finding::{Class, Found};
use crate::payment::provider::money;

/// What is looked at, and how patiently.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// Since then.
    pub from: DateTime<Utc>,
    pub now: DateTime<Utc>,
    /// What is younger may still be on its way.
    pub grace: TimeDelta,
    /// Somebody else uses the account: what does not bear our installation's id is not ours.
    pub account_shared: bool,
}

/// Types of transactions that we know: those of payments and refunds, and those that are the provider's own business.
const TYPES: &[&str] = &[
    "charge",
    "payment",
    "refund",
    "payment_refund",
    "refund_failure",
    "payment_failure_refund",
    "payment_refund_failure",
    "adjustment",
    "stripe_fee",
    "stripe_fx_fee",
    "tax_fee",
    "application_fee",
    "application_fee_refund",
    "payout",
    "payout_cancel",
    "payout_failure",
    "transfer",
    "transfer_cancel",
    "transfer_failure",
    "transfer_refund",
    "topup",
    "topup_reversal",
    "reserve_transaction",
    "reserved_funds",
    "contribution",
    "climate_order_purchase",
];

pub async fn classify(db: &mut PgConnection, scope: Scope) -> anyhow::Result<Vec<Found>> {
    let mut all = captured(db, scope).await?;
    all.extend(not_captured(db, scope).await?);
    all.extend(not_moved(db, scope).await?);
    all.extend(captured_twice(db, scope).await?);
    all.extend(orphans(db, scope).await?);
    all.extend(refunds_outside(db, scope).await?);
    all.extend(refunds_of_ours(db, scope).await?);
    all.extend(transactions(db, scope).await?);
    Ok(all)
}

/// A difference, as a question answers it.
struct Row {
    subject: String,
    order_id: Option<Uuid>,
    attempt_id: Option<Uuid>,
    pi_id: Option<String>,
    amount: Option<i64>,
    currency: Option<String>,
    detail: String,
}

fn found(class: Class, rows: Vec<Row>) -> Vec<Found> {
    rows.into_iter()
        .map(|Row { subject, order_id, attempt_id, pi_id, amount, currency, detail }| Found {
            class,
            subject,
            order_id,
            attempt_id,
            pi_id,
            amount,
            currency,
            detail,
        })
        .collect()
}

/// M1 and M3: what the provider has captured, against the attempt and the order that it is for.
///
/// Money whose refund we have written down is explained by that: it is on the list of refunds.
async fn captured(db: &mut PgConnection, scope: Scope) -> anyhow::Result<Vec<Found>> {
    let rows = sqlx::query!(
        r#"select p.pi_id, p.amount_received, p.currency, p.created_at, intent_is_ours(p.pi_id, p.installation, $2) as "ours_to_touch!",
                  a.id as "attempt_id?", a.state as "state?", a.amount_minor as "amount_minor?", a.currency as "ours?",
                  a.order_id as "order_id?", o.state as "order_state?",
                  exists(select from refund r where r.attempt_id = a.id) as "refund!",
                  p.amount_received - coalesce((select sum(r.amount) from provider_refund r
                      where r.pi_id = p.pi_id and r.status not in ('failed', 'canceled')), 0)::bigint as "net!"
           from provider_intent p
           left join lateral (
               select * from attempt a where a.installation = installation_id() and (a.pi_id = p.pi_id
                   or (a.id = p.attempt_id and a.pi_id is null and coalesce(p.installation, installation_id()) = installation_id()))
               order by a.pi_id is null limit 1) a on true
           left join "order" o on o.id = a.order_id
           where p.status = 'succeeded' and p.amount_received > 0 and p.created_at >= $1"#,
        scope.from - TimeDelta::hours(24),
        scope.account_shared
    )
    .fetch_all(db)
    .await?;
    let mut found = Vec::new();
    for row in rows {
        let base = |class, detail: String| Found {
            class,
            subject: format!("intent:{}", row.pi_id),
            order_id: row.order_id,
            attempt_id: row.attempt_id,
            pi_id: Some(row.pi_id.clone()),
            amount: Some(row.net),
            currency: Some(row.currency.clone()),
            detail,
        };
        let (Some(state), Some(amount_minor), Some(ours)) = (&row.state, row.amount_minor, &row.ours) else {
            if row.net > 0 {
                let foreign = !row.ours_to_touch;
                let detail =
                    if foreign { "somebody else's payment" } else { "captured, and no attempt of ours explains it" };
                found.push(base(if foreign { Class::M7 } else { Class::M1 }, detail.to_owned()));
            }
            continue;
        };
        let decided = matches!(
            state.as_str(),
            "declined" | "voided" | "captured" | "capture_failed" | "refunded" | "refund_failed"
        );
        let due = decided || row.created_at < scope.now - scope.grace;
        let order = row.order_state.as_deref().unwrap_or("gone");
        let sold = matches!(order, "confirmed" | "payment_due")
            && matches!(state.as_str(), "captured" | "capture_pending" | "capture_unknown");
        if row.net > 0 && due && !sold && !row.refund {
            found.push(base(Class::M1, format!("captured; the attempt is {state}, the order {order}")));
        }
        let asked = money::to_provider(ours, amount_minor).ok();
        if !ours.eq_ignore_ascii_case(&row.currency) || asked != Some(row.amount_received) {
            let detail = format!("captured {} {}; asked for {amount_minor} {ours}", row.amount_received, row.currency);
            found.push(base(Class::M3, detail));
        }
    }
    Ok(found)
}

/// M2: sold for some time, and the money is not here; or we believe that it is, and the provider does not.
async fn not_captured(db: &mut PgConnection, scope: Scope) -> sqlx::Result<Vec<Found>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select 'attempt:' || a.id as "subject!", a.order_id as "order_id?", a.id as "attempt_id?", a.pi_id,
                  p.amount as "amount?", p.currency as "currency?",
                  format('sold; the attempt is %s, the provider says %s', a.state, coalesce(p.status, 'nothing')) as "detail!"
           from attempt a join "order" o on o.id = a.order_id left join provider_intent p on p.pi_id = a.pi_id
           where o.state = 'confirmed' and o.confirmed_at < $1 and a.installation = installation_id()
             and (a.state in ('capture_pending', 'capture_unknown')
                  or (a.state = 'captured' and p.status <> 'succeeded' and p.created_at >= $2))"#,
        scope.now - scope.grace,
        scope.from - TimeDelta::hours(24)
    )
    .fetch_all(db)
    .await?;
    Ok(found(Class::M2, rows))
}

/// M4: one order, and two payments that were kept. Each beyond the one that paid is a finding of its own: that a
/// person has seen to one says nothing of the next.
async fn captured_twice(db: &mut PgConnection, scope: Scope) -> sqlx::Result<Vec<Found>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select 'intent:' || pi_id as "subject!", order_id as "order_id?", attempt_id as "attempt_id?", pi_id as "pi_id?",
                  net as "amount?", currency as "currency?",
                  format('one of %s payments that were kept for one order', payments) as "detail!"
           from (select pi_id, order_id, currency, net, attempt_id, count(*) over (partition by order_id) as payments,
                        row_number() over (partition by order_id order by paid desc, created_at, pi_id) as place
                 from (select p.pi_id, p.currency, p.created_at, a.id as attempt_id, coalesce(a.order_id, p.order_id) as order_id,
                              coalesce(a.state = 'captured', false) as paid,
                              p.amount_received - coalesce((select sum(r.amount) from provider_refund r
                                  where r.pi_id = p.pi_id and r.status not in ('failed', 'canceled')), 0)::bigint as net
                       from provider_intent p left join attempt a on a.pi_id = p.pi_id
                       where p.status = 'succeeded' and p.created_at >= $1
                         and intent_is_ours(p.pi_id, p.installation, false)) as kept
                 where net > 0 and order_id is not null) as placed
           where place > 1 order by order_id, place"#,
        scope.from - TimeDelta::hours(24)
    )
    .fetch_all(db)
    .await?;
    Ok(found(Class::M4, rows))
}

/// M5: money is reserved, and nobody waits for it.
async fn orphans(db: &mut PgConnection, scope: Scope) -> sqlx::Result<Vec<Found>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select 'intent:' || p.pi_id as "subject!", a.order_id as "order_id?", a.id as "attempt_id?", p.pi_id as "pi_id?",
                  p.amount as "amount?", p.currency as "currency?",
                  format('reserved; the attempt is %s', coalesce(a.state, 'not known')) as "detail!"
           from provider_intent p left join attempt a on a.pi_id = p.pi_id
           where p.status = 'requires_capture' and p.created_at between $1 and $2
             and intent_is_ours(p.pi_id, p.installation, $3)
             and (a.id is null or a.state in ('declined', 'voided', 'capture_failed', 'refunded', 'refund_failed'))"#,
        scope.from - TimeDelta::hours(24),
        scope.now - scope.grace,
        scope.account_shared
    )
    .fetch_all(db)
    .await?;
    Ok(found(Class::M5, rows))
}

/// What was begun, holds nothing, and is waited for by nobody: no attempt knows of it, and the one that it names has not
/// still to learn of it. That is no class: it is let go. The oldest first; those that have refused at the end.
pub async fn begun(pool: &PgPool, scope: Scope, max: i64) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "select p.pi_id from provider_intent p
         where p.status in ('requires_payment_method', 'requires_confirmation', 'requires_action')
           and p.created_at between $1 and $2 and intent_is_ours(p.pi_id, p.installation, $3)
           and not exists (select from attempt a where a.pi_id = p.pi_id
                           or (a.id = p.attempt_id and a.pi_id is null and a.state = 'new'))
         order by exists (select from money_finding f where f.pi_id = p.pi_id and f.cleared_at is null), p.created_at
         limit $4",
        scope.from - TimeDelta::hours(24),
        scope.now - scope.grace,
        true, // only what bears our id: others begin payments, too, and may come back to them
        max
    )
    .fetch_all(pool)
    .await
}

/// M6, their side: refunds of our payments that we did not write down.
async fn refunds_outside(db: &mut PgConnection, scope: Scope) -> sqlx::Result<Vec<Found>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select 'refund:' || p.re_id as "subject!", a.order_id as "order_id?", a.id as "attempt_id?", p.pi_id as "pi_id?",
                  p.amount as "amount?", p.currency as "currency?", 'given back outside of us' as "detail!"
           from provider_refund p join attempt a on a.pi_id = p.pi_id
           where p.created_at >= $1 and p.status not in ('failed', 'canceled') and a.installation = installation_id()
             and not exists (select from refund r where r.provider_id = p.re_id or r.id = p.refund_id)"#,
        scope.from
    )
    .fetch_all(db)
    .await?;
    Ok(found(Class::M6, rows))
}

/// M6, our side: refunds that we believe in and the provider does not, or not so.
async fn refunds_of_ours(db: &mut PgConnection, scope: Scope) -> sqlx::Result<Vec<Found>> {
    struct Refund {
        id: Uuid,
        state: String,
        amount_minor: i64,
        attempt_id: Uuid,
        order_id: Uuid,
        pi_id: Option<String>,
        ours: String,
        status: Option<String>,
        amount: Option<i64>,
        currency: Option<String>,
    }
    let rows = sqlx::query_as!(
        Refund,
        r#"select r.id, r.state, r.amount_minor, a.id as attempt_id, a.order_id, a.pi_id, a.currency as ours,
                  p.status as "status?", p.amount as "amount?", p.currency as "currency?"
           from refund r join attempt a on a.id = r.attempt_id
           left join provider_refund p on p.re_id = r.provider_id or p.refund_id = r.id
           where r.created_at >= $1 and r.created_at < $2 and r.state <> 'pending' and r.kind = 'card'
             and a.installation = installation_id()"#,
        scope.from,
        scope.now - scope.grace
    )
    .fetch_all(db)
    .await?;
    let differs = |row: &Refund| -> Option<String> {
        let there = row.status.as_deref().filter(|s| !matches!(*s, "failed" | "canceled"));
        match (row.state.as_str(), there) {
            ("failed", None) => None,
            ("failed", Some(status)) => Some(format!("we have it as failed, the provider as {status}")),
            (state, None) => {
                let status = row.status.as_deref().unwrap_or("not there");
                Some(format!("we have it as {state}, the provider as {status}"))
            }
            // Of a payment in another currency: that is M3's, and all of it went back.
            _ if row.currency.as_ref().is_some_and(|theirs| !theirs.eq_ignore_ascii_case(&row.ours)) => None,
            _ if row.amount != money::to_provider(&row.ours, row.amount_minor).ok() => {
                Some("the amounts differ".to_owned())
            }
            _ => None,
        }
    };
    Ok(rows
        .iter()
        .filter_map(|row| {
            Some(Found {
                class: Class::M6,
                subject: format!("refund:{}", row.id),
                order_id: Some(row.order_id),
                attempt_id: Some(row.attempt_id),
                pi_id: row.pi_id.clone(),
                amount: row.amount,
                currency: Some(row.ours.to_ascii_lowercase()),
                detail: differs(row)?,
            })
        })
        .collect())
}

/// M2 from the side of what moved: sold and captured, and the list of transactions, which has been read since
/// before the sale, does not have the money.
async fn not_moved(db: &mut PgConnection, scope: Scope) -> sqlx::Result<Vec<Found>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select 'charge:' || p.charge_id as "subject!", a.order_id as "order_id?", a.id as "attempt_id?", p.pi_id as "pi_id?",
                  p.amount_received as "amount?", p.currency as "currency?",
                  'sold and captured, and no transaction has its money' as "detail!"
           from attempt a join "order" o on o.id = a.order_id join provider_intent p on p.pi_id = a.pi_id
           where o.state = 'confirmed' and o.confirmed_at >= $1 and o.confirmed_at < $2
             and a.state = 'captured' and p.status = 'succeeded' and p.charge_id is not null
             and not exists (select from provider_transaction t where t.source = p.charge_id)"#,
        scope.from,
        scope.now - scope.grace
    )
    .fetch_all(db)
    .await?;
    Ok(found(Class::M2, rows))
}

/// M7: what we have no name for. M1, M3 and M6 once more, from the side of what moved: the money of a charge or of a
/// refund, however many transactions it took, is that of the payment or refund that it names.
async fn transactions(db: &mut PgConnection, scope: Scope) -> sqlx::Result<Vec<Found>> {
    let types: Vec<String> = TYPES.iter().map(|t| (*t).to_owned()).collect();
    let unknown = sqlx::query!(
        "select txn_id, type as kind, amount, currency from provider_transaction where created_at >= $1 and not type = any($2)",
        scope.from,
        &types
    )
    .fetch_all(&mut *db)
    .await?;
    let moved = sqlx::query!(
        r#"select t.source as "source!", bool_and(t.type in ('refund', 'payment_refund')) as "back!", min(t.txn_id) as "txn_id!",
                  sum(t.amount)::bigint as "moved!", min(t.currency) as "currency!", count(distinct t.currency) as "currencies!",
                  coalesce(p.pi_id, r.pi_id) as pi_id, coalesce(p.amount_received, -r.amount) as expected,
                  coalesce(p.currency, r.currency) as named
           from provider_transaction t left join provider_intent p on p.charge_id = t.source
                left join provider_refund r on r.re_id = t.source
           where t.created_at >= $1 and t.type in ('charge', 'payment', 'refund', 'payment_refund') and t.source is not null
             and (coalesce(p.pi_id, r.pi_id) is null or intent_is_ours(coalesce(p.pi_id, r.pi_id),
                  coalesce(p.installation, (select i.installation from provider_intent i where i.pi_id = r.pi_id)), $2))
           group by t.source, p.pi_id, r.re_id"#,
        scope.from,
        scope.account_shared
    )
    .fetch_all(db)
    .await?;
    let found = |class, txn_id: &str, pi_id: Option<String>, amount, currency: &str, detail: String| Found {
        class,
        subject: format!("transaction:{txn_id}"),
        order_id: None,
        attempt_id: None,
        pi_id,
        amount: Some(amount),
        currency: Some(currency.to_owned()),
        detail,
    };
    let unknown = unknown.into_iter().map(|t| {
        found(Class::M7, &t.txn_id, None, t.amount, &t.currency, format!("a transaction of type {:?}", t.kind))
    });
    let moved = moved.into_iter().filter_map(|t| {
        let (what, unexplained) = if t.back { ("refund", Class::M6) } else { ("payment", Class::M1) };
        let (class, detail) = match (t.expected, &t.named) {
            (Some(expected), Some(named)) => {
                if t.currencies != 1 || t.currency != *named || t.moved == expected {
                    return None;
                }
                (Class::M3, format!("{} moved for a {what} of {expected}", t.moved))
            }
            _ => {
                let class = if scope.account_shared { Class::M7 } else { unexplained };
                (class, format!("{} belongs to no {what} that we can see", t.source))
            }
        };
        Some(found(class, &t.txn_id, t.pi_id, t.moved, &t.currency, detail))
    });
    Ok(unknown.chain(moved).collect())
}
