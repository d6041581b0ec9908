//! What a seat is for one performance, where that is not what the plan says: a restricted view, a place for a wheelchair.
//!
//! Invariants
//! - It says nothing of whose a seat is: held, sold and blocked seats change like any other, and stay whose they are.
//! - A seat that is again what the plan says, with nothing to be told of it, has no row.
//! - A companion's seat goes with its accessible place: one is nothing to anybody without the other.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use fullhouse_protocol::{
    box_office::{TraitsRequest, TraitsSet},
    seat::Status,
};
use sqlx::PgPool;

use crate::{
    auth::{Actor, Deed},
    clock,
    db::{self, Tx},
    seat_map::{ACCESSIBLE, COMPANION, RESTRICTED_VIEW, SeatNo, SeatSet},
};

/// Of one event: each of its pages says them all.
const SEATS_MAX: usize = 2_000;

#[derive(Debug, thiserror::Error)]
pub enum TraitsError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event has no seats {0:?}")]
    SeatUnknown(Vec<SeatNo>),
    /// So many seats are no longer an exception: the plan is another one.
    #[error("an event may say so of {limit} seats")]
    TooMany { limit: usize },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seat {
    name: String,
    plan: i16,
    flags: i16,
    note: Option<String>,
    companion_of: Option<SeatNo>,
    sold: bool,
}

/// Of seats, in the log.
const NAMED_MAX: usize = 10;
/// The flags that a performance may say otherwise.
const KNOWN: [i16; 3] = [ACCESSIBLE, COMPANION, RESTRICTED_VIEW];

impl Seat {
    fn set(&mut self, flag: i16, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

/// Says of seats what they are for this performance; what is not named stays. All of them, or none if the event does not
/// have one.
pub async fn set(
    pool: PgPool,
    event_id: i64,
    seats: SeatSet,
    asked: TraitsRequest,
    actor: Actor,
) -> Result<TraitsSet, TraitsError> {
    db::write(async move {
        let mut tx = db::event_tx(&pool, event_id).await?;
        actor.acts(&mut tx).await?;
        let before = read(&mut tx, event_id, &seats).await?;
        let unknown: Vec<SeatNo> = seats.as_slice().iter().copied().filter(|s| !before.contains_key(s)).collect();
        if !unknown.is_empty() {
            return Err(refusal(&mut tx, event_id, unknown).await?);
        }
        let mut after = before.clone();
        change(&mut after, &seats, &asked);
        after.retain(|seat, is| before.get(seat) != Some(is));
        let now = clock::now(&mut tx).await?;
        write(&mut tx, event_id, &after, &asked.reason, actor.name(), now).await?;
        if !after.is_empty() {
            let detail = detail(&asked, &after);
            let deed = Deed { verb: "seat_trait", event_id: Some(event_id), detail: &detail, reason: &asked.reason };
            actor.writes(&mut tx, deed, now).await?;
        }
        tx.commit().await?;
        let sold = after.iter().filter(|(_, seat)| seat.sold).map(|(seat, _)| *seat).collect();
        Ok(TraitsSet { changed: after.into_keys().collect(), sold })
    })
    .await
}

async fn refusal(tx: &mut Tx, event_id: i64, unknown: Vec<SeatNo>) -> sqlx::Result<TraitsError> {
    let exists = sqlx::query_scalar!(r#"select exists(select from event where id = $1) as "exists!""#, event_id)
        .fetch_one(&mut **tx)
        .await?;
    Ok(if exists { TraitsError::SeatUnknown(unknown) } else { TraitsError::EventUnknown })
}

/// Seats as they are, with the companions' seats of those that are accessible places.
async fn read(tx: &mut Tx, event_id: i64, seats: &SeatSet) -> sqlx::Result<BTreeMap<SeatNo, Seat>> {
    let rows = sqlx::query!(
        r#"select p.seat_no, concat_ws(' ', p.section, nullif(trim(p.row_label), ''), p.seat_label) as "name!", p.flags, t.flags as "trait?", t.note as "note?", p.companion_of, s.status
           from event e join plan_seat p on p.plan_revision_id = e.plan_revision_id and not p.retired
           join event_seat s on s.event_id = e.id and s.seat_no = p.seat_no
           left join seat_trait t on t.event_id = e.id and t.seat_no = p.seat_no
           where e.id = $1 and (p.seat_no = any($2) or p.companion_of = any($2))"#,
        event_id,
        seats.as_slice()
    )
    .fetch_all(&mut **tx)
    .await?;
    let mask = KNOWN.iter().fold(0, |mask, flag| mask | flag);
    let seats = rows.into_iter().map(|row| {
        let plan = row.flags & mask;
        let seat = Seat {
            name: row.name,
            plan,
            flags: row.r#trait.unwrap_or(plan),
            note: row.note,
            companion_of: row.companion_of,
            sold: row.status == i16::from(Status::Sold),
        };
        (row.seat_no, seat)
    });
    Ok(seats.collect())
}

fn change(seats: &mut BTreeMap<SeatNo, Seat>, named: &SeatSet, asked: &TraitsRequest) {
    let wishes = [asked.accessible, asked.companion, asked.restricted_view];
    for (number, seat) in seats {
        if !named.contains(*number) {
            // A companion of a place that was named.
            if let Some(accessible) = asked.accessible.filter(|_| seat.companion_of.is_some()) {
                seat.set(COMPANION, accessible);
            }
            continue;
        }
        for (flag, wish) in KNOWN.into_iter().zip(wishes) {
            if let Some(on) = wish {
                seat.set(flag, on);
            }
        }
        if let Some(note) = &asked.note {
            seat.note = Some(note.clone()).filter(|note| !note.is_empty());
        }
    }
}

async fn write(
    tx: &mut Tx,
    event_id: i64,
    seats: &BTreeMap<SeatNo, Seat>,
    reason: &str,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<(), TraitsError> {
    let is_plans = |seat: &Seat| seat.flags == seat.plan && seat.note.is_none();
    let gone: Vec<SeatNo> = seats.iter().filter(|(_, seat)| is_plans(seat)).map(|(number, _)| *number).collect();
    if !gone.is_empty() {
        sqlx::query!("delete from seat_trait where event_id = $1 and seat_no = any($2)", event_id, &gone)
            .execute(&mut **tx)
            .await?;
    }
    let said: Vec<(SeatNo, &Seat)> = seats.iter().filter(|(_, s)| !is_plans(s)).map(|(n, s)| (*n, s)).collect();
    if said.is_empty() {
        return Ok(());
    }
    let numbers: Vec<SeatNo> = said.iter().map(|(number, _)| *number).collect();
    let flags: Vec<i16> = said.iter().map(|(_, seat)| seat.flags).collect();
    let notes: Vec<Option<String>> = said.iter().map(|(_, seat)| seat.note.clone()).collect();
    sqlx::query!(
        "insert into seat_trait (event_id, seat_no, flags, note, reason, actor, set_at)
         select $1, u.seat_no, u.flags, u.note, $5, $6, $7
         from unnest($2::int[], $3::smallint[], $4::text[]) as u(seat_no, flags, note)
         on conflict (event_id, seat_no) do update
         set flags = excluded.flags, note = excluded.note, reason = excluded.reason, actor = excluded.actor,
             set_at = excluded.set_at",
        event_id,
        &numbers,
        &flags,
        &notes as &[Option<String>],
        reason,
        actor,
        now
    )
    .execute(&mut **tx)
    .await?;
    let all = sqlx::query_scalar!(r#"select count(*) as "all!" from seat_trait where event_id = $1"#, event_id)
        .fetch_one(&mut **tx)
        .await?;
    if all > SEATS_MAX as i64 {
        return Err(TraitsError::TooMany { limit: SEATS_MAX });
    }
    Ok(())
}

/// `2 seats (Stalls 3 7; Stalls 3 8): restricted view, no accessible place, "A pillar stands in front"`
fn detail(asked: &TraitsRequest, seats: &BTreeMap<SeatNo, Seat>) -> String {
    let words = [
        (asked.accessible, "accessible place"),
        (asked.companion, "companion's seat"),
        (asked.restricted_view, "restricted view"),
    ];
    let mut said: Vec<String> = words
        .into_iter()
        .filter_map(|(wish, word)| wish.map(|on| if on { word.to_owned() } else { format!("no {word}") }))
        .collect();
    match asked.note.as_deref() {
        None => {}
        Some("") => said.push("nothing to be told".to_owned()),
        Some(note) => said.push(format!("\"{note}\"")),
    }
    let names: Vec<&str> = seats.values().take(NAMED_MAX).map(|seat| seat.name.as_str()).collect();
    let more = if seats.len() > names.len() { ", …" } else { "" };
    format!("{} seats ({}{more}): {}", seats.len(), names.join("; "), said.join(", "))
}
