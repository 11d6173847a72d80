//! What a command tries against the daemon it runs under: its socket, its token, its memory, its descriptors, other programs
//! of the person that would act outside of the sandbox, and the network where there is none.

use super::{Sandbox, bash, outputs, sandbox, turn};
use anyhow::Context;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use tests::daemon::{Home, TestDaemon, profile};
use tests::model_server::{ModelServer, Reply, Script, Wire};
use tests::skip;

/// Tries everything once and says `NAME reached` or `NAME kept out`. What a command is not told lies in the file `victim`, as
/// if it had been guessed; a command line that names the socket would not even run.
const ATTACK: &str = r#"
import ctypes, os, socket, subprocess
pid, sock, state, abstract, udp, home = open("victim").read().splitlines()
pid = int(pid)
libc = ctypes.CDLL(None, use_errno=True)

def say(name, reached):
    print(name, "reached" if reached else "kept out")

def attempt(name, work):
    try:
        say(name, work() is not False)
    except BaseException as error:
        say(name, False)

def connect(address):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(address)

def send(kind):
    s = socket.socket(socket.AF_INET, kind)
    s.settimeout(5)
    s.connect(("127.0.0.1", int(udp)))
    s.send(b"x")
    return True

def read(path):
    with open(path, "rb") as f:
        return len(f.read(16)) > 0

def peek():
    with open("/proc/self/maps") as f:
        address = int(f.readline().split("-")[0], 16)
    room = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(room), 8)
    remote = (ctypes.c_size_t * 2)(address, 8)
    libc.process_vm_readv(pid, local, 1, remote, 1, 0)
    # EFAULT says that only the address was wrong.
    return ctypes.get_errno() not in (1, 3)

def succeeds(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20).returncode == 0

# The one is that of the listing itself.
attempt("inherited", lambda: len([fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2]) > 1)
attempt("socket", lambda: connect(sock))
attempt("abstract", lambda: connect("\0" + abstract))
attempt("token", lambda: read(state + "/token"))
attempt("database", lambda: read(state + "/agentd.db"))
attempt("config", lambda: read(home + "/.config/agentd/config.toml"))
for name in ("environ", "mem", "maps", "auxv", "stack", "fd/0", "root/etc/hostname", "cwd/etc/hostname"):
    attempt(name.replace("/", "-"), lambda: read(f"/proc/{pid}/{name}"))
attempt("descriptors", lambda: len(os.readlink(f"/proc/{pid}/fd/0")) > 0)
attempt("signal", lambda: os.kill(pid, 0) is None)
attempt("ptrace", lambda: libc.ptrace(16, pid, 0, 0) == 0)
attempt("process_vm_readv", peek)
attempt("pidfd_getfd", lambda: libc.syscall(438, os.pidfd_open(pid), 0, 0) >= 0)
attempt("namespace", lambda: libc.setns(os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), 0) == 0)
attempt("new-namespace", lambda: libc.unshare(0x10000000) == 0)
attempt("mount", lambda: libc.mount(b"none", b"/mnt", b"tmpfs", 0, 0) == 0)
attempt("systemd-run", lambda: succeeds("systemd-run", "--user", "true"))
attempt("tmux", lambda: succeeds("tmux", "ls"))
attempt("tcp", lambda: send(socket.SOCK_STREAM))
attempt("udp", lambda: send(socket.SOCK_DGRAM))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
print("done")
"#;

/// What an attack on a daemon said.
struct Attacked {
    said: String,
    sandbox: Sandbox,
}

impl Attacked {
    fn reached(&self) -> Vec<&str> {
        self.said
            .lines()
            .filter_map(|line| line.strip_suffix(" reached"))
            .collect()
    }
}

/// Lets a command attack the daemon it runs under; none where there is no python.
async fn attack(extra_config: &str) -> anyhow::Result<Option<Attacked>> {
    let name = format!("agentd-test-{}", uuid::Uuid::new_v4());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let tcp = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = tcp.local_addr()?.port();
    let udp = std::net::UdpSocket::bind(("127.0.0.1", port))?;
    udp.set_nonblocking(true)?;
    let script = Script::by_step([bash("/usr/bin/python3 attack.py"), Reply::text("done")]);
    let server = ModelServer::start(script)?;
    let config = format!("{}{extra_config}", profile(&server, Wire::Messages));
    let daemon = Home::new()?.config(&config)?.start().await?;
    if daemon
        .home
        .command("/usr/bin/python3")
        .arg("--version")
        .output()
        .await
        .is_err()
    {
        return Ok(None);
    }
    std::fs::write(daemon.home.project().join("attack.py"), ATTACK)?;
    let home = daemon.home.path().display();
    let (pid, socket, state) = (daemon.pid()?, daemon.socket()?, daemon.home.state_dir());
    let victim = format!(
        "{pid}\n{}\n{}\n{name}\n{port}\n{home}\n",
        socket.display(),
        state.display()
    );
    std::fs::write(daemon.home.project().join("victim"), victim)?;
    let session = turn(&daemon, "all").await?;
    let mut said = outputs(&daemon, &session)?.pop().context("the attack's output")?;
    if udp.recv(&mut [0; 1]).is_err() {
        // What the sandbox's own loopback took reached nobody.
        said = said.replace("udp reached", "udp kept out");
    }
    anyhow::ensure!(said.contains("done"), "{said}");
    let sandbox = sandbox(&daemon).await?;
    // Nobody may have fallen over on the way.
    daemon.controller().await?;
    Ok(Some(Attacked { said, sandbox }))
}

#[tokio::test]
async fn from_inside_a_sandbox_nothing_of_the_daemon_or_the_person_is_reached() -> anyhow::Result<()> {
    let Some(attacked) = attack("[sandbox]\nnetwork = false\n").await? else {
        skip!("python3 is not installed");
    };
    if attacked.sandbox == Sandbox::None {
        skip!("no sandbox can be made here");
    }
    let reached = attacked.reached();
    assert!(
        reached.is_empty(),
        "{:?}: {reached:?} in {}",
        attacked.sandbox,
        attacked.said
    );
    Ok(())
}

#[tokio::test]
async fn with_a_network_a_sandboxed_command_reaches_that_and_nothing_else() -> anyhow::Result<()> {
    let Some(attacked) = attack("").await? else {
        skip!("python3 is not installed");
    };
    if attacked.sandbox == Sandbox::None {
        skip!("no sandbox can be made here");
    }
    assert_eq!(
        attacked.reached(),
        ["tcp", "udp"],
        "{:?}: {}",
        attacked.sandbox,
        attacked.said
    );
    Ok(())
}

#[tokio::test]
async fn without_a_sandbox_the_daemons_memory_is_closed_all_the_same() -> anyhow::Result<()> {
    let Some(attacked) = attack("[sandbox]\nmode = \"off\"\n").await? else {
        skip!("python3 is not installed");
    };
    let reached = attacked.reached();
    let memory = [
        "environ",
        "mem",
        "maps",
        "auxv",
        "stack",
        "ptrace",
        "process_vm_readv",
        "pidfd_getfd",
        "fd-0",
        "descriptors",
        "inherited",
    ];
    let open: Vec<_> = memory.iter().filter(|name| reached.contains(name)).collect();
    assert!(open.is_empty(), "{open:?} in {}", attacked.said);
    assert!(
        reached.contains(&"socket"),
        "the socket is there to look, not to act: {}",
        attacked.said
    );
    Ok(())
}

#[tokio::test]
async fn a_command_sees_no_process_but_its_own() -> anyhow::Result<()> {
    let server = ModelServer::start(Script::by_step([
        bash("ls -d /proc/[0-9]* | wc -l; echo $$; kill -9 1; kill -9 $PPID; echo still here"),
        Reply::text("done"),
    ]))?;
    let daemon = TestDaemon::with_model(&server, Wire::Messages).await?;
    let own = super::doctor(&daemon).await?["checks"][1]["detail"]
        .as_str()
        .is_some_and(|detail| detail.contains("only processes they started"));
    if !own {
        skip!("no PID namespace with its own /proc can be made here");
    }
    let session = turn(&daemon, "all").await?;
    let said = outputs(&daemon, &session)?.join("\n");
    let seen: Vec<i32> = said
        .lines()
        .take(2)
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    assert!(seen.len() == 2 && seen.iter().all(|number| *number < 10), "{said}");
    assert!(
        said.contains("still here"),
        "the first process of its namespace cannot be killed from within: {said}"
    );
    daemon.controller().await?;
    Ok(())
}
