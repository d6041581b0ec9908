//! Seats that wait until the others are sold, and go on sale by themselves then: standing room, most of all.
//!
//! Invariants
//! - A seat that waits is blocked, and its own row names its rule: what somebody has put to another use since, or given up
//!   for good, waits no more, and no rule opens it.
//! - Whether nothing is left is asked after the event's lock, in the transaction that opens: a seat that comes back in that
//!   moment is seen, or comes back after the opening. Later returns take nothing back.
//! - A rule ends once (`until_sold_ends_once`), whichever hub notices first.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fullhouse_protocol::until_sold::{SeatsLeft, UntilSold, UntilSoldList};
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    blocking::{self, Block, BlockError},
    id_of,
};
use crate::{
    auth::{Actor, Deed, log},
    checkout::log::named,
    clock,
    db::{self, Tx},
    seat_map::{SeatNo, SeatSet},
};

/// So many are listed; of those that have ended, the latest.
const LISTED_MAX: i64 = 100;
/// Of seats, in a line of the log.
const LINE_MAX: usize = 2_000;
/// Who acts when nobody does.
const BY_ITSELF: &str = "until sold";
/// Why it did, for whoever asks for a seat.
const SOLD: &str = "the others are sold";

#[derive(Debug, thiserror::Error)]
pub enum UntilSoldError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event is cancelled")]
    EventCancelled,
    /// They would go on sale at once.
    #[error("nothing else is on sale")]
    NothingLeft,
    #[error("there is no such rule")]
    Unknown,
    #[error("the rule has ended: {outcome}")]
    Over { outcome: String },
    #[error("the key was used for another request")]
    KeyReused,
    #[error(transparent)]
    Block(#[from] BlockError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Who does something about what waits.
#[derive(Debug, Clone)]
pub struct By {
    pub terminal_id: Uuid,
    pub actor: Actor,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of them, or none.
    Seats(SeatSet),
    /// Whatever can wait of it.
    Section(String),
}

/// How a rule is ended by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// On sale now.
    Open,
    /// Its seats stay blocked.
    Drop,
}

impl End {
    fn outcome(self) -> &'static str {
        match self {
            Self::Open => "on_sale",
            Self::Drop => "dropped",
        }
    }

    fn verb(self) -> Block {
        match self {
            Self::Open => Block::Unblock,
            Self::Drop => Block::Block,
        }
    }
}

/// Has seats wait until the others are sold. The same key again finds the same rule.
pub async fn wait(
    pool: PgPool,
    event_id: i64,
    by: By,
    key: String,
    wanted: Wanted,
) -> Result<UntilSold, UntilSoldError> {
    let id = id_of("until sold", by.terminal_id, &key);
    let body_hash = Sha256::digest(format!("{event_id} {wanted:?} {:?}", by.reason)).to_vec();
    db::write(async move {
        let mut tx = blocking::block_tx(&pool, event_id, &by.actor).await?;
        let before =
            sqlx::query_scalar!("select body_hash from until_sold where id = $1", id).fetch_optional(&mut *tx).await?;
        match before {
            Some(before) if before != body_hash => return Err(UntilSoldError::KeyReused),
            Some(_) => {}
            None => wait_in(&mut tx, id, event_id, &by, &body_hash, wanted).await?,
        }
        let stands = one(&mut tx, id).await?;
        tx.commit().await?;
        Ok(stands)
    })
    .await
}

async fn wait_in(
    tx: &mut Tx,
    id: Uuid,
    event_id: i64,
    by: &By,
    body_hash: &[u8],
    wanted: Wanted,
) -> Result<(), UntilSoldError> {
    let sale_state = sqlx::query_scalar!("select sale_state from event where id = $1 for share", event_id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(UntilSoldError::EventUnknown)?;
    if sale_state == "cancelled" {
        return Err(UntilSoldError::EventCancelled);
    }
    let verb = Block::Wait(id);
    let sorted = match wanted {
        Wanted::Seats(seats) => blocking::named(tx, event_id, &seats, verb).await?,
        Wanted::Section(section) => blocking::of_section(tx, event_id, section, verb).await?,
    };
    if sorted.change.is_empty() {
        return Err(BlockError::SeatsInUse(Vec::new()).into()); // a section of which nothing can wait
    }
    sqlx::query!(
        "insert into until_sold (id, event_id, body_hash, reason, made_by, terminal_id, made_at) values ($1, $2, $3, $4, $5, $6, $7)",
        id,
        event_id,
        body_hash,
        by.reason,
        by.actor.name(),
        by.terminal_id,
        sorted.now
    )
    .execute(&mut **tx)
    .await?;
    blocking::change(tx, event_id, &sorted, verb, &by.reason, by.actor.name()).await?;
    // Counted without them.
    let left = left(tx, event_id, sorted.now).await?;
    if left.is_none() { Err(UntilSoldError::NothingLeft) } else { Ok(()) }
}

/// Ends a rule before its time. Ended so before: no error.
pub async fn end(pool: PgPool, id: Uuid, by: By, how: End) -> Result<UntilSold, UntilSoldError> {
    db::write(async move {
        let event_id = sqlx::query_scalar!("select event_id from until_sold where id = $1", id)
            .fetch_optional(&pool)
            .await?
            .ok_or(UntilSoldError::Unknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        by.actor.acts(&mut tx).await?;
        let rule = one(&mut tx, id).await?;
        match rule.outcome {
            Some(outcome) if outcome != how.outcome() => return Err(UntilSoldError::Over { outcome }),
            Some(_) => {}
            None => end_in(&mut tx, &rule, how.outcome(), how.verb(), &by.reason, by.actor.name()).await?,
        }
        let stands = one(&mut tx, id).await?;
        tx.commit().await?;
        Ok(stands)
    })
    .await
}

/// Frees what waits still, or leaves it blocked. Retired seats stay as they are, and wait no more.
async fn end_in(
    tx: &mut Tx,
    rule: &UntilSold,
    outcome: &str,
    verb: Block,
    reason: &str,
    actor: &str,
) -> Result<(), UntilSoldError> {
    let (id, event_id) = (rule.until_sold_id, rule.event_id);
    let mut sorted = blocking::sort(tx, event_id, &rule.seats, verb).await?;
    sorted.take_those_that_wait();
    blocking::change(tx, event_id, &sorted, verb, reason, actor).await?;
    sqlx::query!(
        "update event_seat set until_sold_id = null, version = version + 1 where event_id = $1 and until_sold_id = $2",
        event_id,
        id
    )
    .execute(&mut **tx)
    .await?;
    let opened = if outcome == "dropped" { 0 } else { sorted.change.len() as i32 };
    let ended = sqlx::query!(
        "update until_sold set ended_at = $2, ended_by = $3, outcome = $4, seats_opened = $5 where id = $1 and ended_at is null",
        id,
        sorted.now,
        actor,
        outcome,
        opened
    )
    .execute(&mut **tx)
    .await?;
    if ended.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::Protocol("a rule has ended".into()).into()) }
}

/// Looks every `every_s` whether somewhere nothing is left, until `stop`. Every hub does this.
pub async fn run(pool: PgPool, every_s: u64, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_secs(every_s));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        if let Err(error) = look(&pool).await {
            tracing::warn!(%error, "seats that wait until others are sold could not be looked at; the next round will");
        }
    }
}

/// Opens what waits wherever nothing else is left. Returns how many rules it ended. An event that fails keeps no other one
/// waiting.
pub async fn look(pool: &PgPool) -> sqlx::Result<usize> {
    let waiting =
        sqlx::query_scalar!("select distinct event_id from until_sold where ended_at is null order by event_id")
            .fetch_all(pool)
            .await?;
    let mut ended = 0;
    for event_id in waiting {
        match look_at(pool, event_id).await {
            Ok(rules) => ended += rules,
            Err(error) => {
                tracing::warn!(event.id = event_id, %error, "what waits there did not go on sale; the next round looks again")
            }
        }
    }
    Ok(ended)
}

async fn look_at(pool: &PgPool, event_id: i64) -> Result<usize, UntilSoldError> {
    let mut db = pool.acquire().await?;
    let now = clock::now(&mut db).await?;
    if !on_sale(&mut db, event_id, now).await? || !left(&mut db, event_id, now).await?.is_none() {
        return Ok(0);
    }
    drop(db);
    open(pool.clone(), event_id).await
}

/// What was seen without the lock is asked again with it.
async fn open(pool: PgPool, event_id: i64) -> Result<usize, UntilSoldError> {
    db::write(async move {
        let mut tx = db::event_tx(&pool, event_id).await?;
        let now = clock::now(&mut tx).await?;
        if !on_sale(&mut tx, event_id, now).await? || !left(&mut tx, event_id, now).await?.is_none() {
            return Ok(0);
        }
        let rules = read(&mut tx, None, Some(event_id), true).await?;
        for rule in &rules {
            end_in(&mut tx, rule, "sold_out", Block::Unblock, SOLD, BY_ITSELF).await?;
            let detail = detail(&mut tx, rule).await?;
            let deed = Deed { verb: "until_sold", event_id: Some(event_id), detail: &detail, reason: &rule.reason };
            log::write(&mut tx, BY_ITSELF, None, deed, now).await?;
        }
        tx.commit().await?;
        if !rules.is_empty() {
            let seats: usize = rules.iter().map(|rule| rule.seats.len()).sum();
            tracing::info!(event.id = event_id, seats, "all others are sold: what waited is on sale");
        }
        Ok(rules.len())
    })
    .await
}

/// `All others are sold: 2 seats on sale that Bob at Window 2 had wait since 2026-11-30 18:00:00 UTC (rule …): Floor 4, …`
async fn detail(tx: &mut Tx, rule: &UntilSold) -> sqlx::Result<String> {
    let line = format!(
        "All others are sold: {} seats on sale that {} had wait since {} (rule {}): {}",
        rule.seats.len(),
        rule.made_by,
        rule.made_at.format("%F %T UTC"),
        rule.until_sold_id,
        named(tx, rule.event_id, &rule.seats).await?
    );
    Ok(line.chars().take(LINE_MAX).collect())
}

/// While a sale stands still, or is over, nothing opens.
async fn on_sale(db: &mut PgConnection, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let on_sale = sqlx::query_scalar!(
        r#"select sale_state = 'open' and on_sale_at <= $2 and $2 < off_sale_at as "on_sale!" from event where id = $1"#,
        event_id,
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(on_sale.unwrap_or(false))
}

/// What is left of an event besides what is blocked.
struct Left {
    seats: SeatsLeft,
    sold: i64,
}

impl Left {
    /// The others are sold. If none was, they were never on sale.
    fn is_none(&self) -> bool {
        self.seats.free == 0 && self.seats.held == 0 && self.sold > 0
    }
}

/// Counts what fans may buy. A hold that runs for minutes may end without a sale, and so counts; what is put aside under a
/// name, consigned or leased is spoken for, for weeks maybe. Places for wheelchairs and the seats beside them are left to
/// those who need them: they are the last to go, and nobody is kept waiting for them.
async fn left(db: &mut PgConnection, event_id: i64, now: DateTime<Utc>) -> sqlx::Result<Left> {
    let row = sqlx::query!(
        r#"select count(*) filter (where s.status = 0 or s.held_until <= $2) as "free!",
                  count(*) filter (where s.status = 1 and s.held_until > $2
                      and not exists (select from customer_hold c where c.hold_id = s.hold_id)
                      and not exists (select from consignment c where c.hold_id = s.hold_id)) as "held!",
                  count(*) filter (where s.status = 2) as "sold!"
           from event e join event_seat s on s.event_id = e.id
           join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
           left join seat_trait t on t.event_id = s.event_id and t.seat_no = s.seat_no
           where e.id = $1 and s.status <> 3 and not p.retired and seat_flags(p.flags, t.flags) & 3 = 0
             and exists (select from price r where r.event_id = e.id and r.level = s.level)"#,
        event_id,
        now
    )
    .fetch_one(db)
    .await?;
    Ok(Left { seats: SeatsLeft { free: row.free, held: row.held }, sold: row.sold })
}

/// What waits at an event, and for how much.
pub async fn list(pool: &PgPool, event_id: i64) -> sqlx::Result<UntilSoldList> {
    let mut db = pool.acquire().await?;
    let now = clock::now(&mut db).await?;
    let left = left(&mut db, event_id, now).await?.seats;
    Ok(UntilSoldList { rules: read(&mut db, None, Some(event_id), false).await?, left })
}

async fn one(db: &mut PgConnection, id: Uuid) -> Result<UntilSold, UntilSoldError> {
    read(db, Some(id), None, false).await?.pop().ok_or(UntilSoldError::Unknown)
}

/// Those that wait first, then the latest; all that wait, if only those are asked for.
async fn read(
    db: &mut PgConnection,
    id: Option<Uuid>,
    event_id: Option<i64>,
    only_waiting: bool,
) -> sqlx::Result<Vec<UntilSold>> {
    sqlx::query_as!(
        UntilSold,
        r#"select u.id as until_sold_id, u.event_id, u.reason, u.made_by, u.made_at, u.outcome, u.ended_at, u.ended_by,
                  u.seats_opened as opened,
                  array(select s.seat_no from event_seat s where s.event_id = u.event_id and s.until_sold_id = u.id
                        order by s.seat_no) as "seats!: Vec<SeatNo>"
           from until_sold u
           where ($1::uuid is null or u.id = $1) and ($2::bigint is null or u.event_id = $2)
             and (not $3 or u.ended_at is null)
           order by u.ended_at is not null, u.made_at desc, u.id limit case when $3 then null else $4::bigint end"#,
        id,
        event_id,
        only_waiting,
        LISTED_MAX
    )
    .fetch_all(db)
    .await
}
