//! That the stadium is what its table says, and that nobody sits on anybody.

use super::*;
use crate::catalog::{
    commands::read_plan,
    geometry,
    layout::{Layout, flag},
};
use std::{collections::HashMap, sync::LazyLock};

static LAYOUT: LazyLock<Layout> = LazyLock::new(|| {
    let stadium = generate(1);
    let (layout, warnings) = read_plan(&stadium.plan, Some(&stadium.beside)).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    layout
});

#[test]
fn a_seed_is_a_stadium() {
    let (a, b, c) = (generate(7), generate(7), generate(8));
    assert_eq!((&a.plan, &a.beside), (&b.plan, &b.beside));
    assert_ne!(a.plan, c.plan);
}

#[test]
fn it_has_the_figures_of_a_big_house() {
    let layout = &*LAYOUT;
    assert!((61_000..63_000).contains(&layout.seats.len()), "{}", layout.seats.len());
    let with = |f: i16| layout.seats.iter().filter(|s| s.flags & f != 0).count();
    assert_eq!((with(flag::ACCESSIBLE), with(flag::COMPANION), with(flag::STANDING)), (200, 200, 10_000));
    let mut rows: HashMap<usize, usize> = HashMap::new();
    layout.seats.iter().filter(|s| s.flags & flag::STANDING == 0).for_each(|s| *rows.entry(s.row).or_default() += 1);
    assert_eq!(rows.values().filter(|n| **n == 139).count(), 3);
    assert_eq!(rows.values().min(), Some(&5));
    assert!(rows.values().any(|n| (50..=57).contains(n)), "{:?}", rows.values().filter(|n| **n < 139).max());
    assert!(rows.values().all(|n| *n <= 57 || *n == 139));
}

#[test]
fn no_two_seats_stand_on_each_other() {
    let layout = &*LAYOUT;
    let mut cells: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    let cell = |v: f64| (v / 20.0).floor() as i64;
    for (i, s) in layout.seats.iter().enumerate() {
        for (dx, dy) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))) {
            for other in cells.get(&(cell(s.x) + dx, cell(s.y) + dy)).into_iter().flatten() {
                let o = &layout.seats[*other];
                assert!((s.x - o.x).hypot(s.y - o.y) > 8.0, "{} and {}", s.guid, o.guid);
            }
        }
        cells.entry((cell(s.x), cell(s.y))).or_default().push(i);
    }
}

#[test]
fn stairways_end_runs_platforms_are_one_and_the_grass_has_lines() {
    let layout = &*LAYOUT;
    let mut runs: HashMap<usize, HashMap<usize, usize>> = HashMap::new();
    layout.seats.iter().for_each(|s| *runs.entry(s.section).or_default().entry(s.run).or_default() += 1);
    for (section, runs) in runs {
        let name = &layout.sections[section];
        let rows = layout.rows.iter().filter(|r| r.section == section).count();
        match name.split(' ').next().unwrap() {
            "Block" => assert!(
                runs.len() == rows || runs.len() == rows + 5 || runs.len() == rows + 4,
                "{name}: {} runs of {rows} rows",
                runs.len()
            ),
            "Golden" | "Field" => assert!(runs.len() > 20, "{name}: a run a line of standing places"),
            _ => assert_eq!(runs.len(), rows, "{name}"),
        }
    }
}

#[test]
fn it_is_drawn_in_half_a_megabyte() {
    let layout = &*LAYOUT;
    let slots: Vec<_> = (0..layout.seats.len()).map(geometry::Slot::Seat).collect();
    let drawing = geometry::draw(layout, &slots);
    let bytes = geometry::gzip(&drawing.json, flate2::Compression::best()).len();
    assert!(bytes < 700_000, "{bytes} bytes");
}
