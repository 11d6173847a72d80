//! Lines of the client's own for the scrollback: the first line of a session, the list of sessions, waiting inputs in words.

use crate::paint;
use crate::session::State;
use protocol::display::{Form, display};
use protocol::frame::{Phase, QueuedInput};
use protocol::method::{Hello, ModelInfo, SessionInfo};
use protocol::{By, SessionId, short, wording};
use ratatui::text::{Line, Span};

/// The first lines of a session: version, model, session, directory, mode, and what answers if the session names no model.
pub(crate) fn header(info: &SessionInfo, hello: &Hello) -> Vec<Line<'static>> {
    let model = info.model.as_deref().unwrap_or("default model");
    let name = info.name.as_deref().unwrap_or_else(|| short(info.id.as_str()));
    let parts = [model, name, &at_home(&info.cwd)].map(inline).join(" · ");
    let mode = info.mode;
    let mut lines = vec![Line::from(vec![
        Span::styled(concat!("agentd ", env!("CARGO_PKG_VERSION")), paint::bold()),
        Span::styled(format!(" · {parts} · mode {mode} · /help"), paint::dim()),
    ])];
    let notice = hello.model_notice.as_deref().filter(|_| info.model.is_none());
    lines.extend(notice.map(|text| paint::line(inline(text), paint::dim())));
    let fault = hello.config_fault.as_deref().map(wording::told);
    let fault = fault.iter().flat_map(|text| text.split('\n'));
    lines.extend(fault.map(|text| paint::line(text, paint::attention())));
    if let Some(server) = hello.local_server.as_ref().filter(|_| info.model.is_none()) {
        let told = wording::local_server_lines(server);
        lines.extend(told.into_iter().map(|text| paint::line(text, paint::dim())));
        let how = format!("/model {} lets it answer", inline(&server.name));
        lines.push(paint::line(how, paint::bold()));
    }
    lines
}

/// Sessions, a line each, the one that is shown marked.
pub(crate) fn session_list(sessions: &[SessionInfo], shown: &SessionId) -> Vec<Line<'static>> {
    let line = |info: &SessionInfo| {
        let mark = if info.id == *shown { "› " } else { "  " };
        let name = info.name.as_deref().unwrap_or_default();
        let title = info.title.as_deref().unwrap_or("(no input yet)");
        let phase = match (info.approvals, info.phase) {
            (0, Phase::Idle) => String::new(),
            (0, phase) => phase.as_str().to_owned(),
            (count, _) => format!("{count} waiting"),
        };
        let words = [name, title, &phase]
            .into_iter()
            .filter(|word| !word.is_empty())
            .map(inline);
        Line::from(vec![
            Span::styled(format!("{mark}{} ", short(info.id.as_str())), paint::bold()),
            Span::raw(words.collect::<Vec<_>>().join(" · ")),
        ])
    };
    let mut lines: Vec<Line<'static>> = sessions.iter().map(line).collect();
    lines.push(paint::line("/resume ID goes to one", paint::dim()));
    lines
}

/// Models, numbered, the session's marked.
pub(crate) fn model_list(models: &[ModelInfo], state: &State) -> Vec<Line<'static>> {
    let line = |(number, model): (usize, &ModelInfo)| {
        let chosen = state
            .settings
            .model
            .as_ref()
            .map_or(model.default, |name| *name == model.name);
        let mark = if chosen { "› " } else { "  " };
        let lacks = model.lacks.as_ref().map(|name| format!("needs {name}"));
        let words = [Some(model.model.clone()), Some(model.address.clone()), lacks];
        let words = words.into_iter().flatten().filter(|word| !word.is_empty());
        let words = words.map(|word| inline(&word)).collect::<Vec<_>>().join(" · ");
        Line::from(vec![
            Span::styled(format!("{mark}{number}. {} ", inline(&model.name)), paint::bold()),
            Span::styled(words, paint::dim()),
        ])
    };
    (1..).zip(models).map(line).collect()
}

/// A waiting input in one line: what becomes of it, its text, who sent it if that was another client.
pub(crate) fn queued_words(waiting: &QueuedInput) -> String {
    let how = if waiting.steer { "steers" } else { "queued" };
    let own =
        matches!(&waiting.by, By::Client { pid: Some(pid), .. } if i64::from(*pid) == i64::from(std::process::id()));
    let by = match &waiting.by {
        By::Client { client, kind, .. } if !own => format!("   — {client} ({kind})"),
        _ => String::new(),
    };
    inline(&format!("{how}: {}{by}", waiting.text.trim_end()))
}

fn at_home(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path.strip_prefix(&home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

fn inline(text: &str) -> String {
    display(text, Form::Inline).into_owned()
}
