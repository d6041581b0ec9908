//! Who does something by a command, and why.

use clap::Args;

use super::money::sentence;
use crate::auth::Actor;

#[derive(Args)]
pub struct Why {
    /// Why, for the log: 1 to 500 characters.
    #[arg(long, value_parser = sentence)]
    pub reason: String,
    #[command(flatten)]
    pub by: By,
}

#[derive(Args)]
pub struct By {
    /// Who says so, for the log.
    #[arg(long, value_parser = sentence)]
    by: String,
}

impl By {
    /// As the log has it.
    pub fn name(&self) -> String {
        format!("{}, by command", self.by)
    }

    pub fn actor(&self) -> Actor {
        Actor::person(self.name())
    }
}
