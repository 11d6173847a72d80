//! `find`: its start points, the commands it runs, and which of its expressions only look.

use super::arg::{Arg, Certainty};
use super::part::Standing;
use super::place;
use super::scope::Scope;
use super::wrappers::{Inner, Unwrapped};
use crate::policy::facts::CommandFact;

/// Tests and actions without a word after them that only look.
const ALONE: &[&str] = &[
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-empty",
    "-readable",
    "-writable",
    "-executable",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-daystart",
    "-true",
    "-false",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "!",
    "(",
    ")",
    ",",
    "-nouser",
    "-nogroup",
    "-warn",
    "-nowarn",
    "-noleaf",
    "-ignore_readdir_race",
    "-P",
    "-H",
];

/// Tests with one word after them that only look.
const WITH_WORD: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-lname",
    "-ilname",
    "-printf",
    "-used",
    "-fstype",
    "-O",
];

/// Tests whose word is a file.
const WITH_FILE: &[&str] = &["-newer", "-anewer", "-cnewer", "-samefile"];

const RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Where it begins to look; the directory it runs in if none is named.
pub(super) fn start_points(args: &[Arg]) -> Vec<Arg> {
    let mut points = Vec::new();
    let mut rest = args.iter().skip(1);
    while let Some(arg) = rest.next() {
        match arg.text.as_str() {
            "-H" | "-L" | "-P" => {}
            "-D" => drop(rest.next()),
            text if text.starts_with("-O") => {}
            text if text.starts_with('-') || matches!(text, "(" | "!" | ")" | ",") => break,
            _ => points.push(arg.clone()),
        }
    }
    if points.is_empty() {
        vec![Arg::sure(".")]
    } else {
        points
    }
}

/// Whether it prints anything but the names of what it finds.
pub(super) fn prints_more(args: &[Arg]) -> bool {
    args.iter().any(|arg| matches!(arg.text.as_str(), "-printf" | "-ls"))
}

/// Whether it deletes what it finds by itself.
pub(super) fn deletes(args: &[Arg]) -> bool {
    args.iter().any(|arg| arg.text == "-delete")
}

/// The commands it runs on what it finds; none if it runs none.
pub(super) fn unwrap(args: &[Arg]) -> Option<Unwrapped> {
    let mut inner = Vec::new();
    let mut at = 0;
    while let Some(offset) = args.get(at..)?.iter().position(|arg| RUNS.contains(&arg.text.as_str())) {
        let start = at + offset + 1;
        let command = args.get(start..).unwrap_or_default();
        let end = command
            .iter()
            .position(|arg| matches!(arg.text.as_str(), ";" | "+"))
            .unwrap_or(command.len());
        inner.push(Inner::Below(with_found(
            command.get(..end).unwrap_or_default(),
            &start_points(args),
        )));
        at = start + end;
    }
    let standing = Standing::Asks("`find` runs a command on what it finds.".to_owned());
    (!inner.is_empty()).then_some(Unwrapped { inner, standing })
}

/// As `unwrap`, for `fd [PATTERN [PATH…]] -x COMMAND…`, which puts what it found at the end if no `{}` stands there.
pub(super) fn unwrap_fd(args: &[Arg]) -> Option<Unwrapped> {
    let runs = |arg: &Arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let at = args.iter().position(runs)?;
    let (before, command) = (args.get(..at)?, args.get(at + 1..)?);
    let end = command.iter().position(|arg| arg.text == ";").unwrap_or(command.len());
    let mut command = command.get(..end)?.to_vec();
    if !command.iter().any(|word| word.text.contains("{}")) {
        command.push(Arg::sure("{}"));
    }
    let plain = before.iter().skip(1).filter(|arg| !arg.text.starts_with('-'));
    let mut starts: Vec<Arg> = plain.skip(1).cloned().collect();
    if starts.is_empty() {
        starts.push(Arg::sure("."));
    }
    Some(Unwrapped {
        inner: vec![Inner::Below(with_found(&command, &starts))],
        standing: Standing::Asks("`fd` runs a command on what it finds.".to_owned()),
    })
}

/// The command with the start points in place of what is found below them.
fn with_found(command: &[Arg], starts: &[Arg]) -> Vec<Arg> {
    let mut words = Vec::new();
    for word in command {
        if word.text.contains("{}") {
            words.extend(starts.iter().map(|start| Arg {
                text: word.text.replace("{}", &start.text),
                certainty: Certainty::Unknown,
                glob: word.glob || start.glob,
                ..word.clone()
            }));
        } else {
            words.push(word.clone());
        }
    }
    words
}

/// Why this `find` should be asked about.
pub(super) fn concern(args: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    let starts = start_points(args);
    if let Some(reason) = starts.iter().find_map(|start| place::concern(start, &scope.cwd, fact)) {
        return Some(reason);
    }
    if let Some(start) = starts.iter().find(|start| start.may_be_option()) {
        return Some(format!("{} may match a file whose name is an option.", start.shown()));
    }
    let mut rest = args.iter().skip(1).skip_while(|arg| starts.contains(arg));
    while let Some(arg) = rest.next() {
        let text = arg.text.as_str();
        if !arg.is_sure() {
            return Some(format!("The value of {} is not known before it runs.", arg.shown()));
        }
        if ALONE.contains(&text) || starts.contains(arg) {
            continue;
        }
        let value = rest.next();
        if WITH_FILE.contains(&text) {
            if let Some(reason) = value.and_then(|file| place::concern(file, &scope.cwd, fact)) {
                return Some(reason);
            }
        } else if !WITH_WORD.contains(&text) || value.is_some_and(|value| !value.is_sure()) {
            return Some(format!("`find` with {} can do more than look.", arg.shown()));
        }
    }
    None
}
