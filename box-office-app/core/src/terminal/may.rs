//! What a screen may ask the hub for: a short list by role, so that a script that gets into a web view can do no more
//! than the buttons that are on it.

use super::Role;

/// One route: method, and its path with `*` for one part.
type Route = (&'static str, &'static str);

/// What both need: the programme and the map. What a kiosk's customer buys is asked for by [`super::visits`].
const BOTH: &[Route] = &[
    ("GET", "/api/events"),
    ("GET", "/api/events/*"),
    ("GET", "/api/events/*/snapshot"),
    ("GET", "/api/events/*/frames"),
    ("GET", "/api/plans/*/geometry"),
    ("GET", "/api/box-office/terminal"),
];

/// And what stands behind a counter only. Whether a person may is the hub's to say, by their role.
const COUNTER: &[Route] = &[
    ("GET", "/api/box-office/staff"),
    ("POST", "/api/box-office/health"),
    ("POST", "/api/box-office/holds"),
    ("POST", "/api/box-office/holds/*/quote"),
    ("POST", "/api/box-office/holds/*/release"),
    ("POST", "/api/box-office/card-sales"),
    ("GET", "/api/box-office/card-sales/*"),
    ("POST", "/api/box-office/card-sales/*/stop"),
    ("GET", "/api/box-office/orders/*/prints"),
    ("POST", "/api/box-office/orders/*/prints"),
    ("POST", "/api/box-office/prints/*"),
    ("POST", "/api/box-office/sales"),
    ("POST", "/api/box-office/events/*/block"),
    ("POST", "/api/box-office/events/*/unblock"),
    ("POST", "/api/box-office/events/*/kill"),
    ("POST", "/api/box-office/events/*/traits"),
    ("POST", "/api/box-office/events/*/revive"),
    ("GET", "/api/box-office/events/*/until-sold"),
    ("POST", "/api/box-office/events/*/until-sold"),
    ("POST", "/api/box-office/until-sold/*/open"),
    ("POST", "/api/box-office/until-sold/*/drop"),
    ("GET", "/api/box-office/events/*/seats/*"),
    ("GET", "/api/box-office/events/*/will-call"),
    ("POST", "/api/box-office/orders/*/mail"),
    ("POST", "/api/box-office/tickets/*/reissue"),
    ("GET", "/api/box-office/customer-holds"),
    ("POST", "/api/box-office/customer-holds"),
    ("POST", "/api/box-office/customer-holds/*/release"),
    ("GET", "/api/box-office/events/*/vouchers"),
    ("POST", "/api/box-office/vouchers"),
    ("POST", "/api/box-office/vouchers/look"),
    ("POST", "/api/box-office/vouchers/*/withdraw"),
    ("GET", "/api/box-office/partners"),
    ("POST", "/api/box-office/partners"),
    ("GET", "/api/box-office/partners/*/statement"),
    ("POST", "/api/box-office/partners/*/payments"),
    ("POST", "/api/box-office/partners/*/repayments"),
    ("GET", "/api/box-office/events/*/consignments"),
    ("POST", "/api/box-office/consignments"),
    ("POST", "/api/box-office/consignments/*/sales"),
    ("POST", "/api/box-office/consignments/*/returns"),
    ("POST", "/api/box-office/consignments/*/cut-off"),
    ("POST", "/api/box-office/day-lock"),
    ("GET", "/api/box-office/shifts"),
    ("POST", "/api/box-office/shifts"),
    ("GET", "/api/box-office/shifts/*"),
    ("POST", "/api/box-office/shifts/current/checks"),
    ("POST", "/api/box-office/shifts/current/moves"),
    ("POST", "/api/box-office/shifts/current/close"),
    ("GET", "/api/staff/audit"),
    ("GET", "/api/staff/orders"),
    ("GET", "/api/staff/orders/*"),
    ("POST", "/api/staff/orders/*/exchange"),
    ("POST", "/api/staff/orders/*/exchange-offer"),
    ("POST", "/api/staff/orders/*/leave-exchange"),
    ("POST", "/api/staff/orders/*/notes"),
    ("POST", "/api/staff/orders/*/pay"),
    ("POST", "/api/staff/orders/*/refunds"),
    ("POST", "/api/staff/orders/*/stop-reader"),
];

/// The sockets of the map.
const SOCKETS: &[&str] = &["/api/events/*/live"];

/// Whether a screen of this role may ask for `target` (a path, with its query or without). Signing in and out and
/// enrolling have verbs of their own, since their answers carry tokens.
pub fn may_ask(role: Role, method: &str, target: &str) -> bool {
    let counter = if role == Role::Counter { COUNTER } else { &[] };
    is_plain(target)
        && BOTH.iter().chain(counter).any(|(verb, route)| *verb == method && matches(route, path_of(target)))
}

/// Whether a screen may follow this socket.
pub fn may_follow(target: &str) -> bool {
    is_plain(target) && SOCKETS.iter().any(|route| matches(route, path_of(target)))
}

fn path_of(target: &str) -> &str {
    target.split_once('?').map_or(target, |(path, _)| path)
}

/// Nothing in it that somebody on the way could read as another path.
fn is_plain(target: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.~%?&=+,:@".contains(&b);
    let path = path_of(target);
    target.len() <= 2_000
        && target.bytes().all(plain)
        && !path.contains('%')
        && !path.split('/').any(|part| matches!(part, "." | ".."))
}

fn matches(route: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    route
        .split('/')
        .all(|wanted| parts.next().is_some_and(|part| wanted == part || (wanted == "*" && !part.is_empty())))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_sells_and_a_kiosks_screens_look_and_touch() {
        for (method, path, counter, kiosk) in [
            ("POST", "/api/box-office/sales", true, false),
            ("POST", "/api/box-office/card-sales", true, false),
            ("POST", "/api/box-office/holds", true, false),
            ("POST", "/api/box-office/events/7/block", true, false),
            ("POST", "/api/staff/orders/0199/refunds", true, false),
            ("GET", "/api/staff/orders?q=Ana%20Seat", true, false),
            ("GET", "/api/events/7?seats=none", true, true),
            ("GET", "/api/events/7/snapshot", true, true),
            ("POST", "/api/box-office/sign-in", false, false),
            ("POST", "/api/box-office/enrol", false, false),
            ("DELETE", "/api/events/7", false, false),
            ("POST", "/api/staff/terminals/0199", false, false),
            ("POST", "/api/staff/gate/pause", false, false),
            ("GET", "/metrics", false, false),
        ] {
            assert_eq!(may_ask(Role::Counter, method, path), counter, "{method} {path} at a counter");
            assert_eq!(may_ask(Role::Kiosk, method, path), kiosk, "{method} {path} at a kiosk");
        }
    }

    #[test]
    fn a_path_that_could_be_read_as_another_is_refused() {
        for path in [
            "/api/events/../staff/gate",
            "/api/events/./7",
            "/api/events/%2e%2e",
            "//evil.example/api/events",
            "http://evil.example/api/events",
            "/api/events/7\r\nHost: evil",
            "/api/events/7#x",
            "/api/events/",
            "/api/events/7/",
            "/api/events/7/snapshot/x",
            "\\api\\events",
        ] {
            assert!(!may_ask(Role::Counter, "GET", path), "{path}");
        }
        assert!(!may_ask(Role::Counter, "GET", &format!("/api/events?q={}", "x".repeat(2_001))));
        assert!(may_follow("/api/events/7/live?epoch=1&frame=2"));
        assert!(!may_follow("/api/events/7/queue/live"));
    }
}
