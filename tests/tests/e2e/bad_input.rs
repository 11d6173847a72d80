//! Whatever is wrong with an input gets a clear, typed answer, and nothing else is disturbed.

use serde_json::{Value, json};
use std::time::Duration;
use tests::daemon::{Home, TestDaemon};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::skip;
use tests::socket::{Peer, is};

/// A daemon with a model that always says "fine".
async fn fine() -> anyhow::Result<(ModelServer, TestDaemon)> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    Ok((server, daemon))
}

/// Whether somebody else's turn still works.
async fn others_go_on(daemon: &TestDaemon) -> anyhow::Result<()> {
    let session = daemon.session("ask").await?;
    daemon.send(&session, "still there?").await?;
    let end = daemon.turn_end(&session, 1).await?;
    anyhow::ensure!(end["data"]["outcome"] == "completed", "{end}");
    Ok(())
}

#[tokio::test]
async fn each_malformed_message_gets_the_error_of_the_specification_and_the_connection_lives() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    let mut peer = daemon.controller().await?;
    let cases: [(&[u8], i64); 9] = [
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\"", -32700),
        (b"not json at all", -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\xff\xfe\"}", -32700),
        (b"{}", -32600),
        (b"[]", -32600),
        (b"{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"daemon.status\"}", -32600),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"no.such\", \"params\": {}}", -32601),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"session.get\", \"params\": {\"session\": 5}}", -32602),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"session.get\", \"params\": {\"session\": \"abcd\", \"sesion\": 1}}", -32602),
    ];
    for (message, code) in cases {
        peer.send(message).await?;
        peer.send(b"\n").await?;
        let answer = peer
            .line()
            .await?
            .ok_or_else(|| anyhow::anyhow!("the connection was closed"))?;
        assert_eq!(
            answer["error"]["code"],
            code,
            "{} got {answer}",
            String::from_utf8_lossy(message)
        );
        let id = if code == -32601 || code == -32602 {
            json!(7)
        } else {
            Value::Null
        };
        assert!(answer["id"] == id || (code == -32600 && answer["id"] == 1), "{answer}");
    }
    peer.call("daemon.status", json!({})).await?;
    Ok(())
}

#[tokio::test]
async fn deep_nesting_and_a_batch_too_big_are_errors_and_a_small_batch_is_answered() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    let mut peer = daemon.observer().await?;
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.status\",\"params\":{}{}}}\n",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    peer.send(deep.as_bytes()).await?;
    let answer = peer.line().await?.unwrap_or_default();
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    let one = json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.status", "params": {}});
    peer.send(format!("{}\n", json!(vec![one.clone(); 65])).as_bytes())
        .await?;
    let answer = peer.line().await?.unwrap_or_default();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let silent = json!({"jsonrpc": "2.0", "method": "daemon.status", "params": {}});
    peer.send(format!("{}\n", json!([one, silent, 5])).as_bytes()).await?;
    let answers = peer.line().await?.unwrap_or_default();
    assert_eq!(
        answers.as_array().map(Vec::len),
        Some(2),
        "a request without id is not answered: {answers}"
    );
    Ok(())
}

#[tokio::test]
async fn an_unknown_session_is_named_with_a_hint() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    let mut peer = daemon.controller().await?;
    for (method, params) in [
        ("session.get", json!({"session": "feedbeef"})),
        ("session.attach", json!({"session": "feedbeef"})),
        ("turn.interrupt", json!({"session": "feedbeef"})),
        (
            "session.send",
            json!({"session": "feedbeef", "content": [{"type": "text", "text": "hi"}]}),
        ),
    ] {
        let error = peer.refused(method, params).await?;
        assert_eq!(error["data"]["kind"], "session_not_found", "{method}: {error}");
        assert!(
            error["message"].as_str().is_some_and(|text| text.contains("feedbeef")),
            "{method}: {error}"
        );
        assert!(error["data"]["hint"].is_string(), "{method}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_message_of_17_mib_is_refused_and_the_connection_lives() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    let mut peer = daemon.controller().await?;
    let before = tests::process::resident_kib(daemon.pid()?)?;
    let mut message = vec![b'x'; 17 << 20];
    message.push(b'\n');
    peer.send(&message).await?;
    let answer = peer.line().await?.unwrap_or_default();
    assert_eq!(
        (
            &answer["id"],
            &answer["error"]["code"],
            &answer["error"]["data"]["kind"]
        ),
        (&Value::Null, &json!(-32600), &json!("too_large")),
        "{answer}"
    );
    peer.call("daemon.status", json!({})).await?;
    others_go_on(&daemon).await?;
    let after = tests::process::resident_kib(daemon.pid()?)?;
    assert!(after < before + (40 << 10), "{before} KiB grew to {after} KiB");
    Ok(())
}

#[tokio::test]
async fn half_a_message_and_then_silence_closes_that_connection_alone() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    let mut peer = daemon.controller().await?;
    peer.send(b"{\"jsonrpc\": \"2.0\", \"id\": 1, ").await?;
    others_go_on(&daemon).await?;
    // A wait that ran out of patience is an error, so this goes on until the daemon has closed the connection.
    let closed = tokio::time::timeout(Duration::from_secs(60), async {
        while !matches!(peer.line().await, Ok(None)) {}
    });
    closed.await?;
    others_go_on(&daemon).await
}

#[tokio::test]
async fn a_client_that_never_reads_its_answers_disturbs_nobody() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    let session = daemon.session("ask").await?;
    let mut deaf = daemon.observer().await?;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session.get", "params": {"session": session}});
    let request = format!("{request}\n").repeat(1000);
    // It stops taking requests when nobody takes the answers; that is what bounds it.
    let flood = async { while deaf.send(request.as_bytes()).await.is_ok() {} };
    let _ = tokio::time::timeout(Duration::from_secs(2), flood).await;
    others_go_on(&daemon).await?;
    let resident = tests::process::resident_kib(daemon.pid()?)?;
    assert!(resident < 128 << 10, "{resident} KiB resident");
    Ok(())
}

#[tokio::test]
async fn a_dead_provider_fails_the_turn_with_its_address() -> anyhow::Result<()> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let config = format!(
        "default_model = \"m\"\n[models.m]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmodel = \"m\"\nauth = \"none\"\n"
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, "hi").await?;
    let frames = watcher
        .until("the first failure", |frame| is(frame, "step.failed"))
        .await?;
    let error = &tests::socket::last(&frames)?["data"]["error"];
    assert_eq!(error["kind"], "connect", "{error}");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains(&port.to_string())),
        "{error}"
    );
    daemon
        .controller()
        .await?
        .call("turn.interrupt", json!({"session": session}))
        .await?;
    assert_eq!(daemon.turn_end(&session, 1).await?["data"]["outcome"], "interrupted");
    Ok(())
}

#[tokio::test]
async fn a_provider_that_stalls_in_mid_stream_is_given_up_after_its_time() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::sequence([Reply::text("half").stall(), Reply::text("whole")]))?;
    let config = format!(
        "{}idle_timeout_s = 1\n",
        tests::daemon::profile(&server, Wire::Messages)
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "hi").await?;
    let end = daemon.turn_end(&session, 1).await?;
    assert_eq!(end["data"]["outcome"], "completed", "{end}");
    let log = daemon.log(&session)?;
    let failed = log
        .iter()
        .find(|event| event.kind == "step.failed")
        .map(|event| event.data["error"]["kind"].clone());
    assert_eq!(failed, Some(json!("timeout")));
    Ok(())
}

#[tokio::test]
async fn a_config_with_a_mistake_names_file_line_and_the_nearest_key() -> anyhow::Result<()> {
    let cases = [
        (
            "[models.m]\nwire = \"openai-chat\"\nmodle = \"x\"\napi_key = \"sk-secret\"\n",
            ["3", "modle", "model"],
        ),
        (
            "[models.m]\nwire = \"smoke-signals\"\nmodel = \"x\"\nauth = \"none\"\n",
            ["2", "wire", "openai-chat"],
        ),
        ("default_model = \"nobody\"\n", ["1", "default_model", "models"]),
        ("[session]\nmax_steps = \"many\"\n", ["2", "max_steps", "number"]),
        (
            "[session]\nmode = \"al\"\n",
            ["2", "mode", "one of: ask, edits, all, none"],
        ),
        (
            "[tools]\ndisabled = [\"web_serch\"]\n",
            [":2:", "tools.disabled", "did you mean `web_search`?"],
        ),
        (
            "[tools]\nsearch_engine = \"searxng\"\n",
            [":2:", "search_url", "https://searx.example/search"],
        ),
        ("[tools]\nsearch_url = \"searx\"\n", [":2:", "search_url", "https://"]),
    ];
    for (config, parts) in cases {
        let home = Home::new()?.config(config)?;
        let mut start = home.command(tests::bins::bins()?.agentd());
        start.arg("start");
        let ran = tests::daemon::run(start, "agentd start").await?;
        assert_eq!(ran.code, Some(1), "{config}: {}", ran.stderr);
        for part in parts.iter().chain(&["config.toml"]) {
            assert!(ran.stderr.contains(part), "{config}: no {part} in: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("sk-secret"), "{}", ran.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn another_user_gets_nothing_from_the_socket() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can act as another user");
    }
    let (_server, daemon) = fine().await?;
    let socket = daemon.socket()?;
    // Someone opened every directory on the way and the socket itself: the uid of the peer still decides.
    for place in socket
        .ancestors()
        .take_while(|place| place.starts_with(daemon.home.path()))
    {
        std::fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    }
    let script = "import os, socket, sys\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                  s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.status\",\"params\":{}}\\n')\nprint(s.recv(65536))\n";
    let mut other = daemon.home.command("python3");
    other.arg("-c").arg(script).arg(&socket);
    let Ok(child) = other.spawn() else {
        skip!("python3 is not installed")
    };
    let ran = tests::daemon::ended(child, "another user's program").await?;
    assert!(
        !ran.stdout.contains("state_dir"),
        "another user was answered: {}",
        ran.stdout
    );
    others_go_on(&daemon).await
}

#[tokio::test]
async fn who_watches_may_not_act() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    let session = daemon.session("ask").await?;
    let wrong = "0".repeat(64);
    for token in [None, Some(wrong.as_str())] {
        let mut peer: Peer = daemon.observer().await?;
        if token.is_some() {
            peer.request(
                "daemon.hello",
                json!({"version": "1.0", "client": "x", "kind": "script", "token": token}),
            )
            .await?;
        }
        peer.call("session.get", json!({"session": session})).await?;
        let send = json!({"session": session, "content": [{"type": "text", "text": "hi"}]});
        for (method, params) in [
            ("session.send", send),
            ("daemon.stop", json!({})),
            ("session.create", json!({"cwd": "/"})),
        ] {
            let error = peer.refused(method, params).await?;
            assert_eq!(error["data"]["kind"], "not_authorized", "{method}: {error}");
        }
    }
    let mut old: Peer = daemon.observer().await?;
    let error = old
        .refused(
            "daemon.hello",
            json!({"version": "99.0", "client": "x", "kind": "script"}),
        )
        .await?;
    assert_eq!(error["data"]["kind"], "incompatible_version", "{error}");
    Ok(())
}

#[tokio::test]
async fn files_of_the_daemon_are_for_its_user_alone() -> anyhow::Result<()> {
    let (_server, daemon) = fine().await?;
    others_go_on(&daemon).await?;
    let mut look = vec![daemon.home.state_dir()];
    while let Some(place) = look.pop() {
        let data = std::fs::symlink_metadata(&place)?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&data.permissions());
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", place.display());
        if data.is_dir() {
            look.extend(std::fs::read_dir(&place)?.flatten().map(|entry| entry.path()));
        }
    }
    Ok(())
}
