//! What a command sought of the network it does not have, as the kernel counted it: a namespace of its own has counters of
//! its own, which begin at zero and which nothing but the command moves.
//!
//! The process that becomes the command opens them right after it entered its namespace and passes the open files to the
//! guard, which reads them when all is over; by a path they could not be reached any more then.

use std::fs::File;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::passing::{Giver, Taker, way};
use super::{Form, Network, Profile};

/// The kernel's counters: those of its older protocols, and those of IPv6.
#[cfg(target_os = "linux")]
const FILES: [&str; 2] = ["/proc/self/net/snmp", "/proc/self/net/snmp6"];

/// Bytes read of one of them; they have about 3,000.
const FILE_LIMIT_BYTES: u64 = 64 * 1024;

/// Where the addresses of the resolvers are.
const RESOLVERS: &str = "/etc/resolv.conf";

/// What a command without a network sought of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// It sent something to another machine, or asked for the address of one.
    pub beyond: bool,
    /// It sent something to this machine that nothing in its sandbox took.
    pub here: bool,
}

/// The guard's end: where the counters come.
#[derive(Debug)]
pub(in crate::target) struct Counters(Taker);

/// The end of the process that becomes the command. The command itself does not have it.
#[derive(Debug)]
pub(in crate::target) struct Opener(Giver);

/// The way from one to the other; none where the command has no network namespace, and so no counters.
pub(in crate::target) fn counters(profile: Option<&Profile>) -> Option<(Counters, Opener)> {
    profile.filter(|profile| profile.form == Form::Namespaces && profile.network == Network::Off)?;
    // Without the counters a failure is explained by less; the command runs all the same.
    let (guard, command) = way().ok()?;
    Some((Counters(guard), Opener(command)))
}

#[cfg(target_os = "linux")]
impl Opener {
    /// Opens the counters of the namespace this process is in, and passes them on.
    pub(super) fn open(&self) -> io::Result<()> {
        use std::os::fd::AsFd;
        let files: Vec<File> = FILES.iter().filter_map(|path| File::open(path).ok()).collect();
        self.0.give(&files.iter().map(AsFd::as_fd).collect::<Vec<_>>())
    }
}

impl Counters {
    /// What was sought until now. Nothing, if the counters never came.
    pub(in crate::target) fn sought(&self) -> Sought {
        let text = self.text().unwrap_or_default();
        sought(&text, &std::fs::read_to_string(RESOLVERS).unwrap_or_default())
    }

    fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        for file in self.0.take()? {
            File::from(file).take(FILE_LIMIT_BYTES).read_to_string(&mut text)?;
        }
        Ok(text)
    }
}

/// What counters say. A datagram to this machine that nobody took was a question for an address if the resolvers are here.
fn sought(text: &str, resolvers: &str) -> Sought {
    let moved = |name| counter(text, name) > 0;
    let asked = moved(("Udp", "NoPorts")) && resolves_here(resolvers);
    Sought {
        beyond: moved(("Ip", "OutNoRoutes")) || moved(("Ip6", "OutNoRoutes")) || asked,
        here: moved(("Tcp", "AttemptFails")) || (moved(("Udp", "NoPorts")) && !asked),
    }
}

/// A counter of a protocol: in a column below its name, or in a line of its own.
fn counter(text: &str, (protocol, name): (&str, &str)) -> u64 {
    let mut rows = text.lines().filter_map(|line| line.split_once(':'));
    let mut row = || {
        rows.find(|(begin, _)| *begin == protocol)
            .map(|(_, rest)| rest.split_whitespace())
    };
    if let (Some(mut names), Some(mut values)) = (row(), row()) {
        let at = names.position(|known| known == name);
        return at.and_then(|at| values.nth(at)?.parse().ok()).unwrap_or(0);
    }
    let line = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let mut found = line.filter(|(begin, _)| begin.strip_prefix(protocol) == Some(name));
    found
        .next()
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

fn resolves_here(resolvers: &str) -> bool {
    let servers = resolvers
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("nameserver"));
    let mut addresses = servers.filter_map(|address| address.trim().parse::<std::net::IpAddr>().ok());
    addresses.any(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: &str = "Ip: Forwarding DefaultTTL OutNoRoutes\nIp: 2 64 0\nTcp: RtoMin MaxConn AttemptFails\n\
                         Tcp: 200 -1 0\nUdp: InDatagrams NoPorts\nUdp: 0 0\nIp6InReceives \t2\nIp6OutNoRoutes \t0\n";

    fn said(text: &str, resolvers: &str) -> (bool, bool) {
        let Sought { beyond, here } = sought(text, resolvers);
        (beyond, here)
    }

    #[test]
    fn only_counters_that_moved_say_that_something_was_sought() {
        let other = "nameserver 10.0.0.1\n";
        assert_eq!(said(QUIET, other), (false, false));
        assert_eq!(said("", ""), (false, false));
        assert_eq!(said(&QUIET.replace("2 64 0", "2 64 1"), other), (true, false));
        assert_eq!(said(&QUIET.replace("Routes \t0", "Routes \t3"), other), (true, false));
        assert_eq!(said(&QUIET.replace("200 -1 0", "200 -1 2"), other), (false, true));
    }

    #[test]
    fn a_question_to_a_resolver_of_this_machine_is_about_another() {
        let asked = QUIET.replace("Udp: 0 0", "Udp: 0 1");
        assert_eq!(
            said(&asked, "# x\nnameserver 127.0.0.53\noptions edns0\n"),
            (true, false)
        );
        assert_eq!(said(&asked, "nameserver 10.0.0.1\n"), (false, true));
    }
}
