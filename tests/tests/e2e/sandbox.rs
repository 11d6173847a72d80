//! The sandbox through the daemon: what runs unasked can do no harm, and leaving the sandbox always takes a person.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tests::daemon::{Home, TestDaemon, profile};
use tests::log::count;
use tests::model_server::{ModelServer, Reply, Script, Wire};

/// Whether commands are sandboxed here; says so if not.
async fn is_sandboxed(daemon: &TestDaemon) -> anyhow::Result<bool> {
    let doctor = daemon.ctl(&["doctor", "--json"]).await?.ok()?.json()?;
    let full = doctor["sandbox"] == "workspace-write" && doctor["checks"][0]["standing"] == "good";
    if !full {
        tests::skip::note(&format!("no full sandbox here: {doctor}"));
    }
    Ok(full)
}

fn bash(command: &str) -> Reply {
    Reply::tool("bash", json!({ "command": command }))
}

fn git(project: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let done = Command::new("git").args(arguments).current_dir(project).output()?;
    anyhow::ensure!(
        done.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(())
}

fn outputs(daemon: &TestDaemon, session: &str) -> anyhow::Result<Vec<String>> {
    let log = daemon.log(session)?;
    Ok(log
        .iter()
        .filter(|event| event.kind == "tool.completed")
        .map(|event| event.text("output").to_owned())
        .collect())
}

#[tokio::test]
async fn to_leave_the_sandbox_asks_in_every_mode_and_is_allowed_once() -> anyhow::Result<()> {
    let leaving = json!({"command": "mkdir -p .agent/x", "outside_sandbox": true});
    let script = Script::by_step([
        bash("mkdir -p .agent/x"),
        Reply::tool("bash", leaving.clone()),
        Reply::tool("bash", leaving),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    if !is_sandboxed(&daemon).await? {
        return Ok(());
    }
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    let approval = daemon.approval(&session).await?;
    let refused = outputs(&daemon, &session)?;
    assert!(
        refused.len() == 1 && refused[0].contains("outside_sandbox: true"),
        "{refused:?}"
    );
    assert!(!daemon.home.project().join(".agent/x").exists());
    assert!(
        approval["reason"]
            .as_str()
            .unwrap_or_default()
            .starts_with("It runs outside the sandbox: "),
        "{approval}"
    );
    assert_eq!(approval["choices"], json!(["once", "deny"]));
    daemon.answer(&approval, "once").await?;
    let again = daemon.approval(&session).await?;
    assert_ne!(again["id"], approval["id"], "once was for once");
    assert!(daemon.home.project().join(".agent/x").exists());
    daemon.answer(&again, "deny").await?;
    daemon.turn_end(&session, 1).await?;
    Ok(())
}

#[tokio::test]
async fn only_a_command_that_sought_a_network_is_told_that_there_is_none() -> anyhow::Result<()> {
    let script = Script::by_step([
        bash("grep zzz README.md"),
        bash("exec 3<>/dev/tcp/192.0.2.1/80"),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let config = format!("{}[sandbox]\nnetwork = false\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    if !is_sandboxed(&daemon).await? {
        return Ok(());
    }
    std::fs::write(daemon.home.project().join("README.md"), "plain\n")?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    let said = outputs(&daemon, &session)?;
    let [unmatched, unreached] = said.as_slice() else {
        anyhow::bail!("{said:?}");
    };
    assert!(
        unmatched.contains("[ran in the sandbox (") && !unmatched.contains("outside_sandbox"),
        "{unmatched}"
    );
    assert!(
        unreached.contains("has no network. If that") && unreached.contains("outside_sandbox: true"),
        "{unreached}"
    );
    Ok(())
}

#[tokio::test]
async fn a_hostile_repository_runs_nothing_in_commands_that_are_not_asked_about() -> anyhow::Result<()> {
    let looks = [
        "git status",
        "git diff",
        "git log -p",
        "git show",
        "git -C docs status",
        "git blame f.txt",
        "git ls-files -m",
    ];
    let script = Script::by_step(looks.iter().map(|look| bash(look)).chain([Reply::text("done")]));
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let (project, marker) = (daemon.home.project(), daemon.home.path().join("marker"));
    let run = format!("touch {}", marker.display());
    git(&project, &["init", "-q"])?;
    for (key, value) in [("user.email", "a@b"), ("user.name", "a")] {
        git(&project, &["config", key, value])?;
    }
    std::fs::write(project.join("f.txt"), "one\n")?;
    std::fs::write(project.join(".gitattributes"), "* filter=x diff=x\n")?;
    git(&project, &["add", "."])?;
    git(&project, &["commit", "-q", "-m", "first"])?;
    git(&project, &["clone", "-q", "--bare", ".", "docs"])?;
    let keys = [
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.process",
        "diff.x.textconv",
        "diff.external",
        "core.pager",
        "alias.status",
    ];
    for key in keys {
        git(&project, &["config", key, &run])?;
        git(&project, &["-C", "docs", "config", key, &run])?;
    }
    std::fs::write(project.join("f.txt"), "two\n")?;
    let session = daemon.session("none").await?;
    daemon.send(&session, "look").await?;
    daemon.turn_end(&session, 1).await?;
    assert!(!marker.exists(), "the repository's program ran");
    assert_eq!(outputs(&daemon, &session)?.len(), looks.len());
    Ok(())
}

#[tokio::test]
async fn a_plain_repository_is_looked_at_unasked_and_secrets_stay_out_of_searches() -> anyhow::Result<()> {
    let script = Script::by_step([
        bash("git status --short"),
        bash("grep -rh KEY ."),
        bash("cat .env"),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    if !is_sandboxed(&daemon).await? {
        return Ok(());
    }
    let project = daemon.home.project();
    git(&project, &["init", "-q"])?;
    std::fs::write(project.join(".env"), "KEY=secret-1\n")?;
    std::fs::write(project.join("f.txt"), "KEY=plain\n")?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "look").await?;
    let approval = daemon.approval(&session).await?;
    assert_eq!(approval["action"]["command"], "cat .env");
    let seen = outputs(&daemon, &session)?;
    assert!(
        seen.len() == 2 && seen[0].contains("?? f.txt") && seen[1].contains("KEY=plain"),
        "{seen:?}"
    );
    assert!(!seen[1].contains("secret-1"), "{seen:?}");
    let requested: Vec<Value> = daemon
        .log(&session)?
        .iter()
        .filter(|event| event.kind == "tool.requested")
        .map(|event| event.data.clone())
        .collect();
    assert_eq!(
        (
            &requested[0]["verdict"]["read_only"],
            &requested[2]["verdict"]["read_only"]
        ),
        (&json!(true), &Value::Null)
    );
    assert_eq!(count(&daemon.log(&session)?, "approval.requested"), 1);
    daemon.answer(&approval, "deny").await?;
    daemon.turn_end(&session, 1).await?;
    Ok(())
}

#[tokio::test]
async fn doctor_names_each_thing_that_the_machine_can_or_cannot_enforce() -> anyhow::Result<()> {
    let daemon = tests::daemon::Home::new()?.start().await?;
    let found = daemon.ctl(&["doctor", "--json"]).await?.ok()?.json()?;
    let text = daemon.ctl(&["doctor"]).await?.ok()?.stdout;
    let checks = found["checks"].as_array().cloned().unwrap_or_default();
    assert!(!checks.is_empty(), "{found}");
    for check in checks {
        let name = check["name"].as_str().unwrap_or_default();
        assert!(!name.is_empty() && text.contains(name), "{name:?} is not in: {text}");
        assert!(["good", "reduced", "missing"].contains(&check["standing"].as_str().unwrap_or_default()));
    }
    assert!(["off", "read-only", "workspace-write"].contains(&found["sandbox"].as_str().unwrap_or_default()));
    Ok(())
}
