//! Durations in arguments: `45s`, `10m`, `1m 30s`.

use std::time::Duration;

/// How long a call may wait. A turn that waits longer than this shows its model nothing for too long.
const LIMIT: Duration = Duration::from_secs(600);

/// The duration that `text` says.
///
/// # Errors
/// It says none, or one longer than 10 minutes; the text is for the model.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a duration such as \"90s\" or \"5m\"".to_owned();
    let span: jiff::SignedDuration = text.trim().parse().map_err(|_| wrong())?;
    let duration = Duration::try_from(span).map_err(|_| wrong())?;
    if duration > LIMIT {
        return Err("at most \"10m\"; poll again after that".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_bounded_and_need_a_unit() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse(" 10m "), Ok(LIMIT));
        for wrong in ["", "5", "-5s", "11m", "1h", "soon", "999999999999999999999s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
