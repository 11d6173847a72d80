//! Session allowances: what "allow for this session" covers, offered with the prompt and shown word for word.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::facts::{CommandFact, Facts, PathFact};
use super::order::covered_with_parents;
use super::rule::{CommandWords, Rule, RuleDecision};
use super::shell::{self, Part};

/// What a person has allowed until the session ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Grant {
    /// Commands that begin with these words, inside the roots.
    Command { tool: String, words: Vec<String> },
    /// This very command line.
    Exactly {
        tool: String,
        text: String,
        /// The directory outside of the roots it was asked for and alone counts in; none: inside the roots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
    },
    /// A file tool, anywhere inside the roots but on secret or protected files.
    Files { tool: String },
    /// A network tool on one host.
    Host { tool: String, host: String },
}

/// Commands whose first word says nothing without the second.
const DISPATCHERS: &[&str] = &[
    "git",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "go",
    "rustup",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "pdm",
    "bundle",
    "gem",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "systemctl",
    "brew",
    "apt",
    "apt-get",
    "dnf",
    "gh",
    "glab",
    "make",
    "just",
    "task",
    "gradle",
    "mvn",
    "bazel",
    "dotnet",
    "mix",
    "rails",
    "swift",
    "flutter",
    "composer",
    "tox",
    "nox",
    "hatch",
    "meson",
    "conda",
    "aws",
    "gcloud",
    "az",
    "nix",
    "zig",
    "cmake",
];

/// Second words that only say that a third one follows.
const RUNNERS: &[&str] = &["run", "exec", "x", "dlx", "tool", "compose"];

/// Interpreters, wrappers and commands that destroy or send: their words are only ever allowed exactly as shown.
const EXACT_ONLY: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "env",
    "sudo",
    "doas",
    "su",
    "xargs",
    "parallel",
    "find",
    "ssh",
    "python",
    "python3",
    "node",
    "perl",
    "ruby",
    "php",
    "lua",
    "awk",
    "gawk",
    "sed",
    "npx",
    "bunx",
    "pnpx",
    "uvx",
    "eval",
    "exec",
    "source",
    ".",
    "nohup",
    "setsid",
    "nice",
    "timeout",
    "time",
    "watch",
    "flock",
    "script",
    "strace",
    "busybox",
    "command",
    "builtin",
    "trap",
    "rm",
    "rmdir",
    "mv",
    "cp",
    "dd",
    "ln",
    "chmod",
    "chown",
    "chgrp",
    "kill",
    "pkill",
    "killall",
    "tee",
    "truncate",
    "shred",
    "install",
    "rsync",
    "scp",
    "sftp",
    "curl",
    "wget",
    "nc",
    "ncat",
    "socat",
    "tmux",
    "screen",
    "at",
    "crontab",
    "osascript",
    "java",
    // Each runs shells or programs of its own at a word of its input.
    "gdb",
    "lldb",
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "duckdb",
    "sqlplus",
    "sqlcmd",
    "mongo",
    "mongosh",
    "redis-cli",
    "ftp",
    "lftp",
    "tftp",
    "telnet",
    "rlogin",
    "rsh",
    "mosh",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "view",
    "emacs",
    "nano",
    "pico",
    "less",
    "more",
    "man",
    "info",
    "mutt",
    "mail",
    "mailx",
    "expect",
    "tclsh",
    "wish",
    "irb",
    "ipython",
    "jupyter",
    "ghci",
    "R",
    "Rscript",
    "julia",
    "octave",
    "gnuplot",
    "bc",
    "m4",
    "guile",
    "scheme",
    "racket",
    "sbcl",
    "clisp",
    "erl",
    "iex",
    "elixir",
    "scala",
    "groovy",
    "jshell",
    "kotlin",
    "swipl",
    "luajit",
    "tcsh",
    "csh",
    "ash",
    "mksh",
    "pwsh",
    "nu",
    "elvish",
    "xonsh",
    "unshare",
    "nsenter",
    "chroot",
    "ionice",
    "taskset",
    "stdbuf",
    "chrt",
    "setarch",
    "prlimit",
    "systemd-run",
    "runuser",
    "pkexec",
    "sg",
    "newgrp",
    "entr",
    "ltrace",
    "perf",
    "valgrind",
    "rlwrap",
    "unbuffer",
    "ssh-agent",
    "dbus-run-session",
    "xvfb-run",
    "firejail",
    "bwrap",
    "fakeroot",
    "faketime",
    "cscript",
    "wine",
    "qemu",
    "tar",
    "zip",
    "nmap",
    "tcpdump",
];

/// What "allow for this session" would cover for this call; none where it cannot be offered.
#[must_use]
pub fn grant_for(facts: &Facts) -> Option<Grant> {
    offer(facts).ok()
}

/// What "allow for this session" would cover for this call.
///
/// # Errors
/// Why nothing can be offered, in a few words for people.
pub fn offer(facts: &Facts) -> Result<Grant, &'static str> {
    let tool = facts.tool.clone();
    if facts.command.as_ref().is_some_and(|command| command.outside_sandbox) {
        return Err("leaving the sandbox is allowed once at a time");
    }
    if let Some(command) = &facts.command {
        return command_grant(tool, command, &shell::analyse(command));
    }
    if let Some(host) = &facts.host {
        return Ok(Grant::Host {
            tool,
            host: host.clone(),
        });
    }
    if plain_files(facts) {
        Ok(Grant::Files { tool })
    } else {
        Err("files outside the project, with secrets or that can make commands run are allowed once at a time")
    }
}

/// Nothing is offered for a compound command: one word of it would stand for all.
fn command_grant(tool: String, command: &CommandFact, analysis: &shell::Analysis) -> Result<Grant, &'static str> {
    // What a person reads in a rule must be what it allows.
    if !analysis.blocks.is_empty() || analysis.unseen.is_some() || analysis.disguise.is_some() {
        return Err("not all it does is known beforehand");
    }
    let mut typed = analysis.parts.iter().filter(|part| part.parent.is_none());
    let (Some(part), None) = (typed.next(), typed.next()) else {
        return Err("several commands");
    };
    let exactly = Grant::Exactly {
        tool: tool.clone(),
        text: command.text.clone(),
        cwd: (!command.starts_inside()).then(|| command.cwd.clone()),
    };
    let wraps = analysis.parts.len() > 1;
    if !command.starts_inside() || wraps || !analysis.asks.is_empty() || !part.extras.is_empty() {
        return Ok(exactly);
    }
    Ok(prefix(&part.sure_words()).map_or(exactly, |words| Grant::Command { tool, words }))
}

/// The words worth allowing: the first, or as many as it takes to say what a dispatcher does.
pub(super) fn prefix(words: &[String]) -> Option<Vec<String>> {
    let first = words.first()?;
    let is_exact = |word: &str| {
        EXACT_ONLY
            .iter()
            .any(|known| word == *known || is_version_of(word, known))
    };
    if first.contains('/') || is_exact(first) {
        return None;
    }
    if !DISPATCHERS.contains(&first.as_str()) {
        return Some(vec![first.clone()]);
    }
    let second = words.get(1).filter(|word| is_subcommand(word))?;
    let mut prefix = vec![first.clone(), second.clone()];
    if RUNNERS.contains(&second.as_str()) && first != "cargo" {
        // `docker exec` and its like run any command there is.
        let runs_scripts = matches!(first.as_str(), "npm" | "pnpm" | "yarn" | "bun") && second == "run";
        prefix.push(words.get(2).filter(|word| runs_scripts && is_subcommand(word))?.clone());
    }
    Some(prefix)
}

/// `python3.12` is a `python3`.
fn is_version_of(word: &str, known: &str) -> bool {
    word.strip_prefix(known)
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

fn plain_files(facts: &Facts) -> bool {
    !facts.paths.is_empty() && facts.paths.iter().all(PathFact::is_plain)
}

impl Grant {
    /// Whether the call is allowed by this, together with what may run unasked anyway.
    #[must_use]
    pub fn covers(&self, facts: &Facts) -> bool {
        match self {
            Self::Command { tool, .. } => facts.command.as_ref().is_some_and(|command| {
                let analysis = shell::analyse(command);
                let covered =
                    |part: &Part| covered_with_parents(&analysis, part, |part| self.covers_part(&facts.tool, part));
                *tool == facts.tool
                    && self.counts_for(command)
                    && analysis.blocks.is_empty()
                    && analysis.asks.is_empty()
                    && analysis.unseen.is_none()
                    && analysis.parts.iter().any(covered)
                    && analysis.parts.iter().all(|part| part.is_harmless() || covered(part))
            }),
            Self::Exactly { .. } => self.quotes(facts),
            Self::Files { tool } => {
                *tool == facts.tool && facts.command.is_none() && facts.host.is_none() && plain_files(facts)
            }
            Self::Host { tool, host } => *tool == facts.tool && facts.host.as_ref() == Some(host),
        }
    }

    pub(super) fn covers_part(&self, called: &str, part: &Part) -> bool {
        match self {
            Self::Command { tool, words } => tool == called && part.sure_words().starts_with(words),
            _ => false,
        }
    }

    /// Whether it is for this very command line.
    pub(super) fn quotes(&self, facts: &Facts) -> bool {
        match self {
            Self::Exactly { tool, text, .. } => {
                let same = |command: &CommandFact| command.text == *text && self.counts_for(command);
                *tool == facts.tool && facts.command.as_ref().is_some_and(same)
            }
            _ => false,
        }
    }

    /// Whether it is for these words, wherever they run.
    pub(super) fn names(&self, called: &str, line: &str, part: &Part) -> bool {
        match self {
            Self::Exactly { tool, text, .. } => tool == called && text == line,
            _ => self.covers_part(called, part),
        }
    }

    /// Whether a command starts where this was given for: what was seen in one place says nothing about another.
    pub(super) fn counts_for(&self, command: &CommandFact) -> bool {
        match self {
            Self::Exactly { cwd: Some(cwd), .. } => command.cwd == *cwd,
            _ => command.starts_inside(),
        }
    }

    /// The rule that "always" would write: the same, for later sessions of the project at `root`. None for a directory elsewhere,
    /// since rules count inside their project.
    #[must_use]
    pub fn to_rule(&self, root: &Path) -> Option<Rule> {
        let mut rule = Rule::new(RuleDecision::Allow);
        rule.root = Some(root.to_owned());
        match self.clone() {
            Self::Command { tool, words } => {
                rule.tool = Some(tool);
                rule.command = Some(CommandWords(words));
            }
            Self::Exactly { cwd: Some(_), .. } => return None,
            Self::Exactly { tool, text, cwd: None } => {
                rule.tool = Some(tool);
                rule.exact = Some(text);
            }
            Self::Files { tool } => rule.tool = Some(tool),
            Self::Host { tool, host } => {
                rule.tool = Some(tool);
                rule.hosts = vec![host];
            }
        }
        Some(rule)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { tool, words } => write!(f, "{tool}: {} …", words.join(" ")),
            Self::Exactly { tool, text, cwd: None } => write!(f, "{tool}: exactly {text}"),
            Self::Exactly {
                tool,
                text,
                cwd: Some(cwd),
            } => write!(f, "{tool} in {}: exactly {text}", cwd.display()),
            Self::Files { tool } => write!(f, "{tool} inside the project"),
            Self::Host { tool, host } => write!(f, "{tool} at {host}"),
        }
    }
}
