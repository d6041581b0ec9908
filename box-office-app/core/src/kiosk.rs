//! One customer's visit at a kiosk, from the first touch to the last trace of them.
//!
//! Pure: events in, effects out; a shell carries the effects out and tells what came of them. Nothing here has a clock:
//! the shell runs [`Kiosk::timer`] and says [`Event::TimeUp`].
//!
//! Invariants (`kiosk/tests.rs` searches every order of events until nothing new is found):
//! - Every visit ends by time alone, whatever the customer, the hub, the reader and the printer do or don't.
//! - A reader that was started is stopped, and has answered, before the visit ends; without an answer staff are called,
//!   with the order, and the kiosk sells nothing until they came.
//! - Money that was taken ends as tickets in the tray, or with staff: never with nobody. Until they came nobody else pays.
//! - A hold ends with its visit: released, bought, over, or with staff.
//! - After the end nothing is left of a customer; what answers late to them is seen to and shown to nobody.
//!
//! How a shell calls it:
//!
//! ```text
//! for effect in kiosk.step(event) { start it; when it answers: kiosk.step(answer with the effect's `at`) }
//! draw(kiosk.screen());
//! if kiosk.timer() differs from the one that runs { start it anew; show the countdown when `warns_s` are left }
//! ```
//!
//! Every touch, anywhere on the glass, is an [`Event::Touch`] first. [`Effect::Wipe`] empties the page: fields, scroll,
//! language, clipboard. Ask the hub for an order's payment at its pace while `screen` is at the reader or authorising,
//! and tell each *definite* answer; an answer that could not be had is no event.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

mod effects; // what a shell has to do, and what it tells
#[cfg(test)]
mod tests;

pub use effects::{Case, Effect, Event, Mail, Ref, Unpaid};

/// Seconds, and how often to ask. `idle_s` comes from the terminal's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Without a touch, while choosing.
    pub idle_s: u32,
    /// The last seconds of a wait, shown as a countdown.
    pub warning_s: u32,
    /// For a hub's answer to a hold.
    pub holding_s: u32,
    /// With the reader waiting for a card.
    pub reader_s: u32,
    /// For an answer about a payment, each time that it is asked.
    pub payment_s: u32,
    /// Times that it is asked before staff are.
    pub asks_max: u8,
    /// For all tickets of an order: longer than the printer's own bounds.
    pub printing_s: u32,
    /// "Take your tickets."
    pub done_s: u32,
    /// How long a customer's order stays on the screen while staff are on their way.
    pub staff_s: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            idle_s: 90,
            warning_s: 30,
            holding_s: 20,
            reader_s: 90,
            payment_s: 30,
            asks_max: 4,
            printing_s: 240,
            done_s: 20,
            staff_s: 180,
        }
    }
}

/// Why nobody can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A payment is in doubt, or tickets that were paid did not come out; a member of staff ends this by their PIN.
    Case,
    NoHub,
    /// It prints nothing.
    Printer,
}

/// How seats are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Map,
    Best,
}

/// Why there are no tickets, and no money was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    SeatsGone,
    HoldOver,
    NoHub,
    Unpaid(Unpaid),
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "name", content = "of", rename_all = "snake_case")]
pub enum Screen {
    Attract,
    OutOfService(Fault),
    Language,
    Choosing(Way),
    /// The hub is asked for the seats.
    Holding,
    /// The seats are theirs for a while: prices, mail address, "pay".
    Held,
    AtReader {
        /// The reader shows the amount.
        ready: bool,
    },
    /// The reader was told to stop, and has not said so.
    Stopping,
    /// A card was read. Nobody walks out of this.
    Authorising,
    /// Paid; the printer was told.
    Approved,
    Printing,
    /// Paid, and not on paper: the order's code, a field for a mail address, "staff are coming".
    Unprinted {
        mailed: bool,
    },
    Done,
    /// Nothing was charged. Try again, or go.
    Failed(Failure),
    /// Nobody knows whether they paid: the order's code, "staff are coming".
    Staff,
}

impl Screen {
    /// Whether a payment lives, or its tickets are on their way: nobody ends this, and no program does.
    pub fn is_paying(self) -> bool {
        use Screen::{Approved, AtReader, Authorising, Printing, Stopping};
        matches!(self, AtReader { .. } | Stopping | Authorising | Approved | Printing)
    }

    fn is_paid(self) -> bool {
        matches!(self, Screen::Approved | Screen::Printing | Screen::Unprinted { .. } | Screen::Done)
    }
}

/// A wait that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// Another number is another wait, begun anew.
    pub number: u64,
    pub s: u32,
    /// When so many seconds are left, count down for all to see; `None`: nothing they could do.
    pub warns_s: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Visit {
    screen: Screen,
    language: Option<u8>,
    mail: Option<Mail>,
    hold: Option<Uuid>,
    /// The hold's time ended while it was being paid for.
    over: bool,
    order: Option<Uuid>,
    /// Of what was asked last: an answer to anything else is late.
    turn: u32,
    /// Times that an answer about the payment did not come.
    asked: u8,
    /// When the reader has stopped, the visit is over.
    leaves: bool,
    /// They said that they don't want to pay.
    cancelled: bool,
}

/// The kiosk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kiosk {
    settings: Settings,
    visit: Option<Visit>,
    /// Of this visit, or of the next.
    number: u64,
    timer: u64,
    case: bool,
    online: bool,
    prints: bool,
}

impl Kiosk {
    /// Out of service until the hub and the printer are known to be there.
    pub fn new(settings: Settings) -> Self {
        Self { settings, visit: None, number: 1, timer: 0, case: false, online: false, prints: false }
    }

    /// One that begins with a case: the program ended in the middle of a payment, or before staff had come.
    pub fn with_case(settings: Settings) -> Self {
        Self { case: true, ..Self::new(settings) }
    }

    /// Other waits, from the next visit on: the terminal's profile has changed.
    pub fn adjust(&mut self, settings: Settings) {
        if self.visit.is_none() {
            self.settings = settings;
        }
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The number of this visit, or of the next.
    pub fn visit(&self) -> u64 {
        self.number
    }

    pub fn screen(&self) -> Screen {
        let fault = if self.case {
            Some(Fault::Case)
        } else if !self.online {
            Some(Fault::NoHub)
        } else {
            (!self.prints).then_some(Fault::Printer)
        };
        match &self.visit {
            Some(visit) => visit.screen,
            None => fault.map_or(Screen::Attract, Screen::OutOfService),
        }
    }

    /// What an event is about that answers to nothing that was asked: [`Event::HoldOver`].
    pub fn at(&self) -> Option<Ref> {
        self.visit.as_ref().map(|visit| Ref { visit: self.number, turn: visit.turn })
    }

    /// The language that was chosen, by its place in the profile's list.
    pub fn language(&self) -> Option<u8> {
        self.visit.as_ref().and_then(|visit| visit.language)
    }

    /// Whether a mail address has to be given before paying, because nothing would be printed.
    pub fn needs_mail(&self) -> bool {
        !self.prints && self.visit.as_ref().is_some_and(|visit| visit.mail.is_none())
    }

    /// The order that is paid or being paid, to show its code.
    pub fn order(&self) -> Option<Uuid> {
        self.visit.as_ref().and_then(|visit| visit.order)
    }

    /// The wait that runs now.
    pub fn timer(&self) -> Option<Timer> {
        let Settings { idle_s, holding_s, reader_s, payment_s, printing_s, done_s, staff_s, .. } = self.settings;
        let (s, warns) = match self.visit.as_ref()?.screen {
            Screen::Attract | Screen::OutOfService(_) => return None,
            Screen::Language | Screen::Choosing(_) | Screen::Held | Screen::Failed(_) => (idle_s, true),
            Screen::Unprinted { .. } => (staff_s, true),
            Screen::Holding => (holding_s, false),
            Screen::AtReader { .. } => (reader_s, true),
            Screen::Stopping | Screen::Authorising => (payment_s, false),
            Screen::Approved | Screen::Printing => (printing_s, false),
            Screen::Done => (done_s, false),
            Screen::Staff => (staff_s, false),
        };
        let warns_s = warns.then_some(self.settings.warning_s.min(s));
        Some(Timer { number: self.timer, s, warns_s })
    }

    /// Something happened. What to do about it, in this order.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut todo = Vec::new();
        let before = self.screen();
        match event {
            Event::TimeUp { timer } if timer == self.timer => self.time_up(&mut todo),
            Event::TimeUp { .. } => {}
            Event::Hub(there) => self.online = there,
            Event::Printer(works) => self.prints = works,
            Event::StaffPin => self.staff(&mut todo),
            Event::Begin if before == Screen::Attract => self.begin(),
            Event::Begin => {}
            event => match event.at() {
                Some(at) if self.is_late(at) => self.late(event, &mut todo),
                _ => self.visiting(event, &mut todo),
            },
        }
        if self.screen() != before {
            self.timer += 1;
        }
        todo
    }

    fn begin(&mut self) {
        self.visit = Some(Visit {
            screen: Screen::Language,
            language: None,
            mail: None,
            hold: None,
            over: false,
            order: None,
            turn: 0,
            asked: 0,
            leaves: false,
            cancelled: false,
        });
    }

    /// To a customer who is gone, or to a question that was asked again since.
    fn is_late(&self, at: Ref) -> bool {
        at.visit != self.number || self.visit.as_ref().is_none_or(|visit| at.turn != visit.turn)
    }

    fn late(&self, event: Event, todo: &mut Vec<Effect>) {
        let visit = self.visit.as_ref();
        match event {
            Event::Held { hold, .. } if visit.and_then(|v| v.hold) != Some(hold) => {
                todo.push(Effect::ReleaseHold(hold));
            }
            Event::Paid { order, .. } if !visit.is_some_and(|v| v.order == Some(order) && v.screen.is_paid()) => {
                todo.push(Effect::CallStaff { case: Case::PaidUnattended, order: Some(order), hold: None });
            }
            _ => {}
        }
    }

    fn visiting(&mut self, event: Event, todo: &mut Vec<Effect>) {
        let (number, online, prints) = (self.number, self.online, self.prints);
        let Some(visit) = &mut self.visit else { return };
        let at = |visit: &Visit| Ref { visit: number, turn: visit.turn };
        match (event, visit.screen) {
            (Event::Touch, screen) => {
                // Somebody is there. Where nobody can do anything, nothing waits for them.
                let waits = matches!(
                    screen,
                    Screen::Language
                        | Screen::Choosing(_)
                        | Screen::Held
                        | Screen::AtReader { .. }
                        | Screen::Failed(_)
                        | Screen::Unprinted { .. }
                );
                self.timer += u64::from(waits);
            }
            (Event::Speak(language), _) => {
                visit.language = Some(language);
                if visit.screen == Screen::Language {
                    visit.screen = Screen::Choosing(Way::Best);
                }
            }
            (Event::Choose(way), Screen::Choosing(_)) => visit.screen = Screen::Choosing(way),
            (Event::Choose(way), Screen::Held | Screen::Failed(_)) => {
                todo.extend(visit.hold.take().map(Effect::ReleaseHold));
                visit.screen = Screen::Choosing(way);
            }
            (Event::Take, Screen::Choosing(_)) => {
                if online {
                    visit.turn += 1;
                    visit.screen = Screen::Holding;
                    todo.push(Effect::AskHold(at(visit)));
                } else {
                    visit.screen = Screen::Failed(Failure::NoHub);
                }
            }
            (Event::Held { hold, .. }, screen) => match visit.hold {
                Some(known) if known == hold => {}
                None if screen == Screen::Holding => {
                    visit.hold = Some(hold);
                    visit.screen = Screen::Held;
                }
                _ => todo.push(Effect::ReleaseHold(hold)),
            },
            (Event::NotHeld { .. }, Screen::Holding) => visit.screen = Screen::Failed(Failure::SeatsGone),
            (Event::HoldOver { .. }, Screen::Held | Screen::Failed(_)) if visit.hold.is_some() => {
                visit.hold = None;
                visit.screen = Screen::Failed(Failure::HoldOver);
            }
            // Asked for while it is being paid for, the hub says what became of that.
            (Event::HoldOver { .. }, _) => visit.over = true,
            (Event::MailGiven(mail), Screen::Choosing(_) | Screen::Held | Screen::Failed(_)) => visit.mail = Some(mail),
            (Event::MailGiven(to), Screen::Unprinted { .. }) => {
                visit.mail = Some(to.clone());
                visit.screen = Screen::Unprinted { mailed: false };
                todo.extend(visit.order.map(|order| Effect::Mail { at: at(visit), order, to }));
            }
            (Event::Mailed { .. }, Screen::Unprinted { .. }) => visit.screen = Screen::Unprinted { mailed: true },
            (Event::Pay, Screen::Held | Screen::Failed(_)) if prints || visit.mail.is_some() => {
                let Some(hold) = visit.hold else { return };
                if !online {
                    visit.screen = Screen::Failed(Failure::NoHub);
                    return;
                }
                (visit.turn, visit.asked, visit.leaves, visit.cancelled) = (visit.turn + 1, 0, false, false);
                (visit.order, visit.over) = (None, false);
                visit.screen = Screen::AtReader { ready: false };
                todo.push(Effect::StartReader { at: at(visit), hold });
            }
            (Event::ReaderReady { order, .. }, Screen::AtReader { .. } | Screen::Stopping | Screen::Authorising) => {
                visit.order = Some(order);
                if matches!(visit.screen, Screen::AtReader { .. }) {
                    visit.screen = Screen::AtReader { ready: true };
                }
            }
            (Event::CardSeen { .. }, Screen::AtReader { .. }) => {
                (visit.screen, visit.asked) = (Screen::Authorising, 0);
            }
            (Event::CardSeen { .. }, Screen::Stopping) if !visit.cancelled => {
                (visit.screen, visit.asked) = (Screen::Authorising, 0);
            }
            (Event::Cancel, Screen::AtReader { .. }) => {
                (visit.screen, visit.cancelled, visit.asked) = (Screen::Stopping, true, 0);
                todo.push(Effect::StopReader { at: at(visit), keep_if_paid: false });
            }
            (Event::Cancel, Screen::Language | Screen::Choosing(_) | Screen::Holding) => self.leave(todo),
            (Event::Cancel, Screen::Held | Screen::Failed(_) | Screen::Done) => self.leave(todo),
            (Event::Paid { order, .. }, screen) => match screen {
                screen if screen.is_paid() => {}
                // Also after "not paid": money is money.
                _ => {
                    (visit.order, visit.hold) = (Some(order), None);
                    visit.screen = Screen::Approved;
                    todo.push(Effect::Print { at: at(visit), order });
                }
            },
            (Event::NotPaid { .. }, Screen::Stopping) if visit.leaves => self.leave(todo),
            (
                Event::NotPaid { why, .. },
                Screen::AtReader { .. } | Screen::Authorising | Screen::Stopping | Screen::Staff,
            ) => {
                visit.screen =
                    if visit.screen == Screen::Stopping { Screen::Held } else { Screen::Failed(Failure::Unpaid(why)) };
                if visit.over {
                    todo.extend(visit.hold.take().map(Effect::ReleaseHold));
                    visit.screen = Screen::Failed(Failure::HoldOver);
                }
            }
            (Event::PrintBegan { .. }, Screen::Approved) => visit.screen = Screen::Printing,
            (Event::Printed { .. }, Screen::Approved | Screen::Printing | Screen::Unprinted { .. }) => {
                visit.screen = Screen::Done;
            }
            (Event::NotPrinted { .. }, Screen::Approved | Screen::Printing) => self.unprinted(todo),
            _ => {}
        }
    }

    fn time_up(&mut self, todo: &mut Vec<Effect>) {
        let (number, asks_max) = (self.number, self.settings.asks_max);
        let Some(visit) = &mut self.visit else { return };
        let at = Ref { visit: number, turn: visit.turn };
        match visit.screen {
            Screen::Attract | Screen::OutOfService(_) => {}
            Screen::Language | Screen::Choosing(_) | Screen::Held | Screen::Failed(_) => self.leave(todo),
            Screen::Done | Screen::Unprinted { .. } => self.leave(todo),
            // A late "held" is given back then.
            Screen::Holding => (visit.turn, visit.screen) = (visit.turn + 1, Screen::Failed(Failure::NoHub)),
            Screen::AtReader { .. } => {
                // Nobody touched anything; but a card that is read in this moment is somebody who is there.
                (visit.screen, visit.leaves, visit.asked) = (Screen::Stopping, true, 0);
                todo.push(Effect::StopReader { at, keep_if_paid: true });
            }
            Screen::Stopping | Screen::Authorising if visit.asked < asks_max => {
                visit.asked += 1;
                // Told again as well: the word to stop may have got lost.
                let stops = visit.screen == Screen::Stopping;
                todo.extend(stops.then_some(Effect::StopReader { at, keep_if_paid: !visit.cancelled }));
                todo.push(Effect::AskPayment(at));
                self.timer += 1;
            }
            Screen::Stopping | Screen::Authorising => {
                visit.screen = Screen::Staff;
                todo.push(Effect::CallStaff { case: Case::PaymentInDoubt, order: visit.order, hold: visit.hold });
                self.case = true;
            }
            Screen::Approved | Screen::Printing => self.unprinted(todo),
            Screen::Staff => {
                // The order and its seats are the staff's now: nothing is given back behind them.
                visit.hold = None;
                self.leave(todo);
            }
        }
    }

    /// Paid, and nobody can say that all tickets lie in the tray. A printer that says that it is well was well before
    /// it lost these too: nobody else pays here until somebody has looked.
    fn unprinted(&mut self, todo: &mut Vec<Effect>) {
        self.case = true;
        let Some(visit) = &mut self.visit else { return };
        let at = Ref { visit: self.number, turn: visit.turn };
        visit.screen = Screen::Unprinted { mailed: false };
        todo.push(Effect::CallStaff { case: Case::Unprinted, order: visit.order, hold: None });
        if let (Some(order), Some(to)) = (visit.order, visit.mail.clone()) {
            todo.push(Effect::Mail { at, order, to });
        }
    }

    /// Staff end a visit, or a case; never a payment that lives.
    fn staff(&mut self, todo: &mut Vec<Effect>) {
        if self.screen().is_paying() {
            return;
        }
        let screen = self.visit.as_ref().map(|visit| visit.screen);
        if let (Some(Screen::Staff), Some(visit)) = (screen, &mut self.visit) {
            visit.hold = None;
        }
        self.case = false;
        if self.visit.is_some() {
            self.leave(todo);
        }
    }

    fn leave(&mut self, todo: &mut Vec<Effect>) {
        let hold = self.visit.take().and_then(|visit| visit.hold);
        todo.extend(hold.map(Effect::ReleaseHold));
        todo.push(Effect::Wipe);
        self.number += 1;
    }
}
