//! The recipe of the prompt: what the person and the project list, as a scripted model is told it.

use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon, profile};
use tests::log::Logged;
use tests::model_server::{ModelServer, Reply, Script, Wire};

/// The project's files, and one of the person's.
fn lay_out(home: &Home) -> anyhow::Result<()> {
    let project = home.project();
    std::fs::create_dir_all(project.join(".agent"))?;
    std::fs::create_dir_all(project.join("docs"))?;
    std::fs::write(home.path().join("house.md"), "House rule: say please.\n")?;
    let agents = "# Work\nRun make.\n\n## Release process\nNobody tags on Fridays.\n\n## Tests\nAll of them.\n";
    std::fs::write(project.join("AGENTS.md"), agents)?;
    std::fs::write(project.join("docs/STYLE.md"), "Four blanks.\n")?;
    std::fs::write(project.join("GUIDE.md"), "# Guide\n## One\nFirst.\n## Two\nSecond.\n")?;
    Ok(())
}

fn project_says(home: &Home, text: &str) -> anyhow::Result<()> {
    Ok(std::fs::write(home.project().join(".agent/config.toml"), text)?)
}

/// Names of the sources of the last model call, and its tokens.
fn sources(log: &[Logged]) -> (Vec<String>, Value) {
    let step = log.iter().rfind(|event| event.kind == "step.completed");
    let manifest = step.map(|step| step.data["manifest"].clone()).unwrap_or_default();
    let sources = manifest["sources"].as_array().cloned().unwrap_or_default();
    let names = sources
        .iter()
        .map(|source| source["source"].as_str().unwrap_or_default().to_owned());
    (names.collect(), manifest)
}

async fn turn(daemon: &TestDaemon, session: &str, count: usize) -> anyhow::Result<()> {
    daemon.send(session, "hello").await?;
    let end = daemon.turn_end(session, count).await?;
    anyhow::ensure!(end["data"]["outcome"] == "completed", "{end}");
    Ok(())
}

#[tokio::test]
async fn files_and_sections_stand_in_the_prompt_in_their_order_and_in_the_manifest() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let config = format!(
        "{}[context]\ninclude = [\"~/house.md\", \"docs/none-here.md\"]\nexclude = [\"AGENTS.md#Tests\"]\n",
        profile(&server, Wire::Messages)
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    lay_out(&daemon.home)?;
    project_says(
        &daemon.home,
        "[context]\ninclude = [\"docs/STYLE.md\", \"GUIDE.md#Two\"]\nexclude = [\"AGENTS.md#Release process\"]\n",
    )?;
    let session = daemon.session("ask").await?;
    turn(&daemon, &session, 1).await?;
    let prompt = server.request(1).await?.system;
    let places: Vec<_> = ["say please", "Run make", "Four blanks", "Second."]
        .iter()
        .map(|text| prompt.find(text))
        .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{prompt}");
    for left_out in ["Fridays", "All of them", "First."] {
        assert!(!prompt.contains(left_out), "{prompt}");
    }
    let log = daemon.log(&session)?;
    let (names, manifest) = sources(&log);
    assert_eq!(
        names,
        ["built-in", "~/house.md", "AGENTS.md", "docs/STYLE.md", "GUIDE.md#Two"]
    );
    let hashes = manifest["sources"].as_array().cloned().unwrap_or_default();
    assert!(
        hashes
            .iter()
            .all(|source| source["hash"].as_str().is_some_and(|hash| hash.len() == 64))
    );
    let notices = log.iter().filter(|event| event.kind == "notice.added");
    assert_eq!(
        notices.count(),
        0,
        "what the person lists for all projects need not be in each"
    );

    let shown = daemon.ctl(&["config", "show", "--json"]).await?.ok()?.json()?;
    let settings = shown["settings"].as_array().cloned().unwrap_or_default();
    let from: Vec<_> = settings
        .iter()
        .filter(|setting| setting["key"] == "context.include")
        .map(|setting| setting["from"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(
        from.len() == 2 && from[0].contains("agentd/config.toml:") && from[1].ends_with(".agent/config.toml:2"),
        "{from:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_changed_recipe_counts_for_the_next_turn_and_its_slips_are_told() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    lay_out(&daemon.home)?;
    let session = daemon.session("ask").await?;
    turn(&daemon, &session, 1).await?;
    let before = sources(&daemon.log(&session)?);
    assert_eq!(before.0, ["built-in", "AGENTS.md"]);

    project_says(
        &daemon.home,
        "[context]\ninclude = [\"docs/STYLE.md\", \"AGENTS.md\"]\n",
    )?;
    turn(&daemon, &session, 2).await?;
    let prompt = server.request(2).await?.system;
    assert!(prompt.find("Four blanks") < prompt.find("Run make"), "{prompt}");
    assert_eq!(
        sources(&daemon.log(&session)?).0,
        ["built-in", "docs/STYLE.md", "AGENTS.md"]
    );

    let long = "Remember this line.\n".repeat(3_000);
    std::fs::write(daemon.home.project().join("docs/STYLE.md"), &long)?;
    project_says(
        &daemon.home,
        "[context]\ninclude = [\"docs/STYLE.md\", \"docs/GONE.md\"]\nexclude = [\"AGENTS.md\"]\n",
    )?;
    turn(&daemon, &session, 3).await?;
    let log = daemon.log(&session)?;
    let (names, manifest) = sources(&log);
    assert_eq!(names, ["built-in", "docs/STYLE.md"]);
    let tokens = |manifest: &Value| manifest["tokens"].as_u64().unwrap_or_default();
    assert!(
        tokens(&manifest) > tokens(&before.1) + long.len() as u64 / 5,
        "what is listed counts: {manifest}"
    );
    let told = log
        .iter()
        .filter(|event| event.kind == "notice.added" && event.data["code"] == "instructions");
    let told: Vec<_> = told.map(|event| event.text("text").to_owned()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told.iter().all(|told| told.contains("docs/GONE.md")), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn where_the_models_context_is_short_what_is_listed_last_is_left_out_and_told() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let config = format!("{}context_budget_tokens = 12000\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    lay_out(&daemon.home)?;
    std::fs::write(
        daemon.home.project().join("docs/STYLE.md"),
        "Remember this.\n".repeat(3_000),
    )?;
    project_says(&daemon.home, "[context]\ninclude = [\"GUIDE.md\", \"docs/STYLE.md\"]\n")?;
    let session = daemon.session("ask").await?;
    for count in 1..=2 {
        turn(&daemon, &session, count).await?;
    }
    let log = daemon.log(&session)?;
    assert_eq!(sources(&log).0, ["built-in", "AGENTS.md", "GUIDE.md"]);
    let told = log.iter().filter(|event| event.data["code"] == "instructions");
    let told: Vec<_> = told.map(|event| event.text("text").to_owned()).collect();
    assert!(told.len() == 1 && told[0].ends_with(": docs/STYLE.md"), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_ones_own_list_is_told_with_its_line() -> anyhow::Result<()> {
    let daemon = Home::new()?.config("")?.start().await?;
    for (list, said) in [
        ("include = [\"a\", \"a\"]", "twice"),
        ("include = [\"../x\"]", "`..`"),
        ("exclude = [\"AGENTS.md#\"]", "heading"),
        ("includes = []", "did you mean `include`?"),
    ] {
        let file = daemon.home.config_file();
        std::fs::write(file.with_extension("new"), format!("[context]\n{list}\n"))?;
        std::fs::rename(file.with_extension("new"), &file)?;
        let shown = daemon.ctl(&["config", "show"]).await?;
        assert!(
            shown.stderr.contains("config.toml:2: ") && shown.stderr.contains(said),
            "{}",
            shown.stderr
        );
    }
    let session = daemon
        .controller()
        .await?
        .call("session.create", json!({"cwd": daemon.home.project()}))
        .await;
    assert!(session.is_ok(), "what held before still holds");
    Ok(())
}
