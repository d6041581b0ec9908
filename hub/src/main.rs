//! The one binary. What it can do stands in `cli.rs`.

use std::process::ExitCode;

use clap::Parser;
use fullhouse::{
    cli::{Cli, Undecided, run, told},
    files,
};

/// 0: done. 1: refused, with the reasons on standard error. 2: wrong usage (clap's own). 3: not decided.
fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = files::raise_limit() {
        eprintln!("fullhouse: the limit of open files stays as it is: {error}");
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if cli.only_pushes() {
        builder.worker_threads(1);
    }
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("fullhouse: the runtime did not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fullhouse: {}", told(&error));
            if error.is::<Undecided>() { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}
