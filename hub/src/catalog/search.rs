//! What is on, narrowed in memory: a house has hundreds of events, not millions.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use fullhouse_protocol::events::EventSummary;

use super::text::folded;

/// An event stays on the list for so long after it began.
const SHOWN_AFTER_START: TimeDelta = TimeDelta::hours(12);
const QUERY_CHARS_MAX: usize = 200;

/// An event as it is listed and searched.
#[derive(Debug, Clone)]
pub struct Listed {
    pub summary: EventSummary,
    /// Name, venue, city, performers and tags, folded.
    haystack: String,
}

impl Listed {
    pub fn new(summary: EventSummary) -> Self {
        let mut haystack = format!("{} {} {}", summary.name, summary.venue.name, summary.venue.city);
        for part in summary.performers.iter().map(|p| &p.name).chain(&summary.tags) {
            haystack.push(' ');
            haystack.push_str(part);
        }
        Self { haystack: folded(&haystack), summary }
    }
}

/// What a list is narrowed by. Everything may be left out.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Every word has to be in the event's name, venue, city, performers or tags, in any script.
    pub q: Option<String>,
    /// Slug.
    pub venue: Option<String>,
    pub tag: Option<String>,
    /// Days at the venue, both included.
    pub from: Option<NaiveDate>,
    pub to: Option<NaiveDate>,
}

impl Filter {
    /// The events that pass, in their order. Events that are over are only found by `from`.
    pub fn apply<'a>(&self, events: &'a [Listed], now: DateTime<Utc>) -> Vec<&'a EventSummary> {
        let q: String = self.q.as_deref().unwrap_or_default().chars().take(QUERY_CHARS_MAX).collect();
        let words: Vec<String> = folded(&q).split_whitespace().map(str::to_owned).collect();
        let tag = self.tag.as_deref().map(folded);
        let passes = |event: &&Listed| {
            let summary = &event.summary;
            let day = summary.starts_local.date();
            words.iter().all(|word| event.haystack.contains(word.as_str()))
                && self.venue.as_ref().is_none_or(|slug| *slug == summary.venue.slug)
                && tag.as_ref().is_none_or(|tag| summary.tags.iter().any(|t| folded(t) == *tag))
                && self.to.is_none_or(|to| day <= to)
                && match self.from {
                    Some(from) => day >= from,
                    None => summary.starts_at + SHOWN_AFTER_START > now,
                }
        };
        events.iter().filter(passes).map(|e| &e.summary).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullhouse_protocol::events::{Sale, VenueSummary};
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn listed(name: &str, slug: &str, tags: &[&str], starts: &str) -> Listed {
        let starts_at = at(starts);
        let venue = VenueSummary {
            id: 1,
            slug: slug.into(),
            name: "Théâtre du Nord".into(),
            city: "東京".into(),
            country: "JP".into(),
        };
        let summary = EventSummary {
            id: 1,
            slug: "e".into(),
            name: name.into(),
            tags: tags.iter().map(|t| (*t).to_owned()).collect(),
            venue,
            performers: vec![],
            time_zone: "UTC".into(),
            starts_at,
            starts_local: starts_at.naive_utc(),
            doors_local: None,
            on_sale_at: starts_at,
            on_sale_local: starts_at.naive_utc(),
            off_sale_at: starts_at,
            sale: Sale::OnSale,
            currency: "EUR".into(),
            from_minor: None,
            from_fees_minor: 0,
            seats_total: 1,
            seats_available: 1,
            has_line: false,
            now: starts_at,
        };
        Listed::new(summary)
    }

    #[test]
    fn a_list_is_narrowed_by_all_that_is_given() {
        let now = at("2027-03-10T12:00:00Z");
        let events = [
            listed("Ōkami no Yoru", "a", &["Jazz"], "2027-03-01T18:00:00Z"),
            listed("Nuit d'été", "a", &["Jazz", "open air"], "2027-03-10T18:00:00Z"),
            listed("밤의 노래", "b", &[], "2027-04-01T18:00:00Z"),
        ];
        let found =
            |filter: Filter| -> Vec<&str> { filter.apply(&events, now).into_iter().map(|e| e.name.as_str()).collect() };
        let q = |q: &str| Filter { q: Some(q.into()), ..Filter::default() };
        let day = |text: &str| Some(text.parse().unwrap());
        assert_eq!(found(Filter::default()), ["Nuit d'été", "밤의 노래"], "the first is over");
        assert_eq!(found(q("NUIT theatre")), ["Nuit d'été"]);
        assert_eq!(found(q("ete 東京")), ["Nuit d'été"]);
        assert_eq!(found(q("노래")), ["밤의 노래"]);
        assert_eq!(found(q("nothing")), [""; 0]);
        assert_eq!(found(Filter { tag: Some("OPEN AIR".into()), ..Filter::default() }), ["Nuit d'été"]);
        assert_eq!(found(Filter { venue: Some("b".into()), ..Filter::default() }), ["밤의 노래"]);
        let old = Filter { from: day("2027-03-01"), to: day("2027-03-10"), ..Filter::default() };
        assert_eq!(found(old), ["Ōkami no Yoru", "Nuit d'été"]);
    }

    proptest! {
        #[test]
        fn any_query_is_answered(text in any::<String>()) {
            let events = [listed("Nuit", "a", &[], "2027-03-10T18:00:00Z")];
            Filter { q: Some(text.clone()), tag: Some(text), ..Filter::default() }.apply(&events, at("2027-03-10T12:00:00Z"));
        }
    }
}
