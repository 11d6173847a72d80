//! From the path a model wrote to the path it means: absolute, without links, with the facts policy judges. The last
//! components may not exist yet. Resolving opens nothing; [`super::open`] later opens exactly the resolved path and follows
//! no link on the way, so a link that appears in between makes the call fail instead of leading it elsewhere.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::{Target, TargetError, names};
use crate::policy::facts::{Access, Inside, PathFact};

/// Links followed in one path, as in the kernel.
const LINKS_LIMIT: usize = 40;

/// Bytes of a path, as in the kernel.
const PATH_LIMIT_BYTES: usize = 4095;

/// Trees that show the machine instead of holding files; never inside a root, even if a root is `/`.
pub(super) const SYSTEM_TREES: &[&str] = &["/proc", "/sys", "/dev"];

/// A path after resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// As the model wrote it.
    pub shown: String,
    /// Absolute, without links or `..`.
    pub path: PathBuf,
    /// Where it lies.
    pub inside: Inside,
    /// The path begins in a root of this index.
    pub(crate) root: Option<usize>,
}

impl Resolved {
    /// What policy needs to know.
    pub fn fact(&self, access: Access) -> PathFact {
        let shown = Path::new(&self.shown);
        PathFact {
            shown: self.shown.clone(),
            resolved: self.path.clone(),
            inside: self.inside,
            access,
            secret: names::is_secret(&self.path) || names::is_secret(shown),
            protected: names::is_protected(&self.path) || names::is_protected(shown),
        }
    }
}

impl Target {
    /// Resolves `shown` against the working directory; `~` is `HOME` of the commands' environment.
    ///
    /// # Errors
    /// The path is empty or malformed, goes through a file, or has too many links.
    pub fn resolve(&self, shown: &str) -> Result<Resolved, TargetError> {
        self.resolve_in(self.cwd(), shown)
    }

    /// As [`Target::resolve`], relative to `base`, which is resolved already.
    pub fn resolve_in(&self, base: &Path, shown: &str) -> Result<Resolved, TargetError> {
        if shown.is_empty() || shown.contains('\0') || shown.len() > PATH_LIMIT_BYTES {
            return Err(TargetError::Refused(
                "a path must have 1 to 4095 bytes and no NUL character".into(),
            ));
        }
        let path = without_links(&base.join(self.expanded(shown)?), shown)?;
        let root = self.root_of(&path);
        let inside = if root.is_some() {
            Inside::Inside
        } else {
            Inside::Outside
        };
        Ok(Resolved {
            shown: shown.to_string(),
            path,
            inside,
            root,
        })
    }

    /// The path for people: relative to the project's root, or absolute outside of it. In another root a relative path would
    /// be that of a file of the project.
    pub fn name_of(&self, resolved: &Resolved) -> String {
        let root = self.roots().first().filter(|_| resolved.root == Some(0));
        let relative = root.and_then(|root| resolved.path.strip_prefix(&root.path).ok());
        match relative {
            Some(rest) if rest.as_os_str().is_empty() => ".".to_string(),
            rest => rest.unwrap_or(&resolved.path).display().to_string(),
        }
    }

    fn expanded(&self, shown: &str) -> Result<PathBuf, TargetError> {
        let rest = match shown {
            "~" => "",
            _ => match shown.strip_prefix("~/") {
                Some(rest) => rest.trim_start_matches('/'),
                None => return Ok(PathBuf::from(shown)),
            },
        };
        let home = self
            .home()
            .ok_or_else(|| TargetError::Refused(format!("{shown}: HOME is not set for this session")))?;
        Ok(home.join(rest))
    }

    /// The innermost root that holds `path`.
    fn root_of(&self, path: &Path) -> Option<usize> {
        if SYSTEM_TREES.iter().any(|tree| path.starts_with(tree)) {
            return None;
        }
        let holding = self
            .roots()
            .iter()
            .enumerate()
            .filter(|(_, root)| path.starts_with(&root.path));
        holding
            .max_by_key(|(_, root)| root.path.as_os_str().len())
            .map(|(index, _)| index)
    }
}

/// Follows links component by component. Unlike `canonicalize` it also resolves paths whose end does not exist, and links
/// that point at nothing, because creating a file through one writes where it points.
fn without_links(path: &Path, shown: &str) -> Result<PathBuf, TargetError> {
    let mut ahead: VecDeque<OsString> = VecDeque::new();
    let mut done = PathBuf::from("/");
    let mut links = 0;
    let mut missing = false;
    push_front(&mut ahead, path);
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            if missing {
                return Err(TargetError::NotFound(format!(
                    "{shown}: {} does not exist",
                    done.display()
                )));
            }
            done.pop();
            continue;
        }
        done.push(&name);
        if missing {
            continue;
        }
        match std::fs::symlink_metadata(&done) {
            Ok(found) if found.is_symlink() => {
                links += 1;
                if links > LINKS_LIMIT {
                    return Err(TargetError::Refused(format!("{shown}: too many symbolic links")));
                }
                let aim = std::fs::read_link(&done).map_err(|error| TargetError::io(shown, error))?;
                done.pop();
                if aim.is_absolute() {
                    done = PathBuf::from("/");
                }
                push_front(&mut ahead, &aim);
            }
            Ok(found) if !found.is_dir() && !ahead.is_empty() => {
                return Err(TargetError::Refused(format!(
                    "{shown}: {} is not a directory",
                    done.display()
                )));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing = true,
            Err(error) => return Err(TargetError::io(shown, error)),
        }
    }
    Ok(done)
}

fn push_front(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_os_string()),
            Component::ParentDir => ahead.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::target::TargetSpec;

    fn target(dir: &Path) -> Target {
        let root = dir.join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        let environment = BTreeMap::from([("HOME".to_string(), dir.join("home").display().to_string())]);
        Target::open(TargetSpec {
            roots: vec![root.clone()],
            cwd: root,
            environment,
            hidden: Vec::new(),
            sandbox: Default::default(),
        })
        .unwrap()
    }

    #[test]
    fn paths_are_judged_where_they_lead_not_where_they_seem_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let target = target(&base);
        std::fs::write(base.join("outside.txt"), "x").unwrap();
        symlink(base.join("outside.txt"), base.join("root/out")).unwrap();
        symlink("../nowhere/new", base.join("root/dangling")).unwrap();
        symlink("src", base.join("root/link")).unwrap();
        let resolve = |shown: &str| {
            let resolved = target.resolve(shown).unwrap();
            (
                resolved.path.strip_prefix(&base).unwrap().display().to_string(),
                resolved.inside,
            )
        };
        assert_eq!(
            resolve("src/new/deep.rs"),
            ("root/src/new/deep.rs".into(), Inside::Inside)
        );
        assert_eq!(resolve("link/a.rs"), ("root/src/a.rs".into(), Inside::Inside));
        assert_eq!(resolve("out"), ("outside.txt".into(), Inside::Outside));
        assert_eq!(resolve("dangling"), ("nowhere/new".into(), Inside::Outside));
        assert_eq!(resolve("../x"), ("x".into(), Inside::Outside));
        assert_eq!(resolve("src/../src/./a"), ("root/src/a".into(), Inside::Inside));
        assert_eq!(resolve("~/notes"), ("home/notes".into(), Inside::Outside));
        assert_eq!(resolve("link/../../x"), ("x".into(), Inside::Outside));
    }

    #[test]
    fn a_path_through_a_file_a_loop_or_a_missing_parent_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let target = target(&base);
        std::fs::write(base.join("root/file"), "x").unwrap();
        symlink("loop", base.join("root/loop")).unwrap();
        for shown in ["file/x", "loop", "absent/../file", "", "a\0b"] {
            assert!(target.resolve(shown).is_err(), "{shown:?}");
        }
    }

    #[test]
    fn every_root_is_inside_and_a_name_outside_of_the_first_is_absolute() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for made in ["root/src", "lib/inner", "other", "linked"] {
            std::fs::create_dir_all(base.join(made)).unwrap();
        }
        symlink("../other", base.join("lib/out")).unwrap();
        symlink("../lib/inner", base.join("root/in")).unwrap();
        symlink("linked", base.join("link")).unwrap();
        let roots = ["root", "lib", "lib/inner", "gone", "link"].map(|name| base.join(name));
        let target = Target::open(TargetSpec {
            roots: roots.to_vec(),
            cwd: base.join("root"),
            ..TargetSpec::default()
        })
        .unwrap();
        let resolve = |shown: &str| {
            let resolved = target.resolve(shown).unwrap();
            (resolved.inside, resolved.root, target.name_of(&resolved))
        };
        let absolute = |name: &str| base.join(name).display().to_string();
        assert_eq!(resolve("src/a"), (Inside::Inside, Some(0), "src/a".to_string()));
        assert_eq!(resolve("../lib/a"), (Inside::Inside, Some(1), absolute("lib/a")));
        assert_eq!(resolve("in/a"), (Inside::Inside, Some(2), absolute("lib/inner/a")));
        for outside in [
            "../lib/out/a",
            "../other/a",
            "../library",
            "../gone/a",
            "../link/a",
            "../linked/a",
        ] {
            assert_eq!(resolve(outside).0, Inside::Outside, "{outside}");
        }
        let opened = |shown: &str| target.open_file(&target.resolve(shown).unwrap()).map(|_| ());
        assert!(matches!(opened("../gone/a"), Err(TargetError::RootGone(gone)) if gone == base.join("gone")));
        assert_eq!(target.standing_roots().len(), 3);

        // A link that took the place of a root is not followed in a session that has others.
        std::fs::rename(base.join("root"), base.join("moved")).unwrap();
        symlink("other", base.join("root")).unwrap();
        assert_eq!(target.standing_roots(), [base.join("lib"), base.join("lib/inner")]);
        let again = Target::open(TargetSpec {
            roots: roots.to_vec(),
            cwd: base.join("lib"),
            ..TargetSpec::default()
        });
        assert!(matches!(again, Err(TargetError::RootGone(gone)) if gone == base.join("root")));
    }

    #[test]
    fn a_root_added_later_is_held_and_those_before_stay_what_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let target = target(&base);
        let lib = base.join("lib");
        let widened = target.with_roots(std::slice::from_ref(&lib));
        assert_eq!(
            widened.resolve("../lib/a").unwrap().inside,
            Inside::Outside,
            "it is not there"
        );
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join("a"), "x").unwrap();
        let widened = widened.with_roots(std::slice::from_ref(&lib));
        let resolved = widened.resolve("../lib/a").unwrap();
        assert_eq!(resolved.inside, Inside::Inside);
        assert!(widened.open_file(&resolved).is_ok());
        assert_eq!(target.resolve("../lib/a").unwrap().inside, Inside::Outside);
        std::fs::rename(&lib, base.join("moved")).unwrap();
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join("a"), "y").unwrap();
        let again = widened.with_roots(std::slice::from_ref(&lib));
        assert!(matches!(again.open_file(&resolved), Err(TargetError::RootGone(_))));
    }

    #[test]
    fn secret_names_are_seen_through_a_link_of_an_innocent_name() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let target = target(&base);
        symlink(".env", base.join("root/notes.txt")).unwrap();
        assert!(target.resolve("notes.txt").unwrap().fact(Access::Read).secret);
        assert!(target.resolve(".git/config").unwrap().fact(Access::Write).protected);
    }

    #[test]
    fn the_machine_is_never_inside_a_root() {
        let target = Target::open(TargetSpec {
            roots: vec!["/".into()],
            cwd: "/".into(),
            ..TargetSpec::default()
        })
        .unwrap();
        assert_eq!(target.resolve("/proc/1/environ").unwrap().inside, Inside::Outside);
        assert_eq!(target.resolve("/tmp").unwrap().inside, Inside::Inside);
    }
}
