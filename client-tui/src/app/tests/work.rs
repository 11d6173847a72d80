//! What a session means to do and what runs beside its turn, in the live area and the status line; and when the person is called.

use super::rig::{Rig, calls};
use crate::request::{Effect, Request};
use crossterm::event::KeyCode;
use serde_json::json;

fn list(done: usize, all: usize) -> serde_json::Value {
    let state = |n: usize| match n.cmp(&done) {
        std::cmp::Ordering::Less => "done",
        std::cmp::Ordering::Equal => "in_progress",
        std::cmp::Ordering::Greater => "pending",
    };
    (0..all)
        .map(|n| json!({"text": format!("thing {n}"), "state": state(n)}))
        .collect()
}

#[test]
fn the_list_of_plans_stands_above_the_spinner_until_all_is_done() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go")?;
    rig.event("todo.changed", json!({"items": list(1, 3)}))?;
    let shown = rig.shown()?;
    assert!(shown.contains("[x] thing 0\n[>] thing 1\n[ ] thing 2\n"), "{shown}");
    rig.event("todo.changed", json!({"items": list(6, 20)}))?;
    let shown = rig.shown()?;
    assert!(
        shown.contains("[x] thing 5\n[>] thing 6\n") && !shown.contains("thing 4"),
        "{shown}"
    );
    assert!(shown.contains("and 15 more: /todo"), "{shown}");
    rig.turn_ends()?;
    assert!(!rig.shown()?.contains("thing 6"), "what is left open is not in the way");
    rig.event("todo.changed", json!({"items": list(3, 3)}))?;
    rig.types("/todo");
    rig.key(KeyCode::Enter);
    assert!(rig.shown()?.contains("  [x] thing 2"));
    Ok(())
}

#[test]
fn a_command_in_the_background_is_shown_until_it_ends_and_can_be_ended() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    let job =
        json!({"job": "j8", "call": "c8", "command": "npm run dev\u{1b}[2J", "started_at": "2026-01-01T00:00:00Z"});
    rig.snapshot(json!({"jobs": [job]}))?;
    rig.wait(61_000);
    assert!(
        rig.shown()?.contains("& j8 (1 min 1 s): npm run dev␛[2J"),
        "{}",
        rig.shown()?
    );
    rig.types("/ps");
    rig.key(KeyCode::Enter);
    assert!(rig.shown()?.contains("/interrupt JOB"));
    rig.types("/kill j8");
    let sent = calls(rig.key(KeyCode::Enter));
    assert!(
        matches!(sent.as_slice(), [Request::KillJob { job, .. }] if job.as_str() == "j8"),
        "{sent:?}"
    );
    rig.event(
        "job.ended",
        json!({"job": "j8", "call": "c8", "outcome": "stopped", "output": "", "duration_ms": 1}),
    )?;
    rig.draw()?;
    assert_eq!(rig.count("& j8"), 0);
    Ok(())
}

#[test]
fn a_mode_for_a_time_says_how_long_it_still_is_and_is_set_by_a_time() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({"settings": {"model": "fast", "mode": "all", "mode_until": "2026-01-01T00:10:00Z"}}))?;
    assert!(rig.shown()?.contains("fast · all for 10 min"), "{}", rig.shown()?);
    rig.wait(61_000);
    assert!(rig.shown()?.contains("all for 8 min 59 s"));
    rig.event(
        "session.changed",
        json!({"mode": "ask", "by": {"daemon": "the time of the mode is over"}}),
    )?;
    assert!(rig.shown()?.contains("fast · ask"));
    rig.types("/mode 5m");
    let sent = calls(rig.key(KeyCode::Enter));
    let [Request::Update(update)] = sent.as_slice() else {
        anyhow::bail!("{sent:?}")
    };
    assert_eq!(
        (update.mode, update.mode_for_ms),
        (Some(protocol::Mode::All), Some(300_000))
    );
    Ok(())
}

#[test]
fn a_turn_of_another_mode_shows_its_own() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    let turn = json!({"turn": "t2", "step": 1, "attempt": 1, "started_at": "2026-01-01T00:00:00Z", "mode": "all",
        "by": {"daemon": "x"}});
    rig.snapshot(json!({"phase": "calling", "turn": turn}))?;
    assert!(rig.shown()?.contains("fast · all"), "{}", rig.shown()?);
    rig.turn_ends()?;
    assert!(rig.shown()?.contains("fast · ask"));
    Ok(())
}

#[test]
fn a_sandbox_that_is_not_whole_is_said_at_all_times() -> anyhow::Result<()> {
    let off = json!({"sandbox": {"mode": "off", "network": true, "reduced": false}});
    for (columns, words) in [(120, "no sandbox: commands can approve themselves"), (40, "no sandbox")] {
        let mut rig = Rig::new(columns)?;
        rig.snapshot(off.clone())?;
        assert!(rig.shown()?.contains(words), "{}", rig.shown()?);
    }
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({"sandbox": {"mode": "workspace-write", "network": true, "reduced": true}}))?;
    assert!(rig.shown()?.contains("sandbox reduced"));
    rig.types("/status");
    rig.key(KeyCode::Enter);
    assert!(rig.shown()?.contains("workspace-write, reduced"));
    Ok(())
}

/// Whether the terminal was rung.
fn rings(effects: &[Effect]) -> bool {
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::Ring(bytes) if bytes.contains('\u{7}')))
}

#[test]
fn who_looks_elsewhere_is_called_to_a_question_and_to_the_end_of_a_long_turn() -> anyhow::Result<()> {
    let asked = |rig: &mut Rig| -> anyhow::Result<Vec<Effect>> {
        let at = "2026-01-01T00:00:00Z";
        rig.frame(json!({"seq": 100, "pos": 100, "at": at, "kind": "approval.requested", "data": {
            "approval": "a", "turn": "t2", "digest": "d", "tool": "bash", "action": {}, "reason": "", "choices": ["once"],
        }}))
    };
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go")?;
    rig.app.focus(true, rig.now);
    assert!(!rings(&asked(&mut rig)?), "who looks needs no bell");
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go")?;
    rig.app.focus(true, rig.now);
    rig.wait(61_000);
    assert!(
        rings(&asked(&mut rig)?),
        "who has given no sign for a minute may have left"
    );
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go")?;
    rig.app.focus(false, rig.now);
    assert!(rings(&asked(&mut rig)?));
    for (took, called) in [(1_000, false), (31_000, true)] {
        let mut rig = Rig::new(80)?;
        rig.snapshot(json!({}))?;
        rig.turn("go")?;
        rig.wait(took);
        let ends = json!({"seq": 100, "pos": 100, "at": "2026-01-01T00:01:00Z", "kind": "turn.completed",
            "data": {"turn": "t2", "outcome": "completed", "usage": {}, "steps": 1}});
        assert_eq!(rings(&rig.frame(ends)?), called, "{took} ms");
    }
    Ok(())
}

#[test]
fn history_that_is_read_again_calls_nobody() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.turn("go")?;
    let sent = rig.frame(
        json!({"seq": 100, "pos": 100, "at": "2026-01-01T00:00:00Z", "kind": "approval.requested",
        "data": {"approval": "a", "turn": "t2", "digest": "d", "action": {}, "reason": "", "choices": ["once"]}}),
    )?;
    assert!(!rings(&sent));
    Ok(())
}
