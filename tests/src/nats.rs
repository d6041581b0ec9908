//! A nats-server with JetStream that can be stopped, killed and started again on the same port and store.

use std::{path::PathBuf, time::Duration};

use fullhouse::child::{Kept, Spec};
use nix::sys::signal::Signal;

use crate::{
    eventually,
    run::{run, server_program},
};

pub struct Nats {
    directory: PathBuf,
    port: u16,
    child: Option<Kept>,
}

impl Nats {
    pub async fn start() -> Self {
        let directory = run().await.directory("nats");
        let mut nats = Self { directory, port: 0, child: None };
        nats.restart().await;
        nats
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends it as an operator would.
    pub async fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            child.stop().await;
        }
    }

    /// Ends it in the middle of whatever it does.
    pub async fn kill(&mut self) {
        if let Some(child) = self.child.take() {
            child.signal(Signal::SIGKILL);
            child.stop().await;
        }
    }

    /// Starts it again, with what its store kept.
    pub async fn restart(&mut self) {
        assert!(self.child.is_none(), "stop it first");
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let log = std::fs::File::create(self.directory.join("log")).expect("the run's directory is writable");
        let child = Spec::new(server_program("nats-server"))
            .args(["-js", "-a", "127.0.0.1", "-p", &port, "-sd"])
            .arg(self.directory.join("store"))
            .arg("--ports_file_dir")
            .arg(&self.directory)
            .output(log)
            .end_signal(Signal::SIGTERM)
            .spawn()
            .expect("nats-server starts (Debian package: nats-server)");
        let ports = self.directory.join(format!("nats-server_{}.ports", child.pid()));
        self.port = eventually("nats-server has written its port", || async {
            if let Some(status) = child.ended() {
                let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                panic!("nats-server ended with {status}: {log}");
            }
            let text = std::fs::read_to_string(&ports).ok()?;
            let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
            ports["nats"][0].as_str()?.rsplit(':').next()?.parse().ok()
        })
        .await;
        self.child = Some(child);
        let url = self.url();
        eventually("nats-server lets somebody in", || {
            let url = url.clone();
            async move { tokio::time::timeout(Duration::from_secs(1), async_nats::connect(&url)).await.ok()?.ok() }
        })
        .await;
    }
}
