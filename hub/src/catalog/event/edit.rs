//! An event as its specification, and the other way round: what [`show`] writes, [`edit`] takes, and
//! saving it again changes nothing, however often and wherever.
//!
//! Invariants
//! - Local times are what is shown and what is saved, in the event's own zone: no instant is turned
//!   into a local time or back on the way through an editor. Whose zone the editor is in plays no part.
//! - A level keeps its number, which seats name. An event keeps its slug, its plan, and, once there
//!   are orders, its currency.
//! - Nobody ends up with more seats than a lowered limit allows.

use chrono::NaiveDateTime;
use sqlx::PgConnection;

use super::{
    EventError, EventSpec, FeeSpec, LevelSpec, PerformerSpec, PriceSpec, RefundPolicy, TicketLook, Times,
    insert_performers, level_faults, party_fault, read_stage, spec, tax, times, write_prices,
};
use crate::db;

/// An event that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub id: i64,
    /// Valid tickets whose date or doors have changed: what their buyers have on paper says something else.
    pub moved_tickets: i64,
}

/// Makes an event what a specification says. The caller commits.
pub async fn edit(tx: &mut PgConnection, spec: &EventSpec) -> Result<Edited, EventError> {
    let mut faults = spec::plain_faults(spec);
    let id = match find(tx, &spec.slug).await {
        Err(EventError::Unknown(_)) if !faults.is_empty() => {
            faults.push(format!("slug: {}", EventError::Unknown(spec.slug.clone())));
            return Err(EventError::Faults(faults));
        }
        found => found?,
    };
    db::lock_event(tx, id).await?; // neither a hold nor an import comes between
    let event = sqlx::query!(
        r#"select e.plan_revision_id, e.currency, e.starts_at, e.doors_at, v.slug as venue, v.time_zone as venue_zone, p.name as plan,
                  (exists (select from "order" o where o.event_id = e.id)
                   or exists (select from lease l where l.event_id = e.id)) as "sold!"
           from event e join plan_revision r on r.id = e.plan_revision_id
                join plan p on p.id = r.plan_id join venue v on v.id = p.venue_id
           where e.id = $1"#,
        id
    )
    .fetch_one(&mut *tx)
    .await?;
    if (&event.venue, &event.plan) != (&spec.venue, &spec.plan) {
        faults.push(format!("plan: the event is on the plan {:?} of {:?} and stays there", event.plan, event.venue));
    }
    if event.sold && event.currency != spec.currency {
        faults.push(format!("currency: there are orders or leases in {}", event.currency));
    }
    let mut stage = read_stage(tx, event.plan_revision_id, event.venue_zone).await?;
    // A category whose seats have left the plan keeps its level, since old seats name it.
    let known =
        sqlx::query_scalar!("select category from price_level where event_id = $1", id).fetch_all(&mut *tx).await?;
    for category in known {
        if !stage.categories.iter().any(|(name, _)| *name == category) {
            stage.categories.push((category, 0));
        }
    }
    level_faults(spec, &stage, &mut faults);
    party_fault(spec, &stage, &mut faults);
    limit_fault(tx, id, spec, &mut faults).await?;
    let times = times(spec, spec.time_zone.as_deref().unwrap_or(&stage.zone), &mut faults);
    let Some(times) = times.filter(|_| faults.is_empty()) else { return Err(EventError::Faults(faults)) };
    update(tx, id, spec, &times).await?;
    sqlx::query!("delete from event_performer where event_id = $1", id).execute(&mut *tx).await?;
    insert_performers(tx, id, spec).await?;
    write_prices(tx, id, spec).await?;
    tax::write(tx, id, spec.tax.as_ref()).await?;
    let moved = (event.starts_at, event.doors_at) != (times.starts.1, times.doors.map(|d| d.1));
    let moved_tickets = if moved { tickets(tx, id).await? } else { 0 };
    Ok(Edited { id, moved_tickets })
}

async fn tickets(tx: &mut PgConnection, id: i64) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from ticket where event_id = $1 and state in ('valid', 'pending')"#,
        id
    )
    .fetch_one(tx)
    .await
}

async fn find(tx: &mut PgConnection, slug: &str) -> Result<i64, EventError> {
    sqlx::query_scalar!("select id from event where slug = $1", slug)
        .fetch_optional(tx)
        .await?
        .ok_or_else(|| EventError::Unknown(slug.to_owned()))
}

async fn limit_fault(tx: &mut PgConnection, id: i64, spec: &EventSpec, faults: &mut Vec<String>) -> sqlx::Result<()> {
    let most = sqlx::query_scalar!(
        r#"select coalesce(max(seats), 0)::int as "most!" from (
             select sum(seats) as seats from (
               select buyer_id, cardinality(seat_nos) as seats from hold
               where event_id = $1 and state = 'live' and held_until > db_clock()
               union all
               select o.buyer_id, 1 from order_line l join "order" o on o.id = l.order_id
               where l.event_id = $1 and l.state = 'sold' and l.seat_no is not null
             ) owned group by buyer_id) buyers"#,
        id
    )
    .fetch_one(tx)
    .await?;
    if most > spec.seat_limit {
        faults.push(format!("seat_limit: a buyer has {most} seats already"));
    }
    Ok(())
}

async fn update(tx: &mut PgConnection, id: i64, spec: &EventSpec, times: &Times) -> sqlx::Result<()> {
    let done = sqlx::query!(
        "update event set name = $2, description = $3, tags = $4, time_zone = $5, doors_local = $6, doors_at = $7,
                starts_local = $8, starts_at = $9, on_sale_local = $10, on_sale_at = $11, off_sale_local = $12,
                off_sale_at = $13, currency = $14, seat_limit = $15, hold_ttl_s = $16, single_seat_rule = $17,
                consecutive_rule = $18, seats_min = $19, refund_policy = $20, ticket_template = $21
          where id = $1",
        id,
        spec.name,
        spec.description,
        &spec.tags,
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
    .execute(tx)
    .await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// An event as it is written down.
pub async fn show(db: &mut PgConnection, slug: &str) -> Result<EventSpec, EventError> {
    let id = find(db, slug).await?;
    let e = sqlx::query!(
        "select e.*, v.slug as venue, p.name as plan
         from event e join plan_revision r on r.id = e.plan_revision_id
              join plan p on p.id = r.plan_id join venue v on v.id = p.venue_id
         where e.id = $1",
        id
    )
    .fetch_one(&mut *db)
    .await?;
    let performers = sqlx::query_as!(
        PerformerSpec,
        "select p.slug, p.name from event_performer b join performer p on p.id = b.performer_id
         where b.event_id = $1 order by b.billing",
        id
    )
    .fetch_all(&mut *db)
    .await?;
    let levels =
        sqlx::query!("select level, name, category, color from price_level where event_id = $1 order by level", id)
            .fetch_all(&mut *db)
            .await?;
    let prices = sqlx::query!(
        "select level, ticket_type, amount_minor from price where event_id = $1 order by level, position, ticket_type",
        id
    )
    .fetch_all(&mut *db)
    .await?;
    let of_level = |level: i16| {
        let own = prices.iter().filter(|p| p.level == level);
        own.map(|p| PriceSpec { ticket_type: p.ticket_type.clone(), amount_minor: p.amount_minor }).collect()
    };
    let levels = levels
        .into_iter()
        .map(|l| LevelSpec {
            category: l.category,
            name: Some(l.name),
            color: Some(l.color),
            prices: of_level(l.level),
        })
        .collect();
    let fees =
        sqlx::query_as!(FeeSpec, "select code, basis, amount_minor from fee where event_id = $1 order by code", id)
            .fetch_all(&mut *db)
            .await?;
    Ok(EventSpec {
        slug: e.slug,
        name: e.name,
        description: e.description,
        tags: e.tags,
        venue: e.venue,
        plan: e.plan,
        time_zone: Some(e.time_zone),
        doors: e.doors_local.map(written),
        starts: written(e.starts_local),
        on_sale: written(e.on_sale_local),
        off_sale: Some(written(e.off_sale_local)),
        currency: e.currency,
        seat_limit: e.seat_limit,
        hold_ttl_s: e.hold_ttl_s,
        single_seat_rule: e.single_seat_rule,
        consecutive_rule: e.consecutive_rule,
        seats_min: e.seats_min,
        refund: RefundPolicy::read(e.refund_policy),
        ticket: e.ticket_template.is_some().then(|| TicketLook::read(e.ticket_template)),
        ticket_logo: None, // the file is where it was; the picture stays unless another is named
        performers,
        levels,
        fees,
        tax: tax::spec(e.tax_name, e.tax_milli_percent),
    })
}

fn written(local: NaiveDateTime) -> String {
    local.format("%Y-%m-%dT%H:%M:%S").to_string()
}
