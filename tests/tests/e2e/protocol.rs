//! The protocol from outside: `nc` and a short Python script can talk to the socket as docs/protocol.md says.

use anyhow::Context;
use serde_json::{Value, json};
use tests::bins::root;
use tests::daemon::{TestDaemon, ended};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::skip;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn nc_watches_without_the_token_and_acts_with_it() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut command = daemon.home.command("nc");
    command
        .arg("-U")
        .arg("-N")
        .arg(daemon.socket()?)
        .stdin(std::process::Stdio::piped());
    let Ok(mut nc) = command.spawn() else {
        skip!("nc is not installed")
    };
    let call = |id: u64, method: &str, params: Value| {
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        )
    };
    let send = json!({"session": session, "content": [{"type": "text", "text": "hi"}], "input_id": "nc"});
    let hello = json!({"version": ::protocol::VERSION, "client": "nc", "kind": "script", "token": daemon.token()?});
    let lines = [
        call(1, "session.get", json!({"session": session})),
        call(2, "session.send", send.clone()),
        call(3, "daemon.hello", hello),
        call(4, "session.send", send),
        call(5, "turn.wait", json!({"session": session, "input_id": "nc"})),
    ];
    // nc closes its writing side at the end of its input: the daemon must still answer what was asked.
    nc.stdin
        .take()
        .context("nc's input")?
        .write_all(lines.concat().as_bytes())
        .await?;
    let ran = ended(nc, "nc").await?;
    let answers: Vec<Value> = ran.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(answers.len(), 5, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(answers[0]["result"]["id"], json!(session));
    assert_eq!(answers[1]["error"]["data"]["kind"], "not_authorized");
    assert_eq!(answers[2]["result"]["role"], "controller");
    assert_eq!(answers[4]["result"]["text"], "fine");
    Ok(())
}

/// The Python client that docs/protocol.md prints.
fn python_client() -> anyhow::Result<String> {
    let text = std::fs::read_to_string(root().join("docs/protocol.md"))?;
    let client = text
        .split("```python\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    Ok(client.context("docs/protocol.md has no Python client")?.to_owned())
}

#[tokio::test]
async fn the_python_client_of_the_document_works_and_is_short() -> anyhow::Result<()> {
    let client = python_client()?;
    let lines = client.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 30, "{lines} lines");
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let file = daemon.home.path().join("client.py");
    std::fs::write(&file, client)?;
    let mut python = daemon.home.command("python3");
    python.arg(file).arg("hello");
    let Ok(child) = python.spawn() else {
        skip!("python3 is not installed")
    };
    let ran = ended(child, "the Python client").await?.ok()?;
    assert!(ran.stdout.contains("fine"), "{}{}", ran.stdout, ran.stderr);
    Ok(())
}

#[tokio::test]
async fn the_document_speaks_of_every_method_event_and_error() -> anyhow::Result<()> {
    let text = std::fs::read_to_string(root().join("docs/protocol.md"))?;
    let mut missing = Vec::new();
    let mut generator = schemars::SchemaGenerator::default();
    ::protocol::method::each_method(&mut generator, |name, _, _| {
        missing.extend((!text.contains(name)).then(|| name.to_owned()))
    });
    ::protocol::method::each_subscription(&mut generator, |name, note, cancel, _| {
        missing.extend(
            [name, note, cancel]
                .into_iter()
                .filter(|name| !text.contains(name))
                .map(str::to_owned),
        );
    });
    missing.extend(
        ::protocol::Event::KINDS
            .iter()
            .filter(|kind| !text.contains(*kind))
            .map(|kind| (*kind).to_owned()),
    );
    missing.extend(
        ::protocol::ErrorKind::ALL
            .iter()
            .map(ToString::to_string)
            .filter(|kind| !text.contains(kind)),
    );
    assert!(missing.is_empty(), "docs/protocol.md does not speak of {missing:?}");
    Ok(())
}
