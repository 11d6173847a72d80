//! An event in one line for people: when, its number, its kind, and the few words that matter of its data.

use protocol::display::{Form, display};
use protocol::event::Event;
use protocol::{Envelope, plain_text, wording};

/// Longest free text of a line, in characters.
const TEXT: usize = 100;

/// Time of day, number, kind, words.
pub(crate) fn line(envelope: &Envelope) -> String {
    let at = envelope.at.to_string();
    let words = envelope.event().map(|event| words(&event)).unwrap_or_default();
    let kind = display(&envelope.kind, Form::Inline);
    let line = format!("{at} {:>5} {kind:<22} {words}", envelope.seq.0);
    line.trim_end().to_owned()
}

fn words(event: &Event) -> String {
    match event {
        Event::SessionCreated(data) => {
            let roots = std::iter::once(&data.cwd).chain(&data.added_roots);
            let roots = roots.map(|root| text(root)).collect::<Vec<_>>().join(" and ");
            format!("in {roots} by {}", text(&data.by.to_string()))
        }
        Event::SessionChanged(data) => format!("{} by {}", changes(data), text(&data.by.to_string())),
        Event::InputAccepted(data) => format!(
            "{}: {} by {}",
            name(&data.disposition),
            text(&plain_text(&data.content)),
            text(&data.by.to_string())
        ),
        Event::InputDelivered(data) => format!("to {}", text(data.turn.as_str())),
        Event::InputSettled(data) => name(&data.outcome),
        Event::QueueResumed(data) => format!("by {}", text(&data.by.to_string())),
        Event::TurnStarted(data) => format!("{} by {}", text(data.turn.as_str()), text(&data.by.to_string())),
        Event::TurnInterruptRequested(data) => {
            format!("{} by {}", text(data.turn.as_str()), text(&data.by.to_string()))
        }
        Event::TurnResumed(data) => format!("{} {}", text(data.turn.as_str()), text(&data.reason)),
        Event::TurnCompleted(data) => format!(
            "{} {}{}",
            text(data.turn.as_str()),
            wording::turn_outcome(data.outcome),
            data.reason
                .as_ref()
                .map(|reason| format!(": {}", text(&reason.message)))
                .unwrap_or_default()
        ),
        Event::StepStarted(data) => format!("step {} attempt {}", data.step, data.attempt),
        Event::StepFailed(data) => text(&data.error.message),
        Event::StepCompleted(data) => format!("{} by {}", name(&data.stop), text(&data.model.model)),
        Event::ItemCompleted(data) => format!("{}: {}", name(&data.item_type), text(&data.text)),
        Event::ToolRequested(data) => format!(
            "{} {}: {} ({})",
            text(data.call.as_str()),
            text(&data.tool),
            text(
                data.action
                    .command
                    .as_deref()
                    .or(data.action.path.as_deref())
                    .or(data.action.url.as_deref())
                    .unwrap_or(&data.arguments.to_string())
            ),
            name(&data.verdict.decision)
        ),
        Event::ApprovalRequested(data) => format!("{}: {}", text(data.approval.as_str()), text(&data.reason)),
        Event::ApprovalResolved(data) => text(&wording::resolution_line(
            data.decision,
            &data.by,
            data.feedback.as_deref(),
        )),
        Event::ToolStarted(data) => text(data.call.as_str()),
        Event::ToolCompleted(data) => format!(
            "{} {}: {}",
            text(data.call.as_str()),
            wording::tool_outcome(data.outcome),
            text(&data.output)
        ),
        Event::JobStopRequested(data) => format!("{} by {}", data.job, data.by),
        Event::JobEnded(data) => format!(
            "{} {}: {}",
            text(data.job.as_str()),
            wording::tool_outcome(data.outcome),
            text(&data.output)
        ),
        Event::TodoChanged(data) => {
            let items = data
                .items
                .iter()
                .map(|item| format!("{} ({})", text(&item.text), name(&item.state)));
            items.collect::<Vec<_>>().join(", ")
        }
        Event::NoticeAdded(data) => text(&data.text),
    }
}

fn changes(data: &protocol::event::SessionChanged) -> String {
    let named = [
        ("name", data.name.as_deref().map(text)),
        ("title", data.title.as_deref().map(text)),
        ("model", data.model.as_deref().map(text)),
        ("mode", data.mode.map(|mode| wording::mode(mode).to_owned())),
        ("archived", data.archived.map(|archived| archived.to_string())),
    ];
    let added = data.added_roots.iter().map(|root| ("directory", Some(text(root))));
    let told = named
        .into_iter()
        .chain(added)
        .filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    told.collect::<Vec<_>>().join(", ")
}

/// The beginning of an untrusted text, in one line.
fn text(text: &str) -> String {
    let shown = display(text, Form::Inline);
    match shown.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", shown.get(..end).unwrap_or(&shown)),
        None => shown.into_owned(),
    }
}

/// A value's name on the wire.
fn name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::line;

    #[test]
    fn an_event_is_one_line_that_hides_nothing() {
        let envelope = serde_json::json!({"seq": 3, "pos": 9, "at": "2026-01-02T03:04:05.678Z", "kind": "notice.added",
            "data": {"code": "x", "level": "info", "text": "two\nlines \u{1b}[2J"}});
        let envelope = serde_json::from_value(envelope).unwrap();
        assert_eq!(
            line(&envelope),
            "2026-01-02T03:04:05.678Z     3 notice.added           two␊lines ␛[2J"
        );
    }

    #[test]
    fn an_unknown_kind_is_still_a_line() {
        let envelope =
            serde_json::json!({"seq": 3, "pos": 9, "at": "2026-01-02T03:04:05.678Z", "kind": "a.b", "data": {}});
        let envelope = serde_json::from_value(envelope).unwrap();
        assert_eq!(line(&envelope), "2026-01-02T03:04:05.678Z     3 a.b");
    }
}
