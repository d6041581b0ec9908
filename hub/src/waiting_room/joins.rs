//! The desk of joins: requests for a line gather while a transaction is in flight; the next one joins them all.
//!
//! Invariants
//! - Numbers are given under the line's row lock, dense and in order; the clock is asked after it, so that whoever
//!   has a number below `entry_count` joined before the entries were fixed.
//! - The same account again, by any tab or hub, gets the entry that it has (`line_entry_one_standing`). Who left and
//!   comes again before their place was called stands where they stood: joining again and again fills no draw.
//! - An account joins `joins_account_max` times at most, counted from the challenges that it used: there is no counter.
//! - A join costs no query of its own: sessions, accounts and former entries are looked up for the whole batch.
//! - Whoever was answered is in the table: the answer comes after the commit.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use fullhouse_protocol::line::Preferences;
use rand::RngCore;
use sqlx::{PgConnection, PgPool};
use tokio::sync::{mpsc, mpsc::error::TrySendError, oneshot};
use uuid::Uuid;

use super::{
    door::Nonce,
    drawing, entry,
    places::{Places, place},
    receipt::Committed,
};
use crate::{auth::TokenHash, clock, config, db};

/// A desk that nobody came to closes after this.
const IDLE_MAX: Duration = Duration::from_secs(60);
const TRIES_MAX: u32 = 3;

/// Somebody wants to join. Their challenge was checked.
#[derive(Debug, Clone)]
pub struct Join {
    pub session: TokenHash,
    pub nonce: Nonce,
    pub preferences: Preferences,
}

/// The entry that an account has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    pub account_id: Uuid,
    pub number: i64,
    pub entry_key: [u8; 16],
    pub joined_at: DateTime<Utc>,
    /// It was made for this request, when the draw had committed to this; otherwise it was there.
    pub new: Option<Committed>,
}

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum JoinRefusal {
    #[error("nobody is signed in")]
    NotSignedIn,
    #[error("the account's address was not checked")]
    AddressUnchecked,
    #[error("the event has no waiting room")]
    LineUnknown,
    #[error("joining begins at {0}")]
    NotJoining(DateTime<Utc>),
    #[error("the sale has ended")]
    Over,
    #[error("the challenge was used before")]
    ChallengeUsed,
    #[error("the account has joined and left too often")]
    TooOften,
    #[error("too busy")]
    Busy,
    #[error("the database failed")]
    Failed,
}

type Answer = Result<Joined, JoinRefusal>;

struct Job {
    join: Join,
    answer: oneshot::Sender<Answer>,
}

/// The desks of this hub, one a line. Cheap to clone.
#[derive(Clone)]
pub struct Joins(Arc<Inner>);

struct Inner {
    pool: PgPool,
    places: Places,
    batch_max: usize,
    queue_max: usize,
    joins_account_max: usize,
    desks: DashMap<i64, mpsc::Sender<Job>>,
}

impl Joins {
    pub fn new(settings: &config::WaitingRoom, pool: PgPool, places: Places) -> Self {
        Self(Arc::new(Inner {
            pool,
            places,
            batch_max: settings.batch_joins_max,
            queue_max: settings.queue_joins_max,
            joins_account_max: settings.joins_account_max,
            desks: DashMap::new(),
        }))
    }

    /// Joins a line that exists. The answer is final.
    pub async fn ask(&self, event_id: i64, join: Join) -> Answer {
        let (answer, answered) = oneshot::channel();
        let mut job = Job { join, answer };
        loop {
            let desk = {
                let mut slot = self.0.desks.entry(event_id).or_insert_with(|| self.open(event_id));
                if slot.is_closed() {
                    *slot = self.open(event_id);
                }
                slot.clone()
            };
            match desk.try_send(job) {
                Ok(()) => return answered.await.unwrap_or(Err(JoinRefusal::Busy)),
                Err(TrySendError::Full(_)) => return Err(JoinRefusal::Busy),
                Err(TrySendError::Closed(back)) => job = back,
            }
        }
    }

    fn open(&self, event_id: i64) -> mpsc::Sender<Job> {
        let (sender, jobs) = mpsc::channel(self.0.queue_max);
        tokio::spawn(attend(Arc::downgrade(&self.0), event_id, jobs));
        sender
    }
}

/// A task of its own: a client that hangs up changes nothing about its transaction.
async fn attend(inner: std::sync::Weak<Inner>, event_id: i64, mut jobs: mpsc::Receiver<Job>) {
    loop {
        let mut batch = Vec::new();
        match tokio::time::timeout(IDLE_MAX, jobs.recv()).await {
            Ok(Some(job)) => batch.push(job),
            Ok(None) => break,
            Err(_) => {
                jobs.close(); // who came before that is served; who comes after finds another desk
                continue;
            }
        }
        let Some(inner) = inner.upgrade() else { return };
        while batch.len() < inner.batch_max {
            match jobs.try_recv() {
                Ok(job) => batch.push(job),
                Err(_) => break,
            }
        }
        inner.serve(event_id, batch).await;
    }
    if let Some(inner) = inner.upgrade() {
        inner.desks.remove_if(&event_id, |_, desk| desk.is_closed());
    }
}

impl Inner {
    async fn serve(&self, event_id: i64, batch: Vec<Job>) {
        let joins: Vec<&Join> = batch.iter().map(|job| &job.join).collect();
        let mut tries = 0;
        let answers = loop {
            tries += 1;
            match self.transact(event_id, &joins).await {
                Ok(answers) => break answers,
                // Run again it finds the entries that a commit of unknown outcome has made.
                Err(error) if db::is_transient(&error) && tries < TRIES_MAX => {
                    tracing::warn!(event.id = event_id, %error, tries, "a batch of joins could not be written yet");
                    tokio::time::sleep(Duration::from_millis(20 << tries)).await;
                }
                Err(error) => {
                    tracing::error!(event.id = event_id, %error, "a batch of joins failed");
                    let refusal = if db::is_transient(&error) { JoinRefusal::Busy } else { JoinRefusal::Failed };
                    break vec![Err(refusal); batch.len()];
                }
            }
        };
        for (job, answer) in batch.into_iter().zip(answers) {
            let _ = job.answer.send(answer); // nobody may be waiting any more; what was joined stands all the same
        }
    }

    async fn transact(&self, event_id: i64, joins: &[&Join]) -> sqlx::Result<Vec<Answer>> {
        let mut tx = self.pool.begin().await?;
        // Before the lock: it is to be held for moments.
        let people = people(&mut tx, joins).await?;
        if !drawing::lock(&mut tx, event_id).await? {
            return Ok(vec![Err(JoinRefusal::LineUnknown); joins.len()]);
        }
        let now = clock::now(&mut tx).await?;
        let line = read_line(&mut tx, event_id).await?;
        if now >= line.closes_at && !line.closed {
            drawing::close(&mut tx, event_id, now).await?;
        }
        let refusal = if line.over_at(now) {
            Some(JoinRefusal::Over)
        } else if now < line.joins_at {
            Some(JoinRefusal::NotJoining(line.joins_at))
        } else {
            None
        };
        let accounts: Vec<Uuid> = people.iter().flatten().filter(|p| p.checked).map(|p| p.account_id).collect();
        let mut standing = self.standing(&mut tx, event_id, &line, &accounts, now).await?;
        let former = self.former(&mut tx, event_id, &line, &accounts).await?;
        let mut again: Vec<Again> = Vec::new();
        let mut entries: Vec<NewEntry> = Vec::new();
        let mut answers: Vec<Answer> = Vec::with_capacity(joins.len());
        for (join, person) in joins.iter().zip(&people) {
            answers.push(match person {
                None => Err(JoinRefusal::NotSignedIn),
                Some(person) if !person.checked => Err(JoinRefusal::AddressUnchecked),
                Some(person) => {
                    if let Some(known) = standing.get(&person.account_id) {
                        Ok(Joined { new: None, ..known.clone() })
                    } else if let Some(refusal) = refusal {
                        Err(refusal)
                    } else if let Some(refusal) = former.get(&person.account_id).and_then(|f| self.refused(f, join)) {
                        Err(refusal)
                    } else if let Some(left) = former.get(&person.account_id).and_then(|f| f.left.as_ref()) {
                        again.push(Again::new(left.number, join));
                        standing.insert(person.account_id, left.clone());
                        Ok(left.clone())
                    } else {
                        let number = line.next_number + entries.len() as i64;
                        let new = NewEntry::new(person.account_id, number, join);
                        let joined = Joined {
                            account_id: person.account_id,
                            number,
                            entry_key: new.entry_key,
                            joined_at: now,
                            new: Some(line.committed),
                        };
                        entries.push(new);
                        standing.insert(person.account_id, joined.clone());
                        Ok(joined)
                    }
                }
            });
        }
        take_up(&mut tx, event_id, &again).await?;
        insert(&mut tx, event_id, &entries, now).await?;
        tx.commit().await?;
        Ok(answers)
    }

    fn refused(&self, former: &Former, join: &Join) -> Option<JoinRefusal> {
        if former.challenges.contains(&join.nonce) {
            return Some(JoinRefusal::ChallengeUsed);
        }
        (former.challenges.len() >= self.joins_account_max).then_some(JoinRefusal::TooOften)
    }

    /// By account, of those that have any.
    async fn former(
        &self,
        db: &mut PgConnection,
        event_id: i64,
        line: &LineRow,
        accounts: &[Uuid],
    ) -> sqlx::Result<HashMap<Uuid, Former>> {
        let rows = sqlx::query!(
            r#"select n.account_id, n.number, n.entry_key, n.joined_at, n.lapsed_at is null as "left!",
                      coalesce(n.challenge_nonce, ''::bytea) as "challenges!"
               from unnest($2::uuid[]) as a(account_id)
               cross join lateral (select * from line_entry n where n.event_id = $1 and n.account_id = a.account_id
                                   and (n.lapsed_at is not null or n.left_at is not null)) as n
               order by n.number"#,
            event_id,
            accounts
        )
        .fetch_all(&mut *db)
        .await?;
        let drawn = if rows.is_empty() { None } else { self.drawn(&mut *db, event_id, line).await? };
        let mut former: HashMap<Uuid, Former> = HashMap::new();
        for row in rows {
            let of = former.entry(row.account_id).or_default();
            of.challenges
                .extend(row.challenges.chunks_exact(16).map(|c| Nonce::try_from(c).expect("chunks are 16 bytes")));
            let called =
                place(drawn.as_ref().map(|d| d.as_slice()), row.number).is_some_and(|at| at < line.called_through);
            of.left = (row.left && !called).then_some(Joined {
                account_id: row.account_id,
                number: row.number,
                entry_key: row.entry_key.try_into().map_err(|_| sqlx::Error::Protocol("not 16 bytes".into()))?,
                joined_at: row.joined_at,
                new: None,
            });
        }
        Ok(former)
    }

    /// The places, once anybody was called.
    async fn drawn(&self, db: &mut PgConnection, event_id: i64, line: &LineRow) -> sqlx::Result<Option<Arc<Vec<u32>>>> {
        if line.called_through == 0 { Ok(None) } else { self.places.of(db, event_id, line.draw_no).await }
    }

    /// The entries that stand, those aside whose time has come and gone: they are ended here.
    async fn standing(
        &self,
        db: &mut PgConnection,
        event_id: i64,
        line: &LineRow,
        accounts: &[Uuid],
        now: DateTime<Utc>,
    ) -> sqlx::Result<HashMap<Uuid, Joined>> {
        let rows = sqlx::query!(
            "select n.account_id, n.number, n.entry_key, n.joined_at from unnest($2::uuid[]) as a(account_id)
             cross join lateral (select * from line_entry n where n.event_id = $1 and n.account_id = a.account_id
                                 and n.lapsed_at is null and n.left_at is null limit 1) as n",
            event_id,
            accounts
        )
        .fetch_all(&mut *db)
        .await?;
        let mut standing = HashMap::with_capacity(rows.len());
        let mut called: Vec<Called> = Vec::new();
        let drawn = if rows.is_empty() { None } else { self.drawn(&mut *db, event_id, line).await? };
        for row in rows {
            let at = place(drawn.as_ref().map(|d| d.as_slice()), row.number);
            if let Some(place) = at.filter(|at| *at < line.called_through) {
                called.push(Called { account_id: row.account_id, number: row.number, place });
            }
            let entry_key = row.entry_key.try_into().map_err(|_| sqlx::Error::Protocol("not 16 bytes".into()))?;
            let joined = Joined {
                account_id: row.account_id,
                number: row.number,
                entry_key,
                joined_at: row.joined_at,
                new: None,
            };
            standing.insert(row.account_id, joined);
        }
        if !called.is_empty() {
            for number in lapse(db, event_id, called, now).await? {
                standing.retain(|_, joined| joined.number != number);
            }
        }
        Ok(standing)
    }
}

struct Person {
    account_id: Uuid,
    checked: bool,
}

/// Whose sessions these are, in their order.
async fn people(db: &mut PgConnection, joins: &[&Join]) -> sqlx::Result<Vec<Option<Person>>> {
    let hashes: Vec<&[u8]> = joins.iter().map(|join| &join.session[..]).collect();
    let rows = sqlx::query!(
        r#"select u.n as "n!", a.id, a.email_checked_at is not null as "checked!"
           from (select db_clock() as now) c cross join unnest($1::bytea[]) with ordinality as u(hash, n)
           cross join lateral (select s.account_id from session s where s.token_hash = u.hash and s.expires_at > c.now limit 1) s
           cross join lateral (select a.id, a.email_checked_at from account a where a.id = s.account_id limit 1) a"#,
        &hashes as &[&[u8]]
    )
    .fetch_all(db)
    .await?;
    let mut people: Vec<Option<Person>> = joins.iter().map(|_| None).collect();
    for row in rows {
        people[row.n as usize - 1] = Some(Person { account_id: row.id, checked: row.checked });
    }
    Ok(people)
}

struct LineRow {
    next_number: i64,
    draw_no: i32,
    committed: Committed,
    joins_at: DateTime<Utc>,
    closes_at: DateTime<Utc>,
    off_sale_at: DateTime<Utc>,
    called_off: bool,
    called_through: i64,
    closed: bool,
}

impl LineRow {
    fn over_at(&self, now: DateTime<Utc>) -> bool {
        self.called_off || now >= self.off_sale_at
    }
}

/// In a statement of its own: one that waited for the lock would go on with its old snapshot.
async fn read_line(db: &mut PgConnection, event_id: i64) -> sqlx::Result<LineRow> {
    let row = sqlx::query!(
        r#"select l.next_number, l.draw_no, l.joins_at, l.closes_at, e.off_sale_at, e.sale_state = 'cancelled' as "called_off!",
                  l.called_through, d.closed_at is not null as "closed!", d.commitment
           from line l join event e on e.id = l.event_id join draw d on d.event_id = l.event_id and d.draw_no = l.draw_no
           where l.event_id = $1"#,
        event_id
    )
    .fetch_one(db)
    .await?;
    let commitment = row.commitment.try_into().map_err(|_| sqlx::Error::Protocol("not 32 bytes".into()))?;
    Ok(LineRow {
        next_number: row.next_number,
        draw_no: row.draw_no,
        committed: Committed { draw_no: row.draw_no, commitment },
        joins_at: row.joins_at,
        closes_at: row.closes_at,
        off_sale_at: row.off_sale_at,
        called_off: row.called_off,
        called_through: row.called_through,
        closed: row.closed,
    })
}

/// What is left of an account's entries that ended.
#[derive(Debug, Default)]
struct Former {
    /// Of all of them: a challenge is good for one join.
    challenges: Vec<Nonce>,
    /// The last one, if its owner left it before its place was called: it stands where it stood, and is taken up again.
    left: Option<Joined>,
}

/// An entry that its owner takes up again, with what they would like now.
struct Again {
    number: i64,
    nonce: Nonce,
    preferences: Preferences,
}

impl Again {
    fn new(number: i64, join: &Join) -> Self {
        Self { number, nonce: join.nonce, preferences: join.preferences.clone() }
    }
}

/// Seldom more than a few, so one statement each.
async fn take_up(db: &mut PgConnection, event_id: i64, again: &[Again]) -> sqlx::Result<()> {
    for Again { number, nonce, preferences } in again {
        let taken = sqlx::query!(
            "update line_entry set left_at = null, challenge_nonce = coalesce(challenge_nonce, ''::bytea) || $3::bytea,
                    party_size = $4, price_level = $5, accessible = $6, companions = $7
             where event_id = $1 and number = $2 and left_at is not null and lapsed_at is null",
            event_id,
            number,
            &nonce[..],
            preferences.party_size,
            preferences.price_level,
            preferences.accessible,
            preferences.companions
        )
        .execute(&mut *db)
        .await?;
        if taken.rows_affected() != 1 {
            return Err(sqlx::Error::Protocol(format!("entry {number} can't be taken up again")));
        }
    }
    Ok(())
}

/// Somebody whose place was called, and who asks to join.
struct Called {
    account_id: Uuid,
    number: i64,
    place: i64,
}

/// Ends those of the called whose grace is over and who are not inside. Returns their numbers. Whoever comes in at this
/// moment, at whichever hub, is let be: the desk waits for nobody. That nobody does is made sure of in a statement of its
/// own, so that the next one sees the passes that were given before.
async fn lapse(
    db: &mut PgConnection,
    event_id: i64,
    mut called: Vec<Called>,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<i64>> {
    let accounts: Vec<Uuid> = called.iter().map(|c| c.account_id).collect();
    let alone = entry::lock_free(&mut *db, event_id, &accounts).await?;
    called.retain(|c| alone.contains(&c.account_id));
    let (numbers, places): (Vec<i64>, Vec<i64>) = called.iter().map(|c| (c.number, c.place)).unzip();
    sqlx::query_scalar!(
        "update line_entry n set lapsed_at = $4
         from unnest($2::bigint[], $3::bigint[]) as c(number, place)
         cross join lateral (select at, grace_from from line_call k where k.event_id = $1 and k.from_place <= c.place
                             order by k.from_place desc limit 1) k
         join line l on l.event_id = $1
         where n.event_id = $1 and n.number = c.number and n.lapsed_at is null and n.left_at is null
           and coalesce(k.grace_from, k.at) + make_interval(secs => l.grace_s) < $4
           and l.paused_at is null
           and not exists (select from pass p where p.event_id = $1 and p.account_id = n.account_id
                           and p.ended_at is null and p.expires_at > $4)
         returning n.number",
        event_id,
        &numbers,
        &places,
        now
    )
    .fetch_all(db)
    .await
}

struct NewEntry {
    account_id: Uuid,
    number: i64,
    entry_key: [u8; 16],
    nonce: Nonce,
    preferences: Preferences,
}

impl NewEntry {
    fn new(account_id: Uuid, number: i64, join: &Join) -> Self {
        let mut entry_key = [0; 16];
        rand::rng().fill_bytes(&mut entry_key);
        Self { account_id, number, entry_key, nonce: join.nonce, preferences: join.preferences.clone() }
    }
}

async fn insert(db: &mut PgConnection, event_id: i64, entries: &[NewEntry], now: DateTime<Utc>) -> sqlx::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i64> = entries.iter().map(|e| e.number).collect();
    let accounts: Vec<Uuid> = entries.iter().map(|e| e.account_id).collect();
    let keys: Vec<&[u8]> = entries.iter().map(|e| &e.entry_key[..]).collect();
    let nonces: Vec<&[u8]> = entries.iter().map(|e| &e.nonce[..]).collect();
    let parties: Vec<Option<i16>> = entries.iter().map(|e| e.preferences.party_size).collect();
    let levels: Vec<Option<i16>> = entries.iter().map(|e| e.preferences.price_level).collect();
    let accessible: Vec<i16> = entries.iter().map(|e| e.preferences.accessible).collect();
    let companions: Vec<i16> = entries.iter().map(|e| e.preferences.companions).collect();
    let written = sqlx::query_scalar!(
        r#"with entered as (
             insert into line_entry (event_id, number, account_id, entry_key, challenge_nonce, party_size, price_level,
                                     accessible, companions, joined_at)
             select $1, u.number, u.account_id, u.entry_key, u.nonce, u.party_size, u.price_level, u.accessible, u.companions, $2
             from unnest($3::bigint[], $4::uuid[], $5::bytea[], $6::bytea[], $7::smallint[], $8::smallint[], $9::smallint[],
                         $10::smallint[])
                  as u(number, account_id, entry_key, nonce, party_size, price_level, accessible, companions)
             returning true),
           numbered as (
             update line set next_number = next_number + cardinality($3::bigint[]), revision = revision + 1, changed_at = $2
             where event_id = $1 and next_number = ($3::bigint[])[1]
             returning true)
           select (select count(*) from entered) * (select count(*) from numbered) as "written!""#,
        event_id,
        now,
        &numbers,
        &accounts,
        &keys as &[&[u8]],
        &nonces as &[&[u8]],
        &parties as &[Option<i16>],
        &levels as &[Option<i16>],
        &accessible,
        &companions
    )
    .fetch_one(db)
    .await?;
    if written == entries.len() as i64 {
        return Ok(());
    }
    Err(sqlx::Error::Protocol(format!("{written} entries written where {} were expected", entries.len())))
}
