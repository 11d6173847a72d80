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
                    if let Some(reason) = binary_concern(predicate, side, scope, self.fact) {
                        self.ask(&reason);
                    }
                }
            }
        }
    }
}

fn unary_concern(predicate: &UnaryPredicate, operand: &Arg, scope: &Scope, fact: &CommandFact) -> Option<String> {
    match predicate {
        UnaryPredicate::ShellVariableIsSetAndAssigned | UnaryPredicate::ShellVariableIsSetAndNameRef => {
            Some("A test for a variable can run commands in an array index.".to_owned())
        }
        UnaryPredicate::StringHasZeroLength
        | UnaryPredicate::StringHasNonZeroLength
        | UnaryPredicate::ShellOptionEnabled
        | UnaryPredicate::FdIsOpenTerminal => None,
        _ => place::concern(operand, &scope.cwd, fact),
    }
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
        BinaryPredicate::FilesReferToSameDeviceAndInodeNumbers
        | BinaryPredicate::LeftFileIsNewerOrExistsWhenRightDoesNot
        | BinaryPredicate::LeftFileIsOlderOrDoesNotExistWhenRightDoes => place::concern(operand, &scope.cwd, fact),
        _ => None,
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

/// Why `test WORDS…` should be asked about. The words are without `test`, `[` and `]`.
pub(super) fn test_concern(words: &[Arg], scope: &Scope, fact: &CommandFact) -> Option<String> {
    for (i, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        let before = i.checked_sub(1).and_then(|i| words.get(i));
        let after = words.get(i + 1);
        if matches!(text, "-v" | "-R") {
            return Some("A test for a variable can run commands in an array index.".to_owned());
        }
        // An operator that comes out of an expansion could be any of these.
        if !word.is_printable() || word.glob {
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
