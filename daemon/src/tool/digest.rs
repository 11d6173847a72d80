//! The digest of a call: what a person approved and what runs are the same exactly if it is.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::target::FileId;

/// Hex digits of one of the two halves.
const HALF_DIGITS: usize = 64;

/// Collects what a call depends on, in two halves: what it was judged by (tool, arguments, places), and the contents it
/// works on (files to be replaced, scripts). Each part is written with its label and length, so that no two calls agree by
/// accident.
#[derive(Clone)]
pub(crate) struct CallDigest {
    judged: Sha256,
    contents: Sha256,
}

impl CallDigest {
    /// Begins with the tool, its arguments and the directory it works in.
    pub(crate) fn new(tool: &str, arguments: &Value, cwd: FileId) -> Self {
        Self {
            judged: Sha256::new(),
            contents: Sha256::new(),
        }
        .with("tool", tool.as_bytes())
        .with("target", b"local")
        .with("sandbox", b"off")
        .with("cwd", format!("{}:{}", cwd.device, cwd.inode).as_bytes())
        .with("arguments", canonical(arguments).to_string().as_bytes())
    }

    /// Begins a call that no place matters to.
    pub(crate) fn nowhere(tool: &str, arguments: &Value) -> Self {
        Self::new(tool, arguments, FileId { device: 0, inode: 0 })
    }

    /// Adds something the call is judged by.
    pub(crate) fn with(mut self, label: &str, part: &[u8]) -> Self {
        add(&mut self.judged, label, part);
        self
    }

    /// Adds a content the call works on.
    pub(crate) fn with_content(mut self, label: &str, part: &[u8]) -> Self {
        add(&mut self.contents, label, part);
        self
    }

    /// Both halves as hex SHA-256, one after the other.
    pub(crate) fn finish(self) -> String {
        hex(&self.judged.finalize()) + &hex(&self.contents.finalize())
    }
}

fn add(hash: &mut Sha256, label: &str, part: &[u8]) {
    for bytes in [label.as_bytes(), part] {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
}

/// The half of a digest that must hold for a call which policy allowed and no person looked at. Nobody was shown the
/// contents, so an earlier call of the same reply may change them: write a script, then run it.
pub fn judged_part(digest: &str) -> &str {
    digest.get(..HALF_DIGITS).unwrap_or(digest)
}

/// Whether a call that would have the digest `now` may run as the one of `approved`, which is whole or a [`judged_part`].
pub(crate) fn agrees(now: &str, approved: &str) -> bool {
    now == approved || judged_part(now) == approved
}

/// Hex SHA-256 of a file's content, as the read set keeps it.
pub(crate) fn content_hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same value whatever order the keys came in.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut pairs: Vec<_> = object
                .iter()
                .map(|(key, value)| (key.clone(), canonical(value)))
                .collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(pairs.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HERE: FileId = FileId { device: 1, inode: 2 };

    #[test]
    fn every_part_counts_and_parts_cannot_run_into_each_other() {
        let base = || CallDigest::new("bash", &json!({"command": "ls"}), HERE);
        let digests = [
            base().finish(),
            CallDigest::new("bash", &json!({"command": "ls "}), HERE).finish(),
            CallDigest::new("bash", &json!({"command": "ls"}), FileId { device: 1, inode: 3 }).finish(),
            base().with("a", b"bc").finish(),
            base().with("ab", b"c").finish(),
            base().with("a", b"b").with("", b"c").finish(),
            base().with_content("a", b"bc").finish(),
        ];
        let different: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(different.len(), digests.len());
    }

    #[test]
    fn without_a_person_contents_may_change_and_nothing_else() {
        let call = |tool: &str, content: &[u8]| {
            CallDigest::new(tool, &json!({}), HERE)
                .with_content("file", content)
                .finish()
        };
        let (now, then) = (call("bash", b"new"), call("bash", b"old"));
        assert!(agrees(&now, &now) && !agrees(&now, &then));
        assert!(agrees(&now, judged_part(&then)) && !agrees(&call("write_file", b"new"), judged_part(&then)));
        assert!(!agrees(&now, ""));
    }

    #[test]
    fn the_order_of_arguments_does_not_count() -> anyhow::Result<()> {
        let one: Value = serde_json::from_str(r#"{"a": {"x": 1, "y": 2}, "b": 3}"#)?;
        let other: Value = serde_json::from_str(r#"{"b": 3, "a": {"y": 2, "x": 1}}"#)?;
        assert_eq!(
            CallDigest::new("t", &one, HERE).finish(),
            CallDigest::new("t", &other, HERE).finish()
        );
        Ok(())
    }
}
