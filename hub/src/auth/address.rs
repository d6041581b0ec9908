//! Addresses that somebody reads: a signed code travels by mail and comes back.
//!
//! Invariants
//! - A code is for one account and the address that it had then, and ends; there is nothing to store.
//! - Whoever brings it back has read the mail, whether or not they are signed in there.

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Account, Auth, Role};
use crate::{
    db,
    keys::{Keys, Kind, OpenError},
};

const CHECK: Kind = Kind { domain: "fullhouse address v1", body_bytes: 16 + 16 + 8 };
/// How long a code is good.
const CODE_AGE_H: i64 = 48;

#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("this is not the code of a link that we have sent")]
    Invalid,
    #[error("the link is too old, or the address has changed since")]
    Expired,
    #[error("reading or writing the account")]
    Database(#[source] sqlx::Error),
}

/// What the link in the mail carries.
pub async fn code(keys: &Keys, account_id: Uuid, email: &str, now: DateTime<Utc>) -> sqlx::Result<String> {
    let until = now + TimeDelta::hours(CODE_AGE_H);
    let mut body = Vec::with_capacity(CHECK.body_bytes);
    body.extend_from_slice(account_id.as_bytes());
    body.extend_from_slice(&mark(email));
    body.extend_from_slice(&until.timestamp().to_be_bytes());
    keys.seal(CHECK, &body).await
}

/// The page that a link leads to.
pub fn link(public_url: &str, code: &str) -> String {
    format!("{}/signin/check?code={code}", public_url.trim_end_matches('/'))
}

/// Which address a code is for, without naming it.
fn mark(email: &str) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(email).into();
    let mut mark = [0; 16];
    mark.copy_from_slice(&hash[..16]);
    mark
}

impl Auth {
    /// Marks the address of a code's account as read. Again is no error.
    pub async fn confirm_address(&self, keys: &Keys, code: &str) -> Result<Account, CheckError> {
        let body = keys.open(CHECK, code).await.map_err(|error| match error {
            OpenError::NotOne | OpenError::Forged => CheckError::Invalid,
            OpenError::Database(e) => CheckError::Database(e),
        })?;
        let account_id = Uuid::from_slice(&body[..16]).map_err(|_| CheckError::Invalid)?;
        let until = i64::from_be_bytes(body[32..].try_into().map_err(|_| CheckError::Invalid)?);
        let (pool, marked) = (self.pool.clone(), body[16..32].to_vec());
        let account = db::write(async move {
            let found = sqlx::query!(
                r#"select id, email, name, role, extract(epoch from db_clock())::bigint as "now!" from account where id = $1"#,
                account_id
            )
            .fetch_optional(&pool)
            .await
            .map_err(CheckError::Database)?
            .ok_or(CheckError::Invalid)?;
            if found.now > until || mark(&found.email)[..] != marked[..] {
                return Err(CheckError::Expired);
            }
            sqlx::query!(
                "update account set email_checked_at = db_clock() where id = $1 and email_checked_at is null",
                account_id
            )
            .execute(&pool)
            .await
            .map_err(CheckError::Database)?;
            let role = Role::read(&found.role);
            Ok(Account { id: found.id, email: found.email, name: found.name, role, email_checked: true })
        })
        .await?;
        self.sessions.forget_account(account.id);
        Ok(account)
    }
}
