//! Directories beside the project: what a person adds is worked in like the project itself, what lies next to it is not, and
//! nobody else adds any.

use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tests::bins::bins;
use tests::daemon::{Home, TestDaemon};
use tests::log::count;
use tests::model_server::{ModelServer, Reply, Script, Wire};

/// A directory beside the project, and a neighbour of it that nobody adds.
fn beside(home: &Home) -> anyhow::Result<(PathBuf, PathBuf)> {
    let (lib, other) = (home.path().join("lib"), home.path().join("other"));
    for dir in [&lib, &other] {
        std::fs::create_dir_all(dir.join(".git/hooks"))?;
        std::fs::create_dir(dir.join("src"))?;
        std::fs::write(dir.join("a.txt"), "needle in a file\n")?;
        std::fs::write(dir.join(".env"), "KEY=needle\n")?;
    }
    symlink(other.join("a.txt"), lib.join("link.txt"))?;
    Ok((lib, other))
}

/// A session in the project that works in `added`, too; its id.
async fn made(daemon: &TestDaemon, mode: &str, added: &[&Path]) -> anyhow::Result<String> {
    let params = json!({"cwd": daemon.home.project(), "mode": mode, "add_roots": added});
    let session = daemon.controller().await?.call("session.create", params).await?;
    Ok(session["id"].as_str().unwrap_or_default().to_owned())
}

async fn added_roots(daemon: &TestDaemon, session: &str) -> anyhow::Result<Value> {
    let info = daemon
        .observer()
        .await?
        .call("session.get", json!({"session": session}))
        .await?;
    Ok(info.get("added_roots").cloned().unwrap_or_else(|| json!([])))
}

fn call(tool: &str, arguments: Value) -> Reply {
    Reply::tool(tool, arguments)
}

fn bash(command: &str) -> Reply {
    Reply::tool("bash", json!({ "command": command }))
}

/// Outcome and output of each call, in order.
fn results(daemon: &TestDaemon, session: &str) -> anyhow::Result<Vec<(String, String)>> {
    let log = daemon.log(session)?;
    let completed = log.iter().filter(|event| event.kind == "tool.completed");
    Ok(completed
        .map(|event| (event.text("outcome").to_owned(), event.text("output").to_owned()))
        .collect())
}

/// Denies the next `count` questions; the reasons they gave.
async fn denied(daemon: &TestDaemon, session: &str, count: usize) -> anyhow::Result<Vec<String>> {
    let mut reasons = Vec::new();
    for _ in 0..count {
        let approval = daemon.approval(session).await?;
        reasons.push(approval["reason"].as_str().unwrap_or_default().to_owned());
        daemon.answer(&approval, "deny").await?;
    }
    Ok(reasons)
}

/// Whether commands are sandboxed here, in whichever form; says so if not.
async fn is_sandboxed(daemon: &TestDaemon) -> anyhow::Result<bool> {
    let doctor = daemon.ctl(&["doctor", "--json"]).await?.ok()?.json()?;
    let sandboxed = doctor["sandbox"] == "workspace-write";
    if !sandboxed {
        tests::skip::note(&format!("no sandbox here: {doctor}"));
    }
    Ok(sandboxed)
}

#[tokio::test]
async fn an_added_directory_is_worked_in_unasked_and_its_neighbour_links_secrets_and_hooks_ask() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (lib, other) = beside(&home)?;
    let at = |dir: &Path, name: &str| json!({"path": dir.join(name)});
    let write = |dir: &Path, name: &str| json!({"path": dir.join(name), "content": "new\n"});
    let unasked = vec![
        call("read_file", at(&lib, "a.txt")),
        call("list_dir", json!({"path": lib})),
        call("glob", json!({"pattern": "*.txt", "path": lib})),
        call("grep", json!({"pattern": "needle", "path": lib})),
        call("write_file", write(&lib, "sub/made.txt")),
        call(
            "edit_file",
            json!({"path": lib.join("a.txt"), "old": "needle", "new": "pin"}),
        ),
        call("read_file", json!({"path": "../lib/a.txt"})),
        bash(&format!("cat {}", lib.join("a.txt").display())),
        bash(&format!("cd {} && grep -r pin a.txt", lib.display())),
    ];
    let asked = vec![
        call("read_file", at(&other, "a.txt")),
        call("read_file", at(&lib, "link.txt")),
        call("write_file", write(&other, "made.txt")),
        call("read_file", at(&lib, ".env")),
        call("write_file", write(&lib, ".git/hooks/pre-commit")),
        bash(&format!("cat {}", lib.join("link.txt").display())),
        bash(&format!("cat {}", other.join("a.txt").display())),
        bash(&format!("cat {}", lib.join(".env").display())),
    ];
    let (first, questions) = (unasked.len(), asked.len());
    let server = ModelServer::start(Script::by_step(
        unasked.into_iter().chain(asked).chain([Reply::text("done")]),
    ))?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    let session = made(&daemon, "edits", &[&lib]).await?;
    daemon.send(&session, "go").await?;
    let reasons = denied(&daemon, &session, questions).await?;
    daemon.turn_end(&session, 1).await?;

    let results = results(&daemon, &session)?;
    for (outcome, output) in results.iter().take(first) {
        assert_eq!(outcome, "ok", "{output}");
    }
    assert_eq!(std::fs::read_to_string(lib.join("sub/made.txt"))?, "new\n");
    assert_eq!(std::fs::read_to_string(lib.join("a.txt"))?, "pin in a file\n");
    let (project, lib) = (daemon.home.project(), lib.display());
    let outside = format!("outside the session's directories ({}, {lib})", project.display());
    for place in [0, 1, 2, 5, 6] {
        assert!(reasons[place].contains(&outside), "{place}: {reasons:?}");
    }
    assert!(
        reasons[3].contains("secrets") && reasons[7].contains("secrets"),
        "{reasons:?}"
    );
    assert!(reasons[4].contains("can make later commands run code"), "{reasons:?}");
    let prompt = server
        .seen()
        .first()
        .map(|seen| seen.system.clone())
        .unwrap_or_default();
    assert!(
        prompt.contains(&format!("Further directory to work in, by its absolute path: {lib}\n")),
        "{prompt}"
    );
    Ok(())
}

#[tokio::test]
async fn a_sandboxed_command_writes_in_an_added_directory_but_for_what_makes_git_run_programs() -> anyhow::Result<()> {
    let Some(home) = Home::apart()? else {
        tests::skip!("no directory beside the temporary ones can be written here");
    };
    let (lib, other) = beside(&home)?;
    let command = |dir: &Path| {
        let dir = dir.display();
        format!("echo x > {dir}/src/made; echo x > {dir}/.git/hooks/pre-commit; mkdir -p {dir}/.agent/x; true")
    };
    let server = ModelServer::start(Script::by(move |seen| match (seen.last_text(), seen.step()) {
        ("write", 0) => bash(&command(&lib)),
        ("write", 1) => bash(&command(&other)),
        ("read", 0) => bash(&format!("grep -rh needle {}; true", lib.display())),
        _ => Reply::text("done"),
    }))?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    if !is_sandboxed(&daemon).await? {
        return Ok(());
    }
    let (lib, other) = (daemon.home.path().join("lib"), daemon.home.path().join("other"));
    let session = made(&daemon, "all", &[&lib]).await?;
    daemon.send(&session, "write").await?;
    daemon.turn_end(&session, 1).await?;
    assert!(lib.join("src/made").exists(), "{:?}", results(&daemon, &session)?);
    assert!(!other.join("src/made").exists(), "nobody added that");
    for dir in [&lib, &other] {
        assert!(!dir.join(".git/hooks/pre-commit").exists(), "{dir:?}");
        assert!(!dir.join(".agent").exists(), "{dir:?}");
    }
    // What nobody looks at reads in a sandbox without secrets.
    let session = made(&daemon, "ask", &[&lib]).await?;
    daemon.send(&session, "read").await?;
    daemon.turn_end(&session, 1).await?;
    let results = results(&daemon, &session)?;
    assert!(
        results[0].1.contains("needle in a file") && !results[0].1.contains("KEY"),
        "{results:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_sandboxed_command_in_an_added_directory_above_the_project_leaves_its_hooks_and_place_alone()
-> anyhow::Result<()> {
    let Some(home) = Home::apart()? else {
        tests::skip!("no directory beside the temporary ones can be written here");
    };
    let above = home.path().join("above");
    let project = above.join("p");
    std::fs::create_dir_all(project.join(".git/hooks"))?;
    std::fs::create_dir(above.join("src"))?;
    std::fs::write(project.join(".env"), "KEY=needle\n")?;
    std::fs::write(project.join("a.txt"), "needle in a file\n")?;
    let (a, p) = (above.display(), project.display());
    let command =
        format!("echo x > {a}/src/made; echo x > {p}/.git/hooks/pre-commit; mv {p} {a}/q; rm -rf {p}/.git; true");
    let read = format!("grep -rh needle {a} {p}; true");
    let script = Script::by_step([bash(&command), bash(&read), Reply::text("done")]);
    let server = ModelServer::start(script)?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    if !is_sandboxed(&daemon).await? {
        return Ok(());
    }
    let params = json!({"cwd": project, "mode": "all", "add_roots": [above]});
    let made = daemon.controller().await?.call("session.create", params).await?;
    assert_eq!(
        (&made["root"], &made["added_roots"]),
        (&json!(project), &json!([above]))
    );
    let session = made["id"].as_str().unwrap_or_default().to_owned();
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    let results = results(&daemon, &session)?;
    assert!(above.join("src/made").exists(), "{results:?}");
    assert!(
        project.join(".git/hooks").exists() && !above.join("q").exists(),
        "{results:?}"
    );
    assert!(!project.join(".git/hooks/pre-commit").exists(), "{results:?}");
    let found = &results[1].1;
    assert!(
        found.contains("needle in a file") && !found.contains("KEY"),
        "{results:?}"
    );
    Ok(())
}

#[tokio::test]
async fn added_directories_outlive_the_daemon_and_are_named_by_every_client() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (lib, other) = beside(&home)?;
    let script = Script::by(move |seen| match seen.step() {
        0 => call("write_file", json!({"path": other.join("made.txt"), "content": "x"})),
        1 => call("write_file", json!({"path": lib.join("made.txt"), "content": "x"})),
        _ => Reply::text("done"),
    });
    let server = ModelServer::start(script)?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    let made = daemon
        .ctl(&["new", "--mode", "edits", "--add-dir", "../lib", "--json"])
        .await?
        .ok()?
        .json()?;
    let session = made["id"].as_str().unwrap_or_default().to_owned();
    let (lib, other) = (daemon.home.path().join("lib"), daemon.home.path().join("other"));
    assert_eq!(made["added_roots"], json!([lib]));
    daemon
        .controller()
        .await?
        .call("session.update", json!({"session": session, "add_roots": [other]}))
        .await?;
    assert_eq!(added_roots(&daemon, &session).await?, json!([lib, other]));
    daemon.kill9().await?;
    daemon.start().await?;
    assert_eq!(added_roots(&daemon, &session).await?, json!([lib, other]));
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    assert_eq!(count(&daemon.log(&session)?, "approval.requested"), 0);
    assert!(lib.join("made.txt").exists() && other.join("made.txt").exists());

    let listed = daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?;
    assert_eq!(listed[0]["added_roots"], json!([lib, other]));
    for command in ["show", "tail"] {
        let told = daemon.ctl(&[command, &session]).await?.ok()?.stdout;
        for dir in [&lib, &other] {
            assert!(told.contains(&dir.display().to_string()), "{command}: {told}");
        }
    }
    let mut peer = daemon.observer().await?;
    peer.attach(&session, None).await?;
    let frames = peer.until("the snapshot", |frame| frame["kind"] == "snapshot").await?;
    assert_eq!(tests::socket::last(&frames)?["added_roots"], json!([lib, other]));
    Ok(())
}

#[tokio::test]
async fn a_living_session_is_widened_by_a_person_and_never_by_what_a_tool_starts() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (lib, _) = beside(&home)?;
    let ctl = bins()?.agentctl().display().to_string();
    let attempts = [
        format!("{ctl} send -s s --add-dir {} hi", lib.display()),
        format!("{ctl} new --add-dir {}", lib.display()),
    ];
    let aim = lib.join("made.txt");
    let script = Script::by(move |seen| match (seen.last_text(), attempts.get(seen.step())) {
        ("try", Some(attempt)) => bash(attempt),
        ("write", _) if seen.step() == 0 => call("write_file", json!({"path": aim, "content": "x"})),
        _ => Reply::text("done"),
    });
    let server = ModelServer::start(script)?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    let made = daemon.ctl(&["new", "--name", "s", "--mode", "all"]).await?.ok()?;
    let session = made.stdout.trim().to_owned();
    daemon.send(&session, "try").await?;
    daemon.turn_end(&session, 1).await?;
    for (outcome, output) in results(&daemon, &session)? {
        assert_ne!(outcome, "ok", "{output}");
    }
    assert_eq!(added_roots(&daemon, &session).await?, json!([]));
    assert_eq!(tests::log::sessions(&daemon.home.state_dir())?.len(), 1);

    let update = json!({"session": session, "mode": "edits"});
    daemon.controller().await?.call("session.update", update).await?;
    let refused = daemon
        .observer()
        .await?
        .refused("session.update", json!({"session": session, "add_roots": [lib]}))
        .await?;
    assert_eq!(refused["data"]["kind"], "not_authorized");
    daemon.send(&session, "write").await?;
    denied(&daemon, &session, 1).await?;
    daemon.turn_end(&session, 2).await?;
    // Twice, as a retry would: it is added once.
    for _ in 0..2 {
        daemon
            .ctl(&[
                "send",
                "-s",
                "s",
                "--add-dir",
                "../lib",
                "--add-dir",
                "../lib/src",
                "write",
            ])
            .await?
            .ok()?;
    }
    assert!(lib.join("made.txt").exists());
    assert_eq!(added_roots(&daemon, &session).await?, json!([lib]));
    assert_eq!(count(&daemon.log(&session)?, "approval.requested"), 1);
    Ok(())
}

#[tokio::test]
async fn a_directory_added_while_a_question_waits_counts_from_the_next_call() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (lib, _) = beside(&home)?;
    let aim = |name: &str| json!({"path": lib.join(name), "content": "x"});
    let script = Script::by_step([
        call("write_file", aim("asked.txt")),
        call("write_file", aim("unasked.txt")),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    let session = daemon.session("edits").await?;
    daemon.send(&session, "write").await?;
    let approval = daemon.approval(&session).await?;
    let update = json!({"session": session, "add_roots": [lib]});
    daemon.controller().await?.call("session.update", update).await?;
    let still = daemon.approval(&session).await?;
    assert_eq!(still["id"], approval["id"], "what was asked is asked");
    daemon.answer(&approval, "once").await?;
    daemon.turn_end(&session, 1).await?;
    assert!(lib.join("asked.txt").exists() && lib.join("unasked.txt").exists());
    assert_eq!(count(&daemon.log(&session)?, "approval.requested"), 1);
    Ok(())
}

#[tokio::test]
async fn what_must_not_be_added_is_refused_with_a_reason_and_nothing_is_made() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let home = daemon.home.path().to_path_buf();
    let made = home.join("made");
    std::fs::create_dir_all(home.join(".ssh"))?;
    std::fs::create_dir(&made)?;
    symlink("/", home.join("all"))?;
    let many: Vec<PathBuf> = (0..17).map(|number| made.join(number.to_string())).collect();
    many.iter().try_for_each(std::fs::create_dir)?;
    let refused = [
        (json!(["/"]), "the machine"),
        (json!([home.join("all")]), "the machine"),
        (json!(["/proc/self"]), "the machine"),
        (json!(["/dev"]), "the machine"),
        (json!(["/sys/kernel"]), "the machine"),
        (json!([home]), "a home directory"),
        (json!(["/tmp"]), "a home directory"),
        (json!([home.join(".ssh")]), "keys"),
        (json!([home.join(".local/state")]), "agentd itself"),
        (json!(["made"]), "absolute"),
        (json!([made, home.join("absent")]), "no such directory"),
        (json!([daemon.home.project().join("README.md")]), "not a directory"),
        (json!([format!("{}/a\nb", made.display())]), "no such directory"),
        (json!(many), "at most 16"),
    ];
    let session = daemon.session("ask").await?;
    let mut peer = daemon.controller().await?;
    for (asked, why) in refused {
        let create = json!({"cwd": daemon.home.project(), "add_roots": asked});
        let update = json!({"session": session, "add_roots": asked});
        for (method, params) in [("session.create", create), ("session.update", update)] {
            let error = peer.refused(method, params).await?;
            assert_eq!(error["data"]["kind"], "invalid_params", "{asked}: {error}");
            let told = error["message"].as_str().unwrap_or_default();
            assert!(told.contains(why), "{asked}: {error}");
            assert!(error["data"]["hint"].is_string(), "{asked}: {error}");
        }
    }
    assert_eq!(added_roots(&daemon, &session).await?, json!([]));
    assert_eq!(tests::log::sessions(&daemon.home.state_dir())?.len(), 1);
    // Sixteen will do, and not one more, however they come.
    for piece in many[..16].chunks(5) {
        let update = json!({"session": session, "add_roots": piece});
        peer.call("session.update", update).await?;
    }
    let error = peer
        .refused("session.update", json!({"session": session, "add_roots": [many[16]]}))
        .await?;
    assert!(
        error["message"].as_str().unwrap_or_default().contains("at most 16"),
        "{error}"
    );
    let told = daemon.ctl(&["send", "-c", "--add-dir", "/", "hi"]).await?;
    assert_ne!(told.code, Some(0));
    assert!(told.stderr.contains("the machine"), "{}", told.stderr);
    Ok(())
}

#[tokio::test]
async fn a_request_that_comes_again_gets_the_session_it_made() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (lib, other) = beside(&home)?;
    let daemon = home.start().await?;
    let id = uuid::Uuid::now_v7().to_string();
    let params = |added: &Path| json!({"cwd": daemon.home.project(), "session": id, "add_roots": [added]});
    let mut peer = daemon.controller().await?;
    let first = peer.call("session.create", params(&lib)).await?;
    let again = peer.call("session.create", params(&lib.join("."))).await?;
    assert_eq!((&first["id"], &first["added_roots"]), (&again["id"], &json!([lib])));
    let error = peer.refused("session.create", params(&other)).await?;
    assert_eq!(error["data"]["kind"], "session_exists");
    Ok(())
}

#[tokio::test]
async fn a_projects_own_file_adds_no_directory_trusted_or_not() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (lib, _) = beside(&home)?;
    let daemon = home.start().await?;
    let file = daemon.home.project().join(".agent/config.toml");
    std::fs::create_dir_all(daemon.home.project().join(".agent"))?;
    let dir = lib.display();
    for text in [
        format!("add_dirs = [\"{dir}\"]\n"),
        format!("add_roots = [\"{dir}\"]\n"),
        format!("[session]\nadd_dirs = [\"{dir}\"]\n"),
        format!("[session]\nadd_roots = [\"{dir}\"]\n"),
        format!("[sandbox]\nroots = [\"{dir}\"]\n"),
    ] {
        std::fs::write(&file, &text)?;
        daemon.ctl(&["trust", "--yes"]).await?;
        let create = json!({"cwd": daemon.home.project()});
        let made = daemon.controller().await?.request("session.create", create).await?;
        // Refused as a mistake, or made without.
        assert!(made["result"].get("added_roots").is_none(), "{text}: {made}");
    }
    std::fs::write(&file, "")?;
    let params = json!({"cwd": daemon.home.project(), "add_roots": [lib]});
    let made = daemon.controller().await?.call("session.create", params).await?;
    assert_eq!(made["added_roots"], json!([lib]), "a person does");
    Ok(())
}

#[tokio::test]
async fn a_directory_that_is_gone_or_replaced_is_said_and_the_rest_goes_on() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (lib, other) = beside(&home)?;
    let (aim, read) = (lib.join("new.txt"), lib.join("a.txt"));
    let script = Script::by(move |seen| match seen.step() {
        0 => call("read_file", json!({"path": read})),
        1 => call("write_file", json!({"path": aim, "content": "x"})),
        2 => call("read_file", json!({"path": "README.md"})),
        3 => bash("cat README.md"),
        _ => Reply::text("done"),
    });
    let server = ModelServer::start(script)?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    let session = made(&daemon, "all", &[&lib]).await?;
    let all = |results: Vec<(String, String)>| results.into_iter().map(|(outcome, _)| outcome).collect::<Vec<_>>();
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    assert_eq!(all(results(&daemon, &session)?), ["ok"; 4]);

    // Another directory in its place is not the one that was added.
    std::fs::remove_file(lib.join("new.txt"))?;
    std::fs::rename(&lib, daemon.home.path().join("moved"))?;
    std::fs::create_dir(&lib)?;
    std::fs::write(lib.join("a.txt"), "another\n")?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 2).await?;
    let second: Vec<_> = results(&daemon, &session)?.split_off(4);
    for (outcome, output) in &second[..2] {
        assert!(
            outcome != "ok" && output.contains("is gone or was replaced"),
            "{second:?}"
        );
    }
    assert_eq!(all(second.clone())[2..], ["ok"; 2], "{second:?}");
    assert!(!lib.join("new.txt").exists());

    // A link in its place leads nowhere, in the next life of the daemon, too.
    std::fs::remove_dir_all(&lib)?;
    symlink(&other, &lib)?;
    daemon.kill9().await?;
    daemon.start().await?;
    let update = json!({"session": session, "mode": "edits"});
    daemon.controller().await?.call("session.update", update).await?;
    daemon.send(&session, "go").await?;
    let reasons = denied(&daemon, &session, 2).await?;
    assert!(reasons.iter().all(|reason| reason.contains("outside")), "{reasons:?}");
    daemon.turn_end(&session, 3).await?;
    assert!(!other.join("new.txt").exists());
    Ok(())
}
