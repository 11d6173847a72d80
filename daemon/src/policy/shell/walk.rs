//! The walk through a command line: lists, pipelines, compound commands, functions, in the order the shell would run
//! them, carrying what is known about variables and directories.
//!
//! Only a closed list of syntax runs unasked; everything else is walked all the same, because the guard has to see what
//! it would run.

use std::path::PathBuf;
use std::rc::Rc;

use brush_parser::ast::{
    AndOr, AndOrList, Command, CompoundCommand, CompoundList, FunctionDefinition, Pipeline, SeparatorOperator,
};

use super::arg::{Arg, Stream};
use super::fork_bomb::{self, CallGraph};
use super::parse::{self, Unreadable};
use super::part::Part;
use super::place::Cwd;
use super::rough;
use super::scope::Scope;
use crate::policy::facts::CommandFact;

/// Scripts inside scripts (`sh -c`, `eval`, `$(…)`) that are followed; deeper ones ask.
const INTERPRETATION_LIMIT: usize = 16;
/// Compound commands inside each other over all scripts; keeps the walk within a small thread's stack.
const NESTING_LIMIT: usize = 40;
/// Simple commands judged, each run of a loop's body counted; more ask.
const COMMAND_LIMIT: usize = 1_000;
/// Bytes of scripts and words judged, expansions included: a short line can double a value again and again.
const TEXT_BUDGET: usize = 2 * 1024 * 1024;
/// Reasons kept: a person reads the first few.
const REASON_LIMIT: usize = 32;

/// Collects what a command line would do.
pub(super) struct Walker<'a> {
    pub fact: &'a CommandFact,
    /// The simple commands in the order they were met.
    pub parts: Vec<Part>,
    /// Why the line as a whole needs a person, whatever its commands are.
    pub asks: Vec<String>,
    /// Why it may look like something else to a person.
    pub disguise: Option<String>,
    /// Why the guard stops it.
    pub blocks: Vec<String>,
    /// Files that redirections read.
    pub reads: Vec<PathBuf>,
    /// Files that redirections write.
    pub writes: Vec<PathBuf>,
    /// What a person reads beside the parts, each before the part of this index.
    pub asides: Vec<(usize, String)>,
    /// Why the guard could not see all of it.
    pub unseen: Option<String>,
    /// The part whose words made the commands that are walked now.
    pub(super) parent: Option<usize>,
    calls: CallGraph,
    interpretations: usize,
    nesting: usize,
    commands: usize,
    text: usize,
}

impl<'a> Walker<'a> {
    pub(super) fn new(fact: &'a CommandFact) -> Self {
        Self {
            fact,
            parts: Vec::new(),
            asks: Vec::new(),
            disguise: None,
            blocks: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            asides: Vec::new(),
            unseen: None,
            parent: None,
            calls: CallGraph::default(),
            interpretations: 0,
            nesting: 0,
            commands: 0,
            text: 0,
        }
    }

    /// Shows a redirection or an assignment that is no part's own. Each comes of a word that was counted, so there are not more.
    pub(super) fn show_aside(&mut self, text: String) {
        self.asides.push((self.parts.len(), text));
    }

    /// Walks the whole command line.
    pub(super) fn run_line(&mut self) {
        let mut scope = Scope::new(Cwd::new(&self.fact.cwd));
        let text = self.fact.text.clone();
        self.script(&text, &mut scope);
    }

    pub(super) fn ask(&mut self, reason: &str) {
        if self.asks.len() < REASON_LIMIT && !self.asks.iter().any(|known| known == reason) {
            self.asks.push(reason.to_owned());
        }
    }

    pub(super) fn block(&mut self, reason: String) {
        if self.blocks.len() < REASON_LIMIT && !self.blocks.contains(&reason) {
            self.blocks.push(reason);
        }
    }

    fn lose_sight(&mut self, reason: &str) {
        self.unseen.get_or_insert_with(|| reason.to_owned());
    }

    /// Counts a simple command; false when no more are judged.
    pub(super) fn count_command(&mut self) -> bool {
        self.commands += 1;
        if self.commands > COMMAND_LIMIT {
            self.lose_sight("It runs more commands than can be judged.");
        }
        self.commands <= COMMAND_LIMIT
    }

    /// Counts text that is judged; false when no more is.
    pub(super) fn count_text(&mut self, bytes: usize) -> bool {
        self.text = self.text.saturating_add(bytes);
        if self.text > TEXT_BUDGET {
            self.lose_sight("It makes more text than can be judged.");
        }
        self.text <= TEXT_BUDGET
    }

    /// Walks a script: the line itself, or one found inside it. Returns the guess of what it prints.
    pub(super) fn script(&mut self, text: &str, scope: &mut Scope) -> Option<Stream> {
        if self.interpretations >= INTERPRETATION_LIMIT {
            self.lose_sight("It nests scripts more deeply than can be judged.");
            return None;
        }
        if !self.count_text(text.len()) {
            return None;
        }
        self.interpretations += 1;
        let output = match parse::script(text) {
            Ok(program) => {
                let mut output = None;
                for list in &program.complete_commands {
                    output = self.list(list, scope);
                }
                output
            }
            Err(problem) => {
                self.read_roughly(text, &problem, scope);
                None
            }
        };
        self.interpretations -= 1;
        output
    }

    /// What cannot be parsed may still run in part: bash executes the lines before an error. A piece the grammar cut
    /// out wrongly is read with all that is around it.
    fn read_roughly(&mut self, text: &str, problem: &Unreadable, scope: &Scope) {
        let first = self.unseen.is_none();
        self.lose_sight(&format!("The command cannot be judged: {problem}."));
        let around = self.fact.text.clone();
        let whole = (first && text != around).then_some(around);
        for text in whole.as_deref().into_iter().chain([text]) {
            if fork_bomb::looks_like(text) {
                self.block(fork_bomb::REASON.to_owned());
            }
            self.run_roughly(text, scope);
        }
    }

    /// Only the guard looks at a text that may hold commands.
    fn guard_roughly(&mut self, text: &str, scope: &Scope) {
        let parts = self.parts.len();
        self.run_roughly(text, scope);
        self.parts.truncate(parts);
    }

    fn run_roughly(&mut self, text: &str, scope: &Scope) {
        for words in rough::commands(text) {
            let args = words
                .into_iter()
                .map(|word| Arg {
                    expanded: true,
                    ..Arg::sure(word)
                })
                .collect();
            self.run(args, Vec::new(), &mut scope.clone());
        }
    }

    pub(super) fn list(&mut self, list: &CompoundList, scope: &mut Scope) -> Option<Stream> {
        let mut output = None;
        for item in &list.0 {
            output = match item.1 {
                SeparatorOperator::Sequence => self.and_or(&item.0, scope),
                SeparatorOperator::Async => {
                    self.ask("It leaves a command running in the background.");
                    let mut inner = scope.clone();
                    inner.beside = true;
                    self.and_or(&item.0, &mut inner);
                    None
                }
            };
        }
        output
    }

    fn and_or(&mut self, list: &AndOrList, scope: &mut Scope) -> Option<Stream> {
        let start = scope.cwd.clone();
        let outer_conditional = scope.conditional;
        let mut output = self.pipeline(&list.first, scope);
        let after_first = scope.clone();
        let mut leaves_on_failure = false;
        scope.conditional = outer_conditional || !list.additional.is_empty();
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) => output = self.pipeline(pipeline, scope),
                AndOr::Or(pipeline) => {
                    let mut branch = scope.clone();
                    branch.cwd = start.or(&scope.cwd);
                    output = self.pipeline(pipeline, &mut branch);
                    if leaves(pipeline) {
                        leaves_on_failure = true;
                    } else {
                        scope.merge(branch);
                    }
                }
            }
        }
        scope.conditional = outer_conditional;
        let reached = scope.cwd.clone();
        if !list.additional.is_empty() {
            scope.doubt_changes_since(&after_first);
        }
        // A `cd` may have failed, unless what follows it on failure leaves.
        scope.cwd = if leaves_on_failure { reached } else { start.or(&reached) };
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline, scope: &mut Scope) -> Option<Stream> {
        if let [command] = pipeline.seq.as_slice() {
            return self.command(command, scope);
        }
        let mut stream = scope.stdin.clone();
        for command in &pipeline.seq {
            let mut inner = scope.clone();
            inner.stdin = stream;
            inner.beside = true;
            stream = self.command(command, &mut inner);
        }
        stream
    }

    fn command(&mut self, command: &Command, scope: &mut Scope) -> Option<Stream> {
        match command {
            Command::Simple(simple) => self.simple(simple, scope),
            Command::Compound(compound, redirects) => {
                let outer_stdin = scope.stdin.clone();
                let shown = self.redirects(redirects.as_ref(), scope);
                let output = self.compound(compound, scope);
                if !shown.is_empty() {
                    self.show_aside(format!("{{ … }} {}", shown.join(" ")));
                }
                scope.stdin = outer_stdin;
                output
            }
            Command::Function(function) => {
                self.define(function, scope);
                None
            }
            Command::ExtendedTest(test, redirects) => {
                let shown = self.redirects(redirects.as_ref(), &mut scope.clone());
                if !shown.is_empty() {
                    self.show_aside(format!("[[ … ]] {}", shown.join(" ")));
                }
                self.extended_test(&test.expr, scope);
                None
            }
        }
    }

    pub(super) fn compound(&mut self, compound: &CompoundCommand, scope: &mut Scope) -> Option<Stream> {
        if self.nesting >= NESTING_LIMIT {
            self.lose_sight("It nests commands more deeply than can be judged.");
            return None;
        }
        if !self.count_command() {
            return None;
        }
        self.nesting += 1;
        let output = self.compound_inside(compound, scope);
        self.nesting -= 1;
        output
    }

    fn compound_inside(&mut self, compound: &CompoundCommand, scope: &mut Scope) -> Option<Stream> {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, scope),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, &mut scope.clone()),
            CompoundCommand::ForClause(clause) => {
                let values = match &clause.values {
                    Some(words) => words
                        .iter()
                        .flat_map(|word| self.expand_word(&word.value, scope))
                        .collect(),
                    None => scope.params.clone(),
                };
                self.each(&clause.variable_name, values, &clause.body.list, scope);
                None
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, scope);
                let mut branches = vec![&clause.then];
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.branch(condition, scope);
                    }
                    branches.push(&other.body);
                }
                self.branches(&branches, scope);
                None
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.repeat(&[&clause.0, &clause.1.list], scope);
                None
            }
            CompoundCommand::CaseClause(clause) => {
                self.ask("A `case` is not looked into.");
                self.expand_value(&clause.value.value, scope);
                let bodies: Vec<&CompoundList> = clause.cases.iter().filter_map(|case| case.cmd.as_ref()).collect();
                self.branches(&bodies, scope);
                None
            }
            CompoundCommand::Arithmetic(command) => {
                self.ask("Arithmetic commands can set variables.");
                self.arithmetic(&command.expr.value, scope);
                // The grammar takes `( (` for `((`, and the shell then runs what is in it.
                self.guard_roughly(&command.expr.value, scope);
                None
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                self.ask("A counting loop is not looked into.");
                for expression in [&clause.initializer, &clause.condition, &clause.updater]
                    .into_iter()
                    .flatten()
                {
                    self.arithmetic(&expression.value, scope);
                }
                self.repeat(&[&clause.body.list], scope);
                None
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.ask("It leaves a command running in the background.");
                let mut inner = scope.clone();
                inner.beside = true;
                self.command(&coprocess.body, &mut inner);
                None
            }
        }
    }

    /// Code that may run or not.
    fn branch(&mut self, list: &CompoundList, scope: &mut Scope) {
        self.branches(&[list], scope);
    }

    /// Code of which at most one piece runs.
    fn branches(&mut self, lists: &[&CompoundList], scope: &mut Scope) {
        let mut start = scope.clone();
        start.conditional = true;
        for list in lists {
            let mut branch = start.clone();
            self.list(list, &mut branch);
            branch.conditional = scope.conditional;
            scope.merge(branch);
        }
    }

    /// A loop over words: known words are walked one by one, the rest as one that stands for all.
    fn each(&mut self, name: &str, values: Vec<Arg>, body: &CompoundList, scope: &mut Scope) {
        let before = scope.clone();
        for value in values {
            let known = value.is_sure() && !value.glob;
            scope.assign(name, value);
            if known {
                drop(self.list(body, scope))
            } else {
                self.repeat(&[body], scope)
            }
        }
        scope.doubt_changes_since(&before);
    }

    /// Code that may run again: walked once to learn what it changes, then with those changes in doubt.
    fn repeat(&mut self, lists: &[&CompoundList], scope: &mut Scope) {
        let parts = self.parts.len();
        let before = scope.clone();
        for list in lists {
            self.list(list, scope);
        }
        self.parts.truncate(parts);
        scope.doubt_changes_since(&before);
        for list in lists {
            self.list(list, scope);
        }
        scope.doubt_changes_since(&before);
    }

    /// A function: remembered for its calls, and its body judged now as if called with unknown words.
    fn define(&mut self, function: &FunctionDefinition, scope: &mut Scope) {
        self.ask("It defines a function, which can take the place of a command.");
        let name = function.fname.value.clone();
        if self.calls.define(&name, &function.body.0) {
            self.block(fork_bomb::REASON.to_owned());
        }
        let mut inner = scope.clone();
        inner.params = vec![Arg::unknown(); 9];
        inner.conditional = true;
        let shown = self.redirects(function.body.1.as_ref(), &mut inner);
        if !shown.is_empty() {
            self.show_aside(format!("{name}() {{ … }} {}", shown.join(" ")));
        }
        self.compound(&function.body.0, &mut inner);
        scope.functions.insert(name, Rc::new(function.body.0.clone()));
    }
}

/// Whether a pipeline ends the script, so that what follows runs only if it did not.
fn leaves(pipeline: &Pipeline) -> bool {
    let [command] = pipeline.seq.as_slice() else {
        return false;
    };
    match command {
        Command::Simple(simple) => simple
            .word_or_name
            .as_ref()
            .is_some_and(|word| matches!(word.value.as_str(), "exit" | "return")),
        Command::Compound(CompoundCommand::BraceGroup(group), _) => group
            .list
            .0
            .last()
            .is_some_and(|item| item.0.additional.is_empty() && leaves(&item.0.first)),
        _ => false,
    }
}
