//! What the demo model says next, from what it was asked and what its calls returned. Pure.

use serde_json::{Map, Value, json};

use super::read::{Conversation, Step};

/// Lines of a tool's output that an answer quotes.
const QUOTED_LINES: usize = 12;

/// Bytes of one quoted line; some files have no line ends.
const QUOTED_LINE_BYTES: usize = 200;

/// Lines of `long N`: enough to fill any buffer on the way.
const LONG_LINES: usize = 100_000;

/// What a person may send instead of a question.
const HELP: &str = "Try: `What is in this folder?`, `run COMMAND`, `read FILE`, `write FILE TEXT`, `long N` or `fail`.";

/// The next reply.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// Text, and the turn is over.
    Say(String),
    /// Text, then a call.
    Call(String, Call),
    /// An error of the provider.
    Fail,
}

/// A call to ask for.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) tool: &'static str,
    pub(super) arguments: Map<String, Value>,
}

/// What an input asks for.
enum Wish<'a> {
    Look,
    Run(&'a str),
    Read(&'a str),
    Write(&'a str, &'a str),
    Long(usize),
    Fail,
    Anything,
}

/// The reply to a request.
pub(super) fn script(conversation: &Conversation<'_>) -> Line {
    match wish(conversation.input) {
        Wish::Fail => Line::Fail,
        Wish::Long(lines) => Line::Say(long(lines)),
        Wish::Anything => Line::Say(format!(
            "I am the built-in demo model: a script, and I cannot reason. {HELP}"
        )),
        Wish::Run(command) => one_call(conversation, "bash", &[("command", command)]),
        Wish::Read(path) => one_call(conversation, "read_file", &[("path", path)]),
        Wish::Write(path, text) => one_call(conversation, "write_file", &[("path", path), ("content", text)]),
        Wish::Look => look(conversation),
    }
}

fn wish(input: &str) -> Wish<'_> {
    let (word, rest) = input.split_once(char::is_whitespace).unwrap_or((input, ""));
    let rest = rest.trim();
    match (word.to_ascii_lowercase().as_str(), rest.is_empty()) {
        ("fail", true) => Wish::Fail,
        ("run", false) => Wish::Run(rest),
        ("read", false) => Wish::Read(rest),
        ("long", false) => rest
            .parse()
            .map_or(Wish::Anything, |lines: usize| Wish::Long(lines.min(LONG_LINES))),
        ("write", false) => match rest.split_once(char::is_whitespace) {
            Some((path, text)) => Wish::Write(path, text.trim_start()),
            None => Wish::Write(rest, ""),
        },
        _ if asks_about_folder(input) => Wish::Look,
        _ => Wish::Anything,
    }
}

fn asks_about_folder(input: &str) -> bool {
    let input = input.to_lowercase();
    [
        "folder",
        "directory",
        "repository",
        "project",
        "what is here",
        "what's here",
    ]
    .iter()
    .any(|word| input.contains(word))
}

fn long(lines: usize) -> String {
    (1..=lines)
        .map(|number| format!("{number}. The demo model counts.\n"))
        .collect()
}

/// Asks for one call, then tells what became of it.
fn one_call(conversation: &Conversation<'_>, tool: &'static str, arguments: &[(&str, &str)]) -> Line {
    match conversation.step(tool) {
        Some(step) => Line::Say(format!(
            "The demo model cannot reason about it, only repeat it. {}",
            told(step)
        )),
        None if conversation.tools.contains(&tool) => {
            let text = format!("The demo model asks for `{tool}`, as you say.");
            Line::Call(text, call(tool, arguments))
        }
        None => Line::Say(format!(
            "The demo model would ask for `{tool}`, but this session does not have that tool."
        )),
    }
}

fn call(tool: &'static str, arguments: &[(&str, &str)]) -> Call {
    let arguments = arguments
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    Call { tool, arguments }
}

/// Lists the folder, reads one file of it, with a person watching also runs a command, then tells what it saw.
fn look(conversation: &Conversation<'_>) -> Line {
    let may = |tool: &str| conversation.tools.contains(&tool) && conversation.step(tool).is_none();
    let listing = conversation.step("list_dir");
    if may("list_dir") {
        let text = "I am the built-in demo model: I follow a script and cannot reason. I list this folder first.";
        return Line::Call(text.to_owned(), call("list_dir", &[("path", ".")]));
    }
    let file = listing
        .filter(|step| step.worked)
        .and_then(|step| file_to_read(&step.output));
    if let Some(file) = file
        && may("read_file")
    {
        return Line::Call(format!("Now I read `{file}`."), call("read_file", &[("path", file)]));
    }
    // Of its own accord it asks for a command only where somebody can see the question and answer it.
    if conversation.watched && listing.is_some() && may("bash") {
        let text = "Now I ask for a command, so that you see an approval if one is needed.";
        return Line::Call(
            text.to_owned(),
            call("bash", &[("command", "git status --short --branch")]),
        );
    }
    Line::Say(summary(&conversation.steps))
}

fn summary(steps: &[Step<'_>]) -> String {
    let mut text = "This is what the tools returned; the demo model only repeats it and cannot reason.\n".to_owned();
    if steps.is_empty() {
        text.push_str("\nThis session has no tool that the script could use.\n");
    }
    for step in steps {
        text.push_str(&format!("\n{}\n", told(step)));
    }
    text
}

/// What became of a call, in its own words.
fn told(step: &Step<'_>) -> String {
    let outcome = if step.worked {
        "returned"
    } else {
        "was denied or failed"
    };
    format!("`{} {}` {outcome}:\n{}", step.tool, step.about(), quoted(&step.output))
}

/// The beginning of an output as a block; the fence is longer than any in it.
fn quoted(output: &str) -> String {
    let lines: Vec<&str> = output
        .lines()
        .take(QUOTED_LINES)
        .map(|line| beginning(line, QUOTED_LINE_BYTES))
        .collect();
    let mut fence = "```".to_owned();
    while lines.iter().any(|line| line.contains(&fence)) {
        fence.push('`');
    }
    let left_out = output.lines().count() - lines.len();
    let rest = if left_out == 0 {
        String::new()
    } else {
        format!("\n({left_out} more lines)")
    };
    format!("{fence}\n{}\n{fence}{rest}", lines.join("\n"))
}

fn beginning(line: &str, bytes: usize) -> &str {
    line.get(..line.floor_char_boundary(bytes)).unwrap_or(line)
}

/// The README of a listing, else its first file that looks like text. Directories end in `/`, links in `@`, and remarks
/// stand in brackets.
fn file_to_read(listing: &str) -> Option<&str> {
    let is_file = |name: &&str| !name.is_empty() && !name.ends_with(['/', '@']) && !name.starts_with(['[', '(']);
    let files = || listing.lines().map(str::trim).filter(is_file);
    let readme = files().find(|name| name.to_lowercase().starts_with("readme"));
    readme.or_else(|| files().find(|name| is_text(name)))
}

/// Judged by the name alone; what is no text after all answers with an error that is told. Dot files are left in peace: some
/// hold secrets.
fn is_text(name: &str) -> bool {
    const TEXT: [&str; 22] = [
        "md", "txt", "rst", "toml", "yaml", "yml", "json", "rs", "py", "js", "ts", "go", "c", "h", "cpp", "java", "rb",
        "sh", "html", "css", "cfg", "ini",
    ];
    const WHOLE: [&str; 4] = ["Makefile", "Dockerfile", "LICENSE", "CHANGELOG"];
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    !name.starts_with('.')
        && (WHOLE.contains(&name) || extension.is_some_and(|extension| TEXT.contains(&extension.as_str())))
}
