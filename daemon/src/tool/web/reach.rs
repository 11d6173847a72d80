//! Which addresses of the web may be asked for at all, whoever approves it.

use std::net::{IpAddr, Ipv6Addr};

use reqwest::Url;

use super::ranges::is_public;

/// Names that mean this machine or its network wherever they are looked up.
const LOCAL_NAMES: [&str; 4] = ["localhost", "local", "internal", "localdomain"];

/// Bytes of an address: more than any server takes.
const URL_LIMIT_BYTES: usize = 8 * 1024;

/// What the user lets the web tools reach beyond the public internet on its usual ports.
#[derive(Debug, Clone, Default)]
pub(in crate::tool) struct Reach {
    /// `host` or `host:port`, lower case.
    hosts: Vec<String>,
}

/// Whether a host's addresses must be public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Screen {
    /// Every one of them.
    Public,
    /// The user named the host in the configuration.
    Trusted,
}

/// Why an address is not asked for; a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::tool) struct Refused(pub(in crate::tool) String);

impl Reach {
    pub(in crate::tool) fn new(hosts: &[String]) -> Self {
        Self {
            hosts: hosts.iter().map(|host| host.to_lowercase()).collect(),
        }
    }

    /// The address that `text` means, if it may be asked for.
    ///
    /// # Errors
    /// It is none, or one that is never asked for; the text says why.
    pub(in crate::tool) fn parse(&self, text: &str) -> Result<Url, Refused> {
        if text.len() > URL_LIMIT_BYTES {
            return Err(Refused(format!(
                "has {} bytes, at most {URL_LIMIT_BYTES} are allowed",
                text.len()
            )));
        }
        let mut url = Url::parse(text.trim()).map_err(|error| {
            Refused(format!(
                "is not a complete address such as https://example.org/page: {error}"
            ))
        })?;
        url.set_fragment(None);
        self.screen(&url)?;
        Ok(url)
    }

    /// How a host's addresses are to be looked at, if it may be asked at all.
    pub(super) fn screen(&self, url: &Url) -> Result<Screen, Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused(format!("only http and https are read, not {}", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused("holds a user name or password, which is not sent".into()));
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(Refused("names no host".into()));
        };
        if self.trusts(host, port) {
            return Ok(Screen::Trusted);
        }
        if !matches!(port, 80 | 443) {
            return Err(Refused(format!(
                "port {port} is not read: only 80 and 443, or what `fetch_hosts` in the user's config names"
            )));
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let private = match literal(&name) {
            Some(address) => !is_public(address),
            None => LOCAL_NAMES
                .iter()
                .any(|local| name == *local || name.ends_with(&format!(".{local}"))),
        };
        if private {
            Err(private_host(host))
        } else {
            Ok(Screen::Public)
        }
    }

    fn trusts(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let usual = matches!(port, 80 | 443);
        let with_port = format!("{host}:{port}");
        self.hosts
            .iter()
            .any(|own| *own == with_port || (usual && *own == host))
    }
}

/// The refusal of a host on a private network.
pub(super) fn private_host(host: &str) -> Refused {
    Refused(format!(
        "{host} is on this machine or a private network, which is not read; the user can allow it with `fetch_hosts` in \
         the [tools] section of the config"
    ))
}

/// Looks at the addresses of a name: all must be public, since any of them may be the one that is connected to.
pub(super) fn screened(name: &str, screen: Screen, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, Refused> {
    if addresses.is_empty() {
        return Err(Refused(format!("{name} has no address")));
    }
    match screen {
        Screen::Public if !addresses.iter().copied().all(is_public) => Err(private_host(name)),
        Screen::Public | Screen::Trusted => Ok(addresses),
    }
}

/// The address that the host part of a parsed address is. Its parser has brought odd spellings (`0x7f.1`, `2130706433`) into
/// the usual form.
fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_in_every_spelling() {
        let reach = Reach::default();
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fc00::1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://0/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://printer.local/",
            "http://metadata.google.internal/",
            "http://①②⑦.0.0.1/",
            "http://127。0。0。1/",
            "https://192.168.1.1/",
        ] {
            assert!(reach.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn other_schemes_ports_users_and_halves_are_refused() {
        let reach = Reach::default();
        for text in [
            "file:///etc/passwd",
            "ftp://example.org/",
            "gopher://example.org/",
            "data:text/html,x",
            "javascript:alert(1)",
            "http://user@example.org/",
            "http://user:pw@127.0.0.1/",
            "http://example.org:22/",
            "http://example.org:8080/",
            "example.org",
            "/page",
            "",
            "http://",
            "http://[fe80::1%25eth0]/",
            "unix:///run/x.sock",
        ] {
            assert!(reach.parse(text).is_err(), "{text}");
        }
        let long = format!("https://example.org/{}", "x".repeat(URL_LIMIT_BYTES));
        assert!(reach.parse(&long).is_err());
    }

    #[test]
    fn a_name_is_shown_as_it_goes_over_the_wire() -> anyhow::Result<()> {
        let url = Reach::default().parse("https://gооgle.com/a?b=c#d")?;
        assert_eq!(
            url.as_str(),
            "https://xn--ggle-55da.com/a?b=c",
            "Cyrillic letters are told apart"
        );
        Ok(())
    }

    #[test]
    fn what_the_user_names_may_be_reached_on_that_port_alone() -> anyhow::Result<()> {
        let reach = Reach::new(&["localhost:8080".into(), "Wiki.internal".into(), "[::1]:3000".into()]);
        for fine in [
            "http://localhost:8080/x",
            "https://wiki.internal/",
            "http://wiki.internal/",
            "http://[::1]:3000/",
        ] {
            assert_eq!(reach.screen(&Url::parse(fine)?)?, Screen::Trusted, "{fine}");
        }
        for not in [
            "http://localhost/",
            "http://localhost:8081/",
            "http://wiki.internal:8080/",
            "http://127.0.0.1:8080/",
        ] {
            assert!(reach.parse(not).is_err(), "{not}");
        }
        Ok(())
    }

    #[test]
    fn one_private_answer_among_public_ones_is_enough_to_refuse() -> anyhow::Result<()> {
        let (public, private) = ("93.184.215.14".parse()?, "10.0.0.1".parse()?);
        assert!(screened("a.example", Screen::Public, vec![public, private]).is_err());
        assert!(screened("a.example", Screen::Public, Vec::new()).is_err());
        assert_eq!(screened("a.example", Screen::Public, vec![public])?, vec![public]);
        assert_eq!(screened("a.example", Screen::Trusted, vec![private])?, vec![private]);
        Ok(())
    }
}
