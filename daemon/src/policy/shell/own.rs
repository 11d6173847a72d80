//! Commands that act on agentd itself: answering its questions, changing its rules, stopping it, writing its files.

use std::path::Path;

use super::arg::Arg;
use super::destructive::names_daemon_process;
use super::find;
use super::options::Options;
use super::scope::Scope;
use crate::policy::facts::CommandFact;
use crate::policy::files::is_own_file;

/// Verbs of `agentctl` that answer, raise, configure or stop.
const VERBS: &[&str] = &[
    "approve",
    "deny",
    "mode",
    "trust",
    "config",
    "daemon",
    "login",
    "logout",
    "doctor-repair",
    "import",
];

/// Second words after `config` and `rules` that change something; others only look.
const SETTING_VERBS: &[&str] = &["add", "remove", "set", "edit"];

/// Programs that can speak to a socket.
const SOCKET_CLIENTS: &[&str] = &[
    "nc",
    "ncat",
    "netcat",
    "socat",
    "curl",
    "wget",
    "websocat",
    "openssl",
    "telnet",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "deno",
    "bun",
    "php",
    "nc.openbsd",
    "nc.traditional",
    "busybox",
    "lua",
    "agent-tui",
];

/// Programs that change the files they name.
const WRITERS: &[&str] = &[
    "rm", "rmdir", "unlink", "mv", "tee", "truncate", "shred", "dd", "chmod", "chown", "chgrp", "touch", "sed", "perl",
    "ruby", "ed", "ex", "sponge", "sqlite3", "mkfifo", "unzip", "curl", "wget", "patch", "vim", "vi", "nano",
];

pub(super) fn check(name: &str, args: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    let rest = args.get(1..).unwrap_or_default();
    if matches!(name, "agentctl" | "agent-tui") && raises(rest) {
        return Some(
            "It would answer or configure agentd from inside a session. Only the person may do that.".to_owned(),
        );
    }
    if SOCKET_CLIENTS.contains(&name) && rest.iter().any(|arg| arg.text.contains("agentd.sock")) {
        return Some("It would speak to agentd's own socket from inside a session.".to_owned());
    }
    if kills(name, rest) {
        return Some("It would stop agentd, and this session with it. Name another process.".to_owned());
    }
    let file = written(name, args, scope)
        .into_iter()
        .find(|arg| holds(arg, scope, fact))?;
    Some(file_reason(&file.shown()))
}

/// The words that name what a command changes.
fn written(name: &str, args: &[Arg], scope: &Scope) -> Vec<Arg> {
    let rest = args.get(1..).unwrap_or_default();
    match name {
        "find" if find::deletes(args) => find::start_points(args),
        "sed" | "perl" | "ruby" if !edits_in_place(args) => Vec::new(),
        "cp" | "ln" | "install" | "rsync" => {
            let into = rest
                .iter()
                .skip_while(|arg| !matches!(arg.text.as_str(), "-t" | "--target-directory"))
                .nth(1);
            into.or(rest.last()).cloned().into_iter().collect()
        }
        name if WRITERS.contains(&name) || scope.below => rest.to_vec(),
        _ => Vec::new(),
    }
}

/// `sed -i`, `perl -pi -e …`.
fn edits_in_place(args: &[Arg]) -> bool {
    let sed = args.first().is_some_and(|first| first.text.ends_with("sed"));
    let options = Options::read(args, if sed { "efl" } else { "eEIM" }, &[]);
    options.letter("i") || options.long("in-place")
}

pub(super) fn file_reason(shown: &str) -> String {
    format!("{shown} belongs to agentd itself; change it with agentctl outside the session.")
}

/// Whether a word names a file of the daemon's own directories.
pub(super) fn holds(arg: &Arg, scope: &Scope, fact: &CommandFact) -> bool {
    let text = arg.text.strip_prefix("of=").unwrap_or(&arg.text);
    // A directory known only by the variable that names it: `$XDG_CONFIG_HOME/agentd/…`.
    let by_variable = text
        .strip_prefix(super::arg::UNKNOWN)
        .is_some_and(|rest| rest == "/agentd" || rest.starts_with("/agentd/"));
    let own = |path: &Path| is_own_file(path) || fact.own.iter().any(|own| path.starts_with(own));
    by_variable || scope.cwd.spots(text).iter().any(|spot| own(&spot.path()))
}

fn raises(words: &[Arg]) -> bool {
    let mut options = words
        .iter()
        .map(|word| word.text.as_str())
        .take_while(|word| *word != "--");
    if options.any(|word| matches!(word, "--help" | "-h")) {
        return false;
    }
    let text = |arg: &Arg| arg.text.clone();
    let words: Vec<String> = words.iter().map(text).collect();
    if words
        .iter()
        .any(|word| word.starts_with("--approve") || word.starts_with("--mode"))
    {
        return true;
    }
    let plain: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let word = |at: usize| plain.get(at).copied().unwrap_or_default();
    // After an option the first plain word may be its value.
    let option_first = words.first().is_some_and(|word| word.starts_with('-'));
    changes(word(0), word(1)) || (option_first && changes(word(1), word(2)))
}

fn changes(verb: &str, second: &str) -> bool {
    match verb {
        "config" | "rules" => SETTING_VERBS.contains(&second),
        "daemon" => matches!(second, "stop" | "restart" | "reload" | "install" | "uninstall"),
        "model" => second == "confirm",
        "mode" => !second.is_empty(),
        verb => VERBS.contains(&verb),
    }
}

fn kills(name: &str, rest: &[Arg]) -> bool {
    let names_it = |arg: &Arg| arg.text.to_ascii_lowercase().contains("agentd") || names_daemon_process(arg);
    let verb = |verbs: &[&str]| rest.iter().any(|arg| verbs.contains(&arg.text.as_str()));
    match name {
        "kill" => rest
            .iter()
            .any(|arg| names_daemon_process(arg) || arg.text.contains("agentd")),
        "pkill" | "killall" | "skill" | "killall5" => {
            rest.iter().any(names_it) || rest.iter().any(|arg| matches_daemon(&arg.text)) && !verb(&["-0"])
        }
        "fuser" => verb(&["-k"]) && rest.iter().any(names_it),
        "systemctl" | "service" | "launchctl" | "rc-service" => {
            verb(&[
                "stop",
                "kill",
                "restart",
                "disable",
                "mask",
                "bootout",
                "unload",
                "try-restart",
                "reload",
            ]) && rest.iter().any(names_it)
        }
        _ => false,
    }
}

/// Whether a pattern of `pkill` finds the daemon's name.
fn matches_daemon(pattern: &str) -> bool {
    let core = pattern.trim_start_matches('^').trim_end_matches('$');
    core.len() >= 3
        && !core.starts_with('-')
        && ("agentd".contains(core) || super::pattern::matches(&core.replace(".*", "*"), "agentd"))
}
