//! The books after an evening without a network: what the tills' own disks say, held against the hub and the door.

use std::collections::{BTreeMap, BTreeSet};

use fullhouse_box_office::journal::Journal;
use fullhouse_protocol::lease::{NotSold, OfflineSale, Outcome};
use serde_json::Value;
use sqlx::Row;
use uuid::Uuid;

use super::{Evening, Window};

/// What is known of one sale, from the till's disk.
struct Journalled {
    terminal: Uuid,
    sale: OfflineSale,
    outcome: Option<Outcome>,
}

/// What the hub and the door say.
struct Hubs {
    /// Printed ticket by lease and seat.
    printed: BTreeMap<(Uuid, i32), Uuid>,
    /// Seats by code that a door lets in.
    live: BTreeMap<Uuid, i32>,
    /// Seats and total by confirmed order.
    orders: BTreeMap<Uuid, (BTreeSet<i32>, i64)>,
    written_off: BTreeSet<Uuid>,
    to_see_to: BTreeSet<(Uuid, u64)>,
}

impl Evening {
    /// What is wrong; nothing, if nothing is.
    pub(super) async fn books(&mut self) -> Vec<String> {
        let sales: Vec<Journalled> = self.windows.iter().flat_map(journalled).collect();
        let hubs = self.hubs().await;
        let mut broken = Vec::new();
        for sale in &sales {
            broken.extend(is_settled_once(sale, &hubs));
        }
        broken.extend(self.every_journal_is_the_hubs(&sales).await);
        broken.extend(one_live_code_a_seat(&hubs));
        broken.extend(money(&sales, &hubs));
        broken.extend(self.nothing_is_leased().await);
        let came = |what: fn(&Outcome) -> bool| sales.iter().filter(|s| s.outcome.as_ref().is_some_and(what)).count();
        self.figures.insert("sold without a network", came(|o| matches!(o, Outcome::Sold { .. })) as u64);
        self.figures.insert("under new codes", came(|o| matches!(o, Outcome::Sold { new_codes: true, .. })) as u64);
        self.figures.insert("seat gone", came(|o| matches!(o, Outcome::NotSold { .. })) as u64);
        broken
    }

    async fn hubs(&self) -> Hubs {
        let rows = |sql: &'static str| async move {
            sqlx::query(sql).fetch_all(self.database.pool()).await.expect("the test's database answers")
        };
        let seats = rows("select lease_id, seat_no, ticket_id from lease_seat").await;
        let dead = self.office.get(&format!("/api/box-office/events/{}/dead-tickets", self.event)).await.ok();
        let dead: BTreeSet<Uuid> = serde_json::from_value(dead["dead"].clone()).expect("a list of tickets");
        let listed = self.office.get("/api/staff/leases").await.ok();
        let known = rows("select ticket_id as id, seat_no from lease_seat union select id, seat_no from ticket").await;
        let orders = rows(
            "select o.id, o.total_minor, array_agg(l.seat_no) as seats from \"order\" o join order_line l on l.order_id = o.id
             where o.state = 'confirmed' and l.state = 'sold' group by o.id",
        )
        .await;
        let ends = rows("select id from lease where state = 'written_off'").await;
        Hubs {
            printed: seats.iter().map(|r| ((r.get("lease_id"), r.get("seat_no")), r.get("ticket_id"))).collect(),
            live: known
                .iter()
                .map(|r| (r.get("id"), r.get("seat_no")))
                .filter(|(id, _): &(Uuid, i32)| !dead.contains(id))
                .collect(),
            orders: orders
                .iter()
                .map(|r| (r.get("id"), (r.get::<Vec<i32>, _>("seats").into_iter().collect(), r.get("total_minor"))))
                .collect(),
            written_off: ends.iter().map(|r| r.get("id")).collect(),
            to_see_to: listed["to_see_to"].as_array().expect("a list").iter().map(number).collect(),
        }
    }

    /// What the hub took in is what lies on the disks, no more and no less.
    async fn every_journal_is_the_hubs(&self, sales: &[Journalled]) -> Vec<String> {
        let rows = sqlx::query("select terminal_id, seq, body from journal_entry")
            .fetch_all(self.database.pool())
            .await
            .expect("the test's database answers");
        let hubs: BTreeMap<(Uuid, i64), OfflineSale> = rows
            .iter()
            .map(|r| ((r.get("terminal_id"), r.get("seq")), serde_json::from_str(r.get("body")).expect("a sale")))
            .collect();
        let disks: BTreeMap<(Uuid, i64), &OfflineSale> =
            sales.iter().map(|s| ((s.terminal, s.sale.seq.cast_signed()), &s.sale)).collect();
        let keys: BTreeSet<&(Uuid, i64)> = hubs.keys().chain(disks.keys()).collect();
        let differ = keys.into_iter().filter(|k| hubs.get(*k) != disks.get(*k).copied());
        differ.map(|k| format!("sale {k:?}: the hub has {:?}, the disk {:?}", hubs.get(k), disks.get(k))).collect()
    }

    async fn nothing_is_leased(&self) -> Vec<String> {
        let left: i64 = sqlx::query_scalar(
            "select (select count(*) from event_seat where lease_id is not null) + (select count(*) from lease where state = 'open')",
        )
        .fetch_one(self.database.pool())
        .await
        .expect("the test's database answers");
        (left > 0).then(|| format!("{left} seats and leases are still the tills'")).into_iter().collect()
    }
}

fn number(listed: &Value) -> (Uuid, u64) {
    let terminal = listed["terminal_id"].as_str().and_then(|id| id.parse().ok());
    (terminal.expect("a terminal"), listed["seq"].as_u64().expect("a number"))
}

fn journalled(window: &Window) -> Vec<Journalled> {
    let journal = Journal::open(&window.at.folder.join("journal"), window.at.terminal_id, 1).expect("a journal");
    let read = |(seq, body): (u64, &[u8])| Journalled {
        terminal: window.at.terminal_id,
        sale: serde_json::from_slice(body).expect("a sale"),
        outcome: journal.outcome(seq).map(|o| serde_json::from_slice(o).expect("an outcome")),
    };
    journal.sales().map(read).collect()
}

/// A journalled sale has its order, its seats and its codes, or stands on the list because its lease was written off.
fn is_settled_once(journalled: &Journalled, hubs: &Hubs) -> Vec<String> {
    let Journalled { terminal, sale, outcome } = journalled;
    let which = format!("sale {} of {terminal}, seats {:?}", sale.seq, sale.seats);
    let printed: Vec<Uuid> =
        sale.seats.iter().filter_map(|s| hubs.printed.get(&(sale.lease_id, s.seat_no)).copied()).collect();
    let letting_in = printed.iter().filter(|id| hubs.live.contains_key(id)).count();
    let mut broken = Vec::new();
    match outcome {
        None => broken.push(format!("{which} was never answered")),
        Some(Outcome::Sold { order_id, new_codes }) => {
            let wanted = (sale.seats.iter().map(|s| s.seat_no).collect::<BTreeSet<_>>(), sale.total_minor);
            if hubs.orders.get(order_id) != Some(&wanted) {
                broken.push(format!("{which} became {:?}", hubs.orders.get(order_id)));
            }
            let expected = if *new_codes { 0 } else { sale.seats.len() };
            if letting_in != expected {
                broken.push(format!("{which}: a door lets in {letting_in} of its printed tickets"));
            }
            if *new_codes != hubs.to_see_to.contains(&(*terminal, sale.seq)) {
                broken.push(format!("{which}: new codes {new_codes}, and the list says otherwise"));
            }
        }
        Some(Outcome::NotSold { reason }) => {
            if *reason != NotSold::SeatGone || !hubs.written_off.contains(&sale.lease_id) {
                broken.push(format!("{which} is no sale ({reason:?}), and nobody wrote its lease off"));
            }
            if !hubs.to_see_to.contains(&(*terminal, sale.seq)) {
                broken.push(format!("{which} is no sale, and is on nobody's list"));
            }
            if letting_in > 0 {
                broken.push(format!("{which} is no sale, and a door lets in {letting_in}"));
            }
        }
    }
    broken
}

/// At the door a seat is one person's.
fn one_live_code_a_seat(hubs: &Hubs) -> Vec<String> {
    let mut of_seat: BTreeMap<i32, Vec<Uuid>> = BTreeMap::new();
    for (ticket, seat) in &hubs.live {
        of_seat.entry(*seat).or_default().push(*ticket);
    }
    let owners: BTreeMap<i32, usize> =
        hubs.orders.values().flat_map(|(seats, _)| seats).fold(BTreeMap::new(), |mut owners, seat| {
            *owners.entry(*seat).or_default() += 1;
            owners
        });
    let mut broken = Vec::new();
    for (seat, tickets) in of_seat {
        if tickets.len() > 1 || owners.get(&seat) != Some(&1) {
            broken.push(format!("seat {seat}: the door lets in {tickets:?}, orders: {:?}", owners.get(&seat)));
        }
    }
    broken.extend(owners.into_iter().filter(|(_, n)| *n > 1).map(|(seat, n)| format!("seat {seat} has {n} orders")));
    broken
}

/// What lies in the drawers is what became orders, and what stands on the list.
fn money(sales: &[Journalled], hubs: &Hubs) -> Vec<String> {
    let drawers: i64 = sales.iter().map(|s| s.sale.total_minor).sum();
    let orders: BTreeSet<Uuid> = sales
        .iter()
        .filter_map(|s| match &s.outcome {
            Some(Outcome::Sold { order_id, .. }) => Some(*order_id),
            _ => None,
        })
        .collect();
    let sold: i64 = orders.iter().filter_map(|id| hubs.orders.get(id)).map(|(_, total)| total).sum();
    let listed: i64 = sales
        .iter()
        .filter(|s| matches!(s.outcome, Some(Outcome::NotSold { .. })))
        .filter(|s| hubs.to_see_to.contains(&(s.terminal, s.sale.seq)))
        .map(|s| s.sale.total_minor)
        .sum();
    let differs = drawers != sold + listed;
    differs.then(|| format!("{drawers} in the drawers, {sold} sold, {listed} on the list")).into_iter().collect()
}
