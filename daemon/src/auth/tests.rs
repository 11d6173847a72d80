//! Which model answers, and what each key source gives.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use secrecy::ExposeSecret;

use super::*;
use crate::config::parse;
use crate::config::profile::Wire;

/// A command that prints what its text says after `print `, fails on `fail`, and never ends on `hang`.
#[derive(Default)]
struct Script {
    runs: AtomicUsize,
}

#[async_trait]
impl RunCommand for Script {
    async fn output(&self, command: &str, _limit_bytes: usize) -> Result<Vec<u8>, String> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        match command.split_once(' ') {
            Some(("print", text)) => Ok(text.as_bytes().to_vec()),
            _ if command == "hang" => std::future::pending().await,
            _ => Err("ended with exit code 1".to_owned()),
        }
    }
}

/// What clients are asked for when nothing is configured.
const AUTOMATIC: [&str; 9] = [
    "AGENTD_API_KEY",
    "AGENTD_BASE_URL",
    "ANTHROPIC_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
];

fn config(text: &str) -> anyhow::Result<Config> {
    Ok(parse(Path::new("/c/config.toml"), text)?)
}

fn keys(config: &Config) -> Keys {
    keys_of(config, Arc::new(Script::default()), Keyring::system())
}

fn keys_of(config: &Config, run: Arc<Script>, keyring: Keyring) -> Keys {
    Keys::new(config, sources(config, run, keyring), Redactor::default())
}

fn sources(config: &Config, run: Arc<Script>, keyring: Keyring) -> Sources {
    let nowhere = Path::new("/nonexistent");
    let logins = Logins::new(config, nowhere, keyring.clone(), Arc::new(Nobody), &Redactor::default());
    Sources {
        run,
        keyring,
        logins: Arc::new(logins),
    }
}

/// Reaches no provider.
struct Nobody;

#[async_trait]
impl login::TokenHttp for Nobody {
    async fn send(&self, _: oauth2::HttpRequest) -> Result<oauth2::HttpResponse, login::HttpFailed> {
        Err(login::HttpFailed("nobody is there".to_owned()))
    }
}

fn sent(pairs: &[(&str, &str)]) -> BTreeMap<String, SecretString> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), SecretString::from(*value)))
        .collect()
}

/// The key of the only profile, which takes it as `source` says.
async fn key_of(source: &str) -> anyhow::Result<Result<String, AuthError>> {
    let config = config(&format!("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\n{source}"))?;
    let profile = choose(&config, &keys(&config), None)?.profile;
    let key = keys(&config).key(&profile).await;
    Ok(key.map(|key| key.map_or_else(|| "none".to_owned(), |key| key.expose_secret().to_owned())))
}

fn empty(source_name: &str) -> Result<String, AuthError> {
    Err(AuthError::Empty {
        profile: "a".to_owned(),
        source_name: source_name.to_owned(),
    })
}

fn malformed(source_name: &str) -> Result<String, AuthError> {
    Err(AuthError::Malformed {
        profile: "a".to_owned(),
        source_name: source_name.to_owned(),
    })
}

#[tokio::test]
async fn a_literal_key_and_no_key_are_what_they_say() -> anyhow::Result<()> {
    assert_eq!(key_of("api_key = 'k'").await?, Ok("k".to_owned()));
    assert_eq!(key_of("auth = 'none'").await?, Ok("none".to_owned()));
    assert_eq!(key_of("api_key = ''").await?, empty("api_key"));
    assert_eq!(key_of(r#"api_key = "a\nb""#).await?, malformed("api_key"));
    Ok(())
}

#[tokio::test]
async fn a_key_file_loses_one_line_end_and_is_one_line() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("key");
    let source = format!("api_key_file = '{}'", path.display());
    let source_name = format!("api_key_file = {}", path.display());
    let with = async |content: &[u8]| -> anyhow::Result<Result<String, AuthError>> {
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        key_of(&source).await
    };
    assert_eq!(with(b"k").await?, Ok("k".to_owned()));
    assert_eq!(with(b"k\n").await?, Ok("k".to_owned()));
    assert_eq!(with(b"k\r\n").await?, Ok("k".to_owned()));
    assert_eq!(with(b" k \n").await?, Ok(" k ".to_owned()));
    assert_eq!(with(b"").await?, empty(&source_name));
    assert_eq!(with(b"\n").await?, empty(&source_name));
    assert_eq!(with(b"k\n\n").await?, malformed(&source_name));
    assert_eq!(with(b"k\xff").await?, malformed(&source_name));
    assert_eq!(with(&[b'k'; KEY_BYTES + 1]).await?, malformed(&source_name));
    std::fs::remove_file(&path)?;
    assert!(matches!(key_of(&source).await?, Err(AuthError::Unreadable { .. })));
    Ok(())
}

#[tokio::test]
async fn a_pipe_in_place_of_a_key_file_is_refused_at_once() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )?;
    let key = key_of(&format!("api_key_file = '{}'", path.display())).await?;
    assert!(matches!(key, Err(AuthError::Unreadable { .. })), "{key:?}");
    Ok(())
}

#[tokio::test]
async fn a_key_command_gives_its_output_or_a_reason() -> anyhow::Result<()> {
    let failed = |reason: &str| {
        Err(AuthError::Command {
            profile: "a".to_owned(),
            reason: reason.to_owned(),
        })
    };
    assert_eq!(key_of("api_key_command = 'print k'").await?, Ok("k".to_owned()));
    assert_eq!(key_of(r#"api_key_command = "print k\n""#).await?, Ok("k".to_owned()));
    assert_eq!(
        key_of(r#"api_key_command = "print \n""#).await?,
        empty("api_key_command")
    );
    assert_eq!(
        key_of("api_key_command = 'fail'").await?,
        failed("ended with exit code 1")
    );
    let config = config(
        "[models.a]
wire = 'demo'",
    )?;
    let profile = choose(&config, &keys(&config), None)?.profile;
    let hung = fetch::from_command(&profile, "hang", &Script::default(), std::time::Duration::ZERO).await;
    assert_eq!(hung.map(|_| String::new()), failed("did not end within 0 s"));
    Ok(())
}

#[tokio::test]
async fn a_key_command_runs_once_until_its_key_is_forgotten() -> anyhow::Result<()> {
    let config = config("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_command = 'print k'")?;
    let script = Arc::new(Script::default());
    let keys = keys_of(&config, Arc::clone(&script), Keyring::system());
    let profile = choose(&config, &keys, None)?.profile;
    keys.key(&profile).await?;
    keys.key(&profile).await?;
    assert_eq!(script.runs.load(Ordering::SeqCst), 1);
    keys.forget(&profile, &"an older one".into());
    keys.key(&profile).await?;
    assert_eq!(script.runs.load(Ordering::SeqCst), 1);
    keys.forget(&profile, &"k".into());
    keys.key(&profile).await?;
    assert_eq!(script.runs.load(Ordering::SeqCst), 2);
    Ok(())
}

#[tokio::test]
async fn a_key_of_the_keyring_is_read_once_until_it_is_forgotten() -> anyhow::Result<()> {
    let config = config("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_keyring = 'work'")?;
    let keyring = Keyring::of(keyring_core::mock::Store::new()?);
    let keys = keys_of(&config, Arc::default(), keyring.clone());
    let profile = choose(&config, &keys, None)?.profile;
    let key = async || {
        let key = keys.key(&profile).await;
        key.map(|key| key.map_or_else(String::new, |key| key.expose_secret().to_owned()))
    };
    let missing = key().await.map_err(|error| error.hint());
    assert!(missing.is_err_and(|hint| hint.contains("service agentd username work")));
    keyring.set("work", "first".into()).await?;
    assert_eq!(key().await?, "first");
    keyring.set("work", "second".into()).await?;
    assert_eq!(key().await?, "first");
    keys.forget(&profile, &"first".into());
    assert_eq!(key().await?, "second");
    keys.forget(&profile, &"second".into());
    keyring.set("work", "two\nlines".into()).await?;
    assert_eq!(key().await, malformed("api_key_keyring = work"));
    Ok(())
}

#[cfg(not(feature = "keyring"))]
#[tokio::test]
async fn a_key_in_the_keyring_of_a_build_without_one_says_what_to_use_instead() -> anyhow::Result<()> {
    let error = key_of("api_key_keyring = 'agentd'").await?.err();
    let error = error.ok_or_else(|| anyhow::anyhow!("there is a key"))?;
    assert_eq!(
        error.to_string(),
        "the key of model `a` cannot be had: this build of agentd has no keyring"
    );
    assert!(error.hint().contains("api_key_command"), "{}", error.hint());
    Ok(())
}

#[tokio::test]
async fn clients_are_asked_for_the_names_of_the_configuration_only() -> anyhow::Result<()> {
    let config = config(
        "default_model = 'a'\n[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_env = 'MINE'\n\
         [models.b]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_env = 'OTHER'",
    )?;
    let keys = keys(&config);
    assert_eq!(keys.lacks(), ["MINE", "OTHER"]);
    let profile = choose(&config, &keys, None)?.profile;
    let lacking = keys.key(&profile).await.map(|_| ());
    assert_eq!(
        lacking,
        Err(AuthError::Lacking {
            profile: "a".to_owned(),
            name: "MINE".to_owned()
        })
    );

    keys.offer(sent(&[
        ("MINE", "k"),
        ("GITHUB_TOKEN", "t"),
        ("OTHER", ""),
        ("ANTHROPIC_API_KEY", "x"),
    ]))?;
    assert_eq!(keys.lacks(), ["OTHER"]);
    assert!(!keys.has("GITHUB_TOKEN") && !keys.has("ANTHROPIC_API_KEY"));
    assert_eq!(
        keys.key(&profile).await?.map(|key| key.expose_secret().to_owned()),
        Some("k".to_owned())
    );

    let renewed = keys.renewed(&config);
    assert_eq!(renewed.lacks(), ["OTHER"]);
    Ok(())
}

#[test]
fn with_nothing_configured_a_client_s_key_decides_and_the_notice_says_so() -> anyhow::Result<()> {
    let config = config("")?;
    let keys = keys(&config);
    let chosen = |keys: &Keys| choose(&config, keys, None).map(|choice| (choice.profile.name, choice.notice));
    assert_eq!(keys.lacks(), AUTOMATIC);
    let demo = "using the built-in demo model: it cannot reason. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or add a profile to /c/config.toml";
    assert_eq!(chosen(&keys)?, ("demo".to_owned(), Some(demo.to_owned())));
    keys.offer(sent(&[("OPENAI_API_KEY", "k")]))?;
    let openai = "using openai (key from OPENAI_API_KEY)";
    assert_eq!(chosen(&keys)?, ("openai".to_owned(), Some(openai.to_owned())));
    keys.offer(sent(&[("ANTHROPIC_API_KEY", "k")]))?;
    let anthropic = "using anthropic (key from ANTHROPIC_API_KEY)";
    assert_eq!(chosen(&keys)?, ("anthropic".to_owned(), Some(anthropic.to_owned())));
    Ok(())
}

#[test]
fn each_provider_of_the_catalog_answers_when_its_key_is_there() -> anyhow::Result<()> {
    let config = config("")?;
    for provider in config.catalog.providers() {
        let keys = keys(&config);
        keys.offer(sent(&[(&provider.api_key_env, "k")]))?;
        let profile = choose(&config, &keys, None)?.profile;
        assert_eq!((&profile.name, &profile.base_url), (&provider.name, &provider.base_url));
        assert_eq!((profile.wire, &profile.model), (provider.wire, &provider.model));
    }
    Ok(())
}

#[test]
fn a_model_of_the_catalog_takes_the_key_of_its_provider() -> anyhow::Result<()> {
    let nothing = config("")?;
    let profile = choose(&nothing, &keys(&nothing), Some("openrouter/qwen/qwen3-coder"))?.profile;
    assert_eq!(
        (profile.name.as_str(), profile.model.as_str()),
        ("openrouter/qwen/qwen3-coder", "qwen/qwen3-coder")
    );
    assert!(matches!(&profile.key, KeySource::Env(name) if name == "OPENROUTER_API_KEY"));

    let one =
        config("[models.a]\nwire = 'anthropic-messages'\nmodel = 'm'\napi_key_env = 'MINE'\nprices = { input = 1 }")?;
    let profile = choose(&one, &keys(&one), Some("anthropic/claude-opus-4-5"))?.profile;
    assert!(matches!(&profile.key, KeySource::Env(name) if name == "MINE"));
    assert_eq!((profile.model.as_str(), profile.prices), ("claude-opus-4-5", None));
    let other = choose(&one, &keys(&one), Some("openai/gpt-5")).map(|choice| choice.profile.name);
    assert!(matches!(other, Err(AuthError::NoProfileOf { .. })), "{other:?}");
    Ok(())
}

#[test]
fn a_configured_model_is_never_replaced_by_another() -> anyhow::Result<()> {
    let one = config("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_env = 'MINE'")?;
    let choice = choose(&one, &keys(&one), None)?;
    assert_eq!((choice.profile.name.as_str(), choice.notice), ("a", None));
    assert_eq!(choose(&one, &keys(&one), Some("demo"))?.profile.wire, Wire::Demo);
    let unknown = choose(&one, &keys(&one), Some("anthropic")).map(|choice| choice.profile.name);
    assert_eq!(
        unknown,
        Err(AuthError::UnknownProfile {
            name: "anthropic".to_owned(),
            known: vec!["a".to_owned()]
        })
    );
    let two = config("[models.a]\nwire = 'demo'\n[models.b]\nwire = 'demo'")?;
    let undecided = choose(&two, &keys(&two), None).map(|choice| choice.profile.name);
    assert_eq!(
        undecided,
        Err(AuthError::NoDefault {
            known: vec!["a".to_owned(), "b".to_owned()]
        })
    );
    Ok(())
}

#[tokio::test]
async fn an_address_from_the_environment_gets_only_the_key_that_came_with_it() -> anyhow::Result<()> {
    let config = config("")?;
    let keys = keys(&config);
    keys.offer(sent(&[("OPENAI_API_KEY", "precious")]))?;
    assert_eq!(
        keys.offer(sent(&[("AGENTD_BASE_URL", "https://evil.example")])),
        Err(AuthError::BaseUrlAlone)
    );
    assert_eq!(choose(&config, &keys, None)?.profile.name, "openai");

    keys.offer(sent(&[
        ("AGENTD_BASE_URL", "https://box.example/v1"),
        ("AGENTD_API_KEY", "theirs"),
    ]))?;
    assert_eq!(
        choose(&config, &keys, None).map(|choice| choice.profile.name),
        Err(AuthError::ModelUnnamed)
    );
    let profile = choose(&config, &keys, Some("qwen"))?.profile;
    assert_eq!(
        (profile.base_url.as_str(), profile.model.as_str()),
        ("https://box.example/v1", "qwen")
    );
    assert_eq!(
        keys.key(&profile).await?.map(|key| key.expose_secret().to_owned()),
        Some("theirs".to_owned())
    );
    Ok(())
}

#[test]
fn address_and_key_are_asked_for_and_replaced_together() -> anyhow::Result<()> {
    let config = config("")?;
    let keys = keys(&config);
    keys.offer(sent(&[("AGENTD_API_KEY", "alone")]))?;
    assert_eq!(keys.lacks(), AUTOMATIC);
    assert_eq!(choose(&config, &keys, None)?.profile.name, "demo");
    keys.offer(sent(&[
        ("AGENTD_BASE_URL", "https://box.example/v1"),
        ("AGENTD_API_KEY", "theirs"),
    ]))?;
    assert_eq!(keys.lacks(), AUTOMATIC[2..]);
    keys.offer(sent(&[("AGENTD_API_KEY", "mine")]))?;
    assert!(!keys.has("AGENTD_BASE_URL"));
    Ok(())
}

#[test]
fn nothing_that_prints_shows_a_key() -> anyhow::Result<()> {
    let config = config("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_env = 'MINE'")?;
    let keys = keys(&config);
    keys.offer(sent(&[("MINE", "sk-hidden")]))?;
    assert!(!format!("{keys:?} {config:?}").contains("hidden"));
    Ok(())
}

#[tokio::test]
async fn a_key_is_taken_out_of_texts_as_soon_as_it_is_held() -> anyhow::Result<()> {
    let config = config(
        "default_model = 'written'
         [models.written]\nwire = 'openai-chat'\nmodel = 'm'\napi_key = 'written-key'\nheaders = { X-Auth = 'Basic header-key', X-Team = 'the-team' }
         [models.sent]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_env = 'SENT'
         [models.printed]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_command = 'print printed-key'",
    )?;
    let redactor = Redactor::default();
    let keys = Keys::new(
        &config,
        sources(&config, Arc::default(), Keyring::system()),
        redactor.clone(),
    );
    let text = "written-key header-key the-team sent-key printed-key";
    let mark = |profile: &str| format!("[redacted: profile {profile}]");
    assert_eq!(
        redactor.clean(text),
        format!("{0} {0} the-team sent-key printed-key", mark("written"))
    );
    keys.offer(sent(&[("SENT", "sent-key"), ("OTHER", "the-team")]))?;
    let printed = config
        .models
        .get("printed")
        .ok_or_else(|| anyhow::anyhow!("the profile"))?;
    keys.key(printed).await?;
    let clean = format!(
        "{0} {0} the-team {1} {2}",
        mark("written"),
        mark("sent"),
        mark("printed")
    );
    assert_eq!(redactor.clean(text), clean);
    Ok(())
}
