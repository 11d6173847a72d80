//! Approvals: they wait for as long as it takes, the first answer wins, everybody sees who gave it.

use serde_json::{Value, json};
use tests::daemon::TestDaemon;
use tests::log::count;
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::{is, last};

fn touches(file: &str) -> Script {
    let command = format!("touch {file}");
    Script::by_step([Reply::tool("bash", json!({ "command": command })), Reply::text("done")])
}

fn error_kind(error: &Value) -> &str {
    error.pointer("/data/kind").and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn an_answer_is_seen_by_everyone_with_who_gave_it() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "make it").await?;
    let frames = watcher
        .until("the approval", |frame| is(frame, "approval.requested"))
        .await?;
    assert_eq!(last(&frames)?["data"]["action"]["command"], "touch made");
    assert!(
        !daemon.home.project().join("made").exists(),
        "nothing runs before the answer"
    );

    let approval = daemon.approval(&session).await?;
    daemon.answer(&approval, "once").await?;
    let frames = watcher
        .until("the answer", |frame| is(frame, "approval.resolved"))
        .await?;
    let resolved = &last(&frames)?["data"];
    assert_eq!(
        (
            &resolved["decision"],
            &resolved["by"]["client"],
            &resolved["by"]["kind"]
        ),
        (&json!("once"), &json!("test"), &json!("script"))
    );
    assert_eq!(
        resolved["by"]["pid"],
        json!(std::process::id()),
        "the pid is what the kernel says"
    );
    daemon.turn_end(&session, 1).await?;
    assert!(daemon.home.project().join("made").exists());

    let mut late = daemon.controller().await?;
    let answer = json!({"id": approval["id"], "digest": approval["digest"], "decision": "deny"});
    let error = late.refused("approval.answer", answer).await?;
    assert_eq!(error_kind(&error), "already_resolved", "{error}");
    assert_eq!(
        (&error["data"]["decision"], &error["data"]["by"]["client"]),
        (&json!("once"), &json!("test")),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn of_many_answers_at_once_one_wins() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let mut peers = Vec::new();
    for _ in 0..20 {
        peers.push(daemon.controller().await?);
    }
    let answers = peers.iter_mut().enumerate().map(|(at, peer)| {
        let decision = if at % 2 == 0 { "once" } else { "deny" };
        peer.request(
            "approval.answer",
            json!({"id": approval["id"], "digest": approval["digest"], "decision": decision}),
        )
    });
    let answers = futures::future::try_join_all(answers).await?;
    let won = answers.iter().filter(|answer| answer.get("result").is_some()).count();
    let late = answers
        .iter()
        .filter(|answer| error_kind(&answer["error"]) == "already_resolved")
        .count();
    // An answer equal to the recorded one from the same client gets the recorded success.
    assert!(won >= 1 && won + late == 20, "{answers:?}");
    daemon.turn_end(&session, 1).await?;
    assert_eq!(count(&daemon.log(&session)?, "approval.resolved"), 1);
    Ok(())
}

#[tokio::test]
async fn an_answer_to_something_else_than_was_shown_is_refused() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let mut peer = daemon.controller().await?;
    let other = json!({"id": approval["id"], "digest": "00", "decision": "once"});
    let error = peer.refused("approval.answer", other).await?;
    assert_eq!(error_kind(&error), "digest_mismatch", "{error}");
    let none = json!({"id": approval["id"], "decision": "once"});
    assert_eq!(peer.refused("approval.answer", none).await?["code"], -32602);
    assert!(!daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_denial_with_words_becomes_the_result_the_model_sees() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    daemon.approval(&session).await?;
    daemon.ctl(&["deny", "-m", "call it made.txt"]).await?.ok()?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(
        end["data"]["outcome"], "completed",
        "a denial by a person is no failure"
    );
    let outputs = server.request(2).await?.outputs().join("\n");
    assert!(outputs.contains("call it made.txt"), "{outputs}");
    assert!(!daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn an_allowance_for_the_session_covers_what_was_shown_and_no_more() -> anyhow::Result<()> {
    let commands = ["touch a", "touch b", "mkdir c"];
    let replies = commands.map(|command| Reply::tool("bash", json!({ "command": command })));
    let server = ModelServer::start(Script::by_step(replies.into_iter().chain([Reply::text("done")])))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make them").await?;
    let approval = daemon.approval(&session).await?;
    assert!(
        approval["rule"].as_str().is_some_and(|rule| rule.contains("touch")),
        "{approval}"
    );
    daemon.answer(&approval, "session").await?;
    let frames = daemon.until(&session, "mkdir asks", |frame| {
        is(frame, "approval.requested") && frame["data"]["action"]["command"] == "mkdir c"
    });
    frames.await?;
    assert!(
        daemon.home.project().join("b").exists(),
        "the second touch ran without asking"
    );
    let waiting = daemon
        .observer()
        .await?
        .call("approval.list", json!({"session": session}))
        .await?;
    daemon.answer(&waiting[0], "once").await?;
    daemon.turn_end(&session, 1).await?;
    assert_eq!(count(&daemon.log(&session)?, "approval.requested"), 2);
    Ok(())
}

#[tokio::test]
async fn an_approval_outlives_a_killed_daemon_under_the_same_id() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let before = daemon.approval(&session).await?;
    daemon.kill9().await?;

    // Any command brings the daemon back.
    let listed = daemon.ctl(&["approvals", "--json"]).await?.ok()?.json()?;
    assert_eq!(
        (&listed[0]["id"], &listed[0]["digest"]),
        (&before["id"], &before["digest"]),
        "{listed}"
    );
    daemon.ctl(&["approve"]).await?.ok()?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert!(daemon.home.project().join("made").exists());
    let again = daemon
        .ctl(&["approve", before["id"].as_str().unwrap_or_default()])
        .await?;
    assert_eq!(again.code, Some(9), "{}", again.stderr);
    Ok(())
}

#[tokio::test]
async fn with_nobody_to_answer_a_waiting_send_denies_and_exits_4() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let ran = daemon.ctl(&["send", "--json", "make it"]).await?;
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let result: Value = serde_json::from_str(ran.stdout.lines().last().unwrap_or_default())?;
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("completed"), &json!(4)),
        "{result}"
    );
    assert_eq!(result["denied"].as_array().map(Vec::len), Some(1), "{result}");
    assert!(!daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_file_that_changed_after_the_question_is_not_replaced() -> anyhow::Result<()> {
    let read = Reply::tool("read_file", json!({"path": "README.md"}));
    let edit = Reply::tool("edit_file", json!({"path": "README.md", "old": "three", "new": "four"}));
    let server = ModelServer::start(Script::by_step([read, edit, Reply::text("done")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "count further").await?;
    let approval = daemon.approval(&session).await?;
    let readme = daemon.home.project().join("README.md");
    std::fs::write(&readme, "# Mine\n\nIt counts to three, by hand.\n")?;
    daemon.answer(&approval, "once").await?;
    daemon.turn_end(&session, 1).await?;
    assert!(
        std::fs::read_to_string(&readme)?.contains("by hand"),
        "the person's change is kept"
    );
    let outputs = server.request(3).await?.outputs().join("\n");
    assert!(outputs.contains("changed"), "{outputs}");
    Ok(())
}

#[tokio::test]
async fn always_writes_the_rule_that_was_shown_into_the_users_own_file() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let rule = approval["always"].as_str().unwrap_or_default().to_owned();
    assert!(rule.starts_with("allow bash: touch …"), "{approval}");
    daemon.ctl(&["approve", "--always"]).await?.ok()?;
    daemon.turn_end(&session, 1).await?;
    assert!(daemon.home.project().join("made").exists());
    let listed = daemon.ctl(&["rules", "list", "--json"]).await?.ok()?.json()?;
    assert_eq!(
        listed[0]["text"],
        json!(rule),
        "what was shown is what is written: {listed}"
    );
    assert!(
        !daemon.home.project().join(".agent").exists(),
        "nothing is written into the project"
    );

    let another = daemon.session("ask").await?;
    daemon.send(&another, "make it").await?;
    daemon.turn_end(&another, 1).await?;
    assert_eq!(
        count(&daemon.log(&another)?, "approval.requested"),
        0,
        "a later session asks no more"
    );
    Ok(())
}

#[tokio::test]
async fn neither_session_nor_always_is_offered_for_an_interpreter_alone() -> anyhow::Result<()> {
    let run = Reply::tool("bash", json!({"command": "python3 -c 'print(1)'"}));
    let server = ModelServer::start(Script::by_step([run, Reply::text("done")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "run it").await?;
    let approval = daemon.approval(&session).await?;
    let rule = approval["always"].as_str().unwrap_or_default();
    assert!(
        rule.is_empty() || rule.contains("exactly python3 -c 'print(1)'"),
        "{approval}"
    );
    Ok(())
}

async fn change(daemon: &TestDaemon, approval: &Value, command: &str, decision: &str) -> anyhow::Result<Value> {
    let params = json!({"id": approval["id"], "digest": approval["digest"], "decision": decision,
        "arguments": {"command": command}});
    let mut peer = daemon.controller().await?;
    peer.request("approval.answer", params).await
}

#[tokio::test]
async fn a_changed_call_runs_in_place_of_the_models() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let answered = change(&daemon, &approval, "touch other", "once").await?;
    assert_eq!(answered["result"]["decision"], "once", "{answered}");
    daemon.turn_end(&session, 1).await?;
    assert!(daemon.home.project().join("other").exists() && !daemon.home.project().join("made").exists());
    let outputs = server.request(2).await?.outputs().join("\n");
    assert!(
        outputs.contains("The user changed the arguments") && outputs.contains("touch other"),
        "{outputs}"
    );
    let log = daemon.log(&session)?;
    let of = |kind: &str| {
        log.iter()
            .find(|event| event.kind == kind)
            .map(|event| event.data.clone())
            .unwrap_or_default()
    };
    assert_eq!(
        of("tool.requested")["arguments"]["command"],
        "touch made",
        "both versions are kept"
    );
    assert_eq!(of("approval.resolved")["arguments"]["command"], "touch other");
    assert_ne!(of("approval.resolved")["digest"], of("tool.requested")["digest"]);
    Ok(())
}

#[tokio::test]
async fn a_change_to_something_blocked_runs_nothing_and_the_question_stays() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let refused = change(&daemon, &approval, "rm -rf ~", "once").await?;
    assert_eq!(error_kind(&refused["error"]), "edit_refused", "{refused}");
    assert_eq!(refused["error"]["data"]["verdict"], "blocked", "{refused}");
    assert_eq!(daemon.approval(&session).await?["id"], approval["id"], "it still waits");
    daemon.answer(&approval, "deny").await?;
    daemon.turn_end(&session, 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_change_that_goes_further_is_asked_about_anew_under_a_new_digest() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let answered = change(&daemon, &approval, "rm README.md", "session").await?;
    assert_eq!(answered["result"]["decision"], "edited", "{answered}");
    let list = daemon
        .observer()
        .await?
        .call("approval.list", json!({"session": session}))
        .await?;
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list[0]["action"]["command"], "rm README.md");
    assert!(
        list[0]["id"] != approval["id"] && list[0]["digest"] != approval["digest"],
        "{list}"
    );
    assert!(daemon.home.project().join("README.md").exists(), "nothing ran yet");

    // The changed call, not the model's, is what a later life of the daemon runs.
    daemon.kill9().await?;
    daemon.ctl(&["approve"]).await?.ok()?;
    daemon.turn_end(&session, 1).await?;
    assert!(!daemon.home.project().join("README.md").exists() && !daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_call_is_changed_in_the_persons_editor() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let home = tests::daemon::Home::new()?.model(&server, Wire::Messages)?;
    let daemon = home.env("EDITOR", "sed -i s/made/other/").start().await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    daemon.approval(&session).await?;
    daemon.ctl(&["approve", "--edit"]).await?.ok()?;
    daemon.turn_end(&session, 1).await?;
    assert!(daemon.home.project().join("other").exists() && !daemon.home.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn with_two_questions_an_answer_names_the_one_it_means() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let session = daemon.session("ask").await?;
        daemon.send(&session, "make it").await?;
        waiting.push((daemon.approval(&session).await?, session));
    }
    let refused = daemon.ctl(&["approve"]).await?;
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    assert!(!daemon.home.project().join("made").exists());
    for (approval, session) in &waiting {
        assert_eq!(count(&daemon.log(session)?, "approval.resolved"), 0);
        let id = approval["id"].as_str().unwrap_or_default();
        daemon.ctl(&["deny", id]).await?.ok()?;
        daemon.turn_end(session, 1).await?;
    }
    Ok(())
}

#[tokio::test]
async fn many_approvals_outlive_a_killed_daemon_and_run_once() -> anyhow::Result<()> {
    const CALLS: usize = 20;
    let asks = (0..CALLS).fold(Reply::default(), |reply, at| {
        reply.call("bash", json!({"command": format!("echo {at} >> marks")}))
    });
    let server = ModelServer::start(Script::by_step([asks, Reply::text("done")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    daemon.approval(&session).await?;
    let list = |daemon: TestDaemon| async move {
        let list = daemon.observer().await?.call("approval.list", json!({})).await?;
        anyhow::Ok((daemon, list.as_array().cloned().unwrap_or_default()))
    };
    let (daemon, before) = list(daemon).await?;
    assert_eq!(before.len(), CALLS);
    // Answered half way through, and killed between the answers.
    for approval in before.iter().take(CALLS / 2) {
        daemon.answer(approval, "once").await?;
    }
    daemon.kill9().await?;
    daemon.start().await?;
    let (daemon, after) = list(daemon).await?;
    let ids = |list: &[Value]| -> Vec<Value> { list.iter().map(|approval| approval["id"].clone()).collect() };
    assert_eq!(
        ids(&after),
        ids(&before[CALLS / 2..]),
        "what was not answered waits under the same ids"
    );
    for approval in &after {
        daemon.answer(approval, "deny").await?;
    }
    daemon.turn_end(&session, 1).await?;
    let marks = std::fs::read_to_string(daemon.home.project().join("marks")).unwrap_or_default();
    let mut lines: Vec<usize> = marks.lines().filter_map(|line| line.parse().ok()).collect();
    lines.sort_unstable();
    let once = lines.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(
        once && lines.iter().all(|at| *at < CALLS / 2),
        "each allowed call at most once, no denied one: {lines:?}"
    );
    let log = daemon.log(&session)?;
    assert_eq!(count(&log, "approval.resolved"), CALLS);
    assert_eq!(count(&log, "tool.completed"), CALLS);
    Ok(())
}

fn calls(calls: impl IntoIterator<Item = Value>) -> Script {
    let replies = calls.into_iter().map(|arguments| Reply::tool("bash", arguments));
    // Not by step: the end of a job is told to the model, too, and looks like the beginning of a turn.
    Script::sequence(replies.chain([Reply::text("done")]))
}

#[tokio::test]
async fn an_approval_names_the_directory_and_the_time_of_its_command() -> anyhow::Result<()> {
    let outside = tempfile::tempdir()?;
    let elsewhere = outside.path().canonicalize()?.display().to_string();
    let server = ModelServer::start(calls([
        json!({"command": "touch here.txt", "cwd": "src", "wait": false}),
        json!({"command": "mkdir d && echo hi > d/f", "cwd": elsewhere, "timeout_ms": 5000}),
    ]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    std::fs::create_dir_all(daemon.home.project().join("src"))?;
    let source = daemon.home.project().join("src").canonicalize()?.display().to_string();
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    let approval = daemon.approval(&session).await?;
    assert_eq!(
        (&approval["action"]["cwd"], &approval["cwd"]),
        (&json!(source), &json!(source))
    );
    assert_eq!(approval["action"]["background_after_ms"], 0, "{approval}");
    let shown = daemon.ctl(&["approvals"]).await?.ok()?.stdout;
    assert!(shown.contains(&format!("in: {source}\n")), "{shown}");
    assert!(
        shown.contains("time: runs in the background, without a limit"),
        "{shown}"
    );
    daemon.answer(&approval, "once").await?;

    let frames = daemon.until(&session, "the second question", |frame| {
        is(frame, "approval.requested") && frame["data"]["action"]["cwd"] == json!(elsewhere)
    });
    let frames = frames.await?;
    let action = &last(&frames)?["data"]["action"];
    assert_eq!(action["parts"], json!(["mkdir d", "echo hi > d/f"]), "{action}");
    assert_eq!(action["timeout_ms"], 5000, "{action}");
    let shown = daemon.ctl(&["approvals"]).await?.ok()?.stdout;
    for line in [
        format!("in: {elsewhere}\n"),
        "time: ended after 5 s\n".to_owned(),
        "no rule is offered: several commands\n".to_owned(),
    ] {
        assert!(shown.contains(&line), "{line} is missing in {shown}");
    }
    daemon.ctl(&["deny"]).await?.ok()?;
    daemon.turn_end(&session, 1).await?;
    Ok(())
}

#[tokio::test]
async fn no_rule_and_no_allowance_follows_a_command_to_another_directory() -> anyhow::Result<()> {
    let outside = tempfile::tempdir()?;
    let (first, second) = (outside.path().join("a"), outside.path().join("b"));
    std::fs::create_dir(&first)?;
    std::fs::create_dir(&second)?;
    let touch = |place: &std::path::Path| json!({"command": "touch zz1", "cwd": place});
    let inside = json!({"command": "touch zz1"});
    let server = ModelServer::start(calls([inside, touch(&first), touch(&first), touch(&second)]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon
        .ctl(&["rules", "add", "allow", "--exact", "touch zz1"])
        .await?
        .ok()?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    let approval = daemon.approval(&session).await?;
    assert!(
        daemon.home.project().join("zz1").exists(),
        "the rule allows it in its project"
    );
    assert!(!first.join("zz1").exists());
    assert_eq!(
        approval["reason"],
        "It runs outside the project, where no rule allows anything."
    );
    assert!(
        approval.get("always").is_none(),
        "a rule counts in its project: {approval}"
    );
    daemon.answer(&approval, "session").await?;
    let frames = daemon.until(&session, "the question about the other directory", |frame| {
        is(frame, "approval.requested")
            && frame["data"]["action"]["cwd"] == json!(second.canonicalize().unwrap_or_default())
    });
    frames.await?;
    assert!(first.join("zz1").exists() && !second.join("zz1").exists());
    daemon.ctl(&["deny"]).await?.ok()?;
    daemon.turn_end(&session, 1).await?;
    assert_eq!(count(&daemon.log(&session)?, "approval.requested"), 2);
    Ok(())
}

#[tokio::test]
async fn a_settled_approval_is_found_by_the_short_id_that_was_printed() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let approval = daemon.approval(&session).await?;
    let id = approval["id"].as_str().unwrap_or_default();
    let short = id.get(id.len() - 6..).unwrap_or_default();
    daemon.ctl(&["approve", short]).await?.ok()?;
    daemon.turn_end(&session, 1).await?;
    for verb in ["approve", "deny"] {
        let late = daemon.ctl(&[verb, short]).await?;
        assert_eq!(late.code, Some(9), "{}", late.stderr);
        assert!(late.stderr.contains("settled already, by agentctl"), "{}", late.stderr);
    }
    let unknown = daemon.ctl(&["approve", "abcdef"]).await?;
    assert_eq!(unknown.code, Some(8), "{}", unknown.stderr);
    Ok(())
}

#[tokio::test]
async fn a_call_that_waits_for_another_is_judged_by_the_mode_it_begins_in() -> anyhow::Result<()> {
    let waits = json!({"command": "until [ -e go ]; do sleep 0.05; done"});
    let both = Reply::tool("bash", waits).call("bash", json!({"command": "touch t2"}));
    let server = ModelServer::start(Script::by_step([both, Reply::text("done")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    daemon
        .until(&session, "the first call", |frame| is(frame, "tool.started"))
        .await?;
    daemon.ctl(&["mode", &session, "ask"]).await?.ok()?;
    std::fs::write(daemon.home.project().join("go"), "")?;
    let approval = daemon.approval(&session).await?;
    assert_eq!(approval["action"]["command"], "touch t2");
    assert!(!daemon.home.project().join("t2").exists());
    daemon.answer(&approval, "once").await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert!(daemon.home.project().join("t2").exists());
    Ok(())
}

#[tokio::test]
async fn a_session_that_does_not_live_is_listed_with_the_mode_in_force() -> anyhow::Result<()> {
    let server = ModelServer::start(touches("made"))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.ctl(&["new", "--mode", "5m", "--name", "tt"]).await?.ok()?;
    let shown = daemon.ctl(&["mode", "tt"]).await?.ok()?.stdout;
    assert!(shown.starts_with("all for "), "{shown}");
    daemon.ctl(&["mode", "tt", "1s"]).await?.ok()?;
    daemon.kill9().await?;
    loop {
        let listed = daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?;
        if listed[0]["mode"] == "ask" {
            assert!(listed[0].get("mode_until").is_none(), "{listed}");
            break;
        }
        assert_eq!(listed[0]["mode"], "all", "{listed}");
    }
    assert_eq!(daemon.ctl(&["mode", "tt"]).await?.ok()?.stdout, "ask\n");
    Ok(())
}
