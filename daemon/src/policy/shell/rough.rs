//! A rough reading of text the grammar refuses: quotes removed, split at operators. Good enough for the guard to
//! recognise a destructive command in a line that bash would run up to its error; never a reason to allow anything.

/// Most commands found; the rest of such a text asks anyway.
const LIMIT: usize = 256;

/// The commands a text seems to hold, each as its words.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let mut reader = Reader::default();
    let mut chars = text.chars().peekable();
    let mut quote = None;
    // Quotes around the command substitutions that are open.
    let mut outer = Vec::new();
    while let Some(c) = chars.next() {
        if reader.commands.len() >= LIMIT {
            break;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                reader.word.get_or_insert_default();
            }
            (Some('\''), c) => reader.push(c),
            (_, '$') if chars.peek() == Some(&'(') && outer.len() < LIMIT => {
                chars.next();
                outer.push(quote.take());
                reader.end_command();
            }
            (None, ')') => {
                reader.end_command();
                quote = outer.pop().flatten();
            }
            (_, '\\') => {
                if let Some(next) = chars.next().filter(|next| *next != '\n') {
                    reader.push(next);
                }
            }
            (Some(_), c) => reader.push(c),
            (None, ' ' | '\t') => reader.end_word(),
            (None, '\n' | ';' | '&' | '|' | '(' | '`' | '<' | '>') => reader.end_command(),
            (None, '{' | '}')
                if reader.word.is_none() && chars.peek().is_none_or(|next| next.is_whitespace() || *next == ';') =>
            {
                reader.end_command();
            }
            (None, c) => reader.push(c),
        }
    }
    reader.end_command();
    reader.commands
}

#[derive(Default)]
struct Reader {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
}

/// Words after which a command begins.
const OPENERS: &[&str] = &[
    "if", "then", "elif", "else", "do", "while", "until", "!", "time", "coproc",
];

impl Reader {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let opens = self.words.is_empty() && OPENERS.contains(&word.as_str());
        let assigns = self.words.is_empty() && word.split_once('=').is_some_and(|(name, _)| is_name(name));
        if !opens && !assigns {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

/// Whether a text can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_behind_quotes_and_operators() {
        let found = commands("if true; then A=1 \"rm\" -rf '/' && echo \"open");
        assert_eq!(found, [vec!["true"], vec!["rm", "-rf", "/"], vec!["echo", "open"]]);
    }
}
