//! A till's printer, its ledger and the hub's: a ticket whose print is in doubt is dead before another is printed.

use std::{fs, path::PathBuf};

use fullhouse_box_office::print::{Decision, End, Ledger, Printer, Profile, Trouble, order};
use fullhouse_paper::{fonts::Fonts, words::Language};
use fullhouse_protocol::{
    orders::Order,
    tickets::{PrintJob, PrintJobs},
};
use fullhouse_test_printer::{Behaviour, TestPrinter};
use fullhouse_tests::{database::Database, fan, hub::Hub, provider, rows::Rows, till::Till};
use serde_json::{Value, json};
use uuid::Uuid;

/// Prints in a thread of its own, as a till does.
async fn print(
    printer: &TestPrinter,
    ledger: PathBuf,
    order: &Order,
    opened: Vec<PrintJob>,
) -> (Vec<End>, Vec<(Uuid, bool)>, Vec<Uuid>) {
    let (address, order) = (printer.address().to_string(), order.clone());
    let printed = tokio::task::spawn_blocking(move || {
        let mut ledger = Ledger::open(&ledger, Uuid::from_u128(7)).expect("a ledger");
        let printer = Printer::new(Profile::network(&address), Fonts::new(&[]));
        let tickets = order::tickets(&order, Language::En, Some("Łukasz"), false);
        let jobs = order::jobs(&opened, &tickets).expect("the order has these tickets");
        let ends = printer.print_all(&mut ledger, jobs).expect("the ledger is kept");
        let reports: Vec<(Uuid, bool)> = ledger.unreported().collect();
        for (job, _) in &reports {
            ledger.reported(*job).expect("the ledger is kept");
        }
        let doubtful = ledger.doubtful().filter_map(|entry| entry.job.ticket_id).collect();
        (ends.into_iter().map(|(_, end)| end).collect(), reports, doubtful)
    });
    printed.await.expect("nothing panics")
}

/// What a door's scanner reads on the pieces of paper, in order.
async fn codes(printer: &TestPrinter) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("fullhouse-printing-{}", Uuid::now_v7()));
    fs::create_dir_all(&folder).expect("a folder");
    let mut found = Vec::new();
    for (at, sheet) in printer.sheets().iter().enumerate() {
        let file = folder.join(format!("{at}.png"));
        fs::write(&file, sheet.picture.png()).expect("a file");
        let mut reader = tokio::process::Command::new("zbarimg");
        let read = reader.args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"]).arg(&file).output().await;
        let read = String::from_utf8(read.expect("zbarimg").stdout).expect("text");
        found.extend(read.lines().map(str::to_owned));
    }
    fs::remove_dir_all(&folder).expect("our folder");
    found
}

#[tokio::test]
async fn a_ticket_in_doubt_is_dead_before_another_is_printed() {
    let database = Database::new().await;
    let event = Rows { price_minor: 0, ..Rows::new(4, 10) }.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let buyer = fan::many(&database, &hub.url(), 1).await.remove(0);
    let till = Till::enrol(&database, &hub.url(), "Till").await;
    let open = provider::order(&buyer, event, &[0, 1, 2]).await;
    let id = open["id"].as_str().unwrap().to_owned();
    buyer.post(&format!("/api/orders/{id}/claim"), Value::Null).await.ok();
    let read = async || -> Order {
        serde_json::from_value(buyer.get(&format!("/api/orders/{id}")).await.ok()["order"].clone()).unwrap()
    };
    let prints = format!("/api/box-office/orders/{id}/prints");
    let begin = async |tickets: Value| -> Vec<PrintJob> {
        let opened = till.post(&prints, json!({ "ticket_ids": tickets })).await.ok();
        serde_json::from_value::<PrintJobs>(opened).unwrap().jobs
    };
    let tell = async |reports: Vec<(Uuid, bool)>| {
        for (job, printed) in reports {
            let state = if printed { "printed" } else { "failed" };
            let told = till.post(&format!("/api/box-office/prints/{job}"), json!({ "state": state })).await;
            assert_eq!(told.status, 204);
        }
    };

    // The paper ends in the second of three.
    let paper = TestPrinter::start(576);
    let ledger = std::env::temp_dir().join(format!("fullhouse-ledger-{}", Uuid::now_v7()));
    let order = read().await;
    let (_, first) = &order::tickets(&order, Language::En, Some("Łukasz"), false)[0];
    let bytes = first.page().commands(&Fonts::new(&[]), &Profile::network("")).bytes().len();
    paper.behave(Behaviour { paper_out_at: Some(4_096 + bytes * 3 / 2), ..Behaviour::GOOD });
    let jobs = begin(json!([])).await;
    let (ends, reports, doubtful) = print(&paper, ledger.clone(), &order, jobs.clone()).await;
    let out = Trouble::PaperOut;
    assert_eq!(ends, [End::Printed, End::Doubtful(out), End::NotPrinted(out)]);
    assert_eq!(doubtful, [jobs[1].ticket_id]);
    tell(reports).await;
    paper.load_paper();

    // Nobody prints the second again as it is; the third is nobody's doubt.
    let refused = till.post(&prints, json!({ "ticket_ids": [jobs[1].ticket_id] })).await;
    assert_eq!(refused.code(), "ticket_printed");
    let address = format!("/api/box-office/tickets/{}/reissue", jobs[1].ticket_id);
    let reissued = till.post(&address, json!({ "reason": "paper out" })).await.ok();
    let by: Uuid = serde_json::from_value(reissued["ticket_id"].clone()).unwrap();
    Ledger::open(&ledger, Uuid::from_u128(7)).unwrap().decide(jobs[1].id, Decision::Replaced { by }, "Anna").unwrap();
    let again = begin(json!([by, jobs[2].ticket_id])).await;
    let order = read().await;
    let (ends, reports, doubtful) = print(&paper, ledger.clone(), &order, again).await;
    assert_eq!((ends, doubtful), (vec![End::Printed; 2], vec![]));
    tell(reports).await;

    // On paper: one good code a seat. The old one is on the door's list of the dead, whatever came out of it.
    let good: Vec<String> = order.tickets.iter().filter_map(|ticket| ticket.code.clone()).collect();
    let mut printed = codes(&paper).await;
    printed.sort();
    let mut expected = good.clone();
    expected.sort();
    assert_eq!((printed, good.len()), (expected, 3));
    let dead = till.get(&format!("/api/box-office/events/{event}/dead-tickets")).await.ok();
    assert_eq!(dead["dead"], json!([jobs[1].ticket_id]));
    for file in [ledger.clone(), ledger.with_extension("lock")] {
        let _ = fs::remove_file(file);
    }
    hub.stop().await;
    database.finish().await;
}
