//! Two terminals on one session, in tmux, as people have them.

use serde_json::json;
use tests::bins::bins;
use tests::daemon::TestDaemon;
use tests::model_server::{Gate, ModelServer, Reply, Script, Wire};
use tests::skip;
use tests::terminal::Terminals;

fn attach() -> anyhow::Result<String> {
    Ok(format!("{} attach last", bins()?.agentctl().display()))
}

/// How often `line` stands alone in a line of `text`.
fn times(text: &str, line: &str) -> usize {
    text.lines()
        .filter(|shown| shown.split_whitespace().collect::<Vec<_>>().join(" ") == line)
        .count()
}

#[tokio::test]
async fn two_terminals_show_the_same_and_an_answer_in_one_leaves_the_other() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::text("I will make it.").call("bash", json!({"command": "touch made"})),
        Reply::text("It is made."),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.session("ask").await?;
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        skip!("tmux is not installed")
    };
    let mut left = terminals.open(&attach()?, 80, 24).await?;
    let mut right = terminals.open(&attach()?, 80, 24).await?;
    for terminal in [&mut left, &mut right] {
        terminals
            .until(terminal, "the first screen", |text| text.contains("/help"))
            .await?;
    }
    daemon
        .ctl(&["send", "-s", "last", "--no-wait", "make it"])
        .await?
        .ok()?;
    for terminal in [&mut left, &mut right] {
        let text = terminals
            .until(terminal, "the approval", |text| text.contains("touch made"))
            .await?;
        assert!(text.contains("make it") && text.contains("I will make it."), "{text}");
    }
    terminals
        .until(&mut left, "the keys", |text| text.contains("once"))
        .await?;
    // A key that comes as the question appears belongs to the draft; Ctrl-Y says that the answer is meant.
    terminals.press(&left, &["C-y"]).await?;
    terminals.press(&left, &["y"]).await?;
    for terminal in [&mut left, &mut right] {
        let text = terminals
            .until(terminal, "the answer", |text| text.contains("It is made."))
            .await?;
        assert_eq!(times(&text, "It is made."), 1, "{text}");
    }
    let text = terminals.capture(&right).await?;
    assert!(
        text.contains("agent-tui") || text.contains("tui"),
        "it says who answered: {text}"
    );

    // One terminal dies; attached again, nothing is missing.
    terminals.close(&right).await?;
    daemon.ctl(&["send", "-s", "last", "--mode", "none", "again"]).await?;
    let mut again = terminals.open(&attach()?, 80, 24).await?;
    let text = terminals
        .until(&mut again, "the whole transcript", |text| {
            text.matches("It is made.").count() == 2
        })
        .await?;
    assert!(text.contains("> make it") && text.contains("> again"), "{text}");
    Ok(())
}

#[tokio::test]
async fn every_line_of_a_long_reply_is_once_in_the_scrollback_at_both_widths() -> anyhow::Result<()> {
    let lines: Vec<String> = (1..=200).map(|line| format!("line {line} of many")).collect();
    let reply = lines.join("\n");
    let server = ModelServer::start(Script::by(move |_| Reply::text(reply.clone()).deltas(400)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.session("ask").await?;
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        skip!("tmux is not installed")
    };
    let mut wide = terminals.open(&attach()?, 80, 24).await?;
    let mut narrow = terminals.open(&attach()?, 40, 24).await?;
    for terminal in [&mut wide, &mut narrow] {
        terminals
            .until(terminal, "the first screen", |text| text.contains("/help"))
            .await?;
    }
    daemon.ctl(&["send", "-s", "last", "a long one"]).await?.ok()?;
    for terminal in [&mut wide, &mut narrow] {
        let text = terminals
            .until(terminal, "the last line", |text| text.contains("line 200 of many"))
            .await?;
        for line in &lines {
            assert_eq!(times(&text, line), 1, "{line}, in:\n{text}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_resize_in_mid_stream_leaves_no_stale_line() -> anyhow::Result<()> {
    let gate = Gate::new();
    let held = gate.clone();
    let lines: Vec<String> = (1..=60).map(|line| format!("row {line} here")).collect();
    let reply = lines.join("\n");
    let server = ModelServer::start(Script::by(move |_| Reply::text(reply.clone()).deltas(60).gate(&held)))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.session("ask").await?;
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        skip!("tmux is not installed")
    };
    let mut terminal = terminals.open(&attach()?, 80, 24).await?;
    terminals
        .until(&mut terminal, "the first screen", |text| text.contains("/help"))
        .await?;
    daemon.ctl(&["send", "-s", "last", "--no-wait", "go"]).await?.ok()?;
    for (row, columns, rows) in [(10, 60, 24), (20, 40, 24), (30, 100, 20), (40, 40, 30), (50, 80, 24)] {
        gate.release(10);
        terminals
            .until(&mut terminal, &format!("row {}", row - 2), |text| {
                text.contains(&format!("row {} here", row - 2))
            })
            .await?;
        terminals.resize(&terminal, columns, rows).await?;
    }
    gate.open();
    terminals
        .until(&mut terminal, "the last row", |text| text.contains("row 60 here"))
        .await?;
    let text = terminals
        .until(&mut terminal, "an idle screen", |text| {
            text.lines().filter(|line| line.contains("row 60")).count() == 1
        })
        .await?;
    for line in &lines {
        assert_eq!(times(&text, line), 1, "{line}, in:\n{text}");
    }
    Ok(())
}

#[tokio::test]
async fn a_terminal_that_is_attached_outlives_a_killed_daemon() -> anyhow::Result<()> {
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": "touch made"})),
        Reply::text("It is made."),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    daemon.session("ask").await?;
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        skip!("tmux is not installed")
    };
    let mut terminal = terminals.open(&attach()?, 80, 24).await?;
    terminals
        .until(&mut terminal, "the first screen", |text| text.contains("/help"))
        .await?;
    daemon
        .ctl(&["send", "-s", "last", "--no-wait", "make it"])
        .await?
        .ok()?;
    terminals
        .until(&mut terminal, "the approval", |text| text.contains("touch made"))
        .await?;
    daemon.kill9().await?;
    daemon.ctl(&["approve"]).await?.ok()?;
    let text = terminals
        .until(&mut terminal, "the rest of the turn", |text| {
            text.contains("It is made.")
        })
        .await?;
    assert_eq!(times(&text, "It is made."), 1, "{text}");
    Ok(())
}

#[tokio::test]
async fn directories_are_added_at_the_start_and_while_one_types() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by(|_| Reply::text("fine")))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let Some(terminals) = Terminals::start(&daemon.home).await? else {
        skip!("tmux is not installed")
    };
    let dirs = ["lib", "more"].map(|name| daemon.home.path().join(name));
    dirs.iter().try_for_each(std::fs::create_dir)?;
    let command = format!("{} --add-dir ../lib", bins()?.agent_tui().display());
    let mut terminal = terminals.open(&command, 80, 24).await?;
    terminals
        .until(&mut terminal, "the directory of the start", |text| {
            text.contains("/lib, too")
        })
        .await?;
    for (typed, told) in [
        ("/add-dir ../more", "/more, too"),
        ("/add-dir ../more", "works in already"),
        ("/add-dir ..", "hint: name a directory below it"),
    ] {
        terminals.write(&terminal, typed).await?;
        terminals.press(&terminal, &["Enter"]).await?;
        terminals.until(&mut terminal, told, |text| text.contains(told)).await?;
    }
    let listed = daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?;
    assert_eq!(listed[0]["added_roots"], json!(dirs));

    // On the session that is there, and nowhere but where it is taken.
    std::fs::create_dir(daemon.home.path().join("third"))?;
    let again = format!("{} --add-dir ../third", bins()?.agentctl().display());
    let mut again = terminals.open(&again, 80, 24).await?;
    terminals
        .until(&mut again, "the third directory", |text| text.contains("/third, too"))
        .await?;
    let listed = daemon.ctl(&["ls", "--json"]).await?.ok()?.json()?;
    let added = listed[0]["added_roots"].as_array().map(Vec::len);
    assert_eq!((listed.as_array().map(Vec::len), added), (Some(1), Some(3)));
    let refused = daemon.ctl(&["--add-dir", "../third", "ls"]).await?;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    Ok(())
}
