//! `xargs` and `parallel`: a command that gets its last words from standard input.

use super::arg::{Arg, Certainty, joined};
use super::part::Standing;
use super::scope::Scope;
use super::wrappers::{Inner, Unwrapped};

/// Commands that only read, whatever words they are given: none of their options writes or starts anything.
const ONLY_READ: &[&str] = &["cat", "wc", "head", "grep", "stat", "ls", "basename", "dirname", "echo"];

/// Commands that only print the words they are given.
const ONLY_PRINT: &[&str] = &["echo", "basename", "dirname"];

/// Long options whose value is the next word.
const LONG_WITH_VALUE: &[&str] = &[
    "replace",
    "max-args",
    "max-lines",
    "max-procs",
    "max-chars",
    "delimiter",
    "arg-file",
    "eof",
    "jobs",
    "colsep",
];

pub(super) fn unwrap(args: &[Arg], scope: &Scope) -> Unwrapped {
    let mut call = Call::read(args);
    let Some(first) = call.command.first() else {
        let standing = Standing::Asks("Its words come from somewhere else.".to_owned());
        return Unwrapped {
            inner: Vec::new(),
            standing,
        };
    };
    let trusted = scope.stdin.as_ref().is_some_and(|stream| stream.project_files);
    let prints = ONLY_PRINT.contains(&first.text.as_str());
    let reads = ONLY_READ.contains(&first.text.as_str()) || (first.text.ends_with("sum") && !first.text.contains('/'));
    let standing = if call.plain && (prints || (reads && trusted)) && !args.first().is_some_and(|arg| arg.expanded) {
        Standing::Harmless
    } else {
        Standing::Asks("Its words come from another command and can be options or files anywhere.".to_owned())
    };
    // An inner command of the list is judged by the words that stand here; the rest are files of the project.
    if standing == Standing::Harmless {
        return Unwrapped {
            inner: vec![Inner::Command(call.with_items(&[]))],
            standing,
        };
    }
    let mut stdin = scope.stdin.clone().unwrap_or_default();
    if let Some(at) = call.command.iter().position(|word| word.text == ":::") {
        // `parallel` takes words from its own command line too.
        stdin.items = call.command.get(at + 1..).unwrap_or_default().to_vec();
        stdin.text = None;
        call.place.get_or_insert_with(|| "{}".to_owned());
    }
    // With `-I` each line is one word.
    if let (Some(_), Some(text)) = (&call.place, &stdin.text) {
        stdin.items = text.lines().map(|line| Arg::guessed(line.trim_start())).collect();
    }
    // With `-0` the text between two zeros is one.
    if let (true, None, Some(text)) = (call.zeros, &call.place, &stdin.text) {
        stdin.items = text
            .split('\0')
            .filter(|item| !item.is_empty())
            .map(Arg::guessed)
            .collect();
    }
    let words = call.with_items(&stdin.items);
    let mut inner = Vec::new();
    if args.first().is_some_and(|name| name.text.ends_with("parallel")) {
        // It hands its words to a shell.
        inner.push(Inner::script(joined(
            words.iter().take_while(|word| word.text != ":::"),
        )));
    }
    inner.push(if stdin.below {
        Inner::Below(words)
    } else {
        Inner::Command(words)
    });
    Unwrapped { inner, standing }
}

struct Call<'a> {
    command: &'a [Arg],
    /// What stands for the words, with `-I`.
    place: Option<String>,
    /// Only options that change how many words a call gets.
    plain: bool,
    /// Its words end with zeros.
    zeros: bool,
}

impl<'a> Call<'a> {
    fn read(args: &'a [Arg]) -> Self {
        let mut call = Call {
            command: &[],
            place: None,
            plain: true,
            zeros: false,
        };
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            let text = arg.text.as_str();
            let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
                break;
            };
            at += 1;
            if text == "--" {
                break;
            }
            call.plain &= arg.is_sure();
            if let Some(long) = cluster.strip_prefix('-') {
                call.plain = false;
                at += usize::from(LONG_WITH_VALUE.contains(&long));
                continue;
            }
            at += usize::from(call.letters(cluster, args.get(at)));
        }
        call.command = args.get(at..).unwrap_or_default();
        call
    }

    /// Whether the next word is an option's value.
    fn letters(&mut self, cluster: &str, next: Option<&Arg>) -> bool {
        for (i, letter) in cluster.char_indices() {
            let attached = cluster.get(i + letter.len_utf8()..).unwrap_or_default();
            match letter {
                '0' => self.zeros = true,
                'r' | 't' => {}
                'n' | 'L' | 'P' | 'I' | 's' | 'd' | 'E' | 'a' | 'J' | 'j' => {
                    self.plain &= matches!(letter, 'n' | 'L' | 'P' | 'I');
                    if matches!(letter, 'I' | 'J') {
                        let value = if attached.is_empty() {
                            next.map(|arg| arg.text.clone())
                        } else {
                            Some(attached.to_owned())
                        };
                        self.place = value;
                    }
                    return attached.is_empty();
                }
                'i' => {
                    self.plain = false;
                    self.place = Some(if attached.is_empty() {
                        "{}".to_owned()
                    } else {
                        attached.to_owned()
                    });
                    return false;
                }
                _ => self.plain = false,
            }
        }
        false
    }

    /// The command with the words put in.
    fn with_items(&self, items: &[Arg]) -> Vec<Arg> {
        let Some(place) = &self.place else {
            let mut words = self.command.to_vec();
            words.extend(items.iter().cloned());
            return words;
        };
        let mut words = Vec::new();
        for word in self.command {
            if word.text.contains(place.as_str()) && !items.is_empty() {
                words.extend(items.iter().map(|item| put(word, place, item)));
            } else if word.text.contains(place.as_str()) {
                // Some file of the project, by the caller's word; the one nearest to its edge is the project itself.
                words.push(Arg {
                    text: word.text.replace(place.as_str(), "."),
                    ..word.clone()
                });
            } else {
                words.push(word.clone());
            }
        }
        words
    }
}

fn put(word: &Arg, place: &str, item: &Arg) -> Arg {
    Arg {
        text: word.text.replace(place, &item.text),
        certainty: word.certainty.max(Certainty::Unknown),
        glob: word.glob || item.glob,
        ..word.clone()
    }
}
