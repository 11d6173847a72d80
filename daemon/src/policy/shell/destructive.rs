//! The guard: what is stopped in every mode, whatever anybody answers.
//!
//! It is a seat belt against the well-known accidents, in every spelling a shell knows, and not a boundary: a program
//! in any language can do the same. Each rule here names what would be lost and the nearest safe form.

use super::arg::{AGENTD_PID, Arg};
use super::options::Options;
use super::part::base_name;
use super::place::Spot;
use super::scope::Scope;
use super::{devices, find, git, own};
use crate::policy::facts::CommandFact;

/// Why the guard stops this command; none if it does not.
pub(super) fn check(name: &str, args: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    let look = Look {
        name,
        args,
        scope,
        fact,
    };
    look.tree()
        .or_else(|| look.disk())
        .or_else(|| look.power())
        .or_else(|| look.bomb())
        .or_else(|| git::guard(name, args))
        .or_else(|| own::check(name, args, scope, fact))
}

/// Why the guard stops a redirection to `target`.
pub(super) fn write_to(target: &Arg, scope: &Scope, fact: &CommandFact) -> Option<String> {
    let paths: Vec<String> = spots(target, scope)
        .map(|spot| spot.path().to_string_lossy().into_owned())
        .collect();
    if paths.iter().any(|path| devices::is_vital(path)) {
        return Some(disk_reason(&target.shown()));
    }
    own::holds(target, scope, fact).then(|| own::file_reason(&target.shown()))
}

const EVERY_PROCESS: &str = "It would end every process of the user. Name the process that should end.";

fn disk_reason(shown: &str) -> String {
    format!("It writes to {shown}, a raw device. Write to an image file inside the project instead.")
}

fn spots<'a>(arg: &'a Arg, scope: &'a Scope) -> impl Iterator<Item = Spot> + 'a {
    scope.cwd.spots(&arg.text).into_iter().map(|mut spot| {
        // A quoted star is the name of a file.
        spot.glob = arg.glob;
        if spot.contents && !arg.glob {
            spot.contents = false;
            spot.names.push("*".to_owned());
        }
        spot
    })
}

struct Look<'a> {
    name: &'a str,
    args: &'a [Arg],
    scope: &'a Scope,
    fact: &'a CommandFact,
}

impl Look<'_> {
    fn catastrophe(&self, operands: &[&Arg]) -> Option<String> {
        operands
            .iter()
            .flat_map(|operand| spots(operand, self.scope))
            .find_map(|spot| spot.catastrophe(self.fact))
    }

    /// Deleting, moving or changing the rights of a whole tree that nobody wants to lose.
    fn tree(&self) -> Option<String> {
        let options = Options::read(self.args, "", &["reference", "from"]);
        let recursive = options.letter("rR") || options.long("recursive") || self.scope.below;
        let (does, operands, instead) = match self.name {
            "rm" if recursive => (
                "delete",
                options.operands,
                "Name the directory inside the project that should go.",
            ),
            "shred" => ("overwrite", options.operands, "Name the file that should go."),
            "find" if find::deletes(self.args) => {
                let starts = find::start_points(self.args);
                let lost = self.catastrophe(&starts.iter().collect::<Vec<_>>())?;
                return Some(format!(
                    "It would delete {lost}. Start it at a directory inside the project."
                ));
            }
            "mv" => (
                "move away",
                moved(self.args),
                "Name the files inside the project that should move.",
            ),
            "chown" | "chgrp" if recursive => (
                "change the owner of",
                options.operands,
                "Name a directory inside the project.",
            ),
            "chmod" if recursive && makes_unsafe(self.args) => (
                "change the rights of",
                options.operands,
                "Name a directory inside the project.",
            ),
            _ => return None,
        };
        let lost = self.catastrophe(&operands)?;
        Some(format!("It would {does} {lost}. {instead}"))
    }

    /// Writing to a raw disk or a file like it.
    fn disk(&self) -> Option<String> {
        let vital = |arg: &&Arg| self.is_vital(&arg.text);
        let rest = self.args.get(1..).unwrap_or_default();
        let options = Options::read(self.args, "", &[]);
        let hit = match self.name {
            "dd" | "dcfldd" | "ddrescue" => rest
                .iter()
                .filter_map(|arg| arg.text.strip_prefix("of="))
                .find(|file| self.is_vital(file))
                .map(str::to_owned)
                .or_else(|| {
                    (self.name == "ddrescue")
                        .then(|| options.operands.get(1).filter(|arg| vital(arg)).map(|arg| arg.shown()))
                        .flatten()
                }),
            "cp" | "mv" | "install" | "rsync" | "scp" | "ln" | "curl" | "wget" | "pv" | "tar" => rest
                .iter()
                .find(|arg| vital(arg) && self.is_target(arg))
                .map(Arg::shown),
            "rm" | "chmod" | "chown" | "sed" | "perl" => rest
                .iter()
                .find(|arg| arg.text.contains("efivars") && vital(arg))
                .map(Arg::shown),
            "wipefs" if options.letter("ao") || options.long("all") || options.long("offset") => {
                rest.iter().find(vital).map(Arg::shown)
            }
            "cryptsetup"
                if rest
                    .iter()
                    .any(|arg| matches!(arg.text.as_str(), "luksFormat" | "luksErase" | "erase" | "reencrypt")) =>
            {
                rest.iter().find(vital).map(Arg::shown)
            }
            "diskutil" if rest.iter().any(|arg| is_disk_verb(&arg.text)) => rest.last().map(Arg::shown),
            "nvme"
                if rest
                    .iter()
                    .any(|arg| matches!(arg.text.as_str(), "format" | "sanitize" | "write")) =>
            {
                rest.iter().find(vital).map(Arg::shown)
            }
            "hdparm" if rest.iter().any(|arg| arg.text.starts_with("--security-erase")) => {
                rest.iter().find(vital).map(Arg::shown)
            }
            "mdadm"
                if rest
                    .iter()
                    .any(|arg| matches!(arg.text.as_str(), "--create" | "-C" | "--zero-superblock")) =>
            {
                rest.iter().find(vital).map(Arg::shown)
            }
            name if name == "mkfs" || name.starts_with("mkfs.") => rest.iter().find(vital).map(Arg::shown),
            name => {
                let (_, looks) = devices::DISK_WRITERS.iter().find(|(writer, _)| *writer == name)?;
                let only_looks = rest.iter().any(|arg| looks.contains(&arg.text.as_str()));
                rest.iter().find(vital).filter(|_| !only_looks).map(Arg::shown)
            }
        };
        hit.map(|shown| disk_reason(&shown))
    }

    fn is_vital(&self, text: &str) -> bool {
        let text = text.split_once('=').map_or(
            text,
            |(option, value)| if option.starts_with('-') { value } else { text },
        );
        self.scope
            .cwd
            .spots(text)
            .iter()
            .any(|spot| devices::is_vital(&spot.path().to_string_lossy()))
    }

    /// Whether an operand of a copying command is what it writes to.
    fn is_target(&self, arg: &Arg) -> bool {
        let at = self
            .args
            .iter()
            .position(|other| std::ptr::eq(other, arg))
            .unwrap_or_default();
        let option = at
            .checked_sub(1)
            .and_then(|before| self.args.get(before))
            .map_or("", |before| before.text.as_str());
        match self.name {
            "curl" | "wget" | "tar" | "pv" => {
                matches!(option, "-o" | "-O" | "--output" | "--output-document" | "-f")
                    || option.starts_with("-c")
                    || arg.text.starts_with("-")
            }
            "mv" => true,
            _ => {
                at + 1 == self.args.len() || matches!(option, "-t" | "--target-directory") || arg.text.starts_with('-')
            }
        }
    }

    /// Ending the machine or every process of the user.
    fn power(&self) -> Option<String> {
        let rest = self.args.get(1..).unwrap_or_default();
        let has = |words: &[&str]| rest.iter().any(|arg| words.contains(&arg.text.as_str()));
        let stops = match self.name {
            "reboot" | "halt" | "poweroff" => !has(&["--help", "--version", "-w", "--wtmp-only"]),
            "shutdown" => !has(&["--help", "-c", "--show", "-k"]),
            "init" | "telinit" => has(&["0", "6"]),
            "systemctl" => {
                let goes = has(&["isolate", "start"]) && has(&["poweroff.target", "reboot.target", "halt.target"]);
                goes || has(&[
                    "poweroff",
                    "reboot",
                    "halt",
                    "kexec",
                    "soft-reboot",
                    "emergency",
                    "rescue",
                ])
            }
            "loginctl" => has(&["poweroff", "reboot", "halt"]),
            "kexec" => has(&["-e", "--exec"]),
            "killall5" => return Some(EVERY_PROCESS.to_owned()),
            "pkill" | "killall" => return self.ends_a_user().then(|| EVERY_PROCESS.to_owned()),
            "kill" => {
                // `kill -1 PID` names a signal, `kill -9 -1` every process there is.
                let targets = rest.iter().skip(1).filter(|arg| arg.text == "-1");
                if targets.count() > 0 {
                    return Some(EVERY_PROCESS.to_owned());
                }
                false
            }
            _ => false,
        };
        stops.then(|| "It would stop the machine. Ask the person to do it.".to_owned())
    }

    /// `pkill -u NAME` without a pattern, or with one that matches every name.
    fn ends_a_user(&self) -> bool {
        let options = Options::read(self.args, "uUgGPst", &["euid", "uid", "user", "signal"]);
        let of_a_user = options.letter("uU") || ["euid", "uid", "user"].iter().any(|name| options.long(name));
        match options.operands.as_slice() {
            [] => of_a_user,
            patterns => patterns
                .iter()
                .any(|pattern| matches!(pattern.text.as_str(), "." | ".*" | "^")),
        }
    }

    /// A script that starts itself beside itself, by its own name.
    fn bomb(&self) -> Option<String> {
        let itself = |arg: &Arg| {
            self.scope.zero.as_ref().is_some_and(|zero| *zero == arg.text) || (arg.expanded && arg.text == ZERO)
        };
        let first = self.args.first()?;
        let starts = itself(first)
            || (super::shells::SHELLS.contains(&base_name(&first.text)) && self.args.get(1).is_some_and(itself));
        (starts && self.scope.beside && !self.scope.conditional)
            .then(|| "It is a fork bomb: a script that starts itself again and again.".to_owned())
    }
}

/// Stands for `$0` where the name of the script is not known.
pub(super) const ZERO: &str = "\u{fffc}script";

fn is_disk_verb(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.starts_with("erase")
        || word.starts_with("delete")
        || matches!(
            word.as_str(),
            "zerodisk" | "randomdisk" | "secureerase" | "partitiondisk" | "reformat"
        )
}

/// What `mv` moves: all its operands but the last, or all with `-t`.
fn moved(args: &[Arg]) -> Vec<&Arg> {
    let mut options = Options::read(args, "tS", &["target-directory", "suffix"]);
    if options.value("t").is_none() && options.value("target-directory").is_none() {
        options.operands.pop();
    }
    options.operands
}

/// Whether `chmod` takes rights from the owner or gives write to everybody.
fn makes_unsafe(args: &[Arg]) -> bool {
    let mode = args
        .iter()
        .skip(1)
        .map(|arg| arg.text.as_str())
        .find(|text| is_mode(text));
    mode.is_some_and(|mode| mode.split(',').any(clause_is_unsafe))
}

fn is_mode(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-', '=']);
    (!digits.is_empty() && digits.chars().all(|c| ('0'..='7').contains(&c)))
        || (text.contains(['+', '-', '='])
            && !text.starts_with("--")
            && text.chars().all(|c| "ugoarwxXst+-=,".contains(c)))
}

fn clause_is_unsafe(clause: &str) -> bool {
    if let Ok(bits) = u32::from_str_radix(clause.trim_start_matches(['=']), 8) {
        let (owner, others) = (bits >> 6 & 7, bits & 7);
        return others & 2 != 0 || owner != 7;
    }
    let Some(at) = clause.find(['+', '-', '=']) else {
        return false;
    };
    let (who, change) = clause.split_at(at);
    let everybody = who.is_empty() || who.contains(['a', 'o']);
    let owner = who.is_empty() || who.contains(['a', 'u']);
    let rights = change.get(1..).unwrap_or_default();
    match change.chars().next() {
        Some('+') => everybody && !who.is_empty() && rights.contains(['w', 'u', 'g']),
        Some('-') => owner && rights.contains(['r', 'w', 'x']),
        Some('=') => {
            (everybody && rights.contains(['w', 'u'])) || (owner && !(rights.contains('r') && rights.contains('x')))
        }
        _ => false,
    }
}

/// Whether a word stands for the daemon's process.
pub(super) fn names_daemon_process(arg: &Arg) -> bool {
    arg.text.contains(AGENTD_PID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_open_or_close_a_tree_are_unsafe() {
        for mode in [
            "777",
            "0777",
            "000",
            "0",
            "666",
            "a+w",
            "o+w",
            "ugo=rwx",
            "a=",
            "-x",
            "u-rwx",
            "o=u",
            "a-r",
            "u=rwx,o=rwx",
            "400",
        ] {
            assert!(is_mode(mode) && mode.split(',').any(clause_is_unsafe), "{mode}");
        }
        for mode in [
            "755", "0750", "g+w", "u+x", "+x", "o-w", "go-rwx", "u=rwx", "a+r", "u+w",
        ] {
            assert!(is_mode(mode) && !mode.split(',').any(clause_is_unsafe), "{mode}");
        }
    }
}
