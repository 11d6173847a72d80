//! A word of a command after expansion, as far as it can be known without running anything.

/// Stands in a guessed text for a piece whose value is not known. It cannot be typed by accident and matches no path.
pub(crate) const UNKNOWN: char = '\u{fffc}';

/// Stands for the process id of the daemon in the guessed output of `pidof agentd` and its like.
pub(super) const AGENTD_PID: &str = "\u{fffc}pid-of-agentd";

/// Characters of a value that is shown short.
const SHORT: usize = 200;

/// Stands for what a command prints that prints nothing but hashes of commits.
pub(super) const HASH: &str = "\u{fffc}hash";

/// How well a text is known. Ordered: the worst piece of a word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Certainty {
    /// Exactly what the shell will pass.
    #[default]
    Sure,
    /// Not known, but harmless to print and no path: `$USER`, `$?`, a sum.
    Harmless,
    /// Output of a command that is judged itself.
    Output,
    Unknown,
}

/// One word after expansion.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Arg {
    /// The value, or the best guess where it is not sure.
    pub(super) text: String,
    pub(super) certainty: Certainty,
    /// It holds an unquoted pattern and stands for whatever matches.
    pub(super) glob: bool,
    /// It was made by an expansion, not typed.
    pub(super) expanded: bool,
    /// It was made by an expansion outside of quotes, so that its value may become several words.
    pub(super) split: bool,
    /// The guessed content, if the word is a process substitution.
    pub(super) stream: Option<Stream>,
}

impl Arg {
    pub(super) fn sure(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A word that serves the guard only.
    pub(super) fn guessed(text: impl Into<String>) -> Self {
        Self {
            certainty: Certainty::Unknown,
            ..Self::sure(text)
        }
    }

    pub(super) fn unknown() -> Self {
        Self {
            text: UNKNOWN.to_string(),
            certainty: Certainty::Unknown,
            ..Self::default()
        }
    }

    pub(super) fn is_sure(&self) -> bool {
        self.certainty == Certainty::Sure && self.stream.is_none()
    }

    /// Whether printing it tells nothing a person should be asked about.
    pub(super) fn is_printable(&self) -> bool {
        self.certainty <= Certainty::Output && self.stream.is_none()
    }

    /// Whether the pattern it holds may match a file whose name reads as an option.
    pub(super) fn may_be_option(&self) -> bool {
        (!self.is_sure() && self.stream.is_none()) || (self.glob && self.text.starts_with(['*', '?', '[', '-']))
    }

    /// The word with a hash in the place of one nobody knows yet.
    pub(super) fn with_hash(&self) -> Self {
        let text = self.text.replace(HASH, "0000000");
        if text == self.text || text.starts_with('-') || text.contains(UNKNOWN) || self.certainty > Certainty::Harmless
        {
            return self.clone();
        }
        Self {
            text,
            certainty: Certainty::Sure,
            ..self.clone()
        }
    }

    /// For people: unknown pieces as `…`.
    pub(super) fn shown(&self) -> String {
        self.text.replace(UNKNOWN, "…")
    }

    /// Its beginning as people read it, for what stands beside a command: a value can be far longer than the line that made it.
    pub(super) fn shown_short(&self) -> String {
        let mut shown: String = self.text.chars().take(SHORT).collect();
        if shown.len() < self.text.len() {
            shown.push('…');
        }
        shown.replace(UNKNOWN, "…")
    }
}

/// The words with a blank between them, as a shell that is handed them reads them.
pub(super) fn joined<'a>(words: impl IntoIterator<Item = &'a Arg>) -> String {
    let words = words.into_iter().map(|arg| arg.text.as_str());
    words.collect::<Vec<_>>().join(" ")
}

/// What a command prints, as far as it can be guessed. A guess serves the guard only; nothing is allowed because of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Stream {
    /// The text, for `echo`, `printf` and here-documents.
    pub text: Option<String>,
    /// Words it holds, for readers such as `xargs`.
    pub items: Vec<Arg>,
    /// The items stand for everything below them, as the output of `find` does.
    pub below: bool,
    /// It holds nothing but names of files below the project, one a line.
    pub project_files: bool,
}

impl Stream {
    pub(super) fn of_text(text: impl Into<String>) -> Self {
        let text = text.into();
        let items = text
            .split(|c: char| c.is_whitespace() || c == '\0')
            .filter(|word| !word.is_empty())
            .map(|word| Arg::guessed(word.trim_matches(['"', '\''])))
            .collect();
        Self {
            text: Some(text),
            items,
            ..Self::default()
        }
    }
}
