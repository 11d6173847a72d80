//! Judging calls that run no command: file tools and tools that reach a host.

use std::path::{Path, PathBuf};

use super::facts::{Access, Facts, PathFact};
use super::mode::{Decision, Mode, Verdict};
use super::rule::{Rule, RuleDecision};
use super::{Policy, order};

pub(super) fn judge_call(facts: &Facts, policy: &Policy<'_>) -> Verdict {
    if let Some(path) = facts
        .paths
        .iter()
        .find(|path| path.access == Access::Write && is_own_file(&path.resolved))
    {
        let reason = format!(
            "{} belongs to agentd itself; change it with agentctl outside the session.",
            path.shown
        );
        return Verdict::new(Decision::Blocked, reason);
    }
    if let Some(verdict) = by_rule(facts, policy.rules, RuleDecision::Deny) {
        return verdict;
    }
    if let Some(verdict) = by_rule(facts, policy.rules, RuleDecision::Ask) {
        return order::settle(verdict, policy.mode);
    }
    if let Some(verdict) = by_rule(facts, policy.rules, RuleDecision::Allow) {
        return verdict;
    }
    if let Some(grant) = policy.grants.iter().find(|grant| grant.covers(facts)) {
        return Verdict::new(Decision::Allow, "Allowed for this session.").by_rule(grant);
    }
    by_mode(facts, policy.mode)
}

fn by_rule(facts: &Facts, rules: &[Rule], decision: RuleDecision) -> Option<Verdict> {
    let rule = rules.iter().find(|rule| {
        rule.decision == decision && (decision != RuleDecision::Allow || rule.may_allow()) && rule.matches_call(facts)
    })?;
    Some(order::verdict_of(rule))
}

fn by_mode(facts: &Facts, mode: Mode) -> Verdict {
    if mode == Mode::All {
        return Verdict::new(Decision::Allow, "The mode allows everything.");
    }
    match concern(facts, mode) {
        Some(reason) => order::settle(Verdict::new(Decision::Ask, reason), mode),
        None => Verdict::new(
            Decision::Allow,
            if facts.writes {
                "Edits inside the project are allowed."
            } else {
                "Reads inside the project only."
            },
        ),
    }
}

/// Why a person should look at this call first; none if the mode lets it run.
fn concern(facts: &Facts, mode: Mode) -> Option<String> {
    if let Some(host) = &facts.host {
        return Some(format!("It reaches {host} over the network."));
    }
    if let Some(reason) = facts.paths.iter().find_map(|path| path_concern(path, &facts.roots)) {
        return Some(reason);
    }
    let changes = facts.writes || facts.paths.iter().any(|path| path.access == Access::Write);
    match (changes, mode) {
        (false, _) => None,
        (true, Mode::Edits) if !facts.paths.is_empty() => None,
        (true, _) => Some(match facts.paths.first() {
            Some(path) => format!("It changes {}.", path.shown),
            None => format!("{} can change things.", facts.tool),
        }),
    }
}

fn path_concern(path: &PathFact, roots: &[PathBuf]) -> Option<String> {
    if let Some(reason) = path.concern("is", roots) {
        return Some(reason);
    }
    (path.protected && path.access == Access::Write)
        .then(|| format!("A change of {} can make later commands run code.", path.shown))
}

/// Where the daemon keeps its own files, by the end of the directory's path; `*` is any name.
const OWN_DIRECTORIES: &[&[&str]] = &[
    &[".config", "agentd"],
    &[".local", "state", "agentd"],
    &[".local", "share", "agentd"],
    &[".cache", "agentd"],
    &["run", "agentd"],
    &["run", "user", "*", "agentd"],
    &["var", "lib", "agentd"],
];

/// Whether a path lies in the daemon's own state, configuration or runtime directory.
pub(crate) fn is_own_file(path: &Path) -> bool {
    let names: Vec<&str> = path
        .components()
        .filter_map(|component| component.as_os_str().to_str())
        .collect();
    OWN_DIRECTORIES.iter().any(|directory| {
        names.windows(directory.len()).any(|window| {
            window
                .iter()
                .zip(*directory)
                .all(|(name, own)| *own == "*" || name == own)
        })
    })
}
