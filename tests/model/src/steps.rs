//! What may happen next in a world, and what follows from it.
//!
//! What is decided is decided by the product: `machine::plan`, `machine::judge` and `machine::next` are
//! called, and only what they are told and what their decisions write down is modelled. A step of a
//! worker that is one transaction there is one step here; each call to the provider is two or three, and
//! a worker may die between them.

use fullhouse::payment::{
    machine::{State, Step},
    provider::Op,
};

use super::{
    provider::Fate,
    rules::{Begin, Rules, Scope},
    search::{Choice, Model},
    world::{Order, Worker, World},
};

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
    /// A worker reads attempt n, and is about to do this (or has done it, if it is alone).
    WorkerTakes(usize, u8, Step),
    WorkerWrites(usize, u8, Step),
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
        let held = World::held(&self.scope);
        match self.scope.begins {
            Begin::Held => held,
            Begin::ToGiveBack => held.to_give_back().normal(self.scope.attempts, &self.rules),
            Begin::TakenLate => held.taken_late().normal(self.scope.attempts, &self.rules),
        }
    }

    fn choices(&self, world: &World, choices: &mut Vec<Choice<What, World>>) {
        let mut add = |what: What, fair: bool, to: World| {
            choices.push(Choice { what, fair, to: to.normal(self.scope.attempts, &self.rules) });
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

/// Takes what may happen: what it is, whether it happens by itself once all goes well, and the world after it.
pub type Add<'a> = dyn FnMut(What, bool, World) + 'a;
