//! The truth, kept in a file: whoever was promised something finds it after a restart.
//!
//! Invariants
//! - The file is whole: it is written beside its place, then moved there.
//! - What an answer says is written before the answer leaves: whoever was told finds it, however we end.
//! - What changes by itself is written soon after, and a last time when nobody is answered any more.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use super::{Simulator, world::World};

/// How soon a change is written.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// Writing takes one part in so many of the time, however much there is to write.
const PAUSE_FACTOR: u32 = 10;
/// After a disk that refused.
const PAUSE_REFUSED: Duration = Duration::from_secs(5);

pub struct StateFile(PathBuf);

impl StateFile {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// What an earlier run left. A file that is not understood (of another version) is put aside.
    pub fn read(&self, public_url: &str) -> anyhow::Result<Option<World>> {
        let text = match fs::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", self.0.display())),
        };
        match serde_json::from_slice::<World>(&text) {
            Ok(mut world) => {
                world.resume(public_url);
                world.list_all_if_none();
                Ok(Some(world))
            }
            Err(error) => {
                let aside = self.0.with_extension("unreadable");
                tracing::warn!(%error, file = %aside.display(), "the payment simulator's state is put aside, and begins anew");
                fs::rename(&self.0, &aside).with_context(|| format!("moving {}", self.0.display()))?;
                Ok(None)
            }
        }
    }

    /// Writes whatever changes, until nothing does any more.
    pub(super) async fn keep(self, sim: Simulator, still: CancellationToken) {
        let mut pause = PAUSE_MIN;
        loop {
            let last = still.run_until_cancelled(tokio::time::sleep(pause)).await.is_none();
            let began = Instant::now();
            let written = {
                let _turn = sim.0.writing.lock().await;
                let (sim, path) = (sim.clone(), self.0.clone());
                tokio::task::spawn_blocking(move || write_changed(&sim, &path)).await
            };
            pause = PAUSE_MIN.max(began.elapsed() * PAUSE_FACTOR);
            if let Ok(Err(error)) = written {
                tracing::warn!(%error, "the payment simulator's state could not be written");
                pause = PAUSE_REFUSED;
            }
            if last {
                return;
            }
        }
    }
}

/// Before an answer leaves. Many who wait are served by one writing.
pub(super) async fn keep_now(sim: &Simulator) {
    let Some(path) = sim.config().state_file.clone() else { return };
    let _turn = sim.0.writing.lock().await;
    let sim = sim.clone();
    let written = tokio::task::spawn_blocking(move || write_changed(&sim, &path)).await;
    if let Ok(Err(error)) = written {
        tracing::warn!(%error, "the payment simulator's state could not be written");
    }
}

fn write_changed(sim: &Simulator, path: &Path) -> anyhow::Result<()> {
    let text = {
        let mut world = sim.world();
        if !world.changed {
            return Ok(());
        }
        let text = serde_json::to_vec(&*world)?;
        world.changed = false;
        text
    };
    let written = replace(path, &text);
    if written.is_err() {
        sim.world().changed = true;
    }
    Ok(written?)
}

/// Survives our end, not the machine's: it is not synced.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("partial");
    // The secrets of its intents are for nobody else on this machine.
    fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&partial)?.write_all(text)?;
    fs::rename(&partial, path)
}
