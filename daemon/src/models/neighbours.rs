//! Model servers on this machine: Ollama, llama.cpp, LM Studio and vLLM on their usual ports, looked for only when nothing is configured
//! and no key is there. A server is asked only if its listener belongs to the user, to root or to a system account, since anybody may
//! listen on a free port; all are asked at once, within 150 ms.

use super::listeners::{all, served};
use crate::auth::Choice;
use crate::config::profile::{DEFAULT_MAX_OUTPUT_TOKENS, KeySource, Profile, Timeouts, Wire};
use crate::provider::Http;
use crate::provider::listing::{self, Listed};
use protocol::method::LocalServer;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the servers get to answer, all of them together.
const LIMIT: Duration = Duration::from_millis(150);

/// How long what was found, or not found, is believed.
const FRESH: Duration = Duration::from_secs(5);

/// How long a server that is gone still counts, so that a turn it began fails with its name instead of going on with another model.
const KEPT: Duration = Duration::from_secs(120);

/// Ids below it belong to the system's accounts, not to people.
const FIRST_PERSON: u32 = 1_000;

/// A kind of server.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    port: u16,
    /// Where it lists the models it has loaded, if it tells them from those it could load.
    loaded: Option<&'static str>,
}

/// The preferred one first.
const KINDS: [Kind; 4] = [
    Kind {
        name: "ollama",
        port: 11434,
        loaded: Some("/api/ps"),
    },
    Kind {
        name: "llama.cpp",
        port: 8080,
        loaded: None,
    },
    Kind {
        name: "lm-studio",
        port: 1234,
        loaded: Some("/api/v0/models"),
    },
    Kind {
        name: "vllm",
        port: 8000,
        loaded: None,
    },
];

/// What was found on this machine.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    seen: Mutex<Option<Seen>>,
    /// Held by whoever looks: the others wait for what it finds.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Seen {
    /// When it was looked.
    at: Instant,
    /// What was found, and when its server answered last.
    found: Option<(Found, Instant)>,
}

/// A model of a server on this machine.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) choice: Choice,
    pub(super) server: LocalServer,
}

impl Neighbours {
    /// The model found last.
    pub(super) fn found(&self) -> Option<Found> {
        self.seen()
            .as_ref()
            .and_then(|seen| seen.found.as_ref().map(|(found, _)| found.clone()))
    }

    /// Looks again, unless somebody just has.
    pub(super) async fn look(&self, http: &Http) {
        let _turn = self.looking.lock().await;
        if self.seen().as_ref().is_some_and(|seen| seen.at.elapsed() < FRESH) {
            return;
        }
        let before = self.seen().as_ref().and_then(|seen| seen.found.clone());
        let found = look(&KINDS, before.as_ref().map(|(found, _)| found), http).await;
        let now = Instant::now();
        let kept = before.filter(|(_, answered)| answered.elapsed() < KEPT);
        *self.seen() = Some(Seen {
            at: now,
            found: found.map(|found| (found, now)).or(kept),
        });
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        // One assignment cannot leave the value half made.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a listener of this user may be sent what people write.
fn trusted(uid: u32) -> bool {
    uid < FIRST_PERSON || uid == rustix::process::getuid().as_raw()
}

/// The first of `kinds` that answers with a model. The model that was chosen before stays while its server has it: servers load and unload
/// models by themselves.
async fn look(kinds: &[Kind], before: Option<&Found>, http: &Http) -> Option<Found> {
    let listeners = all();
    let here = kinds
        .iter()
        .filter_map(|kind| Some((*kind, served(&listeners, kind.port, trusted)?)));
    let asked: Vec<_> = here
        .map(|(kind, (address, uid))| ask(kind, SocketAddr::new(address, kind.port), uid, before, http))
        .collect();
    if asked.is_empty() {
        return None;
    }
    // Each has a limit of its own; together they take no longer.
    futures::future::join_all(asked).await.into_iter().flatten().next()
}

async fn ask(kind: Kind, address: SocketAddr, uid: u32, before: Option<&Found>, http: &Http) -> Option<Found> {
    let host = match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let base = format!("http://{host}:{}", address.port());
    let root = profile(kind.name, &base, "");
    let api = profile(kind.name, &format!("{base}/v1"), "");
    let (loaded, available) = tokio::join!(
        async {
            match kind.loaded {
                Some(path) => listing::loaded(&root, http, path, LIMIT).await.ok(),
                None => None,
            }
        },
        listing::available(&api, None, http, LIMIT)
    );
    // Who answers the one question and not the other speaks another protocol.
    let available = available.ok()?;
    let before = before.filter(|found| found.choice.profile.base_url == api.base_url && found.server.uid == uid);
    let has = |found: &&Found| available.iter().any(|model| model.id == found.choice.profile.model);
    if let Some(before) = before.filter(has) {
        still_of(uid, address)?;
        return Some(before.clone());
    }
    let model = loaded
        .into_iter()
        .flatten()
        .chain(available)
        .find(|model| is_chat(&model.id))?;
    still_of(uid, address)?;
    let Listed { id, context_tokens, .. } = model;
    let server = LocalServer {
        name: kind.name.to_owned(),
        address: format!("{host}:{}", address.port()),
        model: id.clone(),
        owner: owner(uid),
        uid,
    };
    let notice = format!(
        "using {} at {} with the model {id} (local server run by {}; no key is set)",
        server.name, server.address, server.owner
    );
    let profile = Profile {
        context_tokens,
        ..profile(kind.name, &format!("{base}/v1"), &id)
    };
    let choice = Choice {
        profile,
        notice: Some(notice),
    };
    Some(Found { choice, server })
}

/// The port may have changed hands while it was asked.
fn still_of(uid: u32, address: SocketAddr) -> Option<()> {
    let (_, now) = served(&all(), address.port(), trusted)?;
    (now == uid).then_some(())
}

/// Embedding models are listed too and cannot answer.
fn is_chat(id: &str) -> bool {
    !id.to_ascii_lowercase().contains("embed")
}

fn owner(uid: u32) -> String {
    match uid {
        0 => "root".to_owned(),
        own if own == rustix::process::getuid().as_raw() => "you".to_owned(),
        system => format!("system account {system}"),
    }
}

fn profile(name: &str, base_url: &str, model: &str) -> Profile {
    Profile {
        name: name.to_owned(),
        wire: Wire::OpenaiChat,
        base_url: base_url.to_owned(),
        model: model.to_owned(),
        key: KeySource::None,
        context_tokens: None,
        context_budget_tokens: None,
        max_output_tokens: DEFAULT_MAX_OUTPUT_TOKENS,
        temperature: None,
        top_p: None,
        effort: None,
        headers: BTreeMap::new(),
        prices: None,
        allow_http: false,
        timeouts: Timeouts::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server that answers each path with the JSON it has for it, else 404; without any, it says nothing.
    async fn serve(answers: &'static [(&'static str, &'static str)]) -> anyhow::Result<u16> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let count = socket.read(&mut request).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(request.get(..count).unwrap_or_default()).into_owned();
                    if answers.is_empty() {
                        return std::future::pending().await;
                    }
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let answer = answers.iter().find(|(known, _)| *known == path);
                    let (status, body) = answer.map_or(("404 Not Found", "{}"), |(_, body)| ("200 OK", *body));
                    let length = body.len();
                    let head = format!(
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                    );
                    let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
                });
            }
        });
        Ok(port)
    }

    /// Whether this machine says who listens.
    fn can_look() -> bool {
        let can = !all().is_empty() || cfg!(target_os = "linux");
        if !can {
            crate::skip::note("this system has no /proc/net/tcp");
        }
        can
    }

    fn kind(name: &'static str, port: u16, loaded: Option<&'static str>) -> Kind {
        Kind { name, port, loaded }
    }

    #[tokio::test]
    async fn the_loaded_model_answers_with_its_window_and_the_notice_names_address_and_owner() -> anyhow::Result<()> {
        if !can_look() {
            return Ok(());
        }
        let port = serve(&[
            (
                "/v1/models",
                r#"{"data":[{"id":"nomic-embed-text"},{"id":"qwen3"},{"id":"llama3"}]}"#,
            ),
            ("/api/ps", r#"{"models":[{"name":"llama3","context_length":8192}]}"#),
        ])
        .await?;
        let choice = look(&[kind("ollama", port, Some("/api/ps"))], None, &Http::default()).await;
        let Found { choice, server } = choice.ok_or_else(|| anyhow::anyhow!("nothing was found"))?;
        assert_eq!(
            (server.name.as_str(), server.address, server.uid),
            (
                "ollama",
                format!("127.0.0.1:{port}"),
                rustix::process::getuid().as_raw()
            )
        );
        assert_eq!(
            (choice.profile.model.as_str(), choice.profile.context_tokens),
            ("llama3", Some(8192))
        );
        assert_eq!(choice.profile.base_url, format!("http://127.0.0.1:{port}/v1"));
        let notice = choice.notice.unwrap_or_default();
        assert!(
            notice.contains(&format!("ollama at 127.0.0.1:{port}")) && notice.contains("llama3"),
            "{notice}"
        );
        Ok(())
    }

    #[tokio::test]
    async fn without_a_loaded_model_the_first_that_can_talk_is_taken() -> anyhow::Result<()> {
        if !can_look() {
            return Ok(());
        }
        let port = serve(&[("/v1/models", r#"{"data":[{"id":"text-embed"},{"id":"qwen3"}]}"#)]).await?;
        let choice = look(&[kind("vllm", port, None)], None, &Http::default()).await;
        let mut before = choice.clone().ok_or_else(|| anyhow::anyhow!("nothing was found"))?;
        before.choice.profile.model = "text-embed".to_owned();
        let again = look(&[kind("vllm", port, None)], Some(&before), &Http::default()).await;
        assert_eq!(
            again.map(|found| found.choice.profile.model),
            Some("text-embed".to_owned()),
            "a choice stays while it can"
        );
        assert_eq!(choice.map(|found| found.choice.profile.model), Some("qwen3".to_owned()));
        Ok(())
    }

    #[tokio::test]
    async fn a_server_that_is_silent_or_is_no_model_server_is_passed_over_in_time() -> anyhow::Result<()> {
        if !can_look() {
            return Ok(());
        }
        let (silent, other) = (serve(&[]).await?, serve(&[("/", "{}")]).await?);
        let third = serve(&[("/v1/models", r#"{"data":[{"id":"m"}]}"#)]).await?;
        let http = Http::default();
        let kinds = [
            kind("a", silent, Some("/api/ps")),
            kind("b", other, None),
            kind("c", third, None),
        ];
        // The client is built before, as it reads the system's certificates.
        let _ = look(&[kind("c", third, None)], None, &http).await;
        let begun = Instant::now();
        let choice = look(&kinds, None, &http).await;
        assert_eq!(choice.map(|found| found.choice.profile.name), Some("c".to_owned()));
        assert!(
            begun.elapsed() < 10 * LIMIT,
            "all are asked at once: {:?}",
            begun.elapsed()
        );
        Ok(())
    }

    #[test]
    fn only_the_user_root_and_the_system_s_accounts_are_trusted() {
        let own = rustix::process::getuid().as_raw();
        assert!(trusted(own) && trusted(0) && trusted(FIRST_PERSON - 1));
        assert!(!trusted(if own == 4_000 { 4_001 } else { 4_000 }));
    }
}
