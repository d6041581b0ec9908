//! Keys that sign codes. New tickets use the newest; a door is given every public half, so old tickets stay good.

use chrono::{DateTime, Utc};
use ed25519_dalek::SigningKey;
use fullhouse_protocol::tickets::{TicketKey, TicketKeys};
use rand::RngCore;
use sqlx::PgConnection;

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

/// The key that new tickets are signed with; made at first use.
pub(super) async fn signing_key(db: &mut PgConnection, now: DateTime<Utc>) -> sqlx::Result<(i16, SigningKey)> {
    loop {
        let found = sqlx::query!("select id, secret from ticket_key where retired_at is null order by id desc limit 1")
            .fetch_optional(&mut *db)
            .await?;
        if let Some(row) = found {
            let secret: [u8; 32] =
                row.secret.try_into().map_err(|_| sqlx::Error::Protocol("a ticket key is not 32 bytes".into()))?;
            return Ok((row.id, SigningKey::from_bytes(&secret)));
        }
        let mut secret = [0; 32];
        rand::rng().fill_bytes(&mut secret);
        let key = SigningKey::from_bytes(&secret);
        // Two transactions may come here at once; the second waits for the first, and then reads its key.
        sqlx::query!(
            "insert into ticket_key (id, secret, public, created_at)
             select coalesce(max(id), 0) + 1, $1, $2, $3 from ticket_key
             on conflict do nothing",
            &secret[..],
            &key.verifying_key().to_bytes()[..],
            now,
        )
        .execute(&mut *db)
        .await?;
    }
}
