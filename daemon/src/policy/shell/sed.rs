//! `sed` scripts: only those made of addresses and commands that print, delete or replace.
//!
//! Whatever this reader does not know asks. It follows GNU sed, whose `e`, `w`, `W`, `r`, `R` run and write.

/// Commands without anything after them.
const PLAIN: &str = "pdqQ=nNhHgGxPDzl";

/// Why a script should be asked about; none if it only prints.
pub(super) fn concern(script: &str) -> Option<String> {
    let mut reader = Reader {
        chars: script.chars().collect(),
        at: 0,
    };
    let fine = reader.script().is_some();
    (!fine).then(|| "The `sed` script can do more than print.".to_owned())
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    /// None as soon as something is not known to be harmless.
    fn script(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            self.skip(|c| c.is_ascii_whitespace() || c == ';');
            let Some(c) = self.peek() else {
                return (open == 0).then_some(());
            };
            match c {
                '}' => {
                    self.at += 1;
                    open = open.checked_sub(1)?;
                    self.end()?;
                }
                '#' => self.skip(|c| c != '\n'),
                _ => {
                    self.addresses()?;
                    if self.peek() == Some('{') {
                        self.at += 1;
                        open += 1;
                    } else {
                        self.command()?;
                    }
                }
            }
        }
    }

    fn addresses(&mut self) -> Option<()> {
        if self.address()? {
            self.blanks();
            if self.peek() == Some(',') {
                self.at += 1;
                self.blanks();
                if matches!(self.peek(), Some('+' | '~')) {
                    self.at += 1;
                }
                self.address()?.then_some(())?;
            }
            self.blanks();
        }
        self.skip(|c| c == '!' || c == ' ');
        Some(())
    }

    fn blanks(&mut self) {
        self.skip(|c| c == ' ' || c == '\t');
    }

    /// Whether there is an address.
    fn address(&mut self) -> Option<bool> {
        match self.peek() {
            Some('$') => {
                self.at += 1;
                Some(true)
            }
            Some(c) if c.is_ascii_digit() => {
                self.skip(|c| c.is_ascii_digit() || c == '~');
                Some(true)
            }
            Some(c @ ('/' | '\\')) => {
                self.at += 1;
                let delimiter = if c == '/' { '/' } else { self.next()? };
                self.until(delimiter, Text::Regex)?;
                self.skip(|c| c == 'I' || c == 'M');
                Some(true)
            }
            _ => Some(false),
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.next()? {
            c if PLAIN.contains(c) => {
                self.skip(|c| c == ' ');
                // `q5` ends with a code.
                self.skip(|c| c.is_ascii_digit());
                self.end()
            }
            ':' | 'b' | 't' | 'T' => {
                self.skip(|c| c == ' ');
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
                // Versions differ in what ends a label besides these.
                matches!(self.peek(), None | Some('\n' | ';' | ' ')).then_some(())
            }
            's' => {
                let delimiter = self.delimiter()?;
                self.until(delimiter, Text::Regex)?;
                self.until(delimiter, Text::Plain)?;
                self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit());
                self.end()
            }
            'y' => {
                let delimiter = self.delimiter()?;
                self.until(delimiter, Text::Plain)?;
                self.until(delimiter, Text::Plain)?;
                self.end()
            }
            _ => None,
        }
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next()
            .filter(|c| !c.is_alphanumeric() && !matches!(c, '\\' | '\n' | ' ' | ';'))
    }

    /// What ends a command.
    fn end(&mut self) -> Option<()> {
        self.blanks();
        match self.peek() {
            None | Some('\n' | ';' | '}' | '#') => Some(()),
            Some(_) => None,
        }
    }

    /// Skips text up to a delimiter. One inside brackets is read differently by different versions: not known.
    fn until(&mut self, delimiter: char, text: Text) -> Option<()> {
        let mut bracket = false;
        loop {
            match self.next()? {
                '\\' => drop(self.next()?),
                c if c == delimiter => return (!bracket).then_some(()),
                '[' if text == Text::Regex && !bracket => {
                    bracket = true;
                    // A `]` right after the opening is a member.
                    if self.peek() == Some('^') {
                        self.at += 1;
                    }
                    if self.peek() == Some(']') {
                        self.at += 1;
                    }
                }
                ']' => bracket = false,
                '\n' if text == Text::Regex => return None,
                _ => {}
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Regex,
    Plain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_scripts_are_harmless() {
        for script in [
            "5p",
            "1,20p",
            "$=",
            "/a/,/b/p",
            "s/a/b/g",
            "s|/x|/y|",
            "/^$/d",
            "1!d",
            "1~2p",
            "5q",
            "/a/{p;d}",
            "/a/I,+3p",
            "s/[a-z]*//p",
            "y/abc/xyz/",
            "s/\\//x/",
            "2,$d; s/x/y/2g",
            r"\,a,p",
            "n;d",
            "1{/x/p}",
            ":a;N;$!ba;s/\\n/ /g",
            "s/a/b/;t;d",
            "b end\n:end",
            "l",
        ] {
            assert_eq!(concern(script), None, "{script}");
        }
    }

    #[test]
    fn scripts_that_run_or_write_are_not() {
        for script in [
            "1e id",
            "e",
            "w out",
            "s/a/b/e",
            "s/a/b/w out",
            "s/a/b/gw out",
            "r /etc/passwd",
            "R x",
            "W x",
            "a text",
            "i\\x",
            "c x",
            "b end w out",
            "ba}",
            ":a w out",
            "t;e",
            "s/[/]/;e id;/",
            "{p",
            "p}",
            "1,p",
            "s/a/b",
            "1,2w x",
            "/x/e",
            "$!{w x\n}",
            "y/a/b/w x",
            "pe",
            "F",
            "v",
        ] {
            assert!(concern(script).is_some(), "{script}");
        }
    }
}
