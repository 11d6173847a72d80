//! The recipe: which files the prompt is made of beside the built-in text, in which order, and what of them is left out. Made of what the
//! person and the project list; finding the files is the session's.
//!
//! The person's files come first, then the project's own instructions, then the project's files; whoever lists the instructions moves them
//! there. A project leaves out what is its own, the person whatever they want.

use std::path::Path;

pub(crate) use crate::config::context::Owner;
use crate::config::context::{ContextSettings, Listed};

/// Which files go into the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Recipe {
    person: ContextSettings,
    project: ContextSettings,
}

/// One piece of the recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// The project's instructions, under the first of their names that is there.
    Instructions,
    /// A file that is listed, and by whom.
    File(&'a Listed, Owner),
}

impl Recipe {
    /// What the person's configuration and the project's file list together.
    pub(crate) fn of(person: ContextSettings, project: ContextSettings) -> Self {
        Self { person, project }
    }

    /// The pieces in their order, none twice and none that is left out.
    pub(crate) fn pieces(&self) -> Vec<Piece<'_>> {
        let by = |owner| move |listed| Piece::File(listed, owner);
        let persons = self.person.include.iter().map(by(Owner::Person));
        let projects = self
            .project
            .include
            .iter()
            .filter(|listed| !self.person.include.contains(listed));
        let all = persons
            .chain([Piece::Instructions])
            .chain(projects.map(by(Owner::Project)));
        let wanted = |piece: &Piece<'_>| match piece {
            Piece::Instructions => true,
            Piece::File(listed, _) => !self.leaves_out(&listed.path),
        };
        all.filter(wanted).collect()
    }

    /// Whether a file is not to be read at all.
    pub(crate) fn leaves_out(&self, path: &Path) -> bool {
        self.excluded(path).any(|(listed, _)| listed.heading.is_none())
    }

    /// Whether a file stands in the recipe by its name.
    pub(crate) fn lists(&self, path: &Path) -> bool {
        let mut all = self.person.include.iter().chain(&self.project.include);
        all.any(|listed| listed.path == path)
    }

    /// The headings whose sections are left out of a file, and by whom.
    pub(crate) fn headings(&self, path: &Path) -> impl Iterator<Item = (&str, Owner)> {
        self.excluded(path)
            .filter_map(|(listed, owner)| Some((listed.heading.as_deref()?, owner)))
    }

    fn excluded(&self, path: &Path) -> impl Iterator<Item = (&Listed, Owner)> {
        let persons = self.person.exclude.iter().map(|listed| (listed, Owner::Person));
        let projects = self.project.exclude.iter().map(|listed| (listed, Owner::Project));
        persons.chain(projects).filter(move |(listed, _)| listed.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(shown: &str) -> Listed {
        let (path, heading) = match shown.split_once('#') {
            Some((path, heading)) => (path, Some(heading.to_owned())),
            None => (shown, None),
        };
        Listed {
            path: path.into(),
            heading,
            shown: shown.to_owned(),
        }
    }

    fn settings(include: &[&str], exclude: &[&str]) -> ContextSettings {
        let list = |entries: &[&str]| entries.iter().copied().map(listed).collect();
        ContextSettings {
            include: list(include),
            exclude: list(exclude),
        }
    }

    fn order(recipe: &Recipe) -> Vec<String> {
        let shown = |piece: &Piece<'_>| match piece {
            Piece::Instructions => "instructions".to_owned(),
            Piece::File(listed, Owner::Person) => format!("person {}", listed.shown),
            Piece::File(listed, Owner::Project) => format!("project {}", listed.shown),
        };
        recipe.pieces().iter().map(shown).collect()
    }

    #[test]
    fn the_persons_files_come_first_and_no_piece_comes_twice() {
        assert_eq!(order(&Recipe::default()), ["instructions"]);
        let recipe = Recipe::of(
            settings(&["/h.md", "a.md"], &[]),
            settings(&["b.md", "a.md", "a.md#X"], &[]),
        );
        assert_eq!(
            order(&recipe),
            [
                "person /h.md",
                "person a.md",
                "instructions",
                "project b.md",
                "project a.md#X"
            ]
        );
        assert!(recipe.lists(Path::new("a.md")) && !recipe.lists(Path::new("c.md")));
    }

    #[test]
    fn what_either_leaves_out_is_left_out() {
        let recipe = Recipe::of(
            settings(&["/h.md", "a.md"], &["b.md", "c.md#One"]),
            settings(&["b.md", "c.md"], &["a.md", "c.md#Two"]),
        );
        assert_eq!(order(&recipe), ["person /h.md", "instructions", "project c.md"]);
        let headings: Vec<_> = recipe.headings(Path::new("c.md")).collect();
        assert_eq!(headings, [("One", Owner::Person), ("Two", Owner::Project)]);
    }
}
