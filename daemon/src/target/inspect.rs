//! What this machine says about a command beyond the files it names: whether the repositories it may work in tell git to
//! run programs, and whether the read-only sandbox can be had. Nothing is run but `git config --list`, which reads.

use std::path::{Path, PathBuf};

use super::{Target, git_config};
use crate::policy::facts::CommandFact;

/// Repositories looked into for one command line.
const REPOSITORIES_LIMIT: usize = 8;

impl Target {
    /// Adds what can be enforced here, and what git would run. Blocks on the file system.
    pub fn look_for_programs(&self, command: &mut CommandFact) {
        command.sandbox = self.sandbox().support.form.is_some();
        // Cheaper than to ask git about every `ls`.
        if command.text.contains("git") {
            command.git_config = self.programs_of_git(&self.places(command));
        }
    }

    /// Directories inside the roots that the command may go to: where it starts, and whatever its words may mean.
    fn places(&self, command: &CommandFact) -> Vec<PathBuf> {
        let mut places = vec![command.cwd.clone()];
        let border = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '&' | '|' | '(' | ')' | '=');
        for word in command.text.split(border).filter(|word| !word.is_empty()) {
            // An option may hold its directory: `-Cdocs`.
            let word = word.strip_prefix("-C").filter(|rest| !rest.is_empty()).unwrap_or(word);
            let Ok(place) = command.cwd.join(word).canonicalize() else {
                continue;
            };
            let inside = self.roots().iter().any(|root| place.starts_with(&root.path));
            if inside && place.is_dir() && !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    fn programs_of_git(&self, places: &[PathBuf]) -> Vec<String> {
        let Some(git) = self.program("git") else {
            return Vec::new();
        };
        let mut keys: Vec<String> = Vec::new();
        for place in places.iter().take(REPOSITORIES_LIMIT) {
            keys.extend(git_config::programs(&git, place, self.home()));
        }
        if places.len() > REPOSITORIES_LIMIT {
            keys.push(format!("of more than {REPOSITORIES_LIMIT} directories"));
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// Where a program is on the commands' PATH, the project's own directories left out.
    fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.environment().get("PATH")?;
        let dirs = path.split(':').map(Path::new).filter(|dir| dir.is_absolute());
        let outside = dirs.filter(|dir| !self.roots().iter().any(|root| dir.starts_with(&root.path)));
        outside.map(|dir| dir.join(name)).find(|program| program.is_file())
    }
}
