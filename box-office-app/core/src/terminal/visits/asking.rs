//! What a kiosk asks its hub and its printer. Each question is a task, whose answer comes back as an event.

use std::{sync::Arc, time::Duration};

use fullhouse_protocol::{
    box_office::{
        TillCardRequest, TillCardStopRequest, TillHoldAnswer, TillHoldRequest, TillQuoteRequest, TillReleaseRequest,
    },
    orders::{AttemptPhase, Order, OrderAnswer, OrderState, TicketChoice, TicketState},
    terminal::{PaperState, ReaderState, TerminalHealth},
    tickets::MailTo,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{Call, Input, Learnt, Wish};
use crate::{
    kiosk::{Event, Mail, Ref, Unpaid},
    print::End,
    pulse,
    terminal::{
        Answer, Ask, Relay,
        papers::{Language, Papers},
    },
};

/// How often a payment is looked at.
const FOLLOW_EVERY: Duration = Duration::from_millis(700);
/// Whoever stands there is told by then that staff have their tickets; well within the machine's own wait for paper.
const CHARGED_WITHIN: Duration = Duration::from_secs(90);
const HEALTH_EVERY: Duration = Duration::from_secs(60);
/// Of [`TerminalHealth::detail`].
const DETAIL_CHARS_MAX: usize = 300;

/// What is paid for.
#[derive(Debug, Clone)]
pub struct Basket {
    pub hold: Uuid,
    pub buyer: Uuid,
    pub tickets: Vec<TicketChoice>,
}

/// A payment that is followed until it is known how it ended, whoever still waits for it.
#[derive(Debug)]
pub struct Payment(watch::Sender<Wanted>);

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    /// The reader has to stop; whether a card that was faster is kept.
    stop: Option<bool>,
    /// Grows: look now.
    asked: u32,
}

impl Payment {
    pub fn stop(&self, keep_if_paid: bool) {
        self.0.send_modify(|wanted| wanted.stop = Some(keep_if_paid));
    }

    pub fn ask(&self) {
        self.0.send_modify(|wanted| wanted.asked += 1);
    }
}

#[derive(Clone)]
pub struct Asking {
    relay: Relay,
    papers: Papers,
    version: Arc<str>,
    tell: mpsc::WeakSender<Input>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A hub's definite answer.
type Told<T> = Result<T, Refused>;

/// Its `application/problem+json`.
struct Refused {
    code: String,
    problem: Value,
}

impl Asking {
    pub fn new(relay: Relay, papers: Papers, version: String, tell: mpsc::WeakSender<Input>) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        Self { relay, papers, version: version.into(), tell, tasks, stop }
    }

    /// Whatever runs here ends, in the middle of what it does.
    pub fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
    }

    /// Until it has.
    pub async fn ended(&self) {
        self.tasks.wait().await;
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let stop = self.stop.clone();
        let work = async move {
            stop.run_until_cancelled_owned(work).await;
        };
        self.tasks.spawn(work).abort_handle()
    }

    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    pub fn prints(&self) -> bool {
        self.papers.on_paper()
    }

    pub fn tell(&self, event: Event, learnt: Learnt) {
        let own = self.clone();
        self.spawn(async move { own.says(event, learnt).await });
    }

    async fn says(&self, event: Event, learnt: Learnt) {
        self.hands_in(Input::Learnt(event, learnt)).await;
    }

    async fn hands_in(&self, input: Input) {
        if let Some(tell) = self.tell.upgrade() {
            let _ = tell.send(input).await; // the kiosk has ended
        }
    }

    /// Who the hub says this terminal is.
    pub fn own(&self) {
        let own = self.clone();
        self.spawn(async move {
            if let Some(Ok(this)) = own.once("GET", "/api/box-office/terminal", &(), None).await {
                own.hands_in(Input::Own(this)).await;
            }
        });
    }

    /// Whether the printer would print. Where there is none, the counter does.
    pub fn printer(&self) {
        let own = self.clone();
        self.spawn(async move {
            let Some(paper) = own.papers.state().await else { return }; // it prints
            let works = matches!(paper, PaperState::Ok | PaperState::Low | PaperState::Unknown);
            own.says(Event::Printer(works), Learnt::Nothing).await;
        });
    }

    pub fn hold(&self, at: Ref, wish: Wish, buyer_id: Option<Uuid>) {
        let Wish { event_id, seats, best } = wish;
        let body = TillHoldRequest { event_id, buyer_id, seats, best, fewer_ok: false, replace: true };
        let own = self.clone();
        self.spawn(async move {
            let answer: Told<TillHoldAnswer> = own.patiently("/api/box-office/holds", &body, true).await;
            let (event, learnt) = match answer {
                Ok(answer) => match answer.answer.hold.as_ref().map(|hold| hold.id) {
                    Some(hold) => (Event::Held { at, hold }, Learnt::Held(Box::new(answer))),
                    None => (Event::NotHeld { at }, Learnt::Nothing),
                },
                Err(refused) => (Event::NotHeld { at }, Learnt::Problem(refused.problem)),
            };
            own.says(event, learnt).await;
        });
    }

    /// What the held seats cost; an answer to somebody who is gone is nothing.
    pub fn price(&self, at: Ref, basket: Basket) {
        let own = self.clone();
        self.spawn(async move {
            let Basket { hold, buyer, tickets } = basket;
            let body = TillQuoteRequest { buyer_id: buyer, tickets, prices: Vec::new() };
            let target = format!("/api/box-office/holds/{hold}/quote");
            let answer: Told<OrderAnswer> = own.patiently(&target, &body, false).await;
            match answer {
                Ok(answer) => own.hands_in(Input::Also(at, order(answer.order))).await,
                Err(refused) if is_over(&refused.code) => own.says(Event::HoldOver { at }, Learnt::Nothing).await,
                Err(refused) => own.hands_in(Input::Also(at, Learnt::Problem(refused.problem))).await,
            }
        });
    }

    /// Until the hub has it; a refusal means that it is over.
    pub fn release(&self, hold: Uuid, buyer_id: Uuid) {
        let own = self.clone();
        self.spawn(async move {
            let target = format!("/api/box-office/holds/{hold}/release");
            let _: Told<Value> = own.patiently(&target, &TillReleaseRequest { buyer_id }, false).await;
        });
    }

    /// Starts the reader, and follows what becomes of it. `order`: the one that was quoted.
    pub fn pay(&self, at: Ref, basket: Basket, order: Option<Uuid>, reader: String) -> Payment {
        let (payment, wanted) = watch::channel(Wanted::default());
        let own = self.clone();
        self.spawn(async move { own.pays(at, basket, order, reader, wanted).await });
        Payment(payment)
    }

    async fn pays(
        &self,
        at: Ref,
        basket: Basket,
        quoted: Option<Uuid>,
        reader: String,
        mut wanted: watch::Receiver<Wanted>,
    ) {
        let Basket { hold, buyer, tickets } = basket;
        let body =
            TillCardRequest { hold_id: hold, buyer_id: buyer, tickets, prices: Vec::new(), reader, cash_minor: 0 };
        // Whether the first word came through is known by saying it again, under the same key. Where it has to stop
        // already, the reader waits for as long as two requests take.
        let started: Told<OrderAnswer> = self.patiently("/api/box-office/card-sales", &body, true).await;
        let id = match (started, quoted) {
            (Ok(answer), _) => answer.order.id,
            (Err(refused), Some(quoted))
                if matches!(&*refused.code, "attempt_live" | "hold_frozen" | "order_not_open") =>
            {
                quoted // something is under way: the order says what
            }
            (Err(refused), _) => {
                if is_over(&refused.code) {
                    self.says(Event::HoldOver { at }, Learnt::Nothing).await;
                }
                let why = if is_over(&refused.code) { Unpaid::Stopped } else { Unpaid::Reader };
                return self.says(Event::NotPaid { at, why }, Learnt::Problem(refused.problem)).await;
            }
        };
        self.says(Event::ReaderReady { at, order: id }, Learnt::Nothing).await;
        let (target, mut told_to_stop) = (format!("/api/box-office/card-sales/{id}"), None);
        loop {
            let stop = wanted.borrow_and_update().stop;
            let answer: Option<Told<OrderAnswer>> = if stop == told_to_stop {
                self.once("GET", &target, &(), None).await
            } else {
                let body = TillCardStopRequest { keep_if_paid: stop.unwrap_or(true) };
                let told = self.once("POST", &format!("{target}/stop"), &body, None).await;
                told_to_stop = stop.filter(|_| told.is_some());
                told
            };
            if let Some(Ok(answer)) = answer
                && self.learns(at, answer.order).await
            {
                return;
            }
            let _ = timeout(FOLLOW_EVERY, wanted.changed()).await;
            if wanted.has_changed().is_err() {
                sleep(FOLLOW_EVERY).await; // its customer is gone; it is followed all the same
            }
        }
    }

    /// What an order says about its payment; true once that is for certain, and for good.
    async fn learns(&self, at: Ref, sold: Order) -> bool {
        let (id, state) = (sold.id, sold.state);
        let phase = sold.attempt.as_ref().map(|attempt| attempt.phase);
        let not_paid = |why| Some(Event::NotPaid { at, why });
        let (event, ends) = match (state, phase) {
            // Sold. If the card can't be charged after all, that is told where the tickets would be ([`Self::print`]).
            (OrderState::Confirmed | OrderState::PaymentDue, _) => (Some(Event::Paid { at, order: id }), true),
            // Given up with its payment; whether the seats are still theirs is known when they are priced again.
            (OrderState::Cancelled, _) => (not_paid(Unpaid::Stopped), true),
            (_, Some(AttemptPhase::Declined)) => (not_paid(Unpaid::Declined), true),
            (_, Some(AttemptPhase::NotCharged)) => (not_paid(Unpaid::Stopped), true),
            (_, Some(AttemptPhase::Failed)) => (not_paid(Unpaid::Reader), true),
            (_, Some(AttemptPhase::AskingBank)) => (Some(Event::CardSeen { at }), false),
            _ => (None, false),
        };
        if let Some(event) = event {
            self.says(event, order(sold)).await;
        }
        ends
    }

    /// One job a ticket, once the card is charged: before that no ticket is valid. The machine waits for as long as it
    /// wants to.
    pub fn print(&self, at: Ref, id: Uuid, language: Language) {
        let own = self.clone();
        self.spawn(async move {
            own.says(Event::PrintBegan { at }, Learnt::Nothing).await;
            if !own.prints() {
                return own.says(Event::Printed { at }, Learnt::Nothing).await;
            }
            let sold = match timeout(CHARGED_WITHIN, own.charged(id)).await {
                Ok(sold) if sold.state == OrderState::Confirmed => sold,
                Ok(due) => return own.says(Event::NotPrinted { at }, order(due)).await,
                Err(_) => return own.says(Event::NotPrinted { at }, Learnt::Nothing).await,
            };
            let printed = own.papers.print(&own.relay, sold, language).await;
            let all = matches!(&printed, Ok(ends) if ends.iter().all(|one| one.end == End::Printed));
            if let Err(error) = &printed {
                tracing::error!(%error, order.id = %id, "tickets that were paid for are not printed");
            }
            own.says(if all { Event::Printed { at } } else { Event::NotPrinted { at } }, Learnt::Nothing).await;
        });
    }

    /// An order of which it is known whether its card could be charged.
    async fn charged(&self, id: Uuid) -> Order {
        loop {
            let pending = |sold: &Order| sold.tickets.iter().any(|ticket| ticket.state == TicketState::Pending);
            match self.relay.order(id).await {
                Ok(sold) if sold.state != OrderState::Confirmed || !pending(&sold) => return sold,
                _ => sleep(FOLLOW_EVERY).await,
            }
        }
    }

    /// Until the hub has it. An address that it refuses is nobody's.
    pub fn mail(&self, at: Ref, id: Uuid, to: Mail, language: Language) {
        let own = self.clone();
        self.spawn(async move {
            let body = MailTo { address: to.0, language: language.code().to_owned() };
            let told: Told<Value> = own.patiently(&format!("/api/box-office/orders/{id}/mail-to"), &body, true).await;
            match told {
                Ok(_) => own.says(Event::Mailed { at }, Learnt::Nothing).await,
                Err(refused) => own.hands_in(Input::Also(at, Learnt::Problem(refused.problem))).await,
            }
        });
    }

    /// Says how this machine is, and what staff are called for: at once, until it is heard, then each minute.
    pub fn report(&self, calls: Vec<Call>) -> AbortHandle {
        let own = self.clone();
        let reports = async move {
            loop {
                let health = own.health(&calls).await;
                let _: Told<Value> = own.patiently("/api/box-office/health", &health, false).await;
                sleep(HEALTH_EVERY).await;
            }
        };
        self.spawn(reports)
    }

    async fn health(&self, calls: &[Call]) -> TerminalHealth {
        let paper = self.papers.state().await.unwrap_or(PaperState::Unknown);
        let called = |call: &Call| {
            let which = call.code.clone().or(call.order.map(|id| id.to_string())).unwrap_or_default();
            format!("staff are called: {:?} {which}", call.case)
        };
        let detail = calls.iter().map(called).collect::<Vec<_>>().join("; ");
        TerminalHealth {
            version: self.version.to_string(),
            paper,
            reader: ReaderState::Unknown,
            detail: detail.chars().take(DETAIL_CHARS_MAX).collect(),
        }
    }

    /// Asks until there is a definite answer, always under the same key.
    async fn patiently<T: DeserializeOwned>(&self, target: &str, body: &impl Serialize, keyed: bool) -> Told<T> {
        let key = keyed.then(Uuid::new_v4);
        let mut tries = 0;
        loop {
            if let Some(told) = self.once("POST", target, body, key).await {
                return told;
            }
            tries += 1;
            sleep(pulse::wait(tries)).await;
        }
    }

    /// `None`: no answer, or none that is definite.
    async fn once<T: DeserializeOwned>(
        &self,
        method: &str,
        target: &str,
        body: &impl Serialize,
        key: Option<Uuid>,
    ) -> Option<Told<T>> {
        let body = Some(serde_json::to_value(body).ok()?).filter(|body| !body.is_null());
        let ask = Ask { method: method.into(), target: target.into(), body, key: key.map(|key| key.to_string()) };
        let Answer { status, body, .. } = self.relay.send(&ask).await.ok()?;
        if (200..300).contains(&status) {
            let body: &[u8] = if body.is_empty() { b"null" } else { &body };
            return serde_json::from_slice(body).ok().map(Ok);
        }
        if status >= 500 || status == 429 {
            return None;
        }
        let problem: Value = serde_json::from_slice(&body).ok()?;
        Some(Err(Refused { code: problem["code"].as_str()?.to_owned(), problem }))
    }
}

fn order(order: Order) -> Learnt {
    Learnt::Order(Box::new(order))
}

/// The seats are not this customer's any more.
fn is_over(code: &str) -> bool {
    matches!(code, "hold_ended" | "hold_unknown" | "too_late_to_pay" | "event_cancelled")
}
