//! What no sandboxed command may see: the daemon's own files, keys and passwords below the home directory, and sockets
//! of services that would act for the person outside of any sandbox. A list of what is known; what is not on it shows.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::Profile;

/// Where keys and passwords are kept, below the home directory.
const HOME_SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".terraform.d",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".config/gh",
    ".config/git/credentials",
    ".config/gcloud",
    ".config/op",
    ".config/sops",
    ".config/age",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".config/hub",
    ".config/doctl",
    ".config/rclone",
    ".config/solana",
    ".config/configstore",
    ".config/github-copilot",
    ".config/1Password",
    ".config/Bitwarden CLI",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/Slack",
    ".config/Signal",
    ".s3cfg",
    ".boto",
    ".oci",
    ".fly",
    ".databrickscfg",
    ".snowflake",
    ".minikube",
    ".colima",
    ".lima",
    ".orbstack",
    ".rd",
    ".thunderbird",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".cache/huggingface/token",
    ".huggingface",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".local/share/atuin",
    ".local/share/fish/fish_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
];

/// Sockets through which other programs act for the person, and kernel memory.
const SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman",
    "/run/containerd",
    "/run/dbus",
    "/run/systemd/private",
    "/run/snapd.socket",
    "/run/libvirt",
    "/run/lxd.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd",
    "/run/incus",
    "/var/lib/incus/unix.socket",
    "/run/crio",
    "/run/k3s",
    "/run/buildkit",
    "/run/pcscd",
    "/run/tailscale",
    "/run/screen",
    "/run/tmux",
    "/tmp/.X11-unix",
    "/tmp/.ICE-unix",
];

/// Beginnings of names in `/tmp` that hold sockets of agents and terminals.
const TEMPORARY_SOCKETS: &[&str] = &["ssh-", "tmux-", "gpg-", "dbus-", "screen", "kitty", "wezterm"];

/// Beginnings of names in `/dev`, beside disks: consoles, on which the person types and reads; what types and points for
/// them, hears and sees them; the kernel's memory and messages; disks by another way. Not `/dev/tty`, which is a command's
/// own terminal, and it has none.
const DEVICES: &[&str] = &[
    "console", "hidraw", "hvc", "input", "kmsg", "mem", "media", "nvme", "port", "sg", "snd", "tty0", "tty1", "tty2",
    "tty3", "tty4", "tty5", "tty6", "tty7", "tty8", "tty9", "ttyS", "ttyUSB", "ttyACM", "uhid", "uinput", "vcs",
    "video",
];

/// Files of root that hold passwords.
const SYSTEM_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/ssh",
    "/etc/sudoers",
    "/etc/sudoers.d",
];

/// Everything to be hidden that exists, without links. What holds a root is left out, or the command had no work tree.
pub(super) fn of(profile: &Profile) -> Vec<PathBuf> {
    let candidates = profile.hidden.iter().cloned().chain(of_people(&profile.homes));
    let mut found: Vec<PathBuf> = candidates
        .chain(temporary_sockets())
        .chain(devices())
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| *path != profile.state_dir && !profile.roots.iter().any(|root| root.starts_with(path)))
        .collect();
    found.sort();
    // What lies below something hidden is hidden already, and could not be reached to be covered.
    found.dedup_by(|path, before| path.starts_with(before));
    found
}

/// Where keys, passwords and sockets of the person's services are, below the homes and beside them.
fn of_people(homes: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let home = homes
        .iter()
        .flat_map(|home| HOME_SECRETS.iter().map(|name| home.join(name)));
    let system = SOCKETS.iter().chain(SYSTEM_SECRETS).map(PathBuf::from);
    let uid = rustix::process::getuid().as_raw();
    home.chain(system)
        .chain(std::iter::once(PathBuf::from(format!("/run/user/{uid}"))))
}

/// Whether a directory without links is, or lies in, one that commands do not see because of what is kept there. A root in it
/// would have to be shown with all of it.
pub(in crate::target) fn holds_keys(path: &Path, homes: &[PathBuf]) -> bool {
    let mut kept = of_people(homes).filter_map(|kept| kept.canonicalize().ok());
    kept.any(|kept| path.starts_with(kept))
}

fn temporary_sockets() -> Vec<PathBuf> {
    let wanted = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        entry.file_type().is_ok_and(|kind| kind.is_socket())
            || TEMPORARY_SOCKETS.iter().any(|begin| name.starts_with(begin))
    };
    entries(Path::new("/tmp"))
        .filter(wanted)
        .map(|entry| entry.path())
        .collect()
}

/// Devices that root and some groups may open, past every protection of files.
fn devices() -> Vec<PathBuf> {
    let is_dangerous = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        entry.file_type().is_ok_and(|kind| kind.is_block_device())
            || DEVICES.iter().any(|begin| name.starts_with(begin))
    };
    let may_open = |path: &PathBuf| {
        let may = |access| rustix::fs::access(path, access).is_ok();
        may(rustix::fs::Access::READ_OK) || may(rustix::fs::Access::WRITE_OK)
    };
    entries(Path::new("/dev"))
        .filter(is_dangerous)
        .map(|entry| entry.path())
        .filter(may_open)
        .collect()
}

fn entries(dir: &Path) -> impl Iterator<Item = std::fs::DirEntry> {
    std::fs::read_dir(dir).into_iter().flatten().flatten()
}
