//! The signals that ask this program to end. Whoever holds a question on the terminal must catch them, to put the terminal back.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    /// Ctrl-C.
    Interrupt,
    Terminate,
    /// The terminal is gone.
    HangUp,
}

/// Listens from its making on.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::error(format!("cannot listen to signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
            _ = self.hang_up.recv() => Caught::HangUp,
        }
    }
}
