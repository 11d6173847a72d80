//! What is kept for how long: the history of a deleted session goes for good when its time of grace is over.

use std::time::Duration;

use protocol::Time;

use super::EventLog;
use super::error::LogError;

/// Time a deleted session can still be brought back.
pub(super) const GRACE_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Time between two looks. With the bound of [`EventLog::deleted_before`] a wall clock that jumps by years takes away a
/// tenth of the sessions in an hour, and of these only what somebody had deleted.
const BETWEEN: Duration = Duration::from_secs(60 * 60);

/// Takes away what is over, now and every hour. Never ends.
pub(crate) async fn take_away(log: EventLog, wall: fn() -> Time) {
    let mut looks = tokio::time::interval(BETWEEN);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Err(error) = once(&log, wall()).await {
            tracing::warn!(%error, "deleted sessions stay on the disk for now");
        }
    }
}

pub(super) async fn once(log: &EventLog, now: Time) -> Result<(), LogError> {
    for session in log.deleted_before(now.0.saturating_sub(GRACE_MS)).await? {
        log.purge(session).await?;
    }
    Ok(())
}
