//! The client against a scripted peer: each test says line by line what the daemon gets and answers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::{Autostart, Client, ClientError, Connect};
use crate::frame::Frame;
use crate::method::{AttachParams, Empty, SessionAttach, SessionList, TurnList};
use crate::{ErrorKind, VERSION};
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// The daemon's end of a connection.
struct Peer(BufReader<UnixStream>);

impl Peer {
    async fn got(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn says(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.0.get_mut().write_all(line.as_bytes()).await.unwrap();
    }

    /// Answers the request that comes next, and returns it.
    async fn answers(&mut self, result: Value) -> Value {
        let request = self.got().await;
        self.says(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
        request
    }

    async fn greets(&mut self) -> Value {
        self.answers(hello(VERSION, &[])).await
    }
}

fn hello(version: &str, lacks: &[&str]) -> Value {
    json!({"version": version, "daemon": "9.9.9", "role": "controller", "capabilities": [], "lacks": lacks,
        "limits": {"message_bytes": 1, "batch": 1, "calls_in_flight": 1, "subscriptions": 1, "queued_inputs": 1},
        "model_notice": null})
}

fn pair() -> (UnixStream, Peer) {
    let (near, far) = UnixStream::pair().unwrap();
    (near, Peer(BufReader::new(far)))
}

async fn connect(stream: UnixStream) -> Result<Client, ClientError> {
    let options = Connect {
        name: "test".to_owned(),
        kind: "cli".to_owned(),
        answers: true,
        autostart: Autostart::No,
    };
    Client::over(stream, PathBuf::from("/none"), &options).await
}

#[tokio::test]
async fn the_handshake_names_the_client_and_sends_only_listed_variables() {
    let (near, mut peer) = pair();
    let (client, request) = tokio::join!(connect(near), peer.greets());
    assert_eq!(client.unwrap().hello().daemon, "9.9.9");
    assert_eq!(request["method"], "daemon.hello");
    let params = &request["params"];
    assert_eq!((&params["client"], &params["kind"]), (&json!("test"), &json!("cli")));
    assert_eq!(
        (&params["version"], &params["answers"]),
        (&json!(VERSION), &json!(true))
    );
    let sent = params["environment"].as_object().unwrap();
    assert!(sent.contains_key("PATH"));
    assert!(sent.keys().all(|name| crate::environment::listed(name)), "{sent:?}");
}

#[tokio::test]
async fn a_second_hello_sends_the_named_variables_that_are_set_and_no_others() {
    let (near, mut peer) = pair();
    let daemon = async {
        peer.answers(hello(VERSION, &["PATH", "AGENTD_TEST_NOT_SET"])).await;
        peer.greets().await
    };
    let (client, second) = tokio::join!(connect(near), daemon);
    client.unwrap();
    let keys = second["params"]["keys"].as_object().unwrap();
    assert_eq!(keys.keys().collect::<Vec<_>>(), ["PATH"]);
}

#[tokio::test]
async fn another_major_version_is_refused_and_says_which_side_to_upgrade() {
    for (version, side) in [("2.0", "upgrade this client"), ("0.9", "upgrade agentd")] {
        let (near, mut peer) = pair();
        let (client, _) = tokio::join!(connect(near), peer.answers(hello(version, &[])));
        let error = client.unwrap_err();
        assert!(matches!(error, ClientError::Incompatible(_)));
        assert!(error.to_string().contains(side), "{error}");
    }
}

#[tokio::test]
async fn an_error_keeps_its_kind_its_hint_and_its_data() {
    let (near, mut peer) = pair();
    let (client, _) = tokio::join!(connect(near), peer.greets());
    let mut client = client.unwrap();
    let daemon = async {
        let id = peer.got().await["id"].clone();
        let data = json!({"kind": "busy", "hint": "wait", "retry_after_ms": 7});
        peer.says(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32051, "message": "full", "data": data}}))
            .await;
    };
    let (result, ()) = tokio::join!(client.call::<TurnList>(&Empty {}), daemon);
    let Err(ClientError::Rpc(error)) = result else {
        panic!("{result:?}")
    };
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Busy, "full"));
    assert_eq!(error.hint.as_deref(), Some("wait"));
    assert_eq!(error.data.get("retry_after_ms"), Some(&json!(7)));
}

#[tokio::test]
async fn a_dropped_call_leaves_the_connection_usable() {
    let (near, mut peer) = pair();
    let (client, _) = tokio::join!(connect(near), peer.greets());
    let mut client = client.unwrap();
    let dropped = tokio::select! {
        result = client.call::<TurnList>(&Empty {}) => panic!("{result:?}"),
        request = peer.got() => request,
    };
    let daemon = async {
        peer.says(json!({"jsonrpc": "2.0", "id": dropped["id"], "result": [{"not": "ours"}]}))
            .await;
        peer.answers(json!([])).await
    };
    let (result, _) = tokio::join!(client.call::<TurnList>(&Empty {}), daemon);
    assert!(result.unwrap().is_empty());
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_before_it_is_sent() {
    let (near, mut peer) = pair();
    let (client, _) = tokio::join!(connect(near), peer.greets());
    let params = crate::method::ListParams {
        cwd: Some("x".repeat(17 * 1024 * 1024)),
        ..Default::default()
    };
    let error = client.unwrap().call::<SessionList>(&params).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::TooLarge));
}

#[tokio::test]
async fn frames_of_its_own_subscription_come_in_order_until_the_connection_ends() {
    let (near, mut peer) = pair();
    let (client, _) = tokio::join!(connect(near), peer.greets());
    let params = AttachParams {
        session: "s".to_owned(),
        after_seq: None,
        tail: None,
        deltas: true,
    };
    let (frames, request) = tokio::join!(
        client.unwrap().subscribe::<SessionAttach>(&params),
        peer.answers(json!("sub-1"))
    );
    let mut frames = frames.unwrap();
    assert_eq!(request["method"], "session.attach");
    let event =
        |seq: u64| json!({"seq": seq, "pos": seq, "at": "2026-01-02T03:04:05.000Z", "kind": "a.b", "data": {"n": seq}});
    let frame = |subscription: &str, frame: Value| json!({"jsonrpc": "2.0", "method": "session.frame", "params": {"subscription": subscription, "result": frame}});
    peer.says(frame("sub-1", event(1))).await;
    peer.says(frame("another", event(7))).await;
    peer.says(frame("sub-1", json!({"kind": "from_the_future", "x": 1})))
        .await;
    peer.says(frame("sub-1", event(2))).await;
    drop(peer);
    let mut kinds = Vec::new();
    while let Some(frame) = frames.next().await {
        kinds.push(match frame {
            Ok(Frame::Event(event)) => event.data.get().to_owned(),
            Ok(Frame::Unknown(_)) => "unknown".to_owned(),
            Err(ClientError::Lost) => "lost".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(kinds, [r#"{"n":1}"#, "unknown", r#"{"n":2}"#, "lost"]);
}

#[tokio::test]
async fn a_connection_that_ends_in_mid_call_is_lost_unless_the_daemon_said_why() {
    let (near, mut peer) = pair();
    let (client, _) = tokio::join!(connect(near), peer.greets());
    let mut client = client.unwrap();
    let daemon = async {
        peer.got().await;
        drop(peer);
    };
    let (result, ()) = tokio::join!(client.call::<TurnList>(&Empty {}), daemon);
    assert!(matches!(result, Err(ClientError::Lost)));

    let (near, mut peer) = pair();
    let (client, _) = tokio::join!(connect(near), peer.greets());
    let error = json!({"code": -32053, "message": "too many connections", "data": {"kind": "limit_reached"}});
    peer.says(json!({"jsonrpc": "2.0", "id": null, "error": error})).await;
    drop(peer);
    let result = client.unwrap().call::<TurnList>(&Empty {}).await;
    assert_eq!(result.unwrap_err().kind(), Some(ErrorKind::LimitReached));
}
