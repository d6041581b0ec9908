//! Seeds as a command line names them.

use std::ops::RangeInclusive;

use anyhow::Context;

/// `1..20`, the last included, or one.
///
/// # Errors
/// It is neither.
pub fn read(seeds: &str) -> anyhow::Result<RangeInclusive<u64>> {
    let (first, last) = seeds.split_once("..").unwrap_or((seeds, seeds));
    let number = |text: &str| text.trim_start_matches('=').parse::<u64>().context("--seeds 1..20");
    Ok(number(first)?..=number(last)?)
}
