//! Tool calls in few words: one line for the call, one for its result, the beginning of an error, a short diff.

use super::detail::output_lines;
use crate::paint;
use crate::wrap::{clip, clip_text};
use protocol::display::{Form, display};
use protocol::event::{Action, BlobRef, JobEnded, Produced, ToolCompleted, ToolOutcome};
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

/// A result: itself if it is short, else its size; how it ended if not well, with the beginning of what came until then.
pub(crate) fn result_lines(done: &ToolCompleted) -> Vec<Line<'static>> {
    let mut lines = match done.outcome {
        ToolOutcome::Ok => vec![result(&ok_words(done), Style::new())],
        ToolOutcome::Error
        | ToolOutcome::TimedOut
        | ToolOutcome::Stopped
        | ToolOutcome::Denied
        | ToolOutcome::NotRun => error_lines(done),
        ToolOutcome::Lost | ToolOutcome::Abandoned => {
            vec![result(wording::tool_outcome(done.outcome), paint::error())]
        }
    };
    lines.extend(done.diff.iter().flat_map(|diff| diff_lines(diff)));
    lines
}

/// A result in full: how it ended and how large it is, then all of it. `whole` is the text of its blob, if the reader has that.
pub(crate) fn full_result_lines(done: &ToolCompleted, whole: Option<&str>) -> Vec<Line<'static>> {
    let good = done.outcome == ToolOutcome::Ok;
    let how = match done.exit_code {
        Some(code) if good && code == 0 => None,
        Some(code) if matches!(done.outcome, ToolOutcome::Ok | ToolOutcome::Error) => Some(format!("exit code {code}")),
        _ if good => None,
        _ => Some(wording::tool_outcome(done.outcome).to_owned()),
    };
    let time = (done.duration_ms >= 1000).then(|| format!("{:.1} s", seconds(done.duration_ms)));
    let head = [how, Some(size(done)), time].into_iter().flatten().collect::<Vec<_>>();
    let style = if good { Style::new() } else { paint::error() };
    let mut lines = vec![result(&head.join(" · "), style)];
    // The words behind what was put out say how it ended, also where the blob has the rest.
    let behind = match (whole, done.produced) {
        (Some(_), Some(produced)) => usize::try_from(produced.end)
            .ok()
            .and_then(|end| done.output.get(end..))
            .unwrap_or_default(),
        _ => "",
    };
    let behind = behind.trim_start_matches('\n');
    lines.extend(output_lines(
        &done.output,
        behind,
        done.blob.as_ref(),
        whole,
        done.call.as_str(),
    ));
    let diff = done.diff.iter().flat_map(|diff| diff.lines());
    lines.extend(diff.map(|line| paint::line(format!("    {}", display(line, Form::Block)), paint::diff_line(line))));
    lines
}

/// A command in the background is over: how, and how much it had put out.
pub(crate) fn job_words(ended: &JobEnded) -> String {
    let outcome = wording::tool_outcome(ended.outcome);
    let size = match (ended.produced, &ended.blob) {
        (None, None) => String::new(),
        (Some(produced), _) if produced.bytes == 0 => " · no output".to_owned(),
        (produced, blob) => format!(
            " · {} · agentctl output {}",
            result_size(&ended.output, produced, blob.as_ref()),
            ended.job
        ),
    };
    format!("job {} {outcome}{size}", ended.job)
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
    let output = proper(done).trim();
    let shown = if let Some(diff) = &done.diff {
        changed(diff)
    } else if output.is_empty() {
        "no output".to_owned()
    } else if output.chars().count() <= RESULT && !output.contains('\n') {
        inline(output)
    } else {
        size(done) + &how_to_see(done)
    };
    let time = (done.duration_ms >= 1000).then(|| format!("{:.1} s", seconds(done.duration_ms)));
    [exit, Some(shown), time]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

/// What was put out, without the words around it. A tool that put out nothing may have said why.
fn proper(done: &ToolCompleted) -> &str {
    let produced = done.produced.and_then(|produced| produced.of(&done.output));
    match produced {
        Some("") if !is_command(done) => &done.output,
        Some(produced) => produced,
        None => &done.output,
    }
}

/// Whether a command ran to its end.
fn is_command(done: &ToolCompleted) -> bool {
    done.exit_code.is_some() || matches!(done.outcome, ToolOutcome::Stopped | ToolOutcome::TimedOut)
}

fn error_lines(done: &ToolCompleted) -> Vec<Line<'static>> {
    let stopped = matches!(done.outcome, ToolOutcome::Stopped | ToolOutcome::TimedOut);
    let how = match (done.exit_code, done.outcome) {
        (Some(code), ToolOutcome::Error) => format!("exit code {code}"),
        // The time says how much was lost; the words behind the output say nothing more.
        (_, outcome) if stopped && done.produced.is_some() => {
            format!(
                "{} after {:.1} s",
                wording::tool_outcome(outcome),
                seconds(done.duration_ms)
            )
        }
        (_, outcome) => wording::tool_outcome(outcome).to_owned(),
    };
    let output = if stopped { proper(done) } else { &done.output };
    let (text, part) = first_characters(output.trim());
    if text.is_empty() {
        return vec![result(&format!("{how} · no output"), paint::error())];
    }
    let shown = display(&text, Form::Block);
    let mut rest = shown.split('\n');
    let first = rest.next().unwrap_or_default();
    let mut lines = vec![result(&format!("{how}: {first}"), paint::error())];
    lines.extend(rest.map(|line| paint::line(format!("    {line}"), paint::dim().patch(paint::error()))));
    if part == Part::Beginning {
        lines.push(paint::line(
            format!("    {}{}", size(done), how_to_see(done)),
            paint::dim(),
        ));
    }
    lines
}

/// Whether a text is shown to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Beginning,
}

fn first_characters(text: &str) -> (String, Part) {
    let mut characters = text.chars();
    let mut first: String = characters.by_ref().take(ERROR).collect();
    if characters.next().is_none() {
        return (first, Part::All);
    }
    first.push('…');
    (first, Part::Beginning)
}

fn size(done: &ToolCompleted) -> String {
    result_size(&done.output, done.produced, done.blob.as_ref())
}

/// Where all of an output is: of a command's, and of whatever is too long for the log.
fn how_to_see(done: &ToolCompleted) -> String {
    if done.exit_code.is_some() || done.blob.is_some() || is_command(done) {
        format!(" · agentctl output {}", inline(done.call.as_str()))
    } else {
        String::new()
    }
}

/// A size as people read it: lines and bytes of all that was put out, and how much of it was kept where some was not. Where
/// nobody counted: what is known of the stored text.
fn result_size(output: &str, produced: Option<Produced>, blob: Option<&BlobRef>) -> String {
    let counted = |lines: u64, bytes: u64| {
        let word = if lines == 1 { "line" } else { "lines" };
        format!("{lines} {word}, {}", byte_size(bytes))
    };
    let size = match (produced, blob) {
        (Some(Produced { bytes: 0, .. }), _) => return "no output".to_owned(),
        (Some(produced), _) => counted(produced.lines, produced.bytes),
        (None, Some(blob)) => byte_size(blob.bytes.saturating_add(blob.cut)),
        (None, None) => counted(output.lines().count() as u64, output.len() as u64),
    };
    match blob {
        Some(blob) if blob.cut > 0 => format!("{size}, {} of it kept", byte_size(blob.bytes)),
        _ => size,
    }
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
            produced: None,
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

    /// The end of a command whose output is `shown` with a line behind it, of `lines` and `bytes` in all.
    fn command(outcome: ToolOutcome, shown: &str, lines: u64, bytes: u64) -> ToolCompleted {
        let mut command = done(outcome, &format!("{shown}[how it ended]"));
        command.exit_code = (outcome == ToolOutcome::Ok).then_some(0);
        command.duration_ms = 1500;
        command.produced = Some(Produced {
            lines,
            bytes,
            start: 0,
            end: shown.len() as u64,
        });
        command
    }

    fn blob(bytes: u64, cut: u64) -> Option<BlobRef> {
        Some(BlobRef {
            hash: "0".repeat(64),
            bytes,
            cut,
        })
    }

    #[test]
    fn a_size_is_that_of_the_whole_and_the_words_behind_an_output_are_no_part_of_it() {
        let empty = command(ToolOutcome::Ok, "", 0, 0);
        assert_eq!(words(&empty), ["  └ no output · 1.5 s"]);
        assert_eq!(words(&command(ToolOutcome::Ok, "hi\n", 1, 3)), ["  └ hi · 1.5 s"]);
        let mut long = command(ToolOutcome::Ok, "1\n[...]\n9\n", 20_001, 108_900);
        long.blob = blob(108_900, 0);
        assert_eq!(
            words(&long),
            ["  └ 20001 lines, 106.3 KiB · agentctl output c3 · 1.5 s"]
        );
        let mut cut = command(ToolOutcome::Ok, "y\n[...]\ny\n", 1_500_000, 3_000_000);
        cut.blob = blob(1_048_576, 1_951_424);
        assert_eq!(
            words(&cut),
            ["  └ 1500000 lines, 2.9 MiB, 1.0 MiB of it kept · agentctl output c3 · 1.5 s"]
        );
    }

    #[test]
    fn a_log_from_before_anybody_counted_shows_no_lines_of_a_cut_text() {
        let mut long = done(ToolOutcome::Ok, "1\n[...]\n9\n[exit code 0, 0.1 s]");
        long.blob = blob(108_900, 0);
        assert_eq!(words(&long), ["  └ 106.3 KiB · agentctl output c3"]);
    }

    #[test]
    fn what_came_before_a_command_was_stopped_or_its_time_was_over_is_shown() {
        assert_eq!(
            words(&command(ToolOutcome::Stopped, "one\ntwo\n", 2, 8)),
            ["  └ stopped after 1.5 s: one", "    two"]
        );
        assert_eq!(
            words(&command(ToolOutcome::TimedOut, "", 0, 0)),
            ["  └ timed out after 1.5 s · no output"]
        );
        let long = command(ToolOutcome::Stopped, &"x".repeat(300), 1, 300);
        let rows = words(&long);
        assert_eq!(
            rows.last().map(String::as_str),
            Some("    1 line, 300 B · agentctl output c3")
        );
    }

    #[test]
    fn a_full_result_shows_all_that_is_there_and_names_the_way_to_the_rest() {
        let mut long = command(ToolOutcome::Error, "1\n[...]\n9\n", 3, 6);
        long.exit_code = Some(2);
        long.blob = blob(6, 0);
        let rows = |whole: Option<&str>| -> Vec<String> {
            full_result_lines(&long, whole)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        let head = "  └ exit code 2 · 3 lines, 6 B · 1.5 s";
        assert_eq!(
            rows(None),
            [
                head,
                "    1",
                "    [...]",
                "    9",
                "    [how it ended]",
                "    the whole: agentctl output c3"
            ]
        );
        assert_eq!(
            rows(Some("1\n\u{1b}[2J\n9\n")),
            [head, "    1", "    ␛[2J", "    9", "    [how it ended]"]
        );
    }

    #[test]
    fn an_error_shows_its_first_characters() {
        let rows = words(&done(ToolOutcome::Error, &format!("no such file\n{}", "x".repeat(300))));
        assert_eq!(rows.first().map(String::as_str), Some("  └ error: no such file"));
        assert_eq!(rows.get(1), Some(&format!("    {}…", "x".repeat(187))));
        assert_eq!(rows.get(2).map(String::as_str), Some("    2 lines, 313 B"));
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
