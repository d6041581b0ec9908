//! An event is made from a written specification: one performance on one plan.
//!
//! Invariants
//! - What people plan by is written in local time; a time that the zone skips or has twice is a fault.
//! - Every category of the plan that has a seat needs a price level, so that no seat is on the map
//!   without a price.
//! - The plan's row is locked while the event is made: a revision can't slip in between.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, Utc};
use serde::Deserialize;
use sqlx::PgConnection;

use super::{import::is_slug, text::natural};
use crate::{clock, db};

/// As it stands in a TOML or JSON file; see `assets/plans/events` for examples.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    pub slug: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Slug of the venue, and name of one of its plans.
    pub venue: String,
    pub plan: String,
    /// The venue's, if left out.
    pub time_zone: Option<String>,
    /// Local times, such as `2027-05-01T18:30`.
    pub doors: Option<String>,
    pub starts: String,
    pub on_sale: String,
    /// When the event starts, if left out.
    pub off_sale: Option<String>,
    /// ISO 4217; amounts are in its minor units.
    pub currency: String,
    #[serde(default = "default_seat_limit")]
    pub seat_limit: i32,
    #[serde(default = "default_hold_ttl_s")]
    pub hold_ttl_s: i32,
    #[serde(default = "default_single_seat_rule")]
    pub single_seat_rule: bool,
    /// Refuse a selection that does not sit side by side.
    #[serde(default)]
    pub consecutive_rule: bool,
    /// Seats that a hold has at least.
    #[serde(default = "default_seats_min")]
    pub seats_min: i32,
    #[serde(default)]
    pub performers: Vec<PerformerSpec>,
    pub levels: Vec<LevelSpec>,
    #[serde(default)]
    pub fees: Vec<FeeSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerformerSpec {
    pub slug: String,
    pub name: String,
}

/// A category of the plan as the event sells it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelSpec {
    pub category: String,
    /// The category's, if left out.
    pub name: Option<String>,
    /// `#rrggbb`; the category's, if left out.
    pub color: Option<String>,
    /// In the order in which they are offered.
    pub prices: Vec<PriceSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSpec {
    pub ticket_type: String,
    pub amount_minor: i64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeeSpec {
    pub code: String,
    /// `seat` or `order`
    pub basis: String,
    pub amount_minor: i64,
}

fn default_seat_limit() -> i32 {
    6
}

fn default_hold_ttl_s() -> i32 {
    480
}

fn default_seats_min() -> i32 {
    1
}

fn default_single_seat_rule() -> bool {
    true
}

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
    #[error("the specification has {} faults", .0.len())]
    Faults(Vec<String>),
    #[error("there is an event {0:?} already")]
    SlugTaken(String),
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

impl EventSpec {
    /// From TOML, or from JSON if the text begins like it.
    pub fn read(text: &str) -> Result<Self, EventError> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text).map_err(|e| EventError::Unreadable(e.to_string()));
        }
        toml::from_str(text).map_err(|e| EventError::Unreadable(e.to_string()))
    }
}

/// Puts days around `today` where a text says `{{day+14}}` or `{{day-1}}`: the demo's events are
/// always about to happen. A specification that is not the demo's names its dates.
pub fn with_days(text: &str, today: NaiveDate) -> String {
    let mut parts = text.split("{{day");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let placed = part.split_once("}}").and_then(|(offset, rest)| {
            let (sign, days) = offset.split_at_checked(1)?;
            let days = Days::new(days.parse().ok()?);
            let day = match sign {
                "+" => today.checked_add_days(days),
                "-" => today.checked_sub_days(days),
                _ => None,
            };
            Some(format!("{}{rest}", day?))
        });
        match placed {
            Some(placed) => filled.push_str(&placed),
            None => {
                filled.push_str("{{day");
                filled.push_str(part);
            }
        }
    }
    filled
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
}

/// Makes an event and its seats; house seats begin blocked. The caller commits.
pub async fn create(tx: &mut PgConnection, spec: &EventSpec) -> Result<Created, EventError> {
    let mut faults = plain_faults(spec);
    let stage = find_plan(tx, spec, &mut faults).await?;
    let zone = spec.time_zone.as_deref().or(stage.as_ref().map(|s| s.zone.as_str()));
    let times = zone.and_then(|zone| times(spec, zone, &mut faults));
    if let Some(stage) = &stage {
        level_faults(spec, stage, &mut faults);
    }
    let (Some(stage), Some(times)) = (stage, times) else { return Err(EventError::Faults(faults)) };
    if !faults.is_empty() {
        return Err(EventError::Faults(faults));
    }
    let id = insert_event(tx, spec, &stage, &times).await.map_err(|e| match e.into() {
        EventError::SlugTaken(_) => EventError::SlugTaken(spec.slug.clone()),
        other => other,
    })?;
    insert_performers(tx, id, spec).await?;
    insert_prices(tx, id, spec).await?;
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

fn plain_faults(spec: &EventSpec) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |sound: bool, message: &str| {
        if !sound {
            faults.push(message.to_owned());
        }
    };
    check(is_slug(&spec.slug), "slug: small letters, digits and single hyphens are taken");
    check(!spec.name.trim().is_empty() && spec.name.chars().count() <= 200, "name: 1 to 200 characters are needed");
    check(spec.description.chars().count() <= 10_000, "description: at most 10,000 characters are taken");
    check(spec.tags.len() <= 20, "tags: at most 20 are taken");
    check(
        spec.currency.len() == 3 && spec.currency.bytes().all(|b| b.is_ascii_uppercase()),
        "currency: three capital letters are needed, such as EUR",
    );
    check((1..=50).contains(&spec.seat_limit), "seat_limit: from 1 to 50");
    check((1..=spec.seat_limit.max(1)).contains(&spec.seats_min), "seats_min: from 1 to seat_limit");
    check((1..=86_400).contains(&spec.hold_ttl_s), "hold_ttl_s: from 1 to 86400 seconds");
    check(spec.levels.len() <= 64, "levels: at most 64 are taken");
    let amount = |a: i64| (0..=99_999_999).contains(&a);
    for (i, tag) in spec.tags.iter().enumerate() {
        check(
            !tag.trim().is_empty() && tag.chars().count() <= 50,
            &format!("tags[{i}]: 1 to 50 characters are needed"),
        );
    }
    for (i, performer) in spec.performers.iter().enumerate() {
        check(
            is_slug(&performer.slug),
            &format!("performers[{i}].slug: small letters, digits and single hyphens are taken"),
        );
        check(!performer.name.trim().is_empty(), &format!("performers[{i}].name: a name is needed"));
        let earlier = spec.performers[..i].iter().any(|p| p.slug == performer.slug);
        check(!earlier, &format!("performers[{i}].slug: {:?} is listed twice", performer.slug));
    }
    for (i, level) in spec.levels.iter().enumerate() {
        check(!level.prices.is_empty(), &format!("levels[{i}].prices: a level needs a price"));
        let hex = level
            .color
            .as_ref()
            .is_none_or(|c| c.len() == 7 && c.starts_with('#') && c[1..].bytes().all(|b| b.is_ascii_hexdigit()));
        check(hex, &format!("levels[{i}].color: #rrggbb is needed"));
        for (j, price) in level.prices.iter().enumerate() {
            let name = &price.ticket_type;
            let shape = name.len() <= 32
                && name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            check(
                shape,
                &format!("levels[{i}].prices[{j}].ticket_type: a word of small letters, such as adult, is needed"),
            );
            check(amount(price.amount_minor), &format!("levels[{i}].prices[{j}].amount_minor: from 0 to 99999999"));
            let earlier = level.prices[..j].iter().any(|p| p.ticket_type == *name);
            check(!earlier, &format!("levels[{i}].prices[{j}].ticket_type: {name:?} is listed twice"));
        }
    }
    for (i, fee) in spec.fees.iter().enumerate() {
        check(["seat", "order"].contains(&fee.basis.as_str()), &format!("fees[{i}].basis: seat or order is needed"));
        check(amount(fee.amount_minor), &format!("fees[{i}].amount_minor: from 0 to 99999999"));
        check(!fee.code.trim().is_empty(), &format!("fees[{i}].code: a code is needed"));
        let earlier = spec.fees[..i].iter().any(|f| f.code == fee.code);
        check(!earlier, &format!("fees[{i}].code: {:?} is listed twice", fee.code));
    }
    faults
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
    let categories = sqlx::query!(
        r#"select category, count(*) as "seats!" from plan_seat
            where plan_revision_id = $1 and not retired group by category"#,
        revision_id
    )
    .fetch_all(tx)
    .await?;
    let categories = categories.into_iter().map(|c| (c.category, c.seats)).collect();
    Ok(Some(Stage { revision_id, zone: venue.time_zone, categories }))
}

fn times(spec: &EventSpec, zone: &str, faults: &mut Vec<String>) -> Option<Times> {
    let tz = match clock::zone(zone) {
        Ok(tz) => tz,
        Err(e) => {
            faults.push(format!("time_zone: {e}"));
            return None;
        }
    };
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
    let off_sale = at("off_sale", spec.off_sale.as_deref().unwrap_or(&spec.starts));
    let doors = match doors {
        None => None,
        Some(doors) => Some(doors?),
    };
    let (starts, on_sale, off_sale) = (starts?, on_sale?, off_sale?);
    if doors.is_some_and(|d| d.1 > starts.1) {
        faults.push("doors: they open after the event starts".to_owned());
    }
    if off_sale.1 <= on_sale.1 {
        faults.push("off_sale: the sale closes before it opens".to_owned());
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

async fn insert_event(tx: &mut PgConnection, spec: &EventSpec, stage: &Stage, times: &Times) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        "insert into event (slug, name, description, tags, plan_revision_id, time_zone, doors_local, doors_at,
                            starts_local, starts_at, on_sale_local, on_sale_at, off_sale_local, off_sale_at,
                            currency, seat_limit, hold_ttl_s, single_seat_rule, consecutive_rule, seats_min)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) returning id",
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
    )
    .fetch_one(tx)
    .await
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

async fn insert_prices(tx: &mut PgConnection, event_id: i64, spec: &EventSpec) -> sqlx::Result<()> {
    let colors = sqlx::query!(
        "select geometry from plan_revision r join event e on e.plan_revision_id = r.id where e.id = $1",
        event_id
    )
    .fetch_one(&mut *tx)
    .await?;
    let colors = super::geometry::category_colors(&colors.geometry);
    for (i, level) in spec.levels.iter().enumerate() {
        let color = level.color.as_deref().or(colors.get(&level.category).map(String::as_str)).unwrap_or("#777777");
        sqlx::query!(
            "insert into price_level (event_id, level, name, category, color) values ($1, $2, $3, $4, $5)",
            event_id,
            i as i16,
            level.name.as_deref().unwrap_or(&level.category),
            level.category,
            color.to_ascii_lowercase(),
        )
        .execute(&mut *tx)
        .await?;
        for (position, price) in level.prices.iter().enumerate() {
            sqlx::query!(
                "insert into price (event_id, level, ticket_type, amount_minor, position) values ($1, $2, $3, $4, $5)",
                event_id,
                i as i16,
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
    use super::*;

    const SPEC: &str = r#"
        slug = "a-night"
        name = "A night"
        venue = "hall"
        plan = "Hall"
        starts = "2027-06-01T20:00"
        on_sale = "2027-03-28T02:30"
        off_sale = "2027-10-31T02:30"
        currency = "EUR"
        levels = [{ category = "Stalls", prices = [{ ticket_type = "adult", amount_minor = 2500 }] }]
    "#;

    fn stage(categories: &[&str]) -> Stage {
        let categories = categories.iter().map(|c| ((*c).to_owned(), 3)).collect();
        Stage { revision_id: 1, zone: "Europe/Berlin".into(), categories }
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
    fn every_category_needs_a_price() {
        let spec = EventSpec::read(SPEC).unwrap();
        let mut faults = Vec::new();
        level_faults(&spec, &stage(&["Stalls", "Box 10", "Box 2"]), &mut faults);
        let of = |name: &str| format!("levels: the category {name:?} has 3 seats and no price");
        assert_eq!(faults, [of("Box 2"), of("Box 10")]);
    }

    #[test]
    fn faults_of_a_specification_are_told_at_once() {
        let mut spec = EventSpec::read(SPEC).unwrap();
        spec.slug = "A night".into();
        spec.currency = "euro".into();
        spec.levels[0].prices.push(PriceSpec { ticket_type: "adult".into(), amount_minor: -1 });
        assert_eq!(plain_faults(&spec).len(), 4);
        assert!(matches!(EventSpec::read("slug = 'x'\nsluggish = 1"), Err(EventError::Unreadable(_))));
    }

    #[test]
    fn days_are_put_in() {
        let today = NaiveDate::from_ymd_opt(2027, 2, 27).unwrap();
        assert_eq!(
            with_days("a = '{{day+2}}T10:00', b = '{{day-27}}T09:00'", today),
            "a = '2027-03-01T10:00', b = '2027-01-31T09:00'"
        );
        assert_eq!(with_days("{{day}} {{day+x}} {{days", today), "{{day}} {{day+x}} {{days");
    }
}
