//! What a line may be set to, and all that is wrong with what somebody wants, at once.

use std::fmt;

use chrono::{DateTime, Datelike, TimeDelta, Utc};

use super::open::PublicValue;

/// Between the root that fixes the entries and the public value that shuffles them, at least.
pub const VALUE_AFTER_S: i64 = 60;
/// People a minute, and people inside; the database's constraints say so too.
const MANY: i32 = 1_000_000;
const TEXT_BYTES_MAX: usize = 200;

/// One thing that is wrong. `field` is its name on the wire; empty if it is none's alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub field: &'static str,
    pub says: String,
}

/// All that is wrong; at least one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    pub fn one(says: impl Into<String>) -> Self {
        Self(vec![Fault { field: "", says: says.into() }])
    }

    pub fn add(&mut self, field: &'static str, says: impl Into<String>) {
        self.0.push(Fault { field, says: says.into() });
    }

    /// `Ok` if nothing is wrong.
    pub fn none(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Fault { field, says }) in self.0.iter().enumerate() {
            let apart = if n == 0 { "" } else { "; " };
            let colon = if field.is_empty() { "" } else { ": " };
            write!(out, "{apart}{field}{colon}{says}")?;
        }
        Ok(())
    }
}

/// What somebody wants of a line; of what is not named nothing is said.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'a> {
    pub joins_at: Option<DateTime<Utc>>,
    pub closes_at: Option<DateTime<Utc>>,
    pub rate_minute_min: Option<i32>,
    pub rate_minute_max: Option<i32>,
    pub rate_fixed: Option<i32>,
    pub inside_max: Option<i32>,
    pub holds_live_max: Option<i32>,
    pub checkouts_live_max: Option<i32>,
    pub public: Option<&'a PublicValue>,
}

/// Draws that a line has at most, the first one included. Each stays public, with its reason.
pub const DRAWS_MAX: i32 = 20;

/// Everything that is wrong with it. `on_sale_at`: of the event, if that is known.
pub fn faults(wanted: &Wanted, on_sale_at: Option<DateTime<Utc>>) -> Faults {
    let mut faults = Faults::default();
    times(&mut faults, wanted, on_sale_at);
    let mut within = |field, value: Option<i32>, least: i32, why: &str| {
        if let Some(value) = value.filter(|value| !(least..=MANY).contains(value)) {
            faults.add(field, format!("{value} is not within its bounds, {least} to {MANY}{why}"));
        }
    };
    within("rate_minute_min", wanted.rate_minute_min, 0, "");
    within("rate_minute_max", wanted.rate_minute_max, 1, " (to call nobody, pause the line)");
    within("inside_max", wanted.inside_max, 1, " (to let nobody in, pause the line)");
    within("holds_live_max", wanted.holds_live_max, 1, "");
    within("checkouts_live_max", wanted.checkouts_live_max, 1, "");
    if let (Some(min), Some(max)) = (wanted.rate_minute_min, wanted.rate_minute_max) {
        if min > max {
            faults.add("rate_minute_min", format!("{min} is not within its bounds: the most is {max} a minute"));
        } else if let Some(rate) = wanted.rate_fixed.filter(|rate| !(min..=max).contains(rate)) {
            faults.add("rate_fixed", format!("{rate} is not within its bounds, {min} to {max} a minute"));
        }
    } else if let Some(rate) = wanted.rate_fixed.filter(|rate| !(0..=MANY).contains(rate)) {
        faults.add("rate_fixed", format!("{rate} is not within its bounds, 0 to {MANY} a minute"));
    }
    faults
}

/// A year that people write with four digits: others can be read, but not all of them stored or shown.
pub fn is_plausible(at: DateTime<Utc>) -> bool {
    (2000..=9999).contains(&at.year())
}

/// Without control characters but line breaks. Others stand for nothing, and are six times as long where a line is told:
/// with them it could be longer than its frame.
pub fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() && c != '\n')
}

fn times(faults: &mut Faults, wanted: &Wanted, on_sale_at: Option<DateTime<Utc>>) {
    if wanted.joins_at.is_some_and(|at| !is_plausible(at)) {
        faults.add("joins_at", "a year from 2000 to 9999 is needed");
    }
    if let (Some(joins_at), Some(closes_at)) = (wanted.joins_at, wanted.closes_at)
        && joins_at >= closes_at
    {
        faults.add("joins_at", "joining has to begin before it ends");
    }
    if let (Some(closes_at), Some(on_sale_at)) = (wanted.closes_at, on_sale_at)
        && closes_at > on_sale_at
    {
        faults.add("closes_at", format!("the entries have to be fixed before the sale opens, at {on_sale_at}"));
    }
    let Some(public) = wanted.public else { return };
    for (field, text) in [("source", &public.source), ("round", &public.round)] {
        if !(1..=TEXT_BYTES_MAX).contains(&text.len()) || !is_plain(text) {
            faults.add(field, format!("1 to {TEXT_BYTES_MAX} characters are needed, none of them a control character"));
        }
    }
    if let Some(closes_at) = wanted.closes_at
        && public.due_at < closes_at + TimeDelta::seconds(VALUE_AFTER_S)
    {
        let least = closes_at + TimeDelta::seconds(VALUE_AFTER_S);
        let why = "the public value has to come a minute after the entries are fixed, or later";
        faults.add("value_due_at", format!("{why}: {least}"));
    }
    if let Some(on_sale_at) = on_sale_at.filter(|at| public.due_at > *at) {
        faults.add("value_due_at", format!("the public value has to be out before the sale opens, at {on_sale_at}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(365 * 60) + TimeDelta::seconds(second)
    }

    fn fields(wanted: &Wanted, on_sale_at: Option<DateTime<Utc>>) -> Vec<&'static str> {
        faults(wanted, on_sale_at).0.iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn a_value_that_could_be_known_before_the_entries_are_fixed_is_refused() {
        let check = |due_at| {
            let public = PublicValue { source: "a beacon".into(), round: "7".into(), due_at };
            fields(&Wanted { closes_at: Some(at(100)), public: Some(&public), ..Wanted::default() }, Some(at(500)))
        };
        assert_eq!(check(at(159)), ["value_due_at"]);
        assert!(check(at(160)).is_empty() && check(at(500)).is_empty());
        assert_eq!(check(at(501)), ["value_due_at"]);
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once_and_of_what() {
        let public = PublicValue { source: String::new(), round: "7".into(), due_at: at(0) };
        let wanted = Wanted {
            joins_at: Some(at(100)),
            closes_at: Some(at(100)),
            rate_minute_min: Some(-1),
            rate_minute_max: Some(0),
            rate_fixed: Some(5),
            inside_max: Some(0),
            holds_live_max: Some(0),
            checkouts_live_max: Some(MANY + 1),
            public: Some(&public),
        };
        let all = [
            "joins_at",
            "closes_at",
            "source",
            "value_due_at",
            "rate_minute_min",
            "rate_minute_max",
            "inside_max",
            "holds_live_max",
            "checkouts_live_max",
            "rate_fixed",
        ];
        assert_eq!(fields(&wanted, Some(at(50))), all);
        let rate = |min, max, fixed| {
            let wanted = Wanted { rate_minute_min: min, rate_minute_max: max, rate_fixed: fixed, ..Wanted::default() };
            fields(&wanted, None)
        };
        assert!(rate(Some(0), Some(1), Some(1)).is_empty() && rate(None, None, Some(MANY)).is_empty());
        assert_eq!(rate(Some(2), Some(1), Some(1)), ["rate_minute_min"]);
        assert_eq!(rate(None, None, Some(-5)), ["rate_fixed"]);
        let long_ago = Wanted { joins_at: Some(DateTime::UNIX_EPOCH), ..Wanted::default() };
        assert_eq!(fields(&long_ago, None), ["joins_at"]);
    }
}
