//! A seat's story: whose it is, and whatever happened to it.

use fullhouse_protocol::box_office::{CustomerHold, SeatNote, SeatSale, SeatStory, SeatTicket};
use sqlx::PgPool;

use super::consign;
use crate::{catalog::listing::traits, checkout::find, seat_map::SeatNo};

/// Of each kind, the latest.
const LINES_MAX: i64 = 100;

/// `None`: the event has no such seat.
pub async fn story(pool: &PgPool, event_id: i64, seat_no: SeatNo) -> sqlx::Result<Option<SeatStory>> {
    let Some(seat) = sqlx::query!(
        r#"select p.section, p.row_label, p.seat_label, p.category, s.status, s.hold_id, s.order_id,
                  seat_flags(p.flags, x.flags) as "flags!", x.note as "note?",
                  case when s.held_until > db_clock() then s.held_until end as held_until, h.channel as "channel?",
                  s.status = 3 and coalesce((select n.verb = 'kill' from seat_note n
                      where n.event_id = s.event_id and n.seat_no = s.seat_no order by n.id desc limit 1), false) as "dead!"
           from event_seat s join event e on e.id = s.event_id
           join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
           left join seat_trait x on x.event_id = s.event_id and x.seat_no = s.seat_no
           left join lateral (
               select case when b.account_id is not null then 'web' else coalesce(t.name, p.name) end as channel
               from hold h join buyer b on b.id = h.buyer_id left join terminal t on t.id = b.terminal_id
               left join partner p on p.id = b.partner_id
               where h.id = s.hold_id) h on true
           where s.event_id = $1 and s.seat_no = $2"#,
        event_id,
        seat_no
    )
    .fetch_optional(pool)
    .await?
    else {
        return Ok(None);
    };
    let status = match (seat.status, seat.held_until, seat.dead) {
        (1, Some(_), _) => "held",
        (2, _, _) => "sold",
        (3, _, true) => "dead",
        (3, _, false) => "blocked",
        _ => "free",
    };
    let held = status == "held";
    let (customer, consigned) = match seat.hold_id.filter(|_| held) {
        Some(hold_id) => (customer(pool, hold_id).await?, consign::of_hold(pool, hold_id).await?),
        None => (None, None),
    };
    let order = match seat.order_id {
        Some(id) => find::order(pool, id).await?,
        None => None,
    };
    Ok(Some(SeatStory {
        event_id,
        seat_no,
        section: seat.section,
        row: seat.row_label,
        number: seat.seat_label,
        category: seat.category,
        status: status.to_owned(),
        held_until: seat.held_until.filter(|_| held),
        held_by: seat.channel.filter(|_| held),
        traits: traits(seat_no, seat.flags, seat.note),
        customer,
        consigned,
        order,
        sales: sales(pool, event_id, seat_no).await?,
        tickets: tickets(pool, event_id, seat_no).await?,
        notes: notes(pool, event_id, seat_no).await?,
    }))
}

async fn customer(pool: &PgPool, hold_id: uuid::Uuid) -> sqlx::Result<Option<CustomerHold>> {
    sqlx::query_as!(
        CustomerHold,
        "select c.hold_id, c.buyer_id, c.event_id, h.seat_nos as seats, c.name, c.note, h.held_until as until, c.made_by, c.made_at
         from customer_hold c join hold h on h.id = c.hold_id where c.hold_id = $1",
        hold_id
    )
    .fetch_optional(pool)
    .await
}

async fn sales(pool: &PgPool, event_id: i64, seat_no: SeatNo) -> sqlx::Result<Vec<SeatSale>> {
    sqlx::query_as!(
        SeatSale,
        r#"select o.id as order_id, o.code as order_code, o.channel, l.state, l.amount_minor, o.currency, l.list_minor,
                  l.price_reason, o.confirmed_at as "sold_at!"
           from order_line l join "order" o on o.id = l.order_id
           where l.event_id = $1 and l.seat_no = $2 and l.state <> 'open' and o.confirmed_at is not null
           order by l.id desc limit $3"#,
        event_id,
        seat_no,
        LINES_MAX
    )
    .fetch_all(pool)
    .await
}

async fn tickets(pool: &PgPool, event_id: i64, seat_no: SeatNo) -> sqlx::Result<Vec<SeatTicket>> {
    sqlx::query_as!(
        SeatTicket,
        r#"select t.id as ticket_id, t.order_id, t.state, t.void_reason, t.created_at,
                  exists(select from ticket_print p where p.ticket_id = t.id and p.state in ('sent', 'printed')) as "printed!"
           from ticket t where t.event_id = $1 and t.seat_no = $2 order by t.created_at desc limit $3"#,
        event_id,
        seat_no,
        LINES_MAX
    )
    .fetch_all(pool)
    .await
}

async fn notes(pool: &PgPool, event_id: i64, seat_no: SeatNo) -> sqlx::Result<Vec<SeatNote>> {
    sqlx::query_as!(
        SeatNote,
        r#"select verb as "verb!", reason as "reason!", actor as "actor!", at as "at!" from (
             select verb, reason, actor, created_at as at from seat_note where event_id = $1 and seat_no = $2
             union all select 'traits', reason, actor, set_at from seat_trait where event_id = $1 and seat_no = $2) as noted
         order by at desc limit $3"#,
        event_id,
        seat_no,
        LINES_MAX
    )
    .fetch_all(pool)
    .await
}
