//! Some minutes of the soak with fixed seeds, and the proof that its books are read: wrong ones are found.

use std::time::Duration;

use fullhouse_tests::soak::{AtReaders, Soak, books::Books};

/// On two cores each takes about fifty seconds.
const SEEDS: [u64; 3] = [1, 3, 4];

async fn soak(seed: u64) -> AtReaders {
    eprintln!("soak: seed {seed}; again: make soak SEEDS={seed}..{seed}");
    let rested = Soak { seed, faults_for: Duration::from_secs(30), buyers: 80 }.run().await;
    eprintln!("soak: seed {seed}: {:?}", rested.figures);
    assert!(rested.broken.is_empty(), "seed {seed}: {:#?}", rested.broken);
    let figures = rested.figures;
    assert!(figures.kills >= 3 && figures.captured >= 10 && figures.unknown_calls >= 5, "little happened: {figures:?}");
    assert!(figures.at_reader.begun >= 5, "nobody came to a till with a card: {figures:?}");

    // The control: money that is taken behind our backs, for an order that has paid already, is found.
    let books = Books::read(&rested.database, &rested.provider).await;
    let (order, amount) = books.a_paid_order().expect("somebody bought something");
    rested.provider.take_behind_our_backs(&order, amount).await;
    let found = Books::read(&rested.database, &rested.provider).await.broken(&rested.database).await;
    assert!(found.iter().any(|what| what.contains("the provider keeps")), "the control found only {found:?}");
    assert!(found.iter().any(|what| what.contains(&order)), "the control found nothing of {order}, only {found:?}");
    rested.finish().await;
    figures.at_reader
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_goes_wrong_at_once_and_the_books_are_right() {
    let mut readers = AtReaders::default();
    for seed in SEEDS {
        readers += soak(seed).await;
    }
    let AtReaders { begun: _, captured, declined, stopped, in_doubt } = readers;
    assert!(captured >= 1 && declined + stopped >= 1 && in_doubt >= 3, "little happened at tills: {readers:?}");
}
