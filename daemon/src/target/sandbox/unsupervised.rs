//! Where calls of a command cannot be looked at, nobody does.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;

use super::{Plan, Profile};

/// The guard's end of the way on which a listener would come.
#[derive(Debug)]
pub(in crate::target) struct Take(Infallible);

/// The end of the process that becomes the command.
#[derive(Debug)]
pub(in crate::target) struct Give(#[expect(dead_code, reason = "there is none")] Infallible);

/// Looks at calls.
#[derive(Debug)]
pub(in crate::target) struct Supervisor(Infallible);

pub(super) fn channel() -> io::Result<(Take, Give)> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Take {
    pub(in crate::target) fn supervisor(self, _: Plan, _: &Profile) -> io::Result<Supervisor> {
        match self.0 {}
    }
}

impl Supervisor {
    pub(in crate::target) fn refused(&self) -> Vec<PathBuf> {
        match self.0 {}
    }
}
