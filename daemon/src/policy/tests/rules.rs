//! Rules as text: what is read, what is refused, and with which words.

use crate::policy::{RuleError, Source, parse_rules, rule_as_toml};

fn refused(text: &str) -> String {
    parse_rules(text, Source::User)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[test]
fn rules_survive_being_written_and_read_again() -> Result<(), RuleError> {
    let text = "[[rule]]\ndecision = \"allow\"\ntool = \"bash\"\ncommand = \"cargo test\"\npaths = [\"src/**\"]\nroot = \"/p\"\nmatch = []\n";
    let rules = parse_rules(text, Source::User)?;
    for rule in &rules {
        assert_eq!(
            parse_rules(&rule_as_toml(rule)?, Source::User)?,
            std::slice::from_ref(rule)
        );
    }
    assert_eq!(rules.len(), 1);
    Ok(())
}

#[test]
fn examples_are_checked_when_rules_are_read() {
    let rule =
        |examples: &str| format!("[[rule]]\ndecision = 'allow'\ntool = 'bash'\ncommand = 'cargo test'\n{examples}\n");
    assert_eq!(
        refused(&rule(
            "match = ['cargo test --lib', 'ls && cargo test']\nno_match = ['cargo build', 'cargo test > x', 'echo cargo test']"
        )),
        ""
    );
    assert!(refused(&rule("match = ['cargo build']")).contains("does not match its example `cargo build`"));
    assert!(refused(&rule("no_match = ['cargo test x']")).contains("matches `cargo test x`"));
    assert_eq!(
        refused("[[rule]]\ndecision = 'deny'\npaths = ['**/*.pem']\nmatch = ['a/b.pem']\nno_match = ['a/b.rs']"),
        ""
    );
    assert_eq!(
        refused("[[rule]]\ndecision = 'ask'\nhosts = ['*.x.org']\nmatch = ['a.x.org']\nno_match = ['x.org']"),
        ""
    );
    assert_eq!(
        refused(
            "[[rule]]\ndecision = 'deny'\ncommand = 'git * --all'\nmatch = ['git fetch --all', 'sudo git x --all']"
        ),
        ""
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert!(refused("[[rule]]\ndecision = 'allow'\ntol = 'bash'\n").starts_with("line 3: unknown field `tol`"));
    assert!(refused("[[rule]]\ndecision = 'maybe'\n").starts_with("line 2: unknown variant"));
    assert!(refused("[[rule]]\ndecision = 'allow'\n").contains("names no tool"));
    assert!(refused("[[rule]]\ndecision = 'deny'\npaths = ['a[']\n").contains("`paths`"));
    assert!(refused("[[rule]]\ndecision = 'deny'\ncommand = ''\n").contains("at least one word"));
    assert!(refused("[[rule]]\ndecision = 'deny'\ncommand = 'a'\nexact = 'b'\n").contains("exclude"));
    assert!(refused(&"#".repeat(300 * 1024)).contains("longer than"));
}
