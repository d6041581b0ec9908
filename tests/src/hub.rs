//! A hub in this process: started by the same function as the binary's, on a free port.

use fullhouse::{
    config::Config,
    serve::{Roles, Running, StartOptions, start},
};

pub struct Hub {
    running: Running,
}

impl Hub {
    /// Every role, on whichever clock the database has.
    pub async fn start(config: Config) -> Self {
        Self::start_as(config, Roles::ALL).await
    }

    /// Only these roles: a test without the sweeper, a second node without the relay.
    pub async fn start_as(config: Config, roles: Roles) -> Self {
        let options = StartOptions { allow_test_clock: true, roles };
        Self { running: start(config, options).await.expect("the hub starts") }
    }

    /// Where its clients find it.
    pub fn url(&self) -> String {
        format!("http://{}", self.running.addr)
    }

    /// Where its numbers are, if that is an address of their own.
    pub fn metrics_url(&self) -> Option<String> {
        self.running.metrics_addr.map(|addr| format!("http://{addr}/metrics"))
    }

    /// Its parts, for looking behind the wire.
    pub fn parts(&self) -> &fullhouse::serve::Hub {
        &self.running.hub
    }

    /// Waits for a task that ends although the hub can't be without it; names it.
    pub async fn failed(&self) -> &'static str {
        self.running.failed().await
    }

    /// Ends it as a deployment does: what is under way is finished.
    pub async fn stop(self) {
        self.running.stop().await;
    }
}
