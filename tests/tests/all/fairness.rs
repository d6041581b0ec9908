//! Coming early and reloading gain nothing, and the table in the docs is what the simulation says.

use fullhouse_tests::fairness::{
    AFTER, BETWEEN, COLUMNS, DRAWS, EARLY, FARM, GROUPS, LATE, RELOADING, Rules, SEATS, SEED, per_person, simulate,
    table,
};

const OURS: Rules = COLUMNS[4].1;
const BY_ARRIVAL: Rules = COLUMNS[0].1;
const DRAWN_ONLY: Rules = COLUMNS[1].1;

/// How far apart two groups of people with one entry each are, in standard deviations of a fair draw.
fn apart(rules: Rules, draws: u64, a: usize, b: usize) -> f64 {
    let results = simulate(rules, draws, SEED);
    let entries: f64 = 10_520.0 + 1_000.0; // fans, reloading or not, people with browsers; the farm's accounts
    let p = f64::from(SEATS) / entries;
    // Two samples of a draw without putting back: their covariance adds to the difference.
    let (m, n) = (f64::from(GROUPS[a].people), f64::from(GROUPS[b].people));
    let variance = p * (1.0 - p) * (1.0 / m + 1.0 / n) * entries / (entries - 1.0) / draws as f64;
    (per_person(&results, a) - per_person(&results, b)) / variance.sqrt()
}

/// Once in a million.
const APART_MAX: f64 = 4.9;

#[test]
fn early_late_and_reloading_gain_nothing_and_by_arrival_it_would_be_caught() {
    for (a, b) in [(EARLY, LATE), (EARLY, BETWEEN), (RELOADING, BETWEEN)] {
        let apart = apart(OURS, 100, a, b);
        println!("{} and {}: {apart:.2} standard deviations", GROUPS[a].name, GROUPS[b].name);
        assert!(apart.abs() < APART_MAX, "{} and {}: {apart:.2}", GROUPS[a].name, GROUPS[b].name);
    }
    assert!(apart(BY_ARRIVAL, 2, EARLY, LATE) > APART_MAX, "by arrival, who is early wins");
    assert!(apart(DRAWN_ONLY, 2, RELOADING, BETWEEN) > APART_MAX, "without the rule, who reloads wins");
}

#[test]
fn a_farm_gets_what_its_accounts_get_and_who_comes_after_the_closing_stands_behind() {
    let results = simulate(OURS, DRAWS, SEED);
    let (farm, fan) = (per_person(&results, FARM) / 1_000.0, per_person(&results, BETWEEN));
    assert!((farm / fan - 1.0).abs() < 0.1, "{farm} an account, {fan} a fan");
    assert_eq!(per_person(&results, AFTER), 0.0);
}

#[test]
fn the_table_in_the_docs_is_what_the_simulation_says() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/DRAW.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let table = table(DRAWS, SEED);
    assert!(docs.contains(&table), "run `make simulate-queue` and put its table into protocol/DRAW.md:\n{table}");
}
