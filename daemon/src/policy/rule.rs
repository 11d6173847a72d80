//! Rules: allow, ask or deny for a tool, the words of a command, paths and hosts.
//!
//! A file holds `[[rule]]` tables. Every part of a rule that is given must match; `command` matches the first words of
//! a simple command (`*` stands for any one word), `exact` the whole command line. An allow rule has to cover all of a
//! call, a deny or ask rule speaks as soon as it matches any of it. `match` and `no_match` are examples that are
//! checked when the rules are loaded, so a rule that does not mean what its author thinks is an error, not a hole.

use std::fmt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use super::facts::{Facts, PathFact};
use super::shell::Part;

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    Allow,
    Ask,
    Deny,
}

/// Which file a rule comes from. Only the user's own may allow anything or lift the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    #[default]
    User,
    Project,
}

/// One rule, as written in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub decision: RuleDecision,
    /// Name of the tool; none means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// First words of a simple command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandWords>,
    /// A whole command line. An allow rule of the user that quotes a blocked command is the only way past the guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Globs; relative ones count from the session's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Host names; `*.example.com` covers every name below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The project the rule is for; none means all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// Command lines or paths the rule must speak on.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Command lines or paths the rule must not speak on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_match: Vec<String>,
    #[serde(skip)]
    pub source: Source,
}

/// Words of a command: a list, or one string that is split at blanks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "WordsForm", into = "Vec<String>")]
pub struct CommandWords(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum WordsForm {
    Text(String),
    List(Vec<String>),
}

impl From<WordsForm> for CommandWords {
    fn from(form: WordsForm) -> Self {
        match form {
            WordsForm::Text(text) => Self(text.split_whitespace().map(str::to_owned).collect()),
            WordsForm::List(words) => Self(words),
        }
    }
}

impl From<CommandWords> for Vec<String> {
    fn from(words: CommandWords) -> Self {
        words.0
    }
}

impl CommandWords {
    /// Whether `words` begins with these.
    #[must_use]
    pub fn begin(&self, words: &[String]) -> bool {
        !self.0.is_empty()
            && words.len() >= self.0.len()
            && self
                .0
                .iter()
                .zip(words)
                .all(|(pattern, word)| pattern == "*" || pattern == word)
    }
}

impl Rule {
    /// A rule that says `decision` and, as it stands, matches everything.
    #[must_use]
    pub fn new(decision: RuleDecision) -> Self {
        Self {
            decision,
            tool: None,
            command: None,
            exact: None,
            paths: Vec::new(),
            hosts: Vec::new(),
            root: None,
            matches: Vec::new(),
            no_match: Vec::new(),
            source: Source::User,
        }
    }

    /// The rule as it holds in `root`: relative globs become absolute; none if it belongs to another project.
    #[must_use]
    pub fn bind(&self, root: &Path) -> Option<Self> {
        if self.root.as_deref().is_some_and(|own| own != root) {
            return None;
        }
        let mut bound = self.clone();
        for glob in &mut bound.paths {
            if !glob.starts_with('/') {
                *glob = format!(
                    "{}/{}",
                    globset::escape(&root.to_string_lossy()),
                    glob.trim_start_matches("./")
                );
            }
        }
        Some(bound)
    }

    /// Whether the rule allows, and comes from a file that may.
    #[must_use]
    pub fn may_allow(&self) -> bool {
        self.decision == RuleDecision::Allow && self.source == Source::User
    }

    fn speaks_of_tool(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|own| own == tool || own == "*")
    }

    fn has_command_part(&self) -> bool {
        self.command.is_some() || self.exact.is_some()
    }

    /// Whether the rule speaks about a call that runs no command: for `Allow` all of its paths and its host, else any.
    #[must_use]
    pub fn matches_call(&self, facts: &Facts) -> bool {
        if !self.speaks_of_tool(&facts.tool) || self.has_command_part() {
            return false;
        }
        self.matches_host(facts.host.as_deref()) && self.matches_paths(&facts.paths)
    }

    pub(super) fn matches_host(&self, host: Option<&str>) -> bool {
        if self.hosts.is_empty() {
            // An allow rule that names no host does not open the network.
            return host.is_none() || self.decision != RuleDecision::Allow;
        }
        host.is_some_and(|host| self.hosts.iter().any(|pattern| host_matches(pattern, host)))
    }

    pub(super) fn matches_paths(&self, paths: &[PathFact]) -> bool {
        if self.paths.is_empty() {
            return self.decision != RuleDecision::Allow || paths.iter().all(PathFact::is_plain);
        }
        let globs = self.globs();
        let hit = |path: &PathFact| {
            globs.iter().any(|glob| {
                (glob.matcher.is_match(&path.resolved) || glob.matcher.is_match(&path.shown))
                    && (self.decision != RuleDecision::Allow || !path.secret || glob.names_its_files)
            })
        };
        match self.decision {
            RuleDecision::Allow => !paths.is_empty() && paths.iter().all(hit),
            RuleDecision::Ask | RuleDecision::Deny => paths.iter().any(hit),
        }
    }

    fn globs(&self) -> Vec<PathGlob> {
        self.paths.iter().filter_map(|text| PathGlob::new(text).ok()).collect()
    }

    /// Whether a deny or ask rule speaks about this simple command in any of its spellings.
    #[must_use]
    pub fn touches_part(&self, tool: &str, part: &Part) -> bool {
        if !self.speaks_of_tool(tool) || !self.hosts.is_empty() || self.exact.is_some() {
            return false;
        }
        let words_match = match &self.command {
            Some(pattern) => part.spellings().iter().any(|words| pattern.begin(words)),
            None => self.tool.is_some() || !self.paths.is_empty(),
        };
        words_match && (self.paths.is_empty() || self.names_operand_of(part, OperandScope::Any))
    }

    /// Whether an allow rule covers this simple command as it is written.
    #[must_use]
    pub fn covers_part(&self, tool: &str, part: &Part) -> bool {
        if !self.speaks_of_tool(tool) || !self.hosts.is_empty() || self.exact.is_some() {
            return false;
        }
        let words_match = match &self.command {
            Some(pattern) => pattern.begin(&part.sure_words()),
            None => self.tool.is_some() && self.paths.is_empty(),
        };
        words_match && (self.paths.is_empty() || self.names_operand_of(part, OperandScope::All))
    }

    fn names_operand_of(&self, part: &Part, scope: OperandScope) -> bool {
        let globs = self.globs();
        let hit = |path: &PathBuf| globs.iter().any(|glob| glob.matcher.is_match(path));
        let operands = part.operand_paths();
        match scope {
            OperandScope::Any => operands.iter().any(hit),
            OperandScope::All => !operands.is_empty() && operands.iter().all(hit),
        }
    }

    /// Whether the rule is about all a tool may do, and names it.
    #[must_use]
    pub fn is_about_all_of(&self, tool: &str) -> bool {
        self.tool.as_deref() == Some(tool) && !self.has_command_part() && self.paths.is_empty() && self.hosts.is_empty()
    }

    /// Whether the rule quotes this very command line.
    #[must_use]
    pub fn quotes(&self, tool: &str, text: &str) -> bool {
        self.speaks_of_tool(tool) && self.exact.as_deref().is_some_and(|exact| exact.trim() == text.trim())
    }
}

#[derive(Clone, Copy)]
enum OperandScope {
    Any,
    All,
}

pub(super) struct PathGlob {
    matcher: GlobMatcher,
    /// The last component has a character that is no wildcard, so the author had certain files in mind.
    names_its_files: bool,
}

impl PathGlob {
    pub(super) fn new(text: &str) -> Result<Self, globset::Error> {
        let matcher = GlobBuilder::new(text)
            .literal_separator(true)
            .build()?
            .compile_matcher();
        let last = text.rsplit('/').next().unwrap_or_default();
        Ok(Self {
            matcher,
            names_its_files: last.chars().any(|c| !matches!(c, '*' | '?')),
        })
    }

    pub(super) fn matches(&self, path: &Path) -> bool {
        self.matcher.is_match(path)
    }
}

pub(super) fn host_matches(pattern: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
        None => pattern == "*" || pattern == host,
    }
}

impl fmt::Display for Rule {
    /// One line such as `deny bash: git push … for /home/ann/site`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.decision {
            RuleDecision::Allow => "allow",
            RuleDecision::Ask => "ask",
            RuleDecision::Deny => "deny",
        })?;
        write!(f, " {}", self.tool.as_deref().unwrap_or("*"))?;
        if let Some(words) = &self.command {
            write!(f, ": {} …", words.0.join(" "))?;
        }
        if let Some(exact) = &self.exact {
            write!(f, ": exactly {exact}")?;
        }
        if !self.paths.is_empty() {
            write!(f, " in {}", self.paths.join(", "))?;
        }
        if !self.hosts.is_empty() {
            write!(f, " at {}", self.hosts.join(", "))?;
        }
        if let Some(root) = &self.root {
            write!(f, " for {}", root.display())?;
        }
        Ok(())
    }
}
