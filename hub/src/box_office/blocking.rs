//! Seats are taken out of a sale and put back into it, or given up for good: by number, or a section at once.
//!
//! Invariants
//! - A seat that is held or sold is never blocked under its owner.
//! - What was given up for good comes back by a verb of its own only.
//! - A seat that waits until the others are sold ([`super::until_sold`]) waits no more once any of these verbs has it.

use chrono::{DateTime, Utc};
use fullhouse_protocol::{box_office::SectionBlocked, seat::Status};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    auth::Actor,
    clock,
    db::{self, Tx},
    outbox::{self, SeatChange},
    seat_map::{SeatNo, SeatSet},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// Out of the sale: house seats, a broken chair, a camera.
    Block,
    /// Given up for good: a broken floor, a view that is none.
    Kill,
    /// Back on sale; not what was given up for good.
    Unblock,
    /// What was given up for good (a refund said that its seat is dead) is on sale after all.
    Revive,
    /// Out of the sale until the others are sold, by this rule.
    Wait(Uuid),
}

impl Block {
    /// As the trail of a seat says it.
    fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Kill => "kill",
            Self::Unblock => "unblock",
            Self::Revive => "revive",
            Self::Wait(_) => "wait",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event has no section {0}")]
    SectionUnknown(String),
    #[error("the event has no seats {0:?}")]
    SeatUnknown(Vec<SeatNo>),
    /// Held or sold, leased to a terminal, or retired from the plan: nothing was changed.
    #[error("seats {0:?} are in use")]
    SeatsInUse(Vec<SeatNo>),
    /// Somebody gave them up for good: only [`Block::Revive`] puts them on sale.
    #[error("seats {0:?} are dead")]
    SeatsDead(Vec<SeatNo>),
    /// Only what is dead is revived.
    #[error("seats {0:?} are not dead")]
    SeatsNotDead(Vec<SeatNo>),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Blocks seats or puts them back on sale; all of them or none. A seat that is so already stays so.
pub async fn block(
    pool: PgPool,
    event_id: i64,
    seats: SeatSet,
    verb: Block,
    reason: String,
    actor: Actor,
) -> Result<(), BlockError> {
    db::write(async move {
        let mut tx = block_tx(&pool, event_id, &actor).await?;
        let sorted = named(&mut tx, event_id, &seats, verb).await?;
        change(&mut tx, event_id, &sorted, verb, &reason, actor.name()).await?;
        tx.commit().await?;
        Ok(())
    })
    .await
}

/// The seats that are named, if the verb can be said of each.
pub(super) async fn named(tx: &mut Tx, event_id: i64, seats: &SeatSet, verb: Block) -> Result<Sorted, BlockError> {
    let mut sorted = sort(tx, event_id, seats.as_slice(), verb).await?;
    let unknown: Vec<SeatNo> = seats.as_slice().iter().copied().filter(|s| !sorted.known.contains(s)).collect();
    if !unknown.is_empty() {
        return Err(BlockError::SeatUnknown(unknown));
    }
    if !sorted.dead.is_empty() {
        return Err(BlockError::SeatsDead(sorted.dead));
    }
    if !sorted.not_dead.is_empty() {
        return Err(BlockError::SeatsNotDead(sorted.not_dead));
    }
    if !sorted.in_use.is_empty() {
        return Err(BlockError::SeatsInUse(sorted.in_use));
    }
    sorted.take_those_that_wait(); // whoever names them wants them for something else
    Ok(sorted)
}

/// The same, of whatever can be of a section; the rest is left as it is.
pub async fn block_section(
    pool: PgPool,
    event_id: i64,
    section: String,
    verb: Block,
    reason: String,
    actor: Actor,
) -> Result<SectionBlocked, BlockError> {
    db::write(async move {
        let mut tx = block_tx(&pool, event_id, &actor).await?;
        let sorted = of_section(&mut tx, event_id, section, verb).await?;
        change(&mut tx, event_id, &sorted, verb, &reason, actor.name()).await?;
        tx.commit().await?;
        let mut left = [sorted.in_use, sorted.dead, sorted.not_dead].concat();
        left.sort_unstable();
        let mut changed: Vec<SeatNo> = sorted.change.into_iter().map(|(seat_no, _)| seat_no).collect();
        changed.sort_unstable();
        Ok(SectionBlocked { changed, left })
    })
    .await
}

/// All seats of a section, by what the verb finds them to be.
pub(super) async fn of_section(tx: &mut Tx, event_id: i64, section: String, verb: Block) -> Result<Sorted, BlockError> {
    let seats = sqlx::query_scalar!(
        "select p.seat_no from event e join plan_seat p on p.plan_revision_id = e.plan_revision_id
         where e.id = $1 and p.section = $2 and not p.retired order by p.seat_no",
        event_id,
        section
    )
    .fetch_all(&mut **tx)
    .await?;
    if seats.is_empty() {
        return Err(BlockError::SectionUnknown(section));
    }
    Ok(sort(tx, event_id, &seats, verb).await?)
}

pub(super) async fn block_tx(pool: &PgPool, event_id: i64, actor: &Actor) -> Result<Tx, BlockError> {
    let exists = sqlx::query_scalar!(r#"select exists(select from event where id = $1) as "exists!""#, event_id)
        .fetch_one(pool)
        .await?;
    if !exists {
        return Err(BlockError::EventUnknown);
    }
    let mut tx = db::event_tx(pool, event_id).await?;
    actor.acts(&mut tx).await?;
    Ok(tx)
}

/// Seats by what a verb finds them to be.
pub(super) struct Sorted {
    known: Vec<SeatNo>,
    /// With their versions.
    pub(super) change: Vec<(SeatNo, i32)>,
    in_use: Vec<SeatNo>,
    dead: Vec<SeatNo>,
    not_dead: Vec<SeatNo>,
    /// To be blocked, and so already, but only until the others are sold; with their versions.
    wait: Vec<(SeatNo, i32)>,
    pub(super) now: DateTime<Utc>,
}

impl Sorted {
    /// They are blocked whatever becomes of the others.
    pub(super) fn take_those_that_wait(&mut self) {
        self.change.append(&mut self.wait);
    }
}

pub(super) async fn sort(tx: &mut Tx, event_id: i64, seats: &[SeatNo], verb: Block) -> sqlx::Result<Sorted> {
    let now = clock::now(tx).await?;
    let rows = sqlx::query!(
        r#"select s.seat_no, s.status, s.version, s.held_until, p.retired, s.lease_id is not null as "leased!",
                  s.until_sold_id is not null as "waits!",
                  coalesce((select n.verb = 'kill' from seat_note n where n.event_id = s.event_id and n.seat_no = s.seat_no
                            order by n.id desc limit 1), false) and s.status = 3 as "dead!"
           from event_seat s join event e on e.id = s.event_id
           join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
           where s.event_id = $1 and s.seat_no = any($2)"#,
        event_id,
        seats
    )
    .fetch_all(&mut **tx)
    .await?;
    let (mut change, mut in_use, mut dead, mut not_dead) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut wait = Vec::new();
    let known = rows.iter().map(|row| row.seat_no).collect();
    for row in rows {
        let over = row.status == 1 && row.held_until.is_some_and(|until| until <= now);
        let status = if over { Status::Available } else { Status::from_bits(row.status as u8) };
        match (verb, status) {
            (Block::Revive, _) if !row.dead => not_dead.push(row.seat_no),
            _ if row.retired || row.leased => in_use.push(row.seat_no),
            (Block::Unblock | Block::Wait(_), Status::Blocked) if row.dead => dead.push(row.seat_no),
            (Block::Wait(_), Status::Blocked) if row.waits => in_use.push(row.seat_no),
            (Block::Block, Status::Blocked) if row.waits => wait.push((row.seat_no, row.version)),
            (Block::Block, Status::Blocked) | (Block::Unblock, Status::Available) => {} // it is so already
            (Block::Kill, Status::Blocked) if row.dead => {}
            (Block::Block | Block::Kill | Block::Wait(_), Status::Available) | (_, Status::Blocked) => {
                change.push((row.seat_no, row.version));
            }
            _ => in_use.push(row.seat_no),
        }
    }
    Ok(Sorted { known, change, in_use, dead, not_dead, wait, now })
}

/// Changes what can be, with a note on each.
pub(super) async fn change(
    tx: &mut Tx,
    event_id: i64,
    sorted: &Sorted,
    verb: Block,
    reason: &str,
    actor: &str,
) -> sqlx::Result<()> {
    if sorted.change.is_empty() {
        return Ok(());
    }
    let (to, waits_for) = match verb {
        Block::Block | Block::Kill => (Status::Blocked, None),
        Block::Wait(until_sold_id) => (Status::Blocked, Some(until_sold_id)),
        Block::Unblock | Block::Revive => (Status::Available, None),
    };
    let (seat_nos, versions): (Vec<SeatNo>, Vec<i32>) = sorted.change.iter().copied().unzip();
    write_block(tx, event_id, &seat_nos, &versions, (to, waits_for), sorted.now).await?;
    let noted = sqlx::query!(
        "insert into seat_note (event_id, seat_no, verb, reason, actor, created_at)
         select $1, s, $3, $4, $5, $6 from unnest($2::int[]) as s",
        event_id,
        &seat_nos,
        verb.name(),
        reason,
        actor,
        sorted.now
    )
    .execute(&mut **tx)
    .await?;
    expect_rows(noted.rows_affected(), seat_nos.len())
}

fn expect_rows(written: u64, expected: usize) -> sqlx::Result<()> {
    if written == expected as u64 {
        return Ok(());
    }
    Err(sqlx::Error::Protocol(format!("{written} of {expected} rows written")))
}

async fn write_block(
    tx: &mut Tx,
    event_id: i64,
    seat_nos: &[SeatNo],
    versions: &[i32],
    (to, waits_for): (Status, Option<Uuid>),
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let changed = sqlx::query!(
        "update event_seat s set status = $4, until_sold_id = $5, hold_id = null, held_until = null, version = s.version + 1
         from unnest($2::int[], $3::int[]) as u(seat_no, version)
         where s.event_id = $1 and s.seat_no = u.seat_no and s.version = u.version and s.status <> 2
         returning s.seat_no, s.version",
        event_id,
        seat_nos,
        versions,
        i16::from(to),
        waits_for
    )
    .fetch_all(&mut **tx)
    .await?;
    expect_rows(changed.len() as u64, seat_nos.len())?;
    let changes: Vec<SeatChange> = changed
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: to, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}
