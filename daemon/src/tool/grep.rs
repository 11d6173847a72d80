//! `grep`: lines that match a regular expression, found with ripgrep's engine inside the daemon.

use std::io;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::types::{Types, TypesBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::file_tool::FileTool;
use super::listed;
use super::patience::Patience;
use super::{ArgumentError, Ended, Inspected, Place, Spec, arguments};
use crate::target::open::OpenFile;
use crate::target::walk::{Depth, Found, FoundKind};
use crate::target::{Resolved, TargetError, names};

/// Matching lines of one file.
const FILE_MATCHES_LIMIT: u64 = 50;

/// Bytes of a result.
const OUTPUT_LIMIT_BYTES: usize = 30_000;

/// Characters of a line that are shown.
const LINE_LIMIT_CHARS: usize = 500;

/// Lines around a match.
const CONTEXT_LIMIT: usize = 20;

/// Bytes of a file that is searched; larger ones are hardly source.
const FILE_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes the searcher may hold, which bounds the length of a line.
const HEAP_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a compiled expression.
const REGEX_LIMIT_BYTES: usize = 4 * 1024 * 1024;

const NAME: &str = "grep";

/// Searches file contents.
pub(super) struct Grep;

/// Arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The regular expression (Rust syntax, matched line by line).
    pattern: String,
    /// The file or directory to search; the working directory if left out.
    path: Option<String>,
    /// Only files whose path matches, as `*.rs` or `src/**`.
    glob: Option<String>,
    /// Only files of this type, as `rust`, `py`, `ts`, `cpp`, `md`.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// Let letters match in either case.
    ignore_case: Option<bool>,
    /// Take the pattern as plain text.
    literal: Option<bool>,
    /// Lines to show before and after each match, 0 if left out.
    #[schemars(range(max = 20))]
    context: Option<usize>,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    Spec {
    name: NAME,
    description: "Searches the content of files for a regular expression and shows the matching lines with their numbers, file \
                  by file. Files that .gitignore hides, binary files and files whose names are those of secrets are left out. \
                  At most 50 matching lines a file and 30 kB."
        .into(),
    schema: arguments::schema::<Arguments>(),
    writes: false,
}
});

/// The arguments after they were checked.
pub(super) struct Checked {
    matcher: RegexMatcher,
    context: usize,
    glob: Option<GlobMatcher>,
    types: Option<Types>,
    path: Resolved,
}

impl Checked {
    /// What these arguments mean now. A call that runs works on the very value it was held against its verdict with:
    /// a second look could follow a link that was not there at the first.
    fn new(arguments: &Value, place: &Place) -> Result<Self, ArgumentError> {
        let parsed: Arguments = arguments::parse(arguments)?;
        let path = place.target.resolve(parsed.path.as_deref().unwrap_or("."));
        let path = path.map_err(|error| ArgumentError::at("path", error))?;
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(parsed.ignore_case.unwrap_or(false))
            .fixed_strings(parsed.literal.unwrap_or(false))
            .line_terminator(Some(b'\n'))
            .size_limit(REGEX_LIMIT_BYTES)
            .build(&parsed.pattern)
            .map_err(|error| ArgumentError::at("pattern", error))?;
        let context = parsed.context.unwrap_or(0);
        if context > CONTEXT_LIMIT {
            return Err(ArgumentError::at(
                "context",
                format!("must be from 0 to {CONTEXT_LIMIT}"),
            ));
        }
        let glob = parsed.glob.as_deref().map(glob_of).transpose()?;
        let types = parsed.file_type.as_deref().map(types_of).transpose()?;
        Ok(Self {
            matcher,
            context,
            glob,
            types,
            path,
        })
    }

    fn wants(&self, found: &Found) -> bool {
        found.kind == FoundKind::File
            && self.glob.as_ref().is_none_or(|glob| glob.is_match(&found.name))
            && self
                .types
                .as_ref()
                .is_none_or(|types| !types.matched(&found.name, false).is_ignore())
    }
}

fn glob_of(pattern: &str) -> Result<GlobMatcher, ArgumentError> {
    let anywhere = if pattern.contains('/') {
        pattern.to_string()
    } else {
        format!("**/{pattern}")
    };
    let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
    Ok(glob
        .map_err(|error| ArgumentError::at("glob", error))?
        .compile_matcher())
}

fn types_of(name: &str) -> Result<Types, ArgumentError> {
    let types = TypesBuilder::new().add_defaults().select(name).build();
    types.map_err(|_| ArgumentError::at("type", format!("there is no file type `{name}`; use `glob` instead")))
}

fn run(checked: &Checked, place: &Place, patience: &Patience) -> Result<Ended, ArgumentError> {
    let at_path = |error: TargetError| ArgumentError::at("path", error);
    let mut search = Search::new(checked);
    let mut crowded = String::new();
    match place.target.open_file(&checked.path) {
        Ok(file) => search.file(&place.target.name_of(&checked.path), file),
        Err(TargetError::IsDirectory(_)) => {
            let walked = place.target.walk(&checked.path, Depth::All, &mut |found| {
                if patience.is_over() || search.is_full() {
                    return ControlFlow::Break(());
                }
                if checked.wants(&found) {
                    search.found(&found, || place.target.open_found(&checked.path, &found));
                }
                ControlFlow::Continue(())
            });
            crowded = listed::crowded(&walked.map_err(at_path)?);
        }
        Err(error) => return Err(at_path(error)),
    }
    Ok(patience.end(search.finish() + &crowded))
}

/// A search and what it found so far.
struct Search<'a> {
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    output: String,
    matches: u64,
    files: usize,
    secrets: usize,
}

impl<'a> Search<'a> {
    fn new(checked: &'a Checked) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_LIMIT_BYTES))
            .before_context(checked.context)
            .after_context(checked.context)
            .max_matches(Some(FILE_MATCHES_LIMIT))
            .build();
        Self {
            matcher: &checked.matcher,
            searcher,
            output: String::new(),
            matches: 0,
            files: 0,
            secrets: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.output.len() >= OUTPUT_LIMIT_BYTES
    }

    /// Searches a file the walk came by. One that cannot be opened is passed over, as its neighbours are not to blame.
    fn found(&mut self, found: &Found, open: impl FnOnce() -> Result<OpenFile, TargetError>) {
        if names::is_secret(&found.name) {
            self.secrets += 1;
            return;
        }
        if let Ok(file) = open() {
            self.file(&found.name.display().to_string(), file);
        }
    }

    fn file(&mut self, name: &str, file: OpenFile) {
        if file.size() > FILE_LIMIT_BYTES {
            return;
        }
        let mut lines = Lines::default();
        // An error on the way, as a line beyond all bounds, ends this file with what was found in it.
        let _ = self.searcher.search_file(self.matcher, &file.file, &mut lines);
        if lines.matches == 0 || lines.binary {
            return;
        }
        self.files += 1;
        self.matches += lines.matches;
        let more = if lines.matches == FILE_MATCHES_LIMIT {
            "[50 matches; there may be more in this file]\n"
        } else {
            ""
        };
        let gap = if self.output.is_empty() { "" } else { "\n" };
        self.output
            .push_str(&[gap, &name.replace('\n', "\\n"), "\n", &lines.text, more].concat());
    }

    fn finish(self) -> String {
        let Self {
            matches,
            files,
            secrets,
            ..
        } = self;
        let full = self.is_full();
        let mut text = super::output::bounded(&self.output, OUTPUT_LIMIT_BYTES);
        if !text.is_empty() {
            text.push('\n');
        }
        let lines = if matches == 1 { "line" } else { "lines" };
        let files = if files == 1 {
            "1 file".to_owned()
        } else {
            format!("{files} files")
        };
        text.push_str(&match (full, matches) {
            (true, _) => {
                format!("[{matches} matching {lines} in the first {files}; narrow the search to see others]\n")
            }
            (false, 0) => "(no line matches)\n".to_string(),
            (false, _) => format!("[{matches} matching {lines} in {files}]\n"),
        });
        if secrets > 0 {
            text.push_str(&format!(
                "[{secrets} {} of secrets left out; name one as `path` to search it]\n",
                if secrets == 1 {
                    "file with a name"
                } else {
                    "files with names"
                }
            ));
        }
        text
    }
}

/// The lines of one file that are shown.
#[derive(Default)]
struct Lines {
    text: String,
    matches: u64,
    binary: bool,
}

impl Lines {
    fn push(&mut self, number: Option<u64>, mark: char, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']);
        let (line, cut) = match line.char_indices().nth(LINE_LIMIT_CHARS) {
            Some((at, _)) => (line.get(..at).unwrap_or_default(), " [... line cut here]"),
            None => (line, ""),
        };
        self.text
            .push_str(&format!("{}{mark}{line}{cut}\n", number.unwrap_or_default()));
    }
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches += 1;
        self.push(found.line_number(), ':', found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.push(context.line_number(), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.text.push_str("--\n");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }
}

impl FileTool for Grep {
    type Call = Checked;

    fn about() -> &'static Spec {
        &SPEC
    }

    fn look(arguments: &Value, place: &Place) -> Result<(Checked, Inspected), ArgumentError> {
        let checked = Checked::new(arguments, place)?;
        let inspected = Inspected::reading(NAME, arguments, &checked.path, place)?;
        Ok((checked, inspected))
    }

    fn act(checked: Checked, place: &Place, patience: &Patience) -> Result<Ended, ArgumentError> {
        run(&checked, place, patience)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::super::Tool;
    use super::super::world::World;
    use super::*;

    async fn grep(world: &World, arguments: Value) -> String {
        world.run(&Grep, arguments).await.output
    }

    #[tokio::test]
    async fn matches_are_shown_by_file_with_line_numbers_and_context() {
        let world = World::new();
        world.write("a.rs", "one\ntwo\nthree\nfour\nfive\ntwo\n");
        world.write("sub/b.txt", "Two\n");
        assert_eq!(
            grep(&world, json!({"pattern": "two", "ignore_case": true})).await,
            "a.rs\n2:two\n6:two\n\nsub/b.txt\n1:Two\n\n[3 matching lines in 2 files]\n"
        );
        assert_eq!(
            grep(&world, json!({"pattern": "t[wx]o", "context": 1, "type": "rust"})).await,
            "a.rs\n1-one\n2:two\n3-three\n--\n5-five\n6:two\n\n[2 matching lines in 1 file]\n"
        );
        assert_eq!(
            grep(&world, json!({"pattern": "Two", "glob": "*.rs"})).await,
            "(no line matches)\n"
        );
        assert_eq!(
            grep(&world, json!({"pattern": "three", "path": "a.rs"})).await,
            "a.rs\n3:three\n\n[1 matching line in 1 file]\n"
        );
    }

    #[tokio::test]
    async fn ignored_binary_and_secret_files_are_left_out() {
        let world = World::new();
        world.write(".gitignore", "ignored\n");
        for name in ["ignored", ".env", "kept"] {
            world.write(name, "needle\n");
        }
        std::fs::write(world.path("binary"), b"needle\n\0").unwrap();
        let output = grep(&world, json!({"pattern": "needle"})).await;
        assert!(
            output.starts_with("kept\n1:needle\n\n[1 matching line in 1 file]\n[1 file with a name"),
            "{output}"
        );
        let secret = Grep
            .inspect(&json!({"pattern": "x", "path": ".env"}), &world.place)
            .await
            .unwrap();
        assert!(secret.facts.paths[0].secret);
    }

    #[tokio::test]
    async fn much_is_cut_and_said() {
        let world = World::new();
        world.write("many", &"needle\n".repeat(60));
        world.write("wide", &format!("needle{}\n", "x".repeat(1000)));
        let output = grep(&world, json!({"pattern": "needle"})).await;
        assert!(
            output.contains("50:needle\n[50 matches; there may be more in this file]\n"),
            "{output}"
        );
        assert!(output.contains(" [... line cut here]\n"));
        for number in 0..200 {
            world.write(&format!("z/{number:03}"), &"needle and more\n".repeat(50));
        }
        let output = grep(&world, json!({"pattern": "needle"})).await;
        assert!(
            output.len() < OUTPUT_LIMIT_BYTES + 300 && output.contains("narrow the search"),
            "{}",
            output.len()
        );
    }

    #[tokio::test]
    async fn mistakes_name_their_argument() {
        let world = World::new();
        for (arguments, said) in [
            (json!({"pattern": "a("}), "`pattern`: "),
            (
                json!({"pattern": "a", "type": "klingon"}),
                "`type`: there is no file type `klingon`",
            ),
            (json!({"pattern": "a", "glob": "[a"}), "`glob`: "),
            (json!({"pattern": "a", "context": 21}), "`context`: "),
            (
                json!({"pattern": "a", "path": "absent"}),
                "`path`: absent: no such file",
            ),
        ] {
            let output = grep(&world, arguments).await;
            assert!(output.starts_with(said), "{output}");
        }
    }
}
