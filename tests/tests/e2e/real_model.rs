//! A real model server through all wires: nothing here is scripted, so only what must hold of any model is asked.

use anyhow::Context;
use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon};
use tests::real_model::RealModel;
use tests::socket::{Peer, is};
use tests::{skip, soon};

/// A daemon with two profiles of the real model over `wire`: one says little, the other a lot.
async fn daemon(model: &RealModel, wire: &str, base: &str) -> anyhow::Result<TestDaemon> {
    let profile = |name: &str, max_output_tokens: u32| {
        format!(
            "[models.{name}]\nwire = \"{wire}\"\nbase_url = \"{}{base}\"\nmodel = \"smollm2\"\nauth = \"none\"\n\
             context_tokens = 200000\nmax_output_tokens = {max_output_tokens}\n",
            model.address()
        )
    };
    let config = format!(
        "default_model = \"brief\"\n{}{}",
        profile("brief", 40),
        profile("long", 3_000)
    );
    Home::new()?.config(&config)?.start().await
}

#[tokio::test]
async fn a_real_model_streams_and_its_usage_is_recorded_on_all_wires() -> anyhow::Result<()> {
    let Some(model) = RealModel::start().await? else {
        skip!("no real model server; .ci/run sets it up")
    };
    // One after the other with one server, which keeps what all requests begin with.
    for (wire, base) in [
        ("anthropic-messages", ""),
        ("openai-chat", "/v1"),
        ("openai-responses", "/v1"),
    ] {
        let daemon = daemon(&model, wire, base).await?;
        let session = daemon.session("none").await?;
        let mut watcher = daemon.observer().await?;
        watcher.attach(&session, Some(0)).await?;
        streams(&daemon, &mut watcher, &session).await.context(wire)?;
        takes_its_own_words_back(&daemon, &session).await.context(wire)?;
        refuses_what_is_too_long(&daemon, &session).await.context(wire)?;
        stops_when_interrupted(&daemon, &model).await.context(wire)?;
    }
    Ok(())
}

async fn streams(daemon: &TestDaemon, watcher: &mut Peer, session: &str) -> anyhow::Result<()> {
    daemon.send(session, "Say hello.").await?;
    let frames = watcher.until("the end", |frame| is(frame, "turn.completed")).await?;
    let end = tests::socket::last(&frames)?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    assert!(frames.iter().any(|frame| is(frame, "delta")), "the text streams");
    let usage = &end["data"]["usage"];
    assert!(
        usage["input"].as_u64() > Some(10) && usage["output"].as_u64() > Some(0),
        "{usage}"
    );
    let item = frames.iter().find(|frame| is(frame, "item.completed"));
    let text = item.and_then(|frame| frame["data"]["text"].as_str());
    assert!(text.is_some_and(|text| !text.trim().is_empty()), "{text:?}");
    Ok(())
}

async fn takes_its_own_words_back(daemon: &TestDaemon, session: &str) -> anyhow::Result<()> {
    daemon.send(session, "And goodbye.").await?;
    let end = daemon.turn_end(session, 2).await?;
    assert_eq!(
        (&end["data"]["outcome"], &end["data"]["steps"]),
        (&json!("completed"), &json!(1)),
        "{end}"
    );
    Ok(())
}

/// The server's own refusal, told apart from other mistakes and not tried again.
async fn refuses_what_is_too_long(daemon: &TestDaemon, session: &str) -> anyhow::Result<()> {
    daemon.send(session, &"word ".repeat(20_000)).await?;
    let end = daemon.turn_end(session, 3).await?;
    assert_eq!(end["data"]["reason"]["kind"], "context_too_long", "{end}");
    assert_eq!(tests::log::count(&daemon.log(session)?, "step.failed"), 1);
    Ok(())
}

/// The server itself says that it writes no more.
async fn stops_when_interrupted(daemon: &TestDaemon, model: &RealModel) -> anyhow::Result<()> {
    let mut peer = daemon.controller().await?;
    let params = json!({"cwd": daemon.home.project(), "mode": "none", "model": "long"});
    let created: Value = peer.call("session.create", params).await?;
    let session = created["id"].as_str().context("the session's id")?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(session, Some(0)).await?;
    daemon.send(session, "Write a very long story.").await?;
    watcher.until("the first words", |frame| is(frame, "delta")).await?;
    assert!(model.is_busy().await?, "it writes");
    peer.call("turn.interrupt", json!({"session": session})).await?;
    let end = daemon.turn_end(session, 1).await?;
    assert_eq!(end["data"]["outcome"], "interrupted", "{end}");
    let idle = async {
        while model.is_busy().await? {}
        anyhow::Ok(())
    };
    soon("the server notices that nobody listens", idle).await?
}
