//! "Best n together", what lies near a lost seat, and the rules about neighbours.
//!
//! Everything here proposes from a [`Board`], which may be late; the desk decides.

use std::collections::{BTreeSet, HashSet};

use fullhouse_protocol::holds::BestRequest;

use crate::seat_map::{ACCESSIBLE, Board, COMPANION, Hall, HallSeat, SeatNo};

/// Proposals for one wish, so that the next is at hand when the first has just gone.
const PROPOSALS: usize = 4;
/// Runs searched on each side of a lost seat for another like it.
const NEARBY_RUNS: i64 = 40;

/// Groups of seats for a wish, the best first; none of `spoken_for`, and no seat in two groups.
///
/// Ordinary seats sit side by side, at one price, as near to the stage as they can; a group that
/// leaves a single seat comes after all that don't. Accessible places only if asked for.
pub fn propose(board: &Board, wish: &BestRequest, fewer_ok: bool, spoken_for: &HashSet<SeatNo>) -> Vec<Vec<SeatNo>> {
    let section = match &wish.section {
        Some(name) => match board.hall.section(name) {
            Some(section) => Some(section),
            None => return Vec::new(),
        },
        None => None,
    };
    let filter = Filter { board, level: wish.level, section, spoken_for };
    let smallest = if fewer_ok { wish.accessible.max(1) } else { wish.count };
    for count in (smallest..=wish.count).rev() {
        let groups = if wish.accessible > 0 {
            accessible_groups(&filter, count as usize, wish.accessible as usize)
        } else {
            ordinary_groups(&filter, count as usize, |seat| seat.distance)
        };
        if !groups.is_empty() {
            return groups;
        }
    }
    Vec::new()
}

/// Groups of `count` seats at the price of `lost`, nearest to them first.
pub fn nearby(board: &Board, lost: &[SeatNo], count: usize) -> Vec<Vec<SeatNo>> {
    let hall = &board.hall;
    let seats: Vec<&HallSeat> = lost.iter().filter_map(|s| hall.seat(*s)).collect();
    let Some(first) = seats.first() else { return Vec::new() };
    let x = seats.iter().map(|s| s.x).sum::<f64>() / seats.len() as f64;
    let y = seats.iter().map(|s| s.y).sum::<f64>() / seats.len() as f64;
    let spoken_for = HashSet::new();
    let filter = Filter { board, level: Some(first.level), section: None, spoken_for: &spoken_for };
    let mut found = Vec::new();
    // Runs are numbered in the order of the plan, so that near numbers are near seats; only a
    // neighbourhood that is full makes us look through the whole hall.
    let run = i64::from(first.run);
    for number in (run - NEARBY_RUNS).max(0)..=(run + NEARBY_RUNS).min(hall.runs.len() as i64 - 1) {
        found.extend(filter.best_window(number as u32, count, |s| (s.x - x).hypot(s.y - y)));
    }
    if found.is_empty() {
        found.extend(
            hall.runs_by_distance
                .iter()
                .filter_map(|(number, _)| filter.best_window(*number, count, |s| (s.x - x).hypot(s.y - y))),
        );
    }
    best_of(found)
}

/// Companion seats among `fresh` whose accessible place is not part of the hold.
pub fn companions_alone(hall: &Hall, fresh: &[SeatNo], result: &BTreeSet<SeatNo>) -> Vec<SeatNo> {
    let is_alone = |seat: &SeatNo| {
        hall.seat(*seat).is_some_and(|s| {
            s.is(COMPANION)
                && match s.companion_of {
                    Some(place) => !result.contains(&place),
                    None => !result.iter().any(|r| hall.seat(*r).is_some_and(|r| r.is(ACCESSIBLE))),
                }
        })
    };
    fresh.iter().copied().filter(is_alone).collect()
}

/// Whether the ordinary seats among `result` sit next to one another; standing places move about.
pub fn side_by_side(hall: &Hall, result: &BTreeSet<SeatNo>) -> bool {
    let mut places: Vec<(u32, usize)> = Vec::with_capacity(result.len());
    for seat in result.iter().filter(|s| hall.seat(**s).is_some_and(HallSeat::has_neighbours)) {
        let run = hall.seats[*seat as usize].run;
        if let Some(place) = hall.runs[run as usize].iter().position(|s| s == seat) {
            places.push((run, place));
        }
    }
    places.sort_unstable();
    places.windows(2).all(|w| w[0].0 == w[1].0 && w[0].1 + 1 == w[1].1)
}

/// Seats that `result` would leave single although another choice in the same place would not.
///
/// A block is a stretch of seats that are free or the buyer's. Whoever takes all but one of a block
/// can't help leaving one; whoever leaves more could have left them together.
pub fn singles_left(
    hall: &Hall,
    fresh: &[SeatNo],
    result: &BTreeSet<SeatNo>,
    free: impl Fn(SeatNo) -> bool,
) -> Vec<SeatNo> {
    let runs: BTreeSet<u32> =
        fresh.iter().filter_map(|s| hall.seat(*s)).filter(|s| s.has_neighbours()).map(|s| s.run).collect();
    let mut singles = Vec::new();
    for run in runs {
        let seats = &hall.runs[run as usize];
        let in_block = |s: &SeatNo| result.contains(s) || (hall.seats[*s as usize].is_ordinary() && free(*s));
        for block in seats.split(|s| !in_block(s)) {
            let taken = block.iter().filter(|s| result.contains(s)).count();
            if taken == 0 || block.len() - taken <= 1 {
                continue;
            }
            for gap in block.split(|s| result.contains(s)) {
                if let [single] = gap {
                    singles.push(*single);
                }
            }
        }
    }
    singles
}

struct Filter<'a> {
    board: &'a Board,
    level: Option<i16>,
    section: Option<u32>,
    spoken_for: &'a HashSet<SeatNo>,
}

/// A group and how good it is: those that leave a single seat come last, then the nearest.
struct Group {
    leaves_single: bool,
    distance: f64,
    seats: Vec<SeatNo>,
}

impl Filter<'_> {
    fn is_free(&self, seat: SeatNo) -> bool {
        self.board.is_available(seat) && !self.spoken_for.contains(&seat)
    }

    fn fits(&self, seat: SeatNo) -> bool {
        let s = &self.board.hall.seats[seat as usize];
        s.is_ordinary()
            && self.level.is_none_or(|l| l == s.level)
            && self.section.is_none_or(|n| n == s.section)
            && self.is_free(seat)
    }

    /// The best `count` neighbours of a run.
    fn best_window(&self, run: u32, count: usize, distance: impl Fn(&HallSeat) -> f64) -> Option<Group> {
        let hall = &self.board.hall;
        let seats = &hall.runs[run as usize];
        if count == 0 || seats.len() < count {
            return None;
        }
        let mut best: Option<Group> = None;
        for block in seats.split(|s| !self.fits(*s)).filter(|b| b.len() >= count) {
            for start in 0..=block.len() - count {
                let window = &block[start..start + count];
                let level = hall.seats[window[0] as usize].level;
                if window.iter().any(|s| hall.seats[*s as usize].level != level) {
                    continue;
                }
                let (before, after) = (start, block.len() - count - start);
                let leaves_single = (before == 1 || after == 1) && block.len() - count > 1;
                let mean = window.iter().map(|s| distance(&hall.seats[*s as usize])).sum::<f64>() / count as f64;
                if best.as_ref().is_none_or(|b| (leaves_single, mean) < (b.leaves_single, b.distance)) {
                    best = Some(Group { leaves_single, distance: mean, seats: window.to_vec() });
                }
            }
        }
        best
    }
}

fn best_of(mut groups: Vec<Group>) -> Vec<Vec<SeatNo>> {
    groups.sort_by(|a, b| a.leaves_single.cmp(&b.leaves_single).then(a.distance.total_cmp(&b.distance)));
    groups.truncate(PROPOSALS);
    groups.into_iter().map(|g| g.seats).collect()
}

fn ordinary_groups(filter: &Filter, count: usize, distance: impl Fn(&HallSeat) -> f64 + Copy) -> Vec<Vec<SeatNo>> {
    let mut groups: Vec<Group> = Vec::new();
    for (run, nearest) in &filter.board.hall.runs_by_distance {
        // Runs come nearest first: once enough good groups are nearer than the nearest seat of
        // what is left, nothing better can follow.
        let better = groups.iter().filter(|g| !g.leaves_single && g.distance <= *nearest).count();
        if better >= PROPOSALS {
            break;
        }
        groups.extend(filter.best_window(*run, count, distance));
    }
    best_of(groups)
}

/// Accessible places with their companions, and the rest of the party as near as can be.
fn accessible_groups(filter: &Filter, count: usize, places: usize) -> Vec<Vec<SeatNo>> {
    let hall = &filter.board.hall;
    if places > count {
        return Vec::new();
    }
    let mut free_places: Vec<SeatNo> = (0..hall.seats.len() as SeatNo)
        .filter(|s| {
            let seat = &hall.seats[*s as usize];
            seat.is(ACCESSIBLE)
                && filter.level.is_none_or(|l| l == seat.level)
                && filter.section.is_none_or(|n| n == seat.section)
                && filter.is_free(*s)
        })
        .collect();
    free_places.sort_by(|a, b| hall.seats[*a as usize].distance.total_cmp(&hall.seats[*b as usize].distance));
    let mut groups = Vec::new();
    let mut used: HashSet<SeatNo> = HashSet::new();
    for first in free_places.iter().copied() {
        if groups.len() == PROPOSALS || used.contains(&first) {
            continue;
        }
        let near = |s: &HallSeat| {
            let f = &hall.seats[first as usize];
            (s.x - f.x).hypot(s.y - f.y)
        };
        let mut by_nearness: Vec<SeatNo> = free_places.iter().copied().filter(|s| !used.contains(s)).collect();
        by_nearness.sort_by(|a, b| near(&hall.seats[*a as usize]).total_cmp(&near(&hall.seats[*b as usize])));
        by_nearness.truncate(places);
        if by_nearness.len() < places {
            break;
        }
        let mut group = by_nearness;
        for place in group.clone() {
            let companion = companion_of(hall, place).filter(|c| filter.is_free(*c) && !used.contains(c));
            if let Some(companion) = companion.filter(|_| group.len() < count) {
                group.push(companion);
            }
        }
        let rest = count - group.len();
        if rest > 0 {
            let taken: HashSet<SeatNo> = filter.spoken_for.union(&used).copied().collect();
            let filter =
                Filter { board: filter.board, level: filter.level, section: filter.section, spoken_for: &taken };
            let mut windows: Vec<Group> =
                (0..hall.runs.len() as u32).filter_map(|run| filter.best_window(run, rest, near)).collect();
            windows.sort_by(|a, b| a.leaves_single.cmp(&b.leaves_single).then(a.distance.total_cmp(&b.distance)));
            match windows.into_iter().next() {
                Some(window) => group.extend(window.seats),
                None => continue,
            }
        }
        group.sort_unstable();
        used.extend(&group);
        groups.push(group);
    }
    groups
}

/// The companion seat of an accessible place: neighbours in a run first, then anywhere.
fn companion_of(hall: &Hall, place: SeatNo) -> Option<SeatNo> {
    let run = &hall.runs[hall.seats[place as usize].run as usize];
    let is_its = |s: &SeatNo| hall.seats[*s as usize].companion_of == Some(place);
    run.iter().copied().find(is_its).or_else(|| (0..hall.seats.len() as SeatNo).find(is_its))
}

#[cfg(test)]
mod tests;
