//! Every operation: its name, what it takes, what it answers. This one table gives the daemon its handlers' types, the client
//! its calls and `agentctl schema` its text.

mod approval;
mod auth;
mod blob;
mod daemon;
mod job;
mod model;
mod session;
mod tool;
mod turn;
mod usage;
mod watch;

pub use approval::*;
pub use auth::*;
pub use blob::*;
pub use daemon::*;
pub use job::*;
pub use model::*;
pub use session::*;
pub use tool::*;
pub use turn::*;
pub use usage::*;
pub use watch::*;

use crate::config::{ConfigGetParams, ConfigSetParams, ConfigView};
use crate::frame::{ApprovalView, Frame, WatchedEvent};
use crate::rule::{RuleAddParams, RuleListParams, RuleRemoveParams, RuleTestParams, RuleVerdict, RuleView};
use crate::trust::{TrustGetParams, TrustSetParams, TrustView};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a client needs for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody of the same user.
    Watch,
    /// A controller.
    Act,
}

/// An operation with one answer.
pub trait Method {
    /// `resource.verb`.
    const NAME: &'static str;
    /// Who may call it.
    const ACCESS: Access;
    /// Its parameters, an object.
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// Its answer.
    type Answer: Serialize + DeserializeOwned + JsonSchema + Send + Clone + 'static;
}

/// An operation that answers a subscription id and then notifications named [`Subscription::NOTIFICATION`] with
/// `{subscription, result}`, until it ends or the client calls [`Subscription::CANCEL`] with `[subscription]`.
pub trait Subscription {
    const NAME: &'static str;
    const NOTIFICATION: &'static str;
    const CANCEL: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// What a notification carries.
    type Item: Serialize + DeserializeOwned + Send + 'static;
}

macro_rules! methods {
    ($($(#[$doc:meta])* $access:ident $name:literal => $method:ident($params:ty) -> $answer:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $method {}

            impl Method for $method {
                const NAME: &'static str = $name;
                const ACCESS: Access = Access::$access;
                type Params = $params;
                type Answer = $answer;
            }
        )*

        /// Calls `visit` with each method's name, and the schemas of its parameters and its answer.
        pub fn each_method(
            generator: &mut schemars::SchemaGenerator,
            mut visit: impl FnMut(&'static str, schemars::Schema, schemars::Schema),
        ) {
            $(visit($name, generator.subschema_for::<$params>(), generator.subschema_for::<$answer>());)*
        }
    };
}

methods! {
    /// The handshake. Without it, or without the right token, a client may watch only.
    Watch "daemon.hello" => DaemonHello(HelloParams) -> Hello;
    Watch "daemon.status" => DaemonStatus(Empty) -> DaemonStatusAnswer;
    /// What this machine can enforce, and what commands therefore run in.
    Watch "daemon.doctor" => DaemonDoctor(Empty) -> DoctorAnswer;
    /// Takes no new turn, waits for the running ones up to a time, then stops; what still runs goes on at the next start.
    Act "daemon.stop" => DaemonStop(StopParams) -> Empty;
    Act "session.create" => SessionCreate(CreateParams) -> SessionInfo;
    /// The newest use first.
    Watch "session.list" => SessionList(ListParams) -> SessionPage;
    /// Finds one session by full id, by an unambiguous piece of it at its start or end of 4 or more characters, by name, or
    /// `last`: the one of this project with the newest event.
    Watch "session.get" => SessionGet(GetParams) -> SessionInfo;
    Act "session.update" => SessionUpdate(UpdateParams) -> SessionInfo;
    Act "session.delete" => SessionDelete(DeleteParams) -> Empty;
    /// Answers when the input is durable.
    Act "session.send" => SessionSend(SendParams) -> Sent;
    /// Answers when the input, or the turn, has had its terminal event. Does not hold up later requests.
    Watch "turn.wait" => TurnWait(WaitParams) -> TurnResult;
    /// Does nothing if the turn is over already.
    Act "turn.interrupt" => TurnInterrupt(InterruptParams) -> Interrupted;
    /// A parked turn goes on.
    Act "turn.resume" => TurnResume(SessionParams) -> Empty;
    /// Turns that run or are parked, of all sessions.
    Watch "turn.list" => TurnList(Empty) -> Vec<RunningTurn>;
    Watch "queue.list" => QueueList(SessionParams) -> Queue;
    Act "queue.cancel" => QueueCancel(QueueCancelParams) -> Empty;
    Act "queue.resume" => QueueResume(SessionParams) -> Empty;
    /// Pending approvals, of one session or of all, the oldest first.
    Watch "approval.list" => ApprovalList(ApprovalListParams) -> Vec<ApprovalView>;
    /// What model calls used: of one session with its turns, or of all, by day, by model and by session.
    Watch "session.usage" => SessionUsage(UsageParams) -> UsageAnswer;
    /// The models a session can be answered by.
    Watch "model.list" => ModelList(ModelListParams) -> ModelListAnswer;
    /// Lets a model server that was found on this machine answer, or not. Recorded by its address and owner.
    Act "model.confirm" => ModelConfirm(ModelConfirmParams) -> Empty;
    /// The first answer wins; a later one gets `already_resolved`.
    Act "approval.answer" => ApprovalAnswer(AnswerParams) -> Answered;
    /// A part of an output that is too long for its event; only through a session that has such an event.
    Watch "blob.get" => BlobGet(BlobGetParams) -> BlobPage;
    /// Every tool, also those that models are not offered.
    Watch "tool.list" => ToolList(Empty) -> Vec<ToolInfo>;
    /// Commands in the background, the oldest first.
    Watch "job.list" => JobList(JobListParams) -> Vec<JobInfo>;
    /// Asks a job to end; what is left of it after 2 s is killed. `job.ended` says how it ended.
    Act "job.kill" => JobKill(JobKillParams) -> Empty;
    /// The user's own rules, and those of a project.
    Watch "rule.list" => RuleList(RuleListParams) -> Vec<RuleView>;
    Act "rule.add" => RuleAdd(RuleAddParams) -> RuleView;
    Act "rule.remove" => RuleRemove(RuleRemoveParams) -> RuleView;
    /// Judges a command as a session in that directory would. Nothing runs.
    Watch "rule.test" => RuleTest(RuleTestParams) -> RuleVerdict;
    /// The values in force and where each comes from.
    Watch "config.get" => ConfigGet(ConfigGetParams) -> ConfigView;
    /// Changes the user's file; it counts at once.
    Act "config.set" => ConfigSet(ConfigSetParams) -> ConfigView;
    Watch "trust.get" => TrustGet(TrustGetParams) -> TrustView;
    Act "trust.set" => TrustSet(TrustSetParams) -> TrustView;
    /// Begins a login and answers what the person has to do. It goes on in the daemon; another one for the same provider ends it.
    Act "auth.login" => AuthLogin(LoginParams) -> LoginStarted;
    /// Answers when the login is over. Does not hold up later requests.
    Act "auth.wait" => AuthWait(LoginRef) -> LoggedIn;
    Act "auth.cancel" => AuthCancel(LoginRef) -> Empty;
    /// Forgets the tokens and, where the provider has an address for that, ends them there.
    Act "auth.logout" => AuthLogout(LogoutParams) -> LoggedOut;
}

macro_rules! subscriptions {
    ($($(#[$doc:meta])* $name:literal, $cancel:literal => $notification:literal: $subscription:ident($params:ty) -> $item:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $subscription {}

            impl Subscription for $subscription {
                const NAME: &'static str = $name;
                const NOTIFICATION: &'static str = $notification;
                const CANCEL: &'static str = $cancel;
                type Params = $params;
                type Item = $item;
            }
        )*

        /// Calls `visit` with each subscription's name, notification, cancel method and the schema of its parameters.
        pub fn each_subscription(
            generator: &mut schemars::SchemaGenerator,
            mut visit: impl FnMut(&'static str, &'static str, &'static str, schemars::Schema),
        ) {
            $(visit($name, $notification, $cancel, generator.subschema_for::<$params>());)*
        }
    };
}

subscriptions! {
    /// History on request, then a snapshot, then live: see `frame`.
    "session.attach", "session.detach" => "session.frame": SessionAttach(AttachParams) -> Frame;
    /// Sessions made, changed, deleted, turns begun and ended, of all sessions, by `pos`.
    "session.watch", "session.unwatch" => "session.event": SessionWatch(WatchParams) -> WatchedEvent;
    /// Approvals requested and resolved, of all sessions, by `pos`.
    "approval.watch", "approval.unwatch" => "approval.event": ApprovalWatch(WatchParams) -> WatchedEvent;
}

/// Takes or answers nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}
