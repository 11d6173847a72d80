//! What people do all day works inside of the sandbox: a build with cargo, an installation with npm, a commit with git; and
//! build caches can be kept apart from the person's own.

use super::{Sandbox, bash, outcomes, outputs, sandbox};
use anyhow::Context;
use std::path::Path;
use std::process::Command;
use tests::daemon::{Home, TestDaemon, profile};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::skip;

/// A daemon that runs these commands, and the session in which it did; none where there is no full sandbox.
async fn runs(home: Home, config: &str, commands: &[&str]) -> anyhow::Result<Option<(TestDaemon, String)>> {
    let replies = commands
        .iter()
        .map(|command| bash(command))
        .chain([Reply::text("done")]);
    let server = ModelServer::start(Script::by_step(replies))?;
    let daemon = home
        .config(&format!("{}{config}", profile(&server, Wire::Messages)))?
        .start()
        .await?;
    if sandbox(&daemon).await? != Sandbox::Full {
        return Ok(None);
    }
    // Through the command line, which sends the environment that commands get.
    daemon.ctl(&["send", "--mode", "all", "go"]).await?.ok()?;
    let session = tests::log::sessions(&daemon.home.state_dir())?
        .pop()
        .context("the session")?;
    Ok(Some((daemon, session)))
}

fn all_ok(daemon: &TestDaemon, session: &str) -> anyhow::Result<()> {
    let (outcomes, outputs) = (outcomes(daemon, session)?, outputs(daemon, session)?);
    anyhow::ensure!(
        outcomes.iter().all(|outcome| outcome == "ok"),
        "{outcomes:?}: {outputs:?}"
    );
    Ok(())
}

/// A program of the person's that works here.
fn works(home: &Home, program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command
        .arg("--version")
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", path);
    command.output().is_ok_and(|done| done.status.success())
}

/// Runs a program outside of any sandbox to prepare what the session needs.
fn prepare(home: &Home, at: &Path, program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(at).env("HOME", home.path());
    command.output().is_ok_and(|done| done.status.success())
}

#[tokio::test]
async fn git_commits_inside_and_its_hooks_and_configuration_stay() -> anyhow::Result<()> {
    let home = Home::new()?;
    let project = home.project();
    if !prepare(&home, &project, "git", &["init", "-q"]) {
        skip!("git is not installed");
    }
    for (key, value) in [("user.email", "a@b"), ("user.name", "a")] {
        prepare(&home, &project, "git", &["config", key, value]);
    }
    let commands = [
        "git add . && git commit -qm first && git log --oneline",
        "git checkout -qb other && echo x > x && git add x && git commit -qm second && git stash list && git gc -q",
        "git config core.fsmonitor ./x; echo x > .git/hooks/pre-commit; mv .git .g; true",
        "git status --short",
    ];
    let Some((daemon, session)) = runs(home, "", &commands).await? else {
        skip!("no full sandbox can be made here");
    };
    all_ok(&daemon, &session)?;
    let git = daemon.home.project().join(".git");
    assert!(!git.join("hooks/pre-commit").exists());
    assert!(!std::fs::read_to_string(git.join("config"))?.contains("fsmonitor"));
    assert!(outputs(&daemon, &session)?[0].contains("first"));
    Ok(())
}

#[tokio::test]
async fn cargo_builds_inside() -> anyhow::Result<()> {
    let mut home = Home::new()?;
    // rustup finds its toolchains below the real home.
    if let Some(real) =
        std::env::var_os("RUSTUP_HOME").or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".rustup").into()))
    {
        home = home.env("RUSTUP_HOME", real.to_string_lossy());
    }
    let rustup = home.command("cargo").arg("--version").output().await;
    if !rustup.is_ok_and(|done| done.status.success()) {
        skip!("cargo does not work here");
    }
    std::fs::create_dir_all(home.project().join("src"))?;
    std::fs::write(
        home.project().join("Cargo.toml"),
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    )?;
    std::fs::write(
        home.project().join("src/main.rs"),
        "fn main() { println!(\"built inside\"); }",
    )?;
    let config = "[session]\nenv = [\"RUSTUP_HOME\"]\n";
    let Some((daemon, session)) = runs(home, config, &["cargo build -q --offline && cargo run -q --offline"]).await?
    else {
        skip!("no full sandbox can be made here");
    };
    all_ok(&daemon, &session)?;
    assert!(outputs(&daemon, &session)?[0].contains("built inside"));
    Ok(())
}

#[tokio::test]
async fn npm_installs_from_its_cache_inside() -> anyhow::Result<()> {
    let home = Home::new()?;
    let (dep, project) = (home.path().join("dep"), home.project());
    std::fs::create_dir(&dep)?;
    std::fs::write(dep.join("package.json"), r#"{"name": "dep", "version": "1.0.0"}"#)?;
    std::fs::write(dep.join("index.js"), "module.exports = 'from the cache';")?;
    std::fs::write(
        project.join("package.json"),
        r#"{"name": "x", "version": "1.0.0", "dependencies": {"dep": "file:../dep-1.0.0.tgz"}}"#,
    )?;
    let ready = works(&home, "npm")
        && prepare(&home, &dep, "npm", &["pack", "--pack-destination", "..", "--offline"])
        && prepare(&home, &project, "npm", &["install", "--package-lock-only", "--offline"]);
    if !ready {
        skip!("npm does not work here");
    }
    let Some((daemon, session)) = runs(home, "", &["npm ci --offline && node -p 'require(\"dep\")'"]).await? else {
        skip!("no full sandbox can be made here");
    };
    all_ok(&daemon, &session)?;
    assert!(outputs(&daemon, &session)?[0].contains("from the cache"));
    Ok(())
}

#[tokio::test]
async fn private_caches_leave_the_persons_own_as_they_are_and_last_from_call_to_call() -> anyhow::Result<()> {
    let Some(home) = Home::apart()? else {
        skip!("no place for a home that commands may not write");
    };
    for dir in [".cargo/registry", ".npm", ".cache/pip"] {
        std::fs::create_dir_all(home.path().join(dir))?;
        std::fs::write(home.path().join(dir).join("own"), "mine")?;
    }
    let commands = [
        "for dir in ~/.cargo/registry ~/.npm ~/.cache ~/.cache/pip; do cat $dir/own 2>/dev/null; echo x > $dir/poison; done; true",
        "mkdir -p \"$CARGO_HOME/registry\" \"$npm_config_cache\" \"$XDG_CACHE_HOME\" && echo kept > \"$CARGO_HOME/registry/x\"",
        "cat \"$CARGO_HOME/registry/x\"",
    ];
    let Some((daemon, session)) = runs(home, "[sandbox]\ncaches = \"private\"\n", &commands).await? else {
        skip!("no full sandbox can be made here");
    };
    all_ok(&daemon, &session)?;
    let outputs = outputs(&daemon, &session)?;
    assert!(outputs[0].contains("mine"), "they can be read: {outputs:?}");
    assert!(outputs[2].starts_with("kept"), "{outputs:?}");
    for dir in [".cargo/registry", ".npm", ".cache/pip", ".cache"] {
        assert!(
            !daemon.home.path().join(dir).join("poison").exists(),
            "{dir} was written"
        );
    }
    Ok(())
}
