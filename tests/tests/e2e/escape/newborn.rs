//! A repository runs programs, and whoever runs git in the project runs them: no command makes one there.

use super::{Sandbox, bash, doctor, outcomes, outputs, sandbox, turn};
use serde_json::json;
use tests::daemon::{Home, TestDaemon, profile};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::skip;

/// A daemon whose model runs these commands; none where nothing can be refused. In `sub` everything may be written.
async fn running(config: &str, replies: Vec<Reply>) -> anyhow::Result<Option<(ModelServer, TestDaemon)>> {
    let home = Home::new()?;
    std::fs::create_dir_all(home.project().join("sub/git"))?;
    std::fs::write(home.project().join("sub/git/config"), "[core]\nfsmonitor = /tmp/evil\n")?;
    let server = ModelServer::start(Script::by_step(replies.into_iter().chain([Reply::text("done")])))?;
    let config = format!("{}{config}", profile(&server, Wire::Messages));
    let daemon = home.config(&config)?.start().await?;
    let checks = doctor(&daemon).await?["checks"].clone();
    let refuses = |check: &serde_json::Value| check["name"] == "repositories" && check["standing"] == "good";
    let refused = checks.as_array().is_some_and(|checks| checks.iter().any(refuses));
    Ok((sandbox(&daemon).await? != Sandbox::None && refused).then_some((server, daemon)))
}

#[tokio::test]
async fn a_model_that_wants_a_repository_in_the_project_is_refused_told_and_asks() -> anyhow::Result<()> {
    let commands = [
        "git init sub",
        "printf 'gitdir: /tmp/evil' > sub/.git",
        "mv sub/git sub/.git",
        "ln -s git sub/.git",
        "(setsid sh -c 'mkdir sub/.git; echo x > sub/done' &) ; until test -e sub/done; do :; done",
    ];
    let mut replies: Vec<Reply> = commands.map(bash).into();
    let escalated = json!({ "command": "mkdir sub/.git", "outside_sandbox": true });
    replies.push(Reply::tool("bash", escalated));
    let Some((_server, daemon)) = running("", replies).await? else {
        skip!("repositories cannot be refused here");
    };
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    let asked = daemon.approval(&session).await?;
    let outputs = outputs(&daemon, &session)?;
    assert_eq!(outputs.len(), commands.len(), "{outputs:?}");
    let git = daemon.home.project().join("sub/.git");
    for said in &outputs {
        assert!(
            said.contains("does not let commands make repositories") && said.contains(&git.display().to_string()),
            "{said}"
        );
        assert!(said.contains("outside_sandbox: true"), "{said}");
    }
    assert!(!git.exists(), "nobody has allowed it yet");
    daemon.answer(&asked, "once").await?;
    daemon.turn_end(&session, 1).await?;
    assert!(git.is_dir(), "a person has");
    Ok(())
}

#[tokio::test]
async fn a_person_whose_build_makes_repositories_can_allow_them() -> anyhow::Result<()> {
    // In one command: a directory that holds a repository by then takes no further entries where there are no namespaces.
    let commands = ["mkdir sub/.git && test -d sub/.git && mkdir -p sub/deps/x/.git"].map(bash);
    let config = "[sandbox]\nnew_repositories = \"allow\"\n";
    let Some((_server, daemon)) = running(config, commands.into()).await? else {
        skip!("repositories cannot be refused here");
    };
    let session = turn(&daemon, "all").await?;
    assert_eq!(
        outcomes(&daemon, &session)?,
        ["ok"],
        "{:?}",
        outputs(&daemon, &session)?
    );
    Ok(())
}
