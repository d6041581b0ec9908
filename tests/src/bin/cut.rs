//! `make cut`: an evening of tills whose network is cut and whose processes are killed, a seed after the other. Prints each
//! seed before it begins, and what its books say.
//!
//! Arguments: `--seeds 1..20` (or `7`), `--seconds N` (how long things go wrong), `--tills N`.

use std::time::Duration;

use anyhow::{Context, ensure};
use fullhouse_tests::{cutting::Cutting, seeds};

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(evenings())
}

async fn evenings() -> anyhow::Result<()> {
    let argument = |name: &str| std::env::args().skip_while(|a| a != name).nth(1);
    let seeds = seeds::read(argument("--seeds").as_deref().unwrap_or("1..3"))?;
    let seconds = argument("--seconds").map_or(Ok(30), |s| s.parse()).context("--seconds")?;
    let tills = argument("--tills").map_or(Ok(3), |s| s.parse()).context("--tills")?;
    let program = std::env::current_exe()?.with_file_name("till");
    ensure!(program.exists(), "{} is not built: `make everything`", program.display());
    for seed in seeds {
        println!("seed {seed} begins");
        let evening =
            Cutting { seed, lasts: Duration::from_secs(seconds), tills, program: program.clone(), fault: None };
        let cut = evening.run().await;
        println!("seed {seed}: {:?}", cut.figures);
        for what in &cut.broken {
            println!("seed {seed}: {what}");
        }
        ensure!(cut.broken.is_empty(), "seed {seed} failed");
        cut.database.finish().await;
    }
    Ok(())
}
