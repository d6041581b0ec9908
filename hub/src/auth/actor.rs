//! Who does something, as the books and the log name them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::log::{self, Deed};
use crate::db::Tx;

/// Somebody who acts: by name, and at a terminal of the house also by which terminal and who stood there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    name: String,
    terminal_id: Option<Uuid>,
    staff_id: Option<Uuid>,
    /// Somebody, and no worker or buyer.
    person: bool,
}

impl Actor {
    /// Somebody at a terminal. `staff_id`: none where nobody signs in.
    pub fn at_terminal(name: String, terminal_id: Uuid, staff_id: Option<Uuid>) -> Self {
        Self { name, terminal_id: Some(terminal_id), staff_id, person: staff_id.is_some() }
    }

    /// Somebody at no terminal: an operator, or whoever types a command.
    pub fn person(name: String) -> Self {
        Self { name, terminal_id: None, staff_id: None, person: true }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn terminal_id(&self) -> Option<Uuid> {
        self.terminal_id
    }

    /// Where there is a drawer.
    pub fn is_at_terminal(&self) -> bool {
        self.terminal_id.is_some()
    }

    /// Until the transaction ends its rows name this terminal and person: money, prints, notes, and the log of what
    /// was done. Said first in each verb that staff may call. Of workers and buyers nothing is said.
    pub async fn acts(&self, tx: &mut PgConnection) -> sqlx::Result<()> {
        if !self.person && self.terminal_id.is_none() {
            return Ok(());
        }
        sqlx::query!(
            "select set_config('fullhouse.terminal', $1, true) as terminal, set_config('fullhouse.staff', $2, true) as staff,
                    set_config('fullhouse.actor', $3, true) as actor",
            self.terminal_id.map(|id| id.to_string()).unwrap_or_default(),
            self.staff_id.map(|id| id.to_string()).unwrap_or_default(),
            self.name
        )
        .fetch_one(tx)
        .await?;
        Ok(())
    }

    /// Writes into the log what they did; said after [`Self::acts`], which names the person.
    pub async fn writes(&self, tx: &mut Tx, deed: Deed<'_>, now: DateTime<Utc>) -> sqlx::Result<()> {
        log::write(tx, &self.name, self.terminal_id, deed, now).await
    }
}

/// A worker, or a buyer.
impl From<String> for Actor {
    fn from(name: String) -> Self {
        Self { name, terminal_id: None, staff_id: None, person: false }
    }
}

impl From<&str> for Actor {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}
