//! Writing: data to stdout, everything else to stderr. `println!` would panic on a closed pipe; here that is [`Failure::BrokenPipe`].
//! What somebody else wrote goes to a terminal through `display` only; to a pipe it goes as it is.

use crate::failure::Failure;
use protocol::display::{Form, display};
use protocol::wording;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};

/// When colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// How much is told on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors alone.
    Quiet,
    /// What a person should know; on a terminal also what goes on.
    Normal,
    /// What goes on, with arguments, results and reasoning, also without a terminal.
    Verbose,
    /// The same, and results as long as they are.
    Everything,
}

/// What kind of thing a text goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Terminal,
    /// A pipe or a file.
    Program,
}

/// Where output goes and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) stdout: Reader,
    pub(crate) stderr: Reader,
    pub(crate) verbosity: Verbosity,
    pub(crate) colour: Colour,
}

impl Output {
    pub(crate) fn new(verbosity: Verbosity, colour: Colour) -> Self {
        let reader = |is_terminal| if is_terminal { Reader::Terminal } else { Reader::Program };
        Self {
            stdout: reader(std::io::stdout().is_terminal()),
            stderr: reader(std::io::stderr().is_terminal()),
            verbosity,
            colour,
        }
    }

    /// Whether stdout is a terminal.
    pub(crate) fn on_terminal(&self) -> bool {
        self.stdout == Reader::Terminal
    }

    /// Whether what goes to `reader` is coloured.
    pub(crate) fn colours(&self, reader: Reader) -> bool {
        match self.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                reader == Reader::Terminal && !refused
            }
        }
    }

    /// Writes `text` to stdout as it is and flushes.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::error(format!("cannot write to stdout: {error}")),
        })
    }

    /// Writes a line to stdout.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.write(&format!("{text}\n"))
    }

    /// Writes `value` as one line of JSON to stdout.
    pub(crate) fn json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let text =
            serde_json::to_string(value).map_err(|error| Failure::error(format!("cannot write JSON: {error}")))?;
        self.line(&text)
    }

    /// `text` as stdout may show it in a place of one line.
    pub(crate) fn inline<'a>(&self, text: &'a str) -> Cow<'a, str> {
        display(text, Form::Inline)
    }

    /// `text` that somebody wrote to be read, as stdout may show it.
    pub(crate) fn prose<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.stdout {
            Reader::Terminal => display(text, Form::Prose),
            Reader::Program => Cow::Borrowed(text),
        }
    }

    /// `text`, lines of its own, as stdout may show it.
    pub(crate) fn block<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.stdout {
            Reader::Terminal => display(text, Form::Block),
            Reader::Program => Cow::Borrowed(text),
        }
    }

    /// Tells the person something, unless they asked for quiet. That stderr is closed is no reason to stop.
    pub(crate) fn tell(&self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.tell_always(text);
        }
    }

    /// Tells the person something that must be told. `text` is lines whose untrusted parts were through `display`.
    pub(crate) fn tell_always(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "{text}");
    }

    /// Tells a warning of agentd's own, which may have several lines.
    pub(crate) fn warn(&self, text: &str) {
        self.tell(&format!("warning: {}", wording::told(text)));
    }

    /// Writes to stderr without a line end.
    pub(crate) fn whisper(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// `text` dimmed where stderr has colours.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.styled("2", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.colours(self.stderr) {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Prints a failure: `error: …`, and its hint on a line of its own.
    pub(crate) fn failure(&self, failure: &Failure) {
        if matches!(failure, Failure::BrokenPipe) {
            return;
        }
        let (message, hint) = failure.parts();
        self.error(&message, hint.as_deref());
    }

    /// Prints an error with its hint.
    pub(crate) fn error(&self, message: &str, hint: Option<&str>) {
        let label = self.styled("1;31", "error:");
        self.tell_always(&format!("{label} {}", display(message, Form::Block)));
        if let Some(hint) = hint {
            let label = self.styled("1", "hint:");
            self.tell_always(&format!("{label} {}", display(hint, Form::Block)));
        }
    }
}
