//! Asking a person, and what the answer makes of the call: it runs as it is, it runs as the person changed it, or the changed call
//! is asked about anew.

use super::Plan;
use super::acting::ended;
use crate::policy::{self, Decision, Facts, Grant, Policy, grant_for, offer};
use crate::session::input::{Answer, Edited, Reach, grant_of};
use protocol::event::{
    Action, ApprovalRequested, ApprovalResolved, Choice, Resolution, ToolOutcome, ToolStarted, Verdict,
};
use protocol::{ApprovalId, CallId, Mode, TurnId};

/// What a person is asked about.
pub(super) struct Question<'a> {
    pub(super) call: CallId,
    pub(super) turn: TurnId,
    pub(super) tool: String,
    pub(super) facts: &'a Facts,
    pub(super) action: Action,
    pub(super) digest: String,
    pub(super) verdict: &'a Verdict,
}

impl Plan<'_> {
    /// Judges a call as the session stands.
    pub(super) fn judge(&self, facts: &Facts) -> policy::Verdict {
        self.judge_in(self.state.mode_at(self.context.at), facts)
    }

    /// The narrowest mode that allows a call the session allows as it stands; none if it needs no mode for that.
    pub(super) fn needed_mode(&self, facts: &Facts) -> Option<Mode> {
        if self.state.mode_at(self.context.at) == Mode::Ask {
            return None;
        }
        let allowed = |mode: &Mode| self.judge_in(*mode, facts).decision == Decision::Allow;
        let narrowest = [Mode::Ask, Mode::Edits, Mode::All].into_iter().find(allowed);
        narrowest.filter(|mode| *mode != Mode::Ask)
    }

    /// Whether a call that was allowed may still begin.
    fn stands(&self, call: &CallId) -> bool {
        let turn = self.state.turn.as_ref();
        let needed = turn.and_then(|turn| turn.call(call)).and_then(|call| call.needs);
        let mode = self.state.mode_at(self.context.at);
        needed.is_none_or(|needed| mode.allows_as_much_as(needed))
    }

    /// Starts a call that may start, or puts the question that the mode it was allowed in has spared: a mode lets begin what begins in
    /// it, not what was asked for in it.
    pub(super) fn start_call(&mut self, call: CallId) {
        if self.stands(&call) {
            return self.emit(ToolStarted { call });
        }
        let mode = self.state.mode_at(self.context.at);
        let why = format!("was allowed in another mode and had not begun when the mode became {mode}.");
        let requested = self.context.calls.get(&call).filter(|_| mode != Mode::None);
        let asked = requested.and_then(|requested| {
            let (turn, digest) = (requested.turn.clone(), requested.digest.clone()?);
            Some(ApprovalRequested {
                call: Some(call.clone()),
                tool: Some(requested.tool.clone()),
                action: requested.action.clone(),
                ..self.question(turn, digest, format!("It {why}"))
            })
        });
        match asked {
            Some(asked) => self.emit(asked),
            None => self.emit(ended(call, ToolOutcome::Denied, &format!("Not run: it {why}"))),
        }
    }

    /// A question that can be answered once or denied, with a name of its own.
    pub(super) fn question(&self, turn: TurnId, digest: String, reason: String) -> ApprovalRequested {
        ApprovalRequested {
            approval: ApprovalId((self.context.new_id)()),
            call: None,
            turn,
            digest,
            limit: None,
            tool: None,
            action: Action::default(),
            reason,
            choices: choices(None, None),
            rule: None,
            firm: false,
            grant: None,
            always: None,
            no_rule: None,
        }
    }

    fn judge_in(&self, mode: Mode, facts: &Facts) -> policy::Verdict {
        let policy = Policy {
            mode,
            rules: self.context.rules,
            grants: &self.state.grants,
            builtin_allow: self.context.builtin_allow,
        };
        policy::judge(facts, &policy)
    }

    /// The request that puts the question.
    pub(super) fn request(&self, question: Question<'_>) -> ApprovalRequested {
        let Question {
            call,
            turn,
            tool,
            facts,
            action,
            digest,
            verdict,
        } = question;
        // An ask rule speaks before every allowance, so none would spare the next question.
        let offered = match verdict.rule {
            None => offer(facts),
            Some(_) => Err("a rule asks for it each time"),
        };
        let no_rule = offered.as_ref().err().map(|why| (*why).to_owned());
        let grant = offered.ok();
        let always = grant
            .as_ref()
            .and_then(|grant| grant.to_rule(self.state.root.as_ref()))
            .map(|rule| rule.to_string());
        ApprovalRequested {
            call: Some(call),
            tool: Some(tool),
            action,
            choices: choices(grant.as_ref(), always.as_ref()),
            rule: grant.as_ref().map(ToString::to_string),
            firm: self.judge_in(Mode::All, facts).decision == Decision::Ask,
            grant: grant.and_then(|grant| serde_json::to_value(grant).ok()),
            always,
            no_rule,
            ..self.question(turn, digest, verdict.reason.clone())
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        if !self.state.pending().any(|(pending, _)| pending.id == answer.approval) {
            return;
        }
        let Answer {
            approval,
            decision,
            feedback,
            request,
            edited,
            by,
        } = answer;
        if let (Some(edited), Some(call)) = (edited, &request.call) {
            let call = call.clone();
            return self.answer_edited(approval, call, decision, request, *edited, by);
        }
        let keeps = matches!(decision, Choice::Session | Choice::Always);
        let grant = keeps.then(|| grant_of(&request)).flatten();
        let grant = grant.and_then(|grant| serde_json::to_value(grant).ok());
        let stays = request.call.is_none() && decision == Choice::Deny;
        self.resolve(approval, request.call, decision.into(), feedback, grant, by);
        if stays { self.end_at_limit() } else { self.advance() }
    }

    /// The person's own version of a call: what they typed needs no second consent, what goes beyond what they were shown does.
    /// One that is denied or blocked changes nothing; who answered is told why.
    fn answer_edited(
        &mut self,
        approval: ApprovalId,
        call: CallId,
        decision: Choice,
        request: ApprovalRequested,
        edited: Edited,
        by: protocol::By,
    ) {
        let Edited {
            arguments,
            inspected,
            reach,
        } = edited;
        let judged = self.judge(&inspected.facts);
        let asks_again = judged.decision == Decision::Ask && (reach == Reach::Beyond || judged.rule.is_some());
        let mut action = inspected.action;
        action.parts.clone_from(&judged.parts);
        let (resolution, grant) = match judged.decision {
            Decision::Deny | Decision::Blocked => return,
            _ if asks_again => (Resolution::Edited, None),
            _ if matches!(decision, Choice::Session | Choice::Always) => (decision.into(), grant_for(&inspected.facts)),
            _ => (decision.into(), None),
        };
        self.emit(ApprovalResolved {
            approval,
            call: Some(call.clone()),
            decision: resolution,
            feedback: None,
            grant: grant.and_then(|grant| serde_json::to_value(grant).ok()),
            arguments: Some(arguments),
            digest: Some(inspected.digest.clone()),
            action: Some(action.clone()),
            by,
        });
        if asks_again {
            let verdict = Verdict {
                decision: judged.decision,
                reason: judged.reason,
                rule: judged.rule,
                read_only: judged.read_only,
                mode: None,
            };
            let question = Question {
                call,
                turn: request.turn,
                tool: request.tool.unwrap_or_default(),
                facts: &inspected.facts,
                action,
                digest: inspected.digest,
                verdict: &verdict,
            };
            let request = self.request(question);
            self.emit(request);
        }
        self.advance();
    }
}

/// What may be answered: with an allowance to be had for the session, with a rule also from now on.
pub(super) fn choices(grant: Option<&Grant>, rule: Option<&String>) -> Vec<Choice> {
    let mut choices = vec![Choice::Once];
    choices.extend(grant.map(|_| Choice::Session));
    choices.extend(rule.map(|_| Choice::Always));
    choices.push(Choice::Deny);
    choices
}
