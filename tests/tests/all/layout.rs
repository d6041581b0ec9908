//! The map in `hub/src/lib.rs` is true: a module imports only what stands above it.

use std::{fs, path::Path};

use fullhouse_tests::run::workspace;

/// What may be imported from below, and why.
const FROM_BELOW: [(&str, &str); 2] = [
    ("outbox", "a change of a seat and its outbox row are one transaction: `outbox::append`, and what it takes"),
    ("serve", "the edge's handlers take parts of the `Hub` that serve puts together"),
];

#[test]
fn a_module_imports_only_what_stands_above_it() {
    let source = workspace().join("hub/src");
    let map = fs::read_to_string(source.join("lib.rs")).unwrap();
    let modules: Vec<&str> =
        map.lines().filter_map(|l| l.strip_prefix("pub mod ")).filter_map(|l| l.split(';').next()).collect();
    assert!(modules.len() > 15, "the map could not be read: {modules:?}");
    let mut faults = Vec::new();
    for (place, module) in modules.iter().enumerate() {
        for file in files(&source, module) {
            let text = fs::read_to_string(&file).unwrap();
            // The simulator is a server of its own; serve puts the edge's parts together.
            let may_know = ["edge", "serve"].contains(module) || file.starts_with(source.join("payment/simulator"));
            if text.contains("axum::") && !may_know {
                faults.push(format!("{} knows HTTP; only edge does", file.display()));
            }
            for used in imports(&text) {
                let below = modules.iter().position(|m| *m == used).is_some_and(|at| at > place);
                let allowed = match used.as_str() {
                    "outbox" => true,
                    "serve" => *module == "edge",
                    _ => false,
                };
                if below && !allowed {
                    faults.push(format!("{} imports {used}, which stands below {module}", file.display()));
                }
            }
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}\nallowed from below: {FROM_BELOW:?}", faults.join("\n"));
}

fn files(source: &Path, module: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let single = source.join(format!("{module}.rs"));
    if single.exists() {
        found.push(single);
    }
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                found.push(entry);
            }
        }
    }
    assert!(!found.is_empty(), "no file of {module}");
    found
}

/// The first step of every path that begins with `crate::`, in trees of `use` too.
fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(tree) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (i, c) in tree.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    found.push(word(&tree[start..i]));
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    found.push(word(&tree[start..i]));
                    start = i + 1;
                }
                _ => {}
            }
        }
    }
    found
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The specification of paying has 37 races; each is a test of its own that bears its number.
#[test]
fn each_race_of_paying_is_a_test_of_its_own() {
    let entries = fs::read_dir(workspace().join("tests/tests/all")).unwrap().map(|e| e.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    let tests: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    let missing: Vec<u32> = (1..=37).filter(|n| !tests.contains(&format!("async fn race_{n:02}_"))).collect();
    assert!(missing.is_empty(), "races without a test: {missing:?}");
}
