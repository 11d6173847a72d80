//! Landlock: where namespaces arrange the files, a second wall around what may be written and the only one around
//! signals; where they are not to be had, all there is.
//!
//! Rules only ever add. What lies below an allowed directory cannot be taken away again, so in the reduced form a directory
//! that holds something hidden or fixed is not allowed itself, only those of its entries that hold nothing of the kind.
#![cfg(target_os = "linux")]

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};

use super::{Form, Mode, Plan, Profile};

/// The newest version whose rights are known to do no harm here. Requests to devices stay allowed, and so are sockets by
/// path, which mounts hide.
const NEWEST: ABI = ABI::V6;

/// Rules of one command; more mean that a tree was spread out entry by entry that should not be.
const RULES_LIMIT: usize = 4096;

/// Restricts the calling process for good. Sets `no_new_privs`.
pub(super) fn restrict(plan: &Plan, profile: &Profile) -> io::Result<()> {
    let write = AccessFs::from_write(NEWEST) & !BitFlags::from_flag(AccessFs::IoctlDev);
    // A right to list a directory would hold for all below it, so names can be listed everywhere; contents cannot be read.
    let read = AccessFs::ReadFile | AccessFs::Execute;
    let handled = if profile.form == Form::Landlock {
        write | read
    } else {
        write
    };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled)
        .and_then(|ruleset| ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let ruleset = match profile.form {
        Form::Namespaces => second_wall(ruleset, plan, profile, write),
        Form::Landlock => only_wall(ruleset, plan, profile, write, read),
    }?;
    ruleset.restrict_self().map_err(io::Error::other)?;
    Ok(())
}

fn second_wall(
    mut ruleset: RulesetCreated,
    plan: &Plan,
    profile: &Profile,
    write: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    for path in &plan.writable {
        ruleset = allow(ruleset, path, write)?;
    }
    if profile.mode == Mode::ReadOnly {
        ruleset = allow(ruleset, Path::new(super::plan::SCRATCH), write)?;
    }
    allow(ruleset, Path::new("/dev"), AccessFs::WriteFile.into())
}

fn only_wall(
    mut ruleset: RulesetCreated,
    plan: &Plan,
    profile: &Profile,
    write: BitFlags<AccessFs>,
    read: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    let mut hidden = plan.hidden.clone();
    hidden.extend([profile.state_dir.clone(), super::plan::TERMINALS.into()]);
    let mut spread = Spread {
        apart: &hidden,
        found: Vec::new(),
    };
    spread.below(Path::new("/"));
    for path in &spread.found {
        ruleset = allow(ruleset, path, read)?;
    }
    let mut devices = Spread {
        apart: &hidden,
        found: Vec::new(),
    };
    devices.below(Path::new("/dev"));
    for path in &devices.found {
        ruleset = allow(ruleset, path, AccessFs::WriteFile.into())?;
    }
    let apart: Vec<PathBuf> = hidden.iter().chain(&plan.fixed).chain(&plan.pinned).cloned().collect();
    let mut spread = Spread {
        apart: &apart,
        found: Vec::new(),
    };
    for path in &plan.writable {
        spread.below(path);
    }
    for path in &spread.found {
        ruleset = allow(ruleset, path, write)?;
    }
    Ok(ruleset)
}

/// Collects the largest trees that hold nothing of what is kept apart.
struct Spread<'a> {
    apart: &'a [PathBuf],
    found: Vec<PathBuf>,
}

impl Spread<'_> {
    fn below(&mut self, path: &Path) {
        if self.found.len() >= RULES_LIMIT || self.apart.iter().any(|apart| path.starts_with(apart)) {
            return;
        }
        if !self.apart.iter().any(|apart| apart.starts_with(path)) {
            self.found.push(path.to_owned());
            return;
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            // A link is judged by where it leads, which some other path allows or not.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.below(&entry.path());
            }
        }
    }
}

/// Adds a rule for `path` with those rights that make sense for what it is. What is gone needs no rule.
fn allow(mut ruleset: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let (Ok(found), Ok(fd)) = (path.metadata(), PathFd::new(path)) else {
        return Ok(ruleset);
    };
    let rights = if found.is_dir() {
        rights
    } else {
        rights & AccessFs::from_file(NEWEST)
    };
    if !rights.is_empty() {
        ruleset = ruleset
            .add_rule(PathBeneath::new(fd, rights))
            .map_err(io::Error::other)?;
    }
    Ok(ruleset)
}
