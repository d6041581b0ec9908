//! Who gets in: honest people, impatient ones, and farms, under the draw (the hub's own) and under each rule of the
//! door, so that what a rule is worth can be read as a share. Everything is drawn from a seed.

use std::fmt::Write;

use fullhouse::waiting_room::draw;
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Places that are worth having: those below.
pub const SEATS: u32 = 2_000;
/// Joining is possible for so long, seconds.
const OPEN_S: f64 = 600.0;
/// What a challenge costs a core, seconds, when all is calm.
const CHALLENGE_S: f64 = 0.5;
/// `waiting_room.joins_second_calm`: so many times as many joins, so many times the work.
const CALM: f64 = 500.0;

/// People who act alike.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub name: &'static str,
    pub people: u32,
    /// Accounts with a checked address, of each.
    accounts: u32,
    /// How often each would join if nothing stopped them.
    tries: u32,
    /// Cores on which each can solve challenges.
    cores: f64,
    /// When they come: from and until, seconds after joining began.
    comes: (f64, f64),
}

const FAN: Group = Group { name: "", people: 0, accounts: 1, tries: 1, cores: 1.0, comes: (0.0, OPEN_S) };

pub const EARLY: usize = 0;
pub const BETWEEN: usize = 1;
pub const LATE: usize = 2;
pub const RELOADING: usize = 3;
pub const FARM: usize = 5;
pub const AFTER: usize = 6;

pub const GROUPS: [Group; 7] = [
    Group { name: "fans, in the first minute", people: 2_500, comes: (0.0, 60.0), ..FAN },
    Group { name: "fans, in between", people: 5_000, comes: (60.0, 540.0), ..FAN },
    Group { name: "fans, in the last minute", people: 2_500, comes: (540.0, OPEN_S), ..FAN },
    Group { name: "fans who reload every 15 s", people: 500, tries: 40, ..FAN },
    Group { name: "people with 500 browsers", people: 20, tries: 500, cores: 4.0, ..FAN },
    Group { name: "a farm: 1,000 accounts, 16 cores", people: 1, accounts: 1_000, tries: 100_000, cores: 16.0, ..FAN },
    Group { name: "fans, after the closing", people: 1_000, comes: (OPEN_S, OPEN_S + 60.0), ..FAN },
];

/// What stands at the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Places by lot; otherwise in order of arrival.
    pub drawn: bool,
    pub challenge: bool,
    pub one_entry: bool,
}

/// The columns of the table, the hub's own rules last.
pub const COLUMNS: [(&str, Rules); 5] = [
    ("by arrival", Rules { drawn: false, challenge: false, one_entry: false }),
    ("drawn", Rules { drawn: true, challenge: false, one_entry: false }),
    ("with challenge", Rules { drawn: true, challenge: true, one_entry: false }),
    ("with one entry", Rules { drawn: true, challenge: false, one_entry: true }),
    ("with both", Rules { drawn: true, challenge: true, one_entry: true }),
];

/// Entries a person of each group gets through.
fn entries(rules: Rules) -> [u32; GROUPS.len()] {
    let wanted = |group: &Group| if rules.one_entry { group.accounts.min(group.tries) } else { group.tries };
    let all: f64 = GROUPS.iter().map(|group| f64::from(group.people * wanted(group))).sum();
    // The more join a second, the more work each is.
    let cost_s = CHALLENGE_S * (all / OPEN_S / CALM).max(1.0);
    GROUPS.map(|group| {
        let solved = (group.cores * OPEN_S / cost_s) as u32;
        if rules.challenge { wanted(&group).min(solved.max(1)) } else { wanted(&group) }
    })
}

/// Places below [`SEATS`] that each group got, by draw.
pub fn simulate(rules: Rules, draws: u64, seed: u64) -> Vec<[u32; GROUPS.len()]> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let entries = entries(rules);
    (0..draws)
        .map(|number| {
            let mut joined: Vec<(f64, usize)> = Vec::new();
            for (index, group) in GROUPS.iter().enumerate() {
                for _ in 0..group.people * entries[index] {
                    joined.push((rng.random_range(group.comes.0..group.comes.1), index));
                }
            }
            joined.sort_by(|a, b| a.0.total_cmp(&b.0));
            let drawn = joined.partition_point(|(at, _)| *at < OPEN_S) as u32;
            let mut secret = [0; 32];
            rng.fill(&mut secret);
            let value = number.to_be_bytes();
            let places = draw::places(&draw::seed(&secret, &[0; 32], Some(&value)), drawn);
            let mut got = [0; GROUPS.len()];
            for (number, (_, group)) in joined.iter().enumerate() {
                // Whoever comes after the closing stands behind, in order of arrival.
                let place =
                    if rules.drawn { places.get(number).copied().unwrap_or(number as u32) } else { number as u32 };
                got[*group] += u32::from(place < SEATS);
            }
            got
        })
        .collect()
}

/// Places for each person of a group, the mean of all draws.
pub fn per_person(results: &[[u32; GROUPS.len()]], group: usize) -> f64 {
    let sum: u32 = results.iter().map(|got| got[group]).sum();
    f64::from(sum) / results.len() as f64 / f64::from(GROUPS[group].people)
}

/// The table that DRAW.md shows.
pub fn table(draws: u64, seed: u64) -> String {
    let columns = COLUMNS.map(|(_, rules)| simulate(rules, draws, seed));
    let mut out = String::from("| who | people |");
    for (name, _) in COLUMNS {
        write!(out, " {name} |").expect("a String takes everything");
    }
    out.push_str("\n| --- | ---: |");
    out.push_str(&" ---: |".repeat(COLUMNS.len()));
    for (index, group) in GROUPS.iter().enumerate() {
        write!(out, "\n| {} | {} |", group.name, group.people).expect("a String takes everything");
        for results in &columns {
            let each = per_person(results, index);
            let share = each * f64::from(group.people) / f64::from(SEATS) * 100.0;
            let each = if each < 10.0 { format!("{each:.2}") } else { format!("{each:.0}") };
            write!(out, " {share:.1} % ({each}) |").expect("a String takes everything");
        }
    }
    out.push('\n');
    out
}

pub const DRAWS: u64 = 40;
pub const SEED: u64 = 20_261_130;
