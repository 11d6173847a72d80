//! Why a configuration is refused, said with file, line and what was probably meant.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Config, wording};

/// A configuration the daemon does not start with. Its text never repeats a line or a value of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// Something in the file is wrong.
    #[error("{}{}: {message}{}", .path.display(), Line(*.line), Hint(.hint))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Line counted from 1, where there is one.
        line: Option<usize>,
        /// What is wrong.
        message: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// The template for a first start cannot be written.
    #[error("cannot write {}: {reason}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
}

impl ConfigError {
    /// What the TOML reader said about `text`, without what it quoted from it.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let said = wording::reword(error.message());
        let key = error
            .span()
            .and_then(|span| key_at(text, span.start))
            .filter(|_| said.about_value);
        let message = key.map_or_else(|| said.message.clone(), |key| format!("`{key}`: {}", said.message));
        Self::at(path, text, error.span(), message, said.hint)
    }

    /// Something wrong with the value of a key that `config` was read with; the line is where the key stands.
    pub(crate) fn in_value(config: &Config, key: &str, message: String, hint: Option<String>) -> Self {
        Self::Wrong {
            path: config.path.clone(),
            line: config
                .written
                .iter()
                .find(|shown| shown.key == key)
                .map(|shown| shown.line),
            message,
            hint,
        }
    }

    /// As a client is told of it.
    pub(crate) fn told(&self) -> protocol::RpcError {
        let text = self.to_string();
        let (message, hint) = text
            .split_once("\nhint: ")
            .map_or((text.as_str(), None), |(text, hint)| (text, Some(hint)));
        let told = protocol::RpcError::new(protocol::ErrorKind::InvalidConfig, message);
        match hint {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }

    /// Something wrong at a place of `text`.
    pub(super) fn at(
        path: &Path,
        text: &str,
        span: Option<Range<usize>>,
        message: String,
        hint: Option<String>,
    ) -> Self {
        let line = span.map(|span| line_of(text, span.start));
        Self::Wrong {
            path: path.to_path_buf(),
            line,
            message,
            hint,
        }
    }
}

/// The line of a byte, counted from 1.
fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// The key whose value stands at a byte, if its line begins with a plain one.
fn key_at(text: &str, byte: usize) -> Option<&str> {
    let line = text.get(..byte)?.rsplit('\n').next()?;
    let key = line.split_once('=')?.0.trim();
    let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    plain.then_some(key)
}

struct Line(Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

struct Hint<'a>(&'a Option<String>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}
