//! A real model server through both wires: nothing here is scripted, so only what must hold of any model is asked.

use serde_json::json;
use tests::daemon::Home;
use tests::real_model::RealModel;
use tests::skip;
use tests::socket::is;

#[tokio::test]
async fn a_real_model_streams_and_its_usage_is_recorded_on_both_wires() -> anyhow::Result<()> {
    let Some(model) = RealModel::start().await? else {
        skip!("no real model server; .ci/run sets it up")
    };
    for (wire, base) in [("anthropic-messages", ""), ("openai-chat", "/v1")] {
        let config = format!(
            "default_model = \"real\"\n[models.real]\nwire = \"{wire}\"\nbase_url = \"{}{base}\"\nmodel = \"smollm2\"\n\
             auth = \"none\"\ncontext_tokens = 8192\nmax_output_tokens = 40\n",
            model.address()
        );
        let daemon = Home::new()?.config(&config)?.start().await?;
        let session = daemon.session("none").await?;
        let mut watcher = daemon.observer().await?;
        watcher.attach(&session, Some(0)).await?;
        daemon.send(&session, "Say hello.").await?;
        let frames = watcher.until("the end", |frame| is(frame, "turn.completed")).await?;
        let end = tests::socket::last(&frames)?;
        assert_eq!(end["data"]["outcome"], "completed", "{wire}: {end}");
        assert!(
            frames.iter().any(|frame| is(frame, "delta")),
            "{wire}: the text streams"
        );
        let usage = &end["data"]["usage"];
        assert!(
            usage["input"].as_u64() > Some(10) && usage["output"].as_u64() > Some(0),
            "{wire}: {usage}"
        );
        let text = frames
            .iter()
            .find(|frame| is(frame, "item.completed"))
            .map(|frame| frame["data"]["text"].clone());
        assert!(
            text.is_some_and(|text| text.as_str().is_some_and(|text| !text.trim().is_empty())),
            "{wire}"
        );

        // A second turn: the server accepts its own words back.
        daemon.send(&session, "And goodbye.").await?;
        let end = daemon.turn_end(&session, 2).await?;
        assert_eq!(end["data"]["outcome"], "completed", "{wire}: {end}");
        assert_eq!(end["data"]["steps"], json!(1), "{wire}");
    }
    Ok(())
}
