//! A model server on this machine that nobody configured: who it is, who lets it answer, and where it never does.

use anyhow::Context;
use serde_json::{Value, json};
use tests::bins::bins;
use tests::daemon::{Home, TestDaemon};
use tests::soon;
use tests::terminal::Terminals;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// Where llama.cpp listens.
const ADDRESS: &str = "127.0.0.1:8080";

/// Listens as another account and says what comes.
const SQUATTER: &str = r#"
import os, socket
os.setgroups([])
os.setgid(4242)
os.setuid(4242)
server = socket.create_server(("127.0.0.1", 8080))
print("http://here", flush=True)
while True:
    client, _ = server.accept()
    print("somebody came", client.recv(4096), flush=True)
    client.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 23\r\n\r\n{"data": [{"id": "m"}]}')
"#;

/// A daemon, and a server in the same network, where nothing else listens.
struct Neighbourhood {
    daemon: TestDaemon,
    /// What the server says after it is there.
    says: BufReader<ChildStdout>,
    server: Child,
}

/// `server`, a shell line, beside a daemon; `None` where no network of one's own can be made.
async fn beside(home: Home, server: &str) -> anyhow::Result<Option<Neighbourhood>> {
    let alone = Command::new("unshare")
        .args(["-n", "ip", "link", "set", "lo", "up"])
        .output()
        .await;
    if !alone.is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    let agentd = bins()?.agentd();
    let both = format!(
        "ip link set lo up && {} start > /dev/null && exec {server}",
        agentd.display()
    );
    let mut server = home.command("unshare").args(["-n", "sh", "-c", &both]).spawn()?;
    let mut says = BufReader::new(server.stdout.take().context("the server's output")?);
    let mut address = String::new();
    soon("the server serves", says.read_line(&mut address)).await??;
    anyhow::ensure!(address.starts_with("http://"), "the server said {address:?}");
    Ok(Some(Neighbourhood {
        daemon: TestDaemon { home },
        says,
        server,
    }))
}

/// A scripted model server where llama.cpp listens, of this account.
async fn with_neighbour(home: Home) -> anyhow::Result<Option<Neighbourhood>> {
    let script = home.path().join("script.json");
    let replies = r#"{"replies": [{"parts": [{"text": {"text": "from next door"}}]}]}"#;
    std::fs::write(&script, replies)?;
    let server = format!(
        "{} --port 8080 --script {}",
        env!("CARGO_BIN_EXE_model-server"),
        script.display()
    );
    beside(home, &server).await
}

/// Who answered a turn: `Null` the model, `true` the demo.
async fn demo(daemon: &TestDaemon, session: &str, turn: usize) -> anyhow::Result<Value> {
    daemon.send(session, "hello").await?;
    let end = daemon.turn_end(session, turn).await?;
    anyhow::ensure!(end["data"]["outcome"] == "completed", "{end}");
    Ok(end["data"]["demo"].clone())
}

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

#[tokio::test]
async fn a_server_of_this_machine_answers_only_after_somebody_said_so() -> anyhow::Result<()> {
    let Some(Neighbourhood {
        daemon,
        server: _server,
        ..
    }) = with_neighbour(Home::new()?).await?
    else {
        tests::skip!("no network namespace can be made here");
    };
    let sent = daemon.ctl(&["send", "hello"]).await?.ok()?;
    assert!(
        sent.stderr.contains("llama.cpp at 127.0.0.1:8080 could answer here"),
        "{sent:?}"
    );
    assert!(
        sent.stderr.contains("agentctl model confirm") && sent.stdout.contains("demo"),
        "{sent:?}"
    );
    let session = daemon.session("ask").await?;
    assert_eq!(demo(&daemon, &session, 1).await?, json!(true), "nobody was asked");
    let named = json!({"cwd": daemon.home.project(), "model": "llama.cpp"});
    let refused = daemon.controller().await?.refused("session.create", named).await?;
    assert_eq!(refused["data"]["kind"], "unknown_model", "{refused}");

    let ran = daemon.ctl(&["model", "confirm"]).await?;
    assert!(ran.code == Some(2) && ran.stderr.contains("--yes"), "{ran:?}");
    for (address, uid) in [("127.0.0.1:8081", uid()), (ADDRESS, uid() + 1)] {
        let other = json!({"address": address, "uid": uid, "decision": "use"});
        let refused = daemon.controller().await?.refused("model.confirm", other).await?;
        assert_eq!(refused["data"]["kind"], "unknown_model", "{refused}");
    }
    let list = daemon.ctl(&["model", "list"]).await?.ok()?;
    assert!(
        list.stderr.contains("run by you") || list.stderr.contains("run by root"),
        "{list:?}"
    );
    let yes = daemon.ctl(&["model", "confirm", "--yes"]).await?.ok()?;
    assert!(
        yes.stderr.contains("llama.cpp at 127.0.0.1:8080 answers from now on"),
        "{yes:?}"
    );

    let sent = daemon.ctl(&["send", "hello"]).await?.ok()?;
    assert_eq!(sent.stdout, "from next door\n");
    assert!(
        sent.stderr
            .contains("using llama.cpp at 127.0.0.1:8080 with the model scripted-1"),
        "{sent:?}"
    );
    let default = async |key: Option<&str>| -> anyhow::Result<Value> {
        let mut command = daemon.home.command(bins()?.agentctl());
        command
            .args(["model", "list", "--configured", "--json"])
            .envs(key.map(|key| (key, "k")));
        let listed = tests::daemon::run(command, "agentctl model list").await?.ok()?.json()?;
        let models = listed["models"].as_array().cloned().unwrap_or_default();
        Ok(models
            .into_iter()
            .find(|model| model["default"] == json!(true))
            .map_or(Value::Null, |model| model["name"].clone()))
    };
    assert_eq!(default(None).await?, "llama.cpp");
    daemon.ctl(&["model", "confirm", "--no"]).await?.ok()?;
    assert_eq!(default(None).await?, "demo", "the word is taken back");
    let sent = daemon.ctl(&["send", "hello"]).await?.ok()?;
    assert!(!sent.stderr.contains("could answer here"), "{sent:?}");
    daemon.ctl(&["model", "confirm", "--yes"]).await?.ok()?;
    assert_eq!(default(None).await?, "llama.cpp");
    assert_eq!(default(Some("OPENAI_API_KEY")).await?, "openai");
    Ok(())
}

#[tokio::test]
async fn mode_all_does_not_go_with_a_server_nobody_configured() -> anyhow::Result<()> {
    let Some(Neighbourhood {
        daemon,
        server: _server,
        ..
    }) = with_neighbour(Home::new()?).await?
    else {
        tests::skip!("no network namespace can be made here");
    };
    let before = daemon.session("all").await?;
    daemon.ctl(&["model", "confirm", "--yes"]).await?.ok()?;
    let mut peer = daemon.controller().await?;
    let params = json!({"cwd": daemon.home.project(), "mode": "all"});
    let refused = peer.refused("session.create", params).await?;
    assert_eq!(refused["data"]["kind"], "not_authorized", "{refused}");
    assert!(refused.to_string().contains("config file"), "{refused}");
    let session = daemon.session("ask").await?;
    let widened = json!({"session": session, "mode": "all"});
    peer.refused("session.update", widened).await?;
    // A mode that came another way stops the model call itself, before anything is sent.
    daemon.send(&before, "hello").await?;
    let end = daemon.turn_end(&before, 1).await?;
    assert_eq!(
        (&end["data"]["outcome"], &end["data"]["reason"]["kind"]),
        (&json!("failed"), &json!("refused")),
        "{end}"
    );
    assert_eq!(demo(&daemon, &session, 1).await?, Value::Null);
    Ok(())
}

#[tokio::test]
async fn a_configured_server_of_this_machine_goes_with_every_mode() -> anyhow::Result<()> {
    let config = "[models.mine]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:8080/v1\"\nmodel = \"scripted-1\"\nauth = \"none\"\n";
    let Some(Neighbourhood {
        daemon,
        server: _server,
        ..
    }) = with_neighbour(Home::new()?.config(config)?).await?
    else {
        tests::skip!("no network namespace can be made here");
    };
    let session = daemon.session("all").await?;
    assert_eq!(demo(&daemon, &session, 1).await?, Value::Null);
    Ok(())
}

#[tokio::test]
async fn a_port_that_another_account_listens_on_is_never_asked() -> anyhow::Result<()> {
    if uid() != 0 {
        tests::skip!("only root can start a server as another account");
    }
    let home = Home::new()?;
    let program = home.path().join("squatter.py");
    std::fs::write(&program, SQUATTER)?;
    let server = format!("python3 {}", program.display());
    let Some(Neighbourhood {
        daemon,
        mut says,
        mut server,
    }) = beside(home, &server).await?
    else {
        tests::skip!("no network namespace can be made here");
    };
    let session = daemon.session("ask").await?;
    assert_eq!(demo(&daemon, &session, 1).await?, json!(true));
    let listed = daemon.ctl(&["model", "list", "--json"]).await?.ok()?.json()?;
    assert_eq!(listed["local_server"], Value::Null, "{listed}");
    let confirm = json!({"address": ADDRESS, "uid": 4242, "decision": "use"});
    daemon.controller().await?.refused("model.confirm", confirm).await?;
    server.kill().await?;
    let mut asked = String::new();
    says.read_to_string(&mut asked).await?;
    assert_eq!(asked, "", "nothing was asked of it");
    Ok(())
}

#[tokio::test]
async fn on_a_terminal_send_asks_once_before_anything_is_sent() -> anyhow::Result<()> {
    let Some(Neighbourhood {
        daemon,
        server: _server,
        ..
    }) = with_neighbour(Home::new()?).await?
    else {
        tests::skip!("no network namespace can be made here");
    };
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        tests::skip!("tmux is not installed")
    };
    let send = format!("{} send hello", bins()?.agentctl().display());
    let mut first = terminals.open(&send, 80, 24).await?;
    let text = terminals
        .until(&mut first, "the question", |text| text.contains("y yes, n no:"))
        .await?;
    assert!(
        text.contains("llama.cpp at 127.0.0.1:8080 can answer with the model scripted-1"),
        "{text}"
    );
    terminals.press(&first, &["y"]).await?;
    terminals
        .until(&mut first, "the answer", |text| text.contains("from next door"))
        .await?;
    let mut second = terminals.open(&send, 80, 24).await?;
    let text = terminals
        .until(&mut second, "the second answer", |text| text.contains("from next door"))
        .await?;
    assert!(!text.contains("y yes"), "{text}");
    Ok(())
}

#[tokio::test]
async fn the_terminal_ui_shows_the_server_and_naming_it_lets_it_answer() -> anyhow::Result<()> {
    let Some(Neighbourhood {
        daemon,
        server: _server,
        ..
    }) = with_neighbour(Home::new()?).await?
    else {
        tests::skip!("no network namespace can be made here");
    };
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        tests::skip!("tmux is not installed")
    };
    let tui = format!("{}", bins()?.agent_tui().display());
    let mut terminal = terminals.open(&tui, 80, 24).await?;
    terminals
        .until(&mut terminal, "the offer", |text| {
            text.contains("/model llama.cpp lets it answer")
        })
        .await?;
    terminals.write(&terminal, "/model llama.cpp").await?;
    terminals.press(&terminal, &["Enter"]).await?;
    terminals
        .until(&mut terminal, "the word", |text| text.contains("answers from now on"))
        .await?;
    terminals.write(&terminal, "hello").await?;
    terminals.press(&terminal, &["Enter"]).await?;
    terminals
        .until(&mut terminal, "the answer", |text| text.contains("from next door"))
        .await?;
    Ok(())
}
