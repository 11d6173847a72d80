//! Guesses of what simple commands print, so that `echo '…' | sh` and `find / | xargs rm` are seen for what they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::arg::{AGENTD_PID, Arg, Certainty, Stream};
use super::options::Options;
use super::scope::Scope;
use super::{escapes, find, place};
use crate::policy::facts::CommandFact;

pub(super) fn guess(name: &str, args: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<Stream> {
    match name {
        "echo" => Some(Stream::of_text(echo(args))),
        "printf" => {
            let words: Vec<&str> = args
                .iter()
                .skip(1)
                .map(|arg| arg.text.as_str())
                .filter(|word| *word != "--")
                .collect();
            let (format, words) = words.split_first()?;
            Some(Stream::of_text(escapes::printf(format, words)))
        }
        "pwd" => Some(Stream::of_text(scope.cwd.dirs.first()?.to_string_lossy())),
        "pidof" | "pgrep" => args
            .iter()
            .any(|arg| arg.text.contains("agentd"))
            .then(|| Stream::of_text(AGENTD_PID)),
        "find" => Some(found_files(args, scope, fact)),
        "ls" => Some(listed_files(args, scope, fact)),
        "git" if args.get(1).is_some_and(|arg| arg.text == "ls-files") => Some(project_files(scope, fact)),
        "rg" | "grep" if lists_names(args) => Some(project_files(scope, fact)),
        "fd" => Some(project_files(scope, fact)),
        "base64" if Options::read(args, "", &[]).letter("dD") || Options::read(args, "", &[]).long("decode") => {
            let text: String = scope.stdin.as_ref()?.text.as_ref()?.split_whitespace().collect();
            Some(Stream::of_text(String::from_utf8(STANDARD.decode(text).ok()?).ok()?))
        }
        "rev" => {
            let text = scope.stdin.as_ref()?.text.as_ref()?;
            Some(Stream::of_text(
                text.lines()
                    .map(|line| line.chars().rev().collect::<String>())
                    .collect::<Vec<_>>()
                    .join("\n"),
            ))
        }
        // A file in which the daemon's process id is kept.
        "cat" | "head"
            if args
                .iter()
                .any(|arg| arg.text.contains("agentd") && arg.text.ends_with("pid")) =>
        {
            Some(Stream::of_text(AGENTD_PID))
        }
        "cat" | "sort" | "uniq" | "head" | "tail" | "grep" | "tac" | "tee" => passed_on(name, args, scope),
        _ => None,
    }
}

/// Filters hand on what they read, unless they read files instead.
fn passed_on(name: &str, args: &[Arg], scope: &Scope) -> Option<Stream> {
    let operands = Options::read(args, "nckteSTmABC", &[]).operands;
    let from_stdin = match name {
        "tee" => true,
        "grep" => operands.len() <= 1,
        _ => operands.iter().all(|operand| operand.text == "-"),
    };
    scope.stdin.clone().filter(|_| from_stdin)
}

fn echo(args: &[Arg]) -> String {
    let mut words: Vec<&str> = args.iter().skip(1).map(|arg| arg.text.as_str()).collect();
    let mut escaped = false;
    while let Some((first, rest)) = words.split_first() {
        if first.len() < 2 || !first.starts_with('-') || !first.chars().skip(1).all(|c| "neE".contains(c)) {
            break;
        }
        escaped |= first.contains('e');
        words = rest.to_vec();
    }
    let text = words.join(" ");
    if escaped { escapes::decode(&text) } else { text }
}

/// `find` prints its start points and what lies below them.
fn found_files(args: &[Arg], scope: &Scope, fact: &CommandFact) -> Stream {
    let starts = find::start_points(args);
    let inside = starts
        .iter()
        .all(|start| place::concern(start, &scope.cwd, fact).is_none());
    let secret = args
        .iter()
        .any(|arg| arg.text.split('/').any(|name| place::names_secret(name, true)));
    let items = starts.into_iter().map(doubtful).collect();
    Stream {
        text: None,
        items,
        below: true,
        project_files: inside && !secret && scope.cwd.is_inside(fact),
    }
}

fn listed_files(args: &[Arg], scope: &Scope, fact: &CommandFact) -> Stream {
    let options = Options::read(args, "IwT", &[]);
    let here = options.operands.is_empty();
    let project_files = here && scope.cwd.is_inside(fact);
    let items = if here {
        vec![Arg {
            glob: true,
            ..doubtful(Arg::sure("*"))
        }]
    } else if options.letter("d") {
        options.operands.into_iter().cloned().map(doubtful).collect()
    } else {
        // Names without their directory: nobody knows what they mean here.
        Vec::new()
    };
    Stream {
        text: None,
        items,
        below: false,
        project_files,
    }
}

fn project_files(scope: &Scope, fact: &CommandFact) -> Stream {
    Stream {
        text: None,
        items: Vec::new(),
        below: false,
        project_files: scope.cwd.is_inside(fact),
    }
}

fn lists_names(args: &[Arg]) -> bool {
    let options = Options::read(args, "efmABC", &[]);
    options.letter("lL")
        || options
            .long
            .iter()
            .any(|name| matches!(*name, "files-with-matches" | "files" | "files-without-match"))
}

fn doubtful(arg: Arg) -> Arg {
    Arg {
        certainty: Certainty::Unknown,
        ..arg
    }
}
