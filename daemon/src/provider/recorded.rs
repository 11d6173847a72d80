//! Every recorded stream and error body against what it must give.
//!
//! The recordings are found at `$AGENTD_FIXTURES`, default `../shared/fixtures` beside the repository; without them these
//! tests skip loudly. The project's own streams, one per protocol feature, are in `tests/streams/WIRE/`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use protocol::Stop;
use serde_json::{Value, json};

use super::decoded::{Decoded, Decoder};
use super::error::Class;
use super::normal::normalised;
use super::{ItemKind, ReplyItem, Sink, classify_body, decoder, sse};
use crate::config::profile::Wire;

const WIRES: [(&str, Wire); 3] = [
    ("anthropic", Wire::AnthropicMessages),
    ("openai-chat", Wire::OpenaiChat),
    ("openai-responses", Wire::OpenaiResponses),
];

/// Sizes bytes arrive in; the whole body is added.
const CHUNKS: [usize; 4] = [1, 7, 64, 1400];

/// What a client would have seen.
#[derive(Debug, Default)]
struct Seen(Vec<(ItemKind, String)>);

impl Sink for Seen {
    fn open(&mut self, item: usize, kind: ItemKind) {
        assert_eq!(item, self.0.len(), "items open in order");
        self.0.push((kind, String::new()));
    }

    fn push(&mut self, item: usize, text: &str) {
        assert!(!text.is_empty(), "an empty fragment says nothing");
        self.0.get_mut(item).unwrap().1.push_str(text);
    }
}

fn decode(wire: Wire, body: &[u8], chunk: usize) -> (Decoded, Seen) {
    let mut parser = sse::Parser::default();
    let mut stream: Box<dyn Decoder> = decoder(wire).unwrap();
    let mut seen = Seen::default();
    for piece in body.chunks(chunk).map(Some).chain([None]) {
        match piece {
            Some(piece) => parser.push(piece),
            None => parser.end(),
        }
        while let Some(event) = parser.next_event().unwrap() {
            stream.event(&event, &mut seen).unwrap();
        }
    }
    (stream.finish(), seen)
}

/// The project's own streams, and the recorded ones where there are any.
fn streams() -> Vec<(Wire, PathBuf)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/streams");
    let recorded = fixtures();
    let mut found = Vec::new();
    for (folder, wire) in WIRES {
        found.extend(
            files(&own.join(wire.as_str()), "sse")
                .into_iter()
                .map(|path| (wire, path)),
        );
        if let Some(root) = &recorded {
            found.extend(
                files(&root.join("dev").join(folder), "sse")
                    .into_iter()
                    .map(|path| (wire, path)),
            );
        }
    }
    assert!(!found.is_empty());
    found
}

fn fixtures() -> Option<PathBuf> {
    let root = match std::env::var_os("AGENTD_FIXTURES") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures"),
    };
    if root.join("dev").is_dir() {
        return Some(root);
    }
    crate::skip::note(&format!(
        "no recorded streams at {}; set AGENTD_FIXTURES",
        root.display()
    ));
    None
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn expected(path: &Path) -> Value {
    let text = std::fs::read_to_string(path.with_extension("json")).unwrap();
    let mut expected = serde_json::from_str::<Value>(&text).unwrap()["expected"].take();
    // Diagnostics of the reference normaliser, not part of the result.
    for key in ["event_counts", "notes"] {
        expected.as_object_mut().unwrap().remove(key);
    }
    expected
}

/// The ways of framing that must not change the result.
fn variants(text: &str) -> Vec<(&'static str, String)> {
    let per_line = |change: &dyn Fn(&str) -> String| text.split('\n').map(change).collect::<Vec<_>>().join("\n");
    let mut first = true;
    let mut split_first = |line: &str| match line.strip_prefix("data: {") {
        Some(rest) if std::mem::take(&mut first) => format!("data: {{\ndata: {rest}"),
        _ => line.to_owned(),
    };
    let split = text.split('\n').map(&mut split_first).collect::<Vec<_>>().join("\n");
    let mut variants = vec![
        ("plain", text.to_owned()),
        ("crlf", text.replace('\n', "\r\n")),
        ("cr", text.replace('\n', "\r")),
        (
            "nospace",
            per_line(&|line| line.replacen("data: ", "data:", 1).replacen("event: ", "event:", 1)),
        ),
        ("comments", text.replace("\n\n", "\n\n: keep-alive\n\n")),
        (
            "fields",
            per_line(&|line| line.replacen("data: ", "id: 1\nretry: 3000\ndata: ", 1)),
        ),
        ("bom", format!("\u{feff}{text}")),
        ("eof", text.trim_end_matches('\n').to_owned()),
        ("datasplit", split),
    ];
    if !text.contains("event: error") {
        let lines: Vec<&str> = text.split('\n').filter(|line| !line.starts_with("event: ")).collect();
        variants.push(("noevent", lines.join("\n")));
    }
    variants
}

fn assert_decodes(path: &Path, label: &str, wire: Wire, body: &str, chunk: usize, wanted: &Value) -> (Decoded, Seen) {
    let (decoded, seen) = decode(wire, body.as_bytes(), chunk);
    let got = normalised(wire, &decoded);
    if got != *wanted {
        let differing: Vec<&String> = wanted
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| got[*key] != wanted[*key])
            .collect();
        let first = differing
            .first()
            .map(|key| json!({ "got": got[key.as_str()], "wanted": wanted[key.as_str()] }));
        panic!(
            "{} ({label}, chunks of {chunk}) differs in {differing:?}: {first:?}",
            path.display()
        );
    }
    (decoded, seen)
}

#[test]
fn every_stream_gives_its_expected_result_in_any_framing_and_chunking() {
    for (wire, path) in streams() {
        let text = std::fs::read_to_string(&path).unwrap();
        let wanted = expected(&path);
        for (label, body) in variants(&text) {
            assert_decodes(&path, label, wire, &body, body.len().max(1), &wanted);
        }
        for chunk in CHUNKS {
            assert_decodes(&path, "plain", wire, &text, chunk, &wanted);
        }
        let crlf = text.replace('\n', "\r\n");
        assert_decodes(&path, "crlf", wire, &crlf, 1, &wanted);
    }
}

#[test]
fn a_reply_holds_what_its_sink_saw_and_a_cut_stream_gives_none() {
    for (wire, path) in streams() {
        let text = std::fs::read_to_string(&path).unwrap();
        let wanted = expected(&path);
        let (decoded, mut seen) = decode(wire, text.as_bytes(), text.len().max(1));
        assert_eq!(decoded.items.len(), seen.0.len(), "{}", path.display());
        let broken = decoded.error.is_some() || !decoded.complete;
        match decoded.into_reply(&mut seen) {
            Ok(reply) => {
                assert!(!broken, "{}", path.display());
                assert_eq!(reply.items.len(), seen.0.len(), "{}", path.display());
                for (item, (_, shown)) in reply.items.iter().zip(&seen.0) {
                    assert_shown(item, shown, &path);
                }
                assert_calls(&reply.items, reply.stop, &wanted, &path);
            }
            Err(error) => {
                assert!(broken, "{}: {error}", path.display());
                assert!(error.class != Class::StreamCut || error.class.retryable());
                assert!(
                    !wanted["complete"].as_bool().unwrap() || wanted["stop"] == "error",
                    "{}",
                    path.display()
                );
            }
        }
    }
}

fn assert_shown(item: &ReplyItem, shown: &str, path: &Path) {
    match item {
        ReplyItem::Text { text, .. } | ReplyItem::Reasoning { text, .. } | ReplyItem::Refusal { text } => {
            assert_eq!(text, shown, "{}", path.display());
        }
        ReplyItem::Call(_) | ReplyItem::Opaque { .. } => {}
    }
}

/// Calls with whole arguments run, calls with broken ones carry what was wrong.
fn assert_calls(items: &[ReplyItem], stop: Stop, wanted: &Value, path: &Path) {
    let calls: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            ReplyItem::Call(call) => Some(call),
            _ => None,
        })
        .collect();
    let wanted_calls = wanted["tool_calls"].as_array().unwrap();
    if stop == Stop::Refusal {
        assert!(calls.is_empty(), "{}: a refused reply runs nothing", path.display());
        return;
    }
    assert_eq!(calls.len(), wanted_calls.len(), "{}", path.display());
    for (call, wanted) in calls.iter().zip(wanted_calls) {
        let cut = stop == Stop::MaxTokens && wanted["arguments_raw"] == "";
        let runs = wanted["arguments_valid"] == true && !cut;
        assert_eq!(call.arguments.is_ok(), runs, "{}: {call:?}", path.display());
        assert!(!call.provider_call_id.is_empty());
    }
}

#[test]
fn a_stream_cut_anywhere_never_gives_a_reply() {
    for (wire, path) in streams() {
        let text = std::fs::read_to_string(&path).unwrap();
        let ends: Vec<usize> = text.match_indices("\n\n").map(|(at, _)| at).collect();
        for end in ends.iter().step_by(ends.len().div_ceil(12).max(1)) {
            let (decoded, mut seen) = decode(wire, &text.as_bytes()[..end / 2], 4096);
            let complete = decoded.complete;
            assert_eq!(
                decoded.into_reply(&mut seen).is_ok(),
                complete && !text.contains("\"error\""),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn every_recorded_error_body_has_its_class() {
    let Some(root) = fixtures() else { return };
    for (folder, _) in WIRES {
        for path in files(&root.join("dev").join(folder).join("errors"), "body") {
            let meta: Value =
                serde_json::from_str(&std::fs::read_to_string(path.with_extension("json")).unwrap()).unwrap();
            let status = u16::try_from(meta["status"].as_u64().unwrap()).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let class = classify_body(status, &std::fs::read(&path).unwrap()).class;
            // The recordings' names say what they show where the status does not.
            let wanted = match status {
                400 if name.contains("context-len") || name.contains("handles-con") => Class::ContextTooLong,
                400 | 404 => Class::BadRequest,
                401 | 403 => Class::Authentication,
                429 => Class::RateLimited,
                500 => Class::Server,
                529 => Class::Overloaded,
                _ => panic!("{name}: a status without a known class"),
            };
            assert_eq!(class, wanted, "{name}");
        }
    }
}
