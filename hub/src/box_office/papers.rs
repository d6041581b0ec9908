//! What staff do with tickets: put another in a ticket's place, print, send again.

use fullhouse_protocol::tickets::{PrintJob, Reissued};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    auth::Actor,
    db, mail,
    ticket::{self, ReissueError, print::PrintError},
    words::Language,
};

pub use crate::ticket::ReissueError as TicketError;

/// Reissues a ticket, and tells its owner: only the new code lets them in.
pub async fn reissue(pool: PgPool, ticket_id: Uuid, reason: String, actor: Actor) -> Result<Reissued, ReissueError> {
    db::write(async move {
        let mut db = pool.acquire().await?;
        let event_id = ticket::event_of(&mut db, ticket_id).await?.ok_or(ReissueError::Unknown)?;
        drop(db);
        let mut tx = db::event_tx(&pool, event_id).await?;
        actor.acts(&mut tx).await?;
        let (order_id, reissued) = ticket::reissue(&mut tx, ticket_id, &reason, actor.name()).await?;
        mail::enqueue(&mut tx, mail::Kind::Reissued, order_id, &reissued.ticket_id.to_string()).await?;
        tx.commit().await?;
        Ok(reissued)
    })
    .await
}

/// Opens print jobs for an order's tickets, or for those named.
pub async fn begin_prints(
    pool: PgPool,
    order_id: Uuid,
    named: Vec<Uuid>,
    actor: Actor,
) -> Result<Vec<PrintJob>, PrintError> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        actor.acts(&mut tx).await?;
        let jobs = ticket::print::begin(&mut tx, order_id, &named, actor.name()).await?;
        tx.commit().await?;
        Ok(jobs)
    })
    .await
}

/// Writes down what became of a print job; see [`ticket::print::report`].
pub async fn report_print(pool: PgPool, job_id: Uuid, printed: bool) -> sqlx::Result<bool> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        let known = ticket::print::report(&mut tx, job_id, printed).await?;
        tx.commit().await?;
        Ok(known)
    })
    .await
}

/// Puts the tickets of an order into the queue of mail once more. False: there is no such order of an account's.
pub async fn mail_again(pool: PgPool, order_id: Uuid, key: String, actor: Actor) -> sqlx::Result<bool> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        actor.acts(&mut tx).await?;
        let known = sqlx::query_scalar!(
            r#"select exists(select from "order" o join buyer b on b.id = o.buyer_id
               where o.id = $1 and b.account_id is not null) as "known!""#,
            order_id
        )
        .fetch_one(&mut *tx)
        .await?;
        if known {
            mail::enqueue(&mut tx, mail::Kind::Tickets, order_id, &format!("again {key}")).await?;
        }
        tx.commit().await?;
        Ok(known)
    })
    .await
}

#[derive(Debug, thiserror::Error)]
pub enum MailToError {
    /// None of them can be printed or sent.
    #[error("the order has no valid tickets")]
    NotReady,
    #[error("its tickets went to enough addresses")]
    TooMany,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Sends the tickets of an order to an address that its customer gives. The same key sends one mail.
pub async fn mail_to(
    pool: PgPool,
    order_id: Uuid,
    key: String,
    address: String,
    language: Language,
    actor: Actor,
) -> Result<(), MailToError> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        actor.acts(&mut tx).await?;
        // The order's row: two tabs of a kiosk's keys count one after the other.
        let ready = sqlx::query_scalar!(
            r#"select exists(select from ticket t where t.order_id = o.id and t.state = 'valid') as "ready!"
               from "order" o where o.id = $1 for no key update of o"#,
            order_id
        )
        .fetch_optional(&mut *tx)
        .await?;
        if ready != Some(true) {
            return Err(MailToError::NotReady);
        }
        if !mail::enqueue_to(&mut tx, order_id, &address, language, &format!("to {key}")).await? {
            return Err(MailToError::TooMany);
        }
        tx.commit().await?;
        Ok(())
    })
    .await
}
