//! Paying by card: authorise, then sell, then take the money.
//!
//! Read [`machine`] for what may follow what, [`drive`] for how one attempt gets there, [`transition`]
//! for all that changes on the way. Webhooks are hints; [`provider`] is asked.
//!
//! Invariants
//! - A timeout is not a decline: what is not known is asked for, and nothing new begins meanwhile.
//! - Every call is written down before it is made, and repeated byte for byte.
//! - Captured money ends as tickets or as exactly one refund.

pub mod installation; // whose payments are ours to touch
pub mod provider; // our client of the provider's wire
pub mod machine; // the states of an attempt, as a table
pub mod attempt; // as its buyer begins, follows and gives it up
mod record; // its rows, as they are read and written
mod transition; // what changes when it moves on
mod drive; // one attempt, as far as it goes
mod worker; // many of them
pub mod gate; // no new payments begin while it is closed
pub mod order; // a paid order, locked: how taking from it begins
pub mod apportion; // what of each line goes back, so that parts add up
mod seats_back; // sold seats, on sale again, in the house's hand, or dead
pub mod refund; // staff give money back
pub mod give_up; // buyers give back by themselves what they may
pub mod owed; // refunds that failed, seen to after all
pub mod pairs; // which seat is exchanged for which
pub mod exchange; // a seat for another
pub mod swap; // the same, in an order of its own: another event, or paid up by card
pub mod due; // orders whose money failed after the sale
pub mod call_off; // a whole event is called off
pub mod signature; // of webhooks, both ways
pub mod webhook; // hints
pub mod reconcile; // the provider's books beside ours
pub mod list; // what staff have to see to
mod figures; // the same, as numbers
mod oversight; // clocks, gate, books, all the time
pub mod simulator; // a provider of our own

use std::sync::Arc;

use anyhow::Context;
use chrono::TimeDelta;
use sqlx::PgPool;
use tokio::sync::{Notify, futures::Notified};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::figures::Figures;
use self::provider::Client;
use crate::config::{self, Config};

/// The way to the provider, and what wakes the workers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Payments(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Option<Client>,
    settings: config::Payment,
    gate: config::Gate,
    reconcile: config::Reconcile,
    public_url: String,
    news: Notify,
    figures: Figures,
}

impl Payments {
    /// Without `payment.provider_url` no cards are taken.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let settings = config.payment.clone();
        let client = if settings.provider_url.is_empty() {
            None
        } else {
            Some(Client::new(&settings).context("settings of [payment]")?)
        };
        let public_url = config.http.public_url.trim_end_matches('/').to_owned();
        Ok(Self(Arc::new(Inner {
            client,
            settings,
            gate: config.gate.clone(),
            reconcile: config.reconcile.clone(),
            public_url,
            news: Notify::new(),
            figures: Figures::default(),
        })))
    }

    /// Whether cards are taken here.
    pub fn takes_cards(&self) -> bool {
        self.0.client.is_some()
    }

    pub fn client(&self) -> Option<&Client> {
        self.0.client.as_ref()
    }

    pub fn settings(&self) -> &config::Payment {
        &self.0.settings
    }

    pub fn gate_settings(&self) -> &config::Gate {
        &self.0.gate
    }

    pub fn reconcile_settings(&self) -> &config::Reconcile {
        &self.0.reconcile
    }

    /// What people read of payments, as it was counted last.
    pub fn figures(&self) -> &Figures {
        &self.0.figures
    }

    /// No confirmation starts with less than this of the hold left.
    pub fn margin(&self) -> TimeDelta {
        TimeDelta::seconds(self.0.settings.pay_margin_s)
    }

    fn lease(&self) -> TimeDelta {
        TimeDelta::seconds(self.0.settings.lease_s)
    }

    /// Where a bank sends the buyer after its challenge.
    fn return_url(&self, order_id: Uuid) -> String {
        format!("{}/orders/{order_id}", self.0.public_url)
    }

    /// The provider's card form for our pages: with our public key, and whom it may speak to. A page
    /// that is reached under another origin says so itself (`origin`).
    pub fn form_url(&self) -> String {
        let settings = &self.0.settings;
        let Ok(mut url) = settings.form_url.parse::<reqwest::Url>() else { return settings.form_url.clone() };
        let origin = self.0.public_url.parse::<reqwest::Url>().map(|u| u.origin().ascii_serialization());
        let mut query = url.query_pairs_mut();
        query.append_pair("pk", &settings.publishable_key);
        if let Ok(origin) = origin {
            query.append_pair("origin", &origin);
        }
        drop(query);
        url.into()
    }

    /// There is something to do: a worker of this process looks at once.
    pub fn wake(&self) {
        self.0.news.notify_one();
    }

    fn news(&self) -> Notified<'_> {
        self.0.news.notified()
    }

    /// Drives attempts until `stop`, and keeps an eye on all of it. Any number of processes may.
    pub async fn run(self, pool: PgPool, stop: CancellationToken) {
        if self.takes_cards() {
            tokio::join!(worker::run(self.clone(), pool.clone(), stop.clone()), oversight::run(self, pool, stop));
        } else {
            stop.cancelled().await; // a task that ends takes the hub with it
        }
    }
}
