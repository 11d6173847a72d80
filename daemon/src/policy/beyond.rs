//! Whether a call that a person changed goes beyond the one they were shown.
//!
//! Somebody who turns `touch a` into `touch b` has seen what they typed; another command, a file outside the project or
//! one that holds secrets, or a line the judge cannot read to its end deserves the question it would have had by itself.

use super::facts::{Facts, PathFact};
use super::grant;
use super::shell::{self, Analysis, Part};

/// Whether `after` does anything of a kind that `before` did not.
#[must_use]
pub fn goes_beyond(before: &Facts, after: &Facts) -> bool {
    if after.host.is_some() && after.host != before.host {
        return true;
    }
    if sensitive(after).any(|path| !sensitive(before).any(|known| known.resolved == path.resolved)) {
        return true;
    }
    match (&before.command, &after.command) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(after)) if after.outside_sandbox && !before.outside_sandbox => true,
        (Some(before), Some(after)) => command_goes_beyond(&shell::analyse(before), &shell::analyse(after)),
    }
}

/// The files of a call that a person has to see named.
fn sensitive(facts: &Facts) -> impl Iterator<Item = &PathFact> {
    let operands = facts.command.iter().flat_map(|command| &command.operands);
    let closer = |path: &&PathFact| !path.is_plain();
    facts.paths.iter().chain(operands).filter(closer)
}

fn command_goes_beyond(before: &Analysis, after: &Analysis) -> bool {
    let known = |part: &Part| {
        before
            .parts
            .iter()
            .any(|known| heads(known) == heads(part) && covers_extras(known, part))
    };
    after.unseen.is_some()
        || after.asks.iter().any(|reason| !before.asks.contains(reason))
        || after.parts.iter().any(|part| !part.is_harmless() && !known(part))
}

/// The words that say what a command does: as many as an allowance would name, all of them where none could.
fn heads(part: &Part) -> Vec<String> {
    let words = part.sure_words();
    grant::prefix(&words).unwrap_or(words)
}

fn covers_extras(known: &Part, part: &Part) -> bool {
    part.extras.iter().all(|extra| known.extras.contains(extra))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::facts::{Access, CommandFact, Inside};

    fn command(text: &str) -> Facts {
        let command = CommandFact {
            text: text.to_owned(),
            cwd: "/p".into(),
            roots: vec!["/p".into()],
            ..CommandFact::default()
        };
        Facts {
            tool: "bash".to_owned(),
            writes: true,
            command: Some(command),
            ..Facts::default()
        }
    }

    fn file(name: &str, inside: Inside) -> Facts {
        let path = PathFact {
            shown: name.to_owned(),
            resolved: name.into(),
            inside,
            access: Access::Write,
            secret: name.contains(".env"),
            protected: false,
            foreign: false,
        };
        Facts {
            tool: "write_file".to_owned(),
            writes: true,
            paths: vec![path],
            ..Facts::default()
        }
    }

    #[test]
    fn the_same_command_on_another_file_does_not_and_another_command_does() {
        for (before, after, beyond) in [
            ("touch a", "touch b", false),
            ("touch a", "touch b && ls", false),
            ("cargo test", "cargo test -p x", false),
            ("cargo test", "cargo publish", true),
            ("touch a", "rm -rf x", true),
            ("ls && touch a", "touch a; rm b", true),
            ("rm a", "rm b", true),
            ("touch a", "touch a > /etc/x", true),
            ("touch a", "X=1 touch a", true),
            ("touch a", "$(touch a) \"", true),
        ] {
            assert_eq!(
                goes_beyond(&command(before), &command(after)),
                beyond,
                "{before} -> {after}"
            );
        }
    }

    #[test]
    fn a_file_outside_or_with_secrets_does_unless_it_was_shown() {
        let inside = file("/p/a", Inside::Inside);
        assert!(!goes_beyond(&inside, &file("/p/b", Inside::Inside)));
        assert!(goes_beyond(&inside, &file("/etc/a", Inside::Outside)));
        assert!(goes_beyond(&inside, &file("/p/.env", Inside::Inside)));
        assert!(!goes_beyond(
            &file("/etc/a", Inside::Outside),
            &file("/etc/a", Inside::Outside)
        ));
    }
}
