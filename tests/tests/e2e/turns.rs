//! Turns through all wires: text, tools, usage, history, failure and retry.

use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon, profile};
use tests::log::{count, kinds};
use tests::model_server::{End, Gate, ModelServer, Reply, Said, Script, Tokens, Wire};
use tests::socket::is;

const WIRES: [Wire; 3] = [Wire::Messages, Wire::Chat, Wire::Responses];

#[tokio::test]
async fn text_streams_and_usage_is_recorded_on_all_wires() -> anyhow::Result<()> {
    for wire in WIRES {
        let gate = Gate::new();
        let usage = Tokens {
            input: 300,
            output: 20,
            cached: 200,
        };
        let reply = Reply::text("one two three four").deltas(4).usage(usage).gate(&gate);
        let server = ModelServer::start(Script::sequence([reply]))?;
        let daemon = TestDaemon::with_model(&server, wire).await?;
        let session = daemon.session("ask").await?;
        let mut watcher = daemon.observer().await?;
        watcher.attach(&session, Some(0)).await?;
        daemon.send(&session, "count").await?;
        gate.release(1);
        let frames = watcher.until("the first fragment", |frame| is(frame, "delta")).await?;
        assert!(
            !frames.iter().any(|frame| is(frame, "item.completed")),
            "it streams before it is complete"
        );
        gate.open();
        let frames = watcher.until("the end", |frame| is(frame, "turn.completed")).await?;
        let end = tests::socket::last(&frames)?;
        assert_eq!(end["data"]["outcome"], "completed");
        let usage = &end["data"]["usage"];
        assert_eq!(
            (&usage["input"], &usage["output"], &usage["cached"]),
            (&json!(300), &json!(20), &json!(200)),
            "{wire:?}"
        );
        let item = frames.iter().find(|frame| is(frame, "item.completed"));
        assert_eq!(
            item.map(|item| &item["data"]["text"]),
            Some(&json!("one two three four"))
        );
    }
    Ok(())
}

#[tokio::test]
async fn tools_run_and_their_results_reach_the_model_on_all_wires() -> anyhow::Result<()> {
    for wire in WIRES {
        let both = Reply::text("Looking.")
            .call("bash", json!({"command": "echo from-bash"}))
            .call("read_file", json!({"path": "README.md"}));
        let server = ModelServer::start(Script::by_step([both, Reply::text("Three.")]))?;
        let daemon = TestDaemon::with_model(&server, wire).await?;
        let session = daemon.session("all").await?;
        daemon.send(&session, "What does it count to?").await?;
        let end = daemon.turn_end(&session, 1).await?;
        assert_eq!(end["data"]["outcome"], "completed", "{end}");
        let second = server.request(2).await?;
        let outputs = second.outputs();
        assert_eq!(outputs.len(), 2, "{outputs:?}");
        assert!(outputs.iter().any(|output| output.contains("from-bash")), "{outputs:?}");
        assert!(
            outputs.iter().any(|output| output.contains("It counts to three.")),
            "{outputs:?}"
        );
        let log = daemon.log(&session)?;
        assert_eq!(
            (
                count(&log, "tool.requested"),
                count(&log, "tool.started"),
                count(&log, "tool.completed")
            ),
            (2, 2, 2)
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_second_turn_replays_the_first_and_may_use_another_wire() -> anyhow::Result<()> {
    let first = Reply::default()
        .reasoning("Let me see.")
        .then_text("Four.")
        .call("bash", json!({"command": "true"}));
    let script = Script::sequence([
        first,
        Reply::text("It is four."),
        Reply::text("Still four."),
        Reply::text("Yes."),
    ]);
    let server = ModelServer::start(script)?;
    let config = format!(
        "{}[models.other]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"other\"\napi_key = \"k\"\n",
        tests::daemon::profile(&server, Wire::Messages),
        server.base_url(Wire::Chat)
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("all").await?;
    for (turn, text) in [(1, "two and two?"), (2, "sure?")] {
        daemon.send(&session, text).await?;
        daemon.turn_end(&session, turn).await?;
    }
    let change = json!({"session": session, "model": "other"});
    daemon.controller().await?.call("session.update", change).await?;
    daemon.send(&session, "really?").await?;
    daemon.turn_end(&session, 3).await?;
    let last = server.request(4).await?;
    assert_eq!(
        (last.wire, last.user_texts()),
        (Wire::Chat, vec!["two and two?", "sure?", "really?"])
    );
    let replies = last
        .said
        .iter()
        .filter(|said| matches!(said, Said::Assistant { .. }))
        .count();
    assert_eq!(replies, 3, "{:?}", last.said);
    Ok(())
}

#[tokio::test]
async fn an_error_of_a_tool_goes_to_the_model_and_the_turn_goes_on() -> anyhow::Result<()> {
    let calls = Reply::tool("bash", json!({"command": "exit 3"}))
        .call("read_file", json!({"path": "absent"}))
        .call("no_such_tool", json!({}))
        .call("read_file", json!({"offset": "x"}))
        .call("bash", Value::String("{\"command\": ".into()));
    let server = ModelServer::start(Script::by_step([calls, Reply::text("done")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "try").await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert_eq!(
        server.request(2).await?.outputs().len(),
        5,
        "each call has exactly one result"
    );
    Ok(())
}

#[tokio::test]
async fn transient_failures_are_tried_again_and_each_attempt_is_an_event() -> anyhow::Result<()> {
    let limited = Reply::status(
        429,
        &[("retry-after", "0")],
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#,
    );
    let script = [
        limited,
        Reply::text("half a rep").deltas(2).cut(),
        Reply::text("").error_event("overloaded_error", "busy"),
        Reply::text("whole"),
    ];
    let server = ModelServer::start(Script::sequence(script))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    let log = daemon.log(&session)?;
    assert_eq!(
        (
            count(&log, "step.failed"),
            count(&log, "step.started"),
            count(&log, "step.completed")
        ),
        (3, 4, 1)
    );
    let texts: Vec<&str> = log
        .iter()
        .filter(|event| event.kind == "item.completed")
        .map(|event| event.text("text"))
        .collect();
    assert_eq!(texts, ["whole"], "nothing of a failed attempt is in the log");
    Ok(())
}

#[tokio::test]
async fn a_refused_key_ends_the_turn_with_a_typed_reason_and_a_hint() -> anyhow::Result<()> {
    for wire in WIRES {
        let server = ModelServer::start(Script::sequence([]))?;
        server.require_key("another");
        let daemon = TestDaemon::with_model(&server, wire).await?;
        let session = daemon.session("ask").await?;
        daemon.send(&session, "go").await?;
        let end = daemon.turn_end(&session, 1).await?;
        let reason = &end["data"]["reason"];
        assert_eq!(
            (&end["data"]["outcome"], &reason["kind"]),
            (&json!("failed"), &json!("authentication")),
            "{end}"
        );
        assert!(reason["hint"].is_string(), "{reason}");
        assert!(
            !end.to_string().contains("a-test-key"),
            "the key is in the reason: {end}"
        );
        let log = daemon.log(&session)?;
        assert_eq!(
            kinds(&log).iter().filter(|kind| **kind == "step.started").count(),
            1,
            "a refused key is not tried again"
        );
    }
    Ok(())
}

#[tokio::test]
async fn an_empty_reply_is_tried_once_more_and_then_fails() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::sequence([Reply::default(), Reply::default()]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(
        (&end["data"]["outcome"], &end["data"]["reason"]["kind"]),
        (&json!("failed"), &json!("empty_reply")),
        "{end}"
    );
    assert_eq!(server.seen().len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_reply_of_thoughts_alone_is_tried_again_unless_a_limit_cut_it() -> anyhow::Result<()> {
    let thinks = || Reply::default().reasoning("Hm.");
    let cut = thinks().end(End::MaxTokens);
    let server = ModelServer::start(Script::sequence([thinks(), Reply::text("Four."), cut]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "two and two?").await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    daemon.send(&session, "and three and three?").await?;
    let end = daemon.turn_end(&session, 2).await?;
    let reason = &end["data"]["reason"];
    assert_eq!(
        (&end["data"]["outcome"], &reason["kind"]),
        (&json!("failed"), &json!("empty_reply")),
        "{end}"
    );
    assert!(
        reason["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("max_output_tokens")),
        "{end}"
    );
    assert_eq!(server.seen().len(), 3, "what was cut is not tried again");
    Ok(())
}

#[tokio::test]
async fn a_reply_that_was_cut_is_said_to_be_on_all_wires() -> anyhow::Result<()> {
    for wire in [Wire::Messages, Wire::Chat, Wire::Responses] {
        let server = ModelServer::start(Script::sequence([Reply::text("Once upon").end(End::MaxTokens)]))?;
        let daemon = TestDaemon::with_model(&server, wire).await?;
        let sent = daemon.ctl(&["send", "tell me"]).await?.ok()?;
        assert_eq!(sent.stdout, "Once upon\n");
        assert!(
            sent.stderr.contains("cut at its limit of tokens"),
            "{}: {sent:?}",
            wire.name()
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_model_is_called_with_the_project_and_its_tools() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by_step([Reply::text("hi")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "hello").await?;
    daemon.turn_end(&session, 1).await?;
    let request = server.request(1).await?;
    assert!(
        request.system.contains(&daemon.home.project().display().to_string()),
        "{}",
        request.system
    );
    for tool in ["read_file", "list_dir", "write_file", "edit_file", "bash"] {
        assert!(
            request.tools.iter().any(|name| name == tool),
            "{tool} is missing in {:?}",
            request.tools
        );
    }
    Ok(())
}

/// A daemon whose turns are asked about after two steps, before a model that never comes to an end.
async fn limited_to_two_steps(server: &ModelServer) -> anyhow::Result<TestDaemon> {
    let config = format!("{}[session]\nmax_steps = 2\n", profile(server, Wire::Messages));
    Home::new()?.config(&config)?.start().await
}

fn endless() -> anyhow::Result<ModelServer> {
    ModelServer::start(Script::by(|seen| match seen.step() {
        0..9 => Reply::tool("list_dir", json!({"path": "."})),
        _ => Reply::text("done"),
    }))
}

#[tokio::test]
async fn at_max_steps_a_person_is_asked_and_lets_it_go_on_for_as_many() -> anyhow::Result<()> {
    let server = endless()?;
    let daemon = limited_to_two_steps(&server).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    let first = daemon.approval(&session).await?;
    assert!(first["call"].is_null(), "the question is about the turn: {first}");
    assert_eq!(server.seen().len(), 2);
    daemon.answer(&first, "once").await?;
    let second = daemon.until(&session, "the second question", |frame| {
        is(frame, "approval.requested") && frame["data"]["approval"] != first["id"]
    });
    second.await?;
    assert_eq!(server.seen().len(), 4);
    let second = daemon.approval(&session).await?;
    daemon.answer(&second, "deny").await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(
        (&end["data"]["outcome"], &end["data"]["reason"]["kind"]),
        (&json!("failed"), &json!("step_limit")),
        "{end}"
    );
    Ok(())
}

#[tokio::test]
async fn at_max_steps_with_nobody_to_answer_the_turn_fails() -> anyhow::Result<()> {
    let server = endless()?;
    let daemon = limited_to_two_steps(&server).await?;
    let ran = daemon
        .ctl(&["send", "--mode", "all", "--unattended", "deny:1ms", "go"])
        .await?;
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("max_steps"), "{}", ran.stderr);
    Ok(())
}
