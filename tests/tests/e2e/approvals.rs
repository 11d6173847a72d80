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
