//! The one binary. What it can do stands in `cli.rs`.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook},
    process::ExitCode,
};

use clap::Parser;
use fullhouse::{
    cli::{Cli, Undecided, run, told},
    files,
};

/// Whoever reads has read enough, as `head` has: what a shell says of a command that ends by SIGPIPE.
const NOBODY_READS: u8 = 141;

/// 0: done. 1: refused, with the reasons on standard error. 2: wrong usage (clap's own). 3: not decided. 141: nobody reads.
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
    let panics = take_hook();
    set_hook(Box::new(move |panic| {
        if !nobody_reads(panic.payload()) {
            panics(panic);
        }
    }));
    match catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(cli)))) {
        Err(panic) if nobody_reads(&*panic) => ExitCode::from(NOBODY_READS),
        Err(panic) => resume_unwind(panic),
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("fullhouse: {}", told(&error));
            if error.is::<Undecided>() { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}

/// `println!` panics where its pipe is closed; Rust ignores SIGPIPE.
fn nobody_reads(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|said| said.starts_with("failed printing to stdout: Broken pipe"))
}
