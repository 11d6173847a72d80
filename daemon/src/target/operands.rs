//! Which existing files the words of a command name, patterns expanded and links followed, for policy to judge: the word
//! `notes.txt` may be a link to a private key. Names that a command makes up while it runs cannot be seen here; policy lets
//! no such command run unasked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};

use super::Target;
use crate::policy::facts::{Access, Inside, PathFact};

/// Words that are looked at.
const WORDS_LIMIT: usize = 512;

/// Files that patterns may name.
const FILES_LIMIT: usize = 2_000;

impl Target {
    /// The facts of every existing file that `words`, relative to `cwd`, name. If there are too many to look at, the last
    /// fact is one outside, so that the command is not taken for harmless.
    pub fn operands(&self, words: &[String], cwd: &Path) -> Vec<PathFact> {
        let mut facts = Vec::new();
        for word in words.iter().take(WORDS_LIMIT) {
            for name in expanded(cwd, word) {
                if facts.len() >= FILES_LIMIT {
                    facts.push(too_many(word));
                    return facts;
                }
                let Ok(resolved) = self.resolve_in(cwd, &name) else {
                    continue;
                };
                if resolved.path.symlink_metadata().is_ok() {
                    facts.push(resolved.fact(Access::Read));
                }
            }
        }
        if let Some(word) = words.get(WORDS_LIMIT) {
            facts.push(too_many(word));
        }
        facts
    }
}

fn too_many(word: &str) -> PathFact {
    PathFact {
        shown: word.to_string(),
        resolved: PathBuf::from("/"),
        inside: Inside::Outside,
        access: Access::Read,
        secret: false,
        protected: false,
        foreign: false,
    }
}

/// The names a word stands for: those a pattern matches, else itself. One more than the limit shows that there are more.
fn expanded(cwd: &Path, word: &str) -> Vec<String> {
    if !word.contains(['*', '?', '[']) {
        return vec![word.to_string()];
    }
    let start = if word.starts_with('/') { "/" } else { "" };
    let mut names = vec![PathBuf::from(start)];
    for part in word.split('/').filter(|part| !part.is_empty()) {
        names = names
            .into_iter()
            .flat_map(|name| matching(cwd, name, part))
            .take(FILES_LIMIT + 1)
            .collect();
    }
    names
        .into_iter()
        .filter_map(|name| name.into_os_string().into_string().ok())
        .collect()
}

/// The paths below `name` that one part of a pattern matches.
fn matching(cwd: &Path, name: PathBuf, part: &str) -> Vec<PathBuf> {
    let matcher = Glob::new(part).ok().map(|glob| glob.compile_matcher());
    let Some(matcher) = matcher.filter(|_| part.contains(['*', '?', '['])) else {
        return vec![name.join(part)];
    };
    let entries = std::fs::read_dir(cwd.join(&name))
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let found = entries
        .map(|entry| entry.file_name())
        .filter(|found| is_match(&matcher, part, found));
    found.take(FILES_LIMIT + 1).map(|found| name.join(found)).collect()
}

/// As in the shell, a pattern matches hidden names only if it begins with a dot.
fn is_match(matcher: &GlobMatcher, part: &str, name: &OsString) -> bool {
    let hidden = name.as_encoded_bytes().starts_with(b".");
    (!hidden || part.starts_with('.')) && matcher.is_match(name)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::target::TargetSpec;

    fn target(dir: &Path) -> Target {
        Target::open(TargetSpec {
            roots: vec![dir.into()],
            cwd: dir.into(),
            ..TargetSpec::default()
        })
        .unwrap()
    }

    #[test]
    fn words_and_patterns_are_followed_to_the_files_they_name() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        for name in ["src/a.rs", "src/b.rs", "src/.hidden.rs", ".env"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        symlink(outside.path(), dir.path().join("src/notes.rs")).unwrap();
        let target = target(dir.path());
        let facts = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            let mut facts: Vec<_> = target
                .operands(&words, target.cwd())
                .into_iter()
                .map(|fact| (fact.shown, fact.inside == Inside::Outside, fact.secret))
                .collect();
            facts.sort();
            facts
        };
        let fact = |name: &str, outside, secret| (name.to_string(), outside, secret);
        assert_eq!(
            facts(&["s*/*.rs", "absent", "-n"]),
            [
                fact("src/a.rs", false, false),
                fact("src/b.rs", false, false),
                fact("src/notes.rs", true, false)
            ]
        );
        assert_eq!(facts(&[".e*"]), [fact(".env", false, true)]);
        assert_eq!(facts(&["src/notes.rs"]), [fact("src/notes.rs", true, false)]);
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::create_dir(elsewhere.path().join("deep")).unwrap();
        symlink(elsewhere.path().join("deep"), dir.path().join("link")).unwrap();
        let above = facts(&["link/.."]);
        assert!(matches!(above.as_slice(), [(_, true, _)]), "{above:?}");
    }

    #[test]
    fn too_many_files_end_in_a_fact_that_asks() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..=FILES_LIMIT {
            std::fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let target = target(dir.path());
        let facts = target.operands(&["*".to_string()], target.cwd());
        assert!(facts.len() == FILES_LIMIT + 1 && facts.last().is_some_and(|fact| fact.inside == Inside::Outside));
    }
}
