//! Command lines taken apart: what they would run, what the guard stops, what may run unasked.
//!
//! `parse` turns text into a syntax tree; `walk` goes through it as the shell would, with `expand` telling what each
//! word becomes as far as text alone tells; `run` looks at each simple command: `destructive`, `git` and `own` are the
//! guard, `wrappers`, `shells`, `xargs` and `find` find the commands inside commands, `readonly` is the built-in list.

use super::facts::CommandFact;

mod arg;
mod arithmetic;
mod awk;
mod destructive;
mod devices;
mod disguise;
mod escapes;
mod expand;
mod extended_test;
mod find;
mod fork_bomb;
mod git;
mod git_table;
mod jq;
mod options;
mod output;
mod own;
mod parameter;
mod parse;
mod part;
mod pattern;
mod place;
mod reach;
mod readonly;
mod readonly_row;
mod readonly_table;
mod redirect;
mod rough;
mod run;
mod scope;
mod sed;
mod shells;
mod simple;
mod walk;
mod wrappers;
mod xargs;

pub use part::Part;
pub use reach::{Reach, reach};

/// What is known about a command line before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// The simple commands, in the order they were met.
    pub parts: Vec<Part>,
    /// Why the line as a whole needs a person, whatever its commands are.
    pub asks: Vec<String>,
    /// Why it may look like something else to a person; one of `asks` too.
    pub disguise: Option<String>,
    /// Why the guard stops it.
    pub blocks: Vec<String>,
    /// Why the guard could not see all of it.
    pub unseen: Option<String>,
    /// What a person reads beside the parts, each before the part of this index.
    asides: Vec<(usize, String)>,
}

impl Analysis {
    /// The line in pieces, for people: its commands and, between them, the redirections and assignments of none of them.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        let mut shown: Vec<String> = self.parts.iter().map(|part| part.text.clone()).collect();
        for (at, text) in self.asides.iter().rev() {
            shown.insert((*at).min(shown.len()), text.clone());
        }
        shown
    }
}

/// Takes a command line apart. Never fails: what cannot be read is said in `unseen`.
#[must_use]
pub fn analyse(command: &CommandFact) -> Analysis {
    let mut walker = walk::Walker::new(command);
    if let Some(reason) = disguise::of(&command.text) {
        walker.ask(&reason);
        walker.disguise = Some(reason);
    }
    walker.run_line();
    Analysis {
        disguise: walker.disguise,
        parts: walker.parts,
        asks: walker.asks,
        blocks: walker.blocks,
        unseen: walker.unseen,
        asides: walker.asides,
    }
}

/// Absolute paths and patterns that a command line would read without being asked about, for the target to resolve:
/// a link may lead out of the project, a pattern may match a secret or a name that reads as an option.
#[must_use]
pub fn operands(command: &CommandFact) -> Vec<String> {
    let command = CommandFact {
        sandbox: true,
        git_config: Vec::new(),
        ..command.clone()
    };
    let mut walker = walk::Walker::new(&command);
    walker.run_line();
    let files = walker.parts.iter().flat_map(|part| &part.files).chain(&walker.reads);
    let mut names: Vec<String> = files
        .map(|path| path.to_string_lossy().into_owned())
        .filter(|path| !path.contains(arg::UNKNOWN) && !place::is_harmless_file(path))
        .collect();
    names.sort();
    names.dedup();
    names
}
