//! `agentctl` in scripts: what goes to stdout, the JSON forms, the exit codes, short ids.

use serde_json::{Value, json};
use tests::daemon::{TestDaemon, ended};
use tests::model_server::{Gate, ModelServer, Reply, Script, Wire};
use tokio::io::AsyncWriteExt;

fn result(stdout: &str) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(stdout.lines().last().unwrap_or_default())?)
}

#[tokio::test]
async fn stdout_is_the_text_of_the_last_step_and_nothing_else() -> anyhow::Result<()> {
    let first = Reply::default()
        .reasoning("thinking")
        .then_text("I will look.")
        .call("bash", json!({"command": "echo loud"}));
    let server = ModelServer::start(Script::by_step([first, Reply::text("It is\nthere.")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let ran = daemon.ctl(&["send", "--mode", "all", "look"]).await?.ok()?;
    assert_eq!(ran.stdout, "It is\nthere.\n");
    Ok(())
}

#[tokio::test]
async fn json_is_a_frame_a_line_and_the_last_line_is_the_result() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by_step([Reply::text("one two").deltas(4)]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let plain = daemon.ctl(&["send", "--json", "go"]).await?.ok()?;
    let kinds = |text: &str| -> anyhow::Result<Vec<String>> {
        text.lines()
            .map(|line| {
                Ok(serde_json::from_str::<Value>(line)?["kind"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned())
            })
            .collect()
    };
    let seen = kinds(&plain.stdout)?;
    assert!(
        !seen.contains(&"delta".to_owned()) && seen.contains(&"item.completed".to_owned()),
        "{seen:?}"
    );
    let result = result(&plain.stdout)?;
    assert_eq!(
        (
            &result["kind"],
            &result["status"],
            &result["text"],
            &result["exit_code"]
        ),
        (&json!("result"), &json!("completed"), &json!("one two"), &json!(0))
    );
    for key in ["session", "input_id", "turn", "denied", "usage"] {
        assert!(!result[key].is_null(), "no {key} in {result}");
    }
    let deltas = daemon.ctl(&["send", "--json", "--deltas", "go"]).await?.ok()?;
    assert!(kinds(&deltas.stdout)?.contains(&"delta".to_owned()));
    Ok(())
}

#[tokio::test]
async fn each_end_has_its_exit_code() -> anyhow::Result<()> {
    let script = Script::by(|seen| match seen.last_text() {
        "fail" => Reply::status(
            400,
            &[],
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
        ),
        "stall" => Reply::text("").stall(),
        _ => Reply::text("fine"),
    });
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.ctl(&["send", "--name", "mine", "go"]).await?.ok()?;
    let cases: [(&[&str], i32); 11] = [
        (&["send", "go"], 0),
        (&["send", "fail"], 3),
        (&["send", "--timeout", "200ms", "stall"], 6),
        (&["send", "-s", "nosuch", "go"], 8),
        (&["send", "--no-such-flag", "go"], 2),
        (&["no-such-command"], 2),
        (&["show", "feedbeef"], 8),
        (&["approve"], 8),
        (&["approve", "feedbeef"], 8),
        (&["send", "--model", "nobody", "go"], 1),
        (&["send", "--name", "mine", "go"], 1),
    ];
    for (arguments, code) in cases {
        let ran = daemon.ctl(arguments).await?;
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        if code == 8 || code == 1 {
            assert!(ran.stderr.starts_with("error: "), "{arguments:?}: {}", ran.stderr);
        }
    }
    Ok(())
}

#[tokio::test]
async fn interrupted_by_someone_else_is_5_and_by_oneself_130() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("").stall()))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let child = daemon.begin_ctl(&["send", "--name", "theirs", "wait"])?;
    server.request(1).await?;
    daemon.ctl(&["interrupt", "theirs"]).await?.ok()?;
    assert_eq!(ended(child, "the interrupted send").await?.code, Some(5));

    let child = daemon.begin_ctl(&["send", "--name", "own", "wait"])?;
    server.request(2).await?;
    let pid = i32::try_from(child.id().unwrap_or_default())?;
    tests::process::signal(pid, rustix::process::Signal::INT)?;
    assert_eq!(ended(child, "the send with Ctrl-C").await?.code, Some(130));
    daemon.ctl(&["wait", "own"]).await?;
    let listed = daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?;
    let outcomes: Vec<&Value> = listed
        .as_array()
        .into_iter()
        .flatten()
        .map(|session| &session["outcome"])
        .collect();
    assert_eq!(outcomes, ["interrupted", "interrupted"], "{listed}");
    Ok(())
}

#[tokio::test]
async fn a_terminated_send_only_detaches() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("done").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let child = daemon.begin_ctl(&["send", "--name", "left", "go"])?;
    server.request(1).await?;
    let pid = i32::try_from(child.id().unwrap_or_default())?;
    tests::process::signal(pid, rustix::process::Signal::TERM)?;
    ended(child, "the terminated send").await?;
    gate.open();
    let waited = daemon.ctl(&["wait", "left"]).await?;
    assert_eq!(waited.code, Some(0), "{}", waited.stderr);
    let shown = daemon.ctl(&["show", "left"]).await?.ok()?;
    assert!(shown.stdout.contains("done"), "{}", shown.stdout);
    Ok(())
}

#[tokio::test]
async fn stdin_is_read_where_the_text_says_so_and_never_waited_for_otherwise() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|seen| Reply::text(seen.last_text())))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let mut command = daemon.home.command(tests::bins::bins()?.agentctl());
    command
        .args(["send", "review:", "-"])
        .stdin(std::process::Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(b"the diff\n").await?;
    }
    let ran = ended(child, "send with a pipe").await?.ok()?;
    assert!(
        ran.stdout.contains("review:") && ran.stdout.contains("the diff"),
        "{}",
        ran.stdout
    );

    // An open pipe that nobody writes to, and a text: the pipe is not read.
    let mut command = daemon.home.command(tests::bins::bins()?.agentctl());
    command.args(["send", "just this"]).stdin(std::process::Stdio::piped());
    let mut child = command.spawn()?;
    let held = child.stdin.take();
    let ran = ended(child, "send beside an open pipe").await?.ok()?;
    drop(held);
    assert_eq!(ran.stdout, "just this\n");
    Ok(())
}

#[tokio::test]
async fn a_session_is_found_by_piece_name_and_last() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|seen| Reply::text(seen.user_texts().len().to_string())))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let first = daemon.ctl(&["send", "--name", "alpha", "--json", "one"]).await?.ok()?;
    let id = result(&first.stdout)?["session"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    for (word, count) in [
        ("alpha", "2\n"),
        ("last", "3\n"),
        (&id[id.len() - 6..], "4\n"),
        (&id, "5\n"),
    ] {
        let ran = daemon.ctl(&["send", "-s", word, "more"]).await?.ok()?;
        assert_eq!(ran.stdout, count, "{word}");
    }
    assert_eq!(daemon.ctl(&["send", "-c", "more"]).await?.ok()?.stdout, "6\n");
    let tail = daemon.ctl(&["tail", "alpha", "--json"]).await?.ok()?;
    let seqs: Vec<u64> = tail
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["seq"].as_u64())
        .collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
    assert_eq!(seqs.len(), daemon.log(&id)?.len());
    Ok(())
}

#[tokio::test]
async fn no_wait_returns_when_the_input_is_durable() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("later").gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let ran = daemon.ctl(&["send", "--no-wait", "go"]).await?.ok()?;
    let session = tests::log::sessions(&daemon.home.state_dir())?.remove(0);
    assert!(ran.stdout.contains(&session), "{}", ran.stdout);
    gate.open();
    assert_eq!(daemon.ctl(&["wait"]).await?.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn hostile_text_reaches_no_terminal_as_it_is() -> anyhow::Result<()> {
    let nasty = "\u{1b}[2Jgone\u{202e}evil\u{7}\u{9b}31m";
    let said = nasty.to_owned();
    let server = ModelServer::start(Script::by(move |seen| match seen.step() {
        0 => Reply::tool("bash", json!({"command": format!("echo '{said}'")})),
        _ => Reply::text(said.clone()),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let child = daemon.begin_ctl(&["send", "--unattended", "wait", nasty])?;
    let session = loop {
        server.request(1).await?;
        if let Some(session) = tests::log::sessions(&daemon.home.state_dir())?.pop() {
            break session;
        }
    };
    daemon.approval(&session).await?;
    let mut shown = String::new();
    for arguments in [&["approvals"][..], &["show", "last"], &["tail", "last"], &["ls"]] {
        let ran = daemon.ctl(arguments).await?.ok()?;
        shown.push_str(&ran.stdout);
        shown.push_str(&ran.stderr);
    }
    daemon.ctl(&["approve"]).await?.ok()?;
    let ran = ended(child, "the send").await?;
    // What goes into a pipe is the text itself; a terminal would get it neutralised.
    assert_eq!(ran.stdout, format!("{nasty}\n"));
    shown.push_str(&ran.stderr);
    for raw in ['\u{1b}', '\u{202e}', '\u{7}', '\u{9b}'] {
        assert!(!shown.contains(raw), "{raw:?} reached a terminal: {shown:?}");
    }
    Ok(())
}

#[tokio::test]
async fn status_stop_and_start_say_what_they_did() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let status = daemon.ctl(&["daemon", "status", "--json"]).await?.ok()?.json()?;
    assert_eq!(status["pid"], daemon.pid()?);
    let pid = daemon.pid()?;
    daemon.ctl(&["daemon", "stop"]).await?.ok()?;
    tests::process::gone(pid).await?;
    let stopped = daemon.ctl(&["daemon", "status"]).await?;
    assert_eq!(stopped.code, Some(7), "asking does not start it: {}", stopped.stdout);
    let started = daemon.ctl(&["daemon", "start"]).await?.ok()?;
    assert!(
        started.stdout.contains(&daemon.pid()?.to_string()),
        "{}",
        started.stdout
    );
    Ok(())
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_not_found() -> anyhow::Result<()> {
    let daemon = tests::daemon::Home::new()?.start().await?;
    let ran = daemon.ctl(&["tools", "grp"]).await?;
    assert!(ran.code == Some(8) && ran.stdout.is_empty(), "{:?}", ran.code);
    assert!(ran.stderr.contains("did you mean `grep`?"), "{}", ran.stderr);
    Ok(())
}

/// What `agentctl` says with further variables.
async fn with(
    home: &tests::daemon::Home,
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> anyhow::Result<tests::daemon::Ran> {
    let mut command = home.command(tests::bins::bins()?.agentctl());
    command
        .current_dir(home.project())
        .args(arguments)
        .envs(variables.iter().copied());
    tests::daemon::run(command, "agentctl").await
}

#[tokio::test]
async fn the_session_of_the_environment_is_the_one_that_is_meant() -> anyhow::Result<()> {
    let daemon = tests::daemon::Home::new()?.start().await?;
    daemon.ctl(&["new"]).await?.ok()?;
    for command in [
        &["show"][..],
        &["mode"],
        &["mode", "ask"],
        &["tail"],
        &["wait"],
        &["queue", "list"],
        &["interrupt"],
    ] {
        let ran = with(&daemon.home, &[("AGENTD_SESSION", "nosuch")], command).await?;
        assert_eq!(ran.code, Some(8), "{command:?}: {}", ran.stderr);
    }
    with(&daemon.home, &[("AGENTD_SESSION", "")], &["show"]).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn what_the_environment_sets_is_shown_and_what_does_not_count_is_told() -> anyhow::Result<()> {
    let daemon = tests::daemon::Home::new()?
        .config("[models.m]\nwire = \"demo\"\n")?
        .start()
        .await?;
    std::fs::write(
        daemon.home.config_file().with_file_name("rules.toml"),
        "builtin_allow = false\n",
    )?;
    std::fs::create_dir_all(daemon.home.project().join(".agent"))?;
    std::fs::write(
        daemon.home.project().join(".agent/config.toml"),
        "[session]\nmax_steps = 3\n",
    )?;
    let shown = with(&daemon.home, &[("AGENTD_MODE", "none")], &["config", "show", "--json"]).await?;
    let shown = shown.ok()?.json()?;
    let of = |key: &str| {
        let settings = shown["settings"].as_array().into_iter().flatten();
        let found = settings.into_iter().find(|setting| setting["key"] == key).cloned();
        found.unwrap_or_default()
    };
    assert_eq!(
        (&of("session.mode")["value"], &of("session.mode")["from"]),
        (&serde_json::json!("\"none\""), &serde_json::json!("$AGENTD_MODE"))
    );
    assert_eq!(of("builtin_allow")["value"], "false");
    assert_eq!(of("tools.disabled")["value"], "(not set)");
    assert!(
        of("session.max_steps")["from"]
            .as_str()
            .is_some_and(|from| from.ends_with("config.toml:2")),
        "{shown}"
    );
    let listed = daemon.ctl(&["rules", "list"]).await?.ok()?;
    assert!(listed.stderr.contains("builtin_allow = false"), "{}", listed.stderr);

    let url = ("AGENTD_BASE_URL", "http://127.0.0.1:1/v1");
    let alone = with(&daemon.home, &[url], &["ls"]).await?.ok()?;
    assert!(alone.stderr.contains("without AGENTD_API_KEY"), "{}", alone.stderr);
    let both = with(&daemon.home, &[url, ("AGENTD_API_KEY", "k")], &["ls"])
        .await?
        .ok()?;
    assert!(
        both.stderr.contains("AGENTD_BASE_URL does not count"),
        "{}",
        both.stderr
    );
    Ok(())
}
