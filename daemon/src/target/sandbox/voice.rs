//! What the process that becomes a command and its guard have to say to each other while the sandbox is made: who the first
//! process of a namespace is and how the command ended, where its calls can be looked at, and what it seeks of a network.

use super::counters::{Counters, Opener, counters};
use super::supervisor::{Give, Take};
use super::{Hear, Pids, Profile, Tell, pids, supervisor};

/// The end of the process that becomes the command.
#[derive(Debug, Default)]
pub(in crate::target) struct Voice {
    /// There for a profile with processes of its own; it is another process that comes back then.
    pub(super) tell: Option<Tell>,
    /// There for a profile that refuses new repositories.
    pub(super) give: Option<Give>,
    /// There for a profile without a network, where the kernel counts what is sought of one.
    pub(super) opener: Option<Opener>,
}

/// The guard's end.
#[derive(Debug, Default)]
pub(in crate::target) struct Ear {
    pub(in crate::target) hear: Option<Hear>,
    pub(in crate::target) take: Option<Take>,
    pub(in crate::target) counters: Option<Counters>,
}

/// The ways that a command of this profile needs.
pub(in crate::target) fn channels(profile: Option<&Profile>) -> std::io::Result<(Ear, Voice)> {
    let (mut ear, mut voice) = (Ear::default(), Voice::default());
    if profile.is_some_and(|profile| profile.pids == Pids::Own) {
        let (hear, tell) = pids::channel()?;
        (ear.hear, voice.tell) = (Some(hear), Some(tell));
    }
    if profile.is_some_and(Profile::refuses_repositories) {
        let (take, give) = supervisor::channel()?;
        (ear.take, voice.give) = (Some(take), Some(give));
    }
    (ear.counters, voice.opener) = counters(profile).unzip();
    Ok((ear, voice))
}
