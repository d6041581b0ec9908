use fullhouse_protocol::{orders::Order, seat::SeatTrait, tickets::PrintJob};
use serde_json::json;

use super::*;

fn order() -> Order {
    let ticket = |n: u8, state: &str, code: Option<String>| {
        json!({ "id": Uuid::from_u128(u128::from(n)), "seat_no": n, "section": "Main", "row": "12", "number": n.to_string(),
                "code": code, "state": state })
    };
    let line = |n: u8, minor: i64| {
        json!({ "seat_no": n, "section": "Main", "row": "12", "number": n.to_string(), "ticket_type": "adult",
                "fee_code": null, "amount_minor": minor })
    };
    let order = json!({
        "id": Uuid::from_u128(50), "code": "K7Q2M", "event_id": 3, "event_name": "Der Freischütz", "venue": "Stadthalle",
        "city": "Zürich", "starts_local": "2027-03-01T19:00", "starts_at": "2027-03-01T18:00:00Z", "state": "confirmed",
        "currency": "EUR", "total_minor": 9_150, "held_until": null, "pay_until": null, "confirmed_at": null,
        "created_at": "2027-01-01T12:00:00Z",
        "attempt": { "id": Uuid::from_u128(60), "state": "captured", "phase": "paid", "action_url": null,
                     "decline_code": null, "outcome": null, "seats_until": "2027-01-01T12:10:00Z",
                     "card": { "brand": "visa", "last4": "4242" } },
        "lines": [line(1, 4_500), line(2, 4_500),
                  { "seat_no": null, "section": null, "row": null, "number": null, "ticket_type": null,
                    "fee_code": "booking_fee", "amount_minor": 150 }],
        "tickets": [ticket(1, "valid", Some(code(1))), ticket(2, "void", None)],
    });
    serde_json::from_value(order).unwrap()
}

fn opened(ticket: u128) -> PrintJob {
    let job = json!({ "id": Uuid::from_u128(70), "ticket_id": Uuid::from_u128(ticket), "seat_no": 1, "state": "sent",
                      "reason": "", "actor": "terminal Foyer", "created_at": "2027-01-01T12:00:00Z" });
    serde_json::from_value(job).unwrap()
}

#[test]
fn what_is_valid_of_an_order_is_printed_under_the_hubs_job() {
    let tickets = order::tickets(&order(), Language::En, Some("Zoë"), false);
    assert_eq!(tickets.len(), 1, "a dead ticket is not printed");
    let jobs = order::jobs(&[opened(1)], &tickets).unwrap();
    assert_eq!(jobs[0].0.what, "K7Q2M · Main · 12 · 1");
    assert_eq!((jobs[0].0.id, jobs[0].0.ticket_id), (Uuid::from_u128(70), Some(Uuid::from_u128(1))));
    let sheet = printed(&jobs[0].1, &Fonts::new(&[]), &Profile::network("printer:9100"));
    assert_eq!(scanned(&sheet.picture.png()), [code(1)]);
    assert_eq!(
        order::jobs(&[opened(2)], &tickets),
        Err(Uuid::from_u128(2)),
        "nothing is printed of an order that is old"
    );
}

#[test]
fn what_is_told_of_a_seat_stands_below_its_name() {
    let mut order = order();
    order.tickets[0].traits = vec![SeatTrait::Companion, SeatTrait::RestrictedView];
    order.tickets[0].note = Some("A pillar".to_owned());
    let ticket = order::tickets(&order, Language::En, None, false)[0].1.page();
    let lines = printed(&ticket, &Fonts::new(&[]), &Profile::network("printer:9100")).letters;
    let at = lines.iter().position(|line| line.contains("companion seat · restricted view · A pillar")).unwrap();
    assert!(lines[at - 1].contains("Row 12 Seat 1"), "{lines:?}");
}

#[test]
fn a_place_to_stand_is_called_no_seat() {
    let mut order = order();
    (order.tickets[0].standing, order.tickets[0].row) = (true, String::new());
    (order.lines[0].standing, order.lines[0].row) = (true, None);
    let sold = NaiveDate::from_ymd_opt(2027, 1, 1).unwrap().and_hms_opt(13, 0, 0).unwrap();
    let receipt = order::receipt(&order, Language::En, &order::Paid::default(), sold).page();
    let ticket = order::tickets(&order, Language::En, None, false)[0].1.page();
    for (page, said) in [(ticket, "Standing place 1"), (receipt, "Main, Standing place 1, Adult")] {
        let text = printed(&page, &Fonts::new(&[]), &Profile::network("printer:9100")).letters.join("\n");
        assert!(text.contains(said) && !text.contains("Seat 1"), "{text}");
    }
}

#[test]
fn a_comp_says_so_and_names_no_price() {
    let tickets = order::tickets(&order(), Language::En, None, true);
    let text = printed(&tickets[0].1.page(), &Fonts::new(&[]), &Profile::network("printer:9100")).letters.join("\n");
    assert!(text.contains("Complimentary") && !text.contains("EUR"), "{text}");
}

#[test]
fn a_receipt_adds_up() {
    let sold = NaiveDate::from_ymd_opt(2027, 1, 1).unwrap().and_hms_opt(13, 0, 0).unwrap();
    let paid = order::Paid { cash_minor: 5_000, change_minor: 350 };
    let receipt = order::receipt(&order(), Language::En, &paid, sold);
    assert_eq!(receipt.lines.iter().map(|(_, minor)| minor).sum::<i64>(), receipt.total_minor);
    let handed: i64 = receipt.tenders.iter().map(|(_, minor)| minor).sum();
    assert_eq!(handed - receipt.change_minor, receipt.total_minor);
    let text = printed(&receipt.page(), &Fonts::new(&[]), &Profile::network("printer:9100")).letters.join("\n");
    for part in ["Main, Row 12, Seat 1, Adult", "booking fee", "VISA **** 4242", "EUR 45.00", "Change"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
