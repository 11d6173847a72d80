//! Making what runs equal to what the state wants: starting model and tool calls with all they need.

use super::Actor;
use crate::context::assemble::Audience;
use crate::session::details::Parked;
use crate::session::effect::job::JobRun;
use crate::session::effect::model::ModelCall;
use crate::session::effect::tool::{Arguments, ToolCall};
use crate::session::live::Feed;
use crate::session::place::{LazyPlace, Personal};
use crate::session::reconcile::End;
use crate::session::wanted::{Effect, wanted};
use crate::target::TargetSpec;
use crate::target::sandbox::Confinement;
use crate::tool::{Tool, judged_part};
use std::path::PathBuf;
use std::sync::Arc;

impl Actor {
    /// Makes what runs equal to what is wanted.
    pub(super) fn reconcile(&mut self) {
        if self.parked == Parked::Yes {
            return;
        }
        let wanted = wanted(&self.state);
        let fresh = self.runner.adjust(&wanted);
        if fresh.is_empty() {
            return;
        }
        for effect in fresh {
            let feed = Feed::new(self.publisher.clone());
            match &effect {
                Effect::Model(_) => self.start_model(effect, feed),
                Effect::Tool(_) => self.start_tool(effect, feed),
                Effect::Job(_) => self.start_job(effect, feed),
            }
        }
        debug_assert_eq!(
            self.runner.running(),
            wanted.into_keys().collect(),
            "what runs is what is wanted"
        );
        self.publish();
    }

    fn start_model(&mut self, effect: Effect, feed: Arc<Feed>) {
        let (Effect::Model(key), Some(turn)) = (&effect, &self.state.turn) else {
            return;
        };
        let interactive = turn.interactive;
        self.narrow_tools();
        let Some(turn) = &self.state.turn else { return };
        let call = ModelCall {
            key: key.clone(),
            profile: self.state.settings.model.clone(),
            mode: self.state.mode(),
            models: Arc::clone(&self.deps.models),
            log: self.deps.log.clone(),
            session: self.key,
            session_id: self.session.clone(),
            history: self.history.take().unwrap_or_default(),
            instructions: self.instructions.take(),
            tools: offered(&self.tools, turn.tools.as_deref()),
            turn_started_at: turn.started_at,
            place: self.place(),
            cwd: self.state.cwd.clone(),
            root: self.state.root.clone(),
            added_roots: self.state.added_roots.clone(),
            audience: if interactive {
                Audience::Person
            } else {
                Audience::Nobody
            },
            feed: Arc::clone(&feed),
            redactor: self.deps.redactor.clone(),
        };
        self.runner
            .start(effect, feed, |_| async move { End::Model(Box::new(call.run().await)) });
    }

    fn start_tool(&mut self, effect: Effect, feed: Arc<Feed>) {
        let Effect::Tool(call) = &effect else { return };
        let Some(mut requested) = self.details.calls.get(call).cloned() else {
            return;
        };
        let approved = self
            .state
            .turn
            .as_ref()
            .and_then(|turn| turn.call(call))
            .is_some_and(|call| call.approval.is_some());
        let edited = self
            .state
            .turn
            .as_ref()
            .and_then(|turn| turn.call(call))
            .is_some_and(|call| call.edited.is_some());
        if !approved {
            // Nobody saw the contents, so an earlier call of the same reply may change them.
            requested.digest = requested.digest.as_deref().map(|digest| judged_part(digest).to_owned());
        }
        let tool = self
            .tools
            .iter()
            .find(|tool| tool.spec().name == requested.tool)
            .cloned();
        let place = self.place();
        let personal = if approved { Personal::Yes } else { Personal::No };
        // Nobody looked at a call that the built-in list let through.
        let confinement = if requested.verdict.read_only && !approved {
            Confinement::ReadOnly
        } else {
            Confinement::Session
        };
        let (guard, log, session) = (self.deps.guard.clone(), self.deps.log.clone(), self.key);
        let redactor = self.deps.redactor.clone();
        let shown = Arc::clone(&feed);
        let arguments = if edited { Arguments::Persons } else { Arguments::Models };
        self.runner.start(effect, feed, move |stop| async move {
            let call = ToolCall {
                requested,
                arguments,
                tool,
                place: place.for_call(personal).await,
                guard,
                confinement,
                stop,
                log,
                session,
                feed: shown,
                redactor,
            };
            End::Tool(Box::new(call.run().await))
        });
    }

    fn start_job(&mut self, effect: Effect, feed: Arc<Feed>) {
        let Effect::Job(job) = &effect else { return };
        let (log, session, shown) = (self.deps.log.clone(), self.key, Arc::clone(&feed));
        let run = JobRun {
            job: job.clone(),
            jobs: self.jobs.clone(),
            log,
            session,
            feed: shown,
            redactor: self.deps.redactor.clone(),
        };
        self.runner.start(
            effect,
            feed,
            |stop| async move { End::Job(Box::new(run.run(stop).await)) },
        );
    }

    /// Takes back the tools that the configuration does not offer any more.
    fn narrow_tools(&mut self) {
        let now = self.deps.standing.tools();
        let offered = |tool: &&Arc<dyn Tool>| now.iter().any(|now| now.spec().name == tool.spec().name);
        if !self.tools.iter().all(|tool| offered(&tool)) {
            self.tools = self.tools.iter().filter(offered).cloned().collect();
        }
    }

    /// Where calls happen, in a sandbox as narrow as it ever was; one that could not be opened is tried again.
    pub(super) fn place(&mut self) -> LazyPlace {
        let narrowed = self.sandbox.narrowed_by(&self.deps.standing.sandbox());
        let changed = !narrowed.is_as_wide_as(&self.sandbox);
        self.sandbox = narrowed;
        if let Some(place) = self.place.as_mut().filter(|place| !place.failed()) {
            if changed {
                *place = place.in_sandbox(self.sandbox.clone());
            }
            return place.clone();
        }
        let spec = TargetSpec {
            roots: self.state.roots().map(PathBuf::from).collect(),
            cwd: PathBuf::from(&self.state.cwd),
            environment: self.environment.clone(),
            hidden: self.deps.hidden.clone(),
            sandbox: self.sandbox.clone(),
        };
        let place = LazyPlace::new(spec, &self.state.read_files, self.jobs.clone());
        self.place.insert(place).clone()
    }
}

/// Of the session's tools those that the turn may use.
fn offered(tools: &Arc<[Arc<dyn Tool>]>, names: Option<&[String]>) -> Arc<[Arc<dyn Tool>]> {
    let Some(names) = names else { return Arc::clone(tools) };
    let named = |tool: &&Arc<dyn Tool>| names.iter().any(|name| name == tool.spec().name);
    tools.iter().filter(named).cloned().collect()
}
