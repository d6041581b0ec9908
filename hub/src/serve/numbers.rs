//! What the parts of a hub say of themselves when somebody reads the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use sqlx::PgPool;

use crate::{hold::desk::Desks, payment::Payments, push::Rooms};

pub struct Numbers {
    pub pool: PgPool,
    pub desks: Desks,
    pub rooms: Rooms,
    pub payments: Payments,
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Numbers")
    }
}

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder) -> std::fmt::Result {
        let mut gauge = |name, help, value: i64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge("database_connections", "Connections open to PostgreSQL", self.pool.size().into())?;
        gauge("database_connections_idle", "Connections that wait for work", self.pool.num_idle() as i64)?;
        gauge("sockets", "Live maps that are open", self.rooms.sockets() as i64)?;
        let push = self.rooms.numbers();
        let lag_us = i64::try_from(push.lag_us.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        gauge("push_lag_microseconds", "Until the last viewer had what the last round brought", lag_us)?;
        gauge("desk_waiting", "Requests that wait at all desks", self.desks.waiting() as i64)?;
        let counts = self.desks.counts();
        let mut counter = |name, help, value: &AtomicU64| {
            let counter = ConstCounter::new(value.load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
        };
        counter("desk_requests", "Requests that desks have decided", &counts.requests)?;
        counter("desk_batches", "Transactions that decided them", &counts.batches)?;
        counter("desk_batches_failed", "Batches that had to run singly", &counts.failed_batches)?;
        counter("desk_busy_microseconds", "Time in those transactions", &counts.busy_us)?;
        counter("desk_lock_microseconds", "Of that, until the event's lock was theirs", &counts.lock_us)?;
        counter("push_messages", "Messages that sockets of maps took", &push.messages)?;
        counter("push_bytes", "Their bytes", &push.bytes)?;
        counter("push_lags", "How often a socket of a map was full", &push.lags)?;
        counter("push_rounds", "Rounds through the maps of a room", &push.rounds)?;
        counter("push_round_microseconds", "From a frame's arrival until its round was done", &push.round_us)?;
        counter(
            "push_closed_slow",
            "Maps closed with 4000: they took nothing, or gave no sign of life",
            &push.closed_slow,
        )?;
        counter("push_closed_bad", "Maps closed with 4001: what they sent was not as described", &push.closed_bad)?;
        if let Some(client) = self.payments.client() {
            client.figures().encode(&mut encoder)?;
        }
        self.payments.figures().encode(&mut encoder)
    }
}
