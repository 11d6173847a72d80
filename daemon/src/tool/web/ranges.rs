//! Which addresses belong to the public internet. The rest are machines of the user, their network or their provider, which
//! trust whoever can reach them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 ranges that are not public, as address and bits of the prefix.
const V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast, reserved, broadcast.
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
    ([255, 255, 255, 255], 32),
];

/// IPv6 ranges that are not public, as the first 64 bits and bits of the prefix. `::/96` holds `::`, `::1` and the old form
/// of IPv4 addresses; `64:ff9b:1::/48` is for translation inside a network; `2001::/32` hides an IPv4 address by inverting it.
const V6: [(u64, u32); 11] = [
    (0x0064_ff9b_0001_0000, 48),
    (0x0100_0000_0000_0000, 64),
    (0x2001_0000_0000_0000, 32),
    (0x2001_0002_0000_0000, 48),
    (0x2001_0db8_0000_0000, 32),
    (0x3fff_0000_0000_0000, 20),
    (0x5f00_0000_0000_0000, 16),
    (0xfc00_0000_0000_0000, 7),
    (0xfe80_0000_0000_0000, 10),
    (0xfec0_0000_0000_0000, 10),
    (0xff00_0000_0000_0000, 8),
];

/// Whether an address is public. One that carries an IPv4 address is judged by that.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !V4.iter()
        .any(|(range, prefix)| (bits ^ Ipv4Addr::from(*range).to_bits()).leading_zeros() >= *prefix)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match carried(address) {
        Carried::V4(inside) => return is_public_v4(inside),
        Carried::Unclear => return false,
        Carried::Nothing => {}
    }
    let high = u64::try_from(address.to_bits() >> 64).unwrap_or(0);
    !V6.iter()
        .any(|(range, prefix)| (high ^ range).leading_zeros() >= *prefix)
}

/// The IPv4 address inside an IPv6 one.
enum Carried {
    V4(Ipv4Addr),
    /// There is one, in a form nobody uses any more.
    Unclear,
    Nothing,
}

fn carried(address: Ipv6Addr) -> Carried {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => Carried::V4(of(g, h)),
        [0, 0, 0, 0, ..] => Carried::Unclear,
        [0x2002, high, low, ..] => Carried::V4(of(high, low)),
        _ => Carried::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> anyhow::Result<bool> {
        Ok(is_public(text.parse()?))
    }

    #[test]
    fn the_first_and_last_address_of_each_range_are_not_public_and_their_neighbours_are() -> anyhow::Result<()> {
        for private in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.9",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!public(private)?, "{private}");
        }
        for fine in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
        ] {
            assert!(public(fine)?, "{fine}");
        }
        Ok(())
    }

    #[test]
    fn an_address_inside_another_is_what_counts() -> anyhow::Result<()> {
        for private in [
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.2.3",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::101:101",
            "2002:7f00:1::",
            "2002:c0a8:1::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:db8::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "::ffff:0:127.0.0.1",
        ] {
            assert!(!public(private)?, "{private}");
        }
        for fine in [
            "2606:4700::1111",
            "2a00:1450:4001::8a",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "2001:4860::8888",
        ] {
            assert!(public(fine)?, "{fine}");
        }
        Ok(())
    }
}
