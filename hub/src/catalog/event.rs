//! An event is made, and edited, from a written specification: one performance on one plan.
//!
//! Invariants
//! - What people plan by is written in local time; a time that the zone skips or has twice is a fault.
//! - Every category of the plan that has a seat needs a price level, so that no seat is on the map
//!   without a price.
//! - The plan's row is locked while the event is made: a revision can't slip in between.

use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;
use sqlx::PgConnection;

use super::{layout::flag, text::natural};
use crate::{clock, db};

mod shape; // its fields, all of them looked at
mod spec; // what is written down
pub mod lines; // and on which line
pub mod tax; // what prices contain
mod policy; // what its buyers may give back
pub mod look; // how its tickets look
mod edit; // an event as its specification, and the other way round

pub use edit::{Edited, edit, show};
pub use look::TicketLook;
pub use policy::RefundPolicy;
pub use spec::{Draft, EventSpec, FeeSpec, LevelSpec, PerformerSpec, PriceSpec, with_days};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    pub id: i64,
    pub slug: String,
    pub seats: u64,
    pub on_sale_at: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum EventError {
    #[error("the specification can't be read: {0}")]
    Unreadable(String),
    /// Every fault, each with its field.
    #[error("the specification has faults: {}", .0.len())]
    Faults(Vec<String>),
    #[error("there is an event {0:?} already")]
    SlugTaken(String),
    #[error("there is no event {0:?}")]
    Unknown(String),
    #[error("the database")]
    Database(#[source] sqlx::Error),
}

impl From<sqlx::Error> for EventError {
    fn from(error: sqlx::Error) -> Self {
        match db::constraint(&error) {
            Some("event_slug_once") => Self::SlugTaken(String::new()),
            _ => Self::Database(error),
        }
    }
}

struct Times {
    zone: String,
    doors: Option<(NaiveDateTime, DateTime<Utc>)>,
    starts: (NaiveDateTime, DateTime<Utc>),
    on_sale: (NaiveDateTime, DateTime<Utc>),
    off_sale: (NaiveDateTime, DateTime<Utc>),
}

struct Stage {
    revision_id: i64,
    zone: String,
    /// Name and number of seats; a category without seats needs no price.
    categories: Vec<(String, i64)>,
    /// Seats that the longest stretch of neighbours has, and those that neighbours don't matter to:
    /// standing places, accessible places and their companions.
    side_by_side: i64,
    anywhere: i64,
}

/// Makes an event and its seats; house seats begin blocked. The caller commits.
pub async fn create(tx: &mut PgConnection, spec: &EventSpec) -> Result<Created, EventError> {
    let mut faults = spec::plain_faults(spec);
    let stage = find_plan(tx, spec, &mut faults).await?;
    let zone = spec.time_zone.as_deref().or(stage.as_ref().map(|s| s.zone.as_str()));
    // Without a venue there is no zone: what is no time at all is told all the same.
    let times = times(spec, zone.unwrap_or("UTC"), &mut faults);
    if let Some(stage) = &stage {
        level_faults(spec, stage, &mut faults);
        party_fault(spec, stage, &mut faults);
    }
    let (Some(stage), Some(times), true) = (stage, times, faults.is_empty()) else {
        if sqlx::query_scalar!("select id from event where slug = $1", spec.slug).fetch_optional(tx).await?.is_some() {
            faults.push(format!("slug: {}", EventError::SlugTaken(spec.slug.clone())));
        }
        return Err(EventError::Faults(faults));
    };
    let id = insert_event(tx, spec, &stage, &times).await.map_err(|e| match e.into() {
        EventError::SlugTaken(_) => EventError::SlugTaken(spec.slug.clone()),
        other => other,
    })?;
    insert_performers(tx, id, spec).await?;
    write_prices(tx, id, spec).await?;
    tax::write(tx, id, spec.tax.as_ref()).await?;
    db::lock_event(tx, id).await?;
    let done = sqlx::query!(
        "insert into event_seat (event_id, seat_no, status, level)
         select $1, s.seat_no, case when s.house or s.retired then 3 else 0 end, coalesce(l.level, 0)
           from plan_seat s left join price_level l on l.event_id = $1 and l.category = s.category
          where s.plan_revision_id = $2
          order by s.seat_no",
        id,
        stage.revision_id,
    )
    .execute(tx)
    .await?;
    Ok(Created { id, slug: spec.slug.clone(), seats: done.rows_affected(), on_sale_at: times.on_sale.1 })
}

async fn find_plan(tx: &mut PgConnection, spec: &EventSpec, faults: &mut Vec<String>) -> sqlx::Result<Option<Stage>> {
    let venue =
        sqlx::query!("select id, time_zone from venue where slug = $1", spec.venue).fetch_optional(&mut *tx).await?;
    let Some(venue) = venue else {
        faults.push(format!("venue: there is no venue {:?}", spec.venue));
        return Ok(None);
    };
    let plan =
        sqlx::query_scalar!("select id from plan where venue_id = $1 and name = $2 for share", venue.id, spec.plan)
            .fetch_optional(&mut *tx)
            .await?;
    let revision = match plan {
        None => None,
        Some(plan_id) => {
            sqlx::query_scalar!(
                "select id from plan_revision where plan_id = $1 order by revision desc limit 1",
                plan_id
            )
            .fetch_optional(&mut *tx)
            .await?
        }
    };
    let Some(revision_id) = revision else {
        faults.push(format!("plan: the venue has no plan {:?}", spec.plan));
        return Ok(None);
    };
    read_stage(tx, revision_id, venue.time_zone).await.map(Some)
}

async fn read_stage(tx: &mut PgConnection, revision_id: i64, zone: String) -> sqlx::Result<Stage> {
    let categories = sqlx::query!(
        r#"select category, count(*) as "seats!" from plan_seat
            where plan_revision_id = $1 and not retired group by category"#,
        revision_id
    )
    .fetch_all(&mut *tx)
    .await?;
    let categories = categories.into_iter().map(|c| (c.category, c.seats)).collect();
    // Seats of a stretch have the same distance between their place in the run and their place among
    // the run's ordinary seats.
    let parties = sqlx::query!(
        r#"with s as (
             select run, run_pos, flags & $2 = 0 as sits, row_number() over (partition by run order by run_pos) as place
             from plan_seat where plan_revision_id = $1 and not retired),
           stretch as (
             select run, place - row_number() over (partition by run order by run_pos) as apart from s where sits)
           select coalesce((select max(n) from (select count(*) as n from stretch group by run, apart) t), 0) as "side_by_side!",
                  (select count(*) from s where not sits) as "anywhere!""#,
        revision_id,
        flag::ACCESSIBLE | flag::COMPANION | flag::STANDING
    )
    .fetch_one(tx)
    .await?;
    Ok(Stage { revision_id, zone, categories, side_by_side: parties.side_by_side, anywhere: parties.anywhere })
}

fn times(spec: &EventSpec, zone: &str, faults: &mut Vec<String>) -> Option<Times> {
    let mut sound = true;
    // In no zone, a text that is no time is told all the same.
    let tz = clock::zone(zone).unwrap_or_else(|e| {
        faults.push(format!("time_zone: {e}"));
        sound = false;
        Tz::UTC
    });
    let mut at = |field: &str, text: &str| {
        let local = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"]
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
        let Some(local) = local else {
            faults.push(format!("{field}: {text:?} is not a local time such as 2027-05-01T18:30"));
            return None;
        };
        match clock::instant(local, tz) {
            Ok(instant) => Some((local, instant)),
            Err(e) => {
                faults.push(format!("{field}: {e}"));
                None
            }
        }
    };
    let doors = spec.doors.as_deref().map(|text| at("doors", text));
    let starts = at("starts", &spec.starts);
    let on_sale = at("on_sale", &spec.on_sale);
    let off_sale = spec.off_sale.as_deref().map_or(starts, |text| at("off_sale", text));
    if let (Some(Some(doors)), Some(starts)) = (doors, starts)
        && doors.1 > starts.1
    {
        faults.push("doors: they open after the event starts".to_owned());
    }
    if let (Some(on_sale), Some(off_sale)) = (on_sale, off_sale)
        && off_sale.1 <= on_sale.1
    {
        faults.push("off_sale: the sale closes before it opens".to_owned());
    }
    let doors = match doors {
        None => None,
        Some(doors) => Some(doors?),
    };
    let (starts, on_sale, off_sale) = (starts?, on_sale?, off_sale?);
    if !sound {
        return None;
    }
    Some(Times { zone: zone.to_owned(), doors, starts, on_sale, off_sale })
}

fn level_faults(spec: &EventSpec, stage: &Stage, faults: &mut Vec<String>) {
    for (i, level) in spec.levels.iter().enumerate() {
        if !stage.categories.iter().any(|(name, _)| *name == level.category) {
            faults.push(format!("levels[{i}].category: the plan has no seat of a category {:?}", level.category));
        }
        if spec.levels[..i].iter().any(|l| l.category == level.category) {
            faults.push(format!("levels[{i}].category: {:?} is listed twice", level.category));
        }
    }
    let mut missing: Vec<_> =
        stage.categories.iter().filter(|(n, _)| !spec.levels.iter().any(|l| l.category == *n)).collect();
    missing.sort_by(|a, b| natural(&a.0, &b.0));
    for (name, seats) in missing {
        faults.push(format!("levels: the category {name:?} has {seats} seats and no price"));
    }
}

/// The smallest party must find its seats in an empty house, house seats included: staff may free them.
fn party_fault(spec: &EventSpec, stage: &Stage, faults: &mut Vec<String>) {
    let seats: i64 = stage.categories.iter().map(|(_, seats)| seats).sum();
    let together = if spec.consecutive_rule { stage.side_by_side + stage.anywhere } else { seats };
    if i64::from(spec.seats_min) > together {
        let how = if spec.consecutive_rule { "seats side by side" } else { "seats" };
        faults.push(format!("seats_min: the plan has {together} {how} at most"));
    }
}

async fn insert_event(tx: &mut PgConnection, spec: &EventSpec, stage: &Stage, times: &Times) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        "insert into event (slug, name, description, tags, plan_revision_id, time_zone, doors_local, doors_at,
                            starts_local, starts_at, on_sale_local, on_sale_at, off_sale_local, off_sale_at,
                            currency, seat_limit, hold_ttl_s, single_seat_rule, consecutive_rule, seats_min, refund_policy, ticket_template)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) returning id",
        spec.slug,
        spec.name,
        spec.description,
        &spec.tags,
        stage.revision_id,
        times.zone,
        times.doors.map(|d| d.0),
        times.doors.map(|d| d.1),
        times.starts.0,
        times.starts.1,
        times.on_sale.0,
        times.on_sale.1,
        times.off_sale.0,
        times.off_sale.1,
        spec.currency,
        spec.seat_limit,
        spec.hold_ttl_s,
        spec.single_seat_rule,
        spec.consecutive_rule,
        spec.seats_min,
        spec.refund_json(),
        spec.look_json(),
    )
    .fetch_one(tx)
    .await
}

/// The logo of its tickets, or none from now on. It was looked at by [`look::logo_fault`]. The caller commits.
pub async fn set_logo(tx: &mut PgConnection, id: i64, logo: Option<&[u8]>) -> sqlx::Result<()> {
    sqlx::query!("update event set ticket_logo = $2 where id = $1", id, logo).execute(tx).await?;
    Ok(())
}

async fn insert_performers(tx: &mut PgConnection, event_id: i64, spec: &EventSpec) -> sqlx::Result<()> {
    for (billing, performer) in spec.performers.iter().enumerate() {
        sqlx::query!(
            "with known as (
                insert into performer (slug, name) values ($2, $3)
                on conflict on constraint performer_slug_once do update set name = excluded.name returning id)
             insert into event_performer (event_id, performer_id, billing) select $1, id, $4 from known",
            event_id,
            performer.slug,
            performer.name,
            billing as i16,
        )
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

/// Levels, their prices and the fees, in place of those that the event had. A level keeps its number.
async fn write_prices(tx: &mut PgConnection, event_id: i64, spec: &EventSpec) -> sqlx::Result<()> {
    let colors = sqlx::query!(
        "select geometry from plan_revision r join event e on e.plan_revision_id = r.id where e.id = $1",
        event_id
    )
    .fetch_one(&mut *tx)
    .await?;
    let colors = super::geometry::category_colors(&colors.geometry);
    sqlx::query!("delete from price where event_id = $1", event_id).execute(&mut *tx).await?;
    sqlx::query!("delete from fee where event_id = $1", event_id).execute(&mut *tx).await?;
    for level in &spec.levels {
        let color = level.color.as_deref().or(colors.get(&level.category).map(String::as_str)).unwrap_or("#777777");
        let number = sqlx::query_scalar!(
            "insert into price_level (event_id, level, name, category, color)
             select $1, coalesce(max(level) + 1, 0), $2, $3, $4 from price_level where event_id = $1
             on conflict on constraint price_level_category_once do update set name = excluded.name, color = excluded.color
             returning level",
            event_id,
            level.name.as_deref().unwrap_or(&level.category),
            level.category,
            color.to_ascii_lowercase(),
        )
        .fetch_one(&mut *tx)
        .await?;
        for (position, price) in level.prices.iter().enumerate() {
            sqlx::query!(
                "insert into price (event_id, level, ticket_type, amount_minor, position) values ($1, $2, $3, $4, $5)",
                event_id,
                number,
                price.ticket_type,
                price.amount_minor,
                position as i16,
            )
            .execute(&mut *tx)
            .await?;
        }
    }
    for fee in &spec.fees {
        sqlx::query!(
            "insert into fee (event_id, code, basis, amount_minor) values ($1, $2, $3, $4)",
            event_id,
            fee.code,
            fee.basis,
            fee.amount_minor,
        )
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{spec::tests::SPEC, *};

    fn stage(categories: &[&str]) -> Stage {
        let categories = categories.iter().map(|c| ((*c).to_owned(), 3)).collect();
        Stage { revision_id: 1, zone: "Europe/Berlin".into(), categories, side_by_side: 3, anywhere: 1 }
    }

    #[test]
    fn times_in_a_gap_and_in_an_overlap_are_both_named() {
        let mut faults = Vec::new();
        assert!(times(&EventSpec::read(SPEC).unwrap(), "Europe/Berlin", &mut faults).is_none());
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("on_sale: 2027-03-28 02:30:00 does not exist in Europe/Berlin"), "{faults:?}");
        assert!(faults[1].starts_with("off_sale: 2027-10-31 02:30:00 happens twice"), "{faults:?}");
        assert!(times(&EventSpec::read(SPEC).unwrap(), "Asia/Tokyo", &mut Vec::new()).is_some());
    }

    #[test]
    fn the_smallest_party_fits_into_the_house() {
        let stage = stage(&["Stalls", "Balcony"]);
        let faults = |seats_min, consecutive_rule| {
            let mut faults = Vec::new();
            let spec = EventSpec { seats_min, consecutive_rule, ..EventSpec::read(SPEC).unwrap() };
            party_fault(&spec, &stage, &mut faults);
            faults.concat()
        };
        assert_eq!((faults(6, false), faults(4, true)), (String::new(), String::new()));
        assert_eq!(faults(7, false), "seats_min: the plan has 6 seats at most");
        assert_eq!(faults(5, true), "seats_min: the plan has 4 seats side by side at most");
    }

    #[test]
    fn every_category_needs_a_price() {
        let spec = EventSpec::read(SPEC).unwrap();
        let mut faults = Vec::new();
        level_faults(&spec, &stage(&["Stalls", "Box 10", "Box 2"]), &mut faults);
        let of = |name: &str| format!("levels: the category {name:?} has 3 seats and no price");
        assert_eq!(faults, [of("Box 2"), of("Box 10")]);
    }
}
