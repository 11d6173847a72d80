//! The digest of a call: what a person approved and what runs are the same exactly if it is.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::target::FileId;

/// Collects what a call depends on. Each part is written with its label and length, so that no two calls agree by accident.
pub(crate) struct CallDigest(Sha256);

impl CallDigest {
    /// Begins with the tool, its arguments and the directory it works in.
    pub(crate) fn new(tool: &str, arguments: &Value, cwd: FileId) -> Self {
        let begun = Self(Sha256::new())
            .with("tool", tool.as_bytes())
            .with("target", b"local")
            .with("sandbox", b"off");
        let begun = begun.with("cwd", format!("{}:{}", cwd.device, cwd.inode).as_bytes());
        begun.with("arguments", canonical(arguments).to_string().as_bytes())
    }

    /// Adds a part.
    pub(crate) fn with(mut self, label: &str, part: &[u8]) -> Self {
        for bytes in [label.as_bytes(), part] {
            self.0.update((bytes.len() as u64).to_be_bytes());
            self.0.update(bytes);
        }
        self
    }

    /// Hex SHA-256 of all parts.
    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
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
        ];
        let different: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(different.len(), digests.len());
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
