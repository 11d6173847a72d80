//! What a command is and what becomes of all it starts, whichever way it ends.

use std::path::Path;
use std::time::Duration;

use daemon::target::wait_for_guards;
use daemon::tool::{Outcome, StopLevel};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use tokio::io::AsyncBufReadExt;

use crate::world::{PATIENCE, World};

/// The pid written as `NAME=PID;`.
fn pid_in(text: &str, name: &str) -> Pid {
    let rest = text
        .split(&format!("{name}="))
        .nth(1)
        .unwrap_or_else(|| panic!("no {name} in {text:?}"));
    Pid::from_raw(rest.split(';').next().unwrap().trim().parse().unwrap()).unwrap()
}

/// Waits, without blocking the runtime, until the process is gone.
async fn gone(pid: Pid) {
    let waited = tokio::task::spawn_blocking(move || {
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            return true;
        };
        let patience = Timespec {
            tv_sec: PATIENCE.as_secs() as i64,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).unwrap() > 0
    });
    assert!(waited.await.unwrap(), "{pid:?} lives on");
}

/// Starts a process that left the session and the process tree and ignores polite signals, and waits until it has written
/// its pid as `away=PID;`.
const ESCAPEE: &str = r#"(setsid bash -c 'trap "" TERM HUP INT; echo "away=$$;"; touch away; sleep 1000; sleep 1000' &)
until [ -e away ]; do :; done; "#;

#[tokio::test]
async fn a_command_gets_exactly_the_sessions_environment() {
    let sent = [
        ("LC_ALL", "C"),
        ("AGENTD_SOCKET", "/s"),
        ("LD_PRELOAD", "x"),
        ("SECRET_KEY", "x"),
    ];
    let ended = World::with_variables(&sent)
        .run("env | cut -d= -f1 | sort | tr '\\n' ' '")
        .await;
    let names = "GIT_EDITOR GIT_PAGER GIT_TERMINAL_PROMPT HOME LC_ALL PAGER PATH PWD SHLVL _ ";
    assert!(ended.output.starts_with(names), "{}", ended.output);
}

#[tokio::test]
async fn a_command_has_no_descriptor_no_input_and_no_terminal_of_the_daemon() {
    let world = World::new();
    // An inheritable descriptor, as one passed by systemd would be.
    let leak = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let ended = world
        .run("echo $(ls /proc/self/fd); cat; readlink /proc/self/fd/0; : < /dev/tty")
        .await;
    drop(leak);
    // The fourth is the directory `ls` itself opened.
    assert!(ended.output.starts_with("0 1 2 3\n/dev/null\n"), "{}", ended.output);
    assert!(
        ended.output.contains("/dev/tty") && ended.exit_code != Some(0),
        "{}",
        ended.output
    );
}

#[tokio::test]
async fn signals_limits_and_oom_score_are_a_commands_own() {
    let ended = World::new()
        .run("grep -E '^Sig(Ign|Blk):' /proc/self/status; ulimit -c; cat /proc/self/oom_score_adj")
        .await;
    let lines: Vec<&str> = ended.output.lines().collect();
    for line in lines.iter().take(2) {
        let set = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(set & 0x7fff_ffff, 0, "{line}");
    }
    assert_eq!(lines.get(2..4), Some(["0", "500"].as_slice()), "{}", ended.output);
}

#[tokio::test]
async fn a_privileged_daemons_command_loses_the_dangerous_capabilities() {
    if !rustix::process::geteuid().is_root() {
        crate::skip::note("not root");
        return;
    }
    let ended = World::new()
        .run("grep -E '^(Cap(Bnd|Eff|Prm|Inh|Amb)|NoNewPrivs):' /proc/self/status")
        .await;
    let dangerous: u64 = [16, 17, 19, 21, 38, 39].iter().map(|bit| 1 << bit).sum();
    let sets: Vec<&str> = ended.output.lines().filter(|line| line.starts_with("Cap")).collect();
    assert_eq!(sets.len(), 5);
    for line in sets {
        let set = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(set & dangerous, 0, "{line}");
    }
    assert!(ended.output.contains("NoNewPrivs:\t1"), "{}", ended.output);
}

#[tokio::test]
async fn nothing_a_command_started_outlives_it() {
    let world = World::new();
    let ended = world.run(&format!("{ESCAPEE} sleep 1000 & echo \"near=$!;\"")).await;
    assert_eq!(ended.outcome, Outcome::Ok, "{}", ended.output);
    gone(pid_in(&ended.output, "away")).await;
    gone(pid_in(&ended.output, "near")).await;
    world.no_guard_is_left().await;
}

#[tokio::test]
async fn a_process_that_keeps_forking_away_is_caught() {
    let world = World::new();
    let mut call = world
        .start(json!({"command": "export HOP='(setsid bash -c \"$HOP\" &)'; eval \"$HOP\"; eval \"$HOP\""}))
        .await;
    assert_eq!(call.ended().await.outcome, Outcome::Ok);
    world.no_guard_is_left().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_everything_with_it() {
    let world = World::new();
    let mut call = world
        .start(json!({"command": format!("{ESCAPEE} trap '' TERM; echo \"main=$$;\"; sleep 1000")}))
        .await;
    let said = call.says("main=").await;
    let (main, away) = (pid_in(&said, "main"), pid_in(&said, "away"));
    assert!(wait_for_guards(&world.guard().state_dir, Duration::ZERO).is_err());
    call.task.abort();
    gone(main).await;
    gone(away).await;
    world.no_guard_is_left().await;
}

#[tokio::test]
async fn a_command_that_kills_its_guard_dies_with_what_it_started() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let world = World::new();
    let command = format!("{ESCAPEE} echo \"main=$$;\"; kill -9 $PPID; sleep 1000; sleep 1000");
    let mut call = world.start(json!({"command": command})).await;
    let ended = call.ended().await;
    assert_eq!(ended.outcome, Outcome::Error);
    assert!(ended.output.contains("guard was killed"), "{}", ended.output);
    gone(pid_in(&ended.output, "main")).await;
    gone(pid_in(&ended.output, "away")).await;
}

#[tokio::test]
async fn a_command_that_stops_its_guard_is_ended_all_the_same() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let world = World::new();
    let command = format!("{ESCAPEE} kill -STOP $PPID; echo \"main=$$;\"; sleep 1000; sleep 1000");
    let mut call = world.start(json!({"command": command})).await;
    let said = call.says("main=").await;
    call.stop.send(StopLevel::Kill).unwrap();
    assert_eq!(call.ended().await.outcome, Outcome::Stopped);
    gone(pid_in(&said, "main")).await;
    gone(pid_in(&said, "away")).await;
}

/// The environment variable that makes [`as_a_daemon_that_is_killed`] do its part; its value is the parent's directory.
const KILLED: &str = "GUARD_TEST_KILLED";

#[tokio::test]
async fn as_a_daemon_that_is_killed() {
    let Some(dir) = std::env::var_os(KILLED) else { return };
    let world = World::in_dir(tempfile::tempdir_in(&dir).unwrap(), &[]);
    std::fs::write(Path::new(&dir).join("state"), world.guard().state_dir.to_str().unwrap()).unwrap();
    let said = Path::new(&dir).join("said");
    let command = format!(
        "( {ESCAPEE} kill -STOP $PPID; echo \"main=$$;\") > {}; sleep 1000",
        said.display()
    );
    world.start(json!({"command": command})).await.task.await.unwrap();
}

#[tokio::test]
async fn when_the_daemon_is_killed_everything_ends_even_below_a_stopped_guard() {
    let dir = tempfile::tempdir().unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("said"), rustix::fs::Mode::RWXU).unwrap();
    let mut daemon = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::as_a_daemon_that_is_killed"])
        .env(KILLED, dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let fifo = tokio::net::unix::pipe::OpenOptions::new()
        .read_write(true)
        .open_receiver(dir.path().join("said"));
    let mut said = String::new();
    let mut lines = tokio::io::BufReader::new(fifo.unwrap()).lines();
    while !said.contains("main=") {
        let line = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .unwrap()
            .unwrap();
        said.push_str(&line.unwrap_or_else(|| panic!("{said}")));
    }
    let state = std::fs::read_to_string(dir.path().join("state")).unwrap();
    assert!(wait_for_guards(Path::new(&state), Duration::ZERO).is_err());
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    tokio::task::spawn_blocking(move || wait_for_guards(Path::new(&state), PATIENCE).unwrap())
        .await
        .unwrap();
    gone(pid_in(&said, "main")).await;
    gone(pid_in(&said, "away")).await;
}

#[test]
fn a_guard_started_by_hand_says_so() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_agentd"))
        .arg("exec-guard")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("started by agentd"));
}

/// The environment variable that makes [`in_a_hardened_daemon`] do its part.
const HARDENED: &str = "GUARD_TEST_HARDENED";

/// Runs in a process of its own: what hardening changes belongs to the whole process.
#[tokio::test]
async fn in_a_hardened_daemon() {
    if std::env::var_os(HARDENED).is_none() {
        return;
    }
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o022));
    let nofile = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    daemon::target::harden_daemon().unwrap();
    assert!(
        std::process::Command::new("/proc/self/exe")
            .arg("--list")
            .output()
            .unwrap()
            .status
            .success()
    );
    let daemon = std::process::id();
    let ended = World::new()
        .run(&format!(
            "umask; ulimit -Sn; cat /proc/{daemon}/environ; cat /proc/{daemon}/maps"
        ))
        .await;
    let soft = nofile
        .current
        .map_or("unlimited".to_string(), |limit| limit.to_string());
    assert!(
        ended.output.starts_with(&format!("0022\n{soft}\ncat: ")),
        "{}",
        ended.output
    );
    assert_eq!(ended.output.matches("Permission denied").count(), 2, "{}", ended.output);
    assert_eq!(
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        nofile.maximum
    );
}

#[test]
fn a_hardened_daemons_memory_is_closed_to_commands_which_get_back_what_it_was_started_with() {
    let own = std::env::current_exe().unwrap();
    let output = std::process::Command::new(own)
        .args(["--exact", "processes::in_a_hardened_daemon"])
        .env(HARDENED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
