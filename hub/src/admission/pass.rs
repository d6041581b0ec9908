//! Passes: the right to take seats, for a while, of one account, in one session, at one event.
//!
//! Invariants
//! - The token is signed and names a row; the row says whether it is still good, so that it ends at once when it
//!   is revoked, moved, or its order complete.
//! - Whoever enters by another session takes the pass along: the former one is refused as moved.
//! - An account's passes at an event are given, moved, renewed and ended one after the other (`entry::lock`), and an entry
//!   ends under the same lock: whoever has a live pass has an entry that stands.
//! - The passes of one call end together: at the first one's most, or when the call's grace is over, whichever is later.
//! - Locks are taken pass before entry, as everywhere.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::line::EntryState;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::{
    auth::TokenHash,
    clock, db,
    keys::{Keys, Kind, OpenError},
    waiting_room::{
        entry::{self, LivePass, Standing},
        places::Places,
    },
};

const PASS: Kind = Kind { domain: "fullhouse pass v1", body_bytes: 16 + 8 + 16 };
/// Two that enter at the same moment: the second finds the first's pass.
const TRIES_MAX: u32 = 3;

/// What a pass's token says. Who shows it is another matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub id: Uuid,
    pub event_id: i64,
    pub account_id: Uuid,
}

impl Claim {
    pub async fn token(&self, keys: &Keys) -> sqlx::Result<String> {
        let mut body = Vec::with_capacity(PASS.body_bytes);
        body.extend_from_slice(self.id.as_bytes());
        body.extend_from_slice(&self.event_id.to_be_bytes());
        body.extend_from_slice(self.account_id.as_bytes());
        keys.seal(PASS, &body).await
    }

    pub async fn read(keys: &Keys, token: &str) -> Result<Self, OpenError> {
        let body = keys.open(PASS, token).await?;
        let uuid = |at: usize| Uuid::from_slice(&body[at..at + 16]).map_err(|_| OpenError::NotOne);
        let event_id = i64::from_be_bytes(body[16..24].try_into().map_err(|_| OpenError::NotOne)?);
        Ok(Self { id: uuid(0)?, event_id, account_id: uuid(24)? })
    }
}

/// Who shows a pass, or wants one.
#[derive(Debug, Clone, Copy)]
pub struct Bearer<'a> {
    pub account_id: Uuid,
    pub session: &'a TokenHash,
}

/// A pass's row, as far as whoever checks it needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassRow {
    pub account_id: Uuid,
    pub session: Vec<u8>,
    pub expires_at: DateTime<Utc>,
    /// `complete`, `expired`, `revoked`, `moved` or `left`.
    pub ended_why: Option<String>,
}

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum PassRefusal {
    #[error("there is no pass")]
    Missing,
    #[error("this is not a pass of ours")]
    Invalid,
    #[error("the pass has run out")]
    Expired,
    #[error("the pass has ended")]
    Over,
    #[error("the pass went on to another session")]
    Moved,
    #[error("the pass is somebody else's")]
    Foreign,
}

/// Whether a pass lets its bearer take seats of `event_id` now. Pure.
pub fn check(
    claim: Option<&Claim>,
    row: Option<&PassRow>,
    event_id: i64,
    bearer: Bearer,
    now: DateTime<Utc>,
) -> Result<(), PassRefusal> {
    let claim = claim.ok_or(PassRefusal::Missing)?;
    let row = row.ok_or(PassRefusal::Invalid)?;
    if claim.event_id != event_id || claim.account_id != bearer.account_id || row.account_id != bearer.account_id {
        return Err(PassRefusal::Foreign);
    }
    match row.ended_why.as_deref() {
        Some("moved") => Err(PassRefusal::Moved),
        Some("expired") => Err(PassRefusal::Expired),
        Some(_) => Err(PassRefusal::Over),
        None if row.expires_at <= now => Err(PassRefusal::Expired),
        None if row.session != bearer.session => Err(PassRefusal::Foreign),
        None => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    #[error("the account does not stand in this line")]
    EntryNone,
    #[error("it is not their turn")]
    NotCalled { place: Option<i64>, called_through: i64 },
    #[error("called, and not come within the grace")]
    Lapsed,
    #[error("nobody is let in")]
    Paused,
    #[error("the pass ended while it was to move")]
    Again,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Lets a called account in. Asked again by the same session, the same pass; by another, it moves there.
pub async fn enter(
    pool: &PgPool,
    places: &Places,
    event_id: i64,
    account_id: Uuid,
    session: TokenHash,
) -> Result<(Claim, LivePass, DateTime<Utc>), EnterError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match enter_once(pool, places, event_id, account_id, session).await {
            Err(EnterError::Again) if tries < TRIES_MAX => {}
            Err(EnterError::Database(error))
                if db::constraint(&error) == Some("pass_one_live") && tries < TRIES_MAX => {}
            done => return done,
        }
    }
}

async fn enter_once(
    pool: &PgPool,
    places: &Places,
    event_id: i64,
    account_id: Uuid,
    session: TokenHash,
) -> Result<(Claim, LivePass, DateTime<Utc>), EnterError> {
    let mut tx = pool.begin().await?;
    entry::lock(&mut tx, event_id, account_id).await?;
    let standing = entry::mine(&mut tx, places, event_id, account_id).await?.ok_or(EnterError::EntryNone)?;
    let now = standing.now;
    let pass = match &standing.pass {
        Some(pass) if pass.session == session => pass.clone(),
        Some(pass) => match moved(&mut tx, &standing, pass, session).await? {
            Some(pass) => pass,
            // Its time ran out this very moment.
            None => return Err(EnterError::Again),
        },
        None => match standing.state() {
            _ if standing.paused_at.is_some() => return Err(EnterError::Paused),
            EntryState::Called => admitted(&mut tx, &standing, session).await?,
            EntryState::Lapsed => {
                lapse(&mut tx, &standing).await?;
                tx.commit().await?;
                return Err(EnterError::Lapsed);
            }
            EntryState::Waiting | EntryState::Inside => {
                let Standing { place, called_through, .. } = standing;
                return Err(EnterError::NotCalled { place, called_through });
            }
        },
    };
    tx.commit().await?;
    Ok((Claim { id: pass.id, event_id, account_id }, pass, now))
}

async fn admitted(db: &mut PgConnection, standing: &Standing, session: TokenHash) -> sqlx::Result<LivePass> {
    // One whose time has run out and that nobody has tidied stands in the way.
    sqlx::query!(
        "update pass set ended_at = $3, ended_why = 'expired'
         where event_id = $1 and account_id = $2 and ended_at is null and expires_at <= $3",
        standing.event_id,
        standing.account_id,
        standing.now
    )
    .execute(&mut *db)
    .await?;
    let earlier = sqlx::query_scalar!(
        "select min(renewable_until) from pass where event_id = $1 and place = $2 and number = $3",
        standing.event_id,
        place(standing),
        standing.number
    )
    .fetch_one(&mut *db)
    .await?;
    let renewable_until = match earlier {
        None => standing.now + TimeDelta::seconds(standing.pass_max_s.into()),
        // They were in before: otherwise whoever lets a pass run out again and again would stay beyond its most.
        Some(first) => first.max(standing.grace_until.unwrap_or(first)),
    };
    let pass = LivePass {
        id: Uuid::now_v7(),
        session,
        expires_at: (standing.now + TimeDelta::seconds(standing.pass_s.into())).min(renewable_until),
        renewable_until,
    };
    insert(db, standing, &pass).await?;
    Ok(pass)
}

/// The same time inside, in another session; None if it is over.
async fn moved(
    db: &mut PgConnection,
    standing: &Standing,
    former: &LivePass,
    session: TokenHash,
) -> sqlx::Result<Option<LivePass>> {
    let ended = sqlx::query!(
        "update pass set ended_at = $2, ended_why = 'moved' where id = $1 and ended_at is null",
        former.id,
        standing.now
    )
    .execute(&mut *db)
    .await?;
    if ended.rows_affected() == 0 {
        return Ok(None);
    }
    let pass = LivePass { id: Uuid::now_v7(), session, ..former.clone() };
    insert(db, standing, &pass).await?;
    Ok(Some(pass))
}

/// Whoever is called has a place.
fn place(standing: &Standing) -> i64 {
    standing.place.unwrap_or(standing.number)
}

async fn insert(db: &mut PgConnection, standing: &Standing, pass: &LivePass) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into pass (id, event_id, account_id, number, place, session_hash, issued_at, expires_at, renewable_until)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        pass.id,
        standing.event_id,
        standing.account_id,
        standing.number,
        place(standing),
        &pass.session[..],
        standing.now,
        pass.expires_at,
        pass.renewable_until
    )
    .execute(db)
    .await?;
    Ok(())
}

async fn lapse(db: &mut PgConnection, standing: &Standing) -> sqlx::Result<()> {
    sqlx::query!(
        "update line_entry set lapsed_at = $3
         where event_id = $1 and number = $2 and lapsed_at is null and left_at is null",
        standing.event_id,
        standing.number,
        standing.now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Prolongs a pass, within its most.
pub async fn renew(
    pool: &PgPool,
    claim: Claim,
    event_id: i64,
    bearer: Bearer<'_>,
) -> Result<Result<(LivePass, DateTime<Utc>), PassRefusal>, sqlx::Error> {
    let mut tx = pool.begin().await?;
    entry::lock(&mut tx, event_id, bearer.account_id).await?;
    let found = sqlx::query!(
        "select p.account_id, p.session_hash, p.expires_at, p.renewable_until, p.ended_why, l.pass_s
         from pass p join line l on l.event_id = p.event_id where p.id = $1 for update of p",
        claim.id
    )
    .fetch_optional(&mut *tx)
    .await?;
    let now = clock::now(&mut tx).await?;
    let row = found.as_ref().map(|f| PassRow {
        account_id: f.account_id,
        session: f.session_hash.clone(),
        expires_at: f.expires_at,
        ended_why: f.ended_why.clone(),
    });
    if let Err(refusal) = check(Some(&claim), row.as_ref(), event_id, bearer, now) {
        return Ok(Err(refusal));
    }
    let Some(found) = found else { return Ok(Err(PassRefusal::Invalid)) };
    let expires_at = (now + TimeDelta::seconds(found.pass_s.into())).min(found.renewable_until).max(found.expires_at);
    sqlx::query!("update pass set expires_at = $2 where id = $1", claim.id, expires_at).execute(&mut *tx).await?;
    tx.commit().await?;
    let renewable_until = found.renewable_until;
    Ok(Ok((LivePass { id: claim.id, session: *bearer.session, expires_at, renewable_until }, now)))
}

/// Ends the live pass of an account, and its entry with it: whoever was inside stands at the end when they
/// come again. `false`: there was none.
pub async fn end(db: &mut PgConnection, event_id: i64, account_id: Uuid, why: &str) -> sqlx::Result<bool> {
    entry::lock(db, event_id, account_id).await?;
    let number = sqlx::query_scalar!(
        "update pass set ended_at = db_clock(), ended_why = $3
         where event_id = $1 and account_id = $2 and ended_at is null returning number",
        event_id,
        account_id,
        why
    )
    .fetch_optional(&mut *db)
    .await?;
    let Some(number) = number else { return Ok(false) };
    sqlx::query!(
        "update line_entry set left_at = db_clock()
         where event_id = $1 and number = $2 and lapsed_at is null and left_at is null",
        event_id,
        number
    )
    .execute(db)
    .await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_that_a_pass_is_no_good_has_its_own_refusal() {
        let at = |s| DateTime::UNIX_EPOCH + TimeDelta::seconds(s);
        let (me, other, mine, elsewhere) = (Uuid::from_u128(1), Uuid::from_u128(2), [1; 32], [2; 32]);
        let claim = Claim { id: Uuid::from_u128(9), event_id: 7, account_id: me };
        let row = |why: Option<&str>| PassRow {
            account_id: me,
            session: mine.to_vec(),
            expires_at: at(100),
            ended_why: why.map(str::to_owned),
        };
        let check = |claim: Option<&Claim>, row: Option<&PassRow>, event_id, account_id, session: &TokenHash, now| {
            check(claim, row, event_id, Bearer { account_id, session }, at(now))
        };
        let good = row(None);
        assert_eq!(check(Some(&claim), Some(&good), 7, me, &mine, 99), Ok(()));
        assert_eq!(check(None, None, 7, me, &mine, 99), Err(PassRefusal::Missing));
        assert_eq!(check(Some(&claim), None, 7, me, &mine, 99), Err(PassRefusal::Invalid));
        assert_eq!(check(Some(&claim), Some(&good), 7, me, &mine, 100), Err(PassRefusal::Expired));
        assert_eq!(check(Some(&claim), Some(&row(Some("expired"))), 7, me, &mine, 99), Err(PassRefusal::Expired));
        for why in ["complete", "revoked", "left"] {
            assert_eq!(check(Some(&claim), Some(&row(Some(why))), 7, me, &mine, 99), Err(PassRefusal::Over));
        }
        assert_eq!(check(Some(&claim), Some(&row(Some("moved"))), 7, me, &elsewhere, 99), Err(PassRefusal::Moved));
        assert_eq!(check(Some(&claim), Some(&good), 7, other, &mine, 99), Err(PassRefusal::Foreign), "another's");
        assert_eq!(check(Some(&claim), Some(&good), 8, me, &mine, 99), Err(PassRefusal::Foreign), "another event's");
        assert_eq!(check(Some(&claim), Some(&good), 7, me, &elsewhere, 99), Err(PassRefusal::Foreign), "shared");
    }
}
