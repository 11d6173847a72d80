//! Whether the documents still speak of this tree: the map, the table of features, links, and the reasons of dependencies.

use crate::none;
use crate::source::sources;
use std::collections::BTreeSet;
use std::fs;
use tests::bins::root;

fn document(name: &str) -> String {
    let text = fs::read_to_string(root().join(name)).unwrap_or_default();
    assert!(!text.is_empty(), "{name} is missing");
    text
}

/// Cells of a Markdown table's row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split(" | ").map(str::trim).collect())
}

/// The pieces of `text` in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Paths that the map names.
fn mapped() -> BTreeSet<String> {
    let map = document("docs/architecture.md");
    let rows = map.lines().filter_map(cells);
    let paths = rows.filter_map(|cells| quoted(cells.first()?).next().map(str::to_owned));
    paths
        .filter(|path| path.contains('/') || path.contains('.'))
        .map(|path| path.trim_end_matches('/').into())
        .collect()
}

#[test]
fn the_map_names_only_what_exists() {
    let missing = mapped().into_iter().filter(|path| !root().join(path).exists());
    none(
        missing
            .map(|path| format!("docs/architecture.md: there is no {path}"))
            .collect(),
    );
}

#[test]
fn the_map_names_every_part_of_the_daemon() {
    let mapped = mapped();
    let mut places: BTreeSet<String> = BTreeSet::new();
    for source in sources() {
        let Some(inside) = source.path.strip_prefix("daemon/src/") else {
            continue;
        };
        let part = inside.split('/').next().unwrap_or(inside);
        places.insert(format!("daemon/src/{part}"));
    }
    let missing = places.into_iter().filter(|place| !mapped.contains(place));
    none(
        missing
            .map(|place| format!("docs/architecture.md: the map lacks {place}"))
            .collect(),
    );
}

/// A feature's id: a letter and a number.
fn is_feature(id: &str) -> bool {
    let number = id.strip_prefix(|c: char| c.is_ascii_uppercase());
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

#[test]
fn every_built_feature_names_a_test_that_exists() {
    let tests: String = sources().into_iter().map(|source| source.text).collect();
    let table = document("docs/features.md");
    let (mut faults, mut rows) = (Vec::new(), 0);
    for cells in table.lines().filter_map(cells) {
        let (Some(id), Some(state)) = (cells.first(), cells.last()) else {
            continue;
        };
        if !is_feature(id) {
            continue;
        }
        rows += 1;
        let proved = state.split(", lacks ").next().unwrap_or(state);
        let names: Vec<&str> = quoted(proved).collect();
        let says = ["built", "partly", "planned"]
            .iter()
            .any(|word| state.starts_with(word));
        if !says || (state.starts_with("planned") != names.is_empty()) {
            faults.push(format!(
                "{id}: a state is `built: tests`, `partly: tests, lacks …` or `planned`, got {state}"
            ));
        }
        let missing = names.into_iter().filter(|name| !tests.contains(&format!("fn {name}(")));
        faults.extend(missing.map(|name| format!("{id}: there is no test `{name}`")));
    }
    assert!(rows > 90, "docs/features.md has only {rows} rows");
    none(faults);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut faults = Vec::new();
    for name in [
        "README.md",
        "docs/architecture.md",
        "docs/features.md",
        "docs/glossary.md",
        "docs/security.md",
    ] {
        let text = document(name);
        let here = root().join(name);
        for (at, _) in text.match_indices("](") {
            let target = text
                .get(at + 2..)
                .and_then(|rest| rest.split(')').next())
                .unwrap_or_default();
            let file = target.split('#').next().unwrap_or(target);
            let exists = here.parent().is_some_and(|dir| dir.join(file).exists());
            if !file.is_empty() && !file.contains("://") && !exists {
                faults.push(format!("{name}: the link to {target} leads nowhere"));
            }
        }
    }
    none(faults);
}

#[test]
fn every_dependency_says_what_it_is_for() {
    let manifest = document("Cargo.toml");
    let shared = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let lines = shared.lines().skip(1).take_while(|line| !line.starts_with('['));
    let crates = lines.filter(|line| line.contains(" = ") && !line.contains("path ="));
    none(
        crates
            .filter(|line| !line.contains(" # "))
            .map(|line| format!("Cargo.toml: no reason after: {line}"))
            .collect(),
    );
}
