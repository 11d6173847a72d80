//! What is said of a failure: what the sandbox refused, and nothing where it refused nothing.

use super::*;

/// The line that says which sandbox a failed command ran in, and what that kept from it.
fn explanation(ended: &Ended) -> &str {
    assert_eq!(ended.outcome, Outcome::Error, "{}", ended.output);
    let at = ended.output.rfind("[ran in the sandbox (").unwrap();
    &ended.output[at..]
}

#[tokio::test]
async fn a_failure_the_sandbox_has_no_part_in_is_not_explained_by_it() {
    for form in FORMS {
        let Some(mut world) = World::new(form).await else {
            continue;
        };
        world.write("root/a", "a");
        world.write("root/b", "b");
        let reads = [
            "grep zzz a",
            "test -f c",
            "diff a b",
            "false # https://example.com/a",
            "grep zzz /etc/passwd",
            "! echo 'https://example.com: Network is unreachable'",
            "cat c; ls /no/such/thing",
        ];
        for command in reads {
            let ended = world.run_in(Confinement::ReadOnly, command).await;
            assert!(
                !explanation(&ended).contains(':'),
                "{form:?} {command}: {}",
                ended.output
            );
        }
        for network in [Network::On, Network::Off] {
            world.network = network;
            let others = [
                "echo 'Permission denied (sandbox): ./src/x /etc/x' >&2; false",
                "python3 -c 'raise SystemExit(3)'",
                "/bin/bash -c 'no-such-program https://example.com/a'",
                "cp a a/d",
                "python3 /usr/no-such-script.py",
                "cargo-no-such-program install",
            ];
            for command in reads.iter().chain(&others) {
                let ended = world.run(command).await;
                assert!(
                    !explanation(&ended).contains(':'),
                    "{form:?} {command}: {}",
                    ended.output
                );
            }
        }
    }
}

#[tokio::test]
async fn a_failure_is_explained_by_what_the_command_was_to_write_read_or_move() {
    for form in FORMS {
        let Some(world) = World::new(form).await else { continue };
        world.make_repository();
        std::fs::create_dir(world.path("elsewhere")).unwrap();
        let path = |name: &str| world.path(name).display().to_string();
        for (command, explained) in [
            (
                "touch ~/notes.txt",
                format!("does not let commands write {}", path("home/notes.txt")),
            ),
            (
                "echo x > ../elsewhere/x",
                format!("does not let commands write {}", path("elsewhere/x")),
            ),
            (
                "cd ../elsewhere && touch z",
                format!("does not let commands write {}", path("elsewhere")),
            ),
            (
                "echo x > .git/hooks/x",
                format!("does not let commands write {}", path("root/.git/hooks/x")),
            ),
            ("cat ~/.ssh/id_rsa", format!("hides {}", path("home/.ssh/id_rsa"))),
            ("grep x < ~/.ssh/id_rsa", format!("hides {}", path("home/.ssh/id_rsa"))),
            ("mv .git .git2", format!("keeps {} where it is", path("root/.git"))),
        ] {
            let ended = world.run(command).await;
            let said = explanation(&ended);
            assert!(said.contains(&explained), "{form:?} {command}: {}", ended.output);
            assert!(said.contains("outside_sandbox: true"), "{form:?} {command}: {said}");
        }
        let elsewhere = json!({"command": "python3 -c 'open(\"x\", \"w\")'", "cwd": path("elsewhere")});
        let ended = world.call(Confinement::Session, elsewhere).await;
        let said = explanation(&ended);
        assert!(
            said.contains(&format!("write {}.", path("elsewhere"))),
            "{form:?}: {said}"
        );
    }
}

#[tokio::test]
async fn a_missing_network_is_told_from_what_the_kernel_counted() {
    for form in [OWN, SHARED] {
        let Some(world) = World::new(form).await else { continue };
        for command in [
            "exec 3<>/dev/tcp/192.0.2.1/80",
            "python3 -c 'import socket; socket.socket(2, 2).sendto(b\"x\", (\"192.0.2.1\", 53))'",
            "(exec 3<>/dev/tcp/192.0.2.1/80) 2> /dev/null; sleep 0; false",
        ] {
            let ended = world.run_in(Confinement::ReadOnly, command).await;
            let said = explanation(&ended);
            assert!(
                said.contains("the sandbox has no network. If that"),
                "{form:?} {command}: {said}"
            );
        }
    }
}

#[tokio::test]
async fn without_a_network_servers_of_the_commands_own_are_reached_and_others_named() {
    for form in [OWN, SHARED] {
        let Some(mut world) = World::new(form).await else {
            continue;
        };
        world.network = Network::Off;
        world
            .works(
                "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); \
                 socket.create_connection(s.getsockname())'",
            )
            .await;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        let ended = world.run(&connect).await;
        assert!(
            explanation(&ended).contains(&format!("port {port} is outside the sandbox")),
            "{}",
            ended.output
        );
        drop(listener);
        let ended = world.run(&connect).await;
        assert!(!explanation(&ended).contains(':'), "{form:?}: {}", ended.output);
    }
}
