//! The log of what people did.

use std::fmt::Write;

use anyhow::Context;
use chrono::{DateTime, Utc};
use clap::Args;
use sqlx::PgPool;

use crate::{
    auth::log::{self, Wanted},
    catalog::commands::Report,
};

#[derive(Args)]
pub struct AuditArgs {
    /// Only of this event: its slug or number.
    #[arg(long)]
    event: Option<String>,
    /// Only at this terminal, or done to it: its name.
    #[arg(long)]
    terminal: Option<String>,
    /// Only by whoever has this in their name.
    #[arg(long)]
    person: Option<String>,
    /// Only of this kind, such as `order_refund`.
    #[arg(long)]
    verb: Option<String>,
    /// From this time on, such as 2026-11-30T18:00:00Z.
    #[arg(long)]
    since: Option<DateTime<Utc>>,
    /// Before this time.
    #[arg(long)]
    until: Option<DateTime<Utc>>,
    /// Only those before the entry of this number, to read on.
    #[arg(long)]
    before: Option<i64>,
    /// How many, 1 to 1000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

/// The latest first, a line each: number, time, kind, who, where, what, why.
pub async fn run(pool: &PgPool, args: AuditArgs) -> anyhow::Result<Report> {
    let event_id = match &args.event {
        Some(event) => {
            let found = sqlx::query_scalar!("select id from event where slug = $1 or id::text = $1", event);
            Some(found.fetch_optional(pool).await?.with_context(|| format!("there is no event {event}"))?)
        }
        None => None,
    };
    let terminal_id = match &args.terminal {
        Some(name) => {
            let found = sqlx::query_scalar!("select id from terminal where name = $1", name);
            Some(found.fetch_optional(pool).await?.with_context(|| format!("there is no terminal {name}"))?)
        }
        None => None,
    };
    let AuditArgs { person, verb, since, until, before, limit, .. } = args;
    let wanted = Wanted { event_id, terminal_id, person, verb, since, until, before, limit };
    let mut text = String::new();
    for entry in log::read(pool, &wanted).await? {
        let at = entry.at.format("%Y-%m-%dT%H:%M:%SZ");
        let place = entry.terminal_name.unwrap_or_default();
        let told = [&entry.actor, &place, &entry.detail, &entry.reason].map(|part| plain(part)).join("\t");
        let _ = writeln!(text, "{}\t{at}\t{}\t{told}", entry.id, entry.verb);
    }
    Ok(Report { text, failed: false })
}

/// What people wrote stays on its line.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
