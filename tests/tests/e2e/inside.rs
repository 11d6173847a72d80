//! What a tool starts: it may not answer for the person, and it gets the person's environment without keys.

use serde_json::json;
use tests::bins::bins;
use tests::daemon::{Home, TestDaemon};
use tests::log::count;
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::is;

#[tokio::test]
async fn a_command_cannot_answer_an_approval_however_it_is_wrapped() -> anyhow::Result<()> {
    let ctl = bins()?.agentctl();
    let ctl = ctl.display();
    let attempts = [
        format!("{ctl} approve"),
        format!("setsid -w {ctl} approve"),
        format!("nohup {ctl} approve"),
        format!("sh -c '{ctl} approve'"),
        format!(
            "(setsid {ctl} approve > answer 2>&1 &) ; until grep -q error: answer 2>/dev/null; do :; done; cat answer; false"
        ),
        format!("{ctl} mode last all"),
        format!("{ctl} daemon stop"),
        format!("{ctl} send 'a session of my own'"),
    ];
    let count_of_attempts = attempts.len();
    // The second session runs the attempts while an approval of the first one waits.
    let script = Script::by(
        move |seen| match (seen.user_texts().first(), attempts.get(seen.step())) {
            (Some(&"wait"), _) => Reply::tool("bash", json!({"command": "touch made"})),
            (_, Some(attempt)) => Reply::tool("bash", json!({ "command": attempt })),
            (_, None) => Reply::text("done"),
        },
    );
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let asking = daemon.session("ask").await?;
    daemon.send(&asking, "wait").await?;
    daemon.approval(&asking).await?;
    let trying = daemon.session("all").await?;
    daemon.send(&trying, "try").await?;
    daemon.turn_end(&trying, 1).await?;

    let log = daemon.log(&trying)?;
    let results: Vec<_> = log.iter().filter(|event| event.kind == "tool.completed").collect();
    assert_eq!(results.len(), count_of_attempts);
    for result in results {
        assert_ne!(result.text("outcome"), "ok", "{result:?}");
    }
    assert_eq!(count(&daemon.log(&asking)?, "approval.resolved"), 0);
    assert!(!daemon.home.project().join("made").exists());
    assert_eq!(
        tests::log::sessions(&daemon.home.state_dir())?.len(),
        2,
        "no session was made from inside"
    );
    Ok(())
}

#[tokio::test]
async fn a_command_sees_its_clients_environment_and_no_key() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool(
            "bash",
            json!({"command": "printenv; cat /proc/$PPID/environ 2>/dev/null; true"}),
        ),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let profile = format!(
        "default_model = \"m\"\n[models.m]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"m\"\napi_key_env = \"MODEL_KEY\"\n",
        server.base_url(Wire::Chat)
    );
    // The daemon is started by one client with one environment, the session made by another with another.
    let home = Home::new()?.config(&profile)?;
    let mut first = home.command(bins()?.agentctl());
    first
        .env("LANG", "the-daemons")
        .env("OTHER_SECRET", "s3cret")
        .args(["ls"]);
    tests::daemon::run(first, "the first client").await?.ok()?;
    let daemon = TestDaemon { home };

    let mut second = daemon.home.command(bins()?.agentctl());
    second
        .env("LANG", "the-clients")
        .env("MODEL_KEY", "sk-abc123")
        .env("ANTHROPIC_API_KEY", "sk-ant")
        .env("LD_PRELOAD_X", "x");
    second
        .env("AGENTD_SOCKET", daemon.socket()?)
        .args(["send", "--mode", "all", "look"]);
    tests::daemon::run(second, "the second client").await?.ok()?;
    let output = server.request(2).await?.outputs().join("\n");
    assert!(output.contains("LANG=the-clients"), "{output}");
    assert!(
        output.contains(&format!("HOME={}", daemon.home.path().display())),
        "{output}"
    );
    for hidden in [
        "sk-abc123",
        "sk-ant",
        "s3cret",
        "the-daemons",
        "AGENTD_SOCKET",
        "LD_PRELOAD_X",
    ] {
        assert!(!output.contains(hidden), "{hidden} is in: {output}");
    }
    Ok(())
}

#[tokio::test]
async fn nothing_a_command_starts_outlives_the_daemon() -> anyhow::Result<()> {
    let command = "(setsid sleep 4321 &) ; (nohup sleep 4321 > /dev/null 2>&1 &) ; echo started; sleep 4321";
    let server = ModelServer::start(Script::by_step([Reply::tool("bash", json!({ "command": command }))]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "start").await?;
    watcher
        .until("output", |frame| is(frame, "delta") && frame["stream"] == "output")
        .await?;
    let before = tests::process::descendants(daemon.pid()?);
    assert!(
        before
            .iter()
            .filter(|process| process.command.contains("sleep 4321"))
            .count()
            >= 3,
        "{before:?}"
    );
    daemon.kill9().await?;
    for process in before {
        tests::process::gone(process.pid).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_destructive_command_is_blocked_in_every_mode() -> anyhow::Result<()> {
    // What is judged is never run: should the guard fail, the `false` before it keeps the machine whole.
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": "false && rm -rf /"})),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    for mode in ["ask", "edits", "all", "none"] {
        let session = daemon.session(mode).await?;
        daemon.send(&session, "clean up").await?;
        daemon.turn_end(&session, 1).await?;
        let log = daemon.log(&session)?;
        let asked = log.iter().find(|event| event.kind == "tool.requested");
        assert_eq!(
            asked.map(|event| event.data["verdict"]["decision"].clone()),
            Some(json!("blocked")),
            "{mode}"
        );
        assert_eq!(count(&log, "tool.started"), 0, "{mode}");
    }
    Ok(())
}
