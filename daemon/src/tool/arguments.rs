//! From the JSON a model sent to a typed value, and from the Rust type to the schema the model is shown. A mistake is told
//! by its path, so that the model can repair it in one go.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The arguments are wrong, or the call cannot work as things are; the text is the result the model gets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgumentError(pub String);

impl ArgumentError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A mistake in the value of `name`.
    pub(crate) fn at(name: &str, text: impl std::fmt::Display) -> Self {
        Self(format!("`{name}`: {text}"))
    }
}

impl From<crate::target::TargetError> for ArgumentError {
    fn from(error: crate::target::TargetError) -> Self {
        Self(error.to_string())
    }
}

/// Reads the arguments of a call. A missing object counts as an empty one: some models send nothing for no arguments.
pub(crate) fn parse<T: DeserializeOwned>(arguments: &Value) -> Result<T, ArgumentError> {
    let empty = Value::Object(serde_json::Map::new());
    let arguments = match arguments {
        Value::Null => &empty,
        Value::Object(_) => arguments,
        _ => return Err(ArgumentError::new("the arguments must be a JSON object")),
    };
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let text = reworded(&error.inner().to_string());
        match error.path().to_string().as_str() {
            "." => ArgumentError(text),
            path => ArgumentError::at(path, text),
        }
    })
}

/// serde's "invalid type: string \"x\", expected u64" in words that do not depend on Rust's types.
fn reworded(text: &str) -> String {
    let Some((found, expected)) = text
        .strip_prefix("invalid type: ")
        .or(text.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "))
    else {
        return text.to_string();
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "integer from 0 up",
        "i32" | "i64" => "integer",
        "a string" => "string",
        "a boolean" => "boolean",
        other => other,
    };
    format!("expected {expected}, got {found}")
}

/// The schema of an argument type: self-contained, without the words that only cost tokens.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value();
    strip(&mut schema);
    schema
}

fn strip(value: &mut Value) {
    let Value::Object(object) = value else { return };
    if !object.get("title").is_some_and(Value::is_object) {
        object.remove("title");
    }
    object.remove("format");
    // An optional argument is one that is not required; that it may also be null need not be said.
    if let Some(Value::Array(types)) = object.get("type") {
        let only: Vec<Value> = types.iter().filter(|kind| *kind != "null").cloned().collect();
        if let [kind] = only.as_slice() {
            object.insert("type".into(), kind.clone());
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    object.values_mut().for_each(strip);
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Example {
        #[allow(dead_code, reason = "only its schema and parsing matter")]
        path: String,
        #[allow(dead_code, reason = "only its schema and parsing matter")]
        limit: Option<u32>,
    }

    fn mistake(arguments: Value) -> String {
        parse::<Example>(&arguments)
            .map(|_| String::new())
            .unwrap_or_else(|error| error.0)
    }

    #[test]
    fn a_mistake_names_its_path_and_what_was_expected() {
        assert_eq!(
            mistake(json!({"path": "a", "limit": "ten"})),
            "`limit`: expected integer from 0 up, got string \"ten\""
        );
        assert_eq!(mistake(json!({"path": 1})), "`path`: expected string, got integer `1`");
        assert_eq!(mistake(json!({"limit": 1})), "missing field `path`");
        assert!(mistake(json!({"path": "a", "depth": 1})).contains("unknown field `depth`"));
        assert_eq!(mistake(json!([1])), "the arguments must be a JSON object");
    }

    #[test]
    fn a_schema_forbids_additional_properties_and_has_no_meta_words() {
        let schema = schema::<Example>();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["path"]));
        assert_eq!(schema["properties"]["limit"], json!({"type": "integer", "minimum": 0}));
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
    }
}
