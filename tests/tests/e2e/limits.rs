//! More of something than anybody needs: output, approvals, bytes without an end of line, connections. Nothing grows without
//! bound, nothing is counted twice.

use anyhow::Context;
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::daemon::{Home, TestDaemon, profile};
use tests::log::{count, kinds};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::process::{peak_kib, resident_kib};
use tests::socket::{Peer, is};

/// What any of this may cost the daemon beyond what it had.
const MEMORY_KIB: u64 = 96 * 1024;

/// Descriptors of a crowd: two for each connection, its socket and the process behind it, and what the daemon has by itself.
const DESCRIPTORS: usize = 2 * (256 + 32) + 64;

/// Approvals of the race, asked in steps of so many.
const APPROVALS: usize = 1_000;
const AT_ONCE: usize = 50;

#[tokio::test]
async fn two_gigabytes_of_output_are_read_to_the_end_and_kept_nowhere() -> anyhow::Result<()> {
    // The output is ordinary text, in lines; the last one must be seen.
    let command = "head -c 2147483648 /dev/zero | tr '\\0' 'x' | fold -w 4095; echo; echo the-very-end";
    let call = Reply::tool("bash", json!({"command": command, "timeout_ms": 600_000}));
    let server = ModelServer::start(Script::by_step([call, Reply::text("done")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let before = resident_kib(daemon.pid()?)?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "go").await?;
    // As long as output comes the wait goes on.
    watcher.until("the end", |frame| is(frame, "turn.completed")).await?;
    let log = daemon.log(&session)?;
    let ended = log
        .iter()
        .find(|event| event.kind == "tool.completed")
        .context("the call's end")?;
    let output = ended.text("output");
    assert_eq!(ended.text("outcome"), "ok", "{output}");
    assert!(
        output.contains("the-very-end") && output.contains("bytes cut here"),
        "{}",
        output.len()
    );
    assert!(output.len() < 40_000, "the model gets {} bytes", output.len());
    let peak = peak_kib(daemon.pid()?)?;
    assert!(peak < before + MEMORY_KIB, "{before} KiB grew to {peak} KiB");
    let database = std::fs::metadata(daemon.home.state_dir().join("agentd.db"))?.len();
    assert!(database < 16 << 20, "the database has {database} bytes");
    Ok(())
}

/// Answers every question with `decision`, until the turn ends; how each answer was taken, by approval.
async fn answer_all(daemon: &TestDaemon, session: &str, decision: &str) -> anyhow::Result<HashMap<String, Value>> {
    let (mut watcher, mut hand) = (daemon.observer().await?, daemon.controller().await?);
    watcher.attach(session, Some(0)).await?;
    let mut answered = HashMap::new();
    loop {
        let frame = watcher.frame().await?.context("the daemon left")?;
        let data = &frame["data"];
        if is(&frame, "turn.completed") {
            return Ok(answered);
        }
        if is(&frame, "approval.requested") {
            let answer = json!({"id": data["approval"], "digest": data["digest"], "decision": decision});
            let id = data["approval"].as_str().unwrap_or_default().to_owned();
            answered.insert(id, hand.request("approval.answer", answer).await?);
        }
    }
}

#[tokio::test]
async fn a_thousand_approvals_that_two_clients_race_for_are_each_resolved_once() -> anyhow::Result<()> {
    let script = Script::by(|seen| {
        let step = seen.step();
        if step >= APPROVALS / AT_ONCE {
            return Reply::text("done");
        }
        (0..AT_ONCE).fold(Reply::default(), |reply, at| {
            let path = format!("made-{}", step * AT_ONCE + at);
            reply.call("write_file", json!({"path": path, "content": "x"}))
        })
    });
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    let (yes, no) = tokio::try_join!(
        answer_all(&daemon, &session, "once"),
        answer_all(&daemon, &session, "deny")
    )?;
    let log = daemon.log(&session)?;
    let resolved: Vec<_> = log.iter().filter(|event| event.kind == "approval.resolved").collect();
    assert_eq!(
        (count(&log, "approval.requested"), resolved.len()),
        (APPROVALS, APPROVALS),
        "{:?}",
        kinds(&log).len()
    );
    let won = |answer: Option<&Value>| answer.is_some_and(|answer| answer.get("result").is_some());
    let mut made = 0;
    for event in &resolved {
        let (id, decision) = (event.text("approval"), event.text("decision"));
        let (yes, no) = (yes.get(id), no.get(id));
        assert!(won(yes) != won(no), "{id}: {yes:?} and {no:?}");
        assert_eq!(decision == "once", won(yes), "who was told so is who decided");
        for late in [yes, no]
            .into_iter()
            .flatten()
            .filter(|answer| answer.get("result").is_none())
        {
            assert_eq!(late["error"]["data"]["kind"], "already_resolved", "{late}");
        }
        made += usize::from(decision == "once");
    }
    let files = std::fs::read_dir(daemon.home.project())?.flatten();
    let files = files.filter(|entry| entry.file_name().to_string_lossy().starts_with("made-"));
    assert_eq!(files.count(), made, "what was allowed ran, and nothing else");
    assert!(made > 0 && made < APPROVALS, "both won some: {made}");
    Ok(())
}

#[tokio::test]
async fn a_gigabyte_without_an_end_of_line_costs_no_memory() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let mut peer = daemon.observer().await?;
    let before = resident_kib(daemon.pid()?)?;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        peer.send(&piece).await?;
    }
    peer.send(b"\n").await?;
    let answer = peer.line().await?.unwrap_or_default();
    assert_eq!(answer["error"]["data"]["kind"], "too_large", "{answer}");
    peer.call("daemon.status", json!({})).await?;
    let peak = peak_kib(daemon.pid()?)?;
    assert!(peak < before + MEMORY_KIB, "{before} KiB grew to {peak} KiB");
    Ok(())
}

#[tokio::test]
async fn a_batch_of_a_million_is_refused_in_bounded_memory() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let mut peer = daemon.observer().await?;
    let before = resident_kib(daemon.pid()?)?;
    peer.send(format!("[{}1]\n", "1,".repeat(1_000_000)).as_bytes()).await?;
    let answer = peer.line().await?.unwrap_or_default();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    peer.call("daemon.status", json!({})).await?;
    let peak = peak_kib(daemon.pid()?)?;
    assert!(peak < before + 2 * MEMORY_KIB, "{before} KiB grew to {peak} KiB");
    Ok(())
}

#[tokio::test]
async fn a_hundred_thousand_connections_come_and_go_and_a_crowd_that_stays_is_bounded() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let socket = daemon.socket()?;
    let before = resident_kib(daemon.pid()?)?;
    let knocker = socket.clone();
    // A connection that cannot be made for a full queue is one that came and went.
    let knocked = tokio::task::spawn_blocking(move || {
        (0..100_000)
            .filter(|_| std::os::unix::net::UnixStream::connect(&knocker).is_ok())
            .count()
    });
    let knocked = knocked.await?;
    assert!(knocked > 90_000, "only {knocked} connections");
    let mut crowd = Vec::new();
    for _ in 0..1_000 {
        crowd.extend(Peer::connect(&socket).await.ok());
    }
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid()?))?.count();
    assert!(descriptors < DESCRIPTORS, "{descriptors} descriptors are open");
    drop(crowd);
    // Whoever comes when the crowd is gone is served.
    let served = async {
        loop {
            let Ok(mut peer) = Peer::connect(&socket).await else {
                continue;
            };
            if peer
                .request("daemon.status", json!({}))
                .await
                .is_ok_and(|answer| answer.get("result").is_some())
            {
                return;
            }
        }
    };
    tests::soon("a client is served", served).await?;
    let peak = peak_kib(daemon.pid()?)?;
    assert!(peak < before + MEMORY_KIB, "{before} KiB grew to {peak} KiB");
    Ok(())
}

#[tokio::test]
async fn a_call_with_a_strange_name_or_huge_arguments_is_answered_in_words() -> anyhow::Result<()> {
    let huge = "x".repeat(3 << 20);
    let replies = [
        Reply::tool("bash\u{1b}[2J", json!({"command": "touch made"})),
        Reply::tool("write_file", json!({"path": "made", "content": huge})),
        Reply::text("done"),
    ];
    let server = ModelServer::start(Script::by_step(replies))?;
    let config = profile(&server, Wire::Chat);
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    let end = daemon.turn_end(&session, 1).await?;
    let shown = daemon.ctl(&["show", &session]).await?.ok()?;
    assert!(
        !shown.stdout.contains('\u{1b}') && !shown.stderr.contains('\u{1b}'),
        "{}",
        shown.stdout
    );
    assert!(!daemon.home.project().join("made").exists(), "{end}");
    Ok(())
}
