//! Ways out, each tried through the real socket with the real programs: nothing outside the project is read or written, no
//! special file holds the daemon up, nothing a command starts stays, and nothing inside of a sandbox reaches the daemon.

mod files;
mod itself;
mod newborn;
mod processes;
mod repository;
mod special;
mod swap;
mod tools;

use serde_json::{Value, json};
use tests::daemon::TestDaemon;
use tests::log::Logged;
use tests::model_server::Reply;

/// A call of `bash`.
pub(crate) fn bash(command: &str) -> Reply {
    Reply::tool("bash", json!({ "command": command }))
}

/// The ends of all calls, in the order the model asked for them.
fn ends(daemon: &TestDaemon, session: &str) -> anyhow::Result<Vec<Logged>> {
    let log = daemon.log(session)?;
    let of_kind = |kind: &'static str| log.iter().filter(move |event| event.kind == kind);
    let end = |call: &Logged| of_kind("tool.completed").find(|end| end.text("call") == call.text("call"));
    Ok(of_kind("tool.requested").filter_map(end).cloned().collect())
}

/// What the model was told of each call.
fn outputs(daemon: &TestDaemon, session: &str) -> anyhow::Result<Vec<String>> {
    Ok(ends(daemon, session)?
        .iter()
        .map(|end| end.text("output").to_owned())
        .collect())
}

/// How each call ended.
fn outcomes(daemon: &TestDaemon, session: &str) -> anyhow::Result<Vec<String>> {
    Ok(ends(daemon, session)?
        .iter()
        .map(|end| end.text("outcome").to_owned())
        .collect())
}

/// What this machine can enforce, as `agentctl doctor` says it.
async fn doctor(daemon: &TestDaemon) -> anyhow::Result<Value> {
    daemon.ctl(&["doctor", "--json"]).await?.ok()?.json()
}

/// How much of a sandbox there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sandbox {
    /// Namespaces, Landlock and seccomp.
    Full,
    /// Landlock and seccomp alone.
    Reduced,
    /// None.
    None,
}

async fn sandbox(daemon: &TestDaemon) -> anyhow::Result<Sandbox> {
    let doctor = doctor(daemon).await?;
    Ok(match doctor["checks"][0]["standing"].as_str() {
        Some("good") => Sandbox::Full,
        Some("reduced") => Sandbox::Reduced,
        _ => Sandbox::None,
    })
}

/// Runs one turn to its end in a session of its own; the session.
async fn turn(daemon: &TestDaemon, mode: &str) -> anyhow::Result<String> {
    let session = daemon.session(mode).await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    Ok(session)
}
