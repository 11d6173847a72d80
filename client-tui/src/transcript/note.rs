//! What is said in one line: who settled an approval, what changed, how a turn ended, notices.

use crate::paint;
use protocol::display::{Form, display};
use protocol::event::{
    ApprovalResolved, InputOutcome, InputSettled, NoticeAdded, NoticeLevel, Resolution, SessionChanged, SessionCreated,
    StepFailed, TurnCompleted, TurnOutcome,
};
use protocol::wording;
use protocol::{By, Time};
use ratatui::text::Line;

/// An answer that a person should know of: every no, everything that lasts, and what somebody else said.
pub(crate) fn resolved(done: &ApprovalResolved, own: bool) -> Option<Line<'static>> {
    let own_once = own && matches!(done.decision, Resolution::Once | Resolution::Deny);
    if own_once || done.decision == Resolution::Cancelled {
        return None;
    }
    let words = wording::resolution_line(done.decision, &done.by, done.feedback.as_deref());
    Some(paint::line(format!("  {words}"), paint::dim()))
}

/// What of the session's settings changed.
pub(crate) fn changed(change: &SessionChanged, at: Time) -> Option<Line<'static>> {
    let mut parts = Vec::new();
    parts.extend(change.name.as_ref().map(|name| format!("name: {}", inline(name))));
    parts.extend(change.model.as_ref().map(|model| format!("model: {}", inline(model))));
    let mode = |mode| wording::mode_until(mode, change.mode_until, at);
    parts.extend(change.mode.map(|changed| format!("mode: {}", mode(changed))));
    parts.extend(added(&change.added_roots));
    (!parts.is_empty()).then(|| paint::line(parts.join(" · "), paint::dim()))
}

/// The directories a session was made to work in beside its project.
pub(crate) fn created(created: &SessionCreated) -> Option<Line<'static>> {
    added(&created.added_roots).map(|words| paint::line(words, paint::dim()))
}

fn added(roots: &[String]) -> Option<String> {
    let roots: Vec<String> = roots.iter().map(|root| inline(root)).collect();
    (!roots.is_empty()).then(|| format!("works in {}, too", roots.join(", ")))
}

/// A model call that is tried again.
pub(crate) fn failed(step: &StepFailed) -> Option<Line<'static>> {
    step.retry_at?;
    Some(paint::line(
        format!("reply restarted: {}", inline(&step.error.message)),
        paint::dim(),
    ))
}

/// The end of a turn that did not simply complete.
pub(crate) fn ended(turn: &TurnCompleted) -> Vec<Line<'static>> {
    let style = match turn.outcome {
        TurnOutcome::Completed => return Vec::new(),
        TurnOutcome::Interrupted => paint::dim(),
        TurnOutcome::Failed | TurnOutcome::TimedOut | TurnOutcome::Unanswered => paint::error(),
    };
    let mut words = format!("turn {}", wording::turn_outcome(turn.outcome));
    if let Some(reason) = &turn.reason {
        words = format!("{words}: {}", inline(&reason.message));
    }
    let hint = turn.reason.as_ref().and_then(|reason| reason.hint.as_ref());
    let hint = hint.map(|hint| paint::line(format!("hint: {}", inline(hint)), paint::dim()));
    std::iter::once(paint::line(words, style)).chain(hint).collect()
}

/// An input that will never be delivered.
pub(crate) fn settled(input: &InputSettled) -> Option<Line<'static>> {
    let by = input.by.as_ref().map(By::to_string).unwrap_or_default();
    (input.outcome == InputOutcome::Cancelled && !by.is_empty())
        .then(|| paint::line(format!("input cancelled by {}", inline(&by)), paint::dim()))
}

/// Something a person should know.
pub(crate) fn notice(notice: &NoticeAdded) -> Line<'static> {
    let text = inline(&notice.text);
    match notice.level {
        NoticeLevel::Info => paint::line(text, paint::dim()),
        NoticeLevel::Warning => paint::line(format!("! {text}"), paint::attention()),
    }
}

fn inline(text: &str) -> String {
    display(text, Form::Inline).into_owned()
}
