//! Crashes at every byte, damage at every byte, and what a journal says afterwards.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;

const TERMINAL: Uuid = Uuid::from_u128(7);

/// Memory that stops taking bytes, as a disk does when the power goes.
#[derive(Debug, Clone)]
struct Dying {
    bytes: Arc<Mutex<Vec<u8>>>,
    left: usize,
    sync_fails: bool,
}

impl Medium for Dying {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let takes = bytes.len().min(self.left);
        self.bytes.lock().unwrap().extend_from_slice(&bytes[..takes]);
        self.left -= takes;
        if takes < bytes.len() { Err(io::Error::other("power")) } else { Ok(()) }
    }
    fn sync(&mut self) -> io::Result<()> {
        if self.sync_fails { Err(io::Error::other("sync")) } else { Ok(()) }
    }
}

fn on(left: usize) -> (Journal<Dying>, Arc<Mutex<Vec<u8>>>) {
    let (head, _) = frame::head(TERMINAL, 1);
    let bytes = Arc::new(Mutex::new(head.to_vec()));
    let (state, _) = replay(&head, TERMINAL).unwrap();
    let medium = Dying { bytes: bytes.clone(), left, sync_fails: false };
    (Journal { medium, broken: false, _lock: None, state, cut: 0, copied: false }, bytes)
}

/// What a till does in an evening; stops at the first error, as a till must. Answers how many were kept.
fn evening<M: Medium>(journal: &mut Journal<M>) -> usize {
    let lease = Uuid::from_u128(99);
    let mut kept = 0;
    let mut all = || -> Result<(), AppendError> {
        journal.ask_lease(Uuid::from_u128(98))?;
        kept += 1;
        journal.take_lease(lease)?;
        kept += 1;
        for n in 1..=4_u8 {
            assert_eq!(journal.sell(|number| vec![u8::try_from(number).unwrap(); 20 * usize::from(n)])?, u64::from(n));
            kept += 1;
        }
        journal.settle(1, b"sold")?;
        kept += 1;
        journal.settle(2, b"not_sold")?;
        kept += 1;
        journal.close_lease(lease)?;
        kept += 1;
        journal.report_lease(lease)?;
        kept += 1;
        Ok(())
    };
    let _ = all();
    kept
}

fn frames(state: &State) -> usize {
    let leases: usize = state
        .leases
        .values()
        .map(|m| match m {
            LeaseMark::Taken => 1,
            LeaseMark::Closed => 2,
            LeaseMark::Reported => 3,
        })
        .sum();
    state.sales.len() + state.outcomes.len() + state.asked.len() + leases
}

#[test]
fn what_was_answered_is_found_after_a_crash_at_any_byte() {
    let (mut whole, bytes) = on(usize::MAX);
    assert_eq!(evening(&mut whole), 10);
    let length = bytes.lock().unwrap().len() - HEAD_BYTES;
    for left in 0..length {
        let (mut journal, bytes) = on(left);
        let kept = evening(&mut journal);
        assert!(journal.is_broken() && kept < 10);
        assert!(matches!(journal.sell(|_| vec![]), Err(AppendError::Broken)), "a journal that failed takes no more");
        let bytes = bytes.lock().unwrap();
        let (state, at) = replay(&bytes, TERMINAL).unwrap_or_else(|e| panic!("cut at {left}: {e}"));
        assert_eq!(frames(&state), kept, "cut at {left}");
        assert!(at <= bytes.len());
    }
}

#[test]
fn a_file_that_was_made_longer_but_not_written_is_torn_at_any_byte() {
    let (mut whole, bytes) = on(usize::MAX);
    evening(&mut whole);
    let bytes = bytes.lock().unwrap().clone();
    let last = FRAME_OF_A_LEASE;
    for written in 0..last {
        let mut torn = bytes.clone();
        let from = torn.len() - last + written;
        torn[from..].fill(0);
        match replay(&torn, TERMINAL) {
            Ok((state, at)) => {
                // A seal may end in zeros of its own: then nothing was lost.
                let lost = torn != bytes;
                assert_eq!(frames(&state), if lost { 9 } else { 10 }, "written {written}");
                assert_eq!(at, if lost { bytes.len() - last } else { bytes.len() });
            }
            // Refused is allowed where a checksum was half written; silence is not.
            Err(OpenError::Damaged { at, .. }) => {
                assert_eq!(at as usize, bytes.len() - last);
                assert!((21..24).contains(&written) || written > last - 4, "written {written}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

const FRAME_OF_A_LEASE: usize = frame::FRAME_HEAD_BYTES + 16 + 4;

#[test]
fn a_bit_that_turned_anywhere_is_refused_and_not_cut() {
    let (mut whole, bytes) = on(usize::MAX);
    evening(&mut whole);
    let bytes = bytes.lock().unwrap().clone();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(
                matches!(replay(&damaged, TERMINAL), Err(OpenError::Damaged { .. })),
                "byte {at}, bit {bit} went unseen"
            );
        }
    }
}

#[test]
fn a_frame_taken_out_or_put_twice_is_refused() {
    let (mut journal, bytes) = on(usize::MAX);
    let mut ends = vec![HEAD_BYTES];
    for n in 0..3_u8 {
        journal.sell(|_| vec![n; 30]).unwrap();
        ends.push(bytes.lock().unwrap().len());
    }
    let bytes = bytes.lock().unwrap().clone();
    let without = [&bytes[..ends[1]], &bytes[ends[2]..]].concat();
    let twice = [&bytes[..], &bytes[ends[2]..]].concat();
    let swapped = [&bytes[..ends[0]], &bytes[ends[1]..ends[2]], &bytes[ends[0]..ends[1]], &bytes[ends[2]..]].concat();
    for (what, bad) in [("without", without), ("twice", twice), ("swapped", swapped)] {
        assert!(matches!(replay(&bad, TERMINAL), Err(OpenError::Damaged { .. })), "{what}");
    }
}

#[test]
fn a_sync_that_failed_ends_writing() {
    let (mut journal, _) = on(usize::MAX);
    journal.sell(|_| b"a".to_vec()).unwrap();
    journal.medium.sync_fails = true;
    assert!(matches!(journal.sell(|_| b"b".to_vec()), Err(AppendError::Disk(_))));
    journal.medium.sync_fails = false;
    assert!(matches!(journal.sell(|_| b"b".to_vec()), Err(AppendError::Broken)));
    assert!(matches!(journal.settle(1, b"sold"), Err(AppendError::Broken)));
}

#[test]
fn an_outcome_is_kept_once_and_never_changes() {
    let (mut journal, bytes) = on(usize::MAX);
    journal.sell(|_| b"a".to_vec()).unwrap();
    journal.sell(|_| b"b".to_vec()).unwrap();
    assert!(matches!(journal.settle(3, b"sold"), Err(AppendError::NoSale(3))));
    journal.settle(1, b"sold").unwrap();
    let length = bytes.lock().unwrap().len();
    journal.settle(1, b"sold").unwrap();
    assert_eq!(bytes.lock().unwrap().len(), length, "the same again writes nothing");
    assert!(matches!(journal.settle(1, b"not_sold"), Err(AppendError::SettledOtherwise(1))));
    assert_eq!(journal.unsettled().collect::<Vec<_>>(), [(2, b"b".as_slice())]);
    assert_eq!(journal.outcome(1), Some(b"sold".as_slice()));
    assert!(matches!(journal.sell(|_| vec![0; BODY_BYTES_MAX + 1]), Err(AppendError::TooLong(_))));
    assert_eq!(journal.sell(|_| vec![0; BODY_BYTES_MAX]).unwrap(), 3);
}

/// A folder that goes when the test ends well.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fullhouse-journal-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_file_is_cut_once_and_goes_on() {
    let folder = folder("cut");
    let path = folder.join("journal");
    {
        let mut journal = Journal::open(&path, TERMINAL, 41).unwrap();
        assert_eq!(journal.sell(|_| b"first".to_vec()).unwrap(), 41);
        assert!(matches!(Journal::open(&path, TERMINAL, 1), Err(OpenError::InUse)));
    }
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"FHJ1\x01"].concat()).unwrap();
    {
        let mut journal = Journal::open(&path, TERMINAL, 1).unwrap();
        assert_eq!((journal.cut_bytes(), journal.next_number()), (5, 42), "an old journal keeps its numbers");
        assert_eq!(fs::read(&path).unwrap(), whole);
        journal.sell(|_| b"second".to_vec()).unwrap();
    }
    let journal = Journal::open(&path, TERMINAL, 1).unwrap();
    assert_eq!(journal.sales().collect::<Vec<_>>(), [(41, b"first".as_slice()), (42, b"second".as_slice())]);
    assert_eq!(journal.cut_bytes(), 0);
    drop(journal);
    let other = Uuid::from_u128(8);
    assert!(matches!(Journal::open(&path, other, 1), Err(OpenError::OfAnother(TERMINAL))));
    let mut damaged = fs::read(&path).unwrap();
    damaged[HEAD_BYTES + 30] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert!(matches!(Journal::open(&path, TERMINAL, 1), Err(OpenError::Damaged { at: 36, .. })));
    assert_eq!(fs::read(&path).unwrap(), damaged, "a damaged journal is left as it is");
    fs::remove_dir_all(folder).unwrap();
}

proptest! {
    #[test]
    fn whatever_was_kept_is_read_back(bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..12), cut in any::<prop::sample::Index>()) {
        let (mut journal, bytes) = on(usize::MAX);
        let mut ends = vec![HEAD_BYTES];
        for body in &bodies {
            journal.sell(|_| body.clone()).unwrap();
            ends.push(bytes.lock().unwrap().len());
        }
        let bytes = bytes.lock().unwrap().clone();
        let cut = HEAD_BYTES + cut.index(bytes.len() - HEAD_BYTES + 1);
        let (state, at) = replay(&bytes[..cut], TERMINAL).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        prop_assert_eq!(at, ends[whole]);
        prop_assert_eq!(state.sales.values().cloned().collect::<Vec<_>>(), bodies[..whole].to_vec());
    }
}

#[test]
fn a_copy_is_told_from_the_file_that_it_was_made_of() {
    let folder = folder("copy");
    let path = folder.join("journal");
    let lease = Uuid::from_u128(3);
    {
        let mut journal = Journal::open(&path, TERMINAL, 1).unwrap();
        journal.take_lease(lease).unwrap();
        assert!(!journal.is_copied());
    }
    let copy = folder.join("copy");
    fs::copy(&path, &copy).unwrap();
    assert!(Journal::open(&copy, TERMINAL, 1).unwrap().is_copied());
    assert!(Journal::open(&copy, TERMINAL, 1).unwrap().is_copied(), "however often it is opened");
    let moved = folder.join("moved");
    fs::rename(&path, &moved).unwrap();
    let journal = Journal::open(&moved, TERMINAL, 1).unwrap();
    assert!(!journal.is_copied(), "what was moved is still the only one");
    assert_eq!(journal.lease(lease), Some(LeaseMark::Taken));
    drop(journal);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_journal_of_a_version_that_noted_no_place_gets_one() {
    let folder = folder("older");
    let path = folder.join("journal");
    begin(&path, TERMINAL, 7).unwrap();
    assert!(!Journal::open(&path, TERMINAL, 1).unwrap().is_copied());
    let copy = folder.join("copy");
    fs::copy(&path, &copy).unwrap();
    assert!(Journal::open(&copy, TERMINAL, 1).unwrap().is_copied());
    fs::remove_dir_all(folder).unwrap();
}
