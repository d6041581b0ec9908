//! What the provider does by itself, and with a request that reaches it.

use fullhouse::payment::provider::Op;

use super::{
    effects::tell_of_refund,
    provider::{Fate, Intent, Refund, Status},
    steps::{Add, Payments, What},
    world::{Heard, Request, World, op_index},
};

impl Payments {
    pub fn provider(&self, world: &World, add: &mut Add<'_>) {
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

    /// What becomes of a request when it arrives: every way that is allowed.
    pub fn execute(&self, world: &World, request: Request, each: &mut dyn FnMut(Fate, World, Heard)) {
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
