//! Paper: tickets, receipts and reports on a thermal printer, and the certainty which of them came out.
//!
//! How a shell calls it (blocking, in a thread of its own; one [`Printer`] a device, one [`Ledger`] a terminal):
//!
//! ```text
//! let fonts = Fonts::new(&["/usr/share/fonts".into()]);              // once; cheap to clone
//! let mut printer = Printer::new(profile, fonts);                    // Profile comes from the terminal's settings (JSON)
//! let mut ledger = Ledger::open(&folder.join("prints"), terminal_id)?;
//! // at the start, and whenever the hub is back:
//! for (job, printed) in ledger.unreported() { POST /api/box-office/prints/{job}; ledger.reported(job)? }
//! for entry in ledger.doubtful() { show it; a person says Decision }  // Replaced: POST …/tickets/{id}/reissue first
//! // an order: POST /api/box-office/orders/{id}/prints -> jobs, then
//! let tickets = order::tickets(&order, language, holder, comp);
//! let ends = printer.print_all(&mut ledger, order::jobs(&opened.jobs, &tickets)?)?;
//! printer.print(&order::receipt(&order, language, &paid, now_local).page());  printer.kick();  printer.status();
//! ```
//!
//! [`Printer::print_all`] stops at the first ticket that is not certainly out: the others were not sent, and say so. A
//! kiosk's `Printed` event means that every end was [`End::Printed`].
//!
//! Own commands instead of the crate `escpos` (0.20.1, the most used one): it lets a text's control bytes through, and
//! its UTF-8 where a code page lacks a letter; a device's file is read without a bound; how much was taken before an
//! error is not told. What we need of the language is fifteen commands. The crate reads ours in no way, but the emulator
//! reads both (`tests`).

mod code_page; // a printer's own letters
mod profile; // what a printer is
mod command; // the bytes
mod page; // blocks, as letters or dots
mod pages; // tickets, receipts, reports
mod status; // what it answers
mod link; // sockets and devices
mod spool; // PDFs where there is no printer
mod ledger; // what is certainly on paper
mod printer; // one job: asked, sent, asked
pub mod order; // from a hub's order to what is printed of it
#[cfg(test)]
mod tests;

pub use code_page::CodePage;
pub use command::Commands;
pub use ledger::{Decision, End, Entry, Job, Ledger, LedgerError, State};
pub use page::{Align, Block, Page};
pub use pages::{Receipt, Ticket, report, test_page};
pub use printer::{Bounds, Printer, is_address};
pub use profile::{Confirms, DrawerPin, Paper, Place, Profile};
pub use status::{Status, Trouble, paper_state};
