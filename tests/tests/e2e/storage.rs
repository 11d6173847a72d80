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
