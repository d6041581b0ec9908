//! What a hub's workers do, step by step, as `drive` does it.

use fullhouse::payment::{
    machine::{CallState, Seen, Step},
    provider::Op,
};

use super::{
    effects::{latest, next_call, sell, supersede},
    steps::{Add, Payments, What},
    world::{Heard, MARGIN_TICKS, Order, Request, Row, Seat, Worker, World, op_index},
};

impl Payments {
    pub fn worker(&self, world: &World, n: usize, add: &mut Add<'_>) {
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
                match (self.rules.plan)(&row.facts(self.rules.margin_ticks)) {
                    Step::Send => self.send(world, n, row, add),
                    step => add(What::WorkerWrites(n, row.at, step), true, self.act(world, n, &row, step)),
                }
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

    fn send(&self, world: &World, n: usize, row: Row, add: &mut Add<'_>) {
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
            (call.state, call.sends, call.sent) = (CallState::Sent as u8, call.sends + 1, Some(0));
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

    /// What `note_sent` refuses: the row is no longer the one that was read, or it is too late by now.
    fn may_not_send(&self, world: &World, row: &Row, op: Op) -> bool {
        row.stale || (op == Op::Confirm && world.read(row.at).left < self.rules.margin_ticks)
    }

    /// Reads the row, as `drive` does, and asks what there is to ask. What follows is a step of its own: between the two a
    /// worker may lose its lease to another. (One that is alone can only die there, which is as if it had not read.)
    fn take(&self, world: &World, n: usize, at: u8, add: &mut Add<'_>) {
        let row = world.read(at);
        let step = (self.rules.plan)(&row.facts(self.rules.margin_ticks));
        let intent = world.intents[usize::from(at)];
        let ready = |worker| {
            let mut to = *world;
            to.workers[n] = worker;
            to
        };
        let asked = |op| Request { at, op, n: 0, age: 0 };
        match step {
            Step::Look => {
                let heard = Heard::Looked(intent.show());
                add(What::WorkerLooks(n, at), true, ready(Worker::Heard(row, asked(Op::Get), heard)));
            }
            Step::LookForRefunds => {
                let first = world.attempts[usize::from(at)].map_or(0, |a| a.refund_first);
                let heard = Heard::Listed(intent.refund.filter(|_| intent.refund_n >= first));
                add(What::WorkerLooks(n, at), true, ready(Worker::Heard(row, asked(Op::ListRefunds), heard)));
            }
            Step::Rest => add(What::WorkerTakes(n, at, step), true, self.act(world, n, &row, step)),
            Step::Send => add(What::WorkerTakes(n, at, step), true, ready(Worker::Ready(row))),
            _ if self.scope.workers > 1 => add(What::WorkerTakes(n, at, step), true, ready(Worker::Ready(row))),
            _ => add(What::WorkerTakes(n, at, step), true, self.act(world, n, &row, step)),
        }
    }

    /// One transaction, for the row as it was read.
    fn act(&self, world: &World, n: usize, row: &Row, step: Step) -> World {
        let mut to = *world;
        to.workers[n] = Worker::Idle;
        match step {
            Step::Write(op) => self.write(&mut to, row, op),
            Step::Conclude(Seen::RefundFailed) => self.give_up(&mut to, row),
            Step::Conclude(seen) => self.settle(&mut to, row, seen, None),
            Step::Decide => self.decide(&mut to, n, row),
            Step::Rest => to.attempt(row.at).scheduled = false,
            Step::Send | Step::Look | Step::LookForRefunds => unreachable!("the provider is asked"),
            Step::StopReader => unreachable!("no card is held to a reader here"),
        }
        to
    }

    /// As `One::write`. The key's number is counted after the row was read, as late as may be: counted earlier, it can only
    /// be one that is taken, which `provider_call_key_once` refuses.
    fn write(&self, world: &mut World, row: &Row, op: Op) {
        let call = next_call(world, row.at, op);
        if op == Op::Confirm {
            return self.settle(world, row, Seen::Confirming, call);
        }
        if row.stale && self.rules.version_compare && self.rules.calls_name_their_version {
            return;
        }
        world.attempt(row.at).calls[op_index(op)] = call;
        if self.rules.calls_supersede {
            supersede(world, row.at);
        }
    }

    /// The one transaction.
    fn decide(&self, world: &mut World, n: usize, row: &Row) {
        if row.stale && self.rules.version_compare {
            return;
        }
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
}
