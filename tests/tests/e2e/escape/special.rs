//! What is no ordinary text file, given to every tool that takes a path: each call ends soon, with words, in bounded memory.

use super::{outcomes, outputs, turn};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use std::path::Path;
use tests::daemon::TestDaemon;
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::process::peak_kib;

/// What a call may cost the daemon beyond what it had.
const MEMORY_KIB: u64 = 64 * 1024;

/// Size of a file without content.
const SPARSE_BYTES: u64 = 5 << 30;

const NAMES: [&str; 6] = ["latin", "pipe", "dir", "/dev/zero", "sparse", "socket"];

fn make(project: &Path) -> anyhow::Result<std::os::unix::net::UnixListener> {
    std::fs::write(project.join("latin"), b"caf\xe9 au lait\n")?;
    mkfifoat(CWD, project.join("pipe"), Mode::RWXU)?;
    std::fs::create_dir(project.join("dir"))?;
    std::fs::File::create(project.join("sparse"))?.set_len(SPARSE_BYTES)?;
    Ok(std::os::unix::net::UnixListener::bind(project.join("socket"))?)
}

fn calls(path: &str) -> [(&'static str, Value); 6] {
    [
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "x"})),
        ("edit_file", json!({"path": path, "old": "a", "new": "b"})),
        ("grep", json!({"pattern": "lait|x", "path": path})),
        ("glob", json!({"pattern": "*", "path": path})),
        ("list_dir", json!({"path": path})),
    ]
}

#[tokio::test]
async fn every_tool_ends_soon_and_small_whatever_kind_of_file_it_is_given() -> anyhow::Result<()> {
    let reply = |name: &str| {
        calls(name)
            .into_iter()
            .fold(Reply::default(), |reply, (tool, arguments)| reply.call(tool, arguments))
    };
    // Parts of the large file, and searches that come by all of them.
    let around = Reply::default()
        .call("read_file", json!({"path": "sparse", "offset": 1, "limit": 10}))
        .call("grep", json!({"pattern": "lait|x"}))
        .call("glob", json!({"pattern": "**/*"}))
        .call("list_dir", json!({"depth": 8}));
    let replies = NAMES
        .iter()
        .map(|name| reply(name))
        .chain([around, Reply::text("done")]);
    let server = ModelServer::start(Script::by_step(replies))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let _socket = make(&daemon.home.project())?;
    let before = tests::process::resident_kib(daemon.pid()?)?;
    let session = turn(&daemon, "all").await?;

    let (outcomes, outputs) = (outcomes(&daemon, &session)?, outputs(&daemon, &session)?);
    let ends: Vec<_> = outcomes.iter().zip(&outputs).collect();
    for (name, ends) in NAMES.iter().zip(ends.chunks(6)) {
        for ((tool, _), (outcome, output)) in calls(name).iter().zip(ends) {
            // A directory can be listed and searched, and there is nothing wrong with text of another encoding.
            let fine = matches!(
                (*name, *tool),
                ("dir", "grep" | "glob" | "list_dir") | ("latin", "read_file" | "grep") | ("sparse", "grep")
            );
            assert_eq!(
                outcome.as_str() == "ok",
                fine,
                "{tool} of {name} ended as {outcome}: {output}"
            );
            assert!(!output.is_empty() && output.len() < 1000, "{tool} of {name}: {output}");
        }
    }
    assert_eq!(
        std::fs::metadata(daemon.home.project().join("sparse"))?.len(),
        SPARSE_BYTES
    );
    assert_eq!(
        std::fs::read(daemon.home.project().join("latin"))?,
        b"caf\xe9 au lait\n"
    );
    let peak = peak_kib(daemon.pid()?)?;
    assert!(peak < before + MEMORY_KIB, "{before} KiB grew to {peak} KiB");
    Ok(())
}

#[tokio::test]
async fn rules_of_a_search_that_are_a_pipe_or_endless_hold_nobody_up() -> anyhow::Result<()> {
    let searches = Reply::default()
        .call("list_dir", json!({"depth": 3}))
        .call("glob", json!({"pattern": "**/*.rs"}))
        .call("grep", json!({"pattern": "main"}));
    let server = ModelServer::start(Script::by_step([searches, Reply::text("done")]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let project = daemon.home.project();
    for dir in ["pipe", "huge"] {
        std::fs::create_dir(project.join(dir))?;
        std::fs::write(project.join(dir).join("a.rs"), "fn main() {}\n")?;
    }
    std::os::unix::fs::symlink("/dev/zero", project.join(".gitignore"))?;
    mkfifoat(CWD, project.join("pipe/.gitignore"), Mode::RWXU)?;
    std::fs::File::create(project.join("huge/.ignore"))?.set_len(SPARSE_BYTES)?;
    let before = tests::process::resident_kib(daemon.pid()?)?;
    let session = turn(&daemon, "ask").await?;
    for output in outputs(&daemon, &session)? {
        assert!(output.contains("pipe/a.rs") && output.contains("huge/a.rs"), "{output}");
    }
    let peak = peak_kib(daemon.pid()?)?;
    assert!(peak < before + MEMORY_KIB, "{before} KiB grew to {peak} KiB");
    Ok(())
}
