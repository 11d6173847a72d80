//! Which project a directory belongs to.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The root of the project that `cwd` lies in: the nearest directory upwards with `.agent`, else the nearest with `.git`, else `cwd`
/// itself. The walk ends at the home directory, at a file system border and at a directory that belongs to somebody else.
pub fn project_root(cwd: &Path) -> PathBuf {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let candidates = candidates(&cwd);
    let with = |name: &str| {
        candidates
            .iter()
            .find(|directory| directory.join(name).symlink_metadata().is_ok())
    };
    with(".agent")
        .or_else(|| with(".git"))
        .copied()
        .unwrap_or(&cwd)
        .to_owned()
}

fn candidates(cwd: &Path) -> Vec<&Path> {
    let home = protocol::place::home().ok().and_then(|home| home.canonicalize().ok());
    let Ok(start) = cwd.metadata() else { return Vec::new() };
    let belongs = |directory: &&Path| {
        directory
            .metadata()
            .is_ok_and(|metadata| metadata.dev() == start.dev() && metadata.uid() == start.uid())
    };
    let below_home = |directory: &&Path| home.as_deref() != Some(*directory);
    cwd.ancestors().take_while(below_home).take_while(belongs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_ends_at_a_border_of_file_systems() {
        // `/proc` is a file system of its own wherever there is one.
        let own = Path::new("/proc/self").canonicalize().unwrap_or_default();
        assert!(!candidates(&own).contains(&Path::new("/")));
    }
}
