//! The signals that ask this program to end. Whoever holds a question on the terminal must catch them, to put the terminal back.

use crate::exit::Exit;
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

impl Caught {
    /// The exit code of a program that it ends.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::CtrlC,
            Self::Terminate => Exit::Terminated,
            Self::HangUp => Exit::HangUp,
        }
    }
}

/// Listens from its making on.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// One that was caught and is still to be acted on.
    kept: Option<Caught>,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::error(format!("cannot listen to signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            kept: None,
        })
    }

    /// What `work` comes to. A first Ctrl-C before that is kept for whoever listens next; any other signal ends the wait.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Caught> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                caught = self.arrive() => {
                    if caught != Caught::Interrupt || self.kept.replace(caught).is_some() {
                        return Err(caught);
                    }
                }
            }
        }
    }

    /// The next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Caught {
        match self.kept.take() {
            Some(kept) => kept,
            None => self.arrive().await,
        }
    }

    async fn arrive(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
            _ = self.hang_up.recv() => Caught::HangUp,
        }
    }
}
