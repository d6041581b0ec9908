//! Golden draws, which Rust and TypeScript both recompute (`protocol/golden-draws/draws.json`).
//!
//! `UPDATE_GOLDEN=1 cargo test -p fullhouse --lib golden_draws` writes them anew; a change of what is there is a change
//! of every draw that was ever published.

use std::path::Path;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::*;

fn hex(bytes: &[u8]) -> Value {
    HEXLOWER.encode(bytes).into()
}

fn hexes(hashes: &[Hash]) -> Vec<Value> {
    hashes.iter().map(|hash| hex(hash)).collect()
}

fn entry_key(number: u32) -> [u8; 16] {
    Sha256::digest(number.to_be_bytes())[..16].try_into().expect("16 of 32")
}

fn code(fault: Fault) -> &'static str {
    match fault {
        Fault::Commitment => "commitment",
        Fault::Count => "count",
        Fault::Root => "root",
        Fault::ValueMissing => "value_missing",
        Fault::ValueNotAnnounced => "value_not_announced",
    }
}

/// What is published of a draw, its leaves, and what a checker gets.
fn published(name: &str, draw: &Published, leaves: Vec<Hash>) -> Value {
    let public = draw.terms.public;
    let mut case = json!({
        "name": name, "event_id": draw.terms.event_id, "draw_no": draw.terms.draw_no,
        "source": public.map(|p| p.source), "round": public.map(|p| p.round),
        "commitment": hex(&draw.commitment), "secret": hex(&draw.secret), "count": draw.count,
        "root": hex(&draw.root), "public_value": draw.public_value.map(hex), "leaves": hexes(&leaves),
    });
    match check(draw, leaves) {
        Ok(places) => {
            case["seed"] = hex(&seed(&draw.secret, &draw.root, draw.public_value));
            case["places"] = places.into();
        }
        Err(fault) => case["fault"] = code(fault).into(),
    }
    case
}

fn draw<'a>(terms: Terms<'a>, public_value: Option<&'a [u8]>, leaves: &[Hash]) -> Published<'a> {
    let secret = Sha256::digest(format!("secret of {} {}", terms.event_id, terms.draw_no)).into();
    let root = Tree::new(leaves.to_vec()).root();
    Published { terms, commitment: terms.commitment(&secret), count: leaves.len() as u32, root, public_value, secret }
}

fn entries(event_id: i64, count: u32) -> Vec<Hash> {
    (0..count).map(|number| leaf(event_id, number.into(), &entry_key(number))).collect()
}

#[test]
fn golden_draws_say_what_they_said() {
    let none = Terms { event_id: 42, draw_no: 1, public: None };
    let beacon = Public { source: "drand quicknet", round: "12345678" };
    let lottery = Public { source: "ナンバーズ4", round: "第7,000回" };
    let value: &[u8] = &[0xff, 0x00, 0x80, 0x7f];

    let mut good = Vec::new();
    for count in [0, 1, 2, 3, 4, 5, 7, 8, 21] {
        let leaves = entries(42, count);
        good.push(published(&format!("{count} entries, committed"), &draw(none, None, &leaves), leaves));
    }
    let terms = Terms { event_id: 281_474_976_710_655, draw_no: 3, public: Some(beacon) };
    let leaves = entries(terms.event_id, 6);
    good.push(published("verifiable, of a large event, the third", &draw(terms, Some(value), &leaves), leaves));
    let terms = Terms { event_id: 7, draw_no: 1, public: Some(lottery) };
    let leaves = entries(7, 9);
    good.push(published("a source in another script", &draw(terms, Some("4813".as_bytes()), &leaves), leaves));
    assert!(good.iter().all(|case| case.get("places").is_some()));

    let leaves = entries(7, 5);
    let right = draw(terms, Some(value), &leaves);
    let committed = draw(Terms { public: None, ..terms }, None, &leaves);
    let mut reordered = leaves.clone();
    reordered.swap(0, 4);
    let split = Terms { public: Some(Public { source: "ナンバーズ", round: "4第7,000回" }), ..terms };
    let faulty = vec![
        published("another secret", &Published { secret: [0; 32], ..right }, leaves.clone()),
        published("another round", &Published { terms: split, ..right }, leaves.clone()),
        published("an entry less", &right, leaves[..4].to_vec()),
        published("an entry less, counted so", &Published { count: 4, ..right }, leaves[..4].to_vec()),
        published("entries in another order", &right, reordered),
        published("another root", &Published { root: [0; 32], ..right }, leaves.clone()),
        published("the value is missing", &Published { public_value: None, ..right }, leaves.clone()),
        published("a value that nobody announced", &Published { public_value: Some(value), ..committed }, leaves),
    ];
    assert!(faulty.iter().all(|case| case.get("fault").is_some()));

    let leaves = entries(42, 21);
    let tree = Tree::new(leaves.clone());
    let proof = |number: u32| {
        json!({ "number": number, "entry_key": hex(&entry_key(number)), "leaf": hex(&leaves[number as usize]),
                "path": hexes(&tree.path(number).unwrap()) })
    };
    let proofs = json!({
        "event_id": 42, "count": 21, "root": hex(&tree.root()), "proofs": (0..21).map(proof).collect::<Vec<_>>(),
    });

    let many = entries(42, 500_000);
    let seed = seed(&[1; 32], &Tree::new(many.clone()).root(), None);
    let drawn = places(&seed, 500_000);
    let bytes: Vec<u8> = drawn.iter().flat_map(|place| place.to_le_bytes()).collect();
    let large = json!({
        "what": "leaves as above, of event 42 and entry keys that are the first 16 bytes of SHA-256 of the number as u32be",
        "count": 500_000, "root": hex(&Tree::new(many).root()), "seed": hex(&seed), "first_places": drawn[..8],
        "last_places": drawn[499_992..], "sha256_of_places_as_u32le": hex(&Sha256::digest(&bytes)),
    });

    let golden = json!({ "draws": good, "faulty": faulty, "tree": proofs, "large": large });
    let text = format!("{golden:#}\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/golden-draws/draws.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "a change of this file is a change of every draw");
}
