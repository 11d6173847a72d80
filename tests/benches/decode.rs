//! What decoding a stream costs, beside what parsing its JSON alone costs.
//!
//! A stream of 100,000 text deltas per wire is decoded from bytes to reply; the same payloads are parsed once each by
//! `serde_json`. The ratio has to stay at or below 3, and the program fails where it does not. Run with
//! `cargo bench -p tests --bench decode`.

#![expect(clippy::print_stdout, reason = "printing the figures is what this program does")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use daemon::config::profile::Wire;
use daemon::provider::{ItemKind, Sink, decoder, sse};

const DELTAS: usize = 100_000;

/// Bytes a read of a TLS connection typically gives.
const CHUNK: usize = 16 * 1024;

/// The best of some runs is the one least disturbed by others on the machine.
const RUNS: usize = 5;

const HIGHEST_RATIO: f64 = 3.0;

fn main() -> anyhow::Result<()> {
    println!("{:<20} {:>10} {:>10} {:>7}", "wire", "parse", "decode", "ratio");
    for wire in [Wire::AnthropicMessages, Wire::OpenaiChat, Wire::OpenaiResponses] {
        let payloads: Vec<String> = (0..DELTAS).map(|number| delta(wire, number)).collect();
        let body = body(wire, &payloads);
        let parse = best(|| parse(&payloads))?;
        let decode = best(|| decode(wire, &body))?;
        let ratio = decode.as_secs_f64() / parse.as_secs_f64();
        println!(
            "{:<20} {:>10.1?} {:>10.1?} {:>7.2}",
            wire.as_str(),
            parse,
            decode,
            ratio
        );
        ensure!(
            ratio <= HIGHEST_RATIO,
            "decoding {wire} costs {ratio:.2} times parsing, more than {HIGHEST_RATIO}"
        );
    }
    Ok(())
}

fn best(mut run: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn parse(payloads: &[String]) -> anyhow::Result<()> {
    for payload in payloads {
        black_box(serde_json::from_str::<serde_json::Value>(payload)?);
    }
    Ok(())
}

fn decode(wire: Wire, body: &[u8]) -> anyhow::Result<()> {
    let mut parser = sse::Parser::default();
    let mut stream = decoder(wire).context("a wire with a stream")?;
    let mut length = Length(0);
    for chunk in body.chunks(CHUNK) {
        parser.push(chunk);
        while let Some(event) = parser.next_event()? {
            stream.event(&event, &mut length)?;
        }
    }
    black_box(stream.finish());
    ensure!(length.0 > DELTAS, "every delta was decoded");
    Ok(())
}

/// Counts what was said.
struct Length(usize);

impl Sink for Length {
    fn open(&mut self, _: usize, _: ItemKind) {}
    fn push(&mut self, _: usize, text: &str) {
        self.0 += text.len();
    }
}

/// One text delta as the vendor sends it.
fn delta(wire: Wire, number: usize) -> String {
    let text = ["The", " quick", " brown", " fox\\n", " — ", " jumps"]
        .get(number % 6)
        .unwrap_or(&"");
    match wire {
        Wire::AnthropicMessages => format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}          }}"#
        ),
        Wire::OpenaiChat => format!(
            r#"{{"id":"chatcmpl-C9mXbTgQ5sJYg1AlUa2RPjT4t5Hl7","object":"chat.completion.chunk","created":1756464151,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}],"usage":null,"obfuscation":"pLwW1bZ"}}"#
        ),
        Wire::OpenaiResponses => format!(
            r#"{{"type":"response.output_text.delta","sequence_number":{number},"item_id":"msg_0fabc13af1ee0049006a691dff0c1481a1b4a0eec7e3c753bb","output_index":0,"content_index":0,"delta":"{text}","logprobs":[],"obfuscation":"pLwW1bZ"}}"#
        ),
        Wire::Demo => String::new(),
    }
}

fn body(wire: Wire, payloads: &[String]) -> Vec<u8> {
    let mut body = String::new();
    if wire == Wire::AnthropicMessages {
        body.push_str("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
    }
    let name = match wire {
        Wire::AnthropicMessages => "event: content_block_delta\n",
        Wire::OpenaiResponses => "event: response.output_text.delta\n",
        Wire::OpenaiChat | Wire::Demo => "",
    };
    for payload in payloads {
        body.push_str(name);
        body.push_str("data: ");
        body.push_str(payload);
        body.push_str("\n\n");
    }
    body.into_bytes()
}
