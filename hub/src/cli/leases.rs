//! Commands about seats that terminals sell without a network.

use std::fmt::Write;

use anyhow::Context;
use clap::Subcommand;
use fullhouse_protocol::lease::{LeaseState, Outcome};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    money,
    why::{By, Why},
};
use crate::{
    box_office::{leases, terminals},
    catalog::commands::Report,
};

#[derive(Subcommand)]
pub enum LeaseCommand {
    /// Leases that are open or ended lately, and journalled sales that need a person; exit with 1 if there are such.
    List,
    /// End a lease whose terminal is not heard of. RISK: it may have sold seats that nobody here knows of. They become a
    /// block, never free; the codes that it printed are dead at every door.
    WriteOff {
        lease: Uuid,
        #[command(flatten)]
        why: Why,
    },
    /// Take a journalled sale off the list: its money went back, or its customer has another ticket.
    Seen {
        /// The terminal's name.
        terminal: String,
        /// The sale's number.
        seq: u64,
        /// What was done about it.
        #[arg(long, value_parser = money::sentence)]
        note: String,
        #[command(flatten)]
        by: By,
    },
}

pub async fn run(pool: &PgPool, command: LeaseCommand) -> anyhow::Result<Report> {
    match command {
        LeaseCommand::List => list(pool).await,
        LeaseCommand::WriteOff { lease, why } => {
            let ended = leases::write_off(pool.clone(), lease, why.reason, why.by.actor()).await?;
            let text =
                format!("{} seats are blocked, their codes are dead: {:?}\n", ended.returned.len(), ended.returned);
            Ok(Report { text, failed: false })
        }
        LeaseCommand::Seen { terminal, seq, note, by } => {
            let named = terminals::list(pool).await?.into_iter().find(|t| t.name == terminal);
            let id = named.with_context(|| format!("there is no terminal called {terminal}"))?.id;
            leases::see_to(pool.clone(), id, seq, note, by.actor()).await?;
            Ok(Report { text: format!("sale {seq} of {terminal} is off the list\n"), failed: false })
        }
    }
}

async fn list(pool: &PgPool) -> anyhow::Result<Report> {
    let found = leases::listed(pool).await?;
    let mut text = String::new();
    for l in &found.leases {
        let time = |t: chrono::DateTime<chrono::Utc>| t.format("%Y-%m-%dT%H:%M:%SZ");
        let stands = match (l.state, l.ended_at) {
            (LeaseState::Open, _) if l.sells_until > found.now => format!("sells until {}", time(l.sells_until)),
            (LeaseState::WrittenOff, Some(at)) => {
                let by = l.ended_by.as_deref().unwrap_or_default();
                format!("written off at {} by {by}: {}", time(at), l.reason.as_deref().unwrap_or_default())
            }
            (_, Some(at)) => format!("closed at {}", time(at)),
            _ => {
                format!("sells no more since {}; its seats are the terminal's until it closes it", time(l.sells_until))
            }
        };
        let _ = writeln!(text, "{}\t{}\t{}\t{} of {} sold\t{stands}", l.id, l.terminal, l.event, l.sold, l.seats);
    }
    let _ = writeln!(text, "{} journalled sales need a person", found.to_see_to.len());
    for j in &found.to_see_to {
        let came = match &j.outcome {
            Outcome::Sold { order_id, .. } => {
                format!("order {order_id}: the printed codes are dead, give out new tickets")
            }
            Outcome::NotSold { reason } => format!("no sale ({}): the money lies in the drawer", reason.name()),
        };
        let seats = &j.seats;
        let _ =
            writeln!(text, "{} {}\t{} {} for seats {seats:?}\t{came}", j.terminal, j.seq, j.total_minor, j.currency);
    }
    Ok(Report { text, failed: !found.to_see_to.is_empty() })
}
