//! The turn machine under random inputs, stale ends and crashes around each commit, held against the list of invariants.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod cases;
mod checks;
mod inputs;
mod world;

use super::drain::Draining;
use super::state::Progress;
use checks::{Checked, every_prefix_wants_what_ran};
use world::World;

/// Seeds of a run; more by `AGENTD_MACHINE_SEEDS`.
const SEEDS: u64 = 1_500;

/// Inputs a seed feeds before it lets everything end.
const INPUTS: usize = 120;

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
            state.turn.is_some() || state.held || state.queue.is_empty() || world.draining == Draining::Yes,
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
