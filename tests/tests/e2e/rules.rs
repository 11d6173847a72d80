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
async fn a_test_says_what_a_session_then_meets() -> anyhow::Result<()> {
    let commands = [
        "ls -la",
        "cat README.md | wc -l",
        "cat .env",
        "grep -r x .",
        "git status",
        "git log --oneline",
        "no-such-program --version",
        "touch made",
        "touch made && git push origin main",
        "echo hi > /tmp/elsewhere",
        "find . -delete",
        "rm -rf ~",
        "sh -c 'ls'",
        "cargo test",
        "./script.sh",
        "cd / && ls",
    ];
    let calls = commands.iter().fold(Reply::default(), |reply, command| {
        reply.call("bash", json!({ "command": command }))
    });
    let server = ModelServer::start(Script::by_step([calls, Reply::text("Done.")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let project = daemon.home.project();
    std::fs::create_dir_all(project.join(".agent"))?;
    let asks = "[[rule]]\ndecision = \"ask\"\ncommand = \"ls\"\n";
    std::fs::write(project.join(".agent/config.toml"), asks)?;
    std::fs::write(project.join("script.sh"), "ls\n")?;
    daemon.ctl(&["rules", "add", "allow", "cargo", "test"]).await?.ok()?;
    daemon.ctl(&["rules", "add", "deny", "git push"]).await?.ok()?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    daemon.approval(&session).await?;
    let log = daemon.log(&session)?;
    let met: Vec<&Value> = log
        .iter()
        .filter(|event| event.kind == "tool.requested")
        .map(|event| &event.data["verdict"])
        .collect();
    assert_eq!(met.len(), commands.len());
    for (command, met) in commands.iter().zip(met) {
        let told = verdict(&daemon, &["--mode", "ask", "--", command]).await?;
        assert_eq!(
            (&told["verdict"], &told["reason"], &told["rule"]),
            (
                &met["decision"],
                &met["reason"],
                met.get("rule").unwrap_or(&Value::Null)
            ),
            "{command}"
        );
    }
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

const DENY_LS: &str = "[[rule]]\ndecision = \"deny\"\ncommand = \"ls\"\n";
const BROKEN: &str = "[[rule]]\ndecision = \"alow\"\ncommand = \"id\"\n";

#[tokio::test]
async fn a_mistake_in_the_rules_is_told_by_each_command_and_in_the_session() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.ctl(&["rules", "add", "deny", "git", "push"]).await?.ok()?;
    let rules = daemon.home.config_file().with_file_name("rules.toml");
    std::fs::write(&rules, format!("{DENY_LS}{BROKEN}"))?;
    for command in [
        &["ls"][..],
        &["send", "-s", &session, "go"],
        &["config", "show"],
        &["tools"],
    ] {
        let told = daemon.ctl(command).await?.ok()?.stderr;
        assert!(
            told.contains("rules.toml:5: ") && told.contains("before still count") && told.contains("allow, ask, deny"),
            "{command:?}: {told}"
        );
        assert_eq!(told.matches("rules.toml:5").count(), 1, "{command:?}: {told}");
        assert!(!told.contains('␊'), "{told}");
    }
    let log = daemon.log(&session)?;
    let told =
        |event: &tests::log::Logged| event.kind == "notice.added" && event.text("text").contains("rules.toml:5: ");
    assert_eq!(log.iter().filter(|event| told(event)).count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_start_with_broken_rules_asks_for_every_call_until_they_are_mended() -> anyhow::Result<()> {
    let server = ModelServer::start(runs("ls"))?;
    let home = Home::new()?.config(&tests::daemon::profile(&server, Wire::Messages))?;
    let rules = home.config_file().with_file_name("rules.toml");
    std::fs::write(&rules, format!("{DENY_LS}{BROKEN}"))?;
    let daemon = home.start().await?;
    let told = daemon.ctl(&["ls"]).await?.ok()?.stderr;
    assert!(
        told.contains("every call asks") && told.contains("rules.toml:5: "),
        "{told}"
    );
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    let asked = daemon.approval(&session).await?;
    assert!(
        asked["reason"].as_str().is_some_and(|reason| reason.contains("rules")),
        "{asked}"
    );
    assert_eq!(asked["choices"], json!(["once", "deny"]));
    std::fs::write(&rules, DENY_LS)?;
    let mended = daemon.ctl(&["ls"]).await?.ok()?.stderr;
    assert!(!mended.contains("warning"), "{mended}");
    assert_eq!(verdict(&daemon, &["ls"]).await?["verdict"], "deny");
    Ok(())
}

#[tokio::test]
async fn a_rule_that_could_never_speak_is_refused_with_what_to_do() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    for (arguments, code, hint) in [
        (&["--tool", "nosuch", "allow", "x"][..], 1, "there are read_file"),
        (&["--tool", "read_file", "allow", "ls"], 1, "--path GLOB"),
        (&["--host", "http://x.example/", "allow"], 1, "--host x.example"),
        (&["allow", "$(id)"], 1, "--exact"),
        (&["allow", "cargo", "test", "--everywhere"], 2, "options come first"),
        (&["allow", "cargo", "test", "--tool=bash"], 2, "options come first"),
    ] {
        let all: Vec<&str> = ["rules", "add"].into_iter().chain(arguments.iter().copied()).collect();
        let ran = daemon.ctl(&all).await?;
        assert!(
            ran.code == Some(code) && ran.stderr.contains(hint),
            "{arguments:?}: {} {:?}",
            ran.stderr,
            ran.code
        );
    }
    assert_eq!(daemon.ctl(&["rules", "list", "--json"]).await?.ok()?.json()?, json!([]));
    let told = daemon
        .ctl(&["rules", "add", "allow", "--", "tool", "--everywhere"])
        .await?
        .ok()?;
    assert!(
        told.stderr.contains("allow bash: tool --everywhere … for "),
        "{}",
        told.stderr
    );
    let told = daemon
        .ctl(&["rules", "add", "--everywhere", "allow", "cargo", "test"])
        .await?
        .ok()?;
    assert!(told.stderr.contains("allow bash: cargo test … ("), "{}", told.stderr);
    Ok(())
}

#[tokio::test]
async fn a_word_that_mixes_scripts_asks_by_name_and_makes_no_rule() -> anyhow::Result<()> {
    let server = ModelServer::start(runs("\u{441}url http://x"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    let asked = daemon.approval(&session).await?;
    assert!(
        asked["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("`\u{441}url`")),
        "{asked}"
    );
    assert_eq!(asked["choices"], json!(["once", "deny"]));
    Ok(())
}

fn project_file(home: &Home, text: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(home.project().join(".agent"))?;
    Ok(std::fs::write(home.project().join(".agent/config.toml"), text)?)
}

#[tokio::test]
async fn a_project_narrows_at_once_and_widens_only_when_trusted() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let deny = "[[rule]]\ndecision = \"deny\"\ncommand = \"ls\"\n";
    let allow = "[[rule]]\ndecision = \"allow\"\ncommand = \"touch\"\n";
    project_file(&daemon.home, &format!("[session]\nmode = \"all\"\n{deny}{allow}"))?;
    assert_eq!(verdict(&daemon, &["ls"]).await?["verdict"], "deny");
    assert_eq!(verdict(&daemon, &["touch made"]).await?["verdict"], "ask");
    let session = daemon.ctl(&["new"]).await?.ok()?.stdout;
    let mode = daemon.ctl(&["mode", session.trim()]).await?.ok()?.stdout;
    assert_eq!(mode.trim(), "ask", "a file that nobody trusts opens nothing");

    assert_eq!(
        daemon.ctl(&["trust"]).await?.code,
        Some(2),
        "nobody is there to be asked"
    );
    let trusted = daemon.ctl(&["trust", "--yes"]).await?.ok()?;
    assert!(
        trusted.stderr.contains("mode = \"all\""),
        "what is trusted is shown: {}",
        trusted.stderr
    );
    assert_eq!(verdict(&daemon, &["touch made"]).await?["verdict"], "allow");
    assert_eq!(verdict(&daemon, &["ls"]).await?["verdict"], "deny");
    project_file(&daemon.home, &format!("# other bytes\n{allow}"))?;
    assert_eq!(verdict(&daemon, &["touch made"]).await?["verdict"], "ask");
    Ok(())
}

#[tokio::test]
async fn what_does_not_count_of_a_projects_file_is_told_once() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    project_file(
        &daemon.home,
        "[models.scripted]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"x\"\napi_key_command = \"touch ran\"\n",
    )?;
    let session = daemon.session("ask").await?;
    for turn in 1..=2 {
        daemon.send(&session, "go").await?;
        let end = daemon.turn_end(&session, turn).await?;
        assert_eq!(
            end["data"]["outcome"], "completed",
            "the user's own profile answers: {end}"
        );
    }
    let log = daemon.log(&session)?;
    let told: Vec<_> = log
        .iter()
        .filter(|event| event.kind == "notice.added" && event.text("code") == "project_config")
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told.iter()
            .all(|notice| notice.text("text").contains("`models` is never read")),
        "{told:?}"
    );
    assert!(!daemon.home.project().join("ran").exists());
    Ok(())
}

#[tokio::test]
async fn a_deny_rule_that_a_session_takes_from_its_file_still_holds_for_it() -> anyhow::Result<()> {
    let server = ModelServer::start(runs("touch made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    project_file(&daemon.home, "[[rule]]\ndecision = \"deny\"\ncommand = \"touch\"\n")?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "make it").await?;
    daemon.turn_end(&session, 1).await?;
    project_file(&daemon.home, "")?;
    daemon.send(&session, "make it").await?;
    daemon.turn_end(&session, 2).await?;
    assert!(!daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn each_value_in_force_says_where_it_comes_from() -> anyhow::Result<()> {
    let text = "[models.mine]\nwire = \"demo\"\napi_key = \"sk-secret\"\n[session]\nmax_steps = 7\n";
    let daemon = Home::new()?.config(text)?.start().await?;
    project_file(&daemon.home, "[session]\nmode = \"none\"\n")?;
    let shown = daemon.ctl(&["config", "show", "--json"]).await?.ok()?;
    assert!(!shown.stdout.contains("sk-secret"), "{}", shown.stdout);
    let view = shown.json()?;
    let from = |key: &str| {
        let settings = view["settings"].as_array().cloned().unwrap_or_default();
        let found = settings
            .into_iter()
            .find(|setting| setting["key"] == key)
            .unwrap_or_default();
        found["from"].as_str().unwrap_or_default().to_owned()
    };
    assert!(from("session.max_steps").ends_with("config.toml:5"), "{view}");
    assert!(from("session.mode").ends_with("p/.agent/config.toml:2"), "{view}");
    assert_eq!(from("limits.retries"), "default");
    daemon.ctl(&["config", "set", "session.mode", "edits"]).await?.ok()?;
    let path = daemon.ctl(&["config", "path"]).await?.ok()?.stdout;
    assert!(std::fs::read_to_string(path.trim())?.contains("mode = \"edits\""));
    let wrong = daemon.ctl(&["config", "set", "session.moed", "edits"]).await?;
    assert!(
        wrong.code == Some(1) && wrong.stderr.contains("did you mean `mode`?"),
        "{}",
        wrong.stderr
    );
    Ok(())
}

#[tokio::test]
async fn a_timed_mode_says_when_it_ends_and_gives_way_to_the_one_before() -> anyhow::Result<()> {
    let server = ModelServer::start(runs("touch made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let told = daemon.ctl(&["mode", &session, "1h"]).await?.ok()?;
    assert!(told.stdout.starts_with("all for "), "{}", told.stdout);
    daemon.ctl(&["mode", &session, "300ms"]).await?.ok()?;
    let ended = |frame: &Value| is(frame, "session.changed") && frame["data"]["mode"] == "ask";
    let events = daemon.until(&session, "the end of the mode", ended).await?;
    let by = events
        .last()
        .map(|event| event["data"]["by"].clone())
        .unwrap_or_default();
    assert!(by.to_string().contains("time"), "{by}");
    daemon.send(&session, "make it").await?;
    daemon.approval(&session).await?;
    assert!(!daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_timed_mode_is_over_after_a_restart_too() -> anyhow::Result<()> {
    let server = ModelServer::start(runs("touch made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let params = json!({"cwd": daemon.home.project(), "mode": "all", "mode_for_ms": 1});
    let session = daemon.controller().await?.call("session.create", params).await?;
    let session = session["id"].as_str().unwrap_or_default().to_owned();
    daemon.kill9().await?;
    daemon.start().await?;
    daemon.send(&session, "make it").await?;
    daemon.approval(&session).await?;
    let log = daemon.log(&session)?;
    assert!(
        log.iter()
            .any(|event| event.kind == "session.changed" && event.text("mode") == "ask")
    );
    Ok(())
}
