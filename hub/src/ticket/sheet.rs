//! What stands on the tickets of an order, as it is printed, mailed and shown.

use std::sync::Arc;

use chrono::NaiveDateTime;
use fullhouse_protocol::seat::SeatTrait;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    catalog::{event::TicketLook, layout::flag},
    words::Language,
};

/// The valid tickets of an order, and what they have in common.
#[derive(Debug, Clone)]
pub struct Sheet {
    pub order_code: String,
    pub event_name: String,
    pub venue: String,
    pub city: String,
    /// In the event's zone.
    pub starts: NaiveDateTime,
    pub doors: Option<NaiveDateTime>,
    pub zone: String,
    pub currency: String,
    /// None: a customer at a counter, whose name nobody asked.
    pub holder: Option<String>,
    pub language: Language,
    /// Nothing was paid for it.
    pub comp: bool,
    pub look: TicketLook,
    /// A PNG.
    pub logo: Option<Arc<Vec<u8>>>,
    pub tickets: Vec<SheetTicket>,
}

#[derive(Debug, Clone)]
pub struct SheetTicket {
    pub id: Uuid,
    pub seat_no: i32,
    pub section: String,
    /// Empty where people stand.
    pub row: String,
    pub number: String,
    /// A place to stand, and no seat.
    pub standing: bool,
    pub traits: Vec<SeatTrait>,
    /// What the house says of the seat for this performance.
    pub note: Option<String>,
    pub ticket_type: String,
    /// Of the currency's smallest unit.
    pub amount_minor: i64,
    pub code: String,
}

impl SheetTicket {
    /// What its number is called.
    pub fn numbered(&self) -> &'static str {
        if self.standing { "ticket.place" } else { "ticket.seat" }
    }
}

/// Reads an order's sheet; None: there is no such order. Tickets that are not valid (yet, or any more) are not on it.
pub async fn sheet(db: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Option<Sheet>> {
    let head = sqlx::query!(
        r#"select o.code, o.currency, e.name as event_name, e.starts_local, e.doors_local, e.time_zone, e.ticket_template, e.ticket_logo,
                  v.name as venue, v.city, a.name as "holder?", a.language as "language?",
                  exists(select from tender t where t.order_id = o.id and t.kind in ('comp', 'voucher')) as "comp!"
           from "order" o join event e on e.id = o.event_id
           join plan_revision r on r.id = e.plan_revision_id join plan p on p.id = r.plan_id join venue v on v.id = p.venue_id
           join buyer b on b.id = o.buyer_id left join account a on a.id = b.account_id
           where o.id = $1"#,
        order_id
    )
    .fetch_optional(&mut *db)
    .await?;
    let Some(head) = head else { return Ok(None) };
    let tickets = sqlx::query!(
        r#"select t.id, t.seat_no, p.section, p.row_label, p.seat_label,
                  seat_flags(p.flags, s.flags) as "flags!", s.note as "note?", t.code as "code!",
                  coalesce(l.ticket_type, '') as "ticket_type!", coalesce(l.amount_minor, 0) as "amount_minor!"
           from ticket t join event e on e.id = t.event_id
           join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = t.seat_no
           left join order_line l on l.order_id = t.order_id and l.seat_no = t.seat_no and l.state = 'sold'
           left join seat_trait s on s.event_id = t.event_id and s.seat_no = t.seat_no
           where t.order_id = $1 and t.state = 'valid' order by t.seat_no"#,
        order_id
    )
    .fetch_all(db)
    .await?;
    let tickets = tickets.into_iter().map(|t| SheetTicket {
        id: t.id,
        seat_no: t.seat_no,
        section: t.section,
        row: t.row_label,
        number: t.seat_label,
        standing: t.flags & flag::STANDING != 0,
        traits: flag::traits(t.flags),
        note: t.note,
        ticket_type: t.ticket_type,
        amount_minor: t.amount_minor,
        code: t.code,
    });
    Ok(Some(Sheet {
        order_code: head.code,
        event_name: head.event_name,
        venue: head.venue,
        city: head.city,
        starts: head.starts_local,
        doors: head.doors_local,
        zone: head.time_zone,
        currency: head.currency,
        holder: head.holder,
        language: head.language.as_deref().and_then(Language::read).unwrap_or_default(),
        comp: head.comp,
        look: TicketLook::read(head.ticket_template),
        logo: head.ticket_logo.map(Arc::new),
        tickets: tickets.collect(),
    }))
}

/// Whose name will stand on an order's tickets, in which language; None: nobody's, or its house prints none.
pub async fn holder(db: &mut PgConnection, order_id: Uuid) -> sqlx::Result<Option<(String, Language)>> {
    let found = sqlx::query!(
        r#"select a.name, a.language, e.ticket_template from "order" o join event e on e.id = o.event_id
           join buyer b on b.id = o.buyer_id join account a on a.id = b.account_id where o.id = $1"#,
        order_id
    )
    .fetch_optional(db)
    .await?;
    Ok(found
        .filter(|found| !TicketLook::read(found.ticket_template.clone()).hides("holder"))
        .map(|found| (found.name, Language::read(&found.language).unwrap_or_default())))
}

/// A ticket of an event that nobody has bought, to see what its tickets look like: its first seat, a name in several
/// scripts, and a code that opens no door. None: there is no such event.
pub async fn sample(db: &mut PgConnection, event_id: i64, language: Language) -> sqlx::Result<Option<Sheet>> {
    let found = sqlx::query!(
        r#"select e.name, e.starts_local, e.doors_local, e.time_zone, e.currency, e.ticket_template, e.ticket_logo,
                  v.name as venue, v.city, s.seat_no, s.section, s.row_label, s.seat_label, seat_flags(s.flags, t.flags) as "flags!", t.note as "note?",
                  p.ticket_type as "ticket_type?", p.amount_minor as "amount_minor?"
           from event e join plan_revision r on r.id = e.plan_revision_id join plan l on l.id = r.plan_id
           join venue v on v.id = l.venue_id
           join plan_seat s on s.plan_revision_id = e.plan_revision_id and not s.retired
           join event_seat es on es.event_id = e.id and es.seat_no = s.seat_no
           left join seat_trait t on t.event_id = e.id and t.seat_no = s.seat_no
           left join price p on p.event_id = e.id and p.level = es.level
           where e.id = $1 order by s.seat_no, p.position limit 1"#,
        event_id
    )
    .fetch_optional(db)
    .await?;
    Ok(found.map(|e| Sheet {
        order_code: "PREVIEW0".to_owned(),
        event_name: e.name,
        venue: e.venue,
        city: e.city,
        starts: e.starts_local,
        doors: e.doors_local,
        zone: e.time_zone,
        currency: e.currency,
        holder: Some("Łukasz 東京 홍길동 محمد".to_owned()),
        language,
        comp: false,
        look: TicketLook::read(e.ticket_template),
        logo: e.ticket_logo.map(Arc::new),
        tickets: vec![SheetTicket {
            id: Uuid::nil(),
            seat_no: e.seat_no,
            section: e.section,
            row: e.row_label,
            number: e.seat_label,
            standing: e.flags & flag::STANDING != 0,
            traits: flag::traits(e.flags),
            note: e.note,
            ticket_type: e.ticket_type.unwrap_or_default(),
            amount_minor: e.amount_minor.unwrap_or_default(),
            code: "PREVIEW: THIS IS NO TICKET".to_owned(),
        }],
    }))
}
