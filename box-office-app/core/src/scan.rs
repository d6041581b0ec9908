//! A wedge scanner: a scan comes as keys, too fast for a hand, and lands in no field.
//!
//! A scanner presses keys, not letters: what the system's layout or Caps Lock would make of them is never looked at.
//! What key stands for which letter is the *scanner's* own setting ([`Layout`]), learnt from [`TEST_CODE`].
//!
//! Invariants:
//! - Every key event ends in exactly one way: passed on at once, held and then released in order, or used up by a scan.
//! - Of a scan that was read nothing is passed on or released, neither its keys nor their ends.
//! - A hand's keys are late by `gap_ms` at most, and never lost or out of order; with a prefix they are not late at all.
//! - What is held is bounded (`keys_max`).
//! - A key that the page had no use for comes a second time, with the time that it had: a toolkit that asks a page about a
//!   key hands it back so (WebKitGTK does, and then takes the next key that it is given for this one: were it held, that
//!   next one would be lost). It is passed on, and is no key of its own.
//!
//! How a shell calls it: in the window's own key handler (GTK's `key-press-event` and `key-release-event` of the window
//! that holds the web view), since a page can't hold a key back while it asks somebody.
//!
//! ```text
//! let verdict = scanner.key(KeyEvent { id, code: Code::of_xkb(event.hardware_keycode()), down, at_ms });
//! for id in verdict.released { hand the kept event `id` on to the focus }   // before this one
//! if let Some(scan) = verdict.scan { tell the page }
//! if verdict.held { keep the event under its id; Propagation::Stop } else { Propagation::Proceed }
//! ```
//!
//! With a timer at [`Scanner::deadline_ms`], call [`Scanner::rest`] and hand on what it releases.

use std::collections::{BTreeSet, VecDeque};

mod layout; // which key is which letter
#[cfg(test)]
mod tests;

pub use layout::{Code, Layout};

/// What a scanner's layout is learnt from: stands on the test page as a QR code.
pub const TEST_CODE: &str = "FULLHOUSE:0123456789-AQWZYM";

/// Keys that may come back from the page at one time.
const PASSED_ON_MAX: usize = 64;

/// How a scanner is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The scanner's, not the system's.
    pub layout: Layout,
    /// A key that it presses first and that nobody types (F13 to F24, say): then a hand's keys need not wait.
    pub prefix: Option<Code>,
    /// The key that ends a scan.
    pub suffix: Code,
    /// Keys that are farther apart are a hand's. 5 to 100.
    pub gap_ms: u64,
    /// Fewer letters are no scan, without a prefix.
    pub letters_min: usize,
    /// Key events (down and up) that a scan may have.
    pub keys_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { layout: Layout::Us, prefix: None, suffix: Code::ENTER, gap_ms: 35, letters_min: 6, keys_max: 2_000 }
    }
}

/// A key went down or up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyEvent {
    /// The caller's, by which it finds the event again.
    pub id: u64,
    pub code: Code,
    /// Going down, also when the system repeats a key that is held.
    pub down: bool,
    /// Of any clock that only goes on.
    pub at_ms: u64,
}

/// What becomes of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// It is not passed on, now.
    pub held: bool,
    /// Held before, and a hand's after all: to be passed on in this order, before this event.
    pub released: Vec<u64>,
    pub scan: Option<Scan>,
}

/// What a scanner read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Upper-case, as all our codes are: Caps Lock and a scanner that makes up for it change nothing. `None`: keys that
    /// the layout doesn't have, too many of them, or a scan that broke off. (A beep, and "please scan again".)
    pub text: Option<String>,
    /// Its keys, to learn the layout from ([`learn`]).
    pub keys: Vec<KeyEvent>,
}

/// Tells scans from typing.
#[derive(Debug)]
pub struct Scanner {
    settings: Settings,
    /// The events that may be a scan's.
    burst: Vec<KeyEvent>,
    /// Its prefix was seen.
    open: bool,
    /// More came than a scan may have.
    too_long: bool,
    last_ms: u64,
    /// Keys that are down and were passed on.
    passed: BTreeSet<Code>,
    /// Keys that a scan used up while they were down: their ends are the scan's too.
    used: BTreeSet<Code>,
    /// What was passed on last: it may come back.
    passed_on: VecDeque<(Code, bool, u64)>,
}

impl Scanner {
    pub fn new(settings: Settings) -> Self {
        let (burst, passed, used) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        Self { settings, burst, open: false, too_long: false, last_ms: 0, passed, used, passed_on: VecDeque::new() }
    }

    /// What the scanner is set to, from now on.
    pub fn set_layout(&mut self, layout: Layout) {
        self.settings.layout = layout;
    }

    /// A key went down or up.
    pub fn key(&mut self, event: KeyEvent) -> Verdict {
        if self.comes_back(event) {
            return Verdict::default();
        }
        let mut verdict = if self.is_late(event.at_ms) { self.end_burst() } else { Verdict::default() };
        self.last_ms = event.at_ms;
        let more = if event.down { self.down(event) } else { self.up(event) };
        verdict.held = more.held;
        verdict.released.extend(more.released);
        verdict.scan = more.scan.or(verdict.scan);
        if !verdict.held {
            self.pass_on(event);
        }
        verdict
    }

    fn pass_on(&mut self, event: KeyEvent) {
        if self.passed_on.len() >= PASSED_ON_MAX {
            self.passed_on.pop_front();
        }
        self.passed_on.push_back((event.code, event.down, event.at_ms));
    }

    fn comes_back(&mut self, event: KeyEvent) -> bool {
        let known = self.passed_on.iter().position(|passed| *passed == (event.code, event.down, event.at_ms));
        known.and_then(|at| self.passed_on.remove(at)).is_some()
    }

    /// Nothing came until `at_ms`: what was held is released, or was a scan that broke off.
    pub fn rest(&mut self, at_ms: u64) -> Verdict {
        if self.is_late(at_ms) { self.end_burst() } else { Verdict::default() }
    }

    /// When [`Scanner::rest`] has to be called if no key comes before; `None`: nothing is held.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.is_holding().then(|| self.last_ms + self.settings.gap_ms + 1)
    }

    fn is_holding(&self) -> bool {
        self.open || !self.burst.is_empty()
    }

    fn is_late(&self, at_ms: u64) -> bool {
        self.is_holding() && at_ms.saturating_sub(self.last_ms) > self.settings.gap_ms
    }

    fn down(&mut self, event: KeyEvent) -> Verdict {
        // The end of a used key never came; this is a key of its own.
        self.used.remove(&event.code);
        let repeated = self.passed.contains(&event.code) || self.is_down(event.code);
        if self.settings.prefix == Some(event.code) && !self.open && !repeated {
            let mut verdict = self.end_burst();
            self.open = true;
            verdict.held = true;
            self.burst.push(event);
            return verdict;
        }
        if self.open || (self.settings.prefix.is_none() && !repeated && self.may_be_scanned(event.code)) {
            return self.hold(event);
        }
        let mut verdict = self.end_burst();
        self.passed.insert(event.code);
        verdict.held = false;
        verdict
    }

    fn up(&mut self, event: KeyEvent) -> Verdict {
        if self.used.remove(&event.code) {
            // Of a scan that is over. It goes with it.
            return Verdict { held: true, ..Verdict::default() };
        }
        if self.burst.iter().any(|held| held.code == event.code) {
            return self.hold(event);
        }
        // The end of what a hand pressed before: it need not wait for what is held.
        self.passed.remove(&event.code);
        Verdict::default()
    }

    /// It went down within what is held, and has not come up.
    fn is_down(&self, code: Code) -> bool {
        self.burst.iter().rfind(|event| event.code == code).is_some_and(|event| event.down)
    }

    /// Without a prefix: letters, what shifts them, and the suffix behind them. Not what commands a program.
    fn may_be_scanned(&self, code: Code) -> bool {
        let commands = self.passed.iter().any(|down| down.is_command());
        let ends = code == self.settings.suffix && !self.burst.is_empty();
        !commands && (ends || code.is_shift() || code == Code::ALT || code.is_printable())
    }

    fn hold(&mut self, event: KeyEvent) -> Verdict {
        if event.down && event.code == self.settings.suffix && self.is_scan() {
            self.burst.push(event);
            return Verdict { held: true, scan: Some(self.take_scan()), ..Verdict::default() };
        }
        if event.down && event.code == self.settings.suffix {
            let mut verdict = self.end_burst();
            self.passed.insert(event.code);
            verdict.held = false;
            return verdict;
        }
        if self.burst.len() >= self.settings.keys_max {
            // No hand is that fast for so long. Its keys are dropped, their ends too.
            self.too_long = true;
            if event.down {
                self.used.insert(event.code);
            }
            return Verdict { held: true, ..Verdict::default() };
        }
        self.burst.push(event);
        Verdict { held: true, ..Verdict::default() }
    }

    fn is_scan(&self) -> bool {
        self.open || self.too_long || layout::letters(&self.burst) >= self.settings.letters_min
    }

    fn take_scan(&mut self) -> Scan {
        let mut keys = std::mem::take(&mut self.burst);
        for at in 0..keys.len() {
            let KeyEvent { code, down, .. } = keys[at];
            if down && !keys[at + 1..].iter().any(|later| later.code == code && !later.down) {
                self.used.insert(code);
            }
        }
        if self.open {
            let prefix = self.settings.prefix;
            keys.retain(|event| Some(event.code) != prefix);
        }
        let whole = !std::mem::take(&mut self.too_long) && keys.last().is_some_and(|e| e.code == self.settings.suffix);
        self.open = false;
        keys.retain(|event| event.code != self.settings.suffix);
        let text = if whole { self.settings.layout.read(&keys) } else { None };
        Scan { text: text.filter(|text| !text.is_empty()), keys }
    }

    /// What is held came to no scan.
    fn end_burst(&mut self) -> Verdict {
        if self.open || self.too_long {
            return Verdict { scan: Some(self.take_scan()), ..Verdict::default() };
        }
        let burst = std::mem::take(&mut self.burst);
        for event in &burst {
            self.pass_on(*event);
            if event.down {
                self.passed.insert(event.code);
            } else {
                self.passed.remove(&event.code);
            }
        }
        Verdict { released: burst.iter().map(|event| event.id).collect(), ..Verdict::default() }
    }
}

/// The layout that a scanner is set to, by the keys with which it typed [`TEST_CODE`]; `None`: it typed something else.
pub fn learn(keys: &[KeyEvent]) -> Option<Layout> {
    Layout::ALL.into_iter().find(|layout| layout.read(keys).as_deref() == Some(TEST_CODE))
}
