//! What is told: as JSON for the user's program, and in words for the desktop, whose untrusted parts pass `display` and are no markup.

use crate::target::INPUT_LIMIT_BYTES;
use protocol::display::{Form, display};
use protocol::event::{Reason, TurnCompleted, TurnOutcome};
use protocol::frame::{ApprovalView, Snapshot};
use protocol::{SessionId, TurnId, short, wording};
use serde::Serialize;

/// Lines of a question that the desktop shows.
const LINES: usize = 3;

/// Characters of a line that the desktop shows.
const CHARACTERS: usize = 120;

/// Something that a person who does not look should know.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Told {
    Approval(Box<ApprovalView>),
    Turn(Box<Turn>),
}

/// A long turn that has ended.
#[derive(Debug, Serialize)]
pub(super) struct Turn {
    session: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    turn: TurnId,
    outcome: TurnOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    took_ms: u64,
}

impl Told {
    pub(super) fn turn(session: &SessionId, snapshot: Option<&Snapshot>, turn: TurnCompleted, took_ms: u64) -> Self {
        let name = |snapshot: &Snapshot| snapshot.name.clone().or_else(|| snapshot.title.clone());
        Self::Turn(Box::new(Turn {
            session: session.clone(),
            session_name: snapshot.and_then(name),
            cwd: snapshot.map(|snapshot| snapshot.cwd.clone()),
            turn: turn.turn,
            outcome: turn.outcome,
            reason: turn.reason,
            took_ms,
        }))
    }

    /// At most as long as a program may be given; of what is longer the diff goes, then the command.
    pub(super) fn json(&self) -> String {
        let text = |told: &Self| serde_json::to_string(told).unwrap_or_default();
        let whole = text(self);
        let Self::Approval(view) = self else { return whole };
        if whole.len() <= INPUT_LIMIT_BYTES {
            return whole;
        }
        let mut view = view.clone();
        view.action.diff = None;
        let shorter = text(&Self::Approval(view.clone()));
        if shorter.len() <= INPUT_LIMIT_BYTES {
            return shorter;
        }
        view.action = Default::default();
        (view.rule, view.always) = (None, None);
        text(&Self::Approval(view))
    }

    /// A title, and a body in which nothing is markup.
    pub(super) fn text(&self) -> (String, String) {
        match self {
            Self::Approval(view) => {
                let session = session_words(view.session_name.as_deref(), &view.session);
                let lines = wording::approval_lines(view).into_iter().take(LINES);
                let directory = view
                    .action
                    .command
                    .as_ref()
                    .map(|_| format!("in: {}", display(&view.cwd, Form::Inline)));
                let directory = directory.filter(|directory| !lines.clone().any(|line| line == *directory));
                let lines = lines.chain(directory).chain([session]);
                let lines: Vec<String> = lines.map(|line| escaped(&line)).collect();
                ("agentd waits for your answer".to_owned(), lines.join("\n"))
            }
            Self::Turn(turn) => {
                let session = session_words(turn.session_name.as_deref(), &turn.session);
                let reason = turn
                    .reason
                    .as_ref()
                    .map(|reason| display(&reason.message, Form::Inline));
                let lines: Vec<String> = [Some(session), reason.map(Into::into)]
                    .into_iter()
                    .flatten()
                    .map(|line| escaped(&line))
                    .collect();
                let title = format!("agentd: turn {}", wording::turn_outcome(turn.outcome));
                (title, lines.join("\n"))
            }
        }
    }
}

fn session_words(name: Option<&str>, session: &SessionId) -> String {
    let name = name.unwrap_or_else(|| short(session.as_str()));
    format!("session {}", display(name, Form::Inline))
}

/// Cut, and without a character that markup begins with. What is cut here is a hint to look, not what is approved.
fn escaped(line: &str) -> String {
    let mut escaped = String::new();
    for (at, character) in line.chars().enumerate() {
        if at == CHARACTERS {
            escaped.push('…');
            break;
        }
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Time;
    use protocol::event::{Action, Choice};

    fn asked(action: Action) -> Told {
        Told::Approval(Box::new(ApprovalView {
            id: "0192f0c1-0000-7000-8000-000000000001".into(),
            session: "0192f0c1-0000-7000-8000-000000000002".into(),
            session_name: Some("<b>mine</b>\u{1b}[2J".to_owned()),
            turn: "t2".into(),
            call: Some("c5".into()),
            tool: Some("bash".to_owned()),
            digest: "d".to_owned(),
            action,
            reason: "no rule allows it".to_owned(),
            choices: vec![Choice::Once, Choice::Deny],
            rule: None,
            always: None,
            no_rule: None,
            requested_at: Time(0),
            cwd: "/p".to_owned(),
        }))
    }

    #[test]
    fn what_the_desktop_shows_is_no_markup_and_moves_nothing() {
        let command = Some("echo '<img src=x>' && \u{202e}rm".to_owned());
        let (_, body) = asked(Action {
            command,
            ..Action::default()
        })
        .text();
        assert!(
            !body.contains('<') && !body.contains('\u{1b}') && !body.contains('\u{202e}'),
            "{body}"
        );
        assert!(body.contains("&lt;img") && body.contains("&lt;b&gt;mine"), "{body}");
    }

    #[test]
    fn the_desktop_shows_where_a_command_runs() {
        let (_, body) = asked(Action {
            command: Some("a\nb\nc\nd".to_owned()),
            ..Action::default()
        })
        .text();
        assert!(body.lines().any(|line| line == "in: /p"), "{body}");
    }

    #[test]
    fn what_a_program_reads_is_json_within_its_bound() {
        for action in [
            Action::default(),
            Action {
                diff: Some("x".repeat(100_000)),
                ..Action::default()
            },
            Action {
                command: Some("\u{1}".repeat(100_000)),
                ..Action::default()
            },
        ] {
            let text = asked(action).json();
            assert!(text.len() <= INPUT_LIMIT_BYTES, "{}", text.len());
            let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            assert_eq!((&value["kind"], &value["tool"]), (&"approval".into(), &"bash".into()));
        }
    }
}
