//! The daemon's own life: it ends when nobody needs it, comes back with what was parked, and its socket comes back too.

use serde_json::json;
use tests::daemon::{Home, TestDaemon, ended, profile};
use tests::log::count;
use tests::model_server::{Gate, ModelServer, Reply, Script, Wire};
use tests::socket::{Peer, is};

#[tokio::test]
async fn a_daemon_nobody_needs_ends_and_the_next_command_brings_it_back() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let config = format!("{}[daemon]\nidle_timeout = \"1s\"\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    daemon.ctl(&["send", "--name", "kept", "hi"]).await?.ok()?;
    tests::process::gone(daemon.pid()?).await?;
    assert_eq!(
        daemon.ctl(&["send", "-s", "kept", "again"]).await?.ok()?.stdout,
        "fine\n"
    );
    Ok(())
}

#[tokio::test]
async fn a_daemon_with_an_approval_waiting_is_needed() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": "touch made"})),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let config = format!("{}[daemon]\nidle_timeout = \"1s\"\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let pid = daemon.pid()?;
    let ended = tokio::time::timeout(std::time::Duration::from_secs(4), tests::process::gone(pid)).await;
    assert!(ended.is_err(), "it ended although an approval waits");
    daemon.answer(&approval, "once").await?;
    daemon.turn_end(&session, 1).await?;
    tests::process::gone(pid).await
}

#[tokio::test]
async fn with_resume_off_a_cut_turn_is_parked_until_somebody_says_so() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("fine").gate(&held)))?;
    let config = format!("{}[session]\nresume = \"off\"\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    server.request(1).await?;
    daemon.kill9().await?;
    daemon.start().await?;
    let running = daemon.observer().await?.call("turn.list", json!({})).await?;
    assert_eq!(running[0]["phase"], "parked", "{running}");
    let mut reader = daemon.observer().await?;
    reader.attach(&session, Some(0)).await?;
    let frames = reader.until("the snapshot", |frame| is(frame, "snapshot")).await?;
    assert_eq!(
        tests::socket::last(&frames)?["phase"],
        "parked",
        "looking does not wake it"
    );
    assert_eq!(server.seen().len(), 1, "a parked turn calls no model");
    gate.open();
    daemon
        .controller()
        .await?
        .call("turn.resume", json!({"session": session}))
        .await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert_eq!(count(&daemon.log(&session)?, "turn.resumed"), 1);
    Ok(())
}

#[tokio::test]
async fn a_waiting_send_outlives_a_killed_daemon() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("fine").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let child = daemon.begin_ctl(&["send", "go"])?;
    server.request(1).await?;
    daemon.kill9().await?;
    gate.open();
    let ran = ended(child, "the waiting send").await?.ok()?;
    assert_eq!(ran.stdout, "fine\n", "{}", ran.stderr);
    let session = tests::log::sessions(&daemon.home.state_dir())?.remove(0);
    assert_eq!(count(&daemon.log(&session)?, "input.accepted"), 1);
    Ok(())
}

#[tokio::test]
async fn a_stop_lets_the_running_turn_end_and_leaves_what_waits_to_the_next_daemon() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("fine").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "first").await?;
    server.request(1).await?;
    let mut peer = daemon.controller().await?;
    let second = json!({"session": session, "delivery": "queue", "content": [{"type": "text", "text": "second"}]});
    peer.call("session.send", second).await?;
    let pid = daemon.pid()?;
    peer.call("daemon.stop", json!({"drain_ms": 25000})).await?;
    gate.open();
    tests::process::gone(pid).await?;
    let log = daemon.log(&session)?;
    assert_eq!((count(&log, "turn.started"), count(&log, "turn.completed")), (1, 1));
    let end = log.iter().find(|event| event.kind == "turn.completed");
    assert_eq!(
        end.map(|end| end.data.get("next")),
        Some(None),
        "it announces no turn that it does not start"
    );
    daemon.start().await?;
    let end = daemon.turn_end(&session, 2).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    Ok(())
}

#[tokio::test]
async fn a_waiting_send_starts_no_daemon_in_place_of_one_that_was_stopped() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("fine").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let child = daemon.begin_ctl(&["send", "go"])?;
    server.request(1).await?;
    let socket = daemon.socket()?;
    daemon.ctl(&["daemon", "stop", "--drain", "1ms"]).await?.ok()?;
    // The send looks for a successor: it is seen at the socket, again and again. A daemon it had started would have found the socket
    // taken, and said so in its log.
    let said = daemons_log(&daemon)?;
    let listener = tokio::net::UnixListener::bind(&socket)?;
    for _ in 0..3 {
        tests::soon("the send looks for a daemon", listener.accept()).await??;
    }
    drop(listener);
    std::fs::remove_file(&socket)?;
    assert_eq!(daemons_log(&daemon)?, said, "another daemon was started");
    gate.open();
    daemon.start().await?;
    let ran = ended(child, "the waiting send").await?.ok()?;
    assert_eq!(ran.stdout, "fine\n", "{}", ran.stderr);
    Ok(())
}

/// What daemons of this home have written into their log.
fn daemons_log(daemon: &TestDaemon) -> anyhow::Result<String> {
    let directory = protocol::place::log_dir(&daemon.home.state_dir());
    let files = std::fs::read_dir(directory)?.map(|entry| Ok(std::fs::read_to_string(entry?.path())?));
    files.collect()
}

#[tokio::test]
async fn two_starts_at_once_end_well_with_one_daemon() -> anyhow::Result<()> {
    let home = Home::new()?;
    let starts = (0..4).map(|_| {
        let mut start = home.command(tests::bins::bins()?.agentd());
        start.arg("start");
        anyhow::Ok(start.spawn()?)
    });
    for start in starts.collect::<Result<Vec<_>, _>>()? {
        ended(start, "agentd start").await?.ok()?;
    }
    let pid = home.lock()?.pid;
    tests::process::end(pid, rustix::process::Signal::TERM).await
}

#[tokio::test]
async fn looking_at_turns_and_queues_opens_no_session() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("fine").gate(&held)))?;
    let config = format!("{}[session]\nresume = \"off\"\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    server.request(1).await?;
    let waits = json!({"session": session, "delivery": "queue", "input_id": "waits",
        "content": [{"type": "text", "text": "later"}]});
    daemon.controller().await?.call("session.send", waits).await?;
    daemon.kill9().await?;
    daemon.start().await?;
    let mut peer = daemon.observer().await?;
    let opened_by_the_start = peer.call("daemon.status", json!({})).await?["sessions_open"].clone();
    let turns = peer.call("turn.list", json!({})).await?;
    assert_eq!(
        (&turns[0]["phase"], &turns[0]["session"]),
        (&json!("parked"), &json!(session)),
        "{turns}"
    );
    let queue = peer.call("queue.list", json!({"session": session})).await?;
    assert_eq!(queue["inputs"][0]["input_id"], "waits", "{queue}");
    let open = &peer.call("daemon.status", json!({})).await?["sessions_open"];
    assert_eq!((open, &opened_by_the_start), (&json!(0), &json!(0)));
    Ok(())
}

#[tokio::test]
async fn a_stop_waits_for_the_running_turn_and_takes_no_other() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("fine").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    server.request(1).await?;
    let pid = daemon.pid()?;
    let mut peer = daemon.controller().await?;
    peer.call("daemon.stop", json!({"drain_ms": 20000})).await?;
    let another = json!({"session": session, "content": [{"type": "text", "text": "more"}]});
    let refused = peer.refused("session.send", another).await?;
    assert_eq!(refused["data"]["kind"], "draining", "{refused}");
    gate.open();
    tests::process::gone(pid).await?;
    let wal = daemon.home.state_dir().join("agentd.db-wal");
    assert!(!wal.exists(), "after a stop the log is one file");
    let log = daemon.log(&session)?;
    assert_eq!(log.last().map(|event| event.text("outcome")), Some("completed"));
    Ok(())
}

#[tokio::test]
async fn a_socket_that_vanishes_is_made_anew_and_who_is_connected_stays_so() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let socket = daemon.socket()?;
    let mut connected = daemon.observer().await?;
    connected.call("session.list", json!({})).await?;
    std::fs::remove_file(&socket)?;
    let made_anew = async {
        while Peer::connect(&socket).await.is_err() {
            connected.call("session.list", json!({})).await?;
        }
        anyhow::Ok(())
    };
    tests::soon("the socket is made anew", made_anew).await??;
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&socket)?);
    assert_eq!(mode & 0o777, 0o600);
    daemon.ctl(&["ls"]).await?.ok()?;
    connected.call("session.list", json!({})).await?;
    Ok(())
}

#[tokio::test]
async fn one_state_directory_has_one_daemon_whatever_the_socket() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let pid = daemon.pid()?;
    let mut second = daemon.home.command(tests::bins::bins()?.agentd());
    second
        .env("AGENTD_SOCKET", daemon.home.path().join("other.sock"))
        .arg("run");
    let ran = tests::daemon::run(second, "a second daemon").await?;
    assert_eq!(
        ran.code,
        Some(75),
        "a start knows by this that another runs: {}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains(&pid.to_string()),
        "it names the one that runs: {}",
        ran.stderr
    );
    assert_eq!(daemon.pid()?, pid);
    Peer::connect(&daemon.socket()?)
        .await?
        .call("daemon.status", json!({}))
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_socket_path_that_is_too_long_is_an_error_that_names_the_variable() -> anyhow::Result<()> {
    let home = Home::new()?;
    let long = home.path().join("x".repeat(120));
    let home = home.env("AGENTD_SOCKET", long.display().to_string());
    let ran = home.ctl(&["ls"]).await?;
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stderr.contains("AGENTD_SOCKET"), "{}", ran.stderr);
    Ok(())
}
