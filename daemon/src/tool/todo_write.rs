//! `todo_write`: the model's list of what it means to do, shown live to people. Each call replaces the whole list, so that
//! none can get lost between two edits.

use std::sync::LazyLock;

use async_trait::async_trait;
use protocol::event::{TodoItem, TodoState};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::digest::{CallDigest, agrees};
use super::{ArgumentError, Ended, Inspected, Outcome, Place, RunContext, Spec, Tool, arguments};

/// Items of a list: more than a person follows, and a bound of the session's state.
const ITEMS_LIMIT: usize = 64;

/// Characters of an item.
const TEXT_LIMIT_CHARS: usize = 200;

/// Keeps the list.
pub(super) struct TodoWrite;

/// Arguments of `todo_write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole list in order; an empty one clears it.
    #[schemars(length(max = 64))]
    items: Vec<Item>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    /// What is to be done, in one line.
    #[schemars(length(min = 1, max = 200))]
    text: String,
    /// How far it is, `pending` if left out.
    #[serde(default)]
    state: State,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    #[default]
    Pending,
    InProgress,
    Done,
}

impl From<State> for TodoState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::InProgress => Self::InProgress,
            State::Done => Self::Done,
        }
    }
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "todo_write",
    description: format!(
        "Replaces your list of what is to be done, which the user sees. Use it for work of several steps: write the list \
         first, keep exactly one item `in_progress`, mark each `done` as soon as it is. At most {ITEMS_LIMIT} items of \
         {TEXT_LIMIT_CHARS} characters."
    ),
    schema: arguments::schema::<Arguments>(),
    writes: false,
});

fn items(arguments: &Value) -> Result<Vec<TodoItem>, ArgumentError> {
    let Arguments { items } = arguments::parse(arguments)?;
    if items.len() > ITEMS_LIMIT {
        let text = format!("has {} items, at most {ITEMS_LIMIT} are kept", items.len());
        return Err(ArgumentError::at("items", text));
    }
    let checked = |(index, item): (usize, Item)| {
        let text = item.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.chars().count() {
            0 => Err(ArgumentError::at(&format!("items[{index}].text"), "is empty")),
            1..=TEXT_LIMIT_CHARS => Ok(TodoItem {
                text,
                state: item.state.into(),
            }),
            count => {
                let text = format!("has {count} characters, at most {TEXT_LIMIT_CHARS} are kept");
                Err(ArgumentError::at(&format!("items[{index}].text"), text))
            }
        }
    };
    items.into_iter().enumerate().map(checked).collect()
}

#[async_trait]
impl Tool for TodoWrite {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    async fn inspect(&self, arguments: &Value, _place: &Place) -> Result<Inspected, ArgumentError> {
        items(arguments)?;
        Ok(Inspected::nowhere(SPEC.name, arguments))
    }

    async fn run(&self, arguments: &Value, digest: &str, _run: RunContext) -> Ended {
        let items = match items(arguments) {
            Ok(items) => items,
            Err(error) => return Ended::new(Outcome::NotRun, error.to_string()),
        };
        if !agrees(&CallDigest::nowhere(SPEC.name, arguments).finish(), digest) {
            return Ended::changed_since_approved();
        }
        let done = items.iter().filter(|item| item.state == TodoState::Done).count();
        let count = items.len();
        let text = format!(
            "The list has {count} {}, {done} of {} done.",
            if count == 1 { "item" } else { "items" },
            if count == 1 { "it" } else { "them" }
        );
        Ended {
            todo: Some(items),
            ..Ended::new(Outcome::Ok, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::world::World;
    use super::*;

    #[tokio::test]
    async fn the_list_is_replaced_whole_and_a_line_end_cannot_make_two_items_of_one() {
        let world = World::new();
        let list = json!({"items": [{"text": "read\nthe  code", "state": "done"}, {"text": "write"}]});
        let ended = world.run(&TodoWrite, list).await;
        let expected = vec![
            TodoItem {
                text: "read the code".into(),
                state: TodoState::Done,
            },
            TodoItem {
                text: "write".into(),
                state: TodoState::Pending,
            },
        ];
        assert_eq!((ended.outcome, ended.todo), (Outcome::Ok, Some(expected)));
    }

    #[tokio::test]
    async fn a_list_beyond_its_bounds_is_refused_with_the_path_of_the_mistake() {
        let world = World::new();
        let many: Vec<_> = (0..=ITEMS_LIMIT).map(|_| json!({"text": "x"})).collect();
        for (list, expected) in [
            (json!({"items": many}), "`items`: has 65 items"),
            (json!({"items": [{"text": " "}]}), "`items[0].text`: is empty"),
            (
                json!({"items": [{"text": "é".repeat(201)}]}),
                "`items[0].text`: has 201 characters",
            ),
            (json!({"items": [{"text": "x", "state": "maybe"}]}), "items[0].state"),
        ] {
            let ended = world.run(&TodoWrite, list).await;
            assert!(
                ended.outcome == Outcome::NotRun && ended.output.contains(expected),
                "{}",
                ended.output
            );
        }
    }

    #[test]
    fn the_schema_says_the_limits_the_code_enforces() {
        let items = &SPEC.schema["properties"]["items"];
        assert_eq!(items["maxItems"].as_u64(), Some(ITEMS_LIMIT as u64));
        let text = &items["items"]["properties"]["text"];
        assert_eq!(text["maxLength"].as_u64(), Some(TEXT_LIMIT_CHARS as u64));
    }
}
