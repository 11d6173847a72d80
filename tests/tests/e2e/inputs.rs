//! Inputs while a turn runs, and inputs sent again: steer, queue, interrupt, and one acceptance for one id.

use serde_json::{Value, json};
use tests::daemon::TestDaemon;
use tests::log::count;
use tests::model_server::{Gate, ModelServer, Reply, Said, Script, Wire};
use tests::socket::{Peer, is};

fn input(session: &str, id: &str, text: &str, delivery: &str) -> Value {
    json!({"session": session, "input_id": id, "content": [{"type": "text", "text": text}], "delivery": delivery})
}

fn kind(error: &Value) -> &str {
    error.pointer("/data/kind").and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn an_input_sent_a_hundred_times_at_once_is_accepted_once() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by_step([Reply::text("hi")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut peers = Vec::new();
    for _ in 0..100 {
        peers.push(daemon.controller().await?);
    }
    let sends = peers.iter_mut().map(async |peer| {
        // "Busy" is an answer too: the same input is sent again.
        loop {
            let answer = peer
                .request("session.send", input(&session, "once", "hello", "auto"))
                .await?;
            if answer["error"]["data"]["kind"] != "busy" {
                return anyhow::Ok(answer["result"].clone());
            }
        }
    });
    let answers = futures::future::try_join_all(sends).await?;
    assert!(
        answers.windows(2).all(|pair| pair[0] == pair[1]) && answers[0]["seq"].is_u64(),
        "all get the same answer"
    );
    daemon.turn_end(&session, 1).await?;
    assert_eq!(count(&daemon.log(&session)?, "input.accepted"), 1);
    Ok(())
}

#[tokio::test]
async fn an_input_sent_again_after_a_crash_gets_the_first_answer() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("hi").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let send = input(&session, "once", "hello", "auto");
    let first = daemon.controller().await?.call("session.send", send.clone()).await?;
    server.request(1).await?;
    daemon.kill9().await?;
    daemon.start().await?;
    let second = daemon.controller().await?.call("session.send", send).await?;
    assert_eq!(first, second);
    gate.open();
    daemon.turn_end(&session, 1).await?;
    let third = daemon
        .controller()
        .await?
        .call("session.send", input(&session, "once", "hello", "auto"))
        .await?;
    assert_eq!(first, third);
    let other = daemon
        .controller()
        .await?
        .refused("session.send", input(&session, "once", "another", "auto"))
        .await?;
    assert_eq!(kind(&other), "input_conflict", "{other}");
    let log = daemon.log(&session)?;
    assert_eq!(
        (
            count(&log, "input.accepted"),
            count(&log, "turn.started"),
            count(&log, "turn.completed")
        ),
        (1, 1, 1)
    );
    Ok(())
}

#[tokio::test]
async fn a_steer_reaches_the_next_model_call_and_a_queued_input_the_next_turn() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::by(move |seen| match seen.user_texts().as_slice() {
        ["go"] if seen.step() == 0 => Reply::tool("bash", json!({"command": "true"})).gate(&held),
        _ => Reply::text("done"),
    });
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let mut peer = daemon.controller().await?;
    let started = peer.call("session.send", input(&session, "a", "go", "auto")).await?;
    let steered = peer
        .call("session.send", input(&session, "b", "be brief", "steer"))
        .await?;
    let queued = peer
        .call("session.send", input(&session, "c", "and then?", "queue"))
        .await?;
    let how = [&started, &steered, &queued].map(|sent| sent["disposition"].clone());
    assert_eq!(how, ["started", "steered", "queued"]);
    let waiting = peer.call("queue.list", json!({"session": session})).await?;
    assert_eq!(waiting["inputs"].as_array().map(Vec::len), Some(2), "{waiting}");
    gate.open();
    daemon.turn_end(&session, 2).await?;
    let second = server.request(2).await?;
    assert_eq!(
        second.last_text(),
        "be brief",
        "after the result of the call: {:?}",
        second.said
    );
    assert!(
        matches!(second.said.iter().rev().nth(1), Some(Said::Results(_))),
        "{:?}",
        second.said
    );
    assert_eq!(server.request(3).await?.last_text(), "and then?");
    let log = daemon.log(&session)?;
    assert_eq!((count(&log, "input.settled"), count(&log, "turn.completed")), (3, 2));
    Ok(())
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_at_once_and_the_model_call_with_it() -> anyhow::Result<()> {
    let gate = Gate::new();
    let server = ModelServer::start(Script::sequence([Reply::text("one two").deltas(2).gate(&gate)]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "count").await?;
    gate.release(1);
    watcher.until("the first fragment", |frame| is(frame, "delta")).await?;
    let answer = daemon
        .controller()
        .await?
        .call("turn.interrupt", json!({"session": session}))
        .await?;
    assert_eq!(answer["interrupted"], true);
    server.left(1).await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "interrupted");
    let frames = watcher.until("the end", |frame| is(frame, "turn.completed")).await?;
    let shown = frames
        .iter()
        .find(|frame| is(frame, "item.completed"))
        .map(|frame| &frame["data"]);
    assert_eq!(
        shown.map(|item| (&item["status"], &item["text"])),
        Some((&json!("interrupted"), &json!("one ")))
    );
    let again = daemon
        .controller()
        .await?
        .call(
            "turn.interrupt",
            json!({"session": session, "turn": end["data"]["turn"]}),
        )
        .await?;
    assert_eq!(
        (&again["interrupted"], &again["outcome"]),
        (&json!(false), &json!("interrupted"))
    );
    Ok(())
}

#[tokio::test]
async fn an_interrupt_kills_a_running_command_and_all_it_started() -> anyhow::Result<()> {
    let command = "trap '' TERM; (trap '' TERM; sleep 1000) & echo started; sleep 1000; sleep 1000";
    let server = ModelServer::start(Script::by_step([Reply::tool("bash", json!({ "command": command }))]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "hang").await?;
    watcher
        .until("output", |frame| is(frame, "delta") && frame["stream"] == "output")
        .await?;
    daemon
        .controller()
        .await?
        .call("turn.interrupt", json!({"session": session}))
        .await?;
    watcher.until("the end", |frame| is(frame, "turn.completed")).await?;
    let log = daemon.log(&session)?;
    let ended = log
        .iter()
        .find(|event| event.kind == "tool.completed")
        .map(|event| event.text("outcome").to_owned());
    assert_eq!(ended.as_deref(), Some("stopped"));
    let left = tests::process::descendants(daemon.pid()?);
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

#[tokio::test]
async fn a_turn_over_its_time_ends_as_timed_out() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::sequence([Reply::text("").stall()]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let ran = daemon.ctl(&["send", "--timeout", "300ms", "wait"]).await?;
    assert_eq!(ran.code, Some(6), "{}", ran.stderr);
    Ok(())
}

#[tokio::test]
async fn over_32_waiting_inputs_the_next_is_refused() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::sequence([Reply::text("").stall()]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut peer = daemon.controller().await?;
    peer.call("session.send", input(&session, "first", "go", "auto"))
        .await?;
    for at in 0..32 {
        peer.call("session.send", input(&session, &format!("q{at}"), "later", "queue"))
            .await?;
    }
    let error = peer
        .refused("session.send", input(&session, "q32", "later", "queue"))
        .await?;
    assert_eq!(kind(&error), "queue_full", "{error}");
    Ok(())
}

#[tokio::test]
async fn a_cancelled_input_settles_and_never_starts_a_turn() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("hi").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut peer = daemon.controller().await?;
    peer.call("session.send", input(&session, "a", "go", "auto")).await?;
    peer.call("session.send", input(&session, "b", "later", "queue"))
        .await?;
    let mut waiter: Peer = daemon.observer().await?;
    let id = waiter
        .begin("turn.wait", json!({"session": session, "input_id": "b"}))
        .await?;
    peer.call("queue.cancel", json!({"session": session, "input_id": "b"}))
        .await?;
    let waited = waiter.response(id).await?;
    assert_eq!(waited["result"]["status"], "cancelled", "{waited}");
    gate.open();
    daemon.turn_end(&session, 1).await?;
    assert_eq!(count(&daemon.log(&session)?, "turn.started"), 1);
    Ok(())
}

#[tokio::test]
async fn an_input_id_with_other_terms_is_a_conflict() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut peer = daemon.controller().await?;
    let mut send = input(&session, "once", "hello", "auto");
    send["mode"] = json!("none");
    send["mode_for_ms"] = json!(3_600_000);
    send["timeout_ms"] = json!(60_000);
    let first = peer.call("session.send", send.clone()).await?;
    assert_eq!(peer.call("session.send", send.clone()).await?, first);
    let others = [
        ("delivery", json!("interrupt")),
        ("mode", json!("all")),
        ("mode_for_ms", json!(7_200_000)),
        ("timeout_ms", json!(1)),
        ("unattended", json!({"policy": "deny"})),
        ("interactive", json!(true)),
    ];
    for (name, value) in others {
        let mut other = send.clone();
        other[name] = value;
        let error = peer.refused("session.send", other).await?;
        assert_eq!(kind(&error), "input_conflict", "{name}: {error}");
    }
    assert_eq!(count(&daemon.log(&session)?, "input.accepted"), 1);
    Ok(())
}

#[tokio::test]
async fn an_interrupt_that_names_an_ended_turn_answers_how_that_turn_ended() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |seen| match seen.last_text() {
        "first" => Reply::text("hi").gate(&held),
        _ => Reply::text("hi"),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let first = daemon.send(&session, "first").await?;
    server.request(1).await?;
    let mut peer = daemon.controller().await?;
    peer.call("turn.interrupt", json!({"session": session})).await?;
    let second = daemon.send(&session, "second").await?;
    daemon.turn_end(&session, 2).await?;
    for (sent, outcome) in [(first, "interrupted"), (second, "completed")] {
        let named = json!({"session": session, "turn": sent["turn"]});
        let answer = peer.call("turn.interrupt", named).await?;
        assert_eq!(
            (&answer["interrupted"], &answer["outcome"]),
            (&json!(false), &json!(outcome)),
            "{answer}"
        );
    }
    let unknown = json!({"session": session, "turn": "t1"});
    let error = peer.refused("turn.interrupt", unknown).await?;
    assert_eq!(kind(&error), "turn_not_found", "{error}");
    Ok(())
}

#[tokio::test]
async fn a_send_into_a_session_held_by_an_interrupt_gets_its_answer() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |seen| match seen.last_text() {
        "first" => Reply::text("never").gate(&held),
        other => Reply::text(format!("answer to {other}")),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "first").await?;
    server.request(1).await?;
    let mut peer = daemon.controller().await?;
    peer.call("session.send", input(&session, "waits", "second", "queue"))
        .await?;
    peer.call("turn.interrupt", json!({"session": session})).await?;
    let queue = peer.call("queue.list", json!({"session": session})).await?;
    assert_eq!(queue["held"], true, "{queue}");
    let ran = daemon.ctl(&["send", "-s", &session, "third"]).await?.ok()?;
    assert_eq!(ran.stdout, "answer to third\n", "{}", ran.stderr);
    let log = daemon.log(&session)?;
    assert_eq!(count(&log, "turn.completed"), 3, "what waited went before it");
    Ok(())
}

#[tokio::test]
async fn a_send_whose_input_is_held_by_somebodys_interrupt_says_so() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |seen| match seen.last_text() {
        "first" => Reply::text("never").gate(&held),
        _ => Reply::text("fine"),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "first").await?;
    server.request(1).await?;
    let child = daemon.begin_ctl(&["send", "-s", &session, "second"])?;
    // Once its client is attached and its input waits, it sees the interrupt.
    daemon
        .until(&session, "the second input", |frame| {
            is(frame, "input.accepted") && frame["data"]["content"][0]["text"] == "second"
        })
        .await?;
    let mut peer = daemon.controller().await?;
    peer.call("turn.interrupt", json!({"session": session})).await?;
    peer.call("queue.resume", json!({"session": session})).await?;
    let ran = tests::daemon::ended(child, "the waiting send").await?.ok()?;
    assert_eq!(ran.stdout, "fine\n");
    assert!(ran.stderr.contains("agentctl queue resume"), "{}", ran.stderr);
    Ok(())
}

#[tokio::test]
async fn a_session_made_again_with_its_id_is_the_same_and_made_otherwise_a_conflict() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let mut peer = daemon.controller().await?;
    let id = uuid::Uuid::now_v7().to_string();
    let create =
        json!({"session": id, "cwd": daemon.home.project(), "name": "one", "mode": "all", "mode_for_ms": 3_600_000});
    let made = peer.call("session.create", create.clone()).await?;
    let renamed = json!({"session": id, "name": "renamed"});
    peer.call("session.update", renamed).await?;
    let again = peer.call("session.create", create.clone()).await?;
    assert_eq!((&again["id"], &again["created_at"]), (&made["id"], &made["created_at"]));
    for (name, value) in [
        ("cwd", json!("/")),
        ("name", json!("two")),
        ("mode", json!("ask")),
        ("mode_for_ms", json!(1)),
    ] {
        let mut other = create.clone();
        other[name] = value;
        let error = peer.refused("session.create", other).await?;
        assert_eq!(kind(&error), "session_exists", "{name}: {error}");
    }
    Ok(())
}
