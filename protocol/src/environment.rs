//! The part of a client's environment that the commands of its sessions run with. Client and daemon ask the same list: the
//! client sends no other name, the daemon keeps no other.

use std::collections::BTreeMap;

/// Whole names.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "LANG",
    "TZ",
    "TERM",
    "SSH_AUTH_SOCK",
    "VIRTUAL_ENV",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Beginnings of names.
const PREFIXES: &[&str] = &["LC_", "CONDA_", "NVM_", "NIX_"];

/// Longest value that is sent, in bytes. The kernel's own bound of one variable is 128 KiB.
const VALUE_BYTES: usize = 128 * 1024;

/// Whether a variable of this name goes to the daemon.
pub fn listed(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The listed part of `variables`; values that are no UTF-8 or are too long are left out.
pub fn of(variables: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>) -> BTreeMap<String, String> {
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| listed(name) && value.len() <= VALUE_BYTES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn keys_and_unknown_names_stay_behind() {
        let variables = [
            "PATH",
            "LC_TIME",
            "ANTHROPIC_API_KEY",
            "AGENTD_API_KEY",
            "LD_PRELOAD",
            "GIT_DIR",
        ];
        let sent = of(variables.iter().map(|name| (name.into(), "x".into())));
        assert_eq!(sent.into_keys().collect::<Vec<_>>(), ["LC_TIME", "PATH"]);
    }
}
