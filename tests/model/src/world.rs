//! The world that is searched: a seat, its hold and order, attempts, the provider, the wire, workers of two hubs.
//!
//! One seat stands for all seats of an order: they change hands in one transaction. Time is counted in
//! [`TICK`]s, relative to now, and stops mattering at a bound, so that the world is finite although
//! faults may happen any number of times.

use chrono::{DateTime, TimeDelta};
use fullhouse::payment::{
    machine::{CallFacts, CallState, Facts, KEY_LIFE, RefundState, State},
    provider::Op,
};

use super::{
    provider::{Answer, Intent, Refund, Shown, Status},
    rules::{Rules, Scope},
    search::fingerprint,
};

/// Half the margin, half the quiet.
pub const TICK: TimeDelta = TimeDelta::seconds(30);
/// A hold of two minutes: one before the margin begins and one after.
pub const HOLD_TICKS: i8 = 4;
/// Of an order that is due: it may be paid for once more, at once.
pub const DUE_TICKS: i8 = 2;
/// Of a hold, that a confirmation needs (PAYMENTS: 60 s).
pub const MARGIN_TICKS: i8 = 2;
/// A call that is so old is quiet, and its request nowhere on the wire any more.
pub const QUIET_TICKS: u8 = 2;
pub const KEYS: usize = 6;
const OPS: [Op; 5] = [Op::Create, Op::Confirm, Op::Capture, Op::Cancel, Op::Refund];

pub fn op_index(op: Op) -> usize {
    OPS.iter().position(|o| *o == op).expect("an operation that changes something")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seat {
    Free,
    /// By our order's hold.
    Held,
    /// To our order.
    Sold,
    /// Somebody else's for good.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    Open,
    Confirmed,
    Due,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    pub n: u8,
    pub state: u8,
    pub http: Option<u16>,
    pub replayed: bool,
    /// It said that what was reserved is gone for good.
    pub gone: bool,
    /// Up to 2, and as many as may be taken back: more makes no difference.
    pub sends: u8,
    /// Ticks since it was sent, up to the quiet.
    pub sent: Option<u8>,
    /// Written down so long ago that its key may be forgotten.
    pub old: bool,
}

impl Call {
    pub fn new(n: u8) -> Self {
        Self { n, state: prepared(), http: None, replayed: false, gone: false, sends: 0, sent: None, old: false }
    }

    /// Without what decides nothing. Sent and unknown are the same doubt.
    fn normal(mut self, op: Op, waited_for: bool) -> Self {
        self.old &= op == Op::Refund && self.sends > 0;
        if self.state == CallState::Unknown as u8 {
            self.state = CallState::Sent as u8;
        }
        let failed = matches!(self.http, Some(400 | 500));
        self.http = self.http.filter(|_| failed);
        self.gone &= self.http == Some(400);
        self.replayed &= self.http == Some(500) || (self.http == Some(400) && op == Op::Capture);
        self.sent = self.sent.filter(|_| failed || waited_for);
        self
    }
}

pub fn prepared() -> u8 {
    CallState::Prepared as u8
}

fn call_state(state: u8) -> CallState {
    [CallState::Prepared, CallState::Sent, CallState::Answered, CallState::Unknown]
        .into_iter()
        .find(|s| *s as u8 == state)
        .expect("a state of a call")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub state: State,
    /// Pays again for an order that is due: there is no hold.
    pub due: bool,
    pub has_intent: bool,
    /// What was authorised, if that is known: the right amount or not.
    pub authorised: Option<bool>,
    /// `next_run_at` is set. When makes no difference here: a webhook may always bring it forward.
    pub scheduled: bool,
    /// The latest of each kind.
    pub calls: [Option<Call>; 5],
    /// The latest: while one is on its way there is no other.
    pub refund: Option<RefundState>,
    /// The number of its first key.
    pub refund_first: u8,
    /// So many of them have failed.
    pub refunds_failed: u8,
    /// There is news of it (`look_at`).
    pub news: bool,
    /// Somebody has handed the money over, or sent it by the bank.
    pub by_hand: bool,
}

impl Attempt {
    /// Written down, and nothing was done yet.
    pub fn new(due: bool) -> Self {
        Self {
            state: State::New,
            due,
            has_intent: false,
            authorised: None,
            scheduled: true,
            calls: [None; 5],
            refund: None,
            refund_first: 0,
            refunds_failed: 0,
            news: false,
            by_hand: false,
        }
    }
}

/// What a worker read before it acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    pub at: u8,
    pub state: State,
    /// Ticks of the hold: how many makes no difference beyond whether it is too late.
    pub left: i8,
    pub abandoned: bool,
    pub has_intent: bool,
    pub authorised: Option<bool>,
    pub call: Option<Call>,
    pub refund_under_way: bool,
    /// The provider has it.
    pub refund_asked_for: bool,
    /// The version has changed since.
    pub stale: bool,
    /// Its call was sent since, by another worker.
    pub sent_since: bool,
    /// There was news of its refund since.
    pub news_since: bool,
}

impl Row {
    pub fn has_stray_refund(&self) -> bool {
        self.refund_under_way && (self.state.is_decided() || self.state == State::RefundFailed)
    }

    /// The call in question is one for a refund.
    pub fn refund_op(&self) -> bool {
        self.has_stray_refund() || self.state.op() == Op::Refund
    }

    /// Which call is its own.
    pub fn op(&self) -> Op {
        if self.refund_op() { Op::Refund } else { self.state.op() }
    }

    pub fn facts(&self, margin_ticks: i8) -> Facts {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        Facts {
            state: self.state,
            now,
            hold_expires_at: now + TICK * i32::from(self.left),
            margin: TICK * i32::from(margin_ticks),
            abandoned: self.abandoned,
            has_intent: self.has_intent,
            call: self.call.map(|call| CallFacts {
                state: call_state(call.state),
                http: call.http,
                replayed: call.replayed,
                gone: call.gone,
                sends: i32::from(call.sends),
                created_at: now - if call.old { KEY_LIFE } else { TimeDelta::zero() },
                sent_at: call.sent.map(|ticks| now - TICK * i32::from(ticks)),
            }),
            stray_refund: self.has_stray_refund(),
            reader: None,
            refund_asked_for: self.refund_asked_for,
        }
    }
}

/// A request, on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    pub at: u8,
    pub op: Op,
    pub n: u8,
    /// In ticks.
    pub age: u8,
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Heard {
    NotSent,
    Busy,
    /// 500 that nobody kept.
    Broken,
    /// 400 that nobody kept.
    Refused,
    /// 401: nobody looked at what was asked for.
    NotServed,
    Answered {
        answer: Answer,
        replayed: bool,
    },
    Looked(Shown),
    Listed(Option<Refund>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Worker {
    Idle,
    /// Has read the row, and is about to send its call, or to write down what follows from the row alone.
    Ready(Row),
    Waiting(Row, Request),
    Heard(Row, Request, Heard),
    /// Has found that it may sell, outside of the transaction (only where a rule is broken).
    MaySell(Row),
}

impl Worker {
    pub fn row_mut(&mut self) -> Option<&mut Row> {
        match self {
            Worker::Idle => None,
            Worker::Ready(row) | Worker::Waiting(row, _) | Worker::Heard(row, ..) | Worker::MaySell(row) => Some(row),
        }
    }
}

/// First answers under their keys, a byte each: they are most of a world, and are compared millions of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kept([u8; 2 * 5 * KEYS]);

impl Default for Kept {
    fn default() -> Self {
        Self([0; 2 * 5 * KEYS])
    }
}

impl Kept {
    pub fn get(&self, at: u8, op: usize, n: u8) -> Option<Answer> {
        Answer::from_byte(self.0[place(at, op, n)])
    }

    pub fn set(&mut self, at: u8, op: usize, n: u8, answer: Option<Answer>) {
        self.0[place(at, op, n)] = answer.map_or(0, Answer::to_byte);
    }
}

fn place(at: u8, op: usize, n: u8) -> usize {
    (usize::from(at) * 5 + op) * KEYS + usize::from(n)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub seat: Seat,
    /// `hold.state` is live.
    pub hold_live: bool,
    /// Ticks until the hold ends; 0 and less: it has ended.
    pub left: i8,
    pub frozen_by: Option<u8>,
    pub order: Order,
    /// The order has had its seat at some time.
    pub was_sold: bool,
    pub cancel_requested: bool,
    /// Ticks until an order that is due is given up.
    pub due_left: i8,
    pub gate_closed: bool,
    pub attempts: [Option<Attempt>; 2],
    pub intents: [Intent; 2],
    /// First answers, by attempt, operation and number of the key.
    pub kept: Kept,
    pub workers: [Worker; 2],
    /// Requests that nobody waits for any more.
    pub adrift: Option<Request>,
    pub failures_left: u8,
    pub foreign_captures_left: u8,
    /// Something that must never be done was done.
    pub wrong: Option<&'static str>,
}

impl World {
    pub fn held(scope: &Scope) -> Self {
        Self {
            seat: Seat::Held,
            hold_live: true,
            left: HOLD_TICKS,
            frozen_by: None,
            order: Order::Open,
            was_sold: false,
            cancel_requested: false,
            due_left: 0,
            gate_closed: false,
            attempts: [None; 2],
            intents: [Intent::NONE; 2],
            kept: Kept::default(),
            workers: [Worker::Idle; 2],
            adrift: None,
            failures_left: scope.failures,
            foreign_captures_left: scope.foreign_captures,
            wrong: None,
        }
    }

    /// The hold is over, and the bank has paid all the same.
    pub fn to_give_back(self) -> Self {
        self.taken(State::RefundPending, Some(RefundState::Pending))
    }

    /// The capture had failed and the order was given up, when the money was taken after all.
    pub fn taken_late(self) -> Self {
        self.taken(State::CaptureFailed, None)
    }

    /// Money without an order.
    fn taken(self, state: State, refund: Option<RefundState>) -> Self {
        let attempt = Attempt { state, has_intent: true, refund, ..Attempt::new(false) };
        Self {
            seat: Seat::Free,
            hold_live: false,
            left: 0,
            order: Order::Cancelled,
            attempts: [Some(attempt), None],
            intents: [Intent { status: Status::Taken, ..Intent::NONE }, Intent::NONE],
            ..self
        }
    }

    pub fn attempt(&mut self, at: u8) -> &mut Attempt {
        self.attempts[usize::from(at)].as_mut().expect("an attempt that was begun")
    }

    pub fn read(&self, at: u8) -> Row {
        let attempt = self.attempts[usize::from(at)].expect("an attempt that was begun");
        let mut row = Row {
            at,
            state: attempt.state,
            left: if attempt.due { self.due_left } else { self.left },
            abandoned: self.cancel_requested,
            has_intent: attempt.has_intent,
            authorised: attempt.authorised,
            call: None,
            refund_under_way: attempt.news
                || matches!(attempt.refund, Some(RefundState::Pending | RefundState::Accepted)),
            refund_asked_for: attempt.refund.is_some_and(|r| r != RefundState::Pending),
            stale: false,
            sent_since: false,
            news_since: false,
        };
        row.call = attempt.calls[op_index(row.op())];
        row
    }

    pub fn live_attempts(&self) -> usize {
        self.attempts.iter().flatten().filter(|a| !a.state.is_decided()).count()
    }

    /// Nobody is at work, nothing is on its way, and nothing is scheduled.
    pub fn is_quiet(&self) -> bool {
        self.workers == [Worker::Idle; 2]
            && self.adrift.is_none()
            && self.attempts.iter().flatten().all(|a| !a.scheduled)
    }

    /// Worlds that nothing can tell apart become one.
    pub fn normal(mut self, attempts_max: u8, rules: &Rules) -> Self {
        self.forget_adrift();
        for at in 0..2_u8 {
            if rules.version_compare {
                self.forget_what_is_over(at);
            }
            self.forget_calls(at);
            let intent = &mut self.intents[usize::from(at)];
            let over = matches!(intent.status, Status::Reserved | Status::Taken | Status::Cancelled);
            intent.authenticated &= !over;
            intent.error &= intent.status == Status::NoCard;
            intent.wrong_amount &= intent.status == Status::Reserved;
        }
        let begun = self.attempts.iter().flatten().count();
        self.gate_closed &= begun < usize::from(attempts_max);
        if self.order != Order::Due {
            self.due_left = 0;
        }
        let needs_hold = |a: &Attempt| !a.due && matches!(a.state.op(), Op::Create | Op::Confirm);
        let may_pay = self.order == Order::Open && begun < usize::from(attempts_max);
        if !may_pay && !self.attempts.iter().flatten().any(needs_hold) {
            self.left = 0; // how long it would have lasted makes no difference any more
        }
        self.forget_workers(rules);
        // It makes no difference which hub is called the first.
        if fingerprint(&self.workers[0]) > fingerprint(&self.workers[1]) {
            self.workers.swap(0, 1);
        }
        self
    }

    /// A delayed request that can do nothing any more.
    fn forget_adrift(&mut self) {
        let Some(Request { at, op, n, .. }) = self.adrift else { return };
        let kept = self.kept.get(at, op_index(op), n).is_some();
        let status = self.intents[usize::from(at)].status;
        let vain = match op {
            Op::Create => self.attempts[usize::from(at)].is_none_or(|a| a.state != State::New),
            Op::Confirm => matches!(status, Status::Reserved | Status::Taken | Status::Cancelled),
            Op::Capture | Op::Cancel => matches!(status, Status::Taken | Status::Cancelled),
            _ => false,
        };
        if kept || vain {
            self.adrift = None;
        }
    }

    /// A decided attempt whose intent is cancelled stays as it is, whoever looks at it or sends for it what was written
    /// down before: only its own calls would change. A worker that is at it may as well do something else.
    fn forget_what_is_over(&mut self, at: u8) {
        let Some(attempt) = &mut self.attempts[usize::from(at)] else { return };
        let over = attempt.state.is_to_be_tidied()
            && attempt.refund.is_none()
            && self.intents[usize::from(at)].status == Status::Cancelled;
        if !over {
            return;
        }
        attempt.calls = [None; 5];
        attempt.scheduled = false;
        for worker in &mut self.workers {
            if worker.row_mut().is_some_and(|row| row.at == at) {
                *worker = Worker::Idle;
            }
        }
        self.adrift = self.adrift.filter(|request| request.at != at);
    }

    /// Calls that are not looked at any more, and answers that nobody can ask for.
    fn forget_calls(&mut self, at: u8) {
        let Some(attempt) = &mut self.attempts[usize::from(at)] else { return };
        let state = attempt.state;
        if state != State::Authorised {
            attempt.authorised = None;
        }
        for (index, op) in OPS.iter().enumerate() {
            let past = match op {
                Op::Create => state != State::New,
                Op::Confirm => state.op() != Op::Confirm && state != State::New,
                Op::Capture => state.is_decided(),
                _ => false,
            };
            let asked = |r: &Request| (r.at, r.op, r.n);
            let waited_for = |n: u8| {
                self.workers.iter().any(|w| match w {
                    Worker::Waiting(_, request) | Worker::Heard(_, request, _) => asked(request) == (at, *op, n),
                    Worker::Ready(row) => row.at == at && row.op() == *op && row.call.is_some_and(|c| c.n == n),
                    _ => false,
                })
            };
            // Whoever has never sent it takes its sending back, should it turn out not to have left.
            let taken_back = |n: u8| {
                let may = |w: &&Worker| match w {
                    Worker::Heard(row, request, Heard::NotSent) => {
                        asked(request) == (at, *op, n) && row.call.is_some_and(|c| c.sends == 0)
                    }
                    Worker::Ready(row) => {
                        row.at == at && row.op() == *op && row.call.is_some_and(|c| c.n == n && c.sends == 0)
                    }
                    _ => false,
                };
                self.workers.iter().filter(may).count() as u8
            };
            let call = &mut attempt.calls[index];
            *call = call.filter(|_| !past).map(|call| {
                let sends = call.sends.min(2 + taken_back(call.n));
                Call { sends, ..call.normal(*op, waited_for(call.n)) }
            });
            for n in 0..KEYS as u8 {
                let adrift = self.adrift.as_ref().is_some_and(|r| asked(r) == (at, *op, n));
                if call.is_none_or(|c| c.n != n) && !adrift && !waited_for(n) {
                    self.kept.set(at, index, n, None);
                }
            }
        }
    }

    /// What a worker read matters only as far as it decides.
    fn forget_workers(&mut self, rules: &Rules) {
        let margin = rules.margin_ticks;
        for worker in &mut self.workers {
            if let Some(row) = worker.row_mut() {
                row.left = row.left.clamp(margin - 1, margin);
                row.sent_since &= row.op() == Op::Refund; // only there it is asked about
                row.news_since &= row.op() == Op::Refund;
                let op = row.op();
                row.call = row.call.map(|call| Call { sends: call.sends.min(2), ..call.normal(op, false) });
            }
            let (at, n, op, stale) = match worker {
                Worker::Waiting(row, r) | Worker::Heard(row, r, _) => (row.at, r.n, r.op, row.stale),
                Worker::Ready(row) if row.stale && rules.version_compare && rules.calls_name_their_version => {
                    *worker = Worker::Idle; // whatever it writes names its version
                    continue;
                }
                _ => continue,
            };
            if !stale || !rules.version_compare {
                continue;
            }
            // Only the answer will be written down, if its call is still of interest.
            let call = self.attempts[usize::from(at)].filter(|_| !op.is_read()).and_then(|a| a.calls[op_index(op)]);
            let of_interest = call.is_some_and(|call| call.n == n);
            match worker {
                Worker::Heard(..) if !of_interest => *worker = Worker::Idle,
                _ => {
                    if let Some(row) = worker.row_mut() {
                        *row =
                            Row { at, call: row.call.map(|c| Call { sends: c.sends.min(1), ..Call::new(0) }), ..STALE };
                    }
                }
            }
        }
    }
}

const STALE: Row = Row {
    at: 0,
    state: State::New,
    left: 0,
    abandoned: false,
    has_intent: false,
    authorised: None,
    call: None,
    refund_under_way: false,
    refund_asked_for: false,
    stale: true,
    sent_since: false,
    news_since: false,
};
