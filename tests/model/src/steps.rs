//! What may happen next in a world, and what follows from it.
//!
//! What is decided is decided by the product: `machine::plan`, `machine::judge` and `machine::next` are
//! called, and only what they are told and what their decisions write down is modelled. A step of a
//! worker that is one transaction there is one step here; each call to the provider is two or three, and
//! a worker may die between them.

use fullhouse::payment::{
    machine::{self, CallState, Facts, Key, Missing, RefundState, Said, Seen, State, Step},
    provider::{IntentStatus, Op},
};

use super::{
    effects::{latest, next_call, poke, sell, supersede, tell_of_refund},
    provider::{Fate, Intent, Refund, Status},
    search::{Choice, Model},
    world::{
        Attempt, HOLD_TICKS, Heard, Kept, MARGIN_TICKS, Order, QUIET_TICKS, Request, Row, Seat, Worker, World, op_index,
    },
};

/// What the world obeys. [`Rules::OURS`] are the product's; every other set is one of them broken.
#[derive(Clone, Copy)]
pub struct Rules {
    pub next: fn(State, Seen) -> Option<State>,
    pub plan: fn(&Facts) -> Step,
    pub judge: fn(&Facts, &IntentStatus, bool, bool) -> (Seen, Key),
    pub missing: fn(&Facts) -> Missing,
    pub counts: fn(RefundState, RefundState, Said) -> bool,
    pub margin_ticks: i8,
    /// What is written after a call names the version that it was made for.
    pub version_compare: bool,
    /// Whether there is still time is asked once more by the statement that notes a call as sent.
    pub check_at_sending: bool,
    /// A refund that begins after the decision is a version of its own.
    pub refunds_supersede: bool,
    /// So is each thing that is learnt of it.
    pub refund_news_supersede: bool,
    /// So is a cancellation of what is decided.
    pub tidying_supersedes: bool,
    /// Under so many keys it is cancelled at most.
    pub tidies_at_most: u8,
    /// News of a refund are done with only by a look that was begun after them.
    pub news_stay: bool,
    /// A refund that failed and was given back by hand is not begun again.
    pub by_hand_is_seen: bool,
    /// A capture that turns out to have worked after all heals its order only if the money was not given back.
    pub heals_what_is_kept: bool,
    /// `attempt_one_live`
    pub one_live_attempt: bool,
    /// Whether the seat may be sold is found out in the transaction that sells it.
    pub sells_in_one: bool,
    /// The sale looks at the time, after its locks.
    pub sale_reads_the_clock: bool,
}

impl Rules {
    pub const OURS: Rules = Rules {
        next: machine::next,
        plan: machine::plan,
        judge: machine::judge,
        missing: machine::missing,
        counts: machine::counts,
        margin_ticks: MARGIN_TICKS,
        version_compare: true,
        check_at_sending: true,
        refunds_supersede: true,
        refund_news_supersede: true,
        tidying_supersedes: true,
        tidies_at_most: u8::MAX,
        news_stay: true,
        by_hand_is_seen: true,
        heals_what_is_kept: true,
        one_live_attempt: true,
        sells_in_one: true,
        sale_reads_the_clock: true,
    };
}

/// How far it is searched: the product has no such bounds. Lost requests, lost answers, delays, refusals
/// to serve, deaths of workers and webhooks are not bounded at all.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    pub attempts: u8,
    pub workers: u8,
    /// Answers that the provider failed (500, 400 without a reason), which may cost a key.
    pub failures: u8,
    /// Somebody takes reserved money in the provider's dashboard.
    pub foreign_captures: u8,
    /// Reservations lapse.
    pub lapses: bool,
    /// Refunds fail, at once or later.
    pub refunds_fail: bool,
    /// A day may pass at any time: keys are forgotten.
    pub days: bool,
}

#[derive(Clone, Copy)]
pub struct Payments {
    pub rules: Rules,
    pub scope: Scope,
}

#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "a path is told by `Debug`, which the lint does not count as reading")]
pub enum What {
    Pays,
    Cancels,
    LeavesTheHold,
    SomebodyElseTakesTheSeat,
    TimePasses,
    ADayPasses,
    HoldIsSwept,
    DueOrderIsReleased,
    /// A worker reads attempt n and does what needs no provider, or is about to send.
    WorkerTakes(usize, u8, Step),
    WorkerLooks(usize, u8),
    WorkerSends(usize, Op),
    ProviderIsNotThere(usize),
    Answered(usize, Op, Fate),
    AnswerIsLost(usize, Op, Fate),
    RequestIsLost(usize, Op),
    RequestIsDelayed(usize, Op),
    WorkerWritesDown(usize),
    WorkerSells(usize),
    WorkerDies(usize),
    DelayedRequestArrives(Op, Fate),
    DelayedRequestIsLost,
    Webhook(u8),
    RefundWebhook(u8),
    ChallengeIsMet(u8),
    ChallengeIsFailed(u8),
    ProcessingEnds(u8, bool),
    ReservationLapses(u8),
    ForeignCapture(u8),
    RefundArrives(u8),
    RefundFails(u8),
    RefundFailsAfterAll(u8),
    MoneyIsGivenByHand(u8),
}

impl Model for Payments {
    type State = World;
    type What = What;

    fn start(&self) -> World {
        World {
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
            failures_left: self.scope.failures,
            foreign_captures_left: self.scope.foreign_captures,
            wrong: None,
        }
    }

    fn choices(&self, world: &World, choices: &mut Vec<Choice<What, World>>) {
        let mut add = |what: What, fair: bool, to: World| {
            choices.push(Choice {
                what,
                fair,
                to: to.normal(self.scope.attempts, self.rules.version_compare, self.rules.margin_ticks),
            });
        };
        self.people(world, &mut add);
        self.time(world, &mut add);
        let idle = world.workers.iter().position(|w| *w == Worker::Idle);
        let busy = world.workers.iter().filter(|w| **w != Worker::Idle).count();
        for n in 0..2 {
            // Of two that are idle it makes no difference which begins.
            if world.workers[n] != Worker::Idle || (Some(n) == idle && busy < usize::from(self.scope.workers)) {
                self.worker(world, n, &mut add);
            }
        }
        self.provider(world, &mut add);
    }

    fn wrong(&self, world: &World) -> Option<&'static str> {
        super::wrong::wrong(world)
    }

    fn is_home(&self, world: &World) -> bool {
        world.is_quiet()
            && matches!(world.order, Order::Confirmed | Order::Cancelled)
            && world.attempts.iter().flatten().all(|a| a.state.is_decided() || a.state == State::RefundFailed)
    }
}

type Add<'a> = dyn FnMut(What, bool, World) + 'a;

impl Payments {
    fn people(&self, world: &World, add: &mut Add<'_>) {
        if let Some(at) = world.attempts.iter().position(Option::is_none) {
            let due = world.order == Order::Due;
            let open = world.order == Order::Open && world.hold_live && world.left > 0 && world.frozen_by.is_none();
            let left = if due { world.due_left } else { world.left };
            let free = !self.rules.one_live_attempt || world.live_attempts() == 0;
            let open = open || (!self.rules.one_live_attempt && world.order == Order::Open);
            if at < usize::from(self.scope.attempts)
                && (due || open)
                && free
                && !world.cancel_requested
                && !world.gate_closed
                && left >= MARGIN_TICKS
            {
                let mut to = *world;
                to.attempts[at] = Some(Attempt {
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
                });
                if !due {
                    to.frozen_by = Some(at as u8);
                }
                add(What::Pays, false, to);
            }
        }
        if world.order == Order::Open && !world.cancel_requested {
            let mut to = *world;
            to.cancel_requested = true;
            if to.live_attempts() == 0 {
                to.order = Order::Cancelled;
            }
            for at in 0..2 {
                if to.attempts[usize::from(at)].is_some_and(|a| !a.state.is_decided()) {
                    poke(&mut to, at);
                }
            }
            add(What::Cancels, false, to);
        }
        if world.seat == Seat::Held && world.hold_live && world.frozen_by.is_none() {
            let mut to = *world;
            (to.seat, to.hold_live) = (Seat::Free, false);
            if to.order == Order::Open {
                to.order = Order::Cancelled;
            }
            add(What::LeavesTheHold, false, to);
        }
        if world.seat == Seat::Free || (world.seat == Seat::Held && world.left <= 0) {
            add(What::SomebodyElseTakesTheSeat, false, World { seat: Seat::Other, ..*world });
        }
        for at in 0..2_u8 {
            // From the first request on the provider may tell us something, as often as it likes.
            let intent = &world.intents[usize::from(at)];
            if intent.status != Status::None {
                let mut to = *world;
                poke(&mut to, at);
                add(What::Webhook(at), false, to);
                // One about a refund says nothing of the intent, and makes nobody look at that.
                if intent.refund.is_some() {
                    let mut to = *world;
                    tell_of_refund(&mut to, at);
                    add(What::RefundWebhook(at), false, to);
                }
            }
            // What has failed is on people's list; they give the money back another way.
            let mut to = *world;
            if let Some(attempt) = to.attempts[usize::from(at)].as_mut()
                && attempt.refund == Some(RefundState::Failed)
                && !attempt.by_hand
            {
                attempt.by_hand = true;
                if attempt.state == State::RefundFailed {
                    (attempt.state, attempt.scheduled) = (State::Refunded, false);
                    supersede(&mut to, at);
                }
                add(What::MoneyIsGivenByHand(at), false, to);
            }
        }
    }

    fn time(&self, world: &World, add: &mut Add<'_>) {
        // A client gives up before its request is as old as a quiet.
        let overdue =
            world.workers.iter().any(|w| matches!(w, Worker::Waiting(_, request) if request.age + 1 >= QUIET_TICKS));
        if !overdue {
            let mut to = *world;
            to.left = (to.left - 1).max(0);
            to.due_left = if to.order == Order::Due { (to.due_left - 1).max(0) } else { to.due_left };
            for call in to.attempts.iter_mut().flatten().flat_map(|a| a.calls.iter_mut().flatten()) {
                call.sent = call.sent.map(|ticks| (ticks + 1).min(QUIET_TICKS));
            }
            for worker in &mut to.workers {
                if let Worker::Waiting(_, request) = worker {
                    request.age += 1;
                }
            }
            if let Some(request) = &mut to.adrift {
                request.age += 1;
            }
            to.adrift = to.adrift.filter(|request| request.age < QUIET_TICKS);
            if to != *world {
                add(What::TimePasses, true, to);
            }
        }
        // Nobody is asleep for hours with a call in hand: KEY_LIFE leaves one hour for that.
        if self.scope.days && world.adrift.is_none() && world.workers == [Worker::Idle; 2] {
            let mut to = *world;
            (to.left, to.due_left, to.kept) = (0, 0, Kept::default());
            for call in to.attempts.iter_mut().flatten().flat_map(|a| a.calls.iter_mut().flatten()) {
                (call.old, call.sent) = (true, call.sent.map(|_| QUIET_TICKS));
            }
            add(What::ADayPasses, true, to); // keys are forgotten by then
        }
        if world.hold_live && world.left <= 0 {
            let mut to = *world;
            to.hold_live = false;
            if to.seat == Seat::Held {
                to.seat = Seat::Free;
            }
            if to.frozen_by.is_none() && to.order == Order::Open {
                to.order = Order::Cancelled;
            }
            add(What::HoldIsSwept, true, to);
        }
        if world.order == Order::Due && world.due_left <= 0 && world.live_attempts() == 0 {
            let mut to = *world;
            (to.order, to.seat) = (Order::Cancelled, Seat::Free);
            add(What::DueOrderIsReleased, true, to);
        }
    }

    fn provider(&self, world: &World, add: &mut Add<'_>) {
        for at in 0..2_u8 {
            let intent = world.intents[usize::from(at)];
            let with = |change: &dyn Fn(&mut Intent)| {
                let mut to = *world;
                change(&mut to.intents[usize::from(at)]);
                to
            };
            match intent.status {
                Status::Challenge => {
                    let met = with(&|i| (i.status, i.authenticated) = (Status::Unconfirmed, true));
                    add(What::ChallengeIsMet(at), false, met);
                    let failed = with(&|i| (i.status, i.error) = (Status::NoCard, true));
                    add(What::ChallengeIsFailed(at), false, failed);
                }
                Status::Processing => {
                    add(What::ProcessingEnds(at, true), true, with(&|i| i.status = Status::Reserved));
                    let failed = with(&|i| (i.status, i.error) = (Status::NoCard, true));
                    add(What::ProcessingEnds(at, false), true, failed);
                }
                Status::Reserved => {
                    if self.scope.lapses {
                        add(What::ReservationLapses(at), false, with(&|i| i.status = Status::Cancelled));
                    }
                    if world.foreign_captures_left > 0 {
                        let mut to = with(&|i| i.status = Status::Taken);
                        to.foreign_captures_left -= 1;
                        add(What::ForeignCapture(at), false, to);
                    }
                }
                _ => {}
            }
            if intent.refund == Some(Refund::Pending) {
                add(What::RefundArrives(at), true, with(&|i| i.refund = Some(Refund::Done)));
                if self.scope.refunds_fail {
                    add(What::RefundFails(at), false, with(&|i| i.refund = Some(Refund::Failed)));
                }
            }
            if intent.refund == Some(Refund::Done) && self.scope.refunds_fail {
                let mut to = with(&|i| i.refund = Some(Refund::Failed));
                tell_of_refund(&mut to, at); // more often by webhooks; if all are lost, by the books
                add(What::RefundFailsAfterAll(at), false, to);
            }
        }
        if let Some(request) = world.adrift {
            add(What::DelayedRequestIsLost, true, World { adrift: None, ..*world });
            self.execute(&World { adrift: None, ..*world }, request, &mut |fate, to, _| {
                add(What::DelayedRequestArrives(request.op, fate), false, to);
            });
        }
    }

    fn worker(&self, world: &World, n: usize, add: &mut Add<'_>) {
        let become_ = |to: Worker| {
            let mut world = *world;
            world.workers[n] = to;
            world
        };
        let idle = || become_(Worker::Idle);
        match world.workers[n] {
            Worker::Idle => {
                for at in 0..2_u8 {
                    if world.attempts[usize::from(at)].is_some_and(|a| a.scheduled) {
                        self.take(world, n, at, add);
                    }
                }
            }
            Worker::Ready(row) => {
                add(What::WorkerDies(n), false, idle());
                let call = row.call.expect("what is to be sent is written down");
                let op = row.op();
                let mut to = *world;
                if self.rules.check_at_sending && self.may_not_send(world, &row, op) {
                    to.workers[n] = Worker::Idle;
                    add(What::WorkerSends(n, op), true, to);
                    return;
                }
                if op == Op::Confirm && world.read(row.at).left < MARGIN_TICKS {
                    to.wrong = Some("a confirmation started with too little of the hold left");
                }
                for other in to.workers.iter_mut().filter_map(Worker::row_mut) {
                    other.sent_since |= other.at == row.at && other.op() == op;
                }
                if let Some(call) = latest(&mut to, row.at, op, call.n) {
                    (call.state, call.sends, call.sent) = (CallState::Sent as u8, (call.sends + 1).min(2), Some(0));
                }
                let request = Request { at: row.at, op, n: call.n, age: 0 };
                let with = |worker| {
                    let mut to = to;
                    to.workers[n] = worker;
                    to
                };
                add(What::WorkerSends(n, op), true, with(Worker::Waiting(row, request)));
                add(What::ProviderIsNotThere(n), false, with(Worker::Heard(row, request, Heard::NotSent)));
            }
            Worker::Waiting(row, request) => {
                self.execute(&idle(), request, &mut |fate, to, heard| {
                    let mut answered = to;
                    answered.workers[n] = Worker::Heard(row, request, heard);
                    add(What::Answered(n, request.op, fate), fate.is_fair(), answered);
                    // Silence is written down as a doubt, and the next to read the row concludes the same from
                    // a call that was sent: whether its worker hears nothing or dies is all one.
                    add(What::AnswerIsLost(n, request.op, fate), false, to);
                });
                add(What::RequestIsLost(n, request.op), false, idle());
                if world.adrift.is_none() {
                    add(What::RequestIsDelayed(n, request.op), false, World { adrift: Some(request), ..idle() });
                }
            }
            Worker::Heard(row, request, heard) => {
                add(What::WorkerDies(n), false, idle());
                let mut to = idle();
                self.write_down(&mut to, &row, request, heard);
                add(What::WorkerWritesDown(n), true, to);
            }
            Worker::MaySell(row) => {
                add(What::WorkerDies(n), false, idle());
                let mut to = idle();
                sell(&mut to);
                self.settle(&mut to, &row, Seen::Sold, None);
                add(What::WorkerSells(n), true, to);
            }
        }
    }

    /// What `note_sent` refuses: the row is no longer the one that was read, or it is too late by now.
    fn may_not_send(&self, world: &World, row: &Row, op: Op) -> bool {
        row.stale || (op == Op::Confirm && world.read(row.at).left < self.rules.margin_ticks)
    }

    /// As `drive` does it.
    fn take(&self, world: &World, n: usize, at: u8, add: &mut Add<'_>) {
        let row = world.read(at);
        let step = (self.rules.plan)(&row.facts(self.rules.margin_ticks));
        let mut to = *world;
        match step {
            Step::Write(Op::Confirm) => {
                let call = next_call(&to, at, Op::Confirm);
                self.settle(&mut to, &row, Seen::Confirming, call);
            }
            Step::Write(op) => {
                let call = next_call(&to, at, op);
                to.attempt(at).calls[op_index(op)] = call;
            }
            Step::Send => to.workers[n] = Worker::Ready(row),
            Step::Look => {
                let request = Request { at, op: Op::Get, n: 0, age: 0 };
                let shown = world.intents[usize::from(at)].show();
                to.workers[n] = Worker::Heard(row, request, Heard::Looked(shown));
                add(What::WorkerLooks(n, at), true, to);
                return;
            }
            Step::LookForRefunds => {
                let request = Request { at, op: Op::ListRefunds, n: 0, age: 0 };
                let intent = world.intents[usize::from(at)];
                let first = world.attempts[usize::from(at)].map_or(0, |a| a.refund_first);
                let listed = intent.refund.filter(|_| intent.refund_n >= first);
                to.workers[n] = Worker::Heard(row, request, Heard::Listed(listed));
                add(What::WorkerLooks(n, at), true, to);
                return;
            }
            Step::Conclude(Seen::RefundFailed) => self.give_up(&mut to, &row),
            Step::Conclude(seen) => self.settle(&mut to, &row, seen, None),
            Step::Decide => self.decide(&mut to, n, &row),
            Step::Rest => to.attempt(at).scheduled = false,
            Step::StopReader => unreachable!("no card is held to a reader here"),
        }
        add(What::WorkerTakes(n, at, step), true, to);
    }

    /// The one transaction.
    fn decide(&self, world: &mut World, n: usize, row: &Row) {
        let right = row.authorised == Some(true);
        let seen = if world.cancel_requested {
            Seen::Abandoned
        } else if world.order == Order::Due {
            if world.due_left > 0 && right {
                world.order = Order::Confirmed;
                Seen::Sold
            } else {
                Seen::NotSold
            }
        } else if world.order != Order::Open {
            Seen::NotSold
        } else if !right {
            Seen::WrongAmount
        } else if self.may_sell(world) {
            if !self.rules.sells_in_one {
                world.workers[n] = Worker::MaySell(*row);
                return;
            }
            sell(world);
            Seen::Sold
        } else {
            Seen::NotSold
        };
        self.settle(world, row, seen, None);
    }

    fn may_sell(&self, world: &World) -> bool {
        let in_time = world.left > 0 || !self.rules.sale_reads_the_clock;
        let held = world.seat == Seat::Held || !self.rules.sale_reads_the_clock;
        world.hold_live && in_time && held
    }

    /// What becomes of a request when it arrives: every way that is allowed.
    fn execute(&self, world: &World, request: Request, each: &mut dyn FnMut(Fate, World, Heard)) {
        let (at, op) = (usize::from(request.at), op_index(request.op));
        if let Some(answer) = world.kept.get(request.at, op, request.n) {
            each(Fate::Well, *world, Heard::Answered { answer, replayed: true });
            each(Fate::Busy, *world, Heard::Busy);
            if matches!(request.op, Op::Create | Op::Confirm) {
                each(Fate::NotServed, *world, Heard::NotServed);
            }
            return;
        }
        let intent = world.intents[at];
        let failures: &[Fate] = if world.failures_left > 0 {
            &[
                Fate::BrokenBefore,
                Fate::BrokenStored,
                Fate::BrokenAfter,
                Fate::RefusedBefore,
                Fate::RefusedStored,
                Fate::SaidGone,
            ]
        } else {
            &[]
        };
        for fate in intent.fates(request.op).iter().chain(&[Fate::Busy, Fate::NotServed]).chain(failures) {
            // Elsewhere a key that is turned away is as good as being put off; a refusal that is kept costs a key there.
            let same = (*fate == Fate::NotServed && !matches!(request.op, Op::Create | Op::Confirm))
                || (matches!(fate, Fate::RefusedStored | Fate::SaidGone) && request.op != Op::Capture);
            if same || (*fate == Fate::RefundFails && !self.scope.refunds_fail) {
                continue;
            }
            let mut to = *world;
            to.failures_left -= u8::from(fate.is_failure());
            let answer = to.intents[at].execute(request.op, *fate);
            to.kept.set(request.at, op, request.n, answer);
            if request.op == Op::Refund
                && (to.intents[at].refund, to.intents[at].refunds) != (intent.refund, intent.refunds)
            {
                to.intents[at].refund_n = request.n;
            }
            let taken = request.op == Op::Capture && to.intents[at].status != intent.status;
            if taken && !to.was_sold {
                to.wrong = Some("money was taken before the sale");
            }
            let heard = match (fate, answer) {
                (_, Some(answer)) => Heard::Answered { answer, replayed: false },
                (Fate::BrokenBefore, None) => Heard::Broken,
                (Fate::RefusedBefore, None) => Heard::Refused,
                (Fate::NotServed, None) => Heard::NotServed,
                (_, None) => Heard::Busy,
            };
            each(*fate, to, heard);
        }
    }
}
