//! Commands that act on agentd itself: answering its questions, changing its rules, stopping it, writing its files.

use std::path::Path;

use super::arg::Arg;
use super::destructive::names_daemon_process;
use super::find;
use super::scope::Scope;
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

/// Verbs with a second word that changes something; other second words only look.
const RULE_VERBS: &[&str] = &["add", "remove", "set", "edit"];

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
    "rm", "rmdir", "unlink", "mv", "cp", "tee", "ln", "install", "truncate", "shred", "dd", "chmod", "chown", "chgrp",
    "touch", "rsync", "sed", "perl", "ed", "ex", "sponge", "sqlite3", "mkfifo", "tar", "unzip", "curl", "wget",
    "patch", "vim", "vi", "nano", "find",
];

pub(super) fn check(name: &str, args: &[Arg], scope: &Scope) -> Option<String> {
    let rest = args.get(1..).unwrap_or_default();
    if matches!(name, "agentctl" | "agent-tui") && raises(rest) {
        return Some(
            "It would answer or configure agentd from inside a session. Only the person may do that.".to_owned(),
        );
    }
    if SOCKET_CLIENTS.contains(&name)
        && rest
            .iter()
            .any(|arg| arg.text.contains("agentd.sock") || arg.text.contains("/agentd/"))
    {
        return Some("It would speak to agentd's own socket from inside a session.".to_owned());
    }
    if kills(name, rest) {
        return Some("It would stop agentd, and this session with it. Name another process.".to_owned());
    }
    if WRITERS.contains(&name) {
        let starts = if name == "find" {
            find::start_points(args)
        } else {
            Vec::new()
        };
        let changes = name != "find" || find::deletes(args) || scope.below;
        let named = if name == "find" { starts.iter() } else { rest.iter() };
        if let Some(file) = named.filter(|_| changes).find(|arg| holds(arg, scope)) {
            return Some(file_reason(&file.shown()));
        }
    }
    None
}

pub(super) fn file_reason(shown: &str) -> String {
    format!("{shown} belongs to agentd itself; change it with agentctl outside the session.")
}

/// Whether a word names a file of the daemon's own directories.
pub(super) fn holds(arg: &Arg, scope: &Scope) -> bool {
    let text = arg.text.strip_prefix("of=").unwrap_or(&arg.text);
    // A directory known only by the variable that names it: `$XDG_CONFIG_HOME/agentd/…`.
    let by_variable = text
        .strip_prefix(super::arg::UNKNOWN)
        .is_some_and(|rest| rest == "/agentd" || rest.starts_with("/agentd/"));
    by_variable
        || scope
            .cwd
            .spots(text)
            .iter()
            .any(|spot| is_own_file(&spot.path()) || is_own_file(Path::new(text)))
}

fn raises(words: &[Arg]) -> bool {
    let text = |arg: &Arg| arg.text.clone();
    let words: Vec<String> = words.iter().map(text).collect();
    let mut plain = words.iter().filter(|word| !word.starts_with('-'));
    let verb = plain.next().map_or("", String::as_str);
    let second = plain.next().map_or("", String::as_str);
    let raised = words
        .iter()
        .any(|word| word.starts_with("--approve") || word.starts_with("--mode"));
    match verb {
        "config" => RULE_VERBS.contains(&second),
        "rules" => RULE_VERBS.contains(&second),
        "daemon" => matches!(second, "stop" | "restart" | "reload" | "install" | "uninstall"),
        "mode" => !second.is_empty(),
        verb => VERBS.contains(&verb) || raised,
    }
}

fn kills(name: &str, rest: &[Arg]) -> bool {
    let names_it = |arg: &Arg| arg.text.contains("agentd") || names_daemon_process(arg);
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
