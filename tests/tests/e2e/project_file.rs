//! What a project's file restricts: at once, for sessions that begin and for those that live, which are never given it back.

use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon, profile};
use tests::model_server::{ModelServer, Reply, Script, Wire};

fn project_says(home: &Home, text: &str) -> anyhow::Result<()> {
    let file = home.project().join(".agent/config.toml");
    std::fs::create_dir_all(home.project().join(".agent"))?;
    std::fs::write(file.with_extension("new"), text)?;
    Ok(std::fs::rename(file.with_extension("new"), &file)?)
}

fn calls(command: &str) -> Script {
    Script::by_step([Reply::tool("bash", json!({ "command": command })), Reply::text("done")])
}

/// The sandbox that clients are shown.
async fn sandbox_of(daemon: &TestDaemon, session: &str) -> anyhow::Result<Value> {
    let mut peer = daemon.observer().await?;
    peer.attach(session, None).await?;
    let frames = peer.until("the snapshot", |frame| frame["kind"] == "snapshot").await?;
    Ok(frames.last().map(|frame| frame["sandbox"].clone()).unwrap_or_default())
}

async fn runs(daemon: &TestDaemon, session: &str, turn: usize) -> anyhow::Result<String> {
    daemon.send(session, "go").await?;
    daemon.turn_end(session, turn).await?;
    let log = daemon.log(session)?;
    let last = log.iter().rfind(|event| event.kind == "tool.completed");
    Ok(last.map(|call| call.text("outcome").to_owned()).unwrap_or_default())
}

/// Whether commands are sandboxed here; says so if not.
async fn is_sandboxed(daemon: &TestDaemon) -> anyhow::Result<bool> {
    let doctor = daemon.ctl(&["doctor", "--json"]).await?.ok()?.json()?;
    let sandboxed = doctor["sandbox"] != "off";
    if !sandboxed {
        tests::skip::note(&format!("no sandbox here: {doctor}"));
    }
    Ok(sandboxed)
}

#[tokio::test]
async fn a_project_makes_the_sandbox_stricter_for_sessions_that_begin_and_those_that_live() -> anyhow::Result<()> {
    let server = ModelServer::start(calls("touch made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    if !is_sandboxed(&daemon).await? {
        return Ok(());
    }
    let made = daemon.home.project().join("made");
    let lives = daemon.session("all").await?;
    assert_eq!(runs(&daemon, &lives, 1).await?, "ok");
    std::fs::remove_file(&made)?;

    project_says(
        &daemon.home,
        "[sandbox]\nmode = \"read-only\"\nnetwork = false\ncaches = \"private\"\n",
    )?;
    let begins = daemon.session("all").await?;
    for (session, turn) in [(&lives, 2), (&begins, 1)] {
        assert_eq!(runs(&daemon, session, turn).await?, "error");
        assert!(!made.exists());
        let sandbox = sandbox_of(&daemon, session).await?;
        assert_eq!(
            (&sandbox["mode"], &sandbox["network"]),
            (&json!("read-only"), &json!(false))
        );
    }
    let shown = daemon.ctl(&["config", "show", "--json"]).await?.ok()?.json()?;
    let settings = shown["settings"].as_array().cloned().unwrap_or_default();
    for (key, value, line) in [
        ("sandbox.mode", "\"read-only\"", 2),
        ("sandbox.network", "false", 3),
        ("sandbox.caches", "\"private\"", 4),
    ] {
        let setting = settings
            .iter()
            .find(|setting| setting["key"] == key)
            .cloned()
            .unwrap_or_default();
        let from = setting["from"].as_str().unwrap_or_default();
        assert!(
            setting["value"] == value && from.ends_with(&format!("p/.agent/config.toml:{line}")),
            "{setting}"
        );
    }

    project_says(&daemon.home, "")?;
    for (session, turn) in [(&lives, 3), (&begins, 2)] {
        assert_eq!(
            runs(&daemon, session, turn).await?,
            "error",
            "a session that lives gets nothing back"
        );
    }
    let fresh = daemon.session("all").await?;
    assert_eq!(runs(&daemon, &fresh, 1).await?, "ok");
    assert!(made.exists());
    Ok(())
}

#[tokio::test]
async fn a_wider_sandbox_counts_once_it_is_trusted_and_for_sessions_that_begin_then() -> anyhow::Result<()> {
    let server = ModelServer::start(calls("touch made"))?;
    let config = format!("{}[sandbox]\nmode = \"read-only\"\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    if !is_sandboxed(&daemon).await? {
        return Ok(());
    }
    project_says(&daemon.home, "[sandbox]\nmode = \"workspace-write\"\n")?;
    let before = daemon.session("all").await?;
    assert_eq!(runs(&daemon, &before, 1).await?, "error");
    daemon.ctl(&["trust", "--yes"]).await?.ok()?;
    assert_eq!(runs(&daemon, &before, 2).await?, "error");
    let after = daemon.session("all").await?;
    assert_eq!(runs(&daemon, &after, 1).await?, "ok");
    daemon.ctl(&["trust", "--revoke"]).await?.ok()?;
    assert_eq!(runs(&daemon, &after, 2).await?, "error", "what was lent is taken back");
    Ok(())
}

#[tokio::test]
async fn what_a_file_restricts_in_mid_turn_counts_for_the_calls_of_the_next_reply() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by_step([
        Reply::tool("bash", json!({"command": "touch one"})),
        Reply::tool("bash", json!({"command": "touch two"})),
        Reply::text("done"),
    ]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let project = daemon.home.project();
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    let asked = daemon.approval(&session).await?;
    project_says(&daemon.home, "[[rule]]\ndecision = \"deny\"\ncommand = \"touch two\"\n")?;
    daemon.answer(&asked, "once").await?;
    daemon.turn_end(&session, 1).await?;
    assert!(project.join("one").exists() && !project.join("two").exists());
    let log = daemon.log(&session)?;
    let last = log.iter().rfind(|event| event.kind == "tool.completed");
    assert!(last.is_some_and(|call| call.text("outcome") == "denied"), "{last:?}");
    Ok(())
}
