//! What a file of rules may say, how it is changed, and what a mistake in it does.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::policy::rule::{CommandWords, RuleDecision};

fn book(text: &str) -> (tempfile::TempDir, RuleBook) {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.toml");
    std::fs::write(dir.path().join(FILE), text).unwrap();
    let book = RuleBook::open(&config);
    (dir, book)
}

fn about(words: &[&str]) -> Rule {
    let mut rule = Rule::new(RuleDecision::Allow);
    rule.tool = Some("bash".to_owned());
    rule.command = Some(CommandWords(words.iter().map(|&word| word.to_owned()).collect()));
    rule
}

fn refusal(text: &str) -> String {
    RuleSet::parse(Path::new("/c/rules.toml"), text).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
}

#[test]
fn a_mistake_names_file_line_and_what_was_meant() {
    assert_eq!(
        refusal("# mine\n[[rule]]\ndecision = \"allow\"\ncomand = \"ls\"\n"),
        "/c/rules.toml:4: unknown key `comand`\nhint: did you mean `command`?"
    );
    assert!(refusal("[[rule]]\ndecision = \"alow\"\ntool = \"bash\"").contains("one of: allow, ask, deny"));
    let examples = "[[rule]]\ndecision = \"deny\"\ncommand = \"git push\"\n\n[[rule]]\ndecision = \"allow\"\ncommand = \"cargo test\"\nmatch = [\"cargo build\"]";
    let said = refusal(examples);
    assert!(
        said.starts_with("/c/rules.toml:5: ") && said.contains("`cargo build`"),
        "{said}"
    );
    assert!(refusal("[[rule]]\ndecision = \"allow\"").contains("names nothing"));
}

#[test]
fn a_rule_added_keeps_what_the_person_wrote() {
    let before = "# my rules\nbuiltin_allow = false\n\n[[rule]] # never\ndecision = \"deny\"\ncommand = \"git push\"\n";
    let (dir, book) = book(before);
    assert_eq!(book.add(&about(&["cargo", "test"])).unwrap(), 1);
    let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
    assert!(text.starts_with(before), "{text}");
    let set = book.now();
    assert!(!set.builtin_allow);
    assert_eq!(set.rules.get(1), Some(&about(&["cargo", "test"])));
    assert_eq!(
        book.add(&about(&["cargo", "test"])).unwrap(),
        1,
        "the same rule is not written twice"
    );
    assert_eq!(book.now().rules.len(), 2);
}

#[test]
fn a_rule_is_removed_only_while_it_is_the_one_that_was_listed() {
    let (dir, book) = book("[[rule]]\ndecision = \"deny\"\ncommand = \"git push\" # why\n");
    book.add(&about(&["cargo", "test"])).unwrap();
    assert_eq!(book.remove(1, |_| false).unwrap(), None);
    assert_eq!(book.remove(7, |_| true).unwrap(), None);
    assert_eq!(book.remove(1, |_| true).unwrap(), Some(about(&["cargo", "test"])));
    let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
    assert!(text.contains("# why") && !text.contains("cargo"), "{text}");
}

#[test]
fn a_changed_file_counts_at_once_and_a_broken_one_keeps_the_last_rules() {
    let (dir, book) = book("[[rule]]\ndecision = \"deny\"\ncommand = \"git push\"\n");
    std::fs::write(
        dir.path().join(FILE),
        "[[rule]]\ndecision = \"deny\"\ncommand = \"git pull\"\n",
    )
    .unwrap();
    let pull = |book: &RuleBook| {
        book.now()
            .rules
            .first()
            .is_some_and(|rule| rule.to_string().contains("git pull"))
    };
    assert!(pull(&book));
    std::fs::write(dir.path().join(FILE), "[[rule]]\ndecision = \"alow\"\n").unwrap();
    assert!(pull(&book), "a slip lifts no deny rule");
    assert!(book.checked().is_err());
    let said = book.fault().unwrap();
    assert!(
        said.contains("still count") && said.contains("rules.toml:2: "),
        "{said}"
    );
    assert!(book.add(&about(&["ls"])).is_err(), "a broken file is not written over");
    std::fs::remove_file(dir.path().join(FILE)).unwrap();
    assert!(book.checked().unwrap().rules.is_empty());
}

#[test]
fn a_file_that_is_broken_at_the_start_makes_every_call_ask_until_it_is_mended() {
    let (dir, book) = book("[[rule]]\ndecision = \"deny\"\ncommand = \"ls\"\n[[rule]]\ndecision = \"alow\"\n");
    let said = book.fault().unwrap();
    assert!(
        said.contains("every call asks") && said.contains("rules.toml:5: "),
        "{said}"
    );
    let judged = |command: &str| {
        let root = PathBuf::from("/p");
        let rules = &book.now().rules;
        crate::policy::judge_command(
            command,
            &root,
            std::slice::from_ref(&root),
            None,
            crate::policy::Mode::All,
            rules,
        )
        .decision
    };
    for command in ["ls", "cat README.md", "x=1", "> made", "touch made; ls"] {
        assert_eq!(judged(command), crate::policy::Decision::Ask, "{command}");
    }
    std::fs::write(
        dir.path().join(FILE),
        "[[rule]]\ndecision = \"deny\"\ncommand = \"ls\"\n",
    )
    .unwrap();
    assert_eq!((judged("ls"), book.fault()), (crate::policy::Decision::Deny, None));
    assert_eq!(judged("touch made"), crate::policy::Decision::Allow);
}

#[test]
fn what_is_written_first_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let book = RuleBook::open(&dir.path().join("agentd/config.toml"));
    book.add(&about(&["ls"])).unwrap();
    assert_eq!(book.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
