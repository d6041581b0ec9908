//! Members of the staff: who they are, their roles, their passwords and PINs.
//!
//! Invariants
//! - Whatever is changed of a member ends their sessions (`staff_session_ends_with_staff`).
//! - A password or PIN is kept as argon2id only, and hashed off the runtime.
//! - What is done to a member is in the log, in the same transaction, and in no case what the secret was.

use chrono::{DateTime, Utc};
use fullhouse_protocol::clerk::{NewStaffMember, StaffMember, StaffMemberChange, StaffRole};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    Actor, Auth, Deed,
    password::{PasswordError, Passwords},
};
use crate::{
    clock,
    db::{self, Tx},
};

const PASSWORD_CHARS_MIN: usize = 10;
const SECRET_CHARS_MAX: usize = 128;
const PIN_DIGITS: std::ops::RangeInclusive<usize> = 6..=12;

#[derive(Debug, thiserror::Error)]
pub enum StaffError {
    #[error("there is no such member of the staff")]
    Unknown,
    #[error("somebody else has this name")]
    NameTaken,
    /// What is wrong, as a sentence.
    #[error("{0}")]
    Invalid(&'static str),
    #[error("too many passwords are waiting to be hashed")]
    Busy,
    #[error("hashing a password")]
    Hash(#[source] argon2::password_hash::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl From<PasswordError> for StaffError {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Busy => Self::Busy,
            PasswordError::Hash(error) => Self::Hash(error),
        }
    }
}

/// Looks after the members. Made of the hub's own hasher, or of one for a single command.
#[derive(Clone)]
pub struct Members {
    pool: PgPool,
    passwords: Passwords,
}

impl Members {
    /// For a command, which hashes one secret.
    pub fn of_command(pool: PgPool) -> Self {
        Self { pool, passwords: Passwords::new(1, 1) }
    }

    /// All of them by name.
    pub async fn list(&self) -> sqlx::Result<Vec<StaffMember>> {
        let rows = sqlx::query!(
            r#"select s.id, s.name, s.role, s.pin_hash is not null as "has_pin!", s.disabled_at is not null as "disabled!",
                      case when t.locked_until > db_clock() then t.locked_until end as locked_until
               from staff s left join staff_try t on t.name = lower(s.name) order by lower(s.name)"#
        )
        .fetch_all(&self.pool)
        .await?;
        let members = rows.into_iter().map(|s| StaffMember {
            staff_id: s.id,
            name: s.name,
            role: role(&s.role),
            has_pin: s.has_pin,
            disabled: s.disabled,
            locked_until: s.locked_until,
        });
        Ok(members.collect())
    }

    /// Somebody new. Name and reason are as they are to be written.
    pub async fn add(&self, new: NewStaffMember, actor: Actor) -> Result<Uuid, StaffError> {
        let password_hash = self.passwords.hash(checked_password(new.password)?).await?;
        let pin_hash = match new.pin {
            None => None,
            Some(pin) => Some(self.passwords.hash(checked_pin(pin)?).await?),
        };
        let (pool, id) = (self.pool.clone(), Uuid::now_v7());
        let written = db::write(async move {
            let mut tx = pool.begin().await?;
            sqlx::query!(
                "insert into staff (id, name, role, password_hash, pin_hash) values ($1, $2, $3, $4, $5)",
                id,
                new.name,
                new.role.name(),
                password_hash,
                pin_hash
            )
            .execute(&mut *tx)
            .await?;
            let now = clock::now(&mut tx).await?;
            let detail = format!("{}, {}", new.name, new.role.name());
            let deed = Deed { verb: "staff_add", event_id: None, detail: &detail, reason: &new.reason };
            actor.writes(&mut tx, deed, now).await?;
            tx.commit().await
        })
        .await;
        match written {
            Ok(()) => Ok(id),
            Err(error) if db::constraint(&error) == Some("staff_name_once") => Err(StaffError::NameTaken),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes what is named; all of it, or nothing. What is so already is no change, but a secret always is.
    pub async fn change(&self, staff_id: Uuid, change: StaffMemberChange, actor: Actor) -> Result<(), StaffError> {
        let password_hash = match change.password {
            None => None,
            Some(password) => Some(self.passwords.hash(checked_password(password)?).await?),
        };
        let pin_hash = match change.pin {
            None => None,
            Some(pin) if pin.is_empty() => Some(None),
            Some(pin) => Some(Some(self.passwords.hash(checked_pin(pin)?).await?)),
        };
        let hashed =
            Hashed { role: change.role, password_hash, pin_hash, disabled: change.disabled, reason: change.reason };
        let pool = self.pool.clone();
        db::write(async move {
            let mut tx = pool.begin().await?;
            change_in(&mut tx, staff_id, hashed, &actor).await?;
            tx.commit().await?;
            Ok(())
        })
        .await
    }

    /// The member of this name.
    pub async fn named(&self, name: &str) -> Result<Uuid, StaffError> {
        sqlx::query_scalar!("select id from staff where lower(name) = lower($1)", name)
            .fetch_optional(&self.pool)
            .await?
            .ok_or(StaffError::Unknown)
    }
}

struct Hashed {
    role: Option<StaffRole>,
    password_hash: Option<String>,
    /// `Some(None)`: no PIN any more.
    pin_hash: Option<Option<String>>,
    disabled: Option<bool>,
    reason: String,
}

async fn change_in(tx: &mut Tx, staff_id: Uuid, change: Hashed, actor: &Actor) -> Result<(), StaffError> {
    let old = sqlx::query!(
        r#"select name, role, disabled_at is not null as "disabled!" from staff where id = $1 for update"#,
        staff_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(StaffError::Unknown)?;
    let now: DateTime<Utc> = clock::now(tx).await?;
    let role = change.role.filter(|role| role.name() != old.role);
    let disabled = change.disabled.filter(|disabled| *disabled != old.disabled);
    sqlx::query!(
        "update staff set role = coalesce($2, role), password_hash = coalesce($3, password_hash),
             pin_hash = case when $4 then $5 else pin_hash end,
             disabled_at = case when $6::boolean is null then disabled_at when $6 then $7::timestamptz end
         where id = $1",
        staff_id,
        role.map(StaffRole::name),
        change.password_hash,
        change.pin_hash.is_some(),
        change.pin_hash.clone().flatten(),
        disabled,
        now
    )
    .execute(&mut **tx)
    .await?;
    // Whoever has a new secret, or comes back, may try at once.
    if change.password_hash.is_some() || change.pin_hash.is_some() || disabled == Some(false) {
        sqlx::query!("delete from staff_try where name = lower($1)", old.name).execute(&mut **tx).await?;
    }
    let said = [
        role.map(|role| ("staff_role", format!("{}: {} is {}", old.name, old.role, role.name()))),
        change.password_hash.map(|_| ("staff_password", old.name.clone())),
        change.pin_hash.map(|pin| ("staff_pin", format!("{}{}", old.name, pin.map_or(": none", |_| "")))),
        disabled.map(|disabled| (if disabled { "staff_disable" } else { "staff_enable" }, old.name.clone())),
    ];
    for (verb, detail) in said.into_iter().flatten() {
        let deed = Deed { verb, event_id: None, detail: &detail, reason: &change.reason };
        actor.writes(tx, deed, now).await?;
    }
    Ok(())
}

impl Auth {
    /// The house's members, with this hub's hasher.
    pub fn members(&self) -> Members {
        Members { pool: self.pool.clone(), passwords: self.passwords.clone() }
    }
}

/// The column is checked; what is not known has the fewest rights.
pub(super) fn role(name: &str) -> StaffRole {
    StaffRole::read(name).unwrap_or(StaffRole::Clerk)
}

fn checked_password(password: String) -> Result<String, StaffError> {
    if (PASSWORD_CHARS_MIN..=SECRET_CHARS_MAX).contains(&password.chars().count()) {
        return Ok(password);
    }
    Err(StaffError::Invalid("a password has 10 to 128 characters"))
}

fn checked_pin(pin: String) -> Result<String, StaffError> {
    if is_pin(&pin) {
        return Ok(pin);
    }
    Err(StaffError::Invalid("a PIN has 6 to 12 digits, and not all the same"))
}

fn is_pin(pin: &str) -> bool {
    let digits = PIN_DIGITS.contains(&pin.len()) && pin.bytes().all(|b| b.is_ascii_digit());
    digits && pin.bytes().any(|b| Some(b) != pin.bytes().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_digits_that_are_not_all_the_same() {
        assert!(is_pin("123456") && is_pin("000000000001"));
        for wrong in ["", "12345", "1234567890123", "12345a", "111111", "١٢٣٤٥٦"] {
            assert!(!is_pin(wrong), "{wrong}");
        }
    }
}
