//! The project's programs, built once a test process in the profile of the tests.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where the built programs lie.
#[derive(Debug)]
pub struct Bins(PathBuf);

impl Bins {
    /// The daemon.
    pub fn agentd(&self) -> PathBuf {
        self.0.join("agentd")
    }

    /// The command line.
    pub fn agentctl(&self) -> PathBuf {
        self.0.join("agentctl")
    }

    /// The terminal UI.
    pub fn agent_tui(&self) -> PathBuf {
        self.0.join("agent-tui")
    }

    /// The directory that holds them.
    pub fn dir(&self) -> &Path {
        &self.0
    }
}

/// The variable that names a directory with built programs, for a test process that may not build any.
pub const BUILT: &str = "AGENTD_TEST_BINS";

/// The programs as the sources are now.
///
/// # Errors
/// When they do not build.
pub fn bins() -> anyhow::Result<&'static Bins> {
    static BINS: OnceLock<Result<Bins, String>> = OnceLock::new();
    let built = BINS.get_or_init(|| match std::env::var_os(BUILT) {
        Some(dir) => Ok(Bins(dir.into())),
        None => build().map_err(|error| format!("{error:#}")),
    });
    built.as_ref().map_err(|error| anyhow::anyhow!("{error}"))
}

fn build() -> anyhow::Result<Bins> {
    let dir = crate::skip::profile_dir().context("the build profile's directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(root()).args([
        "build",
        "--quiet",
        "-p",
        "daemon",
        "-p",
        "client-cli",
        "-p",
        "client-tui",
    ]);
    if dir.ends_with("release") {
        build.arg("--release");
    }
    let built = build.output().context("cargo, to build the programs under test")?;
    ensure!(
        built.status.success(),
        "the programs under test do not build:\n{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Ok(Bins(dir))
}

/// The repository's root.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
