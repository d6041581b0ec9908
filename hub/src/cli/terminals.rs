//! Terminals by commands: tills and kiosks, whatever sells by a token of its own.

use std::fmt::Write;

use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use fullhouse_protocol::terminal::{EnrolmentRequest, ReaderSeen, TerminalChange, TerminalRole};
use sqlx::PgPool;

use super::why::Why;
use crate::{auth, box_office::terminals, catalog::commands::Report};

#[derive(Subcommand)]
pub enum TerminalCommand {
    /// Enrol a terminal and print its token, this once.
    Add {
        /// What the books call it, such as "Counter 1"; once only.
        name: String,
        /// What it may do.
        #[arg(long)]
        role: Role,
        /// The provider's id of the card reader that stands at it (`tmr_…`); several if given several times.
        #[arg(long = "reader", value_name = "READER")]
        readers: Vec<String>,
        /// Staff have to sign in before it sells, and its cash needs an open shift. A counter only.
        #[arg(long)]
        attended: bool,
    },
    /// Print a code that enrols a machine: type it there within 15 minutes. A counter is attended then: staff sign in.
    Enrol {
        /// What the books will call it, such as "Counter 1"; once only.
        name: String,
        /// What it may do.
        #[arg(long)]
        role: Role,
        #[command(flatten)]
        why: Why,
    },
    /// Place a card reader at a terminal, wherever it stood before. No other terminal may have a card held to it.
    Reader {
        /// The name that the terminal was enrolled by.
        name: String,
        /// The provider's id of the reader (`tmr_…`).
        reader: String,
    },
    /// All terminals, with their roles and readers, and how they said that they are.
    List,
    /// Let a terminal do nothing but report, from now on, until it is unlocked.
    Lock {
        /// Its name.
        name: String,
        /// Whoever stands before it reads the reason too.
        #[command(flatten)]
        why: Why,
    },
    /// Let it work again.
    Unlock {
        /// Its name.
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Refuse a terminal's token from now on.
    Revoke {
        /// Its name.
        name: String,
        #[command(flatten)]
        why: Why,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Role {
    /// Staff stand behind it: holds, sales for cash or card, comps, blocking of seats; also before the sale opens.
    Counter,
    /// It stands among the public: holds by the rules of the page, and card sales. No cash, no comps, no blocking.
    Kiosk,
}

impl From<Role> for TerminalRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Counter => Self::Counter,
            Role::Kiosk => Self::Kiosk,
        }
    }
}

pub async fn run(pool: PgPool, command: TerminalCommand) -> anyhow::Result<Report> {
    let done = match command {
        TerminalCommand::Add { name, role, readers, attended } => {
            return add(&pool, &name, role.into(), attended, &readers).await;
        }
        TerminalCommand::Enrol { name, role, why } => return enrol(pool, &name, role.into(), why).await,
        TerminalCommand::List => return list(&pool).await,
        TerminalCommand::Reader { name, reader } => {
            auth::place_reader(&pool, &name, &reader).await?;
            format!("{reader} stands at {name} from now on")
        }
        TerminalCommand::Lock { name, why } => {
            change(&pool, &name, TerminalChange { locked: Some(true), ..TerminalChange::default() }, why).await?;
            format!("{name} is locked")
        }
        TerminalCommand::Unlock { name, why } => {
            change(&pool, &name, TerminalChange { locked: Some(false), ..TerminalChange::default() }, why).await?;
            format!("{name} works again")
        }
        TerminalCommand::Revoke { name, why } => {
            change(&pool, &name, TerminalChange { revoke: true, ..TerminalChange::default() }, why).await?;
            format!("the token of {name} is refused from now on")
        }
    };
    Ok(Report { text: done, failed: false })
}

async fn add(
    pool: &PgPool,
    name: &str,
    role: TerminalRole,
    attended: bool,
    readers: &[String],
) -> anyhow::Result<Report> {
    let (name, role) = (&named(name)?, role.name());
    let (_, token) =
        if attended { auth::enrol_attended(pool, name, role).await? } else { auth::enrol(pool, name, role).await? };
    for reader in readers {
        auth::place_reader(pool, name, reader).await?;
    }
    eprintln!("{name} is enrolled. This is its token; it is kept nowhere and can't be shown again:");
    Ok(Report { text: token.reveal().to_owned(), failed: false })
}

/// A code that enrols a machine.
async fn enrol(pool: PgPool, name: &str, role: TerminalRole, Why { reason, by }: Why) -> anyhow::Result<Report> {
    let name = named(name)?;
    let made = auth::make_code(pool, EnrolmentRequest { name, role, reason }, by.name()).await?;
    let until = made.expires_at.format("%Y-%m-%dT%H:%M:%SZ");
    Ok(Report { text: format!("{}\ntype it at the machine; it is good once, until {until}", made.code), failed: false })
}

/// Terminals, their readers, how they said that they are, and what the readers' provider said, one a line.
async fn list(pool: &PgPool) -> anyhow::Result<Report> {
    let mut text = String::new();
    for t in terminals::list(pool).await? {
        let token = match (t.revoked, &t.locked_reason) {
            (true, _) => "revoked".to_owned(),
            (false, Some(reason)) => format!("locked ({reason})"),
            (false, None) => "valid".to_owned(),
        };
        let health = match (t.health, t.health_at) {
            (Some(h), Some(at)) => {
                let at = at.format("%Y-%m-%dT%H:%M:%SZ");
                format!("\tpaper {}, reader {}, {} at {at} {}", word(h.paper)?, word(h.reader)?, h.version, h.detail)
            }
            _ => String::new(),
        };
        let role = if t.attended { format!("{}, attended", t.role) } else { t.role };
        let said = |reader: ReaderSeen| {
            let at = reader.at?.format("%Y-%m-%dT%H:%M:%SZ");
            Some(format!("\t{} {} at {at}", reader.id, reader.state.name()))
        };
        let provider: String = t.reader_states.into_iter().filter_map(said).collect();
        let _ = writeln!(text, "{}\t{role}\t{token}\t{}{health}{provider}", t.name, t.readers.join(" "));
    }
    Ok(Report { text, failed: false })
}

/// A state as it is written on the wire.
fn word(state: impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_value(state)?.as_str().unwrap_or_default().to_owned())
}

/// What a terminal or a member of the staff is to be called.
pub fn named(name: &str) -> anyhow::Result<String> {
    let name = name.trim();
    let fits = auth::is_readable(name) && name.chars().count() <= 60 && !name.chars().any(char::is_control);
    anyhow::ensure!(fits, "a name has 1 to 60 characters, and one of them can be seen");
    Ok(name.to_owned())
}

async fn change(pool: &PgPool, name: &str, change: TerminalChange, Why { reason, by }: Why) -> anyhow::Result<()> {
    let named = terminals::list(pool).await?.into_iter().find(|t| t.name == name);
    let terminal = named.with_context(|| format!("there is no terminal called {name}"))?;
    anyhow::ensure!(!(change.revoke && terminal.revoked), "the token of {name} is refused already");
    Ok(terminals::change(pool.clone(), terminal.id, TerminalChange { reason, ..change }, by.name()).await?)
}
