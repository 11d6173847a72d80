//! Folds events into lines, with one blank line between blocks of different kinds. Between the events it lets the open items of
//! a reply flow: what was written of one is not written again by its closing event.

use super::call::{call_line, result_lines};
use super::note;
use super::pen::Pen;
use crate::paint::{self, Look};
use crate::wrap::wrap;
use protocol::display::{Form, display};
use protocol::event::{ApprovalResolved, InputAccepted, ItemCompleted, ItemType, TodoItem, ToolRequested};
use protocol::{By, CallId, Content, Envelope, Event, InputId, ItemId, plain_text};
use ratatui::text::{Line, Span};
use std::collections::HashMap;

/// Columns before what continues the line of a result.
const RESULT_INDENT: usize = 4;

/// What a block of lines is; blocks of different kinds have a blank line between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Person,
    Reply,
    Reasoning,
    Tools,
    Note,
}

/// Everything needed to write the next line. What it holds belongs to inputs and calls that are not over, and to one step.
#[derive(Debug)]
pub(crate) struct Scribe {
    look: Look,
    width: Option<u16>,
    /// Process id of the client whose own inputs need no name behind them.
    own: Option<u32>,
    /// Who sent the last input that was shown.
    speaker: Option<By>,
    inputs: HashMap<InputId, InputAccepted>,
    calls: HashMap<CallId, ToolRequested>,
    pens: HashMap<ItemId, Pen>,
    /// What the model means to do, as it was said last.
    todo: Vec<TodoItem>,
    last: Option<Block>,
}

impl Scribe {
    /// The beginning of a transcript; with a `width` prose is wrapped at it.
    pub(crate) fn new(look: Look, width: Option<u16>) -> Self {
        Self {
            look,
            width,
            own: None,
            speaker: None,
            inputs: HashMap::new(),
            calls: HashMap::new(),
            pens: HashMap::new(),
            todo: Vec::new(),
            last: None,
        }
    }

    /// The reader is the client with this process id.
    pub(crate) fn with_own(mut self, pid: u32) -> Self {
        self.own = Some(pid);
        self
    }

    /// From here on prose is wrapped at `width`.
    pub(crate) fn set_width(&mut self, width: Option<u16>) {
        self.width = width;
        self.pens.values_mut().for_each(|pen| pen.set_width(width));
    }

    /// The lines an event adds.
    pub(crate) fn event(&mut self, envelope: &Envelope) -> Vec<Line<'static>> {
        let Some(event) = envelope.event() else {
            return Vec::new();
        };
        match event {
            Event::InputAccepted(input) => {
                self.inputs.insert(input.input_id.clone(), input);
                Vec::new()
            }
            Event::InputDelivered(delivered) => self.person(&delivered.input_id),
            Event::InputSettled(settled) => {
                self.inputs.remove(&settled.input_id);
                self.block(Block::Note, note::settled(&settled).into_iter().collect())
            }
            Event::StepStarted(_) => self.restarted(),
            Event::StepFailed(step) => {
                self.pens.clear();
                self.block(Block::Note, note::failed(&step).into_iter().collect())
            }
            Event::StepCompleted(_) => {
                self.pens.clear();
                Vec::new()
            }
            Event::ItemCompleted(item) => self.item(&item),
            Event::ToolRequested(call) => {
                self.calls.insert(call.call.clone(), call);
                Vec::new()
            }
            Event::ToolCompleted(done) => {
                let call = self.calls.remove(&done.call);
                let line = call.map(|call| call_line(&call.tool, &call.action, &call.arguments, self.width));
                let results = self.wrapped(result_lines(&done), RESULT_INDENT);
                self.block(Block::Tools, line.into_iter().chain(results).collect())
            }
            Event::ApprovalResolved(done) => {
                let own = self.is_own(&done.by);
                let line = note::resolved(&done, own);
                let lines = self.wrapped(line.into_iter().collect(), RESULT_INDENT);
                self.changed(done);
                self.block(Block::Tools, lines)
            }
            Event::TurnResumed(_) => {
                let line = paint::line("agentd was restarted; the turn goes on", paint::dim());
                self.block(Block::Note, vec![line])
            }
            Event::TurnCompleted(turn) => {
                self.pens.clear();
                self.block(Block::Note, note::ended(&turn))
            }
            Event::NoticeAdded(notice) => self.block(Block::Note, vec![note::notice(&notice)]),
            Event::SessionChanged(change) => {
                self.block(Block::Note, note::changed(&change, envelope.at).into_iter().collect())
            }
            Event::SessionCreated(created) => self.block(Block::Note, note::created(&created).into_iter().collect()),
            Event::QueueResumed(_)
            | Event::TurnStarted(_)
            | Event::TurnInterruptRequested(_)
            | Event::ApprovalRequested(_)
            | Event::ToolStarted(_) => Vec::new(),
            Event::TodoChanged(todo) => {
                self.todo = todo.items;
                Vec::new()
            }
            Event::JobStopRequested(request) if self.is_own(&request.by) => Vec::new(),
            Event::JobStopRequested(request) => {
                let text = format!("job {} is to end, says {}", request.job, request.by);
                let line = paint::line(display(&text, Form::Inline), paint::dim());
                self.block(Block::Note, vec![line])
            }
            Event::JobEnded(ended) => {
                let text = format!("job {} {}", ended.job, protocol::wording::tool_outcome(ended.outcome));
                self.block(
                    Block::Note,
                    vec![paint::line(display(&text, Form::Inline), paint::dim())],
                )
            }
        }
    }

    /// What a transcript ends with: the list of what the model means to do, if there is one.
    pub(crate) fn end(&mut self) -> Vec<Line<'static>> {
        let lines = protocol::wording::todo_lines(&self.todo);
        let lines = lines
            .into_iter()
            .map(|line| paint::line(format!("  {line}"), paint::dim()));
        let lines: Vec<Line<'static>> = lines.collect();
        if lines.is_empty() {
            lines
        } else {
            self.paragraph(Block::Tools, lines)
        }
    }

    /// The complete lines of an open item, of whose text `text` is known from byte `start` on.
    pub(crate) fn grow(&mut self, item: &ItemId, item_type: ItemType, start: u64, text: &str) -> Vec<Line<'static>> {
        let lines = self.pen(item, item_type).grow(start, text);
        self.block(block_of(item_type), lines)
    }

    /// All of an open item that has an item after it, and will hardly grow.
    pub(crate) fn grow_whole(
        &mut self,
        item: &ItemId,
        item_type: ItemType,
        start: u64,
        text: &str,
    ) -> Vec<Line<'static>> {
        let lines = self.pen(item, item_type).finish(start, text);
        self.block(block_of(item_type), lines)
    }

    /// The unfinished line of an open item, for the live area, with the blank line that would come before it.
    pub(crate) fn open_line(&self, item: &ItemId, item_type: ItemType, start: u64, text: &str) -> Vec<Line<'static>> {
        let lines = match self.pens.get(item) {
            Some(pen) => pen.open_line(start, text),
            None => Pen::new(item_type, self.look, self.width).open_line(start, text),
        };
        let same = self.last == Some(block_of(item_type));
        let gap = (!same && !lines.is_empty() && self.last.is_some()).then(Line::default);
        gap.into_iter().chain(lines).collect()
    }

    /// Bytes of an item's text that are written.
    pub(crate) fn written(&self, item: &ItemId) -> u64 {
        self.pens.get(item).map_or(0, Pen::written)
    }

    /// Lines of the client itself, such as the answer to a command.
    pub(crate) fn aside(&mut self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        if lines.is_empty() {
            lines
        } else {
            self.paragraph(Block::Note, lines)
        }
    }

    /// What runs is what the person made of the call, and so it is shown.
    fn changed(&mut self, done: ApprovalResolved) {
        let call = done.call.as_ref().and_then(|call| self.calls.get_mut(call));
        if let (Some(call), Some(arguments)) = (call, done.arguments) {
            call.arguments = arguments;
            call.action = done.action.unwrap_or_default();
        }
    }

    fn wrapped(&self, lines: Vec<Line<'static>>, indent: usize) -> Vec<Line<'static>> {
        let Some(width) = self.width else { return lines };
        lines.iter().flat_map(|line| wrap(line, width, indent)).collect()
    }

    fn pen(&mut self, item: &ItemId, item_type: ItemType) -> &mut Pen {
        let (look, width) = (self.look, self.width);
        self.pens
            .entry(item.clone())
            .or_insert_with(|| Pen::new(item_type, look, width))
    }

    /// A model call that begins while an earlier one's text is shown takes that text's place.
    fn restarted(&mut self) -> Vec<Line<'static>> {
        let shown = self.pens.values().any(|pen| pen.written() > 0);
        self.pens.clear();
        let line = shown.then(|| paint::line("reply restarted", paint::dim()));
        self.block(Block::Note, line.into_iter().collect())
    }

    fn item(&mut self, item: &ItemCompleted) -> Vec<Line<'static>> {
        if item.item_type == ItemType::Opaque {
            return Vec::new();
        }
        let lines = self.pen(&item.item, item.item_type).finish(0, &item.text);
        self.block(block_of(item.item_type), lines)
    }

    fn person(&mut self, input_id: &InputId) -> Vec<Line<'static>> {
        let Some(input) = self.inputs.get(input_id) else {
            let line = paint::line("> (an input from before what is shown)", paint::dim());
            return self.paragraph(Block::Person, vec![line]);
        };
        let text = plain_text(&input.content);
        let images = input
            .content
            .iter()
            .filter(|piece| matches!(piece, Content::Image { .. }))
            .count();
        let shown = display(text.trim_end(), Form::Block);
        let mut lines: Vec<Line<'static>> = shown
            .split('\n')
            .map(|line| paint::line(line.to_owned(), paint::person()))
            .collect();
        let last = lines.last_mut();
        if let Some(last) = last.filter(|_| images > 0) {
            last.push_span(Span::styled(
                format!(" [{images} image{}]", if images == 1 { "" } else { "s" }),
                paint::dim(),
            ));
        }
        if let Some(name) = self.name_to_show(&input.by)
            && let Some(last) = lines.last_mut()
        {
            last.push_span(Span::styled(format!("   — {name}"), paint::dim()));
        }
        self.speaker = Some(input.by.clone());
        let marked = lines.into_iter().enumerate().flat_map(|(index, mut line)| {
            line.spans
                .insert(0, Span::styled(if index == 0 { "> " } else { "  " }, paint::person()));
            self.width
                .map_or_else(|| vec![line.clone()], |width| wrap(&line, width, 2))
        });
        let lines = marked.collect();
        self.paragraph(Block::Person, lines)
    }

    /// The sender's name, unless it is this client, or one of the same sort as the one before.
    fn name_to_show(&self, by: &By) -> Option<String> {
        let By::Client { client, kind, .. } = by else {
            return Some(display(&by.to_string(), Form::Inline).into_owned());
        };
        if self.is_own(by) {
            return None;
        }
        let usual = match &self.speaker {
            Some(By::Client {
                client: last,
                kind: last_kind,
                ..
            }) => client == last && kind == last_kind,
            _ => self.speaker.is_none() && (self.own.is_none() || kind == "tui"),
        };
        (!usual).then(|| display(&format!("{client} ({kind})"), Form::Inline).into_owned())
    }

    fn is_own(&self, by: &By) -> bool {
        let By::Client { pid: Some(pid), .. } = by else {
            return false;
        };
        self.own.is_some_and(|own| i64::from(own) == i64::from(*pid))
    }

    fn block(&mut self, block: Block, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        if lines.is_empty() || self.last == Some(block) {
            return lines;
        }
        self.paragraph(block, lines)
    }

    fn paragraph(&mut self, block: Block, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        let gap = self.last.replace(block).map(|_| Line::default());
        gap.into_iter().chain(lines).collect()
    }
}

fn block_of(item_type: ItemType) -> Block {
    match item_type {
        ItemType::Reasoning => Block::Reasoning,
        ItemType::Text | ItemType::Refusal | ItemType::Opaque => Block::Reply,
    }
}
