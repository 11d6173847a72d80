//! A session's clock: wall time when it was opened, carried on by the monotonic clock, and never before the last event of the log.
//! The machine's wall clock may jump by hours without moving a deadline.

use protocol::Time;
use std::time::Duration;
use tokio::time::Instant;

/// Tells a session's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionClock {
    anchor: Time,
    since: Instant,
}

impl SessionClock {
    /// A clock that begins at `wall`, or at the log's last event where that is later.
    pub(crate) fn new(wall: Time, last_event: Time) -> Self {
        Self {
            anchor: wall.max(last_event),
            since: Instant::now(),
        }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        self.anchor
            .plus_ms(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// When this clock shows `at`.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.since + Duration::from_millis(at.ms_since(self.anchor))
    }
}
