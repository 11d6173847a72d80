//! The order of guard, rules, allowances and modes, for commands and for files.

use std::path::{Path, PathBuf};

use super::{ROOT, line};
use crate::policy::{
    Access, CommandFact, Decision, Facts, Grant, Inside, Mode, PathFact, Policy, Rule, Source, grant_for, judge,
    parse_rules,
};

type Checked = anyhow::Result<()>;

fn bash(text: &str) -> Facts {
    let command = CommandFact {
        text: text.into(),
        cwd: ROOT.into(),
        roots: vec![ROOT.into()],
        home: Some("/home/dev".into()),
        ..CommandFact::default()
    };
    Facts {
        tool: "bash".into(),
        writes: true,
        command: Some(command),
        ..Facts::default()
    }
}

fn file(tool: &str, name: &str, access: Access) -> Facts {
    let resolved = Path::new(ROOT).join(name);
    let path = PathFact {
        shown: name.into(),
        inside: if resolved.starts_with(ROOT) && !name.starts_with('/') {
            Inside::Inside
        } else {
            Inside::Outside
        },
        secret: name.contains(".env"),
        protected: name.starts_with(".git/"),
        foreign: false,
        resolved,
        access,
    };
    Facts {
        tool: tool.into(),
        writes: access == Access::Write,
        paths: vec![path],
        ..Facts::default()
    }
}

fn decide(facts: &Facts, mode: Mode, rules: &[Rule], grants: &[Grant]) -> Decision {
    judge(
        facts,
        &Policy {
            mode,
            rules,
            grants,
            builtin_allow: true,
        },
    )
    .decision
}

fn rules(text: &str) -> anyhow::Result<Vec<Rule>> {
    let bound = parse_rules(text, Source::User)?
        .iter()
        .filter_map(|rule| rule.bind(Path::new(ROOT)))
        .collect();
    Ok(bound)
}

#[test]
fn to_leave_the_sandbox_asks_whatever_rule_allowance_and_mode_say() -> Checked {
    let facts = |text: &str| Facts {
        tool: "bash".into(),
        writes: true,
        command: Some(CommandFact {
            text: text.into(),
            cwd: ROOT.into(),
            roots: vec![ROOT.into()],
            outside_sandbox: true,
            ..CommandFact::default()
        }),
        ..Facts::default()
    };
    let rules = rules("[[rule]]\ndecision = 'allow'\ntool = 'bash'\ncommand = 'git'\n")?;
    let judged = |text: &str, mode| {
        judge(
            &facts(text),
            &Policy {
                mode,
                rules: &rules,
                grants: &[],
                builtin_allow: true,
            },
        )
    };
    for text in ["git push", "ls", "cargo build"] {
        for mode in [Mode::Ask, Mode::Edits, Mode::All] {
            let verdict = judged(text, mode);
            assert_eq!(verdict.decision, Decision::Ask, "{text}");
            assert!(
                verdict.reason.starts_with("It runs outside the sandbox: ") && !verdict.read_only,
                "{verdict:?}"
            );
        }
        assert_eq!(judged(text, Mode::None).decision, Decision::Deny);
        assert_eq!(grant_for(&facts(text)), None);
    }
    assert_eq!(judged("rm -rf /", Mode::All).decision, Decision::Blocked);
    Ok(())
}

#[test]
fn only_what_the_builtin_list_alone_lets_through_is_read_only() {
    assert!(line("ls src", Mode::Ask, &[]).read_only && line("git status | head -3", Mode::All, &[]).read_only);
    assert!(!line("touch x", Mode::All, &[]).read_only && !line("ls src && touch x", Mode::All, &[]).read_only);
}

#[test]
fn modes_decide_about_files_inside_the_project() {
    let read = file("read_file", "src/a.rs", Access::Read);
    let write = file("write_file", "src/a.rs", Access::Write);
    assert_eq!(decide(&read, Mode::Ask, &[], &[]), Decision::Allow);
    assert_eq!(decide(&write, Mode::Ask, &[], &[]), Decision::Ask);
    assert_eq!(decide(&write, Mode::Edits, &[], &[]), Decision::Allow);
    assert_eq!(decide(&write, Mode::None, &[], &[]), Decision::Deny);
    assert_eq!(decide(&write, Mode::All, &[], &[]), Decision::Allow);
    assert_eq!(decide(&bash("cargo build"), Mode::Edits, &[], &[]), Decision::Ask);
}

#[test]
fn secrets_outside_and_protected_files_ask_in_every_mode_but_all() {
    let cases = [
        file("read_file", ".env", Access::Read),
        file("read_file", "/etc/passwd", Access::Read),
        file("write_file", ".git/hooks/pre-commit", Access::Write),
    ];
    for facts in &cases {
        assert_eq!(decide(facts, Mode::Ask, &[], &[]), Decision::Ask, "{facts:?}");
        assert_eq!(decide(facts, Mode::Edits, &[], &[]), Decision::Ask, "{facts:?}");
        assert_eq!(decide(facts, Mode::All, &[], &[]), Decision::Allow, "{facts:?}");
    }
}

#[test]
fn the_daemons_own_files_are_never_written() {
    let mut facts = file("write_file", "/home/dev/.config/agentd/rules.toml", Access::Write);
    assert_eq!(decide(&facts, Mode::All, &[], &[]), Decision::Blocked);
    facts.paths.iter_mut().for_each(|path| path.access = Access::Read);
    assert_eq!(decide(&facts, Mode::Ask, &[], &[]), Decision::Ask);
}

#[test]
fn deny_speaks_before_ask_and_ask_before_allow() -> Checked {
    let allow = rules("[[rule]]\ndecision = 'allow'\ntool = 'bash'\ncommand = 'cargo'\n")?;
    let ask = rules("[[rule]]\ndecision = 'ask'\ntool = 'bash'\ncommand = 'cargo publish'\n")?;
    let deny = rules("[[rule]]\ndecision = 'deny'\ncommand = 'cargo publish --all'\n")?;
    let all = [allow.clone(), ask.clone(), deny.clone()].concat();
    assert_eq!(decide(&bash("cargo test"), Mode::Ask, &all, &[]), Decision::Allow);
    assert_eq!(decide(&bash("cargo publish"), Mode::All, &all, &[]), Decision::Ask);
    assert_eq!(
        decide(&bash("cargo publish --all"), Mode::All, &all, &[]),
        Decision::Deny
    );
    assert_eq!(decide(&bash("cargo publish"), Mode::Ask, &allow, &[]), Decision::Allow);
    Ok(())
}

#[test]
fn an_allow_rule_has_to_cover_every_part() -> Checked {
    let rules = rules("[[rule]]\ndecision = 'allow'\ntool = 'bash'\ncommand = ['cargo', 'test']\n")?;
    for text in [
        "cargo test",
        "cargo test --lib a::b",
        "cargo test | tail -5",
        "cd src && cargo test 2>&1 | head",
        "timeout 60 cargo test",
        "LC_ALL=C cargo test",
        "cargo test \"$(ls)\"",
    ] {
        assert_eq!(decide(&bash(text), Mode::Ask, &rules, &[]), Decision::Allow, "{text}");
    }
    for text in [
        "cargo test; rm x",
        "cargo test && curl x",
        "cargo test > out",
        "FOO=1 cargo test",
        "cargo test &",
        "cargo $x",
        "cargo",
        "cargo testx",
        "sudo cargo test",
        "cd .. && cargo test",
        "cargo test $(curl x)",
        "./cargo test",
        "f() { cargo test; }; f",
        "cargo test | sh",
        "cargo 'te'st; id; x",
    ] {
        assert_eq!(decide(&bash(text), Mode::Ask, &rules, &[]), Decision::Ask, "{text}");
    }
    Ok(())
}

#[test]
fn a_deny_rule_finds_a_command_in_any_dress() -> Checked {
    let rules = rules("[[rule]]\ndecision = 'deny'\ntool = 'bash'\ncommand = 'git push'\n")?;
    for text in [
        "git push",
        "git push origin",
        "git -C . push",
        "/usr/bin/git push",
        "ls && git push",
        "sudo git push",
        "sh -c 'git push'",
        "x=push; git $x",
        "git -c a.b=c --no-pager push",
        "echo origin | xargs git push",
        "g\\it 'push'",
        "(git push)",
        "f() { git push; }",
    ] {
        assert_eq!(decide(&bash(text), Mode::All, &rules, &[]), Decision::Deny, "{text}");
    }
    assert_eq!(
        decide(&bash("git pull && echo git push"), Mode::All, &rules, &[]),
        Decision::Allow
    );
    Ok(())
}

#[test]
fn a_rule_about_a_whole_tool_needs_no_words() -> Checked {
    let deny = rules("[[rule]]\ndecision = 'deny'\ntool = 'bash'\n")?;
    for text in ["ls", "", "x=1", "echo \"open", "f() { ls; }"] {
        assert_eq!(decide(&bash(text), Mode::All, &deny, &[]), Decision::Deny, "{text}");
    }
    let allow = rules("[[rule]]\ndecision = 'allow'\ntool = 'bash'\n")?;
    assert_eq!(
        decide(&bash("f() { make > log; }; f &"), Mode::Ask, &allow, &[]),
        Decision::Allow
    );
    assert_eq!(decide(&bash("echo \"open"), Mode::Ask, &allow, &[]), Decision::Ask);
    assert_eq!(decide(&bash("rm -rf /"), Mode::Ask, &allow, &[]), Decision::Blocked);
    Ok(())
}

#[test]
fn only_a_quoting_rule_of_the_user_lifts_the_guard() -> Checked {
    let text = "[[rule]]\ndecision = 'allow'\ntool = 'bash'\nexact = 'git push --force origin wip'\n";
    let own = parse_rules(text, Source::User)?;
    assert_eq!(
        line("git push --force origin wip", Mode::Ask, &own).decision,
        Decision::Allow
    );
    assert_eq!(
        line("git push --force origin main", Mode::All, &own).decision,
        Decision::Blocked
    );
    assert_eq!(
        line("git push --force origin wip; ls", Mode::All, &own).decision,
        Decision::Blocked
    );
    for source in [Source::Trusted, Source::Project] {
        let project = parse_rules(text, source)?;
        assert_eq!(
            line("git push --force origin wip", Mode::All, &project).decision,
            Decision::Blocked
        );
    }
    let broad = parse_rules(
        "[[rule]]\ndecision = 'allow'\ntool = 'bash'\ncommand = 'git'\n",
        Source::User,
    )?;
    assert_eq!(line("git push --force", Mode::All, &broad).decision, Decision::Blocked);
    Ok(())
}

#[test]
fn a_rule_that_is_trusted_with_its_scripts_allows_nothing_once_they_change() -> Checked {
    let with = |text: &str, scripts: &[(&str, &str)]| {
        let mut facts = bash(text);
        if let Some(command) = &mut facts.command {
            let named = |(path, hash): &(&str, &str)| ((*path).to_owned(), (*hash).to_owned());
            command.scripts = scripts.iter().map(named).collect();
        }
        facts
    };
    for said in ["command = './deploy.sh'", "exact = './deploy.sh'"] {
        let text = format!("[[rule]]\ndecision = 'allow'\ntool = 'bash'\n{said}\n");
        let mut trusted = parse_rules(&text, Source::Trusted)?;
        trusted[0].pinned = [("/p/deploy.sh".to_owned(), "one".to_owned())].into();
        let judged = |scripts: &[(&str, &str)]| {
            let policy = Policy {
                mode: Mode::Ask,
                rules: &trusted,
                grants: &[],
                builtin_allow: true,
            };
            judge(&with("./deploy.sh", scripts), &policy)
        };
        assert_eq!(
            judged(&[("/p/deploy.sh", "one"), ("/p/x", "y")]).decision,
            Decision::Allow
        );
        for changed in [&[("/p/deploy.sh", "two")][..], &[("/p/sub/deploy.sh", "one")], &[]] {
            let verdict = judged(changed);
            assert_eq!(verdict.decision, Decision::Ask, "{said}");
            assert!(
                verdict.reason.contains("when its rule was trusted"),
                "{}",
                verdict.reason
            );
        }
        assert!(trusted[0].pins("./deploy.sh") && !trusted[0].pins("ls"));
    }
    Ok(())
}

#[test]
fn path_rules_count_from_the_project() -> Checked {
    let deny = rules("[[rule]]\ndecision = 'deny'\npaths = ['secrets/**', '/etc/**']\n")?;
    assert_eq!(
        decide(&file("read_file", "secrets/a", Access::Read), Mode::All, &deny, &[]),
        Decision::Deny
    );
    assert_eq!(
        decide(&file("read_file", "src/a", Access::Read), Mode::Ask, &deny, &[]),
        Decision::Allow
    );
    assert_eq!(decide(&bash("cat secrets/a"), Mode::Ask, &deny, &[]), Decision::Deny);
    assert_eq!(
        decide(&bash("cd src; cat ../secrets/a"), Mode::All, &deny, &[]),
        Decision::Deny
    );
    let allow = rules("[[rule]]\ndecision = 'allow'\ntool = 'write_file'\npaths = ['src/**', '.env.example']\n")?;
    assert_eq!(
        decide(&file("write_file", "src/b/c", Access::Write), Mode::Ask, &allow, &[]),
        Decision::Allow
    );
    assert_eq!(
        decide(&file("write_file", "docs/c", Access::Write), Mode::Ask, &allow, &[]),
        Decision::Ask
    );
    assert_eq!(
        decide(&file("write_file", "src/.env", Access::Write), Mode::Ask, &allow, &[]),
        Decision::Ask
    );
    assert_eq!(
        decide(
            &file("write_file", ".env.example", Access::Write),
            Mode::Ask,
            &allow,
            &[]
        ),
        Decision::Allow
    );
    Ok(())
}

#[test]
fn host_rules_cover_names_below_and_nothing_else() -> Checked {
    let rules = rules(
        "[[rule]]\ndecision = 'allow'\ntool = 'fetch_url'\nhosts = ['docs.rs', '*.example.com']\n[[rule]]\ndecision = 'allow'\ntool = 'search'\n",
    )?;
    let fetch = |tool: &str, host: &str| Facts {
        tool: tool.into(),
        host: Some(host.into()),
        ..Facts::default()
    };
    for host in ["docs.rs", "a.example.com", "DOCS.RS."] {
        assert_eq!(
            decide(&fetch("fetch_url", host), Mode::Ask, &rules, &[]),
            Decision::Allow,
            "{host}"
        );
    }
    for host in ["example.com", "evil-example.com", "docs.rs.evil.com"] {
        assert_eq!(
            decide(&fetch("fetch_url", host), Mode::Ask, &rules, &[]),
            Decision::Ask,
            "{host}"
        );
    }
    assert_eq!(
        decide(&fetch("search", "docs.rs"), Mode::Ask, &rules, &[]),
        Decision::Ask
    );
    Ok(())
}

#[test]
fn a_session_allowance_covers_what_it_shows() {
    let offered = |text: &str| grant_for(&bash(text)).map(|grant| grant.to_string());
    assert_eq!(offered("git commit -m x").as_deref(), Some("bash: git commit …"));
    assert_eq!(offered("cargo test --lib").as_deref(), Some("bash: cargo test …"));
    assert_eq!(offered("npm run build").as_deref(), Some("bash: npm run build …"));
    assert_eq!(offered("pytest -q").as_deref(), Some("bash: pytest …"));
    for text in [
        "python x.py",
        "python3.12 x.py",
        "rm a",
        "git -C a commit",
        "make",
        "docker exec a b",
        "./build.sh",
        "sudo id",
        "cargo test > out",
    ] {
        assert_eq!(offered(text), Some(format!("bash: exactly {text}")), "{text}");
    }
    for text in ["a && b", "a | b", "a; b", "rm -rf /", "echo $(id); b", "echo \"open"] {
        assert_eq!(offered(text), None, "{text}");
    }
    let write = file("write_file", "a", Access::Write);
    assert_eq!(
        grant_for(&write).map(|grant| grant.to_string()).as_deref(),
        Some("write_file inside the project")
    );
    assert_eq!(grant_for(&file("write_file", ".env", Access::Write)), None);
}

#[test]
fn a_session_allowance_never_grows() -> Checked {
    let grant = grant_for(&bash("cargo test --lib")).ok_or_else(|| anyhow::anyhow!("nothing offered"))?;
    let grants = [grant.clone()];
    for text in ["cargo test", "cargo test --doc | tail", "cd src && cargo test"] {
        assert!(grant.covers(&bash(text)), "{text}");
        assert_eq!(decide(&bash(text), Mode::Ask, &[], &grants), Decision::Allow, "{text}");
    }
    for text in [
        "cargo build",
        "cargo test; rm a",
        "X=1 cargo test",
        "cargo test > a",
        "cd / && cargo test",
        "sudo cargo test",
        "ls",
    ] {
        assert!(!grant.covers(&bash(text)), "{text}");
    }
    assert_eq!(
        decide(
            &bash("rm -rf /"),
            Mode::Ask,
            &[],
            &[Grant::Exactly {
                tool: "bash".into(),
                text: "rm -rf /".into(),
                cwd: None
            }]
        ),
        Decision::Blocked
    );
    let always = grant
        .to_rule(&PathBuf::from(ROOT))
        .ok_or_else(|| anyhow::anyhow!("no rule offered"))?;
    assert_eq!(
        always.to_string(),
        "allow bash: cargo test … for /home/dev/work/project"
    );
    assert_eq!(decide(&bash("cargo test"), Mode::Ask, &[always], &[]), Decision::Allow);
    Ok(())
}

fn bash_in(cwd: &str, text: &str) -> Facts {
    let mut facts = bash(text);
    facts.command.iter_mut().for_each(|command| command.cwd = cwd.into());
    facts
}

#[test]
fn an_allow_rule_counts_inside_the_project_alone_and_one_that_restricts_everywhere() -> Checked {
    let allow = rules(
        "[[rule]]\ndecision = 'allow'\ntool = 'bash'\nexact = 'touch zz1'\n[[rule]]\ndecision = 'allow'\ntool = 'bash'\ncommand = 'npm test'\n\
         [[rule]]\ndecision = 'allow'\nexact = 'git push --force origin wip'\n",
    )?;
    let whole = rules("[[rule]]\ndecision = 'allow'\ntool = 'bash'\n")?;
    let deny = rules("[[rule]]\ndecision = 'deny'\ncommand = 'touch'\n")?;
    let src = format!("{ROOT}/src");
    for text in ["touch zz1", "npm test"] {
        for (cwd, decision) in [
            (ROOT, Decision::Allow),
            (&src, Decision::Allow),
            ("/tmp", Decision::Ask),
        ] {
            for rules in [&allow, &whole] {
                let facts = bash_in(cwd, text);
                assert_eq!(decide(&facts, Mode::Ask, rules, &[]), decision, "{text} in {cwd}");
            }
        }
    }
    let quoted = "git push --force origin wip";
    assert_eq!(decide(&bash(quoted), Mode::Ask, &allow, &[]), Decision::Allow);
    assert_eq!(
        decide(&bash_in("/tmp", quoted), Mode::All, &allow, &[]),
        Decision::Blocked
    );
    assert_eq!(
        decide(&bash_in("/tmp", "touch a"), Mode::All, &deny, &[]),
        Decision::Deny
    );
    Ok(())
}

#[test]
fn a_session_allowance_counts_where_it_was_asked_for() -> Checked {
    let offered = |cwd: &str, text: &str| {
        grant_for(&bash_in(cwd, text)).ok_or_else(|| anyhow::anyhow!("nothing offered for {text}"))
    };
    let decided =
        |cwd: &str, text: &str, grant: &Grant| decide(&bash_in(cwd, text), Mode::Ask, &[], std::slice::from_ref(grant));
    let src = format!("{ROOT}/src");
    for text in ["touch z", "ls -la", "echo a"] {
        let outside = offered("/etc", text)?;
        assert_eq!(outside.to_string(), format!("bash in /etc: exactly {text}"));
        assert_eq!(outside.to_rule(Path::new(ROOT)), None);
        assert_eq!(decided("/etc", text, &outside), Decision::Allow, "{text}");
        for cwd in ["/etc/ssl", "/tmp", "/"] {
            let alone = decide(&bash_in(cwd, text), Mode::Ask, &[], &[]);
            assert_eq!(decided(cwd, text, &outside), alone, "{text} in {cwd}");
        }
    }
    let inside = offered(&src, "touch z")?;
    assert_eq!(decided(ROOT, "touch y", &inside), Decision::Allow);
    assert_eq!(decided("/tmp", "touch z", &inside), Decision::Ask);
    let exactly = offered(&src, "touch z > a")?;
    assert_eq!(decided(ROOT, "touch z > a", &exactly), Decision::Allow);
    assert_eq!(decided("/tmp", "touch z > a", &exactly), Decision::Ask);
    let stored: Grant = serde_json::from_str(r#"{"kind":"exactly","tool":"bash","text":"touch z > a"}"#)?;
    assert_eq!(
        stored, exactly,
        "one that was recorded without a directory counts inside"
    );
    Ok(())
}

#[test]
fn what_keeps_a_rule_from_speaking_is_the_reason_to_ask() -> Checked {
    let rules = rules("[[rule]]\ndecision = 'allow'\ntool = 'bash'\ncommand = 'npm test'\n")?;
    let reason = |facts: &Facts, rules: &[Rule]| {
        let policy = Policy {
            mode: Mode::Ask,
            rules,
            grants: &[],
            builtin_allow: true,
        };
        judge(facts, &policy).reason
    };
    assert_eq!(
        reason(&bash_in("/tmp", "npm test"), &rules),
        "It runs outside the project, where no rule allows anything."
    );
    assert_eq!(
        reason(&bash("npm test > out"), &rules),
        "It writes to out. No rule or allowance covers that."
    );
    Ok(())
}

#[test]
fn what_the_target_found_makes_a_harmless_command_ask() {
    let with = |operands: Vec<PathFact>| {
        let mut facts = bash("cat notes.txt");
        facts
            .command
            .iter_mut()
            .for_each(|command| command.operands.clone_from(&operands));
        decide(&facts, Mode::Ask, &[], &[])
    };
    let operand = |name: &str, inside, secret| PathFact {
        shown: name.into(),
        resolved: name.into(),
        inside,
        access: Access::Read,
        secret,
        protected: false,
        foreign: false,
    };
    assert_eq!(with(Vec::new()), Decision::Allow);
    assert_eq!(
        with(vec![operand("/home/dev/.ssh/id_rsa", Inside::Outside, false)]),
        Decision::Ask
    );
    assert_eq!(with(vec![operand("notes.txt", Inside::Inside, true)]), Decision::Ask);
    assert_eq!(with(vec![operand("/p/-R", Inside::Inside, false)]), Decision::Ask);
}

#[test]
fn the_target_is_asked_about_files_that_would_be_read_unasked() {
    let named = |text: &str| {
        bash(text)
            .command
            .map(|command| crate::policy::shell::operands(&command))
            .unwrap_or_default()
    };
    let inside = |name: &str| format!("{ROOT}/{name}");
    assert_eq!(
        named("grep -n '/etc' a.txt | sort < b.txt"),
        [inside("a.txt"), inside("b.txt")]
    );
    assert_eq!(
        named("cd src && cat *.rs; git diff -- c"),
        [inside("c"), inside("src"), inside("src/*.rs"), inside("src/c")]
    );
    assert_eq!(
        named("echo /etc/passwd; printf '%s' /etc; rm /x; cat \"$Y\""),
        [] as [String; 0]
    );
    // `..` after a link leads where the system goes, so words are handed on as they are written.
    assert_eq!(
        named("cat link/../a /dev/null; [[ -f b/../c ]]; git -C link/.. status"),
        [inside("b/../c"), inside("link/.."), inside("link/../a")]
    );
    // The shell lists directories for a command that reads none.
    assert_eq!(named("echo link/* *"), [inside("link")]);
}

#[test]
fn commands_that_read_configuration_need_the_sandbox_and_a_clean_repository() {
    let mut facts = bash("git status");
    assert_eq!(decide(&facts, Mode::Ask, &[], &[]), Decision::Ask);
    facts.command.iter_mut().for_each(|command| command.sandbox = true);
    assert_eq!(decide(&facts, Mode::Ask, &[], &[]), Decision::Allow);
    facts
        .command
        .iter_mut()
        .for_each(|command| command.git_config = vec!["filter.x.clean".into()]);
    assert_eq!(decide(&facts, Mode::Ask, &[], &[]), Decision::Ask);
    assert_eq!(decide(&bash("cat README.md"), Mode::Ask, &[], &[]), Decision::Allow);
}

#[test]
fn without_the_built_in_list_everything_asks() {
    let verdict = judge(
        &bash("ls"),
        &Policy {
            mode: Mode::Ask,
            rules: &[],
            grants: &[],
            builtin_allow: false,
        },
    );
    assert_eq!(verdict.decision, Decision::Ask);
}

#[test]
fn what_runs_shells_of_its_own_and_what_is_disguised_makes_no_rule_of_its_first_words() {
    let facts = |text: &str| Facts {
        tool: "bash".to_owned(),
        writes: true,
        command: Some(CommandFact {
            text: text.to_owned(),
            cwd: PathBuf::from("/p"),
            roots: vec![PathBuf::from("/p")],
            ..CommandFact::default()
        }),
        ..Facts::default()
    };
    let offered = |text: &str| grant_for(&facts(text)).map(|grant| grant.to_string());
    for text in [
        "psql -c 'x'",
        "mysql db",
        "sqlite3 a.db",
        "ftp host",
        "gdb a.out",
        "tclsh x",
        "vim a",
        "chroot /x y",
    ] {
        assert_eq!(offered(text), Some(format!("bash: exactly {text}")), "{text}");
    }
    for text in ["\u{441}url http://x", "$'\\u0441url' http://x", "curl\u{a0}x"] {
        assert_eq!(offered(text), None, "{text}");
    }
}

#[test]
fn a_verdict_names_the_rule_and_the_parts() -> Checked {
    let rules = rules("[[rule]]\ndecision = 'deny'\ncommand = 'curl'\n")?;
    let verdict = line("ls | grep x && curl \"$URL\"", Mode::Ask, &rules);
    assert_eq!(verdict.rule.as_deref(), Some("deny *: curl …"));
    assert_eq!(verdict.parts, ["ls", "grep x", "curl …"]);
    for (text, parts) in [
        ("mkdir d && echo hi > d/f", vec!["mkdir d", "echo hi > d/f"]),
        ("ls 2>/dev/null >> log 2>&1; id", vec!["ls >> log", "id"]),
        ("X=1 PATH=/x ls < a; > b", vec!["X=1 PATH=/x ls < a", "> b"]),
        (
            "A=$(id); { ls; id; } > out",
            vec!["id", "A=…", "ls", "id", "{ … } > out"],
        ),
        ("cat <<E && ls &> \"$F\"\nx\nE\n", vec!["cat << …", "ls &> …"]),
        ("sh -c 'id > x'", vec!["sh -c id > x", "id > x"]),
    ] {
        assert_eq!(line(text, Mode::Ask, &[]).parts, parts, "{text}");
    }
    let answer = verdict.test_answer();
    assert_eq!(
        answer,
        serde_json::json!({"verdict": "deny", "reason": "A rule denies it.", "rule": "deny *: curl …"})
    );
    Ok(())
}
