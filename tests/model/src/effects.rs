//! What a worker writes down, and what follows from it: as `drive` and `transition` of the product do it.

use chrono::TimeDelta;
use fullhouse::payment::{
    machine::{self, AfterDecision, CallState, Key, Missing, RefundState, Said, Seen, State, Strays},
    provider::Op,
};

use super::{
    provider::{Answer, Refund, Shown, Status},
    steps::Payments,
    world::{Attempt, Call, DUE_TICKS, Heard, KEYS, Order, Request, Row, Seat, World, op_index, prepared},
};

impl Payments {
    /// As `One::send`, `look`, `look_for_refunds` and `tidy` end: the answer, and what follows from it.
    pub fn write_down(&self, world: &mut World, row: &Row, request: Request, heard: Heard) {
        match heard {
            Heard::Looked(shown) if row.state.is_decided() => self.tidy(world, row, shown),
            Heard::Looked(shown) => {
                let (seen, key) = self.judge(row, shown);
                let call = (key == Key::Next).then(|| next_call(world, row.at, row.state.op())).flatten();
                learn(world, row, shown);
                self.settle(world, row, seen, call);
            }
            Heard::Listed(Some(refund)) => self.settle_as(world, row, refund_seen(refund), Said::Look),
            Heard::Listed(None) => match (self.rules.missing)(&row.facts(self.rules.margin_ticks)) {
                Missing::Wait => self.settle(world, row, Seen::Doubt, None),
                Missing::GiveUp => self.give_up(world, row),
                Missing::AskAgain(key) => self.ask_again(world, row, key),
            },
            _ => self.hear(world, row, request, heard),
        }
    }

    /// As `One::give_up`.
    pub fn give_up(&self, world: &mut World, row: &Row) {
        if !row.sent_since {
            self.settle_as(world, row, Seen::RefundFailed, Said::Refusal);
        }
    }

    /// As `One::ask_again`.
    fn ask_again(&self, world: &mut World, row: &Row, key: Key) {
        if row.sent_since || (row.stale && self.rules.version_compare) {
            return;
        }
        if key == Key::Next {
            world.attempt(row.at).calls[op_index(Op::Refund)] = next_call(world, row.at, Op::Refund);
            supersede(world, row.at);
            return;
        }
        let read = row.call.expect("a refund that was asked for");
        if let Some(call) = latest(world, row.at, Op::Refund, read.n) {
            (call.state, call.old) = (prepared(), false);
        }
    }

    fn hear(&self, world: &mut World, row: &Row, request: Request, heard: Heard) {
        let op = request.op;
        let never_sent = row.call.is_some_and(|c| c.sends == 0);
        let (seen, state) = match heard {
            Heard::Answered { answer: Answer::Intent(shown), .. } => {
                learn(world, row, shown);
                let seen = if op == Op::Create { Seen::Created } else { self.judge(row, shown).0 };
                (seen, CallState::Answered)
            }
            Heard::Answered { answer: Answer::Refund(refund), .. } => (refund_seen(refund), CallState::Answered),
            Heard::Answered { answer: Answer::Declined, .. } => (Seen::Declined, CallState::Answered),
            Heard::Answered { answer: Answer::Gone, .. } => (Seen::Doubt, CallState::Answered),
            Heard::Answered { answer: Answer::Refused, .. } | Heard::Refused => {
                let seen = match op {
                    Op::Create | Op::Refund => Seen::Refused,
                    _ => Seen::Doubt,
                };
                (seen, CallState::Answered)
            }
            Heard::NotServed => (Seen::NotServed, CallState::Unknown),
            Heard::NotSent if never_sent => (Seen::Again, CallState::Prepared),
            _ => (Seen::Doubt, CallState::Unknown),
        };
        if let Some(call) = latest(world, row.at, op, request.n) {
            call.state = state as u8;
            call.replayed = matches!(heard, Heard::Answered { replayed: true, .. });
            call.gone = matches!(heard, Heard::Answered { answer: Answer::Gone, .. });
            call.http = match heard {
                Heard::Answered { answer: Answer::Intent(_) | Answer::Refund(_), .. } => Some(200),
                Heard::Answered { answer: Answer::Declined, .. } => Some(402),
                Heard::Answered { answer: Answer::Refused | Answer::Gone, .. } | Heard::Refused => Some(400),
                Heard::Answered { answer: Answer::Broken, .. } | Heard::Broken => Some(500),
                Heard::Busy => Some(409),
                Heard::NotServed => Some(401),
                _ => call.http,
            };
            if state == CallState::Prepared {
                // Another worker may have sent it meanwhile.
                if call.sends > 1 {
                    call.state = CallState::Sent as u8;
                }
                call.sends -= 1;
            }
        }
        self.settle(world, row, seen, None);
    }

    fn judge(&self, row: &Row, shown: Shown) -> (Seen, Key) {
        let right = shown.status == Status::Reserved && !shown.wrong_amount;
        (self.rules.judge)(&row.facts(self.rules.margin_ticks), &shown.wire(), shown.error, right)
    }

    /// As `transition::settle`.
    pub fn settle(&self, world: &mut World, row: &Row, seen: Seen, call: Option<Call>) {
        self.settle_all(world, row, seen, call, Said::Answer);
    }

    /// The same; somebody else than the answer says what became of the refund.
    fn settle_as(&self, world: &mut World, row: &Row, seen: Seen, said: Said) {
        self.settle_all(world, row, seen, None, said);
    }

    fn settle_all(&self, world: &mut World, row: &Row, seen: Seen, call: Option<Call>, said: Said) {
        if row.stale && self.rules.version_compare {
            return;
        }
        if let Some(to) = (self.rules.next)(row.state, seen) {
            return self.apply(world, row, seen, to, call, said);
        }
        if seen == Seen::Refused && row.refund_op() {
            return; // what it means is planned
        }
        if row.has_stray_refund() {
            if let Some(state) = RefundState::of(seen) {
                self.stray_refund(world, row, state, said);
            }
            return;
        }
        let tidied_up = row.state.is_decided() && seen == Seen::Cancelled;
        let attempt = world.attempt(row.at);
        attempt.scheduled = !tidied_up;
    }

    /// A refund with a life of its own; when that is over, so is the work.
    fn stray_refund(&self, world: &mut World, row: &Row, state: RefundState, said: Said) {
        self.learn_of_refund(world, row, state, said);
        if self.rules.refund_news_supersede {
            supersede(world, row.at);
        }
        let attempt = world.attempt(row.at);
        let under_way = matches!(attempt.refund, Some(RefundState::Pending | RefundState::Accepted));
        let again = attempt.refund == Some(RefundState::Failed)
            && attempt.state.is_to_be_tidied()
            && matches!(self.after_decision(attempt, TimeDelta::zero()), AfterDecision::Wait(_));
        attempt.scheduled = under_way || attempt.news || again;
    }

    /// As `record::update_refund`.
    fn learn_of_refund(&self, world: &mut World, row: &Row, state: RefundState, said: Said) {
        let attempt = world.attempt(row.at);
        let Some(is) = attempt.refund else { return };
        if !self.rules.news_stay || (said != Said::Answer && !row.news_since) {
            attempt.news = false;
        }
        if attempt.by_hand || !(self.rules.counts)(is, state, said) {
            return;
        }
        attempt.refunds_failed += u8::from(state == RefundState::Failed && is != RefundState::Failed);
        attempt.refund = Some(state);
    }

    fn after_decision(&self, attempt: &Attempt, failed_for: TimeDelta) -> AfterDecision {
        let under_way = attempt.refund.is_some_and(|r| r != RefundState::Failed);
        let seen_to = under_way || (attempt.by_hand && self.rules.by_hand_is_seen);
        machine::after_decision(&Strays { failed: i64::from(attempt.refunds_failed), seen_to, failed_for })
    }

    /// As `transition::apply`, with its consequences.
    fn apply(&self, world: &mut World, row: &Row, seen: Seen, to: State, call: Option<Call>, said: Said) {
        let at = row.at;
        let known = world.attempt(at).has_intent;
        let rest = matches!(to, State::Captured | State::Refunded | State::RefundFailed)
            || (to == State::Voided && (!known || (seen == Seen::Cancelled && row.state.op() == Op::Cancel)));
        let attempt = world.attempt(at);
        attempt.state = to;
        attempt.scheduled = !rest;
        match call {
            Some(call) => attempt.calls[op_index(to.op())] = Some(call),
            None if matches!(to, State::Confirming | State::CapturePending | State::VoidPending) => {
                let own = row.call.filter(|_| to.op() == row.state.op());
                if let Some(call) = own.and_then(|call| latest(world, at, to.op(), call.n)) {
                    call.state = prepared();
                }
            }
            None => {}
        }
        supersede(world, at);
        if seen == Seen::WrongAmount {
            world.gate_closed = true;
        }
        match to {
            State::Declined | State::Voided => give_back(world, at),
            State::RefundPending => {
                give_back(world, at);
                world.attempt(at).refund = Some(RefundState::Pending);
            }
            State::RefundAccepted | State::Refunded | State::RefundFailed => {
                if let Some(state) = RefundState::of(seen) {
                    self.learn_of_refund(world, row, state, said);
                }
                world.attempt(at).scheduled |= world.attempt(at).news;
            }
            State::Captured if row.state == State::CaptureFailed && world.order == Order::Due => {
                world.order = Order::Confirmed;
            }
            State::CaptureFailed if world.order == Order::Confirmed => {
                (world.order, world.due_left) = (Order::Due, DUE_TICKS);
            }
            _ => {}
        }
    }

    /// As `One::tidy`: the attempt is decided, and this is what the provider has of it.
    fn tidy(&self, world: &mut World, row: &Row, shown: Shown) {
        let pays =
            |a: &Attempt| !matches!(a.state, State::Declined | State::Voided | State::Refunded | State::CaptureFailed);
        let others_pay =
            world.attempts.iter().enumerate().any(|(n, a)| n != usize::from(row.at) && a.as_ref().is_some_and(pays));
        let goes_back = world.attempt(row.at).refund.is_some_and(|r| r != RefundState::Failed);
        let heals = row.state == State::CaptureFailed
            && world.order == Order::Due
            && !others_pay
            && !(goes_back && self.rules.heals_what_is_kept);
        if shown.status == Status::Taken && heals {
            return self.settle(world, row, Seen::Captured, None);
        }
        if row.stale && self.rules.version_compare {
            return;
        }
        let cancels = world.attempt(row.at).calls[op_index(Op::Cancel)].map_or(0, |call| call.n + 1);
        let cancel = next_call(world, row.at, Op::Cancel);
        let after = self.after_decision(world.attempt(row.at), TimeDelta::days(1));
        let attempt = world.attempt(row.at);
        match shown.status {
            Status::Taken if after == AfterDecision::GiveBack => {
                attempt.refund = Some(RefundState::Pending);
                attempt.refund_first = attempt.calls[op_index(Op::Refund)].map_or(attempt.refund_first, |c| c.n + 1);
                attempt.calls[op_index(Op::Refund)] = None;
                (attempt.scheduled, attempt.news) = (true, false);
                if self.rules.refunds_supersede {
                    supersede(world, row.at);
                }
            }
            // News of a refund that came since the row was read are seen to next (`pokes`).
            Status::Taken | Status::Cancelled => attempt.scheduled = attempt.news,
            Status::Processing | Status::None => attempt.scheduled = true,
            _ if cancels < self.rules.tidies_at_most => {
                attempt.calls[op_index(Op::Cancel)] = cancel;
                attempt.scheduled = true;
                if self.rules.tidying_supersedes {
                    supersede(world, row.at);
                }
            }
            _ => attempt.scheduled = false,
        }
    }
}

/// The hold is its buyer's again; an order that nothing can come of is closed.
fn give_back(world: &mut World, at: u8) {
    if world.frozen_by == Some(at) {
        world.frozen_by = None;
    }
    if world.order == Order::Open && (world.cancel_requested || !world.hold_live || world.left <= 0) {
        world.order = Order::Cancelled;
    }
}

/// The version is another one: whoever read the row before is late.
pub fn supersede(world: &mut World, at: u8) {
    for worker in &mut world.workers {
        if let Some(other) = worker.row_mut().filter(|other| other.at == at) {
            other.stale = true;
        }
    }
}

pub fn sell(world: &mut World) {
    if world.seat == Seat::Other {
        world.wrong = Some("a seat was sold twice");
    }
    (world.seat, world.hold_live, world.frozen_by) = (Seat::Sold, false, None);
    (world.order, world.was_sold) = (Order::Confirmed, true);
}

/// There is news of the attempt's refund, once the provider has told us of it: a worker looks.
pub fn tell_of_refund(world: &mut World, at: u8) {
    let Some(attempt) = world.attempts[usize::from(at)].as_mut() else { return };
    let intent = &world.intents[usize::from(at)];
    if attempt.by_hand || attempt.refund.is_none() || intent.refund.is_none() || intent.refund_n < attempt.refund_first
    {
        return;
    }
    (attempt.news, attempt.scheduled) = (true, true);
    for worker in &mut world.workers {
        if let Some(row) = worker.row_mut().filter(|row| row.at == at) {
            row.news_since = true;
        }
    }
}

/// What an intent's answer brings along, of a row that is still the same.
fn learn(world: &mut World, row: &Row, shown: Shown) {
    if row.stale {
        return;
    }
    let attempt = world.attempt(row.at);
    attempt.has_intent = true;
    if shown.status == Status::Reserved {
        attempt.authorised = Some(!shown.wrong_amount);
    }
}

pub fn poke(world: &mut World, at: u8) {
    let done = |attempt: &Attempt| matches!(attempt.state, State::Captured | State::Refunded);
    if let Some(attempt) = world.attempts[usize::from(at)].as_mut().filter(|attempt| !done(attempt)) {
        attempt.scheduled = true;
    }
}

/// The call of this number, if it is the latest of its kind: an older one decides nothing any more.
pub fn latest(world: &mut World, at: u8, op: Op, n: u8) -> Option<&mut Call> {
    world.attempt(at).calls[op_index(op)].as_mut().filter(|call| call.n == n)
}

/// A call under a key that was never used.
pub fn next_call(world: &World, at: u8, op: Op) -> Option<Call> {
    let before = world.attempts[usize::from(at)].and_then(|a| a.calls[op_index(op)]);
    let first = world.attempts[usize::from(at)].filter(|_| op == Op::Refund).map_or(0, |a| a.refund_first);
    let n = before.map_or(first, |call| call.n + 1);
    assert!(usize::from(n) < KEYS, "more keys than the model has room for: {op:?}");
    Some(Call::new(n))
}

fn refund_seen(refund: Refund) -> Seen {
    match refund {
        Refund::Pending => Seen::RefundAccepted,
        Refund::Done => Seen::RefundDone,
        Refund::Failed => Seen::RefundFailed,
    }
}
