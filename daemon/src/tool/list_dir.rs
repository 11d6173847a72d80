//! `list_dir`: what is in a directory, newest first, without what `.gitignore` hides.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::file_tool::FileTool;
use super::listed::Paths;
use super::patience::Patience;
use super::{ArgumentError, Ended, Inspected, Outcome, Place, Spec, arguments};
use crate::target::Resolved;
use crate::target::walk::{Depth, Rules};

/// Levels a listing may go down.
const DEPTH_LIMIT: usize = 8;

const NAME: &str = "list_dir";

/// Lists a directory.
pub(super) struct ListDir;

/// Arguments of `list_dir`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The directory, relative to the working directory or absolute; the working directory if left out.
    path: Option<String>,
    /// Levels to go down: 1, the default, lists the directory's own entries; at most 8.
    #[schemars(range(min = 1, max = 8))]
    depth: Option<usize>,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: NAME,
    description:
        "Lists a directory, newest entries first, directories with a `/` at the end, links with `@`. Entries that \
                  .gitignore hides and the content of .git are left out. At most 1000 entries or 50 kB."
            .into(),
    schema: arguments::schema::<Arguments>(),
    writes: false,
});

/// The arguments after they were checked.
pub(super) struct Checked {
    depth: Depth,
    dir: Resolved,
}

impl Checked {
    /// What these arguments mean now. A call that runs works on the very value it was held against its verdict with:
    /// a second look could follow a link that was not there at the first.
    fn new(arguments: &Value, place: &Place) -> Result<Self, ArgumentError> {
        let parsed: Arguments = arguments::parse(arguments)?;
        if parsed.depth.is_some_and(|depth| depth == 0 || depth > DEPTH_LIMIT) {
            return Err(ArgumentError::at("depth", format!("must be from 1 to {DEPTH_LIMIT}")));
        }
        let dir = place.target.resolve(parsed.path.as_deref().unwrap_or("."));
        let dir = dir.map_err(|error| ArgumentError::at("path", error))?;
        let depth = Depth::Levels(parsed.depth.unwrap_or(1));
        Ok(Self { depth, dir })
    }
}

fn run(checked: &Checked, place: &Place) -> Result<Ended, ArgumentError> {
    let mut paths = Paths::default();
    let walked = place
        .target
        .walk(&checked.dir, checked.depth, &mut |found| paths.push(found));
    let walked = walked.map_err(|error| ArgumentError::at("path", error))?;
    let hidden = match walked.rules {
        Rules::Kept => "",
        Rules::HideAll => "[.gitignore hides this directory; all of it is listed]\n",
    };
    let none = if paths.is_empty() { "(no entries)\n" } else { "" };
    Ok(Ended::new(Outcome::Ok, [&paths.shown(&walked), none, hidden].concat()))
}

impl FileTool for ListDir {
    type Call = Checked;

    fn about() -> &'static Spec {
        &SPEC
    }

    fn look(arguments: &Value, place: &Place) -> Result<(Checked, Inspected), ArgumentError> {
        let checked = Checked::new(arguments, place)?;
        let inspected = Inspected::listing(NAME, arguments, &checked.dir, place)?;
        Ok((checked, inspected))
    }

    fn act(checked: Checked, place: &Place, _patience: &Patience) -> Result<Ended, ArgumentError> {
        run(&checked, place)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::world::World;
    use super::*;

    #[tokio::test]
    async fn directories_links_and_files_are_told_apart() -> anyhow::Result<()> {
        let world = World::new();
        world.write("sub/x", "");
        std::os::unix::fs::symlink("sub", world.path("link"))?;
        std::fs::write(world.path("two\nlines"), "")?;
        let ended = world.run(&ListDir, json!({})).await;
        let mut lines: Vec<&str> = ended.output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["link@", "sub/", "two\\nlines"]);
        Ok(())
    }

    #[tokio::test]
    async fn the_newest_comes_first() -> anyhow::Result<()> {
        let world = World::new();
        for (name, age) in [("old", 100), ("new", 10), ("older", 1000)] {
            let file = std::fs::File::create(world.path(name))?;
            file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(10_000 - age))?;
        }
        assert_eq!(world.run(&ListDir, json!({})).await.output, "new\nold\nolder\n");
        Ok(())
    }

    #[tokio::test]
    async fn a_long_listing_is_cut_and_said() {
        let world = World::new();
        for number in 0..1010 {
            world.write(&format!("many/{number}"), "");
        }
        let ended = world.run(&ListDir, json!({"path": "many"})).await;
        assert_eq!(ended.output.lines().count(), 1001);
        assert!(
            ended.output.ends_with("[1000 of 1010 entries, the newest]\n"),
            "{}",
            ended.output
        );
    }

    #[tokio::test]
    async fn what_is_no_directory_is_an_error_and_an_empty_one_is_not() -> anyhow::Result<()> {
        let world = World::new();
        world.write("file", "");
        std::fs::create_dir(world.path("empty"))?;
        let said = |path: &str| {
            let arguments = json!({"path": path});
            async { world.run(&ListDir, arguments).await }
        };
        assert_eq!(said("empty").await.output, "(no entries)\n");
        for (path, text) in [("file", "not a directory"), ("absent", "no such file or directory")] {
            let ended = said(path).await;
            assert_eq!(ended.outcome, Outcome::Error);
            assert!(ended.output.contains(text), "{}", ended.output);
        }
        Ok(())
    }
}
