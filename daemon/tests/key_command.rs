//! Key commands as real processes below the real exec-guard.

use std::collections::BTreeMap;
use std::path::PathBuf;

use daemon::auth::{GuardedCommands, RunCommand};
use daemon::target::GuardPlan;

/// Bytes a test's command may write.
const LIMIT_BYTES: usize = 1_000;

async fn output(command: &str) -> anyhow::Result<Result<String, String>> {
    let state = tempfile::tempdir()?;
    let plan = GuardPlan {
        exe: PathBuf::from(env!("CARGO_BIN_EXE_agentd")),
        state_dir: state.path().to_path_buf(),
    };
    let environment = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ("HOME".to_owned(), "/home/ann".to_owned()),
        ("ANTHROPIC_API_KEY".to_owned(), "not for commands".to_owned()),
    ]);
    let output = GuardedCommands::new(plan, &environment)?
        .output(command, LIMIT_BYTES)
        .await;
    Ok(match output {
        Ok(bytes) => Ok(String::from_utf8(bytes)?),
        Err(reason) => Err(reason),
    })
}

#[tokio::test]
async fn only_standard_output_is_the_key() -> anyhow::Result<()> {
    assert_eq!(output("echo warning >&2; echo key").await?, Ok("key\n".to_owned()));
    assert_eq!(
        output("if then; echo key").await?,
        Err("ended with exit code 2".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn a_failure_is_told_without_what_was_written() -> anyhow::Result<()> {
    assert_eq!(
        output("echo half-a-key; exit 3").await?,
        Err("ended with exit code 3".to_owned())
    );
    assert_eq!(output("kill -9 $$").await?, Err("was ended by signal 9".to_owned()));
    assert_eq!(
        output("head -c 100000 /dev/zero").await?,
        Err("wrote more than a key".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn a_key_command_has_a_home_and_no_other_key() -> anyhow::Result<()> {
    assert_eq!(
        output("echo $HOME$ANTHROPIC_API_KEY").await?,
        Ok("/home/ann\n".to_owned())
    );
    assert_eq!(output("pwd").await?, Ok("/\n".to_owned()));
    Ok(())
}
