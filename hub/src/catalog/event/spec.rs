//! What an event is written down as, and what can be wrong with it by itself.

use chrono::{Days, NaiveDate};
use serde::{Deserialize, Serialize};

use super::{EventError, RefundPolicy, TicketLook, shape, tax::TaxSpec};
use crate::{catalog::import::is_slug, currency};

/// As it stands in a TOML or JSON file; see `assets/plans/events` for examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    pub slug: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Slug of the venue, and name of one of its plans.
    pub venue: String,
    pub plan: String,
    /// The venue's, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Local times, such as `2027-05-01T18:30`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doors: Option<String>,
    pub starts: String,
    pub on_sale: String,
    /// When the event starts, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_sale: Option<String>,
    /// ISO 4217; amounts are in its minor units.
    pub currency: String,
    #[serde(default = "default_seat_limit")]
    pub seat_limit: i32,
    #[serde(default = "default_hold_ttl_s")]
    pub hold_ttl_s: i32,
    #[serde(default = "default_single_seat_rule")]
    pub single_seat_rule: bool,
    /// Refuse a selection that does not sit side by side.
    #[serde(default)]
    pub consecutive_rule: bool,
    /// Seats that a hold has at least.
    #[serde(default = "default_seats_min")]
    pub seats_min: i32,
    /// What buyers may give back by themselves; nothing, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<RefundPolicy>,
    /// How its tickets look; as the house's do, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<TicketLook>,
    /// A PNG beside this file; empty: none any more. Left out, it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket_logo: Option<String>,
    #[serde(default)]
    pub performers: Vec<PerformerSpec>,
    pub levels: Vec<LevelSpec>,
    #[serde(default)]
    pub fees: Vec<FeeSpec>,
    /// What prices and fees contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tax: Option<TaxSpec>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerformerSpec {
    pub slug: String,
    pub name: String,
}

/// A category of the plan as the event sells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelSpec {
    pub category: String,
    /// The category's, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `#rrggbb`; the category's, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// In the order in which they are offered.
    pub prices: Vec<PriceSpec>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSpec {
    pub ticket_type: String,
    pub amount_minor: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeeSpec {
    pub code: String,
    /// `seat` or `order`
    pub basis: String,
    pub amount_minor: i64,
}

fn default_seat_limit() -> i32 {
    6
}

fn default_hold_ttl_s() -> i32 {
    480
}

fn default_seats_min() -> i32 {
    1
}

fn default_single_seat_rule() -> bool {
    true
}

impl EventSpec {
    /// The look, as it is stored.
    pub(super) fn look_json(&self) -> Option<serde_json::Value> {
        self.ticket.as_ref().and_then(|look| serde_json::to_value(look).ok())
    }

    /// The policy, as it is stored.
    pub(super) fn refund_json(&self) -> Option<serde_json::Value> {
        self.refund.and_then(|policy| serde_json::to_value(policy).ok())
    }

    /// From TOML, or from JSON if the text begins like it. What is missing, unknown or mistyped is told at once.
    pub fn read(text: &str) -> Result<Self, EventError> {
        let Draft { spec, faults } = Draft::read(text)?;
        if faults.is_empty() { Ok(spec) } else { Err(EventError::Faults(faults)) }
    }
}

/// A specification as somebody wrote it. What is missing or mistyped is blank, and named in `faults`: the rest is
/// looked at all the same, so that nobody mends one fault to be told of the next.
#[derive(Debug)]
pub struct Draft {
    pub spec: EventSpec,
    /// Each begins with its field and a colon.
    pub faults: Vec<String>,
}

impl Draft {
    /// See [`EventSpec::read`]; only what is neither TOML nor JSON is an error.
    pub fn read(text: &str) -> Result<Self, EventError> {
        let unreadable = |error: String| EventError::Unreadable(error.trim_end().to_owned());
        let mut value: serde_json::Value = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|e| unreadable(e.to_string()))?
        } else {
            toml::from_str(text).map_err(|e| unreadable(e.to_string()))?
        };
        let faults = shape::mend(&mut value);
        let spec = serde_json::from_value(value).map_err(|e| unreadable(e.to_string()))?;
        Ok(Self { spec, faults })
    }

    /// What trying its blanks came to, and all faults if it has any: whoever gets `Ok` may commit.
    pub fn settle<T>(self, tried: Result<T, EventError>) -> Result<T, EventError> {
        let Self { mut faults, .. } = self;
        if faults.is_empty() {
            return tried;
        }
        let more = match tried {
            Ok(_) => Vec::new(),
            Err(EventError::Faults(more)) => more,
            Err(EventError::Database(e)) => return Err(EventError::Database(e)),
            Err(named) => vec![format!("slug: {named}")],
        };
        // A blank has faults of its own: those are of our making.
        let fields: Vec<String> =
            faults.iter().filter_map(|fault| fault.split_once(": ")).map(|(field, _)| field.to_owned()).collect();
        let of_a_blank = |fault: &str| {
            fields
                .iter()
                .any(|field| fault.strip_prefix(field.as_str()).is_some_and(|rest| rest.starts_with([':', '.', '['])))
        };
        faults.extend(more.into_iter().filter(|fault| !of_a_blank(fault)));
        Err(EventError::Faults(faults))
    }
}

/// Puts days around `today` where a text says `{{day+14}}` or `{{day-1}}`: the demo's events are
/// always about to happen. A specification that is not the demo's names its dates.
pub fn with_days(text: &str, today: NaiveDate) -> String {
    let mut parts = text.split("{{day");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let placed = part.split_once("}}").and_then(|(offset, rest)| {
            let (sign, days) = offset.split_at_checked(1)?;
            let days = Days::new(days.parse().ok()?);
            let day = match sign {
                "+" => today.checked_add_days(days),
                "-" => today.checked_sub_days(days),
                _ => None,
            };
            Some(format!("{}{rest}", day?))
        });
        match placed {
            Some(placed) => filled.push_str(&placed),
            None => {
                filled.push_str("{{day");
                filled.push_str(part);
            }
        }
    }
    filled
}

/// Faults that need no database to be found, each with its field.
pub(super) fn plain_faults(spec: &EventSpec) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |sound: bool, message: &str| {
        if !sound {
            faults.push(message.to_owned());
        }
    };
    check(is_slug(&spec.slug), "slug: small letters, digits and single hyphens are taken");
    check(!spec.slug.bytes().all(|b| b.is_ascii_digit()), "slug: digits alone are an event's number");
    check(!spec.name.trim().is_empty() && spec.name.chars().count() <= 200, "name: 1 to 200 characters are needed");
    check(spec.description.chars().count() <= 10_000, "description: at most 10,000 characters are taken");
    check(spec.tags.len() <= 20, "tags: at most 20 are taken");
    check(
        currency::is_known(&spec.currency),
        "currency: three capital letters of one that people pay with are needed, such as EUR",
    );
    check(
        !currency::is_unclear(&spec.currency),
        "currency: no card could pay in it, since the provider's unit of UGX and MGA is not certain",
    );
    let step = currency::step(&spec.currency);
    let amounts = spec.levels.iter().flat_map(|l| l.prices.iter().map(|p| p.amount_minor));
    check(
        amounts.chain(spec.fees.iter().map(|f| f.amount_minor)).all(|amount| amount % step == 0),
        "levels, fees: this currency is charged in larger steps (KWD in tens, HUF in hundreds of its minor unit)",
    );
    check((1..=50).contains(&spec.seat_limit), "seat_limit: from 1 to 50");
    check((1..=spec.seat_limit.max(1)).contains(&spec.seats_min), "seats_min: from 1 to seat_limit");
    check(
        (120..=86_400).contains(&spec.hold_ttl_s),
        "hold_ttl_s: from 120 to 86400 seconds: no payment starts in the last 60",
    );
    check(spec.levels.len() <= 64, "levels: at most 64 are taken");
    let amount = |a: i64| (0..=99_999_999).contains(&a);
    for (i, tag) in spec.tags.iter().enumerate() {
        check(
            !tag.trim().is_empty() && tag.chars().count() <= 50,
            &format!("tags[{i}]: 1 to 50 characters are needed"),
        );
    }
    for (i, performer) in spec.performers.iter().enumerate() {
        check(
            is_slug(&performer.slug),
            &format!("performers[{i}].slug: small letters, digits and single hyphens are taken"),
        );
        check(!performer.name.trim().is_empty(), &format!("performers[{i}].name: a name is needed"));
        let earlier = spec.performers[..i].iter().any(|p| p.slug == performer.slug);
        check(!earlier, &format!("performers[{i}].slug: {:?} is listed twice", performer.slug));
    }
    for (i, level) in spec.levels.iter().enumerate() {
        check(!level.prices.is_empty(), &format!("levels[{i}].prices: a level needs a price"));
        let hex = level
            .color
            .as_ref()
            .is_none_or(|c| c.len() == 7 && c.starts_with('#') && c[1..].bytes().all(|b| b.is_ascii_hexdigit()));
        check(hex, &format!("levels[{i}].color: #rrggbb is needed"));
        for (j, price) in level.prices.iter().enumerate() {
            let name = &price.ticket_type;
            let shape = name.len() <= 32
                && name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            check(
                shape,
                &format!("levels[{i}].prices[{j}].ticket_type: a word of small letters, such as adult, is needed"),
            );
            check(amount(price.amount_minor), &format!("levels[{i}].prices[{j}].amount_minor: from 0 to 99999999"));
            let earlier = level.prices[..j].iter().any(|p| p.ticket_type == *name);
            check(!earlier, &format!("levels[{i}].prices[{j}].ticket_type: {name:?} is listed twice"));
        }
    }
    faults.extend(spec.refund.iter().flat_map(RefundPolicy::faults));
    faults.extend(spec.ticket.iter().flat_map(TicketLook::faults));
    let mut check = |sound: bool, message: &str| {
        if !sound {
            faults.push(message.to_owned());
        }
    };
    for (i, fee) in spec.fees.iter().enumerate() {
        check(["seat", "order"].contains(&fee.basis.as_str()), &format!("fees[{i}].basis: seat or order is needed"));
        check(amount(fee.amount_minor), &format!("fees[{i}].amount_minor: from 0 to 99999999"));
        check(!fee.code.trim().is_empty(), &format!("fees[{i}].code: a code is needed"));
        let earlier = spec.fees[..i].iter().any(|f| f.code == fee.code);
        check(!earlier, &format!("fees[{i}].code: {:?} is listed twice", fee.code));
    }
    faults.extend(spec.tax.iter().flat_map(TaxSpec::faults));
    faults
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const SPEC: &str = r#"
        slug = "a-night"
        name = "A night"
        venue = "hall"
        plan = "Hall"
        starts = "2027-06-01T20:00"
        on_sale = "2027-03-28T02:30"
        off_sale = "2027-10-31T02:30"
        currency = "EUR"
        levels = [{ category = "Stalls", prices = [{ ticket_type = "adult", amount_minor = 2500 }] }]
    "#;

    #[test]
    fn faults_of_a_specification_are_told_at_once() {
        let mut spec = EventSpec::read(SPEC).unwrap();
        spec.slug = "A night".into();
        spec.currency = "euro".into();
        spec.levels[0].prices.push(PriceSpec { ticket_type: "adult".into(), amount_minor: -1 });
        assert_eq!(plain_faults(&spec).len(), 4);
        assert!(matches!(EventSpec::read("slug = 'x"), Err(EventError::Unreadable(_))));
        let Err(EventError::Faults(faults)) = EventSpec::read("slug = 1\nsluggish = 1\nname = 'x'\nlevels = [{}]")
        else {
            panic!("it has faults");
        };
        for fault in [
            "slug: text is needed",
            "sluggish: there is no such field",
            "venue: this field is needed",
            "levels[0].prices: this field is needed",
        ] {
            assert!(faults.iter().any(|f| f == fault), "{fault} in {faults:?}");
        }
    }

    #[test]
    fn what_has_a_wrong_shape_does_not_hide_what_has_a_wrong_value() {
        let text = SPEC.replace("name = ", "nmae = ").replace("\"EUR\"", "\"euro\"").replace("2500", "-1");
        let draft = Draft::read(&text.replace("plan = \"Hall\"", "plan = 7\ntags = 'x'")).unwrap();
        let tried =
            Err(EventError::Faults([plain_faults(&draft.spec), vec!["plan: none is called \"\"".into()]].concat()));
        let Err(EventError::Faults(mut faults)) = draft.settle::<()>(tried) else { panic!("it has faults") };
        faults.sort();
        let fields: Vec<&str> = faults.iter().filter_map(|f| f.split(": ").next()).collect();
        assert_eq!(
            fields,
            ["currency", "levels[0].prices[0].amount_minor", "name", "nmae", "plan", "tags"],
            "{faults:?}"
        );
        assert_eq!(faults[2], "name: this field is needed");
        // Whose values are sound is refused for its shape.
        let draft = Draft::read(&format!("{SPEC}\nsluggish = 1")).unwrap();
        assert_eq!(plain_faults(&draft.spec), [""; 0]);
        let Err(EventError::Faults(faults)) = draft.settle(Ok(())) else { panic!("it has a fault") };
        assert_eq!(faults, ["sluggish: there is no such field"]);
        // And an event that is not there is one fault among others.
        let draft = Draft::read(&format!("{SPEC}\nsluggish = 1")).unwrap();
        let Err(EventError::Faults(faults)) = draft.settle::<()>(Err(EventError::Unknown("a-night".into()))) else {
            panic!("it has faults")
        };
        assert_eq!(faults, ["sluggish: there is no such field", "slug: there is no event \"a-night\""]);
    }

    #[test]
    fn the_example_has_every_field() {
        let text = include_str!("../../../../assets/plans/events/example.toml");
        let spec = EventSpec::read(text).unwrap();
        assert_eq!(plain_faults(&spec), [""; 0]);
        let EventSpec { performers, levels, fees, .. } = &spec;
        assert!(!performers.is_empty() && levels.iter().all(|l| l.prices.len() > 1) && !fees.is_empty());
        for field in shape::names() {
            assert!(text.lines().any(|line| line.trim_start_matches(['#', ' ', '[', '{']).contains(field)), "{field}");
        }
    }

    #[test]
    fn days_are_put_in() {
        let today = NaiveDate::from_ymd_opt(2027, 2, 27).unwrap();
        assert_eq!(
            with_days("a = '{{day+2}}T10:00', b = '{{day-27}}T09:00'", today),
            "a = '2027-03-01T10:00', b = '2027-01-31T09:00'"
        );
        assert_eq!(with_days("{{day}} {{day+x}} {{days", today), "{{day}} {{day+x}} {{days");
    }
}
