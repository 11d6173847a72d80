//! What a person sees of a turn while it runs: on a terminal its text as it comes, and what its tools do.

use crate::failure::Failure;
use crate::output::{Output, Reader, Verbosity};
use protocol::display::{Form, display};
use protocol::event::{Action, ApprovalResolved, ItemType, TodoItem, ToolCompleted, ToolRequested};
use protocol::frame::{Delta, OpenItem, OpenType, Stream};
use protocol::{CallId, ItemId, wording};
use std::collections::HashMap;

/// Columns of an action in its one line.
const ACTION: usize = 80;
/// Columns of a result in its one line.
const RESULT: usize = 120;

/// The turn on the screen so far.
#[derive(Debug)]
pub(super) struct Shown {
    output: Output,
    /// Whether text streams to stdout.
    streams: bool,
    /// Whether tools and reasoning are told on stderr.
    tells: bool,
    /// Bytes of each item's text that were written.
    written: HashMap<ItemId, u64>,
    calls: HashMap<CallId, String>,
    /// The screen's line is not empty.
    mid_line: bool,
}

impl Shown {
    pub(super) fn new(output: Output, json: bool) -> Self {
        let person = output.stderr == Reader::Terminal && output.verbosity >= Verbosity::Normal;
        Self {
            output,
            streams: output.on_terminal() && !json,
            tells: (person && !json) || output.verbosity >= Verbosity::Verbose,
            written: HashMap::new(),
            calls: HashMap::new(),
            mid_line: false,
        }
    }

    /// Whether the answer's text is on the terminal already.
    pub(super) fn streams(&self) -> bool {
        self.streams
    }

    pub(super) fn open(&mut self, item: &OpenItem) -> Result<(), Failure> {
        self.grow(&item.item, item.item_type, item.stream, item.offset, &item.text)
    }

    pub(super) fn delta(&mut self, delta: &Delta) -> Result<(), Failure> {
        self.grow(&delta.item, delta.item_type, delta.stream, delta.offset, &delta.text)
    }

    fn grow(&mut self, item: &ItemId, kind: OpenType, stream: Stream, offset: u64, text: &str) -> Result<(), Failure> {
        if stream != Stream::Text {
            return Ok(());
        }
        let from = self.written.get(item).copied().unwrap_or(0);
        let new = text.get(usize::try_from(from.saturating_sub(offset)).unwrap_or(usize::MAX)..);
        let Some(new) = new.filter(|new| !new.is_empty()) else {
            return Ok(());
        };
        self.written.insert(item.clone(), offset + text.len() as u64);
        match kind {
            OpenType::Text | OpenType::Refusal => self.text(new),
            OpenType::Reasoning => self.reasoning(new),
            OpenType::Opaque | OpenType::Call => Ok(()),
        }
    }

    /// An item is whole: what of it is not on the screen yet, and the end of its line.
    pub(super) fn completed(&mut self, item: &ItemId, kind: ItemType, text: &str) -> Result<(), Failure> {
        self.grow(item, kind.into(), Stream::Text, 0, text)?;
        self.fresh_line();
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        if !self.streams {
            return Ok(());
        }
        self.output.write(&display(text, Form::Prose))?;
        self.mid_line = !text.ends_with('\n');
        Ok(())
    }

    fn reasoning(&mut self, text: &str) -> Result<(), Failure> {
        if self.tells {
            self.output.whisper(&self.output.dim(&display(text, Form::Prose)));
            self.mid_line = !text.ends_with('\n');
        }
        Ok(())
    }

    /// The model call is made again; what it had shown is void.
    pub(super) fn restarted(&mut self, reason: &str) {
        self.written.clear();
        self.tell(&format!("reply restarted: {}", display(reason, Form::Inline)));
    }

    pub(super) fn requested(&mut self, call: &ToolRequested) {
        let line = headline(&call.tool, &call.action, &call.arguments);
        self.calls.insert(call.call.clone(), line.clone());
        self.tell(&format!("• {line}"));
        if self.output.verbosity >= Verbosity::Verbose {
            self.tell(&display(&call.arguments.to_string(), Form::Block));
        }
    }

    /// What runs is what a person made of the call.
    pub(super) fn changed(&mut self, resolved: &ApprovalResolved) {
        if let (Some(action), Some(arguments)) = (&resolved.action, &resolved.arguments) {
            let line = headline("changed", action, arguments);
            self.tell(&format!("  {line}"));
        }
    }

    pub(super) fn finished(&mut self, call: &ToolCompleted) {
        let outcome = wording::tool_outcome(call.outcome);
        let seconds = call.duration_ms as f64 / 1000.0;
        let first = call
            .output
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let first = cut(&display(first, Form::Inline), RESULT);
        self.tell(&format!("  {outcome} in {seconds:.1} s: {first}"));
        if self.output.verbosity >= Verbosity::Verbose {
            self.tell(&display(&call.output, Form::Block));
        }
    }

    /// What the model means to do.
    pub(super) fn todo(&mut self, items: &[TodoItem]) {
        for line in wording::todo_lines(items) {
            self.tell(&format!("  {line}"));
        }
    }

    /// One line in one colour about what goes on.
    fn tell(&mut self, text: &str) {
        if self.tells {
            self.fresh_line();
            self.output.tell(&self.output.dim(text));
        }
    }

    /// Ends a line that text was written to, so that what comes next stands on its own.
    pub(super) fn fresh_line(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            self.output.whisper("\n");
        }
    }
}

/// The tool and what it does, in one line.
pub(super) fn headline(tool: &str, action: &Action, arguments: &serde_json::Value) -> String {
    let what = action
        .command
        .as_deref()
        .or(action.path.as_deref())
        .or(action.url.as_deref())
        .or(action.host.as_deref());
    let what = what.map_or_else(|| arguments.to_string(), str::to_owned);
    cut(
        &format!("{}: {}", display(tool, Form::Inline), display(&what, Form::Inline)),
        ACTION,
    )
}

/// At most `columns` characters, with a mark where more was.
pub(super) fn cut(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
