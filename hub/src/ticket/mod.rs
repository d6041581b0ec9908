//! Tickets: one a seat, made in the transaction that sells it, valid once the money is captured.
//!
//! Invariants
//! - A seat has at most one ticket that is not void (`ticket_one_per_seat`).
//! - The id of a ticket is 128 bits of chance and is what its code carries: a reissued ticket has another.
//! - A dead ticket stays dead: [`void`] is the only way there, and there is none back.

pub mod code; // the signed code
pub mod key; // what signs it, and what a door is given
pub mod door; // codes that are genuine and not good
pub mod sheet; // what stands on an order's tickets
pub mod pdf; // how it looks on paper
pub mod press; // drawing them, a bounded number at a time
pub mod print; // what was printed, and what became of it

use chrono::{DateTime, Utc};
use fullhouse_protocol::tickets::Reissued;
use rand::RngCore;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{clock, db::Tx, seat_map::SeatNo};

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
    seat_nos: &[SeatNo],
    state: State,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let made = make(tx, event_id, seat_nos, now).await?;
    issue_made(tx, order_id, event_id, &made, state, now).await
}

/// What stands on a ticket that is no row yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub seat_no: SeatNo,
    pub ticket_id: Uuid,
    pub code: String,
}

/// Signs a code for each seat. Nothing is written down.
pub async fn make(tx: &mut Tx, event_id: i64, seat_nos: &[SeatNo], now: DateTime<Utc>) -> sqlx::Result<Vec<Made>> {
    let (key_id, secret) = key::signing_key(tx, now).await?;
    let sign = |&seat_no: &SeatNo| {
        let mut chance = [0; 16];
        rand::rng().fill_bytes(&mut chance);
        let ticket_id = Uuid::from_bytes(chance);
        let code = code::sign(&code::Claim { key_id: key_id as u16, ticket_id, event_id, seat_no }, &secret);
        Made { seat_no, ticket_id, code }
    };
    Ok(seat_nos.iter().map(sign).collect())
}

/// [`issue`], of tickets that may be on paper already: a terminal printed them from its lease.
pub async fn issue_made(
    tx: &mut Tx,
    order_id: Uuid,
    event_id: i64,
    made: &[Made],
    state: State,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let ids: Vec<Uuid> = made.iter().map(|m| m.ticket_id).collect();
    let seat_nos: Vec<SeatNo> = made.iter().map(|m| m.seat_no).collect();
    let codes: Vec<String> = made.iter().map(|m| m.code.clone()).collect();
    sqlx::query!(
        "insert into ticket (id, order_id, event_id, seat_no, code, state, created_at)
         select t.id, $1, $2, t.seat_no, t.code, $3, $4
         from unnest($5::uuid[], $6::int[], $7::text[]) as t (id, seat_no, code)",
        order_id,
        event_id,
        state.name(),
        now,
        &ids,
        &seat_nos,
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

/// These seats' tickets of an order, or all of them, are dead from now on: refunded, exchanged, given
/// back. Says how many died; those that were dead before keep their time and reason.
pub async fn void(
    tx: &mut Tx,
    order_id: Uuid,
    seats: Option<&[SeatNo]>,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<u64> {
    let done = sqlx::query!(
        "update ticket set state = 'void', voided_at = $4, void_reason = $3
         where order_id = $1 and state <> 'void' and ($2::int[] is null or seat_no = any($2))",
        order_id,
        seats,
        reason,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

#[derive(Debug, thiserror::Error)]
pub enum ReissueError {
    #[error("there is no such ticket")]
    Unknown,
    #[error("the ticket is not valid")]
    NotValid,
    #[error("reading or writing the ticket")]
    Database(#[from] sqlx::Error),
}

/// A new ticket takes the place of a valid one, whose code dies in the same transaction. Asked again for a
/// ticket that was replaced, it answers with what replaced it. The event's lock is held by `tx`.
pub async fn reissue(
    tx: &mut Tx,
    ticket_id: Uuid,
    reason: &str,
    actor: &str,
) -> Result<(Uuid, Reissued), ReissueError> {
    let old = sqlx::query!(
        r#"select t.order_id, t.event_id, t.seat_no, t.state, n.id as "new_id?", n.code as "new_code?", n.state as "new_state?"
           from ticket t left join ticket n on n.id = t.replaced_by where t.id = $1 for no key update of t"#,
        ticket_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ReissueError::Unknown)?;
    let answer = |id, code| Reissued { ticket_id: id, seat_no: old.seat_no, code, replaces: ticket_id };
    if let (Some(id), Some(code), Some("valid")) = (old.new_id, old.new_code, old.new_state.as_deref()) {
        return Ok((old.order_id, answer(id, code)));
    }
    if old.state != State::Valid.name() {
        return Err(ReissueError::NotValid);
    }
    let now = clock::now(tx).await?;
    void(tx, old.order_id, Some(&[old.seat_no]), "reissued", now).await?;
    issue(tx, old.order_id, old.event_id, &[old.seat_no], State::Valid, now).await?;
    let new = sqlx::query!(
        "update ticket o set replaced_by = n.id from ticket n
         where o.id = $1 and n.event_id = $2 and n.seat_no = $3 and n.state = 'valid' returning n.id, n.code",
        ticket_id,
        old.event_id,
        old.seat_no
    )
    .fetch_one(&mut **tx)
    .await?;
    print::write_down_reissue(tx, ticket_id, old.order_id, reason, actor, now).await?;
    Ok((old.order_id, answer(new.id, new.code)))
}

/// The event of a ticket, whose lock a verb has to take.
pub async fn event_of(db: &mut PgConnection, ticket_id: Uuid) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!("select event_id from ticket where id = $1", ticket_id).fetch_optional(db).await
}
