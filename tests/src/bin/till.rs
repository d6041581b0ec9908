//! A till that sells by itself, to be killed at any moment: the box office's own core, its journal and its leases, with
//! dice for a clerk. SIGTERM ends its evening: it closes its leases, settles, and ends well.
//!
//! Arguments: `--hub URL --token T --terminal ID --folder F --event N --seed N`; with `--resting` it sells nothing, and ends
//! once all that it owes the hub is told.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use fullhouse_box_office::{
    lease::Wanted,
    till::{Settings, Till},
};
use fullhouse_protocol::lease::LeaseRequest;
use rand::{
    Rng, SeedableRng,
    rngs::SmallRng,
    seq::{IndexedRandom, IteratorRandom},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use uuid::Uuid;

const LEASES_MAX: usize = 3;

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().init();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(evening())
}

async fn evening() -> anyhow::Result<()> {
    let argument = |name: &str| std::env::args().skip_while(|a| a != name).nth(1).with_context(|| name.to_owned());
    let settings = Settings {
        hub: argument("--hub")?,
        token: argument("--token")?,
        terminal_id: argument("--terminal")?.parse()?,
        folder: PathBuf::from(argument("--folder")?),
    };
    let event: i64 = argument("--event")?.parse()?;
    let mut dice = SmallRng::seed_from_u64(argument("--seed")?.parse()?);
    let mut ends = signal(SignalKind::terminate())?;
    let till = loop {
        match Till::begin(settings.clone()).await {
            Ok(till) => break till,
            Err(error) => tracing::warn!(?error, "no till yet"), // no network for the first journal
        }
        sleep(Duration::from_millis(100)).await;
    };
    if std::env::args().any(|a| a == "--resting") {
        till.settled().await;
        till.end().await;
        return Ok(());
    }
    // Asked for beside the selling: a hub that is not there must not stop a queue of customers.
    let leasing = tokio::spawn(lease_now_and_then(till.clone(), event, SmallRng::seed_from_u64(dice.random())));
    while tokio::time::timeout(Duration::from_millis(dice.random_range(5..60)), ends.recv()).await.is_err() {
        let leases = till.leases();
        let Some((lease_id, standing)) = leases.choose(&mut dice) else { continue };
        if dice.random_ratio(1, 40) {
            let _ = till.close(*lease_id); // a disk that fails is not what is tried here
            continue;
        }
        let count = dice.random_range(1..=3);
        let seats: Vec<(i32, &str)> =
            standing.unsold.iter().choose_multiple(&mut dice, count).into_iter().map(|no| (*no, "adult")).collect();
        let wanted =
            Wanted { lease_id: *lease_id, seats: &seats, staff_id: Uuid::nil(), sold_at: "2026-11-30T19:00:00Z" };
        if let Err(error) = till.sell(&wanted) {
            tracing::info!(%error, "not sold");
        }
    }
    leasing.abort();
    let _ = leasing.await;
    for (lease_id, _) in till.leases() {
        till.close(lease_id)?;
    }
    till.settled().await;
    till.end().await;
    Ok(())
}

async fn lease_now_and_then(till: Till, event: i64, mut dice: SmallRng) {
    loop {
        sleep(Duration::from_millis(dice.random_range(20..400))).await;
        if till.leases().len() < LEASES_MAX {
            let ask = LeaseRequest {
                event_id: event,
                count: Some(dice.random_range(2..10)),
                sells_for_s: dice.random_range(1..5),
                ..LeaseRequest::default()
            };
            if let Err(error) = till.lease(&ask, None).await {
                tracing::info!(%error, "no lease");
            }
        }
    }
}
