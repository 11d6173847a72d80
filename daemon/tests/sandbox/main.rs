//! Sandboxes as they really are: the built `agentd` as guard, real commands, each form the machine can make.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod refusals;
mod repositories;
#[path = "../../../tests/src/skip.rs"]
#[expect(unreachable_pub, reason = "it is a module of the tests crate")]
mod skip;
mod world;

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use daemon::target::sandbox::{Caches, Form, Mode, Network, NewRepositories, Notices, Pids, Settings, Support, probe};
use daemon::target::{Target, TargetSpec, command_environment};
use daemon::tool::{Confinement, Ended, GuardPlan, Outcome, OutputSink, Place, ReadSet, RunContext, StopLevel, Tool};
use serde_json::json;
use tokio::sync::watch;
use world::{FORMS, Nowhere, OWN, REDUCED, SHARED, World};

#[tokio::test]
async fn a_workspace_can_be_written_and_nothing_around_it() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    world
        .works("echo x > new.txt && mkdir -p a/b && mv new.txt a/b/ && rm -r a")
        .await;
    world
        .works("echo x > /tmp/sandbox-test.$$ && rm /tmp/sandbox-test.$$ && echo x > /dev/null")
        .await;
    world.works("echo x > ~/.cache/x && echo x > ~/.cargo/registry/x").await;
    for path in [
        "~/x",
        "~/.cargo/config.toml",
        "/etc/sandbox-test",
        "/usr/bin/sandbox-test",
        "../x",
        "/proc/sys/kernel/core_pattern",
    ] {
        world.fails(&format!("echo x > {path}")).await;
    }
    assert!(!world.path("x").exists() && !world.path("home/x").exists());
}

#[tokio::test]
async fn keys_and_the_daemons_own_files_cannot_be_read() {
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        let _socket = UnixListener::bind(world.path("daemon.sock")).unwrap();
        let hidden = [world.path("state/token"), world.path("home/.ssh/id_rsa")];
        for path in hidden {
            let said = world.fails(&format!("cat {}", path.display())).await;
            assert!(!said.contains("secret-"), "{said}");
        }
        if form.0 == Form::Namespaces {
            world.fails(&format!("ls {}", world.path("state").display())).await;
        }
        let socket = world.path("daemon.sock").display().to_string();
        world
            .fails(&format!(
                "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{socket}\")'"
            ))
            .await;
    }
}

#[tokio::test]
async fn a_command_that_nobody_looked_at_writes_nothing_reaches_nobody_and_sees_no_secret() {
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        world.write("root/.env", "KEY=secret-1");
        world.write("root/deep/er/tls.key", "secret-2");
        world.write("root/plain.txt", "KEY=plain");
        let ended = world.run_in(Confinement::ReadOnly, "grep -rh KEY . ; cat deep/er/tls.key; echo x > new.txt; echo x > /tmp/new.$$; echo x > /dev/null && echo null").await;
        assert!(
            ended.output.contains("KEY=plain") && ended.output.contains("null\n"),
            "{form:?}: {}",
            ended.output
        );
        assert!(!ended.output.contains("secret-"), "{form:?}: {}", ended.output);
        assert!(!world.path("root/new.txt").exists());
        let reached = "exec 3<>/dev/tcp/127.0.0.1/PORT";
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let reached = reached.replace("PORT", &listener.local_addr().unwrap().port().to_string());
        assert_eq!(world.run_in(Confinement::Outside, &reached).await.outcome, Outcome::Ok);
        assert_eq!(
            world.run_in(Confinement::ReadOnly, &reached).await.outcome,
            Outcome::Error,
            "{form:?}"
        );
    }
}

#[tokio::test]
async fn without_a_network_there_is_none_and_with_one_there_is() {
    for form in FORMS {
        let Some(mut world) = World::new(form).await else {
            continue;
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tcp = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        world.works(&tcp).await;
        world.network = Network::Off;
        let said = world.fails(&tcp).await;
        assert!(
            said.contains("no network") && said.contains("outside_sandbox"),
            "{said}"
        );
        world
            .fails(&format!("echo x > /dev/udp/127.0.0.1/{port} && false"))
            .await;
    }
}

#[tokio::test]
async fn the_reduced_form_lets_existing_entries_be_written_and_protects_the_rest() {
    let Some(world) = World::new(REDUCED).await else {
        return;
    };
    world.make_repository();
    world.write("root/src/lib.rs", "x");
    world
        .works("echo y > src/lib.rs && echo z > src/new.rs && cat src/lib.rs && ls / > /dev/null")
        .await;
    for command in [
        "echo x > .git/config",
        "echo x > .git/hooks/x",
        "echo x > ~/x",
        "mv .git g",
        "echo x > /etc/x",
    ] {
        world.fails(command).await;
    }
}

#[tokio::test]
async fn a_sandboxed_command_has_no_privileges_and_cannot_get_any() {
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        let said = world
            .works("grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status; ls /proc/self/fd")
            .await;
        // An ordinary user cannot empty the bounding set; without new privileges it bounds nothing.
        let bounding = form.0 == Form::Namespaces || rustix::process::geteuid().is_root();
        let empty = if bounding { 5 } else { 4 };
        assert_eq!(said.matches("0000000000000000").count(), empty, "{form:?}: {said}");
        assert!(
            said.contains("NoNewPrivs:\t1") && said.contains("Seccomp:\t2"),
            "{said}"
        );
        for command in [
            "unshare -Ur true",
            "unshare -n true",
            "mount -t tmpfs x /mnt",
            "umount -l .",
            "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); raise SystemExit(l.ptrace(16, 1, 0, 0) == 0 or ctypes.get_errno())'",
            "mount -o remount,rw /",
        ] {
            world.fails(command).await;
        }
    }
}

#[tokio::test]
async fn other_processes_cannot_be_signalled_or_looked_into() {
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        let own = std::process::id();
        if world.support.landlock >= 6 {
            world.fails(&format!("kill -0 {own}")).await;
        } else {
            skip::note("this kernel's Landlock does not scope signals");
        }
        for file in ["environ", "mem", "maps", "fd/0", "root/etc/passwd", "cwd/Cargo.toml"] {
            world.fails(&format!("head -c 1 /proc/{own}/{file}")).await;
        }
        world.works("sleep 60 & kill $!").await;
    }
}

/// A terminal as a person has one: the end that a terminal program holds, and the path of the other.
fn terminal() -> (std::os::fd::OwnedFd, String) {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    // SAFETY: the calls take a descriptor that is open and a buffer with its length.
    unsafe {
        let master = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY);
        assert!(master >= 0);
        let master = OwnedFd::from_raw_fd(master);
        assert_eq!(
            (libc::grantpt(master.as_raw_fd()), libc::unlockpt(master.as_raw_fd())),
            (0, 0)
        );
        let mut name = [0; 64];
        assert_eq!(libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len()), 0);
        let name = std::ffi::CStr::from_ptr(name.as_ptr()).to_str().unwrap().to_owned();
        (master, name)
    }
}

#[tokio::test]
async fn terminals_of_the_person_are_out_of_reach_and_a_command_may_make_its_own() {
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        let (_person, name) = terminal();
        // It writes there, were it not for the sandbox.
        let write = format!("echo x > {name}");
        assert_eq!(world.run_in(Confinement::Outside, &write).await.outcome, Outcome::Ok);
        for command in [write.as_str(), &format!("exec 3< {name}")] {
            world.fails(command).await;
            let unasked = world.run_in(Confinement::ReadOnly, command).await;
            assert_eq!(unasked.outcome, Outcome::Error, "{form:?} {command}");
        }
        if form.0 == Form::Namespaces {
            let own = "python3 -c 'import os, pty; a, b = pty.openpty(); os.write(a, b\"x\\n\"); print(os.read(b, 9), os.ttyname(b))'";
            let said = world.works(own).await;
            assert!(said.contains("/dev/pts/0"), "{said}");
        }
    }
}

#[tokio::test]
async fn memory_that_programs_of_the_person_share_is_not_a_commands() {
    let Some(world) = World::new(OWN).await else { return };
    let shared = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let path = shared.path().display();
    world.fails(&format!("cat {path}")).await;
    world.works("echo x > /dev/shm/x && cat /dev/shm/x").await;
    assert!(!Path::new("/dev/shm/x").exists());
}

#[tokio::test]
async fn limits_keep_a_command_from_taking_the_machine() {
    let Some(world) = World::new(OWN).await else { return };
    let said = world
        .works("ulimit -c; ulimit -f; ulimit -u; cat /proc/self/oom_score_adj; ulimit -u 100000; ulimit -f unlimited; true")
        .await;
    let numbers: Vec<u64> = said.lines().map_while(|line| line.trim().parse().ok()).collect();
    // Files are counted in KiB.
    assert_eq!(numbers, [0, 64 << 20, 8192, 500], "{said}");
    assert_eq!(said.matches("cannot modify limit").count(), 2, "{said}");
}

#[tokio::test]
async fn private_caches_are_one_set_a_root_and_the_persons_own_are_read_only() {
    let Some(mut world) = World::new(OWN).await else { return };
    world.caches = Caches::Private;
    world.write("home/.npm/own", "mine");
    world
        .works("cat ~/.npm/own && mkdir -p $CARGO_HOME/registry && echo x > $CARGO_HOME/registry/x")
        .await;
    for path in [
        "~/.npm/x",
        "~/.cache/x",
        "~/.cargo/registry/x",
        "~/.cache/agentd/x",
        "~/.cache/agentd/roots/x",
    ] {
        world.fails(&format!("echo x > {path}")).await;
    }
}

#[tokio::test]
async fn the_keys_of_the_daemons_own_user_are_hidden_whatever_a_client_calls_its_home() {
    // The test's own home stands for the daemon's.
    let Some(own) = std::env::var_os("HOME").map(PathBuf::from) else {
        return;
    };
    let Some(secret) = [".ssh", ".gnupg", ".netrc", ".npmrc", ".config/gh", ".docker"]
        .map(|name| own.join(name))
        .into_iter()
        .find(|path| path.exists())
    else {
        skip::note(&format!("no file with keys in {}", own.display()));
        return;
    };
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        let read = if secret.is_dir() && form.0 == Form::Namespaces {
            "ls"
        } else {
            "cat"
        };
        world.fails(&format!("{read} {}", secret.display())).await;
    }
}

#[tokio::test]
async fn a_call_that_asks_to_leave_the_sandbox_is_said_to_policy_and_leaves_it() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    let bash: Arc<dyn Tool> = daemon::tool::all(&daemon::tool::Settings::default())
        .into_iter()
        .find(|tool| tool.spec().name == "bash")
        .unwrap();
    let (arguments, place) = (
        json!({"command": "touch ~/there", "outside_sandbox": true}),
        world.place(),
    );
    let inspected = bash.inspect(&arguments, &place).await.unwrap();
    assert!(inspected.facts.command.as_ref().unwrap().outside_sandbox);
    let (_stop, stop) = watch::channel(StopLevel::Run);
    let confinement = Confinement::Session;
    let run = RunContext {
        place,
        output: Box::new(Nowhere),
        stop,
        call: "c1".into(),
        guard: world.guard(),
        confinement,
    };
    assert_eq!(bash.run(&arguments, &inspected.digest, run).await.outcome, Outcome::Ok);
    assert!(world.path("home/there").exists());
}

#[test]
fn an_ordinary_user_gets_the_same_sandbox_as_root() {
    if !rustix::process::geteuid().is_root() {
        skip::note("the other tests run as an ordinary user already");
        return;
    }
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    // Nobody may have no way to the build directory.
    std::fs::copy(env!("CARGO_BIN_EXE_agentd"), dir.path().join("agentd")).unwrap();
    std::fs::create_dir(dir.path().join("state")).unwrap();
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
    std::os::unix::fs::chown(dir.path().join("state"), Some(65534), Some(65534)).unwrap();
    let probe = |prefix: &[&str]| {
        let mut command = std::process::Command::new(prefix[0]);
        command
            .args(&prefix[1..])
            .arg(dir.path().join("agentd"))
            .args(["exec-guard", "probe"])
            .arg(dir.path().join("state"));
        command.current_dir("/").output()
    };
    let Ok(nobody) = probe(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]) else {
        skip::note("no setpriv");
        return;
    };
    let support: Support = serde_json::from_slice(&nobody.stdout).unwrap();
    if support.form.is_none() || !std::path::Path::new("/proc/self/ns/user").exists() {
        skip::note(&format!("no sandbox for an ordinary user here: {support:?}"));
        return;
    }
    assert_eq!(support.form, Some(Form::Namespaces), "{support:?}");
    // A user namespace in which no further one may be made is a machine without them.
    let without = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let without = probe(&["unshare", "-Ur", "sh", "-c", without, "sh"]).unwrap();
    let support: Support = serde_json::from_slice(&without.stdout).unwrap();
    assert_eq!(support.form, Some(Form::Landlock), "{support:?}");
    assert_eq!(support.missing.len(), 1, "{support:?}");
}

#[tokio::test]
async fn npm_installs_from_its_cache_inside() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    world.write("dep/package.json", r#"{"name": "dep", "version": "1.0.0"}"#);
    world.write("dep/index.js", "module.exports = 'from the cache';");
    world.write(
        "root/package.json",
        r#"{"name": "x", "version": "1.0.0", "dependencies": {"dep": "file:../dep-1.0.0.tgz"}}"#,
    );
    let npm = |arguments: &[&str], at: &str| {
        let mut command = std::process::Command::new("npm");
        command
            .args(arguments)
            .current_dir(world.path(at))
            .env("HOME", world.path("home"))
            .env("npm_config_cache", world.path("home/.cache/npm"));
        command.output().is_ok_and(|done| done.status.success())
    };
    if !npm(&["pack", "--pack-destination", "..", "--offline"], "dep")
        || !npm(&["install", "--package-lock-only", "--offline"], "root")
    {
        skip::note("no npm that works here");
        return;
    }
    let said = world.works("npm ci --offline && node -p 'require(\"dep\")'").await;
    assert!(said.contains("from the cache"), "{said}");
}

#[tokio::test]
async fn read_only_is_read_only_for_the_whole_session() {
    for form in FORMS {
        let Some(mut world) = World::new(form).await else {
            continue;
        };
        world.mode = Mode::ReadOnly;
        world.write("root/f", "x");
        world.works("cat f && cat <<< here").await;
        for command in [
            "echo x > f",
            "echo x > g",
            "rm f",
            "truncate -s 0 f",
            "touch ~/.cache/x",
        ] {
            world.fails(command).await;
        }
    }
}

#[tokio::test]
async fn a_sandbox_costs_little() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    let mut took = Vec::new();
    for confinement in [Confinement::Outside, Confinement::Session, Confinement::ReadOnly] {
        let mut times = Vec::new();
        for _ in 0..15 {
            times.push(world.run_in(confinement, "true").await.duration_ms);
        }
        times.sort_unstable();
        took.push(times[0]);
    }
    eprintln!("fastest call outside, in the session's sandbox, in the read-only one: {took:?} ms");
    assert!(took[1] <= took[0] + 100 && took[2] <= took[0] + 100, "{took:?} ms");
}

#[tokio::test]
async fn builds_work_inside() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    let cargo = Path::new("/root/.cargo/bin/cargo");
    if !cargo.is_file() {
        skip::note("no cargo");
        return;
    }
    world.write(
        "root/Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    world.write("root/src/main.rs", "fn main() { println!(\"built inside\"); }");
    let home = std::env::var("HOME").unwrap_or_default();
    let said = world
        .works(&format!("RUSTUP_HOME={home}/.rustup cargo run -q --offline"))
        .await;
    assert!(said.contains("built inside"), "{said}");
}

/// An id that belongs to nobody on any machine.
const ORDINARY: u32 = 54_321;

#[test]
fn an_ordinary_user_is_held_as_root_is() {
    use std::os::unix::process::CommandExt;
    if skip::is_inner() || !rustix::process::geteuid().is_root() {
        return;
    }
    let Ok(place) = tempfile::Builder::new().prefix("sandbox-").tempdir_in("/srv") else {
        skip::note("no place for an ordinary user's home that is not a temporary directory");
        return;
    };
    std::os::unix::fs::chown(place.path(), Some(ORDINARY), Some(ORDINARY)).unwrap();
    let ordinary = |program: &Path| {
        let mut command = std::process::Command::new(program);
        command.uid(ORDINARY).gid(ORDINARY).current_dir("/");
        command
            .env("HOME", place.path())
            .env("AGENTD_TEST_HOMES", place.path())
            .env(skip::INNER, "1");
        command
    };
    let reachable = ordinary(Path::new(env!("CARGO_BIN_EXE_agentd")))
        .arg("--version")
        .output();
    if !reachable.is_ok_and(|done| done.status.success()) {
        skip::note("the build's directory is closed to other users");
        return;
    }
    let ran = ordinary(&std::env::current_exe().unwrap())
        .args(["--test-threads", "2", "--skip", "costs_little"])
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    said.lines()
        .filter_map(|line| line.strip_prefix("SKIP "))
        .for_each(|skipped| skip::note(&format!("as an ordinary user: {skipped}")));
    assert!(ran.status.success() && !said.contains(" 0 passed"), "{said}");
}
