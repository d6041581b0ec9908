//! The tree beside a slow one that follows the RFC to the letter; nothing altered is proved; and the shuffle is
//! uniform, by a test that the usual wrong shuffles fail.

use proptest::prelude::*;

use super::*;

fn leaves(count: u32) -> Vec<Hash> {
    (0..count).map(|n| leaf(42, n.into(), &u128::from(n * 7 + 1).to_be_bytes())).collect()
}

/// RFC 6962, 2.1: split at the largest power of two below the count.
fn naive_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
            node(&naive_root(left), &naive_root(right))
        }
    }
}

/// RFC 6962, 2.1.1.
fn naive_path(leaves: &[Hash], number: usize) -> Vec<Hash> {
    if leaves.len() < 2 {
        return Vec::new();
    }
    let half = leaves.len().next_power_of_two() / 2;
    let (left, right) = leaves.split_at(half);
    let (mut path, beside) = if number < half {
        (naive_path(left, number), naive_root(right))
    } else {
        (naive_path(right, number - half), naive_root(left))
    };
    path.push(beside);
    path
}

#[test]
fn the_tree_is_the_one_of_the_rfc_and_every_path_proves() {
    for count in (0..70).chain([127, 128, 129, 1000]) {
        let leaves = leaves(count);
        let tree = Tree::new(leaves.clone());
        let root = tree.root();
        assert_eq!(root, naive_root(&leaves), "{count} leaves");
        for (number, leaf) in leaves.iter().enumerate() {
            let path = tree.path(number as u32).unwrap();
            assert_eq!(path, naive_path(&leaves, number), "{number} of {count}");
            assert!(proves(&root, count, number as u32, leaf, &path), "{number} of {count}");
        }
        assert_eq!(tree.path(count), None);
    }
}

fn example(leaves: &[Hash]) -> Published<'static> {
    let terms =
        Terms { event_id: 42, draw_no: 1, public: Some(Public { source: "a lottery", round: "the draw of 1 May" }) };
    Published {
        terms,
        commitment: terms.commitment(&[7; 32]),
        count: leaves.len() as u32,
        root: Tree::new(leaves.to_vec()).root(),
        public_value: Some(b"3 17 21 30 44 45"),
        secret: [7; 32],
    }
}

#[test]
fn a_draw_is_recomputed_from_what_is_published_and_whatever_is_altered_is_named() {
    let leaves = leaves(100);
    let draw = example(&leaves);
    let places = check(&draw, leaves.clone()).unwrap();
    assert_eq!(places, check(&draw, leaves.clone()).unwrap(), "run twice");
    let mut sorted = places.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<_>>(), "each place once");
    assert_ne!(places, sorted);

    let faulty = |draw: Published, leaves: Vec<Hash>| check(&draw, leaves).unwrap_err();
    assert_eq!(faulty(Published { secret: [8; 32], ..draw }, leaves.clone()), Fault::Commitment);
    let others = [
        Terms { event_id: 43, ..draw.terms },
        Terms { draw_no: 2, ..draw.terms },
        Terms { public: None, ..draw.terms },
        Terms { public: Some(Public { source: "a lottery", round: "the draw of 2 May" }), ..draw.terms },
        Terms { public: Some(Public { source: "a lotterythe ", round: "draw of 1 May" }), ..draw.terms },
    ];
    for terms in others {
        assert_eq!(faulty(Published { terms, ..draw }, leaves.clone()), Fault::Commitment, "{terms:?}");
    }
    assert_eq!(faulty(Published { root: [1; 32], ..draw }, leaves.clone()), Fault::Root);
    assert_eq!(faulty(Published { count: 99, ..draw }, leaves.clone()), Fault::Count);
    assert_eq!(faulty(Published { public_value: None, ..draw }, leaves.clone()), Fault::ValueMissing);
    let fewer = leaves[..99].to_vec();
    assert_eq!(faulty(draw, fewer.clone()), Fault::Count);
    assert_eq!(faulty(Published { count: 99, ..draw }, fewer), Fault::Root);
    let mut swapped = leaves.clone();
    swapped.swap(3, 4);
    assert_eq!(faulty(draw, swapped), Fault::Root);
    let mut altered = leaves.clone();
    altered[99][31] ^= 1;
    assert_eq!(faulty(draw, altered), Fault::Root);
    let committed = Terms { public: None, ..draw.terms };
    let committed = Published { terms: committed, commitment: committed.commitment(&draw.secret), ..draw };
    assert_eq!(faulty(committed, leaves.clone()), Fault::ValueNotAnnounced);
    let other_value = check(&Published { public_value: Some(b"3 17 21 30 44 46"), ..draw }, leaves).unwrap();
    assert_ne!(places, other_value, "another public value gives other places, which its owner's eyes catch");
}

proptest! {
    #[test]
    fn nothing_altered_is_proved(count in 2u32..300, at in 0u32..300, bit in 0usize..256, step in 0usize..16) {
        let number = at % count;
        let tree = Tree::new(leaves(count));
        let (root, leaf, path) = (tree.root(), tree.leaves()[number as usize], tree.path(number).unwrap());
        prop_assert!(proves(&root, count, number, &leaf, &path));
        let flipped = |hash: &Hash| { let mut hash = *hash; hash[bit / 8] ^= 1 << (bit % 8); hash };
        prop_assert!(!proves(&root, count, number, &flipped(&leaf), &path));
        prop_assert!(!proves(&flipped(&root), count, number, &leaf, &path));
        let mut bent = path.clone();
        let step = step % path.len();
        bent[step] = flipped(&path[step]);
        prop_assert!(!proves(&root, count, number, &leaf, &bent));
        prop_assert!(!proves(&root, count, number, &leaf, &path[1..]));
        prop_assert!(!proves(&root, count, number, &leaf, &[&path[..], &path[..1]].concat()));
        prop_assert!(!proves(&root, count, (number + 1) % count, &leaf, &path));
        prop_assert!(!proves(&root, count, count + number, &leaf, &path));
        // Another count is noticed where it changes the shape of this path; where it does not, the root is of
        // another tree, and `check` counts the leaves.
        prop_assert!(!proves(&root, count * 2, number, &leaf, &path));
    }
}

#[test]
fn a_word_above_the_largest_multiple_is_passed_over() {
    let seed = seed(&[7; 32], &[8; 32], None);
    let mut words = Chance::new(&seed);
    let last = (1 << 31) + 5; // almost half of all words are above the one multiple that there is
    let mut fair = Chance::new(&seed);
    let mut passed = 0;
    for _ in 0..5_000 {
        let expected = loop {
            let word = words.next();
            if word <= last {
                break word;
            }
            passed += 1;
        };
        assert_eq!(fair.up_to(last), expected);
    }
    assert!((4_500..5_500).contains(&passed), "{passed}");
    assert_eq!(Chance::new(&seed).up_to(0), 0);
}

/// Sum of (seen - expected)² / expected.
fn chi_square(seen: &[u32], expected: f64) -> f64 {
    seen.iter().map(|&seen| (f64::from(seen) - expected).powi(2) / expected).sum()
}

/// How far the orders of four entries, all 24 of them, are from equally frequent: 23 degrees of freedom.
fn orders(shuffle: impl Fn(&Hash) -> Vec<u32>) -> f64 {
    const DRAWS: u64 = 12_000;
    let mut seen = [0; 256];
    for draw in 0..DRAWS {
        let order = shuffle(&numbered_seed(draw));
        seen[order.iter().fold(0, |code, place| code * 4 + *place as usize)] += 1;
    }
    let possible: Vec<u32> = (0..256)
        .filter(|code| (0..4).all(|place| (0..4).any(|at| code >> (2 * at) & 3 == place)))
        .map(|code: usize| seen[code])
        .collect();
    assert_eq!((possible.len(), possible.iter().sum::<u32>()), (24, DRAWS as u32), "each place once");
    chi_square(&possible, DRAWS as f64 / 24.0)
}

/// How far the places of 16 numbers are from equally frequent, each number in each place: 225 degrees of freedom.
fn cells(shuffle: impl Fn(&Hash) -> Vec<u32>) -> f64 {
    const DRAWS: u64 = 8_000;
    let mut seen = [0; 256];
    for draw in 0..DRAWS {
        for (number, place) in shuffle(&numbered_seed(draw)).iter().enumerate() {
            seen[number * 16 + *place as usize] += 1;
        }
    }
    // Of a whole order in each draw, 16/15 more than of cells that are drawn by themselves.
    chi_square(&seen, DRAWS as f64 / 16.0) * 15.0 / 16.0
}

fn numbered_seed(draw: u64) -> Hash {
    seed(&[draw as u8; 32], &leaf(1, draw, &[0; 16]), Some(&draw.to_be_bytes()))
}

/// Exceeded by one fair shuffle in a million: chi-square of 23 and of 225 degrees of freedom at 1 - 10⁻⁶.
/// The seeds are fixed, so a run that passes passes always.
const ORDERS_MAX: f64 = 70.5;
const CELLS_MAX: f64 = 340.6;

/// Any place may be swapped with any: 4⁴ ways do not divide evenly among 24 orders.
fn swaps_with_any(seed: &Hash, count: u32) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count).collect();
    let mut chance = Chance::new(seed);
    for at in 0..count {
        places.swap(at as usize, chance.up_to(count - 1) as usize);
    }
    places
}

/// One short: nobody keeps the place of their number.
fn never_stays(seed: &Hash, count: u32) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count).collect();
    let mut chance = Chance::new(seed);
    for last in (1..count).rev() {
        places.swap(last as usize, chance.up_to(last - 1) as usize);
    }
    places
}

/// A remainder of a byte: 256 is no multiple of 16's smaller bounds.
fn takes_remainders(seed: &Hash, count: u32) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count).collect();
    let mut chance = Chance::new(seed);
    for last in (1..count).rev() {
        places.swap(last as usize, ((chance.next() & 31) % (last + 1)) as usize);
    }
    places
}

#[test]
fn every_order_and_every_place_is_equally_likely_and_wrong_shuffles_are_caught() {
    let (four, sixteen) = (orders(|seed| places(seed, 4)), cells(|seed| places(seed, 16)));
    assert!(four < ORDERS_MAX && sixteen < CELLS_MAX, "{four:.1} of 24 orders, {sixteen:.1} of 256 cells");
    // A sum that is too even would be as suspicious: below this once in a million as well.
    assert!(four > 3.5 && sixteen > 138.1, "{four:.1} of 24 orders, {sixteen:.1} of 256 cells");
    type Shuffle = fn(&Hash, u32) -> Vec<u32>;
    let wrong = [swaps_with_any, never_stays, takes_remainders as Shuffle];
    for (name, shuffle) in ["any", "never stays", "remainders"].into_iter().zip(wrong) {
        let (four, sixteen) = (orders(|seed| shuffle(seed, 4)), cells(|seed| shuffle(seed, 16)));
        println!("{name}: {four:.1} of 24 orders, {sixteen:.1} of 256 cells");
        assert!(sixteen > CELLS_MAX || four > ORDERS_MAX, "{name}: {four:.1}, {sixteen:.1}");
    }
}

/// The mean place of the first tenth of 1,000 numbers over 400 draws, as standard deviations from the middle.
fn gain_of_the_early(shuffle: impl Fn(&Hash) -> Vec<u32>) -> f64 {
    const COUNT: u32 = 1000;
    const DRAWS: u64 = 400;
    const EARLY: f64 = 100.0;
    let sum: f64 =
        (0..DRAWS).map(|d| shuffle(&numbered_seed(d))[..100].iter().map(|p| f64::from(*p)).sum::<f64>()).sum();
    let middle = f64::from(COUNT - 1) / 2.0;
    // Places are drawn without putting back: the mean of k of n has the variance (n + 1)(n - k) / 12k.
    let n = f64::from(COUNT);
    let deviation = ((n + 1.0) * (n - EARLY) / (12.0 * EARLY * DRAWS as f64)).sqrt();
    (sum / (EARLY * DRAWS as f64) - middle) / deviation
}

#[test]
fn who_came_early_gains_nothing() {
    let gain = gain_of_the_early(|seed| places(seed, 1000));
    assert!(gain.abs() < 4.9, "{gain:.2} standard deviations: once in a million");
    // The control: a draw in which having come early counts a little.
    let early_counts = |seed: &Hash| {
        let mut chance = Chance::new(seed);
        let mut order: Vec<u32> = (0..1000).collect();
        order.sort_by_cached_key(|number| number / 10 + chance.up_to(999));
        let mut places = vec![0; 1000];
        for (place, number) in order.into_iter().enumerate() {
            places[number as usize] = place as u32;
        }
        places
    };
    let gain = gain_of_the_early(early_counts);
    assert!(gain < -4.9, "{gain:.2}");
}
