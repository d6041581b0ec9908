//! The real binary in a process of its own, to be killed at any moment.

use std::{path::PathBuf, time::Duration};

use fullhouse::{
    child::{Kept, Spec},
    config::Config,
};
use nix::sys::signal::Signal;

use crate::{eventually, run::run};

pub struct Binary {
    child: Kept,
    url: String,
    log: PathBuf,
}

/// `target/debug/fullhouse`, beside this program's own file or one above (tests are in `deps`). `make test` builds it first.
pub fn path() -> PathBuf {
    let own = std::env::current_exe().expect("a program knows its own file");
    let beside =
        own.ancestors().skip(1).take(2).map(|directory| directory.join("fullhouse")).find(|path| path.exists());
    beside.expect("the binary is missing: `cargo build -p fullhouse` first")
}

impl Binary {
    /// `fullhouse serve` with these settings, on a port that was free. More settings: `FULLHOUSE__…` pairs.
    pub async fn serve(config: &Config, more: &[(&str, &str)]) -> Self {
        Self::serve_as(config, &[], more).await
    }

    /// Some of the roles only, by their names on the command line.
    pub async fn serve_as(config: &Config, roles: &[&str], more: &[(&str, &str)]) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let listen = format!("127.0.0.1:{port}");
        let directory = run().await.directory("binary");
        let log = directory.join("log");
        let mut spec = Spec::new(path())
            .arg("serve")
            .args(roles.iter().flat_map(|role| ["--role", role]))
            .env("FULLHOUSE__DATABASE__URL", config.database.url.reveal())
            .env("FULLHOUSE__DATABASE__CONNECTIONS_MAX", config.database.connections_max.to_string())
            .env("FULLHOUSE__HTTP__LISTEN", &listen)
            .env("FULLHOUSE__HTTP__PUBLIC_URL", format!("http://{listen}"))
            .env("FULLHOUSE__NATS__URL", &config.nats.url)
            .env("FULLHOUSE__NATS__STREAM", &config.nats.stream)
            .env("FULLHOUSE__PAYMENT__PROVIDER_URL", &config.payment.provider_url)
            .env("FULLHOUSE__PAYMENT__SECRET_KEY", config.payment.secret_key.reveal())
            .output(std::fs::File::create(&log).expect("the run's directory is writable"));
        for (name, value) in more {
            spec = spec.env(name, value);
        }
        let child = spec.spawn().expect("the binary starts");
        let binary = Self { child, url: format!("http://{listen}"), log };
        let client = reqwest::Client::builder().timeout(Duration::from_secs(2)).build().expect("a client");
        eventually("the binary is ready", || async {
            if let Some(status) = binary.child.ended() {
                panic!("the binary ended with {status}: {}", binary.log());
            }
            let ready = client.get(format!("{}/readyz", binary.url)).send().await.ok()?;
            ready.status().is_success().then_some(())
        })
        .await;
        binary
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn port(&self) -> u16 {
        self.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("its own address")
    }

    pub fn pid(&self) -> u32 {
        self.child.pid().as_raw().cast_unsigned()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The memory that it has in RAM, by the kernel's account, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        resident_bytes(&self.child.pid().to_string())
    }

    /// `kill -9`, wherever it is.
    pub async fn kill(self) {
        self.child.signal(Signal::SIGKILL);
        self.child.stop().await;
    }

    /// Ends it as a service manager does.
    pub async fn stop(self) {
        self.child.stop().await;
    }
}

/// What a process has in RAM: its number, or `self`.
pub fn resident_bytes(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kib * 1024
}
