//! Commands as they really run: the built `agentd` as guard, real processes, real signals.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod bash;
mod processes;
#[path = "../../../tests/src/skip.rs"]
#[expect(unreachable_pub, reason = "it is a module of the tests crate")]
mod skip;
mod world;
