//! A ticket is issued once more: the old code dies in the transaction that makes the new one.

use sqlx::PgPool;
use uuid::Uuid;

use super::log;
use crate::{
    clock,
    db::{self, Tx},
    ticket,
};

#[derive(Debug, thiserror::Error)]
pub enum ReissueError {
    #[error("there is no such ticket")]
    TicketUnknown,
    /// Given back, exchanged, or issued anew already.
    #[error("the ticket is dead")]
    TicketDead,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Returns the order whose ticket it is.
pub async fn reissue(pool: PgPool, ticket_id: Uuid, reason: String, actor: String) -> Result<Uuid, ReissueError> {
    db::write(async move {
        let event_id = sqlx::query_scalar!("select event_id from ticket where id = $1", ticket_id)
            .fetch_optional(&pool)
            .await?
            .ok_or(ReissueError::TicketUnknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        let order_id = reissue_in(&mut tx, ticket_id, &reason, &actor).await?;
        tx.commit().await?;
        Ok(order_id)
    })
    .await
}

async fn reissue_in(tx: &mut Tx, ticket_id: Uuid, reason: &str, actor: &str) -> Result<Uuid, ReissueError> {
    let old = sqlx::query!("select order_id, event_id, seat_no, state from ticket where id = $1 for update", ticket_id)
        .fetch_one(&mut **tx)
        .await?;
    let state = match old.state.as_str() {
        "valid" => ticket::State::Valid,
        "pending" => ticket::State::Pending,
        _ => return Err(ReissueError::TicketDead),
    };
    let now = clock::now(tx).await?;
    sqlx::query!("update ticket set state = 'void' where id = $1", ticket_id).execute(&mut **tx).await?;
    ticket::issue(tx, old.order_id, old.event_id, &[old.seat_no], state, now).await?;
    let said = format!("the ticket of seat {} was issued anew: {reason}", old.seat_no);
    log::note(tx, old.order_id, "reissue", &said, actor, now).await?;
    Ok(old.order_id)
}
