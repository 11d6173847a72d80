//! Keys that send, interrupt, leave and complete.

use super::rig::{Rig, calls, other, own};
use crate::request::{Effect, Reply, Request, Which};
use crossterm::event::KeyCode;
use protocol::client::ClientError;
use protocol::event::Delivery;
use serde_json::json;

fn idle() -> anyhow::Result<Rig> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    Ok(rig)
}

fn busy() -> anyhow::Result<Rig> {
    let mut rig = idle()?;
    rig.turn("work")?;
    Ok(rig)
}

fn sent(effects: Vec<Effect>) -> Vec<(String, Delivery)> {
    let send = |request| match request {
        Request::Send { text, delivery, .. } => Some((text, delivery)),
        _ => None,
    };
    calls(effects).into_iter().filter_map(send).collect()
}

fn interrupts(effects: Vec<Effect>) -> usize {
    calls(effects)
        .iter()
        .filter(|request| matches!(request, Request::Interrupt { .. }))
        .count()
}

fn leaves(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Leave))
}

#[test]
fn enter_sends_or_steers_tab_queues_and_control_x_enter_interrupts() -> anyhow::Result<()> {
    for rig in [idle(), busy()] {
        let mut rig = rig?;
        rig.types("one");
        assert_eq!(sent(rig.key(KeyCode::Enter)), [("one".to_owned(), Delivery::Auto)]);
        rig.types("two");
        assert_eq!(sent(rig.key(KeyCode::Tab)), [("two".to_owned(), Delivery::Queue)]);
        rig.types("three");
        rig.control('x');
        assert_eq!(
            sent(rig.key(KeyCode::Enter)),
            [("three".to_owned(), Delivery::Interrupt)]
        );
        assert!(sent(rig.key(KeyCode::Enter)).is_empty());
    }
    Ok(())
}

#[test]
fn an_input_that_waits_is_shown_until_it_is_delivered() -> anyhow::Result<()> {
    let mut rig = busy()?;
    rig.event(
        "input.accepted",
        json!({
            "input_id": "q", "content": [{"type": "text", "text": "afterwards"}], "delivery": "queue",
            "disposition": "queued", "by": other(),
        }),
    )?;
    let shown = rig.shown()?;
    assert!(shown.contains("… queued: afterwards   — agentctl (cli)"), "{shown}");
    rig.event("input.delivered", json!({"input_id": "q", "turn": "t9", "item": "i9"}))?;
    assert!(!rig.shown()?.contains("queued: afterwards"));
    Ok(())
}

#[test]
fn control_c_interrupts_then_clears_then_asks_then_leaves() -> anyhow::Result<()> {
    let mut rig = busy()?;
    rig.types("draft");
    assert_eq!(interrupts(rig.control('c')), 1);
    assert_eq!(rig.app.draft.text(), "draft");
    rig.turn_ends()?;
    assert!(rig.control('c').is_empty());
    assert!(rig.app.draft.is_empty());
    assert!(!leaves(&rig.control('c')));
    assert!(rig.shown()?.contains("Ctrl-C again to leave"));
    assert!(leaves(&rig.control('c')));
    Ok(())
}

#[test]
fn any_key_between_takes_the_wish_to_leave_back() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.control('c');
    rig.types("a");
    rig.key(KeyCode::Backspace);
    assert!(!leaves(&rig.control('c')));
    Ok(())
}

#[test]
fn control_d_leaves_only_when_nothing_is_typed() -> anyhow::Result<()> {
    let mut rig = busy()?;
    rig.types("a");
    assert!(!leaves(&rig.control('d')));
    rig.key(KeyCode::Backspace);
    assert!(leaves(&rig.control('d')));
    Ok(())
}

#[test]
fn escape_clears_what_is_typed_and_never_interrupts() -> anyhow::Result<()> {
    let mut rig = busy()?;
    rig.types("draft");
    assert!(rig.key(KeyCode::Esc).is_empty());
    assert!(rig.app.draft.is_empty());
    assert!(rig.key(KeyCode::Esc).is_empty());
    Ok(())
}

#[test]
fn leaving_a_new_session_that_was_never_used_deletes_it() -> anyhow::Result<()> {
    let mut rig = Rig::opened(80, Which::New)?;
    rig.snapshot(json!({}))?;
    assert!(matches!(
        rig.app.leave_session(),
        Some(Effect::Call(Request::Delete(_)))
    ));
    rig.frame(json!({"kind": "presence", "clients": [own(), other()]}))?;
    assert!(rig.app.leave_session().is_none());
    rig.frame(json!({"kind": "presence", "clients": [own()]}))?;
    rig.turn("used")?;
    rig.turn_ends()?;
    assert!(rig.app.leave_session().is_none());
    assert!(idle()?.app.leave_session().is_none());
    Ok(())
}

#[test]
fn a_text_that_could_not_be_sent_comes_back() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.types("precious");
    let Some(request) = calls(rig.key(KeyCode::Enter)).pop() else {
        anyhow::bail!("no call")
    };
    rig.reply(Reply::Failed {
        request,
        error: ClientError::Lost,
    });
    assert_eq!(rig.app.draft.text(), "precious");
    Ok(())
}

#[test]
fn a_slash_shows_the_commands_and_tab_takes_one() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.types("/mo");
    insta::assert_snapshot!("completions", rig.shown()?);
    rig.key(KeyCode::Down);
    rig.key(KeyCode::Tab);
    assert_eq!(rig.app.draft.text(), "/mode ");
    rig.types("edits");
    let call = calls(rig.key(KeyCode::Enter)).pop();
    assert!(matches!(call, Some(Request::Update(update)) if update.mode == Some(protocol::Mode::Edits)));
    Ok(())
}

#[test]
fn an_unknown_command_says_so_and_stays_and_a_path_is_sent() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.types("/nope");
    assert!(rig.key(KeyCode::Enter).is_empty());
    assert_eq!(rig.app.draft.text(), "/nope");
    assert!(rig.shown()?.contains("there is no /nope"));
    rig.app.draft.clear();
    rig.types("/etc/hosts is odd");
    assert_eq!(sent(rig.key(KeyCode::Enter)).len(), 1);
    Ok(())
}

#[test]
fn quitting_has_many_names() -> anyhow::Result<()> {
    for word in ["/quit", "/exit", "/q", "/detach"] {
        let mut rig = idle()?;
        rig.types(word);
        assert!(leaves(&rig.key(KeyCode::Enter)), "{word}");
    }
    Ok(())
}

#[test]
fn help_and_status_answer_in_the_scrollback() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.types("/help");
    rig.key(KeyCode::Enter);
    rig.types("/status");
    rig.key(KeyCode::Enter);
    insta::assert_snapshot!(
        "help_and_status",
        rig.shown()?.replace(&std::process::id().to_string(), "PID")
    );
    Ok(())
}

#[test]
fn a_directory_is_added_from_where_one_stands_and_shown_from_then_on() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.types("/add-dir");
    assert!(rig.key(KeyCode::Enter).is_empty());
    assert!(rig.shown()?.contains("name a directory: /add-dir DIR"));
    rig.types("/add-dir ../my lib");
    let effects = rig.key(KeyCode::Enter);
    let [Effect::Call(Request::AddRoot { dir, known: 0, .. })] = effects.as_slice() else {
        anyhow::bail!("{effects:?}");
    };
    assert_eq!(dir, "../my lib");
    let by = json!({"client": "agent-tui", "kind": "tui", "pid": 1});
    rig.event(
        "session.changed",
        json!({"added_roots": ["/home/ada/my lib"], "by": by}),
    )?;
    rig.types("/status");
    rig.key(KeyCode::Enter);
    let shown = rig.shown()?;
    assert!(shown.contains("works in /home/ada/my lib, too"), "{shown}");
    assert!(shown.contains("  and        /home/ada/my lib\n"), "{shown}");
    rig.app.reply(Reply::Within("/home/ada/my lib/x".to_owned()));
    let shown = rig.shown()?;
    assert!(
        shown.contains("/home/ada/my lib/x lies in a directory the session works in already"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn a_long_draft_is_shown_where_the_cursor_is() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.paste(&(0..30).map(|n| format!("row {n}")).collect::<Vec<_>>().join("\n"));
    let shown = rig.shown()?;
    assert!(
        shown.contains("row 29") && !shown.contains("row 24") && shown.contains("row 25"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn a_steer_that_came_too_late_waits_as_the_next_turn() -> anyhow::Result<()> {
    let mut rig = busy()?;
    for (id, disposition) in [("q", "queued"), ("s", "steered")] {
        rig.event(
            "input.accepted",
            json!({
                "input_id": id, "content": [{"type": "text", "text": id}], "delivery": "auto",
                "disposition": disposition, "by": own(),
            }),
        )?;
    }
    assert!(rig.shown()?.contains("… queued: q\n… steers: s\n"));
    rig.event(
        "turn.completed",
        json!({"turn": "t2", "outcome": "interrupted", "usage": {}, "steps": 1}),
    )?;
    let shown = rig.shown()?;
    assert!(shown.contains("… queued: s\n… queued: q\nthe queue is held"), "{shown}");
    Ok(())
}

#[test]
fn models_are_listed_with_numbers_and_chosen_by_them() -> anyhow::Result<()> {
    let mut rig = idle()?;
    rig.types("/model");
    assert!(matches!(calls(rig.key(KeyCode::Enter)).as_slice(), [Request::Models]));
    let model = |name: &str, default: bool| {
        json!({
            "name": name, "wire": "openai-chat", "model": format!("{name}-1"), "address": "local", "default": default,
            "configured": true, "context_tokens": 1, "context_known": true, "context_budget_tokens": 1,
            "max_output_tokens": 1,
        })
    };
    rig.reply(Reply::Models(serde_json::from_value(json!([
        model("fast", false),
        model("deep", true)
    ]))?));
    let shown = rig.shown()?;
    assert!(
        shown.contains("› 1. fast fast-1 · local\n  2. deep deep-1 · local"),
        "{shown}"
    );
    rig.types("/model 2");
    let call = calls(rig.key(KeyCode::Enter)).pop();
    assert!(matches!(call, Some(Request::Update(update)) if update.model.as_deref() == Some("deep")));
    Ok(())
}
