//! Tool calls in few words: one line for the call, one for its result, the beginning of an error, a short diff.

use crate::paint;
use crate::wrap::{clip, clip_text};
use protocol::display::{Form, display};
use protocol::event::{Action, ToolCompleted, ToolOutcome};
use protocol::wording;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

/// Columns of a call's arguments.
const ARGUMENTS: u16 = 80;
/// Columns of a call's arguments where it is only named.
const NAMED: u16 = 60;
/// Columns of a result that is shown itself rather than by its size.
const RESULT: usize = 120;
/// Characters of an error.
const ERROR: usize = 200;
/// Lines of a diff that is shown whole.
const DIFF: usize = 12;

/// A call: its tool and what it does, in one row of a terminal of `width` columns.
pub(crate) fn call_line(tool: &str, action: &Action, arguments: &Value, width: Option<u16>) -> Line<'static> {
    // Its list is shown as a list, and its result says how far it is.
    let what = if tool == "todo_write" {
        String::new()
    } else {
        clip_text(&what(action, arguments), ARGUMENTS)
    };
    let line = Line::from(vec![
        Span::styled("● ", paint::good()),
        Span::styled(inline(tool), paint::bold()),
        Span::raw(format!(" {what}")),
    ]);
    width.map_or_else(|| line.clone(), |width| clip(&line, width))
}

fn what(action: &Action, arguments: &Value) -> String {
    let named = action
        .command
        .as_ref()
        .or(action.path.as_ref())
        .or(action.url.as_ref())
        .or(action.host.as_ref());
    if let Some(named) = named {
        return inline(named.trim_end());
    }
    match arguments {
        Value::Object(members) if members.is_empty() => String::new(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| match value {
                Value::String(text) => format!("{}={}", inline(name), inline(text)),
                other => format!("{}={}", inline(name), inline(&other.to_string())),
            };
            members.iter().map(member).collect::<Vec<_>>().join(" ")
        }
        Value::Null => String::new(),
        other => inline(&other.to_string()),
    }
}

/// A call in few words without colour, to name it where it is not shown itself.
pub(crate) fn call_words(tool: &str, action: &Action, arguments: &Value) -> String {
    format!("{} {}", inline(tool), clip_text(&what(action, arguments), NAMED))
}

/// A result: itself if it is short, else its size; how it ended if not well.
pub(crate) fn result_lines(done: &ToolCompleted) -> Vec<Line<'static>> {
    let mut lines = match done.outcome {
        ToolOutcome::Ok => vec![result(&ok_words(done), Style::new())],
        ToolOutcome::Error | ToolOutcome::TimedOut => error_lines(done),
        ToolOutcome::Denied | ToolOutcome::NotRun => {
            let words = format!(
                "{}: {}",
                wording::tool_outcome(done.outcome),
                first_characters(&done.output)
            );
            vec![result(&inline(&words), paint::error())]
        }
        ToolOutcome::Stopped | ToolOutcome::Lost | ToolOutcome::Abandoned => {
            vec![result(wording::tool_outcome(done.outcome), paint::error())]
        }
    };
    lines.extend(done.diff.iter().flat_map(|diff| diff_lines(diff)));
    lines
}

fn result(text: &str, style: Style) -> Line<'static> {
    Line::from(vec![
        Span::styled("  └ ", paint::dim()),
        Span::styled(text.to_owned(), paint::dim().patch(style)),
    ])
}

fn ok_words(done: &ToolCompleted) -> String {
    let exit = done
        .exit_code
        .filter(|code| *code != 0)
        .map(|code| format!("exit code {code}"));
    let output = done.output.trim();
    let shown = if let Some(diff) = &done.diff {
        changed(diff)
    } else if output.is_empty() {
        "no output".to_owned()
    } else if output.chars().count() <= RESULT && !output.contains('\n') {
        inline(output)
    } else {
        result_size(&done.output, done.blob.as_ref().map(|blob| blob.bytes))
    };
    let time = (done.duration_ms >= 1000).then(|| format!("{:.1} s", seconds(done.duration_ms)));
    [exit, Some(shown), time]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

fn error_lines(done: &ToolCompleted) -> Vec<Line<'static>> {
    let how = match (done.exit_code, done.outcome) {
        (Some(code), ToolOutcome::Error) => format!("exit code {code}"),
        (_, outcome) => wording::tool_outcome(outcome).to_owned(),
    };
    let text = first_characters(done.output.trim());
    let shown = display(&text, Form::Block);
    let mut rest = shown.split('\n');
    let first = rest.next().unwrap_or_default();
    let mut lines = vec![result(&format!("{how}: {first}"), paint::error())];
    lines.extend(rest.map(|line| paint::line(format!("    {line}"), paint::dim().patch(paint::error()))));
    lines
}

fn first_characters(text: &str) -> String {
    let mut characters = text.chars();
    let mut first: String = characters.by_ref().take(ERROR).collect();
    if characters.next().is_some() {
        first.push('…');
    }
    first
}

/// A size as people read it: lines, and bytes of the whole where that is more than what the model saw.
fn result_size(output: &str, whole: Option<u64>) -> String {
    let lines = output.lines().count();
    let bytes = whole.unwrap_or(output.len() as u64);
    format!(
        "{lines} {}, {}",
        if lines == 1 { "line" } else { "lines" },
        byte_size(bytes)
    )
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn byte_size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn changed(diff: &str) -> String {
    let count = |mark: char, head: &str| {
        diff.lines()
            .filter(|line| line.starts_with(mark) && !line.starts_with(head))
            .count()
    };
    format!("+{} −{}", count('+', "+++"), count('-', "---"))
}

fn diff_lines(diff: &str) -> Vec<Line<'static>> {
    let body: Vec<&str> = diff
        .lines()
        .filter(|line| !line.starts_with("+++") && !line.starts_with("---"))
        .collect();
    if body.len() > DIFF {
        return Vec::new();
    }
    let line = |line: &&str| paint::line(format!("    {}", display(line, Form::Block)), paint::diff_line(line));
    body.iter().map(line).collect()
}

fn inline(text: &str) -> String {
    display(text, Form::Inline).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn done(outcome: ToolOutcome, output: &str) -> ToolCompleted {
        ToolCompleted {
            call: "c3".into(),
            outcome,
            output: output.to_owned(),
            images: Vec::new(),
            blob: None,
            diff: None,
            exit_code: None,
            duration_ms: 12,
            job: None,
            files: BTreeMap::new(),
        }
    }

    fn words(done: &ToolCompleted) -> Vec<String> {
        result_lines(done).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_call_is_one_line_of_name_and_arguments() {
        let command = Action {
            command: Some(format!("echo {}", "x".repeat(200))),
            ..Action::default()
        };
        let line = call_line("bash", &command, &Value::Null, None).to_string();
        assert!(line.starts_with("● bash echo xxx") && line.ends_with("x…"), "{line}");
        assert_eq!(line.chars().count(), "● bash ".chars().count() + 80);
        let line = call_line(
            "grep",
            &Action::default(),
            &json!({"pattern": "a\nb", "limit": 3}),
            None,
        );
        assert_eq!(line.to_string(), "● grep limit=3 pattern=a␊b");
    }

    #[test]
    fn a_short_result_is_shown_and_a_long_one_measured() {
        assert_eq!(words(&done(ToolOutcome::Ok, "done\n")), ["  └ done"]);
        assert_eq!(words(&done(ToolOutcome::Ok, " \n")), ["  └ no output"]);
        assert_eq!(
            words(&done(ToolOutcome::Ok, &"line\n".repeat(34))),
            ["  └ 34 lines, 170 B"]
        );
        let mut slow = done(ToolOutcome::Ok, "x");
        slow.duration_ms = 3240;
        slow.exit_code = Some(2);
        assert_eq!(words(&slow), ["  └ exit code 2 · x · 3.2 s"]);
    }

    #[test]
    fn an_error_shows_its_first_characters() {
        let rows = words(&done(ToolOutcome::Error, &format!("no such file\n{}", "x".repeat(300))));
        assert_eq!(rows.first().map(String::as_str), Some("  └ error: no such file"));
        assert_eq!(rows.last(), Some(&format!("    {}…", "x".repeat(187))));
    }

    #[test]
    fn a_denial_shows_what_was_said() {
        assert_eq!(words(&done(ToolOutcome::Denied, "use make")), ["  └ denied: use make"]);
    }

    #[test]
    fn an_edit_shows_its_diff_if_that_is_short() {
        let mut edit = done(ToolOutcome::Ok, "edited");
        edit.diff = Some("--- a\n+++ a\n@@ -1 +1,2 @@\n-x\n+y\n+\u{1b}[2Jz\n".to_owned());
        assert_eq!(
            words(&edit),
            ["  └ +2 −1", "    @@ -1 +1,2 @@", "    -x", "    +y", "    +␛[2Jz"]
        );
        edit.diff = Some("+x\n".repeat(40));
        assert_eq!(words(&edit), ["  └ +40 −0"]);
    }
}
