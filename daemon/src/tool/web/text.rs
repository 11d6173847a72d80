//! A page's body as text: in whatever charset it is declared, HTML without its markup.

use std::time::Duration;

use encoding_rs::Encoding;
use reqwest::Url;

/// Columns that paragraphs are wrapped at; what is wider, such as code, stays as it is.
const COLUMNS: usize = 120;

/// Bytes at the beginning of a page in which it may declare its charset.
const DECLARATION_BYTES: usize = 1024;

/// Bytes at the beginning of a page in which it may name the base of its links.
const HEAD_BYTES: usize = 16 * 1024;

/// How deep elements may lie in each other; nobody reads a page that is nested deeper, and laying it out takes ever longer.
const DEPTH_LIMIT: usize = 512;

/// How long a page may take to be laid out.
const LAYOUT_LIMIT: Duration = Duration::from_secs(10);

/// What a body is.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::tool) enum TextOf {
    Text(String),
    /// Not text.
    Binary,
    /// HTML that cannot be laid out, as it is.
    Markup(String),
}

/// The text of `body`, which the server says is of `content_type`. Links of HTML are made complete: they are taken from `url`,
/// where the page came from, unless it names another base.
pub(in crate::tool) async fn text_of(content_type: &str, body: Vec<u8>, url: &Url) -> TextOf {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_owned();
    let is_html = media.contains("html") || (media.is_empty() && looks_like_html(&body));
    if !is_html && !is_text(&media, &body) {
        return TextOf::Binary;
    }
    let text = decoded(content_type, &body);
    if !is_html {
        return TextOf::Text(text);
    }
    let markup = text.clone();
    let base = base(&text, url);
    let layout = tokio::task::spawn_blocking(move || laid_out(&text, &base));
    match tokio::time::timeout(LAYOUT_LIMIT, layout).await {
        Ok(Ok(Some(text))) => TextOf::Text(text),
        _ => TextOf::Markup(markup),
    }
}

fn laid_out(html: &str, base: &Url) -> Option<String> {
    if depth(html) > DEPTH_LIMIT {
        return None;
    }
    let config = html2text::config::plain_no_decorate()
        .link_footnotes(true)
        .no_table_borders()
        .allow_width_overflow();
    let text = config.string_from_read(html.as_bytes(), COLUMNS).ok()?;
    Some(with_complete_links(&text, base))
}

/// What the links of a page are relative to: the address in its first `<base>`, else its own.
fn base(html: &str, url: &Url) -> Url {
    let begin = html.get(..html.floor_char_boundary(HEAD_BYTES)).unwrap_or_default();
    let tag = begin.find("<base ").and_then(|at| begin.get(at..)?.split('>').next());
    let href = tag.and_then(|tag| tag.split_once("href=")).map(|(_, value)| value);
    let href = href.and_then(|value| value.trim_start_matches(['"', '\'']).split(['"', '\'', ' ']).next());
    href.and_then(|href| url.join(href).ok()).unwrap_or_else(|| url.clone())
}

/// A text whose last lines, `[1]: /page` each, are its links, with these as complete addresses.
fn with_complete_links(text: &str, base: &Url) -> String {
    let text = text.trim_end();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in lines.iter_mut().rev() {
        let Some((number, href)) = link(line) else { break };
        let complete = base.join(href).map_or_else(|_| href.to_owned(), String::from);
        let is_first = number == 1;
        *line = format!("[{number}]: {complete}");
        if is_first {
            break;
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn link(line: &str) -> Option<(usize, &str)> {
    let (number, href) = line.strip_prefix('[')?.split_once("]: ")?;
    Some((number.parse().ok()?, href))
}

/// How deep the page may nest, judged by its tags alone: never less than it really is.
fn depth(html: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        match tag.as_bytes().first() {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(first) if first.is_ascii_alphabetic() && !is_alone(tag) => depth += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Elements without an end, or whose end is usually left out: they do not nest.
fn is_alone(tag: &str) -> bool {
    const ALONE: [&str; 22] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "p",
        "li", "dt", "dd", "tr", "td", "th", "option", "path",
    ];
    let name = tag
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    ALONE.iter().any(|alone| name.eq_ignore_ascii_case(alone))
}

fn looks_like_html(body: &[u8]) -> bool {
    let begin = body
        .get(..DECLARATION_BYTES)
        .unwrap_or(body)
        .trim_ascii_start()
        .to_ascii_lowercase();
    begin.starts_with(b"<!doctype html") || begin.starts_with(b"<html")
}

fn is_text(media: &str, body: &[u8]) -> bool {
    let named = media.starts_with("text/")
        || [
            "json",
            "xml",
            "javascript",
            "yaml",
            "toml",
            "x-sh",
            "graphql",
            "x-www-form-urlencoded",
        ]
        .iter()
        .any(|kind| media.contains(kind));
    let unnamed = matches!(media, "" | "application/octet-stream");
    let begin = body.get(..DECLARATION_BYTES).unwrap_or(body);
    named || (unnamed && !begin.contains(&0))
}

/// The charset is the byte order mark's, the server's, the page's own, or UTF-8, in this order.
fn decoded(content_type: &str, body: &[u8]) -> String {
    let begin = String::from_utf8_lossy(body.get(..DECLARATION_BYTES).unwrap_or(body));
    let named = charset(content_type).or_else(|| charset(&begin));
    let encoding = named.unwrap_or(encoding_rs::UTF_8);
    encoding.decode(body).0.into_owned()
}

/// The charset that is named after the first `charset=`.
fn charset(text: &str) -> Option<&'static Encoding> {
    let (_, after) = text.split_once("charset=")?;
    let label = after.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
    Encoding::for_label(label.get(..end.unwrap_or(label.len()))?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> anyhow::Result<Url> {
        Ok(Url::parse("https://h.example/docs/page?q=1")?)
    }

    async fn text(content_type: &str, body: &[u8]) -> anyhow::Result<String> {
        match text_of(content_type, body.to_vec(), &page()?).await {
            TextOf::Text(text) => Ok(text),
            other => anyhow::bail!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn html_becomes_what_a_person_would_read() -> anyhow::Result<()> {
        let page = "<!doctype html><html><head><title>T</title><style>p{}</style><script>alert('no')</script></head>\
                    <body><h1>Head</h1><p>One <b>two</b> &amp; <a href=\"https://x.example/a\">three</a>.</p>\
                    <ul><li>item</ul><pre>code\n  more</pre></body></html>";
        let text = text("text/html; charset=utf-8", page.as_bytes()).await?;
        for expected in [
            "Head",
            "One two & ",
            "three",
            "https://x.example/a",
            "item",
            "code\n  more",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("alert") && !text.contains("p{}"), "{text}");
        Ok(())
    }

    #[tokio::test]
    async fn links_are_complete_addresses() -> anyhow::Result<()> {
        let links = "<p>[1]: not/a/link</p><a href=\"/a\">a</a> <a href=\"b?x=1#y\">b</a> <a href=\"//o.example/\">c</a> \
                     <a href=\"https://p.example/d\">d</a> <a href=\"mailto:x@y.example\">e</a>";
        let plain = text("text/html", format!("<html><body>{links}</body></html>").as_bytes()).await?;
        for expected in [
            "[1]: not/a/link",
            "[1]: https://h.example/a",
            "[2]: https://h.example/docs/b?x=1#y",
            "[3]: https://o.example/",
            "[4]: https://p.example/d",
            "[5]: mailto:x@y.example",
        ] {
            assert!(plain.contains(&format!("{expected}\n")), "{expected} in {plain}");
        }
        let based = format!("<html><head><base href='/other/'></head><body>{links}</body></html>");
        let based = text("text/html", based.as_bytes()).await?;
        assert!(based.contains("[2]: https://h.example/other/b?x=1#y\n"), "{based}");
        Ok(())
    }

    #[tokio::test]
    async fn the_declared_charset_counts() -> anyhow::Result<()> {
        assert_eq!(text("text/plain; charset=iso-8859-1", b"caf\xe9").await?, "café");
        assert_eq!(text("text/plain", "café".as_bytes()).await?, "café");
        assert_eq!(text("text/plain", b"\xff\xfea\0b\0").await?, "ab");
        let page = text(
            "text/html",
            b"<html><meta charset=\"windows-1251\"><p>\xcf\xf0\xe8\xe2\xe5\xf2",
        )
        .await?;
        assert!(page.contains("Привет"), "{page}");
        Ok(())
    }

    #[tokio::test]
    async fn what_is_no_text_is_said_to_be_none() -> anyhow::Result<()> {
        let page = page()?;
        assert_eq!(text_of("image/png", vec![1, 2], &page).await, TextOf::Binary);
        assert_eq!(
            text_of("application/octet-stream", vec![0, 2], &page).await,
            TextOf::Binary
        );
        assert_eq!(
            text_of("application/json", b"{}".to_vec(), &page).await,
            TextOf::Text("{}".into())
        );
        assert_eq!(
            text_of("", b"plain".to_vec(), &page).await,
            TextOf::Text("plain".into())
        );
        Ok(())
    }

    #[tokio::test]
    async fn a_page_nested_beyond_all_measure_harms_nobody() -> anyhow::Result<()> {
        let from = page()?;
        for tag in [
            "<div>",
            "<b>",
            "<table><tr><td>",
            "<blockquote>",
            "<ul><li>",
            "<svg><g>",
            "<i x=y>",
        ] {
            let page = tag.repeat(100_000);
            assert!(
                matches!(text_of("text/html", page.into_bytes(), &from).await, TextOf::Markup(_)),
                "{tag}"
            );
        }
        let wide = "<p>a</p><div>b</div><br>".repeat(20_000);
        assert!(matches!(
            text_of("text/html", wide.into_bytes(), &from).await,
            TextOf::Text(_)
        ));
        Ok(())
    }
}
