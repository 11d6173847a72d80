//! Why a sandboxed command may have failed, told to the model from facts: what the words of its line name (see
//! [`Reach`]), whether that can be seen and written in the sandbox and outside of it, what the kernel counted of its way to a
//! network. What the command printed says nothing here: it could make something a refusal that is none.

use std::path::{Component, Path, PathBuf};

use super::plan::fixed_at_home;
use super::{Form, Met, Mode, Network, Plan, Profile, Sought, hidden, repositories};
use crate::policy::shell::Reach;

/// Paths named in the explanation.
const NAMED_LIMIT: usize = 3;

/// Where the kernel lists the connections of this machine.
const CONNECTIONS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// What the sandbox kept from a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Where it would have made repositories, as who refused them told.
    repositories: Vec<String>,
    hidden: Vec<PathBuf>,
    unwritable: Vec<PathBuf>,
    /// Repositories that were to be moved or removed.
    kept: Vec<PathBuf>,
    no_network: bool,
    /// A port of the command's that is served outside of the sandbox only.
    port: Option<u16>,
}

/// What a sandbox lets a command do, as far as it is looked at here.
struct Walls<'a> {
    profile: &'a Profile,
    plan: Plan,
}

impl Refusal {
    /// Looks at what a command was about, and what it met.
    pub(in crate::target) fn look(profile: &Profile, reach: &Reach, met: Met) -> Self {
        let Met { sought, repositories } = met;
        let mut refusal = Self {
            no_network: profile.network == Network::Off && is_without(profile, reach, sought),
            port: reach.ports.iter().copied().find(|port| sought.here && is_served(*port)),
            repositories,
            ..Self::default()
        };
        let walls = Walls::new(profile);
        for path in reach.named.iter().chain(&reach.written).filter_map(|path| real(path)) {
            if walls.hide(&path) {
                push(&mut refusal.hidden, path);
            }
        }
        for path in reach.moved.iter().filter_map(|path| real(path)) {
            if walls.pin(&path) {
                push(&mut refusal.kept, path);
            }
        }
        let is_new = |refusal: &Self, path: &PathBuf| !refusal.hidden.contains(path) && !refusal.kept.contains(path);
        // Where nothing can be written, what was to be written there need not be named.
        for path in reach
            .worked_in
            .iter()
            .chain(&reach.written)
            .filter_map(|path| real(path))
        {
            let is_named = refusal.unwritable.iter().any(|named| path.starts_with(named));
            if !is_named && is_new(&refusal, &path) && walls.keep_from_writing(&path) {
                push(&mut refusal.unwritable, path);
            }
        }
        if !refusal.repositories.is_empty() {
            // Said once is enough.
            refusal.unwritable.retain(|path| !repositories::is_kept(path));
        }
        refusal
    }

    /// The explanation, one or more sentences without a full stop at the end; empty if nothing was refused.
    pub fn text(&self) -> String {
        let mut said = Vec::new();
        if !self.repositories.is_empty() {
            let named: Vec<&str> = self.repositories.iter().take(NAMED_LIMIT).map(String::as_str).collect();
            said.push(format!(
                "the sandbox does not let commands make repositories in the project, as {} would be",
                named.join(", ")
            ));
        }
        if !self.hidden.is_empty() {
            said.push(format!("the sandbox hides {}", names(&self.hidden)));
        }
        if !self.kept.is_empty() {
            let names = names(&self.kept);
            said.push(format!(
                "the sandbox keeps {names} where it is: it cannot be moved or removed"
            ));
        }
        if !self.unwritable.is_empty() {
            said.push(format!(
                "the sandbox does not let commands write {}",
                names(&self.unwritable)
            ));
        }
        if self.no_network {
            said.push("the sandbox has no network".to_owned());
        }
        if let Some(port) = self.port {
            said.push(format!(
                "what listens on port {port} is outside the sandbox, which has no network"
            ));
        }
        said.join("; ")
    }
}

/// Whether the network is what the command lacked. Where nothing is counted, what its programs are for has to do.
fn is_without(profile: &Profile, reach: &Reach, sought: Sought) -> bool {
    match profile.form {
        Form::Namespaces => sought.beyond,
        Form::Landlock => reach.network,
    }
}

fn names(paths: &[PathBuf]) -> String {
    let named: Vec<String> = paths
        .iter()
        .take(NAMED_LIMIT)
        .map(|path| path.display().to_string())
        .collect();
    named.join(", ")
}

fn push(paths: &mut Vec<PathBuf>, path: PathBuf) {
    if !paths.contains(&path) {
        paths.push(path);
    }
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    let rest = path.strip_prefix(there).ok()?;
    let plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
    let there = there.canonicalize().ok()?;
    // Joining nothing would end the path in a slash.
    plain.then(|| {
        if rest.as_os_str().is_empty() {
            there
        } else {
            there.join(rest)
        }
    })
}

impl<'a> Walls<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut plan = Plan::default();
        if profile.mode == Mode::WorkspaceWrite {
            plan.allow_writing(profile);
        }
        plan.hidden = hidden::of(profile);
        plan.hidden.extend(profile.state_dir.canonicalize());
        Self { profile, plan }
    }

    /// Whether the user may see this and the sandbox does not show it.
    fn hide(&self, path: &Path) -> bool {
        self.plan.hidden.iter().any(|hidden| path.starts_with(hidden)) && may(path, rustix::fs::Access::READ_OK)
    }

    /// Whether this is a repository of the session, to which it may write.
    fn pin(&self, path: &Path) -> bool {
        let is_repository = path.file_name().is_some_and(|name| name == ".git") && path.is_dir();
        is_repository && self.profile.mode == Mode::WorkspaceWrite && self.is_in_root(path)
    }

    /// Whether the user may write here and the sandbox does not.
    fn keep_from_writing(&self, path: &Path) -> bool {
        let may_write = may(path, rustix::fs::Access::WRITE_OK);
        may_write && !self.let_write(path) && !path.starts_with("/proc") && !path.starts_with("/dev")
    }

    fn let_write(&self, path: &Path) -> bool {
        let is_open = match self.profile.form {
            Form::Namespaces => true,
            Form::Landlock => self.is_apart_from_all(path),
        };
        self.plan.is_writable(path) && is_open && !is_protected(path, self.profile)
    }

    /// Whether a rule of Landlock can let this be written: rules only add, so none can be about a directory that holds
    /// something protected. In a directory that is there some entries can be written, and which ones are meant is not known.
    fn is_apart_from_all(&self, path: &Path) -> bool {
        let Some(nearest) = path.ancestors().find(|path| path.exists()) else {
            return false;
        };
        let roots = self.profile.roots.iter();
        let mut apart = roots
            .flat_map(|root| [root.join(".agent"), root.join(".git")])
            .chain(self.plan.hidden.iter().cloned());
        let is_open = path.is_dir();
        !apart.any(|apart| nearest.starts_with(&apart) || (!is_open && apart.starts_with(nearest)))
    }

    fn is_in_root(&self, path: &Path) -> bool {
        self.profile.roots.iter().any(|root| path.starts_with(root))
    }
}

/// Whether the user may do this with what is there, or with the directory it would be in.
fn may(path: &Path, access: rustix::fs::Access) -> bool {
    let nearest = path.ancestors().find(|path| path.exists());
    nearest.is_some_and(|nearest| rustix::fs::access(nearest, access).is_ok())
}

fn is_protected(path: &Path, profile: &Profile) -> bool {
    profile.roots.iter().any(|root| {
        let below = path.strip_prefix(root);
        below.is_ok_and(|below| below.starts_with(".agent") || repositories::is_kept(below))
            || fixed_at_home(root, profile).any(|fixed| path.starts_with(fixed))
    })
}

/// Whether something takes connections to this port of the machine.
fn is_served(port: u16) -> bool {
    let lists = CONNECTIONS.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    lists.into_iter().any(|list| listens(&list, port))
}

/// Whether a list of connections, as the kernel writes it, has one that listens on `port`.
fn listens(list: &str, port: u16) -> bool {
    const LISTENS: &str = "0A";
    let end = format!(":{port:04X}");
    list.lines().any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, state) = (columns.next(), columns.nth(1));
        local.is_some_and(|local| local.ends_with(&end)) && state == Some(LISTENS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_listens_on_the_port_serves_it() {
        let list = "  sl  local_address rem_address   st tx_queue\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n   \
                    1: 0100007F:0050 0100007F:1F91 01 00000000:00000000\n";
        assert!(listens(list, 8080));
        assert!(!listens(list, 80) && !listens(list, 8081) && !listens("", 8080));
    }

    #[test]
    fn nothing_is_said_when_nothing_was_refused() {
        assert_eq!(Refusal::default().text(), "");
        let refusal = Refusal {
            hidden: vec!["/home/u/.ssh".into()],
            no_network: true,
            ..Refusal::default()
        };
        assert_eq!(
            refusal.text(),
            "the sandbox hides /home/u/.ssh; the sandbox has no network"
        );
    }
}
