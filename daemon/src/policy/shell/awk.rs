//! `awk` programs: only patterns, `print` and arithmetic on fields.
//!
//! The reader knows words, not grammar: every word must be on the list, and what redirects, pipes, calls or reads
//! anything else is on none. Where text could be read in two ways it asks.

/// Words a harmless program may hold besides the names of its own variables.
const WORDS: &[&str] = &[
    "BEGIN", "END", "print", "printf", "if", "else", "for", "in", "while", "next", "exit", "length", "substr", "index",
    "split", "tolower", "toupper", "int", "sprintf", "NR", "NF", "FNR", "FS", "OFS", "RS", "ORS", "FILENAME", "delete",
    "match", "RSTART", "RLENGTH", "gsub", "sub", "gensub", "sqrt", "do", "break", "continue",
];

/// Whether `-v NAME=…` only gives the program a value: one of its own names, or how lines are taken apart.
pub(super) fn may_be_assigned(name: &str) -> bool {
    matches!(name, "FS" | "OFS" | "RS" | "ORS") || (super::rough::is_name(name) && is_own(name))
}

/// Names in small letters are the program's own, unless they mean something to awk.
fn is_own(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !matches!(
            word,
            "getline"
                | "system"
                | "close"
                | "fflush"
                | "func"
                | "function"
                | "nextfile"
                | "return"
                | "include"
                | "load"
                | "namespace"
        )
}

/// Why a program should be asked about; none if it only prints.
pub(super) fn concern(program: &str) -> Option<String> {
    let fine = Reader {
        chars: program.chars().collect(),
        at: 0,
        parens: 0,
        braces: 0,
        operand: false,
    }
    .program()
    .is_some();
    (!fine).then(|| "The `awk` program can do more than print.".to_owned())
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    parens: usize,
    braces: usize,
    /// The last word was a value, so that a `/` divides.
    operand: bool,
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// None as soon as something is not known to be harmless.
    fn program(&mut self) -> Option<()> {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                ' ' | '\t' | '\n' | ';' | ',' => self.operand &= c == ' ' || c == '\t',
                '(' => {
                    self.parens += 1;
                    self.operand = false;
                }
                ')' => {
                    self.parens = self.parens.checked_sub(1)?;
                    // A `/` after `)` divides or begins a pattern, depending on what the parentheses were for.
                    let next = self.chars.iter().skip(self.at).find(|c| !c.is_whitespace());
                    (next != Some(&'/')).then_some(())?;
                    self.operand = true;
                }
                '{' => {
                    self.braces += 1;
                    self.operand = false;
                }
                '}' => {
                    self.braces = self.braces.checked_sub(1)?;
                    self.operand = false;
                }
                '[' => self.operand = false,
                ']' => self.operand = true,
                '"' => self.string()?,
                '/' if !self.operand => self.regex()?,
                '|' => self.both('|')?,
                '&' => self.both('&')?,
                // `>` redirects after `print`, outside of parentheses.
                '>' => {
                    ((self.parens > 0 || self.braces == 0) && self.peek(0) != Some('>')).then_some(())?;
                    self.operand = false;
                }
                '+' | '-' | '*' | '/' | '%' | '^' | '=' | '<' | '!' | '~' | '?' | ':' | '$' => self.operand = false,
                c if c.is_ascii_digit() || c == '.' => {
                    self.skip(|c| c.is_ascii_alphanumeric() || c == '.');
                    self.operand = true;
                }
                c if c.is_ascii_alphabetic() || c == '_' => self.word()?,
                '#' => self.skip(|c| c != '\n'),
                _ => return None,
            }
        }
        (self.parens == 0 && self.braces == 0).then_some(())
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn both(&mut self, c: char) -> Option<()> {
        (self.peek(0) == Some(c)).then_some(())?;
        self.at += 1;
        self.operand = false;
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        loop {
            match self.peek(0)? {
                '\\' => self.at += 2,
                '"' => break,
                '\n' => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.operand = true;
        Some(())
    }

    fn regex(&mut self) -> Option<()> {
        let mut bracket = false;
        loop {
            match self.peek(0)? {
                '\\' => self.at += 1,
                // Versions differ in whether a `/` in brackets ends the pattern.
                '/' if bracket => return None,
                '/' => break,
                '[' => bracket = true,
                ']' => bracket = false,
                '\n' => return None,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        self.operand = true;
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let start = self.at - 1;
        self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
        let word: String = self.chars.get(start..self.at)?.iter().collect();
        let known = WORDS.contains(&word.as_str());
        let own = is_own(&word) && self.peek(0) != Some('(');
        (known || own).then_some(())?;
        self.operand = own
            || matches!(
                word.as_str(),
                "NR" | "NF" | "FNR" | "FS" | "OFS" | "RS" | "ORS" | "FILENAME" | "length" | "RSTART" | "RLENGTH"
            );
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_programs_are_harmless() {
        for program in [
            "{print $1, $NF}",
            "NR==5",
            "NR>5 && NR<=10",
            "/foo/ {print $2}",
            "{s+=$1} END {print s}",
            "$3 ~ /x/ {print}",
            "BEGIN{FS=\":\"} {print $1/2}",
            "{ if ($1 > 5) print $0 }",
            "!seen[$0]++",
            "{printf \"%s\\n\", $1}",
            "length($0) > 80",
            "/a/ || /b/",
            "{print length}",
            "NR % 2 == 0 {print $1 * 3}",
        ] {
            assert_eq!(concern(program), None, "{program}");
        }
    }

    #[test]
    fn programs_that_run_or_write_are_not() {
        for program in [
            "BEGIN{system(\"id\")}",
            "{print | \"sh\"}",
            "{print > \"out\"}",
            "{print >> \"out\"}",
            "BEGIN{\"id\" | getline x}",
            "BEGIN{getline < \"/etc/passwd\"}",
            "{print ENVIRON[\"X\"]}",
            "@load \"x\"",
            "BEGIN{f=\"system\"; @f(\"id\")}",
            "{print $1 |& \"sh\"}",
            "BEGIN { while ((getline x < \"f\") > 0) print x }",
            "{if (x) /\"/ ; print | \"sh\" /\"/ }",
            "function f() { }",
            "{print}}",
            "BEGIN{ARGV[1]=\"x\"}",
            "{ print(1)>\"x\" }",
            "{print \"a\" > $1}",
        ] {
            assert!(concern(program).is_some(), "{program}");
        }
    }
}
