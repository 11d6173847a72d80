//! The demo model against requests as the loop builds them.

use protocol::Content;
use serde_json::json;

use super::*;
use crate::provider::{Message, ToolResult, ToolSpec};

const TOOLS: [&str; 5] = ["read_file", "list_dir", "write_file", "edit_file", "bash"];

/// What was streamed, item by item.
#[derive(Default)]
struct Heard {
    items: Vec<(ItemKind, String)>,
}

impl Sink for Heard {
    fn open(&mut self, item: usize, kind: ItemKind) {
        assert_eq!(item, self.items.len(), "items open in order");
        self.items.push((kind, String::new()));
    }

    fn push(&mut self, item: usize, text: &str) {
        self.items[item].1.push_str(text);
    }
}

/// A conversation that grows as the loop would let it.
struct Talk {
    request: ModelRequest,
}

impl Talk {
    fn new(input: &str) -> Self {
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            schema: json!({}),
        };
        let request = ModelRequest {
            model: "demo".to_owned(),
            system: "You are a test.".to_owned(),
            messages: vec![Message::User {
                content: vec![Content::text(input)],
            }],
            tools: TOOLS.iter().map(tool).collect(),
            max_output_tokens: 16_384,
            temperature: None,
            top_p: None,
            effort: None,
            cache_key: None,
            interactive: false,
        };
        Self { request }
    }

    /// The next reply; checks that what was streamed is what was returned.
    async fn reply(&self) -> anyhow::Result<ModelReply> {
        let mut heard = Heard::default();
        let reply = Demo.call(&self.request, &mut heard).await?;
        let streamed: Vec<String> = heard.items.into_iter().map(|(_, text)| text).collect();
        let returned = reply.items.iter().map(|item| match item {
            ReplyItem::Text { text, .. } => Ok(text.clone()),
            ReplyItem::Call(call) => Ok(Value::Object(call.arguments.clone().unwrap_or_default()).to_string()),
            other => Err(anyhow::anyhow!("{other:?}")),
        });
        assert_eq!(streamed, returned.collect::<Result<Vec<_>, _>>()?);
        Ok(reply)
    }

    /// The call the next reply asks for, answered with `output`.
    async fn call(&mut self, output: &str, is_error: bool) -> anyhow::Result<(String, Value)> {
        let reply = self.reply().await?;
        anyhow::ensure!(reply.stop == Stop::ToolUse, "the turn ended: {reply:?}");
        let call = reply.items.iter().find_map(|item| match item {
            ReplyItem::Call(call) => Some(call.clone()),
            _ => None,
        });
        let call = call.ok_or_else(|| anyhow::anyhow!("no call in {reply:?}"))?;
        let result = ToolResult {
            provider_call_id: call.provider_call_id.clone(),
            output: vec![Content::text(output)],
            is_error,
        };
        self.request.messages.push(Message::Assistant {
            origin: Demo.origin(),
            items: reply.items,
        });
        self.request.messages.push(Message::Results { results: vec![result] });
        Ok((call.name, Value::Object(call.arguments.unwrap_or_default())))
    }

    /// The text of the next reply, which ends the turn.
    async fn answer(&self) -> anyhow::Result<String> {
        let reply = self.reply().await?;
        assert_eq!(reply.stop, Stop::EndTurn);
        match reply.items.as_slice() {
            [ReplyItem::Text { text, .. }] => Ok(text.clone()),
            other => anyhow::bail!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_question_about_the_folder_is_answered_from_what_the_tools_return() -> anyhow::Result<()> {
    let mut talk = Talk::new("What is in this folder?");
    assert_eq!(
        talk.call("src/\nnotes.txt\nReadme.md\n", false).await?,
        ("list_dir".to_owned(), json!({"path": "."}))
    );
    assert_eq!(
        talk.call("     1\tHello 4711\n", false).await?,
        ("read_file".to_owned(), json!({"path": "Readme.md"}))
    );
    let answer = talk.answer().await?;
    assert!(
        answer.contains("Hello 4711") && answer.contains("notes.txt"),
        "{answer}"
    );
    assert!(
        answer.contains("demo model") && answer.contains("cannot reason"),
        "{answer}"
    );
    Ok(())
}

#[tokio::test]
async fn without_a_readme_the_first_text_file_is_read_and_secrets_are_not() -> anyhow::Result<()> {
    for (listing, file) in [
        ("lib/\n.env.json\nphoto.png\nmain.rs\nother.md\n", Some("main.rs")),
        ("[12 of 20 entries, the newest]\nMakefile\n", Some("Makefile")),
        ("lib/\nlink.md@\n.env\n", None),
        ("(no entries)\n", None),
    ] {
        let mut talk = Talk::new("what's in this project");
        talk.call(listing, false).await?;
        let next = talk.call("x", false).await.ok();
        assert_eq!(
            next.map(|(_, arguments)| arguments),
            file.map(|file| json!({"path": file})),
            "{listing}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_denied_or_failed_call_is_told() -> anyhow::Result<()> {
    let mut talk = Talk::new("What is in this folder?");
    talk.call("Denied: not in my house", true).await?;
    let answer = talk.answer().await?;
    assert!(
        answer.contains("not in my house") && answer.contains("denied or failed"),
        "{answer}"
    );
    Ok(())
}

#[tokio::test]
async fn words_become_calls_with_the_tools_own_arguments() -> anyhow::Result<()> {
    for (input, tool, arguments) in [
        ("run git log -1", "bash", json!({"command": "git log -1"})),
        ("read src/main.rs", "read_file", json!({"path": "src/main.rs"})),
        (
            "write a.txt hello  world",
            "write_file",
            json!({"path": "a.txt", "content": "hello  world"}),
        ),
        ("write a.txt", "write_file", json!({"path": "a.txt", "content": ""})),
    ] {
        let mut talk = Talk::new(input);
        assert_eq!(talk.call("output 4711", false).await?, (tool.to_owned(), arguments));
        assert!(talk.answer().await?.contains("output 4711"), "{input}");
    }
    Ok(())
}

#[tokio::test]
async fn anything_else_is_answered_with_what_it_cannot_do() -> anyhow::Result<()> {
    for input in ["Prove the Riemann hypothesis", "", "run", "long ago", "failing tests"] {
        assert!(Talk::new(input).answer().await?.contains("cannot reason"), "{input}");
    }
    Ok(())
}

#[tokio::test]
async fn fail_is_an_error_that_is_not_tried_again() {
    let failed = Demo.call(&Talk::new("fail").request, &mut Heard::default()).await;
    assert!(failed.is_err_and(|error| !error.class.retryable()));
}

#[tokio::test]
async fn long_counts_and_ends_at_the_output_limit() -> anyhow::Result<()> {
    let mut talk = Talk::new("long 300");
    let lines = talk.answer().await?;
    assert_eq!((lines.lines().count(), lines.starts_with("1. ")), (300, true));
    talk.request.max_output_tokens = 10;
    let reply = talk.reply().await?;
    assert_eq!(reply.stop, Stop::MaxTokens);
    assert_eq!(reply.usage.map(|usage| usage.output), Some(10));
    Ok(())
}

#[tokio::test]
async fn it_starts_over_with_each_input_and_never_uses_a_call_id_twice() -> anyhow::Result<()> {
    let mut talk = Talk::new("run one");
    talk.call("first", false).await?;
    let answer = talk.reply().await?;
    talk.request.messages.push(Message::Assistant {
        origin: Demo.origin(),
        items: answer.items,
    });
    talk.request.messages.push(Message::User {
        content: vec![Content::text("old"), Content::text("run two")],
    });
    assert_eq!(talk.call("second", false).await?.1, json!({"command": "two"}));
    let ids = talk.request.messages.iter().flat_map(|message| match message {
        Message::Results { results } => results.iter().map(|result| result.provider_call_id.as_str()).collect(),
        _ => Vec::new(),
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["demo_1", "demo_2"]);
    let answer = talk.answer().await?;
    assert!(answer.contains("second") && !answer.contains("first"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn a_tool_the_session_lacks_is_not_asked_for() -> anyhow::Result<()> {
    let mut talk = Talk::new("run ls");
    talk.request.tools.clear();
    assert!(talk.answer().await?.contains("does not have that tool"));
    let mut talk = Talk::new("What is in this folder?");
    talk.request.tools.clear();
    assert!(talk.answer().await?.contains("no tool"));
    Ok(())
}

#[tokio::test]
async fn usage_is_counted_from_bytes() -> anyhow::Result<()> {
    let mut talk = Talk::new("hello");
    talk.request.tools.clear();
    let reply = talk.reply().await?;
    let usage = reply.usage.unwrap_or_default();
    assert_eq!(
        usage.input,
        ("You are a test.".len() + "hello".len()).div_ceil(4) as u64
    );
    assert_eq!(usage.output, said(&reply.items).div_ceil(4));
    Ok(())
}

#[tokio::test]
async fn with_a_person_watching_it_asks_for_a_command_after_looking() -> anyhow::Result<()> {
    let mut talk = Talk::new("What is in this folder?");
    talk.request.interactive = true;
    talk.call("empty/\n", false).await?;
    assert_eq!(talk.call("## main", false).await?.0, "bash");
    assert!(talk.answer().await?.contains("## main"));
    Ok(())
}
