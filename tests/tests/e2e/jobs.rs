//! Commands in the background: they answer at once, outlive their turn, can be looked at and killed, and die with the daemon.

use serde_json::{Value, json};
use tests::daemon::TestDaemon;
use tests::log::count;
use tests::model_server::{Gate, ModelServer, Reply, Script, Wire};
use tests::process;
use tests::socket::{is, last};

/// The job in the result of the last bash call.
fn job(log: &[tests::log::Logged]) -> Option<String> {
    let completed = log.iter().rev().filter(|event| event.kind == "tool.completed");
    completed
        .filter_map(|event| event.data["job"].as_str())
        .next()
        .map(str::to_owned)
}

fn background(command: &str) -> Reply {
    Reply::tool("bash", json!({"command": command, "wait": false}))
}

#[tokio::test]
async fn a_job_outlives_its_turn_and_the_next_model_call_hears_of_its_end() -> anyhow::Result<()> {
    let script = Script::sequence([
        background("echo begun; until [ -e go ]; do sleep 0.01; done; echo over"),
        Reply::text("Started."),
        Reply::text("I see."),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "start it").await?;
    daemon.turn_end(&session, 1).await?;
    let job = job(&daemon.log(&session)?).ok_or_else(|| anyhow::anyhow!("no job"))?;
    let output = |frame: &Value| is(frame, "delta") && frame["item"] == job.as_str() && frame["stream"] == "output";
    watcher.until("its output", output).await?;
    let mut late = daemon.observer().await?;
    late.attach(&session, None).await?;
    let frames = late.until("a snapshot", |frame| is(frame, "snapshot")).await?;
    let snapshot = last(&frames)?;
    assert_eq!(
        (&snapshot["phase"], &snapshot["jobs"][0]["job"]),
        (&json!("idle"), &json!(job))
    );
    assert!(
        snapshot["jobs"][0]["command"]
            .as_str()
            .is_some_and(|command| command.starts_with("echo begun"))
    );

    std::fs::write(daemon.home.project().join("go"), "")?;
    let log = daemon
        .until(&session, "its end", |frame| is(frame, "job.ended"))
        .await?;
    let ended = &last(&log)?["data"];
    assert_eq!((&ended["outcome"], &ended["exit_code"]), (&json!("ok"), &json!(0)));
    assert!(
        ended["output"]
            .as_str()
            .is_some_and(|output| output.starts_with("begun\nover\n")),
        "{ended}"
    );
    daemon.send(&session, "and now?").await?;
    daemon.turn_end(&session, 2).await?;
    let texts = server.request(3).await?.user_texts().join("\n");
    assert!(texts.contains(&format!("Job {job} is over: ok")), "{texts}");
    Ok(())
}

#[tokio::test]
async fn a_job_is_polled_and_killed_with_all_it_started() -> anyhow::Result<()> {
    let start = Script::by_step([background("echo one; sleep 1000 & sleep 1000"), Reply::text("Started.")]);
    let server = ModelServer::start(start)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "start it").await?;
    daemon.turn_end(&session, 1).await?;
    let id = job(&daemon.log(&session)?).ok_or_else(|| anyhow::anyhow!("no job"))?;
    assert!(
        process::descendants(daemon.pid()?)
            .iter()
            .any(|process| process.command.contains("sleep 1000"))
    );

    server.play(Script::by_step([
        Reply::tool("job_output", json!({"job": id})),
        Reply::tool("job_kill", json!({"job": id})),
        Reply::tool("job_output", json!({"job": id})),
        Reply::text("Killed."),
    ]));
    daemon.send(&session, "end it").await?;
    daemon.turn_end(&session, 2).await?;
    let log = daemon.log(&session)?;
    let outputs: Vec<&str> = log
        .iter()
        .filter(|event| event.kind == "tool.completed")
        .map(|event| event.text("output"))
        .collect();
    assert!(
        outputs[1].starts_with("one\n[job ") && outputs[1].contains(" runs, "),
        "{outputs:?}"
    );
    assert!(
        outputs[2].contains("is over: stopped]") && outputs[3].contains("is over: stopped]"),
        "{outputs:?}"
    );
    assert_eq!(count(&log, "job.ended"), 1);
    assert!(
        !process::descendants(daemon.pid()?)
            .iter()
            .any(|process| process.command.contains("sleep 1000"))
    );
    Ok(())
}

#[tokio::test]
async fn a_wait_of_a_time_turns_a_slow_command_into_a_job_and_leaves_a_quick_one_alone() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": "echo quick", "wait": "10m"})),
        Reply::tool("bash", json!({"command": "echo slow; sleep 1000", "wait": "1s"})),
        Reply::text("Done."),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    let log = daemon.log(&session)?;
    let ends: Vec<_> = log.iter().filter(|event| event.kind == "tool.completed").collect();
    assert!(ends[0].data.get("job").is_none() && ends[0].text("output").starts_with("quick\n[exit code 0"));
    assert!(
        ends[1].data.get("job").is_some() && ends[1].text("output").starts_with("slow\n[goes on in the background")
    );
    Ok(())
}

#[tokio::test]
async fn jobs_die_with_the_daemon_and_are_recorded_lost_by_the_next_even_of_an_idle_session() -> anyhow::Result<()> {
    let script = Script::by_step([background("sleep 1000"), Reply::text("Started.")]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "start it").await?;
    daemon.turn_end(&session, 1).await?;
    let below = daemon.kill9().await?;
    assert!(
        below.iter().any(|process| process.command.contains("sleep 1000")),
        "{below:?}"
    );
    daemon.start().await?;
    let log = daemon
        .until(&session, "its end", |frame| is(frame, "job.ended"))
        .await?;
    assert_eq!(last(&log)?["data"]["outcome"], "lost");
    let still = |process: &&process::Process| process::find(process.pid).is_some_and(|now| now.began == process.began);
    let left: Vec<_> = below.iter().filter(still).collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

#[tokio::test]
async fn the_ninth_job_is_refused() -> anyhow::Result<()> {
    let mut reply = Reply::default();
    for _ in 0..9 {
        reply = reply.call("bash", json!({"command": "sleep 1000", "wait": false}));
    }
    let server = ModelServer::start(Script::by_step([reply, Reply::text("Enough.")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "start them").await?;
    daemon.turn_end(&session, 1).await?;
    let log = daemon.log(&session)?;
    let ends: Vec<_> = log.iter().filter(|event| event.kind == "tool.completed").collect();
    assert_eq!(ends.iter().filter(|end| end.data.get("job").is_some()).count(), 8);
    let refused = ends
        .last()
        .map(|end| (end.text("outcome"), end.text("output").contains("8 jobs run already")));
    assert_eq!(refused, Some(("not_run", true)));
    Ok(())
}

#[tokio::test]
async fn a_daemon_that_is_about_to_stop_takes_no_command_into_the_background() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |seen| match seen.step() {
        0 => Reply::tool("bash", json!({"command": "touch never", "wait": false})).gate(&held),
        1 => Reply::tool("bash", json!({"command": "sleep 1; echo over", "wait": "10ms"})),
        _ => Reply::text("done"),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    server.request(1).await?;
    let pid = daemon.pid()?;
    let mut peer = daemon.controller().await?;
    peer.call("daemon.stop", json!({"drain_ms": 25000})).await?;
    gate.open();
    tests::process::gone(pid).await?;
    let log = daemon.log(&session)?;
    let ends: Vec<_> = log.iter().filter(|event| event.kind == "tool.completed").collect();
    let [never, stayed] = ends.as_slice() else {
        anyhow::bail!("two calls: {ends:?}")
    };
    assert_eq!(never.text("outcome"), "not_run", "{never:?}");
    assert!(never.text("output").contains("about to stop"), "{never:?}");
    assert!(!daemon.home.project().join("never").exists());
    assert!(
        stayed.text("output").contains("over"),
        "it came to its own end: {stayed:?}"
    );
    assert_eq!(
        (count(&log, "job.ended"), log.last().map(|event| event.text("outcome"))),
        (0, Some("completed"))
    );
    Ok(())
}
