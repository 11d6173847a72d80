//! What the short lines of a call leave out, for readers who asked for it: its arguments, and its output as lines.

use crate::paint;
use protocol::display::{Form, display};
use protocol::event::BlobRef;
use ratatui::text::Line;
use serde_json::Value;

/// How much a transcript says of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// A line for the call, and its result in one or a few.
    #[default]
    Brief,
    /// Also the arguments and the output.
    Full,
}

/// The arguments, a member a line; texts of more lines stand below their name.
pub(super) fn argument_lines(arguments: &Value) -> Vec<Line<'static>> {
    let Value::Object(members) = arguments else {
        let text = if arguments.is_null() {
            String::new()
        } else {
            arguments.to_string()
        };
        return block(&text, "    ");
    };
    let member = |(name, value): (&String, &Value)| match value {
        Value::String(text) if text.trim_end_matches('\n').contains('\n') => {
            let mut lines = block(&format!("{}:", display(name, Form::Inline)), "    ");
            lines.extend(block(text, "      "));
            lines
        }
        Value::String(text) => block(&format!("{name}: {text}"), "    "),
        other => block(&format!("{name}: {other}"), "    "),
    };
    members.iter().flat_map(member).collect()
}

/// An output of the call or job `id`: the whole text of `blob` where the reader has it, else what the model saw of it and how
/// to get the rest.
pub(super) fn output_lines(
    output: &str,
    words_behind: &str,
    blob: Option<&BlobRef>,
    whole: Option<&str>,
    id: &str,
) -> Vec<Line<'static>> {
    let mut lines = block(whole.unwrap_or(output), "    ");
    lines.extend(block(words_behind, "    "));
    if let (Some(_), None) = (blob, whole) {
        let text = format!("    the whole: agentctl output {id}");
        lines.push(paint::line(display(&text, Form::Inline).into_owned(), paint::bold()));
    }
    lines
}

fn block(text: &str, indent: &str) -> Vec<Line<'static>> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    let shown = display(text, Form::Block);
    let line = |line: &str| paint::line(format!("{indent}{line}"), paint::dim());
    shown.split('\n').map(line).collect()
}
