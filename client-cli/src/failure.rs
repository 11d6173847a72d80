//! Why a command ends early: what it tells the person, and the exit code it tells the script.

use crate::exit::Exit;
use protocol::client::ClientError;
use protocol::place::PlaceError;
use std::fmt::Display;

/// The reason a command cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Nobody reads what we write. There is nothing to say, and nobody to say it to.
    #[error("nobody reads the output")]
    BrokenPipe,
    /// A message whose last line may be a hint.
    #[error("{message}")]
    Said { exit: Exit, message: String },
    /// A failed call.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl Failure {
    /// An error of this program's own.
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::with(Exit::Error, message)
    }

    /// A wrong command line that clap could not see.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::with(Exit::Usage, message)
    }

    /// A message with the exit code it stands for.
    pub(crate) fn with(exit: Exit, message: impl Into<String>) -> Self {
        Self::Said {
            exit,
            message: message.into(),
        }
    }

    /// A file that cannot be read.
    pub(crate) fn reading(what: impl Display, error: &std::io::Error) -> Self {
        Self::error(format!("cannot read {what}: {error}"))
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::BrokenPipe => Exit::BrokenPipe,
            Self::Said { exit, .. } => *exit,
            Self::Client(error) => Exit::of_error(error),
        }
    }

    /// The stable name of the cause: the daemon's, where it is one of the daemon's.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Client(error) => error
                .kind()
                .map_or_else(|| "unreachable".to_owned(), |kind| kind.to_string()),
            Self::BrokenPipe => "broken_pipe".to_owned(),
            Self::Said { exit: Exit::Usage, .. } => "usage".to_owned(),
            Self::Said { .. } => "client".to_owned(),
        }
    }

    /// The message and, apart from it, the hint.
    pub(crate) fn parts(&self) -> (String, Option<String>) {
        let text = self.to_string();
        match text.split_once("\nhint: ") {
            Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
            None => (text, None),
        }
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        Self::Client(error.into())
    }
}
