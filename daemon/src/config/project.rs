//! A project's own file, `.agent/config.toml` in its root: what a repository may say about how it is worked on.
//!
//! It comes with whatever was cloned, so it may only narrow: one table says for each key of the configuration what a
//! project may do with it, and a key without a row is refused. What widens counts only once the person trusts this very
//! content in this very directory; models, keys and programs are never read from a project at all. The file is opened
//! without following links, never waited for, and what is parsed is what was hashed.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{Mode, Unattended};
use rustix::fs::{FileType, Mode as FileMode, OFlags};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;
use toml_edit::{Document, Item, Key};

use super::error::ConfigError;
use super::trust::{Identity, Trust};
use super::values::{ModeWord, UnattendedWord};
use super::{Book, Config, rules, wording};
use crate::policy::rule::Source;
use crate::policy::{Rule, RuleDecision};

/// The directory in a project's root.
const DIRECTORY: &str = ".agent";

/// The file in it.
const FILE: &str = "config.toml";

/// Bytes of the file; a real one has a few kilobytes.
const FILE_BYTES: u64 = 256 * 1024;

/// What a project may do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
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
const TABLE: &[(&str, May)] = &[
    ("default_model", May::Set),
    ("models", May::Never),
    ("session.env", May::Never),
    ("session.mode", May::Narrow),
    ("session.max_steps", May::Narrow),
    ("session.resume", May::Never),
    ("session.unattended", May::SetIfTrusted),
    ("sandbox", May::Never),
    ("tools", May::Never),
    ("daemon", May::Never),
    ("notify", May::Never),
    ("limits", May::Never),
    // In a project's file alone; each rule is held against its own decision.
    ("rule", May::Narrow),
];

/// What a project's file says, as far as it counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// Its deny and ask rules and, if it is trusted, its allow rules; bound to the root.
    pub rules: Vec<Rule>,
    pub mode: Option<Mode>,
    pub max_steps: Option<u32>,
    pub unattended: Option<Unattended>,
    pub default_model: Option<String>,
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
    rule: Vec<Spanned<Rule>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WrittenSession {
    mode: Option<ModeWord>,
    max_steps: Option<std::num::NonZeroU32>,
    unattended: Option<UnattendedWord>,
}

/// A project's file as it was read.
#[derive(Debug)]
pub struct File {
    /// Its path, for messages.
    pub path: PathBuf,
    /// The very bytes that are hashed and parsed.
    pub text: String,
    /// What trust is given to.
    pub identity: Identity,
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
        Some(file) => parse(&file, root, user, trust.holds(&file.identity)),
        None => Ok(Project::default()),
    }
}

/// Where the file of the project at `root` is, or would be.
#[must_use]
pub fn path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join(FILE)
}

/// Opens and reads the file of the project at `root`.
///
/// # Errors
/// A file that must not be read.
pub fn open(root: &Path) -> Result<Option<File>, ConfigError> {
    let path = path(root);
    let refused = |reason: &str| ConfigError::Unreadable {
        path: path.clone(),
        reason: reason.to_owned(),
    };
    let failed = |error: rustix::io::Errno| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR | rustix::io::Errno::MLINK => {
            refused("it is or lies behind a link")
        }
        error => refused(&error.to_string()),
    };
    let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = |result: Result<OwnedFd, rustix::io::Errno>| match result {
        Ok(fd) => Ok(Some(fd)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(failed(error)),
    };
    let Some(root_fd) = opened(rustix::fs::open(
        root,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        FileMode::empty(),
    ))?
    else {
        return Ok(None);
    };
    let Some(agent) = opened(rustix::fs::openat(&root_fd, DIRECTORY, directory, FileMode::empty()))? else {
        return Ok(None);
    };
    // A FIFO would otherwise be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Some(file) = opened(rustix::fs::openat(&agent, FILE, flags, FileMode::empty()))? else {
        return Ok(None);
    };
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(refused("it is no plain file"));
    }
    if stat.st_uid != own && stat.st_uid != 0 {
        return Err(refused("it belongs to another user"));
    }
    if stat.st_mode & 0o002 != 0 {
        return Err(refused("every user may write it; chmod o-w it"));
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(file).take(FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(&error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(refused("it is larger than 256 KiB"));
    }
    let root_stat = rustix::fs::fstat(&root_fd).map_err(failed)?;
    let identity = Identity {
        root: root.to_owned(),
        device: root_stat.st_dev,
        inode: root_stat.st_ino,
        hash: crate::config::trust::hex(&Sha256::digest(&bytes)),
    };
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text"))?;
    Ok(Some(File { path, text, identity }))
}

/// Reads what counts of the file.
fn parse(file: &File, root: &Path, user: &Config, trusted: bool) -> Result<Project, ConfigError> {
    let File { path, text, identity } = file;
    let document = Document::parse(text.as_str())
        .map_err(|error| ConfigError::at(path, text, error.span(), error.message().to_owned(), None))?;
    let mut keys = Keys {
        file,
        trusted,
        refused: Vec::new(),
        ignored: Vec::new(),
    };
    keys.walk(document.as_table(), "")?;
    let Keys {
        refused, mut ignored, ..
    } = keys;
    let written: Written = toml::from_str(text).map_err(|error| ConfigError::from_toml(path, text, &error))?;
    let counts = |key: &str| !refused.iter().any(|refused| refused == key);
    let all = rules::checked(
        path,
        text,
        written.rule,
        if trusted { Source::User } else { Source::Project },
    )?;
    let (allow, narrow): (Vec<_>, Vec<_>) = all.into_iter().partition(|rule| rule.decision == RuleDecision::Allow);
    if !trusted && !allow.is_empty() {
        ignored.push(format!(
            "{}: {} allow rule(s) count only once you trust it: agentctl trust",
            path.display(),
            allow.len()
        ));
    }
    let narrower = |mode: &Mode| trusted || strictness(*mode) > strictness(user.session.mode);
    let mode = written.session.mode.map(Mode::from);
    if mode.is_some_and(|mode| strictness(mode) < strictness(user.session.mode)) && !trusted {
        ignored.push(format!(
            "{}: `session.mode` would widen yours and does not count: agentctl trust",
            path.display()
        ));
    }
    let steps = written.session.max_steps.map(std::num::NonZeroU32::get);
    let default_model = written.default_model.filter(|name| {
        let known = user.models.contains_key(name);
        if !known {
            ignored.push(format!("{}: `default_model` names no profile of yours", path.display()));
        }
        known
    });
    let allow = allow.into_iter().filter(|_| trusted);
    Ok(Project {
        rules: narrow
            .into_iter()
            .chain(allow)
            .filter_map(|rule| rule.bind(root))
            .collect(),
        mode: mode.filter(narrower),
        max_steps: steps.filter(|steps| trusted || *steps < user.session.limits.max_steps),
        unattended: written
            .session
            .unattended
            .filter(|_| counts("session.unattended"))
            .map(|UnattendedWord(word)| word),
        default_model,
        ignored,
        trusted,
        hash: Some(identity.hash.clone()),
    })
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

/// The keys of a file held against the table.
struct Keys<'a> {
    file: &'a File,
    trusted: bool,
    refused: Vec<String>,
    ignored: Vec<String>,
}

impl Keys<'_> {
    fn walk(&mut self, table: &toml_edit::Table, above: &str) -> Result<(), ConfigError> {
        for (name, item) in table {
            let path = if above.is_empty() {
                name.to_owned()
            } else {
                format!("{above}.{name}")
            };
            let span = table.key(name).and_then(Key::span);
            match TABLE.iter().find(|(key, _)| *key == path) {
                Some((_, may)) => self.held(&path, *may, span),
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

    fn held(&mut self, key: &str, may: May, span: Option<std::ops::Range<usize>>) {
        let why = match may {
            May::Set | May::Narrow => return,
            May::SetIfTrusted if self.trusted => return,
            May::SetIfTrusted => "counts only once you trust the file: agentctl trust",
            May::Never => "is never read from a project",
        };
        let line = self.at(span, format!("`{key}` {why}"), None).to_string();
        self.refused.push(key.to_owned());
        self.ignored.push(line);
    }

    fn at(&self, span: Option<std::ops::Range<usize>>, message: String, hint: Option<String>) -> ConfigError {
        ConfigError::at(&self.file.path, &self.file.text, span, message, hint)
    }
}

#[cfg(test)]
mod tests;
