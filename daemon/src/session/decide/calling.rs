//! A model call runs or waits to be tried again: its reply, its failure, its interruption.

use super::Plan;
use super::asking::Question;
use super::room::cut_off;
use crate::session::input::{Failed, Piece, Replied, RequestedCall, Retry};
use crate::session::state::Stage;
use crate::session::wanted::ModelKey;
use protocol::event::{
    ApprovalRequested, Decision, GoOnLimit, ItemCompleted, ItemStatus, ItemType, Reason, StepCompleted, StepFailed,
    ToolOutcome, ToolRequested, TurnOutcome, TurnResumed, Verdict,
};
use protocol::{By, CallId, ItemId, Stop};

/// The first pause before a model call is tried again, in milliseconds; it doubles each time.
const FIRST_PAUSE_MS: u64 = 1_000;

/// The longest pause of our own choosing, in milliseconds.
const LONGEST_PAUSE_MS: u64 = 30_000;

/// Most that is added to a wait the provider asks for, so that sessions it told the same do not come back all at once, in milliseconds.
const SPREAD_MS: u64 = 5_000;

/// All pauses of one step together, in milliseconds.
const RETRYING_MS: u64 = 120_000;

/// Resumes without a completed step before a turn is given up: its own call may be what kills the daemon.
const MAX_LIVES: u32 = 3;

/// Calls one reply may ask for; more are refused.
const MAX_CALLS: usize = 64;

/// How long a turn from an earlier life waits each time for a client that brings the key it began with, in milliseconds.
const CHOICE_PAUSE_MS: u64 = 5_000;

impl Plan<'_> {
    fn expects(&self, key: &ModelKey) -> bool {
        let calling = Stage::Calling { retry_at: None };
        self.state
            .turn
            .as_ref()
            .is_some_and(|turn| turn.stage == calling && turn.model_key() == *key)
    }

    pub(super) fn replied(&mut self, replied: Replied) {
        if !self.expects(&replied.key) {
            return;
        }
        if replied.stop != Stop::PauseTurn && replied.pieces.iter().all(says_nothing) {
            return self.empty_reply(replied);
        }
        let Replied {
            key,
            pieces,
            stop,
            model,
            usage,
            cost,
            manifest,
            room,
            remark,
        } = replied;
        let mut asked = Vec::new();
        let mut calls = 0;
        for piece in pieces {
            match piece {
                Piece::Item { index, item } => {
                    let completed = ItemCompleted {
                        item: ItemId::reply(key.seq, index),
                        turn: key.turn.clone(),
                        step: key.step,
                        item_type: item.item_type,
                        text: item.text,
                        status: item.status,
                    };
                    self.emit_private(completed, item.private);
                }
                Piece::Call { index, call } => {
                    asked.extend(self.request_call(&key, index, calls, *call));
                    calls += 1;
                }
            }
        }
        let (turn, step, attempt) = (key.turn, key.step, key.attempt);
        self.emit(StepCompleted {
            turn,
            step,
            attempt,
            stop,
            model,
            usage,
            cost,
            manifest,
        });
        for request in asked {
            self.emit(request);
        }
        self.note_cut(stop);
        self.note_room(&room, usage);
        self.note_cost(cost);
        self.note_instructions(remark);
        self.advance();
    }

    fn empty_reply(&mut self, replied: Replied) {
        let first = self.state.turn.as_ref().is_some_and(|turn| turn.failures == 0);
        let cut = cut_off(replied.stop);
        let hint = match cut {
            Some(cut) => format!("{cut}, before the answer began"),
            None => "say it in other words, or try another model".to_owned(),
        };
        self.failed(Failed {
            key: replied.key,
            error: Reason {
                kind: "empty_reply".to_owned(),
                message: format!("the model {} answered with nothing", replied.model.model),
                hint: Some(hint),
            },
            // What ran into a limit runs into it again.
            retry: if first && cut.is_none() {
                Retry::After(None)
            } else {
                Retry::Never
            },
            usage: replied.usage,
        });
    }

    /// Records the call with its verdict; answers the approval to be asked for.
    fn request_call(
        &mut self,
        key: &ModelKey,
        index: usize,
        nth: usize,
        call: RequestedCall,
    ) -> Option<ApprovalRequested> {
        let id = CallId::at(self.state.seq.next());
        let (inspected, argument_error) = match call.inspected {
            Ok(_) if nth >= MAX_CALLS => (
                None,
                Some(format!("at most {MAX_CALLS} calls are taken from one reply")),
            ),
            Ok(inspected) => (Some(inspected), None),
            Err(error) => (None, Some(error)),
        };
        let judged = inspected.as_ref().map(|inspected| self.judge(&inspected.facts));
        let mut action = inspected
            .as_ref()
            .map(|inspected| inspected.action.clone())
            .unwrap_or_default();
        let verdict = match judged {
            Some(judged) => {
                action.parts.clone_from(&judged.parts);
                let read_only = judged.read_only;
                let allowed = inspected.as_ref().filter(|_| judged.decision == Decision::Allow);
                Verdict {
                    mode: allowed.and_then(|inspected| self.needed_mode(&inspected.facts)),
                    decision: judged.decision,
                    reason: judged.reason,
                    rule: judged.rule,
                    read_only,
                }
            }
            None => Verdict {
                decision: Decision::Deny,
                reason: "the arguments are wrong".to_owned(),
                rule: None,
                read_only: false,
                mode: None,
            },
        };
        if let Some(error) = &argument_error {
            self.refusals.insert(id.clone(), (ToolOutcome::Error, error.clone()));
        } else if verdict.decision > Decision::Ask {
            self.refusals.insert(
                id.clone(),
                (ToolOutcome::Denied, format!("Not run: {}", verdict.reason)),
            );
        }
        let digest = inspected.as_ref().map(|inspected| inspected.digest.clone());
        let request = inspected
            .as_ref()
            .filter(|_| verdict.decision == Decision::Ask)
            .map(|inspected| {
                self.request(Question {
                    call: id.clone(),
                    turn: key.turn.clone(),
                    tool: call.tool.clone(),
                    facts: &inspected.facts,
                    action: action.clone(),
                    digest: inspected.digest.clone(),
                    verdict: &verdict,
                })
            });
        let requested = ToolRequested {
            call: id,
            turn: key.turn.clone(),
            step: key.step,
            index: u32::try_from(nth).unwrap_or(u32::MAX),
            item: ItemId::reply(key.seq, index),
            tool: call.tool,
            provider_call_id: call.provider_call_id,
            arguments: call.arguments,
            argument_error,
            writes: inspected.as_ref().is_some_and(|inspected| inspected.writes),
            verdict,
            action,
            digest,
        };
        self.emit_private(requested, call.private);
        request
    }

    /// Asks whether the turn may go on beyond a limit.
    pub(super) fn ask_to_go_on(&mut self, limit: GoOnLimit, reason: String) {
        let Some(turn) = &self.state.turn else { return };
        let digest = format!("go-on-{}-{}", turn.id, turn.step);
        let request = ApprovalRequested {
            limit: Some(limit),
            firm: true,
            ..self.question(turn.id.clone(), digest, reason)
        };
        self.emit(request);
    }

    pub(super) fn failed(&mut self, failed: Failed) {
        if !self.expects(&failed.key) {
            return;
        }
        let retry_at = self.pause_ms(failed.retry).map(|pause| self.context.at.plus_ms(pause));
        let (turn, step, attempt) = (failed.key.turn, failed.key.step, failed.key.attempt);
        let mut error = failed.error;
        if let (None, Retry::After(Some(asked)), None) = (retry_at, failed.retry, &error.hint) {
            error.hint = Some(format!(
                "the provider asks to wait {} s; send it again after that",
                asked.as_secs()
            ));
        }
        self.emit(StepFailed {
            turn,
            step,
            attempt,
            error: error.clone(),
            retry_at,
            usage: failed.usage,
        });
        if retry_at.is_none() {
            self.end(TurnOutcome::Failed, Some(error));
        }
    }

    /// How long to wait before the next try; `None`: there is none.
    fn pause_ms(&self, retry: Retry) -> Option<u64> {
        let (turn, Retry::After(asked)) = (self.state.turn.as_ref()?, retry) else {
            return None;
        };
        if turn.failures >= self.context.retries {
            return None;
        }
        let doubled = FIRST_PAUSE_MS
            .saturating_mul(1 << turn.failures.min(10))
            .min(LONGEST_PAUSE_MS);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "at most 30 s"
        )]
        let own = (doubled as f64 * (0.5 + self.context.jitter / 2.0)) as u64;
        let asked = asked.map_or(0, |asked| u64::try_from(asked.as_millis()).unwrap_or(u64::MAX));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "at most 5 s"
        )]
        let spread = ((asked / 10).min(SPREAD_MS) as f64 * self.context.jitter) as u64;
        let pause = own.max(asked.saturating_add(spread));
        let spent = turn.failing_since.map_or(0, |since| self.context.at.ms_since(since));
        let left = turn
            .deadline()
            .map_or(u64::MAX, |deadline| deadline.ms_since(self.context.at));
        (spent.saturating_add(pause) <= RETRYING_MS && pause < left).then_some(pause)
    }

    /// Why a turn from an earlier life cannot go on as it was: the model chosen for it is not there any more, since keys live in memory
    /// alone. Another one must not go on with it unasked.
    pub(super) fn lost_choice(&self) -> Option<Reason> {
        let (was, now) = (self.state.announced.as_ref()?, self.context.announce.as_ref()?);
        let resumed = self.state.turn.as_ref().is_some_and(|turn| turn.lives > 0);
        (resumed && was != now).then(|| Reason {
            kind: "model_gone".to_owned(),
            message: format!("the turn began {was}, which is not there since the daemon was started again"),
            hint: Some(
                "run any agentctl command where that key is set; to go on with another model, send it again".to_owned(),
            ),
        })
    }

    /// Waits for the model the turn began with, as often as a failed call is tried again.
    pub(super) fn wait_for_choice(&mut self, error: Reason) {
        let Some(turn) = &self.state.turn else { return };
        let tried = turn.failures < self.context.retries;
        let retry_at = tried.then(|| self.context.at.plus_ms(CHOICE_PAUSE_MS));
        let (turn, step, attempt) = (turn.id.clone(), turn.step, turn.attempt);
        self.emit(StepFailed {
            turn,
            step,
            attempt,
            error: error.clone(),
            retry_at,
            usage: None,
        });
        if retry_at.is_none() {
            self.end(TurnOutcome::Failed, Some(error));
        }
    }

    pub(super) fn retry(&mut self) {
        if let Some((step, attempt)) = self.state.turn.as_ref().map(|turn| (turn.step, turn.attempt)) {
            self.start_step(step, attempt + 1);
        }
    }

    /// Ends the turn in the middle of a reply; what was shown is recorded as it was.
    pub(super) fn cut_reply(&mut self, outcome: TurnOutcome, by: By) {
        let Some((turn, step, step_seq)) = self
            .state
            .turn
            .as_ref()
            .map(|turn| (turn.id.clone(), turn.step, turn.step_seq))
        else {
            return;
        };
        for (index, item_type, text) in self.context.shown.clone() {
            if text.is_empty() {
                continue;
            }
            let (item, turn, status) = (ItemId::reply(step_seq, index), turn.clone(), ItemStatus::Interrupted);
            self.emit(ItemCompleted {
                item,
                turn,
                step,
                item_type,
                text,
                status,
            });
        }
        self.end_by(outcome, None, Some(&by));
    }

    /// A turn from an earlier life goes on.
    pub(super) fn resume(&mut self) {
        let Some((turn, lives)) = self.state.turn.as_ref().map(|turn| (turn.id.clone(), turn.lives)) else {
            return;
        };
        self.emit(TurnResumed {
            turn,
            lives: lives + 1,
            reason: "restart".to_owned(),
        });
        self.lose_running();
        let Some(turn) = &self.state.turn else { return };
        if !matches!(turn.stage, Stage::Calling { .. }) {
            return self.advance();
        }
        if lives >= MAX_LIVES {
            let message = format!("the daemon ended {lives} times during this model call");
            let hint = Some("look at the daemon's log, then send the input again".to_owned());
            return self.end(
                TurnOutcome::Failed,
                Some(Reason {
                    kind: "gave_up".to_owned(),
                    message,
                    hint,
                }),
            );
        }
        // In back-off the next try comes by itself.
        if turn.stage == (Stage::Calling { retry_at: None }) {
            let (step, attempt) = (turn.step, turn.attempt);
            self.start_step(step, attempt + 1);
        }
    }
}

/// Whether a piece is nothing a person or the turn can use: thoughts and blanks lead nowhere by themselves.
fn says_nothing(piece: &Piece) -> bool {
    match piece {
        Piece::Call { .. } => false,
        Piece::Item { item, .. } => match item.item_type {
            ItemType::Text | ItemType::Refusal => item.text.trim().is_empty(),
            ItemType::Reasoning | ItemType::Opaque => true,
        },
    }
}
