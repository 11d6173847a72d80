//! What people read when they are asked, in one place, so that every client asks in the same words: the lines of an approval,
//! its keys, how it was settled, how a turn ended. Every line has been through [`display`].

mod local;

pub use local::{local_decision, local_server_lines};

use crate::display::{Form, display};
use crate::event::{Action, Choice, Resolution, TodoItem, TodoState, ToolOutcome, TurnOutcome};
use crate::frame::{ApprovalView, SandboxView};
use crate::ids::short;
use crate::settings::{By, Mode};
use crate::time::Time;

/// A command or diff longer than this many lines is headed by its size, so that nobody takes its beginning for the whole.
const LINES_WITHOUT_SIZE: usize = 5;
/// The same for its characters.
const CHARACTERS_WITHOUT_SIZE: usize = 400;
/// Characters of a session's name before a question, so that the question is seen too.
const SESSION_CHARACTERS: usize = 40;

/// The whole question, a line each without line ends, lines as long as they are: who asks, the complete command or diff, the
/// commands found in it, where it runs, why it is asked, what an answer for the session would allow. Nothing is cut.
#[must_use]
pub fn approval_lines(view: &ApprovalView) -> Vec<String> {
    let mut lines = vec![headline(view)];
    let action = &view.action;
    if let Some(command) = &action.command {
        lines.extend(block(command, "  "));
        if action.parts.len() > 1 {
            lines.push(format!("runs: {}", joined(&action.parts)));
        }
    }
    if let Some(path) = action.path.as_ref().filter(|_| action.command.is_none()) {
        lines.push(format!("file: {}", inline(path)));
    }
    if let Some(diff) = &action.diff {
        lines.extend(block(diff, "  "));
    }
    if let Some(url) = &action.url {
        lines.extend(block(url, "  "));
    }
    if let Some(host) = &action.host {
        lines.push(format!("host: {}", inline(host)));
    }
    if action.command.is_some() {
        let session = action.path.as_deref().unwrap_or(&view.cwd);
        lines.push(format!("in: {}", inline(action.cwd.as_deref().unwrap_or(session))));
        lines.extend(time_line(action));
    }
    if !view.reason.is_empty() {
        lines.push(format!("why: {}", inline(&view.reason)));
    }
    if let Some(rule) = session_rule(view) {
        lines.push(format!("s allows for this session: {}", inline(rule)));
    }
    if let Some(rule) = always_rule(view) {
        lines.push(format!("a writes this rule of yours: {}", inline(rule)));
    }
    if let Some(why) = view.no_rule.as_ref().filter(|_| session_rule(view).is_none()) {
        lines.push(format!("no rule is offered: {}", inline(why)));
    }
    lines
}

/// The question in one line without its end, as long as it is: the tool with what it wants, for a command also where.
#[must_use]
pub fn approval_line(view: &ApprovalView) -> String {
    let Some(tool) = &view.tool else {
        return format!("may the turn go on? {}", inline(&view.reason));
    };
    let action = &view.action;
    let named = action.command.as_ref().or(action.path.as_ref());
    let Some(named) = named.or(action.url.as_ref()).or(action.host.as_ref()) else {
        return format!("{} wants to run", inline(tool));
    };
    let directory = action.cwd.as_ref().filter(|_| action.command.is_some());
    let directory = directory
        .map(|cwd| format!(" (in {})", inline(cwd)))
        .unwrap_or_default();
    format!("{}: {}{directory}", inline(tool), inline(named.trim_end()))
}

/// What calls a person to a question who may look elsewhere: whose it is, and the question in one line.
#[must_use]
pub fn approval_call(view: &ApprovalView) -> String {
    let session = view
        .session_name
        .as_deref()
        .unwrap_or_else(|| short(view.session.as_str()));
    let session: String = inline(session).chars().take(SESSION_CHARACTERS).collect();
    format!("{session}: {}", approval_line(view))
}

/// Whether the client that asks lets the call be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    Offered,
    Elsewhere,
}

/// The answers there are, as keys.
#[must_use]
pub fn key_line(view: &ApprovalView, editing: Editing) -> String {
    let once = if view.call.is_some() { "y once" } else { "y go on" };
    let session = if session_rule(view).is_some() {
        " · s session"
    } else {
        ""
    };
    let always = if always_rule(view).is_some() {
        " · a always"
    } else {
        ""
    };
    let feedback = if view.call.is_some() {
        " · t tell it what to do"
    } else {
        ""
    };
    let edit = if editing == Editing::Offered && view.call.is_some() {
        " · e edit"
    } else {
        ""
    };
    format!("{once}{session}{always} · n no{feedback}{edit}")
}

/// The rule that `s` makes, if `s` may be answered.
#[must_use]
pub fn session_rule(view: &ApprovalView) -> Option<&str> {
    view.rule.as_deref().filter(|_| view.choices.contains(&Choice::Session))
}

/// The rule that `a` writes, if `a` may be answered.
#[must_use]
pub fn always_rule(view: &ApprovalView) -> Option<&str> {
    view.always
        .as_deref()
        .filter(|_| view.choices.contains(&Choice::Always))
}

/// A text of agentd's own as lines: the first as it is, the others indented, so that none passes for a message of its own.
#[must_use]
pub fn told(text: &str) -> String {
    let text = display(text, Form::Block);
    text.trim_end().replace('\n', "\n  ")
}

/// How an approval was settled and by whom, such as `allowed once by agentctl (cli, pid 7)`.
#[must_use]
pub fn resolution_line(decision: Resolution, by: &By, feedback: Option<&str>) -> String {
    let what = match decision {
        Resolution::Once => "allowed once",
        Resolution::Session => "allowed for this session",
        Resolution::Always => "allowed from now on",
        Resolution::Edited => "changed and asked anew",
        Resolution::Deny => "denied",
        Resolution::Cancelled => "no longer asked",
        Resolution::Expired => "denied, because nobody could answer,",
    };
    let feedback = feedback.map(|text| format!(": {}", inline(text))).unwrap_or_default();
    format!("{what} by {}{feedback}", inline(&by.to_string()))
}

/// How a turn ended, in words.
#[must_use]
pub fn turn_outcome(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Completed => "completed",
        TurnOutcome::Failed => "failed",
        TurnOutcome::Interrupted => "interrupted",
        TurnOutcome::TimedOut => "timed out",
        TurnOutcome::Unanswered => "ended because nobody could answer an approval",
    }
}

/// How a call ended, in words.
#[must_use]
pub fn tool_outcome(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Ok => "ok",
        ToolOutcome::Error => "error",
        ToolOutcome::Denied => "denied",
        ToolOutcome::NotRun => "not run",
        ToolOutcome::TimedOut => "timed out",
        ToolOutcome::Stopped => "stopped",
        ToolOutcome::Lost => "lost: agentd died while it ran; whether it took effect is unknown",
        ToolOutcome::Abandoned => "abandoned: it did not end although it was killed",
    }
}

/// The mode's name, as it is typed.
#[must_use]
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "ask",
        Mode::Edits => "edits",
        Mode::All => "all",
        Mode::None => "none",
    }
}

/// The mode in force, and how long it still is.
#[must_use]
pub fn mode_left(mode: Mode, until: Option<Time>, now: Time) -> String {
    match until.map(|until| until.ms_since(now)) {
        None => self::mode(mode).to_owned(),
        Some(left) => format!("{} for {}", self::mode(mode), span(left)),
    }
}

/// The mode in force, and when it ends by the clock on the wall.
#[must_use]
pub fn mode_until(mode: Mode, until: Option<Time>, now: Time) -> String {
    match until {
        None => self::mode(mode).to_owned(),
        Some(at) => format!(
            "{} until {} ({})",
            self::mode(mode),
            at.clock(now),
            span(at.ms_since(now))
        ),
    }
}

/// A time span in its two largest units.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms.saturating_add(500) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if (seconds / 60).is_multiple_of(60) => format!("{} h", seconds / 3600),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// What the model means to do, a line each; readable without colour.
#[must_use]
pub fn todo_lines(items: &[TodoItem]) -> Vec<String> {
    let mark = |state: TodoState| match state {
        TodoState::Pending => "[ ]",
        TodoState::InProgress => "[>]",
        TodoState::Done => "[x]",
    };
    items
        .iter()
        .map(|item| format!("{} {}", mark(item.state), inline(&item.text)))
        .collect()
}

/// What commands run in, in a few words; what a person has to know of it first.
#[must_use]
pub fn sandbox(view: &SandboxView) -> String {
    if view.mode == "off" {
        return "off: commands can approve themselves".to_owned();
    }
    let network = if view.network { "" } else { ", no network" };
    let reduced = if view.reduced { ", reduced" } else { "" };
    format!("{}{network}{reduced}", inline(&view.mode))
}

fn headline(view: &ApprovalView) -> String {
    let Some(tool) = &view.tool else {
        return "May the turn go on?".to_owned();
    };
    let action = &view.action;
    let size = action
        .command
        .as_ref()
        .or(action.diff.as_ref())
        .map(|text| size(text))
        .unwrap_or_default();
    match (&action.command, &action.diff, &action.path, &action.host) {
        (Some(_), ..) => format!("{} wants to run{size}:", inline(tool)),
        (_, Some(_), ..) => format!("{} wants to change a file{size}:", inline(tool)),
        (.., Some(_), _) => format!("{} wants to use a file:", inline(tool)),
        (.., Some(_)) => format!("{} wants to reach a host:", inline(tool)),
        _ => format!("{} wants to run.", inline(tool)),
    }
}

fn size(text: &str) -> String {
    let lines = text.lines().count();
    let characters = text.chars().count();
    if lines > LINES_WITHOUT_SIZE || characters > CHARACTERS_WITHOUT_SIZE {
        format!(
            " ({lines} {}, {characters} characters)",
            if lines == 1 { "line" } else { "lines" }
        )
    } else {
        String::new()
    }
}

/// How long a command is waited for and how long it may run, where the model chose either.
fn time_line(action: &Action) -> Option<String> {
    let left = action.background_after_ms.map(|ms| match ms {
        0 => "runs in the background".to_owned(),
        ms => format!("goes on in the background after {}", exact_span(ms)),
    });
    let ended = match (action.timeout_ms, action.background_after_ms) {
        (Some(ms), _) => Some(format!("ended after {}", exact_span(ms))),
        (None, Some(_)) => Some("without a limit".to_owned()),
        (None, None) => None,
    };
    let told: Vec<String> = left.into_iter().chain(ended).collect();
    (!told.is_empty()).then(|| format!("time: {}", told.join(", ")))
}

/// A time span, below a second in milliseconds.
fn exact_span(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { span(ms) }
}

fn inline(text: &str) -> String {
    display(text, Form::Inline).into_owned()
}

/// The end of the last line is no line of its own.
fn block(text: &str, indent: &str) -> Vec<String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let shown = display(text, Form::Block);
    shown.split('\n').map(|line| format!("{indent}{line}")).collect()
}

fn joined(parts: &[String]) -> String {
    parts.iter().map(|part| inline(part)).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Action;

    fn asked(action: Action) -> ApprovalView {
        ApprovalView {
            id: "0192f0c1-0000-7000-8000-000000000001".into(),
            session: "0192f0c1-0000-7000-8000-000000000002".into(),
            session_name: None,
            turn: "t2".into(),
            call: Some("c5".into()),
            tool: Some("bash".to_owned()),
            digest: "d".to_owned(),
            action,
            reason: "no rule allows it".to_owned(),
            choices: vec![Choice::Once, Choice::Session, Choice::Deny],
            rule: Some("bash: cargo test".to_owned()),
            always: None,
            no_rule: None,
            requested_at: Time(0),
            cwd: "/home/ada/project".to_owned(),
        }
    }

    fn command(text: &str, parts: &[&str]) -> Action {
        Action {
            command: Some(text.to_owned()),
            parts: parts.iter().map(|&part| part.to_owned()).collect(),
            ..Action::default()
        }
    }

    #[test]
    fn a_command_is_shown_with_its_parts_place_reason_and_rule() {
        let lines = approval_lines(&asked(command("cargo test && ls", &["cargo test", "ls"])));
        assert_eq!(
            lines,
            [
                "bash wants to run:",
                "  cargo test && ls",
                "runs: cargo test · ls",
                "in: /home/ada/project",
                "why: no rule allows it",
                "s allows for this session: bash: cargo test",
            ]
        );
    }

    #[test]
    fn a_command_names_the_directory_it_runs_in_and_a_file_tool_its_file() {
        let mut view = asked(command("ls", &[]));
        view.action.path = Some("/elsewhere".to_owned());
        assert_eq!(approval_lines(&view).get(2).map(String::as_str), Some("in: /elsewhere"));
        view.action.command = None;
        view.tool = Some("read".to_owned());
        let lines = approval_lines(&view);
        assert_eq!(
            lines.get(..2),
            Some(&["read wants to use a file:".to_owned(), "file: /elsewhere".to_owned()][..])
        );
    }

    #[test]
    fn a_command_says_where_it_runs_and_how_long_if_the_model_chose() {
        let mut view = asked(command("make", &[]));
        view.action.cwd = Some("/elsewhere\u{1b}".to_owned());
        let time = |view: &ApprovalView| {
            let lines = approval_lines(view);
            assert_eq!(lines.get(2).map(String::as_str), Some("in: /elsewhere␛"));
            lines.get(3).cloned().filter(|line| line.starts_with("time: "))
        };
        assert_eq!(time(&view), None);
        for (background, timeout, line) in [
            (Some(0), None, "time: runs in the background, without a limit"),
            (
                Some(600_000),
                Some(500),
                "time: goes on in the background after 10 min, ended after 500 ms",
            ),
            (None, Some(90_000), "time: ended after 1 min 30 s"),
        ] {
            (view.action.background_after_ms, view.action.timeout_ms) = (background, timeout);
            assert_eq!(time(&view).as_deref(), Some(line));
        }
    }

    #[test]
    fn a_question_in_one_line_says_what_is_wanted_and_whose_it_is() {
        let mut view = asked(command("touch a\n\u{1b}[2J", &[]));
        view.action.cwd = Some("/p".to_owned());
        assert_eq!(approval_line(&view), "bash: touch a␊␛[2J (in /p)");
        assert_eq!(approval_call(&view), "000002: bash: touch a␊␛[2J (in /p)");
        view.session_name = Some("tidy\nup".to_owned());
        assert!(approval_call(&view).starts_with("tidy␊up: bash"));
        (view.tool, view.call, view.action) = (None, None, Action::default());
        view.reason = "the turn has taken 50 steps; go on?".to_owned();
        assert_eq!(
            approval_line(&view),
            "may the turn go on? the turn has taken 50 steps; go on?"
        );
    }

    #[test]
    fn a_question_without_a_rule_says_why() {
        let mut view = asked(command("a && b", &["a", "b"]));
        view.no_rule = Some("several commands".to_owned());
        let told = |view: &ApprovalView| approval_lines(view).pop();
        assert_ne!(told(&view).as_deref(), Some("no rule is offered: several commands"));
        (view.rule, view.choices) = (None, vec![Choice::Once, Choice::Deny]);
        assert_eq!(told(&view).as_deref(), Some("no rule is offered: several commands"));
    }

    #[test]
    fn a_long_command_is_shown_whole_and_headed_by_its_size() {
        let text: String = (0..10_000).map(|line| format!("echo {line}\n")).collect();
        let lines = approval_lines(&asked(command(&text, &[])));
        assert_eq!(
            lines.first().map(String::as_str),
            Some("bash wants to run (10000 lines, 98890 characters):")
        );
        for line in 0..10_000 {
            assert_eq!(lines.get(line + 1), Some(&format!("  echo {line}")));
        }
    }

    #[test]
    fn hidden_and_control_characters_are_visible_in_every_line() {
        let mut view = asked(command("ls \u{202e}fr-\u{1b}[2K\rx", &["a\u{202e}", "b"]));
        view.reason = "\u{1b}]0;x\u{7}\nsecond".to_owned();
        view.rule = Some("a\nb".to_owned());
        let text = approval_lines(&view).join("\n");
        assert!(text.contains("  ls <U+202E>fr-␛[2K␍x"), "{text}");
        assert!(text.contains("why: ␛]0;x␇␊second"), "{text}");
        assert!(text.contains("session: a␊b"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    }

    #[test]
    fn the_session_answer_is_offered_only_when_it_may_be_given() {
        let mut view = asked(command("ls", &[]));
        assert_eq!(
            key_line(&view, Editing::Elsewhere),
            "y once · s session · n no · t tell it what to do"
        );
        view.choices.push(Choice::Always);
        assert_eq!(
            key_line(&view, Editing::Elsewhere),
            "y once · s session · n no · t tell it what to do",
            "no rule, no key"
        );
        view.always = Some("allow bash: cargo test … for /p".to_owned());
        assert_eq!(
            key_line(&view, Editing::Elsewhere),
            "y once · s session · a always · n no · t tell it what to do"
        );
        let lines = approval_lines(&view);
        assert!(
            lines.contains(&"a writes this rule of yours: allow bash: cargo test … for /p".to_owned()),
            "{lines:?}"
        );
        view.choices = vec![Choice::Once, Choice::Deny];
        assert_eq!(
            key_line(&view, Editing::Elsewhere),
            "y once · n no · t tell it what to do"
        );
        assert!(!approval_lines(&view).iter().any(|line| line.starts_with("s allows")));
    }

    #[test]
    fn the_question_to_go_on_names_no_tool() {
        let mut view = asked(Action::default());
        view.tool = None;
        view.call = None;
        view.rule = None;
        view.reason = "50 steps".to_owned();
        assert_eq!(approval_lines(&view), ["May the turn go on?", "why: 50 steps"]);
        assert_eq!(key_line(&view, Editing::Elsewhere), "y go on · n no");
    }

    #[test]
    fn what_agentd_tells_keeps_its_lines_and_hides_nothing() {
        assert_eq!(told("one\ntwo \u{1b}[2J\n"), "one\n  two ␛[2J");
    }

    #[test]
    fn a_mode_for_a_time_says_how_long_it_still_is() {
        assert_eq!(mode_left(Mode::Ask, None, Time(0)), "ask");
        assert_eq!(
            mode_left(Mode::All, Some(Time(600_000)), Time(30_500)),
            "all for 9 min 30 s"
        );
        assert!(mode_until(Mode::All, Some(Time(7_200_000)), Time(0)).ends_with("(2 h)"));
        assert_eq!([span(0), span(600), span(3_660_000)], ["0 s", "1 s", "1 h 1 min"]);
    }

    #[test]
    fn a_list_is_read_without_colour_and_hides_nothing() {
        let item = |text: &str, state| TodoItem {
            text: text.to_owned(),
            state,
        };
        let items = [
            item("a\u{1b}[2J", TodoState::Done),
            item("b", TodoState::InProgress),
            item("c", TodoState::Pending),
        ];
        assert_eq!(todo_lines(&items), ["[x] a␛[2J", "[>] b", "[ ] c"]);
    }

    #[test]
    fn a_call_can_be_changed_where_the_client_offers_it() {
        let mut view = asked(command("ls", &[]));
        assert!(key_line(&view, Editing::Offered).ends_with("· t tell it what to do · e edit"));
        view.call = None;
        assert!(!key_line(&view, Editing::Offered).contains("edit"));
    }

    #[test]
    fn a_settled_approval_says_who_answered_what() {
        let by = By::Client {
            client: "agentctl".to_owned(),
            kind: "cli".to_owned(),
            pid: Some(7),
        };
        assert_eq!(
            resolution_line(Resolution::Once, &by, None),
            "allowed once by agentctl (cli, pid 7)"
        );
        assert_eq!(
            resolution_line(Resolution::Deny, &by, Some("use\nmake")),
            "denied by agentctl (cli, pid 7): use␊make"
        );
    }
}
