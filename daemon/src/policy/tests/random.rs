//! Random input: judging never fails, never takes long, and never lets a destructive command through.

use proptest::prelude::*;

use super::{line, own};
use crate::policy::{Decision, Mode};

const DESTRUCTIVE: &[&str] = &[
    "rm -rf /",
    "rm -fr ~",
    "git push --force",
    "mkfs.ext4 /dev/sda1",
    "chmod -R 777 /etc",
    "dd if=x of=/dev/sdb",
    "agentctl approve 1",
    "reboot",
    ":(){ :|:& };:",
];

const JOINS: &[&str] = &["; ", " && ", " || ", " | ", "\n", " & ", "; ! ", " |& "];

/// Pieces of shell syntax, so that random strings reach the parser's corners.
fn shell_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("$(".to_owned()),
        Just(")".to_owned()),
        Just("(".to_owned()),
        Just("{ ".to_owned()),
        Just(" }".to_owned()),
        Just("`".to_owned()),
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("$'".to_owned()),
        Just("${x:-".to_owned()),
        Just("}".to_owned()),
        Just("<<EOF\n".to_owned()),
        Just("\nEOF\n".to_owned()),
        Just("((".to_owned()),
        Just("))".to_owned()),
        Just("[[ ".to_owned()),
        Just(" ]]".to_owned()),
        Just("if ".to_owned()),
        Just("; then ".to_owned()),
        Just("; fi ".to_owned()),
        Just("case x in ".to_owned()),
        Just(" ;; esac ".to_owned()),
        Just("for i in ".to_owned()),
        Just("; do ".to_owned()),
        Just("; done ".to_owned()),
        Just("f() ".to_owned()),
        Just("{a,b,{c..z}}".to_owned()),
        Just(" | ".to_owned()),
        Just(" & ".to_owned()),
        Just("\\".to_owned()),
        Just("* ".to_owned()),
        Just("x=".to_owned()),
        Just("$x".to_owned()),
        Just("<(".to_owned()),
        Just("> ".to_owned()),
        Just("2>&1 ".to_owned()),
        Just("sh -c ".to_owned()),
        Just("xargs ".to_owned()),
        Just("env -S ".to_owned()),
        Just("find / -exec ".to_owned()),
        Just("rm -rf / ".to_owned()),
        Just("git push -f ".to_owned()),
        "[ -~]{0,6}",
        "\\PC{0,3}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_judged(text in prop_oneof![any::<String>(), shell_text()]) {
        let verdict = line(&text, Mode::Ask, &[]);
        prop_assert!(!verdict.reason.is_empty());
    }

    #[test]
    fn a_destructive_part_is_never_allowed(
        before in prop_oneof![Just("ls".to_owned()), Just("true".to_owned()), "[a-z]{1,8}( [a-z./-]{1,8}){0,3}"],
        after in prop_oneof![Just(String::new()), Just("ls".to_owned()), shell_text()],
        first in prop::sample::select(JOINS),
        second in prop::sample::select(JOINS),
        bad in prop::sample::select(DESTRUCTIVE),
    ) {
        let text = format!("{before}{first}{bad}{second}{after}");
        for mode in [Mode::Ask, Mode::Edits] {
            prop_assert_ne!(line(&text, mode, &[]).decision, Decision::Allow, "{}", text);
        }
        // Where the line as a whole can be read it is blocked outright.
        if line(&format!("{first}{after}"), Mode::All, &[]).decision == Decision::Allow {
            prop_assert_ne!(line(&text, Mode::All, &[]).decision, Decision::Allow, "{}", text);
        }
    }
}

#[test]
fn what_is_nested_or_long_beyond_the_bounds_asks_at_once() {
    let deep: &[fn(usize) -> String] = &[
        |n| "(".repeat(n),
        |n| format!("{}ls{}", "(".repeat(n), ")".repeat(n)),
        |n| format!("echo {}{}", "$(".repeat(n), ")".repeat(n)),
        |n| format!("echo {}{}", "\"$(".repeat(n), ")\"".repeat(n)),
        |n| format!("echo {}{}", "${a:-".repeat(n), "}".repeat(n)),
        |n| format!("{}ls;{}", "{ ".repeat(n), " }".repeat(n)),
        |n| "case a in a) ".repeat(n),
        |n| "((".repeat(n),
        |n| "if ".repeat(n),
        |n| "[[ ! ".repeat(n),
        |n| format!("echo {}{}", "{a,".repeat(n), "}".repeat(n)),
        |n| format!("echo {}", "{a,b}".repeat(n)),
        |n| "! ".repeat(n),
        |n| "ls;".repeat(n),
        |n| "sh -c ".repeat(n),
        |n| format!("rm {}", "x".repeat(n)),
        |n| "f() { f2; }; ".repeat(n),
        |n| "echo $((".repeat(n),
        |n| "x=$x$x;".repeat(n),
    ];
    for (i, make) in deep.iter().enumerate() {
        for size in [9, 16, 30, 60, 200, 5_000, 100_000] {
            let text = make(size);
            let started = std::time::Instant::now();
            let verdict = line(&text, Mode::None, &[]);
            assert!(verdict.decision >= Decision::Allow);
            assert!(
                started.elapsed().as_secs() < 5,
                "pattern {i} with {size} took {:?}",
                started.elapsed()
            );
        }
    }
    assert_eq!(line(&"ls; ".repeat(1_001), Mode::All, &[]).decision, Decision::Ask);
    assert_eq!(line(&"ls; ".repeat(999), Mode::Ask, &[]).decision, Decision::Allow);
}

#[test]
fn scripts_inside_scripts_are_followed_sixteen_deep() {
    let nest = |depth: usize| (0..depth).fold("rm -rf /".to_owned(), |inner, _| format!("eval {inner}"));
    assert_eq!(line(&nest(14), Mode::All, &[]).decision, Decision::Blocked);
    assert_eq!(line(&nest(40), Mode::All, &[]).decision, Decision::Ask);
}

/// The same numbers for the same seed, so that a line that fails can be found again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end.max(1)
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Ways to say the same thing.
const DISGUISES: &[fn(&str) -> String] = &[
    |text| format!("true; {text}"),
    |text| format!("{text}\ntrue"),
    |text| format!("ls -la | head && {{ {text}\n}}"),
    |text| format!("({text}\n)"),
    |text| format!("bash -c {}", quoted(text)),
    |text| format!("sudo -n timeout 5 sh -c {}", quoted(text)),
    |text| format!("eval {}", quoted(text)),
    |text| format!("x={}; eval \"$x\"", quoted(text)),
    |text| format!("bash <<'END{0}'\n{text}\nEND{0}", text.len()),
    |text| format!("bash <<< {}", quoted(text)),
];

#[test]
fn what_is_blocked_stays_blocked_in_every_disguise() {
    // `$0` and parameters mean something else in another shell, and a word of the shell's own is none in `eval`'s text.
    let depends = ["$0", "$*", "case ", "set --", "$1", "$@", "EOF", "trap", "'\\''"];
    let mut dice = Dice(1);
    let texts: Vec<String> = own::cases()
        .filter(|(verdict, text)| *verdict == "blocked" && !depends.iter().any(|word| text.contains(word)))
        .map(|(_, text)| text)
        .collect();
    let mut lifted = Vec::new();
    for text in &texts {
        for _ in 0..2 {
            let first = DISGUISES[dice.below(DISGUISES.len())](text);
            let twice = DISGUISES[dice.below(DISGUISES.len())](&first);
            for disguised in [first, twice] {
                let verdict = line(&disguised, Mode::All, &[]);
                if verdict.decision != Decision::Blocked {
                    lifted.push(format!("{disguised}\n  {}", verdict.reason));
                }
            }
        }
    }
    assert!(lifted.is_empty(), "{} lifted:\n{}", lifted.len(), lifted.join("\n"));
}

#[test]
fn any_slip_of_the_pen_is_judged() {
    const INK: &[&str] = &[
        "'",
        "\"",
        "`",
        "$(",
        ")",
        "{",
        "}",
        "((",
        "))",
        "<(",
        ">",
        "<<<",
        "|",
        "&",
        ";",
        "\\",
        "\n",
        " ",
        "*",
        "[[",
        "]]",
        "$",
        "${",
        "#",
        "!",
        "~",
        "=",
        "\r",
        "\u{202e}",
        "for x in ",
        "; do ",
        "; done",
        "[",
        "]",
        "xargs ",
        "-I{} ",
    ];
    let mut dice = Dice(2);
    let texts: Vec<String> = own::cases().map(|(_, text)| text).collect();
    for _ in 0..2_000 {
        let mut chars: Vec<char> = texts[dice.below(texts.len())].chars().take(2_000).collect();
        for _ in 0..=dice.below(4) {
            let at = dice.below(chars.len());
            match dice.below(3) {
                0 if !chars.is_empty() => drop(chars.remove(at)),
                1 => drop(chars.splice(at..at, INK[dice.below(INK.len())].chars())),
                _ => chars.truncate(at),
            }
        }
        let text: String = chars.into_iter().collect();
        assert!(!line(&text, Mode::Ask, &[]).reason.is_empty(), "{text}");
    }
}
