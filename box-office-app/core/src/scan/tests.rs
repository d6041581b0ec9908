use proptest::prelude::*;

use super::*;

/// What a scanner set to `layout` presses, `every` milliseconds.
fn presses(layout: Layout, text: &str, every: u64) -> Vec<(Code, bool, u64)> {
    let mut keys = Vec::new();
    for letter in text.chars() {
        let (code, shifted) = layout.key_of(letter).unwrap_or_else(|| panic!("{layout:?} has no {letter}"));
        let shift = [(Code::SHIFT, true)].into_iter().filter(|_| shifted);
        keys.extend(shift.chain([(code, true), (code, false)]));
        keys.extend([(Code::SHIFT, false)].into_iter().filter(|_| shifted));
    }
    keys.extend([(Code::ENTER, true), (Code::ENTER, false)]);
    keys.into_iter().map(|(code, down)| (code, down, every)).collect()
}

/// Feeds keys (code, down, milliseconds since the one before) and notes what became of each.
#[derive(Default)]
struct Fed {
    passed_on: Vec<u64>,
    held: BTreeSet<u64>,
    scans: Vec<Option<String>>,
    keys: Vec<KeyEvent>,
    now: u64,
    next: u64,
}

impl Fed {
    fn feed(&mut self, scanner: &mut Scanner, keys: &[(Code, bool, u64)]) {
        for (code, down, after) in keys.iter().copied() {
            self.now += after;
            // A shell's timer comes before a later key.
            if scanner.deadline_ms().is_some_and(|at| at < self.now) {
                self.note(scanner.rest(scanner.deadline_ms().unwrap()), None);
            }
            let id = self.next;
            self.next += 1;
            let verdict = scanner.key(KeyEvent { id, code, down, at_ms: self.now });
            self.note(verdict, Some(id));
        }
    }

    fn note(&mut self, verdict: Verdict, id: Option<u64>) {
        for id in verdict.released {
            assert!(self.held.remove(&id), "{id} was released, and not held");
            self.passed_on.push(id);
        }
        if let Some(scan) = verdict.scan {
            self.scans.push(scan.text);
            self.keys = scan.keys;
        }
        match id {
            Some(id) if verdict.held => assert!(self.held.insert(id)),
            Some(id) => self.passed_on.push(id),
            None => assert!(!verdict.held),
        }
    }

    fn settle(&mut self, scanner: &mut Scanner) {
        self.now += 10_000;
        self.note(scanner.rest(self.now), None);
        assert_eq!(scanner.deadline_ms(), None, "nothing is held for ever");
    }
}

fn scanner(layout: Layout) -> Scanner {
    Scanner::new(Settings { layout, ..Settings::default() })
}

/// What a page would read that looks at letters: the keys under the system's layout, Caps Lock considered.
fn naively(system: Layout, caps: bool, keys: &[(Code, bool, u64)]) -> String {
    let mut shifted = false;
    let mut text = String::new();
    for (code, down, _) in keys.iter().copied() {
        if code.is_shift() {
            shifted = down;
        } else if down && code != Code::ENTER {
            let letter = system.letter(code, shifted).unwrap_or('\u{fffd}');
            let turned =
                if letter.is_uppercase() { letter.to_lowercase().next() } else { letter.to_uppercase().next() };
            text.push(if caps { turned.unwrap_or(letter) } else { letter });
        }
    }
    text
}

#[test]
fn a_scan_is_read_under_every_layout_and_a_reader_of_letters_is_not_that_lucky() {
    let code = "HA112:Q-ZYWM7";
    let mut garbled = 0;
    for set in Layout::ALL {
        let keys = presses(set, code, 3);
        let mut fed = Fed::default();
        fed.feed(&mut scanner(set), &keys);
        assert_eq!(fed.scans, [Some(code.to_owned())], "{set:?}");
        assert_eq!(fed.passed_on, [] as [u64; 0], "{set:?}: nothing lands in a field");
        for system in Layout::ALL {
            for caps in [false, true] {
                garbled += usize::from(naively(system, caps, &keys) != code);
            }
        }
    }
    // The control: French digits, German Z and Y, Caps Lock. `HA112` becomes `HA&&é`.
    assert!(garbled > 40, "{garbled} of 50");
    assert_eq!(naively(Layout::Fr, false, &presses(Layout::Us, "HA112", 3)), "HQ&&é");
}

#[test]
fn the_test_page_teaches_the_layout() {
    for set in Layout::ALL {
        for mistaken in Layout::ALL {
            let mut fed = Fed::default();
            fed.feed(&mut scanner(mistaken), &presses(set, TEST_CODE, 2));
            assert_eq!(learn(&fed.keys), Some(set), "read as {mistaken:?}");
        }
    }
    let mut fed = Fed::default();
    fed.feed(&mut scanner(Layout::Us), &presses(Layout::Us, "SOMETHING ELSE", 2));
    assert_eq!(learn(&fed.keys), None);
}

#[test]
fn a_scanner_that_types_numbers_of_letters_needs_no_layout() {
    let mut keys = Vec::new();
    for letter in "TICKET1".bytes() {
        keys.push((Code::ALT, true, 2));
        for digit in format!("{letter:04}").bytes() {
            let code = Code([82, 79, 80, 81, 75, 76, 77, 71, 72, 73][usize::from(digit - b'0')]);
            keys.extend([(code, true, 2), (code, false, 2)]);
        }
        keys.push((Code::ALT, false, 2));
    }
    keys.push((Code::ENTER, true, 2));
    for layout in Layout::ALL {
        let mut fed = Fed::default();
        fed.feed(&mut scanner(layout), &keys);
        assert_eq!(fed.scans, [Some("TICKET1".to_owned())]);
    }
}

#[test]
fn typing_passes_whole_and_in_order() {
    let mut typed: Vec<(Code, bool, u64)> = Vec::new();
    for (at, letter) in "anna@example".chars().enumerate() {
        let Some((code, _)) = Layout::Us.key_of(letter) else { continue };
        // A fast hand rolls over two or three keys, and rests.
        let after = if at % 3 == 2 { 90 } else { 18 };
        typed.extend([(code, true, after), (code, false, 9)]);
    }
    typed.extend([(Code::ENTER, true, 60), (Code::ENTER, false, 40)]);
    let mut fed = Fed::default();
    let mut scanner = scanner(Layout::Us);
    fed.feed(&mut scanner, &typed);
    fed.settle(&mut scanner);
    assert_eq!(fed.passed_on, (0..typed.len() as u64).collect::<Vec<_>>());
    assert!(fed.scans.is_empty());
}

#[test]
fn a_key_that_is_held_down_is_no_scanner() {
    // The system repeats it every 30 ms, without an end in between.
    let mut keys = vec![(Code(30), true, 500)];
    keys.extend([(Code(30), true, 30)].repeat(40));
    keys.extend([(Code(30), false, 10), (Code::ENTER, true, 20)]);
    let mut fed = Fed::default();
    let mut scanner = scanner(Layout::Us);
    fed.feed(&mut scanner, &keys);
    fed.settle(&mut scanner);
    assert_eq!(fed.passed_on.len(), keys.len());
    assert!(fed.scans.is_empty());
}

#[test]
fn commands_pass_at_once() {
    let mut fed = Fed::default();
    let mut scanner = scanner(Layout::Us);
    let ctrl = Code(29);
    fed.feed(&mut scanner, &[(ctrl, true, 500), (Code(46), true, 10), (Code(46), false, 5), (ctrl, false, 5)]);
    assert_eq!(fed.passed_on, [0, 1, 2, 3]);
    assert_eq!(scanner.deadline_ms(), None);
}

#[test]
fn with_a_prefix_a_hand_never_waits_and_a_broken_scan_is_told() {
    let settings = Settings { prefix: Some(Code::F13), ..Settings::default() };
    let mut scanner = Scanner::new(settings);
    let mut fed = Fed::default();
    fed.feed(&mut scanner, &presses(Layout::Us, "FASTTYPIST", 1));
    assert_eq!(fed.passed_on.len(), 42, "twenty shifts, twenty letters, Enter: all at once");
    let before = fed.passed_on.len();
    let mut scan = vec![(Code::F13, true, 400), (Code::F13, false, 1)];
    scan.extend(presses(Layout::Us, "A1", 1));
    fed.feed(&mut scanner, &scan);
    assert_eq!(fed.scans, [Some("A1".to_owned())], "short codes too");
    fed.feed(&mut scanner, &scan[..4]);
    fed.settle(&mut scanner);
    assert_eq!(fed.scans.last(), Some(&None), "broken off");
    fed.feed(&mut scanner, &[(Code(30), false, 1)]);
    assert_eq!(fed.passed_on.len(), before, "and nothing of it comes out later, its last end neither");
}

#[test]
fn more_than_a_scan_may_have_is_dropped_and_told() {
    let mut scanner = Scanner::new(Settings { keys_max: 100, ..Settings::default() });
    let mut fed = Fed::default();
    fed.feed(&mut scanner, &presses(Layout::Us, &"A".repeat(400), 1));
    assert_eq!(fed.scans, [None]);
    assert!(fed.passed_on.is_empty());
    assert!(scanner.burst.is_empty() && scanner.used.len() <= 2);
    fed.feed(&mut scanner, &presses(Layout::Us, "GOODCODE", 1));
    assert_eq!(fed.scans.last(), Some(&Some("GOODCODE".to_owned())));
}

fn any_key() -> impl Strategy<Value = (Code, bool, u64)> {
    let codes = prop_oneof![
        3 => 16_u16..60,
        1 => Just(28_u16),
        1 => Just(42_u16),
        1 => Just(56_u16),
        1 => Just(29_u16),
        1 => 71_u16..84,
        1 => Just(183_u16),
    ];
    (codes, any::<bool>(), prop_oneof![4 => 0_u64..30, 1 => 30_u64..120])
        .prop_map(|(code, down, at)| (Code(code), down, at))
}

proptest! {
    #[test]
    fn every_event_ends_in_exactly_one_way_and_in_order(
        keys in proptest::collection::vec(any_key(), 0..120),
        prefix in any::<bool>(),
        keys_max in 4_usize..60,
    ) {
        let prefix = prefix.then_some(Code::F13);
        let mut scanner = Scanner::new(Settings { prefix, keys_max, ..Settings::default() });
        let mut fed = Fed::default();
        fed.feed(&mut scanner, &keys);
        fed.settle(&mut scanner);
        // `note` refuses a release that was not held, and a second end. What is still held was used up by a scan.
        prop_assert_eq!(fed.passed_on.len() + fed.held.len(), keys.len());
        prop_assert!(fed.held.is_empty() || !fed.scans.is_empty(), "held, and no scan");
        let mut by_key = std::collections::BTreeMap::new();
        for id in &fed.passed_on {
            let before = by_key.insert(keys[*id as usize].0, *id);
            prop_assert!(before.is_none_or(|before| before < *id), "a key's own events keep their order");
        }
        let downs: Vec<u64> = fed.passed_on.iter().copied().filter(|id| keys[*id as usize].1).collect();
        prop_assert!(downs.is_sorted(), "what is typed keeps its order");
    }

    #[test]
    fn nothing_of_a_scan_comes_through_whatever_was_typed_around_it(
        text in "[A-Z2-7]{6,60}",
        every in 0_u64..=17,
        set in proptest::sample::select(Layout::ALL.to_vec()),
        before in "[a-z]{0,8}",
        after in "[a-z]{0,8}",
    ) {
        let hand = |text: &str| -> Vec<(Code, bool, u64)> {
            let codes = text.chars().map(|letter| set.key_of(letter).unwrap().0);
            codes.flat_map(|code| [(code, true, 80), (code, false, 50)]).collect()
        };
        let (before, after) = (hand(&before), hand(&after));
        let mut scan = presses(set, &text, every);
        scan[0].2 = 100;
        let mut fed = Fed::default();
        let mut scanner = scanner(set);
        fed.feed(&mut scanner, &before);
        let from = fed.next;
        fed.feed(&mut scanner, &scan);
        let to = fed.next;
        fed.feed(&mut scanner, &after);
        fed.settle(&mut scanner);
        prop_assert_eq!(&fed.scans, &[Some(text)]);
        prop_assert!(fed.passed_on.iter().all(|id| !(from..to).contains(id)));
        prop_assert_eq!(fed.passed_on.len(), before.len() + after.len());
    }
}

#[test]
fn a_key_that_the_page_hands_back_is_passed_on_and_is_none_of_its_own() {
    let mut scanner = scanner(Layout::Us);
    let mut key = |id, code, down, at_ms| scanner.key(KeyEvent { id, code, down, at_ms });
    let letter = Layout::Us.key_of('A').unwrap().0;
    // A hand types a capital letter; the page has no use for a Shift alone.
    assert!(key(1, Code::SHIFT, true, 1_000).held);
    assert_eq!(key(2, letter, true, 1_100).released, [1]);
    assert!(key(3, letter, false, 1_120).held);
    assert_eq!(key(4, Code::SHIFT, false, 1_200).released, [2, 3]);
    let back = key(5, Code::SHIFT, true, 1_000);
    assert_eq!(back, Verdict::default(), "held, it would take the place of the next key");
    // What is held meanwhile waits on, and the same key later is a hand's again.
    assert!(key(6, letter, true, 1_300).held);
    assert_eq!(key(7, Code::SHIFT, false, 1_200), Verdict::default());
    assert!(key(8, letter, false, 1_310).held);
    assert_eq!(key(9, Code::SHIFT, true, 1_400).released, [6, 8]);
    assert_eq!(scanner.rest(1_500).released, [9]);
}
