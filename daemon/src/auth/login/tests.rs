//! Logins against a scripted provider: what is asked, what is believed, what is kept, and that many calls make one renewal.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oauth2::http::header::CONTENT_TYPE;
use oauth2::{HttpRequest, HttpResponse, http};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use url::Url;

use super::*;
use crate::config::parse;
use crate::config::profile::KeySource;

/// Answers requests in turn and notes what they asked.
struct Provider {
    answers: Mutex<VecDeque<(u16, Value)>>,
    asked: Mutex<Vec<BTreeMap<String, String>>>,
    /// Each answer takes one: a test that takes them away holds answers back.
    gate: Semaphore,
}

const GATE: usize = 1000;

#[async_trait]
impl TokenHttp for Provider {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailed> {
        let form = form(std::str::from_utf8(request.body()).unwrap_or_default());
        let answer = {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(form);
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
        };
        let _passed = self.gate.acquire().await;
        let (status, body) = answer.ok_or_else(|| HttpFailed("nobody answers".to_owned()))?;
        let response = http::Response::builder()
            .status(status)
            .header(CONTENT_TYPE, "application/json");
        response
            .body(body.to_string().into_bytes())
            .map_err(|error| HttpFailed(error.to_string()))
    }
}

impl Provider {
    fn new(answers: impl IntoIterator<Item = (u16, Value)>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
            gate: Semaphore::new(GATE),
        })
    }

    fn asked(&self) -> Vec<BTreeMap<String, String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn then(&self, status: u16, body: Value) {
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back((status, body));
    }

    fn hold(&self) {
        self.gate.forget_permits(GATE);
    }

    fn let_go(&self) {
        self.gate.add_permits(GATE);
    }

    async fn was_asked(&self, count: usize) {
        while self.asked().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

fn form(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn tokens(access: &str, refresh: &str, expires_in: u64) -> Value {
    json!({"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": expires_in})
}

/// The settings of a login at `origin`, with more lines.
pub(super) fn login(origin: &str, more: &str) -> anyhow::Result<Login> {
    let text = format!(
        "[models.a]\nwire = 'openai-chat'\nmodel = 'm'\nauth = 'login'\n{}",
        table("a", origin, more)
    );
    match &config(&text)?.models.get("a").map(|profile| profile.key.clone()) {
        Some(KeySource::Login(login)) => Ok(Login::clone(login)),
        other => anyhow::bail!("{other:?}"),
    }
}

fn table(profile: &str, origin: &str, more: &str) -> String {
    format!(
        "[models.{profile}.login]\nclient_id = 'c'\ntoken_url = '{origin}/token'\nauthorize_url = '{origin}/authorize'\n\
         device_url = '{origin}/device'\n{more}\n"
    )
}

fn config(text: &str) -> anyhow::Result<Config> {
    Ok(parse(std::path::Path::new("/c/config.toml"), text)?)
}

/// Two profiles of one account, and the account's provider.
struct Rig {
    logins: Arc<Logins>,
    provider: Arc<Provider>,
    login: Arc<Login>,
    redactor: Redactor,
    config: Config,
    dir: TempDir,
}

impl Rig {
    fn new(more: &str, answers: impl IntoIterator<Item = (u16, Value)>) -> anyhow::Result<Self> {
        let origin = "https://id.example";
        let profile = |name: &str, more: &str| {
            let table = table(name, origin, more);
            format!("[models.{name}]\nwire = 'openai-chat'\nmodel = 'm'\nauth = 'login'\n{table}")
        };
        let text = profile("a", &format!("scopes = ['x', 'y']\n{more}"))
            + &profile("b", &format!("scopes = ['y', 'z']\n{more}"));
        let config = config(&text)?;
        let Some(KeySource::Login(login)) = config.models.get("a").map(|profile| profile.key.clone()) else {
            anyhow::bail!("no login");
        };
        let dir = tempfile::tempdir()?;
        let (provider, redactor) = (Provider::new(answers), Redactor::default());
        let logins = logins(&config, &dir, &provider, &redactor, Patience::default());
        Ok(Self {
            logins,
            provider,
            login,
            redactor,
            config,
            dir,
        })
    }

    /// As `new`, with somebody logged in.
    async fn logged_in(more: &str, access: &str, expires_in: u64) -> anyhow::Result<Self> {
        let rig = Self::new(more, [])?;
        let account = rig.logins.account(Some("a"))?;
        account
            .take(&serde_json::from_value(tokens(access, "refresh-0", expires_in))?)
            .await?;
        Ok(rig)
    }

    async fn access(&self) -> Result<String, AuthError> {
        let access = self.logins.access("a", &self.login).await;
        access.map(|token| token.expose_secret().to_owned())
    }

    fn kept(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap_or_default()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("tokens.json")
    }

    /// The next life of the daemon.
    fn restarted(&self) -> Arc<Logins> {
        logins(
            &self.config,
            &self.dir,
            &self.provider,
            &self.redactor,
            Patience::default(),
        )
    }
}

fn logins(
    config: &Config,
    dir: &TempDir,
    provider: &Arc<Provider>,
    redactor: &Redactor,
    patience: Patience,
) -> Arc<Logins> {
    let http = Arc::clone(provider) as Arc<dyn TokenHttp>;
    Arc::new(Logins {
        patience,
        ..Logins::new(config, dir.path(), Keyring::system(), http, redactor)
    })
}

fn logged_out() -> Result<String, AuthError> {
    Err(AuthError::LoggedOut {
        profile: "a".to_owned(),
    })
}

#[tokio::test]
async fn calls_that_wait_for_a_token_share_one_renewal_and_it_is_kept() -> anyhow::Result<()> {
    let rig = Rig::logged_in("", "access-0", 0).await?;
    rig.provider.then(200, tokens("access-1", "refresh-1", 3600));
    rig.provider.hold();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (logins, login) = (Arc::clone(&rig.logins), Arc::clone(&rig.login));
            tokio::spawn(async move { logins.access("b", &login).await })
        })
        .collect();
    rig.provider.was_asked(1).await;
    rig.provider.let_go();
    for call in calls {
        assert_eq!(call.await??.expose_secret(), "access-1");
    }
    let asked = rig.provider.asked();
    assert_eq!(asked.len(), 1);
    let asked: Vec<Option<&str>> = ["grant_type", "refresh_token", "client_id"]
        .iter()
        .map(|name| asked.first()?.get(*name).map(String::as_str))
        .collect();
    assert_eq!(asked, [Some("refresh_token"), Some("refresh-0"), Some("c")]);
    assert!(
        rig.kept().contains("refresh-1") && !rig.kept().contains("refresh-0"),
        "{}",
        rig.kept()
    );
    let next = rig.restarted().access("a", &rig.login).await?;
    assert_eq!(next.expose_secret(), "access-1");
    assert_eq!(rig.provider.asked().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_renewal_outlives_the_call_that_asked_for_it() -> anyhow::Result<()> {
    let rig = Rig::logged_in("", "access-0", 0).await?;
    rig.provider.then(200, tokens("access-1", "refresh-1", 3600));
    rig.provider.hold();
    {
        let call = rig.access();
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => anyhow::bail!("nobody has answered"),
            () = rig.provider.was_asked(1) => {}
        }
    }
    rig.provider.let_go();
    assert_eq!(rig.access().await?, "access-1");
    assert_eq!(rig.provider.asked().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_one_that_was_replaced_stays() -> anyhow::Result<()> {
    let rig = Rig::logged_in("", "access-0", 3600).await?;
    assert_eq!(rig.access().await?, "access-0");
    rig.provider.then(200, tokens("access-1", "refresh-1", 3600));
    rig.logins.reject(&rig.login, &"access-0".into());
    assert_eq!(rig.access().await?, "access-1");
    // A call that was slower learns the same of the same token.
    rig.logins.reject(&rig.login, &"access-0".into());
    assert_eq!(rig.access().await?, "access-1");
    assert_eq!(rig.provider.asked().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_refresh_token_that_is_over_ends_the_login_and_is_not_tried_again() -> anyhow::Result<()> {
    let rig = Rig::logged_in("", "access-0", 0).await?;
    rig.provider.then(400, json!({"error": "invalid_grant"}));
    assert_eq!(rig.access().await, logged_out());
    assert_eq!(rig.access().await, logged_out());
    assert_eq!(rig.provider.asked().len(), 1);
    assert!(!rig.kept().contains("refresh-0"));
    Ok(())
}

#[tokio::test]
async fn a_provider_out_of_reach_ends_no_login() -> anyhow::Result<()> {
    let rig = Rig::logged_in("", "access-0", 0).await?;
    assert_eq!(rig.access().await?, "access-0", "what is due may still hold");
    rig.logins.reject(&rig.login, &"access-0".into());
    let refused = rig.access().await;
    assert!(refused.as_ref().is_err_and(AuthError::passes), "{refused:?}");
    rig.provider.then(503, json!({"error": "invalid_client"}));
    let refused = rig.access().await;
    assert!(matches!(refused, Err(AuthError::Login { .. })), "{refused:?}");
    rig.provider.then(200, tokens("access-1", "refresh-1", 3600));
    assert_eq!(rig.access().await?, "access-1");
    Ok(())
}

#[tokio::test]
async fn a_logout_during_a_renewal_stays_a_logout() -> anyhow::Result<()> {
    let rig = Rig::logged_in("", "access-0", 0).await?;
    rig.provider.then(200, tokens("access-1", "refresh-1", 3600));
    rig.provider.hold();
    let (logins, login) = (Arc::clone(&rig.logins), Arc::clone(&rig.login));
    let call = tokio::spawn(async move { logins.access("a", &login).await });
    rig.provider.was_asked(1).await;
    let out = rig.logins.logout(None).await?;
    assert!(out.was_in && out.revoked == Revoked::NotAsked, "{out:?}");
    rig.provider.let_go();
    assert!(call.await?.is_err());
    assert_eq!(rig.access().await, logged_out());
    assert!(!rig.kept().contains("refresh"), "{}", rig.kept());
    Ok(())
}

#[tokio::test]
async fn a_logout_ends_the_tokens_at_the_provider_too_and_says_if_it_could_not() -> anyhow::Result<()> {
    let more = "revoke_url = 'https://id.example/revoke'";
    let rig = Rig::logged_in(more, "access-0", 3600).await?;
    rig.provider.then(200, json!({}));
    let out = rig.logins.logout(Some("b")).await?;
    assert_eq!(
        (out.profiles, out.was_in, out.revoked),
        (vec!["a".to_owned(), "b".to_owned()], true, Revoked::Yes)
    );
    let asked = rig.provider.asked();
    assert_eq!(
        asked.first().and_then(|form| form.get("token")).map(String::as_str),
        Some("refresh-0")
    );
    let again = rig.logins.logout(None).await?;
    assert_eq!((again.was_in, again.revoked), (false, Revoked::NotAsked));

    let rig = Rig::logged_in(more, "access-0", 3600).await?;
    let out = rig.logins.logout(None).await?;
    assert!(out.revoked == Revoked::Failed && out.problem.is_some(), "{out:?}");
    assert_eq!(rig.access().await, logged_out());
    Ok(())
}

#[tokio::test]
async fn a_code_is_asked_about_as_slowly_as_the_provider_wants() -> anyhow::Result<()> {
    let device = json!({"device_code": "d", "user_code": "AB-CD", "verification_uri": "https://id.example/go", "expires_in": 60, "interval": 2});
    let rig = Rig::new("", [(200, device)])?;
    let pending = |error: &str| (400, json!({"error": error}));
    let account = rig.logins.account(None)?;
    let code = account
        .client()
        .device_code()
        .await
        .ok_or_else(|| anyhow::anyhow!("no way"))??;
    for (status, answer) in [
        pending("authorization_pending"),
        pending("slow_down"),
        pending("authorization_pending"),
        (200, tokens("access-1", "refresh-1", 60)),
    ] {
        rig.provider.then(status, answer);
    }
    let waited = Mutex::new(Vec::new());
    let wait = |wanted: Duration| {
        waited
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wanted.as_secs());
        std::future::ready(())
    };
    account.client().device_tokens(&code, wait).await?;
    assert_eq!(waited.into_inner().unwrap_or_default(), [2, 7, 7]);
    let asked = rig.provider.asked();
    let scope = asked.first().and_then(|form| form.get("scope")).map(String::as_str);
    assert_eq!(scope, Some("x y z"), "one token has to be good for both profiles");
    assert_eq!(
        asked
            .last()
            .and_then(|form| form.get("device_code"))
            .map(String::as_str),
        Some("d")
    );
    Ok(())
}

#[tokio::test]
async fn a_login_by_code_shows_what_to_do_and_ends_with_the_person_s_answer() -> anyhow::Result<()> {
    let device = |uri: &str| json!({"device_code": "d", "user_code": "AB-CD", "verification_uri": uri, "expires_in": 60, "interval": 0});
    let rig = Rig::new(
        "",
        [
            (200, device("https://id.example/go")),
            (200, tokens("access-1", "refresh-1", 3600)),
        ],
    )?;
    let by_code = || LoginParams {
        profile: Some("b".to_owned()),
        way: Some(LoginWay::Device),
    };
    let started = rig.logins.begin(by_code()).await?;
    assert_eq!(
        (started.host.as_str(), started.code.as_deref()),
        ("id.example", Some("AB-CD"))
    );
    let done = rig.logins.wait(&started.login).await?;
    assert!(
        done.renews && done.profiles == ["a", "b"] && done.kept == rig.file().display().to_string(),
        "{done:?}"
    );
    assert_eq!(
        rig.logins.wait(&started.login).await?,
        done,
        "who asks later hears the same"
    );
    assert_eq!(rig.access().await?, "access-1");

    rig.provider.then(200, device("https://id.example/go"));
    rig.provider.then(
        400,
        json!({"error": "access_denied", "error_description": "no\u{1b}[2J"}),
    );
    let started = rig.logins.begin(by_code()).await?;
    let refused = rig.logins.wait(&started.login).await;
    let words = "access_denied: no [2J".to_owned();
    assert_eq!(
        refused,
        Err(LoginError::Refused {
            host: "id.example".to_owned(),
            words
        })
    );
    assert_eq!(rig.access().await?, "access-1", "a login that fails takes nothing away");

    rig.provider.then(200, device("javascript:alert(1)"));
    assert!(matches!(
        rig.logins.begin(by_code()).await,
        Err(LoginError::Unexpected { .. })
    ));
    Ok(())
}

/// What a browser gets that asks `redirect` with `query`, as `method` and with this `Host`; `None` where nobody listens.
async fn browse(redirect: &Url, method: &str, host: &str, target: &str) -> Option<String> {
    let port = redirect.port()?;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// A login by browser that waits, as the browser sees it.
struct Waiting {
    number: String,
    asked: BTreeMap<String, String>,
    redirect: Url,
}

impl Waiting {
    async fn begin(logins: &Logins) -> anyhow::Result<Self> {
        let started = logins.begin(LoginParams::default()).await?;
        let url = Url::parse(&started.url)?;
        let asked = form(url.query().unwrap_or_default());
        let redirect = Url::parse(asked.get("redirect_uri").map_or("", String::as_str))?;
        Ok(Self {
            number: started.login,
            asked,
            redirect,
        })
    }

    fn of(&self, name: &str) -> &str {
        self.asked.get(name).map_or("", String::as_str)
    }

    async fn answer(&self, query: &str) -> Option<String> {
        let host = format!("127.0.0.1:{}", self.redirect.port()?);
        browse(
            &self.redirect,
            "GET",
            &host,
            &format!("{}?{query}", self.redirect.path()),
        )
        .await
    }
}

#[tokio::test]
async fn one_right_request_ends_a_login_by_browser_and_nothing_else_does() -> anyhow::Result<()> {
    let rig = Rig::new("", [(200, tokens("access-1", "refresh-1", 3600))])?;
    let waiting = Waiting::begin(&rig.logins).await?;
    assert_eq!(
        (waiting.of("response_type"), waiting.of("code_challenge_method")),
        ("code", "S256")
    );
    assert_eq!((waiting.of("client_id"), waiting.of("scope")), ("c", "x y z"));
    let (redirect, port) = (&waiting.redirect, waiting.redirect.port().unwrap_or_default());
    assert_eq!(redirect.host_str(), Some("127.0.0.1"));
    assert!(redirect.path().len() > 20, "{redirect}");

    let own = format!("127.0.0.1:{port}");
    let query = format!("{}?code=the-code&state={}", redirect.path(), waiting.of("state"));
    let idle = TcpStream::connect(("127.0.0.1", port)).await?;
    for (method, host, target, status) in [
        ("GET", "evil.example", query.as_str(), "421"),
        ("GET", &format!("localhost:{port}"), &query, "421"),
        ("GET", "127.0.0.1", &query, "421"),
        ("POST", &own, &query, "405"),
        ("GET", &own, "/favicon.ico?x", "404"),
        ("GET", &own, redirect.path(), "404"),
        ("G\u{1}T", &own, &query, "400"),
        ("GET", &own, &format!("/{}", "x".repeat(20_000)), "431"),
    ] {
        let answer = browse(redirect, method, host, target).await.unwrap_or_default();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{method} {host} {target:.40}: {answer}"
        );
    }
    let answer = waiting
        .answer(&format!("state={}&code=the-code&x=reflected", waiting.of("state")))
        .await;
    let answer = answer.unwrap_or_default();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("default-src 'none'"),
        "{answer}"
    );
    assert!(!answer.contains("the-code") && !answer.contains("reflected"));
    rig.logins.wait(&waiting.number).await?;
    assert_eq!(waiting.answer("state=x&code=y").await, None, "it takes one request");
    drop(idle);

    let asked = rig.provider.asked();
    let sent = |name: &str| {
        asked
            .first()
            .and_then(|form| form.get(name))
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(
        (sent("code"), sent("redirect_uri")),
        ("the-code".to_owned(), redirect.to_string())
    );
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(sent("code_verifier")));
    assert_eq!(challenge, waiting.of("code_challenge"));
    assert_eq!(rig.access().await?, "access-1");
    Ok(())
}

#[tokio::test]
async fn an_answer_that_is_not_to_this_login_gets_no_tokens() -> anyhow::Result<()> {
    let more = "issuer = 'https://id.example'";
    for (issuer, query, reason) in [
        ("", "code=c&state=other", "`state`"),
        ("", "code=c", "`state`"),
        ("", "error=access_denied&state=other", "`state`"),
        ("", "code=c&state=STATE&state=STATE", "twice"),
        ("", "code=c&code=d&state=STATE", "twice"),
        ("", "code=&state=STATE", "`code`"),
        ("", "code=c&state=STATE&iss=https%3A%2F%2Fevil.example", "issuer"),
        (
            more,
            "code=c&state=STATE&iss=https%3A%2F%2Fid.example%2Fother",
            "issuer",
        ),
        (
            "",
            "error=access_denied&error_description=no&state=STATE",
            "access_denied: no",
        ),
    ] {
        let rig = Rig::new(issuer, [(200, tokens("access-1", "refresh-1", 3600))])?;
        let waiting = Waiting::begin(&rig.logins).await?;
        let page = waiting.answer(&query.replace("STATE", waiting.of("state"))).await;
        assert!(
            page.is_some_and(|page| page.starts_with("HTTP/1.1 200 ")),
            "the page is the same for everybody"
        );
        let ended = rig.logins.wait(&waiting.number).await;
        assert!(
            ended.as_ref().is_err_and(|error| error.to_string().contains(reason)),
            "{query}: {ended:?}"
        );
        assert_eq!(waiting.answer(query).await, None);
        assert!(rig.provider.asked().is_empty(), "{query}");
    }
    for (issuer, query) in [
        ("", "code=c&state=STATE&iss=https%3A%2F%2Fid.example%2Fany"),
        (more, "code=c&state=STATE&iss=https%3A%2F%2Fid.example"),
        (more, "code=c&state=STATE"),
    ] {
        let rig = Rig::new(issuer, [(200, tokens("access-1", "refresh-1", 3600))])?;
        let waiting = Waiting::begin(&rig.logins).await?;
        waiting.answer(&query.replace("STATE", waiting.of("state"))).await;
        rig.logins.wait(&waiting.number).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_login_that_nobody_finishes_ends_and_nobody_listens_any_more() -> anyhow::Result<()> {
    let rig = Rig::new("", [])?;
    let brief = Patience {
        browser: Duration::from_millis(30),
        ..Patience::default()
    };
    let logins = logins(&rig.config, &rig.dir, &rig.provider, &rig.redactor, brief);
    let waiting = Waiting::begin(&logins).await?;
    assert_eq!(
        logins.wait(&waiting.number).await,
        Err(LoginError::TimedOut(brief.browser))
    );
    assert_eq!(waiting.answer("code=c&state=s").await, None);

    let waiting = Waiting::begin(&rig.logins).await?;
    rig.logins.cancel(&waiting.number)?;
    assert_eq!(rig.logins.wait(&waiting.number).await, Err(LoginError::Cancelled));
    assert_eq!(waiting.answer("code=c&state=s").await, None);
    assert_eq!(rig.logins.cancel("another"), Err(LoginError::Unknown));
    Ok(())
}

#[tokio::test]
async fn a_new_login_takes_the_registered_address_over_from_the_one_that_waits() -> anyhow::Result<()> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let rig = Rig::new(&format!("redirect = 'http://localhost:{free}/callback'"), [])?;
    let first = Waiting::begin(&rig.logins).await?;
    assert_eq!(first.redirect.as_str(), format!("http://localhost:{free}/callback"));
    let second = Waiting::begin(&rig.logins).await?;
    assert_eq!(rig.logins.wait(&first.number).await, Err(LoginError::Unknown));
    let query = format!("/callback?error=x&state={}", second.of("state"));
    let answer = browse(&second.redirect, "GET", &format!("localhost:{free}"), &query).await;
    assert!(answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200 ")));
    assert!(matches!(
        rig.logins.wait(&second.number).await,
        Err(LoginError::Refused { .. })
    ));
    Ok(())
}

#[tokio::test]
async fn no_error_repeats_what_a_provider_answered_in_place_of_tokens() -> anyhow::Result<()> {
    for body in [
        json!({"access_token": 5, "refresh_token": "hidden"}),
        json!({"access_token": "hidden", "token_type": 7}),
        json!(["hidden"]),
        json!("hidden"),
    ] {
        let rig = Rig::new("", [(200, body)])?;
        let waiting = Waiting::begin(&rig.logins).await?;
        waiting.answer(&format!("code=c&state={}", waiting.of("state"))).await;
        let error = rig.logins.wait(&waiting.number).await.err();
        assert!(matches!(error, Some(LoginError::Unexpected { .. })), "{error:?}");
        assert!(error.is_some_and(|error| !format!("{error} {error:?}").contains("hidden")));
    }
    Ok(())
}

#[tokio::test]
async fn tokens_count_as_keys_that_must_not_leave() -> anyhow::Result<()> {
    let rig = Rig::logged_in("client_secret = 'client-secret'", "access-0-token", 0).await?;
    rig.provider
        .then(200, tokens("access-1-token", "refresh-1-token", 3600));
    rig.access().await?;
    let text = "access-0-token refresh-0 access-1-token refresh-1-token client-secret";
    let mark = "[redacted: profile a]";
    assert_eq!(rig.redactor.clean(text), [mark; 5].join(" "));
    let later = Redactor::default();
    let logins = logins(&rig.config, &rig.dir, &rig.provider, &later, Patience::default());
    logins.access("a", &rig.login).await?;
    assert_eq!(later.clean("access-1-token refresh-1-token"), [mark; 2].join(" "));
    Ok(())
}

#[tokio::test]
async fn a_login_is_found_by_its_profile_and_without_one_if_it_is_the_only_one() -> anyhow::Result<()> {
    let rig = Rig::new("", [])?;
    assert_eq!(
        rig.logins.logout(Some("c")).await,
        Err(LoginError::NoLogin("c".to_owned()))
    );
    let device_only = "[models.a]\nwire = 'openai-chat'\nmodel = 'm'\nauth = 'login'\n[models.a.login]\nclient_id = 'c'\n\
                       token_url = 'https://id.example/token'\ndevice_url = 'https://id.example/device'\n";
    let more = device_only.replace("models.a", "models.b").replace("'c'", "'d'");
    let two = config(&format!("{device_only}{more}"))?;
    let logins = logins(&two, &rig.dir, &rig.provider, &rig.redactor, Patience::default());
    let unnamed = logins.begin(LoginParams::default()).await.err();
    assert!(matches!(unnamed, Some(LoginError::Unnamed(names)) if names.len() == 2));
    let browser = LoginParams {
        profile: Some("a".to_owned()),
        way: Some(LoginWay::Browser),
    };
    assert!(matches!(
        logins.begin(browser).await,
        Err(LoginError::NoWay {
            endpoint: "authorize_url",
            ..
        })
    ));
    Ok(())
}

#[tokio::test]
async fn a_changed_configuration_keeps_who_is_logged_in_and_knows_its_new_profiles() -> anyhow::Result<()> {
    let rig = Rig::logged_in("", "access-0", 3600).await?;
    let profile = |name: &str, origin: &str| {
        let table = table(name, origin, "");
        format!("[models.{name}]\nwire = 'openai-chat'\nmodel = 'm'\nauth = 'login'\n{table}")
    };
    let changed = profile("c", "https://id.example") + &profile("d", "https://other.example");
    // Kept in memory: nothing is read again.
    std::fs::remove_file(rig.file())?;
    rig.logins.follow(&config(&changed)?);
    assert_eq!(rig.access().await?, "access-0");
    assert_eq!(rig.logins.account(Some("c"))?.profiles(), ["c"]);
    assert!(rig.logins.account(Some("d")).is_ok());
    assert_eq!(
        rig.logins.account(Some("a")).err(),
        Some(LoginError::NoLogin("a".to_owned()))
    );
    Ok(())
}
