//! When a search through files has to end: a person asked for it, or it took too long.

use std::time::{Duration, Instant};

use super::{Ended, Outcome, StopLevel, StopSignal};

/// How long one search may take. A tree that needs more is searched in parts.
const SEARCH_LIMIT: Duration = Duration::from_secs(30);

/// Looked at between two files; never blocks.
pub(super) struct Patience {
    stop: StopSignal,
    until: Instant,
}

impl Patience {
    pub(super) fn new(stop: StopSignal) -> Self {
        Self {
            stop,
            until: Instant::now() + SEARCH_LIMIT,
        }
    }

    /// Whether to give up.
    pub(super) fn is_over(&self) -> bool {
        self.is_stopped() || Instant::now() >= self.until
    }

    /// A closed channel means that nobody wants the call any more.
    fn is_stopped(&self) -> bool {
        *self.stop.borrow() > StopLevel::Run || self.stop.has_changed().is_err()
    }

    /// The end of the search, which says if it was cut short.
    pub(super) fn end(&self, found: String) -> Ended {
        if self.is_stopped() {
            return Ended::new(
                Outcome::Stopped,
                format!("{found}[stopped; this is what was found until then]\n"),
            );
        }
        if Instant::now() >= self.until {
            let text = format!(
                "{found}[ended after {} s; this is what was found until then]\n",
                SEARCH_LIMIT.as_secs()
            );
            return Ended::new(Outcome::TimedOut, text);
        }
        Ended::new(Outcome::Ok, found)
    }
}
