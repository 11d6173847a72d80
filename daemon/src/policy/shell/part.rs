//! One simple command as it would run, with what the built-in list says about it.

use std::path::PathBuf;

use super::arg::Arg;
use super::git;
use super::place::Cwd;

/// What the built-in list of read-only commands says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It only reads inside the project.
    Harmless,
    /// A person should see it, with the reason in one sentence.
    Asks(String),
}

/// One simple command.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// As shown to people: the words after expansion, `…` for what is not known.
    pub text: String,
    /// Words after expansion.
    pub(super) args: Vec<Arg>,
    /// Where it runs.
    pub(super) cwd: Cwd,
    pub(crate) standing: Standing,
    /// What no rule about words covers: assignments in front of it, files it is redirected to, another directory.
    pub(crate) extras: Vec<String>,
    /// The part that runs this one: `sudo`, `xargs`, `sh -c`.
    pub(crate) parent: Option<usize>,
    pub(super) operands: Vec<PathBuf>,
    /// Those of its words that name files, if it is harmless.
    pub(super) files: Vec<PathBuf>,
}

impl Part {
    /// The words whose value is certain, up to the first that is not.
    #[must_use]
    pub fn sure_words(&self) -> Vec<String> {
        self.args
            .iter()
            .take_while(|arg| arg.is_sure() && !arg.glob)
            .map(|arg| arg.text.clone())
            .collect()
    }

    /// The ways a rule that restricts may name this command: as written, without its directory, and without what
    /// stands between `git` and its subcommand.
    #[must_use]
    pub fn spellings(&self) -> Vec<Vec<String>> {
        let written: Vec<String> = self.args.iter().map(|arg| arg.text.clone()).collect();
        let mut bare = written.clone();
        if let Some(first) = bare.first_mut() {
            *first = base_name(first).to_owned();
        }
        let mut all = vec![written];
        if let Some(short) = git::without_global_options(&bare) {
            all.push(short);
        }
        if !all.contains(&bare) {
            all.push(bare);
        }
        all
    }

    /// Absolute paths its words may name.
    #[must_use]
    pub fn operand_paths(&self) -> &[PathBuf] {
        &self.operands
    }

    /// Whether it is known to change nothing and nothing around it says otherwise.
    pub(crate) fn is_harmless(&self) -> bool {
        self.standing == Standing::Harmless && self.extras.is_empty()
    }

    /// Why it asks; none if it is harmless.
    pub(crate) fn concern(&self) -> Option<&str> {
        match &self.standing {
            Standing::Asks(reason) => Some(reason),
            Standing::Harmless => self.extras.first().map(String::as_str),
        }
    }
}

/// The last component of a command word.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
