//! A plan becomes a revision, and the events on it move along.
//!
//! Invariants
//! - One transaction: an import that fails changes nothing.
//! - A guid keeps its seat number for ever. New seats are appended, missing ones are retired; a
//!   retired seat that comes back has its number again.
//! - No seat that is held (by the database's clock), sold or leased to a terminal for any event may vanish.
//! - The same content is the same revision: importing it again changes nothing.
//! - Locks: the plan's row, then its events in ascending order, then the clock is read.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sqlx::PgConnection;

use super::geometry::{self, Drawing, Retired, Slot};
use super::layout::Layout;
use super::text::natural;
use crate::{clock, db};

mod moving; // an event moves to another revision
mod revision; // a revision as rows
pub mod venue; // whose plan it is

pub use venue::{VenueFault, VenueSpec, is_slug};

/// What an import did, or (rolled back) would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub revision: i32,
    pub hash: String,
    /// What is new about the venue, a sentence each.
    pub venue: Vec<String>,
    /// The content was that of the latest revision.
    pub unchanged: bool,
    /// Seats that can be used, and how many of them are new to the plan or back in it.
    pub seats: usize,
    pub added: usize,
    pub returned: usize,
    pub retired: usize,
    /// Seats whose place or printed name is another one.
    pub altered: usize,
    /// Slugs of the events that moved, with the number of seats whose price level changed.
    pub events: Vec<(String, u64)>,
}

/// A seat that an import would have taken from its owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostSeat {
    pub event: String,
    pub section: String,
    pub row: String,
    pub seat: String,
    pub guid: String,
    /// What it is instead of free: held, sold, or leased to a terminal.
    pub state: &'static str,
}

impl std::fmt::Display for LostSeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { event, section, row, seat, guid, state } = self;
        write!(f, "{event}: {section:?}, row {row:?}, seat {seat:?} (guid {guid:?}) is {state}")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Everything that stands against it.
    #[error("the import is refused for {} reasons", .0.len())]
    Refused(Vec<Refusal>),
    #[error("the database")]
    Database(#[source] sqlx::Error),
}

/// What stands against an import of a plan that is sound by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Venue(#[from] VenueFault),
    #[error("seats that are held or sold would vanish: {}", .0.len())]
    WouldLose(Vec<LostSeat>),
    #[error("categories of the plan without a price in an event that sells it: {}", .0.len())]
    Unpriced(Vec<Unpriced>),
    #[error("with the retired seats the plan has {0} numbers, more than there may be")]
    TooManyNumbers(usize),
}

/// An event on the plan, and a category that it has no price for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpriced {
    pub event: String,
    pub category: String,
}

impl From<sqlx::Error> for ImportError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

struct Previous {
    id: i64,
    revision: i32,
    hash: String,
    seats: Vec<PreviousSeat>,
}

struct PreviousSeat {
    seat_no: i32,
    guid: String,
    section: String,
    row_label: String,
    seat_label: String,
    category: String,
    x: f64,
    y: f64,
    retired: bool,
}

/// Imports a layout as the next revision of `plan` at `venue`. The caller commits. Whatever stands against it is
/// told at once; nothing has to be mended to see the rest.
pub async fn import(
    tx: &mut PgConnection,
    venue: &VenueSpec,
    plan: &str,
    layout: &Layout,
) -> Result<Imported, ImportError> {
    let checked = venue::check(tx, venue).await?;
    let mut refused: Vec<Refusal> = checked.faults.into_iter().map(Refusal::from).collect();
    let Some(venue) = checked.sound else { return Err(ImportError::Refused(refused)) };
    let (venue_id, venue_changes) = venue::upsert(tx, &venue).await?;
    let plan_id = lock_plan(tx, venue_id, plan).await?;
    let previous = latest(tx, plan_id).await?;
    let slots = number(layout, previous.as_ref());
    if slots.len() > super::plan::SEATS_MAX {
        refused.push(Refusal::TooManyNumbers(slots.len()));
    }
    let drawing = geometry::draw(layout, &slots);
    let mut imported = compare(layout, &slots, previous.as_ref(), &drawing);
    imported.venue = venue_changes;
    if refused.is_empty()
        && let Some(previous) = &previous
        && geometry::hash(previous.revision, layout, &slots, &drawing) == previous.hash
    {
        return Ok(Imported { revision: previous.revision, hash: previous.hash.clone(), unchanged: true, ..imported });
    }
    imported.revision = previous.as_ref().map_or(1, |p| p.revision + 1);
    imported.hash = geometry::hash(imported.revision, layout, &slots, &drawing);

    let events = lock_events(tx, plan_id).await?;
    let now = clock::now(tx).await?;
    if let Some(previous) = &previous {
        refused.extend(losses(tx, &events, previous, &slots, now).await?);
    }
    refused.extend(unpriced(tx, &events, layout).await?);
    if !refused.is_empty() {
        return Err(ImportError::Refused(refused));
    }

    let revision_id = revision::insert_revision(tx, plan_id, &imported, &slots, &drawing).await?;
    revision::insert_seats(tx, revision_id, layout, &slots, &drawing).await?;
    if let Some(previous) = &previous {
        for (event_id, slug) in events {
            let repriced = moving::move_event(tx, event_id, previous, revision_id, &slots, layout, now).await?;
            imported.events.push((slug, repriced));
        }
    }
    Ok(imported)
}

/// Imports of one plan follow one another, and no event is made from it meanwhile.
async fn lock_plan(tx: &mut PgConnection, venue_id: i64, name: &str) -> sqlx::Result<i64> {
    sqlx::query!(
        "insert into plan (venue_id, name) values ($1, $2) on conflict on constraint plan_name_once do nothing",
        venue_id,
        name,
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query_scalar!("select id from plan where venue_id = $1 and name = $2 for update", venue_id, name)
        .fetch_one(tx)
        .await
}

async fn latest(tx: &mut PgConnection, plan_id: i64) -> sqlx::Result<Option<Previous>> {
    let row = sqlx::query!(
        "select id, revision, hash from plan_revision where plan_id = $1 order by revision desc limit 1",
        plan_id
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let seats = sqlx::query_as!(
        PreviousSeat,
        "select seat_no, guid, section, row_label, seat_label, category, x, y, retired
           from plan_seat where plan_revision_id = $1 order by seat_no",
        row.id
    )
    .fetch_all(tx)
    .await?;
    Ok(Some(Previous { id: row.id, revision: row.revision, hash: row.hash, seats }))
}

/// Gives every seat its number: the one that its guid had, or the next.
fn number(layout: &Layout, previous: Option<&Previous>) -> Vec<Slot> {
    let mut by_guid: HashMap<&str, usize> =
        layout.seats.iter().enumerate().map(|(i, s)| (s.guid.as_str(), i)).collect();
    let mut slots: Vec<Slot> = Vec::with_capacity(layout.seats.len());
    for seat in previous.into_iter().flat_map(|p| &p.seats) {
        slots.push(match by_guid.remove(seat.guid.as_str()) {
            Some(at) => Slot::Seat(at),
            None => Slot::Retired(Retired {
                guid: seat.guid.clone(),
                section: seat.section.clone(),
                row_label: seat.row_label.clone(),
                seat_label: seat.seat_label.clone(),
                category: seat.category.clone(),
                x: seat.x,
                y: seat.y,
            }),
        });
    }
    slots.extend(
        layout
            .seats
            .iter()
            .enumerate()
            .filter(|(_, s)| by_guid.contains_key(s.guid.as_str()))
            .map(|(i, _)| Slot::Seat(i)),
    );
    slots
}

fn compare(layout: &Layout, slots: &[Slot], previous: Option<&Previous>, drawing: &Drawing) -> Imported {
    let before = previous.map_or(&[][..], |p| &p.seats);
    let mut imported = Imported { seats: layout.seats.len(), added: slots.len() - before.len(), ..Imported::default() };
    for (seat_no, (old, slot)) in before.iter().zip(slots).enumerate() {
        match slot {
            Slot::Retired(_) => imported.retired += usize::from(!old.retired),
            Slot::Seat(at) => {
                let seat = &layout.seats[*at];
                imported.returned += usize::from(old.retired);
                let same = (old.x, old.y) == drawing.points[seat_no]
                    && old.section == layout.sections[seat.section]
                    && old.row_label == layout.rows[seat.row].label
                    && old.seat_label == seat.label;
                imported.altered += usize::from(!same);
            }
        }
    }
    imported
}

async fn lock_events(tx: &mut PgConnection, plan_id: i64) -> sqlx::Result<Vec<(i64, String)>> {
    let events = sqlx::query!(
        "select e.id, e.slug from event e join plan_revision r on r.id = e.plan_revision_id
          where r.plan_id = $1 order by e.id",
        plan_id
    )
    .fetch_all(&mut *tx)
    .await?;
    for event in &events {
        db::lock_event(tx, event.id).await?;
    }
    Ok(events.into_iter().map(|e| (e.id, e.slug)).collect())
}

/// Seats that the import would take from those who hold them or have bought them.
async fn losses(
    tx: &mut PgConnection,
    events: &[(i64, String)],
    previous: &Previous,
    slots: &[Slot],
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Refusal>> {
    let vanishing = vanishing(previous, slots);
    let event_ids: Vec<i64> = events.iter().map(|e| e.0).collect();
    let owned = sqlx::query!(
        "select event_id, seat_no, status from event_seat
          where event_id = any($1) and seat_no = any($2)
            and (status = 2 or (status = 1 and held_until > $3) or lease_id is not null)",
        &event_ids,
        &vanishing,
        now,
    )
    .fetch_all(tx)
    .await?;
    if owned.is_empty() {
        return Ok(None);
    }
    let slugs: HashMap<i64, &str> = events.iter().map(|(id, slug)| (*id, slug.as_str())).collect();
    let mut lost: Vec<LostSeat> = owned
        .into_iter()
        .map(|row| {
            let seat = &previous.seats[row.seat_no as usize];
            LostSeat {
                event: slugs[&row.event_id].to_owned(),
                section: seat.section.clone(),
                row: seat.row_label.clone(),
                seat: seat.seat_label.clone(),
                guid: seat.guid.clone(),
                state: match Status::from_bits(row.status as u8) {
                    Status::Sold => "sold",
                    Status::Held => "held",
                    _ => "leased to a terminal",
                },
            }
        })
        .collect();
    lost.sort_by(|a, b| {
        let by = |a: &str, b: &str| natural(a, b);
        by(&a.event, &b.event)
            .then_with(|| by(&a.section, &b.section))
            .then_with(|| by(&a.row, &b.row))
            .then_with(|| by(&a.seat, &b.seat))
            .then_with(|| a.guid.cmp(&b.guid))
    });
    Ok(Some(Refusal::WouldLose(lost)))
}

/// Numbers of seats that the revision before had and this one has not.
fn vanishing(previous: &Previous, slots: &[Slot]) -> Vec<i32> {
    let gone = |(old, slot): &(&PreviousSeat, &Slot)| !old.retired && matches!(slot, Slot::Retired(_));
    previous.seats.iter().zip(slots).filter(gone).map(|(old, _)| old.seat_no).collect()
}

/// Every seat on sale needs a price.
async fn unpriced(tx: &mut PgConnection, events: &[(i64, String)], layout: &Layout) -> sqlx::Result<Option<Refusal>> {
    let event_ids: Vec<i64> = events.iter().map(|e| e.0).collect();
    let unpriced = sqlx::query_as!(
        Unpriced,
        r#"select e.slug as event, c.category as "category!"
             from event e cross join unnest($2::text[]) as c (category)
            where e.id = any($1)
              and not exists (select from price_level l where l.event_id = e.id and l.category = c.category)
            order by 1, 2"#,
        &event_ids,
        &used_categories(layout),
    )
    .fetch_all(tx)
    .await?;
    Ok((!unpriced.is_empty()).then_some(Refusal::Unpriced(unpriced)))
}

/// Names of the categories that have a seat.
pub fn used_categories(layout: &Layout) -> Vec<String> {
    let mut used = vec![false; layout.categories.len()];
    layout.seats.iter().for_each(|s| used[s.category] = true);
    layout.categories.iter().zip(used).filter(|(_, used)| *used).map(|(c, _)| c.name.clone()).collect()
}

fn expect_rows(affected: u64, expected: usize) -> sqlx::Result<()> {
    if affected == expected as u64 {
        return Ok(());
    }
    Err(sqlx::Error::Protocol(format!("{affected} rows written, {expected} expected")))
}
