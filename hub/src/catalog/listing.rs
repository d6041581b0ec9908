//! What is on, read from the database.
//!
//! Counts of seats are hints for lists: an expired hold counts as available, by the clock that was
//! read with it.

use std::collections::HashMap;

use chrono::{DateTime, SubsecRound, Utc};
use fullhouse_protocol::events::{
    EventDetail, EventPage, EventSummary, Fee, Performer, PlanInfo, Price, PriceLevel, Sale, SeatInfo, SeatTraits,
    Venue, VenueSummary,
};
use fullhouse_protocol::seat::Status;
use sqlx::PgConnection;

use super::{
    event::{RefundPolicy, tax},
    layout::flag,
    search::Listed,
};
use crate::clock;

/// Where the sale of an event stands.
fn sale(row: &EventRow, counts: Counts, now: DateTime<Utc>) -> Sale {
    match row.sale_state.as_str() {
        "cancelled" => Sale::Cancelled,
        _ if now >= row.off_sale_at => Sale::Closed,
        _ if now < row.on_sale_at => Sale::Upcoming,
        "paused" => Sale::Paused,
        _ if counts.available == 0 && counts.held == 0 => Sale::SoldOut,
        _ => Sale::OnSale,
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    total: i64,
    available: i64,
    held: i64,
}

struct EventRow {
    id: i64,
    slug: String,
    name: String,
    description: String,
    tags: Vec<String>,
    time_zone: String,
    doors_local: Option<chrono::NaiveDateTime>,
    doors_at: Option<DateTime<Utc>>,
    starts_local: chrono::NaiveDateTime,
    starts_at: DateTime<Utc>,
    on_sale_local: chrono::NaiveDateTime,
    on_sale_at: DateTime<Utc>,
    off_sale_at: DateTime<Utc>,
    currency: String,
    seat_limit: i32,
    hold_ttl_s: i32,
    called_off_reason: Option<String>,
    tax_name: Option<String>,
    tax_milli_percent: Option<i32>,
    refund_policy: Option<serde_json::Value>,
    sale_state: String,
    has_line: bool,
    from_minor: Option<i64>,
    from_fees_minor: i64,
    venue_id: i64,
    venue_slug: String,
    venue_name: String,
    city: String,
    country: String,
    venue_zone: String,
    revision_id: i64,
    revision: i32,
    hash: String,
    seat_count: i32,
}

/// One event, or all of them in the order of their start.
async fn rows(db: &mut PgConnection, only: Option<i64>) -> sqlx::Result<Vec<EventRow>> {
    sqlx::query_as!(
        EventRow,
        r#"select e.id, e.slug, e.name, e.description, e.tags, e.time_zone, e.doors_local, e.doors_at, e.starts_local,
                  e.starts_at, e.on_sale_local, e.on_sale_at, e.off_sale_at, e.currency, e.seat_limit, e.hold_ttl_s,
                  e.tax_name, e.tax_milli_percent, e.refund_policy, e.sale_state,
                  (select c.public_reason from event_cancellation c where c.event_id = e.id) as called_off_reason,
                  exists (select from line l where l.event_id = e.id) as "has_line!",
                  (select min(p.amount_minor) from price p where p.event_id = e.id and p.position = 0) as from_minor,
                  (select coalesce(sum(f.amount_minor), 0)::bigint from fee f where f.event_id = e.id) as "from_fees_minor!",
                  v.id as venue_id, v.slug as venue_slug, v.name as venue_name, v.city, v.country,
                  v.time_zone as venue_zone, r.id as revision_id, r.revision, r.hash, r.seat_count
             from event e
             join plan_revision r on r.id = e.plan_revision_id
             join plan p on p.id = r.plan_id
             join venue v on v.id = p.venue_id
            where $1::bigint is null or e.id = $1
            order by e.starts_at, e.id"#,
        only
    )
    .fetch_all(db)
    .await
}

/// The billing of one event, or of all.
async fn performers(db: &mut PgConnection, only: Option<i64>) -> sqlx::Result<HashMap<i64, Vec<Performer>>> {
    let rows = sqlx::query!(
        "select b.event_id, p.id, p.slug, p.name from event_performer b join performer p on p.id = b.performer_id
          where $1::bigint is null or b.event_id = $1
          order by b.event_id, b.billing, p.id",
        only
    )
    .fetch_all(db)
    .await?;
    let mut performers: HashMap<i64, Vec<Performer>> = HashMap::new();
    for row in rows {
        performers.entry(row.event_id).or_default().push(Performer { id: row.id, slug: row.slug, name: row.name });
    }
    Ok(performers)
}

fn summary(row: &EventRow, performers: Vec<Performer>, counts: Counts, now: DateTime<Utc>) -> EventSummary {
    EventSummary {
        id: row.id,
        slug: row.slug.clone(),
        name: row.name.clone(),
        tags: row.tags.clone(),
        venue: VenueSummary {
            id: row.venue_id,
            slug: row.venue_slug.clone(),
            name: row.venue_name.clone(),
            city: row.city.clone(),
            country: row.country.clone(),
        },
        performers,
        time_zone: row.time_zone.clone(),
        starts_at: row.starts_at,
        starts_local: row.starts_local,
        doors_local: row.doors_local,
        on_sale_at: row.on_sale_at,
        on_sale_local: row.on_sale_local,
        off_sale_at: row.off_sale_at,
        sale: sale(row, counts, now),
        currency: row.currency.clone(),
        from_minor: row.from_minor,
        from_fees_minor: row.from_fees_minor,
        seats_total: counts.total,
        seats_available: counts.available,
        has_line: row.has_line,
        now: now.trunc_subsecs(3),
    }
}

/// How many seats each revision has that are not retired: it never changes, and counting is slow.
pub type Sizes = HashMap<i64, i64>;

/// Every event, with fresh counts where seats can still be bought.
pub async fn list(db: &mut PgConnection, sizes: &mut Sizes) -> sqlx::Result<(Vec<Listed>, DateTime<Utc>)> {
    let now = clock::now(db).await?;
    let rows = rows(db, None).await?;
    let mut performers = performers(db, None).await?;
    let live: Vec<i64> =
        rows.iter().filter(|r| r.off_sale_at > now && r.sale_state != "cancelled").map(|r| r.id).collect();
    let counted = sqlx::query!(
        r#"select event_id,
                  count(*) filter (where status = 0 or (status = 1 and held_until <= $2)) as "available!",
                  count(*) filter (where status = 1 and held_until > $2) as "held!"
             from event_seat where event_id = any($1) group by event_id"#,
        &live,
        now
    )
    .fetch_all(&mut *db)
    .await?;
    let counted: HashMap<i64, (i64, i64)> = counted.into_iter().map(|c| (c.event_id, (c.available, c.held))).collect();
    sizes.retain(|id, _| rows.iter().any(|r| r.revision_id == *id));
    let unknown: Vec<i64> = rows.iter().map(|r| r.revision_id).filter(|id| !sizes.contains_key(id)).collect();
    if !unknown.is_empty() {
        let counted = sqlx::query!(
            r#"select plan_revision_id, count(*) as "seats!" from plan_seat
                where plan_revision_id = any($1) and not retired group by plan_revision_id"#,
            &unknown
        )
        .fetch_all(db)
        .await?;
        sizes.extend(counted.into_iter().map(|c| (c.plan_revision_id, c.seats)));
    }
    let listed = rows.iter().map(|row| {
        let (available, held) = counted.get(&row.id).copied().unwrap_or_default();
        let total = sizes.get(&row.revision_id).copied().unwrap_or_default();
        let summary =
            summary(row, performers.remove(&row.id).unwrap_or_default(), Counts { total, available, held }, now);
        Listed::new(summary)
    });
    Ok((listed.collect(), now))
}

/// The event that has a slug.
pub async fn find(db: &mut PgConnection, slug: &str) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!("select id from event where slug = $1", slug).fetch_optional(db).await
}

/// A seat as it never changes within a revision.
#[derive(Debug)]
pub struct PlanSeat {
    seat_no: i32,
    guid: String,
    section: String,
    row_label: String,
    seat_label: String,
    flags: i16,
}

/// All seats of a revision, the retired ones left out.
pub async fn plan_seats(db: &mut PgConnection, revision_id: i64) -> sqlx::Result<Vec<PlanSeat>> {
    sqlx::query_as!(
        PlanSeat,
        "select seat_no, guid, section, row_label, seat_label, flags from plan_seat
          where plan_revision_id = $1 and not retired order by seat_no",
        revision_id
    )
    .fetch_all(db)
    .await
}

/// What changes of an event's seats, read together with the clock.
#[derive(Debug)]
pub struct EventState {
    row_revision_id: i64,
    page: EventPage<'static>,
    /// Number, level, status: by number.
    seats: Vec<(i32, i16, Status)>,
}

impl EventState {
    /// Which revision's seats belong to it.
    pub fn revision_id(&self) -> i64 {
        self.row_revision_id
    }

    /// The answer, with the seats of the plan or without.
    pub fn page<'a>(&'a self, plan_seats: Option<&'a [PlanSeat]>) -> EventPage<'a> {
        let mut page: EventPage<'a> = self.page.clone();
        page.seats = plan_seats.map(|plan_seats| {
            let mut states = self.seats.iter();
            let mut others = self.page.seat_traits.iter().peekable();
            let seat = |seat: &'a PlanSeat| {
                let (_, level, status) = states.find(|(seat_no, ..)| *seat_no == seat.seat_no)?;
                let other = others.next_if(|other| other.seat_no == seat.seat_no);
                let is = |flag, otherwise: fn(&SeatTraits) -> bool| other.map_or(seat.flags & flag != 0, otherwise);
                Some(SeatInfo {
                    seat_no: seat.seat_no,
                    guid: seat.guid.as_str().into(),
                    section: seat.section.as_str().into(),
                    row: seat.row_label.as_str().into(),
                    number: seat.seat_label.as_str().into(),
                    level: *level,
                    accessible: is(flag::ACCESSIBLE, |other| other.accessible),
                    companion: is(flag::COMPANION, |other| other.companion),
                    restricted_view: is(flag::RESTRICTED_VIEW, |other| other.restricted_view),
                    standing: seat.flags & flag::STANDING != 0,
                    status: *status,
                })
            };
            plan_seats.iter().filter_map(seat).collect()
        });
        page
    }
}

/// Reads an event, and the state of each of its seats if they are asked for; none if there is no such event.
pub async fn state(db: &mut PgConnection, event_id: i64, with_seats: bool) -> sqlx::Result<Option<EventState>> {
    let now = clock::now(db).await?;
    let Some(row) = rows(db, Some(event_id)).await?.pop() else { return Ok(None) };
    let performers = performers(db, Some(event_id)).await?.remove(&event_id).unwrap_or_default();
    let (counts, states) = match with_seats {
        true => seat_states(db, &row, now).await?,
        false => (counts(db, &row, now).await?, Vec::new()),
    };
    let summary = summary(&row, performers.clone(), counts, now);
    let page = EventPage {
        venue: Venue { summary: summary.venue.clone(), time_zone: row.venue_zone.clone() },
        event: EventDetail {
            summary,
            description: row.description,
            called_off_reason: row.called_off_reason,
            doors_at: row.doors_at,
            tax: tax::shown(row.tax_name, row.tax_milli_percent),
            refund_terms: RefundPolicy::read(row.refund_policy).map(|policy| policy.terms(row.starts_at)),
            seat_limit: row.seat_limit,
            hold_ttl_s: row.hold_ttl_s,
        },
        performers,
        price_levels: price_levels(db, event_id).await?,
        fees: fees(db, event_id).await?,
        plan: PlanInfo {
            geometry: format!("/api/plans/{}/geometry", row.hash),
            hash: row.hash,
            revision: row.revision,
            seat_count: row.seat_count,
        },
        seat_traits: seat_traits(db, event_id).await?,
        seats: None,
    };
    Ok(Some(EventState { row_revision_id: row.revision_id, page, seats: states }))
}

/// What seats are for this performance, where that is not what the plan says. By number.
async fn seat_traits(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Vec<SeatTraits>> {
    let rows = sqlx::query!(
        "select t.seat_no, t.flags, t.note from seat_trait t join event e on e.id = t.event_id
         join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = t.seat_no
         where t.event_id = $1 and not p.retired order by t.seat_no",
        event_id
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| traits(row.seat_no, row.flags, row.note)).collect())
}

/// A seat's flags in words.
pub fn traits(seat_no: i32, flags: i16, note: Option<String>) -> SeatTraits {
    SeatTraits {
        seat_no,
        accessible: flags & flag::ACCESSIBLE != 0,
        companion: flags & flag::COMPANION != 0,
        restricted_view: flags & flag::RESTRICTED_VIEW != 0,
        note,
    }
}

/// A retired seat is blocked, so that only the total has to leave it out.
async fn counts(db: &mut PgConnection, row: &EventRow, now: DateTime<Utc>) -> sqlx::Result<Counts> {
    sqlx::query_as!(
        Counts,
        r#"select (select count(*) from plan_seat where plan_revision_id = $2 and not retired) as "total!",
                  count(*) filter (where status = 0 or (status = 1 and held_until <= $3)) as "available!",
                  count(*) filter (where status = 1 and held_until > $3) as "held!"
             from event_seat where event_id = $1"#,
        row.id,
        row.revision_id,
        now
    )
    .fetch_one(db)
    .await
}

/// Number, level and status of every seat that is not retired.
async fn seat_states(
    db: &mut PgConnection,
    row: &EventRow,
    now: DateTime<Utc>,
) -> sqlx::Result<(Counts, Vec<(i32, i16, Status)>)> {
    let seats = sqlx::query!(
        r#"select s.seat_no, s.level, s.status, s.held_until
             from event_seat s join plan_seat p on p.plan_revision_id = $2 and p.seat_no = s.seat_no
            where s.event_id = $1 and not p.retired order by s.seat_no"#,
        row.id,
        row.revision_id
    )
    .fetch_all(db)
    .await?;
    let mut counts = Counts::default();
    let mut states = Vec::with_capacity(seats.len());
    for seat in seats {
        let status = match Status::try_from(seat.status).map_err(|e| sqlx::Error::Decode(Box::new(e)))? {
            Status::Held if seat.held_until.is_some_and(|until| until <= now) => Status::Available,
            status => status,
        };
        counts.total += 1;
        counts.available += i64::from(status == Status::Available);
        counts.held += i64::from(status == Status::Held);
        states.push((seat.seat_no, seat.level, status));
    }
    Ok((counts, states))
}

async fn price_levels(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Vec<PriceLevel>> {
    let rows = sqlx::query!(
        "select l.level, l.name, l.category, l.color, p.ticket_type, p.amount_minor
           from price_level l join price p on p.event_id = l.event_id and p.level = l.level
          where l.event_id = $1 order by l.level, p.position, p.ticket_type",
        event_id
    )
    .fetch_all(db)
    .await?;
    let mut levels: Vec<PriceLevel> = Vec::new();
    for row in rows {
        let price = Price { ticket_type: row.ticket_type, amount_minor: row.amount_minor };
        match levels.last_mut() {
            Some(level) if level.level == row.level => level.prices.push(price),
            _ => levels.push(PriceLevel {
                level: row.level,
                name: row.name,
                category: row.category,
                color: row.color,
                prices: vec![price],
            }),
        }
    }
    Ok(levels)
}

async fn fees(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Vec<Fee>> {
    sqlx::query_as!(Fee, "select code, basis, amount_minor from fee where event_id = $1 order by code", event_id)
        .fetch_all(db)
        .await
}

/// The drawing of a revision, gzipped; none if no revision has this hash.
pub async fn geometry(db: &mut PgConnection, hash: &str) -> sqlx::Result<Option<Vec<u8>>> {
    sqlx::query_scalar!("select geometry from plan_revision where hash = $1 limit 1", hash).fetch_optional(db).await
}
