//! What files are called, how they begin, how long they are, and what tests may not do.

use crate::none;
use crate::source::{lines_with, sources};

/// Names that say nothing about what is inside.
const SAYS_NOTHING: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "misc", "manager", "service", "services",
];

/// Lines a file may have, its tests apart. What grows past this nearly always hides two ideas.
const LONGEST: usize = 500;

#[test]
fn file_names_say_what_is_inside() {
    let sources = sources();
    let faults = sources.iter().filter(|source| {
        source
            .path
            .trim_end_matches(".rs")
            .split('/')
            .any(|part| SAYS_NOTHING.contains(&part))
    });
    none(
        faults
            .map(|source| format!("{}: the name says nothing", source.path))
            .collect(),
    );
}

#[test]
fn each_file_begins_by_saying_what_it_is() {
    let sources = sources();
    let faults = sources.iter().filter(|source| !source.text.starts_with("//! "));
    none(
        faults
            .map(|source| format!("{}: the first line must be `//! …`", source.path))
            .collect(),
    );
}

#[test]
fn no_file_is_long() {
    let mut faults = Vec::new();
    for source in sources() {
        // Tests are listed one after the other and may be many.
        let tests = source.test_code.lines().count();
        let counted = source.text.lines().count().saturating_sub(tests);
        if counted > LONGEST {
            faults.push(format!(
                "{}: {counted} lines without tests, over {LONGEST}",
                source.path
            ));
        }
    }
    none(faults);
}

#[test]
fn tests_wait_for_facts_and_never_sleep() {
    let mut faults = Vec::new();
    for source in sources() {
        let code = if source.path.starts_with("tests/") {
            format!("{}{}", source.code, source.test_code)
        } else {
            source.test_code
        };
        for word in ["sleep", "sleep_until"] {
            let calls = lines_with(&source.path, &code, word);
            faults.extend(calls.map(|line| format!("{line}: wait for a fact instead")));
        }
    }
    none(faults);
}

#[test]
fn no_test_is_switched_off() {
    let sources = sources();
    let faults = sources.iter().flat_map(|source| {
        let code = format!("{}{}", source.code, source.test_code);
        lines_with(&source.path, &code, "#[ignore").collect::<Vec<_>>()
    });
    none(faults.collect());
}

#[test]
fn nothing_is_left_for_later_in_a_comment() {
    let marks = ["TODO", "FIXME", "XXX", "HACK"];
    let mut faults = Vec::new();
    for source in sources()
        .iter()
        .filter(|source| !source.path.starts_with("tests/tests/tidy/"))
    {
        for mark in marks {
            let lines = lines_with(&source.path, &source.text, mark);
            faults.extend(lines.map(|line| format!("{line}: what is not done stands in docs/features.md")));
        }
    }
    none(faults);
}
