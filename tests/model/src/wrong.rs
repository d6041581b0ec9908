//! What must never be so, in any state that can be reached.

use fullhouse::payment::machine::{RefundState, State};

use super::{
    provider::{Refund, Status},
    world::{Order, Seat, World},
};

pub const CONFIRMABLE: &str = "a payment that is decided can still be confirmed, and nobody lets it go";

pub fn wrong(world: &World) -> Option<&'static str> {
    world.wrong.or_else(|| seats(world)).or_else(|| money(world)).or_else(|| rest(world))
}

fn seats(world: &World) -> Option<&'static str> {
    if matches!(world.order, Order::Confirmed | Order::Due) != (world.seat == Seat::Sold) {
        return Some("a seat without its sale, or a sale without its seat");
    }
    None
}

fn money(world: &World) -> Option<&'static str> {
    if world.live_attempts() > 1 {
        return Some("two attempts live at once");
    }
    let taking = |s: State| matches!(s, State::CapturePending | State::CaptureUnknown | State::Captured);
    if world.attempts.iter().flatten().filter(|a| taking(a.state)).count() > 1 {
        return Some("an order is paid twice");
    }
    for (attempt, intent) in world.attempts.iter().zip(&world.intents) {
        let Some(attempt) = attempt else { continue };
        let by_card = matches!(intent.refund, Some(Refund::Pending | Refund::Done));
        if intent.refunds > 1 || (attempt.by_hand && by_card) {
            return Some("money went back twice");
        }
        let may_have_money = matches!(intent.status, Status::Reserved | Status::Processing | Status::Taken);
        if matches!(attempt.state, State::Declined | State::Voided) && may_have_money {
            return Some("the buyer was told that nothing was charged, and money is reserved");
        }
        if attempt.state == State::Captured && (intent.status != Status::Taken || world.order != Order::Confirmed) {
            return Some("a ticket is valid without money, or without an order");
        }
    }
    None
}

/// Once nobody has anything to do any more.
fn rest(world: &World) -> Option<&'static str> {
    if !world.is_quiet() {
        return None;
    }
    let mut kept = 0;
    for (attempt, intent) in world.attempts.iter().zip(&world.intents) {
        let Some(attempt) = attempt else { continue };
        if !attempt.state.is_decided() && attempt.state != State::RefundFailed {
            return Some("an attempt lives, and nobody will look at it again");
        }
        if matches!(intent.status, Status::Reserved | Status::Processing) {
            return Some("money is reserved for no live attempt");
        }
        // (Of one that it has never heard of the hub lets go when it compares the books.)
        if attempt.has_intent && matches!(intent.status, Status::NoCard | Status::Unconfirmed | Status::Challenge) {
            return Some(CONFIRMABLE);
        }
        let told_a_person = attempt.refund == Some(RefundState::Failed);
        if intent.keeps_money() && attempt.state == State::Captured {
            kept += 1;
        } else if intent.keeps_money() && !told_a_person {
            return Some("money was taken for no order, and does not go back");
        }
    }
    if kept > 1 {
        return Some("money was taken twice for an order");
    }
    if world.order == Order::Confirmed && kept == 0 {
        return Some("a sold seat has no money");
    }
    None
}
