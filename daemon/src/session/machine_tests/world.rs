//! A session without a runtime: inputs are decided, appended and folded, with a crash now and then between any two of these.

use crate::session::decide::budget::Budget;
use crate::session::decide::{Draft, decide};
use crate::session::drain::Draining;
use crate::session::input::{Context, Input};
use crate::session::state::State;
use crate::session::wanted::{Effect, wanted};
use protocol::event::{Event, ItemType, SessionCreated};
use protocol::{By, CallId, InputId, Limits, Seq, SessionId, Settings, Time, TurnId};
use std::collections::{BTreeSet, HashMap};

/// A small generator, so that a failing seed can be named and repeated.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() {
            None
        } else {
            of.get(self.below(of.len()))
        }
    }
}

/// Whether a commit may be struck by a crash.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Weather {
    Storm,
    Calm,
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) log: Vec<Event>,
    pub(super) state: State,
    pub(super) now: i64,
    pub(super) running: BTreeSet<Effect>,
    /// Effects that were cancelled or lost: their ends may still come, and must change nothing.
    pub(super) stale: Vec<Effect>,
    pub(super) started: HashMap<CallId, u32>,
    pub(super) inputs: usize,
    /// Whether the daemon is about to stop.
    pub(super) draining: Draining,
    /// What would answer now; it may be another after a crash.
    pub(super) announce: &'static str,
}

pub(super) fn by() -> By {
    By::Client {
        client: "test".to_owned(),
        kind: "test".to_owned(),
        pid: Some(1),
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
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
            draining: Draining::No,
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
                added_roots: Vec::new(),
                settings,
                name: None,
                by: by(),
            }
            .into(),
        ]);
        world
    }

    pub(super) fn append(&mut self, events: Vec<Event>) {
        for event in events {
            self.log.push(event.clone());
            self.state.apply(self.state.seq.next(), Time(self.now), &event);
        }
    }

    pub(super) fn decide(&mut self, input: Input) -> Vec<Event> {
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
            draining: self.draining,
            shown,
            announce: Some(self.announce.to_owned()),
        };
        let drafts = decide(&self.state, &context, input.clone());
        count.set(self.log.len());
        let again = decide(&self.state, &context, input);
        let kinds = |drafts: &[Draft]| drafts.iter().map(|draft| draft.event.clone()).collect::<Vec<_>>();
        assert_eq!(kinds(&drafts), kinds(&again), "deciding is pure");
        let begins = drafts.iter().any(|draft| matches!(draft.event, Event::TurnStarted(_)));
        assert!(
            !begins || self.draining == Draining::No,
            "a turn begins in a daemon that is about to stop"
        );
        kinds(&drafts)
    }

    /// One input: decide, append, apply, reconcile, with a crash between any two of them.
    pub(super) fn feed(&mut self, input: Input, weather: Weather) {
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

    pub(super) fn reconcile(&mut self) {
        let wanted: BTreeSet<Effect> = wanted(&self.state).into_keys().collect();
        self.stale.extend(self.running.difference(&wanted).cloned());
        for effect in wanted.difference(&self.running) {
            if let Effect::Tool(call) = effect {
                *self.started.entry(call.clone()).or_default() += 1;
            }
        }
        self.running = wanted;
    }

    pub(super) fn crash(&mut self) {
        self.stale.extend(std::mem::take(&mut self.running));
        self.state = fold(&self.log);
        self.draining = Draining::No;
        self.announce = self.random.pick(&["using one", "using one", "using two"]).unwrap();
        let weather = if self.random.chance(50) {
            Weather::Storm
        } else {
            Weather::Calm
        };
        self.feed(Input::Restarted, weather);
    }

    pub(super) fn step(&mut self) {
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
            97..98 => self.draining = Draining::Yes,
            _ => self.crash(),
        }
    }

    /// Lets everything end without further trouble.
    pub(super) fn drain(&mut self) {
        if self.draining == Draining::Yes {
            self.crash();
        }
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

pub(super) fn fold(log: &[Event]) -> State {
    // Times do not matter to what is checked here but to the turn's clock, which a crash may not wind.
    let mut state = State::default();
    for (event, seq) in log.iter().zip(1..) {
        state.apply(Seq(seq), Time(0), event);
    }
    state
}
