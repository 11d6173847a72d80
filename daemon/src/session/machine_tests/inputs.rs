//! What may happen to a session next: what clients ask, how effects end, what time brings.

use super::world::{Weather, World, by};
use crate::policy::Facts;
use crate::session::drain::Draining;
use crate::session::input::{
    Answer, Change, Edited, Failed, Input, Inspected, Item, JobEnd, Piece, Reach, Replied, RequestedCall, Retry, Room,
    Send, ToolEnd,
};
use crate::session::wanted::{Effect, ModelKey, deadline};
use crate::tool::Outcome;
use protocol::event::{
    Action, Choice, Delivery, Event, ItemStatus, ItemType, Manifest, ModelRef, Reason, SessionChanged, ToolOutcome,
};
use protocol::{Content, InputId, JobId, Mode, Stop, Unattended, UnattendedPolicy};
use std::collections::BTreeMap;

impl World {
    pub(super) fn send(&mut self) {
        // The actor refuses it.
        if self.draining == Draining::Yes {
            return;
        }
        let known = self.random.chance(15) && self.inputs > 0;
        if !known {
            self.inputs += 1;
        }
        let input_id = InputId(format!("i{}", self.inputs));
        // The actor answers a known input from the log, without deciding.
        if self
            .log
            .iter()
            .any(|event| matches!(event, Event::InputAccepted(accepted) if accepted.input_id == input_id))
        {
            return;
        }
        let deliveries = [Delivery::Auto, Delivery::Steer, Delivery::Queue, Delivery::Interrupt];
        let policies = [UnattendedPolicy::Wait, UnattendedPolicy::Deny, UnattendedPolicy::Fail];
        let send = Send {
            input_id,
            content: vec![Content::text("hello")],
            delivery: *self.random.pick(&deliveries).unwrap(),
            mode: self.random.chance(10).then_some(Mode::None),
            mode_for_ms: None,
            unattended: self.random.pick(&policies).map(|policy| Unattended::new(*policy)),
            tools: None,
            timeout_ms: self.random.chance(20).then_some(3_000),
            interactive: false,
            by: by(),
        };
        self.feed(Input::Send(send), Weather::Storm);
    }

    pub(super) fn model_ends(&mut self, key: ModelKey, weather: Weather) {
        if self.random.chance(20) {
            let error = Reason {
                kind: "server".to_owned(),
                message: "no".to_owned(),
                hint: None,
            };
            let retry = if self.random.chance(70) {
                Retry::After(None)
            } else {
                Retry::Never
            };
            return self.feed(
                Input::ModelFailed(Box::new(Failed {
                    key,
                    error,
                    retry,
                    usage: None,
                })),
                weather,
            );
        }
        let mut pieces = Vec::new();
        if self.random.chance(90) {
            let item = Item {
                item_type: ItemType::Text,
                text: "so".to_owned(),
                status: ItemStatus::Whole,
                private: None,
            };
            pieces.push(Piece::Item { index: 0, item });
        }
        let calls = *self.random.pick(&[0, 0, 1, 2, 3]).unwrap();
        for index in 1..=calls {
            let call = Box::new(self.call());
            pieces.push(Piece::Call { index, call });
        }
        let stop = if calls == 0 && self.random.chance(5) {
            Stop::PauseTurn
        } else {
            Stop::EndTurn
        };
        let (model, manifest) = (ModelRef::default(), Manifest::default());
        let room = Room {
            budget: 100,
            request: self.random.below(120) as u64,
            ..Room::default()
        };
        let replied = Replied {
            key,
            pieces,
            stop,
            model,
            usage: None,
            cost: Some(0.1),
            manifest,
            room,
            remark: None,
        };
        self.feed(Input::ModelReplied(Box::new(replied)), weather);
    }

    pub(super) fn inspected(&mut self) -> Inspected {
        let writes = self.random.chance(50);
        let (tool, inside) = if writes {
            ("write_file", "inside")
        } else {
            ("read_file", "inside")
        };
        let inside = if self.random.chance(40) { "outside" } else { inside };
        let access = if writes { "write" } else { "read" };
        let facts: Facts = serde_json::from_value(serde_json::json!({
            "tool": tool, "writes": writes,
            "paths": [{"shown": "x", "resolved": "/p/x", "inside": inside, "access": access, "secret": false, "protected": false}],
        }))
        .unwrap();
        Inspected {
            facts,
            action: Action::default(),
            digest: "d".to_owned(),
            writes,
        }
    }

    pub(super) fn call(&mut self) -> RequestedCall {
        let inspected = self.inspected();
        RequestedCall {
            tool: inspected.facts.tool.clone(),
            provider_call_id: "p".to_owned(),
            arguments: serde_json::json!({}),
            private: None,
            inspected: if self.random.chance(90) {
                Ok(inspected)
            } else {
                Err("bad arguments".to_owned())
            },
        }
    }

    pub(super) fn effect_ends(&mut self, effect: Option<Effect>, weather: Weather) {
        match effect {
            None => {}
            Some(Effect::Model(key)) => self.model_ends(key, weather),
            Some(Effect::Job(job)) => {
                let end = JobEnd {
                    job,
                    outcome: ToolOutcome::Ok,
                    output: "done".to_owned(),
                    blob: None,
                    exit_code: Some(0),
                    duration_ms: 1,
                };
                self.feed(Input::JobEnded(Box::new(end)), weather);
            }
            Some(Effect::Tool(call)) => {
                let job = self.random.chance(20).then(|| JobId::of(&call));
                let end = ToolEnd {
                    call,
                    outcome: Outcome::Ok,
                    output: "done".to_owned(),
                    images: Vec::new(),
                    blob: None,
                    diff: None,
                    exit_code: None,
                    todo: None,
                    job,
                    duration_ms: 1,
                    files: BTreeMap::new(),
                };
                self.feed(Input::ToolEnded(Box::new(end)), weather);
            }
        }
    }

    pub(super) fn running_one(&mut self) -> Option<Effect> {
        let running: Vec<Effect> = self.running.iter().cloned().collect();
        self.random.pick(&running).cloned()
    }

    pub(super) fn answer(&mut self, weather: Weather) {
        let requests: Vec<_> = self
            .log
            .iter()
            .filter_map(|event| match event {
                Event::ApprovalRequested(request) => Some(request.clone()),
                _ => None,
            })
            .collect();
        let waiting: Vec<_> = requests
            .iter()
            .filter(|request| self.state.pending().any(|(pending, _)| pending.id == request.approval))
            .collect();
        let late = self.random.chance(10) || waiting.is_empty();
        let request = if late {
            self.random.pick(&requests)
        } else {
            self.random.pick(&waiting).copied()
        };
        let Some(request) = request.cloned() else { return };
        let decision = *self
            .random
            .pick(&[Choice::Once, Choice::Session, Choice::Always, Choice::Deny])
            .unwrap();
        let decision = if request.choices.contains(&decision) {
            decision
        } else {
            Choice::Once
        };
        let edited = (decision != Choice::Deny && self.random.chance(25)).then(|| {
            let reach = if self.random.chance(50) {
                Reach::Within
            } else {
                Reach::Beyond
            };
            Box::new(Edited {
                arguments: serde_json::json!({ "edited": true }),
                inspected: self.inspected(),
                reach,
            })
        });
        let answer = Answer {
            approval: request.approval.clone(),
            decision,
            feedback: None,
            request,
            edited,
            by: by(),
        };
        self.feed(Input::Answer(Box::new(answer)), weather);
    }

    pub(super) fn let_time_pass(&mut self, weather: Weather) {
        if let Some((at, _)) = deadline(&self.state) {
            self.now = self.now.max(at.0);
            self.feed(Input::Deadline, weather);
        }
    }

    pub(super) fn change_mode(&mut self) {
        let mode = self
            .random
            .pick(&[Mode::Ask, Mode::All, Mode::None, Mode::Edits])
            .copied();
        let added = self
            .random
            .chance(30)
            .then(|| format!("/added/{}", self.random.below(4)));
        let changed = SessionChanged {
            name: None,
            title: None,
            model: None,
            mode,
            mode_until: None,
            unattended: None,
            archived: None,
            limits: None,
            added_roots: added.into_iter().collect(),
            by: by(),
        };
        let mode_for_ms = self.random.chance(30).then_some(900);
        self.feed(Input::Change(Box::new(Change { changed, mode_for_ms })), Weather::Storm);
    }
}
