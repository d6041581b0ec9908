//! The ledger of prints: one job a ticket, so that after "paper out" it is known which of five came out.
//!
//! Invariants
//! - A ticket is on paper once. One that was printed, or may have been, is printed again only as a new
//!   ticket: [`super::reissue`] kills the old code first.
//! - A job whose end nobody reported counts as printed: it may lie in a buffer and come out later.

use chrono::{DateTime, Utc};
use fullhouse_protocol::tickets::{PrintJob, PrintState};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{clock, db::Tx};

#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    #[error("there is no such order")]
    OrderUnknown,
    #[error("the order has no such valid ticket")]
    NotValid,
    /// Reissue these, with a reason.
    #[error("printed before: {0:?}")]
    Printed(Vec<Uuid>),
    #[error("reading or writing the ledger of prints")]
    Database(#[from] sqlx::Error),
}

/// Opens a job for each of an order's tickets that is not on paper yet, or for those named.
pub async fn begin(tx: &mut Tx, order_id: Uuid, named: &[Uuid], actor: &str) -> Result<Vec<PrintJob>, PrintError> {
    // The order's row keeps two terminals from printing the same ticket.
    sqlx::query!(r#"select id from "order" where id = $1 for no key update"#, order_id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(PrintError::OrderUnknown)?;
    let now = clock::now(tx).await?;
    let tickets = sqlx::query!(
        r#"select t.id, t.seat_no,
                  exists(select from ticket_print p where p.ticket_id = t.id and p.state <> 'failed') as "printed!"
           from ticket t where t.order_id = $1 and t.state = 'valid' and (cardinality($2::uuid[]) = 0 or t.id = any($2))
           order by t.seat_no"#,
        order_id,
        named
    )
    .fetch_all(&mut **tx)
    .await?;
    if tickets.is_empty() || named.iter().any(|id| !tickets.iter().any(|t| t.id == *id)) {
        return Err(PrintError::NotValid);
    }
    let (printed, left): (Vec<_>, Vec<_>) = tickets.into_iter().partition(|t| t.printed);
    if !printed.is_empty() && (!named.is_empty() || left.is_empty()) {
        return Err(PrintError::Printed(printed.into_iter().map(|t| t.id).collect()));
    }
    let jobs: Vec<PrintJob> = left
        .into_iter()
        .map(|ticket| PrintJob {
            id: Uuid::now_v7(),
            ticket_id: ticket.id,
            seat_no: ticket.seat_no,
            state: PrintState::Sent,
            reason: String::new(),
            actor: actor.to_owned(),
            created_at: now,
        })
        .collect();
    let (ids, of): (Vec<Uuid>, Vec<Uuid>) = jobs.iter().map(|job| (job.id, job.ticket_id)).unzip();
    open(tx, order_id, &ids, &of, actor, now).await?;
    Ok(jobs)
}

/// Writes down that a terminal without a network has printed these, or may have: a job whose end it did not tell.
pub async fn write_down_printed(
    tx: &mut Tx,
    order_id: Uuid,
    ticket_ids: &[Uuid],
    actor: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let ids: Vec<Uuid> = ticket_ids.iter().map(|_| Uuid::now_v7()).collect();
    open(tx, order_id, &ids, ticket_ids, actor, now).await
}

async fn open(
    tx: &mut Tx,
    order_id: Uuid,
    ids: &[Uuid],
    ticket_ids: &[Uuid],
    actor: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ticket_print (id, ticket_id, order_id, actor, created_at)
         select id, ticket_id, $3, $4, $5 from unnest($1::uuid[], $2::uuid[]) as j (id, ticket_id)",
        ids,
        ticket_ids,
        order_id,
        actor,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Writes down what became of a job. The first report decides; the same again changes nothing. False: there
/// is no such job, or it ended otherwise.
pub async fn report(tx: &mut Tx, job_id: Uuid, printed: bool) -> sqlx::Result<bool> {
    let now = clock::now(tx).await?;
    let state = if printed { "printed" } else { "failed" };
    let done = sqlx::query!(
        "update ticket_print set state = $2, ended_at = coalesce(ended_at, $3) where id = $1 and state in ('sent', $2)",
        job_id,
        state,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The order that a job is of.
pub async fn order_of(db: &mut PgConnection, job_id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!("select order_id from ticket_print where id = $1", job_id).fetch_optional(db).await
}

/// Everything that was printed of an order, the earliest first.
pub async fn ledger(db: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Vec<PrintJob>> {
    let rows = sqlx::query!(
        "select p.id, p.ticket_id, t.seat_no, p.state, p.reason, p.actor, p.created_at
         from ticket_print p join ticket t on t.id = p.ticket_id where p.order_id = $1 order by p.created_at, t.seat_no, p.id",
        order_id
    )
    .fetch_all(db)
    .await?;
    let jobs = rows.into_iter().map(|row| PrintJob {
        id: row.id,
        ticket_id: row.ticket_id,
        seat_no: row.seat_no,
        state: match row.state.as_str() {
            "printed" => PrintState::Printed,
            "failed" => PrintState::Failed,
            "reissued" => PrintState::Reissued,
            _ => PrintState::Sent,
        },
        reason: row.reason,
        actor: row.actor,
        created_at: row.created_at,
    });
    Ok(jobs.collect())
}

/// The old ticket's last row: who killed its code, and why.
pub(super) async fn write_down_reissue(
    tx: &mut Tx,
    ticket_id: Uuid,
    order_id: Uuid,
    reason: &str,
    actor: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into ticket_print (id, ticket_id, order_id, state, reason, actor, created_at, ended_at)
         values ($1, $2, $3, 'reissued', $4, $5, $6, $6)",
        Uuid::now_v7(),
        ticket_id,
        order_id,
        reason,
        actor,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
