//! Logging in, with a real OAuth server and a person with a browser: tokens come, are used, renewed, shared and ended, and only a person
//! may do it.

use anyhow::{Context, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use tests::daemon::{Home, TestDaemon, ended};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::oauth_server::{OauthServer, browse};
use tests::process;
use tests::{skip, soon};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr};

/// Two profiles of one account at `server`, both answered by `model`.
fn config(model: &ModelServer, login: impl Fn(&str) -> String) -> String {
    let profile = |name: &str| {
        format!(
            "[models.{name}]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"scripted-1\"\nauth = \"login\"\n\
             context_tokens = 200000\n{}",
            model.base_url(Wire::Chat),
            login(name)
        )
    };
    format!("default_model = \"work\"\n{}{}", profile("work"), profile("play"))
}

/// A login table whose server is nowhere.
fn nowhere(profile: &str) -> String {
    format!(
        "[models.{profile}.login]\nclient_id = \"c\"\nauthorize_url = \"http://127.0.0.1:9/a\"\ntoken_url = \"http://127.0.0.1:9/t\"\n"
    )
}

/// An `agentctl login` under way.
struct Login {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Login {
    fn begin(daemon: &TestDaemon, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut child = daemon.begin_ctl(&[&["login"], arguments].concat())?;
        let said = BufReader::new(child.stderr.take().context("its stderr")?);
        Ok(Self { child, said })
    }

    /// The next line of those that are set off from the text: the address, then the code.
    async fn shown(&mut self) -> anyhow::Result<String> {
        loop {
            let mut line = String::new();
            let count = soon("a line of `agentctl login`", self.said.read_line(&mut line)).await??;
            ensure!(count > 0, "it ended without showing where to go");
            if let Some(shown) = line.strip_prefix("  ") {
                return Ok(shown.trim().to_owned());
            }
        }
    }

    /// How it ended, and what it said after what was read.
    async fn end(mut self) -> anyhow::Result<(Option<i32>, String)> {
        let mut rest = String::new();
        soon("the end of `agentctl login`", self.said.read_to_string(&mut rest)).await??;
        Ok((ended(self.child, "agentctl login").await?.code, rest))
    }
}

async fn log_in(daemon: &TestDaemon) -> anyhow::Result<()> {
    let mut login = Login::begin(daemon, &[])?;
    let page = browse(&login.shown().await?, None).await?;
    ensure!(page.stdout.contains("agentd has the answer"), "{}", page.stdout);
    let (code, said) = login.end().await?;
    ensure!(
        code == Some(0) && said.contains("logged in for play, work"),
        "{code:?}: {said}"
    );
    Ok(())
}

/// The key that the last request came with.
fn key(model: &ModelServer) -> anyhow::Result<String> {
    model.seen().pop().and_then(|seen| seen.key).context("a key")
}

fn tokens(daemon: &TestDaemon) -> anyhow::Result<String> {
    Ok(std::fs::read_to_string(daemon.home.state_dir().join("tokens.json"))?)
}

#[tokio::test]
async fn a_login_by_browser_gives_tokens_that_are_used_renewed_and_ended() -> anyhow::Result<()> {
    let Some(server) = OauthServer::start().await? else {
        skip!("no real OAuth server; .ci/run sets it up")
    };
    let model = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = Home::new()?
        .config(&config(&model, |profile| server.table(profile)))?
        .start()
        .await?;

    let before = daemon.ctl(&["send", "hello"]).await?;
    assert_eq!(before.code, Some(3), "{before:?}");
    assert!(
        before.stderr.contains("model `work` needs a login") && before.stderr.contains("agentctl login work"),
        "{before:?}"
    );
    assert!(model.seen().is_empty());
    let states = async || Ok::<_, anyhow::Error>(daemon.ctl(&["model", "list"]).await?.ok()?.stdout);
    assert_eq!(states().await?.matches("needs agentctl login").count(), 2);

    log_in(&daemon).await?;
    let mode = std::fs::metadata(daemon.home.state_dir().join("tokens.json"))?
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(states().await?.matches("needs agentctl login").count(), 0);
    daemon.ctl(&["send", "hello"]).await?.ok()?;
    let first = key(&model)?;
    assert!(server.accepts(&first).await?);
    let made = daemon.ctl(&["new", "--model", "play"]).await?.ok()?;
    daemon.ctl(&["send", "-s", made.stdout.trim(), "hello"]).await?.ok()?;
    assert_eq!(key(&model)?, first, "profiles of one account share its tokens");

    // The provider ends a token early: it is renewed once, in the middle of the turn.
    let kept = tokens(&daemon)?;
    model.refuse_key(&first);
    daemon.ctl(&["send", "hello"]).await?.ok()?;
    let second = key(&model)?;
    assert!(second != first && server.accepts(&second).await?);
    assert_ne!(tokens(&daemon)?, kept, "the new tokens are kept");

    // Another life of the daemon goes on with them.
    daemon.kill9().await?;
    daemon.start().await?;
    daemon.ctl(&["send", "hello"]).await?.ok()?;
    assert_eq!(key(&model)?, second);

    let out = daemon.ctl(&["logout"]).await?.ok()?;
    assert!(
        out.stderr
            .contains("logged out of play, work; the provider has ended the tokens too"),
        "{out:?}"
    );
    assert!(!server.accepts(&second).await?);
    assert!(!tokens(&daemon)?.contains("access_token"));
    let again = daemon.ctl(&["logout", "play"]).await?.ok()?;
    assert!(again.stderr.contains("nobody was logged in"), "{again:?}");
    let after = daemon.ctl(&["send", "hello"]).await?;
    assert!(after.stderr.contains("needs a login"), "{after:?}");
    Ok(())
}

#[tokio::test]
async fn a_login_by_code_is_done_in_any_browser() -> anyhow::Result<()> {
    let Some(server) = OauthServer::start().await? else {
        skip!("no real OAuth server; .ci/run sets it up")
    };
    let model = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = Home::new()?
        .config(&config(&model, |profile| server.table(profile)))?
        .start()
        .await?;
    let mut login = Login::begin(&daemon, &["play", "--device"])?;
    let (url, code) = (login.shown().await?, login.shown().await?);
    let page = browse(&url, Some(&code)).await?;
    assert!(page.stdout.contains("Sign-in Success"), "{}", page.stdout);
    let (exit, said) = login.end().await?;
    assert!(
        exit == Some(0) && said.contains("agentd renews it by itself"),
        "{exit:?}: {said}"
    );
    daemon.ctl(&["send", "hello"]).await?.ok()?;
    assert!(server.accepts(&key(&model)?).await?);
    Ok(())
}

#[tokio::test]
async fn only_a_person_s_own_client_may_log_in_or_out() -> anyhow::Result<()> {
    let command = "agentctl login; agentctl logout; \"$(command -v agentctl)\" login work";
    let model = ModelServer::start(Script::by_step([
        Reply::tool("bash", json!({ "command": command })),
        Reply::text("done"),
    ]))?;
    let plain = tests::daemon::profile(&model, Wire::Chat);
    let daemon =
        Home::new()?.config(&(plain + &config(&model, nowhere).replace("default_model", "# default_model")))?;
    let daemon = daemon.start().await?;
    let mut observer = daemon.observer().await?;
    for (method, params) in [
        ("auth.login", json!({"profile": "work"})),
        ("auth.wait", json!({"login": "x"})),
        ("auth.cancel", json!({"login": "x"})),
        ("auth.logout", json!({"profile": "work"})),
    ] {
        let error = observer.refused(method, params).await?;
        assert_eq!(error["data"]["kind"], "not_authorized", "{method}: {error}");
    }
    let session = daemon.session("all").await?;
    daemon.send(&session, "try").await?;
    daemon.turn_end(&session, 1).await?;
    let log = daemon.log(&session)?;
    let result = log
        .iter()
        .find(|event| event.kind == "tool.completed")
        .context("the command's end")?;
    assert_ne!(result.text("outcome"), "ok", "{result:?}");
    Ok(())
}

#[tokio::test]
async fn ctrl_c_ends_a_login_and_frees_its_address() -> anyhow::Result<()> {
    let model = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = Home::new()?.config(&config(&model, nowhere))?.start().await?;
    let mut login = Login::begin(&daemon, &[])?;
    let url = login.shown().await?;
    let port = url
        .split("127.0.0.1%3A")
        .nth(1)
        .and_then(|rest| rest.split("%2F").next())
        .context("the port")?;
    let port: u16 = port.parse()?;
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok());
    process::signal(login.child.id().context("its pid")?.try_into()?, Signal::INT)?;
    assert_eq!(login.end().await?.0, Some(130));
    soon("nobody listens any more", async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await?;
    let logged: String = std::fs::read_dir(daemon.home.state_dir())?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    assert!(!logged.contains("tokens"), "{logged}");
    Ok(())
}

#[tokio::test]
async fn a_profile_without_a_login_and_a_way_it_lacks_are_told() -> anyhow::Result<()> {
    let model = ModelServer::start(Script::by(|_| Reply::text("hi")))?;
    let daemon = Home::new()?.config(&config(&model, nowhere))?.start().await?;
    let unknown = daemon.ctl(&["login", "other"]).await?;
    assert!(
        unknown.code == Some(1) && unknown.stderr.contains("model `other` has no login"),
        "{unknown:?}"
    );
    let device = daemon.ctl(&["login", "--device"]).await?;
    assert!(device.stderr.contains("has no device_url"), "{device:?}");
    let listed = daemon.ctl(&["config", "show"]).await?.ok()?;
    assert!(listed.stdout.contains("http://127.0.0.1:9/t"), "{}", listed.stdout);
    let status: Value = daemon.ctl(&["daemon", "status", "--json"]).await?.json()?;
    assert_eq!(status["draining"], false);
    Ok(())
}
