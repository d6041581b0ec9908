//! The one publisher: each publish names the sequence that it follows on.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use async_nats::jetstream::{context::PublishErrorKind, message::PublishMessage};
use bytes::Bytes;
use fullhouse_protocol::{
    frames::Frame,
    keyframe::{Assembly, KeyframePart},
    track::{Step, Track},
};
use futures_util::StreamExt;
use uuid::Uuid;

use super::{Nats, RETRY_DELAY};
use crate::feed::{Kind, Lost, Message};

/// Of a message, beside its headers. NATS takes 1 MiB by default; half of it leaves room for both.
const MESSAGE_BYTES_MAX: usize = 512 * 1024;
/// Publishes under way at once; the next wait for the acknowledgments.
const WINDOW: usize = 32;
/// Who published, so that our own messages are told from a twin's.
const LEADER_HEADER: &str = "Fullhouse-Leader";
/// A stream that is being read and gives nothing for so long is read again.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Publisher {
    nats: Nats,
    leader: String,
    /// The sequence of the last message of the stream, all of which we have read or written.
    last: u64,
    /// Where the last keyframes begin. Nodes begin one round earlier, so that they can resume more viewers.
    keyframes_at: Option<u64>,
}

/// What is known of a window that was sent.
enum Sent {
    /// So many of its messages are in the stream; the rest is not, or nobody knows.
    Partly(usize, Option<async_nats::Error>),
    All,
}

impl Publisher {
    pub(super) fn new(nats: Nats) -> Self {
        Self { nats, leader: Uuid::new_v4().to_string(), last: 0, keyframes_at: None }
    }

    pub fn message_bytes_max(&self) -> usize {
        match self.nats.client.server_info().max_payload {
            0 => MESSAGE_BYTES_MAX, // not connected yet
            max => (max / 2).min(MESSAGE_BYTES_MAX),
        }
    }

    /// Reads from the last keyframes to the end of the stream. Returns nothing if the stream has
    /// lost what this process knows to have been in it: then no epoch can go on.
    pub async fn published(&mut self) -> Result<Vec<Track>, Lost> {
        let stream = self.nats.stream().await.map_err(Lost::Unreachable)?;
        let state = &stream.cached_info().state;
        self.last = state.last_sequence;
        self.keyframes_at = None;
        if self.last < self.nats.seen.load(Ordering::Relaxed) {
            tracing::warn!(nats.sequence = self.last, "the stream has lost what it had acknowledged: new epochs begin");
            self.nats.seen.store(self.last, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        let first = self.nats.mark(&stream).await.map_err(Lost::Unreachable)?.max(state.first_sequence);
        if state.messages == 0 || first > self.last {
            return Ok(Vec::new());
        }
        let mut replay = Replay::default();
        let mut messages = self.nats.read_from(&stream, first).await.map_err(Lost::Unreachable)?;
        loop {
            let next = tokio::time::timeout(READ_TIMEOUT, messages.next()).await;
            let message = next.map_err(|e| Lost::Unreachable(e.into()))?.ok_or(Lost::Closed)?;
            let message = message.map_err(|e| Lost::Unreachable(e.into()))?;
            let sequence = message.info().map_err(Lost::Unreachable)?.stream_sequence;
            if sequence <= self.last
                && let Some((kind, event_id)) = self.nats.parse_subject(&message.subject)
            {
                replay.take(kind, event_id, &message.payload);
            }
            if sequence >= self.last {
                return Ok(replay.tracks.into_values().collect());
            }
        }
    }

    pub async fn publish(&mut self, messages: &[Message]) -> Result<(), Lost> {
        let messages: Vec<(String, Bytes)> =
            messages.iter().map(|m| (self.nats.subject(m.kind, m.event_id), m.bytes.clone())).collect();
        self.publish_all(&messages).await
    }

    pub async fn publish_keyframes(&mut self, messages: &[Message]) -> Result<(), Lost> {
        let begin = self.last + 1;
        self.publish(messages).await?;
        let mark = self.keyframes_at.replace(begin).unwrap_or(begin);
        self.publish_all(&[(self.nats.mark_subject(), mark.to_string().into())]).await
    }

    async fn publish_all(&mut self, messages: &[(String, Bytes)]) -> Result<(), Lost> {
        for window in messages.chunks(WINDOW) {
            let mut rest = window;
            while !rest.is_empty() {
                match self.send(rest).await {
                    Sent::All => rest = &[],
                    Sent::Partly(stored, error) => {
                        rest = &rest[stored..];
                        if let Some(error) = error {
                            tracing::debug!(%error, waiting = rest.len(), "frames were not acknowledged");
                        }
                        let stored = self.read_tail(rest).await?;
                        rest = &rest[stored..];
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends a window at once; each message names the one before it, so that they are stored in order or not at all.
    async fn send(&mut self, window: &[(String, Bytes)]) -> Sent {
        let mut acknowledgments = Vec::with_capacity(window.len());
        for (expected, (subject, bytes)) in (self.last..).zip(window) {
            let message = PublishMessage::build()
                .payload(bytes.clone())
                .expected_last_sequence(expected)
                .header(LEADER_HEADER, self.leader.as_str());
            acknowledgments.push(self.nats.jetstream.send_publish(subject.clone(), message).await);
        }
        for (stored, sent) in acknowledgments.into_iter().enumerate() {
            let answer = match sent {
                Ok(acknowledgment) => acknowledgment.await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(acknowledged) if acknowledged.sequence == self.last + 1 => {
                    self.last = acknowledged.sequence;
                    self.nats.saw(self.last);
                }
                Ok(_) => return Sent::Partly(stored, None), // another stream of the same name: its tail tells
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => return Sent::Partly(stored, None),
                Err(error) => return Sent::Partly(stored, Some(error.into())),
            }
        }
        Sent::All
    }

    /// What of `waiting` is in the stream after all. Waits for NATS as long as it takes.
    async fn read_tail(&mut self, waiting: &[(String, Bytes)]) -> Result<usize, Lost> {
        loop {
            match self.compare_tail(waiting).await {
                Ok(outcome) => return outcome,
                Err(error) => tracing::debug!(%error, "the end of the stream can't be read"),
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn compare_tail(&mut self, waiting: &[(String, Bytes)]) -> Result<Result<usize, Lost>, async_nats::Error> {
        // Not made anew if it is gone: whoever has lost it must not go on as if nothing had happened.
        let stream = match self.nats.jetstream.get_stream(&self.nats.config.stream).await {
            Ok(stream) => stream,
            Err(error) if is_gone(&error) => return Ok(Err(Lost::Discontinued)),
            Err(error) => return Err(error.into()),
        };
        let end = stream.cached_info().state.last_sequence;
        if end < self.last {
            return Ok(Err(Lost::Discontinued));
        }
        let mut stored = 0;
        while self.last < end {
            let found = stream.get_raw_message(self.last + 1).await?;
            let ours = found.headers.get(LEADER_HEADER).is_some_and(|leader| leader.as_str() == self.leader);
            match waiting.get(stored) {
                Some((subject, bytes)) if ours && found.subject.as_str() == subject && found.payload == *bytes => {}
                _ => return Ok(Err(Lost::Refused)),
            }
            stored += 1;
            self.last += 1;
            self.nats.saw(self.last);
        }
        if stored == 0 {
            tokio::time::sleep(RETRY_DELAY).await; // nothing got there: do not knock too fast
        }
        Ok(Ok(stored))
    }
}

fn is_gone(error: &async_nats::jetstream::context::GetStreamError) -> bool {
    use async_nats::jetstream::{ErrorCode, context::GetStreamErrorKind};
    matches!(error.kind(), GetStreamErrorKind::JetStream(inner) if inner.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// Keyframes and the frames after them, as a room would apply them.
#[derive(Default)]
struct Replay {
    tracks: HashMap<i64, Track>,
    assemblies: HashMap<i64, Assembly>,
}

impl Replay {
    fn take(&mut self, kind: Kind, event_id: i64, bytes: &[u8]) {
        match kind {
            Kind::Keyframe => {
                let Ok(part) = KeyframePart::decode(bytes) else { return };
                if let Some(track) = self.assemblies.entry(event_id).or_default().add(&part) {
                    self.tracks.insert(event_id, track);
                }
            }
            Kind::Frame => {
                let Ok(Frame::Delta { head, changes }) = Frame::decode(bytes) else { return };
                let gap = self.tracks.get_mut(&event_id).is_some_and(|track| track.apply(&head, &changes) == Step::Gap);
                if gap {
                    self.tracks.remove(&event_id); // only its next keyframe proves something again
                }
            }
            Kind::Line => {} // the database numbers them: whoever leads publishes them all anew
        }
    }
}
