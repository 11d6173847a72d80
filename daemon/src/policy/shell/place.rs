//! Paths judged as text: made absolute, normalised, compared with the project, home and the system's directories.

use std::path::{Path, PathBuf};

use super::arg::{Arg, UNKNOWN};
use super::pattern;
use crate::policy::facts::{CommandFact, outside_of};

/// First-level directories a system does not live without. A pattern ends in `*`.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib*",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "System",
    "Library",
    "Users",
    "Applications",
    "Volumes",
];

/// An absolute path as components, with a mark for a pattern at its end that stands for everything in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spot {
    pub names: Vec<String>,
    pub contents: bool,
    /// Its names may hold patterns.
    pub glob: bool,
}

impl Spot {
    /// `text`, read as a pattern, taken from `cwd`; none if it begins with something unknown.
    pub(super) fn new(text: &str, cwd: &Path) -> Option<Self> {
        if text.starts_with(UNKNOWN) {
            return None;
        }
        let absolute = if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("{}/{text}", cwd.to_string_lossy())
        };
        let mut names: Vec<String> = Vec::new();
        for component in absolute.split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                name => names.push(name.to_owned()),
            }
        }
        let mut spot = Self {
            names,
            contents: false,
            glob: true,
        };
        spot.leave_process_root();
        while spot.names.last().is_some_and(|last| pattern::is_everything(last)) {
            spot.names.pop();
            spot.contents = true;
        }
        Some(spot)
    }

    /// `/proc/PID/root` is the root directory by another name.
    fn leave_process_root(&mut self) {
        if self.names.len() >= 3
            && self.names.first().is_some_and(|name| name == "proc")
            && self.names.get(2).is_some_and(|name| name == "root")
        {
            self.names.drain(..3);
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/{}", self.names.join("/")))
    }

    fn is(&self, path: &Path) -> bool {
        self.matches_names(&names_of(path), Length::Same)
    }

    /// Whether `path` lies below this spot.
    fn is_above(&self, path: &Path) -> bool {
        self.matches_names(&names_of(path), Length::Shorter)
    }

    /// Both sides may be patterns: `lib*` is in the table, `/l?b` may be on the command line.
    fn first_is(&self, table: &str, first: &str) -> bool {
        pattern::matches(table, first) || (self.glob && pattern::matches(first, table.trim_end_matches('*')))
    }

    fn matches_names(&self, other: &[String], length: Length) -> bool {
        let fits = match length {
            Length::Same => self.names.len() == other.len(),
            Length::Shorter => self.names.len() < other.len(),
        };
        fits && self
            .names
            .iter()
            .zip(other)
            .all(|(own, name)| own == name || (self.glob && pattern::matches(own, name)))
    }

    /// What would be lost if everything here were destroyed; none if a person may decide.
    pub(super) fn catastrophe(&self, fact: &CommandFact) -> Option<String> {
        match self.names.as_slice() {
            [] => return Some("the whole file system".to_owned()),
            [first] if SYSTEM_DIRECTORIES.iter().any(|name| self.first_is(name, first)) => {
                return Some(format!("the system directory /{first}"));
            }
            _ => {}
        }
        if fact
            .home
            .as_deref()
            .is_some_and(|home| self.is(home) || self.is_above(home))
        {
            return Some("your home directory".to_owned());
        }
        let above = fact.roots.iter().position(|root| self.is_above(root));
        above.map(|root| match root {
            0 => "a directory that holds the project".to_owned(),
            _ => "a directory that holds one the session works in".to_owned(),
        })
    }
}

#[derive(Clone, Copy)]
enum Length {
    Same,
    Shorter,
}

fn names_of(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|component| match component {
            std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}

/// The directories a command may be running in. More than one after a `cd` that may have failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cwd {
    pub dirs: Vec<PathBuf>,
    /// The list is complete.
    pub sure: bool,
}

/// Most directories kept; what branches into more is no longer sure.
const CWD_LIMIT: usize = 8;

impl Cwd {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dirs: vec![dir.to_owned()],
            sure: true,
        }
    }

    /// Where `cd TARGET` leads from here.
    pub(super) fn enter(&self, target: &Arg) -> Self {
        let dirs: Vec<PathBuf> = self
            .dirs
            .iter()
            .filter_map(|dir| Spot::new(&target.text, dir))
            .map(|spot| spot.path())
            .collect();
        Self {
            sure: self.sure && target.is_sure() && !target.glob && !dirs.is_empty(),
            dirs,
        }
    }

    /// Either here or there.
    pub(super) fn or(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for dir in &other.dirs {
            if !both.dirs.contains(dir) {
                both.dirs.push(dir.clone());
            }
        }
        both.sure &= other.sure && both.dirs.len() <= CWD_LIMIT;
        both.dirs.truncate(CWD_LIMIT);
        both
    }

    /// Every place `text` may mean.
    pub(super) fn spots(&self, text: &str) -> Vec<Spot> {
        if text.starts_with('/') {
            return Spot::new(text, Path::new("/")).into_iter().collect();
        }
        self.dirs.iter().filter_map(|dir| Spot::new(text, dir)).collect()
    }

    /// Whether it is certain that commands run inside the project.
    pub(super) fn is_inside(&self, fact: &CommandFact) -> bool {
        self.sure
            && self
                .dirs
                .iter()
                .all(|dir| fact.roots.iter().any(|root| dir.starts_with(root)))
    }
}

/// Files that are no files of the project but harmless to read.
const HARMLESS_FILES: &[&str] = &["/dev/null", "/dev/stdin", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2"];

/// Why an operand may not be read without asking; none if it lies in the project and is no secret.
pub(super) fn concern(operand: &Arg, cwd: &Cwd, fact: &CommandFact) -> Option<String> {
    if !operand.is_sure() {
        return Some(format!("The value of {} is not known before it runs.", operand.shown()));
    }
    let text = operand.text.as_str();
    if text.is_empty() || HARMLESS_FILES.contains(&text) {
        return None;
    }
    if !text.starts_with('/') && !cwd.sure {
        return Some("The directory it runs in is not known beforehand.".to_owned());
    }
    let outside = |spot: &Spot| !fact.roots.iter().any(|root| spot.path().starts_with(root));
    if cwd.spots(text).iter().any(outside) {
        return Some(format!("{text} is outside {}.", outside_of(&fact.roots)));
    }
    // A pattern before `..` may go through a link, so text says nothing about where it ends.
    if operand.glob && text.contains("..") {
        return Some(format!("{text} may lead outside the project."));
    }
    if text.split('/').any(|name| names_secret(name, operand.glob)) {
        return Some(format!("{text} may hold secrets."));
    }
    None
}

/// Names that usually hold keys or passwords; a pattern that could match one counts when it says so itself.
pub(super) fn names_secret(name: &str, glob: bool) -> bool {
    const SAMPLES: &[&str] = &[".env", ".env.local", ".netrc", ".npmrc"];
    let lower = name.to_ascii_lowercase();
    let plain = lower.trim_matches(|c| matches!(c, '*' | '?'));
    let certain = lower.starts_with(".env")
        || matches!(plain, ".netrc" | ".npmrc" | "netrc" | "npmrc")
        || [".pem", ".key"]
            .iter()
            .any(|end| lower.ends_with(end) || plain.ends_with(end))
        || plain.starts_with("id_")
        || plain.starts_with("credentials");
    // A leading dot is only matched by a dot, so `*` does not mean `.env` but `.*` and `.e*` do.
    certain || (glob && lower.starts_with('.') && SAMPLES.iter().any(|sample| pattern::matches(&lower, sample)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact() -> CommandFact {
        CommandFact {
            cwd: "/home/u/project".into(),
            roots: vec!["/home/u/project".into()],
            home: Some("/home/u".into()),
            ..CommandFact::default()
        }
    }

    #[test]
    fn every_spelling_of_a_vital_directory_is_recognised() {
        let fact = fact();
        for text in [
            "/",
            "//",
            "/.",
            "/..",
            "/*",
            "/.*",
            "/etc",
            "/etc/",
            "/e*",
            "/etc/*",
            "/home",
            "/home/u",
            "/home/*",
            "..",
            "../..",
            "../*",
            "/lib64",
            "/proc/self/root",
            "/usr/../",
        ] {
            let spot = Spot::new(text, &fact.cwd);
            assert!(spot.is_some_and(|spot| spot.catastrophe(&fact).is_some()), "{text}");
        }
        for text in [
            ".",
            "./",
            "*",
            "target",
            "../other",
            "/tmp",
            "/tmp/x",
            "/etc/nginx",
            "/home/u/other",
            "/usr/local/lib",
        ] {
            let spot = Spot::new(text, &fact.cwd);
            assert!(spot.is_some_and(|spot| spot.catastrophe(&fact).is_none()), "{text}");
        }
    }

    #[test]
    fn what_holds_any_root_is_vital_and_what_lies_in_any_is_inside() {
        let fact = CommandFact {
            roots: vec!["/home/u/project".into(), "/work/lib/core".into()],
            ..fact()
        };
        let lost = |text| Spot::new(text, &fact.cwd).and_then(|spot| spot.catastrophe(&fact));
        assert!(lost("/work/lib").is_some_and(|lost| lost.contains("holds one the session works in")));
        assert!(lost("/work/*").is_some() && lost("../../../work").is_some());
        assert_eq!(lost("/work/lib/core"), None);
        assert_eq!(lost("/work/library"), None);
        let cwd = Cwd::new(&fact.cwd);
        let concern = |text: &str| concern(&Arg::sure(text), &cwd, &fact);
        assert_eq!(concern("/work/lib/core/a"), None);
        let told = concern("/work/lib/a").unwrap_or_default();
        assert_eq!(
            told,
            "/work/lib/a is outside the session's directories (/home/u/project, /work/lib/core)."
        );
        assert!(concern("/work/lib/core/../a").is_some());
    }

    #[test]
    fn secret_names_are_recognised_in_patterns() {
        for name in [
            ".env",
            ".env.production",
            "server.pem",
            "*.pem",
            "id_rsa",
            "id_*",
            "credentials.json",
            ".npmrc",
        ] {
            assert!(names_secret(name, name.contains('*')), "{name}");
        }
        assert!(names_secret(".*", true));
        for name in ["*", "*.rs", "README.md", "environment.ts", "src", "keys.rs"] {
            assert!(!names_secret(name, name.contains('*')), "{name}");
        }
    }
}
