//! The one table of what a project may do with each key of the configuration, and a project's file held against it. A key without a
//! row is refused.

use std::ops::Range;

use toml_edit::{Document, Item, Key, Table};

use super::file::File;
use crate::config::error::ConfigError;
use crate::config::shown::{self, Shown};
use crate::config::wording;

/// What a project may do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum May {
    /// Set it.
    Set,
    /// Make it stricter; once trusted, set it.
    Narrow,
    /// Nothing until it is trusted.
    SetIfTrusted,
    /// Nothing, trusted or not.
    Never,
}

/// Every key of the configuration, with what a project may do with it. A table's row holds for all that is in it.
pub(super) const TABLE: &[(&str, May)] = &[
    ("default_model", May::Set),
    ("models", May::Never),
    ("session.env", May::Never),
    ("session.mode", May::Narrow),
    ("session.max_steps", May::Narrow),
    ("session.resume", May::Never),
    ("session.unattended", May::SetIfTrusted),
    ("sandbox.mode", May::Narrow),
    ("sandbox.network", May::Narrow),
    ("sandbox.caches", May::Narrow),
    ("sandbox.new_repositories", May::Narrow),
    // Files of the project alone: what leaves the root is refused when the list is read.
    ("context.include", May::Set),
    ("context.exclude", May::Set),
    ("tools", May::Never),
    ("daemon", May::Never),
    ("notify", May::Never),
    ("limits", May::Never),
    // In a project's file alone; each rule is held against its own decision.
    ("rule", May::Narrow),
];

/// The keys of a project's file held against the table.
pub(super) struct Keys<'a> {
    file: &'a File,
    trusted: bool,
    /// Every key that is in the file, and where.
    found: Vec<(String, Option<Range<usize>>)>,
    /// Those that do not count.
    refused: Vec<String>,
    /// A sentence for each of those.
    pub(super) ignored: Vec<String>,
    /// The values that may count.
    written: Vec<Shown>,
}

impl<'a> Keys<'a> {
    /// The keys of `file`, whose content is trusted or not.
    ///
    /// # Errors
    /// No TOML, or a key that nobody knows.
    pub(super) fn of(file: &'a File, trusted: bool) -> Result<Self, ConfigError> {
        let document = Document::parse(file.text.as_str()).map_err(|error| {
            let message = error.message().to_owned();
            ConfigError::at(&file.path, &file.text, error.span(), message, None)
        })?;
        let mut keys = Self {
            file,
            trusted,
            found: Vec::new(),
            refused: Vec::new(),
            ignored: Vec::new(),
            written: Vec::new(),
        };
        keys.walk(document.as_table(), "")?;
        keys.written = shown::of_table(document.as_table(), &file.text, &|key| keys.counts(key));
        Ok(keys)
    }

    /// The values that count, now that all are held against the table and the person's own; and what is to be said of the others.
    pub(super) fn into_counted(mut self) -> (Vec<Shown>, Vec<String>) {
        let written = std::mem::take(&mut self.written).into_iter();
        let counted = written.filter(|shown| self.counts(&shown.key)).collect();
        (counted, self.ignored)
    }

    /// Whether what the file says under `key` counts.
    pub(super) fn counts(&self, key: &str) -> bool {
        !self
            .refused
            .iter()
            .any(|refused| key == refused || key.starts_with(&format!("{refused}.")))
    }

    /// The value `written` under `key` if it may count: what is stricter than the person's `own` does, anything else only once trusted.
    pub(super) fn narrowed<T: Copy, S: Ord>(
        &mut self,
        key: &str,
        written: Option<T>,
        own: T,
        strictness: impl Fn(T) -> S,
    ) -> Option<T> {
        let written = written?;
        if self.trusted || strictness(written) >= strictness(own) {
            return Some(written);
        }
        self.refuse(key, "would widen yours and does not count: agentctl trust");
        None
    }

    /// Notes that `key` does not count, and why.
    pub(super) fn refuse(&mut self, key: &str, why: &str) {
        let span = self.found.iter().find(|(found, _)| found == key);
        let span = span.and_then(|(_, span)| span.clone());
        let line = self.at(span, format!("`{key}` {why}"), None).to_string();
        self.refused.push(key.to_owned());
        self.ignored.push(line);
    }

    fn walk(&mut self, table: &Table, above: &str) -> Result<(), ConfigError> {
        for (name, item) in table {
            let path = if above.is_empty() {
                name.to_owned()
            } else {
                format!("{above}.{name}")
            };
            let span = table.key(name).and_then(Key::span);
            match TABLE.iter().find(|(key, _)| *key == path) {
                Some((_, may)) => self.hold(path, *may, span),
                None if TABLE.iter().any(|(key, _)| key.starts_with(&format!("{path}."))) => match item {
                    Item::Table(inner) => self.walk(inner, &path)?,
                    _ => return Err(self.at(span, format!("`{path}` must be a [{path}] table"), None)),
                },
                None => {
                    let known: Vec<&str> = TABLE.iter().map(|(key, _)| *key).collect();
                    let hint = wording::nearest(&path, &known).map(|meant| format!("did you mean `{meant}`?"));
                    return Err(self.at(span, format!("unknown key `{path}`"), hint));
                }
            }
        }
        Ok(())
    }

    fn hold(&mut self, key: String, may: May, span: Option<Range<usize>>) {
        self.found.push((key.clone(), span));
        match may {
            May::Set | May::Narrow => {}
            May::SetIfTrusted if self.trusted => {}
            May::SetIfTrusted => self.refuse(&key, "counts only once you trust the file: agentctl trust"),
            May::Never => self.refuse(&key, "is never read from a project"),
        }
    }

    fn at(&self, span: Option<Range<usize>>, message: String, hint: Option<String>) -> ConfigError {
        ConfigError::at(&self.file.path, &self.file.text, span, message, hint)
    }
}
