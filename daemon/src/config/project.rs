//! A project's own file, `.agent/config.toml` in its root: what a repository may say about how it is worked on.
//!
//! It comes with whatever was cloned, so it may only narrow: one table (`keys`) says for each key of the configuration what a
//! project may do with it, and a key without a row is refused. What widens counts only once the person trusts this very
//! content in this very directory; models, keys and programs are never read from a project at all.

use std::cmp::Reverse;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use protocol::{Mode, Unattended};
use serde::Deserialize;
use toml::Spanned;

use super::context::{self, ContextSettings, Owner, WrittenContext};
use super::error::ConfigError;
use super::load::WrittenSandbox;
use super::shown::Shown;
use super::trust::{Pin, Trust};
use super::values::{ModeWord, UnattendedWord};
use super::{Book, Config, rules};
use crate::policy::rule::Source;
use crate::policy::{Rule, RuleDecision};
use keys::Keys;

mod file;
mod keys;
mod wish;

pub use file::{File, open, path};
pub use wish::SandboxWish;

/// What a project's file says, as far as it counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// Its deny and ask rules and, if it is trusted, its allow rules; bound to the root.
    pub rules: Vec<Rule>,
    pub mode: Option<Mode>,
    pub max_steps: Option<u32>,
    pub unattended: Option<Unattended>,
    pub default_model: Option<String>,
    /// What commands may reach.
    pub sandbox: SandboxWish,
    /// Which files go into the prompt.
    pub context: ContextSettings,
    /// The values that count, as they are written.
    pub written: Vec<Shown>,
    /// One sentence for each thing that does not count, and why.
    pub ignored: Vec<String>,
    /// Whether the person trusts this content here.
    pub trusted: bool,
    /// Hex SHA-256 of the bytes that were parsed; `None` where there is no file.
    pub hash: Option<String>,
}

/// The part of the file that is read as values.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    default_model: Option<String>,
    session: WrittenSession,
    sandbox: WrittenSandbox,
    context: WrittenContext,
    rule: Vec<Spanned<Rule>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WrittenSession {
    mode: Option<ModeWord>,
    max_steps: Option<NonZeroU32>,
    unattended: Option<UnattendedWord>,
}

/// Reads projects' files for one user.
#[derive(Debug)]
pub struct Projects {
    user: Arc<Book>,
    /// What of them the person trusts.
    pub trust: Trust,
}

impl Projects {
    /// Projects' files held against the settings of `user`.
    #[must_use]
    pub fn new(user: Arc<Book>, trust: Trust) -> Self {
        Self { user, trust }
    }

    /// The user's own settings.
    #[must_use]
    pub fn user(&self) -> &Book {
        &self.user
    }

    /// What the file of the project at `root` says now.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(&self, root: &Path) -> Result<Project, ConfigError> {
        load(root, &self.user.now(), &self.trust)
    }
}

impl Project {
    /// What does not count, for people; `None` if all does.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        (!self.ignored.is_empty()).then(|| self.ignored.join("\n"))
    }

    /// What holds in a session that goes on after the file has changed from `self` to `now`: what restricts is kept and
    /// gained, what allows is only ever lost.
    #[must_use]
    pub fn narrowed_by(&self, now: Self) -> Self {
        if self.rules == now.rules {
            return now;
        }
        let allows = |rule: &&Rule| rule.decision == RuleDecision::Allow;
        let kept = self
            .rules
            .iter()
            .filter(|rule| !allows(rule) || now.rules.contains(rule));
        let gained = now
            .rules
            .iter()
            .filter(|rule| !allows(rule) && !self.rules.contains(rule));
        let rules = kept.chain(gained).take(rules::RULES).cloned().collect();
        Self { rules, ..now }
    }
}

/// What the file of the project at `root` says; nothing where there is none.
///
/// # Errors
/// A file that must not be read (a link, no plain file, too large, another user's), is no TOML, or has an unknown key or a
/// bad value.
pub fn load(root: &Path, user: &Config, trust: &Trust) -> Result<Project, ConfigError> {
    match open(root)? {
        Some(file) => parse(&file, root, user, trust.of(&file.identity).as_deref()),
        None => Ok(Project::default()),
    }
}

/// The rules of a project's file as they are written, whether or not they count.
///
/// # Errors
/// A file that is wrong.
pub fn rules_of(file: &File) -> Result<Vec<Rule>, ConfigError> {
    let written: Written =
        toml::from_str(&file.text).map_err(|error| ConfigError::from_toml(&file.path, &file.text, &error))?;
    rules::checked(&file.path, &file.text, written.rule, Source::Project)
}

/// Reads what counts of the file; `pins` are the scripts it is trusted with, none if it is not trusted.
fn parse(file: &File, root: &Path, user: &Config, pins: Option<&[Pin]>) -> Result<Project, ConfigError> {
    let File { path, text, identity } = file;
    let trusted = pins.is_some();
    let mut keys = Keys::of(file, trusted)?;
    let written: Written = toml::from_str(text).map_err(|error| ConfigError::from_toml(path, text, &error))?;
    let own = &user.session;
    let WrittenSession {
        mode,
        max_steps,
        unattended,
    } = written.session;
    let mode = keys.narrowed("session.mode", mode.map(Mode::from), own.mode, strictness);
    let steps = max_steps.map(NonZeroU32::get);
    let max_steps = keys.narrowed("session.max_steps", steps, own.limits.max_steps, Reverse);
    let sandbox = SandboxWish::read(&written.sandbox, user.sandbox, &mut keys, trusted);
    let context = context::read(path, text, written.context, Owner::Project)?;
    let rules = counted(file, written.rule, root, pins, &mut keys)?;
    let default_model = written
        .default_model
        .filter(|name| match user.models.contains_key(name) {
            true => true,
            false => {
                keys.refuse("default_model", "names no profile of yours");
                false
            }
        });
    let unattended = unattended.filter(|_| keys.counts("session.unattended"));
    let (written, ignored) = keys.into_counted();
    Ok(Project {
        rules,
        mode,
        max_steps,
        unattended: unattended.map(|UnattendedWord(word)| word),
        default_model,
        sandbox,
        context,
        written,
        ignored,
        trusted,
        hash: Some(identity.hash.clone()),
    })
}

/// The rules that count, bound to the root: what denies and asks, then what allows if the file is trusted.
fn counted(
    file: &File,
    written: Vec<Spanned<Rule>>,
    root: &Path,
    pins: Option<&[Pin]>,
    keys: &mut Keys<'_>,
) -> Result<Vec<Rule>, ConfigError> {
    let trusted = pins.is_some();
    let source = if trusted { Source::Trusted } else { Source::Project };
    let mut all = rules::checked(&file.path, &file.text, written, source)?;
    for Pin { rule, path, hash } in pins.unwrap_or_default() {
        if let Some(rule) = all.get_mut(*rule) {
            rule.pinned.insert(path.clone(), hash.clone());
        }
    }
    let (allow, narrow): (Vec<_>, Vec<_>) = all.into_iter().partition(|rule| rule.decision == RuleDecision::Allow);
    if !trusted && !allow.is_empty() {
        keys.ignored.push(format!(
            "{}: {} allow rule(s) count only once you trust it: agentctl trust",
            file.path.display(),
            allow.len()
        ));
    }
    let allow = allow.into_iter().filter(|_| trusted);
    Ok(narrow
        .into_iter()
        .chain(allow)
        .filter_map(|rule| rule.bind(root))
        .collect())
}

/// How much a mode holds back.
fn strictness(mode: Mode) -> u8 {
    match mode {
        Mode::All => 0,
        Mode::Edits => 1,
        Mode::Ask => 2,
        Mode::None => 3,
    }
}

#[cfg(test)]
mod tests;
