//! Cases of our own, in `cases.txt`: spellings of what the guard stops, what asks, and harmless commands.

use super::line;
use crate::policy::{Decision, Mode};

const CASES: &str = include_str!("cases.txt");

/// Verdict and command of each case.
pub(super) fn cases() -> impl Iterator<Item = (&'static str, String)> {
    CASES
        .lines()
        .filter_map(|row| row.split_once('\t'))
        .map(|(verdict, text)| (verdict, text.replace("\\n", "\n")))
}

fn expected(verdict: &str) -> Decision {
    match verdict {
        "blocked" => Decision::Blocked,
        "allow" => Decision::Allow,
        _ => Decision::Ask,
    }
}

#[test]
fn each_case_gets_its_verdict() {
    let wrong: Vec<String> = cases()
        .map(|(verdict, text)| (expected(verdict), line(&text, Mode::Ask, &[]), text))
        .filter(|(expected, verdict, _)| verdict.decision != *expected)
        .map(|(expected, verdict, text)| format!("{expected:?}: {text} -> {:?} {}", verdict.decision, verdict.reason))
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn mode_all_runs_everything_but_what_is_blocked_or_cannot_be_read() {
    for (verdict, text) in cases() {
        let decision = line(&text, Mode::All, &[]).decision;
        if verdict == "blocked" {
            assert_eq!(decision, Decision::Blocked, "{text}");
        } else {
            assert!(matches!(decision, Decision::Allow | Decision::Ask), "{text}");
        }
    }
    assert_eq!(line("cargo build", Mode::All, &[]).decision, Decision::Allow);
    assert_eq!(line("echo \"open", Mode::All, &[]).decision, Decision::Ask);
}

#[test]
fn mode_none_denies_what_would_ask() {
    for (verdict, text) in cases() {
        let decision = line(&text, Mode::None, &[]).decision;
        let wanted = if verdict == "ask" {
            Decision::Deny
        } else {
            expected(verdict)
        };
        assert_eq!(decision, wanted, "{text}");
    }
}

#[test]
fn what_a_wrapper_or_a_list_adds_never_lifts_a_block() {
    let around: &[fn(&str) -> String] = &[
        |text| format!("true && {{ {text}\n}}"),
        |text| format!("ls; ( {text}\n)"),
        |text| format!("if :; then {text}\nfi"),
        |text| format!("for i in 1 2; do {text}\ndone"),
        |text| format!("echo \"$({text}\n)\""),
        |text| format!("{text}\nls"),
    ];
    for (_, text) in cases().filter(|(verdict, text)| *verdict == "blocked" && !text.contains(['\n', '"', '#'])) {
        for wrap in around {
            let wrapped = wrap(&text);
            let decision = line(&wrapped, Mode::All, &[]).decision;
            // A condition around a script that starts itself makes it an ordinary recursion, and the grammar ends a
            // substitution at the parenthesis of a `case`: such lines cannot be judged and ask in every mode.
            let unjudged = text.contains("$0") || (text.starts_with("case") && decision == Decision::Ask);
            assert!(decision == Decision::Blocked || unjudged, "{wrapped} -> {decision:?}");
        }
    }
}
