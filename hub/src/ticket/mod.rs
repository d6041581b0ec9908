//! Tickets: one a seat, made in the transaction that sells it, valid once the money is captured.
//!
//! Invariants
//! - A seat has at most one ticket that is not void (`ticket_one_per_seat`).
//! - The id of a ticket is 128 bits of chance and is what its code carries: a reissued ticket has another.

pub mod code; // the signed code

use chrono::{DateTime, Utc};
use ed25519_dalek::SigningKey;
use rand::RngCore;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::db::Tx;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The seat is sold, the money is on its way.
    Pending,
    Valid,
    Void,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Valid => "valid",
            State::Void => "void",
        }
    }
}

/// Issues one ticket for each of the order's seats. A second call for the same seats fails on `ticket_one_per_seat`.
pub async fn issue(
    tx: &mut Tx,
    order_id: Uuid,
    event_id: i64,
    seat_nos: &[i32],
    state: State,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (key_id, key) = signing_key(tx, now).await?;
    let (mut ids, mut codes) = (Vec::with_capacity(seat_nos.len()), Vec::with_capacity(seat_nos.len()));
    for &seat_no in seat_nos {
        let mut chance = [0; 16];
        rand::rng().fill_bytes(&mut chance);
        let ticket_id = Uuid::from_bytes(chance);
        codes.push(code::sign(&code::Claim { key_id: key_id as u16, ticket_id, event_id, seat_no }, &key));
        ids.push(ticket_id);
    }
    sqlx::query!(
        "insert into ticket (id, order_id, event_id, seat_no, code, state, created_at)
         select t.id, $1, $2, t.seat_no, t.code, $3, $4
         from unnest($5::uuid[], $6::int[], $7::text[]) as t (id, seat_no, code)",
        order_id,
        event_id,
        state.name(),
        now,
        &ids,
        seat_nos,
        &codes,
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The money is captured: the door may let them in. Returns how many became valid.
pub async fn make_valid(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<u64> {
    let done = sqlx::query!("update ticket set state = 'valid' where order_id = $1 and state = 'pending'", order_id)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected())
}

/// The key that new tickets are signed with; made at first use. Older ones stay known to doors.
async fn signing_key(db: &mut PgConnection, now: DateTime<Utc>) -> sqlx::Result<(i16, SigningKey)> {
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
