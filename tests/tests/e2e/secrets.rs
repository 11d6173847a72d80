//! A key the daemon holds stays with it: whatever prints or echoes it, nothing that is shown, stored, logged or sent has it.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::path::Path;
use tests::daemon::{Home, TestDaemon};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::oauth_server::{OauthServer, browse};
use tests::skip;
use tests::socket::{Peer, is};

const FIRST: &str = "sk-e2e/first-half+";
const SECOND: &str = "second-half-4711";
const MARK: &str = "[redacted: profile scripted]";

/// What must be nowhere: the key, its URL form, and what base64 makes of it, alone and as a password behind `user:`.
const FORMS: [&str; 4] = [
    "sk-e2e/first-half+second-half-4711",
    "sk-e2e%2Ffirst-half%2Bsecond-half-4711",
    "c2stZTJlL2ZpcnN0LWhhbGYrc2Vjb25kLWhhbGYtNDcxM",
    "zay1lMmUvZmlyc3QtaGFsZitzZWNvbmQtaGFsZi00NzEx",
];

fn config(server: &ModelServer, wire: Wire) -> String {
    tests::daemon::profile(server, wire).replace("api_key = \"a-test-key\"", "api_key_env = \"SCRIPTED_KEY\"")
}

/// Prints the key in two halves, waiting for the gate between them, then encoded, then too often for the model to see it all.
fn command() -> String {
    String::from(
        "a=$(cat first); b=$(cat second)\n\
         printf 'before %s' \"$a\"; read -r _ <gate; printf '%s after\\n' \"$b\"\n\
         printf %s \"$a$b\" | base64 -w0; echo; printf %s \"user:$a$b\" | base64 -w0; echo\n\
         for line in {1..2000}; do echo \"$line $a$b\"; done",
    )
}

fn script() -> Script {
    let refusal = json!({"type": "error", "error": {"type": "authentication_error", "message": format!("bad keys: {}", FORMS.join(" "))}});
    Script::by_step([
        Reply::tool("bash", json!({"command": command()})),
        Reply::tool("read_file", json!({"path": "settings"})),
        Reply::tool(
            "edit_file",
            json!({"path": "settings", "old": "port = 1", "new": "port = 2"}),
        ),
        Reply::status(401, &[("content-type", "application/json")], refusal.to_string()),
    ])
}

/// Says hello as a client whose environment has the key.
async fn bring_key(daemon: &TestDaemon) -> anyhow::Result<Peer> {
    let mut peer = daemon.controller().await?;
    let hello = json!({
        "version": protocol::VERSION, "client": "test", "kind": "script", "token": daemon.token()?,
        "keys": {"SCRIPTED_KEY": format!("{FIRST}{SECOND}")},
    });
    peer.call("daemon.hello", hello).await?;
    Ok(peer)
}

/// Every file below `dir`, as one text.
fn files(dir: &Path) -> anyhow::Result<String> {
    let mut all = String::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            all.push_str(&files(&entry.path())?);
        } else if kind.is_file() {
            all.push_str(&String::from_utf8_lossy(&std::fs::read(entry.path())?));
        }
    }
    Ok(all)
}

fn has_no_key(place: &str, text: &str) -> anyhow::Result<()> {
    for form in FORMS {
        let at = text.find(form).map(|at| {
            text.get(at.saturating_sub(200)..)
                .unwrap_or_default()
                .chars()
                .take(400)
                .collect::<String>()
        });
        ensure!(at.is_none(), "{place} has {form}: {at:?}");
    }
    ensure!(
        text.contains(MARK),
        "{place} does not say that there was a key: {text:.600}"
    );
    Ok(())
}

/// The frames of the session's one turn. Opens the gate once output shows that the first half was printed.
async fn frames(peer: &mut Peer, gate: &Path) -> anyhow::Result<Vec<Value>> {
    let before = |frame: &Value| {
        frame["stream"] == "output" && frame["text"].as_str().is_some_and(|text| text.contains("before "))
    };
    let mut frames = peer.until("the first half", before).await?;
    let shown = frames.last().map(Value::to_string).unwrap_or_default();
    ensure!(!shown.contains("sk-e2e"), "half a key is shown: {shown}");
    tokio::fs::write(gate, "go\n").await?;
    frames.extend(
        peer.until("the turn's end", |frame| is(frame, "turn.completed"))
            .await?,
    );
    Ok(frames)
}

#[tokio::test]
async fn a_key_that_tools_print_and_providers_echo_is_nowhere() -> anyhow::Result<()> {
    let server = ModelServer::start(script())?;
    let home = Home::new()?
        .env("AGENTD_LOG", "trace")
        .config(&config(&server, Wire::Messages))?;
    let daemon = home.start().await?;
    let project = daemon.home.project();
    std::fs::write(project.join("settings"), format!("key = {FIRST}{SECOND}\nport = 1\n"))?;
    std::fs::write(project.join("first"), FIRST)?;
    std::fs::write(project.join("second"), SECOND)?;
    let gate = project.join("gate");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &gate,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )?;

    let mut peer = bring_key(&daemon).await?;
    let session = daemon.session("all").await?;
    peer.attach(&session, Some(0)).await?;
    daemon.send(&session, "look").await?;
    let frames = frames(&mut peer, &gate).await?;
    let shown: String = frames.iter().map(Value::to_string).collect();
    has_no_key("a frame", &shown)?;
    ensure!(
        shown.contains(&format!("bad keys: {MARK}")),
        "the provider's words are gone: {shown}"
    );

    let events = daemon.log(&session)?;
    let ended: Vec<&tests::log::Logged> = events.iter().filter(|event| event.kind == "tool.completed").collect();
    ensure!(ended.len() == 3, "{ended:?}");
    for event in &ended {
        has_no_key("a result", &event.data.to_string())?;
    }
    let output = ended.first().context("the command's result")?.text("output");
    ensure!(output.starts_with(&format!("before {MARK} after\n{MARK}")), "{output}");
    has_no_key("a diff", ended.last().context("the edit's result")?.text("diff"))?;
    // A cut may leave no part of a key.
    if let Some(line) = output.lines().find(|line| line.contains("sk-")) {
        anyhow::bail!("part of a key: {line}");
    }

    for seen in server.seen().iter().skip(1) {
        has_no_key("a request", &seen.body.to_string())?;
    }
    has_no_key("`tail`", &daemon.ctl(&["tail", &session]).await?.ok()?.stdout)?;
    has_no_key("the state directory", &files(&daemon.home.state_dir())?)?;
    ensure!(
        files(&daemon.home.state_dir().join("log"))?.contains("TRACE"),
        "the log is not as talkative as it can be"
    );
    Ok(())
}

/// What a model does that has the key from somewhere: thinks it, says it, runs it, writes it, prints it in lines of base64.
fn leaky() -> Script {
    let key = format!("{FIRST}{SECOND}");
    Script::by_step([
        Reply::text(format!("I will use {key} now"))
            .reasoning(format!("hm, the key is {key}"))
            .call(
                "bash",
                json!({"command": format!("touch here; echo 'x-api-key: {key}'; base64 -w 20 whole")}),
            ),
        Reply::tool(
            "write_file",
            json!({"path": "made", "content": format!("key = {key}\n")}),
        ),
        Reply::text(format!("done with {key}")),
    ])
}

/// Neither in one line nor in several.
fn has_no_line_of_the_key(place: &str, text: &str) -> anyhow::Result<()> {
    let joined: String = text.replace("\\n", "").split_whitespace().collect();
    for form in FORMS {
        ensure!(!joined.contains(form), "{place} has {form} in lines: {text:.2000}");
    }
    Ok(())
}

#[tokio::test]
async fn a_key_that_a_model_or_a_person_writes_is_nowhere_on_any_wire() -> anyhow::Result<()> {
    let key = format!("{FIRST}{SECOND}");
    for wire in [Wire::Messages, Wire::Chat, Wire::Responses] {
        let server = ModelServer::start(leaky())?;
        let home = Home::new()?.env("AGENTD_LOG", "trace").config(&config(&server, wire))?;
        let daemon = home.start().await?;
        std::fs::write(daemon.home.project().join("whole"), &key)?;
        let mut peer = bring_key(&daemon).await?;

        // Asked about: what is shown, and what the person answers.
        let asking = daemon.session("ask").await?;
        let mut asked = daemon.controller().await?;
        asked.attach(&asking, Some(0)).await?;
        daemon.send(&asking, &format!("use {key}")).await?;
        let approval = daemon.approval(&asking).await?;
        has_no_key("an approval", &approval.to_string())?;
        has_no_key("`approvals`", &daemon.ctl(&["approvals"]).await?.ok()?.stdout)?;
        let edited = json!({
            "id": approval["id"], "digest": approval["digest"], "decision": "once",
            "arguments": {"command": format!("touch here; echo 'key: {key}'; base64 -w 20 whole")},
        });
        peer.call("approval.answer", edited).await?;
        let second = daemon.approval(&asking).await?;
        let refusal = json!({
            "id": second["id"], "digest": second["digest"], "decision": "deny", "feedback": format!("not with {key}"),
        });
        peer.call("approval.answer", refusal).await?;
        let frames = asked
            .until("the turn's end", |frame| is(frame, "turn.completed"))
            .await?;
        has_no_key(
            "a frame of asking",
            &frames.iter().map(Value::to_string).collect::<String>(),
        )?;

        // Run: the command and the file get the mark.
        let session = daemon.session("all").await?;
        peer.attach(&session, Some(0)).await?;
        daemon.send(&session, "go").await?;
        let frames = peer
            .until("the turn's end", |frame| is(frame, "turn.completed"))
            .await?;
        let shown: String = frames.iter().map(Value::to_string).collect();
        has_no_key("a frame", &shown)?;
        has_no_line_of_the_key("a frame", &shown)?;
        let made = std::fs::read_to_string(daemon.home.project().join("made"))?;
        assert_eq!(made, format!("key = {MARK}\n"), "what is shown is what is written");
        let log = daemon.log(&session)?;
        let output = log
            .iter()
            .find(|event| event.kind == "tool.completed")
            .context("a result")?;
        assert!(
            output.text("output").starts_with(&format!("x-api-key: {MARK}\n")),
            "{output:?}"
        );

        // What grew is what was recorded.
        let texts = log
            .iter()
            .filter(|event| event.kind == "item.completed" && event.text("type") == "text");
        let recorded: Vec<&str> = texts.map(|event| event.text("text")).collect();
        assert_eq!(
            recorded,
            [format!("I will use {MARK} now"), format!("done with {MARK}")]
        );
        let grown: String = frames
            .iter()
            .filter(|frame| is(frame, "delta") && frame["stream"] == "text")
            .filter_map(|frame| frame["text"].as_str())
            .collect();
        ensure!(grown.contains(&format!("I will use {MARK} now")), "{grown}");

        for seen in server.seen() {
            for form in FORMS {
                ensure!(
                    !seen.body.to_string().contains(form),
                    "a request has {form}: {}",
                    seen.body
                );
            }
            has_no_line_of_the_key("a request", &seen.body.to_string())?;
        }
        let state = files(&daemon.home.state_dir())?;
        has_no_key("the state directory", &state)?;
        has_no_line_of_the_key("the state directory", &state)?;
        has_no_key("`tail`", &daemon.ctl(&["tail", &asking]).await?.ok()?.stdout)?;
        has_no_key("`show`", &daemon.ctl(&["show", &session]).await?.ok()?.stdout)?;
    }
    Ok(())
}

#[tokio::test]
async fn tokens_of_a_login_are_in_their_file_and_nowhere_else() -> anyhow::Result<()> {
    let Some(oauth) = OauthServer::start().await? else {
        skip!("no real OAuth server; .ci/run sets it up")
    };
    let server = ModelServer::start(Script::by(|seen| {
        let key = seen.key.clone().unwrap_or_default();
        match seen.step() {
            0 => Reply::text(format!("my token is {key}"))
                .call("bash", json!({"command": format!("echo {key}; cat tokens")})),
            _ => Reply::text("done"),
        }
    }))?;
    let profile = config(&server, Wire::Chat).replace("api_key_env = \"SCRIPTED_KEY\"", "auth = \"login\"");
    let home = Home::new()?
        .env("AGENTD_LOG", "trace")
        .config(&(profile + &oauth.table("scripted")))?;
    let daemon = home.start().await?;
    let mut peer = daemon.controller().await?;
    let started = peer.call("auth.login", json!({})).await?;
    browse(started["url"].as_str().context("the address")?, None).await?;
    let done = peer.call("auth.wait", json!({"login": started["login"]})).await?;
    let file = std::path::PathBuf::from(done["kept"].as_str().context("the file")?);
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let login = kept["logins"]
        .as_object()
        .and_then(|logins| logins.values().next())
        .context("a login")?;
    let tokens: Vec<&str> = ["access_token", "refresh_token"]
        .iter()
        .filter_map(|name| login[*name].as_str())
        .collect();
    ensure!(tokens.len() == 2, "{kept}");
    std::fs::write(daemon.home.project().join("tokens"), tokens.join("\n"))?;

    let session = daemon.session("all").await?;
    peer.attach(&session, Some(0)).await?;
    daemon.send(&session, "go").await?;
    let frames = peer
        .until("the turn's end", |frame| is(frame, "turn.completed"))
        .await?;
    let frames: String = frames.iter().map(Value::to_string).collect();
    // The answers of `auth.*` are seen by the client that asked, and by nobody after it.
    let answers = format!("{started}{done}");
    std::fs::remove_file(&file)?;
    let requests: String = server.seen().iter().map(|seen| seen.body.to_string()).collect();
    let state = files(&daemon.home.state_dir())?;
    for (place, text) in [
        ("a frame", &frames),
        ("an answer", &answers),
        ("a request", &requests),
        ("the state directory", &state),
    ] {
        for token in &tokens {
            ensure!(!text.contains(token), "{place} has a token");
        }
    }
    ensure!(frames.contains(MARK) && requests.contains(MARK), "{frames}");
    Ok(())
}
