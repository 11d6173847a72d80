//! Wall time on the wire: RFC 3339 in UTC with milliseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z; RFC 3339 text on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Time(pub i64);

/// The last millisecond that RFC 3339 can write: the end of the year 9999.
const LATEST_MS: i64 = 253_402_207_200_000;

impl Time {
    /// This moment by the machine's clock, which may have been set back since the last call.
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_millisecond())
    }

    /// This moment and `ms` more.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms).min(LATEST_MS))
    }

    /// Milliseconds from `earlier` to this moment, 0 if it lies after it.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl Time {
    /// The time of day where the person is, `14:32`; with the day where it is another one than that of `now`.
    pub fn clock(self, now: Self) -> String {
        let here = |time: Self| {
            let at = jiff::Timestamp::from_millisecond(time.0).ok()?;
            Some(at.to_zoned(jiff::tz::TimeZone::system()))
        };
        match (here(self), here(now)) {
            (Some(at), Some(now)) if at.date() == now.date() => at.strftime("%H:%M").to_string(),
            (Some(at), _) => at.strftime("%Y-%m-%d %H:%M").to_string(),
            (None, _) => self.to_string(),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "out of range"),
        }
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for Time {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse::<jiff::Timestamp>().map(|at| Self(at.as_millisecond()))
    }
}
