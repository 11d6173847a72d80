//! The two lines that say what is going on: the spinner while a turn runs, and the status below the input.

use crate::app::App;
use crate::paint;
use crate::session::Now;
use crate::wrap::{clip, widths};
use protocol::display::{Form, display};
use protocol::frame::{CallState, OpenType, Phase, SandboxView};
use protocol::{short, wording};
use ratatui::text::{Line, Span};
use std::time::Duration;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Columns from which on the status line has room for sentences.
const WIDE: u16 = 100;

/// Time a frame of the spinner is shown.
pub(crate) const FRAME: Duration = Duration::from_millis(250);

/// What the turn does and for how long; `None` while none runs.
pub(super) fn spinner_line(app: &App, now: Now) -> Option<Line<'static>> {
    let turn = app.session.state.turn.as_ref()?;
    let passed = now.clock.saturating_duration_since(turn.since);
    let step = if turn.step > 1 {
        format!(" · step {}", turn.step)
    } else {
        String::new()
    };
    let words = format!(" {} · {}{step}", doing(app, now), elapsed(passed));
    let frame = passed.as_millis() / FRAME.as_millis();
    let frame = FRAMES
        .get(usize::try_from(frame % FRAMES.len() as u128).unwrap_or(0))
        .copied()
        .unwrap_or_default();
    let frame = if app.session.state.phase == Phase::Parked || app.questions() > 0 {
        "?"
    } else {
        frame
    };
    Some(Line::from(vec![
        Span::styled(frame, paint::attention()),
        Span::styled(words, paint::dim()),
    ]))
}

fn doing(app: &App, now: Now) -> String {
    let state = &app.session.state;
    let running = || state.calls.iter().filter(|call| call.view.state == CallState::Running);
    match state.phase {
        Phase::Stopping => "stopping".to_owned(),
        Phase::Parked => "left open when agentd stopped: /continue, or send something".to_owned(),
        _ if running().count() == 0 && app.questions() > 0 => "waits for your answer".to_owned(),
        _ if running().count() > 0 => {
            let tools = running().map(|call| display(&call.view.tool, Form::Inline).into_owned());
            format!("running {}", tools.collect::<Vec<_>>().join(", "))
        }
        Phase::Acting => "working".to_owned(),
        Phase::Calling | Phase::Idle => {
            if let Some(retry) = state.turn.as_ref().and_then(|turn| turn.retry_at) {
                return format!(
                    "trying again in {}",
                    elapsed(retry.saturating_duration_since(now.clock))
                );
            }
            match app.session.open.iter().next_back().map(|open| open.open_type) {
                None => "waiting for the model".to_owned(),
                Some(OpenType::Reasoning | OpenType::Opaque) => "thinking".to_owned(),
                Some(OpenType::Call) => "preparing a call".to_owned(),
                Some(OpenType::Text | OpenType::Refusal) => "writing".to_owned(),
            }
        }
    }
}

/// Model, mode, tokens, clients, session; and behind it what may be typed, where there is room.
pub(super) fn status_line(app: &App, columns: u16, now: Now) -> Line<'static> {
    if let Some(hint) = &app.hint {
        return paint::line(format!("  {hint}"), paint::attention());
    }
    if let Some(reason) = &app.lost {
        let reason = display(reason.lines().next().unwrap_or_default(), Form::Inline).into_owned();
        return paint::line(
            format!("  {reason}; trying to connect again, Ctrl-D leaves"),
            paint::attention(),
        );
    }
    let state = &app.session.state;
    let (mode, until) = app.mode(now.wall);
    let mut parts = vec![app.model(), wording::mode_left(mode, until, now.wall)];
    let warning = state.sandbox.as_ref().and_then(|view| sandbox_warning(view, columns));
    let tokens = state.usage.input + state.usage.output;
    if tokens > 0 {
        parts.push(format!("{} tokens", count(tokens)));
    }
    parts.extend(state.cost.map(|cost| format!("${cost:.2}")));
    if state.clients.len() > 1 {
        parts.push(format!("{} clients", state.clients.len()));
    }
    let name = state.name.as_deref().unwrap_or_else(|| short(state.session.as_str()));
    parts.push(display(name, Form::Inline).into_owned());
    let mut line = paint::line(format!("  {}", parts.join(" · ")), paint::dim());
    if let Some(warning) = warning {
        // Before all else: in a narrow terminal the end is not seen.
        line.spans
            .insert(0, Span::styled(format!("  {warning}"), paint::attention()));
    }
    let hint = hint(app);
    let used: usize = widths(&line).iter().sum();
    let needed: usize = widths(&Line::from(hint)).iter().sum();
    let room = usize::from(columns).saturating_sub(used + needed);
    if room > 2 {
        line.push_span(Span::styled(format!("{}{hint}", " ".repeat(room - 1)), paint::dim()));
    }
    clip(&line, columns)
}

/// What a person has to know of the sandbox at all times; nothing where it is whole.
fn sandbox_warning(view: &SandboxView, columns: u16) -> Option<&'static str> {
    match (view.mode.as_str(), view.reduced) {
        ("off", _) if columns >= WIDE => Some("no sandbox: commands can approve themselves"),
        ("off", _) => Some("no sandbox"),
        (_, true) => Some("sandbox reduced"),
        _ => None,
    }
}

fn hint(app: &App) -> &'static str {
    match (app.session.state.is_busy(), app.draft.is_empty()) {
        (true, true) => "Ctrl-C interrupts",
        (true, false) => "Enter steers · Tab queues",
        (false, true) => "/help",
        (false, false) => "Enter sends",
    }
}

/// A time as people read it.
pub(super) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A count of tokens as people read it.
#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn count(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{:.1}k", tokens as f64 / 1000.0),
        _ => format!("{:.1}M", tokens as f64 / 1_000_000.0),
    }
}
