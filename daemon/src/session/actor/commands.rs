//! What clients ask of a session: each request is answered from the state, or decided, committed and answered.

use super::{Actor, Next, Patience, Refused, fault, too_many_roots};
use crate::config::Project;
use crate::policy::{self, Facts, Policy};
use crate::session::details::Parked;
use crate::session::drain::Draining;
use crate::session::handle::{AnswerRequest, Asked, Message, Reply, Sending};
use crate::session::input::{Answer, Change, Input, Send};
use crate::session::known::{known, outcome_of};
use crate::session::open::project;
use crate::session::registry::draining;
use crate::session::state::MAX_WAITING;
use crate::target::{ADDED_ROOTS_LIMIT, not_within};
use protocol::event::{Envelope, Event};
use protocol::method::{Answered, Interrupted, Sent};
use protocol::{ApprovalId, By, ErrorKind, InputId, JobId, RpcError, TurnId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

impl Actor {
    pub(super) async fn take(&mut self, message: Message) -> Next {
        match message {
            Message::Send(sending, reply) => {
                let Sending { send, project } = *sending;
                let answer = self.send(send, project).await;
                Self::reply(reply, answer)
            }
            Message::CancelInput(input_id, by, reply) => {
                let answer = match self.state.waiting(&input_id) {
                    Some(_) => self.command(Input::Cancel { input_id, by }).await.map(drop),
                    None => Err(Refused::No(not_waiting(&input_id))),
                };
                Self::reply(reply, answer)
            }
            Message::ResumeQueue(by, reply) => {
                let answer = self.command(Input::ResumeQueue { by }).await.map(drop);
                Self::reply(reply, answer)
            }
            Message::Interrupt(turn, by, reply) => {
                let answer = self.interrupt(turn, by).await;
                Self::reply(reply, answer)
            }
            Message::KillJob(job, by, reply) => {
                let answer = match self.state.jobs.iter().any(|known| known.id == job) {
                    true => self
                        .commit(Input::StopJob { job, by }, Patience::Command)
                        .await
                        .map(drop),
                    false => Err(Refused::No(no_job(&job))),
                };
                Self::reply(reply, answer)
            }
            Message::Look(approval, reply) => {
                let asked = self.look(&approval);
                Self::reply(reply, asked)
            }
            Message::Answer(answer, reply) => {
                let answer = self.answer(*answer).await;
                Self::reply(reply, answer)
            }
            Message::Change(change, reply) => {
                let answer = self.change(*change).await;
                Self::reply(reply, answer)
            }
            Message::Refresh(environment, by) => self.refresh(environment, by).await,
            Message::ResumeTurn(reply) => {
                let answer = self.unpark().await;
                Self::reply(reply, answer)
            }
            Message::Close(reply) => {
                self.mailbox.close();
                self.runner.shutdown().await;
                let _ = reply.send(Ok(()));
                Next::End
            }
        }
    }

    fn reply<T>(reply: Reply<T>, answer: Result<T, Refused>) -> Next {
        let (answer, next) = match answer {
            Ok(answer) => (Ok(answer), Next::Go),
            Err(Refused::No(error)) => (Err(error), Next::Go),
            Err(Refused::Broken(error)) => (Err(error), Next::End),
        };
        // A client that is gone does not hear the answer; what it asked for stands.
        let _ = reply.send(answer);
        next
    }

    async fn send(&mut self, send: Send, project: Result<Project, RpcError>) -> Result<Sent, Refused> {
        if let Some(sent) = self.known(&send).await? {
            return Ok(sent);
        }
        if self.deps.drain.state() == Draining::Yes {
            return Err(Refused::No(draining()));
        }
        if self.state.queue.len() + self.state.steers.len() >= MAX_WAITING {
            let error = RpcError::new(ErrorKind::QueueFull, format!("{MAX_WAITING} inputs wait already"))
                .hint("wait for the turn to end, or cancel some: agentctl queue list");
            return Err(Refused::No(error));
        }
        // A session that lives is only ever narrowed by its project's file.
        self.project = self.project.narrowed_by(project.map_err(Refused::No)?);
        let input_id = send.input_id.clone();
        let events = self.command(Input::Send(send)).await?;
        let accepted = events.iter().find_map(|envelope| match envelope.event() {
            Some(Event::InputAccepted(accepted)) if accepted.input_id == input_id => {
                Some((envelope.seq, accepted.disposition))
            }
            _ => None,
        });
        let Some((seq, disposition)) = accepted else {
            return Err(Refused::No(fault("the input left no event")));
        };
        let turn = self.state.turn.as_ref().filter(|turn| turn.inputs.contains(&input_id));
        let steered = self.state.steers.iter().any(|waiting| waiting.input_id == input_id);
        let turn = turn
            .or(self.state.turn.as_ref().filter(|_| steered))
            .map(|turn| turn.id.clone());
        Ok(Sent {
            input_id,
            seq,
            disposition,
            turn,
        })
    }

    async fn change(&mut self, mut change: Change) -> Result<(), Refused> {
        let changed = &mut change.changed;
        changed.added_roots = not_within(self.state.roots(), std::mem::take(&mut changed.added_roots));
        if self.state.added_roots.len() + changed.added_roots.len() > ADDED_ROOTS_LIMIT {
            return Err(Refused::No(too_many_roots()));
        }
        let added: Vec<PathBuf> = changed.added_roots.iter().map(PathBuf::from).collect();
        // A change of mode answers approvals, so the turn they belong to goes on first.
        let acts = changed.mode.is_some();
        let input = Input::Change(Box::new(change));
        if acts {
            self.command(input).await?;
        } else {
            self.commit(input, Patience::Command).await?;
        }
        if !added.is_empty() {
            let opened = self.place.take().filter(|place| !place.failed());
            self.place = opened.map(|place| place.with_roots(added));
        }
        Ok(())
    }

    /// The recorded answer to an input that is known already.
    async fn known(&self, send: &Send) -> Result<Option<Sent>, Refused> {
        let known = known(&self.deps.log, self.key, &self.state, &send.input_id)
            .await
            .map_err(Refused::No)?;
        let Some(known) = known else { return Ok(None) };
        if !known.is(send) {
            let error = RpcError::new(
                ErrorKind::InputConflict,
                format!("input {} is known with another content or other terms", send.input_id),
            )
            .hint("send again exactly what was sent before, or use a new input_id");
            return Err(Refused::No(error));
        }
        Ok(Some(known.sent))
    }

    async fn interrupt(&mut self, turn: Option<TurnId>, by: By) -> Result<Interrupted, Refused> {
        let running = self.state.turn.as_ref().map(|turn| turn.id.clone());
        let named = turn.clone().or_else(|| running.clone());
        if named.is_none() || named != running {
            let outcome = match &turn {
                Some(turn) => outcome_of(&self.deps.log, self.key, turn).await.map_err(Refused::No)?,
                None => self.state.outcome,
            };
            return Ok(Interrupted {
                interrupted: false,
                turn,
                outcome,
            });
        }
        self.command(Input::Interrupt { turn, by }).await?;
        Ok(Interrupted {
            interrupted: true,
            turn: running,
            outcome: None,
        })
    }

    async fn answer(&mut self, request: AnswerRequest) -> Result<Answered, Refused> {
        let Some((recorded, _)) = self.details.approvals.get(&request.id).cloned() else {
            let error = RpcError::new(
                ErrorKind::AlreadyResolved,
                format!("approval {} is settled already", request.id),
            );
            return Err(Refused::No(error));
        };
        if recorded.digest != request.digest {
            let error = RpcError::new(
                ErrorKind::DigestMismatch,
                "the answer is for another request than the one that waits",
            )
            .hint("read the request again and answer that");
            return Err(Refused::No(error));
        }
        if !recorded.choices.contains(&request.decision) {
            let error = RpcError::new(
                ErrorKind::InvalidParams,
                "this answer is not among the choices of the request",
            )
            .with("choices", &recorded.choices);
            return Err(Refused::No(error));
        }
        let edited = request.edited.map(Box::new);
        let changed = edited.as_ref().map(|edited| edited.inspected.facts.clone());
        let (id, decision) = (request.id.clone(), request.decision);
        let answer = Answer {
            approval: request.id,
            decision,
            feedback: request.feedback,
            request: recorded,
            edited,
            by: request.by,
        };
        let events = self.command(Input::Answer(Box::new(answer))).await?;
        let resolved = |envelope: &Arc<Envelope>| match envelope.event() {
            Some(Event::ApprovalResolved(resolved)) if resolved.approval == id => {
                Some((envelope.seq, resolved.decision))
            }
            _ => None,
        };
        let session = self.session.clone();
        match (events.iter().find_map(resolved), changed) {
            (Some((seq, decision)), _) => Ok(Answered {
                session,
                decision,
                seq,
                id,
            }),
            (None, None) => Ok(Answered {
                session,
                decision: decision.into(),
                seq: self.state.seq,
                id,
            }),
            (None, Some(facts)) => Err(Refused::No(self.edit_refused(&facts))),
        }
    }

    /// Why a call as a person changed it may not run.
    fn edit_refused(&self, facts: &Facts) -> RpcError {
        let set = self.rules();
        let grants = &self.state.grants;
        let policy = Policy {
            mode: self.state.mode_at(self.clock.now()),
            rules: &set.rules,
            grants,
            builtin_allow: set.builtin_allow,
        };
        let verdict = policy::judge(facts, &policy);
        RpcError::new(
            ErrorKind::EditRefused,
            format!("the changed call may not run: {}", verdict.reason),
        )
        .hint("the request still waits: answer it as it is, or change it otherwise")
        .with("verdict", verdict.decision)
    }

    /// The call an approval is about.
    fn look(&mut self, approval: &ApprovalId) -> Result<Asked, Refused> {
        let resolved = || {
            Refused::No(RpcError::new(
                ErrorKind::AlreadyResolved,
                format!("approval {approval} is settled already"),
            ))
        };
        let (request, _) = self.details.approvals.get(approval).ok_or_else(resolved)?;
        let call = request
            .call
            .as_ref()
            .and_then(|call| self.details.calls.get(call))
            .cloned();
        let tool = |name: &str| self.tools.iter().find(|tool| tool.spec().name == name).cloned();
        let (Some(tool), Some(call)) = (call.as_ref().and_then(|call| tool(&call.tool)), call) else {
            return Err(Refused::No(RpcError::new(
                ErrorKind::InvalidParams,
                "the request is about no call that could be changed",
            )));
        };
        Ok(Asked {
            tool,
            place: self.place(),
            arguments: call.arguments,
            redactor: self.deps.redactor.clone(),
        })
    }

    /// A client's environment is taken over between turns.
    async fn refresh(&mut self, environment: BTreeMap<String, String>, by: By) -> Next {
        let environment = self.deps.standing.environment(&environment);
        if environment == self.environment || self.state.turn.is_some() {
            return Next::Go;
        }
        match self
            .commit(
                Input::Refresh {
                    environment: environment.clone(),
                    by,
                },
                Patience::Command,
            )
            .await
        {
            Ok(_) => {
                self.environment = environment;
                self.place = None;
                Next::Go
            }
            Err(Refused::No(_)) => Next::Go,
            Err(Refused::Broken(_)) => Next::End,
        }
    }

    /// A turn of an earlier life goes on, once somebody acts on the session, under what its project's file says now.
    async fn unpark(&mut self) -> Result<(), Refused> {
        if self.parked == Parked::Yes {
            if self.deps.drain.state() == Draining::Yes {
                return Err(Refused::No(draining()));
            }
            let project = project(&self.deps, &self.state.root).await.map_err(Refused::No)?;
            self.project = self.project.narrowed_by(project);
            self.parked = Parked::No;
            if let Err(refused) = self.commit(Input::Restarted, Patience::Effect).await {
                self.parked = Parked::Yes;
                return Err(refused);
            }
            self.publish();
        }
        Ok(())
    }

    async fn command(&mut self, input: Input) -> Result<Vec<Arc<Envelope>>, Refused> {
        self.unpark().await?;
        self.commit(input, Patience::Command).await
    }
}

fn no_job(job: &JobId) -> RpcError {
    RpcError::new(ErrorKind::JobNotFound, format!("no job {job} runs in this session"))
        .hint("agentctl ps shows what runs")
}

fn not_waiting(input_id: &InputId) -> RpcError {
    RpcError::new(
        ErrorKind::InputNotFound,
        format!("no input {input_id} waits in this session"),
    )
    .hint("agentctl queue list shows what waits")
}
