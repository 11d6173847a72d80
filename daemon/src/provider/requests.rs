//! The requests all three wires build, mostly from replies their own decoders made: what a provider said has to go back the
//! way it wants it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use protocol::Content;
use serde_json::{Map, Value, json};

use super::*;

const HOME: &str = "wire https://home.example";

/// Nobody watches.
struct Nobody;

impl Sink for Nobody {
    fn open(&mut self, _: usize, _: ItemKind) {}
    fn push(&mut self, _: usize, _: &str) {}
}

/// The reply of one of the project's own streams.
fn reply(wire: Wire, name: &str) -> ModelReply {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/streams")
        .join(wire.as_str());
    decode(wire, &folder.join(format!("{name}.sse")))
}

fn decode(wire: Wire, path: &Path) -> ModelReply {
    let mut parser = sse::Parser::default();
    parser.push(&std::fs::read(path).unwrap());
    parser.end();
    let mut stream = decoder(wire).unwrap();
    while let Some(event) = parser.next_event().unwrap() {
        stream.event(&event, &mut Nobody).unwrap();
    }
    stream.finish().into_reply(&mut Nobody).unwrap()
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: String::new(),
        messages,
        tools: Vec::new(),
        max_output_tokens: 16_384,
        temperature: None,
        top_p: None,
        effort: None,
        cache_key: None,
        interactive: false,
    }
}

fn user(text: &str) -> Message {
    Message::User {
        content: vec![Content::text(text)],
    }
}

fn assistant(origin: &str, reply: ModelReply) -> Message {
    Message::Assistant {
        origin: Origin(origin.to_owned()),
        items: reply.items,
    }
}

fn results(ids: &[&str]) -> Message {
    let result = |id: &&str| ToolResult {
        provider_call_id: (*id).to_owned(),
        output: vec![Content::text(format!("result of {id}"))],
        is_error: false,
    };
    Message::Results {
        results: ids.iter().map(result).collect(),
    }
}

fn image() -> Content {
    Content::Image {
        media_type: "image/png".to_owned(),
        data: "aW1n".to_owned(),
    }
}

fn image_result(id: &str) -> Message {
    let result = ToolResult {
        provider_call_id: id.to_owned(),
        output: vec![Content::text("a picture"), image()],
        is_error: true,
    };
    Message::Results { results: vec![result] }
}

fn home() -> Origin {
    Origin(HOME.to_owned())
}

fn anthropic(request: &ModelRequest) -> Value {
    anthropic_messages::request::body(request, &home())
}

fn chat(request: &ModelRequest) -> Value {
    openai_chat::request::body(request, &home(), openai_chat::request::Dialect::Other)
}

fn responses(request: &ModelRequest) -> Value {
    openai_responses::request::body(request, &home(), openai_responses::request::Dialect::Other)
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "t".to_owned(),
        description: "d".to_owned(),
        schema: json!({ "type": "object" }),
    }
}

// Anthropic Messages

#[test]
fn anthropic_marks_tools_system_and_the_end_of_the_history_for_the_cache() {
    let mut request = request(vec![user("a"), user("b")]);
    request.system = "be brief".to_owned();
    request.tools = vec![tool(), tool()];
    let mark = json!({ "type": "ephemeral" });
    let body = anthropic(&request);
    let tool = json!({ "name": "t", "description": "d", "input_schema": { "type": "object" } });
    let mut marked_tool = tool.clone();
    marked_tool["cache_control"] = mark.clone();
    let expected = json!({
        "model": "m", "max_tokens": 16_384, "stream": true,
        "system": [{ "type": "text", "text": "be brief", "cache_control": mark }],
        "tools": [tool, marked_tool],
        "messages": [{ "role": "user", "content": [
            { "type": "text", "text": "a" },
            { "type": "text", "text": "b", "cache_control": mark },
        ]}],
    });
    assert_eq!(body, expected);
}

#[test]
fn anthropic_marks_what_the_last_call_sent_and_never_more_than_four_places() {
    let call = reply(Wire::AnthropicMessages, "parallel-tools");
    let ids: Vec<String> = call
        .items
        .iter()
        .filter_map(|item| match item {
            ReplyItem::Call(call) => Some(call.provider_call_id.clone()),
            _ => None,
        })
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut request = request(vec![user("a")]);
    request.system = "be brief".to_owned();
    request.tools = vec![tool(), tool()];
    for _ in 0..3 {
        let last = anthropic(&request)["messages"].as_array().unwrap().len() - 1;
        request
            .messages
            .extend([assistant(&home().0, call.clone()), results(&ids)]);
        let body = anthropic(&request);
        let end_of_last_call = &body["messages"][last]["content"];
        assert!(
            end_of_last_call
                .as_array()
                .unwrap()
                .last()
                .unwrap()
                .get("cache_control")
                .is_some(),
            "{body}"
        );
        assert_eq!(body.to_string().matches("cache_control").count(), 4, "{body}");
    }
}

#[test]
fn anthropic_gets_thinking_back_unchanged_and_before_the_calls() {
    let said = reply(Wire::AnthropicMessages, "thinking-and-redacted");
    let body = anthropic(&request(vec![user("a"), assistant(HOME, said), user("b")]));
    let expected = json!([
        { "type": "thinking", "thinking": "Hm, so.", "signature": "c2ln" },
        { "type": "redacted_thinking", "data": "cmVk" },
        { "type": "redacted_thinking", "data": "YWN0" },
        { "type": "thinking", "thinking": "", "signature": "b21pdHRlZA==" },
        { "type": "text", "text": "Done." },
    ]);
    assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": expected }));
}

#[test]
fn anthropic_gets_all_results_in_one_message_before_any_text() {
    let said = reply(Wire::AnthropicMessages, "parallel-tools");
    let messages = vec![
        user("a"),
        assistant(HOME, said),
        results(&["toolu_1", "toolu_2"]),
        user("and?"),
    ];
    let body = anthropic(&request(messages));
    let result = |id: &str| {
        let content = json!([{ "type": "text", "text": format!("result of {id}") }]);
        json!({ "type": "tool_result", "tool_use_id": id, "content": content })
    };
    let expected = json!([
        { "role": "user", "content": [{ "type": "text", "text": "a" }] },
        { "role": "assistant", "content": [
            { "type": "text", "text": "Let me look." },
            { "type": "tool_use", "id": "toolu_1", "name": "read_file", "input": { "path": "ä.txt" } },
            { "type": "tool_use", "id": "toolu_2", "name": "now", "input": {} },
        ]},
        { "role": "user", "content": [
            result("toolu_1"),
            result("toolu_2"),
            { "type": "text", "text": "and?" },
        ]},
    ]);
    assert_eq!(unmarked(body["messages"].clone()), expected);
}

#[test]
fn anthropic_gets_hosted_tools_and_citations_back_raw() {
    let said = reply(Wire::AnthropicMessages, "hosted-search");
    let body = anthropic(&request(vec![user("a"), assistant(HOME, said), user("b")]));
    let blocks = &body["messages"][1]["content"];
    assert_eq!(blocks[1]["input"], json!({ "query": "sky" }));
    assert_eq!(blocks[2]["content"][0]["encrypted_content"], "ZW5j");
    assert_eq!(blocks[3]["citations"][0]["encrypted_index"], "aQ==");
}

#[test]
fn anthropic_gets_nothing_of_a_refused_reply() {
    let said = reply(Wire::AnthropicMessages, "refusal-after-text");
    assert_eq!(said.stop, Stop::Refusal);
    let body = anthropic(&request(vec![user("a"), assistant(HOME, said), user("b")]));
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(1));
    assert!(!body.to_string().contains("declined"));
}

#[test]
fn anthropic_takes_images_in_messages_and_results() {
    let said = reply(Wire::AnthropicMessages, "parallel-tools");
    let asked = Message::User {
        content: vec![image(), Content::text("what?")],
    };
    let body = anthropic(&request(vec![asked, assistant(HOME, said), image_result("toolu_1")]));
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "aW1n" });
    assert_eq!(
        body["messages"][0]["content"][0],
        json!({ "type": "image", "source": source })
    );
    let result = &body["messages"][2]["content"][0];
    assert_eq!(result["content"][1]["source"], source);
    assert_eq!(result["is_error"], true);
}

#[test]
fn anthropic_models_think_by_effort_or_by_budget() {
    let mut request = request(vec![user("a")]);
    request.effort = Some(Effort::High);
    request.temperature = Some(0.5);
    for model in [
        "claude-opus-4-6",
        "claude-opus-4.7",
        "claude-fable-5",
        "anthropic/claude-sonnet-5",
        "claude-next",
    ] {
        request.model = model.to_owned();
        let body = anthropic(&request);
        assert_eq!(body["thinking"], json!({ "type": "adaptive" }), "{model}");
        assert_eq!(body["output_config"], json!({ "effort": "high" }), "{model}");
        assert!(body.get("temperature").is_none());
    }
    for model in [
        "claude-sonnet-4-20250514",
        "claude-3-7-sonnet-20250219",
        "claude-haiku-4-5-20251001",
        "claude-opus-4-1",
    ] {
        request.model = model.to_owned();
        let body = anthropic(&request);
        assert_eq!(
            body["thinking"],
            json!({ "type": "enabled", "budget_tokens": 8192 }),
            "{model}"
        );
    }
    request.max_output_tokens = 1024;
    let body = anthropic(&request);
    assert!(body.get("thinking").is_none(), "no budget fits");
    assert_eq!(body["temperature"], 0.5);
}

/// The next request of a recorded exchange, rebuilt from the reply that led to it.
#[test]
fn anthropic_rebuilds_a_recorded_follow_up() {
    let name = "fantasy-claude-sonnet-4-thinking-streaming";
    let root =
        std::env::var_os("AGENTD_FIXTURES").map_or_else(|| "../../shared/fixtures".into(), std::path::PathBuf::from);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(root).join("dev/anthropic");
    let Ok(recorded) = std::fs::read_to_string(folder.join(format!("requests/{name}.request.json"))) else {
        crate::skip::note(&format!(
            "no recorded requests at {}; set AGENTD_FIXTURES",
            folder.display()
        ));
        return;
    };
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    let said = decode(Wire::AnthropicMessages, &folder.join(format!("{name}.sse")));
    let result = ToolResult {
        provider_call_id: "toolu_017cWttjFBXZWw8LkJbhpqm1".to_owned(),
        output: vec![Content::text("40 C")],
        is_error: false,
    };
    let asked = user("What's the weather in Florence, Italy?");
    let messages = vec![asked, assistant(HOME, said), Message::Results { results: vec![result] }];
    assert_eq!(
        unmarked(anthropic(&request(messages))["messages"].take()),
        unmarked(recorded["messages"].clone())
    );
}

/// `value` without cache marks, which every client places as it likes.
fn unmarked(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.remove("cache_control");
            map.values_mut().for_each(|inner| *inner = unmarked(inner.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| *inner = unmarked(inner.take())),
        _ => {}
    }
    value
}

// Chat Completions

#[test]
fn chat_gets_calls_with_null_content_and_one_message_per_result() {
    let said = reply(Wire::OpenaiChat, "parallel-tools");
    let mut request = request(vec![
        user("a"),
        assistant(HOME, said),
        results(&["call_a", "call_b"]),
        user("b"),
    ]);
    request.system = "be brief".to_owned();
    request.tools = vec![tool()];
    let body = chat(&request);
    let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let calls = json!([call("call_a", "read", "{\"path\":\"x\"}"), call("call_b", "now", "{}")]);
    let expected = json!({
        "model": "m", "max_tokens": 16_384, "stream": true, "stream_options": { "include_usage": true },
        "tools": [{ "type": "function", "function": { "name": "t", "description": "d", "parameters": { "type": "object" } } }],
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": null, "tool_calls": calls },
            { "role": "tool", "tool_call_id": "call_a", "content": "result of call_a" },
            { "role": "tool", "tool_call_id": "call_b", "content": "result of call_b" },
            { "role": "user", "content": "b" },
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn chat_gets_reasoning_back_in_the_form_it_came_in() {
    let back = |name: &str| {
        let said = reply(Wire::OpenaiChat, name);
        chat(&request(vec![user("a"), assistant(HOME, said)]))["messages"][1].take()
    };
    let details = back("reasoning-details");
    let text = json!({
        "type": "reasoning.text", "text": "I think", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0,
    });
    assert_eq!(details["reasoning_details"], json!([text]));
    assert_eq!(back("encrypted-details-only")["reasoning_details"][0]["data"], "ZW5j");
    let parts = back("no-index-and-late-calls");
    let thought = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] });
    assert_eq!(
        parts["content"],
        json!([thought, { "type": "text", "text": "So then." }])
    );
    // Without calls servers want no plain reasoning back, with calls they need it.
    assert_eq!(
        back("reasoning-content"),
        json!({ "role": "assistant", "content": "Answer" })
    );
    let mut said = reply(Wire::OpenaiChat, "reasoning-content");
    said.items.extend(reply(Wire::OpenaiChat, "parallel-tools").items);
    let body = chat(&request(vec![assistant(HOME, said)]));
    assert_eq!(body["messages"][0]["reasoning_content"], "One. Two.");
}

#[test]
fn chat_gets_the_signature_of_a_call_back_with_it_and_nobody_else_does() {
    let calls = |made_by: &str| {
        let said = reply(Wire::OpenaiChat, "signed-calls");
        let body = chat(&request(vec![
            user("a"),
            assistant(made_by, said),
            results(&["function-call-1", "function-call-2"]),
        ]));
        body["messages"][1]["tool_calls"].clone()
    };
    let own = calls(HOME);
    assert_eq!(own[0]["extra_content"]["google"]["thought_signature"], "c2ln");
    assert!(own[1].get("extra_content").is_none(), "{own}");
    assert!(!calls("another").to_string().contains("extra_content"));
}

#[test]
fn chat_gets_images_of_results_in_a_user_message_behind_them() {
    let said = reply(Wire::OpenaiChat, "parallel-tools");
    let body = chat(&request(vec![assistant(HOME, said), image_result("call_a")]));
    assert_eq!(body["messages"][1]["content"], "a picture");
    assert_eq!(body["messages"][2]["role"], "user");
    assert_eq!(
        body["messages"][2]["content"][1]["image_url"]["url"],
        "data:image/png;base64,aW1n"
    );
}

#[test]
fn chat_fields_follow_who_answers() {
    use openai_chat::request::{Dialect, body};
    let mut request = request(vec![user("a")]);
    request.effort = Some(Effort::Low);
    request.system = "s".to_owned();
    request.model = "anthropic/claude".to_owned();
    request.cache_key = Some("k".to_owned());
    let at = |host: &str| body(&request, &home(), Dialect::of(host));
    let openai = at("api.openai.com");
    assert_eq!(
        (&openai["max_completion_tokens"], &openai["reasoning_effort"]),
        (&json!(16_384), &json!("low"))
    );
    assert!(at("x.openai.azure.com").get("max_tokens").is_none());
    assert_eq!(openai["prompt_cache_key"], "k");
    for other in [
        "x.openai.azure.com",
        "openrouter.ai",
        "api.mistral.ai",
        "127.0.0.1",
        "notopenai.com",
    ] {
        assert!(at(other).get("prompt_cache_key").is_none(), "{other}");
    }
    assert!(at("notopenai.com").get("max_tokens").is_some());
    assert!(at("api.mistral.ai").get("stream_options").is_none());
    let router = at("openrouter.ai");
    assert_eq!(router["reasoning"], json!({ "effort": "low" }));
    assert_eq!(
        router["messages"][0]["content"][0]["cache_control"],
        json!({ "type": "ephemeral" })
    );
    assert_eq!(
        router["messages"][1]["content"][0]["cache_control"],
        json!({ "type": "ephemeral" })
    );
}

// Responses

#[test]
fn responses_gets_encrypted_reasoning_back_with_what_it_led_to() {
    let said = reply(Wire::OpenaiResponses, "reasoning-and-call");
    let mut request = request(vec![user("a"), assistant(HOME, said), results(&["call_1"])]);
    request.system = "be brief".to_owned();
    request.effort = Some(Effort::Medium);
    request.tools = vec![tool()];
    let summary =
        json!([{ "type": "summary_text", "text": "**Planning**" }, { "type": "summary_text", "text": "More." }]);
    let said = json!([{ "type": "output_text", "text": "Looking.", "annotations": [] }]);
    let expected = json!({
        "model": "m", "max_output_tokens": 16_384, "stream": true, "store": false, "instructions": "be brief",
        "include": ["reasoning.encrypted_content"], "reasoning": { "effort": "medium", "summary": "auto" },
        "tools": [{ "type": "function", "name": "t", "description": "d", "parameters": { "type": "object" }, "strict": false }],
        "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "a" }] },
            { "type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "final" },
            {
                "type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "phase": "commentary",
                "content": said,
            },
            { "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"a\"}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "result of call_1" },
        ],
    });
    assert_eq!(responses(&request), expected);
}

#[test]
fn responses_never_gets_reasoning_alone_or_without_content() {
    let mut said = reply(Wire::OpenaiResponses, "reasoning-and-call");
    said.items.truncate(1);
    let body = responses(&request(vec![user("a"), assistant(HOME, said), user("b")]));
    assert_eq!(
        body["input"].as_array().map(Vec::len),
        Some(2),
        "the item it led to is missing"
    );
    let mut said = reply(Wire::OpenaiResponses, "reasoning-and-call");
    if let Some(ReplyItem::Reasoning {
        private: Some(private), ..
    }) = said.items.first_mut()
    {
        private["encrypted_content"] = Value::Null;
    }
    let body = responses(&request(vec![assistant(HOME, said)]));
    assert_eq!(body["input"][0]["type"], "message");
    // Reasoning of open models is plain and goes back as it is.
    let body = responses(&request(vec![assistant(
        HOME,
        reply(Wire::OpenaiResponses, "arguments-only-when-done"),
    )]));
    assert_eq!(body["input"][0]["content"][0]["text"], "Let me see");
}

#[test]
fn responses_takes_images_and_results_of_free_text_calls() {
    let body = responses(&request(vec![
        Message::User { content: vec![image()] },
        assistant(HOME, reply(Wire::OpenaiResponses, "custom-tool")),
        image_result("call_1"),
    ]));
    let picture = json!({ "type": "input_image", "image_url": "data:image/png;base64,aW1n" });
    assert_eq!(body["input"][0]["content"][0], picture);
    assert_eq!(body["input"][1]["type"], "custom_tool_call");
    assert_eq!(body["input"][1]["input"], "*** Begin Patch");
    assert_eq!(body["input"][2]["type"], "custom_tool_call_output");
    assert_eq!(body["input"][2]["output"][1], picture);
}

#[test]
fn responses_leaves_out_what_a_model_or_backend_refuses() {
    use openai_responses::request::{Dialect, body};
    let mut request = request(vec![user("a")]);
    request.model = "gpt-4.1".to_owned();
    request.max_output_tokens = 1;
    let plain = responses(&request);
    assert!(plain.get("include").is_none());
    assert_eq!(plain["max_output_tokens"], 16);
    request.cache_key = Some("k".to_owned());
    for (host, key) in [
        ("api.openai.com", json!("k")),
        ("chatgpt.com", json!("k")),
        ("x.ai", Value::Null),
    ] {
        assert_eq!(
            body(&request, &home(), Dialect::of(host))["prompt_cache_key"],
            key,
            "{host}"
        );
    }
    let backend = body(&request, &home(), Dialect::of("chatgpt.com"));
    assert!(backend.get("max_output_tokens").is_none());
    assert_eq!(backend["instructions"], "");
}

// Across providers

#[test]
fn nothing_private_reaches_another_provider() {
    let streams = [
        (Wire::AnthropicMessages, "thinking-and-redacted"),
        (Wire::AnthropicMessages, "hosted-search"),
        (Wire::OpenaiChat, "reasoning-details"),
        (Wire::OpenaiChat, "no-index-and-late-calls"),
        (Wire::OpenaiResponses, "reasoning-and-call"),
        (Wire::OpenaiResponses, "hosted-tools"),
    ];
    for (wire, name) in streams {
        let request = request(vec![
            user("a"),
            assistant("wire https://away.example", reply(wire, name)),
            user("b"),
        ]);
        for body in [anthropic(&request), chat(&request), responses(&request)] {
            let text = body.to_string();
            for secret in [
                "signature",
                "redacted",
                "encrypted_content\":",
                "rs_1",
                "msg_1",
                "fc_1",
                "thinking",
                "ws_1",
                "srvtoolu",
            ] {
                assert!(!text.contains(secret), "{name}: {secret} in {text}");
            }
        }
    }
}

#[test]
fn a_call_keeps_its_result_across_providers_whatever_its_id() {
    let said = || assistant("away", reply(Wire::OpenaiChat, "head-repeated"));
    let messages = vec![
        said(),
        results(&["functions.read:0"]),
        said(),
        results(&["functions.read:0"]),
    ];
    let body = anthropic(&request(messages.clone()));
    let ids: Vec<(&Value, &Value)> = [0, 2]
        .iter()
        .map(|at| {
            let (call, result) = (
                &body["messages"][at]["content"][0],
                &body["messages"][at + 1]["content"][0],
            );
            (&call["id"], &result["tool_use_id"])
        })
        .collect();
    assert!(
        ids.iter().all(|(call, result)| call == result && !call.is_null()),
        "{ids:?}"
    );
    assert_ne!(ids.first(), ids.get(1), "ids are unique in a request");
    let body = chat(&request(messages));
    assert_eq!(
        body["messages"][0]["tool_calls"][0]["id"],
        body["messages"][1]["tool_call_id"]
    );
}

#[test]
fn a_call_that_never_parsed_goes_back_as_an_empty_object() {
    let call = ToolCall {
        provider_call_id: "c".to_owned(),
        name: "write".to_owned(),
        arguments: Err(BadArguments {
            raw: "{\"a".to_owned(),
            message: "not JSON".to_owned(),
        }),
        private: None,
    };
    let messages = vec![
        Message::Assistant {
            origin: home(),
            items: vec![ReplyItem::Call(call)],
        },
        results(&["c"]),
    ];
    let request = request(messages);
    assert_eq!(
        anthropic(&request)["messages"][0]["content"][0]["input"],
        Value::Object(Map::new())
    );
    assert_eq!(
        chat(&request)["messages"][0]["tool_calls"][0]["function"]["arguments"],
        "{}"
    );
    assert_eq!(responses(&request)["input"][0]["arguments"], "{}");
}

#[test]
fn empty_texts_are_left_out() {
    let items = vec![ReplyItem::Text {
        text: String::new(),
        private: None,
    }];
    let request = request(vec![user("a"), Message::Assistant { origin: home(), items }, user("b")]);
    assert_eq!(anthropic(&request)["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(chat(&request)["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(responses(&request)["input"].as_array().map(Vec::len), Some(2));
}
