//! Values that several commands take: modes, durations, directories, unattended policies, ids and pieces of ids.

use protocol::{Mode, Unattended, UnattendedPolicy};
use std::path::PathBuf;

/// `--add-dir`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct AddedRoots {
    /// Let the session work in DIR, too, beside its project; may be repeated
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
}

/// `--mode` and its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModeWord {
    /// Ask before everything no rule allows
    Ask,
    /// Allow file edits inside the project, ask before commands
    Edits,
    /// Ask nothing and allow; what the guard blocks stays blocked
    All,
    /// Ask nothing and deny
    None,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Ask => Self::Ask,
            ModeWord::Edits => Self::Edits,
            ModeWord::All => Self::All,
            ModeWord::None => Self::None,
        }
    }
}

/// A mode, or for how long nothing is asked: `10m` is `all` for ten minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModeFor {
    pub(crate) mode: Mode,
    pub(crate) for_ms: Option<u64>,
}

/// `ask`, `edits`, `all`, `none`, or a duration.
pub(crate) fn mode_for(text: &str) -> Result<ModeFor, String> {
    use clap::ValueEnum;
    match (ModeWord::from_str(text, true), duration_ms(text)) {
        (Ok(word), _) => Ok(ModeFor {
            mode: word.into(),
            for_ms: None,
        }),
        (_, Ok(ms)) => Ok(ModeFor {
            mode: Mode::All,
            for_ms: Some(ms),
        }),
        _ => Err(format!(
            "`{text}` is no mode; use ask, edits, all, none, or a time such as `10m` for which all is allowed"
        )),
    }
}

/// Milliseconds of a duration such as `10m`, `1h 30m` or `45s`.
pub(crate) fn duration_ms(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no duration; write it as `45s`, `10m` or `1h 30m`");
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    u64::try_from(duration.as_millis())
        .ok()
        .filter(|ms| *ms > 0)
        .ok_or_else(wrong)
}

/// `wait`, `deny[:DURATION]` or `fail[:DURATION]`.
pub(crate) fn unattended(text: &str) -> Result<Unattended, String> {
    let (word, after) = match text.split_once(':') {
        Some((word, after)) => (word, Some(duration_ms(after)?)),
        None => (text, None),
    };
    let policy = match (word, after) {
        ("wait", None) => UnattendedPolicy::Wait,
        ("deny", _) => UnattendedPolicy::Deny,
        ("fail", _) => UnattendedPolicy::Fail,
        _ => return Err("write `wait`, `deny`, `fail`, or with a time `deny:10m`".to_owned()),
    };
    Ok(Unattended {
        policy,
        after_ms: after,
    })
}

/// Shortest piece of an id that is taken for one.
const PIECE: usize = 4;

/// What a text finds among ids.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    One(T),
    Nothing,
    Several,
}

/// Finds the one of `all` whose id is `text`, or begins or ends with it if it is 4 characters or more.
pub(crate) fn by_id<'a, T>(all: &'a [T], text: &str, id: impl Fn(&T) -> &str) -> Found<&'a T> {
    if let Some(exact) = all.iter().find(|one| id(one) == text) {
        return Found::One(exact);
    }
    let piece = |one: &&T| text.len() >= PIECE && (id(one).starts_with(text) || id(one).ends_with(text));
    let mut found = all.iter().filter(piece);
    match (found.next(), found.next()) {
        (None, _) => Found::Nothing,
        (Some(one), None) => Found::One(one),
        (Some(_), Some(_)) => Found::Several,
    }
}

/// Fewest last characters, 6 or more, that tell all ids apart.
pub(crate) fn short_length<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> usize {
    let longest = ids.clone().map(str::len).max().unwrap_or(0);
    let distinct = |length: usize| {
        let mut seen = std::collections::HashSet::new();
        ids.clone().all(|id| seen.insert(ending(id, length)))
    };
    (6..longest).find(|length| distinct(*length)).unwrap_or(longest.max(6))
}

/// The last `length` characters of an id.
pub(crate) fn ending(id: &str, length: usize) -> &str {
    id.get(id.len().saturating_sub(length)..).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!(duration_ms("10m"), Ok(600_000));
        assert_eq!(duration_ms("1h 30m"), Ok(5_400_000));
        assert_eq!(duration_ms("1500ms"), Ok(1_500));
        for wrong in ["", "10", "-5s", "0s", "soon"] {
            assert!(duration_ms(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unattended_policies_may_carry_a_time() {
        let read = |text| unattended(text).map(|policy| (policy.policy, policy.after_ms));
        assert_eq!(read("wait"), Ok((UnattendedPolicy::Wait, None)));
        assert_eq!(read("deny:10m"), Ok((UnattendedPolicy::Deny, Some(600_000))));
        assert_eq!(read("fail"), Ok((UnattendedPolicy::Fail, None)));
        assert!(read("wait:1s").is_err());
        assert!(read("allow").is_err());
    }

    #[test]
    fn a_piece_of_an_id_finds_one_or_says_it_is_not_enough() {
        let ids = ["0192-aaaa-1111", "0192-bbbb-2222", "0192-cccc-1111"];
        let find = |text| by_id(&ids, text, |id| id);
        assert_eq!(find("2222"), Found::One(&ids[1]));
        assert_eq!(find("0192-b"), Found::One(&ids[1]));
        assert_eq!(find("1111"), Found::Several);
        assert_eq!(find("222"), Found::Nothing);
        assert_eq!(find("9999"), Found::Nothing);
        assert_eq!(find("0192-aaaa-1111"), Found::One(&ids[0]));
    }

    #[test]
    fn short_ids_grow_until_they_differ() {
        let length = |ids: &[&'static str]| short_length(ids.iter().copied());
        assert_eq!(length(&["00000000aaaaaa", "00000000bbbbbb"]), 6);
        assert_eq!(length(&["0000001aaaaaaa", "0000002aaaaaaa"]), 8);
        assert_eq!(length(&[]), 6);
    }
}
