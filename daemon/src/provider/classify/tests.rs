//! Bodies and events of every provider that is known to differ, and the class each must have.

use super::*;
use std::time::Duration;

fn class(status: u16, body: &str) -> Class {
    error(status, body).class
}

fn error(status: u16, body: &str) -> ModelError {
    classify(
        &Answer {
            status,
            headers: &HeaderMap::new(),
            body: body.as_bytes(),
        },
        Timestamp::UNIX_EPOCH,
    )
}

#[test]
fn every_known_shape_of_an_error_body_is_read() {
    let cases = [
        (
            400,
            r#"{"error":"Incorrect API key provided: x","code":"Client specified an invalid argument"}"#,
        ),
        (401, r#"{"detail":"Invalid API Key"}"#),
        (403, "<html>forbidden</html>"),
        (401, ""),
    ];
    for (status, body) in cases {
        assert_eq!(class(status, body), Class::Authentication, "{body}");
    }
    let cases = [
        (
            400,
            r#"{"object":"error","message":"Logprobs are not enabled","type":"invalid","code":"3051"}"#,
        ),
        (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#),
        (404, r#"{"error":{"code":"model_not_found","message":"no such model"}}"#),
        (
            400,
            r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
        ),
        (307, ""),
    ];
    for (status, body) in cases {
        assert_eq!(class(status, body), Class::BadRequest, "{body}");
    }
}

#[test]
fn a_context_overflow_is_known_by_code_or_words() {
    let cases = [
        (
            400,
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","type":"invalid_request_error"}}"#,
        ),
        (400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#),
        (
            500,
            r#"{"error":{"message":"the request exceeds the available context size","type":"server_error"}}"#,
        ),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
        (
            429,
            r#"{"error":{"code":"rate_limit_exceeded","message":"Request too large for gpt on tokens per min"}}"#,
        ),
    ];
    for (status, body) in cases {
        assert_eq!(class(status, body), Class::ContextTooLong, "{body}");
    }
}

#[test]
fn an_empty_account_is_not_a_rate_limit() {
    assert_eq!(
        class(429, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#),
        Class::Quota
    );
    assert_eq!(class(402, "{}"), Class::Quota);
    assert_eq!(
        class(400, r#"{"error":{"message":"Your credit balance is too low"}}"#),
        Class::Quota
    );
    let limited = error(
        429,
        r#"{"error":{"code":"rate_limit_exceeded","message":"Please try again in 18.642s."}}"#,
    );
    assert_eq!(
        (limited.class, limited.retry_after),
        (Class::RateLimited, Some(Duration::from_millis(18_642)))
    );
}

#[test]
fn failures_of_the_provider_can_be_tried_again() {
    for (status, body, wanted) in [
        (
            500,
            r#"{"error":{"type":"api_error","message":"Internal server error"}}"#,
            Class::Server,
        ),
        (502, "<html>", Class::Server),
        (
            503,
            r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#,
            Class::Overloaded,
        ),
        (529, "", Class::Overloaded),
        (
            200,
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Class::Overloaded,
        ),
    ] {
        assert_eq!(class(status, body), wanted, "{status} {body}");
        assert!(wanted.retryable());
    }
}

#[test]
fn an_error_event_is_classified_like_a_body() {
    let event = |json: &str| serde_json::from_str(json).map(|json| in_stream(&InStreamError::from_value(&json)).class);
    for (json, wanted) in [
        (
            r#"{"type":"overloaded_error","message":"Overloaded"}"#,
            Class::Overloaded,
        ),
        (
            r#"{"type":"api_error","message":"Internal server error"}"#,
            Class::Server,
        ),
        (
            r#"{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}"#,
            Class::Quota,
        ),
        (r#"{"code":400,"message":"Token limit reached"}"#, Class::BadRequest),
        (
            r#"{"code":"tool_use_failed","status_code":400,"type":"invalid_request_error"}"#,
            Class::BadRequest,
        ),
        (r#""something""#, Class::Server),
    ] {
        assert_eq!(event(json).ok(), Some(wanted), "{json}");
    }
}

/// Error bodies as providers document or are known to send them.
#[test]
fn what_each_provider_is_known_to_say_has_its_class() {
    use Class::{Authentication, BadRequest, ContextTooLong, Overloaded, Quota, RateLimited, Server, Timeout};
    let cases = [
        // Google, through its compatible endpoint.
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]"#,
            RateLimited,
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 34.07s.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"34s"}]}}]"#,
            Quota,
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"Quota exceeded for metric: free_tier_requests, limit: 0, model: x. Please retry in 3s.","status":"RESOURCE_EXHAUSTED"}}]"#,
            Quota,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            Authentication,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            ContextTooLong,
        ),
        (
            503,
            r#"[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]"#,
            Overloaded,
        ),
        (
            504,
            r#"[{"error":{"code":504,"message":"Deadline expired","status":"DEADLINE_EXCEEDED"}}]"#,
            Timeout,
        ),
        // OpenAI and Azure.
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000, Requested 15000. Please try again in 6m0s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            RateLimited,
        ),
        (
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":null}}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"error":{"code":"429","message":"Requests have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 86400 seconds."}}"#,
            RateLimited,
        ),
        (
            404,
            r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
            BadRequest,
        ),
        (
            400,
            r#"{"error":{"message":"The response was filtered","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            BadRequest,
        ),
        (
            401,
            r#"{"statusCode":401,"message":"Access denied due to invalid subscription key"}"#,
            Authentication,
        ),
        // Anthropic.
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01."}}"#,
            Quota,
        ),
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 20,000 input tokens per minute"}}"#,
            RateLimited,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000"}}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"message":"Input is too long for requested model."}"#,
            ContextTooLong,
        ),
        // OpenRouter.
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}","provider_name":"X"}}}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"0"}}}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x/y:free is temporarily rate-limited upstream. Please retry shortly"}}}"#,
            RateLimited,
        ),
        (
            402,
            r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#,
            Quota,
        ),
        (
            403,
            r#"{"error":{"message":"x requires moderation on Y. Your input was flagged","code":403,"metadata":{"reasons":["violence"]}}}"#,
            BadRequest,
        ),
        (
            200,
            r#"{"error":{"message":"Upstream is busy","code":429}}"#,
            RateLimited,
        ),
        (
            502,
            r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":{"error":{"type":"overloaded_error","message":"Overloaded"}}}}}"#,
            Overloaded,
        ),
        // Groq, xAI, DeepSeek, Mistral, Moonshot, Z.ai, Alibaba, Cerebras.
        (
            413,
            r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000","type":"tokens","code":"rate_limit_exceeded"}}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            ContextTooLong,
        ),
        (
            403,
            r#"{"code":"The caller does not have permission","error":"Your newly created team doesn't have any credits yet."}"#,
            Quota,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
            Quota,
        ),
        (
            400,
            r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}"#,
            RateLimited,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072","type":"invalid_request_error"}}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"error":{"message":"Your account is suspended, please check your plan","type":"exceeded_current_quota_error"}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"message":"The engine is currently overloaded","type":"engine_overloaded_error"}}"#,
            Overloaded,
        ),
        (
            400,
            r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}"#,
            Quota,
        ),
        (
            400,
            r#"{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"}}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}"#,
            Quota,
        ),
        (
            429,
            r#"{"message":"Requests per minute limit exceeded - too many requests sent.","type":"too_many_requests_error","param":"quota","code":"request_quota_exceeded"}"#,
            RateLimited,
        ),
        // Servers on one's own machine.
        (
            404,
            r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
            BadRequest,
        ),
        (
            400,
            r#"{"error":"registry.ollama.ai/library/x does not support tools"}"#,
            BadRequest,
        ),
        (
            400,
            r#"{"object":"error","message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","param":null,"code":400}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}"#,
            ContextTooLong,
        ),
        (
            422,
            r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000","error_type":"validation"}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"error":"Model is overloaded","error_type":"overloaded"}"#,
            Overloaded,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}"#,
            ContextTooLong,
        ),
        // Gateways.
        (
            400,
            r#"{"error":{"message":"litellm.ContextWindowExceededError: x","type":null,"param":null,"code":"400"}}"#,
            ContextTooLong,
        ),
        (
            403,
            r#"{"success":false,"errors":[{"code":10000,"message":"Authentication error"}]}"#,
            Authentication,
        ),
        (500, r#"{"error":["something","else"]}"#, Server),
        (522, "<!DOCTYPE html><title>Connection timed out</title>", Server),
        (502, "", Server),
        (500, "[]", Server),
        (429, "Too Many Requests", RateLimited),
    ];
    for (status, body, wanted) in cases {
        assert_eq!(class(status, body), wanted, "{status} {body}");
    }
}

#[test]
fn the_provider_s_own_words_are_told_and_a_web_page_is_not() {
    for (status, body, words) in [
        (500, r#"{"error":"plain"}"#, "answered 500: plain"),
        (
            500,
            r#"{"errors":[{"message":"first"},{"message":"second"}]}"#,
            "answered 500: first",
        ),
        (500, r#"{"error":["only"]}"#, "answered 500: only"),
        (
            502,
            r#"{"error":{"message":"own","metadata":{"raw":"{\"detail\":\"behind\"}"}}}"#,
            "answered 502: own: behind",
        ),
        (200, r#"{"error":{"message":"late","code":503}}"#, "answered 503: late"),
        (502, "<html>no</html>", "without a readable message"),
    ] {
        let message = error(status, body).message;
        assert!(message.ends_with(words), "{message}");
    }
}

#[test]
fn a_wait_is_found_wherever_it_is_told() {
    for (body, millis) in [
        (
            r#"[{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34s"}]}}]"#,
            34_000,
        ),
        (r#"{"error":{"message":"Please retry in 7.5s"}}"#, 7_500),
        (
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"try again in 2s\"}}"}}}"#,
            2_000,
        ),
        (
            r#"{"error":{"message":"x","metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"9000"}}}}"#,
            9_000_000,
        ),
    ] {
        assert_eq!(
            error(429, body).retry_after,
            Some(Duration::from_millis(millis)),
            "{body}"
        );
    }
}

#[test]
fn a_model_nobody_knows_is_told_as_such() {
    for (status, body) in [
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
        ),
        (
            404,
            r#"{"error":{"message":"model \"x\" not found, try pulling it first"}}"#,
        ),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
        ),
        (400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#),
    ] {
        let error = error(status, body);
        assert_eq!(error.class, Class::BadRequest, "{body}");
        assert!(error.hint.is_some_and(|hint| hint.contains("`model`")), "{body}");
    }
}

#[test]
fn an_event_in_the_stream_may_have_any_of_the_shapes_too() -> anyhow::Result<()> {
    for (json, wanted) in [
        (
            r#"{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}"#,
            Class::Overloaded,
        ),
        (r#"{"code":"429","message":"slow"}"#, Class::RateLimited),
        (
            r#"{"message":"Provider returned error","code":502,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}"}}"#,
            Class::Overloaded,
        ),
        (
            r#"{"type":"error","code":"context_length_exceeded","message":"x"}"#,
            Class::ContextTooLong,
        ),
        (
            r#"{"code":"rate_limit_exceeded","message":"Please try again in 11.054s."}"#,
            Class::RateLimited,
        ),
        (r#"{"code":"server_error","message":"x"}"#, Class::Server),
        (
            r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#,
            Class::BadRequest,
        ),
    ] {
        let event = InStreamError::from_value(&serde_json::from_str(json)?);
        assert_eq!(in_stream(&event).class, wanted, "{json}");
    }
    Ok(())
}
