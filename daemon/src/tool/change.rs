//! What the tools that write files share: look at the file, make sure the model knows its content, preview the change, and
//! put it in place. A tool of them only says what the new content is.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::arguments::ArgumentError;
use super::diff::Diff;
use super::digest::{CallDigest, agrees, content_hash};
use super::output::bounded;
use super::text::{self, Form, Text};
use super::{Action, Ended, Inspected, Outcome, Place};
use crate::policy::Facts;
use crate::policy::facts::Access;
use crate::target::replace::Expected;
use crate::target::{Resolved, TargetError};

/// Bytes of a file that may be changed; larger ones are for commands.
pub(super) const FILE_LIMIT_BYTES: u64 = 10 * 1024 * 1024;

/// Bytes of a diff in a result; an approval shows all of it.
const DIFF_LIMIT_BYTES: usize = 50_000;

/// Bytes of the diff in the answer to an edit of a file that changed since it was read.
const CHANGED_DIFF_LIMIT_BYTES: usize = 4_000;

/// Stands for the content of a file that does not exist.
const ABSENT: &str = "absent";

/// The file a call writes to, as it is now.
pub(super) struct Before {
    pub(super) resolved: Resolved,
    /// None if the file does not exist.
    pub(super) file: Option<Present>,
}

/// An existing text file.
pub(super) struct Present {
    pub(super) text: Text,
    hash: String,
    stat: rustix::fs::Stat,
}

impl Before {
    /// Looks at the file `path` names. It may be missing; if it is there, it must be text the model knows.
    pub(super) fn look(path: &str, place: &Place) -> Result<Self, ArgumentError> {
        let at_path = |error: TargetError| ArgumentError::at("path", error);
        let resolved = place.target.resolve(path).map_err(at_path)?;
        let mut open = match place.target.open_file(&resolved) {
            Ok(open) => open,
            Err(TargetError::NotFound(_)) => return Ok(Self { resolved, file: None }),
            Err(error) => return Err(at_path(error)),
        };
        let Some(bytes) = open.read_up_to(FILE_LIMIT_BYTES, path).map_err(at_path)? else {
            let text = format!(
                "{path} has {} bytes; files over {FILE_LIMIT_BYTES} bytes are changed by commands only",
                open.size()
            );
            return Err(ArgumentError::at("path", text));
        };
        let text = text::read(&bytes).map_err(|what| ArgumentError::at("path", format!("{path} is {what}")))?;
        let present = Present {
            text,
            hash: content_hash(&bytes),
            stat: open.stat,
        };
        check_known(path, &resolved.path, &present, place)?;
        Ok(Self {
            resolved,
            file: Some(present),
        })
    }

    /// The content now, none if the file does not exist.
    pub(super) fn content(&self) -> Option<&str> {
        self.file.as_ref().map(|present| present.text.content.as_str())
    }
}

/// An existing file may be changed only if the model has seen its present content. An empty one holds nothing to lose.
fn check_known(shown: &str, path: &Path, present: &Present, place: &Place) -> Result<(), ArgumentError> {
    if present.text.content.is_empty() {
        return Ok(());
    }
    match place.read.hash_of(path) {
        Some(hash) if hash == present.hash => Ok(()),
        None => Err(ArgumentError::at(
            "path",
            format!(
                "{shown} exists and was not read in this session; read it with read_file first, then repeat the call"
            ),
        )),
        Some(_) => {
            let known = place.read.content_of(path);
            let since = known.map(|known| Diff::new(shown, Some(&known), &present.text.content).text);
            let since = since.map_or_else(String::new, |diff| {
                format!("\n{}", bounded(&diff, CHANGED_DIFF_LIMIT_BYTES))
            });
            let text = format!(
                "{shown} was changed by someone else since it was read; read it again, then repeat the call{since}"
            );
            Err(ArgumentError::at("path", text))
        }
    }
}

/// A change of one file, decided but not made.
pub(super) struct Change {
    tool: &'static str,
    before: Before,
    /// The new content as the model sees it.
    content: String,
    bytes: Vec<u8>,
    diff: Diff,
    /// Without the content to be replaced.
    digest: CallDigest,
    /// The session's roots.
    roots: Vec<PathBuf>,
    /// What the result tells about the change beyond its size.
    pub(super) note: String,
}

impl Change {
    /// The change of `before` to `content` by a call of `tool`.
    pub(super) fn new(
        tool: &'static str,
        arguments: &Value,
        place: &Place,
        before: Before,
        content: String,
    ) -> Result<Self, ArgumentError> {
        let form = before
            .file
            .as_ref()
            .map_or_else(Form::default, |present| present.text.form);
        let diff = Diff::new(&place.target.name_of(&before.resolved), before.content(), &content);
        let digest = CallDigest::new(tool, arguments, place.target.cwd_id()?)
            .with("path", before.resolved.path.as_os_str().as_encoded_bytes());
        let bytes = form.write(&content);
        Ok(Self {
            tool,
            before,
            content,
            bytes,
            diff,
            digest,
            roots: place.target.standing_roots(),
            note: String::new(),
        })
    }

    /// The digest, had the file this content.
    fn digest_over(&self, preimage: &str) -> String {
        self.digest
            .clone()
            .with_content("preimage", preimage.as_bytes())
            .finish()
    }

    fn preimage(&self) -> &str {
        self.before
            .file
            .as_ref()
            .map_or(ABSENT, |present| present.hash.as_str())
    }

    /// Whether this is the change of `digest`. Changes the session itself has made since, each judged for itself, do not
    /// make it another one: a reply may hold several edits of one file.
    pub(super) fn is_of(&self, digest: &str, place: &Place) -> bool {
        let earlier = place.read.own_ancestors(&self.before.resolved.path, self.preimage());
        let preimages = std::iter::once(self.preimage()).chain(earlier.iter().map(String::as_str));
        preimages
            .map(|preimage| self.digest_over(preimage))
            .any(|now| agrees(&now, digest))
    }

    /// For policy and the approval.
    pub(super) fn inspected(&self) -> Inspected {
        let digest = self.digest_over(self.preimage());
        let resolved = &self.before.resolved;
        let paths = vec![resolved.fact(Access::Write)];
        let path = Some(resolved.path.display().to_string());
        Inspected {
            facts: Facts {
                tool: self.tool.into(),
                writes: true,
                paths,
                command: None,
                host: None,
                roots: self.roots.clone(),
            },
            action: Action {
                diff: Some(self.diff.text.clone()),
                path,
                ..Action::default()
            },
            digest,
            writes: true,
        }
    }

    /// Makes the change, unless the file became another one since it was looked at.
    pub(super) fn apply(self, place: &Place) -> Ended {
        let resolved = &self.before.resolved;
        let expected = self
            .before
            .file
            .as_ref()
            .map_or(Expected::Absent, |present| Expected::File(present.stat));
        let written = match place.target.replace(resolved, &self.bytes, expected) {
            Ok(written) => written,
            Err(TargetError::Changed(_)) => return Ended::changed_since_approved(),
            Err(error) => return Ended::new(Outcome::Error, error.to_string()),
        };
        let hash = content_hash(&self.bytes);
        let seen = self.content.strip_prefix('\u{feff}').unwrap_or(&self.content);
        place.read.wrote(&resolved.path, self.preimage(), &hash, seen);
        let mut ended = Ended::new(Outcome::Ok, self.summary(written.other_links));
        ended.diff = Some(bounded(&self.diff.text, DIFF_LIMIT_BYTES));
        ended.files = vec![(resolved.path.display().to_string(), hash)];
        ended
    }

    fn summary(&self, other_links: u64) -> String {
        let what = if self.before.file.is_some() {
            "changed"
        } else {
            "created"
        };
        let Diff { added, removed, .. } = self.diff;
        let shown = &self.before.resolved.shown;
        let mut text = format!(
            "{what} {shown}: {} bytes, +{added} -{removed} lines{}",
            self.bytes.len(),
            self.note
        );
        if other_links > 0 {
            text.push_str(&format!(
                "\nnote: the file had {other_links} more hard link(s), which keep the old content"
            ));
        }
        text
    }
}
