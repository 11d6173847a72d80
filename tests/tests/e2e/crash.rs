//! The crash sweep: the real daemon is killed at random moments of a turn of 20 tools. No call runs twice, what was cut off is
//! reported as such, nothing outlives the daemon, and every turn reaches its end.

use anyhow::Context;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tests::daemon::TestDaemon;
use tests::log::Logged;
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::process;
use tests::socket::is;
use tokio::time::timeout_at;

const CALLS: usize = 20;

/// Kills in each sweep; `AGENTD_CRASH_ROUNDS` asks for another number.
const ROUNDS: usize = 100;

/// Kills that must have hit a running tool, of [`ROUNDS`].
const HITS: usize = 20;

/// Random numbers from a seed that the test prints, so that a failure can be had again.
struct Random(u64);

impl Random {
    fn new() -> anyhow::Result<Self> {
        let fresh = uuid::Uuid::new_v4().as_u64_pair().0;
        let seed = std::env::var("AGENTD_CRASH_SEED")
            .ok()
            .map(|seed| seed.parse())
            .transpose()?
            .unwrap_or(fresh);
        eprintln!("AGENTD_CRASH_SEED={seed}");
        Ok(Self(seed))
    }

    /// A number below `bound`; splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

fn rounds() -> usize {
    std::env::var("AGENTD_CRASH_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(ROUNDS)
}

/// The turn: each call writes its number down, then is at work for a moment.
fn script() -> Script {
    Script::by(|seen| {
        let turn = seen.last_text().to_owned();
        match seen.step() {
            step if step < CALLS => {
                let command = format!("echo {step} >> marks-{turn}; sleep 0.01 # call-of-{turn}");
                Reply::tool("bash", json!({ "command": command }))
            }
            _ => Reply::text("all done"),
        }
    })
}

/// Answers whatever asks until the turn ends. Lives as long as the daemon does.
async fn answer_until_the_end(daemon: &TestDaemon, session: &str) -> anyhow::Result<()> {
    let mut watcher = daemon.observer().await?;
    let mut hand = daemon.controller().await?;
    watcher.attach(session, Some(0)).await?;
    let mut caught_up = false;
    let mut asked: Vec<(Value, Value)> = Vec::new();
    while let Some(frame) = watcher.frame().await? {
        let data = &frame["data"];
        if is(&frame, "approval.requested") {
            asked.push((data["approval"].clone(), data["digest"].clone()));
        } else if is(&frame, "approval.resolved") {
            asked.retain(|(id, _)| *id != data["approval"]);
        } else if is(&frame, "turn.completed") {
            return Ok(());
        }
        caught_up |= is(&frame, "snapshot");
        if caught_up {
            for (id, digest) in asked.drain(..) {
                hand.request(
                    "approval.answer",
                    json!({"id": id, "digest": digest, "decision": "once"}),
                )
                .await?;
            }
        }
    }
    anyhow::bail!("the daemon left")
}

/// Runs one turn, killed `after` its start if it lasts that long; its session.
async fn round(daemon: &TestDaemon, mode: &str, turn: &str, after: Duration) -> anyhow::Result<String> {
    let session = daemon.session(mode).await?;
    let start = Instant::now();
    daemon.send(&session, turn).await?;
    if timeout_at((start + after).into(), answer_until_the_end(daemon, &session))
        .await
        .is_ok()
    {
        return Ok(session);
    }
    let below = daemon.kill9().await?;
    daemon.start().await?;
    let mut watcher = daemon.observer().await?;
    watcher.attach(&session, Some(0)).await?;
    watcher
        .until("the turn goes on", |frame| {
            is(frame, "turn.resumed") || is(frame, "turn.completed")
        })
        .await?;
    let left: Vec<_> = below
        .into_iter()
        .filter(|old| process::find(old.pid).as_ref() == Some(old))
        .collect();
    assert!(left.is_empty(), "{turn}: the turn went on while these lived: {left:?}");
    answer_until_the_end(daemon, &session).await?;
    Ok(session)
}

/// Holds a turn's log against what its calls wrote down.
fn check(daemon: &TestDaemon, session: &str, turn: &str) -> anyhow::Result<bool> {
    let log = daemon.log(session)?;
    let marks = std::fs::read_to_string(daemon.home.project().join(format!("marks-{turn}"))).unwrap_or_default();
    let mut written: HashMap<usize, usize> = HashMap::new();
    for mark in marks.lines() {
        *written.entry(mark.parse()?).or_default() += 1;
    }
    let results: HashMap<&str, &Logged> = log
        .iter()
        .filter(|event| event.kind == "tool.completed")
        .map(|event| (event.text("call"), event))
        .collect();
    let mut hit = false;
    for (at, call) in log.iter().filter(|event| event.kind == "tool.requested").enumerate() {
        let result = results.get(call.text("call"));
        let outcome = result.map_or("none", |result| result.text("outcome"));
        let output = result.map_or("", |result| result.text("output"));
        hit |= outcome == "lost";
        match written.get(&at).copied().unwrap_or_default() {
            0 => assert!(
                outcome == "lost" && output.contains("outcome unknown"),
                "{turn}: call {at} wrote nothing, {outcome}: {output}"
            ),
            1 => assert!(matches!(outcome, "ok" | "lost"), "{turn}: call {at} ended as {outcome}"),
            times => anyhow::bail!("{turn}: call {at} ran {times} times"),
        }
    }
    let ends = tests::log::count(&log, "turn.completed");
    assert_eq!(ends, 1, "{turn}: {ends} terminal events");
    let seqs: Vec<i64> = log.iter().map(|event| event.seq).collect();
    assert!(
        seqs.iter().zip(1..).all(|(seq, wanted)| *seq == wanted),
        "{turn}: the log has a gap: {seqs:?}"
    );
    Ok(hit)
}

async fn sweep(mode: &str) -> anyhow::Result<()> {
    let server = ModelServer::start(script())?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let mut random = Random::new()?;
    let start = Instant::now();
    let whole = round(&daemon, mode, "whole", tests::PATIENCE).await?;
    let length = start.elapsed();
    assert!(!check(&daemon, &whole, "whole")?, "nothing is lost without a crash");
    let (mut hits, rounds) = (0, rounds());
    for number in 0..rounds {
        let after = Duration::from_micros(random.below(u64::try_from(length.as_micros())?));
        let turn = format!("{mode}-{number}");
        let session = round(&daemon, mode, &turn, after)
            .await
            .with_context(|| format!("{turn}, killed after {after:?}"))?;
        hits += usize::from(check(&daemon, &session, &turn)?);
    }
    eprintln!("{mode}: a turn of {length:?}, {rounds} kills, {hits} hit a running tool");
    assert!(
        hits * ROUNDS >= HITS * rounds,
        "only {hits} of {rounds} kills hit a running tool"
    );
    Ok(())
}

#[tokio::test]
async fn killed_at_any_moment_no_call_runs_twice_and_the_turn_ends() -> anyhow::Result<()> {
    sweep("all").await
}

#[tokio::test]
async fn killed_at_any_moment_with_approvals_no_call_runs_twice_and_the_turn_ends() -> anyhow::Result<()> {
    sweep("ask").await
}
