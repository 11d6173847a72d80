//! The approval mode as the list of sessions keeps it: its name, and for a timed one its end and what follows, so that a session that
//! does not live is listed with the mode in force now. Such as `ask` or `all until 1795327200000 then ask`.

use protocol::{Mode, Settings, Time};

/// What the column holds for these settings.
pub(crate) fn written(settings: &Settings) -> String {
    match settings.mode_until {
        None => settings.mode.to_string(),
        Some(until) => format!(
            "{} until {} then {}",
            settings.mode,
            until.0,
            settings.mode_after.unwrap_or_default()
        ),
    }
}

/// The mode in force at a moment and when it ends; what cannot be read counts as `ask`.
pub(crate) fn in_force(column: &str, at: Time) -> (Mode, Option<Time>) {
    let mode = |word: Option<&str>| word.and_then(|word| serde_json::from_value(word.into()).ok());
    let mut words = column.split(' ');
    let settings = Settings {
        mode: mode(words.next()).unwrap_or_default(),
        mode_until: words.nth(1).and_then(|word| word.parse().ok()).map(Time),
        mode_after: mode(words.nth(1)),
        ..Settings::default()
    };
    settings.mode_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_mode_is_read_as_what_holds_at_the_moment() {
        let timed = Settings {
            mode: Mode::All,
            mode_until: Some(Time(2_000)),
            mode_after: Some(Mode::Edits),
            ..Settings::default()
        };
        let column = written(&timed);
        assert_eq!(in_force(&column, Time(1_999)), (Mode::All, Some(Time(2_000))));
        assert_eq!(in_force(&column, Time(2_000)), (Mode::Edits, None));
    }

    #[test]
    fn a_mode_without_an_end_is_its_name_and_nonsense_is_the_narrowest() {
        for mode in [Mode::Ask, Mode::Edits, Mode::All, Mode::None] {
            let settings = Settings {
                mode,
                ..Settings::default()
            };
            assert_eq!(written(&settings), mode.to_string());
            assert_eq!(in_force(&written(&settings), Time(1)), (mode, None));
        }
        assert_eq!(in_force("whatever", Time(1)), (Mode::Ask, None));
    }
}
