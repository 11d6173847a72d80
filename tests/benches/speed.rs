//! Speed, as people feel it: `agentctl` through a warm daemon against curl and sh doing the same requests and spawns with the
//! same scripted model server in the same run. Prints ratios; with `AGENTD_BENCH_ASSERT=1` a ratio over its limit is an error.
#![expect(clippy::print_stdout, reason = "a benchmark's result goes to stdout")]

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tests::bins::bins;
use tests::daemon::{Home, TestDaemon, run};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::raw_server::{RawServer, ends_when_told};
use tests::socket::is;

/// Runs of each measurement; the median counts.
const RUNS: usize = 15;

/// Wall time of a fragmented reply, over curl's.
const TEXT_RATIO: f64 = 2.0;
/// Wall time of a turn of 20 shell calls, over a loop of the same requests and spawns.
const CALLS_RATIO: f64 = 2.0;
/// Wall time of a reply in 5,000 fragments, over curl's.
const DELTAS_RATIO: f64 = 3.0;
/// Resident memory of an idle daemon, in MB.
const RESIDENT_MB: f64 = 25.0;
/// Wall time of `agentctl ls`, in ms.
const LS_MS: f64 = 15.0;
/// From the provider's last byte to the last frame at an attached client, in ms.
const LAST_FRAME_MS: f64 = 2.0;

const CALLS: usize = 20;

fn script() -> Script {
    Script::by(|seen| match (seen.last_text(), seen.step()) {
        ("20 deltas", _) => Reply::text("word ".repeat(20)).deltas(20),
        ("5000 deltas", _) => Reply::text("word ".repeat(5000)).deltas(5000),
        ("20 calls", step) if step < CALLS => Reply::tool("bash", json!({"command": "true"})),
        _ => Reply::text("done"),
    })
}

/// Median wall time of a step.
async fn median<F: Future<Output = anyhow::Result<()>>>(step: impl Fn() -> F) -> anyhow::Result<Duration> {
    step().await?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        step().await?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times.get(RUNS / 2).copied().context("a measurement")
}

/// What the daemon sends for `text`, request by request.
async fn recorded(server: &ModelServer, daemon: &TestDaemon, text: &str) -> anyhow::Result<Vec<String>> {
    let before = server.seen().len();
    send(daemon, text).await?;
    let mut bodies = Vec::new();
    for (at, seen) in server.seen().iter().skip(before).enumerate() {
        let file = daemon.home.path().join(format!("{}-{at}.json", text.replace(' ', "-")));
        std::fs::write(&file, seen.body.to_string())?;
        bodies.push(format!("@{}", file.display()));
    }
    Ok(bodies)
}

async fn send(daemon: &TestDaemon, text: &str) -> anyhow::Result<()> {
    daemon.ctl(&["send", "--mode", "all", text]).await?.ok().map(drop)
}

async fn curl(home: &Home, url: &str, body: &str) -> anyhow::Result<()> {
    let mut curl = home.command("curl");
    curl.args([
        "-sSN",
        "--fail",
        "-H",
        "content-type: application/json",
        "-H",
        "anthropic-version: 2023-06-01",
    ]);
    curl.args(["-H", "x-api-key: a-test-key", "--data-binary", body, url]);
    run(curl, "curl").await?.ok().map(drop)
}

async fn shell(home: &Home) -> anyhow::Result<()> {
    let mut bash = home.command("bash");
    bash.args(["--norc", "--noprofile", "-c", "true"]);
    run(bash, "bash").await?.ok().map(drop)
}

/// Replies that wait for their end: one turn runs at a time.
const AT_ONCE: usize = 1;

/// Median time from the last piece a provider sends to the turn's end at an attached client.
async fn last_frame() -> anyhow::Result<Duration> {
    let ((release, gate), (noted, ends)) = (mpsc::sync_channel(AT_ONCE), mpsc::sync_channel(AT_ONCE));
    let gate = Arc::new(Mutex::new(gate));
    let acts = (0..RUNS).map(|_| ends_when_told(Arc::clone(&gate), noted.clone()));
    let server = RawServer::start(acts.collect())?;
    let config = format!(
        "[models.raw]\nwire = \"openai-chat\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\nauth = \"none\"\ncontext_tokens = 200000\n",
        server.origin()
    );
    let daemon = Home::new()?.config(&config)?.start().await?;
    let session = daemon.session("ask").await?;
    let mut client = daemon.observer().await?;
    client.attach(&session, None).await?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        daemon.send(&session, "go").await?;
        client.until("the first words", |frame| is(frame, "delta")).await?;
        release.send(())?;
        client.until("the end", |frame| is(frame, "turn.completed")).await?;
        times.push(ends.recv()?.elapsed());
    }
    times.sort_unstable();
    times.get(RUNS / 2).copied().context("a measurement")
}

/// Prints a measurement against its limit; whether it holds.
fn judge(what: &str, shown: &str, value: f64, limit: f64) -> bool {
    let verdict = if value <= limit { "ok" } else { "OVER" };
    println!("{what:<46} {value:>7.2}  limit {limit:>5.1}  {verdict:<4}  {shown}");
    value <= limit
}

fn ratio(own: Duration, floor: Duration) -> (f64, String) {
    (
        own.as_secs_f64() / floor.as_secs_f64(),
        format!("{own:.1?} over {floor:.1?}"),
    )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let server = ModelServer::start(script())?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let url = format!("http://{}/v1/messages", server.address());
    let mut held = true;

    daemon.ctl(&["ls"]).await?.ok()?;
    #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
    let resident = tests::process::resident_kib(daemon.pid()?)? as f64 / 1024.0;
    held &= judge(
        "idle daemon, resident MB",
        "after the first command",
        resident,
        RESIDENT_MB,
    );

    for (text, limit) in [("20 deltas", TEXT_RATIO), ("5000 deltas", DELTAS_RATIO)] {
        let bodies = recorded(&server, &daemon, text).await?;
        let body = bodies.first().context("a request")?;
        let floor = median(|| curl(&daemon.home, &url, body)).await?;
        let own = median(|| send(&daemon, text)).await?;
        let (value, shown) = ratio(own, floor);
        held &= judge(&format!("a reply of {text}, over curl"), &shown, value, limit);
    }

    let bodies = recorded(&server, &daemon, "20 calls").await?;
    ensure!(bodies.len() == CALLS + 1, "{} requests", bodies.len());
    let (home, bodies, url) = (&daemon.home, &bodies, &url);
    let floor = median(|| async move {
        for (at, body) in bodies.iter().enumerate() {
            curl(home, url, body).await?;
            if at < CALLS {
                shell(home).await?;
            }
        }
        Ok(())
    });
    let floor = floor.await?;
    let own = median(|| send(&daemon, "20 calls")).await?;
    let (value, shown) = ratio(own, floor);
    held &= judge(
        "a turn of 20 shell calls, over curl and bash",
        &shown,
        value,
        CALLS_RATIO,
    );

    let frame = last_frame().await?;
    held &= judge(
        "last byte of a reply to last frame, ms",
        "",
        frame.as_secs_f64() * 1000.0,
        LAST_FRAME_MS,
    );

    let ls = median(|| async { daemon.ctl(&["ls"]).await?.ok().map(drop) }).await?;
    held &= judge("agentctl ls, ms", "", ls.as_secs_f64() * 1000.0, LS_MS);

    let status: Value = daemon.ctl(&["daemon", "status", "--json"]).await?.ok()?.json()?;
    println!(
        "programs from {}, daemon {}",
        bins()?.dir().display(),
        status["version"]
    );
    ensure!(
        held || std::env::var_os("AGENTD_BENCH_ASSERT").is_none(),
        "a limit does not hold"
    );
    Ok(())
}
