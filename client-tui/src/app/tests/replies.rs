//! What is on the screen and in the scrollback while replies and tools come.

use super::rig::{Rig, other, own};
use serde_json::json;

/// Two hundred lines, longer than forty columns, with an empty line here and there.
fn long_reply() -> String {
    let line = |n: usize| {
        format!(
            "line {n:03} of a reply that goes on for quite a while\n{}",
            if n.is_multiple_of(20) { "\n" } else { "" }
        )
    };
    (0..200).map(line).collect()
}

fn each_line_once(rig: &mut Rig) {
    for n in 0..200 {
        let line = format!("line {n:03} ");
        assert_eq!(rig.count(&line), 1, "{line}");
    }
}

/// Streams `text` from `from` on in pieces of uneven size, drawing now and then.
fn stream(rig: &mut Rig, item: &str, text: &str, from: usize) -> anyhow::Result<()> {
    let (mut at, mut size) = (from, 1);
    while at < text.len() {
        let end = (at + size).min(text.len());
        rig.delta(item, "text", at, text.get(at..end).unwrap_or_default())?;
        (at, size) = (end, size * 7 % 61 + 1);
        if at % 3 == 0 {
            rig.draw()?;
        }
    }
    Ok(())
}

#[test]
fn the_first_screen_says_what_this_is() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    insta::assert_snapshot!("first_screen", rig.shown()?);
    Ok(())
}

#[test]
fn a_turn_with_a_call_reads_from_top_to_bottom() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("fix the tests")?;
    rig.delta("i4.0", "reasoning", 0, "They want the tests fixed.")?;
    rig.delta("i4.1", "text", 0, "I look at **them** first.\n\nThe")?;
    rig.wait(12_000);
    insta::assert_snapshot!("streaming", rig.shown()?);
    rig.item("i4.0", "reasoning", "They want the tests fixed.")?;
    rig.item("i4.1", "text", "I look at **them** first.\n\nThen I fix `them`.")?;
    rig.event(
        "tool.requested",
        json!({
            "call": "c9", "turn": "t2", "step": 1, "index": 0, "item": "i4.2", "tool": "bash", "provider_call_id": "p",
            "arguments": {}, "writes": true, "verdict": {"decision": "allow", "reason": ""},
            "action": {"command": "cargo test"}, "digest": "d",
        }),
    )?;
    rig.event("tool.started", json!({"call": "c9"}))?;
    rig.delta("c9", "call", 0, "Compiling\nrunning 3 tests\n")?;
    insta::assert_snapshot!("running", rig.shown()?);
    rig.event(
        "tool.completed",
        json!({
            "call": "c9", "outcome": "error", "output": "test a ... FAILED", "exit_code": 101, "duration_ms": 1300,
        }),
    )?;
    rig.turn_ends()?;
    insta::assert_snapshot!("done", rig.shown()?);
    Ok(())
}

#[test]
fn every_line_of_a_long_reply_is_shown_once() -> anyhow::Result<()> {
    for columns in [80, 40] {
        let mut rig = Rig::new(columns)?;
        rig.snapshot(json!({}))?;
        rig.turn("go on")?;
        let text = long_reply();
        stream(&mut rig, "i4.0", &text, 0)?;
        rig.item("i4.0", "text", &text)?;
        rig.turn_ends()?;
        rig.draw()?;
        each_line_once(&mut rig);
        assert_eq!(rig.count("❯"), 1);
    }
    Ok(())
}

#[test]
fn a_change_of_size_in_a_reply_leaves_no_stale_row() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go on")?;
    let text = long_reply();
    let middle = text.len() / 2;
    stream(&mut rig, "i4.0", text.get(..middle).unwrap_or_default(), 0)?;
    rig.resize(40);
    stream(&mut rig, "i4.0", &text, middle)?;
    rig.resize(100);
    rig.item("i4.0", "text", &text)?;
    rig.draw()?;
    each_line_once(&mut rig);
    assert_eq!(rig.count("❯"), 1);
    assert_eq!(rig.count("Ctrl-C interrupts"), 1);
    Ok(())
}

#[test]
fn a_lost_connection_in_a_reply_loses_nothing_and_repeats_nothing() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go on")?;
    let text = long_reply();
    let (third, half) = (text.len() / 3, text.len() / 2);
    stream(&mut rig, "i4.0", text.get(..third).unwrap_or_default(), 0)?;
    rig.lost();
    assert!(rig.shown()?.contains("trying to connect again"));
    let open = json!({"item": "i4.0", "type": "text", "stream": "text", "offset": 100, "text": text.get(100..half)});
    let turn = json!({"turn": "t2", "step": 1, "attempt": 1, "started_at": "2026-01-01T00:00:00Z", "by": own()});
    rig.snapshot(json!({"open": [open], "phase": "calling", "turn": turn}))?;
    stream(&mut rig, "i4.0", &text, half)?;
    rig.item("i4.0", "text", &text)?;
    rig.turn_ends()?;
    rig.draw()?;
    each_line_once(&mut rig);
    assert_eq!(rig.count("trying to connect again"), 0);
    Ok(())
}

#[test]
fn who_comes_late_to_a_very_long_reply_gets_all_of_it_in_order() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.turn("go on")?;
    let text = long_reply();
    let open = json!({"item": "i4.0", "type": "text", "stream": "text", "offset": 500, "text": text.get(500..2000)});
    rig.snapshot(json!({"open": [open], "phase": "calling"}))?;
    stream(&mut rig, "i4.0", &text, 2000)?;
    rig.item("i4.0", "text", &text)?;
    rig.draw()?;
    each_line_once(&mut rig);
    Ok(())
}

#[test]
fn a_reply_that_is_made_again_says_so_and_is_shown_whole() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("hello")?;
    rig.delta("i4.0", "text", 0, "first line\nsecond li")?;
    rig.event("step.failed", json!({
        "turn": "t2", "step": 1, "attempt": 1, "error": {"kind": "overloaded", "message": "the provider is overloaded"},
        "retry_at": "2026-01-01T00:00:05Z",
    }))?;
    assert!(rig.shown()?.contains("trying again in 5 s"));
    rig.event("step.started", json!({"turn": "t2", "step": 1, "attempt": 2}))?;
    rig.item("i6.0", "text", "first line\nsecond line")?;
    rig.turn_ends()?;
    let shown = rig.shown()?;
    let order = [
        "first line",
        "reply restarted: the provider is overloaded",
        "first line\nsecond line",
    ];
    let mut rest = shown.as_str();
    for text in order {
        let (_, after) = rest.split_once(text).unwrap_or_default();
        assert!(!after.is_empty(), "{text} is missing in {shown}");
        rest = after;
    }
    assert!(!shown.contains("second li\n"));
    Ok(())
}

#[test]
fn what_another_client_sends_carries_its_name() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({"presence": [own(), other()]}))?;
    rig.event(
        "input.accepted",
        json!({
            "input_id": "x", "content": [{"type": "text", "text": "from a script"}], "delivery": "auto",
            "disposition": "started", "by": other(),
        }),
    )?;
    rig.event("input.delivered", json!({"input_id": "x", "turn": "t2", "item": "i3"}))?;
    let shown = rig.shown()?;
    assert!(shown.contains("> from a script   — agentctl (cli)"), "{shown}");
    assert!(shown.contains("2 clients"), "{shown}");
    Ok(())
}

#[test]
fn nothing_that_came_from_outside_reaches_the_terminal_as_a_control_character() -> anyhow::Result<()> {
    let hostile = "a\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}1m\u{202e}b\rc";
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({"name": hostile, "settings": {"model": hostile}}))?;
    rig.turn(hostile)?;
    rig.delta("i4.0", "text", 0, &format!("{hostile}\n```{hostile}\n{hostile}"))?;
    rig.asked(hostile)?;
    rig.app.prepare(rig.terminal_size);
    let live = crate::view::compose(&rig.app, rig.terminal_size, crate::session::Now::read());
    let finished = rig.app.take_finished();
    for line in finished.iter().chain(&live.lines) {
        let text = line.to_string();
        assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
    Ok(())
}

#[test]
fn the_live_area_fits_into_the_smallest_terminals() -> anyhow::Result<()> {
    let mut rig = Rig::new(80)?;
    rig.snapshot(json!({}))?;
    rig.turn("go on")?;
    rig.delta("i4.0", "text", 0, &"word ".repeat(200))?;
    rig.asked("cargo test --workspace 2>&1 | tee log")?;
    rig.paste("one\ntwo\nthree\nfour\nfive\nsix");
    for (columns, rows) in [(80, 24), (40, 10), (20, 5), (10, 3), (1, 1)] {
        let size = crate::screen::Size { columns, rows };
        rig.app.set_width(columns);
        rig.app.prepare(size);
        let live = crate::view::compose(&rig.app, size, crate::session::Now::read());
        assert!(live.lines.len() < usize::from(rows.max(3)), "{size:?}");
        assert!(live.row < live.lines.len(), "{size:?}");
        let widest = live
            .lines
            .iter()
            .map(|line| crate::wrap::widths(line).iter().sum::<usize>())
            .max();
        assert!(widest <= Some(usize::from(columns)), "{size:?}");
    }
    Ok(())
}
