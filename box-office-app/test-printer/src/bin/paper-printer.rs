//! Runs a printer without paper: what would be printed lies as pictures in a folder.

use std::{fs, path::PathBuf, thread, time::Duration};

use anyhow::Context;
use clap::Parser;
use fullhouse_test_printer::{Behaviour, TestPrinter};

/// A printer without paper, for demos and for trying out a till.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where tills connect to.
    #[arg(long, default_value = "127.0.0.1:9100")]
    listen: String,
    /// Width of the head: 576 (80 mm) or 384 (58 mm).
    #[arg(long, default_value_t = 576)]
    dots: usize,
    /// Where the pictures go: 1.png, 2.png, …
    #[arg(long, default_value = ".fullhouse/printed")]
    folder: PathBuf,
    /// What it works through; as fast as it can otherwise.
    #[arg(long)]
    bytes_a_second: Option<usize>,
}

fn main() -> anyhow::Result<()> {
    let Arguments { listen, dots, folder, bytes_a_second } = Arguments::parse();
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let printer = TestPrinter::listen(&listen, dots).with_context(|| format!("listening at {listen}"))?;
    printer.behave(Behaviour { bytes_a_second, ..Behaviour::GOOD });
    println!("printing what comes to {} into {}", printer.address(), folder.display());
    let (mut written, mut opened) = (0, 0);
    loop {
        thread::sleep(Duration::from_millis(200));
        let sheets = printer.sheets();
        for sheet in sheets.iter().filter(|sheet| sheet.cut).skip(written) {
            written += 1;
            fs::write(folder.join(format!("{written}.png")), sheet.picture.png())?;
        }
        for pulse in printer.drawer().iter().skip(opened) {
            opened += 1;
            println!("the drawer at pin {} opens", pulse.pin);
        }
    }
}
