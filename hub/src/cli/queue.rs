//! Waiting rooms on the command line: opening one, its pace, pauses and draw.

mod typed; // what was typed, and all that is wrong with it

use std::{collections::BTreeMap, fmt::Write};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use fullhouse_protocol::line::{DrawKind, Line, LinePatch, LineState, StaffLine};
use sqlx::PgPool;
use uuid::Uuid;

use self::typed::Typed;
use super::why::Why;
use crate::{
    admission::staff::{self, ChangeError},
    catalog::commands::Report,
    waiting_room::{
        bounds::{self, Wanted},
        open::{self, NewLine, OpenError, PublicValue},
    },
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
        why: Why,
    },
    /// Go on calling. The message goes.
    Resume {
        event: String,
        #[command(flatten)]
        why: Why,
    },
    /// The draw's public value, once it is out: hexadecimal.
    Value {
        event: String,
        value: String,
        #[command(flatten)]
        why: Why,
    },
    /// Publish the draw's secret before the sale opens (it is published then by itself).
    Reveal {
        event: String,
        #[command(flatten)]
        why: Why,
    },
    /// Give the draw up and begin another, as long as nobody was called. Both stay public, with the reason.
    Redraw {
        event: String,
        #[command(flatten)]
        public: PublicArgs,
        #[command(flatten)]
        why: Why,
    },
    /// End somebody's time inside.
    Revoke {
        event: String,
        /// Their e-mail address, or their account's id
        account: String,
        #[command(flatten)]
        why: Why,
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
    joins_at: String,
    /// Whoever joined before is drawn; not after the on-sale
    #[arg(long)]
    closes_at: String,
    /// People a minute, at least: 0 to 1000000
    #[arg(long, default_value = "60", allow_negative_numbers = true)]
    rate_min: String,
    /// People a minute, at most: 1 to 1000000
    #[arg(long, default_value = "3000", allow_negative_numbers = true)]
    rate_max: String,
    /// People inside at once: 1 to 1000000. Who was called and comes late is let in beyond it, within the grace
    #[arg(long, default_value = "2000", allow_negative_numbers = true)]
    inside_max: String,
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
    value_due_at: Option<String>,
}

impl PublicArgs {
    /// All three or none, as clap has seen to.
    fn read(self, typed: &mut Typed) -> Option<PublicValue> {
        let due_at = typed.time("--value-due-at", &self.value_due_at?)?;
        Some(PublicValue { source: self.source?, round: self.round?, due_at })
    }
}

#[derive(Args)]
pub struct SetArgs {
    event: String,
    /// People a minute, at least: 0 to 1000000
    #[arg(long, allow_negative_numbers = true)]
    rate_min: Option<String>,
    /// People a minute, at most: 1 to 1000000
    #[arg(long, allow_negative_numbers = true)]
    rate_max: Option<String>,
    /// So many a minute instead of the controller's, from the least to the most; `auto` gives it back
    #[arg(long, allow_negative_numbers = true)]
    rate: Option<String>,
    /// People inside at once: 1 to 1000000
    #[arg(long, allow_negative_numbers = true)]
    inside_max: Option<String>,
    /// Live holds at once; `none` for as many as there are seats
    #[arg(long, allow_negative_numbers = true)]
    holds_max: Option<String>,
    /// Live checkouts at once; `none` for as many as there are holds
    #[arg(long, allow_negative_numbers = true)]
    checkouts_max: Option<String>,
    /// When more seats will come; `none`
    #[arg(long)]
    next_batch_at: Option<String>,
    #[command(flatten)]
    why: Why,
}

impl SetArgs {
    fn read(&self, typed: &mut Typed) -> LinePatch {
        let mut number = |option: &str, text: &Option<String>| text.as_ref().and_then(|t| typed.number(option, t));
        let rate_minute_min = number("--rate-min", &self.rate_min);
        let rate_minute_max = number("--rate-max", &self.rate_max);
        let inside_max = number("--inside-max", &self.inside_max);
        let mut number_or =
            |option: &str, text: &Option<String>, word| text.as_ref().and_then(|t| typed.number_or(option, t, word));
        LinePatch {
            rate_minute_min,
            rate_minute_max,
            inside_max,
            rate_fixed: number_or("--rate", &self.rate, "auto"),
            holds_live_max: number_or("--holds-max", &self.holds_max, "none"),
            checkouts_live_max: number_or("--checkouts-max", &self.checkouts_max, "none"),
            next_batch_at: self.next_batch_at.as_ref().and_then(|t| typed.time_or("--next-batch-at", t, "none")),
            ..LinePatch::default()
        }
    }

    fn names_something(&self) -> bool {
        let numbers = [&self.rate_min, &self.rate_max, &self.inside_max];
        let words = [&self.rate, &self.holds_max, &self.checkouts_max, &self.next_batch_at];
        numbers.into_iter().chain(words).any(Option::is_some)
    }
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
        QueueCommand::Revoke { event, account, why } => {
            let revoke = Some(account_of(pool, &account).await?);
            change(pool, &event, why, LinePatch { revoke, ..LinePatch::default() }).await?;
            done("the pass has ended".to_owned())
        }
        QueueCommand::Set(args) => set(pool, args).await,
        QueueCommand::Pause { event, messages, why } => {
            let message = if messages.is_empty() { None } else { Some(Some(texts(&messages)?)) };
            change(pool, &event, why, LinePatch { paused: Some(true), message, ..LinePatch::default() }).await
        }
        QueueCommand::Resume { event, why } => {
            let patch = LinePatch { paused: Some(false), message: Some(None), ..LinePatch::default() };
            change(pool, &event, why, patch).await
        }
        QueueCommand::Value { event, value, why } => {
            change(pool, &event, why, LinePatch { public_value: Some(value), ..LinePatch::default() }).await
        }
        QueueCommand::Reveal { event, why } => {
            change(pool, &event, why, LinePatch { reveal: true, ..LinePatch::default() }).await
        }
        QueueCommand::Redraw { event, public, why } => {
            let mut typed = Typed::default();
            let redraw = Some(public.read(&mut typed).into());
            typed.verdict()?;
            change(pool, &event, why, LinePatch { redraw, ..LinePatch::default() }).await
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

/// Of who is meant: an id is taken as it is, an address is looked up.
async fn account_of(pool: &PgPool, account: &str) -> anyhow::Result<Uuid> {
    if let Ok(id) = account.parse() {
        return Ok(id);
    }
    sqlx::query_scalar!("select id from account where email = lower($1)", account)
        .fetch_optional(pool)
        .await?
        .with_context(|| format!("there is no account {account:?}: its e-mail address is expected, or its id"))
}

async fn open_line(pool: &PgPool, args: OpenArgs) -> anyhow::Result<Report> {
    let mut typed = Typed::default();
    let event = sqlx::query!("select id, on_sale_at from event where slug = $1 or id::text = $1", args.event)
        .fetch_optional(pool)
        .await?;
    if event.is_none() {
        typed.wrong(format!("there is no event {}", args.event));
    }
    let joins_at = typed.time("--joins-at", &args.joins_at);
    let closes_at = typed.time("--closes-at", &args.closes_at);
    let rate_minute_min = typed.number("--rate-min", &args.rate_min);
    let rate_minute_max = typed.number("--rate-max", &args.rate_max);
    let inside_max = typed.number("--inside-max", &args.inside_max);
    let public = args.public.read(&mut typed);
    let wanted = Wanted {
        joins_at,
        closes_at,
        rate_minute_min,
        rate_minute_max,
        inside_max,
        public: public.as_ref(),
        ..Wanted::default()
    };
    typed.found(bounds::faults(&wanted, event.as_ref().map(|event| event.on_sale_at)));
    typed.verdict()?;
    let (Some(event), Some(joins_at), Some(closes_at)) = (event, joins_at, closes_at) else {
        bail!("nothing was read")
    };
    let (Some(rate_minute_min), Some(rate_minute_max), Some(inside_max)) =
        (rate_minute_min, rate_minute_max, inside_max)
    else {
        bail!("nothing was read")
    };
    let new = NewLine { joins_at, closes_at, public, rate_minute_min, rate_minute_max, inside_max };
    let mut tx = pool.begin().await?;
    match open::open(&mut tx, event.id, &new, "command line").await {
        Err(OpenError::Invalid(faults)) => {
            let mut typed = Typed::default();
            typed.found(faults);
            typed.verdict()?;
        }
        opened => opened?,
    }
    let seen = staff::look(&mut tx, event.id).await?.context("the line that was just made")?;
    tx.commit().await?;
    done(told(&seen))
}

async fn set(pool: &PgPool, args: SetArgs) -> anyhow::Result<Report> {
    let mut typed = Typed::default();
    if !args.names_something() {
        typed.wrong("nothing is to be changed: see `fullhouse queue set --help`");
    }
    if let Err(error) = find(pool, &args.event).await {
        typed.wrong(error.to_string());
    }
    let patch = args.read(&mut typed);
    let wanted = Wanted {
        rate_minute_min: patch.rate_minute_min,
        rate_minute_max: patch.rate_minute_max,
        rate_fixed: patch.rate_fixed.flatten(),
        inside_max: patch.inside_max,
        holds_live_max: patch.holds_live_max.flatten(),
        checkouts_live_max: patch.checkouts_live_max.flatten(),
        ..Wanted::default()
    };
    typed.found(bounds::faults(&wanted, None));
    typed.verdict()?;
    change(pool, &args.event, args.why, patch).await
}

async fn change(pool: &PgPool, event: &str, why: Why, patch: LinePatch) -> anyhow::Result<Report> {
    let event_id = find(pool, event).await?;
    let patch = LinePatch { reason: why.reason, ..patch };
    match staff::change(pool, event_id, patch, why.by.name()).await {
        Ok(seen) => done(told(&seen)),
        Err(ChangeError::Invalid(faults)) => {
            let mut typed = Typed::default();
            typed.found(faults);
            typed.verdict()?;
            bail!("nothing was changed")
        }
        Err(error) => Err(error.into()),
    }
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
        "{} a minute ({by}; {} to {}); {} in the last minute{}",
        line.rate_minute,
        seen.rate_minute_min,
        seen.rate_minute_max,
        line.called_last_minute,
        seats_left(line)
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

/// They are counted while people are called; before, the number says nothing.
fn seats_left(line: &Line) -> String {
    match line.state {
        LineState::Soon | LineState::Joining | LineState::Closed => String::new(),
        _ => format!("; {} seats left", line.seats_left),
    }
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
    }
}
