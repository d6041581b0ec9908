//! What is fetched over HTTP: built once for a position and compressed once, whoever asks, and how many.

use std::{
    io::Write,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use fullhouse_protocol::frames::Position;

/// A snapshot, or a body for pollers, as of a position.
#[derive(Debug)]
pub struct Resource {
    pub at: Position,
    pub bytes: Bytes,
    gzip: OnceLock<Bytes>,
    level: Compression,
}

impl Resource {
    pub fn new(at: Position, bytes: Bytes, level: Compression) -> Self {
        Self { at, bytes, gzip: OnceLock::new(), level }
    }

    /// Compressed by whoever asks first; the others wait that millisecond.
    pub fn gzip(&self) -> Bytes {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), self.level);
            encoder.write_all(&self.bytes).and_then(|()| encoder.finish()).expect("memory takes what is written").into()
        };
        self.gzip.get_or_init(compress).clone()
    }
}

/// The resource of the last position that somebody asked for.
#[derive(Debug, Default)]
pub struct Shelf(Mutex<Option<Arc<Resource>>>);

impl Shelf {
    /// Returns what is there if it is of `at`, and builds it otherwise; one at a time.
    pub fn get(&self, at: Position, build: impl FnOnce() -> Resource) -> Arc<Resource> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some(resource) if resource.at == at => resource.clone(),
            _ => slot.insert(Arc::new(build())).clone(),
        }
    }
}
