//! Exit codes. Scripts rely on them: a number never changes its meaning.

use protocol::ErrorKind;
use protocol::client::ClientError;
use protocol::event::InputOutcome;
use protocol::method::TurnResult;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The turn completed; also when a person denied something.
    Completed = 0,
    /// An error before a turn began.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The turn failed.
    Failed = 3,
    /// Something was denied, or the turn stopped, because nobody could answer.
    Unanswered = 4,
    /// Somebody else ended it.
    Interrupted = 5,
    /// The turn's time was over.
    TimedOut = 6,
    /// No daemon could be reached, or none that speaks our protocol.
    Unreachable = 7,
    /// No such session, approval or turn, or more than one.
    NotFound = 8,
    /// Already answered, or already over.
    TooLate = 9,
    /// Our own Ctrl-C.
    CtrlC = 130,
    /// The terminal went away; the turn goes on. 128 and the number of the signal, as shells have it.
    HangUp = 129,
    /// Nobody reads our output any more; the turn goes on.
    BrokenPipe = 141,
    /// We were asked to end; the turn goes on.
    Terminated = 143,
}

impl Exit {
    /// The number a script sees.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// What a finished turn means for a script.
    pub(crate) fn of(result: &TurnResult) -> Self {
        match result.status {
            InputOutcome::Done if result.denied.is_empty() => Self::Completed,
            InputOutcome::Done | InputOutcome::Unanswered => Self::Unanswered,
            InputOutcome::Failed => Self::Failed,
            InputOutcome::Interrupted | InputOutcome::Cancelled => Self::Interrupted,
            InputOutcome::TimedOut => Self::TimedOut,
        }
    }

    /// What a failed call means for a script.
    pub(crate) fn of_error(error: &ClientError) -> Self {
        match error.kind() {
            Some(
                ErrorKind::SessionNotFound
                | ErrorKind::SessionAmbiguous
                | ErrorKind::ApprovalNotFound
                | ErrorKind::TurnNotFound
                | ErrorKind::InputNotFound
                | ErrorKind::JobNotFound
                | ErrorKind::BlobNotFound,
            ) => Self::NotFound,
            Some(ErrorKind::AlreadyResolved) => Self::TooLate,
            Some(ErrorKind::IncompatibleVersion) | None => Self::Unreachable,
            Some(_) => Self::Error,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
