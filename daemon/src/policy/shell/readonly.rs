//! The built-in list: which commands only read, and only inside the project.
//!
//! A command is harmless when its name is on the list, every option is known to be harmless and every file it names
//! lies in the project and is no secret. Anything else asks; nothing here has to recognise what is dangerous.

use super::arg::{Arg, Certainty};
use super::extended_test::test_concern;
use super::part::Standing;
use super::readonly_row::{Class, Command, Operands};
use super::readonly_table::COMMANDS;
use super::scope::Scope;
use super::{awk, find, git, jq, place, sed};
use crate::policy::facts::CommandFact;

/// Longest pause that is not worth a question, in seconds.
const SLEEP_LIMIT: f64 = 60.0;

pub(super) fn standing(args: &[Arg], scope: &Scope, fact: &CommandFact) -> Standing {
    match concern(args, scope, fact) {
        Some(reason) => Standing::Asks(reason),
        None => Standing::Harmless,
    }
}

/// Why a command should be asked about; none if it only reads inside the project.
fn concern(args: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    let first = args.first()?;
    if first.expanded || !first.is_sure() || first.glob {
        return Some("Which command runs is not known before it runs.".to_owned());
    }
    let name = first.text.as_str();
    if name.contains('/') {
        return Some(format!("{name} is a program named by its path."));
    }
    let rest = args.get(1..).unwrap_or_default();
    // The names a pattern becomes are read by the shell, whatever the command then does with them.
    if let Some(reason) = patterns(rest).find_map(|arg| place::concern(arg, &scope.cwd, fact)) {
        return Some(reason);
    }
    match name {
        "git" => return sandboxed(fact, "git").or_else(|| git::concern(args, scope, fact)),
        "find" => return find::concern(args, scope, fact),
        "[" => {
            let (last, words) = rest.split_last()?;
            return if last.text == "]" {
                test_concern(words, scope, fact)
            } else {
                Some("A `[` is not closed.".to_owned())
            };
        }
        "test" => return test_concern(rest, scope, fact),
        "[[" | "((" => return Some("Its syntax is not understood.".to_owned()),
        "command" => return query_concern(rest),
        "ps" => return ps_concern(rest),
        // `printf -v 'a[$(id)]'` runs a command.
        "printf"
            if rest
                .first()
                .is_none_or(|first| first.certainty > Certainty::Harmless || first.text.starts_with("-v")) =>
        {
            return Some("`printf` can set variables.".to_owned());
        }
        _ => {}
    }
    let named = without_named_values(name, rest);
    let rest = named.as_deref().unwrap_or(rest);
    let Some(command) = COMMANDS
        .iter()
        .find(|command| command.names.split(' ').any(|known| known == name))
    else {
        return Some(format!("`{name}` is not on the list of commands that only read."));
    };
    if command.class == Class::Sandboxed
        && let Some(reason) = sandboxed(fact, name)
    {
        return Some(reason);
    }
    let call = match Call::read(command, rest, scope, fact) {
        Ok(call) => call,
        Err(reason) => return Some(reason),
    };
    call.operands_concern(command, scope, fact)
}

/// `jq --arg NAME VALUE`: two words that are data. None if there are none of these.
fn without_named_values(name: &str, rest: &[Arg]) -> Option<Vec<Arg>> {
    let at = rest
        .iter()
        .position(|arg| name == "jq" && arg.is_sure() && matches!(arg.text.as_str(), "--arg" | "--argjson"))?;
    let printable = rest.get(at + 1..at + 3)?.iter().all(Arg::is_printable);
    let kept = [rest.get(..at)?, rest.get(at + 3..)?].concat();
    printable.then(|| without_named_values(name, &kept).unwrap_or(kept))
}

fn sandboxed(fact: &CommandFact, name: &str) -> Option<String> {
    (!fact.sandbox)
        .then(|| format!("`{name}` can be made to run programs, and the read-only sandbox is not available here."))
}

/// Typed or unquoted words that the shell replaces by the names of files.
fn patterns(words: &[Arg]) -> impl Iterator<Item = &Arg> {
    words.iter().filter(|arg| arg.glob && arg.is_sure())
}

/// What a harmless command reads: the words that name files, and the directories the shell lists for its patterns.
pub(super) fn files<'a>(args: &'a [Arg], scope: &Scope, fact: &CommandFact) -> Vec<&'a str> {
    let operands = operand_files(args, scope, fact)
        .into_iter()
        .map(|arg| arg.text.as_str());
    let listed =
        patterns(args.get(1..).unwrap_or_default()).filter_map(|arg| arg.text.trim_end_matches('/').rsplit_once('/'));
    operands.chain(listed.map(|(directory, _)| directory)).collect()
}

fn operand_files<'a>(args: &'a [Arg], scope: &Scope, fact: &CommandFact) -> Vec<&'a Arg> {
    let Some((first, rest)) = args.split_first() else {
        return Vec::new();
    };
    let named = |command: &&Command| command.names.split(' ').any(|known| known == first.text);
    let Some(command) = COMMANDS.iter().find(named) else {
        let words = match first.text.as_str() {
            "git" => return git::files(args),
            "cd" | "find" | "test" | "[" => rest,
            _ => &[],
        };
        return words.iter().filter(|arg| !arg.text.starts_with('-')).collect();
    };
    let Ok(call) = Call::read(command, rest, scope, fact) else {
        return Vec::new();
    };
    let script = usize::from(command.operands.begins_with_script() && call.scripts.is_empty());
    if command.operands.are_files() {
        call.operands.into_iter().skip(script).collect()
    } else {
        Vec::new()
    }
}

/// `command -v NAME`.
fn query_concern(rest: &[Arg]) -> Option<String> {
    let asks_only = rest
        .first()
        .is_some_and(|first| matches!(first.text.as_str(), "-v" | "-V"));
    (!asks_only || !rest.iter().all(Arg::is_printable)).then(|| "`command` runs another command.".to_owned())
}

/// `ps` shows environments with a BSD-style `e`.
fn ps_concern(rest: &[Arg]) -> Option<String> {
    let shows_environment = |arg: &Arg| {
        !arg.is_sure() || (!arg.text.starts_with('-') && arg.text.contains(['e', 'E'])) || arg.text.contains('E')
    };
    let value_follows = |arg: &Arg| {
        matches!(
            arg.text.as_str(),
            "-o" | "-p" | "-C" | "-u" | "-U" | "-t" | "--sort" | "--ppid" | "--pid"
        )
    };
    let mut rest = rest.iter();
    while let Some(arg) = rest.next() {
        if value_follows(arg) {
            rest.next();
        } else if shows_environment(arg) && !arg.text.starts_with("--") {
            return Some("`ps` can show the environment of other processes.".to_owned());
        }
    }
    None
}

/// A call that is read by its command's row.
struct Call<'a> {
    operands: Vec<&'a Arg>,
    /// The script or pattern was given by an option.
    scripts: Vec<&'a str>,
}

impl<'a> Call<'a> {
    fn read(command: &Command, rest: &'a [Arg], scope: &Scope, fact: &CommandFact) -> Result<Self, String> {
        let mut call = Call {
            operands: Vec::new(),
            scripts: Vec::new(),
        };
        let mut words = rest.iter();
        let mut options_over = false;
        while let Some(arg) = words.next() {
            let text = arg.text.as_str();
            if options_over || !text.starts_with('-') || text == "-" || command.operands == Operands::Words {
                if !options_over
                    && command.has_dangers()
                    && arg.may_be_option()
                    && !(command.operands == Operands::Words && arg.is_printable())
                {
                    return Err(format!("{} may stand for a file whose name is an option.", arg.shown()));
                }
                call.operands.push(arg);
                // `xxd` takes whatever follows its first file as the file to write, even `-s1`.
                options_over |= command.operands == Operands::OneFile;
                continue;
            }
            if text == "--" {
                options_over = true;
                continue;
            }
            if !arg.is_sure() {
                return Err(format!("The value of {} is not known before it runs.", arg.shown()));
            }
            let found = match text.strip_prefix("--") {
                Some(long) => command.long(long),
                None => command.short(text.get(1..).unwrap_or_default()),
            };
            let Some(option) = found else {
                let name = command.names.split(' ').next().unwrap_or_default();
                return Err(format!("`{name}` with {text} is not on the list of what only reads."));
            };
            if !option.takes_value() {
                continue;
            }
            let next;
            let value = match option.attached {
                Some(value) => {
                    next = Arg::sure(value);
                    &next
                }
                None => words.next().ok_or_else(|| format!("The value of {text} is missing."))?,
            };
            if !value.is_printable() {
                return Err(format!("The value of {text} is not known before it runs."));
            }
            if let Some(reason) = value_concern(command, text, &value.text) {
                return Err(reason);
            }
            if option.is_file
                && let Some(reason) = place::concern(value, &scope.cwd, fact)
            {
                return Err(reason);
            }
            if option.is_script {
                // The value's text must outlive the call, so only one that stands in the line itself is kept.
                match (option.attached.is_some(), value.is_sure()) {
                    (false, true) => call
                        .scripts
                        .extend(rest.iter().find(|word| *word == value).map(|word| word.text.as_str())),
                    (true, true) if command.operands == Operands::Pattern => call.scripts.push(""),
                    _ => return Err(format!("The script of {text} is not read.")),
                }
            }
        }
        Ok(call)
    }

    fn operands_concern(&self, command: &Command, scope: &Scope, fact: &CommandFact) -> Option<String> {
        let file = |operand: &&Arg| place::concern(operand, &scope.cwd, fact);
        let mut operands = self.operands.as_slice();
        match command.operands {
            Operands::None => {
                return operands
                    .first()
                    .map(|operand| format!("{} is not expected here.", operand.shown()));
            }
            Operands::Data | Operands::Words => {
                return operands
                    .iter()
                    .find(|operand| !operand.is_printable())
                    .map(|operand| format!("The value of {} is not known before it runs.", operand.shown()));
            }
            Operands::Sleep => {
                return operands
                    .iter()
                    .find(|operand| !is_short(operand))
                    .map(|_| "It waits for more than a minute.".to_owned());
            }
            Operands::Format => {
                return operands
                    .iter()
                    .find(|operand| !operand.is_printable() || !operand.text.starts_with('+'))
                    .map(|_| "It sets the clock.".to_owned());
            }
            Operands::Files => {}
            Operands::OneFile => {
                if let Some(second) = operands.get(1) {
                    return Some(format!("It would write to {}.", second.shown()));
                }
            }
            Operands::Pattern | Operands::Sed | Operands::Awk | Operands::Jq if !self.scripts.is_empty() => {
                if let Some(reason) = self
                    .scripts
                    .iter()
                    .find_map(|script| script_concern(command.operands, script))
                {
                    return Some(reason);
                }
            }
            Operands::Pattern | Operands::Sed | Operands::Awk | Operands::Jq => {
                let (script, files) = operands.split_first()?;
                let known = if command.operands == Operands::Pattern {
                    script.is_printable()
                } else {
                    script.is_sure() && !script.glob
                };
                if !known {
                    return Some(format!("The value of {} is not known before it runs.", script.shown()));
                }
                if let Some(reason) = script_concern(command.operands, &script.text) {
                    return Some(reason);
                }
                operands = files;
            }
        }
        operands.iter().find_map(file)
    }
}

/// Options that choose the files to read.
const CHOOSING: &[&str] = &["--include", "--glob", "--iglob", "-g"];

/// Why the value of an option should be asked about, whatever it is the value of.
fn value_concern(command: &Command, option: &str, value: &str) -> Option<String> {
    let assigns = command.operands == Operands::Awk && (option.starts_with("-v") || option.starts_with("--a"));
    if assigns
        && !value
            .split_once('=')
            .is_some_and(|(name, _)| awk::may_be_assigned(name))
    {
        return Some(format!("{value} can change what the `awk` program does."));
    }
    let chooses = CHOOSING.iter().any(|choosing| option.starts_with(choosing));
    let secret = chooses
        && value
            .rsplit('/')
            .next()
            .is_some_and(|name| place::names_secret(name, true));
    secret.then(|| format!("{value} may hold secrets."))
}

fn script_concern(kind: Operands, script: &str) -> Option<String> {
    match kind {
        Operands::Sed => sed::concern(script),
        Operands::Awk => awk::concern(script),
        Operands::Jq => jq::concern(script),
        _ => None,
    }
}

fn is_short(operand: &Arg) -> bool {
    let text = operand.text.trim_end_matches('s');
    operand.is_sure()
        && text
            .parse::<f64>()
            .is_ok_and(|seconds| (0.0..=SLEEP_LIMIT).contains(&seconds))
}
