//! The press: documents are drawn off the runtime, a bounded number at a time; whoever comes when the
//! queue is full is told to come again.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fullhouse_paper::{fonts::Fonts, text};
use tokio::sync::Semaphore;

use super::{
    pdf::{self, PdfError, Printed},
    sheet::Sheet,
};
use crate::{config, words::Language};

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Press(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fonts: Fonts,
    slots: Semaphore,
    waiting: AtomicUsize,
    queue_max: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum PressError {
    #[error("too many documents are waiting to be drawn")]
    Busy,
    #[error(transparent)]
    Pdf(#[from] PdfError),
}

impl Press {
    pub fn new(settings: &config::Ticket) -> Self {
        Self(Arc::new(Inner {
            fonts: Fonts::new(&settings.font_dirs),
            slots: Semaphore::new(settings.pdfs_at_once.max(1)),
            waiting: AtomicUsize::new(0),
            queue_max: settings.pdf_queue_max,
        }))
    }

    /// Draws a sheet. What can't be shown stands there by its number, and is reported here before anybody gets it.
    pub async fn print(&self, sheet: Sheet) -> Result<Printed, PressError> {
        let waiting = Waiting::enter(&self.0).ok_or(PressError::Busy)?;
        let slot = self.0.slots.acquire().await.map_err(|_| PressError::Busy)?;
        drop(waiting);
        let fonts = self.0.fonts.clone();
        let code = sheet.order_code.clone();
        let drawn = tokio::task::spawn_blocking(move || pdf::print(&fonts, &sheet)).await;
        drop(slot);
        let printed = match drawn {
            Ok(printed) => printed?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        if !printed.missing.is_empty() {
            // The characters as numbers: a name is nothing for a log.
            let missing = named(&printed.missing);
            tracing::warn!(order.code = code, missing, "no font has these characters; the tickets show their numbers");
        }
        Ok(printed)
    }

    /// What stands on a ticket for a name, if no font of this machine has all of it. Whoever pays is told before.
    pub async fn instead_of(&self, name: String, language: Language) -> Option<String> {
        if name.is_ascii() {
            return None;
        }
        let fonts = self.0.fonts.clone();
        // The first name in a script reads its font, of up to 20 MB.
        let drawn =
            tokio::task::spawn_blocking(move || text::named(&fonts, language, &text::clean(&name), false)).await;
        match drawn {
            Ok((drawn, missing)) => (!missing.is_empty()).then_some(drawn),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

/// Characters by their numbers: `U+12000 U+F0000`.
pub fn named(missing: &[String]) -> String {
    let all = missing.iter().flat_map(|cluster| cluster.chars());
    all.map(|c| format!("U+{:04X}", c as u32)).collect::<Vec<_>>().join(" ")
}

/// Counted while it waits, however it leaves.
struct Waiting<'a>(&'a Inner);

impl<'a> Waiting<'a> {
    fn enter(inner: &'a Inner) -> Option<Self> {
        let before = inner.waiting.fetch_add(1, Ordering::AcqRel);
        let entered = Self(inner);
        (before < inner.queue_max).then_some(entered)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
