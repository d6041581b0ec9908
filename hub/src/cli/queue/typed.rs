//! What was typed after `fullhouse queue`, read so that all that is wrong is told at once: each with its option, and
//! with what is expected there.

use anyhow::bail;
use chrono::{DateTime, Utc};

use crate::waiting_room::bounds::{Fault, Faults};

/// What a field of the line is called here.
const OPTIONS: [(&str, &str); 11] = [
    ("joins_at", "--joins-at"),
    ("closes_at", "--closes-at"),
    ("rate_minute_min", "--rate-min"),
    ("rate_minute_max", "--rate-max"),
    ("rate_fixed", "--rate"),
    ("inside_max", "--inside-max"),
    ("holds_live_max", "--holds-max"),
    ("checkouts_live_max", "--checkouts-max"),
    ("source", "--source"),
    ("round", "--round"),
    ("value_due_at", "--value-due-at"),
];
const A_TIME: &str = "a time with its zone is expected, such as 2027-03-01T08:00:00Z or 2027-03-01T17:00:00+09:00";

#[derive(Debug, Default)]
pub struct Typed {
    faults: Vec<String>,
}

impl Typed {
    pub fn wrong(&mut self, says: impl Into<String>) {
        self.faults.push(says.into());
    }

    pub fn time(&mut self, option: &str, text: &str) -> Option<DateTime<Utc>> {
        let read = text.parse().ok();
        if read.is_none() {
            self.wrong(format!("{option} {text:?}: {A_TIME}"));
        }
        read
    }

    pub fn number(&mut self, option: &str, text: &str) -> Option<i32> {
        let read = text.parse().ok();
        if read.is_none() {
            self.wrong(format!("{option} {text:?}: a whole number is expected"));
        }
        read
    }

    /// `Some(None)` for the word.
    pub fn number_or(&mut self, option: &str, text: &str, word: &str) -> Option<Option<i32>> {
        if text == word {
            return Some(None);
        }
        let read = text.parse().ok().map(Some);
        if read.is_none() {
            self.wrong(format!("{option} {text:?}: a whole number is expected, or `{word}`"));
        }
        read
    }

    /// `Some(None)` for the word.
    pub fn time_or(&mut self, option: &str, text: &str, word: &str) -> Option<Option<DateTime<Utc>>> {
        if text == word {
            return Some(None);
        }
        let read = text.parse().ok().map(Some);
        if read.is_none() {
            self.wrong(format!("{option} {text:?}: {A_TIME}, or `{word}`"));
        }
        read
    }

    /// What the line itself finds wrong.
    pub fn found(&mut self, faults: Faults) {
        for Fault { field, says } in faults.0 {
            match OPTIONS.iter().find(|(name, _)| *name == field) {
                Some((_, option)) => self.wrong(format!("{option}: {says}")),
                None => self.wrong(says),
            }
        }
    }

    /// All of it, or nothing if nothing is wrong.
    pub fn verdict(self) -> anyhow::Result<()> {
        match self.faults.as_slice() {
            [] => Ok(()),
            [one] => bail!("{one}"),
            several => {
                bail!("{} things are wrong, and nothing was changed:\n  {}", several.len(), several.join("\n  "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_names_its_option_and_what_is_expected() {
        let mut typed = Typed::default();
        assert_eq!(typed.number_or("--rate", "auto", "auto"), Some(None));
        assert_eq!(typed.number_or("--rate", "7", "auto"), Some(Some(7)));
        assert!(typed.time_or("--next-batch-at", "2027-03-01T17:00:00+09:00", "none").flatten().is_some());
        assert!(Typed::default().verdict().is_ok());
        assert_eq!((typed.time("--joins-at", "soon"), typed.number("--inside-max", "many")), (None, None));
        typed.found(Faults(vec![Fault { field: "rate_fixed", says: "9 is too much".to_owned() }]));
        let said = typed.verdict().unwrap_err().to_string();
        for part in
            ["3 things", "--joins-at \"soon\": a time", "--inside-max \"many\": a whole", "--rate: 9 is too much"]
        {
            assert!(said.contains(part), "{said}");
        }
    }
}
