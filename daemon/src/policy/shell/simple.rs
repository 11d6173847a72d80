//! A simple command as written: assignments, redirections and words are evaluated, then the words are run.

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem, ProcessSubstitutionKind, SimpleCommand,
};

use super::arg::{Arg, Certainty, Stream};
use super::redirect::Redirected;
use super::scope::{Scope, Var, may_be_set, may_precede_command};
use super::walk::Walker;

/// What stands around the words of a command.
#[derive(Default)]
struct Around {
    /// Assignments, as they are shown.
    before: Vec<String>,
    /// Redirections, as they are shown.
    after: Vec<String>,
    /// Why a person should look at any of it.
    extras: Vec<String>,
}

impl Around {
    /// The command as people read it.
    fn dress(&self, command: &str) -> String {
        let before = self.before.iter().map(String::as_str);
        let words = before.chain((!command.is_empty()).then_some(command));
        words
            .chain(self.after.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// An assignment as it is shown.
fn assigned(name: &str, var: &Var) -> String {
    match &var.items {
        None => format!("{name}={}", var.value.shown_short()),
        Some(_) => format!("{name}=(…)"),
    }
}

impl Walker<'_> {
    pub(super) fn simple(&mut self, command: &SimpleCommand, scope: &mut Scope) -> Option<Stream> {
        let outer_stdin = scope.stdin.clone();
        let mut args = Vec::new();
        let mut around = Around::default();
        let mut assignments = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => assignments.push(assignment),
                other => self.item(other, &mut args, &mut around, scope),
            }
        }
        if let Some(word) = &command.word_or_name {
            args.extend(self.expand_word(&word.value, scope));
            let typed = !word.value.contains(['$', '`']);
            if let Some(first) = args.first_mut() {
                first.expanded = !typed;
            }
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut args, &mut around, scope);
        }
        let output = if args.is_empty() {
            if !self.count_command() {
                return None;
            }
            for assignment in assignments {
                around.before.push(self.assign(assignment, scope));
            }
            around.extras.iter().for_each(|reason| self.ask(reason));
            self.show_aside(around.dress(""));
            scope.stdin.take()
        } else {
            let hidden = self.assign_for_command(&assignments, &mut around, scope);
            let at = self.parts.len();
            let output = self.run(args, std::mem::take(&mut around.extras), scope);
            if let Some(part) = self.parts.get_mut(at) {
                part.text = around.dress(&part.text);
            }
            for (name, var) in hidden {
                match var {
                    Some(var) => scope.vars.insert(name, var),
                    None => scope.vars.remove(&name),
                };
            }
            output
        };
        scope.stdin = outer_stdin;
        output
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, args: &mut Vec<Arg>, around: &mut Around, scope: &mut Scope) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                let Redirected { shown, concern } = self.redirect(redirect, scope);
                around.after.extend(shown);
                around.extras.extend(concern);
            }
            // `declare -a name=(…)`.
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, _)
                if matches!(assignment.value, AssignmentValue::Array(_)) =>
            {
                let (name, var) = self.evaluate(assignment, scope);
                args.push(Arg::sure(name.as_str()));
                scope.vars.insert(name, var);
            }
            CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                if !self.count_text(word.value.len()) {
                    return;
                }
                args.extend(self.expand_word(&word.value, scope));
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(kind, subshell) => {
                let output = self.list(&subshell.list, &mut scope.clone());
                args.push(match kind {
                    ProcessSubstitutionKind::Read => Arg::from(output.unwrap_or_default()),
                    ProcessSubstitutionKind::Write => {
                        self.ask("It writes to a command.");
                        Arg::unknown()
                    }
                });
            }
        }
    }

    /// `name=value` standing alone: it holds for the rest of the line.
    /// Returns it as it is shown.
    fn assign(&mut self, assignment: &Assignment, scope: &mut Scope) -> String {
        let (name, var) = self.evaluate(assignment, scope);
        if !may_be_set(&name) {
            self.ask(&format!("Setting {name} can change what commands run."));
        }
        let shown = assigned(&name, &var);
        scope.vars.insert(name, var);
        shown
    }

    /// `name=value command`: it holds for the command only. Returns what the names held before.
    fn assign_for_command(
        &mut self,
        assignments: &[&Assignment],
        around: &mut Around,
        scope: &mut Scope,
    ) -> Vec<(String, Option<Var>)> {
        let mut hidden = Vec::new();
        for assignment in assignments {
            let (name, mut var) = self.evaluate(assignment, scope);
            // Children do not take over separators; `read` splits its line by them.
            let harmless = may_precede_command(&name) || (name == "IFS" && var.value.is_sure());
            if !harmless || !var.value.is_printable() {
                around
                    .extras
                    .push(format!("Setting {name} can change what the command runs."));
            }
            around.before.push(assigned(&name, &var));
            // A child shell sees it; the words of this command were expanded without it.
            var.value.certainty = Certainty::Unknown;
            hidden.push((name.clone(), scope.vars.insert(name, var)));
        }
        hidden
    }

    fn evaluate(&mut self, assignment: &Assignment, scope: &mut Scope) -> (String, Var) {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name.clone(),
            AssignmentName::ArrayElementName(name, _) => {
                self.ask("An array index can run commands.");
                name.clone()
            }
        };
        let mut var = match &assignment.value {
            AssignmentValue::Scalar(word) => Var {
                value: self.expand_value(&word.value, scope),
                items: None,
            },
            AssignmentValue::Array(elements) => {
                self.ask("Arrays are not looked into.");
                let items = elements
                    .iter()
                    .flat_map(|(_, word)| self.expand_word(&word.value, scope))
                    .collect();
                Var {
                    value: Arg::unknown(),
                    items: Some(items),
                }
            }
        };
        if assignment.append {
            append(&mut var, scope.vars.get(&name));
        }
        var.value.expanded = false;
        (name, var)
    }
}

/// `name+=value`.
fn append(var: &mut Var, before: Option<&Var>) {
    let Some(before) = before else {
        var.value.certainty = Certainty::Unknown;
        return;
    };
    var.value.text.insert_str(0, &before.value.text);
    var.value.certainty = var.value.certainty.max(before.value.certainty);
    var.value.glob |= before.value.glob;
    if let (Some(items), Some(earlier)) = (&mut var.items, &before.items) {
        items.splice(0..0, earlier.iter().cloned());
    }
}
