//! Subscriptions: whoever attaches, whenever, however slowly, sees the log as it is and every text whole.

use anyhow::ensure;
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::daemon::TestDaemon;
use tests::model_server::{Gate, ModelServer, Reply, Script, Wire};
use tests::socket::{Peer, is};

/// What a client knows from its frames, checked as they come.
#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    /// Text of each open item's stream, and the offset its first byte has.
    texts: HashMap<String, (u64, String)>,
    caught_up: bool,
}

impl Seen {
    fn take(&mut self, frame: &Value) -> anyhow::Result<()> {
        match frame["kind"].as_str().unwrap_or_default() {
            "snapshot" => self.snapshot(frame)?,
            "delta" => self.grow(frame)?,
            kind if kind.contains('.') => self.event(frame)?,
            _ => {}
        }
        Ok(())
    }

    fn snapshot(&mut self, frame: &Value) -> anyhow::Result<()> {
        ensure!(!self.caught_up, "a second snapshot");
        self.caught_up = true;
        let head = frame["head"].as_u64().unwrap_or_default();
        let known = self
            .events
            .last()
            .map_or(head, |event| event["seq"].as_u64().unwrap_or_default());
        ensure!(known == head, "the snapshot is of {head}, the last event was {known}");
        for open in frame["open"].as_array().into_iter().flatten() {
            let text = open["text"].as_str().unwrap_or_default().to_owned();
            self.texts
                .insert(name(open), (open["offset"].as_u64().unwrap_or_default(), text));
        }
        Ok(())
    }

    fn grow(&mut self, delta: &Value) -> anyhow::Result<()> {
        ensure!(self.caught_up, "a delta before the snapshot");
        let (offset, text) = self.texts.entry(name(delta)).or_default();
        let at = delta["offset"].as_u64().unwrap_or_default();
        ensure!(
            at == *offset + text.len() as u64,
            "a delta at {at}, but {} bytes are known from {offset} on",
            text.len()
        );
        text.push_str(delta["text"].as_str().unwrap_or_default());
        Ok(())
    }

    fn event(&mut self, event: &Value) -> anyhow::Result<()> {
        let seq = event["seq"].as_u64().unwrap_or_default();
        if let Some(last) = self.events.last() {
            ensure!(last["seq"].as_u64() == Some(seq - 1), "event {seq} after {last}");
        }
        if is(event, "item.completed") && self.caught_up {
            let item = event["data"]["item"].as_str().unwrap_or_default();
            let (_, text) = self.texts.remove(&format!("{item}/text")).unwrap_or_default();
            let whole = event["data"]["text"].as_str().unwrap_or_default();
            ensure!(
                whole.ends_with(&text) && (text.len() == whole.len() || whole.len() > 65536),
                "{item}: {text:?} of {whole:?}"
            );
        }
        self.events.push(event.clone());
        Ok(())
    }
}

fn name(open: &Value) -> String {
    format!(
        "{}/{}",
        open["item"].as_str().unwrap_or_default(),
        open["stream"].as_str().unwrap_or_default()
    )
}

/// Reads frames into `seen` up to the event of this kind.
async fn follow(peer: &mut Peer, kind: &str) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    for frame in peer.until(kind, |frame| is(frame, kind)).await? {
        seen.take(&frame)?;
    }
    Ok(seen)
}

fn seqs(events: &[Value]) -> Vec<i64> {
    events
        .iter()
        .map(|event| event["seq"].as_i64().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn attached_at_every_seq_of_a_growing_log_each_client_gets_the_log_and_whole_texts() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let words: String = (0..120).map(|word| format!("wörd {word} ")).collect();
    let said = words.clone();
    let script = Script::by(move |seen| match seen.step() {
        0..4 => Reply::text("Looking. ")
            .deltas(3)
            .call("bash", json!({"command": "seq 1 50"}))
            .gate(&held),
        _ => Reply::text(said.clone()).deltas(120).gate(&held),
    });
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let mut pace = daemon.observer().await?;
    pace.attach(&session, Some(0)).await?;
    daemon.send(&session, "go").await?;

    // One more client from each event that appears on; the gate gives way only when the last one is attached.
    let (mut peers, mut head) = (Vec::new(), 0);
    loop {
        let frame = pace.frame().await?.ok_or_else(|| anyhow::anyhow!("the daemon left"))?;
        if let Some(seq) = frame["seq"].as_u64() {
            head = seq;
            let mut peer = daemon.observer().await?;
            peer.attach(&session, Some(seq - 1)).await?;
            peers.push((seq - 1, peer));
        }
        if is(&frame, "turn.completed") {
            break;
        }
        gate.release(if head % 2 == 0 { 1 } else { 2 });
    }
    assert!(peers.len() > 30, "only {} events", peers.len());
    let log = daemon.log(&session)?;
    for (after, mut peer) in peers {
        let seen = follow(&mut peer, "turn.completed").await?;
        let wanted: Vec<i64> = log
            .iter()
            .map(|event| event.seq)
            .filter(|seq| *seq > after as i64)
            .collect();
        assert_eq!(seqs(&seen.events), wanted, "after {after}");
    }
    Ok(())
}

#[tokio::test]
async fn after_the_fact_each_cursor_gets_the_rest_of_the_log_as_it_was_stored() -> anyhow::Result<()> {
    let script = Script::by_step([Reply::tool("bash", json!({"command": "echo hi"})), Reply::text("done")]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Chat).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    let log = daemon.log(&session)?;
    for after in 0..=log.len() {
        let mut peer = daemon.observer().await?;
        peer.attach(&session, Some(after as u64)).await?;
        let frames = peer.until("the snapshot", |frame| is(frame, "snapshot")).await?;
        let events: Vec<&Value> = frames.iter().filter(|frame| frame.get("seq").is_some()).collect();
        assert_eq!(events.len(), log.len() - after);
        for (event, row) in events.iter().zip(&log[after..]) {
            assert_eq!((event["seq"].as_i64(), &event["data"]), (Some(row.seq), &row.data));
        }
    }
    let mut peer = daemon.observer().await?;
    let error = peer
        .refused(
            "session.attach",
            json!({"session": session, "after_seq": log.len() + 1}),
        )
        .await?;
    assert_eq!(
        (&error["data"]["kind"], &error["data"]["head"]),
        (&json!("cursor_ahead"), &json!(log.len())),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn attaching_in_mid_reply_gives_the_text_so_far() -> anyhow::Result<()> {
    let gate = Gate::new();
    let server = ModelServer::start(Script::sequence([Reply::text("one two three ").deltas(7).gate(&gate)]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut first = daemon.observer().await?;
    first.attach(&session, Some(0)).await?;
    daemon.send(&session, "count").await?;
    gate.release(3);
    let text = std::cell::RefCell::new(String::new());
    first
        .until("three fragments", |frame| {
            if is(frame, "delta") {
                text.borrow_mut().push_str(frame["text"].as_str().unwrap_or_default());
            }
            *text.borrow() == "one tw"
        })
        .await?;
    let mut late = daemon.observer().await?;
    late.attach(&session, None).await?;
    let frames = late.until("the snapshot", |frame| is(frame, "snapshot")).await?;
    assert_eq!(frames.len(), 1, "without a cursor history is not sent");
    assert_eq!(frames[0]["open"][0]["text"], "one tw", "{}", frames[0]);
    gate.open();
    late.until("the rest", |frame| {
        is(frame, "item.completed") && frame["data"]["text"] == "one two three "
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_nobody_up_and_misses_nothing() -> anyhow::Result<()> {
    let big = "0123456789abcdef".repeat(4096);
    let script = Script::by(move |seen| match seen.step() {
        0..8 => Reply::text(big.clone())
            .deltas(200)
            .call("bash", json!({"command": "seq 1 2000"})),
        _ => Reply::text("done"),
    });
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let mut asleep = daemon.observer().await?;
    asleep.attach(&session, Some(0)).await?;
    let mut awake = daemon.observer().await?;
    awake.attach(&session, Some(0)).await?;
    daemon.send(&session, "go").await?;
    let seen = follow(&mut awake, "turn.completed").await?;
    let late = follow(&mut asleep, "turn.completed").await?;
    assert_eq!(seqs(&late.events), seqs(&seen.events));
    Ok(())
}

#[tokio::test]
async fn everybody_sees_who_is_there() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::sequence([]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    let mut first = daemon.observer().await?;
    first.hello("first", None).await?;
    first.attach(&session, None).await?;
    let mut second = daemon.controller().await?;
    second.attach(&session, None).await?;
    let names = |frame: &Value| -> Vec<String> {
        let clients = frame["clients"].as_array().into_iter().flatten();
        clients
            .map(|client| {
                format!(
                    "{} {}",
                    client["name"].as_str().unwrap_or_default(),
                    client["role"].as_str().unwrap_or_default()
                )
            })
            .collect()
    };
    first
        .until("both", |frame| {
            is(frame, "presence")
                && names(frame).contains(&"test controller".to_owned())
                && names(frame).contains(&"first observer".to_owned())
        })
        .await?;
    drop(second);
    first
        .until("the second gone", |frame| {
            is(frame, "presence") && names(frame) == ["first observer"]
        })
        .await?;
    assert_eq!(daemon.log(&session)?.len(), 1, "presence is no event");
    Ok(())
}
