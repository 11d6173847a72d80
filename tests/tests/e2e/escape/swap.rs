//! A directory and a file of the project trade places with links that lead outside, over and over, while the file tools work
//! on them: what was judged is what is opened, so nothing outside is ever read, written or listed.

use super::outputs;
use anyhow::Context;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tests::daemon::TestDaemon;
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::is;

/// Swaps there must have been when the calls are done.
const SWAPS: usize = 10_000;

/// Replies of the model, each with a call of every kind.
const STEPS: usize = 30;

/// What lies outside; no word of it may come in.
const SECRET: &str = "TOP-SECRET-CONTENT";

/// Swaps two names until it is told to stop.
struct Swapper {
    done: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    thread: std::thread::JoinHandle<()>,
}

impl Swapper {
    fn start(pairs: Vec<(std::path::PathBuf, std::path::PathBuf)>) -> Self {
        let (done, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stop, counter) = (Arc::clone(&done), Arc::clone(&count));
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for (one, other) in &pairs {
                    // A call may be about to replace one of them.
                    if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                }
                // The tools need the processor, too.
                std::thread::yield_now();
            }
        });
        Self { done, count, thread }
    }

    fn stop(self) -> anyhow::Result<usize> {
        self.done.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow::anyhow!("the swapper panicked"))?;
        Ok(self.count.load(Ordering::Relaxed))
    }
}

fn calls(step: usize) -> Reply {
    Reply::default()
        .call("read_file", json!({"path": "dir/file"}))
        .call("read_file", json!({"path": "file"}))
        .call(
            "write_file",
            json!({"path": format!("dir/new-{step}"), "content": "mine"}),
        )
        .call("write_file", json!({"path": "dir/file", "content": "mine"}))
        .call("edit_file", json!({"path": "file", "old": "", "new": "more\n"}))
        .call(
            "edit_file",
            json!({"path": format!("dir/edited-{step}"), "old": "", "new": "mine"}),
        )
        .call("list_dir", json!({"path": "dir", "depth": 3}))
        .call("glob", json!({"pattern": "**/*secret*"}))
        .call("grep", json!({"pattern": "TOP-SECRET", "path": "."}))
        .call("bash", json!({"command": "ls", "cwd": "dir"}))
}

/// Refuses whatever is asked: what leads outside at the moment it is judged asks.
async fn deny_all(daemon: &TestDaemon, session: &str) -> anyhow::Result<()> {
    let (mut watcher, mut hand) = (daemon.observer().await?, daemon.controller().await?);
    watcher.attach(session, Some(0)).await?;
    loop {
        let frame = watcher.frame().await?.context("the daemon left")?;
        let data = &frame["data"];
        if is(&frame, "turn.completed") {
            return Ok(());
        }
        if is(&frame, "approval.requested") {
            let answer = json!({"id": data["approval"], "digest": data["digest"], "decision": "deny"});
            hand.request("approval.answer", answer).await?;
        }
    }
}

fn entries(dir: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let text = std::fs::read_to_string(entry.path())?;
        found.push((entry.file_name().to_string_lossy().into_owned(), text));
    }
    found.sort();
    Ok(found)
}

#[tokio::test]
async fn links_that_come_and_go_ten_thousand_times_lead_no_file_tool_outside() -> anyhow::Result<()> {
    let script = Script::by(|seen| match seen.step() {
        step if step < STEPS => calls(step),
        _ => Reply::text("done"),
    });
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let (project, outside) = (daemon.home.project(), daemon.home.path().join("outside"));
    std::fs::create_dir_all(&outside)?;
    std::fs::create_dir_all(project.join("dir"))?;
    for name in ["file", "secret-name", "new-0"] {
        std::fs::write(outside.join(name), SECRET)?;
    }
    std::fs::write(project.join("dir/file"), "plain")?;
    std::fs::write(project.join("file"), "plain\n")?;
    std::os::unix::fs::symlink(&outside, project.join("dir-link"))?;
    std::os::unix::fs::symlink(outside.join("file"), project.join("file-link"))?;
    let before = entries(&outside)?;

    let session = daemon.session("edits").await?;
    let pair = |one: &str, other: &str| (project.join(one), project.join(other));
    let swapper = Swapper::start(vec![pair("dir", "dir-link"), pair("file", "file-link")]);
    daemon.send(&session, "go").await?;
    let ended = deny_all(&daemon, &session).await;
    let swaps = swapper.stop()?;
    ended?;

    assert!(swaps >= SWAPS, "only {swaps} swaps");
    assert_eq!(entries(&outside)?, before, "something was written outside");
    let log = daemon.log(&session)?;
    // The person who is asked about what leads outside may see what it would do there; the model may not.
    let told = log.iter().filter(|event| event.kind != "approval.requested");
    let leaked: Vec<_> = told.filter(|event| event.data.to_string().contains(SECRET)).collect();
    assert!(leaked.is_empty(), "what lies outside was read: {leaked:?}");
    let outputs = outputs(&daemon, &session)?;
    assert_eq!(outputs.len(), STEPS * 10, "each call has its end");
    assert!(
        !outputs.iter().any(|output| output.contains("secret-name")),
        "names outside were listed"
    );
    let done = |text: &str| outputs.iter().filter(|output| output.contains(text)).count();
    assert!(
        done("plain") > 0 && done("created") > 0,
        "some calls met the real directory: {outputs:?}"
    );
    Ok(())
}
