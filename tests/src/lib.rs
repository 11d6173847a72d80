//! The workplace of the tests: a scripted model server, a real daemon in a home of its own, a socket client that speaks
//! bare JSON lines, and readers of what a daemon leaves on disk.
//!
//! Everything here answers `anyhow::Result` and waits for facts with [`soon`]: a wait that takes too long is an error that
//! names what did not come.

pub mod bins;
pub mod daemon;
pub mod log;
pub mod machine;
pub mod model_server;
pub mod oauth_server;
pub mod process;
pub mod raw_server;
pub mod real_model;
pub mod skip;
pub mod socket;
pub mod terminal;
pub mod tls_server;

use anyhow::Context;
use std::time::Duration;

/// Ends the running test as skipped: `skip!("tmux is not installed")`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::skip::note(&format!($($reason)*));
        return Ok(());
    }};
}

/// How long a fact may take to come. Far over what anything here needs on a busy machine, so that only a fault reaches it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for `fact`, at most [`PATIENCE`].
///
/// # Errors
/// When it does not come; the message names `what`.
pub async fn soon<T>(what: &str, fact: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, fact)
        .await
        .with_context(|| format!("{what}: it did not happen within {} s", PATIENCE.as_secs()))
}
