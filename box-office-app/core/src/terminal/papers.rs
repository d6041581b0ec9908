//! An order's tickets on paper: the hub's print jobs, the printer, and the ledger between them. One job a ticket, so
//! that it is known which of them came out; what is doubtful is a person's to decide.

use std::{
    fs, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::Local;
use fullhouse_paper::fonts::Fonts;
pub use fullhouse_paper::words::Language;
use fullhouse_protocol::{orders::Order, shift::ShiftReport, terminal::PaperState, tickets::PrintJobs};
use serde::Serialize;
use serde_json::json;
use tokio::task::{self, JoinError};
use uuid::Uuid;

use super::{Ask, AskError, Home, Relay};
use crate::print::{
    Decision, End, Job, Ledger, LedgerError, Page, Place, Printer, Profile, Receipt, Trouble, order, paper_state,
    report, test_page,
};

/// How the printer is set up, as [`Profile`] is written; without it tickets are PDFs in a folder.
const PROFILE: &str = "printer.json";
const FOLDER: &str = "tickets";
const LEDGER: &str = "prints";
const FONTS: &str = "/usr/share/fonts";

#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    #[error(transparent)]
    Hub(#[from] AskError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A ticket of it is another one since it was read: read it again.
    #[error("the order has changed")]
    OrderChanged(Uuid),
    #[error("the printer's thread ended")]
    Thread(#[from] JoinError),
}

/// What became of a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Printed {
    pub job: Uuid,
    pub seat_no: i32,
    #[serde(flatten)]
    pub end: End,
}

/// A print of which nobody knows whether it is on paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    pub job: Uuid,
    pub ticket_id: Option<Uuid>,
    /// Which it is, for whoever looks.
    pub what: String,
}

/// A terminal's printer. Clones share it.
#[derive(Clone)]
pub struct Papers(Arc<Inner>);

struct Inner {
    printer: Printer,
    ledger: Mutex<Ledger>,
    /// A printer does one thing at a time, and most take one connection.
    at_work: Mutex<()>,
}

impl Papers {
    pub fn open(home: &Home, terminal: Uuid) -> io::Result<Self> {
        let profile = match fs::read(home.folder().join(PROFILE)) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| io::Error::other(format!("{PROFILE}: {error}")))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => into_folder(home),
            Err(error) => return Err(error),
        };
        let ledger = Ledger::open(&home.folder().join(LEDGER), terminal).map_err(io::Error::other)?;
        let printer = Printer::new(profile, Fonts::new(&[FONTS.into()]));
        Ok(Self(Arc::new(Inner { printer, ledger: Mutex::new(ledger), at_work: Mutex::default() })))
    }

    /// Whether what is printed comes out of a printer; else it is a file.
    pub fn on_paper(&self) -> bool {
        !matches!(self.0.printer.profile().place, Place::Folder { .. })
    }

    /// Prints all tickets of an order that are valid and not on paper yet: what became of each.
    pub async fn print(&self, relay: &Relay, sold: Order, language: Language) -> Result<Vec<Printed>, PaperError> {
        let target = format!("/api/box-office/orders/{}/prints", sold.id);
        let opened: PrintJobs = relay.post(&target, json!({ "ticket_ids": [] })).await?;
        let tickets = order::tickets(&sold, language, None, false);
        let jobs = order::jobs(&opened.jobs, &tickets).map_err(PaperError::OrderChanged)?;
        let seat_of = |id| opened.jobs.iter().find(|job| job.id == id).map_or(0, |job| job.seat_no);
        let printed = self.print_jobs(jobs, seat_of).await?;
        self.report(relay).await?;
        Ok(printed)
    }

    /// Prints tickets, each of which is written down first: what became of each.
    pub async fn print_jobs(
        &self,
        jobs: Vec<(Job, Page)>,
        seat_of: impl Fn(Uuid) -> i32,
    ) -> Result<Vec<Printed>, PaperError> {
        let ends = self.on_thread(move |inner| inner.printer.print_all(&mut inner.ledger(), jobs)).await??;
        Ok(ends.into_iter().map(|(job, end)| Printed { job, seat_no: seat_of(job), end }).collect())
    }

    /// Tells the hub what it does not know yet; what it can't be told now is told the next time.
    pub async fn report(&self, relay: &Relay) -> Result<(), PaperError> {
        let open: Vec<(Uuid, bool)> = self.0.ledger().unreported().collect();
        for (job, printed) in open {
            let state = if printed { "printed" } else { "failed" };
            let ask = Ask {
                method: "POST".into(),
                target: format!("/api/box-office/prints/{job}"),
                body: Some(json!({ "state": state })),
                key: None,
            };
            // A refusal is an answer: it ended otherwise there.
            if relay.send(&ask).await.is_ok_and(|answer| answer.status < 500) {
                self.0.ledger().reported(job)?;
            }
        }
        Ok(())
    }

    pub fn doubts(&self) -> Vec<Doubt> {
        let ledger = self.0.ledger();
        let doubt = |job: &Job| Doubt { job: job.id, ticket_id: job.ticket_id, what: job.what.clone() };
        ledger.doubtful().map(|entry| doubt(&entry.job)).collect()
    }

    /// What a person found of a doubtful print.
    pub fn decide(&self, job: Uuid, decision: Decision, by: &str) -> Result<(), LedgerError> {
        self.0.ledger().decide(job, decision, by)
    }

    /// How the paper is; none while something is printed. A folder has no paper; it is tidied.
    pub async fn state(&self) -> Option<PaperState> {
        let inner = Arc::clone(&self.0);
        if !self.on_paper() {
            let _ = task::spawn_blocking(move || inner.printer.tidy()).await;
            return Some(PaperState::Unknown);
        }
        let look = move || {
            let _alone = inner.at_work.try_lock().ok()?;
            Some(paper_state(inner.printer.status()))
        };
        task::spawn_blocking(look).await.ok().flatten()
    }

    /// Opens the drawer.
    pub async fn kick(&self) -> Result<Result<(), Trouble>, PaperError> {
        Ok(self.on_thread(|inner| inner.printer.kick()).await?)
    }

    /// An order's receipt: what was paid in cash, at which till, by whom.
    pub async fn receipt(
        &self,
        sold: &Order,
        paid: &order::Paid,
        till: &str,
        clerk: Option<String>,
    ) -> Result<End, PaperError> {
        let at = sold.confirmed_at.unwrap_or(sold.created_at).with_timezone(&Local).naive_local();
        let place = [&*sold.venue, &*sold.city].into_iter().filter(|part| !part.trim().is_empty());
        let house = vec![place.collect::<Vec<_>>().join(", ")];
        let receipt = order::receipt(sold, Language::default(), paid, at);
        self.page(Receipt { house, till: till.to_owned(), clerk, ..receipt }.page()).await
    }

    /// A drawer's report: X or Z.
    pub async fn report_of(&self, shift: &ShiftReport) -> Result<End, PaperError> {
        self.page(report(shift, Language::default(), &Local)).await
    }

    /// Shows whether printer and scanner work.
    pub async fn test_page(&self) -> Result<End, PaperError> {
        self.page(test_page(self.0.printer.profile(), Language::default())).await
    }

    /// A page that nobody keeps a ledger of.
    async fn page(&self, page: Page) -> Result<End, PaperError> {
        Ok(self.on_thread(move |inner| inner.printer.print(&page)).await?)
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let inner = Arc::clone(&self.0);
        let alone = move || {
            let _alone = inner.at_work.lock().unwrap_or_else(PoisonError::into_inner);
            work(&inner)
        };
        task::spawn_blocking(alone).await
    }
}

impl Inner {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn into_folder(home: &Home) -> Profile {
    Profile { place: Place::Folder { path: home.folder().join(FOLDER) }, ..Profile::network("") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_set_a_printer_up_wrong_reads_in_which_file() {
        let folder = std::env::temp_dir().join(format!("fullhouse-papers-{}", Uuid::new_v4()));
        let home = Home::open(&folder).unwrap();
        fs::write(folder.join(PROFILE), r#"{"place": {"kind": "network"}}"#).unwrap();
        let error = Papers::open(&home, Uuid::nil()).err().unwrap().to_string();
        assert!(error.starts_with("printer.json: missing field `address`"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
