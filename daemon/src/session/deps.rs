//! What sessions share: the log, the tools, the models, the limits.

use super::clock::Clocks;
use super::drain::Drain;
use super::effect::model::Models;
use super::live::Presence;
use super::spending::Spending;
use crate::auth::Redactor;
use crate::config::context::ContextSettings;
use crate::config::{Project, Projects, RuleBook};
use crate::log::EventLog;
use crate::target::sandbox;
use crate::tool::{GuardPlan, Tool};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Shared by all sessions of a daemon.
pub(crate) struct Deps {
    pub(crate) log: EventLog,
    /// What follows from the configuration.
    pub(crate) standing: Arc<dyn Standing>,
    pub(crate) models: Arc<dyn Models>,
    /// What projects' own files say.
    pub(crate) projects: Arc<Projects>,
    /// The user's own rules.
    pub(crate) rules: Arc<RuleBook>,
    pub(crate) guard: GuardPlan,
    /// Knows the keys no output may hold.
    pub(crate) redactor: Redactor,
    /// What all sessions have spent today.
    pub(crate) spending: Spending,
    /// Clients that answer approvals of every session.
    pub(crate) answerers: Arc<Presence>,
    /// Directories no tool may touch.
    pub(crate) hidden: Vec<PathBuf>,
    /// The daemon's end.
    pub(crate) drain: Drain,
    /// Where time is read from.
    pub(crate) clocks: Clocks,
}

/// What follows from the configuration as it is now. It may say something else when it is asked again: a session that lives takes
/// from that only what narrows it.
pub(crate) trait Standing: Send + Sync {
    /// The tools that models are offered.
    fn tools(&self) -> Arc<[Arc<dyn Tool>]>;

    /// What commands may reach in a project.
    fn sandbox(&self, project: &Project) -> sandbox::Settings;

    /// Which files the person puts into prompts.
    fn context(&self) -> ContextSettings;

    /// The environment of commands, from that of a client.
    fn environment(&self, client: &BTreeMap<String, String>) -> BTreeMap<String, String>;

    fn tuning(&self) -> Tuning;

    /// What the model calls of one session, and of all in a day, may cost in US dollars before somebody is asked.
    fn cost_limits(&self) -> CostLimits;

    /// What is wrong with the configuration's file as it is now, for people; then what it said before holds.
    fn fault(&self) -> Option<String>;
}

/// Limits in US dollars; none: nobody is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CostLimits {
    pub(crate) per_session: Option<f64>,
    pub(crate) per_day: Option<f64>,
}

/// Times and bounds that tests set otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Tuning {
    /// How often a model call is tried again.
    pub(crate) retries: u32,
    /// Idle time after which a session leaves memory.
    pub(crate) passivate_after: Duration,
    /// A turn whose last event is older waits for somebody to resume it.
    pub(crate) park_after: Duration,
    /// Whether turns of an earlier life go on by themselves.
    pub(crate) resume: Resume,
    /// After a restart retries and unattended approvals wait at least so long, so that people can come back.
    pub(crate) grace: Duration,
}

/// Whether turns of an earlier life go on by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    Auto,
    Off,
}

impl Tuning {
    /// Whether a turn of an earlier life whose last event is so old waits for somebody to resume it.
    pub(crate) fn parks(&self, age: Duration) -> bool {
        age > self.park_after || self.resume == Resume::Off
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            retries: 4,
            passivate_after: Duration::from_secs(5 * 60),
            park_after: Duration::from_secs(15 * 60),
            resume: Resume::Auto,
            grace: Duration::from_secs(30),
        }
    }
}
