//! Reading rules from TOML text and checking that each means what its examples say.
//!
//! ```toml
//! [[rule]]
//! decision = "allow"            # allow, ask or deny
//! tool = "bash"
//! command = "cargo test"        # the first words; or ["cargo", "test"]; `*` is any one word
//! match = ["cargo test --lib"]
//! no_match = ["cargo publish"]
//!
//! [[rule]]
//! decision = "deny"
//! paths = ["secrets/**"]        # relative to the project
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::facts::CommandFact;
use super::rule::{PathGlob, Rule, RuleDecision, Source, host_matches};
use super::shell;

/// Largest text read; a file of rules that people keep in mind is far smaller.
pub const RULES_LIMIT_BYTES: usize = 256 * 1024;
/// Most rules in one text: each is tried on each call.
pub const RULES_LIMIT: usize = 1_000;

/// What is wrong with a text of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("line {line}: {message}")]
    Syntax { line: usize, message: String },
    #[error("the rules are longer than {RULES_LIMIT_BYTES} bytes or more than {RULES_LIMIT}")]
    TooMany,
    #[error("rule {number} ({rule}): {problem}")]
    Meaning {
        number: usize,
        rule: String,
        problem: String,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    #[serde(default, rename = "rule")]
    rules: Vec<Rule>,
}

/// Reads the rules of one file and checks their examples.
///
/// # Errors
/// The first thing that is wrong, with its line or the rule's number counted from 1.
pub fn parse_rules(text: &str, source: Source) -> Result<Vec<Rule>, RuleError> {
    if text.len() > RULES_LIMIT_BYTES {
        return Err(RuleError::TooMany);
    }
    let file: RulesFile = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    if file.rules.len() > RULES_LIMIT {
        return Err(RuleError::TooMany);
    }
    let mut rules = file.rules;
    for (i, rule) in rules.iter_mut().enumerate() {
        rule.source = source;
        check(rule).map_err(|problem| RuleError::Meaning {
            number: i + 1,
            rule: rule.to_string(),
            problem,
        })?;
    }
    Ok(rules)
}

/// The rule as a `[[rule]]` table to add to a file.
///
/// # Errors
/// If the rule itself would be refused when it is read.
pub fn rule_as_toml(rule: &Rule) -> Result<String, RuleError> {
    check(rule).map_err(|problem| RuleError::Meaning {
        number: 1,
        rule: rule.to_string(),
        problem,
    })?;
    toml::to_string(&RulesFile {
        rules: vec![rule.clone()],
    })
    .map_err(|error| RuleError::Meaning {
        number: 1,
        rule: rule.to_string(),
        problem: error.to_string(),
    })
}

/// The line is counted from the error's place; the source line is left out, since it may hold what nobody should see.
fn syntax(text: &str, error: &toml::de::Error) -> RuleError {
    let start = error.span().map_or(0, |span| span.start);
    let line = text.get(..start).unwrap_or(text).matches('\n').count() + 1;
    RuleError::Syntax {
        line,
        message: error.message().to_owned(),
    }
}

fn check(rule: &Rule) -> Result<(), String> {
    if rule
        .command
        .as_ref()
        .is_some_and(|words| words.0.is_empty() || words.0.iter().any(String::is_empty))
    {
        return Err("`command` needs at least one word, and no word may be empty".to_owned());
    }
    if rule.command.is_some() && rule.exact.is_some() {
        return Err("`command` and `exact` exclude each other".to_owned());
    }
    if rule.exact.as_ref().is_some_and(|exact| exact.trim().is_empty()) {
        return Err("`exact` is empty".to_owned());
    }
    let says_nothing = rule.tool.is_none()
        && rule.command.is_none()
        && rule.exact.is_none()
        && rule.paths.is_empty()
        && rule.hosts.is_empty();
    if says_nothing {
        return Err("it names no tool, command, path or host".to_owned());
    }
    for glob in &rule.paths {
        PathGlob::new(glob).map_err(|error| format!("`paths`: {error}"))?;
    }
    for example in &rule.matches {
        if !speaks_of(rule, example) {
            return Err(format!("it does not match its example `{example}`"));
        }
    }
    for example in &rule.no_match {
        if speaks_of(rule, example) {
            return Err(format!("it matches `{example}`, which it should not"));
        }
    }
    Ok(())
}

/// Whether the rule speaks of an example: a command line, a path or a host, whichever the rule is about.
fn speaks_of(rule: &Rule, example: &str) -> bool {
    if rule.command.is_none() && rule.exact.is_none() {
        let by_path = rule
            .paths
            .iter()
            .any(|glob| PathGlob::new(glob).is_ok_and(|glob| glob.matches(Path::new(example))));
        return by_path || rule.hosts.iter().any(|pattern| host_matches(pattern, example));
    }
    let tool = rule.tool.as_deref().filter(|tool| *tool != "*").unwrap_or("bash");
    if rule.quotes(tool, example) {
        return true;
    }
    // Examples are read as if typed in the project, wherever that is.
    let root = rule.root.clone().unwrap_or_else(|| PathBuf::from("/project"));
    let command = CommandFact {
        text: example.to_owned(),
        cwd: root.clone(),
        roots: vec![root.clone()],
        ..CommandFact::default()
    };
    let bound = rule.bind(&root).unwrap_or_else(|| rule.clone());
    let analysis = shell::analyse(&command);
    match rule.decision {
        RuleDecision::Deny | RuleDecision::Ask => analysis.parts.iter().any(|part| bound.touches_part(tool, part)),
        RuleDecision::Allow => {
            analysis.asks.is_empty()
                && analysis
                    .parts
                    .iter()
                    .any(|part| part.extras.is_empty() && bound.covers_part(tool, part))
        }
    }
}
