use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::journal::{Medium, OpenError};

const TERMINAL: Uuid = Uuid::from_u128(7);

fn quick() -> Bounds {
    Bounds {
        connect: Duration::from_secs(2),
        answer: Duration::from_millis(800),
        stall: Duration::from_millis(800),
        done: Duration::from_millis(2_500),
        look: Duration::from_millis(50),
    }
}

/// Five tickets of one order.
fn five() -> Vec<(Job, Page)> {
    let job = |n: u8| Job {
        id: Uuid::now_v7(),
        of_hub: true,
        ticket_id: Some(Uuid::from_u128(u128::from(n) + 100)),
        what: format!("K7Q2M · Main floor, row 12, seat {n}"),
    };
    (1..=5).map(|n| (job(n), Ticket { code: code(n), number: n.to_string(), ..ticket("Zoë") }.page())).collect()
}

fn printer_at(address: &str, confirms: Confirms) -> Printer {
    let profile = Profile { confirms, ..Profile::network(address) };
    Printer::new(profile, Fonts::new(&[])).with_bounds(quick())
}

fn ends(ends: &[(Uuid, End)]) -> Vec<End> {
    ends.iter().map(|(_, end)| *end).collect()
}

#[test]
fn paper_out_in_the_third_of_five_leaves_no_doubt_which_came_out() {
    let folder = Folder::new();
    let path = folder.0.join("prints");
    let paper = TestPrinter::start(576);
    let printer = printer_at(&paper.address().to_string(), Confirms::Jobs);
    let mut ledger = Ledger::open(&path, TERMINAL).unwrap();
    let jobs = five();
    let first: Vec<(Job, Page)> = jobs[..2].to_vec();
    assert_eq!(ends(&printer.print_all(&mut ledger, first).unwrap()), [End::Printed; 2]);
    paper.behave(Behaviour { paper_out_at: Some(9_000), ..Behaviour::GOOD });
    let rest = printer.print_all(&mut ledger, jobs[2..].to_vec()).unwrap();
    let out = Trouble::PaperOut;
    assert_eq!(ends(&rest), [End::Doubtful(out), End::NotPrinted(out), End::NotPrinted(out)]);
    drop(ledger);

    let mut ledger = Ledger::open(&path, TERMINAL).unwrap();
    let doubtful: Vec<Entry> = ledger.doubtful().cloned().collect();
    assert_eq!(doubtful.iter().map(|entry| entry.job.id).collect::<Vec<_>>(), [jobs[2].0.id], "after a restart too");
    let reports: Vec<(Uuid, bool)> = ledger.unreported().collect();
    let told = |at: usize, printed: bool| (jobs[at].0.id, printed);
    assert_eq!(reports, [told(0, true), told(1, true), told(3, false), told(4, false)]);
    for (id, _) in reports {
        ledger.reported(id).unwrap();
    }
    assert_eq!(ledger.unreported().count(), 0);

    // A person looked: it did not come out whole. The hub reissued it, so the old code is dead.
    let by = Uuid::from_u128(900);
    ledger.decide(jobs[2].0.id, Decision::Replaced { by }, "Anna").unwrap();
    assert_eq!(ledger.doubtful().count(), 0);
    let again = ledger.decide(jobs[2].0.id, Decision::CameOut, "Berta");
    assert!(matches!(again, Err(LedgerError::OutOfTurn(_))), "decided once");
    assert_eq!(ledger.unreported().count(), 0, "what may lie in a buffer is never reported as not printed");

    // The new roll: nothing of the third ticket comes out of the buffer, and the rest prints.
    paper.load_paper();
    paper.settle();
    let new = Job { id: Uuid::now_v7(), ticket_id: Some(by), ..jobs[2].0.clone() };
    let mut more = vec![(new, Ticket { code: code(30), ..ticket("Zoë") }.page())];
    more.extend(jobs[3..].iter().map(|(job, page)| (Job { id: Uuid::now_v7(), ..job.clone() }, page.clone())));
    assert_eq!(ends(&printer.print_all(&mut ledger, more).unwrap()), [End::Printed; 3]);
    let codes: Vec<String> = paper.sheets().iter().flat_map(|sheet| scanned(&sheet.picture.png())).collect();
    assert_eq!(codes, [code(1), code(2), code(30), code(4), code(5)]);
}

/// The control: what a printer without a ledger would do, sending five at once and a second time after the new roll.
#[test]
fn five_at_once_and_again_print_a_ticket_twice() {
    let paper = TestPrinter::start(576);
    paper.behave(Behaviour { paper_out_at: Some(70_000), ..Behaviour::GOOD });
    let profile = Profile::network("printer:9100");
    let all: Vec<u8> =
        five().iter().flat_map(|(_, p)| p.commands(&Fonts::new(&[]), &profile).bytes().to_vec()).collect();
    let address = paper.address().to_string();
    let mut link = link::network(&address, Duration::from_secs(2)).unwrap();
    link.send(&all, Duration::from_secs(2)).unwrap();
    paper.settle();
    paper.load_paper();
    paper.settle();
    link.send(&all, Duration::from_secs(2)).unwrap();
    paper.settle();
    let mut codes: Vec<String> = paper.sheets().iter().flat_map(|sheet| scanned(&sheet.picture.png())).collect();
    let out = codes.len();
    codes.sort();
    codes.dedup();
    assert!(out > codes.len(), "{out} tickets, {} codes", codes.len());
}

/// Whatever happens at whatever byte: printed is on paper, not printed is not, and everything else is doubtful.
#[test]
fn no_end_is_a_lie_wherever_paper_or_wire_end() {
    let whole = {
        let profile = Profile::network("printer:9100");
        printed(&Ticket { code: code(1), number: "1".to_owned(), ..ticket("Zoë") }.page(), &Fonts::new(&[]), &profile)
    };
    let mut seen = std::collections::BTreeSet::new();
    for confirms in [Confirms::Jobs, Confirms::Paper] {
        let length = 36_000;
        let places = (0..12).map(|n| n * length / 11).chain([1, 5, 12, 13, 40]);
        for at in places {
            for wire in [false, true] {
                let paper = TestPrinter::start(576);
                let broken = if wire {
                    Behaviour { cut_at: Some(at.max(1)), ..Behaviour::GOOD }
                } else {
                    Behaviour { paper_out_at: Some(at), ..Behaviour::GOOD }
                };
                paper.behave(Behaviour { old: confirms == Confirms::Paper, ..broken });
                let folder = Folder::new();
                let mut ledger = Ledger::open(&folder.0.join("prints"), TERMINAL).unwrap();
                let one = five().into_iter().take(1).collect();
                let printer = printer_at(&paper.address().to_string(), confirms);
                let end = printer.print_all(&mut ledger, one).unwrap()[0].1;
                paper.settle();
                let sheets = paper.sheets();
                let complete = sheets.iter().any(|sheet| sheet.cut && sheet.picture == whole.picture);
                let dark = sheets.iter().any(|sheet| sheet.picture.rows().iter().any(|byte| *byte != 0));
                match end {
                    End::Printed => assert!(complete, "{confirms:?}, {at}, wire {wire}: said to be out, and isn't"),
                    End::NotPrinted(_) => assert!(!dark, "{confirms:?}, {at}, wire {wire}: said not to be out, and is"),
                    End::Doubtful(_) => {}
                }
                seen.insert(std::mem::discriminant(&end) == std::mem::discriminant(&End::Printed));
            }
        }
    }
    assert_eq!(seen.len(), 2, "some were printed, some were not");
}

#[test]
fn nothing_is_sent_to_a_printer_that_would_not_print() {
    let folder = Folder::new();
    let mut ledger = Ledger::open(&folder.0.join("prints"), TERMINAL).unwrap();
    let paper = TestPrinter::start(576);
    let printer = printer_at(&paper.address().to_string(), Confirms::Jobs);
    for (behaviour, trouble) in [
        (Behaviour { cover_open: true, ..Behaviour::GOOD }, Trouble::CoverOpen),
        (Behaviour { mute: true, ..Behaviour::GOOD }, Trouble::NoAnswer),
    ] {
        paper.behave(behaviour);
        let before = paper.received().len();
        let ends = ends(&printer.print_all(&mut ledger, five()).unwrap());
        assert_eq!(ends, [End::NotPrinted(trouble); 5]);
        assert!(paper.received().len() - before <= 12, "it was asked how it is, and nothing else");
    }
    let nobody = printer_at("127.0.0.1:9", Confirms::Jobs);
    assert_eq!(nobody.status(), Err(Trouble::Unreachable));
    assert_eq!(ends(&nobody.print_all(&mut ledger, five()).unwrap()), [End::NotPrinted(Trouble::Unreachable); 5]);
    assert_eq!(ledger.doubtful().count(), 0);
}

#[test]
fn a_picture_that_was_cut_does_not_swallow_the_next_ticket() {
    for swallows in [true, false] {
        let paper = TestPrinter::start(576);
        let printer = printer_at(&paper.address().to_string(), Confirms::Jobs);
        paper.behave(Behaviour { cut_at: Some(20_000), old: true, ..Behaviour::GOOD });
        assert_eq!(printer.print(&ticket("Zoë").page()), End::Doubtful(Trouble::Cut));
        paper.behave(Behaviour::GOOD);
        let next = Ticket { code: code(9), ..ticket("Zoë") }.page();
        if swallows {
            // The control: sent as it is, its beginning is taken for the rest of the picture.
            let address = paper.address().to_string();
            let mut link = link::network(&address, Duration::from_secs(2)).unwrap();
            let bytes = next.commands(&Fonts::new(&[]), &Profile::network("printer:9100"));
            link.send(bytes.bytes(), Duration::from_secs(2)).unwrap();
        } else {
            assert_eq!(printer.print(&next), End::Printed);
        }
        paper.settle();
        let ticket = paper.sheets().pop().unwrap();
        // On the same piece of paper as the first, which was never cut.
        let titles = ticket.letters.iter().filter(|line| line.contains("The Magic Flute")).count();
        assert_eq!(titles, if swallows { 1 } else { 2 });
    }
}

#[test]
fn a_printer_that_takes_all_and_says_nothing_more_leaves_a_doubt() {
    let folder = Folder::new();
    let mut ledger = Ledger::open(&folder.0.join("prints"), TERMINAL).unwrap();
    let paper = TestPrinter::start(576);
    paper.behave(Behaviour { stuck: true, ..Behaviour::GOOD });
    let printer = printer_at(&paper.address().to_string(), Confirms::Jobs);
    let told = ends(&printer.print_all(&mut ledger, five()).unwrap());
    assert!(matches!(told[0], End::Doubtful(Trouble::NoAnswer | Trouble::Stalled)), "{told:?}");
    assert!(told[1..].iter().all(|end| matches!(end, End::NotPrinted(_))));
}

#[test]
fn a_slow_printer_is_waited_for() {
    let paper = TestPrinter::start(576);
    paper.behave(Behaviour { bytes_a_second: Some(40_000), ..Behaviour::GOOD });
    let printer = printer_at(&paper.address().to_string(), Confirms::Jobs);
    assert_eq!(printer.print(&ticket("Zoë").page()), End::Printed);
}

#[test]
fn a_wire_that_only_goes_out_leaves_every_ticket_to_a_person() {
    let paper = TestPrinter::start(576);
    paper.behave(Behaviour { mute: true, ..Behaviour::GOOD });
    let printer = printer_at(&paper.address().to_string(), Confirms::Nothing);
    assert_eq!(printer.print(&ticket("Zoë").page()), End::Doubtful(Trouble::NoAnswer));
    paper.settle();
    assert_eq!(paper.sheets().len(), 1);
}

/// Stops taking bytes, and keeps what it was given.
struct Stops {
    file: fs::File,
    left: u64,
}

impl Medium for Stops {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let some = bytes.len().min(self.left as usize);
        io::Write::write_all(&mut self.file, &bytes[..some])?;
        self.left -= some as u64;
        if some < bytes.len() { Err(io::Error::other("the power is gone")) } else { Ok(()) }
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stop_at_any_byte_leaves_what_may_be_on_paper_doubtful() {
    let folder = Folder::new();
    let job = five().remove(0).0;
    for left in 0..450 {
        let path = folder.0.join(format!("prints-{left}"));
        let mut ledger = Ledger::open(&path, TERMINAL).unwrap().through(|file| Stops { file, left });
        let sent = ledger.intend(&job).and_then(|()| ledger.send(job.id));
        let ended = sent.is_ok() && ledger.end(job.id, End::Printed).is_ok();
        if sent.is_err() {
            assert!(matches!(ledger.end(job.id, End::Printed), Err(LedgerError::Broken)), "and it takes no more");
        }
        let may_be_out = sent.is_ok();
        drop(ledger);
        let ledger = Ledger::open(&path, TERMINAL).unwrap();
        let state = ledger.entries().next().map(|entry| entry.state);
        match (may_be_out, ended, state) {
            (_, true, state) => assert_eq!(state, Some(State::Ended(End::Printed))),
            (true, false, state) => assert_eq!(state, Some(State::Ended(End::Doubtful(Trouble::TillStopped)))),
            (false, _, None | Some(State::Ended(End::NotPrinted(_) | End::Doubtful(_)))) => {}
            (false, _, other) => panic!("{left}: nothing was sent, and the ledger says {other:?}"),
        }
    }
}

#[test]
fn a_ledger_is_one_terminals_and_one_process_and_no_journal() {
    let folder = Folder::new();
    let path = folder.0.join("prints");
    let mut ledger = Ledger::open(&path, TERMINAL).unwrap();
    assert!(matches!(Ledger::open(&path, TERMINAL), Err(OpenError::InUse)));
    ledger.intend(&five()[0].0).unwrap();
    drop(ledger);
    assert!(matches!(Ledger::open(&path, Uuid::from_u128(8)), Err(OpenError::OfAnother(_))));
    assert!(matches!(crate::journal::Journal::open(&path, TERMINAL, 1), Err(OpenError::Damaged { .. })));
    let mut bytes = fs::read(&path).unwrap();
    bytes[80] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(matches!(Ledger::open(&path, TERMINAL), Err(OpenError::Damaged { .. })));
}

/// Run by the test below in a process of its own; alone it does nothing.
#[test]
fn a_till_that_prints_until_it_is_killed() {
    let (Some(address), Some(path)) = (std::env::var_os("KILLED_PRINTER"), std::env::var_os("KILLED_LEDGER")) else {
        return;
    };
    let mut ledger = Ledger::open(&PathBuf::from(path), TERMINAL).unwrap();
    let profile = Profile::network(address.to_str().unwrap());
    let printer = Printer::new(profile, Fonts::new(&[]));
    loop {
        printer.print_all(&mut ledger, five()).unwrap();
    }
}

#[test]
fn killed_with_signal_nine_a_till_knows_what_may_be_out() {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    let folder = Folder::new();
    let (mut doubted, mut printed) = (0, 0);
    for _ in 0..6 {
        let round = ROUND.fetch_add(1, Ordering::SeqCst);
        let path = folder.0.join(format!("prints-{round}"));
        let paper = TestPrinter::start(576);
        paper.behave(Behaviour { bytes_a_second: Some(300_000), ..Behaviour::GOOD });
        let mut till = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "print::tests::certainty::a_till_that_prints_until_it_is_killed"])
            .env("KILLED_PRINTER", paper.address().to_string())
            .env("KILLED_LEDGER", &path)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Somewhere in the second ticket or later, another place each time.
        let enough = 40_000 + 7_919 * round as usize;
        while paper.received().len() < enough {
            std::thread::sleep(Duration::from_millis(2));
        }
        till.kill().unwrap();
        till.wait().unwrap();
        paper.settle();
        let ledger = Ledger::open(&path, TERMINAL).unwrap();
        let whole: Vec<String> = paper.sheets().iter().flat_map(|sheet| scanned(&sheet.picture.png())).collect();
        let known = |end: End| ledger.entries().filter(|entry| entry.state == State::Ended(end)).count();
        let (sure, open) = (known(End::Printed), ledger.doubtful().count());
        assert!(open <= 1, "one job at a time");
        assert!(sure <= whole.len() && whole.len() <= sure + open, "{sure} sure, {open} open, {} out", whole.len());
        doubted += open;
        printed += sure;
    }
    assert!(doubted > 0 && printed > 0, "{doubted} doubts, {printed} printed");
}

#[test]
fn a_device_is_spoken_to_by_its_file() {
    use nix::{
        pty::openpty,
        sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr},
        unistd::ttyname,
    };
    use std::os::fd::AsFd;
    let ends = openpty(None, None).unwrap();
    let mut raw = tcgetattr(ends.slave.as_fd()).unwrap();
    cfmakeraw(&mut raw);
    tcsetattr(ends.slave.as_fd(), SetArg::TCSANOW, &raw).unwrap();
    let path = ttyname(ends.slave.as_fd()).unwrap();
    let mut other_end = fs::File::from(ends.master);
    let profile = Profile { place: Place::Device { path }, ..Profile::network("") };
    let printer = Printer::new(profile, Fonts::new(&[])).with_bounds(quick());
    assert_eq!(
        printer.print(&ticket("Zoë").page()),
        End::NotPrinted(Trouble::NoAnswer),
        "nobody reads at the other end"
    );
    let reader = std::thread::spawn(move || {
        let mut engine = Engine::new(576);
        let (mut buffer, mut bytes) = (Vec::new(), [0; 512]);
        loop {
            let read = io::Read::read(&mut other_end, &mut bytes).unwrap();
            for byte in &bytes[..read] {
                buffer.push(*byte);
                if buffer.ends_with(&[0x10, 0x04, 1]) || matches!(buffer[..], [.., 0x10, 0x04, 2..=4]) {
                    io::Write::write_all(&mut other_end, &[0x12]).unwrap();
                }
            }
            while let Some((length, answer)) = engine.step(&buffer) {
                buffer.drain(..length);
                io::Write::write_all(&mut other_end, &answer).unwrap();
                if answer.first() == Some(&0x37) {
                    return (engine.sheets(), other_end);
                }
            }
        }
    });
    assert_eq!(printer.print(&ticket("Zoë").page()), End::Printed);
    let (sheets, _other_end) = reader.join().unwrap();
    let ticket = sheets.iter().find(|sheet| sheet.cut).unwrap();
    assert_eq!(scanned(&ticket.picture.png()), [code(0)]);
    drop(ends.slave);
}
