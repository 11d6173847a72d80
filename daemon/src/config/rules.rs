//! The user's own rules: `rules.toml` beside the configuration, read again whenever it has changed.
//!
//! A file with a mistake does not stop the daemon: the rules it read last stay in force, so that a slip never lifts a deny rule.
//! Where none were read in this life, every call asks, since any of them may be one that a rule denies. Clients and sessions are
//! told for as long as the mistake is there.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use toml::Spanned;
use toml_edit::{ArrayOfTables, DocumentMut, Item};

use super::error::ConfigError;
use super::load;
use super::stamp::Stamp;
use crate::policy::rule::Source;
use crate::policy::{Rule, RuleDecision};

/// Rules a file may hold: each call is held against all of them.
pub(super) const RULES: usize = 1_000;

/// Name of the file beside the configuration.
const FILE: &str = "rules.toml";

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    builtin_allow: bool,
    rule: Vec<Spanned<Rule>>,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            builtin_allow: true,
            rule: Vec::new(),
        }
    }
}

/// What a file of rules says.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSet {
    /// In file order.
    pub rules: Vec<Rule>,
    /// Whether the built-in list of read-only commands runs without asking.
    pub builtin_allow: bool,
}

impl Default for RuleSet {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            builtin_allow: true,
        }
    }
}

impl RuleSet {
    /// What holds while nobody knows what the rules say.
    fn unread() -> Self {
        let mut ask = Rule::new(RuleDecision::Ask);
        ask.tool = Some("*".to_owned());
        ask.source = Source::Unread;
        Self {
            rules: vec![ask],
            builtin_allow: false,
        }
    }

    /// Reads and checks the rules of `text`; `path` is for messages.
    ///
    /// # Errors
    /// No TOML, an unknown key, a bad value, an example that does not hold: with the line.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let written: Written = toml::from_str(text).map_err(|error| ConfigError::from_toml(path, text, &error))?;
        let rules = checked(path, text, written.rule, Source::User)?;
        Ok(Self {
            rules,
            builtin_allow: written.builtin_allow,
        })
    }
}

/// The rules of one file, each with its examples checked.
pub(super) fn checked(
    path: &Path,
    text: &str,
    written: Vec<Spanned<Rule>>,
    source: Source,
) -> Result<Vec<Rule>, ConfigError> {
    if written.len() > RULES {
        let message = format!("{} rules; at most {RULES} are read", written.len());
        return Err(ConfigError::at(path, text, None, message, None));
    }
    let check = |rule: Spanned<Rule>| {
        let span = rule.span();
        let mut rule = rule.into_inner();
        rule.source = source;
        rule.check()
            .map_err(|fault| ConfigError::at(path, text, Some(span), fault.to_string(), None))?;
        Ok(rule)
    };
    written.into_iter().map(check).collect()
}

/// What was read last.
#[derive(Debug)]
struct Read {
    stamp: Option<Stamp>,
    set: Arc<RuleSet>,
    /// Whether `set` stood in the file once.
    origin: Origin,
    fault: Option<ConfigError>,
}

/// Where the rules in force come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The file, as it is or as it was before a mistake.
    File,
    /// Nowhere: the file has had a mistake since the start.
    Unread,
}

/// The user's own rules. All sessions share one.
#[derive(Debug)]
pub struct RuleBook {
    path: PathBuf,
    read: Mutex<Read>,
}

impl RuleBook {
    /// The rules beside the configuration at `config`. Where they cannot be read every call asks, and [`Self::fault`] says why.
    #[must_use]
    pub fn open(config: &Path) -> Self {
        let path = config.with_file_name(FILE);
        let stamp = Stamp::of(&path);
        let (set, origin, fault) = match read(&path) {
            Ok(set) => (set, Origin::File, None),
            Err(error) => {
                tracing::warn!(%error, "the rules cannot be read, so every call asks");
                (RuleSet::unread(), Origin::Unread, Some(error))
            }
        };
        let read = Read {
            stamp,
            set: Arc::new(set),
            origin,
            fault,
        };
        Self {
            path,
            read: Mutex::new(read),
        }
    }

    /// What is wrong with the file as it is now and what holds meanwhile, for people.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let read = self.fresh();
        let holds = match read.origin {
            Origin::File => "your rules as they were before still count",
            Origin::Unread => "your rules cannot be read, so every call asks until that is mended",
        };
        read.fault.as_ref().map(|fault| format!("{holds}: {fault}"))
    }

    /// The file, whether or not it is there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says now, or said before it was broken.
    pub fn now(&self) -> Arc<RuleSet> {
        Arc::clone(&self.fresh().set)
    }

    /// What the file says now.
    ///
    /// # Errors
    /// What is wrong with the file as it is.
    pub fn checked(&self) -> Result<Arc<RuleSet>, ConfigError> {
        let read = self.fresh();
        match &read.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(Arc::clone(&read.set)),
        }
    }

    /// Adds a rule at the end of the file, unless the very same stands there; its place, from 0.
    ///
    /// # Errors
    /// A rule that does not hold its own examples, a file that is wrong already or cannot be written.
    pub fn add(&self, rule: &Rule) -> Result<usize, ConfigError> {
        let mut read = self.whole()?;
        let wrong = |reason: &dyn std::fmt::Display| ConfigError::Wrong {
            path: self.path.clone(),
            line: None,
            message: reason.to_string(),
            hint: None,
        };
        rule.check().map_err(|fault| wrong(&fault))?;
        if let Some(at) = read.set.rules.iter().position(|known| known == rule) {
            return Ok(at);
        }
        let mut document = self.document()?;
        let text = toml::to_string(rule).map_err(|error| wrong(&error))?;
        let table: DocumentMut = text
            .parse()
            .map_err(|error: toml_edit::TomlError| wrong(&error.message()))?;
        let tables = document
            .entry("rule")
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let Some(tables) = tables.as_array_of_tables_mut() else {
            return Err(wrong(
                &"`rule` is written as one value; write [[rule]] tables to have rules added",
            ));
        };
        tables.push(table.as_table().clone());
        self.write(&document, &mut read)?;
        Ok(read.set.rules.len().saturating_sub(1))
    }

    /// Removes the rule at `place`, from 0, if `is_meant` says so of it; it, or `None` if there is no such rule.
    ///
    /// # Errors
    /// A file that is wrong or cannot be written.
    pub fn remove(&self, place: usize, is_meant: impl FnOnce(&Rule) -> bool) -> Result<Option<Rule>, ConfigError> {
        let mut read = self.whole()?;
        let Some(rule) = read.set.rules.get(place).filter(|rule| is_meant(rule)).cloned() else {
            return Ok(None);
        };
        let mut document = self.document()?;
        let tables = document.get_mut("rule").and_then(Item::as_array_of_tables_mut);
        let Some(tables) = tables.filter(|tables| place < tables.len()) else {
            let message = "`rule` is written as one value; remove it with an editor".to_owned();
            return Err(ConfigError::Wrong {
                path: self.path.clone(),
                line: None,
                message,
                hint: None,
            });
        };
        tables.remove(place);
        self.write(&document, &mut read)?;
        Ok(Some(rule))
    }

    /// What was read, read again if the file has changed since.
    fn fresh(&self) -> MutexGuard<'_, Read> {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&self.path);
        if stamp != last.stamp {
            last.stamp = stamp;
            match read(&self.path) {
                Ok(set) => (last.set, last.origin, last.fault) = (Arc::new(set), Origin::File, None),
                Err(error) => {
                    tracing::warn!(%error, "the rules that were read last stay in force");
                    last.fault = Some(error);
                }
            }
        }
        last
    }

    /// As `fresh`, of a file without a mistake.
    fn whole(&self) -> Result<MutexGuard<'_, Read>, ConfigError> {
        let read = self.fresh();
        match &read.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(read),
        }
    }

    fn document(&self) -> Result<DocumentMut, ConfigError> {
        let text = load::read(&self.path)?.map(|(text, _)| text).unwrap_or_default();
        text.parse().map_err(|error: toml_edit::TomlError| {
            ConfigError::at(&self.path, &text, error.span(), error.message().to_owned(), None)
        })
    }

    /// Checks what is about to be written as if it were read, then replaces the file in one step.
    fn write(&self, document: &DocumentMut, last: &mut Read) -> Result<(), ConfigError> {
        let text = document.to_string();
        let set = RuleSet::parse(&self.path, &text)?;
        replace(&self.path, &text)?;
        *last = Read {
            stamp: Stamp::of(&self.path),
            set: Arc::new(set),
            origin: Origin::File,
            fault: None,
        };
        Ok(())
    }
}

fn read(path: &Path) -> Result<RuleSet, ConfigError> {
    match load::read(path)? {
        Some((text, _)) => RuleSet::parse(path, &text),
        None => Ok(RuleSet::default()),
    }
}

/// Replaces a private file, or what a link at its name leads to, so that no reader sees half of it and a crash leaves the
/// old or the new.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), ConfigError> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let write = || -> std::io::Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let temporary = path.with_extension("toml.new");
        let _ = std::fs::remove_file(&temporary);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)
    };
    write().map_err(|error| ConfigError::Unwritable {
        path: path.clone(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
