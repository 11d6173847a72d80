//! What a command line is about, told from its words alone: which files it may read, write or move, where it works, whether
//! it needs a network. Serves to explain a failure; nothing is allowed or refused because of it.

use std::path::PathBuf;

use super::arg::{Arg, UNKNOWN};
use super::git::subcommand_at;
use super::part::{Part, Standing, base_name};
use super::place::Spot;
use super::readonly;
use super::scope::Scope;
use super::walk::Walker;
use crate::policy::facts::CommandFact;

/// Paths kept of each kind: what is explained names a few.
const PATHS_LIMIT: usize = 64;

/// What changes the shell itself, and no file.
const SHELL_STATE: &[&str] = &[
    "cd",
    "pushd",
    "popd",
    "exec",
    "set",
    "shift",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "alias",
    "unalias",
    "wait",
    "trap",
    "ulimit",
    "umask",
    "return",
    "let",
    "shopt",
];

/// What takes names away from where they are.
const MOVERS: &[&str] = &["mv", "rm", "rmdir", "unlink", "rename"];

/// What writes only the last file it names.
const COPIERS: &[&str] = &["cp", "ln", "install", "rsync", "scp"];

/// What takes plain words for names of files to be made or removed. To other commands they may be anything.
const FILE_COMMANDS: &[&str] = &[
    "touch", "mkdir", "tee", "truncate", "mv", "rm", "rmdir", "unlink", "cp", "ln", "install",
];

/// What reads a script named first.
const INTERPRETERS: &[&str] = &[
    "bash", "sh", "dash", "zsh", "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "source", ".",
    "lua",
];

/// What is of no use without a network.
const NETWORKERS: &[&str] = &[
    "curl",
    "wget",
    "ping",
    "ssh",
    "scp",
    "sftp",
    "ftp",
    "telnet",
    "nc",
    "ncat",
    "dig",
    "host",
    "nslookup",
    "whois",
    "traceroute",
];

/// Commands of git that speak with another repository, which is nearly always elsewhere.
const GIT_NETWORKERS: &[&str] = &["clone", "fetch", "pull", "push", "ls-remote"];

/// What a command line is about. Paths are absolute, normalised as text, links not followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// What its words name, whatever is done with it.
    pub named: Vec<PathBuf>,
    /// What may be written: targets of redirections, paths given to commands that do not only read.
    pub written: Vec<PathBuf>,
    /// What is moved or removed; it is in `written` too.
    pub moved: Vec<PathBuf>,
    /// Directories in which commands run that do not only read.
    pub worked_in: Vec<PathBuf>,
    /// A command is of no use without a network.
    pub network: bool,
    /// Ports of this machine that the text names.
    pub ports: Vec<u16>,
}

/// Tells what a command line is about.
#[must_use]
pub fn reach(command: &CommandFact) -> Reach {
    // Judged as if everything were inside: what a command does does not depend on where it does it.
    let anywhere = CommandFact {
        roots: vec!["/".into()],
        sandbox: true,
        operands: Vec::new(),
        ..command.clone()
    };
    let mut walker = Walker::new(&anywhere);
    walker.run_line();
    let mut reach = Reach {
        ports: ports(&command.text),
        ..Reach::default()
    };
    reach.network = walker
        .writes
        .iter()
        .chain(&walker.reads)
        .any(|path| is_connection(path));
    for (at, part) in walker.parts.iter().enumerate() {
        // What another part runs is told by that one.
        let runs_others = walker.parts.iter().any(|other| other.parent == Some(at));
        reach.take(part, runs_others, &anywhere);
    }
    add(&mut reach.named, walker.reads);
    add(&mut reach.named, walker.writes.clone());
    add(&mut reach.written, walker.writes);
    reach
}

impl Reach {
    fn take(&mut self, part: &Part, runs_others: bool, anywhere: &CommandFact) {
        let Some((first, rest)) = part.args.split_first() else {
            return;
        };
        let name = base_name(&first.text);
        let paths = |words: &[&str]| -> Vec<PathBuf> {
            let spots = words.iter().flat_map(|word| part.cwd.spots(word));
            spots.map(|spot: Spot| spot.path()).collect()
        };
        let words: Vec<&str> = rest.iter().filter_map(file_in).collect();
        add(&mut self.named, paths(&words));
        let git = subcommand_at(&part.args, |arg| arg.text.as_str()).and_then(|at| part.args.get(at));
        self.network |= NETWORKERS.contains(&name)
            || (name == "git" && git.is_some_and(|command| GIT_NETWORKERS.contains(&command.text.as_str())));
        if runs_others || only_reads(part, name, anywhere) {
            return;
        }
        if part.cwd.sure {
            add(&mut self.worked_in, part.cwd.dirs.clone());
        }
        let written = match words.split_first() {
            Some((_, rest)) if INTERPRETERS.contains(&name) => rest,
            _ if COPIERS.contains(&name) => words.get(words.len().saturating_sub(1)..).unwrap_or_default(),
            _ => words.as_slice(),
        };
        let is_path = |word: &&str| word.contains('/') || FILE_COMMANDS.contains(&name);
        let written: Vec<&str> = written.iter().copied().filter(is_path).collect();
        let written = paths(&written);
        if MOVERS.contains(&name) {
            add(&mut self.moved, written.clone());
        }
        add(&mut self.written, written);
    }
}

fn only_reads(part: &Part, name: &str, anywhere: &CommandFact) -> bool {
    let scope = || Scope::new(part.cwd.clone());
    part.standing == Standing::Harmless
        || SHELL_STATE.contains(&name)
        || readonly::only_reads(&part.args, &scope(), anywhere)
}

/// The file a word may name: itself, or the value behind `=`. No option is one, and no address.
fn file_in(arg: &Arg) -> Option<&str> {
    let text = arg.text.as_str();
    let file = match text.split_once('=') {
        Some((name, value)) if text.starts_with('-') || !name.contains('/') => value,
        _ if text.starts_with('-') => return None,
        _ => text,
    };
    let is_remote = file.split('/').next().is_some_and(|begin| begin.contains(':'));
    (!file.is_empty() && !is_remote && !file.contains([UNKNOWN, '\n'])).then_some(file)
}

/// A path that bash takes for a connection.
fn is_connection(path: &std::path::Path) -> bool {
    path.starts_with("/dev/tcp") || path.starts_with("/dev/udp")
}

fn add(to: &mut Vec<PathBuf>, paths: Vec<PathBuf>) {
    for path in paths {
        let is_known = to.len() >= PATHS_LIMIT || to.contains(&path);
        if !is_known && !is_connection(&path) && !path.to_string_lossy().contains(UNKNOWN) {
            to.push(path);
        }
    }
}

/// Ports behind a name of this machine: `localhost:8080`, `/dev/tcp/127.0.0.1/80`.
fn ports(text: &str) -> Vec<u16> {
    let mut found = Vec::new();
    for name in ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"] {
        for (_, after) in text
            .match_indices(name)
            .filter_map(|(at, _)| text.split_at_checked(at + name.len()))
        {
            let Some(digits) = after.strip_prefix([':', '/', ' ']) else {
                continue;
            };
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if let Some(port) = digits.get(..end).and_then(|digits| digits.parse().ok())
                && found.len() < PATHS_LIMIT
            {
                found.push(port);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Reach {
        reach(&CommandFact {
            text: text.to_owned(),
            cwd: "/p".into(),
            roots: vec!["/p".into()],
            home: Some("/home/u".into()),
            ..CommandFact::default()
        })
    }

    fn written(text: &str) -> Vec<String> {
        of(text).written.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn what_only_reads_writes_nothing_wherever_it_looks() {
        for text in [
            "grep zzz /etc/passwd",
            "cat ~/.ssh/id_rsa /srv/.env",
            "diff a /etc/b",
            "test -f /etc/x",
            "[ -d /etc ]",
            "cd /srv && ls -l /srv/x | head",
            "false # https://example.com/a",
            "git log --oneline /srv/x",
            "timeout 5 grep zzz /etc/passwd",
        ] {
            let found = of(text);
            assert!(
                found.written.is_empty() && found.worked_in.is_empty(),
                "{text}: {found:?}"
            );
            assert!(!found.network, "{text}");
        }
    }

    #[test]
    fn redirections_and_operands_of_other_commands_may_be_written() {
        for (text, expected) in [
            ("echo x > ~/x", vec!["/home/u/x"]),
            ("touch z", vec!["/p/z"]),
            ("cd /etc/ssl && mkdir -p a/b", vec!["/etc/ssl/a/b"]),
            ("cp /etc/passwd /srv/here", vec!["/srv/here"]),
            ("dd if=a of=/srv/x", vec!["/srv/x"]),
            ("make install --prefix=/opt/x", vec!["/opt/x"]),
            ("python3 /opt/tool.py /srv/out", vec!["/srv/out"]),
            ("sudo tee /etc/x", vec!["/etc/x"]),
            ("bash -c 'rm /etc/x'", vec!["/etc/x"]),
            ("sort -o /etc/x a", vec!["/etc/x"]),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
        assert_eq!(of("mv .git .git2").moved, [PathBuf::from("/p/.git"), "/p/.git2".into()]);
        assert_eq!(of("cargo build").worked_in, [PathBuf::from("/p")]);
        assert_eq!(of("cat ~/.ssh/id_rsa").named, [PathBuf::from("/home/u/.ssh/id_rsa")]);
        assert!(of("git -C sub push").network && !of("git -C push status").network);
        assert_eq!(of("wc -l < ~/.netrc").named, [PathBuf::from("/home/u/.netrc")]);
    }

    #[test]
    fn addresses_are_no_paths() {
        for text in [
            "curl -sS https://example.com/a http://127.0.0.1/b",
            "git clone git@example.com:a/b",
            "curl -o- --url=https://example.com/a",
            "exec 3<>/dev/tcp/127.0.0.1/80",
        ] {
            let found = of(text);
            let paths = found.named.iter().chain(&found.written);
            assert!(
                paths
                    .clone()
                    .all(|path| !path.display().to_string().contains("example")),
                "{found:?}"
            );
            assert!(
                !found
                    .named
                    .iter()
                    .any(|path| path.starts_with("/dev") || path.starts_with("/127.0.0.1")),
                "{found:?}"
            );
            assert!(found.network, "{text}");
        }
    }

    #[test]
    fn ports_of_this_machine_are_found_behind_its_names() {
        assert_eq!(of("curl localhost:8080/a http://127.0.0.1:80").ports, [8080, 80]);
        assert_eq!(of("exec 3<>/dev/tcp/127.0.0.1/5432").ports, [5432]);
        assert_eq!(of("curl http://localhost/ example.com:80").ports, [0_u16; 0]);
    }
}
