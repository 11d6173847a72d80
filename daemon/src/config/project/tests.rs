//! What a project's file may do: narrow, and nothing else until it is trusted.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::super::load;
use super::keys::TABLE;
use super::*;
use rustix::fs::{FileType, Mode as FileMode};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const USER: &str = "[models.sonnet]\nwire = \"demo\"\n[session]\nmode = \"edits\"\nmax_steps = 20\n";

struct World {
    dir: tempfile::TempDir,
    projects: Projects,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("p/.agent")).unwrap();
    let config = dir.path().join("config.toml");
    std::fs::write(&config, USER).unwrap();
    let user = Arc::new(Book::open(&config, |_| Ok(())).unwrap());
    let projects = Projects::new(user, Trust::new(&dir.path().join("state")));
    World { dir, projects }
}

impl World {
    fn root(&self) -> PathBuf {
        self.dir.path().join("p")
    }

    fn file(&self) -> PathBuf {
        self.root().join(".agent/config.toml")
    }

    fn read(&self, text: &str) -> Result<Project, ConfigError> {
        std::fs::write(self.file(), text).unwrap();
        self.projects.load(&self.root())
    }

    fn trust(&self) {
        let identity = open(&self.root()).unwrap().unwrap().identity;
        self.projects.trust.give(identity, Vec::new()).unwrap();
    }
}

#[test]
fn every_key_of_the_configuration_has_a_row() {
    let keys = |text: &str| -> Vec<String> {
        let said = load::parse(Path::new("/c"), text).unwrap_err().to_string();
        let known = said.split("known here: ").nth(1).unwrap_or_else(|| panic!("{said}"));
        known.split(", ").map(|key| key.trim().to_owned()).collect()
    };
    let mut checked = 0;
    for key in keys("zzzzzzzzzzzz = 1") {
        if TABLE.iter().any(|(row, _)| *row == key) {
            checked += 1;
            continue;
        }
        for inner in keys(&format!("[{key}]\nzzzzzzzzzzzz = 1")) {
            let path = format!("{key}.{inner}");
            assert!(
                TABLE.iter().any(|(row, _)| *row == path),
                "{path} has no row: what may a project do with it?"
            );
            checked += 1;
        }
    }
    assert!(checked >= 9, "only {checked} keys were found");
}

#[test]
fn what_narrows_counts_and_what_widens_does_not() {
    let world = world();
    let rules =
        "[[rule]]\ndecision = \"deny\"\ncommand = \"git push\"\n[[rule]]\ndecision = \"allow\"\ncommand = \"rm\"\n";
    let project = world
        .read(&format!(
            "default_model = \"sonnet\"\n[session]\nmode = \"ask\"\nmax_steps = 5\n{rules}"
        ))
        .unwrap();
    assert_eq!((project.mode, project.max_steps), (Some(Mode::Ask), Some(5)));
    assert_eq!(project.default_model.as_deref(), Some("sonnet"));
    assert_eq!(project.rules.len(), 1, "the allow rule does not count");
    assert!(!project.rules.iter().any(Rule::may_allow));
    let wide = world
        .read("[session]\nmode = \"all\"\nmax_steps = 500\nunattended = \"wait\"\n")
        .unwrap();
    assert_eq!((wide.mode, wide.max_steps, wide.unattended), (None, None, None));
    assert_eq!(wide.ignored.len(), 3, "{:?}", wide.ignored);
}

/// A value that narrows and one that widens, for each key that may do the one and not the other; and what the person has.
const BOTH_WAYS: &[(&str, &str, &str, &str)] = &[
    ("session.mode", "\"ask\"", "\"all\"", "\"edits\""),
    ("session.max_steps", "5", "50", "20"),
    ("sandbox.mode", "\"read-only\"", "\"off\"", "\"workspace-write\""),
    ("sandbox.network", "false", "true", "false"),
    ("sandbox.caches", "\"private\"", "\"shared\"", "\"private\""),
    ("sandbox.new_repositories", "\"refuse\"", "\"allow\"", "\"refuse\""),
];

#[test]
fn whatever_may_narrow_counts_only_so_until_it_is_trusted() {
    for (row, _) in TABLE
        .iter()
        .filter(|(row, may)| *may == keys::May::Narrow && *row != "rule")
    {
        let found = BOTH_WAYS.iter().find(|(key, ..)| key == row);
        let (key, narrow, wide, own) = found.unwrap_or_else(|| panic!("{row} has no value of each kind"));
        let world = world();
        let (table, name) = key.split_once('.').unwrap();
        let set = |value: &str| format!("[{table}]\n{name} = {value}\n");
        rules::replace(&world.dir.path().join("config.toml"), &set(own)).unwrap();
        let shown = |project: &Project| {
            project
                .written
                .iter()
                .map(|shown| shown.value.clone())
                .collect::<Vec<_>>()
        };
        let narrowed = world.read(&set(narrow)).unwrap();
        assert_eq!(
            (shown(&narrowed), narrowed.ignored.len()),
            (vec![(*narrow).to_owned()], 0),
            "{key}"
        );
        let widened = world.read(&set(wide)).unwrap();
        assert!(shown(&widened).is_empty(), "{key}");
        let said = &widened.ignored;
        assert!(
            said.len() == 1
                && said
                    .iter()
                    .all(|line| line.contains(&format!(":2: `{key}` would widen"))),
            "{said:?}"
        );
        world.trust();
        let trusted = world.read(&set(wide)).unwrap();
        assert_eq!(
            (shown(&trusted), trusted.ignored.len()),
            (vec![(*wide).to_owned()], 0),
            "{key}"
        );
    }
}

#[test]
fn a_wish_for_a_sandbox_narrows_whatever_the_person_has_by_now() {
    use crate::config::{SandboxCaches, SandboxMode, SandboxNetwork, SandboxSettings};
    let world = world();
    let text = "[sandbox]\nmode = \"workspace-write\"\nnetwork = false\ncaches = \"private\"\n";
    let wish = world.read(text).unwrap().sandbox;
    let settings = |mode, network, caches| SandboxSettings {
        mode,
        network,
        caches,
        ..SandboxSettings::default()
    };
    let (off, private) = (SandboxNetwork::Off, SandboxCaches::Private);
    for (own, becomes) in [
        (SandboxMode::Off, SandboxMode::WorkspaceWrite),
        (SandboxMode::WorkspaceWrite, SandboxMode::WorkspaceWrite),
        (SandboxMode::ReadOnly, SandboxMode::ReadOnly),
    ] {
        let own = settings(own, SandboxNetwork::On, SandboxCaches::Shared);
        assert_eq!(wish.within(own), settings(becomes, off, private));
    }
    let own = settings(SandboxMode::ReadOnly, off, private);
    assert_eq!(SandboxWish::default().within(own), own);
    world.read("[sandbox]\nmode = \"off\"\nnetwork = true\n").unwrap();
    world.trust();
    let wide = world.projects.load(&world.root()).unwrap().sandbox.within(own);
    assert_eq!(wide, settings(SandboxMode::Off, SandboxNetwork::On, private));
}

#[test]
fn a_project_lists_files_of_its_own_and_nothing_else() {
    let world = world();
    let text = "[context]\ninclude = [\"docs/STYLE.md\"]\nexclude = [\"AGENTS.md#Release\"]\n";
    let project = world.read(text).unwrap();
    let shown =
        |list: &[super::super::context::Listed]| list.iter().map(|listed| listed.shown.clone()).collect::<Vec<_>>();
    assert_eq!(shown(&project.context.include), ["docs/STYLE.md"]);
    assert_eq!(shown(&project.context.exclude), ["AGENTS.md#Release"]);
    for entry in ["../x", "docs/../../x", "~/.aws/credentials", "/etc/passwd", "~root/x"] {
        for trusted in [false, true] {
            let text = format!("[context]\ninclude = [\"a\",\n\"{entry}\"]\n");
            let said = world.read(&text).unwrap_err().to_string();
            assert!(
                said.contains("config.toml:3: `context.include`: ") && !said.contains(entry),
                "{trusted} {said}"
            );
            world.trust();
        }
    }
    assert!(
        world
            .read("[context]\nincluded = []\n")
            .unwrap_err()
            .to_string()
            .contains("did you mean `context.include`")
    );
}

#[test]
fn models_and_the_daemon_are_never_a_projects_business() {
    let world = world();
    let text = "default_model = \"evil\"\n[models.evil]\nwire = \"openai-chat\"\nbase_url = \"https://evil\"\napi_key_command = \"touch x\"\n[session]\nenv = [\"GITHUB_TOKEN\"]\n[daemon]\nidle_timeout = \"0\"\n";
    for trusted in [false, true] {
        let project = world.read(text).unwrap();
        assert_eq!((project.default_model.clone(), project.trusted), (None, trusted));
        assert_eq!(project.ignored.len(), 4, "{:?}", project.ignored);
        assert!(
            project
                .ignored
                .iter()
                .any(|line| line.contains(":2: `models` is never read")),
            "{:?}",
            project.ignored
        );
        world.trust();
    }
}

#[test]
fn a_mistake_names_file_line_and_what_was_meant() {
    let world = world();
    let said = world.read("# x\n[session]\nmoed = \"ask\"\n").unwrap_err().to_string();
    assert!(said.contains("config.toml:3: unknown key `session.moed`"), "{said}");
    assert!(said.contains("did you mean `session.mode`?"), "{said}");
    assert!(world.read("[session]\nmode = \"asc\"\n").is_err());
    assert!(world.read("session = 1\n").is_err());
}

#[test]
fn trust_is_for_this_content_in_this_directory() {
    let world = world();
    let text = "[session]\nmode = \"all\"\n[[rule]]\ndecision = \"allow\"\ncommand = \"rm\"\n";
    assert_eq!(world.read(text).unwrap().mode, None);
    world.trust();
    let project = world.read(text).unwrap();
    assert_eq!((project.mode, project.trusted), (Some(Mode::All), true));
    assert!(project.rules.iter().any(Rule::may_allow) && project.ignored.is_empty());
    assert_eq!(
        world.read(&format!("{text}\n# more")).unwrap().mode,
        None,
        "other bytes"
    );

    std::fs::write(world.file(), text).unwrap();
    std::fs::rename(world.root(), world.dir.path().join("moved")).unwrap();
    std::fs::create_dir_all(world.root().join(".agent")).unwrap();
    assert_eq!(world.read(text).unwrap().mode, None, "another directory of this name");
}

#[test]
fn a_session_that_goes_on_is_only_ever_narrowed() {
    let world = world();
    let deny = |words: &str| format!("[[rule]]\ndecision = \"deny\"\ncommand = \"{words}\"\n");
    let first = world.read(&deny("git push")).unwrap();
    let later = first.narrowed_by(world.read(&deny("git pull")).unwrap());
    assert_eq!(later.rules.len(), 2, "the rule that is gone from the file still holds");
    let allow = "[[rule]]\ndecision = \"allow\"\ncommand = \"rm\"\n";
    world.read(allow).unwrap();
    world.trust();
    let widened = later.narrowed_by(world.read(allow).unwrap());
    assert!(!widened.rules.iter().any(Rule::may_allow));
}

#[test]
fn a_link_a_fifo_a_huge_file_and_one_anybody_may_write_are_refused_without_waiting() {
    let world = world();
    let refused = |world: &World| world.projects.load(&world.root()).unwrap_err().to_string();
    symlink("/etc/hostname", world.file()).unwrap();
    assert!(refused(&world).contains("link"), "{}", refused(&world));
    std::fs::remove_file(world.file()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.file(),
        FileType::Fifo,
        FileMode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(refused(&world).contains("no plain file"), "{}", refused(&world));
    std::fs::remove_file(world.file()).unwrap();
    std::fs::File::create(world.file()).unwrap().set_len(1 << 30).unwrap();
    assert!(refused(&world).contains("larger"), "{}", refused(&world));
    std::fs::write(world.file(), "").unwrap();
    std::fs::set_permissions(world.file(), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(refused(&world).contains("every user"), "{}", refused(&world));
    std::fs::remove_dir_all(world.root().join(".agent")).unwrap();
    assert_eq!(world.projects.load(&world.root()).unwrap(), Project::default());
    symlink("/etc", world.root().join(".agent")).unwrap();
    assert!(refused(&world).contains("link"), "{}", refused(&world));
}
