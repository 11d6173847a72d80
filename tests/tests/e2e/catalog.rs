//! Which model answers, what is known of it, and what its calls cost.

use serde_json::{Value, json};
use tests::daemon::Home;
use tests::log::Logged;
use tests::model_server::{Gate, ModelServer, Reply, Script, Tokens, Wire};
use tests::raw_server::{RawServer, answer, says};
use tests::socket::is;

fn used(input: u64, output: u64) -> Tokens {
    Tokens {
        input,
        output,
        cached: 0,
    }
}

fn notices<'a>(log: &'a [Logged], code: &str) -> Vec<&'a str> {
    let of_code = log
        .iter()
        .filter(|event| event.kind == "notice.added" && event.text("code") == code);
    of_code.map(|event| event.text("text")).collect()
}

/// A home whose catalog has one more provider, `box`, at the server, and whose clients have its key.
fn with_box(server: &ModelServer) -> anyhow::Result<Home> {
    let home = Home::new()?.env("BOX_KEY", "a-test-key");
    let file = home.config_file().with_file_name("models.toml");
    let base_url = server.base_url(Wire::Chat);
    let text = format!(
        "[[provider]]\nname = \"box\"\nwire = \"openai-chat\"\nbase_url = \"{base_url}\"\napi_key_env = \"BOX_KEY\"\n\
         model = \"box-1\"\n[[rule]]\nprefix = \"box-\"\ncontext_tokens = 64000\n"
    );
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(file, text)?;
    Ok(home)
}

#[tokio::test]
async fn a_key_alone_chooses_its_provider_and_the_first_turn_says_so_once() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    server.require_key("a-test-key");
    let daemon = with_box(&server)?.start().await?;
    let sent = daemon.ctl(&["send", "--json", "hello"]).await?.ok()?;
    let result: Value = serde_json::from_str(sent.stdout.lines().last().unwrap_or_default())?;
    let session = result["session"].as_str().unwrap_or_default().to_owned();
    daemon.send(&session, "again").await?;
    daemon.turn_end(&session, 2).await?;
    let log = daemon.log(&session)?;
    assert_eq!(notices(&log, "model_choice"), ["using box (key from BOX_KEY)"]);
    assert!(
        notices(&log, "context_window").is_empty(),
        "the catalog knows the window"
    );
    let models: Vec<&Value> = log
        .iter()
        .filter(|event| event.kind == "step.completed")
        .map(|event| &event.data["model"]["profile"])
        .collect();
    assert_eq!(models, [&json!("box"), &json!("box")]);
    Ok(())
}

#[tokio::test]
async fn provider_and_model_of_the_catalog_can_be_named() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = with_box(&server)?.start().await?;
    let made = daemon.ctl(&["new", "--model", "box/box-large"]).await?.ok()?;
    let session = made.stdout.trim().to_owned();
    daemon.ctl(&["send", "-s", &session, "hello"]).await?.ok()?;
    let log = daemon.log(&session)?;
    let model = log
        .iter()
        .find(|event| event.kind == "step.completed")
        .map(|event| event.data["model"]["profile"].clone());
    assert_eq!(model, Some(json!("box/box-large")));
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.key.as_deref() == Some("a-test-key"))
    );
    let params = json!({"cwd": daemon.home.project(), "model": "nobody/m"});
    let refused = daemon.controller().await?.refused("session.create", params).await?;
    assert_eq!(refused["data"]["kind"], "unknown_model", "{refused}");
    Ok(())
}

#[tokio::test]
async fn usage_and_cost_are_summed_by_call_turn_session_and_day() -> anyhow::Result<()> {
    let two = [
        Reply::tool("bash", json!({"command": "true"})).usage(used(1_000, 100)),
        Reply::text("done").usage(used(2_000, 100)),
    ];
    let server = ModelServer::start(Script::by_step(two))?;
    let config = format!(
        "{}prices = {{ input = 2, output = 10 }}\n",
        tests::daemon::profile(&server, Wire::Messages)
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let (one, other) = (daemon.session("all").await?, daemon.session("all").await?);
    for session in [&one, &other] {
        daemon.send(session, "go").await?;
        daemon.turn_end(session, 1).await?;
    }
    let mut peer = daemon.observer().await?;
    let all = peer.call("session.usage", json!({})).await?;
    assert_eq!(
        (
            &all["total"]["calls"],
            &all["total"]["usage"]["input"],
            &all["total"]["unpriced"]
        ),
        (&json!(4), &json!(6_000), &json!(0))
    );
    let cost = |value: &Value| value["cost"].as_f64().unwrap_or(-1.0);
    assert!((cost(&all["total"]) - 0.016).abs() < 1e-9, "{all}");
    assert_eq!(
        (
            all["days"].as_array().map(Vec::len),
            all["sessions"].as_array().map(Vec::len)
        ),
        (Some(1), Some(2)),
        "{all}"
    );
    assert_eq!(all["models"][0]["profile"], "scripted", "{all}");
    let its = peer.call("session.usage", json!({"session": one})).await?;
    assert_eq!(
        (&its["turns"][0]["steps"], &its["turns"][0]["usage"]["output"]),
        (&json!(2), &json!(200)),
        "{its}"
    );
    assert!((cost(&its["turns"][0]) - 0.008).abs() < 1e-9, "{its}");
    let calls = daemon
        .log(&one)?
        .into_iter()
        .filter(|event| event.kind == "step.completed");
    assert!(calls.clone().count() == 2 && calls.into_iter().all(|event| event.data["cost"].is_number()));
    let told = daemon.ctl(&["usage", &one, "--json"]).await?.ok()?.json()?;
    assert_eq!(told, its);
    let table = daemon.ctl(&["usage"]).await?.ok()?;
    assert!(table.stdout.starts_with("total\t\t4\t6000\t"), "{}", table.stdout);
    Ok(())
}

#[tokio::test]
async fn at_80_percent_of_the_budget_a_person_is_told_once() -> anyhow::Result<()> {
    let replies = [used(700, 50), used(750, 50), used(900, 50)].map(|usage| Reply::text("so").usage(usage));
    let server = ModelServer::start(Script::sequence(replies))?;
    let config = format!(
        "{}context_budget_tokens = 1000\n",
        tests::daemon::profile(&server, Wire::Chat)
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    for (turn, told) in [(1, 0), (2, 1), (3, 1)] {
        daemon.send(&session, "go").await?;
        daemon.turn_end(&session, turn).await?;
        assert_eq!(
            notices(&daemon.log(&session)?, "context_budget").len(),
            told,
            "after turn {turn}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn an_unknown_context_window_is_guessed_and_the_notice_names_the_key_to_set() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("so")))?;
    let config = tests::daemon::profile(&server, Wire::Chat).replace("context_tokens = 200000\n", "");
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    for turn in 1..=2 {
        daemon.send(&session, "go").await?;
        daemon.turn_end(&session, turn).await?;
    }
    let log = daemon.log(&session)?;
    let told = notices(&log, "context_window");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told.iter()
            .all(|text| text.contains("32768") && text.contains("context_tokens in [models.scripted]")),
        "{told:?}"
    );
    Ok(())
}

#[tokio::test]
async fn models_are_listed_with_what_is_known_and_what_their_server_has() -> anyhow::Result<()> {
    let list = r#"{"object":"list","data":[{"id":"m"},{"id":"bigger"}]}"#;
    let server = RawServer::start(vec![
        says(answer("200 OK", "content-type: application/json\r\n", list)),
        says(answer("404 Not Found", "", "{}")),
    ])?;
    let config = format!(
        "default_model = \"a\"\n[models.a]\nwire = \"openai-chat\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\napi_key = \"a-test-key\"\n\
         context_tokens = 5000\n[models.b]\nwire = \"openai-chat\"\nmodel = \"gpt-4o\"\napi_key_env = \"NOBODY_HAS_THIS\"\n",
        server.origin()
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let listed = daemon.ctl(&["model", "list", "--json"]).await?.ok()?.json()?;
    let (a, b) = (&listed["models"][0], &listed["models"][1]);
    assert_eq!(
        (&a["name"], &a["default"], &a["context_tokens"]),
        (&json!("a"), &json!(true), &json!(5_000)),
        "{listed}"
    );
    assert_eq!(a["available"], json!(["m", "bigger"]), "{listed}");
    assert_eq!(
        (&b["lacks"], &b["prices"]["input"]),
        (&json!("NOBODY_HAS_THIS"), &json!(2.5)),
        "{listed}"
    );
    assert!(
        b["available"].is_null() && !listed.to_string().contains("a-test-key"),
        "{listed}"
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.text.starts_with("GET /v1/models ")),
        "{:?}",
        server.requests()
    );
    let failed = daemon.ctl(&["model", "list", "--json"]).await?.ok()?.json()?;
    assert!(failed["models"][0]["problem"].is_string(), "{failed}");
    let table = daemon.ctl(&["model", "list", "--configured"]).await?.ok()?;
    assert!(
        table.stdout.lines().count() == 2 && table.stdout.contains("needs NOBODY_HAS_THIS"),
        "{}",
        table.stdout
    );
    assert_eq!(server.requests().len(), 2, "--configured asks nobody");
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_models_toml_is_told_with_file_and_line() -> anyhow::Result<()> {
    let home = Home::new()?.config("")?;
    std::fs::write(
        home.config_file().with_file_name("models.toml"),
        "[[rule]]\nexact = \"m\"\nwindow = 3\n",
    )?;
    let ran = home.ctl(&["ls"]).await?;
    assert!(ran.code != Some(0) && ran.stderr.contains("models.toml:3"), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn a_turn_from_an_earlier_life_waits_for_the_key_it_began_with() -> anyhow::Result<()> {
    let gate = Gate::new();
    let server = ModelServer::start(Script::sequence([
        Reply::text("cut off").gate(&gate),
        Reply::text("whole"),
    ]))?;
    let daemon = with_box(&server)?.start().await?;
    let sent = daemon
        .ctl(&["send", "--no-wait", "--json", "hello"])
        .await?
        .ok()?
        .json()?;
    let session = sent["session"].as_str().unwrap_or_default().to_owned();
    server.request(1).await?;
    daemon.kill9().await?;
    // Its own environment has the key, which it must not use: keys come from clients.
    daemon.start().await?;
    let waits = |frame: &Value| is(frame, "step.failed") && frame["data"]["error"]["kind"] == "model_gone";
    let frames = daemon.until(&session, "the wait for the key", waits).await?;
    let waiting = &tests::socket::last(&frames)?["data"];
    assert!(
        waiting["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("BOX_KEY")),
        "{waiting}"
    );
    assert!(waiting["retry_at"].is_string(), "{waiting}");
    daemon.ctl(&["ls"]).await?.ok()?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(
        (&end["data"]["outcome"], &end["data"]["demo"]),
        (&json!("completed"), &Value::Null),
        "{end}"
    );
    assert_eq!(server.seen().len(), 2);
    Ok(())
}
