//! The pace of a line follows what the sale bears: it settles, stays within its bounds, and does not swing.
//!
//! An hour of a simulated sale each, of several seeds. The control is a pace that follows what it sees at once: it
//! swings, and the same measures catch it.

use fullhouse::admission::controller::{Measured, Reason};
use fullhouse_tests::plant::{
    Ours, Pace, Plant, Second, bounds,
    troubles::{self, SECONDS, Scenario},
    turns,
};

const SEEDS: std::ops::Range<u64> = 1..5;
/// In an hour: what was too much is tried again, later each time.
const TURNS_MAX: usize = 12;

fn scenario(name: &str) -> Scenario {
    troubles::all().into_iter().find(|scenario| scenario.name == name).unwrap()
}

fn run(scenario: &Scenario, seed: u64) -> Vec<Second> {
    let mut pace = Ours::new(bounds(scenario.rate_max, scenario.inside_max));
    Plant::new(seed, &scenario.troubles).run(SECONDS, &mut pace)
}

fn bad(trace: &[Second]) -> usize {
    trace.iter().filter(|second| second.hold_ms > 400.0).count()
}

/// Seconds from `from` until a minute begins in which holding is fast enough, but for three seconds.
fn settles_s(trace: &[Second], from: usize) -> usize {
    trace[from..].windows(60).position(|minute| bad(minute) <= 3).expect("it settles")
}

fn mean_rate(trace: &[Second], seconds: std::ops::Range<usize>) -> f64 {
    let count = seconds.len() as f64;
    trace[seconds].iter().map(|second| f64::from(second.rate_minute)).sum::<f64>() / count
}

#[test]
fn whatever_goes_wrong_it_stays_within_its_bounds_and_does_not_swing() {
    for scenario in troubles::all() {
        for seed in SEEDS {
            let trace = run(&scenario, seed);
            for (second, s) in trace.iter().enumerate() {
                let who = format!("{} seed {seed} second {second}: {s:?}", scenario.name);
                assert!(s.rate_minute <= scenario.rate_max && s.inside_max <= scenario.inside_max, "{who}");
                assert!(s.inside + s.expected <= scenario.inside_max, "{who}");
                assert!(second == 0 || s.rate_minute >= 20 || trace[second - 1].gate_closed, "{who}");
            }
            let turns = turns(&trace);
            println!("{} seed {seed}: {turns} turns, ends at {}", scenario.name, trace.last().unwrap().rate_minute);
            assert!(turns <= TURNS_MAX, "{} seed {seed}: {turns} turns", scenario.name);
        }
    }
}

#[test]
fn what_the_sale_bears_is_found_and_kept() {
    for seed in SEEDS {
        let trace = run(&scenario("too-much-allowed"), seed);
        let late = 1_800..3_600;
        let bad = bad(&trace[late.clone()]);
        let rate = mean_rate(&trace, late);
        println!("seed {seed}: {rate:.0} a minute, {bad} bad seconds of 1800");
        assert!(rate > 1_300.0 && bad < 90, "seed {seed}: {rate:.0} a minute, {bad} bad seconds");
    }
}

#[test]
fn a_slow_database_is_relieved_within_a_minute_and_the_rate_comes_back() {
    for seed in SEEDS {
        let trace = run(&scenario("slow-database"), seed);
        let before = mean_rate(&trace, 1_100..1_200);
        let (settles, bad) = (settles_s(&trace, 1_200), bad(&trace[1_200..1_800]));
        let after = mean_rate(&trace, 3_300..3_600);
        println!(
            "seed {seed}: settles in {settles} s, {bad} bad seconds of 600, {before:.0} before, {after:.0} at the end"
        );
        assert!(settles <= 60 && bad <= 120, "seed {seed}: {settles} s, {bad} bad seconds");
        assert!(after > 0.8 * before, "seed {seed}: {before:.0} before, {after:.0} after");
    }
}

#[test]
fn nobody_is_called_while_the_gate_is_closed_and_it_begins_again_low() {
    for seed in SEEDS {
        let trace = run(&scenario("payment-outage"), seed);
        let closed: Vec<usize> = (0..trace.len()).filter(|at| trace[*at].gate_closed).collect();
        let (first, last) = (closed[0], *closed.last().unwrap());
        assert!(first <= 1_215 && last >= 1_499, "{first} to {last}");
        // What is decided in a second counts from the next.
        for second in &trace[first + 3..=last] {
            assert_eq!(second.rate_minute, 0, "seed {seed}");
        }
        assert!(trace[first + 3..=last].iter().all(|second| second.reason == Some(Reason::GateClosed)));
        let before = trace[first - 20].rate_minute;
        let after = trace[last + 4].rate_minute;
        assert!(after > 0 && after <= before / 4 + 1, "seed {seed}: {before} before, {after} after");
        let end = mean_rate(&trace, 3_300..3_600);
        assert!(end > 0.8 * f64::from(before), "seed {seed}: {before} before, {end:.0} at the end");
    }
}

#[test]
fn payments_that_are_late_slow_the_line_before_the_gate_has_to_close() {
    for seed in SEEDS {
        let trace = run(&scenario("slow-payments"), seed);
        let before = mean_rate(&trace, 1_100..1_200);
        let during = mean_rate(&trace, 1_500..1_800);
        assert!(during < before / 2.0, "seed {seed}: {before:.0} before, {during:.0} during");
        assert!(trace.iter().all(|second| !second.gate_closed));
    }
}

#[test]
fn a_spike_is_over_soon_after_it_and_silence_changes_nothing() {
    for seed in SEEDS {
        let trace = run(&scenario("spike"), seed);
        let settles = settles_s(&trace, 1_200);
        assert!(settles <= 90, "seed {seed}: {settles} s from its beginning");
        let trace = run(&scenario("recovery"), seed);
        let silent: Vec<&Second> =
            trace.iter().filter(|second| second.reason == Some(Reason::NothingMeasured)).collect();
        assert!(silent.len() > 30 && silent.iter().all(|second| second.rate_minute == silent[1].rate_minute));
        let settles = settles_s(&trace, 1_260);
        println!("seed {seed}: {settles} s after the database was back");
        assert!(settles <= 90, "seed {seed}: {settles} s after the database was back");
    }
}

/// The control: twice as fast when all is well, half as fast when it is not, at once and without memory.
struct AtOnce(u32, u32, u32);

impl Pace for AtOnce {
    fn set(&mut self, measured: &Measured) -> (u32, u32, Option<Reason>) {
        let well = measured.hold_ms.is_none_or(|ms| ms < 400) && measured.payments_late_s < 15;
        self.0 = if well { self.0 * 2 } else { self.0 / 2 }.clamp(20, self.1);
        (self.0, self.2, None)
    }
}

#[test]
fn a_pace_that_follows_at_once_swings_and_is_caught_by_the_same_measures() {
    let scenario = scenario("too-much-allowed");
    let mut pace = AtOnce(20, scenario.rate_max, scenario.inside_max);
    let trace = Plant::new(1, &scenario.troubles).run(SECONDS, &mut pace);
    let (turns, bad) = (turns(&trace), bad(&trace[1_800..]));
    println!("{turns} turns, {bad} bad seconds of 1800");
    assert!(turns > TURNS_MAX && bad >= 90, "{turns} turns, {bad} bad seconds");
}
