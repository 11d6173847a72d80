//! Limits of what model calls may cost, and of how many one provider answers at once.

use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon, profile};
use tests::log::Logged;
use tests::model_server::{Gate, ModelServer, Reply, Script, Wire};
use tests::socket::{is, last};

/// A daemon whose model costs $0.10 a call, 100 tokens in and 10 out.
async fn priced(server: &ModelServer, limits: &str) -> anyhow::Result<TestDaemon> {
    let prices = "prices = { input = 0, output = 10000 }\n";
    let config = format!("{}{prices}[limits]\n{limits}", profile(server, Wire::Messages));
    Home::new()?.config(&config)?.start().await
}

fn notices(log: &[Logged], code: &str) -> usize {
    log.iter()
        .filter(|event| event.kind == "notice.added" && event.data["code"] == code)
        .count()
}

#[tokio::test]
async fn a_session_is_told_at_80_percent_and_asks_at_its_limit_until_somebody_lets_the_turn_go_on() -> anyhow::Result<()>
{
    let server = ModelServer::start(Script::by(|seen| match seen.step() {
        0..2 => Reply::tool("list_dir", json!({})),
        _ => Reply::text("Done."),
    }))?;
    let daemon = priced(&server, "cost_per_session_usd = 0.25\n").await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    assert_eq!(notices(&daemon.log(&session)?, "cost_session"), 1);

    daemon.send(&session, "go on").await?;
    let asked = daemon.approval(&session).await?;
    assert!(
        asked["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("$0.30 of its $0.25")),
        "{asked}"
    );
    assert_eq!(asked["choices"], json!(["once", "deny"]));
    assert_eq!(server.request(3).await?.step(), 2, "nothing was asked of the model");
    daemon.answer(&asked, "once").await?;
    let end = daemon.turn_end(&session, 2).await?;
    assert_eq!(
        (&end["data"]["outcome"], &end["data"]["steps"]),
        (&json!("completed"), &json!(3))
    );

    daemon.send(&session, "once more").await?;
    let asked = daemon.approval(&session).await?;
    // It is asked again after a crash.
    daemon.kill9().await?;
    daemon.start().await?;
    let again = daemon.approval(&session).await?;
    assert_eq!(asked["id"], again["id"]);
    daemon.answer(&again, "deny").await?;
    let end = daemon.turn_end(&session, 3).await?;
    assert_eq!(end["data"]["reason"]["kind"], "cost_limit");
    assert_eq!(notices(&daemon.log(&session)?, "cost_session"), 1, "it was told once");
    Ok(())
}

#[tokio::test]
async fn the_limit_of_a_day_counts_all_sessions_and_outlives_the_daemon() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let daemon = priced(&server, "cost_per_day_usd = 0.15\n").await?;
    for _ in 0..2 {
        let session = daemon.session("all").await?;
        daemon.send(&session, "go").await?;
        daemon.turn_end(&session, 1).await?;
    }
    daemon.kill9().await?;
    daemon.start().await?;
    let session = daemon.session("all").await?;
    let denied = daemon
        .ctl(&["send", "-s", &session, "--unattended", "deny:1ms", "go"])
        .await?;
    assert_eq!(denied.code, Some(3), "{}", denied.stderr);
    assert!(
        denied.stderr.contains("a limit of cost is reached"),
        "{}",
        denied.stderr
    );
    Ok(())
}

#[tokio::test]
async fn a_provider_gets_no_more_calls_at_once_than_the_configuration_says() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |_| Reply::text("Yes.").gate(&held)))?;
    let daemon = priced(&server, "calls_per_provider = 1\n").await?;
    let (first, second) = (daemon.session("all").await?, daemon.session("all").await?);
    daemon.send(&first, "one").await?;
    server.request(1).await?;
    daemon.send(&second, "two").await?;
    let log = daemon
        .until(&second, "its model call", |frame| is(frame, "step.started"))
        .await?;
    assert!(is(last(&log)?, "step.started"));
    // Whoever waits can be interrupted; then nobody was ever asked.
    let interrupt: Value = daemon
        .controller()
        .await?
        .call("turn.interrupt", json!({"session": second}))
        .await?;
    assert_eq!(interrupt["interrupted"], true);
    assert_eq!(daemon.turn_end(&second, 1).await?["data"]["outcome"], "interrupted");
    gate.open();
    daemon.turn_end(&first, 1).await?;
    assert_eq!(server.seen().len(), 1);
    Ok(())
}
