//! Policy: may this call run? A pure function of the call's facts, the rules, the session's allowances and its mode.
//!
//! The first that speaks wins: guard, deny rule, ask rule, allow rule, session allowance, mode. Nothing here reads a
//! file, a clock or the environment, so a verdict can be recorded, repeated and tested.

use std::path::{Path, PathBuf};

mod beyond;
mod can_match;
mod check;
pub mod facts;
pub(crate) mod files;
pub mod grant;
pub mod mode;
mod order;
pub mod rule;
pub mod rules;
pub mod shell;
#[cfg(test)]
mod tests;

pub use beyond::goes_beyond;
pub use can_match::{NeverMatches, can_match};
pub use check::RuleFault;
pub use facts::{Access, CommandFact, Facts, Inside, PathFact};
pub use grant::{Grant, grant_for, offer};
pub use mode::{Decision, Mode, Verdict};
pub use rule::{CommandWords, Rule, RuleDecision, Source};
pub use rules::{RuleError, parse_rules, rule_as_toml};

/// What a call is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    pub mode: Mode,
    pub rules: &'a [Rule],
    /// What the person has allowed for this session.
    pub grants: &'a [Grant],
    /// Whether the built-in list of read-only commands runs without asking.
    pub builtin_allow: bool,
}

/// Judges a command line by rules and mode alone, as `agentctl rules test` does: nothing is looked up, and the read-only
/// sandbox counts as available.
#[must_use]
pub fn judge_command(
    text: &str,
    cwd: &Path,
    roots: &[PathBuf],
    home: Option<&Path>,
    mode: Mode,
    rules: &[Rule],
) -> Verdict {
    let command = CommandFact {
        text: text.to_owned(),
        cwd: cwd.to_owned(),
        roots: roots.to_vec(),
        home: home.map(Path::to_owned),
        sandbox: true,
        ..CommandFact::default()
    };
    let facts = Facts {
        tool: "bash".to_owned(),
        writes: true,
        command: Some(command),
        ..Facts::default()
    };
    judge(
        &facts,
        &Policy {
            mode,
            rules,
            grants: &[],
            builtin_allow: true,
        },
    )
}

/// Judges one call.
#[must_use]
pub fn judge(facts: &Facts, policy: &Policy<'_>) -> Verdict {
    match &facts.command {
        Some(command) => order::judge_command(facts, command, policy),
        None => files::judge_call(facts, policy),
    }
}
