//! Approvals for commands made to deceive: whatever a terminal would act on is visible, nothing is cut, and the end is there.

use super::escape::bash;
use serde_json::json;
use tests::daemon::TestDaemon;
use tests::model_server::{ModelServer, Reply, Script, Wire};

/// Characters that a terminal acts on, or that change the order or the look of what is read.
fn is_raw(character: char) -> bool {
    let control = character.is_control() && !matches!(character, '\n' | '\t');
    control
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}')
}

#[tokio::test]
async fn a_deceiving_command_is_shown_whole_and_without_effect_by_every_command() -> anyhow::Result<()> {
    let blanks = " ".repeat(4_000);
    let lines: String = (0..10_000).map(|number| format!("echo {number}\n")).collect();
    let commands = [
        "echo fine \u{202e}tsil\u{202c}; echo END-OF-0".to_owned(),
        "echo one\u{1b}[2K\u{1b}[1A; echo END-OF-1".to_owned(),
        format!("echo two{blanks}; echo END-OF-2"),
        format!("{lines}echo END-OF-3"),
        "echo \u{1b}]52;c;ZXZpbA==\u{7}; echo END-OF-4".to_owned(),
        "echo \u{1b}]8;;http://evil\u{1b}\\http://good\u{1b}]8;;\u{1b}\\; echo END-OF-5".to_owned(),
        "rm -r src\rls           # END-OF-6".to_owned(),
        "echo \u{9b}31m\u{200b}\u{2028}\u{e0041}; echo END-OF-7".to_owned(),
    ];
    let count = commands.len();
    let replies: Vec<Reply> = commands
        .iter()
        .map(|command| bash(command))
        .chain([Reply::text("done")])
        .collect();
    let server = ModelServer::start(Script::by_step(replies))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let session = daemon.session("ask").await?;
    daemon.send(&session, "go").await?;
    for at in 0..count {
        let approval = daemon.approval(&session).await?;
        let mut shown = Vec::new();
        for arguments in [&["approvals"][..], &["show", &session], &["tail", &session], &["ls"]] {
            let ran = daemon.ctl(arguments).await?.ok()?;
            shown.push(ran.stdout + &ran.stderr);
        }
        for text in &shown {
            assert!(
                !text.contains(is_raw),
                "command {at}: {:?}",
                text.chars().find(|c| is_raw(*c))
            );
        }
        assert!(
            shown[0].contains(&format!("END-OF-{at}")),
            "the end of command {at} is not shown: {}",
            shown[0]
        );
        match at {
            2 => assert!(
                shown[0].contains("spaces>") && !shown[0].contains(&blanks),
                "{}",
                shown[0]
            ),
            3 => assert!(shown[0].contains("echo 5000\n"), "lines in the middle are shown"),
            _ => {}
        }
        daemon.answer(&approval, "deny").await?;
        daemon
            .until(&session, "the answer", |frame| {
                tests::socket::is(frame, "approval.resolved") && frame["data"]["approval"] == approval["id"]
            })
            .await?;
    }
    daemon.turn_end(&session, 1).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_to_be_trusted_is_shown_without_effect() -> anyhow::Result<()> {
    let daemon = tests::daemon::Home::new()?.start().await?;
    let file = daemon.home.project().join(".agent/config.toml");
    std::fs::create_dir_all(daemon.home.project().join(".agent"))?;
    let text = "# \u{202e}evil\n[session]\nmode = \"all\" # \u{1b}[2K\u{7f}\n[[rule]]\ndecision = \"allow\"\ncommand = \"touch\"\n";
    // Control characters are no TOML, so a mistake with them is told too.
    for text in [
        text,
        "[session]\nmode = \"all\" # \u{202e}x\n",
        "[session]\nmode = \"\u{1b}[2Kall\"\n",
    ] {
        std::fs::write(&file, text)?;
        for arguments in [&["trust"][..], &["trust", "--yes"], &["config", "show"], &["new"]] {
            let ran = daemon.ctl(arguments).await?;
            let said = ran.stdout + &ran.stderr;
            assert!(!said.contains(is_raw), "{arguments:?}: {said:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_session_is_not_named_by_what_a_terminal_acts_on() -> anyhow::Result<()> {
    let daemon = tests::daemon::Home::new()?.start().await?;
    for name in ["a\u{202e}b", "a\u{1b}[2K", "a\u{200b}b"] {
        let ran = daemon.ctl(&["new", "--name", name]).await?;
        let listed = daemon.ctl(&["ls"]).await?.ok()?;
        let said = ran.stdout + &ran.stderr + &listed.stdout;
        assert!(!said.contains(is_raw), "{said:?}");
        let ids = daemon.observer().await?.call("session.list", json!({})).await?;
        assert!(!ids.to_string().contains(name), "{ids}");
    }
    Ok(())
}
