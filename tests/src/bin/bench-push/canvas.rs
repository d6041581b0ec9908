//! A browser with the event's page open, which measures from a commit to its seats on the canvas.

use std::{path::Path, process::Stdio};

use anyhow::Context;
use fullhouse_tests::run::workspace;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// What its drawings since the last question were like.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Drawn {
    pub drawings: u64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

pub struct Canvas {
    _child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// The built page, if there is one (`make release` builds it), and a browser to show it.
pub fn page() -> Option<String> {
    let folder = workspace().join("assets/fan/dist");
    let browser = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
    let is_there = folder.join("index.html").exists() && Path::new(&browser).exists();
    is_there.then(|| folder.display().to_string())
}

impl Canvas {
    /// Returns once the page shows the event's map.
    pub async fn open(hub: &str, event: &str) -> anyhow::Result<Self> {
        let mut child = Command::new("node")
            .arg(workspace().join("tests/browser/pixel.mjs"))
            .args([hub, event])
            .current_dir(workspace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("node")?;
        let orders = child.stdin.take().context("its input")?;
        let mut answers = BufReader::new(child.stdout.take().context("its output")?).lines();
        answers.next_line().await?.context("the browser did not open the page")?;
        Ok(Self { _child: child, orders, answers })
    }

    /// Of the drawings since this was called last.
    pub async fn report(&mut self) -> anyhow::Result<Drawn> {
        self.orders.write_all(b"report\n").await?;
        Ok(serde_json::from_str(&self.answers.next_line().await?.context("the browser has ended")?)?)
    }
}
