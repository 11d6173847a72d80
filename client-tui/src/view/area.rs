//! Composes the live area: sections, and who yields when room is short.

use super::LIVE_ROWS;
use super::question::question_lines;
use super::report::queued_words;
use super::status::{spinner_line, status_line};
use crate::app::{App, Ask};
use crate::draft::{Draft, Rows};
use crate::paint;
use crate::screen::{Live, Size};
use crate::session::{Call, Now};
use crate::transcript::call_line;
use crate::wrap::clip;
use protocol::display::{Form, display};
use protocol::event::TodoState;
use protocol::frame::{CallState, JobView, Stream};
use protocol::wording;
use ratatui::text::{Line, Span};

/// Rows of the input at most; the rest of a longer draft is scrolled out.
const INPUT_ROWS: usize = 5;
/// Rows of waiting inputs at most.
const QUEUE_ROWS: usize = 3;
/// Rows of what the model means to do at most.
const TODO_ROWS: usize = 5;
/// Rows of a running call's output.
const OUTPUT_ROWS: usize = 3;
/// Rows of the reply's open line.
const REPLY_ROWS: usize = 6;
/// Completions at most.
const COMPLETIONS: usize = 8;
/// Columns kept for how long a call has run.
const TIME_COLUMNS: u16 = 14;
/// Columns before the input.
const PROMPT: u16 = 2;

/// The live area in a terminal of `size`.
pub(crate) fn compose(app: &App, size: Size, now: Now) -> Live {
    let height = usize::from(LIVE_ROWS.min(size.rows.saturating_sub(1)).max(2));
    let (input, input_row, column) = input(app, size.columns, INPUT_ROWS.min(height - 1));
    let mut room = height - 1 - input.len();
    let completions = taken(completions(app), &mut room, Keep::Start);
    let question = taken(question_lines(app, size.columns), &mut room, Keep::End);
    let spinner = taken(spinner_line(app, now).into_iter().collect(), &mut room, Keep::Start);
    let queue = taken(queue(app), &mut room, Keep::Start);
    // What a turn has left open waits for the next one: where it stands is enough.
    let rows = if app.session.state.is_busy() { TODO_ROWS } else { 1 };
    let todo = taken(todo(app, rows.min(room)), &mut room, Keep::Start);
    let jobs = taken(jobs(app, size.columns, now), &mut room, Keep::Start);
    let calls = taken(calls(app, size.columns, now), &mut room, Keep::End);
    let reply = taken(reply(app), &mut room, Keep::End);

    let mut lines: Vec<Line<'static>> = Vec::new();
    // A growing reply continues the line above it.
    if room > 0 && reply.is_empty() {
        lines.push(Line::default());
    }
    for section in [reply, calls, todo, question, queue, jobs, spinner, completions] {
        lines.extend(section);
    }
    let row = lines.len() + input_row;
    lines.extend(input);
    lines.push(status_line(app, size.columns, now));
    Live {
        lines: lines.iter().map(|line| clip(line, size.columns)).collect(),
        row,
        column,
    }
}

/// Rows that the input takes in a terminal of `size`.
pub(crate) fn input_rows(app: &App, size: Size) -> usize {
    input(app, size.columns, INPUT_ROWS).0.len()
}

/// Which end of a section stays when room is short.
#[derive(Clone, Copy)]
enum Keep {
    Start,
    End,
}

fn taken(mut lines: Vec<Line<'static>>, room: &mut usize, keep: Keep) -> Vec<Line<'static>> {
    let surplus = lines.len().saturating_sub(*room);
    match keep {
        Keep::Start => lines.truncate(*room),
        Keep::End => _ = lines.drain(..surplus),
    }
    *room -= lines.len();
    lines
}

fn input(app: &App, columns: u16, height: usize) -> (Vec<Line<'static>>, usize, u16) {
    let (draft, prompt, empty): (&Draft, &str, &str) = match &app.ask {
        Some(Ask {
            focus: crate::app::Focus::Telling(words),
            ..
        }) => (words, "! ", "what to do instead; Enter denies and tells, Esc back"),
        Some(Ask {
            focus: crate::app::Focus::Editing(call),
            ..
        }) => (call, "✎ ", "the call; Esc back"),
        _ => (&app.draft, "❯ ", ""),
    };
    let Rows { rows, row, column } = draft.rows(columns.saturating_sub(PROMPT));
    let first = (row + 1).saturating_sub(height);
    let shown = rows.into_iter().enumerate().skip(first).take(height);
    let mut lines: Vec<Line<'static>> = shown
        .map(|(index, text)| {
            let prompt = if index == 0 { prompt } else { "  " };
            Line::from(vec![Span::styled(prompt.to_owned(), paint::person()), Span::raw(text)])
        })
        .collect();
    if let Some(line) = lines.first_mut().filter(|_| draft.is_empty()) {
        line.push_span(Span::styled(empty.to_owned(), paint::dim()));
    }
    (lines, row - first, column + PROMPT)
}

fn completions(app: &App) -> Vec<Line<'static>> {
    let commands = app.completions();
    let chosen = app.list.chosen.min(commands.len().saturating_sub(1));
    let first = (chosen + 1).saturating_sub(COMPLETIONS);
    let line = |(index, command): (usize, &&crate::command::Command)| {
        let style = if index == chosen { paint::bold() } else { paint::dim() };
        let mark = if index == chosen { "› " } else { "  " };
        paint::line(
            format!("{mark}{} {}  {}", command.name, command.arguments, command.help),
            style,
        )
    };
    commands
        .iter()
        .enumerate()
        .skip(first)
        .take(COMPLETIONS)
        .map(line)
        .collect()
}

fn queue(app: &App) -> Vec<Line<'static>> {
    let state = &app.session.state;
    let mut lines: Vec<Line<'static>> = state
        .queue
        .iter()
        .take(QUEUE_ROWS)
        .map(|waiting| paint::line(format!("… {}", queued_words(waiting)), paint::dim()))
        .collect();
    let more = state.queue.len().saturating_sub(QUEUE_ROWS);
    if more > 0 {
        lines.push(paint::line(format!("… and {more} more: /queue"), paint::dim()));
    }
    if state.held {
        lines.push(paint::line(
            "the queue is held: send something, or /queue resume",
            paint::attention(),
        ));
    }
    lines
}

/// What the model means to do, while some of it is open: what it is at and what comes next come first when room is short.
fn todo(app: &App, rows: usize) -> Vec<Line<'static>> {
    let state = &app.session.state;
    if !state.has_plans() {
        return Vec::new();
    }
    let first = state
        .todo
        .iter()
        .position(|item| item.state != TodoState::Done)
        .unwrap_or(0);
    // One that is done shows where the list stands.
    let before = usize::from(rows > 1);
    let first = first.saturating_sub(before).min(state.todo.len().saturating_sub(rows));
    let shown = state.todo.iter().skip(first).take(rows);
    let lines = wording::todo_lines(&state.todo);
    let mut lines: Vec<Line<'static>> = shown
        .zip(lines.into_iter().skip(first))
        .map(|(item, line)| {
            let style = match item.state {
                TodoState::InProgress => paint::bold(),
                TodoState::Pending | TodoState::Done => paint::dim(),
            };
            paint::line(line, style)
        })
        .collect();
    let hidden = state.todo.len().saturating_sub(rows);
    if hidden > 0
        && let Some(last) = lines.last_mut()
    {
        last.push_span(Span::styled(format!("  and {hidden} more: /todo"), paint::dim()));
    }
    lines
}

/// Commands in the background, in one line.
fn jobs(app: &App, columns: u16, now: Now) -> Vec<Line<'static>> {
    let jobs = &app.session.state.jobs;
    let line = |job: &JobView| {
        let since = wording::span(now.wall.ms_since(job.started_at));
        let command = display(&job.command, Form::Inline);
        paint::line(format!("& {} ({since}): {command}", job.job), paint::dim())
    };
    match jobs.as_slice() {
        [] => Vec::new(),
        [only] => vec![clip(&line(only), columns)],
        [.., _] => vec![paint::line(
            format!("& {} commands in the background: /ps", jobs.len()),
            paint::dim(),
        )],
    }
}

/// Calls that run, each with the end of its output; a call whose arguments still come.
fn calls(app: &App, columns: u16, now: Now) -> Vec<Line<'static>> {
    let state = &app.session.state;
    let mut lines = Vec::new();
    for open in app.session.open.iter().filter(|open| open.stream == Stream::Arguments) {
        let tool = display(open.tool.as_deref().unwrap_or("call"), Form::Inline).into_owned();
        lines.push(paint::line(format!("○ {tool} … {} bytes", open.end()), paint::dim()));
    }
    for call in state.calls.iter().filter(|call| call.view.state != CallState::Asked) {
        lines.push(running(call, columns.saturating_sub(TIME_COLUMNS), now));
        let output = app
            .session
            .open
            .iter()
            .find(|open| open.stream == Stream::Output && open.item.as_str() == call.view.call.as_str());
        lines.extend(output.map(|open| last_lines(&open.text)).unwrap_or_default());
    }
    lines
}

fn running(call: &Call, columns: u16, now: Now) -> Line<'static> {
    let mut line = call_line(&call.view.tool, &call.view.action, &call.view.arguments, Some(columns));
    let words = match call.since {
        Some(since) => super::status::elapsed(now.clock.saturating_duration_since(since)),
        None => "waits".to_owned(),
    };
    line.push_span(Span::styled(format!("  {words}"), paint::dim()));
    line
}

fn last_lines(output: &str) -> Vec<Line<'static>> {
    let all: Vec<&str> = output.trim_end().lines().collect();
    let last = all.get(all.len().saturating_sub(OUTPUT_ROWS)..).unwrap_or_default();
    // A program that draws a progress bar ends its rows with a carriage return: the last is what it shows.
    let visible = |line: &&str| {
        line.trim_end_matches('\r')
            .rsplit('\r')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    last.iter()
        .map(visible)
        .map(|line| paint::line(format!("    {}", display(&line, Form::Block)), paint::dim()))
        .collect()
}

fn reply(app: &App) -> Vec<Line<'static>> {
    let mut lines = app.session.open_line();
    let surplus = lines.len().saturating_sub(REPLY_ROWS);
    lines.drain(..surplus);
    lines
}
