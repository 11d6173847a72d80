//! Sessions: each one owned by an actor that decides, appends, publishes and runs what its state wants.
//!
//! - `state`, `fold`: what a session is, as the fold of its log.
//! - `decide`: from state and input to events; pure.
//! - `wanted`, `reconcile`: which work the state wants, and the runner that makes it so; `effect` is the work itself.
//! - `actor`: the loop. `commit`, `details`, `clock`, `known`, `place` serve it.
//! - `inspect`: what a call would do, looked at outside of any turn.
//! - `drain`: the end of the daemon, as sessions see it.
//! - `live`: what subscriptions follow. `handle`, `registry`, `open`: how the rest of the daemon reaches a session; `look`: how one is
//!   looked at that does not live.

mod actor;
mod clock;
mod commit;
mod decide;
mod deps;
mod details;
mod drain;
pub(crate) mod effect;
mod fold;
mod handle;
mod input;
mod inspect;
mod known;
mod live;
mod look;
#[cfg(test)]
mod machine_tests;
mod open;
mod place;
mod reconcile;
mod registry;
mod spending;
mod state;
mod wanted;

pub(crate) use actor::{name_taken, storage, too_many_roots};
pub(crate) use clock::Clocks;
pub(crate) use commit::{BACKGROUND, envelope};
pub(crate) use deps::{CostLimits, Deps, Resume, Standing, Tuning};
pub(crate) use drain::{Drain, Draining};
pub(crate) use handle::{AnswerRequest, Handle, Message, Sending, busy};
pub(crate) use input::{Change, Edited, Send, grant_of};
pub(crate) use inspect::{inspect_command, inspect_edit};
pub(crate) use known::begin_of;
pub(crate) use live::{Answers, Live, Presence};
pub(crate) use open::project;
pub(crate) use registry::{Registry, draining, not_found};
pub(crate) use spending::Spending;
pub(crate) use state::MAX_WAITING;
