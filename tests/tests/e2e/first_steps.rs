//! What a newcomer does first, in a bare environment: no terminal, no config, no XDG directories.

use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use tests::daemon::{Home, TestDaemon};
use tests::model_server::{ModelServer, Reply, Script, Wire};

/// A home whose daemon is started by the first command, and ended with it.
async fn with_autostart() -> anyhow::Result<TestDaemon> {
    let daemon = TestDaemon { home: Home::new()? };
    daemon.ctl(&["ls"]).await?.ok()?;
    Ok(daemon)
}

#[tokio::test]
async fn the_first_line_of_the_readme_answers_from_the_real_folder() -> anyhow::Result<()> {
    let daemon = with_autostart().await?;
    let ran = daemon.ctl(&["send", "What is in this folder?"]).await?.ok()?;
    assert!(
        ran.stdout.contains("README.md") && ran.stdout.contains("It counts to three."),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.ends_with('\n') && !ran.stdout.ends_with("\n\n"),
        "{:?}",
        ran.stdout
    );
    assert!(
        ran.stderr.contains("demo"),
        "a demo answer must be labelled: {}",
        ran.stderr
    );
    Ok(())
}

#[tokio::test]
async fn a_demo_result_says_so_and_that_it_cannot_reason() -> anyhow::Result<()> {
    let daemon = with_autostart().await?;
    let ran = daemon.ctl(&["send", "--json", "Why is the sky blue?"]).await?.ok()?;
    let result: serde_json::Value = serde_json::from_str(ran.stdout.lines().last().unwrap_or_default())?;
    assert_eq!(result["demo"], json!(true), "{result}");
    assert_eq!(
        (&result["kind"], &result["status"], &result["exit_code"]),
        (&json!("result"), &json!("completed"), &json!(0))
    );
    assert!(
        result["text"]
            .as_str()
            .is_some_and(|text| text.contains("cannot reason")),
        "{result}"
    );
    Ok(())
}

#[tokio::test]
async fn a_first_start_leaves_a_config_to_fill_in_and_keeps_one_that_is_there() -> anyhow::Result<()> {
    let daemon = with_autostart().await?;
    let file = daemon.home.config_file();
    let template = std::fs::read_to_string(&file)?;
    for profile in ["[models.sonnet]", "[models.gpt]", "[models.local]"] {
        assert!(
            template.contains(&format!("#{profile}")),
            "{profile} is not in {template}"
        );
    }
    assert_eq!(std::fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    daemon.ctl(&["daemon", "stop"]).await?.ok()?;
    std::fs::write(&file, "# mine\n")?;
    daemon.ctl(&["ls"]).await?.ok()?;
    assert_eq!(std::fs::read_to_string(&file)?, "# mine\n");
    Ok(())
}

#[tokio::test]
async fn a_command_that_starts_the_daemon_returns_and_leaves_one_daemon() -> anyhow::Result<()> {
    let daemon = TestDaemon { home: Home::new()? };
    // `ctl` reads to the end of stdout and stderr, so this returns only if the daemon kept neither.
    let (one, other) = tokio::join!(daemon.ctl(&["send", "hi"]), daemon.ctl(&["send", "hello"]));
    one?.ok()?;
    other?.ok()?;
    let listed = daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?;
    assert_eq!(
        listed.as_array().map(Vec::len),
        Some(2),
        "both sessions live in one daemon: {listed}"
    );
    Ok(())
}

#[tokio::test]
async fn without_autostart_a_missing_daemon_is_exit_code_7() -> anyhow::Result<()> {
    let home = Home::new()?.env("AGENTD_AUTOSTART", "0");
    let ran = home.ctl(&["ls"]).await?;
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("error: ") && ran.stderr.contains("hint: "),
        "{}",
        ran.stderr
    );
    Ok(())
}

#[tokio::test]
async fn a_bad_config_is_told_to_the_person_who_typed() -> anyhow::Result<()> {
    let home = Home::new()?.config("defualt_model = \"x\"\n")?;
    let ran = home.ctl(&["send", "hi"]).await?;
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    for part in ["config.toml", "1", "defualt_model", "default_model"] {
        assert!(ran.stderr.contains(part), "no {part} in: {}", ran.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn an_exported_key_is_used_without_a_restart_and_never_shown() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by_step([Reply::text("from the model")]))?;
    server.require_key("sk-first-light");
    let profile = format!(
        "default_model = \"m\"\n[models.m]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         api_key_env = \"LIGHT_KEY\"\n",
        server.base_url(Wire::Chat)
    );
    let daemon = Home::new()?.config(&profile)?.start().await?;
    let refused = daemon.ctl(&["send", "hi"]).await?;
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("LIGHT_KEY"),
        "the failure names the variable: {}",
        refused.stderr
    );

    let mut command = daemon.home.command(tests::bins::bins()?.agentctl());
    command.env("LIGHT_KEY", "sk-first-light").args(["send", "hi"]);
    let ran = tests::daemon::run(command, "send with the key").await?.ok()?;
    assert_eq!(ran.stdout, "from the model\n");

    for session in tests::log::sessions(&daemon.home.state_dir())? {
        let log = format!("{:?}", daemon.log(&session)?);
        assert!(!log.contains("sk-first-light"), "the key stands in the log");
    }
    let database = std::fs::read(daemon.home.state_dir().join("agentd.db"))?;
    assert!(
        !database.windows(14).any(|bytes| bytes == b"sk-first-light"),
        "the key stands in the database"
    );
    Ok(())
}

#[tokio::test]
async fn an_idle_daemon_stays_small() -> anyhow::Result<()> {
    let daemon = with_autostart().await?;
    daemon.ctl(&["send", "hi"]).await?.ok()?;
    let resident = tests::process::resident_kib(daemon.pid()?)?;
    // A debug build is bigger than what people run; the benches hold the release build to 25 MB.
    assert!(resident < 64 * 1024, "{resident} KiB resident");
    Ok(())
}
