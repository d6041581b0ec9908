//! What a number may be. Its unit is the end of its name, and each unit has a range; settings that
//! need a narrower one, or may be 0, stand here with the reason.

use std::ops::RangeInclusive;

const DAY_S: i64 = 86_400;

/// Ends of names: the unit, and what any number of it may be. Nothing is bounded by nothing: a tick of
/// 0 never ends, a bound of 0 takes nobody, a time of 0 waits for nothing.
const UNITS: &[(&str, &str, RangeInclusive<i64>)] = &[
    ("_ms", "milliseconds", 1..=DAY_S * 1000),
    ("_s", "seconds", 1..=400 * DAY_S),
    ("_h", "hours", 1..=24 * 400),
    ("_days", "days", 1..=36_500),
    ("_bytes", "bytes", 1..=1 << 30),
    ("_percent_max", "per cent", 1..=100),
    ("_max", "at most so many", 1..=10_000_000),
    ("_min", "at least so many", 1..=1_000_000),
    ("", "so many", 1..=10_000_000),
];

/// Narrower, wider, or 0 on purpose.
const EXCEPTIONS: &[(&str, RangeInclusive<i64>, &str)] = &[
    ("http.body_max_bytes", 1024..=64 << 20, "below that no hold fits in"),
    ("http.request_timeout_s", 1..=3600, "a request ends"),
    ("http.stop_timeout_s", 1..=600, "whoever stops a hub waits for it"),
    ("database.connections_max", 4..=1000, "the relay, the claim on the database, a desk and somebody who reads"),
    ("database.acquire_timeout_ms", 10..=600_000, "a request waits so long"),
    ("database.lock_timeout_ms", 10..=600_000, "an event stands still so long"),
    ("database.statement_timeout_ms", 100..=3_600_000, "a batch of holds has to fit in"),
    ("database.idle_in_transaction_timeout_ms", 100..=3_600_000, "a batch of holds has to fit in"),
    ("desk.seats_a_request_max", 1..=1000, "a request is one statement's list"),
    ("waiting_room.challenge_cost", 1..=1_000_000, "each challenge costs the hub so much"),
    ("waiting_room.challenges_free", 0..=1000, "0: the first costs as much as the second"),
    ("admission.tick_ms", 10..=60_000, "people are called so often"),
    ("sweeper.tick_ms", 10..=3_600_000, "each tick is two statements"),
    ("relay.tick_ms", 10..=60_000, "each tick reads the outbox, and maps are late by it"),
    ("push.ring_s", 1..=3600, "frames are kept in memory so long"),
    ("push.shards", 0..=1024, "0: one a core"),
    ("push.frame_changes_max", 1..=65_535, "a frame counts with 16 bits"),
    ("push.send_buffer_bytes", 1024..=16 << 20, "the kernel rounds up what is less"),
    ("auth.password_length_min", 1..=128, "an empty password is none"),
    ("auth.password_queue_max", 0..=100_000, "0: nobody waits"),
    ("auth.session_cache_s", 0..=3600, "0: every request asks the database"),
    ("auth.session_cache_max", 0..=10_000_000, "0: every request asks the database"),
    ("payment.pay_margin_s", 0..=3600, "0: a payment may start in the hold's last second"),
    ("payment.worker_tick_ms", 10..=60_000, "each tick is a statement"),
    ("retention.people_days", 0..=36_500, "0: nobody is forgotten by themselves"),
    ("box_office.reader_ask_s", 5..=120, "what a reader's provider said five minutes ago is not believed"),
    ("box_office.until_sold_look_s", 1..=3600, "fans wait so long for what goes on sale once the others are sold"),
    ("box_office.day_begins_h", 0..=12, "a day in the books begins at night or in the morning"),
    ("mail.lease_s", 2..=86_400, "half of it is the longest that sending may take"),
    ("payment.webhook_body_max_bytes", 1024..=64 << 20, "below that no event fits in"),
];

/// What is wrong with the numbers of the settings, a sentence each.
pub(super) fn faults(settings: &toml::Table) -> Vec<String> {
    let sections = settings.iter().filter_map(|(name, value)| Some((name, value.as_table()?)));
    let numbers = sections.flat_map(|(section, table)| {
        table.iter().filter_map(move |(key, value)| Some((format!("{section}.{key}"), value.as_integer()?)))
    });
    numbers.filter_map(|(name, value)| fault(&name, value)).collect()
}

fn fault(name: &str, value: i64) -> Option<String> {
    let (_, unit, usual) = UNITS.iter().find(|(end, ..)| name.ends_with(end)).expect("the last unit ends every name");
    let exception = EXCEPTIONS.iter().find(|(named, ..)| *named == name);
    let (range, reason) = exception.map_or((usual, ""), |(_, range, reason)| (range, *reason));
    if range.contains(&value) {
        return None;
    }
    let (least, most) = range.clone().into_inner();
    let because = if reason.is_empty() { String::new() } else { format!("; {reason}") };
    Some(format!("{name} is {value}: from {least} to {most} ({unit}{because})"))
}

#[cfg(test)]
mod tests {
    use super::{super::DEFAULTS, *};

    fn defaults() -> toml::Table {
        DEFAULTS.parse().unwrap()
    }

    #[test]
    fn the_defaults_are_within_and_the_exceptions_name_settings() {
        assert_eq!(faults(&defaults()), [""; 0]);
        for (name, ..) in EXCEPTIONS {
            let (section, key) = name.split_once('.').unwrap();
            assert!(defaults()[section][key].is_integer(), "{name}");
        }
    }

    #[test]
    fn each_number_has_an_end_and_only_what_says_so_may_be_nothing() {
        for (section, settings) in defaults() {
            for (key, _) in settings.as_table().unwrap().iter().filter(|(_, value)| value.is_integer()) {
                let name = format!("{section}.{key}");
                let may_be_nothing = EXCEPTIONS.iter().any(|(n, range, _)| *n == name && range.contains(&0));
                assert_eq!(fault(&name, 0).is_none(), may_be_nothing, "{name}");
                assert!(fault(&name, -1).is_some() && fault(&name, i64::MAX).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn a_fault_names_setting_value_range_and_reason() {
        assert_eq!(
            fault("sweeper.tick_ms", 0).unwrap(),
            "sweeper.tick_ms is 0: from 10 to 3600000 (milliseconds; each tick is two statements)"
        );
        assert_eq!(
            fault("http.connections_max", 0).unwrap(),
            "http.connections_max is 0: from 1 to 10000000 (at most so many)"
        );
    }
}
