//! A lease ends: by the terminal's closing report, or by a person who takes the risk.

use chrono::{DateTime, Utc};
use fullhouse_protocol::{
    lease::{CloseRequest, EndedLease, LeaseState},
    seat::Status,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{expect_rows, lock_journal, state_of};
use crate::{
    auth::Actor,
    clock,
    db::{self, Tx},
    outbox::{self, SeatChange},
    seat_map::SeatNo,
};

#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// Or it is another terminal's.
    #[error("there is no such lease")]
    Unknown,
    /// What was sold is not here yet: giving the rest back would be a guess.
    #[error("the journal is settled up to {next_seq}, without it; seats {missing:?} are not sold here")]
    JournalOpen { next_seq: u64, missing: Vec<SeatNo> },
    /// Later sales of this terminal are settled: the report is of an older state of its journal, or of a copy, and what the
    /// journal sold of the lease since may stand nowhere else.
    #[error("the journal is settled up to {next_seq}, which the report does not know of")]
    JournalBehind { next_seq: u64 },
    /// By the terminal itself: there is nothing to write off.
    #[error("the lease is closed")]
    Closed,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Takes the closing report: what was not sold is on sale again. Told again, the answer is the same; of a lease that was
/// written off meanwhile it says so, and nothing changes.
pub async fn close(
    pool: PgPool,
    terminal_id: Uuid,
    lease_id: Uuid,
    report: CloseRequest,
    actor: Actor,
) -> Result<EndedLease, EndError> {
    db::write(async move {
        let event_id =
            sqlx::query_scalar!("select event_id from lease where id = $1 and terminal_id = $2", lease_id, terminal_id)
                .fetch_optional(&pool)
                .await?
                .ok_or(EndError::Unknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        actor.acts(&mut tx).await?;
        let next_seq = lock_journal(&mut tx, terminal_id).await?;
        if state(&mut tx, lease_id).await? == LeaseState::Open {
            let missing = not_sold(&mut tx, lease_id, &report).await?;
            if next_seq <= report.sold_seqs_to || !missing.is_empty() {
                return Err(EndError::JournalOpen { next_seq, missing });
            }
            if report.sold_seqs_to < next_seq.saturating_sub(1) {
                return Err(EndError::JournalBehind { next_seq });
            }
            let now = clock::now(&mut tx).await?;
            end(&mut tx, lease_id, "closed", None, actor.name(), now).await?;
            give_back(&mut tx, event_id, lease_id, now).await?;
        }
        let ended = ended(&mut tx, lease_id).await?;
        tx.commit().await?;
        Ok(ended)
    })
    .await
}

/// Ends a lease whose terminal is not heard of. What it did not tell may be sold: its seats become a block, never free, and
/// the codes that it may have printed are dead. Told again, the answer is the same.
pub async fn write_off(pool: PgPool, lease_id: Uuid, reason: String, actor: Actor) -> Result<EndedLease, EndError> {
    db::write(async move {
        let event_id = sqlx::query_scalar!("select event_id from lease where id = $1", lease_id)
            .fetch_optional(&pool)
            .await?
            .ok_or(EndError::Unknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        actor.acts(&mut tx).await?;
        match state(&mut tx, lease_id).await? {
            LeaseState::Closed => return Err(EndError::Closed),
            LeaseState::WrittenOff => {}
            LeaseState::Open => {
                let now = clock::now(&mut tx).await?;
                end(&mut tx, lease_id, "written_off", Some(&reason), actor.name(), now).await?;
                block(&mut tx, event_id, lease_id, &format!("written off: {reason}"), actor.name(), now).await?;
            }
        }
        let ended = ended(&mut tx, lease_id).await?;
        tx.commit().await?;
        Ok(ended)
    })
    .await
}

async fn state(tx: &mut Tx, lease_id: Uuid) -> sqlx::Result<LeaseState> {
    let state = sqlx::query_scalar!("select state from lease where id = $1 for no key update", lease_id)
        .fetch_one(&mut **tx)
        .await?;
    Ok(state_of(&state))
}

/// Seats that the report calls sold and that have no order: a sale that was refused, or a report that is wrong. They are
/// somebody's who stands at a door, so they don't go back by themselves.
async fn not_sold(tx: &mut Tx, lease_id: Uuid, report: &CloseRequest) -> sqlx::Result<Vec<SeatNo>> {
    let sold: Vec<SeatNo> = report.sold.iter().copied().collect();
    sqlx::query_scalar!(
        "select seat_no from lease_seat where lease_id = $1 and seat_no = any($2) and state = 'leased' order by seat_no",
        lease_id,
        &sold
    )
    .fetch_all(&mut **tx)
    .await
}

async fn end(
    tx: &mut Tx,
    lease_id: Uuid,
    state: &str,
    reason: Option<&str>,
    actor: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let ended = sqlx::query!(
        "update lease set state = $2, reason = $3, ended_by = $4, ended_at = $5 where id = $1 and state = 'open'",
        lease_id,
        state,
        reason,
        actor,
        now
    )
    .execute(&mut **tx)
    .await?;
    expect_rows(ended.rows_affected(), 1)
}

async fn give_back(tx: &mut Tx, event_id: i64, lease_id: Uuid, now: DateTime<Utc>) -> sqlx::Result<()> {
    let seat_nos = sqlx::query_scalar!(
        "update lease_seat set state = 'returned', dead_at = $2 where lease_id = $1 and state = 'leased' returning seat_no",
        lease_id,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    let freed = sqlx::query!(
        "update event_seat set status = 0, lease_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and lease_id = $3 returning seat_no, version",
        event_id,
        &seat_nos,
        lease_id
    )
    .fetch_all(&mut **tx)
    .await?;
    expect_rows(freed.len() as u64, seat_nos.len())?;
    let free = |seat_no, version| SeatChange { seat_no, status: Status::Available, version, held_until: None };
    let changes: Vec<SeatChange> = freed.into_iter().map(|s| free(s.seat_no, s.version)).collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// The seats look as before to everybody; their rows say that they are nobody's.
async fn block(
    tx: &mut Tx,
    event_id: i64,
    lease_id: Uuid,
    why: &str,
    actor: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let noted = sqlx::query_scalar!(
        "update lease_seat l set state = 'written_off', dead_at = $2, written_off_version = s.version + 1
         from event_seat s
         where l.lease_id = $1 and l.state = 'leased' and s.event_id = l.event_id and s.seat_no = l.seat_no
         returning l.seat_no",
        lease_id,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    let blocked = sqlx::query!(
        "update event_seat set lease_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and lease_id = $3 returning seat_no, version",
        event_id,
        &noted,
        lease_id
    )
    .fetch_all(&mut **tx)
    .await?;
    expect_rows(blocked.len() as u64, noted.len())?;
    let why: String = why.chars().take(500).collect();
    sqlx::query!(
        "insert into seat_note (event_id, seat_no, verb, reason, actor, created_at)
         select $1, s, 'block', $3, $4, $5 from unnest($2::int[]) as s",
        event_id,
        &noted,
        why,
        actor,
        now
    )
    .execute(&mut **tx)
    .await?;
    let still = |seat_no, version| SeatChange { seat_no, status: Status::Blocked, version, held_until: None };
    let changes: Vec<SeatChange> = blocked.into_iter().map(|s| still(s.seat_no, s.version)).collect();
    outbox::append(tx, event_id, now, &changes).await
}

async fn ended(tx: &mut Tx, lease_id: Uuid) -> sqlx::Result<EndedLease> {
    let row = sqlx::query!(
        r#"select state,
                  array(select seat_no from lease_seat where lease_id = $1 and state in ('sold', 'resold') order by seat_no) as "sold!",
                  array(select seat_no from lease_seat where lease_id = $1 and state in ('returned', 'written_off') order by seat_no) as "returned!"
           from lease where id = $1"#,
        lease_id
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(EndedLease { lease_id, state: state_of(&row.state), sold: row.sold, returned: row.returned })
}
