//! One list for staff: money without an order, orders without money, doubts and their age, refunds that
//! failed, orders that are due, and why the gate is closed.
//!
//! Invariants
//! - Whatever is not settled is on it until it is. Each part shows the oldest first, and says how many there are.

use chrono::{DateTime, Utc};
use fullhouse_protocol::money::{Doubt, Finding, GateReason, MoneyList, OwedOrder, OwedRefund, Reconciled};
use sqlx::PgPool;

/// As many of each kind as a person can look at; the counts go on.
const ROWS_MAX: i64 = 200;

/// The list as it is now.
pub async fn read(pool: &PgPool) -> sqlx::Result<MoneyList> {
    let now = sqlx::query_scalar!(r#"select db_clock() as "now!""#).fetch_one(pool).await?;
    let counts = figures(pool).await?;
    let findings = findings(pool).await?;
    let (money_without_order, other): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|f| matches!(f.class.as_str(), "M1" | "M4" | "M5"));
    Ok(MoneyList {
        gate: gate(pool).await?,
        reconciled: reconciled(pool).await?,
        money_without_order,
        orders_without_money: orders_without_money(pool).await?,
        payment_due: payment_due(pool).await?,
        doubts: doubts(pool, now).await?,
        refunds: refunds(pool).await?,
        findings: other,
        refunds_failed: counts.refunds_failed,
        now,
    })
}

async fn gate(pool: &PgPool) -> sqlx::Result<Vec<GateReason>> {
    let reasons = super::gate::reasons(pool).await?;
    Ok(reasons
        .into_iter()
        .map(|r| GateReason {
            reason: r.reason,
            detail: r.detail,
            by_person: r.by_person,
            closed_at: r.closed_at,
            closed_by: r.closed_by,
        })
        .collect())
}

async fn reconciled(pool: &PgPool) -> sqlx::Result<Option<Reconciled>> {
    sqlx::query_as!(
        Reconciled,
        "select started_at, finished_at, ok, error, intents, refunds, transactions, findings
         from reconciliation_run order by id desc limit 1"
    )
    .fetch_optional(pool)
    .await
}

async fn findings(pool: &PgPool) -> sqlx::Result<Vec<Finding>> {
    sqlx::query_as!(
        Finding,
        r#"select f.id, f.class, f.subject, o.code as "order_code?", f.pi_id, f.amount as provider_amount, f.currency, f.detail,
                  f.found_at, f.last_seen_at, (f.repaired_at is not null) as "repaired!", f.acknowledged_by, f.acknowledged_note
           from money_finding f left join "order" o on o.id = f.order_id
           where f.cleared_at is null order by f.found_at limit $1"#,
        ROWS_MAX
    )
    .fetch_all(pool)
    .await
}

/// Sold, and the money is not on its way or was given back elsewhere while the seats stayed sold.
async fn orders_without_money(pool: &PgPool) -> sqlx::Result<Vec<OwedOrder>> {
    sqlx::query_as!(
        OwedOrder,
        r#"select o.id as order_id, o.code, o.event_id, o.state, o.total_minor, o.currency, o.payment_due_until,
                  case when a.id is not null then 'capture_under_way' else 'given_back_elsewhere' end as "why!",
                  coalesce(a.unknown_since, o.confirmed_at, o.created_at) as "since!"
           from "order" o
           left join attempt a on a.order_id = o.id and a.state in ('capture_pending', 'capture_unknown')
           where o.state = 'confirmed'
             and (a.id is not null or exists (
                 select from refund r join refund_request q on q.id = r.request_id
                 where q.order_id = o.id and r.reason = 'outside' and r.state <> 'failed'
                   and exists (select from order_line l where l.order_id = o.id and l.state = 'sold'
                               and l.seat_no is not null and l.refunded_minor > 0)))
           order by 9 limit $1"#,
        ROWS_MAX
    )
    .fetch_all(pool)
    .await
}

async fn payment_due(pool: &PgPool) -> sqlx::Result<Vec<OwedOrder>> {
    sqlx::query_as!(
        OwedOrder,
        r#"select id as order_id, code, event_id, state, total_minor, currency, payment_due_until,
                  'capture_failed' as "why!", coalesce(confirmed_at, created_at) as "since!"
           from "order" where state = 'payment_due' order by payment_due_until limit $1"#,
        ROWS_MAX
    )
    .fetch_all(pool)
    .await
}

async fn doubts(pool: &PgPool, now: DateTime<Utc>) -> sqlx::Result<Vec<Doubt>> {
    let rows = sqlx::query!(
        r#"select a.id, o.code, a.state, a.amount_minor, a.currency, a.unknown_since as "since!", a.next_run_at, a.tries
           from attempt a join "order" o on o.id = a.order_id
           where attempt_is_in_doubt(a)
           order by a.unknown_since limit $1"#,
        ROWS_MAX
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|r| Doubt {
            attempt_id: r.id,
            order_code: r.code,
            state: r.state,
            amount_minor: r.amount_minor,
            currency: r.currency,
            age_s: (now - r.since).num_seconds(),
            since: r.since,
            next_look_at: r.next_run_at,
            looks: r.tries,
        })
        .collect())
}

/// Those that failed first, then those on their way.
async fn refunds(pool: &PgPool) -> sqlx::Result<Vec<OwedRefund>> {
    sqlx::query_as!(
        OwedRefund,
        r#"select r.id as refund_id, o.code as order_code, r.kind, r.amount_minor, o.currency, r.state, r.failure, r.reason, r.created_at
           from refund r join tender t on t.id = r.tender_id join "order" o on o.id = t.order_id
           where r.state in ('pending', 'accepted') or (r.state = 'failed' and r.replaced_by is null)
           order by r.state <> 'failed', r.created_at limit $1"#,
        ROWS_MAX
    )
    .fetch_all(pool)
    .await
}

/// How much there is of everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub attempts: Vec<(String, i64)>,
    pub gate: Vec<(String, i64)>,
    pub findings: Vec<(String, i64)>,
    pub doubt_age_s: i64,
    /// -1: never.
    pub reconciled_age_s: i64,
    pub webhooks: i64,
    pub webhook_age_s: i64,
    pub refunds_failed: i64,
    pub refunds_waiting: i64,
    pub payment_due: i64,
}

pub async fn figures(pool: &PgPool) -> sqlx::Result<Counts> {
    let attempts = sqlx::query!(
        r#"select state, count(*) as "count!" from attempt
           where created_at > db_clock() - interval '2 days' or state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')
           group by state order by state"#
    )
    .fetch_all(pool)
    .await?;
    let gate = sqlx::query_scalar!("select reason from checkout_gate where reopened_at is null order by reason")
        .fetch_all(pool)
        .await?;
    let findings = sqlx::query!(
        r#"select class, count(*) as "count!" from money_finding where cleared_at is null group by class order by class"#
    )
    .fetch_all(pool)
    .await?;
    let ages = sqlx::query!(
        r#"select
             coalesce(extract(epoch from db_clock() - (select min(unknown_since) from attempt a where attempt_is_in_doubt(a))), 0)::bigint as "doubt!",
             coalesce(extract(epoch from db_clock() - (select max(finished_at) from reconciliation_run where ok)), -1)::bigint as "reconciled!",
             coalesce(extract(epoch from db_clock() - (select min(received_at) from webhook_event where done_at is null)), 0)::bigint as "webhook!",
             (select count(*) from webhook_event where done_at is null) as "webhooks!",
             (select count(*) from refund where state = 'failed' and replaced_by is null) as "failed!",
             (select count(*) from refund where state in ('pending', 'accepted')) as "waiting!",
             (select count(*) from "order" where state = 'payment_due') as "due!""#
    )
    .fetch_one(pool)
    .await?;
    Ok(Counts {
        attempts: attempts.into_iter().map(|a| (a.state, a.count)).collect(),
        gate: gate.into_iter().map(|reason| (reason, 1)).collect(),
        findings: findings.into_iter().map(|f| (f.class, f.count)).collect(),
        doubt_age_s: ages.doubt,
        reconciled_age_s: ages.reconciled,
        webhooks: ages.webhooks,
        webhook_age_s: ages.webhook,
        refunds_failed: ages.failed,
        refunds_waiting: ages.waiting,
        payment_due: ages.due,
    })
}
