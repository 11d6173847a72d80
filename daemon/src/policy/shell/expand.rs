//! Expansion: from a word as it is written to the words the command would get, as far as text alone tells.

use brush_parser::word::{TildeExpr, WordPiece, WordPieceWithSource};

use super::arg::{Arg, Certainty, HASH, Stream, UNKNOWN};
use super::scope::Scope;
use super::walk::Walker;
use super::{arithmetic, escapes, parse, pattern};

/// Most words one expansion may make; the grammar's bounds keep real commands far below.
const FIELD_LIMIT: usize = 1024;

/// Longest value followed; longer ones are not spelled out by anybody.
const VALUE_LIMIT: usize = super::parse::TEXT_LIMIT;

impl Walker<'_> {
    /// Expands one word of a command into the arguments it becomes.
    pub(super) fn expand_word(&mut self, raw: &str, scope: &mut Scope) -> Vec<Arg> {
        let Ok(words) = parse::braces(raw) else {
            self.ask("A brace expansion is not understood.");
            return vec![Arg::unknown()];
        };
        let mut fields = Fields::new(scope);
        for word in words {
            match parse::word(&word) {
                Ok(pieces) => self.pieces(&pieces, Quoting::None, &mut fields, scope),
                Err(_) => {
                    self.ask("A word is not understood.");
                    fields.push(&Arg::unknown());
                }
            }
            fields.end();
        }
        fields.done
    }

    /// Expands a word that stays one: the value of an assignment, a file to redirect to, a here-string.
    pub(super) fn expand_value(&mut self, raw: &str, scope: &mut Scope) -> Arg {
        match parse::word(raw) {
            Ok(pieces) => self.joined(&pieces, scope, Quoting::Value),
            Err(_) => Arg::unknown(),
        }
    }

    pub(super) fn expand_here_document(&mut self, raw: &str, scope: &mut Scope) -> Arg {
        match parse::here_document(raw) {
            Ok(pieces) => self.joined(&pieces, scope, Quoting::Double),
            Err(_) => Arg::unknown(),
        }
    }

    fn joined(&mut self, pieces: &[WordPieceWithSource], scope: &mut Scope, quoting: Quoting) -> Arg {
        let mut fields = Fields::new(scope);
        fields.open();
        self.pieces(pieces, quoting, &mut fields, scope);
        fields.end();
        let mut joined = Arg::default();
        for (i, field) in fields.done.iter().enumerate() {
            if i > 0 {
                joined.text.push(' ');
            }
            append(&mut joined, field);
        }
        joined
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoting: Quoting, fields: &mut Fields, scope: &mut Scope) {
        for piece in pieces {
            self.piece(&piece.piece, quoting, fields, scope);
        }
    }

    fn piece(&mut self, piece: &WordPiece, quoting: Quoting, fields: &mut Fields, scope: &mut Scope) {
        match piece {
            WordPiece::Text(text) => {
                let glob = quoting != Quoting::Double && pattern::is_pattern(text);
                fields.push(&Arg {
                    glob,
                    ..Arg::sure(text.as_str())
                });
            }
            WordPiece::SingleQuotedText(text) => fields.push(&Arg::sure(text.as_str())),
            WordPiece::AnsiCQuotedText(text) => fields.push(&Arg::sure(escapes::decode(text))),
            WordPiece::EscapeSequence(text) => {
                let bare = text.strip_prefix('\\').unwrap_or(text);
                fields.push(&Arg::sure(if bare == "\n" { "" } else { bare }));
            }
            WordPiece::DoubleQuotedSequence(inner) => {
                fields.open_unless_list(inner);
                self.pieces(inner, Quoting::Double, fields, scope);
            }
            WordPiece::GettextDoubleQuotedSequence(inner) => {
                self.ask("Translated text is not known before it runs.");
                self.pieces(inner, Quoting::Double, fields, scope);
            }
            WordPiece::TildeExpansion(tilde) => {
                let home = self.tilde(tilde, scope);
                fields.push(&home);
            }
            WordPiece::ParameterExpansion(expression) => {
                let found = self.parameter(expression, scope);
                fields.insert(&found.values, found.separate, quoting);
            }
            WordPiece::CommandSubstitution(script) => {
                let output = self.substitution(script, scope);
                fields.insert(&[output], false, quoting);
            }
            WordPiece::BackquotedCommandSubstitution(script) => {
                let script = script.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
                let output = self.substitution(&script, scope);
                fields.insert(&[output], false, quoting);
            }
            WordPiece::ArithmeticExpression(expression) => {
                let value = self.arithmetic(&expression.value, scope);
                fields.push(&value);
            }
        }
    }

    fn tilde(&mut self, tilde: &TildeExpr, scope: &Scope) -> Arg {
        match tilde {
            TildeExpr::Home => self.home(scope),
            TildeExpr::WorkingDir => working_directory(scope),
            TildeExpr::UserHome(user) => {
                let text = if user == "root" {
                    "/root".to_owned()
                } else {
                    format!("/home/{user}")
                };
                Arg {
                    text,
                    certainty: Certainty::Unknown,
                    ..Arg::default()
                }
            }
            _ => Arg::unknown(),
        }
    }

    pub(super) fn home(&self, scope: &Scope) -> Arg {
        if let Some(var) = scope.vars.get("HOME") {
            return var.value.clone();
        }
        match &self.fact.home {
            Some(home) => Arg::sure(home.to_string_lossy()),
            None => Arg {
                certainty: Certainty::Harmless,
                ..Arg::unknown()
            },
        }
    }

    /// Judges a command substitution and guesses what it prints.
    fn substitution(&mut self, script: &str, scope: &Scope) -> Arg {
        let mut inner = scope.clone();
        let output = self.script(script, &mut inner);
        let text = output.and_then(|stream| stream.text.or_else(|| joined_items(&stream.items)));
        if text.as_deref() == Some(HASH) && parse::is_one_command(script, "git") {
            return Arg {
                certainty: Certainty::Harmless,
                expanded: true,
                ..Arg::sure(HASH)
            };
        }
        Arg {
            text: text.map_or_else(|| UNKNOWN.to_string(), |text| text.trim_end_matches('\n').to_owned()),
            certainty: Certainty::Output,
            expanded: true,
            ..Arg::default()
        }
    }

    pub(super) fn arithmetic(&mut self, text: &str, scope: &mut Scope) -> Arg {
        let sum = Arg {
            text: UNKNOWN.to_string(),
            certainty: Certainty::Harmless,
            expanded: true,
            ..Arg::default()
        };
        // `$x` and `$(…)` inside are expanded first.
        let expanded = if text.contains(['$', '`']) {
            self.expand_here_document(text, scope)
        } else {
            Arg::sure(text)
        };
        if !expanded.is_printable() || !arithmetic::is_harmless(&expanded.text, scope) {
            self.ask("Arithmetic with values that are not plain numbers can run commands.");
            return Arg {
                certainty: Certainty::Unknown,
                ..sum
            };
        }
        sum
    }
}

fn joined_items(items: &[Arg]) -> Option<String> {
    (!items.is_empty()).then(|| {
        items
            .iter()
            .map(|item| item.text.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    })
}

pub(super) fn working_directory(scope: &Scope) -> Arg {
    match (scope.cwd.dirs.as_slice(), scope.cwd.sure) {
        ([dir], true) => Arg::sure(dir.to_string_lossy()),
        ([dir, ..], _) => Arg {
            certainty: Certainty::Harmless,
            ..Arg::sure(dir.to_string_lossy())
        },
        ([], _) => Arg {
            certainty: Certainty::Harmless,
            ..Arg::unknown()
        },
    }
}

fn append(to: &mut Arg, piece: &Arg) {
    if to.text.len() + piece.text.len() > VALUE_LIMIT {
        to.certainty = Certainty::Unknown;
        return;
    }
    to.text.push_str(&piece.text);
    to.certainty = to.certainty.max(piece.certainty);
    to.glob |= piece.glob;
    to.expanded |= piece.expanded;
    to.split |= piece.split;
    if piece.stream.is_some() {
        to.stream.clone_from(&piece.stream);
    }
}

/// What quotes stand around a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// None: values are split into words, patterns count.
    None,
    /// None, but where no splitting is done.
    Value,
    Double,
}

/// The words built so far and the one being built.
struct Fields {
    done: Vec<Arg>,
    open: Option<Arg>,
    separators: Vec<char>,
}

impl Fields {
    fn new(scope: &Scope) -> Self {
        let separators = match scope.vars.get("IFS") {
            Some(var) => var.value.text.chars().collect(),
            None => vec![' ', '\t', '\n'],
        };
        Self {
            done: Vec::new(),
            open: None,
            separators,
        }
    }

    fn open(&mut self) -> &mut Arg {
        self.open.get_or_insert_default()
    }

    /// `""` is a word, `"$@"` without parameters is none.
    fn open_unless_list(&mut self, inner: &[WordPieceWithSource]) {
        use brush_parser::word::{Parameter, ParameterExpr, SpecialParameter};
        let is_list = matches!(
            inner,
            [WordPieceWithSource {
                piece: WordPiece::ParameterExpansion(ParameterExpr::Parameter {
                    parameter: Parameter::Special(SpecialParameter::AllPositionalParameters { .. })
                        | Parameter::NamedWithAllIndices { .. },
                    ..
                }),
                ..
            }]
        );
        if !is_list {
            self.open();
        }
    }

    fn push(&mut self, piece: &Arg) {
        append(self.open(), piece);
    }

    fn end(&mut self) {
        if let Some(field) = self.open.take()
            && self.done.len() < FIELD_LIMIT
        {
            self.done.push(field);
        }
    }

    /// Puts in the values of an expansion; `separate` ones never join into one word.
    fn insert(&mut self, values: &[Arg], separate: bool, quoting: Quoting) {
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                if separate {
                    self.end();
                } else {
                    self.push(&Arg::sure(" "));
                }
            }
            let value = Arg {
                expanded: true,
                ..value.clone()
            };
            match quoting {
                // A quoted value keeps its `glob`: there it says that the variable runs over what a pattern matched.
                Quoting::Double | Quoting::Value => self.push(&value),
                Quoting::None => self.split(&value),
            }
        }
    }

    fn split(&mut self, value: &Arg) {
        let separators = self.separators.clone();
        let is_separator = |c: char| separators.contains(&c);
        if value.text.starts_with(is_separator) {
            self.end();
        }
        let mut first = true;
        for word in value.text.split(is_separator).filter(|word| !word.is_empty()) {
            if !first {
                self.end();
            }
            first = false;
            self.push(&Arg {
                split: true,
                text: word.to_owned(),
                glob: value.glob || pattern::is_pattern(word),
                ..value.clone()
            });
        }
        if first && value.certainty != Certainty::Sure {
            // A guess that nothing comes out is no reason to leave the word out.
            self.push(&Arg {
                text: String::new(),
                ..value.clone()
            });
        }
        if value.text.ends_with(is_separator) {
            self.end();
        }
    }
}

impl From<Stream> for Arg {
    /// A process substitution: a file name nobody knows, whose content can be guessed.
    fn from(stream: Stream) -> Self {
        Self {
            stream: Some(stream),
            ..Self::unknown()
        }
    }
}
