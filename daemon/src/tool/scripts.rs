//! Which scripts a command names. Their content is part of what a person approves: `sh build.sh` means what `build.sh`
//! says, so the digest of the call covers it. Judging the command is policy's work; here a word that might be a script is
//! enough, because a file too many only makes the digest stricter.

use std::collections::BTreeMap;
use std::path::Path;

use crate::policy::facts::Inside;
use crate::target::Target;

use super::digest::content_hash;

/// Words of a command that are looked at; beyond them a command is no longer one a person reads.
const WORDS_LIMIT: usize = 512;

/// Scripts larger than this are told by their size and time instead of their content.
const SCRIPT_LIMIT_BYTES: u64 = 1024 * 1024;

/// What parts words in a shell command, roughly: a path with such a character in its name is missed.
const BREAKS: &[char] = &[
    ';', '|', '&', '(', ')', '<', '>', '\'', '"', '`', '$', '=', '{', '}', ',',
];

/// Stands for what a script holds that is not there, or is no script yet.
const ABSENT: &str = "absent";

/// Programs whose next operand is a script, whatever its name.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "source",
    ".",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "awk",
    "gawk",
    "sed",
    "make",
    "-f",
    "--file",
    "Rscript",
    "osascript",
    "tclsh",
    "expect",
];

/// Endings of names that are scripts.
const ENDINGS: &[&str] = &[
    "sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "awk", "sed", "mk", "ps1", "r",
    "tcl",
];

/// Path to content hash of each script inside the roots that `command` names.
pub(super) fn named_in(command: &str, cwd: &Path, target: &Target) -> BTreeMap<String, String> {
    let words = command
        .split(|c: char| c.is_whitespace() || BREAKS.contains(&c))
        .filter(|word| !word.is_empty());
    let mut scripts = BTreeMap::new();
    let mut previous = "";
    for word in words.take(WORDS_LIMIT) {
        let after_interpreter = is_interpreter(previous);
        if let Some((path, hash)) = script(word, after_interpreter, cwd, target) {
            scripts.insert(path, hash);
        }
        previous = word;
    }
    scripts
}

/// What an allow rule in these words is trusted for: path to content hash of each script inside the root that they name. What is not
/// there yet is named too, with a hash that no content has.
pub(crate) fn pinned_by(words: &str, target: &Target) -> BTreeMap<String, String> {
    let mut pinned = named_in(words, target.cwd(), target);
    let mut previous = "";
    for (place, word) in words.split_whitespace().take(WORDS_LIMIT).enumerate() {
        let program = place == 0 && word.contains('/');
        let interpreted = is_interpreter(previous) && ends_as_script(Path::new(word));
        let resolved = target.resolve_in(target.cwd(), word).ok();
        let resolved = resolved.filter(|resolved| resolved.inside == Inside::Inside && (program || interpreted));
        if let Some(resolved) = resolved {
            let path = resolved.path.display().to_string();
            pinned.entry(path).or_insert_with(|| ABSENT.to_owned());
        }
        previous = word;
    }
    pinned
}

fn is_interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&word.rsplit('/').next().unwrap_or_default())
}

fn script(word: &str, after_interpreter: bool, cwd: &Path, target: &Target) -> Option<(String, String)> {
    let resolved = target
        .resolve_in(cwd, word)
        .ok()
        .filter(|resolved| resolved.inside == Inside::Inside)?;
    let mut file = target.open_file(&resolved).ok()?;
    let executable = file.stat.st_mode & 0o111 != 0;
    let path = resolved.path.display().to_string();
    let Some(content) = file.read_up_to(SCRIPT_LIMIT_BYTES, word).ok()? else {
        let stat = file.stat;
        return executable.then(|| {
            (
                path,
                format!("{}:{}:{}", stat.st_size, stat.st_mtime, stat.st_mtime_nsec),
            )
        });
    };
    let is_script = executable || after_interpreter || content.starts_with(b"#!") || ends_as_script(&resolved.path);
    is_script.then(|| (path, content_hash(&content)))
}

fn ends_as_script(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::target::TargetSpec;

    #[test]
    fn scripts_are_found_by_name_content_or_interpreter_and_data_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (name, content) in [
            ("a.sh", "x"),
            ("b", "#!/bin/sh\n"),
            ("c.txt", "x"),
            ("data.txt", "x"),
            ("d.py", "x"),
        ] {
            std::fs::write(root.join(name), content).unwrap();
        }
        let target = Target::open(TargetSpec {
            roots: vec![root.clone()],
            cwd: root.clone(),
            ..TargetSpec::default()
        })
        .unwrap();
        let found = |command: &str| -> Vec<String> {
            let scripts = named_in(command, &root, &target);
            scripts
                .keys()
                .map(|path| path.rsplit('/').next().unwrap().to_string())
                .collect()
        };
        assert_eq!(found("FOO=1 ./a.sh && (cat data.txt | ./b)"), ["a.sh", "b"]);
        assert_eq!(found("/bin/bash c.txt; cat data.txt"), ["c.txt"]);
        let pinned = |words: &str| pinned_by(words, &target).into_values().collect::<Vec<_>>();
        assert_eq!(pinned("./a.sh --all"), [content_hash(b"x")]);
        assert_eq!(pinned("sh c.txt"), [content_hash(b"x")]);
        for absent in ["./gone", "./data.txt", "sh gone.sh"] {
            assert_eq!(pinned(absent), [ABSENT], "{absent}");
        }
        for nothing in [
            "make test",
            "cargo run ./gone",
            "python3 -m gone",
            "sh *",
            "../a.sh",
            "/bin/gone",
        ] {
            assert!(pinned(nothing).is_empty(), "{nothing}");
        }
        assert_eq!(found("echo \"$(python3 d.py)\" absent.sh /etc/passwd"), ["d.py"]);
    }
}
