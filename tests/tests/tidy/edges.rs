//! Which module may know which: the rules of docs/architecture.md.

use crate::none;
use crate::source::{Source, blank, lines_with, sources};

/// The daemon's modules and those each may import. Those that put everything together may know all.
const EDGES: &[(&str, &[&str])] = &[
    ("api", &["auth", "config", "log", "policy", "session", "target"]),
    (
        "session",
        &[
            "auth", "config", "context", "log", "policy", "provider", "target", "tool",
        ],
    ),
    ("models", &["api", "auth", "config", "context", "provider", "session"]),
    ("startup", &["api", "auth", "config", "context", "log"]),
    ("notify", &["config", "log", "session", "target"]),
    ("context", &["config", "log", "provider", "tool"]),
    ("tool", &["policy", "target"]),
    ("provider", &["auth", "config"]),
    ("auth", &["config", "target"]),
    ("target", &["policy"]),
    ("config", &["policy"]),
    ("log", &[]),
    ("policy", &[]),
];

/// What puts the modules together.
const TOGETHER: &[&str] = &["main", "lib", "startup", "models", "current"];

/// A crate or module that only some places may name.
const RESERVED: &[(&str, &[&str], &str)] = &[
    ("rusqlite", &["daemon/src/log", "tests/"], "only log/ knows SQL"),
    (
        "jsonrpsee",
        &["daemon/src/api", "protocol/", "tests/"],
        "only api/ and the contract know JSON-RPC",
    ),
    (
        "reqwest",
        &[
            "daemon/src/provider",
            "daemon/src/tool/web",
            "daemon/src/tool/fetch_url",
            "daemon/src/tool/catalog",
        ],
        "only providers and the web tools speak HTTP",
    ),
    (
        "eventsource_stream",
        &["daemon/src/provider"],
        "only providers read event streams",
    ),
    (
        "process::Command",
        &[
            "daemon/src/target",
            "daemon/tests",
            "protocol/src/client",
            "client-cli/src/editor",
            "tests/",
        ],
        "only target/ spawns; a client starts the daemon and the person's editor",
    ),
];

/// Code that decides: the same state, context and input give the same answer.
const PURE: &[&str] = &[
    "daemon/src/session/state",
    "daemon/src/session/fold",
    "daemon/src/session/decide",
    "daemon/src/session/wanted",
    "daemon/src/policy/",
    "daemon/src/context/assemble",
];

/// What makes code impure.
const IMPURE: &[&str] = &[
    "tokio",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "Instant",
    "SystemTime",
    "Time::now",
    "Timestamp::now",
    "Zoned::now",
    "now_v7",
    "new_v4",
    "rand",
    "getrandom",
];

/// Directories whose files are siblings that never import each other, and the names in them that all may use.
const SIBLINGS: &[(&str, &[&str])] = &[
    (
        "provider",
        &["anthropic_messages", "openai_chat", "openai_responses", "demo"],
    ),
    (
        "tool",
        &[
            "read_file",
            "list_dir",
            "write_file",
            "edit_file",
            "bash",
            "glob",
            "grep",
            "fetch_url",
            "web_search",
            "time",
            "job_output",
            "job_kill",
            "todo_write",
        ],
    ),
];

/// The daemon's module that a file belongs to.
fn module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("daemon/src/")?;
    Some(inside.split(['/', '.']).next().unwrap_or(inside))
}

/// Names that follow `prefix`, one by one or in braces: `crate::a::b` and `crate::{a::b, c}` give a and c.
fn imported<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let after = code.get(at + prefix.len()..).unwrap_or_default();
        match after.strip_prefix('{') {
            None => names.push(first_name(after)),
            Some(group) => names.extend(group_names(group)),
        }
    }
    names
}

fn first_name(code: &str) -> &str {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
        .unwrap_or(code)
}

fn group_names(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        let ends = match c {
            '{' => {
                depth += 1;
                false
            }
            '}' if depth == 0 => true,
            '}' => {
                depth -= 1;
                false
            }
            ',' => depth == 0,
            _ => false,
        };
        if ends {
            names.push(first_name(group.get(start..at).unwrap_or_default().trim_start()));
            start = at + 1;
        }
        if ends && c == '}' {
            break;
        }
    }
    names
}

fn faults_of_edges(source: &Source) -> Vec<String> {
    let Some(own) = module(&source.path) else {
        return Vec::new();
    };
    let Some((_, allowed)) = EDGES.iter().find(|(module, _)| *module == own) else {
        return Vec::new();
    };
    let known = |name: &&str| EDGES.iter().any(|(module, _)| module == name);
    let names = imported(&source.code, "crate::").into_iter().filter(known);
    let foreign = names.filter(|name| *name != own && !allowed.contains(name));
    foreign
        .map(|name| format!("{}: {own}/ imports {name}/, it may import {allowed:?}", source.path))
        .collect()
}

#[test]
fn each_module_imports_only_what_lies_below_it() {
    none(sources().iter().flat_map(faults_of_edges).collect());
}

#[test]
fn every_module_of_the_daemon_has_a_row_of_edges() {
    let known = |name: &str| TOGETHER.contains(&name) || EDGES.iter().any(|(module, _)| *module == name);
    let sources = sources();
    let modules = sources.iter().filter_map(|source| module(&source.path));
    none(
        modules
            .filter(|name| !known(name))
            .map(|name| format!("daemon/src/{name}: no row in EDGES"))
            .collect(),
    );
}

#[test]
fn reserved_crates_stay_in_their_places() {
    let mut faults = Vec::new();
    for source in sources() {
        for (word, places, why) in RESERVED {
            if !places.iter().any(|place| source.path.starts_with(place)) {
                faults.extend(source.lines_with(word).map(|line| format!("{line}: {why}")));
            }
        }
    }
    none(faults);
}

#[test]
fn deciding_code_is_pure() {
    let mut faults = Vec::new();
    for source in sources()
        .iter()
        .filter(|source| PURE.iter().any(|place| source.path.starts_with(place)))
    {
        for word in IMPURE {
            faults.extend(
                source
                    .lines_with(word)
                    .map(|line| format!("{line}: code that decides must be pure")),
            );
        }
    }
    none(faults);
}

#[test]
fn adapters_and_tools_do_not_know_each_other() {
    let mut faults = Vec::new();
    for source in sources() {
        for (parent, siblings) in SIBLINGS {
            let Some(inside) = source.path.strip_prefix(&format!("daemon/src/{parent}/")) else {
                continue;
            };
            let own = first_name(inside);
            if !siblings.contains(&own) {
                continue;
            }
            let mut names = imported(&source.code, &format!("crate::{parent}::"));
            names.extend(imported(&source.code, "super::"));
            let others = names.into_iter().filter(|name| *name != own && siblings.contains(name));
            faults.extend(others.map(|name| format!("{}: {own} imports its sibling {name}", source.path)));
        }
    }
    none(faults);
}

#[test]
fn clients_know_the_contract_and_not_the_daemon() {
    let mut faults = Vec::new();
    for crate_dir in ["protocol", "client-cli", "client-tui"] {
        let manifest =
            std::fs::read_to_string(tests::bins::root().join(crate_dir).join("Cargo.toml")).unwrap_or_default();
        assert!(manifest.contains("[dependencies]"), "{crate_dir} has no manifest");
        if manifest.lines().any(|line| line.starts_with("daemon")) {
            faults.push(format!("{crate_dir}/Cargo.toml: clients depend on protocol only"));
        }
    }
    none(faults);
}

#[test]
fn no_channel_is_unbounded() {
    let words = [
        "unbounded_channel",
        "unbounded",
        "std::sync::mpsc::channel",
        "UnboundedSender",
        "LinkedBlockingQueue",
    ];
    let mut faults = Vec::new();
    for source in sources() {
        for word in words {
            faults.extend(
                source
                    .lines_with(word)
                    .map(|line| format!("{line}: every channel has a named bound")),
            );
        }
    }
    none(faults);
}

#[test]
fn the_rules_find_what_they_forbid() {
    let code = blank("use crate::{log::Row, session::{Actor, State}, tool}; use crate::policy::judge; // crate::api");
    assert_eq!(imported(&code, "crate::"), ["log", "session", "tool", "policy"]);
    assert_eq!(lines_with("f", "let x = Instant::now();", "Instant").count(), 1);
    assert_eq!(lines_with("f", "let x = Instantly;", "Instant").count(), 0);
}
