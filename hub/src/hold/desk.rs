//! The desk: requests for an event gather while a transaction is in flight; the next one decides
//! them all, in order of arrival, each by itself.
//!
//! Invariants
//! - A seat has at most one owner; the row says so, and every write names the version it believes in.
//! - A change of a seat has its outbox row in the same transaction.
//! - A request that loses does not fail its neighbours. If a batch fails, its requests run singly;
//!   if a commit's outcome is unknown, the idempotency rows answer when they do.
//! - The desk is a task of its own: a client that hangs up changes nothing about its transaction.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use dashmap::DashMap;
use fullhouse_protocol::seat::Status;
use sqlx::PgPool;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, mpsc::error::TrySendError, oneshot};

use super::{
    Granted, Refusal, Request, Way, Wish, best,
    decide::{self, Context, Decision},
    ledger::{self, Ledger, RecordError, Wanted},
};
use crate::{
    admission::staff,
    config::Config,
    db::{self, KeptConnection},
    seat_map::{Board, Boards, Edition, SeatNo},
};

/// How often a wish for the best seats is proposed anew before it is told that there are none.
const PROPOSED_MAX: u32 = 5;
/// An idle desk gives its connection back after this.
const CONNECTION_KEPT: Duration = Duration::from_secs(1);
/// How often the plan may change under a batch before its requests are told to come again.
const PLANS_MAX: u32 = 3;
/// How often a request that ran alone is run again after a passing fault.
const TRIES_MAX: u32 = 3;

/// The desks of this hub, one an event. Cheap to clone.
#[derive(Clone)]
pub struct Desks(Arc<Inner>);

struct Inner {
    pool: PgPool,
    boards: Boards,
    batch_max: usize,
    queue_max: usize,
    idle_max: Duration,
    pay_margin: TimeDelta,
    /// Half of the pool's connections may be kept: many busy desks must leave some for everybody else.
    keepable: Arc<Semaphore>,
    desks: DashMap<i64, mpsc::Sender<Job>>,
    counts: Counts,
}

/// What the desks of this hub have done since it started.
#[derive(Debug, Default)]
pub struct Counts {
    pub batches: AtomicU64,
    pub requests: AtomicU64,
    pub failed_batches: AtomicU64,
    /// Time in transactions, microseconds.
    pub busy_us: AtomicU64,
    /// Of that, until the event's lock was theirs.
    pub lock_us: AtomicU64,
}

/// A desk that is busy keeps its connection: its statements are planned once, not in every batch.
type Kept = Option<(KeptConnection, OwnedSemaphorePermit)>;

struct Job {
    request: Request,
    answer: oneshot::Sender<Result<Granted, Refusal>>,
    asked: Instant,
    proposed: u32,
}

impl Desks {
    pub fn new(config: &Config, pool: PgPool, boards: Boards) -> Self {
        Self(Arc::new(Inner {
            pool,
            boards,
            batch_max: config.desk.batch_requests_max,
            queue_max: config.desk.queue_requests_max,
            idle_max: Duration::from_secs(config.desk.idle_close_s),
            pay_margin: TimeDelta::seconds(config.payment.pay_margin_s),
            keepable: Arc::new(Semaphore::new(config.database.connections_max as usize / 2)),
            desks: DashMap::new(),
            counts: Counts::default(),
        }))
    }

    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }

    pub fn boards(&self) -> &Boards {
        &self.0.boards
    }

    /// Desks that are open.
    pub fn open_desks(&self) -> usize {
        self.0.desks.len()
    }

    /// Requests that wait at all desks.
    pub fn waiting(&self) -> usize {
        self.0.desks.iter().map(|d| d.max_capacity() - d.capacity()).sum()
    }

    /// Asks the event's desk. The answer is final: what was granted is committed.
    pub async fn ask(&self, event_id: i64, request: Request) -> Result<Granted, Refusal> {
        let (answer, answered) = oneshot::channel();
        let mut job = Job { request, answer, asked: Instant::now(), proposed: 0 };
        loop {
            match self.desk(event_id).await?.try_send(job) {
                Ok(()) => return answered.await.unwrap_or(Err(Refusal::Busy)),
                Err(TrySendError::Full(_)) => return Err(Refusal::Busy),
                Err(TrySendError::Closed(back)) => job = back, // it closed as we came; there is another now
            }
        }
    }

    async fn desk(&self, event_id: i64) -> Result<mpsc::Sender<Job>, Refusal> {
        if let Some(desk) = self.0.desks.get(&event_id).filter(|d| !d.is_closed()) {
            return Ok(desk.clone());
        }
        // Only an event that exists gets a desk.
        match self.0.boards.get(&self.0.pool, event_id, None).await {
            Ok(Some(_)) => {}
            Ok(None) => return Err(Refusal::EventUnknown),
            Err(error) => {
                tracing::warn!(event.id = event_id, %error, "the plan of an event can't be read");
                return Err(if db::is_transient(&error) { Refusal::Busy } else { Refusal::Failed });
            }
        }
        let mut slot = self.0.desks.entry(event_id).or_insert_with(|| self.open(event_id));
        if slot.is_closed() {
            *slot = self.open(event_id);
        }
        Ok(slot.clone())
    }

    fn open(&self, event_id: i64) -> mpsc::Sender<Job> {
        let (sender, jobs) = mpsc::channel(self.0.queue_max);
        // The task must not keep itself alive through its own sender.
        let inner = Arc::downgrade(&self.0);
        tokio::spawn(attend(inner, event_id, self.0.idle_max, jobs));
        sender
    }
}

/// One event's desk, until nobody has asked it anything for a while.
async fn attend(inner: std::sync::Weak<Inner>, event_id: i64, idle_max: Duration, mut jobs: mpsc::Receiver<Job>) {
    let mut again: Vec<Job> = Vec::new();
    let mut kept: Kept = None;
    loop {
        let mut batch = std::mem::take(&mut again);
        if batch.is_empty() {
            let patience = if kept.is_some() { CONNECTION_KEPT } else { idle_max };
            match tokio::time::timeout(patience, jobs.recv()).await {
                Ok(Some(job)) => batch.push(job),
                Ok(None) => break,
                Err(_) if kept.is_some() => {
                    kept = None;
                    continue;
                }
                Err(_) => {
                    jobs.close(); // who came before that is served; who comes after finds another desk
                    continue;
                }
            }
        }
        let Some(inner) = inner.upgrade() else { return };
        while batch.len() < inner.batch_max {
            match jobs.try_recv() {
                Ok(job) => batch.push(job),
                Err(_) => break,
            }
        }
        again = inner.serve(event_id, batch, &mut kept).await;
    }
    if let Some(inner) = inner.upgrade()
        && inner.desks.remove_if(&event_id, |_, desk| desk.is_closed()).is_some()
    {
        inner.boards.forget(event_id);
    }
}

impl Inner {
    /// Decides a batch and answers it; returns the requests that want another proposal.
    async fn serve(&self, event_id: i64, batch: Vec<Job>, kept: &mut Kept) -> Vec<Job> {
        let requests: Vec<&Request> = batch.iter().map(|j| &j.request).collect();
        let error = match self.transact(event_id, &requests, kept).await {
            Ok(decisions) => return self.answer(event_id, batch, decisions).await,
            Err(error) => error,
        };
        self.counts.failed_batches.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(event.id = event_id, batch.requests = batch.len(), %error, "a batch failed; its requests run singly");
        let mut again = Vec::new();
        for job in batch {
            match self.transact_alone(event_id, &job.request, kept).await {
                Ok(decisions) => again.extend(self.answer(event_id, vec![job], decisions).await),
                Err(refusal) => {
                    let _ = job.answer.send(Err(refusal));
                }
            }
        }
        again
    }

    async fn transact_alone(
        &self,
        event_id: i64,
        request: &Request,
        kept: &mut Kept,
    ) -> Result<Vec<Decision>, Refusal> {
        for n in 1..=TRIES_MAX {
            match self.transact(event_id, &[request], kept).await {
                Ok(decisions) => return Ok(decisions),
                Err(RecordError::Database(error)) if db::is_transient(&error) => {
                    tracing::warn!(event.id = event_id, %error, tries = n, "a request could not be decided yet");
                    tokio::time::sleep(Duration::from_millis(20 << n)).await;
                }
                Err(error) => {
                    tracing::error!(event.id = event_id, %error, "a request could not be decided");
                    return Err(Refusal::Failed);
                }
            }
        }
        Err(Refusal::Busy)
    }

    async fn answer(&self, event_id: i64, batch: Vec<Job>, decisions: Vec<Decision>) -> Vec<Job> {
        let (mut again, mut stale) = (Vec::new(), None);
        for (mut job, decision) in batch.into_iter().zip(decisions) {
            let proposed = match decision {
                Decision::Done(answer) => {
                    // Nobody may be waiting any more; what was granted stands all the same.
                    let _ = job.answer.send(answer);
                    continue;
                }
                Decision::Again => true,
                Decision::NoneProposed => false,
            };
            let board = self.boards.get(&self.pool, event_id, None).await.ok().flatten();
            let late = board.filter(|board| !board.is_fresh(job.asked));
            let none_left = !proposed && late.is_none();
            stale = late.or(stale);
            job.proposed += 1;
            if none_left || job.proposed > PROPOSED_MAX {
                let _ = job.answer.send(Err(Refusal::NoneTogether));
            } else {
                again.push(job);
            }
        }
        if let Some(board) = stale
            && let Err(error) = board.refresh(&self.pool).await
        {
            tracing::warn!(event.id = event_id, %error, "the board could not be read anew");
        }
        again
    }

    /// One transaction for all of `requests`. A connection on which anything failed is not kept.
    async fn transact(
        &self,
        event_id: i64,
        requests: &[&Request],
        kept: &mut Kept,
    ) -> Result<Vec<Decision>, RecordError> {
        let unknown = || requests.iter().map(|_| Decision::Done(Err(Refusal::EventUnknown))).collect();
        let mut edition = None;
        for _ in 0..PLANS_MAX {
            // Before there is a connection: reading a hall takes one of its own.
            let Some(board) = self.boards.get(&self.pool, event_id, edition).await? else {
                return Ok(unknown());
            };
            let (mut connection, permit) = match kept.take() {
                Some((connection, permit)) => (connection, Some(permit)),
                None => (KeptConnection::acquire(&self.pool).await?, None),
            };
            let outcome = self.transact_on(&mut connection, &board, requests).await?;
            *kept =
                permit.or_else(|| self.keepable.clone().try_acquire_owned().ok()).map(|permit| (connection, permit));
            match outcome {
                Outcome::Decided(decisions) => return Ok(decisions),
                Outcome::NoEvent => return Ok(unknown()),
                // The plan was imported again since, or seats are something else: read it, and decide by it.
                Outcome::OtherEdition(other) => edition = Some(other),
            }
        }
        Ok(requests.iter().map(|_| Decision::Done(Err(Refusal::Busy))).collect())
    }

    async fn transact_on(
        &self,
        connection: &mut KeptConnection,
        board: &Board,
        requests: &[&Request],
    ) -> Result<Outcome, RecordError> {
        let started = Instant::now();
        let event_id = board.hall.event_id;
        let proposals = propose_all(board, requests);
        let wanted = wanted(requests, &proposals);
        let asked = Instant::now();
        let tx = connection.begin(event_id).await?;
        self.counts.lock_us.fetch_add(asked.elapsed().as_micros() as u64, Ordering::Relaxed);
        let mut ledger = match ledger::read(tx, event_id, &wanted).await? {
            Some(ledger) if ledger.event.edition == board.hall.edition => ledger,
            other => {
                connection.roll_back().await?;
                return Ok(other.map_or(Outcome::NoEvent, |l| Outcome::OtherEdition(l.event.edition)));
            }
        };
        let context = Context { board, pay_margin: self.pay_margin };
        let decisions: Vec<Decision> = requests
            .iter()
            .zip(&proposals)
            .map(|(request, proposals)| decide::decide(&mut ledger, &context, request, proposals))
            .collect();
        ledger::record(tx, &ledger).await?;
        if !ledger.passed_by_role.is_empty() {
            let by: Vec<(&str, &str)> =
                ledger.passed_by_role.iter().map(|by| (by.terminal.as_str(), by.role.as_str())).collect();
            staff::passed_by_role(tx, event_id, &by, ledger.now).await?;
        }
        connection.commit().await?;
        show(board, &ledger);
        tracing::debug!(
            event.id = event_id,
            batch.requests = requests.len(),
            seats.changed = ledger.dirty_seats.len(),
            "a batch was decided"
        );
        self.counts.batches.fetch_add(1, Ordering::Relaxed);
        self.counts.requests.fetch_add(requests.len() as u64, Ordering::Relaxed);
        self.counts.busy_us.fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
        Ok(Outcome::Decided(decisions))
    }
}

enum Outcome {
    Decided(Vec<Decision>),
    NoEvent,
    /// The hall is this one by now; nothing was decided.
    OtherEdition(Edition),
}

/// Tells the board what the batch read and wrote.
fn show(board: &Board, ledger: &Ledger) {
    for (seat, row) in &ledger.seats {
        board.set(*seat, if row.is_claimable(ledger.now) { Status::Available } else { row.status });
    }
}

/// What the board offers for each wish of the best seats; no seat is offered to two of a batch
/// while there are others.
fn propose_all(board: &Board, requests: &[&Request]) -> Vec<Vec<Vec<SeatNo>>> {
    let mut spoken_for: HashSet<SeatNo> = HashSet::new();
    requests
        .iter()
        .map(|request| match request {
            Request::Take(take) => match &take.wish {
                Wish::Best(wish) => {
                    let mut groups = best::propose(board, wish, take.fewer_ok, &spoken_for);
                    if groups.is_empty() && !spoken_for.is_empty() {
                        // Whoever spoke for them may yet be refused.
                        groups = best::propose(board, wish, take.fewer_ok, &HashSet::new());
                    }
                    spoken_for.extend(groups.first().into_iter().flatten());
                    groups
                }
                Wish::Seats(_) => Vec::new(),
            },
            _ => Vec::new(),
        })
        .collect()
}

fn wanted(requests: &[&Request], proposals: &[Vec<Vec<SeatNo>>]) -> Wanted {
    let mut wanted = Wanted::default();
    for request in requests {
        match request {
            Request::Take(take) => {
                wanted.buyers.push(take.buyer_id);
                wanted.keys.push((take.buyer_id, take.key.name.clone()));
                if let Way::WithPass { claim: Some(claim), .. } = &take.way {
                    wanted.passes.push(claim.id);
                }
                if let Wish::Seats(set) = &take.wish {
                    wanted.seats.extend_from_slice(set.as_slice());
                }
            }
            Request::Release(release) => wanted.hold_ids.push(release.hold_id),
            Request::Expire(holds) => wanted.hold_ids.extend_from_slice(holds),
        }
    }
    wanted.seats.extend(proposals.iter().flatten().flatten());
    wanted.buyers.sort_unstable();
    wanted.buyers.dedup();
    wanted.passes.sort_unstable();
    wanted.passes.dedup();
    wanted
}
