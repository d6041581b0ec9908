//! Prints who gets which share of the first places under each rule of the door (`make simulate-queue`): the table of
//! protocol/DRAW.md.

use fullhouse_tests::fairness::{DRAWS, SEED, table};

fn main() {
    print!("{}", table(DRAWS, SEED));
    eprintln!("share of the first places (and places for each person), mean of {DRAWS} draws, seed {SEED}");
}
