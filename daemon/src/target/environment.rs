//! The environment of commands: a named list from the client that made the session, never the daemon's own, never keys.
//!
//! The same list tells a client what to send and the daemon what to keep, so a variable outside it does not even reach the
//! log's private column.

use std::collections::BTreeMap;
use std::path::Path;

/// Names a command may have from the client.
const LISTED: &[&str] = &[
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
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
];

/// Families of such names.
const LISTED_PREFIXES: &[&str] = &["LC_", "CONDA_", "NVM_", "NIX_"];

/// Names that let a command act as the person at the screen: only for commands a person approved.
const PERSONAL: &[&str] = &[
    "SSH_AUTH_SOCK",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Names that make a program load or run something before the command begins; not even `[session] env` passes them.
const FORBIDDEN: &[&str] = &[
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "IFS",
    "CDPATH",
    "GLOBIGNORE",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
];

/// Families of such names, and everything that configures the daemon itself.
const FORBIDDEN_PREFIXES: &[&str] = &["AGENTD_", "LD_", "DYLD_", "BASH_", "GIT_CONFIG"];

/// What every command gets: no program that waits for a key press.
const SET: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Where programs are looked for when the client has no PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Bytes of one variable's value. Longer ones would eat the room the kernel gives to arguments.
const VALUE_LIMIT_BYTES: usize = 32 * 1024;

/// Bytes of all names and values, a quarter of what Linux allows for a new program.
const TOTAL_LIMIT_BYTES: usize = 512 * 1024;

/// Whether a client may send this variable of its own, without the configuration naming it.
pub fn is_listed(name: &str) -> bool {
    LISTED.contains(&name) || LISTED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether this variable is kept from commands that no person approved. Whether a command has it is no part of what is
/// approved, so digests leave it out.
pub fn is_personal(name: &str) -> bool {
    PERSONAL.contains(&name)
}

/// The environment of a session's commands: of the `client`'s variables the listed ones and `extra_names` (`[session] env`),
/// less `key_names` (those the profiles take keys from) unless named in `extra_names`, and the fixed settings.
pub fn command_environment(
    client: &BTreeMap<String, String>,
    extra_names: &[String],
    key_names: &[String],
) -> BTreeMap<String, String> {
    let named = |name: &String| extra_names.contains(name);
    let mut room = TOTAL_LIMIT_BYTES;
    let mut environment: BTreeMap<String, String> = client
        .iter()
        .filter(|(name, _)| named(name) || (is_listed(name) && !key_names.contains(name)))
        .filter(|(name, value)| is_well_formed(name, value) && !is_forbidden(name))
        .filter(|(name, value)| {
            let needed = name.len() + value.len() + 2;
            let fits = needed <= room;
            room -= if fits { needed } else { 0 };
            fits
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    environment.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    environment.extend(SET.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    environment
}

/// What a command that nobody looked at gets: no variable of the configuration, no program of the project, and git without the
/// programs that a repository can name.
pub(super) fn scrub<'a>(environment: &mut BTreeMap<String, String>, roots: impl Iterator<Item = &'a Path> + Clone) {
    environment.retain(|name, _| is_listed(name));
    if let Some(path) = environment.get_mut("PATH") {
        let of_system = |dir: &&str| {
            let dir = Path::new(dir);
            dir.is_absolute() && !roots.clone().any(|root| dir.starts_with(root))
        };
        *path = path.split(':').filter(of_system).collect::<Vec<_>>().join(":");
    }
    let fixed = SET.iter().chain(GIT_WITHOUT_PROGRAMS);
    environment.extend(fixed.map(|(name, value)| (name.to_string(), value.to_string())));
}

/// Settings of git that win over those of any file.
pub(super) const GIT_WITHOUT_PROGRAMS: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_COUNT", "4"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.pager"),
    ("GIT_CONFIG_VALUE_1", "cat"),
    ("GIT_CONFIG_KEY_2", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_2", "/dev/null"),
    ("GIT_CONFIG_KEY_3", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_3", "explicit"),
];

fn is_forbidden(name: &str) -> bool {
    FORBIDDEN.contains(&name) || FORBIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_well_formed(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0') && value.len() <= VALUE_LIMIT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| (name.to_string(), "v".to_string())).collect()
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    fn names_of(environment: &BTreeMap<String, String>) -> Vec<&str> {
        let set = |name: &&str| SET.iter().any(|(fixed, _)| fixed == name);
        environment
            .keys()
            .map(String::as_str)
            .filter(|name| !set(name))
            .collect()
    }

    #[test]
    fn only_listed_and_named_variables_reach_a_command() {
        let sent = client(&[
            "PATH",
            "HOME",
            "LC_ALL",
            "MY_TOKEN",
            "EDITOR",
            "CONDA_PREFIX",
            "https_proxy",
            "NAMED",
        ]);
        let environment = command_environment(&sent, &strings(&["NAMED"]), &[]);
        assert_eq!(
            names_of(&environment),
            ["CONDA_PREFIX", "HOME", "LC_ALL", "NAMED", "PATH", "https_proxy"]
        );
    }

    #[test]
    fn a_key_is_passed_only_if_the_configuration_names_it() {
        let sent = client(&["PATH", "NIX_KEY", "API_KEY"]);
        let keys = strings(&["NIX_KEY", "API_KEY"]);
        assert_eq!(names_of(&command_environment(&sent, &[], &keys)), ["PATH"]);
        assert_eq!(
            names_of(&command_environment(&sent, &strings(&["API_KEY"]), &keys)),
            ["API_KEY", "PATH"]
        );
    }

    #[test]
    fn nothing_that_loads_code_is_passed_even_when_named() {
        let bad = [
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "GIT_SSH_COMMAND",
            "GIT_EXTERNAL_DIFF",
            "GIT_CONFIG_COUNT",
            "AGENTD_SOCKET",
            "SHELLOPTS",
        ];
        let environment = command_environment(&client(&bad), &strings(&bad), &[]);
        assert_eq!(names_of(&environment), ["PATH"]);
        assert_eq!(environment["PATH"], DEFAULT_PATH);
    }

    #[test]
    fn programs_that_would_wait_for_a_person_are_replaced() {
        let environment = command_environment(
            &client(&["PAGER", "GIT_EDITOR"]),
            &strings(&["PAGER", "GIT_EDITOR"]),
            &[],
        );
        let fixed: Vec<_> = ["PAGER", "GIT_PAGER", "GIT_EDITOR", "GIT_TERMINAL_PROMPT"]
            .map(|name| environment[name].as_str())
            .to_vec();
        assert_eq!(fixed, ["cat", "cat", "false", "0"]);
    }

    #[test]
    fn oversized_and_malformed_variables_are_left_out() {
        let mut sent = client(&["HOME", "LC_A=B", ""]);
        sent.insert("LC_NUL".into(), "a\0b".into());
        sent.insert("LC_BIG".into(), "x".repeat(VALUE_LIMIT_BYTES + 1));
        for number in 0..30 {
            sent.insert(format!("NIX_{number:02}"), "x".repeat(VALUE_LIMIT_BYTES));
        }
        let environment = command_environment(&sent, &[], &[]);
        let bytes: usize = environment
            .iter()
            .map(|(name, value)| name.len() + value.len() + 2)
            .sum();
        assert!(bytes < TOTAL_LIMIT_BYTES + 1024, "{bytes}");
        assert!(
            environment.contains_key("HOME")
                && !environment.contains_key("LC_BIG")
                && !environment.contains_key("LC_NUL")
        );
    }
}
