//! The tests of the sandbox and of what must not get out of it, once more on machines unlike this one.

use tests::machine::{Namespaces, User, run_tests};
use tests::skip;
use tests::skip::is_inner;

/// Modules whose promises must hold on every machine.
const PROMISES: &[&str] = &["escape::", "inside::", "sandbox::", "roots::a_sandboxed_command"];

fn promises_hold(user: User, namespaces: Namespaces) -> anyhow::Result<()> {
    if is_inner() {
        return Ok(());
    }
    if user == User::Ordinary && !rustix::process::geteuid().is_root() {
        skip!("only root can run tests as another user; all of them run as an ordinary one here");
    }
    run_tests(PROMISES, user, namespaces)
}

#[test]
fn as_an_ordinary_user_the_same_is_held() -> anyhow::Result<()> {
    promises_hold(User::Ordinary, Namespaces::Same)
}

#[test]
fn without_user_namespaces_the_same_is_held() -> anyhow::Result<()> {
    promises_hold(User::Same, Namespaces::Refused)
}

#[test]
fn as_an_ordinary_user_without_user_namespaces_the_same_is_held() -> anyhow::Result<()> {
    promises_hold(User::Ordinary, Namespaces::Refused)
}
