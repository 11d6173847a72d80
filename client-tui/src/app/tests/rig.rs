//! A client without a daemon: frames and keys in, rows of an emulated terminal and effects out, on a clock that tests move.

use crate::app::{App, Start};
use crate::emulator::Terminal;
use crate::paint::Look;
use crate::request::{Effect, News, Reply, Request, Which};
use crate::screen::{Narrowing, Screen, Size};
use crate::session::Now;
use crate::view;
use anyhow::Context;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use protocol::{Frame, Time};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(super) const SESSION: &str = "0192f0c1-1111-7000-8000-0000003f9a2c";

pub(super) struct Rig {
    pub(super) app: App,
    pub(super) screen: Screen<Terminal>,
    pub(super) terminal_size: Size,
    pub(super) now: Now,
    seq: u64,
}

impl Rig {
    /// A client that just opened a session of `columns` by 24.
    pub(super) fn new(columns: u16) -> anyhow::Result<Self> {
        Self::opened(columns, Which::Named("last".to_owned()))
    }

    pub(super) fn opened(columns: u16, which: Which) -> anyhow::Result<Self> {
        let size = Size { columns, rows: 24 };
        let info = json!({
            "id": SESSION, "cwd": "/home/ada/project", "root": "/home/ada/project", "phase": "idle", "head": 1,
            "model": "fast", "mode": "ask", "approvals": 0,
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        });
        let hello = json!({
            "version": "1.0", "daemon": "0.1.0", "role": "controller", "capabilities": [], "lacks": [],
            "limits": {"message_bytes": 1, "batch": 1, "calls_in_flight": 1, "subscriptions": 1, "queued_inputs": 1},
        });
        let start = Start {
            hello: serde_json::from_value(hello)?,
            info: serde_json::from_value(info)?,
            which,
            look: Look::Colour,
            width: columns,
        };
        Ok(Self {
            app: App::new(start),
            screen: Screen::new(Terminal::new(columns, size.rows), Look::Colour, Narrowing::Cuts),
            terminal_size: size,
            now: Now {
                wall: Time(1_767_225_600_000),
                clock: Instant::now(),
            },
            seq: 0,
        })
    }

    /// Time passes.
    pub(super) fn wait(&mut self, ms: u64) {
        self.now.clock += Duration::from_millis(ms);
        self.now.wall = self.now.wall.plus_ms(ms);
    }

    pub(super) fn frame(&mut self, frame: Value) -> anyhow::Result<Vec<Effect>> {
        let frame: Frame = serde_json::from_value(frame).context("a frame of a test")?;
        Ok(self.app.news(News::Frame(frame), self.now))
    }

    /// The next event of the log.
    pub(super) fn event(&mut self, kind: &str, data: Value) -> anyhow::Result<()> {
        self.seq += 1;
        let event =
            json!({"seq": self.seq, "pos": self.seq, "at": self.now.wall.to_string(), "kind": kind, "data": data});
        self.frame(event)?;
        anyhow::ensure!(
            protocol::Event::parse(kind, &data.to_string())?.is_some(),
            "unknown kind {kind}"
        );
        Ok(())
    }

    /// The mark "caught up", with `changes` to an idle session.
    pub(super) fn snapshot(&mut self, changes: Value) -> anyhow::Result<()> {
        let mut snapshot = json!({
            "kind": "snapshot", "session": SESSION, "head": self.seq, "cwd": "/home/ada/project",
            "root": "/home/ada/project", "settings": {"model": "fast"}, "phase": "idle", "open": [], "calls": [],
            "approvals": [], "queue": [], "held": false, "usage": {}, "presence": [own()],
        });
        for (name, value) in changes.as_object().into_iter().flatten() {
            snapshot[name] = value.clone();
        }
        self.frame(snapshot)?;
        Ok(())
    }

    /// A turn that a person's text starts, up to its first model call.
    pub(super) fn turn(&mut self, text: &str) -> anyhow::Result<()> {
        let by = own();
        let input = format!("in-{}", self.seq);
        let content = json!([{"type": "text", "text": text}]);
        self.event(
            "input.accepted",
            json!({
                "input_id": input, "content": content, "delivery": "auto", "disposition": "started", "by": by,
            }),
        )?;
        let turn = format!("t{}", self.seq + 1);
        let unattended = json!({"policy": "wait"});
        self.event(
            "turn.started",
            json!({"turn": turn, "unattended": unattended, "by": by}),
        )?;
        self.event(
            "input.delivered",
            json!({"input_id": input, "turn": turn, "item": "i3"}),
        )?;
        self.event("step.started", json!({"turn": turn, "step": 1, "attempt": 1}))
    }

    pub(super) fn delta(&mut self, item: &str, item_type: &str, offset: usize, text: &str) -> anyhow::Result<()> {
        let stream = if item_type == "call" { "output" } else { "text" };
        self.frame(json!({
            "kind": "delta", "item": item, "type": item_type, "stream": stream, "offset": offset, "text": text,
        }))?;
        Ok(())
    }

    pub(super) fn item(&mut self, item: &str, item_type: &str, text: &str) -> anyhow::Result<()> {
        self.event(
            "item.completed",
            json!({
                "item": item, "turn": "t2", "step": 1, "type": item_type, "text": text, "status": "whole",
            }),
        )
    }

    pub(super) fn turn_ends(&mut self) -> anyhow::Result<()> {
        self.event(
            "turn.completed",
            json!({"turn": "t2", "outcome": "completed", "usage": {}, "steps": 1}),
        )
    }

    /// A call of `bash` that waits for an answer.
    pub(super) fn asked(&mut self, command: &str) -> anyhow::Result<()> {
        let action = json!({"command": command, "parts": ["cargo test", "tee log"]});
        let call = format!("c{}", self.seq + 1);
        self.event("tool.requested", json!({
            "call": call, "turn": "t2", "step": 1, "index": 0, "item": "i4.0", "tool": "bash", "provider_call_id": "p",
            "arguments": {"command": command}, "writes": true, "verdict": {"decision": "ask", "reason": ""},
            "action": action, "digest": "d1",
        }))?;
        self.event(
            "approval.requested",
            json!({
                "approval": "0192f0c1-0000-7000-8000-000000aaaaaa", "call": call, "turn": "t2", "digest": "d1",
                "tool": "bash", "action": action, "reason": "no rule allows this command",
                "choices": ["once", "session", "deny"], "rule": "bash: cargo test",
            }),
        )
    }

    pub(super) fn resolved(&mut self, decision: &str, by: Value) -> anyhow::Result<()> {
        self.event(
            "approval.resolved",
            json!({
                "approval": "0192f0c1-0000-7000-8000-000000aaaaaa", "call": format!("c{}", self.seq - 1),
                "decision": decision, "by": by,
            }),
        )
    }

    pub(super) fn key(&mut self, code: KeyCode) -> Vec<Effect> {
        self.chord(code, KeyModifiers::NONE)
    }

    pub(super) fn control(&mut self, letter: char) -> Vec<Effect> {
        self.chord(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn chord(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Effect> {
        self.app.key(KeyEvent::new(code, modifiers), self.now)
    }

    /// Types without waiting between the keys.
    pub(super) fn types(&mut self, text: &str) -> Vec<Effect> {
        text.chars()
            .flat_map(|letter| self.key(KeyCode::Char(letter)))
            .collect()
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.app.paste(text, self.now);
    }

    pub(super) fn reply(&mut self, reply: Reply) -> Vec<Effect> {
        self.app.reply(reply)
    }

    pub(super) fn lost(&mut self) {
        self.app.news(News::Lost("gone".to_owned()), self.now);
    }

    pub(super) fn resize(&mut self, columns: u16) {
        self.terminal_size.columns = columns;
        self.screen.terminal().resize(columns, self.terminal_size.rows);
        self.app.set_width(columns);
    }

    pub(super) fn draw(&mut self) -> anyhow::Result<()> {
        self.app.prepare(self.terminal_size);
        let finished = self.app.take_finished();
        let live = view::compose(&self.app, self.terminal_size, self.now);
        anyhow::ensure!(
            live.lines.len() <= usize::from(view::LIVE_ROWS),
            "the live area is too high"
        );
        self.screen.draw(&finished, &live, self.terminal_size)?;
        Ok(())
    }

    /// Everything that is and was on the screen, drawn anew, without the empty rows at the end.
    pub(super) fn shown(&mut self) -> anyhow::Result<String> {
        self.draw()?;
        Ok(self.screen.terminal().rows().join("\n").trim_end().to_owned())
    }

    pub(super) fn count(&mut self, text: &str) -> usize {
        self.screen.terminal().count(text)
    }
}

/// This client.
pub(super) fn own() -> Value {
    json!({"name": "agent-tui", "client": "agent-tui", "kind": "tui", "pid": std::process::id(), "role": "controller"})
}

/// Another client.
pub(super) fn other() -> Value {
    json!({"name": "agentctl", "client": "agentctl", "kind": "cli", "pid": 1, "role": "controller"})
}

/// The calls among effects.
pub(super) fn calls(effects: Vec<Effect>) -> Vec<Request> {
    let call = |effect| match effect {
        Effect::Call(request) => Some(request),
        _ => None,
    };
    effects.into_iter().filter_map(call).collect()
}
