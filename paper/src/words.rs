//! What buyers read on paper and in their mail, in their language. (The page has its own catalogue.)
//!
//! Invariants
//! - Every language has every text, with the same blanks to fill; a test says so.

use std::{collections::HashMap, sync::LazyLock};

use chrono::{Datelike, NaiveDateTime};

type Catalogue = HashMap<String, String>;

static CATALOGUES: LazyLock<[Catalogue; 3]> = LazyLock::new(|| {
    [include_str!("words/en.json"), include_str!("words/ja.json"), include_str!("words/ko.json")]
        .map(|text| serde_json::from_str(text).expect("a test reads every catalogue"))
});

/// A language that we speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Language {
    #[default]
    En,
    Ja,
    Ko,
}

impl Language {
    pub const ALL: [Language; 3] = [Language::En, Language::Ja, Language::Ko];

    /// As it is stored and as a browser says it.
    pub fn code(self) -> &'static str {
        match self {
            Language::En => "en",
            Language::Ja => "ja",
            Language::Ko => "ko",
        }
    }

    /// The language of a tag such as `ja` or `ko-KR`.
    pub fn read(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_']).next()?;
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(primary))
    }

    /// The first that we speak of an `Accept-Language`. Browsers send it in the order of preference.
    pub fn accepted(header: &str) -> Option<Self> {
        header.split(',').take(20).find_map(|entry| Self::read(entry.split(';').next()?))
    }

    /// A text.
    pub fn say(self, key: &str) -> &'static str {
        let found = CATALOGUES[self as usize].get(key);
        debug_assert!(found.is_some(), "there is no text {key}");
        found.map_or("", String::as_str)
    }

    /// A text with its blanks (`{name}`) filled. What is filled in is not looked at again.
    pub fn fill(self, key: &str, blanks: &[(&str, &str)]) -> String {
        let mut filled = String::new();
        let mut rest = self.say(key);
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else { break };
            filled.push_str(before);
            filled.push_str(blanks.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value));
            rest = behind;
        }
        filled.push_str(rest);
        filled
    }

    /// A local date and time: `Sat, 5 December 2026, 19:30`.
    pub fn when(self, local: NaiveDateTime) -> String {
        let day = self.say(&format!("day.{}", local.weekday().num_days_from_monday()));
        let month = self.say(&format!("month.{}", local.month()));
        let numbers = (local.year().to_string(), local.day().to_string(), local.format("%H:%M").to_string());
        let blanks = [("day", day), ("date", &numbers.1), ("month", month), ("year", &numbers.0), ("time", &numbers.2)];
        self.fill("when", &blanks)
    }

    /// What a type of ticket is called; one that a house made up is its own name.
    pub fn ticket_type(self, code: &str) -> String {
        let known = CATALOGUES[self as usize].get(&format!("type.{code}"));
        known.cloned().unwrap_or_else(|| code.replace('_', " "))
    }

    /// What is told of a seat: `restricted view · a loudspeaker hangs in the way`; mostly nothing. `traits`: codes such as
    /// `restricted_view`.
    pub fn seat_told<'a>(self, traits: impl IntoIterator<Item = &'a str>, note: Option<&'a str>) -> String {
        let traits = traits.into_iter().map(|code| self.say(&format!("trait.{code}")));
        traits.chain(note).collect::<Vec<_>>().join(" · ")
    }

    /// What a way to pay is called; one that we don't know is its own name.
    pub fn tender(self, kind: &str) -> String {
        let known = CATALOGUES[self as usize].get(&format!("tender.{kind}"));
        known.cloned().unwrap_or_else(|| kind.replace('_', " "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blanks(text: &str) -> Vec<&str> {
        let mut names: Vec<&str> = text.split('{').skip(1).filter_map(|part| part.split('}').next()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_language_has_every_text_with_the_same_blanks() {
        let english = &CATALOGUES[0];
        assert!(english.len() > 40);
        for language in Language::ALL {
            let catalogue = &CATALOGUES[language as usize];
            for (key, text) in english {
                let theirs = catalogue.get(key).unwrap_or_else(|| panic!("{language:?} lacks {key}"));
                assert!(!theirs.trim().is_empty());
                if key != "when" {
                    assert_eq!(blanks(theirs), blanks(text), "{language:?} {key}");
                }
            }
            assert_eq!(catalogue.len(), english.len(), "{language:?} has more");
        }
    }

    #[test]
    fn dates_read_as_they_are_written_there() {
        let at = chrono::NaiveDate::from_ymd_opt(2026, 12, 5).unwrap().and_hms_opt(19, 30, 0).unwrap();
        assert_eq!(Language::En.when(at), "Sat, 5 December 2026, 19:30");
        assert_eq!(Language::Ja.when(at), "2026年12月5日(土) 19:30");
        assert_eq!(Language::Ko.when(at), "2026년 12월 5일 (토) 19:30");
    }

    #[test]
    fn what_is_filled_in_is_not_filled_again() {
        let filled = Language::En.fill("mail.hello", &[("name", "{event} {")]);
        assert!(filled.contains("{event} {"), "{filled}");
    }

    #[test]
    fn the_first_language_that_we_speak_is_taken() {
        assert_eq!(Language::accepted("de-DE,de;q=0.9,ko-KR;q=0.8,en;q=0.7"), Some(Language::Ko));
        assert_eq!(Language::accepted("fr"), None);
        assert_eq!(Language::read("JA-jp"), Some(Language::Ja));
        assert_eq!(Language::read(""), None);
    }
}
