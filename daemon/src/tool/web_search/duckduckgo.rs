//! DuckDuckGo's page for browsers without scripts, which needs no key. Its markup is nobody's promise: what is not understood is
//! said to be so, never taken for "nothing found".

use scraper::{ElementRef, Html, Selector};

use super::{Engine, Hit};

const BASE: &str = "https://html.duckduckgo.com/html/";

pub(super) struct DuckDuckGo;

impl Engine for DuckDuckGo {
    fn address(&self, base: Option<&str>, query: &str) -> Result<String, String> {
        let url = reqwest::Url::parse_with_params(base.unwrap_or(BASE), [("q", query)]);
        url.map(String::from)
            .map_err(|error| format!("`search_url` in the config: {error}"))
    }

    fn results(&self, body: &str) -> Result<Vec<Hit>, String> {
        let page = Html::parse_document(body);
        let selector = select(".result")?;
        let hits: Vec<Hit> = page
            .select(&selector)
            .filter(|result| !is_ad(result))
            .filter_map(|result| hit(&result))
            .collect();
        if !hits.is_empty() || page.select(&select(".no-results")?).next().is_some() {
            return Ok(hits);
        }
        let asks = page
            .select(&select(".anomaly-modal__modal, #challenge-form")?)
            .next()
            .is_some();
        Err(if asks {
            "the search engine wants to see a person (a captcha); try again later, or fetch a page whose address you know".into()
        } else {
            "the search engine's page was not understood; fetch a page whose address you know".into()
        })
    }
}

fn is_ad(result: &ElementRef<'_>) -> bool {
    result.value().classes().any(|class| class == "result--ad")
}

fn hit(result: &ElementRef<'_>) -> Option<Hit> {
    let link = result.select(&select(".result__a").ok()?).next()?;
    let snippet = result.select(&select(".result__snippet").ok()?).next();
    Some(Hit {
        title: text(&link),
        url: target(link.value().attr("href")?)?,
        snippet: snippet.as_ref().map(text).unwrap_or_default(),
    })
}

fn text(element: &ElementRef<'_>) -> String {
    element.text().collect()
}

/// Where a link leads: the engine's own links name it in `uddg`.
fn target(href: &str) -> Option<String> {
    let url = reqwest::Url::parse(BASE).ok()?.join(href).ok()?;
    let inner = url
        .query_pairs()
        .find(|(name, _)| name == "uddg")
        .map(|(_, value)| value.into_owned());
    let own = url
        .host_str()
        .is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    let url = match inner {
        Some(inner) if own => reqwest::Url::parse(&inner).ok()?,
        _ => url,
    };
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

fn select(selector: &str) -> Result<Selector, String> {
    Selector::parse(selector).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r##"<!DOCTYPE html><html><body><div id="links" class="results">
      <div class="result results_links result--ad"><h2><a class="result__a" href="https://duckduckgo.com/y.js?ad_provider=x">Buy</a></h2></div>
      <div class="result results_links web-result"><div class="links_main"><h2 class="result__title">
        <a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fwww.rust%2Dlang.org%2Flearn%3Fa%3D1%26b%3D2&amp;rut=00ff">Learn <b>Rust</b> &amp; more</a></h2>
        <a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">All about
          <b>Rust</b>.</a></div></div>
      <div class="result"><h2><a class="result__a" href="https://direct.example/page">Direct</a></h2></div>
      <div class="result"><h2><a class="result__a" href="javascript:alert(1)">Bad</a></h2></div>
      <div class="result"><h2>No link</h2></div>
    </div></body></html>"##;

    #[test]
    fn results_are_read_without_advertisements_and_with_their_own_addresses() -> Result<(), String> {
        let hits = DuckDuckGo.results(PAGE)?;
        let urls: Vec<&str> = hits.iter().map(|hit| hit.url.as_str()).collect();
        assert_eq!(
            urls,
            ["https://www.rust-lang.org/learn?a=1&b=2", "https://direct.example/page"]
        );
        let first = hits.first().ok_or("none")?;
        assert_eq!(first.title, "Learn Rust & more");
        assert!(first.snippet.starts_with("All about") && first.snippet.ends_with("Rust."));
        Ok(())
    }

    #[test]
    fn nothing_found_is_told_from_a_page_that_is_not_understood() {
        let none = r#"<div class="no-results">No results.</div>"#;
        assert_eq!(DuckDuckGo.results(none), Ok(Vec::new()));
        let captcha = r#"<form id="challenge-form"><div class="anomaly-modal__modal"></div></form>"#;
        assert!(DuckDuckGo.results(captcha).is_err_and(|why| why.contains("captcha")));
        for odd in ["", "<html></html>", "{}", "<div class=result>"] {
            assert!(DuckDuckGo.results(odd).is_err(), "{odd}");
        }
    }
}
