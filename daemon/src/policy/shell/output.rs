//! Guesses of what simple commands print, so that `echo '…' | sh` and `find / | xargs rm` are seen for what they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::arg::{AGENTD_PID, Arg, Certainty, HASH, Stream};
use super::options::Options;
use super::scope::Scope;
use super::{escapes, find, git, place};
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
        // The directory it went to last.
        "pwd" => Some(Stream::of_text(scope.cwd.dirs.last()?.to_string_lossy())),
        ":" | "true" | "false" => Some(Stream::of_text("")),
        "dirname" => Some(Stream::of_text(parent(&args.get(1)?.text))),
        "realpath" | "readlink" => Some(Stream::of_text(args.last()?.text.as_str())),
        "git" if args.iter().any(|arg| arg.text == "--show-toplevel") => {
            Some(Stream::of_text(fact.roots.first()?.to_string_lossy()))
        }
        "which" => Some(Stream::of_text(args.get(1)?.text.as_str())),
        "command" | "type"
            if args
                .get(1)
                .is_some_and(|arg| matches!(arg.text.as_str(), "-v" | "-p" | "-P")) =>
        {
            Some(Stream::of_text(args.get(2)?.text.as_str()))
        }
        "awk" | "gawk" | "mawk" | "cut" | "tr" if hands_on_the_daemon(args, scope) => Some(Stream::of_text(AGENTD_PID)),
        "pidof" | "pgrep" | "ps" | "systemctl" | "lsof" if args.iter().any(|arg| arg.text.contains("agentd")) => {
            Some(Stream::of_text(AGENTD_PID))
        }
        "ps" if !selects_processes(args) => Some(Stream::of_text(format!("{AGENTD_PID} agentd"))),
        "find" => Some(found_files(args, scope, fact)),
        "ls" => Some(listed_files(args, scope, fact)),
        "git" if git::prints_hashes(args) => Some(Stream {
            text: Some(HASH.to_owned()),
            ..Stream::default()
        }),
        "git" if lists_tracked(args) => Some(project_files(scope, fact)),
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

fn parent(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/",
        Some((parent, _)) => parent,
        None if path.starts_with('/') => "/",
        None => ".",
    }
}

/// `ps -p PID` and its like show what was asked for, not everything there is.
fn selects_processes(args: &[Arg]) -> bool {
    let options = Options::read(
        args,
        "pCgqstGuUo",
        &["pid", "ppid", "sid", "tty", "group", "user", "format"],
    );
    options.letter("pCgqst") || options.long("pid") || options.long("ppid") || options.long("sid")
}

/// Whether a filter that takes columns from a list of processes leaves the daemon in.
fn hands_on_the_daemon(args: &[Arg], scope: &Scope) -> bool {
    let program = args.iter().skip(1).find(|arg| arg.text.contains('/'));
    names_the_daemon(scope) && program.is_none_or(|program| finds_the_daemon(&program.text))
}

fn names_the_daemon(scope: &Scope) -> bool {
    let text = scope.stdin.as_ref().and_then(|stream| stream.text.as_ref());
    text.is_some_and(|text| text.contains(AGENTD_PID))
}

/// Whether a pattern such as `[a]gentd` is looked for in a line that names the daemon.
fn finds_the_daemon(pattern: &str) -> bool {
    let plain: String = pattern
        .chars()
        .filter(|c| !matches!(c, '[' | ']' | '^' | '$'))
        .collect();
    plain.contains("agentd") || "agentd".contains(&plain)
}

/// Filters hand on what they read, unless they read files instead.
fn passed_on(name: &str, args: &[Arg], scope: &Scope) -> Option<Stream> {
    let options = Options::read(args, "nckteSTmABC", &["lines", "bytes", "label"]);
    let from_stdin = match name {
        "tee" => true,
        "grep" => options.operands.len() <= 1,
        _ => options.operands.iter().all(|operand| operand.text == "-"),
    };
    let mut stream = scope.stdin.clone().filter(|_| from_stdin)?;
    // A piece of a name is another name: `./etc/x` without its first letter is a file of the system.
    let whole_lines = match name {
        "head" | "tail" => !options.letter("c") && !options.long("bytes"),
        "grep" => !options.letter("o") && options.long.is_empty(),
        "tac" => options.letters.is_empty() && options.long.is_empty(),
        _ => true,
    };
    stream.project_files &= whole_lines;
    if name == "grep" && names_the_daemon(scope) {
        let found = options
            .operands
            .first()
            .is_some_and(|pattern| finds_the_daemon(&pattern.text));
        return (found != options.letter("v")).then_some(stream);
    }
    Some(stream)
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
        project_files: inside && !secret && !find::prints_more(args) && scope.cwd.is_inside(fact),
    }
}

/// Long options of `ls` with which it still prints the names of files alone.
const PLAIN_LISTING: &[&str] = &["almost-all", "reverse", "recursive", "zero", "group-directories-first"];

fn listed_files(args: &[Arg], scope: &Scope, fact: &CommandFact) -> Stream {
    let options = Options::read(args, "IwT", &[]);
    let here = options.operands.is_empty();
    // `-a` and `-f` list the parent, the long forms show where links lead.
    let names_alone = !options.letter("aflogn") && options.long.iter().all(|name| PLAIN_LISTING.contains(name));
    let project_files = here && names_alone && scope.cwd.is_inside(fact);
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

/// `git ls-files` without a format of its own.
fn lists_tracked(args: &[Arg]) -> bool {
    args.get(1).is_some_and(|arg| arg.text == "ls-files") && !args.iter().any(|arg| arg.text.starts_with("--format"))
}

fn lists_names(args: &[Arg]) -> bool {
    let options = Options::read(args, "efmABC", &[]);
    if options.long("label") || options.operands.iter().any(|operand| operand.text == "-") {
        return false;
    }
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
