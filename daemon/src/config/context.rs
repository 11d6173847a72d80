//! `[context]`: which files go into the prompt beside the built-in text and the project's own instructions, and which of them, or which
//! of their sections, do not. A project lists files of its own; the person may list files anywhere.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::error::ConfigError;

/// Entries of one list: the pieces of a prompt are named one by one in the record of each model call.
const ENTRIES: usize = 16;

/// Bytes of one entry, for the same reason.
const ENTRY_BYTES: usize = 256;

/// What a file says about the context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextSettings {
    /// In the order of the prompt.
    pub include: Vec<Listed>,
    pub exclude: Vec<Listed>,
}

/// A file, or one section of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Relative to the project's root, or absolute, as `~/` may make it.
    pub path: PathBuf,
    /// The heading of the section.
    pub heading: Option<String>,
    /// As people know it, with the heading.
    pub shown: String,
}

/// The table as written.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenContext {
    include: Vec<Spanned<String>>,
    exclude: Vec<Spanned<String>>,
}

/// Who says what stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// They may list files anywhere.
    Person,
    /// It may list its own.
    Project,
}

/// The lists of the file at `path`, checked. No message repeats an entry.
///
/// # Errors
/// Too many entries, one twice, one that is no name of a file, or one that a project may not list; with the line.
pub(super) fn read(
    path: &Path,
    text: &str,
    written: WrittenContext,
    owner: Owner,
) -> Result<ContextSettings, ConfigError> {
    let list = |key: &str, entries: Vec<Spanned<String>>| {
        let wrong = |span: Range<usize>, fault: Fault| {
            let message = format!("`context.{key}`: {fault}");
            ConfigError::at(path, text, Some(span), message, fault.hint().map(str::to_owned))
        };
        let mut listed: Vec<Listed> = Vec::new();
        for entry in entries {
            let span = entry.span();
            let entry = Listed::parse(entry.get_ref(), owner).map_err(|fault| wrong(span.clone(), fault))?;
            if listed.contains(&entry) {
                return Err(wrong(span, Fault::Twice));
            }
            if listed.len() == ENTRIES {
                return Err(wrong(span, Fault::TooMany));
            }
            listed.push(entry);
        }
        Ok(listed)
    };
    Ok(ContextSettings {
        include: list("include", written.include)?,
        exclude: list("exclude", written.exclude)?,
    })
}

/// Why an entry is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("a project lists files below its root; this one is elsewhere and is not read")]
    Elsewhere,
    #[error("`..` leads out of the project; it is not followed")]
    Upwards,
    #[error("this is no name of a file, with or without `#` and a heading")]
    NoName,
    #[error("this entry is there twice")]
    Twice,
    #[error("at most {ENTRIES} entries are read")]
    TooMany,
    #[error("there is no home directory that `~/` could mean")]
    NoHome,
}

impl Fault {
    fn hint(self) -> Option<&'static str> {
        match self {
            Self::Elsewhere => Some("list it in your own configuration: agentctl config edit"),
            Self::Upwards => Some("your own configuration may list files elsewhere, by `~/` or from `/`"),
            Self::NoName => Some("write it as \"docs/STYLE.md\" or \"AGENTS.md#Release process\""),
            Self::Twice | Self::TooMany | Self::NoHome => None,
        }
    }
}

impl Listed {
    fn parse(entry: &str, owner: Owner) -> Result<Self, Fault> {
        let (file, heading) = match entry.split_once('#') {
            Some((file, heading)) => (file, Some(heading.trim())),
            None => (entry, None),
        };
        let strange = entry.len() > ENTRY_BYTES || entry.contains(char::is_control);
        if strange || file.trim().is_empty() || file.ends_with('/') || heading.is_some_and(str::is_empty) {
            return Err(Fault::NoName);
        }
        let (base, prefix, rest) = match (file.strip_prefix("~/"), file.starts_with(['/', '~'])) {
            (_, true) if owner == Owner::Project => return Err(Fault::Elsewhere),
            (Some(below), _) => (protocol::place::home().map_err(|_| Fault::NoHome)?, "~/", below),
            (None, true) if file.starts_with('~') => return Err(Fault::NoName),
            (None, true) => (PathBuf::from("/"), "/", file),
            (None, false) => (PathBuf::new(), "", file),
        };
        let name = plain(rest)?;
        let section = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
        Ok(Self {
            path: base.join(&name),
            heading: heading.map(str::to_owned),
            shown: format!("{prefix}{name}{section}"),
        })
    }
}

/// The path below some directory, without `.`, doubled and leading slashes.
fn plain(path: &str) -> Result<String, Fault> {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => return Err(Fault::Upwards),
            name => names.push(name),
        }
    }
    if names.is_empty() {
        return Err(Fault::NoName);
    }
    Ok(names.join("/"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(entry: &str, owner: Owner) -> Result<(String, Option<String>, String), Fault> {
        Listed::parse(entry, owner).map(|listed| (listed.path.display().to_string(), listed.heading, listed.shown))
    }

    #[test]
    fn an_entry_is_a_file_and_perhaps_a_heading() {
        let named = |path: &str, heading: Option<&str>, shown: &str| {
            Ok((path.to_owned(), heading.map(str::to_owned), shown.to_owned()))
        };
        for owner in [Owner::Person, Owner::Project] {
            assert_eq!(parse("docs/A.md", owner), named("docs/A.md", None, "docs/A.md"));
            assert_eq!(parse("./docs//A.md", owner), named("docs/A.md", None, "docs/A.md"));
            let section = parse("A.md# Release # process ", owner);
            assert_eq!(
                section,
                named("A.md", Some("Release # process"), "A.md#Release # process")
            );
            for wrong in ["", " ", "#x", "A.md#", "docs/", ".", "a\nb", "~", "~ann/x"] {
                assert!(parse(wrong, owner).is_err(), "{wrong:?}");
            }
            for upwards in ["../x", "docs/../../x"] {
                assert_eq!(parse(upwards, owner), Err(Fault::Upwards));
            }
            assert_eq!(parse(&"x".repeat(ENTRY_BYTES + 1), owner), Err(Fault::NoName));
        }
    }

    #[test]
    fn only_the_person_lists_files_elsewhere() {
        for elsewhere in ["/etc/passwd", "~/.aws/credentials", "//etc/passwd"] {
            assert_eq!(parse(elsewhere, Owner::Project), Err(Fault::Elsewhere));
        }
        assert_eq!(
            parse("/srv/house.md#Style", Owner::Person),
            Ok((
                "/srv/house.md".into(),
                Some("Style".into()),
                "/srv/house.md#Style".into()
            ))
        );
        let home = protocol::place::home().unwrap();
        let (path, _, shown) = parse("~/house.md", Owner::Person).unwrap();
        assert_eq!(
            (path, shown),
            (home.join("house.md").display().to_string(), "~/house.md".into())
        );
    }

    #[test]
    fn a_list_is_bounded_and_names_nothing_twice() {
        let said = |entries: &str| {
            let text = format!("include = [{entries}]\n");
            let written: WrittenContext = toml::from_str(&text).unwrap();
            read(Path::new("/c"), &text, written, Owner::Project)
        };
        assert_eq!(said("'a', 'b', 'a#x'").unwrap().include.len(), 3);
        assert!(
            said("'a', './a'")
                .unwrap_err()
                .to_string()
                .contains("/c:1: `context.include`")
        );
        let many: Vec<String> = (0..=ENTRIES).map(|n| format!("'{n}'")).collect();
        assert!(said(&many.join(",")).unwrap_err().to_string().contains("at most 16"));
    }
}
