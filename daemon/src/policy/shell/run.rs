//! Running a simple command in the mind: the guard looks at it, then what it would run itself is walked, then the
//! built-in list says whether it may go unasked.

use std::rc::Rc;

use super::arg::{Arg, Certainty, Stream};
use super::part::{Part, Standing, base_name};
use super::rough::is_name;
use super::scope::{Scope, may_be_set};
use super::walk::Walker;
use super::wrappers::{self, Inner};
use super::{destructive, disguise, escapes, output, readonly};

impl Walker<'_> {
    /// Judges one command whose words are expanded. Returns the guess of what it prints.
    pub(super) fn run(&mut self, args: Vec<Arg>, mut extras: Vec<String>, scope: &mut Scope) -> Option<Stream> {
        let first = args.first()?;
        let bytes = args.iter().map(|arg| arg.text.len() + size_of::<Arg>()).sum();
        if !self.count_command() || !self.count_text(bytes) {
            return None;
        }
        let name = base_name(&first.text).to_owned();
        // What the shell makes of an escape such as `$'\u0441'` is in no word of the text.
        if let Some(reason) = args.iter().find_map(|arg| disguise::mixed(&arg.text)) {
            self.ask(&reason);
            self.disguise.get_or_insert(reason);
        }
        if let Some(reason) = destructive::check(&name, &args, scope, self.fact) {
            self.block(reason);
        }
        if !scope.cwd.is_inside(self.fact) && !matches!(name.as_str(), "cd" | "exit" | "true" | "false" | "echo") {
            extras.push("It may run outside the project.".to_owned());
        }
        let operands = args
            .iter()
            .skip(1)
            .flat_map(|arg| scope.cwd.spots(&arg.text))
            .map(|spot| spot.path())
            .collect();
        let at = self.parts.len();
        let shown = args.iter().map(Arg::shown).collect::<Vec<_>>().join(" ");
        self.parts.push(Part {
            text: shown,
            standing: Standing::Asks(String::new()),
            args: args.clone(),
            cwd: scope.cwd.clone(),
            extras,
            parent: self.parent,
            operands,
            files: Vec::new(),
        });
        let outer = self.parent.replace(at);
        let before = scope.cwd.clone();
        let (standing, output) = self.act(&name, &args, scope);
        self.parent = outer;
        if let Some(part) = self.parts.get_mut(at) {
            if standing == Standing::Harmless {
                let files = readonly::files(&args, scope, self.fact);
                part.files = files.into_iter().flat_map(|file| before.paths(file)).collect();
            }
            part.standing = standing;
        }
        output
    }

    fn act(&mut self, name: &str, args: &[Arg], scope: &mut Scope) -> (Standing, Option<Stream>) {
        if let Some(body) = args
            .first()
            .and_then(|first| scope.functions.get(&first.text))
            .map(Rc::clone)
        {
            let mut inner = scope.clone();
            inner.params = args.get(1..).unwrap_or_default().to_vec();
            inner.functions.remove(name);
            let output = self.compound(&body, &mut inner);
            // A function runs in this very shell.
            scope.cwd = inner.cwd;
            scope.vars = inner.vars;
            return (asks("It calls a function."), output);
        }
        if let Some(result) = self.shell_state(name, args, scope) {
            return result;
        }
        if let Some(unwrapped) = wrappers::unwrap(name, args, scope) {
            let output = self.inner(unwrapped.inner, scope);
            return (unwrapped.standing, output);
        }
        (
            readonly::standing(args, scope, self.fact),
            output::guess(name, args, scope, self.fact),
        )
    }

    /// Walks what a wrapper runs.
    fn inner(&mut self, inner: Vec<Inner>, scope: &mut Scope) -> Option<Stream> {
        let mut output = None;
        for run in inner {
            let mut child = scope.clone();
            match run {
                Inner::Command(args) => output = self.run(args, Vec::new(), &mut child),
                Inner::Shell(args) => output = self.run(args, Vec::new(), scope),
                Inner::Below(args) => {
                    child.below = true;
                    self.run(args, Vec::new(), &mut child);
                }
                Inner::Script { text, zero, params } => {
                    for var in child.vars.values_mut() {
                        var.value.certainty = Certainty::Unknown;
                    }
                    child.zero = zero;
                    child.params = params;
                    output = self.script(&text, &mut child);
                }
                Inner::Here(text) => output = self.script(&text, scope),
                Inner::In(dir, args) => {
                    child.cwd = child.cwd.enter(&dir);
                    output = self.run(args, Vec::new(), &mut child);
                }
            }
        }
        output
    }

    /// Builtins that change the shell itself.
    fn shell_state(&mut self, name: &str, args: &[Arg], scope: &mut Scope) -> Option<(Standing, Option<Stream>)> {
        let rest = args.get(1..).unwrap_or_default();
        let standing = match name {
            "cd" | "pushd" => self.change_directory(name, rest, scope),
            "set" => {
                if let Some(at) = rest.iter().position(|arg| arg.text == "--") {
                    scope.params = rest.get(at + 1..).unwrap_or_default().to_vec();
                }
                match rest.iter().all(stops_early) && !rest.is_empty() {
                    true => Standing::Harmless,
                    false => asks("`set` changes how commands run."),
                }
            }
            "shift" => {
                scope.params.drain(..1.min(scope.params.len()));
                asks("`shift` changes the parameters.")
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for (variable, value) in rest.iter().filter_map(assignment) {
                    scope.assign(&variable, value);
                }
                asks(&format!("`{name}` changes or shows the environment."))
            }
            "printf" if rest.first().is_some_and(|arg| arg.text.starts_with("-v")) => {
                print_into(rest, scope);
                asks("`printf -v` sets a variable.")
            }
            "unset" => {
                rest.iter().for_each(|arg| drop(scope.vars.remove(&arg.text)));
                asks("`unset` changes the environment.")
            }
            "read" if rest.iter().all(reads_plainly) => {
                read_into(rest, Certainty::Output, scope);
                Standing::Harmless
            }
            "read" | "mapfile" | "readarray" => {
                read_into(rest, Certainty::Unknown, scope);
                asks("`read` sets variables to what is not known beforehand.")
            }
            "alias" => {
                for (_, value) in rest.iter().filter_map(assignment) {
                    self.script(&value.text, &mut scope.clone());
                }
                asks("An alias can take the place of a command.")
            }
            _ => return None,
        };
        Some((standing, None))
    }

    fn change_directory(&mut self, name: &str, rest: &[Arg], scope: &mut Scope) -> Standing {
        let operands: Vec<&Arg> = rest
            .iter()
            .filter(|arg| !matches!(arg.text.as_str(), "-P" | "-L" | "-e" | "--"))
            .collect();
        let target = match operands.as_slice() {
            [] => self.home(scope),
            [target, ..] if target.text == "-" => Arg::unknown(),
            [target, ..] => (*target).clone(),
        };
        scope.cwd = scope.cwd.enter(&target);
        if name == "cd" && scope.cwd.is_inside(self.fact) && operands.len() <= 1 {
            return Standing::Harmless;
        }
        Standing::Asks(format!(
            "It changes to {}, which may lie outside the project.",
            target.shown()
        ))
    }
}

fn asks(reason: &str) -> Standing {
    Standing::Asks(reason.to_owned())
}

/// `name=value` given to `export` and its like.
fn assignment(arg: &Arg) -> Option<(String, Arg)> {
    let (name, value) = arg.text.split_once('=')?;
    is_name(name).then(|| {
        (
            name.to_owned(),
            Arg {
                text: value.to_owned(),
                certainty: Certainty::Unknown,
                ..arg.clone()
            },
        )
    })
}

/// `printf -v NAME FORMAT WORDS…`.
fn print_into(rest: &[Arg], scope: &mut Scope) {
    let words: Vec<&str> = rest.iter().map(|arg| arg.text.as_str()).collect();
    let (name, text) = match words.as_slice() {
        ["-v", name, format, words @ ..] => (*name, escapes::printf(format, words)),
        [attached, format, words @ ..] => (attached.trim_start_matches("-v"), escapes::printf(format, words)),
        _ => return,
    };
    scope.assign(name, Arg::guessed(text));
}

/// A word of `set` that only makes the shell stop where a command fails or a variable is missing.
fn stops_early(arg: &Arg) -> bool {
    arg.is_sure()
        && matches!(
            arg.text.as_str(),
            "-e" | "-u" | "-eu" | "-ue" | "-o" | "-eo" | "-euo" | "-ueo" | "errexit" | "nounset" | "pipefail"
        )
}

/// A word of `read` that is a variable of the line's own, or takes lines as they stand.
fn reads_plainly(arg: &Arg) -> bool {
    arg.is_sure() && !arg.glob && (arg.text == "-r" || (is_name(&arg.text) && may_be_set(&arg.text)))
}

/// `read` takes the first line of its input if that is known. What comes out of the commands before it was judged with them.
fn read_into(rest: &[Arg], certainty: Certainty, scope: &mut Scope) {
    let stream = scope.stdin.as_ref();
    // `read -r NAME` takes the whole line; more names, backslashes and separators would make other names of it.
    let whole = matches!(rest, [raw, _] if raw.text == "-r")
        && scope.vars.get("IFS").is_none_or(|var| var.value.text.is_empty());
    let value = if whole && certainty == Certainty::Output && stream.is_some_and(|stream| stream.project_files) {
        // Some file of the project: as a variable that runs over what a pattern matched.
        Arg {
            glob: true,
            ..Arg::sure("*")
        }
    } else {
        let line = stream.and_then(|stream| stream.items.first().cloned());
        Arg {
            certainty,
            ..line.unwrap_or_else(Arg::unknown)
        }
    };
    for arg in rest.iter().filter(|arg| is_name(&arg.text)) {
        scope.assign(&arg.text, value.clone());
    }
    scope.assign("REPLY", value);
}
