//! Command lines taken apart into simple commands.

use std::path::PathBuf;

use super::facts::CommandFact;

/// One simple command of a command line, as it would run.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// As shown to people.
    pub text: String,
    words: Vec<String>,
}

impl Part {
    /// The words whose value is certain, up to the first that is not.
    #[must_use]
    pub fn sure_words(&self) -> Vec<String> {
        self.words.clone()
    }

    /// The ways a rule may name this command.
    #[must_use]
    pub fn spellings(&self) -> Vec<Vec<String>> {
        vec![self.words.clone()]
    }

    /// Absolute paths its operands name.
    #[must_use]
    pub fn operand_paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Words of the command line that name files, for the target to resolve.
#[must_use]
pub fn operands(_command: &CommandFact) -> Vec<String> {
    Vec::new()
}
