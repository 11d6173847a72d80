//! Finding what goes into the prompt beside the built-in text. What lies in the project is opened beneath the root's handle: a regular
//! file, and nothing that has the name of a secret or lies behind a link out of the root. What the person's own configuration lists may
//! lie elsewhere.

use crate::auth::Redactor;
use crate::config::context::Listed;
use crate::context::instructions::{Found, Instructions, LIMIT_BYTES, NAMES};
use crate::context::recipe::{Owner, Piece, Recipe};
use crate::target::{OpenFile, Resolved, Target, TargetError, names};
use std::io::Read;
use std::path::Path;

/// What whoever works in the root of `target` is told, by `recipe`.
///
/// # Errors
/// A file that is listed and must not be read; for people.
pub(crate) async fn find(target: &Target, redactor: &Redactor, recipe: &Recipe) -> Result<Instructions, String> {
    let (target, redactor, recipe) = (target.clone(), redactor.clone(), recipe.clone());
    let found = tokio::task::spawn_blocking(move || look(&target, &redactor, &recipe)).await;
    found.map_err(|error| format!("the project's instructions could not be looked for: {error}"))?
}

fn look(target: &Target, redactor: &Redactor, recipe: &Recipe) -> Result<Instructions, String> {
    let mut look = Look {
        target,
        redactor,
        recipe,
        found: Instructions::default(),
    };
    for piece in recipe.pieces() {
        match piece {
            Piece::Instructions => look.instructions(),
            Piece::File(listed, owner) => look.file(listed, owner)?,
        }
    }
    Ok(look.found)
}

/// What is found as the recipe is gone through.
struct Look<'a> {
    target: &'a Target,
    redactor: &'a Redactor,
    recipe: &'a Recipe,
    found: Instructions,
}

impl Look<'_> {
    /// The project's own instructions. One that cannot be read is told and does not keep the turn from going on.
    fn instructions(&mut self) {
        let root = self.target.roots().first().map(|root| root.path.clone());
        let home = self.target.home().and_then(|home| home.canonicalize().ok());
        if home.is_some() && home == root {
            // A home directory is no project: what lies there speaks to every program of this name.
            return;
        }
        for name in NAMES {
            let path = Path::new(name);
            let read = match beneath(self.target, path) {
                Err(TargetError::NotFound(_)) => continue,
                // It is there, and stands elsewhere in the prompt or nowhere.
                _ if self.recipe.leaves_out(path) || self.recipe.lists(path) => return,
                Ok(bytes) => self.add(name, path, bytes, Owner::Project, None),
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = read {
                self.found
                    .note(format!("the project's instructions are not read: {reason}"));
            }
            return;
        }
    }

    /// A file that is listed. One that is missing is told if whoever listed it meant this project.
    fn file(&mut self, listed: &Listed, by: Owner) -> Result<(), String> {
        let elsewhere = listed.path.is_absolute();
        let read = if elsewhere {
            anywhere(self.target, &listed.path)
        } else {
            beneath(self.target, &listed.path).map(|bytes| (bytes, Owner::Project))
        };
        match read {
            Ok((bytes, owner)) => {
                let section = listed.heading.as_deref().map(|heading| (heading, by));
                self.add(&listed.shown, &listed.path, bytes, owner, section)
                    .map_err(|reason| refusal(&reason, by))
            }
            Err(TargetError::NotFound(_)) => {
                if elsewhere || by == Owner::Project {
                    self.found
                        .note(format!("{} is listed in [context] and not there", listed.shown));
                }
                Ok(())
            }
            Err(error) => Err(refusal(&error.to_string(), by)),
        }
    }

    fn add(
        &mut self,
        source: &str,
        path: &Path,
        bytes: Vec<u8>,
        owner: Owner,
        section: Option<(&str, Owner)>,
    ) -> Result<(), String> {
        let found = Found {
            source,
            owner,
            bytes,
            section,
            without: self.recipe.headings(path).collect(),
        };
        self.found.add(found, |text| self.redactor.clean(text).into_owned())
    }
}

/// Why nothing is sent to a model.
fn refusal(reason: &str, by: Owner) -> String {
    let whose = match by {
        Owner::Person => "your configuration",
        Owner::Project => "the project's own file",
    };
    format!("a file that {whose} lists in [context] is not read: {reason}")
}

/// The first bytes of a file below the root.
fn beneath(target: &Target, path: &Path) -> Result<Vec<u8>, TargetError> {
    let (Some(root), Some(name)) = (target.roots().first(), path.to_str()) else {
        return Err(TargetError::NotFound(path.display().to_string()));
    };
    let resolved = target.resolve_in(&root.path, name)?;
    if !resolved.path.starts_with(&root.path) {
        return Err(TargetError::Refused(format!("{name} leads out of the project")));
    }
    check_no_secret(&resolved)?;
    first_bytes(target.open_file(&resolved)?, name)
}

/// The first bytes of a file that the person lists by its whole path, and who says what stands there: within the project it is the
/// project, by whatever path.
fn anywhere(target: &Target, path: &Path) -> Result<(Vec<u8>, Owner), TargetError> {
    let name = path.display().to_string();
    let resolved = target.resolve_in(Path::new("/"), &name)?;
    check_no_secret(&resolved)?;
    let within = target.roots().iter().any(|root| resolved.path.starts_with(&root.path));
    let owner = if within { Owner::Project } else { Owner::Person };
    Ok((first_bytes(target.open_listed(&resolved)?, &name)?, owner))
}

fn check_no_secret(resolved: &Resolved) -> Result<(), TargetError> {
    if names::is_secret(&resolved.path) || names::is_secret(Path::new(&resolved.shown)) {
        let shown = &resolved.shown;
        return Err(TargetError::Refused(format!(
            "{shown} leads to a file with the name of a secret"
        )));
    }
    Ok(())
}

fn first_bytes(mut file: OpenFile, name: &str) -> Result<Vec<u8>, TargetError> {
    let mut bytes = Vec::new();
    (&mut file.file)
        .take(LIMIT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| TargetError::io(name, error))?;
    Ok(bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::config::context::ContextSettings;
    use crate::target::TargetSpec;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    struct World {
        home: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(home.path().join("p/docs")).unwrap();
            Self { home }
        }

        fn root(&self) -> PathBuf {
            self.home.path().join("p")
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.root().join(name), text).unwrap();
        }

        fn find_in(&self, root: &Path, recipe: &Recipe) -> Result<Instructions, String> {
            let environment = [("HOME".to_owned(), self.home.path().display().to_string())].into();
            let spec = TargetSpec {
                roots: vec![root.to_owned()],
                cwd: root.to_owned(),
                environment,
                hidden: vec![self.home.path().join("agentd")],
                ..TargetSpec::default()
            };
            look(&Target::open(spec).unwrap(), &Redactor::default(), recipe)
        }

        /// What the project lists.
        fn listed(&self, entries: &[&str]) -> Result<Instructions, String> {
            let recipe = Recipe::of(ContextSettings::default(), including(entries));
            self.find_in(&self.root(), &recipe)
        }

        /// What the person lists.
        fn by_person(&self, entries: &[&str]) -> Result<Instructions, String> {
            let recipe = Recipe::of(including(entries), ContextSettings::default());
            self.find_in(&self.root(), &recipe)
        }

        fn found(&self) -> Instructions {
            self.find_in(&self.root(), &Recipe::default()).unwrap()
        }
    }

    fn including(entries: &[&str]) -> ContextSettings {
        let listed = |entry: &&str| Listed {
            path: entry.into(),
            heading: None,
            shown: (*entry).to_owned(),
        };
        ContextSettings {
            include: entries.iter().map(listed).collect(),
            ..ContextSettings::default()
        }
    }

    fn notice(found: &Instructions) -> String {
        found.within(u64::MAX).1.unwrap_or_default()
    }

    fn texts(found: &Instructions) -> Vec<(&str, &str)> {
        found
            .documents
            .iter()
            .map(|document| (document.source.as_str(), document.text.as_str()))
            .collect()
    }

    #[test]
    fn the_first_name_that_is_there_counts() {
        let world = World::new();
        std::fs::write(world.home.path().join("AGENTS.md"), "of the parent").unwrap();
        assert_eq!(world.found(), Instructions::default());
        world.write("AGENT.md", "old name\n");
        assert_eq!(texts(&world.found()), [("AGENT.md", "old name")]);
        world.write("AGENTS.md", "new name\n");
        assert_eq!(texts(&world.found()), [("AGENTS.md", "new name")]);
        let home = world.home.path();
        assert_eq!(world.find_in(home, &Recipe::default()), Ok(Instructions::default()));
    }

    #[test]
    fn listed_files_stand_in_their_order_and_move_the_instructions() {
        let world = World::new();
        for (name, text) in [("AGENTS.md", "agents"), ("docs/A.md", "a"), ("docs/B.md", "b")] {
            world.write(name, text);
        }
        let listed = world.listed(&["docs/B.md", "docs/A.md"]).unwrap();
        assert_eq!(
            texts(&listed),
            [("AGENTS.md", "agents"), ("docs/B.md", "b"), ("docs/A.md", "a")]
        );
        let moved = world.listed(&["docs/B.md", "AGENTS.md"]).unwrap();
        assert_eq!(texts(&moved), [("docs/B.md", "b"), ("AGENTS.md", "agents")]);
        let missing = world.listed(&["docs/C.md"]).unwrap();
        assert_eq!(texts(&missing), [("AGENTS.md", "agents")]);
        assert!(notice(&missing).contains("docs/C.md"));
        assert_eq!(notice(&world.by_person(&["docs/C.md"]).unwrap()), "");
        let none = ContextSettings {
            exclude: including(&["AGENTS.md"]).include,
            ..ContextSettings::default()
        };
        let none = Recipe::of(none, ContextSettings::default());
        world.write("AGENT.md", "old name");
        assert_eq!(world.find_in(&world.root(), &none), Ok(Instructions::default()));
    }

    #[test]
    fn a_link_inside_is_followed_and_one_that_leaves_or_names_a_secret_is_refused_aloud() {
        let world = World::new();
        world.write("NOTES.md", "notes");
        world.write(".env", "KEY=1");
        std::fs::write(world.home.path().join("outside.md"), "outside").unwrap();
        for (aim, reason) in [
            ("NOTES.md", None),
            (".env", Some("secret")),
            ("../outside.md", Some("out of the project")),
            ("/etc/passwd", Some("out of the project")),
        ] {
            for name in ["AGENTS.md", "docs/A.md"] {
                let _ = std::fs::remove_file(world.root().join(name));
            }
            symlink(aim, world.root().join("AGENTS.md")).unwrap();
            symlink(Path::new("..").join(aim), world.root().join("docs/A.md")).unwrap();
            let found = world.found();
            let listed = world.listed(&["AGENTS.md", "docs/A.md"]);
            match reason {
                None => {
                    assert_eq!(texts(&found), [("AGENTS.md", "notes")]);
                    assert_eq!(
                        texts(&listed.unwrap()),
                        [("AGENTS.md", "notes"), ("docs/A.md", "notes")]
                    );
                }
                Some(reason) => {
                    assert!(found.documents.is_empty() && notice(&found).contains(reason), "{aim}");
                    for listed in [listed, world.listed(&["docs/A.md"]), world.by_person(&["docs/A.md"])] {
                        assert!(listed.unwrap_err().contains(reason), "{aim}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_pipe_is_refused_and_never_waited_for() {
        let world = World::new();
        for name in ["AGENTS.md", "docs/A.md"] {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let path = world.root().join(name);
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        assert!(notice(&world.found()).contains("named pipe"));
        assert!(world.listed(&["docs/A.md"]).unwrap_err().contains("named pipe"));
    }

    #[test]
    fn the_person_lists_files_anywhere_but_secrets_the_daemons_own_and_what_others_write() {
        let world = World::new();
        let home = world.home.path();
        std::fs::create_dir(home.join("agentd")).unwrap();
        for name in ["house.md", "agentd/house.md", "agentd/token", "id_rsa", "open.md"] {
            std::fs::write(home.join(name), name).unwrap();
        }
        symlink("house.md", home.join("link.md")).unwrap();
        std::fs::set_permissions(home.join("open.md"), std::fs::Permissions::from_mode(0o666)).unwrap();
        world.write("in.md", "in");
        let by_person = |name: &str| {
            let path = home.join(name).display().to_string();
            world.by_person(&[&path]).map(|found| {
                let document = found.documents.first().cloned();
                document.map(|document| (document.text, document.owner))
            })
        };
        for (name, text, owner) in [
            ("house.md", "house.md", Owner::Person),
            ("link.md", "house.md", Owner::Person),
            ("agentd/house.md", "agentd/house.md", Owner::Person),
            ("p/in.md", "in", Owner::Project),
        ] {
            assert_eq!(by_person(name), Ok(Some((text.to_owned(), owner))), "{name}");
        }
        for (name, reason) in [
            ("agentd/token", "belongs to agentd"),
            ("id_rsa", "secret"),
            ("open.md", "every user"),
        ] {
            assert!(by_person(name).unwrap_err().contains(reason), "{name}");
        }
        assert_eq!(by_person("none.md"), Ok(None));
    }
}
