//! Tools that reach out or only keep a list, through the real socket.

use serde_json::json;
use tests::daemon::{Home, TestDaemon, profile};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::{is, last};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that answers everything with `page`.
async fn serve(page: &'static str) -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}{page}").as_bytes()).await;
        }
    });
    Ok(port)
}

#[tokio::test]
async fn a_fetch_asks_with_the_whole_address_and_reads_the_page_as_text() -> anyhow::Result<()> {
    let port = serve("<html><script>x()</script><h1>Welcome</h1><p>Good <b>day</b>.</p></html>").await?;
    let url = format!("http://127.0.0.1:{port}/page?key=1");
    let server = ModelServer::start(Script::by_step([
        Reply::tool("fetch_url", json!({"url": url})),
        Reply::text("Read."),
    ]))?;
    let config = format!(
        "{}[tools]\nfetch_hosts = [\"127.0.0.1:{port}\"]\n",
        profile(&server, Wire::Messages)
    );
    // A proxy would look names up where nobody can see what they mean: a page is never read through one.
    let home = Home::new()?.config(&config)?.env("HTTP_PROXY", "http://127.0.0.1:1");
    let daemon = home.env("ALL_PROXY", "http://127.0.0.1:1").start().await?;
    let session = daemon.session("edits").await?;
    daemon.send(&session, "read it").await?;
    let approval = daemon.approval(&session).await?;
    assert_eq!(
        (&approval["action"]["url"], &approval["action"]["host"]),
        (&json!(url), &json!("127.0.0.1"))
    );
    daemon.answer(&approval, "once").await?;
    daemon.turn_end(&session, 1).await?;
    let outputs = server.request(2).await?.outputs().join("\n");
    assert!(
        outputs.contains("Welcome") && outputs.contains("Good day.") && !outputs.contains("x()"),
        "{outputs}"
    );
    Ok(())
}

#[tokio::test]
async fn a_private_address_is_refused_in_every_mode_and_without_a_question() -> anyhow::Result<()> {
    let port = serve("secret").await?;
    let urls = [
        format!("http://127.0.0.1:{port}/"),
        "http://[::ffff:169.254.169.254]/".into(),
        "file:///etc/passwd".into(),
    ];
    let mut reply = Reply::default();
    for url in &urls {
        reply = reply.call("fetch_url", json!({"url": url}));
    }
    let server = ModelServer::start(Script::by_step([reply, Reply::text("No.")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Chat).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "read them").await?;
    daemon.turn_end(&session, 1).await?;
    let log = daemon.log(&session)?;
    assert_eq!(tests::log::count(&log, "tool.started"), 0);
    let refused = log
        .iter()
        .filter(|event| event.kind == "tool.completed" && event.text("output").starts_with("`url`: "));
    assert_eq!(refused.count(), urls.len());
    Ok(())
}

#[tokio::test]
async fn a_search_asks_with_its_query_and_lists_results() -> anyhow::Result<()> {
    const PAGE: &str = r#"<div class="result"><a class="result__a" href="https://a.example/">First</a>
        <a class="result__snippet">About it</a></div>"#;
    let port = serve(PAGE).await?;
    let script = Script::by_step([
        Reply::tool("web_search", json!({"query": "what is it"})),
        Reply::text("Found."),
    ]);
    let server = ModelServer::start(script)?;
    let config = format!(
        "{}[tools]\nsearch_url = \"http://127.0.0.1:{port}/html\"\n",
        profile(&server, Wire::Responses)
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "search").await?;
    let approval = daemon.approval(&session).await?;
    assert_eq!(
        approval["action"]["url"],
        json!(format!("http://127.0.0.1:{port}/html?q=what+is+it"))
    );
    daemon.answer(&approval, "session").await?;
    daemon.turn_end(&session, 1).await?;
    assert_eq!(
        server.request(2).await?.outputs(),
        ["1. First\n   https://a.example/\n   About it\n"]
    );
    Ok(())
}

#[tokio::test]
async fn the_todo_list_is_seen_live_and_after_a_restart() -> anyhow::Result<()> {
    let items = json!([{"text": "look", "state": "done"}, {"text": "build", "state": "in_progress"}]);
    let script = Script::by_step([
        Reply::tool("todo_write", json!({ "items": items })),
        Reply::text("Listed."),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "plan").await?;
    let log = daemon
        .until(&session, "the list", |frame| is(frame, "todo.changed"))
        .await?;
    assert_eq!(last(&log)?["data"]["items"], items);
    daemon.turn_end(&session, 1).await?;
    daemon.kill9().await?;
    daemon.start().await?;
    let mut late = daemon.observer().await?;
    late.attach(&session, None).await?;
    let frames = late.until("a snapshot", |frame| is(frame, "snapshot")).await?;
    assert_eq!(last(&frames)?["todo"], items);
    Ok(())
}

#[tokio::test]
async fn the_user_switches_tools_on_and_off_and_sees_why() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::sequence([Reply::text("Hello.")]))?;
    let tools = "[tools]\nenabled = [\"time\"]\ndisabled = [\"bash\"]\n";
    let config = format!("{}{tools}", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    let listed = daemon.ctl(&["tools", "--json"]).await?.ok()?.json()?;
    let state = |name: &str| {
        listed
            .as_array()
            .and_then(|all| all.iter().find(|tool| tool["name"] == name))
            .map(|tool| tool["enabled"].clone())
    };
    assert_eq!(
        (state("time"), state("bash"), state("job_kill")),
        (Some(json!(true)), Some(json!(false)), Some(json!(false)))
    );
    let shown = daemon.ctl(&["tools"]).await?.ok()?.stdout;
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("bash") && line.contains("disabled")),
        "{shown}"
    );
    let session = daemon.session("ask").await?;
    daemon.send(&session, "hello").await?;
    daemon.turn_end(&session, 1).await?;
    let log = daemon.log(&session)?;
    let step = log
        .iter()
        .find(|event| event.kind == "step.completed")
        .map(|event| event.data["manifest"]["tools"].to_string());
    assert!(step.is_some_and(|tools| tools.contains("\"time\"") && !tools.contains("\"bash\"")));
    Ok(())
}

#[tokio::test]
async fn a_turn_is_offered_the_tools_that_are_named_and_the_next_one_all() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let send = async |arguments: &[&str]| {
        let all: Vec<&str> = ["send", "-s", &session]
            .iter()
            .chain(arguments)
            .copied()
            .chain(["hello"])
            .collect();
        daemon.ctl(&all).await
    };
    send(&["--tools", "read_file,grep"]).await?.ok()?;
    send(&["--no-tools"]).await?.ok()?;
    send(&[]).await?.ok()?;
    assert_eq!(server.request(1).await?.tools, ["read_file", "grep"]);
    assert!(server.request(2).await?.tools.is_empty());
    assert!(server.request(3).await?.tools.len() > 5);
    for (tool, reason) in [("read_flie", "there is no tool read_flie"), ("time", "off by default")] {
        let refused = send(&["--tools", tool]).await?;
        assert!(
            refused.code == Some(1) && refused.stderr.contains(reason),
            "{}",
            refused.stderr
        );
    }
    Ok(())
}
