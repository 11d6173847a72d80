//! The order of judgement for command lines: guard, deny rule, ask rule, allow rule, session allowance, mode.

use super::Policy;
use super::facts::{CommandFact, Facts};
use super::mode::{Decision, Mode, Verdict};
use super::rule::{Rule, RuleDecision};

pub(super) fn judge_command(facts: &Facts, command: &CommandFact, policy: &Policy<'_>) -> Verdict {
    if let Some(grant) = policy.grants.iter().find(|grant| grant.covers(facts)) {
        return Verdict::new(Decision::Allow, "Allowed for this session.").by_rule(grant);
    }
    if policy.mode == Mode::All {
        return Verdict::new(Decision::Allow, "The mode allows everything.");
    }
    let mut verdict = settle(Verdict::new(Decision::Ask, "Commands ask."), policy.mode);
    verdict.parts = vec![command.text.clone()];
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
    let (decision, reason) = match rule.decision {
        RuleDecision::Allow => (Decision::Allow, "A rule allows it."),
        RuleDecision::Ask => (Decision::Ask, "A rule asks for it."),
        RuleDecision::Deny => (Decision::Deny, "A rule denies it."),
    };
    Verdict::new(decision, reason).by_rule(rule)
}
