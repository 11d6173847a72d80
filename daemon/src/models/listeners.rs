//! Who listens on a port of this machine, from `/proc/net/tcp{,6}`. Empty where the system has no such files.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// State of a listening socket in those files.
const LISTENING: &str = "0A";

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) uid: u32,
}

/// All listening sockets of this network.
pub(super) fn all() -> Vec<Listener> {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts
        .flat_map(|text| text.lines().skip(1).filter_map(parse).collect::<Vec<_>>())
        .collect()
}

/// A line: `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 12345 …`.
fn parse(line: &str) -> Option<Listener> {
    let mut fields = line.split_whitespace();
    let (local, state) = (fields.nth(1)?, fields.nth(1)?);
    let uid = fields.nth(3)?.parse().ok()?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    (state == LISTENING).then_some(Listener {
        address: ip(address)?,
        port,
        uid,
    })
}

/// Each group of four bytes is a number in the machine's own order.
fn ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (part, at) in bytes.chunks_mut(4).zip([0, 8, 16, 24]) {
                part.copy_from_slice(&word(at)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// The address of this machine at which `port` is served by none but those `trusts` accepts; `None`: nobody serves it, or somebody else
/// might.
pub(super) fn served(listeners: &[Listener], port: u16, trusts: impl Fn(u32) -> bool) -> Option<(IpAddr, u32)> {
    let mut here = listeners.iter().filter(|listener| listener.port == port).peekable();
    here.peek()?;
    let mut found = None;
    for listener in here {
        let reached = match listener.address {
            IpAddr::V4(ip) if ip.is_loopback() || ip.is_unspecified() => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            IpAddr::V6(ip) if ip.is_unspecified() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()) => {
                Some(IpAddr::V4(Ipv4Addr::LOCALHOST))
            }
            IpAddr::V6(ip) if ip.is_loopback() => Some(IpAddr::V6(ip)),
            _ => None,
        };
        let Some(reached) = reached else { continue };
        if !trusts(listener.uid) {
            return None;
        }
        found.get_or_insert((reached, listener.uid));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0
   1: 00000000:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0
   2: 0100007F:1F40 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 13 1 0 100 0 0 10 0
   3: 00000000000000000000000001000000:04D2 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1001 0 14";

    #[test]
    fn listening_sockets_are_read_with_their_owner() {
        let listeners: Vec<Listener> = TABLE.lines().filter_map(parse).collect();
        let one = |address: &str, port, uid| {
            Some(Listener {
                address: address.parse().ok()?,
                port,
                uid,
            })
        };
        let expected = [
            one("127.0.0.1", 8080, 1000),
            one("0.0.0.0", 11434, 0),
            one("::1", 1234, 1001),
        ];
        assert_eq!(listeners, expected.into_iter().flatten().collect::<Vec<_>>());
    }

    #[test]
    fn a_port_is_served_only_if_every_socket_there_is_trusted() {
        let listeners: Vec<Listener> = TABLE.lines().filter_map(parse).collect();
        let home = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(served(&listeners, 8080, |uid| uid == 1000), Some((home, 1000)));
        assert_eq!(served(&listeners, 8080, |uid| uid == 0), None);
        assert_eq!(served(&listeners, 11434, |uid| uid == 0), Some((home, 0)));
        assert_eq!(
            served(&listeners, 1234, |_| true),
            Some((IpAddr::V6(Ipv6Addr::LOCALHOST), 1001))
        );
        assert_eq!(served(&listeners, 9999, |_| true), None);
        let foreign = Listener {
            address: home,
            port: 8080,
            uid: 7,
        };
        assert_eq!(
            served(&[listeners.clone(), vec![foreign]].concat(), 8080, |uid| uid == 1000),
            None
        );
    }

    #[test]
    fn a_socket_of_our_own_is_found() -> anyhow::Result<()> {
        let socket = std::net::TcpListener::bind("127.0.0.1:0")?;
        let own = rustix::process::getuid().as_raw();
        let found = served(&all(), socket.local_addr()?.port(), |uid| uid == own);
        assert!(
            found.is_some() || !cfg!(target_os = "linux"),
            "the listener is not in /proc/net/tcp"
        );
        Ok(())
    }
}
