//! Sessions: each one owned by an actor that decides, appends, publishes and runs what its state wants.
//!
//! - `state`, `fold`: what a session is, as the fold of its log.
//! - `decide`: from state and input to events; pure.
//! - `wanted`, `reconcile`: which work the state wants, and the runner that makes it so; `effect` is the work itself.
//! - `actor`: the loop. `commit`, `details`, `clock`, `known` serve it.
//! - `inspect`: what a call would do, looked at outside of any turn.
//! - `live`: what subscriptions follow. `handle`, `registry`, `open`: how the rest of the daemon reaches a session.

mod actor;
mod clock;
mod commit;
mod decide;
mod deps;
mod details;
pub(crate) mod effect;
mod fold;
mod handle;
mod input;
mod inspect;
mod known;
mod live;
#[cfg(test)]
mod machine_tests;
mod open;
mod reconcile;
mod registry;
mod spending;
mod state;
mod wanted;

pub(crate) use actor::storage;
pub(crate) use commit::{BACKGROUND, envelope};
pub(crate) use deps::{CostLimits, Deps, Resume, Standing, Tuning};
pub(crate) use handle::{AnswerRequest, Handle, Message, busy};
pub(crate) use input::{Edited, Send, grant_of};
pub(crate) use inspect::{inspect_command, inspect_edit};
pub(crate) use live::{Answers, Live, Presence};
pub(crate) use registry::{Registry, draining, not_found};
pub(crate) use spending::Spending;
pub(crate) use state::MAX_WAITING;
