//! `read_file`: numbered lines of a text file, or an image.

use std::io::{BufRead, BufReader, Read};
use std::sync::LazyLock;

use base64::Engine as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::charset::Charset;
use super::digest::{content_hash, hex};
use super::file_tool::FileTool;
use super::patience::Patience;
use super::text::{self, Form, Kind, LineEnds, SNIFF_BYTES};
use super::{ArgumentError, Ended, Inspected, Outcome, Place, Spec, arguments};
use crate::target::open::OpenFile;
use crate::target::{Resolved, TargetError};

/// Lines and bytes the model gets from one call.
const LINES_LIMIT: usize = 2_000;
const OUTPUT_LIMIT_BYTES: usize = 50_000;

/// Characters of one line.
const LINE_LIMIT_CHARS: usize = 2_000;

/// Bytes of one line that are kept to find those characters.
const LINE_LIMIT_BYTES: usize = LINE_LIMIT_CHARS * 4;

/// Bytes of a file that is read without being asked for a part of it.
const WHOLE_LIMIT_BYTES: u64 = 1024 * 1024;

/// Bytes of a file of which parts can be read; what is larger would be searched for seconds.
const PART_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of an image: as base64 it must fit what models take, 5 MB.
const IMAGE_LIMIT_BYTES: u64 = 3_750_000;

const NAME: &str = "read_file";

/// Reads a file.
pub(super) struct ReadFile;

/// Arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the working directory or absolute.
    path: String,
    /// The first line to read, 1 if left out.
    #[schemars(range(min = 1))]
    #[serde(default, deserialize_with = "from_one")]
    offset: Option<u64>,
    /// How many lines to read, 2000 at most and if left out.
    #[schemars(range(min = 1, max = 2000))]
    #[serde(default, deserialize_with = "from_one")]
    limit: Option<u64>,
}

/// A number that counts from 1, refused in those words.
fn from_one<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number: Option<i64> = serde::Deserialize::deserialize(from)?;
    let wrong = |number| serde::de::Error::custom(format!("expected integer from 1 up, got integer `{number}`"));
    number
        .map(|number| u64::try_from(number).map_err(|_| wrong(number)))
        .transpose()
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    Spec {
    name: NAME,
    description: "Reads a text file as numbered lines (the number and the tab after it are not part of the file), or shows an \
                  image (PNG, JPEG, GIF, WebP). At most 2000 lines or 50 kB a call; longer lines are cut at 2000 characters; \
                  a file over 1 MiB needs `offset` or `limit`. A file must be read before it may be changed."
        .into(),
    schema: arguments::schema::<Arguments>(),
    writes: false,
}
});

/// The arguments after they were checked.
pub(super) struct Checked {
    arguments: Arguments,
    file: Resolved,
}

impl Checked {
    /// What these arguments mean now. A call that runs works on the very value it was held against its verdict with:
    /// a second look could follow a link that was not there at the first.
    fn new(arguments: &Value, place: &Place) -> Result<Self, ArgumentError> {
        let arguments: Arguments = arguments::parse(arguments)?;
        if arguments.limit == Some(0) {
            return Err(ArgumentError::at("limit", "must be at least 1"));
        }
        let file = place.target.resolve(&arguments.path);
        let file = file.map_err(|error| ArgumentError::at("path", error))?;
        Ok(Self { arguments, file })
    }
}

fn run(checked: &Checked, place: &Place) -> Result<Ended, ArgumentError> {
    let (parsed, resolved) = (&checked.arguments, &checked.file);
    let at_path = |error: TargetError| ArgumentError::at("path", error);
    let mut file = place.target.open_file(resolved).map_err(at_path)?;
    let beginning = beginning(&mut file, &parsed.path)?;
    let read = match Kind::of(&beginning) {
        Kind::Image(media_type) => return image(&parsed.path, media_type, beginning, file),
        Kind::Other(what) => return Err(ArgumentError::at("path", format!("{} is {what}", parsed.path))),
        Kind::Text | Kind::Utf16 => lines(parsed, beginning, file)?,
    };
    let path = resolved.path.display().to_string();
    match &read.content {
        Some(content) => place.read.remember(&resolved.path, &read.hash, content),
        None => place.read.insert(&resolved.path, &read.hash),
    }
    let mut ended = Ended::with_words(Outcome::Ok, read.output, &read.words);
    ended.files = vec![(path, read.hash)];
    Ok(ended)
}

fn beginning(file: &mut OpenFile, shown: &str) -> Result<Vec<u8>, ArgumentError> {
    let mut bytes = Vec::with_capacity(SNIFF_BYTES);
    let taken = (&mut file.file).take(SNIFF_BYTES as u64).read_to_end(&mut bytes);
    taken.map_err(|error| ArgumentError::from(TargetError::io(shown, error)))?;
    Ok(bytes)
}

fn image(shown: &str, media_type: &str, beginning: Vec<u8>, mut file: OpenFile) -> Result<Ended, ArgumentError> {
    let rest = file.read_up_to(IMAGE_LIMIT_BYTES, shown)?;
    let Some(rest) = rest else {
        let text = format!(
            "{shown} is an image of {} bytes; images up to {IMAGE_LIMIT_BYTES} bytes can be shown",
            file.size()
        );
        return Err(ArgumentError::at("path", text));
    };
    let bytes = [beginning, rest].concat();
    let mut ended = Ended::new(Outcome::Ok, format!("{shown}: {media_type}, {} bytes", bytes.len()));
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    ended.images = vec![protocol::Content::Image {
        media_type: media_type.to_string(),
        data,
    }];
    Ok(ended)
}

/// A text file, read.
struct Taken {
    output: String,
    /// What is said behind it.
    words: String,
    hash: String,
    /// The whole content, where all of it was in memory.
    content: Option<String>,
}

fn lines(arguments: &Arguments, beginning: Vec<u8>, mut file: OpenFile) -> Result<Taken, ArgumentError> {
    let shown = &arguments.path;
    let size = file.size();
    let asked_for_part = arguments.offset.is_some() || arguments.limit.is_some();
    let limit = if asked_for_part {
        PART_LIMIT_BYTES
    } else {
        WHOLE_LIMIT_BYTES
    };
    if size > limit {
        let hint = if asked_for_part {
            "use a command like `sed -n '1,100p'`"
        } else {
            "pass `offset` and `limit` to read a part"
        };
        return Err(ArgumentError::at(
            "path",
            format!("{shown} has {size} bytes, over the limit of {limit}; {hint}"),
        ));
    }
    if size > WHOLE_LIMIT_BYTES {
        if Kind::of(&beginning) == Kind::Utf16 {
            let text = format!(
                "{shown} is UTF-16 text of {size} bytes; convert it with `iconv -f UTF-16 -t UTF-8` by a command"
            );
            return Err(ArgumentError::at("path", text));
        }
        let mut window = Window::new(arguments);
        let hash = scan(&beginning, file, &mut window).map_err(|error| TargetError::io(shown.as_str(), error))?;
        let (output, words) = window.finish("")?;
        return Ok(Taken {
            output,
            words,
            hash,
            content: None,
        });
    }
    let rest = file.read_up_to(WHOLE_LIMIT_BYTES, shown)?;
    let Some(rest) = rest else {
        return Err(TargetError::Changed(shown.clone()).into());
    };
    let bytes = [beginning, rest].concat();
    let text = text::read(&bytes).map_err(|what| ArgumentError::at("path", format!("{shown} is {what}")))?;
    let mut window = Window::new(arguments);
    text.content
        .split_inclusive('\n')
        .for_each(|line| window.take(line.as_bytes(), line.len()));
    let (output, words) = window.finish(&note(text.form))?;
    Ok(Taken {
        output,
        words,
        hash: content_hash(&bytes),
        content: Some(text.content),
    })
}

/// What the model has to know of a file's form, to go after the number of its lines.
fn note(form: Form) -> String {
    let mut note = String::new();
    if form.charset != Charset::Utf8 {
        note.push_str(&format!("; it is written in {}, which is kept", form.charset.name()));
    }
    if form.line_ends == LineEnds::CrLf {
        note.push_str("; its line ends are CRLF, write them as LF");
    }
    note
}

/// Reads all of a large file with little memory: every byte is hashed, the lines go to `window`.
fn scan(beginning: &[u8], file: OpenFile, window: &mut Window) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut reader = BufReader::with_capacity(64 * 1024, beginning.chain(file.file.take(PART_LIMIT_BYTES)));
    let (mut line, mut length) = (Vec::new(), 0);
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let end = chunk
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(chunk.len(), |at| at + 1);
        let (piece, _) = chunk.split_at(end);
        hash.update(piece);
        length += piece.len();
        let room = LINE_LIMIT_BYTES.saturating_sub(line.len());
        line.extend(piece.iter().take(if window.wants_next() { room } else { 0 }));
        let whole = piece.ends_with(b"\n");
        reader.consume(end);
        if whole {
            window.take(&line, length);
            line.clear();
            length = 0;
        }
    }
    if length > 0 {
        window.take(&line, length);
    }
    Ok(hex(&hash.finalize()))
}

/// The lines that were asked for, as far as they fit.
struct Window {
    first: u64,
    limit: usize,
    /// Lines seen so far.
    seen: u64,
    /// Lines in `output`.
    shown: u64,
    output: String,
    full: bool,
    bad: Option<u64>,
}

impl Window {
    fn new(arguments: &Arguments) -> Self {
        let limit = arguments
            .limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(LINES_LIMIT)
            .min(LINES_LIMIT);
        let first = arguments.offset.unwrap_or(1).max(1);
        Self {
            first,
            limit,
            seen: 0,
            shown: 0,
            output: String::new(),
            full: false,
            bad: None,
        }
    }

    fn wants_next(&self) -> bool {
        self.seen + 1 >= self.first && !self.full
    }

    /// The next line, or its beginning; `length` is that of the whole line with its end.
    fn take(&mut self, line: &[u8], length: usize) {
        let wanted = self.wants_next();
        self.seen += 1;
        if !wanted {
            return;
        }
        let Some(text) = self.text_of(line, length) else {
            self.bad = self.bad.or(Some(self.seen));
            return;
        };
        let numbered = format!("{:>6}\t{text}\n", self.seen);
        if self.output.len() + numbered.len() > OUTPUT_LIMIT_BYTES && self.shown > 0 {
            self.full = true;
            return;
        }
        self.output.push_str(&numbered);
        self.shown += 1;
        self.full = self.shown >= self.limit as u64;
    }

    fn text_of(&self, line: &[u8], length: usize) -> Option<String> {
        let valid = match std::str::from_utf8(line) {
            Ok(text) => text,
            // Of a line that was cut the last character may be too.
            Err(error) if length > line.len() && error.error_len().is_none() => {
                std::str::from_utf8(line.get(..error.valid_up_to())?).ok()?
            }
            Err(_) => return None,
        };
        let text = valid.trim_end_matches('\n').trim_end_matches('\r');
        match text.char_indices().nth(LINE_LIMIT_CHARS) {
            None => Some(text.to_string()),
            Some((at, _)) => Some(format!(
                "{} [... line cut here, it has {length} bytes]",
                text.get(..at).unwrap_or_default()
            )),
        }
    }

    /// The output, and a last line that says what is not in it.
    fn finish(self, note: &str) -> Result<(String, String), ArgumentError> {
        if let Some(line) = self.bad {
            return Err(ArgumentError::at(
                "path",
                format!("is not UTF-8 in line {line}; convert it with `iconv` by a command"),
            ));
        }
        if self.seen == 0 {
            return Ok((String::new(), "(the file is empty)".into()));
        }
        if self.shown == 0 {
            return Err(ArgumentError::at(
                "offset",
                format!("the file has only {} lines", self.seen),
            ));
        }
        let last = self.first + self.shown - 1;
        let rest = if last < self.seen {
            format!("; continue with offset {}", last + 1)
        } else {
            String::new()
        };
        if self.first == 1 && rest.is_empty() && note.is_empty() {
            return Ok((self.output, String::new()));
        }
        let words = format!("[lines {}-{last} of {}{rest}{note}]", self.first, self.seen);
        Ok((self.output, words))
    }
}

impl FileTool for ReadFile {
    type Call = Checked;

    fn about() -> &'static Spec {
        &SPEC
    }

    fn look(arguments: &Value, place: &Place) -> Result<(Checked, Inspected), ArgumentError> {
        let checked = Checked::new(arguments, place)?;
        let inspected = Inspected::reading(NAME, arguments, &checked.file, place)?;
        Ok((checked, inspected))
    }

    fn act(checked: Checked, place: &Place, _patience: &Patience) -> Result<Ended, ArgumentError> {
        run(&checked, place)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::super::Tool;
    use super::super::world::World;
    use super::*;

    async fn read(world: &World, arguments: Value) -> Ended {
        world.run(&ReadFile, arguments).await
    }

    #[tokio::test]
    async fn a_small_file_comes_whole_and_numbered() {
        let world = World::new();
        world.write("a.txt", "one\n\ntwo");
        let ended = read(&world, json!({"path": "a.txt"})).await;
        assert_eq!(
            (ended.outcome, ended.output.as_str()),
            (Outcome::Ok, "     1\tone\n     2\t\n     3\ttwo\n")
        );
        assert_eq!(
            ended.files,
            [(world.path("a.txt").display().to_string(), content_hash(b"one\n\ntwo"))]
        );
        world.write("empty", "");
        assert_eq!(
            read(&world, json!({"path": "empty"})).await.output,
            "(the file is empty)"
        );
    }

    #[tokio::test]
    async fn a_part_says_where_it_is_and_how_to_go_on() {
        let world = World::new();
        world.write("a", &(1..=5000).map(|number| format!("{number}\n")).collect::<String>());
        let output = read(&world, json!({"path": "a"})).await.output;
        assert!(
            output.ends_with("  2000\t2000\n[lines 1-2000 of 5000; continue with offset 2001]"),
            "{output}"
        );
        let output = read(&world, json!({"path": "a", "offset": 4999, "limit": 10}))
            .await
            .output;
        assert_eq!(output, "  4999\t4999\n  5000\t5000\n[lines 4999-5000 of 5000]");
        let ended = read(&world, json!({"path": "a", "offset": 6000})).await;
        assert_eq!(
            (ended.outcome, ended.output.as_str()),
            (Outcome::Error, "`offset`: the file has only 5000 lines")
        );
    }

    #[tokio::test]
    async fn long_lines_and_much_text_are_cut_and_said() {
        let world = World::new();
        world.write("long", &format!("{}\nshort\n", "ä".repeat(3000)));
        let output = read(&world, json!({"path": "long"})).await.output;
        assert!(output.contains(&format!(
            "{} [... line cut here, it has 6001 bytes]\n     2\tshort\n",
            "ä".repeat(2000)
        )));
        world.write("wide", &format!("{}\n", "x".repeat(999)).repeat(100));
        let output = read(&world, json!({"path": "wide"})).await.output;
        assert!(
            output.len() < OUTPUT_LIMIT_BYTES + 100 && output.contains("continue with offset 50]"),
            "{}",
            output.len()
        );
    }

    #[tokio::test]
    async fn a_large_file_is_read_in_parts_and_hashed_whole() {
        let world = World::new();
        let content: String = (1..=300_000).map(|number| format!("line {number} ü\n")).collect();
        world.write("large", &content);
        let ended = read(&world, json!({"path": "large"})).await;
        assert!(ended.output.contains("pass `offset` and `limit`"), "{}", ended.output);
        let ended = read(&world, json!({"path": "large", "offset": 299_999, "limit": 1})).await;
        assert_eq!(
            ended.output,
            "299999\tline 299999 ü\n[lines 299999-299999 of 300000; continue with offset 300000]"
        );
        assert_eq!(ended.files[0].1, content_hash(content.as_bytes()));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_refused_quickly_and_clearly() {
        let world = World::new();
        std::fs::write(world.path("binary"), b"\x7fELF\0\0").unwrap();
        std::fs::write(world.path("damaged"), b"caf\xe9 k\xc3\xa4se\n").unwrap();
        std::fs::File::create(world.path("sparse"))
            .unwrap()
            .set_len(5 << 30)
            .unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, world.path("fifo"), mode).unwrap();
        let begin = Instant::now();
        for (path, said) in [
            ("binary", "is a binary file"),
            ("damaged", "not UTF-8 (byte 0xe9 in line 1)"),
            ("sparse", "a binary file"),
            ("fifo", "named pipe"),
            (".", "use list_dir"),
            ("/dev/zero", "is a device"),
            ("absent", "no such file"),
            ("/proc/self/environ", "shows the system"),
        ] {
            let ended = read(&world, json!({"path": path, "limit": 5})).await;
            assert_eq!(ended.outcome, Outcome::Error);
            assert!(ended.output.contains(said), "{path}: {}", ended.output);
        }
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test]
    async fn an_image_is_shown() {
        let world = World::new();
        let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 20_000]].concat();
        std::fs::write(world.path("a.png"), &bytes).unwrap();
        let ended = read(&world, json!({"path": "a.png"})).await;
        let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
        assert_eq!(
            ended.images,
            [protocol::Content::Image {
                media_type: "image/png".into(),
                data
            }]
        );
        assert_eq!(ended.output, "a.png: image/png, 20008 bytes");
    }

    #[tokio::test]
    async fn secret_and_outside_paths_are_facts() {
        let world = World::new();
        let env = ReadFile.inspect(&json!({"path": ".env"}), &world.place).await;
        let outside = ReadFile.inspect(&json!({"path": "../x"}), &world.place).await;
        assert!(env.is_ok_and(|inspected| inspected.facts.paths[0].secret && !inspected.writes));
        let outside = outside.unwrap();
        assert_eq!(outside.facts.paths[0].inside, crate::policy::facts::Inside::Outside);
    }
}
