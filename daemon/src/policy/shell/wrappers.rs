//! Commands that run other commands: what they run is found and judged as if it stood alone.

use super::arg::{Arg, Certainty, joined};
use super::part::Standing;
use super::rough::is_name;
use super::scope::{Scope, may_precede_command};
use super::{find, git, shells, xargs};

/// What a command runs, and what is said about the command itself.
pub(super) struct Unwrapped {
    pub inner: Vec<Inner>,
    pub standing: Standing,
}

/// Something a wrapper runs.
pub(super) enum Inner {
    Command(Vec<Arg>),
    /// A command of this very shell: `builtin cd /`.
    Shell(Vec<Arg>),
    /// A command whose operands stand for everything below them.
    Below(Vec<Arg>),
    /// A command in another directory.
    In(Arg, Vec<Arg>),
    /// A script in a shell of its own.
    Script {
        text: String,
        zero: Option<String>,
        params: Vec<Arg>,
    },
    /// A script in this very shell.
    Here(String),
}

impl Inner {
    pub(super) fn script(text: impl Into<String>) -> Self {
        Self::Script {
            text: text.into(),
            zero: None,
            params: Vec::new(),
        }
    }
}

/// A command of the form `NAME [options] [operands] COMMAND…`.
struct Wrapper {
    name: &'static str,
    /// Option letters that take a value.
    letters: &'static str,
    /// Long options that take their value as the next word.
    long: &'static [&'static str],
    /// Operands before the command.
    skip: usize,
    /// Options with which it only passes the command on; any other asks. None: it always asks.
    passes: Option<&'static [&'static str]>,
}

const fn wrapper(name: &'static str, letters: &'static str, long: &'static [&'static str], skip: usize) -> Wrapper {
    Wrapper {
        name,
        letters,
        long,
        skip,
        passes: None,
    }
}

const fn passing(
    name: &'static str,
    letters: &'static str,
    long: &'static [&'static str],
    skip: usize,
    passes: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        name,
        letters,
        long,
        skip,
        passes: Some(passes),
    }
}

const WRAPPERS: &[Wrapper] = &[
    passing("env", "uCP", &["split-string", "unset", "chdir"], 0, &[]),
    passing("command", "", &[], 0, &["-p"]),
    passing("time", "fo", &["format", "output"], 0, &["-p"]),
    passing("timeout", "sk", &["signal", "kill-after"], 1, &[]),
    passing("nice", "n", &["adjustment"], 0, &["-n"]),
    passing("stdbuf", "ioe", &["input", "output", "error"], 0, &["-i", "-o", "-e"]),
    passing("builtin", "", &[], 0, &[]),
    wrapper(
        "sudo",
        "ughpCTRrtDU",
        &[
            "user",
            "group",
            "host",
            "prompt",
            "close-from",
            "chdir",
            "role",
            "type",
            "other-user",
        ],
        0,
    ),
    wrapper("doas", "uCa", &[], 0),
    wrapper("pkexec", "", &["user"], 0),
    wrapper("run0", "ugD", &["user", "group", "chdir", "unit", "property"], 0),
    wrapper("exec", "a", &[], 0),
    wrapper("nohup", "", &[], 0),
    wrapper("setsid", "", &[], 0),
    wrapper("ionice", "cnpPu", &["class", "classdata"], 0),
    wrapper("chrt", "TPD", &[], 1),
    wrapper("taskset", "", &[], 1),
    wrapper("numactl", "NmCip", &[], 0),
    wrapper("setarch", "", &[], 0),
    wrapper("busybox", "", &[], 0),
    wrapper("toybox", "", &[], 0),
    wrapper("unbuffer", "", &[], 0),
    wrapper("strace", "oepsPuEaSXI", &[], 0),
    wrapper("ltrace", "oepsuanl", &[], 0),
    wrapper("unshare", "SGRw", &[], 0),
    wrapper("prlimit", "p", &[], 0),
    wrapper("setpriv", "", &["reuid", "regid", "groups"], 0),
    wrapper(
        "systemd-run",
        "uptMEGP",
        &["unit", "property", "uid", "gid", "setenv", "description", "slice"],
        0,
    ),
    wrapper("systemd-inhibit", "", &["what", "who", "why", "mode"], 0),
    wrapper("dbus-run-session", "", &[], 0),
    wrapper("caffeinate", "tw", &[], 0),
    wrapper("coproc", "", &[], 0),
    wrapper("fakeroot", "lsib", &[], 0),
    wrapper("faketime", "", &[], 1),
    wrapper("ssh-agent", "aEPt", &[], 0),
    wrapper("nsenter", "tSG", &["target", "setuid", "setgid"], 0),
    wrapper("firejail", "", &[], 0),
    wrapper("gosu", "", &[], 1),
    wrapper("su-exec", "", &[], 1),
    wrapper("cpulimit", "lpeP", &["limit", "pid", "exe", "path"], 0),
    wrapper("xvfb-run", "enfsp", &["server-num", "server-args"], 0),
    wrapper("tini", "pe", &[], 0),
    wrapper("dumb-init", "r", &[], 0),
    wrapper("entr", "", &[], 0),
    wrapper("then", "", &[], 0),
    wrapper("do", "", &[], 0),
];

/// What `args` runs; none if it is no wrapper.
pub(super) fn unwrap(name: &str, args: &[Arg], scope: &Scope) -> Option<Unwrapped> {
    match name {
        "xargs" | "parallel" => return Some(xargs::unwrap(args, scope)),
        "find" => return find::unwrap(args),
        "git" => return git::unwrap(args),
        "fd" | "fdfind" => return find::unwrap_fd(args),
        "command" if args.get(1).is_some_and(|arg| matches!(arg.text.as_str(), "-v" | "-V")) => return None,
        _ => {}
    }
    if let Some(unwrapped) = shells::unwrap(name, args, scope) {
        return Some(unwrapped);
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    Some(wrapper.strip(args))
}

impl Wrapper {
    fn strip(&self, args: &[Arg]) -> Unwrapped {
        let mut stripped = Stripped {
            wrapper: self,
            plain: true,
            directory: None,
            split: None,
        };
        let rest = stripped.rest(args);
        let typed = args
            .first()
            .is_some_and(|first| first.is_sure() && !first.expanded && first.text == self.name);
        let standing = match (&rest, self.passes) {
            ([], _) => Standing::Asks(format!("`{}` alone shows or changes the environment.", self.name)),
            (_, Some(_)) if stripped.plain && typed => Standing::Harmless,
            _ => Standing::Asks(format!("`{}` changes how the command runs.", self.name)),
        };
        let mut inner = Vec::new();
        if let Some(text) = stripped.split {
            inner.push(Inner::script(format!("{text} {}", joined(rest))));
        } else if !rest.is_empty() {
            inner.push(match stripped.directory {
                Some(directory) => Inner::In(directory, rest.to_vec()),
                None if matches!(self.name, "builtin" | "command") => Inner::Shell(rest.to_vec()),
                None => Inner::Command(rest.to_vec()),
            });
        }
        Unwrapped { inner, standing }
    }
}

/// Where the reading of a wrapper's own words stands.
struct Stripped<'a> {
    wrapper: &'a Wrapper,
    /// Nothing but what is known to pass the command on was seen.
    plain: bool,
    directory: Option<Arg>,
    /// The text of `env -S`.
    split: Option<String>,
}

impl Stripped<'_> {
    /// The words of the command that is run.
    fn rest<'a>(&mut self, args: &'a [Arg]) -> &'a [Arg] {
        let mut at = 1;
        let mut skip = self.wrapper.skip;
        while let Some(arg) = args.get(at) {
            at += 1;
            let text = arg.text.as_str();
            if text == "--" {
                break;
            }
            let takes_next = if let Some(long) = text.strip_prefix("--") {
                self.long_option(long, args.get(at))
            } else if text.len() > 1 && text.starts_with('-') {
                self.letters(text, args.get(at))
            } else if text == "-" {
                self.plain = false;
                false
            } else if let Some((name, _)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
                self.plain &= may_precede_command(name) && arg.certainty <= Certainty::Output;
                false
            } else if skip > 0 {
                skip -= 1;
                self.plain &= arg.is_sure() && !arg.glob;
                false
            } else {
                at -= 1;
                break;
            };
            at += usize::from(takes_next);
            // What follows the text of `env -S` belongs to its command.
            if self.split.is_some() {
                break;
            }
        }
        args.get(at..).unwrap_or_default()
    }

    /// Whether the option's value is the next word.
    fn long_option(&mut self, long: &str, next: Option<&Arg>) -> bool {
        self.plain = false;
        let (name, value) = long
            .split_once('=')
            .map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
        let env = self.wrapper.name == "env";
        let separate = value.is_none() && self.wrapper.long.contains(&name);
        let value = value.or_else(|| next.filter(|_| separate).map(|arg| arg.text.clone()));
        match name {
            "split-string" if env => self.split = value,
            "chdir" => self.directory = value.map(Arg::sure),
            _ => {}
        }
        separate
    }

    fn letters(&mut self, text: &str, next: Option<&Arg>) -> bool {
        let known = self.wrapper.passes.unwrap_or_default();
        self.plain &= known.iter().any(|option| text.starts_with(option)) && next.is_some_and(Arg::is_sure);
        let cluster = text.get(1..).unwrap_or_default();
        let env = self.wrapper.name == "env";
        for (i, letter) in cluster.char_indices() {
            if !(self.wrapper.letters.contains(letter) || (env && letter == 'S')) {
                continue;
            }
            let attached = cluster.get(i + letter.len_utf8()..).unwrap_or_default();
            let value = if attached.is_empty() {
                next.cloned()
            } else {
                Some(Arg::sure(attached))
            };
            match (self.wrapper.name, letter) {
                ("env", 'S') => self.split = value.map(|arg| arg.text),
                ("env", 'C') | ("sudo" | "run0", 'D') => self.directory = value,
                _ => {}
            }
            return attached.is_empty();
        }
        false
    }
}
