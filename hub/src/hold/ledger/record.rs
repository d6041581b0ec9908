//! What a batch's decisions made of the rows, in one statement.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Answered, HoldRow, Ledger, SeatRow};
use crate::seat_map::SeatNo;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("{what}: {written} rows written where {expected} were expected")]
    Stale { what: &'static str, written: i64, expected: usize },
}

/// Writes what the decisions changed, and the outbox row of the seats that it wrote. Fewer rows than
/// expected is an error, after which the transaction must not be committed.
///
/// Steps that must follow one another count the rows of the step before, since the parts of a
/// statement have no order otherwise: an ending makes room for the same buyer's next hold. The
/// outbox row repeats what was asked for, if all of it was written: to gather it from the rows would
/// take longer.
pub async fn record(db: &mut PgConnection, ledger: &Ledger) -> Result<(), RecordError> {
    let changed = Holds::of(ledger, |id| !ledger.new_holds.contains(id));
    let placed = Holds::of(ledger, |id| ledger.new_holds.contains(id));
    // Ascending, so that neighbours on a page are written one after the other.
    let seats: Vec<(SeatNo, &SeatRow)> =
        ledger.seats.iter().filter(|(no, _)| ledger.dirty_seats.contains(no)).map(|(no, s)| (*no, s)).collect();
    let seat_nos: Vec<i32> = seats.iter().map(|(no, _)| *no).collect();
    let seat_versions: Vec<i32> = seats.iter().map(|(_, s)| s.version).collect();
    let seat_statuses: Vec<i16> = seats.iter().map(|(_, s)| s.status.into()).collect();
    let seat_holds: Vec<Option<Uuid>> = seats.iter().map(|(_, s)| s.hold_id).collect();
    let seat_until: Vec<Option<DateTime<Utc>>> = seats.iter().map(|(_, s)| s.held_until).collect();
    // Ascending too: a buyer's keys are theirs at every event's desk, so two desks may wait for one another's.
    let mut answers: Vec<(&(Uuid, String), &Answered)> =
        ledger.new_answers.iter().map(|key| (key, &ledger.answered[key])).collect();
    answers.sort_unstable_by_key(|(key, _)| *key);
    let answer_buyers: Vec<Uuid> = answers.iter().map(|(key, _)| key.0).collect();
    let answer_keys: Vec<&str> = answers.iter().map(|(key, _)| key.1.as_str()).collect();
    let answer_hashes: Vec<&[u8]> = answers.iter().map(|(_, a)| a.body_hash.as_slice()).collect();
    let answer_holds: Vec<Uuid> = answers.iter().map(|(_, a)| a.hold_id).collect();
    let answer_bodies: Vec<&str> = answers.iter().map(|(_, a)| a.answer.as_str()).collect();
    if changed.ids.is_empty() && placed.ids.is_empty() && seats.is_empty() && answers.is_empty() {
        return Ok(());
    }
    // The price of a hold that has changed is no longer right, so its open order goes. An attempt that
    // lives keeps its order: it froze the hold, so only the hold's end can be what happened here.
    // The order says why it went: its time ran out, its buyer gave the seats back, or wants others.
    // Postgres has no arrays of arrays of different lengths: the seats of holds travel as text.
    let written = sqlx::query!(
        r#"with changed as (
             update hold h set seat_nos = u.seats::int[], state = u.state, seats_taken = u.taken, version = h.version + 1,
                    ended_at = case when u.state = 'live' then null else $2::timestamptz end
             from unnest($3::uuid[], $4::int[], $5::text[], $6::text[], $7::int[]) as u(id, version, state, seats, taken)
             where h.id = u.id and h.event_id = $1 and h.version = u.version - 1 and h.state = 'live'
             returning h.id, h.state, h.attempt_id),
           cancelled as (
             update "order" o set state = 'cancelled',
                    cancel_reason = case c.state when 'expired' then 'time_over' when 'live' then 'replaced' else 'buyer' end
             from changed c
             where o.hold_id = c.id and o.state = 'open' and c.attempt_id is null),
           placed as (
             insert into hold (id, event_id, buyer_id, seat_nos, state, held_until, seats_taken, created_at, ended_at)
             select u.id, $1, u.buyer_id, u.seats::int[], u.state, u.held_until, u.taken, $2::timestamptz,
                    case when u.state = 'live' then null else $2::timestamptz end
             from unnest($8::uuid[], $9::uuid[], $10::text[], $11::text[], $12::timestamptz[], $13::int[])
                  as u(id, buyer_id, state, seats, held_until, taken)
             where (select count(*) from changed) = cardinality($3::uuid[])
             returning id),
           seats as (
             update event_seat s set status = u.status, version = u.version, hold_id = u.hold_id, held_until = u.held_until
             from unnest($14::int[], $15::int[], $16::smallint[], $17::uuid[], $18::timestamptz[])
                  as u(seat_no, version, status, hold_id, held_until)
             where s.event_id = $1 and s.seat_no = u.seat_no and s.version = u.version - 1 and s.status < 2
             returning true),
           sent as (
             insert into outbox (event_id, seat_nos, statuses, versions, held_until, created_at)
             select $1, $14, $16, $15, $18, $2
             where cardinality($14::int[]) > 0 and (select count(*) from seats) = cardinality($14::int[])),
           answered as (
             insert into hold_request (buyer_id, key, body_hash, hold_id, answer, created_at)
             select u.buyer_id, u.key, u.body_hash, u.hold_id, u.answer::jsonb, $2
             from unnest($19::uuid[], $20::text[], $21::bytea[], $22::uuid[], $23::text[]) as u(buyer_id, key, body_hash, hold_id, answer)
             returning hold_id)
           select (select count(*) from changed) as "changed!", (select count(*) from placed) as "placed!",
                  (select count(*) from seats) as "seats!", (select count(*) from answered) as "answered!""#,
        ledger.event.event_id,
        ledger.now,
        &changed.ids,
        &changed.versions,
        &changed.states as &[&str],
        &changed.seats,
        &changed.taken,
        &placed.ids,
        &placed.buyers,
        &placed.states as &[&str],
        &placed.seats,
        &placed.until,
        &placed.taken,
        &seat_nos,
        &seat_versions,
        &seat_statuses,
        &seat_holds as &[Option<Uuid>],
        &seat_until as &[Option<DateTime<Utc>>],
        &answer_buyers,
        &answer_keys as &[&str],
        &answer_hashes as &[&[u8]],
        &answer_holds,
        &answer_bodies as &[&str]
    )
    .fetch_one(db)
    .await?;
    expect("holds changed", written.changed, changed.ids.len())?;
    expect("holds placed", written.placed, placed.ids.len())?;
    expect("seats changed", written.seats, seats.len())?;
    expect("answers stored", written.answered, answers.len())
}

fn expect(what: &'static str, written: i64, expected: usize) -> Result<(), RecordError> {
    if written == expected as i64 {
        return Ok(());
    }
    Err(RecordError::Stale { what, written, expected })
}

/// Holds as columns.
#[derive(Default)]
struct Holds {
    ids: Vec<Uuid>,
    buyers: Vec<Uuid>,
    versions: Vec<i32>,
    states: Vec<&'static str>,
    seats: Vec<String>,
    until: Vec<DateTime<Utc>>,
    taken: Vec<i32>,
}

impl Holds {
    fn of(ledger: &Ledger, wanted: impl Fn(&Uuid) -> bool) -> Self {
        let mut holds = Self::default();
        for id in ledger.dirty_holds.iter().filter(|id| wanted(id)) {
            let HoldRow { id, buyer_id, seats, held_until, version, seats_taken, state, .. } = &ledger.holds[id];
            holds.ids.push(*id);
            holds.buyers.push(*buyer_id);
            holds.versions.push(*version);
            holds.states.push(state);
            holds.seats.push(array_literal(seats));
            holds.until.push(*held_until);
            holds.taken.push(*seats_taken);
        }
        holds
    }
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
