//! The feed: how frames travel from the relay to every room. In the process, or over NATS JetStream.
//!
//! Invariants
//! - There are exactly these two, and both promise the same: what is published arrives once or
//!   several times, in order, or its loss is noticed. Rooms and clients take a repeated frame for known.
//! - Whoever publishes knows that nobody else does. A publisher that can't be sure any more says so,
//!   and is not used again.
//! - The feed decides nothing. Without it holds and purchases go on, and the map is late.

pub mod nats; // one stream, one publisher, any number of nodes
mod pipe; // the same within one process

use std::sync::Arc;

use bytes::Bytes;
use fullhouse_protocol::track::Track;

use crate::config::Config;

/// What a frame or a part of a keyframe travels in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub event_id: i64,
    pub kind: Kind,
    pub bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A delta: what viewers get, byte for byte.
    Frame,
    /// A part of a keyframe: what rooms begin with.
    Keyframe,
    /// A line of people, whole: frame and keyframe in one.
    Line,
}

/// What a subscriber gets.
#[derive(Debug)]
pub enum Delivery {
    Message(Message),
    /// The stream is not the one that was read so far: what was read from it proves nothing any more.
    StartedAnew,
}

/// Why a publisher has to stop.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("somebody else publishes")]
    Refused,
    #[error("the stream has lost what it had acknowledged")]
    Discontinued,
    #[error("nobody receives any more")]
    Closed,
    #[error("the feed does not answer: {0}")]
    Unreachable(#[source] async_nats::Error),
}

#[derive(Clone)]
pub enum Feed {
    InProcess(Arc<pipe::Pipe>),
    Nats(Box<nats::Nats>),
}

impl Feed {
    /// As `[nats]` says. Does not wait for NATS to be there; has to be called within a runtime.
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        Ok(match config.nats.url.as_str() {
            "" => Self::InProcess(Arc::default()),
            _ => Self::Nats(Box::new(nats::Nats::open(&config.nats).await?)),
        })
    }

    /// For the relay that leads.
    pub fn publisher(&self) -> Publisher {
        match self {
            Self::InProcess(pipe) => Publisher::InProcess(pipe.clone()),
            Self::Nats(nats) => Publisher::Nats(Box::new(nats.publisher())),
        }
    }

    /// For the rooms of this process.
    pub fn subscriber(&self) -> Subscriber {
        match self {
            Self::InProcess(pipe) => Subscriber::InProcess(pipe.receiver()),
            Self::Nats(nats) => Subscriber::Nats(Box::new(nats.subscriber())),
        }
    }
}

pub enum Publisher {
    InProcess(Arc<pipe::Pipe>),
    Nats(Box<nats::publisher::Publisher>),
}

impl Publisher {
    /// The largest message that travels, in bytes.
    pub fn message_bytes_max(&self) -> usize {
        match self {
            Self::InProcess(_) => usize::MAX,
            Self::Nats(nats) => nats.message_bytes_max(),
        }
    }

    /// What has been published, as far as it can be proved. The first thing that a leader asks for.
    pub async fn published(&mut self) -> Result<Vec<Track>, Lost> {
        match self {
            Self::InProcess(_) => Ok(Vec::new()), // a leader that lost its database begins new epochs
            Self::Nats(nats) => nats.published().await,
        }
    }

    /// Returns once all is acknowledged; tries again until it is. Dropped half-way, the publisher
    /// must not be used again.
    pub async fn publish(&mut self, messages: &[Message]) -> Result<(), Lost> {
        match self {
            Self::InProcess(pipe) => pipe.send(messages).await,
            Self::Nats(nats) => nats.publish(messages).await,
        }
    }

    /// Publishes a keyframe of every event and line, and makes nodes that come later begin there.
    pub async fn publish_keyframes(&mut self, messages: &[Message]) -> Result<(), Lost> {
        match self {
            Self::InProcess(_) => Ok(()), // nobody comes later
            Self::Nats(nats) => nats.publish_keyframes(messages).await,
        }
    }
}

pub enum Subscriber {
    InProcess(pipe::Receiver),
    Nats(Box<nats::subscriber::Subscriber>),
}

impl Subscriber {
    /// The next delivery; waits for ever if there is none.
    pub async fn next(&mut self) -> Delivery {
        match self {
            Self::InProcess(pipe) => pipe.next().await,
            Self::Nats(nats) => nats.next().await,
        }
    }

    /// Reads again from the last keyframes: a frame did not follow on the one before.
    pub fn rewind(&mut self) {
        match self {
            Self::InProcess(_) => {}
            Self::Nats(nats) => nats.rewind(),
        }
    }
}
