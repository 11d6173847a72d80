//! `git`: what stands before the subcommand, pushes that rewrite history, and the subcommands that only look.
//!
//! Git runs programs a repository's configuration names, so even a look is allowed only inside the read-only sandbox
//! and when the target found no such key (`CommandFact::git_config`).

use super::arg::{Arg, joined};
use super::git_table::{self, Look};
use super::options::Options;
use super::part::Standing;
use super::place;
use super::scope::Scope;
use super::wrappers::{Inner, Unwrapped};
use crate::policy::facts::CommandFact;

/// Global options that take their value as the next word.
const GLOBAL_WITH_VALUE: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--exec-path",
    "--attr-source",
];

/// Global options that change nothing about what runs.
const GLOBAL_HARMLESS: &[&str] = &["--no-pager", "--no-optional-locks", "--literal-pathspecs"];

/// Where the subcommand stands; `words` begins with `git`.
pub(super) fn subcommand_at<T>(words: &[T], text: impl Fn(&T) -> &str) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = text(words.get(at)?);
        if !word.starts_with('-') {
            return Some(at);
        }
        at += 1 + usize::from(GLOBAL_WITH_VALUE.contains(&word));
    }
}

/// `git -C x push` as `git push`; none if it is no git or has nothing to leave out.
pub(super) fn without_global_options(words: &[String]) -> Option<Vec<String>> {
    if words.first().is_none_or(|first| first != "git") {
        return None;
    }
    let at = subcommand_at(words, String::as_str)?;
    let rest = words.get(at..)?.iter().cloned();
    (at > 1).then(|| std::iter::once("git".to_owned()).chain(rest).collect())
}

/// The directories it goes to and what follows the subcommand.
pub(super) fn files(args: &[Arg]) -> Vec<&Arg> {
    let verb = subcommand_at(args, |arg| arg.text.as_str()).unwrap_or(args.len());
    let directories = args
        .windows(2)
        .take(verb.saturating_sub(1))
        .filter_map(|pair| match pair {
            [option, directory] if option.text == "-C" => Some(directory),
            _ => None,
        });
    let operands = args.iter().skip(verb + 1).filter(|arg| !arg.text.starts_with('-'));
    directories.chain(operands).collect()
}

/// Subcommands that run a shell command, and the words after which it stands.
const RUNNERS: &[(&str, &[&str])] = &[
    ("submodule", &["foreach"]),
    ("bisect", &["run"]),
    ("rebase", &["-x", "--exec"]),
    ("difftool", &["-x", "--extcmd"]),
    (
        "filter-branch",
        &[
            "--tree-filter",
            "--index-filter",
            "--msg-filter",
            "--env-filter",
            "--commit-filter",
            "--setup",
        ],
    ),
];

/// The shell commands git is told to run; none if it is not told to.
pub(super) fn unwrap(args: &[Arg]) -> Option<Unwrapped> {
    let at = subcommand_at(args, |arg| arg.text.as_str())?;
    let verb = args.get(at)?.text.as_str();
    let (_, words) = RUNNERS.iter().find(|(runner, _)| *runner == verb)?;
    let mut texts = Vec::new();
    for (i, arg) in args.iter().enumerate().skip(at + 1) {
        let (word, attached) = arg
            .text
            .split_once('=')
            .map_or((arg.text.as_str(), None), |(word, text)| (word, Some(text)));
        if !words.contains(&word) {
            continue;
        }
        let after = args.get(i + 1..).unwrap_or_default();
        texts.push(match attached {
            Some(text) => text.to_owned(),
            None if word.starts_with('-') => after.first()?.text.clone(),
            // The rest of the line is the command, behind options of the subcommand.
            None => joined(after.iter().skip_while(|arg| arg.text.starts_with('-'))),
        });
    }
    (!texts.is_empty()).then(|| Unwrapped {
        inner: texts.into_iter().map(Inner::script).collect(),
        standing: Standing::Asks(format!("`git {verb}` runs a command.")),
    })
}

/// Why the guard stops this git command.
pub(super) fn guard(name: &str, args: &[Arg]) -> Option<String> {
    let (verb, call) = match name.strip_prefix("git-") {
        Some(verb) => (verb.to_owned(), args.to_vec()),
        None if name == "git" => {
            let at = subcommand_at(args, |arg| arg.text.as_str())?;
            aliased(args, at).unwrap_or_else(|| {
                (
                    args.get(at).map(|arg| arg.text.clone()).unwrap_or_default(),
                    args.get(at..).unwrap_or_default().to_vec(),
                )
            })
        }
        None => return None,
    };
    let forced_by_config = configured(args).any(|(key, value)| {
        key.starts_with("remote.")
            && ((key.ends_with(".push") && value.starts_with('+')) || (key.ends_with(".mirror") && value != "false"))
    });
    let forced = match verb.as_str() {
        "push" => forced_by_config || forces(&call),
        "send-pack" => forces(&call),
        _ => false,
    };
    forced.then(|| {
        "It would overwrite history on the remote. Push without force, or with --force-with-lease after asking."
            .to_owned()
    })
}

/// `-c key=value` before the subcommand.
fn configured(args: &[Arg]) -> impl Iterator<Item = (String, String)> + '_ {
    args.windows(2).filter_map(|pair| match pair {
        [flag, setting] if flag.text == "-c" => {
            let (key, value) = setting.text.split_once('=').unwrap_or((&setting.text, "true"));
            Some((key.to_ascii_lowercase(), value.to_owned()))
        }
        _ => None,
    })
}

/// A subcommand that `-c alias.x=…` defines on the same line.
fn aliased(args: &[Arg], at: usize) -> Option<(String, Vec<Arg>)> {
    let verb = args.get(at)?.text.to_ascii_lowercase();
    let (_, value) = configured(args.get(..at)?).find(|(key, _)| *key == format!("alias.{verb}"))?;
    let value = value.trim_start_matches('!').trim_start_matches("git ").to_owned();
    let mut words: Vec<Arg> = value.split_whitespace().map(Arg::sure).collect();
    words.extend(args.get(at + 1..).unwrap_or_default().iter().cloned());
    Some((words.first()?.text.clone(), words))
}

/// Whether a push overwrites what is on the remote. `call` begins with the subcommand.
fn forces(call: &[Arg]) -> bool {
    let options = Options::read(call, "o", &["push-option", "repo", "receive-pack", "exec"]);
    options.letters.contains('f')
        || options
            .long
            .iter()
            .any(|name| name.len() > 1 && ["force", "mirror"].iter().any(|forcing| forcing.starts_with(name)))
        || options.operands.iter().any(|operand| operand.text.starts_with('+'))
}

/// Why this git command should be asked about; none if it only looks.
pub(super) fn concern(args: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    if let Some(key) = fact.git_config.first() {
        return Some(format!(
            "The repository's configuration ({key}) makes git run programs."
        ));
    }
    if let [_, only] = args
        && only.is_sure()
        && matches!(only.text.as_str(), "--version" | "version")
    {
        return None;
    }
    let Some(at) = subcommand_at(args, |arg| arg.text.as_str()) else {
        return Some("`git` alone does nothing known.".to_owned());
    };
    let mut scope = scope.clone();
    let mut before = args.get(1..at).unwrap_or_default().iter();
    while let Some(option) = before.next() {
        if option.text == "-C" {
            let directory = before.next()?;
            if let Some(reason) = place::concern(directory, &scope.cwd, fact) {
                return Some(reason);
            }
            scope.cwd = scope.cwd.enter(directory);
        } else if !option.is_sure() || !GLOBAL_HARMLESS.contains(&option.text.as_str()) {
            return Some(format!("`git` with {} can run other programs.", option.shown()));
        }
    }
    let call: Vec<Arg> = args.get(at..).unwrap_or_default().iter().map(Arg::with_hash).collect();
    let verb = call.first()?;
    let look = git_table::LOOKS
        .iter()
        .find(|look| verb.is_sure() && look.verb == verb.text);
    match look {
        Some(look) => look_concern(look, &call, &scope, fact),
        None => Some(format!("`git {}` can change the repository.", verb.shown())),
    }
}

/// Options with which the commands below print hashes and nothing else, besides numbers such as `-1`.
const HASH_OPTIONS: &[&str] = &[
    "--short",
    "--verify",
    "-q",
    "--quiet",
    "--format=%H",
    "--format=%h",
    "--pretty=%H",
    "--pretty=%h",
    "--pretty=format:%H",
    "--pretty=format:%h",
    "--all",
    "--reverse",
    "--merges",
    "--no-merges",
    "--first-parent",
    "--max-parents=0",
    "--max-count=1",
    "-n",
    "--",
];

/// Whether all it can print are hashes of commits. Names of branches and tags are none: they may read as options.
pub(super) fn prints_hashes(args: &[Arg]) -> bool {
    let Some((verb, rest)) = args.get(1..).and_then(<[Arg]>::split_first) else {
        return false;
    };
    let harmless = |arg: &Arg| {
        let number = arg
            .text
            .strip_prefix("-n")
            .or(arg.text.strip_prefix('-'))
            .unwrap_or_default();
        let option = HASH_OPTIONS.contains(&arg.text.as_str()) || number.parse::<u32>().is_ok();
        arg.with_hash().is_sure() && !arg.glob && (option || !arg.text.starts_with('-'))
    };
    let formatted = rest
        .iter()
        .any(|arg| arg.text.ends_with("%H") || arg.text.ends_with("%h"));
    let prints = match verb.text.as_str() {
        "merge-base" | "rev-parse" | "rev-list" => !formatted,
        "log" => formatted,
        _ => false,
    };
    prints && verb.is_sure() && rest.iter().all(harmless)
}

fn look_concern(look: &Look, call: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    let mut rest = call.iter().skip(1).peekable();
    let mut operands: Vec<&Arg> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut only_paths = false;
    while let Some(arg) = rest.next() {
        let text = arg.text.as_str();
        if only_paths || !text.starts_with('-') || text == "-" {
            if !only_paths && arg.may_be_option() {
                return Some(format!("{} may be an option.", arg.shown()));
            }
            operands.push(arg);
        } else if text == "--" {
            only_paths = true;
        } else if !arg.is_sure() {
            return Some(format!("The value of {} is not known before it runs.", arg.shown()));
        } else if text.contains("%G") || text.contains("%(signature") {
            return Some("It starts the program that checks signatures.".to_owned());
        } else if text.starts_with("-L")
            && let Some(reason) = [Some(text), rest.peek().map(|next| next.text.as_str())]
                .into_iter()
                .flatten()
                .find_map(secret_concern)
        {
            return Some(reason);
        } else {
            match look.option(text) {
                git_table::Known::No => {
                    return Some(format!(
                        "`git {} {text}` is not on the list of what only looks.",
                        look.verb
                    ));
                }
                git_table::Known::Alone => {}
                git_table::Known::WithValue => {
                    if rest.next().is_none_or(|value| !value.is_sure()) {
                        return Some(format!("The value of {text} is not known before it runs."));
                    }
                }
            }
            seen.push(text);
        }
    }
    if let Some(reason) = look.shape_concern(call, &operands, &seen) {
        return Some(reason);
    }
    operands
        .iter()
        .find_map(|operand| operand_concern(operand, scope, fact))
}

/// An operand may be a revision, a revision with a path, or a path.
fn operand_concern(operand: &Arg, scope: &Scope, fact: &CommandFact) -> Option<String> {
    if !operand.is_sure() {
        return Some(format!("The value of {} is not known before it runs.", operand.shown()));
    }
    let path = operand
        .text
        .split_once(':')
        .map_or(operand.text.as_str(), |(_, path)| path);
    // `main..topic` is a range, `../x` a path.
    let is_range = operand.text.contains("..") && !operand.text.split('/').any(|name| name == "..");
    if is_range {
        return None;
    }
    let concern = place::concern(
        &Arg {
            glob: operand.glob,
            ..Arg::sure(path)
        },
        &scope.cwd,
        fact,
    );
    concern.or_else(|| secret_concern(&operand.text))
}

/// Git has patterns and prefixes of its own: `:(top).env`, `:0:.env`, `-L1,5:.env`, `'.en*'`.
fn secret_concern(text: &str) -> Option<String> {
    let secret = text
        .split(['/', ':', ')', '!'])
        .any(|name| place::names_secret(name, true));
    secret.then(|| format!("{text} may hold secrets."))
}
