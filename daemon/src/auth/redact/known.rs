//! The secrets that are known, and taking them out of a text.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};

use super::forms;
use super::wrapped::Wrapped;

/// Secrets that are looked for. A daemon has a few.
pub(super) const MAX_SECRETS: usize = 256;

/// Secrets of one profile. Logins renew theirs without end, and clients may; the ones before the last are good for nothing any more.
pub(super) const MAX_OF_PROFILE: usize = 16;

/// What is looked for and what is put in its place.
#[derive(Default)]
pub(super) struct Known {
    /// What stands in the place of a secret, and the secret; oldest first.
    secrets: Vec<(String, String)>,
    /// All forms of all secrets.
    forms: Vec<Form>,
    /// Finds `forms`, by their position. None while there are none, and for a list too large to build, which the bounds rule out.
    finder: Option<AhoCorasick>,
    /// Finds base64 that goes over several lines.
    wrapped: Wrapped,
}

struct Form {
    text: String,
    mark: String,
}

/// Whether more may follow a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Is,
    MayGoOn,
}

/// What stands before a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// A line end, and blanks at most behind it.
    LineEnd,
    /// Nothing, or the same line.
    Other,
}

impl Before {
    /// What stands before what follows `text`, which itself follows this.
    pub(super) fn then(self, text: &str) -> Self {
        match text.trim_end_matches([' ', '\t']).chars().next_back() {
            None => self,
            Some('\n') => Self::LineEnd,
            Some(_) => Self::Other,
        }
    }
}

impl Known {
    pub(super) fn has(&self, secret: &str) -> bool {
        self.secrets.iter().any(|(_, known)| known == secret)
    }

    pub(super) fn count(&self) -> usize {
        self.secrets.len()
    }

    /// The same with one more.
    pub(super) fn with(&self, mark: String, secret: String) -> Self {
        let mut secrets = self.secrets.clone();
        let own = secrets.iter().filter(|(other, _)| *other == mark).count();
        let oldest = match own >= MAX_OF_PROFILE {
            true => secrets.iter().position(|(other, _)| *other == mark),
            false => (secrets.len() >= MAX_SECRETS).then_some(0),
        };
        if let Some(oldest) = oldest {
            secrets.remove(oldest);
        }
        secrets.push((mark, secret));
        let forms: Vec<Form> = secrets
            .iter()
            .flat_map(|(mark, secret)| {
                forms::all(secret).into_iter().map(|text| Form {
                    text,
                    mark: mark.clone(),
                })
            })
            .collect();
        let texts = forms.iter().map(|form| &form.text);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(texts)
            .ok();
        let wrapped = Wrapped::of(&secrets);
        Self {
            secrets,
            forms,
            finder,
            wrapped,
        }
    }

    /// The text without secrets.
    pub(super) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) || self.wrapped.is_in(text) => {
                Cow::Owned(self.cleaned(text, Before::Other, Rest::Is).0)
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// The text without secrets, and its end that may be the beginning of one.
    pub(super) fn cleaned<'t>(&self, text: &'t str, before: Before, rest: Rest) -> (String, &'t str) {
        let wrapped = self.wrapped.look(text, before, rest);
        let mut wrapped_found = wrapped.found.into_iter().peekable();
        let mut clean = String::with_capacity(text.len());
        let mut at = 0;
        loop {
            let left = text.get(at..).unwrap_or_default();
            let open = match rest {
                Rest::Is => text.len(),
                Rest::MayGoOn => {
                    let wrapped = Some(wrapped.open).filter(|open| *open >= at);
                    (at + self.beginning_in(left)).min(wrapped.unwrap_or(text.len()))
                }
            };
            while wrapped_found.next_if(|(range, _)| range.start < at).is_some() {}
            let direct = self.finder.as_ref().and_then(|finder| finder.find(left)).map(|found| {
                let mark = self.forms.get(found.pattern().as_usize()).map_or("", |form| &form.mark);
                (at + found.start()..at + found.end(), mark)
            });
            // Of two the one that begins first, and of those the longer.
            let first = [direct, wrapped_found.peek().cloned()]
                .into_iter()
                .flatten()
                .min_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)))
                .filter(|(range, _)| range.start < open);
            let Some((range, mark)) = first else {
                let (done, open) = text.split_at(open);
                clean.push_str(done.get(at..).unwrap_or_default());
                return (clean, open);
            };
            clean.push_str(text.get(at..range.start).unwrap_or_default());
            clean.push_str(mark);
            at = range.end;
        }
    }

    /// Where the longest end of `text` starts that a secret begins with; the text's length if there is none.
    fn beginning_in(&self, text: &str) -> usize {
        let of_form = |form: &Form| {
            let form = form.text.as_bytes();
            let longest = text.len().min(form.len() - 1);
            (1..=longest).rev().find(|length| {
                form.get(..*length)
                    .is_some_and(|begun| text.as_bytes().ends_with(begun))
            })
        };
        text.len() - self.forms.iter().filter_map(of_form).max().unwrap_or(0)
    }
}
