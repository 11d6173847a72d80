//! Which arithmetic is harmless: bash evaluates the values of names in it again, and an array index in such a value
//! runs commands.

use super::scope::Scope;

/// Whether every name in the expression was given a whole number on this command line.
pub(super) fn is_harmless(expression: &str, scope: &Scope) -> bool {
    if expression.contains(['[', ']', '\\', '\'', '"', '`', '$', '{', '}', super::arg::UNKNOWN]) {
        return false;
    }
    names(expression).all(|name| {
        scope
            .vars
            .get(name)
            .is_some_and(|var| var.value.is_sure() && is_integer(&var.value.text))
    })
}

fn names(expression: &str) -> impl Iterator<Item = &str> {
    expression
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '#' | '@')))
        .filter(|word| !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit()))
}

pub(super) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() < 19 && digits.chars().all(|c| c.is_ascii_digit())
}
