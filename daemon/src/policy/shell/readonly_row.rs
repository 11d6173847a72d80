//! A row of the built-in list's table: how it is written, and how a command's options are found in it.

/// Where a command may run without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It neither reads configuration nor starts programs.
    Anywhere,
    /// Only inside the read-only sandbox.
    Sandboxed,
}

/// What the words after the options are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    None,
    /// Text that is only printed or computed with.
    Data,
    /// As `Data`, and nothing is an option: `echo`.
    Words,
    Files,
    /// At most one file: a second would be written to.
    OneFile,
    /// A pattern, then files.
    Pattern,
    Sed,
    Awk,
    Jq,
    /// Seconds.
    Sleep,
    /// `date +FORMAT`.
    Format,
}

impl Operands {
    pub(super) fn begins_with_script(self) -> bool {
        matches!(self, Self::Pattern | Self::Sed | Self::Awk | Self::Jq)
    }

    pub(super) fn are_files(self) -> bool {
        self.begins_with_script() || matches!(self, Self::Files | Self::OneFile)
    }
}

/// One row. Letters and names are separated by blanks where they are words.
pub(super) struct Command {
    pub names: &'static str,
    pub class: Class,
    /// Letters without a value.
    flags: &'static str,
    /// Letters with a value.
    valued: &'static str,
    /// Letters whose value is a file to read.
    files: &'static str,
    /// Long names; `name=` takes a value, `name?` may have one attached, `name<` takes a file to read.
    long: &'static str,
    /// Long names and letters that write or run something.
    dangers: &'static str,
    pub operands: Operands,
    /// The dangers only read more than they should; names of files are checked by the target.
    mild: bool,
}

/// An option found in a row.
pub(super) struct Found<'a> {
    pub attached: Option<&'a str>,
    value: bool,
    pub is_file: bool,
    pub is_script: bool,
}

impl Found<'_> {
    pub(super) fn takes_value(&self) -> bool {
        self.value
    }
}

pub(super) const fn row(
    names: &'static str,
    operands: Operands,
    flags: &'static str,
    valued: &'static str,
    long: &'static str,
) -> Command {
    Command {
        names,
        class: Class::Anywhere,
        flags,
        valued,
        files: "",
        long,
        dangers: "",
        operands,
        mild: false,
    }
}

pub(super) const fn without(command: Command, dangers: &'static str) -> Command {
    Command { dangers, ..command }
}

pub(super) const fn mildly(command: Command, dangers: &'static str) -> Command {
    Command {
        dangers,
        mild: true,
        ..command
    }
}

pub(super) const fn sandboxed(command: Command) -> Command {
    Command {
        class: Class::Sandboxed,
        ..command
    }
}

pub(super) const fn reads(command: Command, files: &'static str) -> Command {
    Command { files, ..command }
}

impl Command {
    /// Whether a file whose name reads as an option could make it write or run something.
    pub(super) fn has_dangers(&self) -> bool {
        !self.dangers.is_empty() && !self.mild
    }

    /// An option `--TEXT`, whole or abbreviated without doubt.
    pub(super) fn long<'a>(&self, text: &'a str) -> Option<Found<'a>> {
        let (name, attached) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let bare = |row: &'static str| row.trim_end_matches([':', '=', '?', '<']);
        let row = match self.long.split(' ').find(|row| bare(row) == name) {
            Some(row) => row,
            None => {
                let danger = self.dangers.split(' ').any(|danger| danger.starts_with(name));
                let mut candidates = self.long.split(' ').filter(|row| row.starts_with(name));
                let only = candidates.next().filter(|_| !name.is_empty() && !danger)?;
                candidates.next().is_none().then_some(only)?
            }
        };
        let is_script = row.ends_with(':');
        let row = row.trim_end_matches(':');
        let is_file = row.ends_with('<');
        let value = row.ends_with(['=', '<']) || is_script;
        // A flag with a value is no option this command knows.
        if attached.is_some() && !value && !row.ends_with('?') {
            return None;
        }
        Some(Found {
            attached,
            value,
            is_file,
            is_script,
        })
    }

    /// A cluster of letters: all flags, or flags and then one letter with its value.
    pub(super) fn short<'a>(&self, cluster: &'a str) -> Option<Found<'a>> {
        for (at, letter) in cluster.char_indices() {
            if self.flags.contains(letter) {
                continue;
            }
            let is_file = self.files.contains(letter);
            let is_script = matches!(
                (self.operands, letter),
                (Operands::Pattern | Operands::Sed, 'e') | (Operands::Pattern, 'f')
            ) && !(self.names.starts_with("fd"));
            if !self.valued.contains(letter) && !is_file && !is_script {
                return None;
            }
            let attached = cluster.get(at + letter.len_utf8()..).filter(|value| !value.is_empty());
            // `-U5`, `-u5`, `-I` and their like may have a value only when it is attached.
            let optional = matches!((self.names, letter), ("diff", 'u' | 'c') | ("date", 'I'));
            return Some(Found {
                attached,
                value: attached.is_some() || !optional,
                is_file,
                is_script,
            });
        }
        Some(Found {
            attached: None,
            value: false,
            is_file: false,
            is_script: false,
        })
    }
}
