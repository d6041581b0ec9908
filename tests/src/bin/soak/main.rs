//! `make soak`: one soak a seed, as many as one likes. Prints each seed before it begins, and the one that failed.
//!
//! Arguments: `--seeds 1..20` (or `7`), `--seconds N` (how long things go wrong), `--buyers N`.

use std::time::Duration;

use anyhow::{Context, ensure};
use fullhouse_tests::{seeds, soak::Soak};

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(soak())
}

async fn soak() -> anyhow::Result<()> {
    let argument = |name: &str| std::env::args().skip_while(|a| a != name).nth(1);
    let seeds = seeds::read(argument("--seeds").as_deref().unwrap_or("1..3"))?;
    let seconds = argument("--seconds").map_or(Ok(30), |s| s.parse()).context("--seconds")?;
    let buyers = argument("--buyers").map_or(Ok(80), |s| s.parse()).context("--buyers")?;
    for seed in seeds {
        println!("seed {seed} begins");
        let rested = Soak { seed, faults_for: Duration::from_secs(seconds), buyers }.run().await;
        println!("seed {seed}: {:?}", rested.figures);
        for what in &rested.broken {
            println!("seed {seed}: {what}");
        }
        ensure!(rested.broken.is_empty(), "seed {seed} failed");
        rested.finish().await;
    }
    Ok(())
}
