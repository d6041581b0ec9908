//! What a batch reads and writes.
//!
//! Invariants
//! - Everything is read after the event's lock is taken, so nobody else changes it until the commit.
//! - A write names the version that it believes in, and expects exactly as many rows as it names.
//! - The rows of a hold whose seats somebody took over are not written by whoever takes them.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    outbox::{self, SeatChange},
    seat_map::SeatNo,
};

/// The event as this batch sees it.
#[derive(Debug, Clone)]
pub struct EventRules {
    pub event_id: i64,
    pub plan_revision_id: i64,
    pub seat_limit: i32,
    pub hold_ttl_s: i32,
    pub churn_seats_max: i32,
    pub single_seat_rule: bool,
    pub consecutive_rule: bool,
    pub seats_min: i32,
    pub sale_state: String,
    pub on_sale_at: DateTime<Utc>,
    pub off_sale_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeatRow {
    pub status: Status,
    pub version: i32,
    pub hold_id: Option<Uuid>,
    pub held_until: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HoldRow {
    pub id: Uuid,
    pub buyer_id: Uuid,
    pub seats: Vec<SeatNo>,
    pub held_until: DateTime<Utc>,
    pub frozen: bool,
    pub version: i32,
    pub seats_taken: i32,
    /// `live`, `released`, `expired` or `bought`.
    pub state: &'static str,
}

impl HoldRow {
    pub fn is_live(&self, now: DateTime<Utc>) -> bool {
        self.state == "live" && self.held_until > now
    }
}

#[derive(Debug, Clone)]
pub struct Answered {
    pub hold_id: Uuid,
    pub body_hash: Vec<u8>,
    /// JSON.
    pub answer: String,
}

/// The rows that a batch is about, as they are and as its decisions make them.
#[derive(Debug)]
pub struct Ledger {
    pub now: DateTime<Utc>,
    pub event: EventRules,
    pub seats: BTreeMap<SeatNo, SeatRow>,
    pub holds: HashMap<Uuid, HoldRow>,
    /// The hold of a buyer whose state is live, even if its time has passed.
    pub hold_of: HashMap<Uuid, Uuid>,
    pub bought: HashMap<Uuid, i32>,
    pub taken_lately: HashMap<Uuid, i32>,
    pub answered: HashMap<(Uuid, String), Answered>,
    pub dirty_seats: HashSet<SeatNo>,
    pub new_holds: HashSet<Uuid>,
    pub dirty_holds: HashSet<Uuid>,
    pub new_answers: Vec<(Uuid, String)>,
}

/// What to read.
#[derive(Debug, Default)]
pub struct Wanted {
    pub buyers: Vec<Uuid>,
    pub hold_ids: Vec<Uuid>,
    pub seats: Vec<SeatNo>,
    pub keys: Vec<(Uuid, String)>,
}

pub async fn read(db: &mut PgConnection, event_id: i64, wanted: Wanted) -> sqlx::Result<Option<Ledger>> {
    let Some(e) = sqlx::query!(
        r#"select db_clock() as "now!", plan_revision_id, seat_limit, hold_ttl_s, churn_seats_max, single_seat_rule,
                  consecutive_rule, seats_min,
                  sale_state, on_sale_at, off_sale_at
           from event where id = $1"#,
        event_id
    )
    .fetch_optional(&mut *db)
    .await?
    else {
        return Ok(None);
    };
    let mut ledger = Ledger {
        now: e.now,
        event: EventRules {
            event_id,
            plan_revision_id: e.plan_revision_id,
            seat_limit: e.seat_limit,
            hold_ttl_s: e.hold_ttl_s,
            churn_seats_max: e.churn_seats_max,
            single_seat_rule: e.single_seat_rule,
            consecutive_rule: e.consecutive_rule,
            seats_min: e.seats_min,
            sale_state: e.sale_state,
            on_sale_at: e.on_sale_at,
            off_sale_at: e.off_sale_at,
        },
        seats: BTreeMap::new(),
        holds: HashMap::new(),
        hold_of: HashMap::new(),
        bought: HashMap::new(),
        taken_lately: HashMap::new(),
        answered: HashMap::new(),
        dirty_seats: HashSet::new(),
        new_holds: HashSet::new(),
        dirty_holds: HashSet::new(),
        new_answers: Vec::new(),
    };
    read_buyers(db, &mut ledger, &wanted).await?;
    read_answers(db, &mut ledger, &wanted).await?;
    read_seats(db, &mut ledger, wanted.seats).await?;
    Ok(Some(ledger))
}

async fn read_buyers(db: &mut PgConnection, ledger: &mut Ledger, wanted: &Wanted) -> sqlx::Result<()> {
    let event_id = ledger.event.event_id;
    let holds = sqlx::query!(
        "select id, buyer_id, seat_nos, held_until, attempt_id, version, seats_taken from hold
         where event_id = $1 and state = 'live' and (buyer_id = any($2) or id = any($3))",
        event_id,
        &wanted.buyers,
        &wanted.hold_ids
    )
    .fetch_all(&mut *db)
    .await?;
    for h in holds {
        ledger.hold_of.insert(h.buyer_id, h.id);
        ledger.holds.insert(
            h.id,
            HoldRow {
                id: h.id,
                buyer_id: h.buyer_id,
                seats: h.seat_nos,
                held_until: h.held_until,
                frozen: h.attempt_id.is_some(),
                version: h.version,
                seats_taken: h.seats_taken,
                state: "live",
            },
        );
    }
    if wanted.buyers.is_empty() {
        return Ok(());
    }
    // What a buyer has bought and how much they have taken is summed from the rows; there is no
    // counter that could fall out of step.
    let sums = sqlx::query!(
        r#"select b.buyer_id as "buyer_id!",
                  (select count(*) from "order" o join order_line l on l.order_id = o.id
                   where o.event_id = $1 and o.buyer_id = b.buyer_id and l.state = 'sold' and l.seat_no is not null)::int as "bought!",
                  (select coalesce(sum(h.seats_taken), 0) from hold h
                   where h.event_id = $1 and h.buyer_id = b.buyer_id and h.created_at > $3::timestamptz - interval '1 hour')::int as "taken!"
           from unnest($2::uuid[]) as b(buyer_id)"#,
        event_id,
        &wanted.buyers,
        ledger.now
    )
    .fetch_all(&mut *db)
    .await?;
    for s in sums {
        ledger.bought.insert(s.buyer_id, s.bought);
        ledger.taken_lately.insert(s.buyer_id, s.taken);
    }
    Ok(())
}

async fn read_answers(db: &mut PgConnection, ledger: &mut Ledger, wanted: &Wanted) -> sqlx::Result<()> {
    if wanted.keys.is_empty() {
        return Ok(());
    }
    let (buyers, keys): (Vec<Uuid>, Vec<String>) = wanted.keys.iter().cloned().unzip();
    let rows = sqlx::query!(
        // One look-up a key: joined freely, the planner may read the whole table, which grows.
        r#"select r.buyer_id, r.key, r.body_hash, r.hold_id, r.answer::text as "answer!"
           from unnest($1::uuid[], $2::text[]) as w(buyer_id, key)
           cross join lateral (select * from hold_request r where r.buyer_id = w.buyer_id and r.key = w.key limit 1) as r"#,
        &buyers,
        &keys
    )
    .fetch_all(&mut *db)
    .await?;
    for r in rows {
        ledger
            .answered
            .insert((r.buyer_id, r.key), Answered { hold_id: r.hold_id, body_hash: r.body_hash, answer: r.answer });
    }
    Ok(())
}

async fn read_seats(db: &mut PgConnection, ledger: &mut Ledger, mut seats: Vec<SeatNo>) -> sqlx::Result<()> {
    seats.extend(ledger.holds.values().flat_map(|h| h.seats.iter().copied()));
    seats.sort_unstable();
    seats.dedup();
    if seats.is_empty() {
        return Ok(());
    }
    // Columns, not rows: a batch may be about a thousand seats.
    let columns = sqlx::query!(
        r#"select coalesce(array_agg(seat_no), '{}') as "seat_nos!", coalesce(array_agg(status), '{}') as "statuses!",
                  coalesce(array_agg(version), '{}') as "versions!",
                  coalesce(array_agg(hold_id), '{}') as "hold_ids!: Vec<Option<Uuid>>",
                  coalesce(array_agg(held_until), '{}') as "held_until!: Vec<Option<DateTime<Utc>>>"
           from event_seat where event_id = $1 and seat_no = any($2)"#,
        ledger.event.event_id,
        &seats
    )
    .fetch_one(&mut *db)
    .await?;
    let rows = columns.seat_nos.into_iter().zip(columns.statuses).zip(columns.versions);
    for (((seat_no, status), version), (hold_id, held_until)) in
        rows.zip(columns.hold_ids.into_iter().zip(columns.held_until))
    {
        let status = Status::from_bits(status as u8);
        ledger.seats.insert(seat_no, SeatRow { status, version, hold_id, held_until });
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("{what}: {written} rows written where {expected} were expected")]
    Stale { what: &'static str, written: u64, expected: u64 },
}

fn expect(what: &'static str, written: u64, expected: usize) -> Result<(), RecordError> {
    if written == expected as u64 {
        return Ok(());
    }
    Err(RecordError::Stale { what, written, expected: expected as u64 })
}

/// Writes what the decisions changed. Returns the changes of seats, as the outbox has them.
pub async fn record(db: &mut PgConnection, ledger: &Ledger) -> Result<Vec<SeatChange>, RecordError> {
    record_holds(db, ledger).await?;
    let changes = record_seats(db, ledger).await?;
    record_answers(db, ledger).await?;
    outbox::append(db, ledger.event.event_id, ledger.now, &changes).await?;
    Ok(changes)
}

async fn record_holds(db: &mut PgConnection, ledger: &Ledger) -> Result<(), RecordError> {
    // Endings first: a buyer whose hold ran out may have a new one in the same batch.
    let changed: Vec<&HoldRow> =
        ledger.dirty_holds.iter().filter(|id| !ledger.new_holds.contains(id)).map(|id| &ledger.holds[id]).collect();
    if !changed.is_empty() {
        let ids: Vec<Uuid> = changed.iter().map(|h| h.id).collect();
        let versions: Vec<i32> = changed.iter().map(|h| h.version).collect();
        let states: Vec<String> = changed.iter().map(|h| h.state.to_owned()).collect();
        let taken: Vec<i32> = changed.iter().map(|h| h.seats_taken).collect();
        // Postgres has no arrays of arrays of different lengths: the seats travel as text.
        let seats: Vec<String> = changed.iter().map(|h| array_literal(&h.seats)).collect();
        // The price of a hold that has changed is no longer right, so its open order goes. An attempt that
        // lives keeps its order: it froze the hold, so only the hold's end can be what happened here.
        // The order says why it went: its time ran out, its buyer gave the seats back, or wants others.
        let written = sqlx::query_scalar!(
            r#"with changed as (
                 update hold h set seat_nos = u.seats::int[], state = u.state, seats_taken = u.taken, version = h.version + 1,
                        ended_at = case when u.state = 'live' then null else $7::timestamptz end
                 from unnest($2::uuid[], $3::int[], $4::text[], $5::text[], $6::int[]) as u(id, version, state, seats, taken)
                 where h.id = u.id and h.event_id = $1 and h.version = u.version - 1 and h.state = 'live'
                 returning h.id, h.state, h.attempt_id),
               cancelled as (
                 update "order" o set state = 'cancelled',
                        cancel_reason = case c.state when 'expired' then 'time_over' when 'live' then 'replaced' else 'buyer' end
                 from changed c
                 where o.hold_id = c.id and o.state = 'open' and c.attempt_id is null)
               select count(*) as "count!" from changed"#,
            ledger.event.event_id,
            &ids,
            &versions,
            &states,
            &seats,
            &taken,
            ledger.now
        )
        .fetch_one(&mut *db)
        .await?;
        expect("holds changed", written as u64, changed.len())?;
    }
    let new: Vec<&HoldRow> = ledger.new_holds.iter().map(|id| &ledger.holds[id]).collect();
    if !new.is_empty() {
        let ids: Vec<Uuid> = new.iter().map(|h| h.id).collect();
        let buyers: Vec<Uuid> = new.iter().map(|h| h.buyer_id).collect();
        let seats: Vec<String> = new.iter().map(|h| array_literal(&h.seats)).collect();
        let states: Vec<String> = new.iter().map(|h| h.state.to_owned()).collect();
        let until: Vec<DateTime<Utc>> = new.iter().map(|h| h.held_until).collect();
        let taken: Vec<i32> = new.iter().map(|h| h.seats_taken).collect();
        let written = sqlx::query!(
            "insert into hold (id, event_id, buyer_id, seat_nos, state, held_until, seats_taken, created_at, ended_at)
             select u.id, $1, u.buyer_id, u.seats::int[], u.state, u.held_until, u.taken, $2::timestamptz,
                    case when u.state = 'live' then null else $2::timestamptz end
             from unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::timestamptz[], $8::int[])
                  as u(id, buyer_id, seats, state, held_until, taken)",
            ledger.event.event_id,
            ledger.now,
            &ids,
            &buyers,
            &seats,
            &states,
            &until,
            &taken
        )
        .execute(&mut *db)
        .await?
        .rows_affected();
        expect("holds placed", written, new.len())?;
    }
    Ok(())
}

async fn record_seats(db: &mut PgConnection, ledger: &Ledger) -> Result<Vec<SeatChange>, RecordError> {
    if ledger.dirty_seats.is_empty() {
        return Ok(Vec::new());
    }
    // Ascending, so that neighbours on a page are written one after the other.
    let changed: Vec<(SeatNo, &SeatRow)> =
        ledger.seats.iter().filter(|(no, _)| ledger.dirty_seats.contains(no)).map(|(no, s)| (*no, s)).collect();
    let seat_nos: Vec<i32> = changed.iter().map(|(no, _)| *no).collect();
    let versions: Vec<i32> = changed.iter().map(|(_, s)| s.version).collect();
    let statuses: Vec<i16> = changed.iter().map(|(_, s)| s.status.into()).collect();
    let holds: Vec<Option<Uuid>> = changed.iter().map(|(_, s)| s.hold_id).collect();
    let until: Vec<Option<DateTime<Utc>>> = changed.iter().map(|(_, s)| s.held_until).collect();
    let written = sqlx::query!(
        "update event_seat s set status = u.status, version = u.version, hold_id = u.hold_id, held_until = u.held_until
         from unnest($2::int[], $3::int[], $4::smallint[], $5::uuid[], $6::timestamptz[])
              as u(seat_no, version, status, hold_id, held_until)
         where s.event_id = $1 and s.seat_no = u.seat_no and s.version = u.version - 1 and s.status < 2",
        ledger.event.event_id,
        &seat_nos,
        &versions,
        &statuses,
        &holds as &[Option<Uuid>],
        &until as &[Option<DateTime<Utc>>]
    )
    .execute(&mut *db)
    .await?
    .rows_affected();
    expect("seats changed", written, changed.len())?;
    Ok(changed
        .into_iter()
        .map(|(seat_no, s)| SeatChange { seat_no, status: s.status, version: s.version, held_until: s.held_until })
        .collect())
}

async fn record_answers(db: &mut PgConnection, ledger: &Ledger) -> Result<(), RecordError> {
    if ledger.new_answers.is_empty() {
        return Ok(());
    }
    let answers: Vec<&Answered> = ledger.new_answers.iter().map(|k| &ledger.answered[k]).collect();
    let (buyers, keys): (Vec<Uuid>, Vec<String>) = ledger.new_answers.iter().cloned().unzip();
    let holds: Vec<Uuid> = answers.iter().map(|a| a.hold_id).collect();
    let hashes: Vec<Vec<u8>> = answers.iter().map(|a| a.body_hash.clone()).collect();
    let bodies: Vec<String> = answers.iter().map(|a| a.answer.clone()).collect();
    let written = sqlx::query!(
        "insert into hold_request (buyer_id, key, body_hash, hold_id, answer, created_at)
         select u.buyer_id, u.key, u.body_hash, u.hold_id, u.answer::jsonb, $1
         from unnest($2::uuid[], $3::text[], $4::bytea[], $5::uuid[], $6::text[]) as u(buyer_id, key, body_hash, hold_id, answer)",
        ledger.now,
        &buyers,
        &keys,
        &hashes,
        &holds,
        &bodies
    )
    .execute(&mut *db)
    .await?
    .rows_affected();
    expect("answers stored", written, answers.len())
}

fn array_literal(seats: &[SeatNo]) -> String {
    let mut text = String::with_capacity(seats.len() * 6 + 2);
    text.push('{');
    for (i, seat) in seats.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&seat.to_string());
    }
    text.push('}');
    text
}
