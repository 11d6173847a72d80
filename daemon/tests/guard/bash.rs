//! What a call of `bash` answers: output, ends, limits, and what it refuses to run.

use std::time::{Duration, Instant};

use daemon::tool::{Outcome, StopLevel, judged_part};
use serde_json::json;
use tokio::sync::watch;

use crate::world::World;

#[tokio::test]
async fn output_and_error_come_interleaved_with_exit_code_and_duration() {
    let ended = World::new().run("echo one; echo two >&2; echo three; exit 3").await;
    assert_eq!((ended.outcome, ended.exit_code), (Outcome::Error, Some(3)));
    assert!(
        ended.output.starts_with("one\ntwo\nthree\n[exit code 3, "),
        "{}",
        ended.output
    );
    let ended = World::new().run("true").await;
    assert_eq!((ended.outcome, ended.exit_code), (Outcome::Ok, Some(0)));
    assert!(
        ended.output.starts_with("(no output)\n[exit code 0, "),
        "{}",
        ended.output
    );
}

#[tokio::test]
async fn a_signal_is_named() {
    let ended = World::new().run("kill -SEGV $$").await;
    assert_eq!((ended.outcome, ended.exit_code), (Outcome::Error, None));
    assert!(ended.output.contains("killed by SIGSEGV"), "{}", ended.output);
}

#[tokio::test]
async fn a_call_nobody_can_stop_any_more_is_killed() {
    let world = World::new();
    let mut call = world.start(json!({"command": "echo ready; sleep 1000"})).await;
    call.says("ready").await;
    let (stop, _) = watch::channel(StopLevel::Run);
    drop(std::mem::replace(&mut call.stop, stop));
    assert_eq!(call.ended().await.outcome, Outcome::Stopped);
}

#[tokio::test]
async fn a_timeout_keeps_partial_output_and_ends_even_what_ignores_it() {
    let world = World::new();
    let begin = Instant::now();
    let arguments = json!({"command": "trap '' TERM; echo begun; sleep 1000; sleep 1000", "timeout_ms": 300});
    let ended = world.start(arguments).await.ended().await;
    assert_eq!(ended.outcome, Outcome::TimedOut);
    assert!(ended.output.starts_with("begun\n[timed out after "), "{}", ended.output);
    assert!(begin.elapsed() >= Duration::from_millis(2300) && ended.duration_ms >= 2300);
}

#[tokio::test]
async fn stopping_is_polite_first_and_killing_is_not() {
    let world = World::new();
    let polite = "trap 'echo cleaning up; exit 7' TERM; echo ready; sleep 1000 & wait";
    let mut call = world.start(json!({"command": polite})).await;
    call.says("ready").await;
    call.stop.send(StopLevel::Stop).unwrap();
    let ended = call.ended().await;
    assert_eq!((ended.outcome, ended.exit_code), (Outcome::Stopped, Some(7)));
    assert!(ended.output.contains("cleaning up"), "{}", ended.output);

    let mut call = world
        .start(json!({"command": "trap '' TERM; echo ready; sleep 1000; sleep 1000"}))
        .await;
    call.says("ready").await;
    call.stop.send(StopLevel::Stop).unwrap();
    call.stop.send(StopLevel::Kill).unwrap();
    let ended = call.ended().await;
    assert_eq!((ended.outcome, ended.exit_code), (Outcome::Stopped, None));
    assert!(ended.output.contains("killed by SIGKILL"), "{}", ended.output);
}

#[tokio::test]
async fn a_huge_output_is_cut_and_both_ends_are_kept() {
    let ended = World::new()
        .run("echo first; yes 0123456789abcdef | head -c 50000000; echo; echo last")
        .await;
    assert!(ended.output.starts_with("first\n"));
    assert!(
        ended.output.contains("last\n[exit code 0") && ended.output.len() < 31_000,
        "{}",
        ended.output.len()
    );
    let whole = ended.whole.unwrap();
    assert!(whole.len() < 1_100_000 && whole.ends_with(b"last\n"));
    assert!(ended.cut_bytes > 48_000_000);
}

#[tokio::test]
async fn output_is_streamed_while_the_command_runs_and_characters_are_whole() {
    let world = World::new();
    let mut call = world
        .start(json!({"command": "printf 'gr\\303'; until [ -e go ]; do :; done; printf '\\274n\\377\\n'; sleep 1000"}))
        .await;
    assert_eq!(call.says("gr").await, "gr");
    std::fs::write(world.root().join("go"), "").unwrap();
    assert_eq!(call.says("\n").await, "grün\u{fffd}\n");
    call.stop.send(StopLevel::Kill).unwrap();
    call.ended().await;
}

#[tokio::test]
async fn a_script_rewritten_after_approval_is_not_run() {
    let world = World::new();
    std::fs::write(world.root().join("x.sh"), "echo harmless").unwrap();
    let arguments = json!({"command": "bash ./x.sh"});
    let digest = world.digest(&arguments).await;
    std::fs::write(world.root().join("x.sh"), "echo evil > evil").unwrap();
    let ended = world.start_as(arguments, digest).ended().await;
    assert_eq!(ended.outcome, Outcome::NotRun);
    assert!(ended.output.starts_with("changed_since_approved"), "{}", ended.output);
    assert!(!world.root().join("evil").exists());
}

#[tokio::test]
async fn a_call_nobody_was_shown_runs_the_script_an_earlier_call_wrote() {
    let world = World::new();
    let arguments = json!({"command": "bash ./x.sh"});
    let digest = world.digest(&arguments).await;
    std::fs::write(world.root().join("x.sh"), "echo written").unwrap();
    let ended = world
        .start_as(arguments, judged_part(&digest).to_string())
        .ended()
        .await;
    assert!(ended.output.starts_with("written\n"), "{}", ended.output);
}

#[tokio::test]
async fn an_environment_changed_after_approval_is_noticed_but_for_what_only_approval_adds() {
    let mut world = World::with_variables(&[("SSH_AUTH_SOCK", "/agent"), ("LC_ALL", "C")]);
    let arguments = json!({"command": "echo ${SSH_AUTH_SOCK-none}"});
    let digest = world.digest(&arguments).await;
    let mut environment = world.place.target.environment().clone();
    environment.remove("SSH_AUTH_SOCK");
    world.place.target = world.place.target.with_environment(environment.clone()).unwrap();
    let ended = world.start_as(arguments.clone(), digest.clone()).ended().await;
    assert!(ended.output.starts_with("none\n"), "{}", ended.output);
    environment.insert("PATH".into(), "/elsewhere".into());
    world.place.target = world.place.target.with_environment(environment).unwrap();
    assert_eq!(world.start_as(arguments, digest).ended().await.outcome, Outcome::NotRun);
}

#[tokio::test]
async fn a_directory_swapped_after_approval_is_not_worked_in() {
    let world = World::new();
    std::fs::create_dir(world.root().join("sub")).unwrap();
    let arguments = json!({"command": "touch here", "cwd": "sub"});
    let digest = world.digest(&arguments).await;
    std::fs::rename(world.root().join("sub"), world.root().join("old")).unwrap();
    std::fs::create_dir(world.root().join("sub")).unwrap();
    let ended = world.start_as(arguments, digest).ended().await;
    assert_eq!(ended.outcome, Outcome::NotRun, "{}", ended.output);
    assert!(!world.root().join("sub/here").exists());
}

#[tokio::test]
async fn wrong_arguments_are_answered_with_their_path() {
    let world = World::new();
    for (arguments, said) in [
        (
            json!({"command": "ls", "timeout_ms": "soon"}),
            "`timeout_ms`: expected integer",
        ),
        (
            json!({"command": "ls", "timeout_ms": 600_001}),
            "`timeout_ms`: must be from 1 to 600000",
        ),
        (json!({"command": "  "}), "`command`: is empty"),
        (
            json!({"command": "ls", "cwd": "absent"}),
            "`cwd`: absent: no such file or directory",
        ),
        (json!({"command": "ls", "waits": true}), "unknown field `waits`"),
        (json!({}), "missing field `command`"),
    ] {
        let error = world.bash.inspect(&arguments, &world.place).await.unwrap_err();
        assert!(error.to_string().contains(said), "{arguments}: {error}");
    }
}

#[tokio::test]
async fn twenty_small_commands_cost_little() {
    let world = World::new();
    let mut times = Vec::new();
    for _ in 0..20 {
        let begin = Instant::now();
        world.run("true").await;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let median = times[10];
    eprintln!("20 calls of `true`: median {median:?}");
    // Generous, because other tests run beside it; a guard that initialises a daemon first would take far longer.
    assert!(median < Duration::from_millis(200), "{times:?}");
}
