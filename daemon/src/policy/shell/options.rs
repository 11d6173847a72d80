//! A lenient reading of a command's options, for the guard: letters, long names, operands, in any order.

use super::arg::Arg;

/// Options and operands of a command whose options take no separate values unless they are named as such.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    pub letters: String,
    /// Long options without dashes and without `=value`.
    pub long: Vec<&'a str>,
    /// Values of options that take one, with the option's letter or long name.
    pub values: Vec<(String, String)>,
    pub operands: Vec<&'a Arg>,
}

impl<'a> Options<'a> {
    /// Reads `args` after the command word. `with_value` lists letters that take a value, attached or separate;
    /// `long_with_value` long names that take one.
    pub(super) fn read(args: &'a [Arg], with_value: &str, long_with_value: &[&str]) -> Self {
        Self::scan(args, with_value, long_with_value, Order::Any)
    }

    /// As `read`, but everything from the first operand on is an operand: the words of a command that is run.
    pub(super) fn leading(args: &'a [Arg], with_value: &str, long_with_value: &[&str]) -> Self {
        Self::scan(args, with_value, long_with_value, Order::OptionsFirst)
    }

    fn scan(args: &'a [Arg], with_value: &str, long_with_value: &[&str], order: Order) -> Self {
        let mut read = Self::default();
        let mut args = args.iter().skip(1);
        while let Some(arg) = args.next() {
            let text = arg.text.as_str();
            if text == "--" {
                read.operands.extend(args);
                break;
            }
            if let Some(long) = text.strip_prefix("--") {
                let (name, value) = long
                    .split_once('=')
                    .map_or((long, None), |(name, value)| (name, Some(value)));
                read.long.push(name);
                let separate = || {
                    long_with_value
                        .contains(&name)
                        .then(|| args.next())
                        .flatten()
                        .map(|arg| arg.text.clone())
                };
                if let Some(value) = value.map(str::to_owned).or_else(separate) {
                    read.values.push((name.to_owned(), value));
                }
            } else if text.len() > 1 && text.starts_with('-') {
                let cluster = text.get(1..).unwrap_or_default();
                for (at, letter) in cluster.char_indices() {
                    read.letters.push(letter);
                    if with_value.contains(letter) {
                        let attached = cluster.get(at + letter.len_utf8()..).unwrap_or_default();
                        let value = if attached.is_empty() {
                            args.next().map(|arg| arg.text.clone())
                        } else {
                            Some(attached.to_owned())
                        };
                        read.values.extend(value.map(|value| (letter.to_string(), value)));
                        break;
                    }
                }
            } else {
                read.operands.push(arg);
                if order == Order::OptionsFirst {
                    read.operands.extend(args);
                    break;
                }
            }
        }
        read
    }

    pub(super) fn letter(&self, letters: &str) -> bool {
        self.letters.contains(|c| letters.contains(c))
    }

    /// Whether a long option was given, abbreviated or not.
    pub(super) fn long(&self, name: &str) -> bool {
        self.long
            .iter()
            .any(|given| !given.is_empty() && name.starts_with(given))
    }

    pub(super) fn value(&self, option: &str) -> Option<&str> {
        self.values
            .iter()
            .find(|(name, _)| name == option)
            .map(|(_, value)| value.as_str())
    }
}

/// Where options may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Any,
    OptionsFirst,
}
