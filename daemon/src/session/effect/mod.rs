//! The work a state can want: a model call, a tool call, a job. An effect reads what it needs, shows its progress in a feed, and ends in one
//! value that becomes an input. It never appends and never decides.

pub(crate) mod instructions;
pub(crate) mod job;
pub(crate) mod model;
mod said;
pub(crate) mod tool;
