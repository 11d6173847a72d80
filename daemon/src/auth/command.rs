//! Running a key command through the same guard as every other process of the daemon.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::target::{CommandEnd, CommandEvent, GuardPlan, Target, TargetError};
use crate::target::{TargetSpec, command_environment};

/// Runs shell commands for their output.
#[async_trait]
pub trait RunCommand: Send + Sync {
    /// What `command` writes to its standard output, if it succeeds. Dropping the future ends the command.
    ///
    /// # Errors
    /// It cannot be started, fails, or writes more than `limit_bytes`: a sentence part that follows "the command", without
    /// anything it wrote.
    async fn output(&self, command: &str, limit_bytes: usize) -> Result<Vec<u8>, String>;
}

/// Commands below the daemon's exec-guard, in the root directory, with the listed part of the environment.
#[derive(Debug, Clone)]
pub struct GuardedCommands {
    target: Target,
    plan: GuardPlan,
}

impl GuardedCommands {
    /// `environment` is the daemon's own; of it commands get what any command may have.
    ///
    /// # Errors
    /// The root directory cannot be opened.
    pub fn new(plan: GuardPlan, environment: &BTreeMap<String, String>) -> Result<Self, TargetError> {
        let target = Target::open(TargetSpec {
            roots: vec!["/".into()],
            cwd: "/".into(),
            environment: command_environment(environment, &[], &[]),
            hidden: Vec::new(),
            sandbox: Default::default(),
        })?;
        Ok(Self { target, plan })
    }

    /// Where they run.
    pub fn target(&self) -> &Target {
        &self.target
    }
}

#[async_trait]
impl RunCommand for GuardedCommands {
    async fn output(&self, command: &str, limit_bytes: usize) -> Result<Vec<u8>, String> {
        let place = self.target.resolve("/").map_err(|error| error.to_string())?;
        // The guard joins errors to the output, and a warning must not become part of a key.
        let quiet = format!("exec 2>/dev/null\n{command}");
        let mut running = self
            .target
            .start_command(&self.plan, &quiet, &place)
            .map_err(|error| format!("did not start: {error}"))?;
        let mut output = Vec::new();
        loop {
            match running.next().await {
                CommandEvent::Output(piece) if output.len() + piece.len() > limit_bytes => {
                    return Err("wrote more than a key".to_owned());
                }
                CommandEvent::Output(piece) => output.extend(piece),
                CommandEvent::Ended(CommandEnd::Exited(0)) => return Ok(output),
                CommandEvent::Ended(CommandEnd::Exited(code)) => return Err(format!("ended with exit code {code}")),
                CommandEvent::Ended(CommandEnd::Signalled(signal)) => {
                    return Err(format!("was ended by signal {signal}"));
                }
                CommandEvent::Ended(CommandEnd::Failed(reason)) => return Err(format!("failed: {reason}")),
            }
        }
    }
}
