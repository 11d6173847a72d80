//! Redirections: what is read, what is written, and here-documents as the guess of standard input.

use brush_parser::ast::{IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, ProcessSubstitutionKind, RedirectList};

use super::arg::{Arg, Stream};
use super::scope::Scope;
use super::walk::Walker;
use super::{destructive, place};

/// Where output may go without asking.
const HARMLESS_SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"];

impl Walker<'_> {
    /// Judges redirections and sets what standard input holds. Returns why a person should look.
    pub(super) fn redirects(&mut self, list: Option<&RedirectList>, scope: &mut Scope) -> Vec<String> {
        list.into_iter()
            .flat_map(|list| &list.0)
            .filter_map(|redirect| self.redirect(redirect, scope))
            .collect()
    }

    pub(super) fn redirect(&mut self, redirect: &IoRedirect, scope: &mut Scope) -> Option<String> {
        match redirect {
            IoRedirect::HereDocument(_, document) => {
                let text = if document.requires_expansion {
                    self.expand_here_document(&document.doc.value, scope)
                } else {
                    Arg::sure(document.doc.value.as_str())
                };
                self.feed(text, scope)
            }
            IoRedirect::HereString(_, word) => {
                let text = self.expand_value(&word.value, scope);
                self.feed(text, scope)
            }
            IoRedirect::OutputAndError(word, _) => {
                let target = self.expand_value(&word.value, scope);
                self.write_to(&target, scope)
            }
            IoRedirect::File(_, kind, target) => self.file(kind, target, scope),
        }
    }

    fn feed(&mut self, text: Arg, scope: &mut Scope) -> Option<String> {
        let printable = text.is_printable();
        scope.stdin = Some(Stream::of_text(text.text));
        (!printable).then(|| "Its input is not known before it runs.".to_owned())
    }

    fn file(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget, scope: &mut Scope) -> Option<String> {
        let word = match target {
            IoFileRedirectTarget::Fd(_) => return None,
            IoFileRedirectTarget::ProcessSubstitution(direction, subshell) => {
                let output = self.list(&subshell.list, &mut scope.clone());
                if matches!(
                    (kind, direction),
                    (IoFileRedirectKind::Read, ProcessSubstitutionKind::Read)
                ) {
                    scope.stdin = output;
                    return None;
                }
                return Some("It writes to a command.".to_owned());
            }
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => word,
        };
        let name = self.expand_value(&word.value, scope);
        match kind {
            IoFileRedirectKind::Read => {
                scope.stdin = None;
                self.reads.extend(scope.cwd.paths(&name.text));
                place::concern(&name, &scope.cwd, self.fact)
            }
            IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput if is_descriptor(&name) => None,
            IoFileRedirectKind::DuplicateInput => Some("It reads from a descriptor not known beforehand.".to_owned()),
            IoFileRedirectKind::DuplicateOutput
            | IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::Clobber => self.write_to(&name, scope),
        }
    }

    fn write_to(&mut self, target: &Arg, scope: &Scope) -> Option<String> {
        if let Some(reason) = destructive::write_to(target, scope, self.fact) {
            self.block(reason);
        }
        if target.is_sure() && HARMLESS_SINKS.contains(&target.text.as_str()) {
            return None;
        }
        Some(format!("It writes to {}.", target.shown()))
    }
}

/// `2`, `-` or `2-`.
fn is_descriptor(name: &Arg) -> bool {
    let digits = name.text.strip_suffix('-').unwrap_or(&name.text);
    name.is_sure() && !name.text.is_empty() && digits.len() <= 3 && digits.chars().all(|c| c.is_ascii_digit())
}
