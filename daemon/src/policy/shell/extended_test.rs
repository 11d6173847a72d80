//! `[[ … ]]` and `test`: which conditions only look.

use brush_parser::ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate};

use super::arg::Arg;
use super::arithmetic::is_integer;
use super::place;
use super::scope::Scope;
use super::walk::Walker;
use crate::policy::facts::CommandFact;

impl Walker<'_> {
    pub(super) fn extended_test(&mut self, test: &ExtendedTestExpr, scope: &mut Scope) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.extended_test(left, scope);
                self.extended_test(right, scope);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.extended_test(inner, scope),
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                let operand = self.expand_value(&word.value, scope);
                if !compares_text(predicate) {
                    self.reads.extend(scope.cwd.paths(&operand.text));
                }
                if let Some(reason) = unary_concern(predicate, &operand, scope, self.fact) {
                    self.ask(&reason);
                }
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                let sides = [
                    self.expand_value(&left.value, scope),
                    self.expand_value(&right.value, scope),
                ];
                for side in &sides {
                    if compares_files(predicate) {
                        self.reads.extend(scope.cwd.paths(&side.text));
                    }
                    if let Some(reason) = binary_concern(predicate, side, scope, self.fact) {
                        self.ask(&reason);
                    }
                }
            }
        }
    }
}

/// Whether a test looks at a text or the shell, not at a file.
fn compares_text(predicate: &UnaryPredicate) -> bool {
    matches!(
        predicate,
        UnaryPredicate::StringHasZeroLength
            | UnaryPredicate::StringHasNonZeroLength
            | UnaryPredicate::ShellOptionEnabled
            | UnaryPredicate::FdIsOpenTerminal
    )
}

fn unary_concern(predicate: &UnaryPredicate, operand: &Arg, scope: &Scope, fact: &CommandFact) -> Option<String> {
    match predicate {
        UnaryPredicate::ShellVariableIsSetAndAssigned | UnaryPredicate::ShellVariableIsSetAndNameRef => {
            Some("A test for a variable can run commands in an array index.".to_owned())
        }
        text if compares_text(text) => None,
        _ => place::concern(operand, &scope.cwd, fact),
    }
}

fn compares_files(predicate: &BinaryPredicate) -> bool {
    matches!(
        predicate,
        BinaryPredicate::FilesReferToSameDeviceAndInodeNumbers
            | BinaryPredicate::LeftFileIsNewerOrExistsWhenRightDoesNot
            | BinaryPredicate::LeftFileIsOlderOrDoesNotExistWhenRightDoes
    )
}

fn binary_concern(predicate: &BinaryPredicate, operand: &Arg, scope: &Scope, fact: &CommandFact) -> Option<String> {
    match predicate {
        BinaryPredicate::ArithmeticEqualTo
        | BinaryPredicate::ArithmeticNotEqualTo
        | BinaryPredicate::ArithmeticLessThan
        | BinaryPredicate::ArithmeticLessThanOrEqualTo
        | BinaryPredicate::ArithmeticGreaterThan
        | BinaryPredicate::ArithmeticGreaterThanOrEqualTo => {
            (!is_number(operand)).then(|| "Comparing what is not a plain number can run commands.".to_owned())
        }
        files if compares_files(files) => place::concern(operand, &scope.cwd, fact),
        // Compared piece by piece a value can be found out.
        _ => {
            (!operand.is_printable()).then(|| format!("The value of {} is not known before it runs.", operand.shown()))
        }
    }
}

fn is_number(operand: &Arg) -> bool {
    operand.is_sure() && is_integer(&operand.text)
}

/// Operators of `test` that look at a file.
const FILE_TESTS: &[&str] = &[
    "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S", "-u", "-g", "-k", "-O", "-G", "-N",
    "-a",
];
const FILE_COMPARISONS: &[&str] = &["-nt", "-ot", "-ef"];

/// Operators between two words.
const COMPARISONS: &[&str] = &[
    "=", "==", "!=", "-nt", "-ot", "-ef", "-eq", "-ne", "-lt", "-le", "-gt", "-ge",
];

/// Whether the words are one condition at most negated, in which no operand is ever taken for an operator.
fn is_single_condition(words: &[Arg]) -> bool {
    let words = match words {
        [first, rest @ ..] if first.is_sure() && first.text == "!" => rest,
        words => words,
    };
    match words {
        [operator, _] => {
            operator.is_sure()
                && (FILE_TESTS.contains(&operator.text.as_str()) || matches!(operator.text.as_str(), "-n" | "-z"))
        }
        [_, operator, _] => operator.is_sure() && COMPARISONS.contains(&operator.text.as_str()),
        _ => false,
    }
}

/// Why `test WORDS…` should be asked about. The words are without `test`, `[` and `]`.
pub(super) fn test_concern(words: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    let single = is_single_condition(words);
    for (i, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        let before = i.checked_sub(1).and_then(|i| words.get(i));
        let after = words.get(i + 1);
        if matches!(text, "-v" | "-R") {
            return Some("A test for a variable can run commands in an array index.".to_owned());
        }
        // An operator that comes out of an expansion could be any of these.
        let named = word.glob && word.expanded && !word.split && single;
        if !word.is_printable() || (word.glob && !named) {
            return Some(format!("The value of {} is not known before it runs.", word.shown()));
        }
        let compared = FILE_COMPARISONS.contains(&text);
        let looked_at = [
            before.filter(|_| compared),
            after.filter(|_| compared || FILE_TESTS.contains(&text)),
        ];
        if let Some(reason) = looked_at
            .into_iter()
            .flatten()
            .find_map(|file| place::concern(file, &scope.cwd, fact))
        {
            return Some(reason);
        }
    }
    None
}
