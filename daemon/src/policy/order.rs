//! The order of judgement for command lines: guard, deny rule, ask rule, allow rule, session allowance, mode.

use std::path::PathBuf;

use super::Policy;
use super::facts::{CommandFact, Facts, PathFact};
use super::grant::Grant;
use super::mode::{Decision, Mode, Verdict};
use super::rule::{Rule, RuleDecision, Source};
use super::shell::{self, Analysis, Part};

pub(super) fn judge_command(facts: &Facts, command: &CommandFact, policy: &Policy<'_>) -> Verdict {
    let analysis = shell::analyse(command);
    let case = Case {
        facts,
        command,
        policy,
        analysis: &analysis,
    };
    let mut verdict = settle(case.verdict(), policy.mode);
    verdict.parts = analysis.shown();
    verdict
}

/// In mode `none` what would ask is denied, with the reason it would have asked for.
pub(super) fn settle(mut verdict: Verdict, mode: Mode) -> Verdict {
    if mode == Mode::None && verdict.decision == Decision::Ask {
        verdict.decision = Decision::Deny;
        verdict.reason = format!("{} Nothing is asked in this session (mode none).", verdict.reason);
    }
    verdict
}

pub(super) fn verdict_of(rule: &Rule) -> Verdict {
    if rule.source == Source::Unread {
        return Verdict::new(Decision::Ask, "Your rules cannot be read, and one of them may deny it.").by_rule(rule);
    }
    let (decision, reason) = match rule.decision {
        RuleDecision::Allow => (Decision::Allow, "A rule allows it."),
        RuleDecision::Ask => (Decision::Ask, "A rule asks for it."),
        RuleDecision::Deny => (Decision::Deny, "A rule denies it."),
    };
    Verdict::new(decision, reason).by_rule(rule)
}

/// Why a command that asks to leave the sandbox always asks: no rule, allowance or mode speaks for it.
const OUTSIDE: &str = "It runs outside the sandbox: it can write and read what you can. If it was tried before, that first run may have had effects.";

struct Case<'a> {
    facts: &'a Facts,
    command: &'a CommandFact,
    policy: &'a Policy<'a>,
    analysis: &'a Analysis,
}

/// Who lets one part of a command line run.
#[derive(Clone, Copy)]
enum Cover<'a> {
    Rule(&'a Rule),
    Grant(&'a Grant),
    Builtin,
}

impl<'a> Case<'a> {
    fn verdict(&self) -> Verdict {
        let quoted = self
            .allowing()
            .find(|rule| rule.quotes(&self.facts.tool, &self.command.text));
        let lifts = quoted.filter(|rule| rule.source == Source::User);
        if let (Some(reason), None) = (self.analysis.blocks.first(), lifts) {
            return Verdict::new(Decision::Blocked, reason.as_str());
        }
        for decision in [RuleDecision::Deny, RuleDecision::Ask] {
            if let Some(rule) = self
                .policy
                .rules
                .iter()
                .find(|rule| rule.decision == decision && self.touches(rule))
            {
                return verdict_of(rule);
            }
        }
        if self.command.outside_sandbox {
            return Verdict::new(Decision::Ask, OUTSIDE);
        }
        let whole = self.allowing().find(|rule| rule.is_about_all_of(&self.facts.tool));
        if let Some(rule) = quoted.or(whole.filter(|_| self.analysis.unseen.is_none())) {
            return verdict_of(rule);
        }
        if let Some(grant) = self.policy.grants.iter().find(|grant| grant.quotes(self.facts)) {
            return Verdict::new(Decision::Allow, "Allowed for this session.").by_rule(grant);
        }
        match self.concern() {
            Ok(covers) => self.allowed(&covers),
            Err(_) if self.policy.mode == Mode::All && self.analysis.unseen.is_none() => {
                Verdict::new(Decision::Allow, "The mode allows everything.")
            }
            Err(reason) => Verdict::new(Decision::Ask, self.changed_since_trusted().unwrap_or(reason)),
        }
    }

    /// Why a rule that would allow the command does not.
    fn changed_since_trusted(&self) -> Option<String> {
        let changed = |rule: &&Rule| rule.may_allow() && !rule.holds_for(self.command) && self.touches(rule);
        let rule = self.policy.rules.iter().find(changed)?;
        Some(format!(
            "A script is not what it was when its rule was trusted ({rule}): agentctl trust"
        ))
    }

    fn touches(&self, rule: &Rule) -> bool {
        rule.quotes(&self.facts.tool, &self.command.text)
            || rule.is_about_all_of(&self.facts.tool)
            || self
                .analysis
                .parts
                .iter()
                .any(|part| rule.touches_part(&self.facts.tool, part))
    }

    /// Who lets each part run, or the first reason to ask.
    fn concern(&self) -> Result<Vec<Cover<'a>>, String> {
        let analysis = self.analysis;
        if let Some(reason) = analysis.unseen.iter().chain(&analysis.asks).next() {
            return Err(reason.clone());
        }
        let mut covers = Vec::with_capacity(analysis.parts.len());
        for part in &analysis.parts {
            match self.cover(part) {
                Some(cover) => covers.push(cover),
                None => return Err(self.uncovered(part)),
            }
        }
        // What a rule or an allowance covers may go where it wants; the built-in list reads inside the project only.
        let builtin = covers.iter().any(|cover| matches!(cover, Cover::Builtin));
        match self
            .command
            .operands
            .iter()
            .filter(|_| builtin)
            .find_map(|path| operand_concern(path, &self.command.roots))
        {
            Some(reason) => Err(reason),
            None => Ok(covers),
        }
    }

    /// The rules that may allow it as its scripts are now. One that is for a project, or for each, counts inside it alone.
    fn allowing(&self) -> impl Iterator<Item = &'a Rule> {
        let command = self.command;
        let inside = command.starts_inside();
        let rules = self.policy.rules.iter();
        rules.filter(move |rule| inside && rule.may_allow() && rule.holds_for(command))
    }

    /// Why nobody lets a part run. Where somebody would but for what stands around its words, that is the reason.
    fn uncovered(&self, part: &Part) -> String {
        let tool = &self.facts.tool;
        let rules = self.policy.rules.iter().filter(|rule| rule.may_allow());
        let by_rule = |rule: &Rule| rule.covers_part(tool, part) || rule.quotes(tool, &self.command.text);
        let has_rule = rules.into_iter().any(by_rule);
        let has_grant = self
            .policy
            .grants
            .iter()
            .any(|grant| grant.names(tool, &self.command.text, part));
        match part.extras.first() {
            _ if has_rule && !self.command.starts_inside() => {
                "It runs outside the project, where no rule allows anything.".to_owned()
            }
            _ if has_grant && !self.command.starts_inside() => {
                "It runs in another directory than what was allowed for this session.".to_owned()
            }
            Some(extra) if has_rule || has_grant => format!("{extra} No rule or allowance covers that."),
            _ => part
                .concern()
                .unwrap_or("The built-in list is switched off.")
                .to_owned(),
        }
    }

    fn cover(&self, part: &Part) -> Option<Cover<'a>> {
        let tool = &self.facts.tool;
        let grants = self.policy.grants.iter().filter(|grant| grant.counts_for(self.command));
        let mut by_words = self.allowing().map(Cover::Rule).chain(grants.map(Cover::Grant));
        let found = by_words.find(|cover| match cover {
            Cover::Rule(rule) => covered_with_parents(self.analysis, part, |part| rule.covers_part(tool, part)),
            Cover::Grant(grant) => covered_with_parents(self.analysis, part, |part| grant.covers_part(tool, part)),
            Cover::Builtin => false,
        });
        found.or_else(|| (self.policy.builtin_allow && part.is_harmless()).then_some(Cover::Builtin))
    }

    fn allowed(&self, covers: &[Cover<'_>]) -> Verdict {
        let spoke = covers.iter().find(|cover| !matches!(cover, Cover::Builtin));
        match spoke {
            Some(Cover::Rule(rule)) => verdict_of(rule),
            Some(Cover::Grant(grant)) => Verdict::new(Decision::Allow, "Allowed for this session.").by_rule(grant),
            _ => Verdict {
                read_only: true,
                ..Verdict::new(Decision::Allow, "It only reads inside the project.")
            },
        }
    }
}

/// Why a file that the target found keeps a command from running unasked.
fn operand_concern(path: &PathFact, roots: &[PathBuf]) -> Option<String> {
    if let Some(reason) = path.concern("leads", roots) {
        return Some(reason);
    }
    let shown = &path.shown;
    let reads_as_option = |name: &str| name.rsplit('/').next().is_some_and(|name| name.starts_with('-'));
    let optional = reads_as_option(shown) || reads_as_option(&path.resolved.to_string_lossy());
    optional.then(|| format!("{shown} is a file whose name reads as an option."))
}

/// Whether words cover a part: its own, or those of the command that runs it.
pub(super) fn covered_with_parents(analysis: &Analysis, part: &Part, covers: impl Fn(&Part) -> bool) -> bool {
    let mut at = Some(part);
    // A parent always stands before its child, so this ends.
    while let Some(part) = at {
        if part.extras.is_empty() && covers(part) {
            return true;
        }
        at = part.parent.and_then(|parent| analysis.parts.get(parent));
    }
    false
}
