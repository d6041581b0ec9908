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
use sqlx::{PgConnection, PgPool, Postgres, pool::PoolConnection};
use tokio::sync::{mpsc, oneshot};

use super::{
    Granted, Refusal, Request, Wish, best,
    decide::{self, Context, Decision},
    ledger::{self, RecordError, Wanted},
};
use crate::{
    config::Config,
    db,
    seat_map::{Board, Boards, SeatNo},
};

/// How often a wish for the best seats is proposed anew before it is told that there are none.
const PROPOSED_MAX: u32 = 5;
/// An idle desk gives its connection back after this.
const CONNECTION_KEPT: Duration = Duration::from_secs(1);
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
    pay_margin: TimeDelta,
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
}

/// A desk that is busy keeps its connection: its statements are planned once, not in every batch.
type Kept = Option<PoolConnection<Postgres>>;

struct Job {
    request: Request,
    answer: oneshot::Sender<Result<Granted, Refusal>>,
    proposed: u32,
}

impl Desks {
    pub fn new(config: &Config, pool: PgPool, boards: Boards) -> Self {
        Self(Arc::new(Inner {
            pool,
            boards,
            batch_max: config.desk.batch_requests_max,
            queue_max: config.desk.queue_requests_max,
            pay_margin: TimeDelta::seconds(config.payment.pay_margin_s),
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

    /// Requests that wait at all desks.
    pub fn waiting(&self) -> usize {
        self.0.desks.iter().map(|d| d.max_capacity() - d.capacity()).sum()
    }

    /// Asks the event's desk. The answer is final: what was granted is committed.
    pub async fn ask(&self, event_id: i64, request: Request) -> Result<Granted, Refusal> {
        let desk = self.desk(event_id).await?;
        let (answer, answered) = oneshot::channel();
        desk.try_send(Job { request, answer, proposed: 0 }).map_err(|_| Refusal::Busy)?;
        answered.await.unwrap_or(Err(Refusal::Busy))
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
        tokio::spawn(attend(inner, event_id, jobs));
        sender
    }
}

/// One event's desk, for as long as its hub lives.
async fn attend(inner: std::sync::Weak<Inner>, event_id: i64, mut jobs: mpsc::Receiver<Job>) {
    let mut again: Vec<Job> = Vec::new();
    let mut kept: Kept = None;
    loop {
        let mut batch = std::mem::take(&mut again);
        if batch.is_empty() {
            let next = match kept {
                Some(_) => match tokio::time::timeout(CONNECTION_KEPT, jobs.recv()).await {
                    Ok(next) => next,
                    Err(_) => {
                        kept = None;
                        jobs.recv().await
                    }
                },
                None => jobs.recv().await,
            };
            match next {
                Some(job) => batch.push(job),
                None => return,
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
        let mut again = Vec::new();
        for (mut job, decision) in batch.into_iter().zip(decisions) {
            match decision {
                Decision::Done(answer) => {
                    // Nobody may be waiting any more; what was granted stands all the same.
                    let _ = job.answer.send(answer);
                }
                Decision::Again if job.proposed < PROPOSED_MAX => {
                    job.proposed += 1;
                    again.push(job);
                }
                Decision::Again => {
                    let _ = job.answer.send(Err(Refusal::NoneTogether));
                }
            }
        }
        if !again.is_empty()
            && let Ok(Some(board)) = self.boards.get(&self.pool, event_id, None).await
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
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => self.pool.acquire().await?,
        };
        match self.transact_on(&mut connection, event_id, requests).await {
            Ok(decisions) => {
                *kept = Some(connection);
                Ok(decisions)
            }
            Err(error) => {
                // Whatever it was in the middle of ends with it; the pool opens another.
                drop(connection.detach());
                Err(error)
            }
        }
    }

    async fn transact_on(
        &self,
        db: &mut PgConnection,
        event_id: i64,
        requests: &[&Request],
    ) -> Result<Vec<Decision>, RecordError> {
        let started = Instant::now();
        let Some(board) = self.boards.get(&self.pool, event_id, None).await? else {
            return Ok(requests.iter().map(|_| Decision::Done(Err(Refusal::EventUnknown))).collect());
        };
        let proposals = propose_all(&board, requests);
        let wanted = wanted(requests, &proposals);
        let mut tx = db::event_tx_on(db, event_id).await?;
        let Some(mut ledger) = ledger::read(&mut tx, event_id, wanted).await? else {
            tx.rollback().await?;
            return Ok(requests.iter().map(|_| Decision::Done(Err(Refusal::EventUnknown))).collect());
        };
        if ledger.event.plan_revision_id != board.hall.plan_revision_id {
            // The plan was imported again since: read it, and decide by it.
            tx.rollback().await?;
            self.boards.get(&self.pool, event_id, Some(ledger.event.plan_revision_id)).await?;
            return Box::pin(self.transact_on(db, event_id, requests)).await;
        }
        let context = Context { board: &board, pay_margin: self.pay_margin };
        let decisions: Vec<Decision> = requests
            .iter()
            .zip(&proposals)
            .map(|(request, proposals)| decide::decide(&mut ledger, &context, request, proposals))
            .collect();
        let changes = ledger::record(&mut tx, &ledger).await?;
        tx.commit().await?;
        for (seat, row) in &ledger.seats {
            let free = row.is_claimable(ledger.now);
            board.set(*seat, if free { fullhouse_protocol::seat::Status::Available } else { row.status });
        }
        tracing::debug!(
            event.id = event_id,
            batch.requests = requests.len(),
            seats.changed = changes.len(),
            "a batch was decided"
        );
        self.counts.batches.fetch_add(1, Ordering::Relaxed);
        self.counts.requests.fetch_add(requests.len() as u64, Ordering::Relaxed);
        self.counts.busy_us.fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
        Ok(decisions)
    }
}

/// What the board offers for each wish of the best seats; no seat is offered to two of a batch.
fn propose_all(board: &Board, requests: &[&Request]) -> Vec<Vec<Vec<SeatNo>>> {
    let mut spoken_for: HashSet<SeatNo> = HashSet::new();
    requests
        .iter()
        .map(|request| match request {
            Request::Take(take) => match &take.wish {
                Wish::Best(wish) => {
                    let groups = best::propose(board, wish, take.fewer_ok, &spoken_for);
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
    wanted
}
