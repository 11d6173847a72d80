//! Whether a rule that a person adds can ever speak: its tool is there and has what the rule is about, its words are words as a
//! command has them after the shell has read it, its hosts are names.

use super::rule::Rule;

/// The one tool that runs command lines.
const COMMANDS: &str = "bash";

/// Characters that no word has once the shell has read the line, unless they were quoted.
const SYNTAX: &[char] = &['$', '`', ';', '&', '|', '<', '>', '(', ')', '\'', '"', '\\', '\n'];

/// Why a rule would never speak.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeverMatches {
    /// No tool has this name.
    #[error("there is no tool `{0}`")]
    UnknownTool(String),
    /// The tool runs no command line.
    #[error("`{0}` runs no command, so no words can match")]
    NoCommand(String),
    /// A word that the shell would make something else of.
    #[error("`{0}` is no plain word: a rule is held against words as they are after the shell has read them")]
    NoWord(String),
    /// An address, or something else that is no host.
    #[error("`{0}` is no name of a host")]
    NoHost(String),
    /// Commands have no host of their own.
    #[error("a rule about words cannot name a host")]
    HostOfCommand,
}

impl NeverMatches {
    /// What to do about it; `tools` are those there are.
    #[must_use]
    pub fn hint(&self, tools: &[&str]) -> String {
        match self {
            Self::UnknownTool(name) => match protocol::nearest::nearest(name, tools) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", tools.join(", ")),
            },
            Self::NoCommand(tool) => {
                format!("name files with `--path GLOB`, or leave the words out for all that `{tool}` does")
            }
            Self::NoWord(_) => {
                "give the first words alone, such as `cargo test`, or a whole command line with `--exact`".to_owned()
            }
            Self::NoHost(text) => match host_in(text) {
                Some(host) => format!("leave out the rest of the address: `--host {host}`"),
                None => "write it as `docs.example.com`, or `*.example.com` for every name below".to_owned(),
            },
            Self::HostOfCommand => {
                "leave the words out, or the host: what commands reach is not held against rules".to_owned()
            }
        }
    }
}

/// Whether the rule can ever speak, in a daemon with these tools.
///
/// # Errors
/// The first reason why it never does.
pub fn can_match(rule: &Rule, tools: &[&str]) -> Result<(), NeverMatches> {
    let has_words = rule.command.is_some() || rule.exact.is_some();
    if let Some(tool) = rule.tool.as_deref().filter(|tool| *tool != "*") {
        if !tools.contains(&tool) {
            return Err(NeverMatches::UnknownTool(tool.to_owned()));
        }
        if has_words && tool != COMMANDS {
            return Err(NeverMatches::NoCommand(tool.to_owned()));
        }
    }
    let mut words = rule.command.iter().flat_map(|words| &words.0);
    if let Some(word) = words.find(|word| word.contains(SYNTAX)) {
        return Err(NeverMatches::NoWord(word.clone()));
    }
    if let Some(host) = rule.hosts.iter().find(|host| !is_host(host)) {
        return Err(NeverMatches::NoHost(host.clone()));
    }
    if has_words && !rule.hosts.is_empty() {
        return Err(NeverMatches::HostOfCommand);
    }
    Ok(())
}

/// A name, an address in numbers, or a pattern of names.
fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    text == "*"
        || name.trim_end_matches('.').split('.').all(is_label)
        || (text.matches(':').count() > 1 && text.chars().all(|c| c.is_ascii_hexdigit() || c == ':'))
}

/// The host of an address.
fn host_in(text: &str) -> Option<&str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    let host = host.split(':').next()?;
    (is_host(host) && host != text).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rule::{CommandWords, RuleDecision};

    const TOOLS: &[&str] = &["bash", "read_file", "fetch_url"];

    fn rule(tool: Option<&str>, words: &[&str], hosts: &[&str]) -> Rule {
        let mut rule = Rule::new(RuleDecision::Allow);
        rule.tool = tool.map(str::to_owned);
        rule.command = (!words.is_empty()).then(|| CommandWords(words.iter().map(|&word| word.to_owned()).collect()));
        rule.hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        rule
    }

    fn hint(rule: &Rule) -> String {
        can_match(rule, TOOLS)
            .err()
            .map(|fault| fault.hint(TOOLS))
            .unwrap_or_default()
    }

    #[test]
    fn a_rule_that_can_speak_is_taken() {
        for rule in [
            rule(Some("bash"), &["cargo", "test", "--", "*"], &[]),
            rule(None, &["make", "CC=gcc", "a-b_c.d", "c++"], &[]),
            rule(Some("read_file"), &[], &[]),
            rule(Some("*"), &[], &["*"]),
            rule(
                Some("fetch_url"),
                &[],
                &["docs.example.com", "*.example.com", "10.0.0.1", "::1", "localhost"],
            ),
        ] {
            assert_eq!(can_match(&rule, TOOLS), Ok(()), "{rule}");
        }
    }

    #[test]
    fn a_rule_that_never_speaks_is_refused_with_what_to_do() {
        assert!(hint(&rule(Some("nosuch"), &["x"], &[])).contains("read_file"));
        assert_eq!(hint(&rule(Some("read_fil"), &[], &[])), "did you mean `read_file`?");
        assert!(hint(&rule(Some("read_file"), &["ls"], &[])).contains("--path"));
        for word in ["$(id)", "`id`", "a;b", "'x", "a|b", "$HOME"] {
            assert!(
                hint(&rule(Some("bash"), &["echo", word], &[])).contains("--exact"),
                "{word}"
            );
        }
        for host in [
            "http://docs.example.com/",
            "docs.example.com:443",
            "me@docs.example.com/x",
        ] {
            assert!(
                hint(&rule(None, &[], &[host])).contains("--host docs.example.com`"),
                "{host}"
            );
        }
        assert!(hint(&rule(None, &[], &["a b"])).contains("*.example.com"));
        assert!(!hint(&rule(Some("bash"), &["curl"], &["example.com"])).is_empty());
    }
}
