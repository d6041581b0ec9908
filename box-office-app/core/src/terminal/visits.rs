//! The visits of a kiosk, one after the other: runs [`Kiosk`], carries out what it wants done, and says what to draw.
//!
//! Invariants:
//! - The machine decides; a screen tells what was touched, and draws. Waits run here: a web view's timers freeze, and a
//!   page that hangs or was loaded anew ends no visit and prolongs none.
//! - What is known of a customer is one value, dropped whole when the machine says so.
//! - That a payment begins is on the disk before the hub is asked, and staff who were called stay called: a kiosk that is
//!   switched off in the middle comes back out of service, and says with which order.

mod asking; // what the hub and the printer are asked, and what they tell
mod kept; // what a restart must know

use std::{collections::HashMap, sync::Arc, time::Duration};

use fullhouse_protocol::{
    box_office::TillHoldAnswer,
    holds::{BestRequest, Hold},
    orders::{Order, OrderState, TicketChoice},
    terminal::TerminalSelf,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinHandle},
    time::{Instant, interval, sleep_until},
};
use uuid::Uuid;

pub use self::kept::Call;
use self::{
    asking::{Asking, Payment},
    kept::Kept,
};
use super::{
    Home, Relay,
    papers::{Language, Papers},
};
use crate::{
    kiosk::{Case, Effect, Event, Failure, Kiosk, Mail, Ref, Screen, Settings, Unpaid, Way},
    pulse::Reach,
};

/// Inputs that wait: a finger makes a few a second.
const INPUTS_MAX: usize = 256;
/// Paper, profile and readers are looked at so often while nobody is there.
const LOOK_EVERY_S: u32 = 10;

/// What a screen tells.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "did", rename_all = "snake_case")]
pub enum Touched {
    /// The glass, anywhere.
    Glass,
    Begin,
    /// A language, by its place in [`Shown::languages`].
    Language {
        language: u8,
    },
    /// Other seats, one way or the other.
    Choose {
        way: Way,
    },
    /// These seats, or the best so many.
    Take {
        wish: Wish,
    },
    /// As what the held seats are bought.
    Types {
        tickets: Vec<TicketChoice>,
    },
    Mail {
        to: String,
    },
    Pay,
    Cancel,
}

/// The seats that a customer wants.
#[derive(Debug, Clone, Deserialize)]
pub struct Wish {
    pub event_id: i64,
    #[serde(default)]
    pub seats: Option<Vec<i32>>,
    #[serde(default)]
    pub best: Option<BestRequest>,
}

/// What to draw. Nothing of it outlives the visit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// Another number is another customer: everything that a page has of the last one is thrown away.
    pub visit: u64,
    pub screen: Screen,
    /// Codes, in the order in which they are offered.
    pub languages: Vec<String>,
    /// By its place there; none was chosen.
    pub language: Option<u8>,
    /// Seconds that are left, once they are counted down for all to see.
    pub ends_in_s: Option<u32>,
    pub needs_mail: bool,
    /// Tickets come out of this machine; else they are fetched at the counter.
    pub prints: bool,
    /// A card reader stands here.
    pub reader: bool,
    pub hold: Option<Hold>,
    /// The hub's price for it, and its order.
    pub order: Option<Order>,
    /// Why the last wish came to nothing, in the hub's words.
    pub problem: Option<Value>,
    /// What staff are called for. No page is told: the next customer has no use for the last one's order.
    #[serde(skip)]
    pub calls: Vec<Call>,
}

/// All that is known of whoever stands there.
#[derive(Debug, Default)]
struct Customer {
    wish: Option<Wish>,
    buyer: Option<Uuid>,
    hold: Option<Hold>,
    tickets: Vec<TicketChoice>,
    order: Option<Order>,
    problem: Option<Value>,
    /// When the hold may not be paid any more.
    over_at: Option<Instant>,
    payment: Option<Payment>,
}

enum Input {
    Touched(Touched),
    StaffPin,
    /// The machine's, and what came with it.
    Learnt(Event, Learnt),
    /// What the machine does without, of a customer who may be gone.
    Also(Ref, Learnt),
    /// What the hub says of this terminal.
    Own(Box<TerminalSelf>),
}

/// What an answer carries that the machine doesn't need.
enum Learnt {
    Nothing,
    Held(Box<TillHoldAnswer>),
    Order(Box<Order>),
    Problem(Value),
}

/// A kiosk that runs. It ends with its last clone.
#[derive(Clone)]
pub struct Visits(Arc<Running>);

struct Running {
    tell: mpsc::Sender<Input>,
    shown: watch::Receiver<Shown>,
    run: JoinHandle<()>,
    asking: Asking,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.run.abort();
        self.asking.stop();
    }
}

impl Visits {
    /// On a runtime. `second`: how long one is; shorter in tests alone.
    pub fn begin(relay: Relay, papers: Papers, home: Home, version: &str, second: Duration) -> std::io::Result<Self> {
        let kept = Kept::read(home)?;
        let kiosk = if kept.calls().is_empty() {
            Kiosk::new(Settings::default())
        } else {
            Kiosk::with_case(Settings::default())
        };
        let (tell, told) = mpsc::channel(INPUTS_MAX);
        let asking = Asking::new(relay, papers, version.to_owned(), tell.downgrade());
        let mut run = Run {
            kiosk,
            asking: asking.clone(),
            kept,
            customer: Customer::default(),
            buyers: HashMap::new(),
            own: None,
            timer: None,
            health: None,
            second,
        };
        let (show, shown) = watch::channel(run.shown());
        let run = tokio::spawn(async move { run.goes_on(told, show).await });
        Ok(Self(Arc::new(Running { tell, shown, run, asking })))
    }

    /// What to draw, now and whenever that changes.
    pub fn shown(&self) -> watch::Receiver<Shown> {
        self.0.shown.clone()
    }

    /// As if the machine were switched off; answers once nothing runs any more.
    pub async fn end(self) {
        let asking = self.0.asking.clone();
        drop(self);
        asking.ended().await;
    }

    /// What was touched.
    pub async fn touched(&self, touched: Touched) {
        let _ = self.0.tell.send(Input::Touched(touched)).await; // its end is the program's
    }

    /// A member of staff gave their PIN: they see to what they were called for, which is what this answers with.
    pub async fn staff_came(&self) -> Vec<Call> {
        let calls = self.0.shown.borrow().calls.clone();
        let _ = self.0.tell.send(Input::StaffPin).await;
        calls
    }

    /// Whether the program may not end now.
    pub fn is_paying(&self) -> bool {
        self.0.shown.borrow().screen.is_paying()
    }
}

struct Run {
    kiosk: Kiosk,
    asking: Asking,
    kept: Kept,
    customer: Customer,
    /// Whose a hold is, until it is given back or bought.
    buyers: HashMap<Uuid, Uuid>,
    /// What the hub says of this terminal.
    own: Option<TerminalSelf>,
    /// The machine's wait, by its number.
    timer: Option<(u64, Instant)>,
    health: Option<AbortHandle>,
    second: Duration,
}

impl Run {
    async fn goes_on(&mut self, mut told: mpsc::Receiver<Input>, show: watch::Sender<Shown>) {
        let mut reach = self.asking.relay().reach();
        let (mut look, mut second) = (interval(self.second * LOOK_EVERY_S), interval(self.second));
        self.report();
        loop {
            let wait = self.timer.map(|(_, until)| until);
            let over = self.customer.over_at;
            tokio::select! {
                input = told.recv() => match input {
                    Some(input) => self.take(input),
                    None => return,
                },
                _ = reach.changed() => self.looks(*reach.borrow_and_update()),
                _ = look.tick() => self.looks(*reach.borrow()),
                _ = second.tick() => {} // the countdown
                () = sleep_until(wait.unwrap_or_else(Instant::now)), if wait.is_some() => {
                    if let Some((timer, _)) = self.timer.take() {
                        self.step(Event::TimeUp { timer }, Learnt::Nothing);
                    }
                }
                () = sleep_until(over.unwrap_or_else(Instant::now)), if over.is_some() => {
                    self.customer.over_at = None;
                    if let Some(at) = self.kiosk.at() {
                        self.step(Event::HoldOver { at }, Learnt::Nothing);
                    }
                }
            }
            let now = self.shown();
            show.send_if_modified(|shown| {
                let changed = *shown != now;
                *shown = now;
                changed
            });
        }
    }

    fn looks(&mut self, reach: Reach) {
        if reach != Reach::Unknown {
            self.step(Event::Hub(reach == Reach::Up), Learnt::Nothing);
        }
        if reach == Reach::Up {
            self.asking.own();
        }
        if self.kiosk.at().is_none() {
            self.asking.printer();
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Touched(touched) => self.touched(touched),
            Input::StaffPin => {
                if !self.kiosk.screen().is_paying() {
                    self.kept.clear_calls();
                    self.report();
                }
                self.step(Event::StaffPin, Learnt::Nothing);
            }
            Input::Learnt(event, learnt) => self.step(event, learnt),
            Input::Also(at, learnt) => {
                if self.kiosk.at() == Some(at) {
                    self.learn(learnt);
                }
            }
            Input::Own(own) => {
                let idle_s = own.profile.idle_s.unwrap_or(Settings::default().idle_s);
                let warning_s = Settings::default().warning_s.min(idle_s / 2);
                self.kiosk.adjust(Settings { idle_s, warning_s, ..self.kiosk.settings() });
                self.own = Some(*own);
            }
        }
    }

    fn touched(&mut self, touched: Touched) {
        self.step(Event::Touch, Learnt::Nothing);
        let event = match touched {
            Touched::Glass => return,
            Touched::Begin => Event::Begin,
            Touched::Language { language } if usize::from(language) >= self.languages().len() => return,
            Touched::Language { language } => Event::Speak(language),
            Touched::Choose { way } => {
                self.customer.problem = None;
                Event::Choose(way)
            }
            Touched::Take { wish } => {
                self.customer.wish = Some(wish);
                self.customer.problem = None;
                Event::Take
            }
            Touched::Types { tickets } => {
                if self.is_held() {
                    self.customer.tickets = tickets;
                    self.price();
                }
                return;
            }
            Touched::Mail { to } => Event::MailGiven(Mail(to)),
            Touched::Pay if self.reader().is_none() => return,
            Touched::Pay => {
                self.customer.problem = None;
                Event::Pay
            }
            Touched::Cancel => Event::Cancel,
        };
        self.step(event, Learnt::Nothing);
    }

    fn is_held(&self) -> bool {
        matches!(self.kiosk.screen(), Screen::Held | Screen::Failed(Failure::Unpaid(_)))
    }

    /// Keeps what an answer says, if it is this customer's, and does what the machine wants about it.
    fn step(&mut self, event: Event, learnt: Learnt) {
        if let (Event::Held { hold, .. }, Learnt::Held(answer)) = (&event, &learnt) {
            self.buyers.insert(*hold, answer.buyer_id);
        }
        let current = event.at().is_none() || event.at() == self.kiosk.at();
        let was_held = self.customer.hold.is_some();
        if current {
            self.learn(learnt);
        }
        for effect in self.kiosk.step(event) {
            self.carry_out(effect);
        }
        let given_up = |order: &Order| order.state == OrderState::Cancelled;
        if self.is_held() && self.customer.hold.is_some() {
            let over = self.customer.order.take_if(|order| given_up(order)).is_some();
            if !was_held || over {
                self.price();
            }
        }
        self.wait_anew();
    }

    fn learn(&mut self, learnt: Learnt) {
        match learnt {
            Learnt::Nothing => {}
            Learnt::Held(answer) => {
                self.customer.buyer = Some(answer.buyer_id);
                let now = answer.answer.now;
                self.customer.over_at = answer
                    .answer
                    .hold
                    .as_ref()
                    .map(|hold| Instant::now() + (hold.pay_until - now).to_std().unwrap_or(Duration::ZERO));
                self.customer.hold = answer.answer.hold;
                self.customer.tickets.clear();
            }
            Learnt::Order(order) => {
                self.customer.order = Some(*order);
                self.customer.problem = None;
            }
            Learnt::Problem(problem) => self.customer.problem = Some(problem),
        }
    }

    /// Asks what the held seats cost.
    fn price(&self) {
        if let (Some(at), Some(basket)) = (self.kiosk.at(), self.basket()) {
            self.asking.price(at, basket);
        }
    }

    fn basket(&self) -> Option<asking::Basket> {
        let (hold, buyer) = (self.customer.hold.as_ref()?.id, self.customer.buyer?);
        Some(asking::Basket { hold, buyer, tickets: self.customer.tickets.clone() })
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::AskHold(at) => match self.customer.wish.take() {
                Some(wish) => self.asking.hold(at, wish, self.customer.buyer),
                None => self.asking.tell(Event::NotHeld { at }, Learnt::Nothing),
            },
            Effect::ReleaseHold(hold) => {
                if self.customer.hold.as_ref().is_some_and(|own| own.id == hold) {
                    (self.customer.hold, self.customer.order, self.customer.over_at) = (None, None, None);
                }
                if let Some(buyer) = self.buyers.remove(&hold) {
                    self.asking.release(hold, buyer);
                }
            }
            Effect::StartReader { at, .. } => self.start_reader(at),
            Effect::StopReader { keep_if_paid, .. } => {
                if let Some(payment) = &self.customer.payment {
                    payment.stop(keep_if_paid);
                }
            }
            Effect::AskPayment(_) => {
                if let Some(payment) = &self.customer.payment {
                    payment.ask();
                }
            }
            Effect::Print { at, order } => self.asking.print(at, order, self.language()),
            Effect::Mail { at, order, to } => self.asking.mail(at, order, to, self.language()),
            Effect::CallStaff { case, order, hold } => self.call(case, order, hold),
            Effect::Wipe => {
                self.customer = Customer::default();
                self.kept.no_payment();
            }
        }
    }

    fn start_reader(&mut self, at: Ref) {
        let (Some(basket), Some(reader)) = (self.basket(), self.reader()) else {
            return self.asking.tell(Event::NotPaid { at, why: Unpaid::Reader }, Learnt::Nothing);
        };
        let order = self.customer.order.as_ref();
        let (id, code) = (order.map(|order| order.id), order.map(|order| order.code.clone()));
        // A disk that can't be written takes no money: nobody would know of it after a restart.
        if let Err(error) = self.kept.payment(id, code) {
            tracing::error!(%error, "a payment can't be written down");
            return self.asking.tell(Event::NotPaid { at, why: Unpaid::Reader }, Learnt::Nothing);
        }
        self.customer.payment = Some(self.asking.pay(at, basket, id, reader));
    }

    fn call(&mut self, case: Case, order: Option<Uuid>, hold: Option<Uuid>) {
        let known = self.customer.order.as_ref().filter(|known| Some(known.id) == order);
        tracing::error!(?case, order.id = ?order, hold.id = ?hold, "staff are called");
        self.kept.call(Call { case, order, code: known.map(|order| order.code.clone()) });
        self.report();
    }

    /// Tells the hub how this machine is, until it has it; and again a minute later.
    fn report(&mut self) {
        if let Some(before) = self.health.take() {
            before.abort();
        }
        self.health = Some(self.asking.report(self.kept.calls().to_vec()));
    }

    /// The machine's wait, begun anew if it is another one.
    fn wait_anew(&mut self) {
        let wanted = self.kiosk.timer();
        if self.timer.map(|(number, _)| number) != wanted.map(|timer| timer.number) {
            self.timer = wanted.map(|timer| (timer.number, Instant::now() + self.second * timer.s));
        }
    }

    fn reader(&self) -> Option<String> {
        self.own.as_ref()?.readers.first().cloned()
    }

    fn languages(&self) -> Vec<String> {
        match &self.own {
            Some(own) if !own.profile.languages.is_empty() => own.profile.languages.clone(),
            _ => ["en", "ja", "ko"].map(str::to_owned).into(),
        }
    }

    fn language(&self) -> Language {
        let place = self.kiosk.language().map_or(0, usize::from);
        self.languages().get(place).and_then(|code| Language::read(code)).unwrap_or_default()
    }

    fn shown(&self) -> Shown {
        let customer = &self.customer;
        Shown {
            visit: self.kiosk.visit(),
            screen: self.kiosk.screen(),
            languages: self.languages(),
            language: self.kiosk.language(),
            ends_in_s: self.ends_in_s(),
            needs_mail: self.kiosk.needs_mail(),
            prints: self.asking.prints(),
            reader: self.reader().is_some(),
            hold: customer.hold.clone(),
            order: customer.order.clone(),
            problem: customer.problem.clone(),
            calls: self.kept.calls().to_vec(),
        }
    }

    fn ends_in_s(&self) -> Option<u32> {
        let (warns_s, (_, until)) = (self.kiosk.timer()?.warns_s?, self.timer?);
        let left = until.saturating_duration_since(Instant::now()).div_duration_f64(self.second).ceil() as u32;
        (left <= warns_s).then_some(left)
    }
}
