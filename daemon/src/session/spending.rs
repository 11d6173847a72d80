//! What model calls of all sessions have cost today, UTC, kept beside the log so that no decision waits for a sum over it.

use crate::log::{EventLog, LogError};
use protocol::Time;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// Shared by all sessions.
#[derive(Debug, Default)]
pub(crate) struct Spending(Mutex<Day>);

#[derive(Debug, Default, Clone, Copy)]
struct Day {
    /// Days since 1970.
    number: i64,
    /// US dollars of the calls whose price is known.
    cost: f64,
}

impl Spending {
    /// What the log says of the day of `now`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) async fn read(log: &EventLog, now: Time) -> Result<Self, LogError> {
        let number = now.0.div_euclid(DAY_MS);
        let cost = log.cost_since(number * DAY_MS).await?;
        Ok(Self(Mutex::new(Day { number, cost })))
    }

    /// A call was paid for.
    pub(crate) fn note(&self, at: Time, cost: f64) {
        self.on(at).cost += cost;
    }

    /// US dollars of the day of `at`.
    pub(crate) fn on_day(&self, at: Time) -> f64 {
        self.on(at).cost
    }

    /// The day of `at`; a later one begins with nothing, and of an earlier one nothing is known any more.
    fn on(&self, at: Time) -> MutexGuard<'_, Day> {
        let mut day = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = at.0.div_euclid(DAY_MS);
        if number > day.number {
            *day = Day { number, cost: 0.0 };
        }
        day
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_day_begins_with_nothing() {
        let spending = Spending::default();
        spending.note(Time(DAY_MS + 5), 0.5);
        spending.note(Time(2 * DAY_MS - 1), 0.25);
        assert!((spending.on_day(Time(DAY_MS)) - 0.75).abs() < 1e-9);
        assert!(spending.on_day(Time(2 * DAY_MS)).abs() < 1e-9);
    }
}
