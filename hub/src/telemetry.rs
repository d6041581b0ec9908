//! Logs: one readable sentence with dotted fields, logged once where a thing is handled.
//! Never a token, a name, an address or a mail.

use tracing_subscriber::{EnvFilter, fmt};

/// Writes to standard error; `json` for machines, text for people. `RUST_LOG` chooses what.
pub fn init(json: bool) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn,async_nats=warn,hyper=warn"));
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second initialisation (tests start several hubs in one process) is not an error.
    let _ = if json { builder.json().try_init() } else { builder.with_target(false).try_init() };
}
