//! Commands that take a script: shells, `eval`, `source`, `trap`, `su -c`, `watch` and their like.

use super::arg::{Arg, Stream, joined};
use super::options::Options;
use super::part::Standing;
use super::scope::Scope;
use super::wrappers::{Inner, Unwrapped};

pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish"];

pub(super) fn unwrap(name: &str, args: &[Arg], scope: &Scope) -> Option<Unwrapped> {
    let asks = |reason: &str, inner: Vec<Inner>| {
        Some(Unwrapped {
            inner,
            standing: Standing::Asks(reason.to_owned()),
        })
    };
    let rest = args.get(1..).unwrap_or_default();
    match name {
        shell if SHELLS.contains(&shell) => Some(shell_call(args, scope)),
        "eval" => asks(
            "`eval` runs text as a command.",
            vec![Inner::Here(joined(after_dashes(rest)))],
        ),
        "source" | "." => asks("It runs a script in this shell.", streamed(rest.first(), scope)),
        "trap" => asks(
            "A trap runs a command later.",
            after_dashes(rest)
                .first()
                .map(|arg| Inner::Here(arg.text.clone()))
                .into_iter()
                .collect(),
        ),
        "su" | "runuser" => {
            let options = Options::read(args, "csgGuwC", &["command", "shell", "user", "group"]);
            let script = options
                .value("c")
                .or_else(|| options.value("command"))
                .map(Inner::script);
            let command = (name == "runuser" && script.is_none() && options.value("u").is_some()).then(|| {
                let leading = Options::leading(args, "gGu", &["user", "group"]);
                Inner::Command(leading.operands.into_iter().cloned().collect())
            });
            asks("It runs as another user.", script.into_iter().chain(command).collect())
        }
        "script" => {
            let options = Options::read(args, "cEIOBTom", &["command"]);
            let text = options.value("c").or_else(|| options.value("command"));
            asks(
                "`script` runs a shell and writes a file.",
                text.map(Inner::script).into_iter().collect(),
            )
        }
        "watch" => {
            let options = Options::leading(args, "nq", &["interval"]);
            asks(
                "`watch` runs a command again and again.",
                vec![Inner::script(joined(options.operands.iter().copied()))],
            )
        }
        "flock" => {
            let options = Options::leading(args, "wE", &["timeout", "conflict-exit-code"]);
            let (flag, words) = options.operands.get(1..).and_then(|words| words.split_first()).unzip();
            let text = flag
                .filter(|flag| matches!(flag.text.as_str(), "-c" | "--command"))
                .and_then(|_| words?.first());
            let text = text.map(|text| Inner::script(&text.text));
            let command = options
                .operands
                .get(1..)
                .filter(|words| text.is_none() && !words.is_empty());
            let command = command.map(|words| Inner::Command(words.iter().map(|arg| (*arg).clone()).collect()));
            asks("`flock` runs a command.", text.into_iter().chain(command).collect())
        }
        "hyperfine" => {
            let options = Options::read(
                args,
                "wmMrspcSLDiunNP",
                &["warmup", "runs", "prepare", "setup", "cleanup"],
            );
            let texts = options.operands.iter().map(|arg| Inner::script(&arg.text));
            asks("`hyperfine` runs commands.", texts.collect())
        }
        "at" | "batch" => asks(
            "It runs commands later.",
            stdin_script(scope, Vec::new()).into_iter().collect(),
        ),
        _ => None,
    }
}

/// The words behind a leading `--`.
fn after_dashes(words: &[Arg]) -> &[Arg] {
    match words.split_first() {
        Some((first, rest)) if first.text == "--" => rest,
        _ => words,
    }
}

/// Reads `sh [options] [-c TEXT [name [words]] | FILE | -s]`.
fn shell_call(args: &[Arg], scope: &Scope) -> Unwrapped {
    let mut command = false;
    let mut plain = true;
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" || text == "-" {
            at += 1;
            break;
        }
        let Some(cluster) = text.strip_prefix(['-', '+']) else {
            break;
        };
        at += 1;
        if let Some(long) = cluster.strip_prefix('-') {
            plain = false;
            at += usize::from(matches!(long, "rcfile" | "init-file"));
            continue;
        }
        command |= text.starts_with('-') && cluster.contains('c');
        plain &= text == "-c";
        // `-o NAME` and `-O NAME` take a word each.
        at += cluster.chars().filter(|c| matches!(c, 'o' | 'O')).count();
    }
    let operands = args.get(at..).unwrap_or_default();
    let Some((first, rest)) = operands.split_first() else {
        let standing = Standing::Asks("A shell runs whatever it reads.".to_owned());
        return Unwrapped {
            inner: stdin_script(scope, Vec::new()).into_iter().collect(),
            standing,
        };
    };
    if command {
        return command_text(args, first, rest, plain);
    }
    // With `-s` the operands are parameters and the script comes from standard input.
    let from_stdin = args
        .iter()
        .take(at)
        .any(|arg| arg.text.starts_with('-') && arg.text.contains('s'));
    let inner = if from_stdin {
        stdin_script(scope, operands.to_vec()).into_iter().collect()
    } else {
        streamed(Some(first), scope)
    };
    Unwrapped {
        inner,
        standing: Standing::Asks(format!("It runs the script {}.", first.shown())),
    }
}

fn command_text(args: &[Arg], text: &Arg, rest: &[Arg], plain: bool) -> Unwrapped {
    let zero = rest.first().map(|arg| arg.text.clone());
    let params: Vec<Arg> = rest.iter().skip(1).cloned().collect();
    let typed = args
        .first()
        .is_some_and(|shell| !shell.expanded && matches!(shell.text.as_str(), "sh" | "bash"));
    let literal = text.is_sure() && !text.expanded && !text.glob && params.iter().all(Arg::is_sure);
    let standing = if plain && typed && literal {
        Standing::Harmless
    } else {
        Standing::Asks("It runs a script that is not known before it runs.".to_owned())
    };
    Unwrapped {
        inner: vec![Inner::Script {
            text: text.text.clone(),
            zero,
            params,
        }],
        standing,
    }
}

fn stdin_script(scope: &Scope, params: Vec<Arg>) -> Option<Inner> {
    let text = text_of(scope.stdin.as_ref()?)?;
    Some(Inner::Script {
        text,
        zero: None,
        params,
    })
}

/// A script file: its text is known if it is a process substitution or standard input.
fn streamed(file: Option<&Arg>, scope: &Scope) -> Vec<Inner> {
    let Some(file) = file else { return Vec::new() };
    let text = match &file.stream {
        Some(stream) => text_of(stream),
        None if matches!(file.text.as_str(), "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-") => {
            scope.stdin.as_ref().and_then(text_of)
        }
        None => None,
    };
    text.into_iter().map(Inner::Here).collect()
}

fn text_of(stream: &Stream) -> Option<String> {
    stream.text.clone()
}
