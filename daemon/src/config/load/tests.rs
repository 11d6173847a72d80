//! What a configuration file may say, and how it is told that something is wrong.

use std::time::Duration;

use protocol::{Mode, UnattendedPolicy};

use super::super::Resume;
use super::*;

fn read(text: &str) -> Result<Config, ConfigError> {
    parse(Path::new("/home/ann/.config/agentd/config.toml"), text)
}

fn refusal(text: &str) -> String {
    read(text).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
}

#[test]
fn an_empty_file_says_the_defaults() -> anyhow::Result<()> {
    let config = read("")?;
    assert!(config.models.is_empty() && config.default_model.is_none());
    assert_eq!(config.session.limits.max_steps, 50);
    assert_eq!(config.session.mode, Mode::Ask);
    assert_eq!(config.daemon.idle_timeout, Some(Duration::from_secs(1_800)));
    assert_eq!(config.limits.retries, 4);
    Ok(())
}

#[test]
fn a_file_says_everything() -> anyhow::Result<()> {
    let config = read(
        r#"
        default_model = "sonnet"
        [models.sonnet]
        wire = "anthropic-messages"
        model = "claude-sonnet-4-5"
        api_key_env = "ANTHROPIC_API_KEY"
        [models.local]
        wire = "openai-chat"
        base_url = "http://127.0.0.1:11434/v1"
        model = "qwen"
        auth = "none"
        [session]
        env = ["MY_TOKEN"]
        mode = "edits"
        max_steps = 7
        resume = "off"
        unattended = "deny:10m"
        [daemon]
        idle_timeout = "0"
        [limits]
        retries = 0
        park_after = "1h"
        passivate_after = "30s"
        cost_per_session_usd = 1.5
        cost_per_day_usd = 10
        calls_per_provider = 1
        "#,
    )?;
    assert_eq!(config.default_model.as_deref(), Some("sonnet"));
    assert_eq!(
        config.models.get("local").map(|profile| profile.name.as_str()),
        Some("local")
    );
    assert_eq!(config.key_variables(), ["ANTHROPIC_API_KEY"]);
    let unattended = config
        .session
        .unattended
        .map(|unattended| (unattended.policy, unattended.after_ms));
    assert_eq!(unattended, Some((UnattendedPolicy::Deny, Some(600_000))));
    assert_eq!(config.session.env, ["MY_TOKEN"]);
    assert_eq!(config.session.mode, Mode::Edits);
    assert_eq!(
        (config.session.limits.max_steps, config.session.resume),
        (7, Resume::Off)
    );
    assert_eq!(config.daemon.idle_timeout, None);
    let limits = GlobalLimits {
        retries: 0,
        park_after: Duration::from_secs(3_600),
        passivate_after: Duration::from_secs(30),
        cost_per_session_usd: Some(1.5),
        cost_per_day_usd: Some(10.0),
        calls_per_provider: std::num::NonZeroUsize::MIN,
    };
    assert_eq!(config.limits, limits);
    Ok(())
}

#[test]
fn what_is_wrong_is_told_with_line_and_proposal() {
    let wrong = [
        "default_modle = 'x'",
        "[session]\nmax_stpes = 3",
        "[sessions]\nmax_steps = 3",
        "[session]\n\nmax_steps = 'many'",
        "[session]\nmax_steps = 0",
        "[session]\nmode = 'yolo'",
        "[limits]\ncost_per_day_usd = 0",
        "[limits]\ncalls_per_provider = 0",
        "[notify]\nterminal = 'gong'",
        "[session]\nresume = 'on'",
        "[session]\nenv = [\n'OK',\n'TOKEN=abc']",
        "[session]\nunattended = 'denny'",
        "[daemon]\nidle_timeout = 'soon'",
        "[daemon]\nidle_timeout = 30",
        "default_model = 'sonet'\n[models.sonnet]\nwire = 'demo'",
        "default_model = 'sonnet'",
        "[models.a]\nwire = 'openai'\nmodel = 'm'\nauth = 'none'",
        "[models.a]\nwire = 'openai-chat'\nmodel = 'm'",
        "[models.a]\nwire = 'openai-chat'\nmodel = 'm'\nauth = 'none'\nbase_ulr = 'x'",
        "[models.a]\nwire = 'openai-chat'\nmodel = 'm'\nauth = 'none'\nreasoning = 'hi'",
        "[models.'a b']\nwire = 'demo'",
        "[session\nmax_steps = 3",
        "max_steps",
        "[session]\nmax_steps = 3\n[session]\nmode = 'ask'",
    ];
    let told: Vec<String> = wrong
        .iter()
        .map(|text| refusal(text).replace("/home/ann/.config/agentd/", ""))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    config.toml:1: unknown key `default_modle`
    hint: did you mean `default_model`?
    config.toml:2: unknown key `max_stpes`
    hint: did you mean `max_steps`?
    config.toml:1: unknown key `sessions`
    hint: did you mean `session`?
    config.toml:3: `max_steps`: wrong value, a string: expected a whole number above 0
    config.toml:2: `max_steps`: wrong value, an integer: expected a whole number above 0
    config.toml:2: `mode`: unknown value
    hint: one of: ask, edits, all, none
    config.toml:2: an amount of US dollars is above 0; leave the key out for no limit
    config.toml:2: `calls_per_provider`: wrong value, an integer: expected a whole number above 0
    config.toml:2: `terminal`: unknown value
    hint: one of: off, bell, osc9, osc777
    config.toml:2: `resume`: unknown value
    hint: one of: auto, off
    config.toml:4: `env` lists names of variables: letters, digits and `_`
    hint: name the variable only; its value comes from the client
    config.toml:2: write "wait", "deny", "fail", or with a time "deny:10m"
    config.toml:2: not a duration; write it as "45s", "10m" or "1h 30m"
    config.toml:2: not a duration; write it as "45s", "10m" or "1h 30m"
    config.toml:1: `default_model` names no profile of this file
    hint: did you mean `sonnet`?
    config.toml:1: `default_model` names no profile of this file
    hint: add a [models.NAME] table
    config.toml:2: `wire`: unknown value
    hint: one of: anthropic-messages, openai-chat, openai-responses, demo
    config.toml:1: no key source: set one of api_key_env, api_key_file, api_key_command, api_key_keyring, api_key or auth
    config.toml:5: unknown key `base_ulr`
    hint: did you mean `base_url`?
    config.toml:5: `reasoning`: unknown value
    hint: one of: none, minimal, low, medium, high, xhigh, max
    config.toml:1: a profile's name has 1 to 64 letters, digits, `.`, `_` and `-`
    config.toml:1: unclosed table, expected `]`
    config.toml:1: key with no value, expected `=`
    config.toml:3: this key or table stands in the file before
    hint: put what belongs to a table under its first heading
    "#);
}

#[test]
fn no_message_repeats_a_value() {
    let secret = "sk-ant-0123456789";
    for text in [
        format!("default_model = '{secret}'"),
        format!("[session]\nmax_steps = '{secret}'"),
        format!("[session]\nmode = '{secret}'"),
        format!("[session]\nenv = ['{secret}']"),
        format!("[daemon]\nidle_timeout = '{secret}'"),
        format!("[models.a]\nwire = '{secret}'"),
        format!("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key = {secret}"),
        format!("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key = '{secret}"),
        format!("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key = '{secret}'\nauth = 'none'"),
        format!(
            "[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_env = '{secret}'\nmax_output_tokens = '{secret}'"
        ),
        format!("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\nauth = '{secret}'"),
        format!("[models.a]\nwire = 'openai-chat'\nmodel = 'm'\nauth = 'none'\nheaders = '{secret}'"),
        format!("[models.a]\napi_key = '{secret}' oops"),
        format!("[models.a]\nunknown_key = '{secret}'"),
    ] {
        let told = refusal(&text);
        assert_ne!(told, "accepted", "{text}");
        assert!(!told.contains("sk-ant"), "{told}");
    }
}

#[test]
fn key_files_are_found_from_the_home_or_the_configuration() -> anyhow::Result<()> {
    let file = |name: &str| -> anyhow::Result<PathBuf> {
        let config = read(&format!(
            "[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key_file = '{name}'"
        ))?;
        match config.models.get("a").map(|profile| &profile.key) {
            Some(KeySource::File(path)) => Ok(path.clone()),
            other => anyhow::bail!("{other:?}"),
        }
    };
    assert_eq!(file("/run/key")?, Path::new("/run/key"));
    assert_eq!(file("key")?, Path::new("/home/ann/.config/agentd/key"));
    assert_eq!(file("~/key")?, protocol::place::home()?.join("key"));
    Ok(())
}

#[test]
fn a_missing_file_is_fine_and_an_unreadable_one_is_not() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let missing = dir.path().join("config.toml");
    assert_eq!(load(&missing)?.path, missing);
    assert!(matches!(load(dir.path()), Err(ConfigError::Unreadable { .. })));
    std::fs::write(&missing, [0xff, 0xfe])?;
    assert!(matches!(load(&missing), Err(ConfigError::Unreadable { .. })));
    Ok(())
}

#[test]
fn a_key_in_a_file_that_others_read_is_noticed() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "[models.a]\nwire = 'openai-chat'\nmodel = 'm'\napi_key = 'k'")?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
    assert_eq!(load(&path)?.notices.len(), 1);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    assert!(load(&path)?.notices.is_empty());
    Ok(())
}
