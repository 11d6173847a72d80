//! What a model call is made from: the history read from the log, the system prompt, the tools, and the manifest that says so.

pub(crate) mod assemble;
pub(crate) mod history;
pub(crate) mod instructions;
pub(crate) mod prompt;
pub(crate) mod recipe;
mod sections;
pub(crate) mod tokens;
