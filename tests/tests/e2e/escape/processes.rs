//! What a command leaves running, however it hides, is gone when the call is over: by its end, by an interrupt, by its time
//! limit, by the daemon's end in order, and by the daemon's death; with the sandbox and without it.

use super::bash;
use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon, profile};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::process::{self, Process};
use tests::socket::is;

/// Nobody else sleeps so long.
const MARK: &str = "sleep 98765";

/// Starts processes that leave their group, their session and their parent, ignore polite signals, and forked twice.
const FLEE: &str = "(setsid sleep 98765 &)\n\
    (nohup sleep 98765 >/dev/null 2>&1 &)\n\
    sleep 98765 & disown\n\
    setsid -f sh -c 'trap \"\" TERM HUP INT QUIT; (sleep 98765; true) & sleep 98765; true'\n\
    ( ( trap '' TERM HUP INT; exec 0<&- 1>&- 2>&-; cd /; sleep 98765; true ) & ) &\n\
    until [ \"$(ls -d /proc/[0-9]*/ | while read -r p; do tr '\\0' ' ' <\"$p/cmdline\" 2>/dev/null; echo; done | grep -c '^sleep 98765')\" -ge 6 ]; do :; done\n\
    echo started\n";

/// How a call comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Itself,
    Interrupt,
    TimeLimit,
    Stop,
    Death,
}

const WAYS: [Way; 5] = [Way::Itself, Way::Interrupt, Way::TimeLimit, Way::Stop, Way::Death];

fn sleepers(daemon: &TestDaemon) -> anyhow::Result<Vec<Process>> {
    let mut below = process::descendants(daemon.pid()?);
    below.retain(|process| process.command.starts_with(MARK));
    Ok(below)
}

async fn goes(daemon: &TestDaemon, way: Way) -> anyhow::Result<()> {
    let session = daemon.session("all").await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    daemon.send(&session, &format!("{way:?}")).await?;
    // The gate of a call that would end by itself: it waits for this file.
    let output = |frame: &Value| {
        is(frame, "delta") && frame["stream"] == "output" && frame["text"].to_string().contains("started")
    };
    watcher.until("output", output).await?;
    // One look may miss a process whose parent ends at that moment.
    let mut before = sleepers(daemon)?;
    while before.len() < 6 {
        tokio::task::yield_now().await;
        before = sleepers(daemon)?;
    }
    let pid = daemon.pid()?;
    match way {
        Way::Itself => std::fs::write(daemon.home.project().join("go"), "")?,
        Way::Interrupt => drop(
            daemon
                .controller()
                .await?
                .call("turn.interrupt", json!({"session": session}))
                .await?,
        ),
        Way::TimeLimit => {}
        Way::Stop => drop(
            daemon
                .controller()
                .await?
                .call("daemon.stop", json!({"drain_ms": 100}))
                .await?,
        ),
        Way::Death => drop(daemon.kill9().await?),
    }
    match way {
        Way::Stop | Way::Death => process::gone(pid).await?,
        _ => drop(watcher.until("the end", |frame| is(frame, "tool.completed")).await?),
    }
    // When the daemon is gone its guards need a moment; otherwise they have waited for the last process before they spoke.
    for sleeper in &before {
        if matches!(way, Way::Stop | Way::Death) {
            process::gone(sleeper.pid).await?;
        }
        let still = process::find(sleeper.pid).is_some_and(|now| now.began == sleeper.began);
        anyhow::ensure!(!still, "{way:?}: {sleeper:?} lives on");
    }
    match way {
        Way::Stop | Way::Death => daemon.start().await,
        _ => daemon.turn_end(&session, 1).await.map(drop),
    }
}

fn script() -> Script {
    Script::by(|seen| {
        let limit = if seen.last_text() == "TimeLimit" { 4_000 } else { 60_000 };
        let wait = if seen.last_text() == "Itself" {
            "until [ -e go ]; do :; done; rm go"
        } else {
            "sleep 98765"
        };
        match seen.step() {
            0 => Reply::tool("bash", json!({"command": format!("{FLEE}{wait}"), "timeout_ms": limit})),
            _ => Reply::text("done"),
        }
    })
}

#[tokio::test]
async fn whoever_flees_inside_a_sandbox_is_gone_by_every_way_a_call_can_end() -> anyhow::Result<()> {
    let server = ModelServer::start(script())?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    for way in WAYS {
        goes(&daemon, way).await?;
    }
    Ok(())
}

#[tokio::test]
async fn whoever_flees_without_a_sandbox_is_gone_by_every_way_a_call_can_end() -> anyhow::Result<()> {
    let server = ModelServer::start(script())?;
    let config = format!("{}[sandbox]\nmode = \"off\"\n", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    for way in WAYS {
        goes(&daemon, way).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_child_that_waits_for_the_end_of_its_turn_never_gets_to_speak() -> anyhow::Result<()> {
    // It would answer the approval of the next turn, were it still there.
    let ctl = tests::bins::bins()?.agentctl();
    let flee = format!(
        "setsid -f sh -c 'until [ -e asked ]; do :; done; {} approve; touch answered'",
        ctl.display()
    );
    let script = Script::by(move |seen| match (seen.last_text(), seen.step()) {
        ("flee", 0) => bash(&flee),
        ("ask", 0) => Reply::tool("write_file", json!({"path": "made", "content": "x"})),
        _ => Reply::text("done"),
    });
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let fleeing = daemon.session("all").await?;
    daemon.send(&fleeing, "flee").await?;
    daemon.turn_end(&fleeing, 1).await?;
    let left = process::descendants(daemon.pid()?);
    assert!(left.is_empty(), "{left:?}");
    let asking = daemon.session("ask").await?;
    daemon.send(&asking, "ask").await?;
    let approval = daemon.approval(&asking).await?;
    std::fs::write(daemon.home.project().join("asked"), "")?;
    daemon.answer(&approval, "deny").await?;
    daemon.turn_end(&asking, 1).await?;
    let project = daemon.home.project();
    assert!(!project.join("answered").exists() && !project.join("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_command_in_a_sandbox_is_asked_to_end_first_and_its_own_signal_is_named() -> anyhow::Result<()> {
    let polite = "trap 'echo polite; exit 3' TERM; echo started; sleep 98765 & wait";
    let script = Script::by_step([
        Reply::tool("bash", json!({"command": polite, "timeout_ms": 1500})),
        bash("kill -SEGV $$"),
        bash("exit 42"),
        bash("sh -c 'kill -9 $$'; echo survived"),
        Reply::text("done"),
    ]);
    let server = ModelServer::start(script)?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = super::turn(&daemon, "all").await?;
    let (outcomes, outputs) = (super::outcomes(&daemon, &session)?, super::outputs(&daemon, &session)?);
    assert_eq!(outcomes, ["timed_out", "error", "error", "ok"], "{outputs:?}");
    for (output, words) in outputs.iter().zip(["polite", "SIGSEGV", "exit code 42", "survived"]) {
        assert!(output.contains(words), "{output}");
    }
    Ok(())
}
