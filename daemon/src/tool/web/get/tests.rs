//! Requests to servers of the tests' own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;

/// A server that answers the nth request with the nth of `answers`, the last for ever.
async fn serve(answers: Vec<Vec<u8>>) -> anyhow::Result<(u16, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let count = Arc::new(AtomicUsize::new(0));
    let served = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let nth = served.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let answer = answers.get(nth).cloned().unwrap_or_default();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(&answer).await;
            });
        }
    });
    Ok((port, count))
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A gigabyte of zeros as gzip writes them: after its head each zero byte stands for four copies of 258.
fn packed_gigabyte() -> Vec<u8> {
    let mut packed = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xed\xc1\x31\x01\0\0\0\xc2\xa0\xf5\x4f\x6d\x08\x5f\xa0".to_vec();
    packed.resize(1 << 20, 0);
    packed
}

async fn get(hosts: &[String], url: &str) -> Result<Fetched, Failure> {
    let (_hold, mut stop) = watch::channel(StopLevel::Run);
    let web = Web::new(Reach::new(hosts));
    let url = web.reach.parse(url)?;
    web.get(url, &mut stop).await
}

#[tokio::test]
async fn redirects_stay_within_the_host_and_are_counted() -> anyhow::Result<()> {
    let (port, count) = serve(vec![
        answer("302 Found\r\nlocation: /next", b""),
        answer("200 OK\r\ncontent-type: text/plain", b"there"),
    ])
    .await?;
    let hosts = [format!("127.0.0.1:{port}")];
    let Fetched::Page(page) = get(&hosts, &format!("http://127.0.0.1:{port}/")).await? else {
        anyhow::bail!("no page")
    };
    assert_eq!(
        (page.url.path(), page.body.as_slice(), page.status.as_u16()),
        ("/next", &b"there"[..], 200)
    );
    assert_eq!(count.load(Ordering::SeqCst), 2);

    let (port, count) = serve(vec![answer("302 Found\r\nlocation: /again", b"")]).await?;
    let looped = get(&[format!("127.0.0.1:{port}")], &format!("http://127.0.0.1:{port}/")).await;
    assert!(matches!(looped, Err(Failure::Network(text)) if text.contains("redirects")));
    assert_eq!(count.load(Ordering::SeqCst), REDIRECT_LIMIT + 1);
    Ok(())
}

#[tokio::test]
async fn a_redirect_to_another_host_is_for_another_call_and_nothing_is_sent_there() -> anyhow::Result<()> {
    let (other, asked) = serve(vec![answer("200 OK", b"secret")]).await?;
    for (to, why) in [
        (format!("http://localhost:{other}/"), None),
        ("http://169.254.169.254/latest".to_owned(), Some("private network")),
        ("file:///etc/passwd".to_owned(), Some("only http and https")),
    ] {
        let (port, _) = serve(vec![answer(&format!("302 Found\r\nlocation: {to}"), b"")]).await?;
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{other}")];
        match (get(&hosts, &format!("http://127.0.0.1:{port}/")).await, why) {
            (Ok(Fetched::Elsewhere { .. }), None) => {}
            (Err(Failure::Refused(Refused(text))), Some(why)) => {
                assert!(
                    text.starts_with(&format!("the server redirects to {to}: ")) && text.contains(why),
                    "{text}"
                );
            }
            (fetched, _) => anyhow::bail!("{to}: {fetched:?}"),
        }
    }
    // Another port of the same host is judged like the first.
    let (port, _) = serve(vec![answer(
        &format!("302 Found\r\nlocation: http://127.0.0.1:{other}/"),
        b"",
    )])
    .await?;
    let moved = get(&[format!("127.0.0.1:{port}")], &format!("http://127.0.0.1:{port}/")).await;
    assert!(matches!(moved, Err(Failure::Refused(_))));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    Ok(())
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit_however_small_it_was_packed() -> anyhow::Result<()> {
    let (port, _) = serve(vec![answer(
        "200 OK\r\ncontent-type: text/plain",
        &vec![b'a'; BODY_LIMIT_BYTES + 100],
    )])
    .await?;
    let hosts = [format!("127.0.0.1:{port}")];
    let Fetched::Page(page) = get(&hosts, &format!("http://127.0.0.1:{port}/")).await? else {
        anyhow::bail!("no page")
    };
    assert_eq!((page.body.len(), page.extent), (BODY_LIMIT_BYTES, Extent::Cut));

    let (port, _) = serve(vec![answer("200 OK\r\ncontent-encoding: gzip", &packed_gigabyte())]).await?;
    let hosts = [format!("127.0.0.1:{port}")];
    let Fetched::Page(page) = get(&hosts, &format!("http://127.0.0.1:{port}/")).await? else {
        anyhow::bail!("no page")
    };
    assert_eq!((page.body.len(), page.extent), (BODY_LIMIT_BYTES, Extent::Cut));
    Ok(())
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_a_server_that_says_nothing() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let web = Web::new(Reach::new(&[format!("127.0.0.1:{port}")]));
    let url = web.reach.parse(&format!("http://127.0.0.1:{port}/"))?;
    let (stop, mut signal) = watch::channel(StopLevel::Run);
    let asked = tokio::spawn(async move { web.get(url, &mut signal).await });
    let _connection = listener.accept().await?;
    stop.send(StopLevel::Stop)?;
    assert!(matches!(asked.await?, Err(Failure::Stopped)));
    Ok(())
}

#[tokio::test]
async fn the_resolver_refuses_a_name_that_means_this_machine() -> anyhow::Result<()> {
    let name = "localhost".parse().map_err(|_| anyhow::anyhow!("no name"))?;
    let Err(error) = Screened(Screen::Public).resolve(name).await else {
        anyhow::bail!("resolved")
    };
    assert!(error.downcast_ref::<Refused>().is_some(), "{error}");
    Ok(())
}
