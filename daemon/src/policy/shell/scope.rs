//! What is known about the shell at one point of a command line: variables, parameters, directory, functions.

use std::collections::HashMap;
use std::rc::Rc;

use brush_parser::ast::CompoundCommand;

use super::arg::{Arg, Certainty, Stream};
use super::place::Cwd;

/// The shell's state before a command runs.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub vars: HashMap<String, Var>,
    pub cwd: Cwd,
    /// `$1`, `$2`, …
    pub params: Vec<Arg>,
    /// `$0`, if it is known.
    pub zero: Option<String>,
    pub functions: HashMap<String, Rc<CompoundCommand>>,
    /// What standard input holds.
    pub stdin: Option<Stream>,
    /// The command runs beside others of its kind: in a pipeline or in the background.
    pub beside: bool,
    /// Whether the command runs depends on another.
    pub conditional: bool,
    /// Operands stand for everything below them: they come from `find`.
    pub below: bool,
}

/// A variable assigned on this command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Var {
    pub value: Arg,
    /// The elements, if it is an array.
    pub items: Option<Vec<Arg>>,
}

impl Scope {
    pub(super) fn new(cwd: Cwd) -> Self {
        Self {
            vars: HashMap::new(),
            cwd,
            params: Vec::new(),
            zero: None,
            functions: HashMap::new(),
            stdin: None,
            beside: false,
            conditional: false,
            below: false,
        }
    }

    pub(super) fn assign(&mut self, name: &str, value: Arg) {
        self.vars.insert(name.to_owned(), Var { value, items: None });
    }

    /// After code that may or may not have run, or may run again: what it changed is a guess from now on.
    pub(super) fn doubt_changes_since(&mut self, before: &Self) {
        for (name, var) in &mut self.vars {
            if before.vars.get(name) != Some(var) {
                var.value.certainty = Certainty::Unknown;
            }
        }
        if self.cwd != before.cwd {
            self.cwd = before.cwd.or(&self.cwd);
        }
        self.functions.extend(
            before
                .functions
                .iter()
                .map(|(name, body)| (name.clone(), Rc::clone(body))),
        );
    }

    /// Takes over what a branch may have changed.
    pub(super) fn merge(&mut self, branch: Self) {
        let before = self.clone();
        *self = branch;
        self.doubt_changes_since(&before);
        for (name, var) in before.vars {
            self.vars.entry(name).or_insert(var);
        }
    }
}

/// Variables everybody may print. Their values are not known here but hold no secret.
pub(super) const HARMLESS_VARIABLES: &[&str] = &[
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "TERM",
    "HOSTNAME",
    "OLDPWD",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "UID",
    "EUID",
    "PPID",
    "BASH_VERSION",
    "OSTYPE",
    "COLUMNS",
    "LINES",
];

/// Variables that may be set in front of a command, or alone, without changing what the command runs.
const HARMLESS_ASSIGNMENTS: &[&str] = &["LANG", "LANGUAGE", "TZ", "NO_COLOR", "COLUMNS"];

/// Names in capitals that scripts use for themselves and no program of the built-in list reads from its environment.
const PLAIN_NAMES: &[&str] = &[
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W",
    "X", "Y", "Z", "BAR", "BASE", "BRANCH", "COMMIT", "COUNT", "DIR", "DIRS", "END", "EXT", "FILE", "FILES", "FOO",
    "FROM", "HASH", "HEAD", "LAST", "LATEST", "NEW", "OLD", "PARENT", "INPUT", "LINE", "LOG", "MSG", "NAME", "NAMES",
    "NUM", "OUT", "OUTPUT", "PATTERN", "PKG", "PREFIX", "REF", "REPO", "RESULT", "ROOT", "SHA", "SIZE", "SRC", "START",
    "SUFFIX", "TAG", "TARGET", "TEXT", "TOTAL", "VALUE", "VERSION", "WORD",
];

/// Whether `NAME=… command` is harmless.
pub(super) fn may_precede_command(name: &str) -> bool {
    HARMLESS_ASSIGNMENTS.contains(&name) || name.starts_with("LC_")
}

/// Whether a variable may be set for the rest of the line. Names in capitals may be in the environment already, and
/// then the assignment changes what programs do; names in small letters practically never are.
pub(super) fn may_be_set(name: &str) -> bool {
    let own = name.chars().any(|c| c.is_ascii_lowercase()) && !name.to_ascii_lowercase().ends_with("_proxy");
    own || PLAIN_NAMES.contains(&name) || may_precede_command(name)
}
