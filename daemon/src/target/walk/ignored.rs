//! What `.ignore`, `.gitignore` and `.git/info/exclude` hide, read the way everything in a work tree is read: regular files
//! only, through no link, up to a bound. A repository may hold a pipe or an endless device under such a name, and a search
//! must neither wait for it nor read it to its end.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, OFlags};

use super::super::open::open_beneath;

/// Bytes of a file of rules. Each line becomes a regular expression, so what is larger is no list that people keep; it hides
/// nothing then.
const FILE_LIMIT_BYTES: u64 = 128 * 1024;

/// The rules of one directory, and of those above it.
#[derive(Debug)]
pub(super) struct Level {
    above: Option<Rc<Level>>,
    own: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
}

/// The kinds of rules, the strongest first: one that speaks silences the others, however near those are.
const KINDS: [fn(&Level) -> &Gitignore; 3] = [|level| &level.own, |level| &level.git, |level| &level.exclude];

impl Level {
    /// The rules of the directory at `rest` below `anchor`, which is `path`.
    pub(super) fn read(anchor: BorrowedFd<'_>, rest: &Path, path: &Path, above: Option<Rc<Self>>) -> Rc<Self> {
        let rules = |name: &str| rules(anchor, &rest.join(name), path);
        Rc::new(Self {
            above,
            own: rules(".ignore"),
            git: rules(".gitignore"),
            exclude: rules(".git/info/exclude"),
        })
    }

    /// Whether these rules hide `path`.
    pub(super) fn hides(&self, path: &Path, kind: FileType) -> bool {
        for rules in KINDS {
            let mut level = Some(self);
            while let Some(now) = level {
                match rules(now).matched(path, kind == FileType::Directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => level = now.above.as_deref(),
                }
            }
        }
        false
    }
}

/// The rules in one file; none if it is missing or nothing that may be read.
fn rules(anchor: BorrowedFd<'_>, file: &Path, dir: &Path) -> Gitignore {
    let Some(text) = text(anchor, file) else {
        return Gitignore::empty();
    };
    let mut builder = GitignoreBuilder::new(dir);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern hides nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn text(anchor: BorrowedFd<'_>, file: &Path) -> Option<String> {
    use std::io::Read;
    // Looked at before it is opened: opening a device can have effects.
    let seen = rustix::fs::fstat(open_beneath(anchor, file, OFlags::PATH).ok()?).ok()?;
    if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
        return None;
    }
    let opened = open_beneath(anchor, file, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
    let mut bytes = Vec::new();
    let mut bounded = std::fs::File::from(opened).take(FILE_LIMIT_BYTES + 1);
    bounded.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= FILE_LIMIT_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
