//! Where sessions belong: the root of a project, the lists of its sessions, and nothing of ours in it.

use serde_json::{Value, json};
use std::os::unix::fs::chown;
use std::path::Path;
use tests::daemon::{Home, TestDaemon};
use tests::model_server::{ModelServer, Reply, Script, Wire};

/// Root and working directory of a session that is made in `cwd`.
async fn made_in(daemon: &TestDaemon, cwd: &Path) -> anyhow::Result<(String, String)> {
    let params = json!({"cwd": cwd});
    let session = daemon.controller().await?.call("session.create", params).await?;
    let text = |name: &str| session[name].as_str().unwrap_or_default().to_owned();
    Ok((text("root"), text("cwd")))
}

#[tokio::test]
async fn the_root_is_the_nearest_agent_directory_else_the_nearest_git_else_where_one_stands() -> anyhow::Result<()> {
    let daemon = Home::new()?.start().await?;
    let project = daemon.home.project();
    let deep = project.join("a/b");
    std::fs::create_dir_all(&deep)?;
    let shown = |path: &Path| path.display().to_string();
    // The home's own is beyond where the walk ends.
    std::fs::create_dir(daemon.home.path().join(".git"))?;
    std::fs::create_dir(daemon.home.path().join(".agent"))?;
    assert_eq!(made_in(&daemon, &deep).await?, (shown(&deep), shown(&deep)));
    std::fs::create_dir(project.join(".git"))?;
    assert_eq!(made_in(&daemon, &deep).await?, (shown(&project), shown(&deep)));
    std::fs::create_dir(project.join("a/.git"))?;
    assert_eq!(
        made_in(&daemon, &deep).await?.0,
        shown(&project.join("a")),
        "the nearest"
    );
    std::fs::create_dir(project.join(".agent"))?;
    assert_eq!(made_in(&daemon, &deep).await?.0, shown(&project), "before any .git");
    Ok(())
}

#[tokio::test]
async fn a_directory_of_somebody_else_ends_the_walk_to_the_root() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        tests::skip!("only root can give a directory to somebody else");
    }
    let daemon = Home::new()?.start().await?;
    let project = daemon.home.project();
    let deep = project.join("a/b");
    std::fs::create_dir_all(&deep)?;
    std::fs::create_dir(project.join(".git"))?;
    chown(project.join("a"), Some(54_321), None)?;
    assert_eq!(made_in(&daemon, &deep).await?.0, deep.display().to_string());
    Ok(())
}

#[tokio::test]
async fn commands_start_where_the_client_stands() -> anyhow::Result<()> {
    let script = Script::by_step([Reply::tool("bash", json!({"command": "pwd"})), Reply::text("done")]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let deep = daemon.home.project().join("a/b");
    std::fs::create_dir_all(&deep)?;
    std::fs::create_dir(daemon.home.project().join(".git"))?;
    daemon
        .ctl(&["-C", &deep.display().to_string(), "send", "--mode", "all", "where?"])
        .await?
        .ok()?;
    let seen = server.request(2).await?;
    let output = seen
        .outputs()
        .first()
        .map(|output| (*output).to_owned())
        .unwrap_or_default();
    assert!(output.contains(&deep.display().to_string()), "{output}");
    Ok(())
}

#[tokio::test]
async fn ls_shows_the_newest_20_of_this_project_and_a_all_and_the_project_stays_as_it_was() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let elsewhere = daemon.home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere)?;
    let mut made = Vec::new();
    for _ in 0..21 {
        made.push(daemon.session("ask").await?);
    }
    let params = json!({"cwd": elsewhere});
    let other = daemon.controller().await?.call("session.create", params).await?["id"].clone();
    // The oldest is used, and so the newest.
    let used = made.remove(0);
    daemon.send(&used, "hi").await?;
    daemon.turn_end(&used, 1).await?;
    made.push(used);
    made.reverse();

    let ids = |listed: Value| -> Vec<Value> {
        let listed = listed.as_array().cloned().unwrap_or_default();
        listed.iter().map(|session| session["id"].clone()).collect()
    };
    let here = ids(daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?);
    assert_eq!(here, made.iter().take(20).map(|id| json!(id)).collect::<Vec<_>>());
    let all = ids(daemon.ctl(&["ls", "-a", "-n", "99", "--json"]).await?.ok()?.json()?);
    assert_eq!(all.len(), 22);
    assert!(all.contains(&other), "-a shows other projects too");

    let left: Vec<_> = std::fs::read_dir(daemon.home.project())?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<std::io::Result<_>>()?;
    assert_eq!(left, ["README.md"], "nothing of ours is left in a project");
    Ok(())
}

#[tokio::test]
async fn the_title_is_the_first_line_of_the_first_input_and_a_name_stands_beside_it() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon
        .ctl(&["send", "--name", "counting", "\n  count to three  \nin French"])
        .await?
        .ok()?;
    daemon.ctl(&["send", "-s", "counting", "again"]).await?.ok()?;
    let listed = daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?;
    assert_eq!(
        (&listed[0]["title"], &listed[0]["name"]),
        (&json!("count to three"), &json!("counting"))
    );
    Ok(())
}
