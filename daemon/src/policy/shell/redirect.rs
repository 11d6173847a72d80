//! Redirections: what is read, what is written, and here-documents as the guess of standard input.

use brush_parser::ast::{IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, ProcessSubstitutionKind, RedirectList};

use super::arg::{Arg, Stream};
use super::place::Spot;
use super::scope::Scope;
use super::walk::Walker;
use super::{destructive, place};

/// Where output may go without asking.
const HARMLESS_SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"];

/// A redirection that was judged.
#[derive(Debug, Default)]
pub(super) struct Redirected {
    /// As people read it, `> out`; none where output goes nowhere or two descriptors become one.
    pub shown: Option<String>,
    /// Why a person should look.
    pub concern: Option<String>,
}

impl Redirected {
    fn shown(operator: &str, target: &Arg) -> Self {
        Self {
            shown: Some(format!("{operator} {}", target.shown_short())),
            concern: None,
        }
    }

    fn because(self, concern: Option<String>) -> Self {
        Self { concern, ..self }
    }
}

impl Walker<'_> {
    /// Judges the redirections of a compound command, sets what standard input holds, and asks. Returns them as they are shown.
    pub(super) fn redirects(&mut self, list: Option<&RedirectList>, scope: &mut Scope) -> Vec<String> {
        let mut shown = Vec::new();
        for redirect in list.into_iter().flat_map(|list| &list.0) {
            let redirected = self.redirect(redirect, scope);
            if let Some(reason) = &redirected.concern {
                self.ask(reason);
            }
            shown.extend(redirected.shown);
        }
        shown
    }

    pub(super) fn redirect(&mut self, redirect: &IoRedirect, scope: &mut Scope) -> Redirected {
        match redirect {
            IoRedirect::HereDocument(_, document) => {
                let text = if document.requires_expansion {
                    self.expand_here_document(&document.doc.value, scope)
                } else {
                    Arg::sure(document.doc.value.as_str())
                };
                self.feed("<<", text, scope)
            }
            IoRedirect::HereString(_, word) => {
                let text = self.expand_value(&word.value, scope);
                self.feed("<<<", text, scope)
            }
            IoRedirect::OutputAndError(word, appends) => {
                let target = self.expand_value(&word.value, scope);
                self.write_to(if *appends { "&>>" } else { "&>" }, &target, scope)
            }
            IoRedirect::File(_, kind, target) => self.file(kind, target, scope),
        }
    }

    /// The text itself stands in the command that is shown above its parts.
    fn feed(&mut self, operator: &str, text: Arg, scope: &mut Scope) -> Redirected {
        let printable = text.is_printable();
        scope.stdin = Some(Stream::of_text(text.text));
        let concern = (!printable).then(|| "Its input is not known before it runs.".to_owned());
        Redirected {
            shown: Some(format!("{operator} …")),
            concern,
        }
    }

    fn file(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget, scope: &mut Scope) -> Redirected {
        let operator = kind.to_string();
        let word = match target {
            IoFileRedirectTarget::Fd(_) => return Redirected::default(),
            IoFileRedirectTarget::ProcessSubstitution(direction, subshell) => {
                let output = self.list(&subshell.list, &mut scope.clone());
                if matches!(
                    (kind, direction),
                    (IoFileRedirectKind::Read, ProcessSubstitutionKind::Read)
                ) {
                    scope.stdin = output;
                    return Redirected {
                        shown: Some(format!("{operator} <(…)")),
                        concern: None,
                    };
                }
                return Redirected {
                    shown: Some(format!("{operator} >(…)")),
                    concern: Some("It writes to a command.".to_owned()),
                };
            }
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => word,
        };
        let name = self.expand_value(&word.value, scope);
        match kind {
            IoFileRedirectKind::Read => {
                scope.stdin = None;
                self.reads.extend(scope.cwd.paths(&name.text));
                let concern = place::concern(&name, &scope.cwd, self.fact);
                Redirected::shown(&operator, &name).because(concern)
            }
            IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput if is_descriptor(&name) => {
                Redirected::default()
            }
            IoFileRedirectKind::DuplicateInput => Redirected::shown(&operator, &name)
                .because(Some("It reads from a descriptor not known beforehand.".to_owned())),
            IoFileRedirectKind::DuplicateOutput
            | IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::Clobber => self.write_to(&operator, &name, scope),
        }
    }

    fn write_to(&mut self, operator: &str, target: &Arg, scope: &Scope) -> Redirected {
        self.writes.extend(scope.cwd.spots(&target.text).iter().map(Spot::path));
        if let Some(reason) = destructive::write_to(target, scope, self.fact) {
            self.block(reason);
        }
        if target.is_sure() && HARMLESS_SINKS.contains(&target.text.as_str()) {
            return Redirected::default();
        }
        Redirected::shown(operator, target).because(Some(format!("It writes to {}.", target.shown())))
    }
}

/// `2`, `-` or `2-`.
fn is_descriptor(name: &Arg) -> bool {
    let digits = name.text.strip_suffix('-').unwrap_or(&name.text);
    name.is_sure() && !name.text.is_empty() && digits.len() <= 3 && digits.chars().all(|c| c.is_ascii_digit())
}
