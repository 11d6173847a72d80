//! What a turn makes of providers that misbehave: retries and back-off, each attempt an event, nothing waits longer than it may.

use serde_json::{Value, json};
use std::time::Duration;
use tests::daemon::{Home, TestDaemon};
use tests::log::{Logged, count};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::raw_server::{RawServer, answer, chat, dribbles, says, stalls, stream};
use tests::socket::is;

const SLOW_DOWN: &str = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;

/// A profile of Chat Completions at `origin`, with more of its own settings and further tables.
fn config(origin: &str, more: &str, tables: &str) -> String {
    format!(
        "default_model = \"raw\"\n[models.raw]\nwire = \"openai-chat\"\nbase_url = \"{origin}/v1\"\nmodel = \"m\"\n\
         api_key = \"a-test-key\"\ncontext_tokens = 200000\n{more}\n{tables}\n"
    )
}

async fn daemon(server: &RawServer, more: &str, tables: &str) -> anyhow::Result<TestDaemon> {
    Home::new()?
        .config(&config(&server.origin(), more, tables))?
        .start()
        .await
}

/// Sends a text and gives the end of its turn and the log.
async fn turn(daemon: &TestDaemon, session: &str, nth: usize) -> anyhow::Result<(Value, Vec<Logged>)> {
    daemon.send(session, "go").await?;
    let end = daemon.turn_end(session, nth).await?;
    Ok((end["data"].clone(), daemon.log(session)?))
}

fn failures(log: &[Logged]) -> Vec<&Value> {
    log.iter()
        .filter(|event| event.kind == "step.failed")
        .map(|event| &event.data)
        .collect()
}

/// Milliseconds between a failure and its next try, as the event says.
async fn pause_ms(daemon: &TestDaemon, session: &str) -> anyhow::Result<i64> {
    let frames = daemon
        .until(session, "a failed step", |frame| is(frame, "step.failed"))
        .await?;
    let failed = tests::socket::last(&frames)?;
    let at = |value: &Value| -> anyhow::Result<i64> { Ok(serde_json::from_value::<protocol::Time>(value.clone())?.0) };
    Ok(at(&failed["data"]["retry_at"])? - at(&failed["at"])?)
}

#[tokio::test]
async fn refusals_with_and_without_a_time_are_tried_again_and_each_attempt_says_why_and_when() -> anyhow::Result<()> {
    let replies = [
        Reply::status(429, &[("retry-after-ms", "20")], SLOW_DOWN),
        Reply::status(
            529,
            &[("x-should-retry", "true")],
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        ),
        Reply::text("here"),
    ];
    let server = ModelServer::start(Script::sequence(replies))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let (end, log) = turn(&daemon, &session, 1).await?;
    assert_eq!(end["outcome"], "completed", "{end}");
    let kinds: Vec<&Value> = failures(&log).iter().map(|failed| &failed["error"]["kind"]).collect();
    assert_eq!(kinds, [&json!("rate_limited"), &json!("overloaded")]);
    assert!(
        failures(&log).iter().all(|failed| failed["retry_at"].is_string()),
        "{log:?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_provider_s_own_time_is_kept_and_an_interrupt_ends_the_wait() -> anyhow::Result<()> {
    let server = RawServer::start(vec![says(answer(
        "429 Too Many Requests",
        "retry-after: 60\r\n",
        SLOW_DOWN,
    ))])?;
    let daemon = daemon(&server, "", "").await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    assert!(pause_ms(&daemon, &session).await? >= 60_000);
    daemon
        .controller()
        .await?
        .call("turn.interrupt", json!({"session": session}))
        .await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "interrupted", "{end}");
    assert_eq!(server.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_wait_beyond_all_patience_fails_the_turn_at_once_and_holds_up_nobody_else() -> anyhow::Result<()> {
    let acts = vec![
        says(answer("429 Too Many Requests", "retry-after: 1e9\r\n", SLOW_DOWN)),
        says(chat("here")),
    ];
    let server = RawServer::start(acts)?;
    let daemon = daemon(&server, "", "").await?;
    let session = daemon.session("ask").await?;
    let (end, log) = turn(&daemon, &session, 1).await?;
    assert_eq!(
        (&end["outcome"], &end["reason"]["kind"]),
        (&json!("failed"), &json!("rate_limited")),
        "{end}"
    );
    assert!(
        end["reason"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("1000000000 s")),
        "{end}"
    );
    assert_eq!((failures(&log).len(), server.requests().len()), (1, 1));
    let (end, _) = turn(&daemon, &session, 2).await?;
    assert_eq!(end["outcome"], "completed", "{end}");
    Ok(())
}

#[tokio::test]
async fn a_retry_does_not_go_beyond_the_turn_s_own_time() -> anyhow::Result<()> {
    let server = RawServer::start(vec![says(answer(
        "503 Service Unavailable",
        "retry-after: 40\r\n",
        "{}",
    ))])?;
    let daemon = daemon(&server, "", "").await?;
    let session = daemon.session("ask").await?;
    let params = json!({"session": session, "content": [{"type": "text", "text": "go"}], "timeout_ms": 20_000});
    daemon.controller().await?.call("session.send", params).await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "failed", "{end}");
    assert_eq!(
        failures(&daemon.log(&session)?)
            .iter()
            .filter(|failed| failed["retry_at"].is_string())
            .count(),
        0
    );
    Ok(())
}

#[tokio::test]
async fn one_refusal_makes_the_calls_of_other_sessions_wait() -> anyhow::Result<()> {
    let refusal = answer("429 Too Many Requests", "retry-after: 3\r\n", SLOW_DOWN);
    let server = RawServer::start(vec![says(refusal), says(chat("one")), says(chat("two"))])?;
    let daemon = daemon(&server, "", "").await?;
    let (one, two) = (daemon.session("ask").await?, daemon.session("ask").await?);
    daemon.send(&one, "go").await?;
    pause_ms(&daemon, &one).await?;
    daemon.send(&two, "go").await?;
    for session in [&one, &two] {
        let end = daemon.turn_end(session, 1).await?;
        assert_eq!(end["data"]["outcome"], "completed", "{end}");
    }
    let times: Vec<_> = server.requests().into_iter().map(|request| request.at).collect();
    let second = times.get(1).zip(times.first()).map(|(second, first)| *second - *first);
    assert!(
        second.is_some_and(|wait| wait >= Duration::from_millis(2_900)),
        "{second:?}"
    );
    assert_eq!(
        failures(&daemon.log(&two)?).len(),
        0,
        "the other session did not run into the same wall"
    );
    Ok(())
}

#[tokio::test]
async fn dropped_stalled_and_garbled_connections_are_tried_again() -> anyhow::Result<()> {
    let acts = vec![
        says(""),
        stalls(""),
        stalls(stream("data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")),
        says(stream("\u{0}\u{1}garbage: {\n\ndata: {not json\n\nevent: \u{7f}\n\n")),
        says(chat("whole")),
    ];
    let server = RawServer::start(acts)?;
    let more = "first_byte_timeout_s = 1\nidle_timeout_s = 1";
    let daemon = daemon(&server, more, "").await?;
    let session = daemon.session("ask").await?;
    let (end, log) = turn(&daemon, &session, 1).await?;
    assert_eq!(end["outcome"], "completed", "{end} {:?}", failures(&log));
    assert_eq!(
        (failures(&log).len(), count(&log, "step.started")),
        (4, 5),
        "{:?}",
        failures(&log)
    );
    let texts: Vec<&str> = log
        .iter()
        .filter(|event| event.kind == "item.completed")
        .map(|event| event.text("text"))
        .collect();
    assert_eq!(texts, ["whole"], "nothing of a failed attempt stays");
    Ok(())
}

#[tokio::test]
async fn without_retries_the_first_failure_ends_the_turn() -> anyhow::Result<()> {
    let server = RawServer::start(vec![says(answer("500 Oops", "", "{}")), says(chat("unasked"))])?;
    let daemon = daemon(&server, "", "[limits]\nretries = 0").await?;
    let session = daemon.session("ask").await?;
    let (end, _) = turn(&daemon, &session, 1).await?;
    assert_eq!(
        (&end["outcome"], &end["reason"]["kind"]),
        (&json!("failed"), &json!("server")),
        "{end}"
    );
    assert_eq!(server.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_reply_one_byte_at_a_time_is_the_same_reply() -> anyhow::Result<()> {
    let text = "ä € 🦀 and so on";
    let server = RawServer::start(vec![dribbles(chat(text))])?;
    let daemon = daemon(&server, "", "").await?;
    let session = daemon.session("ask").await?;
    let (end, log) = turn(&daemon, &session, 1).await?;
    assert_eq!(end["outcome"], "completed", "{end}");
    assert!(log.iter().any(|event| event.text("text") == text), "{log:?}");
    Ok(())
}

#[tokio::test]
async fn an_event_of_ten_megabytes_fails_typed_and_the_daemon_goes_on() -> anyhow::Result<()> {
    let server = RawServer::start(vec![says(chat(&"x".repeat(10 * 1024 * 1024))), says(chat("here"))])?;
    let daemon = daemon(&server, "", "").await?;
    let session = daemon.session("ask").await?;
    let (end, _) = turn(&daemon, &session, 1).await?;
    assert_eq!(
        (&end["outcome"], &end["reason"]["kind"]),
        (&json!("failed"), &json!("reply_too_large")),
        "{end}"
    );
    let (end, _) = turn(&daemon, &session, 2).await?;
    assert_eq!(end["outcome"], "completed", "{end}");
    Ok(())
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_stays_at_home() -> anyhow::Result<()> {
    let elsewhere = RawServer::start(vec![says(chat("caught"))])?;
    let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.origin());
    let server = RawServer::start(vec![says(answer("307 Temporary Redirect", &location, ""))])?;
    let daemon = daemon(&server, "", "").await?;
    let session = daemon.session("ask").await?;
    let (end, _) = turn(&daemon, &session, 1).await?;
    assert_eq!(end["outcome"], "failed", "{end}");
    assert!(
        end["reason"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("base_url")),
        "{end}"
    );
    assert!(elsewhere.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_key_that_a_command_printed_is_asked_for_again_once_the_provider_refuses_it() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("here")))?;
    server.require_key("the-second-key");
    let home = Home::new()?;
    let file = home.path().join("printed");
    std::fs::write(&file, "the-first-key")?;
    let printing = format!("api_key_command = \"cat {}\"", file.display());
    let profile = tests::daemon::profile(&server, Wire::Chat).replace("api_key = \"a-test-key\"", &printing);
    let daemon = home.config(&profile)?.start().await?;
    let session = daemon.session("ask").await?;
    let (end, _) = turn(&daemon, &session, 1).await?;
    assert_eq!(end["reason"]["kind"], "authentication", "{end}");
    std::fs::write(&file, "the-second-key")?;
    let (end, _) = turn(&daemon, &session, 2).await?;
    assert_eq!(end["outcome"], "completed", "{end}");
    Ok(())
}
