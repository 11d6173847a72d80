//! Asking a provider which models it has: `GET /models`, and what local servers say of the models they have loaded. Answers are
//! bounded and read with lenience; a server that says something else has none.

use std::time::Duration;

use protocol::method::ModelInfo;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde_json::Value;

use super::clients::Http;
use super::error::ModelError;
use super::http::{Endpoint, KeyHeader};
use crate::config::profile::{Profile, Wire};

/// Models of one server that are kept; gateways have some hundreds.
const MODELS: usize = 1_000;

/// Bytes of a list; OpenRouter's has half a megabyte.
const BYTES: usize = 4 * 1024 * 1024;

/// The version of Anthropic's API that the list is asked in.
const VERSION: (HeaderName, &str) = (HeaderName::from_static("anthropic-version"), "2023-06-01");

/// A model that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What requests name it.
    pub id: String,
    /// Its context window as this server runs it, if the server says so.
    pub context_tokens: Option<u64>,
    /// Whether it is in memory; `None`: the server does not say.
    pub loaded: Option<bool>,
}

/// The models of a profile's server, within `limit`.
///
/// # Errors
/// As for a model call; the texts hold no secret.
pub async fn available(
    profile: &Profile,
    key: Option<SecretString>,
    http: &Http,
    limit: Duration,
) -> Result<Vec<Listed>, ModelError> {
    let path = match profile.wire {
        Wire::AnthropicMessages => "/v1/models?limit=1000",
        Wire::OpenaiChat | Wire::OpenaiResponses => "/models",
        Wire::Demo => return Ok(Vec::new()),
    };
    Ok(read(&document(profile, key, http, path, limit).await?))
}

/// The models that a server says it has loaded, at a path of its own below the profile's base URL, within `limit`.
///
/// # Errors
/// As for `available`.
pub async fn loaded(profile: &Profile, http: &Http, path: &str, limit: Duration) -> Result<Vec<Listed>, ModelError> {
    let mut models = read(&document(profile, None, http, path, limit).await?);
    models.retain(|model| model.loaded != Some(false));
    Ok(models)
}

async fn document(
    profile: &Profile,
    key: Option<SecretString>,
    http: &Http,
    path: &str,
    limit: Duration,
) -> Result<Value, ModelError> {
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let endpoint = Endpoint::new(profile, key, http, path)?;
    let (key_header, headers): (_, &[_]) = match profile.wire {
        Wire::AnthropicMessages => (KeyHeader::XApiKey, &[VERSION]),
        _ => (KeyHeader::Bearer, &[]),
    };
    let bytes = endpoint.fetch(key_header, headers, query, BYTES, limit).await?;
    Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// `{data: […]}` of most, `{models: […]}` of Ollama.
fn read(document: &Value) -> Vec<Listed> {
    let list = ["data", "models"].iter().find_map(|key| document.get(key)?.as_array());
    list.into_iter().flatten().filter_map(listed).take(MODELS).collect()
}

fn listed(model: &Value) -> Option<Listed> {
    let text = |key: &str| model.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    // Gemini's list names its models by a path that its own requests do not need.
    let id = text("id").or_else(|| text("model")).or_else(|| text("name"))?;
    let id = id.strip_prefix("models/").unwrap_or(id);
    let windows = [
        "/loaded_context_length",
        "/context_length",
        "/max_model_len",
        "/context_window",
        "/meta/n_ctx",
        "/max_context_length",
    ];
    let window = windows.iter().find_map(|place| model.pointer(place)?.as_u64());
    Some(Listed {
        id: id.to_owned(),
        context_tokens: window.filter(|window| *window > 0),
        loaded: text("state").map(|state| state == "loaded"),
    })
}

/// Puts what a server answered into what clients are told.
pub fn tell(info: &mut ModelInfo, answer: Result<Vec<Listed>, ModelError>) {
    match answer {
        Ok(models) => info.available = Some(models.into_iter().map(|model| model.id).collect()),
        Err(error) => info.problem = Some(error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(document: &Value) -> Vec<String> {
        read(document).into_iter().map(|model| model.id).collect()
    }

    #[test]
    fn lists_of_every_form_are_read() {
        assert_eq!(
            ids(&json!({"object": "list", "data": [{"id": "gpt-5"}, {"id": ""}, 7, {"id": "models/gemini"}]})),
            ["gpt-5", "gemini"]
        );
        assert_eq!(
            ids(&json!({"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "context_length": 4096}]})),
            ["qwen3:8b"]
        );
        for strange in [json!(null), json!([]), json!({"data": {}}), json!({"error": "no"})] {
            assert!(ids(&strange).is_empty(), "{strange}");
        }
    }

    #[test]
    fn the_window_is_the_one_this_server_runs_the_model_with() {
        let window = |model: Value| listed(&model).and_then(|model| model.context_tokens);
        assert_eq!(window(json!({"id": "m", "max_model_len": 8192})), Some(8192));
        assert_eq!(
            window(json!({"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131_072}})),
            Some(4096)
        );
        assert_eq!(
            window(json!({"id": "m", "max_context_length": 131_072, "loaded_context_length": 2048})),
            Some(2048)
        );
        assert_eq!(window(json!({"id": "m", "meta": {"n_ctx_train": 131_072}})), None);
    }

    #[test]
    fn a_list_is_bounded() {
        let many: Vec<Value> = (0..2 * MODELS)
            .map(|number| json!({"id": format!("m{number}")}))
            .collect();
        assert_eq!(read(&json!({ "data": many })).len(), MODELS);
    }
}
