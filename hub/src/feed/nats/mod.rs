//! The feed over NATS JetStream: one stream a deployment, one publisher, any number of nodes.
//!
//! Subjects: `S.frame.<event>` and `S.key.<event>` carry frames and parts of keyframes, `S.line.<event>` lines
//! of people, `S.mark` the sequence from which a node that comes later has a keyframe of every event (`S` is `nats.stream`).
//!
//! Invariants
//! - Each publish names the sequence that it follows on, so two publishers can't both go on.
//! - JetStream acknowledges before it syncs to disk. A stream that ends before what was
//!   acknowledged, or before what a node has read, is another stream: new epochs, from keyframes.

pub mod publisher; // of the relay that leads
pub mod subscriber; // of each node

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, ensure};
use async_nats::{
    Client, ConnectOptions, Event,
    jetstream::{
        self, Context,
        context::ContextBuilder,
        stream::{self, Stream},
    },
};

use super::Kind;
use crate::config;

/// How long a request may take. A node that is not there is asked again.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two tries to reach NATS, at most.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(1);
/// Between two tries to be answered.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// The stream forgets its oldest before it grows beyond this; its age is what bounds it normally.
const STREAM_BYTES_MAX: i64 = 1 << 30;

/// Says once that NATS is away, and once that it is back; the tries in between are told only to who debugs.
fn log(event: &Event, away: &AtomicBool) {
    match event {
        Event::Connected if away.swap(false, Ordering::Relaxed) => tracing::info!("NATS is there again"),
        Event::Connected => tracing::debug!("NATS is there"),
        Event::Disconnected | Event::ClientError(_) if !away.swap(true, Ordering::Relaxed) => {
            tracing::warn!(nats.event = %event, "NATS can't be reached: maps are late until it is there again");
        }
        Event::Disconnected | Event::ClientError(_) => tracing::debug!(nats.event = %event, "NATS is still away"),
        _ => tracing::info!(nats.event = %event, "NATS says something"),
    }
}

/// The connection of a process, and what its stream is called.
#[derive(Clone)]
pub struct Nats {
    client: Client,
    jetstream: Context,
    config: Arc<config::Nats>,
    /// The highest sequence that anybody in this process has seen: a stream that ends before it has lost some.
    seen: Arc<AtomicU64>,
}

impl Nats {
    /// Returns before NATS is there, and comes back to it for ever.
    pub async fn open(config: &config::Nats) -> anyhow::Result<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        ensure!(
            !config.stream.is_empty() && config.stream.chars().all(plain),
            "nats.stream has to be letters, digits, - and _"
        );
        let client = ConnectOptions::new()
            .name("fullhouse")
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(|tries| Duration::from_millis(20 << tries.min(6)).min(RECONNECT_DELAY_MAX))
            .request_timeout(Some(REQUEST_TIMEOUT))
            .event_callback({
                let away = Arc::new(AtomicBool::new(false));
                move |event| {
                    log(&event, &away);
                    std::future::ready(())
                }
            })
            .connect(&config.url)
            .await
            .context("nats.url")?;
        let jetstream =
            ContextBuilder::new().timeout(REQUEST_TIMEOUT).ack_timeout(REQUEST_TIMEOUT).build(client.clone());
        Ok(Self { client, jetstream, config: Arc::new(config.clone()), seen: Arc::default() })
    }

    pub fn publisher(&self) -> publisher::Publisher {
        publisher::Publisher::new(self.clone())
    }

    pub fn subscriber(&self) -> subscriber::Subscriber {
        subscriber::Subscriber::new(self.clone())
    }

    /// The stream as it is; made if it is not there. Whoever wants it replicated makes it beforehand.
    async fn stream(&self) -> Result<Stream, async_nats::Error> {
        let config = stream::Config {
            name: self.config.stream.clone(),
            subjects: vec![format!("{}.>", self.config.stream)],
            max_age: Duration::from_secs(self.config.stream_age_s),
            max_bytes: STREAM_BYTES_MAX,
            discard: stream::DiscardPolicy::Old,
            ..stream::Config::default()
        };
        Ok(self.jetstream.get_or_create_stream(config).await?)
    }

    /// The sequence from which a keyframe of every event is in the stream, or its beginning.
    async fn mark(&self, stream: &Stream) -> Result<u64, async_nats::Error> {
        match stream.get_last_raw_message_by_subject(&self.mark_subject()).await {
            Ok(message) => Ok(std::str::from_utf8(&message.payload)?.parse()?),
            Err(error) if error.kind() == stream::LastRawMessageErrorKind::NoMessageFound => Ok(1),
            Err(error) => Err(error.into()),
        }
    }

    async fn read_from(
        &self,
        stream: &Stream,
        sequence: u64,
    ) -> Result<jetstream::consumer::pull::Ordered, async_nats::Error> {
        let config = jetstream::consumer::pull::OrderedConfig {
            deliver_policy: jetstream::consumer::DeliverPolicy::ByStartSequence { start_sequence: sequence.max(1) },
            ..Default::default()
        };
        Ok(stream.create_consumer(config).await?.messages().await?)
    }

    fn saw(&self, sequence: u64) {
        self.seen.fetch_max(sequence, Ordering::Relaxed);
    }

    fn subject(&self, kind: Kind, event_id: i64) -> String {
        let kind = match kind {
            Kind::Frame => "frame",
            Kind::Keyframe => "key",
            Kind::Line => "line",
        };
        format!("{}.{kind}.{event_id}", self.config.stream)
    }

    fn mark_subject(&self) -> String {
        format!("{}.mark", self.config.stream)
    }

    /// The kind and event of a subject; `None` for a mark, and for what a later version may add.
    fn parse_subject(&self, subject: &str) -> Option<(Kind, i64)> {
        let (kind, event_id) = subject.strip_prefix(&self.config.stream)?.strip_prefix('.')?.split_once('.')?;
        let kind = match kind {
            "frame" => Kind::Frame,
            "key" => Kind::Keyframe,
            "line" => Kind::Line,
            _ => return None,
        };
        Some((kind, event_id.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let away = AtomicBool::new(false);
        let is_away = |event: Event| {
            log(&event, &away);
            away.load(Ordering::Relaxed)
        };
        assert!(!is_away(Event::Connected));
        assert!(is_away(Event::Disconnected));
        assert!(is_away(Event::ClientError(async_nats::ClientError::Other("refused".to_owned()))));
        assert!(!is_away(Event::Connected));
    }
}
