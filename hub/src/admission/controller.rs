//! The pace at which a line is let in: lowered fast when what was measured is too much, raised slowly when all is well.
//! Pure; one step each time that a line is looked at, by whichever hub does it.
//!
//! Invariants
//! - Rate and number inside stay within the operator's bounds, except that a closed gate and a pause stop everything.
//! - It falls by a share and rises by steps, so that it is low soon and high late.
//! - It does not swing: between what is too much and what is well lies a band in which nothing moves; a rate that was
//!   too much is remembered, and tried again later each time that it fails; and a rate that nobody uses is not raised.
//! - Every step says why it did what it did, with the figures.

mod reason; // why, in figures and in words
mod rule; // the ceilings, and which is nearest

use serde::{Deserialize, Serialize};

pub use self::{
    reason::Reason,
    rule::{Ceilings, Signal, Strain},
};

/// What is known of the sale at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// By the clock of the database, which all hubs share. Milliseconds.
    pub at_ms: i64,
    /// Hubs whose measurements are fresh. Of none, nothing below but payments and people is known.
    pub hubs: u32,
    /// Of the slowest hub: the time that holding takes, p99, milliseconds. `None` if too few held.
    pub hold_ms: Option<u32>,
    /// How long a batch waits for its event's lock, milliseconds.
    pub lock_wait_ms: u32,
    /// How long a small write takes, milliseconds.
    pub write_ms: u32,
    /// Connections in use, of the fullest pool.
    pub pool_percent: u32,
    /// Answers that were a fault of ours, of all answers.
    pub errors_percent: u32,
    /// How long the payment that waits longest has waited beyond its time, seconds.
    pub payments_late_s: u32,
    pub payments_in_doubt: u32,
    pub gate_closed: bool,
    /// People with a live pass, or a live hold whose pass is over.
    pub inside: u32,
    /// People who were called during the last minute, whether or not they came: many do not.
    pub let_in_minute: u32,
}

/// What the operator allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// People a minute. It starts at the least.
    pub rate_min: u32,
    pub rate_max: u32,
    /// People inside at once.
    pub inside_min: u32,
    pub inside_max: u32,
    pub mode: Mode,
    pub ceilings: Ceilings,
}

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Measured,
    /// So many a minute, whatever is measured; a closed gate still stops them.
    Fixed(u32),
    Paused,
}

/// What is remembered between steps. Written down with the line, so that any hub goes on where another ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub rate_minute: u32,
    pub inside_max: u32,
    /// Since when all has been well, and since when it has been too much.
    calm_since_ms: Option<i64>,
    over_since_ms: Option<i64>,
    fell_at_ms: Option<i64>,
    rose_at_ms: Option<i64>,
    /// Whether the rate has risen since it fell: if not, it is not this rate that is too much.
    rose: bool,
    /// The rate that was too much the last time.
    knee: Option<Knee>,
    /// Why nobody is let in, and at which rate they were before.
    stopped: Option<Stopped>,
    /// Whether the hubs had been silent before.
    unmeasured: bool,
    fixed: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Knee {
    too_much: u32,
    /// It rises so far for now.
    up_to: u32,
    /// When it was found, or gone further from.
    at_ms: i64,
    /// How long until it goes further. Doubled each time that what was too much still is.
    wait_s: i64,
    further_percent: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stopped {
    by_gate: bool,
    rate_before: u32,
}

/// The state after a step, and why it is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub state: State,
    pub reason: Reason,
    /// Whether rate, number inside, or who decides are others than before: what is written into the log.
    pub changed: bool,
}

/// Too much has to last so long: two rows of a hub, so that a single bad second changes nothing.
const OVER_MS: i64 = 2_000;
/// After a fall its effect is waited for: people who are in stay in.
const FALL_AGAIN_MS: i64 = 15_000;
const FALL_FAR_AGAIN_MS: i64 = 10_000;
/// All has to be well so long before it rises, and so long lies between two rises.
const CALM_MS: i64 = 10_000;
const RISE_AGAIN_MS: i64 = 10_000;
/// After a fall it rises no sooner than this.
const RISE_AFTER_FALL_MS: i64 = 30_000;
/// From the least to the most in so many steps.
const STEPS: u32 = 40;
/// A rate that was too much is left alone for so long at first, and at most.
const KNEE_WAIT_S: i64 = 240;
const KNEE_WAIT_MAX_S: i64 = 3_840;
/// It stays below a rate that was too much by so much.
const BELOW_PERCENT: u32 = 85;
/// It goes further by so much of that rate the first time; twice as much after each time that went well.
const FURTHER_PERCENT: u32 = 10;
/// From here on, in per cent of a ceiling, it falls by half and more.
const FAR: u32 = 150;
const VERY_FAR: u32 = 300;
/// Below this, in per cent of the nearest ceiling, all is well.
const WELL: u32 = 60;

impl State {
    /// How a line begins: at the least rate.
    pub fn new(bounds: &Bounds) -> Self {
        Self {
            rate_minute: bounds.rate_min,
            inside_max: bounds.inside_max,
            calm_since_ms: None,
            over_since_ms: None,
            fell_at_ms: None,
            rose_at_ms: None,
            rose: true,
            knee: None,
            stopped: None,
            unmeasured: false,
            fixed: None,
        }
    }

    /// What is remembered of a time that is still to come was before a clock that was set back: nobody waits for it.
    fn not_later_than(&mut self, now: i64) {
        let remembered = [&mut self.calm_since_ms, &mut self.over_since_ms, &mut self.fell_at_ms, &mut self.rose_at_ms];
        for at in remembered.into_iter().flatten().chain(self.knee.as_mut().map(|knee| &mut knee.at_ms)) {
            *at = now.min(*at);
        }
    }
}

/// Decides the pace from what was measured. At any interval, of seconds at most.
pub fn step(measured: &Measured, state: &State, bounds: &Bounds) -> Decision {
    let mut next = state.clone();
    let reason = decide(measured, &mut next, bounds);
    let changed = (next.rate_minute, next.inside_max) != (state.rate_minute, state.inside_max)
        || (next.stopped, next.unmeasured, next.fixed) != (state.stopped, state.unmeasured, state.fixed);
    Decision { state: next, reason, changed }
}

fn decide(measured: &Measured, state: &mut State, bounds: &Bounds) -> Reason {
    let now = measured.at_ms;
    state.not_later_than(now);
    let paused = bounds.mode == Mode::Paused;
    if paused || measured.gate_closed {
        let rate_before = state.stopped.map_or(state.rate_minute, |stopped| stopped.rate_before);
        state.stopped = Some(Stopped { by_gate: measured.gate_closed, rate_before });
        state.rate_minute = 0;
        (state.calm_since_ms, state.over_since_ms) = (None, None);
        return if paused { Reason::Paused } else { Reason::GateClosed };
    }
    if let Mode::Fixed(rate) = bounds.mode {
        (state.stopped, state.fixed) = (None, Some(rate));
        (state.rate_minute, state.inside_max) = (rate, bounds.inside_max);
        (state.calm_since_ms, state.over_since_ms) = (None, None);
        return Reason::Fixed { rate };
    }
    state.fixed = None;
    if let Some(stopped) = state.stopped.take() {
        // Nobody knows what the sale bears now: from a quarter, and up slowly; from the least, if it is still too much.
        let most = if bounds.ceilings.nearest(measured).percent() < 100 { stopped.rate_before / 4 } else { 0 };
        state.rate_minute = most.clamp(bounds.rate_min, bounds.rate_max);
        (state.rose_at_ms, state.rose) = (Some(now), false);
        let rate = state.rate_minute;
        return if stopped.by_gate { Reason::GateOpened { rate } } else { Reason::Resumed { rate } };
    }
    let within = state.rate_minute.clamp(bounds.rate_min, bounds.rate_max);
    let inside = state.inside_max.clamp(bounds.inside_min, bounds.inside_max);
    if (within, inside) != (state.rate_minute, state.inside_max) {
        (state.rate_minute, state.inside_max) = (within, inside);
        return Reason::Bounds { rate_min: bounds.rate_min, rate_max: bounds.rate_max };
    }
    state.unmeasured = measured.hubs == 0;
    if state.unmeasured {
        (state.calm_since_ms, state.over_since_ms) = (None, None);
        return Reason::NothingMeasured;
    }
    let strain = bounds.ceilings.nearest(measured);
    if strain.percent() >= 100 {
        state.calm_since_ms = None;
        let since = *state.over_since_ms.get_or_insert(now);
        return fall(measured, state, bounds, strain, now - since);
    }
    state.over_since_ms = None;
    if strain.percent() >= WELL {
        state.calm_since_ms = None;
        return Reason::Near(strain);
    }
    let calm_ms = now - *state.calm_since_ms.get_or_insert(now);
    rise(measured, state, bounds, calm_ms)
}

fn fall(measured: &Measured, state: &mut State, bounds: &Bounds, strain: Strain, over_ms: i64) -> Reason {
    let now = measured.at_ms;
    let far = strain.percent() >= FAR;
    let since_fall = state.fell_at_ms.map_or(i64::MAX, |fell| now - fell);
    let again_ms = if far { FALL_FAR_AGAIN_MS } else { FALL_AGAIN_MS };
    if since_fall < again_ms || over_ms < OVER_MS {
        return Reason::Settling(strain);
    }
    if state.rate_minute <= bounds.rate_min && (!far || state.inside_max <= bounds.inside_min) {
        return Reason::AtLeast(strain);
    }
    if state.rose {
        // What was too much is remembered, and for longer if it was known.
        let too_much = state.rate_minute;
        let known = state.knee.filter(|knee| too_much >= share(knee.too_much, BELOW_PERCENT));
        let wait_s = known.map_or(KNEE_WAIT_S, |knee| (knee.wait_s * 2).min(KNEE_WAIT_MAX_S));
        let up_to = share(too_much, BELOW_PERCENT).max(bounds.rate_min);
        state.knee = Some(Knee { too_much, up_to, at_ms: now, wait_s, further_percent: FURTHER_PERCENT });
        state.rose = false;
    }
    let keep_percent = match strain.percent() {
        VERY_FAR.. => 25,
        FAR.. => 50,
        _ => 75,
    };
    state.rate_minute = (share(state.rate_minute, keep_percent)).max(bounds.rate_min);
    if far {
        // One comes in when one goes out.
        state.inside_max = measured.inside.clamp(bounds.inside_min, state.inside_max.max(bounds.inside_min));
    }
    state.fell_at_ms = Some(now);
    Reason::TooMuch(strain)
}

fn rise(measured: &Measured, state: &mut State, bounds: &Bounds, calm_ms: i64) -> Reason {
    let now = measured.at_ms;
    if state.rate_minute >= bounds.rate_max && state.inside_max >= bounds.inside_max {
        return Reason::AtMost { rate: bounds.rate_max };
    }
    let since = |at: Option<i64>| at.map_or(i64::MAX, |at| now - at);
    let early = since(state.rose_at_ms) < RISE_AGAIN_MS || since(state.fell_at_ms) < RISE_AFTER_FALL_MS;
    if calm_ms < CALM_MS || early {
        return Reason::Waiting { calm_s: seconds(calm_ms) };
    }
    let inside = (state.inside_max + a_step(bounds.inside_min, bounds.inside_max)).min(bounds.inside_max);
    let more_inside = inside > state.inside_max;
    let rate = match higher(measured, state, bounds) {
        Ok(rate) => rate,
        Err(_) if more_inside => state.rate_minute,
        Err(reason) => return reason,
    };
    state.rose |= rate > state.rate_minute;
    (state.rate_minute, state.inside_max) = (rate, inside);
    state.rose_at_ms = Some(now);
    Reason::Calm { for_s: seconds(calm_ms) }
}

/// The next rate upwards, or why there is none.
fn higher(measured: &Measured, state: &mut State, bounds: &Bounds) -> Result<u32, Reason> {
    let rate = state.rate_minute;
    // What nobody uses proves nothing: it would be far too high when somebody does.
    if measured.let_in_minute.saturating_mul(2) < rate {
        return Err(Reason::Unused { rate, let_in: measured.let_in_minute });
    }
    let step = a_step(bounds.rate_min, bounds.rate_max);
    let Some(knee) = &mut state.knee else { return Ok((rate + step).min(bounds.rate_max)) };
    if rate >= knee.up_to {
        let left_s = knee.wait_s - (measured.at_ms - knee.at_ms) / 1000;
        if left_s > 0 {
            return Err(Reason::BelowKnee { rate: knee.too_much, again_in_s: left_s as u32 });
        }
        // Somewhat further, and further each time that it bears it.
        knee.up_to = knee.up_to.saturating_add(share(knee.too_much, knee.further_percent).max(step));
        knee.further_percent = (knee.further_percent * 2).min(100);
        knee.at_ms = measured.at_ms;
    }
    let most = knee.up_to.clamp(bounds.rate_min, bounds.rate_max);
    if rate + step >= bounds.rate_max && most == bounds.rate_max {
        state.knee = None; // it bears all that is allowed
    }
    Ok((rate + step).min(most))
}

fn a_step(least: u32, most: u32) -> u32 {
    (most.saturating_sub(least) / STEPS).max(1)
}

fn share(of: u32, percent: u32) -> u32 {
    (u64::from(of) * u64::from(percent) / 100) as u32
}

fn seconds(ms: i64) -> u32 {
    u32::try_from(ms / 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
