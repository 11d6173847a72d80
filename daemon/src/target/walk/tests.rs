//! Walks through trees that hold what a repository can hold.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::target::TargetSpec;

fn names(target: &Target, dir: &str, depth: Depth) -> (Vec<String>, Rules) {
    let mut names = Vec::new();
    let rules = target.walk(&target.resolve(dir).unwrap(), depth, &mut |found| {
        names.push(found.name.display().to_string());
        ControlFlow::Continue(())
    });
    (names, rules.unwrap().rules)
}

#[test]
fn ignore_rules_hold_from_the_root_down_and_not_from_above() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    for path in ["src/deep", "build/out", ".git/objects", ".github"] {
        std::fs::create_dir_all(root.join(path)).unwrap();
    }
    for path in [
        "a.rs",
        "a.log",
        "src/b.rs",
        "src/b.log",
        "src/deep/c.rs",
        "build/out/x",
        ".env",
        "kept.txt",
    ] {
        std::fs::write(root.join(path), "").unwrap();
    }
    std::fs::write(dir.path().join(".gitignore"), "kept.txt\n").unwrap();
    std::fs::write(root.join(".gitignore"), "*.log\n/build/\n").unwrap();
    let target = Target::open(TargetSpec {
        roots: vec![root.clone()],
        cwd: root,
        ..TargetSpec::default()
    })
    .unwrap();
    let one = Depth::Levels(1);
    assert_eq!(
        names(&target, ".", one).0,
        [".env", ".github", ".gitignore", "a.rs", "kept.txt", "src"]
    );
    assert_eq!(
        names(&target, "src", one),
        (vec!["b.rs".into(), "deep".into()], Rules::Kept)
    );
    assert_eq!(names(&target, "src", Depth::All).0, ["b.rs", "deep", "deep/c.rs"]);
    assert_eq!(
        names(&target, "build", Depth::All),
        (vec!["out".into(), "out/x".into()], Rules::HideAll)
    );
    assert_eq!(names(&target, ".git", one).0, ["objects"]);
}

fn target(root: &Path) -> Target {
    Target::open(TargetSpec {
        roots: vec![root.into()],
        cwd: root.into(),
        ..TargetSpec::default()
    })
    .unwrap()
}

fn write(root: &Path, files: &[&str]) {
    for file in files {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
}

#[test]
fn the_nearest_rule_speaks_and_an_exception_brings_a_file_back() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(
        root,
        &[
            "a.log",
            "kept.log",
            "sub/a.log",
            "sub/b.log",
            "sub/c.tmp",
            "local.txt",
            "own.txt",
        ],
    );
    std::fs::create_dir_all(root.join(".git/info")).unwrap();
    std::fs::write(root.join(".git/info/exclude"), "/local.txt\n").unwrap();
    std::fs::write(root.join(".gitignore"), "*.log\n!/kept.log\n*.tmp\nown.txt\n").unwrap();
    std::fs::write(root.join("sub/.gitignore"), "!b.log\n").unwrap();
    std::fs::write(root.join(".ignore"), "!own.txt\n").unwrap();
    assert_eq!(
        names(&target(root), ".", Depth::All).0,
        [
            ".gitignore",
            ".ignore",
            "kept.log",
            "own.txt",
            "sub",
            "sub/.gitignore",
            "sub/b.log"
        ]
    );
}

#[test]
fn rules_that_are_a_pipe_a_device_or_endless_are_no_rules_and_nobody_waits_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, &["a.rs", "pipe/a.rs", "huge/a.rs"]);
    symlink("/dev/zero", root.join(".gitignore")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe/.gitignore"), rustix::fs::Mode::RWXU).unwrap();
    let huge = std::fs::File::create(root.join("huge/.gitignore")).unwrap();
    huge.set_len(5 << 30).unwrap();
    let (names, rules) = names(&target(root), ".", Depth::All);
    let sources: Vec<_> = names.iter().filter(|name| name.ends_with(".rs")).collect();
    assert_eq!(sources, ["a.rs", "huge/a.rs", "pipe/a.rs"]);
    assert_eq!(rules, Rules::Kept);
}

#[test]
fn a_directory_that_becomes_a_link_on_the_way_is_not_gone_through() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = dir.path();
    write(root, &["sub/mine"]);
    write(outside.path(), &["theirs"]);
    symlink(outside.path(), root.join("link")).unwrap();
    let done = AtomicBool::new(false);
    let swap = || {
        rustix::fs::renameat_with(
            rustix::fs::CWD,
            root.join("sub"),
            rustix::fs::CWD,
            root.join("link"),
            rustix::fs::RenameFlags::EXCHANGE,
        )
    };
    let mut left = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                swap().unwrap();
            }
        });
        let target = target(root);
        for _ in 0..2_000 {
            let (names, _) = names(&target, ".", Depth::All);
            left.extend(names.into_iter().filter(|name| name.ends_with("theirs")));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(left.is_empty(), "{left:?}");
}
