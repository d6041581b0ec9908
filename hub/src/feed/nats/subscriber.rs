//! A node's reading of the stream: in order, for ever, from the last keyframes on.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::Ordered;
use futures_util::StreamExt;

use super::{Nats, RETRY_DELAY};
use crate::feed::{Delivery, Message};

/// How often the end of the stream is compared with what has arrived.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub struct Subscriber {
    nats: Nats,
    messages: Option<Ordered>,
    /// When the stream that we read was made, and the last sequence that we read of it.
    read: Option<(i64, u64)>,
    /// What had been read when the end was compared last.
    read_before: u64,
    from_keyframes: bool,
    check: tokio::time::Interval,
}

impl Subscriber {
    pub(super) fn new(nats: Nats) -> Self {
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Self { nats, messages: None, read: None, read_before: 0, from_keyframes: false, check }
    }

    /// May be dropped while it waits.
    pub async fn next(&mut self) -> Delivery {
        loop {
            let Some(messages) = &mut self.messages else {
                match self.open().await {
                    Ok(false) => {}
                    Ok(true) => return Delivery::StartedAnew,
                    Err(error) => {
                        tracing::debug!(%error, "the stream can't be read");
                        tokio::time::sleep(RETRY_DELAY).await;
                    }
                }
                continue;
            };
            tokio::select! {
                message = messages.next() => match message {
                    Some(Ok(message)) => {
                        let Ok(sequence) = message.info().map(|info| info.stream_sequence) else { continue };
                        if let Some((_, last)) = &mut self.read {
                            *last = sequence;
                        }
                        self.nats.saw(sequence);
                        let Some((kind, event_id)) = self.nats.parse_subject(&message.subject) else { continue };
                        return Delivery::Message(Message { event_id, kind, bytes: message.message.payload });
                    }
                    failed => {
                        let error = failed.and_then(Result::err);
                        tracing::debug!(?error, "reading the stream broke off");
                        self.messages = None;
                        tokio::time::sleep(RETRY_DELAY).await;
                    }
                },
                _ = self.check.tick() => self.compare_end().await,
            }
        }
    }

    pub fn rewind(&mut self) {
        self.messages = None;
        self.from_keyframes = true;
    }

    /// Begins to read: where it left off, if that is still the same stream. Returns whether it is not.
    async fn open(&mut self) -> Result<bool, async_nats::Error> {
        let stream = self.nats.jetstream.get_stream(&self.nats.config.stream).await?;
        let info = stream.cached_info();
        let made = info.created.unix_timestamp_nanos() as i64; // until 2262
        let known = self.read.filter(|&(of, last)| of == made && last <= info.state.last_sequence);
        let anew = self.read.is_some() && known.is_none();
        let from = match known {
            Some((_, last)) if !self.from_keyframes => last + 1,
            _ => self.nats.mark(&stream).await?,
        };
        self.messages = Some(self.nats.read_from(&stream, from).await?);
        self.read = Some((made, from.saturating_sub(1)));
        self.read_before = 0;
        self.from_keyframes = false;
        Ok(anew)
    }

    /// A stream that goes on while nothing arrives, or ends before what has arrived, is opened again.
    async fn compare_end(&mut self) {
        let Ok(stream) = self.nats.jetstream.get_stream(&self.nats.config.stream).await else { return };
        let Some((made, last)) = self.read else { return };
        let info = stream.cached_info();
        let end = info.state.last_sequence;
        let another = info.created.unix_timestamp_nanos() as i64 != made || end < last;
        let stuck = end > last && self.read_before == last;
        self.read_before = last;
        if another || stuck {
            tracing::debug!(nats.sequence = last, nats.end = end, "the stream is opened again");
            self.messages = None;
        }
    }
}
