//! Usage in Chat Completions: one idea under several names.

use serde_json::Value;

use crate::provider::decoded::ReportedUsage;

/// Whether a field says something: gateways send `null`, `{}` and `""` for "nothing".
pub(super) fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

/// The figures of one report; the last one counts, none is added. Input includes what was cached.
pub(super) fn reported(usage: &Value) -> ReportedUsage {
    let figure = |value: Option<&Value>| value.and_then(Value::as_u64);
    let input_details = usage.get("prompt_tokens_details");
    let output_details = usage.get("completion_tokens_details");
    let cached = input_details.and_then(|details| details.get("cached_tokens"));
    let cached = cached
        .or_else(|| usage.get("prompt_cache_hit_tokens"))
        .or_else(|| usage.get("cached_tokens"));
    let cache_write = input_details.and_then(|details| {
        details
            .get("cache_write_tokens")
            .or_else(|| details.get("cache_creation_tokens"))
    });
    let reasoning = output_details.and_then(|details| details.get("reasoning_tokens"));
    let input = figure(usage.get("prompt_tokens"));
    ReportedUsage {
        input,
        output: figure(usage.get("completion_tokens")),
        cached: figure(cached),
        cache_write: figure(cache_write),
        reasoning: figure(reasoning.or_else(|| usage.get("reasoning_tokens"))),
        input_total: input,
        total: figure(usage.get("total_tokens")),
    }
}
