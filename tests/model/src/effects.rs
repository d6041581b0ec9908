//! What a worker writes down, and what follows from it: as `drive` and `transition` of the product do it.

use fullhouse::payment::{
    machine::{CallState, Key, Seen, State},
    provider::Op,
};

use super::{
    provider::{Answer, Refund, Shown, Status},
    steps::Payments,
    world::{Attempt, Call, DUE_TICKS, Heard, KEYS, Order, RefundRow, Request, Row, Seat, World, op_index, prepared},
};

/// `TIDY_CALLS_MAX` of the product.
const TIDY_CALLS_MAX: u8 = 3;

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
            Heard::Listed(Some(refund)) => self.settle(world, row, refund_seen(refund), None),
            Heard::Listed(None) => {
                self.settle(world, row, Seen::Doubt, None);
                if !row.refund_asked_for {
                    let read = row.call.expect("a refund that was asked for");
                    if let Some(call) = latest(world, row.at, Op::Refund, read.n).filter(|_| !row.sent_since) {
                        (call.state, call.old) = (prepared(), false);
                    }
                }
            }
            _ => self.hear(world, row, request, heard),
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
            Heard::Answered { answer: Answer::Refused, .. } | Heard::Refused => {
                let seen = match op {
                    Op::Create => Seen::Refused,
                    Op::Refund => Seen::RefundFailed,
                    _ => Seen::Doubt,
                };
                (seen, CallState::Answered)
            }
            Heard::NotSent if never_sent => (Seen::Again, CallState::Prepared),
            _ => (Seen::Doubt, CallState::Unknown),
        };
        if let Some(call) = latest(world, row.at, op, request.n) {
            call.state = state as u8;
            call.replayed = matches!(heard, Heard::Answered { replayed: true, .. });
            call.http = match heard {
                Heard::Answered { answer: Answer::Intent(_) | Answer::Refund(_), .. } => Some(200),
                Heard::Answered { answer: Answer::Declined, .. } => Some(402),
                Heard::Answered { answer: Answer::Refused, .. } | Heard::Refused => Some(400),
                Heard::Answered { answer: Answer::Broken, .. } | Heard::Broken => Some(500),
                Heard::Busy => Some(409),
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
        if row.stale && self.rules.version_compare {
            return;
        }
        if let Some(to) = (self.rules.next)(row.state, seen) {
            return self.apply(world, row, seen, to, call);
        }
        let attempt = world.attempt(row.at);
        if row.has_stray_refund() {
            // A refund with a life of its own; when that is over, so is the work.
            attempt.refund = match seen {
                Seen::RefundAccepted => Some(RefundRow::Accepted),
                Seen::RefundDone => Some(RefundRow::Done),
                Seen::RefundFailed => Some(RefundRow::Failed),
                _ => attempt.refund,
            };
            attempt.scheduled = !matches!(attempt.refund, Some(RefundRow::Done | RefundRow::Failed));
            return;
        }
        let tidied_up = row.state.is_decided() && seen == Seen::Cancelled;
        attempt.scheduled = !tidied_up;
    }

    /// As `transition::apply`, with its consequences.
    fn apply(&self, world: &mut World, row: &Row, seen: Seen, to: State, call: Option<Call>) {
        let at = row.at;
        let known = world.attempt(at).has_intent;
        let rest = matches!(to, State::Captured | State::Refunded | State::RefundFailed)
            || (to == State::Voided && (seen == Seen::Cancelled || !known));
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
                world.attempt(at).refund = Some(RefundRow::Pending);
            }
            State::RefundAccepted => world.attempt(at).refund = Some(RefundRow::Accepted),
            State::Refunded => world.attempt(at).refund = Some(RefundRow::Done),
            State::RefundFailed => world.attempt(at).refund = Some(RefundRow::Failed),
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
        let goes_back = world.attempt(row.at).refund.is_some_and(|r| r != RefundRow::Failed);
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
        let attempt = world.attempt(row.at);
        let has_refund = attempt.refund.is_some_and(|r| r != RefundRow::Failed);
        match shown.status {
            Status::Taken if !has_refund => {
                attempt.refund = Some(RefundRow::Pending);
                attempt.calls[op_index(Op::Refund)] = None;
                attempt.scheduled = true;
                if self.rules.refunds_supersede {
                    supersede(world, row.at);
                }
            }
            Status::Taken | Status::Cancelled => attempt.scheduled = false,
            Status::Processing | Status::None => attempt.scheduled = true,
            _ if cancels < TIDY_CALLS_MAX => {
                attempt.calls[op_index(Op::Cancel)] = cancel;
                attempt.scheduled = true;
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
fn supersede(world: &mut World, at: u8) {
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
    let n = before.map_or(0, |call| call.n + 1);
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
