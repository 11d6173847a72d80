//! The time sessions go by. A session's clock is wall time when the session was opened, carried on by a clock that nobody can set and
//! that counts while the machine sleeps, and it is never before the last event of the log. So a jump of the wall clock moves no
//! deadline, and a night in suspend does not lengthen one.

use protocol::Time;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::time::Instant;

/// Longest sleep towards a deadline. Timers stand still while the machine sleeps, so a deadline that passed in the meantime is noticed
/// so long after waking at the latest.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The clock that counts from the machine's start, its sleep included, and is never set.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UP: ClockId = ClockId::Boottime;
/// Here the monotonic clock counts the machine's sleep.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const UP: ClockId = ClockId::Monotonic;

/// Where time is read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    /// What the machine believes the time to be; it may jump.
    pub(crate) wall: fn() -> Time,
    /// Time since some fixed moment, the machine's sleep included; it never jumps.
    pub(crate) up: fn() -> Duration,
}

impl Clocks {
    /// The machine's own.
    pub(crate) const MACHINE: Self = Self {
        wall: Time::now,
        up: since_start,
    };
}

fn since_start() -> Duration {
    let now = clock_gettime(UP);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

/// Tells a session's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionClock {
    anchor: Time,
    since: Duration,
    up: fn() -> Duration,
}

impl SessionClock {
    /// A clock that begins now, or at the log's last event where that is later.
    pub(crate) fn new(clocks: Clocks, last_event: Time) -> Self {
        Self {
            anchor: (clocks.wall)().max(last_event),
            since: (clocks.up)(),
            up: clocks.up,
        }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        let elapsed = (self.up)().saturating_sub(self.since);
        self.anchor
            .plus_ms(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    /// When this clock shows `at`, if the machine stays awake until then; now where it has passed.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        Instant::now() + Duration::from_millis(at.ms_since(self.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Seconds that the machine has been up.
    static UP_SECS: AtomicU64 = AtomicU64::new(100);

    #[test]
    fn what_the_machine_sleeps_counts_and_what_its_clock_is_set_to_does_not() {
        let clocks = Clocks {
            wall: || Time(1_000_000 - i64::try_from(UP_SECS.load(Ordering::SeqCst)).unwrap_or(0)),
            up: || Duration::from_secs(UP_SECS.load(Ordering::SeqCst)),
        };
        let clock = SessionClock::new(clocks, Time(0));
        let (begun, due) = (clock.now(), clock.now().plus_ms(3_600_000));
        assert!(clock.instant(due) > Instant::now() + Duration::from_secs(3_000));
        // An hour asleep: no timer has moved, and the wall clock was set back.
        UP_SECS.fetch_add(3_600, Ordering::SeqCst);
        assert_eq!(clock.now().ms_since(begun), 3_600_000);
        assert!(clock.instant(due) <= Instant::now(), "the deadline has passed");
    }

    #[test]
    fn a_clock_never_shows_a_time_before_the_last_event() {
        let clocks = Clocks {
            wall: || Time(5),
            up: || Duration::ZERO,
        };
        assert_eq!(SessionClock::new(clocks, Time(9)).now(), Time(9));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machines_clock_is_the_one_that_counts_its_sleep() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let seconds: f64 = uptime
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(f64::NAN);
        let shown = (Clocks::MACHINE.up)().as_secs_f64();
        assert!((shown - seconds).abs() < 5.0, "{shown} is not {seconds}");
    }
}
