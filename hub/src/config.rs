//! Settings: `config.default.toml` is the manual and the default; a file and the environment replace single values.

use std::{net::IpAddr, path::Path};

use anyhow::Context;
use lettre::{AsyncSmtpTransport, Tokio1Executor};
use serde::Deserialize;

mod ranges; // what a number may be

/// `config.default.toml`: the manual.
pub const DEFAULTS: &str = include_str!("../config.default.toml");
const ENV_PREFIX: &str = "FULLHOUSE__";
/// Variables of ours that the command line reads itself.
const NOT_SETTINGS: [&str; 2] = ["FULLHOUSE_CONFIG", "FULLHOUSE_PASSWORD"];

macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $(pub $field: $type),* }
    };
}

section!(
    /// Each field is described where it stands in `config.default.toml`.
    Config {
        http: Http,
        database: Database,
        desk: Desk,
        waiting_room: WaitingRoom,
        admission: Admission,
        sweeper: Sweeper,
        relay: Relay,
        push: Push,
        nats: Nats,
        auth: Auth,
        payment: Payment,
        ticket: Ticket,
        mail: Mail,
        box_office: BoxOffice,
        retention: Retention,
        gate: Gate,
        reconcile: Reconcile,
    }
);
section!(Http {
    listen: String,
    public_url: String,
    body_max_bytes: usize,
    request_timeout_s: u64,
    connections_max: usize,
    connections_an_address_max: usize,
    idle_timeout_s: u64,
    stop_timeout_s: u64,
    trusted_proxies: Vec<String>,
    assets_dir: String,
    metrics_listen: String,
});
section!(Database {
    url: Secret,
    connections_max: u32,
    acquire_timeout_ms: u64,
    lock_timeout_ms: u64,
    idle_in_transaction_timeout_ms: u64,
    statement_timeout_ms: u64,
});
section!(Desk {
    batch_requests_max: usize,
    queue_requests_max: usize,
    seats_a_request_max: usize,
    idle_close_s: u64,
    request_age_max_h: i32
});
section!(WaitingRoom {
    batch_joins_max: usize,
    queue_joins_max: usize,
    joins_account_max: usize,
    challenge_cost: u32,
    challenge_tries: u32,
    challenge_tries_max: u32,
    challenge_age_max_s: i64,
    challenges_free: u32,
    joins_second_calm: u32,
    address_window_s: u64,
    address_challenges_max: u32,
    address_link_shown: bool,
});
section!(Admission {
    tick_ms: u64,
    count_seats_s: i64,
    heartbeat_s: i64,
    hold_max_ms: u32,
    lock_wait_max_ms: u32,
    write_max_ms: u32,
    pool_percent_max: u32,
    errors_percent_max: u32,
    payments_late_max_s: u32,
    payments_in_doubt_max: u32,
});
section!(Sweeper { tick_ms: u64, batch_holds_max: i64 });
section!(Relay { tick_ms: u64, rows_max: i64, frames_max: usize, keyframe_interval_s: u64, compare_interval_s: u64 });
section!(Push {
    ring_s: u64,
    ring_frames_max: usize,
    frame_changes_max: usize,
    sockets_max: usize,
    sockets_an_address_max: usize,
    send_timeout_s: u64,
    ping_interval_s: u64,
    send_buffer_bytes: usize,
    shards: usize,
});
section!(Nats { url: String, stream: String, stream_age_s: u64 });
section!(Auth {
    session_ttl_s: i64,
    password_hashes_at_once: usize,
    password_queue_max: usize,
    password_length_min: usize,
    session_cache_s: u64,
    session_cache_max: usize,
    sign_in_window_s: u64,
    sign_in_failures_max: u32,
    address_tries_max: u32,
    enrol_failures_max: u32,
});
section!(Payment {
    provider_url: String,
    secret_key: Secret,
    publishable_key: String,
    form_url: String,
    webhook_body_max_bytes: usize,
    webhook_secrets: Vec<Secret>,
    api_version: String,
    timeout_ms: u64,
    pay_margin_s: i64,
    worker_tick_ms: u64,
    workers: usize,
    lease_s: i64,
});

section!(Ticket { font_dirs: Vec<String>, pdfs_at_once: usize, pdf_queue_max: usize });
section!(Mail {
    smtp_url: Secret,
    folder: String,
    from: String,
    rate_per_minute: i64,
    workers: usize,
    tick_ms: u64,
    timeout_s: u64,
    lease_s: i64,
    retry_first_s: i64,
    retry_max_s: i64,
    give_up_h: i64,
});
section!(BoxOffice { time_zone: String, day_begins_h: i64, reader_ask_s: u32, until_sold_look_s: u64 });
section!(Retention { tick_s: u64, provider_days: i32, people_days: i32 });
section!(Gate {
    tick_ms: u64,
    stale_after_s: i64,
    window_s: i64,
    unknown_max: i64,
    unknown_percent_max: i64,
    attempts_min: i64,
    webhook_age_max_s: i64,
    provider_calls: i64,
    provider_errors_percent_max: i64,
    provider_calls_to_open: i64,
    clock_skew_max_s: i64,
});
section!(Reconcile {
    interval_s: i64,
    window_h: i64,
    page_rows: i64,
    pages_max: u32,
    grace_s: i64,
    lease_s: u64,
    settle_s: u64,
    account_shared: bool,
});

/// A value that is never printed.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "Secret(empty)" } else { "Secret(…)" })
    }
}

impl Config {
    /// The defaults, then `file`, then `FULLHOUSE__SECTION__KEY` from the environment. Everything that is wrong with
    /// them is said at once.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let mut table: toml::Table = DEFAULTS.parse().context("config.default.toml")?;
        let mut faults = Vec::new();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
            let over: toml::Table = text.parse().with_context(|| format!("parsing {}", path.display()))?;
            let mut wrong = Vec::new();
            merge(&mut table, over, &mut wrong);
            faults.extend(wrong.into_iter().map(|fault| format!("{}: {fault}", path.display())));
        }
        for (name, value) in std::env::vars() {
            if let Some(key) = name.strip_prefix(ENV_PREFIX) {
                if let Err(fault) = set(&mut table, key, &value) {
                    faults.push(format!("environment variable {name}: {fault}"));
                }
            } else if let Some(key) = name.strip_prefix("FULLHOUSE_")
                && !NOT_SETTINGS.contains(&&*name)
            {
                // A slip would leave the default in force, without a word.
                if let Some(meant) = meant(&table, key) {
                    faults.push(format!("environment variable {name} is no setting: it is called {meant}"));
                    continue;
                }
                tracing::warn!(variable = name, "no setting of ours: they are called FULLHOUSE__SECTION__KEY");
            }
        }
        faults.extend(ranges::faults(&table));
        let config: Self = table.try_into().context("settings")?; // what did not fit was not taken
        faults.extend(config.faults());
        anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
        Ok(config)
    }

    /// Values that could only fail later, and then without a name.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let public = &self.http.public_url;
        if !public.starts_with("http://") && !public.starts_with("https://") {
            faults.push(format!("http.public_url: {public:?} is not the address of a page"));
        }
        for proxy in self.http.trusted_proxies.iter().filter(|proxy| proxy.parse::<IpAddr>().is_err()) {
            faults.push(format!("http.trusted_proxies: {proxy:?} is not an IP address"));
        }
        for folder in self.ticket.font_dirs.iter().filter(|folder| !Path::new(folder).is_dir()) {
            faults.push(format!("ticket.font_dirs: there is no folder {folder:?}"));
        }
        let database = self.database.url.reveal();
        if !database.is_empty() && !database.starts_with("postgres://") && !database.starts_with("postgresql://") {
            faults.push("database.url: it begins with postgres://".to_owned()); // it may hold a password
        }
        if self.box_office.time_zone.parse::<chrono_tz::Tz>().is_err() {
            faults.push(format!("box_office.time_zone: {:?} is no time zone", self.box_office.time_zone));
        }
        let mail = self.mail.smtp_url.reveal();
        if !mail.is_empty() && AsyncSmtpTransport::<Tokio1Executor>::from_url(mail).is_err() {
            faults.push("mail.smtp_url: it is no address of a mail server (smtp://host:port)".to_owned());
        }
        faults
    }

    /// The defaults alone: what tests and the demo start from.
    pub fn defaults() -> Self {
        toml::from_str(DEFAULTS).expect("config.default.toml is checked by a test")
    }
}

/// Takes over what fits: a value of a setting that there is, of its default's type. The rest is a fault.
fn merge(base: &mut toml::Table, over: toml::Table, faults: &mut Vec<String>) {
    for (section, values) in over {
        let (Some(own), toml::Value::Table(values)) = (base.get_mut(&section).and_then(|v| v.as_table_mut()), values)
        else {
            faults.push(format!("there is no section [{section}]"));
            continue;
        };
        for (key, value) in values {
            match own.get_mut(&key) {
                None => faults.push(format!("there is no setting {section}.{key}")),
                Some(slot) if slot.same_type(&value) => *slot = value,
                Some(slot) => faults.push(format!("{section}.{key}: expected {}", kind(slot))),
            }
        }
    }
}

fn kind(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::Integer(_) => "a whole number",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::Array(_) => "a list",
        _ => "a text",
    }
}

/// The setting that a misspelt variable differs from in nothing but underscores.
fn meant(table: &toml::Table, key: &str) -> Option<String> {
    let bare = |text: &str| text.to_ascii_uppercase().replace('_', "");
    let sections = table.iter().filter_map(|(section, value)| Some((section, value.as_table()?)));
    let mut names = sections.flat_map(|(section, table)| table.keys().map(move |key| format!("{section}__{key}")));
    let name = names.find(|name| bare(name) == bare(key))?;
    Some(format!("{ENV_PREFIX}{}", name.to_ascii_uppercase()))
}

/// A variable takes the type that its default has.
fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), String> {
    let key = key.to_ascii_lowercase();
    let (section, field) = key.split_once("__").ok_or("expected SECTION__KEY")?;
    let Some(slot) = table.get_mut(section).and_then(|s| s.as_table_mut()).and_then(|s| s.get_mut(field)) else {
        return Err(format!("there is no setting {section}.{field}"));
    };
    let expected = format!("{section}.{field}: expected {}", kind(slot));
    *slot = match slot {
        toml::Value::Integer(_) => toml::Value::Integer(value.parse().map_err(|_| expected)?),
        toml::Value::Boolean(_) => toml::Value::Boolean(value.parse().map_err(|_| expected)?),
        toml::Value::Array(_) => toml::Value::Array(
            value.split(',').filter(|v| !v.is_empty()).map(|v| toml::Value::String(v.trim().to_owned())).collect(),
        ),
        _ => toml::Value::String(value.to_owned()),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_parses() {
        let config = Config::defaults();
        assert_eq!(config.push.ring_s, 30);
    }

    #[test]
    fn a_file_replaces_single_values_and_unknown_ones_are_refused() {
        let mut table: toml::Table = DEFAULTS.parse().unwrap();
        let mut faults = Vec::new();
        merge(&mut table, "[http]\nlisten = \"[::1]:1\"".parse().unwrap(), &mut faults);
        assert!(faults.is_empty());
        set(&mut table, "DESK__BATCH_REQUESTS_MAX", "7").unwrap();
        assert!(set(&mut table, "DESK__NO_SUCH", "7").is_err());
        assert!(set(&mut table, "DESK__BATCH_REQUESTS_MAX", "many").is_err());
        let config: Config = table.clone().try_into().unwrap();
        assert_eq!((config.http.listen.as_str(), config.desk.batch_requests_max), ("[::1]:1", 7));
        let wrong = "[http]\nlisten_on = \"x\"\nlisten = 7\n[no]\nx = 1";
        merge(&mut table, wrong.parse().unwrap(), &mut faults);
        faults.sort();
        assert_eq!(
            faults,
            ["http.listen: expected a text", "there is no section [no]", "there is no setting http.listen_on"]
        );
        assert_eq!(table["http"]["listen"].as_str(), Some("[::1]:1"));
    }

    #[test]
    fn a_slip_in_the_underscores_is_told_what_was_meant() {
        let table: toml::Table = DEFAULTS.parse().unwrap();
        assert_eq!(meant(&table, "HTTP_LISTEN").as_deref(), Some("FULLHOUSE__HTTP__LISTEN"));
        assert_eq!(meant(&table, "HTTP__ASSETSDIR").as_deref(), Some("FULLHOUSE__HTTP__ASSETS_DIR"));
        assert_eq!(meant(&table, "PORT"), None, "an orchestrator's own");
    }

    #[test]
    fn secrets_are_not_printed() {
        assert!(!format!("{:?}", Secret::new("sk_live_1")).contains("sk_live"));
    }
}
