//! The turn machine under random inputs, stale ends and crashes around each commit, held against the list of invariants. Nothing here
//! knows how the machine decides: the checks read the log alone.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::decide::budget::Budget;
use super::decide::decide;
use super::input::{
    Answer, Context, Edited, Failed, Input, Inspected, Item, JobEnd, Piece, Reach, Replied, RequestedCall, Retry, Room,
    Send, ToolEnd,
};
use super::state::{Progress, State};
use super::wanted::{Effect, ModelKey, deadline, wanted};
use crate::policy::Facts;
use crate::tool::Outcome;
use protocol::event::{
    Action, Choice, Decision, Delivery, Event, InputOutcome, ItemStatus, ItemType, Manifest, ModelRef, Reason,
    Resolution, SessionChanged, SessionCreated, ToolOutcome, TurnOutcome,
};
use protocol::{
    By, CallId, Content, InputId, JobId, Limits, Mode, Seq, SessionId, Settings, Stop, Time, TurnId, Unattended,
    UnattendedPolicy,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Seeds of a run; more by `AGENTD_MACHINE_SEEDS`.
const SEEDS: u64 = 1_500;

/// Inputs a seed feeds before it lets everything end.
const INPUTS: usize = 120;

/// A small generator, so that a failing seed can be named and repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() {
            None
        } else {
            of.get(self.below(of.len()))
        }
    }
}

/// Whether a commit may be struck by a crash.
#[derive(Clone, Copy, PartialEq)]
enum Weather {
    Storm,
    Calm,
}

struct World {
    random: Random,
    log: Vec<Event>,
    state: State,
    now: i64,
    running: BTreeSet<Effect>,
    /// Effects that were cancelled or lost: their ends may still come, and must change nothing.
    stale: Vec<Effect>,
    started: HashMap<CallId, u32>,
    inputs: usize,
    /// What would answer now; it may be another after a crash.
    announce: &'static str,
}

fn by() -> By {
    By::Client {
        client: "test".to_owned(),
        kind: "test".to_owned(),
        pid: Some(1),
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut world = Self {
            random,
            log: Vec::new(),
            state: State::default(),
            now: 1_000,
            running: BTreeSet::new(),
            stale: Vec::new(),
            started: HashMap::new(),
            inputs: 0,
            announce: "using one",
        };
        let settings = Settings {
            limits: Limits { max_steps: 5 },
            ..Settings::default()
        };
        let (cwd, root) = ("/p".to_owned(), "/p".to_owned());
        world.append(vec![
            SessionCreated {
                session: SessionId("s".into()),
                cwd,
                root,
                settings,
                name: None,
                by: by(),
            }
            .into(),
        ]);
        world
    }

    fn append(&mut self, events: Vec<Event>) {
        for event in events {
            self.log.push(event.clone());
            self.state.apply(self.state.seq.next(), Time(self.now), &event);
        }
    }

    fn decide(&mut self, input: Input) -> Vec<Event> {
        self.now += i64::try_from(self.random.below(400)).unwrap();
        let at = Time(self.now).max(self.state.at);
        let count = std::cell::Cell::new(self.log.len());
        let shown = vec![(0, ItemType::Text, "so far".to_owned())];
        let new_id = || {
            count.set(count.get() + 1);
            format!("a{}", count.get())
        };
        let context = Context {
            at,
            new_id: &new_id,
            jitter: 0.5,
            retries: 2,
            rules: &[],
            builtin_allow: true,
            project_notice: None,
            config_fault: None,
            budget: Budget {
                per_session: Some(1.0),
                ..Budget::default()
            },
            shown,
            announce: Some(self.announce.to_owned()),
        };
        let drafts = decide(&self.state, &context, input.clone());
        count.set(self.log.len());
        let again = decide(&self.state, &context, input);
        let kinds =
            |drafts: &[super::decide::Draft]| drafts.iter().map(|draft| draft.event.clone()).collect::<Vec<_>>();
        assert_eq!(kinds(&drafts), kinds(&again), "deciding is pure");
        kinds(&drafts)
    }

    /// One input: decide, append, apply, reconcile, with a crash between any two of them.
    fn feed(&mut self, input: Input, weather: Weather) {
        let events = self.decide(input);
        if weather == Weather::Storm && self.random.chance(3) {
            return self.crash();
        }
        self.append(events);
        if weather == Weather::Storm && self.random.chance(3) {
            return self.crash();
        }
        self.reconcile();
    }

    fn reconcile(&mut self) {
        let wanted: BTreeSet<Effect> = wanted(&self.state).into_keys().collect();
        self.stale.extend(self.running.difference(&wanted).cloned());
        for effect in wanted.difference(&self.running) {
            if let Effect::Tool(call) = effect {
                *self.started.entry(call.clone()).or_default() += 1;
            }
        }
        self.running = wanted;
    }

    fn crash(&mut self) {
        self.stale.extend(std::mem::take(&mut self.running));
        self.state = fold(&self.log);
        self.announce = self.random.pick(&["using one", "using one", "using two"]).unwrap();
        let weather = if self.random.chance(50) {
            Weather::Storm
        } else {
            Weather::Calm
        };
        self.feed(Input::Restarted, weather);
    }

    fn send(&mut self) {
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

    fn model_ends(&mut self, key: ModelKey, weather: Weather) {
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

    fn inspected(&mut self) -> Inspected {
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

    fn call(&mut self) -> RequestedCall {
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

    fn effect_ends(&mut self, effect: Option<Effect>, weather: Weather) {
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

    fn running_one(&mut self) -> Option<Effect> {
        let running: Vec<Effect> = self.running.iter().cloned().collect();
        self.random.pick(&running).cloned()
    }

    fn answer(&mut self, weather: Weather) {
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

    fn let_time_pass(&mut self, weather: Weather) {
        if let Some((at, _)) = deadline(&self.state) {
            self.now = self.now.max(at.0);
            self.feed(Input::Deadline, weather);
        }
    }

    fn change_mode(&mut self) {
        let mode = self
            .random
            .pick(&[Mode::Ask, Mode::All, Mode::None, Mode::Edits])
            .copied();
        let changed = SessionChanged {
            name: None,
            title: None,
            model: None,
            mode,
            mode_until: self.random.chance(30).then(|| Time(self.now + 900)),
            unattended: None,
            archived: None,
            limits: None,
            by: by(),
        };
        self.feed(Input::Change(Box::new(changed)), Weather::Storm);
    }

    fn step(&mut self) {
        let storm = Weather::Storm;
        match self.random.below(100) {
            0..16 => self.send(),
            16..50 => {
                let effect = self.running_one();
                self.effect_ends(effect, storm);
            }
            50..66 => {
                let effect = self
                    .running
                    .iter()
                    .find(|effect| matches!(effect, Effect::Tool(_)))
                    .cloned();
                self.effect_ends(effect, storm);
            }
            66..78 => self.answer(storm),
            78..82 => {
                let turn = self.random.chance(30).then(|| TurnId("t1".to_owned()));
                self.feed(Input::Interrupt { turn, by: by() }, storm);
            }
            82..88 => self.let_time_pass(storm),
            88..90 => {
                let input_id = InputId(format!("i{}", self.random.below(self.inputs + 1)));
                self.feed(Input::Cancel { input_id, by: by() }, storm);
            }
            90..92 => {
                let effect = self.random.pick(&self.stale.clone()).cloned();
                self.effect_ends(effect, storm);
            }
            92..93 => self.feed(Input::ResumeQueue { by: by() }, storm),
            93..95 => self.feed(Input::Unattended, storm),
            95..97 => self.change_mode(),
            _ => self.crash(),
        }
    }

    /// Lets everything end without further trouble.
    fn drain(&mut self) {
        for _ in 0..4_000 {
            if self.state.turn.is_none() && self.state.queue.is_empty() && self.state.jobs.is_empty() {
                return;
            }
            let calm = Weather::Calm;
            if self.state.held {
                self.feed(Input::ResumeQueue { by: by() }, calm);
            }
            let effect = self.running_one();
            self.effect_ends(effect, calm);
            self.answer(calm);
            self.let_time_pass(calm);
        }
    }
}

fn fold(log: &[Event]) -> State {
    // Times do not matter to what is checked here but to the turn's clock, which a crash may not wind.
    let mut state = State::default();
    for (event, seq) in log.iter().zip(1..) {
        state.apply(Seq(seq), Time(0), event);
    }
    state
}

/// What the log must hold at every moment.
#[derive(Default)]
struct Checked {
    turn: Option<TurnId>,
    turns: BTreeMap<TurnId, u32>,
    inputs: BTreeMap<InputId, u32>,
    calls: BTreeMap<CallId, Seen>,
    approvals: BTreeMap<String, (bool, bool)>,
    /// How often each job that was begun has ended.
    jobs: BTreeMap<JobId, u32>,
    urgent: Vec<InputId>,
    first_delivery: bool,
    /// A changed call whose next question must follow.
    asks_anew: Option<CallId>,
}

#[derive(Default)]
struct Seen {
    asks: bool,
    allowed: bool,
    started: u32,
    completed: u32,
}

impl Checked {
    fn all(log: &[Event]) -> Self {
        let mut checked = Self::default();
        for (event, seq) in log.iter().zip(1..) {
            checked.take(event, Seq(seq));
        }
        assert_eq!(checked.asks_anew, None, "a changed call was never asked about anew");
        checked
    }

    fn calls_closed(&self) -> bool {
        self.calls.values().all(|call| call.completed == 1)
    }

    fn take(&mut self, event: &Event, seq: Seq) {
        match event {
            Event::TurnStarted(started) => {
                assert_eq!(self.turn, None, "two turns at once");
                assert_eq!(started.turn, TurnId::at(seq), "a turn is numbered by its event");
                self.turn = Some(started.turn.clone());
                self.turns.insert(started.turn.clone(), 0);
                self.first_delivery = true;
            }
            Event::TurnCompleted(completed) => {
                assert_eq!(
                    self.turn.as_ref(),
                    Some(&completed.turn),
                    "the end of a turn that does not run"
                );
                *self.turns.get_mut(&completed.turn).unwrap() += 1;
                assert!(self.calls_closed(), "a turn ended with an open call");
                let waits: Vec<_> = self.approvals.values().filter(|(_, resolved)| !resolved).collect();
                assert!(waits.is_empty(), "a turn ended with an approval that waits");
                self.turn = None;
            }
            Event::InputAccepted(accepted) => {
                assert_eq!(
                    self.inputs.insert(accepted.input_id.clone(), 0),
                    None,
                    "an input accepted twice"
                );
                if accepted.urgent {
                    self.urgent.insert(0, accepted.input_id.clone());
                }
            }
            Event::InputDelivered(delivered) => {
                if std::mem::take(&mut self.first_delivery)
                    && let Some(urgent) = self.urgent.first()
                {
                    assert_eq!(*urgent, delivered.input_id, "an urgent input did not come next");
                }
                self.urgent.retain(|id| *id != delivered.input_id);
                assert_eq!(Some(&delivered.turn), self.turn.as_ref(), "delivered to another turn");
                assert!(self.calls_closed(), "an input delivered between a call and its result");
            }
            Event::InputSettled(settled) => {
                self.urgent.retain(|id| *id != settled.input_id);
                let count = self.inputs.get_mut(&settled.input_id).unwrap();
                *count += 1;
                assert_eq!(*count, 1, "an input settled twice");
                assert_eq!(settled.turn.is_none(), settled.outcome == InputOutcome::Cancelled);
            }
            Event::StepStarted(started) => {
                assert_eq!(Some(&started.turn), self.turn.as_ref(), "a step outside its turn");
                assert!(self.calls_closed(), "a model call with an open tool call");
            }
            Event::ToolRequested(requested) => {
                assert_eq!(requested.call, CallId::at(seq));
                let asks = requested.verdict.decision == Decision::Ask;
                let allowed = requested.verdict.decision == Decision::Allow && requested.argument_error.is_none();
                self.calls.insert(
                    requested.call.clone(),
                    Seen {
                        asks,
                        allowed,
                        ..Seen::default()
                    },
                );
            }
            Event::ApprovalRequested(request) => {
                if let Some(anew) = self.asks_anew.take() {
                    assert_eq!(request.call, Some(anew), "a changed call is asked about anew at once");
                }
                if let Some(call) = &request.call {
                    assert!(
                        self.calls.get(call).unwrap().asks,
                        "asked for a call whose verdict was not to ask"
                    );
                }
                let twice = self
                    .approvals
                    .insert(request.approval.0.clone(), (request.call.is_some(), false));
                assert_eq!(twice, None, "asked twice");
            }
            Event::ApprovalResolved(resolved) => {
                let (_, settled) = self.approvals.get_mut(&resolved.approval.0).unwrap();
                assert!(!*settled, "settled twice");
                *settled = true;
                if let (Some(call), true) = (&resolved.call, resolved.decision.allows()) {
                    self.calls.get_mut(call).unwrap().allowed = true;
                }
                assert!(resolved.call.is_some() || resolved.grant.is_none());
                if resolved.decision == Resolution::Edited {
                    assert!(resolved.call.is_some() && resolved.arguments.is_some() && resolved.grant.is_none());
                    self.asks_anew.clone_from(&resolved.call);
                }
            }
            Event::ToolStarted(started) => {
                let call = self.calls.get_mut(&started.call).unwrap();
                assert!(call.allowed, "a tool ran without an allowing verdict");
                call.started += 1;
                assert_eq!(
                    (call.started, call.completed),
                    (1, 0),
                    "a tool started twice, or after its result"
                );
            }
            Event::ToolCompleted(completed) => {
                let call = self.calls.get_mut(&completed.call).unwrap();
                call.completed += 1;
                assert_eq!(call.completed, 1, "a call with two results");
                let unstarted = [ToolOutcome::Denied, ToolOutcome::NotRun, ToolOutcome::Error];
                assert!(
                    call.started == 1 || unstarted.contains(&completed.outcome),
                    "a result of a call that never began"
                );
                if let Some(job) = &completed.job {
                    assert_eq!(self.jobs.insert(job.clone(), 0), None, "a job begun twice");
                }
            }
            Event::JobEnded(ended) => {
                let ends = self.jobs.get_mut(&ended.job).unwrap();
                *ends += 1;
                assert_eq!(*ends, 1, "a job ended twice");
            }
            _ => {}
        }
    }
}

fn run(seed: u64) -> usize {
    let mut world = World::new(seed);
    for _ in 0..INPUTS {
        world.step();
        let state = &world.state;
        let refused = state
            .turn
            .iter()
            .flat_map(|turn| &turn.calls)
            .any(|call| call.progress == Progress::Refused);
        assert!(!refused, "a refused call outlived its decision");
        assert!(
            state.turn.is_some() || state.held || state.queue.is_empty(),
            "an input waits in an idle session"
        );
        assert!(
            state.turn.is_some() || state.steers.is_empty(),
            "a steer waits in an idle session"
        );
        Checked::all(&world.log);
    }
    world.drain();
    let checked = Checked::all(&world.log);
    assert_eq!(checked.turn, None, "a turn without an end");
    assert!(
        checked.turns.values().all(|ends| *ends == 1),
        "a turn without its one end"
    );
    assert!(
        checked.jobs.values().all(|ends| *ends == 1),
        "a job without its one end"
    );
    assert!(
        checked.inputs.values().all(|ends| *ends == 1),
        "an input without its one end"
    );
    assert!(
        checked.approvals.values().all(|(_, resolved)| *resolved),
        "an approval without an answer"
    );
    assert!(world.started.values().all(|times| *times == 1), "a tool ran twice");
    every_prefix_wants_what_ran(&world.log);
    world.log.len()
}

/// At every prefix of a log the fold wants exactly what its events say is under way.
fn every_prefix_wants_what_ran(log: &[Event]) {
    let mut state = State::default();
    let mut running = BTreeSet::new();
    for (event, seq) in log.iter().zip(1..) {
        state.apply(Seq(seq), Time(0), event);
        match event {
            Event::StepStarted(started) => {
                running.retain(|effect| matches!(effect, Effect::Job(_)));
                running.insert(Effect::Model(ModelKey {
                    turn: started.turn.clone(),
                    step: started.step,
                    attempt: started.attempt,
                    seq: Seq(seq),
                }));
            }
            Event::StepCompleted(_) | Event::TurnCompleted(_) => {
                running.retain(|effect| !matches!(effect, Effect::Model(_)))
            }
            Event::StepFailed(_) => running.retain(|effect| matches!(effect, Effect::Job(_))),
            Event::ToolStarted(started) => {
                running.insert(Effect::Tool(started.call.clone()));
            }
            Event::ToolCompleted(completed) => {
                running.remove(&Effect::Tool(completed.call.clone()));
                running.extend(completed.job.clone().map(Effect::Job));
            }
            Event::JobEnded(ended) => {
                running.remove(&Effect::Job(ended.job.clone()));
            }
            _ => {}
        }
        // An input is settled while the turn's end is being written; a reply that was cut still counts as running until then.
        if !matches!(event, Event::InputSettled(_)) {
            let wants: BTreeSet<Effect> = wanted(&state).into_keys().collect();
            assert_eq!(wants, running, "at event {seq}, {}", event.kind());
        }
    }
}

#[test]
fn random_inputs_and_crashes_break_no_invariant() {
    let seeds = std::env::var("AGENTD_MACHINE_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(SEEDS);
    let mut events = 0;
    for seed in 1..=seeds {
        let result = std::panic::catch_unwind(|| run(seed));
        events += result.unwrap_or_else(|_| panic!("seed {seed} breaks an invariant"));
    }
    assert!(
        events > 50 * usize::try_from(seeds).unwrap(),
        "the inputs led to almost nothing: {events} events"
    );
}

#[test]
fn a_lost_call_is_told_to_the_model_and_never_started_again() {
    let mut world = World::new(7);
    let send = Send {
        input_id: InputId("i".to_owned()),
        content: vec![Content::text("go")],
        delivery: Delivery::Auto,
        mode: Some(Mode::All),
        mode_for_ms: None,
        unattended: None,
        tools: None,
        timeout_ms: None,
        interactive: false,
        by: by(),
    };
    world.feed(Input::Send(send), Weather::Calm);
    let Some(Effect::Model(key)) = world.running_one() else {
        panic!("no model call")
    };
    let call = RequestedCall {
        inspected: Ok(writing()),
        ..world.call()
    };
    let pieces = vec![Piece::Call {
        index: 0,
        call: Box::new(call),
    }];
    let (model, manifest) = (ModelRef::default(), Manifest::default());
    let replied = Replied {
        key,
        pieces,
        stop: Stop::ToolUse,
        model,
        usage: None,
        cost: None,
        manifest,
        room: Room::default(),
        remark: None,
    };
    world.feed(Input::ModelReplied(Box::new(replied)), Weather::Calm);
    assert!(matches!(world.running_one(), Some(Effect::Tool(_))));

    world.running.clear();
    world.state = fold(&world.log);
    world.feed(Input::Restarted, Weather::Calm);

    let lost = world
        .log
        .iter()
        .filter(|event| matches!(event, Event::ToolCompleted(end) if end.outcome == ToolOutcome::Lost));
    assert_eq!(lost.count(), 1);
    assert!(
        matches!(world.running_one(), Some(Effect::Model(_))),
        "the next step follows"
    );
    assert!(world.started.values().all(|times| *times == 1));
}

fn writing() -> Inspected {
    let facts = serde_json::from_value(serde_json::json!({ "tool": "write_file", "writes": true })).unwrap();
    Inspected {
        facts,
        action: Action::default(),
        digest: "d".to_owned(),
        writes: true,
    }
}

#[test]
fn a_denial_for_lack_of_people_is_listed_at_the_end_of_the_turn() {
    for seed in 1..200 {
        let mut world = World::new(seed);
        for _ in 0..INPUTS {
            world.step();
        }
        world.drain();
        let mut expired = Vec::new();
        for event in &world.log {
            match event {
                Event::TurnStarted(_) => expired.clear(),
                Event::ApprovalResolved(resolved) if resolved.decision == Resolution::Expired => {
                    expired.extend(resolved.call.clone());
                }
                Event::TurnCompleted(completed) => {
                    let denied: Vec<_> = completed.denied.iter().map(|denied| denied.call.clone()).collect();
                    assert!(expired.iter().all(|call| denied.contains(call)), "seed {seed}");
                    assert!(completed.outcome != TurnOutcome::Completed || completed.reason.is_none());
                }
                _ => {}
            }
        }
    }
}
