//! The rules one by one. How they behave together, with a sale that answers late, is `tests/tests/all/pace.rs`.

use proptest::prelude::*;

use super::*;

const CEILINGS: Ceilings = Ceilings {
    hold_ms: 200,
    lock_wait_ms: 100,
    write_ms: 200,
    pool_percent: 90,
    errors_percent: 2,
    payments_late_s: 20,
    payments_in_doubt: 10,
};

fn bounds() -> Bounds {
    Bounds { rate_min: 10, rate_max: 1000, inside_min: 100, inside_max: 4000, mode: Mode::Measured, ceilings: CEILINGS }
}

/// All is well, and as many come in as may.
fn well(at_s: i64) -> Measured {
    Measured {
        at_ms: at_s * 1000,
        hubs: 2,
        hold_ms: Some(20),
        lock_wait_ms: 5,
        write_ms: 5,
        pool_percent: 20,
        errors_percent: 0,
        payments_late_s: 0,
        payments_in_doubt: 0,
        gate_closed: false,
        inside: 500,
        let_in_minute: u32::MAX,
    }
}

fn hold(at_s: i64, ms: u32) -> Measured {
    Measured { hold_ms: Some(ms), ..well(at_s) }
}

/// Takes a step a second from `at`, until (not at) the other second. Returns the reasons.
fn run(state: &mut State, bounds: &Bounds, seconds: std::ops::Range<i64>, at: impl Fn(i64) -> Measured) -> Vec<Reason> {
    seconds
        .map(|second| {
            let decision = step(&at(second), state, bounds);
            *state = decision.state;
            decision.reason
        })
        .collect()
}

fn at_rate(rate: u32) -> State {
    State { rate_minute: rate, ..State::new(&bounds()) }
}

#[test]
fn it_falls_by_a_quarter_a_half_or_three_quarters_and_waits_for_the_effect() {
    let falls_at = 2;
    for (ms, after, seconds) in [(220, 750, 14), (300, 500, 9), (600, 250, 9)] {
        let mut state = at_rate(1000);
        let reasons = run(&mut state, &bounds(), 0..falls_at + seconds, |at| hold(at, ms));
        assert_eq!(state.rate_minute, after, "{ms} ms: {reasons:?}");
        let strain = Strain { signal: Signal::Hold, value: ms, ceiling: 200 };
        let expected: Vec<_> = (0..falls_at + seconds)
            .map(|at| if at == falls_at { Reason::TooMuch(strain) } else { Reason::Settling(strain) })
            .collect();
        assert_eq!(reasons, expected);
        run(&mut state, &bounds(), falls_at + seconds..falls_at + seconds + 2, |at| hold(at, ms));
        assert!(state.rate_minute < after, "it falls again");
    }
}

/// What it remembers of an hour that has not come yet keeps it neither high nor low.
#[test]
fn a_clock_that_is_set_back_holds_up_neither_a_fall_nor_a_rise() {
    let mut state = at_rate(1000);
    run(&mut state, &bounds(), 7_200..7_210, |at| hold(at, 220));
    assert_eq!(state.rate_minute, 750);
    let mut too_much = state.clone();
    run(&mut too_much, &bounds(), 3_600..3_620, |at| hold(at, 600));
    assert_eq!(too_much.rate_minute, 187, "it falls as if it had fallen just now");
    run(&mut state, &bounds(), 3_600..3_960, well);
    assert_eq!(state.rate_minute, 850 + 100, "and rises: as far as it may, and beyond after four minutes");
}

#[test]
fn one_bad_second_changes_nothing_and_the_band_holds() {
    let mut state = at_rate(1000);
    run(&mut state, &bounds(), 0..1, |at| hold(at, 250));
    run(&mut state, &bounds(), 1..60, |at| hold(at, 150));
    assert_eq!(state.rate_minute, 1000);
    let mut state = at_rate(500);
    let reasons = run(&mut state, &bounds(), 0..600, |at| hold(at, if at % 2 == 0 { 130 } else { 190 }));
    assert_eq!(state.rate_minute, 500);
    assert!(reasons.iter().all(|reason| matches!(reason, Reason::Near(_))));
}

#[test]
fn it_rises_by_a_fortieth_each_ten_seconds_and_only_when_all_is_well() {
    let mut state = at_rate(10);
    run(&mut state, &bounds(), 0..10, well);
    assert_eq!(state.rate_minute, 10, "ten seconds have to be well");
    run(&mut state, &bounds(), 10..11, well);
    assert_eq!(state.rate_minute, 34);
    run(&mut state, &bounds(), 11..71, well);
    assert_eq!(state.rate_minute, 34 + 6 * 24);
    let reasons = run(&mut state, &bounds(), 71..600, well);
    assert_eq!((state.rate_minute, reasons.last()), (1000, Some(&Reason::AtMost { rate: 1000 })));
}

#[test]
fn a_closed_gate_stops_it_at_once_and_it_comes_back_from_a_quarter() {
    let closed = |at| Measured { gate_closed: true, ..well(at) };
    let mut state = at_rate(800);
    let reasons = run(&mut state, &bounds(), 0..100, closed);
    assert_eq!((state.rate_minute, &reasons[0]), (0, &Reason::GateClosed));
    let opened = step(&well(100), &state, &bounds());
    assert_eq!((opened.state.rate_minute, opened.reason), (200, Reason::GateOpened { rate: 200 }));
    // Nor does a fixed rate let anybody in to a sale that can't be paid.
    let fixed = Bounds { mode: Mode::Fixed(300), ..bounds() };
    assert_eq!(step(&closed(0), &state, &fixed).state.rate_minute, 0);
    assert_eq!(step(&hold(1, 900), &state, &fixed).state.rate_minute, 300, "whatever is measured");
}

#[test]
fn a_pause_stops_it_and_a_gate_that_closed_meanwhile_does_after_it() {
    let paused = Bounds { mode: Mode::Paused, ..bounds() };
    let mut state = at_rate(800);
    assert_eq!(run(&mut state, &paused, 0..3, well), [Reason::Paused; 3]);
    assert_eq!(run(&mut state, &paused, 3..4, |at| Measured { gate_closed: true, ..well(at) }), [Reason::Paused]);
    assert_eq!(run(&mut state, &bounds(), 4..5, |at| Measured { gate_closed: true, ..well(at) }), [Reason::GateClosed]);
    assert_eq!(state.rate_minute, 0);
    assert_eq!(run(&mut state, &bounds(), 5..6, well), [Reason::GateOpened { rate: 200 }]);
    let mut state = at_rate(800);
    run(&mut state, &paused, 0..3, well);
    assert_eq!(run(&mut state, &bounds(), 3..4, well), [Reason::Resumed { rate: 200 }]);
}

#[test]
fn it_stays_as_it_is_while_nobody_measures_and_says_so_once() {
    let silent = |at_s| Measured { hubs: 0, hold_ms: None, pool_percent: 0, ..well(at_s) };
    let first = step(&silent(0), &at_rate(500), &bounds());
    assert_eq!((first.reason, first.changed, first.state.rate_minute), (Reason::NothingMeasured, true, 500));
    let second = step(&silent(1), &first.state, &bounds());
    assert_eq!((second.reason, second.changed, second.state.rate_minute), (Reason::NothingMeasured, false, 500));
    let back = step(&well(2), &second.state, &bounds());
    assert!(back.changed && matches!(back.reason, Reason::Waiting { .. }), "{back:?}");
}

#[test]
fn a_rate_that_was_too_much_is_kept_away_from_and_tried_again_later_each_time() {
    // The sale bears 600 a minute, and at 601 it is far too slow: no band helps.
    let mut state = at_rate(500);
    let mut falls = Vec::new();
    for second in 0..7_200 {
        let ms = if state.rate_minute > 600 { 250 } else { 20 };
        let decision = step(&hold(second, ms), &state, &bounds());
        if let Reason::TooMuch(_) = decision.reason {
            falls.push(second);
        }
        state = decision.state;
    }
    let waits: Vec<_> = falls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((2..=7).contains(&falls.len()), "{falls:?}");
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{falls:?}");
    assert!(state.rate_minute > 400, "{state:?}");
}

#[test]
fn a_rate_that_nobody_uses_is_not_raised_but_the_number_inside_is() {
    let unused = |at| Measured { let_in_minute: 40, ..well(at) };
    let mut state = State { inside_max: 3990, ..at_rate(100) };
    let reasons = run(&mut state, &bounds(), 0..60, unused);
    assert_eq!((state.rate_minute, state.inside_max), (100, 4000));
    assert_eq!(reasons.last(), Some(&Reason::Unused { rate: 100, let_in: 40 }));
}

#[test]
fn far_too_much_keeps_the_number_inside_at_what_it_is() {
    let mut state = at_rate(1000);
    run(&mut state, &bounds(), 0..3, |at| hold(at, 500));
    assert_eq!(state.inside_max, 500);
    run(&mut state, &bounds(), 3..14, |at| Measured { inside: 60, ..hold(at, 500) });
    assert_eq!(state.inside_max, 100, "not below what the operator allows");
    run(&mut state, &bounds(), 14..1000, well);
    assert_eq!(state.inside_max, 4000);
}

#[test]
fn the_nearest_ceiling_is_named() {
    let near = Measured { pool_percent: 80, payments_late_s: 19, ..well(0) };
    let decision = step(&near, &at_rate(100), &bounds());
    assert_eq!(decision.reason, Reason::Near(Strain { signal: Signal::PaymentsLate, value: 19, ceiling: 20 }));
    assert_eq!(decision.reason.to_string(), "kept: payments are late by 19 s (at most 20)");
    let none = step(&Measured { hold_ms: None, ..well(0) }, &at_rate(100), &bounds());
    assert!(matches!(none.reason, Reason::Waiting { .. }), "too few held to say: {none:?}");
}

#[test]
fn an_operators_bounds_hold_at_once() {
    let narrow = Bounds { rate_max: 300, inside_max: 1000, ..bounds() };
    let decision = step(&well(0), &at_rate(800), &narrow);
    assert_eq!((decision.state.rate_minute, decision.state.inside_max), (300, 1000));
    assert_eq!(decision.reason, Reason::Bounds { rate_min: 10, rate_max: 300 });
}

#[test]
fn a_reason_is_written_down_under_its_code() {
    let strain = Strain { signal: Signal::LockWait, value: 1, ceiling: 2 };
    let some = [
        Reason::TooMuch(strain),
        Reason::Settling(strain),
        Reason::AtLeast(strain),
        Reason::Near(strain),
        Reason::Calm { for_s: 1 },
        Reason::Waiting { calm_s: 1 },
        Reason::BelowKnee { rate: 1, again_in_s: 2 },
        Reason::Unused { rate: 1, let_in: 2 },
        Reason::AtMost { rate: 1 },
        Reason::NothingMeasured,
        Reason::GateClosed,
        Reason::GateOpened { rate: 1 },
        Reason::Paused,
        Reason::Resumed { rate: 1 },
        Reason::Fixed { rate: 1 },
        Reason::Bounds { rate_min: 1, rate_max: 2 },
    ];
    for reason in some {
        let json = serde_json::to_value(reason).unwrap();
        assert_eq!(json["code"], reason.code());
        assert_eq!(serde_json::from_value::<Reason>(json).unwrap(), reason);
    }
    let json = serde_json::to_value(Reason::TooMuch(strain)).unwrap();
    assert_eq!(json, serde_json::json!({ "code": "too_much", "signal": "lock_wait", "value": 1, "ceiling": 2 }));
    let state = at_rate(7);
    assert_eq!(serde_json::from_value::<State>(serde_json::to_value(&state).unwrap()).unwrap(), state);
}

fn anything() -> impl Strategy<Value = Measured> {
    let figures = (0u32..2000, 0u32..400, 0u32..101, 0u32..20, 0u32..100, 0u32..30);
    (figures, 0u32..3, prop::bool::weighted(0.05), 0u32..10_000, 0u32..3000, 0i64..5_000).prop_map(
        |(
            (hold_ms, lock_wait_ms, pool_percent, errors_percent, late, doubt),
            hubs,
            gate_closed,
            inside,
            in_,
            after,
        )| {
            Measured {
                at_ms: after,
                hubs,
                hold_ms: (hold_ms % 3 > 0).then_some(hold_ms),
                lock_wait_ms,
                write_ms: lock_wait_ms / 2,
                pool_percent,
                errors_percent,
                payments_late_s: late,
                payments_in_doubt: doubt,
                gate_closed,
                inside,
                let_in_minute: in_,
            }
        },
    )
}

proptest! {
    #[test]
    fn whatever_is_measured_it_stays_within_its_bounds(steps in prop::collection::vec(anything(), 1..300), least in 0u32..50) {
        let bounds = Bounds { rate_min: least, ..bounds() };
        let mut state = State::new(&bounds);
        let mut now = 0;
        for mut measured in steps {
            now += measured.at_ms; // each comes some time after the last
            measured.at_ms = now;
            let decision = step(&measured, &state, &bounds);
            let (was, is) = (state.rate_minute, decision.state.rate_minute);
            if measured.gate_closed {
                prop_assert_eq!(is, 0);
            } else {
                prop_assert!((least..=1000).contains(&is));
            }
            prop_assert!((100..=4000).contains(&decision.state.inside_max));
            let strain = bounds.ceilings.nearest(&measured);
            if is > was && state.stopped.is_none() {
                prop_assert!(strain.percent() < WELL && measured.hubs > 0, "{:?}", decision.reason);
                prop_assert!(is - was <= 25, "{} to {}", was, is);
            }
            if is < was && !measured.gate_closed {
                prop_assert!(strain.percent() >= 100 && measured.hubs > 0, "{:?}", decision.reason);
            }
            let moved = (is, decision.state.inside_max) != (was, state.inside_max);
            prop_assert!(!moved || decision.changed);
            state = decision.state;
        }
    }
}
