//! The configuration for people: each value that is in force and where it comes from. What may be a secret is hidden unless
//! its key is known to hold none.

use std::path::Path;

use protocol::config::Setting;
use toml_edit::{Document, DocumentMut, Item, Key, Table, Value};

use super::error::ConfigError;
use super::{Config, Project, load, rules, template};

/// Keys whose value in the template is an example and no default.
const EXAMPLES: &[&str] = &[
    "default_model",
    "models",
    "session.env",
    "context.include",
    "context.exclude",
    "notify.command",
    "limits.cost_per_session_usd",
    "limits.cost_per_day_usd",
    "tools",
];

/// Lists of which a project's and the person's both count.
const ADDED: &[&str] = &["context.include", "context.exclude"];
/// Keys without a default, listed all the same.
const UNSET: &[&str] = &[
    "default_model",
    "session.env",
    "notify.command",
    "limits.cost_per_session_usd",
    "limits.cost_per_day_usd",
    "tools.enabled",
    "tools.disabled",
    "tools.fetch_hosts",
    "tools.search_engine",
    "tools.search_url",
];

/// What of a profile is no secret. Everything else of it is hidden.
const OPEN_PROFILE_KEYS: &[&str] = &[
    "wire",
    "model",
    "auth",
    "api_key_env",
    "context_tokens",
    "max_output_tokens",
    "temperature",
    "top_p",
    "reasoning",
    "allow_http",
    "prices",
    "connect_timeout_s",
    "first_byte_timeout_s",
    "idle_timeout_s",
    "client_id",
    "issuer",
    "scopes",
    "store",
];

/// Addresses of a profile: shown without what may be a secret in them.
const ADDRESSES: &[&str] = &[
    "base_url",
    "authorize_url",
    "device_url",
    "token_url",
    "revoke_url",
    "redirect",
];

/// A value as it is written in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its path.
    pub key: String,
    /// As TOML, or hidden.
    pub value: String,
    /// Line from 1.
    pub line: usize,
}

/// The values of a file. What cannot be read has none; reading it properly says why.
#[must_use]
pub(super) fn of(text: &str) -> Vec<Shown> {
    let document = Document::parse(text);
    document.map_or_else(
        |_| Vec::new(),
        |document| of_table(document.as_table(), text, &|_| true),
    )
}

/// The same of a document that was read from `text` already, where `counts` says which keys and tables are shown.
pub(super) fn of_table(table: &Table, text: &str, counts: &dyn Fn(&str) -> bool) -> Vec<Shown> {
    let mut shown = Vec::new();
    walk(table, "", text, counts, &mut shown);
    shown
}

fn walk(table: &Table, above: &str, text: &str, counts: &dyn Fn(&str) -> bool, shown: &mut Vec<Shown>) {
    for (name, item) in table {
        let key = if above.is_empty() {
            name.to_owned()
        } else {
            format!("{above}.{name}")
        };
        if !counts(&key) {
            continue;
        }
        match item {
            Item::Table(inner) => walk(inner, &key, text, counts, shown),
            Item::Value(value) => {
                let start = table.key(name).and_then(Key::span).map_or(0, |span| span.start);
                let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
                let value = open(&key, value).unwrap_or_else(|| "(hidden)".to_owned());
                shown.push(Shown { key, value, line });
            }
            Item::ArrayOfTables(_) | Item::None => {}
        }
    }
}

/// The value as TOML, if its key is known to hold no secret.
fn open(key: &str, value: &Value) -> Option<String> {
    let plain = value.clone().decorated("", "").to_string();
    let Some(inner) = key.strip_prefix("models.") else {
        return Some(plain);
    };
    if inner.contains(".headers.") {
        return None;
    }
    let last = inner.rsplit('.').next().unwrap_or(inner);
    if ADDRESSES.contains(&last) {
        return Some(without_user(&plain));
    }
    OPEN_PROFILE_KEYS.contains(&last).then_some(plain)
}

/// An address without `user:password@` and without a query.
fn without_user(address: &str) -> String {
    let bare = address.split('?').next().unwrap_or(address);
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest
                .split_once('/')
                .map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = host.rsplit('@').next().unwrap_or(host);
            let end = if bare.len() < address.len() { "\"" } else { "" };
            path.map_or_else(
                || format!("{scheme}://{host}{end}"),
                |path| format!("{scheme}://{host}/{path}{end}"),
            )
        }
        None => bare.to_owned(),
    }
}

/// The values in force, those of the template's order first, and what a project changes.
#[must_use]
pub fn settings(user: &Config, project: Option<(&Path, &Project)>) -> Vec<Setting> {
    let is_example = |key: &str| {
        EXAMPLES
            .iter()
            .any(|example| key == *example || key.starts_with(&format!("{example}.")))
    };
    let defaults = of(&template::uncommented())
        .into_iter()
        .filter(|shown| !is_example(&shown.key));
    let mut settings: Vec<Setting> = defaults
        .map(|shown| Setting {
            key: shown.key,
            value: shown.value,
            from: "default".to_owned(),
        })
        .collect();
    for key in UNSET {
        put(&mut settings, key, "(not set)".to_owned(), "default".to_owned());
    }
    for shown in &user.written {
        let from = format!("{}:{}", user.path.display(), shown.line);
        put(&mut settings, &shown.key, shown.value.clone(), from);
    }
    let written = |(file, project): (_, &'_ Project)| -> Vec<(&Path, Shown)> {
        project.written.iter().map(|shown| (file, shown.clone())).collect()
    };
    for (file, shown) in project.map(written).unwrap_or_default() {
        let from = format!("{}:{}", file.display(), shown.line);
        if ADDED.contains(&shown.key.as_str()) {
            let Shown { key, value, .. } = shown;
            settings.push(Setting { key, value, from });
        } else {
            put(&mut settings, &shown.key, shown.value, from);
        }
    }
    settings
}

fn put(settings: &mut Vec<Setting>, key: &str, value: String, from: String) {
    match settings.iter_mut().find(|setting| setting.key == key) {
        Some(setting) => (setting.value, setting.from) = (value, from),
        None => settings.push(Setting {
            key: key.to_owned(),
            value,
            from,
        }),
    }
}

/// Sets one value in the file at `path` and keeps everything else, comments too. Nothing is written that could not be read.
///
/// # Errors
/// A file that is wrong already or cannot be written; a key or value the daemon does not know.
pub fn set(path: &Path, key: &str, value: &str) -> Result<(), ConfigError> {
    let wrong = |message: String| ConfigError::Wrong {
        path: path.to_path_buf(),
        line: None,
        message,
        hint: None,
    };
    let text = load::read(path)?.map(|(text, _)| text).unwrap_or_default();
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        ConfigError::at(path, &text, error.span(), error.message().to_owned(), None)
    })?;
    let mut table = document.as_table_mut();
    let mut names = key.split('.').peekable();
    while let Some(name) = names.next() {
        if name.is_empty() {
            return Err(wrong(format!("`{key}` is no key; write it as `session.mode`")));
        }
        if names.peek().is_none() {
            let value: Value = value.parse().unwrap_or_else(|_| Value::from(value));
            match table.get_mut(name).and_then(Item::as_value_mut) {
                Some(old) => {
                    *old = value.decorated(
                        " ",
                        old.decor()
                            .suffix()
                            .and_then(toml_edit::RawString::as_str)
                            .unwrap_or(""),
                    )
                }
                None => drop(table.insert(name, Item::Value(value))),
            }
            break;
        }
        let inner = table.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        table = inner
            .as_table_mut()
            .ok_or_else(|| wrong(format!("`{name}` is no table")))?;
    }
    let text = document.to_string();
    load::parse(path, &text)?;
    rules::replace(path, &text)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_the_rest_has_its_line() {
        let text = "default_model = \"a\"\n[models.a]\nwire = \"demo\"\napi_key = \"sk-secret\"\nbase_url = \"https://me:pw@host/v1?k=sk-secret\"\nheaders = { X = \"sk-secret\" }\napi_key_command = \"echo sk-secret\"\n\n[session]\nmode = \"edits\" # mine\n";
        let shown = of(text);
        assert!(
            !format!("{shown:?}").contains("sk-secret") && !format!("{shown:?}").contains("pw"),
            "{shown:?}"
        );
        let of = |key: &str| shown.iter().find(|shown| shown.key == key).cloned().unwrap();
        assert_eq!(
            (of("session.mode").value.as_str(), of("session.mode").line),
            ("\"edits\"", 10)
        );
        assert_eq!(of("models.a.base_url").value, "\"https://host/v1\"");
        assert_eq!(of("models.a.api_key").value, "(hidden)");
    }

    #[test]
    fn every_value_says_where_it_comes_from() {
        let user = load::parse(Path::new("/c/config.toml"), "[session]\nmax_steps = 7\n").unwrap();
        let project = Project {
            written: of("[session]\nmode = \"none\"\n"),
            ..Project::default()
        };
        let settings = settings(&user, Some((Path::new("/p/.agent/config.toml"), &project)));
        let of = |key: &str| settings.iter().find(|setting| setting.key == key).cloned().unwrap();
        assert_eq!(
            (of("session.max_steps").value, of("session.max_steps").from),
            ("7".into(), "/c/config.toml:2".into())
        );
        assert_eq!(
            (of("session.mode").value, of("session.mode").from),
            ("\"none\"".into(), "/p/.agent/config.toml:2".into())
        );
        assert_eq!(of("limits.retries").from, "default");
        for unset in ["default_model", "tools.disabled", "limits.cost_per_day_usd"] {
            assert_eq!(of(unset).value, "(not set)", "{unset}");
        }
        assert!(
            !settings.iter().any(|setting| setting.key.starts_with("models")),
            "an example is no value in force"
        );
    }

    #[test]
    fn a_value_is_set_without_touching_the_rest_and_only_if_it_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, "# mine\n[session]\nmode = \"ask\" # careful\n").unwrap();
        set(&path, "session.mode", "edits").unwrap();
        set(&path, "session.max_steps", "9").unwrap();
        set(&path, "models.local.wire", "demo").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("# mine\n[session]\nmode = \"edits\" # careful\nmax_steps = 9\n"),
            "{text}"
        );
        let config = load::load(&path).unwrap();
        assert!(config.models.contains_key("local"));
        assert!(set(&path, "session.moed", "ask").is_err() && set(&path, "session.mode", "asc").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
