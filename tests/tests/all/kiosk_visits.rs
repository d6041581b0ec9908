//! A kiosk as it runs, at a real hub with a simulated provider: customers who pay, who walk away, and what the next one
//! finds. Its machine is searched in `box-office-app/core/src/kiosk/tests.rs`; here it is carried out.

use std::{path::Path, time::Duration};

use chrono::TimeDelta;
use fullhouse::{auth, config::Config};
use fullhouse_box_office::{
    kiosk::{Case, Failure, Screen, Unpaid, Way},
    print::Profile,
    terminal::{
        Address, Home, Relay, Role, Token,
        papers::Papers,
        visits::{Shown, Touched, Visits, Wish},
    },
};
use fullhouse_protocol::{holds::BestRequest, orders::OrderState, terminal::TerminalSelf};
use fullhouse_test_printer::{Behaviour, TestPrinter};
use fullhouse_tests::{
    HUNG,
    database::Database,
    eventually,
    hub::Hub,
    network::{Network, Weather},
    provider::Provider,
    rows::Rows,
    run::run,
    till::Till,
};
use serde_json::json;

/// A second of a kiosk that nobody stands at.
const SHORT: Duration = Duration::from_millis(20);
const READER: &str = "tmr_kiosk";
const LONG: Duration = Duration::from_secs(1);

struct Place {
    database: Database,
    event: i64,
    provider: Provider,
    hub: Hub,
    network: Network,
    token: String,
    folder: std::path::PathBuf,
}

impl Place {
    async fn open() -> Self {
        Self::with(|_| {}).await
    }

    /// `more` changes the hub's settings.
    async fn with(more: impl FnOnce(&mut Config)) -> Self {
        let database = Database::new().await;
        let event = Rows::new(2, 20).open(database.pool()).await;
        let provider = Provider::start().await;
        let mut config = database.config().await;
        provider.configure(&mut config);
        more(&mut config);
        let hub = Hub::start(config).await;
        provider.webhooks_to(&hub.url()).await;
        let network = Network::before(&hub.url(), 1).await;
        let (_, token) = auth::enrol(database.pool(), "Kiosk 1", "kiosk").await.expect("a terminal");
        Till::place_reader(&database, "Kiosk 1", READER).await;
        let (token, folder) = (token.reveal().to_owned(), run().await.directory("kiosk"));
        Self { database, event, provider, hub, network, token, folder }
    }

    /// The kiosk's program begins.
    async fn begin(&self, second: Duration) -> Visits {
        let hub = Address::parse(&self.network.url()).unwrap();
        let relay = Relay::of_terminal(hub, Role::Kiosk, Token::new(self.token.clone())).unwrap();
        let own: TerminalSelf = serde_json::from_value(relay.terminal().await.unwrap()).unwrap();
        let home = Home::open(&self.folder).unwrap();
        let papers = Papers::open(&home, own.terminal_id).unwrap();
        let visits = Visits::begin(relay, papers, home, "a test", second).unwrap();
        until(&visits, "it knows its hub, its printer and its reader", |s| s.reader && s.screen == Screen::Attract)
            .await;
        visits
    }

    /// Its tickets come out of this one from the next beginning on.
    fn prints_at(&self, printer: &TestPrinter) {
        let profile = Profile::network(&printer.address().to_string());
        std::fs::write(self.folder.join("printer.json"), serde_json::to_vec(&profile).unwrap()).unwrap();
    }

    /// A customer, up to their two seats and what they cost.
    async fn hold(&self, visits: &Visits) -> Shown {
        let best = Some(BestRequest { count: 2, level: None, section: None, accessible: 0 });
        let wish = Wish { event_id: self.event, seats: None, best };
        for touched in [Touched::Begin, Touched::Language { language: 1 }, Touched::Take { wish }] {
            visits.touched(touched).await;
        }
        until(visits, "they are held, with a price", |s| s.screen == Screen::Held && s.order.is_some()).await
    }

    /// A card that pays.
    async fn pay(&self, visits: &Visits) {
        visits.touched(Touched::Pay).await;
        until(visits, "the reader waits", |s| s.screen == Screen::AtReader { ready: true }).await;
        self.hold_card().await;
    }

    /// A card that was held to the reader, and of which nobody can say what the bank made of it.
    async fn leave_in_doubt(&self, visits: &Visits) {
        self.provider
            .rules(json!([
                { "match": { "op": "process", "first": 1 },
                  "effect": { "network": "timeout_after", "reader": { "tap_after_ms": 0 } } },
                { "match": { "op": "get" }, "effect": { "network": "timeout_before" } },
            ]))
            .await;
        visits.touched(Touched::Pay).await;
        until(visits, "the bank is asked", |s| s.screen == Screen::Authorising).await;
    }

    /// As soon as the reader waits for one.
    async fn hold_card(&self) {
        eventually("the reader is in use", || async {
            let reader = self.provider.get(&format!("terminal/readers/{READER}")).await;
            (reader["action"]["status"] == "in_progress").then_some(())
        })
        .await;
        self.provider.present_card(READER).await;
    }

    async fn free(&self) -> i64 {
        self.count("select count(*) from event_seat where status = 0").await
    }

    async fn gone(&self, visits: &Visits, visit: u64) {
        let next = until(visits, "the next person", |s| s.visit > visit).await;
        assert_eq!((&next.hold, &next.order, &next.problem, next.language), (&None, &None, &None, None));
        eventually("their seats are back", || async { (self.free().await == 40).then_some(()) }).await;
    }

    async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.database.pool()).await.expect("the test's database answers")
    }

    async fn close(self) {
        self.provider.ledger().await.agrees_with(&self.database).await;
        self.hub.stop().await;
        self.database.finish().await;
    }
}

async fn until(visits: &Visits, what: &str, so: impl FnMut(&Shown) -> bool) -> Shown {
    let mut shown = visits.shown();
    let seen = tokio::time::timeout(HUNG * 2, shown.wait_for(so)).await;
    match seen {
        Ok(shown) => shown.expect("it runs").clone(),
        Err(_) => panic!("never: {what}; but {:?}", visits.shown().borrow()),
    }
}

#[tokio::test]
async fn two_seats_are_paid_for_and_the_next_person_finds_nothing() {
    let place = Place::open().await;
    let visits = place.begin(LONG).await;
    let held = place.hold(&visits).await;
    assert_eq!(held.hold.as_ref().unwrap().seats.len(), 2);
    place.pay(&visits).await;
    let done = until(&visits, "it is paid", |s| s.screen == Screen::Done).await;
    assert_eq!(done.order.unwrap().tickets.len(), 2);
    visits.touched(Touched::Cancel).await;
    let next = until(&visits, "the next person", |s| s.screen == Screen::Attract).await;
    assert_eq!((next.order, next.hold), (None, None));
    assert!(!read(&place.folder).contains("payment\": {"), "nothing of it is left on the disk");
    place.close().await;
}

#[tokio::test]
async fn whoever_walks_away_leaves_no_seats_behind() {
    let place = Place::open().await;
    let visits = place.begin(SHORT).await;
    // While choosing: nothing is held yet.
    visits.touched(Touched::Begin).await;
    visits.touched(Touched::Language { language: 0 }).await;
    let chooses = until(&visits, "they choose", |s| s.screen == Screen::Choosing(Way::Best)).await;
    until(&visits, "it counts down", |s| s.ends_in_s.is_some()).await;
    place.gone(&visits, chooses.visit).await;
    // With seats.
    let held = place.hold(&visits).await;
    place.gone(&visits, held.visit).await;
    // At the reader, which is stopped before anything goes back.
    let held = place.hold(&visits).await;
    visits.touched(Touched::Pay).await;
    until(&visits, "the reader is told to stop", |s| s.screen == Screen::Stopping).await;
    place.gone(&visits, held.visit).await;
    assert_eq!(place.count("select count(*) from attempt where captured_minor > 0").await, 0);
    place.close().await;
}

#[tokio::test]
async fn a_cancelled_reader_charges_nothing_and_the_seats_can_still_be_paid() {
    let place = Place::open().await;
    let visits = place.begin(LONG).await;
    place.hold(&visits).await;
    visits.touched(Touched::Pay).await;
    until(&visits, "the reader waits", |s| s.screen == Screen::AtReader { ready: true }).await;
    visits.touched(Touched::Cancel).await;
    until(&visits, "it has stopped", |s| s.screen == Screen::Held).await;
    place.pay(&visits).await;
    until(&visits, "it is paid", |s| s.screen == Screen::Done).await;
    place.close().await;
}

#[tokio::test]
async fn a_network_that_is_gone_while_the_bank_is_asked_ends_with_staff_and_not_with_nobody() {
    let place = Place::open().await;
    let visits = place.begin(SHORT).await;
    let held = place.hold(&visits).await;
    let order = held.order.unwrap();
    visits.touched(Touched::Pay).await;
    until(&visits, "the reader waits", |s| s.screen == Screen::AtReader { ready: true }).await;
    place.network.turns(Weather::Silent);
    until(&visits, "staff are called", |s| s.screen == Screen::Staff).await;
    let case = until(&visits, "it sells nothing", |s| s.visit > held.visit).await;
    assert_eq!(case.screen, Screen::OutOfService(fullhouse_box_office::kiosk::Fault::Case));
    assert_eq!(
        (case.calls[0].case, case.calls[0].order, case.calls[0].code.as_ref()),
        (Case::PaymentInDoubt, Some(order.id), Some(&order.code))
    );
    assert_eq!(case.order, None, "nothing of the customer is shown to the next one");
    // Switched off and on again it still says so, and tells the hub as soon as it can.
    visits.end().await;
    place.network.turns(Weather::Calm);
    let again = begin_with_case(&place).await;
    assert_eq!(again.shown().borrow().screen, Screen::OutOfService(fullhouse_box_office::kiosk::Fault::Case));
    let detail = "select count(*) from terminal where health ->> 'detail' like '%PaymentInDoubt%'";
    eventually("the hub was told", || async { (place.count(detail).await == 1).then_some(()) }).await;
    again.staff_came().await;
    until(&again, "it serves again", |s| s.screen == Screen::Attract && s.calls.is_empty()).await;
    place.close().await;
}

async fn begin_with_case(place: &Place) -> Visits {
    let hub = Address::parse(&place.network.url()).unwrap();
    let relay = Relay::of_terminal(hub, Role::Kiosk, Token::new(place.token.clone())).unwrap();
    let own: TerminalSelf = serde_json::from_value(relay.terminal().await.unwrap()).unwrap();
    let home = Home::open(&place.folder).unwrap();
    let papers = Papers::open(&home, own.terminal_id).unwrap();
    Visits::begin(relay, papers, home, "a test", LONG).unwrap()
}

/// The customer has left, the bank is silent, their time runs out; then it says yes.
#[tokio::test]
async fn a_bank_that_says_yes_once_the_seats_time_is_over_charges_nobody() {
    let place = Place::open().await;
    let clock = place.database.take_clock().await;
    let visits = place.begin(SHORT * 5).await;
    let held = place.hold(&visits).await;
    let total = held.order.as_ref().expect("a price").total_minor;
    place.leave_in_doubt(&visits).await;
    assert_eq!(place.provider.ledger().await.authorised(), total, "or this shows nothing");
    let time = held.hold.as_ref().expect("their seats").held_until - clock.now().await;
    clock.advance(time + TimeDelta::seconds(1)).await;
    place.provider.rules(json!([])).await;
    place.provider.replay().await;
    until(&visits, "their time is over", |s| s.screen == Screen::Failed(Failure::HoldOver)).await;
    place.gone(&visits, held.visit).await;
    let ledger = place.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.authorised()), (0, 0));
    assert_eq!(place.count("select count(*) from attempt where outcome = 'hold_ended'").await, 1);
    assert!(visits.shown().borrow().calls.is_empty(), "nobody has to see to it");
    place.close().await;
}

#[tokio::test]
async fn a_kiosk_that_is_switched_off_at_the_reader_comes_back_out_of_service() {
    let place = Place::open().await;
    let visits = place.begin(LONG).await;
    let order = place.hold(&visits).await.order.unwrap();
    visits.touched(Touched::Pay).await;
    until(&visits, "the reader waits", |s| s.screen == Screen::AtReader { ready: true }).await;
    visits.end().await;
    let again = begin_with_case(&place).await;
    let shown = again.shown().borrow().clone();
    assert_eq!(shown.screen, Screen::OutOfService(fullhouse_box_office::kiosk::Fault::Case));
    assert_eq!(shown.calls[0].order, Some(order.id));
    place.hold_card().await;
    // Somebody holds a card to it all the same: the order says so to whoever looks at it.
    let taken = "select count(*) from attempt where captured_minor > 0";
    eventually("the card has paid", || async { (place.count(taken).await == 1).then_some(()) }).await;
    place.close().await;
}

#[tokio::test]
async fn a_declined_card_charges_nothing_and_another_may_pay() {
    let place = Place::open().await;
    let visits = place.begin(LONG).await;
    place.hold(&visits).await;
    let declines = json!([{ "match": { "op": "process" }, "effect": { "reader": { "tap_after_ms": 0, "decline": "insufficient_funds" } } }]);
    place.provider.rules(declines).await;
    visits.touched(Touched::Pay).await;
    let declined = Screen::Failed(Failure::Unpaid(Unpaid::Declined));
    until(&visits, "it is declined", |s| s.screen == declined).await;
    place.provider.rules(json!([])).await;
    place.pay(&visits).await;
    until(&visits, "it is paid", |s| s.screen == Screen::Done).await;
    place.close().await;
}

#[tokio::test]
async fn what_was_paid_for_comes_out_of_the_printer() {
    let (place, printer) = (Place::open().await, TestPrinter::start(576));
    place.prints_at(&printer);
    let visits = place.begin(LONG).await;
    place.hold(&visits).await;
    place.pay(&visits).await;
    until(&visits, "the tickets lie in the tray", |s| s.screen == Screen::Done && s.prints).await;
    printer.settle();
    assert_eq!(printer.sheets().iter().filter(|sheet| sheet.cut).count(), 2);
    let printed = "select count(*) from ticket_print where state = 'printed'";
    eventually("the hub knows", || async { (place.count(printed).await == 2).then_some(()) }).await;
    place.close().await;
}

/// The seats are sold when the bank has said yes; the tickets are valid once the money is taken.
#[tokio::test]
async fn tickets_are_printed_once_the_card_is_charged_however_long_that_takes() {
    let (place, printer) = (Place::open().await, TestPrinter::start(576));
    place.prints_at(&printer);
    place.provider.rules(json!([{ "match": { "op": "capture" }, "effect": { "network": "timeout_before" } }])).await;
    let visits = place.begin(LONG).await;
    place.hold(&visits).await;
    visits.touched(Touched::Pay).await;
    place.hold_card().await;
    until(&visits, "they have paid", |s| s.screen == Screen::Printing).await;
    let pending = "select count(*) from ticket where state = 'pending'";
    assert_eq!(place.count(pending).await, 2, "nothing is charged yet, or this shows nothing");
    assert_eq!(place.count("select count(*) from ticket_print").await, 0);
    place.provider.rules(json!([])).await;
    until(&visits, "the tickets lie in the tray", |s| s.screen == Screen::Done).await;
    printer.settle();
    assert_eq!(printer.sheets().iter().filter(|sheet| sheet.cut).count(), 2);
    place.close().await;
}

#[tokio::test]
async fn whose_card_can_not_be_charged_after_all_gets_no_paper_and_is_told_with_what_to_go_to_the_counter() {
    let (place, printer) = (Place::open().await, TestPrinter::start(576));
    place.prints_at(&printer);
    place.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
    let visits = place.begin(LONG).await;
    place.hold(&visits).await;
    visits.touched(Touched::Pay).await;
    place.hold_card().await;
    let told = until(&visits, "nothing is printed", |s| matches!(s.screen, Screen::Unprinted { .. })).await;
    assert_eq!(told.order.unwrap().state, OrderState::PaymentDue);
    assert_eq!(told.calls[0].case, Case::Unprinted);
    assert_eq!(printer.sheets().len(), 0);
    place.close().await;
}

#[tokio::test]
async fn what_was_paid_for_and_not_printed_is_mailed_and_staff_are_called() {
    let mails = run().await.directory("kiosk-mail");
    let folder = mails.display().to_string();
    let place = Place::with(move |config| {
        config.mail.folder = folder;
        config.mail.from = "Fullhouse <tickets@house.example>".to_owned();
        config.mail.tick_ms = 20;
    })
    .await;
    let printer = TestPrinter::start(576);
    printer.behave(Behaviour { paper_out_at: Some(4_000), ..Behaviour::GOOD });
    place.prints_at(&printer);
    let visits = place.begin(LONG).await;
    let order = place.hold(&visits).await.order.unwrap();
    place.pay(&visits).await;
    let told = until(&visits, "it says so", |s| s.screen == Screen::Unprinted { mailed: false }).await;
    assert_eq!((told.calls[0].case, told.calls[0].order), (Case::Unprinted, Some(order.id)));
    visits.touched(Touched::Mail { to: "no address".to_owned() }).await;
    until(&visits, "that is none", |s| s.problem.is_some()).await;
    visits.touched(Touched::Mail { to: "ana@example.org".to_owned() }).await;
    until(&visits, "it is on its way", |s| s.screen == Screen::Unprinted { mailed: true }).await;
    let sent = eventually("it is sent", || async {
        let files = std::fs::read_dir(&mails).unwrap().flatten().map(|file| file.path());
        files.filter_map(|file| std::fs::read_to_string(file).ok()).next()
    })
    .await;
    assert!(sent.contains("To: ana@example.org") && sent.contains(&order.code), "{sent}");
    assert!(!sent.contains("/orders/"), "they have no account to look at it with");
    let forgotten = "select count(*) from mail where state = 'sent' and address is null";
    eventually("the address is forgotten", || async { (place.count(forgotten).await == 1).then_some(()) }).await;
    // The next person can't buy what would not come out.
    visits.touched(Touched::Glass).await;
    assert_eq!(visits.staff_came().await.len(), 1);
    let printer_is_out = Screen::OutOfService(fullhouse_box_office::kiosk::Fault::Printer);
    until(&visits, "out of service", |s| s.screen == printer_is_out).await;
    printer.behave(Behaviour::GOOD);
    printer.load_paper();
    until(&visits, "it serves again", |s| s.screen == Screen::Attract).await;
    place.close().await;
}

fn read(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("visits.json")).unwrap_or_default()
}
