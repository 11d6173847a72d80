//! Sandboxes as they really are: the built `agentd` as guard, real commands, each form the machine can make.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[path = "../../tests/src/skip.rs"]
#[expect(unreachable_pub, reason = "it is a module of the tests crate")]
mod skip;

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use daemon::target::sandbox::{Caches, Form, Mode, Network, NewRepositories, Notices, Pids, Settings, Support, probe};
use daemon::target::{Target, TargetSpec, command_environment};
use daemon::tool::{Confinement, Ended, GuardPlan, Outcome, OutputSink, Place, ReadSet, RunContext, StopLevel, Tool};
use serde_json::json;
use tokio::sync::watch;

/// All that a machine can have.
const OWN: (Form, Pids) = (Form::Namespaces, Pids::Own);

/// As in a container that covers parts of `/proc`.
const SHARED: (Form, Pids) = (Form::Namespaces, Pids::Shared);

/// Without user namespaces.
const REDUCED: (Form, Pids) = (Form::Landlock, Pids::Shared);

const FORMS: [(Form, Pids); 3] = [OWN, SHARED, REDUCED];

/// A project with a repository, a home with secrets, and a daemon's state beside them.
struct World {
    dir: tempfile::TempDir,
    support: Support,
    mode: Mode,
    network: Network,
    caches: Caches,
    new_repositories: NewRepositories,
}

struct Nowhere;

impl OutputSink for Nowhere {
    fn push(&mut self, text: &str) -> String {
        text.to_owned()
    }

    fn finish(&mut self) -> String {
        String::new()
    }
}

impl World {
    /// None, said aloud, where the machine cannot make this form.
    async fn new((form, pids): (Form, Pids)) -> Option<Self> {
        // Not in a temporary directory, which commands may write.
        let place = std::env::var_os("AGENTD_TEST_HOMES").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
        let dir = tempfile::Builder::new().prefix("sandbox-").tempdir_in(place).unwrap();
        for name in ["root", "state", "home/.ssh", "home/.cargo/registry", "home/.cache"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let mut world = Self {
            dir,
            support: Support::default(),
            mode: Mode::WorkspaceWrite,
            network: Network::On,
            caches: Caches::Shared,
            new_repositories: NewRepositories::Refuse,
        };
        world.write("state/token", "secret-token");
        world.write("home/.ssh/id_rsa", "secret-key");
        let mut support = probe(&world.guard()).await;
        if form == Form::Landlock && support.landlock >= 3 {
            support.form = Some(Form::Landlock);
        }
        if support.form != Some(form) || (pids == Pids::Own && support.pids != pids) {
            skip::note(&format!(
                "{form:?} with {pids:?} processes cannot be made here: {support:?}"
            ));
            return None;
        }
        support.pids = pids;
        world.support = support;
        Some(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path("").join(name).parent().unwrap()).unwrap();
        std::fs::write(self.path("").join(name), text).unwrap();
    }

    fn guard(&self) -> GuardPlan {
        GuardPlan {
            exe: env!("CARGO_BIN_EXE_agentd").into(),
            state_dir: self.path("state"),
        }
    }

    fn place(&self) -> Place {
        let mut client: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| name == "PATH").collect();
        client.insert("HOME".into(), self.path("home").display().to_string());
        let target = Target::open(TargetSpec {
            roots: vec![self.path("root")],
            cwd: self.path("root"),
            environment: command_environment(&client, &[], &[]),
            hidden: vec![],
            sandbox: Settings {
                mode: self.mode,
                network: self.network,
                caches: self.caches,
                new_repositories: self.new_repositories,
                support: self.support.clone(),
                hidden: vec![self.path("state"), self.path("daemon.sock")],
            },
        });
        Place {
            target: target.unwrap(),
            read: ReadSet::default(),
            jobs: daemon::tool::Jobs::default(),
        }
    }

    async fn run_in(&self, confinement: Confinement, command: &str) -> Ended {
        self.call(confinement, json!({"command": command})).await
    }

    async fn call(&self, confinement: Confinement, arguments: serde_json::Value) -> Ended {
        let bash: Arc<dyn Tool> = daemon::tool::all(&daemon::tool::Settings::default())
            .into_iter()
            .find(|tool| tool.spec().name == "bash")
            .unwrap();
        let place = self.place();
        let digest = bash.inspect(&arguments, &place).await.unwrap().digest;
        let (_stop, stop) = watch::channel(StopLevel::Run);
        let run = RunContext {
            place,
            output: Box::new(Nowhere),
            stop,
            call: "c1".into(),
            guard: self.guard(),
            confinement,
        };
        bash.run(&arguments, &digest, run).await
    }

    async fn run(&self, command: &str) -> Ended {
        self.run_in(Confinement::Session, command).await
    }

    async fn works(&self, command: &str) -> String {
        let ended = self.run(command).await;
        assert_eq!(ended.outcome, Outcome::Ok, "{command}: {}", ended.output);
        ended.output
    }

    async fn fails(&self, command: &str) -> String {
        let ended = self.run(command).await;
        assert_eq!(ended.outcome, Outcome::Error, "{command}: {}", ended.output);
        ended.output
    }

    /// Runs git as the person does, outside of any sandbox.
    fn git(&self, at: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new("git");
        command
            .args([
                "-c",
                "protocol.file.allow=always",
                "-c",
                "user.email=a@b",
                "-c",
                "user.name=a",
            ])
            .args(arguments)
            .current_dir(self.path(at))
            .env("HOME", self.path("home"));
        let done = command.output().unwrap();
        assert!(done.status.success(), "git {arguments:?}: {done:?}");
    }

    fn make_repository(&self) {
        self.make_repository_at("root");
    }

    fn make_repository_at(&self, at: &str) {
        std::fs::create_dir_all(self.path(at)).unwrap();
        self.git(at, &["init", "-q"]);
        self.git(at, &["config", "user.email", "a@b"]);
        self.git(at, &["config", "user.name", "a"]);
        self.git(at, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    /// All below a directory, with what is in each file.
    fn content(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut ahead = vec![self.path(name)];
        while let Some(path) = ahead.pop() {
            if path.is_dir() && !path.is_symlink() {
                ahead.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                found.insert(path, Vec::new());
            } else {
                let content = std::fs::read(&path).unwrap_or_default();
                found.insert(path, content);
            }
        }
        found
    }
}

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
async fn a_commit_works_and_what_makes_git_run_programs_cannot_be_changed() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    world.make_repository();
    world
        .works("echo x > f && git add f && git commit -q -m second && git log --oneline | grep second")
        .await;
    world
        .works("git checkout -q -b other && git stash list && git gc -q")
        .await;
    for command in [
        "echo x >> .git/config",
        "git config core.fsmonitor ./x.sh",
        "echo x > .git/hooks/pre-commit",
        "rm .git/hooks/pre-commit.sample",
        "echo '* filter=x' > .git/info/attributes",
        "mkdir .git/modules/x",
        "mv .git .git2",
        "mv .git/hooks .git/hooks2",
        "mkdir .agent/x",
        "echo x > .agent/config.toml",
        "rmdir .agent",
        "mv .agent b",
    ] {
        world.fails(command).await;
    }
    world.run("echo ../evil > .git/commondir").await;
    assert!(
        !world.path("root/.git/commondir").exists(),
        "git would take its configuration from elsewhere"
    );
    assert!(!world.path("root/.agent").exists(), "what only stood in is gone again");
    world
        .works("git rev-parse --git-dir | grep -x .git && git status --short")
        .await;
    world.fails("rm -rf .git").await;
    assert!(world.path("root/.git/config").exists() && world.path("root/.git/hooks").exists());
}

/// What would make a later git run programs, in the repository of which `DIR` is the directory.
const ON_A_REPOSITORY: &[&str] = &[
    "echo x >> DIR/config",
    "rm DIR/config",
    "echo x > DIR/hooks/pre-commit",
    "rm DIR/hooks/pre-commit.sample",
    "mv DIR/hooks DIR/h",
    "echo '* filter=x' > DIR/info/attributes",
    "mkdir DIR/modules/x",
    "mv DIR DIR.old",
    "rm -rf DIR",
];

#[tokio::test]
async fn a_repository_in_a_directory_below_the_root_is_kept_as_the_roots_own_is() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    world.make_repository_at("root/deep/er/sub");
    world
        .works(
            "cd deep/er/sub && echo x > f && git add f && git commit -q -m second && git log --oneline | grep second",
        )
        .await;
    world
        .works("cd deep/er/sub && git checkout -q -b other && git stash list && git gc -q")
        .await;
    let kept = ["config", "hooks", "info"].map(|part| format!("root/deep/er/sub/.git/{part}"));
    let before: Vec<_> = kept.iter().map(|part| world.content(part)).collect();
    for command in ON_A_REPOSITORY {
        world.fails(&command.replace("DIR", "deep/er/sub/.git")).await;
    }
    world.fails("git -C deep/er/sub config core.fsmonitor ./x.sh").await;
    world.run("echo /tmp/evil > deep/er/sub/.git/commondir").await;
    let after: Vec<_> = kept.iter().map(|part| world.content(part)).collect();
    assert!(before == after && !world.path("root/deep/er/sub/.git/commondir").exists());
    assert!(
        !world.path("root/deep/er/sub/.git/modules").exists(),
        "what only stood in is gone again"
    );
    let said = world.fails("rm -rf ./deep/er/sub/.git").await;
    assert!(
        said.contains("sub/.git where it is") && said.contains("outside_sandbox"),
        "{said}"
    );
}

#[tokio::test]
async fn a_submodule_and_a_repository_with_its_directory_elsewhere_are_kept() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    world.make_repository();
    world.make_repository_at("origin");
    world.git("root", &["submodule", "--quiet", "add", "../origin", "sub"]);
    std::fs::create_dir_all(world.path("root/dirs/of")).unwrap();
    world.git(
        "root",
        &[
            "clone",
            "-q",
            "../origin",
            "apart",
            "--separate-git-dir",
            "dirs/of/apart",
        ],
    );
    world.make_repository_at("root/real");
    std::fs::create_dir(world.path("root/linked")).unwrap();
    std::os::unix::fs::symlink("../dirs/of/linked", world.path("root/linked/.git")).unwrap();
    std::fs::rename(world.path("root/real/.git"), world.path("root/dirs/of/linked")).unwrap();
    for (sub, dir) in [
        ("sub", ".git/modules/sub"),
        ("apart", "dirs/of/apart"),
        ("linked", "dirs/of/linked"),
    ] {
        world
            .works(&format!(
                "cd {sub} && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -q -m second"
            ))
            .await;
        for command in ON_A_REPOSITORY {
            world.fails(&command.replace("DIR", dir)).await;
        }
    }
    for command in [
        "echo 'gitdir: /tmp/evil' > sub/.git",
        "rm sub/.git",
        "mv sub/.git sub/g",
        "mv apart/.git apart/g",
        "mv dirs/of dirs/off",
        "mv dirs d",
        "mkdir .git/modules/other",
    ] {
        world.fails(command).await;
    }
}

#[tokio::test]
async fn what_leads_from_a_work_tree_of_the_persons_to_programs_is_kept_and_temporary_ones_come_and_go() {
    let Some(world) = World::new(OWN).await else {
        return;
    };
    world.make_repository();
    world.git("root", &["worktree", "add", "-q", "../beside"]);
    let own = world.path("root/.git/worktrees/beside");
    let before = world.content("root/.git/worktrees");
    for command in [
        "echo /tmp/evil > .git/worktrees/beside/commondir",
        "mv .git/worktrees/beside .git/worktrees/b",
        "mv .git/worktrees .git/w",
        "rm -r .git/worktrees/beside/commondir",
    ] {
        world.fails(command).await;
    }
    world.run("echo x > .git/worktrees/beside/config.worktree").await;
    assert_eq!(world.content("root/.git/worktrees"), before, "{}", own.display());
    let temporary = "/tmp/sandbox-test-tree";
    world
        .works(&format!(
            "git worktree add -q {temporary} && cd {temporary} && echo x > f && git add f && git commit -q -m f"
        ))
        .await;
    world.works(&format!("git worktree remove {temporary}")).await;
}

/// A world whose guard can look at what commands make, with the directory `sub` that can be written in every form.
async fn supervised(form: (Form, Pids)) -> Option<World> {
    let world = World::new(form).await?;
    if world.support.notices == Notices::Missing {
        eprintln!("SKIP: calls cannot be looked at here: {:?}", world.support);
        return None;
    }
    world.write("root/sub/git/config", "[core]\nfsmonitor = /tmp/evil");
    world.write("root/sub/file", "gitdir: /tmp/evil");
    Some(world)
}

/// Ways to give something in `sub` the name of a repository.
const MAKES_A_REPOSITORY: &[&str] = &[
    "git init sub",
    "git init -q --separate-git-dir=$HOME/.cache/apart sub",
    "mkdir sub/.git",
    "mkdir sub//.git/",
    "mkdir -p sub/.git/hooks",
    "cd sub && mkdir ./../sub/.git",
    "mkdir sub/.Git",
    "printf 'gitdir: /tmp/evil' > sub/.git",
    "mkfifo sub/.git",
    "mv sub/git sub/.git",
    "mv sub/file sub/.git",
    "mv -T sub/git \"$PWD/sub/.git\"",
    "ln sub/file sub/.git",
    "ln -s git sub/.git",
    "cp sub/file sub/.git",
    "mkdir -p ~/.cache/r/a/.git && mv ~/.cache/r/a sub/; rm -r ~/.cache/r; ls -d sub/a/.git",
    "ln -s .git sub/link && echo x > sub/link",
    "ln -s link2 sub/link && ln -s \"$PWD/sub/.git\" sub/link2 && echo x > sub/link",
    "ln -s ../sub sub/up && mkdir sub/up/.git",
    "ln -s \"$PWD/sub\" ~/.cache/l; mkdir ~/.cache/l/.git; rm ~/.cache/l; ls sub/.git",
    "ln -s \"$PWD/sub\" /dev/shm/l$$ && ln -s /dev/shm/l$$ sub/m && mkdir sub/m/.git",
    "cd sub && mkdir /proc/self/cwd/.git",
    "cd sub && ln -s /proc/self/cwd me && mkdir me/.git",
    "cd sub && ln -s .git link && echo x > /proc/self/cwd/link",
    "exec 5< sub && mkdir /proc/self/fd/5/.git",
    "cd sub && mkdir /proc/$$/cwd/.git",
    "cd sub && python3 -c 'import os; os.mkdir(\".git\", dir_fd=os.open(\".\", 0))'",
    "cd sub && python3 -c 'import os; os.rename(b\"git\", b\".git\", dst_dir_fd=os.open(\".\", 0))'",
    // renameat2 that exchanges two names, and the other way round.
    "cd sub && echo x > .g && python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); raise SystemExit(l.renameat2(-100, b\"git\", -100, b\".git\", 2) != 0)'",
    // openat2 with the flags in memory, plain and with its directory as root.
    "cd sub && python3 -c 'import ctypes; l = ctypes.CDLL(None); h = (ctypes.c_uint64 * 3)(0o101, 0o644, 0); raise SystemExit(l.syscall(437, -100, b\".git\", h, 24) < 0)'",
    "cd sub && python3 -c 'import ctypes; l = ctypes.CDLL(None); h = (ctypes.c_uint64 * 3)(0o101, 0o644, 0x10); raise SystemExit(l.syscall(437, -100, b\"/.git\", h, 24) < 0)'",
    // From memory at the end of a page.
    "cd sub && python3 -c 'import ctypes, mmap; m = mmap.mmap(-1, 8192); m[4093:4098] = b\".git\\0\"; l = ctypes.CDLL(None); raise SystemExit(l.mkdir(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)) + 4093), 0o755) != 0)'",
    // A process into which nobody may look.
    "cd sub && python3 -c 'import ctypes, os; ctypes.CDLL(None).prctl(4, 0); os.mkdir(\".git\")'",
    // A thread.
    "cd sub && python3 -c 'import threading, os; t = threading.Thread(target=os.mkdir, args=(\".git\",)); t.start(); t.join(); os.stat(\".git\")'",
    // A process that left its parent.
    "(setsid sh -c 'mkdir sub/.git; echo x > sub/done' &) ; until test -e sub/done; do :; done; rm sub/done; ls sub/.git",
];

#[tokio::test]
async fn no_command_gives_anything_below_the_root_the_name_of_a_repository() {
    for form in FORMS {
        let Some(world) = supervised(form).await else { continue };
        let before = world.content("root");
        for command in MAKES_A_REPOSITORY {
            let said = world.fails(command).await;
            let told =
                said.contains("does not let commands make repositories") && said.contains("outside_sandbox: true");
            // What cannot be looked at or has another meaning than it says is refused for that alone.
            let opaque = command.contains("0x10") || (form == REDUCED && command.contains("prctl"));
            assert!(told || opaque, "{form:?} {command}: {said}");
            let after = world.content("root");
            let new = after
                .keys()
                .find(|path| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git")));
            assert_eq!(new, None, "{form:?} {command}: {said}");
            for path in after.keys().filter(|path| !before.contains_key(*path)) {
                let _ = std::fs::remove_dir_all(path).or_else(|_| std::fs::remove_file(path));
            }
            assert!(before == world.content("root"), "{form:?} {command}");
        }
    }
}

#[tokio::test]
async fn a_repository_that_was_refused_is_told_even_of_a_command_that_went_well() {
    let Some(world) = supervised(OWN).await else { return };
    let said = world.works("mkdir sub/.git || true").await;
    let path = world.path("root/sub/.git").display().to_string();
    assert!(
        said.contains("does not let commands make repositories") && said.contains(&path),
        "{said}"
    );
    // Texts prove nothing.
    let said = world
        .works("echo 'mkdir: cannot create sub/.git: Operation not permitted'")
        .await;
    assert!(!said.contains("outside_sandbox"), "{said}");
}

#[tokio::test]
async fn repositories_outside_of_the_root_and_what_is_none_are_made_as_ever() {
    for form in FORMS {
        let Some(world) = supervised(form).await else { continue };
        world.make_repository_at("root/old");
        let free = [
            "mkdir -p ~/.cache/r && git init -q ~/.cache/r && cd ~/.cache/r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
            "mkdir -p ~/.cache/q && cd ~/.cache/q && ln -s ../r/.git .git && git log --oneline && mv .git g && mv g .git",
            "cd sub && echo x > .gitignore && mkdir .github .git2 && ln -s ../../x .git2/.github && mv .gitignore .gitattributes",
            "cd sub && mkdir -p a/b/../c && echo x > a/b/../f && echo x > \"$PWD/a/g\" && ln -s g a/link && echo y > a/link && cat a/g | grep y",
            "cd sub && echo x > /dev/stdout && echo x > /dev/fd/1 && echo x > /proc/self/fd/1 && echo x > /proc/self/cwd/made && rm made",
            "cd sub && ln -s nowhere dangling && echo x > dangling && cat nowhere",
            "cd sub && python3 -c 'import os, tempfile; d = os.open(\".\", 0); os.close(os.open(\"n\", os.O_CREAT | os.O_WRONLY, dir_fd=d)); os.mkdir(\"m\", dir_fd=d); os.rename(\"n\", \"m/n\", src_dir_fd=d, dst_dir_fd=d)'",
        ];
        for command in free {
            world.works(command).await;
        }
        // What there is nothing of is said as the kernel says it.
        let said = world
            .fails("echo x > sub/no/such/.git; mkdir sub/no/.git; mkdir file.txt/.git")
            .await;
        assert_eq!(said.matches("No such file or directory").count(), 3, "{said}");
        if form != REDUCED {
            world
                .works("mkdir -p old/.git && git -C old commit -q --allow-empty -m x")
                .await;
            world
                .works("git clone -q old ~/.cache/cloned && git -C ~/.cache/cloned log --oneline")
                .await;
        }
    }
}

#[tokio::test]
async fn repositories_are_made_where_the_settings_allow_it_and_kept_from_then_on() {
    for form in FORMS {
        let Some(mut world) = supervised(form).await else {
            continue;
        };
        world.new_repositories = NewRepositories::Allow;
        world
            .works("git init -q sub/new && echo x >> sub/new/.git/config")
            .await;
        world.fails("echo x >> sub/new/.git/config").await;
    }
}

#[tokio::test]
async fn a_command_whose_guard_is_killed_ends_and_makes_nothing() {
    let Some(world) = supervised(SHARED).await else { return };
    let state = world.path("state").into_os_string().into_encoded_bytes();
    let kill = async {
        let started = world.path("root/sub/started");
        while !started.exists() {
            tokio::task::yield_now().await;
        }
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_guard = words.split(|byte| *byte == 0).nth(1) == Some(b"exec-guard");
            if is_guard && words.windows(state.len()).any(|part| part == state) {
                let pid = entry.file_name().to_str().unwrap().parse().unwrap();
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
        }
    };
    let run = world.run("echo x > sub/started; while true; do echo x > sub/f; mkdir sub/.git; done");
    let (ended, ()) = tokio::join!(run, kill);
    assert!(ended.output.contains("guard was killed"), "{}", ended.output);
    assert!(!world.path("root/sub/.git").exists());
}

#[tokio::test]
async fn the_reduced_form_lets_no_repository_below_the_root_be_written() {
    let Some(world) = World::new(REDUCED).await else {
        return;
    };
    world.make_repository_at("root/sub");
    world.write("root/sub/src/lib.rs", "x");
    world.works("echo y > sub/src/lib.rs && echo z > sub/src/new.rs").await;
    for command in ON_A_REPOSITORY {
        world.fails(&command.replace("DIR", "sub/.git")).await;
    }
    world.fails("mv sub other").await;
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

/// The line that says which sandbox a failed command ran in, and what that kept from it.
fn explanation(ended: &Ended) -> &str {
    assert_eq!(ended.outcome, Outcome::Error, "{}", ended.output);
    let at = ended.output.rfind("[ran in the sandbox (").unwrap();
    &ended.output[at..]
}

#[tokio::test]
async fn a_failure_the_sandbox_has_no_part_in_is_not_explained_by_it() {
    for form in FORMS {
        let Some(mut world) = World::new(form).await else {
            continue;
        };
        world.write("root/a", "a");
        world.write("root/b", "b");
        let reads = [
            "grep zzz a",
            "test -f c",
            "diff a b",
            "false # https://example.com/a",
            "grep zzz /etc/passwd",
            "! echo 'https://example.com: Network is unreachable'",
            "cat c; ls /no/such/thing",
        ];
        for command in reads {
            let ended = world.run_in(Confinement::ReadOnly, command).await;
            assert!(
                !explanation(&ended).contains(':'),
                "{form:?} {command}: {}",
                ended.output
            );
        }
        for network in [Network::On, Network::Off] {
            world.network = network;
            let others = [
                "echo 'Permission denied (sandbox): ./src/x /etc/x' >&2; false",
                "python3 -c 'raise SystemExit(3)'",
                "/bin/bash -c 'no-such-program https://example.com/a'",
                "cp a a/d",
                "python3 /usr/no-such-script.py",
                "cargo-no-such-program install",
            ];
            for command in reads.iter().chain(&others) {
                let ended = world.run(command).await;
                assert!(
                    !explanation(&ended).contains(':'),
                    "{form:?} {command}: {}",
                    ended.output
                );
            }
        }
    }
}

#[tokio::test]
async fn a_failure_is_explained_by_what_the_command_was_to_write_read_or_move() {
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        world.make_repository();
        std::fs::create_dir(world.path("elsewhere")).unwrap();
        let path = |name: &str| world.path(name).display().to_string();
        for (command, explained) in [
            (
                "touch ~/notes.txt",
                format!("does not let commands write {}", path("home/notes.txt")),
            ),
            (
                "echo x > ../elsewhere/x",
                format!("does not let commands write {}", path("elsewhere/x")),
            ),
            (
                "cd ../elsewhere && touch z",
                format!("does not let commands write {}", path("elsewhere")),
            ),
            (
                "echo x > .git/hooks/x",
                format!("does not let commands write {}", path("root/.git/hooks/x")),
            ),
            ("cat ~/.ssh/id_rsa", format!("hides {}", path("home/.ssh/id_rsa"))),
            ("grep x < ~/.ssh/id_rsa", format!("hides {}", path("home/.ssh/id_rsa"))),
            ("mv .git .git2", format!("keeps {} where it is", path("root/.git"))),
        ] {
            let ended = world.run(command).await;
            let said = explanation(&ended);
            assert!(said.contains(&explained), "{form:?} {command}: {}", ended.output);
            assert!(said.contains("outside_sandbox: true"), "{form:?} {command}: {said}");
        }
        let elsewhere = json!({"command": "python3 -c 'open(\"x\", \"w\")'", "cwd": path("elsewhere")});
        let ended = world.call(Confinement::Session, elsewhere).await;
        let said = explanation(&ended);
        assert!(
            said.contains(&format!("write {}.", path("elsewhere"))),
            "{form:?}: {said}"
        );
    }
}

#[tokio::test]
async fn a_missing_network_is_told_from_what_the_kernel_counted() {
    for form in [OWN, SHARED] {
        let Some(world) = World::new(form).await else { continue };
        for command in [
            "exec 3<>/dev/tcp/192.0.2.1/80",
            "python3 -c 'import socket; socket.socket(2, 2).sendto(b\"x\", (\"192.0.2.1\", 53))'",
            "(exec 3<>/dev/tcp/192.0.2.1/80) 2> /dev/null; sleep 0; false",
        ] {
            let ended = world.run_in(Confinement::ReadOnly, command).await;
            let said = explanation(&ended);
            assert!(
                said.contains("the sandbox has no network. If that"),
                "{form:?} {command}: {said}"
            );
        }
    }
}

#[tokio::test]
async fn without_a_network_servers_of_the_commands_own_are_reached_and_others_named() {
    for form in [OWN, SHARED] {
        let Some(mut world) = World::new(form).await else {
            continue;
        };
        world.network = Network::Off;
        world
            .works(
                "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); \
                 socket.create_connection(s.getsockname())'",
            )
            .await;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        let ended = world.run(&connect).await;
        assert!(
            explanation(&ended).contains(&format!("port {port} is outside the sandbox")),
            "{}",
            ended.output
        );
        drop(listener);
        let ended = world.run(&connect).await;
        assert!(!explanation(&ended).contains(':'), "{form:?}: {}", ended.output);
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
