//! What this hub measures of itself, written down every two seconds for whoever paces the lines.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Hub;
use crate::admission::load::{self, REPORT_INTERVAL_MS, Sample};

/// The pool is looked at so often between two rows: what counts is the mean.
const LOOKS: u64 = 20;

/// Writes until `stop`.
pub async fn report(hub: Hub, stop: CancellationToken) {
    let id = Uuid::new_v4();
    let mut tick = tokio::time::interval(Duration::from_millis(REPORT_INTERVAL_MS / LOOKS));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if let Err(error) = load::forget(&hub.pool).await {
        tracing::warn!(%error, "what hubs measured that are gone could not be deleted");
    }
    let mut meter = Meter { batches: 0, lock_us: 0, write: Duration::ZERO };
    let (mut looks, mut used) = (0, 0);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        looks += 1;
        used += u64::from(hub.pool.size()).saturating_sub(hub.pool.num_idle() as u64);
        if looks < LOOKS {
            continue;
        }
        let connections = u64::from(hub.config.database.connections_max) * looks;
        let sample = meter.read(&hub, used * 100 / connections.max(1));
        (looks, used) = (0, 0);
        let began = Instant::now();
        if let Err(error) = load::report(&hub.pool, id, &sample).await {
            tracing::warn!(%error, "what this hub measured could not be written down");
        }
        meter.write = began.elapsed();
    }
}

/// What was read the last time.
struct Meter {
    batches: u64,
    lock_us: u64,
    write: Duration,
}

impl Meter {
    fn read(&mut self, hub: &Hub, pool_percent: u64) -> Sample {
        let recent = hub.metrics.take_recent();
        let counts = hub.desks.counts();
        let (batches, lock_us) = (counts.batches.load(Ordering::Relaxed), counts.lock_us.load(Ordering::Relaxed));
        let waited_us = (lock_us - self.lock_us).checked_div(batches - self.batches).unwrap_or(0);
        (self.batches, self.lock_us) = (batches, lock_us);
        let whole = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
        Sample {
            holds: whole(recent.holds()),
            hold_p50_ms: recent.hold_ms(50).map(whole),
            hold_p99_ms: recent.hold_ms(99).map(whole),
            lock_wait_ms: whole(waited_us / 1000),
            write_ms: whole(self.write.as_millis() as u64),
            pool_percent: whole(pool_percent.min(100)),
            answers: whole(recent.answers),
            faults: whole(recent.faults.min(recent.answers)),
        }
    }
}
