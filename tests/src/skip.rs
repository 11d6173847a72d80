//! Tests that cannot run here say so, and are counted: `.ci/run` prints how many and why.

use std::io::Write;

/// Notes that the running test is skipped because of `reason`. Use it through [`skip!`](crate::skip!).
pub fn note(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIP {}: {reason}\n", thread.name().unwrap_or("a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
    // The outer run takes note of what an inner one skips.
    if crate::machine::is_inner() {
        return;
    }
    if let Ok(dir) = crate::bins::profile_dir() {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(dir.join("../skips.txt"));
        // One write a line: tests of one process skip at the same time.
        let _ = file.map(|mut file| file.write_all(line.as_bytes()));
    }
}

/// Ends the running test as skipped: `skip!("tmux is not installed")`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::skip::note(&format!($($reason)*));
        return Ok(());
    }};
}
