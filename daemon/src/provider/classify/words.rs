//! The names and words by which providers say what went wrong. All in lower case; each is from a provider of its own.

/// The account is empty: waiting does not help.
pub(super) const QUOTA_NAMES: [&str; 13] = [
    "insufficient_quota",
    "exceeded_current_quota_error",
    "billing_error",
    "billing_not_active",
    "billing_hard_limit_reached",
    "credit_limit_exceeded",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "arrearage",
    "usage_limit_reached",
    "usage_not_included",
    "payment_required",
];

pub(super) const CONTEXT_NAMES: [&str; 8] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "too_many_prompt_tokens",
    "tokens_limit_reached",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "model_context_window_exceeded",
    "context_window_exceeded",
];

pub(super) const KEY_NAMES: [&str; 7] = [
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "invalid_authentication",
    "invalid_authentication_error",
    "account_deactivated",
    "token_expired",
];

pub(super) const CAPACITY_NAMES: [&str; 8] = [
    "overloaded_error",
    "server_overloaded",
    "server_is_overloaded",
    "engine_overloaded",
    "engine_overloaded_error",
    "slow_down",
    "overloaded",
    "unavailable_error",
];

/// The provider does not know the model.
pub(super) const MODEL_NAMES: [&str; 5] = [
    "not_found_error",
    "model_not_found",
    "deploymentnotfound",
    "notfounderror",
    "invalid_model",
];

/// Words of context overflows.
pub(super) const CONTEXT_WORDS: [&str; 30] = [
    "maximum context length",
    "max context length",
    "exceeded max context",
    "exceeds the available context size",
    "exceeds the context window",
    "exceed context window",
    "exceeds the maximum context",
    "exceeds the maximum number of tokens",
    "exceeds the max length",
    "prompt exceeds max length",
    "exceeded model token limit",
    "context length exceeded",
    "context length of only",
    "greater than the context length",
    "context window exceeds",
    "contextwindowexceedederror",
    "total length of all messages",
    "range of input length should be",
    "longer than the maximum model length",
    "maximum prompt length",
    "prompt token count of",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "`inputs` tokens + `max_new_tokens` must be",
    "input length and `max_tokens` exceed context limit",
    "exceeds the model's maximum",
    "reduce the length of",
    "too large for model with",
    "too many tokens: ",
];

/// Words of an empty account. Where a wait is named too, it is only a limit.
pub(super) const QUOTA_WORDS: [&str; 15] = [
    "exceeded your current quota",
    "exceeded your monthly included credits",
    "insufficient balance",
    "insufficient credits",
    "credit balance is too low",
    "more credits",
    "out of credits",
    "any credits",
    "used all available credits",
    "monthly spending limit",
    "billing hard limit",
    "extra usage is required",
    "api usage limits",
    "usage limit has been reached",
    "account is in good standing",
];

/// Limits that waiting within a turn does not lift, whatever wait is named.
pub(super) const LASTING_WORDS: [&str; 3] = ["free-models-per-day", "limit: 0,", "limit: 0\n"];

pub(super) const KEY_WORDS: [&str; 9] = [
    "incorrect api key",
    "invalid api key",
    "api key is invalid",
    "api key not valid",
    "api key expired",
    "invalid x-api-key",
    "authentication fails",
    "missing authentication",
    "could not resolve authentication",
];

pub(super) const CAPACITY_WORDS: [&str; 6] = [
    "overloaded",
    "at capacity",
    "over capacity",
    "no capacity",
    "too busy",
    "loading model",
];

/// Beside the word "model": it is not there.
pub(super) const UNKNOWN_WORDS: [&str; 7] = [
    "not found",
    "does not exist",
    "not exist",
    "no such model",
    "not a valid model",
    "invalid model",
    "unknown model",
];
