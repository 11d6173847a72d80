//! A server that answers each connection with bytes a test chooses: what no well-behaved model server would send.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What a connection gets once its request is read.
pub type Act = Box<dyn FnOnce(&mut TcpStream) -> std::io::Result<()> + Send>;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub at: Instant,
    /// Head and body.
    pub text: String,
}

/// A running server: the first connection gets the first act, and so on; without an act left it is closed at once.
#[derive(Debug)]
pub struct RawServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl RawServer {
    /// Starts on a free port of the loopback address. It ends with the test's process.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn start(acts: Vec<Act>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, requests) = (listener.local_addr()?, Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&requests);
        let mut acts = acts.into_iter();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let Some(text) = read_request(&mut stream) else {
                    continue;
                };
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(Request {
                    at: Instant::now(),
                    text,
                });
                if let Some(act) = acts.next() {
                    // On a thread of its own: one that holds its connection must not keep the next waiting.
                    std::thread::spawn(move || {
                        let _ = act(&mut stream);
                        let _ = stream.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Ok(Self { address, requests })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes `text` and closes the connection.
pub fn says(text: impl Into<String>) -> Act {
    let text = text.into();
    Box::new(move |stream| stream.write_all(text.as_bytes()))
}

/// Writes `text` a byte at a time, each sent on its own.
pub fn dribbles(text: impl Into<String>) -> Act {
    let text = text.into();
    Box::new(move |stream| {
        stream.set_nodelay(true)?;
        text.as_bytes().iter().try_for_each(|byte| stream.write_all(&[*byte]))
    })
}

/// Writes `text` and then holds the connection until the other side closes it.
pub fn stalls(text: impl Into<String>) -> Act {
    let text = text.into();
    Box::new(move |stream| {
        stream.write_all(text.as_bytes())?;
        while stream.read(&mut [0; 1024])? > 0 {}
        Ok(())
    })
}

/// Writes a reply up to its last event, waits for `release`, and says on `at` when it began to write the rest.
pub fn ends_when_told(release: Arc<Mutex<Receiver<()>>>, at: SyncSender<Instant>) -> Act {
    let text = chat("every word but the last");
    Box::new(move |stream| {
        stream.set_nodelay(true)?;
        let (most, end) = text.split_at(text.rfind("data: ").unwrap_or(0));
        stream.write_all(most.as_bytes())?;
        let told = release.lock().unwrap_or_else(PoisonError::into_inner).recv();
        told.map_err(std::io::Error::other)?;
        let _ = at.send(Instant::now());
        stream.write_all(end.as_bytes())
    })
}

/// An answer with a status, headers (each with its line end) and a body.
pub fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// An event stream in the form of Chat Completions that says `text` and ends as it should.
pub fn chat(text: &str) -> String {
    stream(&chat_body(text))
}

/// The body of such a stream.
pub fn chat_body(text: &str) -> String {
    let piece = serde_json::json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]});
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}"#;
    format!("data: {piece}\n\ndata: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}

/// An event stream with this body, which ends where the connection does.
pub fn stream(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
}

/// The head and the body that its length promises; `None` when the other side leaves before.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 64 * 1024]);
    loop {
        let count = stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(chunk.get(..count)?);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse()
                .ok()
        });
        if body.len() >= length.unwrap_or(0) {
            return Some(text.into_owned());
        }
    }
}
