//! `git`: what stands before the subcommand, pushes that rewrite history, and the subcommands that only look.
//!
//! Git runs programs a repository's configuration names, so even a look is allowed only inside the read-only sandbox
//! and when the target found no such key (`CommandFact::git_config`).

use super::arg::Arg;
use super::git_table::{self, Look};
use super::options::Options;
use super::place;
use super::scope::Scope;
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
fn subcommand_at<T>(words: &[T], text: impl Fn(&T) -> &str) -> Option<usize> {
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

/// What follows the subcommand.
pub(super) fn operands(args: &[Arg]) -> &[Arg] {
    subcommand_at(args, |arg| arg.text.as_str())
        .and_then(|at| args.get(at + 1..))
        .unwrap_or_default()
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
            .any(|name| *name == "force" || (name.len() > 1 && "mirror".starts_with(name)))
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
    let call = args.get(at..).unwrap_or_default();
    let verb = call.first()?;
    let look = git_table::LOOKS
        .iter()
        .find(|look| verb.is_sure() && look.verb == verb.text);
    match look {
        Some(look) => look_concern(look, call, &scope, fact),
        None => Some(format!("`git {}` can change the repository.", verb.shown())),
    }
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
        } else if text.contains("%G") {
            return Some("It starts the program that checks signatures.".to_owned());
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
    place::concern(
        &Arg {
            glob: operand.glob,
            ..Arg::sure(path)
        },
        &scope.cwd,
        fact,
    )
}
