//! From an order, as the hub tells it, to what is printed of it.

use std::collections::HashMap;

use chrono::NaiveDateTime;
use fullhouse_paper::words::Language;
use fullhouse_protocol::{
    orders::{Order, OrderLine},
    tickets::PrintJob,
};
use uuid::Uuid;

use super::{
    ledger::Job,
    page::Page,
    pages::{Receipt, Ticket, numbered},
};

/// An order's tickets that can be printed: the valid ones, each with its id, in the order of the hub's list.
pub fn tickets(order: &Order, language: Language, holder: Option<&str>, comp: bool) -> Vec<(Uuid, Ticket)> {
    let lines: HashMap<i32, &OrderLine> =
        order.lines.iter().filter_map(|line| line.seat_no.map(|seat| (seat, line))).collect();
    let valid: Vec<_> = order.tickets.iter().filter_map(|ticket| Some((ticket, ticket.code.clone()?))).collect();
    let all = valid.len();
    let of = |(at, (ticket, code)): (usize, (&fullhouse_protocol::orders::Ticket, String))| {
        let line = lines.get(&ticket.seat_no);
        let price = line.filter(|_| !comp).map(|line| (order.currency.clone(), line.amount_minor));
        let printed = Ticket {
            language,
            event: order.event_name.clone(),
            venue: order.venue.clone(),
            city: order.city.clone(),
            starts: order.starts_local,
            doors: None,
            section: ticket.section.clone(),
            row: ticket.row.clone(),
            number: ticket.number.clone(),
            standing: ticket.standing,
            ticket_type: match line.and_then(|line| line.ticket_type.clone()) {
                _ if comp => "comp".to_owned(),
                known => known.unwrap_or_default(),
            },
            price,
            holder: holder.map(str::to_owned),
            order: order.code.clone(),
            count: (at + 1, all),
            code,
            told: language.seat_told(ticket.traits.iter().map(|told| told.code()), ticket.note.as_deref()),
        };
        (ticket.id, printed)
    };
    valid.into_iter().enumerate().map(of).collect()
}

/// What the hub opened jobs for (`POST …/orders/{id}/prints`), ready for [`super::Printer::print_all`].
///
/// # Errors
/// The id of a ticket that the order doesn't have, or not any more: read the order again.
pub fn jobs(opened: &[PrintJob], tickets: &[(Uuid, Ticket)]) -> Result<Vec<(Job, Page)>, Uuid> {
    let known: HashMap<Uuid, &Ticket> = tickets.iter().map(|(id, ticket)| (*id, ticket)).collect();
    let of = |job: &PrintJob| {
        let ticket = known.get(&job.ticket_id).ok_or(job.ticket_id)?;
        let what = [&ticket.order, &ticket.section, &ticket.row, &ticket.number];
        let what: Vec<&str> = what.into_iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        let job = Job { id: job.id, of_hub: true, ticket_id: Some(job.ticket_id), what: what.join(" · ") };
        Ok((job, ticket.page()))
    };
    opened.iter().map(of).collect()
}

/// How an order was paid at a till.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paid {
    /// Handed over, and handed back.
    pub cash_minor: i64,
    pub change_minor: i64,
}

/// Where people stand there is no row.
fn named(part: &Option<String>) -> Option<&str> {
    part.as_deref().filter(|name| !name.trim().is_empty())
}

/// An order's receipt, its till's and house's lines still empty. A card that paid is told by the order itself.
pub fn receipt(order: &Order, language: Language, paid: &Paid, sold: NaiveDateTime) -> Receipt {
    let line = |line: &OrderLine| {
        let place = [
            line.section.clone(),
            named(&line.row).map(|row| format!("{} {row}", language.say("ticket.row"))),
            named(&line.number).map(|number| format!("{} {number}", language.say(numbered(line.standing)))),
            line.ticket_type.as_ref().map(|kind| language.ticket_type(kind)),
            line.fee_code.as_ref().map(|code| code.replace('_', " ")),
        ];
        let place: Vec<String> = place.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
        (place.join(", "), line.amount_minor)
    };
    let card = order.attempt.as_ref().and_then(|attempt| attempt.card.as_ref());
    let in_cash = paid.cash_minor - paid.change_minor;
    let by_card =
        card.map(|card| (format!("{} **** {}", card.brand.to_uppercase(), card.last4), order.total_minor - in_cash));
    let cash = (paid.cash_minor != 0).then(|| (language.tender("cash"), paid.cash_minor));
    Receipt {
        language,
        house: Vec::new(),
        order: order.code.clone(),
        event: order.event_name.clone(),
        sold,
        till: String::new(),
        clerk: None,
        currency: order.currency.clone(),
        lines: order.lines.iter().map(line).collect(),
        total_minor: order.total_minor,
        tax: order.tax.as_ref().map(|tax| (tax.name.clone(), tax.percent.clone(), tax.amount_minor)),
        tenders: cash.into_iter().chain(by_card).collect(),
        change_minor: paid.change_minor,
    }
}
