//! Lines of people, as they are published: a frame a revision, the newest of which is the whole line.
//!
//! Invariant: the database numbers the revisions, and they only rise (`line_only_rises`). So it does not matter which
//! leader publishes one, or how often: a room tells a late or repeated one by its number.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use fullhouse_protocol::frames::{Head, LINE_BYTES_MAX, LINE_EPOCH, Position, encode_line};
use sqlx::PgConnection;

use crate::{
    feed::{Kind, Message},
    waiting_room::line::{self, Changed},
};

/// What a leader has published of them.
#[derive(Default)]
pub struct Lines {
    known: HashMap<i64, i64>,
    /// For nodes that come later.
    newest: HashMap<i64, Message>,
}

impl Lines {
    /// What has changed since this was called last, to be published.
    pub async fn read(&mut self, db: &mut PgConnection) -> sqlx::Result<Vec<Message>> {
        let mut messages = Vec::new();
        for changed in line::changed(db, &self.known).await? {
            self.known.insert(changed.event_id, changed.revision);
            if let Some((head, bytes)) = frame(&changed) {
                let message = Message { event_id: head.event_id, kind: Kind::Line, bytes };
                self.newest.insert(head.event_id, message.clone());
                messages.push(message);
            }
        }
        Ok(messages)
    }

    /// The newest of each.
    pub fn keyframes(&self) -> impl Iterator<Item = Message> {
        self.newest.values().cloned()
    }

    /// Nodes that come later need the lines of these events only.
    pub fn keep(&mut self, wanted: &HashSet<i64>) {
        self.newest.retain(|event_id, _| wanted.contains(event_id));
    }
}

/// The frame of an event's line as it is now; `None` if there is no such line.
pub async fn of_event(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Option<(Head, Bytes)>> {
    let Some(seen) = line::look(db, event_id).await? else { return Ok(None) };
    let json = serde_json::to_vec(&seen.line).map_err(|error| sqlx::Error::Encode(error.into()))?.into();
    let (revision, changed_at) = (seen.revision, seen.changed_at);
    Ok(frame(&Changed { event_id, revision, changed_at, json }))
}

fn frame(changed: &Changed) -> Option<(Head, Bytes)> {
    let (Ok(revision), Ok(text)) = (u64::try_from(changed.revision), std::str::from_utf8(&changed.json)) else {
        return None; // the schema and the encoder forbid either
    };
    if text.len() > LINE_BYTES_MAX {
        tracing::error!(event.id = changed.event_id, bytes = text.len(), "a line is too long to be told");
        return None;
    }
    let head = Head {
        event_id: changed.event_id,
        at: Position { epoch: LINE_EPOCH, frame: revision },
        seat_count: 0,
        committed_at_ms: changed.changed_at.timestamp_millis().max(0) as u64,
    };
    Some((head, encode_line(&head, text)))
}
