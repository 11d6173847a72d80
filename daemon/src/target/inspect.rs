//! What a command line names on this machine, for policy: files its words mean, with links resolved; whether the
//! repositories it may work in tell git to run programs; whether the read-only sandbox can be had. Nothing is run but
//! `git config --list`, which reads.

use std::path::{Path, PathBuf};

use super::Target;
use super::git_config;
use crate::policy::facts::{Access, CommandFact, PathFact};
use crate::policy::shell;

/// Words of one command line that are looked up.
const OPERANDS_LIMIT: usize = 256;

/// Files that one pattern may name; of more, none is looked at, and the pattern itself asks.
const MATCHES_LIMIT: usize = 1000;

/// Repositories looked into for one command line.
const REPOSITORIES_LIMIT: usize = 8;

/// Files every command may name.
const HARMLESS: &[&str] = &["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/tty"];

impl Target {
    /// Adds to `command` what this machine says about it. Blocks on the file system.
    pub fn look_at(&self, command: &mut CommandFact) {
        command.sandbox = self.sandbox().support.form.is_some();
        let names = shell::operands(command);
        let mut places = vec![command.cwd.clone()];
        for name in names.iter().take(OPERANDS_LIMIT) {
            for path in matches(name) {
                if HARMLESS.iter().any(|harmless| path == Path::new(harmless)) {
                    continue;
                }
                let Some(fact) = self.operand(name, &path) else { continue };
                if fact.resolved.is_dir() && !places.contains(&fact.resolved) {
                    places.push(fact.resolved.clone());
                }
                // A plain file inside the project says nothing that the words did not say.
                if fact.secret || fact.inside == crate::policy::Inside::Outside {
                    command.operands.push(fact);
                }
            }
        }
        if names_git(&command.text) {
            command.git_config = self.programs_of_git(&places);
        }
    }

    fn operand(&self, name: &str, path: &Path) -> Option<PathFact> {
        path.symlink_metadata().ok()?;
        let mut resolved = self.resolve(path.to_str()?).ok()?;
        resolved.shown = name.to_owned();
        let mut fact = resolved.fact(Access::Read);
        fact.secret |= super::names::is_secret(path);
        Some(fact)
    }

    fn programs_of_git(&self, places: &[PathBuf]) -> Vec<String> {
        let inside = |place: &&PathBuf| self.roots().iter().any(|root| place.starts_with(&root.path));
        let Some(git) = self.program("git") else { return Vec::new() };
        let mut keys: Vec<String> = Vec::new();
        for place in places.iter().filter(inside).take(REPOSITORIES_LIMIT) {
            keys.extend(git_config::programs(&git, place, self.home()));
        }
        if places.len() > REPOSITORIES_LIMIT {
            keys.push(format!("of more than {REPOSITORIES_LIMIT} directories"));
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// Where a program is on the commands' PATH, the project's own directories left out.
    fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.environment().get("PATH")?;
        let dirs = path.split(':').map(Path::new).filter(|dir| dir.is_absolute());
        let outside = dirs.filter(|dir| !self.roots().iter().any(|root| dir.starts_with(&root.path)));
        outside.map(|dir| dir.join(name)).find(|program| program.is_file())
    }
}

/// Whether the text may run git: cheaper than to ask git about every `ls`.
fn names_git(text: &str) -> bool {
    text.contains("git")
}

/// The existing files a name or pattern means.
fn matches(name: &str) -> Vec<PathBuf> {
    if !name.contains(['*', '?', '[']) {
        return vec![PathBuf::from(name)];
    }
    let mut found = vec![PathBuf::from("/")];
    for component in Path::new(name).components() {
        let std::path::Component::Normal(component) = component else { continue };
        let Some(component) = component.to_str() else { return Vec::new() };
        let mut next = Vec::new();
        for dir in found {
            if !component.contains(['*', '?', '[']) {
                next.push(dir.join(component));
                continue;
            }
            let Ok(pattern) = globset::Glob::new(component) else { return Vec::new() };
            let pattern = pattern.compile_matcher();
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                if pattern.is_match(Path::new(&entry.file_name())) {
                    next.push(entry.path());
                }
            }
            if next.len() > MATCHES_LIMIT {
                next.truncate(MATCHES_LIMIT);
                break;
            }
        }
        found = next;
    }
    found
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::target::TargetSpec;

    fn seen(root: &Path, text: &str) -> Vec<(String, bool)> {
        let target = Target::open(TargetSpec { roots: vec![root.into()], cwd: root.into(), ..TargetSpec::default() }).unwrap();
        let mut command = CommandFact { text: text.into(), cwd: root.into(), roots: vec![root.into()], ..CommandFact::default() };
        target.look_at(&mut command);
        command.operands.iter().map(|fact| (fact.resolved.strip_prefix(root).unwrap_or(&fact.resolved).display().to_string(), fact.secret)).collect()
    }

    #[test]
    fn secrets_and_links_that_leave_are_seen_behind_words_and_patterns() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir_all(root.join("conf")).unwrap();
        std::fs::write(base.join("outside"), "x").unwrap();
        std::fs::write(root.join("conf/tls.key"), "x").unwrap();
        std::fs::write(root.join("plain.txt"), "x").unwrap();
        std::os::unix::fs::symlink(base.join("outside"), root.join("notes.txt")).unwrap();
        assert_eq!(seen(&root, "cat conf/*"), [("conf/tls.key".to_owned(), true)]);
        let outside = base.join("outside").display().to_string();
        assert_eq!(seen(&root, "cat plain.txt notes.txt"), [(outside, false)]);
        assert_eq!(seen(&root, "cat plain.txt missing.key 2>/dev/null"), []);
    }
}
