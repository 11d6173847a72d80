//! Questions: what is shown of them, which keys answer them and when.

use super::rig::{Rig, calls, other, own};
use crate::request::{Effect, Request};
use crossterm::event::KeyCode;
use protocol::event::Choice;
use serde_json::json;

fn asked(columns: u16, command: &str) -> anyhow::Result<Rig> {
    let mut rig = Rig::new(columns)?;
    rig.snapshot(json!({}))?;
    rig.turn("run the tests")?;
    rig.asked(command)?;
    rig.draw()?;
    Ok(rig)
}

fn answers(effects: Vec<Effect>) -> Vec<(Choice, Option<String>)> {
    let answer = |request| match request {
        Request::Answer { decision, feedback, .. } => Some((decision, feedback)),
        _ => None,
    };
    calls(effects).into_iter().filter_map(answer).collect()
}

#[test]
fn a_question_shows_everything_before_its_keys() -> anyhow::Result<()> {
    let mut rig = asked(80, "cargo test --workspace 2>&1 | tee log")?;
    insta::assert_snapshot!("question_80", rig.shown()?);
    let mut rig = asked(40, "cargo test --workspace 2>&1 | tee log")?;
    insta::assert_snapshot!("question_40", rig.shown()?);
    Ok(())
}

#[test]
fn a_long_command_is_in_the_scrollback_whole_and_once() -> anyhow::Result<()> {
    let command: String = (0..300).map(|n| format!("echo step {n:03}\n")).collect();
    let mut rig = asked(80, &command)?;
    for _ in 0..3 {
        rig.wait(300);
        rig.draw()?;
    }
    for n in 0..300 {
        assert_eq!(rig.count(&format!("echo step {n:03}")), 1, "{n}");
    }
    assert_eq!(rig.count("shown in full above"), 1);
    assert_eq!(rig.count("y once · s session · n no"), 1);
    Ok(())
}

#[test]
fn a_key_answers_only_after_half_a_second_of_quiet() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.types("x");
    rig.key(KeyCode::Backspace);
    rig.wait(499);
    assert!(answers(rig.key(KeyCode::Char('y'))).is_empty());
    assert_eq!(rig.app.draft.text(), "y");
    rig.key(KeyCode::Backspace);
    rig.wait(500);
    assert_eq!(answers(rig.key(KeyCode::Char('y'))), [(Choice::Once, None)]);
    Ok(())
}

#[test]
fn a_key_cannot_answer_what_was_not_on_the_screen_yet() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("run the tests")?;
    rig.draw()?;
    rig.wait(5000);
    rig.asked("ls")?;
    assert!(answers(rig.key(KeyCode::Char('y'))).is_empty());
    assert_eq!(rig.app.draft.text(), "y");
    Ok(())
}

#[test]
fn while_something_is_typed_no_key_answers() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.wait(600);
    rig.types("wh");
    rig.wait(5000);
    assert!(answers(rig.types("y")).is_empty());
    assert_eq!(rig.app.draft.text(), "why");
    assert!(rig.shown()?.contains("Ctrl-Y, then y once"));
    Ok(())
}

#[test]
fn what_is_pasted_never_answers() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.wait(5000);
    rig.paste("y");
    assert_eq!(rig.app.draft.text(), "y");
    assert!(rig.app.ask.is_some());
    Ok(())
}

#[test]
fn control_y_moves_to_the_question_and_escape_back() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.types("draft");
    rig.control('y');
    assert!(rig.types("q").is_empty());
    rig.key(KeyCode::Esc);
    rig.types("q");
    assert_eq!(rig.app.draft.text(), "draftq");
    rig.control('y');
    assert_eq!(answers(rig.key(KeyCode::Char('s'))), [(Choice::Session, None)]);
    Ok(())
}

#[test]
fn n_denies_and_t_denies_with_words() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.wait(600);
    assert_eq!(answers(rig.key(KeyCode::Char('n'))), [(Choice::Deny, None)]);
    let mut rig = asked(80, "ls")?;
    rig.wait(600);
    assert!(answers(rig.key(KeyCode::Char('t'))).is_empty());
    assert!(rig.shown()?.contains("what to do instead"));
    rig.types("use make");
    let told = answers(rig.key(KeyCode::Enter));
    assert_eq!(told, [(Choice::Deny, Some("use make".to_owned()))]);
    assert!(rig.app.draft.is_empty());
    Ok(())
}

#[test]
fn escape_leaves_the_words_of_a_denial_and_the_question_stays() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.wait(600);
    rig.key(KeyCode::Char('t'));
    rig.types("use");
    assert!(rig.key(KeyCode::Esc).is_empty());
    assert!(!rig.app.is_typing());
    assert!(rig.shown()?.contains("bash wants to run"));
    Ok(())
}

#[test]
fn when_another_client_answers_the_question_goes_and_a_line_says_who() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.resolved("once", other())?;
    let shown = rig.shown()?;
    assert!(shown.contains("allowed once by agentctl (cli, pid 1)"), "{shown}");
    assert!(!shown.contains("bash wants to run"), "{shown}");
    Ok(())
}

#[test]
fn the_own_answer_takes_the_question_away_at_once_and_needs_no_line() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.wait(600);
    rig.key(KeyCode::Char('y'));
    assert!(!rig.shown()?.contains("bash wants to run"));
    rig.resolved("once", own())?;
    assert!(!rig.shown()?.contains("allowed once"));
    Ok(())
}

#[test]
fn an_answer_that_did_not_arrive_is_asked_again() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.wait(600);
    let request = calls(rig.key(KeyCode::Char('y'))).pop();
    let Some(request) = request else {
        anyhow::bail!("no call")
    };
    let error = protocol::client::ClientError::Lost;
    rig.reply(crate::request::Reply::Failed { request, error });
    let shown = rig.shown()?;
    assert!(
        shown.contains("bash wants to run") && shown.contains("error: the connection to agentd was lost"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn the_session_key_does_nothing_where_it_is_not_offered() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go on")?;
    rig.event("approval.requested", json!({
        "approval": "a1", "turn": "t2", "digest": "d", "action": {}, "reason": "50 steps", "choices": ["once", "deny"],
    }))?;
    rig.draw()?;
    rig.wait(600);
    assert!(answers(rig.key(KeyCode::Char('s'))).is_empty());
    assert_eq!(rig.app.draft.text(), "s");
    Ok(())
}

#[test]
fn a_question_that_a_long_draft_leaves_no_room_for_is_printed_whole() -> anyhow::Result<()> {
    let mut rig = asked(80, "ls")?;
    rig.paste("one\ntwo\nthree\nfour\nfive");
    let shown = rig.shown()?;
    for part in [
        "bash wants to run:",
        "  ls",
        "why: no rule allows",
        "s allows for this session",
        "shown in full above",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    Ok(())
}

/// A question that may be answered for ever.
fn asked_for_ever() -> anyhow::Result<Rig> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("run the tests")?;
    rig.event(
        "approval.requested",
        json!({
            "approval": "0192f0c1-0000-7000-8000-000000aaaaaa", "call": "c9", "turn": "t2", "digest": "d1",
            "tool": "bash", "action": {"command": "cargo test"}, "reason": "no rule allows this command",
            "choices": ["once", "session", "always", "deny"], "rule": "bash: cargo test",
            "always": "allow bash: cargo test … for /home/ada/project",
        }),
    )?;
    rig.draw()?;
    rig.wait(600);
    Ok(rig)
}

#[test]
fn a_rule_is_written_only_by_enter_while_it_is_shown() -> anyhow::Result<()> {
    let mut rig = asked_for_ever()?;
    assert!(
        answers(rig.key(KeyCode::Char('a'))).is_empty(),
        "one key writes no rule"
    );
    let shown = rig.shown()?;
    assert!(
        shown.contains("allow bash: cargo test … for /home/ada/project"),
        "{shown}"
    );
    assert!(shown.contains("Enter writes that rule"), "{shown}");
    assert!(answers(rig.key(KeyCode::Char('y'))).is_empty(), "another key goes back");
    assert!(rig.shown()?.contains("y once"));
    rig.wait(600);
    rig.key(KeyCode::Char('a'));
    assert_eq!(answers(rig.key(KeyCode::Enter)), [(Choice::Always, None)]);
    Ok(())
}

#[test]
fn e_changes_the_command_and_sends_it_with_the_answer() -> anyhow::Result<()> {
    let mut rig = asked(80, "rm -r target")?;
    rig.wait(600);
    assert!(rig.key(KeyCode::Char('e')).is_empty());
    assert!(rig.shown()?.contains("✎ rm -r target"), "{}", rig.shown()?);
    assert!(
        calls(rig.key(KeyCode::Enter)).is_empty(),
        "an unchanged call is no answer"
    );
    assert!(rig.shown()?.contains("nothing was changed"));
    rig.types("/debug");
    let sent = calls(rig.key(KeyCode::Enter));
    let [
        Request::Answer {
            decision: Choice::Once,
            arguments: Some(arguments),
            ..
        },
    ] = sent.as_slice()
    else {
        anyhow::bail!("{sent:?}");
    };
    assert_eq!(*arguments, json!({"command": "rm -r target/debug"}));
    // What is in the transcript is what ran.
    let call = format!("c{}", 5);
    rig.event(
        "approval.resolved",
        json!({
            "approval": "0192f0c1-0000-7000-8000-000000aaaaaa", "call": call, "decision": "once", "by": own(),
            "arguments": arguments, "digest": "d2", "action": {"command": "rm -r target/debug"},
        }),
    )?;
    rig.event(
        "tool.completed",
        json!({"call": call, "outcome": "ok", "output": "", "duration_ms": 1}),
    )?;
    assert!(rig.shown()?.contains("● bash rm -r target/debug"), "{}", rig.shown()?);
    Ok(())
}

#[test]
fn what_is_no_json_stays_in_the_editor_and_escape_leaves_it() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({"calls": [{
        "call": "c9", "tool": "fetch_url", "state": "asked", "action": {}, "arguments": {"url": "https://a.example/"},
    }], "approvals": [{
        "id": "0192f0c1-0000-7000-8000-000000aaaaaa", "session": super::rig::SESSION, "turn": "t2", "call": "c9",
        "tool": "fetch_url", "digest": "d", "action": {}, "reason": "", "choices": ["once", "deny"],
        "requested_at": "2026-01-01T00:00:00Z", "cwd": "/p",
    }], "phase": "acting"}))?;
    rig.draw()?;
    rig.wait(600);
    rig.key(KeyCode::Char('e'));
    rig.types("x");
    assert!(calls(rig.key(KeyCode::Enter)).is_empty());
    assert!(rig.shown()?.contains("that is no JSON"));
    rig.key(KeyCode::Esc);
    assert!(rig.app.draft.is_empty() && rig.app.ask.is_some());
    Ok(())
}

#[test]
fn an_edit_that_is_refused_stays_in_the_editor_with_the_reason() -> anyhow::Result<()> {
    let mut rig = asked(80, "rm -r target")?;
    rig.wait(600);
    rig.key(KeyCode::Char('e'));
    rig.types("/..");
    let Some(request) = calls(rig.key(KeyCode::Enter)).pop() else {
        anyhow::bail!("no call")
    };
    let error = protocol::RpcError::new(
        protocol::ErrorKind::EditRefused,
        "the changed call may not run: it is blocked",
    );
    let error = protocol::client::ClientError::Rpc(error);
    rig.reply(crate::request::Reply::Failed { request, error });
    let shown = rig.shown()?;
    assert!(
        shown.contains("✎ rm -r target/..") && shown.contains("it is blocked"),
        "{shown}"
    );
    assert!(calls(rig.types("x")).is_empty() && rig.app.draft.is_empty());
    let sent = calls(rig.key(KeyCode::Enter));
    assert!(
        matches!(sent.as_slice(), [Request::Answer { arguments: Some(arguments), .. }] if *arguments == json!({"command": "rm -r target/..x"})),
        "what is typed next is no input: {sent:?}"
    );
    Ok(())
}

#[test]
fn of_several_open_calls_an_answer_names_its_own_and_an_edit_says_what_it_was() -> anyhow::Result<()> {
    let mut rig = asked(80, "touch a")?;
    rig.event(
        "tool.requested",
        json!({
            "call": "c9", "turn": "t2", "step": 1, "index": 1, "item": "i2.1", "tool": "bash",
            "provider_call_id": "p", "arguments": {"command": "touch b"}, "writes": true,
            "verdict": {"decision": "ask", "reason": ""}, "action": {"command": "touch b"}, "digest": "d",
        }),
    )?;
    rig.event(
        "approval.resolved",
        json!({
            "approval": "0192f0c1-0000-7000-8000-000000bbbbbb", "call": "c9", "decision": "once", "by": own(),
            "arguments": {"command": "touch c"}, "digest": "d2", "action": {"command": "touch c"},
        }),
    )?;
    rig.event(
        "approval.resolved",
        json!({
            "approval": "0192f0c1-0000-7000-8000-000000aaaaaa", "call": "c5", "decision": "once", "by": other(),
        }),
    )?;
    let shown = rig.shown()?;
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("bash touch a: allowed once by agentctl (cli, pid 1)"),
        "{shown}"
    );
    assert!(
        flat.contains("bash touch b: allowed once by") && flat.contains("; it was: bash touch b"),
        "{shown}"
    );
    Ok(())
}
