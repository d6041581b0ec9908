//! Members of the staff by commands.

use std::fmt::Write;

use clap::{Subcommand, ValueEnum};
use fullhouse_protocol::clerk::{NewStaffMember, StaffMemberChange, StaffRole};
use sqlx::PgPool;

use super::{read_secret, terminals, why::Why};
use crate::{auth::Members, catalog::commands::Report};

/// Members of the staff: who signs in at an attended terminal.
#[derive(Subcommand)]
pub enum StaffCommand {
    /// Make somebody a member. The password is asked for, or read from standard input.
    Add {
        name: String,
        #[arg(long)]
        role: Role,
        #[command(flatten)]
        why: Why,
    },
    /// Give somebody another role. It ends their sessions, as every change does.
    Role {
        name: String,
        role: Role,
        #[command(flatten)]
        why: Why,
    },
    /// Give somebody another password, and let them try again at once.
    Password {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Give somebody a PIN of 6 to 12 digits, for attended terminals; an empty one takes it away.
    Pin {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Let somebody sign in no more.
    Disable {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Let somebody sign in again.
    Enable {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// All members, with their roles.
    List,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Role {
    /// Sells, looks up, prints again with a reason.
    Clerk,
    /// Also gives away, changes prices, gives back, exchanges, blocks and pays out.
    Supervisor,
    /// Also closes another's shift, locks the day, revives seats.
    Manager,
}

impl From<Role> for StaffRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Clerk => Self::Clerk,
            Role::Supervisor => Self::Supervisor,
            Role::Manager => Self::Manager,
        }
    }
}

pub async fn run(pool: PgPool, command: StaffCommand) -> anyhow::Result<Report> {
    let members = Members::of_command(pool);
    let done = match command {
        StaffCommand::List => return list(&members).await,
        StaffCommand::Add { name, role, why } => {
            let name = terminals::named(&name)?;
            let Why { reason, by } = why;
            let password = read_secret("Password")?;
            let new = NewStaffMember { name: name.clone(), role: role.into(), password, pin: None, reason };
            members.add(new, by.actor()).await?;
            format!("{name} is of the staff")
        }
        StaffCommand::Role { name, role, why } => {
            let change = StaffMemberChange { role: Some(role.into()), ..StaffMemberChange::default() };
            changed(&members, name, change, why).await?
        }
        StaffCommand::Password { name, why } => {
            let change = StaffMemberChange { password: Some(read_secret("Password")?), ..StaffMemberChange::default() };
            changed(&members, name, change, why).await?
        }
        StaffCommand::Pin { name, why } => {
            let change = StaffMemberChange { pin: Some(read_secret("PIN")?), ..StaffMemberChange::default() };
            changed(&members, name, change, why).await?
        }
        StaffCommand::Disable { name, why } => {
            let change = StaffMemberChange { disabled: Some(true), ..StaffMemberChange::default() };
            changed(&members, name, change, why).await?
        }
        StaffCommand::Enable { name, why } => {
            let change = StaffMemberChange { disabled: Some(false), ..StaffMemberChange::default() };
            changed(&members, name, change, why).await?
        }
    };
    Ok(Report { text: done, failed: false })
}

async fn changed(members: &Members, name: String, change: StaffMemberChange, why: Why) -> anyhow::Result<String> {
    let id = members.named(name.trim()).await?;
    members.change(id, StaffMemberChange { reason: why.reason, ..change }, why.by.actor()).await?;
    Ok(format!("{} is changed; whoever was signed in so is signed out", name.trim()))
}

async fn list(members: &Members) -> anyhow::Result<Report> {
    let mut text = String::new();
    for member in members.list().await? {
        let pin = if member.has_pin { "PIN" } else { "" };
        let state = match (member.disabled, member.locked_until) {
            (true, _) => "disabled".to_owned(),
            (false, Some(until)) => format!("locked until {}", until.format("%Y-%m-%dT%H:%M:%SZ")),
            (false, None) => String::new(),
        };
        let _ = writeln!(text, "{}\t{}\t{pin}\t{state}", member.name, member.role.name());
    }
    Ok(Report { text, failed: false })
}
