//! `edit_file`: replaces an exact piece of a file the model has read; with an empty piece, appends or creates.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::change::{Before, Change};
use super::file_tool::FileTool;
use super::patience::Patience;
use super::{ArgumentError, Ended, Inspected, Place, Spec, arguments, nearest};

/// Line numbers of matches told when there are too many.
const MATCHES_TOLD: usize = 10;

const NAME: &str = "edit_file";

/// Changes a part of a file.
pub(super) struct EditFile;

/// Arguments of `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the working directory or absolute.
    path: String,
    /// The exact text to replace, without line numbers; it must occur once. Empty: `new` is appended, or the file created.
    old: String,
    /// What to put in its place.
    new: String,
    /// Replace every occurrence of `old`.
    replace_all: Option<bool>,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    Spec {
    name: NAME,
    description: "Replaces `old` by `new` in a text file of at most 10 MiB. `old` must match exactly, white space included, and \
                  occur once, unless `replace_all` is true. With an empty `old` the text is appended, or the file created. The \
                  file must have been read with read_file in this session and not changed since. Several edits of one file go \
                  in separate calls, one after the other."
        .into(),
    schema: arguments::schema::<Arguments>(),
    writes: true,
}
});

fn change(arguments: &Value, place: &Place) -> Result<Change, ArgumentError> {
    let parsed: Arguments = arguments::parse(arguments)?;
    let before = Before::look(&parsed.path, place)?;
    let (content, note) = edited(&parsed, before.content())?;
    let mut change = Change::new(NAME, arguments, place, before, content)?;
    change.note = note;
    Ok(change)
}

/// The new content, and what the result says about it.
fn edited(arguments: &Arguments, content: Option<&str>) -> Result<(String, String), ArgumentError> {
    let Arguments {
        path,
        old,
        new,
        replace_all,
    } = arguments;
    if old.is_empty() {
        let content = content.unwrap_or_default();
        return Ok(([content, new].concat(), String::new()));
    }
    let Some(content) = content else {
        return Err(ArgumentError::at(
            "path",
            format!("{path}: no such file; an empty `old` creates it"),
        ));
    };
    // A file with one kind of line end was read with `\n`, so the model's are made the same.
    let unix = |text: &str| {
        if content.contains('\r') {
            text.to_string()
        } else {
            text.replace("\r\n", "\n")
        }
    };
    let (old, new) = (unix(old), unix(new));
    if old == new {
        return Err(ArgumentError::at(
            "new",
            "is the same as `old`, so there is nothing to change",
        ));
    }
    let places = places_of(content, &old);
    match (places.as_slice(), replace_all.unwrap_or(false)) {
        ([], _) => Err(ArgumentError::at(
            "old",
            format!("0 matches in {path}{}", nearest::hint(content, &old)),
        )),
        ([_], _) => Ok((content.replacen(&old, &new, 1), String::new())),
        (_, true) => {
            let count = content.matches(old.as_str()).count();
            Ok((content.replace(&old, &new), format!(", {count} replacements")))
        }
        (places, false) => Err(ArgumentError::at("old", too_many(path, content, places))),
    }
}

/// Where `old` begins, overlapping matches included: with them it is not clear which one is meant.
fn places_of(content: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = content.get(from..).and_then(|rest| rest.find(old)) {
        places.push(from + at);
        from += at + step;
    }
    places
}

fn too_many(path: &str, content: &str, places: &[usize]) -> String {
    let line_of = |at: &usize| {
        content
            .as_bytes()
            .iter()
            .take(*at)
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    };
    let lines: Vec<String> = places
        .iter()
        .take(MATCHES_TOLD)
        .map(|at| line_of(at).to_string())
        .collect();
    let more = if places.len() > MATCHES_TOLD { ", ..." } else { "" };
    format!(
        "{} matches in {path} (lines {}{more}); add lines around it until it is the only one, or set `replace_all`",
        places.len(),
        lines.join(", ")
    )
}

impl FileTool for EditFile {
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
mod tests {
    use serde_json::json;

    use super::super::world::World;
    use super::super::{Outcome, Tool};
    use super::*;

    async fn edit(world: &World, arguments: Value) -> Ended {
        world.run(&EditFile, arguments).await
    }

    #[tokio::test]
    async fn one_exact_match_is_replaced() {
        let world = World::new();
        world.write("a.rs", "fn a() {\n    one();\n}\n");
        world.see("a.rs").await;
        let ended = edit(
            &world,
            json!({"path": "a.rs", "old": "    one();\n", "new": "    two();\n    three();\n"}),
        )
        .await;
        assert_eq!(ended.output, "changed a.rs: 35 bytes, +2 -1 lines");
        assert_eq!(world.read("a.rs"), "fn a() {\n    two();\n    three();\n}\n");
        assert!(
            ended
                .diff
                .is_some_and(|diff| diff.contains("-    one();\n+    two();\n"))
        );
        let ended = edit(&world, json!({"path": "a.rs", "old": "two", "new": "2"})).await;
        assert_eq!(
            ended.outcome,
            Outcome::Ok,
            "a second edit needs no second read: {}",
            ended.output
        );
    }

    #[tokio::test]
    async fn several_matches_are_counted_and_replaced_only_when_asked() {
        let world = World::new();
        world.write("a", "x\ny\nx\n");
        world.see("a").await;
        let ended = edit(&world, json!({"path": "a", "old": "x", "new": "z"})).await;
        assert!(
            ended.output.contains("`old`: 2 matches in a (lines 1, 3)"),
            "{}",
            ended.output
        );
        let ended = edit(
            &world,
            json!({"path": "a", "old": "x", "new": "z", "replace_all": true}),
        )
        .await;
        assert!(ended.output.ends_with("2 replacements"), "{}", ended.output);
        assert_eq!(world.read("a"), "z\ny\nz\n");
        world.write("b", "aaa");
        world.see("b").await;
        assert!(
            edit(&world, json!({"path": "b", "old": "aa", "new": "c"}))
                .await
                .output
                .contains("2 matches")
        );
    }

    #[tokio::test]
    async fn no_match_shows_the_nearest_text() {
        let world = World::new();
        world.write("a.py", "def f():\n\tif x:\n\t\treturn 1\n");
        world.see("a.py").await;
        let ended = edit(
            &world,
            json!({"path": "a.py", "old": "    if x:\n        return 1\n", "new": "pass\n"}),
        )
        .await;
        assert!(ended.output.contains("0 matches in a.py"), "{}", ended.output);
        assert!(
            ended.output.contains("white space") && ended.output.contains("2\t\tif x:\n"),
            "{}",
            ended.output
        );
    }

    #[tokio::test]
    async fn an_empty_old_creates_and_then_appends() {
        let world = World::new();
        assert_eq!(
            edit(&world, json!({"path": "d/log", "old": "", "new": "one\n"}))
                .await
                .outcome,
            Outcome::Ok
        );
        assert_eq!(
            edit(&world, json!({"path": "d/log", "old": "", "new": "two\n"}))
                .await
                .outcome,
            Outcome::Ok
        );
        assert_eq!(world.read("d/log"), "one\ntwo\n");
        let ended = edit(&world, json!({"path": "absent", "old": "x", "new": "y"})).await;
        assert!(ended.output.contains("no such file"), "{}", ended.output);
    }

    #[tokio::test]
    async fn several_edits_of_one_reply_are_inspected_together_and_run_one_after_the_other() {
        let world = World::new();
        world.write("a", "one\ntwo\nthree\n");
        world.see("a").await;
        let edits =
            [("one", "1"), ("two", "2"), ("three", "3")].map(|(old, new)| json!({"path": "a", "old": old, "new": new}));
        let mut digests = Vec::new();
        for edit in &edits {
            digests.extend(
                EditFile
                    .inspect(edit, &world.place)
                    .await
                    .map(|inspected| inspected.digest),
            );
        }
        let [first, second, third] = edits;
        assert_eq!(world.run_as(&EditFile, first, &digests[0]).await.outcome, Outcome::Ok);
        let ended = world.run_as(&EditFile, second, &digests[1]).await;
        assert_eq!(ended.outcome, Outcome::Ok, "{}", ended.output);
        world.write("a", "1\n2\nthree\ntheirs\n");
        world.see("a").await;
        let ended = world.run_as(&EditFile, third, &digests[2]).await;
        assert_eq!(
            ended.outcome,
            Outcome::NotRun,
            "another's change is not the session's own"
        );
    }

    #[tokio::test]
    async fn an_unread_file_is_not_edited() {
        let world = World::new();
        world.write("a", "x\n");
        let ended = edit(&world, json!({"path": "a", "old": "x", "new": "y"})).await;
        assert!(
            ended.output.contains("read it with read_file first"),
            "{}",
            ended.output
        );
        assert_eq!(world.read("a"), "x\n");
    }

    #[tokio::test]
    async fn line_ends_match_whichever_the_model_writes() {
        let world = World::new();
        world.write("dos", "\u{feff}one\r\ntwo\r\n");
        world.see("dos").await;
        edit(&world, json!({"path": "dos", "old": "one\ntwo", "new": "1\n2"})).await;
        assert_eq!(world.read("dos"), "\u{feff}1\r\n2\r\n");
        edit(&world, json!({"path": "dos", "old": "1\r\n2", "new": "3\r\n4"})).await;
        assert_eq!(world.read("dos"), "\u{feff}3\r\n4\r\n");
        world.write("mixed", "a\r\nb\nc\n");
        world.see("mixed").await;
        edit(&world, json!({"path": "mixed", "old": "b\n", "new": "B\n"})).await;
        assert_eq!(world.read("mixed"), "a\r\nB\nc\n");
    }

    #[tokio::test]
    async fn an_edit_keeps_the_encoding_of_every_other_byte() -> anyhow::Result<()> {
        let world = World::new();
        for (before, after) in [
            (&b"caf\xe9 \x93x\x94\none\n"[..], &b"caf\xe9 \x93x\x94\nz\xfcei\n"[..]),
            (
                b"\xff\xfe\xe9\0\r\0\n\0o\0n\0e\0",
                b"\xff\xfe\xe9\0\r\0\n\0z\0\xfc\0e\0i\0",
            ),
            (b"\xfe\xff\0\xe9\0\n\0o\0n\0e", b"\xfe\xff\0\xe9\0\n\0z\0\xfc\0e\0i"),
        ] {
            std::fs::write(world.path("old"), before)?;
            world.see("old").await;
            let ended = edit(&world, json!({"path": "old", "old": "one", "new": "züei"})).await;
            assert_eq!(ended.outcome, Outcome::Ok, "{}", ended.output);
            assert_eq!(std::fs::read(world.path("old"))?, after);
        }
        std::fs::write(world.path("latin"), b"caf\xe9\n")?;
        world.see("latin").await;
        let ended = edit(&world, json!({"path": "latin", "old": "caf", "new": "→"})).await;
        assert!(ended.output.contains("does not have"), "{}", ended.output);
        assert_eq!(std::fs::read(world.path("latin"))?, b"caf\xe9\n");
        Ok(())
    }
}
