//! When the disk does not take a commit: nobody sees what was not written, and the session comes back.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::is;

/// Bounds the size of files that the daemon may write.
fn file_size(daemon: &TestDaemon, limit: Option<u64>) -> anyhow::Result<()> {
    let pid = Pid::from_raw(daemon.pid()?);
    prlimit(
        pid,
        Resource::Fsize,
        Rlimit {
            current: limit,
            maximum: None,
        },
    )?;
    Ok(())
}

#[tokio::test]
async fn a_commit_that_fails_shows_nothing_and_the_session_comes_back() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "before").await?;
    daemon.turn_end(&session, 1).await?;

    let before = daemon.log(&session)?;
    file_size(&daemon, Some(1))?;
    let mut peer = daemon.controller().await?;
    let lost = json!({"session": session, "input_id": "lost", "content": [{"type": "text", "text": "lost"}]});
    let error = peer.refused("session.send", lost.clone()).await?;
    assert_eq!(error["data"]["kind"], "storage_failed", "{error}");
    assert!(error["data"]["hint"].is_string(), "{error}");
    assert_eq!(daemon.log(&session)?, before, "what was refused is not in the log");
    peer.call("session.get", json!({"session": session})).await?;
    let mut reader = daemon.observer().await?;
    reader.attach(&session, Some(0)).await?;
    reader.until("reading goes on", |frame| is(frame, "snapshot")).await?;

    file_size(&daemon, None)?;
    // The same input is sent again until the daemon has found out that the disk takes writes.
    let mut answer: Value = peer.request("session.send", lost.clone()).await?;
    let deadline = std::time::Instant::now() + tests::PATIENCE;
    while answer.get("error").is_some() && std::time::Instant::now() < deadline {
        answer = peer.request("session.send", lost.clone()).await?;
    }
    assert!(answer.get("result").is_some(), "{answer}");
    daemon.turn_end(&session, 2).await?;
    let frames = watcher
        .until("both turns", |frame| {
            is(frame, "input.accepted") && frame["data"]["input_id"] == "lost"
        })
        .await?;
    let log = daemon.log(&session)?;
    for event in frames.iter().filter(|frame| frame.get("seq").is_some()) {
        let stored = log.iter().find(|row| Some(row.seq) == event["seq"].as_i64());
        assert_eq!(
            stored.map(|row| &row.data),
            Some(&event["data"]),
            "a frame shows what the log lacks"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_commit_that_fails_in_mid_turn_ends_in_one_whole_turn() -> anyhow::Result<()> {
    let gate = tests::model_server::Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |seen| match seen.step() {
        0 => Reply::tool("bash", json!({"command": "echo once >> ran"})).gate(&held),
        _ => Reply::text("done"),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    server.request(1).await?;
    file_size(&daemon, Some(1))?;
    gate.open();
    // The model's reply cannot be written: the daemon says so in its status.
    let mut peer = daemon.controller().await?;
    let deadline = std::time::Instant::now() + tests::PATIENCE;
    while peer.call("daemon.status", json!({})).await?["storage_ok"] == true && std::time::Instant::now() < deadline {}
    assert_eq!(peer.call("daemon.status", json!({})).await?["storage_ok"], false);
    assert!(
        !daemon.home.project().join("ran").exists(),
        "no call starts before the reply that asks for it is recorded"
    );
    file_size(&daemon, None)?;
    // Any command wakes the session again.
    let deadline = std::time::Instant::now() + tests::PATIENCE;
    let again = json!({"session": session, "input_id": "again", "delivery": "queue", "content": [{"type": "text", "text": "and?"}]});
    while peer
        .request("session.send", again.clone())
        .await?
        .get("error")
        .is_some()
        && std::time::Instant::now() < deadline
    {}
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert_eq!(std::fs::read_to_string(daemon.home.project().join("ran"))?, "once\n");
    Ok(())
}

#[tokio::test]
async fn a_session_deleted_for_good_leaves_nothing_on_the_disk() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let secret = "a word nobody else says: xylophonist";
    daemon.ctl(&["send", secret]).await?.ok()?;
    daemon.ctl(&["rm", "--now", "last"]).await?.ok()?;
    daemon.ctl(&["daemon", "stop"]).await?.ok()?;
    for file in ["agentd.db", "agentd.db-wal"] {
        let bytes = std::fs::read(daemon.home.state_dir().join(file)).unwrap_or_default();
        assert!(
            !bytes.windows(11).any(|window| window == b"xylophonist"),
            "{file} still has it"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_session_whose_log_cannot_be_read_can_be_deleted_in_the_middle_of_its_turn() -> anyhow::Result<()> {
    let gate = tests::model_server::Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("hi").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let (session, other) = (daemon.session("ask").await?, daemon.session("ask").await?);
    daemon.send(&session, "go").await?;
    server.request(1).await?;
    daemon.kill9().await?;
    let log = daemon.log(&session)?;
    let step = log
        .iter()
        .find(|event| event.kind == "step.started")
        .map(|event| event.seq);
    tests::log::damage(&daemon.home.state_dir(), &session, step.unwrap_or_default(), "{}")?;
    daemon.start().await?;
    let mut peer = daemon.controller().await?;
    let again = json!({"session": session, "content": [{"type": "text", "text": "again"}]});
    let error = peer.refused("session.send", again).await?;
    assert_eq!(
        (&error["data"]["kind"], &error["data"]["seq"]),
        (&json!("session_unreadable"), &json!(step)),
        "{error}"
    );
    let turns = peer.call("turn.list", json!({})).await?;
    assert_eq!(turns, json!([]), "the others are listed");
    let error = peer.refused("session.delete", json!({"session": session})).await?;
    assert_eq!(error["data"]["kind"], "turn_running", "{error}");
    peer.call("session.delete", json!({"session": session, "force": true}))
        .await?;
    let left = peer.call("session.list", json!({})).await?;
    let ids: Vec<&Value> = left["sessions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|info| &info["id"])
        .collect();
    assert_eq!(ids, [&json!(other)]);
    Ok(())
}

/// The last frame of a subscription from the first event on.
async fn end_of_history(daemon: &TestDaemon, session: &str) -> anyhow::Result<Value> {
    let mut peer = daemon.observer().await?;
    peer.attach(session, Some(0)).await?;
    let frames = peer
        .until("the end of the subscription", |frame| is(frame, "end"))
        .await?;
    let seqs: Vec<u64> = frames.iter().filter_map(|frame| frame["seq"].as_u64()).collect();
    assert!(
        seqs.iter().copied().eq(1..=seqs.len() as u64),
        "without a gap: {seqs:?}"
    );
    assert!(
        !frames.iter().any(|frame| is(frame, "snapshot")),
        "it never says that it has caught up"
    );
    Ok(tests::socket::last(&frames)?.clone())
}

#[tokio::test]
async fn a_subscription_ends_with_a_reason_at_an_event_that_cannot_be_read() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    daemon.ctl(&["daemon", "stop"]).await?.ok()?;
    let log = daemon.log(&session)?;
    let started = log
        .iter()
        .find(|event| event.kind == "turn.started")
        .map_or(0, |event| event.seq);
    tests::log::damage(&daemon.home.state_dir(), &session, started, "not JSON")?;
    daemon.start().await?;
    let end = end_of_history(&daemon, &session).await?;
    assert_eq!(
        (&end["reason"], &end["resume_after"]),
        (&json!("unreadable"), &json!(started - 1)),
        "{end}"
    );
    Ok(())
}

#[tokio::test]
async fn a_subscription_ends_with_a_reason_when_the_store_fails() -> anyhow::Result<()> {
    // So many events that those before them are read from the disk; a call of no tool is the cheapest.
    let calls = |_: usize| (0..64).fold(Reply::default(), |reply, _| reply.call("no_such_tool", json!({})));
    let server = ModelServer::start(Script::by(move |seen| match seen.step() {
        step @ 0..3 => calls(step),
        _ => Reply::text("done"),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let filler = "x".repeat(100_000);
    daemon.send(&session, &format!("{filler} needle-7f3a {filler}")).await?;
    daemon.turn_end(&session, 1).await?;
    daemon.ctl(&["daemon", "stop"]).await?.ok()?;
    tests::log::break_page(&daemon.home.state_dir(), "needle-7f3a")?;
    daemon.start().await?;
    let end = end_of_history(&daemon, &session).await?;
    assert_eq!(end["reason"], "storage", "{end}");
    Ok(())
}
