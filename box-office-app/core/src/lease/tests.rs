//! One seat, many hands: races, time, restarts, a disk that fails in the middle.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Barrier, Mutex},
    thread,
};

use proptest::prelude::*;

use super::*;
use crate::clock::SetClock;

const TERMINAL: Uuid = Uuid::from_u128(7);
const LEASE: Uuid = Uuid::from_u128(1);
const STAFF: Uuid = Uuid::from_u128(3);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fullhouse-lease-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn granted(lease_id: Uuid, seats: std::ops::Range<i32>) -> Granted {
    let seat = |no: i32| LeasedSeat {
        ticket_id: Uuid::from_u128(1000 + u128::from(no.unsigned_abs())),
        code: format!("code-{no}"),
        prices: BTreeMap::from([("full".to_owned(), 2500), ("child".to_owned(), 1200)]),
        place: None,
    };
    let seats = seats.map(|no| (no, seat(no))).collect();
    Granted {
        lease_id,
        event_id: 5,
        currency: "EUR".to_owned(),
        sells_for_s: 600,
        hub_next_seq: 1,
        seats_max: 6,
        seats,
    }
}

fn till(folder: &Path, clock: &Arc<SetClock>) -> Leases<Arc<SetClock>, File> {
    Leases::new(clock.clone(), Journal::open(&folder.join("journal"), TERMINAL, 1).unwrap())
}

fn sell<C: Clock, M: Medium>(till: &Leases<C, M>, seats: &[(i32, &str)]) -> Result<Sold, SellError> {
    let sold_at = "2026-11-30T19:00:00Z";
    till.sell(&Wanted { lease_id: LEASE, seats, staff_id: STAFF, sold_at })
}

#[test]
fn a_sale_says_what_to_print_and_what_to_tell() {
    let folder = Folder::new("sale");
    let clock = Arc::new(SetClock::default());
    let till = till(&folder.0, &clock);
    till.take(granted(LEASE, 1..5), till.asking().unwrap()).unwrap();
    let sold = sell(&till, &[(2, "full"), (1, "child")]).unwrap();
    assert_eq!((sold.sale().seq, sold.sale().total_minor), (1, 3700));
    let codes: Vec<_> = sold.tickets().map(|(s, t)| (s.seat_no, t.code.as_str())).collect();
    assert_eq!(codes, [(2, "code-2"), (1, "code-1")]);
    let sent = till.to_settle(50, usize::MAX);
    assert_eq!(sent.len(), 1);
    assert_eq!(&serde_json::from_slice::<OfflineSale>(&sent[0].1).unwrap(), sold.sale());

    assert!(matches!(sell(&till, &[(1, "full")]), Err(SellError::SeatSold(1))));
    assert!(matches!(sell(&till, &[(3, "full"), (2, "full")]), Err(SellError::SeatSold(2))), "all or nothing");
    assert!(matches!(sell(&till, &[(3, "full"), (3, "full")]), Err(SellError::NotLeased(3))));
    assert!(matches!(sell(&till, &[(9, "full")]), Err(SellError::NotLeased(9))));
    assert!(matches!(sell(&till, &[(3, "student")]), Err(SellError::NoPrice(3))));
    assert!(matches!(sell(&till, &[]), Err(SellError::NoSeats)));
    assert!(matches!(sell(&till, &[(3, "full"); 7]), Err(SellError::TooMany(6))));
    assert_eq!(till.standing(LEASE).unwrap().unsold, BTreeSet::from([3, 4]));

    till.settle(1, b"sold").unwrap();
    assert!(till.to_settle(50, usize::MAX).is_empty());
    let report = till.close(LEASE).unwrap();
    assert_eq!(report, ClosingReport { lease_id: LEASE, last_seq: 1, sold: BTreeSet::from([1, 2]) });
    assert!(matches!(sell(&till, &[(3, "full")]), Err(SellError::NoLease)));
    assert_eq!(till.close(LEASE).unwrap(), report, "told again, the same");
}

#[test]
fn time_ends_selling_from_when_it_was_asked_for_and_never_ownership() {
    let folder = Folder::new("time");
    let clock = Arc::new(SetClock::default());
    clock.set_ms(1000);
    let till = till(&folder.0, &clock);
    let asked_at = till.asking().unwrap();
    clock.set_ms(31_000); // the answer took half a minute
    till.take(granted(LEASE, 1..5), asked_at).unwrap();
    assert_eq!(till.standing(LEASE).unwrap().sells_for_s, 570);
    clock.set_ms(600_999);
    sell(&till, &[(1, "full")]).unwrap();
    clock.set_ms(601_000);
    assert!(matches!(sell(&till, &[(2, "full")]), Err(SellError::TimeOver)));
    assert_eq!(till.to_close(), BTreeSet::from([LEASE]), "it still owns them");
    assert!(!till.is_closed(LEASE));
    assert_eq!(till.close(LEASE).unwrap().sold, BTreeSet::from([1]));
    assert!(till.is_closed(LEASE));
}

struct NoClock;
impl Clock for NoClock {
    fn now(&self) -> Option<SinceBoot> {
        None
    }
}

#[test]
fn without_a_clock_nothing_is_sold() {
    let folder = Folder::new("clock");
    let journal = Journal::open(&folder.0.join("journal"), TERMINAL, 1).unwrap();
    let till = Leases::new(NoClock, journal);
    assert!(matches!(till.asking(), Err(TakeError::NoClock)));
    till.take(granted(LEASE, 1..5), SinceBoot(Duration::ZERO)).unwrap();
    assert!(matches!(sell(&till, &[(1, "full")]), Err(SellError::TimeOver)));
}

#[test]
fn a_restart_ends_selling_and_the_report_still_knows_what_was_sold() {
    let folder = Folder::new("restart");
    let clock = Arc::new(SetClock::default());
    {
        let till = till(&folder.0, &clock);
        till.take(granted(LEASE, 1..5), till.asking().unwrap()).unwrap();
        sell(&till, &[(1, "full"), (4, "full")]).unwrap();
    }
    let till = till(&folder.0, &clock);
    assert!(matches!(sell(&till, &[(2, "full")]), Err(SellError::NoLease)));
    let again = till.take(granted(LEASE, 1..5), till.asking().unwrap());
    assert!(
        matches!(again, Err(TakeError::Journal(AppendError::LeaseKnown(LEASE)))),
        "listed by the hub, not sold here"
    );
    assert!(matches!(sell(&till, &[(2, "full")]), Err(SellError::NoLease)));
    assert_eq!(till.to_close(), BTreeSet::from([LEASE]));
    let report = till.close(LEASE).unwrap();
    assert_eq!(report, ClosingReport { lease_id: LEASE, last_seq: 1, sold: BTreeSet::from([1, 4]) });
}

#[test]
fn a_lease_whose_answer_was_lost_is_closed_and_never_taken() {
    let folder = Folder::new("lost");
    let clock = Arc::new(SetClock::default());
    let till = till(&folder.0, &clock);
    assert_eq!(till.close(LEASE).unwrap(), ClosingReport { lease_id: LEASE, last_seq: 0, sold: BTreeSet::new() });
    assert!(till.take(granted(LEASE, 1..5), till.asking().unwrap()).is_err());
    let other = Uuid::from_u128(2);
    till.take(granted(other, 1..5), till.asking().unwrap()).unwrap();
    let third = till.take(granted(Uuid::from_u128(4), 4..8), till.asking().unwrap());
    assert!(matches!(third, Err(TakeError::SeatLeased(4))));
}

#[test]
fn a_journal_that_the_hub_is_ahead_of_sells_nothing() {
    let folder = Folder::new("behind");
    let clock = Arc::new(SetClock::default());
    let till = till(&folder.0, &clock);
    let ahead = Granted { hub_next_seq: 2, ..granted(LEASE, 1..5) };
    let refused = till.take(ahead, till.asking().unwrap());
    assert!(matches!(refused, Err(TakeError::JournalBehind { journal: 1, hub: 2 })));
    assert!(matches!(sell(&till, &[(1, "full")]), Err(SellError::NoLease)));
}

#[test]
fn a_sale_that_cannot_be_read_stops_the_report() {
    let folder = Folder::new("unreadable");
    let clock = Arc::new(SetClock::default());
    let mut journal = Journal::open(&folder.0.join("journal"), TERMINAL, 1).unwrap();
    journal.sell(|_| br#"{"of":"the future"}"#.to_vec()).unwrap();
    let till = Leases::new(clock, journal);
    assert!(matches!(till.close(LEASE), Err(CloseError::Unreadable { seq: 1, .. })));
}

/// A disk that takes the bytes and fails to say so.
struct Silent(File, Arc<Mutex<bool>>);

impl Medium for Silent {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        if *self.1.lock().unwrap() { Err(io::Error::other("lost")) } else { self.0.sync() }
    }
}

#[test]
fn a_sale_in_doubt_is_sold_by_nobody_and_told_after_the_restart() {
    let folder = Folder::new("doubt");
    let path = folder.0.join("journal");
    let clock = Arc::new(SetClock::default());
    let fails = Arc::new(Mutex::new(false));
    {
        let journal = Journal::open(&path, TERMINAL, 1).unwrap().through(|file| Silent(file, fails.clone()));
        let till = Leases::new(clock.clone(), journal);
        till.take(granted(LEASE, 1..5), till.asking().unwrap()).unwrap();
        sell(&till, &[(1, "full")]).unwrap();
        *fails.lock().unwrap() = true;
        assert!(matches!(sell(&till, &[(2, "full")]), Err(SellError::Journal(AppendError::Disk(_)))));
        *fails.lock().unwrap() = false;
        assert!(matches!(sell(&till, &[(2, "full")]), Err(SellError::SeatSold(2))));
        assert!(matches!(sell(&till, &[(3, "full")]), Err(SellError::Journal(AppendError::Broken))));
        assert!(till.close(LEASE).is_err(), "no report while nobody knows what was sold");
        assert!(matches!(sell(&till, &[(4, "full")]), Err(SellError::NoLease)));
    }
    let report = till(&folder.0, &clock).close(LEASE).unwrap();
    assert_eq!(report.sold, BTreeSet::from([1, 2]), "the bytes were there: the hub has to hear of them");
    assert_eq!(report.last_seq, 2);
}

/// Runs `tries` at the same moment, and answers how many had it.
fn at_once(tries: usize, one: impl Fn(&Barrier) -> bool + Sync) -> usize {
    let start = Barrier::new(tries);
    thread::scope(|scope| {
        let hands: Vec<_> = (0..tries).map(|_| scope.spawn(|| one(&start))).collect();
        hands.into_iter().map(|h| usize::from(h.join().unwrap())).sum()
    })
}

#[test]
fn control_looking_and_then_noting_sells_a_seat_twice() {
    let gone = Mutex::new(BTreeSet::new());
    let had = at_once(2, |both_looked| {
        let free = !gone.lock().unwrap().contains(&1);
        both_looked.wait();
        free && {
            gone.lock().unwrap().insert(1);
            true
        }
    });
    assert_eq!(had, 2, "the fault that the till's one lock is for");
}

#[test]
fn eight_hands_at_one_seat_and_a_closing_report_sell_it_at_most_once() {
    for round in 0..20 {
        let folder = Folder::new(&format!("race-{round}"));
        let clock = Arc::new(SetClock::default());
        let till = till(&folder.0, &clock);
        till.take(granted(LEASE, 1..5), till.asking().unwrap()).unwrap();
        let report = Mutex::new(None);
        let turn = Mutex::new(0);
        let had = at_once(9, |start| {
            let mine = {
                let mut turn = turn.lock().unwrap();
                *turn += 1;
                *turn
            };
            start.wait();
            if mine == 5 {
                *report.lock().unwrap() = Some(till.close(LEASE).unwrap());
                return false;
            }
            sell(&till, &[(1, "full")]).is_ok()
        });
        let report = report.into_inner().unwrap().expect("one hand closed");
        assert!(had <= 1, "round {round}: sold {had} times");
        assert_eq!(report.sold.contains(&1), had == 1, "round {round}: the report says what was sold before it");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Sell(Vec<i32>),
    Wait(u64),
    Restart,
    Close,
    Take,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop::collection::vec(0..6_i32, 1..4).prop_map(Step::Sell),
        1 => (0..400_000_u64).prop_map(Step::Wait),
        1 => Just(Step::Restart),
        1 => Just(Step::Close),
        1 => Just(Step::Take),
    ];
    prop::collection::vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_seat_is_sold_twice_whatever_happens(steps in steps()) {
        let folder = Folder::new(&format!("steps-{:?}", thread::current().id()));
        let clock = Arc::new(SetClock::default());
        let mut open = Some(till(&folder.0, &clock));
        let (mut ms, mut sold, mut selling) = (0, BTreeSet::new(), None::<u64>);
        let mut taken = false;
        for step in steps {
            let till_now = open.as_ref().unwrap();
            match step {
                Step::Sell(seats) => {
                    let wanted: Vec<_> = seats.iter().map(|no| (*no, "full")).collect();
                    let unique = seats.iter().collect::<BTreeSet<_>>().len() == seats.len();
                    let free = seats.iter().all(|no| *no < 5 && !sold.contains(no));
                    let may = selling.is_some_and(|until| ms < until);
                    let had = sell(till_now, &wanted).is_ok();
                    prop_assert_eq!(had, unique && free && may);
                    if had {
                        sold.extend(seats);
                    }
                }
                Step::Wait(more) => {
                    ms += more;
                    clock.set_ms(ms);
                }
                Step::Restart => {
                    drop(open.take());
                    open = Some(till(&folder.0, &clock));
                    selling = None;
                }
                Step::Close => {
                    prop_assert_eq!(&till_now.close(LEASE).unwrap().sold, &sold);
                    (taken, selling) = (true, None);
                }
                Step::Take => {
                    let done = till_now.take(granted(LEASE, 0..5), till_now.asking().unwrap()).is_ok();
                    prop_assert_eq!(done, !taken);
                    if done {
                        (taken, selling) = (true, Some(ms + 600_000));
                    }
                }
            }
        }
    }
}
