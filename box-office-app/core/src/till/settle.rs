//! What is owed to the hub: sales to settle, leases to report, and a look at what the hub lists. One at a time, in this
//! order, until nothing is left; then it waits to be woken.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fullhouse_protocol::lease::{CloseRequest, JournalEntry, JournalRequest};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Shared;
use crate::{
    hub::AskError,
    journal::AppendError,
    pulse::{self, WAIT_MAX},
};

/// Of one request. The hub takes more; a body of its usual bound carries so much.
const ENTRIES_MAX: usize = 50;
const BYTES_MAX: usize = 24 * 1024;
/// Leases whose time is over are looked for so often, however quiet it is.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The hub's list is gone through so often: a grant may reach it long after it was given up here.
const LIST_AGAIN: Duration = Duration::from_secs(60);

enum Step {
    Done,
    /// Nothing is owed.
    Idle,
    /// The hub did not answer: soon again, later and later.
    Again,
    /// Somebody has to do something; it is tried again now and then.
    Stuck(String),
}

pub(super) async fn run(shared: Arc<Shared>) {
    let mut tries = 0;
    // Leases whose report was refused, and since when: they don't stand in the way of others.
    let mut refused: BTreeMap<Uuid, Instant> = BTreeMap::new();
    loop {
        for lease_id in over(&shared) {
            shared.end(lease_id);
        }
        match step(&shared, &mut refused).await {
            Step::Done => {
                tries = 0;
                shared.unstuck();
                shared.show(None);
            }
            Step::Idle => {
                tries = 0;
                shared.show(None);
                woken(&shared, LOOK_AGAIN).await;
            }
            Step::Again => {
                tries += 1;
                let wait = pulse::wait(tries);
                if shared.is_online() {
                    sleep(wait).await; // it is there and too busy: nothing that is sold meanwhile makes it less so
                } else {
                    until_heard(&shared, wait).await;
                }
            }
            Step::Stuck(why) => {
                tracing::warn!(why, "what was sold can't be settled");
                shared.show(Some(why));
                woken(&shared, WAIT_MAX).await;
            }
        }
    }
}

/// Leases that sell no more because their time is over.
fn over(shared: &Shared) -> Vec<Uuid> {
    let is_over = |id: &Uuid| shared.leases.standing(*id).is_some_and(|s| s.sells_for_s == 0);
    shared.leases.running().into_iter().filter(is_over).collect()
}

async fn woken(shared: &Shared, within: Duration) {
    let _ = tokio::time::timeout(within, shared.wake.notified()).await;
}

/// Until the hub is heard again, or the wait is over: a pulse may be lost where a request comes through.
async fn until_heard(shared: &Shared, wait: Duration) {
    let mut standing = shared.standing.subscribe();
    if tokio::time::timeout(wait, standing.wait_for(|s| s.online)).await.is_ok() {
        // All tills of a house hear it in the same moment.
        sleep(pulse::wait(1)).await;
    }
}

async fn step(shared: &Arc<Shared>, refused: &mut BTreeMap<Uuid, Instant>) -> Step {
    let sales = shared.leases.to_settle(ENTRIES_MAX, BYTES_MAX);
    if !sales.is_empty() {
        return settle(shared, sales).await;
    }
    refused.retain(|_, since| since.elapsed() < WAIT_MAX);
    if let Some(lease_id) = shared.leases.to_report().into_iter().find(|id| !refused.contains_key(id)) {
        let step = report(shared, lease_id).await;
        if matches!(step, Step::Stuck(_)) {
            refused.insert(lease_id, Instant::now());
        }
        return step;
    }
    look(shared).await
}

async fn settle(shared: &Shared, sales: Vec<(u64, Vec<u8>)>) -> Step {
    let sent: Vec<u64> = sales.iter().map(|(seq, _)| *seq).collect();
    let mut entries = Vec::with_capacity(sales.len());
    for (seq, body) in sales {
        match String::from_utf8(body) {
            Ok(body) => entries.push(JournalEntry { seq, body }),
            Err(_) => return Step::Stuck(format!("sale {seq} is no text")),
        }
    }
    let answer = match shared.hub.settle(&JournalRequest { entries }).await {
        Ok(answer) => answer,
        Err(error) => return not_done(error),
    };
    if answer.settled.is_empty() || answer.settled.iter().zip(&sent).any(|(s, seq)| s.seq != *seq) {
        return Step::Stuck("the hub answered for other sales than it was asked about".to_owned());
    }
    for settled in answer.settled {
        let outcome = serde_json::to_vec(&settled.outcome).expect("an outcome has a JSON form");
        if let Err(error) = shared.leases.settle(settled.seq, &outcome) {
            return Step::Stuck(error.to_string());
        }
        shared.came(std::iter::once((settled.seq, settled.outcome)));
    }
    Step::Done
}

async fn report(shared: &Shared, lease_id: Uuid) -> Step {
    let report = match shared.leases.close(lease_id) {
        Ok(report) => report,
        Err(error) => return Step::Stuck(error.to_string()),
    };
    let report = CloseRequest { sold_seqs_to: report.last_seq, sold: report.sold };
    match shared.hub.close(lease_id, &report).await {
        // Written off meanwhile is an end, too.
        Ok(_) => kept(shared.leases.reported(lease_id)),
        Err(error) => not_done(error),
    }
}

/// What the hub lists and we don't have: a grant whose answer got lost is closed, anything else is not ours to touch.
async fn look(shared: &Arc<Shared>) -> Step {
    // While one is asked for, what the hub lists may be on its way to us.
    let Ok(mut looked) = shared.looked.try_lock() else { return Step::Idle };
    if looked.is_some_and(|at| at.elapsed() < LIST_AGAIN) {
        return Step::Idle;
    }
    let own = match shared.hub.own_leases().await {
        Ok(own) => own,
        Err(error) => return not_done(error),
    };
    let mut strange = Vec::new();
    for lease in own.leases {
        let asked_with = Uuid::parse_str(&lease.key).ok();
        if asked_with.is_some_and(|key| shared.leases.never_came(lease.lease_id, key)) {
            if let Err(error) = shared.leases.close(lease.lease_id) {
                return Step::Stuck(error.to_string());
            }
        } else if !shared.leases.knows(lease.lease_id) {
            strange.push(lease.lease_id);
        }
    }
    *looked = Some(Instant::now());
    shared.standing.send_if_modified(|s| std::mem::replace(&mut s.strange, strange.clone()) != strange);
    Step::Done
}

fn kept(written: Result<(), AppendError>) -> Step {
    match written {
        Ok(()) => Step::Done,
        Err(error) => Step::Stuck(error.to_string()),
    }
}

fn not_done(error: AskError) -> Step {
    if error.passes() {
        return Step::Again;
    }
    Step::Stuck(error.code().map_or_else(|| error.to_string(), str::to_owned))
}
