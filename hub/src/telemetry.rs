//! Logs: one readable sentence with dotted fields, logged once where a thing is handled.
//! Never a token, a name, an address or a mail.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt};

/// What a hub says when nobody asks for more.
pub const USUAL: &str = "info,sqlx=warn,async_nats=warn,hyper=warn";
/// What is said beside something else that people read.
pub const QUIET: &str = "warn,sqlx::query=error"; // an import takes its second

/// Writes to standard error; `json` for machines, text for people. `RUST_LOG` chooses what, else `filter`.
pub fn init(json: bool, filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    let colours = std::io::stderr().is_terminal();
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    // A second initialisation (tests start several hubs in one process) is not an error.
    let _ = if json { builder.json().try_init() } else { builder.with_target(false).try_init() };
}
