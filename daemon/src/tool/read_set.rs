//! What a session has read: the state of each file when the model last saw it. A file may be changed only if the model
//! knows its present content, so that nobody's work is overwritten unseen.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files remembered; the least recently read is forgotten first and must then be read again. A session that edits more
/// files than this in one sweep does not exist in practice, and the map stays under a megabyte.
const FILES_LIMIT: usize = 4096;

/// Contents kept so that a refused edit can show what changed. They are a convenience: without one the error says only
/// that the file changed.
const CONTENTS_LIMIT_BYTES: usize = 1024 * 1024;

/// Own changes of one file that are remembered; a reply hardly holds more edits of one.
const OWN_LIMIT: usize = 16;

/// Path to content hash of the files read in a session; clones share one memory.
#[derive(Debug, Clone, Default)]
pub struct ReadSet(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    seen: BTreeMap<PathBuf, Seen>,
    clock: u64,
    contents: VecDeque<(PathBuf, Arc<str>)>,
    contents_bytes: usize,
}

#[derive(Debug)]
struct Seen {
    hash: String,
    at: u64,
    /// Contents the session's own changes led from to this one without anybody's in between, the latest last.
    own: VecDeque<String>,
}

impl ReadSet {
    /// Records that the content with this hash was seen, as after a restart from the log.
    pub fn insert(&self, path: impl Into<PathBuf>, hash: impl Into<String>) {
        self.memory().insert(path.into(), hash.into());
    }

    /// Records a file with its content, so that a later change of it can be shown.
    pub(crate) fn remember(&self, path: &Path, hash: &str, content: &str) {
        let mut memory = self.memory();
        memory.insert(path.to_path_buf(), hash.to_string());
        memory.keep(path, content);
    }

    /// Records that a change of the session's own made `content` of what had the hash `before`.
    pub(crate) fn wrote(&self, path: &Path, before: &str, hash: &str, content: &str) {
        let mut memory = self.memory();
        let earlier = memory.seen.get(path).filter(|seen| seen.hash == before);
        let mut own = earlier.map(|seen| seen.own.clone()).unwrap_or_default();
        own.push_back(before.to_string());
        if own.len() > OWN_LIMIT {
            own.pop_front();
        }
        memory.insert(path.to_path_buf(), hash.to_string());
        memory.keep(path, content);
        if let Some(seen) = memory.seen.get_mut(path) {
            seen.own = own;
        }
    }

    /// The contents from which only the session's own changes led to `hash`.
    pub(crate) fn own_ancestors(&self, path: &Path, hash: &str) -> Vec<String> {
        let memory = self.memory();
        let seen = memory.seen.get(path).filter(|seen| seen.hash == hash);
        seen.map(|seen| seen.own.iter().cloned().collect()).unwrap_or_default()
    }

    /// The hash of the content last seen.
    pub fn hash_of(&self, path: &Path) -> Option<String> {
        self.memory().seen.get(path).map(|seen| seen.hash.clone())
    }

    /// The content last seen, if it is still at hand.
    pub(crate) fn content_of(&self, path: &Path) -> Option<Arc<str>> {
        let memory = self.memory();
        memory
            .contents
            .iter()
            .find(|(known, _)| known == path)
            .map(|(_, content)| Arc::clone(content))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn insert(&mut self, path: PathBuf, hash: String) {
        let same = self.seen.remove(&path).filter(|seen| seen.hash == hash);
        if same.is_none() {
            self.drop_content(&path);
        }
        self.clock += 1;
        let own = same.map(|seen| seen.own).unwrap_or_default();
        self.seen.insert(
            path,
            Seen {
                hash,
                at: self.clock,
                own,
            },
        );
        if self.seen.len() > FILES_LIMIT {
            let oldest = self
                .seen
                .iter()
                .min_by_key(|(_, seen)| seen.at)
                .map(|(path, _)| path.clone());
            oldest.map(|path| self.seen.remove(&path));
        }
    }

    fn keep(&mut self, path: &Path, content: &str) {
        self.drop_content(path);
        if content.len() > CONTENTS_LIMIT_BYTES / 4 {
            return;
        }
        self.contents_bytes += content.len();
        self.contents.push_back((path.to_path_buf(), content.into()));
        while self.contents_bytes > CONTENTS_LIMIT_BYTES {
            let Some((_, oldest)) = self.contents.pop_front() else {
                break;
            };
            self.contents_bytes -= oldest.len();
        }
    }

    fn drop_content(&mut self, path: &Path) {
        let Some(at) = self.contents.iter().position(|(known, _)| known == path) else {
            return;
        };
        if let Some((_, content)) = self.contents.remove(at) {
            self.contents_bytes -= content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_read_file_is_forgotten_first() {
        let set = ReadSet::default();
        for number in 0..FILES_LIMIT {
            set.insert(format!("/{number}"), "h");
        }
        set.insert("/0", "h");
        set.insert("/new", "h");
        assert_eq!(set.hash_of(Path::new("/0")).as_deref(), Some("h"));
        assert_eq!(set.hash_of(Path::new("/1")), None);
    }

    #[test]
    fn contents_stay_within_their_limit_and_the_newest_is_kept() {
        let set = ReadSet::default();
        let text = "x".repeat(CONTENTS_LIMIT_BYTES / 4);
        for number in 0..10 {
            set.remember(Path::new(&format!("/{number}")), "h", &text);
        }
        assert!(set.memory().contents_bytes <= CONTENTS_LIMIT_BYTES);
        assert!(set.content_of(Path::new("/9")).is_some());
        assert!(set.content_of(Path::new("/0")).is_none());
    }

    #[test]
    fn own_changes_are_a_chain_that_anybody_elses_breaks() {
        let (set, path) = (ReadSet::default(), Path::new("/a"));
        set.remember(path, "one", "1");
        set.wrote(path, "one", "two", "2");
        set.wrote(path, "two", "three", "3");
        set.insert(path, "three");
        assert_eq!(set.own_ancestors(path, "three"), ["one", "two"]);
        assert!(set.own_ancestors(path, "other").is_empty());
        set.remember(path, "theirs", "4");
        set.wrote(path, "theirs", "five", "5");
        assert_eq!(set.own_ancestors(path, "five"), ["theirs"]);
    }

    #[test]
    fn an_insert_without_content_does_not_leave_the_old_content_behind_as_current() {
        let set = ReadSet::default();
        set.remember(Path::new("/a"), "one", "old");
        set.insert("/a", "two");
        assert_eq!(set.hash_of(Path::new("/a")).as_deref(), Some("two"));
        assert_eq!(set.content_of(Path::new("/a")), None);
    }
}
