//! Single cases of the turn machine, each led up to by hand.

use super::INPUTS;
use super::world::{Weather, World, by, fold};
use crate::session::decide::unchanged;
use crate::session::drain::Draining;
use crate::session::input::{Change, Input, Inspected, Piece, Replied, RequestedCall, Room, Send};
use crate::session::wanted::Effect;
use protocol::event::{
    Action, Delivery, Event, Manifest, ModelRef, Resolution, SessionChanged, ToolOutcome, TurnOutcome,
};
use protocol::{Content, InputId, Mode, Stop};

#[test]
fn a_lost_call_is_told_to_the_model_and_never_started_again() {
    let mut world = World::new(7);
    let send = Send {
        mode: Some(Mode::All),
        ..sent("i", Delivery::Auto)
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

fn sent(input_id: &str, delivery: Delivery) -> Send {
    Send {
        input_id: InputId(input_id.to_owned()),
        content: vec![Content::text("go")],
        delivery,
        mode: None,
        mode_for_ms: None,
        unattended: None,
        tools: None,
        timeout_ms: None,
        interactive: false,
        by: by(),
    }
}

#[test]
fn a_mode_for_a_time_ends_by_the_clock_of_the_session() {
    let mut world = World::new(3);
    // The session's clock is far from the machine's, as after a night or a correction of the time.
    let changed = SessionChanged {
        mode: Some(Mode::All),
        ..unchanged(by())
    };
    let change = Change {
        changed,
        mode_for_ms: Some(60_000),
    };
    world.feed(Input::Change(Box::new(change)), Weather::Calm);
    let decided_at = world.state.at;
    assert_eq!(world.state.settings.mode_until, Some(decided_at.plus_ms(60_000)));
    assert_eq!(world.state.mode_at(decided_at.plus_ms(59_999)), Mode::All);
    assert_eq!(world.state.mode_at(decided_at.plus_ms(60_000)), Mode::Ask);
}

#[test]
fn a_call_that_has_not_begun_when_its_mode_ends_is_asked_about_then() {
    let mut world = World::new(3);
    let mode = |mode, mode_for_ms| {
        let changed = SessionChanged {
            mode: Some(mode),
            ..unchanged(by())
        };
        Input::Change(Box::new(Change { changed, mode_for_ms }))
    };
    world.feed(mode(Mode::All, Some(60_000)), Weather::Calm);
    world.feed(Input::Send(sent("i", Delivery::Auto)), Weather::Calm);
    let Some(Effect::Model(key)) = world.running_one() else {
        panic!("no model call")
    };
    let call = |world: &mut World| {
        Box::new(RequestedCall {
            inspected: Ok(writing()),
            ..world.call()
        })
    };
    let pieces = (0..3).map(|index| Piece::Call {
        index,
        call: call(&mut world),
    });
    let replied = Replied {
        key,
        pieces: pieces.collect(),
        stop: Stop::ToolUse,
        model: ModelRef::default(),
        usage: None,
        cost: None,
        manifest: Manifest::default(),
        room: Room::default(),
        remark: None,
    };
    world.feed(Input::ModelReplied(Box::new(replied)), Weather::Calm);
    let first = world.running_one();
    assert!(matches!(first, Some(Effect::Tool(_))), "the first begins in its mode");
    world.now += 60_000;
    world.effect_ends(first, Weather::Calm);
    assert_eq!(world.running_one(), None, "the second waits for an answer");
    let asked = |world: &World| {
        world
            .state
            .pending()
            .filter_map(|(_, call)| call.cloned())
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(&world).len(), 1);
    let Some(Event::ApprovalRequested(request)) = world.log.last().cloned() else {
        panic!("no question")
    };
    assert_eq!((request.digest.as_str(), request.firm), ("d", false));
    world.answer(Weather::Calm);
    if let second @ Some(Effect::Tool(_)) = world.running_one() {
        world.effect_ends(second, Weather::Calm);
    }
    assert_eq!(asked(&world).len(), 1, "so does the third");
    world.feed(mode(Mode::All, None), Weather::Calm);
    assert!(
        matches!(world.running_one(), Some(Effect::Tool(_))),
        "a mode answers it"
    );
}

#[test]
fn a_daemon_that_is_about_to_stop_starts_nothing_that_waits_and_the_next_one_does() {
    let mut world = World::new(5);
    world.feed(Input::Send(sent("first", Delivery::Auto)), Weather::Calm);
    world.feed(Input::Send(sent("second", Delivery::Queue)), Weather::Calm);
    world.draining = Draining::Yes;
    let interrupt = Input::Interrupt { turn: None, by: by() };
    world.feed(interrupt, Weather::Calm);
    world.feed(Input::ResumeQueue { by: by() }, Weather::Calm);
    assert!(world.state.turn.is_none() && !world.state.held && world.state.queue.len() == 1);
    let said_next = world.log.iter().any(|event| match event {
        Event::TurnCompleted(completed) => completed.next.is_some(),
        _ => false,
    });
    assert!(!said_next, "no turn's end says that another begins");

    world.draining = Draining::No;
    world.feed(Input::Restarted, Weather::Calm);
    assert!(world.state.turn.is_some() && world.state.queue.is_empty());
}

#[test]
fn whoever_sends_again_after_an_interrupt_lets_what_waited_go_on_in_order() {
    let delivered = |delivery: Delivery| {
        let mut world = World::new(9);
        world.feed(Input::Send(sent("first", Delivery::Auto)), Weather::Calm);
        world.feed(Input::Send(sent("waits", Delivery::Queue)), Weather::Calm);
        world.feed(Input::Interrupt { turn: None, by: by() }, Weather::Calm);
        assert!(
            world.state.held && world.state.turn.is_none(),
            "an interrupt holds what waits"
        );
        world.feed(Input::Send(sent("another", delivery)), Weather::Calm);
        assert!(
            !world.state.held && world.state.turn.is_some(),
            "somebody goes on with the session"
        );
        world.drain();
        let delivered = world.log.iter().filter_map(|event| match event {
            Event::InputDelivered(delivered) => Some(delivered.input_id.0.clone()),
            _ => None,
        });
        delivered.collect::<Vec<_>>()
    };
    assert_eq!(delivered(Delivery::Queue), ["first", "waits", "another"]);
    assert_eq!(delivered(Delivery::Auto), ["first", "another", "waits"]);
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
