use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::payment::provider::IntentStatus;

fn reachable(from: State) -> HashSet<State> {
    let mut seen = HashSet::from([from]);
    let mut open = vec![from];
    while let Some(state) = open.pop() {
        for (_, _, to) in TRANSITIONS.iter().filter(|(from, _, _)| *from == state) {
            if seen.insert(*to) {
                open.push(*to);
            }
        }
    }
    seen
}

fn at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn facts(state: State) -> Facts {
    Facts {
        state,
        now: at(),
        hold_expires_at: at() + TimeDelta::minutes(5),
        margin: TimeDelta::seconds(60),
        abandoned: false,
        has_intent: state != State::New,
        call: None,
        stray_refund: false,
        reader: None,
        refund_asked_for: false,
    }
}

fn call(state: CallState, http: Option<u16>) -> CallFacts {
    let then = at() - TimeDelta::seconds(5);
    CallFacts { state, http, replayed: false, gone: false, sends: 1, created_at: then, sent_at: Some(then) }
}

#[test]
fn the_table_is_a_function() {
    let mut keys = HashSet::new();
    for (from, seen, to) in TRANSITIONS {
        assert!(keys.insert((from, seen)), "{from:?} on {seen:?} twice");
        assert_ne!(from, to, "staying is not a transition");
    }
}

#[test]
fn every_name_is_read_back() {
    for state in State::ALL {
        assert_eq!(State::from_name(state.name()), Some(*state));
    }
}

#[test]
fn final_states_have_no_exit_and_all_others_reach_one() {
    for state in State::ALL {
        let exits = TRANSITIONS.iter().filter(|(from, _, _)| from == state).count();
        assert_eq!(exits == 0, state.is_final(), "{state:?}");
        assert!(reachable(*state).iter().any(|s| s.is_final()), "{state:?} never ends");
    }
    assert_eq!(reachable(State::New).len(), State::ALL.len(), "a state that nothing leads to");
}

#[test]
fn money_is_taken_only_after_the_sale_and_never_twice() {
    // The only state that asks for a capture is CapturePending…
    for state in State::ALL {
        for f in [facts(*state), Facts { call: Some(call(CallState::Prepared, None)), ..facts(*state) }] {
            let asks = state.op() == Op::Capture && matches!(plan(&f), Step::Write(Op::Capture) | Step::Send);
            assert!(!asks || *state == State::CapturePending, "{state:?} captures");
        }
    }
    // … which only the sale leads to, and its own doubt.
    for (from, seen, _) in TRANSITIONS.iter().filter(|(_, _, to)| *to == State::CapturePending) {
        let sale = (*from, *seen) == (State::Authorised, Seen::Sold);
        let doubt = (*from, *seen) == (State::CaptureUnknown, Seen::Again);
        assert!(sale || doubt, "{from:?} on {seen:?}");
    }
    // Nothing that comes after the sale leads back to before it, nor from Captured to anywhere.
    for state in reachable(State::CapturePending) {
        assert!(
            matches!(state, State::CapturePending | State::CaptureUnknown | State::Captured | State::CaptureFailed),
            "{state:?} after the sale"
        );
    }
}

#[test]
fn a_new_attempt_never_begins_beside_a_doubt() {
    for state in State::ALL.iter().filter(|s| s.is_decided()) {
        let after = reachable(*state);
        assert!(after.iter().all(|s| s.is_decided()), "{state:?} comes alive again: {after:?}");
    }
}

#[test]
fn a_doubt_is_never_called_a_failure() {
    for (from, _, to) in TRANSITIONS.iter().filter(|(_, seen, _)| *seen == Seen::Doubt) {
        assert!(matches!(to, State::AuthUnknown | State::CaptureUnknown | State::VoidUnknown), "{from:?} to {to:?}");
    }
}

#[test]
fn every_answer_has_a_meaning_in_every_state() {
    let statuses = [
        IntentStatus::RequiresPaymentMethod,
        IntentStatus::RequiresConfirmation,
        IntentStatus::RequiresAction,
        IntentStatus::Processing,
        IntentStatus::RequiresCapture,
        IntentStatus::Succeeded,
        IntentStatus::Canceled,
        IntentStatus::Other("requires_moonlight".into()),
    ];
    let calls = [None, Some(call(CallState::Unknown, None)), Some(call(CallState::Answered, Some(400)))];
    for state in State::ALL.iter().filter(|s| !s.is_decided() && s.op() != Op::Refund && **s != State::New) {
        for (status, call) in statuses.iter().flat_map(|s| calls.iter().map(move |c| (s, *c))) {
            for (has_error, right) in [(false, true), (true, true), (false, false), (true, false)] {
                let (seen, _) = judge(&Facts { call, ..facts(*state) }, status, has_error, right);
                // Money that was taken is known as taken, whatever we thought.
                if *status == IntentStatus::Succeeded && !matches!(state, State::Ready | State::Authorised) {
                    assert!(matches!(next(*state, seen), Some(State::Captured | State::RefundPending)), "{state:?}");
                }
                // The wrong amount never becomes a sale.
                assert!(right || seen != Seen::Authorised);
            }
        }
    }
}

#[test]
fn no_confirmation_starts_with_less_than_the_margin_left() {
    for left in [0, 30, 59] {
        for state in [State::New, State::Ready, State::Confirming, State::ActionRequired] {
            let f = Facts {
                hold_expires_at: at() + TimeDelta::seconds(left),
                call: Some(call(CallState::Prepared, None)),
                ..facts(state)
            };
            assert_eq!(plan(&f), Step::Conclude(Seen::OutOfTime), "{state:?} with {left} s left");
        }
        let f = Facts { hold_expires_at: at() + TimeDelta::seconds(left), ..facts(State::AuthUnknown) };
        assert_eq!(judge(&f, &IntentStatus::RequiresConfirmation, false, true).0, Seen::OutOfTime);
    }
    assert_eq!(plan(&facts(State::Ready)), Step::Write(Op::Confirm));
    let enough = Facts { hold_expires_at: at() + TimeDelta::seconds(60), ..facts(State::Ready) };
    assert_eq!(plan(&enough), Step::Write(Op::Confirm));
}

#[test]
fn a_confirmation_that_was_sent_is_asked_about_before_anything_else() {
    for state in [CallState::Sent, CallState::Unknown, CallState::Answered] {
        let f = Facts { call: Some(call(state, None)), ..facts(State::Confirming) };
        assert_eq!(plan(&f), Step::Conclude(Seen::Doubt), "{state:?}");
    }
    assert_eq!(plan(&facts(State::AuthUnknown)), Step::Look);
}

#[test]
fn the_same_key_again_unless_its_stored_answer_is_useless() {
    let judge = |call: CallFacts| {
        judge(
            &Facts { call: Some(call), ..facts(State::AuthUnknown) },
            &IntentStatus::RequiresConfirmation,
            false,
            true,
        )
    };
    let unknown = call(CallState::Unknown, None);
    assert_eq!(judge(unknown), (Seen::Confirming, Key::Same));
    let once = CallFacts { http: Some(500), ..unknown };
    assert_eq!(judge(once), (Seen::Confirming, Key::Same));
    let stored = CallFacts { replayed: true, ..once };
    assert_eq!(judge(stored).0, Seen::Doubt, "not before a minute of quiet");
    let quiet = CallFacts { sent_at: Some(at() - QUIET), ..stored };
    assert_eq!(judge(quiet), (Seen::Confirming, Key::Next));
    let busy = CallFacts { http: Some(409), ..unknown };
    assert_eq!(judge(busy), (Seen::Confirming, Key::Same));
    let refused = CallFacts { http: Some(400), ..unknown };
    assert_eq!(judge(refused).0, Seen::Refused);
}

#[test]
fn no_refusal_alone_throws_a_sale_away() {
    let sold = |call| {
        judge(&Facts { call: Some(call), ..facts(State::CaptureUnknown) }, &IntentStatus::RequiresCapture, false, true)
    };
    for http in [400, 401, 402, 403, 404, 409, 429, 500] {
        let once = call(CallState::Answered, Some(http));
        assert_eq!(sold(once), (Seen::Again, Key::Same), "{http}");
    }
    // Perhaps it is kept under the key: another one, after a quiet.
    let twice = CallFacts { sends: 2, ..call(CallState::Answered, Some(402)) };
    assert_eq!(sold(twice).0, Seen::Doubt);
    assert_eq!(sold(CallFacts { sent_at: Some(at() - QUIET), ..twice }), (Seen::Again, Key::Next));
    let turned_away = CallFacts { sends: 9, ..call(CallState::Unknown, Some(401)) };
    assert_eq!(sold(turned_away), (Seen::Again, Key::Same), "nothing is kept of it");
    // What leaves no hope: the provider's word for it, or its object.
    let gone = CallFacts { gone: true, ..call(CallState::Answered, Some(400)) };
    assert_eq!(sold(gone).0, Seen::Refused);
    let unknown = Facts { call: Some(twice), ..facts(State::CaptureUnknown) };
    assert_eq!(judge(&unknown, &IntentStatus::Canceled, false, true).0, Seen::Cancelled);
    assert_eq!(judge(&unknown, &IntentStatus::RequiresPaymentMethod, false, true).0, Seen::Refused);
}

#[test]
fn a_voided_attempt_lets_go_of_what_turns_up() {
    assert_eq!(plan(&facts(State::Voided)), Step::Look);
    let written = Facts { call: Some(call(CallState::Prepared, None)), ..facts(State::Voided) };
    assert_eq!(plan(&written), Step::Send);
}

#[test]
fn an_old_refund_is_looked_for_before_it_is_asked_for_again() {
    let old = CallFacts { created_at: at() - KEY_LIFE, ..call(CallState::Unknown, None) };
    assert_eq!(plan(&Facts { call: Some(old), ..facts(State::RefundPending) }), Step::LookForRefunds);
    let young = call(CallState::Unknown, None);
    assert_eq!(plan(&Facts { call: Some(young), ..facts(State::RefundPending) }), Step::Send);
}

#[test]
fn a_refund_is_not_called_failed_before_it_was_looked_for() {
    let refused = call(CallState::Answered, Some(400));
    let after = |call: CallFacts| Facts { call: Some(call), ..facts(State::RefundPending) };
    assert_eq!(plan(&after(refused)), Step::Conclude(Seen::RefundFailed), "the only request there ever was");
    let again = CallFacts { sends: 2, ..refused };
    assert_eq!(plan(&after(again)), Step::LookForRefunds, "the first may have arrived");
    assert_eq!(missing(&after(again)), Missing::Wait, "or may be on its way still");
    let quiet = CallFacts { sent_at: Some(at() - QUIET), ..again };
    assert_eq!(missing(&after(quiet)), Missing::GiveUp);
}

#[test]
fn a_refund_whose_key_says_nothing_but_500_goes_on_under_another() {
    let after = |call: CallFacts| Facts { call: Some(call), ..facts(State::RefundPending) };
    let spent = CallFacts { http: Some(500), replayed: true, ..call(CallState::Unknown, None) };
    assert_eq!(plan(&after(spent)), Step::LookForRefunds);
    assert_eq!(missing(&after(spent)), Missing::Wait);
    let quiet = CallFacts { sent_at: Some(at() - QUIET), ..spent };
    assert_eq!(missing(&after(quiet)), Missing::AskAgain(Key::Next));
    let unknown = CallFacts { http: None, replayed: false, ..quiet };
    assert_eq!(missing(&after(unknown)), Missing::AskAgain(Key::Same));
    let there = Facts { refund_asked_for: true, ..after(quiet) };
    assert_eq!(missing(&there), Missing::Wait, "the provider had it: it is never asked for again");
}

#[test]
fn a_refund_never_goes_back_by_what_is_said_late() {
    use RefundState::{Accepted, Failed, Pending, Succeeded};
    for is in RefundState::ALL {
        for becomes in RefundState::ALL {
            assert_eq!(counts(*is, *becomes, Said::Answer), becomes > is && *becomes != Pending, "{is:?} {becomes:?}");
            assert_eq!(counts(*is, *becomes, Said::Look), *becomes != Pending, "{is:?} {becomes:?}");
        }
        assert_eq!(counts(*is, Failed, Said::Refusal), *is == Pending, "{is:?}: the provider had it");
        assert_eq!(RefundState::from_name(is.name()), Some(*is));
    }
    assert!(Pending < Accepted && Accepted < Succeeded && Succeeded < Failed);
}

#[test]
fn money_that_came_late_is_sent_back_a_few_times_and_then_left_to_people() {
    let strays =
        |failed, seen_to, minutes| after_decision(&Strays { failed, seen_to, failed_for: TimeDelta::minutes(minutes) });
    assert_eq!(strays(0, false, 0), AfterDecision::GiveBack);
    assert_eq!(strays(1, false, 1), AfterDecision::Wait(TimeDelta::minutes(4)));
    assert_eq!(strays(1, false, 5), AfterDecision::GiveBack);
    assert_eq!(strays(2, false, 59), AfterDecision::Wait(TimeDelta::minutes(1)));
    assert_eq!(strays(2, false, 60), AfterDecision::GiveBack);
    for failed in 0..9 {
        assert_eq!(strays(failed, true, 10_000), AfterDecision::Leave, "it goes back, or went by hand");
    }
    assert_eq!(strays(STRAY_TRIES_MAX, false, 10_000), AfterDecision::Leave);
}

#[test]
fn a_doubt_is_settled_well_within_the_margin() {
    let looks: TimeDelta = (0..3).map(|tries| patience(tries, TimeDelta::zero()) + TimeDelta::seconds(5)).sum();
    assert!(TimeDelta::seconds(10) + looks < TimeDelta::seconds(60), "{looks}");
    assert_eq!(patience(3, TimeDelta::minutes(1)), TimeDelta::seconds(30));
    assert_eq!(patience(99, TimeDelta::hours(1)), TimeDelta::minutes(5));
}

#[test]
fn a_reader_is_stopped_before_its_intent_is_looked_at_and_the_card_may_have_won() {
    for state in [State::ActionRequired, State::AuthUnknown] {
        let collecting = Facts { reader: Some(ReaderFacts::default()), ..facts(state) };
        assert_eq!(plan(&collecting), Step::Look, "{state:?}");
        let unwanted = Facts { abandoned: true, ..collecting };
        let late = Facts { hold_expires_at: at() + TimeDelta::seconds(59), ..collecting };
        for f in [unwanted, late] {
            assert_eq!(plan(&f), Step::StopReader, "{state:?}");
            let told = |state| Facts { reader: Some(ReaderFacts { stop: Some(call(state, Some(200))) }), ..f };
            assert_eq!(plan(&told(CallState::Unknown)), Step::StopReader, "{state:?}");
            assert_eq!(plan(&told(CallState::Answered)), Step::Look, "{state:?}");
            let told = told(CallState::Answered);
            let seen = |status| judge(&told, &status, false, true).0;
            assert_eq!(seen(IntentStatus::RequiresCapture), Seen::Authorised);
            assert_eq!(seen(IntentStatus::Succeeded), Seen::Authorised);
            assert!(matches!(seen(IntentStatus::RequiresPaymentMethod), Seen::Abandoned | Seen::OutOfTime));
        }
    }
}

#[test]
fn a_reader_that_may_not_have_been_told_is_told_again() {
    let reader = Some(ReaderFacts::default());
    let unknown = Facts { reader, call: Some(call(CallState::Unknown, None)), ..facts(State::AuthUnknown) };
    let nobody = IntentStatus::RequiresPaymentMethod;
    assert_eq!(judge(&unknown, &nobody, false, true), (Seen::Confirming, Key::Same));
    let refused = Facts { call: Some(call(CallState::Answered, Some(400))), ..unknown };
    assert_eq!(judge(&refused, &nobody, false, true).0, Seen::Refused);
    assert_eq!(judge(&unknown, &nobody, true, true).0, Seen::Declined);
    let waiting = Facts { state: State::ActionRequired, ..unknown };
    assert_eq!(next(State::ActionRequired, judge(&waiting, &nobody, false, true).0), None, "it waits for a card");
}

mod walk {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is observed in whatever order, at most one sale and one capture lie on the way.
        #[test]
        fn any_order_of_news_sells_and_captures_at_most_once(news in prop::collection::vec(0..Seen::ALL.len(), 0..60)) {
            let (mut state, mut sales, mut captures, mut refunds) = (State::New, 0, 0, 0);
            for seen in news.into_iter().map(|i| Seen::ALL[i]) {
                if let Some(to) = next(state, seen) {
                    sales += i32::from(seen == Seen::Sold);
                    captures += i32::from(to == State::Captured);
                    refunds += i32::from(to == State::RefundPending);
                    state = to;
                }
            }
            prop_assert!(sales <= 1 && captures <= 1 && refunds <= 1);
            prop_assert!(captures == 0 || (sales == 1 && refunds == 0));
        }
    }
}
