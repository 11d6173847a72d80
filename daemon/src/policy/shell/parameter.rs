//! Parameter expansion: `$x`, `${x:-…}`, `${x#…}` and their like, with a guess where the value is not known.

use brush_parser::word::{Parameter, ParameterExpr, ParameterTestType, SpecialParameter, SubstringMatchKind};

use super::arg::{Arg, Certainty, UNKNOWN};
use super::destructive::ZERO;
use super::expand::working_directory;
use super::pattern;
use super::scope::{HARMLESS_VARIABLES, Scope, Var};
use super::walk::Walker;

/// The values of one expansion.
pub(super) struct Found {
    pub values: Vec<Arg>,
    /// Each value is a word of its own, as with `"$@"`.
    pub separate: bool,
    /// The parameter was set on this command line.
    known: bool,
}

impl Found {
    fn one(value: Arg, known: bool) -> Self {
        Self {
            values: vec![value],
            separate: false,
            known,
        }
    }

    fn guess(text: impl Into<String>) -> Self {
        Self::one(Arg::guessed(text), false)
    }

    fn harmless() -> Self {
        Self::one(
            Arg {
                certainty: Certainty::Harmless,
                ..Arg::unknown()
            },
            false,
        )
    }

    fn map(mut self, change: impl Fn(&str) -> String) -> Self {
        for value in &mut self.values {
            if !value.text.contains(UNKNOWN) {
                value.text = change(&value.text);
            }
            // A piece of a name that matched a pattern is no longer described by the pattern.
            if value.glob {
                value.glob = false;
                value.certainty = value.certainty.max(Certainty::Output);
            }
        }
        self
    }

    fn is_empty(&self) -> bool {
        self.values.iter().all(|value| value.text.is_empty())
    }

    fn doubted(mut self) -> Self {
        for value in &mut self.values {
            value.certainty = Certainty::Unknown;
        }
        self
    }
}

impl Walker<'_> {
    pub(super) fn parameter(&mut self, expression: &ParameterExpr, scope: &mut Scope) -> Found {
        use ParameterExpr as E;
        match expression {
            E::Parameter { parameter, indirect } => self.plain(parameter, *indirect, scope),
            E::ParameterLength { .. } => Found::harmless(),
            E::UseDefaultValues {
                parameter,
                indirect,
                test_type,
                default_value,
            } => {
                let own = self.plain(parameter, *indirect, scope);
                self.or_default(own, test_type, default_value.as_deref(), scope)
            }
            E::AssignDefaultValues {
                parameter,
                indirect,
                test_type,
                default_value,
            } => {
                self.ask("${…:=…} sets a variable.");
                let own = self.plain(parameter, *indirect, scope);
                let found = self.or_default(own, test_type, default_value.as_deref(), scope);
                if let (Parameter::Named(name), Some(value)) = (parameter, found.values.first()) {
                    scope.assign(name, value.clone());
                }
                found
            }
            E::UseAlternativeValue {
                parameter,
                indirect,
                alternative_value,
                ..
            } => {
                let own = self.plain(parameter, *indirect, scope);
                let alternative = self.expand_value(alternative_value.as_deref().unwrap_or_default(), scope);
                if own.known && !own.is_empty() {
                    Found::one(alternative, true)
                } else {
                    Found::one(alternative, false).doubted()
                }
            }
            E::IndicateErrorIfNullOrUnset {
                parameter,
                indirect,
                error_message,
                ..
            } => {
                self.expand_value(error_message.as_deref().unwrap_or_default(), scope);
                self.plain(parameter, *indirect, scope)
            }
            E::RemoveSmallestSuffixPattern {
                parameter,
                indirect,
                pattern,
            } => self.trimmed(parameter, *indirect, pattern.as_deref(), Trim::ShortEnd, scope),
            E::RemoveLargestSuffixPattern {
                parameter,
                indirect,
                pattern,
            } => self.trimmed(parameter, *indirect, pattern.as_deref(), Trim::LongEnd, scope),
            E::RemoveSmallestPrefixPattern {
                parameter,
                indirect,
                pattern,
            } => self.trimmed(parameter, *indirect, pattern.as_deref(), Trim::ShortStart, scope),
            E::RemoveLargestPrefixPattern {
                parameter,
                indirect,
                pattern,
            } => self.trimmed(parameter, *indirect, pattern.as_deref(), Trim::LongStart, scope),
            E::ReplaceSubstring {
                parameter,
                indirect,
                pattern,
                replacement,
                match_kind,
            } => {
                let own = self.plain(parameter, *indirect, scope);
                let from = self.expand_value(pattern, scope);
                let to = self.expand_value(replacement.as_deref().unwrap_or_default(), scope);
                let literal = !from.text.is_empty() && !pattern::is_pattern(&from.text);
                let found = own.map(|text| {
                    if literal {
                        replace(text, &from.text, &to.text, match_kind)
                    } else {
                        UNKNOWN.to_string()
                    }
                });
                if from.is_sure() && to.is_sure() && literal {
                    found
                } else {
                    found.doubted()
                }
            }
            E::Substring {
                parameter,
                indirect,
                offset,
                length,
            } => {
                let own = self.plain(parameter, *indirect, scope);
                let (start, count) = (
                    integer(&offset.value),
                    length.as_ref().map(|length| integer(&length.value)),
                );
                if start.is_none() || count == Some(None) {
                    self.ask("A substring is cut at a place not known beforehand.");
                    return own.doubted();
                }
                own.map(|text| substring(text, start.unwrap_or_default(), count.flatten()))
            }
            E::UppercasePattern {
                parameter,
                indirect,
                pattern,
            } if is_any_letter(pattern.as_deref()) => self.plain(parameter, *indirect, scope).map(str::to_uppercase),
            E::LowercasePattern {
                parameter,
                indirect,
                pattern,
            } if is_any_letter(pattern.as_deref()) => self.plain(parameter, *indirect, scope).map(str::to_lowercase),
            E::UppercaseFirstChar {
                parameter, indirect, ..
            }
            | E::LowercaseFirstChar {
                parameter, indirect, ..
            }
            | E::UppercasePattern {
                parameter, indirect, ..
            }
            | E::LowercasePattern {
                parameter, indirect, ..
            } => self.plain(parameter, *indirect, scope).doubted(),
            E::Transform {
                parameter, indirect, ..
            } => {
                self.ask("${…@…} can run commands held in a value.");
                self.plain(parameter, *indirect, scope).doubted()
            }
            E::VariableNames { .. } | E::MemberKeys { .. } => {
                self.ask("The names of variables are not known before it runs.");
                Found::guess(UNKNOWN)
            }
        }
    }

    fn plain(&mut self, parameter: &Parameter, indirect: bool, scope: &mut Scope) -> Found {
        let found = self.lookup(parameter, scope);
        if !indirect {
            return found;
        }
        self.ask("An indirect expansion is not known before it runs.");
        let name = found.values.first().map(|value| value.text.clone()).unwrap_or_default();
        self.lookup(&Parameter::Named(name), scope).doubted()
    }

    fn lookup(&mut self, parameter: &Parameter, scope: &mut Scope) -> Found {
        match parameter {
            Parameter::Named(name) => self.variable(name, scope),
            Parameter::Positional(0) => zero(scope),
            Parameter::Positional(n) => {
                let value = usize::try_from(*n)
                    .ok()
                    .and_then(|n| scope.params.get(n.saturating_sub(1)));
                Found::one(value.cloned().unwrap_or_default(), true)
            }
            Parameter::Special(special) => special_parameter(special, scope),
            Parameter::NamedWithIndex { name, index } => {
                self.ask("Arrays are not looked into.");
                let element = index
                    .parse()
                    .ok()
                    .and_then(|index: usize| items(scope, name).get(index).cloned());
                element.map_or_else(|| Found::guess(UNKNOWN), |element| Found::one(element, true).doubted())
            }
            Parameter::NamedWithAllIndices { name, .. } => {
                self.ask("Arrays are not looked into.");
                Found {
                    values: items(scope, name),
                    separate: true,
                    known: false,
                }
                .doubted()
            }
        }
    }

    fn variable(&self, name: &str, scope: &Scope) -> Found {
        if let Some(Var { value, items }) = scope.vars.get(name) {
            let value = items.as_ref().and_then(|items| items.first()).unwrap_or(value);
            return Found::one(value.clone(), true);
        }
        match name {
            "HOME" => Found::one(self.home(scope), true),
            "PWD" => Found::one(working_directory(scope), true),
            "AGENTD_SOCKET" => Found::guess("/run/agentd/agentd.sock"),
            "IFS" => Found::one(Arg::sure(" \t\n"), true),
            name if HARMLESS_VARIABLES.contains(&name) || name.starts_with("LC_") => Found::harmless(),
            _ => Found::guess(UNKNOWN),
        }
    }

    fn or_default(&mut self, own: Found, test: &ParameterTestType, default: Option<&str>, scope: &mut Scope) -> Found {
        let default = self.expand_value(default.unwrap_or_default(), scope);
        let missing = own.is_empty() && matches!(test, ParameterTestType::UnsetOrNull);
        match (own.known, missing) {
            (true, false) => own,
            (true, true) => Found::one(default, true),
            (false, _) => Found::one(default, false).doubted(),
        }
    }

    fn trimmed(
        &mut self,
        parameter: &Parameter,
        indirect: bool,
        pattern: Option<&str>,
        trim: Trim,
        scope: &mut Scope,
    ) -> Found {
        let own = self.plain(parameter, indirect, scope);
        let pattern = self.expand_value(pattern.unwrap_or_default(), scope);
        let found = own.map(|text| trim.apply(text, &pattern.text));
        if pattern.is_sure() { found } else { found.doubted() }
    }
}

fn items(scope: &Scope, name: &str) -> Vec<Arg> {
    match scope.vars.get(name) {
        Some(Var { items: Some(items), .. }) => items.clone(),
        Some(Var { value, .. }) => vec![value.clone()],
        None => vec![Arg::unknown()],
    }
}

fn zero(scope: &Scope) -> Found {
    match &scope.zero {
        Some(name) => Found::guess(name.as_str()),
        None => Found::one(
            Arg {
                certainty: Certainty::Harmless,
                ..Arg::sure(ZERO)
            },
            false,
        ),
    }
}

fn special_parameter(special: &SpecialParameter, scope: &Scope) -> Found {
    match special {
        SpecialParameter::AllPositionalParameters { concatenate } => Found {
            values: scope.params.clone(),
            separate: !concatenate,
            known: true,
        },
        SpecialParameter::ShellName => zero(scope),
        SpecialParameter::PositionalParameterCount
        | SpecialParameter::LastExitStatus
        | SpecialParameter::CurrentOptionFlags
        | SpecialParameter::ProcessId
        | SpecialParameter::LastBackgroundProcessId => Found::harmless(),
    }
}

/// Longest value that is trimmed: every place is tried as the cut.
const TRIM_LIMIT: usize = 1024;

/// Which end is cut off, and how much of it.
#[derive(Debug, Clone, Copy)]
enum Trim {
    ShortStart,
    LongStart,
    ShortEnd,
    LongEnd,
}

impl Trim {
    fn apply(self, text: &str, pattern: &str) -> String {
        if text.len() > TRIM_LIMIT {
            return text.to_owned();
        }
        let mut cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        if matches!(self, Self::LongStart | Self::ShortEnd) {
            cuts.reverse();
        }
        for cut in cuts {
            let (start, end) = text.split_at(cut);
            let (piece, rest) = match self {
                Self::ShortStart | Self::LongStart => (start, end),
                Self::ShortEnd | Self::LongEnd => (end, start),
            };
            if pattern::matches(pattern, piece) {
                return rest.to_owned();
            }
        }
        text.to_owned()
    }
}

fn replace(text: &str, from: &str, to: &str, kind: &SubstringMatchKind) -> String {
    match kind {
        SubstringMatchKind::Anywhere => text.replace(from, to),
        SubstringMatchKind::FirstOccurrence => text.replacen(from, to, 1),
        SubstringMatchKind::Prefix => text
            .strip_prefix(from)
            .map_or_else(|| text.to_owned(), |rest| format!("{to}{rest}")),
        SubstringMatchKind::Suffix => text
            .strip_suffix(from)
            .map_or_else(|| text.to_owned(), |rest| format!("{rest}{to}")),
    }
}

/// The pattern of `${x^^}` that is left out matches every letter.
fn is_any_letter(pattern: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| pattern.is_empty() || pattern == "?")
}

fn integer(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

/// `${text:start:count}`; negative numbers count from the end.
fn substring(text: &str, start: i64, count: Option<i64>) -> String {
    let chars: Vec<char> = text.chars().collect();
    let length = i64::try_from(chars.len()).unwrap_or(i64::MAX);
    let from_end = |n: i64| if n < 0 { length.saturating_add(n) } else { n };
    let start = from_end(start).clamp(0, length);
    let end = match count {
        Some(count) if count < 0 => from_end(count),
        Some(count) => start.saturating_add(count),
        None => length,
    };
    let end = end.clamp(start, length);
    let index = |n: i64| usize::try_from(n).unwrap_or_default();
    chars.get(index(start)..index(end)).unwrap_or_default().iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_cut_as_in_the_shell() {
        assert_eq!(Trim::ShortStart.apply("a/b/c", "*/"), "b/c");
        assert_eq!(Trim::LongStart.apply("a/b/c", "*/"), "c");
        assert_eq!(Trim::ShortEnd.apply("a/b/c", "/*"), "a/b");
        assert_eq!(Trim::LongEnd.apply("a/b/c", "/*"), "a");
        assert_eq!(Trim::LongEnd.apply("abc", "x"), "abc");
    }

    #[test]
    fn substrings_stay_within_the_text() {
        assert_eq!(substring("/bin/rm", 5, None), "rm");
        assert_eq!(substring("/bin/rm", -2, None), "rm");
        assert_eq!(substring("rmx", 0, Some(-1)), "rm");
        assert_eq!(substring("rm", 9, Some(9)), "");
        assert_eq!(substring("rm", i64::MIN, Some(i64::MAX)), "rm");
    }
}
