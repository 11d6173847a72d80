//! The only place that talks to the shell grammar crate: text to syntax tree, within bounds.
//!
//! The grammar recurses and backtracks, so what is nested too deeply or left open is refused before it is parsed:
//! a command line must never be able to exhaust the daemon's stack or time.

use brush_parser::ast::{Command, CommandPrefixOrSuffixItem, IoFileRedirectKind, IoRedirect, Program};
use brush_parser::word::{BraceExpressionMember, BraceExpressionOrText, WordPieceWithSource};
use brush_parser::{ParserOptions, Token, TokenizerOptions};

/// Longest command line judged. A person does not read more before answering either.
pub(super) const TEXT_LIMIT: usize = 64 * 1024;
/// Deepest nesting of parentheses and braces, in quotes or not. Real commands stay below six.
const BRACKET_LIMIT: usize = 32;
/// Deepest nesting of `(` outside quotes: the grammar tries each twice.
const PAREN_LIMIT: usize = 10;
/// Most `case` words: the grammar doubles its work with each that is nested.
const CASE_LIMIT: usize = 8;
/// Most words that open a compound command.
const OPENER_LIMIT: usize = 100;
/// Most words one brace expansion may make.
const BRACE_LIMIT: usize = 256;

/// Why a text could not be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it is too long or nested too deeply to be judged")]
    TooMuch,
    #[error("its syntax is not understood")]
    Syntax,
}

/// Options of `bash -c`: extended patterns are off there.
fn options() -> ParserOptions {
    ParserOptions {
        enable_extended_globbing: false,
        ..ParserOptions::default()
    }
}

pub(super) fn script(text: &str) -> Result<Program, Unreadable> {
    if text.len() > TEXT_LIMIT || bracket_depth(text) > BRACKET_LIMIT {
        return Err(Unreadable::TooMuch);
    }
    let tokenizer = TokenizerOptions {
        enable_extended_globbing: false,
        ..TokenizerOptions::default()
    };
    let tokens = brush_parser::uncached_tokenize_str(text, &tokenizer).map_err(|_| Unreadable::Syntax)?;
    check_tokens(&tokens)?;
    brush_parser::parse_tokens(&tokens, &options()).map_err(|_| Unreadable::Syntax)
}

/// Whether a text is one simple command of this name whose output goes where it usually goes.
pub(super) fn is_one_command(text: &str, name: &str) -> bool {
    let Ok(program) = script(text) else { return false };
    let [list] = program.complete_commands.as_slice() else {
        return false;
    };
    let [item] = list.0.as_slice() else { return false };
    let [Command::Simple(simple)] = item.0.first.seq.as_slice() else {
        return false;
    };
    let words = |item: &CommandPrefixOrSuffixItem| matches!(item, CommandPrefixOrSuffixItem::Word(_));
    let redirects_errors = |item: &CommandPrefixOrSuffixItem| {
        matches!(
            item,
            CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::File(Some(2), IoFileRedirectKind::Write, _))
        )
    };
    item.0.additional.is_empty()
        && simple.prefix.is_none()
        && simple.word_or_name.as_ref().is_some_and(|word| word.value == name)
        && simple
            .suffix
            .iter()
            .flat_map(|suffix| &suffix.0)
            .all(|item| words(item) || redirects_errors(item))
}

/// Nesting as if nothing were quoted, which can only be more than there is.
fn bracket_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Refuses what the grammar would only find wrong after trying every way to read it.
fn check_tokens(tokens: &[Token]) -> Result<(), Unreadable> {
    let (mut open, mut closed, mut depth, mut deepest) = (0_usize, 0_usize, 0_usize, 0);
    let (mut cases, mut ends, mut openers) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        match token {
            Token::Operator(text, _) => {
                open += text.matches('(').count();
                closed += text.matches(')').count();
                depth = (depth + text.matches('(').count()).saturating_sub(text.matches(')').count());
                deepest = deepest.max(depth);
            }
            Token::Word(text, _) => match text.as_str() {
                "case" => cases += 1,
                "esac" => ends += 1,
                "if" | "while" | "until" | "for" | "select" | "{" | "!" | "time" | "coproc" | "function" | "[[" => {
                    openers += 1
                }
                _ => {}
            },
        }
    }
    if deepest > PAREN_LIMIT || cases > CASE_LIMIT || openers > OPENER_LIMIT {
        return Err(Unreadable::TooMuch);
    }
    if open > closed || cases > ends {
        return Err(Unreadable::Syntax);
    }
    Ok(())
}

/// The pieces of one word.
pub(super) fn word(text: &str) -> Result<Vec<WordPieceWithSource>, Unreadable> {
    brush_parser::word::parse(text, &options()).map_err(|_| Unreadable::Syntax)
}

/// The pieces of a here-document, in which quotes are ordinary characters.
pub(super) fn here_document(text: &str) -> Result<Vec<WordPieceWithSource>, Unreadable> {
    brush_parser::word::parse_heredoc(text, &options()).map_err(|_| Unreadable::Syntax)
}

/// The words a word's braces make of it; the word itself if it has none.
pub(super) fn braces(text: &str) -> Result<Vec<String>, Unreadable> {
    if !text.contains('{') {
        return Ok(vec![text.to_owned()]);
    }
    match brush_parser::word::parse_brace_expansions(text, &options()) {
        Ok(Some(pieces)) => expand(&pieces),
        Ok(None) => Ok(vec![text.to_owned()]),
        Err(_) => Err(Unreadable::Syntax),
    }
}

fn expand(pieces: &[BraceExpressionOrText]) -> Result<Vec<String>, Unreadable> {
    let mut words = vec![String::new()];
    for piece in pieces {
        let choices = match piece {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                let mut choices = Vec::new();
                for member in members {
                    choices.extend(member_words(member)?);
                }
                choices
            }
        };
        if words.len().saturating_mul(choices.len()) > BRACE_LIMIT {
            return Err(Unreadable::TooMuch);
        }
        words = words
            .iter()
            .flat_map(|start| choices.iter().map(move |end| format!("{start}{end}")))
            .collect();
    }
    Ok(words)
}

fn member_words(member: &BraceExpressionMember) -> Result<Vec<String>, Unreadable> {
    match member {
        BraceExpressionMember::Child(pieces) => expand(pieces),
        BraceExpressionMember::NumberSequence { start, end, increment } => {
            let numbers = sequence(*start, *end, *increment)?;
            Ok(numbers.into_iter().map(|number| number.to_string()).collect())
        }
        BraceExpressionMember::CharSequence { start, end, increment } => {
            let codes = sequence(i64::from(u32::from(*start)), i64::from(u32::from(*end)), *increment)?;
            let chars = codes
                .into_iter()
                .filter_map(|code| u32::try_from(code).ok().and_then(char::from_u32));
            Ok(chars.map(String::from).collect())
        }
    }
}

fn sequence(start: i64, end: i64, increment: i64) -> Result<Vec<i64>, Unreadable> {
    let step = usize::try_from(increment.unsigned_abs().max(1)).map_err(|_| Unreadable::TooMuch)?;
    if start.abs_diff(end) / (step as u64) >= BRACE_LIMIT as u64 {
        return Err(Unreadable::TooMuch);
    }
    Ok(if start <= end {
        (start..=end).step_by(step).collect()
    } else {
        (end..=start).rev().step_by(step).collect()
    })
}
