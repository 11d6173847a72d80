//! `write_file`: creates a file with its directories, or replaces one the model has read.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::change::{Before, Change};
use super::file_tool::FileTool;
use super::patience::Patience;
use super::{ArgumentError, Ended, Inspected, Place, Spec, arguments};

/// Bytes of a file written in one call. What is larger is made by a command.
const CONTENT_LIMIT_BYTES: usize = 1024 * 1024;

const NAME: &str = "write_file";

/// Writes a whole file.
pub(super) struct WriteFile;

/// Arguments of `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the working directory or absolute.
    path: String,
    /// Its whole new content, at most 1 MiB of UTF-8.
    content: String,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    Spec {
    name: NAME,
    description: "Writes a whole text file, at most 1 MiB, in one step; missing directories are made. A file that exists must \
                  have been read with read_file in this session and not changed since; its mode, line ends and byte order \
                  mark are kept. To change a part of a file use edit_file."
        .into(),
    schema: arguments::schema::<Arguments>(),
    writes: true,
}
});

fn change(arguments: &Value, place: &Place) -> Result<Change, ArgumentError> {
    let parsed: Arguments = arguments::parse(arguments)?;
    if parsed.content.len() > CONTENT_LIMIT_BYTES {
        let text = format!(
            "has {} bytes, at most {CONTENT_LIMIT_BYTES} are written in one call",
            parsed.content.len()
        );
        return Err(ArgumentError::at("content", text));
    }
    let before = Before::look(&parsed.path, place)?;
    Change::new(NAME, arguments, place, before, parsed.content)
}

impl FileTool for WriteFile {
    type Call = Change;

    fn about() -> &'static Spec {
        &SPEC
    }

    fn look(arguments: &Value, place: &Place) -> Result<(Change, Inspected), ArgumentError> {
        let change = change(arguments, place)?;
        let inspected = change.inspected();
        Ok((change, inspected))
    }

    fn is_of(change: &Change, _now: &Inspected, digest: &str, place: &Place) -> bool {
        change.is_of(digest, place)
    }

    fn act(change: Change, place: &Place, _patience: &Patience) -> Result<Ended, ArgumentError> {
        Ok(change.apply(place))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::super::world::World;
    use super::super::{Outcome, Tool};
    use super::*;
    use crate::policy::facts::Inside;

    #[tokio::test]
    async fn a_new_file_is_written_with_its_directories_and_a_diff() {
        let world = World::new();
        let arguments = json!({"path": "src/new.rs", "content": "fn a() {}\n"});
        let inspected = WriteFile.inspect(&arguments, &world.place).await.unwrap();
        assert!(!world.path("src").exists(), "inspecting must touch nothing");
        assert_eq!(
            inspected.action.diff.as_deref(),
            Some("--- /dev/null\n+++ b/src/new.rs\n@@ -0,0 +1 @@\n+fn a() {}\n")
        );
        let ended = world.run(&WriteFile, arguments).await;
        assert_eq!(
            (ended.outcome, world.read("src/new.rs")),
            (Outcome::Ok, "fn a() {}\n".into())
        );
        assert_eq!(ended.output, "created src/new.rs: 10 bytes, +1 -0 lines");
        assert_eq!(ended.diff, inspected.action.diff);
    }

    #[tokio::test]
    async fn a_file_the_model_has_not_seen_is_not_overwritten() {
        let world = World::new();
        world.write("a.txt", "theirs\n");
        let ended = world
            .run(&WriteFile, json!({"path": "a.txt", "content": "mine\n"}))
            .await;
        assert_eq!(ended.outcome, Outcome::NotRun);
        assert!(
            ended.output.contains("read it with read_file first"),
            "{}",
            ended.output
        );
        assert_eq!(world.read("a.txt"), "theirs\n");
    }

    #[tokio::test]
    async fn a_change_since_the_read_is_shown() {
        let world = World::new();
        world.write("a.txt", "one\ntwo\n");
        world.see("a.txt").await;
        world.write("a.txt", "one\n2\n");
        let ended = world
            .run(&WriteFile, json!({"path": "a.txt", "content": "mine\n"}))
            .await;
        assert!(ended.output.contains("-two\n+2\n"), "{}", ended.output);
        assert_eq!(world.read("a.txt"), "one\n2\n");
        world.see("a.txt").await;
        let ended = world
            .run(&WriteFile, json!({"path": "a.txt", "content": "mine\n"}))
            .await;
        assert_eq!((ended.outcome, world.read("a.txt")), (Outcome::Ok, "mine\n".into()));
        let ended = world
            .run(&WriteFile, json!({"path": "a.txt", "content": "again\n"}))
            .await;
        assert_eq!(
            ended.outcome,
            Outcome::Ok,
            "what the model wrote it has seen: {}",
            ended.output
        );
    }

    #[tokio::test]
    async fn a_file_that_changes_between_approval_and_run_is_left_alone() {
        let world = World::new();
        let arguments = json!({"path": "a.txt", "content": "mine\n"});
        let digest = WriteFile.inspect(&arguments, &world.place).await.unwrap().digest;
        world.write("a.txt", "");
        let ended = world.run_as(&WriteFile, arguments, &digest).await;
        assert_eq!(ended.outcome, Outcome::NotRun);
        assert!(ended.output.starts_with("changed_since_approved"), "{}", ended.output);
        assert_eq!(world.read("a.txt"), "");
    }

    #[tokio::test]
    async fn line_ends_of_a_replaced_file_are_kept() {
        let world = World::new();
        world.write("dos.txt", "one\r\ntwo\r\n");
        world.see("dos.txt").await;
        world
            .run(&WriteFile, json!({"path": "dos.txt", "content": "one\nthree\n"}))
            .await;
        assert_eq!(world.read("dos.txt"), "one\r\nthree\r\n");
    }

    #[tokio::test]
    async fn a_path_outside_is_judged_outside_and_written_where_it_leads() {
        let world = World::new();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), world.path("link")).unwrap();
        let arguments = json!({"path": "link/x", "content": "x"});
        let facts = WriteFile.inspect(&arguments, &world.place).await.unwrap().facts;
        assert_eq!(facts.paths[0].inside, Inside::Outside);
        assert_eq!(world.run(&WriteFile, arguments).await.outcome, Outcome::Ok);
        assert_eq!(std::fs::read_to_string(outside.path().join("x")).unwrap(), "x");
    }

    #[tokio::test]
    async fn what_is_no_text_file_is_not_replaced() {
        let world = World::new();
        std::fs::write(world.path("binary"), b"a\0b").unwrap();
        std::fs::create_dir(world.path("dir")).unwrap();
        for (path, said) in [
            ("binary", "is a binary file"),
            ("dir", "is a directory"),
            ("/dev/null", "is a device"),
        ] {
            let ended = world.run(&WriteFile, json!({"path": path, "content": "x"})).await;
            assert!(ended.output.contains(said), "{path}: {}", ended.output);
        }
    }
}
