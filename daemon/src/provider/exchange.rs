//! Model calls over real connections, against a scripted server: what is sent, what is waited for, what is let out.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::net::SocketAddr;
use std::time::Duration;

use protocol::Content;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;

const KEY: &str = "sk-very-secret/key";

const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

/// What the server does after it has written its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Close,
    /// Keeps the connection until the client closes it.
    Hold,
}

/// Answers one connection with `answer` and gives back what the client sent; with `Hold` once the client is gone.
async fn serve(answer: String, after: After) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read_request(&mut socket).await;
        socket.write_all(answer.as_bytes()).await.unwrap();
        match after {
            After::Close => socket.shutdown().await.unwrap_or_default(),
            After::Hold => {
                let mut rest = Vec::new();
                let _closed = socket.read_to_end(&mut rest).await;
            }
        }
        request
    });
    (address, task)
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn profile(wire: Wire, address: SocketAddr) -> Profile {
    let text = format!("wire = '{wire}'\nbase_url = 'http://{address}'\nmodel = 'm'\nauth = 'none'");
    toml::from_str(&text).unwrap()
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: String::new(),
        messages: vec![Message::User {
            content: vec![Content::text("hello")],
        }],
        tools: Vec::new(),
        max_output_tokens: 100,
        temperature: None,
        top_p: None,
        effort: None,
        cache_key: None,
        interactive: false,
    }
}

/// Keeps the texts.
#[derive(Default)]
struct Texts(String);

impl Sink for Texts {
    fn open(&mut self, _: usize, _: ItemKind) {}
    fn push(&mut self, _: usize, text: &str) {
        self.0.push_str(text);
    }
}

async fn call(profile: &Profile) -> Result<ModelReply, ModelError> {
    let provider = connect(profile, Some(SecretString::from(KEY)), &Http::default())?;
    provider.call(&request(), &mut Texts::default()).await
}

/// One call to a server that answers with `answer`.
async fn answered(wire: Wire, answer: String, after: After) -> (Result<ModelReply, ModelError>, String) {
    let (address, server) = serve(answer, after).await;
    let mut profile = profile(wire, address);
    profile.timeouts.first_byte = Duration::from_millis(300);
    profile.timeouts.idle = Duration::from_millis(200);
    let result = call(&profile).await;
    (result, server.await.unwrap())
}

fn chat_stream(rest: &str) -> String {
    format!("{SSE}\r\ndata: {{\"id\":\"c\",\"choices\":[{{\"delta\":{{\"content\":\"Hi\"}}}}]}}\n\n{rest}")
}

#[tokio::test]
async fn the_key_goes_in_the_header_of_the_wire() {
    let stream = std::fs::read_to_string("../tests/streams/anthropic-messages/parallel-tools.sse").unwrap();
    let (reply, sent) = answered(Wire::AnthropicMessages, format!("{SSE}\r\n{stream}"), After::Close).await;
    assert_eq!(reply.unwrap().stop, Stop::ToolUse);
    assert!(sent.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("x-api-key: {KEY}\r\n")) && sent.contains("anthropic-version: 2023-06-01\r\n"));
    let (reply, sent) = answered(Wire::OpenaiChat, chat_stream("data: [DONE]\n\n"), After::Close).await;
    assert_eq!(
        reply.unwrap().items,
        [ReplyItem::Text {
            text: "Hi".to_owned(),
            private: None
        }]
    );
    assert!(sent.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("authorization: Bearer {KEY}\r\n")));
}

#[tokio::test]
async fn a_base_url_with_the_version_does_not_get_it_twice() {
    let (address, server) = serve(format!("{SSE}\r\n"), After::Close).await;
    let mut profile = profile(Wire::AnthropicMessages, address);
    profile.base_url.push_str("/v1/");
    assert!(call(&profile).await.is_err());
    assert!(server.await.unwrap().starts_with("POST /v1/messages HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = elsewhere.local_addr().unwrap();
    let answer = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{target}/\r\ncontent-length: 0\r\n\r\n");
    let (result, _) = answered(Wire::OpenaiChat, answer, After::Close).await;
    let error = result.unwrap_err();
    assert_eq!(error.class, Class::BadRequest);
    assert!(error.message.contains("redirect"), "{error}");
    let visited = tokio::select! {
        biased;
        _ = elsewhere.accept() => true,
        () = std::future::ready(()) => false,
    };
    assert!(!visited, "nothing reached the other server");
}

#[tokio::test]
async fn an_error_body_does_not_leak_the_key_and_is_bounded() {
    let body = format!(
        "{{\"error\":{{\"message\":\"bad key {KEY} sk-very-secret%2Fkey {}\"}}}}",
        "x".repeat(100_000)
    );
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let error = answered(Wire::OpenaiChat, answer, After::Close).await.0.unwrap_err();
    assert_eq!(error.class, Class::Authentication);
    assert!(!error.message.contains("secret"), "{error}");
    assert!(error.message.len() < 4096);
}

#[tokio::test]
async fn an_error_event_does_not_leak_the_key() {
    // The second stands where a long message is cut.
    for before in [0, 2010] {
        let words = format!("{}{KEY} overloaded", "x".repeat(before));
        for metadata in [String::new(), format!(",\"metadata\":{{\"raw\":\"{words}\"}}")] {
            let event = format!("data: {{\"error\":{{\"message\":\"{words}\",\"code\":503{metadata}}}}}\n\n");
            let error = answered(Wire::OpenaiChat, chat_stream(&event), After::Close)
                .await
                .0
                .unwrap_err();
            assert_eq!(error.class, Class::Overloaded);
            assert!(!error.message.contains("sk-"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_rate_limit_says_how_long_to_wait() {
    let answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\n{}".to_owned();
    let error = answered(Wire::OpenaiChat, answer, After::Close).await.0.unwrap_err();
    assert_eq!(
        (error.class, error.retry_after),
        (Class::RateLimited, Some(Duration::from_secs(7)))
    );
}

#[tokio::test]
async fn silence_before_and_within_a_reply_is_a_timeout() {
    for answer in [String::new(), format!("{SSE}\r\n"), chat_stream("")] {
        let error = answered(Wire::OpenaiChat, answer, After::Hold).await.0.unwrap_err();
        assert_eq!(error.class, Class::Timeout, "{error}");
        assert!(error.class.retryable());
    }
}

#[tokio::test]
async fn a_closed_connection_before_the_end_is_a_cut_stream() {
    for answer in [
        format!("{SSE}\r\n"),
        chat_stream(""),
        chat_stream("").replace("\r\n\r\n", "\r\ncontent-length: 9999\r\n\r\n"),
    ] {
        let error = answered(Wire::OpenaiChat, answer, After::Close).await.0.unwrap_err();
        assert_eq!(error.class, Class::StreamCut, "{error}");
    }
}

#[tokio::test]
async fn a_whole_reply_does_not_wait_for_a_server_that_never_closes() {
    for end in [
        "data: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    ] {
        let reply = answered(Wire::OpenaiChat, chat_stream(end), After::Hold)
            .await
            .0
            .unwrap();
        assert_eq!(reply.stop, Stop::EndTurn);
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_an_error() {
    let answer =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 23\r\n\r\n{\"error\":\"not deployed\"}";
    let error = answered(Wire::OpenaiChat, answer.to_owned(), After::Close)
        .await
        .0
        .unwrap_err();
    assert!(error.message.contains("not deployed"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("base_url")));
}

#[tokio::test]
async fn a_reply_beyond_the_limit_is_refused() {
    let piece = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(64 * 1024)
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let profile = profile(Wire::OpenaiChat, listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(format!("{SSE}\r\n").as_bytes()).await.unwrap();
        // Ends when the client has had enough.
        while socket.write_all(piece.as_bytes()).await.is_ok() {}
    });
    assert_eq!(call(&profile).await.unwrap_err().class, Class::ReplyTooLarge);
    server.await.unwrap();
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let (address, server) = serve(chat_stream(""), After::Hold).await;
    let provider = connect(&profile(Wire::OpenaiChat, address), None, &Http::default()).unwrap();
    let (request, mut sink) = (request(), Notify::default());
    let spoken = sink.0.clone();
    tokio::select! {
        _ = provider.call(&request, &mut sink) => {}
        () = spoken.notified() => {}
    }
    assert!(
        server.await.unwrap().contains("hello"),
        "the server saw the end of the connection"
    );
}

/// Tells when something was said.
#[derive(Default)]
struct Notify(Arc<tokio::sync::Notify>);

impl Sink for Notify {
    fn open(&mut self, _: usize, _: ItemKind) {}
    fn push(&mut self, _: usize, _: &str) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn nobody_listening_is_a_connection_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = call(&profile(Wire::OpenaiChat, address)).await.unwrap_err();
    assert_eq!(error.class, Class::Connect, "{error}");
}

#[test]
fn a_key_is_only_sent_in_the_clear_where_the_profile_allows_it() {
    let connect_to = |base_url: &str, more: &str| {
        let text = format!("wire = 'openai-chat'\nbase_url = '{base_url}'\nmodel = 'm'\nauth = 'none'\n{more}");
        connect(&toml::from_str(&text).unwrap(), None, &Http::default()).map(|provider| provider.origin().0)
    };
    let refused = connect_to("http://models.example/v1", "").unwrap_err();
    assert_eq!(refused.class, Class::Refused);
    assert!(refused.hint.is_some_and(|hint| hint.contains("allow_http")));
    assert!(connect_to("http://models.example/v1", "allow_http = true").is_ok());
    for loopback in ["http://localhost:1/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"] {
        assert!(connect_to(loopback, "").is_ok(), "{loopback}");
    }
    assert!(connect_to("https://models.example/v1/", "").is_ok());
    assert!(connect_to("http://127.0.0.1.models.example", "").is_err());
    assert!(connect_to("ftp://models.example", "allow_http = true").is_err());
    assert!(connect_to("not a url", "").is_err());
    let origin = connect_to("https://user:pass@models.example:8443/v1?x=1", "").unwrap();
    assert_eq!(origin, "openai-chat https://models.example:8443");
}

#[test]
fn a_header_value_with_a_line_break_is_refused_without_being_shown() {
    let text = "wire = 'openai-chat'\nmodel = 'm'\nauth = 'none'\nheaders = { X-Team = \"a\\r\\nsecret: b\" }";
    let error = connect(&toml::from_str(text).unwrap(), None, &Http::default())
        .err()
        .unwrap();
    assert_eq!(error.class, Class::Refused);
    assert!(error.message.contains("X-Team") && !error.message.contains("secret"));
}

/// Against a real server on loopback that speaks all three wires, such as llama.cpp, named by `AGENTD_REAL_MODEL`.
#[tokio::test]
async fn a_real_server_answers_on_every_wire() {
    let Ok(address) = std::env::var("AGENTD_REAL_MODEL") else {
        crate::skip::note("no real model server; set AGENTD_REAL_MODEL to its http://HOST:PORT");
        return;
    };
    for (wire, path) in [
        (Wire::AnthropicMessages, ""),
        (Wire::OpenaiChat, "/v1"),
        (Wire::OpenaiResponses, "/v1"),
    ] {
        let text = format!("wire = '{wire}'\nbase_url = '{address}{path}'\nmodel = 'm'\nauth = 'none'");
        let profile: Profile = toml::from_str(&text).unwrap();
        let provider = connect(&profile, None, &Http::default()).unwrap();
        let mut texts = Texts::default();
        let mut asked = request();
        asked.system = "You are brief.".to_owned();
        let reply = provider.call(&asked, &mut texts).await.unwrap();
        assert!(
            matches!(reply.items.first(), Some(ReplyItem::Text { text, .. }) if *text == texts.0 && !text.is_empty())
        );
        assert!(
            reply.usage.is_some_and(|usage| usage.input > 0 && usage.output > 0),
            "{wire}"
        );
        // The reply goes back, and an overlong history is told apart from other mistakes.
        asked.messages.push(Message::Assistant {
            origin: provider.origin(),
            items: reply.items,
        });
        asked.messages.push(Message::User {
            content: vec![Content::text("and again")],
        });
        assert!(provider.call(&asked, &mut Texts::default()).await.is_ok(), "{wire}");
        asked.messages.push(Message::User {
            content: vec![Content::text("word ".repeat(20_000))],
        });
        let error = provider.call(&asked, &mut Texts::default()).await.unwrap_err();
        assert_eq!(error.class, Class::ContextTooLong, "{wire}: {error}");
    }
}
