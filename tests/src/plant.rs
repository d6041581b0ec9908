//! A sale to steer, second by second: people who come in when they are called, take seats and pay, a database and a
//! payment provider that bear only so much, and hubs that measure it late and roughly. The pace is the hub's own
//! (`admission::controller`).
//!
//! Everything is drawn from a seed, so a run is the same each time.

pub mod plot; // what a run looked like
pub mod troubles; // what goes wrong, and when

use std::collections::VecDeque;

use fullhouse::admission::controller::{Bounds, Ceilings, Measured, Mode, Reason, State, step};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use self::troubles::Trouble;

/// Writes that the database bears a second when it is well.
pub const DATABASE: f64 = 130.0;
/// Payments that the provider bears a second.
pub const PROVIDER: f64 = 30.0;

/// Who sets the pace.
pub trait Pace {
    /// Rate a minute and number inside, and why, if that is known.
    fn set(&mut self, measured: &Measured) -> (u32, u32, Option<Reason>);
}

/// The hub's controller.
pub struct Ours {
    pub bounds: Bounds,
    pub state: State,
}

impl Ours {
    pub fn new(bounds: Bounds) -> Self {
        Self { state: State::new(&bounds), bounds }
    }
}

impl Pace for Ours {
    fn set(&mut self, measured: &Measured) -> (u32, u32, Option<Reason>) {
        let decision = step(measured, &self.state, &self.bounds);
        self.state = decision.state;
        (self.state.rate_minute, self.state.inside_max, Some(decision.reason))
    }
}

/// What an operator of the plant allows: the ceilings are those of the settings.
pub fn bounds(rate_max: u32, inside_max: u32) -> Bounds {
    let ceilings = Ceilings::from(&fullhouse::config::Config::defaults().admission);
    Bounds { rate_min: 20, rate_max, inside_min: inside_max / 10, inside_max, mode: Mode::Measured, ceilings }
}

/// One second of a run.
#[derive(Debug, Clone, Copy)]
pub struct Second {
    pub rate_minute: u32,
    pub inside_max: u32,
    pub inside: u32,
    /// Called, and not come and not given up yet.
    pub expected: u32,
    /// What holding took, p99, as it was (not as it was measured).
    pub hold_ms: f64,
    pub payments_late_s: f64,
    pub gate_closed: bool,
    pub reason: Option<Reason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Takes seats, so many times.
    Hold(u8),
    Pay,
    /// Waits for the provider.
    Paying,
    Leave,
}

struct Person {
    at: u32,
    step: Step,
}

pub struct Plant<'a> {
    rng: SmallRng,
    troubles: &'a [Trouble],
    people: Vec<Person>,
    /// Called: when they come, or are given up.
    called: Vec<(u32, bool)>,
    budget: f64,
    /// Writes that wait.
    queue: f64,
    /// Payments that wait, each since when.
    payments: VecDeque<u32>,
    provider_budget: f64,
    let_in: VecDeque<u32>,
    silent_s: u32,
    down_s: u32,
}

impl<'a> Plant<'a> {
    pub fn new(seed: u64, troubles: &'a [Trouble]) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            troubles,
            people: Vec::new(),
            called: Vec::new(),
            budget: 0.0,
            queue: 0.0,
            payments: VecDeque::new(),
            provider_budget: 0.0,
            let_in: VecDeque::new(),
            silent_s: 0,
            down_s: 0,
        }
    }

    /// Runs so many seconds under a pace.
    pub fn run(mut self, seconds: u32, pace: &mut dyn Pace) -> Vec<Second> {
        let mut measured = None;
        let mut set = (0, 0, None);
        let mut trace = Vec::new();
        for now in 0..seconds {
            let mut second = self.live(now, set.0, set.1);
            // Hubs write every two seconds; who reads sees what was so then.
            if now % 2 == 0 {
                measured = Some(self.measure(now, &second));
            }
            let seen = measured.clone().expect("the first second is even");
            let inside = self.people.len() as u32;
            let known =
                Measured { at_ms: i64::from(now) * 1000, inside, let_in_minute: self.let_in.len() as u32, ..seen };
            set = pace.set(&known);
            second.reason = set.2;
            trace.push(second);
        }
        trace
    }

    fn live(&mut self, now: u32, rate_minute: u32, inside_max: u32) -> Second {
        let at = |of: fn(&Trouble, u32) -> f64| self.troubles.iter().map(|t| of(t, now)).product::<f64>();
        let (database, provider) = (DATABASE * at(Trouble::database), PROVIDER * at(Trouble::provider));
        let others: f64 = self.troubles.iter().map(|t| t.others(now)).sum();
        self.call(now, rate_minute, inside_max);
        let writes = self.act(now) + others;

        // One server, a queue before it: what does not fit waits, and even what fits meets others.
        let load = (writes / database.max(0.001)).min(0.97);
        self.queue = (self.queue + writes - database).clamp(0.0, 15.0 * DATABASE); // who waits longer has given up
        let waits_s = if database > 0.0 { self.queue / database } else { 15.0 };
        let hold_ms = (12.0 + 4.6 * 1000.0 / database.max(1.0) * load / (1.0 - load) + waits_s * 1000.0).min(15_000.0);
        self.silent_s = if database > 0.0 { 0 } else { self.silent_s + 1 };

        self.down_s = if provider > 0.0 { self.down_s.saturating_sub(1) } else { (self.down_s + 1).min(20) };
        self.provider_budget = (self.provider_budget + provider).min(2.0 * PROVIDER);
        while self.provider_budget >= 1.0 && self.payments.pop_front().is_some() {
            self.provider_budget -= 1.0;
            if let Some(person) = self.people.iter_mut().find(|p| p.step == Step::Paying) {
                *person = Person { at: now + 1, step: Step::Leave };
            }
        }
        Second {
            rate_minute,
            inside_max,
            inside: self.people.len() as u32,
            expected: self.called.len() as u32,
            hold_ms,
            payments_late_s: self.payments.front().map_or(0.0, |since| f64::from(now - since)),
            // The gate looks at the last calls: some seconds to close, some to open.
            gate_closed: self.down_s >= 10,
            reason: None,
        }
    }

    /// Calls as many as the two limits allow; of those who are called, some never come.
    fn call(&mut self, now: u32, rate_minute: u32, inside_max: u32) {
        let (arrived, waiting): (Vec<_>, Vec<_>) = self.called.drain(..).partition(|(at, _)| *at <= now);
        self.called = waiting;
        for _ in arrived.iter().filter(|(_, comes)| *comes) {
            let holds = self.rng.random_range(1..=4);
            let at = now + self.wait(10.0);
            self.people.push(Person { at, step: Step::Hold(holds) });
            self.let_in.push_back(now);
        }
        while self.let_in.front().is_some_and(|at| at + 60 <= now) {
            self.let_in.pop_front();
        }
        self.budget = (self.budget + f64::from(rate_minute) / 60.0).min(f64::from(rate_minute) / 60.0 + 1.0);
        let room = inside_max.saturating_sub((self.people.len() + self.called.len()) as u32);
        let calls = room.min(self.budget as u32);
        self.budget -= f64::from(calls);
        for _ in 0..calls {
            let comes = self.rng.random_bool(0.85);
            let after = if comes { self.wait(6.0).min(30) } else { 30 };
            self.called.push((now + after, comes));
        }
    }

    /// What people do in this second; returns how many writes it is.
    fn act(&mut self, now: u32) -> f64 {
        let mut writes = 0.0;
        let mut people = std::mem::take(&mut self.people);
        for person in people.iter_mut().filter(|p| p.at <= now) {
            let (step, after) = match person.step {
                Step::Hold(n) => {
                    writes += 1.0;
                    match n {
                        1 if self.rng.random_bool(0.7) => (Step::Pay, self.wait(60.0)),
                        1 => (Step::Leave, self.wait(30.0)),
                        n => (Step::Hold(n - 1), self.wait(20.0)),
                    }
                }
                Step::Pay => {
                    writes += 2.0; // the order and the attempt
                    self.payments.push_back(now);
                    (Step::Paying, 0)
                }
                Step::Paying | Step::Leave => continue,
            };
            *person = Person { at: now + after.max(1), step };
        }
        people.retain(|p| p.step != Step::Leave || p.at > now);
        self.people = people;
        writes
    }

    fn wait(&mut self, mean_s: f64) -> u32 {
        (-mean_s * (1.0 - self.rng.random::<f64>()).ln()).min(600.0).ceil() as u32
    }

    fn measure(&mut self, now: u32, second: &Second) -> Measured {
        let rough = 1.0 + self.rng.random_range(-0.1..0.1);
        let hold_ms = second.hold_ms * rough;
        Measured {
            at_ms: i64::from(now) * 1000,
            hubs: if self.silent_s > 10 { 0 } else { 2 },
            hold_ms: Some(hold_ms as u32),
            lock_wait_ms: (hold_ms / 4.0) as u32,
            write_ms: (hold_ms / 3.0) as u32,
            pool_percent: (hold_ms / 8.0).min(100.0) as u32,
            errors_percent: if hold_ms > 10_000.0 { 30 } else { 0 },
            payments_late_s: second.payments_late_s as u32,
            payments_in_doubt: if self.down_s > 0 { self.down_s.min(5) } else { 0 },
            gate_closed: second.gate_closed,
            inside: 0,
            let_in_minute: 0,
        }
    }
}

/// How often the rate turned from rising to falling or back. Standing still is no turn, nor is what a closed gate does.
pub fn turns(trace: &[Second]) -> usize {
    let mut turns = 0;
    let mut rising = true; // it begins at the least
    for pair in trace.windows(2).filter(|pair| pair.iter().all(|second| second.rate_minute > 0)) {
        let (was, is) = (pair[0].rate_minute, pair[1].rate_minute);
        if is != was && (is > was) != rising {
            rising = !rising;
            turns += 1;
        }
    }
    turns
}
