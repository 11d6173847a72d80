//! What lies between the daemon and a provider: TLS, HTTP/2, proxies.

use serde_json::{Value, json};
use tests::daemon::{Home, TestDaemon};
use tests::raw_server::{RawServer, answer, chat, says};
use tests::tls_server::{Offers, TlsServer};

const KEY: &str = "a-test-key";

/// A profile of Chat Completions whose failures are final.
fn config(base_url: &str, more: &str) -> String {
    format!(
        "default_model = \"far\"\n[models.far]\nwire = \"openai-chat\"\nbase_url = \"{base_url}\"\nmodel = \"m\"\n\
         api_key = \"{KEY}\"\ncontext_tokens = 200000\n{more}\n[limits]\nretries = 0\n"
    )
}

/// How a turn ended.
async fn turn(daemon: &TestDaemon) -> anyhow::Result<Value> {
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    Ok(daemon.turn_end(&session, 1).await?["data"].clone())
}

#[tokio::test]
async fn an_authority_of_one_s_own_is_trusted_where_the_system_is_told_and_http_2_is_spoken_where_offered()
-> anyhow::Result<()> {
    for (offers, http2) in [(Offers::Http2, true), (Offers::Http1, false)] {
        let server = TlsServer::start(offers, "over TLS").await?;
        let home = Home::new()?.config(&config(&format!("{}/v1", server.origin()), ""))?;
        let file = home.path().join("authority.pem");
        std::fs::write(&file, server.authority())?;
        let daemon = home.env("SSL_CERT_FILE", file.display().to_string()).start().await?;
        let end = turn(&daemon).await?;
        assert_eq!(end["outcome"], "completed", "{end}");
        let requests = server.requests();
        assert!(
            matches!(requests.as_slice(), [one] if one.http2 == http2 && one.authorization == format!("Bearer {KEY}")),
            "{requests:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_ends_the_turn_before_anything_is_sent() -> anyhow::Result<()> {
    let server = TlsServer::start(Offers::Http2, "caught").await?;
    let home = Home::new()?.config(&config(&format!("{}/v1", server.origin()), ""))?;
    let daemon = home.start().await?;
    let end = turn(&daemon).await?;
    assert_eq!(
        (&end["outcome"], &end["reason"]["kind"]),
        (&json!("failed"), &json!("connect")),
        "{end}"
    );
    assert!(
        end["reason"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("certificate")),
        "{end}"
    );
    assert_eq!(server.requests(), []);
    Ok(())
}

#[tokio::test]
async fn a_proxy_of_the_daemon_s_environment_gets_a_tunnel_and_never_the_key() -> anyhow::Result<()> {
    let refusal = || says(answer("403 Forbidden", "", "no"));
    let proxy = RawServer::start(vec![refusal(), refusal(), refusal()])?;
    let home = Home::new()?.config(&config("https://models.invalid/v1", ""))?;
    let daemon = home.env("HTTPS_PROXY", proxy.origin()).start().await?;
    let end = turn(&daemon).await?;
    assert_eq!(
        (&end["outcome"], &end["reason"]["kind"]),
        (&json!("failed"), &json!("connect")),
        "{end}"
    );
    let requests = proxy.requests();
    assert!(!requests.is_empty());
    for request in requests {
        assert!(
            request.text.starts_with("CONNECT models.invalid:443 HTTP/1.1\r\n"),
            "{request:?}"
        );
        assert!(!request.text.contains(KEY), "{request:?}");
    }
    Ok(())
}

#[tokio::test]
async fn no_proxy_a_server_of_this_machine_and_a_client_s_own_variables_go_past_the_proxy() -> anyhow::Result<()> {
    let proxy = RawServer::start(vec![says(answer("403 Forbidden", "", "no"))])?;
    // Named in NO_PROXY.
    let home = Home::new()?.config(&config("https://models.invalid/v1", ""))?;
    let home = home
        .env("HTTPS_PROXY", proxy.origin())
        .env("NO_PROXY", "models.invalid");
    let end = turn(&home.start().await?).await?;
    assert_eq!(end["reason"]["kind"], "connect", "{end}");
    // On this machine, where it would be spoken to in the clear.
    let server = RawServer::start(vec![says(chat("here"))])?;
    let home = Home::new()?.config(&config(&format!("{}/v1", server.origin()), ""))?;
    let home = home.env("HTTP_PROXY", proxy.origin()).env("ALL_PROXY", proxy.origin());
    let end = turn(&home.start().await?).await?;
    assert_eq!(end["outcome"], "completed", "{end}");
    // Said by a client of a daemon that runs: what one project exports is not for all sessions.
    let home = Home::new()?.config(&config("http://models.invalid/v1", "allow_http = true"))?;
    let daemon = home.start().await?;
    let mut command = daemon.home.command(tests::bins::bins()?.agentctl());
    command
        .args(["send", "go"])
        .env("HTTP_PROXY", proxy.origin())
        .env("http_proxy", proxy.origin());
    let ran = tests::daemon::run(command, "agentctl send").await?;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
    Ok(())
}
