//! Commands as they really run: the built `agentd` as guard, real processes, real signals.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use daemon::target::{Target, TargetSpec, command_environment, wait_for_guards};
use daemon::tool::{Confinement, Ended, GuardPlan, Outcome, OutputSink, Place, ReadSet, RunContext, StopLevel, Tool};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

/// The longest any fact is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    dir: tempfile::TempDir,
    place: Place,
    bash: Arc<dyn Tool>,
}

/// A call that runs, its output as it comes.
struct Call {
    task: tokio::task::JoinHandle<Ended>,
    output: mpsc::UnboundedReceiver<String>,
    seen: String,
    stop: watch::Sender<StopLevel>,
}

struct Pieces(mpsc::UnboundedSender<String>);

impl OutputSink for Pieces {
    fn push(&mut self, text: &str) {
        let _ = self.0.send(text.to_string());
    }
}

impl World {
    fn new() -> Self {
        Self::with_variables(&[])
    }

    fn with_variables(extra: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(dir.path().join("state")).unwrap();
        let mut client = BTreeMap::from([("PATH".to_string(), std::env::var("PATH").unwrap())]);
        client.insert("HOME".into(), dir.path().display().to_string());
        client.extend(extra.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        let environment = command_environment(&client, &[], &[]);
        let target = Target::open(TargetSpec {
            roots: vec![root.clone()],
            cwd: root,
            environment,
            hidden: vec![],
            sandbox: Default::default(),
        })
        .unwrap();
        let bash = daemon::tool::all()
            .into_iter()
            .find(|tool| tool.spec().name == "bash")
            .unwrap();
        Self {
            dir,
            place: Place {
                target,
                read: ReadSet::default(),
            },
            bash,
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn guard(&self) -> GuardPlan {
        GuardPlan {
            exe: env!("CARGO_BIN_EXE_agentd").into(),
            state_dir: self.dir.path().join("state"),
        }
    }

    async fn digest(&self, arguments: &Value) -> String {
        self.bash.inspect(arguments, &self.place).await.unwrap().digest
    }

    async fn start(&self, arguments: Value) -> Call {
        let digest = self.digest(&arguments).await;
        self.start_as(arguments, digest)
    }

    fn start_as(&self, arguments: Value, digest: String) -> Call {
        let (sender, output) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(StopLevel::Run);
        let (bash, place, guard) = (Arc::clone(&self.bash), self.place.clone(), self.guard());
        let task = tokio::spawn(async move {
            let run = RunContext {
                place,
                output: Box::new(Pieces(sender)),
                stop: stopped,
                call: "c1".into(),
                guard,
                confinement: Confinement::Session,
            };
            bash.run(&arguments, &digest, run).await
        });
        Call {
            task,
            output,
            seen: String::new(),
            stop,
        }
    }

    async fn run(&self, command: &str) -> Ended {
        // The call is kept whole: a closed stop channel would end the command.
        let mut call = self.start(json!({"command": command})).await;
        (&mut call.task).await.unwrap()
    }

    async fn no_guard_is_left(&self) {
        let state = self.guard().state_dir;
        tokio::task::spawn_blocking(move || wait_for_guards(&state, PATIENCE).unwrap())
            .await
            .unwrap();
    }
}

impl Call {
    /// Waits until the output so far contains `text`.
    async fn says(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let piece = tokio::time::timeout(PATIENCE, self.output.recv()).await.unwrap();
            self.seen
                .push_str(&piece.unwrap_or_else(|| panic!("ended without saying {text:?}: {}", self.seen)));
        }
    }

    async fn ended(&mut self) -> Ended {
        tokio::time::timeout(PATIENCE, &mut self.task).await.unwrap().unwrap()
    }
}

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
        eprintln!("SKIP: not root");
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
    call.says("main=").await;
    call.says(";\n").await;
    let (main, away) = (pid_in(&call.seen, "main"), pid_in(&call.seen, "away"));
    assert!(wait_for_guards(&world.guard().state_dir, Duration::ZERO).is_err());
    call.task.abort();
    gone(main).await;
    gone(away).await;
    world.no_guard_is_left().await;
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
    call.says("gr").await;
    assert_eq!(call.seen, "gr");
    std::fs::write(world.root().join("go"), "").unwrap();
    call.says("\n").await;
    assert_eq!(call.seen, "grün\u{fffd}\n");
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
        (json!({"command": "ls", "wait": true}), "unknown field `wait`"),
        (json!({}), "missing field `command`"),
    ] {
        let error = world.bash.inspect(&arguments, &world.place).await.unwrap_err();
        assert!(error.to_string().contains(said), "{arguments}: {error}");
    }
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
        .args(["--exact", "in_a_hardened_daemon"])
        .env(HARDENED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
