//! Waiting rooms on the command line: opening one, its pace, pauses and draw.

use std::{collections::BTreeMap, fmt::Write};

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use fullhouse_protocol::line::{DrawKind, LinePatch, Redraw, StaffLine};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    admission::staff,
    catalog::commands::Report,
    waiting_room::open::{self, NewLine, PublicValue},
};

#[derive(Subcommand)]
pub enum QueueCommand {
    /// Give an event a waiting room. The commitment of its draw is published at once.
    Open(OpenArgs),
    /// How the line stands, and what can be turned about it.
    Show {
        /// Slug or number
        event: String,
        /// For machines
        #[arg(long)]
        json: bool,
    },
    /// Change the bounds of the pace, or set it by hand.
    Set(SetArgs),
    /// Call nobody, with a message for who waits.
    Pause {
        event: String,
        /// What they read: a text, or `en=…`, `ja=…`, `ko=…`; several if given several times
        #[arg(long = "message", value_name = "TEXT")]
        messages: Vec<String>,
        #[command(flatten)]
        said: Said,
    },
    /// Go on calling. The message goes.
    Resume {
        event: String,
        #[command(flatten)]
        said: Said,
    },
    /// The draw's public value, once it is out: hexadecimal.
    Value {
        event: String,
        value: String,
        #[command(flatten)]
        said: Said,
    },
    /// Publish the draw's secret before the sale opens (it is published then by itself).
    Reveal {
        event: String,
        #[command(flatten)]
        said: Said,
    },
    /// Give the draw up and begin another, as long as nobody was called. Both stay public, with the reason.
    Redraw {
        event: String,
        #[command(flatten)]
        public: PublicArgs,
        #[command(flatten)]
        said: Said,
    },
    /// End somebody's time inside.
    Revoke {
        event: String,
        account: Uuid,
        #[command(flatten)]
        said: Said,
    },
    /// Who changed what, and why: the newest first.
    Log { event: String },
}

#[derive(Args)]
pub struct OpenArgs {
    /// Slug or number
    event: String,
    /// When joining begins (2027-03-01T08:00:00Z)
    #[arg(long)]
    joins_at: DateTime<Utc>,
    /// Whoever joined before is drawn; not after the on-sale
    #[arg(long)]
    closes_at: DateTime<Utc>,
    /// People a minute, at least
    #[arg(long, default_value_t = 60)]
    rate_min: i32,
    /// People a minute, at most
    #[arg(long, default_value_t = 3000)]
    rate_max: i32,
    /// People inside at once
    #[arg(long, default_value_t = 2000)]
    inside_max: i32,
    #[command(flatten)]
    public: PublicArgs,
}

/// A value that nobody here can choose makes a draw verifiable.
#[derive(Args)]
pub struct PublicArgs {
    /// Where a public value will come from, such as `drand quicknet`
    #[arg(long, requires = "round")]
    source: Option<String>,
    /// Which of its values
    #[arg(long, requires = "value_due_at")]
    round: Option<String>,
    /// When it is out: a minute after the entries are fixed, or later
    #[arg(long, requires = "source")]
    value_due_at: Option<DateTime<Utc>>,
}

#[derive(Args)]
pub struct SetArgs {
    event: String,
    #[arg(long)]
    rate_min: Option<i32>,
    #[arg(long)]
    rate_max: Option<i32>,
    /// So many a minute instead of the controller's; `auto` gives it back
    #[arg(long)]
    rate: Option<String>,
    #[arg(long)]
    inside_max: Option<i32>,
    /// Live holds at once; `none` for as many as there are seats
    #[arg(long)]
    holds_max: Option<String>,
    /// Live checkouts at once; `none` for as many as there are holds
    #[arg(long)]
    checkouts_max: Option<String>,
    /// When more seats will come; `none`
    #[arg(long)]
    next_batch_at: Option<String>,
    #[command(flatten)]
    said: Said,
}

impl SetArgs {
    fn names_something(&self) -> bool {
        let numbers = [self.rate_min, self.rate_max, self.inside_max];
        let words = [&self.rate, &self.holds_max, &self.checkouts_max, &self.next_batch_at];
        numbers.iter().any(Option::is_some) || words.iter().any(|word| word.is_some())
    }
}

#[derive(Args)]
pub struct Said {
    /// For the log: 1 to 500 characters
    #[arg(long, value_parser = super::money::sentence)]
    reason: String,
    /// Who you are
    #[arg(long, value_parser = super::money::sentence)]
    by: String,
}

pub async fn run(pool: &PgPool, command: QueueCommand) -> anyhow::Result<Report> {
    match command {
        QueueCommand::Open(args) => open_line(pool, args).await,
        QueueCommand::Show { event, json } => {
            let seen = staff::look(&mut *pool.acquire().await?, find(pool, &event).await?).await?;
            let seen = seen.with_context(|| format!("{event} has no waiting room"))?;
            if json {
                return done(serde_json::to_string_pretty(&seen)?);
            }
            done(told(&seen))
        }
        QueueCommand::Log { event } => {
            let mut text = String::new();
            for c in staff::changes(pool, find(pool, &event).await?, None).await? {
                let value = |v: &Option<serde_json::Value>| v.as_ref().map_or("-".to_owned(), ToString::to_string);
                writeln!(
                    text,
                    "{}\t{}\t{}\t{} -> {}\t{}",
                    c.at,
                    c.actor,
                    c.what,
                    value(&c.was),
                    value(&c.is_now),
                    c.reason
                )?;
            }
            done(text)
        }
        QueueCommand::Revoke { event, account, said } => {
            change(pool, &event, said, LinePatch { revoke: Some(account), ..LinePatch::default() }).await?;
            done("the pass has ended".to_owned())
        }
        QueueCommand::Set(args) => {
            ensure!(args.names_something(), "nothing is to be changed: see `fullhouse queue set --help`");
            let rate_fixed = args.rate.as_deref().map(|text| number_or(text, "auto")).transpose()?;
            let patch = LinePatch {
                rate_minute_min: args.rate_min,
                rate_minute_max: args.rate_max,
                rate_fixed,
                inside_max: args.inside_max,
                holds_live_max: args.holds_max.as_deref().map(|text| number_or(text, "none")).transpose()?,
                checkouts_live_max: args.checkouts_max.as_deref().map(|text| number_or(text, "none")).transpose()?,
                next_batch_at: match args.next_batch_at.as_deref() {
                    None => None,
                    Some("none") => Some(None),
                    Some(text) => {
                        Some(Some(text.parse().context("--next-batch-at is a time such as 2027-03-01T08:00:00Z")?))
                    }
                },
                ..LinePatch::default()
            };
            change(pool, &args.event, args.said, patch).await
        }
        QueueCommand::Pause { event, messages, said } => {
            let message = if messages.is_empty() { None } else { Some(Some(texts(&messages)?)) };
            change(pool, &event, said, LinePatch { paused: Some(true), message, ..LinePatch::default() }).await
        }
        QueueCommand::Resume { event, said } => {
            let patch = LinePatch { paused: Some(false), message: Some(None), ..LinePatch::default() };
            change(pool, &event, said, patch).await
        }
        QueueCommand::Value { event, value, said } => {
            change(pool, &event, said, LinePatch { public_value: Some(value), ..LinePatch::default() }).await
        }
        QueueCommand::Reveal { event, said } => {
            change(pool, &event, said, LinePatch { reveal: true, ..LinePatch::default() }).await
        }
        QueueCommand::Redraw { event, public, said } => {
            let PublicArgs { source, round, value_due_at } = public;
            let redraw = Some(Redraw { source, round, value_due_at });
            change(pool, &event, said, LinePatch { redraw, ..LinePatch::default() }).await
        }
    }
}

fn done(text: String) -> anyhow::Result<Report> {
    Ok(Report { text, failed: false })
}

async fn find(pool: &PgPool, event: &str) -> anyhow::Result<i64> {
    sqlx::query_scalar!("select id from event where slug = $1 or id::text = $1", event)
        .fetch_optional(pool)
        .await?
        .with_context(|| format!("there is no event {event}"))
}

async fn open_line(pool: &PgPool, args: OpenArgs) -> anyhow::Result<Report> {
    let event_id = find(pool, &args.event).await?;
    let public = match (args.public.source, args.public.round, args.public.value_due_at) {
        (Some(source), Some(round), Some(due_at)) => Some(PublicValue { source, round, due_at }),
        _ => None,
    };
    let new = NewLine {
        joins_at: args.joins_at,
        closes_at: args.closes_at,
        public,
        rate_minute_min: args.rate_min,
        rate_minute_max: args.rate_max,
        inside_max: args.inside_max,
    };
    let mut tx = pool.begin().await?;
    open::open(&mut tx, event_id, &new, "command line").await?;
    let seen = staff::look(&mut tx, event_id).await?.context("the line that was just made")?;
    tx.commit().await?;
    done(told(&seen))
}

async fn change(pool: &PgPool, event: &str, said: Said, patch: LinePatch) -> anyhow::Result<Report> {
    let event_id = find(pool, event).await?;
    let patch = LinePatch { reason: said.reason, ..patch };
    let seen = staff::change(pool, event_id, patch, format!("command line, {}", said.by)).await?;
    done(told(&seen))
}

/// `Some(None)` for the word.
fn number_or(text: &str, word: &str) -> anyhow::Result<Option<i32>> {
    if text == word {
        return Ok(None);
    }
    text.parse().map(Some).with_context(|| format!("{text:?} is neither a number nor `{word}`"))
}

fn texts(messages: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for message in messages {
        let (language, text) = match message.split_once('=') {
            Some((language @ ("en" | "ja" | "ko"), text)) => (language, text),
            _ => ("default", message.as_str()),
        };
        if texts.insert(language.to_owned(), text.to_owned()).is_some() {
            bail!("there are two messages for {language}");
        }
    }
    Ok(texts)
}

fn told(seen: &StaffLine) -> String {
    let line = &seen.line;
    let mut text = format!(
        "{}: {} joined, called through {}, {} inside of {}, {} expected\n",
        line.state.name(),
        line.joined,
        line.called_through,
        line.inside,
        line.inside_max,
        seen.expected
    );
    let by = if seen.rate_fixed.is_some() { "by hand" } else { "by the controller" };
    let _ = writeln!(
        text,
        "{} a minute ({by}; {} to {}); {} in the last minute; {} seats left",
        line.rate_minute, seen.rate_minute_min, seen.rate_minute_max, line.called_last_minute, line.seats_left
    );
    let _ = writeln!(text, "joining {} to {}, opening {}", line.joins_at, line.closes_at, line.opens_at);
    let kind = match line.draw.kind {
        DrawKind::Verifiable => "verifiable",
        DrawKind::Committed => "committed",
    };
    let _ = writeln!(text, "draw {} ({kind}), commitment {}", line.draw.no, line.draw.commitment);
    if let Some(root) = &line.draw.root {
        let _ = writeln!(text, "root {root} over {} entries", line.draw.entry_count.unwrap_or(0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_by_language() {
        let said = texts(&["Back soon".to_owned(), "ja=お待ちください".to_owned(), "1=1".to_owned()]);
        assert!(said.is_err(), "two without a language");
        let said = texts(&["Back soon".to_owned(), "ja=お待ちください".to_owned()]).unwrap();
        assert_eq!((said["default"].as_str(), said["ja"].as_str()), ("Back soon", "お待ちください"));
        assert_eq!(number_or("auto", "auto").unwrap(), None);
        assert!(number_or("many", "auto").is_err());
    }
}
