//! The scripted model server as a program, for benches and for trying things by hand:
//! `model-server --script FILE --port N` prints its address and serves until it is killed.

use anyhow::{Context, bail};
use std::io::Write;
use tests::model_server::{ModelServer, ScriptFile};

const USAGE: &str = "usage: model-server --script FILE [--port N]";

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut script, mut port) = (None, 0);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().context(USAGE)?;
        match argument.as_str() {
            "--script" => script = Some(value),
            "--port" => port = value.parse().context(USAGE)?,
            _ => bail!(USAGE),
        }
    }
    let path = script.context(USAGE)?;
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let file: ScriptFile = serde_json::from_str(&text).with_context(|| path)?;
    let server = ModelServer::start_on(port, file.into())?;
    writeln!(std::io::stdout(), "http://{}", server.address())?;
    server.run();
    Ok(())
}
