//! How long a provider asks to wait, from whichever of its headers or words say so.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::header::HeaderMap;

/// The longest wait the headers ask for, `None` when they say nothing. `now` is for headers that name a moment.
///
/// Read are `retry-after-ms`, `retry-after` (seconds or a date) and, without those, the reset times of counters that stand at 0.
pub(super) fn from_headers(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = text("retry-after-ms")
        .and_then(|value| value.parse::<f64>().ok())
        .and_then(|ms| seconds(ms / 1000.0));
    let after = text("retry-after").and_then(|value| match value.parse::<f64>() {
        Ok(count) => seconds(count),
        Err(_) => until(rfc2822::parse(value).ok()?.timestamp(), now),
    });
    millis.max(after).or_else(|| {
        let empty = COUNTERS.iter().filter(|(remaining, _)| text(remaining) == Some("0"));
        empty.filter_map(|(_, reset)| moment(text(reset)?, now)).max()
    })
}

/// Headers that say how much is left of an allowance, each with the one that says when there is more.
const COUNTERS: [(&str, &str); 8] = [
    (
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ),
    (
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ),
    (
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-reset",
    ),
    (
        "anthropic-ratelimit-output-tokens-remaining",
        "anthropic-ratelimit-output-tokens-reset",
    ),
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
];

/// Numbers from here on count from 1970: no allowance is renewed only after 30 years.
const EPOCH_SECONDS: f64 = 1e9;

/// Numbers from here on are milliseconds.
const EPOCH_MILLIS: f64 = 1e12;

/// The wait until a reset: a moment, a span such as `6m0s`, seconds from now, or a number of seconds or milliseconds since 1970.
fn moment(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return until(moment, now);
    }
    let Ok(number) = text.parse::<f64>() else {
        return from_span(text);
    };
    let since_epoch = || Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
    match number {
        millis if millis >= EPOCH_MILLIS => Some(seconds(millis / 1000.0)?.saturating_sub(since_epoch())),
        epoch if epoch >= EPOCH_SECONDS => Some(seconds(epoch)?.saturating_sub(since_epoch())),
        count => seconds(count),
    }
}

/// The wait a message names: "try again in 18.642s", "retry in 750ms", "try again in 1m30s", "after 20 seconds".
pub(super) fn from_message(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    let rest = ["again in ", "retry in ", "retry after "].iter().find_map(|lead| {
        let at = lower.find(lead)?;
        lower.get(at + lead.len()..)
    })?;
    from_span(rest)
}

/// The wait that `text` begins with: `34.07s`, `1m30s`.
pub(super) fn from_span(text: &str) -> Option<Duration> {
    let mut total = None;
    let mut rest = text;
    while let Some((wait, left)) = leading_span(rest) {
        total = Some(total.unwrap_or(Duration::ZERO).saturating_add(wait));
        rest = left;
    }
    total
}

/// The number and unit `text` begins with, and what follows them directly.
fn leading_span(text: &str) -> Option<(Duration, &str)> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let count: f64 = text.get(..digits)?.trim_end_matches('.').parse().ok()?;
    let after = text.get(digits..)?.trim_start();
    let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
    let unit = match after.get(..letters)? {
        "ms" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Some((seconds(count * unit)?, after.get(letters..)?))
}

fn seconds(count: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(count).ok()
}

fn until(moment: Timestamp, now: Timestamp) -> Option<Duration> {
    Some(Duration::try_from(moment.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn wait(headers: &[(&str, &str)]) -> anyhow::Result<Option<Duration>> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.parse::<HeaderName>()?, value.parse::<HeaderValue>()?);
        }
        Ok(from_headers(&map, "2026-01-02T03:04:05Z".parse()?))
    }

    #[test]
    fn headers_say_how_long_in_seconds_milliseconds_or_a_date() -> anyhow::Result<()> {
        assert_eq!(wait(&[])?, None);
        assert_eq!(wait(&[("retry-after", "7")])?, Some(Duration::from_secs(7)));
        assert_eq!(wait(&[("retry-after-ms", "250")])?, Some(Duration::from_millis(250)));
        assert_eq!(
            wait(&[("retry-after-ms", "0"), ("retry-after", "1")])?,
            Some(Duration::from_secs(1))
        );
        assert_eq!(
            wait(&[("retry-after", "Fri, 02 Jan 2026 03:05:05 GMT")])?,
            Some(Duration::from_secs(60))
        );
        assert_eq!(
            wait(&[("retry-after", "Fri, 02 Jan 2026 03:00:00 GMT")])?,
            Some(Duration::ZERO)
        );
        assert_eq!(wait(&[("retry-after", "soon")])?, None);
        assert_eq!(wait(&[("retry-after", "1e300")])?, None);
        Ok(())
    }

    #[test]
    fn an_exhausted_counter_names_its_reset() -> anyhow::Result<()> {
        let reset = ("anthropic-ratelimit-tokens-reset", "2026-01-02T03:04:35Z");
        assert_eq!(
            wait(&[("anthropic-ratelimit-tokens-remaining", "0"), reset])?,
            Some(Duration::from_secs(30))
        );
        assert_eq!(wait(&[("anthropic-ratelimit-tokens-remaining", "9"), reset])?, None);
        for (reset, wanted) in [
            ("1s", 1_000),
            ("6m0s", 360_000),
            ("120ms", 120),
            ("2m59.56s", 179_560),
            ("30", 30_000),
            ("1767323075", 30_000),
            ("1767323075000", 30_000),
        ] {
            let headers = [
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", reset),
            ];
            assert_eq!(wait(&headers)?, Some(Duration::from_millis(wanted)), "{reset}");
        }
        assert_eq!(
            wait(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "soon")])?,
            None
        );
        Ok(())
    }

    #[test]
    fn messages_name_waits_in_words() {
        let cases = [
            ("Please try again in 18.642s. Visit", Some(18_642)),
            ("try again in 750ms", Some(750)),
            ("Please try again in 1m30.5s.", Some(90_500)),
            ("retry after 20 seconds", Some(20_000)),
            ("please try again in a while", None),
            ("no wait named", None),
        ];
        for (message, millis) in cases {
            assert_eq!(from_message(message), millis.map(Duration::from_millis), "{message}");
        }
    }
}
