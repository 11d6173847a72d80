//! Finding the project's instructions: beneath the root's handle, a regular file, and nothing that has the name of a secret or
//! lies behind a link out of the root.

use crate::auth::Redactor;
use crate::context::instructions::{Instructions, LIMIT_BYTES, NAMES};
use crate::target::{Target, TargetError, names};
use std::io::Read;

/// What the root of `target` says to whoever works in it.
pub(crate) async fn find(target: &Target, redactor: &Redactor) -> Instructions {
    let (target, redactor) = (target.clone(), redactor.clone());
    let found = tokio::task::spawn_blocking(move || look(&target, &redactor)).await;
    // A fault of the look is in the log; the turn goes on without.
    found.unwrap_or_default()
}

fn look(target: &Target, redactor: &Redactor) -> Instructions {
    let Some(root) = target.roots().first() else {
        return Instructions::default();
    };
    let home = target.home().and_then(|home| home.canonicalize().ok());
    if home.is_some_and(|home| home == root.path) {
        // A home directory is no project: what lies there speaks to every program of this name.
        return Instructions::default();
    }
    for name in NAMES {
        match read(target, name) {
            Ok(bytes) => return Instructions::of(name, bytes, |text| redactor.clean(text).into_owned()),
            Err(TargetError::NotFound(_)) => {}
            Err(error) => return Instructions::refused(&error.to_string()),
        }
    }
    Instructions::default()
}

fn read(target: &Target, name: &str) -> Result<Vec<u8>, TargetError> {
    let refused = |why: &str| Err(TargetError::Refused(format!("{name} {why}")));
    let Some(root) = target.roots().first() else {
        return Err(TargetError::NotFound(name.to_owned()));
    };
    let resolved = target.resolve_in(&root.path, name)?;
    if !resolved.path.starts_with(&root.path) {
        return refused("leads out of the project");
    }
    if names::is_secret(&resolved.path) {
        return refused("leads to a file with the name of a secret");
    }
    let mut file = target.open_file(&resolved)?;
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
    use crate::target::TargetSpec;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn found(root: &Path, home: &Path) -> Instructions {
        let environment = [("HOME".to_owned(), home.display().to_string())].into();
        let spec = TargetSpec {
            roots: vec![root.to_owned()],
            cwd: root.to_owned(),
            environment,
            ..TargetSpec::default()
        };
        look(&Target::open(spec).unwrap(), &Redactor::default())
    }

    fn text(found: &Instructions) -> Option<(&str, &str)> {
        let document = found.document.as_ref()?;
        Some((document.name, document.text.as_str()))
    }

    #[test]
    fn the_first_name_that_is_there_counts() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("p");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(home.path().join("AGENTS.md"), "of the parent").unwrap();
        assert_eq!(found(&root, home.path()), Instructions::default());
        std::fs::write(root.join("AGENT.md"), "old name\n").unwrap();
        assert_eq!(text(&found(&root, home.path())), Some(("AGENT.md", "old name")));
        std::fs::write(root.join("AGENTS.md"), "new name\n").unwrap();
        assert_eq!(text(&found(&root, home.path())), Some(("AGENTS.md", "new name")));
        assert_eq!(found(home.path(), home.path()), Instructions::default());
    }

    #[test]
    fn a_link_inside_is_followed_and_one_that_leaves_or_names_a_secret_is_refused_aloud() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("p");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("NOTES.md"), "notes").unwrap();
        std::fs::write(root.join(".env"), "KEY=1").unwrap();
        std::fs::write(home.path().join("outside.md"), "outside").unwrap();
        for (aim, reason) in [
            ("NOTES.md", None),
            (".env", Some("secret")),
            ("../outside.md", Some("out of the project")),
            ("/etc/passwd", Some("out of the project")),
        ] {
            let _ = std::fs::remove_file(root.join("AGENTS.md"));
            symlink(aim, root.join("AGENTS.md")).unwrap();
            let found = found(&root, home.path());
            let said = found.notice.clone().unwrap_or_default();
            match reason {
                None => assert_eq!(text(&found), Some(("AGENTS.md", "notes"))),
                Some(reason) => assert!(found.document.is_none() && said.contains(reason), "{aim}: {said}"),
            }
        }
    }

    #[test]
    fn a_pipe_is_refused_and_never_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("p");
        std::fs::create_dir(&root).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("AGENTS.md"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        assert!(
            found(&root, home.path())
                .notice
                .is_some_and(|notice| notice.contains("named pipe"))
        );
    }
}
