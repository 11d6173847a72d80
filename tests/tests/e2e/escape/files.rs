//! Every spelling of a path that leads out of the project asks, and names that only look alike stay apart.

use super::{outputs, turn};
use serde_json::{Value, json};
use tests::daemon::TestDaemon;
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::skip;

/// What lies outside.
const SECRET: &str = "TOP-SECRET-CONTENT";

/// Ways to name the file `outside/file` beside the project, `HOME` standing for the directory that holds both.
const SPELLINGS: &[&str] = &[
    "../outside/file",
    "./../outside/file",
    "sub/../../outside/file",
    "sub/./.././../outside//file",
    ".//..//outside/./file",
    "HOME/outside/file",
    "//HOME/outside/file",
    "HOME/p/../outside/file",
    "~/outside/file",
    "~//outside/file",
    "link/file",
    "link/../outside/file",
    "sub/deep/../../../outside/file",
    "chain/file",
    "file-link",
    "/proc/self/root/HOME/outside/file",
    "/proc/self/cwd/HOME/outside/file",
    "/proc/thread-self/root/HOME/outside/file",
    "/dev/fd/../root/HOME/outside/file",
    "root-link/HOME/outside/file",
];

/// A call of each file tool on a path.
fn on(path: &str) -> [(&'static str, Value); 6] {
    let dir = path.rsplit_once('/').map_or(path, |(dir, _)| dir);
    [
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": format!("{dir}/written"), "content": "x"})),
        ("edit_file", json!({"path": path, "old": "TOP", "new": "x"})),
        ("list_dir", json!({"path": dir})),
        ("glob", json!({"pattern": "*", "path": dir})),
        ("grep", json!({"pattern": "SECRET", "path": path})),
    ]
}

#[tokio::test]
async fn no_spelling_of_a_path_leads_outside_without_a_question() -> anyhow::Result<()> {
    let home = tests::daemon::Home::new()?;
    let here = home.path().to_string_lossy().trim_start_matches('/').to_owned();
    let spelt = move |path: &str| {
        let path = path.replace("//HOME", &format!("//{here}"));
        match path.strip_prefix("HOME") {
            Some(rest) => format!("/{here}{rest}"),
            None => path.replace("HOME", &here),
        }
    };
    let paths: Vec<String> = SPELLINGS.iter().map(|path| spelt(path)).collect();
    let replies: Vec<Reply> = paths
        .iter()
        // A link to a file has no directory that leads outside.
        .map(|path| {
            on(path)
                .into_iter()
                .filter(move |(tool, _)| path != "file-link" || matches!(*tool, "read_file" | "edit_file" | "grep"))
        })
        .map(|calls| calls.fold(Reply::default(), |reply, (tool, arguments)| reply.call(tool, arguments)))
        .chain([Reply::text("done")])
        .collect();
    let server = ModelServer::start(Script::by_step(replies))?;
    let daemon = home.model(&server, Wire::Messages)?.start().await?;
    let (project, outside) = (daemon.home.project(), daemon.home.path().join("outside"));
    std::fs::create_dir_all(&outside)?;
    std::fs::create_dir_all(project.join("sub/deep"))?;
    std::fs::write(outside.join("file"), SECRET)?;
    std::os::unix::fs::symlink("../outside", project.join("link"))?;
    std::os::unix::fs::symlink("sub/../link", project.join("chain"))?;
    std::os::unix::fs::symlink("../outside/file", project.join("file-link"))?;
    std::os::unix::fs::symlink("/", project.join("root-link"))?;
    let session = turn(&daemon, "none").await?;

    let log = daemon.log(&session)?;
    let asked: Vec<_> = log.iter().filter(|event| event.kind == "tool.requested").collect();
    assert_eq!(asked.len(), (paths.len() - 1) * 6 + 3);
    for call in asked {
        let verdict = &call.data["verdict"]["decision"];
        // A path with a mistake in it is no call at all.
        assert!(
            verdict == "deny" || call.data["argument_error"].is_string(),
            "{}",
            call.data
        );
    }
    assert_eq!(tests::log::count(&log, "tool.started"), 0);
    let outputs = outputs(&daemon, &session)?;
    assert!(!outputs.iter().any(|output| output.contains(SECRET)), "{outputs:?}");
    assert_eq!(std::fs::read_to_string(outside.join("file"))?, SECRET);
    assert!(!outside.join("written").exists());
    Ok(())
}

#[tokio::test]
async fn a_command_that_goes_up_or_through_proc_is_asked_about() -> anyhow::Result<()> {
    let commands = [
        "cat ../outside/file",
        "cd .. && cat outside/file",
        "cd ..; cat outside/file",
        "cd sub/../..; ls",
        "cd ~ && cat outside/file",
        "cd / && ls",
        "cat /proc/self/root/etc/passwd",
        "cat /proc/self/cwd/../outside/file",
        "cat link/file",
        "cd link && cat file",
        "cat $OLDPWD/x",
        "head -n1 sub/../../outside/file",
        "find .. -name file",
        "grep -r SECRET ..",
        "ls /proc/self/fd/",
        "cat hard/../../outside/file",
    ];
    let server = ModelServer::start(Script::by_step(
        commands
            .iter()
            .map(|command| super::bash(command))
            .chain([Reply::text("done")]),
    ))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let outside = daemon.home.path().join("outside");
    std::fs::create_dir_all(&outside)?;
    std::fs::create_dir_all(daemon.home.project().join("sub"))?;
    std::fs::write(outside.join("file"), SECRET)?;
    std::os::unix::fs::symlink("../outside", daemon.home.project().join("link"))?;
    let session = turn(&daemon, "none").await?;
    let log = daemon.log(&session)?;
    for call in log.iter().filter(|event| event.kind == "tool.requested") {
        assert_eq!(call.data["verdict"]["decision"], "deny", "{}", call.data);
    }
    assert_eq!(tests::log::count(&log, "tool.requested"), commands.len());
    assert_eq!(tests::log::count(&log, "tool.started"), 0);
    Ok(())
}

#[tokio::test]
async fn a_file_with_a_second_name_outside_is_replaced_under_its_own_name_alone() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool("read_file", json!({"path": "linked"})),
        Reply::tool("write_file", json!({"path": "linked", "content": "mine\n"})),
        Reply::tool(
            "edit_file",
            json!({"path": "linked", "old": "mine", "new": "still mine"}),
        ),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let outside = daemon.home.path().join("outside");
    std::fs::write(&outside, "theirs\n")?;
    std::fs::hard_link(&outside, daemon.home.project().join("linked"))?;
    let session = turn(&daemon, "edits").await?;
    assert_eq!(std::fs::read_to_string(&outside)?, "theirs\n");
    assert_eq!(
        std::fs::read_to_string(daemon.home.project().join("linked"))?,
        "still mine\n"
    );
    let outputs = outputs(&daemon, &session)?;
    assert!(outputs[1].contains("1 more hard link"), "it is said: {outputs:?}");
    Ok(())
}

#[tokio::test]
async fn a_name_for_somebody_elses_file_asks_before_it_is_read_and_no_search_goes_into_it() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        skip!("only root may give a file to somebody else");
    }
    let script = Script::by_step([
        Reply::default()
            .call("grep", json!({"pattern": "theirs"}))
            .call("read_file", json!({"path": "own"}))
            .call("read_file", json!({"path": "linked"}))
            .call("bash", json!({"command": "cat linked"})),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let (outside, project) = (daemon.home.path().join("outside"), daemon.home.project());
    std::fs::write(&outside, "theirs\n")?;
    std::os::unix::fs::chown(&outside, Some(54_321), None)?;
    std::fs::hard_link(&outside, project.join("linked"))?;
    std::fs::write(project.join("own"), "mine\n")?;
    std::fs::hard_link(project.join("own"), project.join("second"))?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    for _ in 0..2 {
        let approval = daemon.approval(&session).await?;
        assert_eq!(approval["reason"], "linked is a hard link to a file of somebody else.");
        daemon.answer(&approval, "deny").await?;
    }
    daemon.turn_end(&session, 1).await?;
    let outputs = outputs(&daemon, &session)?;
    assert!(outputs[0].contains("no line matches"), "{outputs:?}");
    assert!(
        outputs[1].contains("mine"),
        "the project's own links are files like any other: {outputs:?}"
    );
    Ok(())
}

#[tokio::test]
async fn names_that_look_alike_are_different_files_and_are_shown_as_they_are() -> anyhow::Result<()> {
    // Composed, decomposed, with an invisible character, with fullwidth dots, and written from right to left.
    let names = [
        "\u{e9}.txt",
        "e\u{301}.txt",
        "\u{e9}\u{200b}.txt",
        "\u{ff0e}\u{ff0e}",
        "gpj\u{202e}txt.exe",
        "\u{5d0}\u{5d1}.txt",
    ];
    let writes = names.iter().enumerate().map(|(at, name)| {
        Reply::tool(
            "write_file",
            json!({"path": name, "content": format!("content {at}\n")}),
        )
    });
    let reads = names.iter().map(|name| Reply::tool("read_file", json!({"path": name})));
    let hidden = Reply::tool("write_file", json!({"path": ".g\u{200c}it/config", "content": "x"}));
    let server = ModelServer::start(Script::by_step(
        writes.chain(reads).chain([hidden, Reply::text("done")]),
    ))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("edits").await?;
    daemon.send(&session, "go").await?;
    let approval = daemon.approval(&session).await?;
    let outputs = outputs(&daemon, &session)?;
    for (at, name) in names.iter().enumerate() {
        assert_eq!(
            std::fs::read_to_string(daemon.home.project().join(name))?,
            format!("content {at}\n")
        );
        assert!(
            outputs[names.len() + at].contains(&format!("content {at}")),
            "{name}: {outputs:?}"
        );
    }
    assert!(
        approval["action"]["path"]
            .as_str()
            .is_some_and(|path| path.contains(".g\u{200c}it")),
        "{approval}"
    );
    let shown = daemon.ctl(&["approvals"]).await?.ok()?.stdout;
    assert!(shown.contains("<U+200C>") && !shown.contains('\u{200c}'), "{shown:?}");
    let tail = daemon.ctl(&["show", &session]).await?.ok()?.stdout;
    assert!(tail.contains("<U+202E>") && !tail.contains('\u{202e}'), "{tail:?}");
    daemon.answer(&approval, "deny").await?;
    daemon.turn_end(&session, 1).await?;
    Ok(())
}
