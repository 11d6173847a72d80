//! Rust files as tidy reads them: code without comments and texts, the tests apart from the rest.

use std::fs;
use std::path::Path;

/// A Rust file of the workspace.
pub(crate) struct Source {
    /// From the repository's root, with `/`.
    pub(crate) path: String,
    /// As it is.
    pub(crate) text: String,
    /// Comments and the inside of texts blanked out; what follows `#[cfg(test)]` too.
    pub(crate) code: String,
    /// The same for the code under `#[cfg(test)]`, or for the whole file if all of it is tests.
    pub(crate) test_code: String,
}

impl Source {
    fn read(path: String, text: String) -> Self {
        let (code, test_code) = split_tests(&blank(&text));
        let source = Self {
            path,
            text,
            code,
            test_code,
        };
        if all_tests(&source.path) {
            source.into_tests()
        } else {
            source
        }
    }

    /// The same file where all of it is tests.
    fn into_tests(mut self) -> Self {
        self.test_code = blank(&self.text);
        self.code = String::new();
        self
    }

    /// Paths, without `.rs`, of the modules that this file declares for tests alone.
    fn test_modules(&self) -> Vec<String> {
        let parent = self.path.trim_end_matches(".rs");
        let dir = match parent.rsplit_once('/') {
            Some((dir, "mod" | "lib" | "main")) => dir,
            _ => parent,
        };
        let declared = self.text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
            let line = rest
                .lines()
                .next()?
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ");
            line.strip_prefix("mod ")?.strip_suffix(';')
        });
        declared.map(|name| format!("{dir}/{name}")).collect()
    }

    /// The lines of `code` that hold `word` as a whole word, with their numbers.
    pub(crate) fn lines_with<'a>(&'a self, word: &'a str) -> impl Iterator<Item = String> + 'a {
        lines_with(&self.path, &self.code, word)
    }
}

/// `path:number: word` for each line of `code` that holds `word` as a whole word.
pub(crate) fn lines_with<'a>(path: &'a str, code: &'a str, word: &'a str) -> impl Iterator<Item = String> + 'a {
    let numbered = code.lines().enumerate().filter(move |(_, line)| holds(line, word));
    numbered.map(move |(at, _)| format!("{path}:{}: {word}", at + 1))
}

fn holds(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (first, last) = (word.chars().next(), word.chars().last());
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().last());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        let (joined, goes_on) = (part(before) && part(first), part(after) && part(last));
        !joined && !goes_on
    })
}

/// Every Rust file of the workspace.
pub(crate) fn sources() -> Vec<Source> {
    let mut found: Vec<Source> = Vec::new();
    for crate_dir in ["protocol", "daemon", "client-cli", "client-tui", "tests"] {
        walk(&tests::bins::root().join(crate_dir), crate_dir, &mut found);
    }
    let test_modules: Vec<String> = found.iter().flat_map(Source::test_modules).collect();
    let for_tests = |path: &str| {
        let inside = |module: &String| {
            path.strip_prefix(module.as_str())
                .is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        test_modules.iter().any(inside)
    };
    found = found
        .into_iter()
        .map(|source| {
            if for_tests(&source.path) {
                source.into_tests()
            } else {
                source
            }
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 20, "tidy found only {} files", found.len());
    found
}

fn walk(dir: &Path, shown: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let shown = format!("{shown}/{name}");
        if entry.path().is_dir() {
            walk(&entry.path(), &shown, found);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            found.push(Source::read(shown, text));
        }
    }
}

/// Whether a file holds nothing but tests.
fn all_tests(path: &str) -> bool {
    let inside = path.split_once('/').map_or(path, |(_, inside)| inside);
    inside.starts_with("tests/")
        || inside.contains("/tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

/// The code with each item under `#[cfg(test)]` blanked out, and those items.
fn split_tests(code: &str) -> (String, String) {
    let (mut rest, mut tests) = (code.to_owned(), String::new());
    while let Some(start) = rest.find("#[cfg(test)]") {
        let after = rest.get(start..).unwrap_or_default();
        let length = item_length(after);
        let item: String = after.get(..length).unwrap_or(after).into();
        tests.push_str(&item);
        tests.push('\n');
        let blank: String = item.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        rest = format!(
            "{}{blank}{}",
            rest.get(..start).unwrap_or_default(),
            after.get(length..).unwrap_or_default()
        );
    }
    (rest, tests)
}

/// Bytes up to the end of the first item: its closing brace, or its semicolon where no brace comes first.
fn item_length(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The text with comments and the inside of string and character literals as blanks; line ends stay.
pub(crate) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = literal_length(rest, out.chars().last()).unwrap_or(0);
        let taken = length.max(c.len_utf8());
        let (piece, after) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        if length == 0 {
            out.push(c);
        } else {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = after;
    }
    out
}

/// Bytes of the comment or literal that `text` begins with.
fn literal_length(text: &str, before: Option<char>) -> Option<usize> {
    let word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    if text.starts_with('"') {
        return Some(quoted(text, '"'));
    }
    if !word && (text.starts_with("r\"") || text.starts_with("r#") || text.starts_with("br")) {
        let hashes = text.trim_start_matches("br").trim_start_matches('r');
        let count = hashes.len() - hashes.trim_start_matches('#').len();
        let inside = hashes.get(count..)?.strip_prefix('"')?;
        let end = inside.find(&format!("\"{}", "#".repeat(count)))?;
        return Some(text.len() - inside.len() + end + 1 + count);
    }
    if text.starts_with('\'') {
        // A lifetime has no closing quote one character, or one escape, further on.
        let second = text.chars().nth(1)?;
        let closes = second == '\\' || text.chars().nth(2) == Some('\'');
        return closes.then(|| quoted(text, '\''));
    }
    None
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn comments_and_texts_are_no_code() {
    let text =
        "let a = \"sleep(\"; // sleep(\nlet b = r#\"a \" sleep(\"#; /* sleep( */ let c = '\"'; fn f<'a>() { sleep(1) }";
    assert_eq!(lines_with("f.rs", &blank(text), "sleep(").count(), 1);
    assert_eq!(blank(text).lines().count(), text.lines().count());
}

#[test]
fn code_under_cfg_test_is_told_apart() {
    let source = Source::read(
        "daemon/src/a.rs".into(),
        "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { {} } }\nfn c() {}".into(),
    );
    assert!(source.code.contains("fn a") && source.code.contains("fn c") && !source.code.contains("fn b"));
    assert!(source.test_code.contains("fn b") && !source.test_code.contains("fn c"));
}
