//! The configuration changes while the daemon runs: it counts at once, a mistake changes nothing, and no session that lives may do
//! more than before.

use serde_json::json;
use tests::daemon::{Home, profile};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::{is, last};

/// Replaces the file as an editor does, so that it is another one even within one tick of the file system's clock.
fn write(home: &Home, text: &str) -> anyhow::Result<()> {
    let file = home.config_file();
    let new = file.with_extension("new");
    std::fs::write(&new, text)?;
    Ok(std::fs::rename(new, file)?)
}

#[tokio::test]
async fn a_change_counts_without_a_restart_and_a_mistake_leaves_all_as_it_was() -> anyhow::Result<()> {
    let first = ModelServer::start(Script::by(|_| Reply::text("The first.")))?;
    let second = ModelServer::start(Script::by(|_| Reply::text("The second.")))?;
    let daemon = Home::new()?.config(&profile(&first, Wire::Messages))?.start().await?;
    let session = daemon.session("ask").await?;
    let answer = async || anyhow::Ok(daemon.ctl(&["send", "-s", &session, "who?"]).await?.ok()?);
    assert_eq!(answer().await?.stdout, "The first.\n");

    write(&daemon.home, &profile(&second, Wire::Messages))?;
    assert_eq!(answer().await?.stdout, "The second.\n");

    write(
        &daemon.home,
        &format!("{}[sesion]\nmode = \"all\"\n", profile(&first, Wire::Messages)),
    )?;
    let told = answer().await?;
    assert_eq!(told.stdout, "The second.\n", "what held before still holds");
    let line = profile(&first, Wire::Messages).lines().count() + 1;
    assert!(
        told.stderr.contains(&format!("config.toml:{line}: ")),
        "{}",
        told.stderr
    );
    assert_eq!(told.stderr.matches("config.toml:").count(), 1, "{}", told.stderr);
    assert!(!told.stderr.contains('␊'), "{}", told.stderr);
    answer().await?;
    let log = daemon.log(&session)?;
    let notices = log
        .iter()
        .filter(|event| event.kind == "notice.added" && event.data["code"] == "config");
    assert_eq!(notices.count(), 1, "a session is told of a mistake once");
    let shown = daemon.ctl(&["config", "show"]).await?;
    assert!(
        shown.code == Some(1) && shown.stderr.contains("config.toml:"),
        "{}",
        shown.stderr
    );

    write(&daemon.home, &profile(&first, Wire::Messages))?;
    let mended = answer().await?;
    assert!(
        mended.stdout == "The first.\n" && !mended.stderr.contains("warning"),
        "{}",
        mended.stderr
    );
    Ok(())
}

#[tokio::test]
async fn a_session_that_lives_keeps_its_mode_and_gets_no_tool_more() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by_step([
        Reply::tool("bash", json!({"command": "touch made"})),
        Reply::text("Done."),
    ]))?;
    let config = profile(&server, Wire::Messages);
    let daemon = Home::new()?.config(&config)?.start().await?;
    let params = json!({"cwd": daemon.home.project()});
    let lives = daemon
        .controller()
        .await?
        .call("session.create", params.clone())
        .await?;
    let id = lives["id"].as_str().unwrap_or_default().to_owned();
    daemon.send(&id, "make it").await?;
    let asked = daemon.approval(&id).await?;

    let wider =
        "[session]\nmode = \"all\"\n[tools]\nenabled = [\"time\"]\ndisabled = [\"grep\"]\n[sandbox]\nmode = \"off\"\n";
    write(&daemon.home, &format!("{config}{wider}"))?;
    let fresh = daemon.controller().await?.call("session.create", params).await?;
    assert_eq!((&lives["mode"], &fresh["mode"]), (&json!("ask"), &json!("all")));
    daemon.answer(&asked, "once").await?;
    daemon.turn_end(&id, 1).await?;
    let tools = server.request(2).await?.tools;
    assert!(
        !tools.contains(&"time".to_owned()) && !tools.contains(&"grep".to_owned()),
        "{tools:?}"
    );
    daemon.send(&id, "again").await?;
    assert_eq!(daemon.approval(&id).await?["tool"], "bash", "its mode is still ask");

    let id = fresh["id"].as_str().unwrap_or_default().to_owned();
    daemon.send(&id, "make it").await?;
    let log = daemon
        .until(&id, "its end", |frame| is(frame, "turn.completed"))
        .await?;
    assert_eq!(last(&log)?["data"]["outcome"], "completed");
    let log = daemon.log(&id)?;
    let step = log.iter().find(|event| event.kind == "step.completed");
    assert!(step.is_some_and(|step| step.data["manifest"]["tools"].to_string().contains("\"time\"")));
    Ok(())
}
