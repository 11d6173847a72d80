//! Fork bombs: functions that, without any condition, start themselves beside themselves.

use std::collections::{HashMap, HashSet};

use brush_parser::ast::{Command, CompoundCommand, CompoundList, Pipeline, SeparatorOperator, SimpleCommand};

pub(super) const REASON: &str = "It is a fork bomb: a function that starts itself again and again.";

/// Whether a text the grammar refuses, such as `:(){:|:&};:`, holds a function that pipes itself into itself.
pub(super) fn looks_like(text: &str) -> bool {
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    dense.match_indices("(){").any(|(at, opening)| {
        let (before, rest) = dense.split_at(at);
        let body = rest.strip_prefix(opening).unwrap_or_default();
        // A name ends at the next operator, so that each piece of the text is looked at once.
        let name = body
            .split(['|', '&', ';', '(', ')', '{', '}'])
            .next()
            .unwrap_or_default();
        !name.is_empty() && before.ends_with(name) && body.starts_with(&format!("{name}|{name}&"))
    })
}

/// How a function may call itself without its name.
const OWN_NAMES: &[&str] = &["$FUNCNAME", "${FUNCNAME}", "${FUNCNAME[0]}"];

/// Which function calls which, as far as the calls are unconditional.
#[derive(Debug, Default)]
pub(super) struct CallGraph {
    edges: HashMap<String, Vec<Edge>>,
}

#[derive(Debug)]
struct Edge {
    callee: String,
    /// In a pipeline or in the background, so that a process is left for each call.
    beside: bool,
}

impl CallGraph {
    /// Adds a function; true if it now starts itself again and again.
    pub(super) fn define(&mut self, name: &str, body: &CompoundCommand) -> bool {
        let mut edges = Vec::new();
        compound(body, false, &mut edges);
        for edge in &mut edges {
            if OWN_NAMES.contains(&edge.callee.as_str()) {
                name.clone_into(&mut edge.callee);
            }
        }
        self.edges.insert(name.to_owned(), edges);
        self.multiplies(name)
    }

    /// Whether a chain of calls leads back to `name` and leaves processes on its way.
    fn multiplies(&self, name: &str) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![(name, false)];
        while let Some((at, beside)) = open.pop() {
            for edge in self.edges.get(at).into_iter().flatten() {
                let beside = beside || edge.beside;
                if edge.callee == name && beside {
                    return true;
                }
                if seen.insert((edge.callee.as_str(), beside)) {
                    open.push((edge.callee.as_str(), beside));
                }
            }
        }
        false
    }
}

fn list(list: &CompoundList, beside: bool, edges: &mut Vec<Edge>) {
    for item in &list.0 {
        // What follows `&&` or `||` is conditional.
        pipeline(
            &item.0.first,
            beside || matches!(item.1, SeparatorOperator::Async),
            edges,
        );
    }
}

fn pipeline(pipeline: &Pipeline, beside: bool, edges: &mut Vec<Edge>) {
    let beside = beside || pipeline.seq.len() > 1;
    for part in &pipeline.seq {
        match part {
            Command::Simple(simple) => edges.extend(called(simple).map(|callee| Edge { callee, beside })),
            Command::Compound(inner, _) => compound(inner, beside, edges),
            Command::Function(_) | Command::ExtendedTest(..) => {}
        }
    }
}

fn compound(command: &CompoundCommand, beside: bool, edges: &mut Vec<Edge>) {
    match command {
        CompoundCommand::BraceGroup(group) => list(&group.list, beside, edges),
        CompoundCommand::Subshell(subshell) => list(&subshell.list, beside, edges),
        CompoundCommand::ForClause(clause) => {
            // A loop over what is there ends by itself; one over literal words runs whatever happens.
            let literal = clause
                .values
                .iter()
                .flatten()
                .all(|word| !word.value.contains(['$', '`', '*', '?', '[']));
            if literal && clause.values.is_some() {
                list(&clause.body.list, beside, edges);
            }
        }
        CompoundCommand::WhileClause(clause) if is_always_true(&clause.0) => list(&clause.1.list, beside, edges),
        CompoundCommand::Coprocess(coprocess) => match coprocess.body.as_ref() {
            Command::Compound(inner, _) => compound(inner, true, edges),
            Command::Simple(simple) => edges.extend(called(simple).map(|callee| Edge { callee, beside: true })),
            _ => {}
        },
        _ => {}
    }
}

fn is_always_true(condition: &CompoundList) -> bool {
    let [item] = condition.0.as_slice() else { return false };
    let [Command::Simple(simple)] = item.0.first.seq.as_slice() else {
        return false;
    };
    item.0.additional.is_empty() && called(simple).is_some_and(|name| matches!(name.as_str(), ":" | "true"))
}

/// The command's name with quotes removed.
fn called(simple: &SimpleCommand) -> Option<String> {
    simple
        .word_or_name
        .as_ref()
        .map(|word| brush_parser::unquote_str(&word.value))
}
