//! A session that moves from one wire to the next and back: what goes along, what stays behind, and what the record says of it.

use serde_json::json;
use tests::daemon::Home;
use tests::model_server::{ModelServer, Reply, Said, Script, Wire};

/// How a GIF and a PNG begin, in base64.
const GIF: &str = "R0lGODlh";
const PNG: &str = "iVBORw0KGgo";

/// Where the session goes, turn by turn: through all wires and back to the first.
const WAY: [Wire; 4] = [Wire::Messages, Wire::Chat, Wire::Responses, Wire::Messages];

fn profiles(server: &ModelServer) -> String {
    let profile = |wire: Wire| {
        format!(
            "[models.{}]\nwire = \"{}\"\nbase_url = \"{}\"\nmodel = \"m\"\napi_key = \"k\"\ncontext_tokens = 200000\n",
            wire.name(),
            wire.name(),
            server.base_url(wire)
        )
    };
    format!(
        "default_model = \"anthropic-messages\"\n{}{}{}",
        profile(Wire::Messages),
        profile(Wire::Chat),
        profile(Wire::Responses)
    )
}

#[tokio::test]
async fn a_session_takes_texts_images_calls_and_results_to_every_wire_and_its_manifests_count_what_stays_behind()
-> anyhow::Result<()> {
    let replies = WAY.iter().flat_map(|wire| {
        let name = wire.name();
        let look = Reply::default()
            .reasoning(format!("thought over {name}"))
            .then_text(format!("I look over {name}."))
            .call("read_file", json!({"path": "dot.png"}));
        [look, Reply::text(format!("Seen over {name}."))]
    });
    // The server refuses what no provider would take: a call without its result, a foreign signature, an unknown field.
    let server = ModelServer::start(Script::sequence(replies.collect::<Vec<_>>()))?;
    let daemon = Home::new()?.config(&profiles(&server))?.start().await?;
    std::fs::write(daemon.home.project().join("dot.png"), b"\x89PNG\r\n\x1a\n and so on")?;
    let session = daemon.session("all").await?;
    let mut peer = daemon.controller().await?;
    for (turn, wire) in (1..).zip(WAY) {
        let change = json!({"session": session, "model": wire.name()});
        peer.call("session.update", change).await?;
        let content = json!([
            {"type": "text", "text": format!("input {turn}")},
            {"type": "image", "media_type": "image/gif", "data": GIF},
        ]);
        peer.call("session.send", json!({"session": session, "content": content}))
            .await?;
        let end = daemon.turn_end(&session, turn).await?;
        assert_eq!(end["data"]["outcome"], "completed", "{}: {end}", wire.name());
    }

    let seen = server.seen();
    assert_eq!(seen.len(), 2 * WAY.len());
    for (number, request) in (1..).zip(&seen) {
        let (turns, calls) = (usize::div_ceil(number, 2), number / 2);
        let body = request.body.to_string();
        let what = format!("request {number}, {}", request.wire.name());
        assert_eq!(body.matches(GIF).count(), turns, "{what}: images of inputs");
        assert_eq!(body.matches(PNG).count(), calls, "{what}: images of results");
        let made = request.said.iter().map(|said| match said {
            Said::Assistant { calls, .. } => calls.len(),
            _ => 0,
        });
        assert_eq!((made.sum::<usize>(), request.outputs().len()), (calls, calls), "{what}");
        for earlier in WAY.iter().take(turns - 1) {
            assert!(body.contains(&format!("Seen over {}.", earlier.name())), "{what}");
        }
    }

    let log = daemon.log(&session)?;
    let dropped: Vec<u64> = log
        .iter()
        .filter(|event| event.kind == "step.completed")
        .map(|event| event.data["manifest"]["private_dropped"].as_u64().unwrap_or(0))
        .collect();
    let [first, own, second, _, third, ..] = dropped.as_slice() else {
        anyhow::bail!("{dropped:?}");
    };
    assert_eq!((*first, *own), (0, 0), "a provider gets all of its own back");
    assert!(
        *second > 0 && third > second,
        "each wire leaves behind what the others made: {dropped:?}"
    );
    let thought = |request: usize, wire: Wire| {
        let body = seen.get(request).map(|seen| seen.body.to_string()).unwrap_or_default();
        body.contains(&format!("thought over {}", wire.name()))
    };
    assert!(thought(1, Wire::Messages) && !thought(2, Wire::Messages) && thought(6, Wire::Messages));
    assert!(!thought(6, Wire::Chat) && !thought(6, Wire::Responses));
    Ok(())
}
