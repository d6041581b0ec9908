//! What the buyer, the house and time do.

use fullhouse::payment::machine::{RefundState, State};

use super::{
    effects::{poke, supersede, tell_of_refund},
    provider::Status,
    steps::{Add, Payments, What},
    world::{Attempt, Kept, MARGIN_TICKS, Order, QUIET_TICKS, Seat, Worker, World},
};

impl Payments {
    pub fn people(&self, world: &World, add: &mut Add<'_>) {
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
                to.attempts[at] = Some(Attempt::new(due));
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

    pub fn time(&self, world: &World, add: &mut Add<'_>) {
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
}
