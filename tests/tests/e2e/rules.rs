//! Rules: what a command would meet, the user's own file, and what it changes for calls.

use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon};
use tests::log::count;
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::is;

fn runs(command: &str) -> Script {
    Script::by_step([Reply::tool("bash", json!({ "command": command })), Reply::text("done")])
}

async fn verdict(daemon: &TestDaemon, arguments: &[&str]) -> anyhow::Result<Value> {
    let all: Vec<&str> = ["rules", "test", "--json"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    daemon.ctl(&all).await?.ok()?.json()
}

#[tokio::test]
async fn a_command_is_judged_without_running_it() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    for (arguments, expected) in [
        (&["cat README.md"][..], "allow"),
        (&["touch made"], "ask"),
        (&["--mode", "all", "touch made"], "allow"),
        (&["--mode", "none", "touch made"], "deny"),
        (&["rm -rf ~"], "blocked"),
        (&["--mode", "all", "rm -rf ~"], "blocked"),
        (&["--", "-x"], "ask"),
    ] {
        let verdict = verdict(&daemon, arguments).await?;
        assert_eq!(verdict["verdict"], expected, "{arguments:?}: {verdict}");
        assert!(
            verdict["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
            "{verdict}"
        );
        assert_eq!(verdict.as_object().map(serde_json::Map::len), Some(3), "{verdict}");
    }
    assert!(!daemon.home.project().join("made").exists());
    let told = daemon.ctl(&["rules", "test", "rm -rf ~"]).await?.ok()?;
    assert!(told.stdout.starts_with("blocked: "), "{}", told.stdout);
    Ok(())
}

#[tokio::test]
async fn rules_are_added_listed_tried_and_removed() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    daemon.ctl(&["rules", "add", "allow", "touch", "made"]).await?.ok()?;
    daemon
        .ctl(&["rules", "add", "deny", "--everywhere", "git push"])
        .await?
        .ok()?;
    let tried = verdict(&daemon, &["touch made"]).await?;
    assert_eq!(tried["verdict"], "allow", "{tried}");
    assert!(
        tried["rule"]
            .as_str()
            .is_some_and(|rule| rule.starts_with("allow bash: touch made")),
        "{tried}"
    );
    assert_eq!(
        verdict(&daemon, &["touch made other && touch b"]).await?["verdict"],
        "ask"
    );
    assert_eq!(
        verdict(&daemon, &["--mode", "all", "git push"]).await?["verdict"],
        "deny"
    );

    let listed = daemon.ctl(&["rules", "list", "--json"]).await?.ok()?.json()?;
    let project = daemon.home.project().canonicalize()?;
    assert_eq!(
        (
            &listed[0]["number"],
            &listed[0]["rule"]["root"],
            &listed[1]["rule"]["root"]
        ),
        (&json!(1), &json!(project), &Value::Null),
        "{listed}"
    );
    daemon.ctl(&["rules", "remove", "1"]).await?.ok()?;
    assert_eq!(verdict(&daemon, &["touch made"]).await?["verdict"], "ask");
    assert_eq!(daemon.ctl(&["rules", "remove", "9"]).await?.code, Some(8));
    Ok(())
}

#[tokio::test]
async fn an_example_that_does_not_hold_keeps_a_rule_out() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let ran = daemon
        .ctl(&["rules", "add", "--match", "cargo build", "allow", "cargo", "test"])
        .await?;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cargo build"), "{}", ran.stderr);
    let listed = daemon.ctl(&["rules", "list", "--json"]).await?.ok()?.json()?;
    assert_eq!(listed, json!([]));
    Ok(())
}

#[tokio::test]
async fn a_rule_of_another_project_says_nothing_here() -> anyhow::Result<()> {
    let daemon = Home::new()?.config("")?.start().await?;
    let rules = daemon.home.config_file().with_file_name("rules.toml");
    std::fs::write(
        &rules,
        "[[rule]]\ndecision = \"allow\"\ncommand = \"touch\"\nroot = \"/somewhere/else\"\n",
    )?;
    assert_eq!(verdict(&daemon, &["touch made"]).await?["verdict"], "ask");
    Ok(())
}

#[tokio::test]
async fn a_rule_written_by_hand_counts_for_the_next_call() -> anyhow::Result<()> {
    let server = ModelServer::start(runs("touch made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let rules = daemon.home.config_file().with_file_name("rules.toml");
    std::fs::write(&rules, "[[rule]]\ndecision = \"allow\"\ncommand = \"touch\"\n")?;
    daemon.send(&session, "make it").await?;
    daemon.turn_end(&session, 1).await?;
    assert!(daemon.home.project().join("made").exists());
    assert_eq!(count(&daemon.log(&session)?, "approval.requested"), 0);
    Ok(())
}

#[tokio::test]
async fn a_denied_command_is_denied_in_mode_all_too() -> anyhow::Result<()> {
    let server = ModelServer::start(runs("touch made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.ctl(&["rules", "add", "deny", "touch"]).await?.ok()?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "make it").await?;
    let events = daemon
        .until(&session, "its refusal", |frame| is(frame, "tool.completed"))
        .await?;
    assert_eq!(
        events.last().map(|event| &event["data"]["outcome"]),
        Some(&json!("denied"))
    );
    assert!(!daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_the_file_is_told_with_its_line() -> anyhow::Result<()> {
    let daemon = Home::new()?.config("")?.start().await?;
    let rules = daemon.home.config_file().with_file_name("rules.toml");
    std::fs::write(&rules, "[[rule]]\ndecision = \"allow\"\ncomand = \"ls\"\n")?;
    let ran = daemon.ctl(&["rules", "list"]).await?;
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("rules.toml:3: ") && ran.stderr.contains("did you mean `command`?"),
        "{}",
        ran.stderr
    );
    Ok(())
}
