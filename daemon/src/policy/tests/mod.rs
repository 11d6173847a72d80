//! Whole judgements: the recorded abuse cases, cases of our own, the order of rules and modes, random input.

mod abuse;
mod order;
mod own;
mod random;
mod rules;

use std::path::{Path, PathBuf};

use super::{Mode, Rule, Verdict, judge_command};

const ROOT: &str = "/home/dev/work/project";

/// Judges a line typed in a project below a home directory.
fn line(text: &str, mode: Mode, rules: &[Rule]) -> Verdict {
    judge_command(
        text,
        Path::new(ROOT),
        &[PathBuf::from(ROOT)],
        Some(Path::new("/home/dev")),
        mode,
        rules,
    )
}
