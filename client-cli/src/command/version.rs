//! `agentctl version`: of this client and of the daemon, if one runs; none is started for it.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::client::ClientError;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Versions {
    client: Version,
    daemon: Option<Version>,
}

#[derive(serde::Serialize)]
struct Version {
    version: String,
    protocol: String,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let versions = Versions {
        client: Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: protocol::VERSION.to_owned(),
        },
        daemon: daemon(invocation).await?,
    };
    let output = &invocation.output;
    if arguments.json {
        output.json(&versions)?;
        return Ok(Exit::Completed);
    }
    let line = |name: &str, version: &Version| format!("{name} {}, protocol {}", version.version, version.protocol);
    output.line(&line("agentctl", &versions.client))?;
    match &versions.daemon {
        Some(daemon) => output.line(&output.inline(&line("agentd", daemon)))?,
        None => output.line("agentd does not run")?,
    }
    Ok(Exit::Completed)
}

async fn daemon(invocation: &Invocation) -> Result<Option<Version>, Failure> {
    match invocation.connect_to_running().await {
        Ok(client) => Ok(Some(Version {
            version: client.hello().daemon.clone(),
            protocol: client.hello().version.clone(),
        })),
        Err(Failure::Client(ClientError::Unreachable { .. })) => Ok(None),
        Err(failure) => Err(failure),
    }
}
