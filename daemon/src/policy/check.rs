//! Whether a rule says what its author means: it names something, its globs can be read, and its examples hold.
//!
//! An example is a command line where the rule is about commands, a host where it is about hosts, else a path.

use std::path::{Path, PathBuf};

use super::facts::{Access, CommandFact, Inside, PathFact};
use super::order::covered_with_parents;
use super::rule::{PathGlob, Rule, RuleDecision};
use super::shell;

/// Where examples are imagined to run when a rule is for every project.
const SOMEWHERE: &str = "/project";

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// It would speak on everything.
    #[error("the rule names nothing: give `tool`, `command`, `exact`, `paths` or `hosts`")]
    NamesNothing,
    /// `command` and `exact` exclude each other.
    #[error("`command` and `exact` cannot both be given")]
    TwoCommands,
    /// A word or text is empty.
    #[error("`{0}` is empty")]
    Empty(&'static str),
    /// A glob that cannot be read.
    #[error("`{glob}` is no path glob: {reason}")]
    Glob {
        /// As written.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An example of `match` that it does not speak on.
    #[error("the rule does not match its own example `{0}`")]
    MustMatch(String),
    /// An example of `no_match` that it speaks on.
    #[error("the rule matches `{0}`, which it says it must not")]
    MustNotMatch(String),
}

impl Rule {
    /// Checks the rule and its examples.
    ///
    /// # Errors
    /// What is wrong, the first thing found.
    pub fn check(&self) -> Result<(), RuleFault> {
        self.check_parts()?;
        let root = self.root.clone().unwrap_or_else(|| PathBuf::from(SOMEWHERE));
        let Some(bound) = self.bind(&root) else { return Ok(()) };
        if let Some(example) = self.matches.iter().find(|example| !bound.speaks_on(example, &root)) {
            return Err(RuleFault::MustMatch(example.clone()));
        }
        match self.no_match.iter().find(|example| bound.speaks_on(example, &root)) {
            Some(example) => Err(RuleFault::MustNotMatch(example.clone())),
            None => Ok(()),
        }
    }

    fn check_parts(&self) -> Result<(), RuleFault> {
        if self.command.is_some() && self.exact.is_some() {
            return Err(RuleFault::TwoCommands);
        }
        let no_words = |words: &[String]| words.is_empty() || words.iter().any(String::is_empty);
        if self.command.as_ref().is_some_and(|words| no_words(&words.0)) {
            return Err(RuleFault::Empty("command"));
        }
        if self.exact.as_ref().is_some_and(|exact| exact.trim().is_empty()) {
            return Err(RuleFault::Empty("exact"));
        }
        if self.hosts.iter().any(String::is_empty) {
            return Err(RuleFault::Empty("hosts"));
        }
        for glob in &self.paths {
            if let Err(error) = PathGlob::new(glob) {
                return Err(RuleFault::Glob {
                    glob: glob.clone(),
                    reason: error.kind().to_string(),
                });
            }
        }
        let names = self.tool.as_deref().is_some_and(|tool| tool != "*")
            || self.command.is_some()
            || self.exact.is_some()
            || !self.paths.is_empty()
            || !self.hosts.is_empty();
        if names { Ok(()) } else { Err(RuleFault::NamesNothing) }
    }

    /// Whether the rule, bound to `root`, speaks on an example.
    fn speaks_on(&self, example: &str, root: &Path) -> bool {
        if !self.hosts.is_empty() {
            return self.matches_host(Some(example));
        }
        let commands = self.command.is_some() || self.exact.is_some() || self.tool.as_deref() == Some("bash");
        if commands {
            self.speaks_on_command(example, root)
        } else {
            self.matches_paths(&[path_fact(example, root)])
        }
    }

    fn speaks_on_command(&self, text: &str, root: &Path) -> bool {
        let tool = self.tool.as_deref().filter(|tool| *tool != "*").unwrap_or("bash");
        if self.quotes(tool, text) {
            return true;
        }
        let command = CommandFact {
            text: text.to_owned(),
            cwd: root.to_owned(),
            roots: vec![root.to_owned()],
            ..CommandFact::default()
        };
        let analysis = shell::analyse(&command);
        match self.decision {
            RuleDecision::Allow => {
                let covered = |part| covered_with_parents(&analysis, part, |part| self.covers_part(tool, part));
                !analysis.parts.is_empty() && analysis.parts.iter().all(covered)
            }
            RuleDecision::Ask | RuleDecision::Deny => analysis.parts.iter().any(|part| self.touches_part(tool, part)),
        }
    }
}

fn path_fact(shown: &str, root: &Path) -> PathFact {
    let resolved = root.join(shown.trim_start_matches("./"));
    let inside = if resolved.starts_with(root) {
        Inside::Inside
    } else {
        Inside::Outside
    };
    PathFact {
        shown: shown.to_owned(),
        resolved,
        inside,
        access: Access::Read,
        secret: false,
        protected: false,
        foreign: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rule::CommandWords;

    fn about(decision: RuleDecision, words: &str) -> Rule {
        let mut rule = Rule::new(decision);
        rule.command = Some(CommandWords(words.split(' ').map(str::to_owned).collect()));
        rule
    }

    #[test]
    fn examples_that_hold_are_accepted() {
        let mut allow = about(RuleDecision::Allow, "cargo test");
        allow.matches = vec![
            "cargo test -p x".to_owned(),
            "cargo test && cargo test --all".to_owned(),
        ];
        allow.no_match = vec!["cargo test; rm x".to_owned(), "cargo build".to_owned()];
        assert_eq!(allow.check(), Ok(()));
        let mut deny = about(RuleDecision::Deny, "git push");
        deny.matches = vec![
            "ls && git -C sub push origin".to_owned(),
            "/usr/bin/git push".to_owned(),
        ];
        deny.no_match = vec!["git pull".to_owned(), "echo 'git push'".to_owned()];
        assert_eq!(deny.check(), Ok(()));
        let mut paths = Rule::new(RuleDecision::Deny);
        paths.paths = vec!["secrets/**".to_owned()];
        paths.matches = vec!["secrets/a/b".to_owned()];
        paths.no_match = vec!["src/secrets.rs".to_owned()];
        assert_eq!(paths.check(), Ok(()));
        let mut host = Rule::new(RuleDecision::Allow);
        host.hosts = vec!["*.example.com".to_owned()];
        host.matches = vec!["docs.example.com".to_owned()];
        host.no_match = vec!["example.com.evil.org".to_owned()];
        assert_eq!(host.check(), Ok(()));
    }

    #[test]
    fn an_example_that_does_not_hold_names_itself() {
        let mut rule = about(RuleDecision::Allow, "cargo test");
        rule.matches = vec!["cargo build".to_owned()];
        assert_eq!(rule.check(), Err(RuleFault::MustMatch("cargo build".to_owned())));
        rule.matches.clear();
        rule.no_match = vec!["cargo test --all".to_owned()];
        assert_eq!(
            rule.check(),
            Err(RuleFault::MustNotMatch("cargo test --all".to_owned()))
        );
    }

    #[test]
    fn a_rule_that_says_nothing_or_nonsense_is_refused() {
        assert_eq!(Rule::new(RuleDecision::Allow).check(), Err(RuleFault::NamesNothing));
        let mut any = Rule::new(RuleDecision::Allow);
        any.tool = Some("*".to_owned());
        assert_eq!(any.check(), Err(RuleFault::NamesNothing));
        let mut both = about(RuleDecision::Deny, "a");
        both.exact = Some("a".to_owned());
        assert_eq!(both.check(), Err(RuleFault::TwoCommands));
        let mut glob = Rule::new(RuleDecision::Deny);
        glob.paths = vec!["a[".to_owned()];
        assert!(matches!(glob.check(), Err(RuleFault::Glob { .. })));
    }
}
