//! A SearXNG server of the user's own, asked for JSON. It has no usual address: `search_url` names it.

use serde::Deserialize;

use super::{Engine, Hit};

pub(super) struct Searxng;

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

impl Engine for Searxng {
    fn address(&self, base: Option<&str>, query: &str) -> Result<String, String> {
        let base = base.ok_or("searxng needs `search_url` in the config, such as \"https://searx.example/search\"")?;
        let url = reqwest::Url::parse_with_params(base, [("q", query), ("format", "json")]);
        url.map(String::from)
            .map_err(|error| format!("`search_url` in the config: {error}"))
    }

    fn results(&self, body: &str) -> Result<Vec<Hit>, String> {
        let answer: Answer = serde_json::from_str(body).map_err(|error| {
            format!("the search engine's answer was not understood ({error}); does it allow format=json?")
        })?;
        let hit = |found: Found| Hit {
            title: found.title.unwrap_or_default(),
            url: found.url,
            snippet: found.content.unwrap_or_default(),
        };
        Ok(answer.results.into_iter().map(hit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_and_a_refusal_is_told_from_nothing() -> Result<(), String> {
        let hits = Searxng.results(
            r#"{"query":"q","results":[{"url":"https://a.example/","title":"A","content":null,"score":1}]}"#,
        )?;
        assert_eq!(
            hits,
            [Hit {
                title: "A".into(),
                url: "https://a.example/".into(),
                snippet: String::new()
            }]
        );
        assert_eq!(Searxng.results(r#"{"results":[]}"#), Ok(Vec::new()));
        assert!(Searxng.results("<html>403</html>").is_err());
        Ok(())
    }

    #[test]
    fn the_query_goes_where_the_user_says() {
        let address = Searxng.address(Some("https://s.example/search?language=en"), "a b");
        assert_eq!(
            address.as_deref(),
            Ok("https://s.example/search?language=en&q=a+b&format=json")
        );
        assert!(Searxng.address(None, "a").is_err());
    }
}
