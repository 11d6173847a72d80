//! Tests that cannot run here say so, and are counted: `.ci/run` prints how many and why. The daemon's own tests take this file in
//! as a module too.

use std::io::Write;
use std::path::PathBuf;

/// The variable that tells a test that it is in an inner run, which starts no other.
pub const INNER: &str = "AGENTD_TEST_INNER";

/// Whether this is an inner run.
pub fn is_inner() -> bool {
    std::env::var_os(INNER).is_some()
}

/// The directory of the build profile that this test was built in; `None` where cargo does not put tests.
pub fn profile_dir() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let dir = test.parent()?;
    let dir = if dir.ends_with("deps") { dir.parent()? } else { dir };
    Some(dir.to_owned())
}

/// Notes that the running test is skipped because of `reason`.
pub fn note(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIP {}: {reason}\n", thread.name().unwrap_or("a test"));
    // Not by a macro, whose words the test runner keeps to itself.
    let _ = std::io::stderr().write_all(line.as_bytes());
    // The outer run takes note of what an inner one skips.
    if is_inner() {
        return;
    }
    if let Some(dir) = profile_dir() {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(dir.join("../skips.txt"));
        // One write a line: tests of one process skip at the same time.
        let _ = file.map(|mut file| file.write_all(line.as_bytes()));
    }
}
