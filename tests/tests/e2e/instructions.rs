//! The project's own instructions, as a scripted model is told them.

use std::os::unix::fs::symlink;
use tests::daemon::TestDaemon;
use tests::model_server::{ModelServer, Reply, Script, Wire};

#[tokio::test]
async fn the_model_is_told_what_the_project_says_and_the_manifest_names_it() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let project = daemon.home.project();
    std::fs::write(daemon.home.path().join("AGENTS.md"), "Above: never read this.\n")?;
    std::fs::write(project.join("AGENT.md"), "Under the old name.\n")?;
    std::fs::write(project.join("AGENTS.md"), "Tests are run with make.\n")?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "one").await?;
    daemon.turn_end(&session, 1).await?;
    daemon.send(&session, "two").await?;
    daemon.turn_end(&session, 2).await?;

    let (first, second) = (server.request(1).await?, server.request(2).await?);
    assert!(first.system.contains("Tests are run with make."), "{}", first.system);
    assert!(!first.system.contains("never read this") && !first.system.contains("old name"));
    assert_eq!(first.system, second.system, "a prompt that changes cannot be cached");
    let log = daemon.log(&session)?;
    let step = log.iter().find(|event| event.kind == "step.completed");
    let sources = step
        .map(|step| step.data["manifest"]["sources"].clone())
        .unwrap_or_default();
    assert_eq!(
        (&sources[0]["source"], &sources[1]["source"]),
        (&"built-in".into(), &"AGENTS.md".into())
    );
    assert_eq!(sources[1]["tokens"], 6);
    assert!(
        sources[1]["hash"].as_str().is_some_and(|hash| hash.len() == 64),
        "{sources}"
    );

    std::fs::remove_file(project.join("AGENTS.md"))?;
    daemon.send(&session, "three").await?;
    daemon.turn_end(&session, 3).await?;
    assert!(server.request(3).await?.system.contains("Under the old name."));
    Ok(())
}

#[tokio::test]
async fn instructions_that_lead_out_of_the_project_are_refused_and_said_once() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    std::fs::write(daemon.home.path().join("private"), "A private note.\n")?;
    symlink("../private", daemon.home.project().join("AGENTS.md"))?;
    let session = daemon.session("ask").await?;
    for turn in 1..=2 {
        daemon.send(&session, "hello").await?;
        daemon.turn_end(&session, turn).await?;
        assert!(!server.request(turn).await?.system.contains("private note"));
    }
    let log = daemon.log(&session)?;
    let notices = log
        .iter()
        .filter(|event| event.kind == "notice.added" && event.data["code"] == "instructions");
    let texts: Vec<_> = notices.map(|event| event.data["text"].to_string()).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(
        texts
            .iter()
            .all(|text| text.contains("AGENTS.md") && text.contains("out of the project")),
        "{texts:?}"
    );
    Ok(())
}
