//! Outputs of tools for people: all of a long one can be read after the live stream, sizes are those of the whole, and what came
//! before a command was stopped is shown.

use serde_json::{Value, json};
use tests::daemon::{TestDaemon, ended};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::socket::is;

fn numbers() -> String {
    (1..=20_000).map(|number| format!("{number}\n")).collect()
}

fn bash(command: &str) -> Reply {
    Reply::tool("bash", json!({"command": command}))
}

/// A daemon with one session, whose one turn makes these calls, each in a step of its own.
async fn after(calls: Vec<Reply>) -> anyhow::Result<(ModelServer, TestDaemon, String)> {
    let script = calls.into_iter().chain([Reply::text("Done.")]);
    let server = ModelServer::start(Script::sequence(script))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    Ok((server, daemon, session))
}

/// The results of the session's calls.
fn results(daemon: &TestDaemon, session: &str) -> anyhow::Result<Vec<Value>> {
    let log = daemon.log(session)?;
    let completed = log.into_iter().filter(|event| event.kind == "tool.completed");
    Ok(completed.map(|event| event.data).collect())
}

#[tokio::test]
async fn a_long_output_is_read_whole_through_its_session_alone_in_pages_of_any_size() -> anyhow::Result<()> {
    let (_server, daemon, session) = after(vec![bash("seq 1 20000")]).await?;
    let blob = results(&daemon, &session)?[0]["blob"].clone();
    let mut observer = daemon.observer().await?;
    let (mut text, mut offset, mut pages) = (String::new(), json!(0), 0);
    while !offset.is_null() {
        let params = json!({"session": session, "hash": blob["hash"], "offset": offset, "limit": 10_000});
        let page = observer.call("blob.get", params).await?;
        assert_eq!(page["bytes"], blob["bytes"]);
        text.push_str(page["text"].as_str().unwrap_or_default());
        offset = page["next"].clone();
        pages += 1;
    }
    assert_eq!((text == numbers(), pages), (true, 11));

    let other = daemon.session("all").await?;
    for (session, hash, kind) in [
        (&other, blob["hash"].clone(), "blob_not_found"),
        (&session, json!("0".repeat(64)), "blob_not_found"),
        (&session, json!("../../etc/passwd"), "invalid_params"),
        (&"nobody".to_owned(), blob["hash"].clone(), "session_not_found"),
    ] {
        let params = json!({"session": session, "hash": hash});
        let error = observer.refused("blob.get", params).await?;
        assert_eq!(error["data"]["kind"], kind, "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_page_ends_between_two_characters() -> anyhow::Result<()> {
    let (_server, daemon, session) = after(vec![bash("for i in {1..20000}; do printf 'a€'; done")]).await?;
    let hash = results(&daemon, &session)?[0]["blob"]["hash"].clone();
    let mut observer = daemon.observer().await?;
    let params = json!({"session": session, "hash": hash, "limit": 6});
    let page = observer.call("blob.get", params).await?;
    assert_eq!((&page["text"], &page["next"]), (&json!("a€a"), &json!(5)));
    let params = json!({"session": session, "hash": hash, "offset": 5, "limit": 0});
    let page = observer.call("blob.get", params).await?;
    assert_eq!((&page["text"], &page["next"]), (&json!("€a"), &json!(9)));
    Ok(())
}

#[tokio::test]
async fn agentctl_output_prints_all_of_a_call_and_nothing_else() -> anyhow::Result<()> {
    let (_server, daemon, session) = after(vec![bash("echo one"), bash("seq 1 20000")]).await?;
    let calls = results(&daemon, &session)?;
    let first = calls[0]["call"].as_str().unwrap_or_default();
    assert_eq!(daemon.ctl(&["output", first]).await?.ok()?.stdout, "one\n");
    let whole = daemon.ctl(&["output", "last", "-s", &session]).await?.ok()?;
    assert!(whole.stdout == numbers() && whole.stderr.is_empty(), "{}", whole.stderr);
    let number = calls[1]["call"].as_str().unwrap_or_default().trim_start_matches('c');
    assert!(daemon.ctl(&["output", number]).await?.ok()?.stdout == numbers());
    let unknown = daemon.ctl(&["output", "c9999"]).await?;
    assert_eq!(unknown.code, Some(8), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("there is no call c9999"), "{}", unknown.stderr);
    Ok(())
}

#[tokio::test]
async fn the_size_in_a_transcript_is_that_of_all_that_was_put_out() -> anyhow::Result<()> {
    let calls = vec![
        bash("seq 1 20000"),
        bash("yes | head -c 3000000"),
        bash("true"),
        bash("seq 1 3"),
        Reply::tool("read_file", json!({"path": "three.txt", "offset": 1, "limit": 3})),
    ];
    let server = ModelServer::start(Script::sequence(calls.into_iter().chain([Reply::text("Done.")])))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let line = "x".repeat(50);
    let text = format!("{line}\n{line}\n{line}\n{line}\n");
    std::fs::write(daemon.home.project().join("three.txt"), text)?;
    let session = daemon.session("all").await?;
    daemon.send(&session, "go").await?;
    daemon.turn_end(&session, 1).await?;
    let shown = daemon.ctl(&["show", &session]).await?.ok()?.stdout;
    for expected in [
        "└ 20000 lines, 106.3 KiB · agentctl output ",
        "└ 1500000 lines, 2.9 MiB, 1.0 MiB of it kept · agentctl output ",
        "└ no output\n",
        "└ 3 lines, 6 B · agentctl output ",
        "└ 3 lines, 174 B\n",
    ] {
        assert!(shown.contains(expected), "no {expected:?} in {shown}");
    }
    let cut = results(&daemon, &session)?[1]["call"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let cut = daemon.ctl(&["output", &cut]).await?.ok()?;
    assert!(cut.stdout.len() > 1024 * 1024 && cut.stdout.contains(" bytes cut here ...]"));
    assert_eq!(
        cut.stderr,
        "note: 1951424 bytes were cut from it before it was stored\n"
    );
    Ok(())
}

#[tokio::test]
async fn show_tells_arguments_and_results_when_asked_and_whole_ones_when_asked_twice() -> anyhow::Result<()> {
    let call = Reply::tool("bash", json!({"command": "seq 1 20000", "timeout_ms": 54321}));
    let (_server, daemon, session) = after(vec![call]).await?;
    let show = async |flags: &[&str]| -> anyhow::Result<String> {
        Ok(daemon.ctl(&[&["show", &session], flags].concat()).await?.ok()?.stdout)
    };
    let (brief, full, whole) = (show(&[]).await?, show(&["-v"]).await?, show(&["-vv"]).await?);
    assert!(!brief.contains("timeout_ms") && !brief.contains("    1\n"), "{brief}");
    assert!(
        full.contains("    timeout_ms: 54321\n") && full.contains("    1\n    2\n"),
        "{full}"
    );
    assert!(!full.contains("    10000\n") && full.contains("    the whole: agentctl output c"));
    assert!(whole.contains("    timeout_ms: 54321\n") && whole.contains("    9999\n    10000\n    10001\n"));
    assert!(whole.contains("    20000\n    [exit code 0, "));
    assert!(!whole.contains("bytes cut here") && !whole.contains("the whole:"));
    Ok(())
}

#[tokio::test]
async fn what_an_interrupted_command_had_put_out_is_shown() -> anyhow::Result<()> {
    let script = Script::by_step([bash("echo so far; sleep 1000"), Reply::text("Done.")]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("all").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    let child = daemon.begin_ctl(&["send", "-s", &session, "go"])?;
    watcher
        .until("its output", |frame| is(frame, "delta") && frame["stream"] == "output")
        .await?;
    let running = daemon.ctl(&["output", "last"]).await?;
    assert!(running.stderr.contains("has not ended yet"), "{}", running.stderr);
    daemon.ctl(&["interrupt", &session]).await?.ok()?;
    assert_eq!(ended(child, "the send").await?.code, Some(5));
    let shown = daemon.ctl(&["show", &session]).await?.ok()?.stdout;
    assert!(
        shown.contains("  └ stopped after ") && shown.contains(" s: so far\n"),
        "{shown}"
    );
    assert_eq!(daemon.ctl(&["output", "last"]).await?.ok()?.stdout, "so far\n");
    Ok(())
}

#[tokio::test]
async fn the_output_of_a_job_is_read_by_the_job_or_its_call() -> anyhow::Result<()> {
    let call = Reply::tool(
        "bash",
        json!({"command": "until [ -e go ]; do sleep 0.01; done; seq 1 20000", "wait": false}),
    );
    let (_server, daemon, session) = after(vec![call]).await?;
    let job = results(&daemon, &session)?[0]["job"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let running = daemon.ctl(&["output", &job]).await?.ok()?;
    assert!(running.stderr.contains("still runs"), "{}", running.stderr);
    std::fs::write(daemon.home.project().join("go"), "")?;
    daemon
        .until(&session, "its end", |frame| is(frame, "job.ended"))
        .await?;
    for name in [job.as_str(), "last"] {
        assert!(daemon.ctl(&["output", name]).await?.ok()?.stdout == numbers());
    }
    let shown = daemon.ctl(&["show", &session]).await?.ok()?.stdout;
    let expected = format!("job {job} ok · 20000 lines, 106.3 KiB · agentctl output {job}");
    assert!(shown.contains(&expected), "{shown}");
    Ok(())
}
