//! Prints what a recorded stream or error body means, for checking the decoders by hand and from scripts.
//!
//! `decode WIRE FILE.sse` prints the normalised result as JSON; `decode --error WIRE STATUS FILE` prints the class. `WIRE` is
//! named as in the configuration.

#![expect(clippy::print_stdout, reason = "printing the result is what this program does")]

use anyhow::{Context as _, bail};
use daemon::config::profile::Wire;
use daemon::provider::{Decoder, ItemKind, Sink, classify_body, decoder, normalised, sse};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--error", wire, status, file] => {
            let _checked: Wire = wire.parse()?;
            let status = status.parse().context("STATUS is an HTTP status")?;
            println!("{}", classify_body(status, &read(file)?).class);
        }
        [wire, file] => {
            let wire = wire.parse()?;
            let stream = decoder(wire).context("the demo model has no stream")?;
            let decoded = run(stream, &read(file)?)?;
            println!("{}", serde_json::to_string_pretty(&normalised(wire, &decoded))?);
        }
        _ => bail!("usage: decode WIRE FILE.sse | decode --error WIRE STATUS FILE"),
    }
    Ok(())
}

fn read(file: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {file}"))
}

fn run(mut stream: Box<dyn Decoder>, body: &[u8]) -> anyhow::Result<daemon::provider::Decoded> {
    let mut parser = sse::Parser::default();
    parser.push(body);
    parser.end();
    while let Some(event) = parser.next_event()? {
        stream.event(&event, &mut Nobody)?;
    }
    Ok(stream.finish())
}

/// Nobody watches.
struct Nobody;

impl Sink for Nobody {
    fn open(&mut self, _: usize, _: ItemKind) {}
    fn push(&mut self, _: usize, _: &str) {}
}
