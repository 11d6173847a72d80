//! The scripted model server itself: a test that trusts it must be able to.

use serde_json::{Value, json};
use tests::model_server::{Gate, ModelServer, Reply, Said, Script, Wire};
use tests::soon;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The status and the decoded body of a POST.
async fn post(server: &ModelServer, path: &str, body: &Value) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(server.address()).await?;
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.0\r\nhost: model\r\nanthropic-version: 2023-06-01\r\nx-api-key: k\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = String::new();
    soon("the model server's answer", stream.read_to_string(&mut answer)).await??;
    let status = answer.split(' ').nth(1).unwrap_or_default().parse()?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok((status, body.to_owned()))
}

fn messages(said: Value) -> Value {
    let tool = json!({"name": "bash", "description": "runs a command", "input_schema": {"type": "object"}});
    json!({"model": "m", "max_tokens": 10, "stream": true, "messages": said, "tools": [tool]})
}

fn chat(said: Value) -> Value {
    let tool = json!({"type": "function", "function": {
        "name": "bash", "description": "runs a command", "parameters": {"type": "object"}}});
    let usage = json!({"include_usage": true});
    json!({"model": "m", "stream": true, "stream_options": usage, "messages": said, "tools": [tool]})
}

#[tokio::test]
async fn a_messages_reply_has_each_block_once_and_its_usage() -> anyhow::Result<()> {
    let reply = Reply::default()
        .reasoning("hm")
        .then_text("hello")
        .deltas(5)
        .call("bash", json!({"command": "ls"}));
    let server = ModelServer::start(Script::sequence([reply]))?;
    let (status, body) = post(
        &server,
        "/v1/messages",
        &messages(json!([{"role": "user", "content": "hi"}])),
    )
    .await?;
    assert_eq!(status, 200);
    assert_eq!(body.matches("event: content_block_start").count(), 3);
    assert_eq!(body.matches("text_delta").count(), 5);
    assert_eq!(body.matches("signature_delta").count(), 1);
    assert!(body.contains(r#""stop_reason":"tool_use""#), "{body}");
    assert!(
        body.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
        "{body}"
    );
    Ok(())
}

#[tokio::test]
async fn a_chat_reply_ends_with_usage_and_done() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::sequence([Reply::text("hello").deltas(5)]))?;
    let (status, body) = post(
        &server,
        "/v1/chat/completions",
        &chat(json!([{"role": "user", "content": "hi"}])),
    )
    .await?;
    assert_eq!(status, 200);
    let text: String = body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| {
            let data: Value = serde_json::from_str(data).ok()?;
            data.pointer("/choices/0/delta/content")?.as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(text, "hello");
    assert!(body.contains(r#""prompt_tokens":100"#), "{body}");
    assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
    Ok(())
}

#[tokio::test]
async fn each_broken_rule_is_refused_by_name() -> anyhow::Result<()> {
    let user = json!({"role": "user", "content": "hi"});
    let called =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "bash", "input": {}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "x"}]});
    let thought =
        json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "made up"}]});
    let asked = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]});
    let with = |mut body: Value, key: &str| {
        body[key] = json!(1);
        body
    };
    let cases = [
        ("/v1/messages", messages(json!([])), "the user's"),
        ("/v1/messages", messages(json!([user, user])), "twice in a row"),
        (
            "/v1/messages",
            messages(json!([user, called])),
            "must not be the model's",
        ),
        ("/v1/messages", messages(json!([user, called, user])), "have no results"),
        (
            "/v1/messages",
            messages(json!([user, called, result])),
            "but results for",
        ),
        ("/v1/messages", messages(json!([user, thought, user])), "was changed"),
        (
            "/v1/messages",
            with(messages(json!([user])), "tool"),
            "unknown key `tool`",
        ),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 1, "messages": [user]}),
            "`stream`",
        ),
        ("/v1/chat/completions", chat(json!([user, user])), "in a row"),
        (
            "/v1/chat/completions",
            chat(json!([user, asked, user])),
            "have no results",
        ),
        (
            "/v1/chat/completions",
            chat(json!([user, {"role": "tool", "tool_call_id": "z", "content": "x"}])),
            "without their calls",
        ),
        (
            "/v1/chat/completions",
            with(chat(json!([user])), "max_output_tokens"),
            "unknown key",
        ),
    ];
    let server = ModelServer::start(Script::by(|_| Reply::text("never said")))?;
    for (path, body, wrong) in &cases {
        let (status, answer) = post(&server, path, body).await?;
        assert_eq!(status, 400, "{body}");
        assert!(
            answer.contains(wrong),
            "{body} was refused with {answer}, which does not say {wrong}"
        );
    }
    assert_eq!(server.take_faults().len(), cases.len());
    Ok(())
}

#[tokio::test]
async fn a_gate_holds_fragments_back_and_a_client_that_leaves_is_counted() -> anyhow::Result<()> {
    let gate = Gate::new();
    let server = ModelServer::start(Script::sequence([Reply::text("ab").deltas(2).gate(&gate)]))?;
    let mut stream = TcpStream::connect(server.address()).await?;
    let body = chat(json!([{"role": "user", "content": "hi"}])).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    gate.release(1);
    let mut got = String::new();
    while !got.contains(r#""content":"a""#) {
        let mut piece = [0; 4096];
        let count = soon("the first fragment", stream.read(&mut piece)).await??;
        assert!(count > 0, "the body ended early: {got}");
        got.push_str(&String::from_utf8_lossy(piece.get(..count).unwrap_or_default()));
    }
    assert!(
        !got.contains(r#""content":"b""#),
        "the gate let a second fragment through"
    );
    drop(stream);
    server.left(1).await
}

#[tokio::test]
async fn a_script_by_step_answers_by_how_far_the_turn_is() -> anyhow::Result<()> {
    let script = Script::by_step([Reply::tool("bash", json!({"command": "ls"})), Reply::text("done")]);
    let server = ModelServer::start(script)?;
    let user = json!({"role": "user", "content": "hi"});
    for _ in 0..2 {
        let (_, body) = post(&server, "/v1/chat/completions", &chat(json!([user]))).await?;
        assert!(body.contains("tool_calls"), "{body}");
    }
    let asked = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "files"});
    let (_, body) = post(&server, "/v1/chat/completions", &chat(json!([user, asked, result]))).await?;
    assert!(body.contains("done"), "{body}");
    let last = server.request(3).await?;
    assert_eq!(last.outputs(), ["files"]);
    assert!(matches!(last.said.first(), Some(Said::User(text)) if text == "hi"));
    assert_eq!(last.wire, Wire::Chat);
    Ok(())
}
