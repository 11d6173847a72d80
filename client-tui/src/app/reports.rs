//! What the commands that only show something show: the session's status, what runs, what the model means to do.

use super::App;
use crate::paint;
use crate::wrap::wrap;
use protocol::display::{Form, display};
use protocol::frame::ClientView;
use protocol::wording;
use ratatui::text::{Line, Span};

/// Column where the values of `/status` begin.
const VALUE_COLUMN: usize = 13;

impl App {
    pub(super) fn status(&mut self) {
        let state = &self.session.state;
        let (mode, until) = self.mode(self.wall);
        let mut rows = vec![("session", state.session.to_string())];
        rows.extend(state.name.as_ref().map(|name| ("name", name.clone())));
        rows.push(("directory", state.cwd.clone()));
        rows.extend(state.added_roots.iter().map(|root| ("and", root.clone())));
        rows.push(("model", self.model()));
        rows.push(("mode", wording::mode_until(mode, until, self.wall)));
        rows.extend(state.sandbox.as_ref().map(|view| ("sandbox", wording::sandbox(view))));
        rows.push(("phase", state.phase.as_str().to_owned()));
        let tokens = format!("{} in, {} out", state.usage.input, state.usage.output);
        let cost = state.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
        rows.push(("tokens", format!("{tokens}{cost}")));
        let prompt = state.sources.iter();
        let prompt: Vec<String> = prompt
            .map(|source| format!("{} ({} tokens)", source.source, source.tokens))
            .collect();
        rows.extend((!prompt.is_empty()).then(|| ("prompt", prompt.join(", "))));
        rows.push(("agentd", self.hello.daemon.clone()));
        let client = |client: &ClientView| match client.pid {
            Some(pid) => format!("{} ({}, pid {pid})", client.name, client.kind),
            None => format!("{} ({})", client.name, client.kind),
        };
        rows.extend(state.clients.iter().map(|attached| ("attached", client(attached))));
        let line = |(name, value): (&str, String)| {
            Line::from(vec![
                Span::styled(format!("  {name:<10} "), paint::dim()),
                Span::raw(display(&value, Form::Inline).into_owned()),
            ])
        };
        let lines: Vec<Line<'static>> = rows.into_iter().map(line).collect();
        let lines = lines
            .iter()
            .flat_map(|line| wrap(line, self.width, VALUE_COLUMN))
            .collect();
        self.say(lines);
    }

    pub(super) fn ps(&mut self) {
        let state = &self.session.state;
        let mut lines = Vec::new();
        if let Some(turn) = &state.turn {
            lines.push(Line::from(format!(
                "  {}  {}, step {}",
                display(turn.id.as_str(), Form::Inline),
                state.phase.as_str(),
                turn.step
            )));
        }
        for job in &state.jobs {
            let since = wording::span(self.wall.ms_since(job.started_at));
            lines.push(Line::from(format!(
                "  {}  {}  ({since})",
                display(job.job.as_str(), Form::Inline),
                display(&job.command, Form::Inline)
            )));
        }
        if lines.is_empty() {
            return self.note("nothing runs");
        }
        if !state.jobs.is_empty() {
            lines.push(paint::line(
                "/interrupt JOB ends what runs in the background",
                paint::dim(),
            ));
        }
        self.say(lines);
    }

    pub(super) fn todo(&mut self) {
        let lines = wording::todo_lines(&self.session.state.todo);
        if lines.is_empty() {
            return self.note("the model has no list of what it means to do");
        }
        self.say(lines.into_iter().map(|line| Line::from(format!("  {line}"))).collect());
    }
}
