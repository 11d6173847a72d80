//! People who do not look are told: by a program of theirs, and through the terminals they have open elsewhere.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tests::daemon::{Home, TestDaemon, profile};
use tests::model_server::{Gate, ModelServer, Reply, Script, Wire};
use tests::terminal::Terminals;
use tests::{skip, soon};

/// A home whose daemon tells by a program, which calls what it reads `told.N` in order.
async fn told_by_program(server: &ModelServer, more: &str) -> anyhow::Result<TestDaemon> {
    let home = Home::new()?;
    let program = home.path().join("tell");
    let script = "#!/bin/sh\ncd \"$1\" || exit 1\nn=$(ls told.* 2>/dev/null | wc -l)\nenv > env.txt\ncat > part && mv part told.$n\n";
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
    let notify = format!(
        "[notify]\ncommand = [\"{}\", \"{}\"]\n{more}",
        program.display(),
        home.path().display()
    );
    let config = format!("{}{notify}", profile(server, Wire::Messages));
    home.config(&config)?.env("AGENTD_SECRET", "hidden").start().await
}

async fn told(daemon: &TestDaemon, nth: usize) -> anyhow::Result<Value> {
    let place = daemon.home.path().join(format!("told.{nth}"));
    let text = soon("the program is told", async {
        // The file itself is the only thing that says so; asking a daemon lets time pass in between.
        while !place.exists() {
            daemon.observer().await?.call("daemon.status", json!({})).await?;
        }
        anyhow::Ok(std::fs::read_to_string(&place)?)
    });
    Ok(serde_json::from_str(&text.await??)?)
}

#[tokio::test]
async fn a_program_of_the_user_reads_the_approval_that_waits_and_the_long_turn_that_ended() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": "touch '<b>made</b>'"})),
        Reply::text("Done."),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = told_by_program(&server, "after = \"1ms\"\n").await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    let first = told(&daemon, 0).await?;
    let waits = daemon.approval(&session).await?;
    assert_eq!((&first["kind"], &first["id"]), (&json!("approval"), &waits["id"]));
    assert_eq!(first["action"]["command"], "touch '<b>made</b>'");
    let environment = std::fs::read_to_string(daemon.home.path().join("env.txt"))?;
    assert!(
        !environment.contains("hidden") && !environment.contains("a-test-key"),
        "{environment}"
    );

    daemon.answer(&waits, "once").await?;
    let second = told(&daemon, 1).await?;
    assert_eq!(
        (&second["kind"], &second["outcome"], &second["session"]),
        (&json!("turn"), &json!("completed"), &json!(session))
    );
    Ok(())
}

#[tokio::test]
async fn the_desktop_is_told_without_markup() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": "touch '<b>made</b>'"})),
        Reply::text("Done."),
    ]);
    let server = ModelServer::start(script)?;
    let home = Home::new()?;
    let bin = home.path().join("bin");
    std::fs::create_dir_all(&bin)?;
    let told = home.path().join("told");
    let program = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.part && mv {0}.part {0}\n",
        told.display()
    );
    std::fs::write(bin.join("notify-send"), program)?;
    std::fs::set_permissions(bin.join("notify-send"), std::fs::Permissions::from_mode(0o700))?;
    let path = format!("{}:{}", bin.display(), std::env::var("PATH")?);
    let daemon = home.model(&server, Wire::Messages)?.env("PATH", path).start().await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "make it").await?;
    soon("the desktop is told", async {
        while !told.exists() {
            daemon.observer().await?.call("daemon.status", json!({})).await?;
        }
        anyhow::Ok(())
    })
    .await??;
    let text = std::fs::read_to_string(&told)?;
    assert!(
        text.starts_with("--app-name=agentd\n--\nagentd waits for your answer\n"),
        "{text}"
    );
    assert!(
        text.contains("touch &#39;&lt;b&gt;made&lt;/b&gt;&#39;") && !text.contains('<'),
        "{text}"
    );
    Ok(())
}

#[tokio::test]
async fn nobody_is_told_what_a_client_shows_already() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": "touch made"})),
        Reply::text("Done."),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = told_by_program(&server, "after = \"1ms\"\n").await?;
    let session = daemon.session("ask").await?;
    // Whoever follows approvals and can answer looks for all sessions.
    let mut looks = daemon.observer().await?;
    let token = daemon.token()?;
    let hello = json!({"version": "1.0", "client": "watcher", "kind": "test", "token": token, "answers": true});
    looks.call("daemon.hello", hello).await?;
    looks.call("approval.watch", json!({})).await?;
    daemon.send(&session, "make it").await?;
    let waits = daemon.approval(&session).await?;
    daemon.answer(&waits, "once").await?;
    // The turn's end is told, since nobody is attached to the session; what would have come before it was not.
    assert_eq!(told(&daemon, 0).await?["kind"], "turn");
    Ok(())
}

#[tokio::test]
async fn a_project_cannot_name_the_program() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("Yes.")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let file: PathBuf = daemon.home.project().join(".agent/config.toml");
    std::fs::create_dir_all(daemon.home.project().join(".agent"))?;
    std::fs::write(&file, "[notify]\ncommand = [\"/bin/touch\", \"/tmp/never\"]\n")?;
    daemon.ctl(&["trust", "--yes"]).await?;
    let said = daemon.ctl(&["trust"]).await?;
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(text.contains("never read from a project"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_terminal_rings_when_its_question_appears() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::by(move |seen| match (seen.last_text(), seen.step()) {
        ("make it", 0) => Reply::tool("bash", json!({"command": "touch made"})),
        _ => Reply::text("Hello there.").deltas(2).gate(&held),
    }))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.session("ask").await?;
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        skip!("tmux is not installed")
    };
    let agentctl = tests::bins::bins()?.agentctl();
    for (name, command) in [("attach", "attach last"), ("follow", "approvals --follow")] {
        let raw = daemon.home.path().join(name);
        let line = format!("script -qfec '{} {command}' {}", agentctl.display(), raw.display());
        if daemon.home.command("script").arg("--version").output().await.is_err() {
            skip!("script is not installed")
        }
        let mut terminal = terminals.open(&line, 80, 24).await?;
        if name == "attach" {
            terminals
                .until(&mut terminal, "the first screen", |text| text.contains("/help"))
                .await?;
            daemon.ctl(&["send", "-s", "last", "--no-wait", "hello"]).await?.ok()?;
            gate.release(1);
            // A reply that is not over is in no history: what is asked from here on is news to this terminal.
            terminals
                .until(&mut terminal, "half an answer", |text| text.contains("Hello"))
                .await?;
            gate.open();
            daemon.ctl(&["wait", "last"]).await?.ok()?;
            // tmux may have said that somebody looks: the focus goes, and what is typed after that shows that it was heard.
            terminals.write(&terminal, "\u{1b}[Ogone").await?;
            terminals
                .until(&mut terminal, "what was typed", |text| text.contains("gone"))
                .await?;
            terminals.press(&terminal, &["C-u"]).await?;
            daemon
                .ctl(&["send", "-s", "last", "--no-wait", "make it"])
                .await?
                .ok()?;
        }
        terminals
            .until(&mut terminal, "the question", |text| text.contains("y once"))
            .await?;
        soon(&format!("{name} rings"), async {
            // What records the terminal writes a moment after it shows.
            while !std::fs::read(&raw)?.contains(&7) {
                daemon.observer().await?.call("daemon.status", json!({})).await?;
            }
            anyhow::Ok(())
        })
        .await??;
    }
    Ok(())
}
