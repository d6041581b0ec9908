//! Keys that sign codes. New tickets use the newest; a door is given every public half, so old tickets stay good.

use chrono::{DateTime, Utc};
use fullhouse_protocol::tickets::{TicketKey, TicketKeys};
use sqlx::PgConnection;

pub(super) use crate::keys::signing_key;

/// The public halves, the newest first: what `GET /api/ticket-keys` says and `--keys FILE` reads.
pub async fn public_keys(db: &mut PgConnection) -> sqlx::Result<TicketKeys> {
    let rows = sqlx::query!("select id, public, created_at, retired_at from ticket_key order by id desc")
        .fetch_all(db)
        .await?;
    let keys = rows
        .into_iter()
        .map(|row| TicketKey {
            id: row.id as u16,
            public: data_encoding::HEXLOWER.encode(&row.public),
            created_at: row.created_at,
            retired_at: row.retired_at,
        })
        .collect();
    Ok(TicketKeys { keys })
}

/// Makes a key that signs from now on, and retires the one before. Returns its id.
pub async fn rotate(db: &mut PgConnection, now: DateTime<Utc>) -> sqlx::Result<u16> {
    sqlx::query!("update ticket_key set retired_at = $1 where retired_at is null", now).execute(&mut *db).await?;
    Ok(signing_key(db, now).await?.0 as u16)
}
