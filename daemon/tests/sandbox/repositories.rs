//! Repositories: those that a command finds are kept, and none is made unasked.

use super::*;

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
