//! `glob`: files by a pattern of their path, newest first, without what `.gitignore` hides.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::file_tool::FileTool;
use super::listed::Paths;
use super::patience::Patience;
use super::{ArgumentError, Ended, Inspected, Place, Spec, arguments};
use crate::target::Resolved;
use crate::target::walk::{Depth, FoundKind};

/// Bytes of a pattern.
const PATTERN_LIMIT_BYTES: usize = 4_096;

const NAME: &str = "glob";

/// Finds files by name.
pub(super) struct Glob;

/// Arguments of `glob`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The pattern, as `src/**/*.rs` or `*.{ts,tsx}`. Without a `/` it matches names in any directory.
    pattern: String,
    /// The directory to look in; the working directory if left out.
    path: Option<String>,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: NAME,
    description:
        "Finds files whose path below `path` matches a pattern (`*`, `**`, `?`, `[a-z]`, `{a,b}`), newest first. Files \
                  that .gitignore hides are left out. At most 1000 paths or 50 kB."
            .into(),
    schema: arguments::schema::<Arguments>(),
    writes: false,
});

/// The arguments after they were checked.
pub(super) struct Checked {
    matcher: GlobMatcher,
    dir: Resolved,
}

impl Checked {
    /// What these arguments mean now. A call that runs works on the very value it was held against its verdict with:
    /// a second look could follow a link that was not there at the first.
    fn new(arguments: &Value, place: &Place) -> Result<Self, ArgumentError> {
        let parsed: Arguments = arguments::parse(arguments)?;
        let dir = place.target.resolve(parsed.path.as_deref().unwrap_or("."));
        let dir = dir.map_err(|error| ArgumentError::at("path", error))?;
        if parsed.pattern.is_empty() || parsed.pattern.len() > PATTERN_LIMIT_BYTES {
            return Err(ArgumentError::at(
                "pattern",
                format!("must have 1 to {PATTERN_LIMIT_BYTES} bytes"),
            ));
        }
        Ok(Self {
            matcher: matcher(&parsed.pattern)?,
            dir,
        })
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, ArgumentError> {
    let pattern = pattern.trim_start_matches("./");
    let anywhere = if pattern.contains('/') {
        pattern.to_string()
    } else {
        format!("**/{pattern}")
    };
    let glob = GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    Ok(glob
        .map_err(|error| ArgumentError::at("pattern", error))?
        .compile_matcher())
}

fn run(checked: &Checked, place: &Place, patience: &Patience) -> Result<Ended, ArgumentError> {
    let Checked { matcher, dir } = checked;
    let mut paths = Paths::default();
    let walked = place.target.walk(dir, Depth::All, &mut |found| {
        if patience.is_over() {
            return ControlFlow::Break(());
        }
        if found.kind != FoundKind::Directory && matcher.is_match(&found.name) {
            return paths.push(found);
        }
        ControlFlow::Continue(())
    });
    let walked = walked.map_err(|error| ArgumentError::at("path", error))?;
    let none = if paths.is_empty() { "(no file matches)\n" } else { "" };
    Ok(patience.end([&paths.shown(&walked), none].concat()))
}

impl FileTool for Glob {
    type Call = Checked;

    fn about() -> &'static Spec {
        &SPEC
    }

    fn look(arguments: &Value, place: &Place) -> Result<(Checked, Inspected), ArgumentError> {
        let checked = Checked::new(arguments, place)?;
        let inspected = Inspected::listing(NAME, arguments, &checked.dir, place)?;
        Ok((checked, inspected))
    }

    fn act(checked: Checked, place: &Place, patience: &Patience) -> Result<Ended, ArgumentError> {
        run(&checked, place, patience)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::world::World;
    use super::*;

    async fn found(world: &World, arguments: Value) -> Vec<String> {
        let mut lines: Vec<String> = world
            .run(&Glob, arguments)
            .await
            .output
            .lines()
            .map(String::from)
            .collect();
        lines.sort();
        lines
    }

    #[tokio::test]
    async fn patterns_match_paths_below_the_directory() {
        let world = World::new();
        for path in [
            "a.rs",
            "src/b.rs",
            "src/deep/c.rs",
            "src/d.ts",
            "target/e.rs",
            ".github/w.yml",
        ] {
            world.write(path, "");
        }
        world.write(".gitignore", "/target\n");
        assert_eq!(
            found(&world, json!({"pattern": "*.rs"})).await,
            ["a.rs", "src/b.rs", "src/deep/c.rs"]
        );
        assert_eq!(
            found(&world, json!({"pattern": "src/*.{rs,ts}"})).await,
            ["src/b.rs", "src/d.ts"]
        );
        assert_eq!(
            found(&world, json!({"pattern": "**/*.rs", "path": "src"})).await,
            ["b.rs", "deep/c.rs"]
        );
        assert_eq!(found(&world, json!({"pattern": "*.yml"})).await, [".github/w.yml"]);
        assert_eq!(found(&world, json!({"pattern": "*.c"})).await, ["(no file matches)"]);
    }

    #[tokio::test]
    async fn a_bad_pattern_names_itself() {
        let world = World::new();
        let ended = world.run(&Glob, json!({"pattern": "a[b"})).await;
        assert!(
            ended.output.starts_with("`pattern`: error parsing glob"),
            "{}",
            ended.output
        );
    }
}
